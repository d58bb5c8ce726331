"""Exercise of notebook 00: the two masks."""

import torch

from transformer.teaching.exercises import Exercise


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
