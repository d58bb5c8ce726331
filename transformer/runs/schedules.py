"""The learning rate from update to update: the paper's formula, other courses, one's own."""

import math
import sys
import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any

import torch

from transformer.core.names import did_you_mean
from transformer.optimizer import learning_rate, peak_rate

# From what is left after the warm-up, 1 to 0, the part of the peak
FALLING: dict[str, Callable[[float], float]] = {
    "linear": lambda left: left,
    "cosine": lambda left: 0.5 - 0.5 * math.cos(math.pi * left),
    "constant": lambda left: 1.0,
}
SCHEDULES = ("inverse_sqrt", *FALLING)
HIGH = 4  # times the formula's peak


def name_of(schedule: str | Callable) -> str:
    """A schedule's name; a function's is "module:function"."""
    if isinstance(schedule, str):
        return schedule
    named = schedule if hasattr(schedule, "__qualname__") else type(schedule)
    return f"{named.__module__}:{named.__qualname__}"


def check_schedule(schedule: object) -> None:
    """ValueError for what is neither a schedule's name nor a function."""
    named = isinstance(schedule, str) and (schedule in SCHEDULES or ":" in schedule)
    if not named and not callable(schedule):
        raise ValueError(
            f"schedule must be {', '.join(SCHEDULES)}, a function of the update's "
            f"number, or its name as module:function, not {schedule!r}"
            f"{did_you_mean(schedule, SCHEDULES)}"
        )


def function_of(schedule: str | Callable) -> Callable[[int], float] | None:
    """The function that a schedule is, or names; None for one of `SCHEDULES`.

    ValueError for the name of a function in a module that was not imported.
    """
    if callable(schedule):
        return schedule
    if schedule in SCHEDULES:
        return None
    module, _, path = schedule.partition(":")
    try:
        found: Any = reduce(getattr, path.split("."), sys.modules[module])
    except (AttributeError, KeyError):
        found = None
    if not callable(found):
        raise ValueError(
            f"the schedule {schedule} is a function of your own that is not there: "
            f"import its module first (--import {module}), or give another schedule"
        )
    return found


def left_of(config: Any, update: int, seconds: float) -> float:
    """What is left of a training after its warm-up, from 1 to 0, by updates or by minutes."""
    left = (config.updates + 1 - update) / (config.updates + 1 - config.warmup)
    if config.minutes is not None:
        left = min(left, max(0.0, 1 - seconds / (60 * config.minutes)))
    return left


def scale_of(config: Any, d_model: int) -> float:
    """What the paper's formula is multiplied by, so that it peaks at `config.learning_rate`."""
    if config.learning_rate is None:
        return config.lr_scale
    return config.learning_rate / peak_rate(d_model, config.warmup)


def warn_of_peak(config: Any, d_model: int) -> None:
    """One warning where the peak that is given is more than `HIGH` times the paper's."""
    if config.learning_rate is not None and scale_of(config, d_model) > HIGH:
        warnings.warn(
            f"a peak learning rate of {config.learning_rate:g} is "
            f"{scale_of(config, d_model):.3g} times what the paper's formula gives for a "
            f"width of {d_model} and {config.warmup} updates of warm-up "
            f"({peak_rate(d_model, config.warmup):.2g}): training may diverge, or learn "
            "nothing",
            stacklevel=2,
        )


def rate_of(config: Any, update: int, d_model: int, seconds: float = 0.0) -> float:
    """The learning rate of an update, counted from 1, after so many seconds of training.

    It rises in a line during `config.warmup` updates, and goes on by `config.schedule`. ValueError
    where a function of one's own gives no rate.
    """
    own = function_of(config.schedule)
    if own is not None:
        return checked(own(update), config.schedule, update)
    scale = scale_of(config, d_model)
    if config.schedule == "inverse_sqrt" or update <= config.warmup:
        return learning_rate(update, d_model, config.warmup, scale)
    part = FALLING[config.schedule](left_of(config, update, seconds))
    return part * peak_rate(d_model, config.warmup, scale)


def checked(rate: Any, schedule: str | Callable, update: int) -> float:
    """What a function gives, as a rate; ValueError for something else."""
    try:
        rate = float(rate)
    except (TypeError, ValueError):
        rate = math.nan
    if not 0 <= rate < math.inf:
        raise ValueError(
            f"the schedule {name_of(schedule)} gives no learning rate for update "
            f"{update}: let it return a number of at least 0"
        )
    return rate


# Groups of parameters


def keep_ratios(optimizer: torch.optim.Optimizer) -> None:
    """Give groups of parameters that begin at different rates the ratio to the largest of them as
    "lr_scale", unless they have one."""
    rates = [float(group["lr"]) for group in optimizer.param_groups]
    if len(set(rates)) > 1:
        for group, rate in zip(optimizer.param_groups, rates):
            group.setdefault("lr_scale", rate / max(rates))


def set_rates(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group of parameters this rate, times its "lr_scale" where it has one."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("lr_scale", 1.0)
