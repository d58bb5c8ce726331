"""The batches of notebook 10 of lists and of pairs on disk, from any place in an epoch on; packed
ones, too."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from transformer.corpora.windows import (
    lengths_of,
    random_numbers,
    similar_orders,
    windows,
)
from transformer.data import fill_batches
from transformer.fast.packing import Layout, fill_packs, layout_of
from transformer.training import epoch_seed


def epoch_batches(
    encoded, batch_tokens: int, seed: int = 0, skip: int = 0
) -> Iterator[list[int]]:
    """Yield the batches of an epoch, lists of indices, without the first `skip` of them.

    encoded: a list of encoded pairs, or `EncodedPairs`. See `token_batches` of notebook 10. Raises
    ValueError where there are no pairs, for batch_tokens below 1 and for a negative skip.
    """
    if batch_tokens < 1 or skip < 0:
        raise ValueError(
            "batch_tokens must be at least 1 and skip at least 0, "
            f"not {batch_tokens} and {skip}"
        )
    if not len(encoded):
        raise ValueError("no sentence pairs to make batches of")
    chance = random_numbers(seed)
    for order, lengths in similar_orders(encoded, chance):
        batches = fill_batches(order, lengths, batch_tokens)
        mixed = chance.permutation(len(batches))
        yield from (batches[i] for i in mixed[skip:])
        skip = max(0, skip - len(batches))


def token_batches(encoded, batch_tokens: int, seed: int = 0) -> list[list[int]]:
    """The batches of an epoch as a list; see `epoch_batches`."""
    return list(epoch_batches(encoded, batch_tokens, seed))


def packed_layout(encoded: Any, batch_tokens: int) -> Layout:
    """The `Layout` for all pairs of a corpus; ValueError where the longest does not fit."""
    parts = [
        lengths_of(encoded, range(start, min(start + 100_000, len(encoded))))
        for start in range(0, len(encoded), 100_000)
    ]
    source, target = (np.concatenate(side) for side in zip(*parts))
    return layout_of(source, target, batch_tokens)


def epoch_packs(
    encoded: Any, layout: Layout, seed: int = 0, skip: int = 0
) -> Iterator[list[int]]:
    """Yield the packs of an epoch, lists of indices in random order, without the first `skip`."""
    chance = random_numbers(seed)
    for rows in windows(len(encoded), chance):
        order = chance.permutation(rows)
        packs = fill_packs(order.tolist(), *lengths_of(encoded, order), layout)
        yield from packs[skip:]
        skip = max(0, skip - len(packs))


def epochs_in_memory(training: Any, encoded: list) -> float:
    """Epochs that the updates of a training come to, by the batches of its first."""
    seed = epoch_seed(training.seed, 0)
    if getattr(training, "packed", False):
        layout = packed_layout(encoded, training.batch_tokens)
        batches = list(epoch_packs(encoded, layout, seed))
    else:
        batches = token_batches(encoded, training.batch_tokens, seed)
    return training.updates * training.accumulate / len(batches)
