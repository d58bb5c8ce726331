"""The pictures of chapter 06: nouns by gender, one matrix at both ends, what moves rows; and
temperature."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from transformer.views.shapes import arrow, box
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    LIGHT,
    SERIES,
    canvas,
    panels,
    signed_map,
    without_frame,
)
from transformer.views.widget import Widget, plain_style, widget

GREEN = IDEAS["embedding"]
TEMPERATURES = [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10]


def noun_map(points, nouns, ring=None):
    """Nouns at points (n, 2), in a colour for each group: {group: its nouns, in the order
    of the points}. What the groups are called is not said. ring: a noun that gets one, and
    then there is a cross in the middle of all."""
    figure, axes = panels(8.2, 6.4)
    ax, start, said = axes[0, 0], 0, []
    points = torch.as_tensor(points)
    ax.set(xticks=[], yticks=[])
    ax.margins(x=0.09, y=0.05)
    without_frame(ax)
    names, colours = [], []
    for words, colour in zip(nouns.values(), SERIES):
        own = points[start : start + len(words)]
        ax.plot(*own.T.tolist(), "o", ms=4, color=colour)
        names += words
        colours += [colour] * len(words)
        start += len(words)
        x, y = own.mean(dim=0).tolist()
        said.append(f"around ({x:.1f}, {y:.1f}): {', '.join(words[:4])} ...")
    name_points(ax, points, names, colours)
    if ring is not None:
        look = {"mfc": "none", "mec": INK, "mew": 1.2}
        ax.plot(*points[names.index(ring)].tolist(), "o", ms=9.5, **look)
        ax.plot(*points.mean(dim=0).tolist(), "+", ms=13, mew=1.2, color=GREY)
    figure.alternative = f"{start} nouns as points in heaps. {'; '.join(said)}."
    return figure


class Box(NamedTuple):
    """Where something is printed."""

    left: float
    low: float
    right: float
    high: float

    def meets(self, other) -> bool:
        """Whether two boxes overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.low < other.high and other.low < self.high


SIZE, HIGH = 8.5, 8.0  # of a name, in points of print
# Where a name may be beside its point: a shift, and how it is aligned
SIDES = [(5, 0, 0), (-5, 0, 1), (0, 8, 0.5), (0, -8, 0.5)]
SIDES += [(4, 6, 0), (-4, 6, 1), (4, -6, 0), (-4, -6, 1)]
FAR = [(x, y, 0 if x > 0 else 1) for y in (12, -12, 18, -18) for x in (8, -8, 16, -16)]
FAR += [(x, y, 0 if x > 0 else 1) for y in (0, 9, -9) for x in (22, -22, 34, -34)]
ALIGNED = {0: "left", 0.5: "center", 1: "right"}


def name_points(ax, points, names, colours):
    """Names beside their points, where nothing else is; those in a crowd choose first.

    A name that finds no room near its point has a thin line to it.
    """
    ax.figure.draw_without_rendering()
    places = ax.transData.transform(points) * 72 / ax.figure.dpi  # in points of print
    taken = [Box(x - 3, y - 3, x + 3, y + 3) for x, y in places.tolist()]
    near = torch.cdist(torch.as_tensor(places), torch.as_tensor(places)) < 40
    for i in near.sum(dim=1).argsort(descending=True, stable=True).tolist():
        wide = 0.56 * SIZE * len(names[i])
        sides = [*SIDES, *FAR]
        boxes = [box_of(places[i], side, wide) for side in sides]
        free = [not any(box.meets(other) for other in taken) for box in boxes]
        best = free.index(True) if True in free else 0
        taken.append(boxes[best])
        dx, dy, share = sides[best]
        look = {"size": SIZE, "color": colours[i], "va": "center_baseline"}
        if best >= len(SIDES):
            line = {"color": colours[i], "lw": 0.5, "shrinkA": 1, "shrinkB": 2}
            look["arrowprops"] = {"arrowstyle": "-", **line}
        shift = {"xytext": (dx, dy), "textcoords": "offset points"}
        ax.annotate(names[i], points[i].tolist(), ha=ALIGNED[share], **shift, **look)


def box_of(place, side, wide):
    """Where a name of some width is printed beside a place."""
    (x, y), (dx, dy, share) = place, side
    left, low = x + dx - share * wide, y + dy - HIGH / 2
    return Box(left, low, left + wide, low + HIGH)


# One matrix at both ends

NUMBERS, CELL, STEP = 10, 0.24, 0.62  # of a row; width of each; between rows
RIGHT = 10.2  # where the matrix is drawn again


def one_matrix(rows, words, x, chances, read):
    """Rows (n, d) of a matrix, drawn where some of them are read and where all of them are
    compared with a vector x (d,), and the chances (n,) of their words.

    read: {the part that reads: the word whose row it reads}, from top to bottom.
    """
    high, wide = STEP * (len(words) - 1), CELL * NUMBERS
    figure, ax = canvas((-1.3, RIGHT + 6.9), (-1.1, high + 1.75), 0.44)
    places = {word: high - STEP * i for i, word in enumerate(words)}
    for word, y in places.items():
        bold = "bold" if word in read.values() else "normal"
        ax.text(-0.15, y, word, ha="right", va="center", weight=bold)
    twice(ax, rows, list(places.values()))
    through_the_model(ax, wide, {part: places[word] for part, word in read.items()})
    last = places[[*read.values()][-1]]
    column(ax, wide + 5.1, last, x)
    for y in places.values():
        ends = [wide + 5.4, RIGHT - 0.1], [last, y]
        ax.plot(*ends, color=GREY, lw=0.7, zorder=0)
    chances = torch.as_tensor(chances).tolist()
    bars(ax, RIGHT + wide + 1.3, places, chances)
    listed = ", ".join(f"{word} {p:.2f}" for word, p in zip(words, chances))
    readers = " and ".join(f"the {part} reads {word}" for part, word in read.items())
    figure.alternative = (
        f"One matrix, drawn twice. On the left {readers}, each by its row times the root of "
        "d. On the right a vector x that comes out of the decoder is compared with all rows "
        f"of the same matrix, which gives every word a probability: {listed}."
    )
    return figure


def twice(ax, rows, heights):
    """The matrix where it is read and where it writes, and what joins the two drawings."""
    half, top = CELL * NUMBERS / 2, max(heights)
    for start, told in ((0, "read: pick a row"), (RIGHT, "write: compare with all")):
        numbers(ax, start, heights, rows)
        ax.text(start + half, top + 0.6, f"to {told}", ha="center", weight="bold")
        ax.text(start + half, -0.75, "...", ha="center", size=13, color=GREY)
    bridge(ax, half, RIGHT + half, top + 1.3)


def bridge(ax, left, right, y):
    """A line from one drawing to the other, with the name of both."""
    ends = [left, left, right, right], [y - 0.3, y, y, y - 0.3]
    ax.plot(*ends, color=GREEN, lw=1.6)
    look = {"ha": "center", "va": "center", "color": DARK["embedding"], "size": 12}
    white = {"facecolor": "white", "edgecolor": "none", "pad": 3}
    ax.text((left + right) / 2, y, "one matrix E", weight="bold", bbox=white, **look)


def through_the_model(ax, start, heights):
    """Rows go into the parts of a model at some heights, and one vector comes out."""
    for part, y in heights.items():
        arrow(ax, (start + 0.1, y), (start + 2.2, y), colour=GREEN)
        look = {"ha": "center", "va": "bottom", "color": DARK["embedding"], "size": 10}
        ax.text(start + 1.1, y + 0.06, "× √d", **look)
        box(ax, (start + 2.3, y - 0.36), (1.7, 0.72), part)
    first, last = heights.values()
    arrow(ax, (start + 3.15, first - 0.4), (start + 3.15, last + 0.4))
    arrow(ax, (start + 4.1, last), (start + 4.7, last))


def bars(ax, start, places, chances):
    """Beside each word the bar of its probability."""
    top = max(places.values())
    ax.text(start, top + 0.6, "probability", weight="bold")
    for (word, y), chance in zip(places.items(), chances):
        ax.text(start - 0.12, y, word, ha="right", va="center")
        wide = 2.2 * chance if chance >= 0.005 else 0  # as its number says
        ax.barh(y, wide, left=start, height=0.36, color=GREEN)
        ax.text(start + wide + 0.1, y, f"{chance:.2f}", va="center", size=9.5)


def numbers(ax, start, places, rows):
    """The first numbers of rows as coloured cells, from start to the right."""
    rows = torch.as_tensor(rows)[:, :NUMBERS]
    rows = rows / (1.6 * rows.std())
    for y, row in zip(places, rows.tolist()):
        for i, value in enumerate(row):
            cell(ax, (start + CELL * i, y - 0.19), (CELL, 0.38), value)


def column(ax, x, y, vector):
    """The first numbers of a vector x, one above another, around (x, y)."""
    vector = torch.as_tensor(vector)[:NUMBERS]
    step = 0.2
    low = y - step * len(vector) / 2
    for i, value in enumerate((vector / (1.6 * vector.std())).tolist()):
        cell(ax, (x - 0.19, low + step * (len(vector) - 1 - i)), (0.38, step), value)
    ax.text(x, low - 0.3, "x", ha="center", va="center", style="italic", size=12)


def cell(ax, corner, size, value):
    """A number between about -1 and 1 as a coloured cell."""
    from matplotlib.patches import Rectangle

    colour = signed_map()(0.5 + 0.5 * max(-1.0, min(1.0, value)))
    ax.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor=LIGHT, lw=0.4))


# What moves rows


def pulls(rows, steps, x, words):
    """Rows (n, 2) of a small matrix and their steps (n, 2), which are shares of a vector x (2,)."""
    figure, axes = panels(6.4, 3.5)
    ax, said = axes[0, 0], []
    x = torch.as_tensor(x)
    drawn(ax, (0, 0), x.tolist(), GREY, ls="--")
    by = {"textcoords": "offset points"}
    ax.annotate("x", x.tolist(), (5, -2), color=GREY, size=12, **by)
    for row, step, word in zip(torch.as_tensor(rows), torch.as_tensor(steps), words):
        share = float(step @ x / (x @ x))
        right = share > 0
        colour = GREEN if right else INK
        told = f"{'pulled' if right else 'pushed'}, {share:+.2f} x".replace("-", "−")
        drawn(ax, row.tolist(), (row + step).tolist(), colour)
        ax.plot(*row.tolist(), "o", ms=6, color=colour, zorder=5)
        place = (0, -17 if right else 9)
        ax.annotate(f"{word}: {told}", row.tolist(), place, color=colour, **by)
        said.append(f"{word} at ({row[0]:g}, {row[1]:g}) is {told}")
    ax.set(xlim=(-0.35, 3.3), ylim=(-0.5, 2.4), xticks=[0, 1, 2], yticks=[0, 1, 2])
    ax.set(aspect="equal", xlabel="first number of a row", ylabel="second number")
    figure.alternative = f"Rows and a vector x in the plane. {'; '.join(said)}."
    return figure


def drawn(ax, start, end, colour, ls="-"):
    """An arrow in the plane; the head of a dashed one is drawn on its own."""
    head = {"arrowstyle": "-|>,head_width=0.16,head_length=0.32", "color": colour}
    near = [0.95 * b + 0.05 * a for a, b in zip(start, end)]
    ax.plot(*zip(start, near), color=colour, lw=1.8, ls=ls, solid_capstyle="butt")
    ax.annotate(
        "", end, near, arrowprops={**head, "lw": 1.8, "shrinkA": 0, "shrinkB": 0}
    )


def coming_apart(places, counts, nouns):
    """Nouns at some steps of trainings, and how many are beside one of their own group:
    {(training, step): points (n, 2)} and {(training, step): count}; nouns: {group: its
    nouns, in the order of the points}."""
    trainings = list(dict.fromkeys(name for name, _ in places))
    steps = list(dict.fromkeys(step for _, step in places))
    figure, axes = panels(8.2, 2.9 * len(trainings), len(trainings), len(steps))
    total, said = sum(map(len, nouns.values())), []
    for (name, step), points in places.items():
        ax = axes[trainings.index(name), steps.index(step)]
        groups = torch.as_tensor(points).split([len(words) for words in nouns.values()])
        for own, colour in zip(groups, SERIES):
            ax.plot(*own.T.tolist(), "o", ms=4.5, color=colour, alpha=0.8, mew=0)
        ax.set(xticks=[], yticks=[])
        ax.margins(0.08)
        ax.set_title(f"step {step}", fontsize=10.5)
        told = f"{counts[name, step]} of {total} have their own gender nearest"
        ax.set_xlabel(told, fontsize=9)
        said.append(f"{name}, step {step}: {told}")
    for name, ax in zip(trainings, axes[:, 0]):
        ax.set_ylabel(name, fontsize=11, weight="bold")
    for group, colour, y in zip(nouns, SERIES, (0.93, 0.82, 0.71)):
        ax = axes[0, -1]
        look = {"color": colour, "weight": "bold", "transform": ax.transAxes}
        ax.text(1.03, y, group, **look)
    figure.alternative = f"Nouns as points. {'; '.join(said)}."
    return figure


# Temperature


def temperature(
    words: Sequence[str], logits, shown: Sequence[float] = (0.5, 1, 2)
) -> Widget:
    """`Widget` of softmax over a few words, whose logits are divided by a temperature.

    shown: the temperatures of its picture. Raises ValueError where words and logits do not fit, and
    for a temperature that the slider does not have.
    """
    logits = torch.as_tensor(logits).double()
    if len(words) != len(logits):
        raise ValueError(f"{len(words)} words for {len(logits)} logits")
    if not shown or not set(shown) <= set(TEMPERATURES):
        raise ValueError(f"temperatures must be among {TEMPERATURES}, not {shown}")
    logits = torch.tensor([round(z, 3) for z in logits.tolist()]).double()
    tables = {t: (logits / t).softmax(dim=0) for t in shown}
    listed = "; ".join(
        f"at {t:g} " + ", ".join(f"{w} {p:.2f}" for w, p in zip(words, table.tolist()))
        for t, table in tables.items()
    )
    return widget(
        "temperature",
        {
            "words": list(words),
            "logits": logits.tolist(),
            "temperatures": TEMPERATURES,
            "marked": list(shown),
        },
        title="Softmax over a few words, and its temperature",
        alt=f"Bars of softmax over {len(words)} words. Temperatures, {listed}.",
        figure=draw_temperature(words, logits, tables),
        height=120 + 30 * len(words),
        accent=GREEN,
        with_clocks=True,
    )


def draw_temperature(words, logits, tables):
    """The picture of `temperature`: a panel a temperature."""
    from matplotlib.figure import Figure

    with plain_style():
        figure = Figure(figsize=(7.0, 0.32 * len(words) + 0.75))
        axes = figure.subplots(1, len(tables), sharey=True, squeeze=False)[0]
        for ax, (value, table) in zip(axes, tables.items()):
            ax.barh(range(len(words)), table.tolist(), height=0.6, color=GREEN)
            for place, p in enumerate(table.tolist()):
                ax.text(p + 0.03, place, f"{p:.2f}", va="center", size=9.5)
            ax.set_title(f"temperature {value:g}", fontsize=10.5)
            ax.set(xlim=(0, 1.25), xticks=[], ylim=(len(words) - 0.4, -0.6))
            ax.spines[:].set_visible(False)
        names = [f"{word}  {z:.1f}" for word, z in zip(words, logits.tolist())]
        axes[0].set_yticks(range(len(words)), names)
        figure.subplots_adjust(0.17, 0.02, 0.995, 0.86, wspace=0.05)
    return figure
