"""The pictures of chapter 08: Figure 1 drawn once, a sentence on its way through, and
sizes."""

from matplotlib.patches import Polygon, Rectangle

from transformer.views.shapes import arrow, background, box, norm
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
    without_frame,
)

BLUE, GREEN, VIOLET = (IDEAS[name] for name in ("attention", "embedding", "norm"))
SOURCE, TARGET = 4.2, 10.6  # where the lanes run
ENCODER = [("self-attention", "attention"), ("feed-forward", "feed-forward")]
DECODER = [
    ("causal self-attention", "attention"),
    ("cross-attention", "attention"),
    ("feed-forward", "feed-forward"),
]
STEP, FIRST = 1.58, 2.72  # from sub-layer to sub-layer; where the lowest begins
GAP = 0.11  # between two lanes of a bundle


def machine(ax, N, lanes=(3, 3)):
    """Figure 1 with lanes of source and target, from token ids up to the softmax: every
    part at a fixed height."""
    sides = ((SOURCE, ENCODER, "encoder"), (TARGET, DECODER, "decoder"))
    for (x, parts, name), count in zip(sides, lanes):
        top = FIRST + STEP * len(parts)
        background(ax, (x - 3.5, 2.5), (4.0, top - 2.63))
        look = {"rotation": 90, "ha": "right", "va": "bottom", "color": DARK["norm"]}
        ax.text(x - 3.62, 2.62, f"{name}, {N} ×", **look)
        box(ax, (x - 1.0, 0.72), (2.0, 0.5), "embedding", "embedding")
        box(ax, (x - 1.0, 1.55), (2.0, 0.5), "+ positions", "positions")
        bundle(ax, x, (0.3, top + 0.2), count)
        for place, (text, idea) in enumerate(parts):
            sublayer(ax, x, FIRST + STEP * place, text, idea, half_width(count))
    top = FIRST + STEP * len(ENCODER) + 0.46
    y = FIRST + STEP + 0.47  # of cross-attention
    left = SOURCE - half_width(lanes[0]) - 0.05
    path = [(left, top), (6.15, top), (6.15, y), (7.35, y)]
    arrow(ax, *path, colour=BLUE, width=1.6)
    box(ax, (9.05, 7.9), (3.1, 0.5), "embedding, transposed", "embedding")
    arrow(ax, (TARGET, 8.4), (TARGET, 8.74))
    box(ax, (9.8, 8.74), (1.6, 0.46), "softmax")
    look = {"size": 9, "color": DARK["attention"]}
    ax.text(6.05, y, "keys,\nvalues", ha="right", va="center", **look)
    ax.text(8.72, FIRST + STEP - 0.06, "queries", va="top", **look)


def half_width(lanes):
    """From the middle of a bundle to its outermost lane."""
    return GAP * (lanes - 1) / 2


def bundle(ax, x, heights, lanes):
    """Lanes side by side, one a token, around x: from one height up to another."""
    (low, high), colour = heights, IDEAS["norm"]
    for place in range(lanes):
        at = x - half_width(lanes) + GAP * place
        ax.plot([at, at], [low, high], color=colour, lw=1.7, zorder=4.5)
        head = [(at - 0.055, high), (at, high + 0.16), (at + 0.055, high)]
        ax.add_patch(Polygon(head, facecolor=colour, edgecolor="none", zorder=4.5))


def sublayer(ax, x, y, text, idea, half):
    """Off the lanes around x into a sub-layer, back into the sum, and through the norm;
    `half` is half the bundle's width."""
    middle, wide, colour = x - 2.0, 2.5, IDEAS[idea]
    arrow(ax, (x + half, y), (middle, y), (middle, y + 0.22), colour=colour)
    box(ax, (middle - wide / 2, y + 0.22), (wide, 0.5), text, idea)
    back = y + 0.94
    edge = half + 0.14
    arrow(ax, (middle, y + 0.72), (middle, back), (x - edge, back), colour=colour)
    box(ax, (x - edge, back - 0.13), (2 * edge, 0.26), "+", depth=9, size=11)
    norm(ax, x, y + 1.28, size=(2 * edge + 0.2, 0.18))


def whole_model():
    """The paper's Figure 1, with the lanes of chapter 03 and the classes' names."""
    figure, ax = canvas((0, 13.4), (-0.75, 10.55), 0.58)
    machine(ax, "N")
    ax.text(SOURCE, 0.12, "source: token ids", ha="center", va="top")
    ax.text(TARGET, 0.12, "target so far: token ids", ha="center", va="top")
    arrow(ax, (TARGET, 9.2), (TARGET, 9.6))
    out = "a probability for every candidate\nof the next token"
    ax.text(TARGET, 9.7, out, ha="center", va="bottom", linespacing=1)
    top = FIRST + STEP * 2 + 0.55
    ax.text(5.2, top, "memory", color=DARK["attention"], ha="center", va="bottom")
    for x in (SOURCE, TARGET):
        for y, text in ((0.94, "add"), (1.28, "norm")):
            look = {"color": DARK["norm"], "va": "center", "size": 9.5}
            ax.text(x + 0.58, FIRST + y, text, **look)
    noted(ax, SOURCE + 0.32, 1.39, "a lane for each token", ha="left", va="center")
    theirs = "the paper’s “outputs (shifted right)”"
    noted(ax, TARGET, -0.32, theirs, ha="center", va="top")
    noted(ax, 12.3, 8.15, "the paper’s\n“Linear”", ha="left", va="center")
    figure.alternative = (
        "The model, from below. Source ids pass embedding, positions and N encoder "
        "layers of self-attention and feed-forward network; target ids pass the same"
        " embedding, positions and N decoder layers of causal self-attention, "
        "cross-attention and feed-forward network, each added to its lane and "
        "normalised. One line, the memory, leads from the encoder’s top to "
        "cross-attention, which takes keys and values from it and queries from its "
        "lane. The embedding, transposed, and a softmax give the probabilities."
    )
    return figure


def noted(ax, x, y, text, **place):
    """A remark beside a part, in small grey letters."""
    ax.text(x, y, text, size=9, color=GREY, style="italic", **place)


def shape(tensor) -> str:
    """1 × 4 × 256"""
    return " × ".join(f"{size:,}" for size in tensor.shape)


def pieces(ids, tokenizer) -> str:
    """Tokens side by side, marks too: <s> Die Katze"""
    tokens = [tokenizer.bpe.id_to_token(number) for number in ids.tolist()]
    return " ".join(token.replace("Ġ", "") for token in tokens)


def traced(stations, probabilities, tokenizer, N="N", most=4):
    """Figure 1 with the shapes of one sentence's tensors, and the likeliest next
    tokens.

    stations: "source" and "target" (ids), "memory", "x" (the decoder's output) and
    "scores".
    """
    figure, ax = canvas((0, 13.4), (-0.85, 10.4), 0.58)
    sides = ("source", "target")
    lanes = [stations[name].shape[1] for name in sides]
    machine(ax, N, lanes)
    texts = {name: pieces(stations[name][0], tokenizer) for name in sides}
    for name, x in zip(texts, (SOURCE, TARGET)):
        ax.text(x, 0.13, texts[name], ha="center", va="top", weight="bold")
        noted(ax, x, -0.3, f"ids: {shape(stations[name])}", ha="center", va="top")
    shapes_beside(ax, stations)
    top, memory = FIRST + STEP * 2 + 0.55, shape(stations["memory"])
    look = {"va": "bottom", "color": DARK["attention"]}
    ax.text(SOURCE + 0.1, top, f"memory: {memory}", **look)
    best = probabilities.topk(most)
    words = [tokenizer.decode([token]) for token in best.indices.tolist()]
    next_tokens(ax, words, best.values.tolist(), len(probabilities))
    figure.alternative = (
        f"The model with shapes. “{texts['source']}” is {shape(stations['source'])} "
        f"ids and becomes a memory of {memory}; “{texts['target']}” is "
        f"{shape(stations['target'])} ids, {shape(stations['x'])} after the decoder "
        f"and {shape(stations['scores'])} scores. Likeliest is “{words[0]}”."
    )
    return figure


def shapes_beside(ax, stations):
    """The sizes of the lanes where they begin and end, and of the scores."""
    places = (
        (SOURCE + 0.45, 2.28, "memory"),  # of one size with its lanes
        (TARGET + 0.35, 2.28, "x"),
        (TARGET + 0.35, 7.66, "x"),
        (TARGET + 0.15, 8.57, "scores"),
    )
    for x, y, name in places:
        ax.text(x, y, shape(stations[name]), va="center", size=9.5)
    noted(
        ax, SOURCE - 0.45, 2.28, "sentences × tokens × width", ha="right", va="center"
    )


def next_tokens(ax, words, values, V):
    """Bars of the likeliest next tokens and of all others, and the chosen one."""
    arrow(ax, (9.8, 8.97), (6.5, 8.97))
    ax.text(2.05, 9.4, "probability of the next token", va="center", size=10)
    rows = [*zip(words, values), (f"{V - len(words):,} others", 1 - sum(values))]
    for place, (word, value) in enumerate(rows):
        y = 8.97 - 0.46 * place
        ax.text(1.9, y, word, ha="right", va="center")
        colour = GREEN if place == 0 else LIGHT
        bar = Rectangle((2.05, y - 0.15), max(3.6 * value, 0.02), 0.3, fc=colour, lw=0)
        ax.add_patch(bar)
        digits = 2 if value > 0.1 else 3 if value > 0.01 else 4
        text = f"{value:.{digits}f}"
        ax.text(2.17 + 3.6 * value, y, text, va="center", size=9.5)
    arrow(ax, (1.5, 9.2), (1.5, 9.8))
    ax.text(1.5, 9.88, words[0], ha="center", va="bottom", weight="bold", size=12)
    noted(ax, 2.05, 9.94, "chosen: the largest", va="bottom")


def next_word(tables):
    """{(source, target so far): [(word, probability)]} as bars, a block each, two in a
    row."""
    high = (len(tables) + 1) // 2
    figure, axes = panels(
        7.2, 1.55 * high + 0.2, high, min(len(tables), 2), sharex=True
    )
    said = []
    for ax, ((source, target), rows) in zip(axes.flat, tables.items()):
        best = max(value for _, value in rows)
        for place, (_, value) in enumerate(rows):
            colour = GREEN if value == best else LIGHT
            ax.barh(place, max(value, 0.004), height=0.56, color=colour)
            text = f"{value:.2f}" if value >= 0.005 else f"{value:.3f}"
            ax.text(value + 0.03, place, text, va="center", size=9.5)
        names = [word for word, _ in rows]
        ax.set_yticks(range(len(rows)), names)
        ax.set(xlim=(0, 1.25), ylim=(len(rows) - 0.5, -0.6), xticks=[0, 0.5, 1])
        ax.set_title(
            f"English: {source}\nGerman: {target} ...",
            size=9.5,
            loc="left",
            linespacing=1.4,
        )
        without_frame(ax)
        likeliest = max(rows, key=lambda row: row[1])[0]
        said.append(f"{source} {target} ... {likeliest} ({best:.2f}).")
    for ax in axes[-1]:
        ax.set_xlabel("probability of the next token")
    figure.alternative = "The likelier next word: " + " ".join(said)
    return figure


# What may not look ahead, and what becomes of a model that does


def moved(tables, names):
    """Which rows of scores move with which token: {title: (T, T)}, True where row moves
    with column; names of the T tokens. Red is a row that moves with a later one."""
    T, long = len(names), len(names) > 6
    cell = 0.245 if long else 0.5
    size = len(tables) * (cell * T + 0.95), cell * T + 0.9
    figure, axes = panels(*size, columns=len(tables))
    said = []
    for ax, (title, table) in zip(axes[0], tables.items()):
        ahead = squares(ax, table)
        ax.set(xlim=(-0.55, T - 0.45), ylim=(T - 0.45, -0.55), aspect="equal")
        ax.set_xticks(range(T), names, rotation=90 if long else 0)
        ax.set_yticks(range(T), names)
        without_frame(ax)
        ax.tick_params(labelsize=9.5)
        ax.set_xlabel("changed token")
        ax.set_title(title, weight="bold")
        said.append(f"{title}: {ahead} of {T * (T - 1) // 2}.")
    axes[0, 0].set_ylabel("scores after")
    figure.alternative = (
        "A square is filled if a row of scores moves with a changed token. Filled "
        "squares of tokens that come after the row: " + " ".join(said)
    )
    return figure


def squares(ax, table) -> int:
    """A filled square where row moves with column, red above the diagonal; how many are
    red."""
    ahead = 0
    for row, moves in enumerate(table):
        for token, moving in enumerate(moves):
            wrong = token > row and bool(moving)
            colour = WARNING if wrong else SERIES[0] if moving else "white"
            look = {"facecolor": colour, "edgecolor": LIGHT, "linewidth": 0.8}
            ax.add_patch(Rectangle((token - 0.5, row - 0.5), 1, 1, **look))
            ahead += wrong
    return ahead


def dice(shares, luck=1 / 6):
    """The share of right guesses at each number of a game: {(row, column): shares}; a
    column "without ..." is the wrong one."""
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*shares))
    size = 7.6, 1.75 * len(rows) + 0.5
    options = {"sharey": True, "sharex": True}
    figure, axes = panels(*size, len(rows), len(columns), **options)
    said = []
    for (row, column), share in shares.items():
        ax, n = axes[rows.index(row), columns.index(column)], len(share)
        colour = WARNING if "without" in column else SERIES[0]
        ax.bar(range(1, n + 1), share, width=0.68, color=colour)
        ax.axhline(luck, color=INK, lw=0.9, ls=(0, (4, 3)))
        ax.text(n + 0.8, luck, "luck", va="center", size=9.5)
        ax.set(xticks=range(1, n + 1), ylim=(0, 1.08), xlim=(0.3, n + 0.7))
        ax.set_yticks([0, 0.5, 1], ["0%", "50%", "100%"])
        without_frame(ax)
        listed = ", ".join(f"{value:.0%}" for value in share)
        said.append(f"{row}, {column}: {listed}.")
    names = ["top" if place % 2 == 0 else "under" for place in range(n)]
    for ax, column in zip(axes[0], columns):
        ax.set_title(column, weight="bold")
    for ax in axes[-1]:
        ax.set_xticks(range(1, n + 1), names, rotation=90)
    for ax, row in zip(axes[:, 0], rows):
        ax.set_ylabel(f"{row}:\nguessed right")
    figure.alternative = "Numbers guessed right, from the first: " + " ".join(said)
    return figure


PARTS = {"feed_forward": "feed-forward", "norms": "norm"}  # of a count, and their idea


def parameters(models):
    """{model: {part: numbers}}: a bar a model, in the colours of the parts, lengths to
    scale."""
    totals = {name: sum(parts.values()) for name, parts in models.items()}
    largest = max(totals.values())
    figure, axes = panels(7.8, 0.95 * len(models) + 0.5)
    ax, said = axes[0, 0], []
    for row, (name, parts) in enumerate(models.items()):
        left = 0.0
        for part, count in parts.items():
            labelled = totals[name] == largest
            share_of_bar(ax, (left, row), count / largest, count, part, labelled)
            left += count / largest
        if totals[name] < largest:
            tiny = {
                part: count for part, count in parts.items() if count < largest / 20
            }
            text = ", ".join(
                f"{part} {count / 1e6:.2f}" for part, count in tiny.items()
            )
            ax.text(left + 0.01, row, text, va="center", color=DARK["norm"])
        total = f"{totals[name] / 1e6:.1f} million"
        ax.text(-0.015, row, f"{name}\n{total}", ha="right", va="center")
        listed = ", ".join(f"{p} {c / 1e6:.1f}" for p, c in parts.items())
        said.append(f"{name}, {total}: {listed}.")
    ax.set(xlim=(-0.2, 1.01), ylim=(len(models) - 0.6, -0.4))
    ax.set_axis_off()
    figure.alternative = "Parameters in millions. " + " ".join(said)
    return figure


def share_of_bar(ax, corner, width, count, part, labelled):
    """A part of a model's bar with its millions, named above the longest bar."""
    (left, row), idea = corner, PARTS.get(part, part)
    look = {"facecolor": PALE[idea], "edgecolor": IDEAS[idea], "linewidth": 1}
    ax.barh(row, width, left=left, height=0.46, **look)
    letters = {"ha": "center", "color": DARK[idea]}
    if width > 0.05:
        middle, text = left + width / 2, f"{count / 1e6:.1f}"
        ax.text(middle, row, text, va="center", weight="bold", **letters)
        if labelled:
            ax.text(middle, row - 0.3, idea, va="bottom", **letters)
