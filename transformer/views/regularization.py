"""The pictures of chapter 13: two judges of a training, targets and their pull, and where dropout
is."""

from matplotlib.patches import Circle

from transformer.views.labels import label_ends
from transformer.views.shapes import arrow, box, lane, norm, plus
from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    SERIES,
    canvas,
    panels,
    without_frame,
)


def two_judges(runs):
    """Loss and share of right guesses on new sentences, by rounds: {name: [(loss, share), ...]}."""
    figure, axes = panels(7.4, 3.0, columns=2)
    said = []
    for (name, log), colour in zip(runs.items(), SERIES):
        losses, shares = zip(*log)
        for ax, values in zip(axes[0], (losses, shares)):
            label = name if len(runs) > 1 else "_"
            rounds = range(1, len(values) + 1)
            ax.plot(rounds, values, color=colour, lw=2, label=label)
        low = min(losses)
        said.append(
            f"{name}: loss lowest at {low:.2f}, last {losses[-1]:.2f}; right last "
            f"{shares[-1]:.0%}, at most {max(shares):.0%}."
        )
    top = max(loss for log in runs.values() for loss, _ in log[3:])
    axes[0, 0].set(ylim=(2.4, 1.04 * top), title="loss, nats per token")
    axes[0, 1].set(ylim=(0, 0.5), title="first guess is right")
    axes[0, 1].yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    for ax in axes[0]:
        ax.set_xlabel("rounds through the training sentences")
        ax.set_xticks([1, *range(2, len(next(iter(runs.values()))) + 1, 2)])
        ax.grid(axis="y")
        if len(runs) > 1:
            label_ends(ax)
    figure.alternative = f"On new sentences. {' '.join(said)}"
    return figure


def pulls(words, p, targets):
    """Bars of a model's probabilities, of what was asked, and of the pull between the two, for
    some words; targets: {name: q of these words}."""
    figure, axes = panels(7.4, 2.0 * len(targets), len(targets), 3, sharey="col")
    p = [float(value) for value in p]
    said = []
    for row, (name, q) in zip(axes, targets.items()):
        q = [float(value) for value in q]
        pull = [a - b for a, b in zip(p, q)]
        for ax, values, colour in zip(row, (p, q, pull), (SERIES[1], GREY, SERIES[0])):
            bars(ax, words, values, colour)
        row[2].set_ylim(-0.19, 0.19)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", labelpad=10)
        listed = ", ".join(f"{w} {v:+.2f}" for w, v in zip(words, pull))
        said.append(f"{name}: p minus q is {listed}.")
    for ax, title in zip(axes[0], ("p, the model", "q, the target", "p − q, the push")):
        ax.set_title(title, pad=10)
    figure.alternative = (
        f"The model gives {', '.join(f'{w} {v:.2f}' for w, v in zip(words, p))}. "
        + " ".join(said)
    )
    return figure


def bars(ax, words, values, colour):
    """A bar a word, with its number."""
    ax.bar(range(len(words)), values, width=0.62, color=colour)
    ax.axhline(0, color=INK, lw=0.8)
    for place, value in enumerate(values):
        below = value < -0.005
        text = f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")
        spot = {"xytext": (0, -2 if below else 2), "textcoords": "offset points"}
        look = {"ha": "center", "va": "top" if below else "bottom", "size": 9}
        ax.annotate(text, (place, value), **spot, **look)
    ax.set_xticks(range(len(words)), words, rotation=30, ha="right")
    ax.set(yticks=[])
    ax.margins(y=0.2)
    without_frame(ax)


def confidence(p):
    """How many tokens have which probability (n,)."""
    figure, axes = panels(6.6, 2.8)
    ax = axes[0, 0]
    counts, edges, _ = ax.hist(p.tolist(), bins=50, range=(0, 1), color=SERIES[1])
    ax.axvline(0.9, color=INK, lw=0.8, ls=(0, (4, 3)))
    ax.text(0.885, max(counts), "asked for: 0.9", ha="right", va="top", size=9.5)
    ax.set(xlabel="probability of the right token", ylabel="tokens", xlim=(0, 1))
    most = int(counts.argmax())
    figure.alternative = (
        f"A histogram of {len(p):,} probabilities: {max(counts) / len(p):.0%} are "
        f"between {edges[most]:.2f} and {edges[most + 1]:.2f}, hardly any elsewhere."
    )
    return figure


# Where dropout is

DROPPED = SERIES[3]


def dropout_places():
    """A lane of an encoder layer with its sub-layers, and a dot wherever numbers are dropped."""
    figure, ax = canvas((-3.3, 10.4), (-1.75, 1.25), 0.56)
    lane(ax, (-0.6, 0), (9.9, 0))
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
    drop(ax, 6.9, 0.95)
    ax.text(7.1, 0.95, "dropout", va="center", color=DROPPED)
    ax.text(9.95, 0.32, "next layer", ha="right", size=9.5, color=GREY)
    figure.alternative = (
        "The lane of one token through an encoder layer. Dropout is at three places: on "
        "the sum of embedding and position, and on what attention and the feed-forward "
        "network write, before it is added to the lane."
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
    if idea == "attention":
        ax.text(x + 3.85, 0.42, "LayerNorm", color=DARK["norm"], ha="center", size=9.5)


def drop(ax, x, y):
    """The mark of dropout."""
    ax.add_patch(Circle((x, y), 0.13, fc=DROPPED, ec="white", lw=1, zorder=12))
