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
# A recurrent network reads one word after the other. A convolutional one looks at all places of a sentence at once, each with
# its neighbours (Section 2). This notebook builds such a translator, ConvS2S (Gehring et al., 2017), the strongest
# convolutional one in the paper's Table 2, and measures how far each layer can see.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from transformer.frame import (
    Cache,
    SequenceConfig,
    SequenceToSequence,
    convolutional_flops,
    sentence_lengths,
)
from transformer.recurrence import blend


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from transformer import plotting
# from transformer.toys import learn_to_reverse, rows_to_reverse, share_reversed
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # matrices as small as these gain nothing from a second core

# %% [markdown] tags=["question-11"]
# ## Why would a convolution work on one-dimensional text?
#
# On an image, a convolution slides a small window over all places and computes the same weighted sum everywhere: a
# detector for an edge, say, wherever it is. In text the window slides along the sentence, and the detectors find short
# phrases. Meaning often sits in a few neighbours: *good* is praise, *not good* is not. Here is a detector for *not good*,
# with weights set by hand and a window of $k = 2$ words, each word a vector with a single 1:

# %% tags=["active-ipynb"]
# words = "the film was not good but the food was good and not dear".split()
# types = sorted(set(words))
# ids = torch.tensor([types.index(word) for word in words])
# x = F.one_hot(ids).float()  # (13, types)
# W = torch.zeros(2, len(types))
# W[0, types.index("not")] = 1.0  # first word of the window
# W[1, types.index("good")] = 1.0  # second word
# found = [max(0.0, (W * x[t:t + 2]).sum().item() - 1) for t in range(12)]
# print([f"{words[t]} {words[t + 1]}" for t in range(12) if found[t] > 0])
# assert found == [float(words[t:t + 2] == ["not", "good"]) for t in range(12)]

# %% [markdown]
# The sum is 2 where both words fit. After subtracting 1 and cutting off below 0, only that place is left: it fires at
# *not good*, but neither at *was good* nor at *not dear*. A layer has hundreds of such detectors, and training finds their
# weights. A second layer sees windows of windows, and so longer phrases. How much longer, we measure below.

# %% [markdown]
# ## Gates
#
# What a detector finds is multiplied by a gate between 0 and 1, computed from the same window: does it matter
# here? Half of the outputs are contents, the other half their gates (*gated linear unit*; Dauphin et al., 2017):
#
# $$\mathrm{GLU}([a, b]) = a \odot \sigma(b)$$

# %%
def glu(x):
    """a * sigmoid(b) for the halves a, b of the last axis: (..., 2d) -> (..., d)."""
    a, b = x.chunk(2, dim=-1)
    return a * torch.sigmoid(b)


# %% tags=["active-ipynb"]
# x = torch.randn(5, 12)
# assert torch.allclose(glu(x), F.glu(x))
# assert abs(glu(torch.tensor([3.0, 0.0])).item() - 1.5) < 1e-6

# %% [markdown]
# ## Two windows
#
# In the encoder the window is centred: $(k - 1) / 2$ words on each side. In the decoder it must not contain words that are
# not yet written, so it ends at the word itself: **causal**. Both are torch's convolution, with zeros put on both sides, or all
# on the left. When the model writes word by word, the left side is not zeros but what came before: its last $k - 1$ inputs.

# %%
class Convolution(nn.Module):
    """A convolution along a sentence: x (B, T, d_in) -> (B, T, d_out).

    Windows have k positions. causal: the window ends at its own position; otherwise it
    is centred, and k must be odd. With a `Cache`, x holds only new positions (causal
    only). Weights start with variance 3 (1 - P_drop) / (k d_in): numbers of variance 1
    then have it again after `glu`. (Gehring et al., 2017, have 4, which is right for
    small numbers.)
    """

    def __init__(self, d_in, d_out, k, causal, P_drop=0.0):
        super().__init__()
        if not causal and k % 2 == 0:
            raise ValueError(f"k must be odd, so that a window has a middle, not {k}")
        self.k, self.causal = k, causal
        self.conv = nn.Conv1d(d_in, d_out, k)
        nn.init.normal_(self.conv.weight, std=math.sqrt(3 * (1 - P_drop) / (k * d_in)))
        nn.init.zeros_(self.conv.bias)

    def forward(self, x, cache=None):
        if self.causal and cache is not None and cache.tensors:
            x = torch.cat([cache.tensors[0], x], dim=1)
        else:
            around = (self.k - 1, 0) if self.causal else (self.k // 2, self.k // 2)
            x = F.pad(x, (0, 0, *around))
        if cache is not None:
            cache.tensors = (x[:, x.shape[1] - self.k + 1:],)  # the last k - 1
        return self.conv(x.transpose(1, 2)).transpose(1, 2)  # torch wants (B, d, T)


# %% [markdown]
# Which inputs does an output depend on? The gradient knows: it is exactly zero where there is no path.

# %%
def dependence(layer, x):
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
# plotting.heatmaps(panels, across=2, width=3.2, height=3, labels=("input", "output"))
# assert torch.equal(windows["centred"] > 0, torch.ones(12, 12).tril(1).triu(-1) > 0)
# assert torch.equal(windows["causal"] > 0, torch.ones(12, 12).tril().triu(-2) > 0)

# %% [markdown]
# Each row is an output, and dark is exactly 0. Centred, it depends on its own input and one neighbour on each side; causal,
# on its own and the two before. (Which of them is brightest is chance: the weights are random.)

# %% [markdown]
# ## One block
#
# A block is a convolution, the gate, and a path around both, as in most deep networks of today: the block adds to what
# came in (notebook 03 is about such paths). A sum of two independent numbers of variance 1 has variance 2, so it is multiplied by
# $\sqrt{1/2}$.

# %%
HALF = math.sqrt(0.5)


class GatedBlock(nn.Module):
    """(x + GLU(convolution(x))) sqrt(1/2): x (B, T, d_model) -> (B, T, d_model).

    Dropout falls on the convolution's input. real (B, T, 1), True for tokens: what lies
    at padding is taken as zero, as beyond the ends of the sentence.
    """

    def __init__(self, d_model, k, causal, P_drop=0.0):
        super().__init__()
        self.convolution = Convolution(d_model, 2 * d_model, k, causal, P_drop)
        self.dropout = nn.Dropout(P_drop)

    def gated(self, x, real=None, cache=None):
        """GLU(convolution(x)), without the path around it."""
        x = self.dropout(x) if real is None else self.dropout(x) * real
        return glu(self.convolution(x, cache))

    def forward(self, x, real=None):
        return (x + self.gated(x, real)) * HALF


# %% [markdown]
# ## How far does a stack see?
#
# One block with $k = 3$ sees a neighbour on each side. The next sees the neighbours' neighbours. After $l$ blocks
# that is $l(k - 1) + 1$ positions, the *receptive field*. Measured through the gradient of the middle word of 33, block by block:

# %% tags=["active-ipynb"]
# blocks = [GatedBlock(32, 3, causal=False) for _ in range(8)]
# x = torch.randn(1, 33, 32)
# rows = []
# for depth in range(1, 9):
#     norms = dependence(nn.Sequential(*blocks[:depth]), x)[16]
#     rows.append(norms / norms.max())
# fields = [int((row > 0).sum()) for row in rows]
# labels = [f"block {depth}: sees {field}" for depth, field in zip(range(1, 9), fields)]
# plotting.heatmap(torch.stack(rows) ** 0.25, range(-16, 17), labels,
#                  "Gradient of the middle word (largest = 1), fourth root",
#                  labels=("distance in words", ""));

# %% tags=["active-ipynb"]
# assert fields == [2 * depth + 1 for depth in range(1, 9)]
# inner = (torch.stack(rows)[7, 12:21] ** 2).sum() / (rows[7] ** 2).sum()
# print(f"block 8 sees 17 words; the nine in the middle have {inner:.0%} of the squared "
#       f"gradient, the outermost {rows[7][8]:.4f} of the largest")
# assert inner > 0.9

# %% [markdown]
# Each block adds one word on each side, no more. Brightness is the fourth root of the gradient; otherwise the far ends would be as
# dark as the zeros beyond them. The formula $l(k-1)+1$ hides something: most of what a word takes in comes from close by, because many
# paths lead there and only one leads to the end. These weights are random. Training may give the ends more, but nothing lets
# a word see beyond them.

# %% [markdown]
# So **for a word to see another, $n$ places away, takes about $n / (k-1)$ blocks** on top of each other in a causal stack, and twice as many in a centred one.
# In ByteNet (Kalchbrenner et al., 2016) the words of a window stand 1, 2, 4, 8, 16 places apart (then again from 1). While the gaps double, so does the field: $\log n$. (Table 1 gives all convolutions $\log_k n$; that needs gaps, see notebook 09.)
# The paper's point (Section 2, Table 1): in self-attention it takes one layer, however far apart they are.

# %% [markdown]
# ## Configuration
#
# The common sizes are those of [notebook 01](01_recurrence.ipynb). A block here is smaller than a layer of the
# Transformer, so the presets have twice as many.

# %%
@dataclass(frozen=True)
class ConvolutionConfig(SequenceConfig):
    """The sizes of a `ConvolutionalEncoderDecoder`."""

    N: int = 12  # blocks in the encoder, and as many in the decoder
    k: int = 3  # positions in each window
    presets = {
        "tiny": dict(d_model=128, N=4),
        "small": dict(d_model=256, N=6),
        "base": dict(),
    }

    def __post_init__(self):
        super().__post_init__()
        if self.k < 1 or self.k % 2 == 0:
            raise ValueError("k must be odd, so that a window has a middle, "
                             f"not {self.k}")

    forward_flops = convolutional_flops  # what notebook 11 counts


# %% [markdown]
# ## Where in the sentence?
#
# A window does not know where it stands. So each position has a learned vector that is added to the word's (notebook 07 has
# more to say about that).

# %%
class Positions(nn.Module):
    """Adds a learned vector for each position: x (B, T, d_model), from start on."""

    def __init__(self, max_positions, d_model):
        super().__init__()
        self.table = nn.Parameter(0.1 * torch.randn(max_positions, d_model))

    def forward(self, x, start=0):
        end = start + x.shape[1]
        if end > len(self.table):
            raise ValueError(f"a sentence of {end} tokens is longer than the model's "
                             f"{len(self.table)} positions: shorten it, or train with "
                             "a larger max_positions")
        return x + self.table[start:end]


# %% [markdown]
# ## The encoder
#
# A stack of blocks. The decoder compares its query with *keys* (the output $z$, which knows the neighbourhood) and takes
# *values* from there ($z$ plus the word's own vector $e$, so that the word itself is not lost). Both stand side by side in the
# memory, which is twice as wide as in notebook 01.

# %%
class ConvolutionalEncoder(nn.Module):
    """N gated blocks: x (B, S, d_model), real (B, S, 1) -> (B, S, 2 d_model).

    Keys and values stand side by side.
    """

    def __init__(self, config):
        super().__init__()
        c = config
        blocks = [GatedBlock(c.d_model, c.k, False, c.P_drop) for _ in range(c.N)]
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x, real):
        z = x
        for block in self.blocks:
            z = block(z, real)
        return torch.cat([z, (z + x) * HALF], dim=-1)


# %% [markdown]
# ## The decoder
#
# Each block of the decoder is causal and has attention of its own: the source is consulted $N$ times a word, each time
# knowing more. Let $h$ be what the block's gate lets out, and $g$ the vector of the word just read. The query is $\sqrt{1/2}\,(Wh + g)$. The score is its dot product with the key, large where both point the same way.
#
# **Deviation: scores are divided by $\sqrt{d_{model}}$**, as in the Transformer, because our vectors start larger. **Left out** are
# ConvS2S's weight normalization, its scaling of the context and of the encoder's gradient, its wider upper layers, and its positions for each side.

# %%
class DotProductScore(nn.Module):
    """How well each query fits each key: q . k / sqrt(d_model).

    The query is q = (W h + g) sqrt(1/2). h and g: (B, T, d_model), keys: (B, S,
    d_model) -> (B, T, S).
    """

    def __init__(self, d_model):
        super().__init__()
        self.W = nn.Linear(d_model, d_model)

    def forward(self, h, g, keys):
        q = (self.W(h) + g) * HALF
        return q @ keys.transpose(1, 2) / math.sqrt(q.shape[-1])


# %% [markdown]
# A layer adds what it found to its $h$, and both to what came in:

# %%
class ConvolutionalDecoderLayer(nn.Module):
    """A causal block that looks at the source: x, g (B, T, d_model) -> the same.

    memory (B, S, 2 d_model): keys and values; mask (B, 1, S), True = may be looked at;
    own is a `Cache` of the block's last k - 1 inputs.
    """

    def __init__(self, config):
        super().__init__()
        c = config
        self.block = GatedBlock(c.d_model, c.k, True, c.P_drop)
        self.score = DotProductScore(c.d_model)

    def forward(self, x, g, memory, mask, own=None):
        keys, values = memory.chunk(2, dim=-1)
        h = self.block.gated(x, cache=own)
        context = blend(self.score(h, g, keys), values, mask)
        return (x + (h + context) * HALF) * HALF


# %%
class ConvolutionalDecoder(nn.Module):
    """N layers over a memory: x (B, T, d_model) -> (B, T, d_model).

    caches hold one pair a layer, or are None.
    """

    def __init__(self, config):
        super().__init__()
        layers = [ConvolutionalDecoderLayer(config) for _ in range(config.N)]
        self.layers = nn.ModuleList(layers)

    def forward(self, x, memory, mask, caches=None):
        g = x
        for n, layer in enumerate(self.layers):
            x = layer(x, g, memory, mask, caches[n][0] if caches else None)
        return x


# %% [markdown]
# ## The model
#
# The frame is that of notebook 01: the same table of vectors at both ends, the same methods. Only the two halves are new.

# %%
class ConvolutionalEncoderDecoder(SequenceToSequence):
    """ConvS2S (Gehring et al., 2017): ids (B, S) and (B, T) -> logits (B, T, V).

    See `SequenceToSequence`. Raises ValueError also for a sentence longer than
    config.max_positions.
    """

    def __init__(self, config):
        super().__init__(config)
        self.positions = Positions(config.max_positions, config.d_model)
        self.encoder = ConvolutionalEncoder(config)
        self.decoder = ConvolutionalDecoder(config)

    def encode(self, source):
        """Source ids (B, S) -> memory (B, S, 2 d_model)."""
        sentence_lengths(source, self.config.pad_id)  # refuses empty ones
        x = self.dropout(self.positions(self.embed(source)))
        return self.encoder(x, (source != self.config.pad_id)[:, :, None])

    def new_caches(self):
        """Empty caches, a pair a layer: its last inputs, and nothing for the memory."""
        return [(Cache(), Cache()) for _ in self.decoder.layers]

    def states(self, target, memory, source_mask, caches=None, start=0):
        """Target ids (B, T) over a memory -> the decoder's output (B, T, d_model).

        source_mask: (B, 1, 1, S), or None where every token is real. With caches the
        target holds new tokens only, from position start on.
        """
        x = self.dropout(self.positions(self.embed(target), start))
        mask = None if source_mask is None else source_mask[:, 0]
        return self.dropout(self.decoder(x, memory, mask, caches))


# %% tags=["active-ipynb"]
# config = ConvolutionConfig.preset("tiny", vocab_size=50)
# model = ConvolutionalEncoderDecoder(config)
# source = torch.randint(3, 50, (4, 9))
# target = torch.randint(3, 50, (4, 7))
# count = sum(p.numel() for p in model.parameters())
# print(f"memory {tuple(model.encode(source).shape)}, {count:,} parameters, "
#       f"logits {tuple(model(source, target).shape)}")

# %% [markdown]
# ## What the whole decoder sees
#
# Causality in numbers: the gradient of each output with respect to the vector of each word, through all blocks of an untrained
# model; left the words of the target, right those of the source.

# %% tags=["active-ipynb"]
# def sees(model, source, target):
#     vectors = []
#
#     def keep(module, inputs, output):
#         vectors.append(output)
#
#     hook = model.embedding.register_forward_hook(keep)
#     logits = model.eval()(source, target)[0]
#     hook.remove()
#     norms = []
#     for row in logits:
#         both = torch.autograd.grad(row.square().sum(), vectors, retain_graph=True)
#         norms.append([gradient[0].norm(dim=-1) for gradient in both])
#     return [torch.stack(side) for side in zip(*norms)]
#
# model = ConvolutionalEncoderDecoder(ConvolutionConfig(50, d_model=32, N=3))
# source = torch.randint(3, 50, (1, 8))
# target = torch.randint(3, 50, (1, 14))
# to_source, to_target = sees(model, source, target)

# %% tags=["active-ipynb"]
# panels = []
# for name, size in (("target", to_target), ("source", to_source)):
#     panels.append((name, (size / size.max()) ** 0.5, range(size.shape[1]), range(14)))
# plotting.heatmaps(panels, across=2, width=3.4, height=3.4, labels=("input", "output"))
# band = torch.ones(14, 14).tril().triu(-6)  # itself and 3 * (3 - 1) before it
# assert torch.equal(to_target > 0, band > 0)
# assert (to_source > 0).all()

# %% [markdown]
# Brightness is the root of the gradient, so that small values show. Left, above the diagonal, everything is exactly 0: no
# output sees a later word. Three blocks with $k = 3$ see seven words, the newest included; what was written before is out of
# sight. Right, no field is 0: through attention every output sees the whole source.

# %% [markdown]
# ## It learns
#
# The task of notebook 01, with its functions: say a row of digits backwards. All positions of a training sentence go through at
# once.

# %% tags=["active-ipynb"]
# config = ConvolutionConfig(13, d_model=48, N=3, P_drop=0.0, max_positions=20)
# model = learn_to_reverse(ConvolutionalEncoderDecoder(config), steps=200)
# right = {length: share_reversed(model, length) for length in (2, 4, 6, 8, 10, 12)}
# plotting.bars(right, "digits in the row", "share of rows wholly right",
#               "Saying digits backwards", ax=plotting.new_axes(4.5, 2.8))
# assert right[4] > 0.9 and right[8] > 0.8

# %% [markdown]
# Up to ten digits, the longest of training, it is nearly always right; of twelve, more than it has ever seen, it still gets four rows in five. (This does not
# rank it against the models of notebook 01, which have one layer, not three blocks, and trained for 250 steps, not 200.
# Notebook 16 compares with more care.)
#
# Every layer has its own attention. One row of digits, layer by layer:

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def looks(model, source, target):
#     scores = []
#
#     def keep(module, inputs, output):
#         scores.append(output)
#
#     hooks = [layer.score.register_forward_hook(keep) for layer in model.decoder.layers]
#     model(source, target)
#     for hook in hooks:
#         hook.remove()
#     return [some.softmax(dim=-1) for some in scores]  # of each layer, (B, T, S)

# %% tags=["active-ipynb"]
# digits = [4, 7, 1, 9, 0, 3, 8, 5]
# row = torch.tensor([digits]) + 3  # token 3 is the digit 0
# weights = looks(model, row, torch.cat([torch.tensor([[1]]), row.flip(1)], dim=1))
# written = [*digits[::-1], "</s>"]
# panels = []
# for n, some in enumerate(weights, start=1):
#     panels.append((f"layer {n}", some[0], digits, written))
# labels = ("digit read", "digit written")
# plotting.heatmaps(panels, across=3, largest=1.0, labels=labels);

# %% [markdown]
# Rows are the digits it writes, columns those it reads. Is it always like this? In 300 new rows:

# %% tags=["active-ipynb"]
# source, target = rows_to_reverse(300, 8, 8)
# backwards = torch.arange(7, -1, -1)
# hits = []
# for n, some in enumerate(looks(model, source, target[:, :-1]), start=1):
#     hits.append((some[:, :8].argmax(dim=-1) == backwards).float().mean().item())
#     print(f"layer {n}: most weight on the right digit in {hits[-1]:.0%} of the steps")
# assert min(hits) > 0.8  # by chance 1 in 8

# %% [markdown]
# All three layers look at the right digit, nearly always; at the end mark there is nothing left to fetch. The Transformer keeps
# this idea (each decoder layer has its own attention to the source), and puts attention in place of the windows, too.

# %% [markdown]
# ## Checks
#
# **Equal to a loop over windows**, written out with the same weights:

# %% tags=["active-ipynb"]
# layer, x = Convolution(4, 6, k=3, causal=True), torch.randn(1, 7, 4)
# padded = torch.cat([torch.zeros(2, 4), x[0]])
# for t in range(7):
#     products = [layer.conv.weight[:, :, j] @ padded[t + j] for j in range(3)]
#     assert torch.allclose(layer(x)[0, t], layer.conv.bias + sum(products), atol=1e-6)

# %% [markdown]
# **Padding changes nothing**, and **word by word equals all at once**, with two inputs a block kept from step to step:

# %% tags=["active-ipynb"]
# config = ConvolutionConfig(50, d_model=32, N=3)
# model = ConvolutionalEncoderDecoder(config).double().eval()
# source = torch.randint(3, 50, (3, 8))
# target = torch.randint(3, 50, (3, 6))
# logits = model(source, target)
# padded = model(F.pad(source, (0, 5)), F.pad(target, (0, 2)))[:, :6]
# state = model.start(source)
# steps = [model.step(target[:, [t]], state) for t in range(6)]
# for name, other in (("padded", padded), ("word by word", torch.stack(steps, dim=1))):
#     print(f"{name}: largest difference {(other - logits).abs().max():.0e}")
#     assert torch.allclose(other, logits, rtol=0, atol=1e-9)

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** How many causal blocks with $k = 5$ does a word need to see the one 40 places before it?

# %% tags=["active-ipynb"]
# your_blocks = ...
# if your_blocks is not ...:
#     x = torch.randn(1, 41, 8)
#     for depth, seen in ((your_blocks, True), (your_blocks - 1, False)):
#         blocks = [GatedBlock(8, 5, causal=True) for _ in range(depth)]
#         stack = nn.Sequential(*blocks).double()
#         assert bool(dependence(stack, x.double())[40, 0] > 0) == seen

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_blocks = 10`: each block reaches $k - 1 = 4$ places further.
# </details>
#
# **2.** The words of a window of $k = 3$ stand 1 place apart in the first causal convolution (neighbours, as ever), then 2, 4 and 8
# (torch calls this `dilation`). How many positions do the four see together?

# %% tags=["active-ipynb"]
# your_positions = ...
# if your_positions is not ...:
#     x = torch.randn(1, 1, 100).requires_grad_()  # (B, d, T), as torch wants it
#     y = x
#     for gap in (1, 2, 4, 8):
#         y = F.conv1d(F.pad(y, (2 * gap, 0)), torch.ones(1, 1, 3), dilation=gap)
#     assert your_positions == (torch.autograd.grad(y[0, 0, 99], x)[0] != 0).sum()

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_positions = 1 + 2 * (1 + 2 + 4 + 8)`: 31. Without dilation four of them see 9. So the depth needed for a distance $n$ grows
# like $\log n$, not like $n$.
# </details>

# %% [markdown]
# ## Next
#
# The chain of states is gone, but a distance still costs layers. From here on there is only attention:
# [03 Stacks](03_stacks.ipynb) begins with the frame that holds it. In Colab the next notebook imports this module from the
# installed package; to try changes of your own, clone the repository and install it with `pip install -e .`.
