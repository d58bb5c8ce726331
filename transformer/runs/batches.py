"""The batches of notebook 10 of lists and of pairs on disk, from any place in an epoch on."""

from collections.abc import Iterator
from typing import Any

from transformer.corpora.windows import random_numbers, similar_orders
from transformer.data import fill_batches
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


def epochs_in_memory(training: Any, encoded: list) -> float:
    """Epochs that the updates of a training come to, by the batches of its first."""
    seed = epoch_seed(training.seed, 0)
    batches = token_batches(encoded, training.batch_tokens, seed)
    return training.updates * training.accumulate / len(batches)
