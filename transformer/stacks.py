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
# *Section 3.1 of the paper. Reading takes about 25 minutes, running half a minute. You need [chapter 0](00_first_transformer.ipynb).*
#
# In chapter 0 a small Transformer learned to write numbers backwards. Wherever a sub-layer has found something, the code adds it to the vector `x` that was there before. We strike out this `x +` and change nothing else: all parameters are still there, and the recipe is the same. What will the model make of 31415926? Guess, and then guess *why* it does what it does, because that takes longer.

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
# import math
# from collections import Counter
#
# from transformer import first_transformer, views
# from transformer.core.records import table
#
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits

# %% [markdown]
# ## What happens if you delete `x +`?

# %% tags=["active-ipynb"]
# code = inspect.getsource(first_transformer)  # chapter 0, as text
# line = "return self.norm(x + self.dropout(sublayer(x)))"
# struck = line.replace("x + ", "")
# assert code.count(line) == 1
# print(f"{line}\n{struck}")

# %% tags=["active-ipynb"]
# whole, cut = {}, {}
# exec(code, whole)
# exec(code.replace(line, struck), cut)
# number = torch.tensor([[int(digit) + 3 for digit in "31415926"]])
#
#
# def train(chapter, steps=200):
#     torch.manual_seed(0)
#     model = chapter["Transformer"](V=13, d_model=64, d_ff=128, h=4, N=2, P_drop=0.0)
#     optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
#     for step in range(1, steps + 1):
#         loss = chapter["train_step"](model, optimizer, step)
#     answer = chapter["write"](model, number, longest=9)
#     print("31415926 ->", chapter["shown"](answer[0]), f"  loss {loss:.1f}")
#     return model
#
#
# whole_model = train(whole)

# %% tags=["active-ipynb"]
# cut_model = train(cut)

# %% [markdown]
# With `x +` the answer lacks only its last digit by now. Without it, the model writes 1, again and again. It does not even stop; we stop it after nine tokens. But it is not stupid. To guess among ten digits and the end mark costs $\ln 11 = 2.4$, and its loss is well below that. It has learned *something*. What could one know about 31415926, and still answer "1" and never end?

# %% [markdown]
# ## Every token keeps its lane
#
# To see what was cut, read one layer of a Transformer from left to right.

# %% tags=["active-ipynb"]
# views.residual_stream()

# %% [markdown]
# *Follow the lane of "cat": each sub-layer reads from it and adds to it what it has found, and after each sum LayerNorm rescales the lane.*
#
# There is one violet lane for each token. What travels on it is a vector of `d_model` numbers, and it keeps this width from the bottom of the stack to the top. All lanes together are called the **residual stream**.
#
# Beside the lanes are the **sub-layers**. Attention reads all lanes and writes into each of them, and it is the only place where tokens meet. The feed-forward network reads one lane and writes into the same one.
#
# Writing means adding. A sub-layer does not replace a word's vector but corrects it. For example, attention may add to the lane of "its" that there was a cat, and "its" is still there. The paper calls this a *residual connection* (He et al., 2016), because a sub-layer need only supply what is missing, the residue.
#
# After each sum LayerNorm brings the whole lane back to a standard size, with all that has been written on it so far. (How, and what for, has two sections of its own below.) The paper calls both together *add & norm*:
#
# $$\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$$


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


# %%
class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))): Section 3.1, with Section 5.4's dropout."""

    def __init__(self, d_model: int, P_drop: float = 0.1):
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(P_drop)

    def forward(self, x: Tensor, sublayer: Callable) -> Tensor:
        return self.norm(x + self.dropout(sublayer(x)))


# %% [markdown]
# The whole drawing is in the last line, where `x` is the lane and `sublayer(x)` is what is written. (Dropout, which [chapter 13](13_regularization.ipynb) explains, acts on what is written and never on the lane.)
#
# An encoder layer puts this line around each of its two sub-layers. Attention takes three inputs: the tokens that look, and then twice those that they look at, for a reason that [chapter 4](04_attention.ipynb) gives. In *self*-attention the tokens look at each other, so all three are `x`.


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


# %% [markdown] tags=["question-10"]
# ## Without lanes, all words become one
#
# The argument `residual` lets us change the wiring and nothing else. Here is a layer with chapter 0's attention in it:

# %% tags=["active-ipynb"]
# class Attention(first_transformer.Attention):
#     """Chapter 0's, which takes the tokens that are looked at only once."""
#
#     def forward(self, query, key, value, mask=None):
#         everything = torch.ones(query.shape[1], key.shape[1], dtype=torch.bool)
#         return super().forward(query, key, everything if mask is None else mask)
#
#
# def layer_of(residual, d_model=64):
#     network = first_transformer.FeedForward(d_model, 2 * d_model)
#     return EncoderLayer(Attention(d_model, 4), network, d_model, 0.0, residual)

# %% [markdown]
# Now let us take the lane away and keep the norm. We send eight random vectors through six layers that have learned nothing, and compare each token with each other by the cosine of the angle between them: 1 means that they point in the same direction.

# %% tags=["active-ipynb"]
# class NoLane(Residual):
#     def forward(self, x, sublayer):
#         return self.norm(self.dropout(sublayer(x)))
#
#
# def cosines(x):
#     """x (1, n, d_model) -> between all pairs of tokens (n, n)."""
#     return F.cosine_similarity(x[0, :, None], x[0], dim=-1)
#
#
# @torch.no_grad()
# def after_layers(make_layer):
#     """Cosines between eight tokens at the input, and after layers 1, 2 and 6."""
#     torch.manual_seed(0)
#     heights = [torch.randn(1, 8, 64)]
#     for _ in range(6):
#         heights.append(make_layer()(heights[-1]))
#     return [cosines(heights[i]) for i in (0, 1, 2, 6)]
#
#
# untrained = {
#     "lanes": after_layers(lambda: layer_of(Residual)),
#     "no lanes": after_layers(lambda: layer_of(NoLane)),
# }
# views.likeness(untrained)

# %% [markdown]
# *A dark square means that two tokens point in the same direction: without lanes all eight do so after two layers, and with lanes they drift together only slowly.*
#
# Why? Attention is a weighted mean. As long as a head has learned nothing, its weights are nearly alike; with eight tokens, each is about an eighth. Here are those of one token:

# %% tags=["active-ipynb"]
# torch.manual_seed(0)
# layer = layer_of(NoLane)
# layer(torch.randn(1, 8, 64))
# weights = layer.self_attention.weights[0, 0, 0]  # the first head, the first token
# print("weights:", *(f"{weight:.2f}" for weight in weights))

# %% [markdown]
# So every token receives nearly the same mean. With a lane this mean is *added* to the token. Without one it is all that the token has left.
#
# Nothing afterwards can undo this. The feed-forward network and the norm do the same to every token, and equal vectors stay equal. Not even the positions help. They were written into the vectors, and are averaged with the rest: the mean still holds that there was a 3, and that there was a first place, but no longer which belongs to which.
#
# Did this happen to our cut model? It has been trained, and there is a way out: a head that looks at one token only makes no mean. Here are the vectors of the eight digits of 31415926 in both models, on their way through the encoder. The vectors at its top are called the **memory**.

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def through_encoder(model):
#     heights = [model.embed(number)]
#     for layer in model.encoder.layers:
#         heights.append(layer(heights[-1], torch.ones(8, 8, dtype=torch.bool)))
#     return [cosines(x) for x in heights]
#
#
# trained = {
#     "lanes": through_encoder(whole_model),
#     "no lanes": through_encoder(cut_model),
# }
# views.likeness(trained, ("input", "layer 1", "layer 2: the memory"), "31415926")

# %% [markdown]
# *Compare the last column: with lanes the decoder is handed eight different vectors, and without lanes it gets one vector eight times.* (The dark squares beside the diagonal of the first column are the two digits 1.)
#
# The way out was there, and the model did not take it. Nor did it at three other learning rates, or in twice as many steps ([evidence 3.1](evidence/03_stacks.ipynb)).

# %% tags=["active-ipynb"]
# assert untrained["no lanes"][2].min() > 0.99
# assert untrained["lanes"][3].min() < 0.9
# assert trained["no lanes"][2].min() > 0.99
# assert trained["lanes"][2].min() < 0.5
# print("without lanes all tokens are one, before training and after it")

# %% [markdown]
# ## What is left is how often each digit occurs
#
# The one vector that the decoder is handed is made of means over all digits. A mean over 3, 1, 4, 1, 5, 9, 2, 6 can tell *which* digits are there and how often, but not *where*. And the decoder has lost its own lanes, too. So let us see what the cut model expects, when it is to write the first token of the answer, and when it has seen all digits of the answer and is to write the last. The black marks say how often each token occurs among the nine of the answer, "end" being the mark at which one stops.

# %% tags=["active-ipynb"]
# end = 2
# answer = [*number[0].flip(0).tolist(), end]
# target = torch.tensor(
#     [[1, *answer[:-1]]]
# )  # what the decoder sees: the begin mark first
# with torch.no_grad():
#     bets = cut_model(number, target)[0].softmax(dim=-1)  # (9, 13)
# tokens = [*range(3, 13), end]
# first_and_last = {"at the first place": bets[0], "at the ninth": bets[8]}
# views.bets(
#     {place: bet[tokens].tolist() for place, bet in first_and_last.items()},
#     [answer.count(token) / 9 for token in tokens],
#     [*"0123456789", "end"],
# )

# %% [markdown]
# *Compare left and right: at both places the model expects the same, and what it expects is nearly the share that each token has in the whole answer.*
#
# Now the puzzle has its answer. Two of the nine tokens are a 1, and one is the end mark, as there is one 3 and one 4. Whoever knows only that names the 1. The model names it at every place, because it does not know at which place it is, nor what it has just written: it could otherwise cross off the digits that are used up. And so it never ends, since the end mark always has only one token's share.
#
# Is that true of other numbers? Let us take those in which one digit is the most frequent, and see whether the answer is this digit nine times.

# %% tags=["active-ipynb"]
# def cost_of_counting(tokens):
#     """Nats for a row of tokens, if one knows how often each occurs and no more."""
#     return -sum(n * math.log(n / len(tokens)) for n in Counter(tokens).values())
#
#
# torch.manual_seed(1)
# source, target = cut["examples"](500)
# rows = [[token for token in row if token > 0] for row in target[:, 1:].tolist()]
# with torch.no_grad():
#     scores = cut_model(source, target[:, :-1]).transpose(1, 2)
#     loss = F.cross_entropy(scores, target[:, 1:], ignore_index=0).item()
# counting = sum(map(cost_of_counting, rows)) / sum(map(len, rows))
#
# answers = cut["write"](cut_model, source, longest=9)[:, 1:].tolist()
# hits = []
# for row, answer in zip(rows, answers):
#     (digit, most), (_, second) = Counter(row).most_common(2)
#     if most > second:
#         hits.append(answer == [digit] * 9)
# print(f"{sum(hits)} of {len(hits)} answers are the most frequent digit, nine times")
# print(f"loss {loss:.2f}; for whoever can only count, {counting:.2f}")

# %% [markdown]
# The cut model has become a statistician, and nearly as good as one can be who only counts. It knows what is in the number, and has lost who is where.
#
# (There is a second reason for lanes, of another kind. Stack twelve small networks in which no tokens meet at all, and without lanes they hardly learn, because what comes down as a gradient says nothing about what went up. [Evidence 3.3](evidence/03_stacks.ipynb) takes that apart.)

# %% tags=["active-ipynb"]
# assert (bets[0] - bets).abs().max() < 0.01
# assert sum(hits) > 0.85 * len(hits)
# assert counting < loss < counting + 0.2
# print("one bet for all nine places, and it is what can be counted")

# %% [markdown]
# ## What goes wrong without the norm?
#
# Now the other half of add & norm: let us keep the lane and delete the norm. Chapter 0's model does not mind. It has two layers, its matrices start small, and it learns without the norm as well ([evidence 3.2](evidence/03_stacks.ipynb)). So let us be bolder. We take six layers, as the paper has, and draw the matrices by the rule of Glorot and Bengio (2010), which is common and which this book's package follows: a matrix as wide as it is high then keeps the size of what it multiplies. What will happen to the numbers on the lanes?

# %% tags=["active-ipynb"]
# class NoNorm(Residual):
#     def forward(self, x, sublayer):
#         return x + self.dropout(sublayer(x))
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
#         weights = layer.self_attention.weights
#         largest.append(weights.max(dim=-1).values.mean().item())
#     return sizes, largest
#
#
# wirings = {"norms": up_the_stack(Residual), "no norms": up_the_stack(NoNorm)}
# sizes = {name: measured[0] for name, measured in wirings.items()}
# largest = {name: measured[1] for name, measured in wirings.items()}
# views.sizes(sizes, largest)

# %% [markdown]
# *Follow the red lines: without norms the numbers grow with every layer, and by the last one a token gives nearly all its weight to a single other.*
#
# Each sub-layer adds something about as large as what is there, so the sum grows, and the next sub-layer reads the larger sum: growth upon growth. One thing that suffers is attention. A score is a product of two vectors, so if both are ten times as large, it is a hundred times as large. Softmax then gives everything to the highest score, and a small change of the scores changes nothing. Where nothing changes, no gradient says how to look elsewhere. (Above, equal weights made all tokens one. Here is the opposite evil: a head that has chosen before it has learned.)

# %% tags=["active-ipynb"]
# assert sizes["no norms"][-1] > 10
# assert largest["no norms"][-1] > 0.9
# assert max(sizes["norms"][1:]) < 1.1
# print("without norms the numbers on the lanes grow more than tenfold in six layers")

# %% [markdown]
# ## LayerNorm keeps the pattern and forgets the size
#
# So the size must be brought back, layer by layer. Take the vector $(1, 2, 3, 6)$. Its mean is 3, and without the mean $(-2, -1, 0, 3)$ is left. The mean of the squares is $(4 + 1 + 0 + 9)/4 = 3.5$, and its root is about 1.87. Divide by that, and you are done. Its twin is five times as large and shifted by a hundred: $(105, 110, 115, 130)$. What will come out of the twin?

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
# The tiny $\epsilon$ keeps a vector of equal numbers from being divided by zero. Gain $g$ and bias $b$ are learned, one of each for every number of the vector. The class above leaves this to torch, which computes it in one go. Which numbers share a mean? Those of one token:

# %% tags=["active-ipynb"]
# views.norm_axes()

# %% [markdown]
# *Dark cells share one mean and one variance: in LayerNorm these are the numbers of one token, in BatchNorm one number of every token.*
#
# BatchNorm, which is common in networks for images, measures a token against whatever else is in the batch. LayerNorm needs no neighbours. It does the same to a sentence alone and in a batch, in training and in use, and to a sentence that is still being written.

# %% tags=["active-ipynb"]
# norm = LayerNorm(4)
# assert torch.allclose(norm(x), centred / root, atol=1e-4)
# nn.init.normal_(norm.gain)
# nn.init.normal_(norm.bias)
# assert torch.allclose(norm(x), norm.gain * centred / root + norm.bias, atol=1e-4)
# assert torch.equal(norm(torch.full((4,), 7.0)), norm.bias)
# print("the class computes the formula, and of equal numbers it makes the bias")

# %% [markdown]
# ## Where should the norm be?
#
# The paper's norm is on the lane, and rescales all that was ever written. Many later models take it off the lane and put it in front of the sub-layer. This is called **pre-norm**, and the paper's order **post-norm**.

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
# Here are all three wirings, in chapter 0's model with six layers on each side and with Glorot's matrices. The page reads the losses from a record, and shows of each wiring the middle one of three trainings, at the best of three learning rates ([evidence 3.5](evidence/03_stacks.ipynb)). Which of them will get below the line of guessing?

# %% tags=["active-ipynb"]
# runs = table("lanes")
# curves = {}
# for wiring, trainings in runs[runs.part == "deep"].groupby("wiring", sort=False):
#     best = trainings.groupby("factor").loss.mean().idxmin()
#     at_best = trainings[trainings.factor == best].sort_values("loss")
#     curves[wiring] = at_best["log.loss"].iloc[1]  # the middle one of three
# views.race(curves)

# %% [markdown]
# *Follow the red line: without norms the loss stays far above guessing, while both places of the norm learn, and pre-norm faster.*
#
# So a deep model needs its norms as much as its lanes. Without them not one of nine trainings even comes down to guessing.
#
# Pre-norm is ahead of post-norm in all of these trainings, as others have found, too: when training begins, post-norm's gradients near the top of the stack are large (Xiong et al., 2020), and it needs a slow start, the warm-up of [chapter 12](12_optimizer.ipynb). Given time, the paper's six layers learned in its own order, and we keep that; if you go deeper, take pre-norm. (When you compare your code with The Annotated Transformer, a well-known commentary, look twice: its text prints post-norm, and its code computes pre-norm.)

# %% [markdown]
# ## What may the decoder see?
#
# An encoder is six such layers, one after the other. The decoder's layer has a third sub-layer between the other two, *cross-attention*, in which the target's tokens look at the memory, the top of the encoder. So there is one way from the source to the target, and in training there might be a second one, a forbidden one: the decoder is given the whole right answer at once, and at each place has to name the *next* token. If it could look ahead, it would only have to copy. Its self-attention is therefore *causal*: a mask, a triangle, lets each token look at itself and at earlier ones.


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
# A stack is a list of layers and a loop. What the layers get besides `x`, the masks and in the decoder the memory, is the same for all of them; we call it `context`.


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


# %% tags=["active-ipynb"]
# views.two_stacks()

# %% [markdown]
# *Follow the blue line: the memory leaves the encoder after its sixth layer, and ends in the cross-attention of every decoder layer.* (This picture is upright, and each thick line stands for all lanes of a sequence. Sums and norms are where they were, and are left out.)
#
# Does the triangle keep the answer hidden through six layers, or does it leak, from neighbour to neighbour? We need not trust the drawing. Where the gradient of an output with respect to an input is zero, nothing flows. So we build six untrained layers of each kind, hand them random vectors, and ask, once with the mask and once without it.

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
#     network = first_transformer.FeedForward(d_model, 2 * d_model)
#     attentions = Attention(d_model, 4), Attention(d_model, 4)
#     return DecoderLayer(*attentions, network, d_model, P_drop=0.0)
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
# assert seen["target, without a mask"].all()
# assert torch.equal(seen["target, causal"], triangle.float())
# assert seen["source"].all()
# print("with its mask, no output depends on a later token")

# %% [markdown]
# *The package's [layers and stacks](https://github.com/OWNER/annotated-attention/blob/main/transformer/fast/stacks.py) have the same names and weights, and a test holds them equal to these.*

# %% [markdown]
# ## What to keep
#
# - A token's vector goes through the whole stack as one lane of the residual stream, and every sub-layer reads from the lanes and adds to them.
# - Attention is a mean, so without lanes all tokens become one: such a model still knows what is in a sentence, but no longer where.
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
# **2. In code.** In pre-norm the lane is a plain sum. Write `writes`, which returns what each sub-layer adds, so that the input plus all that was added is the output of the stack. LayerNorm is `F.layer_norm(x, x.shape[-1:])`, without gain and bias.

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
#
# People who look into models use this list: it says of each sub-layer what it contributed to the answer. In post-norm the list needs more work, because every norm rescales all that was written before: each contribution has to be divided by the roots of all later norms.
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
# **4. To think about.** Give a lane to the attentions only, or to the feed-forward networks only. Which of the two stacks keeps its tokens apart? Decide from the first drawing. Then run the cell: `residuals[0]` is around the attention, `residuals[1]` around the network.

# %% tags=["active-ipynb"]
# def half(without):
#     """An untrained layer with a lane around one of its sub-layers only."""
#     layer = layer_of(Residual)
#     layer.residuals[without] = NoLane(64, P_drop=0.0)
#     return layer
#
#
# views.likeness(
#     {
#         "attention only": after_layers(lambda: half(without=1)),
#         "network only": after_layers(lambda: half(without=0)),
#     }
# )

# %% [markdown]
# *Compare the rows after two layers: the tokens stay apart where the attentions have a lane, and become one where only the networks have.*
#
# <details><summary>Why?</summary>
#
# With lanes around the networks only, attention has overwritten every token with nearly the same mean before the network can preserve anything. Dong et al. (2021) prove that stacks of attention alone make tokens alike very quickly, and that lanes counteract it.
# </details>
#
# **Next.** [Chapter 4](04_attention.ipynb) opens the blue box: how does a token find out which others to read?
