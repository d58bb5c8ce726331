"""The pictures of chapter 15: how sure a model was, how outputs fall, what a beam gains,
what a cache saves, BLEU's runs, and what luck can do."""

import math
from collections import Counter

from matplotlib.patches import Rectangle

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
            place, share + 0.03, f"{share:.0%}", ha="center", size=9.5, color=colour
        )
    ax.set_xticks(places, pieces, size=10.5)
    ax.set(ylim=(0, 1.15), ylabel="probability")
    ax.set_yticks([0, 1], ["0%", "100%"])
    without_frame(ax)
    listed = ", ".join(f"{piece} {share:.0%}" for piece, share in zip(pieces, shares))
    figure.alternative = f"How likely each piece of the output was: {listed}."
    return figure


def _fall(ax, name, pieces, steps, colour, bottom):
    """One curve of `falling`; below `bottom` it leaves the picture."""
    sums = [sum(steps[:n]) for n in range(len(steps) + 1)]
    beyond = sums[-1] < bottom
    ax.plot(range(len(sums)), sums, color=colour, zorder=1 if beyond else 2)
    text = f"{name}\n{signed(sums[-1])} after {len(steps)} tokens"
    look = {"color": colour, "va": "center"}
    if beyond:
        last = next(n for n, value in enumerate(sums) if value < bottom)
        ax.text(last - 1.2, 0.9 * bottom, f"↓ {text}", ha="right", **look)
        return
    ax.plot(len(steps), sums[-1], "o", color=colour, ms=6)
    ax.text(len(steps) + 0.6, sums[-1], text, **look)
    for place, (piece, step) in enumerate(zip(pieces, steps)):
        if step < -1:
            middle = (sums[place] + sums[place + 1]) / 2
            ax.text(place + 0.9, middle, f"“{piece}” {signed(step)}", size=9.5, **look)


def falling(curves):
    """log P of outputs while they grow: {output: (its pieces, log P of each)}.

    A step that costs more than one nat has its piece beside it. Of the third output, in
    grey, only what is not far below the first two is shown.
    """
    figure, axes = panels(7.4, 3.5)
    ax = axes[0, 0]
    bottom = 1.35 * min([sum(steps) for _, steps in curves.values()][:2])
    said = []
    for (name, curve), colour in zip(curves.items(), (WARNING, BLUE, GREY)):
        _fall(ax, name, *curve, colour, bottom)
        total, tokens = signed(sum(curve[1])), len(curve[1])
        said.append(f"{name} falls to {total} in {tokens} tokens")
    longest = max(len(steps) for _, steps in curves.values())
    ax.set(
        xlim=(0, longest + 10),
        ylim=(bottom, 0.4),
        xlabel="tokens written",
        ylabel="log P so far (nats)",
    )
    ax.set_xticks(range(0, longest + 1, 5))
    figure.alternative = f"{'; '.join(said)}."
    return figure


def gains(curves):
    """What a beam gains over greedy search, for each α: {sentences: {α: BLEU}}.

    What loses more than the picture shows has its loss and an arrow at the bottom.
    """
    figure, axes = panels(7.4, 3.3)
    ax = axes[0, 0]
    low, small = -1.6, {"size": 9.5}
    ax.axhline(0, color=INK, lw=1)
    ax.text(2.3, 0.06, "as greedy search", ha="right", va="bottom", **small)
    ax.axvline(0.6, color=GREY, lw=1, ls=":")
    ax.text(0.62, low + 0.1, "the paper's α", color=GREY, **small)
    said = []
    # the side of its start where a line's name is; its right or left for a loss
    ends = [("bottom", 0.12, 1.79, "right"), ("top", -0.14, 1.96, "left")]
    for (name, points), colour, end in zip(curves.items(), SERIES, ends):
        va, off, place, ha = end
        ax.plot(list(points), list(points.values()), "o-", ms=5, color=colour)
        ax.text(0.02, points[0.0] + off, name, color=colour, va=va, weight="bold")
        for a, gain in points.items():
            if gain <= low:
                text = f"↓ {signed(gain)} at {a:g}"
                ax.text(place, low + 0.1, text, color=colour, ha=ha, **small)
        listed = ", ".join(f"{signed(gain)} at {a:g}" for a, gain in points.items())
        said.append(f"{name}: {listed}")
    ax.set(xlim=(-0.05, 2.35), ylim=(low, 1.3))
    ax.set(xlabel="α, the strength of the length penalty")
    ax.set(ylabel="BLEU, minus greedy search's")
    ax.set_yticks([-1, 0, 1], ["−1", "0", "+1"])
    figure.alternative = (
        f"BLEU of a beam of four above greedy search. {'; '.join(said)}."
    )
    return figure


def _steps(ax, left, pieces, kept):
    """One triangle of `cache`: a row a step, named after the piece that it chooses."""
    n = len(pieces)
    for step in range(n):
        for place in range(step + 1):
            stored = kept and place < step
            fill = "white" if stored else BLUE if place == step else WARNING
            look = {"fc": fill, "ec": LIGHT if stored else "white", "lw": 0.8}
            corner = (left + place + 0.05, -step - 0.95)
            ax.add_patch(Rectangle(corner, 0.9, 0.9, **look))
        look = {"ha": "right", "va": "center", "size": 9}
        ax.text(left - 0.15, -step - 0.5, pieces[step], **look)
    for place, piece in enumerate(["(begin)", *pieces[:-1]]):
        look = {"rotation": 50, "ha": "left", "va": "bottom", "size": 9}
        ax.text(left + place + 0.3, 0.1, piece, **look)
    look = {"ha": "right", "va": "bottom", "size": 9, "color": GREY}
    ax.text(left - 0.15, 0.1, "chooses", **look)


def cache(pieces):
    """Which positions each step of writing an output computes, without a cache and with one.

    A row is a step, named after the piece that it chooses; it reads the columns.
    """
    n = len(pieces)
    figure, ax = canvas((-3.4, 2 * n + 4.2), (-n - 1.4, 3.1), 0.29)
    for kept, left in ((False, 0), (True, n + 3)):
        _steps(ax, left, pieces, kept)
        total = n if kept else n * (n + 1) // 2
        title = "with a cache" if kept else "without a cache"
        text = f"{title}: {total} positions in all"
        ax.text(left, -n - 0.75, text, weight="bold", va="center")
        ax.text(left + n, -1.2, "new", color=BLUE, ha="right", weight="bold")
        other, colour = ("kept", GREY) if kept else ("computed again", WARNING)
        ax.text(left + n, -2.3, other, color=colour, ha="right", weight="bold")
    figure.alternative = (
        f"A row for each of {n} steps, a column for each position that it reads, from "
        f"(begin) to {pieces[-2]}. Without a cache each step computes all positions "
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


def bootstrap(differences):
    """Differences in BLEU over redrawn test sets, with the middle 95%: {name: values}.

    Red is a loss and blue a gain that the bar shows clear of zero, grey could be either.
    """
    figure, axes = panels(
        7.2, 1.05 * len(differences) + 0.5, len(differences), sharex=True
    )
    said = []
    for ax, (name, values) in zip(axes[:, 0], differences.items()):
        ordered = sorted(float(value) for value in values)
        n = len(ordered)
        low, high = ordered[round(0.025 * n)], ordered[round(0.975 * n) - 1]
        colour, verdict = GREY, "on both sides of zero"
        if low > 0 or high < 0:
            colour, verdict = (BLUE, "better") if low > 0 else (WARNING, "worse")
        ax.hist(ordered, bins=40, color=colour, alpha=0.75)
        top = ax.get_ylim()[1]
        ax.plot([low, high], [-0.1 * top] * 2, color=INK, lw=3, solid_capstyle="butt")
        ax.axvline(0, color=INK, lw=1)
        ax.set_title(name, loc="left", color=colour)
        ax.set(ylim=(-0.2 * top, 1.08 * top), yticks=[])
        ax.spines["left"].set_visible(False)
        said.append(f"{name}: from {signed(low, 2)} to {signed(high, 2)}, {verdict}")
    axes[-1, 0].set_xlabel("worse  ←  BLEU, minus greedy search  →  better")
    figure.alternative = f"The middle 95% of the draws. {'; '.join(said)}."
    return figure
