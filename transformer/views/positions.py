"""The pictures of chapter 07: the table of sines, shifts, nearness, and four ways to
tell a place."""

import torch

from transformer.views.labels import label_ends
from transformer.views.shapes import weights_bar, weights_table
from transformer.views.style import (
    GREY,
    IDEAS,
    INK,
    LIGHT,
    SERIES,
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
    figure, axes = panels(4.9, 4.2)
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
        f"{name} {hand}" for hand in range(d_model // 2) for name in ("sin", "cos")
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


def nearness(distances, curves, ylabel="product"):
    """Products over the distance of two positions: {name: values}, with their peaks."""
    figure, axes = panels(6.8, 3.0)
    ax, said = axes[0, 0], []
    colours = (GREY, COLOUR) if len(curves) == 2 else SERIES
    for (name, values), colour in zip(curves.items(), colours):
        values = torch.as_tensor(values)
        ax.plot(distances, values.tolist(), color=colour, lw=2, label=name)
        best = int(values.argmax())
        ax.plot(distances[best], values[best], "o", ms=5.5, color=colour)
        said.append(f"{name}: highest at {distances[best]}, {values[best]:.3g}")
    ax.set(xlabel="j − p, words from the one that looks", ylabel=ylabel)
    step = 5 if len(distances) > 20 else 1
    ax.set_xticks([place for place in distances if place % step == 0])
    label_ends(ax)
    figure.alternative = f"Products over the distance j − p. {'; '.join(said)}."
    return figure


def looks_back(weights, words):
    """Weights (T, T) of a head over the words of one sentence."""
    weights = torch.as_tensor(weights)
    figure, axes = panels(5.4, 4.3)
    ax = axes[0, 0]
    shown = weights_table(ax, weights, words, words, numbers=False)
    ax.tick_params(axis="x", labelrotation=45)
    for label in ax.get_xticklabels():
        label.set(ha="left", rotation_mode="anchor")
    ax.set(xlabel="... looks at", ylabel="the word that looks")
    weights_bar(figure, ax, shown)
    pairs = [f"{w} at {words[int(row.argmax())]}" for w, row in zip(words, weights)]
    figure.alternative = f"Each word looks most at: {', '.join(pairs)}."
    return figure


def stripes(tables):
    """What a kind of positions adds to the scores of all pairs: {name: (T, T)}."""
    figure, axes = panels(7.6, 2.9, columns=len(tables))
    said = []
    for ax, (name, table) in zip(axes[0], tables.items()):
        table = torch.as_tensor(table).float()
        centred = table - table.mean()
        signed_image(ax, centred, float(centred.abs().max()))
        ax.set(aspect="equal", xticks=[], yticks=[], xlabel="key at position")
        ax.set_title(name)
        T = len(table)
        spread = sum(table.diagonal(k).std() for k in range(-T // 2, T // 2))
        alike = spread / T < 0.01 * table.std()
        said.append(f"{name}: {'' if alike else 'no '}stripes along the diagonal")
    axes[0, 0].set_ylabel("query at position")
    figure.alternative = f"Three tables of scores. {'; '.join(said)}."
    return figure


def further(scores):
    """BLEU on familiar and on greater lengths, a line a kind: {name: (score, score)}."""
    figure, axes = panels(5.6, 3.9)
    ax, said = axes[0, 0], []
    for (name, pair), colour in zip(scores.items(), SERIES):
        ax.plot([0, 1], pair, "o-", color=colour, lw=2, ms=5)
        label = f"{name}, {pair[1]:.0f}"
        ax.text(1.05, pair[1], label, va="center", color=colour)
        said.append(f"{name} from {pair[0]:.0f} to {pair[1]:.0f}")
    ax.set_xticks([0, 1], ["as long as in training", "longer"])
    ax.set(xlim=(-0.15, 1.75), ylabel="BLEU", ylim=(None, 101))
    ax.grid(axis="y")
    without_frame(ax)
    figure.alternative = f"BLEU on two sets of sentences: {'; '.join(said)}."
    return figure
