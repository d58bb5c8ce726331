"""The pictures of chapter 04: weights, masks, heads, and where a trained head looks."""

import torch
from matplotlib.patches import FancyArrowPatch, Rectangle

from transformer.views.shapes import (
    arrow,
    background,
    box,
    cells,
    weights_bar,
    weights_table,
)
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    LIGHT,
    PALE,
    WARNING,
    canvas,
    panels,
    without_frame,
)

BLUE = IDEAS["attention"]


def weights(tables, words):
    """Tables of weights side by side: {title: (T, T)}."""
    figure, axes = panels(2.9 * len(tables) + 0.6, 3.2, columns=len(tables))
    shown, said = None, []
    for ax, (title, table) in zip(axes[0], tables.items()):
        shown = weights_table(ax, table, words, words)
        ax.set_title(title, weight="bold", pad=10)
        ax.set_xlabel("... takes from")
        most = [words[max(range(len(words)), key=lambda i: row[i])] for row in table]
        even = max(float(row.max() - row.min()) for row in torch.as_tensor(table))
        looks = ", ".join(f"{word} at {other}" for word, other in zip(words, most))
        said.append(f"{title}: {looks if even > 0.01 else 'the same everywhere'}.")
    axes[0, 0].set_ylabel("the word that takes")
    weights_bar(figure, axes[0], shown)
    figure.alternative = "Weights; each word looks most at: " + " ".join(said)
    return figure


def masks(tables, words):
    """Weights under masks side by side, grey where a mask forbids to look.

    tables: {title: (weights (T, T), boolean mask (T, T) or (T,))}.
    """
    T = len(words)
    figure, axes = panels(3.3 * len(tables) + 0.6, 3.5, columns=len(tables))
    shown, said = None, []
    for ax, (title, (table, mask)) in zip(axes[0], tables.items()):
        allowed = torch.as_tensor(mask).expand(T, T)
        shown = weights_table(ax, table, words, words)
        for r, c in (~allowed).nonzero().tolist():
            spot = (c - 0.5, r - 0.5)
            ax.add_patch(Rectangle(spot, 1, 1, fc=FORBIDDEN, ec="white", zorder=4))
        ax.set_title(title, weight="bold", pad=10)
        ax.set_xlabel("... takes from")
        seen = "; ".join(
            f"{words[i]}: {', '.join(words[j] for j in range(T) if allowed[i, j])}"
            for i in range(T)
        )
        said.append(f"{title}: {seen}.")
    axes[0, 0].set_ylabel("the word that takes")
    weights_bar(figure, axes[0], shown)
    figure.alternative = (
        "Weights, and in grey whom a mask hides. Each word may look at: "
        + " ".join(said)
    )
    return figure


# Heads

FORBIDDEN = "#dcdce2"
ROWS = {"queries": 8.1, "keys": 6.3, "values": 4.5, "attention": 2.85, "joined": 1.2}
CUT, FIRST, PITCH, WIDE, HIGH = 4.3, 7.1, 1.25, 0.86, 1.2  # matrices, columns, strips
FOLLOWED = 3  # the head whose strips are dark


def splitting_heads(words, d_model=512, h=8):
    """Three wide matrices, cut into h strips, attended to side by side, joined again."""
    end = FIRST + PITCH * (h - 1) + WIDE
    figure, ax = canvas((-0.2, end + 4.3), (0, 9.9), 0.385)
    shades = [BLUE if i + 1 == FOLLOWED else PALE["attention"] for i in range(h)]
    cut_matrices(ax, words, d_model, shades)
    for i, shade in enumerate(shades):
        column(ax, FIRST + PITCH * i, i + 1, shade, len(words))
    named = {"va": "center", "weight": "bold"}
    for name in ("queries", "keys", "values"):
        ax.text(end + 0.4, ROWS[name], name, **named)
    blue = DARK["attention"]
    ax.text(end + 0.4, ROWS["attention"], "attention", color=blue, **named)
    y = ROWS["joined"]
    ax.text(FIRST - 0.3, y, "joined", ha="right", **named)
    arrow(ax, (end + 0.2, y), (end + 1.9, y), colour=GREY)
    ax.text(end + 1.0, y + 0.2, "$W_O$", ha="center")
    named_rows(ax, (end + 2.2, y - 0.8), (1.8, 1.6), words)
    ax.text(end + 3.1, y + 1.05, "output", ha="center", **named)
    figure.alternative = (
        f"Words, each {d_model} wide, pass three matrices of {d_model} columns, which are "
        f"cut into {h} strips of {d_model // h}. Head {FOLLOWED} is dark: it attends with "
        f"strip {FOLLOWED} of the queries, keys and values, and every other head with its "
        "own; the results are joined and pass a last matrix."
    )
    return figure


def cut_matrices(ax, words, d_model, shades):
    """The words, and the three matrices that they pass, each cut into strips."""
    small = {"size": 9, "color": GREY, "ha": "center", "va": "top"}
    middle, centre = ROWS["keys"], CUT + 0.85
    named_rows(ax, (0.4, middle - 0.8), (1.8, 1.6), words)
    ax.text(1.3, middle - 0.9, f"each {d_model} wide", **small)
    for name in ("queries", "keys", "values"):
        y = ROWS[name]
        left = CUT - 0.25, y
        arrow(ax, (2.4, middle), (2.9, middle), (2.9, y), left, colour=GREY)
        cells(ax, (CUT, y - HIGH / 2), (1.7, HIGH), 1, shades)
        ax.text(centre, y + HIGH / 2 + 0.12, f"$W_{name[0].upper()}$", ha="center")
        arrow(ax, (CUT + 1.9, y), (FIRST - 0.25, y), colour=GREY)
    strips = f"{len(shades)} strips of {d_model // len(shades)}"
    ax.text(centre, ROWS["values"] - 0.8, f"{d_model} × {d_model},\n{strips}", **small)


def named_rows(ax, corner, size, words):
    """A row for each word, named inside it, the first on top."""
    cells(ax, corner, size, len(words), [LIGHT])
    (x, y), (wide, high) = corner, size
    for i, word in enumerate(words):
        place = y + high * (len(words) - i - 0.5) / len(words)
        ax.text(x + wide / 2, place, word, ha="center", va="center", size=9, zorder=4)


def column(ax, x, number, shade, rows):
    """A column: a head's strips of queries, keys and values, its attention, its result."""
    background(ax, (x - 0.05, 3.75), (WIDE + 0.1, 5.1))
    middle = x + WIDE / 2
    weight = "bold" if number == FOLLOWED else "normal"
    ax.text(middle, 9.1, f"head {number}", ha="center", size=9, weight=weight)
    for name in ("queries", "keys", "values", "joined"):
        cells(ax, (x, ROWS[name] - HIGH / 2), (WIDE, HIGH), rows, [shade, shade])
    y = ROWS["attention"]
    arrow(ax, (middle, 3.7), (middle, y + 0.33), colour=GREY, width=0.9)
    box(ax, (x, y - 0.3), (WIDE, 0.6), f"{number}", "attention")
    arrow(
        ax, (middle, y - 0.33), (middle, ROWS["joined"] + 0.65), colour=GREY, width=0.9
    )


def look_ups(tables, asked):
    """Bars of weight over pairs for n queries: {title: (n, S)}, asked (n, 2)."""
    n = len(asked)
    options = {"sharex": True, "sharey": True}
    figure, axes = panels(7.6, 0.85 * n + 0.7, n, len(tables), **options)
    for column, (title, table) in enumerate(tables.items()):
        S = table.shape[1]
        for ax, row, pair in zip(axes[:, column], table, asked.tolist()):
            for name, place in zip(("1st", "2nd"), pair):
                ax.axvspan(place + 0.55, place + 1.45, color="#ececef", zorder=0, lw=0)
                ax.text(place + 1, 1.07, name, ha="center", size=8.5, color=GREY)
            ax.bar(range(1, S + 1), row.tolist(), color=BLUE, width=0.56, zorder=2)
            ax.set(ylim=(0, 1.05), yticks=[0, 1], xticks=range(1, S + 1))
            ax.set_xlim(0.4, S + 0.6)
            without_frame(ax)
        axes[0, column].set_title(title, pad=16)
        axes[-1, column].set_xlabel("pair")
    figure.text(0.01, 0.015, "blue: weight\ngrey: asked for", size=8.5, color=GREY)
    for ax, pair in zip(axes[:, 0], asked.tolist()):
        look = {"rotation": 0, "ha": "right", "va": "center"}
        first, second = (place + 1 for place in pair)
        ax.set_ylabel(f"asks for\n{first}, then {second}", **look)
    figure.alternative = (
        "Bars of weight over the pairs; grey marks the pairs asked for. "
        + " ".join(
            f"{title}: most weight on pairs "
            f"{', '.join(str(int(i) + 1) for i in t.argmax(1))}."
            for title, t in tables.items()
        )
    )
    return figure


def looks(maps, word, layer, head, german, marks=None):
    """From a word of each sentence to the others, arcs as thick as an encoder head's
    weights.

    layer and head count from 0. german: the translations; marks: of each the word to
    look at, a verdict, and whether it is right, where there is one.
    """
    sentences = [one.source[:-1] for one in maps]
    shares = [
        one.encoder[layer, head, words.index(word)].tolist()
        for one, words in zip(maps, sentences)
    ]
    marks = marks or [(sentence, "", True) for sentence in german]
    return looks_of(sentences, word, shares, german, marks)


def looks_of(sentences, word, shares, german, marks):
    """`looks` for sentences as lists of words, and what `word` takes from each of them."""
    longest = max(map(len, sentences))
    figure, axes = panels(
        min(0.92 * longest, 8.3), 2.1 * len(sentences), len(sentences)
    )
    said = []
    rows = zip(axes[:, 0], sentences, shares, german, marks)
    for ax, words, row, translation, mark in rows:
        ax.set(xlim=(-0.6, longest - 0.4), ylim=(-1.6, 1.45))
        ax.set_axis_off()
        arcs(ax, words, words.index(word), row)
        verdict(ax, translation, *mark, right_edge=longest - 0.45)
        best = max(range(len(words)), key=lambda i: row[i])
        looked = f"“{word}” looks at “{words[best]}” ({row[best]:.2f})"
        said.append(f"{' '.join(words)} {looked}; {mark[1] or translation}.")
    figure.alternative = " ".join(said)
    return figure


def side_by_side(words, word, weights, heads):
    """Where a word looks in each of several heads, weights (h, T), one above the other.

    heads: {what a head asks: what it brings home, or "" where that is not known}.
    """
    figure, axes = panels(1.25 * len(words) + 2.4, 1.75 * len(heads), len(heads))
    start, said = words.index(word), []
    for ax, row, (asked, brought) in zip(axes[:, 0], weights.tolist(), heads.items()):
        ax.set(xlim=(-1.9, len(words) + 0.4), ylim=(-0.75, 1.2))
        ax.set_axis_off()
        arcs(ax, words, start, row)
        ax.text(-0.7, 0, asked, ha="right", va="center", weight="bold")
        best = max(range(len(words)), key=lambda i: row[i])
        if brought:
            ax.text(len(words) - 0.3, 0, f"brings “{brought}”", va="center", color=GREY)
        said.append(f"{asked} “{word}” looks at “{words[best]}” ({row[best]:.2f}).")
    figure.alternative = " ".join(said)
    return figure


def arcs(ax, words, start, shares):
    """A sentence, and arcs from one of its words."""
    for place, (word, share) in enumerate(zip(words, shares)):
        bold = "bold" if place == start else "normal"
        ax.text(place, 0, word, ha="center", va="center", size=12.5, weight=bold)
        if share > 0.02 and place != start:
            bend = min(0.36, 1.4 / abs(place - start))  # long arcs are flatter
            bend = bend if place < start else -bend
            arc = FancyArrowPatch(
                (start, 0.3),
                (place, 0.3),
                connectionstyle=f"arc3,rad={bend}",
                arrowstyle="-",
                color=BLUE,
                lw=0.6 + 7 * share,
                alpha=0.35 + 0.6 * share,
                capstyle="round",
            )
            ax.add_patch(arc)
            ax.text(place, -0.48, f"{share:.2f}", ha="center", color=DARK["attention"])


def verdict(ax, translation, mark, judgement, right, right_edge):
    """The translation with one word marked, and what is to be said of it."""
    colour = INK if right else WARNING
    before, _, after = translation.partition(mark)
    look = {"size": 11.5, "style": "italic", "va": "center", "annotation_clip": False}
    text = ax.annotate(before, (-0.3, -1.25), color=GREY, **look)
    for part, shade, weight in ((mark, colour, "bold"), (after, GREY, "normal")):
        look |= {"weight": weight, "style": "normal" if weight == "bold" else "italic"}
        place = {"xycoords": text, "xytext": (1, 0), "va": "bottom"}
        spot = {**look, **place, "textcoords": "offset points"}
        text = ax.annotate(part, (1, 0), color=shade, **spot)
    ax.text(right_edge, -1.25, judgement, ha="right", va="center", color=colour)
