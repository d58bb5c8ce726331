"""Notebook 01's model for training and search: caches, LSTMs, one vector instead of attention."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from transformer import recurrence as plain
from transformer.core.checks import check_padding, check_sides, outside_vocabulary
from transformer.core.settings import EncoderDecoderConfig
from transformer.core.state import Cache, EncoderDecoder
from transformer.recurrence import blend, summary


@dataclass(frozen=True)
class RecurrenceConfig(EncoderDecoderConfig):
    """The sizes of a `RecurrentEncoderDecoder`."""

    cell: Literal["gru", "lstm"] = "gru"  # the kind of recurrent layer
    attention: bool = True  # look at every state of the encoder, or get one vector only

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % 2:
            raise ValueError(
                "d_model must be even, because the encoder reads in two "
                f"directions, not {self.d_model}"
            )

    def forward_flops(self, S: float, T: float) -> float:
        """FLOPs of the matrix products in one pass over a pair of S and T tokens."""
        d = self.d_model
        gates = {"gru": 3, "lstm": 4}[self.cell]
        # two halves of d / 2 read the source, a whole d writes the target
        layers = self.N * gates * (3 * S + 4 * T) * d * d
        start = 2 * d * d * self.N * (gates - 2)  # a layer's, of an LSTM two
        look = 2 * (S + T) * d * d + 4 * S * T * d if self.attention else 0
        return layers + start + look + 4 * T * d * d + 2 * T * d * self.vocab_size


class OwnPrecision(nn.Module):
    """A recurrent layer of torch that computes in its own precision on a GPU: inside autocast torch
    would give cuDNN's layers fp16, whatever was asked for."""

    def forward(self, x, state=None):
        if not x.is_cuda:
            return super().forward(x, state)
        dtype = next(self.parameters()).dtype
        if isinstance(state, tuple):
            state = tuple(s.to(dtype) for s in state)
        elif state is not None:
            state = state.to(dtype)
        with torch.autocast("cuda", enabled=False):
            return super().forward(x.to(dtype), state)


class GRU(OwnPrecision, nn.GRU):
    """torch's, in its own precision."""


class LSTM(OwnPrecision, nn.LSTM):
    """torch's, in its own precision."""


def recurrent_layers(c: RecurrenceConfig, bidirectional: bool = False) -> nn.Module:
    """N layers of torch's GRU or LSTM, d_model wide in all.

    x (B, T, d_model) -> (B, T, d_model) and last states.
    """
    kind = {"gru": GRU, "lstm": LSTM}[c.cell]
    return kind(
        c.d_model,
        c.d_model // (2 if bidirectional else 1),
        c.N,
        batch_first=True,
        bidirectional=bidirectional,
        dropout=c.P_drop if c.N > 1 else 0.0,
    )


def go_on(layers: nn.Module, x: Tensor, state: tuple) -> tuple[Tensor, tuple]:
    """Run torch's recurrent layers from a state: x (B, T, d) -> y (B, T, d), the last state.

    A state is a tuple of (B, N, d): a GRU has one tensor, an LSTM two. Torch wants the batch on
    their second axis; here it comes first, as everywhere.
    """
    state = tuple(s.transpose(0, 1).contiguous() for s in state)
    y, state = layers(x, state if len(state) == 2 else state[0])
    state = state if isinstance(state, tuple) else (state,)
    return y, tuple(s.transpose(0, 1).contiguous() for s in state)


class RecurrentEncoder(plain.RecurrentEncoder):
    """The plain one with layers of either kind."""

    def __init__(self, c: RecurrenceConfig):
        nn.Module.__init__(self)  # the plain one would draw a GRU's weights
        self.layers = recurrent_layers(c, bidirectional=True)


class AdditiveScore(plain.AdditiveScore):
    """The plain one, for which keys can be multiplied by U beforehand."""

    def forward(self, q: Tensor, keys: Tensor, multiplied: bool = False) -> Tensor:
        if not multiplied:
            return super().forward(q, keys)
        hidden = torch.tanh(self.W(q).unsqueeze(-2) + keys.unsqueeze(-3))
        return self.w(hidden).squeeze(-1)


class RecurrentDecoder(plain.RecurrentDecoder):
    """The plain one with layers of either kind, without attention if asked, and with `Cache`s: own
    holds its states, cross the memory's keys times U."""

    def __init__(self, c: RecurrenceConfig):
        nn.Module.__init__(self)  # the plain one would draw a GRU's weights
        self.vectors = {"gru": 1, "lstm": 2}[c.cell]  # an LSTM's state is two vectors
        self.start = nn.Linear(c.d_model, self.vectors * c.N * c.d_model)
        self.layers = recurrent_layers(c)
        self.score = AdditiveScore(c.d_model) if c.attention else None
        self.join = nn.Linear(2 * c.d_model, c.d_model)

    def first_state(self, memory: Tensor) -> tuple[Tensor, ...]:
        """(B, N, d_model), once for a GRU, twice for an LSTM."""
        start = torch.tanh(self.start(memory[:, 0]))
        start = start.unflatten(-1, (self.vectors, self.layers.num_layers, -1))
        return start.unbind(dim=1)

    def look(
        self, y: Tensor, memory: Tensor, mask: Tensor | None, cross: Cache
    ) -> Tensor:
        """The context of each state: y (B, T, d_model) -> (B, T, d_model)."""
        if self.score is None:
            return memory.expand_as(y)
        if not cross.tensors:
            cross.tensors = (self.score.U(memory),)
        scores = self.score(y, cross.tensors[0], multiplied=True)
        return blend(scores, memory, mask)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None,
        own: Cache | None = None,
        cross: Cache | None = None,
    ) -> Tensor:
        own, cross = own or Cache(), cross or Cache()
        y, own.tensors = go_on(self.layers, x, own.tensors or self.first_state(memory))
        context = self.look(y, memory, mask, cross)
        return torch.tanh(self.join(torch.cat([y, context], dim=-1)))


def sentence_lengths(source: Tensor, pad_id: int) -> Tensor:
    """Tokens of each sentence without the padding at its end: (B, S) -> (B,).

    ValueError, naming it, for an empty sentence and for padding that stands before a token.
    """
    real = source != pad_id
    check_padding(real)
    return real.sum(dim=1)


class RecurrentEncoderDecoder(plain.RecurrentEncoderDecoder, EncoderDecoder):
    """Recurrent encoder and decoder: ids (B, S) and (B, T) -> logits (B, T, V).

    Raises ValueError for a token id outside the vocabulary (checked on a CPU), an empty source
    sentence, and sides that do not pair up.
    """

    def __init__(self, config: RecurrenceConfig):
        super().__init__(config, RecurrentEncoder, RecurrentDecoder)

    def embed(self, tokens: Tensor) -> Tensor:
        """Token ids (B, T) -> vectors (B, T, d_model)."""
        try:
            return super().embed(tokens)
        except IndexError:
            raise outside_vocabulary(tokens, self.config.vocab_size) from None

    def encode(self, source: Tensor) -> Tensor:
        """Source ids (B, S) -> memory (B, S, d_model), or (B, 1, d_model)."""
        lengths = sentence_lengths(source, self.config.pad_id)
        states = self.encoder(self.embed(source), lengths)
        return states if self.config.attention else summary(states, lengths)

    def new_caches(self) -> list[tuple[Cache, Cache]]:
        """Two empty caches: for the decoder's states, and for the memory's keys."""
        return [(Cache(), Cache())]

    def states(
        self,
        target: Tensor,
        memory: Tensor,
        source_mask: Tensor | None,
        caches: list | None = None,
        start: int = 0,
    ) -> Tensor:
        """The decoder's output (B, T, d_model); see `EncoderDecoder`."""
        own, cross = (caches or self.new_caches())[0]
        x = self.embed(target)
        y = self.dropout(self.decoder(x, memory, source_mask, own, cross))
        # with mixed precision (11) y has 16 bits a number; the loss wants 32
        return y.to(self.embedding.weight.dtype)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        check_sides(source, target)
        return super().forward(source, target)
