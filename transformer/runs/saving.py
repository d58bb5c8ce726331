"""What a training run saves beside its loop, and how it is brought back."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transformer.core.files import prepare_folder
from transformer.models.checkpoint import (
    check_buffers,
    check_folder,
    damaged,
    load_checkpoint,
    plain,
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


def load_scale(scaler: Any, state: Mapping, path: Path) -> None:
    """Give the scale for losses its state; ValueError for that of something else."""
    if state.keys() != scaler.state_dict().keys():
        raise damaged(path, "its scale is none")
    scaler.load_state_dict(dict(state))
