"""Exercises of notebook 19."""

import torch

from transformer.teaching.exercises import Exercise


def looks_away(weights, head, word, other):
    """weights (B, h, S, S) -> (B, h, S, S)."""
    changed = weights.clone()
    for sentence in changed:
        row = sentence[head, word]
        row[other] = 0.0
        row /= row.sum()
    return changed


def some_sentences():
    generator = torch.Generator().manual_seed(19)
    weights = torch.randn(2, 3, 6, 6, generator=generator).softmax(dim=-1)
    return [(weights, 1, 4, 5), (weights, 0, 2, 2)]


check_looks_away = Exercise(
    looks_away,
    some_sentences,
    "only one row of one head changes in each sentence, and what is left of it sums to 1",
)
