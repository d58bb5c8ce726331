"""Exercises of notebook 13: dropout, tensor2tensor's smoothed loss, perplexity over batches."""

import math

import torch

from transformer.regularization import cross_entropy_with_targets, smoothed_targets
from transformer.teaching.exercises import Exercise


def numbers(*shape: int) -> torch.Tensor:
    """Numbers from 0 to 1, the same at every call."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(sum(shape)))


def drop(
    x: torch.Tensor, noise: torch.Tensor, P_drop: float, training: bool
) -> torch.Tensor:
    """The definition, with the random numbers given."""
    return x * (noise >= P_drop) / (1 - P_drop) if training else x


check_drop = Exercise(
    drop,
    lambda: [
        (5 * numbers(4, 6) - 2, numbers(6, 4).T, 0.3, True),
        (numbers(3, 5), numbers(5, 3).T, 0.6, True),
        (numbers(3, 5), numbers(5, 3).T, 0.6, False),
    ],
    "what is kept is divided by the share that is kept, and in evaluation nothing happens",
)


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


def perplexity(batches: list[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """All losses in one row, averaged, and the exponential."""
    losses = torch.cat([losses[real] for losses, real in batches])
    return math.exp(losses.mean())


check_perplexity = Exercise(
    perplexity,
    lambda: [
        (
            [
                (4 * numbers(3, 5), numbers(5, 3).T > 0.2),
                (numbers(2, 2), numbers(2, 2) > 0.1),
            ],
        ),
        (
            [
                (2 * numbers(1, 9), numbers(9, 1).T < 2),
                (9 * numbers(2, 3), numbers(3, 2).T > 0.7),
            ],
        ),
    ],
    "add up losses and real tokens over all batches, divide once, take the exponential last",
)
