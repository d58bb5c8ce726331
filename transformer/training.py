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
# Everything is in place: a model, batches, an optimizer with its schedule, a smoothed loss. This notebook puts them into one
# loop (Section 5), and adds what a run of several hours needs: a log, validation on sentences not trained on, checkpoints,
# and a way to stop, and to go on later as if nothing had happened.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import json
import math
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from transformer.attention import padding_mask
from transformer.data import collate, epoch_batches, lengths_of, token_batches
from transformer.hardware import (
    Meter, autocast, choose_precision, copies_in_step, loss_scaler, matmul_precision,
    matmul_rate, peak_memory, process_count, process_number, sum_over_processes,
    without_exchange,
)
from transformer.fast.loss import projected_loss
from transformer.weights import load_parameters, load_weights, save_weights
from transformer.files import write_file
from transformer.optimizer import adam, learning_rate, set_learning_rate


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# import itertools
# import tempfile
#
# from transformer import plotting
# from transformer.data import Tokenizer, encode_pairs
# from transformer.corpora import read_corpus
# from transformer.model import Transformer, TransformerConfig
#
# torch.manual_seed(0)
# torch.set_num_threads(1)      # the models below are too small to share between cores

# %% [markdown]
# ## Settings
#
# Section 5 fixes most of them: batches of about 25,000 source and 25,000 target tokens (5.1), 100,000 updates for the base model
# (5.2), 4,000 of them with a rising learning rate (5.3), label smoothing 0.1 (5.4). The paper keeps weights by the clock,
# every ten minutes. **Deviation: here that happens every `save_every` updates** (1,000 unless told otherwise; ten minutes were about 1,500 of the base model), so that two runs of the same settings
# keep the same weights. And padding counts in `batch_tokens`, so that memory is bounded; the real tokens of an update are somewhat fewer. Clipping, which shortens a gradient that is longer than a limit, is off by default: the paper names no
# limit.

# %%
def check_settings(config):
    """ValueError, naming the setting and its range, where one of a `TrainingConfig` makes no sense."""
    values = {name: value for name, value in vars(config).items() if value is not None or name not in ("minutes", "clip", "patience")}
    for name in ("updates", "batch_tokens", "accumulate", "warmup", "save_every", "keep", "patience"):
        if name in values and (type(values[name]) is not int or values[name] < 1):
            raise ValueError(f"{name} must be a whole number of at least 1, not {values[name]!r}")
    for name in ("minutes", "factor", "clip", "save_minutes"):
        if name in values and (type(values[name]) not in (int, float) or not values[name] > 0):
            raise ValueError(f"{name} must be above 0, not {values[name]!r}")
    if not 0 <= config.epsilon_ls < 1:
        raise ValueError(f"epsilon_ls must be at least 0 and below 1, not {config.epsilon_ls}")
    choose_precision(torch.device("cpu"), config.precision)  # refuses an unknown name


# %%
@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the defaults are the paper's (Section 5). Raises ValueError for a setting out of its range."""
    updates: int = 100_000  # weight updates in all
    minutes: float | None = None  # stop after so many minutes, validating and saving included, if that comes before the last update
    batch_tokens: int = 25_000  # source tokens, and as many target tokens, in a batch, padding included
    accumulate: int = 1  # batches whose gradients are added up for one update; several processes share them out
    warmup: int = 4000  # updates during which the learning rate rises
    factor: float = 1.0  # multiplies the paper's learning rate
    epsilon_ls: float = 0.1  # label smoothing
    clip: float | None = None  # largest norm of the gradient; the paper names none
    save_every: int = 1000  # updates between validations; the weights are kept each time
    save_minutes: float = 10.0  # about how many minutes a killed run loses at most (one in a long validation, that as well)
    keep: int = 5  # weights kept, and averaged at the end
    patience: int | None = None  # stop after so many validations without a better one
    precision: Literal["auto", "fp32", "bf16", "fp16", "medium"] = "auto"  # auto: bf16 or fp16 on a GPU; medium: fp32 by oneDNN on a CPU (notebook 11)
    seed: int = 2017  # decides the order of the batches, and dropout
    __post_init__ = check_settings


# %% [markdown]
# For what follows we need a small corpus and a model so small that it learns while you watch: the first 300 pairs of the
# bundled corpus, a vocabulary of 600 types, one layer, $d_{model} = 64$.

# %% tags=["active-ipynb"]
# pairs, held_out = read_corpus("bundled", "train")[:300], read_corpus("bundled", "validation")[:50]
# tokenizer = Tokenizer.train([sentence for pair in pairs for sentence in pair], vocab_size=600)
# encoded, encoded_held_out = encode_pairs(tokenizer, pairs), encode_pairs(tokenizer, held_out)
# small = TransformerConfig(tokenizer.vocab_size, d_model=64, d_ff=256, N=1, h=4, max_positions=200)
# quick = TrainingConfig(updates=64, batch_tokens=1500, warmup=40, factor=0.5, save_every=8)
# print(pairs[0][0], "->", pairs[0][1])
# print(sum(len(target) - 1 for _, target in encoded), "target tokens in", len(token_batches(encoded, 1500)), "batches")

# %% [markdown]
# ## Batches without end
#
# An epoch is one pass over the corpus. Each epoch mixes the batches anew, in an order that its number and the seed decide.
# So a place in the stream is two numbers, epoch and index, and the stream can start from any place. That will make it
# possible to go on after a break.

# %%
def endless_batches(encoded, batch_tokens, seed, epoch=0, index=0):
    """Yield (epoch, index, indices of the batch's pairs) for ever, from a place in the order that seed decides."""
    while True:
        for i, rows in enumerate(epoch_batches(encoded, batch_tokens, seed * 1_000_003 + epoch, start=index), index):
            yield epoch, i, rows
        epoch, index = epoch + 1, 0


# %% tags=["active-ipynb"]
# first = list(itertools.islice(endless_batches(encoded, 1500, seed=1), 20))
# again = list(itertools.islice(endless_batches(encoded, 1500, seed=1, epoch=first[9][0], index=first[9][1]), 11))
# assert again == first[9:]                                                   # the tenth and on, reached directly

# %% [markdown]
# Before hours of work it pays to look at the data once.

# %%
def check_pairs(encoded, max_positions):
    """ValueError where there is no pair, or, naming it, where one is longer than the model has positions."""
    if not len(encoded):
        raise ValueError("no sentence pairs to train on")
    for start in range(0, len(encoded), 100_000):
        source, target = lengths_of(encoded, range(start, min(start + 100_000, len(encoded))))
        longest = np.maximum(source, target - 1)  # the decoder never reads the end mark
        number = int((longest > max_positions).argmax())
        if longest[number] > max_positions:
            raise ValueError(f"sentence pair {start + number + 1} has {longest[number]} tokens, more than the model's "
                             f"{max_positions} positions: shorten or remove it, or train with a larger max_positions")


# %% [markdown]
# ## What training makes small
#
# Model and loss as one module: token ids go in, a number comes out. Short numbers (notebook 11) are switched on inside it, and copies
# in several processes are wrapped around it. The logits never exist as a whole ([notebook 11](11_hardware.ipynb)).

# %%
class Objective(nn.Module):
    """The label-smoothed loss of a model on a `Batch`, summed over real target tokens (Section 5.4), in nats."""

    def __init__(self, model, epsilon_ls=0.1, precision="fp32"):
        super().__init__()
        self.model, self.epsilon_ls, self.precision = model, epsilon_ls, precision

    def forward(self, batch):
        pad_id, device = self.model.config.pad_id, batch.source.device
        with autocast(device, self.precision):
            memory = self.model.encode(batch.source)
            x = self.model.states(batch.decoder_input, memory, padding_mask(batch.source, pad_id))
            return projected_loss(x, self.model.output.weight, batch.gold, self.epsilon_ls, pad_id)


# %% [markdown]
# ## One update
#
# Forward, loss, backward, clip, step. The loss is a mean over the real target tokens of the whole update. Where a batch
# does not fit into memory, `accumulate` adds up the gradients of several smaller ones; dividing each by the tokens of
# *all* of them gives the gradient of one large batch (up to rounding, and dropout's luck). The schedule counts updates, never the parts of one.
#
# Before each batch the random numbers of dropout begin anew, from a seed that belongs to this batch of this update. So
# they are the same whichever process works on it, and after whatever break.

# %%
def batch_seed(seed, update, number):
    """The seed for dropout in one batch (counted within its update) of one update."""
    return ((seed * 1_000_003 + update) * 1009 + number) % 2**63


# %%
def update_weights(objective, optimizer, scaler, batches, tokens, rate, clip=None):
    """One update from this process's share of batches, [(seed, `Batch`), ...].

    tokens: real target tokens in the batches of all processes. Returns this process's part of the loss per target
    token (nats), and the norm of the gradient; where that is infinite or not a number, the weights stay as they were.
    """
    objective.train()
    optimizer.zero_grad()
    parameters = list(objective.parameters())
    total, device = 0.0, parameters[0].device
    for number, (seed, batch) in enumerate(batches, 1):
        torch.manual_seed(seed)
        with without_exchange(objective, more=number < len(batches)):
            loss = objective(batch.to(device)) / tokens
            scaler.scale(loss * process_count()).backward()  # processes average: this makes it a sum
        total = total + loss.detach()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(parameters, clip or math.inf)
    if norm.isfinite():
        set_learning_rate(optimizer, rate)
        scaler.step(optimizer)
    scaler.update()
    return total.item(), norm.item()


# %% tags=["active-ipynb"]
# model, batch = Transformer(small), collate(encoded[:16])
# objective, optimizer, scaler = Objective(model), adam(model), loss_scaler(torch.device("cpu"), "fp32")
# tokens = (batch.gold != 0).sum()
# losses = [update_weights(objective, optimizer, scaler, [(n, batch)], tokens, 0.002)[0] for n in range(4)]
# print("loss on the same 16 pairs, update by update:", [round(loss, 2) for loss in losses])

# %% [markdown]
# It starts a little above $\ln 600 = 6.4$, the loss of a guess among 600 types, and falls with every update.
#
# **Two half batches equal the whole one.** Without dropout, and in float64, the gradients agree to rounding, although
# the halves are padded differently.

# %% tags=["active-ipynb"]
# exact = Transformer(TransformerConfig(600, d_model=64, d_ff=256, N=1, h=4, P_drop=0.0)).double()
# def gradient_of(*batches):
#     update_weights(Objective(exact), adam(exact), scaler, [(0, b) for b in batches], tokens, rate=0.0)      # only the gradient
#     return torch.cat([p.grad.flatten() for p in exact.parameters()])
# whole, halves = gradient_of(batch), gradient_of(collate(encoded[:8]), collate(encoded[8:16]))
# print(f"largest difference {(whole - halves).abs().max():.1e}, largest entry {whole.abs().max():.2f}")
# assert torch.allclose(whole, halves, rtol=0, atol=1e-12)

# %% [markdown]
# ## Validation
#
# Whether the model learns more than to recite shows on sentences outside training: the mean
# cross-entropy of a target token, given the true tokens before it, without smoothing and without dropout. Its exponential is the
# perplexity that Table 3 reports.

# %%
@torch.no_grad()
def validation_loss(model, encoded, batch_tokens=4000):
    """{"validation_loss": cross-entropy on held-out pairs, nats a target token, without smoothing or dropout}."""
    model.eval()
    total, tokens, pad_id, device = 0.0, 0, model.config.pad_id, next(model.parameters()).device
    objective = Objective(model, epsilon_ls=0.0)
    for rows in token_batches(encoded, batch_tokens):
        total += objective(collate([encoded[i] for i in rows], pad_id).to(device)).item()
        tokens += sum(len(encoded[i][1]) - 1 for i in rows)
    return {"validation_loss": total / tokens}


# %% [markdown]
# By hand, one sentence at a time and token by token:

# %% tags=["active-ipynb"]
# by_hand = []
# for source, target in encoded_held_out[:10]:
#     log_p = model.eval()(torch.tensor([source]), torch.tensor([target[:-1]]))[0].log_softmax(dim=-1)
#     by_hand += [-log_p[t, token].item() for t, token in enumerate(target[1:])]
# mean = sum(by_hand) / len(by_hand)
# assert abs(mean - validation_loss(model, encoded_held_out[:10])["validation_loss"]) < 1e-5

# %% [markdown]
# ## Checkpoints
#
# What does the next update depend on? The weights; Adam's two moments and its step count; the place in the data; the number
# of the update, for the schedule and for dropout's seeds; in fp16 the scale of the loss. A checkpoint holds all of it. The training settings (`TrainingConfig`) and the corpus it does not hold: who goes on
# brings the same ones (notebook 16 keeps them beside it, and checks).
#
# The file is in the safetensors format, which [notebook 08](08_model.ipynb) chose for weights.

# %%
def save_checkpoint(path, model, optimizer, progress):
    """What the next update depends on besides settings and corpus: weights, Adam's moments, the place in the data.

    progress: a dict of plain numbers and lists, kept as JSON. No pickle.
    """
    tensors = {}
    for name, p in model.named_parameters():
        tensors[f"model.{name}"] = p
        for key, value in optimizer.state[p].items():
            tensors[f"adam.{key}.{name}"] = value
    save_weights(tensors, path, {"progress": json.dumps(progress), "config": json.dumps(asdict(model.config))})


# %% [markdown]
# Some configurations differ without any weight having another shape: the number of heads, say. So the checkpoint
# remembers its model's configuration (`TransformerConfig`), and loading compares.

# %%
def check_config(path, saved, config):
    """ValueError, naming what differs, where a checkpoint was written by a model of another configuration."""
    differ = [f"{name} is {saved.get(name)} there and {value} here" for name, value in asdict(config).items()
              if saved.get(name) != value]
    if differ:
        raise ValueError(f"{path} is of another configuration ({', '.join(differ)}): resume with the settings the run began with")


# %%
def load_checkpoint(path, model, optimizer):
    """Put model and optimizer back as `save_checkpoint` found them; return its progress.

    Raises ValueError for a file that is cut off, of another configuration, or without a training state.
    """
    tensors, metadata = load_weights(path)
    if "progress" not in metadata:
        raise ValueError(f"{path} holds weights but no training state: resume needs the checkpoint.safetensors of a run")
    check_config(path, json.loads(metadata["config"]), model.config)
    names = [name for name, _ in model.named_parameters()]
    load_parameters(model, {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}, path)
    moments = [{key: tensors[f"adam.{key}.{name}"] for key in ("step", "exp_avg", "exp_avg_sq")
                if f"adam.{key}.{name}" in tensors} for name in names]  # none before the first update
    optimizer.load_state_dict({**optimizer.state_dict(), "state": dict(enumerate(moments))})
    return json.loads(metadata["progress"])


# %% [markdown]
# The loop keeps one checkpoint to resume from, always the newest, and beside it the weights alone of the last few
# validations: the paper averages the last five of its base model, the last twenty of the big one (notebook [15](15_decoding.ipynb)).

# %%
def keep_weights(folder, model, update, keep):
    """Save weights as folder/weights/<update>.safetensors and delete all but the newest `keep`."""
    save_weights(dict(model.named_parameters()), folder / "weights" / f"{update:08d}.safetensors")
    for old in sorted((folder / "weights").glob("*.safetensors"))[:-keep]:
        old.unlink()


# %%
def save_state(folder, model, optimizer, state, keep=0):
    """Write a run's log, the checkpoint to resume from, and with keep > 0 the weights; nothing without a folder."""
    if folder is None:
        return
    log = "".join(json.dumps(row) + "\n" for row in state["log"])
    write_file(Path(folder) / "log.jsonl", lambda temporary: temporary.write_text(log, encoding="utf8"))
    if keep:
        keep_weights(Path(folder), model, state["update"], keep)
    save_checkpoint(Path(folder) / "checkpoint.safetensors", model, optimizer, state)


# %% [markdown]
# ## Stopping without loss
#
# Ctrl-C (in Jupyter: the stop button) sends the signal SIGINT, and Python raises an exception wherever it happens to be:
# perhaps with half of the weights updated. Inside a `with catch_interrupt():` block (below) the first Ctrl-C only leaves a note. The loop reads it after
# the update, saves, and raises `Interrupted`. A second Ctrl-C, from somebody in a hurry, stops at once. SIGTERM, which a
# cluster sends before it takes a machine away, is treated alike.
#
# Nothing can be noted when a process is killed outright, or Colab ends the session. For that the loop saves by the clock, too.

# %%
class Interrupted(Exception):
    """Training was stopped by Ctrl-C or SIGTERM; what was done is saved."""


# %%
@contextmanager
def catch_interrupt():
    """Inside the block the first Ctrl-C or SIGTERM only adds to the list that is yielded; a second raises KeyboardInterrupt."""
    notes = []

    def note(number, _):
        if notes:
            raise KeyboardInterrupt
        notes.append("Ctrl-C" if number == signal.SIGINT else "SIGTERM")

    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread only
        yield notes
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield notes
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# %% tags=["active-ipynb"]
# with catch_interrupt() as notes:
#     signal.raise_signal(signal.SIGINT)                                      # what Ctrl-C does
#     print("still here, with a note:", notes)

# %% [markdown]
# ## The loop
#
# Small helpers first. A few numbers say how far a run has come (losses and norms are those since the last row of the log);
# a run ends when its updates, its minutes or its patience are used up; and every validation adds a row to the log.

# %%
def new_state():
    """How far a run has come before its first update; plain numbers and lists, because checkpoints keep it as JSON."""
    return {"update": 0, "epoch": 0, "index": 0, "tokens": 0, "seconds": 0.0, "skipped": 0, "skipped_in_a_row": 0,
            "scaler": {}, "losses": [], "norms": [], "best": None, "since_best": 0, "log": []}


# %%
def finished(state, config):
    """True when the updates, the minutes or the patience are used up."""
    return (state["update"] >= config.updates or (config.minutes is not None and state["seconds"] >= 60 * config.minutes)
            or (config.patience is not None and state["since_best"] >= config.patience))


# %%
MOST_SKIPPED = 20  # updates in a row whose gradient is not a number; fp16 may skip some while its scale settles


class Diverged(ValueError):
    """Losses or gradients that are no numbers any more."""


def count_update(state, loss, norm):
    """Note an update's loss and norm, or that it was skipped; `Diverged` after too many of those in a row."""
    if math.isfinite(norm):
        state["losses"].append(loss)
        state["norms"].append(norm)
        state["skipped_in_a_row"] = 0
        return
    state["skipped"] += 1
    state["skipped_in_a_row"] += 1
    if state["skipped_in_a_row"] >= MOST_SKIPPED:
        raise Diverged(f"the gradient is {norm} (loss {loss:.3g}), for the {MOST_SKIPPED}th update in a row: training "
                       "has diverged. What was saved is from before; start again with a smaller factor, a longer warmup, "
                       "or a clip of 1")


# %%
def share(picked, encoded, seed, update, pad_id):
    """This process's batches of one update, with their seeds; and of all processes: pairs, source and target tokens."""
    mine = list(enumerate(picked))[process_number()::process_count()]
    batches = [(batch_seed(seed, update, n), collate([encoded[i] for i in rows], pad_id)) for n, (_, _, rows) in mine]
    pairs = [encoded[i] for _, _, rows in picked for i in rows]
    return batches, len(pairs), sum(len(s) for s, _ in pairs), sum(len(t) - 1 for _, t in pairs)


def check_share(config):
    """ValueError where an update has no batch for one of the processes."""
    if config.accumulate % process_count():
        raise ValueError(f"accumulate is {config.accumulate}: {process_count()} processes need a multiple of {process_count()}, "
                         "so that each has as many batches in every update")


# %% [markdown]
# A validation is better than those before it where its BLEU ([notebook 15](15_decoding.ipynb)) is higher, or, if nothing was
# translated, its loss lower.

# %%
def merit(row):
    """What makes a row of the log better than another: BLEU where it was measured, otherwise a low loss."""
    found = row.get("bleu", -row.get("validation_loss", row["loss"]))
    return -math.inf if math.isnan(found) else found


# %%
def log_row(state, rate, speed, validate, model):
    """Add a row to the log, its loss (nats a target token) and norm averaged since the last; return the row."""
    def mean(values):
        return sum(values) / len(values) if values else math.nan

    row = {"update": state["update"], "epoch": state["epoch"], "tokens": state["tokens"], "rate": rate,
           "seconds": round(state["seconds"], 3), **speed, "skipped": state["skipped"],
           "loss": mean(state["losses"]), "norm": mean(state["norms"])}
    if validate is not None:
        model.eval()
        row.update(validate(model))
    better = state["best"] is None or merit(row) > state["best"]
    state.update(losses=[], norms=[], best=merit(row) if better else state["best"], since_best=0 if better else state["since_best"] + 1)
    state["log"].append(row)
    return row


# %% [markdown]
# Where TensorBoard is installed (it draws the curves of a run in the browser), it gets the same rows.

# %%
def write_events(folder, row):
    """Add a row's figures to folder/tensorboard; nothing without a folder, or where TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return
    if folder is not None:
        with SummaryWriter(Path(folder) / "tensorboard") as writer:
            for name, value in row.items():
                writer.add_scalar(name, value, row["update"])


# %%
def shown(row, device):
    """What the progress bar shows of a row, beside the time that is left."""
    names = ("loss", "validation_loss", "bleu", "tokens_per_second", "utilisation", "skipped")
    return {**{name: row[name] for name in names if row.get(name)}, "GiB": round(peak_memory(device), 1)}


# %% [markdown]
# What a run works with, in one place: made anew, or brought back to where a checkpoint found it.

# %%
@dataclass
class Run:
    """A run in memory: the loss with its model, the optimizer, the loss scaler, the speed meter, and how far it has come."""

    objective: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: object
    meter: Meter
    state: dict
    saved: float  # when it was last saved, by time.monotonic()


# %%
def begin(model, config, folder, resume):
    """A `Run` at its start, or with resume=True where folder's checkpoint.safetensors left it; ValueError for a folder with another run."""
    check_share(config)
    if folder is not None and not resume and (Path(folder) / "checkpoint.safetensors").is_file():
        raise ValueError(f"{folder} already holds a run: go on with it (resume=True), or name another folder")
    device = next(model.parameters()).device
    precision = choose_precision(device, config.precision)
    optimizer, scaler = adam(model), loss_scaler(device, precision)
    if folder is None and resume:
        raise ValueError("resume=True needs the folder of the run to go on with")
    state = load_checkpoint(Path(folder) / "checkpoint.safetensors", model, optimizer) if resume else new_state()
    if state["scaler"]:
        scaler.load_state_dict(state["scaler"])
    peak = matmul_rate(device, precision) * process_count()
    objective = copies_in_step(Objective(model, config.epsilon_ls, precision))
    return Run(objective, optimizer, scaler, Meter(model.config, peak), state, time.monotonic())


# %%
def record(run, model, rate, validate, config, folder, bar):
    """Log, validate and save if it is time to: every save_every updates, at the end, and every save_minutes (saving only)."""
    state = run.state
    if finished(state, config) or state["update"] % config.save_every == 0:
        row = log_row(state, rate, run.meter.read(), validate, model)
        bar.set_postfix(shown(row, next(model.parameters()).device))
        write_events(folder, row)
        waited = state["since_best"] if config.patience else 0  # the weights before that many validations are the best
        save_state(folder, model, run.optimizer, state, config.keep + waited)
        run.meter.restart()
    elif time.monotonic() - run.saved > 60 * config.save_minutes:
        save_state(folder, model, run.optimizer, state)
    else:
        return
    run.saved = time.monotonic()


# %% [markdown]
# And the loop: batches; rate from the schedule; forward, loss, backward, clip, step (all in `update_weights`); count; every so
# often log and save. What `validate` measures is the caller's business: any function from a model to a dict of figures.
# A Ctrl-C ends the loop after a whole update; what comes after it saves. Of several processes, the first
# one validates, logs and saves, and the others wait for it.

# %%
def train(model, encoded, config, folder=None, validate=None, resume=False, quiet=False):
    """Train a model on encoded pairs (see `encode_pairs`); return the log, one dict a validation.

    validate(model) -> dict of figures, every config.save_every updates and at the end. In folder, each of these leaves log.jsonl,
    weights/ and checkpoint.safetensors; resume=True, with the same pairs and config, goes on. Raises Interrupted after Ctrl-C before
    the last update (in a folder all is saved), ValueError for pairs or a checkpoint that do not fit, and where training diverges.
    """
    check_pairs(encoded, model.config.max_positions)
    run, device, first = begin(model, config, folder, resume), next(model.parameters()).device, process_number() == 0
    state, started = run.state, time.monotonic() - run.state["seconds"]
    stream = endless_batches(encoded, config.batch_tokens, config.seed, state["epoch"], state["index"])
    bar = tqdm(total=config.updates, initial=state["update"], unit="update", disable=quiet or not first)
    with catch_interrupt() as notes, matmul_precision(config.precision), bar:
        while not sum_over_processes(bool(notes) or first and finished(state, config), device):
            state["update"] += 1
            picked = [next(stream) for _ in range(config.accumulate)]
            batches, pairs, source_tokens, tokens = share(picked, encoded, config.seed, state["update"], model.config.pad_id)
            rate = learning_rate(state["update"], model.config.d_model, config.warmup, config.factor)
            loss, norm = update_weights(run.objective, run.optimizer, run.scaler, batches, tokens, rate, config.clip)
            count_update(state, sum_over_processes(loss, device), norm)
            state.update(epoch=picked[-1][0], index=picked[-1][1] + 1, tokens=state["tokens"] + tokens,
                         seconds=time.monotonic() - started, scaler=run.scaler.state_dict())
            run.meter.add(pairs, source_tokens, tokens)
            bar.update()
            if first:
                record(run, model, rate, validate, config, folder, bar)
    if not sum_over_processes(first and finished(state, config), device):  # the first alone knows of patience and of its clock
        save_state(folder if first else None, model, run.optimizer, state)
        sum_over_processes(0, device)  # wait: when one process leaves, torchrun stops the others, saving or not
        raise Interrupted(f"stopped after update {state['update']}" + (f", all saved in {folder}" if folder else ""))
    return state["log"]


# %% [markdown]
# ## A first run
#
# Sixty-four updates of the small model, with a validation every eight.

# %% tags=["active-ipynb"]
# model = Transformer(small)
# log = train(model, encoded, quick, validate=lambda model: validation_loss(model, encoded_held_out), quiet=True)
# updates = [row["update"] for row in log]
# plotting.lines(updates, {"training (smoothed, with dropout)": [row["loss"] for row in log],
#                          "validation": [row["validation_loss"] for row in log]}, "update", "nats a target token", markers=True)
# assert log[-1]["validation_loss"] < log[0]["validation_loss"] < log[0]["loss"]
# print("finished epochs:", log[-1]["epoch"], " target tokens:", log[-1]["tokens"])

# %% [markdown]
# Both curves fall throughout, more slowly in the middle. The training curve lies
# higher although it is about sentences the model has seen. Three things raise it: it is smoothed (no model can bring a smoothed
# loss to 0), it is measured with dropout, and each point is a mean over the eight updates before it. Do not compare the two with
# each other, only each with itself.
#
# 64 updates, seven to an epoch, are nine full passes over the 300 pairs. Nothing here translates yet; notebook 16 shows what
# minutes instead of seconds make of it.

# %% [markdown] tags=["question-19"]
# ## Why such a fuss about masking?
#
# Because without the mask training looks just as good, and nothing useful is learned. The decoder is asked for token $t + 1$ while
# the whole target, token $t + 1$ included, lies before it. With the mask it must work the answer out. Without it, it copies.
#
# A toy language makes it visible: sentences of five words, from a vocabulary of ten, translated by reversing their order and replacing each by its partner in the
# other language. Here is a model that forgets the mask; settings, data and the order of the batches are the same.

# %% tags=["active-ipynb"]
# class Peeking(Transformer):
#     def states(self, target, memory, source_mask, caches=None):
#         x = self.positions(self.target_embedding(target))
#         return self.decoder(x, memory, source_mask)                         # no causal mask
#
# sentences = torch.randint(3, 13, (2200, 5)).tolist()                        # 3 to 12: words of one language
# toy = [([*words, 2], [1, *(word + 10 for word in reversed(words)), 2]) for words in sentences]
# toy_config = TransformerConfig(23, d_model=32, d_ff=64, N=1, h=2, P_drop=0.0, max_positions=20)
# toy_training = TrainingConfig(updates=300, batch_tokens=512, warmup=60, factor=0.5, epsilon_ls=0.0, save_every=30)
# models = {"with the mask": Transformer(toy_config), "without the mask": Peeking(toy_config)}
# toy_logs = {name: train(model, toy[:2000], toy_training, quiet=True,
#                         validate=lambda model: validation_loss(model, toy[2000:])) for name, model in models.items()}

# %% [markdown]
# The loss on held-out sentences is measured as in training: the true target goes in. A translator has no true target. It
# starts from the begin mark and reads what it wrote itself, here always the likeliest token:

# %% tags=["active-ipynb"]
# def own_translation(model, source, steps):
#     target = torch.ones(len(source), 1, dtype=torch.long)                   # the begin mark is 1
#     for _ in range(steps):
#         likeliest = model.eval()(source, target)[:, -1:].argmax(dim=-1)
#         target = torch.cat([target, likeliest], dim=1)
#     return target[:, 1:]
#
# tests = collate(toy[2000:])
# right = {name: (own_translation(model, tests.source, 6) == tests.gold).all(dim=1).float().mean().item()
#          for name, model in models.items()}

# %% tags=["active-ipynb"]
# left, right_side = plotting.new_axes(4.5, 3.2, columns=2)
# plotting.lines(range(30, 301, 30), {name: [row["validation_loss"] for row in rows] for name, rows in toy_logs.items()},
#                "update", "held-out loss, nats a token", "true target given", log="y", ax=left)
# plotting.bars({name: 100 * share for name, share in right.items()}, "", "sentences wholly right, %", "own translation", ax=right_side);

# %% tags=["active-ipynb"]
# final = {name: rows[-1]["validation_loss"] for name, rows in toy_logs.items()}
# assert final["without the mask"] < 0.2 and right["without the mask"] < 0.1
# assert final["with the mask"] < 0.2 and right["with the mask"] > 0.7

# %% [markdown]
# Left: both losses become tiny, even on sentences outside training; nothing there warns that one model is useless.
# Right: the model with the mask translates nearly every sentence, the one without it hardly any. It learned "answer with
# the next word of the target", and when it writes by itself there is no next word. (Here both losses are tiny, because the toy has only one right translation. On real text a model with the mask never
# comes near 0, so there a suspiciously good loss is a reason to test the mask.) Look at the model's own translations early.

# %% [markdown]
# ## Checks
#
# **On a CPU, going on equals never stopping, bit for bit.** (A GPU may add in another order each time; there the last digits can differ.) One run of seven updates goes through. Another is stopped by Ctrl-C in the
# middle of its fourth (a hook on the fourth forward pass plays the user), and goes on in a new model with other
# random weights. The data of an epoch, three batches, ends in between.

# %% tags=["active-ipynb"]
# def new_model(seed):
#     torch.manual_seed(seed)
#     return Transformer(small)
#
# place, brief = tempfile.TemporaryDirectory(), TrainingConfig(updates=7, batch_tokens=600, warmup=40, save_every=3)
# whole, parts = Path(place.name) / "whole", Path(place.name) / "parts"
# train(new_model(1), encoded[:50], brief, whole, quiet=True)
# stopped, calls = new_model(1), itertools.count(1)
# stopped.encoder.register_forward_hook(lambda *_: signal.raise_signal(signal.SIGINT) if next(calls) == 4 else None);

# %% tags=["active-ipynb"]
# try:
#     train(stopped, encoded[:50], brief, parts, quiet=True)
# except Interrupted as stop:
#     print("Interrupted:", str(stop).partition(",")[0])
# train(new_model(2), encoded[:50], brief, parts, resume=True, quiet=True)
# a, b = (load_weights(folder / "checkpoint.safetensors")[0] for folder in (whole, parts))
# same = [torch.equal(a[name], b[name]) for name in a]
# print(f"{sum(same)} of {len(same)} tensors are equal: weights, moments and steps")

# %% tags=["active-ipynb"]
# assert a.keys() == b.keys() and all(same)
# assert all(sorted(path.name for path in (folder / "weights").iterdir()) ==
#            ["00000003.safetensors", "00000006.safetensors", "00000007.safetensors"] for folder in (whole, parts))

# %% [markdown]
# The stop leaves no weights of its own beside those of updates 3, 6 and 7, so what is averaged at the end is the same, too.
#
# **A bad checkpoint gets one clear sentence.** Cut off; of a model with another number of heads; weights only.

# %% tags=["active-ipynb"]
# cut = Path(place.name) / "cut.safetensors"
# cut.write_bytes((whole / "checkpoint.safetensors").read_bytes()[:-1000])
# other = TransformerConfig(small.vocab_size, d_model=64, d_ff=256, N=1, h=2, max_positions=200)
# for path, config in [(cut, small), (whole / "checkpoint.safetensors", other), (whole / "weights/00000007.safetensors", small)]:
#     try:
#         load_checkpoint(path, model := Transformer(config), adam(model))
#         raise AssertionError("a bad checkpoint was taken")
#     except ValueError as error:
#         print("-", str(error).replace(place.name, "run"))

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** Your GPU holds batches of at most 4,096 tokens. Which `TrainingConfig` makes updates of about 25,000, and
# otherwise follows the paper?

# %% tags=["active-ipynb"]
# yours = ...
# if yours is not ...:
#     assert yours.batch_tokens <= 4096 and abs(yours.batch_tokens * yours.accumulate - 25_000) <= 500
#     assert (yours.warmup, yours.updates, yours.factor) == (4000, 100_000, 1.0)

# %% [markdown]
# <details><summary>Solution</summary>
#
# `yours = TrainingConfig(batch_tokens=3571, accumulate=7)`: seven batches an update, $7 \cdot 3571 = 24997$. Learning rate and
# warm-up stay as they are, because they count updates.
# </details>
#
# **2.** Of a run's log, which update would you choose, if only one set of weights may be kept? Write a function from a log to
# the number of that update.

# %% tags=["active-ipynb"]
# def best_update(log):
#     return ...
#
# if best_update(log) is not ...:
#     rows = [{"update": 10, "loss": 3.0, "validation_loss": 2.5}, {"update": 20, "loss": 2.0, "validation_loss": 2.2},
#             {"update": 30, "loss": 1.0, "validation_loss": 2.4}]
#     assert best_update(rows) == 20

# %% [markdown]
# <details><summary>Solution</summary>
#
# `return min(log, key=lambda row: row["validation_loss"])["update"]`: the training loss goes on falling while the model learns
# its sentences by heart; only sentences outside training can tell.
# </details>

# %% [markdown]
# ## Next
#
# [15 Decoding](15_decoding.ipynb) writes translations with a trained model, better than word by word, and scores them. In
# Colab the next notebook imports this module from the installed package; to try changes of your own, clone the repository
# and install it with `pip install -e .`.
