"""Exercises of notebook 06: cross-entropy, its gradient, neighbours by cosine."""

import torch
import torch.nn.functional as F

from transformer.teaching.exercises import Exercise


def predictions(n: int, V: int, size: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (n, V) of a size, and right answers (n,); the same at every call."""
    chance = torch.Generator().manual_seed(n)
    return size * torch.randn(n, V, generator=chance), torch.randint(
        V, (n,), generator=chance
    )


def rows(V: int, d: int) -> torch.Tensor:
    """A matrix (V, d) with rows of very different lengths, the same at every call."""
    chance = torch.Generator().manual_seed(V)
    return torch.randn(V, d, generator=chance) * torch.rand(V, 1, generator=chance) * 9


check_cross_entropy = Exercise(
    F.cross_entropy,
    lambda: [predictions(4, 9, 1.0), predictions(3, 5, 300.0)],
    "subtract the largest logit first; log p is a logit minus the log of the sum of exponentials",
)

check_gradient = Exercise(
    torch.func.grad(F.cross_entropy),
    lambda: [predictions(4, 9, 1.0), predictions(6, 3, 2.0)],
    "softmax minus one-hot; the loss is a mean over the predictions",
)

check_neighbours = Exercise(
    lambda E, row, k: (
        F.cosine_similarity(E, E[row : row + 1])
        .argsort(descending=True)
        .tolist()[1 : k + 1]
    ),
    lambda: [(rows(12, 4), 3, 11), (rows(20, 3), 0, 2)],
    "a cosine is a product divided by both lengths; leave out the row itself",
)
