"""Exercises of notebook 16: weights averaged, a shift tried on other owners."""

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


def right_elsewhere(feminine: torch.Tensor, masculine: torch.Tensor) -> int:
    """How many of every second owner are right with the line that suits the others best."""

    def right(line: float, half: int) -> int:
        ihren, seinen = feminine[half::2] >= line, masculine[half::2] < line
        return int(ihren.sum() + seinen.sum())

    lines = sorted([*feminine[::2].tolist(), *masculine[::2].tolist()])
    best = max(lines, key=lambda line: right(line, 0))  # the first of several
    return right(best, 1)


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

check_right_elsewhere = Exercise(
    right_elsewhere,
    lambda: [
        leanings(1, apart=1.0),
        leanings(2, apart=2.5),
        leanings(3, apart=-4.0),  # the wrong way round: one kind alone can be right
        (torch.tensor([-1.0, -2.0]), torch.tensor([-2.0, -2.0])),  # two at one place
    ],
    "the line is chosen on [::2] alone, and what is right is counted on [1::2] alone; feminine "
    "owners at or above the line are right, and masculine ones below it",
)
