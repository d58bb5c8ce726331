"""The pictures of chapter 10: pieces of text, the size of a vocabulary, batches and their
padding."""

from functools import cache

from matplotlib.colors import ListedColormap
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
    apply,
    canvas,
    panels,
)

GREEN, PART = (
    IDEAS["embedding"],
    "#a9d8c2",
)  # a part of a word is darker than a whole one
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
    """A piece with its space, or its line break, visible."""
    return piece.replace(" ", "_").replace("▁", "_").replace("\n", "\\n")


def are_parts(row) -> list[bool]:
    """Whether each piece is a part of a word, of which others are before or after it."""
    words, word = [], 0
    for place, piece in enumerate(row):
        letters = spelled(piece).lstrip("_")
        begins = spelled(piece)[:1] == "_" or spelled(row[place - 1]) == "_"
        word += begins or not letters[:1].isalnum()
        words.append(word if letters else -1)
    return [word >= 0 and words.count(word) > 1 for word in words]


def box(ax, x, y, width, text, face, colour=INK, size=SIZE):
    """A piece in its box, with the box's lower left corner at (x, y)."""
    shape = "round,pad=0,rounding_size=0.05"
    look = {"boxstyle": shape, "fc": face, "ec": "none", "zorder": 2}
    ax.add_patch(FancyBboxPatch((x, y), width, HIGH, **look))
    middle = (x + width / 2, y + HIGH / 2 - 0.01)
    ax.text(*middle, text, ha="center", va="center", size=size, color=colour, zorder=3)


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

    Parts of a word are darker than whole words and punctuation.
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
        box(ax, x, y, width, text, PART if part else PALE["embedding"])
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


def vocabulary_sizes(sizes, tokens, levels):
    """Tokens of a sentence by the size of the vocabulary; levels {name: tokens} are what
    letters and words would come to."""
    figure, axes = panels(6.8, 3.0)
    ax = axes[0, 0]
    ax.plot(sizes, tokens, "o-", color=GREEN, ms=5)
    for size, value in zip(sizes, tokens):
        spot = {"xytext": (0, 7), "textcoords": "offset points", "ha": "left"}
        ax.annotate(f"{value:.0f}", (size, value), color=DARK["embedding"], **spot)
    for name, level in levels.items():
        ax.axhline(level, color=GREY, lw=0.8, ls=(0, (4, 3)), zorder=0)
        look = {"ha": "left", "va": "bottom", "size": 9.5, "color": GREY}
        ax.text(sizes[0] * 0.88, level + 0.5, name, **look)
    ax.set(xscale="log", xlim=(sizes[0] * 0.85, sizes[-1] * 1.2), ylim=(0, None))
    ax.minorticks_off()
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.set(xlabel="entries in the vocabulary", ylabel="tokens in a sentence")
    shown = ", ".join(f"{value:.0f} with {V:,}" for V, value in zip(sizes, tokens))
    other = ", ".join(f"{name} {level:.0f}" for name, level in levels.items())
    figure.alternative = f"Tokens in a sentence: {shown} entries; {other}."
    return figure


# Batches

MARKS = {"<pad>": "white", "<s>": LIGHT, "</s>": LIGHT}


def column_widths(rows) -> list[float]:
    """The width of each column of rows of pieces, in inches."""
    columns = range(max(len(row) for row in rows))
    texts = [[spelled(row[c]) for row in rows if c < len(row)] for c in columns]
    return [max(map(width_of, column)) + 0.16 for column in texts]


def batch(blocks):
    """What a batch holds: {title: (rows of pieces, rows of ids)}, padding in white."""
    widths = column_widths([row for rows, _ in blocks.values() for row in rows])
    left = max(width_of(title) for title in blocks) + 0.25
    step, apart = HIGH + 0.26, 0.22
    lines = sum(len(rows) for rows, _ in blocks.values())
    high = lines * step + apart * (len(blocks) - 1)
    figure, ax = canvas((0, left + sum(widths) + GAP * len(widths)), (-high, 0), 1)
    y = 0.0
    for title, (rows, ids) in blocks.items():
        middle = y - (len(rows) * step - 0.2) / 2
        look = {"ha": "right", "va": "center", "color": DARK["embedding"]}
        ax.text(left - 0.25, middle, title, **look)
        for row, numbers in zip(rows, ids):
            x = left
            for piece, number, width in zip(row, numbers, widths):
                cell(ax, x, y - HIGH, width, piece, number)
                x += width + GAP
            y -= step
        y -= apart
    said = (
        f"{title}: {' / '.join(' '.join(map(spelled, row)) for row in rows)}."
        for title, (rows, _) in blocks.items()
    )
    figure.alternative = f"Rows of a batch. {' '.join(said)}"
    return figure


def cell(ax, x, y, width, piece, number):
    """A place of a batch: a piece, a mark or padding, and its id below."""
    face = MARKS.get(piece, PALE["embedding"])
    box(ax, x, y, width, spelled(piece), face, GREY if piece == "<pad>" else INK)
    look = {"ha": "center", "va": "top", "size": 8.5, "color": GREY}
    ax.text(x + width / 2, y - 0.04, str(number), **look)


def padding(batches):
    """Where batches hold tokens: {title: boolean (sentences, places)}, padding pale."""
    figure, axes = panels(7.4, 3.2, columns=len(batches), sharex=True, sharey=True)
    colours = ListedColormap(["#e9e9ed", GREEN])
    said = []
    for ax, (title, real) in zip(axes[0], batches.items()):
        ax.imshow(
            real.int().tolist(),
            cmap=colours,
            vmin=0,
            vmax=1,
            aspect="auto",
            origin="upper",
        )
        ax.set(title=title, xlabel="place in the sentence")
        share = 1 - float(real.double().mean())
        said.append(f"{title}: {share:.0%} of {real.numel():,} places are padding.")
    axes[0, 0].set_ylabel("sentence")
    wide = max(real.shape[1] for real in batches.values())
    axes[0, 0].set(xlim=(-0.5, wide - 0.5))
    figure.alternative = f"Batches, tokens dark and padding pale. {' '.join(said)}"
    return figure
