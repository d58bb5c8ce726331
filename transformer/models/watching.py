"""Functions of modules, watched within a block and a thread of control: the ground of `cache`.

While anybody looks, a function of a module (`forward`, or how attention attends) is replaced by one
that asks what is open in its own context (`contextvars`): blocks of other threads neither see each
other's calls nor take away what the others need, and the last one to end puts the function back.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from transformer.attention import join_heads, masked_softmax, split_heads
from transformer.fast.attention import scaled_dot_product

Place = tuple[nn.Module, str]  # a module, and which of its tensors
Visit = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Block:
    """What an open block does where: visits[place](x) -> x. last: after all others."""

    visits: Mapping[Place, Visit]
    last: bool


OPEN: ContextVar[tuple[Block, ...]] = ContextVar("OPEN", default=())


class At:
    """at(point, x) -> x: what the open blocks of this context do with a module's tensor."""

    def __init__(self, module: nn.Module):
        self.module = module
        self.blocks = OPEN.get()

    def __contains__(self, point: str) -> bool:
        return any((self.module, point) in block.visits for block in self.blocks)

    def __call__(self, point: str, x: Any) -> Any:
        for block in self.blocks:
            visit = block.visits.get((self.module, point))
            if visit is not None and isinstance(x, Tensor):
                x = visit(x)
        return x


# How the tensors of a function are visited

Read = Callable[
    ..., Any
]  # (at, function, *args, **kwargs) -> what the function returns


def through(at: At, function: Callable, *args: Any, **kwargs: Any) -> Any:
    """A module's first argument, which self-attention gets three times, and its output."""
    if args:
        first = at("input", args[0])
        args = tuple(first if arg is args[0] else arg for arg in args)
    return at("output", function(*args, **kwargs))


def scoring(at: At, score: Callable, x: Tensor) -> Tensor:
    """The logits of a plain model, which has no module for them."""
    return at("logits", score(x))


def attending(
    at: At,
    attend: Callable,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """attend(q, k, v, mask) of a strong attention, with all that is inside."""
    q, k, v = at("queries", q), at("keys", k), at("values", v)
    output, weights = attend(q, k, v, mask)
    return look_inside(at, (q, k, v, mask), output, weights), weights


def look_inside(
    at: At, given: tuple, output: Tensor, weights: Tensor | None = None
) -> Tensor:
    """What heads put out, (B, h, T, d_v), after visits to scores, weights and to itself.

    given: q, k, v and the mask. output, weights: what attention made of them; where it
    keeps its weights to itself they are computed.
    """
    q, k, v, mask = given
    if "scores" in at or ("weights" in at and weights is None):
        scores = scaled_dot_product(q, k)
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        formula = masked_softmax(scores, mask)
        check_formula(formula @ v, output)
        weights = formula if weights is None else weights
        changed = at("scores", scores)
        if differ(changed, scores):
            weights = masked_softmax(changed, mask)
            output = weights @ v
    if "weights" in at:
        changed = at("weights", weights)
        if differ(changed, weights):
            output = changed @ v
    return at("heads", output)


def check_formula(expected: Tensor, output: Tensor) -> None:
    """ValueError where attention is not softmax(Q K^T / sqrt(d_k)) V by its mask; bf16 is off
    by 1%."""
    if (expected - output).norm() > 0.05 * expected.norm():
        raise ValueError(
            "no weights to record: this attention looks elsewhere "
            "than its mask says, and does not say where"
        )


def differ(changed: Tensor, x: Tensor) -> bool:
    """Whether a visit changed x, or wants a gradient; otherwise the kernel's output stays."""
    return changed is not x and (changed.requires_grad or not changed.equal(x))


# A plain attention has no `attend`: its matrices tell what goes in and out


@dataclass
class Call:
    """One call of a plain attention, on its way from W_Q to W_O."""

    at: At
    mask: Tensor | None
    heads: dict[str, Tensor] = field(default_factory=dict)  # queries, keys, values


CALL: ContextVar[Call | None] = ContextVar("CALL", default=None)


def plain_attention(at: At, forward: Callable, *args: Any, **kwargs: Any) -> Any:
    """`through`, and lets the four matrices know of the call and its mask."""
    given = inspect.signature(forward).bind(*args, **kwargs).arguments
    token = CALL.set(Call(at, given.get("mask")))
    try:
        return through(at, forward, *args, **kwargs)
    finally:
        CALL.reset(token)


def projection(point: str) -> Read:
    """How W_Q, W_K or W_V of a plain attention is read."""

    def read(at: At, forward: Callable, x: Tensor) -> Tensor:
        call = CALL.get()
        if call is None:
            return forward(x)
        heads = split_heads(forward(x), call.at.module.h)
        call.heads[point] = call.at(point, heads)
        return join_heads(call.heads[point])

    return read


def last_projection(at: At, forward: Callable, joined: Tensor) -> Tensor:
    """How W_O of a plain attention is read."""
    call = CALL.get()
    if call is None:
        return forward(joined)
    given = (*(call.heads[point] for point in ("queries", "keys", "values")), call.mask)
    output = look_inside(call.at, given, split_heads(joined, call.at.module.h))
    return forward(join_heads(output))


# Functions replaced and put back

Slot = tuple[nn.Module, str, Read]  # a module, the name of its function, how it is read
LOCK = Lock()


def itself(function: Callable) -> Callable:
    """What a copy of a `Watched` is made of: the function that stood there before."""
    return function


class Watched:
    """A function of a module, with visits of the blocks that the calling context has open.

    A copy of the module, pickled or not, gets the function that stood there before.
    """

    def __init__(self, module: nn.Module, name: str, read: Read):
        self.module = module
        self.name = name
        self.read = read
        self.set_by_hand = name in vars(module)  # and not its class's method
        self.before = getattr(module, name)
        self.blocks = 0  # that are open, of all threads

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not OPEN.get():
            return self.before(*args, **kwargs)
        return self.read(At(self.module), self.before, *args, **kwargs)

    def __reduce__(self) -> tuple:
        if self.set_by_hand:
            return itself, (self.before,)
        return getattr, (self.module, self.name)  # a method of the copy


def watch(slot: Slot) -> Watched:
    """The watcher of a function, put in its place where there is none, for one more block."""
    module, name, read = slot
    with LOCK:
        watched = vars(module).get(name)
        if not isinstance(watched, Watched):
            watched = Watched(module, name, read)
            setattr(module, name, watched)
        watched.blocks += 1
    return watched


def release(watched: Watched) -> None:
    """One block less; after the last the function is as it was, unless somebody set another."""
    with LOCK:
        watched.blocks -= 1
        module, name = watched.module, watched.name
        if watched.blocks or vars(module).get(name) is not watched:
            return
        if watched.set_by_hand:
            setattr(module, name, watched.before)
        else:
            delattr(module, name)


@contextmanager
def opened(block: Block, slots: Iterable[Slot]) -> Iterator[None]:
    """Inside, the functions of `slots` are visited by a block, in this context alone.

    Blocks that are open at once visit in the order of their beginnings, but for `last`.
    """
    watched = [watch(slot) for slot in slots]
    blocks = sorted((*OPEN.get(), block), key=lambda block: block.last)
    token = OPEN.set(tuple(blocks))
    try:
        yield
    finally:
        OPEN.reset(token)
        for one in watched:
            release(one)
