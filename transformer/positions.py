# ---
# jupyter:
#   jupytext:
#     formats: notebooks/07_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 7 · Positions
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/07_positions.ipynb)
#
# *Section 3.5 of the paper. Reading takes about 25 minutes, running a few seconds. You need [chapter 4](04_attention.ipynb).*
#
# *Dog bites man* is no news, *man bites dog* is. Both are made of the same three words. What does attention make of the difference? We let it read both sentences and look at the vector that it gives to "dog".

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

# %% tags=["active-ipynb"]
# from transformer import load, views
# from transformer.attention import MultiHeadAttention, attention, split_heads
# from transformer.core.records import table
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits
#
#
# def shown(row):
#     return "  ".join(f"{number:5.2f}" for number in row)

# %% tags=["active-ipynb"]
# heads = MultiHeadAttention(d_model=16, h=2)
# vectors = {word: torch.randn(16) for word in ("dog", "bites", "man")}
#
#
# def dog_in(sentence, positions=lambda x: x):
#     words = sentence.split()
#     x = torch.stack([vectors[word] for word in words])[None]  # (1, 3, 16)
#     x = positions(x)  # nothing yet
#     return heads(x, x, x)[0, words.index("dog")]
#
#
# for sentence in ("dog bites man", "man bites dog"):
#     print(f"{sentence}:  dog becomes {shown(dog_in(sentence)[:5])} ...")

# %% [markdown]
# The numbers are the same. Attention compares every word with every other and takes a mean, and nowhere does it ask where they are. Shuffle the words, and everyone still meets the same company. The feed-forward network of [chapter 5](05_feed_forward.ipynb) cannot help, because it sees one word at a time.
#
# So the place of a word has to be written into its vector. But how do you write down a place, in such a way that attention can do something with it?

# %% [markdown]
# ## Why not simply count?
#
# The plainest idea is to add the position itself: 1 to all numbers of the first word's vector, 2 to those of the second, and so on. But the numbers in a word's vector are about as large as 1. At position 500 we would add 500 to them, and nothing of the word would be left.
#
# Then let us divide by the length of the sentence, so that all positions are between 0 and 1. Now a step to the next word is a third in one sentence and a thirtieth in another, and "the word before" means something else in each of them.
#
# People solved this long ago. They write digits. In 1,234,567 no digit is larger than 9, and yet a million places can be told apart: the last digit changes at every step, the digit before it ten times more slowly, and so on. Digits have one flaw. They jump: from 999 to 1,000 four of them change at once, although the two are neighbours.
#
# The hands of a clock do not jump. A clock is a number in digits that turn smoothly, with the fast digit as the second hand and the slow one as the hour hand. So the paper gives each word a clock. Its hand $i$ turns by the angle $\omega_i$ (in radians) from one position to the next:
#
# $$\omega_i = 10000^{-2i/d_{model}}, \qquad i = 0, 1, \ldots, d_{model}/2 - 1$$
#
# There are half as many hands as a vector has numbers, because each hand will need two of them.


# %%
def frequencies(d_model: int) -> Tensor:
    """omega_i = 10000^(-2i / d_model), radians a position: (d_model / 2,), float64.

    Section 3.5. Raises ValueError for an odd d_model.
    """
    if d_model % 2:
        raise ValueError(f"d_model must be even, two numbers a hand, not {d_model}")
    return 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


# %% tags=["active-ipynb"]
# print(frequencies(8))

# %% [markdown]
# With a width of 8 there are four hands, and each turns ten times more slowly than the hand before. That is exactly how digits behave.

# %% tags=["active-ipynb"]
# views.clocks(d_model=8)

# %% [markdown]
# *Read the picture downwards: from position to position hand 0 leaps, while hand 3 has hardly moved before position 1,000.* (In a running notebook: move the position.)

# %% [markdown]
# ## A hand is two numbers
#
# A vector holds numbers, not hands. Where a hand of length 1 points is told by two numbers: how high its tip is, the sine of its angle, and how far to the right, the cosine. One of them would not do. For example, at 30 and at 150 degrees the tip is equally high. So the word at position $pos$ gets, for each hand,
#
# $$PE_{(pos,\, 2i)} = \sin(pos \cdot \omega_i), \qquad PE_{(pos,\, 2i+1)} = \cos(pos \cdot \omega_i)$$
#
# Try it with a pocket calculator (set to radians). With a width of 4 there are two hands, $\omega_0 = 1$ and $\omega_1 = 0.01$. At position 3 their angles are 3 and 0.03, and the four numbers are $\sin 3 = 0.14$, $\cos 3 = -0.99$, $\sin 0.03 = 0.03$ and $\cos 0.03 = 1.00$.


# %%
def sinusoids(n: int, d_model: int) -> Tensor:
    """The rows of positions 0 to n - 1 (Section 3.5): (n, d_model), float64.

    Sine and cosine of each hand are side by side. In float32 the angles at position
    1,000 would be wrong in the fifth decimal.
    """
    pos = torch.arange(n, dtype=torch.float64)[:, None]
    angle = pos * frequencies(d_model)  # (n, d_model / 2)
    pairs = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (n, d_model / 2, 2)
    return pairs.flatten(1)


# %% tags=["active-ipynb"]
# for position, row in enumerate(sinusoids(4, d_model=4)):
#     print(f"position {position}: {shown(row)}")

# %% [markdown]
# Here are the first 64 positions of a wider clock:

# %% tags=["active-ipynb"]
# views.rows_of_positions(sinusoids(64, d_model=64))

# %% [markdown]
# *Each row is a position: on the left the numbers change from row to row, and far right the sines are still near 0 and the cosines near 1, like the leading zeros of 0,000,023.*
#
# When has a hand come round? After $2\pi/\omega_i$ positions, which is called its **wavelength**.


# %%
def wavelengths(d_model: int) -> Tensor:
    """Positions until each hand has come round, 2 pi / omega_i: (d_model / 2,)."""
    return 2 * math.pi / frequencies(d_model)


# %% tags=["active-ipynb"]
# turns = wavelengths(512)
# print(f"the paper's fastest hand: {turns[0]:.1f} positions, slowest: {turns[-1]:,.0f}")

# %% tags=["active-ipynb"]
# for pos, row in enumerate(sinusoids(200, 32).tolist()):
#     for i in range(16):
#         angle = pos / 10000 ** (2 * i / 32)
#         assert abs(row[2 * i] - math.sin(angle)) < 1e-9
#         assert abs(row[2 * i + 1] - math.cos(angle)) < 1e-9
# print("6,400 numbers agree with the paper's formula")

# %% [markdown]
# The paper adds the row of a position to the vector of the word that is there.


# %%
class Positions(nn.Module):
    """Add the sinusoids of positions 0, 1, ... to embeddings (B, T, d_model)."""

    def __init__(self, d_model: int):
        super().__init__()
        self.d_model = d_model

    def forward(self, x: Tensor) -> Tensor:
        return x + sinusoids(x.shape[1], self.d_model).to(x)  # of its type and device


# %% tags=["active-ipynb"]
# for sentence in ("dog bites man", "man bites dog"):
#     row = dog_in(sentence, Positions(d_model=16))
#     print(f"{sentence}:  dog becomes {shown(row[:5])} ...")

# %% [markdown]
# Now the dog that bites is another dog than the bitten one. From here on, order is something that vectors carry.
#
# Does adding not spoil the word? From the sum of two *numbers* nobody can tell what was added. But these vectors are 512 numbers long, and a word at random has little in common with any row of the table. So the row can be found again. We hide 1,000 random words at random positions, and take for each sum the row that it fits best.

# %% tags=["active-ipynb"]
# rows = sinusoids(100, d_model=512).float()
# places = torch.randint(100, (1000,))
# sums = torch.randn(1000, 512) + rows[places]  # word + position
# off = ((sums @ rows.T).argmax(dim=1) - places).abs()
# print(f"place found: {(off == 0).sum()} of 1,000; at most 1 off: {(off <= 1).sum()}")

# %% [markdown]
# ## What can a head do with a clock?
#
# Say that a head wants the word three places back. What does it have to know of the clock at its own position? Nothing. In three positions hand $i$ turns by $3\omega_i$, whatever the time was. So the step from the row of any position to the row three positions on is always the same rotation of each hand. **A shift is a rotation:**
#
# $$\begin{pmatrix} \sin((pos+k)\,\omega) \\ \cos((pos+k)\,\omega) \end{pmatrix} =
# \begin{pmatrix} \cos k\omega & \sin k\omega \\ -\sin k\omega & \cos k\omega \end{pmatrix}
# \begin{pmatrix} \sin(pos\,\omega) \\ \cos(pos\,\omega) \end{pmatrix}$$
#
# (The minus is in the lower row because the sine comes first.) All hands together make one matrix $M_k$:


# %%
def shift_matrix(k: int, d_model: int) -> Tensor:
    """M_k with PE(pos + k) = M_k PE(pos) for every pos: (d_model, d_model), float64.

    A rotation by k omega_i for each hand; k may be negative.
    """
    angle = k * frequencies(d_model)
    sin, cos = angle.sin(), angle.cos()
    rotations = torch.stack([cos, sin, -sin, cos], dim=-1).unflatten(-1, (2, 2))
    return torch.block_diag(*rotations)


# %% tags=["active-ipynb"]
# views.rotations(shift_matrix(3, d_model=8), steps=3)

# %% [markdown]
# *Each hand has a square of its own: hand 0 turns by 3 radians, almost half a turn, and hand 3 by 0.003, which leaves it as it was.*

# %% tags=["active-ipynb"]
# rows, M = sinusoids(1100, 512), shift_matrix(100, 512)
# assert (rows[:1000] @ M.T - rows[100:]).abs().max() < 1e-9
# print("one matrix moves each of 1,000 positions on by 100")

# %% [markdown]
# Now the head. The score of the word at $j$ for the word at $p$ is an inner product. For a moment, let both vectors be nothing but their clocks. Two hands of length 1 have the product
#
# $$\sin a \sin b + \cos a \cos b = \cos(a - b),$$
#
# which is 1 if they point the same way, and less the further they are apart. All hands added, $PE_p \cdot PE_j = \sum_i \cos((p - j)\,\omega_i)$. This depends on the distance of the two words alone, and it is largest at distance 0, where all hands agree. Put $M_3$ between the two, and the key's clock is three positions fast:
#
# $$PE_p \cdot (M_3\, PE_j) = PE_p \cdot PE_{j+3}$$
#
# Where will this product be largest?

# %% tags=["active-ipynb"]
# p, near = 50, torch.arange(30, 71)
# rows = sinusoids(101, 512)
# same = rows[near] @ rows[p]
# fast = rows[near] @ shift_matrix(3, 512).T @ rows[p]
# curves = {"the same time": same, "keys three positions fast": fast}
# views.nearness((near - p).tolist(), curves)

# %% [markdown]
# *Follow the peaks: as they are, clocks agree at distance 0, and with $M_3$ between them they agree three words back.*
#
# That is all a head needs. Its matrix $W_Q$ takes the clock out of the vector, $W_K$ takes out the clock and turns it by $M_3$, and softmax does the rest. Here is such a head on a sentence of ten words. It does not know a single one of them.

# %% tags=["active-ipynb"]
# words = "the old cat that saw the dog lost its ball".split()
# clock = sinusoids(len(words), 64)
# keys = clock @ shift_matrix(3, 64).T
# _, weights = attention(16 * clock, keys, clock)  # 16: loudly
# views.looks_back(weights, words)

# %% [markdown]
# *From "that" on each word looks three words back; the first three cannot, and take the earliest word there is.*
#
# The authors hoped for this: they chose sines because "it would allow the model to easily learn to attend by relative positions". Does a model learn it? We take the translator that ships with this book, and ask the heads of its first layer about clocks and nothing else: the table goes in where words should be.

# %% tags=["active-ipynb"]
# model, _ = load()
# layer = model.encoder.layers[0].self_attention
# clock = sinusoids(20, 128).float()
# with torch.no_grad():
#     q = split_heads(layer.W_Q(clock)[None], h=4)[0]  # (4, 20, 32)
#     k = split_heads(layer.W_K(clock)[None], h=4)[0]
# scores = q @ k.transpose(1, 2) / math.sqrt(32)  # (4, 20, 20)
#
# steps = list(range(-6, 7))
# curves = {
#     f"head {i}": [head.diagonal(step).mean() for step in steps]
#     for i, head in enumerate(scores, 1)
# }
# views.nearness(steps, curves, ylabel="mean score")

# %% [markdown]
# *Look at the dots: from the clocks alone heads 1 and 2 prefer the word before, head 3 the word after, and head 4, quietly, the word itself.*
#
# Nobody built that. It was learned from pairs of sentences, and it has the shape of the curves that we made by hand: one peak, at a distance from the word that looks. (Words have their say in these scores, too; here we left them out.)

# %% [markdown]
# ## Why add, if you can turn?
#
# Adding has a price. A score is now a product of two sums, and multiplied out it has four parts:
#
# $$(x_p + PE_p) \cdot (x_j + PE_j) = x_p \cdot x_j + x_p \cdot PE_j + PE_p \cdot x_j + PE_p \cdot PE_j$$
#
# Only the last part knows about distance. The two in the middle weigh a word against a *place*: a head can learn to like whatever is at position 17. That is seldom what you mean, and it says nothing about position 117.
#
# We have just seen that a rotation is a shift. Why not rotate the query and the key themselves? These are **rotary positions** (Su et al., 2021), and most of today's language models have them. Nothing is added to the words. Instead, after $W_Q$ and $W_K$, the numbers of a query are taken two by two, as the tips of hands, and hand $i$ of the query at position $p$ is turned by $p\,\omega_i$. The same is done to each key, with its own position $j$. If the words themselves have given the two hands the angles $a$ and $b$, then they point to $a + p\,\omega$ and $b + j\,\omega$ now, and the angle between them is
#
# $$(a + p\,\omega) - (b + j\,\omega) = (a - b) + (p - j)\,\omega .$$
#
# The words are in it, and the distance. The places are gone.

# %% tags=["active-ipynb"]
# views.rotary(((12, 10), (40, 38), (40, 35)))  # positions of query and key

# %% [markdown]
# *Compare the first two rows: all hands have moved, but no angle between the blue hand and the black one has, and so the score is the same; in the third row the key is further away.* (In a running notebook: move the query, then the key.)


# %%
def rotate(x: Tensor, table: Tensor) -> Tensor:
    """Turn queries or keys x (..., n, d_k) by their positions (Su et al., 2021).

    table (n, d_k) has the `sinusoids` of these positions. The numbers 2i and 2i + 1 of
    a vector are the tip of hand i (right, up), which is turned by pos * omega_i.
    """
    sin, cos = table.unflatten(-1, (-1, 2)).unbind(dim=-1)  # (n, d_k / 2)
    right, up = x.unflatten(-1, (-1, 2)).unbind(dim=-1)  # (..., n, d_k / 2)
    turned = [cos * right - sin * up, sin * right + cos * up]
    return torch.stack(turned, dim=-1).flatten(-2)


# %% tags=["active-ipynb"]
# q, k = torch.randn(2, 16)  # a query and a key
# table_16 = sinusoids(100, 16).float()
# for at_q, at_k in ((12, 10), (40, 38), (40, 35)):
#     score = rotate(q, table_16[at_q]) @ rotate(k, table_16[at_k])
#     print(f"query at {at_q}, key at {at_k}: score {score:6.3f}")

# %% [markdown]
# The values are not turned. A score may depend on the distance, but what comes home should be the word.

# %% [markdown]
# ## Which kind goes further?
#
# Two more ways to tell a place are common. You can leave it to the model, and let it learn a vector for each position as it learns one for each word (Gehring et al., 2017):


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


# %% [markdown]
# (**Deviation:** the paper does not say how the rows start.) Or you can add to each score a learned number for its distance, a **relative bias** (Shaw et al., 2018; Raffel et al., 2020). What does each of the three put into the scores, before any training?

# %% tags=["active-ipynb"]
# places = torch.arange(40)
# distance = places[:, None] - places  # (40, 40), from -39 to 39
# bias = torch.randn(79)  # a number for each distance
# clock = sinusoids(40, 64)
# learned = LearnedPositions(40, 64).table.detach()
# kinds = {
#     "sines": clock @ clock.T,
#     "learned vectors": learned @ learned.T,
#     "relative bias": bias[distance + 39],
# }
# views.stripes(kinds)

# %% [markdown]
# *Look for stripes along the diagonal, where the distance is the same: sines and a bias have them, and of learned vectors each knows only itself.*
#
# In the paper's Table 3 learned vectors translate as well as sines. But they have a handicap. A row that no sentence in training is long enough to reach never gets a gradient, and keeps its random numbers. Sines can be computed for any position, and the paper hoped that they would let a model "extrapolate to sequence lengths longer than the ones encountered during training". Do they? Four Transformers, alike in all but their positions, learned the made-up grammar that ships with this book, from sentences of at most 20 words, three trainings each. Then they translated new sentences: as long as those, and of 21 to 26 words. (BLEU, of [chapter 15](15_decoding.ipynb), is 100 if everything is right.) Guess before you look: who keeps most?

# %% tags=["active-ipynb"]
# runs = table("table2-bundled").query("what == 'run'")
# bleu = runs.groupby("family")[["part.test", "part.hard.longer"]].mean()
# names = {"rotary": "rotary", "bias": "relative bias"}
# names |= {"transformer": "sines", "learned": "learned vectors"}
# views.further({name: bleu.loc[family].tolist() for family, name in names.items()})

# %% [markdown]
# *On familiar lengths all four are close together; on longer sentences those that tell distances keep most.*
#
# So the sines did not extrapolate well here. One cause is that this model is not offered distances: both kinds that are offered them keep much more, and our plan, written before the runs, had made that the condition for speaking of a cause ([evidence 7.1](evidence/07_positions.ipynb)). But these are small models, one grammar, and lengths just beyond training's. At two to four times those lengths rotary positions did badly, too, in the tasks of chapters [21](21_language.ipynb) and [24](24_state_space.ipynb).
#
# And who bit whom? The words cannot say, and attention did not ask. The clocks say it.
#
# *The package keeps a table of these rows and refuses a sentence that is longer ([its version](https://github.com/OWNER/annotated-attention/blob/main/transformer/fast/positions.py)). **Not in the paper:** rotary and learned positions are switches of its model, `positions="rotary"` and `"learned"`.*

# %% [markdown]
# ## What to keep
#
# - Attention does not know order, so each word's vector must carry its place; otherwise *dog bites man* is *man bites dog*.
# - A position is written as the time on a clock whose hands turn at many speeds, and to move on by some words is one and the same rotation everywhere.
# - Rotary positions turn queries and keys instead of adding to the words, so that a score knows the distance of two words and not their places.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Suppose the clock had only its fastest hand, with $\omega_0 = 1$. At position 44 it points almost exactly where it pointed at position 0. Why 44? (A fraction that you know from school is enough.) And with the four hands of width 8, which hand tells the two positions apart best?
#
# <details><summary>Answer</summary>
#
# A turn takes $2\pi$ positions, and $\pi$ is nearly $22/7$. So seven turns take nearly $7 \cdot 2 \cdot 22/7 = 44$ positions (exactly: 43.98). Hand 1 turns by a tenth of that, 4.4 radians or 252 degrees, so it points elsewhere altogether. Hand 2 has moved by 0.44 radians, or 25 degrees, and hand 3 by two and a half.
# </details>
#
# **2. In code.** With rotary positions, too, a head can look back. You are given a query. Which key, of the same length, fits it best when it is `back` words before the query? (Both will be turned by `rotate`, each by its own position.)

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.positions import check_key_for
#
#
# def key_for(q, back):
#     """A query (d_k,) before it is turned -> the key (d_k,), before it is turned."""
#     ...
#
#
# check_key_for(key_for)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def key_for(q, back):
#     table = sinusoids(back + 1, len(q))
#     ahead = table[back].to(q)
#     return rotate(q, ahead)
# ```
#
# The query at $p$ is turned by $p$ positions. The key at $p - k$ is turned by only $p - k$ of them, so it has to be $k$ positions ahead from the start. Then all hands agree, and no product of vectors of these lengths is larger.
# </details>
#
# **3. To think about.** One of the families in [evidence 7.1](evidence/07_positions.ipynb) has no positions at all. It scores 63 on familiar lengths, which is poor, but more than one might expect of a heap of words. In its decoder, position $t$ may look at positions up to $t$ only. How can such a decoder know where it is?
#
# <details><summary>Answer</summary>
#
# The mask gives it away. The first word has a company of one, the third a company of three. For example, all words may share a key, and one word that is always there, the mark of the beginning, may have a value of its own. Then its share of the mean is all, a half, a third, and so on: the position, written as $1/t$. The encoder has no such mask, and without positions it does read a heap of words.
# </details>
#
# **Next.** All parts are there. [Chapter 8](08_model.ipynb) puts them together.
