"""Sentences back to back in one row, without padding between them: each attends inside itself.

A batch of this form has the same shape in every update, so that what was compiled once stays, and
nothing is computed for padding but a short tail.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.core.checks import check_choice

Way = Literal["varlen", "flex", "dense"]
WAYS = ("varlen", "flex", "dense")


@dataclass(frozen=True)
class Documents:
    """The sentences on one side of a packed batch of n tokens, "documents" of attention.

    numbers (n,): which document a token belongs to. positions (n,): its place in that. offsets
    (D + 1,), int32: where each of D documents begins, and where the last one ends; empty ones begin
    where the next does. longest: no document has more tokens.
    """

    numbers: Tensor
    positions: Tensor
    offsets: Tensor
    longest: int


@dataclass(frozen=True)
class PackedBatch:
    """Token ids back to back: source, decoder_input and gold, each (1, n), n the same for ever.

    Document d of `sources` is the source of document d of `targets`. The tail is of padding, whose
    gold is padding, too. way: what computes attention, see `document_attention`.
    """

    source: Tensor
    decoder_input: Tensor
    gold: Tensor
    sources: Documents
    targets: Documents
    way: Way = "dense"


@dataclass(frozen=True)
class DocumentMask:
    """Which queries may attend to which keys: those of the same document.

    causal: and to none that stands later in it. way: what computes it, see `document_attention`;
    table: what that needs besides, made once for all layers.
    """

    queries: Documents
    keys: Documents
    causal: bool = False
    way: Way = "dense"
    table: Any = None

    def allows(self, q: Tensor, k: Tensor) -> Tensor:
        """Whether query number q may attend to key number k."""
        same = self.queries.numbers[q] == self.keys.numbers[k]
        if self.causal:
            return same & (self.queries.positions[q] >= self.keys.positions[k])
        return same

    def dense(self) -> Tensor:
        """The mask as a table of booleans (T, S)."""
        q = torch.arange(len(self.queries.numbers), device=self.queries.numbers.device)
        k = torch.arange(len(self.keys.numbers), device=self.keys.numbers.device)
        return self.allows(q[:, None], k[None])


def document_mask(
    queries: Documents, keys: Documents, causal: bool, way: Way
) -> DocumentMask:
    """A `DocumentMask` with what its way needs. ValueError for an unknown way."""
    check_choice("way", way, WAYS)
    mask = DocumentMask(queries, keys, causal, way)
    if way == "varlen":
        return mask
    if way == "dense":
        return DocumentMask(queries, keys, causal, way, mask.dense())

    def allows(b: Any, h: Any, q: Tensor, k: Tensor) -> Tensor:
        return mask.allows(q, k)  # a function is wanted, not a method

    sizes = len(queries.numbers), len(keys.numbers)
    make = block_masks(queries.numbers.device.type)
    table = make(allows, None, None, *sizes, device=queries.numbers.device)
    return DocumentMask(queries, keys, causal, way, table)


@cache
def block_masks(device_type: str) -> Callable:
    """FlexAttention's maker of masks; compiled on a GPU, where else it would write the whole table."""
    from torch.nn.attention.flex_attention import create_block_mask

    return (
        create_block_mask if device_type == "cpu" else torch.compile(create_block_mask)
    )


@cache
def flex(device_type: str) -> Callable:
    """FlexAttention; compiled on a GPU, where else it would write the tables of weights."""
    from torch.nn.attention.flex_attention import flex_attention

    if device_type == "cpu":
        return flex_attention
    return torch.compile(flex_attention, dynamic=False)


@cache
def varlen() -> tuple[Callable, dict] | None:
    """Torch's attention over documents (since 2.10), and how it is told to be causal.

    None where this torch has none, or one that cannot be told.
    """
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    known = inspect.signature(varlen_attn).parameters
    if "is_causal" in known:
        return varlen_attn, {"is_causal": True}
    if "window_size" in known:
        return varlen_attn, {"window_size": (-1, 0)}
    return None


def way_on(device: torch.device, precision: str) -> Way:
    """The quickest way on a device, for products in this precision: "varlen" for short numbers on
    a GPU whose torch has it, else "flex" there, and "dense" elsewhere."""
    if device.type != "cuda":
        return "dense"
    recent = torch.cuda.get_device_capability(device) >= (8, 0)  # flash attention
    if precision in ("bf16", "fp16") and recent and varlen() is not None:
        return "varlen"
    return "flex"


def document_attention(q: Tensor, k: Tensor, v: Tensor, mask: DocumentMask) -> Tensor:
    """Attention inside documents: q (1, h, T, d_k), k (1, h, S, d_k), v (1, h, S, d_v) -> (1, h, T, d_v).

    Three ways give the same within rounding: "varlen" goes by offsets, "flex" by blocks of a
    compiled kernel, "dense" by a table of T times S booleans. RuntimeError where this torch or this
    device does not have the one that the mask names.
    """
    if mask.way == "dense":
        table = mask.dense() if mask.table is None else mask.table
        return F.scaled_dot_product_attention(q, k, v, table)
    if mask.way == "flex":
        return flex(q.device.type)(q, k, v, block_mask=mask.table)
    there = varlen()
    if there is None:
        raise RuntimeError(
            f"torch {torch.__version__} has no torch.nn.attention.varlen for documents: "
            "take the way flex"
        )
    attend, causal = there
    side_by_side = (x[0].transpose(0, 1) for x in (q, k, v))  # (n, h, d)
    sides = mask.queries, mask.keys
    offsets = (side.offsets for side in sides)
    longest = (side.longest for side in sides)
    heads = attend(*side_by_side, *offsets, *longest, **causal if mask.causal else {})
    return heads.transpose(0, 1)[None]
