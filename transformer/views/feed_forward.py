"""The pictures of chapter 05: one unit that sorts, kinks, a memory of units, layers that
are switched off."""

from collections.abc import Mapping

from torch import Tensor, nn

from transformer.views.shapes import arrow, box
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    PALE,
    SERIES,
    WARNING,
    canvas,
    panels,
    without_frame,
)
from transformer.views.widget import (
    FEED_FORWARD,
    RULE,
    Widget,
    plain_style,
    widget,
)
from transformer.views.widget import (
    GREY as GREY_OF_PAGES,
)

ORANGE = IDEAS["feed-forward"]


# One unit


def number(value: float) -> str:
    """At most two decimals, with a true minus."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return text.replace("-", "−")


def signed(value: float) -> str:
    """A number that is added: +2, −2, 0."""
    return f"+{number(value)}" if value > 0 else number(value)


def sorting(steps):
    """What one unit does to pairs of numbers: [(before, hidden, written, after)]."""
    figure, ax = canvas((-0.2, 12.6), (-1.55 * len(steps) + 0.45, 1.5), 0.58)
    heads = (
        (1.0, "on the lane", "norm"),
        (4.55, "the unit", "feed-forward"),
        (8.0, "writes", "feed-forward"),
        (11.4, "on the lane", "norm"),
    )
    for x, text, idea in heads:
        ax.text(x, 1.15, text, ha="center", weight="bold", color=DARK[idea])
    said = []
    for row, (before, hidden, written, after) in enumerate(steps):
        y = -1.55 * row
        pair_of_cells(ax, 1.0, y, before, "norm")
        arrow(ax, (2.15, y), (3.3, y), colour=ORANGE)
        look = {"weight": "bold", "size": 12} if hidden else {"color": GREY, "size": 12}
        idea = "feed-forward" if hidden else None
        box(ax, (3.45, y - 0.36), (2.2, 0.72), idea=idea)
        ax.text(4.55, y, number(hidden), ha="center", va="center", zorder=9, **look)
        arrow(ax, (5.8, y), (6.75, y), colour=ORANGE if hidden else GREY)
        pair_of_cells(ax, 8.0, y, written, "feed-forward", signed)
        ax.text(9.7, y, "added", ha="center", va="center", color=GREY, size=9.5)
        pair_of_cells(ax, 11.4, y, after, "norm")
        lists = [", ".join(map(number, values)) for values in (before, written, after)]
        said.append(f"{lists[0]}: unit {number(hidden)}, writes {lists[1]}: {lists[2]}")
    figure.alternative = (
        f"A pair of numbers, the unit's value, what it writes, and the sum: "
        f"{'; '.join(said)}."
    )
    return figure


def pair_of_cells(ax, x, y, values, idea, text=number):
    """Two numbers side by side in boxes around x."""
    for shift, value in zip((-0.95, 0.05), values):
        box(ax, (x + shift, y - 0.32), (0.9, 0.64), text(value), idea)


# Kinks


def kinks(
    networks: Mapping[int, nn.Module],
    x: Tensor,
    y: Tensor,
    widths: tuple[int, ...] = (2, 8, 32),
) -> Widget:
    """`Widget` of a curve and of small networks that follow it, one for each number of units.

    networks {d_ff: a FeedForward(1, d_ff) whose W_1 is all ones}; x and y (n, 1) the curve; widths:
    those of its picture. Raises ValueError where a width has no network, or its W_1 is another.
    """
    if missing := [width for width in widths if width not in networks]:
        raise ValueError(f"no network is given for widths {missing}")
    if any((network.W_1.weight != 1).any() for network in networks.values()):
        raise ValueError("every number of W_1 must be 1: each unit is relu(x + b_1)")
    data = {
        "xs": [round(value, 4) for value in x.flatten().tolist()],
        "ys": [round(value, 4) for value in y.flatten().tolist()],
        "networks": [weights_of(network) for network in networks.values()],
        "start": widths[len(widths) // 2],
        "marked": list(widths),
    }
    return widget(
        "kinks",
        data,
        title="A wave, and the line of a small network",
        alt=kinks_in_words(networks, x, y, widths),
        figure=draw_kinks(networks, x, y, widths),
        height=330,
        accent=FEED_FORWARD,
        with_clocks=True,
    )


def kinks_in_words(networks, x, y, widths) -> str:
    """The alternative text of `kinks`."""
    errors = []
    for width in widths:
        error = (networks[width](x) - y).square().mean().item()
        errors.append(f"{width} units: {two_digits(error)}")
    return (
        "A wave, and lines that follow it, with a dot wherever a unit sets in. Mean "
        f"squared errors, {'; '.join(errors)}."
    )


def two_digits(error: float) -> str:
    """0.0056"""
    return f"{float(f'{error:.2g}'):.8f}".rstrip("0")


def weights_of(network) -> dict:
    """b_1, W_2 and b_2 of a network of one number, short enough for a page."""
    return {
        "b_1": [round(value, 5) for value in network.W_1.bias.tolist()],
        "W_2": [round(value, 5) for value in network.W_2.weight[0].tolist()],
        "b_2": round(network.W_2.bias.item(), 5),
    }


def draw_kinks(networks, x, y, widths):
    """The picture of `kinks`: a panel a width."""
    from matplotlib.figure import Figure

    line = x.flatten().tolist()
    with plain_style():
        figure = Figure(figsize=(7.2, 2.5))
        axes = figure.subplots(1, len(widths), sharey=True, squeeze=False)[0]
        for ax, width in zip(axes, widths):
            network = networks[width]
            places = -network.W_1.bias.detach()[:, None]
            ax.plot(line, y.flatten().tolist(), color=RULE, lw=4)
            ax.plot(line, network(x).flatten().tolist(), color=FEED_FORWARD, lw=1.8)
            tips = network(places).flatten().tolist()
            ax.plot(places.flatten().tolist(), tips, "o", ms=4, color=FEED_FORWARD)
            error = (network(x) - y).square().mean().item()
            title = f"{width} units, error {two_digits(error)}"
            ax.set_title(title, fontsize=10.5)
            ax.set(ylim=(-1.4, 1.4), yticks=[-1, 0, 1], xticks=[-2, 0, 2])
            ax.spines[["top", "right"]].set_visible(False)
            ax.spines[["left", "bottom"]].set_color(GREY_OF_PAGES)
        figure.subplots_adjust(0.05, 0.1, 0.995, 0.88, wspace=0.08)
    return figure


# A memory


def memory():
    """The network as a list of entries: what each looks for, how much, what it writes."""
    rows = 4
    figure, ax = canvas((-0.2, 13.4), (-4.5, 1.6), 0.56)
    middle = -1.4
    box(ax, (0.0, middle - 0.36), (1.5, 0.72), "x", "norm")
    for column, text in (
        (4.2, "looks for\n(key)"),
        (7.1, "how much"),
        (10.0, "writes\n(value)"),
    ):
        look = {"ha": "center", "va": "center", "weight": "bold"}
        ax.text(column, 1.0, text, color=DARK["feed-forward"], **look)
    for row in range(rows):
        y = -row * 1.0 if row < rows - 1 else -3.9
        strength = (0.0, 1.0, 0.35, 0.0)[row]
        arrow(
            ax, (1.6, middle), (2.3, middle), (2.3, y), (2.9, y), colour=GREY, width=0.9
        )
        entry(ax, y, strength, row)
    ax.text(5.6, -2.95, "...", ha="center", va="center", size=15, color=GREY)
    box(ax, (11.9, middle - 0.36), (1.4, 0.72), "sum", "feed-forward")
    figure.alternative = (
        "A vector x meets the keys of many units. Each unit's match, cut off at zero, "
        "is a number: here one unit matches fully, one in part and two not at all. Each"
        " number multiplies the unit's value, and the sum of these is what is written."
    )
    return figure


def entry(ax, y, strength, row):
    """One unit of `memory`: key, strength, value."""
    names = ("key 1", "key 2", "key 3", "key $d_{ff}$")
    box(ax, (3.0, y - 0.3), (2.4, 0.6), names[row], "feed-forward")
    ax.barh(y, 1.6, left=6.3, height=0.34, color="#f1f1f1", lw=0)
    ax.barh(y, 1.6 * strength, left=6.3, height=0.34, color=ORANGE, lw=0)
    arrow(ax, (5.5, y), (6.2, y), colour=GREY, width=0.9)
    on = strength > 0
    colour = ORANGE if on else GREY
    arrow(ax, (8.0, y), (8.7, y), colour=colour, width=0.9)
    name = names[row].replace("key", "value")
    idea = "feed-forward" if on else None
    box(ax, (8.8, y - 0.3), (2.4, 0.6), name, idea, color=INK if on else GREY)
    if on:
        arrow(ax, (11.25, y), (11.5, y), (11.5, -1.4), (11.85, -1.4), colour=ORANGE)


def units(rows):
    """What units of a trained model read and write: {name: ({text: value}, {text: value})}."""
    figure, axes = panels(7.4, 1.75 * len(rows) + 0.4, len(rows), 2)
    said = []
    for pair, (name, (reads, writes)) in zip(axes, rows.items()):
        writes = {word: round(value, 1) for word, value in writes.items()}
        for ax, values, colour in zip(pair, (reads, writes), (PALE, IDEAS)):
            bars(ax, values, colour["feed-forward"])
        pair[0].set_title(f"{name} is on after", loc="left")
        pair[1].set_title("and makes likelier", loc="left")
        said.append(
            f"{name} is on after {', '.join(reads)}; writes {', '.join(writes)}."
        )
    figure.alternative = "Units of a trained model. " + " ".join(said)
    return figure


def bars(ax, values, colour):
    """Bars with their words at the left and their numbers."""
    top = max(values.values())
    for place, value in enumerate(values.values()):
        ax.barh(place, value, height=0.62, color=colour, ec=ORANGE, lw=0.7)
        ax.text(value + 0.03 * top, place, f"{value:g}", va="center", size=9.5)
    ax.set_yticks(range(len(values)), list(values))
    ax.set(xlim=(0, 1.2 * top), ylim=(len(values) - 0.4, -0.6), xticks=[])
    without_frame(ax)


def switched_off(right, total):
    """Sentences that still come out right: {which network is off: how many}, the whole
    model first."""
    figure, axes = panels(6.2, 2.7)
    ax = axes[0, 0]
    for place, count in enumerate(right.values()):
        colour = SERIES[0] if place == 0 else WARNING if count == 0 else ORANGE
        ax.barh(place, count, height=0.6, color=colour)
        ax.text(count + 1, place, str(count), va="center")
    ax.set_yticks(range(len(right)), list(right))
    ax.set(ylim=(len(right) - 0.45, -0.55), xlim=(0, 1.1 * total), xticks=[0, total])
    ax.set_xlabel(f"of {total} sentences, exactly right")
    without_frame(ax)
    listed = ", ".join(f"{name}: {count}" for name, count in right.items())
    figure.alternative = f"Sentences exactly right, of {total}. {listed}."
    return figure
