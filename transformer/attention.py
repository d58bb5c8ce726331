# ---
# jupyter:
#   jupytext:
#     formats: notebooks/04_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 3.2 Attention
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/04_attention.ipynb)
#
# A Transformer has one way for words to exchange information: attention. Each position asks a question, every
# position offers an answer with a label on it, and what comes back is a mixture of the answers whose labels fit best.
# This notebook builds that, step by step, up to several heads with masks (Sections 3.2.1 to 3.2.3).

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from transformer.checks import check_heads, check_mask


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# import torch.nn.functional as F
#
# from transformer import plotting
#
# torch.manual_seed(0);

# %% [markdown] tags=["question-01"]
# ## What are queries, keys and values?
#
# Think of a library. You come with an interest (the **query**). Each book has a label on its spine (the **key**) and
# its contents (the **value**). A normal dictionary look-up takes the one book whose label matches exactly.
# Attention is the soft version: it scores how well each label fits your interest, turns the scores into shares that
# add up to 1, and hands you a blend of the contents in those shares.
#
# Three books, with labels for (cooking, history), and your interest, cooking only:

# %% tags=["active-ipynb"]
# query = torch.tensor([2.0, 0.0])  # interested in cooking, not in history
# keys = torch.tensor([[3.0, 0.0], [1.0, 2.0], [0.0, 3.0]])  # the labels of three books
# values = torch.tensor([[100.0], [40.0], [0.0]])  # what is in them: pages with recipes
# scores = keys @ query  # how well each label fits
# weights = scores.softmax(dim=0)
# answer = (weights @ values).item()
# print("scores", scores.tolist(), " weights", [round(w, 4) for w in weights.tolist()])
# print("answer", round(answer, 2), "pages")

# %% [markdown]
# By hand: the scores are $2\cdot 3 = 6$, $2\cdot 1 = 2$ and $0$. Softmax gives the first book
# $e^6 / (e^6 + e^2 + e^0) = 0.98$ of the vote, the second $0.018$, the third $0.002$. The answer is
# $0.98 \cdot 100 + 0.018 \cdot 40 + 0.002 \cdot 0 \approx 98.7$: nearly all from the cookery book, a little from the
# one beside it. Because shares change smoothly with the numbers, a gradient can teach the labels and the interests.

# %% tags=["active-ipynb"]
# votes = [math.exp(6), math.exp(2), 1]
# by_hand = (votes[0] * 100 + votes[1] * 40 + votes[2] * 0) / sum(votes)
# assert abs(by_hand - answer) < 1e-4

# %% [markdown]
# Now let your interest turn, step by step, from cooking to history. Nothing jumps: one book's share goes down as another's goes up.

# %% tags=["active-ipynb"]
# turn = torch.linspace(0, 2, 41)[:, None]
# shares = (torch.cat([2 - turn, turn], dim=1) @ keys.T).softmax(dim=1)
# books = ["cookery book", "a little of both", "history book"]
# curves = dict(zip(books, shares.T))
# plotting.lines(turn[:, 0], curves, "interest in history", "share");

# %% [markdown]
# In a Transformer nobody writes the labels. Every word has one vector; three learned matrices, $W_Q$, $W_K$ and $W_V$, turn it
# into the question it asks, the label it wears, and the content it gives away. In "the cat chased its tail", the word "its" may
# ask for a noun that can own things; "cat" wears a label that says so; what it hands over may be its gender.

# %% [markdown]
# ## A score for each query and key
#
# Section 3.2.1 names two ways of scoring that were in use. The first is the inner product of query and key. With $T$
# queries and $S$ keys it is one matrix product and gives a table of $T \times S$ scores.

# %%
def dot_product(q: Tensor, k: Tensor) -> Tensor:
    """q . k (Luong et al., 2015): q (..., T, d_k), k (..., S, d_k) -> (..., T, S)."""
    return q @ k.transpose(-2, -1)


# %% [markdown]
# The paper's own score divides it by $\sqrt{d_k}$, the square root of the width of a key. Why, we measure below.

# %%
def scaled_dot_product(q: Tensor, k: Tensor) -> Tensor:
    """q . k / sqrt(d_k), the score of equation 1; shapes as in `dot_product`."""
    return dot_product(q, k) / math.sqrt(q.shape[-1])


# %% [markdown]
# The second, older way is that of [notebook 01](01_recurrence.ipynb), a small network with one hidden layer:
# $w^\top \tanh(W q + U k)$. It is called additive attention, because query and key meet in a sum.

# %%
class AdditiveScore(nn.Module):
    """w . tanh(W q + U k): a network with one hidden layer (Bahdanau et al., 2015).

    q: (..., T, d_k), k: (..., S, d_k) -> (..., T, S). It holds T * S * d_hidden numbers
    at once.
    """

    def __init__(self, d_k: int, d_hidden: int):
        super().__init__()
        self.W = nn.Linear(d_k, d_hidden, bias=False)
        self.U = nn.Linear(d_k, d_hidden, bias=False)
        self.w = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        both = self.W(q).unsqueeze(-2) + self.U(k).unsqueeze(-3)
        hidden = torch.tanh(both)  # (..., T, S, d_hidden)
        return self.w(hidden).squeeze(-1)


# %% [markdown]
# ## From scores to weights
#
# Softmax turns a row of scores (also called *logits*) into positive shares that add up to 1. Some positions must get no share:
# padding at the end of short sentences, and words not yet written. A **mask** says which: True means "may be looked at".
#
# The paper (Section 3.2.3), like `blend` in notebook 01, writes $-\infty$ over forbidden scores. It has a trap: in a row where *everything* is
# forbidden, softmax divides 0 by 0, and one NaN spreads through the whole model. So we write the lowest finite number,
# and set forbidden weights to zero afterwards. An empty row then gives zeros, forwards and backwards. All other rows come out the same.

# %%
def masked_softmax(logits: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the last axis, among the positions where mask is True.

    logits: (..., T, S); mask: boolean, broadcastable to it, True = may attend. A row
    with no allowed position becomes zeros (and passes zero gradient back), on every
    version of torch. Raises TypeError for a mask that is not boolean.
    """
    if mask is None:
        return logits.softmax(dim=-1)
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean (True = may attend), not {mask.dtype}")
    lowest = torch.finfo(logits.dtype).min
    return logits.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


# %% tags=["active-ipynb"]
# logits = torch.tensor([[1.0, 2.0, 3.0]] * 3, requires_grad=True)
# allowed = torch.tensor([
#     [True, True, True],  # everything
#     [True, True, False],  # not the last
#     [False, False, False],  # nothing
# ])
# weights = masked_softmax(logits, allowed)
# print(weights.detach())

# %% tags=["active-ipynb"]
# weights.square().sum().backward()
# assert torch.allclose(weights[:2].sum(dim=1), torch.ones(2))  # rows are shares
# assert weights[2].eq(0).all() and logits.grad[2].eq(0).all()  # an empty row: zero
# assert torch.allclose(weights[1, :2], torch.tensor([1.0, 2.0]).softmax(0))

# %% [markdown]
# ## Attention
#
# Everything so far in two lines: score, turn into weights, mix the values. The score is an argument, so every flavour
# is the same function.

# %%
def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None,
              score: Callable = scaled_dot_product) -> tuple[Tensor, Tensor]:
    """softmax(score(Q, K)) V: every flavour of attention in the paper (Section 3.2.1).

    q: (..., T, d_k), k: (..., S, d_k), v: (..., S, d_v); mask as in `masked_softmax`.
    Returns the output (..., T, d_v) and the weights (..., T, S). Raises ValueError
    where k and v differ in length.
    """
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"each key needs one value: {k.shape[-2]} keys, "
                         f"{v.shape[-2]} values")
    weights = masked_softmax(score(q, k), mask)
    return weights @ v, weights


# %% [markdown]
# Equation 1 of the paper is the scaled flavour:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$

# %%
def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor,
                                 mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(d_k)) V, equation 1; shapes and results: see `attention`."""
    return attention(q, k, v, mask, scaled_dot_product)


# %% tags=["active-ipynb"]
# q = torch.randn(2, 3, 4, 8)  # T = 4, d_k = 8
# k = torch.randn(2, 3, 5, 8)  # S = 5
# v = torch.randn(2, 3, 5, 6)  # d_v = 6
# first = torch.arange(5) == 0  # at least one key for everybody
# mask = (torch.rand(2, 1, 4, 5) < 0.7) | first
# output, weights = scaled_dot_product_attention(q, k, v, mask)
# assert output.shape == (2, 3, 4, 6) and weights.shape == (2, 3, 4, 5)

# %% [markdown]
# Is it right? Two independent answers: torch's own function, and a loop that does one query at a time.

# %% tags=["active-ipynb"]
# assert torch.allclose(output, F.scaled_dot_product_attention(q, k, v, mask), atol=1e-6)
# e = [
#     math.exp(q[1, 2, 3] @ k[1, 2, s] / math.sqrt(8)) if mask[1, 0, 3, s] else 0.0
#     for s in range(5)
# ]
# one = sum(e[s] / sum(e) * v[1, 2, s] for s in range(5))
# assert torch.allclose(one, output[1, 2, 3], atol=1e-5)

# %% [markdown] tags=["question-03"]
# ## Self-attention, multi-head, additive, dot-product: how do they relate?
#
# They answer different questions, and combine freely:
#
# | word | what it decides |
# |---|---|
# | dot-product, scaled, additive | how a query and a key are scored |
# | self-attention, cross-attention | where queries, keys and values come from: one sequence, or two |
# | causal (masked) | which keys a query may see |
# | multi-head | how often it happens side by side, each time with other projections |
#
# One function, four settings of the first two rows (masks and heads come below), the same seven random vectors:

# %% tags=["active-ipynb"]
# x, y, additive = torch.randn(7, 16), torch.randn(5, 16), AdditiveScore(16, 32)
# settings = {
#     "dot-product": (x, dot_product, None),
#     "scaled dot-product": (x, scaled_dot_product, None),
#     "additive (untrained)": (x, additive, None),
#     "scaled, over another sequence": (y, scaled_dot_product, None),
# }
# panels = [
#     (name, attention(x, other, other, m, score)[1].detach(), None, None)
#     for name, (other, score, m) in settings.items()
# ]
# plotting.heatmaps(panels, across=4, largest=1.0, labels=("keys", "queries"));

# %% [markdown]
# Bright is a large weight. Unscaled dot products put nearly all weight on one key (a vector fits itself best: the
# diagonal). Scaling keeps the choice soft. The additive score starts almost even, because torch's first weights are small and so are
# its scores; with ten times larger ones it would not be. In the last panel the keys come from another sequence of five vectors: cross-attention.
#
# The paper prefers dot products because they are one matrix product. What does that save? For one score the arithmetic is of
# the same order, some 64 steps against a few times 64. But the additive score has to write out 64 numbers for every pair of query and key, and take a tanh of each, while a
# matrix product keeps only the sum, and processors are built for matrix products. On a CPU:

# %% tags=["active-ipynb"]
# from torch.utils.benchmark import Timer
#
# q, k = torch.randn(8, 200, 64), torch.randn(8, 200, 64)
# additive = AdditiveScore(64, 64)
# for name, f in ("scaled dot-product", scaled_dot_product), ("additive", additive):
#     with torch.no_grad():
#         timer = Timer("f(q, k)", globals=dict(f=f, q=q, k=k))
#         seconds = timer.blocked_autorange(min_run_time=0.1).median
#     print(f"{name}: {1e3 * seconds:.2f} ms")

# %% [markdown] tags=["question-05"]
# ## Why divide by $\sqrt{d_k}$?
#
# If the numbers in $q$ and $k$ are independent with mean 0 and variance 1, then $q \cdot k = \sum_{i=1}^{d_k} q_i k_i$
# is a sum of $d_k$ terms of variance 1: its variance is $d_k$. Wider keys give larger scores. Softmax of large scores
# is nearly all-or-nothing, and there its gradient is small: a change of the scores hardly moves the weights. The paper suspects that this is what hurts wide keys. Let us measure both, with and
# without the division.

# %% tags=["active-ipynb"]
# def score_variance_and_gradient(score, d_k, n=64):
#     q = torch.randn(200, n, d_k, dtype=torch.float64)
#     k = torch.randn(200, n, d_k, dtype=torch.float64)
#     logits = score(q, k).requires_grad_()
#     weights = logits.softmax(dim=-1)
#     # how much the scores still move a weight
#     gradient, = torch.autograd.grad(weights[..., 0].sum(), logits)
#     return logits.var().item(), gradient.norm(dim=-1).mean().item()

# %% tags=["active-ipynb"]
# sizes = [2, 4, 8, 16, 32, 64, 128, 256, 512]
# plain, scaled = (
#     [score_variance_and_gradient(score, d) for d in sizes]
#     for score in (dot_product, scaled_dot_product)
# )
# left, right = plotting.new_axes(5, 3.2, columns=2)
# variances = {"q·k": [v for v, _ in plain], "q·k / √d_k": [v for v, _ in scaled]}
# gradients = {"q·k": [g for _, g in plain], "q·k / √d_k": [g for _, g in scaled]}
# plotting.lines(sizes, variances, "d_k", "variance of the scores", log="xy", ax=left)
# plotting.lines(sizes, gradients, "d_k", "gradient of a weight", log="x", ax=right);

# %% tags=["active-ipynb"]
# # the variance is d_k without the scale, 1 with it
# assert all(abs(v / d - 1) < 0.1 for (v, _), d in zip(plain, sizes))
# assert all(abs(v - 1) < 0.1 for v, _ in scaled)
# assert plain[-1][1] < 0.5 * scaled[-1][1]  # gradient lost without it

# %% [markdown]
# Left: without the scale the variance is $d_k$, with it 1. Right: without it the gradient that reaches the scores
# shrinks as keys get wider; with the scale it stays. (At the paper's $d_k = 64$ a bit more than a third is left, at 512 an eighth.)
#
# And why **softmax**? It makes shares: positive, adding up to 1, so that the output is never larger than the largest value, however
# many keys there are. It is smooth, so it can be learned. And it can come as close to "take exactly that one" as it
# likes, by making one score larger than the rest. Dividing by the plain sum could give negative shares, and divide by 0.

# %% [markdown] tags=["question-04"]
# ## If attention is only a weighted sum, what makes it powerful?
#
# That the weights depend on the content. A convolution or a linear layer is a weighted sum too, but its weights are
# the same for every input. Here is a task that needs more: the input is eight pairs of a random name (a key) and a number (a
# value), in random order; the query is one of the names; the answer is the number beside it.

# %% tags=["active-ipynb"]
# names = F.normalize(torch.randn(4000, 8, 32), dim=-1)
# numbers = torch.randn(4000, 8, 1)
# wanted = torch.randint(0, 8, (4000,))
# answer = numbers[range(4000), wanted]  # (4000, 1)
# asked = names[range(4000), wanted][:, None]  # (4000, 1, 32)
# # the best eight weights for all inputs
# best_fixed = torch.linalg.lstsq(numbers[:, :, 0], answer).solution
# fixed_error = (numbers[:, :, 0] @ best_fixed - answer).square().mean().item()
# # times 20: the right name scores 20, so softmax is sharp
# found, _ = attention(20 * asked, names, numbers, score=dot_product)
# content_error = (found[:, 0] - answer).square().mean().item()
# print(f"mean squared error: best fixed weights {fixed_error:.3f}, "
#       f"weights from content {content_error:.5f}")

# %% tags=["active-ipynb"]
# # the best fixed weights hardly beat always guessing the mean
# assert fixed_error > 0.8 * answer.var().item()
# assert content_error < 0.05 * fixed_error

# %% [markdown]
# Fixed weights cannot know where the wanted name stands. The best they can do is to give each place one eighth, hardly
# better than always answering 0 (an error of 1). The same sum, with weights computed from the names, finds it. One attention layer is a
# look-up in a table that was made up a moment ago.

# %% [markdown] tags=["question-06"]
# ## If the token vectors themselves were Q, K and V, would anything be learned?
#
# Then each score would be $x_i \cdot x_j$. Nothing in it can be trained, except the vectors themselves. Two things are
# wrong with it: scores are symmetric, so "its" scores "cat" exactly as "cat" scores "its"; and a vector usually fits itself best,
# so nearly everything looks at itself. $W_Q$ and $W_K$ break both. A task: six kinds of token stand in random order, and each
# must fetch the content of the next kind (0 from 1, ..., 5 from 0). We compare attention without matrices and with trained $W_Q$ and $W_K$.

# %% tags=["active-ipynb"]
# kinds = torch.stack([torch.randperm(6) for _ in range(500)])
# partner = (kinds[:, :, None] + 1) % 6 == kinds[:, None, :]  # where each should look
# x = torch.randn(6, 24)[kinds]  # (500, 6, 24)
# W_Q, W_K = (torch.nn.Parameter(torch.randn(24, 24) / 24**0.5) for _ in range(2))
# optimizer = torch.optim.Adam([W_Q, W_K], lr=0.02)
# for _ in range(150):
#     learned = (scaled_dot_product(x @ W_Q, x @ W_K)).softmax(dim=-1)
#     loss = -learned[partner].log().mean()
#     optimizer.zero_grad()
#     loss.backward()
#     optimizer.step()
# without = attention(x, x, x)[1]
# print(f"weight on the right token: without matrices {without[partner].mean():.2f}, "
#       f"with them {learned[partner].mean():.2f}")

# %% tags=["active-ipynb"]
# order = kinds[0].argsort()
# panels = [
#     (title, w[0][order][:, order].detach(), range(6), range(6))
#     for title, w in [("no matrices", without), ("with W_Q and W_K", learned)]
# ]
# plotting.heatmaps(panels, largest=1.0, labels=("looks at", "token"))
# scores = scaled_dot_product(x, x)
# assert torch.allclose(scores, scores.transpose(1, 2), atol=1e-6)  # symmetric
# assert learned[partner].mean() > 0.9 > 0.3 > without[partner].mean()

# %% [markdown]
# Rows and columns are sorted by kind. Left, each kind looks at itself; right, at the next one, and 5 at 0. Could trained vectors do it without matrices? No. Token 1 would have to score token 2 above 0, token 2 score 3 above 1,
# and so on round the circle. Scores are symmetric, so each link's score would have to be larger than the one before, and after six links larger than itself.
#
# The values have a matrix too, $W_V$: what a token gives away need not be what it is found by.

# %% [markdown]
# ## Masks
#
# Sentences in a batch are padded to the same length. Nobody may look at padding: a mask over keys, the same for every
# head and every query.

# %%
def padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    """True where a token is real, for all heads and queries: (B, S) -> (B, 1, 1, S)."""
    return (tokens != pad_id)[:, None, None, :]


# %% [markdown]
# While training, the decoder sees the whole target at once, and must not peek: position $t$ may look at positions up to
# and including $t$ (Section 3.2.3). It holds word $t$ and has to name word $t + 1$: this is teacher forcing (notebook 01). The paper calls it masking out illegal connections; the field says causal.

# %%
def causal_mask(T: int, device: torch.device | None = None) -> Tensor:
    """True where the key is not later than the query: (T, T) (Section 3.2.3)."""
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


# %% tags=["active-ipynb"]
# tokens = torch.tensor([[5, 8, 2, 0, 0], [7, 7, 3, 9, 2]])  # 0 is padding
# both = padding_mask(tokens, pad_id=0) & causal_mask(5)  # (2, 1, 5, 5)
# panels = [
#     ("padding", padding_mask(tokens, 0)[0, 0].expand(5, 5), range(5), range(5)),
#     ("causal", causal_mask(5), range(5), range(5)),
#     ("both", both[0, 0], range(5), range(5)),
# ]
# plotting.heatmaps(panels, labels=("key", "query"))
# assert both[0, 0].sum().item() == 1 + 2 + 3 + 3 + 3

# %% [markdown]
# Yellow is allowed. One convention everywhere in this package: **True = may attend**, as in
# `F.scaled_dot_product_attention`. Beware: `torch.nn.MultiheadAttention` means the opposite.

# %% [markdown]
# ## Several heads
#
# One attention gives each position one blend. But a verb may need its subject *and* its object. So the paper runs $h = 8$
# attentions side by side (Section 3.2.2), each with its own matrices to a smaller width, and joins the results:
#
# $$\mathrm{MultiHead}(Q, K, V) = \mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h)\, W^O, \qquad
# \mathrm{head}_i = \mathrm{Attention}(QW_i^Q, KW_i^K, VW_i^V)$$
#
# With $d_k = d_v = d_{model} / h = 64$ this costs about as much as one wide head. The $h$ matrices are stored
# side by side, and the product is cut into heads:

# %% [markdown]
# | step | shape |
# |---|---|
# | in: `query`; `key` and `value` | $(B, T, d_{model})$; $(B, S, d_{model})$ |
# | times $W_Q$; $W_K$; $W_V$, cut into heads | $(B, h, T, d_k)$; $(B, h, S, d_k)$; $(B, h, S, d_v)$ |
# | weights: softmax of the scores | $(B, h, T, S)$ |
# | blends of values | $(B, h, T, d_v)$ |
# | heads side by side again | $(B, T, h\, d_v)$ |
# | out: times $W_O$ | $(B, T, d_{model})$ |

# %%
def split_heads(x: Tensor, h: int) -> Tensor:
    """Cut the last axis into heads: (B, n, h * d) -> (B, h, n, d)."""
    return x.unflatten(-1, (h, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """Heads side by side again: (B, h, n, d) -> (B, n, h * d)."""
    return x.transpose(1, 2).flatten(2)


# %% [markdown]
# The class has three places where something else may be put in: the function that attends (ours, or a faster one), a function that
# turns queries and keys by their position (`rotate`, notebook 07), and a cache, any object with `update(k, v)`, which hands back the
# keys and values of all positions so far (notebook 15 needs one, and defines it). With `h_kv` fewer than `h`, several heads of
# queries share one head of keys and values, as later models have it (Ainslie et al., 2023).

# %%
class MultiHeadAttention(nn.Module):
    """Concat(head_1, ..., head_h) W_O, head_i = Attention(Q W_Q_i, K W_K_i, V W_V_i).

    Section 3.2.2. The h projections of each kind stand side by side in one matrix. No
    biases, as in the paper. d_k and d_v default to d_model / h, h_kv (heads of keys and
    values) to h. attend(q, k, v, mask) -> output (B, h, T, d_v) and weights (or None).
    rotate(x, start): q or k (B, h, n, d_k), turned by position; start is that of the
    first. Raises ValueError for sizes that do not fit.
    """

    def __init__(self, d_model: int, h: int, d_k: int | None = None,
                 d_v: int | None = None, *, bias: bool = False, h_kv: int | None = None,
                 attend: Callable = scaled_dot_product_attention,
                 rotate: Callable | None = None):
        super().__init__()
        check_heads(d_model, h, d_k, d_v, h_kv)
        d_k, d_v = d_k or d_model // h, d_v or d_model // h
        self.h, self.h_kv = h, h_kv or h
        self.attend, self.rotate = attend, rotate
        self.W_Q = nn.Linear(d_model, h * d_k, bias)
        self.W_K = nn.Linear(d_model, self.h_kv * d_k, bias)
        self.W_V = nn.Linear(d_model, self.h_kv * d_v, bias)
        self.W_O = nn.Linear(h * d_v, d_model, bias)

    def keys_and_values(self, key: Tensor, value: Tensor,
                        start: int = 0) -> tuple[Tensor, Tensor]:
        """(B, S, d_model) each -> k (B, h_kv, S, d_k) and v (B, h_kv, S, d_v)."""
        k = split_heads(self.W_K(key), self.h_kv)
        v = split_heads(self.W_V(value), self.h_kv)
        return (k if self.rotate is None else self.rotate(k, start)), v

    def forward(self, query: Tensor, key: Tensor | None = None,
                value: Tensor | None = None, mask: Tensor | None = None,
                cache=None) -> Tensor:
        """query (B, T, d_model), key and value (B, S, d_model) -> (B, T, d_model).

        mask: boolean, broadcastable to (B, h, T, S). cache: any object with
        update(k, v), and with `length` for rotated positions; without key and value,
        what it holds is attended to.
        """
        check_mask(mask)
        start = getattr(cache, "length", 0)
        q = split_heads(self.W_Q(query), self.h)  # (B, h, T, d_k)
        if self.rotate is not None:
            q = self.rotate(q, start)
        k, v = (None, None) if key is None else self.keys_and_values(key, value, start)
        if cache is not None:
            k, v = cache.update(k, v)
        if self.h_kv < self.h:  # each head of keys and values serves several of queries
            k, v = (x.repeat_interleave(self.h // self.h_kv, dim=1) for x in (k, v))
        output, _ = self.attend(q, k, v, mask)  # (B, h, T, d_v)
        return self.W_O(join_heads(output))


# %% [markdown]
# The three uses of Section 3.2.3 are three ways of calling it. There is one output for each *query*, so the last has five, not the source's six. (In the model each use has a module with weights of its own.)

# %% tags=["active-ipynb"]
# heads = MultiHeadAttention(d_model=32, h=4)
# source, target = torch.randn(2, 6, 32), torch.randn(2, 5, 32)
# encoder_self = heads(source, source, source)
# decoder_self = heads(target, target, target, causal_mask(5))
# encoder_decoder = heads(target, source, source)
# for output in encoder_self, decoder_self, encoder_decoder:
#     print(tuple(output.shape))

# %% [markdown]
# ## Looking at the weights
#
# The weights are what people want to see, but a model that always kept them would fill its memory. So modules hand them
# out only inside a `with` block.

# %%
def recording(attend: Callable, kept: list) -> Callable:
    """attend(q, k, v, mask), which appends its weights (B, h, T, S) to the list `kept`.

    A faster form that hands out none has those of `scaled_dot_product_attention`.
    """
    def attend_and_keep(q, k, v, mask=None):
        output, weights = attend(q, k, v, mask)
        if weights is None:
            weights = scaled_dot_product_attention(q, k, v, mask)[1]
        kept.append(weights.detach())
        return output, weights

    return attend_and_keep


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict]:
    """Inside the block, collect the weights of every `MultiHeadAttention` in model.

    Yields {name of the module: [weights (B, h, T, S) of each call]}.
    """
    heads = {name: module for name, module in model.named_modules()
             if isinstance(module, MultiHeadAttention)}
    before = {name: module.attend for name, module in heads.items()}
    record = {name: [] for name in heads}
    for name, module in heads.items():
        module.attend = recording(module.attend, record[name])
    try:
        yield record
    finally:
        for name, module in heads.items():
            module.attend = before[name]


# %% tags=["active-ipynb"]
# with record_attention(heads) as record:
#     heads(target, target, target, causal_mask(5))
# weights = record[""][0][0]  # (h, T, T)
# panels = [(f"head {i + 1}", weights[i], range(5), range(5)) for i in range(4)]
# plotting.heatmaps(panels, largest=1.0, labels=("looks at", "position"));

# %% [markdown]
# `record` maps a module's name (here empty: it is the module itself) to a list of calls; shown is the first sentence of
# the first call. An untrained model looks at everything it may, without a plan: the first row has one choice, the last has five.

# %% [markdown]
# ## Checks
#
# **Multi-head attention equals torch's** `nn.MultiheadAttention` with the same weights, forwards and in the gradient.
# Torch's mask means the opposite, hence the `~`.

# %% tags=["active-ipynb"]
# theirs = torch.nn.MultiheadAttention(32, 4, bias=False, batch_first=True)
# matrices = [heads.W_Q.weight, heads.W_K.weight, heads.W_V.weight]
# theirs.in_proj_weight.data = torch.cat(matrices).detach()
# theirs.out_proj.weight.data = heads.W_O.weight.detach().clone()
# ours_out = heads(target, target, target, causal_mask(5))
# theirs_out, _ = theirs(target, target, target, attn_mask=~causal_mask(5))
# ours_out.square().sum().backward()
# theirs_out.square().sum().backward()
# gradient = torch.cat([matrix.grad for matrix in matrices])
# differences = (ours_out - theirs_out), (gradient - theirs.in_proj_weight.grad)
# print("largest differences: output {:.1e}, gradient {:.1e}".format(
#     *(difference.abs().max() for difference in differences)))

# %% tags=["active-ipynb"]
# assert torch.allclose(ours_out, theirs_out, atol=1e-5)
# assert torch.allclose(gradient, theirs.in_proj_weight.grad, atol=1e-5)

# %% [markdown]
# **Step by step with a cache equals all at once.** One position at a time, each seeing only the past, gives what the
# causal mask gives in one go. The smallest cache there is keeps a list of what came before:

# %% tags=["active-ipynb"]
# class Notes(list):
#     def update(self, k, v):
#         self.append((k, v))
#         return [torch.cat(parts, dim=2) for parts in zip(*self)]
#
# notes = Notes()
# steps = [heads(new, new, new, cache=notes) for new in target.split(1, dim=1)]
# assert torch.allclose(torch.cat(steps, dim=1), decoder_self, atol=1e-6)

# %% [markdown]
# **Causal means causal.** Changing the last position changes no earlier output, not even by rounding.

# %% tags=["active-ipynb"]
# changed = torch.cat([target[:, :4], torch.randn(2, 1, 32)], dim=1)
# before = heads(target, target, target, causal_mask(5))
# after = heads(changed, changed, changed, causal_mask(5))
# assert torch.equal(after[:, :4], before[:, :4])

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** Self-attention without positions does not know word order. If the words are permuted, what comes out? Write the
# output of `heads` on the permuted words with the help of `encoder_self`, the output on the words in order.

# %% tags=["active-ipynb"]
# permuted = source[:, [3, 1, 5, 0, 2, 4]]
# your_answer = ...
# if your_answer is not ...:
#     assert torch.allclose(heads(permuted, permuted, permuted), your_answer, atol=1e-6)

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_answer = encoder_self[:, [3, 1, 5, 0, 2, 4]]`: the same outputs in the new order, and nothing else. "Dog bites man" and
# "man bites dog" look alike to this layer. Notebook 07 adds positions to the embeddings to mend that.
# </details>
#
# **2.** Let each position see itself and the two before it, and nothing else: a window of 3. (Section 4 of the paper proposes such
# a restriction, with a window centred on the position.) Build the boolean (T, T) mask for a window of r positions.

# %% tags=["active-ipynb"]
# def window_mask(T, r):
#     return ...
#
# distance = torch.arange(8)[:, None] - torch.arange(8)
# if window_mask(8, 3) is not ...:
#     for r in (1, 3):
#         weights = masked_softmax(0.0 * distance, window_mask(8, r))
#         assert torch.equal(weights > 0, (distance >= 0) & (distance < r))

# %% [markdown]
# <details><summary>Solution</summary>
#
# `return causal_mask(T) & ~causal_mask(T).tril(-r)`: the lower triangle without the part that lies r or more places back.
# </details>

# %% [markdown]
# ## Next
#
# [05 Position-wise networks](05_feed_forward.ipynb) does the thinking between two rounds of attention. In Colab the next
# notebook imports this module from the installed package; to try changes of your own, clone the repository and install it
# with `pip install -e .`.
