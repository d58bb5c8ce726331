"""Drawing primitives: one call a picture. Nothing here knows the model; what is drawn is passed in.

Pictures of one theme each stand in `transformer.views`.
"""

import math
import textwrap

# Okabe and Ito: readable without colour vision
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
STYLES = ["-", "--", "-.", ":"]


def new_axes(width=6.0, height=3.5, rows=1, columns=1, **options):
    """A figure's axes (one, or an array of rows x columns); sizes in inches a panel."""
    import matplotlib.pyplot as plt

    size = (width * columns, height * rows)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, layout="constrained", **options
    )
    # IPython asks for this beside the picture: the notebook keeps the words, its web page reads
    # them aloud
    figure._repr_mimebundle_ = lambda **asked: (
        {},
        {"image/png": {"alt": describe(figure)}},
    )
    return axes


# What a picture shows, in words


def describe(figure, longest=1000):
    """What a figure shows, in words, for those who cannot see it: at most so many characters.

    Rows of matrices are left out where that is too long.
    """
    for rows in (True, False):
        panels = list(
            filter(None, (" ".join(words_of(ax, rows)) for ax in figure.axes))
        )
        text = " ".join(panels).replace("\n", " ")
        if len(text) <= longest:
            return text
    return textwrap.shorten(
        f"{len(panels)} panels. {text}", longest, placeholder=" ..."
    )


def words_of(ax, rows=True):
    """Sentences on one panel: its title, its axes, and what is drawn and written in it."""
    if ax.get_title():
        yield f"“{ax.get_title()}”."
    for axis, where in ((ax.yaxis, "Up"), (ax.xaxis, "Along")):
        named = " to ".join(
            dict.fromkeys([*names_along(axis)[:1], *names_along(axis)[-1:]])
        )
        if axis.get_label_text() or named:
            yield f"{where}: {', '.join(filter(None, [axis.get_label_text(), named]))}."
    for image in ax.images:
        yield from words_of_matrix(image.get_array().tolist(), ax, rows)
    for line in ax.lines:
        values = [float(value) for value in line.get_ydata() if math.isfinite(value)]
        if len(values) > 2:
            name = line.get_label() if line.get_label()[:1] != "_" else "A curve"
            yield (
                f"{name} from {values[0]:.3g} to {values[-1]:.3g} (lowest {min(values):.3g}, "
                f"highest {max(values):.3g})."
            )
    if ax.texts and not ax.images:
        yield f"Written in it: {'; '.join(text.get_text() for text in ax.texts)}."


def names_along(axis):
    """The words at the places of an axis; none where numbers stand there."""
    from matplotlib.ticker import FuncFormatter

    named = isinstance(axis.get_major_formatter(), FuncFormatter)
    return [label.get_text() for label in axis.get_ticklabels()] if named else []


def words_of_matrix(matrix, ax, rows):
    """Its size and range, and of each of few rows the column of the largest number."""
    numbers = [number for row in matrix for number in row]
    yield (
        f"{len(matrix)} rows, {len(matrix[0])} columns, numbers from {min(numbers):.3g} to "
        f"{max(numbers):.3g}."
    )
    names = names_along(ax.yaxis), names_along(ax.xaxis)
    if rows and (len(names[0]), len(names[1])) == (len(matrix), len(matrix[0])):
        most = (
            f"{name} → {names[1][row.index(max(row))]}"
            for name, row in zip(names[0], matrix)
        )
        yield f"Most in each row: {', '.join(most)}."


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


def named(labels):
    return [] if labels is None else labels


def axes_for(rows, columns, cell):
    """Axes for a table of cells, each so many inches wide and high."""
    width, height = 1.2 + min(9, cell * columns), 1.0 + min(6, cell * rows)
    return new_axes(max(2.5, width), max(2.0, height))


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
    if ax is None:
        ax = axes_for(R, C, cell=0.6 if values else 0.35)
    low, high = min(map(min, weights)), max(map(max, weights))
    top = largest or max(abs(low), abs(high)) or 1.0
    two_sided = low < 0
    colours, least = ("coolwarm", -top) if two_sided else ("viridis", 0.0)
    ax.imshow(weights, cmap=colours, vmin=least, vmax=top, aspect="auto")
    ax.set_title(title, fontsize=10)
    ax.set(xlabel=labels[0], ylabel=labels[1])
    longest = max((len(str(name)) for name in named(columns)), default=0)
    tick_labels(ax.xaxis, columns, C, rotation=90 if longest > 2 else 0)
    tick_labels(ax.yaxis, rows, R)
    if values:
        write_values(ax, weights, top, two_sided)
    return ax


def write_values(ax, weights, top, two_sided):
    """Each number of a heat map in its cell, in white where the cell is dark."""
    for r, row in enumerate(weights):
        for c, value in enumerate(row):
            dark = abs(value) > 0.6 * top if two_sided else value < 0.6 * top
            ax.text(
                c,
                r,
                f"{value:.2f}".replace("-0.00", "0.00"),
                ha="center",
                va="center",
                fontsize=8,
                color="white" if dark else "black",
            )


def add_colour_bar(ax, beside=None, label=()):
    """What the colours of a heat map mean, right of it (or of the axes beside)."""
    slim = 8 * ax.figure.get_figheight()  # an eighth of an inch wide
    bar = ax.figure.colorbar(
        ax.images[0], ax=ax if beside is None else list(beside), aspect=slim, pad=0.02
    )
    if ax.images[0].get_array().dtype == bool:
        bar.set_ticks([0, 1], labels=["no", "yes"])
    bar.ax.tick_params(labelsize=8)
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
        places, [str(labels[i]) for i in places], rotation=rotation, fontsize=8
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
    """Curves over the same x: curves maps a label to its values; each has its colour and dash.

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
    ax.grid(alpha=0.3)
    if len(curves) > 1:
        ax.legend(fontsize=8)
    return ax


def bars(heights, xlabel="", ylabel="", title="", ax=None):
    """One bar a name: heights maps a label to its value, written above it."""
    ax = new_axes() if ax is None else ax
    heights = {name: float(value) for name, value in heights.items()}
    ax.bar(range(len(heights)), list(heights.values()), color=COLOURS[0])
    tick_labels(ax.xaxis, list(heights), len(heights))
    for i, value in enumerate(heights.values()):
        ax.annotate(f"{value:.3g}", (i, value), ha="center", va="bottom", fontsize=8)
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
    ax.legend(fontsize=8)
    return ax


def save(ax, path):
    """Write the figure of these axes (or of an array of them) as a PNG, and close it."""
    import matplotlib.pyplot as plt

    figure = (ax if hasattr(ax, "figure") else ax.flat[0]).figure
    figure.savefig(path, dpi=130, format="png")
    plt.close(figure)
