"""The frame of the models of notebooks 01 and 02: their sizes, embedding and output, and what a
search keeps. Nothing here knows the models."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer.core.checks import check_padding, check_sides, outside_vocabulary
from transformer.core.settings import check_sizes, named_sizes
from transformer.core.state import EncoderDecoder


@dataclass(frozen=True)
class SequenceConfig:
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
    presets = {"tiny": dict(d_model=128), "small": dict(d_model=256), "base": dict()}

    def __post_init__(self):
        check_sizes(self)

    @classmethod
    def preset(cls, name: str, **changes):
        """A named size: "tiny", "small" or "base"; changes replace single fields."""
        return cls(**{**named_sizes(cls.presets, name), **changes})


class SequenceToSequence(EncoderDecoder):
    """Source (B, S) and target (B, T) ids -> logits (B, T, V).

    A subclass has `encode`, `states` and `new_caches`. Embedding and output share one matrix.
    Raises ValueError for a token id outside the vocabulary (checked on a CPU), an empty source
    sentence, and sides that do not pair up.
    """

    def __init__(self, config: SequenceConfig):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.output.weight = self.embedding.weight
        self.dropout = nn.Dropout(config.P_drop)

    def embed(self, tokens: Tensor) -> Tensor:
        """Token ids (B, T) -> vectors (B, T, d_model)."""
        try:
            return self.embedding(tokens) * math.sqrt(self.config.d_model)
        except IndexError:
            raise outside_vocabulary(tokens, self.config.vocab_size) from None

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        check_sides(source, target)
        memory = self.encode(source)
        return self.output(self.states(target, memory, self.mask(source)))


def sentence_lengths(source: Tensor, pad_id: int) -> Tensor:
    """Tokens of each sentence without the padding at its end: (B, S) -> (B,).

    ValueError, naming it, for an empty sentence and for padding that stands before a token.
    """
    real = source != pad_id
    check_padding(real)
    return real.sum(dim=1)


class Cache:
    """Tensors that a step leaves for the next one, a row for each hypothesis."""

    def __init__(self):
        self.tensors = ()

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order: hypotheses go, repeat, change places."""
        self.tensors = tuple(x.index_select(0, rows) for x in self.tensors)


def recur(layers: nn.Module, x, *state):
    """layers(x, *state) of torch's recurrent layers, x a tensor or packed; on a GPU in their own
    precision: inside autocast torch would give cuDNN's layers fp16, whatever was asked for."""
    if not x.is_cuda:
        return layers(x, *state)
    dtype = next(layers.parameters()).dtype
    state = [
        tuple(t.to(dtype) for t in s) if isinstance(s, tuple) else s.to(dtype)
        for s in state
    ]
    with torch.autocast("cuda", enabled=False):
        return layers(x.to(dtype), *state)


def go_on(layers: nn.Module, x: Tensor, state: tuple) -> tuple[Tensor, tuple]:
    """Run torch's recurrent layers from a state: x (B, T, d) -> y (B, T, d), the last state.

    A state is a tuple of (B, N, d): a GRU has one tensor, an LSTM two. Torch wants the batch on
    their second axis; here it comes first, as everywhere.
    """
    state = tuple(s.transpose(0, 1).contiguous() for s in state)
    y, state = recur(layers, x, state if len(state) == 2 else state[0])
    state = state if isinstance(state, tuple) else (state,)
    return y, tuple(s.transpose(0, 1).contiguous() for s in state)


# FLOPs of matrix products in one pass over a pair of S and T tokens


def recurrent_flops(c, S: int, T: int) -> int:
    """Those of a recurrent encoder-decoder of a configuration."""
    d = c.d_model
    gates = {"gru": 3, "lstm": 4}[c.cell]
    # two halves of d / 2 read the source, a whole d writes the target
    layers = c.N * gates * (3 * S + 4 * T) * d * d
    start = 2 * d * d * c.N * (gates - 2)  # a layer's, of an LSTM two
    look = 2 * (S + T) * d * d + 4 * S * T * d if c.attention else 0
    return layers + start + look + 4 * T * d * d + 2 * T * d * c.vocab_size


def convolutional_flops(c, S: int, T: int) -> int:
    """Those of a convolutional one."""
    d = c.d_model
    blocks = c.N * 4 * c.k * (S + T) * d * d  # 2d outputs from k d inputs
    look = c.N * (2 * T * d * d + 4 * S * T * d)
    return blocks + look + 2 * T * d * c.vocab_size
