"""Exercises of notebook 24: an exact step, two steps joined, attention as a recurrence."""

import torch

from transformer.teaching.exercises import Exercise, normals


def some_step(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    delta, A = normals(seed, (3, 1), (3, 5))
    return delta.exp(), -A.exp()


check_exact_step = Exercise(
    lambda delta, A: (torch.exp(delta * A), torch.expm1(delta * A) / A),
    lambda: [some_step(1), some_step(2)],
    "h' = A h + B x, solved for a time delta with x the same all the while",
)

check_both_steps = Exercise(
    lambda first, second: (second[0] * first[0], second[0] * first[1] + second[1]),
    lambda: [
        (normals(1, (4,), (4,)), normals(2, (4,), (4,))),
        ((0.5, 2.0), (0.25, -1.0)),
    ],
    "put the first step's a h + u where the second one has h",
)

check_linear_attention = Exercise(
    lambda q, k, v: (q @ k.T).tril() @ v,
    lambda: [normals(3, (6, 3), (6, 3), (6, 2)), normals(4, (1, 2), (1, 2), (1, 4))],
    "the state is the sum of outer products k_s v_s so far; write first, then read",
)
