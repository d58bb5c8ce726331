"""The widgets of chapter 07: a position as the hands of a clock, and a query and a key
that are turned by theirs."""

import math
from collections.abc import Sequence

from transformer.positions import frequencies
from transformer.views.widget import (
    ATTENTION,
    GREY,
    INK,
    POSITIONS,
    RULE,
    Widget,
    plain_style,
    widget,
)

# Positions of the slider: each of the first, then every tenth, then every hundredth
PLACES = [*range(21), *range(30, 101, 10), *range(200, 1001, 100)]
# A query and a key of four hands, as angles; they fit best where the key is about two
# words before
QUERY = (0.6, 2.0, 1.2, -0.4)
KEY = (2.6, 2.9, 0.3, -1.5)
BACKS = range(11)  # how many words before the query the key may be
QUERY_PLACES = range(10, 61)


def clocks(
    d_model: int = 8, positions: Sequence[int] = (0, 1, 2, 10, 100, 1000)
) -> Widget:
    """`Widget` of the hands of a position; the slider moves the position.

    positions: those of its picture, from 0 to 1,000. Raises ValueError for others, and for an odd
    d_model.
    """
    if not positions or not set(positions) <= set(PLACES):
        raise ValueError(
            "positions must be 0 to 20, tens to 100 or hundreds to 1,000, not "
            f"{tuple(positions)}"
        )
    omega = frequencies(d_model).tolist()
    data = {
        "omega": omega,
        "places": PLACES,
        "start": 10,
        "marked": [0, 10, 100, 1000],
    }
    return widget(
        "clocks",
        data,
        title="A position as the hands of a clock",
        alt=clocks_in_words(omega, positions),
        figure=draw_clocks(omega, positions),
        height=260,
        accent=POSITIONS,
        with_clocks=True,
    )


def clocks_in_words(omega, positions) -> str:
    """The alternative text of `clocks`."""
    turns = []
    for hand in (0, len(omega) // 2, len(omega) - 1):
        degrees = [f"{math.degrees(pos * omega[hand]) % 360:.0f}" for pos in positions]
        turns.append(f"hand {hand} at {', '.join(degrees)} degrees")
    listed = ", ".join(f"{pos:,}" for pos in positions)
    return (
        f"A row of {len(omega)} clocks for each of the positions {listed}. From row to "
        f"row: {'; '.join(turns)}. Hands further to the right turn more slowly."
    )


def draw_clocks(omega, positions):
    """The picture of `clocks`: a row a position, a column a hand."""
    from matplotlib.figure import Figure

    hands = len(omega)
    with plain_style():
        figure = Figure(figsize=(4.2, 0.72 * len(positions) + 0.35))
        ax = clock_axes(figure, (-1.9, hands - 0.5), (len(positions) - 0.5, -0.85))
        for hand in range(hands):
            ax.text(hand, -0.62, f"hand {hand}", ha="center", va="center", size=9.5)
        for row, position in enumerate(positions):
            name = f"position {position:,}"
            ax.text(-0.6, row, name, ha="right", va="center")
            for hand, speed in enumerate(omega):
                face(ax, hand, row)
                point(ax, hand, row, position * speed, POSITIONS, 2.4)
    return figure


def clock_axes(figure, across, down):
    """A place to draw clocks on, one a unit, rows downwards."""
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=across, ylim=down, aspect="equal")
    ax.axis("off")
    return ax


RADIUS = 0.4


def face(ax, x, y):
    """An empty clock."""
    from matplotlib.patches import Circle

    ax.add_patch(Circle((x, y), RADIUS, fill=False, ec=RULE, lw=1))


def point(ax, x, y, angle, colour, width):
    """The hand of the clock at (x, y), clockwise from twelve, in axes whose rows go
    downwards."""
    tip = (x + RADIUS * math.sin(angle), y - RADIUS * math.cos(angle))
    look = {"color": colour, "lw": width, "solid_capstyle": "round"}
    ax.plot([x, tip[0]], [y, tip[1]], **look)


# Rotary positions


def rotary(pairs: Sequence[tuple[int, int]] = ((12, 10), (40, 38), (40, 35))) -> Widget:
    """`Widget` of a query and a key of four hands, each turned by its own position.

    pairs: the positions (query, key) of its picture's rows. The sliders move the query, and the
    key's distance from it. Raises ValueError for a query that is not at 10 to 60, and for a key that
    is not 0 to 10 words before its query.
    """
    if not pairs or any(place - other not in BACKS for place, other in pairs):
        raise ValueError(
            f"the key must be 0 to {BACKS[-1]} words before the query in each of the "
            f"pairs (query, key), not {tuple(pairs)}"
        )
    if any(place not in QUERY_PLACES for place, _ in pairs):
        raise ValueError(f"a query's position must be 10 to 60 in each of {pairs}")
    omega = frequencies(2 * len(QUERY)).tolist()
    place, other = pairs[0]
    data = {
        "omega": omega,
        "query": QUERY,
        "key": KEY,
        "places": list(QUERY_PLACES),
        "backs": list(BACKS),
        "start": {"place": place, "back": place - other},
    }
    return widget(
        "rotary",
        data,
        title="A query and a key, turned by their positions",
        alt=rotary_in_words(omega, pairs),
        figure=draw_rotary(omega, pairs),
        height=290,
        accent=POSITIONS,
        with_clocks=True,
    )


def turned(angles, position: int, omega) -> list[float]:
    """Angles of hands at a position."""
    return [angle + position * speed for angle, speed in zip(angles, omega)]


def score(query, key) -> float:
    """The inner product of hands of length 1: the cosines of the angles between them."""
    return sum(math.cos(a - b) for a, b in zip(query, key))


def apart(a: float, b: float) -> float:
    """The smaller angle between two hands, in degrees."""
    return math.degrees(math.acos(max(-1.0, min(1.0, math.cos(a - b)))))


def rotary_in_words(omega, pairs) -> str:
    """The alternative text of `rotary`."""
    rows = []
    for place, other in pairs:
        query, key = turned(QUERY, place, omega), turned(KEY, other, omega)
        angles = ", ".join(f"{apart(a, b):.0f}" for a, b in zip(query, key))
        rows.append(
            f"query at {place}, key at {other}: {angles} degrees apart, score "
            f"{score(query, key):.2f}"
        )
    return (
        f"Four clocks a row, each with a query's hand and a key's. {'; '.join(rows)}. "
        "Only the distance of the positions changes the angles."
    )


def draw_rotary(omega, pairs):
    """The picture of `rotary`: a row a pair of positions, a column a hand, the scores."""
    from matplotlib.figure import Figure

    hands = len(omega)
    with plain_style():
        figure = Figure(figsize=(5.9, 1.0 * len(pairs) + 0.3))
        ax = clock_axes(figure, (-1.75, hands + 0.25), (len(pairs) - 0.42, -0.75))
        for hand in range(hands):
            ax.text(hand, -0.6, f"hand {hand}", ha="center", va="center", size=9.5)
        ax.text(hands - 0.1, -0.6, "score", ha="center", va="center", weight="bold")
        for row, (place, other) in enumerate(pairs):
            query, key = turned(QUERY, place, omega), turned(KEY, other, omega)
            ax.text(-0.55, row - 0.1, f"query at {place}", ha="right", color=ATTENTION)
            ax.text(-0.55, row + 0.13, f"key at {other}", ha="right", va="center")
            for hand, (a, b) in enumerate(zip(query, key)):
                face(ax, hand, row)
                point(ax, hand, row, a, ATTENTION, 3.6)
                point(ax, hand, row, b, INK, 1.3)
                angle = f"{apart(a, b):.0f}°"
                ax.text(hand + 0.4, row + 0.47, angle, ha="right", size=9, color=GREY)
            total = f"{score(query, key):.2f}"
            ax.text(hands - 0.1, row, total, ha="center", va="center", weight="bold")
    return figure
