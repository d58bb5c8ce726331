"""The exercise of notebook 27: does a sentence depend on its neighbours in the batch?"""

import torch

from transformer.teaching.exercises import Exercise


class Mixing(torch.nn.Module):
    """Scores that count the tokens read, and by `share` those of the next sentence."""

    def __init__(self, share: float):
        super().__init__()
        self.share = share

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        counted = torch.nn.functional.one_hot(target, 10).double().cumsum(dim=1)
        counted = counted + source.double().mean(dim=1)[:, None, None]
        return counted + self.share * counted.roll(1, dims=0)


def neighbours_move(model, source: torch.Tensor, read: torch.Tensor) -> float:
    """The largest difference between a sentence read beside others and alone."""
    alone = [model(source[i, None], read[i, None]) for i in range(len(source))]
    return (model(source, read) - torch.cat(alone)).abs().max().item()


def some_models() -> list[tuple]:
    source = torch.tensor([[5, 6, 7], [3, 3, 4], [9, 8, 9]])
    read = torch.tensor([[1, 4, 7], [1, 9, 3], [1, 2, 2]])
    return [(Mixing(share), source, read) for share in (0.0, 0.5, -2.0)]


check_neighbours_move = Exercise(
    neighbours_move,
    some_models,
    "read each sentence alone, and compare its scores with those it had beside all others",
)
