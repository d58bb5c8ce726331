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
# *The cat lost its ball.* Put that into German and you come to a fork at "its": it must be *ihren* if the owner's noun is feminine, as *Katze*, the cat, is, and *seinen* if it is masculine, as *Hund*, the dog, is. Nothing in the word "its" tells which. Whoever translates it has to look back and find out who lost the ball.
#
# How does a machine know where to look? On this page you write one that does, in about a hundred lines: the Transformer of "Attention Is All You Need". First we make one word look by hand. Then you train a small model to write numbers backwards, and watch it find out where to look. In the end you load other weights into the same lines, and ask them about the cat.

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
# Let us choose them for five words. Queries and keys hold two numbers, one for "somebody" and one for "a deed". "Its" asks loudly for somebody. The cat is labelled as somebody, the ball only half as much. Before you look: what will "its" take home?

# %% tags=["active-ipynb"]
# from transformer import views
#
# torch.set_num_threads(1)  # tensors this small gain nothing from a second core
# words = ["the", "cat", "lost", "its", "ball"]
# # The vector of word i is a single 1 at place i, so that row i of each matrix is
# # simply what word i gets.
# x = torch.eye(5)
# # fmt: off
# #              somebody, a deed
# W_Q = torch.tensor([[0.0, 0], [0, 2], [2, 0], [4, 0], [0, 1]])  # what it asks for
# W_K = torch.tensor([[0.0, 0], [2, 0], [0, 2], [0, 0], [1, 0]])  # what it is labelled as
# #                 cat, losing, ball
# W_V = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]])  # what it gives
# # fmt: on
# gives = ("cat", "losing", "ball")
# views.one_word(words, x, W_Q, W_K, W_V, "its", asks=("somebody", "a deed"), gives=gives)

# %% [markdown]
# *Read from left to right: the query of "its" fits the cat's key best, so most of what it takes home is the cat's value.* (Choose another word, or type the words in another order.)
#
# There are three steps. The **score** of a word is the inner product of the query with its key, divided by the root of their width, here $\sqrt 2$, so that wide vectors do not get larger scores ([chapter 4](04_attention.ipynb)): for the cat $(4 \cdot 2 + 0 \cdot 0)/\sqrt 2 = 5.66$. Softmax turns the scores into **weights**: it takes $e$ to the power of each and divides by the sum, so that they are positive and add up to 1. What "its" takes home is the **blend** of the values by these weights. In code, for all five words at once:

# %% tags=["active-ipynb"]
# Q, K, V = x @ W_Q, x @ W_K, x @ W_V
# scores = Q @ K.T / math.sqrt(2)  # (5, 5): in row i what word i asks of each word
# weights = scores.softmax(dim=1)  # each row adds up to 1
# its = 3  # its place, counted from 0
# print("weights:   ", [round(weight, 3) for weight in weights[its].tolist()])
# print("takes home:", [round(number, 3) for number in (weights @ V)[its].tolist()])

# %% [markdown]
# As the paper writes it:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right) V$$
#
# A Transformer learns the three matrices that we made up, and adds two things. Several attentions, its *heads*, run side by side, so that a word can ask several questions; a last matrix `W_O` mixes what they bring. And a *mask* says who may be looked at: a forbidden score is made hugely negative, so that its weight is 0.


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

    def split(self, x):
        # what W_Q, W_K or W_V made of a whole vector, a piece a head: (B, h, T, d_k)
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def forward(self, x, seen, mask):
        q = self.split(self.W_Q(x))
        k = self.split(self.W_K(seen))
        v = self.split(self.W_V(seen))
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])  # (B, h, T, S)
        lowest = torch.finfo(scores.dtype).min  # the most negative number there is
        scores = scores.masked_fill(~mask, lowest)  # mask: True where it may look
        # once more 0: where all is forbidden, softmax shares out evenly
        weights = scores.softmax(dim=-1).masked_fill(~mask, 0)
        self.weights = weights  # kept for the pictures below
        return self.W_O((weights @ v).transpose(1, 2).flatten(2))


# %% [markdown]
# ## Attention forgets the order, so we write it into the vectors
#
# Shuffle the five words in the picture above. Every query still meets the same keys, so "its" takes home exactly what it did. To attention alone a sentence is a heap of words, and a dog that saw a cat is a cat that saw a dog.
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
# *Read downwards: the three dots below each other are three of the numbers that a position adds. Both "the" have the same word vector; their dots make the two differ.*
#
# Now a query can ask for a place, too: "who is one before me?" (exercise 2). Why waves, and what else would do, is [chapter 7](07_positions.ipynb).
#
# ## Each token thinks by itself, and adds what it finds
#
# Attention fetches and blends. After it a small *feed-forward* network with one hidden layer works on each token by itself, and makes something new of it: for example, it could turn "feminine owner, masculine thing" into one number for *ihren* ([chapter 5](05_feed_forward.ipynb)).
#
# What either of them finds is *added* to the token's vector, and the sum is brought back to a standard size: $\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$. [Chapter 3](03_stacks.ipynb) strikes out `x +` and watches everything fail.


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
# *Follow the lines upwards, one for each token (three are drawn): the encoder leaves its result, the memory, from which every layer of the decoder reads while it writes.*
#
# Every box reads from the lines and adds to them, and a violet bar, LayerNorm, brings the sums to size. In the orange boxes each line is on its own; only in the blue ones do tokens meet. In *self-attention* the tokens of one sequence look at each other. In *cross-attention* the queries come from the target, and keys and values from the memory.


# %%
class EncoderLayer(nn.Module):
    """Tokens (B, S, d_model) look at each other, then each passes the network."""

    def __init__(self, d_model, d_ff, h, P_drop):
        super().__init__()
        self.self_attention = Attention(d_model, h)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.residuals = nn.ModuleList(Residual(d_model, P_drop) for _ in range(2))

    def forward(self, x, mask):
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
# A second mask hides padding, token 0, with which the shorter sources of a batch are filled up.
#
# At the bottom a matrix with a row for each token of the vocabulary turns tokens into vectors. At the top the inner product of the decoder's vector with each of the same rows is that token's score ([chapter 6](06_embeddings.ipynb)).


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
        # the root makes up for the small numbers that an embedding starts with
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
# Does the mask keep its promise? A target has four places, 0 to 3. Change the token at place 2: where will the scores move?

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
# Writing a number backwards is a translation that everybody can check.
#
# To write, the model starts with the begin mark, takes the token with the highest score, appends it, and asks again ([chapter 15](15_decoding.ipynb) does it better). To train it, we show it 64 numbers a step: the target goes in without its last token and is compared without its first, so that each place has to name the next. The loss is minus the logarithm of the probability of the right token. ([Chapter 12](12_optimizer.ipynb) explains the learning rate, [chapter 14](14_training.ipynb) the whole loop.)


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
    """One update on 64 new numbers, at a rate that rises, then falls; the loss."""
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

# %% tags=["active-ipynb"]
# torch.manual_seed(4)  # of five trainings the middle one, by the jumps of the loss
# model = Transformer(V=13, d_model=64, d_ff=128, h=4, N=2, P_drop=0.0)
# optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
# number = torch.tensor([[int(digit) + 3 for digit in "31415926"]])
# losses, looks, answers = [], {}, {}
# for step in range(1, 401):
#     losses.append(train_step(model, optimizer, step))
#     if step in (1, 100, 150, 400):
#         answers[step] = shown(write(model, number, longest=9)[0])
#         weights = model.decoder.layers[-1].cross_attention.weights  # (1, 4, 9, 8)
#         looks[step] = weights[0].mean(dim=0)[:8]  # mean of four heads
# views.diagonal(losses, looks, answers, "31415926")

# %% [markdown]
# *Follow the blue dots along the loss, and the tables below: as the loss falls, the weights gather on the diagonal from lower left to upper right, and the wrong digits (red) disappear.*
#
# On the dashed line it has learned only that one of ten digits or the end comes next, a guess that costs $\ln 11 = 2.4$. Then the diagonal forms. After step 150 it is still blurred: most places share their weight with a neighbour, and most digits are wrong. Why is the loss so low already? In training each place is given the right digits before it. In writing it is given the model's own, and one mistake spoils the next digit. (The loss jumped and recovered in all five trainings, here after step 200. The cause is not known to us.)
#
# Nobody told it to look there. The loss says only which digit is right, and the way to look was learned from that.
#
# Or has it learned its examples by heart? It has seen 25,600 numbers, and there are a hundred million of eight digits. So we ask for new ones.

# %% tags=["active-ipynb"]
# source, target = examples(2500)
# long = source[:, 7] > 0  # eight digits
# source, target = source[long][:400], target[long][:400]
# written = write(model, source, longest=9)
# right = sum(shown(w) == shown(t) for w, t in zip(written, target))
# print(f"{right} of {len(source)} new numbers come out exactly backwards")
# assert right > 0.9 * len(source)

# %% [markdown]
# ## The same lines translate
#
# This book ships with the weights of such a model, which learned from 20,000 pairs of sentences that a program made up. Its parameters have the names of ours, so they fit into your class.

# %% tags=["active-ipynb"]
# from transformer import load
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
# print("the weights fit, and your scores are the package's")

# %% [markdown]
# Now ask it who lost the ball, in sentences that it never saw. We call the German *right* if it gives the ball to whoever lost it. Which will be hard?

# %% tags=["active-ipynb"]
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
#     print(f"{sentence:43}{german(sentence)}")

# %% [markdown]
# It does not take the nearest animal: in the third sentence the dog is nearer, and rightly the cat gets the ball. Nor the first: in the fourth that is the dog, and rightly the mouse gets it (*Maus* is feminine, too). But the last sentence is wrong, and it differs from the fourth in one word only. So it does not go by grammar, either.
#
# ## Which head decides?
#
# The encoder has eight heads, four in each of two layers. Is one of them the look that we made up? In the wrong sentence we turn one head at a time: a mask lets "its" look only at the cat. If a head decides, *seinen* becomes *ihren*. As a check, one head is turned to every other word, too.

# %% tags=["active-ipynb"]
# sentence = sentences[4]
# pieces = [tokenizer.decode([i]) for i in tokenizer.encode(sentence)]
# its, cat = pieces.index("its"), pieces.index("cat")
#
#
# def turned(layer, head, to):
#     """The word before "Ball" when one head lets "its" look only at place `to`."""
#
#     def narrow(attention, inputs):  # called first, and may change the inputs
#         x, seen, mask = inputs
#         mask = mask.repeat(1, c.h, x.shape[1], 1)  # (1, h, S, S)
#         mask[:, head, its] = torch.arange(x.shape[1]) == to
#         return x, seen, mask
#
#     attention = translator.encoder.layers[layer].self_attention
#     with attention.register_forward_pre_hook(narrow):
#         words = german(sentence).replace(".", "").split()
#     return words[words.index("Ball") - 1]
#
#
# for layer in (0, 1):
#     words = [turned(layer, head, cat) for head in range(4)]
#     print(f"layer {layer}, each head to the cat:", *words)
# others = [turned(0, 2, to) for to in range(len(pieces)) if to != cat]
# print("layer 0, head 2, to every other word:", *others)

# %% [markdown]
# Only one head brings *ihren*, the third of the first layer (in code, head 2), and only from the cat. (*Seine*, in the second layer, does not fit a ball.) Where does this head look when we leave it alone?

# %% tags=["active-ipynb"]
# from transformer import attention_maps
#
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
# So this is a look like ours, and here it decides: turned to the cat, it makes the wrong German right. But why is the mouse found and the cat not? The head is in the first layer, where a vector holds only a word and its place. So it cannot read the grammar of the sentence: each animal at each place has a score, and the highest wins. At place four *mouse* beats the dog in front, and *cat* does not. What looked like understanding is a very good guess. [Chapter 19](19_visualization.ipynb) tries the head in 500 sentences. On the live page you can turn every head (in your own session: `view(package, tokenizer, sentence)`, imported from `transformer`):
#
# [![The page: a sentence, its translation with one word marked as changed, and below them where the word "its" looks](../data/live.png)](https://owner.github.io/annotated-attention/live.html)
#
# ## What to keep
#
# - Attention compares a token's query with the keys of others, and blends their values by what fits; a mask says which keys are hidden. Positions, added to the vectors, give the order.
# - A Transformer keeps a vector for each token, to which attention and small networks add, layer by layer; every layer of the decoder reads what the encoder has made of the source.
# - Nobody tells a head where to look: it is learned from which next token is right.
#
# ## Exercises
#
# **1. By hand.** What does "lost" take home in the picture of the cat? Its query is (2, 0). Find its scores, then the weights, with $e^{2.83} \approx 17$ and $e^{1.41} \approx 4$. And what does it take home under a causal mask? (To check the first, choose "lost" in the picture.)
#
# <details><summary>Answer</summary>
#
# The scores are $4/\sqrt 2 = 2.83$ for the cat, $2/\sqrt 2 = 1.41$ for the ball and 0 for the others. $e$ to these powers is 17, 4 and three times 1, together 24. So it takes home 17/24 = 0.71 cat, 4/24 = 0.17 ball and 1/24 = 0.04 losing. The mask hides "its" and "ball". What is left, 1, 17 and 1, adds up to 19: now it is 0.89 cat, 0.05 losing and no ball. A forbidden word's share goes to the others.
# </details>
#
# **2. In code.** Write the diagonal yourself: a head that turns a number of `n` digits round. The vector of a digit has `n + 10` numbers, a 1 at its place and a 1 at its digit; for example "20" is (1, 0 | 0, 0, 1, 0, ...) and (0, 1 | 1, 0, 0, 0, ...). Place `i` must give at least 0.99 of its weight to the place that mirrors it, and take home its digit. The cell says what is wrong, or "right".

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
#     W_Q[:n] = 10 * n * torch.eye(n).flip(0)  # place i asks, loudly, for place n - 1 - i
#     W_K[:n] = torch.eye(n)  # a place is labelled as itself
#     W_V[n:] = torch.eye(10)  # and gives its digit
#     return W_Q, W_K, W_V
# ```
#
# Where to look depends on places, what is brought home on digits: that is why keys and values are two things.
# </details>
#
# **3. To predict.** In the third sentence the model was right, and the head looked at the cat. What will come out if you turn it to the dog? And to "saw", which owns nothing? Guess, then set `sentence = sentences[2]` in the cell that turns heads.
#
# <details><summary>Answer</summary>
#
# Both times *seinen*, and with every other word, too, except the cat. So *seinen* is what the model writes when the head brings nothing feminine, and a turn from the cat to the dog would have proved little. That is why we turned *to* the cat.
# </details>
#
# **4. To think about.** Your head of exercise 2 is made for one `n`; the trained model manages four to eight digits. What will it do with twelve? Guess, then change the cell that asks for new numbers: `examples(2500, longest=12)`, `source[:, 11] > 0` for twelve digits, and `longest=13`. Which part is to blame?
#
# <details><summary>Answer</summary>
#
# It gets no number of twelve digits right (so the assert stops the cell), and its answers end after eight or nine. In training no number was longer, so the later positions are new to it. The sines give every place a pattern, but nothing makes the model use one that it has not met. [Chapter 7](07_positions.ipynb) shows positions that carry further.
# </details>
#
# ## Next
#
# If you read only one more chapter, read [04 Attention](04_attention.ipynb). If you read the book, go on with [03 Stacks](03_stacks.ipynb) (1 and 2 can wait).
