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
# Attention compares every word with every other word, and does not use where they stand. So the order of the words has to be written into
# the vectors themselves. The paper adds to each embedding a pattern of sines and cosines that is different at each
# position (Section 3.5). At the end you will have this pattern and the two alternatives that are used most, learned and rotary positions, know how each of them reaches the scores of attention, and see which kind translates longer sentences best. Reading takes about 25 minutes, running it a few seconds.

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

import torch
from torch import Tensor, nn

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from transformer.attention import MultiHeadAttention
# from transformer.core.records import read_rows
# from transformer.views import families, plotting
# from transformer.views.diagrams import clocks
#
# torch.manual_seed(0);

# %% [markdown]
# ## What attention is without positions
#
# When the words of a sentence change places, self-attention ([notebook 04](04_attention.ipynb)) gives the same vectors as before, in their
# new places. The cell shows it for "dog bites man" and "man bites dog":

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
# There is no difference but rounding: "dog" gets the same vector, whether it bites or is bitten. The position-wise network of
# [notebook 05](05_feed_forward.ipynb) cannot help, because it sees one position at a time. A recurrent network reads in
# order and a convolution works on neighbours, but a Transformer has to be told the positions. (This holds for attention without a mask. A causal mask breaks the symmetry: the first word sees one word, the third sees three.)

# %% [markdown]
# ## A clock with many hands
#
# The number of the position itself could be added, but at position 500 it would be far larger than anything the word's vector holds. All
# positions have to be told apart by small values. Written numbers solve the same problem with digits: in 1,234,567 the last digit changes at every
# step, the one before it ten times more slowly, and so on. The paper does this smoothly. Its pattern has $d_{model}$ numbers, its *components*. Components $2i$ and $2i + 1$ say
# where hand $i$ of a clock points, and each hand turns more slowly than the one before. Hand $i$ turns by $\omega_i$ radians from one position to the next:
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
            f"d_model must be even, one sine and one cosine a frequency, not {d_model}"
        )
    return 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


# %% [markdown]
# The picture shows the eight hands of $d_{model} = 16$ at six positions. A row of clocks is a position, and the place of each hand's end is a
# cosine (to the right) and a sine (upwards). At position 0 all hands point to the right, and they turn anticlockwise, as angles do in geometry.

# %% tags=["active-ipynb"]
# places = [0, 1, 2, 10, 100, 1000]
# angles = torch.tensor(places)[:, None] * frequencies(16)
# rows, columns = [f"position {pos}" for pos in places], [f"hand {i}" for i in range(8)]
# clocks(angles, rows, columns, "each hand turns more slowly than the one before");

# %% [markdown]
# Neighbouring positions differ in the fast hands on the left, far ones also in the slow hands on the right.
#
# One full turn of a hand takes $2\pi / \omega_i$ positions, its wavelength. The paper says that the wavelengths form a
# geometric progression from $2\pi$ to $10000 \cdot 2\pi$.


# %%
def wavelengths(d_model: int) -> Tensor:
    """Positions until each sine comes round again, 2 pi / omega_i: (d_model / 2,).

    Each is a fixed multiple of the last, from 2 pi to below 10000 * 2 pi.
    """
    return 2 * math.pi / frequencies(d_model)


# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# for d_model in (16, 512, 100_000):
#     turns = wavelengths(d_model) / (2 * math.pi)
#     print(
#         f"d_model {d_model:7,}: from {turns[0]:.0f} to {turns[-1]:7,.1f} times 2 pi, "
#         f"ratio {turns[1] / turns[0]:.4f}"
#     )

# %% [markdown]
# The first wavelength is exactly $2\pi$, a little over six positions. Each of the others is a fixed multiple of the one before. The
# last comes close to $10000 \cdot 2\pi$ in wide models and never reaches it, because the last exponent is
# $(d_{model} - 2)/d_{model}$, a little under 1. The authors' own code, tensor2tensor, divides by $d_{model} - 2$ instead, so that its last wavelength is exactly
# $10000 \cdot 2\pi$. We follow the paper's formula.

# %% [markdown]
# ## The table
#
# The two coordinates of a hand's end are the sine and the cosine of its angle. In the table they stand side by side, sine first:
#
# $$PE_{(pos,\, 2i)} = \sin(pos \cdot \omega_i), \qquad PE_{(pos,\, 2i+1)} = \cos(pos \cdot \omega_i)$$
#
# (tensor2tensor puts all sines into the first half and all cosines into the second. The order does not matter to a model that is
# trained from the start, because every matrix that meets these components is learned.) We compute in float64 and round once,
# at the end: at position 1,000 a float32 angle is already wrong in the fifth decimal.


# %%
def sinusoids(n: int, d_model: int) -> Tensor:
    """Section 3.5's table for positions 0 to n - 1, a row each: (n, d_model), float64.

    PE(pos, 2i) = sin(pos / 10000^(2i / d_model)),
    PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model)).
    Raises ValueError for an odd d_model.
    """
    pos = torch.arange(n, dtype=torch.float64)[:, None]
    angle = pos * frequencies(d_model)  # (n, d_model / 2)
    pairs = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (n, d_model / 2, 2)
    return pairs.flatten(1)


# %% tags=["active-ipynb"]
# ticks = [t if t % 8 == 0 else "" for t in range(64)]
# title = "each position has a pattern of its own"
# labels = ("component", "position")
# plotting.heatmap(sinusoids(64, 64), ticks, ticks, title, labels=labels);

# %% [markdown]
# Each row is one position and each column one component; dark blue is $+1$, dark brown is $-1$. On the left the columns change from one
# position to the next. To the right they change more and more slowly. Far to the right the sines are still near 0
# (white) and the cosines near 1, like the leading zeros of 0,000,023. No two rows are alike.
#
# Four of the columns as curves:

# %% tags=["active-ipynb"]
# curves = {f"component {c}": sinusoids(100, 64)[:, c] for c in (0, 8, 16, 17)}
# wide = plotting.new_axes(9, 2.8)
# title = "later components are slower; 16 and 17 are a quarter turn apart"
# plotting.lines(range(100), curves, "position", "value", title, ax=wide)
# wide.legend(bbox_to_anchor=(1, 1), loc="upper left");

# %% [markdown]
# Components 16 and 17 are the sine and the cosine of one frequency. Both are needed, because a sine alone has each value
# twice in a turn, and only the two together tell the angle.

# %% [markdown]
# ## A shift is a rotation
#
# The authors chose this pattern because they expected that a model could easily learn to look at the word three places
# back, say. For every fixed $k$, $PE_{pos+k}$ is the same linear map of $PE_{pos}$, wherever $pos$ is. This follows from the addition theorems: for each frequency the map is a rotation by $k\omega$ (the minus stands below because the sine comes first):
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
# title = "three positions on: one rotation for each frequency"
# plotting.heatmap(
#     shift_matrix(3, 8), range(8), range(8), title, values=True, labels=sides
# )
# table, M = sinusoids(1100, 512), shift_matrix(100, 512)
# difference = (table[:1000] @ M.T - table[100:]).abs().max().item()
# print(f"1,000 positions moved by 100: largest difference {difference:.0e}")
# assert difference < 1e-9

# %% [markdown]
# The matrix has blocks of 2 by 2 along the diagonal, and zeros elsewhere. The first block turns by 3 radians, almost half a turn; the last turns by 0.003, printed as 0.00.

# %% [markdown]
# How would a head use such a matrix? Let $x_p$ be the vector at position $p$, here its encoding alone. The score of position $j$ for position $p$ is
# $(W_Q x_p) \cdot (W_K x_j)$. Suppose training has made $W_Q$ pick some frequencies, and $W_K$ the same frequencies, turned by $M_3$. With these components alone the score is
#
# $$PE_p \cdot (M_3\, PE_j) = PE_p \cdot PE_{j+3},$$
#
# and an inner product of two encodings is largest where they are equal, at $j = p - 3$ (the next section shows it). Such a head scores the word three places back highest, anywhere in the sentence. It has room for half as many frequencies as it is wide, because each has a sine and a cosine: a head of the base model is 64 wide and can hold 32 of the 256.

# %% [markdown]
# ## Nearness
#
# Sine and cosine have a second property that suits attention, whose scores are inner products: because $\sin a \sin b + \cos a \cos b = \cos(a - b)$,
# the inner product of two encodings depends on the distance of their positions only. It is $PE_p \cdot PE_j = \sum_i \cos((p - j)\,\omega_i)$, which is largest at distance 0.
# The right picture adds the product with the key turned by $M_3$.

# %% tags=["active-ipynb"]
# encodings = table[:101]
# products = encodings @ encodings.T
# turned = encodings @ shift_matrix(3, 512) @ encodings.T
# left, right = plotting.new_axes(4.2, 3.6, columns=2)
# ticks = [t if t % 20 == 0 else "" for t in range(101)]
# labels = ("j", "p", "PE(p) · PE(j)")
# title = "only the distance counts"
# plotting.heatmap(products, ticks, ticks, title, left, labels=labels)
# near = slice(30, 71)  # 20 on each side of p = 50
# curves = {"PE(p) · PE(j)": products[50, near], "PE(p) · M₃ PE(j)": turned[50, near]}
# title = "highest at 0, or three words back"
# plotting.lines(range(-20, 21), curves, "j - p, for p = 50", "product", title, ax=right)
# assert products[50].argmax() == 50 and turned[50].argmax() == 47
# positions = torch.arange(101)
# by_distance = frequencies(512)[:, None].mul(positions).cos().sum(dim=0)
# expected = by_distance[(positions[:, None] - positions).abs()]
# assert torch.allclose(products, expected, rtol=0, atol=1e-9)
# print("each of the 10,201 products is the sum of cosines of its distance")

# %% [markdown]
# On the left each diagonal has one colour. The solid curve on the right is a part of its row 50. The peak is at
# distance 0, with the value $d_{model}/2 = 256$, and the curve falls off in the same way on both sides, to 158 at a distance of 20. So these products tell near from far, but not
# before from after. With $M_3$ in between (dashed) the peak is three words back.
#
# In a model both sides first pass through $W_Q$ and $W_K$, together with the words. A head whose matrices pick the same hands, fast and slow, would look at a place and its neighbours on both sides, and one whose matrices differ by a rotation would look to one side. What a trained head does has to be measured
# ([notebook 19](19_visualization.ipynb)).

# %% [markdown]
# ## Adding it to the embeddings
#
# The paper adds the pattern to the embedding and does not put the two side by side, so the width stays $d_{model}$. A model can still tell both parts apart if it uses different directions for each. The factor $\sqrt{d_{model}}$ of
# [notebook 06](06_embeddings.ipynb) gives the embeddings about the same size as the sines.
#
# The sines are computed for as many places as a sentence has. (The package's models keep a table of them, which has an end, and refuse a longer sentence.)


# %%
class Positions(nn.Module):
    """Add the sinusoids of positions 0, 1, ... to embeddings (B, T, d_model)."""

    def __init__(self, d_model: int):
        super().__init__()
        self.d_model = d_model

    def forward(self, x: Tensor) -> Tensor:
        return x + sinusoids(x.shape[1], self.d_model).to(x)  # of its type and device


# %% [markdown]
# With positions added, "dog bites man" and "man bites dog" give different vectors:

# %% tags=["active-ipynb"]
# positions = Positions(d_model=16)
# there, back = positions(words), positions(words.flip(1))
# after_there, after_back = heads(there, there, there), heads(back, back, back)
# assert not torch.allclose(after_there, after_back.flip(1), atol=0.01)
# gap = (after_there[0, 0] - after_back[0, 2]).abs().max()
# print(f"dog as the first word or the last: outputs differ by {gap:.2f}")

# %% [markdown]
# ## Learned positions
#
# The other choice of the time was one learned vector for each position (Gehring et al., 2017). Row E of the paper's Table 3 tries it
# and finds nearly the same score (25.7 in place of 25.8 BLEU, which [notebook 15](15_decoding.ipynb) defines). The paper keeps the sines, because they might carry over to sentences
# longer than any in training. The package's model takes `positions="learned"`.
#
# **Deviation:** the paper does not say how learned positions start. Here they start as small as unscaled embeddings do, much smaller than the sines. When
# [notebook 17](17_variations.ipynb) repeats row E, it therefore compares two sizes at the start as well as two kinds of positions.


# %%
class LearnedPositions(nn.Module):
    """Add a learned vector a position (row E of Table 3), of at most max_positions.

    Rows start as N(0, 1 / d_model), as embeddings do before they are scaled.
    """

    def __init__(self, max_positions: int, d_model: int):
        super().__init__()
        rows = torch.randn(max_positions, d_model)
        self.table = nn.Parameter(rows / math.sqrt(d_model))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


# %% tags=["active-ipynb"]
# learned = LearnedPositions(max_positions=50, d_model=16)
# learned(torch.randn(4, 20, 16)).square().sum().backward()
# touched = learned.table.grad.abs().sum(dim=1) > 0
# print(f"rows with a gradient: {touched.sum()} of {len(touched)}")
# assert touched.tolist() == [True] * 20 + [False] * 30

# %% [markdown]
# Sentences of 20 words give a gradient to the first 20 rows only, so rows past the longest sentence of training are never
# trained and stay random. The sines are defined everywhere, and a longer table can be computed at any time. Whether a model makes good use of sines at positions that it has not met in training is another question, which the paper leaves open. A later section measures it.

# %% [markdown]
# ## Turning queries and keys
#
# Vectors that are added to embeddings have to pass through $W_Q$ and $W_K$ before they reach a score. Rotary positions (Su et al., 2021), which most language models use today, come after these matrices. They turn each query and each key by the angles of its position: two numbers of the vector are the end of a hand, and hand $i$ at position $p$ is turned by $p\,\omega_i$ ($d_k$ replaces $d_{model}$ in $\omega_i$). Values are not turned. If two hands
# are turned by $p\,\omega$ and $j\,\omega$, the angle between them changes by $(p - j)\,\omega$. An inner product depends only on lengths and on such angles, so
# the score depends on the content of query and key, and on how far one stands before or after the other.

# %% [markdown]
# **Not in the paper (a switch, off by default):** the package's model takes `positions="rotary"`, and so do the commands (`transformer demo --positions rotary`).


# %%
def rotate(x: Tensor, table: Tensor) -> Tensor:
    """Turn queries or keys x (B, h, n, d_k) by their positions (Su et al., 2021).

    table (n, d_k) has the `sinusoids` of these positions. The numbers 2i and 2i + 1 of
    the vector at position pos are rotated by pos * omega_i, so that an inner product of
    a query and a key depends on pos_q - pos_k.
    """
    sin, cos = table.unflatten(-1, (-1, 2)).unbind(dim=-1)  # (n, d_k / 2)
    even, odd = x.unflatten(-1, (-1, 2)).unbind(dim=-1)  # (B, h, n, d_k / 2)
    turned = [cos * even - sin * odd, sin * even + cos * odd]
    return torch.stack(turned, dim=-1).flatten(-2)


# %% [markdown]
# A query and a key, moved together by 20 positions, fit each other as they did before:

# %% tags=["active-ipynb"]
# q, k = torch.randn(1, 1, 4, 16), torch.randn(1, 1, 4, 16)
# table = sinusoids(50, d_model=16).float()
# places = table[:4], table[20:24]
# scores = [rotate(q, rows) @ rotate(k, rows).transpose(2, 3) for rows in places]
# difference = (scores[0] - scores[1]).abs().max().item()
# print(f"moved by 20 positions: largest difference of the scores {difference:.0e}")
# assert difference < 1e-5
# assert not torch.allclose(scores[0], q @ k.transpose(2, 3), atol=0.01)

# %% [markdown]
# ## Which kind carries over to longer sentences?
#
# For the record `table2-bundled` seven Transformers, all post-norm (norms last, [03](03_stacks.ipynb)), learned the bundled corpus. They differ in their positions ([16](16_translation.ipynb) has more; BLEU, of [15](15_decoding.ipynb), is at most 100). Besides the three above:
#
# - *a bias for each distance*: each head of self-attention learns a number for each distance (from 16 on one for each side), added to its scores (Shaw et al., 2018; Raffel et al., 2020)
# - *sines and rotary*: both at once
# - *sines, shifted in training*: each sentence begins at a random place, so only distances are of use (Kiyono et al., 2021)
# - *no positions*: only the decoder's mask tells of order
#
# They translate sentences like training's, and the *harder set*: new combinations of words and constructions, and longer sentences (21 to 26 words; training: at most 20):

# %% tags=["active-ipynb"]
# kinds = [
#     "transformer",
#     "rotary",
#     "bias",
#     "sines-rotary",
#     "sines-shifted",
#     "learned",
#     "none",
# ]
# rows = read_rows("table2-bundled")
# title = "with rotary positions or a bias, longer sentences lose least"
# families.by_part(rows, kinds, title=title)
# families.print_differences(rows, kinds)
# families.print_longer(rows, kinds)

# %% [markdown]
# A dot is one of three seeds, a number their mean; scales differ. $p$ is how often so large a difference would come by chance: below 0.05 it counts. It is corrected for the number of comparisons, the interval is not ([17](17_variations.ipynb)). *Words*: those written, divided by the references'. The search prefers longer outputs the larger its length penalty $\alpha$ ([15](15_decoding.ipynb)); the last columns have several.
#
# **Sines carry over to longer sentences badly here**: 75.5 BLEU, where the test set has 96.7. Learned positions do worse; sines and rotary together do best (88.0), then rotary alone (86.2; whether these two differ was not tested).

# %% [markdown]
# On the harder set an RNN with attention is 6.9 BLEU ahead of the Transformer with sines ([16](16_translation.ipynb)). **That it lacks relative positions is one cause of this gap:** rotary ones and a bias are both above sines there, by 5.7 and 4.2. That was the condition for saying "cause", [written down before](https://github.com/OWNER/annotated-attention/blob/main/data/runs/table2.md). Most of it is gained on longer sentences, and, as we saw afterwards, at any $\alpha$.

# %% [markdown]
# What else could explain it? Not that sines disturb words: with sines *and* rotary the gain is as large. Hardly the learning rate: each kind had the best of three or more. Of five explanations written down before, one comes close: that the scores of every layer need distances. But then shifted sines, which are only added to the input, should equal sines, and they are 11 below (and learn more slowly). So none fits in full; what exactly helps, we do not know. On Multi30k's captions rotary positions and a bias gain 1.4 and 1.5 BLEU with the paper's $\alpha$ for all, looked at afterwards ([16](16_translation.ipynb)); all else is one made-up grammar. Models are small, and lengths near training's: in other tasks, at two or four times that length, rotary positions do badly, too ([21](21_language.ipynb), [24](24_state_space.ipynb)).

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
# print("6,400 entries agree with the formula")

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Write the table in the form of tensor2tensor: all sines in the first half, all cosines in the second, and the last wavelength exactly
# $10000 \cdot 2\pi$.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.positions import check_halves
#
#
# def halves(n, d_model):
#     """The table of positions 0 to n - 1: (n, d_model)"""
#     ...
#
#
# check_halves(halves)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def halves(n, d_model):
#     hands = d_model // 2
#     omega = 10000.0 ** (-torch.arange(hands) / (hands - 1))
#     angles = torch.arange(n)[:, None] * omega
#     return torch.cat([angles.sin(), angles.cos()], dim=1)
# ```
#
# With `hands - 1` in the exponent the last frequency is $10000^{-1}$.
# </details>
#
# **2.** A head should look `k` words back. From a list of frequencies, build the matrix $A$ of rotations for which $PE_p \cdot (A\, PE_j)$ is largest at $j = p - k$.
# (The components are sine, cosine, sine, cosine, ... as in `sinusoids`.)

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.positions import check_back
#
#
# def back(k, omega):
#     """A number of words, frequencies (d / 2,) -> a matrix (d, d)"""
#     ...
#
#
# check_back(back)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def back(k, omega):
#     A = torch.zeros(2 * len(omega), 2 * len(omega))
#     for i, w in enumerate(omega):
#         sin, cos = torch.sin(k * w), torch.cos(k * w)
#         block = torch.stack([torch.stack([cos, sin]), torch.stack([-sin, cos])])
#         A[2 * i:2 * i + 2, 2 * i:2 * i + 2] = block
#     return A
# ```
#
# The matrix moves the key at $j$ to where $j + k$ stands, and an inner product is largest where both sides agree, at $j + k = p$.
# </details>
#
# **3.** Turn queries by their positions: rotary positions in a few lines, with complex numbers if you like
# (`torch.view_as_complex`). Numbers $2i$ and $2i + 1$ are hand $i$, and a positive angle turns from the first towards the second.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.positions import check_rotate
#
#
# def rotate(x, omega):
#     """x (n, d), frequencies (d / 2,) -> (n, d), row pos turned by pos times omega"""
#     ...
#
#
# check_rotate(rotate)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def rotate(x, omega):
#     angles = torch.arange(len(x))[:, None] * omega
#     pairs = torch.view_as_complex(x.unflatten(1, (-1, 2)).contiguous())
#     turned = pairs * torch.polar(torch.ones_like(angles), angles)
#     return torch.view_as_real(turned).flatten(1)
# ```
#
# To multiply by a complex number of length 1 is to turn by its angle.
# </details>

# %% [markdown]
# ## Next
#
# All parts are there. [08 The model](08_model.ipynb) puts them together and shows them learn.
