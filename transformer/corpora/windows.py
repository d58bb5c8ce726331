"""The order in which a large corpus is mixed.

To sort millions of pairs anew for every epoch, all their lengths would have to be in memory, and
batches would gather their sentences from all over the disk. So the corpus is cut into blocks of
neighbours, the blocks are put in random order, and a window of so many pairs at a time is mixed.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

BLOCK = 1000
WINDOW = 200_000


def windows(n: int, chance: np.random.RandomState) -> Iterator[np.ndarray]:
    """Yield the indices 0 to n - 1 in parts of at most about WINDOW, each of random blocks."""
    size = BLOCK if n > WINDOW else 100  # where all is one window, it matters little
    blocks = chance.permutation(-(-n // size))
    for part in np.array_split(blocks, -(-n // WINDOW)):
        rows = (part[:, None] * size + np.arange(size)).flatten()
        yield rows[rows < n]


def shuffled(n: int, chance: np.random.RandomState) -> list[int]:
    """The numbers 0 to n - 1 in random order, that of `similar_orders` for one window."""
    rows = np.concatenate([*windows(n, chance)])
    return rows[chance.permutation(n)].tolist()


def random_numbers(seed: int) -> np.random.RandomState:
    """A generator that gives the same numbers with every version of numpy."""
    return np.random.RandomState(np.random.MT19937(seed % 2**64))


def lengths_of(
    encoded: Any, rows: Sequence[int] | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of the sources and of the targets of some encoded pairs."""
    if hasattr(encoded, "lengths"):  # pairs on disk know them without reading a token
        return encoded.lengths(np.asarray(rows))
    pairs = [encoded[i] for i in rows]
    source = np.array([len(source) for source, _ in pairs])
    target = np.array([len(target) for _, target in pairs])
    return source, target


def similar_order(
    source: np.ndarray, target: np.ndarray, chance: np.random.RandomState
) -> np.ndarray:
    """Indices of pairs with these lengths, in an order where neighbours are similar.

    They go by the longer side, and within one length by the difference, in alternating direction:
    (1, 5) ... (5, 5) ... (5, 1), then (6, 1) ... (6, 6) ... (1, 6), then (1, 7) and so on.
    """
    mixed = chance.permutation(len(source))  # so equal pairs change places
    difference = source[mixed] - target[mixed]
    longer = np.maximum(source, target)[mixed]
    second = np.where(longer % 2, difference, -difference)
    return mixed[np.lexsort((second, longer))]  # the last key sorts first


def similar_orders(
    encoded: Any, chance: np.random.RandomState
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield for each window its pairs, short ones first, and the length of each one's longer side."""
    for rows in windows(len(encoded), chance):
        source, target = lengths_of(encoded, rows)
        order = similar_order(source, target, chance)
        yield rows[order].tolist(), np.maximum(source, target)[order].tolist()


def padding_share(encoded: Any, batches: Any) -> float:
    """The part of all places in the batches, both sides, that holds padding."""
    real = places = 0
    for batch in batches:
        for side in zip(*(encoded[i] for i in batch)):  # the sources, the targets
            lengths = [len(ids) for ids in side]
            real += sum(lengths)
            places += len(lengths) * max(lengths)
    return 1 - real / places
