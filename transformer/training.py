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
# *Section 5 of the paper. Reading takes about 35 minutes, running about a minute.*
#
# Three translators came out of the same loop, with the same sentences and the same size. This is what each of them loses per word, on 200 sentences that it never saw:
#
# | | A | B | C | a blind guess |
# |---|---|---|---|---|
# | loss, in nats per word | 0.005 | 0.042 | 1.4 | 4.3 |
#
# Which one would you take home? I hope that you did not take A, for it cannot write a single sentence. C writes faultless German that has nothing to do with the English. Only B translates, and no loss told you so.
#
# In this chapter you build B in a dozen lines, break it into A and C with one line each, and collect the tests that tell the three apart. Then you give the same loop a larger language, and watch a translator of your own write its first German.

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
# from transformer.teaching.small_runs import four_minutes, word_by_word
# from transformer.views.evidence import markdown_table
#
# torch.set_num_threads(1)  # on models this small, a second thread only waits

# %% [markdown]
# ## A language small enough to check
#
# To judge a translation you have to know what is right. So we begin with a tiny language of eight nouns and six verbs, whose German is honest all the same. The article of a masculine noun is *der* when it acts and *den* when something is done to it. The second half of a verb waits at the end (*hat ... gesehen* is "has ... seen"). And an adverb that ends the English sentence begins the German one. You need no German here: every German sentence will come with its English, word by word.

# %% tags=["active-ipynb"]
# pairs = sentence_pairs(1200)  # no sentence twice
# held_out, train_pairs = pairs[:200], pairs[200:]  # no model learns from the first 200
# shown = [9, 6, 1]  # three of the held-out pairs, for all tables
# headings = ["English", "German", "the German, word by word"]
# rows = [[*held_out[i], gloss(held_out[i][1])] for i in shown]
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

# %% [markdown]
# ## Every word is a question
#
# A translator writes one word at a time, so we ask it for one word at a time. The decoder reads the true German up to a word, and has to name the next one. Even where it would have written something else, it goes on from the *true* word: this is called **teacher forcing**. Because the true words are all known before we begin, a sentence shifted by one place asks all its questions in a single pass:

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
# def training(model, source, target, updates=300, optimizer=None):
#     optimizer = optimizer or adam(model)
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
# def fresh(kind=Transformer):
#     torch.manual_seed(1)
#     return kind(TransformerConfig(len(names), d_model=64, d_ff=128, N=1, h=4, P_drop=0))

# %% [markdown]
# The learning rate rises for 50 updates to 0.003 (the paper's formula times 0.17) and falls afterwards. Dropout and smoothed labels ([chapter 13](13_regularization.ipynb)) are left out, because so small and clean a language does not need them. The function *yields* after every update, so we can stop and look whenever we like. We had better look early.
#
# ## Three checks before you trust it
#
# **Check the first loss.** A blind guess gives each of $V$ words the probability $1/V$, which costs $\ln V$. Before you look: what would it mean if the first loss were far *below* that? We compute it twice, and the second time we forget the shift.

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
# Without the shift the loss begins near zero. The model is asked for the word that it has just been given, and because the matrix that embeds the words also scores them ([chapter 6](06_embeddings.ipynb)), an untrained model bets on the word that it reads. In the sound loss this bet is always lost, since no word of our language follows itself. That is why the first loss is *above* $\ln V$: a blind guess would at least spread its money. Training soon cures the habit. But nobody can know anything before the first update, so a first loss far *below* $\ln V$ means that the answer is leaking in.
#
# **Overfit one batch.** Take sixteen sentences, again and again. A model whose gradients arrive soon knows them by heart. For comparison we make a common mistake: the optimizer is given the weights of *another* model.

# %% tags=["active-ipynb"]
# few = source[:16], target[:16]
# sound = list(training(fresh(), *few, updates=100))
# mistaken = list(training(fresh(), *few, updates=100, optimizer=adam(fresh())))
# print(f"sixteen sentences: loss {sound[0]:.1f}, after 100 updates {sound[-1]:.2f}")
# print(f"with the mistake: {mistaken[0]:.1f}, and then {mistaken[-1]:.1f}")

# %% [markdown]
# The mistaken loop raises no error. It only never learns, and sixteen sentences show that in a second, where a whole corpus would have cost you an evening.
#
# **Read the outputs.** Now the training itself. It stops to look every ten updates, and at the end the model writes *by itself*, on sentences that it never saw. (`write` is [chapter 0](00_first_transformer.ipynb)'s: it starts from the begin mark, takes the likeliest next word, reads it, and so on.)

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def held_out_loss(model):
#     return loss_of(model, held_source, held_target).item()
#
#
# def trained(model, source, target):
#     """The held-out losses, [(update, loss), ...]."""
#     steps = enumerate(training(model, source, target), start=1)
#     return [(update, held_out_loss(model)) for update, _ in steps if update % 10 == 0]
#
#
# model = fresh()
# curves = {"B": trained(model, source, target)}
# print(f"B: held-out loss {held_out_loss(model):.3f}")

# %% tags=["active-ipynb"]
# def until_end(rows):
#     """Without the begin mark, the end mark, and what is behind it."""
#     rows = [row[1:] for row in rows.tolist()]
#     return [row[: row.index(END)] if END in row else row for row in rows]
#
#
# def in_german(model):
#     """What a model writes for each held-out sentence."""
#     rows = until_end(write(model, held_source, longest=12))
#     return [" ".join(names[i] for i in row) for row in rows]
#
#
# def report(name):
#     written, true = outputs[name], [german for _, german in held_out]
#     right = sum(map(same_meaning, written, true))  # either side of a coin will do
#     print(f"{name}: {right} of {len(true)} right to the last word")
#     rows = [[held_out[i][0], written[i], gloss(written[i])] for i in shown]
#     return markdown_table(headings, rows)
#
#
# outputs = {"B": in_german(model)}
# report("B")

# %% [markdown]
# This is a translator. It moves the adverb to the front and the participle to the end, and it knows when *der* must become *den*. Now let us break it.

# %% [markdown] tags=["question-19"]
# ## Why such a fuss about the mask?
#
# In chapter 8 the method `decode` hands the decoder a causal mask, so that no word sees the words behind it. Here it is again, with `None` in the mask's place. Nothing else changes, and nothing will crash. Guess what becomes of the loss.

# %% tags=["active-ipynb"]
# class Peeking(Transformer):
#     def decode(self, target, memory, source):
#         real = padding_mask(source, PAD)
#         no_mask = None  # the causal mask of chapter 8 was here
#         return self.decoder(self.embed(target), memory, no_mask, real)
#
#
# peeking = fresh(Peeking)
# curves["A"] = trained(peeking, source, target)
# outputs["A"] = in_german(peeking)
# print(f"A: held-out loss {held_out_loss(peeking):.3f}")
# report("A")

# %% [markdown]
# The loss is far lower than B's, and on sentences that the model has *never seen*. Yet for the first two sentences it stammers, and for the third it ends before the first word. Where has the low loss come from?

# %% tags=["active-ipynb"]
# views.leak(held_out[1][1].split(), place=0)

# %% [markdown]
# *Above, the first question has its own answer among the words that the model may look at (red); below, when the model writes, that place is empty.*
#
# In training, and in every held-out test that works as training does, the next word is always there, one place to the right. A has learned to lean on it. When A writes, nothing is to the right, and all that is left are scraps of habit.
#
# The coin proves it. For "now" the first German word is *jetzt* or *nun*, and no English tells which. So we ask both models for the first word of "the young cat feeds the woman now", once with *jetzt* in the target and once with *nun*. An honest model cannot tell the two apart, because it has read neither.

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def belief_in_jetzt(model, first_word):
#     """The probability of "jetzt" as first word, where the target begins with some word."""
#     one_source, one_target = held_source[1:2], held_target[1:2].clone()
#     one_target[0, 1] = ids[first_word]
#     scores = model(one_source, one_target)[0, 0]  # row 0 has read the begin mark alone
#     return scores.softmax(dim=0)[ids["jetzt"]].item()
#
#
# rows = []
# for name, one in {"B": model, "A": peeking}.items():
#     beliefs = [belief_in_jetzt(one, word) for word in ("jetzt", "nun")]
#     rows.append([name, *(f"{belief:.2f}" for belief in beliefs)])
# headings_of_beliefs = [
#     "probability of jetzt",
#     "if the next word is jetzt",
#     "if it is nun",
# ]
# markdown_table(headings_of_beliefs, rows)

# %% [markdown]
# B prefers *jetzt*, and would not say why, but what comes next does not move it at all. **A knew the coin.** Whatever word is there, A is sure of it in advance.
#
# Here you could have known without looking inside, because we know what the language leaves to chance. Whoever gives either side of the coin one half pays 0.032 nats per word for all coins together (exercise 1), and with luck a little less. B's held-out loss is above this, and A's is far below. Real languages come without such a floor. But if your loss is better than you can explain, do not celebrate.

# %% [markdown] tags=["question-36"]
# ## Fluent, and about something else
#
# The second accident happens in a file. One line is lost from the German side, and from there on every English sentence is paired with its neighbour's translation. Our model and loop are sound this time. Only the pairs have slipped.

# %% tags=["active-ipynb"]
# neighbours = train_pairs[1:] + train_pairs[:1]
# slipped_pairs = [
#     (english, german) for (english, _), (_, german) in zip(train_pairs, neighbours)
# ]
# slipped = fresh()
# curves["C"] = trained(slipped, *tensors(slipped_pairs))
# outputs["C"] = in_german(slipped)
# possible = all_german()  # every sentence that the grammar can make
# print(
#     "C:",
#     sum(german in possible for german in outputs["C"]),
#     "are German without a fault",
# )
# report("C")

# %% [markdown]
# Look closely. Articles, endings and word order are as they should be, in every sentence. C has learned German from the German side alone, and its loss fell from over 6 to about 1.4 on the way. In a real project you would think: not bad, it needs more training.
#
# So we want a test that asks about the source and about nothing else. Give each held-out sentence *another* sentence's English, and look at the loss again. What should happen to a model that reads its source?

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def own_and_strange(model):
#     """Held-out loss with a sentence's own source, and with another sentence's."""
#     strange = held_source.roll(1, dims=0)  # each gets the source of its neighbour
#     return held_out_loss(model), loss_of(model, strange, held_target).item()
#
#
# models = {"untrained": fresh(), "A: no mask": peeking, "B: sound": model}
# models["C: slipped"] = slipped
# views.strange_sources({name: own_and_strange(one) for name, one in models.items()})

# %% [markdown]
# *For B the wrong English makes the German far more expensive; for C, as for a model that has learned nothing, it makes no difference.*
#
# C does not read its source, and it took one line to find out. **Where the loss does not rise, the English is decoration.** A's loss rises, too: it peeks, and it has also learned to read the English. So this test does not catch A, just as the coin does not catch C.

# %% [markdown]
# ## Which one would you take home?
#
# Here are the three trainings again, now with faces.

# %% tags=["active-ipynb"]
# writes = {name: (gloss(outputs[name][0]), name == "B") for name in "CBA"}
# ordered = {name: curves[name] for name in "CBA"}
# views.three_trainings(ordered, writes, floor=0.032)

# %% [markdown]
# *Each of the three curves could be a loss as it should be; beside each curve is what its model writes for "the wild child hears the old horse perhaps", word by word in English.*

# %% tags=["active-ipynb"]
# rows = []
# for name in ("A: no mask", "B: sound", "C: slipped"):
#     one = models[name]
#     own, strange = own_and_strange(one)
#     learned = belief_in_jetzt(one, "jetzt") - belief_in_jetzt(one, "nun")
#     right = sum(map(same_meaning, outputs[name[0]], [german for _, german in held_out]))
#     rows.append([name, f"{own:.3f}", f"{learned:.2f}", f"{strange - own:.1f}", right])
# tests = ["held-out loss", "knows the coin", "a strange source adds", "right of 200"]
# markdown_table(["", *tests], rows)

# %% [markdown]
# Read the table by columns. The coin convicts A alone, and the strange source convicts C alone. Only the last column convicts both. So read what your model writes: it tells you *that* something is wrong, and the other tests tell you *what*.

# %% [markdown]
# ## Your own translator
#
# B knows eight nouns. Let us give the loop a harder language, and a sentence to look forward to: *Why did the children sing?* In German that is *Warum sangen die Kinder?*, word by word "why sang the children". This book ships with 20,000 pairs of sentences that a grammar made, with plurals, questions and irregular verbs. We take the short ones, of at most seven words. Our sentence is not among them. What does a model make of it before it has learned anything?

# %% tags=["active-ipynb"]
# def short(part):
#     pairs = read_corpus("bundled", part)
#     return [pair for pair in pairs if len(pair[0].split()) <= 7]
#
#
# def translated(sentences):
#     rows = [[*tokenizer.encode(text), END] for text in sentences]
#     written = write(yours, pad(rows, PAD), longest=16)
#     return [tokenizer.decode(row) for row in until_end(written)]
#
#
# learned, unseen = short("train"), short("validation")[:200]
# texts = [text for pair in learned for text in pair]
# tokenizer = Tokenizer.train(texts, vocab_size=3500)
# torch.manual_seed(1)
# sizes = TransformerConfig(3500, d_model=128, d_ff=256, N=1, h=4, P_drop=0)
# yours = Transformer(sizes)
# question = "Why did the children sing?"
# print(len(learned), "pairs to learn from")
# print("before training:", translated([question])[0])

# %% [markdown]
# Nothing to read yet: untrained, the model writes marks that are no text. Between this and German there are some hundred updates. The loop for them is the one that you know, with three additions that any larger language needs: it can take an update in parts, it puts the sentences into ever new orders, and it looks up at regular intervals.
#
# ## What if a batch does not fit?
#
# The paper's updates have about 25,000 tokens on each side, more than most memories hold. The way out is called **gradient accumulation**: cut the batch into parts, call `backward` for each part, and let the gradients add up before you take the step. Each part's loss is a mean, so for two parts you halve both. Is that right?
#
# Take a pencil. One part has two words, which cost 3 each. The other has eight words, which cost 1 each. All ten together cost 14, so their mean is 1.4. The mean of the two means is $(3 + 1)/2 = 2$.

# %% tags=["active-ipynb"]
# views.mean_of_means([[3, 3], [1, 1, 1, 1, 1, 1, 1, 1]])

# %% [markdown]
# *A word's width is its say: the two words of the short part should have a fifth of it, and in the mean of means they have half.*
#
# No error and no warning tells you. The remedy is to *sum* the losses of each part, and to divide by the words of *all* parts:


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
# A `Batch` of [chapter 10](10_data.ipynb) makes the shift itself: its `decoder_input` is the target without the last token, and its `gold` is the target without the first. `epsilon_ls` is the label smoothing of [chapter 13](13_regularization.ipynb), which 0 switches off. Do four and twelve sentences give the same gradient as all sixteen at once? We ask in 64 bits, so that rounding cannot be blamed.

# %% tags=["active-ipynb"]
# exact = copy.deepcopy(yours).double()
# encoded = encode_pairs(tokenizer, learned)
#
#
# def gradient_of(batches):
#     exact.zero_grad()
#     accumulate(exact, batches, epsilon_ls=0.0)
#     return torch.cat([p.grad.flatten() for p in exact.parameters()])
#
#
# whole = gradient_of([collate(encoded[:16])])
# parts = gradient_of([collate(encoded[:4]), collate(encoded[4:16])])
# assert (parts - whole).norm() < 1e-12 * whole.norm()
# print("two parts give the gradient of the whole batch")

# %% [markdown]
# ## In which order?
#
# Chapter 10 cuts a corpus into batches of sentences of similar length. One pass over the corpus is an **epoch**. If every epoch had the same order, the model would meet the same sentences together again and again. So each epoch is shuffled by a seed of its own, and the stream of batches never ends: three batches might come as 2, 0, 1 and then 1, 2, 0.


# %%
def epoch_seed(seed: int, epoch: int) -> int:
    """The seed of an epoch's order; no two seeds share one."""
    return seed * 1_000_003 + epoch


def stream_batches(encoded, batch_tokens: int, seed: int) -> Iterator[list[int]]:
    """Yield batches, the numbers of their pairs, for ever."""
    for epoch in itertools.count():
        yield from token_batches(encoded, batch_tokens, epoch_seed(seed, epoch))


# %% [markdown]
# ## When do you look up?
#
# At regular intervals, and at sentences that no update has used. This is called **validation**. Dropout and label smoothing are for learning, so they are switched off here:


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
# Since you know C by now, your own translator will be asked for the same loss with strange sources, too, and for its translation of our sentence.

# %% tags=["active-ipynb"]
# own = encode_pairs(tokenizer, unseen)
# sources = [english for english, _ in own[1:] + own[:1]]
# strange = [(other, german) for other, (_, german) in zip(sources, own)]
#
#
# def look(model):
#     return {
#         "validation_loss": validation_loss(model, own)["validation_loss"],
#         "strange_loss": validation_loss(model, strange)["validation_loss"],
#         "german": translated([question])[0],
#     }

# %% [markdown]
# ## The loop of the rest of this book
#
# The settings come first, and their defaults are the paper's. Its Section 5 is a list of what you have met in the last chapters: data and batches ([10](10_data.ipynb)), hardware ([11](11_hardware.ipynb): eight GPUs took twelve hours for 100,000 updates), the optimizer and its warm-up ([12](12_optimizer.ipynb)), dropout and label smoothing ([13](13_regularization.ipynb)).


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
# In the loop itself you will find the lines of the first one again: gradients to zero, loss, backward, rate, step.


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
# ## Every translator begins as C
#
# Now let yours learn. Before you look at the picture: when will a strange source begin to hurt?

# %% tags=["active-ipynb"]
# settings = TrainingConfig(
#     updates=700,
#     batch_tokens=400,
#     warmup=150,
#     lr_scale=0.7,
#     epsilon_ls=0.0,
#     validate_every=25,
# )
# log = train(yours, encoded, settings, validate=look)
# views.reading_begins(log)

# %% [markdown]
# *At first the two curves are one. Where they part, your translator has begun to read English, and from there on a wrong source costs more and more.*
#
# For its first updates your translator only learns which German is common, and any English will do. It is C. Then it finds that the English helps, and the blue curve falls away from the grey one. In C the two would never part, however long you wait.
#
# The blue curve also says when to stop. While it falls, every update makes the model better at sentences that it has not seen. In most trainings it rises some day, although the loss on the training sentences still falls ([chapter 13](13_regularization.ipynb) shows it): then the model learns its sentences by heart, and no longer the language. To stop when validation has not improved for a while, and to keep the weights of the best validation, is called **early stopping** (exercise 2). Yours is still falling. We stopped it because you wanted to read on.
#
# ## Its first German
#
# And what has it written on the way?

# %% tags=["active-ipynb"]
# german = {row["update"]: row["german"] for row in log}
# rows = [
#     [update, german[update], word_by_word(german[update])]
#     for update in (25, 100, 200, 400, 700)
# ]
# columns = ["after update", "your model's German", "word by word"]
# markdown_table(columns, rows)

# %% [markdown]
# After 25 updates your model ends before the first word. After 100 it has begun a question, and then says the commonest word of German for as long as it may. Then come the frame of a question and the children, and at the end the children stand there twice, with a wrong verb between them: it has read that children did something, and not yet what.
#
# One sentence is an anecdote, so we count. How many of 200 short sentences that it never saw are right to the last letter?

# %% tags=["active-ipynb"]
# written = translated([english for english, _ in unseen])
# right = [
#     (english, german)
#     for (english, true), german in zip(unseen, written)
#     if german == true
# ]
# print(f"{len(right)} of {len(unseen)} are right to the letter, among them:")
# rows = [[english, german, word_by_word(german)] for english, german in right[:3]]
# markdown_table(headings, rows)

# %% [markdown]
# Nearly a third, after a minute or less. Now try a sentence of your own, of words from this little world (there are kings, cats and windows in it, and nobody has a telephone):

# %% tags=["active-ipynb"]
# sentence = "The old king has opened the window."  # write your own
# written = translated([sentence])[0]
# print(f"{sentence}  →  {written}")
# print("word by word:", word_by_word(written))

# %% [markdown]
# Ours is stuck: it has written *alte*, reads it, and finds that another *alte* fits. What would more time bring? We gave the same loop all 20,000 sentences, a second layer, and less than four minutes of one processor core (`python -m transformer.experiments.bundled_run`). This is what became of our sentence:

# %% tags=["active-ipynb"]
# diary = {row["update"]: row["translations"][question] for row in four_minutes()}
# rows = [
#     [update, diary[update], word_by_word(diary[update])]
#     for update in (200, 400, 1200, 2200, 4000)
# ]
# markdown_table(["after update", "the model's German", "word by word"], rows)

# %% [markdown]
# The fourth line is our favourite. *Singten* is no German: it is the regular past of an irregular verb, what a child says before it has heard *sangen* often enough. Of 1,000 test sentences that model has 80% right to the letter ([evidence 14.5](evidence/14_training.ipynb)). Made-up sentences are regular, of course; [chapter 16](16_translation.ipynb) trains on real ones. The loop stays the same. (`from transformer import train` is its grown-up form, which can also go on after a break and use several GPUs.)
#
# ## First aid
#
# | symptom | test | remedy |
# |---|---|---|
# | the first loss is far below $\ln V$ | is the model asked for the word that it has just read? | shift the target |
# | the loss does not move | overfit one batch | give the optimizer *this* model's weights |
# | the loss is better than you can explain | change a later word: do earlier scores move? | put the causal mask back |
# | the outputs are fluent and wrong | give it strange sources: does the loss rise? | read ten training pairs by eye |
# | another loss with other batch sizes | compare one batch with its two parts | divide by all words of the update |
#
# [Chapter 27](27_diagnosis.ipynb) has a dozen more, and the instruments for them.
#
# ## What to keep
#
# - A training loop is a dozen lines, and a falling loss says only that *something* is being learned.
# - A loss that is better than you can explain is a leak until proved otherwise: nobody can guess a coin.
# - Read what your model writes, and give it the wrong sources: if the loss does not rise, it does not read them.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** 77 of the 200 held-out sentences have a "now" or a "perhaps", and all German sentences together have 1,672 words, end marks included. What is the lowest loss per word that an honest model can reach? And what would it be if all these coins were crooked, and one side came up in three cases of four?
#
# <details><summary>Answer</summary>
#
# A fair coin costs $\ln 2 = 0.69$ nats, whichever side falls, and nothing else is uncertain. So all sentences together cost at least 77 · 0.69 = 53 nats, or 0.032 per word. A crooked coin is easier to guess: the model should say ¾ and ¼, and pays $-\ln ¾ = 0.29$ in three cases and $-\ln ¼ = 1.39$ in the fourth, 0.56 on average. The floor falls to 77 · 0.56 / 1,672, or 0.026.
# </details>
#
# **2. In code.** *Patience* 3 means: stop as soon as three validations in a row were no better than the best before them. From the list of validation losses, say after how many validations a run stops (or the length of the list, if it does not), and which of those was the best, counted from 1. Then ask it about our four minutes, whose losses are in `[row["validation_loss"] for row in four_minutes()]`: how much patience would have been enough to reach the best weights of the whole run?

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
#
#
# losses = [row["validation_loss"] for row in four_minutes()]
# for patience in (1, 2, 3, 4):
#     print(patience, stops(losses, patience))
# ```
#
# With a patience of 1, 2 or 3 the run stops by its sixteenth validation at the latest, and the thirteenth was the best. A patience of 4 is enough to come to the nineteenth, the best of all twenty. There is no telling beforehand: validation losses tremble, and patience is a bet on how much.
# </details>
#
# **3. To think about, then to run.** Train C on only a hundred slipped pairs, until it knows them by heart. What will the test with strange sources say on these hundred pairs, and what on the held-out ones? Decide before you unfold the answer.
#
# <details><summary>Answer</summary>
#
# ```python
# few = fresh()
# few_source, few_target = tensors(slipped_pairs[:100])
# list(training(few, few_source, few_target, updates=600))
# with torch.no_grad():
#     its_own = loss_of(few, few_source, few_target)
#     its_strange = loss_of(few, few_source.roll(1, dims=0), few_target)
# print(f"its hundred: {its_own:.2f} and {its_strange:.2f}")
# print("held out:", own_and_strange(few))
# ```
#
# On its hundred pairs, a strange source raises the loss from 0.00 to 5.1. On the held-out ones the loss is 5.3 with the right source and 5.1 with a strange one: no better. It reads its source very well, as a label under which it has filed one German sentence. Nothing of that carries over to sentences that it has not seen. So the test with strange sources counts on held-out sentences only.
# </details>
#
# **Next.** Our models have always written the likeliest word. [Chapter 15](15_decoding.ipynb) shows a sentence in which that goes wrong, and what to do instead.
