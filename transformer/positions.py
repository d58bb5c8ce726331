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
# *Section 3.5 of the paper. Reading takes about 20 minutes, running a few seconds. You need chapters [4](04_attention.ipynb) and [6](06_embeddings.ipynb).*
#
# *Dog bites man* is no news, *man bites dog* is. Both are made of the same three words. What does attention make of the difference? It reads both sentences, and we look at the vector that it gives to "dog". Guess how far apart the two vectors will be.

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
# from transformer import load, read_corpus, views
# from transformer.attention import MultiHeadAttention, attention
# from transformer.core.records import table
#
# torch.manual_seed(0)
# torch.set_num_threads(1)
#
#
# def shown(row):
#     return "  ".join(f"{number:5.2f}" for number in row)

# %% tags=["active-ipynb"]
# heads = MultiHeadAttention(d_model=16, h=2)
# vectors = {word: torch.randn(16) for word in ("dog", "bites", "man")}
#
#
# def embed(sentence):
#     return torch.stack([vectors[word] for word in sentence.split()])[None]  # (1, 3, 16)
#
#
# for sentence in ("dog bites man", "man bites dog"):
#     x = embed(sentence)
#     dog = heads(x, x, x)[0, sentence.split().index("dog")]
#     print(f"{sentence}:  dog becomes {shown(dog[:5])} ...")

# %% [markdown]
# Not at all! Attention compares every word with every other and takes a mean, and nowhere does it ask where they are. Shuffle the words, and everyone still meets the same company. The feed-forward network of [chapter 5](05_feed_forward.ipynb) cannot help, because it sees one word at a time.
#
# So the place of a word has to be written into its vector. But how do you write down a place, in such a way that attention can tell who bites and who is bitten?

# %% [markdown]
# ## Why not simply the number of the place?
#
# The plainest idea is to add the number itself: 1 to all numbers of the first word's vector, 2 to those of the second, and so on. But the numbers in a word's vector are about as large as 1. At position 500 we would add 500 to them, and hardly anything of the word would be left.
#
# Then let us divide by the length of the sentence, so that all positions are between 0 and 1. Now a step to the next word is a third in one sentence and a thirtieth in another, and "the word before" means something else in each of them.
#
# People solved this long ago. They write digits. In 1,234,567 no digit is larger than 9, and yet a million places can be told apart: the last digit changes at every step, the digit before it ten times more slowly, and so on. Digits have one flaw. They jump: from 999 to 1,000 four of them change at once, although the two are neighbours.
#
# ## Give each word a clock
#
# The hands of a clock do not jump. A clock is a number in digits that turn smoothly, with the fast digit as the second hand and the slow one as the hour hand. So the paper gives each word a clock. Here is a small one with four hands. At each step hand 0 turns by one radian, which is 57 degrees, and each further hand turns ten times more slowly. Before you look: where will hand 1 point at position 10?

# %% tags=["active-ipynb"]
# views.clocks(d_model=8)

# %% [markdown]
# *Compare position 1 with position 10: at position 10 hand 1 is where hand 0 was at position 1, as a tens digit would be, and hand 3 has hardly moved before position 1,000.* (In a running notebook: move the position.)
#
# For a vector of $d_{model}$ numbers, hand $i$ turns by $\omega_i$ radians a position:
#
# $$\omega_i = 10000^{-2i/d_{model}}, \qquad i = 0, 1, \ldots, d_{model}/2 - 1$$
#
# There are half as many hands as numbers in a vector, because each hand will need two.


# %%
def frequencies(d_model: int) -> Tensor:
    """omega_i = 10000^(-2i / d_model), radians a position: (d_model / 2,), float64.

    Section 3.5. Raises ValueError for an odd d_model.
    """
    if d_model % 2:
        raise ValueError(f"d_model must be even, two numbers a hand, not {d_model}")
    return 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


# %% [markdown]
# With $d_{model} = 8$ these are 1, 0.1, 0.01 and 0.001, the four hands of the picture. The paper's vectors have 512 numbers, so its clock has 256 hands. The last one takes almost $2\pi \cdot 10{,}000$ positions for a turn, so no two words of a sentence get the same time.

# %% [markdown]
# ## A hand is two numbers
#
# How do you write down where a hand points? Let each hand have the length 1 and start at twelve. The sine of its angle says how far to the right its tip is, and the cosine says how high. One of them would not do. For example, at one o'clock and at five o'clock the tip is equally far to the right. So the word at position $pos$ gets, for each hand,
#
# $$PE_{(pos,\, 2i)} = \sin(pos \cdot \omega_i), \qquad PE_{(pos,\, 2i+1)} = \cos(pos \cdot \omega_i)$$
#
# ($PE$ is short for *positional encoding*.) Try it with a pocket calculator, set to radians. With a width of 4 there are two hands, $\omega_0 = 1$ and $\omega_1 = 0.01$. At position 3 their angles are 3 and 0.03, and the four numbers are $\sin 3 = 0.14$, $\cos 3 = -0.99$, $\sin 0.03 = 0.03$ and $\cos 0.03 = 1.00$.


# %%
def sinusoids(n: int, d_model: int) -> Tensor:
    """The rows of positions 0 to n - 1 (Section 3.5): (n, d_model), float64.

    Sine and cosine of each hand are side by side.
    """
    pos = torch.arange(n, dtype=torch.float64)[:, None]
    angle = pos * frequencies(d_model)  # (n, d_model / 2)
    pairs = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (n, d_model / 2, 2)
    return pairs.flatten(1)


# %% tags=["active-ipynb"]
# for position, row in enumerate(sinusoids(4, d_model=4)):
#     print(f"position {position}: {shown(row)}")
#
# views.rows_of_positions(sinusoids(64, d_model=64))  # a wider clock

# %% [markdown]
# *Each row is a position: on the left the numbers change from row to row, and far right the sines are still near 0 and the cosines near 1, like the leading zeros of 0,000,023.*
#
# Your four numbers are the last row that was printed, and the picture shows a wider clock. The paper adds the row of a position to the vector of the word that is there.


# %%
class Positions(nn.Module):
    """Add the sinusoids of positions 0, 1, ... to embeddings (B, T, d_model)."""

    def __init__(self, d_model: int):
        super().__init__()
        self.d_model = d_model

    def forward(self, x: Tensor) -> Tensor:
        return x + sinusoids(x.shape[1], self.d_model).to(x)  # of its type and device


# %% tags=["active-ipynb"]
# positions = Positions(d_model=16)
# for sentence in ("dog bites man", "man bites dog"):
#     x = positions(embed(sentence))
#     dog = heads(x, x, x)[0, sentence.split().index("dog")]
#     print(f"{sentence}:  dog becomes {shown(dog[:5])} ...")

# %% [markdown]
# Now the dog that bites is another dog than the bitten one. From here on, order is something that vectors carry.
#
# Does adding not spoil the word? From the sum of two *numbers* nobody can tell what was added. A long *vector* has room for both, because training can move the words out of the clock's way.

# %% [markdown]
# ## A shift is a rotation
#
# Say that a head wants the word three places back. What must it know of its own position? Nothing. Whatever the time is, in three positions hand $i$ turns by $3\omega_i$.
#
# Try it with hand 0. At position 0 it points at twelve, so its two numbers are 0 and 1. Turn it by 3 radians:
#
# $$\begin{pmatrix} -0.99 & 0.14 \\ -0.14 & -0.99 \end{pmatrix} \begin{pmatrix} 0 \\ 1 \end{pmatrix} = \begin{pmatrix} 0.14 \\ -0.99 \end{pmatrix}$$
#
# You found these numbers for position 3. The same matrix takes position 1 to 4, and 100 to 103. In general, a step of $s$ positions is
#
# $$\begin{pmatrix} \sin((pos+s)\,\omega) \\ \cos((pos+s)\,\omega) \end{pmatrix} =
# \begin{pmatrix} \cos s\omega & \sin s\omega \\ -\sin s\omega & \cos s\omega \end{pmatrix}
# \begin{pmatrix} \sin(pos\,\omega) \\ \cos(pos\,\omega) \end{pmatrix}$$
#
# All hands together make one matrix $M_s$:


# %%
def shift_matrix(steps: int, d_model: int) -> Tensor:
    """M_s with PE(pos + s) = M_s PE(pos) for every pos: (d_model, d_model), float64.

    A rotation by s omega_i for each hand; steps may be negative.
    """
    angle = steps * frequencies(d_model)
    sin, cos = angle.sin(), angle.cos()
    rotations = torch.stack([cos, sin, -sin, cos], dim=-1).unflatten(-1, (2, 2))
    return torch.block_diag(*rotations)  # a square of two by two for each hand


# %% tags=["active-ipynb"]
# views.rotations(shift_matrix(3, d_model=8), steps=3)

# %% [markdown]
# *Each hand has a square of its own: hand 0 turns by 3 radians, almost half a turn, and hand 3 by 0.003, which leaves it as it was.*

# %% tags=["active-ipynb"]
# rows, M = sinusoids(1100, 512), shift_matrix(100, 512)
# assert (rows[:1000] @ M.T - rows[100:]).abs().max() < 1e-9
# print("one matrix moves each of 1,000 positions on by 100")

# %% [markdown]
# ## How does a head look three words back?
#
# A head compares by inner products. For a moment, let its vectors be clocks alone. Two hands at the angles $a$ and $b$ have the product
#
# $$\sin a \sin b + \cos a \cos b = \cos(a - b),$$
#
# which is 1 if they point the same way, and less the further they are apart. So clocks fit best when they show the same time, and every word would look at itself. Now let the head take $M_3$ as its $W_K$: it sets each key's clock three positions fast. Which word's key then shows the query's time? The one three places back:
#
# $$M_3\, PE_{p-3} = PE_p$$
#
# Here is this head on a sentence of ten words. Softmax needs large scores to decide, so on the right the queries are multiplied by 16.

# %% tags=["active-ipynb"]
# words = "the old cat that saw the dog lost its ball".split()
# clock = sinusoids(len(words), 64)
# keys = clock @ shift_matrix(3, 64).T  # W_K = M_3: each is three positions fast
# _, soft = attention(clock, keys, clock)
# _, sharp = attention(16 * clock, keys, clock)
# views.looks_back({"queries as they are": soft, "queries times 16": sharp}, words)

# %% [markdown]
# *Look at the diagonal on the right, from "that" on: each word looks three words back, and the first three, which have no such word, look at the first.*
#
# ## Does a trained head look back?
#
# The authors hoped that heads would learn this. We ask one in the first layer of the small translator of [chapter 6](06_embeddings.ipynb). It gets clocks where words should be, up to places that its training never reached.

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# attend = model.encoder.layers[0].self_attention
# W_Q, W_K = attend.W_Q.weight[32:64], attend.W_K.weight[32:64]  # of the second head
# clock = sinusoids(40, 128).float()
# scores = (clock @ W_Q.T) @ (clock @ W_K.T).T / math.sqrt(32)  # (40, 40)
#
# training = [tokenizer.encode(english) for english, _ in read_corpus("bundled", "train")]
# tokens = torch.tensor([len(ids) + 1 for ids in training])  # 1: the mark of the end
# many = (tokens > 18).float().mean()
# print(f"training: at most {tokens.max()} tokens; {many:.0%} have more than 18")
# views.beyond(scores.detach(), known=int(tokens.max()))

# %% [markdown]
# *Follow the dots, each query's best key: they run along the diagonal, mostly on the word before, until about place 18, and then they stand in a few columns, wherever the query is.*
#
# Nobody built that band. It was learned from pairs of sentences. It is broad, so the head looks into a neighbourhood rather than at a single word.
#
# But why does it end, when the clock goes on? By hand we chose a matrix that treats all places alike, because a shift by one is the same rotation everywhere. Nobody asks training for that. Any matrices will do that serve the places of its sentences, and the later a place is, the fewer sentences reach it. (Likely, but untested.)

# %% [markdown]
# ## Could the model learn its own clock?
#
# You can also let the model learn a vector for each position, as it learns a row for each word (Gehring et al., 2017):


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
# In the paper's Table 3 such **learned positions** translate as well as sines. But a row that no training sentence reached is still random. Sines can be computed for any position, so the authors hoped that they would carry to longer sentences.

# %% [markdown]
# ## Why add, if you can turn?
#
# Adding has a price. A score is a product of two sums, word plus clock, so it weighs words against places, too. A head can learn to like whatever is at position 17, which says nothing about position 117. Could a score know the words and the distance, and nothing else?
#
# A shift is a rotation. So why not rotate the query and the key themselves? These are **rotary positions** (Su et al., 2021), and most of today's language models have them. Nothing is added. Instead, after $W_Q$ and $W_K$, a query's numbers are taken two by two, as the tips of hands, and hand $i$ at position $p$ is turned by $p\,\omega_i$. The same is done to each key, with its own position.
#
# For example, take a hand that turns by 10 degrees a position. The words have set the query's hand to 80 degrees and the key's to 30. At positions 12 and 10 they are turned to $80 + 120 = 200$ and $30 + 100 = 130$ degrees, 70 apart. At 40 and 38 both have turned by 280 degrees more, and are still 70 apart. In general, with the words' angles $a$ and $b$:
#
# $$(a + p\,\omega) - (b + j\,\omega) = (a - b) + (p - j)\,\omega$$
#
# The words are in it, and the distance. The places are gone. And the score is made of the cosines of these angles, each times the lengths of its two hands, which turning does not change.

# %% tags=["active-ipynb"]
# views.rotary(((12, 10), (40, 38), (40, 35)))  # positions of query and key

# %% [markdown]
# *Compare the first two rows: all hands have moved, but no angle between the query's hand (blue) and the key's (black) has, and so the score is the same; in the third row the key is further away.* (In a running notebook: move the query, then the key.)
#
# In code a pair is (up, right), where the pairs of the sines were (right, up). The order does not matter, if queries and keys agree.


# %%
def rotate(x: Tensor, rows: Tensor) -> Tensor:
    """Turn queries or keys x (..., n, d_k) by their positions (Su et al., 2021).

    rows (n, d_k) are the `sinusoids` of these positions. The numbers 2i and 2i + 1 of
    a vector are the tip of hand i (up, right), which is turned by pos * omega_i.
    """
    sin, cos = rows.unflatten(-1, (-1, 2)).unbind(dim=-1)  # (n, d_k / 2)
    up, right = x.unflatten(-1, (-1, 2)).unbind(dim=-1)  # (..., n, d_k / 2)
    turned = [cos * up - sin * right, sin * up + cos * right]
    return torch.stack(turned, dim=-1).flatten(-2)


# %% tags=["active-ipynb"]
# query, key = torch.randn(2, 8, dtype=torch.float64)  # any two vectors
# rows = sinusoids(100, 8)
# for p, j in ((12, 10), (40, 38), (40, 35)):
#     score = rotate(query, rows[p]) @ rotate(key, rows[j])
#     print(f"query at {p}, key at {j}: score {score:.2f}")

# %% [markdown]
# The first two scores agree, as they would for any vectors. Values are not turned: what comes home should be the word. (**Not in the paper:** the package's model has a switch for it, `positions="rotary"`.)

# %% [markdown]
# ## Which kind goes further?
#
# Five Transformers, alike in all but their positions, learned to translate sentences of at most 20 words. One has a **relative bias**, a learned number for each distance that is added to the score (Raffel et al., 2020), and one no positions at all. Then all translated new sentences, some of them longer, of 21 to 26 words. BLEU ([chapter 15](15_decoding.ipynb)) is 100 if everything is right. Which kind will keep most?

# %% tags=["active-ipynb"]
# kinds = {
#     "rotary": "rotary",
#     "bias": "relative bias",
#     "transformer": "sines",
#     "learned": "learned vectors",
#     "none": "no positions",
# }
# runs = table("table2-bundled").query("what == 'run'")
# scores = {}
# for family, name in kinds.items():
#     trainings = runs[runs["family"] == family]
#     familiar, longer = trainings["part.test"], trainings["part.hard.longer"]
#     scores[name] = (familiar.tolist(), longer.tolist())
# views.further(scores)

# %% [markdown]
# *A circle is a training, and the numbers are means: on familiar lengths (hollow) all four kinds of positions are close together, and on longer sentences (filled) rotary positions and the bias keep most.*
#
# On longer sentences sines do little better than learned vectors, some of whose rows are still random. So the authors' hope is not fulfilled here: the clock goes on, but nobody has taught the heads to read it there. Rotary positions and the bias lead. They tell a head distances, and nearly all distances in a longer sentence are familiar. That is a likely reason for their lead. They, too, lose something ([evidence 7.1 and 7.4](evidence/07_positions.ipynb)).
#
# And who bit whom? The words cannot say, and attention did not ask. The clocks say it.

# %% [markdown]
# ## What to keep
#
# - Attention does not know order, so each word's vector must carry its place; otherwise *dog bites man* is *man bites dog*.
# - A position is written as the time on a clock whose hands turn at many speeds, and to move on by some words is one and the same rotation everywhere, so a head can look back at a distance.
# - Rotary positions turn queries and keys instead of adding to the words, so that a score knows the distance of two words and not their places.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Suppose the clock had only its fastest hand, with $\omega_0 = 1$. At position 44 it points almost exactly where it pointed at position 0. Why? (A fraction that you know from school is enough.) And which of the four hands of width 8 tells the two positions apart best?
#
# <details><summary>Answer</summary>
#
# A turn takes $2\pi$ positions, and $\pi$ is nearly $22/7$. So seven turns take nearly $7 \cdot 2 \cdot 22/7 = 44$ positions. Hand 1 turns by a tenth of that, 252 degrees, so it points elsewhere altogether. Hands 2 and 3 have moved by 25 degrees and less.
# </details>
#
# **2. In code.** With rotary positions, too, a head can look back. You are given a query, before `rotate` has turned it. Another word stands `back` places before it. Which key must that word have, before `rotate` turns it, so that the turned key equals the turned query?

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
#     rows = sinusoids(back + 1, len(q))
#     ahead = rows[back].to(q)
#     return rotate(q, ahead)
# ```
#
# The key is turned by `back` positions less, so it has to be ahead by that much from the start.
# </details>
#
# **3. To think about.** The model without positions scores 63 on familiar lengths, more than you might expect of a heap of words. In its decoder, position $t$ may look at positions up to $t$ only. How can such a decoder know where it is?
#
# <details><summary>Answer</summary>
#
# The mask gives it away. The third word has a company of three. For example, all words may share a key, and the mark of the beginning, which is always there, may have a value of its own. Then its share of the mean is all, a half, a third, and so on: the position, written as $1/t$. The encoder has no such mask.
# </details>
#
# **Next.** All parts are there. [Chapter 8](08_model.ipynb) puts them together.
