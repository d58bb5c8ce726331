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
# In chapter 0 a small Transformer learned to write numbers backwards. Whatever a layer finds about a token is added to the token's vector `x`. We strike out this `x +` and change nothing else: all parameters are still there, and the recipe is the same. What will the model make of 31415926? Guess before you read on. Then follow a token through the layers with one question: **what gets through, and what is lost on the way?**

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

# %% tags=["active-ipynb"]
# import inspect
#
# from transformer import first_transformer, views
# from transformer.teaching.boxes import Attention, FeedForward
#
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits

# %% [markdown]
# ## What happens if you delete `x +`?
#
# This is the line of chapter 0 in which every sub-layer ends, and below it what we make of it:
#
# ```python
# return self.norm(x + self.dropout(sublayer(x)))
# return self.norm(self.dropout(sublayer(x)))
# ```

# %% tags=["active-ipynb"]
# code = inspect.getsource(first_transformer)  # chapter 0, as text
# whole, cut = {}, {}
# exec(code, whole)
# exec(code.replace("self.norm(x + self.", "self.norm(self."), cut)
# number = torch.tensor([[int(digit) + 3 for digit in "31415926"]])
#
#
# def train(chapter):
#     torch.manual_seed(0)
#     model = chapter["Transformer"](V=13, d_model=64, d_ff=128, h=4, N=2, P_drop=0.0)
#     optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
#     losses = [chapter["train_step"](model, optimizer, step) for step in range(1, 201)]
#     answer = chapter["write"](model, number, longest=9)
#     print("31415926 ->", chapter["shown"](answer[0]))
#     return model, losses
#
#
# whole_model, losses = train(whole)
# cut_model, cut_losses = train(cut)
# views.race({"without x +": cut_losses, "with x +": losses}, every=1, scale="linear")

# %% [markdown]
# *Follow the red line: without `x +` the loss soon falls below that of guessing, and then it stays where it is.*
#
# With `x +` the model has nearly learned to write numbers backwards. Without it, it writes 1, again and again, until we stop it. But it is not stupid. To guess among ten digits and the end mark costs $\ln 11 = 2.4$, and it is well below that, so it has learned *something*. What could one know about 31415926, and still answer "1" and never end?

# %% [markdown]
# ## Every token keeps its lane
#
# To see what was cut, read one layer of a Transformer from left to right.

# %% tags=["active-ipynb"]
# views.residual_stream()

# %% [markdown]
# *Follow the lane of "cat": each sub-layer reads from it and adds to it what it has found, and after each sum LayerNorm rescales the lane.*
#
# There is one violet lane for each token. What travels on it is a vector of `d_model` numbers, from the bottom of the stack to the top. All lanes together are called the **residual stream**.
#
# Beside the lanes are the **sub-layers**. Attention reads all lanes and writes into each of them, and it is the only place where tokens meet. The feed-forward network reads one lane and writes into the same one.
#
# Writing means adding. A sub-layer does not replace a word's vector but corrects it. For example, attention may add to the lane of "its" that there was a cat, and "its" is still there. The paper calls this a *residual connection* (He et al., 2016), because a sub-layer need only supply what is missing, the residue.
#
# After each sum LayerNorm rescales the lane, of which more below. The paper calls both together *add & norm*:
#
# $$\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$$
#
# That is the line from which we cut `x +`. (Dropout, which [chapter 13](13_regularization.ipynb) explains, acts on what is written and never on the lane.)

# %% [markdown] tags=["question-10"]
# ## Without lanes, all tokens become one
#
# Take two tokens whose vectors have one number each, 1 and 9. Attention is a weighted mean, and a head that has learned little weighs both nearly alike: say that each token gets 0.6 of itself and 0.4 of the other. Without lanes this mean *replaces* the token. The 1 becomes $0.6 \cdot 1 + 0.4 \cdot 9 = 4.2$, and the 9 becomes 5.8. With lanes the mean is *added*. Then a second layer does the same:
#
# | | input | after layer 1 | after layer 2 |
# |---|---|---|---|
# | replaced | 1 and 9 | 4.2 and 5.8 | 4.84 and 5.16 |
# | added | 1 and 9 | 5.2 and 14.8 | 14.24 and 25.76 |
#
# In the first row every layer leaves a fifth of the difference, and soon nobody can tell who was who. In the second row they stay apart.
#
# No feed-forward network can undo this. It does the same to every token, and equal vectors stay equal. Not even the positions help. They were written into the vectors, and are averaged with the rest: the mean still holds that there was a 3, and that there was a first place, but no longer which belongs to which.
#
# Did that happen to our cut model? It has been trained, and might have found a way out. So here are the vectors of the eight digits on their way through the encoder, each compared with each. A cosine of 1 means that two of them point in the same direction. The vectors at the top are called the **memory**. How will it look in the cut model?

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
# Training has not helped, and no learning rate that we tried saves the model ([evidence 3.1](evidence/03_stacks.ipynb)).

# %% [markdown]
# ## What gets through is a count
#
# The one vector in the memory is made of means over all digits. Such a mean can tell *which* digits there are and how often, but not *where*. So what will the model expect as the first token of the answer, and what as the ninth, which is the end mark?

# %% tags=["active-ipynb"]
# begin, end = 1, 2
# answer = [*number[0].flip(0).tolist(), end]
# # the decoder is given the begin mark and the digits, and says what follows each of them
# given = torch.tensor([[begin, *answer[:-1]]])
# with torch.no_grad():
#     bets = cut_model(number, given)[0].softmax(dim=-1)  # (9, 13)
# tokens = [*range(3, 13), end]
# views.bets(
#     {"first token": bets[0, tokens].tolist(), "ninth token": bets[8, tokens].tolist()},
#     [answer.count(token) / 9 for token in tokens],
#     [*"0123456789", "end"],
# )

# %% [markdown]
# *Compare left and right: at both places the model expects the same, and nearly what the black marks say, each token's share of the whole answer.*
#
# Now the puzzle has its answer. Two of the nine tokens are a 1, and no other occurs twice. If that is all you know, 1 is your best bet. The model makes it at every place, because the decoder has lost its lanes, too: it knows neither where it is nor what it has just written. And it never ends, since the end mark has only one token's share. It is the same with other numbers: the model nearly always names the most frequent digit ([evidence 3.1](evidence/03_stacks.ipynb)).
#
# So the cut model has become a statistician. *What* is in the number gets through, and *who is where* is lost. That is what lanes are for.

# %% [markdown]
# ## LayerNorm keeps the pattern and forgets the size
#
# The lane stays, then. But look again at the second row of the table: in two layers 1 and 9 have become 14 and 26. Sums grow, and every sub-layer reads a larger one. That is why the paper brings the size back after each sum, by LayerNorm (Ba et al., 2016).
#
# Take the vector $(1, 2, 3, 6)$. Its mean is 3, and without the mean $(-2, -1, 0, 3)$ is left. The mean of the squares is $(4 + 1 + 0 + 9)/4 = 3.5$, and its root is about 1.87. Divide by that, and you are done. Its twin is five times as large and shifted by a hundred: $(105, 110, 115, 130)$. What will come out of the twin?

# %% tags=["active-ipynb"]
# x = torch.tensor([[1.0, 2.0, 3.0, 6.0], [105.0, 110.0, 115.0, 130.0]])
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
# In general, for a vector of $d$ numbers with mean $\mu$ and variance $\sigma^2$,
#
# $$\mathrm{LayerNorm}(x) = g \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + b .$$
#
# The tiny $\epsilon$ keeps a vector of equal numbers from being divided by zero. Gain $g$ and bias $b$ are learned, one of each for every number of the vector. Each token is normalised by itself, and so a sentence comes out the same alone and in a batch.


# %%
class LayerNorm(nn.Module):
    """Each vector gets mean 0 and variance 1, then a learned gain and bias (Ba et al.,
    2016).

    x (..., d_model) -> (..., d_model). The variance divides by d_model, not
    d_model - 1, and eps is inside the root, so that a constant vector gives the bias.
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))): Section 3.1, with Section 5.4's dropout."""

    def __init__(self, d_model: int, P_drop: float = 0.1):
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(P_drop)

    def forward(self, x: Tensor, sublayer: Callable) -> Tensor:
        return self.norm(x + self.dropout(sublayer(x)))


# %% [markdown]
# An encoder layer puts a `Residual` around each of its two sub-layers, and a stack is a list of layers and a loop.
#
# Attention takes three inputs: the tokens that look, for the queries, and twice those that they look at, for keys and values. In *self*-attention all three are `x`.


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
# Let us put the norm on trial as well: keep the lane, delete the norm. What could large numbers harm? A score is a product of two vectors. If both are ten times as large, it is a hundred times as large. Of the scores 1 and 2, softmax makes the weights 0.27 and 0.73. Of 100 and 200 it makes 0 and 1.
#
# Chapter 0's two layers do well without norms ([evidence 3.2](evidence/03_stacks.ipynb)). So take six, as the paper has, with first weights by the common rule of Glorot and Bengio (2010). They have learned nothing. How sure will their heads be?

# %% tags=["active-ipynb"]
# class NoNorm(Residual):
#     def forward(self, x, sublayer):
#         return x + self.dropout(sublayer(x))
#
#
# def layer_of(residual, d_model=64):
#     parts = Attention(d_model, 4), FeedForward(d_model, 2 * d_model)
#     return EncoderLayer(*parts, d_model, 0.0, residual)
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
#         for parameter in layer.parameters():
#             if parameter.dim() == 2:
#                 nn.init.xavier_uniform_(parameter)  # Xavier is Glorot's first name
#         x = layer(x)
#         sizes.append(x.std().item())
#         largest.append(layer.self_attention.weights.amax(dim=-1).mean().item())
#     return sizes, largest
#
#
# growth = {"norms": up_the_stack(Residual), "no norms": up_the_stack(NoNorm)}
# views.sizes(growth)

# %% [markdown]
# *Follow the red lines: without norms the numbers grow with every layer, and by the last one a token gives nearly all its weight to a single other.*
#
# The heads of the last layer have made their choice, and nobody has taught them which. Nor can they easily be taught: where one weight is 1, a small change of the scores changes nothing, and so there is hardly a gradient. Not one of nine such models, with six layers on each side and no norms, came down to guessing in 200 steps, and with norms all did ([evidence 3.5](evidence/03_stacks.ipynb)).
#
# So the two halves of add & norm guard against two evils: weights too even, which make all tokens one, and weights too sharp, which settle before anything is learned.

# %% [markdown]
# ## On the lane, or beside it?
#
# The paper's norm is on the lane, and rescales all that was ever written there. Many later models take it off the lane and put it in front of the sub-layer. This is called **pre-norm**, and the paper's order **post-norm**.

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
# In pre-norm the lane is a plain sum. It may grow, but no sub-layer sees that, because each reads the lane through a norm, and at the top of the stack one more norm follows.
#
# With six layers on each side, pre-norm learned faster in all our trainings ([evidence 3.5](evidence/03_stacks.ipynb)). Post-norm learned, too, with a slow start, which [chapter 12](12_optimizer.ipynb) explains (Xiong et al., 2020). We keep the paper's order.

# %% [markdown]
# ## The decoder's layer reads in two places
#
# The decoder has a stack of its own, with the tokens that are already written on its lanes. Its layer has a third sub-layer between the other two, *cross-attention*. Here is the lane of one token, with what every arrow carries.

# %% tags=["active-ipynb"]
# views.decoder_layer()

# %% [markdown]
# *Compare the two blue boxes: both get their query from the token's own lane, and only the source of keys and values differs.* (Every decoder layer is handed the same memory, the top of the encoder.)


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
# Does that hide the answer through six layers, or does it leak, from neighbour to neighbour? Where the gradient of an output with respect to an input is zero, nothing flows. So we send random vectors through six untrained layers of each kind, with the mask and without it.

# %% tags=["active-ipynb"]
# def dependence(outputs, inputs):
#     """1 where output t depends on input s, else 0: (T, S)."""
#     rows = []
#     for output in outputs[0]:
#         (gradient,) = torch.autograd.grad(output[0], inputs, retain_graph=True)
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
# encoder = Stack(layer_of(Residual, 32) for _ in range(6))
# decoder = Stack(decoder_layer(32) for _ in range(6))
# source = torch.randn(1, 6, 32, requires_grad=True)
# target = torch.randn(1, 5, 32, requires_grad=True)
# triangle = torch.ones(5, 5, dtype=torch.bool).tril()
# memory = encoder(source)
# masked, open_to_all = decoder(target, memory, triangle), decoder(target, memory)
# seen = {
#     "target, without a mask": dependence(open_to_all, target),
#     "target, causal": dependence(masked, target),
#     "source": dependence(masked, source),
# }
# views.dependence(seen)

# %% [markdown]
# *Read row by row: without a mask every output depends on the whole target, and with it on its own place and earlier ones; it always depends on the whole source.*
#
# Even six layers deep nothing leaks from the future. One triangle, in one kind of sub-layer, is enough, because nowhere else do the tokens of the target meet.

# %% tags=["active-ipynb"]
# assert code.count("self.norm(x + self.") == 1 and cut_losses[-1] > 1.5 > losses[-1]
# assert alike["no lanes"][2].min() > 0.99 and alike["lanes"][2].min() < 0.5
# assert (bets[0] - bets).abs().max() < 0.01
# assert torch.allclose(LayerNorm(4)(x), centred / root, atol=1e-4)
# assert growth["no norms"][0][-1] > 10 and max(growth["norms"][0][1:]) < 1.1
# assert growth["no norms"][1][-1] > 0.9
# assert seen["target, without a mask"].all() and seen["source"].all()
# assert torch.equal(seen["target, causal"], triangle.float())
# print("lanes keep tokens apart, norms hold the size, and nothing comes from the future")

# %% [markdown]
# ## What to keep
#
# - A token's vector goes through the whole stack as one lane of the residual stream, and every sub-layer reads from the lanes and adds to them.
# - Attention is a mean, so without lanes all tokens become one: what is in a sentence gets through, and who is where is lost.
# - Sums grow, and large numbers make attention choose before it has learned; LayerNorm brings each token's vector back to a standard size, on the lane (post-norm, the paper) or in front of the sub-layer (pre-norm, most later models).

# %% [markdown]
# ## Exercises
#
# **1. By hand.** What can LayerNorm make of a vector of *two* numbers, $(a, b)$ with $a \neq b$? Take gain 1, bias 0 and no $\epsilon$. How much of the vector is left?
#
# <details><summary>Answer</summary>
#
# The mean is $(a + b)/2$, and without it $\pm(a - b)/2$ are left. The root of the mean square is $|a - b|/2$. So the result is $(1, -1)$ if $a$ is the larger one, and $(-1, 1)$ if $b$ is. All that is left is which of the two is larger. LayerNorm takes two things from every vector, its height and its size; of 512 numbers that is little, of two it is nearly everything.
# </details>
#
# **2. In code.** Write `writes` for a pre-norm stack. It returns what each sub-layer adds, so that the input plus all that was added is the output of the stack. LayerNorm is `F.layer_norm(x, x.shape[-1:])`, without gain and bias.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.stacks import check_writes
#
#
# def writes(x, sublayers):
#     """x (B, T, d_model), a list of functions -> a list of what each of them adds."""
#     ...
#
#
# check_writes(writes)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def writes(x, sublayers):
#     added = []
#     for sublayer in sublayers:
#         added.append(sublayer(F.layer_norm(x, x.shape[-1:])))
#         x = x + added[-1]
#     return added
# ```
# </details>
#
# **3. In code, harder.** Find the gradient through LayerNorm by hand. You are given `x` and the gradient of the loss at the output (with $g = 1$, $b = 0$), and look for the gradient at `x`. Every $x_i$ acts on the output directly, through $\mu$, and through $\sigma$.

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
# Write $s = \sqrt{\sigma^2 + \epsilon}$ and $n_j = (x_j - \mu)/s$ for the output. If $x_i$ moves, the mean moves by $\partial\mu/\partial x_i = 1/d$, and the root by $\partial s/\partial x_i = (x_i - \mu)/(d\,s) = n_i/d$. Hence
#
# $$\frac{\partial n_j}{\partial x_i} = \frac{1}{s}\left(\delta_{ij} - \frac{1}{d} - \frac{n_i\,n_j}{d}\right),$$
#
# where $\delta_{ij}$ is 1 for $i = j$ and else 0. Multiply by the gradient $y_j$ at each output and add up over $j$:
#
# $$\frac{1}{s}\Bigl(y_i - \operatorname{mean}(y) - n_i \operatorname{mean}(y\,n)\Bigr).$$
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
# The two parts that are subtracted are those that LayerNorm forgets: a shift of all numbers, and a common factor.
# </details>
#
# **4. To think about.** Give a lane to the attentions only, or to the feed-forward networks only. Which of the two stacks keeps its tokens apart? Decide from the table of 1 and 9. Then run the cell, with random vectors and six untrained layers.

# %% tags=["active-ipynb"]
# class NoLane(Residual):
#     def forward(self, x, sublayer):
#         return self.norm(self.dropout(sublayer(x)))
#
#
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
# views.likeness({"attention only": half(without=1), "network only": half(without=0)})

# %% [markdown]
# *Compare the rows after two layers: the tokens stay apart where the attentions have a lane, and become one where only the networks have.*
#
# <details><summary>Why?</summary>
#
# With lanes around the networks only, attention has overwritten every token with nearly the same mean before the network can preserve anything. (Dong et al., 2021, prove that attention alone makes tokens alike very quickly.)
# </details>
#
# **Next.** [Chapter 4](04_attention.ipynb) opens the blue box: how does a token find out which others to read?
