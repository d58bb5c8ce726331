"""The pictures of chapter 19: heads that decide, and the circuit that they form."""

from math import floor

from matplotlib.patches import FancyArrowPatch

from transformer.models.gold import stem_and_ending
from transformer.views.shapes import box, lane, weights_bar, weights_table
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    LIGHT,
    WARNING,
    canvas,
    ordinal,
    panels,
)

BLUE = IDEAS["attention"]
STEM, ENDING = DARK["attention"], DARK["embedding"]
OWN = {"owner head": STEM, "noun head": ENDING, "noun head, other words": GREY}


def rivals(nouns, lead, right, named=(), rival="the cat"):
    """Nouns piled up over how much better each is scored than a rival noun.

    lead, right: (n,), the difference of scores, and whether the translation is right;
    named: those whose dots get their names.
    """
    figure, axes = panels(8.0, 3.7)
    ax = axes[0, 0]
    dots = {n: (float(x), bool(fine)) for n, x, fine in zip(nouns, lead, right)}
    high = pile(ax, dots, named)
    top = high + 4
    ax.axvline(0, color=GREY, lw=0.9, zorder=0)
    ax.set(ylim=(0, top), yticks=[], xlabel=f"score of the noun minus score of {rival}")
    ax.spines["left"].set_visible(False)
    look = {"va": "top", "color": GREY}
    ax.text(-0.6, top, f"{rival} is scored higher  ←", ha="right", **look)
    ax.text(0.15, top, "→  the noun is scored higher", **look)
    missed = sum(x < 0 and not fine for x, fine in dots.values())
    said = [f"{rival} is scored higher, and yet seinen, with {missed}"]
    for x, y, align, text, colour, fine in (
        (-3.4, 6, "right", "ihren: right", BLUE, True),
        (2.1, 9.5, "left", "seinen: wrong", WARNING, False),
    ):
        ax.text(x, y, text, ha=align, va="top", color=colour, weight="bold")
        reach = [x for x, verdict in dots.values() if verdict == fine]
        said.append(f"{text} with {len(reach)}, {min(reach):.1f} to {max(reach):.1f}")
    crosses = f"crosses: {rival} is scored\nhigher, and yet seinen"
    ax.text(0.25, high + 0.5, crosses, va="top", color=WARNING, size=9.5)
    said[0] = f"{len(dots)} nouns by their score minus that of {rival}; {said[0]}"
    figure.alternative = ("; ".join(said) + ".").replace(" -", " −")
    return figure


def pile(ax, nouns, named, step=0.36):
    """A dot for each noun in columns of which none crosses zero, a cross for one that is
    wrong though it is scored lower; the height of the highest column."""
    columns: dict[int, list] = {}
    for noun, (difference, right) in nouns.items():
        missed = difference < 0 and not right
        columns.setdefault(floor(difference / step), []).append(
            (
                missed,
                noun in named,
                right,
                noun,
            )  # a name's line starts above its column
        )
    for column, dots in columns.items():
        x = (column + 0.5) * step
        for y, (missed, _, right, noun) in enumerate(sorted(dots), 1):
            mark = {"marker": "X" if missed else "o", "ms": 6.2 if missed else 5.4}
            ax.plot(x, y, color=BLUE if right else WARNING, mew=0, **mark)
            if noun in named:
                point_at(ax, noun, (x, y), far=abs(x) > 6)
    return max(map(len, columns.values()))


def point_at(ax, noun, spot, far):
    """A noun's name beside its dot, at the end of a line."""
    x, y = spot
    ax.plot(x, y, "o", mfc="none", mec=INK, ms=6.8, mew=1.2)
    line = {"arrowstyle": "-", "color": INK, "lw": 0.8, "shrinkB": 3.5}
    place = (x, y + 3) if far else (x + (1.6 if x > 0 else -2.2), y + 4)
    ax.annotate(noun, spot, place, arrowprops=line, size=9.5, ha="center")


KINDS = {
    ("encoder", "self"): "encoder",
    ("decoder", "self"): "decoder, self",
    ("decoder", "cross"): "cross-attention",
}


def place_of(name):
    """ "encoder.0.self_attention.heads" -> "encoder, 1st layer"."""
    side, layer, part, _ = name.split(".")
    kind = KINDS[side, part.removesuffix("_attention")]
    return f"{kind}, {ordinal(int(layer))} layer"


def silenced(written, untouched):
    """The word that is written with each head silent: a table, a row for each layer.

    written: {(name of the heads, head): word}; untouched: the word without an edit.
    """
    layers = list(dict.fromkeys(name for name, _ in written))
    heads = sorted({head for _, head in written})
    figure, axes = panels(7.6, 0.42 * len(layers) + 0.7)
    ax = axes[0, 0]
    ax.set(xlim=(-0.5, len(heads) - 0.5), ylim=(len(layers) - 0.5, -0.5))
    ax.set_xticks(heads, [f"{ordinal(head)} head" for head in heads])
    ax.set_yticks(range(len(layers)), map(place_of, layers))
    ax.xaxis.tick_top()
    ax.tick_params(length=0, labelsize=10.5)
    ax.spines[:].set_visible(False)
    said = []
    for (name, head), word in written.items():
        row, look = layers.index(name), {"color": GREY, "size": 10.5}
        if word != untouched:
            look = {"color": colour_of_change(word, untouched), "size": 12}
            look["weight"] = "bold"
            said.append(f"{place_of(name)}, {ordinal(head)} head: {word}")
        ax.text(head, row, word, ha="center", va="center", **look)
    for row in range(len(layers)):
        ax.axhline(row - 0.5, color=LIGHT, lw=0.7)
    figure.alternative = (
        f"The word written with one head silent. {'; '.join(said)}. With any other "
        f"head silent it is {untouched}, as without an edit."
    )
    return figure


def colour_of_change(word, untouched):
    """The ending's colour where that changed, or else the stem's; the warning colour for
    what is no possessive."""
    stem, ending = stem_and_ending(word)
    if not stem:
        return WARNING
    return STEM if ending == stem_and_ending(untouched)[1] else ENDING


def leads(values, above, below, start=0.0):
    """Bars of how far one word's score leads another's: {what was done: lead}.

    above, below: the words that are written where the lead is above and below zero;
    start: the lead from which the bars grow.
    """
    figure, axes = panels(7.6, 0.34 * len(values) + 0.9)
    ax, names, numbers = axes[0, 0], list(values), list(values.values())
    colours = [BLUE if lead > 0 else WARNING for lead in numbers]
    for y, (lead, colour) in enumerate(zip(numbers, colours)):
        ax.barh(y, lead - start, left=start, color=colour, height=0.6)
        if lead == start:
            ax.plot(start, y, "o", color=colour, ms=6)
    if start:
        ax.axvline(start, color=GREY, lw=0.9, ls=":", zorder=0)
    ax.axvline(0, color=GREY, lw=0.9, zorder=3)
    ax.set_xlim(min(0.0, start, *numbers) - 0.4)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0, labelsize=10)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"score of {above} minus score of {below}")
    look = {"va": "bottom", "weight": "bold", "annotation_clip": False}
    for word, at, align, colour in (
        (below, (-6, 4), "right", WARNING),
        (above, (6, 4), "left", BLUE),
    ):
        ax.annotate(f"writes {word}", (0, 1), at, xycoords=("data", "axes fraction"),
                    textcoords="offset points", ha=align, color=colour, **look)  # fmt: skip
    figure.alternative = f"Score of {above} minus score of {below}. " + "; ".join(
        f"{name}: {lead:.1f}".replace("-", "−") for name, lead in values.items()
    )
    return figure


def crossing(maps, layer, head, word):
    """Where the decoder looks: one head, all words; below it all heads of the layer, one word.

    layer, head: from 0.
    """
    rows, columns = maps.target[:-1], [*maps.source[:-1], "end"]
    tables = maps.cross[layer, :, :-1]
    place = rows.index(word)
    heads = [f"{ordinal(i)} head" for i in range(len(tables))]
    high = len(rows), len(heads)
    figure, axes = panels(7.2, 0.34 * sum(high) + 1.7, 2, height_ratios=high)
    for ax, table, names in zip(
        axes[:, 0], (tables[head], tables[:, place]), (rows, heads)
    ):
        shown = weights_table(ax, table, names, columns, numbers=ax is axes[1, 0])
        ax.set_aspect("auto")
    axes[1, 0].tick_params(labeltop=False)
    axes[0, 0].set_title(
        f"the {ordinal(head)} head, at each German word that is written"
    )
    axes[1, 0].set_title(f"each head of this layer, when “{word}” is written")
    weights_bar(figure, axes[:, 0], shown)
    looks = [
        f"{name} at {columns[int(row.argmax())]}"
        for name, row in zip([*rows, *heads], [*tables[head], *tables[:, place]])
    ]
    figure.alternative = "Weights of cross-attention; most look: " + ", ".join(looks)
    return figure


# The paper's way to draw attention


def as_in_the_paper(its, owner=(0, 2), noun=(1, 0)):
    """The looks of this model that are like the paper's Figures 4 and 5.

    its: maps of a sentence with "its"; owner, noun: layer and head of the two heads,
    from 0.
    """
    owner, noun = its.encoder[owner][:-1], its.encoder[noun][:-1]
    two = {"owner head": owner, "noun head": noun}
    two = {name: rows(("its",), its.source, table) for name, table in two.items()}
    words = its.source[:-1], [*its.source[:-1], "end"]
    known = rows(("The", "the", "its"), its.source, noun)
    one = {"noun head": known, "noun head, other words": noun - known}
    return two_columns(
        {
            "like Figure 4:\nfrom “its”, two heads": (*words, two),
            "like Figure 5:\nfrom all words, one head": (*words, one),
        }
    )


def rows(looking, words, table):
    """A table of weights in which only some words look."""
    kept = table * 0
    for place, word in enumerate(words[: len(table)]):
        if word in looking:
            kept[place] = table[place]
    return kept


def two_columns(looks):
    """Words that look on the left, what they look at on the right, a line a weight.

    looks: {title: (words that look, words looked at, {name of a head: its weights})};
    weights (T, S), in which rows of zeros draw nothing.
    """
    high = max(
        len(words) for left, right, _ in looks.values() for words in (left, right)
    )
    figure, axes = panels(6.2, 0.25 * high + 1.4, 1, len(looks))
    said = []
    for ax, (title, (looking, columns, heads)) in zip(axes[0], looks.items()):
        ax.set(xlim=(-1.15, 2.15), ylim=(high + 0.6, -1.2))
        ax.set_axis_off()
        ax.set_title(title, size=10.5)
        strong = {i for table in heads.values() for i, r in enumerate(table) if r.any()}
        for x, words, align in ((-0.06, looking, "right"), (1.06, columns, "left")):
            for y, word in enumerate(words):
                weight = "bold" if x < 0 and {y} == strong else "normal"
                ax.text(x, y, word, ha=align, va="center", size=10, weight=weight)
        said += [f"{title}:"]
        for number, (name, table) in enumerate(heads.items()):
            meet = sum(int(table[i].any()) for table in heads.values() for i in strong)
            shift = 0.13 * (number - (len(heads) - 1) / 2) * (meet > len(strong))
            lines(ax, table, OWN[name], shift)  # beside one another, where both look
            for i in sorted(strong):
                if table[i].any():
                    best = columns[int(table[i].argmax())]
                    said.append(f"{name}, {looking[i]} at {best};")
        legend(ax, heads, high)
    figure.alternative = " ".join(said).replace("\n", " ").removesuffix(";") + "."
    return figure


def lines(ax, table, colour, shift):
    """A line for each weight from 0.1, as dark as it is large."""
    for i, row in enumerate(table.tolist()):
        for j, weight in enumerate(row):
            if weight >= 0.1:
                ends = [i + shift, j + shift]
                ax.plot([0, 1], ends, color=colour, lw=2.2, alpha=min(1.0, weight))


def legend(ax, heads, y):
    """The heads' names below, each in its colour."""
    for down, name in enumerate(heads):
        look = {"ha": "center", "va": "center", "size": 9.5}
        ax.text(0.5, y - 0.2 + down, name, color=OWN[name], **look)


# The circuit

PLACES = {"": 0.9, "cat": 3.0, "its": 6.0, "ball": 8.4}  # the first noun differs
DOWN = 7.1  # from one sentence to the other


def circuit_diagram():
    """Which heads carry what from English nouns to a German possessive, in two sentences."""
    figure, ax = canvas((-0.4, 15.6), (-0.7 - DOWN, 6.9), 0.44)
    half(ax, 0, "garden", "Im Garten verlor die Katze ...")
    carried(ax, (3.0, 1.15), (6.0, 2.05), "owner head", "the cat’s: ihr-", STEM)
    half(ax, -DOWN, "house", "Im Haus verlor die Katze ...")
    carried(ax, (0.9, 1.15 - DOWN), (6.0, 2.05 - DOWN), "owner head",
            "the house: no sign of ihr-", WARNING)  # fmt: skip
    for y, stem, colour in ((0, "ihr", STEM), (-DOWN, "sein", WARNING)):
        carried(
            ax, (8.4, 3.15 + y), (6.0, 4.05 + y), "noun head", "the ball: -en", ENDING
        )
        look = {"size": 17, "weight": "bold"}
        ax.text(13.28, 5.5 + y, stem, ha="right", color=colour, **look)
        ax.text(13.28, 5.5 + y, "en", ha="left", color=ENDING, **look)
    ax.text(4.6, 6.55, "encoder", ha="center", weight="bold")
    ax.text(13.2, 6.55, "decoder", ha="center", weight="bold")
    figure.alternative = (
        "Two sentences. Beside the garden the owner head of the encoder's first layer "
        "carries from cat to its that the owner is feminine, which decides the stem ihr. "
        "Beside the house the same head's arrow begins at the house, brings nothing that "
        "says ihr, and the stem is sein. In both the noun head of the second layer "
        "carries from ball to its that what is owned is masculine, which decides the "
        "ending -en. The four heads of the decoder's second cross-attention bring both "
        "from its, and the decoder writes ihren, and seinen."
    )
    return figure


def half(ax, y, noun, begun):
    """One sentence: the lanes of its words, and the way through the cross-attention."""
    for word, x in PLACES.items():
        lane(ax, (x, 0.55 + y), (x, 5.0 + y), 3.2 if word == "its" else 1.6)
        box(ax, (x - 0.75, y - 0.1), (1.5, 0.6), word or noun)
    for bottom, text in ((1.0, "1st layer"), (3.0, "2nd layer")):
        ax.text(-0.35, bottom + 0.75 + y, text, color=GREY, size=9.5, rotation=90,
                va="center")  # fmt: skip
        ax.plot([0, 9.4], [bottom - 0.2 + y] * 2, color=LIGHT, lw=0.8, zorder=0)
    across(ax, y, begun)


def carried(ax, start, end, name, what, colour):
    """An arrow of one head from a word's lane to that of "its"."""
    bend = -0.12 if start[0] < end[0] else 0.12
    arrow = FancyArrowPatch(
        start,
        end,
        connectionstyle=f"arc3,rad={bend}",
        arrowstyle="-|>,head_width=3.5,head_length=6",
        color=colour,
        lw=2.4,
        shrinkA=3,
        shrinkB=4,
        zorder=8,
    )
    ax.add_patch(arrow)
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    letters = {"ha": "center", "color": colour, "zorder": 9}
    back = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
    high, low = (0.72, -0.62) if start[0] < end[0] else (1.15, 0.68)
    ax.text(x, y + high, name, weight="bold", size=10.5, bbox=back, **letters)
    ax.text(x, y + low, what, size=9, bbox=back, **letters)


def across(ax, y, begun):
    """From "its" through the cross-attention to the word that the decoder writes."""
    lane(ax, (13.2, 0.55 + y), (13.2, 5.0 + y), 3.2)
    box(ax, (10.9, y - 0.1), (4.6, 0.6), begun, size=9.5)
    box(
        ax,
        (9.9, 2.95 + y),
        (2.4, 1.4),
        "cross-attention:\nfour heads of\nthe 2nd layer",
        "attention",
        size=9.5,
    )
    for points in (
        [(6.0, 5.3), (6.0, 5.75), (11.1, 5.75), (11.1, 4.4)],
        [(12.35, 3.65), (13.0, 3.65)],
    ):
        *before, last, end = [(x, high + y) for x, high in points]
        ax.plot(*zip(*before, last), color=INK, lw=1.2, zorder=6)
        head = {"arrowstyle": "-|>,head_width=0.16,head_length=0.28", "color": INK}
        ax.annotate("", end, last, arrowprops={**head, "shrinkA": 0, "shrinkB": 0})
