"""Configurations as options of the command line: what is not given stays as it is."""

import inspect
import re
from dataclasses import fields, make_dataclass, replace
from typing import Annotated, Any, get_type_hints

import tyro

OF_THE_TOKENIZER = ("pad_id", "bos_id", "eos_id")
SAID = re.compile(
    r"^    (\w+): .*?  # (.*)$", re.MULTILINE
)  # a field, and the comment beside it


def meanings(config: type) -> dict[str, str]:
    """What a dataclass's source says about its fields; nothing where there is no source."""
    found = {}
    for base in reversed(config.__mro__[:-1]):
        try:
            source = inspect.getsource(base)
        except (OSError, TypeError):
            continue
        found |= dict(SAID.findall(source))
    return found


def options_of(name: str, *configs: type) -> type:
    """A dataclass with the fields of configurations, None where not given.

    A field that is True or False becomes two options, --field and --no-field.
    """
    found = {}
    for config in configs:
        hints, says = get_type_hints(config), meanings(config)
        for f in fields(config):
            if f.name in OF_THE_TOKENIZER or f.name in found:
                continue
            meaning = tyro.conf.arg(help=says.get(f.name, ""))
            if hints[f.name] is bool:
                found[f.name] = Annotated[bool, meaning], False
                found[f"no_{f.name}"] = (
                    Annotated[bool, tyro.conf.arg(help="not so")],
                    False,
                )
            else:
                found[f.name] = Annotated[hints[f.name] | None, meaning], None
    return make_dataclass(name, [(key, *value) for key, value in found.items()])


def given(options: Any) -> dict[str, Any]:
    """The settings that options give."""
    found = {}
    for name, value in vars(options).items():
        if (
            value is True
            and name.removeprefix("no_") in vars(options)
            and name.startswith("no_")
        ):
            found[name.removeprefix("no_")] = False
        elif value is not None and value is not False:
            found[name] = value
    return found


def changed(config: Any, options: Any, what: str) -> Any:
    """A configuration with the settings that options give.

    ValueError for a setting that it does not have, and for one that it refuses.
    """
    own = {f.name for f in fields(config)} - set(OF_THE_TOKENIZER)
    for name in given(options):
        if name not in own:
            known = ", ".join(f"--{key.replace('_', '-')}" for key in sorted(own))
            raise ValueError(
                f"--{name.replace('_', '-')} is no option of {what}: it has {known}"
            )
    return replace(config, **given(options))
