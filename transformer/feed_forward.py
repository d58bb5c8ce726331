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
# Attention fetches information from other positions. Once its weights are chosen, all that it does with vectors is linear. More than that is the work of the
# second sub-layer: a small network with one hidden layer, applied to every position by itself (Section 3.3). It is four lines of code and two
# thirds of an encoder layer's parameters. This notebook looks at what "position-wise" means, and at what the hidden units do.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import torch
from torch import nn


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from transformer import plotting, toys
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
# $W_1$ widens $x$ from $d_{model} = 512$ numbers to $d_{ff} = 2048$ hidden units. $\max(0, \cdot)$, called ReLU, lets positive numbers
# pass and turns negative ones into 0. $W_2$ brings the result back to 512, so that it can be added to $x$ (notebook 03).
# Unlike attention's projections, these two have biases. There is no dropout inside; torch's `nn.TransformerEncoderLayer` has some there.

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
# By hand: two hidden units are enough for something no matrix can do, the absolute value. One unit keeps the positive
# numbers, the other the negative ones with their sign turned, and $W_2$ adds the two: $|x| = \max(0, x) + \max(0, -x)$.

# %% tags=["active-ipynb"]
# absolute = FeedForward(d_model=1, d_ff=2)
# weights = {
#     "W_1.weight": torch.tensor([[1.0], [-1.0]]),
#     "W_1.bias": torch.zeros(2),
#     "W_2.weight": torch.tensor([[1.0, 1.0]]),
#     "W_2.bias": torch.zeros(1),
# }
# absolute.load_state_dict(weights)
# print(absolute(torch.tensor([[-3.0], [-1.0], [0.0], [2.0]])).flatten().tolist())

# %% [markdown]
# Without the ReLU, $W_1$ and $W_2$ would be one matrix, and the hidden layer would be for nothing (see the exercise).

# %% [markdown]
# ## Position-wise
#
# The same network works on each position, and on each alone. So if the positions change places, the outputs change places
# with them, and if one word is replaced, no other position notices. Everything a word learns about other words comes
# through attention. The cell replaces the word at position 2.

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

# %% [markdown]
# ## Two convolutions
#
# The paper gives a second description: two convolutions of kernel size 1. A convolution slides a window along the
# sequence and applies the same matrix everywhere; with a window of one position that *is* a position-wise matrix.

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

# %% [markdown]
# ## Where the parameters are
#
# An encoder layer has four attention matrices of $d_{model} \times d_{model}$ and this network's two of
# $d_{model} \times d_{ff}$. With $d_{ff} = 4\, d_{model}$ that is $4\,d_{model}^2$ against $8\,d_{model}^2$. We count.

# %%
def parameter_counts(**modules: nn.Module) -> dict[str, int]:
    """Learned numbers in each of the named modules: {name: count}.

    A matrix used by two of them is counted in both.
    """
    counts = {}
    for name, module in modules.items():
        counts[name] = sum(p.numel() for p in module.parameters())
    return counts


# %% tags=["active-ipynb"]
# from transformer.attention import MultiHeadAttention
#
# attention = MultiHeadAttention(512, 8)
# counts = parameter_counts(attention=attention, feed_forward=FeedForward(512, 2048))
# share = counts["feed_forward"] / sum(counts.values())
# print(counts, f"share of the network: {share:.1%}")

# %% [markdown]
# Two thirds of an encoder layer (without its LayerNorms) stand in the position-wise network. A decoder layer has two attentions,
# so there it is half.

# %% [markdown]
# ## What $d_{ff}$ does
#
# Each hidden unit is switched on on one side of a flat cut through the space, and off on the other. With one input number the output is a line
# with a kink where a unit switches: $d_{ff}$ units, at most $d_{ff}$ kinks. So the width decides how finely a
# function can be shaped. We fit a wave with three widths.

# %% tags=["active-ipynb"]
# line = torch.linspace(-2, 2, 200)[:, None]
# wave = torch.sin(3 * line)
# networks = {d_ff: FeedForward(1, d_ff) for d_ff in (2, 8, 128)}
# errors = {d_ff: toys.fit(small, line, wave) for d_ff, small in networks.items()}
# curves = {"wave": wave}
# for d_ff, small in networks.items():
#     kinks = small.W_1.bias / small.W_1.weight[:, 0]  # where a unit switches
#     name = f"d_ff = {d_ff}, {(kinks.abs() < 2).sum()} kinks inside"
#     curves[name] = small(line).detach()
# plotting.lines(line[:, 0], curves, "x", "output")
# assert errors[128] < 0.02 < 0.1 < errors[2]

# %% [markdown]
# Two units can bend the line twice. Eight could bend it eight times, but only three of their kinks lie inside the picture when training ends; the
# others are of no use there. So the line follows only the middle of the wave. With 128 the line follows nearly all of it. In Table 3 (rows C) the paper's model gains from a
# larger $d_{ff}$ too, and loses with a smaller one.

# %% [markdown]
# ## How sparse is ReLU?
#
# A unit that is 0 passes nothing on and receives no gradient. How many are on for a given word?

# %%
@torch.no_grad()
def active_share(network: FeedForward, x: torch.Tensor) -> torch.Tensor:
    """Share of a `FeedForward`'s hidden units that are not zero, at each position.

    x: (..., d_model), what the network is given -> (...), between 0 and 1.
    """
    return (network.W_1(x) > 0).float().mean(dim=-1)

# %% [markdown]
# We ask before and after training. The task: 64 random words, each with a random answer that the network must store,
# as a model stores facts.

# %% tags=["active-ipynb"]
# words = torch.randn(64, 32)
# answers = torch.randn(64, 32)
# memory = FeedForward(32, 128)
# before = active_share(memory, words).mean()
# error = toys.fit(memory, words, answers, steps=300, lr=0.01)
# after = active_share(memory, words).mean()
# print(f"error {error:.4f}; units on: {before:.0%} before, {after:.0%} after training")
# assert error < 0.05 and abs(before - 0.5) < 0.1 and after < before

# %% [markdown]
# Before training a unit is as likely on as off: about half of them. Training lowers the share a little here: a unit comes to answer
# to fewer words. In large trained models it falls to a few percent (Li et al., 2023). One way to read
# the network fits this (Geva et al., 2021): each hidden unit has a pattern (its column of $W_1$ in equation 2), and something to add to the
# vector where the pattern is found (its row of $W_2$).

# %% [markdown]
# ## Checks
#
# **Equation 2, written out** for one position after the other, at float64.

# %% tags=["active-ipynb"]
# x = x.double()
# W_1, b_1, W_2, b_2 = network.double().parameters()
# outputs = [W_2 @ (W_1 @ v + b_1).clamp(min=0) + b_2 for v in x.flatten(0, 1)]
# one_by_one = torch.stack(outputs).view(2, 6, 32)
# print(f"largest difference {(network(x) - one_by_one).abs().max():.1e}")
# assert torch.allclose(network(x), one_by_one, rtol=0, atol=1e-9)

# %% [markdown]
# ## Exercise
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# Without the ReLU, `network.W_2(network.W_1(x))` would be `x @ A + c` with a single matrix. Which? (`nn.Linear`
# computes `x @ weight.T + bias`; the cell above has named the weights `W_1`, `b_1`, `W_2`, `b_2`.)

# %% tags=["active-ipynb"]
# A = ...
# c = ...
# if A is not ...:
#     assert torch.allclose(network.W_2(network.W_1(x)), x @ A + c, atol=1e-5)

# %% [markdown]
# <details><summary>Solution</summary>
#
# `A, c = W_1.T @ W_2.T, b_1 @ W_2.T + b_2`. A
# product of matrices is a matrix: the 128 hidden units would add nothing.
# </details>

# %% [markdown]
# ## Next
#
# [06 Embeddings and softmax](06_embeddings.ipynb) turns words into vectors, and vectors back into words. In Colab the next
# notebook imports this module from the installed package; to try changes of your own, clone the repository and install
# it with `pip install -e .`.
