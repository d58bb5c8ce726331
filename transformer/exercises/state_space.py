"""Exercises of notebook 24: an exact step, two steps joined, attention as a recurrence."""

import torch

from transformer.exercises import Exercise


def random(seed: int, *shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


def some_step(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    delta, A = random(seed, (3, 1), (3, 5))
    return delta.exp(), -A.exp()


check_exact_step = Exercise(
    lambda delta, A: (torch.exp(delta * A), torch.expm1(delta * A) / A),
    lambda: [some_step(1), some_step(2)],
    "h' = A h + B x, solved for a time delta with x the same all the while")

check_both_steps = Exercise(
    lambda first, second: (second[0] * first[0], second[0] * first[1] + second[1]),
    lambda: [(random(1, (4,), (4,)), random(2, (4,), (4,))), ((0.5, 2.0), (0.25, -1.0))],
    "put the first step's a h + u where the second one has h")

check_linear_attention = Exercise(
    lambda q, k, v: (q @ k.T).tril() @ v,
    lambda: [random(3, (6, 3), (6, 3), (6, 2)), random(4, (1, 2), (1, 2), (1, 4))],
    "the state is the sum of outer products k_s v_s so far; write first, then read")
