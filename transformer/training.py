# ---
# jupyter:
#   jupytext:
#     formats: notebooks/14_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 5 Training
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/14_training.ipynb)
#
# A model, batches, an optimizer with its schedule and a smoothed loss are in place. This notebook puts them into one loop (Section
# 5) of twenty lines, which train a small model while you watch, and then runs the form that training of several hours needs, with
# checkpoints and a way to stop and go on as if nothing had happened. At the end you will also have seen what a
# Transformer without its mask learns, and how to notice that a training ignores its source. Reading takes about 30 minutes, running it half a minute.

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
# # what only the pictures and checks below need: not part of the module
# import math
# import signal
# import tempfile
# from dataclasses import replace
# from pathlib import Path
#
# import sacrebleu
#
# import transformer
# from transformer import Transformer, TransformerConfig
# from transformer.core.interrupt import Interrupted
# from transformer.core.weights import load_weights
# from transformer.corpora import read_corpus
# from transformer.data import Tokenizer, encode_pairs
# from transformer.views import plotting
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # the models below are too small to share between cores

# %% [markdown]
# ## A small corpus
#
# We take 2,000 pairs of the corpus that comes with the package, a vocabulary of 600 types, and a model so small that it learns in
# seconds: one layer, $d_{model} = 64$. A hundred other pairs are *held out*: no model below is trained on them.

# %% tags=["active-ipynb"]
# pairs = read_corpus("bundled", "train")[:2000]
# held_out = read_corpus("bundled", "validation")[:100]
# tokenizer = Tokenizer.train([text for pair in pairs for text in pair], vocab_size=600)
# encoded = encode_pairs(tokenizer, pairs)
# encoded_held_out = encode_pairs(tokenizer, held_out)
# sizes = dict(d_model=64, d_ff=256, N=1, h=4)
# small = TransformerConfig(tokenizer.vocab_size, **sizes, max_positions=200)
# print(pairs[0][0], "->", pairs[0][1])
# print(
#     f"{sum(len(target) - 1 for _, target in encoded):,} target tokens in",
#     len(token_batches(encoded, 1500)),
#     "batches of at most 1,500",
# )

# %% [markdown]
# ## Batches without end
#
# An *epoch* is one pass over the corpus. Each epoch mixes the batches anew, in an order that its number and the seed decide.


# %%
def epoch_seed(seed: int, epoch: int) -> int:
    """The seed of an epoch's order; no two seeds share one."""
    return seed * 1_000_003 + epoch


def stream_batches(encoded, batch_tokens: int, seed: int) -> Iterator[list[int]]:
    """Yield batches, the numbers of their pairs, for ever."""
    for epoch in itertools.count():
        yield from token_batches(encoded, batch_tokens, epoch_seed(seed, epoch))


# %% tags=["active-ipynb"]
# batches = token_batches(encoded, 1500)
# stream = stream_batches(encoded, 1500, seed=1)
# epochs = [list(itertools.islice(stream, len(batches))) for _ in range(2)]
# for epoch in epochs:
#     assert sorted(i for rows in epoch for i in rows) == list(range(len(encoded)))
# assert epochs[0] != epochs[1]
# print("two epochs have every pair once, in different orders")

# %% [markdown]
# ## Settings
#
# Section 5 of the paper fixes most of them: batches of about 25,000 source and 25,000 target tokens (5.1), 100,000 updates for the base
# model (5.2), 4,000 of them with a rising learning rate (5.3), label smoothing 0.1 (5.4).


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
# **Deviations.** Padding counts in `batch_tokens`, so that memory is bounded, and the real tokens of an update are somewhat fewer.

# %% [markdown]
# ## The gradient of one update
#
# The decoder reads the target up to token $t$ (`batch.decoder_input`) and is asked for token $t + 1$ (`batch.gold`). The loss is a mean
# over the real target tokens of the whole update. Where a batch does not fit into memory, an update has several smaller batches,
# whose gradients torch adds up. Each part's loss is divided by the tokens of *all* parts, so that the sum is the gradient
# of one large batch. The schedule counts updates, never the parts of one.


# %%
def accumulate(model: nn.Module, batches: list[Batch], epsilon_ls: float) -> float:
    """Add up the gradients of an update's batches; its loss, in nats a target token."""
    pad_id = model.config.pad_id
    tokens = sum(int((batch.gold != pad_id).sum()) for batch in batches)
    total = 0.0
    for batch in batches:
        logits = model(batch.source, batch.decoder_input)
        summed = label_smoothing_loss(logits, batch.gold, epsilon_ls, pad_id, "sum")
        loss = summed / tokens
        loss.backward()
        total += loss.item()
    return total


# %% [markdown]
# Does a batch in two parts, of 4 and 12 pairs, equal the whole one? We compare gradients, without dropout and in float64. The parts are padded differently. A common mistake takes the mean of the two parts' means instead:

# %% tags=["active-ipynb"]
# exact = Transformer(TransformerConfig(600, **sizes, P_drop=0.0)).double()
# batch, parts = collate(encoded[:16]), [collate(encoded[:4]), collate(encoded[4:16])]
#
#
# def gradient_of(batches):
#     exact.zero_grad()
#     accumulate(exact, batches, epsilon_ls=0.1)
#     return torch.cat([p.grad.flatten() for p in exact.parameters()])
#
#
# whole, summed = gradient_of([batch]), gradient_of(parts)
# means = [gradient_of([part]) for part in parts]
# for name, other in {"all tokens": summed, "mean of means": sum(means) / 2}.items():
#     part = (whole - other).norm() / whole.norm()
#     print(f"{name:14} differs by {part:.2g} of its length")
# assert (whole - summed).abs().max() < 1e-12
# print("divided by all tokens, parts of 4 and 12 pairs give the gradient of 16")

# %% [markdown]
# ## Validation
#
# We measure the mean cross-entropy of a target
# token, given the true tokens before it, without smoothing and without dropout. Its exponential is the perplexity of notebook 13.


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
        logits = model(batch.source, batch.decoder_input)
        total += label_smoothing_loss(logits, batch.gold, 0.0, pad_id, "sum").item()
        tokens += int((batch.gold != pad_id).sum())
    return {"validation_loss": total / tokens}


# %% [markdown]
# The same by hand, one sentence at a time and token by token:

# %% tags=["active-ipynb"]
# model, by_hand = Transformer(small).eval(), []
# for source, target in encoded_held_out[:10]:
#     logits = model(torch.tensor([source]), torch.tensor([target[:-1]]))[0]
#     log_p = logits.log_softmax(dim=-1)
#     by_hand += [-log_p[t, token].item() for t, token in enumerate(target[1:])]
# mean = sum(by_hand) / len(by_hand)
# found = validation_loss(model, encoded_held_out[:10])["validation_loss"]
# assert abs(mean - found) < 1e-5
# print(f"{len(by_hand)} tokens: {mean:.4f} nats by hand, {found:.4f} in padded batches")

# %% [markdown]
# ## The whole loop is twenty lines
#
# Every line comes from an earlier notebook: batches (10), the model (08), the smoothed loss (13), Adam and the schedule (12).
# What `validate` measures is the caller's business: any function from a model to a dict of figures, called every `validate_every` updates
# and at the end.


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
# A warm-up of 100 updates and half of what the paper's formula gives suit so small a model:

# %% tags=["active-ipynb"]
# quick = TrainingConfig(
#     updates=150, batch_tokens=1500, warmup=100, lr_scale=0.5, validate_every=10
# )
# tens = train(Transformer(small), encoded, quick)
# plotting.lines(
#     [row["update"] for row in tens],
#     {"loss": [row["loss"] for row in tens]},
#     "update",
#     "smoothed loss, nats a token",
#     "the loss falls from a guess",
# )
# first, last = tens[0]["loss"], tens[-1]["loss"]
# print(
#     f"the first ten losses are {first:.1f} nats (ln 600 = {math.log(600):.1f}), "
#     f"the last ten are {last:.1f}"
# )
# assert last < first - 2

# %% [markdown]
# The first losses are near $\ln 600$, which is a guess among 600 types.
#
# ## What a run of hours needs
#
# `from transformer import train` gives the engine's form of this loop (`transformer/runs/training.py`). It takes the same calls, and more:
# it saves in a folder and goes on from there (`resume`), stops after a whole update when Ctrl-C was pressed, after some `minutes`, or where
# validation no longer improves (`patience`), works in bf16 or fp16 and in several processes ([notebook 11](11_hardware.ipynb)), computes the loss in parts
# that fit into memory, clips gradients (the paper names no limit, so `clip` is None), takes other schedules than the paper's (`schedule="linear"` lets the rate fall evenly to zero), and takes any loss and optimizer. Its settings
# are those above and more of that kind. Without dropout, and in float64, both loops should give the same weights:

# %% tags=["active-ipynb"]
# def exact_model():
#     torch.manual_seed(3)
#     return Transformer(TransformerConfig(600, **sizes, P_drop=0.0)).double()
#
#
# by_lines, by_engine = exact_model(), exact_model()
# train(by_lines, encoded, replace(quick, updates=12))
# transformer.train(by_engine, encoded, replace(quick, updates=12))
# difference = max(
#     (a - b).abs().max().item()
#     for a, b in zip(by_lines.parameters(), by_engine.parameters())
# )
# print(f"after 12 updates the largest difference of a weight is {difference:.0e}")
# assert difference < 1e-9

# %% [markdown]
# ## A longer run
#
# Now 240 updates with dropout, and a validation every twenty. How good is a loss of 5 nats, or of 3? To compare, we compute the loss of a
# model that knows only how frequent each token is in the training targets:

# %% tags=["active-ipynb"]
# def held_out_loss(model):
#     return validation_loss(model, encoded_held_out)
#
#
# torch.manual_seed(1)
# model = Transformer(small)
# longer = replace(quick, updates=240, validate_every=20)
# log = train(model, encoded, longer, validate=held_out_loss)
# count = torch.ones(600)  # of each type, plus one
# for _, target in encoded:
#     count += torch.bincount(torch.tensor(target[1:]), minlength=600)
# told = torch.cat([torch.tensor(target[1:]) for _, target in encoded_held_out])
# by_frequency = -(count / count.sum()).log()[told].mean().item()
# curves = {
#     "training (smoothed, with dropout)": [row["loss"] for row in log],
#     "held out": [row["validation_loss"] for row in log],
#     "held out, by frequency alone": [by_frequency] * len(log),
# }
# plotting.lines(
#     [row["update"] for row in log],
#     curves,
#     "update",
#     "nats a target token",
#     "soon the model knows more than frequencies",
#     markers=True,
# )
# begun, ended = log[0], log[-1]
# print(
#     f"{240 // len(batches)} whole epochs; "
#     f"held-out loss {begun['validation_loss']:.2f}, then "
#     f"{ended['validation_loss']:.2f} (by frequency alone {by_frequency:.2f})"
# )
# assert ended["validation_loss"] < by_frequency < begun["validation_loss"]

# %% [markdown]
# The training curve lies higher although it is about sentences that the model has seen. Three things raise it: it is smoothed, it is
# measured with dropout, and each point is a mean over the twenty updates before it. So do not compare these two. Where the
# held-out curve passes below the flat one, the model must use more than frequencies: the place in the sentence, words of the target, or of the source.

# %% [markdown]
# ## Stopping and going on
#
# What does the next update depend on? On the weights; on Adam's two moments and its step count; on the place in the data; on the number of the
# update, for the schedule and for dropout's seeds; in fp16 on the scale of the loss; and, where the rate falls to zero within some `minutes`, on the time used. A *checkpoint* of the engine holds all of it.
#
# On a CPU, going on should equal never stopping, bit for bit. One run of seven updates goes
# through. Another is stopped by Ctrl-C in the middle of its fourth (a hook on the fourth forward pass plays the user), and goes on in a new model
# with other random weights. With 50 pairs, one epoch ends and another begins on the way.

# %% tags=["active-ipynb"]
# def new_model(seed):
#     torch.manual_seed(seed)
#     return Transformer(small)
#
#
# place = tempfile.TemporaryDirectory()
# unbroken, broken = Path(place.name) / "unbroken", Path(place.name) / "broken"
# brief = transformer.TrainingConfig(
#     updates=7, batch_tokens=600, warmup=40, validate_every=3
# )
# transformer.train(new_model(1), encoded[:50], brief, unbroken)
# stopped, calls = new_model(1), itertools.count(1)
#
#
# def press_ctrl_c(*_):
#     if next(calls) == 4:
#         signal.raise_signal(signal.SIGINT)
#
#
# stopped.encoder.register_forward_hook(press_ctrl_c)
# try:
#     transformer.train(stopped, encoded[:50], brief, broken)
# except Interrupted as stop:
#     print("Interrupted:", str(stop).partition(",")[0])
# transformer.train(new_model(2), encoded[:50], brief, broken, resume=True)
#
# folders = unbroken, broken
# a, b = (load_weights(folder / "checkpoint.safetensors")[0] for folder in folders)
# same = [torch.equal(a[name], b[name]) for name in a]
# kept = [
#     sorted(path.name for path in (folder / "weights").iterdir()) for folder in folders
# ]
# assert a.keys() == b.keys() and all(same) and kept[0] == kept[1] and len(kept[0]) == 3
# print(
#     f"{sum(same)} of {len(same)} tensors are equal: weights, moments and steps;",
#     f"and both runs kept the weights of {len(kept[0])} updates (3, 6 and 7)",
# )

# %% [markdown] tags=["question-19"]
# ## Why such a fuss about masking?
#
# Because without the mask the loss can look as good or better, and what is learned can be useless. The decoder is asked for token $t + 1$ while
# the whole target, token $t + 1$ included, lies before it. With the mask it must work the answer out. Without it, it can copy.
#
# A toy language makes this visible: sentences of eight words, from a vocabulary of ten, translated by reversing their order and
# replacing each word by its partner in the other language. One model has the mask and the other forgets it. Settings, data and the order of the batches
# are the same.

# %% tags=["active-ipynb"]
# class Peeking(Transformer):
#     def states(self, target, memory, source_mask):
#         x = self.embed(target, self.target_embedding)
#         return self.decoder(x, memory, None, source_mask)  # no causal mask
#
#
# toy_sizes = dict(d_model=32, d_ff=64, N=1, h=2, P_drop=0.0, max_positions=20)
# toy_config = TransformerConfig(23, **toy_sizes)
# models = {"with the mask": Transformer(toy_config)}
# for start in (1, 2, 3):
#     torch.manual_seed(start)
#     models[f"no mask, start {start}"] = Peeking(toy_config)
# sentences = torch.randint(3, 13, (2200, 8)).tolist()  # 3 to 12: words of one language
# toy = [
#     ([*words, 2], [1, *(word + 10 for word in reversed(words)), 2])
#     for words in sentences
# ]
# toy_training = TrainingConfig(
#     updates=300,
#     batch_tokens=512,
#     warmup=60,
#     lr_scale=0.5,
#     epsilon_ls=0.0,
#     validate_every=30,
# )
#
#
# def toy_validation(model):
#     return validation_loss(model, toy[2000:])
#
#
# toy_logs = {
#     name: train(model, toy[:2000], toy_training, validate=toy_validation)
#     for name, model in models.items()
# }

# %% [markdown]
# The loss on held-out sentences is measured as in training: the true target goes in. A translator has no true target. It
# starts from the begin mark and reads what it wrote itself, here always the likeliest token:

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def own_translation(model, source, steps):
#     target = torch.ones(len(source), 1, dtype=torch.long)  # the begin mark is 1
#     for _ in range(steps):
#         likeliest = model.eval()(source, target)[:, -1:].argmax(dim=-1)
#         target = torch.cat([target, likeliest], dim=1)
#     return target[:, 1:]
#
#
# tests, right = collate(toy[2000:]), {}
# for name, toy_model in models.items():
#     same = own_translation(toy_model, tests.source, 9) == tests.gold
#     right[name] = same.all(dim=1).float().mean().item()

# %% tags=["active-ipynb"]
# left, right_side = plotting.new_axes(4.5, 3.2, columns=2)
# curves = {
#     name: [row["validation_loss"] for row in rows] for name, rows in toy_logs.items()
# }
# plotting.lines(
#     range(30, 301, 30),
#     curves,
#     "update",
#     "held-out loss, nats a token",
#     "true target given: all seem fine",
#     log="y",
#     ax=left,
# )
# plotting.bars(
#     {name.replace(", ", "\n"): 100 * part for name, part in right.items()},
#     "",
#     "sentences wholly right, %",
#     "own translation: three are useless",
#     ax=right_side,
# )
# final = {name: rows[-1]["validation_loss"] for name, rows in toy_logs.items()}
# exchanged = [(a, b) for (a, _), (_, b) in zip(toy[2000:], [*toy[2001:], toy[2000]])]
# for name, toy_model in models.items():
#     misled = validation_loss(toy_model, exchanged)["validation_loss"]
#     print(
#         f"{name:16} held-out loss {final[name]:.4f}, {right[name]:.0%} right; "
#         f"loss with another sentence's source {misled:.2f}"
#     )
# assert max(final.values()) < 0.2
# assert right.pop("with the mask") > 0.7 and max(right.values()) < 0.1

# %% [markdown]
# All losses become tiny, even on sentences outside training, and nothing in them warns that three models are useless. Without the mask they learned to answer with the next word of the target, and when they write by themselves there is no next word. They may use their source all the same: another sentence's source raises their losses a little or a lot, by their first weights.
#
# Is it the same with sentences? Here is the run on the bundled corpus again, with the same settings and without the mask. *chrF* (Popović,
# 2015; 100 is best) counts runs of characters that also stand in the reference, which is fairer than BLEU to a model that
# is still learning to spell.

# %% tags=["active-ipynb"]
# torch.manual_seed(1)
# peeking = Peeking(small)
# peeking_log = train(peeking, encoded, longer, validate=held_out_loss)
# curves = {
#     name: [row["validation_loss"] for row in rows]
#     for name, rows in {"with the mask": log, "without the mask": peeking_log}.items()
# }
# plotting.lines(
#     [row["update"] for row in log],
#     curves,
#     "update",
#     "held-out loss, nats a token",
#     "without the mask sentences seem easy",
#     markers=True,
# )
#
#
# def words_of(rows):
#     cut = [itertools.takewhile(lambda token: token != 2, row) for row in rows.tolist()]
#     return [tokenizer.decode(list(row)) for row in cut]
#
#
# source, scores = collate(encoded_held_out).source, {}
# german = [[target for _, target in held_out]]
# print("English:         ", held_out[0][0])
# print("German:          ", held_out[0][1])
# for name, one in {"with the mask": model, "without the mask": peeking}.items():
#     ids = own_translation(one, source, 60)
#     written = words_of(ids)
#     scores[name] = sacrebleu.corpus_chrf(written, german).score
#     empty = sum(not text for text in written)
#     print(f"{name:16}  {written[0][:60]!r} ({empty} of 100 are empty)")
#     print(f"{'':16}  the first ids of this one: {ids[0, :6].tolist()}")
# print("chrF:", ", ".join(f"{name} {score:.1f}" for name, score in scores.items()))
# assert curves["without the mask"][-1] < curves["with the mask"][-1]
# assert scores["with the mask"] > scores["without the mask"] + 3

# %% [markdown]
# Here the model without the mask even has by far the lower loss on held-out sentences, and its own translations are worthless again: all hundred
# are empty, because it writes marks in place of words (id 1 begins a sentence, id 2 ends it). The model with the mask does not translate yet either, after 240 updates, but what it writes begins to look like German.
#
# So a loss that is suspiciously good is a reason to test the mask, and a model's own translations should be read early.

# %% [markdown] tags=["question-36"]
# ## The loss falls, but the source is ignored. Why?
#
# First look whether the source is used at all. Give each held-out target the source of another pair: if the loss hardly rises, the
# decoder only continues the German that it has read, and the English helps it little. The rise, in nats a target token, is called **use** here:

# %% tags=["active-ipynb"]
# def use_of(model):
#     sources = [source for source, _ in encoded_held_out[1:] + encoded_held_out[:1]]
#     others = [(other, target) for other, (_, target) in zip(sources, encoded_held_out)]
#     own = validation_loss(model, encoded_held_out)["validation_loss"]
#     return validation_loss(model, others)["validation_loss"] - own
#
#
# untrained = Transformer(small)
# for name, one in {
#     "untrained": untrained,
#     "with the mask": model,
#     "without the mask": peeking,
# }.items():
#     print(f"{name:16} use {use_of(one):+.3f} nats a token")

# %% [markdown]
# The model with the mask uses its source. The one without it has learned next to nothing from the English.
#
# `python -m transformer.experiments.starting` trained small models on the bundled corpus for 600 updates, three seeds each. With two
# layers the training takes up its source. With four, all else the same, the held-out loss falls as
# well, if not as far, and the source stays almost unused. Trials with seed 1 had found these two settings, the *centres* "uses" and "ignores", and had tried depth, norms first and half the peak; all remaining rows change one thing each in a centre. What was expected, and when a difference counts, was [written down first](https://github.com/OWNER/annotated-attention/blob/main/data/runs/starting.md) (for rows that change one stack, after four runs).

# %% tags=["active-ipynb"]
# from transformer.core.records import read_rows
# from transformer.views import starting
#
# found = read_rows("starting")
# shown = {
#     "N = 2": ("uses", "centre"),
#     "N = 4": ("ignores", "centre"),
#     "N = 4, norms first": ("ignores", "norms first"),
#     "N = 4, encoder's rate / 4": ("ignores", "encoder's rate / 4"),
#     "N = 4, decoder's rate / 4": ("ignores", "decoder's rate / 4"),
# }
# groups = {
#     label: [
#         row
#         for row in found
#         if (row["centre"], row["row"]) == place and row["what"] == "run"
#     ]
#     for label, place in shown.items()
# }
# for label, rows in groups.items():
#     losses = ", ".join(f"{row['log.validation_loss'][-1]:.2f}" for row in rows)
#     print(f"{label:25} held-out loss at the end, by seed: {losses}")
# starting.source_use(groups);

# %% [markdown]
# Each thin line is a seed. A run has *started* if the mean of its last two uses is at least 0.3; the lines of the others are dashed. On the right is
# the variance of the encoder's outputs over the positions of a sentence, as a part of their mean square. In the runs drawn here whose source stays unused they become nearly the same vector at every position by update 240; some part again later. Attention could not tell equal vectors apart.

# %% [markdown]
# Which setting decides? Each row says how many runs started, how far their use lies from the centre's, and $p$: the chance of so large a difference if the change did nothing, made larger (Holm's correction) for the number of changes. (All rows are taken to have one spread of seeds: [17](17_variations.ipynb).) A change *decides* where $p$ is under 0.05 and
# all three seeds start in place of none, or the reverse; where $p$ is under 0.05 but not all seeds change sides, it *contributes*. In the last columns uses are compared at an equal loss: where the held-out loss first falls below 3.2; runs that never get there are left out (one of "ignores"). (*Peak* is the largest learning rate; *decoder's rate* leaves cross-attention out. *Gain 1* starts with larger $W_Q$, $W_K$ and $W_V$,
# *embeddings / 2* with smaller embeddings.)

# %% tags=["active-ipynb"]
# starting.print_differences(found, "ignores")
# print()
# starting.print_differences(found, "uses")
# longer = [row["use"] for row in found if row["row"] == "updates x 4"]
# print('\n"ignores" after 2,400 updates: use', ", ".join(f"{use:.2f}" for use in longer))

# %% [markdown]
# **What the experiment separates.** With four layers a training starts if the norms come first, and if the
# *encoder alone* has two layers, learns at a quarter of the rate, or has its norms first (one of three at a loss of 4.6). The same done to the decoder, or a quarter of cross-attention's rate, does not. Neither do half the peak, four times the warm-up, clipping, six layers or other initial weights (the last two stayed above a loss of 4). With two layers, twice the peak stops it, smaller embeddings weaken it, and norms first strengthen it. A quarter of the warm-up, dropout, and larger $W_Q$, $W_K$ and $W_V$
# weaken it, but at an equal loss none passes. So the encoder's depth, rate and order of norms decide. With four times the updates one of three starts, barely (use 0.31).

# %% [markdown]
# **What it only suggests.** Perhaps the encoder's outputs become one vector, so that there is nothing to attend to. Two signs of this were fixed before the runs (that update 240 counts, after the first): "collapsed" (the variance over positions falls to a tenth from update 60 to 240) and
# "even" (cross-attention is close to uniform then). A rival, that no gradient reaches the encoder, has the sign "vanished" (its gradient is under a tenth of that in the decoder's self-attention). A sign counts if at least nine of ten runs that do not start show it, and at most one of ten
# that do:

# %% tags=["active-ipynb"]
# starting.print_signs(found)

# %% [markdown]
# None passes (nor does a fourth, "stuck", too sharp an attention, found in no run): "collapsed" misses 7 of the 39 runs that do not start,
# and "even" also holds in many that start; "vanished" was found in one run. At update 240 the variance is lower in each run that does not start than in any that does, but
# this was noticed afterwards. Why the encoder collapses where it does, we do not know; nor whether larger models fail so.

# %% [markdown]
# **What to do**: measure the use at every validation (a high one alone clears no model, as the toy shows), and do not wait for BLEU. If it stays low, put the norms first, lower the learning rate of the encoder (give `train` `optimizer=partial(AdamByParts, shares={"encoder": 0.25})`, from `transformer.fast.training`), or take fewer layers there.

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Write the loss of a decoder, without smoothing. `target` holds the begin mark, the tokens, the end mark, and then padding, which is 0. The
# logits at each place are the model's answer to all tokens up to that place. Average over real tokens.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.training import check_decoder_loss
#
#
# def decoder_loss(logits, target):
#     """logits (B, L, V) for every place of target (B, L) -> a number, in nats"""
#     ...
#
#
# check_decoder_loss(decoder_loss)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def decoder_loss(logits, target):
#     gold = target[:, 1:]
#     log_p = logits[:, :-1].log_softmax(dim=-1)
#     losses = -log_p.gather(-1, gold[..., None])[..., 0]
#     return losses[gold != 0].mean()
# ```
#
# The answer at place $t$ belongs to the token at $t + 1$, so the last answer and the first token are left out. Without the shift, the model would
# be asked for the token that it has just read.
# </details>
#
# **2.** Each part of an update comes with the gradient of its own *mean* loss and its number of real tokens. Write the gradient of the mean
# loss over all tokens.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.training import check_accumulated
#
#
# def accumulated(parts):
#     """[(gradient (n,), tokens), ...] -> (n,)"""
#     ...
#
#
# check_accumulated(accumulated)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def accumulated(parts):
#     total = sum(tokens for _, tokens in parts)
#     gradient = torch.zeros_like(parts[0][0])
#     for part, tokens in parts:
#         gradient += part * tokens / total
#     return gradient
# ```
#
# A plain mean of the gradients would let a token in a short batch count for more than one in a long batch.
# </details>
#
# **3.** A run with `patience` stops after so many validations in a row that were not better than the best before. From the list of validation losses, say
# after how many validations it stops (or the length of the list, if it does not), and which of those done was the best (counted from 1).

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
# The training loss goes on falling while a model learns its sentences by heart, so only held-out sentences can tell when to stop.
# </details>

# %% [markdown]
# ## Next
#
# [15 Decoding](15_decoding.ipynb) writes translations with a trained model, better than word by word, and scores them.
