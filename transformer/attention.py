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
# Attention is the only way in which the words of a Transformer exchange information (Section 3.2). This notebook starts
# from a plain average and ends with several heads and masks. On the way it trains small heads to see what each part is
# for, and it looks into a trained model to see where "its" looks. Reading takes about 30 minutes, running under one.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import math

import torch
from torch import Tensor, nn

# %% tags=["active-ipynb"]
# # what only pictures, trainings and checks need: not part of the module
# from functools import partial
#
# import torch.nn.functional as F
#
# from transformer import load
# from transformer.teaching import toys
# from transformer.views import diagrams, plotting
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small a second thread only waits

# %% [markdown]
# ## A plain average, and a better one
#
# To understand "his" in "Tom feeds his dog", a reader has to think of Tom. A word is a vector, so "his" has to take something from
# Tom's vector. Here each word has three numbers, chosen by hand: how much it is a living being, an action, and in want of an owner.
#
# The simplest way to hear of the others is the plain average: each word takes $1/4$ of each vector. Then all get the same, and
# nobody learns that "his" belongs to Tom. So let the weights depend on the vectors. Let the inner product $x_i \cdot x_j$ be the **score** of word $j$ for word $i$, and let softmax turn a
# row of scores into *weights*, shares that are positive and add up to 1: $\mathrm{softmax}(s)_j = e^{s_j} / \sum_m e^{s_m}$.

# %% tags=["active-ipynb"]
# words = ["Tom", "feeds", "his", "dog"]
# x = torch.tensor([[2.0, 0, 0], [0, 2, 0], [0, 0, 2], [1, 0, 0]])  # (4 words, 3)
# plain = torch.full((4, 4), 1 / 4)  # row: the word that takes; column: from which
# print("every word gets the average", (plain @ x)[0].tolist())
# alike = (x @ x.T).softmax(dim=1)
# panels = [
#     ("a plain average", plain, words, words),
#     ("weights from x alone", alike, words, words),
# ]
# plotting.heatmaps(
#     panels,
#     values=True,
#     width=3.2,
#     height=2.9,
#     largest=1.0,
#     labels=("takes from", "word"),
# );

# %% [markdown]
# Now each word has weights of its own, but the wrong ones: every word takes most from itself, or from a word that is like it. "His" is not like Tom. And "his" needs Tom, while Tom does not need "his"; but no vectors would let "his" score Tom higher than Tom scores "his", because $x_i \cdot x_j = x_j \cdot x_i$.

# %% [markdown] tags=["question-01"]
# ## Queries, keys and values
#
# A word has three roles, and they need not look alike. Think of a library. You come with an interest (the **query**).
# Each book has a label on its spine (the **key**) and contents (the **value**). A dictionary gives you the one
# entry whose key equals your query. Attention is the soft version: it scores how well each label fits your interest,
# turns the scores into weights, and hands you a blend of the contents with those weights.
#
# Here are three books, with labels for (cooking, history), and your interest, which is cooking only:

# %% tags=["active-ipynb"]
# query = torch.tensor([2.0, 0.0])  # interested in cooking, not in history
# keys = torch.tensor([[3.0, 0.0], [1.0, 2.0], [0.0, 3.0]])  # the labels of three books
# values = torch.tensor([[100.0], [40.0], [0.0]])  # what is in them: pages with recipes
# scores = keys @ query  # how well each label fits
# weights = scores.softmax(dim=0)
# answer = (weights @ values).item()
# print("scores", scores.tolist(), " weights", [round(w, 3) for w in weights.tolist()])
# powers = [math.exp(6), math.exp(2), 1]
# by_hand = (powers[0] * 100 + powers[1] * 40 + powers[2] * 0) / sum(powers)
# assert abs(by_hand - answer) < 1e-4
# print(f"answer {answer:.2f} pages, and {by_hand:.2f} by hand")

# %% [markdown]
# Weights change smoothly with the numbers, so a gradient can improve labels and interests.

# %% [markdown]
# ## One sentence with every number
#
# In a Transformer three learned matrices make query, key and value from a word's vector:
# $Q = xW_Q$, $K = xW_K$, $V = xW_V$. Here they are chosen by hand. A being asks for an action. An action asks for a being, and so does, twice as loudly, a word in want of an owner. The key says what a word is. The two numbers of a value mean nothing in particular. Scores are divided by $\sqrt 2$ because a key has 2 numbers; what for, we measure below.

# %% tags=["active-ipynb"]
# #                      being     action   wants an owner
# W_Q = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0]])  # asks for (being, action)
# W_K = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])  # is a (being, action)
# W_V = torch.tensor([[1.0, 3.0], [2.0, 0.0], [0.0, 0.0]])  # what it gives away
# Q, K, V = x @ W_Q, x @ W_K, x @ W_V
# scores = Q @ K.T / math.sqrt(2)
# weights = scores.softmax(dim=1)
# output = weights @ V
# kinds = ["being", "action", "wants"]
# steps = [
#     ("x", x, kinds, words),
#     ("Q = x W_Q: asks for", Q, kinds[:2], words),
#     ("K = x W_K: is", K, kinds[:2], words),
#     ("V = x W_V", V, None, words),
#     ("scores Q Kᵀ / √2", scores, words, words),
#     ("weights", weights, words, words),
#     ("output = weights V", output, None, words),
# ]
# plotting.heatmaps(steps, values=True, width=2.5, height=2.6)
# powers = [math.exp(4 * 2 / 2**0.5), 1, 1, math.exp(4 * 1 / 2**0.5)]
# his = [p / sum(powers) for p in powers]
# by_hand = [his[0] * 2 + his[1] * 4 + his[3] * 1, his[0] * 6 + his[3] * 3]
# assert torch.allclose(output[2], torch.tensor(by_hand), atol=1e-5)
# print("his:", [round(w, 3) for w in his], "->", [round(o, 2) for o in by_hand])

# %% [markdown]
# The vector of "his" is $(0, 0, 2)$, so its query is $2 \cdot (2, 0) = (4, 0)$. Tom's key is $(2, 0)$, the
# dog's $(1, 0)$: the scores are $4 \cdot 2 / \sqrt 2 = 5.66$, $0$, $0$ and $2.83$. Their powers of $e$, $286$, $1$, $1$ and $16.9$, add up to $305$,
# which makes the weights $0.938$, $0.003$, $0.003$ and $0.055$. The output mixes
# values by these weights: Tom's $(2, 6)$, $(4, 0)$ of "feeds", and the dog's $(1, 3)$. "His" looks at Tom, and Tom looks at "feeds".
#
# ## The parts, one by one
#
# After the paper's Figure 2: what we just did (left; the mask comes later), and what several heads do (right), from below:

# %% tags=["active-ipynb"]
# diagrams.attention_and_heads()

# %% [markdown]
# **Scores.** Section 3.2.1 names two ways of scoring. One is the inner product: with $T$
# queries and $S$ keys, one matrix product gives a table of $T \times S$ scores. The paper divides it by
# $\sqrt{d_k}$, where $d_k$ is the width of a key. The older way is `AdditiveScore` of [notebook 01](01_recurrence.ipynb), a small network,
# $w^\top \tanh(W q + U k)$, in which query and key meet in a sum. The code divides the queries before the product, since undivided scores could overflow 16-bit numbers (fp16).


# %%
def dot_product(q: Tensor, k: Tensor) -> Tensor:
    """q . k (Luong et al., 2015): q (..., T, d_k), k (..., S, d_k) -> (..., T, S)."""
    return q @ k.transpose(-2, -1)


def scaled_dot_product(q: Tensor, k: Tensor) -> Tensor:
    """q . k / sqrt(d_k), the score of equation 1; shapes as in `dot_product`."""
    return dot_product(q / math.sqrt(q.shape[-1]), k)


# %% [markdown]
# **Weights.** Padding and words not yet written must get no weight. A **mask** says who may be looked at (True). The paper
# writes $-\infty$ over forbidden scores (Section 3.2.3). In a row where *everything* is forbidden (as in a sentence that is all padding), softmax would then divide 0 by 0, and one NaN spreads through the model.
# **We write the lowest finite number instead, and set forbidden weights to zero afterwards.** Such a row gives zeros, forwards and backwards.


# %%
def masked_softmax(logits: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the last axis, among the positions where mask is True.

    logits: (..., T, S); mask: boolean, broadcastable to it, True = may attend. A row
    with no allowed position becomes zeros (and passes zero gradient back), on every
    version of torch.
    """
    if mask is None:
        return logits.softmax(dim=-1)
    lowest = torch.finfo(logits.dtype).min
    return logits.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


# %% [markdown]
# **Attention** is then two lines: scores become weights, and weights mix the values. Equation 1 of the paper:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$


# %%
def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(d_k)) V, equation 1 (Section 3.2.1).

    q: (..., T, d_k), k: (..., S, d_k), v: (..., S, d_v); mask as in `masked_softmax`.
    Returns the output (..., T, d_v) and the weights (..., T, S).
    """
    weights = masked_softmax(scaled_dot_product(q, k), mask)
    return weights @ v, weights


# %% tags=["active-ipynb"]
# logits = torch.tensor([[1.0, 2.0, 3.0]] * 3, requires_grad=True)
# allowed = torch.tensor(
#     [
#         [True, True, True],  # everything
#         [True, True, False],  # not the last
#         [False, False, False],  # nothing
#     ]
# )
# weights = masked_softmax(logits, allowed)
# weights.square().sum().backward()
# assert torch.allclose(weights[1, :2], torch.tensor([1.0, 2.0]).softmax(0))
# assert weights[2].eq(0).all() and logits.grad[2].eq(0).all()
# print(weights.detach())
# print("nothing allowed: weights 0, gradient 0")
# assert torch.allclose(attention(Q, K, V)[0], output)
# q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 6)
# mask = (torch.rand(2, 1, 4, 5) < 0.7) | (torch.arange(5) == 0)
# ours, weights = attention(q, k, v, mask)
# theirs = F.scaled_dot_product_attention(q, k, v, mask)
# assert ours.shape == (2, 3, 4, 6) and weights.shape == (2, 3, 4, 5)
# assert torch.allclose(ours, theirs, atol=1e-6)
# print(f"largest difference from torch's: {(ours - theirs).abs().max():.0e}")

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
# | multi-head | how often it happens side by side, each time with other matrices |
#
# Here are four settings of the first two rows, with the same seven random vectors as queries: the weights are the softmax of other scores, or of scores with other keys. Both kinds of score are timed:

# %% tags=["active-ipynb"]
# from transformer.recurrence import AdditiveScore
# from transformer.teaching.measuring import turns
#
# x, y, additive = torch.randn(7, 16), torch.randn(5, 16), AdditiveScore(16, 32)
# settings = {
#     "dot-product": (x, dot_product),
#     "scaled": (x, scaled_dot_product),
#     "additive (untrained)": (x, additive),
#     "scaled, other sequence": (y, scaled_dot_product),
# }
# panels = [
#     (name, masked_softmax(score(x, other)).detach(), None, None)
#     for name, (other, score) in settings.items()
# ]
# plotting.heatmaps(panels, largest=1.0, labels=("keys", "queries", "weight"))
# scores = {
#     "scaled": lambda x: scaled_dot_product(x, x),
#     "additive": lambda x: additive(x, x),
# }
# seconds = turns(scores, torch.ones(500, 16), seconds=0.2)
# product, network = (min(seconds[name]) for name in scores)
# print(
#     f"500 queries with 500 keys: {1000 * product:.2f} ms by product, "
#     f"{1000 * network:.0f} ms by the additive network of 32 hidden units"
# )

# %% [markdown]
# In the first three panels each vector is query and key at once. With a product each vector fits itself best, by far so without the scale. The additive score starts almost even.
# In the last panel the keys come from another sequence: cross-attention.

# %% [markdown]
# ## A task to learn
#
# The input is four pairs of a name and a random number (mean 0, variance 1), in random order, and one of the names is asked for. The answer is the number beside it. Names are random vectors from a stock of 32. One attention with matrices of its own, a *head*, learns this: it has a $W_Q$ and a $W_K$, and the numbers are its values. Its
# error is the mean square of answer minus number; always answering 0 has an error of 1. Each network is trained from three or five starts, and every example draws names and numbers anew. Some are tested with 16 pairs, too, and with names that they were never trained on.

# %% tags=["active-ipynb"]
# class LookUp(nn.Module):
#     """One head that finds the number beside a name."""
#
#     def __init__(self, d_model, d_k, score=scaled_dot_product, start=1.0):
#         super().__init__()
#         std = start / math.sqrt(d_model)  # with start = 1, q and k have variance 1
#         self.W_Q = nn.Parameter(std * torch.randn(d_model, d_k))
#         self.W_K = nn.Parameter(std * torch.randn(d_model, d_k))
#         self.score = score
#
#     def forward(self, asked, names, numbers):
#         # (B, 1, d_model), (B, n, d_model), (B, n, 1) -> (B, 1)
#         q, k = asked @ self.W_Q, names @ self.W_K
#         weights = masked_softmax(self.score(q, k))
#         return (weights @ numbers)[:, 0]

# %% [markdown] tags=["question-04"]
# ## If attention is only a weighted sum, what makes it powerful?
#
# A convolution is a weighted sum too, with the same weights for every input. Fixed weights cannot
# know where the wanted name stands: the best they can do here is to give each place a quarter, with an error of $(3/4)^2 + 3\,(1/4)^2 = 3/4$. Two rivals are stronger. One is a network with two hidden
# layers that sees the whole input. The other sends each pair, with the name asked for, through one small network and adds up the results. (Each has one learning rate, which was not searched.)

# %% tags=["active-ipynb"]
# def layers(d_in, width):
#     return nn.Sequential(
#         nn.Linear(d_in, width),
#         nn.ReLU(),
#         nn.Linear(width, width),
#         nn.ReLU(),
#         nn.Linear(width, 1),
#     )
#
#
# class WholeInput(nn.Module):
#     """A network with a place for each of four pairs and for the name asked for."""
#
#     def __init__(self, d_model, width):
#         super().__init__()
#         self.layers = layers(4 * (d_model + 1) + d_model, width)
#
#     def forward(self, asked, names, numbers):
#         parts = asked, names, numbers
#         return self.layers(torch.cat([part.flatten(1) for part in parts], dim=1))
#
#
# class EachPair(nn.Module):
#     """One network for each pair, with the name asked for; the results are added."""
#
#     def __init__(self, d_model, width):
#         super().__init__()
#         self.layers = layers(2 * d_model + 1, width)
#
#     def forward(self, asked, names, numbers):
#         pairs = torch.cat([asked.expand_as(names), names, numbers], dim=-1)
#         return self.layers(pairs).sum(dim=1)

# %% tags=["active-ipynb"]
# known, new = torch.randn(32, 16), torch.randn(32, 16)  # names to train with, and others
# rivals = {
#     "whole input": (lambda: WholeInput(16, 256), 1500, 0.002),
#     "each pair": (lambda: EachPair(16, 64), 500, 0.003),
#     "attention": (lambda: LookUp(16, 32), 400, 0.01),
# }
# tests = {"known names": (known, 4), "new names": (new, 4), "16 pairs": (known, 16)}
# measured = {}
# for name, (make, steps, lr) in rivals.items():
#     batch = partial(toys.look_ups, known, runs=3, count=64)
#     _, networks = toys.train_several(make, batch, steps, lr, runs=3)
#     size = sum(p.numel() for p in networks[0].parameters())
#     print(f"{name}: {size:,} parameters, {64 * steps:,} examples")
#     for test, (names, n) in tests.items():
#         if name == "whole input" and n > 4:
#             continue  # it has no place for them
#         task = toys.look_ups(names, n, runs=3, count=1000)
#         errors = measured[name, test] = toys.errors_of(networks, task)
#         print(f"    {test}: error {errors.mean():.3f} ± {errors.std():.3f}")
# _, _, numbers, right = toys.look_ups(known, count=1000)
# best_fixed = (numbers.mean(dim=2) - right).square().mean().item()
# worst = {name: error.max() for name, error in measured.items()}
# lowest = {name: error.min() for name, error in measured.items()}
# assert worst["attention", "known names"] < 0.02 < lowest["whole input", "known names"]
# assert worst["attention", "new names"] < lowest["each pair", "new names"]
# print(f"fixed weights {best_fixed:.2f}; attention is best on new names and 16 pairs")

# %% [markdown]
# The "±" is the standard deviation over the starts.
# - *Weights that depend on the content*: a sum with fixed weights stays near $0.75$.
# - *The same rule for every place*: the network on the whole input has a larger error in spite of more parameters and more examples, and no place for a fifth pair.
# - *Comparing by a product, and weights that add up to 1*: the network for each pair has neither. Its error is small, too, with the names and the length of its training, and larger beyond them (how much may depend on its rate).
#
# Attention is a look-up in a table that the input brings along.

# %% [markdown] tags=["question-05"]
# ## Why divide by $\sqrt{d_k}$, and why softmax?
#
# If the numbers in $q$ and $k$ are independent with mean 0 and variance 1, $q \cdot k = \sum_{i=1}^{d_k} q_i k_i$
# has variance $d_k$. Wider keys give larger scores, and softmax of large
# scores puts nearly all weight on one key. There a small change of the scores hardly changes the weights. The paper suspects that
# this small gradient is what hurts wide keys. Here are 1,000 random queries with 64 random keys and values each: the gradient of the
# output at the scores, the share of rows with more than $0.999$ on one key (call them dead), and the gradient at $q$.

# %% tags=["active-ipynb"]
# def rows(score, d_k, n=64):
#     q, k, v = (
#         torch.randn(1000, *size, dtype=torch.float64, requires_grad=True)
#         for size in ((1, d_k), (n, d_k), (n, 1))
#     )
#     logits = score(q, k)
#     weights = logits.softmax(dim=-1)
#     gradients = torch.autograd.grad((weights @ v).sum(), (logits, q))
#     at_scores, at_q = (g.norm(dim=-1).flatten().sort().values for g in gradients)
#     dead = (weights.amax(dim=-1) > 0.999).double().mean()
#     return {
#         "gradient at the scores": {
#             "median": at_scores[500],
#             "10th percentile": at_scores[100],
#         },
#         "dead rows": {"share": dead},
#         "gradient at q": {"median": at_q[500], "90th percentile": at_q[900]},
#         "variance": logits.var(),
#     }
#
#
# sizes = [4, 16, 64, 256, 1024]
# plain, scaled = (
#     [rows(score, d) for d in sizes] for score in (dot_product, scaled_dot_product)
# )

# %% tags=["active-ipynb"]
# axes = plotting.new_axes(3.9, 3.4, columns=3)
# for ax, title, ylabel, log in zip(
#     axes, plain[0], ("norm", "share of rows", "norm"), ("xy", "x", "xy")
# ):
#     curves = {
#         f"{kind}, {name}": [row[title][kind] for row in some]
#         for name, some in (("q·k", plain), ("q·k / √d_k", scaled))
#         for kind in plain[0][title]
#     }
#     plotting.lines(sizes, curves, "d_k", ylabel, title, log, ax, markers=True)
#     ax.set_xticks(sizes, sizes)
# least, most = "10th percentile", "90th percentile"
# at_scores, at_q = "gradient at the scores", "gradient at q"
# assert plain[2][at_scores][least] < 0.05 * scaled[2][at_scores][least]
# assert plain[3]["dead rows"]["share"] > 0.2 and scaled[3]["dead rows"]["share"] == 0
# assert plain[3][at_q][most] > 5 * scaled[3][at_q][most]
# for name, row in (("q·k", plain[3]), ("q·k / √d_k", scaled[3])):
#     print(
#         f"d_k = 256, {name}: scores of variance {row['variance']:.1f}, "
#         f"{row['dead rows']['share']:.0%} of rows dead"
#     )

# %% [markdown]
# Unscaled, the smallest gradients at the scores vanish first, and at $d_k = 256$ 30% of all rows are dead. The scale also divides the gradient at $q$, a weighted sum of keys. So without it most rows get a larger one up to $d_k = 64$; at 1,024 a few get a huge one, and half almost none.
#
# Does it hurt learning? The look-up is trained at three widths with four scores, each at the best of three learning rates. The second score has no division, but
# $W_Q$ and $W_K$ start smaller, so that scores start with variance 1.

# %% tags=["active-ipynb"]
# flavours = {
#     "q·k": lambda d_k: LookUp(16, d_k, dot_product),
#     "q·k, smaller start": lambda d_k: LookUp(16, d_k, dot_product, d_k**-0.25),
#     "q·k / √d_k": lambda d_k: LookUp(16, d_k),
#     "additive": lambda d_k: LookUp(16, d_k, AdditiveScore(d_k, 32)),
# }
#
#
# def at_best_rate(make):
#     batch = partial(toys.look_ups, known)
#     trained = [toys.train_several(make, batch, 200, lr) for lr in (0.003, 0.01, 0.03)]
#     return min(trained, key=lambda run: run[0][-50:].mean())
#
#
# trained = {
#     (d_k, name): at_best_rate(partial(make, d_k))
#     for d_k in (16, 64, 256)
#     for name, make in flavours.items()
# }
# for ax, d_k in zip(plotting.new_axes(3.9, 3.4, columns=3, sharey=True), (16, 64, 256)):
#     # 200 steps of 5 starts: the mean over starts, and then over every ten steps
#     curves = {
#         name: trained[d_k, name][0].mean(dim=1).unflatten(0, (20, 10)).mean(dim=1)
#         for name in flavours
#     }
#     plotting.lines(range(10, 201, 10), curves, "step", "error", f"d_k = {d_k}", "y", ax)
# for (d_k, name), (losses, networks) in trained.items():
#     end = losses[-50:].mean(dim=0)
#     on_new = toys.errors_of(networks, toys.look_ups(new, count=1000))
#     print(
#         f"d_k = {d_k:3}, {name:18} error {end.mean():.4f} ± {end.std():.4f}, "
#         f"new names {on_new.mean():.3f} ± {on_new.std():.3f}"
#     )
# ends = {key: losses[-50:].mean(dim=0) for key, (losses, _) in trained.items()}
# plain, others = (
#     ends[256, "q·k"],
#     (("q·k, smaller start", 5), ("q·k / √d_k", 5), ("additive", 2)),
# )
# for name, factor in others:
#     assert plain.min() > ends[256, name].max(), name
#     assert plain.mean() > factor * ends[256, name].mean(), name
# print("at d_k = 256 the plain product learns worst; a smaller start mends it")

# %% [markdown]
# The plain product gets worse as keys get wider. A smaller start mends most of it without any division: at 16 the division ends lower, at 256 perhaps the smaller start. The additive score is no better than the plain product at 16; at 64 and 256 it lies between the plain product and the scaled one. Names it has never seen it hardly finds at all; products find them. The paper's reasons for products are speed and memory: all scores are one matrix product.
#
# And why **softmax**? Here the same head learns with other ways from scores to weights, all at one learning rate; of five starts the middle error is shown:

# %% tags=["active-ipynb"]
# class OtherShares(LookUp):
#     """The head with another way from scores to weights."""
#
#     def __init__(self, shares):
#         super().__init__(16, 64)
#         self.shares = shares
#
#     def forward(self, asked, names, numbers):
#         scores = scaled_dot_product(asked @ self.W_Q, names @ self.W_K)
#         return (self.shares(scores) @ numbers)[:, 0]
#
#
# def over_sum(x):
#     return x / (x.sum(dim=-1, keepdim=True) + 1e-6)
#
#
# ways = {
#     "softmax": partial(torch.softmax, dim=-1),
#     "positive parts over their sum": lambda scores: over_sum(scores.relu()),
#     "squares over their sum": lambda scores: over_sum(scores.square()),
#     "scores over their sum": over_sum,
# }
# for name, way in ways.items():
#     batch = partial(toys.look_ups, known)
#     _, networks = toys.train_several(partial(OtherShares, way), batch, 300, 0.01)
#     tests = [toys.look_ups(known, n, count=1000) for n in (4, 16)]
#     errors = [toys.errors_of(networks, test).sort().values for test in tests]
#     said = [f"{e[2]:.3g} (worst {e[4]:.3g})" for e in errors]
#     print(f"{name}: error with 4 pairs {said[0]}, with 16 pairs {said[1]}")
#     if name == "softmax":
#         assert errors[1][4] < 0.05
#     else:
#         assert errors[1][0] > 0.1
# print("softmax has the smallest error, and alone keeps it small among 16 pairs")

# %% [markdown]
# Plain scores can be negative, so that their sum comes near 0 and shares explode: hence the errors in the hundreds. Softmax has two more properties, and each of the others lacks one or both: a score some units above the rest gets nearly all weight, even among many pairs, and no weight is exactly 0, so every score has a gradient, however small. Which decides here, we do not know.

# %% [markdown] tags=["question-06"]
# ## If the token vectors themselves were Q, K and V, would anything be learned?
#
# Something could: the vectors themselves. Is that enough? Six kinds of token
# stand in random order, each with a random number beside it, and each has to fetch the number of another kind: partners (0 and 1,
# 2 and 3, 4 and 5 from each other), or round a ring (0 from 1, ..., 5 from 0). Three
# networks learn vectors for the kinds (each with its number beside it): the first has nothing else, in the second no token may look at itself, and the third has $W_Q$ and $W_K$. (The values are the numbers; $W_V$ lets a word give away something else than what it is found by.)

# %% tags=["active-ipynb"]
# class Fetch(nn.Module):
#     """Six kinds of token; each fetches the number of another."""
#
#     def __init__(self, mask=None, matrices=False):
#         super().__init__()
#         self.vectors = nn.Parameter(torch.randn(6, 15))
#         start = [torch.randn(16, 16) / 4 for _ in range(2)]
#         self.W = nn.ParameterList(start) if matrices else None
#         self.mask = mask
#
#     def forward(self, kinds, numbers):  # (B, 6, 6) one-hot, (B, 6, 1)
#         # the number is part of what is compared, too
#         x = torch.cat([kinds @ self.vectors, numbers], dim=-1)  # (B, 6, 16)
#         q, k = (x, x) if self.W is None else (x @ self.W[0], x @ self.W[1])
#         return attention(q, k, numbers, self.mask)[0]
#
#
# tasks = {"partners": [1, 0, 3, 2, 5, 4], "ring": [1, 2, 3, 4, 5, 0]}
# others = ~torch.eye(6).bool()
# networks = {
#     "vectors alone": Fetch,
#     "vectors, not itself": partial(Fetch, others),
#     "W_Q and W_K": partial(Fetch, matrices=True),
# }
# ends = {}
# print("error of five starts: mean, lowest to highest")
# for task, partner in tasks.items():
#     for name, make in networks.items():
#         batch = partial(toys.fetches, partner)
#         losses, _ = toys.train_several(make, batch, 300, 0.03)
#         end = ends[task, name] = losses[-50:].mean(dim=0)
#         print(f"{task}, {name}: {end.mean():.3f}, {end.min():.3f} to {end.max():.3f}")
# assert all(ends[task, "W_Q and W_K"].max() < 0.01 for task in tasks)
# assert ends["partners", "vectors, not itself"].max() < 0.01
# assert ends["ring", "vectors, not itself"].min() > 0.2

# %% [markdown]
# Vectors alone fail at both: of two partners, the longer vector fits itself at least as well. Kept from itself, a token finds its partner. The ring stays out of reach: each token must score the next above the one before, and symmetric scores would then rise all the way round, for ever. $W_Q$ and $W_K$ lift both limits.
#
# ## Masks
#
# Padding at the end of sentences is hidden by a mask over keys, the same for every head and query. In training the decoder gets the whole target at once and must not peek: position $t$ may look at positions up to
# and including $t$ (Section 3.2.3). Such a mask is called *causal*.


# %%
def padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    """True where a token is real, for all heads and queries: (B, S) -> (B, 1, 1, S)."""
    return (tokens != pad_id)[:, None, None, :]


def causal_mask(T: int, device: torch.device | None = None) -> Tensor:
    """True where the key is not later than the query: (T, T) (Section 3.2.3)."""
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


# %% tags=["active-ipynb"]
# tokens = torch.tensor([[5, 8, 2, 0, 0], [7, 7, 3, 9, 2]])  # 0 is padding
# padding, causal = padding_mask(tokens, pad_id=0), causal_mask(5)
# both = padding & causal  # (2, 1, 5, 5)
# panels = [
#     ("padding", padding[0, 0].expand(5, 5), range(5), range(5)),
#     ("causal", causal, range(5), range(5)),
#     ("both", both[0, 0], range(5), range(5)),
# ]
# plotting.heatmaps(panels, largest=1.0, labels=("key", "query", "allowed"))
# assert both[0, 0].sum().item() == 1 + 2 + 3 + 3 + 3
# print("allowed for the first sentence:", both[0, 0].sum(dim=1).tolist())

# %% [markdown]
# Yellow is allowed, for the first sentence. One convention holds everywhere in this package: **True = may attend**. In `torch.nn.MultiheadAttention` True means the opposite.

# %% [markdown]
# ## Several heads
#
# The paper runs $h = 8$ attentions side by side (Section 3.2.2), each with matrices of its own to a smaller width, and joins the results:
#
# $$\mathrm{MultiHead}(Q, K, V) = \mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h)\, W^O, \qquad
# \mathrm{head}_i = \mathrm{Attention}(QW_i^Q, KW_i^K, VW_i^V)$$
#
# As in the paper, $Q$, $K$ and $V$ stand here for the vectors *before* the matrices: $QW_i^Q$ is what we called $Q$ above. $W^O$ mixes what the heads have found. With $d_k = d_v = d_{model} / h = 64$ this costs about as much as one wide head. The matrices of all heads are stored
# side by side, and the product is cut into heads. The picture follows the queries; keys and values are cut the same way.

# %% tags=["active-ipynb"]
# diagrams.splitting_heads()


# %%
def split_heads(x: Tensor, h: int) -> Tensor:
    """Cut the last axis into heads: (B, n, h * d) -> (B, h, n, d)."""
    return x.unflatten(-1, (h, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """Heads side by side again: (B, h, n, d) -> (B, n, h * d)."""
    return x.transpose(1, 2).flatten(2)


# %% [markdown]
# `MultiHeadAttention` multiplies by its matrices, splits, attends, joins, and multiplies by $W^O$. With `from transformer import ...` the models get a larger form of this class, with the same matrices under the same names (`transformer/fast/attention.py`). Its switches are for later notebooks: it can turn queries and keys by position ([07](07_positions.ipynb)), let several heads of queries share one head of keys and values (Ainslie et al., 2023), attend by another function, and keep the keys and values of earlier words ([15](15_decoding.ipynb)).


# %%
class MultiHeadAttention(nn.Module):
    """Concat(head_1, ..., head_h) W_O, head_i = Attention(Q W_Q_i, K W_K_i, V W_V_i).

    Section 3.2.2. The matrices of all heads lie side by side, and have no biases.
    """

    def __init__(self, d_model: int, h: int):
        super().__init__()
        self.h = h
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """query (B, T, d_model), key and value (B, S, d_model) -> (B, T, d_model).

        mask: boolean, broadcastable to (B, h, T, S).
        """
        q = split_heads(self.W_Q(query), self.h)  # (B, h, T, d_k)
        k = split_heads(self.W_K(key), self.h)  # (B, h, S, d_k)
        v = split_heads(self.W_V(value), self.h)  # (B, h, S, d_v)
        heads, _ = attention(q, k, v, mask)
        return self.W_O(join_heads(heads))


# %% [markdown]
# Section 3.2.3 has three uses: encoder to itself, decoder to itself, decoder to encoder. They are three calls of one class, with one output for each *query*. Two checks follow: a change of the last word changes no earlier output
# behind the causal mask, and torch's module gives the same.

# %% tags=["active-ipynb"]
# heads = MultiHeadAttention(d_model=32, h=4)
# source, target = torch.randn(2, 6, 32), torch.randn(2, 5, 32)
# uses = {
#     "encoder, self": heads(source, source, source),
#     "decoder, self": heads(target, target, target, causal_mask(5)),
#     "decoder to encoder": heads(target, source, source),
# }
# print({use: tuple(output.shape) for use, output in uses.items()})
# changed = torch.cat([target[:, :4], torch.randn(2, 1, 32)], dim=1)
# after = heads(changed, changed, changed, causal_mask(5))
# assert torch.equal(after[:, :4], uses["decoder, self"][:, :4])
# print("causal: earlier outputs are the same, bit for bit")
# theirs = torch.nn.MultiheadAttention(32, 4, bias=False, batch_first=True)
# matrices = [heads.W_Q.weight, heads.W_K.weight, heads.W_V.weight]
# theirs.in_proj_weight.data = torch.cat(matrices).detach()
# theirs.out_proj.weight.data = heads.W_O.weight.detach().clone()
# expected, _ = theirs(target, target, target, attn_mask=~causal_mask(5))
# difference = (uses["decoder, self"] - expected).abs().max()
# assert difference < 1e-5
# print(f"largest difference from torch's module: {difference:.0e}")

# %% [markdown]
# **What are several heads for?** Now one query holds two names side by side, and both their numbers are wanted. There are six pairs; a pair is a name (16 components), its number, and zeros. One head and
# two heads have the same width $d_{model} = 32$ and as many weights. Would a network after the one head help?

# %% tags=["active-ipynb"]
# class TwoLookUps(nn.Module):
#     def __init__(self, h, after):
#         super().__init__()
#         self.heads = MultiHeadAttention(d_model=32, h=h)
#         self.after = after()
#
#     def forward(self, query, pairs):  # (B, 1, 32), (B, 6, 32)
#         return self.after(self.heads(query, pairs, pairs))[:, 0]
#
#
# linear = partial(nn.Linear, 32, 2)
#
#
# def network():
#     return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
#
#
# trained = {}
# for name, h, after in (
#     ("one head", 1, linear),
#     ("one head and a network", 1, network),
#     ("two heads", 2, linear),
# ):
#     losses, networks = toys.train_several(
#         partial(TwoLookUps, h, after), partial(toys.two_look_ups, known), 400, 0.01
#     )
#     end = losses[-50:].mean(dim=0)
#     trained[name] = end, networks[0]
#     print(f"{name}: error {end.mean():.3f}, from {end.min():.3f} to {end.max():.3f}")
# assert trained["two heads"][0].max() < 0.05
# assert trained["one head and a network"][0].min() > 0.4

# %% [markdown]
# Where do the heads look, for eight such queries?

# %% tags=["active-ipynb"]
# query, pairs, right = (x[0, :8] for x in toys.two_look_ups(known))
# # the place of the pair whose number (component 16) is the right one, for both names
# places = (pairs[:, None, :, 16] - right[:, :, None]).abs().argmin(dim=2)
# panels = [("what is asked for", F.one_hot(places, 6).sum(dim=1), range(6), range(8))]
# for name in ("one head", "two heads"):
#     heads = trained[name][1].heads
#     with torch.no_grad():
#         q = split_heads(heads.W_Q(query), heads.h)
#         k = split_heads(heads.W_K(pairs), heads.h)
#         weights = attention(q, k, k)[1][:, :, 0]  # (B, h, 6)
#     panels += [
#         (f"{name}: no. {i + 1}", weights[:, i], range(6), range(8))
#         for i in range(weights.shape[1])
#     ]
# plotting.heatmaps(panels, largest=1.0, labels=("pair", "query", "weight"));

# %% [markdown]
# Left are the two names that each query asks for. The one head has settled on one of them: that number is right and the other is unknown, which makes an error of $0.5$, with a network after it or without. (Half its weight on each would do no better: of two numbers it would know the mean.) Of two heads each finds one name.
#
# ## A trained head
#
# Last, the model that comes with the package, trained to translate English to German ([14](14_training.ipynb),
# [16](16_translation.ipynb)). In head 3 of its encoder's first layer "its" looks at its owner here; [notebook 19](19_visualization.ipynb) finds it on one set
# of sentences and scores it on others. In the two sentences "cat" and "old school" change places.

# %% tags=["active-ipynb"]
# from transformer import record_attention
#
# model, tokenizer = load()
# panels, found = [], []
# for sentence in (
#     "The cat behind the old school lost its ball .",
#     "The old school behind the cat lost its ball .",
# ):
#     ids = [*tokenizer.encode(sentence.replace(" .", ".")), tokenizer.eos_id]
#     words = [*sentence.split(), "</s>"]
#     assert len(ids) == len(words)  # each of these words is one token
#     with record_attention(model) as record, torch.no_grad():
#         model.encode(torch.tensor([ids]))
#     weights = record["encoder.layers.0.self_attention"][0][0, 2]  # (S, S)
#     found.append(words[weights[words.index("its")].argmax()])
#     panels.append((f'"its" looks at "{found[-1]}"', weights, words, words))
# plotting.heatmaps(
#     panels,
#     across=2,
#     width=4.4,
#     height=4.2,
#     largest=1.0,
#     labels=("looked at", "looks", "weight"),
# )
# assert found == ["cat", "school"]
# print("its looks at:", found)

# %% [markdown]
# In both, "its" gives most of its weight to the owner, although another noun stands between. But the owner is also the first noun. Notebook 19 counts how often, and compares the head with such guesses.
#
# ## Exercises
#
# Replace `...`, run the cell, and it says whether you are right.
#
# **1.** Write equation 1 yourself, without a mask.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.attention import check_attend
#
#
# def attend(q, k, v):
#     """(..., T, d_k), (..., S, d_k), (..., S, d_v) -> the output (..., T, d_v)."""
#     ...
#
#
# check_attend(attend)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def attend(q, k, v):
#     scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
#     weights = scores.softmax(dim=-1)
#     return weights @ v
# ```
#
# The transpose exchanges only the last two axes, so any axes may stand in front.
# </details>
#
# **2.** Write softmax over the last axis with `exp` alone. It has to survive scores in the hundreds.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.attention import check_safe_softmax
#
#
# def safe_softmax(scores):
#     """(..., S) -> weights of the same shape, without `softmax` or `logsumexp`."""
#     ...
#
#
# check_safe_softmax(safe_softmax)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def safe_softmax(scores):
#     largest = scores.amax(dim=-1, keepdim=True)
#     powers = torch.exp(scores - largest)
#     return powers / powers.sum(dim=-1, keepdim=True)
# ```
#
# Taking the same number from all scores divides all powers by the same number, so the weights stay.
# </details>
#
# **3.** Let each position see itself and the $r - 1$ before it, and no padding.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.attention import check_window_mask
#
#
# def window_mask(tokens, r, pad_id):
#     """Token ids (B, T) -> a boolean mask (B, 1, T, T), True = may attend."""
#     ...
#
#
# check_window_mask(window_mask)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def window_mask(tokens, r, pad_id):
#     place = torch.arange(tokens.shape[1])
#     back = place[:, None] - place  # how far the key lies behind the query
#     near = (back >= 0) & (back < r)
#     return near & (tokens != pad_id)[:, None, None, :]
# ```
#
# Masks that each forbid something are combined by "and".
# </details>
#
# **4.** Write self-attention with $h$ heads from its four matrices alone.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.attention import check_several_heads
#
#
# def several_heads(x, W_Q, W_K, W_V, W_O, h):
#     """x (B, T, d), matrices (d, d), applied as x @ W -> (B, T, d); d_k = d / h."""
#     ...
#
#
# check_several_heads(several_heads)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def several_heads(x, W_Q, W_K, W_V, W_O, h):
#     outputs = []
#     parts = [(x @ W).chunk(h, dim=-1) for W in (W_Q, W_K, W_V)]
#     for q, k, v in zip(*parts):
#         scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
#         outputs.append(scores.softmax(dim=-1) @ v)
#     return torch.cat(outputs, dim=-1) @ W_O
# ```
#
# `split_heads` does the same in one product.
# </details>
#
# ## Next
#
# [05 Position-wise networks](05_feed_forward.ipynb) works on each position by itself, between two rounds of attention.
