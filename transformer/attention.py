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
# *Section 3.2 of the paper. Reading takes about 20 minutes, running half a minute. You need [chapter 0](00_first_transformer.ipynb).*
#
# *Tom feeds his dog.* Whose dog? You did not have to think. But a computer holds four words as four lists of numbers, and nowhere in the list of "his" is there any Tom. To know whose dog it is, something has to travel from one word to another.
#
# In a Transformer that something is attention, and nothing else: every other part works on each word alone. At the end we ask a trained model whose ball was lost, and watch where it looks.

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
# torch.set_num_threads(1)  # quickest for tensors this small

# %% [markdown]
# ## Two attempts that fail
#
# The simplest way to hear from the others is to **average**: each word takes a quarter of everyone. But then every word hears the same, and "his" learns no more about Tom than about the dog.
#
# So the shares should depend on the words. Let the **score** of word $j$ for word $i$ be the inner product $x_i \cdot x_j$ of their vectors, which is large when the two agree. Softmax, as in chapter 0, turns a row of scores into **weights**, positive and adding up to 1.
#
# To begin with, every word has a vector with a single 1, in a place of its own. (What are words here are tokens in a model.) Before you look: whom will "his" listen to most?

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
# And the story holds a second wish: Tom should look at "feeds", to hear what he does, and "feeds" at Tom, to hear who does it. Then the vector of "feeds" would have to be longer than Tom's, and Tom's longer than that of "feeds". No vectors can do that, and no training will find them. The trouble is that one vector has two jobs: it asks, and it answers.

# %% [markdown] tags=["question-01"]
# ## A word needs three roles
#
# Think of a library. You come with an interest, the **query**. Every book wears a label on its spine, the **key**, and has something inside, the **value**. You compare your query with the labels, but you take home the contents.
#
# But here a label can fit *somewhat*, and so you take home a blend of all the books, mostly of those that fit.
#
# A Transformer makes the three from each word's vector by three matrices, which it learns: $Q = xW_Q$, $K = xW_K$, $V = xW_V$. We choose ours by hand. Since each of our words has a single 1, row $i$ of a matrix is what word $i$ gets. What will "his" take home?

# %% tags=["active-ipynb"]
# #              somebody, an action
# # fmt: off
# W_Q = torch.tensor([[0.0, 2],  # Tom asks: what do I do?
#                     [2, 0],    # "feeds" asks: who does it?
#                     [4, 0],    # "his" asks, loudly: who owns?
#                     [0, 1]])   # the dog asks quietly: what is done?
# W_K = torch.tensor([[2.0, 0],  # Tom is labelled: somebody
#                     [0, 2],    # "feeds" is labelled: an action
#                     [0, 0],    # "his" has no label
#                     [1, 0]])   # a dog is somebody, half as much
# #                 Tom, dog, feeding
# W_V = torch.tensor([[1.0, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]])
# # fmt: on
# gives = ("Tom", "dog", "feeding")
# views.one_word(words, x, W_Q, W_K, W_V, "his", asks=("somebody", "action"), gives=gives)

# %% [markdown]
# *Follow "his" from left to right: its query fits Tom's key best, so nearly all that it receives is Tom's value. (In a running notebook: choose another word.)*
#
# Check the line for Tom with a pencil. The query of "his" is $(4, 0)$ and Tom's key is $(2, 0)$, so their product is 8. It is divided by $\sqrt 2$, the root of the keys' width, explained below: the score is 5.657. Now $e^{5.657} = 286$, and the four powers of $e$ add up to $286 + 1 + 1 + 17 = 305$. Tom's weight is $286/305 = 0.94$.
#
# So "his" receives almost pure *Tom*, with a trace of *dog*. A model adds the blend to the vector of "his". From now on that vector knows whose.

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
# It is only a weighted sum. Its power is where the weights come from: not from positions in the sentence, but from the words themselves. The price: attention has no idea of order, as chapter 0 showed. [Chapter 7](07_positions.ipynb) mends that.

# %% [markdown] tags=["question-05"]
# ## Why divide by the root of $d_k$?
#
# Toss coins: let every number in a query and in a key be $+1$ or $-1$. With 4 numbers each, the inner product is a sum of four such tosses, and its typical size is $\sqrt 4 = 2$. With 64 numbers it is $\sqrt{64} = 8$, because the variance of the sum is $d_k$. So **wider keys make larger products**. Divided by $\sqrt{d_k}$, the **scale**, their typical size is 1 at every width.
#
# In softmax, a lead of 2 makes a weight $e^2$ or 7 times as large as its rival; a lead of 8 makes it 3,000 times as large. What will happen to eight random keys as they get wider?

# %% tags=["active-ipynb"]
# for d_k in (4, 64, 1024):
#     q = torch.randn(1000, d_k, 1)  # 1,000 queries; mean 0 and variance 1, as the coins
#     k = torch.randn(1000, 8, d_k)  # and eight keys for each
#     products = (k @ q)[:, :, 0]  # (1000, 8)
#     plain = products.softmax(dim=1).amax(dim=1).median()  # in the typical draw
#     scaled = (products / math.sqrt(d_k)).softmax(dim=1).amax(dim=1).median()
#     print(f"d_k {d_k:4}: largest weight {plain:.2f}, with the scale {scaled:.2f}")
# views.saturation(d_ks=(4, 64, 1024))

# %% [markdown]
# *One draw near these medians: without the scale, above, one key takes all as keys get wider; with the scale, below, the weights stay spread.*
#
# At the start of training queries and keys are random, as here. Without the scale, wide keys leave nearly all of the weight to one of them, by mere chance. Training can undo that only if a small change of the score changes the weight. A weight is $w = e^s/(e^s + r)$, where $s$ is its score and $r$ the sum of the other powers of $e$. Its derivative is $e^s r/(e^s + r)^2 = w(1 - w)$. At $w = 0.99$ that is a hundredth, and at $w = 1$ nothing: such a head hardly learns to look elsewhere. With the scale, $w$ is about a third at every width and still moves.
#
# In a small training, a head had to find one name among four and give the number beside it. With keys 64 wide, as in the paper, its squared error was 0.019 without the scale and below 0.001 with it ([evidence 4.2](evidence/04_attention.ipynb)).

# %% [markdown]
# ## Masks: who may not be looked at
#
# Sometimes a word must not look. Sentences in a batch are filled up to one length with **padding**, which means nothing. And in training, as in chapter 0, the decoder has the right answers before it and must not read them. So a **causal** mask lets each word look at itself and at earlier words only.
#
# A mask is a table of True and False, and in this book **True means "may be looked at"**. To forbid a key, the paper writes $-\infty$ over its score, because $e^{-\infty} = 0$. But if *all* keys are forbidden, as in an empty sentence, softmax would divide 0 by 0. So we write the lowest finite number, and set forbidden weights to 0 afterwards.
#
# In the code, dots in a shape stand for sentences and, later, heads.


# %%
def padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    """True where a token is real: (B, S) -> (B, 1, 1, S), the 1s for heads and queries."""
    return (tokens != pad_id)[:, None, None, :]


def causal_mask(T: int, device: torch.device | None = None) -> Tensor:
    """True where the key is not later than the query: (T, T)."""
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the last axis, among the positions where mask is True.

    scores: (..., T, S); mask: boolean, broadcastable to it, True = may be looked at.
    A row without any True becomes zeros.
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
    q = q / math.sqrt(q.shape[-1])  # first, so that the products stay small
    scores = q @ k.transpose(-2, -1)  # (..., T, S)
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
# Tom is left with himself, and "his" keeps Tom. What the padding itself takes, in the last row, does not matter: no real word looks at it.

# %% [markdown]
# ## One blend cannot serve two wishes
#
# In chapter 0 "its" had two questions, whose and what, and one blend could not answer both. "Feeds" has two as well: who does it, and to whom? One attention can look at both, but half of Tom and half of the dog no longer tells which of them fed the other.
#
# A small task puts a number on that. Each input is six **pairs**, a name and a random number each. A query asks for two of the names, for example Tom and then Rex, his dog, and wants their numbers in this order. The numbers have mean 0 and variance 1, so always answering 0 has a squared error of 1.
#
# One attention brings home a single blend of the two numbers. We guess each number as the blend times the best factor, as a linear layer does. Which blend is best: half of each number, more of one, or all of one?

# %% tags=["active-ipynb"]
# names = torch.randn(32, 16)  # 32 names, each of them 16 random numbers
#
#
# def ask_for_two(count):
#     """Queries (count, 1, 32), pairs (count, 6, 32), numbers wanted and their places."""
#     six = torch.rand(count, 32).argsort(dim=1)[:, :6]  # six different names
#     numbers = torch.randn(count, 6)
#     pairs = torch.zeros(count, 6, 32)
#     pairs[:, :, :16] = names[six]  # a pair is a name,
#     pairs[:, :, 16] = numbers  # its number, and zeros
#     asked = torch.rand(count, 6).argsort(dim=1)[:, :2]  # two of the six places
#     query = names[six.gather(1, asked)].view(count, 1, 32)  # two names side by side
#     return query, pairs, numbers.gather(1, asked), asked
#
#
# _, pairs, wanted, asked = ask_for_two(count=100_000)
# print("six numbers:", [f"{number:.1f}" for number in pairs[0, :, 16]])
# print("asked for:", (asked[0] + 1).tolist(), [f"{number:.1f}" for number in wanted[0]])
# for share in (0.5, 0.7, 1.0):
#     blend = share * wanted[:, 0] + (1 - share) * wanted[:, 1]
#     factors = blend @ wanted / (blend @ blend)  # the best factor for each number
#     error = (blend[:, None] * factors - wanted).square().mean()
#     print(f"{share} of the first: error {error:.2f}")

# %% [markdown]
# All the same: one half. Call the two numbers $a$ and $b$. From half of each, the best guess for both is the blend itself, $(a + b)/2$, which misses $a$ by $(a - b)/2$. On average $a^2$ and $b^2$ are 1 and $ab$ is 0, so the mean square of that miss is $(1 + 1)/4$, one half, and for $b$ it is the same. From all of $a$, the error is 0 for $a$ and 1 for $b$: one half again. Other shares only move error from one number to the other.
#
# But a value is a whole vector. Could it not carry Tom's number in one slot and that of Rex in another? No: one $W_V$ makes the values of all six pairs and does not know who was asked for first, so every number goes into the same slots.
#
# Will training find a way around one half?

# %% [markdown]
# ## Several heads, each with its own question
#
# The paper's way out is to run several attentions side by side, called **heads**. Each head has its own smaller matrices, so its own question, and a last matrix $W_O$ mixes what they found:
#
# $$\mathrm{head}_i = \mathrm{Attention}(xW_{Q,i},\ xW_{K,i},\ xW_{V,i}), \qquad \mathrm{output} = [\mathrm{head}_1, \ldots, \mathrm{head}_h]\,W_O$$
#
# In code the small matrices are side by side in one large matrix, and we cut its product into strips. The paper's model is 512 wide and has eight heads, so each strip is 64 wide. Eight matrices of $512 \times 64$ numbers are as large as one of $512 \times 512$.

# %% tags=["active-ipynb"]
# views.splitting_heads(words, d_model=512, h=8)

# %% [markdown]
# *Follow the dark strip: head 3 owns 64 columns of each matrix and so of the queries, keys and values; all eight results are joined again, and $W_O$ mixes them.*


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
# Given the same matrices, PyTorch's own class should agree. Its masks say the opposite, who may *not* be looked at.

# %% tags=["active-ipynb"]
# ours = MultiHeadAttention(32, 4)
# theirs = nn.MultiheadAttention(32, 4, bias=False, batch_first=True)
# matrices = [ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight]
# theirs.in_proj_weight.data = torch.cat(matrices).detach()
# theirs.out_proj.weight.data = ours.W_O.weight.detach()
# y = torch.randn(2, 5, 32)  # two sentences of five words
# expected, _ = theirs(y, y, y, attn_mask=~causal_mask(5))
# assert torch.allclose(ours(y, y, y, causal_mask(5)), expected, atol=1e-6)
# print("equal to torch's")

# %% [markdown]
# Now the test: two networks that differ only in `h`, and a linear layer that reads the two numbers off.

# %% tags=["active-ipynb"]
# def train(h, updates=500):
#     """The trained heads, and their mean error in the last 200 updates."""
#     heads, read = MultiHeadAttention(32, h), nn.Linear(32, 2)
#     optimizer = torch.optim.Adam([*heads.parameters(), *read.parameters()], lr=0.005)
#     errors = []
#     for _ in range(updates):
#         query, pairs, wanted, _ = ask_for_two(count=64)
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
# One head stays at one half. With two heads the error is gone. Where do they look?

# %% tags=["active-ipynb"]
# query, pairs, _, asked = ask_for_two(count=3)
# tables = {}
# for name, runs in (("one head", one_head), ("two heads", two_heads)):
#     heads, _ = sorted(runs, key=lambda run: run[1])[1]  # the middle one of three
#     q = split_heads(heads.W_Q(query), heads.h)
#     k = split_heads(heads.W_K(pairs), heads.h)
#     v = split_heads(heads.W_V(pairs), heads.h)
#     _, weights = attention(q, k, v)  # (3 queries, heads, 1, 6 pairs)
#     for i in range(heads.h):
#         title = name if heads.h == 1 else f"{name}: head {i + 1}"
#         tables[title] = weights[:, i, 0].detach()
# views.look_ups(tables, asked)

# %% [markdown]
# *In each row a query asks for two pairs, in grey: one head fetches the first and gives up the second, while two heads fetch one each.*
#
# So "feeds" can have both: one head brings Tom, who does it, and another the dog. Their results are side by side, and so $W_O$ can tell them apart.

# %% [markdown] tags=["question-03"]
# ## One class, three uses
#
# Queries need not come from the same words as keys and values. A Transformer reads the source with an encoder and writes the target with a decoder. Our class serves in three places:
#
# | | queries from | keys and values from | mask |
# |---|---|---|---|
# | self-attention, in the encoder | the source | the source | padding |
# | causal self-attention, in the decoder | the target | the target | causal, which also hides padding at the end |
# | cross-attention, from decoder to encoder | the target | the source | padding |

# %% [markdown]
# ## A head that nobody told whose
#
# Our story was staged. Nobody staged the heads of the small translator of chapter 0: it learned from English sentences and their translations. It must choose between *ihren Ball* and *seinen Ball*, and so it has a reason to find out whose.
#
# Its encoder has two layers of four heads. On sentences that it had not learned from we counted how often each head looks from "its" most at the owner, of all the nouns that "its" might mean. The best is the owner head of chapter 0 (head 2 of layer 0, so the third of the first layer).
#
# Here that head meets two nouns before "its". A city, a lady and a cat are feminine in German, and only the dog is masculine, so the translation shows which noun was taken for the owner. Whom will "its" look at?

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# english = [
#     "The dog in the city lost its ball.",
#     "The lady saw the dog that lost its ball.",
#     "The cat saw the dog that lost its ball.",
# ]
# german = translate(model, tokenizer, english)
# maps = attention_maps(model, tokenizer, list(zip(english, german)))
# marks = []
# for sentence in german:
#     if "seinen" in sentence:  # a masculine owner: only the dog can be meant
#         marks.append(("seinen", "seinen: the dog's", True))
#     else:
#         marks.append(("ihren", "ihren: not the dog's", False))
# views.looks(maps, "its", layer=0, head=2, german=german, marks=marks)

# %% [markdown]
# *Thicker arcs are larger weights: "its" finds the dog in spite of the city and the lady, but where the rival is a cat it takes the cat, and so does the German, in red.*
#
# So the head takes neither simply the first noun nor the nearest. It passes over a lady, whose ball would not be called "its", and takes a cat, wrongly: it goes by a score for each noun at its place, as chapter 0 showed.
#
# How often is it right? In 114 other new sentences "its" could mean several nouns, and in 105 of them the head looks most at the right one. Always the first noun is right in 80, always the nearest before "its" in 15. Where the first noun is wrong, in 34 sentences, the head is still right in 26 ([evidence 4.5](evidence/04_attention.ipynb)).
#
# Whose dog, then? A query, some keys and a blend are enough for "his" to hear *Tom*, and for "its" training has found queries and keys that mostly do the same. [Chapter 19](19_visualization.ipynb) turns this head by hand, and watches whether the German follows.

# %% [markdown]
# ## What to keep
#
# - Attention lets each word take a blend of the others' values, in shares that depend on how well its query fits their keys. The scale keeps wide keys from deciding by chance.
# - Queries and keys come from different matrices, because what a word looks for is not what it is.
# - One head brings home one blend, so a Transformer runs several side by side.
# - A mask says what no head may see.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Leave the keys as they are, and find a query $(a, b)$ with which "his" looks at the *dog* most, or show that there is none. What would you change in the keys?
#
# <details><summary>Answer</summary>
#
# There is none. The products with the four keys are $2a$ for Tom, $2b$ for "feeds", $0$ for "his" and $a$ for the dog. If $a$ is positive, Tom has twice the dog's score; if it is negative, "his" with its 0 is ahead; and if $a$ is 0, all three are level. Give the keys a third number, "animal", with 1 for the dog and 0 for the others. Then the query $(0, 0, 8)$ scores $8/\sqrt 3 = 4.6$ for the dog and 0 for the rest, and the dog gets 0.97.
# </details>
#
# **2. In code.** Every new word that a model writes looks back at all words before it, so the model must store their keys and values, for every head. In multi-query attention (Shazeer 2019) each head has its own queries, but all heads *share* one strip of keys and one of values. Write it from the four matrices. $W_K$ and $W_V$ are only $d_k = d/h$ wide.

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
