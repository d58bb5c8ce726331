"""What do models of the museum do when they are trained? Each learns the dates of chapter 27.

    python -m transformer.experiments.museum

A row is one model at one seed: its own loss before the first and over the last of 300 updates, the
loss of chapter 27 on new dates with their own sources and with others', without dropout, and the share
of new dates that it writes without a mistake. Only models whose complaint in the museum tells of
a training are trained.
"""

import math
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from transformer.diagnosis import dates, loss_of
from transformer.doctor.museum import EXHIBITS
from transformer.doctor.museum.small import Small
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.first_transformer import write

COMMAND = "python -m transformer.experiments.museum"
UPDATES, BATCH, SEEDS = 300, 32, (1,)
NEW = 200  # dates to write
TRAINED = (  # their owners tell of a training
    "not-shifted",
    "wrong-triangle",
    "padding-in-loss",
    "mask-off-in-training",
    "norm-over-positions",
    "empty-memory",
    "encoder-cut-off",
    "no-positions",
    "one-position",
    "softmax-twice",
    "relu-on-logits",
    "wide-embedding",
    "plain-list",
)


def given(name: str) -> dict:
    """A patient of the museum; the healthy model where the name is "healthy"."""
    return EXHIBITS[name].make() if name in EXHIBITS else {"model": Small()}


def train(patient: dict) -> list[float]:
    """Train with the patient's own loss, where it has one; the losses."""
    model, loss = patient["model"], patient.get("loss", loss_of)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for update in range(1, UPDATES + 1):
        rate = 0.0375 * min(update**-0.5, update * 50**-1.5)
        optimizer.param_groups[0]["lr"] = rate
        model.train()
        source, target = dates(BATCH)
        optimizer.zero_grad()
        error = loss(model, source, target)
        error.backward()
        losses.append(error.item())
        optimizer.step()
    return losses


def right(model: torch.nn.Module, source: Tensor, target: Tensor) -> float:
    """The share of dates that are written without a mistake, up to the end mark."""
    written = write(model, source, target.shape[1] - 1)
    same = (written == target) | (target == 0)
    return same.all(dim=1).float().mean().item()


def measure(name: str, seed: int) -> dict:
    """Train one model at one seed; its figures."""
    torch.manual_seed(seed)
    patient = given(name)
    losses = train(patient)
    model = patient["model"].eval()
    source, target = dates(NEW)
    with torch.no_grad():
        own = loss_of(model, source, target).item()
        strange = loss_of(model, source.roll(1, dims=0), target).item()
    figures = {
        "first": losses[0],
        "last": sum(losses[-20:]) / 20,
        "held_out": own,
        "strange": strange,
        "right": right(model, source, target),
    }
    return {
        name: round(value, 4) if math.isfinite(value) else None
        for name, value in figures.items()
    }


def measure_all(name: str, folder: Path, device: str) -> list[dict]:
    """A row for each seed."""
    return [{"seed": seed, **measure(name, seed)} for seed in SEEDS]


def main(folder: Path = Path("runs/museum"), workers: int = 1) -> None:
    """Train models of the museum once.

    Args:
        folder: where a job leaves its result
        workers: processes at the same time
    """
    jobs = [
        Job(name, partial(measure_all, name), {"model": name}, COMMAND)
        for name in ("healthy", *TRAINED)
    ]
    run_jobs(jobs, folder, ["cpu"] * workers, "museum")


if __name__ == "__main__":
    run_command(main)
