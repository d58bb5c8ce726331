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
# We train a small translator on only 800 short sentences, in twelve rounds through all of them. After each round we test it on sentences that it has *not* seen. At every place of the German sentence it has to name the next token. One judge of its answers is the loss. Another counts how often the first guess is right. Before the twelve rounds are over, one judge says that the model is getting worse. Which one, and what does the other say?

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
# from transformer import Transformer, TransformerConfig, load, read_corpus, views
# from transformer.data import Tokenizer, collate, encode_pairs
#
# torch.set_num_threads(1)  # on a model this small, a second thread only waits
#
#
# def short_pairs(split, count):
#     pairs = read_corpus("bundled", split)
#     return [pair for pair in pairs if len(pair[0].split()) <= 6][:count]  # six words
#
#
# pairs, new_pairs = short_pairs("train", 800), short_pairs("validation", 150)
# tokenizer = Tokenizer.train(sum(pairs, ()), 500)  # of all texts; 500 entries at most
# encoded = encode_pairs(tokenizer, pairs)
# learned = collate(encoded[:150])  # the first 150 of the 800 that the model learns
# new = collate(encode_pairs(tokenizer, new_pairs))  # 150 that it never sees
# print("one of the 800 pairs:", " | ".join(pairs[0]))
#
#
# def small_model(P_drop=0.0):  # no dropout, until the section on it
#     torch.manual_seed(0)  # all our models start from the same weights
#     sizes = {"d_model": 64, "d_ff": 256, "N": 1, "h": 4}  # one layer
#     return Transformer(TransformerConfig(tokenizer.vocab_size, P_drop=P_drop, **sizes))
#
#
# def answers(model, batch):  # scores (n, V) and right tokens (n,) at the n real places
#     real = batch.gold != tokenizer.pad_id  # padding is no place
#     return model(batch.source, batch.decoder_input)[real], batch.gold[real]

# %% [markdown]
# Now the training. Afterwards we look at one answer: a new sentence, its translation so far, and the next token.

# %% tags=["active-ipynb"]
# def judge(model, batch):  # three values at each of the n places
#     with torch.no_grad():
#         scores, gold = answers(model.eval(), batch)
#     sure, guess = scores.softmax(dim=-1).max(dim=-1)  # the first guess, its probability
#     loss = F.cross_entropy(scores, gold, reduction="none")
#     return {"loss": loss, "right": guess == gold, "sure": sure}
#
#
# def train(model, loss=F.cross_entropy, rounds=12):
#     # a constant rate: with one layer it works without warm-up (chapter 12)
#     optimizer = torch.optim.Adam(model.parameters(), lr=0.008, betas=(0.9, 0.98))
#     log = []  # one entry a round
#     for _ in range(rounds):
#         for rows in torch.randperm(800).split(50):  # shuffled; 50 pairs a batch
#             scores, gold = answers(model.train(), collate([encoded[i] for i in rows]))
#             optimizer.zero_grad()
#             loss(scores, gold).backward()
#             optimizer.step()
#         log.append({"new": judge(model, new), "learned": judge(model, learned)})
#     return log
#
#
# plain = small_model()
# runs = {"plain": train(plain)}
#
# row, place = 13, 6  # one of the new sentences, one place in its translation
# p = plain.eval()(new.source, new.decoder_input)[row, place].softmax(dim=-1)
# print("English:", new_pairs[row][0])
# print("so far: ", tokenizer.decode(new.decoder_input[row, : place + 1].tolist()))
# print(f"guess:   {tokenizer.decode([p.argmax().item()])}  (probability {p.max():.2f})")
# print("right:  ", tokenizer.decode([new.gold[row, place].item()]))
# views.two_judges(runs["plain"])

# %% [markdown]
# *Left, the loss on new sentences falls until round 8 and then climbs; right, the share of right guesses does not fall with it.*
#
# The printed guess is wrong, and very sure: the model ends the question where *nicht* ("not") was still to come. Over all places, the loss says that the model gets worse after round 8. The share of right guesses says that it does not. How can both be true?
#
# Take an example with invented numbers. A new sentence begins with *Die Katze verlor* ("the cat lost"). The right next word is *ihren* ("her"). But a model's first guess is *seinen* ("his"), and *ihren* gets a probability of only 0.2. This costs $-\ln 0.2 = 1.6$ **nats**, the unit of natural logarithms. Now let the model become surer of *seinen*, so that only 0.05 remains for *ihren*. This costs $-\ln 0.05 = 3.0$. The guess is as wrong as before, but its loss has nearly doubled.
#
# Does our model do the same? Sort the places by whether the guess is right in both round 8 and round 12, in neither, or in only one of them. Look also at the model's **confidence**, the probability of its first guess, right or wrong.

# %% tags=["active-ipynb"]
# early, late = runs["plain"][7]["new"], runs["plain"][11]["new"]  # rounds 8 and 12
# kinds = {
#     "right both times": early["right"] & late["right"],
#     "wrong both times": ~early["right"] & ~late["right"],
#     "right only once": early["right"] != late["right"],
# }
# for kind, here in kinds.items():
#     a, b = early["loss"][here].mean(), late["loss"][here].mean()
#     print(f"{kind}, {here.sum()} places: loss {a:.2f}, then {b:.2f}")
# views.surer(runs)

# %% [markdown]
# *Left, the loss on learned sentences (dashed) keeps falling while the loss on new ones turns; right, the yellow gap is how much surer the model is than it is right.*
#
# Only the places that stay wrong get more expensive. But these are more than half, so the loss rises. In the first rounds the model is about as sure as it is right; such a model is called **calibrated**. At the end it is **overconfident**. To get better on learned sentences while getting worse on new ones is called **overfitting**.
#
# You could stop at round 8 (**early stopping**). That is the simplest **regularization**: whatever in a training is there to help on new data. The paper attacks two causes instead. Training pushes the model to be ever surer: label smoothing gives this push an end. And the model can follow the push, because it can learn 800 sentences by heart: dropout makes that harder.

# %% [markdown]
# ## The gradient is p minus q
#
# Back to *Die Katze verlor*, now in training. A model that knows only *ihren*, *seinen* and *den* gives them the probabilities $p = (0.7, 0.2, 0.1)$. The training sentence has *ihren*, so the target is $q = (1, 0, 0)$. Such a target, 1 for the right (gold) token and 0 for all others, is **one-hot**. Which way does training now push the three scores?
#
# Call the scores (logits) $z$. Then $p = \mathrm{softmax}(z)$, so $\ln p_k = z_k - \ln \sum_j e^{z_j}$. Put this into the loss, $-\sum_k q_k \ln p_k$. Since the $q_k$ add up to 1,
#
# $$loss = -\sum_k q_k z_k + \ln \sum_j e^{z_j}$$
#
# Take the derivative by one score. The first part gives $-q_k$. The second gives $e^{z_k} / \sum_j e^{z_j}$, which is $p_k$ again:
#
# $$\frac{\partial\, loss}{\partial z_k} = p_k - q_k$$
#
# With our numbers that is $(-0.3, 0.2, 0.1)$.
#
# Training goes against the gradient, so the **push** on each score is $q - p$: up by 0.3 for *ihren*, down for the others.
#
# When does the pushing end? Suppose that ten training sentences ask for this word, and that *ihren* is right in six of them, *seinen* in four. A model that cannot tell the ten apart has one $p$ for all. A model that knows each by heart has a $p$ for each. Where does the probability of *ihren* end in either model?

# %% tags=["active-ipynb"]
# # first: does torch agree that the gradient is p - q?
# p, q = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([1.0, 0.0, 0.0])
# z = p.log().requires_grad_()  # scores whose softmax is p
# loss = -(q * z.log_softmax(dim=0)).sum()
# loss.backward()
# print("torch's gradient:", [f"{value:.1f}" for value in z.grad])
# assert torch.allclose(z.grad, p - q)
#
#
# def follow(q, by_heart, steps=100):
#     """q: (10, 3) targets -> what *ihren* gets in the first sentence, step by step."""
#     z, path = torch.zeros(10, 3), []  # three scores for each sentence
#     for _ in range(steps):
#         p = z.softmax(dim=1)
#         path.append(p[0, 0].item())
#         push = q - p
#         if not by_heart:
#             push = push.mean(dim=0)  # the mean push, for all ten sentences
#         z = z + push
#     return path
#
#
# words = torch.tensor([0] * 6 + [1] * 4)  # right: ihren in six, seinen in four
# one_hot = F.one_hot(words, 3).float()
# paths = {"one-hot": (follow(one_hot, by_heart=False), follow(one_hot, by_heart=True))}
# for steps in (100, 1_000, 10_000):
#     print(f"by heart, {steps:6,} pushes: {follow(one_hot, True, steps)[-1]:.4f}")
# views.pushes(paths)

# %% [markdown]
# *Left, one probability for all ten sentences settles at 0.6; right, a model that knows each sentence goes on towards 1.*
#
# On the left, at 0.6, six sentences push *ihren* up by 0.4 and four push it down by 0.6. The pushes cancel, and 0.6 is how often *ihren* is right: this model is calibrated. On the right nothing pushes back. A softmax is never exactly 1, so **the push never ends**. It gets small but keeps its direction, and Adam ([chapter 12](12_optimizer.ipynb)) makes full steps out of small gradients that agree.
#
# Our model is on its way there: it learns its 800 sentences by heart. Why is it so sure on *new* ones, too? It reads them with the same weights. Weights that were pushed to give large scores probably give them to new sentences as well, right or wrong.

# %% [markdown]
# ## Label smoothing gives the push an end
#
# **Label smoothing** (Szegedy et al., 2015) takes a small part $\epsilon$ away from the right token and spreads it evenly over all $V$ entries of the vocabulary, the right one included:
#
# $$q_k = (1 - \epsilon)\,[k = gold] + \frac{\epsilon}{V}$$
#
# The bracket is 1 for the gold token and 0 for the others. For our three words we take $\epsilon = 0.15$, to arrive at a round number: the right word gets $0.85 + 0.05 = 0.9$, and each of the others 0.05. In a large vocabulary a single $\epsilon / V$ is next to nothing, so there the paper's $\epsilon = 0.1$ asks for 0.9, too.


# %%
def smoothed_targets(gold: Tensor, V: int, epsilon: float) -> Tensor:
    """(1 - epsilon) on the gold token plus epsilon / V on every token (Szegedy, 2015).

    Ids (...) -> (..., V).
    """
    return (1 - epsilon) * F.one_hot(gold, V) + epsilon / V


# %% [markdown]
# The push is still $q - p$. At $p = 0.7$ the smoothed target lifts *ihren* by 0.2. At 0.98 it pulls *ihren* back by 0.08. Where will the two models end now?

# %% tags=["active-ipynb"]
# smooth = smoothed_targets(words, 3, epsilon=0.15)
# paths["smoothed"] = (follow(smooth, by_heart=False), follow(smooth, by_heart=True))
# views.pushes(paths)

# %% [markdown]
# *Right, the model that knows each sentence now stops at 0.9; left, the model that cannot tell them apart stops at 0.56 instead of 0.6.*
#
# The best answer is 0.9, not 1. But on the left, six targets of 0.9 and four of 0.05 have a mean of $0.6 \cdot 0.9 + 0.4 \cdot 0.05 = 0.56$. So smoothing also takes confidence from a model that was not too sure.

# %% [markdown]
# ## Does a trained model obey?
#
# The model that ships with this book was trained on 20,000 sentences, with smoothing of 0.1. A grammar wrote these sentences, and whoever knows it can nearly always tell the next word. How sure is it on 100 new sentences?

# %% tags=["active-ipynb"]
# shipped, its_tokenizer = load()
# sentences = read_corpus("bundled", "validation")[:100]
# batch = collate(encode_pairs(its_tokenizer, sentences))
# judged = judge(shipped, batch)  # padding is 0 in both tokenizers
# sure, right = judged["sure"], judged["right"]
# near = (sure > 0.85) & (sure < 0.95)
# print(f"{near.double().mean():.0%} of its first guesses get about 0.9;")
# print(f"their mean is {sure[near].mean():.2f},", end=" ")
# print(f"and {right[near].double().mean():.1%} of them are right")
# views.confidence(sure, right)

# %% [markdown]
# *Nearly all first guesses are in one pile around 0.9, where smoothing asked for it; of the 12 wrong guesses (a red tick each) only one is in the pile.*
#
# It obeys, in the mean. But a guess that is practically always right deserves more than 0.9. Here is the opposite fault: this model is **underconfident**, and pays $-\ln 0.9 = 0.11$ nats for a guess with which nothing is wrong. Smoothing takes confidence away, whether it was deserved or not.

# %% [markdown]
# ## Dropout makes it hard to learn by heart
#
# How could a model know a sentence by heart? Say that the vector of one training sentence happens to have a large number at place 17. A large weight on place 17 then names the next word, in this one sentence. In new sentences the same weight misleads. How do you teach somebody not to rely on one helper? You send the helper home now and then.
#
# **Dropout** (Srivastava et al., 2014) does that in every step of training. It sets each number of a vector to zero with probability $P_{drop}$, and divides the numbers that it keeps by $1 - P_{drop}$. For example, take $x = (3, 6, 9)$ and $P_{drop} = 1/3$. If the 6 is hit, the result is $(4.5, 0, 13.5)$. Why the division? It keeps the mean: each number survives in two of three cases, and $\frac23 \cdot \frac32 = 1$.


# %%
def dropout(x: Tensor, P_drop: float) -> Tensor:
    """Zero each number with probability P_drop and divide the rest by 1 - P_drop.

    Raises ValueError for a P_drop below 0, or of 1 and more.
    """
    if not 0 <= P_drop < 1:
        raise ValueError(f"P_drop must be at least 0 and below 1, not {P_drop}")
    keep = torch.rand_like(x) >= P_drop
    return x * keep / (1 - P_drop)


# %% [markdown]
# torch has it as a layer, `nn.Dropout`. `model.eval()` switches it off when the model is used, and `model.train()` on again. If you forget `eval`, you get another answer every time.
#
# Does dropout teach a model to rely on more than one number? Take an input of ten numbers, all 1. A model multiplies them by ten weights, adds, and should answer 1. At the start it relies on the first number alone, with weight 1, and answers right. Will training move the weights? And what does the model answer to a *new* input, in which the first number is 0?

# %% tags=["active-ipynb"]
# torch.manual_seed(0)
# all_ten = torch.ones(10)
# first_gone = torch.tensor([0.0] + [1.0] * 9)  # the new input
# for P_drop in (0.0, 0.1):
#     w = torch.tensor([1.0] + [0.0] * 9, requires_grad=True)
#     for _ in range(500):
#         x = dropout(torch.ones(1000, 10), P_drop)  # 1,000 draws
#         error = ((x @ w - 1) ** 2).mean()
#         error.backward()
#         with torch.no_grad():
#             w -= 0.05 * w.grad
#         w.grad = None
#     first = [round(value, 2) for value in w[:3].tolist()]
#     print(f"P_drop {P_drop}: the weights begin with {first}")
#     print(f"   all ten: {all_ten @ w:.2f}, without the first: {first_gone @ w:.2f}")

# %% [markdown]
# Without dropout nothing moves, and the new input gets 0. With dropout the ten numbers share the work, and nine of them still answer 0.89.
#
# Why does sharing pay? With $P_{drop} = 0.1$ each number becomes 0 once in ten times and $\frac{10}{9}$ otherwise. Its mean squared distance from 1 is $0.1 \cdot 1 + 0.9 \cdot \frac{1}{81} = \frac19$. That is the error of a model that relies on one number. With ten weights of 0.1, each number adds a hundredth of that, and all ten add $\frac{1}{90}$.
#
# Dropout also shrinks the weights a little. Weights below 0.1 let less of the noise through, so all ten together answer 0.99 instead of 1.
#
# Where is dropout in a Transformer? On the sum of embedding and position, and in every sub-layer: `x = norm(x + dropout(sublayer(x)))`.

# %% tags=["active-ipynb"]
# views.dropout_places()

# %% [markdown]
# *The dots are dropout: one where the lane begins, and one on each path back to it; a decoder layer has one more, after cross-attention.*

# %% [markdown]
# ## Each remedy does something else
#
# Back to the 800 sentences. We train twice more, once with dropout and once with smoothing, both of 0.1 as in the paper. The judges use neither. Which remedy will make the yellow gap smaller, and which will lower the loss on new sentences?

# %% tags=["active-ipynb"]
# def smoothed_loss(scores, gold):  # torch's loss can smooth, too
#     return F.cross_entropy(scores, gold, label_smoothing=0.1)
#
#
# runs["dropout"] = train(small_model(P_drop=0.1))
# runs["smoothing"] = train(small_model(), loss=smoothed_loss)
# views.surer(runs)

# %% [markdown]
# *Upper row: with dropout (left) the loss on new sentences is still falling in round 12, with smoothing (right) it has turned. Lower row: both yellow gaps are smaller than the grey one of the plain model.*
#
# Both remedies make the gap smaller: from 17 points to less than 9. But dropout learns more slowly, so it may only be where the plain model was some rounds before. To be fair, compare rounds in which the *learned* sentences are known about equally well:

# %% tags=["active-ipynb"]
# for name, count in [("plain", 8), ("dropout", 12), ("plain", 11), ("smoothing", 12)]:
#     after = runs[name][count - 1]  # lists count from 0
#     known, fresh = after["learned"]["loss"].mean(), after["new"]["loss"].mean()
#     p, share = after["new"]["sure"].mean(), after["new"]["right"].double().mean()
#     print(f"{name}, round {count}: learned {known:.2f}, new {fresh:.2f}, ", end="")
#     print(f"{p:.0%} sure, {share:.0%} right")
# views.same_learned(runs)

# %% [markdown]
# *Each dot is a round, and training goes from left to right; at the same learned loss, dropout has the lower loss on new sentences, and smoothing stays close to the plain line.*
#
# First dropout, and the plain model in round 8. Their gaps are about equal, so dropout's was only that of an earlier round. But its loss on new sentences is 2.68 instead of 2.83. **Dropout makes better use of the same sentences.** In none of five starts did a plain training, in any round, get as low as dropout does ([evidence 13.1](evidence/13_regularization.ipynb)).
#
# Then smoothing, and the plain model in round 11. Here the loss on new sentences is about the same, but the confidence is 46% instead of 55%, with as many right guesses. **Smoothing lowers the confidence.** The paper uses both remedies.

# %% [markdown]
# ## Which judge is right?
#
# The paper has two judges as well. **Perplexity** is the exponential of the mean loss: a model that always hesitates between four equally likely words has perplexity 4. **BLEU** (Papineni et al., 2002; [chapter 15](15_decoding.ipynb)) reads only what the model writes, and counts the runs of words that it shares with a human translation. Each row changes one thing in the paper's base model (Table 3, rows D):
#
# | | perplexity (lower is better) | BLEU (higher is better) |
# |---|---|---|
# | base model: smoothing 0.1, dropout 0.1 | 4.92 | 25.8 |
# | no smoothing | 4.67 | 25.3 |
# | no dropout | 5.77 | 24.6 |
#
# Dropout pleases both judges. Smoothing makes perplexity worse and BLEU better.
#
# Why is perplexity worse with smoothing? Our model of 800 sentences was far too sure, and smoothing did its loss no harm. The shipped model deserves its confidence, and pays. The paper's model learned from millions of sentences, so it is probably more like the shipped one.
#
# And why is BLEU better? A word that leads with 0.9 is written just like one that leads with 0.99, so BLEU need not suffer; but why smoothing *helps* it, we do not know ([evidence 13.3](evidence/13_regularization.ipynb)).
#
# Which judge is right? Each is right about its own question: the loss saw that our model claimed too much, the guesses that it answered no worse. If you use the probabilities, for example to pick out the sentences that a person should check, believe the loss. If you use only the translations, believe BLEU.

# %% [markdown]
# ## A loss that cannot reach zero
#
# Chapter 14 needs the smoothed loss as a function. Here are two: the first is its definition, and the second is torch's own loss, without padding.


# %%
def cross_entropy_with_targets(logits: Tensor, targets: Tensor) -> Tensor:
    """-sum_k q(k) ln p(k) for each token, the definition: both (..., V) -> (...)."""
    return -(targets * logits.log_softmax(dim=-1)).sum(dim=-1)


def label_smoothing_loss(
    logits: Tensor,
    gold: Tensor,
    epsilon: float = 0.1,
    pad_id: int = 0,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy with smoothed targets (Section 5.4), over all tokens but padding.

    logits: (..., V), gold: (...) ids -> a number, in nats; 0 where all is padding.
    """
    if reduction == "mean" and (gold == pad_id).all():
        reduction = "sum"  # no token at all: 0, where a mean would be 0 / 0
    return F.cross_entropy(
        logits.flatten(0, -2),  # all places in one row
        gold.flatten(),
        ignore_index=pad_id,
        label_smoothing=epsilon,
        reduction=reduction,
    )


# %% [markdown]
# Do both give the same? And how low can such a loss get? At best $p = q$, and then it is $-\sum_k q_k \ln q_k$. Take the paper's $\epsilon = 0.1$ and 37,000 entries:

# %% tags=["active-ipynb"]
# logits, gold = torch.randn(4, 500), torch.tensor([7, 8, 9, 0])  # the last is padding
# targets = smoothed_targets(gold, 500, epsilon=0.1)
# by_hand = cross_entropy_with_targets(logits, targets)[:3].mean()
# print(f"by definition {by_hand:.4f}, torch's {label_smoothing_loss(logits, gold):.4f}")
# q = smoothed_targets(torch.tensor(0), 37_000, epsilon=0.1)
# parts = -q * q.log()
# print(f"the right token adds {parts[0]:.3f} nats, all others {parts[1:].sum():.3f}")
# print(f"so the lowest loss is {cross_entropy_with_targets(q.log(), q):.2f}")

# %% [markdown]
# Each wrong token's $q_k$ is next to nothing, but there are many. No such loss can fall below 1.38 nats, and 1.5 would be nearly perfect. Never compare it with a loss that is not smoothed.

# %% [markdown]
# ## What to keep
#
# - The gradient of the loss is p minus q, so a one-hot target pushes a model to be ever surer of what it knows by heart; label smoothing gives the push an end.
# - Dropout takes numbers away in training, so that it pays to rely on many instead of one; for the same amount learned, the model does better on new sentences.
# - A loss measures how sure a model is as well as how right, so it can disagree with the answers; choose the judge by what you use.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A model knows three words, and four of its ten first guesses are right. It gives each first guess the same confidence $c$, and the two other words half of the rest each. What is its mean loss for $c = 0.4$, and for $c = 0.8$?
#
# <details><summary>Answer</summary>
#
# For 0.4, a right guess costs $-\ln 0.4 = 0.92$ and a wrong one $-\ln 0.3 = 1.20$, so the mean is $0.4 \cdot 0.92 + 0.6 \cdot 1.20 = 1.09$. For 0.8 they cost $-\ln 0.8 = 0.22$ and $-\ln 0.1 = 2.30$, with a mean of 1.47. No guess has changed: that is round 8 to 12.
# </details>
#
# **2. In code.** The yellow gap can hide faults: where a model is too sure at some places and not sure enough at others, they cancel. So sort the guesses into ten equal bins by how sure they are. In each bin take the difference, without its sign, between the mean of `sure` and the share of `right`. Average the differences, weighted by the number of guesses. This is the **calibration error** (Guo et al., 2017).

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
# Try it on `sure` and `right` of the shipped model: its error is 0.10, the distance from 0.9 to 1.
# </details>
#
# **3. Change it and run it again.** Train with both remedies at once, as the paper does. Before you look: will the gap be smaller than with either remedy alone?
#
# <details><summary>Answer</summary>
#
# ```python
# runs["both"] = train(small_model(P_drop=0.1), loss=smoothed_loss)
# views.surer(runs)
# ```
#
# It is. In the mean of five starts, after 14 rounds, the gap is 21 points in plain training, 10 with dropout, 9 with smoothing, and 4 with both ([evidence 13.1](evidence/13_regularization.ipynb)).
# </details>
#
# **4. To think about.** In [chapter 16](16_translation.ipynb) a model is trained with both remedies, and its loss on the *training* sentences stays above its loss on *new* ones. A colleague suspects a bug. Find two reasons why there need not be one.
#
# <details><summary>Answer</summary>
#
# The training loss is measured with smoothed targets, so it has a floor well above zero; the validation loss has one-hot targets and no floor. And the training loss is measured with dropout at work, so the model lacks a part of its numbers; in validation it has them all.
# </details>
#
# **Next.** [Chapter 14](14_training.ipynb) puts data, optimizer and loss into a dozen lines.
