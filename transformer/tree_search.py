"""A search that can write nothing but trees over exactly the words of the sentence (notebook 18).

It is the search of notebook 15: only the model is another, one that gives what no tree may go on
with a probability of nothing.
"""

import torch
from torch import Tensor, nn

MARK, LEAF, OPEN, CLOSE = range(4)


def kinds(symbols: list[str]) -> Tensor:
    """What each symbol of a target vocabulary is, (V,): the first three are marks."""
    found = [MARK] * 3
    for symbol in symbols[3:]:
        bare = symbol == symbol.strip("_")
        found.append(LEAF if bare else OPEN if symbol.endswith("_") else CLOSE)
    return torch.tensor(found)


def partners(symbols: list[str]) -> Tensor:
    """For each opening bracket the number of the symbol that closes it, (V,); 0 for the others."""
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    return torch.tensor([numbers.get(f"_{symbol[:-1]}", 0) if symbol.endswith("_") else 0
                         for symbol in symbols])


class TreeState:
    """A search's state, and beside it what the tree that each row has begun still lacks."""

    def __init__(self, inner, words: Tensor, room: Tensor):
        """words (rows,): in the sentence; room (rows,): tokens that may be written, end mark
        included."""
        self.inner = inner
        self.words = words  # still to be written
        self.room = torch.maximum(room, words + 3)  # one bracket around all, and the end mark
        self.open = words.new_zeros(len(words), int(self.room.max()) // 2 + 1)  # what closes them
        self.depth = torch.zeros_like(words)  # how many brackets are open
        self.empty = torch.zeros_like(words, dtype=torch.bool)  # the innermost holds nothing yet

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        self.inner.select(rows)
        for name in ("words", "room", "open", "depth", "empty"):
            setattr(self, name, getattr(self, name)[rows])

    def read(self, kind: Tensor, closes: Tensor) -> None:
        """Note what each row has written last: its kind, and what closes it (rows,).

        A search keeps rows that are no tree where it has too few others, with a probability of
        nothing: their numbers mean nothing either.
        """
        opened, closed = kind == OPEN, kind == CLOSE
        at = self.depth.clamp(0, self.open.shape[1] - 1)[:, None]
        self.open = torch.where(opened[:, None], self.open.scatter(1, at, closes[:, None]),
                                self.open)
        self.depth = self.depth + opened.long() - closed.long()
        self.words = self.words - (kind == LEAF).long()
        self.room = self.room - (kind != MARK).long()
        self.empty = opened

    def allowed(self, kind: Tensor) -> Tensor:
        """What may come next in each row, (rows, V), kind being that of every symbol (V,)."""
        inside, more = self.depth > 0, self.words > 0
        needed = self.words + self.depth + 1  # all words, all closing brackets, the end mark
        may_open = more & (self.room >= needed + 2)
        may_close = inside & ~self.empty & ((self.depth > 1) | ~more)
        found = (kind == LEAF) & (inside & more)[:, None] | (kind == OPEN) & may_open[:, None]
        closing = self.open.gather(1, (self.depth - 1).clamp(min=0)[:, None])
        found = found.scatter(1, closing, may_close[:, None])
        found[:, 0] = False  # padding, where nothing may close
        return found


class OnlyTrees(nn.Module):
    """A `TreeTransformer` for a search that writes trees over exactly the words, and no more tokens
    than the words' pieces and `extra` (or than one bracket around all needs); the search must allow
    as many.

    What may come next keeps the probability that the model gives it; the rest goes to padding,
    which no search writes.
    """

    def __init__(self, model: nn.Module, symbols: list[str], extra: int = 50):
        super().__init__()
        self.model, self.config, self.extra = model, model.config, extra
        self.register_buffer("kind", kinds(symbols), persistent=False)
        self.register_buffer("closes", partners(symbols), persistent=False)

    def start(self, source: Tensor, new_cache) -> TreeState:
        """The state of a search that has read source ids (B, S)."""
        pieces = (source != self.config.pad_id).sum(dim=1)
        room = (pieces + self.extra).clamp(max=self.config.max_positions)
        return TreeState(self.model.start(source, new_cache), self.model.lengths(source), room)

    def step(self, tokens: Tensor, state: TreeState) -> Tensor:
        """Read the next tokens (rows, 1) -> log probabilities (rows, V), none for what is no
        tree."""
        state.read(self.kind[tokens[:, -1]], self.closes[tokens[:, -1]])
        log_probs = self.model.step(tokens, state.inner).log_softmax(dim=-1)
        allowed = state.allowed(self.kind)
        allowed[:, self.config.eos_id] = (state.depth == 0) & (state.words == 0)
        forbidden = log_probs.masked_fill(allowed, -torch.inf).logsumexp(dim=-1)
        log_probs = log_probs.masked_fill(~allowed, -torch.inf)
        log_probs[:, self.config.pad_id] = forbidden
        return log_probs
