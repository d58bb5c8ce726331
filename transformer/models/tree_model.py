"""A parser with a target vocabulary of its own, whose decoder reads words instead of pieces and is
told how many words it has written, which bracket is open and how many are (notebook 18)."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import causal_mask
from transformer.core.state import DecoderState
from transformer.corpora.tokenizer import SPECIALS, BytePairs, train_bpe
from transformer.embeddings import Projection
from transformer.fast.embeddings import Embedding
from transformer.fast.model import Parts, Transformer, TransformerConfig
from transformer.parsing import UNKNOWN, is_tag

MARK, LEAF, OPEN, CLOSE = range(4)  # what a symbol is


def symbols_in(texts: Iterable[str]) -> list[str]:
    """The symbols of linearised trees, and `XX`, sorted."""
    return sorted({UNKNOWN}.union(*(text.split(" ") for text in texts)))


def kinds(symbols: list[str]) -> Tensor:
    """What each symbol of a target vocabulary is, (V,): the first three are marks."""
    found = [MARK] * 3
    for symbol in symbols[3:]:
        found.append(
            LEAF if is_tag(symbol) else OPEN if symbol.endswith("_") else CLOSE
        )
    return torch.tensor(found)


class ParserTokenizer(BytePairs):
    """Byte pairs for sentences; for trees a vocabulary of its own, where each symbol is a token.

    The marks have the same ids in both. A symbol that it does not know, even a bracket, becomes
    `XX`, which stands for a word.
    """

    def __init__(self, bpe, symbols: Iterable[str]):
        super().__init__(bpe)
        self.symbols = [*SPECIALS, *symbols]
        self.numbers = {symbol: number for number, symbol in enumerate(self.symbols)}

    @classmethod
    def train(cls, pairs: list[tuple[str, str]], vocab_size: int) -> "ParserTokenizer":
        """Merges learned from the sentences, symbols from the linearised trees."""
        bpe = train_bpe((sentence for sentence, _ in pairs), vocab_size)
        return cls(bpe, symbols_in(text for _, text in pairs))

    def encode_tree(self, text: str) -> list[int]:
        """Ids of a linearised tree, without marks."""
        return [
            self.numbers.get(symbol, self.numbers[UNKNOWN])
            for symbol in text.split(" ")
        ]

    def encode_pairs(
        self, pairs: list[tuple[str, str]]
    ) -> list[tuple[list[int], list[int]]]:
        """(sentence, linearised tree) pairs as ids, with the marks that training wants."""
        sources = self.encode_all([sentence for sentence, _ in pairs])
        return [
            (
                source + [self.eos_id],
                [self.bos_id, *self.encode_tree(text), self.eos_id],
            )
            for source, (_, text) in zip(sources, pairs)
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """The linearised tree of ids; marks are left out."""
        return " ".join(self.symbols[i] for i in ids if i >= len(SPECIALS))

    def word_starts(self) -> Tensor:
        """True for the pieces that begin a word, and for the end mark: (V,)."""
        space = self.bpe.encode(" a").tokens[0][0]  # how the byte of a space is written
        starts = [
            (self.bpe.id_to_token(i) or "").startswith(space)
            for i in range(self.vocab_size)
        ]
        starts[self.eos_id] = True
        return torch.tensor(starts)


@dataclass(frozen=True)
class ParserConfig(TransformerConfig):
    """The sizes of a `TreeTransformer`, and which of its changes it has."""

    words: bool = True  # the decoder reads a vector a word, not one a piece
    count: bool = True  # it is told how many words it has written,
    bracket: bool = False  # which bracket is open (the innermost),
    depth: bool = False  # and how many are


class Written:
    """The symbols that each hypothesis has written: goes through a search as a cache does."""

    def __init__(self):
        self.symbols: Tensor | None = None

    def update(self, symbols: Tensor) -> Tensor:
        """Add symbols (rows, T); all that is written, (rows, symbols)."""
        before = [] if self.symbols is None else [self.symbols]
        self.symbols = torch.cat([*before, symbols], dim=1)
        return self.symbols

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        self.symbols = None if self.symbols is None else self.symbols[rows]

    def shorten(self, length: int) -> None:
        """Forget what is written behind the first `length` symbols."""
        self.symbols = None if self.symbols is None else self.symbols[:, :length]


def still_open(symbols: Tensor, kind: Tensor, first: int = 0) -> tuple[Tensor, Tensor]:
    """After each symbol the innermost bracket that is still open (0: none), and how many are:
    all that opened minus all that closed, below 0 where too many close.

    symbols (rows, T), kind (V,) as `kinds` has it -> two (rows, T), from the column first on.
    Whatever closes, closes the innermost.
    """
    opens = kind[symbols] == OPEN
    depth = (opens.long() - (kind[symbols] == CLOSE).long()).cumsum(dim=1)
    place = torch.arange(1, symbols.shape[1] + 1, device=symbols.device)
    same = (depth[:, None] == depth[:, first:, None]) & (place <= place[first:, None])
    at = (
        (same & opens[:, None]).mul(place).amax(dim=2)
    )  # the last that made the depth what it is
    return symbols.gather(1, (at - 1).clamp(min=0)).masked_fill(at == 0, 0), depth[
        :, first:
    ]


def pool(x: Tensor, word: Tensor, real: Tensor) -> Tensor:
    """The mean of the vectors of each word: x (B, S, d), word and real (B, S) -> (B, W, d).

    word: the number of each piece's word; pieces that are not real (padding) do not count.
    """
    owner = (
        F.one_hot(word, int(word.max()) + 1).to(x.dtype) * real[..., None]
    )  # (B, S, W)
    return owner.transpose(1, 2) @ x / owner.sum(dim=1)[..., None].clamp(min=1)


def of_number(d_model: int) -> nn.Linear:
    """A matrix that a number's sinusoids go through."""
    matrix = nn.Linear(d_model, d_model, bias=False)
    nn.init.xavier_uniform_(matrix.weight)
    return matrix


class TreeTransformer(Transformer):
    """A `Transformer` from the pieces of a sentence to the symbols of its tree.

    The decoder's vocabulary, tied to the output, is that of the trees. With config.words the
    memory has a vector for each word (the mean of its pieces', and the sinusoids of the word's
    number are added); with config.count the number of words written so far, as the sinusoids of
    that number through a matrix, is added to what the decoder reads, with config.bracket a vector
    of the innermost bracket that is open, with config.depth the sinusoids of how many are open
    through a matrix.
    """

    def __init__(
        self, config: ParserConfig, tokenizer: ParserTokenizer, parts: Parts = Parts()
    ):
        super().__init__(config, parts)
        self.target_embedding = Embedding(len(tokenizer.symbols), config.d_model)
        self.output = Projection(self.target_embedding)
        self.register_buffer("starts", tokenizer.word_starts(), persistent=False)
        self.register_buffer("kind", kinds(tokenizer.symbols), persistent=False)
        if config.count:
            self.counted = of_number(config.d_model)
        if config.bracket:
            self.inside = Embedding(len(tokenizer.symbols), config.d_model)
        if config.depth:
            self.nested = of_number(config.d_model)

    def words(self, source: Tensor) -> Tensor:
        """The number of each piece's word, from 0: (B, S); padding has that of the end mark."""
        return (self.starts[source] & (source != self.config.pad_id)).cumsum(dim=1) - 1

    def lengths(self, source: Tensor) -> Tensor:
        """Words in each sentence, without the end mark: (B,)."""
        return self.words(source)[:, -1]

    def mask(self, source: Tensor) -> Tensor:
        """True where the memory is real: (B, 1, 1, pieces or words)."""
        if not self.config.words:
            return super().mask(source)
        last = self.lengths(source)[:, None]
        return (torch.arange(int(last.max()) + 1, device=last.device) <= last)[
            :, None, None
        ]

    def encode(self, source: Tensor) -> Tensor:
        """Source ids (B, S) -> memory (B, pieces or words, d_model)."""
        memory = super().encode(source)
        if not self.config.words:
            return memory
        return self.positions(
            pool(memory, self.words(source), source != self.config.pad_id)
        )

    def states(
        self,
        target: Tensor,
        memory: Tensor | None,
        source_mask: Tensor,
        caches: list | None = None,
        start: int = 0,
    ) -> Tensor:
        """As in `Transformer`; the last of the caches is a `Written`."""
        x = self.embed(target, self.target_embedding, start)
        written = (Written() if caches is None else caches[-1][0]).update(target)
        if self.config.count:
            words = (self.kind[written] == LEAF).cumsum(dim=1)[:, start:]
            x = x + self.counted(self.positions.table[words])
        if self.config.bracket or self.config.depth:
            innermost, depth = still_open(written, self.kind, start)
            x = x + self.inside(innermost) if self.config.bracket else x
            if self.config.depth:
                x = x + self.nested(self.positions.table[depth.clamp(min=0)])
        mask = causal_mask(start + target.shape[1], target.device)[start:]
        own = None if caches is None else caches[: len(self.decoder.layers)]
        return self.decoder(
            x,
            memory=memory,
            mask=mask,
            source_mask=source_mask,
            caches=own,
            start=start,
        )

    def initial_state(self, source: Tensor, new_cache) -> DecoderState:
        """As in `Transformer`, with a `Written` as the last of the caches."""
        state = super().initial_state(source, new_cache)
        state.caches.append((Written(), new_cache()))  # caches come in pairs
        return state
