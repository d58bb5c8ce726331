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
# Section 4 defends the new layer with a table of big O's: what a layer costs, how much of it must wait for something else, and how
# far a signal travels. Here each row of Table 1 becomes a layer that runs. We count, ask the gradient, and hold a clock and a
# scale to them. Most of the table holds. Some of it needs a footnote.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from transformer.attention import (
    MultiHeadAttention,
    scaled_dot_product,
    scaled_dot_product_attention,
)
from transformer.checks import check_local_attention
from transformer.convolution import GatedBlock
from transformer.fast.attention import kernel_attention
from transformer.recurrence import gru_step


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# import os
# from statistics import median
#
# from transformer import plotting
# from transformer.attention import padding_mask
# from transformer.convolution import dependence
# from transformer.experiments.records import read_rows
# from transformer.figures.growth import (
#     add_slopes,
#     growth,
#     mark_sizes,
#     print_exponents,
# )
# from transformer.measuring import measure, turns, work
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # one core: then time is work

# %% [markdown]
# ## What the table says
#
# A layer turns $n$ vectors of width $d$ into $n$ others. Table 1 asks three things of it, as **big O's**: $O(n^2 d)$ means at most
# some constant times $n^2 d$, once $n$ is large. It says how a price grows, and leaves the constant open.
#
# | layer | work | steps that must wait | longest path |
# |---|---|---|---|
# | self-attention | $n^2 d$ | $1$ | $1$ |
# | recurrent | $n d^2$ | $n$ | $n$ |
# | convolution, window $k$ | $k n d^2$ | $1$ | $\log_k n$ |
# | self-attention within $r$ | $r n d$ | $1$ | $n / r$ |
#
# The path is how many steps a signal takes from one end of the sequence to the other. Gradients go the same way back, and
# [notebook 01](01_recurrence.ipynb) showed what a long way does to them.

# %% [markdown]
# ## Attention that only looks around
#
# Three rows we have already: [04](04_attention.ipynb), [01](01_recurrence.ipynb), [02](02_convolution.ipynb). The last one is
# new. Each position sees only those at most $r$ away. The easy way is a mask over the full table of scores, but it computes
# all $n^2$ and throws most away. Instead: cut the sequence into blocks of $r$. Whatever a block's positions may see lies in the
# block itself, the one before and the one after. **Deviation: here $r$ counts one side**; the paper's window has $r$ positions in all.

# %%
def windows(x: torch.Tensor, r: int, causal: bool = False) -> torch.Tensor:
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
# Seven positions in blocks of three: each row holds the block in its middle and three neighbours on either side. Inside, a
# mask cuts the corners, so that exactly $|i - j| \le r$ remains. The rest is notebook 04's attention, over blocks in place of
# sentences. There are $n / r$ blocks with $r \cdot 3r$ scores each: $3 r n$ in all, and no loop.

# %%
def local_attention(q, k, v, mask=None, *, r: int, causal: bool = False) -> tuple:
    """Attention in which i sees j only where |i - j| <= r, in O(r n) (Section 4).

    And j <= i if causal. q and k (..., n, d_k), v (..., n, d_v); mask over keys,
    boolean, (..., 1, n) as of `padding_mask`. Returns the output (..., n, d_v) and None
    for the weights; a position that sees nothing gets zeros. Raises ValueError for
    r < 1, for lengths that differ, and for another kind of mask.
    """
    n = q.shape[-2]
    if mask is None:
        mask = torch.ones(1, n, dtype=torch.bool, device=q.device)
    check_local_attention(q, k, v, r, mask)
    r = min(r, n)
    blocks = F.pad(q, (0, 0, 0, -n % r)).unflatten(-2, (-1, r))  # (..., blocks, r, d_k)
    real = windows(mask.transpose(-2, -1), r, causal)
    real = real.transpose(-2, -1)  # (..., blocks, 1, width)
    i = torch.arange(r, device=q.device)[:, None]
    j = torch.arange(real.shape[-1], device=q.device) - r  # the first r lie before
    near = (j - i >= -r) & (j - i <= (0 if causal else r))
    output, _ = scaled_dot_product_attention(
        blocks, windows(k, r, causal), windows(v, r, causal), near & real
    )
    return output.flatten(-3, -2)[..., :n, :], None



# %% [markdown]
# Is it the same as the masked full table? In float64, with a length that $r$ does not divide, with padding in the second
# sentence, forwards and in all gradients:

# %% tags=["active-ipynb"]
# q, k, v = torch.randn(3, 2, 2, 23, 4, dtype=torch.float64).requires_grad_()
# tokens = torch.ones(2, 23).int()
# tokens[1, 21:] = 0
# real = padding_mask(tokens, pad_id=0)
# i = torch.arange(23)
# near = (i[:, None] - i).abs() <= 5
#
# ours, _ = local_attention(q, k, v, real, r=5)
# full, _ = scaled_dot_product_attention(q, k, v, near & real)
# pairs = [(ours, full)]
# our_gradients = torch.autograd.grad((ours**2).sum(), (q, k, v))
# full_gradients = torch.autograd.grad((full**2).sum(), (q, k, v))
# pairs += zip(our_gradients, full_gradients)
# differences = [(a - b).abs().max().item() for a, b in pairs]
# print("largest differences: output {:.0e}, gradients {:.0e} {:.0e} {:.0e}".format(
#     *differences))
# assert max(differences) < 1e-9

# %% [markdown]
# ## Every row a layer
#
# With projections around it, so that it is a layer like the others: the attention of [04](04_attention.ipynb), to which the function inside is handed in: the full
# table, torch's own kernel, or the blocks.

# %%
class SelfAttention(MultiHeadAttention):
    """Multi-head attention of a sequence with itself: x (B, n, d_model) -> the same."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x, x, x)


# %% [markdown]
# A convolution with gaps between its inputs (*dilated*) is the same convolution on every second position, every third, and so
# on. So we need no new layer: deal the positions out like cards, let the layer work on each hand, and put them back.

# %%
class Dilated(nn.Module):
    """A layer on every gap-th position, around a convolution a dilated convolution.

    x (B, n, d) is dealt out to (B * gap, n / gap, d) and put together again. Zeros fill
    up the last hands, as they do beyond a sentence's end.
    """

    def __init__(self, layer: nn.Module, gap: int):
        super().__init__()
        self.layer = layer
        self.gap = gap

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, n, d = x.shape
        gap = min(self.gap, n)  # with n hands or more, every position is alone
        dealt = F.pad(x, (0, 0, 0, -n % gap)).unflatten(1, (-1, gap))
        hands = dealt.transpose(1, 2)  # (B, gap, n / gap, d)
        y = self.layer(hands.flatten(0, 1)).unflatten(0, (B, gap))
        return y.transpose(1, 2).flatten(1, 2)[:, :n]


# %% tags=["active-ipynb"]
# block = GatedBlock(8, 3, causal=True)
# x = torch.randn(1, 20, 8)
# near = partial(local_attention, r=3)
# layers = {
#     "convolution, k = 3": block,
#     "dilated, gap 4": Dilated(block, 4),
#     "within r = 3": SelfAttention(8, 2, attend=near),
#     "within r = 3, causal": SelfAttention(8, 2, attend=partial(near, causal=True)),
# }
# ticks = [t if t % 5 == 0 else "" for t in range(20)]
# panels = []
# for name, layer in layers.items():
#     panels.append((name, dependence(layer, x) > 0, ticks, ticks))
# size = {"width": 2.9, "height": 2.9}
# plotting.heatmaps(panels, across=4, **size, labels=("input", "output"));

# %% [markdown]
# Yellow: this output depends on this input (its gradient is not zero). Now all kinds by
# name. "Fused" is torch's own kernel for attention, which makes it one operation. The convolution is notebook 02's gated block in its
# causal form, as recurrence is causal, too. The recurrence is torch's GRU, whose loop is compiled.

# %%
class Recurrent(nn.GRU):
    """Torch's GRU as a layer: x (B, n, d) -> its state at each position (B, n, d)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)[0]


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
        "self-attention": scaled_dot_product_attention,
        "self-attention, fused": kernel_attention,
        "restricted attention": partial(local_attention, r=r),
    }
    if kind in attends:
        return SelfAttention(d, h, attend=attends[kind])
    if kind == "recurrent":
        return Recurrent(d, d, batch_first=True)
    block = GatedBlock(d, k, causal=True)
    return block if kind == "convolution" else Dilated(block, k**depth)


# %% [markdown]
# ## Steps that must wait
#
# What can run at once, given enough processors? Everything that needs no other's result. Autograd remembers what was made of
# what, so it can be counted: the longest chain of operations in which each needs the one before. (An operation counts as one,
# even if a sum of $n$ numbers takes a machine $\log n$ rounds. The paper counts so, too.)

# %%
def longest_chain(y: torch.Tensor) -> int:
    """Operations on the longest chain from the inputs to y: each needs the one before.

    y must have a gradient.
    """
    length = {None: 0}
    stack = [y.grad_fn]
    while stack:
        node = stack[-1]
        before = [source for source, _ in node.next_functions]
        waiting = [source for source in before if source not in length]
        if waiting:
            stack += waiting
        else:
            longest = max((length[source] for source in before), default=0)
            length[stack.pop()] = 1 + longest
    return length[y.grad_fn]


# %% tags=["active-ipynb"]
# sizes = [16, 32, 64, 128, 256, 512]
# steps = {}
# for kind in KINDS:
#     layer = make_layer(kind, 16, r=4, depth=2)
#     steps[kind] = [longest_chain(layer(torch.randn(1, n, 16))) for n in sizes]
# growth(sizes, steps, "longest chain of operations", markers=True);

# %% tags=["active-ipynb"]
# first, second, *_ = steps["recurrent"]
# a_step = (second - first) // 16  # sixteen positions more
# for kind, chains in steps.items():
#     slope = a_step if kind == "recurrent" else 0
#     assert chains == [chains[0] + slope * (n - 16) for n in sizes]
# print({kind: chains[-1] for kind, chains in steps.items()}, "at n = 512;")
# print(f"a position more costs the GRU {a_step} operations")

# %% [markdown]
# Five flat lines (fused attention and dilated convolution lie on each other), and one with slope 1: **$O(1)$ and $O(n)$, as in the table.** How long the flat ones are is a matter of the program (see what
# fusing does to attention's). That the GRU's grows is not: its next step needs the last one's result inside a $\tanh$ and a $\sigma$. (A
# recurrence without those, such as $h = Wh + x$ of notebook 01, can be regrouped into about $\log n$ rounds.)

# %% [markdown]
# ## The longest path
#
# Now stack layers and ask the gradient after each: does the last output depend on the first input yet? Without a path the
# derivative is exactly zero, with one it is not.

# %%
def path_length(step: Callable, x: torch.Tensor) -> int:
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
        gradient, = torch.autograd.grad(seen, x, retain_graph=True)
        if gradient[0, 0].any():
            return i + 1
    n = x.shape[1]
    raise ValueError(f"no path from the first position to the last in {n} steps")


# %%
def stacked(kind: str, d: int, **sizes: int) -> Callable:
    """A `path_length` step that puts one more layer of a kind on top, at float64."""
    return lambda i, x, y: make_layer(kind, d, depth=i, **sizes).double()(y)


# %% [markdown]
# One recurrent *layer* already joins both ends, but inside it a signal walks. To count that walk in the same way, take one
# **round**: all positions at once make one GRU step (notebook 01), each from the state that its left neighbour had a round ago.

# %%
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
# gru = Recurrent(8, 8, batch_first=True).double()
# x = torch.randn(1, 40, 8, dtype=torch.float64)
# step = recurrent_round(gru)
# h = x
# right = []
# for i in range(40):
#     h = step(i, x, h)
#     differences = (h - gru(x)).abs().amax(dim=-1)
#     right.append(int((differences < 1e-12).sum()))
# assert right == list(range(1, 41))  # after round i, the first i states are torch's
# print("states that are right after each round:", *right[:5], "...", right[-1])

# %% [markdown]
# Each round makes one more state right: after $n$ rounds, and not before, it is the layer. Now everything by the same measure,
# with $k = 3$ and $r = 8$:

# %% tags=["active-ipynb"]
# sizes = [5, 9, 17, 33, 65, 129]
# paths = {}
# for kind in KINDS:
#     step = stacked(kind, 8, h=2, r=8)
#     if kind == "recurrent":
#         step = recurrent_round(gru)
#     inputs = [torch.randn(1, n, 8, dtype=torch.float64) for n in sizes]
#     paths[kind] = [path_length(step, x) for x in inputs]
#     print(f"{kind:22}{paths[kind]}")
# growth(sizes, paths, "steps from first to last", markers=True);

# %% tags=["active-ipynb"]
# formulas = {
#     "self-attention": lambda n: 1,
#     "self-attention, fused": lambda n: 1,
#     "recurrent": lambda n: n,
#     "convolution": lambda n: math.ceil((n - 1) / 2),
#     "dilated convolution": lambda n: math.ceil(math.log(n, 3)),
#     "restricted attention": lambda n: math.ceil((n - 1) / 8),
# }
# for kind, formula in formulas.items():
#     assert paths[kind] == [formula(n) for n in sizes]

# %% [markdown]
# Self-attention: one step, always. Recurrence: $n$. Within $r$: $(n-1)/r$, rounded up. **For the convolution the table is
# kind:** $\log_k n$ is only true of windows with growing gaps $1, k, k^2, \dots$. Plain windows reach $k-1$ further back
# with each layer, and take $(n-1)/(k-1)$ layers (centred ones twice as many). The paper's text says so, its table does not. And to have a short path one pays for
# that many layers, while the table's first column prices a single one.

# %% [markdown]
# ## Work, counted
#
# In a matrix product of $(a \times b)$ with $(b \times c)$ there are $abc$ multiplications and as many additions, $2abc$
# floating-point operations (FLOPs). Other work is small beside it. With its projections, self-attention is
#
# $$\underbrace{4 \cdot 2 n d^2}_{W_Q, W_K, W_V, W_O} + \underbrace{2 \cdot 2 n^2 d}_{QK^\top \text{ and } AV}$$
#
# The table counts only the second part. A GRU has six matrices: $12 n d^2$. The gated block makes $2d$ numbers from $kd$: $4 k n d^2$.

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
# from torch.utils.flop_counter import FlopCounterMode
#
# for kind in [kind for kind in KINDS if "fused" not in kind]:
#     with FlopCounterMode(display=False) as counter, torch.no_grad():
#         make_layer(kind, 64)(torch.randn(1, 200, 64))
#     formula = layer_flops(kind, 200, 64)
#     counted = counter.get_total_flops()
#     print(f"{kind:22} formula {formula:11,}   torch {counted:11,}")
#     assert formula == counted

# %% [markdown]
# The section's argument about cost is that $n$ is usually smaller than $d$, so self-attention is cheaper than recurrence. Where do they
# cross? Set $8nd^2 + 4n^2 d = 12nd^2$: **at $n = d$, exactly.** A coincidence of constants (an LSTM has eight matrices, and
# crosses at $2d$), but a good rule.

# %%
def crossing(sizes: list[int], a: list[float], b: list[float]) -> float | None:
    """Where curve a comes to lie above curve b for good, or None.

    The n between two sizes, on straight lines in log-log.
    """
    gap = [math.log(y / z) for y, z in zip(a, b)]
    i = max((i for i in range(len(gap)) if gap[i] <= 0), default=None)
    if i is None or i + 1 == len(gap):
        return None
    part = gap[i] / (gap[i] - gap[i + 1])
    return sizes[i] * (sizes[i + 1] / sizes[i]) ** part


# %% tags=["active-ipynb"]
# sizes = [64 * 2**i for i in range(8)]  # 64 to 8,192
# for d in (64, 1024, 512):
#     curves = {}
#     for kind in KINDS:
#         curves[kind] = [layer_flops(kind, n, d) / n / 1e6 for n in sizes]
#     meet = crossing(sizes, curves["self-attention"], curves["recurrent"])
#     print(f"d = {d:4}: the recurrent layer has less work from n = {meet:.0f} on")
#     assert abs(meet - d) < 0.01 * d
# title = f"d = {d}, k = 3, r = 32; full attention crosses at n = {meet:.0f}"
# ax = growth(sizes, curves, "million FLOPs a position", title)
# ax.set_yticks([2, 3, 4, 6, 10, 20])
# mark_sizes(ax, [meet])
#
# price = dict(zip(sizes, curves["self-attention"]))
# print(f"self-attention, a position: {price[512] / price[64] - 1:.0%} more at n = 512 "
#       f"than at 64, {price[8192] / price[512]:.1f} times as much at 8,192")

# %% [markdown]
# Recurrence and convolutions lie on one line ($k = 3$ makes $12nd^2$, too), flat: each position costs the same. Both full
# attentions are one line as well, and meet it at $n = d$. Their price rises slowly while the projections dominate. At $n = 2d$ both parts are equal, and beyond it
# the square takes over. A sentence has 30 tokens, and $d$ was 512: the authors were far to the left.
#
# At $n = 64$ restricted attention lies *above* the full one: its blocks compute $3r = 96$ scores a position, more than $n$.

# %% [markdown]
# ## Time and memory, measured
#
# FLOPs are not seconds. Each layer now works on one sequence, forward alone and then as in training, with the
# backward pass. `measure` counts the memory of all tensors that a layer holds at once, and takes the median of the seconds of
# many turns. The clock is that of one thread; others who share the core, its cache or its memory still make it slower.
#
# First here and now, to $n = 1{,}024$, with narrow layers, $d = 128$:

# %% tags=["active-ipynb"]
# sizes = [64, 128, 256, 512, 1024]
# layers = {kind: make_layer(kind, 128, depth=3) for kind in KINDS}
# live = measure(layers, sizes, 128)
# for ax, mode in zip(plotting.new_axes(5.2, 4, columns=2), live):
#     curves = {}
#     for kind in KINDS:
#         curves[kind] = [1000 * seconds for seconds in live[mode][kind]["seconds"]]
#     title = f"{mode}, measured here, d = 128"
#     growth(sizes, curves, "milliseconds", title, ax=ax, markers=True)

# %% [markdown]
# On logarithmic axes a power law is a straight line, and its exponent the slope. We fit it through the larger half of the sizes:

# %%
def exponent(sizes: list[int], values: list[float]) -> float:
    """p of the power law values ~ sizes^p that fits the larger half best.

    By least squares of the logarithms.
    """
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(values[half:]), 1)[0])


# %%
def exponents(kind: str, sizes: list[int], d: int, forward, training) -> list[float]:
    """Exponents of n of one kind of layer of width d, of four curves.

    Its FLOPs, measured seconds forward, seconds with backward, bytes while training.
    """
    flops = [layer_flops(kind, n, d) for n in sizes]
    seconds = [forward[kind]["seconds"], training[kind]["seconds"]]
    curves = [flops, *seconds, training[kind]["bytes"]]
    return [exponent(sizes, curve) for curve in curves]


# %% tags=["active-ipynb"]
# law = [5 * n**1.7 for n in sizes]
# assert abs(exponent(sizes, law) - 1.7) < 1e-9
# fits = {kind: exponents(kind, sizes, 128, **live) for kind in KINDS}
# print_exponents(fits, sizes)
# assert fits["self-attention"][3] > 1.5 > 1.1 > fits["restricted attention"][3]

# %% [markdown]
# Short sequences and thin layers are not yet where the law holds. The convolutions stay below 1: some of their time is the same at every
# $n$, such as starting their few operations. The GRU starts as many for each position, so it should be at 1. What it and restricted attention
# miss of that, either way, may be the noise of one short run. The plain
# self-attention is steeper than its FLOPs; a cell below shows a part of the reason.
#
# So to $n = 8{,}192$, with the paper's width $d = 512$. That takes some minutes and 8 GB, so it is a command,
# `python -m transformer.experiments.complexity` (with `--device cuda` where there is a GPU), and its result is a file:

# %% tags=["active-ipynb"]
# rows = read_rows("complexity")
# sizes = sorted({row["n"] for row in rows})
# d = rows[0]["d"]
#
#
# def curves_of(mode):
#     curves = {kind: {"seconds": [], "bytes": []} for kind in KINDS}
#     for row in rows:
#         if row["mode"] == mode:
#             for what, values in curves[row["layer"]].items():
#                 values.append(row[what])
#     return curves
#
#
# forward = curves_of("forward")
# training = curves_of("training")
# print(f"{rows[0]['hardware']}; {rows[0]['minutes']:.0f} minutes")

# %% tags=["active-ipynb"]
# mebibytes = {}
# for kind in KINDS:
#     mebibytes[kind] = [size / 2**20 for size in training[kind]["bytes"]]
# panels = [
#     ("time, forward", "seconds", {kind: forward[kind]["seconds"] for kind in KINDS}),
#     ("time, training", "seconds", {kind: training[kind]["seconds"] for kind in KINDS}),
#     ("memory, training", "MiB", mebibytes),
# ]
# for ax, panel in zip(plotting.new_axes(4.4, 4, columns=3), panels):
#     title, unit, curves = panel
#     growth(sizes, curves, unit, f"{title}, d = {d}", ax=ax)
#     add_slopes(ax, sizes, curves)

# %% tags=["active-ipynb"]
# fits = {kind: exponents(kind, sizes, d, forward, training) for kind in KINDS}
# print_exponents(fits, sizes)
# for kind, (flops, seconds, *_) in fits.items():
#     if "self" not in kind:
#         assert abs(flops - 1) < 0.01
#         assert abs(seconds - 1) < 0.25

# %% [markdown]
# **Where the exponents disagree with the table, and why.** By count, self-attention is at 1.72, not 2: the
# projections, which the table leaves out, are linear in $n$ and still half of the work at $n = 2d$. The fused kernel stays near the count.
# Written out, attention is steeper than that. Where does its time go? The system keeps two accounts: seconds in which the program itself computes,
# and seconds in which the system works for it, which here means finding fresh memory and filling it with zeros.

# %% tags=["active-ipynb"]
# for kind in KINDS[:2]:
#     layer = make_layer(kind, 512)
#     for n in (512, 1024, 2048, 4096):
#         x = torch.randn(1, n, 512)
#         times = 4096 // n
#         before = os.times()
#         for _ in range(times):
#             work(layer, x)
#         after = os.times()
#         pairs = times * n**2 / 1e9  # for nanoseconds
#         own = (after.user - before.user) / pairs
#         system = (after.system - before.system) / pairs
#         print(f"{kind:22} n = {n:5,}: nanoseconds a pair of positions "
#               f"{own:4.0f} itself, {system:4.0f} the system")

# %% [markdown]
# Per pair, the program's own time does not grow, and by the FLOPs it should not. **The system's time does, for the plain layer only**: it jumps between $n = 512$ and 1,024, and hardly grows after that. This lifts the curve where large tables begin. It does not explain the
# record's last doubling, from 4,096 to 8,192, where forward takes ten times as long and a square gives four: this cell stops before it, and we have not taken it apart.
# Each of its tables of weights is new memory, and large blocks are given back after use and fetched afresh for the next table. How dear that
# is depends on the machine. In the table of exponents the other rows are near 1, as they should be.

# %% [markdown]
# **And Table 1 counts operations, not memory.** At $n = 8{,}192$ the eight heads' weights take 2 GiB together, and several such tables are needed at once. The
# fused kernel never holds one: its memory is linear. (It does the same FLOPs forward; backward it computes the table again, one product more.) For years it was memory that kept texts short.

# %% [markdown]
# ## Where the clock sees the crossing
#
# By FLOPs, self-attention and recurrence cross at $n = d$. By the clock?

# %% tags=["active-ipynb"]
# kinds = ("self-attention", "self-attention, fused", "recurrent")
# counted = {}
# for kind in kinds:
#     counted[kind] = [layer_flops(kind, n, d) / 1e9 for n in sizes]
# panels = [("counted", counted)]
# for mode, measured in (("forward", forward), ("training", training)):
#     seconds = {kind: measured[kind]["seconds"] for kind in kinds}
#     panels.append((f"measured, {mode}", seconds))
# for ax, panel in zip(plotting.new_axes(4.4, 3.4, columns=3), panels):
#     title, curves = panel
#     growth(sizes, curves, "GFLOPs" if title == "counted" else "seconds", title, ax=ax)
#     full, fused, recurrent = (curves[kind] for kind in kinds)
#     meet = crossing(sizes, full, recurrent)
#     meet_fused = crossing(sizes, fused, recurrent)
#     mark_sizes(ax, [meet, meet_fused])
#     print(f"{title:18} recurrence is cheaper from n = {meet:5,.0f} on, "
#           f"from {meet_fused:5,.0f} on where attention is fused")

# %% [markdown]
# At $n = d$ by count; by the clock later (the dotted lines), later still in training, and latest with the fused kernel. The two layers
# turn FLOPs into seconds at different rates. That leads to the next question.

# %% [markdown] tags=["question-14"]
# ## Why can't a recurrent network use the GPU as well?
#
# A processor is fast when it has much to do at once: a large matrix product reads each weight once and uses it for
# all positions. Self-attention multiplies $W_Q$ with all $n$ vectors in one go. The recurrent layer has only one state to multiply $U$
# with, then has to wait for the next, and reads all of $U$ again. Here is one core at $n = d$, where both have the same work:

# %% tags=["active-ipynb"]
# at = sizes.index(d)
# for kind in kinds:
#     gflops = layer_flops(kind, d, d) / 1e9
#     seconds = forward[kind]["seconds"][at]
#     chain = longest_chain(make_layer(kind, d)(torch.randn(1, d, d)))
#     print(f"{kind:22}{gflops:5.2f} GFLOPs in {1000 * seconds:3.0f} ms: "
#           f"{gflops / seconds:2.0f} GFLOPs a second; "
#           f"{chain:5,} operations one after the other")

# %% [markdown]
# The same work, not the same time. And a core should be the mild case. Of a step's $6d^2$ multiplications half only need $x$, and are done
# beforehand for all positions. The other half, 786,432 at $d = 512$, can run at once, enough to fill a GPU. But they need
# as many weights, all read for a *single* vector. And the next step cannot start before: a chain of ten operations here, $n$ times, one after the other.
#
# How much of a step has nothing to do with work? A GRU that is *one* number wide has nothing to compute. It takes its steps all the same:

# %% tags=["active-ipynb"]
# def median_seconds(kind, d, seconds):
#     x = torch.randn(1, 1024, d)
#     return median(turns({kind: make_layer(kind, d)}, x, seconds=seconds)[kind])
#
#
# thin = 1000 * median_seconds("recurrent", 1, seconds=0.2)
# wide = 1000 * median_seconds("self-attention", 256, seconds=0.5)
# more = layer_flops("self-attention", 1024, 256) / layer_flops("recurrent", 1024, 1)
# print(f"n = 1,024: a GRU of width 1 needs {thin:.0f} ms, a whole self-attention "
#       f"of width 256 {wide:.0f} ms, for {more:,.0f} times the FLOPs")

# %% [markdown]
# A faster machine computes faster, but it does not *start* the small operations of a step much faster. There are two ways out. One is to have no steps. The other is a
# batch: many sequences take each step together, and every weight that is read serves them all.

# %% tags=["active-ipynb"]
# layers = {kind: make_layer(kind, 512) for kind in kinds}
# batches = (1, 4, 16, 64)
# speed = {kind: [] for kind in kinds}
# for B in batches:
#     took = turns(layers, torch.randn(B, 32, 512), seconds=0.3)
#     for kind in kinds:
#         speed[kind].append(B * 32 / median(took[kind]))
# labels = ("sequences in the batch", "positions a second, forward", "d = 512, n = 32")
# plotting.lines(batches, speed, *labels, log="xy", markers=True)
# for kind, rates in speed.items():
#     print(f"{kind}: {rates[0]:,.0f} alone, {rates[-1] / rates[0]:.1f} times as many "
#           f"in a batch of {batches[-1]}")
# assert speed["recurrent"][-1] > 1.5 * speed["recurrent"][0]

# %% [markdown]
# So recurrent networks live on large batches: the recurrent line climbs most. But long sequences fill the memory, and then the batch must be small: the
# paper's complaint in Section 1. Within each sequence, $n$ steps remain $n$ steps. (All this is one core. On a GPU the gap should be wider;
# `python -m transformer.experiments.complexity --device cuda` measures it, we have not.)

# %% [markdown] tags=["question-26"]
# ## Why does BERT stop at 512, and what does O(n²) cost in practice?
#
# For two reasons. Its positions are learned, a table (notebook 07) of 512 rows; token 513 has no position. And it was not made longer
# because of the cost: BERT (Devlin et al., 2019) was trained on pieces of 128 tokens for nine tenths of the steps, and on 512 only for the last tenth.

# %% [markdown]
# What does length cost? Below, time per token while training one layer, and the attention weights that a model of BERT's size keeps for the
# backward pass: one number of four bytes for each of 12 layers, 12 heads and $n^2$ pairs, in each of 32 sequences.

# %% tags=["active-ipynb"]
# print("       n   microseconds a token: full            fused   within r = 32"
#       "      weights kept, batch of 32")
# before = None
# for i, n in enumerate(sizes):
#     full, fused, near = (
#         1e6 * training[kind]["seconds"][i] / n
#         for kind in (*KINDS[:2], "restricted attention")
#     )
#     more = f"(x {full / before:.2f})" if before else ""
#     kept = 32 * 12 * 12 * n**2 * 4 / 2**30
#     print(f"{n:8,}{full:27.0f} {more:8}{fused:8.0f}{near:16.0f}{kept:21.1f} GiB")
#     before = full

# %% [markdown]
# While $n$ is small a token costs about the same at any length, because projections dominate. Then each doubling of $n$
# multiplies the price of *every* token; in brackets, by how much. A pure square would give 2; fresh memory may add to it (above it was looked at forward only). The last factor is unexplained.
# But time only grows; **memory ends.** At 512 the attention weights of a batch fit on one GPU of that time, at 2,048 on none.
#
# How far does one GPU's memory go? We have not tried; we continue the last measurement, by the bytes of a pair of positions for the full table, and by
# those of a position for the fused kernel:

# %%
def largest_n(n: int, value: float, limit: float, power: float) -> float:
    """Where a value that was met at n reaches a limit, if it grows on like n^power."""
    return n * (limit / value) ** (1 / power)


# %% tags=["active-ipynb"]
# for gibibytes in (16, 80):
#     print(f"{gibibytes} GiB, extrapolated: one layer of width {d} trains on")
#     for kind, power in zip(KINDS[:2], (2, 1)):
#         bytes_now = training[kind]["bytes"][-1]
#         reach = largest_n(sizes[-1], bytes_now, gibibytes * 2**30, power)
#         print(f"    {float(f'{reach:.2g}'):9,.0f} positions, {kind}")  # two figures

# %% [markdown]
# Five times the memory, hardly more than twice the length: that is what a square means. The fused kernel (FlashAttention; Dao et al., 2022)
# takes the square out of the memory. It computes the table piece by piece, and again in the backward pass. So today's models read 100,000
# tokens and more, and pay in time.

# %% [markdown] tags=["question-02"]
# ## Is attention just smart brute force? What if we prune?
#
# Brute force, yes: all $n^2$ pairs are compared, with no idea beforehand which of them matter, and the blue curves above are the bill. Smart, because a comparison is
# only an inner product, and all of them together are one matrix product. But are they all needed? Let each query keep only
# `keep` of its weights, and share them out anew: the largest, those of the nearest positions, or any.

# %%
def pruned_attention(q, k, v, mask=None, keep: int = 4, by: str = "weight"):
    """`scaled_dot_product_attention` in which each query keeps `keep` keys.

    Their weights are made to sum to 1. by: "weight" keeps the largest weights,
    "distance" the nearest keys (smallest |i - j|, of two the earlier), "chance" any.
    ValueError for another, or for less than one key.
    """
    if keep < 1 or by not in ("weight", "distance", "chance"):
        raise ValueError(
            f"keep must be at least 1, not {keep}, "
            f"and by 'weight', 'distance' or 'chance', not {by!r}"
        )
    order = scaled_dot_product(q, k)
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
    return scaled_dot_product_attention(q, k, v, kept if mask is None else kept & mask)


# %% [markdown]
# The bundled model (notebook 16 says how it was trained; notebook 10 has the corpus) reads 100 test sentences and scores their translations.
# First: how many of its attention weights are near zero?

# %% tags=["active-ipynb"]
# from torch.nn.utils.rnn import pad_sequence
#
# from transformer import load
# from transformer.attention import record_attention
# from transformer.corpora import read_corpus
#
# model, tokenizer = load()
# sources, targets = [], []
# for english, german in read_corpus("bundled", "test")[:100]:
#     sources.append(torch.tensor([*tokenizer.encode(english), 2]))
#     targets.append(torch.tensor([1, *tokenizer.encode(german), 2]))
# source = pad_sequence(sources, batch_first=True)
# target = pad_sequence(targets, batch_first=True)

# %% tags=["active-ipynb"]
# with torch.no_grad(), record_attention(model) as record:
#     for words, answer in zip(sources, targets):  # one at a time: no padding
#         model(words[None], answer[None, :-1])
# seen = []
# for name, calls in record.items():
#     for weights in calls:
#         causal = name.startswith("decoder") and name.endswith("self_attention")
#         could = torch.ones(weights.shape, dtype=torch.bool)
#         seen.append(weights[could.tril() if causal else could])
# weights = torch.cat(seen)
# tokens = sum(map(len, sources)) / len(sources)
# low = (weights < 0.01).float().mean()
# lower = (weights < 0.001).float().mean()
# print(f"{low:.0%} of {len(weights):,} weights are below 0.01, {lower:.0%} below 0.001; "
#       f"shared out evenly over the {tokens:.0f} tokens of a source "
#       f"each would be {1 / tokens:.2f}")

# %% [markdown]
# Many are, but far from all. Now prune all attention: in the encoder, in the decoder and between them. (There "nearest" means the same place in the other
# sentence.)

# %% tags=["active-ipynb"]
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
# keeps = [1, 2, 4, 8, 16]
# rules = {"the largest": "weight", "the nearest": "distance", "at random": "chance"}
# pruned = {}
# for name, by in rules.items():
#     pruned[name] = []
#     for keep in keeps:
#         pruned[name].append(loss(partial(pruned_attention, keep=keep, by=by)))
# full = loss(scaled_dot_product_attention)
# curves = {**pruned, "all kept": [full] * len(keeps)}
# labels = ("weights kept for each query", "loss per token (nats)")
# plotting.lines(keeps, curves, *labels, log="xy", markers=True);

# %% tags=["active-ipynb"]
# four = {name: values[keeps.index(4)] for name, values in pruned.items()}
# print(f"loss {full:.4f} with all; with four:")
# for name, value in four.items():
#     print(f"    {value:.4f} ({name})")
# assert four["the largest"] - full < 0.2 * full
# assert full < min(four["the nearest"], four["at random"])

# %% [markdown]
# On sentences this short, four weights out of a dozen do nearly the work of all; the nearest four, or four at random, do not. (Long texts may
# be different; we have none here.) But to know which four are the largest, all scores had to be computed: **pruning afterwards saves nothing.**
#
# To save, one must know beforehand where not to look. Restricted attention bets on the nearest. This model never learned to live with that, and
# loses much; one trained so from the start could pass things on from layer to layer, and the long way would be back.

# %% [markdown]
# ## Beside Table 1
#
# Everything in one table: the exponent of $n$ in the paper, in counted FLOPs, and by the clock (forward, training); the longest chain
# of operations; and the path, in the paper's formula and as the gradient has it.

# %% tags=["active-ipynb"]
# n = 129
# logarithm = f"log_3 n = {math.log(n, 3):.1f}"
# said = {
#     "self-attention": ("n^2", "1"),
#     "recurrent": ("n", f"n = {n}"),
#     "convolution": ("n", logarithm),
#     "dilated convolution": ("n", logarithm),
#     "restricted attention": ("n", f"n / window of 17 = {n / 17:.1f}"),
# }
# print(f"{'':22}  paper  FLOPs  forward  training  memory   chain at n = 16, 512"
#       "   path at n = 129: paper, gradient")
# for kind, (work_said, path_said) in said.items():
#     flops, seconds, with_backward, memory = fits[kind]
#     chain = f"{steps[kind][0]}, {steps[kind][-1]}"
#     print(f"{kind:22}{work_said:>7}{flops:7.2f}{seconds:9.2f}{with_backward:10.2f}"
#           f"{memory:8.2f}{chain:>22}{path_said:>26},{paths[kind][-1]:4}")

# %% [markdown]
# **What disagreed, and why.**
#
# 1. *Self-attention's exponent*: below 2 by count, as the projections, $8nd^2$, are not in the table; above 2 by the clock: partly fresh memory, and a last doubling that we cannot explain.
# 2. *The crossing*: at $n = d$ by count, later by the clock (one sequence at a time, on one core; a batch helps the GRU more). Steps that wait cost more than their FLOPs.
# 3. *The convolution's path*: $\log_k n$ needs gaps, and that many layers. Plain layers take $(n-1)/(k-1)$.
# 4. *The restricted path*: about $2n/r$ with the paper's $r$, the whole window (17 positions here, 8 to a side). A layer carries a signal by half a window at most. Big O
#    drops the 2.

# %% [markdown]
# 5. *Memory*: not in the table. By the reckoning above it ends first (computed, not tried). A kernel that never holds the table takes the square out of it without changing a single entry.
# 6. *Convolution against recurrence*: Section 4 calls it generally dearer, $k$ times, which leaves out constants. Our block has $2k$ matrices, a GRU six: equal work at $k = 3$, and less time, as nothing waits.

# %% [markdown]
# **What held:** linear work where the table says linear, the waiting, and all other paths.

# %% [markdown]
# ## Checks
#
# **A dilated convolution equals torch's own**, with the same weights, for a length that the gap does not divide:

# %% tags=["active-ipynb"]
# block = GatedBlock(6, 3, causal=True)
# x = torch.randn(2, 29, 6)
# conv = block.convolution.conv
# padded = F.pad(x.transpose(1, 2), (8, 0))
# theirs = F.conv1d(padded, conv.weight, conv.bias, dilation=4).transpose(1, 2)
# theirs = (x + F.glu(theirs)) * math.sqrt(0.5)
# assert torch.allclose(Dilated(block, 4)(x), theirs, atol=1e-5)

# %% [markdown]
# **All three self-attentions are one layer** where the neighbourhood is the whole sequence:

# %% tags=["active-ipynb"]
# x = torch.randn(2, 30, 16)
# full = make_layer("self-attention", 16, h=2)
# for kind in ("self-attention, fused", "restricted attention"):
#     layer = make_layer(kind, 16, h=2, r=30)
#     layer.load_state_dict(full.state_dict())
#     assert torch.allclose(layer(x), full(x), atol=1e-5)

# %% [markdown]
# **Who sees nothing gets zeros**, and no NaN: position 20, when everything within its reach is padding.

# %% tags=["active-ipynb"]
# tokens = (torch.arange(40) < 15).int()[None]  # 15 words, 25 of padding
# q = torch.randn(1, 2, 40, 4, requires_grad=True)
# output, _ = local_attention(q, q, q, padding_mask(tokens, pad_id=0), r=3)
# gradient, = torch.autograd.grad(output.sum(), q)
# assert output[:, :, 18:].eq(0).all()
# assert output[:, :, :18].ne(0).all()
# assert gradient.isfinite().all()

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** How many layers does a signal need from the first of 200 positions to the last, with restricted attention, $r = 8$? And with dilated
# convolutions, $k = 3$ and gaps $1, 3, 9, \dots$?

# %% tags=["active-ipynb"]
# your_layers = ..., ...
# if your_layers[0] is not ...:
#     x = torch.randn(1, 200, 8, dtype=torch.float64)
#     restricted = path_length(stacked("restricted attention", 8, h=2, r=8), x)
#     dilated = path_length(stacked("dilated convolution", 8), x)
#     assert your_layers == (restricted, dilated)

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_layers = 25, 5`: the way is 199 positions; $199 / 8$ rounded up is 25, and $3^5 = 243$ is the first power of 3 that is at least 200.
# </details>
#
# **2.** With $d = 512$, at which $n$ does self-attention do as many FLOPs as an LSTM, with eight matrices? And as a plain tanh network, with
# two? (`None` if nowhere.)

# %% tags=["active-ipynb"]
# lstm_n = ...
# tanh_n = ...
# if lstm_n is not ...:
#     for answer, matrices in ((lstm_n, 8), (tanh_n, 2)):
#         equal = [
#             n for n in range(1, 5000)
#             if layer_flops("self-attention", n, 512) == 2 * matrices * n * 512**2
#         ]
#         assert answer == (equal[0] if equal else None)

# %% [markdown]
# <details><summary>Solution</summary>
#
# `lstm_n, tanh_n = 1024, None`: $8nd^2 + 4n^2d = 16nd^2$ at $n = 2d$. The tanh network has $4nd^2$, less than attention's projections
# alone. The table leaves such constants out, and here they decide.
# </details>

# %% [markdown]
# ## Next
#
# Why it should work is settled; now it has to. [10 Data](10_data.ipynb) brings real sentences. In Colab the next
# notebook imports this module from the installed package; to try changes of your own, clone the repository and install it
# with `pip install -e .`.
