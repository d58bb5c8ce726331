"""The pictures of chapter 04: weights, masks, heads, and where a trained head looks."""

import torch
from matplotlib.patches import FancyArrowPatch

from transformer.views.shapes import arrow, box, cells, weights_bar, weights_table
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    LIGHT,
    WARNING,
    canvas,
    panels,
    weights_map,
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


COLUMNS = {"word": 0.55, "key": 2.3, "score": 4.3, "weight": 5.6, "value": 9.1}


def masks(tables, words):
    """Who may look at whom: {title: boolean (T, T) or (T,)}, blue where allowed."""
    T = len(words)
    figure, axes = panels(2.55 * len(tables) + 0.4, 3.1, columns=len(tables))
    said = []
    for ax, (title, mask) in zip(axes[0], tables.items()):
        allowed = mask.expand(T, T)
        rows = words if ax is axes[0, 0] else [""] * T
        weights_table(ax, 0.72 * allowed, rows, words, numbers=False)
        ax.set_title(title, pad=10, weight="bold")
        ax.tick_params(axis="x", labelrotation=40, labelsize=9.5)
        for label in ax.get_xticklabels():
            label.set(ha="left", rotation_mode="anchor")
        seen = "; ".join(
            f"{words[i]}: {', '.join(words[j] for j in range(T) if allowed[i, j])}"
            for i in range(T)
        )
        said.append(f"{title}: {seen}.")
    axes[0, 0].set_ylabel("the word that looks")
    figure.supxlabel("blue: may be looked at", size=10, color=DARK["attention"])
    figure.alternative = "Who may look at whom. " + " ".join(said)
    return figure


# Heads

HEIGHTS = (4.95, 3.25, 1.55, -1.15)  # of the strips that are shown: three, and the last
WIDE = (0.1, 1.9), (4.5, -1.15), (14.2, 1.9), (18.0, 1.9)  # blocks with their sizes
PRODUCTS = 4.95, 1.9, -1.15  # of queries, keys and values


def splitting_heads(d_model=512, h=8):
    """Three wide products, cut into h heads, attended to side by side, joined again."""
    figure, ax = canvas((0, 20.4), (-3.0, 6.6), 0.39)
    shades = [weights_map()(0.2 + 0.45 * i / (h - 1)) for i in range(h)]
    middle = 1.9
    blocks = [
        (0.1, middle, "words", [LIGHT]),
        (14.2, middle, "joined", shades),
        (18.0, middle, "output", [LIGHT]),
    ]
    for name, y in zip(("queries", "keys", "values"), PRODUCTS):
        blocks.append((4.5, y, name, shades))
        arrow(ax, (2.5, middle), (3.0, middle), (3.0, y), (4.4, y), colour=GREY)
        ax.text(3.7, y + 0.2, f"$W_{name[0].upper()}$", ha="center")
    for x, y, name, colours in blocks:
        cells(ax, (x, y - 0.8), (2.3, 1.6), 4, colours)
        ax.text(x + 1.15, y + 1.0, name, ha="center", weight="bold")
    small = {"va": "top", "size": 9, "color": GREY}
    for x, y in WIDE:
        ax.text(x + 1.15, y - 0.95, f"T × {d_model}", ha="center", **small)
    strips(ax, shades, h, middle)
    arrow(ax, (16.6, middle), (17.9, middle), colour=GREY)
    ax.text(17.2, middle + 0.2, "$W_O$", ha="center")
    ax.text(7.9, -2.1, f"each head gets {d_model // h} columns of all three", **small)
    figure.alternative = (
        "Words pass three matrices, which make queries, keys and values of width "
        f"{d_model}; each is cut into {h} strips of {d_model // h}; head 1 attends "
        "with the first strip of all three, head 2 with the second, and so on; the "
        "results are joined and pass a last matrix."
    )
    return figure


def strips(ax, shades, h, middle):
    """Strips and their attentions, with ways from the three products and to the joined."""
    for y in PRODUCTS:
        ax.plot([6.9, 7.3], [y, y], color=GREY, lw=0.9)
    ax.plot([7.3, 7.3], [HEIGHTS[-1], HEIGHTS[0]], color=GREY, lw=0.9)
    for head, y in zip((0, 1, 2, h - 1), HEIGHTS):
        arrow(ax, (7.3, y), (7.8, y), colour=GREY, width=0.9)
        for number, name in enumerate("QKV"):
            place = 7.9 + 0.55 * number, y - 0.55
            cells(ax, place, (0.42, 1.1), 4, [shades[head]])
            if head == 0:
                ax.text(place[0] + 0.21, y + 0.7, f"${name}_1$", ha="center", size=9)
        arrow(ax, (9.6, y), (10.1, y), colour=GREY, width=0.9)
        box(ax, (10.2, y - 0.36), (2.45, 0.72), f"attention {head + 1}", "attention")
        ax.plot([12.75, 13.4, 13.4], [y, y, middle], color=GREY, lw=0.9)
    arrow(ax, (13.4, middle), (14.1, middle), colour=GREY, width=0.9)
    ax.text(11.42, 0.2, "...", ha="center", va="center", size=14, color=GREY)


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
    for number, ax in enumerate(axes[:, 0], 1):
        look = {"rotation": 0, "ha": "right", "va": "center"}
        ax.set_ylabel(f"query {number}", **look)
    figure.alternative = (
        "Bars of weight over the pairs; grey marks the pairs asked for. "
        + " ".join(
            f"{title}: most weight on pairs "
            f"{', '.join(str(int(i) + 1) for i in t.argmax(1))}."
            for title, t in tables.items()
        )
    )
    return figure


def looks(maps, word, layer, head, german, marks):
    """From a word of each sentence to the others, arcs as thick as an encoder head's
    weights.

    layer and head count from 0. german: the translations; marks: of each the word to
    look at, a verdict, and whether it is right.
    """
    longest = max(len(one.source) for one in maps) - 1
    figure, axes = panels(min(0.92 * longest, 8.3), 2.1 * len(maps), len(maps))
    said = []
    for ax, one, translation, mark in zip(axes[:, 0], maps, german, marks):
        words = one.source[:-1]
        shares = one.encoder[layer, head, words.index(word)].tolist()
        ax.set(xlim=(-0.6, longest - 0.4), ylim=(-1.6, 1.45))
        ax.set_axis_off()
        arcs(ax, words, words.index(word), shares)
        verdict(ax, translation, *mark, right_edge=longest - 0.45)
        best = max(range(len(words)), key=lambda i: shares[i])
        looked = f"“{word}” looks at “{words[best]}” ({shares[best]:.2f})"
        said.append(f"{' '.join(words)} {looked}; {mark[1]}.")
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
