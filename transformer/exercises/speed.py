"""Exercises of notebook 20: attention piece by piece, a step with a cache, weights in 8 bits."""

import torch

from transformer.attention import scaled_dot_product_attention
from transformer.exercises import Exercise


def numbers(*shapes: tuple, times: float = 1.0) -> list[torch.Tensor]:
    """Random tensors, the same at each call."""
    generator = torch.Generator().manual_seed(20)
    return [times * torch.randn(*shape, generator=generator) for shape in shapes]


def attended(q, k, v, size):
    return scaled_dot_product_attention(q[None], k, v)[0][0]


def step(q, k, v, keys, values):
    keys, values = torch.cat([keys, k[:, None]], dim=1), torch.cat([values, v[:, None]], dim=1)
    return scaled_dot_product_attention(q[:, None], keys, values)[0][:, 0], keys, values


def in_8_bits(W):
    scales = torch.stack([row.abs().max() for row in W])[:, None] / 127
    return torch.round(W / scales).to(torch.int8), scales


check_in_blocks = Exercise(
    attended,
    lambda: [(*numbers((4,), (7, 4), (7, 3)), 3), (*numbers((8,), (20, 8), (20, 2), times=12), 6)],
    "when a block brings a larger score than all before, what was added up so far counts less: "
    "times e to the old largest minus the new")

check_cached_step = Exercise(
    step,
    lambda: [tuple(numbers((2, 4), (2, 4), (2, 3), (2, n, 4), (2, n, 3))) for n in (0, 1, 5)],
    "the new key and value come behind those held before the query looks; softmax goes over "
    "positions, not over sentences")

check_in_8_bits = Exercise(
    in_8_bits, lambda: [tuple(numbers((3, 5))), tuple(numbers((4, 6), times=0.01))],
    "the largest number of each row becomes 127 or -127; the scale is what a step of 1 is worth")
