"""Results beside others' results."""

import math
import statistics

from transformer.views.plotting import COLOURS, name_powers, new_axes, tick_labels


def differences(rows, xlabel, label, other, ax=None, limit=math.inf):
    """Differences from zero with their reach, from the top down, beside another's.

    rows maps a name to (value, reach, another's value); a reach of nan is not known. What lies
    beyond limit stands at the edge, as a number.
    """
    ax = new_axes(5, 0.3 * len(rows) + 1) if ax is None else ax
    places = range(len(rows))
    values, reach, others = zip(*rows.values())
    ax.axvline(0, color="black", linewidth=0.8)
    inside = [math.nan if abs(value) > limit else value for value in values]
    ax.errorbar(
        inside,
        places,
        xerr=reach,
        fmt="o",
        color=COLOURS[0],
        markersize=5,
        capsize=3,
        label=label,
    )
    for value, place in zip(values, places):
        if abs(value) > limit:
            mark_at_edge(ax, value, place, limit)
    ax.plot(others, places, "x", color=COLOURS[1], label=other)
    tick_labels(ax.yaxis, list(rows), len(rows))
    ax.invert_yaxis()
    ax.set(xlabel=xlabel)
    ax.grid(alpha=0.3)
    ax.legend(
        fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2
    )  # no corner is free
    return ax


def mark_at_edge(ax, value, place, limit):
    """An arrow at the edge of the picture, with the number that lies beyond."""
    low = value < 0
    edge = -limit if low else limit
    ax.plot(edge, place, "<" if low else ">", color=COLOURS[0])
    ax.annotate(
        f"{value:+.0f}",
        (edge, place),
        (8 if low else -8, 0),
        textcoords="offset points",
        ha="left" if low else "right",
        va="center",
        color=COLOURS[0],
        fontsize=8,
    )


def ratios(rows, xlabel, title=""):
    """Ratios of single rounds as dots with their median, from the top down; at the line both are
    equal.

    rows maps a name to its ratios. The axis is logarithmic.
    """
    ax = new_axes(6.5, 0.32 * len(rows) + 1)
    ax.axvline(1, color="black", linewidth=0.8)
    for place, values in enumerate(rows.values()):
        middle = statistics.median(values)
        ax.plot(values, [place] * len(values), "o", color=COLOURS[5], markersize=5)
        ax.plot(middle, place, "|", color=COLOURS[0], markersize=14, markeredgewidth=2)
        ax.annotate(
            f"{middle:.2f}",
            (max(values), place),
            (8, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    tick_labels(ax.yaxis, list(rows), len(rows))
    ax.invert_yaxis()
    ax.set(xlabel=xlabel, title=title, xscale="log")
    ax.margins(x=0.12)
    name_powers(ax.xaxis)
    ax.grid(alpha=0.3, axis="x")
    return ax


def name_at_end(ax, name, x, y):
    """Write a line's name to the right of its end."""
    ax.annotate(
        name,
        (x, y),
        (5, 0),
        fontsize=8,
        textcoords="offset points",
        va="center",
        annotation_clip=False,
    )


def ranks(runs, paper, bold=()):
    """The place of each row by validation loss at each validation, mean over seeds; 1 is best.

    runs: rows of a record as a table (pandas), with their curves; paper: a figure of each row that
    is better where it is lower, whose order gives the colours; bold: rows that the text speaks of.
    """
    import pandas as pd

    curves = {
        row: pd.DataFrame([*own["log.validation_loss"]]).mean().to_numpy()
        for row, own in runs.groupby("row", sort=False)
    }
    places = pd.DataFrame(curves, index=runs["log.update"].iloc[0]).rank(axis=1)
    there = paper[places.columns].rank()
    ax = new_axes(7.0, 4.5)
    colours = ax.figure.colorbar(
        ax.scatter([], [], c=[], cmap="viridis", vmin=1, vmax=len(there)),
        ax=ax,
        label="place in the paper",
    )
    for row in places:
        colour = colours.cmap(colours.norm(there[row]))
        ax.plot(
            places.index, places[row], color=colour, linewidth=3 if row in bold else 0.8
        )
        name_at_end(ax, row, places.index[-1], places[row].iloc[-1])
    ax.set(
        xlabel="update",
        ylabel="place by validation loss (1 is best)",
        title="does the paper's order emerge?",
    )
    ax.set_xlim(0, 1.3 * places.index[-1])  # room for the names
    ax.invert_yaxis()
    return ax
