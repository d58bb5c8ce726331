"""Pairs of sentences laid into packed batches of one shape."""

from dataclasses import dataclass

import numpy as np
import torch

from transformer.fast.documents import Documents, PackedBatch, Way


@dataclass(frozen=True)
class Layout:
    """The shape of all packed batches of a run.

    tokens: of the source, and of the target, tail included. sentences: most of a batch. longest:
    most tokens of a sentence on either side. ValueError where a sentence might not fit.
    """

    tokens: int
    sentences: int
    longest: int

    def __post_init__(self) -> None:
        if self.longest > self.room:
            raise ValueError(
                f"packed batches of {self.tokens} tokens have room for a sentence of "
                f"{max(0, self.room)}, and one has {self.longest}: give more batch_tokens, "
                "or leave the long ones out"
            )

    @property
    def tails(self) -> int:
        """Documents of the padding at the end, each of at least 1 and at most `longest` tokens."""
        return -(-self.tokens // self.longest)

    @property
    def room(self) -> int:
        """Tokens for sentences, on either side."""
        return self.tokens - self.tails


def layout_of(source: np.ndarray, target: np.ndarray, tokens: int) -> Layout:
    """The `Layout` for pairs with these lengths (ids of a target, begin and end mark included)."""
    longer = np.maximum(source, target - 1)
    sentences = int(1.25 * tokens / longer.mean()) + 1
    return Layout(tokens, sentences, int(longer.max()))


def fill_packs(
    order: list[int], source: np.ndarray, target: np.ndarray, layout: Layout
) -> list[list[int]]:
    """Cut pairs in this order into packs that a batch of the layout has room for.

    source, target: the lengths of their ids, in the same order.
    """
    packs: list[list[int]] = [[]]
    left = [layout.room] * 2
    for row, *sides in zip(order, source.tolist(), (target - 1).tolist()):
        fits = all(side <= rest for side, rest in zip(sides, left))
        if packs[-1] and not (fits and len(packs[-1]) < layout.sentences):
            packs.append([])
            left = [layout.room] * 2
        packs[-1].append(row)
        left = [rest - side for side, rest in zip(sides, left)]
    return packs


def documents(lengths: list[int], layout: Layout) -> Documents:
    """`Documents` of sentences with these lengths, of empty ones, and of the tail."""
    rest = layout.tokens - sum(lengths)
    cuts = np.arange(layout.tails + 1) * rest // layout.tails
    empty = [0] * (layout.sentences - len(lengths))
    sizes = np.array([*lengths, *empty, *np.diff(cuts)])
    offsets = np.concatenate([[0], sizes.cumsum()])
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    positions = np.arange(layout.tokens) - offsets[numbers]
    return Documents(
        torch.from_numpy(numbers),
        torch.from_numpy(positions),
        torch.from_numpy(offsets.astype(np.int32)),
        layout.longest,
    )


def row_of(sides: list, layout: Layout, pad_id: int) -> torch.Tensor:
    """Lists of ids back to back, and padding: (1, tokens)."""
    row = np.full(layout.tokens, pad_id, np.int64)
    ids = np.concatenate([np.asarray(side, np.int64) for side in sides])
    row[: len(ids)] = ids
    return torch.from_numpy(row)[None]


def pack(
    pairs: list, layout: Layout, pad_id: int = 0, way: Way = "dense"
) -> PackedBatch:
    """Encoded pairs, [(source ids, target ids with begin and end mark), ...], as a `PackedBatch`.

    ValueError where they do not fit into the layout.
    """
    sources = [len(source) for source, _ in pairs]
    targets = [len(target) - 1 for _, target in pairs]
    used = max(sum(sources), sum(targets))
    longest = max(*sources, *targets)
    if used > layout.room or len(pairs) > layout.sentences or longest > layout.longest:
        raise ValueError(
            f"{len(pairs)} pairs of up to {longest} tokens, {used} a side, do not fit into "
            f"{layout}: fill batches by fill_packs"
        )
    return PackedBatch(
        row_of([source for source, _ in pairs], layout, pad_id),
        row_of([target[:-1] for _, target in pairs], layout, pad_id),
        row_of([target[1:] for _, target in pairs], layout, pad_id),
        documents(sources, layout),
        documents(targets, layout),
        way,
    )
