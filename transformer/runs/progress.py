"""How far a run has come: what it counts, its log, and how a checkpoint's account is read."""

import json
import math
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from transformer.core.checks import Diverged
from transformer.models.checkpoint import damaged

MOST_SKIPPED = (
    20  # updates in a row without a finite gradient; fp16 skips some at first
)


# Validation pairs from which on BLEU tells which of two models is better
ENOUGH = 100
# Words in the names of figures of which less is better, or more
LESS_IS_BETTER = set(
    "loss losses perplexity ppl error errors nats bits ter wer cer".split()
)
MORE_IS_BETTER = set("bleu chrf accuracy exact f1 score".split())
Sense = Literal["auto", "min", "max"]


def deciding(row: dict) -> str:
    """The figure of a row of the log that says how good it is: "bleu", or a loss.

    The loss where there is no BLEU, where it is 0, and where it is of fewer than `ENOUGH` pairs.
    """
    told = row.get("bleu", 0) != 0 and row.get("validation_pairs", ENOUGH) >= ENOUGH
    if told or "validation_loss" not in row:
        return "bleu" if "bleu" in row else "loss"
    return "validation_loss"


def sense_of(figure: str) -> Sense:
    """ "min" for the name of a loss, an error or the like, "max" for that of BLEU, an accuracy or
    the like, "auto" where the name does not tell."""
    words = set(re.split("[^a-z0-9]+", figure.lower()))
    less, more = bool(LESS_IS_BETTER & words), bool(MORE_IS_BETTER & words)
    if less == more:
        return "auto"
    return "min" if less else "max"


@dataclass(frozen=True)
class Monitor:
    """Which figure tells how good a validation is: the named one, or else that of `deciding`.

    mode: "max" where more of it is better, "min" where less is; "auto" goes by its name.
    """

    name: str | None = None
    mode: Sense = "auto"

    def figure(self, row: dict) -> str:
        """The name of the figure that counts in a row of the log."""
        return self.name or deciding(row)

    def lower(self, row: dict) -> bool:
        """Whether less of it is better."""
        mode = sense_of(self.figure(row)) if self.mode == "auto" else self.mode
        return mode == "min"

    def score(self, row: dict) -> float:
        """What makes a row of the log better than another, the higher the better."""
        value = row.get(self.figure(row))
        if not is_number(value) or math.isnan(value):
            return -math.inf
        return -value if self.lower(row) else value

    def best(self, log: list[dict]) -> dict:
        """The best row of a log that has any; of equals the first."""
        return max(log, key=self.score)

    def in_words(self, row: dict) -> str:
        """A row's figure, such as "the highest bleu, 31.2"."""
        name = self.figure(row)
        why = ""
        if self.name is None and name != "bleu" and "bleu" in row:
            few = f"of fewer than {ENOUGH} pairs"
            why = f" (BLEU is {'0' if row['bleu'] == 0 else few})"
        end = "lowest" if self.lower(row) else "highest"
        return f"the {end} {name.replace('_', ' ')}, {row[name]:.4g}{why}"

    def sentence(self) -> str:
        """What is watched and in which sense; "" where nothing is named."""
        if self.name is None:
            return ""
        best = "lowest" if self.lower({}) else "highest"
        return f"watching {self.name}: {best} is best"

    def check_sense(self) -> None:
        """ValueError for a figure whose name does not tell its sense, where nothing else does."""
        if self.name and self.mode == "auto" and sense_of(self.name) == "auto":
            raise ValueError(
                f"monitor watches {self.name!r}, and the name does not tell whether more or "
                'less of it is better: say so by monitor_mode, "max" or "min"'
            )

    def check(self, figures: dict, row: dict) -> None:
        """ValueError where `validate` has measured nothing that can be watched.

        row: what the log has without it.
        """
        if self.name is not None and not is_number((row | figures).get(self.name)):
            there = [name for name, value in figures.items() if is_number(value)]
            raise ValueError(
                f"monitor watches {self.name!r}, and what is measured is "
                f"{', '.join(there) or 'nothing'}: watch what is there, or hand in a "
                f"`validate` that gives a number {self.name!r} (also to a run that is "
                "resumed, which does not keep it)"
            )
        if self.name is None and not figures.keys() & {"bleu", "validation_loss"}:
            raise ValueError(
                "patience and restore_best go by validations: let validate(model) give "
                "validation_loss or bleu, name a figure of your own as monitor, or "
                "leave them out"
            )


def monitor_of(config: Any) -> Monitor:
    """What a training's settings watch."""
    return Monitor(config.monitor, config.monitor_mode)


def mean(values: list[float]) -> float:
    """nan where there are none."""
    return sum(values) / len(values) if values else math.nan


@dataclass
class Progress:
    """How far a run has come: what a callback of `train` is called with after each update.

    `update` are the updates done, `loss` is the last one's (nats a target token), `rate` its
    learning rate, `tokens` the real target tokens and `seconds` the time so far. `log` has a row of
    figures for each validation; where `validated` is True its last row is new. `stop("why")` ends
    the run after this update. Its fields are numbers and lists only, because checkpoints keep them
    as JSON.
    """

    update: int = 0  # updates that are done, skipped ones included
    epoch: int = 0  # place in the data: the epoch,
    index: int = 0  # and how many of its batches are done
    tokens: int = 0  # real target tokens seen
    seconds: float = 0.0
    rate: float = 0.0  # of the last update
    # of the last update; None before, and where it was skipped
    loss: float | None = None
    skipped: int = 0  # updates whose gradient was not a number
    skipped_in_a_row: int = 0
    scaler: dict = field(
        default_factory=dict
    )  # the state of the scale for losses in fp16
    losses: list = field(
        default_factory=list, repr=False
    )  # since the last row of the log
    norms: list = field(default_factory=list, repr=False)
    best: float | None = None  # the highest `Monitor.score` so far
    since_best: int = 0  # validations since then
    log: list = field(default_factory=list, repr=False)

    stopped = (
        ""  # why a callback has stopped it; no field, so that a resumed run goes on
    )

    def stop(self, why: str) -> None:
        """End the run after this update: it is validated and saved, and `train` returns its log,
        whose last row has `why` as "stopped". The model has the weights of this update, or the best
        ones with restore_best."""
        self.stopped = str(why) or "by a callback"

    @property
    def validated(self) -> bool:
        """Whether the last row of `log` is that of this update, so that its figures are new."""
        return bool(self.log) and self.log[-1]["update"] == self.update

    def finished(self, config) -> bool:
        """True when the updates, the minutes or the patience are used up, or it was stopped."""
        late = config.minutes is not None and self.seconds >= 60 * config.minutes
        waited = config.patience is not None and self.since_best >= config.patience
        ended = self.update >= config.updates or late or waited
        return ended or bool(self.stopped)

    def count(self, loss: float, norm: float) -> None:
        """Note an update's loss and norm, or that it was skipped; `Diverged` after too many."""
        self.loss = loss if math.isfinite(norm) else None
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

    def add(self, row: dict, monitor: Monitor) -> None:
        """Put a finished row into the log."""
        self.log.append(row)
        self.rank(row, monitor)
        self.losses = []
        self.norms = []

    def rank(self, row: dict, monitor: Monitor) -> None:
        """Count a row as the best so far, or as one more since the best."""
        self.since_best += 1
        if self.best is None or monitor.score(row) > self.best:
            self.best = monitor.score(row)
            self.since_best = 0

    def rank_all(self, monitor: Monitor) -> None:
        """Find the best row again, as a resumed run may watch another figure."""
        self.best = None
        self.since_best = 0
        for row in self.log:
            self.rank(row, monitor)

    def best_update(self) -> int:
        """The update of the best row of the log."""
        return self.log[-1 - self.since_best]["update"]


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


def read_log(folder: Path) -> list[dict]:
    """The rows of a run's log, one dict a validation; none before the first."""
    path = Path(folder) / "log.jsonl"
    if not path.is_file():
        return []
    try:
        lines = path.read_text(encoding="utf8").splitlines()
        rows = [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        rows = [None]
    if not all(map(is_row, rows)):
        raise ValueError(f"{path} is not the log of a run: copy it again")
    return rows


def fits(name: str, expected: Any, value: object) -> bool:
    """Whether a value from a checkpoint can be that of a field of `Progress`, by its name."""
    if name in ("best", "loss"):
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
