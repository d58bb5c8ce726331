"""Exercises of notebook 22: a pattern's mask, a stack's field, two softmaxes joined."""

import torch

from transformer.sparse import Pattern, pattern_mask
from transformer.teaching.exercises import Exercise


def gap_mask(n: int, r: int, gap: int) -> torch.Tensor:
    """The mask of one head without global tokens."""
    return pattern_mask(Pattern(r, gaps=(gap,)), n)[0]


def field(r: int, gaps: list[int]) -> int:
    """Positions in reach of one output, layer upon layer."""
    return 1 + 2 * r * sum(gaps)


def joined(
    a: torch.Tensor, b: torch.Tensor, u: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    """One softmax over both parts' scores."""
    return torch.cat([a, b]).softmax(dim=0) @ torch.cat([u, v])


def scores(seed: int, n: int, m: int) -> tuple:
    """Scores (n,) and (m,) and values (n, 3) and (m, 3), always the same for a seed."""
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.randn(n, generator=generator), torch.randn(m, generator=generator)
    u, v = (
        torch.randn(n, 3, generator=generator),
        torch.randn(m, 3, generator=generator),
    )
    return 3 * a, 3 * b, u, v


check_gap_mask = Exercise(
    gap_mask,
    lambda: [(9, 2, 1), (20, 2, 3), (7, 5, 4)],
    "with a gap of 3 and r = 2, position i sees i - 6, i - 3, i, i + 3 and i + 6",
)

check_field = Exercise(
    field,
    lambda: [(2, [1, 4, 16]), (32, [1]), (3, [1, 2, 2, 5])],
    "each layer adds r steps of its gap on each side, and the position itself counts once",
)

check_joined = Exercise(
    joined,
    lambda: [scores(1, 5, 2), scores(2, 3, 3), scores(3, 1, 6)],
    "the two results are averages, and each counts as much as its own sum of exponentials",
)
