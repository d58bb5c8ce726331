"""Exercises of notebook 08: a detector of blind spots, the shifted target."""

import torch

from transformer.teaching.exercises import Exercise


class Summing(torch.nn.Module):
    """A model whose row t scores the sum of target tokens 0 to t, but those that
    `blind` names, and of later ones that `leaks` names; both are pairs (row, token)."""

    def __init__(self, blind: list[tuple[int, int]], leaks: list[tuple[int, int]]):
        super().__init__()
        self.blind, self.leaks = blind, leaks

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        T = target.shape[1]
        seen = torch.ones(T, T).tril()
        for row, token in self.blind:
            seen[row, token] = 0
        for row, token in self.leaks:
            seen[row, token] = 1
        vectors = torch.nn.functional.one_hot(target, 10).float()
        return seen @ vectors + source.float().mean()


def blind_spots(model, source, target, V: int) -> set[tuple[int, int]]:
    """Pairs (row, token), token <= row, where the row does not move with the token."""
    before, found = model(source, target), set()
    for token in range(target.shape[1]):
        changed = target.clone()
        changed[:, token] = (changed[:, token] + 1) % V
        still = (model(source, changed) == before).all(dim=-1)[0]
        found |= {(row, token) for row in range(token, len(still)) if still[row]}
    return found


def some_models() -> list[tuple]:
    source, target = torch.tensor([[5, 6]]), torch.tensor([[1, 4, 7, 9, 3]])
    off = [(row, row) for row in range(5)]  # a causal mask one place off
    cases: list[tuple] = [([], []), (off, []), ([(4, 0)], []), ([(2, 1)], [(0, 3)])]
    return [(Summing(*case), source, target, 10) for case in cases]


check_blind_spots = Exercise(
    blind_spots,
    some_models,
    "change one token at a time, and look at its own row and all the rows after it",
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
