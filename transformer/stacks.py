# ---
# jupyter:
#   jupytext:
#     formats: notebooks/03_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 3 · Stacks
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/03_stacks.ipynb)
#
# *Section 3.1 of the paper. Reading takes about 20 minutes, running half a minute. You need [chapter 0](00_first_transformer.ipynb).*
#
# In chapter 0 a small Transformer learned to write numbers backwards. Whatever a layer finds about a token is added to the token's vector `x`. We strike out this `x +` and change nothing else. What will the model make of 31415926? Guess before you read on. Then follow a token through the layers with one question: **what gets through, and what is lost on the way?**

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
# ## What happens if you delete `x +`?
#
# In chapter 0 every sub-layer ends with `return self.norm(x + self.dropout(sublayer(x)))`. We make a second model whose sub-layers end without the sum, and train both as in chapter 0.

# %% tags=["active-ipynb"]
# import math
#
# from transformer import views
# from transformer.first_transformer import (
#     Residual,
#     Transformer,
#     examples,
#     shown,
#     train_step,
#     write,
# )
#
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits
#
#
# class NoLane(Residual):
#     def forward(self, x, sublayer):
#         return self.norm(self.dropout(sublayer(x)))  # chapter 0: x + self.dropout(...)
#
#
# def new_model(residual):
#     torch.manual_seed(0)
#     model = Transformer(V=13, d_model=64, d_ff=128, h=4, N=2, P_drop=0.0)
#     # every sub-layer of chapter 0's model has a Residual: put ours in its place
#     for layer in [*model.encoder.layers, *model.decoder.layers]:
#         layer.residuals = nn.ModuleList(residual(64, 0.0) for _ in layer.residuals)
#     return model
#
#
# def train(model):
#     optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
#     return [train_step(model, optimizer, step) for step in range(1, 201)]
#
#
# whole_model, cut_model = new_model(Residual), new_model(NoLane)
# losses, cut_losses = train(whole_model), train(cut_model)
# # chapter 0: 0 is padding, 1 the begin mark, 2 the end mark, 3 to 12 are the digits 0 to 9
# number = torch.tensor([[int(digit) + 3 for digit in "31415926"]])
# for name, model in (("with x +:   ", whole_model), ("without x +:", cut_model)):
#     print(name, "31415926 ->", shown(write(model, number, longest=9)[0]))
# views.race({"without x +": cut_losses, "with x +": losses}, every=1, scale="linear")

# %% [markdown]
# *Follow the red line: without `x +` the model is ahead for nearly 80 updates, and then its loss hardly falls any more. The other line rests at guessing before it falls.*
#
# With `x +` the model writes the number backwards. Without `x +` it writes 1, until we stop it. Guessing costs 2.4, and this model's loss is 1.7, so it has learned *something*. What could one know about 31415926, and still answer "1" and never end?

# %% [markdown]
# ## Every token keeps its lane
#
# To see what was cut, read one layer from left to right.

# %% tags=["active-ipynb"]
# views.residual_stream()

# %% [markdown]
# *Follow the lane of "cat": each sub-layer reads from it and adds to it what it has found, and after each sum LayerNorm rescales the lane.*
#
# Each token has one violet lane. What travels on it is a vector of `d_model` numbers, from the bottom of the stack to the top. All lanes together are called the **residual stream**.
#
# Beside the lanes are the **sub-layers**. Attention reads all lanes and writes into each, and only there do tokens meet. The feed-forward network reads one lane and writes into the same one.
#
# Writing means adding. A sub-layer does not replace a word's vector but corrects it. For example, attention may add to "its" that there was a cat, and "its" is still there. The paper calls this a *residual connection* (He et al., 2016).
#
# The paper calls a sum and its norm together *add & norm*:
#
# $$\mathrm{LayerNorm}(x+\mathrm{Sublayer}(x))$$
#
# The lanes explain why the model with `x +` starts so badly. Before training, a lane still carries its own token at the top. There a token's score is the product of the lane with the token's embedding, so the model bets on the token that it has just read.

# %% [markdown] tags=["question-10"]
# ## Without lanes, all tokens become one
#
# Take two tokens with the vectors $(1,1,-1,-1)$ and $(1,-1,1,-1)$: the outer numbers are the same, and the inner ones are opposite. Attention is a weighted mean. Suppose that each token gives 0.6 of its weight to itself and 0.4 to the other. Without lanes the mean *replaces* the token, and the second number of the first token becomes $0.6\cdot 1+0.4\cdot(-1)=0.2$. With lanes the mean is *added*, and it becomes $1+0.2=1.2$. The table shows the first token; the other has the opposite inner numbers. Under it is the **cosine** between both tokens: 0 if they have nothing in common, and 1 if they point in the same direction.
#
# | |input|after one layer|after two layers|
# |---|---|---|---|
# |replaced|$(1,1,-1,-1)$|$(1,0.2,-0.2,-1)$|$(1,0.04,-0.04,-1)$|
# |cosine|0|0.92|0.997|
# |added|$(1,1,-1,-1)$|$(2,1.2,-1.2,-2)$|$(4,1.44,-1.44,-4)$|
# |cosine|0|0.47|0.77|
#
# What the tokens have in common stays, and what tells them apart shrinks. A lane does not stop this mixing, but it makes it much slower.
#
# The table leaves out LayerNorm, which would change no cosine here: vectors with mean 0 are only rescaled. It also leaves out what is learned, the matrices of attention and the network. They might find a way out. A head could give all its weight to one token, which mixes nothing. A feed-forward network could pull apart tokens that still differ a little; only equal ones stay equal.
#
# Did our cut model find such a way out? Here are the cosines between its eight digits on their way through the encoder. The vectors at the top are called the **memory**. How will they look in the cut model?

# %% tags=["active-ipynb"]
# def made_by(modules, model, *inputs):
#     """What each of these modules of a model returns while the model runs."""
#     # torch calls a hook each time that its module has returned something
#     made = []
#     hooks = [
#         module.register_forward_hook(lambda module, given, result: made.append(result))
#         for module in modules
#     ]
#     model(*inputs)
#     for hook in hooks:
#         hook.remove()
#     return made
#
#
# def cosines(x):
#     """x (1, n, d_model) -> between all pairs of tokens (n, n)."""
#     return F.cosine_similarity(x[0, :, None], x[0], dim=-1)
#
#
# alike = {}
# for name, model in (("lanes", whole_model), ("no lanes", cut_model)):
#     x, all_seen = model.embed(number).detach(), torch.ones(8, 8).bool()
#     with torch.no_grad():
#         heights = made_by(model.encoder.layers, model.encoder, x, all_seen)
#     alike[name] = [cosines(height) for height in (x, *heights)]
# views.likeness(alike, ("input", "layer 1", "layer 2: the memory"), "31415926")

# %% [markdown]
# *Compare the last column: with lanes only nearby digits are alike, and without lanes the decoder gets one vector eight times.*
#
# The cut model found no way out, at none of four learning rates ([evidence 3.1](evidence/03_stacks.ipynb): pages of *evidence* have tables and doubts, for readers who want to check). Why not, we ask below.

# %% [markdown]
# ## What gets through is a count
#
# The one vector in the memory is made of means over all digits and their positions. From such a mean you can still tell that there was a 3 and that there was a first place, but not that the 3 was there.
#
# And the decoder? Its layers begin with self-attention, in which a mask lets the first place of the answer see less than the ninth. That keeps the nine places different. But then comes cross-attention, which looks at the memory, and without a lane its result replaces the token. What is a weighted mean of eight equal vectors?

# %% tags=["active-ipynb"]
# end = 2
# answer = [*number[0].flip(0).tolist(), end]
# # the decoder is given the begin mark and the digits, and says what follows each of them
# given = torch.tensor([[1, *answer[:-1]]])
# parts = cut_model.decoder.layers[0].residuals[:2]  # of self- and of cross-attention
# before, after = made_by(parts, cut_model, number, given)
# print(f"least cosine before cross-attention {cosines(before).min():.2f}", end=", ")
# print(f"after it {cosines(after).min():.2f}")
#
# tokens = [*range(3, 13), end]
# bets = cut_model(number, given)[0].softmax(dim=-1)[:, tokens]  # (9, 11)
# views.bets(
#     {"first token": bets[0].tolist(), "ninth token": bets[8].tolist()},
#     [answer.count(token) / 9 for token in tokens],
#     [*"0123456789", "end"],
# )

# %% [markdown]
# *Compare left and right: at both places the model expects the same. Every bar ends near its black mark, the token's share of the answer.*
#
# A weighted mean of eight equal vectors is that vector, whatever the weights. So cross-attention overwrites all nine places with the same vector, at one stroke.
#
# So the puzzle is solved. Two of the nine tokens are a 1, and no other occurs twice. If that is all you know, 1 is your best bet at every place. And the model never ends, since the end mark has only one token's share. The cut model has become a statistician. How good is it? Whoever knows the counts of an answer, and nothing else, gives each token its share as its probability.

# %% tags=["active-ipynb"]
# costs = []
# for target in examples(2000)[1][:, 1:].tolist():  # without the begin mark
#     target = [token for token in target if token != 0]  # without padding
#     costs += [-math.log(target.count(token) / len(target)) for token in target]
# print(f"loss of somebody who knows the counts: {sum(costs) / len(costs):.2f}")
# print(f"loss of the cut model, last 20 steps:  {sum(cut_losses[-20:]) / 20:.2f}")

# %% [markdown]
# *What* is in the number gets through, and *who is where* is lost. On the way up, that is what lanes are for.

# %% [markdown]
# ## LayerNorm keeps the pattern and forgets the size
#
# The lane stays, then. But look at the table again: the largest number of an added vector grows from 1 to 2 to 4. That is why the paper brings the size back after each sum, by LayerNorm (Ba et al., 2016).
#
# Take the vector $(1, 2, 3, 6)$. Its mean is 3. Subtract it, and you have $(-2, -1, 0, 3)$. The mean of the squares is $(4+1+0+9)/4=3.5$, and its root is about 1.87. Divide by it, and you have about $(-1.07,-0.53,0,1.6)$. What will LayerNorm make of a twin, twice as large and shifted by ten: $(12, 14, 16, 22)$?

# %% tags=["active-ipynb"]
# x = torch.tensor([[1.0, 2.0, 3.0, 6.0], [12.0, 14.0, 16.0, 22.0]])
# centred = x - x.mean(dim=-1, keepdim=True)
# root = (centred**2).mean(dim=-1, keepdim=True).sqrt()
# steps = {
#     "as given": x,
#     "minus its mean": centred,
#     "divided by the root": centred / root,
# }
# views.layer_norm_bars({name: rows.tolist() for name, rows in steps.items()})

# %% [markdown]
# *Both rows of a column have one scale: the first step takes away that the twin is higher, the second that it is larger, and one pattern is left.*
#
# In general, with mean $\mu$ and variance $\sigma^2$ of the vector,
#
# $$\mathrm{LayerNorm}(x)=g\odot\frac{x-\mu}{\sqrt{\sigma^2+\epsilon}}+b.$$
#
# The tiny $\epsilon$ keeps a vector of equal numbers from being divided by zero. Gain $g$ and bias $b$ are learned, one of each for every number of the vector. torch has this formula in one fast call.


# %%
class LayerNorm(nn.Module):
    """Each vector gets mean 0 and variance 1, then a learned gain and bias (Ba et al.,
    2016).

    x (..., d_model) -> (..., d_model).
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        # subtract the mean, divide by the root of the variance, times gain, plus bias
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


# %% [markdown]
# ## A layer in code
#
# Here is `Residual` again, the class from which we cut `x +`. An encoder layer puts a `Residual` around each of its two sub-layers, and a stack is a list of layers and a loop.
#
# Attention is called with a query, a key and a value. The query comes from the tokens that look, key and value from the tokens that they look at. In *self*-attention all three are `x`.


# %%
class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))): Section 3.1, with Section 5.4's dropout."""

    def __init__(self, d_model: int, P_drop: float = 0.1):
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(P_drop)

    def forward(self, x: Tensor, sublayer: Callable) -> Tensor:
        return self.norm(x + self.dropout(sublayer(x)))


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
        # Residual hands its sub-layer one input, which attention needs three times
        x = self.residuals[0](x, lambda x: self.self_attention(x, x, x, mask))
        return self.residuals[1](x, self.feed_forward)


class Stack(nn.Module):
    """N layers, one after the other: x (B, n, d_model) -> the same shape.

    context is what all layers need besides x: masks, and in the decoder the memory.
    """

    def __init__(self, layers: Iterable[nn.Module]):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor, *context) -> Tensor:
        for layer in self.layers:
            x = layer(x, *context)
        return x


# %% [markdown]
# ## Without norms, heads choose too early
#
# Keep the lane and delete the norm. Chapter 0's two layers still learn ([evidence 3.2](evidence/03_stacks.ipynb)). Six layers, as many as the paper has, do not: in 200 updates the loss falls to 0.9 with norms, and only to 82 without them, where guessing costs 2.4 ([evidence 3.5](evidence/03_stacks.ipynb), the middle one of three trainings each). What do large numbers do to a layer?
#
# A score is a product of two vectors. If both are ten times as large, it is a hundred times as large. Of the scores 1 and 2, softmax makes the weights 0.27 and 0.73. Of 100 and 200 it makes 0 and 1. How sure will the heads of six layers be that have learned nothing yet?

# %% tags=["active-ipynb"]
# # chapter 0's sub-layers; attention is called with a key and a value, there with `seen`
# from transformer.teaching.boxes import Attention, FeedForward
#
#
# class NoNorm(Residual):
#     def forward(self, x, sublayer):
#         return x + self.dropout(sublayer(x))
#
#
# def new_stack(residual, d_model=64, N=6):
#     """Untrained encoder layers with four heads, without dropout."""
#     stack = Stack(
#         EncoderLayer(
#             Attention(d_model, 4), FeedForward(d_model, 128), d_model, 0.0, residual
#         )
#         for _ in range(N)
#     )
#     for parameter in stack.parameters():
#         if parameter.dim() == 2:  # matrices
#             # random numbers of a size that keeps the signal's (Glorot and Bengio, 2010)
#             nn.init.xavier_uniform_(parameter)
#     return stack
#
#
# @torch.no_grad()
# def up_the_stack(residual):
#     """The size of the numbers on eight lanes, and the mean largest weight of a token."""
#     torch.manual_seed(0)
#     stack, x = new_stack(residual), torch.randn(1, 8, 64)
#     heights = made_by(stack.layers, stack, x)
#     weights = [layer.self_attention.weights for layer in stack.layers]  # (1, 4, 8, 8)
#     sizes = [height.std().item() for height in (x, *heights)]
#     return sizes, [one.amax(dim=-1).mean().item() for one in weights]
#
#
# growth = {"norms": up_the_stack(Residual), "no norms": up_the_stack(NoNorm)}
# views.sizes(growth)

# %% [markdown]
# *Follow the red lines: without norms the numbers grow with every layer, and by the last layer a token gives nearly all its weight to a single token.*
#
# Without norms the heads of the last layer have made their choice, and nobody has taught them which. It is hard to teach them: where one weight is 1, a small change of the scores changes nothing, and so there is hardly a gradient. The large numbers also reach the output, and we could not tell whether this or the early choice does more harm.
#
# With norms the weights become more even instead, because lanes do not stop the mixing: the more alike the tokens are, the more alike are their keys, and so their scores.

# %% [markdown]
# ## What gets through on the way back?
#
# Training sends a gradient down the stack, from the loss to the lowest layer. For one number, the derivative of $x+f(x)$ is $1+f'(x)$. The 1 is the lane: whatever the sub-layer $f$ does, the lane hands the gradient down unchanged.
#
# But the paper has a norm on the lane, and the gradient must pass it, too. In many later models the norm is in front of the sub-layer. This is called **pre-norm**, and the paper's order **post-norm**.

# %% tags=["active-ipynb"]
# views.norm_places()

# %% [markdown]
# *Only the norm moves: on the left it is on the lane, and on the right the lane runs through untouched.*


# %%
class PreNorm(Residual):
    """x + Dropout(Sublayer(LayerNorm(x))), the later order.

    A model of these has one more norm at the top of each stack.
    """

    def forward(self, x: Tensor, sublayer: Callable) -> Tensor:
        return x + self.dropout(sublayer(self.norm(x)))


# %% [markdown]
# In pre-norm the lane may grow, but each sub-layer reads it through a norm.
#
# Send a random gradient down six untrained layers. What arrives is a multiple of what was sent, plus a rest perpendicular to it. The multiple is what the lane hands down. The rest comes through the sub-layers, whose matrices are still random.

# %% tags=["active-ipynb"]
# def way_back(residual):
#     """How much of the sent gradient arrives at heights 0 to 6: the mean of 20 seeds."""
#     parts = []
#     for start in range(20):
#         torch.manual_seed(start)
#         stack, x = new_stack(residual), torch.randn(1, 8, 64, requires_grad=True)
#         heights = [x, *made_by(stack.layers, stack, x)]
#         sent = torch.randn(1, 8, 64)
#         arrived = torch.autograd.grad(heights[-1], heights, sent)
#         # gradient = part * sent + a rest whose product with sent is 0
#         parts.append([((g * sent).sum() / (sent * sent).sum()).item() for g in arrived])
#     return torch.tensor(parts).mean(dim=0).tolist()
#
#
# kinds = {"post-norm": Residual, "pre-norm": PreNorm, "no lanes": NoLane}
# handed_down = {name: way_back(residual) for name, residual in kinds.items()}
# views.way_back(handed_down)

# %% [markdown]
# *Read from left to right: pre-norm hands the sent gradient down to the input, in post-norm a tenth of it is left there, and without lanes nothing is left after one layer.*
#
# The line of pre-norm is the 1 of $1+f'(x)$. In post-norm each norm divides the lane, and with it the gradient. Without lanes a gradient still arrives, but all of it is the rest. What the rest is worth, this picture does not say; in stacks of small networks, nothing of what was sent could be read in it ([evidence 3.3](evidence/03_stacks.ipynb)). That is a likely reason why the cut model found no way out.
#
# After two layers, as many as chapter 0 has, post-norm has kept more than a third, and it learns well. With six layers on each side, pre-norm came to a loss of 0.1 in 200 updates. Post-norm came to 0.9 ([evidence 3.5](evidence/03_stacks.ipynb)).
#
# We rebuild the paper, so we keep its order. It needs a careful start, which [chapter 12](12_optimizer.ipynb) gives it.

# %% [markdown]
# ## The decoder's layer reads in two places
#
# The decoder has a stack of its own. Its layer has a third sub-layer between the other two, the *cross-attention* that overwrote the lanes of our cut model.

# %% tags=["active-ipynb"]
# views.decoder_layer()

# %% [markdown]
# *Compare the two blue boxes: both get their query from the token's own lane, and only the source of keys and values differs.*


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
# ## What must not get through
#
# The causal mask of chapter 0 is a triangle. Does it hide the answer through six layers, or does it leak from neighbour to neighbour? And what if you forget it in a single layer? A gradient can tell: if that of an output with respect to an input is zero, a small change of the input does not reach the output. We send random vectors through six untrained decoder layers.

# %% tags=["active-ipynb"]
# class Forgetful(DecoderLayer):
#     def forward(self, x, memory, mask):
#         return super().forward(x, memory, None)  # without the triangle
#
#
# def decoder(kinds):
#     torch.manual_seed(0)
#     return Stack(
#         kind(Attention(32, 4), Attention(32, 4), FeedForward(32, 64), 32, P_drop=0.0)
#         for kind in kinds
#     )
#
#
# def dependence(outputs, inputs):
#     """1 where output t depends on input s, else 0: (T, S)."""
#     rows = []
#     sums = outputs[0] @ torch.randn(32)  # one number a place: a random weighted sum
#     for output in sums:
#         (gradient,) = torch.autograd.grad(output, inputs, retain_graph=True)
#         rows.append((gradient[0] != 0).any(dim=-1))
#     return torch.stack(rows).float()
#
#
# triangle = torch.ones(5, 5).bool().tril()
# one_forgets = 2 * [DecoderLayer] + [Forgetful] + 3 * [DecoderLayer]
# seen = {}
# for name, layers in (
#     ("a triangle in all six layers", 6 * [DecoderLayer]),
#     ("the triangle forgotten in one", one_forgets),
# ):
#     stack = decoder(layers)
#     memory, target = torch.randn(1, 6, 32), torch.randn(1, 5, 32, requires_grad=True)
#     seen[name] = dependence(stack(target, memory, triangle), target)
# assert torch.equal(seen["a triangle in all six layers"], triangle.float())
# views.dependence(seen)

# %% [markdown]
# *Read row by row: with a triangle in every layer an output depends on its own place and earlier ones, and if one layer lacks it, on the whole target.*
#
# With all six triangles nothing leaks: an earlier token was itself made only of earlier ones.

# %% [markdown]
# ## What to keep
#
# - A token's vector goes through the whole stack as one lane of the residual stream, and every sub-layer reads from the lanes and adds to them.
# - Attention is a mean, so without lanes all tokens become one: what is in a sentence gets through, and who is where is lost. Lanes slow the mixing, and they hand the gradient down.
# - Sums grow, and large numbers make attention choose before it has learned; LayerNorm brings them back to one size, on the lane (post-norm, the paper) or in front of the sub-layer (pre-norm).

# %% [markdown]
# ## Exercises
#
# **1. By hand.** What can LayerNorm make of a vector of *two* numbers, $(a, b)$ with $a \neq b$? Take gain 1, bias 0 and no $\epsilon$.
#
# <details><summary>Answer</summary>
#
# The mean is $(a + b)/2$. Subtract it, and you have $\bigl((a - b)/2, (b - a)/2\bigr)$. The root of the mean square is $|a - b|/2$. So the result is $(1, -1)$ if $a$ is the larger one, and $(-1, 1)$ if $b$ is. All that is left is which of the two is larger. LayerNorm takes two things from every vector, its height and its size. Of 512 numbers that is little, and of two nearly everything. With two, it would undo the mixing in the chapter's table.
# </details>
#
# **2. In code.** A lane carries the signal up and the gradient down. Make a lane for each job. A sub-layer has made `y` of `x`. The first lane has the value of `x + y`, but passes no gradient through `x`. The second has the value of `y`, but the gradient of `x + y`. You need `x.detach()`, which has the value of `x` and passes no gradient.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.stacks import check_half_lanes
#
#
# def half_lanes(x, y):
#     """x, y (B, T, d_model) -> lane for the signal only, lane for the gradient only."""
#     ...
#
#
# check_half_lanes(half_lanes)

# %% [markdown]
# <details><summary>Solution, and which half is needed</summary>
#
# ```python
# def half_lanes(x, y):
#     signal_only = x.detach() + y
#     gradient_only = x - x.detach() + y
#     return signal_only, gradient_only
# ```
#
# In stacks of twelve small networks, either half alone learned hardly anything, and whole lanes learned in every training ([evidence 3.3](evidence/03_stacks.ipynb)).
# </details>
#
# **3. To think about.** Random vectors go up untrained layers, and the rows say which sub-layers have a lane. Why is the third row dark after two layers, and the second is not? And why does even the first row darken?

# %% tags=["active-ipynb"]
# rows = {}
# for name, cut in (
#     ("both lanes", []),
#     ("lane: attention", [1]),
#     ("lane: network", [0]),
# ):
#     torch.manual_seed(0)
#     stack, x = new_stack(Residual), torch.randn(1, 8, 64)
#     for layer in stack.layers:
#         for part in cut:  # 0 is attention, 1 the network
#             layer.residuals[part] = NoLane(64, 0.0)
#     with torch.no_grad():
#         heights = [x, *made_by(stack.layers, stack, x)]
#     rows[name] = [cosines(heights[i]) for i in (0, 1, 2, 6)]
# views.likeness(rows)

# %% [markdown]
# *Compare the rows after layer 2: the tokens are apart with both lanes, closer with attention's alone, and nearly one with the network's alone.*
#
# <details><summary>Answer</summary>
#
# In the third row attention replaces every token by nearly the same mean, as in the table's upper half. The network's lane comes too late: it preserves what is already mixed. In the second row attention adds the mean, as in the table's lower half, so the cosines grow more slowly. Whole lanes, too, only delay the mixing, and so the weights of untrained heads become even. Training can do better: in the whole model's memory the digits differ. Dong et al. (2021) prove how fast attention alone mixes.
# </details>
#
# **Next.** [Chapter 4](04_attention.ipynb) opens the blue box: how does a token find out which others to read?
