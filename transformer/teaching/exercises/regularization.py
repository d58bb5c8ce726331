"""Exercises of notebook 13: tensor2tensor's smoothed loss."""

import torch

from transformer.regularization import cross_entropy_with_targets, smoothed_targets
from transformer.teaching.exercises import Exercise


def numbers(*shape: int) -> torch.Tensor:
    """Numbers from 0 to 1, the same at every call."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(sum(shape)))


def tensor2tensor_loss(
    logits: torch.Tensor, gold: torch.Tensor, epsilon: float
) -> torch.Tensor:
    """Szegedy's targets with a larger epsilon, and their divergence from the model."""
    V = logits.shape[1]
    targets = smoothed_targets(gold, V, epsilon * V / (V - 1))
    lowest = cross_entropy_with_targets(targets.log(), targets)
    return (cross_entropy_with_targets(logits, targets) - lowest).mean()


check_tensor2tensor_loss = Exercise(
    tensor2tensor_loss,
    lambda: [
        (6 * numbers(5, 9), torch.tensor([3, 0, 8, 3, 1]), 0.1),
        (40 * numbers(3, 4), torch.tensor([1, 3, 2]), 0.3),
    ],
    "V - 1 types share epsilon; the smallest loss is the entropy of the targets",
)
