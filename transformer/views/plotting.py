"""Drawing primitives: one call a picture. Nothing here knows the model; what is drawn is passed in.

Pictures of one theme each stand in `transformer.views`.
"""

import math
from pathlib import Path

from transformer.views import style
from transformer.views.labels import label_ends
from transformer.views.style import COLOURS, STYLES


def new_axes(width=6.0, height=3.5, rows=1, columns=1, **options):
    """A figure's axes (one, or an array of rows x columns); sizes in inches a panel."""
    import matplotlib.pyplot as plt

    style.apply()
    size = (width * columns, height * rows)
    look = {"figsize": size, "layout": "constrained", "FigureClass": style.Picture}
    figure, axes = plt.subplots(rows, columns, **look, **options)
    return axes


# Matrices


def heatmap(
    weights,
    columns=None,
    rows=None,
    title="",
    ax=None,
    values=False,
    largest=None,
    labels=("", ""),
):
    """A matrix (R, C) as colours, row by row from the top, with a colour bar.

    columns and rows name the places along the axes, labels the axes (columns first) and, if there
    is a third, what the colours mean. values: print
    the numbers in place of the bar. largest: the number at the end of the colours.
    """
    ax = paint(weights, columns, rows, title, ax, values, largest, labels)
    if not values:
        add_colour_bar(ax, label=labels[2:])
    return ax


def heatmaps(panels, across=4, width=2.6, height=2.6, **options):
    """Several heat maps in a grid: panels is a list of (title, weights, columns, rows).

    With `largest` among the options the colours mean the same in all, and have one bar.
    """
    down = math.ceil(len(panels) / across)
    across = min(across, len(panels))
    axes = new_axes(width, height, down, across, squeeze=False).flatten()
    for ax, (title, weights, columns, rows) in zip(axes, panels):
        paint(weights, columns, rows, title, ax, **options)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    if options.get("values"):
        return axes
    label = options.get("labels", ())[2:]
    if len({ax.images[0].get_clim() for ax in axes[: len(panels)]}) == 1:
        add_colour_bar(axes[0], axes, label)
    else:
        for ax in axes[: len(panels)]:
            add_colour_bar(ax, label=label)
    return axes


def paint(
    weights,
    columns=None,
    rows=None,
    title="",
    ax=None,
    values=False,
    largest=None,
    labels=("", ""),
):
    """A heat map without its colour bar: see `heatmap`."""
    weights = [row.tolist() if hasattr(row, "tolist") else list(row) for row in weights]
    R, C = len(weights), len(weights[0])
    ax = axes_for(R, C, 0.6 if values else 0.35) if ax is None else ax
    low, high = min(map(min, weights)), max(map(max, weights))
    top = largest or max(abs(low), abs(high)) or 1.0
    colours = style.signed_map() if low < 0 else style.weights_map()
    bottom = -top if low < 0 else 0.0
    ax.imshow(weights, cmap=colours, vmin=bottom, vmax=top, aspect="auto")
    ax.spines[:].set(visible=True, color=style.LIGHT)
    ax.tick_params(length=0)
    ax.set(xlabel=labels[0], ylabel=labels[1], title=title)
    names = [] if columns is None else map(str, columns)
    longest = max(map(len, names), default=0)
    tick_labels(ax.xaxis, columns, C, rotation=90 if longest > 2 else 0)
    tick_labels(ax.yaxis, rows, R)
    if values:
        write_values(ax, weights, top)
    return ax


def axes_for(R, C, cell):
    """Axes for a matrix of R rows and C columns, each cell about so many inches wide."""
    return new_axes(max(2.5, 1.2 + min(9, cell * C)), max(2.0, 1.0 + min(6, cell * R)))


def write_values(ax, weights, top):
    """Each number of a heat map in its cell, in white where the cell is dark."""
    for r, row in enumerate(weights):
        for c, value in enumerate(row):
            dark = abs(value) > 0.5 * top
            ax.text(
                c,
                r,
                f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−"),
                ha="center",
                va="center",
                fontsize=9,
                color="white" if dark else style.INK,
            )


def add_colour_bar(ax, beside=None, label=()):
    """What the colours of a heat map mean, right of it (or of the axes beside)."""
    slim = 8 * ax.figure.get_figheight()  # an eighth of an inch wide
    bar = ax.figure.colorbar(
        ax.images[0], ax=ax if beside is None else list(beside), aspect=slim, pad=0.02
    )
    if ax.images[0].get_array().dtype == bool:
        bar.set_ticks([0, 1], labels=["no", "yes"])
    bar.ax.tick_params(labelsize=9, length=0)
    bar.outline.set(linewidth=0.6, edgecolor=style.LIGHT)
    bar.set_label(*label or [""])


def tick_labels(axis, labels, count, rotation=0):
    """A label at every place of an axis (an empty one leaves its place bare), or none at all."""
    if labels is None:
        axis.set_ticks([])
        return
    if len(labels) != count:
        raise ValueError(f"{len(labels)} labels for {count} places of an axis")
    places = [i for i in range(count) if str(labels[i])]
    axis.set_ticks(
        places, [str(labels[i]) for i in places], rotation=rotation, fontsize=9
    )


# Curves, bars, distributions


def name_powers(axis):
    """On a logarithmic axis over less than two powers of ten, ticks at 1, 2, 5, 10, 20 ..."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = axis.get_view_interval()
    if high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axis.set_minor_formatter(NullFormatter())


def lines(x, curves, xlabel="", ylabel="", title="", log="", ax=None, markers=False):
    """Curves over the same x: curves maps a label to its values; each has its colour and dash, and
    its label at its end.

    log names the logarithmic axes: "x", "y" or "xy".
    """
    ax = new_axes() if ax is None else ax
    x = list(x)
    for i, (label, y) in enumerate(curves.items()):
        ax.plot(
            x,
            [float(value) for value in y],
            label=label,
            color=COLOURS[i % len(COLOURS)],
            linestyle=STYLES[i % len(STYLES)],
            marker="o" if markers else None,
            markersize=4,
        )
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ax.set(**{f"{name}scale": "log" for name in log})
    ax.autoscale_view()
    for name in log:
        name_powers(getattr(ax, f"{name}axis"))
    ax.grid(axis="y")
    if len(curves) > 1:
        label_ends(ax)
    return ax


def bars(heights, xlabel="", ylabel="", title="", ax=None):
    """One bar a name: heights maps a label to its value, written above it."""
    ax = new_axes() if ax is None else ax
    heights = {name: float(value) for name, value in heights.items()}
    ax.bar(range(len(heights)), list(heights.values()), color=COLOURS[0], width=0.62)
    tick_labels(ax.xaxis, list(heights), len(heights))
    ax.tick_params(axis="x", length=0)
    for i, value in enumerate(heights.values()):
        ax.annotate(f"{value:.3g}", (i, value), ha="center", va="bottom", fontsize=9)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ax.margins(y=0.15)
    return ax


def histograms(samples, xlabel="", title="", ax=None, bins=40):
    """Outlines of several distributions over the same bins: samples maps a label to its values."""
    ax = new_axes() if ax is None else ax
    for i, (label, values) in enumerate(samples.items()):
        ax.hist(
            [float(value) for value in values],
            bins=bins,
            histtype="step",
            label=label,
            density=True,
            color=COLOURS[i % len(COLOURS)],
            linestyle=STYLES[i % len(STYLES)],
        )
    ax.set(xlabel=xlabel, ylabel="density", title=title)
    ax.legend()
    return ax


def save(ax, path):
    """Write the figure of these axes (or of an array of them) as a PNG, and close it."""
    import matplotlib.pyplot as plt

    figure = style.figure_of(ax)
    Path(path).write_bytes(style.png(figure))
    plt.close(figure)
