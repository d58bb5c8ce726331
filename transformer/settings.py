"""Checks that configurations share: what cannot work is refused with one sentence."""

from dataclasses import fields
from typing import Any


def check_sequence_sizes(config: Any) -> None:
    """ValueError where sizes or ids of a `SequenceConfig` cannot make a model."""
    for name in ("vocab_size", "d_model", "N", "max_positions"):
        if getattr(config, name) < 1:
            raise ValueError(f"{name} must be at least 1, not {getattr(config, name)}")
    check_fractions(config, "P_drop")
    check_marks(config)
    ids = [config.pad_id, config.bos_id, config.eos_id]
    if len(set(ids)) < 3:
        raise ValueError("pad_id, bos_id and eos_id must be three different ids, not "
                         f"{ids[0]}, {ids[1]} and {ids[2]}")


def named_sizes(presets: dict, name: str) -> dict:
    """The fields that a preset sets; ValueError, listing them all, for a name that is none."""
    if name not in presets:
        raise ValueError(f"unknown preset {name!r}: choose one of {', '.join(presets)}")
    return presets[name]


def check_sizes(c: Any) -> None:
    """ValueError where the fields of a `TransformerConfig` cannot make a model."""
    for field in fields(c):
        name, value = field.name, getattr(c, field.name)
        if isinstance(field.default, bool) and not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, not {value!r}")
        whole = field.type in (int, int | None)
        if whole and type(value) is not int and not (value is None and name in ("d_k", "d_v")):
            raise ValueError(f"{name} must be a whole number, not {value!r}")
        if whole and value is not None and not name.endswith("_id") and value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    if not isinstance(c.P_drop, (int, float)):
        raise ValueError(f"P_drop must be a number, not {c.P_drop!r}")
    check_fractions(c, "P_drop")
    if c.positions not in ("sinusoidal", "learned", "rotary"):
        raise ValueError("positions must be 'sinusoidal', 'learned' or 'rotary', "
                         f"not {c.positions!r}")
    check_marks(c)


def check_marks(c: Any) -> None:
    """ValueError where a mark of the tokenizer's is no type of the vocabulary."""
    if not all(0 <= token < c.vocab_size for token in (c.pad_id, c.bos_id, c.eos_id)):
        raise ValueError("pad_id, bos_id and eos_id must lie inside the vocabulary of "
                         f"{c.vocab_size} types")


def given(config: Any, names: str) -> dict:
    """{name: value} of some fields (names in one string); None is left out where it is a
    default."""
    optional = {field.name for field in fields(config) if field.default is None}
    values = {name: getattr(config, name) for name in names.split()}
    return {name: v for name, v in values.items() if v is not None or name not in optional}


def check_counts(config: Any, names: str) -> None:
    """ValueError where one of these fields is no whole number of at least 1."""
    for name, value in given(config, names).items():
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")


def check_positive(config: Any, names: str) -> None:
    """ValueError where one of these fields is no number above 0."""
    for name, value in given(config, names).items():
        if type(value) not in (int, float) or not value > 0:
            raise ValueError(f"{name} must be above 0, not {value!r}")


def check_fractions(config: Any, names: str) -> None:
    """ValueError where one of these fields is not at least 0 and below 1."""
    for name, value in given(config, names).items():
        if not 0 <= value < 1:
            raise ValueError(f"{name} must be at least 0 and below 1, not {value}")
