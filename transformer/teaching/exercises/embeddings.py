"""Exercise of notebook 06: cross-entropy."""

import torch
import torch.nn.functional as F

from transformer.teaching.exercises import Exercise


def predictions(n: int, V: int, size: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (n, V) of a size, and right answers (n,); the same at every call."""
    chance = torch.Generator().manual_seed(n)
    return size * torch.randn(n, V, generator=chance), torch.randint(
        V, (n,), generator=chance
    )


check_cross_entropy = Exercise(
    F.cross_entropy,
    lambda: [predictions(4, 9, 1.0), predictions(3, 5, 300.0)],
    "subtract the largest logit first; log p is a logit minus the log of the sum of exponentials",
)
