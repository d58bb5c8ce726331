"""The pictures of chapter 14: the leak, three trainings, what a wrong source
costs."""

from matplotlib.patches import Rectangle

from transformer.views.labels import label_ends
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    LIGHT,
    SERIES,
    WARNING,
    canvas,
    panels,
)

BLUE = IDEAS["attention"]
MIDDLE = {"ha": "center", "va": "center"}
MODELS = {"A": BLUE, "B": WARNING, "C": SERIES[3]}  # one colour each in all pictures
KINDS = {"A": "A: sound", "B": "B: no mask", "C": "C: slipped file"}


def two_rows(ax, words):
    """What a decoder reads, and below it what it is asked for."""
    reads, asked = ["(begin)", *words], [*words, "(end)"]
    ax.text(-0.75, 1.3, "reads", ha="right", va="center", weight="bold")
    ax.text(-0.75, 0, "is asked for", ha="right", va="center", weight="bold")
    for place, (word, answer) in enumerate(zip(reads, asked)):
        ax.text(place, 1.3, word, **MIDDLE)
        ax.text(place, 0, answer, color=DARK["attention"], weight="bold", **MIDDLE)
    return reads, asked


def in_english(ax, meanings):
    """What each word that is asked for means."""
    ax.text(-0.75, -0.5, "in English", color=GREY, ha="right", va="center")
    for place, meaning in enumerate(meanings):
        ax.text(place, -0.5, meaning, color=GREY, style="italic", **MIDDLE)


def leak(words, meanings, place):
    """Why a decoder without a mask need not think: the answer to the question at a place
    is among the words that it reads. Above in training, below when it writes."""
    n = len(words) + 1
    figure, ax = canvas((-2.3, n - 0.4), (-3.6, 2.5), 0.86)
    reads, _ = two_rows(ax, words)
    in_english(ax, meanings)
    ax.text(-2.3, 2.2, "in training", color=GREY, va="center")
    for other in range(n):
        allowed = other <= place
        line = dict(color=BLUE if allowed else LIGHT, lw=1.3 if allowed else 1.0)
        if other == place + 1:
            line = dict(color=WARNING, lw=2.2)
        ax.plot([other, place], [1.08, 0.26], zorder=0, **line)
    ax.add_patch(
        Rectangle((place + 0.52, 1.02), 0.96, 0.56, fc="none", ec=WARNING, lw=1.6)
    )
    text = "the answer"
    ax.text(place + 1, 1.82, text, color=WARNING, weight="bold", **MIDDLE)
    while_writing(ax, reads, place)
    figure.alternative = (
        f"In training the question after “{reads[place]}” has its answer, “{words[place]}”, "
        "among the words that are read, one place to the right. When the model writes, "
        "that place is empty."
    )
    return figure


def while_writing(ax, reads, place):
    """The lower half of `leak`: what has been written up to a place, and nothing behind
    it."""
    ax.text(-2.3, -1.2, "when it writes", color=GREY, va="center")
    ax.text(-0.75, -1.9, "has read", ha="right", va="center", weight="bold")
    ax.text(-0.75, -3.2, "is asked for", ha="right", va="center", weight="bold")
    for other, word in enumerate(reads[: place + 1]):
        ax.text(other, -1.9, word, **MIDDLE)
        ax.plot([other, place], [-2.12, -2.94], color=BLUE, lw=1.3, zorder=0)
    gap = Rectangle((place + 0.52, -2.18), 0.96, 0.56, fc="none", ec=WARNING, lw=1.6)
    gap.set_linestyle((0, (3, 2)))
    ax.add_patch(gap)
    ax.text(place + 1, -1.9, "nothing", color=WARNING, style="italic", **MIDDLE)
    ax.text(place, -3.2, "?", color=DARK["attention"], weight="bold", **MIDDLE)


def three_trainings(curves, outputs, floor):
    """Held-out losses along trainings, with what each model writes at its end.

    curves: {name: [(update, loss), ...]}; outputs: {name: what it writes}; floor: what
    the coins cost, below which no honest model comes.
    """
    figure, axes = panels(7.4, 3.8)
    ax = axes[0, 0]
    said = []
    for name, curve in curves.items():
        updates, losses = zip(*curve)
        text = f"{name} writes: {outputs[name]}"
        ax.plot(updates, losses, color=MODELS[name], label=text)
        said.append(f"{name} ends at {losses[-1]:.3f} and writes: {outputs[name]}")
    last = max(update for curve in curves.values() for update, _ in curve)
    dashes = {"lw": 1.2, "ls": (0, (4, 3)), "label": "_floor"}
    ax.plot([0, last], [floor, floor], color=GREY, **dashes)
    text = "what the coins cost: far below, a model has cheated"
    ax.text(3, floor * 0.9, text, color=GREY, va="top", size=9.5)
    ax.set(yscale="log", xlim=(0, last), ylim=(0.003, 9), xlabel="update")
    ax.set_ylabel("held-out loss, nats per word\n(logarithmic)")
    ticks = [1, 0.1, 0.01]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.grid(axis="y")
    label_ends(ax)
    figure.alternative = (
        f"Three falling losses, and a line at {floor:.3f}, what the coins cost. "
        f"{'; '.join(said)}."
    )
    return figure


def strange_sources(losses):
    """Held-out loss with a sentence's own source and with another's: {model: (own,
    strange)}."""
    figure, axes = panels(7.4, 3.1)
    ax = axes[0, 0]
    said, ticks = [], []
    for place, (name, pair) in enumerate(losses.items()):
        colour = MODELS.get(name, GREY)
        for side, value in enumerate(pair):
            x = place + (side - 0.5) * 0.4
            ax.bar(x, value, 0.36, color=colour, alpha=(1, 0.45)[side])
            text = f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
            ax.text(x, value + 0.12, text, ha="center", size=9.5, color=colour)
            ticks.append((x, ("own\nEnglish", "another's")[side]))
        below = {"va": "top", "transform": ax.get_xaxis_transform(), "weight": "bold"}
        title = KINDS.get(name, name)
        ax.text(place, -0.22, title, ha="center", color=colour, **below)
        said.append(f"{name} {pair[0]:.3f} and {pair[1]:.2f}")
    ax.set_xticks(*zip(*ticks), size=9)
    ax.tick_params(axis="x", length=0)
    ax.margins(y=0.1)
    ax.set_ylabel("held-out loss, nats per word")
    figure.alternative = (
        "Bars of held-out loss with a sentence's own source and with another's: "
        f"{'; '.join(said)}."
    )
    return figure


def reading_begins(log):
    """Held-out loss with own and with strange sources along a training.

    log: rows (update, loss with own sources, loss with strange ones).
    """
    figure, axes = panels(7.0, 3.2)
    ax = axes[0, 0]
    updates, own, strange = zip(*log)
    ax.fill_between(updates, own, strange, color=LIGHT, alpha=0.5, lw=0)
    ax.plot(updates, strange, color=GREY, label="another sentence's source")
    ax.plot(updates, own, color=BLUE, label="own source")
    text = "what a wrong source costs"
    ax.text(
        updates[-1] * 0.98, (own[-1] + strange[-1]) / 2, text, ha="right", color=GREY
    )
    ax.set(xscale="log", xlim=(updates[0], updates[-1]), ylim=(0, None))
    ticks = [25, 50, 100, 200, 400, 800]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel("update (logarithmic)")
    ax.set_ylabel("held-out loss, nats per token")
    label_ends(ax)
    figure.alternative = (
        "Held-out loss with own sources and with strange ones. At first they are one "
        f"curve; at update {updates[-1]} they are at {own[-1]:.2f} and {strange[-1]:.1f}."
    )
    return figure
