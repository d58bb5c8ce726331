"""Exercises of notebook 07: tensor2tensor's table, a look back, rotary positions."""

import math

import torch

from transformer import positions
from transformer.positions import frequencies, shift_matrix, sinusoids
from transformer.teaching.exercises import Exercise


def halves(n: int, d_model: int) -> list[list[float]]:
    """The table with sines first, entry by entry."""
    half = d_model // 2
    rows = [[pos / 10000 ** (i / (half - 1)) for i in range(half)] for pos in range(n)]
    return torch.tensor([[*map(math.sin, row), *map(math.cos, row)] for row in rows])


check_halves = Exercise(
    halves,
    lambda: [(12, 8), (30, 16)],
    "the exponents go from 0 to exactly 1, so d_model / 2 of them have d_model / 2 - 1 steps",
)

check_back = Exercise(
    lambda k, omega: shift_matrix(k, 2 * len(omega)).float(),
    lambda: [(3, frequencies(8).float()), (11, frequencies(6).float())],
    "which rotation takes the row of position j to the row of position j + k?",
)


def rotate(x: torch.Tensor, omega: torch.Tensor) -> torch.Tensor:
    """Rows turned by this package's own function."""
    return positions.rotate(x, sinusoids(len(x), 2 * len(omega)).float())


check_rotate = Exercise(
    rotate,
    lambda: [
        (torch.arange(24.0).view(3, 8) - 9, frequencies(8).float()),
        (torch.ones(9, 4), frequencies(4).float()),
    ],
    "components 2i and 2i + 1 are the two coordinates of one hand; position 0 is not turned",
)
