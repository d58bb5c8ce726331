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
# *Dog bites man* is no news, *man bites dog* is. Both are made of the same three words. Let attention read both sentences, and look at the vector that it gives to "dog" in each. How far apart will these vectors be?

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

# %% tags=["active-ipynb"]
# heads = MultiHeadAttention(d_model=16, h=2)  # untrained
# vectors = {word: torch.randn(16) for word in ("dog", "bites", "man")}
#
#
# def dogs_apart(prepare):
#     """The distance of the two vectors of "dog", as a share of the length of one."""
#     dogs = []
#     for sentence in ("dog bites man", "man bites dog"):
#         words = sentence.split()
#         x = prepare(torch.stack([vectors[word] for word in words])[None])  # (1, 3, 16)
#         dogs.append(heads(x, x, x)[0, words.index("dog")])
#     return (dogs[0] - dogs[1]).norm() / dogs[0].norm()
#
#
# print(f"the two dogs are apart by {dogs_apart(lambda x: x):.0%} of their length")

# %% [markdown]
# Not at all! Attention takes a mean, and never asks where the words are (chapter 0). Shuffle them, and everyone still meets the same company. The feed-forward network cannot help, because it sees one word at a time.
#
# So somebody has to tell a word its place, its *position*. The paper writes it into the word's vector. But how do you write down a position, so that attention can tell who bites and who is bitten?

# %% [markdown]
# ## Why not simply the number of the position?
#
# The plainest idea is to add the number itself to all numbers of the word's vector. But the numbers in a word's vector are about as large as 1. At position 500 we would add 500 to them, and hardly anything of the word would be left.
#
# People solved this long ago. They write digits. No digit is larger than 9, and yet seven of them tell ten million places apart: the last digit changes at every step, the digit before it ten times more slowly, and so on. Digits have one flaw. They jump: from 999 to 1,000 four of them change at once. But neighbours should look alike, so that what a network learns about position 999 helps it at position 1,000.
#
# ## Give each word a clock
#
# The hands of a clock do not jump. A clock is a number in digits that turn smoothly. So the paper gives each word a clock. Here is a small one with four hands. At each step hand 0 turns by one radian, which is 57 degrees, and each further hand turns ten times more slowly. Before you look: where will hand 1 point at position 10?

# %% tags=["active-ipynb"]
# views.clocks(d_model=8)

# %% [markdown]
# *Follow one angle down the picture: where hand 0 is at position 1, hand 1 is at position 10, hand 2 at 100 and hand 3 at 1,000.* (In a running notebook: move the position.)
#
# For a vector of $d_{model}$ numbers, hand $i$ turns by $\omega_i$ radians a position:
#
# $$\omega_i = 10000^{-2i/d_{model}}, \qquad i = 0, 1, \ldots, d_{model}/2 - 1$$


# %%
def frequencies(d_model: int) -> Tensor:
    """omega_i = 10000^(-2i / d_model), radians a position: (d_model / 2,), float64.

    Section 3.5. Raises ValueError for an odd d_model.
    """
    if d_model % 2:
        raise ValueError(f"d_model must be even, two numbers a hand, not {d_model}")
    return 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


# %% [markdown]
# With $d_{model} = 8$ these are 1, 0.1, 0.01 and 0.001, the four hands of the picture. The paper's vectors have 512 numbers, so its clock has 256 hands, each only some 4% slower than the hand before. The last hand takes almost $2\pi \cdot 10{,}000$ positions for a turn, so no two words of a sentence get the same time.

# %% [markdown]
# ## A hand is two numbers
#
# How do you write down where a hand points? Let each hand have the length 1 and start at twelve. The sine of its angle says how far to the right its tip is, and the cosine says how high. The sine alone would not do: at one o'clock and at five o'clock the tip is equally far to the right. So the word at position $pos$ gets, for each hand,
#
# $$PE_{(pos,\, 2i)} = \sin(pos \cdot \omega_i), \qquad PE_{(pos,\, 2i+1)} = \cos(pos \cdot \omega_i)$$
#
# ($PE$ is short for *positional encoding*.) Try it with a pocket calculator, set to radians. With a width of 4 there are two hands, $\omega_0 = 1$ and $\omega_1 = 0.01$. At position 3 their angles are 3 and 0.03. The sine and cosine of the first are 0.14 and -0.99, and of the second 0.03 and 1.00.


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
#     print(f"position {position}:", *(f"{number:5.2f}" for number in row))
#
# views.rows_of_positions(sinusoids(64, d_model=64))  # a wider clock

# %% [markdown]
# *Each row is a position: on the left the numbers change from row to row, and on the right the slow hands have hardly left twelve, so there the sines stay near 0 and the cosines near 1.*
#
# Your four numbers are the last printed row. The paper adds the row of a position to the vector of the word that is there. You could also learn a row for each position (Gehring et al., 2017), and in row E of the paper's Table 3, which tries variants of its model, such **learned positions** translate as well. But a row that no training sentence reached is still random. Clocks can be computed for any position, so the authors hoped that they would carry to longer sentences.


# %%
class Positions(nn.Module):
    """Add the sinusoids of positions 0, 1, ... to embeddings (B, T, d_model)."""

    def __init__(self, d_model: int):
        super().__init__()
        self.d_model = d_model

    def forward(self, x: Tensor) -> Tensor:
        return x + sinusoids(x.shape[1], self.d_model).to(x)  # of its type and device


class LearnedPositions(nn.Module):
    """Add a learned vector a position (row E of Table 3), of at most max_positions.

    Rows start small, as N(0, 1 / d_model), and training makes of them what it needs.
    """

    def __init__(self, max_positions: int, d_model: int):
        super().__init__()
        rows = torch.randn(max_positions, d_model)
        # N(0, 1 / d_model): random around 0, with the variance 1 / d_model
        self.table = nn.Parameter(rows / math.sqrt(d_model))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


# %% [markdown]
# ## Is the word still there?
#
# Do the two dogs now differ? And has adding not spoiled the word? From the sum of two *numbers* nobody can tell what was added. What about two *vectors*? The small translator of chapter 0 has 128 numbers a word and was trained with 25 positions. We add each of these clocks to each word that it knows. From a sum alone we guess: which word's vector is nearest, and which clock? We do the same with random vectors of the same spread.

# %% tags=["active-ipynb"]
# clocked = Positions(d_model=16)
# print(f"with clocks, the two dogs are apart by {dogs_apart(clocked):.0%}")
#
# model, tokenizer = load()
# training = [tokenizer.encode(english) for english, _ in read_corpus("bundled", "train")]
# places = max(len(ids) for ids in training) + 1  # 1: the mark of the end
# used = sorted(set().union(*training))
# learned = model.embedding.weight[used].detach() * math.sqrt(128)  # as chapter 6 scales
#
#
# def guesses(words):
#     """The shares of right guesses, of the word and of the place."""
#     clock = sinusoids(places, 128).float()
#     sums = words[:, None] + clock  # (words, places, 128)
#     # Before a word is guessed, the mean clock is subtracted, and the other way round
#     word = torch.cdist(sums - clock.mean(dim=0), words).argmin(dim=-1)
#     place = torch.cdist(sums - words.mean(dim=0), clock).argmin(dim=-1)
#     right_words = word == torch.arange(len(words))[:, None]
#     right_places = place == torch.arange(places)
#     return right_words.float().mean(), right_places.float().mean()
#
#
# drawn = torch.randn_like(learned) * (learned - learned.mean(dim=0)).std()
# for name, words in (("random vectors", drawn), ("trained vectors", learned)):
#     word, place = guesses(words)
#     print(f"{name}: the word is right in {word:.0%}, the place in {place:.0%}")

# %% [markdown]
# The two dogs now differ. And a long vector has room for word and place. The word can be read from the many numbers that hardly change from place to place, on the right of the last picture. The place is harder to read. But it is read more often beside trained vectors than beside random vectors, so training has moved the words out of the clocks' way.

# %% [markdown]
# ## A shift is a rotation
#
# Say that a head wants the word three positions back. What must it know of its own position? Nothing. Whatever the time is, in three positions hand $i$ turns by $3\omega_i$.
#
# Try it with hand 0. At position 0 it points at twelve, so its two numbers are 0 and 1. Turn it by 3 radians:
#
# $$\begin{pmatrix}-0.99&0.14\\-0.14&-0.99\end{pmatrix}\begin{pmatrix}0\\1\end{pmatrix} = \begin{pmatrix}0.14\\-0.99\end{pmatrix}$$
#
# You found these numbers for position 3. The minus is below because clocks turn clockwise and the sine comes first. The same matrix takes position 1 to 4, and 100 to 103. In general, a step of $s$ positions is
#
# $$\begin{pmatrix}\sin((pos+s)\,\omega)\\\cos((pos+s)\,\omega)\end{pmatrix} =
# \begin{pmatrix}\cos(s\omega)&\sin(s\omega)\\-\sin(s\omega)&\cos(s\omega)\end{pmatrix}
# \begin{pmatrix}\sin(pos\,\omega)\\\cos(pos\,\omega)\end{pmatrix}$$
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
# rows, M = sinusoids(1100, 512), shift_matrix(100, 512)
# error = (rows[:1000] @ M.T - rows[100:]).abs().max()
# assert error < 1e-9
# print(f"M_100 moves 1,000 positions on by 100, with an error of {error:.0e} at most")
# views.rotations(shift_matrix(3, d_model=8), steps=3)

# %% [markdown]
# *Each hand has a square of its own: hand 0 turns by 3 radians, almost half a turn, and hand 3 by 0.003, which leaves it as it was.*

# %% [markdown]
# ## How does a head look three words back?
#
# A head compares by inner products. For now, let its vectors be clocks without words. Two hands at the angles $a$ and $b$ have the product
#
# $$\sin a \sin b + \cos a \cos b = \cos(a - b),$$
#
# which is 1 if they point the same way. A fast hand soon points the same way again, but then slower hands disagree. So the sum over all hands is largest for the same time, and every word would look at itself. Now let the head take $M_3$ as its $W_K$: it sets each key's clock three positions fast. Which word's key then shows the query's time? The key of the word three positions back:
#
# $$M_3\, PE_{p-3} = PE_p$$
#
# Here is this head on a sentence of ten words. Softmax needs large scores to decide, so the head's $W_Q$ multiplies the queries by 16. First we let the dog look one word back, with $M_1$.

# %% tags=["active-ipynb"]
# def looking_back(n, steps):
#     """The weights (n, n) of a head that knows n clocks and nothing else."""
#     clock = sinusoids(n, 64)
#     queries = 16 * clock  # W_Q: large scores
#     keys = clock @ shift_matrix(steps, 64).T  # W_K = M_steps: so many positions fast
#     _, weights = attention(queries, keys, clock)
#     return weights
#
#
# for sentence in ("dog bites man", "man bites dog"):
#     words = sentence.split()
#     weights = looking_back(3, steps=1)[words.index("dog")]
#     print(f"{sentence}: the dog looks at {words[weights.argmax()]!r}")
#
# words = "the old cat that saw the dog lost its ball".split()
# views.looks_back({"keys three positions fast": looking_back(10, steps=3)}, words)

# %% [markdown]
# *Follow the diagonal, from "that" on: each word looks three words back, and the first three, which have no such word, look at the first.*
#
# So who bit whom? The dog that sees "bites" before it is the bitten one. The dog at the beginning sees only itself there, and it is the biter.
#
# ## Do trained heads look back?
#
# The authors hoped that heads would learn this. We ask the four heads in the small translator's first layer. They get clocks without words, up to positions that training never reached. The score of a query at $p$ and a key at $j$ is $PE_p^\top M\,PE_j$, with $M=W_Q^\top W_K/\sqrt{32}$.

# %% tags=["active-ipynb"]
# attend = model.encoder.layers[0].self_attention
# W_Q, W_K = attend.W_Q.weight.detach(), attend.W_K.weight.detach()  # (128, 128)
# clock = sinusoids(40, 128).float()
# matrices = {}
# for head in range(4):
#     own = slice(32 * head, 32 * head + 32)  # a head has 32 of the 128 rows
#     matrices[f"head {head + 1}"] = W_Q[own].T @ W_K[own] / math.sqrt(32)
#
# scores = {name: clock @ M @ clock.T for name, M in matrices.items()}
#
#
# def share_from(place, sentences):
#     """The share of tokens at this place and later."""
#     lengths = torch.tensor([len(ids) + 1 for ids in sentences])  # 1: the end
#     return (lengths - place).clamp(min=0).sum() / lengths.sum()
#
#
# print(f"training: {share_from(18, training):.0%} of the tokens at place 18 or later")
# views.beyond(scores, known=places)

# %% [markdown]
# *Follow the dots, each query's best key: inside the box they mostly run beside the diagonal, one word back (heads 1 and 2) or one ahead (heads 3 and 4), and at positions between 14 and 20 they leave it (each head has its own scale of colours). Here heads count from 1: head 3 is the owner head of chapter 0, whose bonus for standing first comes mostly from the word "its".*
#
# Training made these bands beside the diagonal. But why do they end, when the clocks go on? By hand we took $M_3$ as $M$. It treats all positions alike, because it only has squares of the form $\begin{pmatrix}a&b\\-b&a\end{pmatrix}$. With such squares alone a score depends on $p-j$ and nothing else. But a trained matrix may have any numbers. So let us keep, for each hand, the nearest such square, and throw away the rest.

# %% tags=["active-ipynb"]
# alike = {}
# for name, M in matrices.items():
#     kept = torch.zeros(128, 128)
#     for i in range(0, 128, 2):  # the square of each hand
#         (p, q), (r, s) = M[i : i + 2, i : i + 2]
#         a, b = (p + s) / 2, (q - r) / 2
#         kept[i : i + 2, i : i + 2] = torch.tensor([[a, b], [-b, a]])
#     alike[name] = clock @ kept @ clock.T
#
#
# def spread(scores):
#     """How much the scores of a query differ, at the places of training."""
#     return scores[:places, :places].std(dim=1).mean()
#
#
# shares = [f"{spread(alike[name]) / spread(scores[name]):.0%}" for name in scores]
# print("kept, of the spread of the scores:", ", ".join(shares))
# views.beyond(alike, known=places)

# %% [markdown]
# *Compare the dots with those above: what is left of heads 1 and 2 looks one word back at all positions but the first, and of heads 3 and 4 one word ahead at all but the last.*
#
# So each head did learn a shift that holds everywhere. But the shift makes only 8 to 17% of the scores' spread. The rest of the matrix treats positions differently, and where its band ends, it drowns the shift. A likely reason is that training has hardly a token at such positions, so nothing kept the rest in order.

# %% [markdown]
# ## Why add, if you can turn?
#
# A score is a product of two sums, word $w$ plus clock $c$, so it has four parts:
#
# $$(w_p+c_p)^\top M\,(w_j+c_j) = w_p^\top M\,w_j + w_p^\top M\,c_j + c_p^\top M\,w_j + c_p^\top M\,c_j$$
#
# The two in the middle weigh a word against a position: a head may learn to like nouns at position 17, which does not help at 117. The last part compares clocks, and as we saw, it need not treat all positions alike. Could a score know the words and the distance, and nothing else?
#
# A shift is a rotation. So why not rotate the query and the key themselves? These are **rotary positions** (Su et al., 2021), and most of today's language models have them. After $W_Q$, a query's numbers are taken two by two, as the tips of hands, and hand $i$ at position $p$ is turned by $p\,\omega_i$. So is each key, by its own position.
#
# Take a hand that turns by 10 degrees a position. The words have set the query's hand to 80 degrees and the key's to 30. At positions 12 and 10 they are turned to $80 + 120 = 200$ and $30 + 100 = 130$ degrees, 70 apart. At 40 and 38 both have turned by 280 degrees more, and are still 70 apart. In general, with the words' angles $a$ and $b$:
#
# $$(a + p\,\omega) - (b + j\,\omega) = (a - b) + (p - j)\,\omega$$
#
# What is left are the words, and $p - j$: how far the key is from the query, and on which side. The score is the sum of the cosines of these angles, each times the lengths of its two hands, which turning does not change.
#
# In code we keep to the order of Su et al.: in a pair, up comes first and right second.


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
# def hands(*angles):
#     """A vector of hands of length 1."""
#     angles = torch.tensor(angles, dtype=torch.float64)
#     return torch.stack([angles.cos(), angles.sin()], dim=-1).flatten()
#
#
# query, key = hands(0.6, 2.0, 1.2, -0.4), hands(2.6, 2.9, 0.3, -1.5)  # from the words
# rows = sinusoids(100, 8)
# for p, j in ((12, 10), (40, 38), (40, 35)):
#     score = rotate(query, rows[p]) @ rotate(key, rows[j])
#     print(f"query at {p}, key at {j}: score {score:.2f}")
#
# views.rotary(((12, 10), (40, 38), (40, 35)))  # the same query and key

# %% [markdown]
# *Compare the first two rows: the hands have moved, but no angle between the query's (blue) and the key's (black) has, and so the score, the sum of the four cosines, is the same; in the third row the key is further away, and the fast hand 0 disagrees.* (In a running notebook: move the query, then the key.)
#
# Values are not turned: what comes home should be the word. (**Not in the paper:** the package's model has the switch `positions="rotary"`.)
#
# A plainer way is a **relative bias** (Raffel et al., 2020): add to each score a learned number $b_{p-j}$ for its distance.

# %% [markdown]
# ## Which kind goes further?
#
# Five Transformers, alike in all but their positions, were trained three times each, on sentences of a small, easy grammar with at most 20 words and punctuation marks together (25 tokens). Then they translated new sentences, as long as those and longer, of 21 to 26. BLEU ([chapter 15](15_decoding.ipynb)) is 100 if everything is right. How much will the sines lose on longer sentences?

# %% tags=["active-ipynb"]
# names = {  # in the record: on this page
#     "rotary": "rotary",
#     "bias": "relative bias",
#     "transformer": "sines",
#     "learned": "learned vectors",
#     "none": "no positions",
# }
# # a row is one training: "family" is its kind of positions, and "part.*" its BLEU on
# # sentences of familiar lengths ("test") and on longer ones ("hard.longer")
# record = table("table2-bundled")  # trained once for the book, 4,000 updates each
# scores = {}
# for family, name in names.items():
#     three = record[(record["what"] == "run") & (record["family"] == family)]
#     scores[name] = (list(three["part.test"]), list(three["part.hard.longer"]))
#
# # "hard": 700 sentences with new combinations, then 300 longer than those of training
# hard = read_corpus("bundled", "hard")[700:]  # the longer sentences
# longer = [tokenizer.encode(english) for english, _ in hard]
# late, new = share_from(18, longer), share_from(places, longer)
# print(f"longer sentences: {late:.0%} of the tokens at place 18 or later")
# print(f"at places new to training: {new:.0%}")
# views.further(scores)

# %% [markdown]
# *A circle is a training, and the numbers are means: on familiar lengths (hollow) the four kinds of positions are close together, and on longer sentences (filled) rotary positions and the bias keep most, then sines.*
#
# Sines lose less than learned vectors, as the authors hoped, but almost twice as much as rotary positions. Hardly a token is at a new position, but a quarter of the tokens are where the small translator's bands had ended, a likely reason for the loss. Rotary positions and the bias tell a head distances, and nearly all distances in a longer sentence are familiar. They, too, lose something ([evidence 7.1 and 7.4](evidence/07_positions.ipynb) have the tests and the distances).

# %% [markdown]
# ## What to keep
#
# - Attention by itself does not know order, so somebody has to tell it; otherwise *dog bites man* is *man bites dog*.
# - A position is written as the time on a clock whose hands turn at many speeds, and to move on by some words is one and the same rotation everywhere, so a head can look back at a distance.
# - Rotary positions turn queries and keys instead of adding to the words, so that a score knows the distance of two words and not their positions.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Suppose the clock had only its fastest hand, with $\omega_0 = 1$. At position 44 it points almost exactly where it pointed at position 0. Why? Then look back at the head with $M_3$. With which matrix would it look two words *ahead*?
#
# <details><summary>Answer</summary>
#
# A turn takes $2\pi$ positions, and $\pi$ is nearly $22/7$. So seven turns take nearly $7 \cdot 2 \cdot 22/7 = 44$ positions. To look ahead, set the keys' clocks two positions slow, with $M_{-2}$: try `looking_back(10, steps=-2)`.
# </details>
#
# **2. In code.** With rotary positions, too, a head can look back. You are given a query, before `rotate` has turned it. Another word stands `back` positions before it. Which key must that word have, before `rotate` turns it, so that the turned key equals the turned query?

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
# **3. To think about.** The model without positions still scores 63 on familiar lengths. In its decoder, position $t$ may look at positions up to $t$ only. How can such a decoder know where it is?
#
# <details><summary>Answer</summary>
#
# The mask gives it away. Position $t$ takes a mean over $t$ words. For example, all words may share a key, and the begin mark `<s>`, which is always there, may have a value of its own. Then its share of the mean is all, a half, a third, and so on: the position, written as $1/t$. So the decoder can order its own words. But the encoder has no mask: *dog bites man* and *man bites dog* are one heap to it and get the same translation, so one of the two is wrong.
# </details>
#
# **Next.** All parts are there. [Chapter 8](08_model.ipynb) puts them together.
