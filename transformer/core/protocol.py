"""What the loop, the searches, saving, loading, evaluation and the command line ask of a model.

A model is an `nn.Module` with the three methods of `SequenceModel` and a `config`: a frozen
dataclass with the five fields of `SequenceConfig`. Its constructor does not read the tensors that
it makes (no `.item()`), because saving and loading also build it without memory. Once registered
under a name, its kind, it can be trained, saved, loaded and translated with by everything else:

    register("mine", MyModel, MyConfig)
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
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


class SequenceModel(Protocol):
    """What reads a source and writes a target; also an `nn.Module`."""

    config: Any

    def loss(self, batch, criterion: Callable) -> Tensor:
        """criterion(output, x, gold) of a `Batch`: the summed loss of its real target tokens.

        output maps the states x (..., d_model) to logits (..., V) and has their matrix as
        `weight` (V, d_model).
        """

    def start(self, source: Tensor, new_cache: Callable[[], Any]) -> State:
        """Read source ids (B, S), padding included; the state of a search that wrote nothing yet.

        new_cache() makes an empty cache of keys and values: an object with `update(k, v)`.
        """

    def step(self, tokens: Tensor, state: State) -> Tensor:
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


@dataclass(frozen=True)
class Kind:
    """What builds a kind of model from its configuration (a class, or a function), and the
    configuration's class; or where they are ("package.module:Name").
    """

    model: Callable[..., nn.Module] | str
    config: type | str


KINDS: dict[str, Kind] = {}


def register(
    kind: str, model: Callable[..., nn.Module] | str, config: type | str
) -> None:
    """Make a kind of model known by its name; a name that is taken gets the new classes.

    ValueError where the configuration's class, by which a kind is told, belongs to another.
    """
    for other, known in KINDS.items():
        if other != kind and known.config in (config, place_of(config)):
            raise ValueError(
                f"{place_of(config)} is the configuration of {other}: give {kind} one "
                "of another name, if only derived from it by `pass`"
            )
    KINDS[kind] = Kind(model, config)


def place_of(name: type | str) -> str:
    """Where a class is, "package.module:Name", by which those of this package are registered."""
    return name if isinstance(name, str) else f"{name.__module__}:{name.__qualname__}"


register(
    "transformer",
    "transformer.fast.model:Transformer",
    "transformer.fast.model:TransformerConfig",
)
register(
    "recurrence",
    "transformer.recurrence:RecurrentEncoderDecoder",
    "transformer.recurrence:RecurrenceConfig",
)
register(
    "convolution",
    "transformer.convolution:ConvolutionalEncoderDecoder",
    "transformer.convolution:ConvolutionConfig",
)
register(
    "language",
    "transformer.language:LanguageModel",
    "transformer.language:LanguageConfig",
)
register("marian", "transformer.imported:marian", "transformer.imported:MarianConfig")
register("gpt2", "transformer.imported:gpt2", "transformer.imported:GPT2Config")

# what a tokenizer.json says it is, and the class that reads it; one that says nothing is the first
TOKENIZERS: dict[str, type | str] = {
    "bytes": "transformer.data:Tokenizer",
    "marian": "transformer.models.pieces:SentencePieces",
    "gpt2": "transformer.models.pieces:GPT2Pieces",
}


def found(name: Any) -> Any:
    """A class or function itself, imported where only its place is known."""
    if not isinstance(name, str):
        return name
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def kind_named(kind: str) -> Kind:
    """The kind with its classes imported; ValueError, listing all, for a name that is none."""
    if kind not in KINDS:
        raise ValueError(
            f"unknown kind of model {kind!r}: choose one of {', '.join(KINDS)}, or "
            "import the module that registers it first"
        )
    return Kind(found(KINDS[kind].model), found(KINDS[kind].config))


def kind_of(model_or_config: Any, own: bool = False) -> str:
    """The name of a model's or a configuration's kind, or of one that its class is derived from.

    own: of its class itself, as `load` needs it. ValueError where it is not registered.
    """
    config = getattr(model_or_config, "config", model_or_config)
    for base in type(config).__mro__[: 1 if own else None]:
        for name, kind in KINDS.items():
            if kind.config in (base, place_of(base)):
                return name
    raise ValueError(
        f"{type(config).__name__} belongs to no kind of model: register it first "
        "(transformer.core.protocol.register)"
    )


def longest_source(model: Any) -> int:
    """Most tokens of a source, the end mark included: where the output goes on behind it, it needs
    a position, too."""
    return model.config.max_positions - getattr(model.config, "one_sequence", False)


def build(config: SequenceConfig, **parts: Any) -> nn.Module:
    """The model of a configuration, with fresh weights; parts go to the model's class."""
    return kind_named(kind_of(config)).model(config, **parts)
