"""What `load_state_dict` breaks, mended: ties between parameters, tables that are computed."""

from functools import partial
from typing import Any

import torch
from torch import nn

from transformer.models.kinds import build


def ties_of(model: nn.Module) -> list[list[str]]:
    """The names of each parameter that has several."""
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    return [group for group in names.values() if len(group) > 1]


def tie(model: nn.Module, ties: list[list[str]]) -> None:
    """Make each group of names one parameter again; ValueError where their numbers differ."""
    for first, *others in ties:
        parameter = model.get_parameter(first)
        for name in others:
            other = model.get_parameter(name)
            if other is parameter:
                continue
            if other.shape != parameter.shape or not torch.equal(other, parameter):
                raise ValueError(
                    f"{name} and {first} are one matrix in this model, and two in what was "
                    "loaded: load weights of a model that shares them"
                )
            place, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(place), attribute, parameter)


def fill_tables(model: nn.Module) -> None:
    """Compute anew the buffers that files do not have: after `to_empty` they hold anything."""
    saved = model.state_dict().keys()
    tables = {name: b for name, b in model.named_buffers() if name not in saved}
    if not tables:
        return
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        fresh = dict(build(model.config).named_buffers())
    for name, table in tables.items():
        known = fresh.get(name)
        if known is not None and known.shape == table.shape and not table.is_meta:
            table.copy_(known)


def mend(ties: list[list[str]], model: nn.Module, _: Any) -> None:
    """The hook of `keep_whole`."""
    tie(model, ties)
    fill_tables(model)


def keep_whole(model: nn.Module) -> None:
    """After each `load_state_dict` of a finished model, tie what was tied and fill its tables."""
    model.register_load_state_dict_post_hook(partial(mend, ties_of(model)))
