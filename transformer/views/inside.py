"""The pictures of chapter 19: heads that decide, and the circuit that they form."""

from matplotlib.patches import FancyArrowPatch

from transformer.views.attention import arcs
from transformer.views.shapes import box, lane, weights_table
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    LIGHT,
    WARNING,
    canvas,
    panels,
)

BLUE = IDEAS["attention"]
STEM, ENDING = DARK["attention"], DARK["embedding"]


def rivals(nouns, named=(), rival="the cat"):
    """Nouns piled up over how much better each is scored than a rival noun.

    nouns: {noun: (difference of scores, whether the translation is right)}; named: those
    whose dots get their names.
    """
    figure, axes = panels(7.6, 3.1)
    ax = axes[0, 0]
    top = pile(ax, nouns, named) + 8
    ax.axvline(0, color=GREY, lw=0.8, zorder=0)
    ax.set(ylim=(0, top), yticks=[], xlabel=f"score of the noun minus score of {rival}")
    ax.spines["left"].set_visible(False)
    for x, align, text, colour in (
        (-0.15, "right", "ihren: right", BLUE),
        (0.15, "left", "seinen: wrong", WARNING),
    ):
        ax.text(x, top, text, ha=align, va="top", color=colour, weight="bold")
    right = [difference for difference, fine in nouns.values() if fine]
    wrong = [difference for difference, fine in nouns.values() if not fine]
    figure.alternative = (
        f"{len(nouns)} nouns by their score minus that of {rival}. The {len(right)} with "
        f"which the translation is right lie between {min(right):.1f} and "
        f"{max(right):.1f}, the {len(wrong)} with which it is wrong between "
        f"{min(wrong):.1f} and {max(wrong):.1f}."
    ).replace("-", "−")
    return figure


def pile(ax, nouns, named, step=0.3):
    """A dot for each noun, on those of about its difference; the height of the pile."""
    heights: dict[int, int] = {}
    dots = {}
    for noun, (difference, right) in sorted(nouns.items(), key=lambda item: item[1][0]):
        column = round(difference / step)
        heights[column] = heights.get(column, 0) + 1
        dots[noun] = spot = step * column, heights[column]
        ax.plot(*spot, "o", color=BLUE if right else WARNING, ms=5.2, mew=0)
    for noun in named:
        x, y = dots[noun]
        ax.plot(x, y, "o", mfc="none", mec=INK, ms=6.5, mew=1.2)
        line = {"arrowstyle": "-", "color": INK, "lw": 0.8, "shrinkB": 3.5}
        place = x + (1.3 if x > 0 else -1.3), heights[round(x / step)] + 2.5
        ax.annotate(noun, (x, y), place, arrowprops=line, size=9.5, ha="center")
    return max(heights.values())


def silenced(shares, untouched):
    """What is lost with each head silent: a row of bars for each part of a word.

    shares: {part: {(kind, layer, head): share that is still right}}, counted from 1;
    untouched: {part: share}.
    """
    figure, axes = panels(7.8, 1.75 * len(shares) + 0.5, len(shares), sharex=True)
    said = []
    for ax, (part, by_head), colour in zip(axes[:, 0], shares.items(), (STEM, ENDING)):
        lost = [untouched[part] - share for share in by_head.values()]
        colours = [colour if loss > 0.1 else GREY for loss in lost]
        ax.bar(range(len(lost)), lost, color=colours, width=0.62)
        for x, (loss, (kind, layer, head)) in enumerate(zip(lost, by_head)):
            if loss > 0.1:
                name = f"{kind} {layer}.{head}"
                ax.text(x, loss + 0.02, name, ha="center", size=9.5, color=colour)
                said.append(f"{part}: {name} costs {loss:.0%}")
        ax.axhline(0, color=GREY, lw=0.6)
        ax.set(ylim=(-0.04, 0.72), yticks=[0, 0.3, 0.6], ylabel=f"{part} lost")
        ax.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
        ax.spines["bottom"].set_visible(False)
        ax.tick_params(axis="x", length=0)
    names_below(axes[-1, 0], list(next(iter(shares.values()))))
    figure.alternative = (
        "Share of right stems and of right endings that is lost with one head silent. "
        + "; ".join(said)
        + ". All other heads cost less than 10%."
    )
    return figure


def names_below(ax, heads):
    """Numbers of heads under their bars, and the kinds of attention below these."""
    ax.set_xticks(range(len(heads)), [f"{layer}.{head}" for _, layer, head in heads])
    ax.tick_params(axis="x", length=0, labelsize=8.5)
    kinds = {
        "encoder": "encoder",
        "decoder": "decoder, self",
        "cross": "cross-attention",
    }
    for kind, name in kinds.items():
        places = [x for x, (own, *_) in enumerate(heads) if own == kind]
        middle = (places[0] + places[-1]) / 2
        look = {"ha": "center", "va": "top", "color": GREY, "size": 10}
        ax.annotate(name, (middle, 0), (0, -20), xycoords=ax.get_xaxis_transform(),
                    textcoords="offset points", annotation_clip=False, **look)  # fmt: skip


def probes(shares, columns, guesses):
    """What a probe reads, {property: share in each of the columns}, beside a guess."""
    figure, axes = panels(7.4, 0.48 * len(shares) + 1.0)
    table = [[guess, *row] for guess, row in zip(guesses, shares.values())]
    ax = axes[0, 0]
    names = ["best guess", *columns]
    weights_table(ax, table, list(shares), names)
    ax.set_aspect("auto")
    ax.axvline(0.5, color="white", lw=6)
    figure.alternative = "How often a probe reads a property right. " + " ".join(
        f"{name}: guess {row[0]:.2f}; "
        + ", ".join(f"{column} {x:.2f}" for column, x in zip(columns, row[1:]))
        + "."
        for name, row in zip(shares, table)
    )
    return figure


def three_heads(rows):
    """Where one word of each of some sentences looks: (title, words, place, weights)."""
    longest = max(len(words) for _, words, *_ in rows)
    figure, axes = panels(0.8 * longest, 1.9 * len(rows), len(rows))
    said = []
    for ax, (title, words, place, shares) in zip(axes[:, 0], rows):
        ax.set(xlim=(-0.6, longest - 0.4), ylim=(-0.85, 2.6))
        ax.set_axis_off()
        ax.text(-0.5, 2.55, title, va="top", color=GREY, size=10.5)
        shares = [float(share) for share in shares]
        arcs(ax, words, place, shares)
        best = max(range(len(words)), key=lambda i: shares[i])
        looks = f"“{words[place]}” looks most at “{words[best]}” ({shares[best]:.2f})"
        said.append(f"{title}: in “{' '.join(words)}” {looks}.")
    figure.alternative = " ".join(said)
    return figure


# The circuit

PLACES = {"cat": 1.2, "lost": 3.6, "its": 6.0, "ball": 8.4}
LEFT, RIGHT = 1.2, 8.4


def circuit_diagram():
    """Which heads carry what from two English nouns to a German possessive."""
    figure, ax = canvas((-0.4, 15.6), (-0.7, 6.6), 0.5)
    for word, x in PLACES.items():
        lane(ax, (x, 0.55), (x, 5.0), 3.2 if word == "its" else 1.6)
        box(ax, (x - 0.7, -0.1), (1.4, 0.6), word)
    for y, text in ((1.0, "layer 1"), (3.0, "layer 2")):
        ax.text(-0.35, y + 0.55, text, color=GREY, size=9.5, rotation=90, va="center")
        ax.plot([0, 9.4], [y - 0.2, y - 0.2], color=LIGHT, lw=0.8, zorder=0)
    carried(ax, (LEFT, 1.15), (6.0, 2.05), "head 1.3", "whose? the cat’s: ihr", STEM)
    carried(
        ax, (RIGHT, 3.15), (6.0, 4.05), "head 2.1", "of what? the ball: -en", ENDING
    )
    across(ax)
    ax.text(4.8, 6.35, "encoder", ha="center", weight="bold")
    ax.text(13.2, 6.35, "decoder", ha="center", weight="bold")
    figure.alternative = (
        "In layer 1 of the encoder head 1.3 carries from cat to its that the owner is "
        "feminine, which decides the stem ihr. In layer 2 head 2.1 carries from ball to "
        "its that what is owned is masculine, which decides the ending -en. The four "
        "heads of the decoder's second cross-attention fetch both from its, and the "
        "decoder writes ihren. Its own head 2.1 sees whether the verb is due first."
    )
    return figure


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
    high, low = (0.62, -0.55) if start[0] < end[0] else (1.1, 0.68)
    ax.text(x, y + high, name, weight="bold", size=10.5, bbox=back, **letters)
    ax.text(x, y + low, what, size=9, bbox=back, **letters)


def across(ax):
    """From "its" through the cross-attention to the word that the decoder writes."""
    lane(ax, (13.2, 0.55), (13.2, 5.0), 3.2)
    box(ax, (11.3, -0.1), (3.8, 0.6), "Die Katze verlor ...")
    box(
        ax, (10.1, 3.15), (2.0, 1.0), "cross-attention\n2.1 to 2.4", "attention", size=9
    )
    box(ax, (13.75, 1.75), (1.75, 0.9), "head 2.1:\nverb first?", "attention", size=9)
    for points in (
        [(6.0, 5.3), (6.0, 5.75), (11.1, 5.75), (11.1, 4.2)],
        [(12.15, 3.65), (13.0, 3.65)],
        [(13.7, 2.2), (13.4, 2.2)],
    ):
        *before, last, end = points
        ax.plot(*zip(*before, last), color=INK, lw=1.2, zorder=6)
        head = {"arrowstyle": "-|>,head_width=0.16,head_length=0.28", "color": INK}
        ax.annotate("", end, last, arrowprops={**head, "shrinkA": 0, "shrinkB": 0})
    ax.text(13.28, 5.5, "ihr", ha="right", size=17, weight="bold", color=STEM)
    ax.text(13.28, 5.5, "en", ha="left", size=17, weight="bold", color=ENDING)
