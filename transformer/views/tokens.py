"""The pictures of chapter 10: pieces of text, batches and their padding, and pairs that must not
be both in training and in the test."""

from functools import cache, partial

from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch
from matplotlib.textpath import TextPath

from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    LIGHT,
    PALE,
    WARNING,
    apply,
    canvas,
    panels,
)

GREEN, PART = (
    IDEAS["embedding"],
    "#a9d8c2",
)  # a part of a word is darker than a whole one
MARKS = {"<pad>": "white", "<s>": LIGHT, "</s>": LIGHT, "<unk>": "white"}
SIZE, HIGH, GAP = 11, 0.3, 0.05  # letters in points; a box and a gap in inches


@cache
def width_of(text, size=SIZE) -> float:
    """Inches that a text is wide."""
    if not text.strip():
        return 0.05 * len(text)
    apply()
    font = FontProperties(family=["Roboto", "DejaVu Sans"])
    return TextPath((0, 0), text, size=size, prop=font).get_extents().x1 / 72


def spelled(piece) -> str:
    """A piece with its space, or its line break, visible; bytes that are no whole
    characters as numbers."""
    if isinstance(piece, bytes):
        try:
            piece = piece.decode()
        except UnicodeDecodeError:
            return " ".join(map(str, piece))
    return piece.replace(" ", "_").replace("▁", "_").replace("\n", "\\n")


def are_parts(row) -> list[bool]:
    """Whether each piece is a part of a word, of which others are before or after it.

    The space in front of a word belongs to the word, even where it is a piece of its own.
    """
    words, word, inside = [], 0, False
    for piece in row:
        text = spelled(piece)
        letters = text.lstrip("_")
        mark = text != "<unk>" and bool(letters) and not letters[0].isalnum()
        word += mark or text[:1] == "_" or not inside
        words.append(word)
        inside = not mark
    return [words.count(word) > 1 for word in words]


def box(ax, x, y, width, text, face, colour=INK, size=SIZE):
    """A piece in its box, with the box's lower left corner at (x, y)."""
    shape = "round,pad=0,rounding_size=0.05"
    look = {"boxstyle": shape, "fc": face, "ec": "none", "zorder": 2}
    ax.add_patch(FancyBboxPatch((x, y), width, HIGH, **look))
    middle = (x + width / 2, y + HIGH / 2 - 0.01)
    ax.text(*middle, text, ha="center", va="center", size=size, color=colour, zorder=3)


def face_of(text, part) -> str:
    """The colour of a box: a mark, a part of a word, or a whole one."""
    return MARKS.get(text, PART if part else PALE["embedding"])


def laid_out(rows, ids, left, widest):
    """Where pieces go: for each row [(x, line, width, text, id, is a part), ...]."""
    line, placed = 0, []
    for row, numbers in zip(rows, ids):
        x, spots = left, []
        for piece, number, part in zip(row, numbers, are_parts(row)):
            text = spelled(piece)
            width = max(width_of(text) + 0.12, width_of(number, 8.5) + 0.04, 0.17)
            if x + width > widest:
                x, line = left, line + 1
            spots.append((x, line, width, text, number, part))
            x += width + GAP
        placed.append(spots)
        line += 1
    return placed


def pieces(rows, ids=None, widest=7.0):
    """Texts cut into pieces, {name: [piece, ...]}, each with its number below where ids
    (as many rows) are given.

    Parts of a word are darker than whole words and punctuation. A piece is a text, or
    the bytes of one.
    """
    names = max(width_of(name) for name in rows) if any(rows) else 0
    step = HIGH + (0.3 if ids else 0.14)
    numbers = ids or [[""] * len(row) for row in rows.values()]
    numbers = [[str(number) for number in row] for row in numbers]
    placed = laid_out(rows.values(), numbers, names + 0.2 * (names > 0), widest)
    spots = [spot for row in placed for spot in row]
    wide = max(x + width for x, _, width, *_ in spots)
    figure, ax = canvas((0, wide), (-(spots[-1][1] + 1) * step, 0), 1)
    for x, line, width, text, number, part in spots:
        y = -line * step - HIGH
        colour = WARNING if text == "<unk>" else INK
        box(ax, x, y, width, text, face_of(text, part), colour)
        below = {"ha": "center", "va": "top", "size": 8.5, "color": GREY}
        ax.text(x + width / 2, y - 0.05, number, **below)
    for name, row in zip(rows, placed):
        look = {"ha": "right", "va": "center", "color": DARK["embedding"]}
        ax.text(names, -row[0][1] * step - HIGH / 2, name, **look)
    said = (f"{name}: {' | '.join(map(spelled, row))}." for name, row in rows.items())
    figure.alternative = "Text cut into pieces. " + " ".join(
        line.lstrip(": ") for line in said
    )
    return figure


# Batches


def column_widths(rows) -> list[float]:
    """The width of each column of rows of pieces, in inches."""
    columns = range(max(len(row) for row in rows))
    texts = [[spelled(row[c]) for row in rows if c < len(row)] for c in columns]
    return [max(map(width_of, column)) + 0.16 for column in texts]


def batch(blocks, tokenizer):
    """What a batch holds: {title: ids (sentences, places)}, padding in white."""
    ids = {title: rows.tolist() for title, rows in blocks.items()}
    decode = partial(tokenizer.bpe.decode, skip_special_tokens=False)
    blocks = {
        title: [[decode([i]) for i in row] for row in rows]
        for title, rows in ids.items()
    }
    widths = column_widths([row for rows in blocks.values() for row in rows])
    step, apart, title_high = HIGH + 0.26, 0.16, 0.3
    lines = sum(map(len, blocks.values()))
    high = lines * step + title_high * len(blocks) + apart * (len(blocks) - 1)
    figure, ax = canvas((0, sum(widths) + GAP * len(widths)), (-high, 0), 1)
    y = 0.0
    for title, rows in blocks.items():
        look = {"ha": "left", "va": "center", "color": DARK["embedding"]}
        ax.text(0.02, y - title_high / 2, title, **look)
        y -= title_high
        for row, numbers in zip(rows, ids[title]):
            row_of_batch(ax, 0, y - HIGH, widths, row, numbers)
            y -= step
        y -= apart
    said = (
        f"{title}: {' / '.join(' '.join(map(spelled, row)) for row in rows)}."
        for title, rows in blocks.items()
    )
    figure.alternative = f"Rows of a batch. {' '.join(said)}"
    return figure


def row_of_batch(ax, x, y, widths, row, numbers):
    """A sentence of a batch: pieces, marks and padding, and the id of each below."""
    look = {"ha": "center", "va": "top", "size": 8.5, "color": GREY}
    for piece, number, width, part in zip(row, numbers, widths, are_parts(row)):
        colour = GREY if piece == "<pad>" else INK
        box(ax, x, y, width, spelled(piece), face_of(piece, part), colour)
        ax.text(x + width / 2, y - 0.04, str(number), **look)
        x += width + GAP


def padding_of(lengths) -> float:
    """The share of padding in a batch with these (source, target) lengths."""
    places = len(lengths) * sum(map(max, zip(*lengths)))
    return 1 - sum(map(sum, lengths)) / places


def padding(encoded, ways):
    """What batches look like that were made in several ways, {title: batches}.

    Of each way that batch is drawn whose padding is nearest to the median of all: tokens
    green, padding pale, the sources to the left and the targets to the right.
    """
    figure, axes = panels(7.8, 3.4, columns=len(ways), sharex=True, sharey=True)
    drawn, said = [], []
    for title, batches in ways.items():
        sides = [[tuple(map(len, encoded[i])) for i in batch] for batch in batches]
        drawn.append(sorted(sides, key=padding_of)[len(sides) // 2])
        said.append(f"{title}: {padding_of(drawn[-1]):.0%} of a typical batch.")
    widest = 1.04 * max(max(pair) for lengths in drawn for pair in lengths)
    for ax, title, lengths in zip(axes[0], ways, drawn):
        for name, side, sign in zip(("sources", "targets"), zip(*lengths), (-1, 1)):
            rows, start = range(len(side)), 0.4 * sign
            ax.barh(rows, sign * max(side), 1.02, start, color="#e3e3e8")
            ax.barh(rows, [sign * length for length in side], 1.02, start, color=GREEN)
            look = {"ha": "center", "va": "bottom", "size": 9.5, "color": GREY}
            ax.text(sign * widest / 2, -1.5, name, **look)
        ax.set(title=title, xlabel="tokens of a sentence", xlim=(-widest, widest))
        ax.set_xticks([-20, 0, 20], ["20", "0", "20"])
    axes[0, 0].set_ylabel("sentence pairs of the batch")
    longest = max(map(len, drawn))
    axes[0, 0].set(ylim=(longest, -0.13 * longest))
    figure.alternative = f"Batches, tokens green and padding pale. {' '.join(said)}"
    return figure


# The test

ROLES = {
    "test": (INK, "-", 2.2),
    "left out": (WARNING, (0, (3, 2)), 1.6),
    "training": (GREEN, "-", 1.6),
}


def kept_apart(parts):
    """A line for each pair between its two sentences, {role: [(English, German), ...]};
    roles are those of ROLES."""
    pairs = [(role, *pair) for role in parts for pair in parts[role]]
    places = [
        {text: -0.42 * row for row, text in enumerate(dict.fromkeys(side))}
        for side in list(zip(*pairs))[1:]
    ]
    lowest = min(min(side.values()) for side in places)
    figure, ax = canvas((-1.3, 5.6), (lowest - 0.2, 0.5), 1)
    for x, align, side in zip((0, 2.6), ("right", "left"), places):
        for text, y in side.items():
            beside = x - 0.12 if align == "right" else x + 0.12
            ax.text(beside, y, text, ha=align, va="center", size=SIZE)
    for x, name, align in ((-0.12, "English", "right"), (2.72, "German", "left")):
        ax.text(x, 0.33, name, ha=align, va="center", size=9.5, color=GREY)
    for role, source, target in pairs:
        colour, style, width = ROLES[role]
        ends = places[0][source], places[1][target]
        look = {"marker": "o", "ms": 4, "zorder": 3 if role == "test" else 2}
        ax.plot((0, 2.6), ends, color=colour, ls=style, lw=width, **look)
    for row, role in enumerate(parts):
        colour, style, width = ROLES[role]
        y = -0.42 * row
        ax.plot((4.1, 4.5), (y, y), color=colour, ls=style, lw=width)
        ax.text(4.6, y, role, va="center", color=colour)
    said = (f"{role}: {source} = {target}." for role, source, target in pairs)
    figure.alternative = f"Pairs as lines between sentences. {' '.join(said)}"
    return figure
