"""Exercises of notebook 20: attention piece by piece, a step with a cache, weights in 8 bits."""

import torch

from transformer.attention import attention
from transformer.teaching.exercises import Exercise, normal, normals


def attended(q, k, v, size):
    return attention(q[None], k, v)[0][0]


def step(q, k, v, keys, values):
    keys, values = (
        torch.cat([keys, k[:, None]], dim=1),
        torch.cat([values, v[:, None]], dim=1),
    )
    return attention(q[:, None], keys, values)[0][:, 0], keys, values


def in_8_bits(W):
    scales = torch.stack([row.abs().max() for row in W])[:, None] / 127
    return torch.round(W / scales).to(torch.int8), scales


check_in_blocks = Exercise(
    attended,
    lambda: [
        (*normals(20, (4,), (7, 4), (7, 3)), 3),
        (*(12 * x for x in normals(20, (8,), (20, 8), (20, 2))), 6),
    ],
    "when a block brings a larger score than all before, what was added up so far counts less: "
    "times e to the old largest minus the new",
)

check_cached_step = Exercise(
    step,
    lambda: [
        normals(20, (2, 4), (2, 4), (2, 3), (2, n, 4), (2, n, 3)) for n in (0, 1, 5)
    ],
    "the new key and value come behind those held before the query looks; softmax goes over "
    "positions, not over sentences",
)

check_in_8_bits = Exercise(
    in_8_bits,
    lambda: [(normal(20, 3, 5),), (0.01 * normal(20, 4, 6),)],
    "the largest number of each row becomes 127 or -127; the scale is what a step of 1 is worth",
)
