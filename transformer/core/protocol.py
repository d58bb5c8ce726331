"""What the loop, the searches, saving, loading, evaluation and the command line ask of a model.

A model is a `SequenceModel`, an `nn.Module` with three methods, and has a `config`: a frozen
dataclass with the five fields of `SequenceConfig`; what else travels with it is `model.about`. Its
constructor does not read the tensors that it makes (no `.item()`), because saving and loading also build it
without memory. Once registered under a name, its family, it can be trained, saved, loaded and translated with by everything else:

    transformer.register("mine", MyModel, MyConfig)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

from transformer.core.checks import check_search
from transformer.core.settings import take_plain_numbers


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


@dataclass(frozen=True)
class About:
    """What travels with a model besides its configuration: `model.about`.

    ValueError for a language that is no text, a beam or an alpha out of range.
    """

    source: str | None = None  # code of the language that it reads, such as "en"
    target: str | None = None  # and of the one that it writes; None: nobody has said
    beam: int = 4  # hypotheses kept alive, as chosen on validation; the paper's
    alpha: float = 0.6  # length penalty, as chosen on validation; the paper's

    def __post_init__(self) -> None:
        take_plain_numbers(self)
        for name, code in (("source", self.source), ("target", self.target)):
            if code is not None and not (isinstance(code, str) and code.strip()):
                raise ValueError(
                    f'{name} must be the code of a language, such as "de", or None, '
                    f"not {code!r}"
                )
        check_search(self.beam, self.alpha, n_best=1)


class SequenceModel(nn.Module, ABC):
    """What reads a source and writes a target. One that writes nothing has `initial_state = None`."""

    config: Any

    @property
    def about(self) -> About:
        """Languages, beam and length penalty of this model; `About()` until it is set.

        It is saved and loaded with the model. To set: `model.about = About("en", "de", beam=6)`;
        ValueError for anything but an `About`.
        """
        return getattr(self, "_about", About())

    @about.setter
    def about(self, value: About) -> None:
        if not isinstance(value, About):
            raise ValueError(
                'model.about must be an About, such as About("en", "de", beam=4, '
                f"alpha=0.6), not {value!r}"
            )
        self._about = value

    @abstractmethod
    def loss(self, batch: Any, criterion: Callable) -> Tensor:
        """criterion(output, x, gold) of a `Batch`: the summed loss of its real target tokens.

        output maps the states x (..., d_model) to logits (..., V) and has their matrix as
        `weight` (V, d_model).
        """

    @abstractmethod
    def initial_state(self, source: Tensor, new_cache: Callable[[], Any]) -> State:
        """Read source ids (B, S), padding included; the state of a search that wrote nothing yet.

        new_cache() makes an empty cache of keys and values: an object with `update(k, v)`.
        """

    @abstractmethod
    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Write tokens (rows, 1) and change the state; logits (rows, V) of what comes next."""


def check_plain(model: nn.Module) -> None:
    """ValueError for a model inside DistributedDataParallel or the like."""
    if not hasattr(model, "config") and isinstance(
        inner := getattr(model, "module", None), nn.Module
    ):
        raise ValueError(
            f"{type(model).__name__} stands around the model, a {type(inner).__name__}: "
            "hand in model.module"
        )


def check_sequence_model(model: Any) -> None:
    """ValueError for a model of another class, of which nothing is known (`model.about`)."""
    if not hasattr(model, "about"):
        raise ValueError(
            f"{type(model).__name__} is no SequenceModel: derive it from that of "
            "transformer.core.protocol, which says what a model must have, and register it"
        )


def longest_source(model: Any) -> int:
    """Most tokens of a source, the end mark included: where the output goes on behind it, it needs
    a position, too."""
    return model.config.max_positions - getattr(model.config, "one_sequence", False)
