# ---
# jupyter:
#   jupytext:
#     formats: notebooks/14_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 14 · Training
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/14_training.ipynb)
#
# *Section 5 of the paper. Reading takes about 30 minutes, running about a minute.*
#
# Three translators came out of the same loop, with the same sentences and the same size. This is what each of them loses per word, on 200 sentences that it never saw:
#
# | | A | B | C | a blind guess |
# |---|---|---|---|---|
# | loss, in nats per word | 0.006 | 0.042 | 1.4 | 4.3 |
#
# Which one would you take home? I hope that you did not take A, for it cannot write a single sentence. C writes faultless German that has nothing to do with the English. Only B translates, and no loss told you so.
#
# In this chapter you build B in a dozen lines, break it into A and C with one line each, and collect the tests that tell the three apart. With these tests in hand we then train a real translator, by the loop that the rest of this book uses.

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
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn

from transformer.data import Batch, collate, token_batches
from transformer.optimizer import adam, learning_rate, set_learning_rate
from transformer.regularization import label_smoothing_loss

# %% tags=["active-ipynb"]
# import copy
# import math
#
# import torch.nn.functional as F
#
# from transformer import views
# from transformer.attention import padding_mask
# from transformer.core.records import read_rows, under
# from transformer.corpora import read_corpus
# from transformer.data import Tokenizer, encode_pairs, pad
# from transformer.first_transformer import write
# from transformer.model import Transformer, TransformerConfig
# from transformer.teaching.sentences import (
#     all_german,
#     gloss,
#     same_meaning,
#     sentence_pairs,
# )
# from transformer.views.evidence import markdown_table
#
# torch.set_num_threads(1)  # on models this small, a second thread only waits

# %% [markdown]
# ## A language small enough to check
#
# To judge a translation you have to know what is right. So we begin with a tiny language of eight nouns and six verbs, whose German is honest all the same. The article for a masculine noun is *der* when it acts and *den* when something is done to it. The second half of a verb waits at the end (*hat ... gesehen* is "has ... seen"). And an adverb that ends the English sentence begins the German one. You need no German here: every German sentence will come with its English, word by word.

# %% tags=["active-ipynb"]
# pairs = sentence_pairs(1200)  # no sentence twice
# held_out, train_pairs = pairs[:200], pairs[200:]  # no model learns from the first 200
# headings = ["English", "German", "the German, word by word"]
# rows = [[english, german, gloss(german)] for english, german in held_out[:3]]
# markdown_table(headings, rows)

# %% [markdown]
# One thing in this language nobody can know. For "now" its German says *jetzt* or *nun*, and for "perhaps" *vielleicht* or *womöglich*. Both are right, and whoever wrote the sentence tossed a coin. Remember the coin: it will convict a cheat.
#
# Every word gets a number, and short sentences are filled up with padding, as in [chapter 10](10_data.ipynb).

# %% tags=["active-ipynb"]
# words = sorted({word for pair in pairs for text in pair for word in text.split()})
# names = ["(pad)", "(begin)", "(end)", *words]
# ids = {name: i for i, name in enumerate(names)}
# PAD, BEGIN, END = 0, 1, 2
#
#
# def tensors(pairs):
#     """Sources (n, S) and targets (n, T) as numbers."""
#     sources = [[ids[word] for word in english.split()] for english, _ in pairs]
#     targets = [
#         [BEGIN, *(ids[word] for word in german.split()), END] for _, german in pairs
#     ]
#     return pad(sources, PAD), pad(targets, PAD)
#
#
# source, target = tensors(train_pairs)
# held_source, held_target = tensors(held_out)
# print(len(names), "vocabulary entries;", len(train_pairs), "pairs to learn from")
# print("one target:", held_target[0].tolist())

# %% [markdown]
# ## Every word is a question
#
# A translator writes one word at a time, so we ask it for one word at a time. The decoder reads the true German up to a word, and has to name the next one. Shift the sentence by one place, and a single pass asks all these questions:

# %% tags=["active-ipynb"]
# views.shift(held_out[2][1].split())

# %% [markdown]
# *Each column is one question: having read everything up to the upper word, what is the word below it?*
#
# The answer is graded by the probability that the model gave to the right word: its loss is minus the logarithm of it. Say that the model gives four right words the probabilities 1, ½, 1 and ¼. The logarithm of 1 is 0, so sure and right costs nothing; ½ costs 0.69, and ¼ costs 1.39. The mean, 0.52, is the loss, and its unit is called *nat*. Here it is for a whole batch. Padding is no question, so it is left out of the mean.

# %% tags=["active-ipynb"]
# def loss_of(model, source, target):  # (n, S), (n, T)
#     scores = model(source, target[:, :-1])  # the decoder reads all but the last word
#     gold = target[:, 1:]  # and is asked for all but the first: (n, T - 1)
#     return F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=PAD)
#
#
# p = torch.tensor([1, 1 / 2, 1, 1 / 4])
# print(f"by hand: {-p.log().mean():.2f}")

# %% [markdown]
# ## The whole loop
#
# Now everything that you have read comes together: the model of [chapter 8](08_model.ipynb), Adam and the warm-up of [chapter 12](12_optimizer.ipynb), and the loss. An **update** draws 64 sentences, works out in which direction each weight lowers their loss, and takes a small step there. That is all of training.

# %% tags=["active-ipynb"]
# def training(model, source, target, updates=300):
#     optimizer = adam(model)
#     for update in range(1, updates + 1):
#         rows = torch.randint(len(source), (64,))
#         loss = loss_of(model, source[rows], target[rows])
#         optimizer.zero_grad()
#         loss.backward()
#         rate = learning_rate(update, d_model=64, warmup=50, lr_scale=0.17)
#         set_learning_rate(optimizer, rate)
#         optimizer.step()
#         yield loss.item()  # a chance to look before the next update
#
#
# def fresh(kind=Transformer, seed=1):
#     torch.manual_seed(seed)
#     return kind(TransformerConfig(len(names), d_model=64, d_ff=128, N=1, h=4, P_drop=0))

# %% [markdown]
# The function *yields* after every update, so we can stop and look whenever we like. (Dropout and smoothed labels, [chapter 13](13_regularization.ipynb), wait until the real run: these sentences do not need them.) We had better look early.
#
# ## Three checks before you trust it
#
# **Check the first loss.** A model that knows nothing should give each of $V$ words the probability $1/V$, which costs $\ln V$. Before you look: what would it mean if the first loss were far *below* that? We compute it twice, and the second time we forget the shift.

# %% tags=["active-ipynb"]
# model = fresh()
# with torch.no_grad():
#     scores = model(held_source, held_target[:, :-1]).flatten(0, 1)
# gold, read = held_target[:, 1:].flatten(), held_target[:, :-1].flatten()
# right = F.cross_entropy(scores, gold, ignore_index=PAD)
# forgotten = F.cross_entropy(scores, read, ignore_index=PAD)
# print(f"ln V = {math.log(len(names)):.1f}")
# print(f"first loss {right:.1f}, with the shift forgotten {forgotten:.1f}")

# %% [markdown]
# Without the shift the loss begins near zero. The model is asked for the word that it has just been given, and because the matrix that embeds the words also scores them ([chapter 6](06_embeddings.ipynb)), an untrained model simply repeats what it reads. For the same reason the correct loss begins *above* $\ln V$, with a confident wrong guess. That is harmless. But nobody can know anything before the first update. A first loss far below $\ln V$ means that the answer is leaking in.
#
# **Overfit one batch.** Take sixteen sentences, again and again. A model whose gradients arrive soon knows them by heart.

# %% tags=["active-ipynb"]
# sixteen = list(training(fresh(), source[:16], target[:16], updates=100))
# print(f"sixteen sentences: loss {sixteen[0]:.1f}, after 100 updates {sixteen[-1]:.3f}")

# %% [markdown]
# It does. If yours does not, more data will not help. The usual culprits are an optimizer that holds another model's weights, and a part that no gradient reaches.
#
# **Read the outputs.** Now the training itself, and then what the model writes *by itself*, on sentences that it never saw. (`write` is [chapter 0](00_first_transformer.ipynb)'s: it takes the likeliest word, again and again.)

# %% tags=["active-ipynb"]
# model = fresh()
# losses = {"B": list(training(model, source, target))}
#
#
# def in_german(model, source):
#     rows = [row[1:].tolist() for row in write(model, source, longest=12)]
#     ended = [row[: row.index(END)] if END in row else row for row in rows]
#     return [" ".join(names[i] for i in row) for row in ended]
#
#
# def count_right(outputs):
#     """How many are right to the last word; either side of a coin will do."""
#     return sum(
#         same_meaning(german, true) for german, (_, true) in zip(outputs, held_out)
#     )
#
#
# def shown(outputs):
#     rows = [
#         [english, german, gloss(german)]
#         for (english, _), german in zip(held_out[:3], outputs)
#     ]
#     return markdown_table(headings, rows)
#
#
# outputs = {"B": in_german(model, held_source)}
# print(f"B: {count_right(outputs['B'])} of {len(held_out)} right to the last word")
# shown(outputs["B"])

# %% [markdown]
# This is a translator. It moves the adverb to the front and the verb before its subject, and it knows when *der* must become *den*. Now let us break it.

# %% [markdown] tags=["question-19"]
# ## Why such a fuss about the mask?
#
# In chapter 8 the method `decode` hands the decoder a causal mask, so that no word sees the words behind it. Here it is again, with `None` where that mask was. Nothing else changes, and nothing will crash. Guess what becomes of the loss.

# %% tags=["active-ipynb"]
# class Peeking(Transformer):
#     def decode(self, target, memory, source):
#         real = padding_mask(source, PAD)
#         return self.decoder(self.embed(target), memory, None, real)  # no causal mask
#
#
# peeking = [fresh(Peeking, seed) for seed in (1, 2, 3)]  # three starts
# losses["A"], *_ = [list(training(one, source, target)) for one in peeking]
# with torch.no_grad():
#     for name, one in {"B": model, "A": peeking[0]}.items():
#         print(f"{name}: held-out loss {loss_of(one, held_source, held_target):.4f}")
# outputs["A"] = in_german(peeking[0], held_source)
# print(f"A: {count_right(outputs['A'])} of {len(held_out)} right to the last word")
# shown(outputs["A"])

# %% [markdown]
# The loss is far lower than B's, and on sentences that the model has *never seen*. Yet what it writes is worthless. Where has the loss come from?

# %% tags=["active-ipynb"]
# views.leak(held_out[2][1].split(), place=2)

# %% [markdown]
# *Above, the question has its own answer among the words that it may look at (red); below, when the model writes, that place is empty.*
#
# In training, and in every held-out test that works as training does, the next word is always there, one place to the right. A need only copy it. When it writes, nothing is to the right, and all that is left are scraps of habit.
#
# You could have known without reading a word. An honest model cannot guess a coin, and on these sentences the coins alone cost 0.032 nats per word (exercise 1 works it out). B's loss is above this floor. A's is far below: **it knew the coins**. If your loss is better than you can explain, do not celebrate.
#
# There is also a direct test, and it needs no training. Change the *last* word of every target. Scores at earlier places must not move at all.

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def earlier_scores_move(model):
#     """By how much, at most, when only the last word of each target is another."""
#     other = held_target.clone()
#     other[:, -1] = ids["Katze"]
#     before = model(held_source, held_target)[:, :-1]
#     return (model(held_source, other)[:, :-1] - before).abs().max().item()
#
#
# print(f"with the mask: {earlier_scores_move(model):.1f}")
# print(f"without: {earlier_scores_move(peeking[0]):.1f}")

# %% [markdown] tags=["question-36"]
# ## Fluent, and about something else
#
# The second accident happens in a file. One line is lost from the German side, and from there on every English sentence is paired with its neighbour's translation. Our model and loop are sound this time. Only the pairs have slipped.

# %% tags=["active-ipynb"]
# slipped_pairs = [
#     (english, german)
#     for (english, _), (_, german) in zip(train_pairs, train_pairs[1:] + train_pairs[:1])
# ]
# slipped = fresh()
# losses["C"] = list(training(slipped, *tensors(slipped_pairs)))
# outputs["C"] = in_german(slipped, held_source)
# german = all_german()  # every sentence that the grammar allows
# print(f"C: {count_right(outputs['C'])} of {len(held_out)} right to the last word")
# print(f"C: {sum(text in german for text in outputs['C'])} are German without a fault")
# shown(outputs["C"])

# %% [markdown]
# Look closely. Articles, endings and word order are as they should be. (Somebody may do something to himself; our grammar check allows that.) C has learned German from the German side alone, and its loss fell from over 6 to about 1.4 on the way. In a real project you would think: not bad, it needs more training.
#
# So we want a test that asks about the source and about nothing else. Give each held-out sentence *another* sentence's English, and look at the loss again. What should happen to a model that reads its source?

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def own_and_strange(model):
#     """Held-out loss with a sentence's own source, and with another sentence's."""
#     strange = held_source.roll(1, dims=0)
#     return (
#         loss_of(model, held_source, held_target).item(),
#         loss_of(model, strange, held_target).item(),
#     )
#
#
# views.strange_sources(
#     {
#         "untrained": [own_and_strange(fresh())],
#         "A: no mask": [own_and_strange(one) for one in peeking],
#         "B: sound": [own_and_strange(model)],
#         "C: slipped": [own_and_strange(slipped)],
#     }
# )

# %% [markdown]
# *For B the wrong English makes the German many times as expensive; for C, as for a model that has learned nothing, it makes no difference. (The dots are A's three starts.)*
#
# C does not read its source, and it took one line to find out. **Where the loss does not rise, the English is decoration.** A rises, so it uses its source a little or a lot, as the luck of its first weights will have it. This test does not catch A, and the mask test does not catch C.
#
# A lost line is not the only way to C. On this book's larger grammar, with clean files, a training whose *encoder* had four layers ignored its source three times of three. With two layers there, or with the norms first, or with a quarter of the learning rate in the encoder alone, it read the source three times of three; the same changes in the decoder did not help. Why a deep, fast encoder is fatal we could not tell ([evidence 14.2](evidence/14_training.ipynb)).

# %% [markdown]
# ## Which one would you take home?
#
# Here are the three trainings again, now with faces: first every test on every model, then the curves.

# %% tags=["active-ipynb"]
# models = {"A, no mask": peeking[0], "B, sound": model, "C, slipped": slipped}
# data = [
#     (Peeking, train_pairs),
#     (Transformer, train_pairs),
#     (Transformer, slipped_pairs),
# ]
# rows = []
# for (name, one), (kind, its_pairs) in zip(models.items(), data):
#     by_heart = list(training(fresh(kind), *tensors(its_pairs[:16]), updates=100))[-1]
#     own, strange = own_and_strange(one)
#     rows.append(
#         [
#             name,
#             f"{own:.3f}",
#             f"{by_heart:.2f}",
#             f"{earlier_scores_move(one):.1f}",
#             f"{strange / own:.0f} ×",
#             count_right(outputs[name[0]]),
#         ]
#     )
# tests = ["held-out loss", "sixteen by heart", "mask: scores move"]
# markdown_table(["", *tests, "strange source costs", "right of 200"], rows)

# %% tags=["active-ipynb"]
# writes = {name: (gloss(outputs[name][0]), name == "B") for name in "CBA"}
# views.three_trainings({name: losses[name] for name in "CBA"}, writes)

# %% [markdown]
# *All three losses fall as losses should; beside each curve is what its model writes for "the wild child hears the old horse perhaps", word by word in English.*
#
# The table has a moral. Each broken model passes most of the tests, and of these only reading the outputs catches both. Reading tells you *that* something is wrong; the other tests tell you *what*.

# %% [markdown]
# ## Which weights do you keep?
#
# So B it is. But B at which moment? With a thousand sentences nothing went wrong, so let us be stingy and train on forty. The loop sees the same forty over and over, and their loss will go to nothing. Will the loss on the *held-out* sentences follow? Because our loop pauses after every update, watching takes a few lines.

# %% tags=["active-ipynb"]
# small = fresh()
# updates, seen, unseen, best = [], [], [], math.inf
# for update, loss in enumerate(training(small, source[:40], target[:40], 200), 1):
#     if update % 10 == 0:
#         with torch.no_grad():
#             held = loss_of(small, held_source, held_target).item()
#         updates.append(update)
#         seen.append(loss)
#         unseen.append(held)
#         if held < best:
#             best, kept = held, (update, copy.deepcopy(small.state_dict()))
# last = count_right(in_german(small, held_source))
# small.load_state_dict(kept[1])
# print(
#     f"right of 200: last weights {last}, kept {count_right(in_german(small, held_source))}"
# )
# views.keeping(updates, seen, unseen, best=kept[0])

# %% [markdown]
# *From the dot on, the model learns its forty sentences and no longer the language: the grey curve goes on falling, and the blue one rises.*
#
# Measuring on held-out sentences is called **validation**, and the weights to keep are those at the dot. They predict better. But look at the printed line before you rejoice: neither weights translate, for 3 or 5 right sentences of 200 are as good as none. Forty pairs are too few, and no way of stopping makes up for data.
#
# ## What if a batch does not fit?
#
# Now towards real sentences. The paper's updates have about 25,000 tokens on each side, more than most memories hold. The way out is to cut such a batch into parts, call `backward` for each, and let the gradients add up. Each part's loss is a mean, so for two parts you halve both. Is that right?
#
# Take a pencil. One part has two words, which cost 3 each. The other has eight words, which cost 1 each. All ten together cost 14, so their mean is 1.4. The mean of the two means is $(3 + 1)/2 = 2$.

# %% tags=["active-ipynb"]
# views.mean_of_means([[3, 3], [1, 1, 1, 1, 1, 1, 1, 1]])

# %% [markdown]
# *A word's width is its say: the two words of the short part should have a fifth of it, and in the mean of means they have half.*
#
# No error and no warning tells you, and the loss falls all the same. The remedy is to *sum* the losses of each part, and to divide by the words of *all* parts. This is how the loop of this book does it, with the smoothed loss of [chapter 13](13_regularization.ipynb). (A `Batch` of [chapter 10](10_data.ipynb) makes the shift itself: its `decoder_input` is the target without the last token, and `gold` the target without the first.)


# %%
def accumulate(model: nn.Module, batches: list[Batch], epsilon_ls: float) -> float:
    """Add up the gradients of an update's batches; its loss, in nats a target token."""
    pad_id = model.config.pad_id
    tokens = sum(int((batch.gold != pad_id).sum()) for batch in batches)
    total = 0.0
    for batch in batches:
        scores = model(batch.source, batch.decoder_input)
        summed = label_smoothing_loss(scores, batch.gold, epsilon_ls, pad_id, "sum")
        loss = summed / tokens
        loss.backward()
        total += loss.item()
    return total


# %% [markdown]
# How much does the mistake matter? We cut sixteen sentences into the four shortest and the twelve longest, and compare gradients in 64 bits, so that rounding cannot be blamed.

# %% tags=["active-ipynb"]
# exact = fresh().double()
# by_length = (target != PAD).sum(dim=1).argsort()
# parts = [Batch(source[rows], target[rows]) for rows in (by_length[:4], by_length[-12:])]
# whole = Batch(
#     *(torch.cat(sides) for sides in zip(*((b.source, b.target) for b in parts)))
# )
#
#
# def gradient_of(batches):
#     exact.zero_grad()
#     accumulate(exact, batches, epsilon_ls=0.0)
#     return torch.cat([p.grad.flatten() for p in exact.parameters()])
#
#
# right = gradient_of([whole])
# means = sum(gradient_of([part]) for part in parts) / 2
# ours = gradient_of(parts)
# for name, gradient in {"mean of means": means, "divided by all words": ours}.items():
#     print(
#         f"{name}: off by {(gradient - right).norm() / right.norm():.1g} of its length"
#     )

# %% tags=["active-ipynb"]
# assert (ours - right).norm() < 1e-12 * right.norm()
# assert (means - right).norm() > 0.1 * right.norm()
# print("parts give the gradient of the whole batch")

# %% [markdown]
# With parts as unequal as these, the mean of means points somewhere else by a good part of its length. (Whether the finished model suffers, we did not test.)
#
# ## The loop of the rest of this book
#
# The settings come first, and their defaults are the paper's: its base model took 100,000 updates, with 4,000 of warm-up. On eight GPUs that was twelve hours.


# %%
@dataclass(frozen=True)
class TrainingConfig:
    """How to train: the defaults are the paper's (Section 5)."""

    updates: int = 100_000  # weight updates in all
    batch_tokens: int = 25_000  # a side of a batch, padding included
    accumulate: int = 1  # batches of one update
    warmup: int = 4000  # updates during which the learning rate rises
    lr_scale: float = 1.0  # multiplies the paper's learning rate
    epsilon_ls: float = 0.1  # label smoothing
    validate_every: int = 1000  # updates between validations
    seed: int = 2017  # of the order of the batches


# %% [markdown]
# **Deviation:** padding counts in `batch_tokens`, so that memory is bounded, and the real tokens of an update are somewhat fewer.
#
# Chapter 10 cuts a corpus into batches of sentences of similar length. One pass over the corpus is an **epoch**, and each epoch needs another order. Two epochs of a corpus of three batches might come as 2, 0, 1 and then 1, 2, 0.


# %%
def epoch_seed(seed: int, epoch: int) -> int:
    """The seed of an epoch's order; no two seeds share one."""
    return seed * 1_000_003 + epoch


def stream_batches(encoded, batch_tokens: int, seed: int) -> Iterator[list[int]]:
    """Yield batches, the numbers of their pairs, for ever."""
    for epoch in itertools.count():
        yield from token_batches(encoded, batch_tokens, epoch_seed(seed, epoch))


# %% [markdown]
# And the loop. Compare it with the first one, line by line: the batches come from the stream, an update may have several, and every so often `validate` may look at the model and note some figures.


# %%
def train(
    model: nn.Module,
    encoded: list,
    config: TrainingConfig,
    *,
    validate: Callable = lambda model: {},
) -> list[dict]:
    """Train a model on encoded pairs; return the log, a dict of figures a validation."""
    c = model.config
    optimizer = adam(model)
    stream = stream_batches(encoded, config.batch_tokens, config.seed)
    log, losses = [], []
    for update in range(1, config.updates + 1):
        parts = itertools.islice(stream, config.accumulate)
        batches = [collate([encoded[i] for i in rows], c.pad_id) for rows in parts]
        model.train()
        optimizer.zero_grad()
        losses.append(accumulate(model, batches, config.epsilon_ls))
        rate = learning_rate(update, c.d_model, config.warmup, config.lr_scale)
        set_learning_rate(optimizer, rate)
        optimizer.step()
        if update % config.validate_every == 0 or update == config.updates:
            loss = sum(losses) / len(losses)
            log.append({"update": update, "loss": loss, **validate(model)})
            losses = []
    return log


# %% [markdown]
# What should `validate` look at? The loss on held-out pairs, without dropout and without smoothing:


# %%
@torch.no_grad()
def validation_loss(
    model: nn.Module, encoded, batch_tokens: int = 4000
) -> dict[str, float]:
    """{"validation_loss": cross-entropy on held-out pairs, nats a target token}.

    Without dropout, and without smoothing.
    """
    model.eval()
    pad_id = model.config.pad_id
    total = tokens = 0
    for rows in token_batches(encoded, batch_tokens):
        batch = collate([encoded[i] for i in rows], pad_id)
        scores = model(batch.source, batch.decoder_input)
        total += label_smoothing_loss(scores, batch.gold, 0.0, pad_id, "sum").item()
        tokens += int((batch.gold != pad_id).sum())
    return {"validation_loss": total / tokens}


# %% [markdown]
# ## A real translator
#
# Our `validate` notes two losses: the one just defined, and, since you know C by now, the same one with strange sources. The corpus is the one that ships with this book: 20,000 pairs with passives, relative clauses and 555 words, cut into 3,500 kinds of pieces by [chapter 10](10_data.ipynb)'s tokenizer. One layer on each side is enough to see how it begins, and takes some seconds.

# %% tags=["active-ipynb"]
# tokenizer = Tokenizer.train(
#     (text for pair in read_corpus("bundled", "train") for text in pair), vocab_size=3500
# )
# encoded = encode_pairs(tokenizer, read_corpus("bundled", "train"))
# own = encode_pairs(tokenizer, read_corpus("bundled", "validation")[:100])
# strange = [(other, german) for (other, _), (_, german) in zip(own[1:] + own[:1], own)]
#
#
# def validate(model):
#     strange_loss = validation_loss(model, strange)["validation_loss"]
#     return {**validation_loss(model, own), "strange_loss": strange_loss}
#
#
# torch.manual_seed(1)
# yours = Transformer(
#     TransformerConfig(tokenizer.vocab_size, d_model=128, d_ff=256, N=1, h=4, P_drop=0)
# )
# settings = TrainingConfig(
#     updates=300, batch_tokens=400, warmup=150, lr_scale=0.7, validate_every=25
# )
# log = train(yours, encoded, settings, validate=validate)
# print({name: round(figure, 1) for name, figure in log[-1].items()})

# %% [markdown]
# We have let it run to the end once for you, with two layers and thirteen times as many updates. It is the same loop, and it took less than four minutes of one processor core. Its record is in `data/runs` (`python -m transformer.experiments.bundled_run` writes it again). Does the source matter, in yours and in ours?

# %% tags=["active-ipynb"]
# [run] = read_rows("bundled-run")
# columns = under(run, "log")
# its_log = [dict(zip(columns, figures)) for figures in zip(*columns.values())]
# views.reading_begins({"yours: one layer": log, "ours: two layers, to the end": its_log})

# %% [markdown]
# *The blue area is what the source is worth: on the left there is none at first, and then the two curves part; on the right it grows almost to the end.*
#
# Your translator begins as C. For its first updates it only learns which German is common, and a strange source costs it nothing. Then it begins to read. (Ours was past that point at its first validation.) In C the two curves would never part.
#
# And what does it write? The record follows a few sentences through the training. Here is *Why did the children sing?*, which in German is *Warum sangen die Kinder?*

# %% tags=["active-ipynb"]
# question = run["sentences"].index("Why did the children sing?")
# german = {row["update"]: row["translations"][question] for row in its_log}
# word_by_word = {
#     200: "why the the the the the mayor?",
#     400: "why waited the children over?",
#     1200: "why sings the children?",
#     2200: "why singed the children?",
#     4000: "why sang the children?",
# }
# rows = [[update, german[update], text] for update, text in word_by_word.items()]
# markdown_table(["after update", "the model's German", "word by word"], rows)

# %% [markdown]
# First there are only common words, and by update 400 there are children. The fourth line is our favourite. *Singten* is no German: it is the regular past of an irregular verb, what a child makes of "to sing" before it has heard *sangen* often enough. From update 1,800 to 2,600 the two forms take turns, and then *sangen* stays.

# %% tags=["active-ipynb"]
# assert max(german) == run["training.updates"]
# assert german[4000] == "Warum sangen die Kinder?"
# print(f"of 1,000 test sentences {run['test.exact']:.0%} are right to the letter")

# %% [markdown]
# Four of five sentences that it never saw come out right to the last letter. ([Chapter 15](15_decoding.ipynb) gets more out of the same run, without training it any further; [evidence 14.5](evidence/14_training.ipynb) has its scores.) Made-up sentences are regular, of course; [chapter 16](16_translation.ipynb) trains on real ones. The loop stays the same.
#
# *The package's version, `from transformer import train`, takes the same calls and does the same ([its code](https://github.com/OWNER/annotated-attention/blob/main/transformer/runs/training.py); a test holds the two equal). It also saves what a stopped run needs to go on as if nothing had happened: the weights, Adam's memory, and the place in the data. It stops by itself when validation no longer improves, and works in 16 bits and on several GPUs ([chapter 11](11_hardware.ipynb)).*
#
# ## First aid
#
# | symptom | test | remedy |
# |---|---|---|
# | the first loss is far below $\ln V$ | is the model asked for the word that it has just read? | shift the target |
# | the loss does not move | overfit one batch; has every parameter a gradient? | give the optimizer *this* model's parameters |
# | the loss is better than you can explain | change the last target word: do earlier scores move? | put the causal mask back |
# | the outputs are fluent and wrong | shuffle the sources: does the loss rise? | read ten pairs by eye; then a slower or shallower encoder, or norms first |
# | training loss falls, held-out loss rises | draw both | keep the best weights; more data, dropout |
#
# ## What to keep
#
# - A training loop is a dozen lines, and a falling loss says only that *something* is being learned.
# - Before you trust a model, look at its first loss, let it learn one batch by heart, and read what it writes by itself.
# - Give it the wrong sources: if the loss does not rise, it does not read them.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** 77 of the 200 held-out sentences have a "now" or a "perhaps", and all German sentences together have 1,672 words, end marks included. What is the lowest loss per word that an honest model can reach? And what would it be if one of the two German words for "perhaps" came up in three cases of four?
#
# <details><summary>Answer</summary>
#
# A fair coin costs $\ln 2 = 0.69$ nats, whichever side falls, and nothing else is uncertain. So all sentences together cost at least 77 · 0.69 = 53 nats, or 0.032 per word. A crooked coin is easier to guess: the model should say ¾ and ¼, and pays $-\ln ¾ = 0.29$ in three cases and $-\ln ¼ = 1.39$ in the fourth, 0.56 on average. The floor falls a little.
# </details>
#
# **2. In code.** Somebody wants to stop early. *Patience* 3 means: stop as soon as three validations in a row were no better than the best before them. From the list of validation losses, say after how many validations a run stops (or the length of the list, if it does not), and which of those was the best, counted from 1.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.training import check_stops
#
#
# def stops(losses, patience):
#     """list of losses, how many -> (validations done, number of the best)"""
#     ...
#
#
# check_stops(stops)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def stops(losses, patience):
#     best = 1
#     for number, loss in enumerate(losses, 1):
#         if loss < losses[best - 1]:
#             best = number
#         if number - best == patience:
#             return number, best
#     return len(losses), best
# ```
#
# A loss that equals the best is no better, so it does not set the count back.
# </details>
#
# **3. To think about, then to run.** Train C on only a hundred slipped pairs, until it knows them by heart. What will the test with strange sources say on these hundred pairs, and what on the held-out ones? Decide before you unfold the answer.
#
# <details><summary>Answer</summary>
#
# ```python
# few = fresh()
# list(training(few, *tensors(slipped_pairs[:100]), updates=600))
# few_source, few_target = tensors(slipped_pairs[:100])
# with torch.no_grad():
#     for name, s, t in [
#         ("its hundred", few_source, few_target),
#         ("held out", held_source, held_target),
#     ]:
#         losses = loss_of(few, s, t), loss_of(few, s.roll(1, dims=0), t)
#         print(name, [f"{loss:.2f}" for loss in losses])
# ```
#
# On its hundred pairs, a strange source raises the loss from 0.00 to 5.1. On the held-out ones the loss is 5.3 with the right source and 5.1 with a strange one: no better. It reads its source very well, as a label under which it has filed one German sentence. Nothing of that carries over to sentences that it has not seen. So shuffle sources on held-out sentences only.
# </details>
#
# **Next.** Our models have always written the likeliest word. [Chapter 15](15_decoding.ipynb) shows a sentence in which that goes wrong, and what to do instead.
