"""Drawing primitives: one call a picture. Nothing here knows the model; what is drawn is passed in."""

import math
import textwrap

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]  # Okabe and Ito: readable without colour vision
STYLES = ["-", "--", "-.", ":"]


def new_axes(width=6.0, height=3.5, rows=1, columns=1, **options):
    """A figure's axes (one, or an array of rows x columns); sizes in inches a panel."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(rows, columns, figsize=(width * columns, height * rows), layout="constrained", **options)
    # IPython asks for this beside the picture: the notebook keeps the words, its web page reads them aloud
    figure._repr_mimebundle_ = lambda **asked: ({}, {"image/png": {"alt": describe(figure)}})
    return axes


def describe(figure, longest=1000):
    """What a figure of this module shows, in words, for those who cannot see it; details are left out where it gets too long."""
    texts = [ax.get_label() for ax in figure.axes if ax.get_label()]
    summaries = [text.partition("\n")[0] for text in texts]
    for words in (texts, summaries):
        if len(" ".join(words)) <= longest:
            return " ".join(words).replace("\n", " ")
    titles = ", ".join(ax.get_title() for ax in figure.axes if ax.get_title())
    return textwrap.shorten(f"{len(texts)} panels, {titles}. The first: {summaries[0]}" if titles else summaries[0], longest, placeholder=" ...")


def say(ax, kind, title, summary, details=""):
    """Note in the label of axes what they show: `describe` reads it."""
    quoted = f"{kind} “{title}”" if title else kind
    ax.set_label(" ".join(f"{quoted}: {summary}".split()) + ("\n" + " ".join(details.split()) if details else ""))


def listed(names, label=""):
    """Names along an axis, in brackets: all where they are few, otherwise the first and the last."""
    names = [str(name) for name in (() if names is None else names) if str(name)]
    text = ", ".join(names) if len(names) <= 12 else f"{names[0]} to {names[-1]}"
    return f" ({': '.join(part for part in (label, text) if part)})" if label or text else ""


def course(values):
    """How a curve runs, in words."""
    values = [float(f"{float(value):.3g}") for value in values if math.isfinite(float(value))]     # as they are said below
    if not values:
        return "has no finite value"
    first, last, low, high = values[0], values[-1], min(values), max(values)
    verb = "rises" if last > first else "falls" if last < first else "begins and ends"
    ends = f"at {first:.3g}" if first == last else f"from {first:.3g} to {last:.3g}"
    between = f" (lowest {low:.3g}, highest {high:.3g})" if (low, high) != (min(first, last), max(first, last)) else ""
    return f"{verb} {ends}{between}"


def peaks(weights, rows, columns):
    """Of each row of a matrix without negative numbers, the columns with at least half of its largest number, and that number."""
    found = []
    for r, row in enumerate(weights):
        top = max(row)
        names = [str(columns[c]) or str(c) for c, weight in enumerate(row) if top and weight >= top / 2]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        found.append(f"{str(rows[r]) or r} → {', '.join(names[:3])}{more} ({top:.2g})" if names else f"{rows[r]} → nothing")
    return f"Most in each row: {'; '.join(found)}."


def heatmap(weights, columns=None, rows=None, title="", ax=None, values=False, largest=None,
            column_label="", row_label="", cell=0.35):
    """A matrix (R, C) as colours, row by row from the top; columns and rows are labels, values prints the numbers."""
    R, C = len(weights), len(weights[0])
    ax = new_axes(max(2.5, 1.2 + cell * C), max(2.0, 1.0 + cell * R)) if ax is None else ax
    weights = weights.tolist() if hasattr(weights, "tolist") else [[float(w) for w in row] for row in weights]
    top = largest or max(abs(w) for row in weights for w in row) or 1.0
    lowest = min(0.0, min(min(row) for row in weights))
    ax.imshow(weights, cmap="viridis" if lowest == 0 else "coolwarm", vmin=lowest if lowest == 0 else -top, vmax=top, aspect="auto")
    ax.set_title(title, fontsize=10)
    ax.set_xlabel(column_label)
    ax.set_ylabel(row_label)
    tick_labels(ax.xaxis, columns, C, rotation=90)
    tick_labels(ax.yaxis, rows, R)
    if values:
        for r, row in enumerate(weights):
            for c, value in enumerate(row):
                dark = value < 0.6 * top if lowest == 0 else abs(value) > 0.6 * top
                ax.text(c, r, f"{value:.2f}".replace("-0.00", "0.00"), ha="center", va="center", fontsize=8, color="white" if dark else "black")
    numbers = [float(w) for row in weights for w in row]
    say(ax, "Heat map", title, f"{R} rows{listed(rows, row_label)}, {C} columns{listed(columns, column_label)}, "
        f"values from {min(numbers):.3g} to {max(numbers):.3g}.",
        peaks(weights, range(R) if rows is None else rows, range(C) if columns is None else columns)
        if min(numbers) >= 0 and R <= 12 else "")
    return ax


def tick_labels(axis, labels, count, rotation=0):
    """A label at every place of an axis (an empty one leaves its place bare), or none at all."""
    if labels is None:
        axis.set_ticks([])
        return
    if len(labels) != count:
        raise ValueError(f"{len(labels)} labels for {count} places of an axis")
    places = [i for i in range(count) if str(labels[i])]
    axis.set_ticks(places, [str(labels[i]) for i in places], rotation=rotation, fontsize=8)


def heatmaps(panels, across=4, width=2.6, height=2.6, **options):
    """Several heat maps in a grid: panels is a list of (title, weights, columns, rows)."""
    down = math.ceil(len(panels) / across)
    axes = new_axes(width, height, down, min(across, len(panels)), squeeze=False).flatten()
    for ax, (title, weights, columns, rows) in zip(axes, panels):
        heatmap(weights, columns, rows, title, ax, **options)
    for ax in axes[len(panels):]:
        ax.set_axis_off()
    return axes


def name_powers(axis):
    """On a logarithmic axis over less than two powers of ten, ticks at 1, 2, 5, 10, 20 ... in plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = axis.get_view_interval()
    if high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axis.set_minor_formatter(NullFormatter())


def lines(x, curves, xlabel="", ylabel="", title="", logx=False, logy=False, ax=None, markers=False):
    """Curves over the same x: curves maps a label to its values. Each has its own colour and its own dash."""
    ax = new_axes() if ax is None else ax
    for i, (label, y) in enumerate(curves.items()):
        ax.plot(list(x), [float(value) for value in y], label=label, color=COLOURS[i % len(COLOURS)],
                linestyle=STYLES[i % len(STYLES)], marker="o" if markers else None, markersize=4)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title, xscale="log" if logx else "linear", yscale="log" if logy else "linear")
    ax.autoscale_view()
    for axis, logarithmic in ((ax.xaxis, logx), (ax.yaxis, logy)):
        if logarithmic:
            name_powers(axis)
    ax.grid(alpha=0.3)
    if len(curves) > 1:
        ax.legend(fontsize=8)
    x = list(x)
    ends = f" from {float(x[0]):.4g} to {float(x[-1]):.4g}" if x else ""  # a log may still be empty
    scales = " (logarithmic)" * logx, " (logarithmic)" * logy
    say(ax, "Curves" if len(curves) > 1 else "Curve", title, f"{ylabel or 'values'}{scales[1]} over {xlabel or 'x'}{scales[0]}{ends}.",
        "; ".join(f"{label or 'the curve'} {course(y)}" for label, y in curves.items()) + ".")
    return ax


def bars(heights, xlabel="", ylabel="", title="", ax=None):
    """One bar a name: heights maps a label to its value, written above it."""
    ax = new_axes() if ax is None else ax
    ax.bar(range(len(heights)), [float(value) for value in heights.values()], color=COLOURS[0])
    tick_labels(ax.xaxis, list(heights), len(heights))
    for i, value in enumerate(heights.values()):
        ax.annotate(f"{float(value):.3g}", (i, float(value)), ha="center", va="bottom", fontsize=8)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ax.margins(y=0.15)
    say(ax, "Bars", title, f"{ylabel or 'values'}{f' by {xlabel}' if xlabel else ''}: "
        + "; ".join(f"{name} {float(value):.3g}" for name, value in heights.items()) + ".")
    return ax


def differences(rows, xlabel, label, other, ax=None, limit=math.inf):
    """Differences from zero with their reach (nan: not known): rows maps a name to (value, reach, another's value); from the top down.

    What lies beyond limit stands at the edge, as a number.
    """
    ax = new_axes(5, 0.3 * len(rows) + 1) if ax is None else ax
    places = range(len(rows))
    values, reach, others = zip(*rows.values())
    ax.axvline(0, color="black", linewidth=0.8)
    inside = [math.nan if abs(value) > limit else value for value in values]
    ax.errorbar(inside, places, xerr=reach, fmt="o", color=COLOURS[0], markersize=5, capsize=3, label=label)
    for value, place in zip(values, places):
        if abs(value) > limit:
            edge, mark, side, gap = (-limit, "<", "left", 8) if value < 0 else (limit, ">", "right", -8)
            ax.plot(edge, place, mark, color=COLOURS[0])
            ax.annotate(f"{value:+.0f}", (edge, place), (gap, 0), textcoords="offset points", ha=side, va="center", color=COLOURS[0], fontsize=8)
    ax.plot(others, places, "x", color=COLOURS[1], label=other)
    tick_labels(ax.yaxis, list(rows), len(rows))
    ax.invert_yaxis()
    ax.set(xlabel=xlabel)
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)  # above: no corner is sure to be free
    say(ax, "Differences", "", f"{xlabel}, {label}, and {other}: " + "; ".join(
        f"{name} {value:+.3g} ± {far:.2g} and {theirs:+.3g}".replace(" ± nan", "") for name, (value, far, theirs) in rows.items()) + ".")
    return ax


def histograms(samples, xlabel="", title="", ax=None, bins=40):
    """Outlines of several distributions over the same bins: samples maps a label to its values."""
    ax = new_axes() if ax is None else ax
    for i, (label, values) in enumerate(samples.items()):
        ax.hist([float(v) for v in values], bins=bins, histtype="step", label=label, density=True,
                color=COLOURS[i % len(COLOURS)], linestyle=STYLES[i % len(STYLES)])
    ax.set(xlabel=xlabel, ylabel="density", title=title)
    ax.legend(fontsize=8)
    say(ax, "Histograms", title, f"density of {xlabel or 'values'}.", "; ".join(
        f"{label} from {min(some):.3g} to {max(some):.3g}, mean {sum(some) / len(some):.3g}"
        for label, some in ((label, [float(v) for v in values]) for label, values in samples.items())) + ".")
    return ax


def flow(boxes, arrows, frames=(), ax=None):
    """Boxes joined by arrows: boxes maps a name to (x, y, text, colour number or None).

    arrows: (from, to, side): straight where side is 0, otherwise leaving above `from` and going round at x + side.
    frames: (x, lowest y, highest y, text), grey behind boxes that belong together.
    """
    ax = new_axes(7.5, 5.5) if ax is None else ax
    for x, low, high, text in frames:
        ax.fill_between([x - 0.48, x + 0.48], low, high, color="#eeeeee")
        ax.text(x + 0.46, high - 0.1, text, ha="right", va="top", fontsize=9)
    patches = {}
    for name, (x, y, text, colour) in boxes.items():
        face = "white" if colour is None else COLOURS[colour] + "50"
        box = ax.text(x, y, text, ha="center", va="center", fontsize=9, zorder=3,
                      bbox={"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "#555555"})
        box.get_bbox_patch().set_facecolor(face)
        patches[name] = box.get_bbox_patch()
    ax.set(xlim=(min(b[0] for b in boxes.values()) - 0.6, max(b[0] for b in boxes.values()) + 0.6),
           ylim=(min(b[1] for b in boxes.values()) - 0.4, max(b[1] for b in boxes.values()) + 0.4))
    for start, end, side in arrows:
        (x, y), (x_end, y_end), leaves = boxes[start][:2], boxes[end][:2], patches[start]
        if side:
            ax.plot([x, x + side, x + side], [y + 0.45, y + 0.45, y_end], color="#333333", linewidth=1)
            x, y, leaves = x + side, y_end, None
        style = {"arrowstyle": "-|>", "color": "#333333", "patchA": leaves, "patchB": patches[end], "shrinkA": 0, "shrinkB": 1}
        ax.annotate("", (x_end, y_end), (x, y), arrowprops=style)
    ax.set_axis_off()
    leads = [f"{boxes[start][2]} to {boxes[end][2]}{' (around)' if side else ''}" for start, end, side in arrows]
    say(ax, "Diagram", "", f"boxes {', '.join(box[2] for box in boxes.values())}"
        + "".join(f"; a frame: {text}" for *_, text in frames) + ".", f"Arrows: {'; '.join(leads)}.")
    return ax


def tree(values, bold=(), root="", width=2.0, height=0.5):
    """A tree from left to right: values maps a path (a tuple of labels) to a number beside its last label; bold lists paths."""
    children = {path: [p for p in values if p[:-1] == path] for path in [(), *values]}
    leaves = [path for path in sorted(values, key=lambda p: [list(values).index(p[:i + 1]) for i in range(len(p))]) if not children[path]]
    ax = new_axes(width * (1 + max(map(len, leaves))), 0.6 + height * len(leaves))
    y = {path: -float(i) for i, path in enumerate(leaves)}
    for path in sorted(children, key=len, reverse=True):
        y.setdefault(path, sum(y[child] for child in children[path]) / max(1, len(children[path])))
    for path in children:
        style = dict(fontweight="bold", color="black") if path in bold or not path else dict(color="dimgrey")
        label = f"{path[-1]}  {values[path]:.2f}" if path else root
        ax.text(len(path), y[path], label, ha="center", va="center", bbox=dict(boxstyle="round", fc="white", ec=style["color"]), **style)
        if path:
            ax.plot([len(path) - 1, len(path)], [y[path[:-1]], y[path]], color=style["color"], zorder=0)
    ax.set(xlim=(-0.4, max(map(len, leaves)) + 0.5), ylim=(0.6 - len(leaves), 0.6))
    ax.set_axis_off()
    say(ax, "Tree", root, "; ".join(f"{' '.join(path)} {values[path]:.2f}{' (kept)' if path in bold else ''}" for path in values) + ".")
    return ax


def constituents(tree, title="", ax=None):
    """A tree of phrases above its words: nodes have .label and .parts; parts are nodes or, at the bottom, one word."""
    words, nodes, lines = [], [], []

    def place(node):
        if isinstance(node.parts[0], str):
            words.append((len(words), node.parts[0], node.label))
            return len(words) - 1, 0
        below = [place(part) for part in node.parts]
        x, y = (below[0][0] + below[-1][0]) / 2, 1 + max(y for _, y in below)
        nodes.append((x, y, node.label))
        lines.extend(((x, y), spot) for spot in below)
        return x, y

    _, top = place(tree)
    ax = new_axes(max(3.0, 0.8 * len(words)), 0.8 + 0.5 * top) if ax is None else ax
    for (x, y), (x_below, y_below) in lines:
        ax.plot([x, x_below, x_below], [y, y, y_below + 0.1], color="#999999", linewidth=1, zorder=1)
    for x, y, label in nodes:
        ax.text(x, y, label, ha="center", va="center", fontsize=9, color=COLOURS[0], bbox=dict(fc="white", ec="none", pad=1.0))
    for x, word, label in words:
        ax.text(x, 0, f"{label}\n{word}", ha="center", va="top", fontsize=9)
    ax.set(xlim=(-0.6, len(words) - 0.4), ylim=(-0.9, top + 0.4), title=title)
    ax.set_axis_off()
    say(ax, "Tree of phrases", title, f"{len(nodes)} constituents over {' '.join(word for _, word, _ in words)}.", f"{tree}")
    return ax


def save(ax, path):
    """Write the figure of these axes (or of the first of an array of them) as a PNG, and close it."""
    import matplotlib.pyplot as plt

    figure = (ax if hasattr(ax, "figure") else ax.flat[0]).figure
    figure.savefig(path, dpi=130, format="png")
    plt.close(figure)
