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
# A large model can learn its training sentences by heart. Section 5.4 of the paper announces three measures against that and describes two: *dropout*
# disturbs the model while it trains, and *label smoothing* asks it never to be quite sure. At the end you will have both, and know where
# exactly they act, what tensor2tensor and torch do differently, how sure a model trained with it is, and what can be said of the paper's finding that smoothing makes perplexity worse and BLEU better. Reading takes about 25 minutes, running it some ten seconds.

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

import torch
import torch.nn.functional as F
from torch import nn

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# import sacrebleu
#
# from transformer import Transformer, TransformerConfig, load
# from transformer.core.records import read_rows
# from transformer.corpora import read_corpus
# from transformer.data import collate, encode_pairs
# from transformer.views import plotting
#
# torch.manual_seed(0)
# torch.set_num_threads(1);  # on tensors this small a second thread only waits

# %% [markdown]
# ## Two ways to judge a translator
#
# The paper judges its models by two numbers, and regularization changes them in different ways, so both come first.
#
# **Perplexity** asks how surprised the model is by a human translation. Let $p_t$ be the probability that it gives to the right token number $t$ after reading the source and the right tokens before that one. The mean of $-\ln p_t$ over all $n$ tokens is the cross-entropy (in *nats*, [notebook
# 06](06_embeddings.ipynb)), and
#
# $$\mathrm{perplexity} = \exp\Big(-\frac{1}{n}\sum_{t=1}^{n} \ln p_t\Big) .$$
#
# A model that always hesitates between $k$ equally likely tokens has perplexity $k$. Lower is better, and 1 is perfect. If three right tokens get the
# probabilities 1/2, 1/4 and 1/8, the perplexity is 4, as if each had got 1/4.

# %% [markdown]
# **BLEU** (Papineni et al., 2002) looks at what the model writes by itself. Let $P_n$ be the share of the outputs' runs of $n$ words that also stand, as often, in the human translation, the *reference*, over all sentences. BLEU is the geometric mean of $P_1$ to $P_4$, times 100. If the outputs' $c$ words in all are fewer than the references' $r$, it is multiplied by a penalty $BP = e^{1 - r/c}$ (otherwise $BP = 1$):
#
# $$\mathrm{BLEU} = 100 \cdot BP \cdot (P_1 P_2 P_3 P_4)^{1/4} .$$
#
# Higher is better. [Notebook 15](15_decoding.ipynb) has the details; here is one reference of eleven words, and three outputs.

# %% tags=["active-ipynb"]
# reference = "the small dog sleeps under the old table in the kitchen"
# outputs = {
#     "the same": reference,
#     "one word changed": reference.replace("old", "big"),
#     "cut short": "the small dog sleeps under the old table",
# }
# for name, output in outputs.items():
#     bleu = sacrebleu.sentence_bleu(output, [reference])
#     shares = ", ".join(f"{share:.0f}" for share in bleu.precisions)
#     print(f"{name:16} P_1 to P_4: {shares} %, BP {bleu.bp:.2f}, BLEU {bleu.score:.0f}")
# p = torch.tensor([0.5, 0.25, 0.125])
# print(f"and the perplexity of 1/2, 1/4 and 1/8: {(-p.log().mean()).exp():.1f}")

# %% [markdown]
# One changed word breaks one of eleven runs of one word, but four of eight runs of four, so BLEU falls by much more than a tenth. The
# sentence that was cut has only runs that are right, and pays the penalty.

# %% [markdown]
# ## Dropout
#
# Dropout (Srivastava et al., 2014) sets each number of a vector to zero with probability $P_{drop}$ while the model trains. No part of the
# model can rely on one number alone, because that number may be missing. What is left is divided by $1 - P_{drop}$, so that the
# expected value stays:
#
# $$E[\mathrm{Dropout}(x)] = (1 - P_{drop}) \cdot \frac{x}{1 - P_{drop}} + P_{drop} \cdot 0 = x$$
#
# The paper takes $P_{drop} = 0.1$ for the base model and 0.3 for the big one (0.1 for English to French). In its Table 3 (D) a base model without
# dropout has perplexity 5.77 where the one with dropout has 4.92, and BLEU 24.6 where that one has 25.8.


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
# for y in (ours, theirs):
#     assert abs((y == 0).double().mean() - 0.3) < 0.003
#     assert abs(y.mean() - x.mean()) < 0.01
# assert torch.allclose(ours[ours != 0], x[ours != 0] / 0.7, atol=1e-12)
# print("30% are zero, the others are divided by 0.7, and the mean of a million stays")

# %% [markdown]
# ## What dropout touches
#
# The paper names two places: the output of each sub-layer, before it is added to the sub-layer's input and normalised; and the sum of
# embedding and position, in both stacks. In this package every dropout is an `nn.Dropout` module, so that a model can be asked for all of
# them, and all can be set to another probability, to go on training with more of it, say.


# %%
def dropouts(model: nn.Module) -> dict[str, nn.Dropout]:
    """{name: module} of every dropout in a model."""
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Dropout)
    }


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
# assert len(names) == 1 + 6 * 2 + 6 * 3
# assert not any("attention" in name or "feed_forward" in name for name in names)
# print("1 for embedding + position, 2 an encoder layer, 3 a decoder layer, none within")

# %% [markdown]
# The module at the sums of embedding and position serves source and target alike. **None stands inside a sub-layer:** not on the
# attention weights, and not between the two matrices of the position-wise network. Torch's `nn.Transformer` drops in both of these places. So
# our sub-layers give the same output whether they train or not, and the layer around them does not:

# %% tags=["active-ipynb"]
# sizes = dict(d_model=16, d_ff=32, N=1, h=2, P_drop=0.5)
# model, x = Transformer(TransformerConfig(20, **sizes)), torch.randn(3, 4, 16)
# layer = model.encoder.layers[0]
#
#
# def outputs():
#     return layer.self_attention(x, x, x), layer.feed_forward(x), layer(x)
#
#
# training = outputs()  # a new model is in training mode
# layer.eval()
# evaluation = outputs()
# assert torch.equal(training[0], evaluation[0])
# assert torch.equal(training[1], evaluation[1])
# assert not torch.allclose(training[2], evaluation[2])
# print("training or not: attention and network give the same, the whole layer does not")

# %% tags=["active-ipynb"]
# tokens = torch.randint(3, 20, (2, 6))
# assert torch.equal(model.eval()(tokens, tokens), model(tokens, tokens))
# assert not torch.equal(model.train()(tokens, tokens), model(tokens, tokens))
# set_dropout(model, 0.0)
# assert torch.equal(model(tokens, tokens), model(tokens, tokens))
# print(
#     "two calls of the whole model agree in evaluation, and differ in training,"
#     "\nuntil all its dropouts are set to 0"
# )

# %% [markdown]
# A common mistake follows from this: a model that is validated without `model.eval()` still drops numbers, and looks worse than it is.
#
# ## Label smoothing
#
# The usual target puts all probability on the right token, called *gold*. To match it, a model would have to push that token's logit
# towards infinity. Label smoothing (Szegedy et al., 2015) takes a small part $\epsilon$ away and spreads it evenly over **all**
# $V$ types of the vocabulary, the right one included. The paper takes $\epsilon_{ls} = 0.1$. The target probability of type $k$ is then
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
# There are two other forms. **tensor2tensor**, the authors' own code, gives the gold type $1 - \epsilon$ and each of the other $V - 1$
# types $\epsilon / (V - 1)$. That is Szegedy's form with the larger $\epsilon' = \epsilon V / (V - 1)$: the others get $\epsilon' / V$, and gold
# $1 - \epsilon' + \epsilon' / V = 1 - \epsilon$. A popular variant also leaves out the padding mark, and gives each of the others $\epsilon / (V - 2)$:


# %%
def smoothed_without_padding(
    gold: torch.Tensor, V: int, epsilon: float, pad_id: int = 0
) -> torch.Tensor:
    """What some implementations do instead: nothing on padding, ids (...) -> (..., V).

    1 - epsilon on gold, and epsilon / (V - 2) on the others.
    """
    targets = torch.full((*gold.shape, V), epsilon / (V - 2))
    targets[..., pad_id] = 0.0
    return targets.scatter(-1, gold[..., None], 1 - epsilon)


# %% tags=["active-ipynb"]
# def tensor2tensor_targets(gold, V, epsilon):
#     return smoothed_targets(gold, V, epsilon * V / (V - 1))
#
#
# gold = torch.tensor(3)
# rows = torch.stack(
#     [
#         smoothed_targets(gold, 4, 0.0),
#         smoothed_targets(gold, 4, 0.12),
#         tensor2tensor_targets(gold, 4, 0.12),
#         smoothed_without_padding(gold, 4, 0.12),
#     ]
# )
# names = ["no smoothing", "ε / V (here)", "ε / (V - 1)", "ε / (V - 2)"]
# plotting.heatmap(
#     rows,
#     range(4),
#     names,
#     "what each type gets (ε = 0.12, V = 4, gold 3)",
#     values=True,
#     largest=1.0,
#     labels=("type (0 is padding)", "form"),
# )
# assert torch.allclose(rows.sum(dim=1), torch.ones(4))
# assert torch.allclose(rows[2], torch.tensor([0.04] * 3 + [0.88]))
# print("each row adds up to 1; Szegedy's with ε V / (V - 1) is tensor2tensor's")

# %% [markdown]
# With four types the forms differ visibly. With the paper's 37,000 they hardly do: the gold type gets 0.9000027 in place of 0.9.
# Torch's `cross_entropy` follows Szegedy, so the loss is one call. Places that hold padding are not counted; "mean" is over the real tokens.


# %%
def label_smoothing_loss(
    logits: torch.Tensor,
    gold: torch.Tensor,
    epsilon: float = 0.1,
    pad_id: int = 0,
    reduction: str = "mean",
) -> torch.Tensor:
    """Cross-entropy with smoothed targets over the real tokens (Section 5.4), in nats.

    logits: (B, T, V), gold: (B, T) ids. Where gold is pad_id, nothing is counted and
    the gradient is zero. reduction: "mean" is per real token, "sum" their total, "none"
    (B * T,) losses; where all is padding, "mean" and "sum" are zero.
    """
    if reduction == "mean" and (gold == pad_id).all():
        reduction = "sum"  # the mean of nothing is no number
    return F.cross_entropy(
        logits.flatten(0, 1),
        gold.flatten(),
        ignore_index=pad_id,
        label_smoothing=epsilon,
        reduction=reduction,
    )


# %% [markdown]
# The same, written out from the definition for any targets, to compare with:


# %%
def cross_entropy_with_targets(
    logits: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """-sum_k q(k) ln p(k) for each token, the definition: both (..., V) -> (...)."""
    return -(targets * logits.log_softmax(dim=-1)).sum(dim=-1)


# %% tags=["active-ipynb"]
# logits = torch.randn(4, 6, 8, dtype=torch.float64, requires_grad=True)
# gold = torch.tensor([[3, 5, 1, 7, 2, 6], [4, 2, 0, 0, 0, 0]]).repeat(2, 1)  # 0 pads
# loss, real = label_smoothing_loss(logits, gold), gold != 0
# targets = {
#     "ε / V": smoothed_targets,
#     "ε / (V - 1)": tensor2tensor_targets,
#     "ε / (V - 2)": smoothed_without_padding,
# }
# losses = {
#     name: cross_entropy_with_targets(logits, form(gold, 8, 0.1))[real].mean()
#     for name, form in targets.items()
# }
# print(f"torch's {loss:.6f};", ", ".join(f"{n}: {x:.6f}" for n, x in losses.items()))
# loss.backward()
# assert abs(loss - losses["ε / V"]) < 1e-6
# assert min(abs(loss - losses[n]) for n in ("ε / (V - 1)", "ε / (V - 2)")) > 1e-4
# assert logits.grad[~real].eq(0).all() and logits.grad[real].ne(0).all()
# print("torch's loss is the formula with ε / V, and padding has no gradient")

# %% [markdown]
# ## How low can the loss go?
#
# Not to zero. The loss is smallest where the model's probabilities are the targets themselves, and then it is the
# targets' *entropy* $-\sum_k q(k) \ln q(k)$: one term for the gold type, with $q = 1 - \epsilon + \epsilon / V$, and $V - 1$ terms for the others.


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
# Let a model give the gold token the probability $p$ and share the rest evenly among the others. How does the loss depend on $p$? Dots mark the lowest points drawn; tensor2tensor subtracts its lowest loss, so that its dot lies at zero:


# %%
def confident_logits(p: torch.Tensor, V: int) -> torch.Tensor:
    """Logits (len(p), 1, V) that give type 1 each of the probabilities p.

    All others have an equal share.
    """
    logits = torch.log((1 - p) / (V - 1))[:, None].repeat(1, V)
    logits[:, 1] = p.log()
    return logits[:, None]


# %% tags=["active-ipynb"]
# p, V = torch.linspace(0.5, 0.9995, 1000, dtype=torch.float64), 1000
# logits_of_p, ones = confident_logits(p, V), torch.ones(1000, 1, dtype=torch.long)
# curves = {
#     f"ε = {e}": label_smoothing_loss(logits_of_p, ones, e, reduction="none")
#     for e in (0.0, 0.1, 0.2)
# }
# theirs = tensor2tensor_targets(ones, V, 0.1)
# floor = cross_entropy_with_targets(theirs.log(), theirs).mean()
# curves["tensor2tensor, ε = 0.1"] = (
#     cross_entropy_with_targets(logits_of_p, theirs)[:, 0] - floor
# )
# title = "with ε = 0.1 the best answer is 0.9, not 1"
# ax = plotting.lines(
#     p, curves, "probability of the gold token", "loss, nats (V = 1,000)", title
# )
# for curve in curves.values():
#     ax.plot(p[curve.argmin()], curve.min(), "ko", markersize=5)  # its lowest point

# %% tags=["active-ipynb"]
# for e in (0.1, 0.2):
#     curve = curves[f"ε = {e}"]
#     assert abs(curve.min() - lowest_loss(V, e)) < 1e-5
#     assert abs(p[curve.argmin()] - (1 - e + e / V)) < 1e-3
# theirs_at = p[curves["tensor2tensor, ε = 0.1"].argmin()]
# print(f"lowest at p = 1 - ε + ε / V; tensor2tensor's at {theirs_at:.2f}, and 0 there")
# for e in (0.1, 0.2):
#     low = lowest_loss(37_000, e)
#     print(f"V = 37,000, ε = {e}: at least {low:.2f} nats, e^loss {math.exp(low):.1f}")

# %% [markdown]
# Without smoothing, more confidence always pays. With it there is a best confidence, and going beyond costs. Most of the lowest
# loss comes from the other types. Together they get only 0.1, but with the paper's vocabulary $-\ln q$ is 12.8 nats for each, and $0.1 \cdot 12.8$
# makes 1.28 of the 1.38.
#
# The subtraction leaves the gradient as it was, but tensor2tensor's training losses
# cannot be compared with ours (a deviation from tensor2tensor, not from the paper: see DEVIATIONS.md).

# %% [markdown]
# So whoever quotes a perplexity must say whether it was measured with smoothing. The paper does not. Its Table 3 has 5.47 with $\epsilon = 0.2$. The
# exponential of Szegedy's smoothed loss could not be that, since it is at least 13.5; that of tensor2tensor's could, because its floor is 0. But what tensor2tensor
# reports as perplexity is computed without smoothing, and so is ours.

# %% [markdown]
# ## The probabilities of a model trained with smoothing
#
# The model that comes with the package was trained with $\epsilon = 0.1$. How sure is it of the right tokens of 300 sentences that it
# has not seen?

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# pairs = encode_pairs(tokenizer, read_corpus("bundled", "validation")[:300])
# batch = collate(pairs)
# with torch.no_grad():
#     logits = model.eval()(batch.source, batch.decoder_input)
#     log_p = logits.log_softmax(dim=-1)
# real = batch.gold != 0
# log_p = log_p.gather(-1, batch.gold[..., None])[..., 0][real]
# p, wrong = log_p.exp(), (logits.argmax(dim=-1) != batch.gold)[real]
# ax = plotting.histograms(
#     {"right tokens": p},
#     "probability of the right token",
#     "a model trained with ε = 0.1 stops near 0.9",
# )
# ax.set_yscale("log")  # else the few low ones cannot be seen

# %% tags=["active-ipynb"]
# near = ((p > 0.85) & (p < 0.95)).double().mean()
# print(
#     f"{len(p):,} tokens: {near:.0%} between 0.85 and 0.95, "
#     f"{(p > 0.95).double().mean():.1%} above; perplexity {(-log_p.mean()).exp():.2f}"
# )
# unlikely = (p[wrong] < 0.025).sum()
# print(
#     f"another token is likelier {wrong.sum()} times; in {unlikely} of these the "
#     "right one has under 0.025"
# )
# print(f"a model that gives every right token 0.9 has perplexity {1 / 0.9:.2f}")
# assert near > 0.5

# %% [markdown]
# Most right tokens have a probability near 0.9, as smoothing asks. That alone costs perplexity. Yet each of them would be chosen: a model that
# always writes the likeliest token needs the right one to be first, no matter how far ahead. (Where it is not first, it stands at the far left about half of the times.)

# %% [markdown]
# ## In the paper perplexity gets worse and BLEU better
#
# Table 3 (row D) has, without smoothing, perplexity 4.67 and BLEU 25.3; with 0.1, 4.92 and 25.8; with 0.2, 5.47 and 25.7. The paper gives
# one number a row and no spread. In small, [notebook 17](17_variations.ipynb), smoothing makes perplexity worse in every seed of both tables; BLEU differs measurably in neither (longer runs: 25.9 with it, 26.0 without). On Multi30k ([notebook 16](16_translation.ipynb)) it is worth 1.3 BLEU on validation (three seeds, 95% interval 0.8 to 1.8). On test, which was to decide, it is 0.6, and may be chance. Perplexity on 300 validation sentences is *better* with it there (last weights). That training differs from 17's in size, dropout and length; which of them turns perplexity round, we have not separated.

# %% [markdown]
# Why should BLEU rise? A tempting explanation is that a model that is not too sure of one word leaves others a chance, which
# beam search (notebook 15: it compares several whole sentences) can then take. In that case beam search should gain more with smoothing than without.
# Here are two models of Multi30k, one of each, scored on validation with a beam of 1 (always the likeliest word) and of 4. For a beam of 4 the score depends
# on a *length penalty*, which makes up for the search's liking for short outputs, so the cell takes the best one:

# %% tags=["active-ipynb"]
# def without_brevity(row):
#     """BLEU without its factor for short outputs; nearly, as length leaves out marks."""
#     return row["validation.bleu"] / math.exp(min(0, 1 - 1 / row["validation.length"]))
#
#
# gains = {}
# for name in ("multi30k-alpha", "multi30k-no-smoothing-alpha"):
#     rows = read_rows(name)
#     one = next(row for row in rows if row["beam"] == 1)
#     four = max(
#         (row for row in rows if row["beam"] == 4),
#         key=lambda row: row["validation.bleu"],
#     )
#     gain = four["validation.bleu"] - one["validation.bleu"]
#     left = without_brevity(four) - without_brevity(one)
#     epsilon = one["training.epsilon_ls"]
#     gains[epsilon] = gain
#     print(
#         f"ε = {epsilon}: beam 1 {one['validation.bleu']:.2f} BLEU, length "
#         f"{one['validation.length']:.3f} of the references'; beam 4 {gain:+.2f}, "
#         f"without BP {left:+.2f}"
#     )
# assert gains[0.0] > gains[0.1]
# print("beam search does not gain more with smoothing")

# %% [markdown]
# It does not: a beam of 4 gains 0.8 BLEU with smoothing and 1.6 without. Most of the difference is length: with a beam of 1 the model without smoothing writes less, and $BP$ takes more from it. Without $BP$ the gains are about 0.5 and 0.7. And the smoothed model is ahead already with a beam of 1. So beam
# search is not where this model's advantage comes from. It is one run of each, trained in different precisions (bf16 and fp32), so a difference of some tenths may be
# chance. If smoothing helps BLEU, we do not know why.

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Write dropout as a layer would need it. `noise` has the shape of `x` and holds random numbers from 0 to 1: drop where
# it is below `P_drop`. In evaluation, `x` stays as it is.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.regularization import check_drop
#
#
# def drop(x, noise, P_drop, training):
#     """x and noise of one shape -> the same shape"""
#     ...
#
#
# check_drop(drop)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def drop(x, noise, P_drop, training):
#     if not training:
#         return x
#     kept = torch.where(noise < P_drop, 0.0, x)
#     return kept / (1 - P_drop)
# ```
#
# Because the division happens in training, evaluation needs no correction. (Srivastava et al. instead multiplied the weights by
# $1 - P_{drop}$ in evaluation.)
# </details>
#
# **2.** Write tensor2tensor's loss: $1 - \epsilon$ on gold, $\epsilon / (V - 1)$ on each other type, minus the smallest loss that
# these targets allow, averaged over the predictions.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.regularization import check_tensor2tensor_loss
#
#
# def tensor2tensor_loss(logits, gold, epsilon):
#     """logits (n, V), gold (n,) ids, epsilon above 0 -> a number, in nats"""
#     ...
#
#
# check_tensor2tensor_loss(tensor2tensor_loss)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def tensor2tensor_loss(logits, gold, epsilon):
#     V = logits.shape[1]
#     targets = torch.full_like(logits, epsilon / (V - 1))
#     targets[torch.arange(len(gold)), gold] = 1 - epsilon
#     losses = -(targets * logits.log_softmax(dim=1)).sum(dim=1)
#     lowest = -(targets * targets.log()).sum(dim=1)
#     return (losses - lowest).mean()
# ```
#
# What is left is the Kullback-Leibler divergence between the targets and the model.
# </details>
#
# **3.** Write the perplexity of a model on several batches: each is a pair of tensors of one shape, the losses of all places in nats,
# and a mask that is True at real tokens. Batches differ in their number of real tokens.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.regularization import check_perplexity
#
#
# def perplexity(batches):
#     """[(losses (B, T), real (B, T)), ...] -> a number"""
#     ...
#
#
# check_perplexity(perplexity)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def perplexity(batches):
#     total = tokens = 0
#     for losses, real in batches:
#         total += losses[real].sum()
#         tokens += real.sum()
#     return (total / tokens).exp()
# ```
#
# The exponential comes last, once. A mean of the batches' means would give a token in a small batch more weight than one in a large batch.
# </details>

# %% [markdown]
# ## Next
#
# [14 Training](14_training.ipynb) puts model, batches, optimizer and loss into one loop.
