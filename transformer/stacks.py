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
# from transformer import first_transformer, views
# from transformer.first_transformer import (
#     Transformer,
#     examples,
#     shown,
#     train_step,
#     write,
# )
# from transformer.teaching.boxes import Attention, FeedForward
#
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits
#
#
# class NoLane(first_transformer.Residual):
#     def forward(self, x, sublayer):
#         return self.norm(self.dropout(sublayer(x)))  # chapter 0: x + self.dropout(...)
#
#
# def new_model(residual):
#     torch.manual_seed(0)
#     model = Transformer(V=13, d_model=64, d_ff=128, h=4, N=2, P_drop=0.0)
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
# whole_model, cut_model = new_model(first_transformer.Residual), new_model(NoLane)
# losses, cut_losses = train(whole_model), train(cut_model)
# # tokens of chapter 0: 0 is padding, 1 begins, 2 ends, and 3 to 12 are the digits 0 to 9
# number = torch.tensor([[int(digit) + 3 for digit in "31415926"]])
# for name, model in (("with x +:   ", whole_model), ("without x +:", cut_model)):
#     print(name, "31415926 ->", shown(write(model, number, longest=9)[0]))
# views.race({"without x +": cut_losses, "with x +": losses}, every=1, scale="linear")

# %% [markdown]
# *Follow the red line: without `x +` the model is ahead for nearly 80 steps, and then its loss hardly falls any more.*
#
# With `x +` the model writes the number backwards. Without `x +` it writes 1, again and again, until we stop it. But it is not stupid. To guess among ten digits and the end mark costs $\ln 11 = 2.4$, and its loss is 1.7, so it has learned *something*. What could one know about 31415926, and still answer "1" and never end?

# %% [markdown]
# ## Every token keeps its lane
#
# To see what was cut, read one layer from left to right.

# %% tags=["active-ipynb"]
# views.residual_stream()

# %% [markdown]
# *Follow the lane of "cat": each sub-layer reads from it and adds to it what it has found, and after each sum LayerNorm rescales the lane.*
#
# There is one violet lane for each token. What travels on it is a vector of `d_model` numbers, from the bottom of the stack to the top. All lanes together are called the **residual stream**.
#
# Beside the lanes are the **sub-layers**. Attention reads all lanes and writes into each of them, and it is the only place where tokens meet. The feed-forward network reads one lane and writes into the same one.
#
# Writing means adding. A sub-layer does not replace a word's vector but corrects it. For example, attention may add to "its" that there was a cat, and "its" is still there. The paper calls this a *residual connection* (He et al., 2016), because a sub-layer need only supply what is missing, the residue.
#
# After each sum LayerNorm rescales the lane. The paper calls both together *add & norm*:
#
# $$\mathrm{LayerNorm}(x+\mathrm{Sublayer}(x))$$
#
# The lanes also explain why the black curve starts so high. Before training, a lane still carries its own token when it reaches the top. So the model bets on the token that it has just read.

# %% [markdown] tags=["question-10"]
# ## Without lanes, all tokens become one
#
# Take two tokens with the vectors $(1,0)$ and $(0,1)$. Attention is a weighted mean. Suppose that each token gives 0.6 of its weight to itself and 0.4 to the other. Without lanes the mean *replaces* the token: the first becomes $0.6\,(1,0)+0.4\,(0,1)=(0.6,0.4)$. With lanes the mean is *added*, and the first becomes $(1.6,0.4)$. A second layer does the same. Under the vectors is the **cosine** between them: 0 means that they have nothing in common, and 1 that they point in the same direction.
#
# | |input|after layer 1|after layer 2|
# |---|---|---|---|
# |replaced|$(1,0),\ (0,1)$|$(0.6,0.4),\ (0.4,0.6)$|$(0.52,0.48),\ (0.48,0.52)$|
# |cosine|0|0.92|0.997|
# |added|$(1,0),\ (0,1)$|$(1.6,0.4),\ (0.4,1.6)$|$(2.72,1.28),\ (1.28,2.72)$|
# |cosine|0|0.47|0.77|
#
# A lane does not stop the mixing, but it makes it much slower.
#
# No feed-forward network can undo the mixing. It does the same to every token, and equal vectors stay equal. Not even the positions help, because they were written into the vectors and are averaged with the digits. From the mean you can still tell that there was a 3 and that there was a first place, but not that the 3 was there.
#
# Did that happen to our cut model? It has been trained, and might have found a way out. So here are the cosines between the vectors of the eight digits on their way through the encoder. The vectors at the top are called the **memory**. How will the memory look in the cut model?

# %% tags=["active-ipynb"]
# def cosines(x):
#     """x (1, n, d_model) -> between all pairs of tokens (n, n)."""
#     return F.cosine_similarity(x[0, :, None], x[0], dim=-1)
#
#
# @torch.no_grad()
# def through_encoder(model):
#     heights = [model.embed(number)]
#     for layer in model.encoder.layers:
#         heights.append(layer(heights[-1], torch.ones(8, 8, dtype=torch.bool)))
#     return [cosines(x) for x in heights]
#
#
# alike = {"lanes": through_encoder(whole_model), "no lanes": through_encoder(cut_model)}
# views.likeness(alike, ("input", "layer 1", "layer 2: the memory"), "31415926")

# %% [markdown]
# *Compare the last column: with lanes the decoder is handed eight different vectors, and without lanes it gets one vector eight times.*
#
# Training has not helped, and none of four learning rates saves the model ([evidence 3.1](evidence/03_stacks.ipynb)).

# %% [markdown]
# ## What gets through is a count
#
# The one vector in the memory is made of means over all digits. Such a mean can tell *which* digits there are and how often, but not *where*.
#
# And the decoder? Its layers begin with self-attention, in which a mask lets the first place of the answer see less than the ninth. So there the places do not become equal. But then comes cross-attention, which looks from the answer at the memory, and without a lane its result replaces the token. What is a weighted mean of eight equal vectors?

# %% tags=["active-ipynb"]
# end = 2
# answer = [*number[0].flip(0).tolist(), end]
# # the decoder is given the begin mark and the digits, and says what follows each of them
# given = torch.tensor([[1, *answer[:-1]]])
# with torch.no_grad():
#     memory = cut_model.encoder(cut_model.embed(number), torch.ones(8, 8).bool())
#     layer, x = cut_model.decoder.layers[0], cut_model.embed(given)
#     causal, all_seen = torch.ones(9, 9).bool().tril(), torch.ones(9, 8).bool()
#     # the first two sub-layers of the decoder's first layer
#     x1 = layer.residuals[0](x, lambda y: layer.self_attention(y, y, causal))
#     x2 = layer.residuals[1](x1, lambda y: layer.cross_attention(y, memory, all_seen))
#     bets = cut_model(number, given)[0].softmax(dim=-1)  # (9, 13)
# least = cosines(x1).min(), cosines(x2).min()
# print("least cosine before cross-attention {:.2f}, after it {:.2f}".format(*least))
# costs = []  # of somebody who knows the counts of an answer, and nothing else
# for target in examples(2000)[1][:, 1:].tolist():  # without the begin mark
#     target = [token for token in target if token != 0]  # without padding
#     costs += [-math.log(target.count(token) / len(target)) for token in target]
# known, cut_loss = sum(costs) / len(costs), sum(cut_losses[-20:]) / 20
# print(f"loss from the counts alone {known:.2f}, of the cut model {cut_loss:.2f}")
# tokens = [*range(3, 13), end]
# views.bets(
#     {"first token": bets[0, tokens].tolist(), "ninth token": bets[8, tokens].tolist()},
#     [answer.count(token) / 9 for token in tokens],
#     [*"0123456789", "end"],
# )

# %% [markdown]
# *Compare left and right: at both places the model expects the same. Every bar ends near its black mark, the token's share of the answer; 2 gets a little too much, and 3 too little.*
#
# A weighted mean of eight equal vectors is that vector, whatever the weights. So cross-attention overwrites all nine places with the same vector, at one stroke, and no place knows any longer where it is.
#
# Now the puzzle has its answer. Two of the nine tokens are a 1, and no other occurs twice. If that is all you know, 1 is your best bet at every place. And the model never ends, since the end mark has only one token's share. So the cut model has become a statistician, and a good one: whoever knows the exact counts of every answer would have a loss of 1.68, and the cut model's is 1.70.
#
# *What* is in the number gets through, and *who is where* is lost. That is what lanes are for.

# %% [markdown]
# ## LayerNorm keeps the pattern and forgets the size
#
# The lane stays, then. But look at the table again: the largest number of an added vector grows from 1 to 1.6 to 2.72. Sums grow, and every sub-layer reads a larger one. That is why the paper brings the size back after each sum, by LayerNorm (Ba et al., 2016).
#
# Take the vector $(1, 2, 3, 6)$. Its mean is 3. Subtract it, and you have $(-2, -1, 0, 3)$. The mean of the squares is $(4+1+0+9)/4=3.5$, and its root is about 1.87. Divide by the root, and you are done. Now take a twin that is twice as large and shifted by ten: $(12, 14, 16, 22)$. What will LayerNorm make of the twin?

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
# The tiny $\epsilon$ keeps a vector of equal numbers from being divided by zero. Gain $g$ and bias $b$ are learned, one of each for every number of the vector. Each token is normalised by itself, whatever else is in the batch. torch has all this in one fast call, which our class uses.


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
# `Residual` is the line from which we cut `x +`. An encoder layer puts a `Residual` around each of its two sub-layers, and a stack is a list of layers and a loop.
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
# ## Without the norm, a head chooses too early
#
# Now keep the lane and delete the norm. What could large numbers harm? A score is a product of two vectors. If both are ten times as large, it is a hundred times as large. Of the scores 1 and 2, softmax makes the weights 0.27 and 0.73. Of 100 and 200 it makes 0 and 1.
#
# Chapter 0's two layers learn without norms, too ([evidence 3.2](evidence/03_stacks.ipynb)). So take six, as the paper has, with first weights by the rule of Glorot and Bengio (2010), which many Transformers use. The layers have learned nothing. How sure will their heads be?

# %% tags=["active-ipynb"]
# class NoNorm(Residual):
#     def forward(self, x, sublayer):
#         return x + self.dropout(sublayer(x))
#
#
# def layer_of(residual, d_model=64):
#     """An untrained encoder layer with four heads, without dropout."""
#     parts = Attention(d_model, 4), FeedForward(d_model, 2 * d_model)
#     layer = EncoderLayer(*parts, d_model, 0.0, residual)
#     for parameter in layer.parameters():
#         if parameter.dim() == 2:  # matrices
#             nn.init.xavier_uniform_(parameter)  # Xavier is Glorot's first name
#     return layer
#
#
# @torch.no_grad()
# def up_the_stack(residual):
#     """The size of the numbers on eight lanes, and the mean largest weight of a token."""
#     torch.manual_seed(0)
#     x = torch.randn(1, 8, 64)
#     sizes, largest = [x.std().item()], []
#     for _ in range(6):
#         layer = layer_of(residual)
#         x = layer(x)
#         sizes.append(x.std().item())
#         largest.append(layer.self_attention.weights.amax(dim=-1).mean().item())
#     return sizes, largest
#
#
# growth = {"norms": up_the_stack(Residual), "no norms": up_the_stack(NoNorm)}
# views.sizes(growth)

# %% [markdown]
# *Follow the red lines: without norms the numbers grow with every layer, and by the last layer a token gives nearly all its weight to a single other. The dashed line is a weight that is shared out evenly.*
#
# Without norms the heads of the last layer have made their choice, and nobody has taught them which. It is hard to teach them: where one weight is 1, a small change of the scores changes nothing, and so there is hardly a gradient.
#
# With norms the weights slowly become more even instead: exercise 3 shows why.

# %% [markdown]
# ## What gets through on the way back?
#
# So far we have followed tokens up the stack. Training sends a gradient down, from the loss to the lowest layer. For one number, the derivative of $x+f(x)$ is $1+f'(x)$. The 1 is the lane: whatever the sub-layer $f$ does, the lane hands the gradient down unchanged.
#
# But the paper has a norm on the lane, and the gradient must pass it, too. Many later models move the norm off the lane, in front of the sub-layer. This is called **pre-norm**, and the paper's order **post-norm**.

# %% tags=["active-ipynb"]
# views.norm_places()

# %% [markdown]
# *Only the norm moves: on the left it is on the lane, and on the right the lane runs through untouched.*


# %%
class PreNorm(Residual):
    """x + Dropout(Sublayer(LayerNorm(x))), the later order."""

    def forward(self, x: Tensor, sublayer: Callable) -> Tensor:
        return x + self.dropout(sublayer(self.norm(x)))


# %% [markdown]
# In pre-norm the lane is a plain sum from bottom to top. It may grow, but each sub-layer reads it through a norm. The stack then has one more norm at its end.
#
# Now send a random gradient down six untrained layers. The cosine with what was sent tells how much you still recognise on the way.

# %% tags=["active-ipynb"]
# def way_back(residual):
#     """Cosines between the gradient sent from the top and what is at heights 0 to 6."""
#     torch.manual_seed(0)
#     heights = [torch.randn(1, 8, 64, requires_grad=True)]
#     for _ in range(6):
#         heights.append(layer_of(residual)(heights[-1]))
#     sent = torch.randn(1, 8, 64)
#     gradients = torch.autograd.grad(heights[-1], heights, sent)
#     return [
#         F.cosine_similarity(g.flatten(), sent.flatten(), 0).item() for g in gradients
#     ]
#
#
# kinds = {"pre-norm": PreNorm, "post-norm": Residual, "no lanes": NoLane}
# recognised = {name: way_back(residual) for name, residual in kinds.items()}
# views.way_back(recognised)

# %% [markdown]
# *Read from left to right, from the top of the stack down: without lanes one layer destroys the gradient, and at the bottom only pre-norm has kept a good part of it.*
#
# Does it matter for learning? We trained chapter 0's task with six layers on each side for 200 steps ([evidence 3.5](evidence/03_stacks.ipynb)). Of three trainings each, the middle one came to a loss of 0.1 with pre-norm and 0.9 with post-norm. The gradient is a likely reason (Xiong et al., 2020). Without norms it came to 82, far above guessing. There large numbers reach the output, too, and we have not tested which do the harm, these or the hasty heads.
#
# We keep the paper's order, because we rebuild the paper. It needs a careful start, which [chapter 12](12_optimizer.ipynb) gives it.

# %% [markdown]
# ## The decoder's layer reads in two places
#
# The decoder has a stack of its own, with the tokens of the answer on its lanes. Its layer has a third sub-layer between the other two, the *cross-attention* that overwrote the lanes of our cut model. Here is one lane, with what every arrow carries.

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
# One thing must be lost on the way. In training the decoder is given the whole right answer at once, and at each place has to name the *next* token. If it could look ahead, it would only have to copy. Its self-attention is therefore *causal*: a mask, a triangle, lets each token look at itself and at earlier ones.
#
# Does the triangle hide the answer through six layers, or does the answer leak, from neighbour to neighbour? And what if you forget the triangle in a single layer? Where the gradient of an output with respect to an input is zero, nothing flows. So we send random vectors through six untrained decoder layers.

# %% tags=["active-ipynb"]
# def dependence(outputs, inputs):
#     """1 where output t depends on input s, else 0: (T, S)."""
#     rows = []
#     for output in outputs[0] @ torch.randn(32):  # a random mix of each output's numbers
#         (gradient,) = torch.autograd.grad(output, inputs, retain_graph=True)
#         rows.append((gradient[0] != 0).any(dim=-1))
#     return torch.stack(rows).float()
#
#
# def decoder_layer(d_model):
#     parts = Attention(d_model, 4), Attention(d_model, 4), FeedForward(d_model, 64)
#     return DecoderLayer(*parts, d_model, P_drop=0.0)
#
#
# torch.manual_seed(0)
# layers = [decoder_layer(32) for _ in range(6)]
# memory, target = torch.randn(1, 6, 32), torch.randn(1, 5, 32, requires_grad=True)
# triangle = torch.ones(5, 5).bool().tril()
# seen = {}
# for name, third in (
#     ("a triangle in all six layers", triangle),
#     ("the triangle forgotten in one", None),
# ):
#     lanes = target
#     for layer, mask in zip(layers, [triangle, triangle, third] + 3 * [triangle]):
#         lanes = layer(lanes, memory, mask)
#     seen[name] = dependence(lanes, target)
# views.dependence(seen)

# %% [markdown]
# *Read row by row: with a triangle in every layer an output depends on its own place and earlier ones, and if one layer lacks it, on the whole target.*
#
# With all six triangles nothing leaks: an earlier token was itself made only of earlier ones. And no other sub-layer needs a triangle, because nowhere else do the tokens of the target meet.

# %% tags=["active-ipynb"]
# assert cut_losses[-1] > 1.5 > losses[-1]
# untrained = new_model(first_transformer.Residual)
# assert torch.equal(untrained(number, given).argmax(dim=-1), given)
# assert alike["no lanes"][2].min() > 0.99 and alike["lanes"][2].min() < 0.5
# assert (bets[0] - bets).abs().max() < 0.01
# assert torch.allclose(LayerNorm(4)(x), centred / root, atol=1e-4)
# assert growth["no norms"][0][-1] > 10 and max(growth["norms"][0][1:]) < 1.1
# assert (
#     growth["no norms"][1][-1] > 0.9 and growth["norms"][1][-1] < growth["norms"][1][0]
# )
# assert recognised["pre-norm"][0] > 0.2 > recognised["post-norm"][0]
# assert max(map(abs, recognised["no lanes"][:-1])) < 0.1
# assert torch.equal(seen["a triangle in all six layers"], triangle.float())
# assert seen["the triangle forgotten in one"].all()
# print("lanes keep tokens apart, norms hold the size, and nothing comes from the future")

# %% [markdown]
# ## What to keep
#
# - A token's vector goes through the whole stack as one lane of the residual stream, and every sub-layer reads from the lanes and adds to them.
# - Attention is a mean, so without lanes all tokens soon become one: what is in a sentence gets through, and who is where is lost. Lanes slow the mixing, and they carry the gradient down.
# - Sums grow, and large numbers make attention choose before it has learned; LayerNorm brings each token's vector back to a standard size, on the lane (post-norm, the paper) or in front of the sub-layer (pre-norm, most later models).

# %% [markdown]
# ## Exercises
#
# **1. By hand.** What can LayerNorm make of a vector of *two* numbers, $(a, b)$ with $a \neq b$? Take gain 1, bias 0 and no $\epsilon$. How much of the vector is left?
#
# <details><summary>Answer</summary>
#
# The mean is $(a + b)/2$. Subtract it, and you have $\bigl((a - b)/2, (b - a)/2\bigr)$. The root of the mean square is $|a - b|/2$. So the result is $(1, -1)$ if $a$ is the larger one, and $(-1, 1)$ if $b$ is. All that is left is which of the two is larger. LayerNorm takes two things from every vector, its height and its size. Of 512 numbers that is little, and of two it is nearly everything.
# </details>
#
# **2. In code.** A lane carries the signal up and the gradient down. Cut it in half. A sub-layer has made `y` of `x`. Return two results: the value of `x + y`, with no gradient through this `x`; and the value of `y` alone, with the gradient of `x + y`. You need `x.detach()`, which has the value of `x` and passes no gradient.

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
# Both halves are needed. In stacks of twelve small networks, either half alone learned hardly anything, and whole lanes learned from every start ([evidence 3.3](evidence/03_stacks.ipynb)).
# </details>
#
# **3. To think about.** In the upper row of the picture only the attentions have a lane, and in the lower row only the feed-forward networks. The vectors are random and the layers untrained. Explain with the table of cosines why the lower row is dark after two layers, and why even the upper row is dark after six.

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def half(without):
#     """Cosines at the input and after layers 1, 2 and 6, where one lane is missing."""
#     torch.manual_seed(0)
#     heights = [torch.randn(1, 8, 64)]
#     for _ in range(6):
#         layer = layer_of(Residual)
#         layer.residuals[without] = NoLane(64, 0.0)  # 0: of attention, 1: of the network
#         heights.append(layer(heights[-1]))
#     return [cosines(heights[i]) for i in (0, 1, 2, 6)]
#
#
# rows = {"lane: attention": half(without=1), "lane: network": half(without=0)}
# views.likeness(rows)

# %% [markdown]
# *Compare the rows after layer 2: the tokens are still apart where the attentions have a lane, and nearly one where only the networks have.*
#
# <details><summary>Answer</summary>
#
# In the lower row attention replaces every token by nearly the same mean, as in the table's upper half. The network's lane comes too late: it preserves what is already mixed. In the upper row attention adds the mean, as in the table's lower half. There the cosine grows more slowly, but with every layer. Training can do better: in the whole model's memory the digits differ. Dong et al. (2021) prove how quickly attention alone makes tokens alike.
# </details>
#
# **Next.** [Chapter 4](04_attention.ipynb) opens the blue box: how does a token find out which others to read?
