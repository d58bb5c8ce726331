"""How experiments choose a learning rate: the best on validation of those that were tried."""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any


def best_of(tried: dict) -> Any:
    """What has the highest score in {what: score}; of equals, what was tried first."""
    return max(tried, key=tried.get)


def next_rates(tried: dict, first: Sequence, most: int) -> list:
    """The rates to try next, given {rate: score}; none where the best lies inside, or `most` have
    been tried.

    First come those of `first`; then, while the best is the smallest or the largest, half or twice
    it.
    """
    if waiting := [rate for rate in first if rate not in tried]:
        return waiting
    best = best_of(tried)
    if len(tried) >= most or min(tried) < best < max(tried):
        return []
    return [best / 2 if best == min(tried) else best * 2]


def best_rates(rows: list[dict], score: Callable) -> dict[Hashable, float]:
    """The rate of each family in the row with the highest score(row); of equals the first counts,
    and none that diverged."""
    tried: dict[Hashable, dict] = {}
    for row in rows:
        if "diverged" not in row:
            scores = tried.setdefault(row["family"], {})
            before = scores.get(row["rate"], -math.inf)
            scores[row["rate"]] = max(before, score(row))
    return {family: best_of(scores) for family, scores in tried.items()}
