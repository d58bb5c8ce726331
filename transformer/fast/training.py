"""What training takes of fast parts: the loss in chunks, Adam in one kernel."""

from collections.abc import Callable

import torch
from torch import nn

from transformer.fast.loss import ChunkedLoss
from transformer.optimizer import ADAM


def fused_adam(model: nn.Module) -> torch.optim.Optimizer:
    """As `adam`, fused; on a CPU with its moments made now, side by side.

    Made in the first update they would lie scattered in memory.
    """
    parameters = list(model.parameters())
    try:
        optimizer = torch.optim.Adam(parameters, **ADAM, fused=True)
    except (RuntimeError, ValueError):  # no fused kernel for this device in this torch
        optimizer = torch.optim.Adam(parameters, **ADAM)
    for p in parameters:
        if p.device.type == "cpu":
            optimizer.state[p] = {
                "step": torch.zeros(()),
                "exp_avg": torch.zeros_like(p),
                "exp_avg_sq": torch.zeros_like(p),
            }
    return optimizer


def adam_times(share: Callable[[int], float], model: nn.Module) -> torch.optim.Optimizer:
    """`fused_adam` that multiplies the rate, which the loop has set, by share(update)."""
    optimizer = fused_adam(model)

    def before(optimizer, *_):
        steps = [int(state["step"]) for state in optimizer.state.values()]
        for group in optimizer.param_groups:
            group["lr"] *= share(1 + max(steps, default=0))

    optimizer.register_step_pre_hook(before)
    return optimizer


def falling(update: int, updates: int, warmup: int) -> float:
    """What makes the paper's rate fall linearly to zero after the warm-up, as a share of it."""
    if update <= warmup:
        return 1.0
    return (update / warmup) ** 0.5 * (updates + 1 - update) / (updates + 1 - warmup)


def fast_training(training, config) -> dict:
    """The fast loss and optimizer that `train` takes, for its settings and a model's."""
    return {"criterion": ChunkedLoss(training.epsilon_ls, config.pad_id), "optimizer": fused_adam}
