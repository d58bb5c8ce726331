"""Exercises of notebook 08: a detector of peeking, the shifted target."""

import torch

from transformer.teaching.exercises import Exercise


class Summing(torch.nn.Module):
    """A model whose row t scores sums of target tokens: all up to t, or also those that
    `leaks` names, {row: a later token}."""

    def __init__(self, leaks: dict[int, int]):
        super().__init__()
        self.leaks = leaks

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        T = target.shape[1]
        seen = torch.ones(T, T).tril()
        for row, token in self.leaks.items():
            seen[row, token] = 1
        vectors = torch.nn.functional.one_hot(target, 10).float()
        return seen @ vectors + source.float().mean()


def looks_ahead(model, source, target, V: int) -> bool:
    """True if a row of scores depends on a later token: each is changed once."""
    before = model(source, target)
    for t in range(1, target.shape[1]):
        changed = target.clone()
        changed[:, t] = (changed[:, t] + 1) % V
        if (model(source, changed)[:, :t] != before[:, :t]).any():
            return True
    return False


def some_models() -> list[tuple]:
    source, target = torch.tensor([[5, 6]]), torch.tensor([[1, 4, 7, 9, 3]])
    leaks: list[dict[int, int]] = [{}, {0: 1}, {3: 4}, {1: 2}, {0: 3}]
    return [(Summing(leak), source, target, 10) for leak in leaks]


check_looks_ahead = Exercise(
    looks_ahead,
    some_models,
    "change one token at a time, and compare all the rows before it",
)


def shifted(targets: list[list[int]], pad_id: int, bos_id: int, eos_id: int) -> tuple:
    """What goes into the decoder and what it should name, by torch's padding."""
    sides = [
        [[bos_id, *target] for target in targets],
        [[*target, eos_id] for target in targets],
    ]
    return tuple(
        torch.nn.utils.rnn.pad_sequence(
            list(map(torch.tensor, side)), batch_first=True, padding_value=pad_id
        )
        for side in sides
    )


check_shifted = Exercise(
    shifted,
    lambda: [([[5, 6, 7], [8], [9, 4]], 0, 1, 2), ([[3], [4, 5]], 9, 7, 8)],
    "the decoder reads the start mark and all tokens, and names all tokens and the end mark",
)
