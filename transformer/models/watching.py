"""Tensors inside modules, visited within a block and a thread of control: the ground of `cache`.

While anybody looks, a module has torch's hooks, and an attention's `attend` is replaced; both ask
what is open in their own context (`contextvars`): blocks of other threads neither see each other's
calls nor take away what the others need, and the last one to end takes everything away.
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

from transformer.attention import attention, join_heads, masked_softmax, split_heads
from transformer.fast.attention import (
    check_pair,
    kernel_attention,
    scaled_dot_product,
    scaled_dot_product_attention,
)

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

    def __init__(self, module: Any):
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


# What goes into a module, and what comes out

Forward = tuple[tuple, dict]  # what a module is called with


def visit_input(at: At, args: tuple, kwargs: dict) -> Forward:
    """A module's first argument, which self-attention gets three times."""
    if args:
        first = at("input", args[0])
        args = tuple(first if arg is args[0] else arg for arg in args)
    return args, kwargs


def visit_output(at: At, args: tuple, output: Any) -> Any:
    """What a module returns."""
    return at("output", output)


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
    output, weights = check_pair(attend(q, k, v, mask))
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
        if weights is None:
            weights = masked_softmax(scores, mask)
            check_same(weights @ v, output, HIDDEN)
        changed = at("scores", scores)
        if differ(changed, scores):
            weights = masked_softmax(changed, mask)
            output = weights @ v
    if "weights" in at and weights is not None:
        changed = at("weights", weights)
        if differ(changed, weights):
            check_same(weights @ v, output, OTHERWISE)
            output = changed @ v
    return at("heads", output)


HIDDEN = (
    "no weights to record: this attention returns none, and what it puts out is not "
    "softmax(Q K^T / sqrt(d_k)) V by its mask; let its `attend` return them"
)
OTHERWISE = (
    "these weights cannot be edited: what this attention puts out is not its weights "
    "times its values"
)


def check_same(expected: Tensor, output: Tensor, why: str) -> None:
    """ValueError where attention puts out something else; bf16 is off by 1%, TF32 by 0.1%."""
    short = min(torch.finfo(x.dtype).bits for x in (expected, output)) < 32
    short |= torch.get_float32_matmul_precision() == "medium"
    if (expected - output).norm() > (0.05 if short else 0.005) * expected.norm():
        raise ValueError(why)


# What computes its scores by `scaled_dot_product`
KNOWN = (attention, scaled_dot_product_attention, kernel_attention)


def knows_scores(attend: Callable) -> bool:
    """Whether it is known what softmax reads in an attend(q, k, v, mask); in one of a user's own,
    which may add a bias, it is not."""
    return getattr(attend, "before", attend) in KNOWN  # of one that is watched


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


def begin_call(at: At, args: tuple, kwargs: dict) -> Forward:
    """`visit_input`, and lets the four matrices know of the call and its mask."""
    given = inspect.signature(at.module.forward).bind(*args, **kwargs).arguments
    CALL.set(Call(at, given.get("mask")))
    return visit_input(at, args, kwargs)


def end_call(at: At, args: tuple, output: Any) -> Any:
    """`visit_output`; after an error, too, where the output is None."""
    CALL.set(None)
    return visit_output(at, args, output)


def projected(point: str) -> Callable:
    """What W_Q, W_K or W_V of a plain attention return, cut into heads for the visit."""

    def visit(at: At, args: tuple, output: Tensor) -> Tensor:
        call = CALL.get()
        if call is None:
            return output
        heads = split_heads(output, call.at.module.h)
        call.heads[point] = call.at(point, heads)
        return join_heads(call.heads[point])

    return visit


def joined(at: At, args: tuple, kwargs: dict) -> Forward:
    """What W_O of a plain attention is given: all heads side by side."""
    call = CALL.get()
    if call is None:
        return args, kwargs
    given = (*(call.heads[point] for point in ("queries", "keys", "values")), call.mask)
    output = look_inside(call.at, given, split_heads(args[0], call.at.module.h))
    return (join_heads(output), *args[1:]), kwargs


# Put in place, and taken away

Undo = Callable[[], None]
Way = Callable[[nn.Module], Undo]  # how a module is watched
Slot = tuple[nn.Module, str, Way]


def itself(function: Callable) -> Callable:
    """What a copy of a hook or of a `Watched` is made of."""
    return function


def ignored(*given: Any) -> None:
    """A hook that does nothing."""


class Hook:
    """A hook of one module, for the contexts in which a block is open; a copy of the module,
    pickled or not, has one that does nothing."""

    looks_inside = True  # so that no search packs the weights meanwhile

    def __init__(self, module: nn.Module, visit: Callable):
        self.module = module
        self.visit = visit

    def __call__(self, module: nn.Module, *given: Any) -> Any:
        if module is self.module and OPEN.get():
            return self.visit(At(module), *given)
        return None

    def __reduce__(self) -> tuple:
        return itself, (ignored,)


def hooked(
    before: Callable | None = None, after: Callable | None = None, always: bool = False
) -> Way:
    """Visits before and after a module's forward; always: the second after errors, too."""

    def put(module: nn.Module) -> Undo:
        handles = []
        if before is not None:
            hook = Hook(module, before)
            handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))
        if after is not None:
            hook = Hook(module, after)
            handles.append(module.register_forward_hook(hook, always_call=always))

        def take_away() -> None:
            for handle in handles:
                handle.remove()

        return take_away

    return put


class Watched:
    """attend(q, k, v, mask) of one module, with the visits of the calling context; a copy of
    the module, pickled or not, gets the function that stood there before."""

    def __init__(self, module: Any):
        self.module = module
        self.before = module.attend

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not OPEN.get():
            return self.before(*args, **kwargs)
        return attending(At(self.module), self.before, *args, **kwargs)

    def __reduce__(self) -> tuple:
        return itself, (self.before,)


def watch_attend(module: Any) -> Undo:
    """Watch how a strong attention attends; what somebody sets meanwhile stays."""
    watched = Watched(module)
    module.attend = watched

    def put_back() -> None:
        if module.attend is watched:
            module.attend = watched.before

    return put_back


LOCK = Lock()
# blocks that watch a module in a way, of all threads, and how the last one undoes it
WATCHED: dict[tuple[nn.Module, str], tuple[int, Undo]] = {}


def watch(slot: Slot) -> None:
    """Watch a module in some way, for one more block."""
    module, name, way = slot
    with LOCK:
        blocks, undo = WATCHED.get((module, name)) or (0, way(module))
        WATCHED[module, name] = blocks + 1, undo


def release(slot: Slot) -> None:
    """One block less; the last one takes everything away."""
    with LOCK:
        blocks, undo = WATCHED.pop(slot[:2])
        if blocks > 1:
            WATCHED[slot[:2]] = blocks - 1, undo
        else:
            undo()


@contextmanager
def opened(block: Block, slots: Iterable[Slot]) -> Iterator[None]:
    """Inside, a block visits what goes through these modules, in this context alone.

    Blocks that are open at once visit in the order of their beginnings, but for `last`.
    """
    watched = []
    try:
        for slot in slots:
            watch(slot)
            watched.append(slot)
        blocks = sorted((*OPEN.get(), block), key=lambda block: block.last)
        token = OPEN.set(tuple(blocks))
        try:
            yield
        finally:
            OPEN.reset(token)
    finally:
        for slot in watched:
            release(slot)
