"""Boxes and arrows: how the parts of a model hang together."""

from transformer.views.plotting import new_axes
from transformer.views.style import COLOURS, GREY, IDEAS, INK, PALE

LINE = INK


def flow(boxes, arrows, ax):
    """Boxes joined by arrows: boxes maps a name to (x, y, text, colour); the colour is that of an
    idea of `style.IDEAS`, the number of one in COLOURS, or None. arrows: (from, to)."""
    patches = {name: draw_box(ax, *box) for name, box in boxes.items()}
    xs = [box[0] for box in boxes.values()]
    ys = [box[1] for box in boxes.values()]
    ax.set(xlim=(min(xs) - 0.6, max(xs) + 0.6), ylim=(min(ys) - 0.4, max(ys) + 0.4))
    style = {"arrowstyle": "-|>", "color": LINE, "shrinkA": 0, "shrinkB": 1}
    for start, end in arrows:
        ends = {"patchA": patches[start], "patchB": patches[end]}
        ax.annotate("", boxes[end][:2], boxes[start][:2], arrowprops=style | ends)
    ax.set_axis_off()
    return ax


def unrolled(source, target):
    """A recurrent translator in time: encoder states over source words, decoder over target."""
    words, S = [*source, "<s>", *target], len(source)
    boxes = {}
    for i, word in enumerate(words):
        x = i + (i >= S)  # a gap between the two
        boxes[f"x{i}"] = (x, 0, word, None)
        boxes[f"h{i}"] = (x, 1, f"$h_{i + 1}$", int(i >= S))
        if i >= S:
            boxes[f"y{i}"] = (x, 2, [*words, "</s>"][i + 1], None)
    arrows = [(f"x{i}", f"h{i}") for i in range(len(words))]
    arrows += [(f"h{i}", f"h{i + 1}") for i in range(len(words) - 1)]
    arrows += [(f"h{i}", f"y{i}") for i in range(S, len(words))]
    ax = flow(boxes, arrows, new_axes(1.2 * len(words), 2.6))
    ax.set_title("Each state needs the one before it", fontsize=10)
    return ax


def draw_box(ax, x, y, text, colour):
    """Text in a rounded box; returns the box, so that arrows can end at its edge."""
    style = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": GREY}
    drawn = ax.text(
        x, y, text, ha="center", va="center", fontsize=9, zorder=3, bbox=style
    )
    box = drawn.get_bbox_patch()
    if colour in IDEAS:
        box.set(facecolor=PALE[colour], edgecolor=IDEAS[colour])
    elif colour is not None:
        box.set_facecolor(COLOURS[colour] + "50")
    return box
