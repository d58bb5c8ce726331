"""Exercises of notebook 19."""

import torch

from transformer.teaching.exercises import Exercise


def rollout(weights):
    """(N, h, S, S) -> (S, S)."""
    found = identity = torch.eye(weights.shape[-1])
    for layer in weights.mean(dim=1):
        found = (layer + identity) / 2 @ found
    return found


def even_head(output, v, head, mask):
    """output (B, h, T, d_v), v (B, h, S, d_v), mask (B, S) -> (B, h, T, d_v)."""
    means = torch.stack(
        [values[real].mean(dim=0) for values, real in zip(v[:, head], mask)]
    )
    output = output.clone()
    output[:, head] = means[:, None]
    return output


def some_weights():
    generator = torch.Generator().manual_seed(19)
    return [
        (torch.randn(N, h, S, S, generator=generator).softmax(dim=-1),)
        for N, h, S in ((1, 1, 3), (3, 2, 4))
    ]


def some_outputs():
    generator = torch.Generator().manual_seed(19)
    output, v = (torch.randn(2, 3, n, 4, generator=generator) for n in (5, 6))
    return [(output, v, 1, torch.arange(6) < torch.tensor([[6], [4]]))]


check_rollout = Exercise(
    rollout,
    some_weights,
    "average the heads, add the identity, halve, and multiply: the upper layer stands left",
)
check_even_head = Exercise(
    even_head,
    some_outputs,
    "each sentence has a mean of its own, over the words that its mask allows",
)
