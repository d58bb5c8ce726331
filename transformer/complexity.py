# ---
# jupyter:
#   jupytext:
#     formats: notebooks/09_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 4 Why self-attention
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/09_complexity.ipynb)
#
# Section 4 of the paper defends self-attention with a table: what a layer costs, how much of it must wait for something else, and how
# far a signal travels. Here every row becomes a layer that runs, and every entry is counted or measured. At the end you will know where
# the table holds, where it needs a footnote, and what $n^2$ costs in practice. Reading takes about 30 minutes, running it half a
# minute.

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
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import (
    MultiHeadAttention,
    attention,
    join_heads,
    split_heads,
)
from transformer.convolution import GatedBlock
from transformer.core.checks import check_local_attention
from transformer.recurrence import gru_step

# %% tags=["active-ipynb"]
# # what only pictures, measurements and checks need: not part of the module
# import os
# import timeit
# from statistics import median
#
# from torch.nn.utils.rnn import pad_sequence
# from torch.utils.flop_counter import FlopCounterMode
#
# from transformer import load
# from transformer.attention import padding_mask
# from transformer.convolution import dependence
# from transformer.core.records import read_rows
# from transformer.corpora import read_corpus
# from transformer.teaching.measuring import crossing, exponent, measure, turns, work
# from transformer.views import plotting
# from transformer.views.growth import add_slopes, growth, mark_sizes
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # one core: then time is work

# %% [markdown]
# ## What the table says
#
# A layer turns $n$ vectors of width $d$ into $n$ others. Table 1 says how three prices grow. $O(n^2 d)$ ("big O") means: at most some constant times $n^2 d$ once $n$ is large. The constant is left open, and the table below leaves the O out.
#
# | layer | operations | steps one after another | longest path |
# |---|---|---|---|
# | self-attention | $n^2 d$ | $1$ | $1$ |
# | recurrent | $n d^2$ | $n$ | $n$ |
# | convolution, window $k$ | $k n d^2$ | $1$ | $\log_k n$ |
# | self-attention within $r$ | $r n d$ | $1$ | $n / r$ |
#
# The path is the number of steps that a signal takes from one end of the sequence to the other. Gradients travel the same way back, and
# [notebook 01](01_recurrence.ipynb) showed what a long way does to them.

# %% [markdown]
# ## Attention that looks only nearby
#
# Three rows are known from [04](04_attention.ipynb), [01](01_recurrence.ipynb) and [02](02_convolution.ipynb). The last is
# new: each position sees only positions at most $r$ away. A mask over the full table would still compute all
# $n^2$ scores. Instead, the sequence is cut into blocks of $r$. Whatever a block may see lies in the
# block itself, the one before it and the one after it. **Deviation: here $r$ counts one side**; the paper's neighbourhood has $r$ positions in all.


# %%
def windows(x: Tensor, r: int, causal: bool = False) -> Tensor:
    """What each block of r positions can see: x (..., n, d) -> (..., blocks, width, d).

    A block sees itself, the r positions before it and, unless causal, the r after it:
    width is 3r or 2r. Beyond the ends are zeros.
    """
    n = x.shape[-2]
    end = -n % r + (0 if causal else r)  # fills up the last block, and a block after it
    padded = F.pad(x, (0, 0, r, end))
    return padded.unfold(-2, 2 * r if causal else 3 * r, r).transpose(-2, -1)


# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# print(windows(torch.arange(1, 8)[:, None], r=3)[..., 0])

# %% [markdown]
# Seven positions in blocks of three: each row has its block in the middle. A mask then leaves
# exactly the pairs with $|i - j| \le r$, and notebook 04's attention runs over blocks as if they were
# sentences. There are $n / r$ blocks with $r \cdot 3r$ scores each, so $3 r n$ scores in all, without a loop.


# %%
def local_attention(
    q,
    k,
    v,
    mask=None,
    *,
    r: int,
    causal: bool = False,
    attend: Callable = attention,
) -> tuple:
    """Attention in which i sees j only where |i - j| <= r, in O(r n) (Section 4).

    And j <= i if causal. q and k (..., n, d_k), v (..., n, d_v); mask over keys,
    boolean, (..., 1, n) as of `padding_mask`; attend: what runs over blocks and their
    windows. Returns the output (..., n, d_v) and None for the weights; a position that
    sees nothing gets zeros. Raises ValueError for r < 1, for lengths that differ, and
    for another kind of mask.
    """
    n = q.shape[-2]
    if mask is None:
        mask = torch.ones(1, n, dtype=torch.bool, device=q.device)
    check_local_attention(q, k, v, r, mask)
    r = min(r, n)
    blocks = F.pad(q, (0, 0, 0, -n % r)).unflatten(-2, (-1, r))  # (..., blocks, r, d_k)
    real = windows(mask.transpose(-2, -1), r, causal)  # False beyond the ends
    real = real.transpose(-2, -1)  # (..., blocks, 1, width)
    i = torch.arange(r, device=q.device)[:, None]
    j = torch.arange(real.shape[-1], device=q.device) - r  # the first r lie before
    near = (j - i >= -r) & (j - i <= (0 if causal else r))
    k, v = (windows(x, r, causal) for x in (k, v))
    output, _ = attend(blocks, k, v, near & real)
    return output.flatten(-3, -2)[..., :n, :], None


# %% tags=["active-ipynb"]
# q, k, v = torch.randn(3, 2, 2, 23, 4, dtype=torch.float64).requires_grad_()
# tokens = torch.ones(2, 23).int()
# tokens[1, 10:] = 0  # padding: the last positions of this sentence see nothing
# real = padding_mask(tokens, pad_id=0)
# i = torch.arange(23)
# near = (i[:, None] - i).abs() <= 5
# ours, _ = local_attention(q, k, v, real, r=5)
# full, _ = attention(q, k, v, near & real)
# our_gradients = torch.autograd.grad((ours**2).sum(), (q, k, v))
# full_gradients = torch.autograd.grad((full**2).sum(), (q, k, v))
# pairs = [(ours, full), *zip(our_gradients, full_gradients)]
# largest = max((a - b).abs().max().item() for a, b in pairs)
# assert largest < 1e-9
# assert ours[1, :, 15:].eq(0).all()
# print(f"blocks and the masked full table differ by {largest:.0e}, gradients included")

# %% [markdown]
# ## Every row becomes a layer
#
# `SelfAttention` is notebook 04's class with any function that attends: notebook 04's own, which writes out the full table of weights; torch's kernel (a single operation, called "fused" below); or `local_attention`. A convolution with gaps between its inputs, to reach further, is called *dilated*. It is the
# same convolution on every second position, or every third, and so on: `Dilated`, with a gap of $g$, takes the positions $0, g, 2g, \ldots$ as one sequence, $1, g+1, \ldots$ as the next, and puts the results
# back. The convolution is the causal gated block of notebook 02, and the recurrence is torch's GRU.


# %%
def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> tuple:
    """`attention` by torch's kernel, which never writes the table of weights: output, None."""
    return F.scaled_dot_product_attention(q, k, v, mask), None


class SelfAttention(MultiHeadAttention):
    """Multi-head attention of a sequence with itself: x (B, n, d_model) -> the same."""

    def __init__(self, d_model: int, h: int, attend: Callable = attention):
        super().__init__(d_model, h)
        self.attend = attend

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (split_heads(W(x), self.h) for W in (self.W_Q, self.W_K, self.W_V))
        return self.W_O(join_heads(self.attend(q, k, v, None)[0]))


class Recurrent(nn.GRU):
    """Torch's GRU as a layer: x (B, n, d) -> its state at each position (B, n, d)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[0]


# %%
def deal(x: Tensor, gap: int) -> Tensor:
    """Every gap-th position as one sequence: (..., n, d) -> (..., gap, n / gap, d).

    Zeros fill up the last positions, as they do beyond a sentence's end.
    """
    filled = F.pad(x, (0, 0, 0, -x.shape[-2] % gap))
    return filled.unflatten(-2, (-1, gap)).transpose(-3, -2)


def collect(y: Tensor, n: int) -> Tensor:
    """What was dealt out put together again: (..., gap, n / gap, d) -> (..., n, d)."""
    return y.transpose(-3, -2).flatten(-3, -2)[..., :n, :]


class Dilated(nn.Module):
    """A layer on every gap-th position: with a convolution, a dilated convolution."""

    def __init__(self, layer: nn.Module, gap: int):
        super().__init__()
        self.layer = layer
        self.gap = gap

    def forward(self, x: Tensor) -> Tensor:
        B, n, d = x.shape
        gap = min(self.gap, n)  # with a gap of n or more, every position is alone
        y = self.layer(deal(x, gap).flatten(0, 1))  # (B * gap, n / gap, d)
        return collect(y.unflatten(0, (B, gap)), n)


# %%
KINDS = (
    "self-attention",
    "self-attention, fused",
    "recurrent",
    "convolution",
    "dilated convolution",
    "restricted attention",
)


def check_kind(kind: str) -> None:
    """ValueError for a kind of layer that is not in KINDS."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}: choose one of {', '.join(KINDS)}")


# %%
def make_layer(
    kind: str, d: int, h: int = 8, k: int = 3, r: int = 32, depth: int = 0
) -> nn.Module:
    """One layer of a kind of KINDS, width d, with h heads, windows of k, neighbours
    within r; a dilated one at this depth has gaps k^depth.
    """
    check_kind(kind)
    attends = {
        "self-attention": attention,
        "self-attention, fused": fused_attention,
        "restricted attention": partial(local_attention, r=r),
    }
    if kind in attends:
        return SelfAttention(d, h, attend=attends[kind])
    if kind == "recurrent":
        return Recurrent(d, d, batch_first=True)
    block = GatedBlock(d, k, causal=True)
    return block if kind == "convolution" else Dilated(block, k**depth)


# %% tags=["active-ipynb"]
# block, x = GatedBlock(8, 3, causal=True), torch.randn(1, 20, 8)
# near = partial(local_attention, r=3)
# layers = {
#     "convolution, k = 3": block,
#     "dilated, gap 4": Dilated(block, 4),
#     "within r = 3": SelfAttention(8, 2, attend=near),
#     "within r = 3, causal": SelfAttention(8, 2, attend=partial(near, causal=True)),
# }
# ticks = [t if t % 5 == 0 else "" for t in range(20)]
# panels = [
#     (name, dependence(layer, x) > 0, ticks, ticks) for name, layer in layers.items()
# ]
# size = {"width": 2.7, "height": 2.7}
# plotting.heatmaps(panels, across=4, **size, labels=("input", "output"))
# conv = block.convolution.conv
# padded = F.pad(x.transpose(1, 2), (8, 0))  # two gaps of 4 before the first
# theirs = F.conv1d(padded, conv.weight, conv.bias, dilation=4).transpose(1, 2)
# theirs = (x + F.glu(theirs)) * math.sqrt(0.5)
# assert torch.allclose(Dilated(block, 4)(x), theirs, atol=1e-5)
# full = make_layer("self-attention", 8, h=2)
# for kind in ("self-attention, fused", "restricted attention"):
#     layer = make_layer(kind, 8, h=2, r=20)
#     layer.load_state_dict(full.state_dict())
#     assert torch.allclose(layer(x), full(x), atol=1e-5)
# print("dilated equals torch's dilation; r = n equals full attention, and so does fused")

# %% [markdown]
# Dark blue: this output depends on this input (its gradient is not zero).
#
# ## Steps that must wait
#
# With enough processors, everything that needs no other's result can run at once. Autograd remembers which operation needed which, so we can
# count the longest chain in which each needs the one before. Any operation counts as one step.


# %%
def longest_chain(y: Tensor) -> int:
    """Operations on the longest chain from the inputs to y: each needs the one before.

    y must have a gradient. The operations wait on a stack of our own, for a chain may
    be longer than Python's recursion goes deep.
    """
    length = {None: 0}
    stack = [y.grad_fn]
    while stack:
        node = stack[-1]
        before = [source for source, _ in node.next_functions]  # what node needs
        waiting = [source for source in before if source not in length]
        if waiting:
            stack += waiting
        else:
            # a leaf, where nothing comes before, is no operation
            length[stack.pop()] = max((1 + length[s] for s in before), default=0)
    return length[y.grad_fn]


# %% tags=["active-ipynb"]
# sizes = [16, 32, 64, 128, 256, 512]
# steps = {}
# for kind in KINDS:
#     layer = make_layer(kind, 16, r=4, depth=2)
#     steps[kind] = [
#         longest_chain(layer(torch.randn(1, n, 16, requires_grad=True))) for n in sizes
#     ]
# title = "only recurrence has a chain that grows with n"
# growth(sizes, steps, "longest chain of operations", title, markers=True)
# first, second, *_ = steps["recurrent"]
# a_step = (second - first) // 16  # sixteen positions more
# for kind, chains in steps.items():
#     slope = a_step if kind == "recurrent" else 0
#     assert chains == [chains[0] + slope * (n - 16) for n in sizes]
# print({kind: chains[-1] for kind, chains in steps.items()}, "at n = 512")
# print(f"each further position adds {a_step} operations to the GRU's chain, else none")

# %% [markdown]
# **$O(1)$ and $O(n)$, as in the table.** The GRU's chain grows: each step needs the last result, and its $\tanh$ and $\sigma$ forbid a regrouping. (A linear recurrence such as $h_t = U h_{t-1} + x_t$ can be regrouped into about
# $\log n$ rounds, see [01](01_recurrence.ipynb).)
#
# ## The longest path
#
# Layers are stacked until the gradient of the last output at the first input is no longer exactly zero. One recurrent layer joins both ends, by $n$ steps inside it. To count them, all positions take one GRU step together, each
# from the state that its left neighbour had a round before.


# %%
def path_length(step: Callable, x: Tensor) -> int:
    """Steps until the last position depends on the first.

    x (1, n, d), float64 so that nothing rounds to zero. step(i, x, y) gives y, the
    outputs after step i (0, 1, ...), from those before it, x at first. Raises
    ValueError where n steps make no path.
    """
    x = x.detach().requires_grad_()
    y = x
    for i in range(x.shape[1]):
        y = step(i, x, y)
        last = y[0, -1]
        seen = (last * torch.randn_like(last)).sum()
        (gradient,) = torch.autograd.grad(seen, x, retain_graph=True)
        if gradient[0, 0].any():
            return i + 1
    n = x.shape[1]
    raise ValueError(f"no path from the first position to the last in {n} steps")


# %%
def stacked(kind: str, d: int, **sizes: int) -> Callable:
    """A `path_length` step that puts one more layer of a kind on top, at float64."""
    return lambda i, x, y: make_layer(kind, d, depth=i, **sizes).double()(y)


def recurrent_round(gru: nn.GRU) -> Callable:
    """A `path_length` step: every position makes one step of a torch GRU.

    After n rounds all states are right.
    """

    def step(i, x, h):
        before = torch.zeros_like(x)
        if i:
            before[:, 1:] = h[:, :-1]  # the left neighbour's state
        return gru_step(x, before, *gru.parameters())

    return step


# %% tags=["active-ipynb"]
# sizes = [5, 9, 17, 33, 65, 129]
# formulas = {
#     "self-attention": lambda n: 1,
#     "self-attention, fused": lambda n: 1,
#     "recurrent": lambda n: n,
#     "convolution": lambda n: math.ceil((n - 1) / 2),
#     "dilated convolution": lambda n: math.ceil(math.log(n, 3)),
#     "restricted attention": lambda n: math.ceil((n - 1) / 8),
# }
# gru = Recurrent(8, 8, batch_first=True).double()
# h = x = torch.randn(1, 40, 8, dtype=torch.float64)
# for i in range(40):  # each round makes one more state right
#     h = recurrent_round(gru)(i, x, h)
#     assert ((h - gru(x)).abs().amax(dim=-1) < 1e-12).sum() == i + 1
# paths = {}
# for kind in KINDS:
#     step = recurrent_round(gru) if kind == "recurrent" else stacked(kind, 8, h=2, r=8)
#     inputs = [torch.randn(1, n, 8, dtype=torch.float64) for n in sizes]
#     paths[kind] = [path_length(step, x) for x in inputs]
#     assert paths[kind] == [formulas[kind](n) for n in sizes]
# title = "attention needs one step, recurrence n (k = 3, r = 8)"
# growth(sizes, paths, "steps from first to last", title, markers=True)
# print("40 rounds are torch's GRU, and all six curves are exactly those formulas")

# %% [markdown]
# **The table flatters the convolution.** $\log_k n$ holds only for windows with growing gaps $1, k, k^2, \ldots$ Plain causal windows take $(n-1)/(k-1)$ layers, centred ones twice as many; the paper's text says $O(n/k)$. And a short path is paid
# for with that many layers, while the table's first column prices one.
#
# ## Operations, counted
#
# A product of an $a \times b$ and a $b \times c$ matrix takes $abc$ multiplications and as many
# additions: $2abc$ floating-point operations (FLOPs). With its projections, self-attention takes
#
# $$\underbrace{8 n d^2}_{W_Q, W_K, W_V, W_O} + \underbrace{4 n^2 d}_{QK^\top \text{ and } AV}$$
#
# and the table counts the second part ($A$: the weights). A GRU has six matrices: $12 n d^2$. The gated block makes $2d$ numbers from
# $kd$: $4 k n d^2$.


# %%
def layer_flops(kind: str, n: int, d: int, k: int = 3, r: int = 32) -> int:
    """FLOPs of the matrix products of one layer, constants and all (Table 1).

    On one sequence of n vectors of width d.
    """
    check_kind(kind)
    if kind == "recurrent":
        return 12 * n * d**2  # three gates, two matrices each
    if "convolution" in kind:
        return 4 * k * n * d**2  # 2d numbers from k d
    r = min(r, n)
    scores = 3 * r * (n + -n % r) if kind == "restricted attention" else n**2
    return 8 * n * d**2 + 4 * scores * d


# %% tags=["active-ipynb"]
# def counted(layer, x):
#     with FlopCounterMode(display=False) as counter, torch.no_grad():
#         layer(x)
#     return counter.get_total_flops()
#
#
# for kind in KINDS:
#     if "fused" not in kind:  # torch counts its FLOPs on a GPU only
#         x = torch.randn(1, 200, 64)
#         assert layer_flops(kind, 200, 64) == counted(make_layer(kind, 64), x)
# print("the formulas equal torch's count")
# sizes = [64 * 2**i for i in range(8)]  # 64 to 8,192
# for d in (64, 1024, 512):  # the last one is drawn
#     curves = {
#         kind: [layer_flops(kind, n, d) / n / 1e6 for n in sizes] for kind in KINDS
#     }
#     meet = crossing(sizes, curves["self-attention"], curves["recurrent"])
#     assert abs(meet - d) < 0.01 * d
#     print(f"d = {d:4}: the recurrent layer has fewer FLOPs from n = {meet:.0f} on")
# title = f"d = {d}: attention is dearer than recurrence from n = {meet:.0f} on"
# ax = growth(sizes, curves, "million FLOPs a position (k = 3, r = 32)", title)
# ax.set_yticks([2, 3, 4, 6, 10, 20])
# mark_sizes(ax, [meet])

# %% [markdown]
# The paper's argument is that $n$ is usually smaller than $d$, and then self-attention is cheaper than recurrence. Where they meet depends on the matrices of a step: a GRU, with six, meets attention at $n = d$, an LSTM, with eight, at $2d$, and a plain $\tanh$ network, with two, is always cheaper. At $k = 3$ the convolutions lie on the GRU's line: $2k = 6$ matrices. The English sentences on which the paper tests have
# 23 words on average ([10](10_data.ipynb)), and $d$ was 512. Up to some 110 positions ($3r = 96$, and a last block that is filled up) restricted attention costs more than the full table.

# %% [markdown]
# Section 4 has one more rival, the *separable* convolution. Each of the $d$ numbers is convolved with $k$ weights of its own, then one matrix mixes them: $2knd + 2nd^2$. Even with $k = n$, says the paper, its complexity is that of self-attention with the network after it. With all constants:

# %% tags=["active-ipynb"]
# class Separable(nn.Module):
#     def __init__(self, d, k):
#         super().__init__()
#         self.each = nn.Conv1d(d, d, k, padding=k // 2, groups=d)
#         self.mix = nn.Linear(d, d)
#
#     def forward(self, x):  # (B, n, d) -> the same
#         return self.mix(self.each(x.transpose(1, 2)).transpose(1, 2))
#
#
# n, d = 65, 64  # odd, so that a window of n has a middle
# for k in (3, n):
#     flops = counted(Separable(d, k), torch.randn(1, n, d))
#     assert flops == 2 * k * n * d + 2 * n * d**2
#     print(f"separable convolution, k = {k:2}: {flops / n:7,.0f} FLOPs a position")
# plain = layer_flops("convolution", n, d) / n
# with_network = layer_flops("self-attention", n, d) / n + 16 * d**2
# print(f"gated convolution, k = 3:      {plain:7,.0f}")
# print(f"attention and a network of 4d: {with_network:7,.0f}")

# %% [markdown]
# For $k = n$ both grow like $n^2 d + n d^2$, and the separable convolution takes far fewer FLOPs. (A centred window needs $k = 2n - 1$ to join both ends; then its first term nearly equals attention's second, and what is left are fewer matrices.)
#
# ## Time and memory, measured
#
# FLOPs are not seconds. Each layer now works on one sequence, forward and as in training, with the backward pass. `measure` takes the median of all turns (two or three at the largest sizes), in seconds of the processor, and the most memory that a layer's tensors hold at once. First here, with narrow layers of $d = 128$. On logarithmic axes a power law is a
# straight line with the exponent as its slope; `exponent` fits it through the larger half of the sizes.

# %% tags=["active-ipynb"]
# sizes = [64, 128, 256, 512, 1024]
# layers = {kind: make_layer(kind, 128, depth=3) for kind in KINDS}
# live = measure(layers, sizes, 128, passes=2)
# for ax, mode in zip(plotting.new_axes(5.2, 4, columns=2), live):
#     curves = {
#         kind: [1000 * seconds for seconds in live[mode][kind]["seconds"]]
#         for kind in KINDS
#     }
#     title = f"{mode}, d = 128: self-attention is steepest"
#     growth(sizes, curves, "milliseconds here", title, ax, markers=True)
# law = [5 * n**1.7 for n in sizes]
# assert abs(exponent(sizes, law) - 1.7) < 1e-9
# memory = {kind: exponent(sizes, live["training"][kind]["bytes"]) for kind in KINDS}
# assert memory["self-attention"] > 1.5 > 1.1 > memory["restricted attention"]
# print(
#     "memory in training grows like n to the power "
#     + ", ".join(f"{p:.2f} ({kind})" for kind, p in memory.items())
# )

# %% [markdown]
# These sequences are short, and the layers narrow. So
# `python -m transformer.experiments.complexity` went on to $n = 8{,}192$ with the paper's $d = 512$:

# %% tags=["active-ipynb"]
# rows = read_rows("complexity")
# sizes, d = sorted({row["n"] for row in rows}), rows[0]["d"]
#
#
# def column(mode, what):
#     return {
#         kind: [row[what] for row in rows if (row["mode"], row["layer"]) == (mode, kind)]
#         for kind in KINDS
#     }
#
#
# forward, training = column("forward", "seconds"), column("training", "seconds")
# memory = {
#     kind: [size / 2**20 for size in held]
#     for kind, held in column("training", "bytes").items()
# }
# panels = [
#     ("forward: self-attention is steepest", "seconds", forward),
#     ("training: self-attention is steepest", "seconds", training),
#     ("memory in training: n² unless fused", "MiB", memory),
# ]
# for ax, (title, unit, curves) in zip(plotting.new_axes(4.4, 4, columns=3), panels):
#     growth(sizes, curves, unit, title, ax)
#     add_slopes(ax, sizes, curves)
# print("exponents of n      table   FLOPs  forward  training  memory")
# for kind in KINDS:
#     flops = [layer_flops(kind, n, d) for n in sizes]
#     fits = [exponent(sizes, y[kind]) for y in (forward, training, memory)]
#     print(
#         f"{kind:22}{2 if 'self' in kind else 1}{exponent(sizes, flops):9.2f}"
#         f"{fits[0]:9.2f}{fits[1]:10.2f}{fits[2]:8.2f}"
#     )
#     assert "self" in kind or abs(fits[0] - 1) < 0.25
# for mode, seconds in (("forward", forward), ("training", training)):
#     meet, fused = (
#         crossing(sizes, seconds[kind], seconds["recurrent"]) for kind in KINDS[:2]
#     )
#     print(
#         f"{mode}: the GRU is faster than self-attention from n = {meet:,.0f} on, "
#         f"than the fused kernel from {fused:,.0f}"
#     )

# %% [markdown]
# The linear rows are linear. By FLOPs, self-attention stands at 1.72 and not at 2, because the projections are still half of the work at $n = 1{,}024$, where the fit begins; the fused kernel follows that count. The written-out form is steeper, 2.60. Why?
#
# A suspect is memory. Each call makes new tables of $8 n^2$ numbers (for 8 heads), for which the system has to find memory. `ReusedTables` writes into tables made beforehand instead:


# %%
class ReusedTables:
    """Attention that writes its scores and weights into the same memory at each call.

    For use without gradients and without a mask; otherwise results as of
    `attention`, and None for the weights.
    """

    def __init__(self):
        self.tables: dict[tuple, tuple[Tensor, Tensor]] = {}

    def __call__(self, q, k, v, mask=None) -> tuple:
        shape = (*q.shape[:-1], k.shape[-2])
        if shape not in self.tables:
            self.tables = {shape: (q.new_empty(shape), q.new_empty(shape))}
        scores, weights = self.tables[shape]
        torch.matmul(q, k.transpose(-2, -1), out=scores)
        scores /= math.sqrt(q.shape[-1])
        torch.softmax(scores, dim=-1, out=weights)
        return weights @ v, None


# %% tags=["active-ipynb"]
# attends = {
#     "fresh": attention,
#     "reused": ReusedTables(),
#     "fused": fused_attention,
# }
# layers = {name: SelfAttention(512, 8, attend=attends[name]) for name in attends}
# print("nanoseconds for each pair of positions: program + operating system")
# for n in (512, 1024, 2048):
#     x, calls, said = torch.randn(1, n, 512), (2048 // n) ** 2, []
#     for name, layer in layers.items():
#         layer.load_state_dict(layers["fresh"].state_dict())
#         work(layer, x)
#         before = os.times()
#         for _ in range(calls):
#             work(layer, x)
#         after = os.times()
#         own, system = (
#             1e9 * (getattr(after, who) - getattr(before, who)) / calls / n**2
#             for who in ("user", "system")
#         )
#         said.append(f"{name} {own:3.0f} + {system:3.0f}")
#     print(f"n = {n:5,}:  " + ",  ".join(said))
# with torch.no_grad():
#     outputs = [layer(x) for layer in layers.values()]
# assert all(torch.allclose(output, outputs[0], atol=1e-4) for output in outputs)
# print("the three give the same output")

# %% [markdown]
# The command `python -m transformer.experiments.limits` went on to $n = 8{,}192$:

# %% tags=["active-ipynb"]
# rows = [row for row in read_rows("limits") if row["name"] == "tables"]
# lengths = sorted({row["n"] for row in rows})
# curves = {}
# for form in ("fresh", "reused", "fused"):
#     own = [row for row in rows if row["form"] == form]
#     curves[form] = [row["program"] + row["system"] for row in own]
#     power = math.log(curves[form][-1] / curves[form][1], lengths[-1] / lengths[1])
#     share = own[-1]["system"] / curves[form][-1]
#     at_4096, at_8192 = curves[form][-2:]
#     print(
#         f"{form}: {at_4096:.2f} s at 4,096, {at_8192:.2f} at 8,192 ({share:.0%} the "
#         f"system's); exponent from 1,024 on {power:.2f}"
#     )
# title = "fresh tables cost as much as attention itself"
# growth(lengths, curves, "seconds, forward", title, markers=True)
# assert curves["fresh"][-1] > 1.5 * curves["reused"][-1]

# %% [markdown]
# In this record (limits.json) fresh tables double the time from 1,024 positions on; in the cell above they add less. Most of what they add is the system's. But they add the same share at each length: the exponent is the same with reused tables, so they do not explain the 2.60. That record (complexity.json) has two odd ends: at 1,024 it is as fast as reused tables are here, at 8,192 2.5 times as slow as fresh ones. Why the two records differ we do not know.

# %% [markdown] tags=["question-14"]
# ## Why does a recurrent network leave a GPU idle?
#
# **Because each step multiplies its matrices with one vector only.** One likely cost is reading the weights: the product of a matrix with one vector uses each once, two FLOPs for each number read. With $m$ vectors at once, each weight read serves all of them. Self-attention multiplies $W_Q$ with all $n$ vectors in one
# product. A recurrent layer has a single state to multiply its matrix with, waits for the next state, and reads the whole matrix again. A batch is the way
# out: $B$ sequences take each step together. The next cell measures what that does to a processor's speed:

# %% tags=["active-ipynb"]
# def gflops(m):
#     """Billions of FLOPs a second of a GRU's matrix with m vectors: the best of many."""
#     U, states = torch.randn(3 * 512, 512), torch.randn(m, 512)
#     best = min(timeit.repeat(lambda: states @ U.T, number=1, repeat=200))
#     return 2 * U.numel() * m / best / 1e9
#
#
# together = [1, 4, 16, 64]
# rates = {"GRU's matrix": [gflops(m) for m in together]}
# layers = {kind: make_layer(kind, 512) for kind in KINDS[1:3]}
# times = [turns(layers, torch.randn(B, 32, 512), seconds=0.6) for B in together]
# curves = {
#     kind: [32 * B / median(took[kind]) for B, took in zip(together, times)]
#     for kind in layers
# }
# left, right = plotting.new_axes(5, 3.6, columns=2)
# plotting.lines(
#     together,
#     rates,
#     "vectors multiplied at once",
#     "billion FLOPs a second",
#     "many vectors at once are faster",
#     "xy",
#     left,
#     markers=True,
# )
# plotting.lines(
#     together,
#     curves,
#     "sequences in the batch",
#     "positions a second",
#     "a batch helps recurrence more",
#     "xy",
#     right,
#     markers=True,
# )
# for name, values in (rates | curves).items():
#     print(f"{name}: {values[-1] / values[0]:.1f} times as fast at the right end")
# assert max(rates["GRU's matrix"][2:]) > 1.2 * rates["GRU's matrix"][0]
# assert curves["recurrent"][-1] > 1.3 * curves["recurrent"][0]

# %% [markdown]
# Left (one thread): the more vectors at once, the faster the processor multiplies. Right ($n = 32$): a batch helps the recurrent layer more than attention. (Half
# of a GRU's work needs only the inputs, and is done for all positions at once.)
#
# A GPU has thousands of processors, so it needs far more work at once to be busy. That is the paper's complaint in Section 1: long
# sequences fill the memory, and then the batch must be small just where recurrence needs it. These layers we have not measured on a GPU;
# `python -m transformer.experiments.complexity --device cuda` does.

# %% [markdown] tags=["question-26"]
# ## Why does BERT stop at 512, and what does O(n²) cost in practice?
#
# BERT's positions are a learned table of 512 rows ([07](07_positions.ipynb)), so token 513 has none. The likely reason is the cost: nine tenths of BERT's training steps used only 128 tokens (Devlin et al., 2019). Here are the training time a token of one layer, from the record above, and the memory of the attention weights of a model of BERT's size: four bytes for each of 12
# layers, 12 heads, $n^2$ pairs and 32 sequences.

# %% tags=["active-ipynb"]
# print("      n   microseconds a token: full   fused   within 32   weights, batch of 32")
# for i, n in enumerate(sizes):
#     full, fused, near = (
#         1e6 * training[kind][i] / n for kind in (*KINDS[:2], "restricted attention")
#     )
#     kept = 32 * 12 * 12 * n**2 * 4 / 2**30
#     print(f"{n:7,}{full:29.0f}{fused:8.0f}{near:12.0f}{kept:19.1f} GiB")

# %% [markdown]
# Up to 512 a token costs about the same at any length; then each doubling makes *every* token of both full forms dearer. And **memory ends**: at 512 these weights still fit into
# a GPU of that time (16 GB), at 2,048 into none of them.
#
# How far does a machine really go? `python -m transformer.experiments.limits` trains one layer ($d = 512$, at most 4 GiB), doubling $n$ until memory is refused (then it tries lengths between) or a pass takes over ten seconds; that pass still counts.

# %% tags=["active-ipynb"]
# for row in read_rows("limits"):
#     if row["name"].startswith("reach"):
#         print(
#             f"{row['layer']:22}{row['longest']:8,} positions "
#             f"in {row['seconds']:4.1f} s, ended by {row['stopped']}"
#         )

# %% [markdown]
# With these limits memory ends the table that is written out, at a length at which time nearly would. The fused kernel (FlashAttention; Dao et al., 2022) computes it piece by piece, and again in the backward pass: its memory is linear, and time ends it. Restricted attention goes further than both.

# %% [markdown] tags=["question-02"]
# ## Is attention just smart brute force? What if we prune?
#
# It is brute force, as all $n^2$ pairs are compared, and smart, as a comparison is only an inner product. Are all needed?
# The bundled model ([16](16_translation.ipynb)) reads 100 test sentences and their translations while each query keeps only some keys: those with the largest weights, the nearest, or random ones, in all three attentions at once (between two languages, the nearest are those at the same place).


# %%
def pruned_attention(q, k, v, mask=None, keep: int = 4, by: str = "weight"):
    """`attention` in which each query keeps `keep` keys.

    Their weights are made to sum to 1. by: "weight" keeps the largest weights,
    "distance" the nearest keys (smallest |i - j|, of two the earlier), "chance" any.
    ValueError for another, or for less than one key.
    """
    if keep < 1 or by not in ("weight", "distance", "chance"):
        raise ValueError(
            f"keep must be at least 1, not {keep}, "
            f"and by 'weight', 'distance' or 'chance', not {by!r}"
        )
    order = q @ k.transpose(-2, -1)
    if by == "chance":
        order = torch.rand_like(order)
    if by == "distance":
        i = torch.arange(order.shape[-2], device=q.device)[:, None]
        j = torch.arange(order.shape[-1], device=q.device)
        order = torch.zeros_like(order) - (i - j - 0.25).abs()
    if mask is not None:
        order = order.masked_fill(~mask, -torch.inf)
    best = order.topk(min(keep, order.shape[-1]), dim=-1).indices
    kept = torch.zeros_like(order, dtype=torch.bool).scatter(-1, best, True)
    return attention(q, k, v, kept if mask is None else kept & mask)


# %% tags=["active-ipynb"]
# model, tokenizer = load()
# sources, targets = [], []
# for english, german in read_corpus("bundled", "test")[:100]:
#     sources.append(torch.tensor([*tokenizer.encode(english), tokenizer.eos_id]))
#     written = [tokenizer.bos_id, *tokenizer.encode(german), tokenizer.eos_id]
#     targets.append(torch.tensor(written))
# source, target = (pad_sequence(rows, batch_first=True) for rows in (sources, targets))
# attentions = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
#
#
# @torch.no_grad()
# def loss(attend):
#     for part in attentions:
#         part.attend = attend
#     logits = model(source, target[:, :-1])
#     gold = target[:, 1:].flatten()
#     return F.cross_entropy(logits.flatten(0, 1), gold, ignore_index=0).item()
#
#
# keeps, full = [1, 2, 4, 8, 16], loss(attention)
# rules = {"the largest": "weight", "the nearest": "distance", "at random": "chance"}
# curves = {
#     name: [loss(partial(pruned_attention, keep=keep, by=by)) for keep in keeps]
#     for name, by in rules.items()
# }
# four = {name: values[2] for name, values in curves.items()}
# labels = ("keys kept for each query", "loss per token, nats")
# title = "the four largest weights nearly suffice"
# every = curves | {"all kept": [full] * 5}
# plotting.lines(keeps, every, *labels, title, "xy", markers=True)
# assert four["the largest"] < 1.2 * full < min(four["the nearest"], four["at random"])
# print(f"a source has {(source != 0).sum() / len(source):.0f} tokens on average")
# print(
#     f"loss {full:.3f} with all weights; with four: "
#     + ", ".join(f"{value:.3f} ({name})" for name, value in four.items())
# )

# %% [markdown]
# Four keys, a third of an average source, do nearly the work of all if they have the largest weights, and the nearest four do not. But to know the largest, all scores have to
# be computed. **Pruning afterwards saves at most the product with $V$**, half of the $4n^2d$, and has to find the largest for it.
#
# To save more, a method must choose before it scores. One way is to sort (the Reformer; Kitaev et al., 2020): vectors that point the same way
# have a large product. `sorted_attention` gives each query and each key the number of the random direction, or its opposite, that it fits best, sorts
# both by these numbers, and lets each query look around among the sorted keys with `local_attention`.


# %%
def sorted_attention(q, k, v, directions: Tensor, r: int) -> Tensor:
    """Attention among vectors that point the same way, in O(r n) scores.

    q and k (..., n, d_k), v (..., n, d_v), directions (d_k, any number) -> (..., n,
    d_v). A vector's bucket is the direction, or its opposite, with which it has the
    largest product; queries and keys are sorted by bucket, and each sorted query
    attends to the sorted keys at most r away.
    """

    def by_bucket(x):
        fits = x @ directions
        return torch.cat([fits, -fits], dim=-1).argmax(dim=-1).argsort(stable=True)

    def in_order(x, order):
        return x.gather(-2, order[..., None].expand(*order.shape, x.shape[-1]))

    from_q, from_k = by_bucket(q), by_bucket(k)
    output, _ = local_attention(
        in_order(q, from_q), in_order(k, from_k), in_order(v, from_k), r=r
    )
    return in_order(output, from_q.argsort())


# %% [markdown]
# For a test, each of 4,096 queries is nearly twice the key of a partner somewhere in the sequence (so that its weight stands out), and wants the partner's value (always answering 0 has an error of 1). A query and its partner's key may get different directions in one sorting. So it is tried up to 16 times with new
# directions, and each query keeps the answer of the try whose keys fitted it best. Beside it, `local_attention` looks at as many neighbours:

# %% tags=["active-ipynb"]
# n, r = 4096, 32
# keys, values, partner = torch.randn(n, 64), torch.randn(n, 1), torch.randperm(n)
# queries = 2 * (keys[partner] + 0.25 * torch.randn(n, 64))  # nearly a partner's key
# right = values[partner]
# fit, answer = torch.full((n, 1), -torch.inf), torch.zeros(n, 1)
# tries, errors = [1, 2, 4, 8, 16], {"sorted by direction": [], "the nearest": []}
# for number in range(1, 17):
#     found = sorted_attention(
#         queries, keys, torch.cat([values, keys], dim=1), torch.randn(64, 32), r
#     )
#     fits = (queries * found[:, 1:]).sum(dim=1, keepdim=True)  # with the keys it blended
#     answer = torch.where(fits > fit, found[:, :1], answer)
#     fit = torch.maximum(fits, fit)
#     if number in tries:
#         near, _ = local_attention(queries, keys, values, r=r * number)
#         for name, output in zip(errors, (answer, near)):
#             errors[name].append((output - right).square().mean())
# full, _ = attention(queries, keys, values)
# all_scores = (full - right).square().mean()
# shares = [100 * 3 * r * number / n for number in tries]
# curves = errors | {"all scores": [all_scores] * 5}
# labels = ("% of all scores computed", "mean squared error")
# title = "sorting finds far partners with few scores"
# plotting.lines(shares, curves, *labels, title, "xy", markers=True)
# assert errors["sorted by direction"][3] < 0.3 < errors["the nearest"][3]
# print(
#     f"{shares[3]:.0f}% of the scores: error {errors['sorted by direction'][3]:.2f} "
#     f"sorted, {errors['the nearest'][3]:.2f} nearest; all: {all_scores:.3f}"
# )

# %% [markdown]
# The nearest keys help only where a partner happens to be near, for partners were drawn at random. With 16 tries (37.5% of the scores, and two thirds as many products with directions) sorting has an error of 0.02.
#
# ## Can one see what it does?
#
# Last, Section 4 hopes that self-attention is easier to interpret, as heads seem to take on tasks of their own. A weight shows where a head looks, but
# not whether the model needs it. [Notebook 19](19_visualization.ipynb) tests that: it silences heads and turns them to other words, and the
# translations follow some of them.

# %% [markdown]
# ## Beside Table 1
#
# What held: linear rows are linear, only recurrence waits, and the paths of attention and recurrence are exact. Footnotes:
#
# 1. *Self-attention's exponent*: by count below 2 while the projections weigh; in seconds 1.9, in one record 2.6 for reasons we do not know.
# 2. *The crossing with recurrence*: for a GRU at $n = d$ by count; for one sequence later in seconds.
# 3. *The convolution's path*: $\log_k n$ needs growing gaps and that many layers (causal windows).
# 4. *The restricted path*: about $2n/r$ with the paper's $r$, since a layer carries a signal half a window far. The O drops the 2.
# 5. *Memory*: not in the table; with 4 GiB it ended the full table of weights at 6,144 positions.
# 6. *Convolution beside recurrence*: $k$ times dearer, says Section 4 (not ours at $k = 3$, see above).

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** A layer is given as a matrix: `sees[i, j]` is True where output $i$ depends on input $j$. How many such layers does it take until the
# last position depends on the first?

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.complexity import check_layers_until
#
#
# def layers_until(sees):
#     """A boolean tensor (n, n) -> the number of layers."""
#     ...
#
#
# check_layers_until(layers_until)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def layers_until(sees):
#     reached = sees[-1]
#     layers = 1
#     while not reached[0]:
#         reached = sees[reached].any(dim=0)
#         layers += 1
#     return layers
# ```
#
# `reached` holds the positions on which the last one depends. With one position that all see and that sees all, two layers are enough.
# </details>
#
# **2.** A decoder writes $n$ positions one after the other. Keys and values of earlier ones are kept ([15](15_decoding.ipynb)), so each position is
# projected once and compared with itself and those before. How many FLOPs do the products of one self-attention layer take in all?

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.complexity import check_writing_flops
#
#
# def writing_flops(n, d):
#     """n positions, width d -> FLOPs of projections, scores and blends."""
#     ...
#
#
# check_writing_flops(writing_flops)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def writing_flops(n, d):
#     total = 0
#     for t in range(1, n + 1):
#         total += 8 * d**2
#         total += 4 * t * d
#     return total
# ```
#
# The pairs add up to $n(n+1)/2$: half of the full table; with a causal mask the other half is computed and thrown away.
# </details>
#
# **3.** Write attention of one head in which $i$ sees $j$ where $|i - j| \le r$, without a table of $n \times n$ scores (which the check cannot see).

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.complexity import check_nearby
#
#
# def nearby(q, k, v, r):
#     """q, k, v (n, d) -> the output (n, d); scores are divided by sqrt(d)."""
#     ...
#
#
# check_nearby(nearby)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def nearby(q, k, v, r):
#     outputs = []
#     for i in range(len(q)):
#         near = slice(max(0, i - r), i + r + 1)
#         scores = k[near] @ q[i] / math.sqrt(q.shape[-1])
#         outputs.append(scores.softmax(dim=0) @ v[near])
#     return torch.stack(outputs)
# ```
#
# Few scores, but $n$ small products one after the other; `local_attention` does them as one.
# </details>
#
# ## Next
#
# [10 Data](10_data.ipynb) brings sentences.
