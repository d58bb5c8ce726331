"""Exercises of notebook 14: the shifted loss, gradients of parts, when to stop."""

import math

import torch
import torch.nn.functional as F

from transformer.teaching.exercises import Exercise


def targets(*lengths: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (B, L, V) and padded targets (B, L), the same at every call."""
    chance = torch.Generator().manual_seed(sum(lengths))
    L = max(lengths)
    target = torch.zeros(len(lengths), L, dtype=torch.long)
    for row, length in zip(target, lengths):
        words = torch.randint(3, 9, (length - 2,), generator=chance).tolist()
        row[:length] = torch.tensor([1, *words, 2])
    return torch.randn(len(lengths), L, 9, generator=chance), target


def decoder_loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Torch's cross-entropy, of answers and the tokens one place later."""
    return F.cross_entropy(
        logits[:, :-1].flatten(0, 1), target[:, 1:].flatten(), ignore_index=0
    )


check_decoder_loss = Exercise(
    decoder_loss,
    lambda: [targets(6, 4), targets(3, 9, 5)],
    "which token does the answer at place t belong to, and which places are only padding?",
)


def accumulated(parts: list[tuple[torch.Tensor, int]]) -> torch.Tensor:
    """A mean of the gradients, weighted by tokens."""
    gradients = torch.stack([gradient for gradient, _ in parts])
    tokens = torch.tensor([float(count) for _, count in parts])
    return tokens @ gradients / tokens.sum()


check_accumulated = Exercise(
    accumulated,
    lambda: [
        ([(torch.tensor([1.0, -2.0, 0.5]), 30), (torch.tensor([4.0, 0.0, 1.0]), 10)],),
        ([(torch.arange(4.0), 7), (torch.ones(4), 5), (-torch.arange(4.0), 800)],),
    ],
    "a mean times its tokens is a sum; add up the sums, and divide by all tokens",
)


def stops(losses: list[float], patience: int) -> tuple[int, int]:
    """Done as soon as the best of all so far lies `patience` validations back."""
    for done in range(1, len(losses) + 1):
        best = min(range(done), key=lambda i: losses[i]) + 1
        if done - best >= patience or done == len(losses):
            return done, best
    return 0, 0


check_stops = Exercise(
    stops,
    lambda: [
        ([3.0, 2.0, 2.5, 2.4, 1.0, 0.5], 2),
        ([3.0, 2.0, 2.5, 1.5, 1.6, 1.4], 2),
        ([2.0, 2.0, 2.0, 1.0], 2),
        ([math.inf, 5.0, 4.0], 1),
    ],
    "count from the best validation so far; an equal loss is not better",
)
