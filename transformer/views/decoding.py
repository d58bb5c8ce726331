"""The pictures of chapter 15: how sure a model was, how outputs fall, what a cache
saves, BLEU's runs, what a beam and averaging gain, and what luck can do."""

import math
from collections import Counter

from matplotlib.patches import Rectangle

from transformer.views.labels import label_ends
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    LIGHT,
    SERIES,
    WARNING,
    canvas,
    panels,
    without_frame,
)

BLUE = IDEAS["attention"]


def signed(number, digits=1):
    """A number with a real minus."""
    return f"{number:.{digits}f}".replace("-", "−")


def sure(pieces, log_ps):
    """An output, and over each piece how likely it was; below one half in red."""
    figure, axes = panels(7.6, 2.3)
    ax = axes[0, 0]
    widths = [max(1.0, len(piece) / 5.4) for piece in pieces]
    places = [sum(widths[:i]) + wide / 2 for i, wide in enumerate(widths)]
    shares = [math.exp(log_p) for log_p in log_ps]
    for place, share in zip(places, shares):
        colour = BLUE if share > 0.5 else WARNING
        ax.bar(place, share, width=0.66, color=colour)
        ax.text(
            place, share + 0.03, f"{share:.2f}", ha="center", size=9.5, color=colour
        )
    ax.set_xticks(places, pieces, size=10.5)
    ax.set(ylim=(0, 1.15), yticks=[0, 1], ylabel="probability")
    without_frame(ax)
    listed = ", ".join(f"{piece} {share:.2f}" for piece, share in zip(pieces, shares))
    figure.alternative = f"How likely each piece of the output was: {listed}."
    return figure


def falling(curves, marks):
    """log P of outputs while they grow: {output: [log P of each token]}.

    marks: {output: [(place, word), ...]} names steep falls.
    """
    figure, axes = panels(6.8, 3.0)
    ax = axes[0, 0]
    said = []
    for (name, steps), colour in zip(curves.items(), (WARNING, BLUE)):
        sums = [sum(steps[:n]) for n in range(len(steps) + 1)]
        ax.plot(range(len(sums)), sums, color=colour)
        ax.plot(len(steps), sums[-1], "o", color=colour, ms=6)
        text = f"{name}\n{signed(sums[-1])} after {len(steps)} tokens"
        ax.text(len(steps) + 0.6, sums[-1], text, color=colour, va="center")
        for place, word in marks.get(name, ()):
            middle = (sums[place] + sums[place + 1]) / 2
            look = {"ha": "right", "style": "italic", "color": GREY, "size": 9.5}
            ax.text(place + 0.3, middle - 0.2, word, va="center", **look)
        said.append(f"{name} falls to {signed(sums[-1])} in {len(steps)} tokens")
    longest = max(map(len, curves.values()))
    lowest = min(sum(steps) for steps in curves.values())
    ax.set(
        xlim=(0, longest + 10),
        ylim=(1.2 * lowest, 0.4),
        xlabel="tokens written",
        ylabel="log P so far",
    )
    ax.set_xticks(range(0, longest + 1, 5))
    figure.alternative = f"{' and '.join(said)}."
    return figure


def cache(pieces):
    """Which positions each step computes, without a cache and with one."""
    n = len(pieces)
    figure, ax = canvas((-1.2, 2 * n + 2.2), (-n - 1.4, 2.4), 0.29)
    for number, (left, title) in enumerate(
        ((0, "without a cache"), (n + 2, "with one"))
    ):
        for step in range(n):
            for place in range(step + 1):
                new = place == step
                kept = number and not new
                fill = "white" if kept else BLUE if new else WARNING
                look = {"fc": fill, "ec": LIGHT if kept else "white", "lw": 0.8}
                corner = (left + place + 0.05, -step - 0.95)
                ax.add_patch(Rectangle(corner, 0.9, 0.9, **look))
        for place, piece in enumerate(pieces):
            look = {"rotation": 50, "ha": "left", "va": "bottom", "size": 9}
            ax.text(left + place + 0.3, 0.1, piece, **look)
        total = n if number else n * (n + 1) // 2
        text = f"{title}: {total} computed"
        ax.text(left, -n - 0.75, text, weight="bold", va="center")
        ax.text(left + n, -1.2, "new", color=BLUE, ha="right", weight="bold")
        other, colour = ("kept", GREY) if number else ("computed again", WARNING)
        ax.text(left + n, -2.3, other, color=colour, ha="right", weight="bold")
    ax.text(-0.6, -n / 2, "step", rotation=90, va="center", ha="center", color=GREY)
    figure.alternative = (
        f"A row for each of {n} steps. Without a cache each step computes all positions "
        f"so far again, {n * (n + 1) // 2} in all; with one only the newest, {n} in all."
    )
    return figure


def bleu_runs(output, reference):
    """Every run of one to four words of an output: blue where the reference has it."""
    ours, theirs = output.split(), reference.split()
    figure, ax = canvas((-1.9, 11.6), (-8.1, 1.7), 0.56)
    lines = {"reference": (theirs, 1.2, {"color": GREY})}
    lines["output"] = ours, 0.3, {"weight": "bold"}
    for name, (words, y, look) in lines.items():
        ax.text(-1.85, y, name, va="center", **look)
        for place, word in enumerate(words):
            ax.text(place + 0.5, y, word, ha="center", va="center", **look)
    look = {"color": DARK["attention"], "weight": "bold", "va": "center"}
    y, said = -0.75, []
    for n in (1, 2, 3, 4):
        left = Counter(zip(*(theirs[i:] for i in range(n))))
        hits = 0
        for place in range(len(ours) - n + 1):
            run = tuple(ours[place : place + n])
            hit = left[run] > 0
            left[run] -= hit
            hits += hit
            ends = place + 0.12, place + n - 0.12
            line = {"color": BLUE if hit else WARNING, "solid_capstyle": "butt"}
            ax.plot(ends, [y - place % n * 0.5] * 2, lw=4, **line)
        middle, count = y - (n - 1) * 0.25, len(ours) - n + 1
        ax.text(-1.85, middle, f"runs of {n}", va="center")
        ax.text(9.5, middle, f"{hits} of {count}", **look)
        said.append(f"{hits} of {count} runs of {n}")
        y -= n * 0.5 + 0.75
    figure.alternative = f"Output “{output}”, reference “{reference}”. The reference has {', '.join(said)}."
    return figure


def beam_width(bleu, length):
    """BLEU and words written against K: {name: {K: figure}} each."""
    figure, axes = panels(7.8, 3.0, columns=2)
    said = []
    titles = ("BLEU", "words written, % of the reference's")
    for ax, figures, title in zip(axes[0], (bleu, length), titles):
        for (name, curve), colour in zip(figures.items(), (GREY, BLUE)):
            values = list(curve.values())
            look = {"color": colour, "marker": "o", "ms": 4.5, "label": name}
            ax.plot(range(len(values)), values, **look)
            ends = f"{values[0]:.1f} to {values[-1]:.1f}"
            said.append(f"{title}, {name}, from {ends}")
        ax.set_xticks(range(len(curve)), list(curve))
        ax.set(title=title, xlabel="K (1 is greedy search)")
        ax.grid(axis="y")
        label_ends(ax)
    figure.alternative = f"From K = 1 to the widest beam. {'; '.join(said)}."
    return figure


def alphas(curves, low=-3):
    """BLEU over alpha, beside that at the paper's 0.6: {corpus: {alpha: BLEU}}.

    What lies below `low` is written at the edge.
    """
    figure, axes = panels(7.2, 3.0)
    ax = axes[0, 0]
    said = []
    for (name, curve), colour in zip(curves.items(), (BLUE, SERIES[0])):
        places = list(curve)
        values = [curve[a] - curve[0.6] for a in places]
        ax.plot(places, values, color=colour, marker="o", ms=4.5)
        inside = [i for i, value in enumerate(values) if value > low]
        end, beyond = inside[-1], values[-1]
        text = f"{name}: {signed(beyond, 0)} at α = {places[-1]:g}"
        first = colour == BLUE  # its name is left of its fall, the other's right of it
        x, y = places[end] + (-0.05 if first else 0.09), values[end]
        y += -0.6 if first else 0.3
        side = "right" if first else "left"
        ax.text(x, y, text, color=colour, va="center", ha=side)
        best = max(range(len(values)), key=lambda i: values[i])
        gain = signed(values[best])
        said.append(f"{name}: at most {gain} more, at {places[best]:g}; {text}")
    ax.axvline(0.6, color=GREY, lw=0.8, ls=":", zorder=0)
    ax.text(0.63, low + 0.15, "the paper's α", color=GREY, va="bottom")
    ax.axhline(0, color=GREY, lw=0.7, zorder=0)
    ax.set(ylim=(low, 1.1), xlim=(-0.05, 3.1), xlabel="length penalty α")
    ax.set_xticks([0, 0.3, 0.6, 1, 1.4, 1.8, 2.2])
    ax.set_ylabel("BLEU, minus that at 0.6")
    figure.alternative = f"BLEU beside that at 0.6. {'. '.join(said)}."
    return figure


def averaging(updates, steps, mean):
    """Scores of the last checkpoints, and of the mean of their weights."""
    figure, axes = panels(6.4, 2.7)
    ax = axes[0, 0]
    ax.plot(updates, steps, "o", color=GREY, ms=6)
    between = updates[1] - updates[0]
    x = updates[-1] + 1.4 * between
    ax.plot(x, mean, "o", color=BLUE, ms=9)
    ax.axhline(mean, color=BLUE, lw=0.8, ls=":", zorder=0)
    for place, value in zip([*updates, x], [*steps, mean]):
        colour = BLUE if place == x else GREY
        ax.annotate(
            f"{value:.1f}", (place, value), (0, 7), textcoords="offset points",
            ha="center", color=colour,
        )  # fmt: skip
    ax.set_xticks([*updates, x], [*map("{:,}".format, updates), "their mean"])
    ax.set(xlabel="weights after update", ylabel="% of sentences right")
    low, high = min([*steps, mean]), max([*steps, mean])
    ax.set_ylim(low - 0.15 * (high - low), high + 0.3 * (high - low))
    listed = ", ".join(f"{value:.1f}" for value in steps)
    figure.alternative = (
        f"Right to the letter, in per cent: the last {len(steps)} checkpoints {listed}; "
        f"the mean of their weights {mean:.1f}."
    )
    return figure


def bootstrap(differences):
    """Differences in BLEU over redrawn test sets, with the middle 95%: {name: values}."""
    rows = len(differences)
    figure, axes = panels(7.2, 1.5 * rows + 0.5, rows, sharex=True)
    said = []
    for ax, (name, values) in zip(axes[:, 0], differences.items()):
        ordered = sorted(float(value) for value in values)
        n = len(ordered)
        low, high = ordered[round(0.025 * n)], ordered[round(0.975 * n) - 1]
        clear = low > 0 or high < 0
        colour = BLUE if clear else GREY
        ax.hist(ordered, bins=40, color=colour, alpha=0.75)
        top = ax.get_ylim()[1]
        ax.plot([low, high], [-0.08 * top] * 2, color=INK, lw=3, solid_capstyle="butt")
        ax.axvline(0, color=INK, lw=1)
        ax.set_title(name, loc="left", color=colour)
        ax.set(ylim=(-0.16 * top, 1.08 * top), yticks=[])
        ax.spines["left"].set_visible(False)
        place = "clear of zero" if clear else "on both sides of zero"
        said.append(f"{name}: from {signed(low, 2)} to {signed(high, 2)}, {place}")
    axes[-1, 0].set_xlabel("difference in BLEU on redrawn sets (bar: the middle 95%)")
    figure.alternative = f"The middle 95% of the draws. {'; '.join(said)}."
    return figure
