"""Exercises of notebook 12: decoupled weight decay, a cosine, where the rate is high."""

import math

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


def cosine(step: int, peak: float, warmup: int, total: int) -> float:
    """A straight rise times half a wave that begins when the rise has ended."""
    wave = math.cos(math.pi * max(0, step - warmup) / (total - warmup))
    return min(step / warmup, 1) * peak * (1 + wave) / 2


check_cosine = Exercise(
    cosine,
    lambda: [(step, 0.003, 40, 200) for step in (1, 17, 40, 41, 120, 199, 200)],
    "the wave begins at update warmup with the whole peak and ends at update total with 0",
)


def between(k: int, warmup: int) -> tuple[int, int]:
    """On the way up the share is step / warmup, on the way down sqrt(warmup / step)."""
    return -(-warmup // k), warmup * k**2


check_between = Exercise(
    between,
    lambda: [(2, 4000), (4, 1001), (1, 300)],
    "solve both terms of the formula for the step; first and last update count as well",
)
