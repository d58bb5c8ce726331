"""A search that can write nothing but trees over exactly the words of the sentence (notebook 18).

It is the search of notebook 15: only the model is another, one that gives probability 0 to what
cannot continue a tree.
"""

import torch
from torch import Tensor, nn

from transformer.models.tree_model import CLOSE, LEAF, OPEN, Written, kinds, still_open


def closing_of(symbols: list[str]) -> Tensor:
    """For each opening bracket the number of the symbol that closes it, (V,); 0 for the others."""
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    return torch.tensor(
        [
            numbers.get(f"_{symbol[:-1]}", 0) if symbol.endswith("_") else 0
            for symbol in symbols
        ]
    )


class TreeState:
    """A search's state, and beside it what each row has written and may still write."""

    def __init__(self, inner, words: Tensor, room: Tensor):
        """words (rows,): in the sentence; room (rows,): tokens that may be written, end mark
        included."""
        self.inner = inner
        self.written = Written()
        self.words = words
        self.room = torch.maximum(
            room, words + 3
        )  # one bracket around all, and the end mark

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        self.inner.select(rows)
        self.written.select(rows)
        self.words, self.room = self.words[rows], self.room[rows]


class OnlyTrees(nn.Module):
    """A `TreeTransformer` for a search that writes trees over exactly the words, and no more tokens
    than the source's and `extra` (or than one bracket around all needs); the `extra` of the search
    must not be smaller.

    What may come next keeps the probability that the model gives it; the rest goes to padding,
    which no search writes.
    """

    def __init__(self, model: nn.Module, symbols: list[str], extra: int = 50):
        super().__init__()
        self.model, self.config, self.extra = model, model.config, extra
        self.register_buffer("kind", kinds(symbols), persistent=False)
        self.register_buffer("closes", closing_of(symbols), persistent=False)

    def initial_state(self, source: Tensor, new_cache) -> TreeState:
        """The state of a search that has read source ids (B, S)."""
        pieces = (source != self.config.pad_id).sum(dim=1)
        room = (pieces + self.extra).clamp(max=self.config.max_positions)
        return TreeState(
            self.model.initial_state(source, new_cache),
            self.model.lengths(source),
            room,
        )

    def allowed(self, state: TreeState) -> Tensor:
        """What may come next in each row, (rows, V), the end mark included.

        A search keeps rows that are no tree where it has too few others, with a probability of
        nothing: what they may write means nothing either.
        """
        written = self.kind[state.written.symbols]
        opened, closed, leaves = (
            (written == kind).sum(dim=1) for kind in (OPEN, CLOSE, LEAF)
        )
        depth, words = (
            opened - closed,
            state.words - leaves,
        )  # to be closed, and to be written
        inside, more = depth > 0, words > 0
        needed = words + depth + 1  # all words, all closing brackets, the end mark
        may_open = more & (state.room - opened - closed - leaves >= needed + 2)
        may_close = inside & (written[:, -1] != OPEN) & ((depth > 1) | ~more)
        found = (self.kind == LEAF) & (inside & more)[:, None] | (
            self.kind == OPEN
        ) & may_open[:, None]
        innermost, _ = still_open(state.written.symbols, self.kind, first=-1)
        found = found.scatter(1, self.closes[innermost], may_close[:, None])
        found[:, 0] = False  # padding, where nothing may close
        found[:, self.config.eos_id] = (depth == 0) & (words == 0)
        return found

    def step(self, tokens: Tensor, state: TreeState) -> Tensor:
        """Read the next tokens (rows, 1) -> log probabilities (rows, V), -inf for what
        cannot become a tree."""
        state.written.update(tokens)
        log_probs = self.model.step(tokens, state.inner).log_softmax(dim=-1)
        allowed = self.allowed(state)
        forbidden = log_probs.masked_fill(allowed, -torch.inf).logsumexp(dim=-1)
        log_probs = log_probs.masked_fill(~allowed, -torch.inf)
        log_probs[:, self.config.pad_id] = forbidden
        return log_probs
