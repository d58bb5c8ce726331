"""The pictures of chapter 13: what new sentences say of a training, what a target asks for, and
where dropout is."""

import torch
from matplotlib.patches import Circle

from transformer.views.plotting import lines
from transformer.views.shapes import arrow, box, lane, norm, plus
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    SERIES,
    canvas,
    panels,
    picture,
)

LOSS, RIGHT, SURE = SERIES[0], SERIES[1], SERIES[2]
DASHES = (0, (4, 2))
DARK_SURE = "#8a6a0c"  # letters


# How a training goes


def two_judges(log):
    """Loss and share of right guesses on new sentences, by rounds.

    log: [((loss, right, sure) of new sentences, and of learned ones), ...], each (n,)
    """
    figure, axes = panels(7.4, 3.0, columns=2)
    (loss, right, _), _ = means(log)
    for ax, values, colour in zip(axes[0], (loss, right), (LOSS, RIGHT)):
        ax.plot(range(1, len(log) + 1), values, color=colour, lw=2)
    turn = loss.index(min(loss))
    axes[0, 0].plot(turn + 1, loss[turn], "o", color=INK, ms=6)
    look = {"textcoords": "offset points", "ha": "center", "va": "top", "size": 9.5}
    text, spot = f"lowest: round {turn + 1}", (turn + 1, loss[turn])
    axes[0, 0].annotate(text, spot, xytext=(0, -7), **look)
    name_loss(axes[0, 0])
    axes[0, 0].set(ylim=(2.5, 4.75), title="loss on new sentences")
    name_share(axes[0, 1], "of all predictions")
    axes[0, 1].set_title("share of right guesses")
    name_rounds(axes[0], len(log))
    figure.alternative = (
        f"On new sentences, after {len(log)} rounds. Loss: lowest {min(loss):.2f} in round "
        f"{turn + 1}, last {loss[-1]:.2f}. Share of right guesses: last {right[-1]:.0%}, at most "
        f"{max(right):.0%}."
    )
    return figure


def means(log):
    """Two lists by rounds, of new sentences and of learned ones: loss, share of right first
    guesses, confidence."""

    def mean(part):
        return torch.as_tensor(part).double().mean().item()

    return [list(zip(*(map(mean, judged) for judged in half))) for half in zip(*log)]


def surer(runs):
    """Of each training, two panels: its losses, and how sure its guesses are beside how often
    they are right. runs: {name: log}, a log as in `two_judges`."""
    several = len(runs) > 1
    shape = (7.6, 5.2, 2, len(runs)) if several else (7.4, 3.0, 1, 2)
    figure, axes = panels(*shape, sharey="row" if several else False)
    said = []
    for (name, log), pair in zip(runs.items(), axes.T if several else axes):
        new, known = means(log)
        draw_losses(pair[0], new[0], known[0], means(runs["plain"])[0][0])
        draw_guesses(pair[1], new[1], new[2])
        if several:
            pair[0].set_title(name, weight="bold")
        said.append(
            f"{name}: loss {new[0][-1]:.2f} on new sentences (lowest {min(new[0]):.2f}, in round "
            f"{new[0].index(min(new[0])) + 1}), {known[0][-1]:.2f} on those "
            f"learned; first guesses {new[2][-1]:.0%} sure, {new[1][-1]:.0%} right."
        )
    name_loss(axes[0, 0])
    guesses = "first guesses on new sentences"
    if several:
        name_share(axes[1, 0], guesses)
    else:
        name_share(axes[0, 1], "")
        axes[0, 0].set_title("loss")
        axes[0, 1].set_title(guesses)
    name_rounds(axes[-1], len(log))
    name_rounds(axes[0], len(log), "" if several else None)
    figure.alternative = f"After {len(log)} rounds. {' '.join(said)}"
    return figure


def draw_losses(ax, new, known, plain):
    """Loss by rounds, on new sentences and on those that are learned; in grey, where it is
    another, the plain training's."""
    rounds = range(1, len(new) + 1)
    if plain != new:
        ax.plot(range(1, len(plain) + 1), plain, color=GREY, lw=1)
    ax.plot(rounds, new, color=LOSS, lw=2)
    ax.plot(rounds, known, color=LOSS, lw=1.4, ls=DASHES)
    ax.set_ylim(0, 5)
    turn = new.index(min(new))
    ax.plot(turn + 1, new[turn], "o", color=INK, ms=5)
    if turn < len(new) - 1:
        look = {"ha": "center", "va": "top", "size": 9.5, "color": INK}
        ax.text(turn + 1, new[turn] - 0.2, f"lowest: {new[turn]:.2f}", **look)
    look = {"ha": "right", "size": 9.5, "color": LOSS}
    y, side = (0.35, "bottom") if turn < len(new) - 1 else (-0.2, "top")
    ax.text(len(new), new[-1] + y, f"new: {new[-1]:.2f}", va=side, **look)
    text = f"learned: {known[-1]:.2f}"
    ax.text(len(new), known[-1] - 0.15, text, va="top", **look)


def draw_guesses(ax, right, sure):
    """How probable the first guess is to the model, and how often it is right, by rounds; the
    gap between the two is filled."""
    rounds = range(1, len(right) + 1)
    ax.fill_between(rounds, right, sure, color=SURE, alpha=0.18, lw=0)
    ax.plot(rounds, right, color=RIGHT, lw=2)
    ax.plot(rounds, sure, color=SURE, lw=2)
    ax.set_ylim(0, 0.72)
    look = {"ha": "right", "size": 9.5}
    text = f"how sure: {sure[-1]:.0%}"
    ax.text(len(sure), sure[-1] + 0.02, text, va="bottom", color=DARK_SURE, **look)
    text = f"right: {right[-1]:.0%}"
    ax.text(len(right), right[-1] - 0.05, text, va="top", color=RIGHT, **look)


def name_loss(ax):
    """The axis of a loss."""
    ax.set_ylabel("loss, nats per token")


def name_share(ax, label):
    """The axis of a share, in percent."""
    ax.set(ylabel=label, ylim=(0, 0.72))
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")


def name_rounds(row, count, label=None):
    """The axis of rounds, and lines to read heights by, in a row of panels."""
    for ax in row:
        ax.set_xticks([1, *range(4, count + 1, 4)])
        ax.set_xlabel("rounds of training" if label is None else label)
        ax.grid(axis="y")


# What a target asks for


def best_answer(p_gold, losses):
    """Losses over the probability of the right token, {name: (n,)}, and a dot at each lowest one
    that is not at the end."""
    ax = lines(p_gold, losses, "probability of the right token", "loss, nats")
    said = []
    for name, values in losses.items():
        low = int(values.argmin())
        if low < len(values) - 1:
            ax.plot(p_gold[low], values[low], "o", color=INK, ms=6)
            label, spot = f"best: {p_gold[low]:.1f}", (p_gold[low], values[low])
            look = {"textcoords": "offset points", "ha": "center", "va": "top"}
            ax.annotate(label, spot, xytext=(0, -8), color=INK, **look)
        said.append(f"{name}: lowest, {values[low]:.2f}, at {p_gold[low]:.2f}.")
    return picture(ax, f"Loss by the probability of the right token. {' '.join(said)}")


def confidence(sure):
    """How many first guesses have which probability (n,)."""
    figure, axes = panels(6.6, 2.8)
    ax = axes[0, 0]
    counts, edges, _ = ax.hist(sure.tolist(), bins=50, range=(0, 1), color=SURE)
    ax.axvline(0.9, color=INK, lw=0.8, ls=(0, (4, 3)))
    ax.text(0.885, max(counts), "asked for: 0.9", ha="right", va="top", size=9.5)
    ax.set(xlabel="probability of the first guess", ylabel="guesses", xlim=(0, 1))
    most = int(counts.argmax())
    figure.alternative = (
        f"A histogram of {len(sure):,} probabilities: {max(counts) / len(sure):.0%} "
        f"are between {edges[most]:.2f} and {edges[most + 1]:.2f}, hardly any elsewhere."
    )
    return figure


# Where dropout is

DROPPED = SERIES[3]


def dropout_places():
    """A lane of an encoder layer with its sub-layers, and a dot wherever numbers are dropped."""
    figure, ax = canvas((-3.3, 11.1), (-1.75, 1.25), 0.56)
    lane(ax, (-0.6, 0), (10.9, 0))
    for y, text, idea in (
        (0.5, "embedding", "embedding"),
        (-0.5, "position", "positions"),
    ):
        box(ax, (-3.2, y - 0.22), (1.55, 0.44), text, idea, size=9.5)
        arrow(ax, (-1.65, y), (-1.3, y), (-1.3, 0), (-1.15, 0), colour=IDEAS[idea])
    plus(ax, -1.0, 0)
    ax.plot([-0.86, -0.5], [0, 0], color=INK, lw=1.2, zorder=5)
    drop(ax, -0.62, 0)
    for start, name, idea in (
        (0.5, "attention", "attention"),
        (5.2, "feed-forward", "feed-forward"),
    ):
        sub_layer(ax, start, name, idea)
    drop(ax, 6.3, 0.95)
    ax.text(6.5, 0.95, "dropout", va="center", color=DROPPED)
    ax.text(10.95, 0.32, "next layer", ha="right", size=9.5, color=GREY)
    figure.alternative = (
        "The lane of one token through an encoder layer. Dropout is at three places: on "
        "the sum of embedding and position, where the lane begins, and on what attention "
        "and the feed-forward network write, before it is added to the lane."
    )
    return figure


def sub_layer(ax, x, name, idea):
    """A sub-layer below the lane, with dropout on its way back, and the norm after the sum."""
    arrow(ax, (x, 0), (x, -1.1), (x + 0.4, -1.1), colour=IDEAS[idea])
    box(ax, (x + 0.4, -1.35), (1.9, 0.5), name, idea)
    arrow(ax, (x + 2.3, -1.1), (x + 3.2, -1.1), (x + 3.2, -0.14), colour=IDEAS[idea])
    drop(ax, x + 2.75, -1.1)
    plus(ax, x + 3.2, 0)
    norm(ax, x + 3.85, 0, upright=True, size=(0.56, 0.26))
    ax.text(x + 3.85, 0.42, "LayerNorm", color=DARK["norm"], ha="center", size=9.5)


def drop(ax, x, y):
    """The mark of dropout."""
    ax.add_patch(Circle((x, y), 0.13, fc=DROPPED, ec="white", lw=1, zorder=12))
