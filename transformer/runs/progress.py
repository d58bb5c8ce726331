"""Beside the loop of notebook 14: what a run counts, logs, saves and shows; when it stops."""

import json
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from tqdm import tqdm

from transformer.models.checkpoint import check_buffers, check_folder, damaged, load_checkpoint, plain, save_state
from transformer.core.checks import Diverged
from transformer.core.distributed import check_share, process_count, process_number, sum_over_processes
from transformer.core.files import prepare_folder
from transformer.hardware import Meter, choose_precision, loss_scaler, matmul_rate, peak_memory
from transformer.core.interrupt import Interrupted, catch_interrupt
from transformer.core.weights import check_numbers

MOST_SKIPPED = 20  # updates in a row without a finite gradient; fp16 skips some at first


def merit(row: dict) -> float:
    """What makes a row of the log better than another: BLEU where it was measured, or a low
    loss."""
    found = row.get("bleu", -row.get("validation_loss", row["loss"]))
    return -math.inf if math.isnan(found) else found


def mean(values: list[float]) -> float:
    """nan where there are none."""
    return sum(values) / len(values) if values else math.nan


@dataclass
class Progress:
    """How far a run has come: numbers and lists only, because checkpoints keep it as JSON."""

    update: int = 0  # updates that are done, skipped ones included
    epoch: int = 0  # place in the data: the epoch,
    index: int = 0  # and how many of its batches are done
    tokens: int = 0  # real target tokens seen
    seconds: float = 0.0
    rate: float = 0.0  # of the last update
    skipped: int = 0  # updates whose gradient was not a number
    skipped_in_a_row: int = 0
    scaler: dict = field(default_factory=dict)  # the state of the scale for losses in fp16
    losses: list = field(default_factory=list)  # since the last row of the log
    norms: list = field(default_factory=list)
    best: float | None = None  # the highest `merit` so far
    since_best: int = 0  # validations since then
    log: list = field(default_factory=list)

    def finished(self, config) -> bool:
        """True when the updates, the minutes or the patience are used up."""
        late = config.minutes is not None and self.seconds >= 60 * config.minutes
        waited = config.patience is not None and self.since_best >= config.patience
        return self.update >= config.updates or late or waited

    def count(self, loss: float, norm: float) -> None:
        """Note an update's loss and norm, or that it was skipped; `Diverged` after too many."""
        self.update += 1
        if math.isfinite(norm):
            self.losses.append(loss)
            self.norms.append(norm)
            self.skipped_in_a_row = 0
            return
        self.skipped += 1
        self.skipped_in_a_row += 1
        if self.skipped_in_a_row >= MOST_SKIPPED:
            raise Diverged(f"the gradient is {norm} (loss {loss:.3g}), for the {MOST_SKIPPED}th "
                           "update in a row: training has diverged. What was saved is from before; "
                           "start again with a smaller factor, a longer warmup, or a clip of 1")

    def row(self, speed: dict) -> dict:
        """A row for the log: loss (nats a target token) and norm are means since the last one."""
        return {"update": self.update, "epoch": self.epoch, "tokens": self.tokens,
                "rate": self.rate, "seconds": round(self.seconds, 3), **speed,
                "skipped": self.skipped, "loss": mean(self.losses), "norm": mean(self.norms)}

    def logged(self) -> bool:
        """Whether the last update is that of the last row."""
        return self.update == (self.log[-1]["update"] if self.log else 0)

    def add(self, row: dict) -> None:
        """Put a finished row into the log."""
        self.since_best += 1
        if self.best is None or merit(row) > self.best:
            self.best = merit(row)
            self.since_best = 0
        self.losses, self.norms = [], []
        self.log.append(row)


def is_number(value: object) -> bool:
    """True for an int or a float, not a number (nan) included."""
    return type(value) in (int, float)


def is_row(row: object) -> bool:
    """True for a row of the log: figures by name, at least an update and its loss."""
    figures = "update", "loss", "seconds", "tokens", "validation_loss", "bleu"
    return isinstance(row, dict) and {"update", "loss"} <= row.keys() and all(
        is_number(row[name]) for name in figures if name in row)


def fits(name: str, kind: Any, value: object) -> bool:
    """Whether a value from a checkpoint can be that of a field of `Progress`, by its name."""
    if name == "best":
        return value is None or is_number(value)
    if kind in (int, float):
        return is_number(value) and 0 <= value < 2**53 and (kind is float or value == int(value))
    if name in ("losses", "norms"):
        return isinstance(value, list) and all(map(is_number, value))
    if name == "log":
        return isinstance(value, list) and all(map(is_row, value))
    return isinstance(value, kind)


def progress_of(saved: object, path: Path) -> Progress:
    """The `Progress` that a checkpoint holds; ValueError for something else."""
    known = {f.name: f.type for f in fields(Progress)}
    if not isinstance(saved, dict) or not saved.keys() <= known.keys():
        raise damaged(path, "its progress is not that of a run")
    for name, value in saved.items():
        if not fits(name, known[name], value):
            raise damaged(path, f"{name} is {str(value)[:40]!r}")
    return Progress(**saved)


class Run:
    """A run in memory, begun anew or brought back to where a checkpoint found it.

    Of several processes the first one validates, logs and saves, and the others wait for it. Where
    validate has a `watch`, watch(log) is called when a row of the log is complete and saved.
    """

    def __init__(self, model, optimizer, config, folder=None, validate=None, resume=False):
        check_share(config.accumulate)
        check_folder(folder, resume)
        check_buffers(model)
        if folder is not None:
            prepare_folder(Path(folder))
        self.model, self.optimizer = model, optimizer
        self.config, self.folder, self.validate = config, folder, validate
        self.watch = getattr(validate, "watch", None)
        self.device = next(model.parameters()).device
        self.precision = choose_precision(self.device, config.precision)
        self.scaler = loss_scaler(self.device, self.precision)
        self.progress = Progress()
        if resume:
            path = Path(folder) / "checkpoint.safetensors"
            self.progress = progress_of(load_checkpoint(path, plain(model), optimizer), path)
            if self.progress.update > config.updates:
                raise ValueError(f"the run in {folder} has done {self.progress.update} updates: go "
                                 f"on with at least as many, not {config.updates}")
        if self.progress.scaler and self.scaler.is_enabled():  # both runs are in fp16
            if self.progress.scaler.keys() != self.scaler.state_dict().keys():
                raise damaged(path, "its scale is none")
            self.scaler.load_state_dict(self.progress.scaler)
        rate = matmul_rate(self.device, self.precision) * process_count()
        self.meter = Meter(model.config, rate)
        self.first = process_number() == 0
        self.started = time.monotonic() - self.progress.seconds
        self.saved = time.monotonic()

    def place(self) -> tuple[int, int]:
        """Where in the data it goes on: the epoch, and how many of its batches are done."""
        return self.progress.epoch, self.progress.index

    @contextmanager
    def open(self) -> Iterator[None]:
        """Inside the block Ctrl-C waits for the end of an update; a terminal, or a notebook, shows
        a bar, unless TQDM_DISABLE is set, as it is where the book's outputs are made."""
        watched = sys.stderr.isatty() or "ipykernel" in sys.modules
        alone = self.first and parent_process() is None
        bar = tqdm(total=self.config.updates, initial=self.progress.update, unit="update",
                   disable=not (watched and alone) or "TQDM_DISABLE" in os.environ)
        with catch_interrupt() as self.notes, bar as self.bar:
            yield

    def goes_on(self) -> bool:
        """False when all is done, or somebody wants to stop: then for all processes alike."""
        done = self.first and self.progress.finished(self.config)
        if done and not self.progress.logged():  # gone on with, only to be wound up
            self.record()
        return not sum_over_processes(bool(self.notes) or done, self.device)

    def note(self, place: tuple, pairs: list, loss: float, norm: float, rate: float) -> None:
        """Note an update, and log, validate and save if it is time to.

        place: of its last batch (epoch, index, ...); pairs: those of all processes; loss: this
        one's part of it.
        """
        progress = self.progress
        progress.count(sum_over_processes(loss, self.device), norm)
        progress.epoch, progress.index = place[0], place[1] + 1
        tokens = sum(len(target) - 1 for _, target in pairs)
        progress.tokens += tokens
        # The first one's clock for all: the learning rate may depend on it
        passed = time.monotonic() - self.started if self.first else 0.0
        progress.seconds = sum_over_processes(passed, self.device)
        progress.rate = rate
        progress.scaler = self.scaler.state_dict()
        self.meter.add(len(pairs), sum(len(source) for source, _ in pairs), tokens)
        self.bar.update()
        if self.first:
            self.record()

    def record(self) -> None:
        """Log, validate, save and let it be watched every save_every updates, and at the end.

        Every save_minutes only save.
        """
        progress, config = self.progress, self.config
        if progress.finished(config) or progress.update % config.save_every == 0:
            self.check_weights()
            row = progress.row(self.meter.read())
            if self.validate is not None:
                row.update(self.figures(row))
            progress.add(row)
            self.show(row)
            # With patience, the weights before that many validations are the best
            self.save(config.keep + (progress.since_best if config.patience else 0))
            if self.watch is not None:
                self.watch(progress.log)
            self.meter.restart()
        elif time.monotonic() - self.saved > 60 * config.save_minutes:
            self.save()

    def figures(self, row: dict) -> dict:
        """What `validate` measures, None for nothing; where it fails all is saved first.

        TypeError for what the log cannot hold, ValueError for a name that its row has already.
        """
        self.model.eval()
        try:
            found = self.validate(self.model)
            found = {} if found is None else found
            if not isinstance(found, dict):
                raise TypeError(f"validate gives {found!r}: numbers by name are wanted")
            found = {name: figure.item() if hasattr(figure, "item") else figure
                     for name, figure in found.items()}
            if taken := found.keys() & row.keys():
                raise ValueError(f"validate names a figure {taken.pop()!r}, which the log has "
                                 "already: call it something else")
            json.dumps(found)  # TypeError for what the log's file cannot hold
            if not is_row({**row, **found}):
                raise TypeError(f"validate gives {found}: numbers by name are wanted")
            return found
        except Exception:
            self.save()
            raise

    def save(self, keep: int = 0) -> None:
        """See `save_state`."""
        save_state(self.folder, plain(self.model), self.optimizer, asdict(self.progress), keep)
        self.saved = time.monotonic()

    def show(self, row: dict) -> None:
        """A row's figures beside the bar."""
        names = "loss", "validation_loss", "bleu", "tokens_per_second", "utilisation", "skipped"
        shown = {name: row[name] for name in names if row.get(name)}
        self.bar.set_postfix({**shown, "GiB": round(peak_memory(self.device), 1)})

    def check_weights(self) -> None:
        """`Diverged` where the last updates, too few to be noticed by their gradients, have left
        weights that are no numbers."""
        try:
            check_numbers(self.model.named_parameters(), "after the last update")
        except ValueError as error:
            raise Diverged(f"{error}; start again with a smaller factor, a longer warmup, or a "
                           "clip of 1") from None

    def close(self) -> list[dict]:
        """The log; where the run is not finished all is saved, and Interrupted says so."""
        done = self.first and self.progress.finished(self.config)
        if not sum_over_processes(done, self.device):  # the first alone knows of patience and time
            if self.first:
                self.save()
            # Wait: when one process leaves, torchrun stops the others, saving or not
            sum_over_processes(0, self.device)
            place = f", all saved in {self.folder}" if self.folder else ""
            raise Interrupted(f"stopped after update {self.progress.update}{place}")
        return self.progress.log
