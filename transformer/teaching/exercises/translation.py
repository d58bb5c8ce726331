"""Exercises of notebook 16: weights averaged, pairs of owners in the right order."""

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


def in_order(feminine: torch.Tensor, masculine: torch.Tensor) -> float:
    """The share of all pairs in which the feminine owner has the greater leaning."""
    return (feminine[:, None] > masculine).double().mean().item()


def leanings(seed: int, apart: float, n: int = 9) -> tuple[torch.Tensor, torch.Tensor]:
    """Leanings of n feminine and n + 2 masculine owners, to *seinen* before any shift."""
    chance = torch.Generator().manual_seed(seed)
    feminine = torch.randn(n, generator=chance) + apart - 3
    return feminine, torch.randn(n + 2, generator=chance) - 3


check_averaged = Exercise(
    average_of_last,
    lambda: [
        weights_kept([100, 200, 300], 2),
        weights_kept([900, 1000, 800], 2),
        weights_kept([60, 20, 40, 80], 3),
    ],
    "the keys are updates, in any order: sort them, take the last k, and add into new tensors",
)

check_in_order = Exercise(
    in_order,
    lambda: [
        leanings(1, apart=1.0),
        leanings(2, apart=2.5),
        leanings(3, apart=-4.0),  # the wrong way round
        (torch.tensor([-1.0, -2.0]), torch.tensor([-2.0, -2.0])),  # two at one place
    ],
    "compare each feminine leaning with each masculine one, F times M pairs in all; only a strictly "
    "greater one is in order, and the share of these is a float",
)
