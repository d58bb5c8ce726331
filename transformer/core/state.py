"""What a search carries from step to step (notebook 15). Nothing here knows the model."""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from transformer.core.checks import check_logits
from transformer.core.protocol import SequenceModel


@dataclass
class DecoderState:
    """One row for each hypothesis that is alive.

    caches: pairs with `select(rows)`, of what is written and of what is read, a pair a layer.
    source_mask: True where a source token is real, a row for each, as `states` takes it. memory: what an encoder left,
    (rows, S, d), where a model reads it anew at each step. length: tokens read so far.
    """

    caches: list
    source_mask: torch.Tensor
    memory: torch.Tensor | None = None
    length: int = 0
    source: torch.Tensor = field(
        init=False
    )  # (rows,): which sentence each row translates

    def __post_init__(self) -> None:
        self.source = torch.arange(
            len(self.source_mask), device=self.source_mask.device
        )

    def select(self, rows: torch.Tensor) -> None:
        """Row i becomes what row rows[i] was: hypotheses are dropped, repeated and reordered."""
        source = self.source[rows]
        others = not torch.equal(
            source, self.source
        )  # otherwise what is read stays in place
        for own, of_source in self.caches:
            own.select(rows)
            if others:
                of_source.select(rows)
        if others:
            self.source = source
            self.source_mask = self.source_mask[rows]
            self.memory = None if self.memory is None else self.memory[rows]

    def shorten(self, length: int) -> None:
        """Forget all that was read behind the first `length` tokens."""
        self.length = length
        for own, _ in self.caches:
            own.shorten(length)


class Cache:
    """Tensors that a step leaves for the next one, a row for each hypothesis."""

    def __init__(self) -> None:
        self.tensors: tuple[torch.Tensor, ...] = ()

    def select(self, rows: torch.Tensor) -> None:
        """Keep these rows, in this order: hypotheses go, repeat, change places."""
        self.tensors = tuple(x.index_select(0, rows) for x in self.tensors)


def caches_of(
    layers: Iterable, memory: torch.Tensor, new_cache: Callable
) -> list[tuple]:
    """A pair of caches for each layer: an empty one for what will be written, and one that holds
    the keys and values of the memory where the layer looks at it. What remembers something else
    than keys and values has a `new_cache` of its own."""
    pairs = []
    for layer in layers:
        of_memory = new_cache()
        if layer.cross_attention is not None:
            of_memory.update(*layer.cross_attention.keys_and_values(memory, memory))
        own = getattr(layer.self_attention, "new_cache", new_cache)
        pairs.append((own(), of_memory))
    return pairs


class EncoderDecoder(SequenceModel):
    """A `SequenceModel` made of an encoder, a decoder and `output` (from states to logits).

    A subclass has `encode` and `states`, and `new_caches` or an `initial_state` of its own. Where it also
    extends a plain class that has some of these, that class comes first:
    `class Transformer(plain.Transformer, EncoderDecoder)`.
    """

    output: Callable[[torch.Tensor], torch.Tensor]

    @abstractmethod
    def encode(self, source: torch.Tensor) -> torch.Tensor:
        """Source ids (B, S) -> memory, with B and S as its first two axes."""

    @abstractmethod
    def states(
        self,
        target: torch.Tensor,
        memory: torch.Tensor,
        source_mask: torch.Tensor | None,
        caches: list | None = None,
        start: int = 0,
    ) -> torch.Tensor:
        """Target ids (B, T) over a memory -> what `output` makes logits of, (B, T, d_model).

        source_mask: what `mask` gives, or None where every token is real. With caches the target
        holds new tokens only, from position start on.
        """

    def new_caches(self) -> list[tuple]:
        """Empty caches, of what is written and of what is read, a pair a layer."""
        raise NotImplementedError(
            "a model without caches of its own has its own initial_state"
        )

    def mask(self, source: torch.Tensor) -> torch.Tensor:
        """True where a source token is real: ids (B, S) -> (B, 1, 1, S)."""
        return (source != self.config.pad_id)[:, None, None]

    def loss(self, batch: Any, criterion: Callable) -> torch.Tensor:
        """criterion(output, states, gold) of a `Batch`: what training makes small."""
        memory = self.encode(batch.source)
        x = self.states(batch.decoder_input, memory, self.mask(batch.source))
        return criterion(self.output, x, batch.gold)

    def initial_state(
        self, source: torch.Tensor, new_cache: Callable[[], Any] | None = None
    ) -> DecoderState:
        """The `DecoderState` of a search that has read source (B, S) and written nothing.

        A model with caches of its own does not need new_cache.
        """
        return DecoderState(self.new_caches(), self.mask(source), self.encode(source))

    def step(self, tokens: torch.Tensor, state: DecoderState) -> torch.Tensor:
        """Read each hypothesis' next tokens (rows, T) -> logits (rows, V) of what follows."""
        x = self.states(
            tokens, state.memory, state.source_mask, state.caches, state.length
        )
        state.length += tokens.shape[1]
        return check_logits(self.output(x[:, -1]))
