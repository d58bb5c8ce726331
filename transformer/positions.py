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
# *Section 3.5 of the paper. Reading takes about 35 minutes, running a few seconds. You need chapters [4](04_attention.ipynb) and [6](06_embeddings.ipynb).*
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
# from transformer import load, read_corpus, views
# from transformer.attention import MultiHeadAttention, attention, split_heads
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
# With a width of 8 there are four hands, and each turns ten times more slowly than the hand before, as digits do.

# %% tags=["active-ipynb"]
# views.clocks(d_model=8)

# %% [markdown]
# *Compare position 1 with position 10: hand 1 points at 10 where hand 0 pointed at 1, as a tens digit does, and hand 3 has hardly moved before position 1,000.* (In a running notebook: move the position.)
#
# A vector of the paper has 512 numbers, so its clock has 256 hands. They go from the same fast hand to about the same slow hand in finer steps: each takes only 4% longer for a turn than the hand before. A turn of hand $i$ takes $2\pi/\omega_i$ positions, which is called its **wavelength**.


# %%
def wavelengths(d_model: int) -> Tensor:
    """Positions until each hand has come round, 2 pi / omega_i: (d_model / 2,)."""
    return 2 * math.pi / frequencies(d_model)


# %% tags=["active-ipynb"]
# turns = wavelengths(512)
# print(f"the paper's fastest hand: {turns[0]:.1f} positions, slowest: {turns[-1]:,.0f}")

# %% [markdown]
# Why 10,000? The paper gives no reason. But the number decides how slow the slowest hand is. A turn that takes 60,000 positions is longer than any sentence, so no two words of a sentence get the same time.

# %% [markdown]
# ## A hand is two numbers
#
# A vector holds numbers, not hands. How do you write down where a hand points? Let each hand have the length 1, start at twelve and turn as on a clock. Two numbers tell where its tip is. The sine of its angle says how far to the right the tip is, and the cosine says how high. One of them would not do. For example, at one o'clock and at five o'clock the tip is equally far to the right. So the word at position $pos$ gets, for each hand,
#
# $$PE_{(pos,\, 2i)} = \sin(pos \cdot \omega_i), \qquad PE_{(pos,\, 2i+1)} = \cos(pos \cdot \omega_i)$$
#
# Try it with a pocket calculator (set to radians). With a width of 4 there are two hands, $\omega_0 = 1$ and $\omega_1 = 0.01$. At position 3 their angles are 3 and 0.03, and the four numbers are $\sin 3 = 0.14$, $\cos 3 = -0.99$, $\sin 0.03 = 0.03$ and $\cos 0.03 = 1.00$.


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

# %% [markdown]
# Here are the first 64 positions of a wider clock:

# %% tags=["active-ipynb"]
# views.rows_of_positions(sinusoids(64, d_model=64))

# %% [markdown]
# *Each row is a position: on the left the numbers change from row to row, and far right the sines are still near 0 and the cosines near 1, like the leading zeros of 0,000,023.*
#
# The blue band that bends down through the middle is a front. Where a hand has done its first eighth of a turn, its sine is as large as its cosine, and the two columns have one colour. To the left of the band, hands have come further than that. To the right, they have hardly left twelve o'clock.

# %% [markdown]
# ## Does adding not spoil the word?
#
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
# positions = Positions(d_model=16)
# for sentence in ("dog bites man", "man bites dog"):
#     x = positions(embed(sentence))
#     dog = heads(x, x, x)[0, sentence.split().index("dog")]
#     print(f"{sentence}:  dog becomes {shown(dog[:5])} ...")

# %% [markdown]
# Now the dog that bites is another dog than the bitten one. From here on, order is something that vectors carry.
#
# But is "dog" still in there? From the sum of two *numbers* nobody can tell what was added. With two long *vectors* it is another matter, because a word's row has little in common with any row of the clock. Let us test it on real words. The small translator of [chapter 6](06_embeddings.ipynb) holds 3,500 words and pieces of words as rows of 128 numbers. We take the first 1,000 words of its test sentences and add to each the clock of its place. Then we guess from the sum: the word is the row that lies nearest (when the mean clock is taken off), and the place is the clock with the largest product. A row may be added as it was stored, or times the root of 128, as the model does. Guess before you look: what does the factor change?

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# E = model.embedding.weight.detach()  # (3500, 128), a row for each word
# sentences = [tokenizer.encode(english) for english, _ in read_corpus("bundled", "test")]
# words = torch.tensor([word for ids in sentences for word in ids])[:1000]
# places = torch.cat([torch.arange(len(ids)) for ids in sentences])[:1000]
# clock = sinusoids(25, 128).float()  # no sentence here is longer
#
# for name, factor in {"as stored": 1, "times the root of 128": math.sqrt(128)}.items():
#     sums = factor * E[words] + clock[places]
#     word = torch.cdist(sums - clock.mean(dim=0), factor * E).argmin(dim=1)
#     place = (sums @ clock.T).argmax(dim=1)
#     right = [(word == words).sum(), (place == places).sum()]
#     print(f"{name}: word found {right[0]}, place found {right[1]} of 1,000")

# %% [markdown]
# In the model's own sums no word is lost, and a place that is not found is nearly always off by a single position. As stored, the rows are so small that the clock drowns most words. So adding need not spoil the word, but the relative size of the two decides. This is one good reason for the factor $\sqrt{d_{model}}$ of chapter 6.

# %% [markdown]
# ## A shift is a rotation
#
# Say that a head wants the word three places back. What does it have to know of the clock at its own position? Nothing. In three positions hand $i$ turns by $3\omega_i$, whatever the time was. So the step from the row of any position to the row three positions on is always the same rotation of each hand. In general, for a step of $s$ positions,
#
# $$\begin{pmatrix} \sin((pos+s)\,\omega) \\ \cos((pos+s)\,\omega) \end{pmatrix} =
# \begin{pmatrix} \cos s\omega & \sin s\omega \\ -\sin s\omega & \cos s\omega \end{pmatrix}
# \begin{pmatrix} \sin(pos\,\omega) \\ \cos(pos\,\omega) \end{pmatrix}$$
#
# (Textbooks have the minus in the upper row. They turn against the clock.) All hands together make one matrix $M_s$:


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
# The score of the word at $j$ for the word at $p$ is an inner product. For a moment, let both vectors be nothing but their clocks. Two hands at the angles $a$ and $b$ have the product
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
# moved = rows[near] @ shift_matrix(3, 512).T  # M_3 PE_j for each j
# fast = moved @ rows[p]
# curves = {"the same time": same, "keys three positions fast": fast}
# views.nearness((near - p).tolist(), curves)

# %% [markdown]
# *Follow the peaks: as they are, clocks agree at distance 0, and with $M_3$ between them they agree three words back.*
#
# The peak is in the right place, but it is blunt. Its neighbours reach 249 of 256, because most of the hands are so slow that they hardly notice a step. And a head has no room for all of them: in the paper its queries and keys have 64 numbers, 32 hands. So let a head choose the 32 fastest. Its $W_Q$ copies their 64 numbers out of the 512 and leaves the rest, and its $W_K$ copies the same hands and turns each by its square of $M_3$. Both are ordinary matrices that training could find. Here is this head on a sentence of ten words. The vectors are clocks alone, so the head sees places and no words. On the right its $W_Q$ is four times as large.

# %% tags=["active-ipynb"]
# words = "the old cat that saw the dog lost its ball".split()
# clock = sinusoids(len(words), 512)
# W_Q = torch.eye(512, dtype=torch.float64)[:64]  # (64, 512): copies the first 32 hands
# W_K = W_Q @ shift_matrix(3, 512)  # copies them three positions fast
# _, quiet = attention(clock @ W_Q.T, clock @ W_K.T, clock)
# _, loud = attention(4 * clock @ W_Q.T, clock @ W_K.T, clock)
# views.looks_back({"W_Q as it is": quiet, "W_Q four times as large": loud}, words)

# %% [markdown]
# *Look at the diagonal from "that" on: each word looks three words back, blurred on the left and sharply on the right.*
#
# The first three words have no word there. Two of them take the earliest word that there is. The very first is fooled: the fast hands of "ball" have come round and look a little like the time that it seeks. Slow hands would have told it. So a head looks back at a fixed distance if it picks fast hands, turns the key's, and multiplies by enough. How far the words would disturb it, if they were added, depends on how loud they are in the numbers that it copies.

# %% [markdown]
# ## Do trained heads look back?
#
# The authors hoped for this: they chose sines because "it would allow the model to easily learn to attend by relative positions". Does a model learn it? We ask the four heads in the first layer of the small translator about clocks and nothing else: the clock goes in where words should be, and we take the mean score at each distance. For comparison we ask twelve heads whose weights are still random.

# %% tags=["active-ipynb"]
# clock = sinusoids(20, 128).float()
# steps = list(range(-6, 7))
#
#
# def by_distance(heads):
#     """The mean score at each step, for each of four heads: (4, 13)."""
#     with torch.no_grad():
#         q = split_heads(heads.W_Q(clock)[None], h=4)[0]  # (4, 20, 32)
#         k = split_heads(heads.W_K(clock)[None], h=4)[0]
#     scores = q @ k.transpose(1, 2) / math.sqrt(32)  # (4, 20, 20)
#     means = [scores.diagonal(step, dim1=1, dim2=2).mean(dim=1) for step in steps]
#     return torch.stack(means, dim=1)
#
#
# trained = model.encoder.layers[0].self_attention
# curves = dict(zip(["head 1", "head 2", "head 3", "head 4"], by_distance(trained)))
# untrained = torch.cat([by_distance(MultiHeadAttention(128, 4)) for _ in range(3)])
# views.nearness(steps, curves, ylabel="mean score", untrained=untrained)

# %% [markdown]
# *Look at the hills of heads 2 and 3: one leans to the word before, the other to the word after, and random weights (grey) have no hills at all.*
#
# Nobody built that. It was learned from pairs of sentences, and it has the shape of the curves that we made by hand. But these hills are blunt, too. For example, head 2 scores the word before by only 0.3 higher than the word itself, so it gives it just a third more weight. Heads 1 and 4 have hills that are lower still, with flat tops. So trained heads look into a neighbourhood, which may lean to one side, rather than at a single word.

# %% [markdown]
# ## What is the price of adding?
#
# When words and clocks are both there, a score is a product of two sums. Multiplied out it has four parts (all divided by $\sqrt{d_k}$):
#
# $$W_Q(x_p + PE_p) \cdot W_K(x_j + PE_j) = \begin{aligned}[t] & W_Q x_p \cdot W_K x_j + W_Q x_p \cdot W_K PE_j \\ {}+{} & W_Q PE_p \cdot W_K x_j + W_Q PE_p \cdot W_K PE_j \end{aligned}$$
#
# Only the last part can know the distance. The two parts in the middle weigh a word against a *place*: a head can learn to like whatever is at position 17. That is seldom what you mean, and it says nothing about position 117. How large are the four parts in head 2 of the translator?

# %% tags=["active-ipynb"]
# words = "The old cat that saw the dog lost its ball".split()
# x = math.sqrt(128) * E[tokenizer.encode(" ".join(words))]  # (10, 128)
# clock = sinusoids(10, 128).float()
# W_Q, W_K = trained.W_Q.weight[32:64].detach(), trained.W_K.weight[32:64].detach()
#
#
# def part(asks, answers):
#     return (asks @ W_Q.T) @ (answers @ W_K.T).T / math.sqrt(32)  # (10, 10)
#
#
# parts = {
#     "word and word": part(x, x),
#     "word and clock": part(x, clock),
#     "clock and word": part(clock, x),
#     "clock and clock": part(clock, clock),
# }
# views.four_parts(parts, words)

# %% [markdown]
# *Look for a band along the diagonal: only the two clocks make it, and the columns of "clock and word" are words that nearly every place likes or dislikes.*
#
# The sizes are those of a score's typical distance from the mean of its row. Head 2 hears the two clocks best, and yet each of the other parts is a third to a half as large.

# %% [markdown]
# ## Why add, if you can turn?
#
# Could a score know the words and the distance, and nothing else? We know that a shift is a rotation. So why not rotate the query and the key themselves? These are **rotary positions** (Su et al., 2021), and most of today's language models have them. Nothing is added to the words. Instead, after $W_Q$ and $W_K$, the numbers of a query are taken two by two, as the tips of hands, and hand $i$ of the query at position $p$ is turned by $p\,\omega_i$. The same is done to each key, with its own position $j$. If the words themselves have given the two hands the angles $a$ and $b$, then they point to $a + p\,\omega$ and $b + j\,\omega$ now, and the angle between them is
#
# $$(a + p\,\omega) - (b + j\,\omega) = (a - b) + (p - j)\,\omega .$$
#
# The words are in it, and the distance. The places are gone. And the score is made of these angles: for each hand, the cosine of the angle between query and key, times the lengths of the two hands (which turning does not change), all added up.

# %% tags=["active-ipynb"]
# views.rotary(((12, 10), (40, 38), (40, 35)))  # positions of query and key

# %% [markdown]
# *Compare the first two rows: all hands have moved, but no angle between the blue hand and the black one has, and so the score is the same; in the third row the key is further away.* (In a running notebook: move the query, then the key.)
#
# In code, one trap: the paper writes the sine of a hand first, and rotary code the cosine. So the two numbers of a query's hand are how high its tip is, and how far to the right.


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
#     """The tips of hands of length 1, each up and right."""
#     angles = torch.tensor(angles, dtype=torch.float64)
#     return torch.stack([angles.cos(), angles.sin()], dim=-1).flatten()
#
#
# query, key = hands(0.6, 2.0, 1.2, -0.4), hands(2.6, 2.9, 0.3, -1.5)  # the picture's
# rows = sinusoids(100, 8)
# for p, j in ((12, 10), (40, 38), (40, 35)):
#     score = rotate(query, rows[p]) @ rotate(key, rows[j])
#     print(f"query at {p}, key at {j}: score {score:.2f}")

# %% [markdown]
# The values are not turned. A score may depend on the distance, but what comes home should be the word. (**Not in the paper:** the package's model has a switch for it, `positions="rotary"`.)

# %% [markdown]
# ## Which kind goes further?
#
# Two more kinds are common. A **relative bias** is a learned number for each distance that is added to the score (Raffel et al., 2020, after Shaw et al., 2018, who add learned vectors to the keys). And you can leave it to the model, and let it learn a vector for each position as it learns a row for each word (Gehring et al., 2017):


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
# In the paper's Table 3 learned vectors translate as well as sines. The authors still preferred sines, which can be computed for any position and might let a model "extrapolate to sequence lengths longer than the ones encountered during training". Do they?
#
# Five Transformers, alike in all but their positions, learned to translate sentences such as "The lady saw the cat that lost its ball." They are made up by the grammar from which the small translator learned, and none has more than 20 words. Each kind was trained three times. The fifth kind has no positions at all: its encoder reads as the attention at the beginning of this chapter did, which could not tell who bites. Then all translated new sentences, some as long as in training, some of 21 to 26 words. (BLEU, of [chapter 15](15_decoding.ipynb), is 100 if everything is right.) Guess before you look: which kind keeps most?

# %% tags=["active-ipynb"]
# runs = table("table2-bundled").query("what == 'run'")
# kinds = {
#     "rotary": "rotary",
#     "bias": "relative bias",
#     "transformer": "sines",
#     "learned": "learned vectors",
#     "none": "no positions",
# }
# scores = {}
# for family, name in kinds.items():
#     trainings = runs[runs["family"] == family]
#     familiar, longer = trainings["part.test"], trainings["part.hard.longer"]
#     scores[name] = (familiar.tolist(), longer.tolist())
# views.further(scores)

# %% [markdown]
# *A circle is a training, and the numbers are means: on familiar lengths (hollow) all four kinds of positions are close together, and on longer sentences (filled) rotary positions and the bias keep most.*
#
# Positions of any kind are worth more than thirty BLEU on familiar lengths. On longer sentences the sines did not extrapolate well. Why do they fall, when they can be computed for any place?

# %% [markdown]
# ## What ends, if the clock goes on?
#
# We can look. The small translator has sines, and its head 2 likes the word before. Does it still like the word before at places that training hardly reached, or never? First, how long are training's sentences?

# %% tags=["active-ipynb"]
# training = [tokenizer.encode(english) for english, _ in read_corpus("bundled", "train")]
# tokens = torch.tensor([len(ids) + 1 for ids in training])  # 1: the mark of the end
# many = (tokens > 18).float().mean()
# print(f"at most {tokens.max()} tokens; {many:.0%} have more than 18")

# %% tags=["active-ipynb"]
# far = sinusoids(40, 128).float()
# views.beyond(part(far, far), known=int(tokens.max()))

# %% [markdown]
# *Follow the dots, each query's best key: they run along the diagonal until about place 18, and then they are scattered.*
#
# So the clock goes on, and the head does not. Its band even breaks off before the square does, at places that only one sentence in ten reaches. The head has learned the word before only for the places where it has often met words. How can that be, if the product of two clocks depends on the distance alone? Because a head does not take that product. $W_Q$ and $W_K$ stand in between, and only special matrices, like those that we built by hand, treat all places alike. Training needs no such matrices. It needs some that do well at the places of its sentences.
#
# Now look at the other kinds in the same way. What is new to each in a longer sentence?
#
# - **Learned vectors.** The rows of the new places were never trained. They are still random numbers.
# - **Rotary.** Whatever $W_Q$ and $W_K$ are, of the places only their distance enters the score. Only distances of 20 and more are new, and 2% of all pairs of words in the longer sentences are so far apart.
# - **Relative bias.** In this model all distances from 16 on share one number, so no distance is new.
#
# That fits the order of the race: the two kinds that tell a head distances keep about ten BLEU more than the sines. It does not explain all of it, for these two kinds also lose twelve, though they meet little that is new ([evidence 7.1](evidence/07_positions.ipynb) and [7.4](evidence/07_positions.ipynb)). It is a likely reason, though we looked into one head of one model, and at lengths just beyond training's. Nobody should expect too much of it: in a task of [chapter 21](21_language.ipynb) rotary positions hold for only a few tokens more.
#
# And who bit whom? The words cannot say, and attention did not ask. The clocks say it.

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
# **2. In code.** With rotary positions, too, a head can look back. You are given a query. Which key of the same norm fits it best when the key is `back` words before the query? (Both will be turned by `rotate`, each by its own position.)

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
# The query at $p$ is turned by $p$ positions. The key is `back` words before it and is turned by `back` positions less, so it has to be ahead by that much from the start. Then all hands agree, and no key of the same norm has a larger product.
# </details>
#
# **3. To think about.** The model without positions scores 63 on familiar lengths, which is poor, but more than you might expect of a heap of words. In its decoder, position $t$ may look at positions up to $t$ only. How can such a decoder know where it is?
#
# <details><summary>Answer</summary>
#
# The mask gives it away. The first word has a company of one, the third a company of three. For example, all words may share a key, and one word that is always there, the mark of the beginning, may have a value of its own. Then its share of the mean is all, a half, a third, and so on: the position, written as $1/t$. The encoder has no such mask, and without positions it does read a heap of words.
# </details>
#
# **Next.** All parts are there. [Chapter 8](08_model.ipynb) puts them together.
