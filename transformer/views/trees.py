"""Trees: the beginnings that a beam search tries, and the phrases of a sentence."""

from transformer.views.plotting import new_axes
from transformer.views.style import COLOURS, GREY, INK


def boxed(ax, x, y, label, colour, bold):
    """A label in a rounded box."""
    ax.text(
        x,
        y,
        label,
        ha="center",
        va="center",
        color=colour,
        fontweight="bold" if bold else "normal",
        bbox={"boxstyle": "round", "fc": "white", "ec": colour},
    )


def hypotheses(values, bold=(), root="", width=2.0, height=0.5):
    """Beginnings of a sentence as a tree from left to right.

    values maps a path (a tuple of labels) to a share, written beside its last label in per cent;
    bold lists paths.
    """
    order = list(values)
    children = {path: [p for p in values if p[:-1] == path] for path in [(), *values]}
    leaves = [path for path in values if not children[path]]
    leaves.sort(key=lambda path: [order.index(path[: i + 1]) for i in range(len(path))])
    deepest = max(map(len, leaves))
    ax = new_axes(width * (1 + deepest), 0.6 + height * len(leaves))
    y = {path: -float(i) for i, path in enumerate(leaves)}
    for path in sorted(children, key=len, reverse=True):
        y.setdefault(
            path,
            sum(y[child] for child in children[path]) / max(1, len(children[path])),
        )
    for path in children:
        kept = path in bold or not path
        colour = INK if kept else GREY
        label = f"{path[-1]}  {values[path]:.1%}" if path else root
        boxed(ax, len(path), y[path], label, colour, kept)
        if path:
            ax.plot(
                [len(path) - 1, len(path)],
                [y[path[:-1]], y[path]],
                color=colour,
                zorder=0,
            )
    ax.set(xlim=(-0.4, deepest + 0.5), ylim=(0.6 - len(leaves), 0.6))
    ax.set_axis_off()
    return ax


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
