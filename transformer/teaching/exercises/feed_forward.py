"""Exercises of notebook 05: a hat of kinks, a head with scores chosen by hand."""

import torch
import torch.nn.functional as F

from transformer.teaching.exercises import Exercise

check_hat = Exercise(
    lambda x, relu: relu(x + 1) - 2 * relu(x) + relu(x - 1),
    lambda: [
        (torch.linspace(-7, 3, 41), kink) for kink in (torch.relu, F.softplus)
    ],  # no abs
    "a weighted sum of three units: each adds a kink; the slopes have to be 0, 1, -1 and 0 in turn",
)


def some_numbers() -> torch.Tensor:
    """Five rows of six numbers; the same at every call."""
    return torch.randn(5, 6, generator=torch.Generator().manual_seed(5))


check_blend = Exercise(
    lambda numbers, asked, s: (
        (10 * asked + s * numbers).softmax(dim=-1) * numbers
    ).sum(dim=-1),
    lambda: [
        (some_numbers(), torch.tensor([1.0, 1, 0, 0, 0, 0]), 2),
        (some_numbers(), torch.tensor([0.0, 1, 0, 0, 1, 0]), 4),
    ],
    "the softmax of the six scores gives the weights of the six numbers; asked is 1 or 0",
)
