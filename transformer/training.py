# %% [markdown]
# # 5 Training

# %%
import json
import signal
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tqdm.auto import tqdm

from transformer.data import collate, token_batches
from transformer.model import load_parameters, load_weights, save_weights, write_file
from transformer.optimizer import adam, learning_rate, set_learning_rate
from transformer.regularization import label_smoothing_loss

# %% [markdown]
# ## Settings

# %%
@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the defaults are the paper's (Section 5)."""

    updates: int = 100_000
    """weight updates in all"""
    minutes: float | None = None
    """stop after so many minutes of training, if that comes before the last update"""
    batch_tokens: int = 25_000
    """source tokens, and as many target tokens, in a batch, padding included"""
    accumulate: int = 1
    """batches whose gradients are added up for one update"""
    warmup: int = 4000
    """updates during which the learning rate rises"""
    factor: float = 1.0
    """multiplies the paper's learning rate"""
    epsilon_ls: float = 0.1
    """label smoothing"""
    clip: float | None = None
    """largest norm of the gradient; the paper names none"""
    save_every: int = 1000
    """updates between checkpoints, and between validations"""
    keep: int = 5
    """checkpoints kept, and averaged at the end"""
    seed: int = 2017
    """decides the order of the batches, and dropout"""

    def __post_init__(self):
        for name in ("updates", "batch_tokens", "accumulate", "warmup", "save_every", "keep"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0 <= self.epsilon_ls < 1:
            raise ValueError(f"epsilon_ls must be at least 0 and below 1, not {self.epsilon_ls}")


# %% [markdown]
# ## Batches without end

# %%
def endless_batches(encoded, batch_tokens, seed, epoch=0, index=0):
    """Yield (epoch, index, batch indices) for ever, from a given place in the order that seed decides."""
    while True:
        batches = token_batches(encoded, batch_tokens, seed=seed * 1_000_003 + epoch)
        for i in range(index, len(batches)):
            yield epoch, i, batches[i]
        epoch, index = epoch + 1, 0


# %% [markdown]
# ## Checkpoints

# %%
def save_checkpoint(path, model, optimizer, progress):
    """Everything that the next update depends on: weights, Adam's moments, the random state, the place in the data.

    progress: a dict of plain numbers, kept as JSON. No pickle.
    """
    tensors = {f"model.{name}": p for name, p in model.named_parameters()}
    for name, p in model.named_parameters():
        for key, value in optimizer.state[p].items():
            tensors[f"adam.{key}.{name}"] = value
    tensors["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    save_weights(tensors, path, {"progress": json.dumps(progress), "config": json.dumps(asdict(model.config))})


# %%
def load_checkpoint(path, model, optimizer):
    """Put model, optimizer and random state back as they were; return progress."""
    tensors, metadata = load_weights(path)
    if "progress" not in metadata:
        raise ValueError(f"{path} holds weights but no training state: resume needs the checkpoint.safetensors of a run")
    parts = {"model": {}, "adam": {}, "random": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    load_parameters(model, parts["model"], path)
    device = next(model.parameters()).device
    for name, p in model.named_parameters():
        state = {key.removesuffix(f".{name}"): value for key, value in parts["adam"].items() if key.endswith(f".{name}")}
        optimizer.state[p] = {key: value if key == "step" else value.to(device) for key, value in state.items()}
    torch.set_rng_state(parts["random"]["cpu"])
    if "cuda" in parts["random"] and torch.cuda.is_available():
        torch.cuda.set_rng_state(parts["random"]["cuda"])
    return json.loads(metadata["progress"])


# %%
def keep_weights(folder, model, update, keep):
    """Save weights as folder/weights/<update>.safetensors and delete all but the newest `keep`."""
    save_weights(dict(model.named_parameters()), folder / "weights" / f"{update:08d}.safetensors")
    for old in sorted((folder / "weights").glob("*.safetensors"))[:-keep]:
        old.unlink()


# %% [markdown]
# ## Stopping without loss

# %%
class Interrupted(Exception):
    """Training was stopped by Ctrl-C; what was done is saved."""


# %%
@contextmanager
def catch_interrupt():
    """Inside the block the first Ctrl-C only sets a flag, so that an update is never cut in two."""
    asked = []
    try:
        before = signal.signal(signal.SIGINT, lambda *_: asked.append(True) if not asked else signal.default_int_handler())
    except ValueError:  # not in the main thread: Ctrl-C arrives elsewhere
        yield asked
        return
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


# %% [markdown]
# ## The loop

# %%
def update_weights(model, optimizer, batches, rate, config):
    """One update from one or more batches; returns the loss per target token (nats) and the number of those."""
    model.train()
    optimizer.zero_grad()
    tokens = sum((batch.gold != model.config.pad_id).sum().item() for batch in batches)
    total = 0.0
    for batch in batches:
        logits = model(batch.source, batch.decoder_input)
        loss = label_smoothing_loss(logits, batch.gold, config.epsilon_ls, model.config.pad_id, "sum") / tokens
        loss.backward()
        total += loss.item()
    if config.clip:
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
    set_learning_rate(optimizer, rate)
    optimizer.step()
    return total, tokens


# %%
def check_lengths(encoded, max_positions):
    """ValueError, naming the pair, where a sentence has more tokens than the model has positions."""
    for number, pair in enumerate(encoded, 1):
        if max(map(len, pair)) > max_positions:
            raise ValueError(f"sentence pair {number} has {max(map(len, pair))} tokens, more than the model's {max_positions} "
                             "positions: shorten or remove it, or train with a larger max_positions")


# %%
def train(model, encoded, config, folder=None, validate=None, resume=False, quiet=False):
    """Train a model on encoded pairs; return the log, one dict a validation.

    encoded: as `encode_pairs` gives. validate(model) -> dict of figures, called every
    config.save_every updates and at the end. With a folder, each of these also leaves log.jsonl,
    weights/ and checkpoint.safetensors, from which resume=True goes on as if nothing had happened.
    Raises Interrupted after Ctrl-C (all saved) and ValueError for a pair longer than the positions.
    """
    check_lengths(encoded, model.config.max_positions)
    device, optimizer = next(model.parameters()).device, adam(model)
    torch.manual_seed(config.seed)
    state = {"update": 0, "epoch": 0, "index": 0, "tokens": 0, "seconds": 0.0, "losses": [], "log": []}
    if resume:
        state = load_checkpoint(folder / "checkpoint.safetensors", model, optimizer)
    stream = endless_batches(encoded, config.batch_tokens, config.seed, state["epoch"], state["index"])
    bar = tqdm(total=config.updates, initial=state["update"], unit="update", mininterval=1.0, disable=quiet)
    started = time.monotonic() - state["seconds"]
    with catch_interrupt() as interrupted, bar:
        while not finished(state, config):
            picked = [next(stream) for _ in range(config.accumulate)]
            batches = [collate([encoded[i] for i in rows], model.config.pad_id).to(device) for _, _, rows in picked]
            state["update"] += 1
            rate = learning_rate(state["update"], model.config.d_model, config.warmup, config.factor)
            loss, tokens = update_weights(model, optimizer, batches, rate, config)
            state["epoch"], state["index"] = picked[-1][0], picked[-1][1] + 1
            state["tokens"] += tokens
            state["losses"].append(loss)
            state["seconds"] = time.monotonic() - started
            bar.update()
            if state["update"] % config.save_every == 0 or finished(state, config):
                bar.set_postfix(log_row(state, rate, validate, model))
                save_state(folder, model, optimizer, state, config)
            elif interrupted:
                save_state(folder, model, optimizer, state, config)
            if interrupted and not finished(state, config):
                raise Interrupted(f"stopped after update {state['update']}" + (f", all saved in {folder}" if folder else ""))
    return state["log"]


# %%
def finished(state, config):
    """True when the updates or the minutes are used up."""
    return state["update"] >= config.updates or (config.minutes is not None and state["seconds"] >= 60 * config.minutes)


# %%
def log_row(state, rate, validate, model):
    """Add a row to the log: losses in nats a target token, averaged since the last row; return what the bar shows."""
    row = {"update": state["update"], "epoch": state["epoch"], "tokens": state["tokens"], "rate": rate,
           "seconds": round(state["seconds"], 1), "loss": sum(state["losses"]) / len(state["losses"])}
    if validate is not None:
        model.eval()
        row.update(validate(model))
    state["losses"] = []
    state["log"].append(row)
    return {name: f"{value:.3g}" for name, value in row.items() if name not in ("update", "tokens", "seconds", "rate")}


# %%
def save_state(folder, model, optimizer, state, config):
    """Write a run's log, its weights for averaging, and the checkpoint to resume from; nothing without a folder."""
    if folder is None:
        return
    keep_weights(folder, model, state["update"], config.keep)
    log = "".join(json.dumps(row) + "\n" for row in state["log"])
    write_file(folder / "log.jsonl", lambda temporary: temporary.write_text(log, encoding="utf8"))
    save_checkpoint(folder / "checkpoint.safetensors", model, optimizer, state)


# %%
@torch.no_grad()
def validation_loss(model, encoded, batch_tokens=4000):
    """Cross-entropy on held-out pairs, nats a target token, without smoothing; exp of it is the perplexity."""
    total, tokens = 0.0, 0
    for rows in token_batches(encoded, batch_tokens):
        batch = collate([encoded[i] for i in rows], model.config.pad_id).to(next(model.parameters()).device)
        total += label_smoothing_loss(model(batch.source, batch.decoder_input), batch.gold, 0.0, model.config.pad_id, "sum").item()
        tokens += (batch.gold != model.config.pad_id).sum().item()
    return {"validation_loss": total / tokens}
