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
# *Section 3.2 of the paper. Reading takes about 20 minutes, running half a minute.*
#
# *Tom feeds his dog.* Whose dog? You did not have to think. But a computer holds four words as four lists of numbers, and nowhere in the list of "his" is there any Tom. To know whose dog it is, something has to travel from one word to another.
#
# In a Transformer that something is attention, and nothing else: every other part works on each word alone. At the end a trained model gets the same question.

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
# torch.set_num_threads(1)  # quickest for tensors this small

# %% [markdown]
# ## Two attempts that fail
#
# The simplest way to hear from the others is to **average**: each word takes a quarter of everyone. But then every word hears the same, and "his" learns no more about Tom than about the dog.
#
# So the shares should depend on the words. Let the **score** of word $j$ for word $i$ be the inner product $x_i \cdot x_j$ of their vectors, which is large when the two agree. Softmax turns a row of scores into **weights**, positive and adding up to 1: it takes $e$ to the power of each score and divides by the sum.
#
# To begin with, every word has a vector with a single 1, in a place of its own. Before you look: whom will "his" listen to most?

# %% tags=["active-ipynb"]
# words = ["Tom", "feeds", "his", "dog"]
# x = torch.eye(4)  # row 0 is Tom, row 1 is "feeds", ...
# agreement = (x @ x.T).softmax(dim=1)
# views.weights({"who agrees with me": agreement}, words)

# %% [markdown]
# *Read along a row: nearly half of what a word receives is the word itself.*

# %% [markdown] tags=["question-06"]
# "His" listens to "his". Would other vectors help? Make Tom $(3, 0)$ and "his" $(1, 0)$: now "his" scores Tom with 3 and itself with 1. But Tom scores himself with 9. An inner product is at most the product of the two lengths, so a word can prefer another word to itself only if the other vector is *longer* than its own.
#
# And the story holds a second wish: Tom should look at what he does, and the deed should look at who does it. Then each of the two vectors would have to be longer than the other. No vectors can do that, and no training will find them. The trouble is that one vector has two jobs: it asks, and it answers.

# %% [markdown] tags=["question-01"]
# ## A word needs three roles
#
# Think of a library. You come with an interest, the **query**. Every book wears a label on its spine, the **key**, and has something inside, the **value**. You compare your query with the labels, but you take home the contents. So you need not resemble what you are looking for.
#
# But here a label can fit *somewhat*, and so you take home a blend of all the books, mostly of those that fit.
#
# A Transformer makes the three from each word's vector by three matrices, which it learns: $Q = xW_Q$, $K = xW_K$, $V = xW_V$. We choose ours by hand. Since each of our words has a single 1, row $i$ of a matrix is what word $i$ gets. What will "his" take home?

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
# *Follow "his" from left to right: its query fits Tom's key best, so nearly all that it receives is Tom's value. (In a running notebook: choose another word.)*
#
# Check Tom's row with a pencil. His key is $(2, 0)$ and the query is $(4, 0)$, so their product is 8, and the score is $8/\sqrt 2 = 5.657$ (the root: see below). Now $e^{5.657} = 286$, and the four powers of $e$ add up to $286 + 1 + 1 + 17 = 305$. Tom's weight is $286/305 = 0.94$.
#
# So "his" receives almost pure *Tom*, with a trace of *dog*. A model gives this blend the width of the word's own vector, adds the two, and from now on the word knows whose.

# %% [markdown]
# ## The whole of it is one formula
#
# In general there are $T$ queries and $S$ keys, each of them $d_k$ numbers wide. One matrix product scores them all, softmax works along each row, and a second product blends the values. That is equation 1 of the paper:
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
# *Tom and "feeds" look at each other, which was impossible with one vector for each word, and "his" looks at Tom, unanswered.*

# %% [markdown] tags=["question-04"]
# It is only a weighted sum. Its power is where the weights come from: not from places in the sentence, but from the words themselves. Read the sentence backwards, so that "his" is second. What will it receive now?

# %% tags=["active-ipynb"]
# order = [3, 2, 1, 0]  # dog his feeds Tom
# shuffled, _ = attention(Q[order], K[order], V[order])
# for name, row in [("in order", output[2]), ("backwards", shuffled[1])]:
#     print(f"his, {name}:", [f"{number:.2f}" for number in row])

# %% [markdown]
# "His" finds Tom wherever he is. Weights that belong to places would find whoever stands there ([evidence 4.1](evidence/04_attention.ipynb)). The price: attention has no idea of order. [Chapter 7](07_positions.ipynb) mends that.

# %% [markdown] tags=["question-05"]
# ## Why divide by the root of d?
#
# Toss coins: let every number in a query and in a key be $+1$ or $-1$. With 4 numbers each, the inner product is a sum of four such tosses, and its typical size is $\sqrt 4 = 2$. With 64 numbers it is $\sqrt{64} = 8$, as the variance of the sum grows with $d_k$. So **wider keys make larger scores**.
#
# Softmax takes size seriously. A lead of 2 makes a weight $e^2$ or 7 times as large; a lead of 8 makes it 3,000 times as large. What will happen to eight random keys as they get wider?
#
# Watch the largest weight $w$, and its gradient: how much $w$ moves when its $q \cdot k$ moves a little. That is $w(1 - w)$, and with the scale $w(1 - w)/\sqrt{d_k}$.

# %% tags=["active-ipynb"]
# generator = torch.Generator().manual_seed(173)  # of 400 draws a typical one
# q = torch.randn(1024, generator=generator).double()  # mean 0, variance 1, as the coins
# k = torch.randn(8, 1024, generator=generator).double()  # eight keys
# for d_k in (4, 64, 1024):
#     products = k[:, :d_k] @ q[:d_k]  # only their first d_k numbers
#     w = products.softmax(dim=0).max()
#     w_scaled = (products / math.sqrt(d_k)).softmax(dim=0).max()
#     slope, slope_scaled = w * (1 - w), w_scaled * (1 - w_scaled) / math.sqrt(d_k)
#     print(f"d_k = {d_k:4}  without the scale: w {w:.2f}, gradient {slope:.2g}")
#     print(f"{'with it:':>30} w {w_scaled:.2f}, gradient {slope_scaled:.2g}")
# views.saturation(d_ks=(4, 64, 1024))

# %% [markdown]
# *In the upper row one key takes all as keys get wider; with the scale, below, the weights stay spread.*
#
# At the start of training queries and keys are random, as here. Without the scale, wide keys leave nearly all of the weight to one of them, by mere chance. Training could take it back only along the gradient, and at 1,024 that has vanished. At $d_k = 4$ the scale even makes the gradient smaller: narrow keys do not need it.
#
# When we trained both ways with keys 256 wide, the error was 0.052 without the scale and below 0.001 with it ([evidence 4.2](evidence/04_attention.ipynb)).

# %% [markdown]
# ## Masks: who may not be looked at
#
# Sometimes a word must not look. Sentences in a batch are filled up to one length with **padding**, which means nothing. And the decoder, the half of a Transformer that writes, learns to guess the *next* word at every place at once, and must not read the answers. So a **causal** mask lets each word look at itself and at earlier words only.
#
# A mask is a table of True and False, and in this book **True means "may be looked at"**.
#
#
# To forbid a key, the paper writes $-\infty$ over its score, because $e^{-\infty} = 0$. We write the lowest finite number, and set the weight to zero afterwards, so that a row in which *everything* is forbidden, as in an empty sentence, receives nothing.
#
# This is the attention of the rest of the book. The dots in the shapes stand for sentences and, later, heads.


# %%
def padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    """True where a token is real: (B, S) -> (B, 1, 1, S), the 1s for heads and queries."""
    return (tokens != pad_id)[:, None, None, :]


def causal_mask(T: int, device: torch.device | None = None) -> Tensor:
    """True where the key is not later than the query: (T, T)."""
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the last axis, among the positions where mask is True.

    scores: (..., T, S); mask: boolean, broadcastable to it, True = may be looked at. A
    row without any True becomes zeros, and passes zero gradient back.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


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


# %% [markdown]
# We add one padding word to our sentence and try both masks. Under the causal one, to whom can Tom still listen?

# %% tags=["active-ipynb"]
# tokens = torch.tensor([[5, 8, 3, 9, 0]])  # Tom feeds his dog, and 0 is padding
# longer = torch.cat([x, torch.zeros(1, 4)])  # the padding's vector: nothing
# masks = {"padding": padding_mask(tokens, pad_id=0)[0, 0], "causal": causal_mask(5)}
# tables = {}
# for name, mask in masks.items():
#     _, weights = attention(longer @ W_Q, longer @ W_K, longer @ W_V, mask)
#     tables[name] = weights, mask
# views.masks(tables, [*words, "(pad)"])

# %% [markdown]
# *Grey is forbidden: the padding mask takes away a column, and the causal mask the corner of the future, while each row still adds up to 1.*
#
# Tom is left with himself, and "his" keeps Tom. The padding's own row is an even blend, but nobody reads it.

# %% [markdown]
# ## One blend cannot serve two wishes
#
# "His" wanted only an owner. A verb wants two things at once: who does it, and to whom. One attention can look at both, but half of Tom and half of the dog, blended, no longer tells which of them fed the other.
#
# A small task puts a number on that. The input is six names with a random number each. A query asks for two of the names, for example *Tom and Rex* (his dog), and wants both their numbers, in this order. The numbers have mean 0 and variance 1, so always guessing 0 has a squared error of 1.
#
# How near can one attention come? Work it out with coins, $+1$ or $-1$.
#
# - **Half of each.** If both numbers are 1, it brings home 1; if both are −1, it brings home −1; the error is 0. But if Tom has 1 and Rex −1, it brings home 0, and so it does if they are swapped. The best guess is 0 for both, and each error is 1. Over the four cases the mean error is 0.5.
# - **All of Tom.** His number has the error 0 and that of Rex has the error 1: again 0.5. Shares in between do no better.
#
# But a value is a whole vector. Could it not carry Tom's number in one slot and that of Rex in another? No: one $W_V$ makes the values of all pairs and does not know who was asked for first, so every number goes into the same slots.
#
# Will training find a way around one half?

# %% [markdown]
# ## Several heads, each with its own question
#
# The paper's way out is to run several attentions side by side, called **heads**. Each head has its own smaller matrices, so its own question, and a last matrix $W_O$ mixes what they found:
#
# $$\mathrm{head}_i = \mathrm{Attention}(xW_{Q,i},\ xW_{K,i},\ xW_{V,i}), \qquad \mathrm{output} = [\mathrm{head}_1, \ldots, \mathrm{head}_h]\,W_O$$
#
# In code the small matrices are side by side in one large one, and we cut after the product. The paper's model is 512 wide with eight heads, so each gets 64. Together they have no more weights than one head of full width.

# %% tags=["active-ipynb"]
# views.splitting_heads(d_model=512, h=8)

# %% [markdown]
# *A head is a column with its own strip of queries, keys and values; the eight results are joined and mixed.*


# %%
def split_heads(x: Tensor, h: int) -> Tensor:
    """Cut the last axis into heads: (B, n, h * d) -> (B, h, n, d)."""
    return x.unflatten(-1, (h, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """Heads side by side again: (B, h, n, d) -> (B, n, h * d)."""
    return x.transpose(1, 2).flatten(2)


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
# Now the test. A name is 16 random numbers, so a query of two is 32 wide; a pair is filled up to that with zeros. The networks differ only in `h`.

# %% tags=["active-ipynb"]
# names = torch.randn(32, 16)  # a stock of names, of which each input has six
#
#
# def train(h, updates=600):
#     """The trained heads, and their mean error in the last 200 updates."""
#     heads, read = MultiHeadAttention(32, h), nn.Linear(32, 2)
#     optimizer = torch.optim.Adam([*heads.parameters(), *read.parameters()], lr=0.005)
#     errors = []
#     for _ in range(updates):
#         query, pairs, wanted, _ = toys.ask_for_two(names, count=64)
#         answer = read(heads(query, pairs, pairs))[:, 0]  # two numbers for each query
#         error = (answer - wanted).square().mean()
#         optimizer.zero_grad()
#         error.backward()
#         optimizer.step()
#         errors.append(error.item())
#     return heads, sum(errors[-200:]) / 200
#
#
# one_head = [train(h=1) for _ in range(3)]
# two_heads = [train(h=2) for _ in range(3)]
# print("one head: ", [f"{error:.3f}" for _, error in one_head])
# print("two heads:", [f"{error:.3f}" for _, error in two_heads])

# %% [markdown]
# One head does not get below one half. With two heads the error is gone. Where do they look?

# %% tags=["active-ipynb"]
# query, pairs, _, asked = toys.ask_for_two(names, count=3)
# tables = {}
# for name, runs in (("one head", one_head), ("two heads", two_heads)):
#     heads, _ = sorted(runs, key=lambda run: run[1])[1]  # the middle one of three
#     q = split_heads(heads.W_Q(query), heads.h)
#     k = split_heads(heads.W_K(pairs), heads.h)
#     _, weights = attention(q, k, k)  # any values: only the weights are used
#     for i in range(heads.h):
#         title = name if heads.h == 1 else f"{name}: head {i + 1}"
#         tables[title] = weights[:, i, 0].detach()
# views.look_ups(tables, asked)

# %% [markdown]
# *Each row is a query; bars are weights, and grey marks the pairs asked for. One head brings home the first and gives up the second. Of two heads, each brings home one.*
#
# So "feeds" can have both: one head comes home with Tom, who does it, and another with the dog. They arrive side by side, and $W_O$ knows which is which.

# %% [markdown] tags=["question-03"]
# ## One class, three uses
#
# Queries need not come from the same words as keys and values. A Transformer reads the source with an encoder and writes the target with a decoder. Our class serves in three places:
#
# | | queries from | keys and values from | mask |
# |---|---|---|---|
# | self-attention, in the encoder | the source | the source | padding |
# | causal self-attention, in the decoder | the target | the target | causal (padding comes later still) |
# | cross-attention, from decoder to encoder | the target | the source | padding |
#
# By the last a translation hears its source. The model that ships with this book translates *The cat lost its ball.* When it writes *ihren*, German for the "its" of a cat, which English word will it look at?

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# source = "The cat lost its ball."
# [target] = translate(model, tokenizer, [source])
# [one] = attention_maps(model, tokenizer, [(source, target)])
# row = one.cross[-1].mean(dim=0)[one.target.index("ihren")]  # last layer, mean of heads
# print(target)
# print("ihren:", {word: f"{share:.2f}" for word, share in zip(one.source, row)})

# %% [markdown]
# At "its", and not at the cat. So whatever tells *ihren* from *seinen* is probably in the vector of "its" already: in the encoder, "its" has asked whose.
#
# PyTorch's own class, whose masks mean the opposite, should give the same answer with the same matrices:

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
# ## A head that nobody told whose
#
# Our story was staged. Nobody staged the next head, which learned only from pairs of sentences. Of the eight heads in the model's encoder we chose the one that most often found the owner of "its" in validation sentences: the third of four in the first layer.
#
# In German "its" must follow its owner: *ihren Ball* if the owner's noun is feminine, *seinen Ball* if not. A city, a lady and a cat are feminine, and a dog is masculine. So in each sentence the two nouns before "its" need different German words, and the translation shows which was taken for the owner. Whom will "its" look at?

# %% tags=["active-ipynb"]
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
#     ("ihren", "unlikely: the cat's", False),
# ]
# views.looks(maps, "its", layer=0, head=2, german=german, marks=marks)

# %% [markdown]
# *Thicker arcs are larger weights: "its" finds the dog in spite of the city and the lady, and then it falls for the cat.*
#
# So the head takes neither simply the first noun nor simply the nearest: it passes over a lady, whose ball would not be called "its", and takes a cat. (A dog may lose a cat's ball, but few would read it so.)
#
# Could it know better? Not by grammar: in the first layer a vector holds one word and its place, so a score can only weigh *which* two words meet and *where*. The head has learned which nouns make good owners. It guesses well all the same. In 34 test sentences the owner is not the first noun. Of all the nouns the head looks most at the owner in 26 of them; the rival "always the nearest noun before *its*" is right in 11 ([evidence 4.5](evidence/04_attention.ipynb)).
#
# Whose dog, then? A query, some keys and a blend are enough for "his" to hear *Tom*, and training finds such queries and keys by itself. [Chapter 19](19_visualization.ipynb) turns this head by hand, and watches whether the German follows.

# %% [markdown]
# ## What to keep
#
# - Attention lets each word take a blend of the others' values, in shares that depend on how well its query fits their keys.
# - Queries and keys come from different matrices, because what a word looks for is not what it is.
# - One head brings home one blend, so a Transformer runs several side by side; masks say what none of them may see.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Leave the keys as they are, and find a query $(a, b)$ with which "his" looks at the *dog* most. You will not succeed. Why not, and what helps?
#
# <details><summary>Answer</summary>
#
# The products with the four keys are $2a$ for Tom, $2b$ for "feeds", $0$ for "his" and $a$ for the dog. If $a$ is positive, Tom has twice the dog's score; if it is negative, "his" with its 0 is ahead; and if $a$ is 0, all three are level. Give the keys a third number, "animal", with 1 for the dog and 0 for the others. Then the query $(0, 0, 8)$ scores $8/\sqrt 3 = 4.6$ for the dog and 0 for the rest, and the dog gets 0.97.
# </details>
#
# **2. In code.** A model that writes must keep the keys and values of all that it has written, for every head. To save memory, each head can have its own queries while all *share* one strip of keys and one of values (multi-query attention, Shazeer 2019). Write it from the four matrices. $W_K$ and $W_V$ are only $d_k = d/h$ wide.

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
#     k, v = (x @ W_K)[:, None], (x @ W_V)[:, None]  # (B, 1, T, d_k), for all
#     output, _ = attention(q, k, v)
#     return join_heads(output) @ W_O
# ```
# </details>
#
# **3. To think about.** Rock beats scissors, scissors beats paper, paper beats rock. Each should look most at the one it beats, and none may look at itself. Show that no vectors at all can do this with the scores $x_i \cdot x_j$, and say what $W_Q$ and $W_K$ change.
#
# <details><summary>Answer</summary>
#
# Write $rs$ for the score between rock and scissors, which is the same in both directions. Rock needs $rs > rp$, paper $rp > sp$, and scissors $sp > rs$. Together $rs > rp > sp > rs$, which no numbers satisfy. With two matrices the two directions differ: let the keys be vectors with a single 1, and let $W_Q$ turn each into the one it beats.
# </details>
#
# **Next.** Attention fetches two numbers, but it cannot say which of them is larger. [Chapter 5](05_feed_forward.ipynb) gives each word a small network to think with.
