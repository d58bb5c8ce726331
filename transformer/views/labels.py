"""The names of curves at their ends, in their colours, moved apart where they would
overlap."""

import math
import textwrap

from matplotlib.artist import Artist
from matplotlib.text import Text
from matplotlib.transforms import Bbox

WIDEST = 24  # letters; longer names are broken


def label_ends(ax) -> None:
    """Write the name of each curve of ax at its end, in place of a legend."""
    ax.legend_ = EndLabels(ax)


class EndLabels(Artist):
    """Texts at the ends of lines. They are where matplotlib keeps a legend:
    `ax.get_legend()` finds them, and `ax.legend()` takes their place. They are placed
    when drawn, whatever limits and scales the axes have by then."""

    zorder = 5

    def __init__(self, ax):
        super().__init__()
        self.set_figure(ax.figure)
        self.axes = ax
        self.lines = [line for line in ax.lines if line.get_label()[:1] != "_"]
        self.texts = [self.text_of(line) for line in self.lines]

    def text_of(self, line) -> Text:
        name = textwrap.fill(line.get_label(), WIDEST)
        look = {"va": "center", "linespacing": 1.0, "fontsize": 9.5}
        text = Text(0, 0, name, **look)
        text.set_figure(self.axes.figure)
        return text

    def get_texts(self) -> list[Text]:
        """The texts, in the order in which the lines were drawn."""
        return self.texts

    def place(self, renderer) -> None:
        """Set each text beside the end of its line."""
        points = self.figure.dpi / 72
        frame = self.axes.get_window_extent(renderer)
        ends = [end_of(line, self.axes, frame) for line in self.lines]
        heights = [
            text.get_window_extent(renderer).height + points for text in self.texts
        ]
        middles = spread([y for _, y in ends], heights)
        lowest = min((y - h / 2 for y, h in zip(middles, heights)), default=frame.y0)
        middles = [y + max(0, frame.y0 - lowest) for y in middles]  # not onto the ticks
        for line, text, (x, _), y in zip(self.lines, self.texts, ends, middles):
            text.set(position=(x + 6 * points, y), color=line.get_color())

    def draw(self, renderer) -> None:
        self.place(renderer)
        for text in self.texts:
            text.draw(renderer)

    def get_window_extent(self, renderer=None):
        renderer = renderer or self.figure.canvas.get_renderer()
        self.place(renderer)
        boxes = [text.get_window_extent(renderer) for text in self.texts]
        return Bbox.union(boxes) if boxes else Bbox.null()

    def get_tightbbox(self, renderer=None):
        return self.get_window_extent(renderer)


def end_of(line, ax, frame) -> tuple[float, float]:
    """Where on the screen the last point of a line is that has numbers; inside the
    frame."""
    points = [
        (x, y)
        for x, y in zip(line.get_xdata(), line.get_ydata())
        if math.isfinite(x) and math.isfinite(y)
    ]
    x, y = ax.transData.transform(points[-1]) if points else (frame.x1, frame.y1)
    return min(max(x, frame.x0), frame.x1), min(max(y, frame.y0), frame.y1)


def spread(wanted: list[float], heights: list[float]) -> list[float]:
    """The places nearest to those wanted at which things of these heights do not
    overlap.

    Things that would touch form a pile, whose middle is the mean of what its members
    want.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    piles: list[tuple[list[int], float]] = []  # members from below, and the lowest edge
    for i in order:
        pile, low = [i], wanted[i] - heights[i] / 2
        while piles and piles[-1][1] + sum(heights[j] for j in piles[-1][0]) > low:
            pile = piles.pop()[0] + pile
            low = sum(
                wanted[j] - heights[j] / 2 - sum(heights[k] for k in pile[:n])
                for n, j in enumerate(pile)
            ) / len(pile)
        piles.append((pile, low))
    places = [0.0] * len(wanted)
    for pile, low in piles:
        for j in pile:
            places[j] = low + heights[j] / 2
            low += heights[j]
    return places
