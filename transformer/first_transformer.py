# ---
# jupyter:
#   jupytext:
#     formats: notebooks/00_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # A first Transformer
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/00_first_transformer.ipynb)
#
# This notebook writes the whole Transformer of "Attention Is All You Need" on one page, in about 100 lines. You will train
# it until it says numbers backwards, watch its attention find out where to look, and then load trained weights into
# the same classes, which translate English into German with them. You need Python and a little torch. Reading takes about 20
# minutes, running it half a minute: by the badge above, or with `make lab` in a clone. Every part here has a notebook of its own that explains and tests it; the links lead there.

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
# ## The idea
#
# A Transformer turns one sequence into another: an English sentence into a German one, or a number into the same number
# backwards. A word (or a digit) is a *token*, and the model works with one vector for each token.
#
# - The **encoder** reads the source. In each of its layers every token looks at all tokens, itself included, and
#   takes from them what it needs. This look is *attention*.
# - The **decoder** writes the target, one token after the other. Each written token looks at itself, at those before it, and at what the encoder made of the source.

# %% [markdown]
# Before 2017 such models read a sentence word by word, with one state handed from word to word ([notebook 01](01_recurrence.ipynb)), or through
# windows of a few neighbouring words ([02](02_convolution.ipynb)), and from 2014 on they had attention as well. The paper left both out and kept attention. The next picture has the encoder on the left.

# %% tags=["active-ipynb"]
# from transformer import views
#
# views.two_stacks()

# %% [markdown]
# A pale frame is one layer, and each stack has six. What leaves the encoder's last layer, the *memory*, is read by every layer of the
# decoder. Blue is attention ([04](04_attention.ipynb)): *self*-attention looks within one sequence, *causal* only back, and *cross*-attention from the target at the source. Orange is the feed-forward network ([05](05_feed_forward.ipynb)), which takes each token by itself. Each box reads from the thick line and adds to it; after each sum stands a LayerNorm, which is not drawn ([03](03_stacks.ipynb)). Shapes stand in the comments of the code: `B` sentences in a
# batch, `S` tokens in a source, `T` in a target, `V` different tokens (in formulas $V$ holds values), and vectors of `d_model` numbers.

# %% [markdown]
# ## Attention
#
# Each token asks a question, its *query* $q$. Each token that it may look at has a *key* $k$, which says what it
# has to offer, and a *value* $v$, which is what it gives. Query and key, vectors of $d_k$ numbers, are compared by their inner
# product. Softmax turns the products into weights that add up to 1, and the answer is the weighted mean of the values. With a query in each row of a matrix
# $Q$, and keys and values in the rows of $K$ and $V$, this is done for all tokens at once:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right) V$$
#

# %% [markdown]
# Three learned matrices make queries, keys and values from the tokens' vectors. Several *heads* do this side by side, each with its own part of every query, key and value ($h$ heads with $d_k = d_{model} / h$ numbers each), so
# that a token can ask several questions at once, and a fourth matrix, `W_O`, mixes their answers. A mask says which tokens may be looked at: a score of $-\infty$ becomes
# a weight of 0.
# ([Notebook 04](04_attention.ipynb) builds this up from a plain mean, and asks why the products are divided by $\sqrt{d_k}$.)


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


# %% [markdown]
# Four random tokens look at each other through two heads. A row shows how one token shares its attention in the first head:

# %% tags=["active-ipynb"]
# torch.manual_seed(0)
# torch.set_num_threads(1)  # tensors this small gain nothing from a second core
# attention, x = Attention(d_model=8, h=2), torch.randn(1, 4, 8)
# everything = torch.ones(4, 4, dtype=torch.bool)
# print("output", tuple(attention(x, x, everything).shape))
# print("weights", tuple(attention.weights.shape))
# print(attention.weights[0, 0].detach().numpy().round(2))
# assert torch.allclose(attention.weights.sum(dim=-1), torch.ones(1, 2, 4))

# %% [markdown]
# ## A network for each token
#
# Attention mixes vectors of different tokens. After it comes a small network with one hidden layer of `d_ff` numbers, which works on each token's vector by
# itself ([notebook 05](05_feed_forward.ipynb)).


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
# ## Layers
#
# An encoder layer is attention and then this network. Around each of them runs a path that adds its input to its output, followed by a
# normalisation: $\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$. LayerNorm shifts and scales each vector so that its numbers have mean 0 and variance 1, and then once more by learned
# amounts, its gain and bias. [Notebook 03](03_stacks.ipynb) takes the path away and finds that twelve sub-layers then hardly begin to learn. Dropout sets a share `P_drop` of the numbers to zero while training ([13](13_regularization.ipynb)).


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
# A decoder layer has a second attention between the two, which looks at the encoder's output, the *memory*.


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
# Several such layers on top of each other are a stack. All of them get the same masks, and in the decoder the same memory: the `context`.


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
# Attention does not use the order of the tokens. So a pattern of sines and cosines, a different one for each position, is added to the
# vectors ([notebook 07](07_positions.ipynb)).


# %%
def sinusoids(n, d_model):
    """A row for each of n positions: (n, d_model)."""
    rates = 10_000 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(n)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


# %% [markdown]
# ## The model
#
# Everything comes together. One matrix holds a vector for each token of the vocabulary. It turns tokens into vectors at the bottom, and
# at the top the same matrix compares the decoder's vectors with those of all tokens, which gives a score for each token.
# Its numbers start small, as suits the scores, and are multiplied by $\sqrt{d_{model}}$ on their way in ([notebook 06](06_embeddings.ipynb)).
#
# While training, the decoder gets the whole target at once, and has to name at each place the token that comes next. So its mask is a triangle: each token may look at itself and at what stands
# before it, and not at the answer. Another mask hides the padding, token 0, with which the shorter sources of a batch are filled up. (A 1 in a mask's shape stands for all heads, or queries.)


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
# That is a complete Transformer. With its default sizes it is the paper's base model. The paper says that this has 65 million parameters, and our count
# comes near to that ([notebook 08](08_model.ipynb) looks for the difference):

# %% tags=["active-ipynb"]
# with torch.device("meta"):  # shapes only, no numbers
#     base = Transformer(V=37_000)
# print(f"{sum(p.numel() for p in base.parameters()) / 1e6:.1f} million parameters")

# %% [markdown]
# ## Something to learn
#
# The task is to say a number backwards. Token 0 fills up short rows, 1 begins a target, 2 ends it, and 3 to 12 are the digits 0 to
# 9. This is a translation that everybody can check.


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
# To write, the model starts with the begin mark, takes the token with the highest score, appends it, and asks again, `longest` times. This is greedy
# decoding; [notebook 15](15_decoding.ipynb) does it better and faster.


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
# A step of training shows the model a batch of 64 numbers. The target goes in without its last token, and the scores are
# compared with the target without its first: after each token the model has to name the next. Softmax turns the scores into probabilities; the loss is minus the natural logarithm of the right token's,
# averaged over the tokens. Its unit is called a nat. The learning rate rises for 100 steps and falls afterwards, by the paper's formula $d_{model}^{-0.5} \min(s^{-0.5}, s \cdot 100^{-1.5})$ at step $s$ ([notebook 12](12_optimizer.ipynb); [14](14_training.ipynb) has the complete loop).

# %% [markdown]
# **Deviations: a factor of 0.3**, for with so narrow a model the formula alone rises to 0.0125; 100 steps of warm-up in place of 4,000; **no label smoothing** ([13](13_regularization.ipynb)), and below no dropout. Padding (`ignore_index=0`) does not count.


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
# The model is small: two layers on each side, vectors of 64 numbers, four heads, and no dropout, since all examples are new. Along the way we ask it for one and the same number, and
# keep the attention with which the last decoder layer looks at the source (the mean of its four heads).

# %% tags=["active-ipynb"]
# model = Transformer(V=13, d_model=64, d_ff=128, h=4, N=2, P_drop=0.0)
# optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
# number = torch.tensor([[int(digit) + 3 for digit in "31415926"]])
# losses, looks = [], {}
# for step in range(1, 401):
#     losses.append(train_step(model, optimizer, step))
#     if step in (1, 100, 150, 200, 300, 400):
#         answer = write(model, number, longest=9)
#         # of the last pass of `write`: nine tokens look at eight digits
#         weights = (
#             model.decoder.layers[-1].cross_attention.weights[0].mean(dim=0)
#         )  # (9, 8)
#         looks[step] = weights[:8]
#         text = shown(answer[0]) or "(nothing)"
#         print(f"step {step:3}  loss {losses[-1]:.3f}  31415926 -> {text}")

# %% tags=["active-ipynb"]
# from transformer.views import plotting
#
# curves = {"loss": losses, "guessing": [math.log(11)] * 400}
# plotting.lines(
#     range(1, 401),
#     curves,
#     "step",
#     "loss (nats a token)",
#     "From guessing to knowing",
#     log="y",
# );

# %% [markdown]
# At first the model only repeats the begin mark ("nothing" above), and its loss is far above that of guessing ([08](08_model.ipynb) asks why). Then it guesses: one of ten digits or the end mark, which costs about $\ln 11 = 2.4$ nats (2.2, if it knows how long numbers may be). From about step 50 on its loss falls below that, though not smoothly, until the digits come out backwards. What does it look at meanwhile? Each row of a picture is a place of
# the answer, beside it the digit that would be right, and each column a digit of the source. The darker a square, the more this place takes from this
# digit (mean of four heads).

# %% tags=["active-ipynb"]
# digits = list("31415926")
# rows = [f"{i}: {digit}" for i, digit in enumerate(reversed(digits), 1)]
# panels = [
#     (f"after step {step}", looks[step], digits, rows) for step in (1, 100, 150, 400)
# ]
# plotting.heatmaps(
#     panels,
#     across=2,
#     width=3.2,
#     height=2.8,
#     largest=1.0,
#     labels=("digit of the source", "place: right digit", "weight"),
# );

# %% [markdown]
# In the first three pictures its answer was still wrong. In the last most of the weight lies on the anti-diagonal, some beside it: to write the first digit the decoder looks at the last one of the source, then at the one before it, and so on. Nobody told it
# to look there. The loss says only which digit is right, and the way to look was learned from that.
#
# Has the model learned the task, or its examples by heart? It has seen 25,600 numbers, about 5,000 of each
# length. Among them are 4 in 10 of all numbers with four digits (some came twice), but hardly any of the hundred million with eight. So we ask for numbers of eight digits. (Longer ones than it learned from are another question; [21](21_language.ipynb) asks it.)

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
# The package comes with a model of this very kind, trained like the README's demo but for twice as many updates, on sentences of a small made-up English grammar and their German translations
# (`make bundled` trains it, [notebook 16](16_translation.ipynb) a smaller one). Its tokens are words and pieces of words; padding and begin mark are 0 and 1 there, too, and its sources
# have the end mark, for it was trained so. Its parameters can be put into the class above, for they have the same names.

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
# Now our lines and the tested package must say the same:

# %% tags=["active-ipynb"]
# source = torch.tensor([tokenizer.encode("The cat has lost its ball.") + [c.eos_id]])
# target = torch.tensor([[c.bos_id, *tokenizer.encode("Die Katze")]])
# with torch.no_grad():
#     difference = (model(source, target) - package(source, target)).abs().max().item()
# print(f"largest difference between our scores and the package's: {difference:.0e}")
# assert difference < 1e-4

# %% tags=["active-ipynb"]
# sentences = [
#     "The cat has lost its ball.",
#     "The dog has lost its ball.",
#     "The old cat that saw the dog lost its ball.",
#     "Yesterday the child read a book.",
# ]
# for sentence in sentences:
#     source = torch.tensor([tokenizer.encode(sentence) + [c.eos_id]])
#     tokens = write(model, source, longest=20)[0, 1:].tolist()
#     tokens = tokens[: tokens.index(c.eos_id)] if c.eos_id in tokens else tokens
#     print(f"{sentence:45} {tokenizer.decode(tokens)}")

# %% [markdown]
# In German the cat (*die Katze*) has *ihren* ball and the dog (*der Hund*) *seinen*. The model has to find out to whom "its" refers. In the first two sentences only one noun comes before it, in the third there are two. Which of its heads does that, and what happens when the head is turned off, is the subject of
# [notebook 19](19_visualization.ipynb).
#
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Write attention for a single query, with one head and without the learned matrices: compare the query with each key, divide by $\sqrt{d_k}$, take the
# softmax, and mix the values.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.first_transformer import check_look_up
#
#
# def look_up(q, K, V):
#     """q (d_k), K (S, d_k), V (S, d_v) -> (d_v)"""
#     ...
#
#
# check_look_up(look_up)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def look_up(q, K, V):
#     scores = K @ q / math.sqrt(len(q))
#     weights = scores.softmax(dim=0)
#     return weights @ V
# ```
#
# The three lines are the formula above, for one row of $Q$.
# </details>
#
# **2.** Write the two masks of a batch: which source tokens are real, and for the target, who may look at whom, when the
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
# The model above does not need the second condition: padding stands at the end, and the triangle hides it from all real tokens.
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
