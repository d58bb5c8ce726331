"""The pictures of chapter 03: the residual stream, LayerNorm, and the two stacks."""

from matplotlib.patches import Rectangle

from transformer.views.labels import label_ends
from transformer.views.shapes import (
    arrow,
    background,
    box,
    lane,
    norm,
    plus,
    weights_table,
)
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    LIGHT,
    PALE,
    SERIES,
    WARNING,
    canvas,
    panels,
    weights_map,
    without_frame,
)

BLUE, ORANGE, VIOLET = (IDEAS[name] for name in ("attention", "feed-forward", "norm"))
DASHES = (0, (4, 3))

# The residual stream


def residual_stream(words=("The", "cat", "lost", "its")):
    """A layer: one lane a word, attention that reads all lanes, a network that reads
    one."""
    gap = 1.05
    top = gap * (len(words) - 1)
    figure, ax = canvas((-0.9, 9.6), (-0.95, top + 1.15), 0.72)
    box(ax, (1.35, -0.68), (1.35, top + 1.0), idea="attention", depth=1)
    headings = (
        (2.02, "attention", "reads all lanes", "attention"),
        (6.13, "feed-forward", "reads one lane", "feed-forward"),
    )
    for x, name, what, idea in headings:
        look = {"ha": "center", "color": DARK[idea]}
        ax.text(x, top + 0.83, name, weight="bold", size=11.5, **look)
        ax.text(x, top + 0.5, what, **look)
    for x in (3.95, 8.05):
        look = {"ha": "center", "color": DARK["norm"]}
        ax.text(x, top + 0.83, "LayerNorm", weight="bold", size=11.5, **look)
        ax.text(x, top + 0.5, "rescales a lane", **look)
    for row, word in enumerate(reversed(words)):
        lane_of_a_word(ax, gap * row, word)
    for reads, writes, idea in ((0.75, 3.3, "attention"), (4.85, 7.4, "feed-forward")):
        look = {"color": DARK[idea], "size": 9.5}
        ax.text(reads, -0.72, "read", ha="right", **look)
        ax.text(writes, -0.72, "write", ha="left", **look)
    figure.alternative = (
        f"{len(words)} lanes, one each for {', '.join(words)}, run from left to "
        "right. One attention block reads all of them and adds to each; then a "
        "network of its own reads each lane and adds to the same one. LayerNorm is "
        "on the lane after each sum."
    )
    return figure


def lane_of_a_word(ax, y, word, drop=0.45):
    """A lane with its two sub-layers: each reads from it and is added to it."""
    lane(ax, (0.1, y), (9.15, y))
    ax.text(-0.05, y, word, ha="right", va="center", size=12)
    box(ax, (5.45, y - drop - 0.2), (1.35, 0.4), idea="feed-forward")
    for start, inside, out, end, colour in (
        (0.85, 1.35, 2.7, 3.2, BLUE),
        (4.95, 5.45, 6.8, 7.3, ORANGE),
    ):
        arrow(ax, (start, y), (start, y - drop), (inside, y - drop), colour=colour)
        arrow(ax, (out, y - drop), (end, y - drop), (end, y - 0.13), colour=colour)
        plus(ax, end, y)
    for x in (3.95, 8.05):
        norm(ax, x, y, upright=True, size=(0.5, 0.24))


def norm_places():
    """The norm on the lane (post-norm), and before the sub-layer (pre-norm)."""
    figure, ax = canvas((-0.2, 11.6), (-1.35, 0.95), 0.66)
    for shift, name in (
        (0, "post-norm (the paper)"),
        (6, "pre-norm (most later models)"),
    ):
        post = shift == 0
        ax.text(shift + 2.6, 0.65, name, ha="center", weight="bold")
        lane(ax, (shift, 0), (shift + 5, 0))
        start, inside = shift + 0.5, shift + (1.2 if post else 1.6)
        arrow(ax, (start, 0), (start, -0.62), (inside, -0.62))
        box(ax, (inside, -0.87), (1.5, 0.5), "sub-layer")
        arrow(ax, (inside + 1.5, -0.62), (shift + 3.6, -0.62), (shift + 3.6, -0.14))
        plus(ax, shift + 3.6, 0)
        place = (shift + 4.3, 0) if post else (shift + 1.0, -0.62)
        norm(ax, *place, upright=True, size=(0.56, 0.26))
        label = (place[0], place[1] - 0.52)
        ax.text(*label, "LayerNorm", color=DARK["norm"], ha="center", va="center")
    figure.alternative = (
        "Two lanes with a sub-layer each. Post-norm: LayerNorm is on the lane, after"
        " the sum. Pre-norm: LayerNorm is in front of the sub-layer, and the lane "
        "runs through untouched."
    )
    return figure


# LayerNorm


def layer_norm_bars(steps):
    """What LayerNorm makes of two vectors: {step: their rows}, one scale a step."""
    names = ("x", "its twin,\n2x + 10")
    figure, axes = panels(7.6, 4.0, len(names), len(steps), sharey="col")
    said = []
    for column, (title, rows) in zip(axes.T, steps.items()):
        column[0].set_title(title, pad=10)
        said.append(f"{title}: " + " and ".join(map(listing, rows)))
        for ax, values in zip(column, rows):
            last = title == list(steps)[-1]
            bars_of_a_vector(ax, values, VIOLET if last else PALE["norm"])
    for ax, name in zip(axes[:, 0], names):
        ax.set_ylabel(name, rotation=0, ha="right", va="center", labelpad=10)
    figure.alternative = (
        f"Bars of a vector and of its twin, step by step. {'; '.join(said)}. "
        "After the last step both are alike."
    )
    return figure


def bars_of_a_vector(ax, values, colour):
    """A bar a number, each with its number."""
    ax.bar(range(len(values)), values, width=0.62, fc=colour, ec=VIOLET, lw=0.8)
    ax.axhline(0, color=INK, lw=0.8)
    for place, value in enumerate(values):
        below = value < -0.005
        look = {"ha": "center", "va": "top" if below else "bottom", "size": 9.5}
        spot = {"xytext": (0, -2 if below else 2), "textcoords": "offset points"}
        ax.annotate(listing([value]), (place, value), **spot, **look)
    ax.set(xticks=[], yticks=[])
    ax.margins(y=0.2)
    without_frame(ax)


def listing(values) -> str:
    """Numbers of at most two decimals, with a true minus."""
    texts = (f"{value:.2f}".rstrip("0").rstrip(".") for value in values)
    return ", ".join(texts).replace("-", "\u2212")


def norm_axes(sentences=2, T=4, d_model=8):
    """Which numbers share a mean: LayerNorm's of a token, BatchNorm's of a batch."""
    figure, ax = canvas((-2.8, 20.4), (-9.0, 2.6), 0.33)
    heads = (
        "LayerNorm: one token,\nall its numbers",
        "BatchNorm: one number,\nall tokens of the batch",
    )
    for left, head in zip((0, 12), heads):
        ax.text(left + d_model / 2, 1.2, head, ha="center", weight="bold")
        for sentence in range(sentences):
            y = -4.6 * sentence
            name = f"sentence {sentence + 1}"
            ax.text(left - 0.3, y - 1.1, name, ha="right", va="center", size=9.5)
            for t in range(T):
                for i in range(d_model):
                    hit = i == 2 if left else (sentence, t) == (0, 1)
                    face = VIOLET if hit else PALE["norm"]
                    cell = Rectangle((left + i, y - t), 0.9, 0.86, fc=face, lw=0)
                    ax.add_patch(cell)
        below = -4.6 * sentences + 1.2
        text = "the numbers of each vector"
        ax.text(left + d_model / 2, below, text, ha="center", va="top", size=9.5)
    figure.alternative = (
        "A batch of two sentences, a row a token. Dark is what shares one mean and "
        "one variance: in LayerNorm one row, in BatchNorm one column through all "
        "sentences."
    )
    return figure


# What becomes of tokens with and without lanes


def likeness(pictures, heads=("input", "layer 1", "layer 2", "layer 6"), tokens=()):
    """Cosines between tokens: {wiring: [matrix at the input, after layers ...]}; tokens
    are their names."""
    high = (1.95 if tokens else 1.55) * len(pictures)
    figure, axes = panels(7.2, high, len(pictures), len(heads))
    shown, said = None, []
    for ax, head in zip(axes[0], heads):
        ax.set_title(head)
    for row, (name, matrices) in zip(axes, pictures.items()):
        for ax, matrix in zip(row, matrices):
            shown = ax.imshow(matrix.tolist(), cmap=weights_map(), vmin=0, vmax=1)
            ax.set_xticks(range(len(tokens)), tokens)
            ax.set_yticks(range(len(tokens)), tokens)
            ax.tick_params(length=0)
            ax.spines[:].set(visible=True, color=LIGHT)
        row[0].set_ylabel(name, labelpad=8, size=10.5)
        least = ", ".join(f"{float(m.min()):.2f}" for m in matrices)
        said.append(f"{name}: {least}.")
    bar = figure.colorbar(shown, ax=axes, shrink=0.7, aspect=24, pad=0.025)
    bar.outline.set(linewidth=0.6, edgecolor=LIGHT)
    bar.set_ticks([0, 1], labels=["0 or less", "1: same direction"])
    bar.ax.tick_params(length=0)
    places = f"Cosines between all tokens at {', '.join(heads)}."
    figure.alternative = f"{places} The smallest: {' '.join(said)}"
    return figure


def bets(probabilities, shares, tokens):
    """What a model expects at some places, {place: probability of each token}, and how
    often each token occurs."""
    figure, axes = panels(7.4, 2.5, columns=len(probabilities), sharey=True)
    for ax, (place, values) in zip(axes[0], probabilities.items()):
        places = range(len(tokens))
        ax.bar(places, values, width=0.62, color=WARNING, alpha=0.55, lw=0)
        wide = {"marker": "_", "ms": 15, "mew": 2, "ls": "", "color": INK}
        ax.plot(places, shares, **wide)
        ax.set_xticks(places, tokens)
        ax.tick_params(length=0)
        ax.set_title(place)
    axes[0, 0].set(ylabel="probability", yticks=[0, 0.1, 0.2], ylim=(0, 0.27))
    look = {"textcoords": "offset points", "size": 9.5, "va": "center"}
    top = max(range(len(tokens)), key=lambda i: shares[i])
    spot = (top, shares[top])
    axes[0, 0].annotate("its share of the answer", spot, xytext=(13, 4), **look)
    said = "; ".join(
        f"{place}: " + ", ".join(f"{t} {v:.2f}" for t, v in zip(tokens, values))
        for place, values in probabilities.items()
    )
    figure.alternative = (
        f"Bars of what the model expects. {said}. They follow the marks, which are how "
        "often each token occurs in the answer."
    )
    return figure


def sizes(growth, even=1 / 8):
    """What grows with the layers: {wiring: (typical size of the numbers on the lanes, from
    the input on; mean largest weight of a token, from layer 1 on)}; even is the weight
    where all tokens get the same."""
    figure, axes = panels(7.6, 2.9, columns=2)
    said = []
    for name, curves in growth.items():
        colour = WARNING if name == "no norms" else SERIES[0]
        for ax, values, first in zip(axes[0], curves, (0, 1)):
            steps = range(first, first + len(values))
            ax.plot(steps, values, "o-", ms=4, color=colour, lw=2, label=name)
            ax.set_xticks(steps)
        numbers, weights = curves
        said.append(
            f"{name}: sizes {', '.join(f'{v:.1f}' for v in numbers)}, weights "
            f"{', '.join(f'{v:.2f}' for v in weights)}."
        )
    left, right = axes[0]
    left.set(ylim=(0, None), xlabel="after layer")
    left.set_title("size of the numbers on the lanes")
    right.set(ylim=(0, 1.05), yticks=[0, 0.5, 1], xlabel="layer")
    right.set_title("largest weight of a token, on average")
    right.axhline(even, color=GREY, lw=0.8, ls=DASHES, zorder=0)
    look = {"size": 9.5, "ha": "left", "va": "top", "color": "#5c5c66"}
    right.text(1, even - 0.02, "shared out evenly", **look)
    for ax in axes[0]:
        label_ends(ax)
    figure.alternative = f"Sizes and largest weights by layer. {' '.join(said)}"
    return figure


def way_back(parts):
    """How much of a sent gradient arrives on its way down: {wiring: multiples of the
    gradient at the top, from the input up to the top layer}."""
    figure, axes = panels(7.2, 2.9)
    ax, said, colours = axes[0, 0], [], iter(SERIES)
    for name, values in parts.items():
        wrong = name.startswith("no ")
        look = {"color": WARNING if wrong else next(colours), "lw": 2, "label": name}
        ax.plot(values[::-1], "o-", ms=4, **look)
        said.append(f"{name} {', '.join(f'{v:.2f}' for v in values[::-1])}")
    top = max(map(len, parts.values())) - 1
    names = [f"layer {height}" for height in range(top, 0, -1)]
    ax.set_xticks(
        range(top + 1), [f"top:\n{names[0]}", *names[1:], "bottom:\nthe input"]
    )
    ax.set(ylim=(-0.1, 1.1))
    ax.set_yticks([0, 0.5, 1], ["0: nothing", "half", "1: all of it"])
    ax.set_title("how much of the sent gradient is left on its way down")
    label_ends(ax)
    figure.alternative = (
        "Multiples of the sent gradient, from the top layer down to the input: "
        f"{'; '.join(said)}."
    )
    return figure


def race(curves, every=10, marks=((2.398, "guessing"),), scale="log"):
    """Losses over steps, each the mean of `every`; marks are levels with a meaning. A
    curve without something is the wrong one."""
    figure, axes = panels(7.2, 3.4)
    ax, said, colours = axes[0, 0], [], iter(SERIES)
    for name, means in curves.items():
        steps = [every * (i + 0.5) for i in range(len(means))]
        wrong = name.startswith(("no ", "without "))
        colour = WARNING if wrong else next(colours)
        ax.plot(steps, means, color=colour, lw=2, label=name)
        said.append(f"{name} from {means[0]:.3g} to {means[-1]:.3g}")
    last = every * max(map(len, curves.values()))
    for level, text in marks:
        ax.plot([0, last], [level] * 2, color=GREY, lw=0.8, ls=DASHES, zorder=0)
        look = {"size": 9.5, "ha": "right", "va": "bottom", "color": "#5c5c66"}
        ax.text(last, 1.05 * level, text, **look)
    ax.set(xlim=(0, last), yscale=scale)
    if scale == "linear":
        ax.set(ylim=(0, None))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set(xlabel="training step", ylabel="loss, nats per token")
    label_ends(ax)
    levels = "; ".join(f"{text}: {level:.2f}" for level, text in marks)
    figure.alternative = f"Loss over training: {', '.join(said)}. Dashed: {levels}."
    return figure


# Encoder and decoder

SOURCE, TARGET = 0.0, 6.7  # the lanes in the middle
ASIDE = (-0.95, 0, 0.95)  # the lanes of three tokens
ROW, HIGH = 1.02, 0.42  # from sub-layer to sub-layer; a box
GAP = 0.28  # between layers


def two_stacks():
    """Encoder and decoder of two layers: boxes that all lanes share, boxes of one lane
    each, and the memory that all of the decoder reads."""
    parts = {
        SOURCE: ["self-attention", "feed-forward"],
        TARGET: ["causal self-attention", "cross-attention", "feed-forward"],
    }
    figure, ax = canvas((-3.5, 10.3), (-2.5, 7.9), 0.59)
    tops = {x: stack(ax, x, names) for x, names in parts.items()}
    for x, text in ((SOURCE, "the source"), (TARGET, "the target so far")):
        for aside in ASIDE:
            lane(ax, (x + aside, -0.35), (x + aside, tops[x] + 0.3), width=2)
        text = f"{text}, a line for each token:\nits embedding + its position"
        ax.text(x, -0.5, text, ha="center", va="top", linespacing=1.4)
    memory_lines(ax, tops[SOURCE] + 0.85)
    ax.text(TARGET, tops[TARGET] + 0.65, "to the scores", ha="center", va="bottom")
    legend(ax, -2.15)
    figure.alternative = (
        "Twice three lanes upwards, one a token, through two layers of the encoder and two "
        "of the decoder. Each attention is one box that all lanes share; each lane has a "
        "feed-forward box of its own. After every box its result is added to the lane, and "
        "LayerNorm follows. The memory leaves the top of the encoder and ends in the "
        "cross-attention of both layers of the decoder."
    )
    return figure


def memory_lines(ax, top):
    """From the top of the encoder to the cross-attention of both layers."""
    bridge = 2.0
    reads = [row_of(3, layer, 1) + 0.36 for layer in (0, 1)]
    for aside in ASIDE:
        line = [(SOURCE + aside, top - 0.28), (SOURCE + aside, top), (bridge, top)]
        ax.plot(*zip(*line), color=BLUE, lw=1.8, zorder=1)
    ax.plot([bridge] * 2, [min(reads), max(top, *reads)], color=BLUE, lw=1.8, zorder=1)
    for y in reads:
        arrow(ax, (bridge, y), (TARGET - 1.5, y), colour=BLUE, width=1.8)
    ax.text(SOURCE, top + 0.15, "memory", color=DARK["attention"], ha="center")


def row_of(count, layer, place) -> float:
    """The foot of a sub-layer."""
    return (layer * count + place) * ROW + layer * GAP


def stack(ax, x, names) -> float:
    """Two layers of sub-layers on the lanes at x; returns their top."""
    count, side = len(names), -1 if x == SOURCE else 1
    for layer in (0, 1):
        low = row_of(count, layer, 0)
        background(ax, (x - 1.5, low), (3.0, count * ROW))
        for place, name in enumerate(names):
            y = row_of(count, layer, place)
            sublayer(ax, x, y, name)
            look = {"color": DARK[idea_of(name)], "size": 9.5, "va": "center"}
            name = name.replace("causal ", "causal\n")
            place = {"ha": "right" if side < 0 else "left"}
            ax.text(x + 1.62 * side, y + 0.36, name, **place, **look)
        middle = {"ha": "center", "va": "center", "rotation": 90}
        look = {"size": 9.5, "color": GREY, **middle}
        ax.text(x - 1.72 * side, low + ROW / 3, f"layer {layer}", **look)
    return row_of(count, 1, count - 1) + ROW


def idea_of(name):
    """The idea, and so the colour, of a sub-layer."""
    return "feed-forward" if name == "feed-forward" else "attention"


def sublayer(ax, x, y, name):
    """One box on all lanes, or one on each; above them a sum and LayerNorm on each."""
    idea = idea_of(name)
    shared = [(x + ASIDE[0] - 0.4, ASIDE[-1] - ASIDE[0] + 0.8)]
    each = [(x + aside - 0.3, 0.6) for aside in ASIDE]
    for left, wide in shared if idea == "attention" else each:
        box(ax, (left, y + 0.36 - HIGH / 2), (wide, HIGH), idea=idea, depth=3)
    for aside in ASIDE:
        plus(ax, x + aside, y + 0.7, r=0.1)
        corner = (x + aside - 0.2, y + 0.86)
        look = {"fc": VIOLET, "ec": "none", "zorder": 7}
        ax.add_patch(Rectangle(corner, 0.4, 0.09, **look))


def legend(ax, y):
    """What the small signs on the lanes mean."""
    plus(ax, SOURCE + 0.6, y, r=0.12)
    ax.text(SOURCE + 0.85, y, "a box's result is added", va="center", size=9.5)
    look = {"fc": VIOLET, "ec": "none", "zorder": 7}
    ax.add_patch(Rectangle((SOURCE + 5.1, y - 0.05), 0.4, 0.1, **look))
    ax.text(SOURCE + 5.65, y, "LayerNorm", va="center", size=9.5)


def decoder_layer():
    """One lane through a decoder layer: three sub-layers, and what each arrow carries."""
    figure, ax = canvas((-1.6, 12.4), (-2.75, 0.5), 0.58)
    lane(ax, (0, 0), (12.0, 0))
    ax.text(-0.15, 0, "a token\nof the target", ha="right", va="center", size=10.5)
    attention = "attention"
    beneath(
        ax, 0.4, "causal\nself-attention", attention, "the target's lanes,\nup to here"
    )
    beneath(ax, 4.4, "cross-\nattention", attention, "the memory,\nall of the source")
    beneath(ax, 8.4, "feed-forward", "feed-forward")
    figure.alternative = (
        "One lane passes causal self-attention, cross-attention and feed-forward, with a "
        "sum and LayerNorm after each. Both attentions take their query from the lane. "
        "Keys and values of the first come from the target's lanes up to this one, those of "
        "the second from the memory."
    )
    return figure


def beneath(ax, start, name, idea, keys=""):
    """A sub-layer beneath the lane, with its arrows, and where its keys are from."""
    colour, look = IDEAS[idea], {"color": DARK[idea], "size": 10, "va": "center"}
    inside, middle, end = start + 0.45, start + 1.35, start + 2.7
    arrow(ax, (start, 0), (start, -0.95), (inside, -0.95), colour=colour)
    box(ax, (inside, -1.35), (1.8, 0.8), name, idea, size=10.5)
    arrow(ax, (inside + 1.8, -0.95), (end, -0.95), (end, -0.14), colour=colour)
    plus(ax, end, 0)
    norm(ax, end + 0.55, 0, upright=True, size=(0.5, 0.24))
    ax.text(start + 0.1, -0.3, "query" if keys else "read", ha="left", **look)
    ax.text(end - 0.1, -0.3, "write", ha="right", **look)
    if keys:
        arrow(ax, (middle, -2.1), (middle, -1.35), colour=colour, width=2)
        ax.text(middle + 0.15, -1.75, "keys, values", **look)
        ax.text(middle, -2.15, keys, ha="center", va="top", size=10)


def dependence(tables):
    """Which output of the decoder depends on which input: {name: zeros and ones (T,
    S)}."""
    widths = {"width_ratios": [table.shape[1] for table in tables.values()]}
    figure, axes = panels(5.6, 2.8, columns=len(tables), gridspec_kw=widths)
    said = []
    for ax, (name, table) in zip(axes[0], tables.items()):
        T, S = table.shape
        rows = range(1, T + 1) if ax is axes[0, 0] else [""] * T
        weights_table(ax, 0.72 * table, rows, range(1, S + 1), numbers=False)
        ax.set_title(name, size=10.5, pad=10)
        ax.set_xlabel("input at place")
        said.append(f"{name}: {int(table.sum())} of {T * S}")
    axes[0, 0].set_ylabel("output at place")
    figure.alternative = (
        "Blue is where an output of the decoder depends on an input. "
        f"{'; '.join(said)}. With its mask an output depends on its own and earlier "
        "places of the target alone."
    )
    return figure
