"""Exercises of notebook 13: the calibration error."""

import torch

from transformer.teaching.exercises import Exercise


def calibration_error(sure: torch.Tensor, right: torch.Tensor) -> float:
    """The mean over ten bins of |mean of sure - share of right|, by guesses in the bin."""
    bins = (10 * sure).long()
    gaps = torch.zeros(10, dtype=torch.float64)
    gaps.index_add_(0, bins, sure.double() - right.double())
    return (gaps.abs().sum() / len(sure)).item()


def guesses() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Too sure below one half and too timid above, and a few guesses with empty bins."""
    generator = torch.Generator().manual_seed(13)
    sure, chance = torch.rand(2, 200, generator=generator)
    few = torch.tensor([0.95, 0.91, 0.35, 0.32])
    return [
        (sure, chance < 0.5 * sure + 0.25),
        (few, torch.tensor([True, False, True, True])),
    ]


check_calibration_error = Exercise(
    calibration_error,
    guesses,
    "in each bin that is not empty: the difference of the two means, without its sign, "
    "times the share of all guesses that the bin has",
)
