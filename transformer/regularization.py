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
# We train a small translator on only 800 short sentences, twelve times over. After each round, two judges look at sentences that it has *not* seen, where it has to name the next token at every place. One judge is the loss. The other counts how often the model's first guess is right. From some round on, one of the two says that the model gets worse. Which one, and what does the other say?

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
# from transformer import views
# from transformer.teaching.few_sentences import FewSentences
#
# torch.set_num_threads(1)  # on a model this small, a second thread only waits
# few = FewSentences(800)  # the pairs to learn, new ones, and a model of one layer
# runs = {"plain": few.train()}  # after each of 12 rounds, what the judges say
# views.two_judges(runs["plain"])

# %% [markdown]
# *Left, the loss on new sentences falls, turns in the eighth round, and climbs; right, the share of right guesses does not fall with it.*
#
# By its loss the model gets worse from round 8 on. By its guesses it does not. What gets worse, if not the answers?
#
# Look at a single place where the model is wrong. Its first guess is *seinen* ("his"), but *ihren* ("her") is right, and gets a probability of 0.2. This costs $-\ln 0.2 = 1.6$ **nats**, as the unit is called with natural logarithms. Now let the model become surer of *seinen*, so that *ihren* is left with 0.05. This costs $-\ln 0.05 = 3.0$. The guess is as wrong as before, so the second judge sees no change. But the loss has nearly doubled.
#
# Is it that? Two more numbers will tell. One is how sure the model is: the probability of its first guess, right or wrong, averaged over all places of the new sentences. The other is the loss on sentences that it *has* learned. What do you expect of each after round 8?

# %% tags=["active-ipynb"]
# views.surer(runs)

# %% [markdown]
# *Left, the sentences that are learned cost less and less while the new ones cost more; right, the yellow gap is what the model claims above what it knows.*
#
# The model gets **surer**. In the first rounds it is about as sure as it is right; such a model is called **calibrated**. At the end it is far surer than it is right, and every wrong guess costs more.
#
# Why does a model get surer than it has reason to be? Two things come together. It is pushed to be surer, and it can obey, because it can learn 800 sentences by heart. The paper has a remedy for each: label smoothing for the push, and dropout for the learning by heart. We begin with the push.

# %% [markdown]
# ## The gradient is p minus q
#
# *Die Katze verlor* ("the cat lost") goes on with *ihren*. Say that a model knows only three words and gives *ihren*, *seinen* and *den* the probabilities $p = (0.7, 0.2, 0.1)$. The training sentence says that it should have been $q = (1, 0, 0)$. Such a target, 1 for the right token (called gold) and 0 for all others, is **one-hot**. Which way does training now push the three scores?
#
# The scores (logits) are $z$, and $p = \mathrm{softmax}(z)$, so $\ln p_k = z_k - \ln \sum_j e^{z_j}$. The loss is $-\sum_k q_k \ln p_k$. Put the one into the other; since the $q_k$ add up to 1,
#
# $$loss = -\sum_k q_k z_k + \ln \sum_j e^{z_j}$$
#
# Now take the derivative by one score. The first part gives $-q_k$. The second gives $e^{z_k} / \sum_j e^{z_j}$, which is $p_k$ again:
#
# $$\frac{\partial\, loss}{\partial z_k} = p_k - q_k$$
#
# With our numbers that is $(-0.3, 0.2, 0.1)$. Does torch agree?

# %% tags=["active-ipynb"]
# p, q = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([1.0, 0.0, 0.0])
# z = p.log().requires_grad_()  # scores whose softmax is p
# loss = -(q * z.log_softmax(dim=0)).sum()
# loss.backward()
# print("torch's gradient:", [f"{value:.1f}" for value in z.grad])

# %% [markdown]
# Training goes against the gradient, so the **push** on each score is $q - p$: up by 0.3 for *ihren*, down for the others.
#
# When does the pushing end? When $p = q$. But a softmax is never exactly 1, so with a one-hot target **it never ends**.
#
# Is that always wrong? Suppose that the same words come before *ihren* six times in ten, and before *seinen* the other four. Then the pushes of the ten sentences cancel at 0.6 and 0.4, and the model is calibrated by itself (exercise 1). The push runs on only where the model can tell each sentence from all others and so learn its answer by heart. With 800 sentences it can.

# %% [markdown]
# ## Label smoothing asks for a little less
#
# So give the push a place to stop. **Label smoothing** (Szegedy et al., 2015) takes a small part $\epsilon$ away from the right token and spreads it evenly over all $V$ entries of the vocabulary, the right one included:
#
# $$q_k = (1 - \epsilon)\,[k = gold] + \frac{\epsilon}{V}$$
#
# The bracket is 1 for the gold token and 0 for the others. For example, with our three words and $\epsilon = 0.15$ the right one gets $0.85 + 0.05 = 0.9$, and each of the others 0.05.


# %%
def smoothed_targets(gold: Tensor, V: int, epsilon: float) -> Tensor:
    """(1 - epsilon) on the gold token plus epsilon / V on every token (Szegedy, 2015).

    Ids (...) -> (..., V).
    """
    return (1 - epsilon) * F.one_hot(gold, V) + epsilon / V


def cross_entropy_with_targets(logits: Tensor, targets: Tensor) -> Tensor:
    """-sum_k q(k) ln p(k) for each token, the definition: both (..., V) -> (...)."""
    return -(targets * logits.log_softmax(dim=-1)).sum(dim=-1)


# %% [markdown]
# Which way does each target push *ihren* while the model gives it 0.7, and which way when it has come to 0.98? Subtract with your pencil, $q - p$:
#
# | push on *ihren* | at 0.7 | at 0.98 |
# |---|---|---|
# | one-hot, $q = 1$ | +0.3 | +0.02 |
# | smoothed, $q = 0.9$ | +0.2 | **−0.08** |
#
# As long as the model hesitates, both targets lift the right word. Above 0.9 the smoothed target pulls it back. So smoothing hardly disturbs the learning of what is not known yet.

# %% [markdown]
# ## The best answer is 0.9, not 1
#
# The stop shows in the loss itself. The model gives *ihren* the probability $p_{gold}$ and shares the rest evenly between the other two words. Which $p_{gold}$ costs least?

# %% tags=["active-ipynb"]
# ihren = torch.tensor(0)  # the first of our three words
# targets = {
#     "one-hot": smoothed_targets(ihren, 3, epsilon=0.0),
#     "smoothed": smoothed_targets(ihren, 3, epsilon=0.15),
# }
# p_gold = torch.linspace(0.5, 0.999, 500)
# rest = (1 - p_gold) / 2
# p = torch.stack([p_gold, rest, rest], dim=1)
# losses = {name: cross_entropy_with_targets(p.log(), q) for name, q in targets.items()}
# views.best_answer(p_gold, losses)

# %% [markdown]
# *The dot is the lowest point of the loss with smoothing: the best answer is 0.9, and more is worse.*
#
# And the lowest loss is no longer zero. At best $p = q$, and then the loss is what $q$ costs by itself, $-\sum_k q_k \ln q_k$. Work it out for the paper, with $\epsilon = 0.1$ and 37,000 entries. The right one gets 0.9 and costs $-0.9 \cdot \ln 0.9 = 0.09$. The wrong ones share 0.1, and each costs $-\ln(0.1/37{,}000) = 12.82$; together that is $0.1 \cdot 12.82 = 1.28$. No loss can fall below the sum, 1.38 nats.
#
# Torch's `cross_entropy` smooths by the same definition. The loss of this book calls it, and leaves out padding:


# %%
def label_smoothing_loss(
    logits: Tensor,
    gold: Tensor,
    epsilon: float = 0.1,
    pad_id: int = 0,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy with smoothed targets over the real tokens (Section 5.4), in nats.

    logits: (..., V), gold: (...) ids. Where gold is pad_id, nothing is counted and the
    gradient is zero. reduction: "mean" is per real token, "sum" their total, "none" a
    loss for each in one row; where all is padding, "mean" and "sum" are zero.
    """
    if reduction == "mean" and (gold == pad_id).all():
        reduction = "sum"  # the mean of nothing is no number
    return F.cross_entropy(
        logits.flatten(0, -2),  # all places in one row
        gold.flatten(),
        ignore_index=pad_id,
        label_smoothing=epsilon,
        reduction=reduction,
    )


# %% tags=["active-ipynb"]
# gold = torch.tensor([5])  # any token but padding, which is 0
# q = smoothed_targets(gold, 37_000, 0.1)
# perfect = q.log()  # scores of a model whose p is exactly q
# by_definition = cross_entropy_with_targets(perfect, q)[0]
# by_torch = label_smoothing_loss(perfect, gold)
# print(f"by definition {by_definition:.2f}, by torch {by_torch:.2f}")
# assert torch.allclose(by_definition, by_torch)

# %% [markdown]
# So a training loss of 1.5 with smoothing would be nearly perfect. Never compare it with an unsmoothed loss.

# %% [markdown]
# ## Does a trained model obey?
#
# The model that ships with this book was trained with smoothing of 0.1, on 20,000 sentences that a grammar wrote. In such a language the next word can nearly always be known, in new sentences, too. So it has every reason to be sure. How sure is it on 100 new sentences, and how often is it right where it gives its first guess about 0.9?

# %% tags=["active-ipynb"]
# from transformer import load, read_corpus
# from transformer.data import collate, encode_pairs
#
# model, tokenizer = load()
# batch = collate(encode_pairs(tokenizer, read_corpus("bundled", "validation")[:100]))
# real = batch.gold != tokenizer.pad_id  # the places that are not padding
# with torch.no_grad():
#     p = model(batch.source, batch.decoder_input).softmax(dim=-1)[real]
# sure, guess = p.max(dim=-1)
# right = guess == batch.gold[real]
# near = (sure > 0.85) & (sure < 0.95)
# print(f"{near.double().mean():.0%} of its first guesses get about 0.9,")
# print(f"and {right[near].double().mean():.1%} of these guesses are right")
# views.confidence(sure)

# %% [markdown]
# *Nearly all first guesses are in one pile at 0.9, where smoothing asked for it.*
#
# It obeys. But a guess that is practically always right deserves more than 0.9. So now we have the opposite fault: this model is *less* sure than it has reason to be, and pays $-\ln 0.9 = 0.11$ nats for a guess with which nothing is wrong. Smoothing takes sureness away, whether it was deserved or not.

# %% [markdown]
# ## Dropout makes it hard to learn by heart
#
# The second remedy is for the learning by heart. How could a model know a sentence by heart? Suppose that by accident some number of a vector is large in just this sentence. A large weight on this number, and the next word is right; on a new sentence the same number means nothing. A rule of the language can show in many numbers. So we would like a model that relies on no single one. How do you teach somebody not to rely on one helper? You send the helper home now and then.
#
# **Dropout** (Srivastava et al., 2014) does that in every step of training. It sets each number of a vector to zero with probability $P_{drop}$, and divides the numbers that are kept by $1 - P_{drop}$. Say $x = (3, 6, 9)$ and $P_{drop} = 1/3$, and the 6 is hit: the result is $(4.5, 0, 13.5)$. Why the division? So that the mean stays. Each number is kept in two of three cases, and $\frac23 \cdot \frac32 = 1$.


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


# %% [markdown]
# In torch it is a layer, `nn.Dropout`. When the model is used, nothing must be dropped, so `model.eval()` switches dropout off in all layers, and `model.train()` switches it on again. Here is one draw of each, and the mean of many:

# %% tags=["active-ipynb"]
# torch.manual_seed(1)
# x, layer = torch.tensor([3.0, 6.0, 9.0]), torch.nn.Dropout(1 / 3)
# print("ours:        ", dropout(x, 1 / 3).tolist())
# print("torch, train:", layer.train()(x).tolist())
# print("torch, eval: ", layer.eval()(x).tolist())
# mean = dropout(x.expand(100_000, 3), 1 / 3).mean(dim=0)
# print("mean of ours:", [round(value, 1) for value in mean.tolist()])

# %% [markdown]
# If you forget `eval`, you judge a model that lacks a part of its numbers, and you get another answer every time.
#
# Why does that spread the trust? Take the smallest model that has a choice. Two numbers, both 1, both say what is asked for, which is 1. The model multiplies them by its weights and adds. Without dropout the weights $(1, 0)$, which rely on the first number alone, are as good as $(\frac12, \frac12)$: both answer 1.
#
# Now let $P_{drop}$ be ½, so that each number is either 0 or doubled. The weights $(1, 0)$ answer 0 or 2, and are always wrong by 1. The weights $(\frac12, \frac12)$ answer 0, 1, 1 or 2, and are wrong by 1 only half of the time. And if the trust is spread over ten numbers?

# %% tags=["active-ipynb"]
# for n in (1, 2, 10):
#     x, w = torch.ones(100_000, n), torch.full((n,), 1 / n)
#     errors = (dropout(x, 0.5) @ w - 1) ** 2
#     print(f"trust in {n:2} numbers: mean squared error {errors.mean():.2f}")

# %% [markdown]
# What shows in many numbers hardly suffers from dropout, and what hangs on a single number suffers most. That is the hope: rules survive, and accidents do not.
#
# Where does dropout act in a Transformer? The paper names two kinds of places. One is the sum of embedding and position, where the lane of [chapter 3](03_stacks.ipynb) begins. The other is the output of every sub-layer, before it is added to the lane:

# %% tags=["active-ipynb"]
# views.dropout_places()

# %% [markdown]
# *The dots are dropout: one is where the lane begins, and one on each path back to it; a decoder layer has a third path, from cross-attention, and a dot there, too.*

# %% [markdown]
# ## The same training, with either remedy
#
# Now back to the 800 sentences. We train twice more, once with dropout and once with smoothing, both of 0.1 as in the paper, and everything else as before. All are judged without dropout and without smoothing. Which remedy will close the yellow gap, and which will keep the model from learning by heart?

# %% tags=["active-ipynb"]
# runs["dropout"] = few.train(P_drop=0.1)
# runs["smoothing"] = few.train(loss=label_smoothing_loss)
# views.surer(runs)

# %% [markdown]
# *In the lower row both remedies make the yellow gap smaller; in the upper row only dropout keeps the learned sentences (dashed) from getting so cheap, and only with dropout does the loss on new sentences (solid) still fall.*
#
# Both models end less sure than the plain one, and are right about as often. But they got there by different ways. With smoothing the model learns by heart nearly as fast as without, and its loss on new sentences turns, too, only more gently. With dropout it learns by heart more slowly, and the loss on new sentences has not turned. By the loss, dropout is the stronger remedy here, even if you stop each training at its lowest point (five starts of each: [evidence 13.1](evidence/13_regularization.ipynb)). The paper uses both at once (exercise 3).

# %% [markdown]
# ## Which judge is right?
#
# The paper has two judges as well. The first is **perplexity**, the exponential of the mean loss: a model that always hesitates between four equally likely words has perplexity 4.
#
# The other judge reads only what the model writes. **BLEU** (Papineni et al., 2002) counts how many runs of one to four words a translation shares with a human one, the reference. A perfect copy gets 100, and short outputs are punished ([chapter 15](15_decoding.ipynb) has the formula):

# %% tags=["active-ipynb"]
# from sacrebleu import sentence_bleu
#
# reference = "the small dog sleeps under the old table in the kitchen"
# outputs = {
#     "the same": reference,
#     "one word changed": reference.replace("old", "big"),
#     "cut short": "the small dog sleeps under the old table",
# }
# for name, output in outputs.items():
#     print(f"{name:17} BLEU {sentence_bleu(output, [reference]).score:.0f}")

# %% [markdown]
# Guess what smoothing does to either judge. Each row of this table changes one thing in the paper's base model (its Table 3, rows D):
#
# | | perplexity (lower is better) | BLEU (higher is better) |
# |---|---|---|
# | base model: smoothing 0.1, dropout 0.1 | 4.92 | 25.8 |
# | no smoothing | 4.67 | 25.3 |
# | no dropout | 5.77 | 24.6 |
#
# Dropout pleases both judges. Smoothing divides them: with it, perplexity is worse and BLEU is better.
#
# But in our own training smoothing made the loss better. How can that be? Our plain model was far too sure, and gained by losing sureness. The paper's model learned from millions of sentences. A likely reason for its worse perplexity, untested, is that it deserves most of its sureness, as the model of the pile at 0.9 does.
#
# BLEU sees little of this. Where the likeliest word is taken, a word that leads with 0.9 is written just like a word that leads with 0.99. So BLEU need not suffer from smoothing. Why it even gains half a point in the paper, we do not know, and on our own data it goes either way ([evidence 13.3](evidence/13_regularization.ipynb)).
#
# So which judge is right? Each is right about its own question. The loss of the beginning saw that the model claimed too much, and the guesses saw that it answered no worse. If you use the probabilities, for example to pick out the sentences that a person should check, believe the loss. If you use only the translations, as the paper does, believe BLEU.

# %% [markdown]
# ## What to keep
#
# - The gradient of the loss is p minus q, so a one-hot target pushes a model to be ever surer of what it can learn by heart; label smoothing gives the push a place to stop.
# - Dropout takes numbers away in training, so that a model cannot rely on any single one, and it slows the learning by heart.
# - A loss measures how sure a model is as well as how right, so it can disagree with the answers; choose the judge by what you use.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A model is right in four of ten first guesses, and cannot get better. It gives each first guess the same probability $c$. Targets are one-hot. What is the push on the score of the first guess where it is right, and where it is wrong? For which $c$ do the ten pushes cancel?
#
# <details><summary>Answer</summary>
#
# Where the guess is right, its $q$ is 1, and the push is $1 - c$. Where it is wrong, its $q$ is 0, and the push is $-c$. Together, $4\,(1 - c) - 6\,c = 4 - 10\,c$, which is zero for $c = 0.4$. Such a model is as sure as it is right: it is calibrated.
# </details>
#
# **2. In code.** A model that is too sure at half of the places and too timid at the others may have no yellow gap. So sort the guesses into ten bins by how sure they are: below 0.1, from 0.1 to below 0.2, and so on. In each bin take the difference between the mean of `sure` and the share of `right`, without its sign. Average these differences, each bin counting by its number of guesses. This is the **calibration error** (Guo et al., 2017).

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.regularization import check_calibration_error
#
#
# def calibration_error(sure, right):
#     """sure (n,) from 0 to below 1, right (n,) of bools -> a number."""
#     ...
#
#
# check_calibration_error(calibration_error)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def calibration_error(sure, right):
#     bins, total = (10 * sure).long(), 0.0
#     for k in range(10):
#         here = bins == k
#         if here.any():
#             gap = sure[here].mean() - right[here].double().mean()
#             total += here.double().mean() * gap.abs()
#     return total
# ```
#
# Try it on `sure` and `right` of the model with the pile at 0.9. Its error is about the distance from 0.9 to 1.
# </details>
#
# **3. Change it and run it again.** Train with both remedies at once, as the paper does. Before you look, guess: will the gap be smaller than with either remedy alone, and will more guesses be right?
#
# <details><summary>Answer</summary>
#
# ```python
# runs["both"] = few.train(P_drop=0.1, loss=label_smoothing_loss)
# views.surer(runs)
# ```
#
# The gap gets smaller again, and about as many guesses are right (five starts: [evidence 13.1](evidence/13_regularization.ipynb)). Whether dropout prevents the turn of the loss or only delays it, `rounds=20` will show you.
# </details>
#
# **4. To think about.** In [chapter 16](16_translation.ipynb) a model is trained with both remedies, and its loss on the *training* sentences stays above its loss on *new* ones. A colleague says that this is impossible, so there must be a bug. Find two reasons why there need not be one.
#
# <details><summary>Answer</summary>
#
# The training loss is measured with smoothed targets, so it cannot fall below a floor that is well above zero, while the validation loss has one-hot targets and no floor. And it is measured with dropout at work, by a model that lacks a part of its numbers; validation has them all.
# </details>
#
# **Next.** Data, optimizer and loss are ready. [Chapter 14](14_training.ipynb) puts them into twenty lines.
