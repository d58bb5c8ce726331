"""Results beside others' results."""

import math

from transformer.plotting import COLOURS, new_axes, tick_labels


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
    ax.errorbar(inside, places, xerr=reach, fmt="o", color=COLOURS[0], markersize=5, capsize=3,
                label=label)
    for value, place in zip(values, places):
        if abs(value) > limit:
            mark_at_edge(ax, value, place, limit)
    ax.plot(others, places, "x", color=COLOURS[1], label=other)
    tick_labels(ax.yaxis, list(rows), len(rows))
    ax.invert_yaxis()
    ax.set(xlabel=xlabel)
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)  # no corner is free
    return ax


def mark_at_edge(ax, value, place, limit):
    """An arrow at the edge of the picture, with the number that lies beyond."""
    low = value < 0
    edge = -limit if low else limit
    ax.plot(edge, place, "<" if low else ">", color=COLOURS[0])
    ax.annotate(f"{value:+.0f}", (edge, place), (8 if low else -8, 0), textcoords="offset points",
                ha="left" if low else "right", va="center", color=COLOURS[0], fontsize=8)
