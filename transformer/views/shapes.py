"""What drawings are made of: boxes, arrows, lanes of the residual stream, tables of
weights."""

from matplotlib.patches import Circle, FancyBboxPatch, Polygon, Rectangle

from transformer.views.style import DARK, IDEAS, INK, LIGHT, PALE, weights_map


def box(ax, corner, extent, text="", idea=None, depth=7, **letters):
    """A box with a text, in the colours of an idea; white where there is none."""
    edge = IDEAS.get(idea, INK)
    shape = FancyBboxPatch(
        corner,
        *extent,
        boxstyle="round,pad=0,rounding_size=0.08",
        facecolor=PALE.get(idea, "white"),
        edgecolor=edge,
        linewidth=0.9,
        zorder=depth,
    )
    ax.add_patch(shape)
    x, y = corner[0] + extent[0] / 2, corner[1] + extent[1] / 2 - 0.01
    look = {
        "ha": "center",
        "va": "center",
        "zorder": depth + 1,
        "color": DARK.get(idea, INK),
    }
    ax.text(x, y, text, **{**look, **letters})


def background(ax, corner, size, colour="#f4f3f7"):
    """A pale field behind what belongs together."""
    style = "round,pad=0,rounding_size=0.12"
    field = FancyBboxPatch(corner, *size, boxstyle=style, fc=colour, lw=0, zorder=0)
    ax.add_patch(field)


def arrow(ax, *points, colour=INK, width=1.2):
    """A line through points, with its head at the last."""
    *before, start, end = points
    if before:
        ax.plot(*zip(*before, start), color=colour, lw=width, zorder=6)
    head = "-|>,head_width=0.16,head_length=0.28"
    line = {"arrowstyle": head, "color": colour, "lw": width, "shrinkA": 0}
    ax.annotate("", end, start, arrowprops={**line, "shrinkB": 0}, zorder=6)


def plus(ax, x, y, r=0.14):
    """A sum, in a circle."""
    ax.add_patch(Circle((x, y), r, facecolor="white", edgecolor=INK, lw=1, zorder=9))
    ax.plot([x - r * 0.6, x + r * 0.6], [y, y], color=INK, lw=1, zorder=10)
    ax.plot([x, x], [y - r * 0.6, y + r * 0.6], color=INK, lw=1, zorder=10)


def norm(ax, x, y, upright=False, size=(0.6, 0.18)):
    """LayerNorm: a small bar across a lane, with its middle at (x, y)."""
    wide, high = reversed(size) if upright else size
    box(ax, (x - wide / 2, y - high / 2), (wide, high), idea="norm")


def lane(ax, start, end, width=3.2):
    """A lane of the residual stream from start to end, along or up, with its head."""
    (x0, y0), (x, y) = start, end
    colour = IDEAS["norm"]
    ax.plot([x0, x], [y0, y], color="white", lw=width + 3, zorder=4)
    ax.plot([x0, x], [y0, y], color=colour, lw=width, zorder=4.5)
    if x0 == x:
        head = [(x - 0.13, y), (x, y + 0.24), (x + 0.13, y)]
    else:
        head = [(x, y + 0.13), (x + 0.24, y), (x, y - 0.13)]
    ax.add_patch(Polygon(head, facecolor=colour, edgecolor="none", zorder=4.5))


def cells(ax, corner, size, rows, colours):
    """A matrix as a block of cells: a colour for each of its columns."""
    (x, y), (wide, high) = corner, size
    w, h = wide / len(colours), high / rows
    for c, colour in enumerate(colours):
        for r in range(rows):
            spot = (x + c * w, y + r * h)
            ax.add_patch(Rectangle(spot, w, h, fc=colour, ec="white", lw=0.7, zorder=3))


def weights_table(ax, weights, rows, columns, numbers=True, largest=1.0):
    """Weights (R, C) in the colours of weights, with their numbers; columns are named
    above."""
    weights = [[float(number) for number in row] for row in weights]
    R, C = len(weights), len(weights[0])
    shown = ax.imshow(weights, cmap=weights_map(), vmin=0, vmax=largest)
    ax.set_xticks(range(C), columns)
    ax.set_yticks(range(R), rows)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("bottom")
    ax.tick_params(length=0, labelsize=10.5)
    ax.spines[:].set_visible(False)
    ax.set_xticks([c - 0.5 for c in range(C + 1)], minor=True)
    ax.set_yticks([r - 0.5 for r in range(R + 1)], minor=True)
    ax.tick_params(which="minor", length=0)
    ax.grid(which="minor", color=LIGHT, lw=0.7)
    for r in range(R if numbers else 0):
        for c, number in enumerate(weights[r]):
            short = f"{number:.2f}".removeprefix("0") if 0 < number < 1 else number
            colour = "white" if number > 0.55 * largest else INK
            text = short if isinstance(short, str) else f"{short:.0f}"
            ax.text(c, r, text, ha="center", va="center", size=9.5, color=colour)
    return shown


def weights_bar(figure, axes, shown, label="weight"):
    """What the colours of such tables mean."""
    bar = figure.colorbar(shown, ax=axes, shrink=0.7, aspect=20, pad=0.02, ticks=[0, 1])
    bar.outline.set(linewidth=0.6, edgecolor=LIGHT)
    bar.ax.tick_params(length=0)
    bar.set_label(label, labelpad=-4)
