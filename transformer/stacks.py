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
# In chapter 0 a small Transformer learned to write numbers backwards. Somewhere in its code are the two characters `x +`. We strike them out and change nothing else. All parameters are still there, and the model is trained by the same recipe. What will it make of 31415926? Guess, and then guess *why* it does what it does, because that takes longer.

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
# from collections import Counter
#
# from transformer import first_transformer, views
# from transformer.core.records import table
#
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits

# %% [markdown]
# ## What happens if you delete two characters?

# %% tags=["active-ipynb"]
# code = inspect.getsource(first_transformer)  # chapter 0, as text
# whole, cut = {}, {}
# exec(code, whole)
# exec(code.replace("self.norm(x + self.dropout(", "self.norm(self.dropout("), cut)
#
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
#     print("31415926 ->", chapter["shown"](answer[0]), f"  loss {loss:.2f}")
#     return model
#
#
# whole_model = train(whole)

# %% tags=["active-ipynb"]
# cut_model = train(cut)

# %% [markdown]
# With `x +` the answer has all digits but the last by now. Without it, the model repeats one digit and does not even stop. But it is not stupid: its loss is well below the 2.2 that it costs to guess among all digits. It has learned *something*. What could one know about 31415926 and still answer "1"?

# %% [markdown]
# ## Every token keeps its lane
#
# To see what was cut, read one layer of a Transformer from left to right.

# %% tags=["active-ipynb"]
# views.residual_stream()

# %% [markdown]
# *Follow one lane: the vector of "cat" goes all the way, and each sub-layer reads from the lanes and adds to them what it has found.*
#
# There is one violet lane for each token. What travels on it is a vector of `d_model` numbers, and it keeps this width from the bottom of the stack to the top. All lanes together are called the **residual stream**.
#
# Beside the lanes are the **sub-layers**. Attention reads all lanes and writes into each of them, and it is the only place where tokens meet. The feed-forward network reads one lane and writes into the same one.
#
# Writing means adding. A sub-layer does not replace a word's vector but corrects it. For example, attention may add to the lane of "its" that there was a cat, and "its" is still there. The paper calls this a *residual connection* (He et al., 2016), because a sub-layer need only supply what is missing, the residue.
#
# After each sum there is a LayerNorm, of which more below. The paper calls both together *add & norm*:
#
# $$\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$$


# %%
class LayerNorm(nn.Module):
    """Each vector gets mean 0 and variance 1, then a learned gain and bias.

    x (..., d_model) -> (..., d_model).
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
# The whole drawing is in the last line, where `x` is the lane and `sublayer(x)` is what is written. (Dropout, which [chapter 13](13_regularization.ipynb) explains, acts on what is written and never on the lane.) An encoder layer wraps this line around each of its two sub-layers. In self-attention the lanes ask, are asked and are fetched from, so the same `x` goes in three times; [chapter 4](04_attention.ipynb) is about these three roles.


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
# ## Without lanes, all words become one word
#
# The argument `residual` lets us change the wiring and nothing else. Here is a layer with chapter 0's attention in it:

# %% tags=["active-ipynb"]
# class Attention(first_transformer.Attention):
#     """Chapter 0's, with its keys and values handed in one by one; here they are one."""
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
# def after_layers(residual):
#     """Cosines between eight tokens at the input, and after layers 1, 2 and 6."""
#     torch.manual_seed(0)
#     heights = [torch.randn(1, 8, 64)]
#     for _ in range(6):
#         heights.append(layer_of(residual)(heights[-1]))
#     return [cosines(heights[i]) for i in (0, 1, 2, 6)]
#
#
# untrained = {"lanes": after_layers(Residual), "no lanes": after_layers(NoLane)}
# views.likeness(untrained)

# %% [markdown]
# *A dark square means that two tokens point in the same direction: without lanes all eight do so after two layers, and with lanes they drift together only slowly.*
#
# The reason is simple. Attention is a weighted mean, and as long as its heads have learned nothing they weigh all tokens nearly alike, so that every token receives nearly the same mean. With a lane this mean is *added* to the token. Without one it is all that the token has left.
#
# Nothing afterwards can undo this. The feed-forward network and the norm do the same to every token, and equal vectors stay equal. Even the place in the sentence is lost, because it was written into the vectors, too, and has been averaged with the rest.
#
# Did this happen to our cut model? It has been trained, and there is a way out: a head that looks at one token only makes no mean. Here are the vectors of the eight digits of 31415926 in both models, on their way through the encoder.

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
# views.likeness(trained, heads=("digits", "layer 1", "memory"))

# %% [markdown]
# *Compare the last column: with lanes the decoder is handed eight different vectors, and without lanes it gets one vector eight times.* (The dark squares beside the diagonal of the first column are the two digits 1.)
#
# Training has not found the way out. The one vector that is left is made of means over all digits, and now the puzzle has an answer. A mean over 3, 1, 4, 1, 5, 9, 2, 6 tells you *which* digits are there and how often, but not *where*. If you know only that, which digit would you name at every place? The one that occurs twice. Let us ask about other numbers in which one digit is the most frequent.

# %% tags=["active-ipynb"]
# source, _ = cut["examples"](500)
# answers = cut["write"](cut_model, source, longest=9)
# hits = []
# for digits, answer in zip(source.tolist(), answers.tolist()):
#     (digit, most), (_, second) = Counter(d for d in digits if d).most_common(2)
#     if most > second:
#         hits.append(answer[1] == digit)
# print(f"{sum(hits)} of {len(hits)} answers begin with the most frequent digit")

# %% [markdown]
# The cut model has become a statistician. It knows what is in the sentence, and has lost who is where.
#
# Can a better learning rate save it? We tried four rates, three trainings at each, for twice as many steps. Not one of these models writes a single number backwards, and at all rates but the highest, which helps no more, the tokens have become one ([evidence 3.1](evidence/03_stacks.ipynb)).
#
# What is it about a lane that is needed? Two experiments with stacks of small networks tell ([evidence 3.3](evidence/03_stacks.ipynb)). In the first there is no lane, but the weights *begin* as a copy of one, which is possible because $\mathrm{ReLU}(x) - \mathrm{ReLU}(-x) = x$. This stack does learn. So what a lane gives is above all a good beginning, in which each sub-layer starts as a correction of its input. In the second experiment the lane carries only the signal on its way up, or only the gradient on its way down. Neither half is of any use without the other.

# %% tags=["active-ipynb"]
# assert untrained["no lanes"][2].min() > 0.99
# assert untrained["lanes"][3].min() < 0.9
# assert trained["no lanes"][2].min() > 0.99
# assert trained["lanes"][2].min() < 0.5
# assert sum(hits) > 0.85 * len(hits)
# print("without lanes all tokens are one; what is left is how often each digit occurs")

# %% [markdown]
# ## LayerNorm keeps the pattern and forgets the size
#
# Now the other half of add & norm. A vector to which something is added again and again tends to grow. LayerNorm brings it back to a standard size. Take the vector $(1, 2, 3, 6)$. Its mean is 3, and without the mean $(-2, -1, 0, 3)$ is left. The mean of the squares is $(4 + 1 + 0 + 9)/4 = 3.5$, and its root is about 1.87. Divide by that, and you are done. In general, for a vector of $d$ numbers with mean $\mu$ and variance $\sigma^2$,
#
# $$\mathrm{LayerNorm}(x) = g \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + b .$$
#
# The tiny $\epsilon$ keeps a vector of equal numbers from being divided by zero. Gain $g$ and bias $b$ are learned, one of each for every number of the vector.


# %%
def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Normalise the last axis to mean 0 and variance 1, scale, shift (Ba et al., 2016).

    x: (..., d_model); gain, bias: (d_model,). The variance divides by d_model, not
    d_model - 1, and eps is inside the root, so that a constant row gives `bias`.
    """
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias


# %% [markdown]
# The twin of our vector is five times as large and shifted by a hundred. What will come out?

# %% tags=["active-ipynb"]
# rows = torch.tensor([[1.0, 2.0, 3.0, 6.0], [105.0, 110.0, 115.0, 130.0]])
# normed = layer_norm(rows, torch.ones(4), torch.zeros(4))
# views.layer_norm_bars(rows.tolist(), normed.tolist())

# %% [markdown]
# *The first two vectors have the same pattern at another size and height, and both become the third.*
#
# The norm keeps the pattern and forgets size and height. (The class `LayerNorm` above leaves the formula to torch, which is faster.) Which numbers share a mean? Those of one token:

# %% tags=["active-ipynb"]
# views.norm_axes()

# %% [markdown]
# *Dark cells share one mean and one variance: in LayerNorm these are the numbers of one token, in BatchNorm one number of every token.*
#
# BatchNorm, which is common in networks for images, measures a token against whatever else is in the batch. LayerNorm needs no neighbours. It does the same to a sentence alone and in a batch, in training and in use, and to a sentence that is still being written.

# %% tags=["active-ipynb"]
# gain, bias = torch.randn(2, 64)
# x = torch.randn(3, 4, 64)
# ours = layer_norm(x, gain, bias)
# assert torch.allclose(ours, F.layer_norm(x, (64,), gain, bias), atol=1e-5)
# assert torch.allclose(normed[0], normed[1], atol=1e-3)
# assert torch.equal(layer_norm(torch.full((64,), 7.0), gain, bias), bias)
# print("our formula equals torch's")

# %% [markdown]
# ## Where should the norm be?
#
# Is the norm as necessary as the lane? Let it stand the same trial: keep the lane and delete the norm. And there is a third possibility. Many later models take the norm off the lane and put it in front of the sub-layer. This is called **pre-norm**, and the paper's order **post-norm**.

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
# In pre-norm the lane is a plain sum. Whatever was written stays, and only at the top of the stack one more norm follows.
#
# Now a race of all four. Each wiring of chapter 0's model was trained at two learning rates or more, three times at each, and twice as long as above. That takes some minutes, so the page reads the losses from a record, and shows for each wiring the middle training at its best rate. Which of them will arrive?

# %% tags=["active-ipynb"]
# runs = table("lanes")
# curves = {}
# for wiring, of_wiring in runs[runs.part == "wirings"].groupby("wiring", sort=False):
#     best = of_wiring.groupby("factor").loss.mean().idxmin()
#     trainings = of_wiring[of_wiring.factor == best].sort_values("loss")
#     curves[wiring] = trainings["log.loss"].iloc[1]
# views.race(curves)

# %% [markdown]
# *Follow the red line: without lanes the loss soon stops falling, while without norms it goes on.*
#
# So the two halves of add & norm are not alike. Without the lane the model only counts. Without the norm this model still learns, and in the end writes nine of ten numbers backwards. Post-norm arrives lowest, but on its way every curve jumps, and at the other rate the order is different. Which of the three is best here, we could not tell ([evidence 3.2](evidence/03_stacks.ipynb)).
#
# Two layers are not six, though, and in deeper models the place of the norm counts. At the start of training, post-norm's gradients near the top of the stack are large (Xiong et al., 2020), and so it needs a slow start, the warm-up of [chapter 12](12_optimizer.ipynb). In [chapter 17](17_variations.ipynb) a deeper model in the paper's order failed at a learning rate at which pre-norm learned.
#
# We keep the paper's order. (Take care when you compare: The Annotated Transformer, a well-known commentary, prints post-norm in its text and computes pre-norm in its code.)

# %% [markdown]
# ## Two stacks and one bridge
#
# An encoder is six such layers, one after the other. The decoder's layer has a third sub-layer between the other two, *cross-attention*. There the target's lanes ask, and what they ask is the **memory**, the lanes at the top of the encoder.


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
# *The bridge leaves the top of the encoder, after its sixth layer, and ends in the cross-attention of every decoder layer.*
#
# Which output may depend on which input? We need not trust the drawing. Where the gradient of an output with respect to an input is zero, nothing flows. So we build six untrained layers of each kind, hand them random vectors, and ask. (The words in the picture only name the places.) At every place the decoder has to name the *next* word, so it may see its own word and earlier ones, but none that comes later: its self-attention is *causal*, and gets a triangle as its mask.

# %% tags=["active-ipynb"]
# torch.manual_seed(0)
# encoder = Stack(layer_of(Residual, 32) for _ in range(6))
# decoder = Stack(
#     DecoderLayer(
#         Attention(32, 4),
#         Attention(32, 4),
#         first_transformer.FeedForward(32, 64),
#         d_model=32,
#     )
#     for _ in range(6)
# ).eval()
# memory = encoder(torch.randn(1, 6, 32))
# x = torch.randn(1, 5, 32, requires_grad=True)
# triangle = torch.ones(5, 5, dtype=torch.bool).tril()
# y = decoder(x, memory, triangle)
#
# target, source = torch.zeros(5, 5), torch.zeros(5, 6)
# for t in range(5):
#     of_x, of_memory = torch.autograd.grad(y[0, t, 0], (x, memory), retain_graph=True)
#     target[t] = (of_x[0] != 0).any(dim=-1)
#     source[t] = (of_memory[0] != 0).any(dim=-1)
# views.dependence(target, source)

# %% [markdown]
# *Read row by row: an output of the decoder depends on its own and on earlier words of the target, on no later one, and on the whole source.*
#
# Even six layers deep nothing leaks from the future. For every word, all that is known about the source has come over the one bridge.

# %% tags=["active-ipynb"]
# assert torch.equal(target, triangle.float())
# assert source.all()
# by_hand = x
# for layer in decoder.layers:
#     by_hand = layer(by_hand, memory, triangle)
# assert torch.equal(y, by_hand)
# print("a stack is its layers in order, and no output depends on a later word")

# %% [markdown]
# *`from transformer.fast.stacks import EncoderLayer, DecoderLayer, Stack` gives the [engine's version](https://github.com/OWNER/annotated-attention/blob/main/transformer/fast/stacks.py): the same names and the same weights, and also pre-norm by a switch, a norm at the top of a stack, and caches for fast search. A test holds the two equal.*

# %% [markdown]
# ## What to keep
#
# - A token's vector goes through the whole stack as one lane of the residual stream, and every sub-layer reads from the lanes and adds to them.
# - Attention is a mean, so without lanes all tokens become one: such a model still knows what is in a sentence, but no longer where.
# - LayerNorm forgets the size of each vector by itself; the paper puts it on the lane (post-norm), most later models in front of the sub-layer (pre-norm).

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Normalise $(0, 0, 0, 4)$, with gain 1, bias 0 and no $\epsilon$. Then do the same with $(0, 0, 0, 400)$.
#
# <details><summary>Answer</summary>
#
# The mean is 1 and the differences are $(-1, -1, -1, 3)$. The variance is $(1 + 1 + 1 + 9)/4 = 3$, and its root is about 1.73. So the result is $(-0.58, -0.58, -0.58, 1.73)$. The second vector is a hundred times the first and gives the same.
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
# People who look into models use this list: it says of each sub-layer what it contributed to the answer. In post-norm no such list exists, because every norm rescales all that was written before.
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
# **4. To think about.** Give a lane to the attentions only, or to the feed-forward networks only. Which of the two stacks keeps its tokens apart? Decide from the first drawing, then change one line of `EncoderLayer` and look.
#
# <details><summary>A thought</summary>
#
# With lanes around the attentions only, the tokens grow more alike but remain eight tokens. With lanes around the feed-forward networks only, they are one after two layers, because attention has overwritten them before the network can preserve anything ([evidence 3.5](evidence/03_stacks.ipynb)).
# </details>
#
# **Next.** [Chapter 4](04_attention.ipynb) opens the blue box: how does a lane find out which others to read?
