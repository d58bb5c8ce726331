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
# *The whole paper on one page. Reading takes about 25 minutes, running half a minute. You need Python and a little torch.*
#
# *The cat lost its ball.* Put that into German and you come to a fork at "its": it must be *ihren* if the owner's noun is feminine, as *Katze* is, and *seinen* if it is masculine, as *Hund*, the dog, is. Nothing in the word "its" tells which. Whoever translates it has to look back and find out who lost the ball.
#
# On this page you write, in about a hundred lines, a machine that does so: the Transformer of "Attention Is All You Need". First you train it on a task that anybody can check, writing numbers backwards, and watch it find out where to look. Then you load other weights into the same lines, they translate, and we ask them about the cat.

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
# ## Two stacks
#
# A Transformer turns one sequence into another, for example an English sentence into a German one. A word, or a digit, is a *token*, and for each token the model holds a vector of `d_model` numbers. Models before it read a sentence word by word, and handed one state from each word to the next. Here every token has a vector of its own all the way up, and reads directly what it needs from the others.

# %% tags=["active-ipynb"]
# from transformer import views
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # tensors this small gain nothing from a second core
# views.two_stacks()

# %% [markdown]
# *Follow the thick lines upwards: the encoder at the left reads the source and leaves its result, the memory, from which every layer of the decoder reads while it writes the target.*
#
# Blue is *attention*, the only place where tokens meet. *Self*-attention looks within one sequence, *causal* only back, and *cross*-attention from the target at the source. Orange is a small *feed-forward* network that takes each token by itself. Each box reads from the thick line and adds to it. We build the picture from the small to the large, and begin with blue.

# %% [markdown]
# ## Attention: a word asks, and takes what fits
#
# Each token has a question, its *query*. Each token that it may look at has a *key*, a label that says what it has to offer, and a *value*, which is what it gives. Suppose that our words ask and offer two kinds of thing, somebody and a deed. "Its" asks loudly for somebody; the cat is labelled as somebody. Before you look: what will "its" take home?

# %% tags=["active-ipynb"]
# words = ["the", "cat", "lost", "its", "ball"]
# x = torch.eye(5)  # a vector for each word, with a 1 in a place of its own
# # fmt: off
# #              somebody, a deed
# W_Q = torch.tensor([[0.0, 0], [0, 2], [2, 0], [4, 0], [0, 1]])  # what each word asks for
# W_K = torch.tensor([[0.0, 0], [2, 0], [0, 2], [0, 0], [1, 0]])  # what it is labelled as
# #                 cat, losing, ball
# W_V = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]])  # what it gives
# # fmt: on
# gives = ("cat", "losing", "ball")
# views.one_word(words, x, W_Q, W_K, W_V, "its", asks=("somebody", "a deed"), gives=gives)

# %% [markdown]
# *Read from left to right: the query of "its" fits the cat's key best, so most of what it takes home is the cat's value.* (Choose another word and see what it takes.)
#
# Here is the same in code. The query of "its" is compared with each key by their inner product. Softmax turns the products into positive weights that add up to 1, and what the word takes home is the weighted mean of the values.

# %% tags=["active-ipynb"]
# q, K, V = x[3] @ W_Q, x @ W_K, x @ W_V  # "its" is word 3, counted from 0
# scores = K @ q / math.sqrt(2)  # one inner product for each word
# weights = scores.softmax(dim=0)
# for word, score, weight in zip(words, scores, weights):
#     print(f"{word:4}  score {score:.2f}  weight {weight:.3f}")
# print("it takes home", weights @ V)

# %% [markdown]
# With a query in each row of a matrix $Q$, and keys and values in the rows of $K$ and $V$, the same is done for all words at once:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right) V$$
#
# The scores are divided by $\sqrt{d_k}$, the root of the width of a key, here of 2; [chapter 4](04_attention.ipynb) says why.
#
# Here we made up the three matrices. A Transformer learns them. It runs several attentions side by side, its *heads*, so that a word can ask several questions at once, and a last matrix `W_O` mixes their answers. A mask says who may be looked at: a forbidden score becomes a weight of 0.
#
# Shapes are in the comments: `B` sentences in a batch, `S` tokens in a source, `T` in a target, `V` different tokens.


# %%
class Attention(nn.Module):
    """Each token of x (B, T, d_model) looks at those of seen (B, S, d_model)."""

    def __init__(self, d_model, h):
        super().__init__()
        self.h = h
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def split(self, x):
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)  # (B, h, T, d_k)

    def forward(self, x, seen, mask):
        q = self.split(self.W_Q(x))
        k = self.split(self.W_K(seen))
        v = self.split(self.W_V(seen))
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])  # (B, h, T, S)
        # mask: True where a token may look, (T, S) or (B, 1, 1, S)
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1).masked_fill(~mask, 0)
        self.weights = weights  # kept for the pictures below
        return self.W_O((weights @ v).transpose(1, 2).flatten(2))


# %% tags=["active-ipynb"]
# attention = Attention(d_model=8, h=2)
# tokens = torch.randn(1, 4, 8)
# output = attention(tokens, tokens, torch.ones(4, 4, dtype=torch.bool))
# assert output.shape == (1, 4, 8)
# assert torch.allclose(attention.weights.sum(dim=-1), torch.ones(1, 2, 4))
# print("each token gets a vector back, and its weights add up to 1 in both heads")

# %% [markdown]
# ## A network for each token
#
# Attention fetches. After it comes a small network with one hidden layer of `d_ff` numbers, in which each token works by itself on what it has ([chapter 5](05_feed_forward.ipynb)).


# %%
class FeedForward(nn.Module):
    """The same small network for each token: (B, T, d_model) -> (B, T, d_model)."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.W_2(self.W_1(x).relu())


# %% [markdown]
# Why is it needed? Given its weights, attention only multiplies by matrices and adds, and no such sum turns both $-3$ into 3 and $2$ into 2. Two hidden units are enough to drop the sign of a number: one lets the positive numbers through, the other the negative ones turned round, and the output adds the two.

# %% tags=["active-ipynb"]
# network = FeedForward(d_model=1, d_ff=2)
# with torch.no_grad():
#     network.W_1.weight.copy_(torch.tensor([[1.0], [-1.0]]))
#     network.W_2.weight.fill_(1.0)
#     network.W_1.bias.zero_()
#     network.W_2.bias.zero_()
#     print("-3 becomes", network(torch.tensor([-3.0])).item())
#     print(" 2 becomes", network(torch.tensor([2.0])).item())

# %% [markdown]
# ## Layers
#
# An encoder layer is attention and then this network. What either of them finds is not put in place of a token's vector but *added* to it, and the sum is brought back to a standard size: $\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$. (Strike out `x +` below, and nothing works any more; [chapter 3](03_stacks.ipynb) finds out why. Dropout sets a share `P_drop` of the numbers to zero while training, see [chapter 13](13_regularization.ipynb).)


# %%
class LayerNorm(nn.Module):
    """Each vector gets mean 0 and variance 1, then learned ones: (B, T, d_model)."""

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
        self.dropout = nn.Dropout(P_drop)

    def forward(self, x, sublayer):
        return self.norm(x + self.dropout(sublayer(x)))


# %% [markdown]
# Brought back to a standard size means, for example, that a vector and one five times as long leave the norm alike:

# %% tags=["active-ipynb"]
# short = torch.tensor([1.0, 2.0, 3.0, 6.0])
# for vector in (short, 5 * short):
#     normed = [round(number, 2) for number in LayerNorm(4)(vector).tolist()]
#     print(vector.tolist(), "->", normed)

# %% [markdown]
# Now the encoder layer can be written down. Tokens look at each other, and then each of them passes the network:


# %%
class EncoderLayer(nn.Module):
    """Tokens (B, S, d_model) look at each other, then each passes the network."""

    def __init__(self, d_model, d_ff, h, P_drop):
        super().__init__()
        self.self_attention = Attention(d_model, h)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.residuals = nn.ModuleList(Residual(d_model, P_drop) for _ in range(2))

    def forward(self, x, mask):
        x = self.residuals[0](x, lambda x: self.self_attention(x, x, mask))
        return self.residuals[1](x, self.feed_forward)


# %% [markdown]
# A decoder layer has a second attention between the two, which looks at the memory.


# %%
class DecoderLayer(nn.Module):
    """Tokens (B, T, d_model) look back, then at memory (B, S, d_model)."""

    def __init__(self, d_model, d_ff, h, P_drop):
        super().__init__()
        self.self_attention = Attention(d_model, h)
        self.cross_attention = Attention(d_model, h)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.residuals = nn.ModuleList(Residual(d_model, P_drop) for _ in range(3))

    def forward(self, x, memory, mask, source_mask):
        x = self.residuals[0](x, lambda x: self.self_attention(x, x, mask))
        x = self.residuals[1](x, lambda x: self.cross_attention(x, memory, source_mask))
        return self.residuals[2](x, self.feed_forward)


# %% [markdown]
# Several such layers on top of each other are a stack. All of them get the same masks, and in the decoder the same memory; together they are the `context`.


# %%
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
# ## Positions
#
# Attention finds the cat wherever it is, and so it does not know where that is. Yet the order of words matters, and of digits even more. So a pattern of sines and cosines, a different one for each position, is added to the vectors ([chapter 7](07_positions.ipynb)).


# %%
def sinusoids(n, d_model):
    """A row for each of n positions: (n, d_model)."""
    rates = 10_000 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(n)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


# %% tags=["active-ipynb"]
# from transformer.views import plotting
#
# labels = ("place in the vector", "position in the sentence", "added")
# ax = plotting.heatmap(sinusoids(10, 24), range(24), range(10), labels=labels)
# views.picture(
#     ax, "Patterns of ten positions: fast waves at the left, slow ones at the right."
# )

# %% [markdown]
# *Each row is the pattern of one position: its left part changes from row to row, its right part slowly, and no two rows are alike.*

# %% [markdown]
# ## The model
#
# Now everything comes together. One matrix holds a vector for each token of the vocabulary. It turns tokens into vectors at the bottom, and at the top the same matrix compares the decoder's vectors with those of all tokens, which gives each token a score ([chapter 6](06_embeddings.ipynb)).
#
# In training the decoder gets the whole target at once, and has to name the *next* token at each place. So its mask is a triangle: each token may look at itself and at what comes before it, and not at the answer. Another mask hides the padding, token 0, with which the shorter sources of a batch are filled up.


# %%
class Transformer(nn.Module):
    """Tokens of source (B, S), target (B, T) -> scores (B, T, V) of what comes next."""

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
# Do the masks keep their promise? Change one token and see which of the decoder's places notice it:

# %% tags=["active-ipynb"]
# toy = Transformer(V=13, d_model=16, d_ff=32, h=2, N=2, P_drop=0.0)
# source, target = torch.tensor([[5, 6, 7]]), torch.tensor([[1, 7, 6, 5]])
# before = toy(source, target)
# third, padded = torch.tensor([[1, 7, 9, 5]]), torch.tensor([[5, 6, 7, 0]])
# for change, after in {
#     "the third token of the target": toy(source, third),
#     "the second token of the source": toy(torch.tensor([[5, 9, 7]]), target),
#     "padding after the source": toy(padded, target),
# }.items():
#     moved = (after - before).abs().amax(dim=-1)[0] > 1e-5
#     print(f"{change:30} is noticed at places", [i for i in range(4) if moved[i]])

# %% [markdown]
# A token of the target is noticed only from its own place on (they count from 0). A token of the source is noticed everywhere, and padding nowhere.
#
# That is a complete Transformer. With its default sizes it is the paper's base model, whose 65 million parameters we come near to ([chapter 8](08_model.ipynb) looks for the difference):

# %% tags=["active-ipynb"]
# with torch.device("meta"):  # shapes only, no numbers
#     base = Transformer(V=37_000)
# print(f"{sum(p.numel() for p in base.parameters()) / 1e6:.1f} million parameters")

# %% [markdown]
# ## Something to learn
#
# The task is to write a number backwards, a translation that everybody can check. Token 0 fills up short rows, 1 begins a target, 2 ends it, and 3 to 12 are the digits 0 to 9.


# %%
def examples(n, longest=8):
    """n numbers of 4 to 8 digits (n, 8), and each backwards with its marks (n, 10)."""
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


# %% tags=["active-ipynb"]
# source, target = examples(3)
# for s, t in zip(source, target):
#     print(f"{shown(s):>8}  ->  {shown(t):8}   target's tokens:", t.tolist())

# %% [markdown]
# ## Writing
#
# To write, the model starts with the begin mark, takes the token with the highest score, appends it, and asks again, `longest` times. This is greedy decoding; [chapter 15](15_decoding.ipynb) does it better and faster.


# %%
@torch.no_grad()
def write(model, source, longest):
    """The target of each source, greedily: tokens (B, longest + 1)."""
    target = torch.ones_like(source[:, :1])  # the begin mark
    for _ in range(longest):
        scores = model(source, target)[:, -1]  # (B, V): what comes next
        target = torch.cat([target, scores.argmax(dim=-1, keepdim=True)], dim=1)
    return target


# %% [markdown]
# ## Training
#
# A step of training shows the model 64 numbers. The target goes in without its last token, and the scores are compared with the target without its first: after each token the model has to name the next. The loss is minus the logarithm of the probability that it gave to the right token. The learning rate rises for 100 steps and falls afterwards ([chapter 12](12_optimizer.ipynb)), by the paper's formula times 0.3, because at full height it would be too much for so narrow a model. [Chapter 14](14_training.ipynb) has the complete loop, with what is left out here.


# %%
def train_step(model, optimizer, step, warmup=100):
    """One update of the model on 64 new numbers; the loss."""
    rate = 0.3 * model.d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    optimizer.param_groups[0]["lr"] = rate
    source, target = examples(64)
    scores = model(source, target[:, :-1])
    loss = F.cross_entropy(
        scores.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


# %% [markdown]
# Our model is small: two layers on each side, vectors of 64 numbers, four heads. Along the way we ask it for one and the same number, and keep the weights with which the decoder's last layer looks at the source (the mean of its four heads).

# %% tags=["active-ipynb"]
# torch.manual_seed(4)  # of five starts, the one whose jumps are the middle ones
# model = Transformer(V=13, d_model=64, d_ff=128, h=4, N=2, P_drop=0.0)
# optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
# number = torch.tensor([[int(digit) + 3 for digit in "31415926"]])
# losses, looks = [], {}
# for step in range(1, 401):
#     losses.append(train_step(model, optimizer, step))
#     if step in (1, 100, 150, 200, 400):
#         answer = write(model, number, longest=9)
#         # of the last pass of `write`: nine tokens look at eight digits
#         weights = (
#             model.decoder.layers[-1].cross_attention.weights[0].mean(dim=0)
#         )  # (9, 8)
#         looks[step] = weights[:8]
#         text = shown(answer[0]) or "(nothing)"
#         print(f"step {step:3}  loss {losses[-1]:.3f}  31415926 -> {text}")

# %% tags=["active-ipynb"]
# curves = {"loss": losses, "guessing": [math.log(11)] * 400}
# ax = plotting.lines(range(1, 401), curves, "step", "loss (nats per token)", log="y")
# views.picture(ax, "The loss falls to guessing, rests there, and then falls far below.")

# %% [markdown]
# *Compare the two lines: the model soon knows how to guess, rests there for a while, and then falls far below. On the way it jumps up and recovers, as it did from each of five starts.*
#
# At the height of the dashed line it has learned that a digit comes next or the end, and nothing about which; one of eleven tokens costs $\ln 11 = 2.4$. Then something happens. What does it look at meanwhile? In the next pictures each row is a place of the answer, with the digit that is right there, and each column a digit of the source. The darker a square, the more this place takes from this digit. Where should the dark squares be, once the model can do it?

# %% tags=["active-ipynb"]
# digits = list("31415926")
# places = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th")
# rows = [f"writes {digit} ({place})" for digit, place in zip(reversed(digits), places)]
# panels = [
#     (f"after step {step}", looks[step], digits, rows) for step in (1, 100, 150, 400)
# ]
# labels = ("digit of the source", "", "weight")
# options = dict(across=2, width=3.2, height=2.8, largest=1.0, labels=labels)
# axes = plotting.heatmaps(panels, **options)
# views.picture(axes, "Weights after four steps: at first all alike, then a diagonal.")

# %% [markdown]
# *Watch the diagonal form: to write the first digit the decoder comes to look at the last one of the source, then at the one before it, and so on.*
#
# Nobody told it to look there. The loss says only which digit is right, and the way to look was learned from that.
#
# After step 150 the diagonal is there, but blurred: most digits still share their weight with a neighbour, and the answer has mistakes. The last 250 steps make it sharp.
#
# Has the model learned the task, or its examples by heart? It has seen 25,600 numbers, and there are a hundred million of eight digits. So we ask for new numbers of eight digits.

# %% tags=["active-ipynb"]
# source, target = examples(2500)
# long = source[:, 7] > 0  # eight digits
# source, target = source[long][:400], target[long][:400]
# answers = write(model, source, longest=9)
# right = sum(shown(a) == shown(t) for a, t in zip(answers, target))
# print(f"{right} of {len(source)} new numbers come out exactly backwards")
# assert right > 0.9 * len(source)

# %% [markdown]
# ## The same lines translate
#
# This book ships with weights of a model of this very kind, which learned from sentences of a small made-up English grammar and their German translations ([chapter 16](16_translation.ipynb)). Its tokens are words and pieces of words. Its parameters have the same names as ours, so they can be put into the class above.

# %% tags=["active-ipynb"]
# from transformer import load
#
# package, tokenizer = load()
# c = package.config
# assert (c.pad_id, c.bos_id) == (0, 1)
# model = Transformer(c.vocab_size, c.d_model, c.d_ff, c.h, c.N, c.P_drop).eval()
# weights = dict(package.named_parameters())
# model.load_state_dict(weights)
# print(f"{len(weights)} tensors fit")

# %% [markdown]
# Our lines and the tested package must now say the same:

# %% tags=["active-ipynb"]
# source = torch.tensor([tokenizer.encode("The cat has lost its ball.") + [c.eos_id]])
# target = torch.tensor([[c.bos_id, *tokenizer.encode("Die Katze")]])
# with torch.no_grad():
#     difference = (model(source, target) - package(source, target)).abs().max().item()
# assert difference < 1e-4
# print("our scores equal the package's")

# %% tags=["active-ipynb"]
# sentences = [
#     "The cat lost its ball.",
#     "The dog lost its ball.",
#     "The cat that saw the dog lost its ball.",
#     "The lady saw the dog that lost its ball.",
#     "The cat saw the dog that lost its ball.",
# ]
# german = []
# for sentence in sentences:
#     source = torch.tensor([tokenizer.encode(sentence) + [c.eos_id]])
#     tokens = write(model, source, longest=20)[0, 1:].tolist()
#     german.append(tokenizer.decode(tokens[: tokens.index(c.eos_id)]))
#     print(f"{sentence:45} {german[-1]}")

# %% [markdown]
# The cat gets *ihren* and the dog *seinen*. Is it the nearest noun that counts? In the third sentence the dog is nearer, and the cat is still the owner. Is it the first noun? In the fourth the lady comes first, and the dog gets *seinen*; but a lady is no "it", so perhaps the model takes the first animal. The last sentence speaks for that: it most likely means that the dog lost its own ball, and the model writes *ihren*. So it does not always find the owner.
#
# Where does it look? Here is one head of your own class, the third one in the encoder's first layer, at the word "its", in the second, the third and the last sentence.

# %% tags=["active-ipynb"]
# from types import SimpleNamespace
#
# maps = []
# for sentence in (sentences[1], sentences[2], sentences[4]):
#     ids = tokenizer.encode(sentence) + [c.eos_id]
#     source, begin = torch.tensor([ids]), torch.tensor([[c.bos_id]])
#     with torch.no_grad():
#         model(source, begin)
#     weights = model.encoder.layers[0].self_attention.weights  # (1, h, S, S)
#     pieces = [tokenizer.decode([i]) for i in ids]
#     maps.append(SimpleNamespace(source=pieces, encoder=weights))
# marks = [
#     ("seinen", "right: the dog's", True),
#     ("ihren", "right: the cat's", True),
#     ("ihren", "wrong: the cat's", False),
# ]
# shown_german = [german[1], german[2], german[4]]
# views.looks(maps, "its", layer=0, head=2, german=shown_german, marks=marks)

# %% [markdown]
# *Thicker arcs are larger weights. Above, "its" looks at the owner; in the last sentence it looks at the cat, and the owner is the dog.*
#
# Nobody told it to look there, either. But is the look the *reason* for the German word, or does it only go along with it? Take hold of the head and turn it. The package's `edit` lets you change any number inside a running model, here the row of weights with which "its" looks around:

# %% tags=["active-ipynb"]
# from transformer import edit, translate
#
# sentence = sentences[4]
# pieces = [tokenizer.decode([i]) for i in tokenizer.encode(sentence)]
#
#
# def look_at_the_dog(weights):  # (B, h, S, S)
#     weights[:, 2, pieces.index("its")] = 0.0  # 2: the third head
#     weights[:, 2, pieces.index("its"), pieces.index("dog")] = 1.0
#     return weights
#
#
# print("left alone:", *translate(package, tokenizer, [sentence]))
# with edit(package, {"encoder.0.self_attention.weights": look_at_the_dog}):
#     print("turned:    ", *translate(package, tokenizer, [sentence]))

# %% [markdown]
# One row of one head was changed, nothing else, and the wrong translation became right. So the look is a cause: you have found a place in a Transformer where a decision is made, and you have made it decide differently. [Chapter 19](19_visualization.ipynb) asks how general that is, and where the decision goes from there. On the live page you can turn every head by hand:
#
# [![The page: a sentence, its translation with one word marked as changed, and below them where the word "its" looks](../data/live.png)](https://owner.github.io/annotated-attention/live.html)
#
# In a session of your own the page opens with `from transformer import view` and `view(package, tokenizer, "The cat lost its ball.")`.
#
# ## What to keep
#
# - A Transformer keeps one vector for each token, to which attention and small networks add, layer by layer; what the encoder has made of the source is read by every layer of the decoder.
# - Attention is a weighted mean of values, and the weights come from comparing a word's query with the others' keys.
# - Nobody tells a head where to look: it is learned from which next token is right.
#
# ## Exercises
#
# **1. By hand.** What does "lost" take home in the picture of the cat? Its query is (2, 0). Find its five scores, then the weights, and use $e^{2.83} \approx 17$ and $e^{1.41} \approx 4$. To check, change the `3` in `q = x[3] @ W_Q` to a 2.
#
# <details><summary>Answer</summary>
#
# The inner products with the keys are 4 for the cat, 2 for the ball and 0 for the other three. Divided by $\sqrt 2$ they are 2.83, 1.41 and 0. Softmax takes $e$ to these powers, 17, 4 and three times 1, and divides by their sum, 24. So the weights are 17/24 for the cat, 4/24 for the ball and 1/24 for each of the others. The values add up to 0.71 cat, 0.17 ball and 0.04 losing: who has lost something and, faintly, what.
# </details>
#
# **2. In code.** Replace `...` by your own lines and run the cell; it says what is wrong, or "right". Write the two masks of a batch: which source tokens are real, and for the target, who may look at whom, when the
# padding (token 0) of the target may not be looked at either.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.first_transformer import check_masks
#
#
# def masks(source, target):
#     """Tokens (B, S), (B, T) -> True where one may look: (B, 1, 1, S), (B, 1, T, T)"""
#     ...
#
#
# check_masks(masks)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def masks(source, target):
#     T = target.shape[1]
#     of_source = (source != 0)[:, None, None, :]
#     triangle = torch.ones(T, T, dtype=torch.bool).tril()
#     of_target = triangle & (target != 0)[:, None, None, :]
#     return of_source, of_target
# ```
#
# The model above does not need the second condition: padding is at the end, and the triangle hides it from all real tokens.
# </details>
#
# **3. To think about.** Our model writes every number of up to eight digits backwards. What will it do with twelve? Guess, then try `source, target = examples(300, longest=12)` and `write(model, source, longest=13)`. (Put it above the section that loads other weights, where `model` still is the one you trained.) Which part of the model is to blame?
#
# <details><summary>Answer</summary>
#
# It gets none of them right, and its answers end after about nine digits. In training no answer was longer, and no token of a source was ever at the ninth place or later, so the model knows neither the patterns of those positions nor that an answer may go on there. The sines give every place a pattern, but nothing makes the model use a pattern that it has not met. [Chapter 7](07_positions.ipynb) shows ways to write positions that carry further.
# </details>

# %% [markdown]
# ## Next: three routes
#
# - **An hour.** This notebook and [04 Attention](04_attention.ipynb), which builds attention up step by step.
# - **The Transformer.** Notebooks [03](03_stacks.ipynb) to [08](08_model.ipynb) explain each part of the model,
#   [10](10_data.ipynb) and [12](12_optimizer.ipynb) to [15](15_decoding.ipynb) how it is trained and how it writes, [16](16_translation.ipynb) translates real
#   sentences, and [19](19_visualization.ipynb) looks inside.
# - **Everything.** All notebooks in their order, beginning with [01 Recurrence](01_recurrence.ipynb): what there was before, what attention costs
#   ([09](09_complexity.ipynb)), every row of the paper's Table 3 in small ([17](17_variations.ipynb)), a parser ([18](18_parsing.ipynb)), how it is made fast ([20](20_speed.ipynb)), and what came after ([21](21_language.ipynb) to [25](25_imported.ipynb)).
#
# The README's table says how many minutes each of them takes.
