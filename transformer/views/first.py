"""The pictures of chapter 00: waves of positions, what the decoder may see, the
diagonal that forms while a model learns, and which animal a head prefers."""

import math

from matplotlib.patches import Rectangle

from transformer.views import style
from transformer.views.shapes import arrow, box, weights_bar
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    LIGHT,
    PALE,
    SERIES,
    WARNING,
    Picture,
    canvas,
    ordinal,
    panels,
    weights_map,
    without_frame,
)

MIDDLE = {"ha": "center", "va": "center"}


def waves(table, words, columns, marked):
    """Some columns of a table of positions (n, d) as waves over the words of a sentence;
    the places of one word are marked."""
    figure, axes = panels(7.6, 3.3, len(columns), sharex=True)
    names = ["a fast wave", *["a slower one"] * (len(columns) - 2), "a slow one"]
    d_model, n = table.shape[1], len(words)
    times = [i / 20 for i in range(20 * n - 19)]
    for ax, column, name in zip(axes[:, 0], columns, names):
        rate = 10_000 ** (-column / d_model)
        wave = [math.sin(rate * time) for time in times]
        ax.plot(times, wave, color=IDEAS["positions"], lw=1.2, alpha=0.5)
        for place, value in enumerate(table[:, column].tolist()):
            draw_dot(ax, place, value, words[place] == marked)
        ax.axhline(0, color=LIGHT, lw=0.6, zorder=0)
        ax.set(ylim=(-1.45, 1.45), yticks=[-1, 0, 1], xlim=(-0.5, n - 0.3))
        ax.set_ylabel(name, rotation=0, ha="right", va="center")
        without_frame(ax)
    axes[-1, 0].set_xticks(range(n), words, size=11)
    for label in axes[-1, 0].get_xticklabels():
        label.set_weight("bold" if label.get_text() == marked else "normal")
    dots = "; ".join(
        f"position {i}: {', '.join(f'{float(table[i, c]):.2f}' for c in columns)}"
        for i in range(n)
        if words[i] == marked
    )
    figure.alternative = (
        f"{len(columns)} sine waves over the words {' '.join(words)}, a dot on each at "
        f"every word. The places of “{marked}” have different dots: {dots}."
    )
    return figure


def draw_dot(ax, place, value, strong):
    """A word's dot on a wave; a strong one with a field behind it and its number."""
    colour = (DARK if strong else IDEAS)["positions"]
    ax.plot(place, value, "o", color=colour, ms=7 if strong else 4, zorder=4)
    if strong:
        ax.axvspan(place - 0.3, place + 0.3, color=PALE["positions"], lw=0)
        text = f"{value:.2f}".replace("-", "−")
        beside = value + (0.55 if value < 0.5 else -0.55)
        ax.text(place, beside, text, color=colour, weight="bold", **MIDDLE)


def no_answers(target):
    """A place of the decoder in each row: what it may look at, and what it has to name."""
    reads, asked = ["begin", *target], [*target, "end"]
    n = len(reads)
    figure, ax = canvas((-3.3, n + 3.4), (-n - 0.1, 1.5), 0.62)
    ax.text(-0.72, 0.45, "the place of", ha="right", color=GREY)
    ax.text((n - 1) / 2, 1.1, "may look at", ha="center", color=GREY)
    ax.text(n + 1.75, 0.45, "has to name", ha="center", color=GREY)
    for place, word in enumerate(reads):
        ax.text(place, 0.45, word, ha="center")
        ax.text(-0.75, -place - 0.1, word, ha="right", va="center", weight="bold")
        draw_looks(ax, place, n)
        arrow(ax, (n - 0.3, -place - 0.1), (n + 1.1, -place - 0.1), colour=GREY)
        corner = (n + 1.3, -place - 0.4)
        box(ax, corner, (0.9, 0.6), asked[place], "embedding", weight="bold")
    seen = "; ".join(
        f"at {reads[i]} it may look at {', '.join(reads[: i + 1])} and has to name {asked[i]}"
        for i in range(n)
    )
    figure.alternative = f"A triangle of allowed looks. {seen}."
    return figure


def draw_looks(ax, row, n):
    """A row of `no_answers`: blue as far as one may look, then the answer in red."""
    for column in range(n):
        colour = IDEAS["attention"] if column <= row else "white"
        look = {"fc": colour, "ec": LIGHT, "lw": 0.8}
        ax.add_patch(Rectangle((column - 0.46, -row - 0.56), 0.92, 0.92, **look))
    if row + 1 < n:
        look = {"fc": "none", "ec": WARNING, "lw": 1.8, "zorder": 5}
        ax.add_patch(Rectangle((row + 0.58, -row - 0.52), 0.84, 0.84, **look))
        ax.text(row + 1, -row - 0.1, "answer", color=WARNING, size=8.5, **MIDDLE)


def diagonal(losses, looks, answers, number):
    """A training: the loss, and at some steps the weights on the source and the answer.

    looks: {step: (answer's places, source's places)}, answers: {step: what it writes}.
    """
    style.apply()
    figure = Picture(figsize=(8.1, 5.3), layout="constrained")
    steps = list(looks)
    rows = [["loss"] * len(steps), [str(step) for step in steps]]
    axes = figure.subplot_mosaic(rows, height_ratios=[1, 1.25])
    draw_loss(axes.pop("loss"), losses, steps)
    for step, ax in zip(steps, axes.values()):
        shown = draw_table(ax, looks[step], number)
        ax.set_title(f"after step {step}", size=10)
        write_answer(ax, answers[step], number[::-1])
    wanted = [f"{d} ({ordinal(i)})" for i, d in enumerate(reversed(number))]
    first = axes[str(steps[0])]
    first.set_yticks(range(len(number)), wanted)
    first.set_ylabel("has to write")
    weights_bar(figure, list(axes.values()), shown)
    written = "; ".join(
        f"after step {step} it writes {answers[step] or 'no digit'}" for step in steps
    )
    figure.alternative = (
        f"Above, the loss falls from {losses[0]:.1f} to {losses[-1]:.3f} in "
        f"{len(losses)} steps. Below, where the model looks in {number}: {written}. At "
        "first all weights are alike; at the end each place of the answer looks most at "
        "the digit that mirrors it, on a diagonal from lower left to upper right."
    )
    return figure


def draw_table(ax, table, number):
    """What the answer's places take from the digits of a number."""
    shown = ax.imshow(table.tolist(), cmap=weights_map(), vmin=0, vmax=1)
    ax.set_xticks(range(len(number)), number)
    ax.set_yticks([])
    ax.tick_params(length=0)
    ax.spines[:].set(visible=True, color=LIGHT)
    ax.set_xlabel("looks at")
    return shown


def draw_loss(ax, losses, steps):
    """The loss on a logarithmic axis, with the steps that are looked at, and guessing."""
    guess = math.log(11)
    count = len(losses)
    ax.plot(range(1, count + 1), losses, color=SERIES[0], lw=1.3)
    ax.axhline(guess, color=GREY, lw=1, ls="--")
    look = {"color": GREY, "va": "bottom", "ha": "right", "size": 9.5}
    ax.text(count, guess * 1.1, "guessing one of 11 tokens", **look)
    for step in steps:
        ax.plot(step, losses[step - 1], "o", color=IDEAS["attention"], ms=7, zorder=4)
        look = {"color": DARK["attention"], "textcoords": "offset points", "size": 9.5}
        inner = step not in (steps[0], steps[-1])
        shift = {"xytext": (-8, -13), "ha": "right"} if inner else {"xytext": (7, 5)}
        ax.annotate(f"step {step}", (step, losses[step - 1]), **shift, **look)
    ax.set(yscale="log", xlabel="step", ylabel="loss", xlim=(-5, count + 25))
    ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    ax.grid(axis="y")


def write_answer(ax, answer, right):
    """An answer to the right of its panel, a digit a row, wrong ones as a warning."""
    if not answer:
        look = {"color": WARNING, "style": "italic", "rotation": 90}
        ax.text(len(right) + 0.15, (len(right) - 1) / 2, "no digit", **look, **MIDDLE)
        return
    ax.text(len(right) + 0.15, -0.95, "writes", color=GREY, size=9, **MIDDLE)
    for place, digit in enumerate(right):
        wrote = answer[place] if place < len(answer) else "–"
        look = {"color": INK if wrote == digit else WARNING, "weight": "bold"}
        ax.text(len(right) + 0.15, place, wrote, size=12, **look, **MIDDLE)


def duels(scores, sentences):
    """Scores of animals by place, and in some sentences who has the higher one.

    scores: {animal: {place: score}}; sentences: for each its text, the two animals with
    their places, which of them owns the ball.
    """
    style.apply()
    figure = Picture(figsize=(8.1, 3.6), layout="constrained")
    table, bars = figure.subplots(1, 2, width_ratios=[1, 1.9])
    figure.get_layout_engine().set(wspace=0.08)
    draw_scores(table, scores)
    highest = max(max(row.values()) for row in scores.values())
    said = [draw_duel(bars, i, scores, *one) for i, one in enumerate(sentences)]
    bars.set(xlim=(0, 1.65 * highest), ylim=(3 * len(sentences) - 0.6, -0.75))
    bars.set_axis_off()
    rows = "; ".join(
        f"{animal} {', '.join(f'{s:.1f} at place {p}' for p, s in row.items())}"
        for animal, row in scores.items()
    )
    figure.alternative = f"Scores of the head: {rows}. {' '.join(said)}"
    return figure


def draw_scores(ax, scores):
    """The table of `duels`: a row for each animal, a column for each place."""
    rows = [list(row.values()) for row in scores.values()]
    ax.imshow(rows, cmap=weights_map(), vmin=0, vmax=2.2 * max(map(max, rows)))
    places = list(next(iter(scores.values())))
    ax.set_xticks(range(len(places)), [f"place {place}" for place in places])
    ax.set_yticks(range(len(scores)), list(scores))
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("an animal's score", color=GREY)
    for i, row in enumerate(rows):
        for j, number in enumerate(row):
            ax.text(j, i, f"{number:.1f}", color=INK, size=12, **MIDDLE)


def draw_duel(ax, i, scores, text, animals, owner):
    """A sentence of `duels`: a bar for each animal, and a verdict at the higher one."""
    best = max(animals, key=lambda animal: scores[animal][animals[animal]])
    ax.text(0, 3 * i - 0.35, text, style="italic", va="center")
    for row, (animal, place) in enumerate(animals.items()):
        number, y = scores[animal][place], 3 * i + 0.4 + 0.75 * row
        wins = animal == best
        colour = IDEAS["attention"] if wins else LIGHT
        ax.barh(y, number, height=0.6, color=colour)
        look = {"color": "white" if wins else INK, "va": "center", "size": 9.5}
        ax.text(0.3, y, f"{animal} at place {place}", **look)
        ax.text(number + 0.3, y, f"{number:.1f}", va="center", color=INK)
        if wins:
            verdict, colour = ("right", INK) if best == owner else ("wrong", WARNING)
            ax.text(
                number + 3, y, f"{verdict}: the {best}'s", va="center", color=colour
            )
    return f"{text} The {best} wins; it is the {owner}'s."
