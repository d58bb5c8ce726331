"""The phrases of a sentence as a tree."""

from transformer.views.plotting import new_axes
from transformer.views.style import COLOURS, GREY


def constituents(tree, title=""):
    """A tree of phrases (nltk's) above its words."""
    words, nodes, lines = [], [], []

    def place(node):
        if isinstance(node[0], str):
            words.append((len(words), node[0], node.label()))
            return len(words) - 1, 0
        below = [place(part) for part in node]
        x = (below[0][0] + below[-1][0]) / 2
        y = 1 + max(y for _, y in below)
        nodes.append((x, y, node.label()))
        lines.extend(((x, y), spot) for spot in below)
        return x, y

    _, top = place(tree)
    ax = new_axes(max(3.0, 0.8 * len(words)), 0.8 + 0.5 * top)
    for (x, y), (x_below, y_below) in lines:
        ax.plot([x, x_below, x_below], [y, y, y_below + 0.1], color=GREY, linewidth=1)
    box = {"fc": "white", "ec": "none", "pad": 1.0}
    middle = {"ha": "center", "va": "center", "fontsize": 9, "color": COLOURS[0]}
    for x, y, label in nodes:
        ax.text(x, y, label, bbox=box, **middle)
    for x, word, label in words:
        ax.text(x, 0, f"{label}\n{word}", ha="center", va="top", fontsize=9)
    ax.set(xlim=(-0.6, len(words) - 0.4), ylim=(-0.9, top + 0.4), title=title)
    ax.set_axis_off()
    return ax
