"""The pictures of chapter 06: nouns by gender, sizes, which rows learn, temperature."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from transformer.views.labels import label_ends
from transformer.views.shapes import weights_table
from transformer.views.style import (
    IDEAS,
    SERIES,
    panels,
    without_frame,
)
from transformer.views.widget import Widget, plain_style, widget

GREEN = IDEAS["embedding"]
TEMPERATURES = [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10]


def noun_map(points, nouns):
    """Nouns at points (n, 2), coloured by their group: {group: its nouns, in the order of
    the points}."""
    figure, axes = panels(7.9, 5.9)
    ax, start, said = axes[0, 0], 0, []
    points = torch.as_tensor(points)
    ax.set(xticks=[], yticks=[])
    ax.plot(*points.T.tolist(), "o", ms=0)  # for the limits
    ax.margins(x=0.1, y=0.09)
    without_frame(ax)
    figure.draw_without_rendering()
    places = ax.transData.transform(points) * 72 / figure.dpi  # in points of print
    taken = [Box(x - 2, y - 2, x + 2, y + 2) for x, y in places.tolist()]
    for (group, names), colour in zip(nouns.items(), SERIES):
        own = points[start : start + len(names)]
        ax.plot(*own.T.tolist(), "o", ms=4, color=colour)
        for spot, place, name in zip(own.tolist(), places[start:].tolist(), names):
            label(ax, spot, place, name, colour, taken)
        start += len(names)
        look = {"size": 20, "weight": "bold", "color": colour, "ha": "center"}
        spot = (own[:, 0].mean(), own[:, 1].max())
        lift = {"xytext": (0, 16), "textcoords": "offset points"}
        ax.annotate(group, spot, annotation_clip=False, **lift, **look)
        x, y = own.mean(dim=0).tolist()
        said.append(f"{group} around ({x:.1f}, {y:.1f}): {', '.join(names[:4])} ...")
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


# Where a name may be beside its point: a shift in points of print, and how it is aligned
SIDES = ((5, -3, 0), (-5, -3, 1), (0, 5, 0.5), (0, -11, 0.5), (5, 4, 0), (-5, 4, 1))
SIDES += ((5, -10, 0), (-5, -10, 1), (6, 11, 0), (-6, 11, 1), (6, -17, 0), (-6, -17, 1))
ALIGNED = {0: "left", 0.5: "center", 1: "right"}


def label(ax, spot, place, name, colour, taken):
    """A name beside its point, where nothing else is, if there is such a place."""
    wide = 4.6 * len(name)
    boxes = []
    for dx, dy, share in SIDES:
        left = place[0] + dx - share * wide
        low = place[1] + dy
        boxes.append(Box(left, low, left + wide, low + 7.5))
    free = [not any(box.meets(other) for other in taken) for box in boxes]
    side = free.index(True) if True in free else 0
    taken.append(boxes[side])
    dx, dy, share = SIDES[side]
    shift = {"xytext": (dx, dy), "textcoords": "offset points"}
    ax.annotate(name, spot, size=8.5, color=colour, ha=ALIGNED[share], **shift)


def sizes_by_width(widths, curves):
    """Variances over the width of a model: {name: values}."""
    figure, axes = panels(6.6, 3.0)
    ax, said = axes[0, 0], []
    for (name, values), colour in zip(curves.items(), (GREEN, SERIES[0], SERIES[2])):
        ax.plot(widths, values, "o-", ms=4, lw=2, color=colour, label=name)
        said.append(f"{name} from {values[0]:.3f} to {values[-1]:.3f}")
    ax.set(xscale="log", yscale="log", xlabel="$d_{model}$", ylabel="variance")
    ax.set_xticks(widths, widths)
    ax.set_yticks([0.001, 0.01, 0.1, 1], ["0.001", "0.01", "0.1", "1"])
    ax.minorticks_off()
    label_ends(ax)
    figure.alternative = f"Variances over widths. {'; '.join(said)}."
    return figure


def reached(norms):
    """How far a step moves each row, by use: {use: norms of the rows' gradients}."""
    table = torch.stack(list(norms.values()))
    figure, axes = panels(7.4, 0.42 * len(norms) + 0.8)
    ax = axes[0, 0]
    columns = [str(row) for row in range(table.shape[1])]
    largest = float(table.max())
    weights_table(ax, table, list(norms), columns, numbers=False, largest=largest)
    ax.set_xlabel("row of E")
    said = [
        f"{use}: {int((row > 0).sum())} of {len(row)} rows"
        for use, row in norms.items()
    ]
    figure.alternative = f"Rows with a gradient, darker for larger. {'; '.join(said)}."
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
