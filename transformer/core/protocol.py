"""What the loop, the searches, saving, loading, evaluation and the command line ask of a model.

A model is a `SequenceModel`, an `nn.Module` with three methods, and has a `config`: a frozen
dataclass with the five fields of `SequenceConfig`. Its constructor does not read the tensors that
it makes (no `.item()`), because saving and loading also build it without memory. Once registered
under a name, its kind, it can be trained, saved, loaded and translated with by everything else:

    transformer.register("mine", MyModel, MyConfig)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn


class SequenceConfig(Protocol):
    """What a model's configuration must have; its other fields are the model's own."""

    vocab_size: int
    max_positions: int
    pad_id: int
    bos_id: int
    eos_id: int


class State(Protocol):
    """What a search keeps between two steps: all that the model has read and written."""

    def select(self, rows: Tensor) -> None:
        """Keep these rows (n,), in this order; one may come several times."""


class SequenceModel(nn.Module, ABC):
    """What reads a source and writes a target. One that writes nothing has `start = None`."""

    config: Any

    @abstractmethod
    def loss(self, batch: Any, criterion: Callable) -> Tensor:
        """criterion(output, x, gold) of a `Batch`: the summed loss of its real target tokens.

        output maps the states x (..., d_model) to logits (..., V) and has their matrix as
        `weight` (V, d_model).
        """

    @abstractmethod
    def start(self, source: Tensor, new_cache: Callable[[], Any]) -> State:
        """Read source ids (B, S), padding included; the state of a search that wrote nothing yet.

        new_cache() makes an empty cache of keys and values: an object with `update(k, v)`.
        """

    @abstractmethod
    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Write tokens (rows, 1) and change the state; logits (rows, V) of what comes next."""


@dataclass(frozen=True)
class About:
    """What travels with a model besides its configuration: `model.about`."""

    source: str = "en"  # code of the language that it reads
    target: str = "de"  # and of the one that it writes
    beam: int = 4  # hypotheses kept alive, as chosen on validation; the paper's
    alpha: float = 0.6  # length penalty, as chosen on validation; the paper's


def about(model: Any) -> About:
    """What is known about a model; the defaults where nobody has said anything."""
    return getattr(model, "about", About())


def longest_source(model: Any) -> int:
    """Most tokens of a source, the end mark included: where the output goes on behind it, it needs
    a position, too."""
    return model.config.max_positions - getattr(model.config, "one_sequence", False)
