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
# *Section 5 of the paper. Reading takes about 20 minutes, running about a minute.*
#
# Three translators of one size came out of the same loop. This is what each of them loses per word, on 200 sentences that it never saw:
#
# | | A | B | C | a blind guess |
# |---|---|---|---|---|
# | loss per word | 0.005 | 0.042 | 1.4 | 4.3 |
#
# Which one would you take home? I hope that you did not take A, for it cannot write a single sentence. C writes faultless German about something else. Only B translates, and nothing in the table says so.
#
# What can you trust, then? You will build B in a dozen lines, break it into A and C, and collect tests that tell them apart. Then you train a translator of your own.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     # This book has no address yet. Upload its wheel: python -m pip wheel --no-deps .
#     from google.colab import files
#
#     wheel = next(iter(files.upload()))
#     %pip install -q {wheel}

# %% tags=["active-ipynb"]
# import torch
# import torch.nn.functional as F
#
# from transformer import views
# from transformer.attention import padding_mask
# from transformer.data import Tokenizer, collate, encode_pairs
# from transformer.first_transformer import write
# from transformer.model import Transformer, TransformerConfig
# from transformer.optimizer import adam, learning_rate
# from transformer.teaching.sentences import (
#     PAD,
#     all_german,
#     coin_floor,
#     gloss,
#     numbering,
#     same_meaning,
#     sentence_pairs,
#     until_end,
# )
# from transformer.teaching.small_runs import (
#     four_minutes,
#     in_tokens,
#     short_pairs,
#     translated,
#     word_by_word,
# )
# from transformer.views.evidence import markdown_table
#
# threads = torch.get_num_threads()
# torch.set_num_threads(1)  # on models this small, a second thread only waits

# %% [markdown]
# ## A language small enough to check
#
# To judge a translation you have to know what is right. So we begin with eight nouns and six verbs. Their German is honest all the same: articles change, half of a verb waits at the end, and the adverb comes first. You need no German: each sentence comes with its English, word by word.

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
# ## Every word is a question
#
# A translator writes one word at a time, so we ask it for one word at a time. The decoder reads the true German up to a word, and has to name the next one. Even where it would have erred, it goes on from the *true* word (**teacher forcing**). So a sentence shifted by one place asks all its questions in a single pass:

# %% tags=["active-ipynb"]
# views.shift(held_out[2][1].split(), gloss(held_out[2][1]).split())

# %% [markdown]
# *Each column is a question, answered below. Follow the blue lines: having read everything up to "wäscht", which word comes next?*
#
# An answer costs minus the logarithm of the probability that the model gave to the right word. Say that four right words had the probabilities 1, ½, 1 and ¼. Sure and right costs nothing, ½ costs 0.69, and ¼ costs 1.39. The mean, 0.52, is the loss, and its unit is called *nat*. The padding of short sentences ([chapter 10](10_data.ipynb)) is no question, so the mean leaves it out.

# %% tags=["active-ipynb"]
# names, tensors = numbering(pairs)  # the vocabulary; a function from pairs to ids
# source, target = tensors(train_pairs)
# held_source, held_target = tensors(held_out)
#
#
# def loss_of(model, source, target):  # (n, S), (n, T)
#     scores = model(source, target[:, :-1])  # the decoder reads all but the last word
#     gold = target[:, 1:]  # and is asked for all but the first: (n, T - 1)
#     return F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=PAD)
#
#
# print(len(names), "words and marks of both languages;", len(train_pairs), "pairs")

# %% [markdown]
# ## The whole loop
#
# Now the model of [chapter 8](08_model.ipynb), Adam and the warm-up of [chapter 12](12_optimizer.ipynb) and the loss come together. An **update** draws 64 sentences, works out in which direction each weight lowers their loss, and takes a small step there.

# %% tags=["active-ipynb"]
# def training(
#     model, source, target, updates=300, size=64, warmup=50, scale=0.17, optimizer=None
# ):
#     optimizer = optimizer or adam(model)
#     for update in range(1, updates + 1):
#         rows = torch.randint(len(source), (size,))
#         loss = loss_of(model, source[rows], target[rows])
#         optimizer.zero_grad()
#         loss.backward()
#         rate = learning_rate(update, model.config.d_model, warmup, scale)
#         optimizer.param_groups[0]["lr"] = rate  # how far it steps
#         optimizer.step()
#         yield update, loss.item()  # a chance to look before the next update
#
#
# def fresh(kind=Transformer):
#     torch.manual_seed(1)
#     return kind(TransformerConfig(len(names), d_model=64, d_ff=128, N=1, h=4, P_drop=0))
#
#
# print(f"the highest rate, at update 50: {learning_rate(50, 64, 50, 0.17):.4f}")

# %% [markdown]
# The learning rate is the paper's formula: it rises for 50 updates, and falls afterwards. The scale of 0.17 sets its height. So small and clean a language needs neither dropout nor smoothed labels. The function *yields* after every update, so that we can look whenever we like.
#
# ## Can it learn sixteen sentences by heart?
#
# If the loop is sound, a model soon can. For comparison we make a common mistake: the optimizer is given the weights of *another* model. What will you see?

# %% tags=["active-ipynb"]
# few = source[:16], target[:16]
# sound = list(training(fresh(), *few, updates=100))
# mistaken = list(training(fresh(), *few, updates=100, optimizer=adam(fresh())))
# for name, losses in {"sound": sound, "with the mistake": mistaken}.items():
#     print(f"{name}: loss {losses[0][1]:.1f}, after 100 updates {losses[-1][1]:.2f}")

# %% [markdown]
# No error at all. The mistaken loop just never learns. On a whole corpus you might blame the data or the rate. Sixteen sentences leave no doubt.
#
# Look at the first loss, too. A blind guess among $V$ words costs $\ln V$, here 4.3. Ours is more. One matrix both embeds the words and scores them ([chapter 6](06_embeddings.ipynb)), so an untrained model bets on the word that it has just read. Here no word follows itself, and the bet is lost. If you forget to shift the target, it is won, and the first loss is far *below* $\ln V$.
#
# ## B: a translator after 300 updates
#
# After training, the model writes *by itself*, with `write` of [chapter 0](00_first_transformer.ipynb): it takes the likeliest next word, reads it, and so on. How many of 200 new sentences will be right?

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def held_out_loss(model):
#     return loss_of(model, held_source, held_target).item()
#
#
# def trained(model, source, target):
#     """Train; the held-out losses on the way, [(update, loss), ...]."""
#     updates = training(model, source, target)
#     return [(update, held_out_loss(model)) for update, _ in updates if update % 10 == 0]
#
#
# def examine(name, model):
#     """The held-out loss, what the model writes, and how much of that is right."""
#     rows = until_end(write(model, held_source, longest=12))
#     outputs[name] = written = [" ".join(names[i] for i in row) for row in rows]
#     right = sum(
#         same_meaning(one, german) for one, (_, german) in zip(written, held_out)
#     )
#     faultless = sum(one in possible for one in written)
#     print(f"{name}: held-out loss {held_out_loss(model):.3f}; of 200 sentences,")
#     print(f"{right} are right to the last word, {faultless} are faultless German,")
#     print(f"and {len(set(written))} are different")
#     shorter = [written[i] or "(nothing)" for i in shown]
#     rows = [[held_out[i][0], one, gloss(one)] for i, one in zip(shown, shorter)]
#     return markdown_table(headings, rows)
#
#
# possible = all_german()  # every sentence that the grammar can make
# model = fresh()
# curves, outputs = {"B": trained(model, source, target)}, {}
# examine("B", model)

# %% [markdown]
# This is a translator. (Either side of a coin counts as right.) Now let us break it.

# %% [markdown] tags=["question-19"]
# ## A: why such a fuss about the mask?
#
# In chapter 8 the method `decode` hands the decoder a causal mask, so that no word sees the words behind it. Here `None` is in the mask's place. Nothing will crash. Guess what becomes of the loss.

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
# examine("A", peeking)

# %% [markdown]
# The loss is far lower than B's, and on sentences that A has *never seen*. Yet it stammers, or writes nothing. Where has the low loss come from?

# %% tags=["active-ipynb"]
# views.leak(held_out[1][1].split(), gloss(held_out[1][1]).split(), place=0)

# %% [markdown]
# *Above, the first question has its own answer among the words that the model may look at (red); below, when the model writes, that place is empty.*
#
# In training, and in a held-out test like it, the next word is always there, one place to the right. A has learned to lean on it. When A writes, nothing is there.
#
# The coin proves it. We ask both models for the first word of "the young cat feeds the woman now", with *jetzt* in the target and with *nun*. An honest model has read neither.

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def belief_in_jetzt(model, rows, first_word):
#     """The probabilities of "jetzt" as first word, where the targets begin with a word."""
#     target = held_target[rows]
#     target[:, 1] = names.index(first_word)
#     scores = model(held_source[rows], target)[:, 0]  # having read the begin mark alone
#     return scores.softmax(dim=-1)[:, names.index("jetzt")]
#
#
# def ask_for_the_coin(name, model):
#     jetzt, nun = [belief_in_jetzt(model, [1], word).item() for word in ("jetzt", "nun")]
#     print(f"{name}: {jetzt:.2f} if jetzt comes next, {nun:.2f} if nun does")
#
#
# ask_for_the_coin("B", model)
# ask_for_the_coin("A", peeking)
# with_now = [i for i, (english, _) in enumerate(held_out) if english.endswith("now")]
# beliefs = belief_in_jetzt(model, with_now, "jetzt")
# mean, low, high = beliefs.mean(), beliefs.min(), beliefs.max()
# print(f'B, in all sentences with "now": {low:.2f} to {high:.2f}, mean {mean:.2f}')
# torch.testing.assert_close(beliefs, belief_in_jetzt(model, with_now, "nun"))  # honest

# %% [markdown]
# What comes next does not move B at all. **A knew the coin.**
#
# Why 0.82, if the coin is fair? B has seen only 165 sentences with "now", and chance made patterns in them. B has learned them, and they cost it a little. But it has not read the answer.
#
# The coins also say how low an honest loss can be (exercise 1). B is above this floor, and A far below. If your loss is better than you can explain, do not celebrate.

# %% [markdown] tags=["question-36"]
# ## C: fluent, and about something else
#
# The second accident happens in a file. One German line is lost, and from there on every English sentence has its neighbour's translation.

# %% tags=["active-ipynb"]
# neighbours = train_pairs[1:] + train_pairs[:1]
# slipped_pairs = [
#     (english, german) for (english, _), (_, german) in zip(train_pairs, neighbours)
# ]
# slipped = fresh()
# curves["C"] = trained(slipped, *tensors(slipped_pairs))
# examine("C", slipped)

# %% [markdown]
# Every sentence is faultless, and none is right. Does C ignore its English, then? If it did, it would write one sentence 200 times, because `write` throws no dice. It writes 85 different ones, so the English *moves* C. But does it *inform* C? Give each held-out sentence *another* sentence's English, and look at the loss again. What should happen to B, and what to C?

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def own_and_strange(model, source, target):
#     """The loss with each sentence's own source, and with another sentence's."""
#     strange = source.roll(1, dims=0)  # each gets the source of its neighbour
#     return loss_of(model, source, target).item(), loss_of(model, strange, target).item()
#
#
# models = {"untrained": fresh(), "A": peeking, "B": model, "C": slipped}
# losses = {
#     name: own_and_strange(one, held_source, held_target) for name, one in models.items()
# }
# views.strange_sources(losses)

# %% [markdown]
# *Compare the two bars of each model: for B another sentence's English makes the German far more expensive; for C it makes almost no difference.*
#
# **Where the loss does not rise, the English may move the model, but tells it nothing.** A's loss rises: nothing forbids a cheat to use the English as well. So this test does not catch A.
#
# ## Which one would you take home?
#
# What does C say about the coin? And here are all three trainings.

# %% tags=["active-ipynb"]
# ask_for_the_coin("C", slipped)
# writes = {name: gloss(outputs[name][0]) for name in "CBA"}
# curves = {name: curves[name] for name in "CBA"}
# views.three_trainings(curves, writes, floor=coin_floor(held_out))

# %% [markdown]
# *Each curve could be a loss as it should be; beside it is what the model writes for "the wild child hears the old horse perhaps", word by word in English.*
#
# | | A: no mask | B: sound | C: slipped |
# |---|---|---|---|
# | does it know the coin? | **yes** | no | no |
# | does a strange source cost more? | yes | yes | **no** |
# | does it translate? | **no** | yes | **no** |
#
# Only the last line convicts both. So read what your model writes: it tells you *that* something is wrong, and the tests tell you *what*.
#
# ## Your own translator
#
# Let us give the loop a harder language, and a sentence to look forward to: *Why did the children sing?* In German: *Warum sangen die Kinder?* This book ships with 20,000 pairs that a grammar made, with plurals, questions and irregular verbs. We take the 5,778 of at most seven English words. Our sentence is in none of the 20,000; *sangen* is in five that we take.
#
# Every 25 updates we pause for **validation**, on 200 sentences that no update has used. When will a strange source begin to hurt?

# %% tags=["active-ipynb"]
# learned, unseen = short_pairs("train"), short_pairs("validation")[:200]
# texts = [text for pair in learned for text in pair]
# tokenizer = Tokenizer.train(texts, vocab_size=3500)
# torch.manual_seed(1)
# sizes = TransformerConfig(3500, d_model=128, d_ff=256, N=1, h=4, P_drop=0)
# yours = Transformer(sizes)
# question, log = "Why did the children sing?", []
#
# torch.set_num_threads(threads)  # this model is large enough for more than one
# numbers, unseen_numbers = in_tokens(tokenizer, learned), in_tokens(tokenizer, unseen)
# settings = dict(updates=800, size=32, warmup=150, scale=0.7)
# for update, _ in training(yours, *numbers, **settings):
#     if update % 25 == 0:
#         own, strange = own_and_strange(yours, *unseen_numbers)
#         [german] = translated(yours, tokenizer, [question])
#         log.append((update, own, strange, german))
# views.reading_begins([row[:3] for row in log])

# %% [markdown]
# *At first the two curves are one. Where they part, the English has begun to inform your translator, and from there on a wrong source costs more and more.*
#
# **At first yours is like C:** for fifty updates, any English will do.
#
# ## Its first German
#
# How many of 200 new sentences are right to the letter? What does it make of a sentence of your own? (There are kings, cats and windows in this little world, and nobody has a telephone.)

# %% tags=["active-ipynb"]
# sentence = "The old king has opened the window."  # write your own
# written = translated(yours, tokenizer, [english for english, _ in unseen])
# right = sum(one == german for one, (_, german) in zip(written, unseen))
# print(f"{right} of {len(unseen)} are right to the letter")
# [yours_in_german] = translated(yours, tokenizer, [sentence])
# print(sentence, "→", yours_in_german, f"({word_by_word(yours_in_german)})")
#
# columns = ["after update", "the model's German", "word by word"]
# diary = {update: german or "(nothing)" for update, _, _, german in log}
# rows = [[n, diary[n], word_by_word(diary[n])] for n in (25, 100, 200, 400, 800)]
# markdown_table(columns, rows)

# %% [markdown]
# Its last sentence is faultless German, and not quite ours. The king's sentence, which it had never seen, is right, as is more than a quarter of the 200. (On your machine other words may come.) What would more time bring?
#
# ## The children sing
#
# We gave all 20,000 pairs to a model with a second layer, for less than four minutes of one processor core (`python -m transformer.experiments.bundled_run`). Its log ships with this book, and `four_minutes` reads it. What became of our sentence?

# %% tags=["active-ipynb"]
# ran = four_minutes()
# diary = {row["update"]: row["translations"][question] for row in ran}
# own, strange = ran[-1]["validation_loss"], ran[-1]["strange_loss"]
# print(f"at the end: held-out loss {own:.2f}, with strange sources {strange:.2f}")
# rows = [[n, diary[n], word_by_word(diary[n])] for n in (200, 600, 1200, 2200, 4000)]
# markdown_table(columns, rows)

# %% [markdown]
# The fourth line is our favourite. *Singten* is no German: it is the regular past of an irregular verb, what a child says before it has heard *sangen* often enough. For a while the model wavered, and from update 2800 on it always said *sangen*. Of 1,000 test sentences 80% are right to the letter ([evidence 14.5](evidence/14_training.ipynb)). Take this one home: its sources inform it, and we have read what it writes.
#
# ## One more accident: the parts of a batch
#
# The paper's batches, of 25,000 tokens a side, are too large for many memories. So you cut a batch into parts, and let their gradients add up before you take the step: **gradient accumulation**. Say that one part has two words, which cost 3 each, and the other has eight, which cost 1 each. The mean of all ten is 1.4. But the mean of both parts' means is (3 + 1)/2 = 2, because two words have been given half the say. So *sum* the losses, and divide by the words of *all* parts:

# %%
from torch import nn

from transformer.data import Batch
from transformer.regularization import label_smoothing_loss


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


# %% tags=["active-ipynb"]
# some = sorted(encode_pairs(tokenizer, learned[:64]), key=lambda pair: len(pair[1]))
# whole, short, long = [collate(part) for part in (some, some[:32], some[32:])]
#
#
# def gradient(*groups):
#     """The mean of the gradients of some groups of batches, as one long vector."""
#     yours.zero_grad()
#     for batches in groups:
#         accumulate(yours, batches, epsilon_ls=0)  # labels not smoothed
#     return torch.cat([p.grad.flatten() for p in yours.parameters()]) / len(groups)
#
#
# true = gradient([whole])  # 64 pairs at once; below, a short and a long half
# ways = {"all words alike": [[short, long]], "mean of means": [[short], [long]]}
# for way, groups in ways.items():
#     wrong = (gradient(*groups) - true).norm() / true.norm()
#     print(f"{way}: {100 * wrong:.1f}% away from the gradient of the whole batch")

# %% [markdown]
# Again nothing crashes. Only the words of short sentences have more say than you meant.
#
# ## First aid
#
# | symptom | test | remedy |
# |---|---|---|
# | the first loss is far below $\ln V$ | is it asked for the word that it has just read? | shift the target |
# | the loss does not move | overfit sixteen sentences | give the optimizer *this* model's weights |
# | the loss is better than you can explain | change a later word: do earlier scores move? | put the causal mask back |
# | the outputs are fluent and wrong | give it strange sources: does the loss rise? | read ten training pairs by eye |
# | parts of a batch learn otherwise than the whole | compare the gradients | divide by the words of all parts |
#
# [Chapter 27](27_diagnosis.ipynb) has a dozen more.
#
# ## What to keep
#
# - A training loop is a dozen lines, and a falling loss says only that *something* is being learned.
# - A loss that is better than you can explain is a leak until proved otherwise: nobody can guess a coin.
# - Read what your model writes, and give it the wrong sources: if the loss does not rise, the right ones tell it nothing.
#
# ## The loop that the package uses
#
# You can skip this. It is the same loop for corpora of any size, and the run of four minutes used it. `stream_batches` never ends: each pass over the corpus, an **epoch**, forms new batches of similar length. The defaults are the paper's: base had twelve hours of eight GPUs, and the last five checkpoints were averaged ([chapter 15](15_decoding.ipynb)).

# %%
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from transformer.data import collate, token_batches
from transformer.optimizer import adam, learning_rate, set_learning_rate


def epoch_seed(seed: int, epoch: int) -> int:
    """The seed of an epoch's order; no two seeds share one."""
    return seed * 1_000_003 + epoch


def stream_batches(encoded, batch_tokens: int, seed: int) -> Iterator[list[int]]:
    """Yield batches, the numbers of their pairs, for ever."""
    for epoch in itertools.count():
        yield from token_batches(encoded, batch_tokens, epoch_seed(seed, epoch))


@torch.no_grad()
def validation_loss(
    model: nn.Module, encoded, batch_tokens: int = 4000
) -> dict[str, float]:
    """{"validation_loss": nats a target token, without dropout and smoothing}."""
    model.eval()
    pad_id = model.config.pad_id
    total = tokens = 0
    for rows in token_batches(encoded, batch_tokens):
        batch = collate([encoded[i] for i in rows], pad_id)
        scores = model(batch.source, batch.decoder_input)
        total += label_smoothing_loss(scores, batch.gold, 0.0, pad_id, "sum").item()
        tokens += int((batch.gold != pad_id).sum())
    return {"validation_loss": total / tokens}


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
# ## Exercises
#
# **1. By hand.** 77 of the 200 held-out sentences have a "now" or a "perhaps", and all German sentences together have 1,672 words, end marks included. What is the lowest loss per word that an honest model can reach? And what if all coins were crooked, and one side came up in three cases of four?
#
# <details><summary>Answer</summary>
#
# A fair coin costs $\ln 2 = 0.69$ nats, and nothing else is uncertain: 77 · 0.69 = 53 nats in all, or 0.032 per word. For a crooked coin the model should say ¾ and ¼. It pays $-\ln ¾ = 0.29$ three times and $-\ln ¼ = 1.39$ once, 0.56 on average, and the floor falls to 0.026.
# </details>
#
# **2. In code.** Few languages have a coin. So put the begin mark (id 1), which is never there, in the last place of each target, and see whether *earlier* scores move. Ask A and B: `peeks(peeking, held_source, held_target)`.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.training import check_peeks
#
#
# def peeks(model, source, target):
#     """model, (n, S), (n, T) -> True or False; model(source, target) gives (n, T, V)"""
#     ...
#
#
# check_peeks(peeks)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def peeks(model, source, target):
#     changed = target.clone()
#     changed[:, -1] = 1
#     before, after = model(source, target), model(source, changed)
#     return not torch.allclose(before[:, :-1], after[:, :-1], atol=1e-5)
# ```
#
# A peeks, and B does not. Only the last scores may move: they have read the changed word.
# </details>
#
# **3. To think about.** Train C on only a hundred slipped pairs, until it knows them by heart. What will strange sources cost on these pairs, and on the held-out ones?
#
# <details><summary>Answer</summary>
#
# ```python
# clerk, hundred = fresh(), tensors(slipped_pairs[:100])
# list(training(clerk, *hundred, updates=600))
# print("its hundred:", own_and_strange(clerk, *hundred))
# print("held out:", own_and_strange(clerk, held_source, held_target))
# ```
#
# On its hundred pairs, a strange source raises the loss from 0.00 to 5.1. On the held-out ones it does not: 5.3 with the right source, 5.1 with a strange one. For a pair learned by heart, the source tells it everything: it is the label under which one German sentence is filed. For a new pair it tells nothing. So the test counts on held-out sentences only.
# </details>
#
# **Next.** Our models have always written the likeliest word. [Chapter 15](15_decoding.ipynb) shows a sentence in which that goes wrong, and what to do instead.
