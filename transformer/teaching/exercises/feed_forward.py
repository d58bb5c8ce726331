"""Exercises of notebook 05: the network without ReLU, SwiGLU, a hat of kinks."""

import torch
import torch.nn.functional as F

from transformer.teaching.exercises import Exercise, normals


def merged(x, W_1, b_1, W_2, b_2) -> tuple[torch.Tensor, ...]:
    """A, c and x A + c, found by sending unit vectors through both layers."""

    def both(rows):
        return F.linear(F.linear(rows, W_1.T, b_1), W_2.T, b_2)

    c = both(torch.zeros(len(W_1)))
    return both(torch.eye(len(W_1))) - c, c, both(x)


check_merged = Exercise(
    merged,
    lambda: [
        normals(5, (2, 3, 4), (4, 8), (8,), (8, 4), (4,)),
        normals(5, (5, 3), (3, 2), (2,), (2, 3), (3,)),
    ],
    "multiply the brackets out: (x W_1 + b_1) W_2 + b_2",
)

check_swiglu = Exercise(
    lambda x, W, V, W_2: (F.silu(x @ W) * (x @ V)) @ W_2,
    lambda: [
        normals(5, (2, 3, 4), (4, 6), (4, 6), (6, 4)),
        normals(5, (5, 2), (2, 3), (2, 3), (3, 2)),
    ],
    "only one of the two hidden layers goes through the logistic function",
)

check_hat = Exercise(
    lambda x, relu: relu(x + 1) - 2 * relu(x) + relu(x - 1),
    lambda: [
        (torch.linspace(-7, 3, 41), kink) for kink in (torch.relu, F.softplus)
    ],  # no abs
    "a weighted sum of three units: each adds a kink; the slopes have to be 0, 1, -1 and 0 in turn",
)
