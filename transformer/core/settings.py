"""Checks that configurations share: what cannot work is refused with one sentence."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Self, get_args, get_origin

from transformer.core.names import did_you_mean

MOST = {
    "N": 1000,
    "max_positions": 100_000,
}  # layers and positions; time and memory go with them
LARGEST = 10**7  # any other size
LONGEST = 10**12  # updates, tokens, minutes and the like


def named_sizes(presets: dict, name: str) -> dict:
    """The fields that a preset sets; ValueError, listing them all, for a name that is none."""
    if name not in presets:
        raise ValueError(
            f"unknown preset {name!r}{did_you_mean(name, presets)}: choose one of "
            f"{', '.join(presets)}"
        )
    return presets[name]


def take_plain_numbers(config: Any) -> None:
    """Turn the numbers of numpy, and tensors of one number, in a configuration into Python's."""
    for field in fields(config):
        value = getattr(config, field.name)
        if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
            object.__setattr__(config, field.name, value.item())


def check_switches(config: Any) -> None:
    """ValueError where a field that is True or False is something else."""
    take_plain_numbers(config)
    for field in fields(config):
        value = getattr(config, field.name)
        if field.type is bool and not isinstance(value, bool):
            raise ValueError(f"{field.name} must be True or False, not {value!r}")


def check_size(name: str, expected: Any, value: Any) -> None:
    """ValueError where the value of a field is not of its type, a size is not at least 1, or larger
    than any machine's."""
    choices = get_args(expected)
    if value is None and type(None) in choices:
        return
    if get_origin(expected) is Literal and value not in choices:
        some, last = ", ".join(map(repr, choices[:-1])), repr(choices[-1])
        near = did_you_mean(value, choices)
        raise ValueError(f"{name} must be {some} or {last}, not {value!r}{near}")
    if expected is float and not isinstance(value, (int, float)):
        raise ValueError(f"{name} must be a number, not {value!r}")
    if int not in (expected, *choices):
        return
    if type(value) is not int:
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    if not name.endswith("_id") and value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    if value > MOST.get(name, LARGEST):
        raise ValueError(
            f"{name} must be at most {MOST.get(name, LARGEST)}, not {value}"
        )


def check_marks(config: Any) -> None:
    """ValueError where padding, start and end are not three types of the vocabulary."""
    ids = [config.pad_id, config.bos_id, config.eos_id]
    if not all(0 <= token < config.vocab_size for token in ids):
        raise ValueError(
            "pad_id, bos_id and eos_id must lie inside the vocabulary of "
            f"{config.vocab_size} types"
        )
    if len(set(ids)) < 3:
        raise ValueError(
            "pad_id, bos_id and eos_id must be three different ids, not "
            f"{ids[0]}, {ids[1]} and {ids[2]}"
        )


def check_sizes(config: Any) -> None:
    """ValueError where the fields of a model's configuration are not of their types, sizes are not
    at least 1, or ids are no types of the vocabulary."""
    check_switches(config)
    for field in fields(config):
        check_size(field.name, field.type, getattr(config, field.name))
    check_fractions(config, "P_drop")
    check_marks(config)


@dataclass(frozen=True)
class EncoderDecoderConfig:
    """The fields that the models of notebooks 01 and 02 share.

    ValueError for a value out of its range.
    """

    vocab_size: int  # types in the vocabulary that both languages share
    d_model: int = 512  # width of every token's vector between layers
    N: int = 2  # layers in the encoder, and as many in the decoder
    P_drop: float = 0.1  # dropout on embeddings and between layers
    max_positions: int = 1024  # longest sentence in tokens
    pad_id: int = 0  # token id that fills up short sentences
    bos_id: int = 1  # token id that every target begins with
    eos_id: int = 2  # token id that every sentence ends with
    presets: ClassVar[dict[str, dict]] = {
        "tiny": dict(d_model=128),
        "small": dict(d_model=256),
        "base": dict(),
    }

    def __post_init__(self) -> None:
        check_sizes(self)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """A named size: "tiny", "small" or "base"; changes replace single fields."""
        return cls(**{**named_sizes(cls.presets, name), **changes})


def values_of(config: Any, names: str) -> dict:
    """{name: value} of some fields (names in one string); None is left out where it is a
    default."""
    take_plain_numbers(config)
    optional = {field.name for field in fields(config) if field.default is None}
    values = {name: getattr(config, name) for name in names.split()}
    return {
        name: v for name, v in values.items() if v is not None or name not in optional
    }


def check_counts(config: Any, names: str) -> None:
    """ValueError where one of these fields is no whole number of at least 1, or another one that
    has to be whole (a seed) is not."""
    for name, value in values_of(config, names).items():
        if type(value) is not int or value < 1:
            raise ValueError(
                f"{name} must be a whole number of at least 1, not {value!r}"
            )
        if value > LONGEST:
            raise ValueError(f"{name} must be at most {LONGEST}, not {value}")
    check_switches(config)
    for field in fields(config):
        value = getattr(config, field.name)
        if field.type is int and (type(value) is not int or abs(value) >= 2**63):
            raise ValueError(
                f"{field.name} must be a whole number below 2^63, not {value!r}"
            )


def check_positive(config: Any, names: str) -> None:
    """ValueError where one of these fields is no number above 0."""
    for name, value in values_of(config, names).items():
        if type(value) not in (int, float) or not value > 0:
            raise ValueError(f"{name} must be above 0, not {value!r}")
        if value > LONGEST:
            raise ValueError(f"{name} must be at most {LONGEST}, not {value}")


def check_fractions(config: Any, names: str) -> None:
    """ValueError where one of these fields is not at least 0 and below 1."""
    for name, value in values_of(config, names).items():
        if type(value) not in (int, float) or not 0 <= value < 1:
            raise ValueError(f"{name} must be at least 0 and below 1, not {value!r}")
