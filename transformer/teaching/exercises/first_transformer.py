"""Exercises of notebook 00: attention for one query, the two masks."""

import torch
import torch.nn.functional as F

from transformer.teaching.exercises import Exercise, normals

check_look_up = Exercise(
    lambda q, K, V: F.scaled_dot_product_attention(q[None], K, V)[0],
    lambda: [normals(0, (4,), (3, 4), (3, 2)), normals(0, (9,), (5, 9), (5, 7))],
    "there is one score for each key; softmax goes over the keys, and the root is that of d_k",
)


def masks(
    source: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both masks, place by place."""
    B, T = target.shape
    allowed = [
        [[j <= i and bool(target[b, j]) for j in range(T)] for i in range(T)]
        for b in range(B)
    ]
    return source[:, None, None] > 0, torch.tensor(allowed)[:, None]


check_masks = Exercise(
    masks,
    lambda: [
        (
            torch.tensor([[5, 6, 0], [7, 0, 0]]),
            torch.tensor([[1, 4, 9, 2], [1, 3, 2, 0]]),
        ),
        (torch.tensor([[5]]), torch.tensor([[1, 8]])),
    ],
    "a token may look at itself and at what stands before it, and never at a 0",
)
