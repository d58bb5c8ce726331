"""Exercises of notebook 21: the nucleus, a dialogue as one sequence, bits a character."""

import math

import torch

from transformer.language import filtered
from transformer.teaching.exercises import Exercise


def nucleus(probabilities: torch.Tensor, p: float) -> torch.Tensor:
    """This package's own filter."""
    return filtered(probabilities.log(), top_p=p).softmax(dim=0)


def some(seed: int, size: int = 7) -> torch.Tensor:
    return (
        2 * torch.randn(size, generator=torch.Generator().manual_seed(seed))
    ).softmax(dim=0)


check_nucleus = Exercise(
    nucleus,
    lambda: [(some(1), 0.5), (some(2), 0.9), (some(3), 0.05), (some(4), 1.0)],
    "sort the probabilities, and keep those before which the sum has not reached p",
)


def as_sequence(turns: list, bos_id: int, eos_id: int) -> tuple[list[int], list[bool]]:
    """The ids, and which of them are said by the model."""
    ids: list[int] = []
    counts: list[bool] = []
    for question, answer in turns:
        said = [*answer, eos_id]
        ids += [*question, eos_id, bos_id, *said]
        counts += [i >= len(question) + 2 for i in range(len(question) + 2 + len(said))]
    return ids, counts


check_as_sequence = Exercise(
    as_sequence,
    lambda: [([([5, 6], [7]), ([8], [9, 9, 4])], 1, 2), ([([4], [])], 3, 7)],
    "each question ends with the end mark; each answer begins with the begin mark, which is given, "
    "and ends with the end mark, which the model has to say",
)

check_bits_a_character = Exercise(
    lambda log_p, new, text: -log_p[new].sum().item() / (math.log(2) * len(text)),
    lambda: [
        (
            torch.tensor([-1.0, -0.5, -2.0]),
            torch.tensor([True, False, True]),
            "the cat",
        ),
        (torch.tensor([-3.0]), torch.tensor([True]), "Häuser"),
    ],
    "the text's probability is the product over its tokens, each once; log 2 turns nats into bits",
)
