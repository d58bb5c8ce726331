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
# from transformer.teaching import toys
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
# "His" listens to "his". Would other vectors help? For "his" they would. Make Tom $(3, 0)$ and "his" $(1, 0)$: now the score of "his" for Tom is 3, and for itself only 1. But Tom has become a word that looks at himself, with 9. That is no accident. An inner product is at most the product of the two lengths, so if a word is to prefer another word to itself, the other vector must be *longer* than its own:
#
# $$x_i \cdot x_j > x_i \cdot x_i \quad\text{only if}\quad \lVert x_j \rVert > \lVert x_i \rVert .$$
#
# Now tell the whole story. Tom should look at what he does, and the deed should look at who does it. Then each of the two vectors would have to be longer than the other. No choice of vectors can do that, and no training will find one. The trouble is that one vector has two jobs: it asks, and it answers. Whatever makes Tom easy to find makes him look at himself.

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
# *Follow "his" from left to right: its query fits Tom's key best, so nearly all that it receives is Tom's value. (In a running notebook: choose another word, or write a sentence of your own with these words.)*
#
# Check Tom's row with a pencil. His key is $(2, 0)$ and the query is $(4, 0)$, so their product is 8, and the score is $8/\sqrt 2 = 5.657$ (why the root, we shall see). Now $e^{5.657} = 286$, and the four powers of $e$ add up to $286 + 1 + 1 + 17 = 305$. Tom's weight is $286/305 = 0.94$.
#
# So "his" receives almost pure *Tom*, with a trace of *dog*. The model adds this to the vector that "his" already has, and from now on the word knows whose. Our own words got their queries from a table, because each has a 1 of its own. A matrix does more than a table: it gives a query to *any* vector, also to one that it has never met.

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
# It is only a weighted sum. What makes it powerful is where the weights come from: not from a place in the sentence, but from the words themselves. Put the words into another order, in which "his" is second, and see what it receives:

# %% tags=["active-ipynb"]
# order = [3, 2, 1, 0]  # dog his feeds Tom
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
# *In the upper row one key takes all as keys get wider; in the lower row, with the scale, the weights stay spread. (In a running notebook: move $d_k$.)*
#
# The division gives the scores variance 1 again, whatever the width. Why care? A model learns by moving scores a little and watching what changes. Where one key has everything from the start, nothing changes, and a wrong choice is hard to leave.
#
# Let us see it happen. The input is six pairs of a name and a number, for example *Ada 0.3, Ben −1.2, Cleo 0.8, Dan −0.5, Eve 1.1, Fay 0.1*. A query asks for one name, say *Cleo*, and the answer is her number, *0.8*. To us the names are words; to the model each is a vector of 16 random numbers. One attention can do this, if it learns to give Cleo's key all the weight:

# %% tags=["active-ipynb"]
# names = torch.randn(32, 16)  # a stock of names, of which each input has six
#
#
# def look_up(d_k, scale, lr, steps=300):
#     """Train W_Q and W_K; the mean error of the last 50 steps."""
#     W_Q, W_K = (nn.Parameter(torch.randn(16, d_k) / 4) for _ in "QK")
#     optimizer = torch.optim.Adam([W_Q, W_K], lr=lr)
#     errors = []
#     for _ in range(steps):
#         asked, keys, numbers, right, _ = toys.ask(names)
#         weights = (asked @ W_Q @ (keys @ W_K).transpose(1, 2) / scale).softmax(dim=-1)
#         error = (weights @ numbers - right).square().mean()
#         optimizer.zero_grad()
#         error.backward()
#         optimizer.step()
#         errors.append(error.item())
#     return sum(errors[-50:]) / 50
#
#
# for d_k, lr in ((64, 0.01), (1024, 0.003)):  # of four rates each way's best
#     scaled = sorted(look_up(d_k, math.sqrt(d_k), lr=0.03) for _ in range(3))[1]
#     plain = sorted(look_up(d_k, 1, lr=lr) for _ in range(3))[1]
#     print(f"d_k = {d_k:4}: error {scaled:.5f} with the scale, {plain:.5f} without")

# %% [markdown]
# Always answering 0 would have the error 1, so both ways learn something. But without the scale the middle one of three trainings is hundreds of times worse, and wider keys make it worse still. The division is not the only cure: first matrices that are small enough help as much ([evidence 4.2](evidence/04_attention.ipynb)).

# %% [markdown]
# ## Masks: who may not be looked at
#
# Sometimes a word must not look. Sentences in a batch are filled up to one length with **padding**, which means nothing. And the half of a Transformer that writes, the decoder, learns to guess the *next* word at every place of a sentence at once, so the words to come are answers that it must not read: position $t$ may look at positions up to $t$ only. Such a mask is called **causal**.
#
# A mask is a table of True and False, and in this book **True means "may be looked at"**. (The 1s in the first shape leave room for heads and for queries.)


# %%
def padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    """True where a token is real, for all heads and queries: (B, S) -> (B, 1, 1, S)."""
    return (tokens != pad_id)[:, None, None, :]


def causal_mask(T: int, device: torch.device | None = None) -> Tensor:
    """True where the key is not later than the query: (T, T)."""
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


# %% tags=["active-ipynb"]
# tokens = torch.tensor([[5, 8, 3, 9, 0]])  # Tom feeds his dog, and one padding
# panels = {"padding": padding_mask(tokens, pad_id=0)[0, 0], "causal": causal_mask(5)}
# views.masks(panels, [*words, "(pad)"])

# %% [markdown]
# *Padding removes a column, and the causal mask removes the corner of the future. (The row of the padding stays: what padding looks at, nobody reads.)*
#
# To forbid a key, the paper writes $-\infty$ over its score, because $e^{-\infty} = 0$. We write the lowest finite number instead, and set forbidden weights to zero afterwards. The only difference is a row that forbids *everything*: it receives nothing, where $-\infty$ would divide zero by zero.


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
# And this is the attention of the rest of the book, in place of the one above. Only the mask is new, and the dots in the shapes: they stand for sentences and heads, of which any number may lie side by side.


# %%
def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(d_k)) V, equation 1 (Section 3.2.1).

    q: (..., T, d_k), k: (..., S, d_k), v: (..., S, d_v); mask as in `masked_softmax`.
    Returns the output (..., T, d_v) and the weights (..., T, S).
    """
    scores = q / math.sqrt(q.shape[-1]) @ k.transpose(-2, -1)  # first: fp16 overflows
    weights = masked_softmax(scores, mask)
    return weights @ v, weights


# %% tags=["active-ipynb"]
# _, masked = attention(Q, K, V, causal_mask(4))
# views.weights({"all may be seen": weights, "causal": masked}, words)

# %% [markdown]
# *Each row still adds up to 1: Tom, who may see nobody else, is left with himself, while "his" keeps Tom, who came before.*

# %% [markdown]
# ## One blend at a time
#
# "His" wanted an owner and nothing else. A real word wants several things at once: a verb, for example, has a doer *and* a thing done to. Can one attention serve two wishes?
#
# It can look at both, but it brings home a single blend. Half of Tom and half of the dog tells you that the two were there, and no longer which of them fed the other. Let us put a number on that.
#
# We ask our six pairs for two names at once, say *Dan and Ada*, and want both their numbers, the first one first: *−0.5 and 0.3*. A query is now two names side by side, 32 numbers wide. A pair is a name and its number, filled up with zeros to the same width, so that the words are all alike and one matrix each makes queries, keys and values.

# %% tags=["active-ipynb"]
# query, pairs, right, asked = toys.ask_for_two(names, count=64)
# one, other = asked[0].tolist()
# print("64 queries", tuple(query.shape), "to six pairs", tuple(pairs.shape))
# print(f"the first asks for pairs {one + 1} and {other + 1}")

# %% [markdown]
# What can a single attention reach? It chooses how to split its weight between the two pairs. Say it gives the share $a$ to the first and $b$ to the second, and brings home $a n_1 + b n_2$. (The same $W_V$ works on both pairs, so it cannot put the first number here and the second one there.) The numbers have mean 0 and variance 1. The best guess of $n_1$ from this blend then has the error $b^2/(a^2 + b^2)$, and the best guess of $n_2$ the error $a^2/(a^2 + b^2)$. Check the ends: with $b = 0$ you know the first number and nothing of the second, and with $a = b$ you know half of each. Whatever the split, **the two errors add up to 1, so their mean is one half.** Will training find a way around that?
#
# The paper's way out is to run several attentions side by side, called **heads**. Each head has its own smaller matrices, so each can ask its own question, and a last matrix $W_O$ mixes what they found:
#
# $$\mathrm{head}_i = \mathrm{Attention}(xW^Q_i,\ xW^K_i,\ xW^V_i), \qquad \mathrm{output} = [\mathrm{head}_1, \ldots, \mathrm{head}_h]\,W_O$$
#
# The small matrices lie side by side in one large matrix, and we cut after the product. The paper's model is 512 numbers wide and has eight heads, so each head gets 64 columns, and all eight together have no more weights than one head of full width.

# %% tags=["active-ipynb"]
# views.splitting_heads(d_model=512, h=8)

# %% [markdown]
# *Three products make all queries, keys and values; only then are they cut, and head 1 gets the first strip of each.*


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
#         query, pairs, right, _ = toys.ask_for_two(names, count=64)
#         error = (read(heads(query, pairs, pairs))[:, 0] - right).square().mean()
#         optimizer.zero_grad()
#         error.backward()
#         optimizer.step()
#         errors.append(error.item())
#     return heads, sum(errors[-200:]) / 200
#
#
# trained = {h: [train(h) for _ in range(3)] for h in (1, 2)}
# for h, runs in trained.items():
#     print(
#         f"{h} head{'s' * (h > 1)}: errors",
#         ", ".join(f"{error:.3f}" for _, error in runs),
#     )

# %% [markdown]
# One head ends at one half, as we predicted, give or take the luck of the last batches. With two heads the error is gone. Where do they look?

# %% tags=["active-ipynb"]
# query, pairs, _, asked = toys.ask_for_two(names, count=4)
# panels = {}
# for h in (1, 2):
#     heads = trained[h][0][0]
#     q = split_heads(heads.W_Q(query), h)
#     k = split_heads(heads.W_K(pairs), h)
#     scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (4, h, 1, 6)
#     for i, weights in enumerate(masked_softmax(scores)[:, :, 0].unbind(1), 1):
#         title = "one head" if h == 1 else f"two heads: head {i}"
#         panels[title] = weights.detach()
# views.look_ups(panels, asked)

# %% [markdown]
# *The bars are weights, and grey marks the two pairs asked for: the network with one head has settled on one of the two wishes and gives up the other, while in the other network two heads share the work.*

# %% [markdown] tags=["question-03"]
# ## One class, three uses
#
# Queries need not come from the same words as keys and values. A Transformer reads the source sentence with an encoder and writes the target with a decoder. It uses our class in three places, and only what is handed in differs:
#
# | | queries from | keys and values from | mask |
# |---|---|---|---|
# | self-attention, in the encoder | the source | the source | padding |
# | causal self-attention, in the decoder | the target | the target | causal |
# | cross-attention, from decoder to encoder | the target | the source | padding |
#
# For example, while the decoder writes *Ball*, cross-attention lets it look at "ball". (The decoder's own padding needs no mask: it comes last, where the causal mask hides it from every real word.)
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
# Our story was staged. Here is a head that nobody staged: the third of four heads in the first layer of the encoder that ships with this book. It learned to translate, from pairs of sentences and nothing else. (We chose it on other sentences than these, [evidence 4.5](evidence/04_attention.ipynb).)
#
# In German every noun is masculine, feminine or neuter, and "its" must follow its owner: *ihren Ball* if the owner is feminine, *seinen Ball* if not. A city, a lady and a cat are feminine (*die Stadt, die Dame, die Katze*), and a dog is masculine (*der Hund*). So in each of these sentences the two nouns before "its" ask for different words, and the German shows which one was taken for the owner:

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# english = [
#     "The dog in the city lost its ball.",
#     "The lady saw the dog that lost its ball.",
#     "The cat saw the dog that lost its ball.",
# ]
# german = translate(model, tokenizer, english)
# maps = attention_maps(model, tokenizer, list(zip(english, german)))
# marks = [
#     ("seinen", "right: the dog's", True),
#     ("seinen", "right: the dog's", True),
#     ("ihren", "wrong: the cat's", False),
# ]
# views.looks(maps, "its", layer=0, head=2, german=german, marks=marks)

# %% [markdown]
# *Thicker arcs are larger weights: "its" finds the dog behind the city and behind the lady, and then it falls for the cat.*
#
# So the head does not simply take the first noun, nor the nearest. In the second sentence it passes over a lady, whose ball would not be called "its". The third is an honest failure: put a cat in her place, and the head takes the cat.
#
# Could it have known better? Not by grammar. In the first layer a vector holds one word and its place, so a score can only weigh *which* two words meet and *where*. The head has learned which nouns make good owners, and from which places. It is a good guesser all the same. In test sentences whose owner is *not* the first noun it finds the owner in 26 of 34, where the noun nearest before "its" would be right in 11 ([evidence 4.5](evidence/04_attention.ipynb)).
#
# Looking is not yet using. [Chapter 19](19_visualization.ipynb) turns this head by hand, and watches whether the German follows.
#
# *The package has a [larger version](https://github.com/OWNER/annotated-attention/blob/main/transformer/fast/attention.py) of this class, `from transformer import MultiHeadAttention`, with the same names and the same weights. It is made for speed, and later chapters explain what it adds. A test holds the two equal.*

# %% [markdown]
# ## What to keep
#
# - Attention lets each word take a blend of the others' values, in shares that depend on how well its query fits their keys.
# - Queries and keys come from different matrices, because what a word looks for is not what it is.
# - One head brings home one blend, so a Transformer runs several side by side; masks say what none of them may see.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Leave the keys as they are, and let "his" ask for whatever you like: find a query $(a, b)$ with which it looks at the *dog* most. You will not succeed. Why not, and what is the smallest change that helps?
#
# <details><summary>Answer</summary>
#
# The products with the four keys are $2a$ for Tom, $2b$ for "feeds", $0$ for "his" and $a$ for the dog. If $a$ is positive, Tom has twice the dog's score. If $a$ is negative, "his" itself, with 0, is ahead of the dog. And if $a$ is 0, the dog is level with Tom and "his". A query can only prefer what the keys let it tell apart, and on these labels the dog is merely half a Tom. Give the keys a third number, "animal", with 1 for the dog and 0 for the others. Then the query $(0, 0, 8)$ has the score $8/\sqrt 3 = 4.6$ for the dog and 0 for the rest, which is a weight of 0.97.
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
# **3. In code.** When a model writes, it must keep the keys and values of all that it has written, for every head. Many of today's models save memory here: each head has its own queries, but all heads *share* one strip of keys and one of values (multi-query attention, Shazeer 2019). Write it from the four matrices. $W_K$ and $W_V$ are only $d_k = d/h$ wide.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.attention import check_shared_keys
#
#
# def shared_keys(x, W_Q, W_K, W_V, W_O, h):
#     """x (B, T, d); W_Q, W_O (d, d), W_K, W_V (d, d / h), used as x @ W -> (B, T, d)."""
#     ...
#
#
# check_shared_keys(shared_keys)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def shared_keys(x, W_Q, W_K, W_V, W_O, h):
#     q = split_heads(x @ W_Q, h)  # (B, h, T, d_k)
#     k, v = (x @ W_K)[:, None], (x @ W_V)[:, None]  # (B, 1, T, d_k)
#     output, _ = attention(q, k, v)
#     return join_heads(output) @ W_O
# ```
#
# The 1 in the shape of `k` and `v` does it: torch repeats them for every head.
# </details>
#
# **4. On the trained head.** Collect four sentences in which a dog is the owner and the other noun is feminine (for example school, city, church, bag). Find one that fools the head. What does the German do then?
#
# <details><summary>Answer</summary>
#
# Owners behind "that" are hard for it, and so are nouns that can own something themselves, like the cat. In the sentences that we tried, *ihren* appeared where "its" looked at the feminine noun with more than half of its weight, and *seinen* elsewhere. For example, "In the bag the dog lost its ball." gives the bag 0.42 and the dog 0.56, and still *seinen*.
# </details>

# %% tags=["active-ipynb"]
# english = ["The lady saw the dog that lost its ball."]  # and yours
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
