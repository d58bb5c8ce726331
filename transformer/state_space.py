# ---
# jupyter:
#   jupytext:
#     formats: notebooks/24_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # State spaces
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/24_state_space.ipynb)
#
# Attention keeps every key and value that it has read, and compares each new token with all of them. A recurrence keeps one state of one size. Those of 2017 forgot ([01](01_recurrence.ipynb)) and could not be trained in parallel ([09](09_complexity.ipynb)). A state space model is a recurrence that is linear in its state. This notebook builds one, to take attention's place in [03](03_stacks.ipynb)'s layers. At
# the end you will know how it is trained without a loop, how it is a matrix of weights like attention, and what its state holds. Reading takes about
# 30 minutes, running it half a minute.

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

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.core.checks import check_heads, check_left_to_right

# %% tags=["active-ipynb"]
# # what only pictures, measurements and checks need: not part of the module
# import time
# from dataclasses import replace
# from functools import partial
# from statistics import mean, median, stdev
# from string import ascii_letters
#
# from transformer.complexity import longest_chain
# from transformer.core.records import read_rows
# from transformer.core.weights import count_parameters
# from transformer.experiments.choosing import best_rates
# from transformer.fast import FAST
# from transformer.fast.model import Parts
# from transformer.fast.search import KeyValueCache
# from transformer.language import LanguageConfig, LanguageModel
# from transformer.models.recording import cache
# from transformer.teaching.measuring import turns
# from transformer.teaching.memory_tasks import NOISE, copying, learn, recall, share_right
# from transformer.views import plotting
# from transformer.views.growth import growth
#
# torch.set_num_threads(1)  # matrices as small as these gain nothing from a second core
# torch.manual_seed(0);

# %% [markdown]
# ## From an equation to steps
#
# A state space is a tool of control theory. A state $h$ of $N$ numbers decays, is pushed by a number $x$, and is read out as a number $y$:
#
# $$h'(t) = A\,h(t) + B\,x(t), \qquad y(t) = C\,h(t)$$
#
# Here $A$ is diagonal with negative entries, so that each number of the state decays at its own rate; $B$ and $C$ are $N$ numbers each. A token lasts a time $\Delta$, the *step*. If $x$ stays the same during it, the equation can be solved:
#
# $$h_t = e^{\Delta A}\,h_{t-1} + \frac{e^{\Delta A} - 1}{A}\,B\,x_t \;\approx\; e^{\Delta A}\,h_{t-1} + \Delta B\,x_t$$
#
# This is *discretisation*. The approximation is Mamba's in its code (Gu and Dao, 2023, write the exact form), and ours. How good is it?

# %% tags=["active-ipynb"]
# print("  A   step   kept    written: exact   approximately")
# for A, delta in ((-1.0, 0.001), (-1.0, 0.01), (-1.0, 0.1), (-1.0, 1.0), (-16.0, 0.1)):
#     kept, exact = math.exp(delta * A), (math.exp(delta * A) - 1) / A
#     h = 0.0
#     for _ in range(100_000):  # the equation itself, in very small steps, with x = B = 1
#         h += delta / 100_000 * (A * h + 1)
#     assert abs(h - exact) < 1e-5
#     print(f"{A:3g}  {delta:5}  {kept:.4f}  {exact:14.4f}  {delta:14.4f}")
# print("the exact weight equals the equation in 100,000 small steps")

# %% [markdown]
# With $A = -1$ the two agree within some 5% for steps up to 0.1. What counts is $\Delta A$: at $-1$ the approximation writes 1.6 times the exact weight, and at $-1.6$ twice. (The layers below begin with $-0.001$ to $-1.6$.) A large step keeps little of the past and writes much of the present; a step of 0 keeps everything and writes nothing.
#
# A layer's $x$ has many channels, each with a state of $N$ numbers. As in attention, channels are grouped in heads of $p$, which share their $\Delta$, $A$, $B$ and $C$. ($h_t$ is a state, `h` the number of heads; `N` a state's size, in a configuration the number of layers.) The definition is a loop. The figure shows two pulses, scaled so that each writes 1:


# %%
def scan_loop(
    x: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """h_t = exp(delta_t A) h_(t-1) + delta_t B_t x_t and y_t = C_t h_t, one by one.

    x (b, n, h, p): p channels in each of h heads; delta (b, n, h) >= 0; A (h, N) or,
    one decay a head, (h, 1), < 0; B and C (b, n, h, N), or (b, n, 1, N) for all heads;
    state (b, h, p, N): what was before, zeros if None. Returns y (b, n, h, p) and the
    last state.
    """
    if state is None:
        state = x.new_zeros(*x[:, 0].shape, B.shape[-1])
    outputs = []
    parts = [part.unbind(dim=1) for part in (x, delta, B, C)]
    for x_t, delta_t, B_t, C_t in zip(*parts):
        keep = torch.exp(delta_t[..., None] * A)[:, :, None]  # (b, h, 1, N or 1)
        write = (delta_t[..., None] * x_t)[..., None] * B_t[:, :, None]
        state = keep * state + write  # (b, h, p, N)
        outputs.append((state * C_t[:, :, None]).sum(dim=-1))
    return torch.stack(outputs, dim=1), state


# %% tags=["active-ipynb"]
# n = 60
# x = torch.zeros(1, n, 1, 1)
# x[0, 5] = x[0, 30] = 1.0  # two pulses
# ones = torch.ones(1, n, 1, 1)
# curves = {}
# for rate in (0.02, 0.1, 0.5):
#     delta, A = torch.full((1, n, 1), rate), torch.tensor([[-1.0]])
#     y, _ = scan_loop(x / rate, delta, A, ones, ones)
#     curves[f"step {rate}"] = y.flatten().tolist()
# plotting.lines(range(n), curves, "position", "output", "Long steps forget sooner");

# %% [markdown]
# ## Steps that never change
#
# If $\Delta$, $B$ and $C$ are the same at every position, unrolling the loop gives $y_t = \sum_j C\,e^{j\Delta A}\,\Delta B\; x_{t-j}$. That is a causal convolution ([02](02_convolution.ipynb)), whose *kernel* $K_j$ is as long as the sequence and made from few numbers. It needs no loop: Fourier transforms turn a convolution into a product (S4; Gu et al., 2021). The figure shows four such kernels, each divided by its largest size.


# %%
def kernel(delta: Tensor, A: Tensor, B: Tensor, C: Tensor, n: int) -> Tensor:
    """K_j = C exp(delta A)^j delta B, j = 0 to n - 1, for steps that never change.

    delta (h,), A (h, N), B and C (h, N) -> (h, n).
    """
    steps = torch.arange(n, device=delta.device)
    powers = torch.exp(delta[:, None, None] * A[..., None] * steps)  # (h, N, n)
    return torch.einsum("hk,hkj->hj", delta[:, None] * B * C, powers)


def convolve(x: Tensor, kernel: Tensor) -> Tensor:
    """y_t = sum of K_j x_(t - j): x (b, n, h, p), kernel (h, n) -> (b, n, h, p).

    By Fourier transforms, in O(n log n); zeros behind the end keep it from going round.
    """
    n = x.shape[1]
    waves = torch.fft.rfft(kernel.T[..., None], n=2 * n, dim=0)
    waves = torch.fft.rfft(x, n=2 * n, dim=1) * waves
    return torch.fft.irfft(waves, n=2 * n, dim=1)[:, :n]


# %% tags=["active-ipynb"]
# h, N, n = 4, 16, 200
# delta = torch.tensor([0.003, 0.01, 0.03, 0.1])
# A = -torch.arange(1.0, N + 1).repeat(h, 1)
# B, C = torch.ones(h, N), torch.randn(N).expand(h, N)
# K = kernel(delta, A, B, C, n)
# curves = {f"step {d:.3f}": (k / k.abs().max()).tolist() for d, k in zip(delta, K)}
# plotting.lines(
#     range(n),
#     curves,
#     "positions back",
#     "weight / largest size",
#     "Four kernels, 200 long: short steps look far back",
# )
# x = torch.randn(2, n, h, 3)
# steps = [part.expand(2, n, *part.shape) for part in (delta, B, C)]
# expected, _ = scan_loop(x, steps[0], A, *steps[1:])
# difference = (convolve(x, K) - expected).abs().max().item()
# assert difference < 1e-5
# print(f"loop and convolution differ by {difference:.0e}")

# %% [markdown]
# ## Steps that depend on what is read
#
# A kernel that never changes treats a word and the noise around it alike. Mamba computes $\Delta$, $B$ and $C$ from the token itself; such a layer is called *selective*. A token can then be let in with a large step, or passed over with one near 0. Here eight of 40 inputs matter, and the others have steps of 0:

# %% tags=["active-ipynb"]
# n, matter = 40, torch.tensor([3, 4, 11, 19, 20, 28, 33, 39])
# x, B, C = torch.randn(1, n, 2, 3), torch.randn(1, n, 1, 8), torch.randn(1, n, 1, 8)
# delta, A = torch.zeros(1, n, 2), -torch.rand(2, 8)
# delta[:, matter] = torch.rand(1, 8, 2)
# _, among_noise = scan_loop(x, delta, A, B, C)
# _, alone = scan_loop(
#     *(part[:, matter] for part in (x, delta)), A, *(part[:, matter] for part in (B, C))
# )
# assert torch.equal(among_noise, alone)
# print("32 inputs with steps of 0 leave no trace in the state")

# %% [markdown]
# ## The same as a matrix
#
# With steps that change there is no convolution. But the loop can still be unrolled, and each output is a weighted sum of the inputs so far:
#
# $$y_t = \sum_{s \le t} M_{ts}\,x_s, \qquad M_{ts} = C_t^\top e^{A(\Delta_{s+1} + \ldots + \Delta_t)}\,B_s\,\Delta_s$$
#
# This is attention's form (Dao and Gu, 2024). $C_t$ is a query, $B_s$ a key and $x_s$ a value. In place of softmax stands a decay, the product of what each step after $s$ kept. The weights of a row need not be
# positive, and they do not sum to 1. The code sums $\Delta$ from the beginning, and applies `exp` only to differences of these sums, times $A$ (never above 0).


# %%
def weights(delta: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
    """M (b, h, n, n), for which the outputs of `scan_loop` are M x.

    M_ts = C_t exp(A (delta_(s+1) + ... + delta_t)) B_s delta_s for s <= t, else 0.
    """
    total = delta.cumsum(dim=1).transpose(1, 2)  # (b, h, n)
    # exp of at most 0; in a quotient of two decays both would round to 0 in long texts
    between = (total[..., :, None] - total[..., None, :]).tril()
    queries, keys = C.transpose(1, 2), B.transpose(1, 2)  # (b, h or 1, n, N)
    if A.shape[1] == 1:
        scores = queries @ keys.transpose(2, 3) * torch.exp(A[..., None] * between)
    else:
        keep = torch.exp(between[..., None] * A[:, None, None])  # (b, h, n, n, N)
        scores = torch.einsum("bhtk,bhsk,bhtsk->bhts", queries, keys, keep)
    return scores.tril() * delta.transpose(1, 2)[:, :, None]


def scan_matrix(
    x: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor
) -> tuple[Tensor, Tensor]:
    """`scan_loop` from a state of zeros, by products of matrices: O(n^2)."""
    y = weights(delta, A, B, C) @ x.transpose(1, 2)  # (b, h, n, p)
    rest = delta.sum(dim=1, keepdim=True) - delta.cumsum(dim=1)  # from t to the end
    left = torch.exp(rest[..., None] * A) * delta[..., None]  # (b, n, h, N or 1)
    state = x.permute(0, 2, 3, 1) @ (left * B).transpose(1, 2)  # (b, h, p, N)
    return y.transpose(1, 2), state


# %% tags=["active-ipynb"]
# def random_inputs(n, decays):
#     return [
#         part.double().requires_grad_()
#         for part in (
#             torch.randn(2, n, 3, 4),
#             torch.rand(2, n, 3),
#             -torch.rand(3, decays),
#             torch.randn(2, n, 1, 5),
#             torch.randn(2, n, 1, 5),
#         )
#     ]
#
#
# def largest_difference(scan, steps):
#     results = []
#     for way in (scan_loop, scan):
#         y, state = way(*steps)
#         gradients = torch.autograd.grad((y**2).sum() + (state**2).sum(), steps)
#         results.append((y, state, *gradients))
#     return max((a - b).abs().max().item() for a, b in zip(*results))
#
#
# for decays in (1, 5):
#     largest = largest_difference(scan_matrix, random_inputs(50, decays))
#     assert largest < 1e-9
#     print(f"decays a head: {decays}, loop and matrix differ by {largest:.0e}")
# print("last states and gradients included")

# %% [markdown]
# ## In chunks
#
# The loop does little work, but in $n$ steps that wait for each other; the matrix needs no such steps, and its work grows with $n^2$. Chunks of the sequence lie between the two. Inside each, all at the same time, the outputs are computed as if nothing had been
# before. What a chunk leaves behind is one state, so a loop over chunks hands states on, and each output gets what its chunk found at the beginning.
#
# If a head has a single decay, the inside of a chunk is a product of matrices (Mamba-2). With $N$ decays in each channel the tables of decays would be far larger; there a short loop is cheaper, which all chunks walk together.


# %%
def scan_chunks(
    x: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    state: Tensor | None = None,
    length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """`scan_loop` in chunks: all at the same time, then from one to the next.

    With one decay a head a chunk is a product of matrices, otherwise a short loop.
    """
    n, one_decay = x.shape[1], A.shape[1] == 1
    chunks = -(-n // (length or (64 if one_decay else 32)))
    length = -(-n // chunks)  # equal ones
    inside = scan_matrix if one_decay else scan_loop
    cut = [
        F.pad(part, (0, 0) * (part.dim() - 2) + (0, -n % length)).unflatten(
            1, (-1, length)
        )
        for part in (x, delta, B, C)
    ]
    x_all, delta_all, B_all, C_all = (part.flatten(0, 1) for part in cut)
    y, ends = inside(x_all, delta_all, A, B_all, C_all)
    y, ends = (part.unflatten(0, (len(x), -1)) for part in (y, ends))
    # What is left of the state that a chunk found, at each place: (b, c, length, h, N)
    keep = torch.exp(cut[1].cumsum(dim=2)[..., None] * A)
    state = torch.zeros_like(ends[:, 0]) if state is None else state
    before = []  # what each chunk finds, from what those before it left (ends)
    for through, end in zip(keep[:, :, -1].unbind(dim=1), ends.unbind(dim=1)):
        before.append(state)
        state = through[:, :, None] * state + end
    read = torch.einsum("bclhk,bchpk->bclhp", cut[3] * keep, torch.stack(before, dim=1))
    return (y + read).flatten(1, 2)[:, :n], state


# %% tags=["active-ipynb"]
# for decays in (1, 5):
#     in_chunks = partial(scan_chunks, length=8)
#     largest = largest_difference(in_chunks, random_inputs(50, decays))
#     assert largest < 1e-9
#     print(f"decays a head: {decays}, loop and chunks of 8 differ by {largest:.0e}")

# %% [markdown]
# ## A layer in attention's place
#
# Now a layer around it, with attention's arguments. It has three things from Mamba: the state's inputs pass a short convolution over four positions and a SiLU ($z\,\sigma(z)$); its output is multiplied by a gate, the SiLU of the other half of what `W_in` makes; and a direct path $D$ leads around the state. `StateCache` is what [notebook 15](15_decoding.ipynb)'s searches keep in place of keys and values.
#
# The first values of $\Delta$ and $A$ are like Mamba's. $\Delta$ is a softplus, $\log(1 + e^z)$, whose bias begins so that $\Delta$ lies between 0.001 and 0.1: with $A = -1$, a state then fades over ten to a thousand tokens.


# %%
class StateCache:
    """What a layer with a state has read: the state, and the last inputs of its window.

    Its size does not depend on how much that was. For searches: without gradients.
    """

    def __init__(self):
        self.state = self.recent = None

    def select(self, rows: Tensor):
        """Keep these rows, in this order: searches drop, repeat and reorder them."""
        if self.state is not None:
            self.state, self.recent = self.state[rows], self.recent[rows]

    def shorten(self, length: int):
        """Refused with a ValueError: what went into a state stays in it."""
        raise ValueError(
            "a layer with a state cannot forget what it has read, so "
            "guesses cannot be taken back: use `generate`"
        )


# %%
def short_convolution(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Each channel over a window: x (b, n + k - 1, d), weight (k, d) -> (b, n, d)."""
    n = x.shape[1] - len(weight) + 1
    return sum((x[:, i : i + n] * row for i, row in enumerate(weight)), bias)


def first_deltas(count: int) -> Tensor:
    """Inverse softplus of 0.001 to 0.1, drawn evenly in the logarithm: (count,)."""
    delta = torch.exp(torch.empty(count).uniform_(math.log(0.001), math.log(0.1)))
    return delta + torch.log(-torch.expm1(-delta))


def first_decays(heads: int, N: int) -> Tensor:
    """-A (heads, N): 1 to 16 over heads with one decay each, or 1 to N in each."""
    if N == 1:
        return torch.linspace(1, 16, heads)[:, None]
    return torch.arange(1.0, N + 1).repeat(heads, 1)


# %% [markdown]
# A state is made by reading from left to right. So the layer takes only causal masks; `check_left_to_right` refuses others, and finds the padding, which must not reach the state. It also refuses keys of a second sequence: it cannot stand between a decoder and an encoder's memory. Of attention's sizes, `d_k` becomes $N$, and `d_v` the channels of a head.


# %%
class GatedPath(nn.Module):
    """The ways in and out of a layer with a state; sizes: see `StateLayer`."""

    def __init__(
        self,
        d_model: int,
        h: int,
        d_k: int | None,
        d_v: int | None,
        window: int,
        bias: bool,
        gate: bool,
    ):
        super().__init__()
        check_heads(d_model, h, d_k, d_v or -(-d_model // h))
        self.h, self.N = h, d_k or 16
        self.width = h * (d_v or d_model // h)
        self.W_in = nn.Linear(d_model, (1 + gate) * self.width, bias)
        self.W_out = nn.Linear(self.width, d_model, bias)
        self.window = nn.Parameter(torch.randn(window, self.width) / window**0.5)
        self.window_bias = nn.Parameter(torch.zeros(self.width))
        self.D = nn.Parameter(torch.ones(self.width))

    def blended(
        self, query: Tensor, real: Tensor | None = None, cache: StateCache | None = None
    ) -> tuple[Tensor, Tensor]:
        """What the state gets (b, n, width), and the gate of what it says.

        The gate is another (b, n, width), or (b, n, 0) where there is none.
        """
        x, gate = self.W_in(query).tensor_split([self.width], dim=-1)
        if real is not None:
            x = x * real[..., None]
        before = len(self.window) - 1
        x = F.pad(x, (0, 0, before, 0))
        if cache is not None:
            if cache.recent is not None:
                x[:, :before] = cache.recent
            cache.recent = x[:, x.shape[1] - before :].clone()
        return F.silu(short_convolution(x, self.window, self.window_bias)), gate


# %%
class StateLayer(GatedPath):
    """Attention's interface around `remembered`, which a subclass has.

    h heads of d_v channels (d_model / h), each of which keeps d_k numbers (16); window:
    inputs that are blended before; gate=False leaves the gate out. rotate is not used,
    for no positions are needed. Raises ValueError for sizes that do not fit, for a
    memory, and for a mask by which a position sees something later, or misses something
    earlier that is no padding.
    """

    new_cache = StateCache  # what generation keeps of it, in place of keys and values

    def __init__(
        self,
        d_model: int,
        h: int,
        d_k: int | None = None,
        d_v: int | None = None,
        *,
        rotate: Callable | None = None,
        window: int = 4,
        bias: bool = False,
        gate: bool = True,
    ):
        super().__init__(d_model, h, d_k, d_v, window, bias, gate)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Tensor | None = None,
        cache: StateCache | None = None,
        start: int = 0,
    ) -> Tensor:
        """query (b, n, d_model) -> (b, n, d_model); key and value are the query.

        mask: causal, but for padding; None: causal. cache: what came before; it knows
        its place without start.
        """
        real = check_left_to_right(query, key, mask)
        x, gate = self.blended(query, real, cache)
        y = self.remembered(x, real, cache) + self.D * x
        return self.W_out(y * F.silu(gate) if gate.shape[-1] else y)


# %% [markdown]
# Two layers stand on `StateLayer`. The fixed one learns $\Delta$, $A$ and $C$ for each channel as plain numbers ($B$ would only scale $C$; S4's usual decays are complex). The selective one computes $\Delta$, $B$ and $C$ from its input: with `one_decay` for heads with one decay each, as in Mamba-2, otherwise as in Mamba, where each channel is a head of its own with $N$ decays. **Deviation: Mamba-2 computes $\Delta$, $B$ and $C$ together with $x$, by one matrix from the layer's input, and has a norm before the last matrix; here both kinds are built like Mamba. Mamba's layers are twice as wide as $d_{model}$, and have no feed-forward networks between them.** Which decays serve better was not compared: all selective layers trained below have one a head, the fixed ones $N$ a channel.


# %%
class FixedLayer(StateLayer):
    """A state whose steps never change: a convolution as long as the sequence.

    Its decays are real numbers (S4D-Real; Gu et al., 2022).
    """

    def __init__(
        self,
        d_model: int,
        h: int,
        d_k: int | None = None,
        d_v: int | None = None,
        **switches,
    ):
        super().__init__(d_model, h, d_k, d_v, **switches)
        self.A_log = nn.Parameter(first_decays(self.width, self.N).log())
        self.delta = nn.Parameter(first_deltas(self.width))
        self.C = nn.Parameter(torch.randn(self.width, self.N))

    def remembered(
        self, x: Tensor, real: Tensor | None, cache: StateCache | None
    ) -> Tensor:
        """x (b, n, width) -> what the states say (b, n, width)."""
        delta, A = F.softplus(self.delta), -self.A_log.exp()
        B = torch.ones_like(self.C)
        x = x[..., None]
        if real is not None:
            x = x * real[..., None, None]
        if cache is None:
            return convolve(x, kernel(delta, A, B, self.C, x.shape[1]))[..., 0]
        steps = (part.expand(*x.shape[:2], *part.shape) for part in (delta, B, self.C))
        delta, B, C = steps
        y, cache.state = scan_chunks(x, delta, A, B, C, cache.state)
        return y[..., 0]


# %%
class SelectiveLayer(StateLayer):
    """A state whose steps depend on what is read (Mamba; Gu and Dao, 2023).

    one_decay: one a head (Mamba-2); otherwise each channel is a head with d_k decays.
    scan: any function with the arguments and results of `scan_loop`.
    """

    def __init__(
        self,
        d_model: int,
        h: int,
        d_k: int | None = None,
        d_v: int | None = None,
        *,
        one_decay: bool = True,
        scan: Callable = scan_chunks,
        **switches,
    ):
        super().__init__(d_model, h, d_k, d_v, **switches)
        self.scan = scan
        heads = h if one_decay else self.width
        self.sizes = [-(-d_model // 16), self.N, self.N]  # of delta so few, as in Mamba
        self.W_step = nn.Linear(self.width, sum(self.sizes), bias=False)
        self.W_delta = nn.Linear(self.sizes[0], heads, bias=False)
        self.delta_bias = nn.Parameter(first_deltas(heads))
        self.A_log = nn.Parameter(first_decays(heads, 1 if one_decay else self.N).log())

    def steps(self, x: Tensor, real: Tensor | None = None) -> tuple[Tensor, ...]:
        """delta, A, B and C of `scan_loop` for x (b, n, width)."""
        delta, B, C = self.W_step(x).split(self.sizes, dim=-1)
        delta = F.softplus(self.W_delta(delta) + self.delta_bias)
        if real is not None:
            delta = delta * real[..., None]  # padding changes no state
        return delta, -self.A_log.exp(), B[:, :, None], C[:, :, None]

    def remembered(
        self, x: Tensor, real: Tensor | None, cache: StateCache | None
    ) -> Tensor:
        """x (b, n, width) -> what the states say (b, n, width)."""
        heads = x.unflatten(-1, (len(self.A_log), -1))
        cache = cache or StateCache()
        y, cache.state = self.scan(heads, *self.steps(x, real), cache.state)
        return y.flatten(2)


# %% [markdown]
# The language model of [notebook 21](21_language.ipynb) takes the layer as one of its `Parts`. Reading token by token, with padding in front of the shorter text, it has to give the same as reading the whole without padding:

# %% tags=["active-ipynb"]
# c = LanguageConfig(50, d_model=32, d_ff=64, N=2, h=4, d_k=16, max_positions=64)
# prompts = torch.tensor([[0, 0, 5, 9], [3, 3, 7, 6]])
# more = torch.randint(3, 50, (2, 20))
# for name, attention in (
#     ("fixed", FixedLayer),
#     ("one decay a head", SelectiveLayer),
#     ("16 decays a channel", partial(SelectiveLayer, one_decay=False)),
# ):
#     model = LanguageModel(c, Parts(attention=attention)).eval()
#     with torch.no_grad():
#         state = model.initial_state(prompts)
#         steps = [model.step(column[:, None], state) for column in more.T]
#         whole = [
#             model(torch.cat([p[p > 0], own])[None])[0, (p > 0).sum() :]
#             for p, own in zip(prompts, more)
#         ]
#     difference = (torch.stack(steps, dim=1) - torch.stack(whole)).abs().max().item()
#     assert difference < 1e-5
#     print(f"{name}: step by step and all at once differ by {difference:.0e}")
# try:
#     model.decoder(torch.randn(1, 5, 32), torch.ones(5, 5, dtype=torch.bool))
# except ValueError as error:
#     print(f"a mask that looks ahead: {error}")

# %% [markdown]
# `tests/test_state_space.py` puts weights of the kind with $N$ decays a channel, every bias random, into the class `MambaModel` of the library `transformers` (without networks between, with its norm) and finds the same outputs within $10^{-5}$.

# %% [markdown] tags=["question-30"]
# ## What is choosing worth?
#
# How much is it worth that the steps, $B$ and $C$ depend on what is read? The task is *selective copying*: words stand anywhere among noise and have to be said again, in order. Here six of eight different words stand in 24 positions. Who knows which words are left, but not their order, is right once in 6, then once in 5, and so on: $(1/6 + 1/5 + \ldots + 1)/6 = 41\%$. Three models differ in the layer in attention's place (the fixed one has more decays, too), and in the peak of the learning rate, found in a few trials; one seed each:

# %% tags=["active-ipynb"]
# task = partial(copying, n=24, words=6, types=8)
# c = LanguageConfig(64, d_model=32, d_ff=64, N=2, h=4, P_drop=0.0, max_positions=32)
# trained = {}
# for name, attention, d_k, peak in (
#     ("attention", FAST.attention, 8, 0.01),
#     ("selective", SelectiveLayer, 16, 0.02),
#     ("fixed", FixedLayer, 16, 0.02),
# ):
#     torch.manual_seed(1)
#     model = LanguageModel(replace(c, d_k=d_k), Parts(attention=attention))
#     began = time.process_time()
#     losses = learn(model, task, updates=800, peak=peak, rows=16)
#     trained[name] = model, share_right(model, task)
#     print(
#         f"{name:9} {count_parameters(model):,} parameters, "
#         f"{time.process_time() - began:.0f} s: loss {mean(losses[-50:]):.2f}, "
#         f"{trained[name][1]:.0%} of the words right"
#     )
# assert min(trained["attention"][1], trained["selective"][1]) > trained["fixed"][1]

# %% [markdown]
# The fixed layer comes last, but is far above 41%. (Its gate depends on the token; whether that is why, a record below asks.)
#
# Which places does the second layer look at? The figure shows attention's weights in one example, and the absolute values of $M$ as shares of their row. A row is labelled by the token just read and the word to be said. The printed shares are means of 200 examples, all of one head: the one that looks most at words, or at the places one behind.

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def second_input(model, ids):
#     """What the second layer is given, (B, n, d_model)."""
#     layer, seen = model.decoder.layers[1].self_attention, []
#     hook = layer.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
#     model(ids)
#     hook.remove()
#     return layer, seen[0]
#
#
# ids, gold = task(200, torch.Generator().manual_seed(5))
# is_word = (ids != NOISE)[:, None, None, :24]  # of the places among noise
# to_say = ids[:, None, None, :24] == gold[:, None, 24:, None]  # (200, 1, 6, 24)
# with cache(trained["attention"][0], "decoder.1.*.weights") as seen:
#     second_input(trained["attention"][0], ids)
# layer, x = second_input(trained["selective"][0], ids)
# delta, A, B, C = (part.detach() for part in layer.steps(layer.blended(x)[0]))
# M = weights(delta, A, B, C).abs()
# both = {
#     "attention": seen["decoder.1.self_attention.weights"],
#     "selective": M / M.sum(dim=-1, keepdim=True),
# }

# %% tags=["active-ipynb"]
# names = [
#     {NOISE: ".", 1: "[begin]"}.get(i, ascii_letters[i - 4])
#     for i in [*ids[0].tolist(), gold[0, -1].item()]
# ]
# rows = [f"{read} → {said}" for read, said in zip(names[24:], names[25:])]
# panels = []
# for name, shares in both.items():
#     places = shares[:, :, 24:, :24], shares[:, :, 24:, 1:25]  # themselves, one behind
#     words, own = (
#         [(part * kind).sum(dim=-1).mean(dim=(0, 2)) for part in places]
#         for kind in (is_word, to_say)
#     )
#     head = torch.maximum(*words).argmax()
#     for where, of_words, of_own in zip(("on", "one place behind"), words, own):
#         print(
#             f"{name}: {of_words[head]:.0%} {where} words, "
#             f"{of_own[head]:.0%} {where} the one to be said"
#         )
#     panels.append(
#         (
#             f"{name}, {trained[name][1]:.0%} right",
#             shares[0, head, 24:],
#             names[:30],
#             rows,
#         )
#     )
# plotting.heatmaps(
#     panels,
#     across=1,
#     width=7.5,
#     height=2.6,
#     labels=("position read", "read → to be said", "share"),
# );

# %% [markdown]
# Spread evenly, 22% of the weight would be on words and 4% on the one to be said. Attention's head prefers both. The selective layer's prefers the places one *behind* words, probably because its inputs have passed the short convolution. Its preference for the right word is weak; how it says nearly all words right, shares of absolute values do not show.
#
# What does the selection: the steps, or $B$ and $C$? The next cell replaces one of them, in one layer, by its mean over all positions of all examples, so that it no longer depends on what is read. ($B$ and $C$ have signs, and a mean near 0 would silence the state; so its size is printed, too.)

# %% tags=["active-ipynb"]
# def with_mean(layer, place, sizes):
#     """The layer's steps, with one part the same everywhere; how long its mean is."""
#
#     def steps(x, real=None):
#         found = list(SelectiveLayer.steps(layer, x, real))
#         average = found[place].mean(dim=(0, 1), keepdim=True)
#         sizes.append((average.norm() / found[place].norm(dim=-1).mean()).item())
#         found[place] = average.expand_as(found[place])
#         return found
#
#     return steps
#
#
# model, right = trained["selective"]
# print(f"share of words right: {right:.0%}")
# for number, layer in enumerate(model.decoder.layers, 1):
#     layer = layer.self_attention
#     for place, part in ((0, "delta"), (2, "B"), (3, "C")):
#         sizes = []
#         layer.steps = with_mean(layer, place, sizes)
#         print(
#             f"layer {number}, {part:5} the same: {share_right(model, task):.0%} "
#             f"(the mean has {sizes[0]:.2f} of the usual size)"
#         )
#         del layer.steps
# word = is_word[:, 0, 0]
# behind = F.pad(word, (1, -1)) & ~word
# means = [
#     delta[:, :24][places].mean(dim=0) for places in (word, behind, ~(word | behind))
# ]
# for where, steps in zip(("at words", "one place behind", "elsewhere"), means):
#     print(
#         f"second layer, mean step {where:16}",
#         *(f"{1000 * d:.1f}" for d in steps),
#         "thousandths, by head",
#     )

# %% [markdown]
# Most is lost where $B$ or $C$ of the second layer are the same everywhere. There $B$ decides what the state takes in, and $C$ what is read from it. The steps, somewhat longer one place behind words than elsewhere, matter less. So steps of 0 are only one way to select. (One model, one seed.)

# %% [markdown]
# How far does this go at 64 positions with sixteen words of 32 (knowing them without their order: 21%)? [data/runs/state_space.md](../data/runs/state_space.md) says what was trained and what was expected; `python -m transformer.experiments.state_space` makes the record. Rates were swept for each family with one seed.

# %% tags=["active-ipynb"]
# def at_best_rate(
#     task, record="state_space-memory", score=lambda row: row["validation"]
# ):
#     """{family: its rows with the rate that was best on validation}"""
#     rows = [row for row in read_rows(record) if row["task"] == task]
#     best = best_rates(rows, score)
#     return {
#         family: [
#             row
#             for row in rows
#             if row["family"] == family and row["rate"] == best[family]
#         ]
#         for family in best
#     }
#
#
# def spread_of(rows, column):
#     """Mean, and the range over seeds where there are several."""
#     found = [100 * row[column] for row in rows]
#     more = f" ({min(found):.1f} to {max(found):.1f})" if len(found) > 1 else ""
#     return f"{mean(found):5.1f}%{more}"
#
#
# for family, rows in at_best_rate("copying").items():
#     print(
#         f"{family:10} peak {rows[0]['rate']}, seeds {len(rows)}: "
#         f"{spread_of(rows, 'right')} right"
#     )

# %% [markdown]
# As expected, attention copies nearly everything, and the fixed layer learned hardly anything of the order. The selective layer was expected at 95% at least; at the best of its rates one training came to 82%, and two others hardly learned to copy. So both state layers were trained eight times as long, at 0.003 and 0.005, and the fixed one also without its gate (with wider networks instead):

# %% tags=["active-ipynb"]
# for family, rows in at_best_rate("long copying").items():
#     print(
#         f"{family:14} peak {rows[0]['rate']}, seeds {len(rows)}: "
#         f"{spread_of(rows, 'right')} right; where all words stand at the "
#         f"beginning {spread_of(rows, 'unspread')}"
#     )

# %% [markdown]
# The selective layer copies everything with every seed. The fixed layer was expected below one half, with and without its gate. It has 67% to 85% with it and no less without, so it needs no gate to copy. How it copies, **we do not know**. Where all words stand at the beginning, which training hardly ever showed, the selective layer keeps 85% or more at this rate (19% at a lower one, with one seed), the fixed ones 22% to 31%, and attention, trained briefly, 15%.

# %% [markdown]
# ## What it costs to go on
#
# A model that generates keeps what it has read. Attention keeps a key and a value of each token, a state layer keeps $N$ numbers for each channel and the last three inputs of its short window, however much was read. The next cell counts bytes held after $n$ tokens, at the size of the chat bot of notebook 21, and what
# one more token adds.

# %% tags=["active-ipynb"]
# def held(model, n):
#     """Bytes that a state of n tokens keeps."""
#     state = model.initial_state(torch.randint(3, 1000, (1, n)), KeyValueCache)
#     kept = [
#         tensor
#         for own, _ in state.caches
#         for tensor in vars(own).values()
#         if torch.is_tensor(tensor)
#     ]
#     return sum(tensor.numel() * tensor.element_size() for tensor in kept)
#
#
# c = LanguageConfig(1000, d_model=128, d_ff=512, N=4, h=4, max_positions=1200)
# lengths, curves = [16, 64, 256, 1024], {}
# for name, parts, d_k in (
#     ("attention", FAST, None),
#     ("a state, N = 16", Parts(attention=SelectiveLayer), 16),
#     ("a state, N = 64", Parts(attention=SelectiveLayer), 64),
# ):
#     model = LanguageModel(replace(c, d_k=d_k), parts).eval()
#     with torch.no_grad():
#         curves[name] = [held(model, n) for n in lengths]
#         more = held(model, 17) - held(model, 16)
#     print(
#         f"{name:16} {curves[name][0]:9,} bytes after 16 tokens, "
#         f"{curves[name][-1]:9,} after 1,024; each token adds {more:,}"
#     )
#     assert (more == 0) == (name != "attention")
# a_token = held(LanguageModel(c, FAST), 1)
# for name in list(curves)[1:]:
#     print(f"{name}: as much as {curves[name][0] / a_token:.1f} tokens")
# growth(lengths, curves, "bytes held", "A state has one size", markers=True);

# %% [markdown]
# With $N = 64$ the state is as large as the keys and values of 34 tokens, with $N = 16$ of nine or ten.
#
# ## What does a state hold?
#
# *Associative recall*: 16 pairs of a key and a value are read, then every key is asked for again. Attention can look each pair up. A state has to hold all pairs in its $N$ numbers a channel. (Two layers each, because one of attention cannot join a value to the key before it.)

# %% tags=["active-ipynb"]
# def most_frequent(n):
#     """The share right of who always says the most frequent value read."""
#     ids, gold = recall(500, torch.Generator().manual_seed(2000), n)
#     values, answers = ids[:, 1 : 2 * n : 2], gold[:, 2 * n :]
#     return (answers == values.mode(dim=1).values[:, None]).float().mean().item()
#
#
# pairs = (4, 8, 16, 32)
# print("right of      ", *(f"{n:4} pairs" for n in pairs), "  16 pairs, by seed")
# for family, rows in at_best_rate("recall").items():
#     print(
#         f"{family:14}",
#         *(f"{mean(row[f'{n} pairs'] for row in rows):10.0%}" for n in pairs),
#         "  ",
#         *(f"{row['16 pairs']:.0%}" for row in rows),
#     )
# print(f"{'most frequent':14}", *(f"{most_frequent(n):10.0%}" for n in pairs))
# mixed, alone = (
#     [row["32 pairs"] for row in at_best_rate("recall")[family]]
#     for family in ("one of each", "attention")
# )
# error = math.sqrt((stdev(mixed) ** 2 + stdev(alone) ** 2) / 3)
# print(
#     f"32 pairs: one of each is {mean(mixed) - mean(alone):.1%} ahead of attention, "
#     f"with a standard error of {error:.1%}"
# )

# %% [markdown]
# All were trained with 16 pairs ([state_space.md](../data/runs/state_space.md)). Attention answers all of 16 pairs, and so does the mixed model with a selective layer first and attention behind it. Who always says the most frequent value has 19%. With 64 numbers a channel nine tenths of 16 pairs are right, in the best training 98%. Against what was expected, 16 numbers are not ahead of 4: two of their three trainings, and one with 4, hardly beat the most frequent value. So these trainings do not tell what a state can hold. With 32 pairs, in rows twice as long as training's, all lose, the mixed model least.

# %% [markdown]
# ## How long does it take?
#
# Here is one layer in training, on one sequence of 256 positions with $d = 512$, in turns with the fused attention of notebook 09 (with no mask, as there, and with the causal one).

# %% tags=["active-ipynb"]
# from transformer.experiments.state_space import layers_to_time
#
# layers = layers_to_time()
# x = torch.randn(1, 256, 512, requires_grad=True)
# turns(layers, x, training=True)  # the first turn warms up
# times = {
#     name: median(found)
#     for name, found in turns(layers, x, training=True, seconds=5).items()
# }
# for name, seconds in times.items():
#     print(
#         f"{name:26} {1000 * seconds:6.1f} ms, "
#         f"{seconds / times['attention, fused']:.2f} times fused attention"
#     )
# assert times["16 decays a channel"] < 8 * times["attention, fused"]

# %% [markdown]
# `python -m transformer.experiments.state_space --part seconds` measures the same at more lengths, for the record:

# %% tags=["active-ipynb"]
# rows = [row for row in read_rows("state_space-seconds") if row["mode"] == "training"]
# sizes = sorted({row["n"] for row in rows})
# curves = {}
# for row in rows:
#     curves.setdefault(row["layer"], []).append(row["seconds"])
# growth(
#     sizes,
#     curves,
#     "seconds of a training pass",
#     "Attention grows faster with n than chunks do",
#     markers=True,
# )
# for n in sizes:
#     fused = curves["attention, fused, causal"][sizes.index(n)]
#     print(
#         f"n = {n:5}: "
#         + ", ".join(
#             f"{name} {times[sizes.index(n)] / fused:.2f}"
#             for name, times in curves.items()
#             if "fused" not in name
#         )
#         + " times fused, causal"
#     )
# sizes_of = {row["layer"]: row["bytes"] for row in rows if row["n"] == sizes[-1]}
# print(
#     f"bytes at n = {sizes[-1]}: "
#     + ", ".join(
#         f"{name} {sizes_of[name] / sizes_of['attention, fused, causal']:.1f}"
#         for name in curves
#         if "fused" not in name
#     )
#     + " times fused, causal"
# )

# %% [markdown]
# Causal attention is the fair rival. With one decay a head the layer trains about as fast at 256 positions (a little faster above, 11% to 20% slower in this record), faster from 1,024 on, and in less than half the time at 4,096. With 16 decays a channel there are no large products, only many small steps, which take more than twice as long everywhere. The fixed layer needs no loop, and is slower than attention all the same (why, we have not recorded). In training at 4,096 positions, the states and tables of chunks take 2.0 to 2.4 times the bytes of fused attention, which writes no table, and those of 16 decays 12 times.

# %% [markdown]
# ## A row for Table 1
#
# The table of [notebook 09](09_complexity.ipynb) gains a row. Take one decay a head and chunks of $L$ positions. Inside a chunk each position meets $L$ others, as in attention, and it reads and writes $N$ numbers for each of $d$ channels:
#
# | layer | operations | steps that must wait | longest path |
# |---|---|---|---|
# | selective state, chunks of $L$ | $n\,(L + N)\,d$ | $n / L$ | $n / L$ |
#
# With $L = n$, one chunk, this is the row of self-attention (but for the term with $N$, which is small beside $n$), and with $L = 1$ that of a recurrence, with $N$ numbers for each channel in place of a $d \times d$ matrix. The longest chain of operations, counted as in notebook 09, for chunks of 16:

# %% tags=["active-ipynb"]
# sizes, chains = [64, 128, 256, 512], {}
# ways = {
#     "loop": scan_loop,
#     "chunks of 16": partial(scan_chunks, length=16),
#     "matrix": lambda *steps: scan_matrix(*steps[:5]),
# }  # it takes no state
# for name, scan in ways.items():
#     layer = SelectiveLayer(16, 4, scan=scan)
#     chains[name] = []
#     for n in sizes:
#         x = torch.randn(1, n, 16)
#         chains[name].append(longest_chain(layer(x, x, x)))
#     a_step = (chains[name][1] - chains[name][0]) / 64
#     print(
#         f"{name:13} {chains[name][-1]:5} operations at n = 512, "
#         f"{a_step:g} more for each position"
#     )
# growth(
#     sizes,
#     chains,
#     "longest chain of operations",
#     "Chunks wait for each other, the matrix for nothing",
#     markers=True,
# )
# assert chains["matrix"][0] == chains["matrix"][-1]
# assert chains["chunks of 16"][-1] < chains["loop"][-1] / 8

# %% [markdown]
# ## Characters
#
# `python -m transformer.experiments.state_space --part characters` trains the language model of characters of [notebook 21](21_language.ipynb) with attention and with a selective layer (1.6% more parameters), on as many tokens, and tests it in windows as long as those of training (256 bytes) and four times as long.

# %% tags=["active-ipynb"]
# found = at_best_rate(
#     "characters", "state_space-characters", score=lambda row: -row["validation_bits"]
# )
# for family, rows in found.items():
#     print(f"{family}, {rows[0]['parameters']:,.0f} parameters, peak {rows[0]['rate']}:")
#     for column, window in (("bits", 256), ("bits.long", 1024)):
#         bits = [row[column] for row in rows]
#         print(
#             f"  windows of {window:5,}: {mean(bits):.3f} bits a character, "
#             f"seeds {' '.join(f'{one:.3f}' for one in bits)}"
#         )
#
# both = [[row["bits"] for row in rows] for rows in found.values()]
# error = math.sqrt(sum(stdev(bits) ** 2 / len(bits) for bits in both))
# print(
#     f"at 256 the selective layer is ahead by {mean(both[0]) - mean(both[1]):.3f} "
#     f"bits, with a standard error of {error:.3f}"
# )

# %% [markdown]
# At 256 positions the two are within a tenth of a bit, as expected. Whether the selective layer owes its lead to its state or short window of four inputs was not separated. In windows four times as long as those of training, attention with rotary positions fails and the selective layer loses hardly anything, both as expected. For both the largest rate was best, so a larger one might be better. Of large models this says nothing.

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Mamba approximates the weight of an input. Write the exact step: what is kept, and what $B x$ is multiplied by. Entries of $A$ are not 0.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.state_space import check_exact_step
#
#
# def exact_step(delta, A):
#     """delta (h, 1) and A (h, N) -> two tensors (h, N): kept, weight"""
#     ...
#
#
# check_exact_step(exact_step)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def exact_step(delta, A):
#     kept = torch.exp(delta * A)
#     weight = (kept - 1) / A
#     return kept, weight
# ```
#
# For small steps $e^{\Delta A} - 1$ is nearly $\Delta A$, which gives Mamba's $\Delta$.
# </details>
#
# **2.** A step is a pair: $h$ becomes $a h + u$. Join two steps into one, first one, then the other. (Because the result is a pair again, steps can be joined in any grouping, which is what chunks rest on.)

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.state_space import check_both_steps
#
#
# def both_steps(first, second):
#     """Two pairs (a, u) -> the pair that does the same as first and then second"""
#     ...
#
#
# check_both_steps(both_steps)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def both_steps(first, second):
#     a, u = first
#     b, v = second
#     added = b * u + v
#     return a * b, added
# ```
# </details>
#
# **3.** Attention without softmax, $y_t = \sum_{s \le t} (q_t \cdot k_s)\, v_s$, needs no table of weights: write it with a state (Katharopoulos et al., 2020).

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.state_space import check_linear_attention
#
#
# def linear_attention(q, k, v):
#     """q and k (n, d_k), v (n, d_v) -> (n, d_v), one position after the other"""
#     ...
#
#
# check_linear_attention(linear_attention)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def linear_attention(q, k, v):
#     state = torch.zeros(k.shape[1], v.shape[1])
#     outputs = []
#     for t in range(len(q)):
#         state = state + torch.outer(k[t], v[t])
#         outputs.append(q[t] @ state)
#     return torch.stack(outputs)
# ```
#
# It is the recurrence of this notebook with $A = 0$ and $\Delta = 1$, so that nothing is ever forgotten, and with $k$, $q$ and $v$ as $B$, $C$ and $x$.
# </details>
#
# ## Next
#
# Larger models mix attention and state layers, such as Jamba (Lieber et al., 2024). [25 Published weights](25_imported.ipynb) loads models that others have trained.
