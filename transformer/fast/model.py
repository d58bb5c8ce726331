"""The Transformer of notebook 08 with a choice of sizes and parts, and for searches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from transformer import model as plain
from transformer.attention import causal_mask
from transformer.core.checks import check_ids, check_sides, exporting
from transformer.core.settings import check_sizes, named_sizes
from transformer.core.state import DecoderState, EncoderDecoder, caches_of
from transformer.data import Batch
from transformer.embeddings import Projection
from transformer.fast.attention import MultiHeadAttention
from transformer.fast.documents import PackedBatch, document_mask
from transformer.fast.embeddings import Embedding
from transformer.fast.loading import keep_tied
from transformer.fast.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
)
from transformer.fast.stacks import DecoderLayer, EncoderLayer, Residual, Stack
from transformer.feed_forward import FeedForward
from transformer.stacks import LayerNorm

PRESETS = {
    "tiny": dict(d_model=128, d_ff=512, N=2, h=4, P_drop=0.1),
    "small": dict(d_model=256, d_ff=1024, N=3, h=4, P_drop=0.1),
    "base": dict(),
    "big": dict(d_model=1024, d_ff=4096, h=16, P_drop=0.3),
}
Positions = Literal["sinusoidal", "learned", "rotary", "none"]


@dataclass(frozen=True)
class TransformerConfig(plain.TransformerConfig):
    """The sizes of a Transformer, in the paper's names; its base model by default."""

    d_k: int | None = None  # width of a head's queries and keys (otherwise d_model / h)
    d_v: int | None = None  # width of a head's values (otherwise d_model / h)
    # sines, learned vectors, turned queries and keys, or no order but what attention has
    positions: Positions = "sinusoidal"
    norm_first: bool = False  # pre-norm, the later variant; the paper's is post-norm
    tie_embeddings: bool = True  # one matrix for source, target, output, not three
    max_positions: int = 1024  # longest sentence in tokens

    def __post_init__(self):
        check_sizes(self)

    @classmethod
    def preset(cls, name: str, **changes) -> "TransformerConfig":
        """A named size: "tiny", "small", or the paper's "base" and "big".

        changes replace single fields.
        """
        return cls(**{**named_sizes(PRESETS, name), **changes})


@dataclass(frozen=True)
class Parts:
    """What a `Transformer` is built from, each where it is not given as the paper has it.

    Each is a class or a function that makes the part anew, for each of its places:

        attention(d_model, h, d_k, d_v, rotate=...)   all attention; rotate: None, or positions
        feed_forward(d_model, d_ff)
        norm(d_model)
        dropout(P_drop)
        residual(d_model, P_drop, norm_first, norm, dropout)   around a sub-layer
        positions(max_positions, d_model)   added to embeddings; None: the configuration decides
        output(embedding)   logits, by default with the embedding's own matrix

    Parameters of other parts may have names and shapes of their own; weights
    of a model of ours fit only where they are the same. ValueError for a part that is made already.
    """

    attention: Callable = MultiHeadAttention
    feed_forward: Callable = FeedForward
    norm: Callable = LayerNorm
    dropout: Callable = nn.Dropout
    residual: Callable = Residual
    positions: Callable | None = None
    output: Callable = Projection

    def __post_init__(self):
        for name, part in vars(self).items():
            if isinstance(part, nn.Module):
                kind = type(part).__name__
                raise ValueError(
                    f"the part {name} is made already: hand in what makes one for each of "
                    f"its places, {kind} or partial({kind}, ...)"
                )
            if not callable(part) and (name, part) != ("positions", None):
                raise ValueError(
                    f"the part {name} must be a class or a function that makes it, not "
                    f"{part!r}"
                )


# what a config decides: positions that are added to embeddings; other names add nothing
POSITIONS = {"sinusoidal": SinusoidalPositions, "learned": LearnedPositions}


def layer(c: TransformerConfig, parts: Parts, of_decoder: bool) -> nn.Module:
    """One layer of a config: with attention over the memory in the decoder.

    Rotary positions are for self-attention alone: the queries and the keys of the other
    stand in two different sentences, whose positions are counted apart.
    """
    rotate = None
    if c.positions == "rotary":
        rotate = RotaryPositions(c.max_positions, c.d_k or c.d_model // c.h)
    sizes = c.d_model, c.h, c.d_k, c.d_v
    self_attention = parts.attention(*sizes, rotate=rotate)
    feed_forward = parts.feed_forward(c.d_model, c.d_ff)

    def residual(d_model: int, P_drop: float) -> nn.Module:
        return parts.residual(d_model, P_drop, c.norm_first, parts.norm, parts.dropout)

    rest = feed_forward, c.d_model, c.P_drop, residual
    if not of_decoder:
        return EncoderLayer(self_attention, *rest)
    return DecoderLayer(self_attention, parts.attention(*sizes), *rest)


def stack(c: TransformerConfig, parts: Parts, of_decoder: bool) -> Stack:
    """The encoder's or the decoder's stack; a pre-norm stack ends with a norm."""
    layers = [layer(c, parts, of_decoder) for _ in range(c.N)]
    return Stack(layers, parts.norm(c.d_model) if c.norm_first else None)


def initialize(model: nn.Module) -> None:
    """Xavier-uniform matrices and zero biases.

    The matrices of queries, keys and values are divided by sqrt(2), and embeddings keep
    N(0, 1 / d_model). The paper names no scheme; the matrices follow
    `torch.nn.Transformer`.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            gain = 2**-0.5 if name.endswith(("W_Q", "W_K", "W_V")) else 1.0
            nn.init.xavier_uniform_(module.weight, gain=gain)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


class Transformer(plain.Transformer, EncoderDecoder):
    """Figure 1: token ids of source (B, S) and target (B, T) -> logits (B, T, V).

    Row t scores the token after target[:, :t + 1]; padding is config.pad_id, behind a
    sentence. Raises ValueError for a token id outside the vocabulary and for a sentence
    longer than config.max_positions.
    """

    reads_packed = True  # `loss` takes a `PackedBatch`

    def __init__(self, config: TransformerConfig, parts: Parts = Parts()):
        nn.Module.__init__(self)  # the parts are others
        self.config = c = config
        self.embedding = Embedding(c.vocab_size, c.d_model)
        self.target_embedding = self.embedding
        self.output = parts.output(self.embedding)
        if not c.tie_embeddings:
            self.target_embedding = Embedding(c.vocab_size, c.d_model)
            self.output = parts.output(Embedding(c.vocab_size, c.d_model))
        self.positions = None  # rotary positions are inside attention
        add = parts.positions or POSITIONS.get(c.positions)
        if add is not None:
            self.positions = add(c.max_positions, c.d_model)
        self.dropout = parts.dropout(c.P_drop)
        self.encoder = stack(c, parts, of_decoder=False)
        self.decoder = stack(c, parts, of_decoder=True)
        initialize(self)
        keep_tied(self)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        check_sides(check_ids(source), target)
        return super().forward(source, target)

    def embed(
        self,
        tokens: Tensor,
        embedding: nn.Module | None = None,
        start: int | Tensor = 0,
    ) -> Tensor:
        """Ids (B, T) of tokens from position start on -> (B, T, d_model).

        start: or the position of each (T,).

        embedding: the source's, where none is given.
        """
        x = self.embedding(tokens) if embedding is None else embedding(tokens)
        if self.positions is not None:
            x = self.positions(x, start)
        return self.dropout(x)

    def encode(self, source: Tensor) -> Tensor:
        """Source ids (B, S) -> memory (B, S, d_model)."""
        return super().encode(check_ids(source))

    def decode(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        return self.states(target, memory, self.mask(source))

    def score(self, x: Tensor) -> Tensor:
        return self.output(x)

    def states(
        self,
        target: Tensor,
        memory: Tensor | None,
        source_mask: Tensor,
        caches: list | None = None,
        start: int | Tensor = 0,
    ) -> Tensor:
        """Target ids (B, T) over memory (B, S, d_model) -> outputs (B, T, d_model).

        caches: of a search, pairs that hold what came before position start. With those of
        one shape (fixed.py) start is the position of each of the T tokens, (T,).
        """
        if memory is not None:
            check_sides(memory, check_ids(target), "memory")
        x = self.embed(target, self.target_embedding, start)
        mask = None
        if isinstance(start, Tensor):
            mask = caches[0][0].mask
        # a single token may look at all that is written
        elif exporting() or target.shape[1] > 1:
            mask = causal_mask(start + target.shape[1], target.device)[start:]
        return self.decoder(
            x,
            memory=memory,
            mask=mask,
            source_mask=source_mask,
            caches=caches,
            start=start,
        )

    def loss(self, batch: Batch | PackedBatch, criterion: Callable) -> Tensor:
        """criterion(output, states, gold) of a padded or a packed batch."""
        if not isinstance(batch, PackedBatch):
            return super().loss(batch, criterion)
        sources, targets = batch.sources, batch.targets
        read = document_mask(sources, sources, False, batch.way)
        write = document_mask(targets, targets, True, batch.way)
        look = document_mask(targets, sources, False, batch.way)
        memory = self.encoder(self.embed(batch.source, start=sources.positions), read)
        x = self.embed(batch.decoder_input, self.target_embedding, targets.positions)
        x = self.decoder(x, memory=memory, mask=write, source_mask=look)
        return criterion(self.output, x, batch.gold)

    def initial_state(self, source: Tensor, new_cache: Callable) -> DecoderState:
        """The `DecoderState` of a search that has read source (B, S) and written nothing (15).

        new_cache() makes an empty cache.
        """
        caches = caches_of(self.decoder.layers, self.encode(source), new_cache)
        return DecoderState(caches, self.mask(source))
