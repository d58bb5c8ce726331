# ---
# jupyter:
#   jupytext:
#     formats: notebooks/07_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 3.5 Positional encoding
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/07_positions.ipynb)
#
# Attention compares every word with every other, and does not care where they stand. So the order has to be written into
# the vectors themselves. The paper adds to each embedding a pattern of sines and cosines that is different at each
# position (Section 3.5). This notebook builds that pattern, looks at it, and shows why it suits attention.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import math

import torch
from torch import Tensor, nn


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from transformer import plotting
# from transformer.attention import MultiHeadAttention
#
# torch.manual_seed(0);

# %% [markdown]
# ## What attention is without positions
#
# The first exercise of [notebook 04](04_attention.ipynb) asked what comes out of self-attention when the words are
# shuffled. The answer was: the same vectors, shuffled. Here it is once more, with "dog bites man" and "man bites dog":

# %% tags=["active-ipynb"]
# heads = MultiHeadAttention(d_model=16, h=2)
# words = torch.randn(1, 3, 16)  # dog, bites, man
# turned = words.flip(1)  # man, bites, dog
# there = heads(words, words, words)
# back = heads(turned, turned, turned)
# gap = (there[0, 0] - back[0, 2]).abs().max()
# print(f"dog as the first word or the last: outputs differ by {gap:.0e} at most")
# assert torch.allclose(there, back.flip(1), atol=1e-6)

# %% [markdown]
# No difference but rounding. Whoever bites, "dog" gets the same vector. The position-wise network of
# [notebook 05](05_feed_forward.ipynb) cannot help: it sees one position at a time. A recurrent network reads in order
# and a convolution knows its neighbours; a Transformer has to be told. (This is attention without a mask. A causal mask breaks the symmetry a little: the first word sees one word, the third sees three.)

# %% [markdown]
# ## A clock with many hands
#
# Why not simply add the number of the position? At position 500 it would drown the word. So all positions must be told apart by small values. How do you write the number 1,234,567 with small values only? As digits: the last one changes at every step, the
# one before it ten times more slowly, and so on. The paper does this smoothly. Each pair of components is the hand of a
# clock, and each hand turns more slowly than the one before. Hand $i$ turns by $\omega_i$ radians a position:
#
# $$\omega_i = 10000^{-2i/d_{model}}, \qquad i = 0, \ldots, d_{model}/2 - 1$$

# %%
def frequencies(d_model: int) -> Tensor:
    """omega_i = 10000^(-2i / d_model), radians a position, i from 0 to d_model / 2 - 1.

    Section 3.5. Returns (d_model / 2,), float64. Raises ValueError for an odd d_model:
    sines and cosines come in pairs.
    """
    if d_model % 2:
        raise ValueError(
            f"d_model must be even, one sine and one cosine a frequency, not {d_model}")
    return 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


# %% [markdown]
# One full turn takes $2\pi / \omega_i$ positions, the wavelength. The paper says the wavelengths form a geometric
# progression from $2\pi$ to $10000 \cdot 2\pi$.

# %%
def wavelengths(d_model: int) -> Tensor:
    """Positions until each sine comes round again, 2 pi / omega_i: (d_model / 2,).

    They grow by the same factor each, from 2 pi to nearly 10000 * 2 pi.
    """
    return 2 * math.pi / frequencies(d_model)


# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# for d_model in (16, 512, 100_000):
#     turns = wavelengths(d_model) / (2 * math.pi)
#     print(f"d_model {d_model:7,}: from {turns[0]:.0f} to {turns[-1]:7,.1f} times 2 pi, "
#           f"ratio {turns[1] / turns[0]:.4f}")

# %% [markdown]
# The first is exactly $2\pi$: six positions and a bit. The last comes close to $10000 \cdot 2\pi$ in wide models and never reaches it,
# because the last exponent is $(d_{model} - 2)/d_{model}$, a little under 1. In between, each is a fixed multiple of
# the one before.

# %% [markdown]
# ## The table
#
# The hand's height and its sideways reach are sine and cosine. They stand side by side, sine first:
#
# $$PE_{(pos,\, 2i)} = \sin(pos \cdot \omega_i), \qquad PE_{(pos,\, 2i+1)} = \cos(pos \cdot \omega_i)$$
#
# We compute in float64 and round once, at the end: at position 1,000 a float32 angle is already off in the fifth decimal.

# %%
def sinusoids(n: int, d_model: int) -> Tensor:
    """Section 3.5's table for positions 0 to n - 1, a row each: (n, d_model), float64.

    PE(pos, 2i) = sin(pos / 10000^(2i / d_model)),
    PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model)).
    Raises ValueError for an odd d_model.
    """
    pos = torch.arange(n, dtype=torch.float64)[:, None]
    angle = pos * frequencies(d_model)  # (n, d_model / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


# %% tags=["active-ipynb"]
# ticks = [t if t % 8 == 0 else "" for t in range(64)]
# plotting.heatmap(sinusoids(64, 64), ticks, ticks, labels=("component", "position"));

# %% [markdown]
# Each row is one position, each column one component; red is $+1$, blue is $-1$. On the left the columns flicker from one
# position to the next. To the right they change more and more slowly. Far to the right the sines are still near 0 (grey)
# and the cosines near 1, like the leading digits of small numbers. No two rows are alike.
#
# Four of the columns as curves:

# %% tags=["active-ipynb"]
# curves = {f"component {c}": sinusoids(100, 64)[:, c] for c in (0, 8, 16, 17)}
# wide = plotting.new_axes(9, 2.8)
# plotting.lines(range(100), curves, "position", "value", ax=wide)
# wide.legend(bbox_to_anchor=(1, 1), loc="upper left");

# %% [markdown]
# Components 16 and 17 are sine and cosine of one frequency, a quarter turn apart. Why both? A sine alone has the same
# value twice in each turn. Together they fix the hand's angle.

# %% [markdown]
# ## A shift is a rotation
#
# The authors chose this pattern because they expected that a model could easily learn to look "three words back". For
# every fixed $k$, $PE_{pos+k}$ is the same linear map of $PE_{pos}$, wherever $pos$ is. The reason is the addition
# theorem; for each frequency it is a rotation by $k\omega$:
#
# $$\begin{pmatrix} \sin((pos+k)\,\omega) \\ \cos((pos+k)\,\omega) \end{pmatrix} =
# \begin{pmatrix} \cos k\omega & \sin k\omega \\ -\sin k\omega & \cos k\omega \end{pmatrix}
# \begin{pmatrix} \sin(pos\,\omega) \\ \cos(pos\,\omega) \end{pmatrix}$$

# %%
def shift_matrix(k: int, d_model: int) -> Tensor:
    """The matrix M_k with PE(pos + k) = M_k PE(pos) for every pos.

    A 2 x 2 rotation by k omega_i for each i: (d_model, d_model), float64. k may be
    negative.
    """
    angle = k * frequencies(d_model)
    sin, cos = angle.sin(), angle.cos()
    rotations = torch.stack([cos, sin, -sin, cos], dim=-1).unflatten(-1, (2, 2))
    return torch.block_diag(*rotations)


# %% tags=["active-ipynb"]
# sides = ("component at pos", "component at pos + 3")
# plotting.heatmap(shift_matrix(3, 8), range(8), range(8), values=True, labels=sides)
# table, M = sinusoids(1100, 512), shift_matrix(100, 512)
# difference = (table[:1000] @ M.T - table[100:]).abs().max().item()
# print(f"1,000 positions moved by 100: largest difference {difference:.0e}")
# assert difference < 1e-9

# %% [markdown]
# Blocks of 2 by 2 along the diagonal, zeros elsewhere. The first block turns fast; the last is nearly the identity. An
# attention head can hold such a matrix inside $W_Q$ and $W_K$, for half as many frequencies as it is wide (each has a sine and
# a cosine; in the base model a head is 64 wide, which makes 32 of the 256 frequencies). Then its queries fit the keys three positions back, anywhere in the sentence.

# %% [markdown]
# ## Nearness
#
# A second gift of sine and cosine: the inner product of two positions depends on their distance only,
# $PE_p \cdot PE_q = \sum_i \cos((p - q)\,\omega_i)$. It is largest at distance 0. Attention scores are inner products.

# %% tags=["active-ipynb"]
# products = table[:101] @ table[:101].T
# left, right = plotting.new_axes(4, 3.6, columns=2)
# ticks = [t if t % 20 == 0 else "" for t in range(101)]
# plotting.heatmap(products, ticks, ticks, "PE(p) · PE(q)", left, labels=("q", "p"))
# row = {"p = 50": products[50]}
# plotting.lines(range(-50, 51), row, "distance q - p", "PE(p) · PE(q)", ax=right)
# positions = torch.arange(101)
# by_distance = frequencies(512)[:, None].mul(positions).cos().sum(dim=0)
# expected = by_distance[(positions[:, None] - positions).abs()]
# assert torch.allclose(products, expected, rtol=0, atol=1e-9)

# %% [markdown]
# Left: each diagonal has one colour, so only the distance counts. Right: one row of it. The peak is at distance 0, with
# the value $d_{model}/2 = 256$; it falls off on both sides alike. So "near" is easy to read from the products, "before
# or after" is not: for that, the projections must turn one side, as above.

# %% [markdown]
# ## Adding it to the embeddings
#
# The paper adds, it does not concatenate: the width stays $d_{model}$. Both parts can still be told apart, because a
# model may use different directions for each. This is also why [notebook 06](06_embeddings.ipynb) multiplies embeddings by
# $\sqrt{d_{model}}$: then they have about the same size as the sines.
#
# A table has an end. Past it there must be a clear error, not a wrong row. `start` is for writing word by word: the
# newest word alone comes in, and stands at position `start`.

# %%
def positions_of(table: Tensor, start: int, length: int) -> Tensor:
    """Rows start to start + length of a table (max_positions, d).

    Raises ValueError past its end.
    """
    if start < 0:
        raise ValueError(f"start must be at least 0, not {start}")
    if start + length > len(table):
        raise ValueError(
            f"a sentence of {start + length} tokens is longer than the model's "
            f"{len(table)} positions: split the sentence, or train with a larger "
            "max_positions")
    return table[start:start + length]


# %% [markdown]
# The sinusoids are a buffer, not a parameter: nothing in them is learned, and they need not be saved.

# %%
class SinusoidalPositions(nn.Module):
    """Add the fixed sinusoids to embeddings (B, T, d_model), the first being at start.

    Raises ValueError for a sentence that goes past max_positions.
    """

    def __init__(self, max_positions: int, d_model: int):
        super().__init__()
        table = sinusoids(max_positions, d_model).float()
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        return x + positions_of(self.table, start, x.shape[1])


# %% tags=["active-ipynb"]
# positions = SinusoidalPositions(max_positions=50, d_model=16)
# try:
#     positions(torch.zeros(1, 51, 16))
# except ValueError as error:
#     print(error)

# %% [markdown]
# With positions added, "dog bites man" and "man bites dog" are no longer the same, and a word that comes in alone gets
# the row of its place:

# %% tags=["active-ipynb"]
# there, back = positions(words), positions(words.flip(1))
# after_there, after_back = heads(there, there, there), heads(back, back, back)
# assert not torch.allclose(after_there, after_back.flip(1), atol=0.01)
# assert torch.equal(positions(words[:, 2:], start=2), there[:, 2:])

# %% [markdown]
# ## Learned positions
#
# The other choice of the time (Gehring et al., 2017): one learned vector for each position. Row E of Table 3 tries it
# and finds nearly the same BLEU, 25.7 for 25.8. The paper keeps the sines, because they might carry over to sentences
# longer than any seen in training. Here it is a switch: `positions="learned"` in the next notebook.

# %%
class LearnedPositions(nn.Module):
    """Add a learned vector a position (row E of Table 3), as `SinusoidalPositions` do.

    Rows start as N(0, 1 / d_model), as embeddings do before they are scaled.
    """

    def __init__(self, max_positions: int, d_model: int):
        super().__init__()
        rows = torch.randn(max_positions, d_model)
        self.table = nn.Parameter(rows / math.sqrt(d_model))

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        return x + positions_of(self.table, start, x.shape[1])


# %% tags=["active-ipynb"]
# learned = LearnedPositions(max_positions=50, d_model=16)
# learned(torch.randn(4, 20, 16)).square().sum().backward()
# touched = learned.table.grad.abs().sum(dim=1) > 0
# assert touched.tolist() == [True] * 20 + [False] * 30

# %% [markdown]
# The check passed: sentences of 20 words give a gradient to the first 20 rows only. That is the weakness. Rows past the longest
# sentence of training are never touched and stay random. The sines are defined everywhere. Whether a model makes good use of
# positions it has not met in training is another question, which the paper leaves open; [notebook 17](17_variations.ipynb) asks it.

# %% [markdown]
# ## Turning queries and keys
#
# If an inner product of two positions depends on their distance only, why not let it act where inner products are taken? Rotary
# positions (Su et al., 2021) add nothing to the embeddings. They turn each query and each key by the angles of their own position, two
# numbers at a time: this notebook's rotation, applied inside attention. The switch is `positions="rotary"` in the next notebook.

# %%
class RotaryPositions(nn.Module):
    """Turn queries or keys x (B, h, n, d_k) by their positions (Su et al., 2021).

    The numbers 2i and 2i + 1 of the vector at position pos are rotated by
    pos * omega_i, so that an inner product of a query and a key depends on their
    distance. start is the position of the first vector. ValueError past max_positions.
    """

    def __init__(self, max_positions: int, d_k: int):
        super().__init__()
        table = sinusoids(max_positions, d_k).float()
        pairs = table.unflatten(1, (-1, 2))  # (max_positions, d_k / 2, 2)
        self.register_buffer("table", pairs, persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        sin, cos = positions_of(self.table, start, x.shape[-2]).unbind(dim=-1)
        even, odd = x.unflatten(-1, (-1, 2)).unbind(dim=-1)
        turned = [cos * even - sin * odd, sin * even + cos * odd]
        return torch.stack(turned, dim=-1).flatten(-2)


# %% [markdown]
# A query and a key, moved together by 20 positions, fit each other as they did before:

# %% tags=["active-ipynb"]
# rotary = RotaryPositions(max_positions=50, d_k=16)
# q, k = torch.randn(1, 1, 4, 16), torch.randn(1, 1, 4, 16)
# scores = [rotary(q, start) @ rotary(k, start).transpose(2, 3) for start in (0, 20)]
# difference = (scores[0] - scores[1]).abs().max().item()
# print(f"moved by 20 positions: largest difference of the scores {difference:.0e}")
# assert difference < 1e-5
# assert not torch.allclose(scores[0], q @ k.transpose(2, 3), atol=0.01)

# %% [markdown]
# ## Checks
#
# **The table equals the formula**, written as a loop with Python's own `math`, in float64:

# %% tags=["active-ipynb"]
# table = sinusoids(200, 32)
# for pos in range(200):
#     for i in range(16):
#         angle = pos / 10000 ** (2 * i / 32)
#         assert abs(table[pos, 2 * i] - math.sin(angle)) < 1e-9
#         assert abs(table[pos, 2 * i + 1] - math.cos(angle)) < 1e-9

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** Moving by $a$ and then by $b$ positions is moving by $a + b$. Undo a move by 7: which matrix brings $PE_{pos+7}$
# back to $PE_{pos}$, for $d_{model} = 64$? (There are two ways to write it.)

# %% tags=["active-ipynb"]
# undo = ...
# if undo is not ...:
#     nothing = torch.eye(64, dtype=torch.float64)
#     assert torch.allclose(undo @ shift_matrix(7, 64), nothing, atol=1e-9)

# %% [markdown]
# <details><summary>Solution</summary>
#
# `undo = shift_matrix(-7, 64)`, or `shift_matrix(7, 64).T`: a rotation is undone by the opposite rotation, which is its
# transpose.
# </details>
#
# **2.** A head should look two words back. With $q = PE_p$ unchanged, which matrix $A$ makes $q \cdot (A\, PE_j)$
# largest at $j = p - 2$? (`table`, from the check above, is 32 wide.)

# %% tags=["active-ipynb"]
# A = ...
# if A is not ...:
#     assert ((table @ (table @ A.T).T).argmax(dim=1)[2:] == torch.arange(198)).all()

# %% [markdown]
# <details><summary>Solution</summary>
#
# `A = shift_matrix(2, 32)`: it moves the key at $j$ to where $j + 2$ stands, and an inner product is largest where both
# sides agree, at $j + 2 = p$.
# </details>

# %% [markdown]
# ## Next
#
# All parts are there. [08 The model](08_model.ipynb) puts them together and sees them learn. In Colab the next
# notebook imports this module from the installed package; to try changes of your own, clone the repository and install it
# with `pip install -e .`.
