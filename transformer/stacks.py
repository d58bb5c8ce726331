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
# The Transformer consists of two stacks of layers, an encoder and a decoder. Section 3.1 of the paper says how a layer looks from
# outside: two or three sub-layers, each with a path around it and a normalisation after it. At the end of this
# notebook you will have built both stacks, and will have measured what the paths are for. Reading takes about 25 minutes, running half a minute.
#
# What happens inside the sub-layers is the subject of notebooks [04](04_attention.ipynb) and [05](05_feed_forward.ipynb). Until then simple stand-ins take
# their place.

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
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% [markdown]
# The next cell holds what only the pictures and checks need. It is no part of `transformer.stacks`, the module made from this notebook.

# %% tags=["active-ipynb"]
# from functools import partial
#
# from transformer import views
# from transformer.teaching import toys
# from transformer.views import plotting
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small a second thread only waits

# %% [markdown]
# ## The two stacks
#
# Every word is a vector of `d_model` numbers (512 in the paper's base model) and keeps this width from the bottom of a stack to its top.
# There are two kinds of sub-layer. **Attention** lets positions exchange information. The
# **position-wise network** works on each position by itself. The encoder reads the whole source sentence. The
# decoder reads the target words written so far, consults the encoder's result, and scores the next word. After the
# paper's Figure 1, to be read from the bottom to the top:

# %% tags=["active-ipynb"]
# views.two_stacks()

# %% [markdown]
# A pale frame is one layer, and there are six of each kind. Attention is blue ([04](04_attention.ipynb)), the position-wise, or *feed-forward*, network orange ([05](05_feed_forward.ipynb)). *Self*-attention means that the words of one sentence
# look at each other, and *causal* that each word sees only itself and the words before it (the later ones are not written yet). The thick grey-violet line is the path around the sub-layers: each of them reads from it, and is added to it. The sum is normalised, which this picture leaves out. The blue line leaves the *top* of the encoder and
# goes to *every* layer of the decoder.
#
# We build from the small to the large: normalisation, path, layer, stack.

# %% [markdown]
# ## Layer normalisation
#
# Every sub-layer adds something to each vector, and a sum of many parts grows. LayerNorm (Ba et al., 2016) brings a vector back to a standard size: it subtracts
# the mean of the vector's numbers and divides by their standard deviation. Two learned vectors, a gain $g$ and a bias $b$, then set
# another size and mean where that helps. For a vector $x$ of $d$ numbers
#
# $$\mathrm{LayerNorm}(x) = g \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + b, \qquad
# \mu = \frac{1}{d}\sum_i x_i, \quad \sigma^2 = \frac{1}{d}\sum_i (x_i - \mu)^2$$
#
# where $\odot$ multiplies number by number. Each position of each sentence is normalised by itself. The small $\epsilon$ prevents a division by zero.


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


# %% [markdown]
# Three short vectors show what it does (`# NBVAL_CHECK_OUTPUT` is for the project's tests):

# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# rows = torch.tensor(
#     [[1.0, 2.0, 3.0, 6.0], [105.0, 110.0, 115.0, 130.0], [7.0, 7.0, 7.0, 7.0]]
# )
# for row, normed in zip(rows.tolist(), layer_norm(rows, 1, 0).tolist()):
#     print(row, "->", [round(value, 3) + 0.0 for value in normed])  # no -0.0

# %% [markdown]
# The first row by hand: the mean is 3, the differences are $-2, -1, 0, 3$, the variance is $(4 + 1 + 0 + 9)/4 = 3.5$; divided by
# $\sqrt{3.5} = 1.871$ the differences become $-1.069, -0.535, 0, 1.604$. The second row is 5 times the first plus 100. It has the same pattern
# and therefore the same result. The third row has no pattern at all and gives zeros, because $\epsilon$ keeps the division possible.
#
# The class learns gain and bias, and leaves the formula to torch's faster version.


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
# Our formula and torch's version agree in the output and in the gradients of the vectors, the gain and the bias:

# %% tags=["active-ipynb"]
# shapes = [(3, 4, 64), (64,), (64,)]
# inputs = [torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in shapes]
# weight = torch.randn(3, 4, 64, dtype=torch.float64)
#
#
# def with_gradients(output):
#     return output, *torch.autograd.grad((output * weight).sum(), inputs)
#
#
# x, gain, bias = inputs
# ours = with_gradients(layer_norm(x, gain, bias))
# theirs = with_gradients(F.layer_norm(x, (64,), gain, bias))
# worst = max((a - b).abs().max().item() for a, b in zip(ours, theirs))
# assert worst < 1e-9
# print(f"output and three gradients equal torch's; largest difference {worst:.0e}")

# %% [markdown]
# Some well-known implementations, that of The Annotated Transformer among them, differ in two details: they divide the variance by $d - 1$, and they add $\epsilon$
# *outside* the root. How much does that change?

# %% tags=["active-ipynb"]
# def others(x, eps=1e-5):
#     spread = x.std(-1, keepdim=True)  # torch's std divides by d - 1
#     return (x - x.mean(-1, keepdim=True)) / (spread + eps)
#
#
# for d in (4, 512):
#     x = torch.randn(d, dtype=torch.float64)
#     print(f"d = {d}: theirs is {(others(x) / layer_norm(x, 1, 0)).mean():.4f} of ours")
# nearly_flat = 7 + 1e-9 * torch.randn(512, dtype=torch.float64)
# slopes = [
#     torch.autograd.functional.jacobian(f, nearly_flat).abs().max()
#     for f in (lambda x: layer_norm(x, 1, 0), others)
# ]
# print("largest slope on a flat row: ours {:,.0f}, theirs {:,.0f}".format(*slopes))

# %% [markdown]
# Dividing by $d - 1$ multiplies the result by $\sqrt{(d-1)/d}$: it is 13% smaller at $d = 4$ and 0.1% at $d = 512$, where the gain can make
# up for it. The place of $\epsilon$ matters for a vector with almost no pattern. The steepest slope there is $1/\sqrt{\epsilon} = 316$
# for the formula above, and $1/\epsilon = 100{,}000$ with $\epsilon$ outside the root, and a gradient that passes such a vector is multiplied by as much.

# %% [markdown]
# ## A path around every sub-layer
#
# Section 3.1 wraps each sub-layer in a *residual connection* (He et al., 2016): the sub-layer's output is *added* to its input, and the sum is normalised.
#
# $$\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$$
#
# A sub-layer therefore does not replace a word's vector but corrects it. Dropout (notebook [13](13_regularization.ipynb)) sets a random
# tenth of the sub-layer's output to zero during training, before the sum. This order is called **post-norm**. Many later
# models normalise what goes *into* the sub-layer and leave the path alone:
#
# $$x + \mathrm{Sublayer}(\mathrm{LayerNorm}(x))$$
#
# **Deviation (a switch, off by default):** this **pre-norm** order is `norm_first=True` in the configuration of the package's models.


# %%
class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))): Section 3.1, with Section 5.4's dropout."""

    def __init__(self, d_model: int, P_drop: float = 0.1):
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(P_drop)

    def forward(self, x: Tensor, sublayer: Callable) -> Tensor:
        return self.norm(x + self.dropout(sublayer(x)))


# %%
class PreNorm(Residual):
    """x + Dropout(Sublayer(LayerNorm(x))), the later order."""

    def forward(self, x: Tensor, sublayer: Callable) -> Tensor:
        return x + self.dropout(sublayer(self.norm(x)))


# %% tags=["active-ipynb"]
# x = torch.randn(2, 5, 32)
# post, pre = Residual(32), PreNorm(32)
# assert torch.equal(post(x, torch.zeros_like), post.norm(x))
# assert torch.equal(pre(x, torch.zeros_like), x)
# print(
#     "around a sub-layer that puts out zeros, post-norm gives the normalised input,"
#     "\nand pre-norm the input itself"
# )

# %% [markdown] tags=["question-10"]
# ## Why is there a path around every sub-layer?
#
# Three explanations are common, and each can be tested.
#
# - **Size.** Each sub-layer makes its vectors a little smaller, until nothing is left. If so, an initialisation that
#   keeps the size would do as well as a path.
# - **Length of the gradient.** On its way down the gradient is multiplied by the slope of each sub-layer and fades. If so, anything that keeps
#   its length would do.
# - **Information.** Random sub-layers mix what passes, whatever its size: the top cannot make out the input, nor the bottom the top's gradient. If so, a path for only one of the two will not do.

# %% [markdown]
# We stack twelve small networks, as many as the paper's encoder has sub-layers, in five ways. Each has two matrices with a ReLU between them, which turns negative numbers into 0. "He" is the initialisation of He et al. (2015): the second matrix is larger by $\sqrt 2$, to make up for the ReLU. LayerNorm
# is used here without gain and bias.

# %% tags=["active-ipynb"]
# norm = nn.LayerNorm(32, elementwise_affine=False)
# he = partial(toys.Networks, gain=2**0.5)  # He et al. (2015): keeps the size of vectors
# ways = {
#     "no path": (lambda x, f: f(x), toys.Networks),
#     "no path, He": (lambda x, f: f(x), he),
#     "LayerNorm, no path": (lambda x, f: norm(f(x)), toys.Networks),
#     "post-norm (the paper)": (lambda x, f: norm(x + f(x)), toys.Networks),
#     "pre-norm": (lambda x, f: x + f(norm(x)), toys.Networks),
# }
#
#
# def twelve(way, runs):
#     wrapper, networks = ways[way]
#     layers = [toys.Wrapped(wrapper, networks(runs, 32)) for _ in range(12)]
#     if way == "pre-norm":  # a pre-norm stack ends with one more LayerNorm
#         layers[-1] = nn.Sequential(layers[-1], norm)
#     return layers

# %% [markdown]
# The networks of five seeds run side by side. Before any training we send random vectors up and random gradients down, and measure four things
# at each height: the size of the vectors; the length of the gradient; how much of the *input* a linear map can still read from the vectors there; and how much of the *gradient that entered at
# the top* a linear map can read from the gradient there. The last two are shares of variance, $R^2$, on vectors that the linear map was not fitted to: 1 means all, and 0, or a little less by chance, nothing.

# %% tags=["active-ipynb"]
# start = {}
# for way in ways:
#     torch.manual_seed(0)
#     start[way] = toys.up_and_down(twelve(way, runs=5), runs=5, d_model=32)
#
# panels = {
#     "size": ("standard deviation", "Size of the vectors"),
#     "length": ("length, top = 1", "Length of the gradient"),
#     "input": ("share of variance", "What can still be read of the input"),
#     "message": ("share of variance", "What can be read of the top's gradient"),
# }
# height = "height (0 = input, 12 = top)"
# axes = plotting.new_axes(5, 3.1, rows=2, columns=2).flatten()
# for ax, (name, labels) in zip(axes, panels.items()):
#     curves = {way: measured[name].mean(dim=1) for way, measured in start.items()}
#     log = "y" if name in ("size", "length") else ""
#     plotting.lines(range(13), curves, height, *labels, log=log, ax=ax)
#     if name != "size":  # names in one panel are enough
#         ax.get_legend().set_visible(False)

# %% [markdown]
# The upper row belongs to the first two explanations, the lower row to the third. Only the plain stack without a path loses the size of its vectors and the length of its gradient; He's initialisation or a LayerNorm
# keeps both. Yet in the lower row the three stacks without a path are alike: at the top at most 0.05 can be read of the input, and at the bottom nothing of the gradient that came from the top. (There the first two curves lie on each other; above left, LayerNorm's and post-norm's.) The two stacks with a path keep more of both, and pre-norm more than post-norm, which rescales the path in every layer. (Pre-norm's last bend is its final LayerNorm.)

# %% [markdown]
# Which of these matters for learning? The stacks get a task: put out the 32 input numbers in another, fixed order. One matrix stands on top, and could do
# the task alone if it could read the input. To separate signal from gradient we also cut the path in halves, which
# no real model would do: `x.detach()` passes a value on but no gradient, and `x - x.detach()` is zero and passes a gradient.
#
# One more stack has no path at all, but *starts* as if it had one. Because $\mathrm{ReLU}(x) - \mathrm{ReLU}(-x) = x$, a network with more hidden units can hold
# the path in its weights: at the start it computes $x + F(x)$, and training may then do with these weights what it likes. A random network of the same width stands beside it.

# %% tags=["active-ipynb"]
# ways |= {
#     "path for the signal only": (lambda x, f: norm(x.detach() + f(x)), toys.Networks),
#     "path for the gradient only": (
#         lambda x, f: norm(x - x.detach() + f(x)),
#         toys.Networks,
#     ),
#     "path in the weights": (lambda x, f: norm(f(x)), toys.starting_as_path),
#     "random, as wide": (lambda x, f: norm(f(x)), partial(toys.Networks, hidden=96)),
# }
# for way in list(ways)[5:]:
#     torch.manual_seed(0)
#     start[way] = toys.up_and_down(twelve(way, runs=5), runs=5, d_model=32)

# %% [markdown]
# Each stack is trained by Adam ([12](12_optimizer.ipynb)) for 150 steps with five seeds at each of three learning rates. What counts is the mean error of the last 20 steps, at the rate where it is smallest (in the table below). Always answering 0 has an error of 1. The
# number after ± is the standard deviation over the seeds.

# %% tags=["active-ipynb"]
# rates = (0.001, 0.003, 0.01)
#
#
# def learned(way, top_alone=False):
#     """At the best rate: the error at each step, and at the end by seed. And by rate."""
#     torch.manual_seed(0)
#     layers = twelve(way, runs=15)
#     for layer in layers:
#         layer.requires_grad_(not top_alone)
#     rate_of_run = [rate for rate in rates for seed in range(5)]
#     losses = toys.learn_to_reorder(layers, 32, rate_of_run, steps=150)
#     by_rate = losses.unflatten(1, (3, 5))  # (steps, rates, seeds)
#     last = by_rate[-20:].mean(dim=0)  # of the last 20 steps
#     best = last.mean(dim=1).argmin()
#     return by_rate[:, best].mean(dim=1), last[best], last.mean(dim=1)
#
#
# curves, ends, by_rate = {}, {}, {}
# for way in ways:
#     curves[way], ends[way], by_rate[way] = learned(way)

# %% tags=["active-ipynb"]
# print(f"{'':26} vectors  gradient   read of    read of   error after    best")
# print(f"{'':26}  at top    at foot   input  gradient     150 steps    rate")
# for way, measured in start.items():
#     size, of_input = (measured[name][-1].mean() for name in ("size", "input"))
#     length, of_gradient = (measured[name][0].mean() for name in ("length", "message"))
#     print(
#         f"{way:26} {size:7.2g} {length:9.2g} {of_input:9.2f} {of_gradient:9.2f}"
#         f"   {ends[way].mean():.2f} ± {ends[way].std():.2f}"
#         f"   {rates[by_rate[way].argmin()]}"
#     )

# %% tags=["active-ipynb"]
# smooth = {way: curve.unfold(0, 10, 10).mean(dim=1) for way, curve in curves.items()}
# whole, cut = list(ways)[:5], list(ways)[5:]
# cut.insert(3, "post-norm (the paper)")  # drawn as in the left panel
# axes = plotting.new_axes(5, 3.4, columns=2, sharey=True)
# titles = (
#     "Only stacks that start with a path learn",
#     "Half a path does not help, one in the weights does",
# )
# for ax, names, title in zip(axes, (whole, cut), titles):
#     shown = {way: smooth[way] for way in names}
#     plotting.lines(
#         range(5, 150, 10), shown, "training step", "mean squared error", title, ax=ax
#     )
# axes[0].set_ylim(0, 1.6);

# %% tags=["active-ipynb"]
# good = [way for way in ways if ends[way].max() < 0.85]
# assert good == ["post-norm (the paper)", "pre-norm", "path in the weights"]
# assert all(ends[way].min() > 0.9 for way in ways if way not in good)
# print("learned, with all five seeds:", ", ".join(good))
# way = "path for the signal only"
# _, alone, alone_by_rate = learned(way, top_alone=True)
# print(
#     f"{way}: {ends[way].mean():.2f} ± {ends[way].std():.2f}; where only the top "
#     f"learns {alone.mean():.2f} ± {alone.std():.2f}"
# )
# for rate, layers, top in zip(rates, by_rate[way], alone_by_rate):
#     print(f"  at a rate of {rate}: {layers:.2f}, the top alone {top:.2f}")
# assert alone.max() < ends[way].min()

# %% [markdown]
# For this task and depth the measurements say:
#
# - **Neither size nor length.** With He's initialisation the vectors at the top and the gradient at the bottom have the right size without a path, and hardly anything is learned.
# - **Information, both ways.** With a path for the signal only, as much of the input can be read at the top as in post-norm, but nothing can be read of the gradient at the bottom, and hardly anything is learned. With a path for the gradient only it is the other way round, and no better. (Their gradients at the bottom have the wrong size, but Adam divides by it.)
# - **The start is most of it.** A stack without any path learns if it *starts* as $x + F(x)$. Its extra width is not the reason, since random networks as wide do not learn.

# %% [markdown]
# The top matrix could do much of it alone: on untrained layers the best matrix has an error of 1 minus what can be read of the input, 0.74 in post-norm and 0.48 in pre-norm. With a path for the signal only the same 0.74 was possible. The top alone, on layers that stay as they are, gets as far as 0.81 in these 150 steps; with the layers trained as well it is 0.95. (Each at its best rate: at the lowest of three, training the layers helps; at the other two the gradients that reach them do harm.)

# %% [markdown]
# So the paths let every layer begin as a correction of its input, and both the signal and the gradient reach all layers with some of their content. How training undoes
# the mixing without paths, if it ever does, these 150 steps do not show. Balduzzi et al. (2017) study such *shattered* gradients.

# %% [markdown]
# ## Post-norm or pre-norm?
#
# Here pre-norm learns faster, and more of the input can be read at its top. Whether the one causes the other we have not tested. At real depth the two orders differ as well. Xiong et al. (2020)
# show that before training the gradients of a post-norm model's *weights* are largest near the output, and that such a model needs a slow start, the warm-up of notebook [12](12_optimizer.ipynb).
# With it the paper trained six post-norm layers. That is no guarantee: in notebook [17](17_variations.ipynb) a model of four layers in
# the paper's order hardly learns at a high learning rate, and does learn at a quarter of it, or as pre-norm.

# %% [markdown]
# ## The layer
#
# A layer of the encoder has two sub-layers: self-attention, where query (what looks), key (what it is compared with) and value (what is fetched; all in 04) come from the same words, and the position-wise network. A layer of the decoder has a third one between the two: attention
# whose queries come from the decoder and whose keys and values come from the encoder's output, called `memory` here. All sub-layers are handed in, and each gets its own `residual`. A mask says
# which position may look at which; it has the shape (B, h, T, S) or one that broadcasts to it: B sentences, h heads (04), T positions that look, S that are looked at.


# %%
class EncoderLayer(nn.Module):
    """x (B, S, d_model): its tokens look at each other, then each passes the network.

    self_attention(query, key, value, mask) and feed_forward(x) are any modules that keep
    the shape of their first argument; residual(d_model, P_drop) goes around each.
    """

    def __init__(
        self,
        self_attention: nn.Module,
        feed_forward: nn.Module,
        d_model: int,
        P_drop: float = 0.1,
        residual: Callable = Residual,
    ):
        super().__init__()
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.residuals = nn.ModuleList(residual(d_model, P_drop) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.residuals[0](x, lambda x: self.self_attention(x, x, x, mask))
        return self.residuals[1](x, self.feed_forward)


# %%
class DecoderLayer(nn.Module):
    """x (B, T, d_model) looks at itself, then at memory (B, S, d_model)."""

    def __init__(
        self,
        self_attention: nn.Module,
        cross_attention: nn.Module,
        feed_forward: nn.Module,
        d_model: int,
        P_drop: float = 0.1,
        residual: Callable = Residual,
    ):
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.residuals = nn.ModuleList(residual(d_model, P_drop) for _ in range(3))

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        source_mask: Tensor | None = None,
    ) -> Tensor:
        x = self.residuals[0](x, lambda x: self.self_attention(x, x, x, mask))
        x = self.residuals[1](
            x, lambda x: self.cross_attention(x, memory, memory, source_mask)
        )
        return self.residuals[2](x, self.feed_forward)


# %% [markdown]
# The stand-in for attention is a plain average: every position gets the mean of the vectors it may see. Real attention
# is an average too, with weights that depend on the words. The small network stands in for the position-wise one. An
# encoder's layer then does what the formula says:

# %% tags=["active-ipynb"]
# def toy_encoder_layer(residual=Residual, d_model=32):
#     network = toys.small_network(d_model)
#     return EncoderLayer(toys.Average(), network, d_model, 0.0, residual)
#
#
# def toy_decoder_layer(d_model=32):
#     network = toys.small_network(d_model)
#     return DecoderLayer(toys.Average(), toys.Average(), network, d_model, 0.0)
#
#
# layer, x = toy_encoder_layer(), torch.randn(2, 5, 32)
# attended = F.layer_norm(x + x.mean(dim=1, keepdim=True), (32,))  # by hand
# by_hand = F.layer_norm(attended + layer.feed_forward(attended), (32,))
# assert torch.allclose(layer(x), by_hand, atol=1e-5)
# print("an encoder's layer equals its two formulas")

# %% [markdown]
# This stand-in shows one more thing that the path does. An average over all positions is the same vector for all of them. Without a path the words of a sentence
# would be equal after one sub-layer:

# %% tags=["active-ipynb"]
# class NoPath(Residual):
#     def forward(self, x, sublayer):
#         return self.norm(sublayer(x))
#
#
# for residual in (Residual, NoPath):
#     x, shares = torch.randn(2, 5, 32), []
#     for layer in [toy_encoder_layer(residual) for _ in range(6)]:
#         x = layer(x)
#         shares.append((x.var(dim=1).mean() / x.var()).item())
#     print(
#         f"{residual.__name__:9} share of the variance between positions, by layer:",
#         *(f"{share:.1g}" for share in shares),
#     )
# assert shares[0] < 1e-6

# %% [markdown]
# With the path they become alike slowly instead of at once: after six layers 0.002 of the variance is left. Real attention has other weights at each position, but
# Dong et al. (2021) prove that in stacks of attention alone words become alike quickly all the same, and that paths counteract it.
#
# In the decoder self-attention is masked, so that position $t$ sees only positions up to $t$. Which output depends on
# which input? Output $t$ does not depend on input $s$ where its gradient with respect to $s$ is zero.

# %% tags=["active-ipynb"]
# layer = toy_decoder_layer()
# x = torch.randn(1, 5, 32, requires_grad=True)
# memory = torch.randn(1, 6, 32, requires_grad=True)
# so_far = torch.ones(5, 5, dtype=torch.bool).tril()  # position t sees positions up to t
# y = layer(x, memory, so_far)[0]
# seen = [
#     # the plain sum of normalised numbers is always 0
#     torch.autograd.grad((y[t] * torch.randn(32)).sum(), (x, memory), retain_graph=True)
#     for t in range(5)
# ]
# of_x, of_memory = zip(*seen)
# own = torch.cat(of_x).norm(dim=-1) > 0
# source = torch.cat(of_memory).norm(dim=-1) > 0
# panels = [
#     ("target: nothing later is seen", own, range(5), range(5)),
#     ("source: everything is seen", source, range(6), range(5)),
# ]
# plotting.heatmaps(
#     panels, labels=("input position", "output position", "depends"), largest=1.0
# )
# assert torch.equal(own, so_far) and source.all()
# print("no output depends on a later target position; each depends on the whole source")

# %% [markdown]
# ## Stacks of six
#
# The rest is repetition: $N = 6$ layers, one after the other, each with its own weights. (A pre-norm stack would need one more LayerNorm at its end; the paper's post-norm stack needs none.) What
# the layers get besides `x`, masks and memory, is the same for all of them: the `context`.


# %%
class Stack(nn.Module):
    """N layers, one after the other: x (B, n, d_model) -> the same shape."""

    def __init__(self, layers: Iterable[nn.Module]):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor, *context) -> Tensor:
        for layer in self.layers:
            x = layer(x, *context)
        return x


# %% [markdown]
# Encoder and decoder are both stacks. The decoder hands the *same* memory, the top of the encoder, to each of its layers.

# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# encoder = Stack(toy_encoder_layer(d_model=512) for _ in range(6))
# decoder = Stack(toy_decoder_layer(d_model=512) for _ in range(6))
# source, target = torch.randn(2, 7, 512), torch.randn(2, 5, 512)
# memory = encoder(source)
# output = decoder(target, memory, so_far)
# print("memory", tuple(memory.shape), " output", tuple(output.shape))

# %% [markdown]
# The batch has two sentences, of seven source words and five target words. The memory has one vector for each source word and the output one for each target
# word, all of width 512. The two lengths may differ, because attention takes any number of queries and any number of keys.
# (That a layer with real attention inside equals torch's own is checked in `tests/test_stacks.py`.)

# %% tags=["active-ipynb"]
# by_hand = source
# for layer in encoder.layers:
#     by_hand = layer(by_hand)
# assert torch.equal(memory, by_hand)
# assert memory.mean(-1).abs().max() < 1e-5
# assert (memory.var(-1, correction=0) - 1).abs().max() < 1e-3
# print(
#     "a stack equals its layers in order; untrained, every vector at the top of a"
#     "\npost-norm stack has mean 0 and variance 1"
# )

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Write LayerNorm from its formula, without looking at the definition above.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.stacks import check_layer_norm
#
#
# def my_layer_norm(x, gain, bias, eps=1e-5):
#     """(B, T, d_model) -> the same shape, normalised over the last axis."""
#     ...
#
#
# check_layer_norm(my_layer_norm)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_layer_norm(x, gain, bias, eps=1e-5):
#     mean = x.mean(dim=-1, keepdim=True)
#     variance = x.var(dim=-1, keepdim=True, unbiased=False)
#     return gain * (x - mean) / torch.sqrt(variance + eps) + bias
# ```
#
# `unbiased=False` divides by `d_model`; torch's default divides by `d_model - 1`.
# </details>
#
# **2.** Send `x` through a whole stack. `sublayers` is a list of functions, and you put a path around each; LayerNorm is
# `F.layer_norm(x, x.shape[-1:])`, without gain and bias. With `norm_first` the order is pre-norm, and the stack ends with one more LayerNorm.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.stacks import check_residual_stack
#
#
# def residual_stack(x, sublayers, norm_first):
#     """(B, T, d_model) -> (B, T, d_model), through all sub-layers in order."""
#     ...
#
#
# check_residual_stack(residual_stack)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def residual_stack(x, sublayers, norm_first):
#     def norm(x):
#         return F.layer_norm(x, x.shape[-1:])
#
#     for sublayer in sublayers:
#         if norm_first:
#             x = x + sublayer(norm(x))
#         else:
#             x = norm(x + sublayer(x))
#     return norm(x) if norm_first else x
# ```
#
# In pre-norm nothing on the path is ever rescaled before the top, so the vectors grow with each sum.
# </details>
#
# **3** (harder)**.** The gradient through LayerNorm, by hand. Given `x` and the loss's gradient at the output (with $g = 1$, $b = 0$), what is its gradient at `x`? With
# $\hat x$ for the normalised vector, every $x_i$ acts on the output directly, through $\mu$, and through $\sigma$.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.stacks import check_layer_norm_gradient
#
#
# def layer_norm_gradient(x, gradient, eps=1e-5):
#     """Gradient at the output (B, T, d_model) -> gradient at x, the same shape."""
#     ...
#
#
# check_layer_norm_gradient(layer_norm_gradient)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def layer_norm_gradient(x, gradient, eps=1e-5):
#     scale = torch.sqrt(x.var(dim=-1, keepdim=True, unbiased=False) + eps)
#     normed = (x - x.mean(dim=-1, keepdim=True)) / scale
#     through_mean = gradient.mean(dim=-1, keepdim=True)
#     through_scale = normed * (gradient * normed).mean(dim=-1, keepdim=True)
#     return (gradient - through_mean - through_scale) / scale
# ```
#
# The two parts that are subtracted are those that LayerNorm ignores: a shift of all numbers, and a common factor.
# </details>

# %% [markdown]
# ## Next
#
# [04 Attention](04_attention.ipynb) fills the first kind of sub-layer.
