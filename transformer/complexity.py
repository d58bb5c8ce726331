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
import os
import time
import weakref
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from transformer.attention import MultiHeadAttention, scaled_dot_product, scaled_dot_product_attention
from transformer.convolution import GatedBlock
from transformer.recurrence import gru_step


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from importlib.util import find_spec
# from pathlib import Path
#
# from transformer import plotting
# from transformer.attention import padding_mask
# from transformer.convolution import dependence
# from transformer.experiments.records import read_rows
#
# torch.manual_seed(0)
# torch.set_num_threads(1)            # one core: then time is work
# package = Path(find_spec("transformer").origin).parent
# data = next(folder for folder in (package.parent / "data", package / "_bundled") if (folder / "models").is_dir())

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
def windows(x, r, causal=False):
    """What each block of r positions can see: x (..., n, d) -> (..., blocks, width, d), zeros beyond the ends.

    A block sees itself, the r positions before it and, unless causal, the r after it: width is 3r or 2r.
    """
    n = x.shape[-2]
    end = -n % r + (0 if causal else r)  # fills up the last block, and a block after it
    return F.pad(x, (0, 0, r, end)).unfold(-2, 2 * r if causal else 3 * r, r).transpose(-2, -1)


# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# print(windows(torch.arange(1, 8)[:, None], r=3)[..., 0])

# %% [markdown]
# Seven positions in blocks of three: each row holds the block in its middle and three neighbours on either side. Inside, a
# mask cuts the corners, so that exactly $|i - j| \le r$ remains. The rest is notebook 04's attention, over blocks in place of
# sentences. There are $n / r$ blocks with $r \cdot 3r$ scores each: $3 r n$ in all, and no loop.

# %%
def local_attention(q, k, v, r, causal=False, mask=None):
    """Attention in which position i sees j only where |i - j| <= r (and j <= i if causal), in O(r n) (Section 4).

    q and k (..., n, d_k), v (..., n, d_v); mask over keys, boolean, (..., 1, n) as of `padding_mask`. Returns the output
    (..., n, d_v); a position that sees nothing gets zeros. Raises ValueError for r < 1, for lengths that differ, and for
    another kind of mask.
    """
    n = q.shape[-2]
    if r < 1 or k.shape[-2] != n or v.shape[-2] != n:
        raise ValueError(f"r must be at least 1 and q, k, v equally long: r = {r}, {n}, {k.shape[-2]} and {v.shape[-2]} positions")
    mask = torch.ones(1, n, dtype=torch.bool, device=q.device) if mask is None else mask
    if mask.dtype != torch.bool or mask.shape[-2:] != (1, n):
        raise ValueError(f"the mask must be boolean, (..., 1, {n}): the same keys for all queries; not {mask.dtype}, {tuple(mask.shape)}")
    r = min(r, n)
    blocks = F.pad(q, (0, 0, 0, -n % r)).unflatten(-2, (-1, r))  # (..., blocks, r, d_k)
    real = windows(mask.transpose(-2, -1), r, causal).transpose(-2, -1)  # (..., blocks, 1, width)
    ahead = torch.arange(real.shape[-1], device=q.device) - torch.arange(r, device=q.device)[:, None]  # j - i + r
    near = (ahead >= 0) & (ahead <= (r if causal else 2 * r))
    output, _ = scaled_dot_product_attention(blocks, windows(k, r, causal), windows(v, r, causal), near & real)
    return output.flatten(-3, -2)[..., :n, :]


# %% [markdown]
# Is it the same as the masked full table? In float64, with a length that $r$ does not divide, with padding in the second
# sentence, forwards and in all gradients:

# %% tags=["active-ipynb"]
# q, k, v = (torch.randn(2, 2, 23, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
# real, i = padding_mask(torch.ones(2, 23).int().index_fill(1, torch.tensor([21, 22]), 0), pad_id=0), torch.arange(23)
# near = (i[:, None] - i).abs() <= 5
# both = local_attention(q, k, v, 5, mask=real), scaled_dot_product_attention(q, k, v, near & real)[0]
# gradients = [torch.autograd.grad((y**2).sum(), (q, k, v)) for y in both]
# differences = [(a - b).abs().max().item() for a, b in [both, *zip(*gradients)]]
# print("largest differences: output {:.0e}, gradients {:.0e} {:.0e} {:.0e}".format(*differences))
# assert max(differences) < 1e-9

# %% [markdown]
# ## Every row a layer
#
# With projections around it, so that it is a layer like the others. One class, and the function inside is handed in: the full
# table, torch's own kernel, or the blocks.

# %%
class SelfAttention(MultiHeadAttention):
    """Multi-head attention of a sequence with itself around attend(q, k, v) (B, h, n, d_k) -> (B, h, n, d_v).

    x (B, n, d_model) -> (B, n, d_model).
    """

    def __init__(self, d_model, h, attend):
        super().__init__(d_model, h)
        self.attend = attend

    def forward(self, x):
        q, k, v = (self.split(W(x)) for W in (self.W_Q, self.W_K, self.W_V))
        return self.W_O(self.attend(q, k, v).transpose(1, 2).flatten(2))


# %% [markdown]
# A convolution with gaps between its inputs (*dilated*) is the same convolution on every second position, every third, and so
# on. So we need no new layer: deal the positions out like cards, let the layer work on each hand, and put them back.

# %%
class Dilated(nn.Module):
    """A layer on every gap-th position: x (B, n, d) is dealt out to (B * gap, n / gap, d) and put together again.

    Around a convolution this is a dilated convolution. Zeros fill up the last hands, as they do beyond a sentence's end.
    """

    def __init__(self, layer, gap):
        super().__init__()
        self.layer, self.gap = layer, gap

    def forward(self, x):
        B, n, d = x.shape
        gap = min(self.gap, n)  # with n hands or more, every position is alone
        hands = F.pad(x, (0, 0, 0, -n % gap)).unflatten(1, (-1, gap)).transpose(1, 2)  # (B, gap, n / gap, d)
        y = self.layer(hands.flatten(0, 1)).unflatten(0, (B, gap))
        return y.transpose(1, 2).flatten(1, 2)[:, :n]


# %% tags=["active-ipynb"]
# block, x = GatedBlock(8, 3, causal=True), torch.randn(1, 20, 8)
# ticks = [t if t % 5 == 0 else "" for t in range(20)]
# panels = [(name, dependence(layer, x) > 0, ticks, ticks) for name, layer in
#           [("convolution, k = 3", block), ("dilated, gap 4", Dilated(block, 4)),
#            ("within r = 3", SelfAttention(8, 2, partial(local_attention, r=3))),
#            ("within r = 3, causal", SelfAttention(8, 2, partial(local_attention, r=3, causal=True)))]]
# plotting.heatmaps(panels, across=4, width=2.9, height=2.9, labels=("input", "output"));

# %% [markdown]
# Yellow: this output depends on this input (its gradient is not zero). Now all kinds by
# name. "Fused" is torch's own kernel for attention, which makes it one operation. The convolution is notebook 02's gated block in its
# causal form, as recurrence is causal, too. The recurrence is torch's GRU, whose loop is compiled.

# %%
class Recurrent(nn.GRU):
    """Torch's GRU as a layer: x (B, n, d) -> its state at each position (B, n, d)."""

    def forward(self, x):
        return super().forward(x)[0]


# %%
ATTENDS = {
    "self-attention": lambda q, k, v: scaled_dot_product_attention(q, k, v)[0],
    "self-attention, fused": lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
}
KINDS = ("self-attention", "self-attention, fused", "recurrent", "convolution", "dilated convolution", "restricted attention")


def check_kind(kind):
    """ValueError for a kind of layer that is not in KINDS."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}: choose one of {', '.join(KINDS)}")


def make_layer(kind, d, h=8, k=3, r=32, depth=0):
    """One layer of a kind of KINDS, width d: h heads, windows of k, neighbours within r; a dilated one at this depth has gaps k^depth."""
    check_kind(kind)
    if kind in ATTENDS:
        return SelfAttention(d, h, ATTENDS[kind])
    if kind == "restricted attention":
        return SelfAttention(d, h, partial(local_attention, r=r))
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
def longest_chain(y):
    """Operations on the longest chain from the inputs to y, each of which needs the one before: y must have a gradient."""
    length, stack = {None: 0}, [y.grad_fn]
    while stack:
        node = stack[-1]
        before = [source for source, _ in node.next_functions]
        waiting = [source for source in before if source not in length]
        if waiting:
            stack += waiting
        else:
            length[stack.pop()] = 1 + max((length[source] for source in before), default=0)
    return length[y.grad_fn]


# %% tags=["active-ipynb"]
# sizes = [16, 32, 64, 128, 256, 512]
# steps = {kind: [longest_chain(make_layer(kind, 16, r=4, depth=2)(torch.randn(1, n, 16))) for n in sizes] for kind in KINDS}
# ax = plotting.lines(sizes, steps, "positions n", "longest chain of operations", log="xy", markers=True)
# for i, line in enumerate(ax.lines):
#     line.set_zorder(2 - i / 10)                                             # dashes above the full line that they share

# %% tags=["active-ipynb"]
# assert all(len(set(chain)) == 1 for kind, chain in steps.items() if kind != "recurrent")
# first, second, *_ = steps["recurrent"]
# a_step = (second - first) // 16                                             # sixteen positions more
# assert all(chain - first == a_step * (n - 16) for n, chain in zip(sizes, steps["recurrent"]))
# print({kind: chain[-1] for kind, chain in steps.items()}, f"at n = 512; a position more costs the GRU {a_step} operations")

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
def path_length(step, x):
    """Steps until the last position depends on the first: x (1, n, d), float64 so that nothing rounds to zero.

    step(i, x, y) gives y, the outputs after step i (0, 1, ...), from those before it, x at first. Raises ValueError where n
    steps make no path.
    """
    x = x.detach().requires_grad_()
    y = x
    for i in range(x.shape[1]):
        y = step(i, x, y)
        last = y[0, -1]
        gradient, = torch.autograd.grad((last * torch.randn_like(last)).sum(), x, retain_graph=True)
        if gradient[0, 0].any():
            return i + 1
    raise ValueError(f"no path from the first position to the last in {x.shape[1]} steps")


# %%
def stacked(kind, d, **sizes):
    """A `path_length` step that puts one more layer of a kind on top, at float64."""
    return lambda i, x, y: make_layer(kind, d, depth=i, **sizes).double()(y)


# %% [markdown]
# One recurrent *layer* already joins both ends, but inside it a signal walks. To count that walk in the same way, take one
# **round**: all positions at once make one GRU step (notebook 01), each from the state that its left neighbour had a round ago.

# %%
def recurrent_round(gru):
    """A `path_length` step that lets every position make one step of a torch GRU; after n rounds all states are right."""
    def step(i, x, h):
        before = F.pad(h[:, :-1], (0, 0, 1, 0)) if i else torch.zeros_like(x)  # the left neighbour's state
        return gru_step(x, before, *gru.parameters())
    return step


# %% tags=["active-ipynb"]
# gru, x = Recurrent(8, 8, batch_first=True).double(), torch.randn(1, 40, 8, dtype=torch.float64)
# step, h = recurrent_round(gru), x
# right = []
# for i in range(40):
#     h = step(i, x, h)
#     right.append(int(((h - gru(x)).abs().amax(dim=-1) < 1e-12).sum()))
# assert right == list(range(1, 41))      # after round i, the first i states are those of torch's layer
# print("states that are right after each round:", *right[:5], "...", right[-1])

# %% [markdown]
# Each round makes one more state right: after $n$ rounds, and not before, it is the layer. Now everything by the same measure,
# with $k = 3$ and $r = 8$:

# %% tags=["active-ipynb"]
# sizes, d = [5, 9, 17, 33, 65, 129], 8
# takes = {kind: recurrent_round(gru) if kind == "recurrent" else stacked(kind, d, h=2, r=8) for kind in KINDS}
# paths = {kind: [path_length(step, torch.randn(1, n, d, dtype=torch.float64)) for n in sizes] for kind, step in takes.items()}
# plotting.lines(sizes, paths, "positions n", "steps from first to last", log="xy", markers=True)
# print(*(f"{kind:22}{lengths}" for kind, lengths in paths.items()), sep="\n")

# %% tags=["active-ipynb"]
# formulas = {"self-attention": lambda n: 1, "self-attention, fused": lambda n: 1, "recurrent": lambda n: n,
#             "convolution": lambda n: math.ceil((n - 1) / 2), "dilated convolution": lambda n: math.ceil(math.log(n, 3)),
#             "restricted attention": lambda n: math.ceil((n - 1) / 8)}
# assert all(paths[kind] == [formula(n) for n in sizes] for kind, formula in formulas.items())

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
def layer_flops(kind, n, d, k=3, r=32):
    """FLOPs of the matrix products of one layer on one sequence of n vectors of width d, constants and all (Table 1)."""
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
# for kind in (kind for kind in KINDS if "fused" not in kind):
#     with FlopCounterMode(display=False) as counter, torch.no_grad():
#         make_layer(kind, 64)(torch.randn(1, 200, 64))
#     print(f"{kind:22} formula {layer_flops(kind, 200, 64):11,}   torch {counter.get_total_flops():11,}")
#     assert layer_flops(kind, 200, 64) == counter.get_total_flops()

# %% [markdown]
# The section's argument about cost is that $n$ is usually smaller than $d$, so self-attention is cheaper than recurrence. Where do they
# cross? Set $8nd^2 + 4n^2 d = 12nd^2$: **at $n = d$, exactly.** A coincidence of constants (an LSTM has eight matrices, and
# crosses at $2d$), but a good rule.

# %%
def crossing(sizes, a, b):
    """Where curve a comes to lie above curve b for good: the n between two sizes, on straight lines in log-log; or None."""
    gap = [math.log(y / z) for y, z in zip(a, b)]
    i = max((i for i in range(len(gap)) if gap[i] <= 0), default=None)
    if i is None or i + 1 == len(gap):
        return None
    part = gap[i] / (gap[i] - gap[i + 1])
    return sizes[i] * (sizes[i + 1] / sizes[i]) ** part


# %% tags=["active-ipynb"]
# sizes = [64 * 2**i for i in range(8)]                                       # 64 to 8,192
# for d in (64, 1024, 512):
#     curves = {kind: [layer_flops(kind, n, d) / n / 1e6 for n in sizes] for kind in KINDS}
#     meet = crossing(sizes, curves["self-attention"], curves["recurrent"])
#     print(f"d = {d:4}: the recurrent layer has less work from n = {meet:.0f} on")
#     assert abs(meet - d) < 0.01 * d
# ax = plotting.lines(sizes, curves, "positions n", "million FLOPs a position", f"d = {d}, k = 3, r = 32", log="xy")
# ax.axvline(meet, color="grey", linewidth=1, label=f"the crossing, n = {meet:.0f}")
# ax.set_yticks([2, 3, 4, 6, 10, 20])
# for i, line in enumerate(ax.lines):
#     line.set_zorder(2 - i / 10)
# ax.legend(fontsize=8)
# price = dict(zip(sizes, curves["self-attention"]))
# print(f"self-attention, a position: {price[512] / price[64] - 1:.0%} more at n = 512 than at 64, {price[8192] / price[512]:.1f} times as much at 8,192")

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
# backward pass. Memory: every tensor is entered when it is made and struck out when it is freed. (What a compiled operation
# needs inside itself is not seen.)

# %%
class TensorMemory(TorchDispatchMode):
    """Inside the block, `peak` is the most bytes ever held at once by tensors that were made there."""

    def __init__(self):
        super().__init__()
        self.held = self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        known = {id(given.untyped_storage()) for given in args if isinstance(given, torch.Tensor)}
        for tensor in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(tensor, torch.Tensor) and id(tensor.untyped_storage()) not in known:  # neither a view nor in place
                size = tensor.untyped_storage().nbytes()
                weakref.finalize(tensor.untyped_storage(), self.add, -size)
                self.add(size)
        return made

    def add(self, size):
        self.held += size
        self.peak = max(self.peak, self.held)


# %% tags=["active-ipynb"]
# x = torch.randn(500, 500)                                  # a million bytes, made outside
# with TensorMemory() as memory:
#     y = (x @ x + 1).t().relu_()                            # the product, the sum; then a view, in place; the product is freed
#     z = y[:250] * 2
# assert (memory.peak, memory.held) == (2_000_000, 1_500_000)


# %%
def work(layer, x, training=False):
    """Send x through a layer; training: and all gradients back. Returns when it is done, on a GPU too."""
    with torch.set_grad_enabled(training):
        y = layer(x)
    if training:
        torch.autograd.grad(y.sum(), [x, *layer.parameters()])
    if x.is_cuda:
        torch.cuda.synchronize(x.device)


# %%
def peak_memory(layers, x, training=False):
    """Of each of the layers {name: layer}, the most bytes that it holds at once at x, beside weights and input."""
    peaks = {}
    for name, layer in layers.items():
        with TensorMemory() as memory:
            work(layer, x, training)
        peaks[name] = memory.peak
    return peaks


# %% [markdown]
# For time the layers take turns. The clock is that of one thread. It stands still while the thread waits for the processor, but others who
# share the core, its cache or its memory still make it slower. So we go over *all* sizes several times and take medians: a bad
# minute then spoils one pass of many sizes, not every round of one.

# %%
def turns(layers, x, training=False, seconds=0.0):
    """Layers {name: layer} take turns at x until `seconds` are over, once at least: {name: [seconds of each turn]}.

    On a CPU these are seconds of this thread: without waiting for the processor, but longer where others use the same
    core, cache or memory.
    """
    clock = time.thread_time if x.device.type == "cpu" and os.name == "posix" else time.perf_counter  # Windows counts a thread's too coarsely
    times, end = {name: [] for name in layers}, time.perf_counter() + seconds
    while not all(times.values()) or time.perf_counter() < end:
        for name, layer in layers.items():
            start = clock()
            work(layer, x, training)
            times[name].append(clock() - start)
    return times


# %%
def measure(layers, sizes, d, passes=3, seconds=0.05, device="cpu", tell=None):
    """Layers of width d on one sequence of each size: {"forward": {name: {"seconds": [...], "bytes": [...]}}, "training": ...}.

    First `peak_memory`, which warms up, too; then passes over all sizes, in each of which the layers take `turns` at a size. The
    median of all turns counts. tell(pass, mode, n, times), if given, hears of each.
    """
    results = {mode: {name: {"seconds": [], "bytes": []} for name in layers} for mode in ("forward", "training")}
    times = {(mode, n): {name: [] for name in layers} for mode in results for n in sizes}
    for number in range(passes + 1):
        for (mode, n), so_far in times.items():
            training = mode == "training"
            x = torch.randn(1, n, d, device=device, requires_grad=training)
            if number == 0:
                for name, peak in peak_memory(layers, x, training).items():
                    results[mode][name]["bytes"].append(peak)
                continue
            now = turns(layers, x, training, seconds)
            for name in layers:
                so_far[name] += now[name]
            if tell:
                tell(number, mode, n, now)
    for (mode, _), all_turns in times.items():
        for name in layers:
            results[mode][name]["seconds"].append(median(all_turns[name]))
    return results


# %% [markdown]
# First here and now, to $n = 1{,}024$, with narrow layers, $d = 128$:

# %% tags=["active-ipynb"]
# sizes = [64, 128, 256, 512, 1024]
# live = measure({kind: make_layer(kind, 128, depth=3) for kind in KINDS}, sizes, 128)
# for ax, mode in zip(plotting.new_axes(5.2, 4, columns=2), live):
#     milliseconds = {kind: [1000 * s for s in live[mode][kind]["seconds"]] for kind in KINDS}
#     plotting.lines(sizes, milliseconds, "positions n", "milliseconds", f"{mode}, measured here, d = 128", log="xy", ax=ax, markers=True)

# %% [markdown]
# On logarithmic axes a power law is a straight line, and its exponent the slope. We fit it through the larger half of the sizes:

# %%
def exponent(sizes, values):
    """p of the power law values ~ sizes^p that fits the larger half best (least squares of the logarithms)."""
    x, y = (torch.tensor(numbers[len(sizes) // 2:], dtype=torch.float64).log() for numbers in (sizes, values))
    x, y = x - x.mean(), y - y.mean()
    return (x @ y / (x @ x)).item()


# %%
def exponents(kind, sizes, d, forward, training):
    """Exponents of n of one kind: of its FLOPs, measured seconds forward, seconds with backward, and bytes while training."""
    curves = [[layer_flops(kind, n, d) for n in sizes], forward[kind]["seconds"], training[kind]["seconds"], training[kind]["bytes"]]
    return [exponent(sizes, curve) for curve in curves]


# %% tags=["active-ipynb"]
# def print_exponents(fits):
#     print(f"exponents of n, {sizes[len(sizes) // 2]:,} to {sizes[-1]:,}     table  FLOPs  forward  training  memory")
#     for kind, fit in fits.items():
#         print(f"{kind:35}{2 if 'self' in kind else 1:7}{fit[0]:7.2f}{fit[1]:9.2f}{fit[2]:10.2f}{fit[3]:8.2f}")
#
# assert abs(exponent([64, 128, 256, 512], [5 * n**1.7 for n in (64, 128, 256, 512)]) - 1.7) < 1e-9
# fits = {kind: exponents(kind, sizes, 128, **live) for kind in KINDS}
# print_exponents(fits)
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
# measured = read_rows("complexity")
# sizes, d = sorted({row["n"] for row in measured}), measured[0]["d"]
#
# def curves_of(mode):
#     curves = {kind: {"seconds": [], "bytes": []} for kind in KINDS}
#     for row in measured:
#         if row["mode"] == mode:
#             for what in ("seconds", "bytes"):
#                 curves[row["layer"]][what].append(row[what])
#     return curves
#
# forward, training = curves_of("forward"), curves_of("training")
# tail = sizes[len(sizes) // 2:]
# panels = [("seconds", "time, forward", forward), ("seconds", "time, training", training), ("bytes", "memory, training", training)]
# for ax, (what, title, run) in zip(plotting.new_axes(4.4, 4, columns=3), panels):
#     curves = {kind: [value / (2**20 if what == "bytes" else 1) for value in run[kind][what]] for kind in KINDS}
#     plotting.lines(sizes, curves, "positions n", what.replace("bytes", "MiB"), f"{title}, d = {d}", log="xy", ax=ax)
#     at_tail = [curve[-len(tail)] for curve in curves.values()]
#     for slope, start in ((1, min(at_tail) / 2), (2, max(at_tail) * 2)):                # two guides in grey
#         ax.plot(tail, [start * (n / tail[0])**slope for n in tail], color="grey", linewidth=1)
#         ax.annotate(f"slope {slope}", (tail[0], start), ha="right", va="center", fontsize=8, color="dimgrey")
# print(f"{measured[0]['hardware']}; {measured[0]['minutes']:.0f} minutes")

# %% tags=["active-ipynb"]
# fits = {kind: exponents(kind, sizes, d, forward, training) for kind in KINDS}
# print_exponents(fits)
# assert all(abs(fit[0] - 1) < 0.01 and abs(fit[1] - 1) < 0.25 for kind, fit in fits.items() if "self" not in kind)

# %% [markdown]
# **Where the exponents disagree with the table, and why.** By count, self-attention is at 1.72, not 2: the
# projections, which the table leaves out, are linear in $n$ and still half of the work at $n = 2d$. The fused kernel stays near the count.
# Written out, attention is steeper than that. Where does its time go? The system keeps two accounts: seconds in which the program itself computes,
# and seconds in which the system works for it, which here means finding fresh memory and filling it with zeros.

# %% tags=["active-ipynb"]
# for kind in KINDS[:2]:
#     layer = make_layer(kind, 512)
#     for n in (512, 1024, 2048, 4096):
#         x, before = torch.randn(1, n, 512), os.times()
#         for _ in range(4096 // n):
#             work(layer, x)
#         own, system = (1e9 * (b - a) / (4096 // n) / n**2 for a, b in zip(before[:2], os.times()[:2]))
#         print(f"{kind:22} n = {n:5,}: nanoseconds a pair of positions {own:4.0f} itself, {system:4.0f} the system")

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
# panels = {"counted": {kind: [layer_flops(kind, n, d) / 1e9 for n in sizes] for kind in kinds},
#           "measured, forward": {kind: forward[kind]["seconds"] for kind in kinds},
#           "measured, training": {kind: training[kind]["seconds"] for kind in kinds}}
# for ax, (title, curves) in zip(plotting.new_axes(4.4, 3.4, columns=3), panels.items()):
#     plotting.lines(sizes, curves, "positions n", "GFLOPs" if title == "counted" else "seconds", title, log="xy", ax=ax)
#     meet = [crossing(sizes, curves[kind], curves["recurrent"]) for kind in kinds[:2]]
#     for n in sorted({round(n) for n in meet if n}):
#         ax.axvline(n, color="grey", linestyle=":")
#         ax.annotate(f"{n:,}", (n, 0.02), xycoords=ax.get_xaxis_transform(), xytext=(-4, 0), textcoords="offset points", rotation=90, ha="right", fontsize=8)
#     print(f"{title:18} recurrence is cheaper from n = {meet[0]:5,.0f} on, from {meet[1]:5,.0f} on where attention is fused")

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
#     flops, seconds, chain = layer_flops(kind, d, d), forward[kind]["seconds"][at], longest_chain(make_layer(kind, d)(torch.randn(1, d, d)))
#     print(f"{kind:22}{flops / 1e9:5.2f} GFLOPs in {1000 * seconds:3.0f} ms: {flops / seconds / 1e9:2.0f} GFLOPs a second; {chain:5,} operations one after the other")

# %% [markdown]
# The same work, not the same time. And a core should be the mild case. Of a step's $6d^2$ multiplications half only need $x$, and are done
# beforehand for all positions. The other half, 786,432 at $d = 512$, can run at once, enough to fill a GPU. But they need
# as many weights, all read for a *single* vector. And the next step cannot start before: a chain of ten operations here, $n$ times, one after the other.
#
# How much of a step has nothing to do with work? A GRU that is *one* number wide has nothing to compute. It takes its steps all the same:

# %% tags=["active-ipynb"]
# thin = median(turns({"GRU": make_layer("recurrent", 1)}, torch.randn(1, 1024, 1), seconds=0.2)["GRU"])
# wide = median(turns({"attention": make_layer("self-attention", 256)}, torch.randn(1, 1024, 256), seconds=0.5)["attention"])
# print(f"n = 1,024: a GRU of width 1 needs {1000 * thin:.0f} ms, a whole self-attention of width 256 {1000 * wide:.0f} ms, "
#       f"for {layer_flops('self-attention', 1024, 256) / layer_flops('recurrent', 1024, 1):,.0f} times the FLOPs")

# %% [markdown]
# A faster machine computes faster, but it does not *start* the small operations of a step much faster. There are two ways out. One is to have no steps. The other is a
# batch: many sequences take each step together, and every weight that is read serves them all.

# %% tags=["active-ipynb"]
# layers, batches = {kind: make_layer(kind, 512) for kind in kinds}, (1, 4, 16, 64)
# took = [turns(layers, torch.randn(B, 32, 512), seconds=0.3) for B in batches]
# speed = {kind: [B * 32 / median(seconds[kind]) for B, seconds in zip(batches, took)] for kind in kinds}
# plotting.lines(batches, speed, "sequences in the batch", "positions a second, forward", "d = 512, n = 32", log="xy", markers=True)
# print("; ".join(f"{kind}: {values[0]:,.0f} alone, {values[-1] / values[0]:.1f} times as many in a batch of {batches[-1]}" for kind, values in speed.items()))
# assert speed["recurrent"][-1] > 1.5 * speed["recurrent"][0]

# %% [markdown]
# So recurrent networks live on large batches: the recurrent line climbs most. But long sequences fill the memory, and then the batch must be small: the
# paper's complaint in Section 1. Within each sequence, $n$ steps remain $n$ steps. (All this is one core. On a GPU the gap should be wider;
# `tools/complexity.py --device cuda` measures it, we have not.)

# %% [markdown] tags=["question-26"]
# ## Why does BERT stop at 512, and what does O(n²) cost in practice?
#
# For two reasons. Its positions are learned, a table (notebook 07) of 512 rows; token 513 has no position. And it was not made longer
# because of the cost: BERT (Devlin et al., 2019) was trained on pieces of 128 tokens for nine tenths of the steps, and on 512 only for the last tenth.

# %% [markdown]
# What does length cost? Below, time per token while training one layer, and the attention weights that a model of BERT's size keeps for the
# backward pass: one number of four bytes for each of 12 layers, 12 heads and $n^2$ pairs, in each of 32 sequences.

# %% tags=["active-ipynb"]
# print("       n   microseconds a token: full            fused   within r = 32      weights kept, batch of 32")
# before = None
# for i, n in enumerate(sizes):
#     full, fused, near = (1e6 * training[kind]["seconds"][i] / n for kind in ("self-attention", "self-attention, fused", "restricted attention"))
#     more = f"(x {full / before:.2f})" if before else ""
#     print(f"{n:8,}{full:27.0f} {more:8}{fused:8.0f}{near:16.0f}{32 * 12 * 12 * n**2 * 4 / 2**30:21.1f} GiB")
#     before = full

# %% [markdown]
# While $n$ is small a token costs about the same at any length, because projections dominate. Then each doubling of $n$
# multiplies the price of *every* token; in brackets, by how much. A pure square would give 2; fresh memory may add to it (above it was looked at forward only). The last factor is unexplained.
# But time only grows; **memory ends.** At 512 the attention weights of a batch fit on one GPU of that time, at 2,048 on none.
#
# How far does one GPU's memory go? We have not tried; we continue the last measurement, by the bytes of a pair of positions for the full table, and by
# those of a position for the fused kernel:

# %%
def largest_n(n, value, limit, power):
    """Where a value that was met at n reaches a limit, if it goes on growing like n^power."""
    return n * (limit / value) ** (1 / power)


# %% tags=["active-ipynb"]
# for gibibytes in (16, 80):
#     reach = [largest_n(sizes[-1], training[kind]["bytes"][-1], gibibytes * 2**30, power) for kind, power in zip(KINDS[:2], (2, 1))]
#     full, fused = (f"{float(f'{n:.2g}'):,.0f}" for n in reach)                         # two figures
#     print(f"{gibibytes} GiB, extrapolated: one layer of width {d} trains on {full} positions (full table) or {fused} (fused)")

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
def pruned_attention(q, k, v, mask=None, keep=4, by="weight"):
    """`scaled_dot_product_attention` in which each query keeps `keep` keys, whose weights are made to sum to 1.

    by: "weight" keeps the largest weights, "distance" the nearest keys (smallest |i - j|, of two the earlier), "chance" any.
    ValueError for another, or for less than one key.
    """
    if keep < 1 or by not in ("weight", "distance", "chance"):
        raise ValueError(f"keep must be at least 1, not {keep}, and by 'weight', 'distance' or 'chance', not {by!r}")
    order = scaled_dot_product(q, k)
    if by == "chance":
        order = torch.rand_like(order)
    if by == "distance":
        i, j = (torch.arange(length, device=q.device) for length in order.shape[-2:])
        order = torch.zeros_like(order) - (i[:, None] - j - 0.25).abs()
    if mask is not None:
        order = order.masked_fill(~mask, -torch.inf)
    best = order.topk(min(keep, order.shape[-1]), dim=-1).indices
    kept = torch.zeros_like(order, dtype=torch.bool).scatter(-1, best, True)
    return scaled_dot_product_attention(q, k, v, kept if mask is None else kept & mask)


# %% [markdown]
# The bundled model (notebook 16 says how it was trained; notebook 10 has the corpus) reads 100 test sentences and scores their translations.
# First: how many of its attention weights are near zero?

# %% tags=["active-ipynb"]
# from unittest.mock import patch
#
# import tokenizers
# from torch.nn.utils.rnn import pad_sequence
#
# from transformer.model import Transformer
#
# model, bpe = Transformer.from_pretrained(data / "models" / "bundled"), tokenizers.Tokenizer.from_file(str(data / "models" / "bundled" / "tokenizer.json"))
# pairs = [line.split("\t")[:2] for line in (data / "bundled" / "test.tsv").read_text(encoding="utf8").split("\n")[:100]]
# ids = [[bpe.encode(" " + text).ids for text in side] for side in zip(*pairs)]
# source = pad_sequence([torch.tensor([*row, 2]) for row in ids[0]], batch_first=True)
# target = pad_sequence([torch.tensor([1, *row, 2]) for row in ids[1]], batch_first=True)

# %% tags=["active-ipynb"]
# def watched(q, k, v, mask):
#     output, weights = scaled_dot_product_attention(q, k, v, mask)
#     seen.append(weights[mask.expand_as(weights)])                                          # those that could be given
#     return output, weights
#
# seen = []
# with torch.no_grad(), patch("transformer.attention.scaled_dot_product_attention", watched):   # in this block, all attention is this one
#     for row in range(len(source)):                                                         # one at a time: no padding
#         model(source[row, source[row] != 0][None], target[row, target[row] != 0][None, :-1])
# weights, tokens = torch.cat(seen), (source != 0).sum(dim=1).float().mean()
# print(f"{(weights < 0.01).float().mean():.0%} of {len(weights):,} weights are below 0.01, {(weights < 0.001).float().mean():.0%} below 0.001; "
#       f"shared out evenly over the {tokens:.0f} tokens of a source each would be {1 / tokens:.2f}")

# %% [markdown]
# Many are, but far from all. Now prune all attention: in the encoder, in the decoder and between them. (There "nearest" means the same place in the other
# sentence.)

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def loss(attend):
#     with patch("transformer.attention.scaled_dot_product_attention", attend):
#         logits = model(source, target[:, :-1])
#     return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0).item()
#
# keeps = [1, 2, 4, 8, 16]
# pruned = {name: [loss(partial(pruned_attention, keep=keep, by=by)) for keep in keeps]
#           for name, by in (("the largest", "weight"), ("the nearest", "distance"), ("at random", "chance"))}
# full = loss(scaled_dot_product_attention)
# ax = plotting.lines(keeps, pruned, "weights kept for each query", "loss per token (nats)", log="xy", markers=True)
# ax.axhline(full, color="grey", linestyle=":", label="all kept")
# ax.legend(fontsize=8);

# %% tags=["active-ipynb"]
# four = {name: values[keeps.index(4)] for name, values in pruned.items()}
# print(f"loss {full:.4f} with all; with four: " + ", ".join(f"{value:.4f} ({name})" for name, value in four.items()))
# assert four["the largest"] - full < 0.2 * full < full < min(four["the nearest"], four["at random"])

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
# said = {"self-attention": ("n^2", "1"), "recurrent": ("n", f"n = {n}"), "convolution": ("n", f"log_3 n = {math.log(n, 3):.1f}"),
#         "dilated convolution": ("n", f"log_3 n = {math.log(n, 3):.1f}"), "restricted attention": ("n", f"n / window of 17 = {n / 17:.1f}")}
# print(f"{'':22}  paper  FLOPs  forward  training  memory   chain at n = 16, 512   path at n = 129: paper, gradient")
# for kind, (work_said, path_said) in said.items():
#     fit, chain = fits[kind], f"{steps[kind][0]}, {steps[kind][-1]}"
#     print(f"{kind:22}{work_said:>7}{fit[0]:7.2f}{fit[1]:9.2f}{fit[2]:10.2f}{fit[3]:8.2f}{chain:>22}{path_said:>26},{paths[kind][-1]:4}")

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
# block, x = GatedBlock(6, 3, causal=True), torch.randn(2, 29, 6)
# theirs = F.conv1d(F.pad(x.transpose(1, 2), (8, 0)), block.convolution.conv.weight, block.convolution.conv.bias, dilation=4)
# assert torch.allclose(Dilated(block, 4)(x), (x + F.glu(theirs.transpose(1, 2))) * math.sqrt(0.5), atol=1e-5)

# %% [markdown]
# **All three self-attentions are one layer** where the neighbourhood is the whole sequence:

# %% tags=["active-ipynb"]
# layers, x = [make_layer(kind, 16, h=2, r=30) for kind in ("self-attention", "self-attention, fused", "restricted attention")], torch.randn(2, 30, 16)
# for layer in layers:
#     layer.load_state_dict(layers[0].state_dict())
# assert all(torch.allclose(layer(x), layers[0](x), atol=1e-5) for layer in layers)

# %% [markdown]
# **Who sees nothing gets zeros**, and no NaN: position 20, when everything within its reach is padding.

# %% tags=["active-ipynb"]
# tokens = (torch.arange(40) < 15).int()[None]                                # 15 words, 25 of padding
# q = torch.randn(1, 2, 40, 4, requires_grad=True)
# output = local_attention(q, q, q, 3, mask=padding_mask(tokens, pad_id=0))
# assert output[:, :, 18:].eq(0).all() and output[:, :, :18].ne(0).all() and torch.autograd.grad(output.sum(), q)[0].isfinite().all()

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
#     assert your_layers == tuple(path_length(stacked(kind, 8, h=2, r=8), x) for kind in ("restricted attention", "dilated convolution"))

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_layers = 25, 5`: the way is 199 positions; $199 / 8$ rounded up is 25, and $3^5 = 243$ is the first power of 3 that is at least 200.
# </details>
#
# **2.** With $d = 512$, at which $n$ does self-attention do as many FLOPs as an LSTM, with eight matrices? And as a plain tanh network, with
# two? (`None` if nowhere.)

# %% tags=["active-ipynb"]
# lstm_n, tanh_n = ..., ...
# if lstm_n is not ...:
#     equal = [[n for n in range(1, 5000) if layer_flops("self-attention", n, 512) == 2 * matrices * n * 512**2] for matrices in (8, 2)]
#     assert [lstm_n, tanh_n] == [some[0] if some else None for some in equal]

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
