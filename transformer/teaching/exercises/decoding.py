"""The exercise of notebook 15: a step of a beam that stays varied."""

import heapq
import math
import random

from transformer.teaching.exercises import Exercise


def varied_step(beam: list, log_probs: list, K: int) -> list:
    """The K best (log P, tokens) of the two best extensions of each beginning."""
    competing = []
    for (score, tokens), row in zip(beam, log_probs):
        two = heapq.nlargest(2, range(len(row)), key=lambda token: row[token])
        competing += [(score + row[token], [*tokens, token]) for token in two]
    return heapq.nlargest(K, competing)


def step(k: int, V: int, K: int, lead: float = 0.0) -> tuple[list, list, int]:
    """A beam of k beginnings, log probabilities of V types after each, and K; always the same.

    lead: by how much more than the others the first beginning has.
    """
    chance = random.Random(V)
    beam = [
        (-3 * chance.random() - 3, [chance.randrange(V), chance.randrange(V)])
        for _ in range(k)
    ]
    beam[0] = beam[0][0] + lead, beam[0][1]
    rows = [[chance.random() for _ in range(V)] for _ in range(k)]
    return beam, [[math.log(p / sum(row)) for p in row] for row in rows], K


check_varied_step = Exercise(
    varied_step,
    lambda: [step(1, 5, 3), step(3, 6, 3, lead=3.0), step(4, 9, 4, lead=5.0)],
    "first the two best extensions of each beginning, then the K best of all these; "
    "log probabilities are added",
)
