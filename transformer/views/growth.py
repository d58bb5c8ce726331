"""Curves of what grows with the length of a sequence, on logarithmic axes."""

from transformer.views.plotting import lines
from transformer.views.style import GREY


def growth(sizes, curves, ylabel, title="", ax=None, markers=False):
    """`lines` over positions n; where curves cover each other, dashes lie on the solid ones."""
    ax = lines(
        sizes, curves, "positions n", ylabel, title, log="xy", ax=ax, markers=markers
    )
    for i, line in enumerate(ax.lines):
        line.set_zorder(2.5 - i / 20 - (line.get_linestyle() == "-") / 2)
    return ax


def add_slopes(ax, sizes, curves):
    """Guides in grey from the first of the larger half of the sizes: n below all, n^2 above."""
    first = len(sizes) // 2
    tail = sizes[first:]
    at_first = [values[first] for values in curves.values()]
    for slope, start in ((1, min(at_first) / 2), (2, max(at_first) * 2)):
        guide = [start * (n / tail[0]) ** slope for n in tail]
        ax.plot(tail, guide, color=GREY, linewidth=1)
        ax.annotate(
            f"slope {slope}",
            (tail[0], start),
            ha="right",
            va="center",
            fontsize=9,
            color=GREY,
        )


def mark_sizes(ax, sizes):
    """Dotted lines at these n, each with its number."""
    for n in sorted({round(n) for n in sizes}):
        ax.axvline(n, color=GREY, linestyle=":")
        ax.annotate(
            f"{n:,}",
            (n, 0.02),
            xycoords=ax.get_xaxis_transform(),
            xytext=(-4, 0),
            textcoords="offset points",
            rotation=90,
            ha="right",
            fontsize=9,
        )
