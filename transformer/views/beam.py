"""The widget of chapter 15: the beginnings that a beam search keeps, as a tree."""

import math
from collections.abc import Callable

from transformer.views.widget import (
    ATTENTION,
    GREY,
    PALE,
    RULE,
    Widget,
    plain_style,
    widget,
)

WIDEST = 4  # the largest K of the slider
Path = tuple[int, ...]  # the tokens of a beginning, without the begin mark
Level = list[tuple[float, Path]]  # log P and beginning, best first


def beam_tree(
    extend: Callable, piece: Callable, K: int = 2, steps: int = 4, begin: int = 1
) -> Widget:
    """`Widget` of the first steps of a beam search, with a slider for K from 1 to 4.

    extend(alive, K) gives the best extensions of pairs (log P, tokens), best first, as chapter
    15's `extensions` does for a sentence; piece(token) is a token's text; begin the id that
    tokens begin with. Each step shows the K kept and the best one dropped. Raises ValueError for
    another K.
    """
    if K not in range(1, WIDEST + 1):
        raise ValueError(f"K must be from 1 to {WIDEST}, not {K}")
    table = table_of(extend, begin, steps)
    tokens = sorted({token for rows in table.values() for token, _ in rows})
    names = {token: piece(token) for token in tokens}
    data = {
        "table": {",".join(map(str, path)): rows for path, rows in table.items()},
        "names": names,
        "start": K,
        "widest": WIDEST,
        "steps": steps,
    }
    levels = levels_of(table, K, steps)
    return widget(
        "beam_tree",
        data,
        title="The beginnings that a beam search keeps",
        alt=tree_in_words(levels, K, names),
        figure=draw_tree(levels, K, names),
        height=420,
    )


def table_of(extend: Callable, begin: int, steps: int) -> dict[Path, list]:
    """{beginning: [(token, log P of it), ...]} of all that a beam of any width keeps."""
    table: dict[Path, list] = {}
    for K in range(1, WIDEST + 1):
        alive: list[Path] = [()]
        for step in range(steps):
            for path in alive:
                if path not in table:
                    longer = extend([(0.0, [begin, *path])], WIDEST)[: WIDEST + 1]
                    table[path] = [(tokens[-1], log_p) for log_p, tokens in longer]
            alive = [path for _, path in levels_of(table, K, step + 1)[-1][:K]]
    return table


def levels_of(table: dict[Path, list], K: int, steps: int) -> list[Level]:
    """Of each step the K beginnings that are kept, and the best one dropped."""
    alive: Level = [(0.0, ())]
    levels = []
    for _ in range(steps):
        longer = [
            (log_p + more, (*path, token))
            for log_p, path in alive
            for token, more in table.get(path, [])
        ]
        longer.sort(key=lambda pair: -pair[0])
        levels.append(longer[: K + 1])
        alive = longer[:K]
    return levels


def rows_of(levels: list[Level]) -> dict[Path, float]:
    """The row of each beginning: leaves from the top, others between their extensions."""
    known = [path for level in levels for _, path in level]
    rows: dict[Path, float] = {}

    def put(path: Path, free: int) -> int:
        below = [longer for longer in known if longer[:-1] == path and longer]
        for longer in below:
            free = put(longer, free)
        rows[path] = sum(rows[p] for p in below) / len(below) if below else float(free)
        return free if below else free + 1

    put((), 0)
    return rows


def percent(log_p: float) -> str:
    """A probability in per cent, with a digit behind the point."""
    share = 100 * math.exp(log_p)
    return f"{share:.1f} %" if share >= 0.05 else "< 0.1 %"


def written(path: Path, names: dict[int, str]) -> str:
    """The pieces of a beginning."""
    return " ".join(names[token] for token in path)


def tree_in_words(levels: list[Level], K: int, names: dict[int, str]) -> str:
    """The alternative text of `beam_tree`."""
    said = []
    for step, level in enumerate(levels, 1):
        kept = [f"“{written(path, names)}” {percent(p)}" for p, path in level[:K]]
        said.append(f"step {step}: {', '.join(kept)}")
    return f"A tree of beginnings. With K = {K} are kept, {'; '.join(said)}."


def draw_tree(levels: list[Level], K: int, names: dict[int, str]):
    """The picture of `beam_tree`: steps from left to right, what is kept in blue."""
    from matplotlib.figure import Figure

    rows = rows_of(levels)
    lowest = max(rows.values())
    with plain_style():
        figure = Figure(figsize=(6.8, 0.55 + 0.44 * (lowest + 1)))
        ax = figure.add_axes((0.01, 0.01, 0.98, 0.98))
        ax.set(xlim=(-0.45, len(levels) + 0.5), ylim=(lowest + 0.5, -1.15))
        ax.axis("off")
        draw_node(ax, 0, rows[()], "start", "", (True, False))
        for step, level in enumerate(levels, 1):
            look = {"ha": "center", "va": "center", "color": GREY, "fontsize": 9}
            ax.text(step, -0.85, f"step {step}", **look)
            for rank, (log_p, path) in enumerate(level):
                kept = rank < K
                colour = ATTENTION if kept else RULE
                ends = [rows[path[:-1]], rows[path]]
                start = step - 1 + (0.22 if step == 1 else 0.36)
                ax.plot([start, step - 0.36], ends, color=colour, lw=1.3)
                text = names[path[-1]]
                draw_node(ax, step, rows[path], text, percent(log_p), (kept, rank == 0))
    return figure


def draw_node(ax, x, y, text, share, state):
    """A beginning's last piece, with the probability of the whole beginning; state: whether
    it is kept, and whether it is the best of its step."""
    from matplotlib.patches import FancyBboxPatch

    kept, best = state
    wide = 0.72 if share else 0.44
    box = FancyBboxPatch(
        (x - wide / 2, y - 0.33),
        wide,
        0.66,
        boxstyle="round,pad=0,rounding_size=0.05",
        fc=PALE if kept else "white",
        ec=ATTENTION if kept else RULE,
        lw=2.2 if best else 1.0,
        zorder=2,
    )
    ax.add_patch(box)
    bold = {"weight": "bold"} if kept and share else {}
    if not share:
        ax.text(x, y, text, ha="center", va="center", zorder=3)
        return
    place = {"va": "center", "zorder": 3, "color": "#222222" if kept else GREY}
    ax.text(x - wide / 2 + 0.06, y, text, ha="left", **place, **bold)
    ax.text(x + wide / 2 - 0.05, y, share, ha="right", fontsize=9, **place)
