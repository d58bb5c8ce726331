"""One update of the weights, on one device, without a word to the host."""

import math
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.core.distributed import without_exchange, world_size
from transformer.hardware import autocast
from transformer.runs.schedules import set_rates


class Objective(nn.Module):
    """The loss of a model on a `Batch`, summed over real target tokens, in nats.

    As one module, because several processes have a copy of it each, and torch averages the copies'
    gradients (notebook 11).
    """

    def __init__(self, model: nn.Module, criterion: Callable, precision: str = "fp32"):
        super().__init__()
        self.model = model
        self.criterion = criterion
        self.precision = precision

    def forward(self, batch):
        with autocast(batch.source.device, self.precision):
            return self.model.loss(batch, self.criterion)


def batch_seed(seed: int, update: int, number: int) -> int:
    """The seed for dropout in one batch (counted within its update) of one update.

    So it is the same whichever process works on it, and after whatever break.
    """
    return ((seed * 1_000_003 + update) * 1009 + number) % 2**63


def update_weights(
    objective: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler,
    batches: list,
    tokens: int,
    rate: float,
    clip: float | None = None,
) -> tuple[Tensor, Tensor]:
    """One update from this process's share of batches, [(seed, `Batch`), ...].

    tokens: real target tokens in the batches of all processes. Returns this process's
    part of the loss per target token (nats), and the norm of the gradient, both on the
    device; where the norm is infinite or not a number, the weights stay as they were.
    """
    objective.train()
    optimizer.zero_grad()
    parameters = list(objective.parameters())
    losses = []
    for number, (seed, batch) in enumerate(batches, 1):
        torch.manual_seed(seed)
        with without_exchange(objective, more=number < len(batches)):
            loss = objective(copied(batch, parameters[0].device)) / tokens
            # processes average their gradients: the factor makes it a sum
            scaler.scale(loss * world_size()).backward()
        losses.append(loss.detach())
    scaler.unscale_(optimizer)
    norm = gradient_norm(parameters, clip)
    set_rates(optimizer, rate)
    step_if(norm.isfinite(), optimizer)
    scaler.update()
    return sum(losses[1:], losses[0]), norm


def copied(batch: Any, device: torch.device) -> Any:
    """A batch on a device; to a GPU from pinned memory, so that the host need not wait."""
    if isinstance(batch, Tensor):
        if device.type != "cuda":
            return batch.to(device)
        return batch.pin_memory().to(device, non_blocking=True)
    if not is_dataclass(batch):
        return batch
    sides = {name: copied(value, device) for name, value in vars(batch).items()}
    return replace(batch, **sides)


def gradient_norm(parameters: list, clip: float | None) -> Tensor:
    """The norm of the whole gradient, before it is clipped to at most `clip`."""
    total = getattr(nn.utils, "get_total_norm", None)  # since torch 2.6
    if clip or total is None:
        return nn.utils.clip_grad_norm_(parameters, clip or math.inf)
    return total([p.grad for p in parameters if p.grad is not None])


def step_if(finite: Tensor, optimizer: torch.optim.Optimizer) -> None:
    """A step of the optimizer, unless the gradient is no use; finite: a boolean on the device.

    A fused optimizer of torch leaves it out there, as it does for torch's `GradScaler`; for any
    other the host has to ask.
    """
    if getattr(optimizer, "_step_supports_amp_scaling", False):
        skips: Any = optimizer
        skips.grad_scale, skips.found_inf = None, (~finite).float()
        optimizer.step()
        del skips.grad_scale, skips.found_inf
    elif finite:
        optimizer.step()
