"""Exercises of notebook 16: weights averaged, two systems compared."""

import torch

from transformer.teaching.exercises import Exercise


def average_of_last(kept: dict[int, list], k: int) -> list:
    """The mean of the k latest weights, tensor by tensor, from {update: [tensor, ...]}."""
    last = [kept[update] for update in sorted(kept)[-k:]]
    return [torch.stack(tensors).mean(dim=0) for tensors in zip(*last)]


def weights_kept(updates: list[int], k: int) -> tuple[dict, int]:
    """Two random tensors for each update, and k."""
    chance = torch.Generator().manual_seed(k)
    return {
        update: [
            torch.randn(shape, generator=chance, requires_grad=True)  # no sums in place
            for shape in ((2, 3), (4,))
        ]
        for update in updates
    }, k


def share_better(
    ours: torch.Tensor, theirs: torch.Tensor, draws: torch.Tensor
) -> float:
    """In which part of the draws (m, n) ours have the higher precision, from counts (n, 2)."""
    a, b = (counts[draws].double().sum(dim=1) for counts in (ours, theirs))  # (m, 2)
    return (a[:, 0] / a[:, 1] > b[:, 0] / b[:, 1]).double().mean().item()


def two_systems(n: int, m: int) -> tuple:
    """Hits and words of n sentences by two systems, and m draws of n sentences."""
    chance = torch.Generator().manual_seed(n)
    words = torch.randint(4, 30, (2, n), generator=chance)
    rates = torch.tensor([[0.58], [0.55]])
    hits = (words * (rates + 0.2 * torch.rand(2, n, generator=chance))).long()
    draws = torch.randint(n, (m, n), generator=chance)
    return *torch.stack([hits, words], dim=-1), draws


check_averaged = Exercise(
    average_of_last,
    lambda: [
        weights_kept([100, 200, 300], 2),
        weights_kept([900, 1000, 800], 2),
        weights_kept([60, 20, 40, 80], 3),
    ],
    "the keys are updates, in any order: sort them, take the last k, and add into new tensors",
)

check_share_better = Exercise(
    share_better,
    lambda: [
        two_systems(40, 300),
        two_systems(25, 200),
        two_systems(9, 9)[:1] * 2 + two_systems(9, 9)[2:],
    ],  # equals
    "take the same draw for both systems, and add up hits and words before you divide",
)
