# ---
# jupyter:
#   jupytext:
#     formats: notebooks/04_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 4 · Attention
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/04_attention.ipynb)
#
# *Section 3.2 of the paper. Reading takes about 25 minutes, running half a minute.*
#
# *Tom feeds his dog.* Whose dog? You did not have to think. But a computer holds four words as four lists of numbers, and nowhere in the list of "his" is there any Tom. If a model is to know whose dog it is, something has to travel from one word to another.
#
# In a Transformer that something is attention, and nothing else: every other part of the model works on each word alone. Let us invent it. Two attempts fail first, and the second failure tells us what to build.

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
# from transformer import attention_maps, load, translate, views
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits

# %% [markdown]
# ## Two attempts that fail
#
# To begin with, let every word of our sentence have a vector with a single 1, in a place of its own.

# %% tags=["active-ipynb"]
# words = ["Tom", "feeds", "his", "dog"]
# x = torch.eye(4)  # row 0 is Tom, row 1 is "feeds", ...

# %% [markdown]
# The simplest way to hear from the others is to **average**: each word takes a quarter of everyone. But then every word hears the same, and "his" learns no more about Tom than about the dog.
#
# So the shares should depend on the words. Let the **score** of word $j$ for word $i$ be the inner product $x_i \cdot x_j$, which is large when two vectors agree. Softmax turns a row of scores into **weights**, positive and adding up to 1: it takes $e$ to the power of each score and divides by the sum. Before you look: whom will "his" listen to most?

# %% tags=["active-ipynb"]
# agreement = (x @ x.T).softmax(dim=1)
# views.weights({"who agrees with me": agreement}, words)

# %% [markdown]
# *Read along a row: nearly half of what a word receives is the word itself.*

# %% [markdown] tags=["question-06"]
# "His" listens to "his". Would other vectors help? For "his" they would: lean Tom's vector towards that of "his", make it long, and "his" looks at Tom. But there is something that no vectors can do. Take Tom and "feeds". Tom should look at what he does, and the deed should look at who does it, each of them more than at itself. A square is not negative, so
#
# $$0 \le \lVert x_i - x_j \rVert^2 = x_i \cdot x_i + x_j \cdot x_j - 2\, x_i \cdot x_j .$$
#
# The score that two words give each other is at most the mean of the scores that they give themselves. So one of the two always prefers itself, or is undecided. The root of it is that scores are symmetric: my interest in you is your interest in me. As long as one vector does both the asking and the answering, no training helps. (Forbid everybody to look at itself, and pairs can find each other; exercise 5 shows what even then cannot be done.)

# %% [markdown] tags=["question-01"]
# ## A word needs three roles
#
# Think of a library. You come with an interest, the **query**. Every book wears a label on its spine, the **key**, and has something inside, the **value**. You compare your query with the labels, but you take home contents. Query and label need not look alike, so you need not resemble what you are looking for; and a book need not give you its label, so what makes a word easy to find need not be what it tells. And unlike in a dictionary, a label can fit *somewhat*: attention takes home a blend of all the books, mostly of those that fit.
#
# A Transformer makes the three from each word's vector by three matrices, which it learns: $Q = xW_Q$, $K = xW_K$, $V = xW_V$. We choose ours by hand. Since each of our words has a single 1, row $i$ of a matrix is simply what word $i$ gets.

# %% tags=["active-ipynb"]
# #              somebody, a deed
# # fmt: off
# W_Q = torch.tensor([[0.0, 2],  # Tom asks: what do I do?
#                     [2, 0],    # "feeds" asks: who does it?
#                     [4, 0],    # "his" asks, loudly: who owns?
#                     [0, 1]])   # the dog asks quietly: what is done?
# W_K = torch.tensor([[2.0, 0],  # Tom is labelled: somebody
#                     [0, 2],    # "feeds" is labelled: a deed
#                     [0, 0],    # "his" has no label
#                     [1, 0]])   # a dog is somebody, half as much
# #                 Tom, dog, feeding
# W_V = torch.tensor([[1.0, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]])
# # fmt: on
# gives = ("Tom", "dog", "feeding")
# views.one_word(words, x, W_Q, W_K, W_V, "his", asks=("somebody", "deed"), gives=gives)

# %% [markdown]
# *Follow "his" from left to right: its query fits Tom's key best, so nearly all that it receives is Tom's value. (Choose another word, or write a sentence of your own with these words.)*
#
# Check Tom's row with a pencil. His key is $(2, 0)$ and the query is $(4, 0)$, so their product is 8, and the score is $8/\sqrt 2 = 5.657$ (why the root, we shall see). Now $e^{5.657} = 286$, and the four powers of $e$ add up to $286 + 1 + 1 + 17 = 305$. Tom's weight is $286/305 = 0.94$.
#
# So "his" receives almost pure *Tom*, with a trace of *dog*. (Our words get their queries, keys and values from a table, because each has a 1 of its own. A matrix does more than that: it gives a query to *any* vector, also to one that it has never met.)

# %% [markdown]
# ## The whole of it is one formula
#
# Nothing in this depended on four words, or on our matrices. In general there are $T$ queries and $S$ keys, each of them $d_k$ numbers wide. One matrix product scores them all, softmax works along each row, and a second product blends the values. That is equation 1 of the paper:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$

# %% tags=["active-ipynb"]
# def attention(q, k, v):  # (T, d_k), (S, d_k), (S, d_v)
#     scores = q @ k.T / math.sqrt(k.shape[1])  # (T, S)
#     weights = scores.softmax(dim=1)  # each row adds up to 1
#     return weights @ v, weights  # (T, d_v)
#
#
# Q, K, V = x @ W_Q, x @ W_K, x @ W_V
# output, weights = attention(Q, K, V)
# views.weights({"queries and keys": weights}, words)

# %% [markdown]
# *Tom looks at "feeds" and "feeds" looks at Tom, which one vector each could never do, and "his" looks at Tom, who does not look back.*

# %% [markdown] tags=["question-04"]
# It is only a weighted sum. What makes it powerful is where the weights come from: not from a place in the sentence, but from the words themselves. Put the words into another order, and see what happens to "his":

# %% tags=["active-ipynb"]
# order = [3, 2, 1, 0]
# shuffled, _ = attention(Q[order], K[order], V[order])
# for name, row in [("in order", output[2]), ("backwards", shuffled[1])]:
#     print(f"his, {name}:", [f"{number:.2f}" for number in row])

# %% [markdown]
# "His" finds Tom wherever he is. Attention is a look-up in a table that the input itself brings along, and fixed weights, one for each place, can never do that ([evidence 4.1](evidence/04_attention.ipynb)).
#
# There is a price, and the same two lines show it. A sentence read backwards gives the same answers, so attention has no idea of order. [Chapter 7](07_positions.ipynb) mends that.

# %% [markdown] tags=["question-05"]
# ## Why divide by the root of d?
#
# An inner product is a sum of $d_k$ terms. If the numbers in queries and keys are independent, with mean 0 and variance 1, each term has variance 1, and the sum has variance $d_k$: **wider keys make larger scores**, with nobody meaning anything by it. Softmax, however, takes size seriously. A lead of 1 makes a weight $e$ times as large; a lead of 10 makes it 22,000 times as large. What will happen to eight random keys as they get wider?

# %% tags=["active-ipynb"]
# views.saturation(d_ks=(4, 64, 1024))

# %% [markdown]
# *In the upper row one key takes all as keys get wider; in the lower row, with the scale, the weights stay spread. (Move $d_k$.)*
#
# The division gives the scores variance 1 again, whatever the width. Why care? Where one key has everything, there is nothing left to choose, and nothing to learn from: move any score a little, and the weights stay as they are. Let us call such a row dead, and count:

# %% tags=["active-ipynb"]
# def dead_rows(d_k, scale):
#     """The share of 1,000 queries that give one of 64 keys more than 99.9%."""
#     q, k = torch.randn(1000, 1, d_k), torch.randn(1000, 64, d_k)
#     weights = (q @ k.transpose(1, 2) / scale).softmax(dim=-1)
#     return (weights.amax(dim=-1) > 0.999).float().mean().item()
#
#
# for d_k in (16, 64, 256, 1024):
#     with_scale = dead_rows(d_k, math.sqrt(d_k))
#     without = dead_rows(d_k, 1)
#     print(f"d_k = {d_k:4}: {with_scale:.0%} dead with the scale, {without:.0%} without")

# %% [markdown]
# The paper's heads are 64 wide, where few rows are dead yet, and its authors only *suspect* that this is what hurts. So we trained heads 64 wide on a small task, to find the number beside a name: without the scale the error ends a hundred times as large, and wider heads are worse ([evidence 4.2](evidence/04_attention.ipynb)). Starting with smaller $W_Q$ and $W_K$ helps as much, so the root is a good start and not a law.
#
# Why softmax, and not simply each score divided by the sum of the scores? Scores can be negative, and then the sum may be near zero. One could take only the positive ones, or their squares, but on the same task both end with an error about a hundred times that of softmax ([evidence 4.3](evidence/04_attention.ipynb)). Softmax lets a key that leads by some units win clearly, even among many.

# %% [markdown]
# ## Masks: who may not be looked at
#
# Sometimes a word must not look. Sentences in a batch are filled up to one length with **padding**, which means nothing. And a decoder learns to write the *next* word at every place at once, so the words to come are answers that it must not read: position $t$ may look at positions up to $t$ only. Such a mask is called **causal**.
#
# A mask is a table of True and False, and in this book **True means "may be looked at"**. Masks that each forbid something are combined with "and".


# %%
def padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    """True where a token is real, for all heads and queries: (B, S) -> (B, 1, 1, S)."""
    return (tokens != pad_id)[:, None, None, :]


def causal_mask(T: int, device: torch.device | None = None) -> Tensor:
    """True where the key is not later than the query: (T, T)."""
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


# %% tags=["active-ipynb"]
# tokens = torch.tensor([[5, 8, 3, 9, 0]])  # Tom feeds his dog, and one padding
# padding = padding_mask(tokens, pad_id=0)[0, 0]
# causal = causal_mask(5)
# panels = {"padding": padding, "causal": causal, "both": padding & causal}
# views.masks(panels, [*words, "(pad)"])

# %% [markdown]
# *Padding removes a column, the causal mask removes the corner of the future, and together they leave what both allow. (The row of the padding stays: what padding looks at, nobody reads.)*
#
# To forbid a key, the paper writes $-\infty$ over its score, because $e^{-\infty} = 0$. One detail is worth a line of code. In a row that forbids *everything*, as in an empty sentence, softmax would have to divide zero by zero. We write the lowest finite number instead and set forbidden weights to zero afterwards, so that such a row simply receives nothing.


# %%
def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the last axis, among the positions where mask is True.

    scores: (..., T, S); mask: boolean, broadcastable to it, True = may be looked at. A
    row without any True becomes zeros, and passes zero gradient back.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


# %% [markdown]
# And this is the attention of the rest of the book, in place of the one above. The dots in the shapes stand for sentences and heads, of which there may be any number side by side.


# %%
def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(d_k)) V, equation 1 (Section 3.2.1).

    q: (..., T, d_k), k: (..., S, d_k), v: (..., S, d_v); mask as in `masked_softmax`.
    Returns the output (..., T, d_v) and the weights (..., T, S).
    """
    scores = q / math.sqrt(q.shape[-1]) @ k.transpose(-2, -1)
    weights = masked_softmax(scores, mask)
    return weights @ v, weights


# %% [markdown]
# ## One blend at a time
#
# "His" wanted an owner and nothing else. A real word wants several things at once: a verb, for example, has a doer *and* a thing done to. Can one attention serve two wishes?
#
# It can look at both, but it brings home a single blend. Half of Tom and half of the dog tells you that the two were there, and no longer which of them fed the other. Let us put a number on that.
#
# In the next task there are six pairs of a name and a number. A query holds two names side by side, and the answer is their two numbers, the first one first. Names are vectors of 16 numbers, and a pair is a name, its number, and zeros, so that everything is 32 wide.

# %% tags=["active-ipynb"]
# names = torch.randn(32, 16)  # a stock of 32 names
#
#
# def two_look_ups(count):
#     chosen = torch.rand(count, 32).argsort(dim=1)[:, :6]  # six different names
#     numbers = torch.randn(count, 6, 1)
#     pairs = torch.cat([names[chosen], numbers, torch.zeros(count, 6, 15)], dim=2)
#     asked = torch.rand(count, 6).argsort(dim=1)[:, :2]  # which two
#     query = names[chosen.gather(1, asked)].flatten(1)[:, None]  # (count, 1, 32)
#     return query, pairs, numbers[:, :, 0].gather(1, asked), asked

# %% [markdown]
# The numbers have mean 0 and variance 1, so always answering 0 costs an error of 1 for each. What can a single attention reach? All it can do is to choose two weights. Give everything to the first pair, and you know the first number and nothing of the second: errors 0 and 1. Give half to each, and you bring home the mean of two numbers. It tells half of each, and the errors are one half and one half. (The same $W_V$ works on both pairs, so it cannot put the first number here and the second one there.) Any other split lies between: what you gain for one number you lose for the other, and **the mean error is one half**. Will training find a way around that?
#
# The paper's way out is to run several attentions side by side, called **heads**. Each head has its own smaller matrices, so each can ask its own question, and a last matrix $W_O$ mixes what they found:
#
# $$\mathrm{head}_i = \mathrm{Attention}(xW^Q_i,\ xW^K_i,\ xW^V_i), \qquad \mathrm{output} = [\mathrm{head}_1, \ldots, \mathrm{head}_h]\,W_O$$
#
# The paper's model is 512 numbers wide and has eight heads of 64, so eight heads have as many weights as one head of full width. The small matrices sit side by side in one large matrix, and we cut after the product:

# %% tags=["active-ipynb"]
# views.splitting_heads(d_model=512, h=8)

# %% [markdown]
# *One product makes all the queries; only then are they cut into strips, one for each head.*


# %%
def split_heads(x: Tensor, h: int) -> Tensor:
    """Cut the last axis into heads: (B, n, h * d) -> (B, h, n, d)."""
    return x.unflatten(-1, (h, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """Heads side by side again: (B, h, n, d) -> (B, n, h * d)."""
    return x.transpose(1, 2).flatten(2)


# %%
class MultiHeadAttention(nn.Module):
    """h attentions side by side, each d_model / h wide (Section 3.2.2)."""

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
        """query (B, T, d_model), key and value (B, S, d_model) -> (B, T, d_model)."""
        q = split_heads(self.W_Q(query), self.h)  # (B, h, T, d_k)
        k = split_heads(self.W_K(key), self.h)  # (B, h, S, d_k)
        v = split_heads(self.W_V(value), self.h)
        heads, _ = attention(q, k, v, mask)  # (B, h, T, d_k)
        return self.W_O(join_heads(heads))


# %% [markdown]
# Now the test. Two networks have the same number of weights, and differ in one argument.

# %% tags=["active-ipynb"]
# def train(h, steps=600):
#     heads, read = MultiHeadAttention(32, h), nn.Linear(32, 2)
#     optimizer = torch.optim.Adam([*heads.parameters(), *read.parameters()], lr=0.005)
#     errors = []
#     for _ in range(steps):
#         query, pairs, right, _ = two_look_ups(64)
#         error = (read(heads(query, pairs, pairs))[:, 0] - right).square().mean()
#         optimizer.zero_grad()
#         error.backward()
#         optimizer.step()
#         errors.append(error.item())
#     return heads, sum(errors[-50:]) / 50
#
#
# trained = {h: [train(h) for _ in range(3)] for h in (1, 2)}
# for h, runs in trained.items():
#     print(
#         f"{h} head{'s' * (h > 1)}: errors",
#         ", ".join(f"{error:.3f}" for _, error in runs),
#     )

# %% [markdown]
# One head ends at one half, as we predicted. With two heads the error is gone. Where do they look? (Only the weights are wanted here, so the keys are handed in as values, too.)

# %% tags=["active-ipynb"]
# query, pairs, _, asked = two_look_ups(4)
# panels = {}
# for h in (1, 2):
#     heads = trained[h][0][0]
#     q = split_heads(heads.W_Q(query), h)
#     k = split_heads(heads.W_K(pairs), h)
#     _, weights = attention(q, k, k)  # (4, h, 1, 6)
#     for i in range(h):
#         title = "one head" if h == 1 else f"two heads: head {i + 1}"
#         panels[title] = weights[:, i, 0].detach()
# views.look_ups(panels, asked)

# %% [markdown]
# *Grey marks the two pairs asked for: the one head has settled on one of them, which costs no more than any blend, while two heads share the work.*
#
# Nobody told either head which name is its own. Each found a wish that the other did not serve.

# %% [markdown] tags=["question-03"]
# ## One class, three uses
#
# Queries need not come from the same words as keys and values. A Transformer uses our class in three places, and only what is handed in differs:
#
# | | queries from | keys and values from | mask |
# |---|---|---|---|
# | self-attention, in the encoder | the source | the source | padding |
# | causal self-attention, in the decoder | the target | the target | causal |
# | cross-attention, from decoder to encoder | the target | the source | padding |
#
# (The decoder needs no mask for its own padding: that comes last, where the causal mask hides it from every real word.) The many names that you will read answer different questions. *Self* or *cross* says where queries and keys come from, *causal* which keys may be seen, and *multi-head* how often it happens side by side. *Scaled dot-product* is our way of scoring. *Additive* is the older way, a small network over the sum of query and key ([chapter 1](01_recurrence.ipynb)).
#
# Is the class right? PyTorch has one of its own, whose masks mean the opposite. With the same matrices both give the same answer:

# %% tags=["active-ipynb"]
# ours = MultiHeadAttention(32, 4)
# theirs = nn.MultiheadAttention(32, 4, bias=False, batch_first=True)
# matrices = [ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight]
# theirs.in_proj_weight.data = torch.cat(matrices).detach()
# theirs.out_proj.weight.data = ours.W_O.weight.detach()
# y = torch.randn(2, 5, 32)
# expected, _ = theirs(y, y, y, attn_mask=~causal_mask(5))
# assert torch.allclose(ours(y, y, y, causal_mask(5)), expected, atol=1e-6)
# print("equal to torch's")

# %% [markdown]
# ## Where a trained head looks
#
# Our story was staged. Here is a head that nobody staged: the third head in the first layer of the encoder that ships with this book. It learned to translate, from pairs of sentences and nothing else. A dog is masculine in German, *der Hund*, and a cat is feminine, *die Katze*. So German must choose: *seinen Ball* if the dog lost its ball, *ihren Ball* if the cat did. In these three sentences, the owner is *not* the first noun:

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# english = [
#     "In the city the dog lost its ball.",
#     "In the garden the cat lost its ball.",
#     "In the house the cat lost its ball.",
# ]
# german = translate(model, tokenizer, english)
# maps = attention_maps(model, tokenizer, list(zip(english, german)))
# marks = [
#     ("seinen", "right: the dog's ball", True),
#     ("ihren", "right: the cat's ball", True),
#     ("seinen", "wrong: the house's ball", False),
# ]
# views.looks(maps, "its", layer=1, head=3, german=german, marks=marks)

# %% [markdown]
# *Thicker arcs are larger weights: "its" passes over the city and finds the dog, it leans towards the cat rather than the garden, and then it falls for the house.*
#
# The first two are what we hoped for. The third is an honest failure: *Haus* is neuter, a neuter owner takes *seinen*, and the German, too, says that the ball was the house's.
#
# Could the head have known better? Not by grammar. In the first layer a vector holds one word and its place, so a score can only weigh *which* two words meet and *where*. All three sentences have the same places, so the head has simply learned to like some nouns more than others as owners: "house" beats "cat", and "cat" beats "garden". It is a good guesser all the same. In test sentences whose owner is not the first noun it finds the owner in 26 of 34, where the noun nearest before "its" would be right in 11 ([evidence 4.5](evidence/04_attention.ipynb)).
#
# Looking is not yet using. [Chapter 19](19_visualization.ipynb) turns this head by hand, and watches whether the German follows.
#
# *`from transformer import MultiHeadAttention` gives the [engine's version](https://github.com/OWNER/annotated-attention/blob/main/transformer/fast/attention.py): the same names and the same weights, and also caches, rotary positions and faster kernels. A test holds the two equal.*

# %% [markdown]
# ## What to keep
#
# - Attention lets each word take a blend of the others' values, in shares that depend on how well its query fits their keys.
# - Queries and keys come from different matrices, because what a word looks for is not what it is.
# - One head brings home one blend, so a Transformer runs several side by side; masks say what none of them may see.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Let the dog ask four times as loudly, with the query $(0, 4)$. Which weights does it give to the four words, and what does it receive?
#
# <details><summary>Answer</summary>
#
# Its products with the four keys are 0, 8, 0 and 0, so "feeds" has the score $8/\sqrt 2 = 5.657$ and the others have 0. The powers of $e$ are 286 and three times 1, which add up to 289. "Feeds" gets 0.99 and each of the others 0.003. The dog receives almost pure *feeding*. Asking loudly is how a head says that it is sure.
# </details>
#
# **2. In code.** In many later models a position sees only the last few words. Write a causal mask with which position $t$ sees the positions from $t - r + 1$ to $t$, and no padding.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.attention import check_window_mask
#
#
# def window_mask(tokens, r, pad_id):
#     """Token ids (B, T) -> a boolean mask (B, 1, T, T), True = may be looked at."""
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
#     back = place[:, None] - place  # how far behind the query the key is
#     near = (back >= 0) & (back < r)
#     return near & (tokens != pad_id)[:, None, None, :]
# ```
# </details>
#
# **3. In code.** Write self-attention with $h$ heads without any class: a loop over heads, from the four matrices alone. Head $i$ uses the $i$-th strip of columns.

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
# </details>
#
# **4. On the trained head.** Find a sentence in which the dog is the owner and "its" looks elsewhere. Does the German fall for it, too? (Words of the bundled corpus work best, for example school, theatre, horse, bird, club, lady.)

# %% tags=["active-ipynb"]
# english = ["The dog behind the house lost its ball."]  # and yours
# german = translate(model, tokenizer, english)
# for pair in attention_maps(model, tokenizer, list(zip(english, german))):
#     weights = pair.encoder[0, 2, pair.source.index("its")]  # layer 1, head 3
#     print(" ".join(pair.target), "| its looks at", pair.source[weights.argmax()])

# %% [markdown]
# **5. To think about.** Rock beats scissors, scissors beats paper, paper beats rock. Each of the three should look most at the one it beats, and nobody may look at itself. Show that no vectors at all can do this with the scores $x_i \cdot x_j$, and say what $W_Q$ and $W_K$ change.
#
# <details><summary>Answer</summary>
#
# Write $rs$ for the score between rock and scissors, which is the same in both directions. Rock needs $rs > rp$, paper needs $rp > sp$, and scissors needs $sp > rs$. Together $rs > rp > sp > rs$, which no numbers satisfy. With $W_Q$ and $W_K$ the two directions have scores of their own, and the ring is easy.
# </details>
#
# **Next.** Attention fetches, but once two numbers are blended it cannot say which was the larger. [Chapter 5](05_feed_forward.ipynb) gives each word a small network to think with.
