"""The families of models, by name: what builds each, and the configuration by which it is told.

    register("mine", MyModel, MyConfig)

makes a family of one's own known to training, saving, loading and the command line (`--family mine`).
A folder's config.json has the name as "kind". The package's own are imported when they are first asked for: a Transformer needs no notebook 25.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pkgutil import resolve_name
from typing import Any

import torch
from torch import nn

from transformer.core.names import did_you_mean
from transformer.core.protocol import SequenceConfig
from transformer.core.weights import count_parameters
from transformer.fast import FAST


@dataclass(frozen=True)
class Family:
    """What builds a family's model from its configuration (a class, or a function), and the
    configuration's class; or where they are, "package.module:Name"."""

    model: Callable[..., nn.Module] | str
    config: type | str


FAMILIES = {
    "transformer": Family(
        "transformer.fast.model:Transformer", "transformer.fast.model:TransformerConfig"
    ),
    "recurrence": Family(
        "transformer.fast.recurrence:RecurrentEncoderDecoder",
        "transformer.fast.recurrence:RecurrenceConfig",
    ),
    "convolution": Family(
        "transformer.fast.convolution:ConvolutionalEncoderDecoder",
        "transformer.fast.convolution:ConvolutionConfig",
    ),
    "language": Family(
        "transformer.language:LanguageModel", "transformer.language:LanguageConfig"
    ),
    "marian": Family(
        "transformer.imported:marian", "transformer.imported:MarianConfig"
    ),
    "gpt2": Family("transformer.imported:gpt2", "transformer.imported:GPT2Config"),
}

# what a tokenizer.json says it is, and the class that reads it; one that says nothing is the first
TOKENIZERS: dict[str, type | str] = {
    "bytes": "transformer.corpora.tokenizer:Tokenizer",
    "marian": "transformer.models.pieces:SentencePieces",
    "gpt2": "transformer.models.pieces:GPT2Pieces",
}


def place_of(named: type) -> str:
    """Where a class is, "package.module:Name"."""
    return f"{named.__module__}:{named.__qualname__}"


def imported(class_or_place: Any) -> Any:
    """A class or a function itself, imported where only its place is known."""
    if isinstance(class_or_place, str):
        return resolve_name(class_or_place)
    return class_or_place


def register(name: str, model: Callable[..., nn.Module], config: type) -> None:
    """Make a family of models known by its name; a name that is taken gets the new classes.

    ValueError where the configuration's class, by which a family is told, belongs to another, and
    where one of the two is none.
    """
    its_class = isinstance(config, type) and not issubclass(config, nn.Module)
    if not its_class or not callable(model):
        raise ValueError(
            f"register({name!r}, model, config) takes what builds a model, and then the class "
            f"of its configuration, not {model!r} and {config!r}"
        )
    for other, known in FAMILIES.items():
        if other != name and known.config in (config, place_of(config)):
            raise ValueError(
                f"{place_of(config)} is the configuration of {other}: give {name} one "
                "of another name, if only derived from it by `pass`"
            )
    FAMILIES[name] = Family(model, config)


def registered() -> tuple[str, ...]:
    """The names of all families."""
    return tuple(FAMILIES)


def family_named(name: str) -> Family:
    """The family with its classes imported; ValueError, listing all, for a name that is none."""
    if name not in FAMILIES:
        raise ValueError(
            f"unknown family of models {name!r}{did_you_mean(name, FAMILIES)}: "
            f"choose one of {', '.join(FAMILIES)}, or "
            "import the module that registers it first (on the command line --import)"
        )
    return Family(imported(FAMILIES[name].model), imported(FAMILIES[name].config))


def tokenizer_named(name: str) -> Any:
    """The class that reads such a tokenizer; KeyError for a name that is none."""
    return imported(TOKENIZERS[name])


def family_of(model_or_config: Any, own: bool = False) -> str:
    """The name of a model's or a configuration's family, or of one that its class is derived from.

    own: of its class itself, as `load` needs it. ValueError where it is not registered.
    """
    config = getattr(model_or_config, "config", model_or_config)
    for base in type(config).__mro__[: 1 if own else None]:
        for name, family in FAMILIES.items():
            if family.config in (base, place_of(base)):
                return name
    raise ValueError(
        f"{type(config).__name__} belongs to no family of models: register it first "
        "(transformer.register)"
    )


def build(config: SequenceConfig, parts: Any = None) -> Any:
    """The model of a configuration, with fresh weights.

    parts: what the family's class takes as `parts`, where it takes any (`fast.model.Parts` of a
    Transformer); its own where not given.
    """
    model = family_named(family_of(config)).model
    return model(config) if parts is None else model(config, parts=parts)


TAKES_PARTS = ("transformer", "language")


def build_fast(config: SequenceConfig) -> nn.Module:
    """The model of a configuration with fresh weights, from fast parts where its family has any."""
    if family_of(config) in TAKES_PARTS:
        return build(config, parts=FAST)
    return build(config)


@cache
def parameters_of(config: SequenceConfig) -> int:
    """How many parameters a model of this configuration has, without making it.

    ValueError for sizes that do not fit. (torch's `meta` device has shapes and no numbers.)
    """
    with torch.device("meta"):
        return count_parameters(build(config))
