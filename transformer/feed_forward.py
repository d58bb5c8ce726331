# ---
# jupyter:
#   jupytext:
#     formats: notebooks/05_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 3.3 Position-wise feed-forward networks
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/05_feed_forward.ipynb)
#
# Attention fetches information from other positions, and once its weights are chosen, all that it does with the fetched vectors is
# linear. The last sub-layer of each layer is not linear: it is a small network with one hidden layer, applied to every
# position by itself (Section 3.3). The network is four lines of code, and two thirds of an encoder layer's parameters.
# At the end you will have it, know what "position-wise" means, and have seen which words the hidden units of a trained
# model answer to, and what is lost without them. Reading takes about 15 minutes, running it twenty seconds.

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
import torch
from torch import nn

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from collections import Counter
# from functools import partial
#
# from transformer import load, read_corpus, translate
# from transformer.teaching import toys
# from transformer.views import plotting
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small a second thread only waits

# %% [markdown]
# ## The network
#
# Equation 2 of the paper, for the vector $x$ of one position:
#
# $$\mathrm{FFN}(x) = \max(0,\; xW_1 + b_1)\, W_2 + b_2$$
#
# $W_1$ widens $x$ from $d_{model} = 512$ numbers to $d_{ff} = 2048$ hidden units. The function $\max(0, \cdot)$, called ReLU, lets
# positive numbers pass and turns negative ones into 0. $W_2$ brings the result back to 512 numbers, so that it can be added to
# $x$ ([notebook 03](03_stacks.ipynb)). Unlike attention's projections, these two have biases. There is no dropout
# inside, where torch's `nn.TransformerEncoderLayer` has some.


# %%
class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same at every position (equation 2).

    forward: (..., d_model) -> (..., d_model), through d_ff hidden units. There is no
    dropout on the hidden units: the paper names dropout on the sub-layer's output only
    (`stacks.Residual`).
    """

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.W_2(self.W_1(x).relu())


# %% [markdown]
# A small example can be done by hand. Two hidden units are enough for something that no matrix can do, the absolute value: one unit keeps the positive
# numbers, the other keeps the negative ones with their sign turned, and $W_2$ adds the two:
# $|x| = \max(0, x) + \max(0, -x)$.

# %% tags=["active-ipynb"]
# absolute = FeedForward(d_model=1, d_ff=2)
# weights = {
#     "W_1.weight": torch.tensor([[1.0], [-1.0]]),  # transposed, as nn.Linear has it
#     "W_1.bias": torch.zeros(2),
#     "W_2.weight": torch.tensor([[1.0, 1.0]]),
#     "W_2.bias": torch.zeros(1),
# }
# absolute.load_state_dict(weights)
# numbers = torch.tensor([-3.0, -1.0, 0.0, 2.0])
# print(numbers.tolist(), "->", absolute(numbers[:, None]).flatten().tolist())

# %% [markdown]
# Without the ReLU, $W_1$ and $W_2$ could be multiplied once and for all into a single matrix, and the hidden layer would
# add nothing (exercise 1).

# %% [markdown]
# ## Position-wise
#
# The same network works on each position, and on each position alone. So if the positions change places, the outputs
# change places with them, and if one word is replaced, the outputs at all other positions stay as they are. Everything that the vector of a word
# holds about other words has come through attention. The cell replaces the word at position 2, and then computes equation 2 for one position after the other.

# %% tags=["active-ipynb"]
# network = FeedForward(d_model=32, d_ff=128)
# x = torch.randn(2, 6, 32)
# order = torch.randperm(6)
# assert torch.allclose(network(x[:, order]), network(x)[:, order], atol=1e-6)
#
# replaced = x.clone()
# replaced[:, 2] = torch.randn(2, 32)
# change = (network(replaced) - network(x)).abs().amax(dim=(0, 2))
# print("positions that changed:", change.gt(1e-5).tolist())
#
# W_1, b_1, W_2, b_2 = network.parameters()  # equation 2, one position after the other
# outputs = [W_2 @ (W_1 @ v + b_1).clamp(min=0) + b_2 for v in x.flatten(0, 1)]
# one_by_one = torch.stack(outputs).view(2, 6, 32)
# assert torch.allclose(network(x), one_by_one, rtol=0, atol=1e-5)
# print("the network equals equation 2, position by position")

# %% [markdown]
# ## Two convolutions
#
# The paper gives a second description of the same network: two convolutions of kernel size 1. A convolution
# ([notebook 02](02_convolution.ipynb)) slides a window along the sequence and applies the same matrix everywhere. With a window of one position this
# is a position-wise matrix.


# %%
def as_convolutions(network: FeedForward) -> nn.Sequential:
    """A `FeedForward` as two convolutions of kernel size 1, same weights (Section 3.3).

    The result takes (B, d_model, T), channels before positions, as torch's convolutions
    do. The weights are copied: training one does not change the other.
    """
    first = nn.Conv1d(network.W_1.in_features, network.W_1.out_features, kernel_size=1)
    second = nn.Conv1d(network.W_2.in_features, network.W_2.out_features, kernel_size=1)
    for convolution, linear in [(first, network.W_1), (second, network.W_2)]:
        convolution.weight.data = linear.weight.data[:, :, None].clone()  # (out, in, 1)
        convolution.bias.data = linear.bias.data.clone()
    return nn.Sequential(first, nn.ReLU(), second)


# %% tags=["active-ipynb"]
# convolved = as_convolutions(network)(x.transpose(1, 2)).transpose(1, 2)
# assert torch.allclose(convolved, network(x), rtol=0, atol=1e-5)
# print("two convolutions of kernel size 1 give the same outputs")

# %% [markdown]
# ## Where the parameters are
#
# An encoder layer has four attention matrices of $d_{model} \times d_{model}$ and this network's two of
# $d_{model} \times d_{ff}$. With $d_{ff} = 4\, d_{model}$ these are $4\,d_{model}^2$ numbers against $8\,d_{model}^2$. The cell
# counts them.

# %% tags=["active-ipynb"]
# from transformer.attention import MultiHeadAttention
#
# counts = {}
# for part in (MultiHeadAttention(512, 8), FeedForward(512, 2048)):
#     counts[type(part).__name__] = sum(p.numel() for p in part.parameters())
# share = counts["FeedForward"] / sum(counts.values())
# print(f"parameters: {counts}; the network has {share:.1%} of them")

# %% [markdown]
# (LayerNorms aside.) A decoder layer has two attentions, so there it is half.

# %% [markdown]
# ## What $d_{ff}$ does
#
# Each hidden unit is above zero on one side of a plane through the space of inputs, and zero on the other side. With one
# input number the output is a line with a kink where a unit switches: $d_{ff}$ units make at most $d_{ff}$ kinks. So the width limits how
# finely a function can be shaped. We fit a wave with three widths.

# %% tags=["active-ipynb"]
# line = torch.linspace(-2, 2, 200)[:, None]
# wave = torch.sin(3 * line)
# networks = {d_ff: FeedForward(1, d_ff) for d_ff in (2, 8, 128)}
# errors = {d_ff: toys.fit(small, line, wave) for d_ff, small in networks.items()}
# curves = {"wave": wave}
# for d_ff, small in networks.items():
#     kinks = -small.W_1.bias / small.W_1.weight[:, 0]  # where a unit switches
#     name = f"d_ff = {d_ff}, {(kinks.abs() < 2).sum()} kinks inside"
#     curves[name] = small(line).detach()
# title = "more hidden units, more kinks: here a closer fit"
# plotting.lines(line[:, 0], curves, "x", "output", title).set_ylim(-1.3, 2)
# assert errors[128] < 0.02 < 0.1 < errors[2]

# %% [markdown]
# Two units can bend the line twice. Of the eight kinks of the second network only three lie inside the picture when training ends, and its line follows the middle of the wave only. Whether another start or longer training would do better, this run does not say. With
# 128 units the line follows nearly all of the wave. In Table 3 (rows C) the paper's model gains from a larger $d_{ff}$, and so does a small one of ours, if it is trained for long enough ([17](17_variations.ipynb)).

# %% [markdown]
# ## Trained with it, and without
#
# Can attention do without the network? The task goes on from the two look-ups of [notebook 04](04_attention.ipynb): a query asks for two names among six pairs of a name and a number, but now the answer is the
# *larger* of the two numbers. Two heads fetch the numbers. After them comes nothing, or a second attention to the same pairs, or
# the network with about as many parameters as that. All are trained from five starts; errors are mean squares.

# %% tags=["active-ipynb"]
# class TheLarger(nn.Module):
#     """Two heads fetch two numbers for a query; what comes `then` may work on them."""
#
#     def __init__(self, then=None):
#         super().__init__()
#         self.fetch = MultiHeadAttention(d_model=32, h=2)
#         self.then = None if then is None else then()
#         self.top = nn.Linear(32, 1)
#
#     def forward(self, query, pairs):  # (B, 1, 32), (B, 6, 32) -> (B,)
#         x = self.fetch(query, pairs, pairs)
#         if isinstance(self.then, FeedForward):
#             x = x + self.then(x)
#         elif self.then is not None:
#             x = x + self.then(x, pairs, pairs)
#         return self.top(x)[:, 0, 0]
#
#
# names = torch.randn(32, 16)
#
#
# def batch():
#     query, pairs, numbers = toys.two_look_ups(names)
#     return query, pairs, numbers.amax(dim=-1)

# %% tags=["active-ipynb"]
# kinds = {
#     "attention alone": TheLarger,
#     "a second attention": partial(TheLarger, partial(MultiHeadAttention, 32, 2)),
#     "the network": partial(TheLarger, partial(FeedForward, 32, 64)),
# }
# ends = {}
# for kind, make in kinds.items():
#     errors, networks = toys.train_several(make, batch, steps=600, lr=0.01)
#     end = ends[kind] = errors[-50:].mean(dim=0).sort().values
#     size = sum(p.numel() for p in networks[0].parameters())
#     print(
#         f"{kind}: {size:,} parameters, median error {end[2]:.3f} "
#         f"(five starts: {end[0]:.3f} to {end[4]:.3f})"
#     )
# a, b = torch.randn(2, 100_000)
# print(f"best weighted sum of the two numbers: error {((a - b).abs() / 2).var():.3f}")
# assert ends["the network"][2] < 0.05 < 0.1 < ends["a second attention"][0]

# %% [markdown]
# The larger of $a$ and $b$ is $(a + b)/2 + |a - b|/2$. A sum with fixed weights, and a constant, can only give the first part and the mean of the second, which leaves the variance of $|a - b|/2$, $0.18$. Attention's weights may depend on the numbers, and a second attention gets below that (0.14 to 0.17). These are 600 steps at one rate; what more would bring is not shown. With the network most starts find the second part, an absolute value as above.

# %% [markdown]
# ## What do the units of a trained model answer to?
#
# The package comes with a small model that translates a made-up English grammar into German
# ([notebook 16](16_translation.ipynb) trains such models). We send 300 test sentences through its encoder and note, for
# each word and each hidden unit, whether the unit is above zero.

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# pairs = read_corpus("bundled", "test")[:300]
# networks = {
#     f"{half}, layer {n}": layer.feed_forward
#     for half in ("encoder", "decoder")
#     for n, layer in enumerate(getattr(model, half).layers, 1)
# }
# words, on, hooks = [], {}, []
# for name in list(networks)[:2]:  # the encoder's; the decoder's are needed below
#     rows = on[name] = []  # of each sentence (tokens, d_ff): is W_1 x + b_1 above zero?
#
#     def note(module, given, output, rows=rows):  # this layer's rows
#         rows.append(output[0, :-1] > 0)  # without the end of the sentence
#
#     hooks.append(networks[name].W_1.register_forward_hook(note))
# with torch.no_grad():
#     for source, _ in pairs:
#         ids = tokenizer.encode(source)
#         words += [tokenizer.decode([i]) for i in ids]
#         model.encode(torch.tensor([[*ids, tokenizer.eos_id]]))
# for hook in hooks:
#     hook.remove()

# %% tags=["active-ipynb"]
# on, shares = {name: torch.cat(rows) for name, rows in on.items()}, {}  # (tokens, d_ff)
# for name, units in on.items():
#     never = int((~units.any(dim=0)).sum())
#     shares[name] = units.float().mean(dim=0)
#     print(
#         f"{name}: {shares[name].mean():.1%} of units are on for a word, "
#         f"{never} of {units.shape[1]} never are, "
#         f"{(shares[name] < 0.1).float().mean():.0%} are on for under a tenth"
#     )
# plotting.histograms(
#     shares,
#     "share of words for which a unit is on",
#     "most units are on for less than a tenth of all words",
# );

# %% [markdown]
# With random weights about half of the units are on for a word, because sums are as often below zero as above. After training a word switches on one unit in 15 to 20. (Each outline above encloses an area of 1.) In large trained
# models the share falls to a few per cent, too (Li et al., 2023). Which words are these? Of the units that are on at least 30 times, we sort by the share of their commonest word, and list the first five and the one in the middle: how often each is on, and for its three commonest words (`s` is a piece of words):

# %% tags=["active-ipynb"]
# def favourites(units, least=30):
#     """[(share of the commonest word, unit, times on, the three commonest)]"""
#     found = []
#     for unit in range(units.shape[1]):
#         counts = Counter(word for word, active in zip(words, units[:, unit]) if active)
#         if counts.total() >= least:
#             top = counts.most_common(3)
#             found.append((top[0][1] / counts.total(), unit, counts.total(), top))
#     return sorted(found, reverse=True)
#
#
# for name, units in on.items():
#     print(name)
#     found = favourites(units)
#     for _, unit, on_for, top in [*found[:5], found[len(found) // 2]]:
#         print(f"  unit {unit:3} ({on_for}):", *(f"'{word}' {n} " for word, n in top))

# %% [markdown]
# The narrowest units answer to articles, to "to" and "by", or to commas and full stops. (With at least 30 times, only frequent words can lead such a list.) The units from the middle
# answer to mixtures for which we have no name. This fits one way to read the network (Geva et al., 2021): each hidden unit has a pattern, its
# column of $W_1$ in equation 2, and something to add to the vector where the pattern is found, its row of $W_2$.
#
# What happens without the network? We turn its output to zero, one layer at a time, and count how many of
# 100 sentences still come out exactly as the grammar has them.

# %% tags=["active-ipynb"]
# sources, references = zip(*pairs[:100])
#
#
# def exactly_right():
#     outputs = translate(model, tokenizer, sources, beam=1)
#     return sum(output == right for output, right in zip(outputs, references))
#
#
# right = {"all there": exactly_right()}
# for name, network_of_layer in networks.items():
#     # what such a hook returns takes the place of the output
#     off = network_of_layer.register_forward_hook(lambda _, given, output: 0 * output)
#     right[name] = exactly_right()
#     off.remove()
# plotting.bars(
#     right,
#     "layer whose network is off",
#     "sentences exactly right",
#     "the decoder needs its networks more than the encoder does",
# )
# whole, *without = right.values()
# assert whole > 90 > max(without)
# print("no layer's network can be left out without a loss")

# %% [markdown]
# Without one of the encoder's networks most sentences still come out right, and without one of the decoder's none does. The count is of a
# model that was trained with all of its networks; one trained without them might do better at this. Notebook
# [17](17_variations.ipynb) trains with other sizes of $d_{ff}$.
#
# Later models replaced ReLU. GELU (Hendrycks and Gimpel, 2016), in BERT and GPT-2, is a smoothed ReLU. SwiGLU
# (Shazeer, 2020), in many of today's language models, multiplies a hidden layer by a second one, as the gates of [notebook
# 02](02_convolution.ipynb) do (exercise 2).

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Without the ReLU the network is a single matrix and a single bias: $xA + c$. Write the function that finds them. Here
# the matrices are as in equation 2: $W_1$ is `(d_model, d_ff)`, $W_2$ is `(d_ff, d_model)`. Then use them: return
# $A$, $c$ and $xA + c$.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.feed_forward import check_merged
#
#
# def merged(x, W_1, b_1, W_2, b_2):
#     """-> A (d_model, d_model), c (d_model), and x A + c (..., d_model)"""
#     ...
#
#
# check_merged(merged)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def merged(x, W_1, b_1, W_2, b_2):
#     A = W_1 @ W_2
#     c = b_1 @ W_2 + b_2
#     return A, c, x @ A + c
# ```
#
# The product of two matrices is a matrix, whatever $d_{ff}$ is.
# </details>
#
# **2.** Write SwiGLU: $(\mathrm{swish}(xW) \odot xV)\, W_2$ with $\mathrm{swish}(z) = z \cdot \sigma(z)$, where
# $\odot$ multiplies number by number and $\sigma$ is the logistic function `torch.sigmoid`. There are no biases.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.feed_forward import check_swiglu
#
#
# def swiglu(x, W, V, W_2):
#     """x (..., d_model), W, V (d_model, d_ff), W_2 (d_ff, d_model) -> (..., d_model)"""
#     ...
#
#
# check_swiglu(swiglu)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def swiglu(x, W, V, W_2):
#     gate = x @ W
#     gate = gate * torch.sigmoid(gate)
#     hidden = gate * (x @ V)
#     return hidden @ W_2
# ```
#
# There are three matrices instead of two, so at equal cost $d_{ff}$ is two thirds as large.
# </details>
#
# **3.** Shape a function by hand: with `relu` alone (given as an argument), write the hat that is 0 up to $-1$, rises to 1 at
# 0, falls to 0 at 1, and stays 0. It is a weighted sum of three hidden units, each the `relu` of $x$ plus a bias. (The check also tries a smooth `relu`.)

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.feed_forward import check_hat
#
#
# def hat(x, relu):
#     """x (n,) -> max(0, 1 - |x|), as a sum of kinks."""
#     ...
#
#
# check_hat(hat)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def hat(x, relu):
#     rise = relu(x + 1)
#     turn = -2 * relu(x)
#     end = relu(x - 1)
#     return rise + turn + end
# ```
#
# The slope begins at 1 with the first unit, the second unit takes 2 away, and the third brings it back to 0.
# </details>

# %% [markdown]
# ## Next
#
# [06 Embeddings and softmax](06_embeddings.ipynb) turns words into vectors, and vectors back into words.
