"""The pictures of chapter 27: losses of patients, how heads are joined, where a decoder
looks, what an examination has seen."""

from matplotlib.patches import Patch, Rectangle

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


def patients(losses):
    """Training losses {name: losses} on a log scale, each point a mean of ten updates."""
    figure, axes = panels(7.2, 3.0)
    ax = axes[0, 0]
    said = []
    for (name, values), colour in zip(losses.items(), SERIES):
        places, means = smoothed(values)
        ax.plot(places, means, color=colour, label=name)
        said.append(f"{name} from {means[0]:.1f} to {means[-1]:.3g}")
    longest = max(map(len, losses.values()))
    ax.set(xlim=(0, longest), xlabel="update", ylabel="loss, nats per token")
    ticks = [3, 1, 0.3, 0.1, 0.03, 0.01]
    ax.set_yscale("log")
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.grid(axis="y")
    label_ends(ax)
    figure.alternative = f"Training losses: {'; '.join(said)}."
    return figure


def charts(seen, limits):
    """Examinations side by side: {model: {line: figure}}, red outside of the limits
    {line: (least, most)}."""
    lines = list(limits)
    width = min(7.4, 3.6 + 0.95 * len(seen))
    figure, axes = panels(width, 0.36 * len(lines) + 0.7)
    ax, said = axes[0, 0], []
    for column, (name, figures) in enumerate(seen.items()):
        ill = []
        for row, line in enumerate(lines):
            least, most = limits[line]
            value = figures[line]
            wrong = not least <= value <= most
            look = {"fc": WARNING if wrong else PALE["attention"], "ec": "white"}
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, lw=2, **look))
            text = f"{value:.2f}" if isinstance(value, float) else str(value)
            look = {"color": "white" if wrong else INK, "size": 9.5}
            ax.text(column, row, text, ha="center", va="center", **look)
            ill += [line] * wrong
        said.append(f"{name}: {', '.join(ill) or 'nothing'}")
    ax.set(xlim=(-0.5, len(seen) - 0.5), ylim=(len(lines) - 0.5, -0.5))
    ax.set_xticks(range(len(seen)), list(seen), weight="bold")
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(lines)), [f"{x} ({asked(*limits[x])})" for x in lines])
    without_frame(ax)
    figure.alternative = (
        f"Charts of examinations. Outside of what is healthy: {'; '.join(said)}."
    )
    return figure


def asked(least, most):
    """In words what a healthy model shows."""
    if least == most:
        return f"must be {most:g}"
    if most == float("inf"):
        return f"at least {least:g}"
    return f"{least:g} to {most:g}" if least else f"at most {most:g}"


def joined(tables, names):
    """From which token each piece of a joined row comes: {title: (T, h) of places}."""
    figure, axes = panels(3.5 * len(tables), 0.32 * len(names) + 1.2, 1, len(tables))
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
    kinds_of_pieces(figure)
    figure.alternative = (
        "Each row of a joined result, cut into its pieces, with the token that each "
        f"piece comes from. Pieces of another token than the row's: {'; '.join(said)}."
    )
    return figure


def kinds_of_pieces(figure):
    """What the colours of `joined` mean, under its panels."""
    kinds = {
        "its own piece": PALE["attention"],
        "an earlier token's": LIGHT,
        "a later token's": WARNING,
    }
    patches = [Patch(color=colour, label=kind) for kind, colour in kinds.items()]
    figure.legend(handles=patches, loc="outside lower center", ncols=3, frameon=False)


def source_looks(weights, source, written):
    """Where a decoder looks in its source while it writes: {title: weights (T, S)};
    columns of padding are named so."""
    figure, axes = panels(3.3 * len(weights), 2.7, 1, len(weights))
    padding = [place for place, name in enumerate(source) if name == "pad"]
    said = []
    for ax, (title, table) in zip(axes[0], weights.items()):
        ax.imshow(table, cmap=weights_map(), vmin=0, vmax=1, aspect="auto")
        ax.set_xticks(range(len(source)), source)
        ax.set_yticks(range(len(written)), written)
        ax.set(title=title, xlabel="token of the source")
        ax.spines[:].set(visible=True, color=LIGHT)
        ax.tick_params(length=0)
        for place in padding:
            ax.get_xticklabels()[place].set_color(WARNING)
        share = table[:, padding].sum() / table.sum()
        said.append(f"{title}: {share:.0%}")
    axes[0, 0].set_ylabel("writes")
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
    figure, axes = panels(7.2, 3.0)
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
    ax.set_xticks(range(len(losses)), list(losses), weight="bold")
    ax.set_ylabel("loss, nats per token")
    ax.margins(y=0.1)
    patches = [Patch(color=c, label=kind) for c, kind in zip(colours, kinds)]
    look = {"loc": "outside upper center", "ncols": len(kinds), "frameon": False}
    figure.legend(handles=patches, title="The model reads, for each target:", **look)
    figure.alternative = f"Loss with own and with other sources: {'; '.join(said)}."
    return figure
