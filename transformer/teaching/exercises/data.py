"""Exercises of notebook 10: merges applied, a filter by length, batches by tokens, padding."""

import torch

from transformer.data import pad
from transformer.teaching.exercises import Exercise


def segment(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """A word cut by merges: pairs are joined where they stand, from the left."""
    symbols = list(word)
    for pair in merges:
        i = 0
        while i < len(symbols) - 1:
            if tuple(symbols[i : i + 2]) == pair:
                symbols[i : i + 2] = ["".join(pair)]
            i += 1
    return symbols


LEARNED = [
    ("e", "r"),
    ("t", "h"),
    ("th", "e"),
    ("a", "t"),
    ("h", "er"),
    ("m", "o"),
    ("o", "t"),
]

check_segment = Exercise(
    segment,
    lambda: [
        ("mother", LEARNED),
        ("thatother", LEARNED),
        ("x", []),
        ("ererer", [("er", "er"), *LEARNED]),
        ("aaaaa", [("a", "a"), ("aa", "aa")]),
    ],
    "take the merges one by one, as they come, and go through the whole word for each",
)


def kept(
    pairs: list[tuple[str, str]], most: int, ratio: float
) -> list[tuple[str, str]]:
    """The pairs that a filter by length and ratio lets pass."""
    lengths = [[len(text.split()) for text in pair] for pair in pairs]
    return [
        pair
        for pair, sides in zip(pairs, lengths)
        if min(sides) and max(sides) <= most and max(sides) / min(sides) <= ratio
    ]


SOME = [
    ("a b c", "d e"),
    ("a", "b c"),
    ("a", "b c d"),
    ("", "a"),
    ("a b", " "),
    ("", " "),
    ("a b c d", "e f g"),
    ("a b c d e", "f g h i j"),
    ("a  b", "c"),
    ("a b c", "d"),
]

check_kept = Exercise(
    kept,
    lambda: [(SOME, 4, 2.0), (SOME, 5, 1.5), (SOME, 2, 9.0)],
    "exactly `most` words and exactly `ratio` stay; either side may be the longer",
)


def filled(lengths: list[int], batch_tokens: int) -> list[list[int]]:
    """Batches of neighbours, each as full as it may be."""
    batches: list[list[int]] = []
    size, longest = 0, 0
    for i, length in enumerate(lengths):
        size, longest = size + 1, max(longest, length)
        if not batches or size * longest > batch_tokens:
            batches.append([])
            size, longest = 1, length
        batches[-1].append(i)
    return batches


check_filled = Exercise(
    filled,
    lambda: [
        ([3, 3, 4, 4, 9, 30, 2, 2], 12),
        ([5, 1, 1, 1, 1], 10),
        ([7], 5),
        ([2] * 9, 8),
        ([1, 4, 1, 1], 12),
    ],
    "a batch has as many places as sentences times its longest sentence",
)


def padded(rows: list[list[int]], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids with padding, and where tokens stand."""
    return pad(rows, pad_id), pad([[1] * len(row) for row in rows], 0).bool()


check_padded = Exercise(
    padded,
    lambda: [
        ([[5, 6, 2], [7, 2]], 0),
        ([[4, 0, 2], [8], [0, 0]], 0),
        ([[3], [9, 9]], 1),
    ],
    "a mask says where a row has ended, and the id alone does not",
)
