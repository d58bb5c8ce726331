"""Parts that training takes: the loss in chunks, Adam in one kernel, Adam by parts of a model."""

from typing import Any

import torch
from torch import nn

from transformer.fast.loss import ChunkedLoss
from transformer.optimizer import ADAM


def fused_adam(model: nn.Module) -> torch.optim.Optimizer:
    """As `adam`, fused; on a CPU with its moments made now, side by side.

    Made in the first update they would lie scattered in memory. On a GPU the rate is a tensor there,
    which a training fills (`set_rates`).
    """
    parameters = list(model.parameters())
    settings: dict[str, Any] = dict(ADAM)
    device = parameters[0].device
    if device.type == "cuda":
        settings["lr"] = torch.tensor(ADAM["lr"], device=device)
    try:
        optimizer = torch.optim.Adam(parameters, **settings, fused=True)
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


def part_of(name: str) -> str:
    """ "encoder", "cross" or "decoder", or "embedding": the part that a parameter belongs to."""
    return "cross" if "cross_attention" in name else name.partition(".")[0]


class AdamByParts(torch.optim.Adam):
    """Adam as in Section 5.3; each part of a model has its own share of the learning rate.

    A group's "lr_scale" is what a training multiplies its rate by.
    """

    def __init__(self, model: nn.Module, shares: dict[str, float]):
        groups = [
            {"params": [p], "lr_scale": shares.get(part_of(name), 1.0)}
            for name, p in model.named_parameters()
        ]
        super().__init__(groups, **ADAM)


def fast_training(training, config) -> dict:
    """The fast loss and optimizer that `train` takes, for its settings and a model's."""
    return {
        "criterion": ChunkedLoss(training.epsilon_ls, config.pad_id),
        "optimizer": fused_adam,
    }
