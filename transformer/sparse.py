# ---
# jupyter:
#   jupytext:
#     formats: notebooks/22_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # Sparse attention
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/22_sparse.ipynb)
#
# The paper's last section plans an attention that looks at neighbours only, so that inputs may be much longer. [Notebook 09](09_complexity.ipynb) has its first form. Later papers added three things, for what a window alone cannot do: gaps, a
# few tokens that see everything (Longformer, Beltagy et al., 2020), and blocks drawn at random (BigBird, Zaheer et al., 2020). This notebook builds all of them as one function that attends. At the end you will know what each part is for, whether it needs a kernel of its own (a program for one operation), and whether training or evolution can find out how far to look. Reading takes about 30 minutes, running it half a minute.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     # This book has no address yet. Upload its wheel: python -m pip wheel --no-deps .
#     from google.colab import files
#
#     wheel = next(iter(files.upload()))
#     %pip install -q {wheel}

# %%
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import causal_mask, masked_softmax
from transformer.complexity import collect, deal, local_attention
from transformer.core.checks import (
    check_from_the_left,
    check_gaps,
    check_pattern,
    check_sees_both_ways,
    check_span,
)
from transformer.fast.attention import (
    MultiHeadAttention,
    scaled_dot_product,
    scaled_dot_product_attention,
)
from transformer.fast.model import Parts
from transformer.language import LanguageConfig, LanguageModel
from transformer.optimizer import adam

# %% tags=["active-ipynb"]
# # what only pictures, measurements and checks need: not part of the module
# import random
# from statistics import mean, median, variance
#
# from transformer.complexity import SelfAttention
# from transformer.convolution import dependence
# from transformer.core.records import read_rows
# from transformer.fast.attention import kernel_attention
# from transformer.language import MaskedConfig, MaskedModel
# from transformer.runs.training import TrainingConfig, train
# from transformer.teaching.measuring import turns
# from transformer.views import plotting
# from transformer.views.growth import growth
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # one core: then time is work

# %% [markdown]
# ## Who sees whom
#
# A *pattern* says which pairs of a query and a key exist at all. Its parts:
#
# - a **window** (*sliding window*, *local attention*): each position sees itself and $r$ neighbours on either side. The code calls these keys a *band*. **Deviation: $r$ counts one side, as in 09**; the paper's counts both;
# - **gaps** between these neighbours (a *dilated* window), which may differ from head to head. With a gap of 4, position $i$ sees itself and $i \pm 4, i \pm 8, \ldots$;
# - **global tokens**: places that see everything and that everything sees;
# - **random blocks**: the sequence is cut into blocks of $r$, and each block sees a few others, neither itself nor the blocks next to it;
# - **causal**: of all that, only what is not later. A global token then sees its past, and is seen by what follows it.

# %% [markdown]
# A block must see the same random blocks in every pass, and in a causal text also when it grows. So each pair of blocks gets a number that looks random, computed from the pair and a seed by arbitrary constants, and a block sees the far blocks with the largest numbers, in all heads.


# %%
@dataclass(frozen=True)
class Pattern:
    """Who sees whom: neighbours, at a gap for each head, global tokens, random blocks.

    Raises ValueError for sizes that cannot be.
    """

    r: int  # neighbours on each side
    gaps: tuple[int, ...] = (1,)  # steps from one to the next: of all heads, or of each
    global_tokens: tuple[int, ...] = ()  # places that see all and are seen by all
    random_blocks: int = 0  # blocks of r keys that a block of r queries sees besides
    causal: bool = False  # nobody sees what comes later
    seed: int = 0  # of the random blocks

    def __post_init__(self):
        check_pattern(self.r, self.gaps, self.global_tokens, self.random_blocks)


# %%
def places_of(pattern: Pattern, n: int, device=None) -> Tensor:
    """The places of the global tokens that there are among n positions: (G,)."""
    places = [place for place in sorted(set(pattern.global_tokens)) if place < n]
    return torch.tensor(places, dtype=torch.long, device=device)


def drawn_blocks(pattern: Pattern, n: int, device=None) -> Tensor:
    """The random blocks of each block, (blocks, random_blocks); -1 where none is left.

    None of them is the block itself or next to it, nor a later one if causal. Block b
    has the same in every n if causal, so that a text can be written on.
    """
    b = torch.arange(math.ceil(n / pattern.r))
    far = (b[:, None] - b).abs() > 1
    far = far.tril() if pattern.causal else far
    dice = 7919 * b[:, None] + 39217 * b + 15013 * (pattern.seed + 1)
    for salt in (b[:, None], b, 1):  # remainders of squares, with places mixed in again
        dice = (dice**2 + 21701 * salt) % 65521
    best = ((1 + dice) * 2**24 + b) * far  # of equal dice the later block
    best, chosen = best.topk(min(pattern.random_blocks, len(b)))
    return torch.where(best > 0, chosen, -1).to(device)


# %% [markdown]
# The next function is the **definition**: attention by a pattern is notebook 04's attention with this mask. `sparse_attention` below computes the same numbers with less work, and is tested against it.


# %%
def pattern_mask(
    pattern: Pattern, n: int, h: int = 1, rows: int | None = None, device=None
) -> Tensor:
    """True where a query may look: (h, n, n), or its last rows (h, rows, n).

    Raises ValueError where the gaps do not fit h heads.
    """
    check_gaps(pattern.gaps, h)
    j = torch.arange(n, device=device)
    i = j[-(rows or n) :, None]
    gap = torch.tensor(pattern.gaps, device=device)[:, None, None]
    mask = ((i - j).abs() <= pattern.r * gap) & ((i - j) % gap == 0)
    places = places_of(pattern, n, device)
    mask = mask | torch.isin(i, places) | torch.isin(j, places)
    blocks = drawn_blocks(pattern, n, device)
    seen = blocks[i // pattern.r] == (j // pattern.r)[:, None]
    mask = mask | seen.any(dim=-1)  # of (rows, n, random_blocks)
    mask = mask & (j <= i) if pattern.causal else mask
    return mask.expand(h, -1, -1)


# %% tags=["active-ipynb"]
# patterns = {
#     "a window, r = 3": Pattern(3),
#     "a gap of 4": Pattern(3, gaps=(4,)),
#     "one global token": Pattern(3, global_tokens=(0,)),
#     "two random blocks": Pattern(3, random_blocks=2),
#     "all but gaps, causal": Pattern(3, (1,), (0, 20), random_blocks=1, causal=True),
# }
# ticks = [t if t % 10 == 0 else "" for t in range(36)]
# panels = [
#     (name, pattern_mask(pattern, 36)[0], ticks, ticks)
#     for name, pattern in patterns.items()
# ]
# plotting.heatmaps(panels, across=3, largest=1.0, labels=("key", "query", "may look"))
# for name, pattern in patterns.items():
#     share = pattern_mask(pattern, 36).float().mean()
#     print(f"{name:22} {share:.0%} of the pairs")

# %% [markdown] tags=["question-27"]
# Dark blue: this query may look at this key. A global token is a row (it sees everything) and a column (everything sees it); the rectangles are random blocks.
#
# ## Windows, gaps, global tokens, random blocks: what is each for?
#
# In one layer, a window brings a position what stands up to $r$ places away. In the next layer its neighbours pass on what they got from *their* neighbours, and so on. All inputs on which an output can depend after some layers are its *receptive field*; [notebook 02](02_convolution.ipynb) measured it for convolutions. With the masks it can be counted: a place is in a position's field if it was, a layer below, in the field of some place that the position sees.

# %% tags=["active-ipynb"]
# def fields(patterns, n, h=1):
#     """After each layer of a stack: which output can depend on which input, (n, n)."""
#     reached = torch.eye(n)
#     for pattern in patterns:
#         sees = pattern_mask(pattern, n, h).any(dim=0).float()
#         reached = (sees @ reached > 0).float()
#         yield reached > 0
#
#
# n, r, layers = 513, 2, 6
# stacks = {
#     "windows": [Pattern(r)] * layers,
#     "gaps 1, 4, 16, from layer to layer": [Pattern(r, (g,)) for g in (1, 4, 16)] * 2,
#     "gaps 1, 4, 16, a head each": [Pattern(r, (1, 4, 16))] * layers,
#     "windows, two random blocks": [Pattern(r, random_blocks=2)] * layers,
#     "windows, one global token": [Pattern(r, global_tokens=(0,))] * layers,
# }
# heard = {
#     name: [field[n // 2].sum().item() for field in fields(stack, n, 3)]
#     for name, stack in stacks.items()
# }
# title = "One global token joins all places in two layers"
# ax = plotting.lines(
#     range(1, layers + 1),
#     heard,
#     "layers",
#     "places that the middle can depend on",
#     title,
#     log="y",
#     markers=True,
# )
# ax.set_ylim(bottom=0.5)  # room for the legend
# for name, counts in heard.items():
#     print(f"{name:36} {counts}")
# assert heard["windows"] == [1 + 2 * r * layer for layer in range(1, layers + 1)]
# assert heard["windows, one global token"][1] == n

# %% [markdown]
# With windows the field grows by $2r$ a layer, and with gaps that differ between layers by $2r$ times the gap, for the same number of keys. With different gaps in the *heads* of a layer, one layer reaches $r$ times the largest gap. Gaps leave holes, which layers or heads with a small gap fill. Random blocks lead anywhere; at first the field grows about fourfold a layer. One global token joins all positions in two layers, but all that comes from far away has to pass through its one vector.
#
# Does a network really depend on these places? 02's `dependence` takes gradients through three layers with gaps of 1, 4 and 16, one panel after each layer.

# %% tags=["active-ipynb"]
# def by_mask(mask):
#     return lambda q, k, v, _: scaled_dot_product_attention(q, k, v, mask)
#
#
# growing = stacks["gaps 1, 4, 16, from layer to layer"][:3]
# stack = [
#     SelfAttention(8, 1, attend=by_mask(pattern_mask(pattern, 97)))
#     for pattern in growing
# ]
# x = torch.randn(1, 97, 8, dtype=torch.float64)
# found = [
#     dependence(nn.Sequential(*stack[:depth]).double(), x) > 0 for depth in (1, 2, 3)
# ]
# counted = list(fields(growing, 97))
# assert all(torch.equal(a, b) for a, b in zip(found, counted))
# ticks = [t if t % 24 == 0 else "" for t in range(97)]
# titles = ("gap 1", "then gap 4", "then gap 16")
# panels = [(title, field, ticks, ticks) for title, field in zip(titles, found)]
# plotting.heatmaps(panels, across=3, largest=1.0, labels=("input", "output", "depends"))
# print("gradients and masks agree on every pair of places")
# print("notches at the edges: places that only a way beyond the end would reach")

# %% [markdown]
# ## Blocks that see a little more
#
# Notebook 09 cut the sequence into blocks of $r$ and let each attend to a window of three blocks. Small additions make all patterns of it; three concern keys.
#
# **Gaps are a reshape.** Dealt out like cards to $g$ players, every $g$-th position stands beside the next one, and a window with a gap becomes one without. 09 has `deal` and `collect` for its convolutions.
#
# **Global keys** are put behind the keys of every window, so that one softmax weighs both. In the window itself they are masked: a global token nearby would count twice.
#
# **Random keys**, those of the drawn blocks, are put behind in the same way. No key counts twice: a random block is never next to the block, and with a gap of 1 (`Pattern` allows no other here) the window ends there.


# %%
def in_blocks(x: Tensor, size: int) -> Tensor:
    """(..., n, d) -> (..., blocks, size, d); zeros fill up the last block."""
    return F.pad(x, (0, 0, 0, -x.shape[-2] % size)).unflatten(-2, (-1, size))


def global_keys(k, v, real: Tensor, gap: int, pattern: Pattern) -> tuple:
    """Global keys and values (B, h, 1, 1, G, d), and who may look at them.

    The latter as the queries are dealt out, (..., gap, blocks, size, G). real: True for
    keys that are no padding, (..., 1, n).
    """
    n = k.shape[-2]
    places = places_of(pattern, n, k.device)
    i = torch.arange(n, device=k.device)[:, None]
    may = real[..., places] & ((places <= i) | (not pattern.causal))  # (..., n, G)
    may = in_blocks(deal(may, gap), min(pattern.r, math.ceil(n / gap)))
    return k[..., None, None, places, :], v[..., None, None, places, :], may


def random_keys(k, v, band: Tensor, pattern: Pattern) -> tuple:
    """Random keys and values (B, h, 1, blocks, M, d), and which may be seen.

    band: True for keys that are neither padding nor global, (..., 1, n).
    """
    chosen = drawn_blocks(pattern, k.shape[-2], k.device)

    def taken(x):  # (..., n, d) -> (..., 1, blocks, M, d)
        found = in_blocks(x, pattern.r)[..., chosen.clamp(min=0), :, :]
        return found.flatten(-3, -2).unsqueeze(-4)

    valid = (chosen >= 0).repeat_interleave(pattern.r, dim=-1)[:, None]
    return taken(k), taken(v), taken(band.mT).mT & valid


# %% [markdown]
# 09's `local_attention` takes as `attend` whatever is to run over blocks and windows; here it is 04's attention with more keys.


# %%
def attend_also(q, k, v, mask, *, more: list[tuple]) -> tuple:
    """`scaled_dot_product_attention` of blocks that see more than their windows.

    more: keys, values, and who may look at them, each. One softmax over all.
    """
    parts = [(k, v, mask)]
    for more_k, more_v, may in more:
        parts.append(
            (
                more_k.expand(*k.shape[:-2], *more_k.shape[-2:]),
                more_v.expand(*v.shape[:-2], *more_v.shape[-2:]),
                may.expand(*mask.shape[:-1], -1),
            )
        )
    keys, values, masks = zip(*parts)
    return scaled_dot_product_attention(
        q, torch.cat(keys, dim=-2), torch.cat(values, dim=-2), torch.cat(masks, dim=-1)
    )


def banded_attention(q, k, v, real: Tensor, gap: int, pattern: Pattern) -> Tensor:
    """Heads of one gap: all rows of a pattern but the global ones."""
    n = q.shape[-2]
    gap = min(gap, n)
    places = places_of(pattern, n, q.device)
    band = real.index_fill(-1, places, False)  # else a global key would count twice
    more = [global_keys(k, v, real, gap, pattern)] if len(places) else []
    if pattern.random_blocks and n > pattern.r:
        more.append(random_keys(k, v, band, pattern))
    attend = partial(attend_also, more=more) if more else scaled_dot_product_attention
    q, k, v = (deal(x, gap) for x in (q, k, v))
    y, _ = local_attention(
        q,
        k,
        v,
        deal(band.mT, gap).mT,
        r=pattern.r,
        causal=pattern.causal,
        attend=attend,
    )
    return collect(y, n)


# %% [markdown]
# Models hand in masks: an encoder's mask says which keys are padding, a language model's also that nobody looks ahead. `key_mask` keeps what the mask says of keys, and raises an error for a mask that says anything else, because blocks could not follow it.


# %%
def key_mask(mask: Tensor | None, n: int, causal: bool, device=None) -> Tensor:
    """What a mask says of the keys, (..., 1, n); ValueError where it says more.

    If causal, a mask (..., n, n) may also forbid what comes later.
    """
    if mask is None:
        return torch.ones(1, n, dtype=torch.bool, device=device)
    keys = mask[..., -1:, :]
    wanted = keys
    if causal and mask.shape[-2] > 1:
        wanted = keys & causal_mask(n, mask.device)
    if not torch.equal(mask, wanted):
        raise ValueError(
            "a pattern takes a mask over keys, (..., 1, n), and if it is "
            "causal one of the earlier of these keys, (..., n, n)"
        )
    return keys


# %% [markdown]
# **Heads of different gaps** are taken in groups. **Global rows**, of which there are few, attend to everything in full. And while a text is written token by token, there is one query at a time, which needs no blocks.


# %%
def global_rows(output, q, k, v, real: Tensor, pattern: Pattern) -> Tensor:
    """The output with the rows of global tokens put in: they attend to everything."""
    n = q.shape[-2]
    places = places_of(pattern, n, q.device)
    if pattern.causal:
        real = real & (torch.arange(n, device=q.device) <= places[:, None])
    rows, _ = scaled_dot_product_attention(q[..., places, :], k, v, real)
    return output.index_copy(-2, places, rows)


def sparse_attention(q, k, v, mask=None, *, pattern: Pattern) -> tuple:
    """Attention by a `Pattern`: what the full form gives with `pattern_mask`, in
    O(n (r + random_blocks r + global tokens) d), and a table of blocks by blocks.

    q and k (B, h, n, d_k), v (B, h, n, d_v), mask as in `key_mask`. Returns the output
    (B, h, n, d_v) and None for the weights. Raises ValueError for gaps that do not fit
    the heads, for lengths that differ, and for padding in front of fixed places.
    """
    T, n, h = q.shape[-2], k.shape[-2], q.shape[1]
    if T < n and pattern.causal:  # the last queries, while a text is written
        sees = pattern_mask(pattern, n, h, T, q.device)
        sees = sees if mask is None else sees & mask
        return scaled_dot_product_attention(q, k, v, sees)
    check_gaps(pattern.gaps, h)
    real = key_mask(mask, n, pattern.causal, q.device)
    if pattern.global_tokens or pattern.random_blocks:
        check_from_the_left(real)
    gaps = pattern.gaps * (h // len(pattern.gaps))
    sizes = [len(list(heads)) for _, heads in groupby(gaps)]  # slices need no copy
    parts = zip(*(x.split(sizes, dim=1) for x in (q, k, v)))
    output = torch.cat(
        [
            banded_attention(*part, real, gap, pattern)
            for part, (gap, _) in zip(parts, groupby(gaps))
        ],
        dim=1,
    )
    return global_rows(output, q, k, v, real, pattern), None


# %% [markdown]
# **Equal to the definition**, gradients included, where there is padding and where $n = 45$ is not a multiple of $r = 4$, nor of the gaps 2 and 16:

# %% tags=["active-ipynb"]
# q, k, v = torch.randn(3, 2, 4, 45, 8, dtype=torch.float64).requires_grad_()
# real = (torch.arange(45) < torch.tensor([[45], [31]]))[:, None, None]  # (B, 1, 1, n)
# some = {
#     "window": Pattern(4),
#     "gaps, global, causal": Pattern(4, (1, 2, 3, 16), (0, 20), causal=True),
#     "random blocks, global": Pattern(4, global_tokens=(0,), random_blocks=2),
# }
# for name, pattern in some.items():
#     ours, _ = sparse_attention(q, k, v, real, pattern=pattern)
#     mask = pattern_mask(pattern, 45, 4) & real
#     full, _ = scaled_dot_product_attention(q, k, v, mask)
#     gradients = [torch.autograd.grad((y**2).sum(), (q, k, v)) for y in (ours, full)]
#     pairs = [(ours, full), *zip(*gradients)]
#     largest = max((a - b).abs().max().item() for a, b in pairs)
#     assert largest < 1e-9
#     print(f"{name:22} differs from the masked table by {largest:.0e}")

# %% [markdown] tags=["question-28"]
# `tests/test_sparse.py` compares with `F.scaled_dot_product_attention` and with torch's `flex_attention`, which takes a pattern as a function.
#
# ## Must a window be slow without a kernel of its own?
#
# The obvious program takes the table of scores diagonal by diagonal: for each offset $o$ from $-r$ to $r$, every query times the key $o$ places on. The next cells compare it with blocks, with the full table, and with torch's fused kernel for the full table ([09](09_complexity.ipynb)), on one thread of a CPU.


# %%
def diagonal_attention(q, k, v, mask=None, *, r: int) -> tuple:
    """`local_attention`, one diagonal of the table after another."""
    n = q.shape[-2]
    offsets = range(-r, r + 1)
    real = key_mask(mask, n, False, q.device)

    def shifted(x, offset):  # row i is row i + offset of x, zeros beyond the ends
        filled = F.pad(x, (0, 0, max(0, -offset), max(0, offset)))
        return filled[..., max(0, offset) : max(0, offset) + n, :]

    q = q / math.sqrt(q.shape[-1])
    scores = torch.stack([(q * shifted(k, o)).sum(dim=-1) for o in offsets], dim=-1)
    seen = torch.stack([shifted(real.mT, o)[..., 0] for o in offsets], dim=-1)
    weights = masked_softmax(scores, seen)  # (..., n, 2r + 1)
    output = sum(weights[..., [i]] * shifted(v, o) for i, o in enumerate(offsets))
    return output, None


# %% tags=["active-ipynb"]
# r, d, h = 32, 256, 8
# pattern = Pattern(r, (1, 1, 1, 1, 4, 4, 16, 16), global_tokens=(0,))
# ways = {
#     "loop over diagonals": partial(diagonal_attention, r=r),
#     "blocks": partial(local_attention, r=r),
#     "blocks, gaps, global": partial(sparse_attention, pattern=pattern),
#     "full": scaled_dot_product_attention,
#     "full, fused": kernel_attention,
# }
# layers = {name: SelfAttention(d, h, attend=attend) for name, attend in ways.items()}
# sizes = [256, 512, 1024, 2048]
# seconds = {name: [] for name in layers}
# for n in sizes:
#     for name, times in turns(layers, torch.randn(1, n, d), seconds=0.3).items():
#         seconds[name].append(median(times))
# growth(
#     sizes,
#     seconds,
#     "seconds of a layer, forward",
#     "Blocks grow about with n, tables about with its square",
#     markers=True,
# );

# %% tags=["active-ipynb"]
# print(f"ms at n = {sizes[0]:9} {sizes[-1]:6}")
# for name, times in seconds.items():
#     print(f"{name:22} {1000 * times[0]:5.1f} {1000 * times[-1]:5.0f}")
# q, k, v = torch.randn(3, 1, 2, 77, 8, dtype=torch.float64)
# loop, _ = diagonal_attention(q, k, v, r=5)
# blocks, _ = local_attention(q, k, v, r=5)
# assert (loop - blocks).abs().max() < 1e-9
# print(f"loop and blocks differ by {(loop - blocks).abs().max():.0e}")

# %% [markdown]
# The times are those of whole layers, projections included. The loop is the slowest way until the full table becomes slower still. It reads all of $q$, $k$ and $v$ for each diagonal. Blocks compute three scores where two are needed, but as products of matrices, several times as fast. So on this processor a window is fast enough without a kernel of its own; on a GPU we have not measured it. Blocks overtake the fused full table at a few hundred positions, with gaps and a global token before 1,024; which of these two is faster changes from run to run.

# %% [markdown]
# `python -m transformer.experiments.bands` measures wider layers ($d = 512$) up to $n = 8{,}192$. Forward, blocks are 5.6 times as fast there as the fused table, but hold 2.5 times its bytes, since each key is copied into three windows (in training 6.0 and 1.9 times). Where heads differ in their gaps, they hold fewer, probably because they are taken in groups. Random blocks hold most:

# %% tags=["active-ipynb"]
# # "full" was measured up to 4,096: beyond, scores and weights take 4 GB
# rows = [row for row in read_rows("bands") if row["mode"] == "forward"]
# largest = max(row["n"] for row in rows)
# rows = {row["layer"]: row for row in rows if row["n"] == largest}
# for name, row in rows.items():
#     print(f"{name:22} {row['seconds']:6.3f} s {row['bytes'] / 2**20:6.0f} MiB")
# ours = rows["blocks, gaps, global"]["seconds"]
# to = {name: ours / row["seconds"] for name, row in rows.items()}
# print(
#     f"at n = {largest} gaps and a global token cost {to['blocks']:.2f} times the "
#     f"blocks alone, and {to['full, fused']:.2f} of the fused full table"
# )

# %% [markdown]
# ## Models with patterns
#
# The package's `MultiHeadAttention` takes any function that attends, and its models take their attention as one of their `Parts` (`transformer/fast/model.py`). So a language model with a pattern is the one of [21](21_language.ipynb) with another attention among its parts. This one is not trained; the cell shows that blocks and caches agree:

# %% tags=["active-ipynb"]
# pattern = Pattern(3, gaps=(1, 1, 2, 4), global_tokens=(0,), causal=True)
# attend = partial(sparse_attention, pattern=pattern)
# attention = partial(MultiHeadAttention, attend=attend)
# c = LanguageConfig(50, d_model=32, d_ff=64, N=2, h=4, P_drop=0.0, max_positions=64)
# model = LanguageModel(c, Parts(attention=attention)).eval()
# ids = torch.randint(3, 50, (1, 40))
# with torch.no_grad():
#     whole, state = model(ids), model.initial_state(ids[:, :30])
#     steps = [model.step(ids[:, i : i + 1], state) for i in range(30, 40)]
# difference = (whole[0, 30:] - torch.cat(steps)).abs().max().item()
# assert difference < 1e-5
# print(f"in blocks, and token by token with caches: they differ by {difference:.0e}")

# %% [markdown]
# Longformer gives its global tokens matrices of their own: what a token that sums up a document asks is not what a word asks of its neighbours. Other tokens meet the global ones through the usual matrices. The next class adds these matrices to a layer with a pattern. With our weights, Hugging Face's `LongformerSelfAttention` gives the same numbers to within $10^{-5}$ (`tests/test_sparse.py`).


# %%
class LongformerAttention(MultiHeadAttention):
    """Attention by a pattern, with matrices of their own for the global rows.

    As in Longformer; not for causal patterns, for which it raises ValueError.
    """

    def __init__(self, *sizes, pattern: Pattern, **switches):
        check_sees_both_ways(pattern.causal)
        attend = partial(sparse_attention, pattern=pattern)
        super().__init__(*sizes, attend=attend, **switches)
        self.pattern = pattern
        switches["rotate"] = None  # global rows ask for content, whatever the place
        self.of_global = MultiHeadAttention(*sizes, **switches)
        self.of_global.W_O = nn.Identity()  # the output's matrix is shared

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        cache=None,
        start: int = 0,
    ) -> Tensor:
        y = super().forward(query, key, value, mask, cache, start)
        places = places_of(self.pattern, query.shape[1], query.device)
        rows = self.of_global(query[:, places], key, value, mask)
        return y.index_copy(1, places, self.W_O(rows))


# %% [markdown]
# **A task that windows alone cannot solve.** A sequence has 128 tokens. The first is one of two marks, the others are noise, and at the last the model has to say which mark it was. Two layers with $r = 4$ reach 8 places, so that with windows alone nothing of the mark arrives at the last token. The next cell trains [21](21_language.ipynb)'s masked model, which sees both ways, twice: with windows only, and with the first token global.

# %% tags=["active-ipynb"]
# def marked(count, n=128):
#     tokens = torch.randint(6, 16, (count, n))
#     tokens[:, 0] = torch.randint(3, 5, (count,))  # the mark
#     tokens[:, -1] = 5  # here it is asked for
#     return tokens, tokens[:, 0] - 3
#
#
# c = MaskedConfig(
#     16, d_model=32, d_ff=64, N=2, h=2, P_drop=0.0, norm_first=True, max_positions=128
# )
# for name, pattern in (
#     ("windows", Pattern(4)),
#     ("one global token", Pattern(4, global_tokens=(0,))),
# ):
#     torch.manual_seed(1)
#     attend = partial(sparse_attention, pattern=pattern)
#     model = MaskedModel(c, Parts(attention=partial(MultiHeadAttention, attend=attend)))
#     optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
#     for _ in range(30):
#         tokens, mark = marked(16)
#         loss = F.cross_entropy(model(tokens)[:, -1, 3:5], mark)
#         optimizer.zero_grad()
#         loss.backward()
#         optimizer.step()
#     with torch.no_grad():
#         tokens, mark = marked(400)
#         right = (model(tokens)[:, -1, 3:5].argmax(dim=1) == mark).float().mean()
#     print(f"{name:18} {right:.0%} of the marks named")
#     assert right > 0.97 if pattern.global_tokens else 0.4 < right < 0.6

# %% [markdown]
# Without the global token the model is guessing, and no training could change that, because no path leads from the mark to the answer.

# %% [markdown] tags=["question-25"]
# ## Can a model learn how far to look?
#
# Sukhbaatar et al. (2019) let each head learn its radius. A whole number has no gradient, so the edge of the window is made soft: a weight at distance $x$ is multiplied by
#
# $$m_z(x) = \min\left(\max\left(\frac{R + z - x}{R}, 0\right), 1\right)$$
#
# which is 1 up to the *span* $z$ and falls to 0 over a *ramp* of $R$ more places, and the weights are divided by their new sum. On the ramp, $z$ has a gradient. The loss gets a **price** on top: a fixed number of nats a token, times the mean span divided by the longest span allowed, so that a head keeps a long span only where that lowers the loss by more.


# %%
class Span(nn.Module):
    """The spans of h heads (Sukhbaatar et al., 2019); at first all are `longest`.

    Raises ValueError for a span or a ramp below one position.
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
        """The farthest position that any head still sees."""
        z = self.longest * self.share.max().item()
        return max(1, math.ceil(z + self.ramp) - 1)

    def clamp(self):
        """Back between 0 and `longest`."""
        with torch.no_grad():
            self.share.clamp_(0, 1)


# %% [markdown]
# `span_attention` fills the whole table. After training, all that lies beyond the farthest span of a layer and its ramp has a weight of exactly 0, and `cropped_attention` leaves it out: 09's causal blocks, with the soft edge inside.


# %%
def span_attention(q, k, v, mask=None, *, span: Span) -> tuple:
    """Attention of the last T of S positions with soft edges; output and weights.

    q (B, h, ..., T, d_k), k and v (B, h, ..., S, d): blocks and windows, too.
    """
    T, S = q.shape[-2], k.shape[-2]
    j = torch.arange(S, device=q.device)
    soft = span.soft((j[S - T :, None] - j).abs())
    soft = soft.view(len(soft), *[1] * (q.dim() - 4), T, S)
    seen = soft > 0 if mask is None else mask & (soft > 0)
    weights = masked_softmax(scaled_dot_product(q, k), seen) * soft
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9)
    return weights @ v, weights


def cropped_attention(q, k, v, mask=None, *, span: Span) -> tuple:
    """`span_attention`, causal, in blocks of the farthest position that is seen.

    Where two blocks would hold everything, the table in full.
    """
    n, r = k.shape[-2], span.reach()
    if q.shape[-2] < n or 2 * r >= n:
        return span_attention(q, k, v, mask, span=span)
    return local_attention(
        q,
        k,
        v,
        key_mask(mask, n, causal=True),
        r=r,
        causal=True,
        attend=partial(span_attention, span=span),
    )


# %%
class SpanAttention(MultiHeadAttention):
    """Multi-head attention with a learned span for each head."""

    def __init__(self, *sizes, longest: int, ramp: int = 32, **switches):
        super().__init__(*sizes, **switches)
        self.span = Span(self.h, longest, ramp)
        self.attend = partial(span_attention, span=self.span)


def spans_of(model: nn.Module) -> list[Span]:
    """The spans of a model, from the first layer up."""
    return [module for module in model.modules() if isinstance(module, Span)]


def crop(model: nn.Module) -> nn.Module:
    """The same model, each layer in blocks of the farthest position that it sees."""
    for module in model.modules():
        if isinstance(module, SpanAttention):
            module.attend = partial(cropped_attention, span=module.span)
    return model


# %% [markdown]
# The price goes into the loss, and an optimizer that clamps the spans after each update goes into the loop of [14](14_training.ipynb) by its argument `optimizer`. Unclamped, a span that is not needed would run far below 0, and would have to come all the way back when it is needed.


# %%
class PricedModel(LanguageModel):
    """A language model that pays for its spans.

    price: nats a token, if all spans are longest.
    """

    def __init__(
        self, config: LanguageConfig, parts: Parts = Parts(), price: float = 0.0
    ):
        super().__init__(config, parts)
        self.price = price

    def loss(self, batch, criterion: Callable) -> Tensor:
        tokens = (batch.gold != self.config.pad_id).sum()
        shares = torch.stack([span.share for span in spans_of(self)])
        return super().loss(batch, criterion) + self.price * tokens * shares.mean()


def clamping(model: nn.Module, make: Callable = adam) -> torch.optim.Optimizer:
    """An optimizer for `train` that clamps a model's spans after each update."""
    optimizer = make(model)
    optimizer.register_step_post_hook(
        lambda *_: [span.clamp() for span in spans_of(model)]
    )
    return optimizer


# %% [markdown]
# **Does it find the distance that a task needs?** A sequence repeats a random part of $p$ tokens. From the second round on, the next token is the one that stands $p - 1$ places back, so that one head has to reach this far, and none any farther. Spans $z$ begin at 32; with its ramp of 8 places a head sees less than $z + 8$ places back. The figure shows what the farther-seeing one of two heads sees, and as dotted lines what the task needs.

# %% tags=["active-ipynb"]
# chance = random.Random(1)
#
#
# def repeated(length, period):
#     """A random part over and over, behind the begin mark."""
#     part = [chance.randrange(3, 23) for _ in range(period)]
#     return [], [1, *(part[i % period] for i in range(length))]
#
#
# def farthest(model):
#     return {"sees": spans_of(model)[0].reach()}
#
#
# c = LanguageConfig(23, d_model=32, d_ff=64, N=1, h=2, P_drop=0.0, max_positions=64)
# attention = partial(SpanAttention, longest=32, ramp=8)
# settings = TrainingConfig(
#     updates=300,
#     batch_tokens=660,
#     warmup=50,
#     lr_scale=0.4,
#     schedule="linear",
#     validate_every=30,
#     epsilon_ls=0.0,
# )
# models, curves = {}, {}
# for period in (10, 20):
#     encoded = [repeated(50, period) for _ in range(3000)]
#     torch.manual_seed(1)
#     models[period] = model = PricedModel(c, Parts(attention=attention), price=0.02)
#     log = train(model, encoded, settings, validate=farthest, optimizer=clamping)
#     curves[f"the next token stands {period - 1} back"] = [row["sees"] for row in log]
# ax = plotting.lines(
#     range(30, 301, 30),
#     curves,
#     "updates",
#     "places back that are seen",
#     "At a price, heads come to see little more than the task needs",
#     markers=True,
# )
# for period in models:
#     ax.axhline(period - 1, color="grey", linestyle=":")
# ax.set_ylim(bottom=0);

# %% tags=["active-ipynb"]
# for period, model in models.items():
#     tokens = torch.tensor([repeated(50, period)[1] for _ in range(200)])
#     with torch.no_grad():
#         logits = model.eval()(tokens[:, :-1])
#         difference = (crop(model)(tokens[:, :-1]) - logits).abs().max().item()
#     right = (logits.argmax(dim=2) == tokens[:, 1:])[:, period:].float().mean()
#     reach = spans_of(model)[0].reach()
#     print(
#         f"{period - 1:2} back: sees {reach} back, {right:.0%} right after round one; "
#         f"cropped, the logits differ by {difference:.0e}"
#     )
#     assert period - 1 <= reach < period + 8 and right > 0.9 and difference < 1e-4

# %% [markdown]
# After 300 updates both models see what they need and little more; the curves may not have come to their end. The place that is needed then lies on the ramp, where its weight is multiplied by little. That leaves a span on an edge: a step too far and the place is out of sight, and with it the gradient that could bring it back. The price is what pulls spans down; what they do without one was not tried here. So a span can be learned where the task says clearly how far one has to look: this is one seed of two tasks, and how often it fails with other prices, ramps, rates or seeds we have not measured.

# %% [markdown]
# On text nobody knows the right span. `python -m transformer.experiments.learned_spans` trains small models of characters on the articles of [21](21_language.ipynb), without a price and with three prices. What was expected was written down before ([learned-spans.md](../data/runs/learned-spans.md)).

# %% tags=["active-ipynb"]
# runs = read_rows("learned-spans")
# for row in runs:
#     spans = "; ".join(
#         " ".join(f"{z:.0f}" for z in row[name])
#         for name in row
#         if name.startswith("spans.")
#     )
#     print(
#         f"price {row['price']:<5g}: bits a character {row['validation.bits']:.4f} on "
#         f"validation, {row['test.bits']:.4f} on test; mean span {row['span']:3.0f}"
#     )
#     print(f"             by layer {spans}")
# for row in runs:
#     full, cropped = (row[f"cost.{form}.seconds"] for form in ("full", "cropped"))
#     flops = row["cost.cropped.flops"] / row["cost.full.flops"]
#     print(
#         f"price {row['price']:<5g}: cropped, {flops:.0%} of the FLOPs and "
#         f"{cropped / full:.0%} of the time of the full table; the fused kernel, "
#         f"which has no spans, {row['cost.fused.seconds'] / full:.0%}"
#     )

# %% [markdown]
# Without a price the spans could not move, as we saw afterwards: in windows of 512 bytes no place lies on the ramp of a span of 512, so its gradient is 0. A price of 0.03 leaves a seventh of them (still falling in the end), and 0.3 hardly more than the ramp of 32 places a layer, about a hundred bytes through three layers. On validation all prices cost something, 0.011, 0.013 and 0.022 bits; on test each gains 0.004 or 0.005. With one seed neither means much. Models as young as these get next to nothing from text farther back than that. A better trained one might lose more: Sukhbaatar et al. trained larger models for much longer, and there most heads settled on short spans, while a few in the upper layers kept thousands of characters.

# %% [markdown]
# Three expectations failed. The price of 0.3 was to cost under 0.02 bits, and costs 0.022. With a price of 0.03 the *first* layer keeps the longest spans, where the last one was expected to. And time falls more than FLOPs, where the opposite was expected; we do not know why. FLOPs fall less than spans, because a layer is cropped to its farthest head and the feed-forward networks cost the same. With 0.003 nothing is saved: two blocks of the farthest span would hold everything. Only where nearly all is cropped is that faster than the fused kernel on everything.

# %% [markdown] tags=["question-34"]
# ## Could the pattern be evolved?
#
# Radii, heads and widths were chosen by hand. David So et al. (2019, *The Evolved Transformer*) let an evolution choose, and found an architecture that needs fewer FLOPs for the same BLEU. The kind of evolution here, with age (Real et al., 2019), is short. Some candidates are drawn and tried. Then, again and again, three drawn from the most recent ones, the *population*, are compared, and a changed copy of the best of them is tried. Older ones no longer take part, so a candidate that was merely lucky dies out. `price` says what a candidate costs; the lowest price is the best:


# %%
def evolve(
    draw: Callable,
    change: Callable,
    price: Callable,
    population: int,
    trials: int,
    chance: Random,
    rivals: int = 3,
) -> list[tuple]:
    """Try candidates, [(price, candidate), ...] in order; see the text above.

    draw(chance) and change(candidate, chance) make candidates; a population as large as
    the number of trials is random search. Raises ValueError for fewer than `rivals`.
    """
    if population < rivals:
        raise ValueError(f"a population of {population} has no {rivals} rivals")
    tried: list[tuple] = []
    while len(tried) < trials:
        new = draw(chance)
        if len(tried) >= population:
            new = change(min(chance.sample(tried[-population:], rivals))[1], chance)
        tried.append((price(new), new))
    return tried


# %% [markdown]
# First on a price that is known: the squared distance of four numbers from a place that the search does not know, each number from 0 to 19. Does evolution need fewer trials than drawing at random? Its population is 20 here, or 10.

# %% tags=["active-ipynb"]
# def any_place(chance):
#     return tuple(chance.randrange(20) for _ in range(4))
#
#
# def a_step(place, chance):
#     i = chance.randrange(4)
#     new = min(19, max(0, place[i] + chance.choice([-1, 1])))
#     return (*place[:i], new, *place[i + 1 :])
#
#
# def distance(place):
#     return sum((a - b) ** 2 for a, b in zip(place, (3, 14, 9, 17)))
#
#
# trials, curves = 200, {}
# for name, population in {
#     "population 20": 20,
#     "population 10": 10,
#     "random search": trials,
# }.items():
#     found = [
#         evolve(any_place, a_step, distance, population, trials, Random(seed))
#         for seed in range(20)
#     ]
#     prices = torch.tensor([[price for price, _ in tried] for tried in found])
#     curves[name] = prices.cummin(dim=1).values.double().mean(dim=0)
# # A curve ends where all searches have found the place: 0 has no logarithm
# plotting.lines(
#     range(1, trials + 1),
#     curves,
#     "trials",
#     "price of the best so far, mean",
#     "Evolution overtakes random search",
#     log="y",
# )
# for trial in (40, trials):
#     print(
#         f"after {trial} trials, mean of 20 searches:",
#         {name: round(curve[trial - 1].item(), 1) for name, curve in curves.items()},
#     )
# assert curves["population 20"][-1] < curves["random search"][-1]

# %% [markdown]
# With a population of 10, evolution is ahead after some 60 trials, with 20 after some 80; before that its price is mostly higher, by up to 30%. (The curve of 10 ends where all 20 searches have found the place.)

# %% [markdown]
# `python -m transformer.experiments.evolution` lets each search try 40 small models of characters, with a population of 10: two layers with a radius each, heads, and a width of the feed-forward networks, 980 combinations. Their price is bits a character after a short training, plus half a bit times their FLOPs as a share of the largest model's. The winners are priced again with other seeds and on other text ([evolution.md](../data/runs/evolution.md) was written before).

# %% tags=["active-ipynb"]
# runs = {"evolution": [], "random": []}
# for row in read_rows("evolution"):
#     row["again"] = mean(row["test.price"])
#     runs[row["search"]].append(row)
# for kind, rows in runs.items():
#     for row in rows:
#         print(
#             f"{kind:9} {row['seed']}: price {row['validation.price']:.3f}, again "
#             f"{row['again']:.3f}; radii {row['best.first']}, {row['best.second']}, "
#             f"h {row['best.h']}, d_ff {row['best.d_ff']}"
#         )
# for name, unit in (("validation.price", 1), ("again", 1), ("flops", 1e9)):
#     evolved, drawn = ([row[name] / unit for row in rows] for rows in runs.values())
#     error = ((variance(evolved) + variance(drawn)) / 3) ** 0.5
#     print(
#         f"{name}: evolution {mean(evolved):.3f}, random {mean(drawn):.3f}, "
#         f"difference {mean(evolved) - mean(drawn):+.3f} (standard error {error:.3f};"
#         f" deviations {variance(evolved) ** 0.5:.3f}, {variance(drawn) ** 0.5:.3f})"
#     )

# %% [markdown]
# **Evolution ran and found good candidates; whether it beats random search, three searches of each cannot tell**: its winners are not cheaper by more than two standard errors, neither as they were found nor priced again. Against what was expected, the means differ by no less (0.053) than three searches of a kind do (deviations 0.022 and 0.053). Reading one window with each of its 40 candidates costs 16% fewer FLOPs, as was expected. Priced again, all six winners are worse; the other text alone may do that. Both searches found the same kind of model: a first layer that sees two or four bytes back, and in five of six as many heads as were allowed. Expected were small networks; $d_{ff}$ is 64, 128 and 256, twice each.

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** The mask of a window with a gap.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.sparse import check_gap_mask
#
#
# def gap_mask(n, r, gap):
#     """-> a boolean mask (n, n): r neighbours on each side, with a gap"""
#     ...
#
#
# check_gap_mask(gap_mask)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def gap_mask(n, r, gap):
#     place = torch.arange(n)
#     distance = (place[:, None] - place).abs()
#     return (distance <= r * gap) & (distance % gap == 0)
# ```
# </details>
#
# **2.** How many places can an output depend on after a stack of layers with a window of $r$ on each side and these gaps, one gap a layer? Count as if the sequence had no ends, and take the gaps to be such that no holes remain.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.sparse import check_field
#
#
# def field(r, gaps):
#     """r, a list of gaps -> the number of places from end to end"""
#     ...
#
#
# check_field(field)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def field(r, gaps):
#     far = 0
#     for gap in gaps:
#         far += r * gap
#     return 2 * far + 1
# ```
#
# With gaps of 1, 4, 16, ... it grows about fourfold a layer.
# </details>
#
# **3.** Two parts of the keys were attended to apart, say a window and the global tokens. Join them as if one softmax had seen both, without concatenating anything: kernels that work through the keys piece by piece do just that.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.sparse import check_joined
#
#
# def joined(a, b, u, v):
#     """Scores (n,) and (m,), values (n, d) and (m, d) -> the output (d,)"""
#     ...
#
#
# check_joined(joined)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def joined(a, b, u, v):
#     of_a, of_b = a.softmax(dim=0) @ u, b.softmax(dim=0) @ v
#     share = torch.sigmoid(a.logsumexp(dim=0) - b.logsumexp(dim=0))
#     return share * of_a + (1 - share) * of_b
# ```
#
# The sum of exponentials says how much a part counts; its logarithm is enough, and the sigmoid of the difference is the first part's share.
# </details>
#
# ## Next
#
# [Evidence 22](evidence/22_sparse.ipynb) has the measurements and the long runs of this notebook.
