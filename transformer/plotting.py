"""Drawing primitives: one call a picture. Nothing here knows the model; what is drawn is passed in.

Pictures of one theme each stand in `transformer.figures`.
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
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", **options)
    # IPython asks for this beside the picture: the notebook keeps the words, its web page reads
    # them aloud
    figure._repr_mimebundle_ = lambda **asked: ({}, {"image/png": {"alt": describe(figure)}})
    return axes


# What a picture shows, in words

def describe(figure, longest=1000):
    """What a figure of this package shows, in words, for those who cannot see it.

    Details are left out where it gets longer than this many characters.
    """
    texts = [ax.get_label() for ax in figure.axes if ax.get_label()]
    summaries = [text.partition("\n")[0] for text in texts]
    for words in (texts, summaries):
        if len(" ".join(words)) <= longest:
            return " ".join(words).replace("\n", " ")
    titles = ", ".join(ax.get_title() for ax in figure.axes if ax.get_title())
    panels = f"{len(texts)} panels, {titles}. The first: " if titles else ""
    return textwrap.shorten(panels + summaries[0], longest, placeholder=" ...")


def say(ax, kind, title, summary, details=""):
    """Note in the label of axes what they show: `describe` reads it."""
    quoted = f"{kind} “{title}”" if title else kind
    said = " ".join(f"{quoted}: {summary}".split())
    ax.set_label(f"{said}\n{' '.join(details.split())}" if details else said)


def listed(names, label=""):
    """Names along an axis, in brackets: all where they are few, or the first and the last."""
    names = [str(name) for name in (() if names is None else names) if str(name)]
    text = ", ".join(names) if len(names) <= 12 else f"{names[0]} to {names[-1]}"
    return f" ({': '.join(part for part in (label, text) if part)})" if label or text else ""


def course(values):
    """How a curve runs, in words."""
    values = [float(f"{float(value):.3g}") for value in values if math.isfinite(float(value))]
    if not values:
        return "has no finite value"
    first, last, low, high = values[0], values[-1], min(values), max(values)
    verb = "rises" if last > first else "falls" if last < first else "begins and ends"
    ends = f"at {first:.3g}" if first == last else f"from {first:.3g} to {last:.3g}"
    if (low, high) == (min(first, last), max(first, last)):
        return f"{verb} {ends}"
    return f"{verb} {ends} (lowest {low:.3g}, highest {high:.3g})"


def peaks(weights, rows, columns):
    """Of each row of a matrix without negative numbers: its largest number, and what is near it.

    That is in the columns with at least half of that number.
    """
    found = []
    for r, row in enumerate(weights):
        top = max(row)
        near = [c for c, weight in enumerate(row) if top and weight >= top / 2]
        names = [str(columns[c]) or str(c) for c in near]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        most = f"{', '.join(names[:3])}{more} ({top:.2g})" if names else "nothing"
        found.append(f"{str(rows[r]) or r} → {most}")
    return f"Most in each row: {'; '.join(found)}."


# Matrices

def heatmap(weights, columns=None, rows=None, title="", ax=None, values=False, largest=None,
            labels=("", "")):
    """A matrix (R, C) as colours, row by row from the top, with a colour bar.

    columns and rows name the places along the axes, labels the axes (columns first). values: print
    the numbers in place of the bar. largest: the number at the end of the colours.
    """
    ax = paint(weights, columns, rows, title, ax, values, largest, labels)
    if not values:
        add_colour_bar(ax)
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
    for ax in axes[len(panels):]:
        ax.set_axis_off()
    if options.get("values"):
        return axes
    if len({ax.images[0].get_clim() for ax in axes[:len(panels)]}) == 1:
        add_colour_bar(axes[0], axes)
    else:
        for ax in axes[:len(panels)]:
            add_colour_bar(ax)
    return axes


def paint(weights, columns=None, rows=None, title="", ax=None, values=False, largest=None,
          labels=("", "")):
    """A heat map without its colour bar: see `heatmap`."""
    weights = [row.tolist() if hasattr(row, "tolist") else list(row) for row in weights]
    R, C = len(weights), len(weights[0])
    if ax is None:
        cell = 0.6 if values else 0.35
        ax = new_axes(max(2.5, 1.2 + min(9, cell * C)), max(2.0, 1.0 + min(6, cell * R)))
    low, high = min(map(min, weights)), max(map(max, weights))
    top = largest or max(abs(low), abs(high)) or 1.0
    two_sided = low < 0
    ax.imshow(weights, cmap="coolwarm" if two_sided else "viridis",
              vmin=-top if two_sided else 0.0, vmax=top, aspect="auto")
    ax.set_title(title, fontsize=10)
    ax.set(xlabel=labels[0], ylabel=labels[1])
    longest = max((len(str(name)) for name in columns), default=0) if columns is not None else 0
    tick_labels(ax.xaxis, columns, C, rotation=90 if longest > 2 else 0)
    tick_labels(ax.yaxis, rows, R)
    if values:
        write_values(ax, weights, top, two_sided)
    column_names = range(C) if columns is None else columns
    row_names = range(R) if rows is None else rows
    say(ax, "Heat map", title, f"{R} rows{listed(rows, labels[1])}, "
        f"{C} columns{listed(columns, labels[0])}, values from {low:.3g} to {high:.3g}.",
        peaks(weights, row_names, column_names) if R <= 12 and not two_sided else "")
    return ax


def write_values(ax, weights, top, two_sided):
    """Each number of a heat map in its cell, in white where the cell is dark."""
    for r, row in enumerate(weights):
        for c, value in enumerate(row):
            dark = abs(value) > 0.6 * top if two_sided else value < 0.6 * top
            ax.text(c, r, f"{value:.2f}".replace("-0.00", "0.00"), ha="center", va="center",
                    fontsize=8, color="white" if dark else "black")


def add_colour_bar(ax, beside=None):
    """What the colours of a heat map mean, right of it (or of the axes beside)."""
    slim = 8 * ax.figure.get_figheight()  # an eighth of an inch wide
    bar = ax.figure.colorbar(ax.images[0], ax=ax if beside is None else list(beside), aspect=slim,
                             pad=0.02)
    bar.ax.tick_params(labelsize=8)
    bar.ax.set_label("")  # nothing to say: `describe` names the range


def tick_labels(axis, labels, count, rotation=0):
    """A label at every place of an axis (an empty one leaves its place bare), or none at all."""
    if labels is None:
        axis.set_ticks([])
        return
    if len(labels) != count:
        raise ValueError(f"{len(labels)} labels for {count} places of an axis")
    places = [i for i in range(count) if str(labels[i])]
    axis.set_ticks(places, [str(labels[i]) for i in places], rotation=rotation, fontsize=8)


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
        ax.plot(x, [float(value) for value in y], label=label, color=COLOURS[i % len(COLOURS)],
                linestyle=STYLES[i % len(STYLES)], marker="o" if markers else None, markersize=4)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ax.set(**{f"{name}scale": "log" for name in log})
    ax.autoscale_view()
    for name in log:
        name_powers(getattr(ax, f"{name}axis"))
    ax.grid(alpha=0.3)
    if len(curves) > 1:
        ax.legend(fontsize=8)
    ends = f" from {float(x[0]):.4g} to {float(x[-1]):.4g}" if x else ""  # a log may be empty
    over = f"{xlabel or 'x'}{' (logarithmic)' if 'x' in log else ''}{ends}"
    said = [f"{label or 'the curve'} {course(y)}" for label, y in curves.items()]
    say(ax, "Curves" if len(curves) > 1 else "Curve", title,
        f"{ylabel or 'values'}{' (logarithmic)' if 'y' in log else ''} over {over}.",
        f"{'; '.join(said)}.")
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
    said = "; ".join(f"{name} {value:.3g}" for name, value in heights.items())
    say(ax, "Bars", title, f"{ylabel or 'values'}{f' by {xlabel}' if xlabel else ''}: {said}.")
    return ax


def histograms(samples, xlabel="", title="", ax=None, bins=40):
    """Outlines of several distributions over the same bins: samples maps a label to its values."""
    ax = new_axes() if ax is None else ax
    said = []
    for i, (label, values) in enumerate(samples.items()):
        values = [float(value) for value in values]
        ax.hist(values, bins=bins, histtype="step", label=label, density=True,
                color=COLOURS[i % len(COLOURS)], linestyle=STYLES[i % len(STYLES)])
        mean = sum(values) / len(values)
        said.append(f"{label} from {min(values):.3g} to {max(values):.3g}, mean {mean:.3g}")
    ax.set(xlabel=xlabel, ylabel="density", title=title)
    ax.legend(fontsize=8)
    say(ax, "Histograms", title, f"density of {xlabel or 'values'}.", f"{'; '.join(said)}.")
    return ax


def save(ax, path):
    """Write the figure of these axes (or of an array of them) as a PNG, and close it."""
    import matplotlib.pyplot as plt

    figure = (ax if hasattr(ax, "figure") else ax.flat[0]).figure
    figure.savefig(path, dpi=130, format="png")
    plt.close(figure)
