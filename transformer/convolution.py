# ---
# jupyter:
#   jupytext:
#     formats: notebooks/02_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 2 Convolution
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/02_convolution.ipynb)
#
# A recurrent network reads one word after the other. A convolutional one computes all places of a sentence at once, each from
# its neighbours (Section 2). At the end of this notebook you will have built such a translator, ConvS2S (Gehring et al., 2017), the strongest
# convolutional one in the paper's Table 2, and will have measured how far its layers see. Reading takes about 25 minutes, running half a minute.

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
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.recurrence import blend

# %% [markdown]
# The next cell holds what only the pictures and checks need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from transformer.teaching.toys import learn_to_reverse, rows_to_reverse, share_reversed
# from transformer.views import plotting
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # matrices as small as these gain nothing from a second core

# %% [markdown] tags=["question-11"]
# ## Why would a convolution work on one-dimensional text?
#
# On an image, a convolution slides a small window over all places and computes the same weighted sum everywhere. The weights are a
# detector, for an edge, say, that works wherever the edge is. In text the window slides along the sentence, and the detectors find short
# phrases. Meaning often sits in a few neighbours: *good* is praise, *not good* is not. Here is a detector for *not good*
# with weights set by hand and a window of $k = 2$ words, each word a vector with a single 1:

# %% tags=["active-ipynb"]
# words = "the film was not good but the food was good and not dear".split()
# types = sorted(set(words))
# ids = torch.tensor([types.index(word) for word in words])
# x = F.one_hot(ids).float()  # (13, types)
# W = torch.zeros(2, len(types))
# W[0, types.index("not")] = 1.0  # first word of the window
# W[1, types.index("good")] = 1.0  # second word
# found = [max(0.0, (W * x[t : t + 2]).sum().item() - 1) for t in range(12)]
# assert found == [float(words[t : t + 2] == ["not", "good"]) for t in range(12)]
# print("found:", *(f"{words[t]} {words[t + 1]}" for t in range(12) if found[t] > 0))

# %% [markdown]
# The sum is 2 where both words fit. After subtracting 1 and cutting off below 0 only that place is left: the detector answers
# to *not good*, but neither to *was good* nor to *not dear*. A layer has hundreds of detectors, and training finds their
# weights, as we shall see in a moment.

# %% [markdown]
# ## A window around a word, or up to it
#
# In an encoder the window is centred, with $(k - 1) / 2$ words on each side. In a decoder it must not contain words that are
# not yet written, so it ends at the word itself and is called **causal**. Both are torch's convolution, with zeros put on both sides of the sentence, or all
# on the left.


# %%
class Convolution(nn.Module):
    """A convolution along a sentence: x (B, T, d_in) -> (B, T, d_out).

    Windows have k positions. causal: the window ends at its own position; otherwise it
    is centred, and k must be odd. Weights start with variance 3 (1 - P_drop) / (k d_in),
    so that inputs of variance 1 give outputs of variance 1 after `glu` below, whose
    gate squared is 1/3 on average. (Gehring et al., 2017, have 4, as if every gate were
    1/2.)
    """

    def __init__(
        self, d_in: int, d_out: int, k: int, causal: bool, P_drop: float = 0.0
    ):
        super().__init__()
        if not causal and k % 2 == 0:
            raise ValueError(f"k must be odd, so that a window has a middle, not {k}")
        self.k = k
        self.causal = causal
        self.conv = nn.Conv1d(d_in, d_out, k)
        nn.init.normal_(self.conv.weight, std=math.sqrt(3 * (1 - P_drop) / (k * d_in)))
        nn.init.zeros_(self.conv.bias)

    def forward(self, x: Tensor) -> Tensor:
        around = (self.k - 1, 0) if self.causal else (self.k // 2, self.k // 2)
        x = F.pad(x, (0, 0, *around))
        return self.conv(x.transpose(1, 2)).transpose(1, 2)  # torch wants (B, d, T)


# %% tags=["active-ipynb"]
# layer, x = Convolution(4, 6, k=3, causal=True), torch.randn(1, 7, 4)
# padded = torch.cat([torch.zeros(2, 4), x[0]])
# for t in range(7):
#     products = [layer.conv.weight[:, :, j] @ padded[t + j] for j in range(3)]
#     assert torch.allclose(layer(x)[0, t], layer.conv.bias + sum(products), atol=1e-6)
# print("the convolution equals a loop over windows")

# %% [markdown]
# Can training find the detector? The task is to say whether *not good* occurs in a random sentence of the same nine words. Eight detectors with random weights
# slide over the sentence, and the largest value of each goes into a weighted sum, whose sign is the answer. We compare windows of one word with windows of two:

# %% tags=["active-ipynb"]
# def sentences(count):
#     """Random words, (count, 12, types), and whether "not good" is among them."""
#     no, good = types.index("not"), types.index("good")
#     ids = torch.randint(len(types), (count, 12))
#     half, at = torch.arange(count // 2), torch.randint(11, (count // 2,))
#     ids[half, at], ids[half, at + 1] = no, good  # in half of them for sure
#     yes = ((ids[:, :-1] == no) & (ids[:, 1:] == good)).any(dim=1)
#     return F.one_hot(ids, len(types)).float(), yes.float()
#
#
# def train_detectors(k):
#     detectors, top = Convolution(len(types), 8, k, causal=True), nn.Linear(8, 1)
#     optimizer = torch.optim.Adam([*detectors.parameters(), *top.parameters()], 0.02)
#     for _ in range(300):
#         x, yes = sentences(128)
#         score = top(detectors(x).relu().amax(dim=1))[:, 0]
#         optimizer.zero_grad()
#         F.binary_cross_entropy_with_logits(score, yes).backward()
#         optimizer.step()
#     x, yes = sentences(4000)
#     right = (top(detectors(x).relu().amax(dim=1))[:, 0] > 0) == (yes > 0)
#     most = top.weight[0].argmax()
#     return detectors.conv.weight[most].detach().T, right.float().mean()

# %% tags=["active-ipynb"]
# _, alone = train_detectors(k=1)
# weights, pairs = train_detectors(k=2)
# plotting.heatmap(
#     weights,
#     types,
#     ["first word", "second word"],
#     'The weightiest detector wants "not", then "good"',
#     values=True,
#     ax=plotting.new_axes(7, 2),
#     labels=("word", "place in the window"),
# )
# assert pairs > 0.99 and alone < 0.9
# assert [types[i] for i in weights.argmax(dim=1)] == ["not", "good"]
# print(f"new sentences told apart: windows of one word {alone:.0%}, of two {pairs:.0%}")

# %% [markdown]
# The detector that counts most has found the two words and their order by itself. Windows of one word can at best tell that both words are there (which is right in about four of five), but not that they are neighbours.
# A second layer sees windows of windows, and so longer phrases.

# %% [markdown]
# ## Gates
#
# What a detector finds is multiplied by a gate between 0 and 1, which is computed from the same window and says whether it matters
# here. Half of a layer's outputs are contents, the other half their gates (*gated linear unit*; Dauphin et al., 2017):
#
# $$\mathrm{GLU}([a, b]) = a \odot \sigma(b)$$


# %%
def glu(x: Tensor) -> Tensor:
    """a * sigmoid(b) for the halves a, b of the last axis: (..., 2d) -> (..., d)."""
    a, b = x.chunk(2, dim=-1)
    return a * torch.sigmoid(b)


# %% [markdown]
# ## What does an output depend on?
#
# The gradient of an output with respect to an input is exactly zero where there is no path between them. So the windows
# can be measured:


# %%
def dependence(layer: Callable, x: Tensor) -> Tensor:
    """How much each output of a layer depends on each input: (T outputs, T inputs).

    layer: x (1, T, d_in) -> (1, T, d). Norms of the gradient of one number, a sum of
    the output's numbers with random weights; exactly 0 where no path leads from input
    to output.
    """
    x = x.detach().requires_grad_()
    y = layer(x)
    y = (y * torch.randn_like(y)).sum(dim=-1)[0]  # (T,)
    gradients = [torch.autograd.grad(y_t, x, retain_graph=True)[0][0] for y_t in y]
    return torch.stack([gradient.norm(dim=-1) for gradient in gradients])


# %% tags=["active-ipynb"]
# x = torch.randn(1, 12, 16)
# windows = {}
# for name, causal in (("centred", False), ("causal", True)):
#     windows[name] = dependence(Convolution(16, 16, k=3, causal=causal), x)
# panels = [(name, w, range(12), range(12)) for name, w in windows.items()]
# labels = ("input position", "output position", "norm of the gradient")
# plotting.heatmaps(panels, across=2, width=3.2, height=3, labels=labels)
# assert torch.equal(windows["centred"] > 0, torch.ones(12, 12).tril(1).triu(-1) > 0)
# assert torch.equal(windows["causal"] > 0, torch.ones(12, 12).tril().triu(-2) > 0)
# print("centred: itself and a neighbour on each side; causal: itself and two before it")

# %% [markdown]
# Each row is an output, the colour is the norm of the gradient, and white is exactly 0. Which of a row's inputs is darkest is chance, because each output's numbers are summed with random weights of its own.

# %% [markdown]
# ## One block
#
# A block is a convolution with $2\,d_{model}$ outputs, then the GLU, and a path around both: the block adds to what
# came in (notebook [03](03_stacks.ipynb) measures what such paths are for). A sum of two independent numbers of variance 1 has variance 2, so it is multiplied by
# $\sqrt{1/2}$.

# %%
ROOT_HALF = math.sqrt(0.5)


class GatedBlock(nn.Module):
    """(x + GLU(convolution(x))) sqrt(1/2): x (B, T, d_model) -> (B, T, d_model).

    Dropout falls on the convolution's input. real (B, T, 1), True for tokens: what lies
    at padding is taken as zero, as beyond the ends of the sentence.
    """

    def __init__(self, d_model: int, k: int, causal: bool, P_drop: float = 0.0):
        super().__init__()
        self.convolution = Convolution(d_model, 2 * d_model, k, causal, P_drop)
        self.dropout = nn.Dropout(P_drop)

    def gated(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """GLU(convolution(x)), without the path around it."""
        x = self.dropout(x) if real is None else self.dropout(x) * real
        return glu(self.convolution(x))

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return (x + self.gated(x, real)) * ROOT_HALF


# %% [markdown]
# ## How far does a stack see?
#
# One block with $k = 3$ sees a neighbour on each side, the next sees the neighbours' neighbours, and after $l$ blocks
# a word sees $l(k - 1) + 1$ positions. This is its *receptive field*. Here it is for the middle word of 33, measured block by block:

# %% tags=["active-ipynb"]
# blocks = [GatedBlock(32, 3, causal=False) for _ in range(8)]
# x = torch.randn(1, 33, 32)
# rows = []
# for depth in range(1, 9):
#     norms = dependence(nn.Sequential(*blocks[:depth]), x)[16]
#     rows.append(norms / norms.max())
# fields = [int((row > 0).sum()) for row in rows]
# labels = [
#     f"blocks: {depth}, words: {field}" for depth, field in zip(range(1, 9), fields)
# ]
# plotting.heatmap(
#     torch.stack(rows) ** 0.25,
#     range(-16, 17),
#     labels,
#     "Gradient of the middle word (each row's largest = 1), fourth root",
#     labels=("distance in words", ""),
# )
# assert fields == [2 * depth + 1 for depth in range(1, 9)]

# %% [markdown]
# Each block adds one word on each side, no more. The colours are the fourth root of the gradient; otherwise the ends of the field would be as
# white as the zeros beyond them. The field is not filled evenly: many paths lead to the words close by, and only one to the word at the end. How far does a word really look? We
# take the root of the mean squared distance, weighted by the squared gradient, for ten random stacks:

# %% tags=["active-ipynb"]
# distance, depths, looks = torch.arange(-20.0, 21), (1, 2, 4, 8), []
# for _ in range(10):
#     blocks = [GatedBlock(32, 3, causal=False) for _ in range(8)]
#     x = torch.randn(1, 41, 32)
#     fields = [dependence(nn.Sequential(*blocks[:n]), x)[20] ** 2 for n in depths]
#     looks.append([((g * distance**2).sum() / g.sum()).sqrt() for g in fields])
# mean = torch.tensor(looks).mean(dim=0).tolist()
# for n, far in zip(depths, mean):
#     print(f"blocks: {n}, words seen on each side: {n}, looks {far:.1f} words far")
# assert mean[3] / mean[0] < 4
# print(f"eight times the blocks, {mean[3] / mean[0]:.1f} times as far (root of 8: 2.8)")

# %% [markdown]
# The field grows with the number of blocks, but how far a word really looks only with about the root of that number. Luo et al. (2016) found this for images, called it the *effective receptive field*, and saw training widen it. Beyond the field nothing can be seen.
#
# **To see a word $n$ places away, about $n / (k-1)$ causal blocks must stand on top of each other**, or twice as many centred ones.
# In ByteNet (Kalchbrenner et al., 2016) the words of a window stand 1, 2, 4, 8, 16 places apart, block by block, so that the field about doubles with each of the five. (The $\log_k n$ layers of the paper's Table 1 need gaps $1, k, k^2, \ldots$, see [09](09_complexity.ipynb).)
# The paper's point is that in self-attention one layer is enough, however far apart two words are.

# %% [markdown]
# ## Configuration
#
# The sizes are those of [notebook 01](01_recurrence.ipynb), the width of the window, and the most positions that a sentence may have.


# %%
@dataclass(frozen=True)
class ConvolutionConfig:
    """The sizes of a `ConvolutionalEncoderDecoder`; k is odd."""

    vocab_size: int  # types in the vocabulary that both languages share
    d_model: int = 512  # width of every token's vector between layers
    N: int = 12  # blocks in the encoder, and as many in the decoder
    k: int = 3  # positions in each window
    P_drop: float = 0.1  # dropout on embeddings and before each window
    max_positions: int = 1024  # longest sentence in tokens
    pad_id: int = 0  # token id that fills up short sentences


# %% [markdown]
# ## Where in the sentence?
#
# A window does not know where it stands. So each position has a learned vector that is added to the word's ([07](07_positions.ipynb) has
# more to say about that).


# %%
class Positions(nn.Module):
    """Adds a learned vector for each position: x (B, T, d_model) -> the same."""

    def __init__(self, max_positions: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(0.1 * torch.randn(max_positions, d_model))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


# %% [markdown]
# ## The encoder
#
# The encoder is a stack of blocks. The decoder will compare its queries with *keys*, the output $z$, which knows the neighbourhood. It will take
# *values* from $z$ plus the word's own vector, so that the word itself is not lost. Keys and values stand side by side in the
# memory, which is twice as wide as in notebook 01.


# %%
class ConvolutionalEncoder(nn.Module):
    """N gated blocks: x (B, S, d_model), real (B, S, 1) -> (B, S, 2 d_model).

    Keys and values stand side by side.
    """

    def __init__(self, c: ConvolutionConfig):
        super().__init__()
        blocks = [GatedBlock(c.d_model, c.k, False, c.P_drop) for _ in range(c.N)]
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        z = x
        for block in self.blocks:
            z = block(z, real)
        return torch.cat([z, (z + x) * ROOT_HALF], dim=-1)


# %% [markdown]
# ## The decoder
#
# Each block of the decoder is causal and has attention of its own, so the source is consulted $N$ times for each word. Let $h$ be what the block's gate lets out, and $g$ the vector of the word just read. The query is $\sqrt{1/2}\,(Wh + g)$, with a learned matrix $W$. The score is its dot product with the key, which is large where both point the same way.
#
# **Deviation: scores are divided by $\sqrt{d_{model}}$**, as in the Transformer: our word vectors start larger than ConvS2S's. **Left out** are
# ConvS2S's weight normalization, its scaling of the context and of the encoder's gradient, its wider upper layers, and its separate position vectors for source and target; our first weights are a little smaller.


# %%
class DotProductScore(nn.Module):
    """How well each query fits each key: q . k / sqrt(d_model).

    The query is q = (W h + g) sqrt(1/2). h and g: (B, T, d_model), keys: (B, S,
    d_model) -> (B, T, S).
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.W = nn.Linear(d_model, d_model)

    def forward(self, h: Tensor, g: Tensor, keys: Tensor) -> Tensor:
        q = (self.W(h) + g) * ROOT_HALF
        return q @ keys.transpose(1, 2) / math.sqrt(q.shape[-1])


# %% [markdown]
# Notebook [01](01_recurrence.ipynb)'s `blend` turns the scores into weights by a softmax and sums the values with them: the *context*. A layer adds it to its $h$, and the sum to what came in, with $\sqrt{1/2}$ after each sum. The decoder is a stack of such layers:


# %%
class ConvolutionalDecoderLayer(nn.Module):
    """A causal block that looks at the source: x, g (B, T, d_model) -> the same.

    memory (B, S, 2 d_model): keys and values; mask (B, 1, S), True = may be looked at.
    """

    def __init__(self, c: ConvolutionConfig):
        super().__init__()
        self.block = GatedBlock(c.d_model, c.k, True, c.P_drop)
        self.score = DotProductScore(c.d_model)

    def look(self, h: Tensor, g: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """h and its context, summed."""
        keys, values = memory.chunk(2, dim=-1)
        return (h + blend(self.score(h, g, keys), values, mask)) * ROOT_HALF

    def forward(
        self, x: Tensor, g: Tensor, memory: Tensor, mask: Tensor | None
    ) -> Tensor:
        h = self.block.gated(x)
        return (x + self.look(h, g, memory, mask)) * ROOT_HALF


# %%
class ConvolutionalDecoder(nn.Module):
    """N layers over a memory: x (B, T, d_model) -> (B, T, d_model)."""

    def __init__(self, c: ConvolutionConfig):
        super().__init__()
        layers = [ConvolutionalDecoderLayer(c) for _ in range(c.N)]
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        g = x
        for layer in self.layers:
            x = layer(x, g, memory, mask)
        return x


# %% [markdown]
# ## The model
#
# Around the two halves stands what notebook 01 has: the same table of vectors at both ends, the same methods. New are the positions.


# %%
class ConvolutionalEncoderDecoder(nn.Module):
    """ConvS2S (Gehring et al., 2017): ids (B, S) and (B, T) -> logits (B, T, V)."""

    def __init__(self, config: ConvolutionConfig):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.output.weight = self.embedding.weight
        self.dropout = nn.Dropout(config.P_drop)
        self.positions = Positions(config.max_positions, config.d_model)
        self.encoder = ConvolutionalEncoder(config)
        self.decoder = ConvolutionalDecoder(config)

    def embed(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) * math.sqrt(self.config.d_model)
        return self.dropout(self.positions(x))

    def mask(self, source: Tensor) -> Tensor:
        return (source != self.config.pad_id)[:, None]  # (B, 1, S)

    def encode(self, source: Tensor) -> Tensor:
        """Source ids (B, S) -> memory (B, S, 2 d_model)."""
        return self.encoder(self.embed(source), self.mask(source).transpose(1, 2))

    def states(self, target: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Target ids (B, T) over a memory -> the decoder's vectors (B, T, d_model)."""
        return self.dropout(self.decoder(self.embed(target), memory, mask))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory = self.encode(source)
        return self.output(self.states(target, memory, self.mask(source)))


# %% [markdown]
# Padding must change nothing. Each output may depend on the whole source. Of the target it may depend on seven words only, the one just read and the six before it, because each of the three blocks adds two.

# %% tags=["active-ipynb"]
# model = ConvolutionalEncoderDecoder(ConvolutionConfig(50, d_model=32, N=3))
# model = model.double().eval()
# source, target = torch.randint(3, 50, (3, 8)), torch.randint(3, 50, (3, 14))
# logits = model(source, target)
# padded = model(F.pad(source, (0, 5)), F.pad(target, (0, 2)))[:, :14]
# assert torch.allclose(padded, logits, rtol=0, atol=1e-9)
# vectors = []  # those of the source and of the target, as the model looks them up
# hook = model.embedding.register_forward_hook(lambda *call: vectors.append(call[2]))
# outputs = model(source, target)[0].square().sum(dim=-1)
# hook.remove()
# both = [torch.autograd.grad(y, vectors, retain_graph=True) for y in outputs]
# of_source, of_target = (
#     torch.stack([gradients[i][0].norm(dim=-1) for gradients in both]) for i in (0, 1)
# )
# assert (of_source > 0).all()
# assert torch.equal(of_target > 0, torch.ones(14, 14).tril().triu(-6) > 0)
# print(
#     "padding changes nothing; an output depends on the whole source,\n"
#     "the word just read and six before it, and on no later one"
# )

# %% [markdown]
# To write the next word it is enough to know each layer's last $k - 1$ inputs: they stand where all at once has the zeros. `transformer/fast/convolution.py` has a `ConvolutionalEncoderDecoder` with these parameters that keeps them; `transformer train --family convolution` trains it.

# %% [markdown]
# ## It learns
#
# The task is that of notebook 01: say a row of two to ten digits backwards.

# %% tags=["active-ipynb"]
# config = ConvolutionConfig(13, d_model=48, N=3, P_drop=0.0, max_positions=20)
# model = ConvolutionalEncoderDecoder(config)
# before = model.positions.table.detach().clone()
# learn_to_reverse(model, steps=200)
# right = {length: share_reversed(model, length) for length in (2, 4, 6, 8, 10, 12)}
# plotting.bars(
#     right,
#     "digits in the row (12: longer than in training)",
#     "share of rows wholly right",
#     "Digits backwards, after 200 steps",
#     ax=plotting.new_axes(4.5, 2.8),
# )
# moved = (model.positions.table != before).any(dim=1)
# assert right[4] > 0.9 and right[8] > 0.8
# assert moved.tolist() == [True] * 11 + [False] * 9
# print("vectors of positions that training changed:", int(moved.sum()), "of", len(moved))

# %% [markdown]
# Up to ten digits, the longest of training, nearly every row is right. It still gets most rows of twelve, although no source had a digit at the last two places: training changed only eleven of the twenty position vectors (the eleventh in targets alone) and left the others as random as at the start. Why it gets along with those, we have not examined. (The score
# does not rank this model against those of notebook 01, which have one layer and trained for other numbers of steps. Notebook [16](16_translation.ipynb)
# compares with more care.)
#
# Every layer of the decoder has its own attention. Where does each look, in one row of digits and in 300 new rows?

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def looks(model, source, target):
#     """The attention weights of each decoder layer, (B, T, S)."""
#     scores = []  # torch calls a hook with the module, its input and its output
#     hooks = [
#         layer.score.register_forward_hook(lambda *call: scores.append(call[2]))
#         for layer in model.decoder.layers
#     ]
#     model(source, target)
#     for hook in hooks:
#         hook.remove()
#     return [some.softmax(dim=-1) for some in scores]

# %% tags=["active-ipynb"]
# digits = [4, 7, 1, 9, 0, 3, 8, 5]
# row = torch.tensor([digits]) + 3  # token 3 is the digit 0
# weights = looks(model, row, torch.cat([torch.tensor([[1]]), row.flip(1)], dim=1))
# written = [*digits[::-1], "</s>"]
# panels = [(f"layer {n}", some[0], digits, written) for n, some in enumerate(weights, 1)]
# labels = ("digit read", "digit written", "weight")
# plotting.heatmaps(panels, across=3, largest=1.0, labels=labels)
#
# source, target = rows_to_reverse(300, 8, 8)
# backwards = torch.arange(7, -1, -1)
# hits = [
#     (some[:, :8].argmax(dim=-1) == backwards).float().mean().item()
#     for some in looks(model, source, target[:, :-1])
# ]
# assert min(hits) > 0.8  # by chance 1 in 8
# print("most weight on the right digit, by layer:", *(f"{hit:.0%}" for hit in hits))

# %% [markdown]
# All three layers look at the right digit nearly always; at the end mark no digit is left to fetch, but the weights must add up to 1 all the same. The Transformer keeps
# this idea, as each of its decoder layers has its own attention to the source, and puts attention in place of the windows too.

# %% [markdown]
# ## Exercises
#
# Write each function in place of `...` and run the cell. The cell says "not tried yet", then what is wrong, then "right".
#
# **1.** A causal gated convolution for one sentence, as a loop over positions and without torch's convolution (the check sees the result only). `W` holds the weights of contents and gates, one after the other, for each place
# of the window, and position $t$ sees $x_{t-k+1}, \ldots, x_t$.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.convolution import check_gated_convolution
#
#
# def gated_convolution(x, W, b):
#     """x (T, d_in), W (2d, d_in, k), b (2d,) -> (T, d)."""
#     ...
#
#
# check_gated_convolution(gated_convolution)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def gated_convolution(x, W, b):
#     k = W.shape[-1]
#     padded = F.pad(x, (0, 0, k - 1, 0))
#     rows = []
#     for t in range(len(x)):
#         window = padded[t:t + k]
#         a, gate = (torch.einsum("oik,ki->o", W, window) + b).chunk(2)
#         rows.append(a * torch.sigmoid(gate))
#     return torch.stack(rows)
# ```
#
# With $k - 1$ zeros on the left the window of position $t$ ends at $t$ itself.
# </details>
#
# **2.** The same without gate and bias, but the words of the window stand `gap` places apart (ByteNet's *dilated* convolution): position $t$ sees $x_t$, $x_{t - gap}$, $x_{t - 2\,gap}$ and so on. The last weight belongs to $x_t$.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.convolution import check_dilated_convolution
#
#
# def dilated_convolution(x, W, gap):
#     """x (T, d_in), W (d_out, d_in, k) -> (T, d_out)."""
#     ...
#
#
# check_dilated_convolution(dilated_convolution)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def dilated_convolution(x, W, gap):
#     k = W.shape[-1]
#     padded = F.pad(x, (0, 0, gap * (k - 1), 0))
#     total = 0
#     for j in range(k):
#         total = total + padded[j * gap:j * gap + len(x)] @ W[:, :, j].T
#     return total
# ```
#
# Each place of the window is one product for all positions at once.
# </details>
#
# **3.** How many positions does the field of a stack of causal convolutions have, from the first that its top can see to the last? `windows` and `gaps` have the window and the gap of each layer.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.convolution import check_receptive_field
#
#
# def receptive_field(windows, gaps):
#     """[k, ...] and [gap, ...], one for each layer -> number of positions."""
#     ...
#
#
# check_receptive_field(receptive_field)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def receptive_field(windows, gaps):
#     field = 1
#     for k, gap in zip(windows, gaps):
#         field = field + (k - 1) * gap
#     return field
# ```
#
# Four layers with $k = 3$ see 9 positions, and 31 with gaps of 1, 2, 4 and 8: the depth needed for a distance $n$ then grows like $\log n$.
# </details>

# %% [markdown]
# ## Next
#
# The chain of states is gone, but a distance still costs layers. The Transformer has only attention instead, and [03 Stacks](03_stacks.ipynb) begins with the layers that hold it.
