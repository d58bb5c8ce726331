# ---
# jupyter:
#   jupytext:
#     formats: notebooks/03_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 3.1 Encoder and decoder stacks
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/03_stacks.ipynb)
#
# The Transformer is two towers of equal floors. Section 3.1 says what a floor looks like from outside: a few
# sub-layers, each with a path around it and a normalisation after it. This notebook builds floors and towers. What goes on inside the
# sub-layers comes in 04 and 05; until then simple stand-ins take their place, because the frame does not care.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from transformer import plotting, toys
# from transformer.figures import diagrams
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small a second thread only waits

# %% [markdown]
# ## The two towers
#
# Every word is a vector of `d_model` numbers (512 in the paper's base model), and keeps that width from bottom to top.
# There are two kinds of sub-layer. **Attention** lets positions exchange information (notebook 04). The
# **position-wise network** works on each position by itself (05). The encoder reads the whole source sentence. The
# decoder reads the target words written so far, looks at the encoder's result, and scores the next word. Drawn after
# Figure 1, bottom to top:

# %% tags=["active-ipynb"]
# words = ("words as vectors (06, 07)", None)
# norm = ("add, LayerNorm", 3)
# network = ("position-wise network (05)", 2)
# encoder = [words, ("self-attention (04)", 1), norm, network, norm]
# decoder = [
#     words,
#     ("masked self-attention (04)", 1),
#     norm,
#     ("attention to encoder (04)", 1),
#     norm,
#     network,
#     norm,
#     ("a score for every possible next word (06)", None),
# ]

# %% tags=["active-ipynb"]
# heights = [-0.2, 1.5, 2.6, 4.1, 5.2, 6.7, 7.8, 9.3]
# boxes = {
#     (x, i): (1.2 * x, heights[i], *box)
#     for x, tower in enumerate([encoder, decoder])
#     for i, box in enumerate(tower)
# }
# upwards = [((x, i), (x, i + 1), 0) for x, i in boxes if (x, i + 1) in boxes]
# around = [
#     ((x, i), (x, i + 2), 0.43 * (2 * x - 1))
#     for x, i in boxes
#     if i % 2 == 0 and (x, i + 2) in boxes
# ]
# diagrams.flow(
#     boxes,
#     [*upwards, *around, ((0, 4), (1, 3), 0)],
#     [(1.2 * x, 0.6, top, "N = 6 times") for x, top in enumerate((6, 8.6))],
# );

# %% [markdown]
# Grey is one floor; there are six of each. All attention is orange. In *self*-attention the words of one sentence look at each other; *masked*
# means that a word sees only those before it and itself. The lines at the sides are the paths around the sub-layers: they meet
# the sub-layer's output in "add, LayerNorm". The slanted arrow leaves the *top* floor of the encoder and goes to *every*
# floor of the decoder. We build from the small to the large: normalisation, path, floor, tower.

# %% [markdown]
# ## Layer normalization
#
# Every sub-layer adds something to each vector, and sums grow. LayerNorm brings a vector back to a standard size: subtract its mean, divide by its standard deviation,
# then let two learned vectors, a gain $g$ and a bias $b$, choose another size and mean where that helps. For one vector $x$ of $d$ numbers
#
# $$\mathrm{LayerNorm}(x) = g \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + b, \qquad
# \mu = \frac{1}{d}\sum_i x_i, \quad \sigma^2 = \frac{1}{d}\sum_i (x_i - \mu)^2$$
#
# Every position of every sentence is treated by itself. The tiny $\epsilon$ prevents a division by zero.

# %%
def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Normalise the last axis to mean 0 and variance 1, scale, shift (Ba et al., 2016).

    x: (..., d_model); gain, bias: (d_model,). The variance divides by d_model, not
    d_model - 1, and eps stands inside the root, so a constant row gives `bias` and
    never divides by zero.
    """
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias


# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# words = torch.tensor(
#     [[1.0, 2.0, 3.0, 6.0], [105.0, 110.0, 115.0, 130.0], [7.0, 7.0, 7.0, 7.0]]
# )
# for row in layer_norm(words, 1, 0):
#     print([round(value, 3) + 0.0 for value in row.tolist()])

# %% [markdown]
# The first row by hand: mean 3, differences $-2, -1, 0, 3$, variance $(4 + 1 + 0 + 9)/4 = 3.5$; divided by
# $\sqrt{3.5} = 1.871$ they are $-1.069, -0.535, 0, 1.604$. The second row is 5 times the first plus 100: the same pattern,
# so the same result. The third has no pattern at all, and gives zeros, thanks to $\epsilon$.

# %% tags=["active-ipynb"]
# constant, bias = words[2], words[0]
# assert torch.equal(layer_norm(constant, torch.randn(4), bias), bias)  # nothing else

# %% [markdown]
# The module learns the gain and the bias. For the formula itself it calls torch's version, which is faster.

# %%
class LayerNorm(nn.Module):
    """`layer_norm` with a learned gain and bias; the formula is left to torch's kernel.

    x (..., d_model) -> (..., d_model).
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


# %% [markdown]
# Some well-known implementations (that of The Annotated Transformer is one) differ in two places: they divide the variance by $d - 1$, and they add $\epsilon$
# *outside* the root. How much does it change?

# %% tags=["active-ipynb"]
# def others(x, eps=1e-5):
#     deviation = x.std(-1, keepdim=True)  # torch's std divides by d - 1
#     return (x - x.mean(-1, keepdim=True)) / (deviation + eps)
#
# for d in (4, 512):
#     x = torch.randn(d, dtype=torch.float64)
#     print(f"d = {d}: theirs is {(others(x) / layer_norm(x, 1, 0)).mean():.4f} of ours")
# noise = torch.randn(512, dtype=torch.float64)
# nearly = 7 + 1e-9 * noise  # a row with almost no pattern
# slopes = [
#     torch.autograd.functional.jacobian(f, nearly).abs().max()
#     for f in (lambda x: layer_norm(x, 1, 0), others)
# ]
# print("largest slope on a flat row: ours {:,.0f}, theirs {:,.0f}".format(*slopes))

# %% [markdown]
# The first is a factor of $\sqrt{(d-1)/d}$: a seventh less at $d = 4$, a thousandth at $d = 512$, where the gain can make
# up for it. The second matters for a row with almost no pattern. The steepest slope there is $1/\sqrt{\epsilon} = 316$
# for the formula above, and $1/\epsilon = 100{,}000$ with $\epsilon$ outside: such a row would blow the gradient up.

# %% [markdown]
# ## A path around every sub-layer
#
# Section 3.1 wraps each sub-layer in a *residual connection* (He et al., 2016): its output is *added* to its input, and the sum is normalised.
#
# $$\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$$
#
# So a sub-layer does not replace a word's vector; it corrects it. Dropout (notebook 13) zeroes a random
# tenth of the sub-layer's output while training, before the sum. This order is called **post-norm**. Later
# models often normalise what goes *into* the sub-layer and leave the path alone:
#
# $$x + \mathrm{Sublayer}(\mathrm{LayerNorm}(x))$$
#
# **Deviation (a switch, off by default):** `norm_first=True` gives this **pre-norm** order.

# %%
class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))): Section 3.1, with Section 5.4's dropout.

    With norm_first=True it is x + Dropout(Sublayer(LayerNorm(x))), the later pre-norm.
    norm(d_model) and dropout(P_drop) make the two parts.
    """

    def __init__(self, d_model: int, P_drop: float = 0.1, norm_first: bool = False,
                 norm: Callable = LayerNorm, dropout: Callable = nn.Dropout):
        super().__init__()
        self.norm = norm(d_model)
        self.dropout = dropout(P_drop)
        self.norm_first = norm_first

    def forward(self, x: Tensor, sublayer: Callable) -> Tensor:
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


# %% [markdown]
# If the sub-layer says nothing (zeros), post-norm passes on the normalised input, and pre-norm the input itself.

# %% tags=["active-ipynb"]
# x = torch.randn(2, 5, 32)
# post, pre = Residual(32), Residual(32, norm_first=True)
# assert torch.equal(post(x, torch.zeros_like), post.norm(x))
# assert torch.equal(pre(x, torch.zeros_like), x)

# %% [markdown] tags=["question-10"]
# ## Why is there a path around every sub-layer?
#
# Training sends a gradient from the top to the bottom. Through a sub-layer $F$ alone it is multiplied by the slope
# $F'$ at every floor; if that is a little below 1, little is left after many floors. With the path the
# slope is that of $x + F(x)$, which is $1 + F'(x)$: the 1 carries the gradient past any sub-layer. (In the paper's order the LayerNorm behind it scales the sum, and so the 1; the picture shows that little is lost.)
#
# We stack 16 small networks, each two matrices with a ReLU between them (it turns negative numbers into 0), in four ways:

# %% tags=["active-ipynb"]
# ways = {
#     "no path": lambda f: f,
#     "LayerNorm, no path": lambda f: nn.Sequential(f, LayerNorm(32)),
#     "post-norm (the paper)": lambda f: toys.Floor(Residual(32, 0.0), f),
#     "pre-norm": lambda f: toys.Floor(Residual(32, 0.0, norm_first=True), f),
# }

# %% [markdown]
# Two measurements at every height before training: how large are the vectors, and how large is the gradient that
# arrives there from the top? Then each tower gets one matrix on top, and is trained for 80 steps on a simple task: put out the 32
# input numbers in another, fixed order. The matrix could do it alone if it could see the input. (The loops stand in `transformer/toys.py`, as does `Floor`, a wrapper and its sub-layer in one.)

# %% tags=["active-ipynb"]
# sizes, gradients, losses = {}, {}, {}
# for way, build in ways.items():
#     torch.manual_seed(0)
#     floors = [build(toys.small_network(32)) for _ in range(16)]
#     sizes[way], gradients[way] = toys.sizes_and_gradients(floors, 32)
#     losses[way] = toys.learn_to_reorder(floors, 32, steps=80, lr=3e-3)

# %% tags=["active-ipynb"]
# left, middle, right = plotting.new_axes(4, 3.4, columns=3)
# plotting.lines(
#     range(17),
#     gradients,
#     "height (0 is the input)",
#     "gradient, top = 1",
#     log="y",
#     ax=left,
# )
# plotting.lines(
#     range(17),
#     sizes,
#     "height (0 is the input)",
#     "standard deviation of the vectors",
#     log="y",
#     ax=middle,
# )
# plotting.lines(range(80), losses, "training step", "mean squared error", ax=right);

# %% tags=["active-ipynb"]
# no_path, only_norm, post_norm, pre_norm = (sum(losses[way][-20:]) / 20 for way in ways)
# assert gradients["no path"][0] < 0.01
# assert 0.1 < gradients["post-norm (the paper)"][0] < 10
# assert min(no_path, only_norm) > 0.94 and max(post_norm, pre_norm) < 0.9

# %% [markdown]
# Left, from the top (height 16) down: with neither path nor LayerNorm the gradient fades by orders of magnitude; with either it arrives. Middle: the
# same for the signal on its way up. (LayerNorm's line in the middle lies under post-norm's.) Yet
# (right) LayerNorm alone does not help: in 80 steps both towers without a path stay near an error of 1, that of always answering 0. Without a
# LayerNorm too little arrives to be read. With it the size is right, but 16 networks in a row probably leave little of what came in. The path keeps the input readable, and both towers with
# a path learn.

# %% [markdown]
# ## Post-norm or pre-norm?
#
# In post-norm every floor rescales the path too: the vectors keep size 1, and the input's part in them
# shrinks floor by floor. In pre-norm nothing touches the path: the vectors grow with every
# addition. So in the right picture pre-norm's error starts higher. (A real pre-norm stack ends with one more LayerNorm;
# then it would start where post-norm's does.) Here it learns faster all the same, probably because more of the input can still be read at its top. Xiong et al. (2020) show why post-norm needs a slow
# start, the warm-up of notebook 12: before any training the gradients *of its weights* are largest near the output (the left picture has those of the vectors). With the warm-up, the paper's order trains well.

# %% [markdown]
# ## The layer
#
# One floor of the encoder has two sub-layers (Section 3.1): self-attention, where query, key and value ([01](01_recurrence.ipynb);
# more in 04) all come from the same words, then the position-wise network. The decoder's floor has a third between the two: attention
# whose queries come from the decoder and whose keys and values come from the encoder's output, called `memory` here. So one class is
# enough, in which this cross-attention may be left out. All sub-layers are handed in, each gets its own `Residual`, and a mask says
# who may look at whom; its axis h is for the heads of 04.

# %%
class Layer(nn.Module):
    """Self-attention, attention over a memory if there is any, network (Section 3.1).

    self_attention and cross_attention(query, key, value, mask, cache) and
    feed_forward(x) are any modules that keep the shape of their first argument;
    residual() makes what goes around each. An encoder's layer has no cross_attention.
    """

    def __init__(self, residual: Callable, self_attention: nn.Module,
                 feed_forward: nn.Module, cross_attention: nn.Module | None = None):
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        sublayers = 2 if cross_attention is None else 3
        self.residuals = nn.ModuleList(residual() for _ in range(sublayers))

    def forward(self, x: Tensor, mask: Tensor | None = None,
                memory: Tensor | None = None, memory_mask: Tensor | None = None,
                caches: tuple = (None, None)) -> Tensor:
        """x (B, T, d_model), memory (B, S, d_model) -> (B, T, d_model).

        mask is broadcastable to (B, h, T, T), memory_mask to (B, h, T, S), True = may
        attend. caches: what the two attentions remember in when they generate step by
        step (notebook 15); memory may then be None, if the second cache holds its keys
        and values.
        """
        own, of_memory = caches
        x = self.residuals[0](x, lambda x: self.self_attention(x, x, x, mask, own))
        if self.cross_attention is not None:
            read = partial(self.cross_attention, key=memory, value=memory,
                           mask=memory_mask, cache=of_memory)
            x = self.residuals[1](x, read)
        return self.residuals[-1](x, self.feed_forward)


# %% [markdown]
# The stand-in for attention is a plain average: every position gets the mean of the values it may see. Real attention
# is an average too, with weights that depend on the words. The small network stands in for the position-wise one. Is the
# encoder's layer what the formula says, step by step?

# %% tags=["active-ipynb"]
# layer = Layer(lambda: Residual(32, P_drop=0.0), toys.Average(), toys.small_network(32))
# x = torch.randn(2, 5, 32)
# after_attention = F.layer_norm(x + x.mean(dim=1, keepdim=True), (32,))  # the formula
# after_network = after_attention + layer.feed_forward(after_attention)
# assert torch.allclose(layer(x), F.layer_norm(after_network, (32,)), atol=1e-5)

# %% [markdown]
# In the decoder's layer, self-attention is masked, so that position $t$ sees only positions up to $t$. Who can see whom?
# Ask the gradient: does the output at position $t$ change with an input at position $s$?

# %% tags=["active-ipynb"]
# layer = Layer(
#     lambda: Residual(32, P_drop=0.0),
#     toys.Average(),
#     toys.small_network(32),
#     cross_attention=toys.Average(),
# )
# x = torch.randn(1, 5, 32, requires_grad=True)
# memory = torch.randn(1, 6, 32, requires_grad=True)
# so_far = torch.ones(5, 5, dtype=torch.bool).tril()  # position t sees positions up to t
# y = layer(x, so_far, memory)[0]
# seen = [
#     torch.autograd.grad((y[t] * torch.randn(32)).sum(), (x, memory), retain_graph=True)
#     for t in range(5)
# ]
# own, source = (torch.stack([g[i][0].norm(dim=-1) > 0 for g in seen]) for i in (0, 1))
# panels = [
#     ("target positions", own, range(5), range(5)),
#     ("source positions", source, range(6), range(5)),
# ]
# plotting.heatmaps(panels, labels=("depends on", "output"), largest=1.0)
# assert torch.equal(own, so_far) and source.all()

# %% [markdown]
# Yellow is "depends on". The output at each target position depends on the target up to there, never on later words, and on the whole source.

# %% [markdown]
# ## Towers of six
#
# The rest is repetition: $N = 6$ layers, one after the other, each with its own weights. The pre-norm variant gets its
# last LayerNorm here; the paper's post-norm needs none.

# %%
class Stack(nn.Module):
    """N layers, one after the other; final_norm is for pre-norm stacks only.

    The arguments of forward are those of a `Layer`, but for caches: None, or a pair for
    each layer.
    """

    def __init__(self, layers: Iterable[nn.Module],
                 final_norm: nn.Module | None = None):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.final_norm = final_norm or nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None,
                memory: Tensor | None = None, memory_mask: Tensor | None = None,
                caches: Sequence | None = None) -> Tensor:
        if caches is None:
            caches = [(None, None)] * len(self.layers)
        if len(caches) != len(self.layers):
            raise ValueError(f"{len(self.layers)} layers need as many pairs of caches, "
                             f"not {len(caches)}")
        for layer, pair in zip(self.layers, caches):
            x = layer(x, mask, memory, memory_mask, pair)
        return self.final_norm(x)


# %% [markdown]
# Encoder and decoder are both stacks. The decoder hands the *same* memory, the top of the encoder, to each of its layers.

# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# def toy_layer(cross_attention=None):
#     return Layer(
#         lambda: Residual(512, P_drop=0.0),
#         toys.Average(),
#         toys.small_network(512),
#         cross_attention,
#     )
#
# encoder = Stack([toy_layer() for _ in range(6)])
# decoder = Stack([toy_layer(toys.Average()) for _ in range(6)])
# source, target = torch.randn(2, 7, 512), torch.randn(2, 5, 512)
# memory = encoder(source)
# output = decoder(target, so_far, memory)
# print("memory", tuple(memory.shape), " output", tuple(output.shape))

# %% [markdown]
# Seven source words, five target words, two sentences: the memory has one vector for each source word, the output one for each target
# word, all 512 wide. The two lengths may differ, because attention takes any number of queries and any number of keys.

# %% [markdown]
# ## Checks
#
# **LayerNorm equals torch's**, in the output and in all three gradients, at float64.

# %% tags=["active-ipynb"]
# x, gain, bias, weight = (
#     torch.randn(*s, dtype=torch.float64, requires_grad=True)
#     for s in [(3, 4, 64), (64,), (64,), (3, 4, 64)]
# )
#
# def with_gradients(output):
#     return output, *torch.autograd.grad((output * weight).sum(), (x, gain, bias))
#
# ours = with_gradients(layer_norm(x, gain, bias))
# theirs = with_gradients(F.layer_norm(x, (64,), gain, bias))
# differences = [(a - b).abs().max().item() for a, b in zip(ours, theirs)]
# print(f"largest difference {max(differences):.1e}")
# assert max(differences) < 1e-9

# %% [markdown]
# **A tower is its layers in order**, and before training post-norm leaves every vector with mean 0 and variance 1. That a whole layer,
# with real attention inside, equals torch's own `nn.TransformerEncoderLayer` and `nn.TransformerDecoderLayer` is
# checked in `tests/test_stacks.py`.

# %% tags=["active-ipynb"]
# by_hand = source
# for layer in encoder.layers:
#     by_hand = layer(by_hand)
# assert torch.equal(encoder(source), by_hand)
# assert by_hand.mean(-1).abs().max() < 1e-5
# assert (by_hand.var(-1, correction=0) - 1).abs().max() < 1e-3

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** Write the output of `pre`, the pre-norm wrapper from above, with `pre.norm`, `sublayer` and `x` (without dropout).

# %% tags=["active-ipynb"]
# x, sublayer = torch.randn(2, 5, 32), toys.small_network(32)
# your_answer = ...
# if your_answer is not ...:
#     assert torch.allclose(pre.eval()(x, sublayer), your_answer, atol=1e-6)

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_answer = x + sublayer(pre.norm(x))`. Only the sub-layer sees the normalised vectors.
# </details>
#
# **2.** In a pre-norm tower, suppose the input has variance 1 and every sub-layer adds something independent with
# variance 1/2. What is the standard deviation after `n` floors? Compare the curve in the middle picture.

# %% tags=["active-ipynb"]
# def your_deviation(n):
#     return ...
#
# if your_deviation(0) is not ...:
#     parts = torch.cat([torch.randn(1, 10**5), 0.5**0.5 * torch.randn(16, 10**5)])
#     heights = parts.cumsum(dim=0)  # the sums, floor by floor
#     assert all(abs(heights[n].std() / your_deviation(n) - 1) < 0.02 for n in range(17))

# %% [markdown]
# <details><summary>Solution</summary>
#
# `return (1 + n / 2) ** 0.5`: variances of independent parts add. After 16 floors it is 3, as in the picture. The square root
# flattens, so late floors change the vector little. With post-norm it is 1 at every height.
# </details>

# %% [markdown]
# ## Next
#
# [04 Attention](04_attention.ipynb) fills the first kind of sub-layer. In Colab the next notebook imports this
# module from the installed package; to try changes of your own, clone the repository and install it with `pip install -e .`.
