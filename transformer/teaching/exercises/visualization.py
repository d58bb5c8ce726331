"""Exercises of notebook 19."""

import torch

from transformer.teaching.exercises import Exercise


def even_head(weights, head, mask):
    """weights (B, h, S, S), mask (B, S) -> (B, h, S, S)."""
    changed = weights.clone()
    for rows, real in zip(changed[:, head], mask):
        rows[:] = 0.0
        rows[:, real] = 1 / real.sum()
    return changed


def some_sentences():
    generator = torch.Generator().manual_seed(19)
    mask = torch.arange(6) < torch.tensor([[6], [4]])
    weights = torch.randn(2, 3, 6, 6, generator=generator)
    weights = weights.masked_fill(~mask[:, None, None], -torch.inf).softmax(dim=-1)
    return [(weights, 1, mask)]


check_even_head = Exercise(
    even_head,
    some_sentences,
    "each sentence has an even row of its own, over the words that its mask allows",
)
