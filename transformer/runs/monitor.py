"""What stands around the loop of a run: its clock, its bar, its figures, its forecast."""

import json
import math
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import parent_process
from typing import Any

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from transformer.core.checks import Diverged
from transformer.core.distributed import rank, sum_over_processes
from transformer.core.weights import check_numbers
from transformer.hardware import peak_memory
from transformer.runs.progress import Progress, is_row

TIMED = 20  # updates
SHOWN = (
    "loss",
    "validation_loss",
    "bleu",
    "tokens_per_second",
    "utilisation",
    "skipped",
)


class Clock:
    """The seconds of a run, those before it was resumed included."""

    def __init__(self, seconds: float = 0.0):
        self.started = time.monotonic() - seconds

    def read(self) -> float:
        """The first process's clock, for all: the learning rate may depend on it."""
        passed = time.monotonic() - self.started if rank() == 0 else 0.0
        return sum_over_processes(passed)


def progress_bar(updates: int, done: int) -> tqdm:
    """A bar in a terminal or a notebook, unless TQDM_DISABLE is set, as it is where the book's
    outputs are made."""
    watched = sys.stderr.isatty() or "ipykernel" in sys.modules
    alone = rank() == 0 and parent_process() is None
    hidden = not (watched and alone) or "TQDM_DISABLE" in os.environ
    return tqdm(total=updates, initial=done, unit="update", disable=hidden)


def show(bar: tqdm, row: dict, device: torch.device) -> None:
    """A row's figures beside the bar."""
    figures = {name: row[name] for name in SHOWN if row.get(name)}
    bar.set_postfix({**figures, "GiB": round(peak_memory(device), 1)})


def measure(validate: Callable | None, model: nn.Module, row: dict) -> dict:
    """What validate(model) measures, None for nothing; see `figures_in`."""
    if validate is None:
        return {}
    model.eval()
    figures = figures_in(validate(model), row)
    json.dumps(figures)  # TypeError for what the log's file cannot hold
    if not is_row({**row, **figures}):
        raise TypeError(f"validate gives {figures}: numbers by name are wanted")
    return figures


def figures_in(measured: Any, row: dict) -> dict:
    """What a validation has measured, as the log holds it; True counts as 1.

    TypeError for what are no numbers by name, ValueError for a name that its row has already.
    """
    if measured is None:
        return {}
    if not isinstance(measured, dict):
        raise TypeError(f"validate gives {measured!r}: numbers by name are wanted")
    figures = {
        name: figure.item() if hasattr(figure, "item") else figure
        for name, figure in measured.items()
    }
    for name, figure in figures.items():
        if isinstance(figure, str):
            raise TypeError(f"validate gives {figures}: numbers by name are wanted")
        if isinstance(figure, bool):
            figures[name] = int(figure)
        if name in row:
            raise ValueError(
                f"validate names a figure {name!r}, which the log has "
                "already: call it something else"
            )
    return figures


def check_functions(validate: Any, callbacks: Any) -> None:
    """ValueError for a validate that is no function, and callbacks that are no list of some."""
    if validate is not None and not callable(validate):
        raise ValueError(
            f"validate must be a function that gives numbers by name, not {validate!r}"
        )
    if callable(callbacks) or not all(map(callable, callbacks)):
        raise ValueError(
            f"callbacks must be a list of functions, such as [show], not {callbacks!r}"
        )


def check_weights(model: nn.Module) -> None:
    """`Diverged` where the last updates, too few to be noticed by their gradients, have left
    weights that are no numbers."""
    try:
        check_numbers(dict(model.named_parameters()), "after the last update")
    except ValueError as error:
        raise Diverged(
            f"{error}; start again with a smaller lr_scale, a longer warmup, or a "
            "clip of 1"
        ) from None


def clock(seconds: float) -> str:
    """Such as 1:05:00 (h:mm:ss)."""
    return f"{timedelta(seconds=round(seconds))} (h:mm:ss)"


class Forecast:
    """A callback of `train` that says, after the first updates, how long the run will take.

    done: the "update" and the "seconds" that it goes on from. The first update warms up; a
    validation between two others does not touch their median.
    """

    reads_figures = False

    def __init__(self, training, done: dict, say: Callable = tqdm.write):
        self.updates = training.updates - done["update"]
        self.seconds = 60 * (training.minutes or math.inf) - done["seconds"]
        self.say = say
        self.ends: list[float] = []

    def __call__(self, progress: Progress) -> None:
        if len(self.ends) > TIMED:
            return
        self.ends.append(time.monotonic())
        if len(self.ends) <= TIMED:
            return
        each = float(np.median(np.diff(self.ends)))
        updates = min(self.updates, self.seconds / each)
        self.say(
            f"{TIMED} updates timed: {updates:,.0f} will take about {clock(updates * each)}"
        )
