"""The pictures of chapter 05: the larger of two numbers, one unit that sorts, a head that bends, who
notices another word, kinks, a memory of units, networks without a bend."""

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from transformer.views.shapes import arrow, box, plus
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    canvas,
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

ORANGE, BLUE = IDEAS["feed-forward"], IDEAS["attention"]


# A task: the larger of two


def larger_of_two(pairs: Mapping[str, float], asked: tuple[str, str]):
    """Two heads bring home the numbers of two names; the answer is the larger of them."""
    figure, ax = canvas((-0.2, 11.8), (0.1, 4.7), 0.56)
    grey = {"ha": "center", "va": "center", "color": GREY}
    ax.text(5.6, 4.4, "six pairs of a name and a number", **grey)
    for place, (name, value) in enumerate(pairs.items()):
        x = 1.0 + 1.85 * place
        look = (GREY, None) if name not in asked else (INK, "attention")
        text = f"{name}\n{number(value)}"
        box(ax, (x - 0.8, 3.1), (1.6, 0.95), text, look[1], color=look[0])
        if name in asked:
            carried(ax, x, asked.index(name), number(value))
    ax.text(3.9, 0.74, f"query: {asked[0]}, {asked[1]}", ha="right", va="center")
    arrow(ax, (6.3, 0.74), (8.5, 0.74))
    ax.text(7.35, 1.05, "the larger?", ha="center", va="center")
    largest = number(max(pairs[name] for name in asked))
    box(ax, (8.7, 0.4), (0.9, 0.68), largest, weight="bold")
    listed = ", ".join(f"{name} {number(value)}" for name, value in pairs.items())
    figure.alternative = (
        f"Pairs: {listed}. Two heads fetch the numbers of {asked[0]} and {asked[1]}; "
        f"the answer is the larger of these two, {largest}."
    )
    return figure


def carried(ax, x, head, value):
    """What a head brings from the pair above x to its place on the lane."""
    end = 4.65 + 1.0 * head
    arrow(ax, (x, 3.0), (end, 1.15), colour=BLUE)
    side = 0.3 if x > end else -0.3
    look = {"ha": "left" if side > 0 else "right", "va": "center", "color": BLUE}
    ax.text((x + end) / 2 + side, 2.1, f"head {head + 1}", **look)
    box(ax, (end - 0.45, 0.4), (0.9, 0.68), value, "norm")


# One unit


def number(value: float) -> str:
    """At most two decimals, with a true minus."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return text.replace("-", "−")


def signed(value: float) -> str:
    """A number that is added: +2, −2, 0."""
    return f"+{number(value)}" if value > 0 else number(value)


def sorting(network: nn.Module, x: Tensor):
    """What a FeedForward(2, 1) does to pairs of numbers x (pairs, 2): read, bend, write, add."""
    figure, ax = canvas((-0.2, 14.6), (-1.55 * len(x) + 0.45, 1.9), 0.52)
    weights = [network.W_1.weight[0].tolist(), network.W_2.weight[:, 0].tolist()]
    read, written = (f"({', '.join(map(number, pair))})" for pair in weights)
    heads = (
        (1.0, "on the lane", "", "norm"),
        (5.0, "the unit", f"reads with {read}", "feed-forward"),
        (9.3, "is added", f"writes with {written}", "feed-forward"),
        (13.4, "on the lane", "", "norm"),
    )
    for place, text, below, idea in heads:
        ax.text(place, 1.55, text, ha="center", weight="bold", color=DARK[idea])
        ax.text(place, 0.95, below, ha="center", color=DARK[idea])
    said = [
        sorted_pair(ax, -1.55 * row, *states(network, pair))
        for row, pair in enumerate(x)
    ]
    figure.alternative = (
        f"A pair of numbers, the unit, which reads with {read}, what it adds, which it "
        f"writes with {written}, and the sum. {'; '.join(said)}."
    )
    return figure


def sorted_pair(ax, y, before, hidden, added, after):
    """A row of `sorting`, and what it shows in words."""
    on = "feed-forward" if hidden else None
    colour, letters = (ORANGE, INK) if hidden else (GREY, GREY)
    pair_of_cells(ax, 1.0, y, before, "norm")
    arrow(ax, (2.15, y), (3.2, y), colour=colour)
    a, b = (number(value) for value in before)
    lead = f"max(0, {b} − {f'({a})' if before[0] < 0 else a}) = {number(hidden)}"
    box(ax, (3.3, y - 0.36), (3.5, 0.72), lead, on, color=letters)
    arrow(ax, (6.9, y), (8.15, y), colour=colour)
    pair_of_cells(ax, 9.3, y, added, on, signed, color=letters)
    kept = (1.0, y - 0.4), (1.0, y - 0.62), (10.75, y - 0.62), (10.75, y - 0.26)
    arrow(ax, *kept, colour=IDEAS["norm"])
    plus(ax, 10.75, y, 0.2)
    arrow(ax, (11.1, y), (12.3, y), colour=IDEAS["norm"])
    pair_of_cells(ax, 13.4, y, after, "norm")
    lists = [", ".join(map(number, values)) for values in (before, added, after)]
    return f"{lists[0]}: unit {number(hidden)}, adds {lists[1]}: {lists[2]}"


def states(network, pair):
    """A pair, its hidden number, what is added to it, and the sum."""
    pair = pair.detach()
    added = network(pair).detach()
    hidden = network.W_1(pair).relu().item()
    return pair.tolist(), hidden, added.tolist(), (pair + added).tolist()


def pair_of_cells(ax, x, y, values, idea, text=number, **letters):
    """Two numbers side by side in boxes around x."""
    for shift, value in zip((-0.95, 0.05), values):
        box(ax, (x + shift, y - 0.32), (0.9, 0.64), text(value), idea, **letters)


# Position-wise


def who_notices(changed: Mapping[str, Tensor], words: Sequence[str], last: str):
    """Which words get another output when the last of them becomes another word: {"attention" or
    "network": of each word, whether its output has changed, (words,)}."""
    figure, ax = canvas((-2.6, 11.3), (-2.0, 1.7), 0.56)
    for column, word in enumerate(words):
        x = 1.2 + 2.7 * column
        new = column == len(words) - 1
        text = f"{word} → {last}" if new else word
        look = {"weight": "bold" if new else "normal", "va": "center"}
        ax.text(x, 1.2, text, ha="center", size=12, **look)
    said = []
    for row, (name, moved) in enumerate(changed.items()):
        outputs(ax, 0.1 - 1.3 * row, name, moved.tolist())
        which = ", ".join(word for word, d in zip(words, moved.tolist()) if d)
        said.append(f"in {name} the outputs of these words change: {which}")
    figure.alternative = f"{words[-1]} becomes {last}: {'; '.join(said)}."
    return figure


def outputs(ax, y, name, moved):
    """A row of `who_notices`: which words' outputs from one part of the model change."""
    idea = "feed-forward" if name == "network" else name
    look = {"ha": "right", "va": "center", "weight": "bold", "color": DARK[idea]}
    ax.text(-0.4, y, name, **look)
    for column, change in enumerate(moved):
        corner = (0.1 + 2.7 * column, y - 0.4)
        letters = DARK[idea] if change else GREY
        text = "changes" if change else "stays"
        box(ax, corner, (2.2, 0.8), text, idea if change else None, color=letters)


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
    return f"{float(f'{error:.2g}'):.8f}".rstrip("0").rstrip(".")


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
    figure, ax = canvas((-0.2, 16.2), (-5.6, 1.6), 0.5)
    middle = -1.4
    box(ax, (0.0, middle - 0.36), (1.3, 0.72), "x", "norm")
    for column, text in (
        (4.2, "looks for\n(key, bias)"),
        (7.6, "how much\n(hidden unit)"),
        (10.9, "writes\n(value)"),
    ):
        look = {"ha": "center", "va": "center", "weight": "bold"}
        ax.text(column, 1.0, text, color=DARK["feed-forward"], **look)
    for row in range(rows):
        y = -row * 1.0 if row < rows - 1 else -3.9
        strength = (0.0, 1.0, 0.35, 0.0)[row]
        path = (1.4, middle), (2.1, middle), (2.1, y), (2.9, y)
        arrow(ax, *path, colour=GREY, width=0.9)
        entry(ax, y, strength, row)
    ax.text(7.4, -2.95, "...", ha="center", va="center", size=15, color=GREY)
    back_to_the_lane(ax, middle)
    figure.alternative = (
        "A vector x meets the keys of many units. Each unit's match, cut off at zero, "
        "is a number: here one unit matches fully, one in part and two not at all. Each"
        " number multiplies the unit's value. The sum of these and a bias is added to x."
    )
    return figure


def back_to_the_lane(ax, y):
    """The end of `memory`: a bias, and the sum with what was on the lane."""
    plus(ax, 13.1, y, 0.24)
    ax.text(13.1, y + 0.75, "$b_2$", ha="center", color=DARK["feed-forward"])
    ax.plot([13.1, 13.1], [y + 0.65, y + 0.24], color=ORANGE, lw=1.2, zorder=6)
    arrow(ax, (13.4, y), (14.3, y), colour=ORANGE)
    plus(ax, 14.6, y, 0.24)
    lane = (0.65, y - 0.45), (0.65, -5.1), (14.6, -5.1), (14.6, y - 0.3)
    arrow(ax, *lane, colour=IDEAS["norm"], width=2.4)
    ax.text(7.6, -5.45, "the lane", ha="center", va="center", color=DARK["norm"])
    arrow(ax, (14.9, y), (16.0, y), colour=IDEAS["norm"], width=2.4)


def entry(ax, y, strength, row):
    """One unit of `memory`: key, strength, value."""
    index = ("1", "2", "3", "{d_{ff}}")[row]
    on = strength > 0
    idea, letters = ("feed-forward", INK) if on else (None, GREY)
    text = f"$k_{index}$, $\\beta_{index}$"
    box(ax, (3.0, y - 0.32), (2.4, 0.64), text, idea, color=letters)
    ax.barh(y, 1.6, left=6.8, height=0.34, color="#f1f1f1", lw=0)
    ax.barh(y, 1.6 * strength, left=6.8, height=0.34, color=ORANGE, lw=0)
    colour = ORANGE if on else GREY
    arrow(ax, (5.5, y), (6.7, y), colour=colour, width=0.9)
    arrow(ax, (8.5, y), (9.6, y), colour=colour, width=0.9)
    box(ax, (9.7, y - 0.32), (2.4, 0.64), f"$v_{index}$", idea, color=letters)
    if on:
        arrow(ax, (12.2, y), (12.5, y), (12.5, -1.4), (12.85, -1.4), colour=ORANGE)
