"""Recipes as defaults of the command line: their settings are options, and what is given is known."""

import re
import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import partial
from typing import Any, get_args, get_origin

import tyro

OF_THE_TOKENIZER = ("pad_id", "bos_id", "eos_id")


def words() -> str:
    """The command as it was typed."""
    return "transformer " + shlex.join(sys.argv[1:])


def in_words(name: str) -> str:
    """A setting as an option: "d_model" is --d-model."""
    return f"--{name.replace('_', '-')}"


def options_in(arguments: Iterable[str]) -> set[str]:
    """The names of the settings that arguments give: --d-model 8 and --no-falling give two."""
    words = [argument.partition("=")[0] for argument in arguments]
    names = {word[2:].replace("-", "_") for word in words if word.startswith("--")}
    return names | {re.sub("^no_", "", name) for name in names}


def check_known(names: Iterable[str], config: Any, others: Iterable, what: str) -> None:
    """ValueError for a setting of other configurations that this one does not have."""
    own = {f.name for f in fields(config)} - set(OF_THE_TOKENIZER)
    elsewhere = {f.name for other in others for f in fields(other)} - own
    for name in sorted(elsewhere - set(OF_THE_TOKENIZER)):
        if name in names:
            known = ", ".join(in_words(other) for other in sorted(own))
            raise ValueError(f"{in_words(name)} is no option of {what}: it has {known}")


def settings_given(config: partial, names: set[str]) -> dict[str, Any]:
    """Of a configuration that was parsed (`Settings`), those settings that are given."""
    return {name: v for name, v in config.keywords.items() if name in names}


def typed(kind: Any) -> Any:
    """A setting's type without the functions that only Python can hand in."""
    kinds = [k for k in get_args(kind) if get_origin(k) is not Callable]
    return kinds[0] if len(kinds) == 1 else kind


class Settings(tyro.constructors.ConstructorRegistry):
    """Inside the block tyro parses these configurations into functions that make them.

    So a setting that a configuration refuses is told like every other mistake. What the tokenizer
    decides is no option.
    """

    def __init__(self, *configs: type) -> None:
        super().__init__()
        self.struct_rule(self.rule)
        self.waiting = set(configs)

    def rule(self, info: Any) -> Any:
        """The rule of tyro's own, with another end."""
        if info.type not in self.waiting:
            return None
        self.waiting.remove(info.type)  # so that the next line finds tyro's rule
        spec = self.get_struct_spec(info)
        self.waiting.add(info.type)
        later: Callable = partial(partial, replace, info.default)
        options = [
            replace(f, type=typed(f.type))
            for f in spec.fields
            if f.name not in OF_THE_TOKENIZER
        ]
        return replace(spec, instantiate=later, fields=tuple(options))
