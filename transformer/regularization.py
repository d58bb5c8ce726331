# ---
# jupyter:
#   jupytext:
#     formats: notebooks/13_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 5.4 Regularization
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/13_regularization.ipynb)
#
# A large model can learn its training sentences by heart. Two measures in Section 5.4 are meant to work against that. (The paper announces three and names two; perhaps it counts dropout on the sums of embeddings and positions by itself.) Dropout
# disturbs the model while it trains. Label smoothing tells it never to be quite sure. Both are one line; most of this
# notebook is about where exactly they act, and what other implementations do differently.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from transformer import plotting
# from transformer.model import Transformer, TransformerConfig
#
# torch.manual_seed(0);

# %% [markdown]
# ## Dropout
#
# Dropout (Srivastava et al., 2014) sets each number of a vector to zero with probability $P_{drop}$. No part of the model can
# rely on one number alone, because it may be missing. What is left is divided by $1 - P_{drop}$, so that the expected value stays:
#
# $$E[\mathrm{Dropout}(x)] = (1 - P_{drop}) \cdot \frac{x}{1 - P_{drop}} + P_{drop} \cdot 0 = x$$
#
# The paper takes $P_{drop} = 0.1$ for the base model, 0.3 for the big one. In its Table 3 (D) no dropout makes perplexity 5.77 in place of 4.92, and BLEU 24.6 in place of 25.8.

# %%
def dropout(x: torch.Tensor, P_drop: float) -> torch.Tensor:
    """Zero each number with probability P_drop and divide the rest by 1 - P_drop.

    So the mean stays. Layers use `nn.Dropout`, which does this while training and
    nothing in evaluation. Raises ValueError for a P_drop below 0, or of 1 and more.
    """
    if not 0 <= P_drop < 1:
        raise ValueError(f"P_drop must be at least 0 and below 1, not {P_drop}")
    keep = torch.rand_like(x) >= P_drop
    return x * keep / (1 - P_drop)


# %% tags=["active-ipynb"]
# print(dropout(torch.ones(2, 10), P_drop=0.3))
# x = torch.randn(1_000_000, dtype=torch.float64) + 2
# ours, theirs = dropout(x, 0.3), F.dropout(x, 0.3)
# print(f"mean {x.mean():.2f}, with dropout {ours.mean():.2f}, torch {theirs.mean():.2f}")

# %% tags=["active-ipynb"]
# for y in (ours, theirs):
#     assert abs((y == 0).double().mean() - 0.3) < 0.003
#     assert abs(y.mean() - x.mean()) < 0.01
# assert torch.allclose(ours[ours != 0], x[ours != 0] / 0.7, atol=1e-12)

# %% [markdown]
# About three in ten are zero, the rest are 1 / 0.7 = 1.43. Over a million numbers, the mean stays within the
# uncertainty of chance, and torch's own dropout does the same.
#
# ## What it touches
#
# The paper names two places: the output of each sub-layer, before it is added to the sub-layer's input and normalised; and the sum of
# embedding and position, in both stacks. In this package every dropout is an `nn.Dropout` module, so we can ask a model.

# %%
def dropouts(model: nn.Module) -> dict[str, nn.Dropout]:
    """{name: module} of every dropout in a model."""
    return {name: module for name, module in model.named_modules()
            if isinstance(module, nn.Dropout)}


# %%
def set_dropout(model: nn.Module, P_drop: float) -> None:
    """Give every dropout of a model this probability; ValueError outside [0, 1)."""
    if not 0 <= P_drop < 1:
        raise ValueError(f"P_drop must be at least 0 and below 1, not {P_drop}")
    for module in dropouts(model).values():
        module.p = P_drop


# %% tags=["active-ipynb"]
# with torch.device("meta"):  # the base model's structure, without its numbers
#     base = Transformer(TransformerConfig.preset("base", vocab_size=37_000))
# names = list(dropouts(base))
# print(len(names), "in all:", ", ".join(names[:3]), "...", names[-1])

# %% tags=["active-ipynb"]
# assert len(names) == 1 + 6 * 2 + 6 * 3
# assert not any("attention" in name or "feed_forward" in name for name in names)

# %% [markdown]
# One for the sums of embedding and position (used for source and target), two in each encoder layer, three in each
# decoder layer. **None stands inside a sub-layer:** not on the attention weights, not between the two matrices
# of the position-wise network. Torch's `nn.Transformer` has both of these. So our sub-layers give the
# same output whether they train or not:

# %% tags=["active-ipynb"]
# sizes = dict(d_model=16, d_ff=32, N=1, h=2, P_drop=0.5)
# model, x = Transformer(TransformerConfig(20, **sizes)), torch.randn(3, 4, 16)
# layer = model.encoder.layers[0]
#
# def outputs():
#     return layer.self_attention(x, x, x), layer.feed_forward(x), layer(x)
#
# training = outputs()  # a new model is in training mode
# layer.eval()
# evaluation = outputs()
# assert torch.equal(training[0], evaluation[0])
# assert torch.equal(training[1], evaluation[1])
# assert not torch.allclose(training[2], evaluation[2])  # the layer around them does drop

# %% [markdown]
# In evaluation nothing is dropped, and nothing is left to chance; in training two calls differ:

# %% tags=["active-ipynb"]
# tokens = torch.randint(3, 20, (2, 6))
# assert torch.equal(model.eval()(tokens, tokens), model(tokens, tokens))
# assert not torch.equal(model.train()(tokens, tokens), model(tokens, tokens))

# %% [markdown]
# ## Label smoothing
#
# The usual target puts all probability on the right token, called *gold*. To match it, a model must push that token's logit
# towards infinity. Label smoothing (Szegedy et al., 2015) takes a small part $\epsilon$ away and spreads it evenly over **all**
# $V$ types, the right one included. The paper takes $\epsilon_{ls} = 0.1$. The target probability of type $k$ is then
#
# $$q(k) = (1 - \epsilon)\,[k = gold] + \frac{\epsilon}{V} ,$$
#
# where the bracket is 1 for the gold type and 0 for all others.

# %%
def smoothed_targets(gold: torch.Tensor, V: int, epsilon: float) -> torch.Tensor:
    """(1 - epsilon) on the gold type plus epsilon / V on every type (Szegedy, 2015).

    Ids (...) -> (..., V).
    """
    return (1 - epsilon) * F.one_hot(gold, V) + epsilon / V


# %% [markdown]
# A popular variant leaves out the gold type and the padding mark, and gives each of the others
# $\epsilon / (V - 2)$. For comparison:

# %%
def smoothed_without_padding(
        gold: torch.Tensor, V: int, epsilon: float, pad_id: int = 0) -> torch.Tensor:
    """What some implementations do instead: nothing on padding, ids (...) -> (..., V).

    1 - epsilon on gold, and epsilon / (V - 2) on the others.
    """
    targets = torch.full((*gold.shape, V), epsilon / (V - 2))
    targets[..., pad_id] = 0.0
    return targets.scatter(-1, gold[..., None], 1 - epsilon)


# %% tags=["active-ipynb"]
# gold = torch.tensor(3)
# rows = torch.stack([smoothed_targets(gold, 8, 0.0), smoothed_targets(gold, 8, 0.1),
#                     smoothed_without_padding(gold, 8, 0.1)])
# names = ["no smoothing", "ε / V", "ε / (V - 2)"]
# plotting.heatmap(rows, range(8), names, values=True, largest=1.0)
# assert torch.allclose(rows.sum(dim=1), torch.ones(3))

# %% [markdown]
# Columns are types; type 3 is gold, type 0 padding. With 8 types the two differ visibly (0.0125 and 0.0167; the picture rounds to 0.01 and 0.02), with
# the paper's 37,000 hardly: the gold type gets 0.9000027 instead of 0.9, each of the others but padding 0.005% less. What the variant does
# break is equality with the formula, and with torch. Torch's `cross_entropy` follows Szegedy, so the loss is one call. Padding
# is left out, and "mean" is a mean over real tokens.

# %%
def label_smoothing_loss(
        logits: torch.Tensor, gold: torch.Tensor, epsilon: float = 0.1, pad_id: int = 0,
        reduction: str = "mean") -> torch.Tensor:
    """Cross-entropy with smoothed targets over the real tokens (Section 5.4), in nats.

    logits: (B, T, V), gold: (B, T) ids. Where gold is pad_id, nothing is counted and
    the gradient is zero. reduction: "mean" is per real token, "sum" their total, "none"
    (B * T,) losses.
    """
    return F.cross_entropy(logits.flatten(0, 1), gold.flatten(), ignore_index=pad_id,
                           label_smoothing=epsilon, reduction=reduction)


# %% [markdown]
# In training (notebook 14) a model hands its loss three things: the layer that maps states to logits, the decoder's states, and
# the gold tokens. So another loss can take its place, also one that never holds all logits at once
# (`transformer.fast`).

# %%
@dataclass(frozen=True)
class SmoothedLoss:
    """`label_smoothing_loss` of a model's states, summed over the real tokens, in nats.

    output: states (B, T, d_model) -> logits (B, T, V); x: the states; gold: (B, T) ids.
    """

    epsilon: float = 0.1
    pad_id: int = 0

    def __call__(self, output: Callable, x: torch.Tensor, gold: torch.Tensor):
        logits = output(x).to(x.dtype)  # in bf16 the product is short, the loss is not
        return label_smoothing_loss(logits, gold, self.epsilon, self.pad_id, "sum")


# %% [markdown]
# The same, written out, for any targets. We compare with it, and with the variant:

# %%
def cross_entropy_with_targets(
        logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """-sum_k q(k) ln p(k) for each token, the definition: both (..., V) -> (...)."""
    return -(targets * logits.log_softmax(dim=-1)).sum(dim=-1)


# %% tags=["active-ipynb"]
# logits = torch.randn(4, 6, 8, dtype=torch.float64, requires_grad=True)
# gold = torch.tensor([[3, 5, 1, 7, 2, 6], [4, 2, 0, 0, 0, 0]]).repeat(2, 1)  # 0 pads
# loss, real = label_smoothing_loss(logits, gold), gold != 0
# by_formula = cross_entropy_with_targets(logits, smoothed_targets(gold, 8, 0.1))[real]
# others = smoothed_without_padding(gold, 8, 0.1)
# variant = cross_entropy_with_targets(logits, others)[real]
# print(f"loss {loss:.4f}, formula {by_formula.mean():.4f}, V - 2 {variant.mean():.4f}")

# %% [markdown]
# The first two agree. The third is another loss. The section "Checks" holds this to six digits.

# %% [markdown]
# ## How low can the loss go?
#
# Not to zero. The loss is smallest where the model's probabilities are the targets themselves, and then it is the
# targets' entropy: one term for the gold type, with $q = 1 - \epsilon + \epsilon / V$, and $V - 1$ for the others.

# %%
def lowest_loss(V: int, epsilon: float) -> float:
    """The smallest loss with smoothed targets: their entropy, -sum q(k) ln q(k), nats.

    q is 1 - epsilon + epsilon / V on the gold type and epsilon / V on the V - 1 others.
    """
    gold, other = 1 - epsilon + epsilon / V, epsilon / V
    if epsilon == 0:
        return 0.0
    return -gold * math.log(gold) - (V - 1) * other * math.log(other)


# %% [markdown]
# Let a model give the gold token the probability $p$ and share the rest evenly. How does the loss depend on $p$?

# %%
def confident_logits(p: torch.Tensor, V: int) -> torch.Tensor:
    """Logits (len(p), 1, V) that give type 1 each of the probabilities p.

    All others have an equal share.
    """
    logits = torch.log((1 - p) / (V - 1))[:, None].repeat(1, V)
    logits[:, 1] = p.log()
    return logits[:, None]

# %% tags=["active-ipynb"]
# p = torch.linspace(0.5, 0.9995, 1000, dtype=torch.float64)
# logits_of_p, ones = confident_logits(p, 1000), torch.ones(1000, 1, dtype=torch.long)
# curves = {e: label_smoothing_loss(logits_of_p, ones, e, reduction="none")
#           for e in (0.0, 0.1, 0.2)}
# plotting.lines(p, {f"ε = {e}": curve for e, curve in curves.items()},
#                "probability of the gold token", "loss (V = 1,000)")
# for e in (0.1, 0.2):
#     assert abs(curves[e].min() - lowest_loss(1000, e)) < 1e-5
#     assert abs(p[curves[e].argmin()] - (1 - e + e / 1000)) < 1e-3

# %% [markdown]
# Without smoothing, more confidence always pays. With it there is a best confidence, $1 - \epsilon + \epsilon / V$, and
# going beyond costs. With the paper's vocabulary no training loss can fall below this:

# %% tags=["active-ipynb"]
# of_gold = -0.9 * math.log(0.9)
# print(f"{lowest_loss(37_000, 0.1):.3f} nats, {of_gold:.3f} of them from the gold token")

# %% [markdown]
# The rest comes from the other types: together they get only 0.1, but each costs $-\ln q = 12.8$.

# %% [markdown]
# ## In the paper perplexity gets worse and BLEU better
#
# Perplexity is $e^{loss}$, measured without smoothing (the paper does not say so; but with $\epsilon = 0.2$ no smoothed one can be under 13.5, and Table 3 has 5.47): between how many equally likely types the model wavers, so to speak. BLEU
# (notebook 15) compares finished translations with a human one; higher is better. Perplexity rewards a model for being sure when
# it is right, and a smoothed model is trained not to be: even when it knows the answer it says 0.9.

# %% [markdown]
# Table 3 (row D) shows it. Without
# smoothing: perplexity 4.67, BLEU 25.3. With 0.1: 4.92 and 25.8. With 0.2: 5.47 and 25.7. (The paper gives one number a row, and no spread. Notebook 17 has three seeds of the same rows in small. And notebook 16 finds a *better* perplexity with smoothing, on a small corpus that is seen many times.)

# %% [markdown]
# BLEU looks only at which words come out. A model that is not too sure of one word leaves others a chance: notebook 15 compares whole sentences,
# and one that begins with the second-best word may win. The paper reports this effect; it does not prove a cause.

# %% [markdown]
# ## Checks
#
# **Torch's loss is the formula**, as a mean over real tokens and as a sum; the variant is not. At padding no
# gradient flows, everywhere else it does.

# %% tags=["active-ipynb"]
# total = label_smoothing_loss(logits, gold, reduction="sum")
# assert abs(loss - by_formula.mean()) < 1e-6
# assert abs(variant.mean() - by_formula.mean()) > 1e-3
# assert abs(total - by_formula.sum()) < 1e-5
# loss.backward()
# assert logits.grad[~real].eq(0).all() and logits.grad[real].ne(0).all()

# %% [markdown]
# **The loop's loss is the same.** With a layer that changes nothing, states are logits:

# %% tags=["active-ipynb"]
# assert torch.equal(SmoothedLoss()(nn.Identity(), logits, gold), total)

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** A new model knows nothing and gives every type the same probability. What is its loss, for $V = 37,000$ and
# $\epsilon = 0.1$? (`math.log` is imported.)

# %% tags=["active-ipynb"]
# your_answer = ...
# if your_answer is not ...:
#     gold = torch.ones(1, 1, dtype=torch.long)
#     found = label_smoothing_loss(torch.zeros(1, 1, 37_000), gold)
#     assert abs(found - your_answer) < 1e-3

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_answer = math.log(37_000)`, about 10.5, with or without smoothing: every type costs $\ln V$, so it does not
# matter how the target is spread. A first training loss far above it is a sign of a bad start.
# </details>

# %% [markdown]
# ## Next
#
# [14 Training](14_training.ipynb) puts model, batches, optimizer and loss into one loop. In Colab the next notebook
# imports this module from the installed package; to try changes of your own, clone the repository and install it with
# `pip install -e .`.
