"""The order in which a large corpus is mixed.

To sort millions of pairs anew for every epoch, all their lengths would have to be in memory, and
batches would gather their sentences from all over the disk. So the corpus is cut into blocks of
neighbours, the blocks are put in random order, and a window of so many pairs at a time is mixed.
"""

from collections.abc import Iterator

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
