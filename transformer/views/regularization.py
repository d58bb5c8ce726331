"""The pictures of chapter 13: what new sentences say of a training, what a target asks for, and
where dropout is."""

import torch
from matplotlib.patches import Circle

from transformer.views.shapes import arrow, box, lane, norm, plus
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    SERIES,
    WARNING,
    canvas,
    panels,
)

LOSS, RIGHT, SURE, DROPPED = SERIES
DASHES = (0, (4, 2))
DARK_SURE = "#8a6a0c"  # letters


# How a training goes


def two_judges(log):
    """Loss and share of right guesses on new sentences, by rounds.

    log: [{"new": {"loss": (n,), "right": (n,), "sure": (n,)}, "learned": the same}, ...]
    """
    figure, axes = panels(7.4, 3.0, columns=2)
    loss, right, _ = means(log, "new")
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


def means(log, part):
    """Three lists by rounds, of the sentences of a part ("new" or "learned"): loss, share of right
    first guesses, confidence."""
    return [
        [torch.as_tensor(judged[part][key]).double().mean().item() for judged in log]
        for key in ("loss", "right", "sure")
    ]


def surer(runs):
    """Of each training its losses, and how sure its guesses are beside how often they are right;
    where there are several, the plain one is in grey behind the others.

    runs: {name: log}, a log as in `two_judges`, and one of the names is "plain"
    """
    remedies = {name: log for name, log in runs.items() if name != "plain"}
    if remedies:
        shape = (0.6 + 3.8 * len(remedies), 5.4, 2, len(remedies))
        figure, axes = panels(*shape, sharey="row")
        pairs = axes.T
    else:
        figure, axes = panels(7.8, 3.0, 1, 2)
        pairs = axes
    said = []
    for (name, log), (above, below) in zip((remedies or runs).items(), pairs):
        new, (known, _, _) = means(log, "new"), means(log, "learned")
        if remedies:
            draw_plain(above, below, runs["plain"], known[-1])
            above.set_title(name, weight="bold")
        draw_losses(above, new[0], known, bool(remedies))
        draw_guesses(below, new[1], new[2])
        said.append(f"{name}: {in_words(*new, known)}")
    name_loss(axes[0, 0])
    guesses = "first guesses on new sentences"
    name_share(pairs[0][1], guesses if remedies else "")
    if not remedies:
        axes[0, 0].set_title("loss")
        axes[0, 1].set_title(guesses)
    room = 1.62 if remedies else 1.4
    name_rounds(axes[-1], len(log), room=room)
    name_rounds(axes[0], len(log), "" if remedies else None, room=room)
    figure.alternative = f"After {len(log)} rounds. {' '.join(said)}"
    return figure


def in_words(new, right, sure, known):
    """The last round of a training, four measures by rounds."""
    return (
        f"loss {new[-1]:.2f} on new sentences (lowest {min(new):.2f}, in round "
        f"{new.index(min(new)) + 1}), {known[-1]:.2f} on those learned; first guesses "
        f"{sure[-1]:.0%} sure, {right[-1]:.0%} right."
    )


def draw_plain(above, below, log, near):
    """The plain training behind a remedy's two panels, in grey: its losses, and the gap between
    how sure and how often right. near: where the remedy's learned loss ends."""
    (loss, right, sure), (known, _, _) = means(log, "new"), means(log, "learned")
    rounds = range(1, len(log) + 1)
    below.fill_between(rounds, right, sure, color=GREY, alpha=0.16, lw=0)
    down = -13 if near - known[-1] < 0.4 else 0  # clear of the remedy's label
    for ax, values, label, up, style in (
        (above, loss, f"new: {loss[-1]:.2f}", 6, "-"),
        (above, known, f"learned: {known[-1]:.2f}", down, DASHES),
        (below, sure, f"how sure: {sure[-1]:.0%}", 4, "-"),
        (below, right, f"right: {right[-1]:.0%}", -15, "-"),
    ):
        ax.plot(rounds, values, color=GREY, lw=1.2, ls=style)
        beside(ax, values, f"plain, {label}", GREY, up)


def beside(ax, values, label, colour, up=0):
    """A label to the right of a curve's end, moved up by some points."""
    ax.annotate(
        label,
        (len(values), values[-1]),
        xytext=(6, up),
        textcoords="offset points",
        va="center",
        size=9.5,
        color=colour,
        bbox={"fc": "white", "ec": "none", "pad": 0.6},
    )


def draw_losses(ax, new, known, remedy):
    """Loss by rounds, on new sentences and on those that are learned."""
    rounds = range(1, len(new) + 1)
    ax.plot(rounds, new, color=LOSS, lw=2)
    ax.plot(rounds, known, color=LOSS, lw=1.4, ls=DASHES)
    ax.set_ylim(0, 5)
    turn = new.index(min(new))
    low = {"ha": "center", "color": INK, "size": 9.5, "va": "top"}
    if turn < len(new) - 1:
        ax.plot(turn + 1, new[turn], "o", color=INK, ms=5)
        ax.text(turn + 1, new[turn] - 0.2, f"lowest: {new[turn]:.2f}", **low)
    beside(ax, new, f"new: {new[-1]:.2f}", LOSS, -7 if remedy else 0)
    beside(ax, known, f"learned: {known[-1]:.2f}", LOSS)


def draw_guesses(ax, right, sure):
    """How probable the first guess is to the model, and how often it is right, by rounds; where it
    is surer than right, the gap between the two is filled."""
    rounds = range(1, len(right) + 1)
    bold = [s >= r for s, r in zip(sure, right)]
    look = {"color": SURE, "alpha": 0.18, "lw": 0}
    ax.fill_between(rounds, right, sure, where=bold, interpolate=True, **look)
    ax.plot(rounds, right, color=RIGHT, lw=2)
    ax.plot(rounds, sure, color=SURE, lw=2)
    ax.set_ylim(0, 0.72)
    beside(ax, sure, f"how sure: {sure[-1]:.0%}", DARK_SURE)
    beside(ax, right, f"right: {right[-1]:.0%}", RIGHT)


def same_learned(runs):
    """Loss on new sentences over loss on learned ones, a dot a round; runs as in `surer`."""
    figure, axes = panels(6.6, 3.9)
    ax = axes[0, 0]
    look = {"plain": (GREY, "-"), "dropout": (DROPPED, "-"), "smoothing": (RIGHT, "--")}
    said = []
    for name, log in runs.items():
        new, known = means(log, "new")[0], means(log, "learned")[0]
        colour, style = look.get(name, (INK, ":"))
        ax.plot(known, new, color=colour, ls=style, lw=1.6, marker="o", ms=4.5)
        off = (9, -6 if name == "smoothing" else 0)
        spot = {"xytext": off, "textcoords": "offset points", "va": "center"}
        text = {"color": colour, "weight": "bold"}
        ax.annotate(name, (known[-1], new[-1]), **spot, **text)
        said.append(
            f"{name}: after {len(new)} rounds {known[-1]:.2f} on learned sentences and "
            f"{new[-1]:.2f} on new ones."
        )
    ax.set(
        xlabel="loss on learned sentences (more is learned to the right)",
        ylabel="loss on new sentences",
        xlim=(3.1, 0.4),
        ylim=(2.55, 3.5),
    )
    ax.grid(axis="y")
    figure.alternative = (
        f"Loss on new sentences over loss on learned ones. {' '.join(said)}"
    )
    return figure


def name_loss(ax):
    """The axis of a loss."""
    ax.set_ylabel("loss, nats per token")


def name_share(ax, label):
    """The axis of a share, in percent."""
    ax.set(ylabel=label, ylim=(0, 0.72))
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")


def name_rounds(row, count, label=None, room=None):
    """The axis of rounds, and lines to read heights by, in a row of panels; where names are
    beside the curves, room for them."""
    for ax in row:
        if room:
            ax.set_xlim(0.6, room * count)
        ax.set_xticks([1, *range(4, count + 1, 4)])
        ax.set_xlabel("rounds of training" if label is None else label)
        ax.grid(axis="y")


# What a target asks for


def pushes(paths):
    """The probability of the right word, push by push: of a model that cannot tell its sentences
    apart, and of one that can.

    paths: {name of the targets: (the first model's probabilities, the second's)}
    """
    figure, axes = panels(7.6, 3.0, 1, 2, sharey=True)
    titles = ("cannot tell the ten apart", "knows each of the ten by heart")
    said = []
    for ax, title, place in zip(axes[0], titles, (0, 1)):
        for i, (name, pair) in enumerate(paths.items()):
            path = pair[place]
            ax.plot(path, color=(LOSS, RIGHT)[i], lw=2, ls=("-", DASHES)[i])
            high = i == 0
            look = {"ha": "right", "va": "bottom" if high else "top", "size": 9.5}
            spot = (len(path) - 1, path[-1] + (0.02 if high else -0.03))
            more = ", still rising" if path[-1] - path[-20] > 5e-4 and place else ""
            text = f"{name}: {path[-1]:.2f}{more}"
            ax.text(*spot, text, color=(LOSS, RIGHT)[i], **look)
            said.append(f"{title}, {name}: {path[-1]:.2f}.")
        ax.set(title=title, xlabel="number of pushes", ylim=(0.25, 1.09))
        ax.grid(axis="y")
    axes[0, 0].set_ylabel("probability of ihren\nwhere it is right")
    figure.alternative = f"After {len(path)} pushes. {' '.join(said)}"
    return figure


def confidence(sure, right):
    """How many first guesses have which probability (n,), and which of them are wrong."""
    figure, axes = panels(6.6, 3.0)
    ax = axes[0, 0]
    edges = [0.01 + 0.02 * k for k in range(50)]  # 0.9 is the middle of a bar
    counts, _, _ = ax.hist(sure.tolist(), bins=edges, color=SURE)
    wrong = sure[~right].tolist()
    height = 0.05 * max(counts)
    ax.vlines(wrong, 0, height, color=WARNING, lw=1.6, zorder=5)
    ax.axvline(0.9, color=INK, lw=0.8, ls=(0, (4, 3)))
    most = int(counts.argmax())
    ax.text(
        0.84, max(counts), "smoothing asked for 0.9", ha="right", va="top", size=9.5
    )
    text = f"right: {int(right.sum()):,} guesses"
    place = {"ha": "right", "va": "top", "size": 9.5}
    ax.text(0.84, 0.82 * max(counts), text, color=DARK_SURE, **place)
    text = f"wrong: {len(wrong):,} guesses, a tick each"
    ax.text(0.84, 0.64 * max(counts), text, color=WARNING, **place)
    ax.set(xlabel="probability of the first guess", ylabel="guesses", xlim=(0.1, 1))
    figure.alternative = (
        f"A histogram of {len(sure):,} probabilities: {max(counts) / len(sure):.0%} "
        f"are between {edges[most]:.2f} and {edges[most + 1]:.2f}; "
        f"{int((~right).sum())} guesses are wrong."
    )
    return figure


# Where dropout is


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
