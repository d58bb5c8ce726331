"""How far a run has come: what it counts, its log, and how a checkpoint's account is read."""

import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from transformer.core.checks import Diverged
from transformer.models.checkpoint import damaged

MOST_SKIPPED = (
    20  # updates in a row without a finite gradient; fp16 skips some at first
)


# Validation pairs from which on BLEU tells which of two models is better
ENOUGH = 100


def deciding(row: dict) -> str:
    """The figure of a row of the log that says how good it is: "bleu", or a loss.

    The loss where there is no BLEU, where it is 0, and where it is of fewer than `ENOUGH` pairs.
    """
    told = row.get("bleu", 0) != 0 and row.get("validation_pairs", ENOUGH) >= ENOUGH
    if told or "validation_loss" not in row:
        return "bleu" if "bleu" in row else "loss"
    return "validation_loss"


def validation_score(row: dict) -> float:
    """What makes a row of the log better than another: a high BLEU, or a low loss; see
    `deciding`."""
    name = deciding(row)
    score = row[name] if name == "bleu" else -row[name]
    return -math.inf if math.isnan(score) else score


def best_in_words(log: list[dict]) -> str:
    """Which of a run's validations was the best, and the figure that decided."""
    best = max(log, key=validation_score)
    name = deciding(best)
    why = ""
    if name != "bleu" and "bleu" in best:
        few = f"of fewer than {ENOUGH} pairs"
        why = f" (BLEU is {'0' if best['bleu'] == 0 else few})"
    figure = f"{'highest' if name == 'bleu' else 'lowest'} {name.replace('_', ' ')}"
    return (
        f"patience: the weights up to update {best['update']} count, which has the "
        f"{figure}, {best[name]:.4g}{why}"
    )


def check_watched(row: dict) -> None:
    """ValueError where `validate` has measured nothing that patience can watch."""
    if not row.keys() & {"bleu", "validation_loss"}:
        raise ValueError(
            "patience stops a training by its validation: let validate(model) give "
            "validation_loss or bleu, or leave out patience"
        )


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
    scaler: dict = field(
        default_factory=dict
    )  # the state of the scale for losses in fp16
    losses: list = field(default_factory=list)  # since the last row of the log
    norms: list = field(default_factory=list)
    best: float | None = None  # the highest `validation_score` so far
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
            raise Diverged(
                f"the gradient is {norm} (loss {loss:.3g}), for the {MOST_SKIPPED}th "
                "update in a row: training has diverged. What was saved is from before; "
                "start again with a smaller lr_scale, a longer warmup, or a clip of 1"
            )

    def row(self, speed: dict) -> dict:
        """A row for the log: loss (nats a target token) and norm are means since the last one."""
        return {
            "update": self.update,
            "epoch": self.epoch,
            "tokens": self.tokens,
            "rate": self.rate,
            "seconds": round(self.seconds, 3),
            **speed,
            "skipped": self.skipped,
            "loss": mean(self.losses),
            "norm": mean(self.norms),
        }

    def logged(self) -> bool:
        """Whether the last update is that of the last row."""
        return self.update == (self.log[-1]["update"] if self.log else 0)

    def add(self, row: dict) -> None:
        """Put a finished row into the log."""
        self.since_best += 1
        if self.best is None or validation_score(row) > self.best:
            self.best = validation_score(row)
            self.since_best = 0
        self.losses = []
        self.norms = []
        self.log.append(row)


# What a checkpoint says of it


def is_number(value: object) -> bool:
    """True for an int or a float, not a number (nan) included."""
    return type(value) in (int, float)


def is_row(row: object) -> bool:
    """True for a row of the log: figures by name, at least an update and its loss."""
    figures = "update", "loss", "seconds", "tokens", "validation_loss", "bleu"
    return (
        isinstance(row, dict)
        and {"update", "loss"} <= row.keys()
        and all(is_number(row[name]) for name in figures if name in row)
    )


def fits(name: str, expected: Any, value: object) -> bool:
    """Whether a value from a checkpoint can be that of a field of `Progress`, by its name."""
    if name == "best":
        return value is None or is_number(value)
    if expected in (int, float):
        return (
            is_number(value)
            and 0 <= value < 2**53
            and (expected is float or value == int(value))
        )
    if name in ("losses", "norms"):
        return isinstance(value, list) and all(map(is_number, value))
    if name == "log":
        return isinstance(value, list) and all(map(is_row, value))
    return isinstance(value, expected)


def progress_of(saved: object, path: Path) -> Progress:
    """The `Progress` that a checkpoint holds; ValueError for something else."""
    known = {f.name: f.type for f in fields(Progress)}
    if not isinstance(saved, dict) or not saved.keys() <= known.keys():
        raise damaged(path, "its progress is not that of a run")
    for name, value in saved.items():
        if not fits(name, known[name], value):
            raise damaged(path, f"{name} is {str(value)[:40]!r}")
    return Progress(**saved)
