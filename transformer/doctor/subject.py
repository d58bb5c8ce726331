"""Who is examined: any callable that makes scores of a source and a target."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MOST_SYMBOLS = 10


@dataclass(frozen=True)
class Subject:
    """A model with what is known of it; see `checkup`."""

    model: Callable
    V: int
    symbols: tuple[int, ...]  # ids of ordinary tokens
    pad: int = 0
    begin: int = 1
    end: int = 2
    loss: Callable | None = None
    accumulate: Callable | None = None
    reference: nn.Module | None = None
    names: dict[str, str] | None = None

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        """Scores (B, T, V) of ids (B, S) and (B, T), with their gradient."""
        scores = self.model(source, target)
        return getattr(scores, "logits", scores)

    @torch.no_grad()
    def scores(self, source: Tensor, target: Tensor, training: bool = False) -> Tensor:
        """Scores without gradient. In training dropout falls alike at every call."""
        self.mode(training)
        torch.manual_seed(0)
        return self.logits(source, target).float()

    def mode(self, training: bool) -> None:
        """Training or evaluation, where the model knows these."""
        if isinstance(self.model, nn.Module):
            self.model.train(training)

    def named_parameters(self) -> list[tuple[str, nn.Parameter]]:
        """The parameters that an optimizer would get; none of a plain function."""
        if not isinstance(self.model, nn.Module):
            return []
        return [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]

    def numbers(self, count: int, length: int) -> Tensor:
        """Random ordinary tokens (count, length)."""
        symbols = torch.tensor(self.symbols)
        return symbols[torch.randint(len(symbols), (count, length))]

    def varied(self, count: int, length: int) -> Tensor:
        """Random ordinary tokens (count, length), none of them twice in a row."""
        symbols = torch.tensor(self.symbols)
        steps = torch.randint(1, len(symbols), (count, length))
        return symbols[steps.cumsum(dim=1) % len(symbols)]

    def other(self, tokens: Tensor) -> Tensor:
        """Ordinary tokens, each another one than in tokens."""
        symbols = torch.tensor(self.symbols)
        place = (tokens[..., None] == symbols).int().argmax(dim=-1)
        return symbols[(place + 1) % len(symbols)]

    def sentences(self, count: int, S: int = 6, T: int = 7) -> tuple[Tensor, Tensor]:
        """Random sources (count, S), and what a decoder reads: a begin mark, then tokens."""
        target = F.pad(self.varied(count, T - 1), (1, 0), value=self.begin)
        return self.varied(count, S), target

    def own_loss(
        self, source: Tensor, target: Tensor, model: Callable | None = None
    ) -> Tensor:
        """The loss of whole targets, begin and end included: the model's own, where given.

        model: what answers in place of the model.
        """
        if self.loss is not None:
            return self.loss(model or self.model, source, target)
        return cross_entropy(self.logits(source, target[:, :-1]), target, self.pad)


def cross_entropy(scores: Tensor, target: Tensor, pad: int) -> Tensor:
    """Nats a token: scores (B, T, V) of all places but the last of target (B, T + 1)."""
    gold = target[:, 1:].flatten()
    return F.cross_entropy(scores.flatten(0, 1).float(), gold, ignore_index=pad)


def subject_of(model: Callable, ids: tuple[int, int, int], **known: Any) -> Subject:
    """See what a model gives for a first call; ValueError where it gives no scores."""
    if not callable(model):
        raise ValueError(
            "the model must be callable as model(source, target), and a "
            f"{type(model).__name__} is not: hand in a module, or a function"
        )
    if len(ids) != 3 or len(set(ids)) != 3 or not all(type(i) is int for i in ids):
        raise ValueError(
            "ids must be three different whole numbers, those of padding, begin and "
            f"end, not {ids!r}"
        )
    pad, begin, end = ids
    V = vocabulary(model, begin)
    free = [i for i in range(V) if i not in ids]
    if len(free) < 4 or not all(0 <= i < V for i in ids):
        raise ValueError(
            f"the model scores {V} tokens, and an examination needs {ids} and at "
            "least four others among them: say the ids of padding, begin and end"
        )
    symbols = tuple(free[:MOST_SYMBOLS])
    return Subject(model, V, symbols, pad, begin, end, **known)


@torch.no_grad()
def vocabulary(model: Callable, begin: int) -> int:
    """How many tokens a model scores; ValueError, saying what it gave, for no scores."""
    source, target = torch.full((2, 4), begin), torch.full((2, 3), begin)
    try:
        scores = model(source, target)
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise ValueError(
            "the model could not be called as model(source, target) with ids of "
            f"shapes (2, 4) and (2, 3) ({type(error).__name__}: {said}): wrap it in a "
            "function that takes these"
        ) from None
    scores = getattr(scores, "logits", scores)
    shape = tuple(getattr(scores, "shape", ()))
    if not isinstance(scores, Tensor) or len(shape) != 3 or shape[:2] != (2, 3):
        kind = shape or type(scores).__name__
        raise ValueError(
            "model(source, target) must give scores (B, T, V), for targets (2, 3) of "
            f"shape (2, 3, V), not {kind}: return the scores alone, batch first"
        )
    return shape[2]


@contextmanager
def unharmed(model: Callable) -> Iterator[None]:
    """After the block weights, buffers, mode, gradients and random numbers are as before."""
    module = model if isinstance(model, nn.Module) else nn.Module()
    kept = {name: value.clone() for name, value in module.state_dict().items()}
    modes = {part: part.training for part in module.modules()}
    gradients = [(p, p.grad) for p in module.parameters()]
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            module.load_state_dict(kept)
            for part, training in modes.items():
                part.training = training
            for p, gradient in gradients:
                p.grad = gradient


def spread(scores: Tensor) -> float:
    """By how much scores (B, T, V) of a row differ, as a unit for changes; never 0."""
    value = scores.std(dim=-1).mean().item()
    return value if math.isfinite(value) and value > 1e-9 else 1e-9


def change(after: Tensor, before: Tensor) -> float:
    """The largest change of scores, in units of their spread; infinite for NaN."""
    value = ((after - before).abs().max() / spread(before)).item()
    return value if math.isfinite(value) else math.inf
