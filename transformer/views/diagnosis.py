"""The pictures of chapter 27: losses of patients, how heads are joined, where a decoder
looks, how the halves of the museum were found."""

from matplotlib.patches import Rectangle

from transformer.views.labels import label_ends
from transformer.views.style import (
    GREY,
    IDEAS,
    INK,
    LIGHT,
    PALE,
    SERIES,
    WARNING,
    panels,
    weights_map,
    without_frame,
)

BLUE = IDEAS["attention"]


def smoothed(losses, width=10):
    """Places, and the means of so many losses in a row."""
    starts = range(0, len(losses) - width + 1, width)
    means = [sum(losses[i : i + width]) / width for i in starts]
    return [i + width // 2 for i in starts], means


def patients(losses, floors=None):
    """Training losses {name: losses} on a log scale; with dashed lines {what one knows:
    nats} on a plain one."""
    figure, axes = panels(7.2, 3.0)
    ax = axes[0, 0]
    said = []
    for (name, values), colour in zip(losses.items(), SERIES):
        places, means = smoothed(values)
        ax.plot(places, means, color=colour, label=name)
        said.append(f"{name} from {means[0]:.1f} to {means[-1]:.3g}")
    longest = max(map(len, losses.values()))
    for place, (name, value) in enumerate((floors or {}).items()):
        ax.plot([0, longest], [value, value], color=GREY, lw=0.9, ls=(0, (4, 3)))
        side = "top" if place else "bottom"
        ax.text(1, value, f"{name}: {value:.2f}", color=GREY, va=side, size=9.5)
        said.append(f"a dashed line at {value:.2f}: {name}")
    ax.set(xlim=(0, longest), xlabel="update", ylabel="loss, nats per token")
    if floors:
        ax.set_ylim(min(floors.values()) - 0.25, 2.5)
    else:
        ticks = [3, 1, 0.3, 0.1, 0.03, 0.01]
        ax.set_yscale("log")
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.grid(axis="y")
    label_ends(ax)
    figure.alternative = f"Training losses: {'; '.join(said)}."
    return figure


def joined(tables, names):
    """From which token each piece of a joined row comes: {title: (T, h) of places}."""
    figure, axes = panels(3.5 * len(tables), 0.32 * len(names) + 0.9, 1, len(tables))
    said = []
    for ax, (title, table) in zip(axes[0], tables.items()):
        strange = 0
        for row, places in enumerate(table.tolist()):
            for piece, place in enumerate(places):
                wrong = place > row
                fill = (
                    WARNING if wrong else PALE["attention"] if place == row else LIGHT
                )
                look = {"fc": fill, "ec": "white", "lw": 1.5}
                ax.add_patch(Rectangle((piece - 0.5, row - 0.5), 1, 1, **look))
                look = {"color": "white" if wrong else INK, "size": 9.5}
                text = names[place]
                ax.text(piece, row, text, ha="center", va="center", **look)
                strange += place != row
        ax.set(xlim=(-0.5, table.shape[1] - 0.5), ylim=(len(names) - 0.5, -0.5))
        ax.set_xticks(range(table.shape[1]), range(1, table.shape[1] + 1))
        ax.set_yticks(range(len(names)), names)
        ax.set(title=title, xlabel="piece of the joined row")
        without_frame(ax)
        said.append(f"{title}: {strange} of {table.numel()}")
    axes[0, 0].set_ylabel("row of")
    figure.alternative = (
        "Each row of a joined result, cut into its pieces, with the token that each "
        f"piece comes from. Pieces of another token than the row's: {'; '.join(said)}."
    )
    return figure


def source_looks(weights, source):
    """Where a decoder looks in its source: {title: weights (T, S)}; columns of padding
    are named so."""
    figure, axes = panels(3.3 * len(weights), 2.7, 1, len(weights))
    padding = [place for place, name in enumerate(source) if name == "pad"]
    said = []
    for ax, (title, table) in zip(axes[0], weights.items()):
        rows = len(table)
        ax.imshow(table, cmap=weights_map(), vmin=0, vmax=1, aspect="auto")
        ax.set_xticks(range(len(source)), source)
        ax.set_yticks(range(rows), range(1, rows + 1))
        ax.set(title=title, xlabel="token of the source")
        ax.spines[:].set(visible=True, color=LIGHT)
        ax.tick_params(length=0)
        for place in padding:
            ax.get_xticklabels()[place].set_color(WARNING)
        share = table[:, padding].sum() / table.sum()
        said.append(f"{title}: {share:.0%}")
    axes[0, 0].set_ylabel("row of the answer")
    bar = figure.colorbar(axes[0, -1].images[0], ax=list(axes[0]), aspect=16)
    bar.set_label("weight")
    bar.outline.set_visible(False)
    figure.alternative = (
        "Weights of the decoder's last look at the source. The share of them on the "
        f"padding: {'; '.join(said)}."
    )
    return figure


def other_sources(losses):
    """Loss with the own source and with others: {name: {whose source: loss}}."""
    figure, axes = panels(7.2, 2.9)
    ax, kinds = axes[0, 0], list(next(iter(losses.values())))
    colours, said = (BLUE, SERIES[2], GREY), []
    wide = 0.84 / len(kinds)
    for place, (name, values) in enumerate(losses.items()):
        for number, value in enumerate(values.values()):
            x = place + (number - (len(kinds) - 1) / 2) * wide
            ax.bar(x, value, 0.9 * wide, color=colours[number])
            look = {"ha": "center", "size": 9.5}
            ax.text(x, value + 0.1, f"{value:.2f}", **look)
        said.append(f"{name} " + ", ".join(f"{v:.2f} ({k})" for k, v in values.items()))
    ax.set_xticks(range(len(losses)), list(losses))
    ax.set_yticks([])
    ax.set_ylabel("loss, nats per token")
    ax.margins(y=0.1)
    without_frame(ax)
    for number, kind in enumerate(kinds):
        look = {"transform": ax.transAxes, "weight": "bold", "va": "bottom"}
        ax.text(0.3 * number, 1.04, kind, color=colours[number], **look)
    figure.alternative = f"Loss with own and with other sources: {'; '.join(said)}."
    return figure
