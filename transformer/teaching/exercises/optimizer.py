"""Exercises of notebook 12: decoupled weight decay."""

import torch

from transformer.optimizer import adam_update
from transformer.teaching.exercises import Exercise, normal


def adamw(p, gradient, m, v, step, rate, decay):
    """Adam's update of weights that shrank first."""
    moved, m, v = adam_update(p, gradient, m, v, step, rate)
    return moved - rate * decay * p, m, v


check_adamw = Exercise(
    adamw,
    lambda: [
        (normal(1, 5), normal(2, 5), torch.zeros(5), torch.zeros(5), 1, 0.1, 0.5),
        (normal(3, 5), normal(4, 5), normal(5, 5), normal(6, 5).abs(), 7, 0.2, 0.3),
        (normal(3, 5), 1e-8 * normal(4, 5), *torch.zeros(2, 5), 1, 0.1, 0.3),
    ],
    "the moments are Adam's own; weights shrink by rate * decay of what they were before",
)
