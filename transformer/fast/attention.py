"""Attention with checks and switches, with caches, and by torch's kernels."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer import attention as plain
from transformer.attention import join_heads, split_heads
from transformer.core.checks import (
    check_boolean,
    check_heads,
    check_mask,
    check_values,
    exporting,
)
from transformer.fast.documents import DocumentMask, document_attention

# Not cuDNN's, which torch 2.13 would take on an H100: it plans anew for every shape of
# batch, and its gradients with a mask can be NaN (pytorch issue 196678).
BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
SHORT = 256  # keys
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
EMPTY_ROWS_ARE_ZERO = VERSION >= (2, 5)  # in torch's kernel; before, they were NaN


def scaled_dot_product(q: Tensor, k: Tensor) -> Tensor:
    """q . k / sqrt(d_k): q (..., T, d_k), k (..., S, d_k) -> the scores (..., T, S)."""
    return q / math.sqrt(q.shape[-1]) @ k.transpose(-2, -1)


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """`attention.attention` of notebook 04, with checks.

    Raises TypeError for a mask that is not boolean, and ValueError where k and v differ
    in length.
    """
    check_boolean(mask)
    check_values(k, v)
    return plain.attention(q, k, v, mask)


def share_heads(x: Tensor, h: int) -> Tensor:
    """Repeat heads, each for its queries' heads: (B, h_kv, n, d) -> (B, h, n, d)."""
    return x if x.shape[1] == h else x.repeat_interleave(h // x.shape[1], dim=1)


def check_pair(pair: Any) -> tuple:
    """What an `attend` has returned; ValueError where it is not output and weights."""
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return tuple(pair)
    raise ValueError(
        "attend(q, k, v, mask) must return two things, the output and the weights, or None "
        f"for the weights, and returned {type(pair).__name__}"
    )


class MultiHeadAttention(plain.MultiHeadAttention):
    """`attention.MultiHeadAttention` of notebook 04 with other sizes, and for searches.

    d_k and d_v default to d_model / h, h_kv (heads of keys and values) to h. rotate(x,
    start) turns q or k (B, h, n, d_k) by position; start is that of the first.
    attend(q, k, v, mask) -> output (B, h, T, d_v) and weights (or None). Raises
    ValueError for sizes that do not fit.
    """

    def __init__(
        self,
        d_model: int,
        h: int,
        d_k: int | None = None,
        d_v: int | None = None,
        *,
        bias: bool = False,
        h_kv: int | None = None,
        rotate: Callable | None = None,
        attend: Callable = scaled_dot_product_attention,
    ):
        nn.Module.__init__(self)  # the matrices have other sizes
        check_heads(d_model, h, d_k, d_v, h_kv)
        d_k = d_k or d_model // h
        d_v = d_v or d_model // h
        self.h = h
        self.h_kv = h_kv or h
        self.rotate = rotate
        self.W_Q = nn.Linear(d_model, h * d_k, bias)
        self.W_K = nn.Linear(d_model, self.h_kv * d_k, bias)
        self.W_V = nn.Linear(d_model, self.h_kv * d_v, bias)
        self.W_O = nn.Linear(h * d_v, d_model, bias)
        self.attend = attend

    def queries(self, query: Tensor, start: int | Tensor = 0) -> Tensor:
        """(B, T, d_model) -> q (B, h, T, d_k)."""
        q = split_heads(self.W_Q(query), self.h)
        return q if self.rotate is None else self.rotate(q, start)

    def keys_and_values(
        self, key: Tensor, value: Tensor, start: int | Tensor = 0
    ) -> tuple[Tensor, Tensor]:
        """(B, S, d_model) each -> k (B, h_kv, S, d_k) and v (B, h_kv, S, d_v)."""
        k = split_heads(self.W_K(key), self.h_kv)
        v = split_heads(self.W_V(value), self.h_kv)
        return (k if self.rotate is None else self.rotate(k, start)), v

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Tensor | DocumentMask | None = None,
        cache=None,
        start: int | Tensor = 0,
    ) -> Tensor:
        """query (B, T, d_model), key and value (B, S, d_model) -> (B, T, d_model).

        mask: boolean, broadcastable to (B, h, T, S), or that of a packed batch. start: the
        position of the first query, and of the first new key. Key and value may be left out
        where a cache holds them.
        """
        if isinstance(mask, DocumentMask):
            start = mask.queries.positions
            mask = mask.table if mask.way == "dense" else mask
        else:
            check_mask(mask, query)
        q = self.queries(query, start)
        k, v = (None, None) if key is None else self.keys_and_values(key, value, start)
        if cache is not None:
            k, v = cache.update(k, v)
        pair = self.attend(q, share_heads(k, self.h), share_heads(v, self.h), mask)
        output, _ = check_pair(pair)
        return self.W_O(join_heads(output))


def kernel_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | DocumentMask | None = None
) -> tuple[Tensor, Tensor | None]:
    """`scaled_dot_product_attention` by torch's kernel, which never writes the table of weights.

    Returns the output (B, h, T, d_v), and None for the weights. Rows that may attend to
    nothing give zeros, on every version of torch. On a CPU the formula is taken where it
    is quicker: for a single query, and for few keys in bf16 or at "medium". There the
    kernel's backward pass in bf16 is slow at any length, so it gets fp32. A packed batch's
    mask brings its own way.
    """
    if isinstance(mask, DocumentMask):
        return document_attention(q, k, v, mask), None
    check_boolean(mask)
    check_values(k, v)
    if exporting():  # the formula means the same everywhere
        return plain.attention(q, k, v, mask)
    if q.device.type != "cpu":
        with sdpa_kernel(BACKENDS):
            return kernel(q, k, v, mask), None
    other = q.dtype == torch.bfloat16 or matmuls_are_medium()
    if q.shape[-2] == 1 or (other and k.shape[-2] < SHORT):
        return plain.attention(q, k, v, mask)
    wide = torch.promote_types(q.dtype, torch.float32)
    with torch.autocast("cpu", enabled=False):
        return kernel(q.to(wide), k.to(wide), v.to(wide), mask).to(q.dtype), None


def kernel(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """`F.scaled_dot_product_attention`, with zeros for rows in which mask allows nothing."""
    if mask is None or EMPTY_ROWS_ARE_ZERO:
        return F.scaled_dot_product_attention(q, k, v, mask)
    some = mask.any(dim=-1, keepdim=True)
    return F.scaled_dot_product_attention(q, k, v, mask | ~some).masked_fill(~some, 0.0)


def matmuls_are_medium() -> bool:
    """Whether torch's switch for fp32 products stands at "medium"; not asked in a graph."""
    if torch.compiler.is_compiling():
        return False
    return torch.get_float32_matmul_precision() == "medium"
