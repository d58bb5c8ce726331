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
# *Section 5.4 of the paper. Reading takes about 25 minutes, running half a minute.*
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
# from transformer import load, read_corpus, views
# from transformer.data import collate, encode_pairs
# from transformer.teaching.few_sentences import FewSentences
# from transformer.views import plotting
#
# torch.set_num_threads(1)  # on models this small, a second thread only waits

# %% [markdown]
# Below, `few.batches` are the 800 sentences in batches, and `few.new` is a batch of 150 new ones. `few.answers` gives the model's scores at every place of a batch, and the token that is right there.

# %% tags=["active-ipynb"]
# few = FewSentences(800)
#
#
# def judge(model, batch):
#     with torch.no_grad():
#         scores, gold = few.answers(model.eval(), batch)
#     sure, guess = scores.softmax(dim=-1).max(dim=-1)
#     right = (guess == gold).double()
#     return F.cross_entropy(scores, gold), right.mean(), sure.mean()
#
#
# def train(P_drop=0.0, loss_of=F.cross_entropy, rounds=12):
#     model = few.model(P_drop)
#     optimizer = torch.optim.Adam(model.parameters(), lr=0.008, betas=(0.9, 0.98))
#     for _ in range(rounds):
#         for batch in few.batches():
#             loss = loss_of(*few.answers(model.train(), batch))
#             optimizer.zero_grad()
#             loss.backward()
#             optimizer.step()
#         yield judge(model, few.new), judge(model, few.known)
#
#
# runs = {"plain": list(train())}
# views.two_judges(runs["plain"])

# %% [markdown]
# *Left, the loss on new sentences falls, turns in the eighth round, and climbs; right, the share of right guesses does not fall with it.*
#
# By its loss the model gets worse from round 8 on. By its guesses it does not. What gets worse, if not the answers?
#
# We have measured two more things. One is the loss on sentences that the model *has* learned (`few.known`). The other is how sure the model is on the new ones: the probability of its first guess, right or wrong, averaged over all places. Before you look: what do you expect of them after round 8?

# %% tags=["active-ipynb"]
# views.surer(runs)

# %% [markdown]
# *Left, the sentences that are learned cost less and less while the new ones cost more; right, the yellow gap is what the model claims above what it knows.*
#
# The model gets **surer**. It learns its 800 sentences by heart, and gives their words ever higher probabilities. The scores of new sentences come from the same weights, and there, too, it gets surer. In the first rounds it is about as sure as it is right; such a model is called **calibrated**. At the end it is far surer than it is right. That is why the loss climbs: a wrong guess costs more the surer it was.
#
# Why does a model get surer than it has reason to be? Two things come together. It is pushed to be surer, and it can obey, because 800 sentences are easily learned by heart. The paper has a remedy for each. Let us begin with the push.

# %% [markdown]
# ## The gradient is p minus q
#
# Let $z$ be the scores (logits) of the vocabulary at one place, and $p = \mathrm{softmax}(z)$ the model's probabilities. Let $q$ be the probabilities that it should have. So far $q$ is 1 for the right token, called gold, and 0 for all others ("one-hot"). The loss is $-\sum_k q_k \ln p_k$. Because $\ln p_k = z_k - \ln \sum_j e^{z_j}$, and the $q_k$ add up to 1,
#
# $$loss = -\sum_k q_k z_k + \ln \sum_j e^{z_j}$$
#
# Take the derivative by one score. The first part gives $-q_k$, and the second gives $e^{z_k} / \sum_j e^{z_j}$, which is $p_k$:
#
# $$\frac{\partial\, loss}{\partial z_k} = p_k - q_k$$
#
# Take three words: *ihren*, which is right, *seinen* and *den*. If $p = (0.7, 0.2, 0.1)$ and $q = (1, 0, 0)$, the gradient is $(-0.3, 0.2, 0.1)$. Training goes against the gradient, so the push on each score is $q - p$. It lifts *ihren* and presses the others down, each by as much as it is off.

# %% tags=["active-ipynb"]
# p, q = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([1.0, 0.0, 0.0])
# z = p.log().requires_grad_()
# loss = -(q * z.log_softmax(dim=0)).sum()
# loss.backward()
# print("torch's gradient:", [f"{value:.1f}" for value in z.grad])

# %% [markdown]
# When does the pushing end? When $p = q$. But a softmax is never exactly 1, so with a one-hot $q$ **it never ends**. At a probability of 0.98 the score of *ihren* is still pushed up, and its lead over the other scores grows without limit.
#
# Is that always wrong? Suppose that the same words come before *ihren* six times in ten, and before *seinen* the other four. Then the pushes of the ten sentences cancel at 0.6 and 0.4, and the model is calibrated by itself (exercise 1). The push runs on only where the model can tell each sentence from all others, that is, where it can learn the answer by heart. With 800 sentences it can. What if $q$ asked for a little less? We let three scores follow their push, once towards $(1, 0, 0)$ and once towards $(0.9, 0.05, 0.05)$:

# %% tags=["active-ipynb"]
# def lead(q, steps=5000):
#     z, leads = torch.zeros(3), []
#     for _ in range(steps):
#         p = z.softmax(dim=0)
#         z = z + 0.1 * (q - p)
#         leads.append((z[0] - z[1]).item())
#     return leads
#
#
# leads = {
#     "q = (1, 0, 0)": lead(torch.tensor([1.0, 0.0, 0.0])),
#     "q = (0.9, 0.05, 0.05)": lead(torch.tensor([0.9, 0.05, 0.05])),
# }
# labels = ("step (the axis is logarithmic)", "lead: first score minus second")
# ax = plotting.lines(range(1, 5001), leads, *labels, log="x")

# %% [markdown]
# *The upper curve climbs for ever; the lower one stops where the model's probabilities are what was asked for.*

# %% [markdown]
# ## Ask for a little less
#
# That is **label smoothing** (Szegedy et al., 2015). It takes a small part $\epsilon$ away from the right token and spreads it evenly over all $V$ entries of the vocabulary, the right one included:
#
# $$q_k = (1 - \epsilon)\,[k = gold] + \frac{\epsilon}{V}$$
#
# The bracket is 1 for the gold token and 0 for the others. With three words and $\epsilon = 0.15$ the right one gets $0.85 + 0.05 = 0.9$ and each of the others 0.05, which was the lower curve. The paper takes $\epsilon = 0.1$.


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
# What changes for real words? The larger model that ships with this book is asked for the next word of two German sentences. *Die Geschäftsfrau* ("the businesswoman") goes on with *ist*, because she has hurried to Vienna, and German says "is hurried". *Die Katze verlor* ("the cat lost") goes on with *ihren*. At the first place the model hesitates, and at the second it does not:

# %% tags=["active-ipynb"]
# model, its_tokenizer = load()
# businesswoman = (
#     "The businesswoman has already hurried to Vienna.",
#     "Die Geschäftsfrau ist schon nach Wien geeilt.",
# )
# cat = ("The cat lost its ball.", "Die Katze verlor ihren Ball.")
# batch = collate(encode_pairs(its_tokenizer, [businesswoman, cat]))
# rows, places = [0, 1], [2, 3]  # ist, ihren
# with torch.no_grad():
#     logits = model(batch.source, batch.decoder_input)[rows, places]
# p, gold = logits.softmax(dim=-1), batch.gold[rows, places]
#
# V = its_tokenizer.vocab_size
# targets = {
#     "one-hot": smoothed_targets(gold, V, 0.0),
#     "smoothed": smoothed_targets(gold, V, 0.1),
# }
# written = ["Die Geschäftsfrau", "Die Katze verlor"]
# views.pushes(written, p, targets, its_tokenizer.decode)

# %% [markdown]
# *Compare the two pushes in each row: where the model hesitates, both push its scores the same way; where it is surer than 0.9, the one-hot target pushes it still further, and the smoothed target pulls it back.*
#
# So smoothing hardly disturbs the learning of what is not known yet. It only stops the model from going on for ever.

# %% [markdown]
# ## The best answer is 0.9, not 1
#
# Let us see the stop in the loss itself. A model gives the right token the probability $p_{gold}$ and shares the rest evenly among 999 other tokens. Which $p_{gold}$ costs least?

# %% tags=["active-ipynb"]
# p_gold = torch.linspace(0.5, 0.9995, 1000, dtype=torch.float64)
# logits = ((1 - p_gold) / 999).log()[:, None].repeat(1, 1000)
# logits[:, 0] = p_gold.log()  # token 0 is gold
# losses = {}
# for epsilon in (0.0, 0.1):
#     targets = smoothed_targets(torch.tensor(0), 1000, epsilon)
#     losses[f"ε = {epsilon}"] = cross_entropy_with_targets(logits, targets)
# views.best_answer(p_gold, losses)

# %% [markdown]
# *The dot is the lowest point with smoothing: the best answer is 0.9, not 1.*
#
# And the loss no longer ends at zero. At best $p = q$, and then the loss is what $q$ costs by itself, $-\sum_k q_k \ln q_k$. Take the paper's 37,000 entries. The wrong ones share 0.1, and each costs $-\ln(0.1/37{,}000) = 12.82$. Together they cost $0.1 \cdot 12.82 = 1.282$. The right one adds $-0.9 \cdot \ln 0.9 = 0.095$. The sum is the floor below which no loss can fall:

# %% tags=["active-ipynb"]
# q = smoothed_targets(torch.tensor(0), 37_000, 0.1).double()
# print(f"the floor: {-(q * q.log()).sum():.2f} nats")

# %% [markdown]
# So a training loss of 1.5 with smoothing would be nearly perfect, and must not be compared with a loss without smoothing.
#
# Torch's `cross_entropy` smooths by the same definition, and leaves out padding. The loss of this book is one call:


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
        logits.flatten(0, -2),
        gold.flatten(),
        ignore_index=pad_id,
        label_smoothing=epsilon,
        reduction=reduction,
    )


# %% tags=["active-ipynb"]
# logits, gold = torch.randn(24, 8), torch.randint(1, 8, (24,))
# by_definition = cross_entropy_with_targets(logits, smoothed_targets(gold, 8, 0.1))
# by_torch = label_smoothing_loss(logits, gold)
# print(f"by definition {by_definition.mean():.4f}, by torch {by_torch:.4f}")
# assert torch.allclose(by_definition.mean(), by_torch)

# %% [markdown]
# ## Does a trained model obey?
#
# The model that ships with this book was trained with smoothing, on 20,000 sentences that a grammar wrote. In such a language the next word can nearly always be known, in new sentences, too. So it has every reason to be sure. How sure is it? Here are the probabilities that it gives to the right tokens of 100 new sentences:

# %% tags=["active-ipynb"]
# batch = collate(encode_pairs(its_tokenizer, read_corpus("bundled", "validation")[:100]))
# real = batch.gold != its_tokenizer.pad_id
# with torch.no_grad():
#     p = model(batch.source, batch.decoder_input).softmax(dim=-1)[real]
# gold = batch.gold[real]
# p_gold = p.gather(1, gold[:, None])[:, 0]
# views.confidence(p_gold)

# %% [markdown]
# *Nearly all tokens are in one pile at 0.9, where smoothing asked for it.*
#
# It obeys. But is it as sure as it is right? Look only at the guesses to which it gives about 0.9:

# %% tags=["active-ipynb"]
# sure, guess = p.max(dim=-1)
# near = (sure > 0.85) & (sure < 0.95)
# share = (guess == gold)[near].double().mean()
# print(f"{near.double().mean():.0%} of {len(gold):,} first guesses get 0.85 to 0.95")
# print(f"and {share:.1%} of these guesses are right")

# %% [markdown]
# They are practically always right. So now we have the opposite fault: this model is *less* sure than it has reason to be. A right guess with 0.9 costs $-\ln 0.9 = 0.11$ nats, although nothing is wrong with it. Smoothing takes sureness away, whether it was deserved or not.

# %% [markdown]
# ## Dropout makes it hard to learn by heart
#
# The model of the beginning was pushed to be sure, and it could obey because it learned its sentences by heart. Smoothing changes the push. The second remedy is for the learning by heart.
#
# How could a model know a sentence by heart? Suppose that by accident some number of a vector is large in just this sentence. A large weight on this number, and the next word is right; on a new sentence the same number means nothing. A rule of the language is different: it holds in many sentences and can show in many numbers. So we would like a model that relies on no single number. How do you teach somebody not to rely on one helper? You send the helper home now and then.
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


# %% tags=["active-ipynb"]
# torch.manual_seed(0)
# x = torch.tensor([3.0, 6.0, 9.0])
# for _ in range(2):
#     print("a draw:", [f"{value:.1f}" for value in dropout(x, 1 / 3)])
# mean = dropout(x.expand(100_000, 3), 1 / 3).mean(dim=0)
# print("the mean of 100,000:", [f"{value:.1f}" for value in mean])

# %% [markdown]
# Why does that spread the trust? Take the smallest model that has a choice. Two numbers, $x_1 = x_2 = 1$, both say what is asked for, which is 1. The model answers $w_1 x_1 + w_2 x_2$. Without dropout all weights with $w_1 + w_2 = 1$ are equally good: $(1, 0)$ relies on the first number alone, and $(\frac12, \frac12)$ on both.
#
# Now let $P_{drop}$ be ½, so that each number is either 0 or doubled. The weights $(1, 0)$ answer 0 or 2, and are always wrong by 1. The weights $(\frac12, \frac12)$ answer 0, 1, 1 or 2, and are wrong by 1 only half of the time. What about the weights between?

# %% tags=["active-ipynb"]
# w_1 = torch.linspace(0, 1, 41)
# w = torch.stack([w_1, 1 - w_1])  # (2, 41): a column is one pair of weights
# x = torch.ones(20_000, 2)
# errors = {
#     "without dropout": ((x @ w - 1) ** 2).mean(dim=0),
#     "with dropout of ½": ((dropout(x, 0.5) @ w - 1) ** 2).mean(dim=0),
# }
# ax = plotting.lines(w_1, errors, "w₁ (and w₂ = 1 − w₁)", "mean squared error")

# %% [markdown]
# *Without dropout all pairs of weights are equally good; with dropout the even pair in the middle is best, and the more a pair relies on one number, the more it pays.*
#
# Two numbers halve the error, and ten would bring it down to a tenth (exercise 2). So what shows in many numbers hardly suffers from dropout, and what hangs on a single number suffers most. That is the hope: rules survive, and accidents do not.
#
# Where does dropout act in a Transformer? The paper names two kinds of places. One is the sum of embedding and position, where the lane of [chapter 3](03_stacks.ipynb) begins. The other is the output of every sub-layer, before it is added to the lane:

# %% tags=["active-ipynb"]
# views.dropout_places()

# %% [markdown]
# *The dots are dropout: one is where the lane begins, and one on each path back to it; a decoder layer has a third path, from cross-attention, and a dot there, too.*
#
# When the model is used, nothing must be dropped. `model.eval()` switches dropout off, and `model.train()` switches it on again. If you forget `eval`, you judge a model that lacks a part of its numbers, and you get another answer every time:

# %% tags=["active-ipynb"]
# small = few.model(P_drop=0.1)
# for mode in (small.train, small.eval):
#     mode()
#     once, again = (few.answers(small, few.new)[0] for _ in range(2))
#     same = "the same" if torch.equal(once, again) else "different"
#     print(f"{mode.__name__}: two calls give {same} scores")

# %% [markdown]
# ## The same training, with either remedy
#
# Now back to the 800 sentences. We train twice more, once with dropout and once with smoothing, both of 0.1 as in the paper, and everything else as before. All are judged without dropout and without smoothing. Which remedy will close the yellow gap, and which will keep the model from learning by heart?

# %% tags=["active-ipynb"]
# runs["dropout"] = list(train(P_drop=0.1))
# runs["smoothing"] = list(train(loss_of=label_smoothing_loss))
# views.surer(runs)

# %% [markdown]
# *In the lower row both remedies make the yellow gap smaller; in the upper row only dropout keeps the learned sentences (dashed) from getting so cheap, and only with dropout does the loss on new sentences (solid) still fall.*
#
# Both models end less sure than the plain one, and are right about as often: which of the three is right most often changes with the start ([evidence 13.1](evidence/13_regularization.ipynb) has five). But they got there by different ways. With smoothing the model learns by heart nearly as fast as without, and its loss on new sentences turns, too, only more gently. With dropout the learned sentences still cost nearly twice as much, and the loss on new ones has not turned.
#
# By the loss, dropout is the stronger remedy here, and not only because it learns more slowly: had you stopped each training at its lowest point, smoothing would have gained nothing over the plain training, and dropout would still have gained. By the yellow gap the two are about equal. The paper uses both remedies at once (exercise 4).

# %% [markdown]
# ## Which judge is right?
#
# We began with two judges that disagree, the loss and the share of right guesses. The paper has two judges as well. The first is **perplexity**, the exponential of the mean loss. A model that always hesitates between four equally likely words has perplexity 4. This judge asks how much probability the right words got.
#
# The other judge reads only what the model writes. **BLEU** (Papineni et al., 2002) counts how many runs of one to four words a translation shares with a human one, the reference. A perfect copy gets 100, and short outputs are punished ([chapter 15](15_decoding.ipynb) has the formula):

# %% tags=["active-ipynb"]
# reference = "the small dog sleeps under the old table in the kitchen"
# outputs = {
#     "the same": reference,
#     "one word changed": reference.replace("old", "big"),
#     "cut short": "the small dog sleeps under the old table",
# }
# for name, output in outputs.items():
#     print(f"{name:17} BLEU {sacrebleu.sentence_bleu(output, [reference]).score:.0f}")

# %% [markdown]
# Guess what smoothing does to either judge. Each row of this table changes one thing in the paper's base model (its Table 3, rows D):
#
# | | perplexity (lower is better) | BLEU (higher is better) |
# |---|---|---|
# | base model: smoothing 0.1, dropout 0.1 | 4.92 | 25.8 |
# | no smoothing | 4.67 | 25.3 |
# | smoothing 0.2 | 5.47 | 25.7 |
# | no dropout | 5.77 | 24.6 |
# | dropout 0.2 | 4.95 | 25.5 |
#
# A dropout of 0.1 pleases both judges. Smoothing divides them: with it, perplexity is worse and BLEU is better.
#
# But in our own training smoothing made the loss better. How can that be? Smoothing takes sureness away, deserved or not. Our plain model was far too sure, so it gained. The model of the pile at 0.9 deserved to be surer, so it pays 0.11 nats for a right guess. A likely reason for the paper's perplexity, which we did not test, is that its model learned from millions of sentences and deserves most of its sureness, too.
#
# BLEU sees little of this. Where the likeliest word is taken, a word that leads with 0.9 is written just like a word that leads with 0.99. (The paper searches with a beam, which compares products of such numbers; [chapter 15](15_decoding.ipynb) shows what that changes.) So BLEU need not suffer from smoothing. Why it even gains half a point in the paper, we do not know, and whether it does on our own data, we could not tell ([evidence 13.3](evidence/13_regularization.ipynb)).
#
# So which judge is right? Each is right about its own question. If you use the probabilities, for example to pick out the sentences that a person should check, believe the loss. If you use only the translations, as the paper does, believe BLEU, and do not mind a perplexity that smoothing has made worse.

# %% [markdown]
# ## What to keep
#
# - The gradient of the loss is p minus q, so a one-hot target pushes a model to be ever surer of what it can learn by heart; label smoothing gives it a place to stop.
# - Dropout takes numbers away in training, so that a model cannot rely on any single one, and it slows the learning by heart.
# - A loss measures how sure a model is as well as how right; look at its answers, too.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A model is right in four of ten first guesses, and cannot get better. It gives each of its first guesses the same probability $c$. Targets are one-hot. What is the push on the score of the first guess where it is right, and where it is wrong? For which $c$ do the ten pushes cancel?
#
# <details><summary>Answer</summary>
#
# Where the guess is right, its $q$ is 1, and the push is $1 - c$. Where it is wrong, its $q$ is 0, and the push is $-c$. Together, $4\,(1 - c) - 6\,c = 4 - 10\,c$, which is zero for $c = 0.4$. Such a model is as sure as it is right: it is calibrated. So one-hot targets ask for too much sureness only where a model can learn the answers by heart.
# </details>
#
# **2. By hand.** In the small model with two numbers, let there be ten numbers of 1 instead, with weights of $\frac{1}{10}$ each, and again $P_{drop} = \frac12$. What is the mean squared error? (Variances of independent numbers add up.) And what happens to this model in evaluation if you forget the division by $1 - P_{drop}$ in training, and it has learned to answer 1 on average all the same?
#
# <details><summary>Answer</summary>
#
# Each term is $\frac{1}{10}$ times 0 or 2. Its mean is $\frac{1}{10}$, and it is off by $\frac{1}{10}$ either way, so its variance is $\frac{1}{100}$. Ten of them have $\frac{1}{10}$, and that is the mean squared error, as the mean of the answer is right. With a single number it was 1.
#
# Without the division each number is ½ on average in training, so the weights must add up to 2. In evaluation all numbers are there, and the answer is 2. Halving the numbers in evaluation would repair that, and dropout was first defined so.
# </details>
#
# **3. In code.** The authors' own program, tensor2tensor, smooths a little differently. The gold token gets $1 - \epsilon$, each of the $V - 1$ others gets $\epsilon/(V-1)$, and from the loss it subtracts the smallest loss that these targets allow, so that a perfect model has 0. Write it, averaged over the predictions.

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
# **4. Change it and run it again.** Train with both remedies at once, as the paper does, and look at the result with `views.surer(runs)`. Before you run it, guess: will the gap be smaller than with either remedy alone, and will more guesses be right? Then train longer than twelve rounds: does dropout prevent the turn of the loss, or only put it off?
#
# <details><summary>Answer</summary>
#
# ```python
# runs["both"] = list(train(P_drop=0.1, loss_of=label_smoothing_loss))
# views.surer(runs)
# ```
#
# The gap gets smaller again. Over five starts and fourteen rounds the model with both remedies ends 45% sure, and the models with one of them 50%, while all are right in about 40% of their guesses ([evidence 13.1](evidence/13_regularization.ipynb)). Of longer trainings we have no record, so your own run is the answer.
# </details>
#
# **5. To think about.** In [chapter 16](16_translation.ipynb) a model is trained with both remedies, and its loss on the *training* sentences stays above its loss on *new* ones. A colleague says that this is impossible, so there must be a bug. Find two reasons why there need not be one.
#
# <details><summary>Answer</summary>
#
# The training loss is measured with smoothed targets, so it cannot fall below a floor that is well above zero (1.38 nats with 37,000 entries), while the validation loss has one-hot targets and no floor. And it is measured with dropout at work, by a model that lacks a part of its numbers; validation has them all. To compare the two fairly, measure both in evaluation mode and without smoothing.
# </details>
#
# **Next.** Data, optimizer and loss are ready. [Chapter 14](14_training.ipynb) puts them into twenty lines.
