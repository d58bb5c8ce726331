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
# few = FewSentences(800)  # the pairs to learn, and 150 new ones
# print("for example:", *few.pairs[0])
#
#
# def train(model, loss=F.cross_entropy, rounds=12):
#     """Learn the 800 pairs; what the judges say of new and of learned ones, by rounds."""
#     optimizer = torch.optim.Adam(model.parameters(), lr=0.008, betas=(0.9, 0.98))
#     log = []
#     for _ in range(rounds):
#         for batch in few.batches():  # 50 pairs each, shuffled
#             scores, gold = few.answers(model.train(), batch)  # at n places
#             optimizer.zero_grad()
#             loss(scores, gold).backward()
#             optimizer.step()
#         log.append((few.judge(model, few.new), few.judge(model, few.learned)))
#     return log
#
#
# runs = {"plain": train(few.model())}  # a Transformer with one layer
# views.two_judges(runs["plain"])

# %% [markdown]
# *Left, the loss on new sentences falls, turns in the eighth round, and climbs; right, the share of right guesses does not fall with it.*
#
# By its loss the model gets worse from round 8 on. By its guesses it does not. What gets worse, if not the answers?
#
# Imagine a place where the model is wrong. Its first guess is *ihren* ("her"), but *seinen* ("his") is right, and gets a probability of 0.2. This costs $-\ln 0.2 = 1.6$ **nats**, as the unit is called with natural logarithms. Now let the model become surer of *ihren*, so that *seinen* is left with 0.05. This costs $-\ln 0.05 = 3.0$. The guess is as wrong as before, so the second judge sees no change. But the loss has nearly doubled.
#
# Is it that? Split the loss on new sentences into right and wrong guesses. And look at the model's **confidence**, the probability of its first guess, right or wrong. What do you expect of each after round 8?

# %% tags=["active-ipynb"]
# for number in (8, 12):
#     losses, right, sure = runs["plain"][number - 1][0]  # at each place of new sentences
#     good, bad = losses[right].mean(), losses[~right].mean()
#     print(f"round {number}: a right guess costs {good:.2f}, a wrong one {bad:.2f}")
# views.surer(runs)

# %% [markdown]
# *Left, the sentences that are learned cost less and less while the new ones cost more; right, the yellow gap is what the model claims above what it knows.*
#
# It is that. Right guesses get cheaper and wrong ones more expensive, and most guesses are wrong. In the first rounds the model is about as sure as it is right; such a model is called **calibrated**. At the end it is **overconfident**. And while the learned sentences still get cheaper, the new ones get more expensive, which is called **overfitting**.
#
# Why is it so? Training pushes the model to be surer of its 800 sentences, and it can obey, because it can learn them by heart. But why is it bold on *new* ones? We only have a guess: the same weights read the same words there. Weights that have grown to give high scores in learned sentences give high scores here, too, and no training sentence objects.
#
# You could stop at round 8 (**early stopping**). That is the simplest **regularization**, which means all that is done to a training for the sake of new data. The paper has a remedy for the push, label smoothing, and one for the learning by heart, dropout.

# %% [markdown]
# ## The gradient is p minus q
#
# Now *ihren* is right: *Die Katze verlor* ("the cat lost") goes on with it. Say that a model knows only three words and gives *ihren*, *seinen* and *den* the probabilities $p = (0.7, 0.2, 0.1)$. The training sentence says that it should have been $q = (1, 0, 0)$. Such a target, 1 for the right token (called gold) and 0 for all others, is **one-hot**. Which way does training now push the three scores?
#
# The scores (logits) are $z$, and $p = \mathrm{softmax}(z)$, so $\ln p_k = z_k - \ln \sum_j e^{z_j}$. The loss is $-\sum_k q_k \ln p_k$. Put $\ln p_k$ into it; since the $q_k$ add up to 1,
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
# When does the pushing end? When $p = q$. But a softmax is never exactly 1, so with a one-hot target **it never ends**. At 0.98 the push is only 0.02, but in every round it has the same direction.
#
# Is that always wrong? Suppose that the same words come before *ihren* in six sentences of ten, and before *seinen* in the other four. At $p = 0.6$ six sentences push *ihren* up by 0.4, and four push it down by 0.6. These pushes cancel, and the model is calibrated by itself. The push runs on only where the model can tell the ten sentences apart, and so learn each answer by heart. With 800 sentences it can.

# %% [markdown]
# ## Label smoothing asks for a little less
#
# So give the push a place to stop. **Label smoothing** (Szegedy et al., 2015) takes a small part $\epsilon$ away from the right token and spreads it evenly over all $V$ entries of the vocabulary, the right one included:
#
# $$q_k = (1 - \epsilon)\,[k = gold] + \frac{\epsilon}{V}$$
#
# The bracket is 1 for the gold token and 0 for the others. For example, with our three words and $\epsilon = 0.15$ the right one gets $0.85 + 0.05 = 0.9$, and each of the others 0.05.
#
# The first two functions below are the definition. The third is the loss of this book. It calls torch's `cross_entropy`, which smooths in the same way, and leaves out padding.


# %%
def smoothed_targets(gold: Tensor, V: int, epsilon: float) -> Tensor:
    """(1 - epsilon) on the gold token plus epsilon / V on every token (Szegedy, 2015).

    Ids (...) -> (..., V).
    """
    return (1 - epsilon) * F.one_hot(gold, V) + epsilon / V


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
        reduction = "sum"  # the mean of nothing is no number
    return F.cross_entropy(
        logits.flatten(0, -2),  # all places in one row
        gold.flatten(),
        ignore_index=pad_id,
        label_smoothing=epsilon,
        reduction=reduction,  # chapter 14 needs the "sum", too
    )


# %% [markdown]
# The push is still $q - p$. Here it is for *ihren* when the model gives it 0.7, and when it has come to 0.98:
#
# | push on *ihren* | at 0.7 | at 0.98 |
# |---|---|---|
# | one-hot, $q = 1$ | +0.3 | +0.02 |
# | smoothed, $q = 0.9$ | +0.2 | **−0.08** |
#
# Above 0.9 the smoothed target pulls the right word back. Below, it lifts it, but less. And in the ten sentences that the model cannot tell apart, the target of *ihren* is now 0.9 in six and 0.05 in four, so the pushes cancel at $0.6 \cdot 0.9 + 0.4 \cdot 0.05 = 0.56$ instead of 0.6. So smoothing makes a model that hesitates less sure, too.

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
# And the lowest loss is no longer zero. At best $p = q$, and then the loss is $-\sum_k q_k \ln q_k$. In the picture the right word adds $-0.9 \cdot \ln 0.9 = 0.09$ to this sum, and the two others together $-0.1 \cdot \ln 0.05 = 0.30$. For the paper, with $\epsilon = 0.1$ and 37,000 entries, the right one adds 0.09 again, but all others together $-0.1 \cdot \ln(0.1/37{,}000) = 1.28$. So no loss can fall below 1.38 nats.
#
# Is that what torch's loss says, too?

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
# Our 800 sentences are taken from 20,000 that a grammar wrote. The model that ships with this book was trained on all of them, with smoothing of 0.1. Whoever knows the grammar can nearly always tell the next word, in new sentences, too. So this model has every reason to be sure. How sure is it on 100 new sentences, and how often is it right where it gives its first guess about 0.9?

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
# It obeys. But a guess that is practically always right deserves more than 0.9. So now we have the opposite fault: this model is **underconfident**, and pays $-\ln 0.9 = 0.11$ nats for a guess with which nothing is wrong. Smoothing takes confidence away, whether it was deserved or not.

# %% [markdown]
# ## Dropout makes it hard to learn by heart
#
# The second remedy is for the learning by heart. How could a model know a sentence by heart? Suppose that by accident some number of a vector is large in just this sentence. A large weight on this number, and the next word is right. But where the same number is large in a new sentence, the same weight makes the model bold for no reason. We hope that a rule of the language shows in more numbers than such an accident. So we would like a model that relies on no single one. How do you teach somebody not to rely on one helper? You send the helper home now and then.
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
# If you forget `eval`, you get another answer every time.
#
# Why does that spread the trust? Take the smallest model that has a choice. Two numbers, both 1, both say what is asked for, which is 1. The model multiplies them by its weights and adds. Without dropout the weights $(1, 0)$, which rely on the first number alone, are as good as $(\frac12, \frac12)$: both answer 1.
#
# Now let $P_{drop}$ be ½, so that each number is either 0 or doubled. The weights $(1, 0)$ answer 0 or 2, and are always wrong by 1. The weights $(\frac12, \frac12)$ answer 0, 1, 1 or 2, and are wrong by 1 only half of the time. Training goes where the error is smaller, so it spreads the trust. And over ten numbers?

# %% tags=["active-ipynb"]
# for n in (1, 2, 10):
#     x, w = torch.ones(100_000, n), torch.full((n,), 1 / n)
#     errors = (dropout(x, 0.5) @ w - 1) ** 2
#     print(f"trust in {n:2} numbers: mean squared error {errors.mean():.2f}")

# %% [markdown]
# What shows in many numbers hardly suffers from dropout, and what hangs on a single number suffers most. So rules should survive, and accidents should not.
#
# Where does dropout act in a Transformer? The paper names two kinds of places. One is the sum of embedding and position, where the lane of [chapter 3](03_stacks.ipynb) begins. The other is the output of every sub-layer, before it is added to the lane:

# %% tags=["active-ipynb"]
# views.dropout_places()

# %% [markdown]
# *The dots are dropout: one is where the lane begins, and one on each path back to it; a decoder layer has a third path, from cross-attention, with one more dot.*

# %% [markdown]
# ## The same training, with either remedy
#
# Now back to the 800 sentences. We train twice more, once with dropout and once with smoothing, both of 0.1 as in the paper, and everything else as before. All are judged without dropout and without smoothing. Which remedy will close the yellow gap, and which will keep the model from learning by heart?

# %% tags=["active-ipynb"]
# runs["dropout"] = train(few.model(P_drop=0.1))
# runs["smoothing"] = train(few.model(), loss=label_smoothing_loss)
# views.surer(runs)

# %% [markdown]
# *Upper row: a dot is the lowest loss on new sentences (grey: the plain one again), and only dropout gets below it; it also keeps the learned sentences (dashed) from getting so cheap. Lower row: both remedies make the yellow gap smaller.*
#
# Both models end less sure than the plain one, and are right about as often. With dropout the model learns by heart more slowly, and its loss on new sentences is still falling. With smoothing it learns by heart nearly as fast as before, and its loss turns, too. At the lowest points smoothing and no remedy are level; only after the turn is the loss with smoothing lower (five starts: [evidence 13.1](evidence/13_regularization.ipynb)). The paper uses both remedies at once (exercise 3).

# %% [markdown]
# ## Which judge is right?
#
# The paper has two judges as well. The first is **perplexity**, the exponential of the mean loss: a model that always hesitates between four equally likely words has perplexity 4. The other, **BLEU** (Papineni et al., 2002), reads only what the model writes. It counts how many runs of one to four words a translation shares with a human one, and gives a perfect copy 100 ([chapter 15](15_decoding.ipynb) has the formula).
#
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
# The paper explains it in half a sentence: the model learns to be less sure, which costs perplexity, but accuracy and BLEU gain. The pile at 0.9 shows the first part: a guess that deserved more confidence became more expensive. Our 800 sentences do not contradict it. Smoothing did not lower the best loss there either; it only lowered the loss of a model that had trained too long.
#
# And BLEU? Where the likeliest word is written, one that leads with 0.9 is written just like one that leads with 0.99. So BLEU need not suffer from smoothing. Why it gains half a point in the paper, we do not know, and on our own data it goes either way ([evidence 13.3](evidence/13_regularization.ipynb)). Müller et al. (2019) look for reasons.
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
# **1. By hand.** A model knows three words, and four of its ten first guesses are right. It gives each first guess the same confidence $c$, and the two other words half of the rest each. What is its mean loss for $c = 0.4$, and for $c = 0.8$?
#
# <details><summary>Answer</summary>
#
# For 0.4, a right guess costs $-\ln 0.4 = 0.92$ and a wrong one $-\ln 0.3 = 1.20$, so the mean is $0.4 \cdot 0.92 + 0.6 \cdot 1.20 = 1.09$. For 0.8 they cost $-\ln 0.8 = 0.22$ and $-\ln 0.1 = 2.30$, with a mean of 1.47. The right guesses got cheaper, the wrong ones more expensive, and no guess has changed: that is round 8 to 12. No $c$ is better than 0.4, where six pushes of $-0.4$ and four of $+0.6$ cancel.
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
# runs["both"] = train(few.model(P_drop=0.1), loss=label_smoothing_loss)
# views.surer(runs)
# ```
#
# After 14 rounds the confidence is about 45%, where it is 50% with either remedy alone and 60% with none. About 40% of the guesses are right in all four (means of five starts: [evidence 13.1](evidence/13_regularization.ipynb)). Whether dropout prevents the turn of the loss or only delays it, `rounds=20` will show you.
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
