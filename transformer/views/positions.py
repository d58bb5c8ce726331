"""The pictures of chapter 07: the table of sines, shifts, heads that look back, and how far each
kind of positions carries."""

import torch

from transformer.views.shapes import weights_bar, weights_table
from transformer.views.style import (
    GREY,
    IDEAS,
    INK,
    LIGHT,
    panels,
    signed_map,
    without_frame,
)

COLOUR = IDEAS["positions"]


def signed_image(ax, table, largest):
    """A table as colours on both sides of white."""
    rows = torch.as_tensor(table).tolist()
    look = {"cmap": signed_map(), "vmin": -largest, "vmax": largest}
    ax.tick_params(length=0)
    ax.spines[:].set(visible=True, color=LIGHT)
    return ax.imshow(rows, aspect="auto", **look)


def rows_of_positions(table):
    """Rows of sines and cosines, from position 0 down."""
    n, d_model = table.shape
    figure, axes = panels(6.4, 4.3)
    ax = axes[0, 0]
    shown = signed_image(ax, table, 1)
    ax.set(xlabel=f"the {d_model} numbers of a position", ylabel="position")
    ax.set(xticks=range(0, d_model, 8), yticks=range(0, n, 8))
    bar = figure.colorbar(shown, ax=ax, ticks=[-1, 0, 1], aspect=30, pad=0.02)
    bar.outline.set(linewidth=0.6, edgecolor=LIGHT)
    bar.ax.tick_params(length=0)
    low, high = float(table[:, -2].max()), float(table[:, -1].min())
    figure.alternative = (
        f"A row of {d_model} colours for each of {n} positions, from -1 to 1. The left "
        "columns change from row to row, columns further right more and more slowly; in"
        f" the last two the sine stays below {low:.2f} and the cosine above {high:.2f}."
    )
    return figure


def rotations(matrix, steps):
    """The matrix that moves each hand some positions on, with its numbers."""
    d_model = len(matrix)
    figure, axes = panels(5.2, 4.5)
    ax = axes[0, 0]
    signed_image(ax, matrix, 1.25)
    for row, numbers in enumerate(matrix.tolist()):
        for column, value in enumerate(numbers):
            if row // 2 == column // 2:
                text = f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")
                dark = "white" if abs(value) > 0.6 else INK
                look = {"ha": "center", "va": "center", "size": 9, "color": dark}
                ax.text(column, row, text, **look)
    names = [
        f"hand {hand}, {name}"
        for hand in range(d_model // 2)
        for name in ("sine", "cosine")
    ]
    ax.set_xticks(range(d_model), names, rotation=90)
    ax.set_yticks(range(d_model), names)
    ax.set(xlabel="at a position", ylabel=f"{steps} positions on")
    blocks = "; ".join(
        f"hand {hand}: {matrix[2 * hand, 2 * hand]:.2f} and "
        f"{matrix[2 * hand, 2 * hand + 1]:.2f}"
        for hand in range(d_model // 2)
    )
    figure.alternative = (
        f"A matrix of {d_model} by {d_model} numbers, all zero but for squares of two by"
        f" two along its diagonal, one for each hand. First rows of the squares, {blocks}."
    )
    return figure


def looks_back(tables, words):
    """Weights (T, T) of heads over the words of one sentence: {title: weights}."""
    figure, axes = panels(3.9 * len(tables) + 0.5, 4.1, columns=len(tables))
    said = []
    for ax, (title, weights) in zip(axes[0], tables.items()):
        weights = torch.as_tensor(weights)
        shown = weights_table(ax, weights, words, words, numbers=False)
        ax.tick_params(axis="x", labelrotation=45)
        for label in ax.get_xticklabels():
            label.set(ha="left", rotation_mode="anchor")
        ax.set(xlabel="... looks at")
        ax.set_title(title)
        largest = f"{weights[-1].max():.2f}"
        pairs = [f"{w} at {words[int(row.argmax())]}" for w, row in zip(words, weights)]
        said.append(f"{title}, each word looks most at: {', '.join(pairs)} ({largest})")
    axes[0, 0].set_ylabel("the word that looks")
    weights_bar(figure, axes[0, -1], shown)
    figure.alternative = f"{'. '.join(said)}."
    return figure


def beyond(heads, known):
    """Scores (T, T) of heads for clocks, {name: scores}, each query's best key, and the
    places of training.

    known: how many places training's sentences had. Each head has a scale of its own.
    """
    figure, axes = panels(2.35 * len(heads) + 0.9, 2.95, columns=len(heads))
    said = []
    for ax, (name, scores) in zip(axes[0], heads.items()):
        shown, best = best_keys(ax, scores, known)
        ax.set(xlabel="key at position", title=name)
        near = [
            f"{sum(key == place + step for place, key in enumerate(best))} {where}"
            for step, where in ((-1, "one before"), (1, "one after"))
        ]
        said.append(f"{name}: {' and '.join(near)}")
    look = {"ha": "left", "va": "top", "size": 8.5}
    axes[0, 0].text(-0.5, known, "places in training", **look)
    axes[0, 0].set_ylabel("query at position")
    bar = figure.colorbar(shown, ax=axes[0, -1], aspect=24, pad=0.03, ticks=[-1, 0, 1])
    bar.set_ticklabels(["low", "mean", "high"])
    bar.outline.set(linewidth=0.6, edgecolor=LIGHT)
    bar.ax.tick_params(length=0)
    bar.set_label("score of clock for clock", labelpad=4)
    figure.alternative = (
        f"Scores of heads for clocks, at places that training knew ({known}) and further "
        f"on. How many queries have their best key {'; '.join(said)}."
    )
    return figure


def best_keys(ax, scores, known):
    """One head of `beyond`: its colours, and the best key of each query."""
    from matplotlib.patches import Rectangle

    scores = torch.as_tensor(scores).float()
    scores = scores - scores.mean(dim=1, keepdim=True)
    best = scores.argmax(dim=1).tolist()
    shown = signed_image(ax, scores / scores.abs().max(), 1)
    ax.plot(best, range(len(best)), "o", ms=3.2, color=COLOUR, mec="white", mew=0.4)
    edge = {"fill": False, "ec": INK, "lw": 1.2}
    ax.add_patch(Rectangle((-0.5, -0.5), known, known, **edge))
    ticks = range(0, len(best), 10)
    ax.set(aspect="equal", xticks=ticks, yticks=ticks)
    return shown, best


def further(scores):
    """BLEU of trainings on familiar and on greater lengths, a row a kind:
    {name: (scores, scores)}."""
    figure, axes = panels(6.8, 0.5 * len(scores) + 0.9)
    ax, said = axes[0, 0], []
    for row, (name, (familiar, longer)) in enumerate(scores.items()):
        colour = GREY if name.startswith("no ") else COLOUR
        means = [sum(trainings) / len(trainings) for trainings in (longer, familiar)]
        ax.plot(means, [row, row], color=LIGHT, lw=5, zorder=1)
        ax.plot(longer, [row] * len(longer), "o", ms=7, color=colour, alpha=0.75)
        hollow = {"mfc": "white", "mec": colour, "mew": 1.3}
        ax.plot(familiar, [row] * len(familiar), "o", ms=7, **hollow)
        ax.text(min(longer) - 1.5, row, f"{means[0]:.0f}", ha="right", va="center")
        ax.text(max(familiar) + 1.5, row, f"{means[1]:.0f}", ha="left", va="center")
        said.append(
            f"{name} from {means[1]:.0f} ({min(familiar):.0f} to {max(familiar):.0f}) to "
            f"{means[0]:.0f} ({min(longer):.0f} to {max(longer):.0f})"
        )
    familiar, longer = next(iter(scores.values()))
    look = {"va": "bottom", "size": 9.5, "color": COLOUR}
    ax.text(max(longer) + 1, -0.35, "longer", ha="right", **look)
    ax.text(min(familiar) - 1, -0.35, "as long as in training", ha="left", **look)
    ax.set_yticks(range(len(scores)), scores, size=10.5)
    ax.set(xlabel="BLEU", xlim=(10, 112), xticks=range(20, 101, 20))
    ax.set_ylim(len(scores) - 0.5, -0.85)
    ax.grid(axis="x")
    without_frame(ax)
    figure.alternative = f"BLEU on two sets of sentences: {'; '.join(said)}."
    return figure
