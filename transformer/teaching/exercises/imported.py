"""Exercises of notebook 25: places by turns, one head of c_attn, a scale that moves."""

import math

import torch

from transformer.imported import gpt2_change, interleaved
from transformer.teaching.exercises import Exercise, normal

check_by_turns = Exercise(
    lambda x: x[:, interleaved(x.shape[1])],
    lambda: [(normal(1, 3, 8),), (normal(2, 2, 6),)],
    "the first number of each half belong together, then the second of each, and so on",
)


def head_of(W: torch.Tensor, h: int, i: int) -> list[torch.Tensor]:
    """This package's own cut, whose matrices are transposed."""
    three = gpt2_change(["W_Q.weight", "W_K.weight", "W_V.weight"], W)
    return [matrix.T.chunk(h, dim=1)[i] for matrix in three]


check_head_of = Exercise(
    head_of,
    lambda: [
        (normal(3, 8, 24), 2, 1),
        (normal(4, 12, 36), 3, 0),
        (normal(5, 12, 36), 4, 2),
    ],
    "first cut the columns into three, then each third into h heads",
)

check_rescaled = Exercise(
    lambda gain, bias, E: (
        gain * math.sqrt(len(gain)),
        bias * math.sqrt(len(gain)),
        E / math.sqrt(len(gain)),
    ),
    lambda: [
        (normal(6, 9), normal(7, 9), normal(8, 5, 9)),
        (normal(9, 4), normal(10, 4), normal(11, 3, 4)),
    ],
    "sqrt(d_model) leaves the matrix, and gain and bias both take it over",
)
