# ---
# jupyter:
#   jupytext:
#     formats: notebooks/17_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 6.2 Model variations
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/17_variations.ipynb)
#
# Which of its parts does the Transformer need? Section 6.2 changes one thing at a time and trains again. Table 3 has twenty rows. Here
# they are one list, a function that applies a row to a base of any size, and a command that trains all of them.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import json
import math
import multiprocessing
import os
import signal
import time
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, fields, replace
from functools import reduce
from itertools import islice, pairwise
from multiprocessing import connection
from operator import getitem
from pathlib import Path
from statistics import mean, median, stdev
from threading import Thread
from types import MethodType
from typing import NamedTuple

import torch
from torch import nn

from transformer.attention import MultiHeadAttention, scaled_dot_product
from transformer.data import Tokenizer, encode_pairs
from transformer.search import translate
from transformer.scores import bleu
from transformer.hardware import choose_device
from transformer.model import Transformer, TransformerConfig
from transformer.weights import count_parameters, load_parameters, load_weights
from transformer.optimizer import peak_rate
from transformer.stacks import Residual
from transformer.training import Diverged, Interrupted, TrainingConfig, catch_interrupt, validation_loss
from transformer.experiments.records import over_seeds, public
from transformer.runs import (
    Experiment, Task, adopt, files_of, hardware_in_words, new_model, read_log,
    run_experiment, stream_pairs,
)
from transformer.pretrained import parameters_of
from transformer.recipes import RECIPES
from transformer.files import git_commit, prepare_folder, write_json

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from IPython.display import Markdown, display
#
# from transformer import plotting
# from transformer.figures import comparisons
# from transformer.files import data_folder
# from transformer.experiments.records import markdown_table
#
# torch.set_num_threads(1)      # the models below are too small to share between cores

# %% [markdown]
# ## One list
#
# A row is a name and the settings that it changes. Everything else stays as in the base model. Beside it stand the paper's own
# numbers: perplexity on newstest2013 (per token), BLEU there, and parameters in millions where the paper gives them.
#
# The letters are the paper's. **A**: more or fewer heads, each narrower or wider, so that the number of parameters stays. **B**: narrower keys.
# **C**: depth and widths. **D**: dropout and label smoothing. **E**: learned positions. And **big**.

# %%
class Row(NamedTuple):
    """A row of Table 3, or another variation: what it changes in base (by field), the paper's own numbers, and with which row it is compared."""

    group: str
    name: str
    changes: dict
    perplexity: float | None = None
    bleu: float | None = None
    millions: float | None = None
    beside: str = "base"


# %%
TABLE_3 = [
    Row("base", "base", dict(), 4.92, 25.8, 65),
    Row("A", "h=1", dict(h=1, d_k=512, d_v=512), 5.29, 24.9),
    Row("A", "h=4", dict(h=4, d_k=128, d_v=128), 5.00, 25.5),
    Row("A", "h=16", dict(h=16, d_k=32, d_v=32), 4.91, 25.8),
    Row("A", "h=32", dict(h=32, d_k=16, d_v=16), 5.01, 25.4),
    Row("B", "d_k=16", dict(d_k=16), 5.16, 25.1, 58),
    Row("B", "d_k=32", dict(d_k=32), 5.01, 25.4, 60),
    Row("C", "N=2", dict(N=2), 6.11, 23.7, 36),
    Row("C", "N=4", dict(N=4), 5.19, 25.3, 50),
    Row("C", "N=8", dict(N=8), 4.88, 25.5, 80),
    Row("C", "d_model=256", dict(d_model=256, d_k=32, d_v=32), 5.75, 24.5, 28),
    Row("C", "d_model=1024", dict(d_model=1024, d_k=128, d_v=128), 4.66, 26.0, 168),
    Row("C", "d_ff=1024", dict(d_ff=1024), 5.12, 25.4, 53),
    Row("C", "d_ff=4096", dict(d_ff=4096), 4.75, 26.2, 90),
    Row("D", "P_drop=0.0", dict(P_drop=0.0), 5.77, 24.6),
    Row("D", "P_drop=0.2", dict(P_drop=0.2), 4.95, 25.5),
    Row("D", "epsilon_ls=0.0", dict(epsilon_ls=0.0), 4.67, 25.3),
    Row("D", "epsilon_ls=0.2", dict(epsilon_ls=0.2), 5.47, 25.7),
    Row("E", "positions=learned", dict(positions="learned"), 4.92, 25.7),
    Row("big", "big", dict(d_model=1024, d_ff=4096, h=16, P_drop=0.3, updates=300_000), 4.33, 26.4, 213),
]

# %% tags=["active-ipynb"]
# base = TABLE_3[0]
# lines = [[row.group, row.name, f"{row.perplexity:.2f}", row.bleu, f"{row.perplexity - base.perplexity:+.2f}", f"{row.bleu - base.bleu:+.1f}"] for row in TABLE_3]
# display(Markdown(markdown_table(["group", "row", "PPL", "BLEU", "PPL, minus base", "BLEU, minus base"], lines)))

# %% [markdown]
# What the paper found, then. Two layers instead of six cost 2.1 BLEU, the most of any row; eight gain none. A width of 256, or no dropout, costs more
# than one. One head costs 0.9, and 32 heads 0.4: the best number lies between. Keys of 16 cost 0.7. More width helps a little, learned positions change
# almost nothing. And label smoothing of 0.1 makes perplexity worse, and BLEU better by 0.5.

# %% [markdown]
# One number for each row: the paper does not say how far two runs of *one* row lie apart.
# That is why seeds come in below.
#
# Readers ask for more variations, and they fit the same form. Five further groups: the learning rate's height and its warm-up around
# the paper's; three sizes of model on a ninth and a third of the sentences and on all; both kinds of positions, trained on short
# sentences only; eight layers with another order of norms, or a lower rate; and a model with a part taken out. What one head alone does is the row h=1.

# %%
SIZES = {"narrow": dict(d_model=256, d_ff=1024), "base": dict(), "wide": dict(d_model=1024, d_ff=4096)}
SHARES = (9, 3, 1)  # every n-th pair
FACTORS, WARMUPS = (0.25, 1.0, 4.0), (1000, 4000, 12_000)
QUESTIONS = [
    *(Row("schedule", f"factor={factor:g},warmup={warmup}", dict(factor=factor, warmup=warmup))
      for factor in FACTORS for warmup in WARMUPS if (factor, warmup) != (1.0, 4000)),
    *(Row("data", f"{name},every={every}", dict(**sizes, every=every), beside=f"base,every={every}" if sizes and every > 1 else "base")
      for name, sizes in SIZES.items() for every in SHARES if sizes or every > 1),
    Row("length", "positions=sinusoidal,longest=12", dict(positions="sinusoidal", longest=12)),
    Row("length", "positions=learned,longest=12", dict(positions="learned", longest=12), beside="positions=sinusoidal,longest=12"),
    Row("depth", "N=8,norm_first=True", dict(N=8, norm_first=True), beside="N=8"),
    Row("depth", "N=8,factor=0.25", dict(N=8, factor=0.25), beside="N=8"),
    *(Row("simple", f"without={part}", dict(without=part)) for part in ("W_V", "softmax", "residual")),
]

# %% [markdown]
# `every=9` takes every ninth pair of the corpus, `longest=12` only pairs of at most twelve words, and `without` names what is taken out. So besides
# the settings of model and training there are three of a run.

# %%
@dataclass
class Trial(Experiment):
    """An `Experiment` with what these variations change besides: the training pairs, and parts of the model."""

    every: int = 1  # train on every n-th pair of the corpus
    longest: int | None = None  # and only on pairs of at most so many words
    without: str | None = None  # W_V, softmax or residual: what is taken out of the model


# %%
PAPER = Trial("wmt14", model=RECIPES["wmt14"]["model"], training=replace(RECIPES["wmt14"]["training"], keep=1))
SMALL = Trial(
    "multi30k",
    model=TransformerConfig(vocab_size=4000, d_model=96, d_ff=384, N=3, h=8, P_drop=0.1, max_positions=256),
    training=TrainingConfig(updates=1500, batch_tokens=1000, warmup=400, factor=1.0, save_every=50, keep=1))
LARGE = Trial(
    "multi30k",
    model=TransformerConfig(vocab_size=6000, d_model=256, d_ff=1024, N=6, h=8, P_drop=0.1, max_positions=256),
    training=TrainingConfig(updates=3000, batch_tokens=4096, warmup=800, factor=1.0, save_every=100, keep=1))


# %% [markdown]
# For Table 3 the paper did not average weights (Section 6.2), so only the last are kept: `keep=1`.
#
# `PAPER` is the paper's base model. Training it twenty times is out of reach here. `SMALL` has a fifty-sixth of its parameters outside the
# embeddings, and 1,500 updates, so that three seeds of every row fit on a CPU; `LARGE` is for a GPU. **Deviation: a smaller base, another corpus, far
# fewer updates.**
#
# A field may belong to the model, to its training, or to the trial itself. A name that none of them has is refused.

# %%
def holder(e, name):
    """Where a `Trial` keeps a field: its model, its training, or itself; ValueError where there is none of that name."""
    for part in (e.model, e.training, e):
        if name in {field.name for field in fields(part)}:
            return part
    raise ValueError(f"there is no setting {name!r}: a row changes fields of TransformerConfig, TrainingConfig or Trial")


# %%
def with_changes(e, changes):
    """A `Trial` with some fields, of its model, its training or its own, replaced; e stays as it is."""
    def own(part):
        return {name: value for name, value in changes.items() if holder(e, name) is part}

    return replace(e, model=replace(e.model, **own(e.model)), training=replace(e.training, **own(e.training)), **own(e))


# %% tags=["active-ipynb"]
# deep = with_changes(PAPER, dict(N=8, epsilon_ls=0.2))
# print(deep.model.N, deep.training.epsilon_ls, "and base is still", PAPER.model.N, PAPER.training.epsilon_ls)
# try:
#     with_changes(PAPER, dict(heads=3))
# except ValueError as error:
#     print(error)

# %% [markdown]
# ## Parameters
#
# Before any training, one column of Table 3 can be checked exactly: the number of parameters. On torch's `meta` device
# (notebook [08](08_model.ipynb)) all eleven models with a count are built in a moment, without memory for their numbers.

# %%
def millions(row, vocab_size=37_000):
    """Parameters of a row's model at the paper's size, in millions, with a shared vocabulary of so many types."""
    return parameters_of(with_changes(PAPER, {**row.changes, "vocab_size": vocab_size}).model) / 1e6


# %%
def count_rows(vocab_size=37_000):
    """Rows (name, here, paper, difference from base here and in the paper) where the paper gives a count, in millions."""
    base, given = TABLE_3[0], [row for row in TABLE_3 if row.millions]
    return [[row.name, f"{millions(row, vocab_size):.1f}", row.millions,
             f"{millions(row, vocab_size) - millions(base, vocab_size):+.1f}", f"{row.millions - base.millions:+d}"]
            for row in given]


# %% tags=["active-ipynb"]
# display(Markdown(markdown_table(["row", "here, M", "paper, M", "here, minus base", "paper, minus base"], count_rows())))
# off = {row.name: millions(row) - millions(TABLE_3[0]) - (row.millions - TABLE_3[0].millions) for row in TABLE_3 if row.millions}
# assert all(abs(difference) <= 1 for name, difference in off.items() if "d_model" not in name and name != "big")

# %% [markdown]
# With 37,000 types every row but big is a little smaller here than in the paper. Where only layers change, the difference from base agrees to
# rounding (two rounded numbers may be off by one together). With $d_{model} = 1024$ it falls short by two million. So what is missing grows with
# $d_{model}$, as an embedding matrix does. Which vocabulary would explain the paper's column?

# %%
def vocabulary_that_fits(row):
    """The smallest and the largest vocabulary with which a row's count, in millions, rounds to the paper's."""
    c, without = with_changes(PAPER, row.changes).model, millions(row, vocab_size=3)  # 3: a begin, an end and a padding mark
    least, beyond = (3 + math.ceil(1e6 * (row.millions + half - without) / c.d_model) for half in (-0.5, 0.5))
    return least, beyond - 1


# %% tags=["active-ipynb"]
# fits = {row.name: vocabulary_that_fits(row) for row in TABLE_3 if row.millions}
# for name, (least, most) in fits.items():
#     print(f"{name:12} {least:7,} to {most:7,} types")
# small_ones = [fit for name, fit in fits.items() if name != "big"]
# print(f"all but big: {max(least for least, _ in small_ones):,} to {min(most for _, most in small_ones):,}")

# %% tags=["active-ipynb"]
# assert max(least for least, _ in small_ones) < min(most for _, most in small_ones)
# assert fits["big"][1] < 37_000

# %% [markdown]
# One vocabulary of about 41,100 types (or 37,000 types and some 4,100 further vectors of width $d_{model}$) brings every row except big to the paper's number. The paper
# speaks of "about 37,000", and does not say what else it counts. **Big fits no such vocabulary**: with 37,000 it already has one million too many. It may
# have been counted otherwise; the paper does not tell.

# %% [markdown]
# ## The same list, in small
#
# A row of Table 3 is an idea ("half as many layers"), and an idea can be applied to a base of another size. One rule does it: **a number is
# multiplied by what the field's base value is here, divided by what it is in the paper.** With $d_{model} = 96$ for 512, a row's 1,024
# becomes 192. Rates, which both bases share, stay as they are, and so do words like "learned".

# %% [markdown]
# Each field is scaled by itself, so proportions between fields differ. Warm-up takes 27% of the updates here, and 4% in the paper; 32 heads have 3 numbers
# each, not 16. And the learning rate, $d_{model}^{-0.5} \cdot warmup^{-0.5}$ at its peak, is higher: 0.0051 here, 0.0007 in the paper (the cell below computes both).
# Where a row does otherwise than in the paper, look here first.

# %%
def setting(e, name):
    """The value of a `Trial`'s field; d_k and d_v, where not given, are d_model / h."""
    value = getattr(holder(e, name), name)
    return e.model.d_model // e.model.h if value is None and name in ("d_k", "d_v") else value


# %%
def scaled(changes, base):
    """A row's changes, made for the paper's base, carried over to another: each number by the ratio of the bases' values."""
    found = {}
    for name, value in changes.items():
        there = setting(PAPER, name)
        if there and not isinstance(value, str):
            ratio = setting(base, name) / there
            value = max(1, round(value * ratio)) if isinstance(value, int) else value * ratio
        found[name] = value
    return found


# %%
def base_of(corpus, large=False, precision="auto"):
    """The base on a corpus: the paper's on wmt14, elsewhere the small one, or the larger one for GPUs."""
    base = PAPER if corpus == "wmt14" else LARGE if large else SMALL
    return replace(base, corpus=corpus, training=replace(base.training, precision=precision))


# %%
def outside_embeddings(c):
    """Parameters of a model of `TransformerConfig` c without its embedding matrix (or its three, where they are not tied)."""
    return parameters_of(c) - c.vocab_size * c.d_model * (1 if c.tie_embeddings else 3)


# %%
def changes_in_words(changes):
    """A row's changes as text: "h 1, d_k 96, d_v 96"."""
    return ", ".join(f"{name} {value:,}" if isinstance(value, int) else f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in changes.items()) or "-"


# %% tags=["active-ipynb"]
# lines = []
# for row in TABLE_3:
#     changes = scaled(row.changes, SMALL)
#     c = with_changes(SMALL, changes).model
#     lines.append([row.group, row.name, changes_in_words(changes), f"{outside_embeddings(c) / 1e6:.2f}"])
# display(Markdown(markdown_table(["group", "row", "in small", "parameters outside the embeddings, M"], lines)))

# %% tags=["active-ipynb"]
# for name, e in (("the paper", PAPER), ("here", SMALL)):
#     c, training = e.model, e.training
#     print(f"peak of the learning rate, {name}: {peak_rate(c.d_model, training.warmup, training.factor):.4f}")
# assert scaled(dict(h=32, d_k=16, d_v=16), SMALL) == dict(h=32, d_k=3, d_v=3)
# assert scaled(dict(d_model=1024, P_drop=0.3), PAPER) == dict(d_model=1024, P_drop=0.3)
# assert outside_embeddings(SMALL.model) > 500_000

# %% [markdown]
# ## A part taken out
#
# Three of the readers' variations are no setting of the model. Without $W_V$ a head averages slices of the vectors themselves. Without the
# softmax the scores are the weights, divided by the number of keys so that sums stay small. Without the residual path a sub-layer's
# input reaches the next one only through the sub-layer. These models compute the plain way, not the faster one of notebook 11, so their minutes do not
# compare. (And `transformer evaluate` would put the part back: they are scored here.)

# %%
def attend_without_softmax(self, query, key, value, mask=None, cache=None):
    """`MultiHeadAttention.forward`, its weights being the scores divided by the number of keys a query may see."""
    k, v = self.keys_and_values(key, value, cache)
    scores = scaled_dot_product(self.split(self.W_Q(query)), k)
    seen = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    weights = scores.masked_fill(~seen, 0) / seen.sum(dim=-1, keepdim=True).clamp(min=1)
    return self.W_O((weights @ v).transpose(1, 2).flatten(2))


# %%
def no_path(self, x, sublayer):
    """`Residual.forward` without the path around the sub-layer."""
    return self.norm(self.dropout(sublayer(x)))


# %%
def take_out(model, part):
    """Take W_V, the softmax or the residual paths out of a model; returns it. ValueError for another part."""
    for module in list(model.modules()):
        if part == "W_V" and isinstance(module, MultiHeadAttention):
            module.W_V = nn.Identity()
        elif part == "softmax" and isinstance(module, MultiHeadAttention):
            module.forward = MethodType(attend_without_softmax, module)
        elif part == "residual" and isinstance(module, Residual):
            module.forward = MethodType(no_path, module)
    if part not in ("W_V", "softmax", "residual"):
        raise ValueError(f"cannot take {part!r} out of the model: choose W_V, softmax or residual")
    return model


# %%
def model_of(e, device):
    """The model of a `Trial` with fresh weights; where a part is taken out, in its plain form (see `new_model`)."""
    if e.without is None:
        return new_model(e, device)
    torch.manual_seed(e.training.seed)
    return take_out(Transformer(e.model), e.without).to(device)


# %% [markdown]
# ## One run
#
# It is a run of [notebook 16](16_translation.ipynb): vocabulary, then training. Only the sentences may be fewer.
# The vocabulary is learned from them as well.

# %%
def short_enough(pair, longest):
    """True where neither sentence of a pair has more than so many words."""
    return longest is None or max(len(text.split()) for text in pair) <= longest


# %%
def sample(e, split):
    """Yield the pairs of a `Trial`'s split; of training every n-th one (`every`), and only what is short enough."""
    for number, pair in enumerate(stream_pairs(e, split)):
        if split != "train" or number % e.every == 0 and short_enough(pair, e.longest):
            yield pair


# %%
def loss_validator(e, tokenizer, count=200, watch=None):
    """validate(model) for `train`: only the cross-entropy of the first `count` validation pairs, which is quick."""
    encoded = encode_pairs(tokenizer, list(islice(stream_pairs(e, "validation"), count)))
    return lambda model: validation_loss(model, encoded)


# %% [markdown]
# What Table 3 reports: perplexity per token, and BLEU of the model's own translations. **Deviation: they are greedy** (the paper used its beam of four). All rows
# of Table 3 have the same vocabulary, so their perplexities compare. A model trained on fewer sentences has a vocabulary of its own, so against base its BLEU
# alone compares.

# %%
def score(model, tokenizer, pairs):
    """{"sentences", "perplexity", "bleu", "signature"} of a model on pairs: per target token; greedy translations. `Diverged` without a loss."""
    sources, references = zip(*pairs)
    loss = validation_loss(model, encode_pairs(tokenizer, pairs))["validation_loss"]
    if not math.isfinite(loss):
        raise Diverged(f"after training the validation loss is {loss}")
    found = bleu(translate(model, tokenizer, sources, beam=1), references)
    return {"sentences": len(pairs), "perplexity": round(math.exp(loss), 4), "bleu": round(found.score, 3),
            "signature": found.signature}


# %%
def score_trial(e, tokenizer, device):
    """`score` of a finished trial on its corpus's validation split; where `longest` is set also of its short and long part."""
    model = model_of(e, device)
    load_parameters(model, load_weights(e.folder / "model.safetensors")[0], e.folder)
    pairs = list(stream_pairs(e, "validation"))
    found = score(model.eval(), tokenizer, pairs)
    if e.longest is not None:
        parts = {"short": [p for p in pairs if short_enough(p, e.longest)]}
        parts["long"] = [p for p in pairs if p not in parts["short"]]
        found |= {name: score(model, tokenizer, part) for name, part in parts.items() if part}
    return found


# %% [markdown]
# A run goes on where it was stopped (notebook [14](14_training.ipynb)).

# %%
def taken_out(e):
    """How many parameters of its configuration a `Trial` goes without."""
    if e.without is None:
        return 0
    with torch.device("meta"):
        return count_parameters(Transformer(e.model)) - count_parameters(take_out(Transformer(e.model), e.without))


# %%
def run_trial(e, command):
    """Train a `Trial` in e.folder, or go on, and score it; returns what is kept. Raises as `run_experiment` does."""
    cpu = time.process_time()
    e = replace(e, resume=(e.folder / "checkpoint.safetensors").is_file())
    if not e.resume and not (e.folder / "model.safetensors").is_file():
        for path in e.folder.glob("weights/*.safetensors"):  # of a run that was killed before its first checkpoint
            path.unlink()
    if e.resume:
        adopt(e, Tokenizer.load(e.folder / "tokenizer.json"))
    with redirect_stdout(None):
        run_experiment(e, command, quiet=True, task=Task(sample, loss_validator, model_of))
    device, trained = choose_device(e.device), time.monotonic()
    scores = score_trial(e, Tokenizer.load(e.folder / "tokenizer.json"), device)
    last = read_log(e.folder)[-1]
    return {**scores, "updates": last["update"], "epochs": last["epoch"], "tokens": last["tokens"], "resumed": e.resume,
            "minutes": round((last["seconds"] + time.monotonic() - trained) / 60, 2),
            "cpu_minutes": None if e.resume else round((time.process_time() - cpu) / 60, 2), "command": public(command),
            "parameters": parameters_of(e.model) - taken_out(e), "outside_embeddings": outside_embeddings(e.model) - taken_out(e),
            "hardware": hardware_in_words(device, e.training.precision), "commit": git_commit()}


# %% [markdown]
# ## All runs
#
# (How runs are spread over processes and kept in files may be skipped at a first reading: the results begin at "Results in small".)
#
# Runs know nothing of each other, so any number can go on side by side, each in its own process: one for each GPU; on a CPU one, or
# as many as `--workers` says, with one thread each. A process leaves `result.json` in its run's folder, be it scores or the reason why there are none.
# That a run diverged is a result, too; what failed for another reason is tried again by the same command.

# %%
def stop_with_parent():
    """Let this process get a SIGTERM when the one that began it is gone; Ctrl-C reaches the parent alone, which passes it on."""
    if parent := multiprocessing.parent_process():
        if hasattr(os, "setpgrp"):
            os.setpgrp()
        Thread(target=lambda: (parent.join(), os.kill(os.getpid(), signal.SIGTERM)), daemon=True).start()


def work(e, command):
    """A worker process: one `Trial`, and its result.json. What went wrong stands there, too; a stop leaves none."""
    stop_with_parent()
    if e.device == "cpu":
        torch.set_num_threads(1)
    try:
        result = run_trial(e, command)
    except Interrupted:
        return
    except (ValueError, OSError, RuntimeError) as error:
        result = {"diverged" if isinstance(error, Diverged) else "failed": " ".join(str(error).split())}
    write_json(e.folder / "result.json", result)
    if "failed" not in result:  # what was needed only to go on
        for path in [e.folder / "checkpoint.safetensors", *e.folder.glob("weights/*.safetensors")]:
            path.unlink()


# %%
def in_processes(trials, devices, command):
    """Run trials, one process for each of devices at a time; yield each when its process has ended, with the exit status.

    Raises Interrupted after Ctrl-C or SIGTERM, when all processes have saved and ended.
    """
    waiting, running, context = list(trials), {}, multiprocessing.get_context("spawn")
    with catch_interrupt() as notes:
        try:
            while running or waiting and not notes:
                for slot in range(len(devices)):
                    if slot not in running and waiting and not notes:
                        e = waiting.pop(0)
                        running[slot] = e, context.Process(target=work, args=(replace(e, device=devices[slot]), command))
                        running[slot][1].start()
                connection.wait([process.sentinel for _, process in running.values()], timeout=1)
                if notes:
                    stop([process for _, process in running.values()])
                for slot in [slot for slot, (_, process) in running.items() if not process.is_alive()]:
                    e, process = running.pop(slot)
                    yield e, process.exitcode
        finally:
            stop([process for _, process in running.values()])
    if notes:
        raise Interrupted("stopped, all that was done is saved; the same command goes on")


# %%
def stop(processes):
    """SIGTERM to each process, which saves, and wait for them."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()


# %%
def devices_for(device="auto", workers=None):
    """The device of each process that runs at the same time: all GPUs, or a CPU; ValueError for a device that is not there."""
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    found = choose_device(device)
    if found.type == "cuda" and device in ("auto", "cuda"):
        names = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    else:
        names = [str(found)]
    return [names[number % len(names)] for number in range(workers or len(names))]


# %% [markdown]
# Which rows? A group by its letter, or single rows by name. What they are compared with comes along: mostly base, but a small model on a ninth of the
# sentences stands beside the base model on that ninth. All rows
# are trained with the first seed before any is trained with the second. Whoever stops halfway has a run of every row.

# %%
def choose(names=()):
    """The rows of groups or of single names, and those they are compared with, base first; Table 3 where none is named. ValueError for an unknown name."""
    rows = [*TABLE_3, *QUESTIONS]
    known = {row.group for row in rows} | {row.name for row in rows}
    for name in names:
        if name not in known:
            groups = ", ".join(dict.fromkeys(row.group for row in rows))
            raise ValueError(f"unknown row {name!r}: choose groups ({groups}) or rows by name, such as {rows[1].name}")
    chosen = [row for row in rows if {row.group, row.name} & set(names)] if names else TABLE_3
    beside = {row.beside for row in chosen}
    return [row for row in rows if row in chosen or row.name in beside | {"base"}]


# %%
def folder_name(row, seed):
    """The name of a run's folder."""
    return f"{row}-seed{seed}"


# %%
def trial_of(row, base, seed, folder):
    """The `Trial` of a row and a seed; it is kept in a folder of its own in folder."""
    e = with_changes(base, {**scaled(row.changes, base), "seed": seed})
    return replace(e, folder=Path(folder) / folder_name(row.name, seed))


# %% [markdown]
# ## Results
#
# `results.json` holds the base and every run's figures. It is written anew after each run, and so is the file of `--record`.
# What that file already holds is not trained again: twenty rows with three seeds take hours, which may be split between days or machines.

# %%
def heading(base, command):
    """What all runs of a folder have in common."""
    return {"command": public(command), "corpus": base.corpus, "base": {"model": asdict(base.model), "training": asdict(base.training)}}


# %%
def settings_in(content):
    """All settings in a `heading`, by name, but for the precision: each run's "hardware" tells it."""
    return {"corpus": content["corpus"], **content["base"]["model"], **content["base"]["training"], "precision": None}


# %%
def earlier_results(path, base):
    """The runs that a results.json or a record holds, those that diverged, too; [] where there is no such file.

    ValueError for a file that is something else, or of another corpus or base, or with a row that the list does not have.
    """
    if not Path(path).is_file():
        return []
    try:
        saved = json.loads(Path(path).read_text(encoding="utf8"))
        there, here = (settings_in(content) for content in (saved, heading(base, "")))
        runs = [*saved["runs"], *saved["diverged"]]
        unknown = {run["row"] for run in runs} - {row.name for row in [*TABLE_3, *QUESTIONS]}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a file of results of transformer variations: name another") from error
    differ = [f"{name} is {there.get(name)} there and {here.get(name)} here" for name in {**here, **there} if there.get(name) != here.get(name)]
    if differ:
        raise ValueError(f"{path} was made with other settings ({', '.join(differ)}): name another --folder or --record")
    if unknown:
        raise ValueError(f"{path} has rows that are not in the list any more ({', '.join(sorted(unknown))}): name another --folder or --record")
    return runs


# %%
def take_over(runs, folder):
    """Put runs of a record into a folder where they are missing, or failed, as if they had been trained there."""
    for run in runs:
        path = Path(folder) / folder_name(run["row"], run["seed"]) / "result.json"
        if not path.is_file() or "failed" in json.loads(path.read_text(encoding="utf8")):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, {name: value for name, value in run.items() if name not in ("group", "row", "seed", "changes")})


# %%
def collect(folder, base, command):
    """The content of results.json: every run of a folder that has a result.json, in the order of the list."""
    found = []
    for row in [*TABLE_3, *QUESTIONS]:
        for path in sorted(Path(folder).glob(folder_name(row.name, "*") + "/result.json")):
            result = json.loads(path.read_text(encoding="utf8"))
            found.append({"group": row.group, "row": row.name, "seed": int(path.parent.name.rpartition("-seed")[2]),
                          "changes": scaled(row.changes, base), **result})
    return {**heading(base, command), "runs": [run for run in found if "perplexity" in run],
            **{name: [run for run in found if name in run] for name in ("diverged", "failed")}}


# %% [markdown]
# A seed draws the first weights, the dropout, and the order of the batches. Two runs of one row differ by their seeds. But with the *same* seed two rows
# see the same batches in the same order, and a seed that is bad for one is often bad for the other. So rows are compared **seed by seed**: a run minus
# the run of base with the same seed.

# %% [markdown]
# For $n$ seeds that makes $n$ differences. Their mean is the result, and their *standard deviation* $s$ tells how far chance moves one of them. From three
# it is known badly: three that agree by chance would make any difference look sure. So a row counts with its own $s$, but at least with the middle one
# (the median) of all rows. The mean of $n$ differences then deviates by $s / \sqrt{n}$.
#
# **A mean difference under two of these is called none**: there may be none, or one too small for so few runs. Until some row has three seeds nothing is judged.

# %% [markdown]
# Of forty such differences about two pass by chance. And they are not independent: all are measured from the same runs of base, so a lucky base shifts every row
# at once. Nor does $s$ know of other validation sentences: it is about seeds alone.

# %%
FIGURES = ("perplexity", "bleu")


def by_seed(runs, others, *keys):
    """run[key][key]... minus that of the other row's run, for every seed that both rows have."""
    there, here = ({run["seed"]: reduce(getitem, keys, run) for run in some} for some in (others, runs))
    return [value - there[seed] for seed, value in here.items() if seed in there]


# %%
def judge(differences, figure):
    """{row: (mean difference, its deviation, "better", "worse" or "none")} from {row: differences seed by seed} of perplexity or BLEU.

    One difference deviates by the row's own standard deviation, at least by the median of all rows; a mean under two of its deviations is none.
    Until some row has three differences the deviation is nan, and the verdict "few runs". A row without any is left out.
    """
    own = {name: stdev(some) for name, some in differences.items() if len(some) > 2}
    found = {}
    for name, some in ((name, some) for name, some in differences.items() if some):
        value = mean(some)
        s = max(own.get(name, 0), median(own.values())) / math.sqrt(len(some)) if own else math.nan
        verdict = "none" if not value or abs(value) < 2 * s else "better" if (value > 0) == (figure == "bleu") else "worse"
        found[name] = value, s, verdict if own else "few runs"
    return found


# %%
def comparable(run, other, figure):
    """True where two runs' figures compare: perplexity only with the same vocabulary, so trained on the same sentences."""
    return figure == "bleu" or all(run["changes"].get(name, whole) == other["changes"].get(name, whole) for name, whole in (("every", 1), ("longest", None)))


# %%
def by_row(runs):
    """{row: its runs}."""
    rows = {}
    for run in runs:
        rows.setdefault(run["row"], []).append(run)
    return rows


# %%
def compare(runs):
    """Every row of runs but base, beside the row it is compared with: [{"group", "row", "beside", "seeds", "perplexity", "bleu"}, ...].

    The last two are (difference, its deviation, verdict), see `judge`; None where they do not compare, or where there is no such row yet.
    """
    rows, beside = by_row(runs), {row.name: row.beside for row in [*TABLE_3, *QUESTIONS]}
    pairs = {name: (own, rows.get(beside[name], [])) for name, own in rows.items() if name != "base"}
    judged = {}
    for figure in FIGURES:
        judged[figure] = judge({name: by_seed(own, others, figure) for name, (own, others) in pairs.items()
                                if others and comparable(own[0], others[0], figure)}, figure)
    return [{"group": own[0]["group"], "row": name, "beside": beside[name], "seeds": len({run["seed"] for run in own} & {run["seed"] for run in others}),
             **{figure: judged[figure].get(name) for figure in FIGURES}} for name, (own, others) in pairs.items()]


# %%
def in_words(compared):
    """A difference of `compare` as text: "+0.51 ± 0.20, more", or "+0.51, few runs"."""
    return "-" if compared is None else "{:+.2f} ± {:.2f}, {}".format(*compared).replace(" ± nan", "")


# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# # four rows made up: a usual one, one whose seeds agree by chance, a wild one, and one that is clearly worse
# made_up = {"usual": [-1.0, 0.0, 1.0], "lucky": [0.7, 0.7, 0.7], "wild": [-5, 10, 4], "worse": [-3.0, -2.0, -4.0]}
# for name, (value, s, verdict) in judge(made_up, "bleu").items():
#     print(f"{name:6} {value:+.2f} ± {s:.2f} {verdict}")

# %% [markdown]
# And the command: the chosen rows with all seeds, what is finished left out, a line for each run.

# %%
COLUMNS = "{:34} {:>4} {:>8} {:>8} {:>8} {:>7} {:>12} {:>12}"


# %%
def line_of(run, runs):
    """A line of the progress table: a run, and what differs from base with the same seed once that has run."""
    for name in ("failed", "diverged"):
        if name in run:
            return f"{run['row']:34} {run['seed']:>4} {name}: {run[name]}"
    base = next((other for other in runs if (other["row"], other["seed"]) == ("base", run["seed"])), None)
    differences = [f"{run[figure] - base[figure]:+.2f}" if base and comparable(run, base, figure) else "-" for figure in FIGURES]
    return COLUMNS.format(run["row"], run["seed"], f"{run['updates']:,}", f"{run['minutes']:.1f}", f"{run['perplexity']:.2f}",
                          f"{run['bleu']:.2f}", *differences)


# %%
def has_result(e):
    """True where a trial has been scored, or has diverged; False where it failed."""
    path = e.folder / "result.json"
    return path.is_file() and "failed" not in json.loads(path.read_text(encoding="utf8"))


# %%
def print_differences(runs):
    """A line for each row of `compare`."""
    print("\nminus base (or the row named), over seeds; a difference under two of its deviations is none")
    for row in compare(runs):
        print("{:34} {:>2} seeds   PPL {:24} BLEU {:24}".format(row["row"], row["seeds"], *(in_words(row[f]) for f in FIGURES)),
              "" if row["beside"] == "base" else row["beside"])


# %%
def keep_results(trials, base, folder, command, record=None):
    """Write folder/results.json, and the file record, too, which may have grown meanwhile; returns the content."""
    if record is not None:
        take_over(earlier_results(record, base), folder)
    content, names = collect(folder, base, command), {e.folder.name for e in trials}
    content["failed"] = [run for run in content["failed"] if folder_name(run["row"], run["seed"]) in names]
    for path in [folder / "results.json", *([] if record is None else [record])]:
        write_json(path, content)
    return content


# %%
def run_variations(base, rows, seeds, folder, devices, command, record=None):
    """Train and score all rows with all seeds, skip what is finished there or in the file record; returns the content of folder/results.json.

    Both files are written after each run. Raises ValueError or OSError for a corpus, a folder or a record that cannot be used,
    Interrupted after Ctrl-C.
    """
    prepare_folder(folder)
    earlier_results(folder / "results.json", base)  # refuses a folder of another base
    for split in ("train", "validation"):
        files_of(base, split)  # downloaded once, before many ask for it
    trials = [trial_of(row, base, seed, folder) for seed in dict.fromkeys(seeds) for row in rows]
    content = keep_results(trials, base, folder, command, record)
    waiting = [e for e in trials if not has_result(e)]
    print(f"{len(trials)} runs, {len(trials) - len(waiting)} of them finished; at the same time: {len(devices)}")
    print(COLUMNS.format("row", "seed", "updates", "minutes", "PPL", "BLEU", "PPL - base", "BLEU - base"), flush=True)
    for run in [*content["runs"], *content["diverged"]]:
        print(line_of(run, content["runs"]), flush=True)
    for e in waiting:
        (e.folder / "result.json").unlink(missing_ok=True)
    for e, status in in_processes(waiting, devices, command):
        if status not in (0, -signal.SIGTERM) and not (e.folder / "result.json").is_file():
            write_json(e.folder / "result.json", {"failed": f"its process ended with status {status}"})
        content = keep_results(trials, base, folder, command, record)
        for run in [*content["runs"], *content["diverged"], *content["failed"]]:
            if folder_name(run["row"], run["seed"]) == e.folder.name:
                print(line_of(run, content["runs"]), flush=True)
    if len(seeds) > 1:
        print_differences(content["runs"])
    return content


# %% [markdown]
# ## Results in small
#
# Every row that was recorded: how long it was trained, and what came out on the 1,014 validation pairs. Here ± is the standard deviation of one run over seeds.

# %%
def result_rows(runs):
    """Lines (row, seeds, updates, finished epochs, CPU minutes, parameters outside the embeddings in M, perplexity, BLEU) of a result file's runs."""
    lines = []
    for name, own in by_row(runs).items():
        minutes = [run["cpu_minutes"] for run in own if run["cpu_minutes"] is not None]  # unknown of a run that was stopped and went on
        lines.append([name, len(own), f"{own[0]['updates']:,}", own[0]["epochs"], f"{mean(minutes):.1f}" if minutes else "-",
                      f"{own[0]['outside_embeddings'] / 1e6:.2f}", *(over_seeds([run[figure] for run in own]) for figure in FIGURES)])
    return lines


# %% tags=["active-ipynb"]
# def show_runs(result):
#     display(Markdown(f"**{result['corpus']}**"))
#     display(Markdown(markdown_table(["row", "seeds", "updates", "finished epochs", "CPU minutes", "parameters outside the embeddings, M", "PPL", "BLEU"],
#                                     result_rows(result["runs"]))))
#     for run in result["diverged"]:
#         others = run["row"] in by_row(result["runs"])
#         print(f"diverged: {run['row']}, seed {run['seed']};", "its row's mean is that of the other seeds" if others else "no seed of this row has a result")
#     commands, machines = (sorted({run[name] for run in result["runs"]}) for name in ("command", "hardware"))
#     print("made by", *commands, "on", *machines, sep="\n")
#
# paths = sorted((data_folder() / "runs").glob("*variations*.json"))
# results = [json.loads(path.read_text(encoding="utf8")) for path in paths]
# for result in results:
#     show_runs(result)
# if not results:
#     print("Nothing recorded yet: transformer variations --corpus multi30k --record data/runs/variations.json")

# %% [markdown]
# Beside the paper's Table 3, as differences from base, seed by seed; now ± is the deviation of their mean. **Same way**: better than base here and there,
# or worse. **Reversed**: better in one, worse in the other. **Only here**: in the paper hardly a difference (0.3 BLEU, 0.05 of perplexity or less). **None**:
# less than two deviations here. The two bases are not alike, neither in size nor in their corpus, so it is the direction that compares, not the height.
#
# How small a difference could be seen? With three seeds about one BLEU point, and half a point of perplexity. Of the paper's differences in BLEU only those of N=2, d_model=256 and
# P_drop=0.0 are larger than a point. So "none" speaks against the paper for N=2, whose 2.1 would have been seen, and in the other rows against nothing.

# %%
HARDLY = {"perplexity": 0.05, "bleu": 0.3}  # differences of the paper, whose table has one number a row, that may be chance


def direction(compared, paper, figure="bleu"):
    """Whether a difference of `compare` goes the same way as the paper's: "same way", "reversed", "only here", "none", "few runs" or "-"."""
    if compared is None:
        return "-"
    if compared[2] in ("none", "few runs"):
        return compared[2]
    return "only here" if abs(paper) <= HARDLY[figure] else "same way" if compared[0] * paper > 0 else "reversed"


# %%
def beside_the_paper(runs):
    """Lines (row, what it is here, seeds, then perplexity and BLEU, each minus base, the paper's, and the `direction`) for the rows of Table 3."""
    paper, base, found = {row.name: row for row in TABLE_3}, TABLE_3[0], []
    here = {run["row"]: changes_in_words(run["changes"]) for run in runs}
    for row in [row for row in compare(runs) if row["row"] in paper]:
        line = [row["row"], here[row["row"]], row["seeds"]]
        for figure, form in (("perplexity", "+.2f"), ("bleu", "+.1f")):
            theirs = round(getattr(paper[row["row"]], figure) - getattr(base, figure), 2)
            line += [in_words(row[figure]), format(theirs, form), direction(row[figure], theirs, figure)]
        found.append(line)
    return found


# %%
def beside_in_percent(runs, figure):
    """{row of Table 3: (difference from base, two of its deviations, the paper's difference)}, in percent of base's figure."""
    paper, base = {row.name: getattr(row, figure) for row in TABLE_3}, mean([run[figure] for run in runs if run["row"] == "base"] or [math.nan])
    rows = {row["row"]: row[figure] for row in compare(runs) if row["row"] in paper and row[figure] is not None}
    return {name: (100 * found / base, 200 * own / base, 100 * (paper[name] / paper["base"] - 1)) for name, (found, own, _) in rows.items()}


# %% tags=["active-ipynb"]
# for result in results:
#     lines = beside_the_paper(result["runs"])
#     if len(lines) > 1:  # a single row stood beside one of the readers'
#         display(Markdown(f"**{result['corpus']}**"), Markdown(markdown_table(["row", "here", "seeds", "PPL", "the paper's", "direction", "BLEU", "the paper's", "direction"], lines)))
#         for ax, figure, name in zip(plotting.new_axes(4.5, 5.5, columns=2), FIGURES, ("perplexity (left is better)", "BLEU (right is better)")):
#             comparisons.differences(beside_in_percent(result["runs"], figure), f"{name}, minus base, in %", "difference ± 2 deviations", "the paper", ax=ax, limit=30).set_xlim(-32, 32)

# %% [markdown]
# Here a run sees its corpus between two and three times (big eight), the paper's base model some twenty times. **Dropout** keeps a model from learning its
# sentences by heart. In so few rounds there is probably little to keep it from: without dropout both figures are better than base's here, in the paper worse. And with more of it,
# 0.2, BLEU falls by 6.6. It need not be so on this corpus: notebook [16](16_translation.ipynb) trains another model on it for 62 rounds, with that very 0.2, and does well.

# %% [markdown]
# **The deepest model and big hardly translate**, with BLEU of 4 to 7 (their loss still falls, slowly). "N=8" has four layers here, and notebook 16's model has four as well. So is it the paper's order of norms
# with this base's high rate? The rows on deep models, below, ask that. Big is no deeper than base, but wider, and it has a dropout of 0.3. After what 0.2 does, that is probably its trouble: "wide" below, with the same widths, 8 heads, a dropout of 0.1 and a third of the updates, loses four
# and a half points, where big loses sixteen.

# %% [markdown] tags=["question-09"]
# ### How many heads are best, and why do too many hurt?
#
# Rows A have more or fewer heads at the same cost, so keys are narrower or wider. Rows B keep eight heads and narrow their keys alone.

# %%
def head_rows(result):
    """Lines (row, heads, numbers in a key, BLEU, the paper's BLEU) of base and groups A and B in a result file."""
    base, rows, found = result["base"]["model"], by_row(result["runs"]), []
    for row in [row for row in TABLE_3 if row.group in ("base", "A", "B") and row.name in rows]:
        own = {"h": base["h"], "d_k": base["d_k"] or base["d_model"] // base["h"], **rows[row.name][0]["changes"]}
        found.append([row.name, own["h"], own["d_k"], over_seeds([run["bleu"] for run in rows[row.name]]), row.bleu])
    return found


# %% tags=["active-ipynb"]
# for result in results:
#     if len(lines := head_rows(result)) > 2:
#         display(Markdown(markdown_table(["row", "heads", "numbers in a key", "BLEU", "the paper's BLEU"], lines)))
#         for ax, figure, name in zip(plotting.new_axes(4.5, 3.2, columns=2), FIGURES, ("perplexity", "BLEU")):
#             percent = {**beside_in_percent(result["runs"], figure), "base": (0, 0, 0)}
#             heads = {h: percent[row] for row, h, _, _, _ in lines if row in percent and not row.startswith("d_k")}
#             values, reach, theirs = zip(*(heads[h] for h in sorted(heads)))
#             plotting.lines(sorted(heads), {"here": values, "the paper": theirs}, "heads", f"{name}, minus base, in %", log="x", markers=True, ax=ax)
#             ax.errorbar(sorted(heads), values, yerr=reach, fmt="none", ecolor="grey", capsize=2)
#             ax.set_xticks(sorted(heads), sorted(heads))
#             ax.minorticks_off()

# %% [markdown]
# Grey: two deviations of the difference. **From four to sixteen it hardly matters** for BLEU, in the paper as here; perplexity is a little worse with sixteen. **32 lose in both figures**, and one head loses in perplexity.

# %% [markdown]
# Why do 32 hurt? Each has keys of three numbers. Rows B try that alone: eight heads as before, but keys of three numbers (d_k=16; they have a sixth fewer parameters, too). They lose no less than 32 heads do. That suggests
# that short keys are to blame, not the number: three numbers may be too few to tell many places apart. The paper guesses from the same rows that a dot product
# may not be the best way to compare. Why does one head hurt? Its key is wide, but there is one set of weights: whatever a word needs, it must be fetched with
# the same look. That is the paper's reasoning for several heads (Section 3.2.2); no row here tests it.

# %% [markdown]
# Parameters do not depend on the number of heads. Time does: the table above has 4 CPU minutes for one head and 6.6 for 32, which compute 32 tables of weights.

# %% [markdown]
# ### What else readers ask
#
# The other groups, each row beside the one it should be compared with.

# %%
def further_rows(runs, *names):
    """Lines (row, beside, seeds, perplexity, BLEU) of groups or of single rows."""
    return [[row["row"], row["beside"], row["seeds"], *(in_words(row[figure]) for figure in FIGURES)]
            for row in compare(runs) if {row["group"], row["row"]} & set(names)]


# %% tags=["active-ipynb"]
# def show_group(group, *others):
#     for result in results:
#         if further_rows(result["runs"], group):
#             lines = further_rows(result["runs"], group, *others)
#             display(Markdown(f"**{result['corpus']}**"), Markdown(markdown_table(["row", "compared with", "seeds", "PPL, difference", "BLEU, difference"], lines)))

# %% [markdown] tags=["question-20"]
# **Why are learned positions no better than the sine?** Row E: the paper found no difference. Here learned positions are slightly better, by 0.7 of perplexity and one BLEU point. That point is only
# just beyond two deviations: it counted as none until the rows on shares of the data, below, had all their seeds and moved the median. Attention needs a vector for each place that it can tell from the others, and from which queries and keys can compute
# a distance. The sine is such a table from the start (notebook [07](07_positions.ipynb)). So learning has little to add.
#
# The paper kept the sine because it might serve on longer sentences than any in training. A learned table has vectors there that no step ever changed. So both kinds
# are trained on pairs of at most twelve words, and translate short sentences and longer ones:

# %%
def short_and_long(runs):
    """Lines (row, BLEU of short sentences, of long ones, perplexity of both) of the rows with `longest`, and of two rows their difference, seed by seed (by its own deviation alone)."""
    rows = by_row(run for run in runs if "long" in run)
    columns = [(part, figure) for figure in reversed(FIGURES) for part in ("short", "long")]
    lines = [[name, *(over_seeds([run[part][figure] for run in own]) for part, figure in columns)] for name, own in rows.items()]
    if len(rows) == 2:
        first, second = rows.values()
        judged = [judge({"": by_seed(second, first, part, figure)}, figure) for part, figure in columns]
        lines.append(["the second minus the first", *(in_words(found.get("")) for found in judged)])
    return lines


# %% tags=["active-ipynb"]
# for result in results:
#     if lines := short_and_long(result["runs"]):
#         display(Markdown(markdown_table(["row", "BLEU, short", "BLEU, long", "PPL, short", "PPL, long"], lines)))

# %% [markdown]
# The sine has no advantage on the longer ones, at least not here: three seeds show no difference in any column. How can untrained vectors do? They are random, so
# they differ from each other, as the trained ones do. And most words can probably be found by what they are, without their places. But this test is mild: sentences of Multi30k are short, and
# of those with more than twelve words nine in ten have fewer than twenty (in the validation split). So most of their words stand at places that training did reach.

# %% [markdown] tags=["question-22"]
# ### The hyperparameters look random. Are they?
#
# The learning rate is swept, one seed each: `factor` multiplies it, and `warmup` is how long it climbs; a longer climb ends lower. The rows name warm-ups in the paper's count: 1,000, 4,000 and 12,000 are
# 100, 400 and 1,200 updates here. In the picture, left BLEU, right the highest rate:

# %%
def schedule_grid(result):
    """BLEU of each factor (row) and warm-up (column), the highest rates, and the warm-ups in updates here; None until all have run.

    BLEU is the mean of the seeds with which all of them have run; one that diverged counts 0.
    """
    scores = {(run["row"], run["seed"]): run.get("bleu", 0.0) for run in [*result["runs"], *result["diverged"]]}
    names = [["base" if (factor, warmup) == (1.0, 4000) else f"factor={factor:g},warmup={warmup}" for warmup in WARMUPS] for factor in FACTORS]
    seeds = set.intersection(*({seed for row, seed in scores if row == name} for line in names for name in line))
    if not seeds:
        return None
    base = result["base"]["training"]
    warmups = [round(warmup * base["warmup"] / PAPER.training.warmup) for warmup in WARMUPS]
    peaks = [[peak_rate(result["base"]["model"]["d_model"], warmup, factor * base["factor"]) for warmup in warmups] for factor in FACTORS]
    return [[mean(scores[name, seed] for seed in seeds) for name in line] for line in names], peaks, warmups


# %% tags=["active-ipynb"]
# show_group("schedule")
# for result in results:
#     if grid := schedule_grid(result):
#         scores, peaks, warmups = grid
#         panels = [("BLEU", scores, warmups, FACTORS), ("highest rate, thousandths", [[1000 * rate for rate in line] for line in peaks], warmups, FACTORS)]
#         plotting.heatmaps(panels, across=2, width=3.6, height=3, values=True, labels=("updates of warm-up", "factor"))

# %% [markdown]
# **Our base's pair is the best of nine** (23.8 BLEU, then twice 21.9; perplexity 12.9, then 16.0). Around it lie a slope and a cliff. With a lower rate a run is slow: in 1,500 updates it gets less far.
# With a higher one, or one that climbs too soon, three of nine runs end without having learned to translate at all, with a BLEU under two.

# %% [markdown]
# Height alone does not decide. After 1,200 updates of warm-up a rate of 0.0118 does harm and yet translates; after 100 updates 0.0102 ruins everything. A slow climb is what makes a high rate
# possible (notebook [12](12_optimizer.ipynb) shows the same). And the model matters: with the rate that suits three layers, four learn far too slowly (below, "Deep models").

# %% [markdown]
# So these two numbers cannot be picked at random, nor one without the other. **That the paper's 4,000 is right for its size this does not show**: the factor 1 is the paper's, but 400 updates are our choice (27% of all; the paper's 4% would be 60, and here even 100 fail). And the grid is coarse: its steps are of three or four times.
#
# Smaller steps, of two times, in other numbers (4 or 16 heads, half or twice the inner width) showed no difference in BLEU above, though some in perplexity. That is how round numbers such as 8 and 2,048 can do well.

# %% [markdown] tags=["question-23"]
# ### How much data saturates a given architecture?
#
# Three sizes (narrow: $d_{model}$ 48, $d_{ff}$ 192; base: 96, 384; wide: 192, 768), three seeds each, on all pairs, every third and every ninth.
# Every run has the same number of updates, so on a ninth of the pairs each is seen nine times as often (24 times, not between two and three). This
# shows what new sentences are worth at this budget, and not where a model that is trained to its end has enough of them.

# %%
SHARE_ROWS = {size: ["base" if (size, every) == ("base", 1) else f"{size},every={every}" for every in SHARES] for size in SIZES}


# %%
def by_share(runs):
    """{size: BLEU on a ninth, a third and all of the pairs}, nan where there is none; the mean of the seeds that all have."""
    scores = {name: {run["seed"]: run["bleu"] for run in own} for name, own in by_row(runs).items() if name in sum(SHARE_ROWS.values(), [])}
    seeds = set.intersection(*map(set, scores.values()))
    return {size: [mean(scores[name][seed] for seed in seeds) if seeds and name in scores else math.nan for name in names]
            for size, names in SHARE_ROWS.items()}


# %%
def share_gains(runs):
    """Lines (size, from, to, BLEU gained with each seed, mean and deviation as text): what three times as many pairs bring, by seeds that both have."""
    rows, lines = by_row(runs), []
    for size, names in SHARE_ROWS.items():
        for few, many in pairwise(names):
            gains = by_seed(rows.get(many, []), rows.get(few, []), "bleu")
            found = judge({"": gains}, "bleu").get("")  # by its own deviation alone
            lines.append([size, few, many, ", ".join(f"{gain:+.1f}" for gain in gains) or "-", in_words(found)])
    return lines


# %% tags=["active-ipynb"]
# show_group("data")
# for result in results:
#     if "data" in {run["group"] for run in result["runs"]}:
#         plotting.lines([1 / every for every in SHARES], by_share(result["runs"]), "share of the training pairs", "BLEU", log="x", markers=True)
#         display(Markdown(markdown_table(["size", "from", "to", "BLEU gained, by seeds", "mean"], share_gains(result["runs"]))))

# %% [markdown]
# From a ninth (3,223 pairs) to a third all three gain, the wider the more: 2.05, 3.84 and 5.45 BLEU. From a third to all, narrow and base gain 0.73 and 0.47, under two deviations. **So at this budget more than a third of the corpus shows no gain for
# them**; it seems to be time that is short, not sentences. (Notebook 16 trains on all pairs for twenty times as many tokens, and gets to 40. That is another model, with a beam and averaging, so a hint only.)

# %% [markdown]
# **The wide model gets worse** from a third to all: by 2.4, 1.8 and 1.9 BLEU with the three seeds. When there was one seed we put that down to chance. It is not, and we cannot explain it. Perhaps a wide model must meet a
# sentence more often before it pays: eight times with a third, between two and three with all. Whether more updates would turn it round, no run here tells.

# %% [markdown]
# On a ninth it does worst: it learns the sentences by heart (its perplexity on new ones is 57, base's 40). The middle size has the highest BLEU on every share, beyond two deviations; by perplexity narrow is better on a ninth.

# %% [markdown]
# ### Deep models
#
# Four layers, with the norms before the sub-layers (notebook [03](03_stacks.ipynb)), and with a quarter of the rate, both beside the four layers that failed:

# %% tags=["active-ipynb"]
# show_group("depth")

# %% [markdown]
# One seed each, but the differences are large. **Depth alone is not to blame.** With the norms first the same four layers train, and end better than base. With the paper's order
# of norms, a quarter of the rate brings back most of the BLEU that was lost.

# %% [markdown] tags=["question-07"]
# ### Which parts can I drop when my problem is simple?
#
# The bundled corpus is simple: a strict grammar, one right translation for each sentence. On it the same small base is trained without $W_V$, without the softmax, without the paths around the sub-layers, and with one head:

# %% tags=["active-ipynb"]
# show_group("simple", "h=1")

# %% [markdown]
# One run each, so how far two equal ones lie apart is not known here. **Without $W_V$, without softmax, or with one head** the model still learns to translate. Each has some four BLEU points fewer than the one run of base (87), which may be a lucky one; perplexities are
# 1.35 to 1.38, base's 1.33, and all were still learning. $W_V$ and the matrix behind it, $W_O$, are two in a row, so $W_O$ may do most of the work, though without $W_V$ each head sees only its own 12 of 96 numbers. And the softmax is not the only way to weights that depend on content: plain scores do it, too.

# %% [markdown]
# **Without the paths it does not learn to translate**, at this rate (a lower one was not tried). After 1,500 updates it knows little more than how frequent words are: its perplexity is 331; word frequencies alone would have 399. Notebook [03](03_stacks.ipynb) has a picture of the reason: with LayerNorm alone the gradient arrives, but the input is no
# longer readable. So whoever has a simple problem can take one head, or spare $W_V$ or the softmax (which has no parameters to save); two at once were not tried. What that costs on real text these runs do not tell. On Multi30k one head (row A, above) lost a little perplexity, and no BLEU that three seeds show.

# %% [markdown]
# ## What is to be learned
#
# **As in the paper**: short keys lose (d_k=16, and 32 heads, whose keys are as short). A narrow model loses (d_model=256). One head loses in perplexity. And the more
# label smoothing, the worse the perplexity.

# %% [markdown]
# **Otherwise than in the paper**: fewer layers show no loss, though N=2 is the paper's largest loss in BLEU. Dropout does harm. A wider inner layer gains nothing, and big, the paper's best, loses sixteen points. This fits a model that goes
# through its corpus two or three times: it has little time to make use of more parameters, and knows nothing by heart that dropout would have to keep it from. That is a guess; runs ten times as long would test it. For depth, the order of norms and the rate explain more (Deep models).
#
# **What three seeds cannot tell** is nearly everything under a BLEU point, and so most of Table 3's rows in BLEU. The paper's rows lie as close together; whether its own seeds do, nobody knows.

# %% [markdown]
# `transformer variations --corpus multi30k --workers 2` trains Table 3. `--rows A B` runs two groups, `--rows schedule length data depth` those of the readers,
# `--rows simple h=1 --corpus bundled --folder runs/variations-bundled` the last one; `--seeds 1` takes one seed. Ctrl-C stops, and the same command goes on. On a machine with several GPUs each
# takes a run.
#
# ## Checks
#
# **A row changes what it names, and nothing else**, in the paper's size and in small:

# %% tags=["active-ipynb"]
# for row in [*TABLE_3, *QUESTIONS]:
#     for base, changes in ((PAPER, row.changes), (SMALL, scaled(row.changes, SMALL))):
#         e = with_changes(base, changes)
#         differ = {name for part in ("model", "training") for name, value in vars(getattr(e, part)).items()
#                   if value != getattr(getattr(base, part), name)}
#         assert differ <= set(changes), (row.name, differ)
#         assert all(setting(e, name) == value for name, value in changes.items()), row.name

# %% [markdown]
# **Row A has as many parameters whatever the number of heads**, to the last one.

# %% tags=["active-ipynb"]
# for base in (PAPER, SMALL):
#     counts = {parameters_of(with_changes(base, scaled(row.changes, base)).model) for row in choose(["A"])}
#     assert len(counts) == 1

# %% [markdown]
# ## Exercise
#
# Replace `...` and run the cell; it stays silent when you are right. Keys of 16 instead of 64 save how many parameters in the paper's base
# model? Count by hand: which matrices become smaller, and how many of them are there?

# %% tags=["active-ipynb"]
# saved = ...
# if saved is not ...:
#     assert saved == round(1e6 * (millions(TABLE_3[0]) - millions(TABLE_3[5])))

# %% [markdown]
# <details><summary>Solution</summary>
#
# `saved = 18 * 2 * 512 * 8 * (64 - 16)`: 6 layers of the encoder with one attention, 6 of the decoder with two, in each of the 18 $W_Q$ and $W_K$,
# from 512 numbers to $8 \cdot 64$ or $8 \cdot 16$.
# </details>

# %% [markdown]
# ## Next
#
# [18 Parsing](18_parsing.ipynb) gives the same model another task. In Colab the next notebook imports this module from the installed package; to
# try changes of your own, clone the repository and install it with `pip install -e .`.
