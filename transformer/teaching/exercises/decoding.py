"""Exercises of notebook 15: a step of a beam, the tie of two outputs, BLEU's brevity penalty."""

import heapq
import math
import random

from transformer.teaching.exercises import Exercise


def best_extensions(beam: list, log_probs: list, K: int) -> list:
    """The K best (log P, tokens) of all that one token more makes of a beam."""
    extended = (
        (score + log_p, [*tokens, token])
        for (score, tokens), row in zip(beam, log_probs)
        for token, log_p in enumerate(row)
    )
    return heapq.nlargest(K, extended)


def step(k: int, V: int, K: int) -> tuple[list, list, int]:
    """A beam of k beginnings, log probabilities of V types after each, and K; always the same."""
    chance = random.Random(V)
    beam = [
        (-3 * chance.random(), [chance.randrange(V), chance.randrange(V)])
        for _ in range(k)
    ]
    rows = [[chance.random() for _ in range(V)] for _ in range(k)]
    return beam, [[math.log(p / sum(row)) for p in row] for row in rows], K


def tie(short: tuple[int, float], long: tuple[int, float]) -> float:
    """The alpha at which two (length, log P) have the same score by GNMT's penalty."""
    return math.log(long[1] / short[1], (5 + long[0]) / (5 + short[0]))


def brevity(outputs: list[str], references: list[str]) -> float:
    """BLEU's brevity penalty of a corpus of words between spaces."""
    c, r = (len(" ".join(side).split()) for side in (outputs, references))
    return math.exp(min(0, 1 - r / c))


check_beam_step = Exercise(
    best_extensions,
    lambda: [step(1, 5, 3), step(3, 6, 3), step(4, 9, 2)],
    "make every extension of every beginning; log probabilities are added; then sort all of them",
)

check_tie = Exercise(
    tie,
    lambda: [((6, -3.0), (12, -4.0)), ((5, -7.0), (28, -9.9)), ((1, -0.5), (3, -0.6))],
    "set both scores equal and take the logarithm: alpha stands in the exponent",
)

check_brevity = Exercise(
    brevity,
    lambda: [
        (["a b c", "d"], ["a b c d", "e f"]),
        (["a b c d e f"], ["a b c"]),
        (["a", "b c d e f g"], ["a b c d", "b c d"]),
    ],
    "count the words of the whole corpus first; a corpus longer than its references has 1",
)
