"""What a training run saves beside its loop, and how it is brought back."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transformer.core.files import prepare_folder
from transformer.core.weights import load_parameters, load_weights
from transformer.models.checkpoint import (
    check_buffers,
    check_folder,
    damaged,
    keep_weights,
    load_checkpoint,
    named_weights,
    plain,
    plain_name,
    save_state,
)
from transformer.runs.progress import Progress, progress_of


@dataclass
class Saver:
    """Saves a run in a folder, and knows when it last did; without a folder it saves nothing."""

    folder: Path | None
    model: nn.Module
    optimizer: torch.optim.Optimizer
    minutes: float = 10.0  # after so many since the last time it is due
    last: float = field(default_factory=time.monotonic)
    best: dict = field(default_factory=dict)  # weights, of a run without a folder

    def prepare(self, resume: bool = False) -> None:
        """ValueError or OSError for a folder or a model that a run cannot be saved in, or from."""
        check_folder(self.folder, resume)
        check_buffers(self.model)
        if self.folder is not None:
            self.folder = Path(self.folder)
            prepare_folder(self.folder)

    def due(self) -> bool:
        """True where a killed run would lose more than it may."""
        return time.monotonic() - self.last > 60 * self.minutes

    def save(self, progress: Progress, keep: int = 0) -> None:
        """Write log and checkpoint, and with keep > 0 the weights, of which so many stay."""
        save_state(
            self.folder, plain(self.model), self.optimizer, asdict(progress), keep
        )
        self.last = time.monotonic()

    def save_best(self, update: int) -> None:
        """Keep the weights of the best validation so far, and those of the best before it, to which
        a killed run may go back."""
        if self.folder is not None:
            keep_weights(self.folder, plain(self.model), update, 2, "best")
            return
        weights = named_weights(self.model).items()
        self.best = {name: p.detach().to("cpu", copy=True) for name, p in weights}

    def has_best(self, update: int) -> bool:
        """Whether the weights of a validation are there to be restored."""
        return self.folder is None or best_file(self.folder, update).is_file()

    def load_best(self, update: int) -> None:
        """Give the model the weights of the best validation; a warning where a run that was gone on
        with had not kept them."""
        path = self.folder and best_file(self.folder, update)
        if path and not path.is_file():
            warnings.warn(
                f"the weights of update {update}, the best, were not kept: the model "
                "has the last ones",
                stacklevel=2,
            )
            return
        weights = load_weights(path)[0] if path else self.best
        load_parameters(plain(self.model), weights, path or Path(), plain_name)

    def load(self, updates: int, scaler: Any) -> Progress:
        """Bring model, optimizer and scale back to where the checkpoint left them; its progress.

        ValueError where it is damaged, or beyond so many updates.
        """
        assert self.folder is not None
        path = self.folder / "checkpoint.safetensors"
        saved = load_checkpoint(path, plain(self.model), self.optimizer)
        progress = progress_of(saved, path)
        if progress.update > updates:
            raise ValueError(
                f"the run in {self.folder} has done {progress.update} updates: go "
                f"on with at least as many, not {updates}"
            )
        if progress.scaler and scaler.is_enabled():  # both runs are in fp16
            load_scale(scaler, progress.scaler, path)
        return progress


def best_file(folder: Path, update: int) -> Path:
    """Where a run keeps the weights of a validation that was the best so far."""
    return Path(folder) / "best" / f"{update:08d}.safetensors"


def load_scale(scaler: Any, state: Mapping, path: Path) -> None:
    """Give the scale for losses its state; ValueError for that of something else."""
    if state.keys() != scaler.state_dict().keys():
        raise damaged(path, "its scale is none")
    scaler.load_state_dict(dict(state))
