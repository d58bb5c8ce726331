# ---
# jupyter:
#   jupytext:
#     formats: notebooks/13_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 13 · Regularization
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/13_regularization.ipynb)
#
# *Section 5.4 of the paper. Reading takes about 20 minutes, running half a minute.*
#
# We train a small translator on only 800 short sentences, again and again. After each round it has to name the next token at every place of sentences that it has *not* seen. There we measure two things: its loss, and how often its first guess is right. After some rounds one of the two gets worse. Which one, and what does the other do?

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
import torch
import torch.nn.functional as F
from torch import Tensor

# %% tags=["active-ipynb"]
# import sacrebleu
#
# from transformer import (
#     Tokenizer,
#     Transformer,
#     TransformerConfig,
#     load,
#     read_corpus,
#     views,
# )
# from transformer.data import collate, encode_pairs
# from transformer.views import plotting
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on models this small, a second thread only waits

# %% tags=["active-ipynb"]
# def short(split, count):
#     pairs = read_corpus("bundled", split)
#     return [pair for pair in pairs if len(pair[0].split()) <= 6][:count]
#
#
# pairs = short("train", 800)
# tokenizer = Tokenizer.train([text for pair in pairs for text in pair], 500)
# training = encode_pairs(tokenizer, pairs)
# new = collate(encode_pairs(tokenizer, short("validation", 150)))
#
#
# def loss_of(model, batch, epsilon=0.0):  # what epsilon is, we shall see
#     logits = model(batch.source, batch.decoder_input).flatten(0, 1)
#     options = {"ignore_index": tokenizer.pad_id, "label_smoothing": epsilon}
#     return F.cross_entropy(logits, batch.gold.flatten(), **options)
#
#
# @torch.no_grad()
# def judge(model):
#     logits = model.eval()(new.source, new.decoder_input)
#     real = new.gold != tokenizer.pad_id
#     right = (logits.argmax(dim=-1) == new.gold)[real].float().mean().item()
#     return loss_of(model, new).item(), right
#
#
# def train(P_drop=0.0, epsilon=0.0, rounds=12):
#     torch.manual_seed(0)
#     sizes = dict(d_model=64, d_ff=256, N=1, h=4, P_drop=P_drop)
#     model = Transformer(TransformerConfig(tokenizer.vocab_size, **sizes))
#     optimizer = torch.optim.Adam(model.parameters(), lr=0.008, betas=(0.9, 0.98))
#     log = []
#     for _ in range(rounds):
#         for rows in torch.randperm(len(training)).split(50):
#             batch = collate([training[i] for i in rows])
#             loss = loss_of(model.train(), batch, epsilon)
#             optimizer.zero_grad()
#             loss.backward()
#             optimizer.step()
#         log.append(judge(model))
#     return log
#
#
# runs = {"plain": train()}
# views.two_judges(runs)

# %% [markdown]
# *Left, the loss on new sentences falls, turns in the eighth round, and climbs; right, the share of right guesses does not fall with it.*
#
# By its loss the model gets worse from round 8 on. By its guesses it gets better, if slowly. What gets worse, if not the answers? The model gets **surer**. It learns its 800 sentences by heart and gives their words ever higher probabilities. Then it is sure about new sentences as well, where it is often wrong, and a wrong guess costs more the surer it was. (Two rounds later it gives its first guesses 60% on average, and 40% of them are right; [evidence 13.1](evidence/13_regularization.ipynb).)
#
# Why does a model get surer than it has reason to be? And what can be done? The paper has two remedies, and the answer to the first question explains one of them.

# %% [markdown]
# ## The gradient is p minus q
#
# Let $z$ be the scores (logits) of the vocabulary at one place, $p = \mathrm{softmax}(z)$ the model's probabilities, and $q$ the probabilities that it should have. So far $q$ is 1 for the right token, called gold, and 0 for all others ("one-hot"). The loss is $-\sum_k q_k \ln p_k$. Its derivative is as simple as one could wish:
#
# $$\frac{\partial\, loss}{\partial z_k} = p_k - q_k$$
#
# Take three words: *ihren*, which is right, *seinen* and *den*. If $p = (0.7, 0.2, 0.1)$ and $q = (1, 0, 0)$, the gradient is $(-0.3, 0.2, 0.1)$. A step against it pushes the score of *ihren* up and the other two down, each by as much as it is off.

# %% tags=["active-ipynb"]
# p, q = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([1.0, 0.0, 0.0])
# z = p.log().requires_grad_()
# loss = -(q * z.log_softmax(dim=0)).sum()
# (gradient,) = torch.autograd.grad(loss, z)
# print("torch says:", [f"{value:.1f}" for value in gradient])
# assert torch.allclose(gradient, p - q, atol=1e-6)

# %% [markdown]
# When does the pushing end? When $p = q$. But a softmax is never exactly 1, so with a one-hot $q$ **it never ends**. At $p = 0.98$ the score of *ihren* is still pushed up, and the lead of the right word grows without limit. What if $q$ asked for a little less? We let three scores follow their gradient, once towards $(1, 0, 0)$ and once towards $(0.93, 0.03, 0.03)$:

# %% tags=["active-ipynb"]
# def lead(q, steps=5000):  # of the first score over the second
#     z, leads = torch.zeros(3), []
#     for _ in range(steps):
#         z = z - 0.1 * (z.softmax(dim=0) - q)
#         leads.append((z[0] - z[1]).item())
#     return leads
#
#
# targets = {
#     "q = (1, 0, 0)": [1.0, 0, 0],
#     "q = (0.93, 0.03, 0.03)": [14 / 15, 1 / 30, 1 / 30],
# }
# leads = {name: lead(torch.tensor(q)) for name, q in targets.items()}
# labels = ("step (the axis is logarithmic)", "lead of the right word")
# ax = plotting.lines(range(1, 5001), leads, *labels, log="x")
# one_hot, less = (values[-1] for values in leads.values())
# ax.minorticks_off()
# views.picture(
#     ax,
#     f"Towards one-hot the lead still grows and is {one_hot:.1f} after 5,000 steps; "
#     f"towards 0.93 it stops at {less:.1f}.",
# )

# %% [markdown]
# *The upper curve climbs for ever; the lower one stops where the model's probabilities are what was asked for.*

# %% [markdown]
# ## Ask for a little less
#
# That is **label smoothing** (Szegedy et al., 2015). It takes a small part $\epsilon$ away from the right token and spreads it evenly over all $V$ entries of the vocabulary, the right one included:
#
# $$q_k = (1 - \epsilon)\,[k = gold] + \frac{\epsilon}{V}$$
#
# (The bracket is 1 for the gold token and 0 for the others.) With three words and $\epsilon = 0.1$ the right one gets $0.9 + 0.1/3 = 0.93$, which was the lower curve. The paper takes $\epsilon = 0.1$, too.


# %%
def smoothed_targets(gold: Tensor, V: int, epsilon: float) -> Tensor:
    """(1 - epsilon) on the gold type plus epsilon / V on every type (Szegedy, 2015).

    Ids (...) -> (..., V).
    """
    return (1 - epsilon) * F.one_hot(gold, V) + epsilon / V


def cross_entropy_with_targets(logits: Tensor, targets: Tensor) -> Tensor:
    """-sum_k q(k) ln p(k) for each token, the definition: both (..., V) -> (...)."""
    return -(targets * logits.log_softmax(dim=-1)).sum(dim=-1)


# %% [markdown]
# Here are real words. The model that ships with this book was trained with smoothing, and now it has written *Die Katze verlor* and is asked for the next word:

# %% tags=["active-ipynb"]
# model, its_tokenizer = load()
# (example,) = encode_pairs(
#     its_tokenizer, [("The cat lost its ball.", "Die Katze verlor ihren Ball.")]
# )
# batch = collate([example])
# with torch.no_grad():
#     logits = model(batch.source, batch.decoder_input)[0, 3]  # after three words
# p, gold, V = logits.softmax(dim=0), batch.gold[0, 3], its_tokenizer.vocab_size
# best = p.topk(3).indices.tolist()
# words = [its_tokenizer.decode([i]) for i in best] + ["all others"]
#
#
# def few(p):  # of the three likeliest words, and of all others together
#     return [*p[best].tolist(), 1 - p[best].sum().item()]
#
#
# one_hot, smoothed = smoothed_targets(gold, V, 0.0), smoothed_targets(gold, V, 0.1)
# views.pulls(words, few(p), {"one-hot": few(one_hot), "smoothed": few(smoothed)})

# %% [markdown]
# *Compare the right column, where bars below zero are pushed up: the one-hot target would make the model still surer of "ihren", and the smoothed one makes it a little less sure.*
#
# So with smoothing there is a best confidence, and it is not 1. Let a model give the right token the probability $p$ and share the rest evenly among 999 others. How does its loss depend on $p$?

# %% tags=["active-ipynb"]
# confidence = torch.linspace(0.5, 0.9995, 1000, dtype=torch.float64)
# logits = ((1 - confidence) / 999).log()[:, None].repeat(1, 1000)
# logits[:, 0] = confidence.log()  # type 0 is gold
# curves = {}
# for epsilon in (0.0, 0.1):
#     targets = smoothed_targets(torch.tensor(0), 1000, epsilon)
#     curves[f"ε = {epsilon}"] = cross_entropy_with_targets(logits, targets)
# labels = ("probability of the right token", "loss, nats")
# ax = plotting.lines(confidence, curves, *labels)
# lowest = curves["ε = 0.1"].argmin()
# ax.plot(confidence[lowest], curves["ε = 0.1"][lowest], "ko", ms=5)
# views.picture(
#     ax,
#     "Without smoothing the loss falls to 0 at probability 1; with 0.1 it is lowest "
#     f"at {confidence[lowest]:.2f}, and rises steeply towards 1.",
# )

# %% [markdown]
# *The dot is the lowest point with smoothing: the best answer is 0.9, not 1.*
#
# And the loss no longer ends at zero. At best $p = q$, and then it is what $q$ costs by itself, $-\sum_k q_k \ln q_k$. With the paper's 37,000 entries, the entries that are wrong share 0.1, and each has $-\ln(0.1/37{,}000) = 12.8$. They alone cost $0.1 \cdot 12.8 = 1.28$:

# %% tags=["active-ipynb"]
# q = smoothed_targets(torch.tensor(0), 37_000, 0.1).double()
# floor = -(q * q.log()).sum()
# print(f"no model has a loss below {floor:.2f} nats")

# %% [markdown]
# So a training loss with smoothing says nothing until you subtract this floor, and it must not be compared with a loss without. Torch's `cross_entropy` follows the same definition, so that the loss of this book is one call:


# %%
def label_smoothing_loss(
    logits: Tensor,
    gold: Tensor,
    epsilon: float = 0.1,
    pad_id: int = 0,
    reduction: str = "mean",
) -> Tensor:
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


# %% tags=["active-ipynb"]
# logits, gold = torch.randn(4, 6, 8), torch.randint(1, 8, (4, 6))
# by_definition = cross_entropy_with_targets(logits, smoothed_targets(gold, 8, 0.1))
# assert torch.allclose(label_smoothing_loss(logits, gold), by_definition.mean())
# print("torch's loss is the definition")

# %% [markdown]
# Does a trained model obey? Here are the probabilities that the model of this book gives to the right tokens of 100 sentences that it has not seen:

# %% tags=["active-ipynb"]
# batch = collate(encode_pairs(its_tokenizer, read_corpus("bundled", "validation")[:100]))
# with torch.no_grad():
#     p = model(batch.source, batch.decoder_input).softmax(dim=-1)
# p = p.gather(-1, batch.gold[..., None])[..., 0][batch.gold != its_tokenizer.pad_id]
# near = ((p > 0.85) & (p < 0.95)).double().mean()
# views.confidence(p)

# %% [markdown]
# *Nearly all tokens are in one pile at 0.9, where smoothing asked for it.*

# %% tags=["active-ipynb"]
# print(f"{near:.0%} of {len(p):,} tokens have between 0.85 and 0.95")
# assert near > 0.5

# %% [markdown]
# ## Let nobody rely on one number
#
# The other remedy comes from the other end: it makes it harder to learn by heart. **Dropout** (Srivastava et al., 2014) sets each number of a vector to zero with probability $P_{drop}$, anew in every step of training. What a sentence looks like is different each time, and no part of the model can rely on a single number, because that one may be missing.
#
# What is left is divided by $1 - P_{drop}$. Say $x = (3, 6, 9)$ and $P_{drop} = 1/3$, and the 6 is hit: the result is $(4.5, 0, 13.5)$. Why the division? So that the mean stays: each number is kept in two of three cases and is then half as large again.


# %%
def dropout(x: Tensor, P_drop: float) -> Tensor:
    """Zero each number with probability P_drop and divide the rest by 1 - P_drop.

    So the mean stays. Layers use `nn.Dropout`, which does this while training and
    nothing in evaluation. Raises ValueError for a P_drop below 0, or of 1 and more.
    """
    if not 0 <= P_drop < 1:
        raise ValueError(f"P_drop must be at least 0 and below 1, not {P_drop}")
    keep = torch.rand_like(x) >= P_drop
    return x * keep / (1 - P_drop)


# %% tags=["active-ipynb"]
# x = torch.tensor([3.0, 6.0, 9.0])
# for _ in range(3):
#     print([f"{value:.1f}" for value in dropout(x, 1 / 3)])
# mean = torch.stack([dropout(x, 1 / 3) for _ in range(10_000)]).mean(dim=0)
# print("mean of 10,000:", [f"{value:.1f}" for value in mean])

# %% [markdown]
# Where does it act? The paper names two places: on the output of every sub-layer, before it is added to the lane of [chapter 3](03_stacks.ipynb), and on the sum of embedding and position, where the lane begins.

# %% tags=["active-ipynb"]
# views.dropout_places()

# %% [markdown]
# *The dots are dropout: it acts on everything that is written to the lane, and on nothing else.*
#
# In particular there is none inside a sub-layer, neither on attention weights nor between the two matrices of the feed-forward network; torch's own `nn.Transformer` has both. And there is none when the model is used. `model.eval()` switches it off. If you forget that, you judge a model that lacks a part of its numbers, and you get another answer every time:

# %% tags=["active-ipynb"]
# small = Transformer(TransformerConfig(600, d_model=64, d_ff=256, N=1, h=4, P_drop=0.3))
# for mode, name in ((True, "training"), (False, "evaluation")):
#     small.train(mode)
#     with torch.no_grad():
#         once, again = (small(new.source, new.decoder_input) for _ in range(2))
#     same = "the same" if torch.equal(once, again) else "different"
#     print(f"{name}: two calls give {same} scores")

# %% [markdown]
# ## The same training, with either remedy
#
# Now back to the 800 sentences. Everything is as before, but one model has dropout of 0.1, and another one smoothing of 0.1; these are the paper's values. (The loss on new sentences is measured without either.)

# %% tags=["active-ipynb"]
# runs["dropout"] = train(P_drop=0.1)
# runs["smoothing"] = train(epsilon=0.1)
# views.two_judges(runs)

# %% [markdown]
# *Left, dropout's loss still falls when the others have turned, and smoothing's climbs less than the plain one; right, all three end close together.*

# %% tags=["active-ipynb"]
# for name, log in runs.items():
#     loss, right = log[-1]
#     print(f"{name:10} loss at the end {loss:.2f}, right {right:.0%}")
# assert max(runs["dropout"][-1][0], runs["smoothing"][-1][0]) < runs["plain"][-1][0]

# %% [markdown]
# The two remedies do different things. Dropout slows the learning by heart, so that its model needs more rounds and stays useful for longer. Smoothing lets the model learn as fast as before and keeps it from being too sure. In the share of right guesses they differ by little here, and the order changes with the start ([evidence 13.1](evidence/13_regularization.ipynb)). The paper uses both.

# %% [markdown]
# ## Which judge is right?
#
# We began with two judges that disagree, and so does the paper. Its losses are given as **perplexity**, the exponential of the mean loss. Somebody who always hesitates between four equally likely words has perplexity 4. Its translations are judged by **BLEU** (Papineni et al., 2002), which counts how many runs of one to four words an output shares with a human translation, the reference. 100 is a perfect copy, and short outputs are punished ([chapter 15](15_decoding.ipynb) has the formula):

# %% tags=["active-ipynb"]
# reference = "the small dog sleeps under the old table in the kitchen"
# outputs = {
#     "the same": reference,
#     "one word changed": reference.replace("old", "big"),
#     "cut short": "the small dog sleeps under the old table",
# }
# for name, output in outputs.items():
#     print(f"{name:17} BLEU {sacrebleu.sentence_bleu(output, [reference]).score:.0f}")
# p = torch.tensor([1 / 2, 1 / 4, 1 / 8])  # of three right tokens
# print(f"the perplexity of 1/2, 1/4 and 1/8 is {(-p.log().mean()).exp():.1f}")

# %% [markdown]
# Perplexity asks *how sure* the model is of each right word. BLEU asks only what it writes, and a search writes the likeliest words, however narrow their lead. Guess what smoothing does to either. These are the paper's own numbers (Table 3, rows D):
#
# | | perplexity (lower is better) | BLEU (higher is better) |
# |---|---|---|
# | no smoothing | 4.67 | 25.3 |
# | $\epsilon = 0.1$, the base model | 4.92 | 25.8 |
# | $\epsilon = 0.2$ | 5.47 | 25.7 |
# | no dropout | 5.77 | 24.6 |
#
# Smoothing makes the paper's perplexity worse, and its BLEU better: the two judges disagree again. Dropout helps both. In our small run above it was the other way round: there smoothing made the loss better. A likely reason, which we did not test, is that 800 sentences are learned by heart, and the paper's millions are not.
#
# Each judge is right about its own question. Perplexity asks how well a model knows its doubts, and BLEU whether its first choices are good. Who wants translations goes by BLEU. Whether smoothing gains any BLEU on our own corpora, we could not tell ([evidence 13.3](evidence/13_regularization.ipynb)).

# %% [markdown]
# ## What to keep
#
# - The gradient of the loss is p minus q, so with a one-hot target a model is pushed to be surer for ever.
# - Label smoothing asks for 0.9 instead of 1, and dropout disturbs everything that is written to the lane; both act in training only.
# - A loss measures how sure a model is as well as how right; look at its answers, too.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Of three words the model gives the right one 0.7, the second 0.2 and the third 0.1. Take $\epsilon = 0.3$. What is the target $q$, and which way is each score pushed? Which probabilities would end the pushing?
#
# <details><summary>Answer</summary>
#
# $q = (0.7 + 0.1,\ 0.1,\ 0.1) = (0.8, 0.1, 0.1)$, so the gradient $p - q$ is $(-0.1, 0.1, 0)$. The first score is pushed up, the second down, and the third is left alone, for the moment: as soon as the others move, its probability moves, too. The pushing ends at $(0.8, 0.1, 0.1)$, and there it stays.
# </details>
#
# **2. In code.** The authors' own program, tensor2tensor, smooths a little differently. The gold token gets $1 - \epsilon$, each of the $V - 1$ others gets $\epsilon/(V-1)$, and from the loss it subtracts the smallest loss that these targets allow, so that a perfect model has 0. Write it, averaged over the predictions.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.regularization import check_tensor2tensor_loss
#
#
# def tensor2tensor_loss(logits, gold, epsilon):
#     """logits (n, V), gold (n,) ids, epsilon above 0 -> a number, in nats."""
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
# What is left is called the Kullback-Leibler divergence of the model from the targets. The subtraction does not change the gradient ([evidence 13.2](evidence/13_regularization.ipynb)).
# </details>
#
# **3. To think about.** In [chapter 16](16_translation.ipynb) a model is trained with both remedies, and its loss on the *training* sentences stays above its loss on *new* ones. A colleague says that this is impossible, so there must be a bug. Find two reasons why there need not be one.
#
# <details><summary>Answer</summary>
#
# The training loss is measured with smoothed targets, so it cannot fall below a floor that is well above zero (1.38 nats with 37,000 entries), while the validation loss has one-hot targets and no floor. And it is measured with dropout at work, by a model that lacks a part of its numbers; validation has them all. To compare the two fairly, measure both in evaluation mode and without smoothing. Only then is a training loss *above* validation's a reason to look for a bug.
# </details>
#
# **Next.** Data, optimizer and loss are ready. [Chapter 14](14_training.ipynb) puts them into twenty lines.
