# ---
# jupyter:
#   jupytext:
#     formats: notebooks/00_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 0 · A first Transformer
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/00_first_transformer.ipynb)
#
# *The whole paper on one page. Reading takes about 20 minutes, running half a minute. You need Python and a little torch.*
#
# *The cat lost its ball.* Put that into German and you come to a fork at "its": its first half is *ihr-* if the owner is feminine in German, like the cat, and *sein-* if the owner is masculine, like the dog. (The ending *-en* is the ball's.) Nothing in the word "its" tells which half is right. Whoever translates it has to look back and find out who lost the ball.
#
# How does a machine know where to look? On this page you write one that does: the Transformer of "Attention Is All You Need". First we make one word look by hand. Then you train a small model to write numbers backwards, and watch it find out where to look. At last you load the weights of a translator into the same classes, and ask it about the cat.

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
import torch.nn.functional as F
from torch import nn

# %% [markdown]
# ## "Its" asks, and takes home what fits
#
# A model sees *tokens*: words, pieces of words, or digits. For each token it holds a vector, a list of numbers. Attention is how one token's vector gets something from the others. Each token makes three things from its vector: a **query**, which says what it is looking for, a **key**, a label that says what it has to offer, and a **value**, which is what it gives.
#
# Let us choose them for five words. Queries and keys hold two numbers, one for "somebody" and one for "a deed". "Its" asks loudly for somebody. The cat is labelled as somebody, the ball only half as much. What a noun gives is its gender. How much of the ball will "its" take home?
#
# Each word's vector is a single 1, so that row 0 of each matrix belongs to the cat, row 1 to "lost", and so on. The vector of "the" is zero.

# %% tags=["active-ipynb"]
# from transformer import views
#
# torch.set_num_threads(1)  # tensors this small gain nothing from a second core
# words = ["the", "cat", "lost", "its", "ball"]
# x = torch.cat([torch.zeros(1, 4), torch.eye(4)])  # (5, 4): a row for each word
# # rows: cat, lost, its, ball
# W_Q = torch.tensor([[0.0, 2], [2, 0], [4, 0], [0, 1]])  # asks for: somebody, a deed
# W_K = torch.tensor([[2.0, 0], [0, 2], [0, 0], [1, 0]])  # is labelled as: the same two
# W_V = torch.tensor([[1.0, 0], [0, 0], [0, 0], [0, 1]])  # gives: feminine, masculine
# asks, gives = ("somebody", "a deed"), ("feminine", "masculine")
# views.one_word(words, x, W_Q, W_K, W_V, "its", asks=asks, gives=gives)

# %% [markdown]
# *Read from left to right: the query of "its" fits the cat's key best, so most of what it takes home is the cat's value, "feminine".*
#
# There are three steps. The **score** of a word is the inner product of the query with its key, divided by the root of their width, here $\sqrt 2$, because sums over more numbers would be larger ([chapter 4](04_attention.ipynb)). For the cat it is $(4 \cdot 2 + 0 \cdot 0)/\sqrt 2 = 5.66$. Softmax turns the scores into **weights**: it takes $e$ to the power of each and divides by the sum, so that they are positive and add up to 1. What "its" takes home is the **blend** of the values by these weights. In code, for all five words at once:

# %% tags=["active-ipynb"]
# Q, K, V = x @ W_Q, x @ W_K, x @ W_V
# scores = Q @ K.T / math.sqrt(2)  # (5, 5): in row i what word i asks of each word
# weights = scores.softmax(dim=1)  # each row adds up to 1
# its = 3  # its place, counted from 0
# print("weights:   ", [round(weight, 2) for weight in weights[its].tolist()])
# print("takes home:", [round(number, 2) for number in (weights @ V)[its].tolist()])

# %% [markdown]
# As the paper writes it:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right) V$$
#
# A Transformer learns the three matrices that we made up.
#
# ## One word, two questions
#
# For *ihren* "its" has two questions. Whose is it? That decides *ihr-*. What is it? That decides *-en*. In one softmax more ball means less cat. So several attentions run side by side. They are called *heads*, and each has its own queries, keys and values. A last matrix, `W_O`, mixes what they bring.
#
# In code one matrix makes the queries of all heads: with two heads, the first half of its columns belongs to head 0, the second to head 1. A *mask* says who may be looked at: a forbidden score is replaced by the lowest number that there is, and $e$ to that power is 0.


# %%
class Attention(nn.Module):
    """Each token of x (B, T, d_model) looks at those of seen (B, S, d_model).

    B sentences, T tokens that look, S tokens that are seen, h heads of width d_k.
    """

    def __init__(self, d_model, h):
        super().__init__()
        self.h = h
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def split(self, columns):
        # (B, T, d_model) -> (B, h, T, d_k): each head gets d_k of the columns
        return columns.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def forward(self, x, seen, mask):
        q = self.split(self.W_Q(x))
        k = self.split(self.W_K(seen))
        v = self.split(self.W_V(seen))
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])  # (B, h, T, S)
        lowest = torch.finfo(scores.dtype).min  # e to this power is 0
        scores = scores.masked_fill(~mask, lowest)  # mask: True where it may look
        self.weights = scores.softmax(dim=-1)  # kept, so that we can draw them
        brought = (self.weights @ v).transpose(1, 2).flatten(2)  # heads side by side
        return self.W_O(brought)


# %% [markdown]
# Does this class do what we did by hand? Head 0 gets our matrices. In those of head 1 "its" asks for a thing, and the ball is labelled as one twice as loudly as the cat.

# %% tags=["active-ipynb"]
# # rows: cat, lost, its, ball; columns: a thing, a deed
# Q_1 = torch.tensor([[0.0, 0], [0, 0], [4, 0], [0, 0]])
# K_1 = torch.tensor([[1.0, 0], [0, 0], [0, 0], [2, 0]])
# two = Attention(d_model=4, h=2)
# with torch.no_grad():  # nn.Linear keeps its matrix transposed
#     two.W_Q.weight.copy_(torch.cat([W_Q, Q_1], dim=1).T)
#     two.W_K.weight.copy_(torch.cat([W_K, K_1], dim=1).T)
#     two.W_V.weight.copy_(torch.cat([W_V, W_V], dim=1).T)
#     two.W_O.weight.copy_(torch.eye(4))  # mixes nothing
#     everywhere = torch.ones(5, 5, dtype=torch.bool)
#     brought = two(x[None], x[None], everywhere)[0]  # a batch of one sentence
# print("takes home:", [round(number, 2) for number in brought[its].tolist()])
# heads = {"head 0: whose?": "feminine", "head 1: what?": "masculine"}
# views.side_by_side(words, "its", two.weights[0, :, its], heads)

# %% [markdown]
# *Thicker arcs are larger weights: one head brings the cat's gender home, the other the ball's.*
#
# The first two numbers are those from above, the last two are the second head's. Feminine owner, masculine thing: *ihren*.

# %% [markdown]
# ## Attention forgets the order, so we write it into the vectors
#
# If you shuffle the five words, "its" meets the same keys and takes home the same. To attention alone a sentence is a heap of words, and a dog that saw a cat is a cat that saw a dog.
#
# So each token's place has to be in its vector. The paper *adds* a pattern of sines and cosines, from fast waves to slow ones, which is different at every position.


# %%
def sinusoids(n, d_model):
    """A row for each of n positions: (n, d_model)."""
    rates = 10_000 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(n)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


# %% tags=["active-ipynb"]
# sentence = ["the", "cat", "that", "saw", "the", "dog", "lost", "its", "ball"]
# views.waves(sinusoids(9, 64), sentence, columns=(0, 8, 16), marked="the")

# %% [markdown]
# *Read downwards: the three dots below each other are three of the numbers that a position adds. Both "the" have the same word vector; their dots differ.*
#
# Now a query can ask for a place, too, as in exercise 2. Why waves? See [chapter 7](07_positions.ipynb).
#
# ## Each token thinks by itself, and adds what it finds
#
# Attention fetches and blends. After it a small *feed-forward* network with one hidden layer works on each token by itself, and can combine what the heads have brought ([chapter 5](05_feed_forward.ipynb)).
#
# What either of them finds is *added* to the token's vector, so that what was known before is not lost. Sums grow with every addition, so LayerNorm brings them back to one size: $\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$. Without the `x +` the model does not learn ([chapter 3](03_stacks.ipynb)).


# %%
class FeedForward(nn.Module):
    """The same small network for each token: (B, T, d_model) -> (B, T, d_model)."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.W_2(self.W_1(x).relu())


class LayerNorm(nn.Module):
    """Mean 0 and variance 1, then a learned gain and bias: (B, T, d_model)."""

    def __init__(self, d_model):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias)


class Residual(nn.Module):
    """Add what a sub-layer makes of x (B, T, d_model), then normalise."""

    def __init__(self, d_model, P_drop):
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(P_drop)  # zeros at random in training: chapter 13

    def forward(self, x, sublayer):
        return self.norm(x + self.dropout(sublayer(x)))


# %% [markdown]
# ## Two stacks: one reads, one writes
#
# Attention and network make a *layer*, and layers make a stack. A Transformer has two. The **encoder** reads the source, for example an English sentence. The **decoder** writes the target, the German one, and looks at the source meanwhile.

# %% tags=["active-ipynb"]
# views.two_stacks()

# %% [markdown]
# *Follow the three lines upwards, one for each token, through two layers on each side: a blue box reads all lines, an orange box only its own; the encoder's result, the memory, goes to every layer of the decoder.*
#
# In *self-attention* the tokens of one sequence look at each other. In *cross-attention* the queries come from the target, and keys and values from the memory.


# %%
class EncoderLayer(nn.Module):
    """Tokens (B, S, d_model) look at each other, then each passes the network."""

    def __init__(self, d_model, d_ff, h, P_drop):
        super().__init__()
        self.self_attention = Attention(d_model, h)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.residuals = nn.ModuleList(Residual(d_model, P_drop) for _ in range(2))

    def forward(self, x, mask):
        # Residual calls with one argument, and attention wants three
        x = self.residuals[0](x, lambda y: self.self_attention(y, y, mask))
        return self.residuals[1](x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Tokens (B, T, d_model) look back, then at memory (B, S, d_model)."""

    def __init__(self, d_model, d_ff, h, P_drop):
        super().__init__()
        self.self_attention = Attention(d_model, h)
        self.cross_attention = Attention(d_model, h)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.residuals = nn.ModuleList(Residual(d_model, P_drop) for _ in range(3))

    def forward(self, x, memory, mask, source_mask):
        x = self.residuals[0](x, lambda y: self.self_attention(y, y, mask))
        x = self.residuals[1](x, lambda y: self.cross_attention(y, memory, source_mask))
        return self.residuals[2](x, self.feed_forward)


class Stack(nn.Module):
    """Layers, one after the other: x (B, T, d_model) -> the same shape."""

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x, *context):
        for layer in self.layers:
            x = layer(x, *context)
        return x


# %% [markdown]
# ## The decoder must not see the answer
#
# In training the decoder reads the whole target at once, and at each place it has to name the *next* token. Say it is to write 3159 backwards. Without a mask, where would it look? One place to the right, where the answer is. It could copy instead of learning, and when it writes by itself, that place is empty. So its self-attention is *causal*: a token may look at itself and at what comes before it.

# %% tags=["active-ipynb"]
# views.no_answers(["9", "5", "1", "3"])

# %% [markdown]
# *Read along a row: the decoder may look at the blue squares; the first hidden one, in red, holds the token that it has to name.*
#
# ## From tokens to scores
#
# A matrix with a row for each token of the vocabulary, the embedding, turns tokens into vectors. At the end every token gets a score as the next one: the inner product of its row with the decoder's vector ([chapter 6](06_embeddings.ipynb)). The shorter sources of a batch are filled up with token 0, *padding*, which a second mask hides.


# %%
class Transformer(nn.Module):
    """Tokens of source (B, S), target (B, T) -> scores (B, T, V) of what comes next.

    V tokens in the vocabulary, N layers on each side.
    """

    def __init__(self, V, d_model=512, d_ff=2048, h=8, N=6, P_drop=0.1):
        super().__init__()
        self.d_model = d_model
        self.embedding = nn.Embedding(V, d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        # moves with the model, but is neither trained nor saved
        self.register_buffer("positions", sinusoids(200, d_model), persistent=False)
        self.dropout = nn.Dropout(P_drop)
        sizes = d_model, d_ff, h, P_drop
        self.encoder = Stack(EncoderLayer(*sizes) for _ in range(N))
        self.decoder = Stack(DecoderLayer(*sizes) for _ in range(N))

    def embed(self, tokens):
        # rows start with length 1: times the root, they are as large as positions
        x = self.embedding(tokens) * math.sqrt(self.d_model)
        return self.dropout(x + self.positions[: tokens.shape[1]])

    def forward(self, source, target):
        source_mask = (source != 0)[:, None, None, :]  # (B, 1, 1, S); 0 is padding
        memory = self.encoder(self.embed(source), source_mask)
        T = target.shape[1]
        mask = torch.ones(T, T, dtype=torch.bool, device=target.device).tril()
        x = self.decoder(self.embed(target), memory, mask, source_mask)
        return x @ self.embedding.weight.T


# %% [markdown]
# A target has four places, 0 to 3. Change the token at place 2: where will the scores move?

# %% tags=["active-ipynb"]
# torch.manual_seed(0)
# toy = Transformer(V=13, d_model=16, d_ff=32, h=2, N=2, P_drop=0.0)
# source = torch.tensor([[5, 6, 7]])
# before = toy(source, torch.tensor([[1, 7, 6, 5]]))
# after = toy(source, torch.tensor([[1, 7, 9, 5]]))
# moved = (after - before).abs().amax(dim=-1)[0] > 1e-5
# print("places that notice:", [place for place in range(4) if moved[place]])
# assert moved.tolist() == [False, False, True, True]

# %% [markdown]
# Only at place 2 and after it. That is a complete Transformer; with its default sizes it is the paper's [base model](08_model.ipynb).
#
# ## Nobody tells it where to look
#
# We begin with a translation that is learned in half a minute and that everybody can check: a number, written backwards.
#
# To write, the model starts with the begin mark, takes the token with the highest score, appends it, and asks again ([chapter 15](15_decoding.ipynb) does it better). To train it, we show it 64 numbers a step: the target goes in without its last token and is compared without its first, so that each place has to name the next. The loss is minus the logarithm of the right token's probability. ([Chapter 14](14_training.ipynb) has the whole loop.)


# %%
def examples(n, longest=8):
    """n numbers of 4 to 8 digits (n, 8), and each backwards with its marks (n, 10).

    Tokens: 0 is padding, 1 begins a target, 2 ends it, 3 to 12 are the digits 0 to 9.
    """
    source = torch.zeros(n, longest, dtype=torch.long)
    target = torch.zeros(n, longest + 2, dtype=torch.long)
    for i, length in enumerate(torch.randint(4, longest + 1, (n,)).tolist()):
        digits = torch.randint(3, 13, (length,))  # digit 0 is token 3
        source[i, :length] = digits
        backwards = torch.tensor([1, *digits.flip(0).tolist(), 2])
        target[i, : length + 2] = backwards
    return source, target


def shown(tokens):
    """Tokens as digits, up to the end mark."""
    text = ""
    for token in tokens.tolist():
        if token == 2:
            break
        text += str(token - 3) if token > 2 else ""
    return text


@torch.no_grad()
def write(model, source, longest):
    """The target of each source, greedily: tokens (B, longest + 1)."""
    target = torch.ones_like(source[:, :1])  # the begin mark
    for _ in range(longest):
        scores = model(source, target)[:, -1]  # (B, V): what comes next
        target = torch.cat([target, scores.argmax(dim=-1, keepdim=True)], dim=1)
    return target


def train_step(model, optimizer, step, warmup=100):
    """One update on 64 new numbers, at the paper's rate, times 0.3; the loss."""
    rate = 0.3 * model.d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    optimizer.param_groups[0]["lr"] = rate
    source, target = examples(64)
    scores = model(source, target[:, :-1])
    right = target[:, 1:].flatten()
    loss = F.cross_entropy(scores.flatten(0, 1), right, ignore_index=0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


# %% [markdown]
# At four steps of the training we ask a small model to write 31415926 backwards, and draw how much each place of its answer takes from each digit of the source. Where should the dark squares be, once it can do it?
#
# After step 150 we also give it the first five digits of 300 answers, and it has to name the sixth: with all five right, with the fifth replaced by chance, and with the four before replaced.

# %% tags=["active-ipynb"]
# chance = torch.Generator().manual_seed(0)
# tried = torch.randint(3, 13, (300, 8), generator=chance)
# begun = torch.cat([torch.ones(300, 1, dtype=torch.long), tried.flip(1)], dim=1)
#
#
# @torch.no_grad()
# def sixth(replaced):
#     """How often the sixth digit is right, when those at some places are replaced."""
#     given = begun[:, :6].clone()  # the begin mark and five digits
#     others = torch.randint(3, 13, (300, len(replaced)), generator=chance)
#     given[:, replaced] = others
#     named = model(tried, given)[:, -1].argmax(dim=-1)
#     return (named == begun[:, 6]).float().mean().item()
#
#
# torch.manual_seed(4)  # of five trainings the one whose loss jumps by the middle amount
# model = Transformer(V=13, d_model=64, d_ff=128, h=4, N=2, P_drop=0.0)
# optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
# number = torch.tensor([[int(digit) + 3 for digit in "31415926"]])
# losses, looks, answers = [], {}, {}
# for step in range(1, 401):
#     losses.append(train_step(model, optimizer, step))
#     if step in (1, 100, 150, 400):
#         answers[step] = shown(write(model, number, longest=9)[0])
#         weights = model.decoder.layers[-1].cross_attention.weights  # of this writing
#         looks[step] = weights[0].mean(dim=0)[:8]  # mean of the last layer's four heads
#     if step == 150:
#         changes = {"nothing": [], "the fifth": [5], "the four before": [1, 2, 3, 4]}
#         for name, replaced in changes.items():
#             print(f"{name} replaced: the sixth is right in {sixth(replaced):.0%}")
#
# # numbers that it has not seen
# source, target = examples(2500)
# long = source[:, 7] > 0  # eight digits
# source, target = source[long][:400], target[long][:400]
# written = write(model, source, longest=9)
# right = sum(shown(w) == shown(t) for w, t in zip(written, target))
# print(f"{right} of {len(source)} new numbers come out exactly backwards")
# assert right > 0.9 * len(source)
# views.diagonal(losses, looks, answers, "31415926")

# %% [markdown]
# *Follow the blue dots along the loss, and the tables below (the mean of the last layer's heads): the weights gather on the diagonal from lower left to upper right, and at the end no digit is wrong (red). Writing stops at nine tokens.*
#
# On the dashed line the model has learned only that one of ten digits or the end comes next, a guess that costs $\ln 11 = 2.4$. Then the diagonal forms. **Nobody told it to look there.** The loss says only which digit is right, and the way to look was learned from that.
#
# Nor has it learned its examples by heart. It has seen 25,600 numbers, and there are a hundred million of eight digits. Of 400 drawn at random all come out backwards.
#
# After step 150 the loss is low, but most digits that it writes are wrong. In training the digits before are always the right ones, and the printed lines show that the last of them matters more than the four before it. Probably the model finds its place by that digit. So when it writes by itself, one wrong digit leads to the next.
#
# The loss jumps up after step 200 and recovers. All five trainings had such a jump. We do not know its cause.
#
# ## The same lines translate
#
# This book ships with a translator that learned from 20,000 pairs of sentences, made up by a program. Its weights fit into our class. Ask it who lost the ball. We call the German *right* if it gives the ball to whoever lost it, the usual reading in English. Which sentence will be hard?

# %% tags=["active-ipynb"]
# import re
#
# from transformer import load, read_corpus
#
# package, tokenizer = load()
# c = package.config
# translator = Transformer(c.vocab_size, c.d_model, c.d_ff, c.h, c.N, c.P_drop).eval()
# translator.load_state_dict(dict(package.named_parameters()))
#
# source = torch.tensor([tokenizer.encode("The cat has lost its ball.") + [c.eos_id]])
# target = torch.tensor([[c.bos_id, *tokenizer.encode("Die Katze")]])
# with torch.no_grad():
#     assert torch.allclose(
#         translator(source, target), package(source, target), atol=1e-4
#     )
# print("the weights fit: our scores are the package's")
# learned = [english for english, _ in read_corpus("bundled", "train")]
# clauses = [text for text in learned if re.search(r"\bthat \w+ its\b", text)]
# print(
#     f"{len(clauses)} of {len(learned):,} sentences have a clause like “that lost its”"
# )
#
#
# def german(sentence):
#     source = torch.tensor([tokenizer.encode(sentence) + [c.eos_id]])
#     tokens = write(translator, source, longest=20)[0, 1:].tolist()
#     return tokenizer.decode(tokens[: tokens.index(c.eos_id)])
#
#
# sentences = [
#     "The cat lost its ball.",
#     "The dog lost its ball.",
#     "The cat that saw the dog lost its ball.",
#     "The dog saw the mouse that lost its ball.",
#     "The dog saw the cat that lost its ball.",
# ]
# for sentence in sentences:
#     assert sentence not in learned
#     print(f"{sentence:43}{german(sentence)}")

# %% [markdown]
# It does not take the nearest animal: in the third sentence the dog is nearer, and rightly the cat gets the ball. Nor the first: in the fourth that is the dog, and rightly the mouse gets it (*Maus* is feminine, too). But the last sentence is wrong, and it differs from the fourth only in the animal. To grammar a mouse and a cat are the same. What does the model go by?
#
# ## Which head decides?
#
# The encoder has eight heads, four in each of two layers. Does one of them ask whose the ball is? In the wrong sentence we turn one head at a time: a mask lets "its" look only at the cat. If a head decides, *seinen* becomes *ihren*.

# %% tags=["active-ipynb"]
# sentence = sentences[4]
# pieces = [tokenizer.decode([i]) for i in tokenizer.encode(sentence)]
# its, cat = pieces.index("its"), pieces.index("cat")
#
#
# def turned(layer, head, to):
#     """The word before "Ball" when one head lets "its" look only at place `to`."""
#
#     def narrow(attention, inputs):  # what attention is called with, changed
#         x, seen, mask = inputs
#         mask = mask.repeat(1, c.h, x.shape[1], 1)  # for each head (1, h, S, S)
#         mask[:, head, its] = False  # "its" may look nowhere ...
#         mask[:, head, its, to] = True  # ... but there
#         return x, seen, mask
#
#     attention = translator.encoder.layers[layer].self_attention
#     with attention.register_forward_pre_hook(narrow):  # it runs before each call
#         words = german(sentence).replace(".", "").split()
#     return words[words.index("Ball") - 1]
#
#
# for layer in (0, 1):
#     words = [turned(layer, head, cat) for head in range(4)]
#     print(f"layer {layer}, heads 0 to 3 turned to the cat:", *words)

# %% [markdown]
# Only one head brings *ihren*: head 2 of layer 0. (*Seine*, in layer 1, does not fit a ball.) Does it have to be the cat? And where does this head look when we leave it alone?

# %% tags=["active-ipynb"]
# from transformer import attention_maps
#
# for to in range(len(pieces)):
#     if turned(0, 2, to) == "ihren":
#         print("ihren when head 2 of layer 0 is turned to:", pieces[to])
# pairs = [(sentence, german(sentence)) for sentence in sentences[2:]]
# maps = attention_maps(package, tokenizer, pairs)  # the same weights, ready to draw
# marks = [
#     ("ihren", "right: the cat's", True),
#     ("ihren", "right: the mouse's", True),
#     ("seinen", "wrong: the dog's", False),
# ]
# shown_german = [translation for _, translation in pairs]
# views.looks(maps, "its", layer=0, head=2, german=shown_german, marks=marks)

# %% [markdown]
# *Thicker arcs are larger weights: each time the German gives the ball to the animal at which "its" looks most, in the last sentence to the wrong one.*
#
# So this head decides, in the last sentence wrongly. Why is the mouse found and the cat not? The head is in the first layer, where a vector holds only a word and its place. So an animal's score does not depend on the rest of the sentence, only on the animal and its place (counted from 0). Here are the scores, and how many training sentences have the animal and "its".

# %% tags=["active-ipynb"]
# attention = translator.encoder.layers[0].self_attention
#
#
# @torch.no_grad()
# def score(animal, place):
#     """What head 2 of layer 0 gives an animal at a place, for "its" at place 7."""
#     tokens = torch.zeros(1, 8, dtype=torch.long)
#     tokens[0, [place, 7]] = torch.tensor(tokenizer.encode(f"{animal} its"))
#     x = translator.embed(tokens)
#     query = attention.split(attention.W_Q(x))[0, 2, 7]
#     key = attention.split(attention.W_K(x))[0, 2, place]
#     return (query @ key).item() / math.sqrt(len(key))
#
#
# for animal in ("mouse", "dog", "cat"):
#     both = sum({animal, "its"} <= set(re.findall(r"\w+", text)) for text in learned)
#     at = [f"{score(animal, place):4.1f} at {place}" for place in (1, 4, 5)]
#     print(f"{animal:6}", *at, f"   {both} sentences", sep="  ")

# %% [markdown]
# At place 4 the mouse has 15.6 and beats the dog at 1, which has 13.3. The cat has 8.0 there and loses. The more often training showed an animal with "its", the higher its score; that the counts are the cause is likely, but untested. No sentence of the training had a clause like "that lost its". What looked like understanding is a good guess.
#
# [Chapter 19](19_visualization.ipynb) turns this head in 500 sentences. On the live page you can turn every head:
#
# [![A sentence, its translation, and where "its" looks](../data/live.png)](https://owner.github.io/annotated-attention/live.html)
#
# ## What to keep
#
# - Attention compares a token's query with the keys of others, and blends their values by what fits; a mask says which keys are hidden. Positions, added to the vectors, give the order.
# - A Transformer keeps a vector for each token, to which attention and small networks add, layer by layer; every layer of the decoder reads what the encoder has made of the source.
# - Nobody tells a head where to look: it is learned from which next token is right.
#
# ## Exercises
#
# **1. By hand.** What does "lost" take home in the picture of the cat? Its query is (2, 0). Find its scores, then the weights, with $e^{2.83} \approx 17$ and $e^{1.41} \approx 4$. And what does it take home under a causal mask?
#
# <details><summary>Answer</summary>
#
# The scores are $4/\sqrt 2 = 2.83$ for the cat, $2/\sqrt 2 = 1.41$ for the ball and 0 for the others. $e$ to these powers is 17, 4 and three times 1, together 24. So "lost" takes home 17/24 = 0.71 feminine from the cat and 4/24 = 0.17 masculine from the ball. The mask hides "its" and "ball". What is left, 1, 17 and 1, adds up to 19: now "lost" takes home 17/19 = 0.89 feminine and nothing masculine. A forbidden word's share goes to the others.
# </details>
#
# **2. In code.** Write the diagonal yourself: a head that turns a number of `n` digits round. The vector of a digit has `n + 10` numbers, a 1 at its place and a 1 at its digit; for example "20" is (1, 0 | 0, 0, 1, 0, ...) and (0, 1 | 1, 0, 0, 0, ...). Place `i` must give at least 0.99 of its weight to the place that mirrors it, and take home its digit.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.first_transformer import check_backwards
#
#
# def backwards(n):
#     """W_Q and W_K (n + 10, n), W_V (n + 10, 10)."""
#     ...
#
#
# check_backwards(backwards)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def backwards(n):
#     W_Q, W_K, W_V = torch.zeros(n + 10, n), torch.zeros(n + 10, n), torch.zeros(n + 10, 10)
#     W_Q[:n] = 10 * n * torch.eye(n).flip(0)  # place i asks for place n - 1 - i
#     W_K[:n] = torch.eye(n)  # a place is labelled as itself
#     W_V[n:] = torch.eye(10)  # and gives its digit
#     return W_Q, W_K, W_V
# ```
#
# With 10 n the right score is $10 n/\sqrt n = 10\sqrt n$, and the other n − 1 scores are 0: $e^{10 \sqrt n}$ is far more than 100 n.
#
# Where to look depends on places, what is brought home on digits: that is why keys and values are two things.
# </details>
#
# **3. To predict.** In the third sentence the model was right, and the head looked at the cat. What will come out if you turn it to the dog? And to "saw", which owns nothing? Guess, then set `sentence = sentences[2]` in the cell that turns heads, and run the next.
#
# <details><summary>Answer</summary>
#
# Both times *seinen*, and with every other word, too, except the cat. So *seinen* is what the model writes when the head brings nothing feminine, and a turn from the cat to the dog would have proved little. That is why we turned *to* the cat.
# </details>
#
# **4. To think about.** Your head of exercise 2 is made for one `n`; the trained model manages four to eight digits. What will it do with twelve? Guess, then change the lines under "numbers that it has not seen", without the assert: `examples(2500, longest=12)`, `source[:, 11] > 0` and `longest=13`. Which part is to blame?
#
# <details><summary>Answer</summary>
#
# It gets no number of twelve digits right, and its answers end after eight or nine. In training no number was longer, so the later positions are new to it. [Chapter 7](07_positions.ipynb) shows positions that carry further.
# </details>
#
# ## Next
#
# If you read only one more chapter, read [04 Attention](04_attention.ipynb). If you read the book, go on with [03 Stacks](03_stacks.ipynb) (1 and 2 show what came before).
