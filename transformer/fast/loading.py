"""What torch's `load_state_dict` breaks, mended: parameters that are one, tables that are computed."""

from functools import partial
from typing import Any

import torch
from torch import nn

from transformer.positions import sinusoids


def ties_of(model: nn.Module) -> list[list[str]]:
    """The names of each parameter that has several."""
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    return [group for group in names.values() if len(group) > 1]


# of each parameter that has several: its names, and the modules that own it
Ties = list[list[tuple[str, nn.Module]]]


def owner(model: nn.Module, name: str) -> nn.Module:
    """The module that has a parameter."""
    return model.get_submodule(name.rpartition(".")[0])


def still_tied(ties: Ties, model: nn.Module) -> list[list[str]]:
    """The names of each parameter that had several, without those of a module that another one
    has replaced since, such as the output of a classifier."""
    modules = dict(model.named_modules(remove_duplicate=False))

    def kept(name: str, module: nn.Module) -> bool:
        return modules.get(name.rpartition(".")[0]) is module

    groups = [[name for name, module in g if kept(name, module)] for g in ties]
    return [group for group in groups if len(group) > 1]


def tie(ties: Ties, model: nn.Module, _: Any = None) -> None:
    """Make each group of names one parameter again; ValueError where their numbers differ."""
    for first, *others in still_tied(ties, model):
        parameter = model.get_parameter(first)
        for name in others:
            other = model.get_parameter(name)
            if other is parameter:
                continue
            if other.shape != parameter.shape or not torch.equal(other, parameter):
                raise untied(name, first)
            setattr(owner(model, name), name.rpartition(".")[2], parameter)


def complete(ties: Ties, model: nn.Module, state: dict, prefix: str, *_: Any) -> None:
    """Give a parameter that a state has under one of its names all of them: files hold it once.

    ValueError where it has several, of different numbers.
    """
    for group in still_tied(ties, model):
        names = [prefix + name for name in group]
        there = [name for name in names if name in state]
        for name in there[1:]:
            if not same(state[there[0]], state[name]):
                raise untied(name, there[0])
        if there:
            state.update({name: state[there[0]] for name in names if name not in state})


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors hold the same numbers; those without any, on `meta`, do."""
    if one.is_meta or one.data_ptr() == other.data_ptr():
        return True
    return one.shape == other.shape and torch.equal(one, other.to(one))


def untied(name: str, first: str) -> ValueError:
    """The ValueError for two matrices where a model has one."""
    return ValueError(
        f"{name} and {first} are one matrix in this model, and two in what was "
        "loaded: load weights of a model that shares them"
    )


def keep_tied(model: nn.Module) -> None:
    """What is tied in a finished model stays so after each `load_state_dict`, which takes a state
    that has it once, too."""
    ties = [[(name, owner(model, name)) for name in group] for group in ties_of(model)]
    model._register_load_state_dict_pre_hook(partial(complete, ties), with_module=True)
    model.register_load_state_dict_post_hook(partial(tie, ties))


def fill_table(module: nn.Module, _: Any = None) -> None:
    """Compute the table of sines of a module: files do not have it, and `to_empty` loses it."""
    table = module.table
    if not table.is_meta:
        table.copy_(sinusoids(*table.shape).float())


def keep_filled(module: nn.Module) -> None:
    """A module's table of sines is computed again after each `load_state_dict`."""
    module.register_load_state_dict_post_hook(fill_table)
