# ---
# jupyter:
#   jupytext:
#     formats: notebooks/22_/ipynb,transformer//py:percent
# ---

# %%
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import (
    MultiHeadAttention,
    causal_mask,
    masked_softmax,
    scaled_dot_product,
    scaled_dot_product_attention,
)
from transformer.checks import (
    check_from_the_left,
    check_gaps,
    check_pattern,
    check_sees_both_ways,
    check_span,
)
from transformer.complexity import collect, deal, local_attention
from transformer.language import LanguageConfig, LanguageModel
from transformer.model import Parts
from transformer.optimizer import adam


# %%
@dataclass(frozen=True)
class Pattern:
    """Who sees whom: neighbours, at a gap for each head, global tokens, random blocks.

    Raises ValueError for sizes that cannot be.
    """

    r: int  # neighbours on each side
    gaps: tuple[int, ...] = (1,)  # the steps between them: for all heads, or for each
    global_tokens: tuple[int, ...] = ()  # places that see all and are seen by all
    random_blocks: int = 0  # blocks of r keys that each block of r queries sees besides
    causal: bool = False  # nobody sees what comes later
    seed: int = 0  # of the random blocks

    def __post_init__(self):
        check_pattern(self.r, self.gaps, self.global_tokens, self.random_blocks)

    def mask(self, n: int, h: int = 1, rows: int | None = None, device=None) -> Tensor:
        """True where a query may look: (h, n, n), or the last rows of it (h, rows, n)."""
        check_gaps(self.gaps, h)
        j = torch.arange(n, device=device)
        i = j[-(rows or n):, None]
        gap = torch.tensor(self.gaps, device=device)[:, None, None]
        mask = ((i - j).abs() <= self.r * gap) & ((i - j) % gap == 0)
        special = self.places(n, device)
        mask = mask | torch.isin(i, special) | torch.isin(j, special)
        chosen = self.drawn(n, device)
        mask = mask | (chosen[i // self.r] == (j // self.r)[:, None]).any(dim=-1)
        mask = mask & (j <= i) if self.causal else mask
        return mask.expand(h, -1, -1)

    def places(self, n: int, device=None) -> Tensor:
        """The global tokens among n positions."""
        return torch.tensor([p for p in sorted(set(self.global_tokens)) if p < n],
                            dtype=torch.long, device=device)

    def drawn(self, n: int, device=None) -> Tensor:
        """The random blocks of each block: (blocks, random_blocks), -1 for none.

        None is the block itself or its neighbour, nor a later one if causal.
        """
        b = torch.arange(-(-n // self.r))
        far = (b[:, None] - b).abs() > 1
        far = far.tril() if self.causal else far
        dice = torch.rand(far.shape, generator=torch.Generator().manual_seed(self.seed))
        best, chosen = (dice * far).topk(min(self.random_blocks, len(b)))
        return torch.where(best > 0, chosen, -1).to(device)


# %%
def diagonal_attention(q, k, v, mask=None, *, r: int, causal: bool = False) -> tuple:
    """`local_attention`, one diagonal of the table after another."""
    n = q.shape[-2]
    offsets = range(-r, 1 if causal else r + 1)
    real = torch.ones(1, n, dtype=torch.bool) if mask is None else mask

    def shifted(x, offset):  # row i is x[i + offset], zeros beyond the ends
        before, after = max(0, -offset), max(0, offset)
        return F.pad(x, (0, 0, before, after))[..., after:after + n, :]

    scores = [(q * shifted(k, o)).sum(dim=-1) / q.shape[-1]**0.5 for o in offsets]
    seen = [shifted(real.mT, o)[..., 0] for o in offsets]
    weights = masked_softmax(torch.stack(scores, -1), torch.stack(seen, -1))
    output = sum(weights[..., i, None] * shifted(v, o) for i, o in enumerate(offsets))
    return output, None


# %%
def in_blocks(x: Tensor, size: int) -> Tensor:
    """(..., n, d) -> (..., blocks, size, d); zeros fill up the last block."""
    return F.pad(x, (0, 0, 0, -x.shape[-2] % size)).unflatten(-2, (-1, size))


def global_keys(k, v, real: Tensor, gap: int, pattern: Pattern) -> tuple:
    """Global keys and values (B, h, 1, 1, G, d), and who may look, a row a query.

    That is (..., gap, blocks, size, G), as the queries are dealt out.
    """
    n = k.shape[-2]
    places = pattern.places(n, k.device)
    i = torch.arange(n, device=k.device)[:, None]
    may = real[..., places] & ((places <= i) | (not pattern.causal))
    may = in_blocks(deal(may, gap), min(pattern.r, -(-n // gap)))
    return k[..., None, None, places, :], v[..., None, None, places, :], may


def random_keys(k, v, band: Tensor, pattern: Pattern) -> tuple:
    """Keys and values of random blocks (B, h, 1, blocks, M, d), and which may be seen."""
    chosen = pattern.drawn(k.shape[-2], k.device)

    def taken(x):  # (..., n, d) -> (..., 1, blocks, M, d)
        found = in_blocks(x, pattern.r)[..., chosen.clamp(min=0), :, :]
        return found.flatten(-3, -2).unsqueeze(-4)

    valid = (chosen >= 0).repeat_interleave(pattern.r, dim=-1)[:, None]
    return taken(k), taken(v), taken(band.mT).mT & valid


# %%
def attend_also(q, k, v, mask, *, more: list[tuple]) -> tuple:
    """`scaled_dot_product_attention` of blocks that see more keys than their windows.

    more: keys, values and a mask over them, each. One softmax over all.
    """
    parts = [(k, v, mask)]
    for more_k, more_v, may in more:
        parts.append((more_k.expand(*k.shape[:-2], *more_k.shape[-2:]),
                      more_v.expand(*v.shape[:-2], *more_v.shape[-2:]),
                      may.expand(*mask.shape[:-1], -1)))
    keys, values, masks = zip(*parts)
    return scaled_dot_product_attention(
        q, torch.cat(keys, dim=-2), torch.cat(values, dim=-2), torch.cat(masks, dim=-1))


def banded_attention(q, k, v, real: Tensor, gap: int, pattern: Pattern) -> Tensor:
    """Heads of one gap: all rows of a pattern but the global ones; real (..., 1, n)."""
    n = q.shape[-2]
    gap = min(gap, n)
    places = pattern.places(n, q.device)
    band = real.index_fill(-1, places, False)  # else a global key would count twice
    more = [global_keys(k, v, real, gap, pattern)] if len(places) else []
    if pattern.random_blocks and n > pattern.r:
        more.append(random_keys(k, v, band, pattern))
    attend = partial(attend_also, more=more) if more else scaled_dot_product_attention
    q, k, v = (deal(x, gap) for x in (q, k, v))
    y, _ = local_attention(q, k, v, deal(band.mT, gap).mT, r=pattern.r,
                           causal=pattern.causal, attend=attend)
    return collect(y, n)


# %%
def key_mask(mask: Tensor | None, n: int, causal: bool) -> Tensor:
    """What a mask says of keys, (..., 1, n); ValueError where it says more than causal."""
    if mask is None:
        return torch.ones(1, n, dtype=torch.bool)
    keys = mask[..., -1:, :]
    full = keys & causal_mask(n, mask.device) if causal and mask.shape[-2] > 1 else keys
    if not torch.equal(mask, full):
        raise ValueError("a pattern takes a mask over keys, (..., 1, n), and if it is causal one "
                         "of the earlier of these keys, (..., n, n)")
    return keys


def sparse_attention(q, k, v, mask=None, *, pattern: Pattern) -> tuple:
    """Attention by a `Pattern`, in O(r n): equal to the full form with its mask.

    q and k (B, h, n, d_k), v (B, h, n, d_v), mask over keys (..., 1, n) or causal
    (..., n, n). Returns the output (B, h, n, d_v) and None for the weights.
    """
    T, n, h = q.shape[-2], k.shape[-2], q.shape[-3]
    if T < n and pattern.causal:  # step by step: the last queries
        mine = pattern.mask(n, h, T, q.device)
        return scaled_dot_product_attention(q, k, v, mine if mask is None else mine & mask)
    check_gaps(pattern.gaps, h)
    real = key_mask(mask, n, pattern.causal).to(q.device)
    if pattern.global_tokens or pattern.random_blocks:
        check_from_the_left(real)
    gaps = pattern.gaps * h if len(pattern.gaps) == 1 else pattern.gaps
    order, parts = [], []
    for gap in sorted(set(gaps)):
        heads = [i for i, own in enumerate(gaps) if own == gap]
        parts.append(banded_attention(q[:, heads], k[:, heads], v[:, heads], real, gap, pattern))
        order += heads
    output = torch.cat(parts, dim=1)[:, torch.tensor(order).argsort()]
    places = pattern.places(n, q.device)
    if len(places):
        seen = real & (torch.arange(n, device=q.device) <= places[:, None]) if pattern.causal else real
        rows, _ = scaled_dot_product_attention(q[..., places, :], k, v, seen)
        output = output.index_copy(-2, places, rows)
    return output, None


# %%
class GlobalAttention(MultiHeadAttention):
    """Attention by a pattern whose global rows have matrices of their own (Longformer).

    Others meet global keys through the usual ones. Raises ValueError for a causal pattern.
    """

    def __init__(self, *sizes, pattern: Pattern, **switches):
        check_sees_both_ways(pattern.causal)
        super().__init__(*sizes, attend=partial(sparse_attention, pattern=pattern), **switches)
        self.pattern = pattern
        self.of_global = MultiHeadAttention(*sizes, **switches)
        self.of_global.W_O = nn.Identity()  # the output's matrix is shared

    def forward(self, query: Tensor, key: Tensor, value: Tensor,
                mask: Tensor | None = None, cache=None) -> Tensor:
        y = super().forward(query, key, value, mask, cache)
        places = self.pattern.places(query.shape[1], query.device)
        rows = self.of_global(query[:, places], key, value, mask)
        return y.index_copy(1, places, self.W_O(rows))


# %%
class Span(nn.Module):
    """How far each head looks, learned (Sukhbaatar et al., 2019).

    A key's weight is multiplied by 1 up to the span z and falls to 0 over `ramp` more
    positions; then the weights are divided by their sum. z starts at `longest`.
    """

    def __init__(self, h: int, longest: int, ramp: int = 32):
        super().__init__()
        check_span(longest, ramp)
        self.longest, self.ramp = longest, ramp
        self.share = nn.Parameter(torch.ones(h))  # z / longest

    def soft(self, distance: Tensor) -> Tensor:
        """What weights at distances (T, S) are multiplied by: (h, T, S)."""
        z = self.longest * self.share[:, None, None]
        return ((self.ramp + z - distance) / self.ramp).clamp(0, 1)

    def reach(self) -> int:
        """The farthest position that any head sees."""
        return max(1, math.ceil(self.longest * self.share.max().item() + self.ramp) - 1)

    def clamp(self):
        """Back between 0 and `longest`, after an update."""
        with torch.no_grad():
            self.share.clamp_(0, 1)

    def attend(self, q, k, v, mask=None) -> tuple:
        """Attention of the last T among S positions, the table in full.

        q and k (B, h, ..., T or S, d_k): blocks, too.
        """
        T, S = q.shape[-2], k.shape[-2]
        j = torch.arange(S, device=q.device)
        soft = self.soft((j[S - T:, None] - j).abs())
        soft = soft.view(len(soft), *[1] * (q.dim() - 4), T, S)
        weights = masked_softmax(scaled_dot_product(q, k), mask) * soft
        weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9)
        return weights @ v, weights

    def cropped(self, q, k, v, mask=None) -> tuple:
        """`attend` of causal attention in blocks of the farthest position that is seen.

        Where two blocks would hold everything, the table in full.
        """
        n, r = k.shape[-2], self.reach()
        if q.shape[-2] < n or 2 * r >= n:
            return self.attend(q, k, v, mask)
        return local_attention(q, k, v, key_mask(mask, n, causal=True), r=r, causal=True,
                               attend=self.attend)


# %%
class SpanAttention(MultiHeadAttention):
    """Multi-head attention with a learned span for each head."""

    def __init__(self, *sizes, longest: int, ramp: int = 32, **switches):
        super().__init__(*sizes, **switches)
        self.span = Span(self.h, longest, ramp)
        self.attend = self.span.attend


def spans_of(model: nn.Module) -> list[Span]:
    """The spans of a model, from the first layer up."""
    return [module for module in model.modules() if isinstance(module, Span)]


def crop(model: nn.Module) -> nn.Module:
    """The same model, each layer in blocks of the farthest position that it sees."""
    for module in model.modules():
        if isinstance(module, SpanAttention):
            module.attend = module.span.cropped
    return model


class PricedModel(LanguageModel):
    """A language model that pays for its spans: price nats a token if all are longest."""

    def __init__(self, config: LanguageConfig, parts: Parts = Parts(), price: float = 0.0):
        super().__init__(config, parts)
        self.price = price

    def loss(self, batch, criterion: Callable) -> Tensor:
        tokens = (batch.gold != self.config.pad_id).sum()
        shares = torch.stack([span.share for span in spans_of(self)])
        return super().loss(batch, criterion) + self.price * tokens * shares.mean()


def clamping(model: nn.Module, make: Callable = adam) -> torch.optim.Optimizer:
    """An optimizer for `train` that clamps a model's spans after each update."""
    optimizer = make(model)
    optimizer.register_step_post_hook(lambda *_: [span.clamp() for span in spans_of(model)])
    return optimizer
