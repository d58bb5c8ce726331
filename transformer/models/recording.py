"""Look into attention, or change what it puts out, within a block and a thread of control.

A module's `attend` is replaced while anybody looks, by a function that asks what is open in its
own context (`contextvars`): blocks of other threads neither see each other's calls nor take away
what the others need, and the last one to end puts `attend` back.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

from torch import Tensor, nn

from transformer.attention import attention
from transformer.fast.attention import MultiHeadAttention

Attend = Callable[..., tuple[Tensor, Tensor | None]]
Wrapping = tuple[MultiHeadAttention, Callable[[Attend], Attend]]

OPEN: ContextVar[tuple[Wrapping, ...]] = ContextVar("OPEN", default=())
LOCK = Lock()


def itself(attend: Attend) -> Attend:
    """What a copy of a `Watched` is made of: the function that stood there before."""
    return attend


class Watched:
    """attend(q, k, v, mask) of one module, wrapped as the calling context has it at present.

    A copy of the module, pickled or not, gets the function that stood there before.
    """

    def __init__(self, module: MultiHeadAttention):
        self.module = module
        self.before = module.attend
        self.blocks = 0  # that are open, of all threads

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
        attend = self.before
        for module, wrap in OPEN.get():
            if module is self.module:
                attend = wrap(attend)
        return attend(*args, **kwargs)

    def __reduce__(self) -> tuple:
        return itself, (self.before,)


def watch(module: MultiHeadAttention) -> Watched:
    """The module's watcher, put in place where there is none yet, for one more block."""
    with LOCK:
        if not isinstance(module.attend, Watched):
            module.attend = Watched(module)
        watched = module.attend
        watched.blocks += 1
    return watched


def release(watched: Watched) -> None:
    """One block less; after the last, `attend` is as it was, unless somebody has set another."""
    with LOCK:
        watched.blocks -= 1
        if not watched.blocks and watched.module.attend is watched:
            watched.module.attend = watched.before


@contextmanager
def wrapped(wrappings: Sequence[Wrapping]) -> Iterator[None]:
    """Inside the block each module attends by wrap(attend), in this context alone.

    wrappings: (module, wrap); blocks inside one another wrap in the order of their beginnings.
    """
    watched = [watch(module) for module, _ in wrappings]
    token = OPEN.set((*OPEN.get(), *wrappings))
    try:
        yield
    finally:
        OPEN.reset(token)
        for one in watched:
            release(one)


def recording(attend: Attend, kept: list) -> Attend:
    """attend(q, k, v, mask), which appends its weights (B, h, T, S) to the list `kept`.

    Where attend returns None in their place, `attention` computes
    them; ValueError where its output is another one.
    """

    def attend_and_keep(q, k, v, mask=None):
        output, weights = attend(q, k, v, mask)
        if weights is None:
            full, weights = attention(q, k, v, mask)
            if (full - output).norm() > 0.05 * full.norm():  # bf16 is off by 1%
                raise ValueError(
                    "no weights to record: this attention looks elsewhere "
                    "than its mask says, and does not say where"
                )
        kept.append(weights.detach())
        return output, weights

    return attend_and_keep


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Inside the block, collect the weights of every `MultiHeadAttention` in model.

    Yields {name of the module: [weights (B, h, T, S) of each call]}, of the calls that are made
    in the block's own context: other threads that use the model meanwhile are not in it.
    """
    record: dict[str, list[Tensor]] = {}
    wrappings = []
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            kept = record[name] = []
            wrappings.append(
                (module, lambda attend, kept=kept: recording(attend, kept))
            )
    with wrapped(wrappings):
        yield record
