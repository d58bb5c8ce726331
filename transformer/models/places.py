"""Names of all that a model computes on its way: `encoder.0.self_attention.weights`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from transformer.core.names import nearest
from transformer.fast.packed import is_compiled
from transformer.models.checkpoint import check_plain
from transformer.models.watching import (
    Place,
    Slot,
    begin_call,
    end_call,
    hooked,
    joined,
    knows_scores,
    projected,
    visit_input,
    visit_output,
    watch_attend,
)

MATRICES = {"W_Q": "queries", "W_K": "keys", "W_V": "values"}
INSIDE = ("queries", "keys", "values", "scores", "weights", "heads")
SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")


@dataclass(frozen=True)
class Named:
    """Where a named tensor is met: its place, and what has to be watched for it."""

    place: Place
    slots: tuple[Slot, ...]


def is_attention(module: nn.Module) -> bool:
    """Whether a module has an attention's four matrices."""
    return all(hasattr(module, name) for name in (*MATRICES, "W_O", "h"))


def forward_of(module: nn.Module, point: str) -> Named:
    """A module's first argument ("input") or its output."""
    way = hooked(visit_input, visit_output)
    return Named((module, point), ((module, "forward", way),))


def inside_attention(module: Any, prefix: str) -> Iterator[tuple[str, Named]]:
    """What is met in an attention, its input and output included."""
    slots: list[Slot] = []
    points = list(INSIDE)
    if callable(getattr(module, "attend", None)):
        if not knows_scores(module.attend):
            points.remove("scores")
        slots.append((module, "forward", hooked(visit_input, visit_output)))
        slots.append((module, "attend", watch_attend))
    else:
        slots.append((module, "forward", hooked(begin_call, end_call, always=True)))
        for name, point in MATRICES.items():
            way = hooked(after=projected(point))
            slots.append((getattr(module, name), "forward", way))
        slots.append((module.W_O, "forward", hooked(joined)))
    for point in ("input", *points, "output"):
        yield prefix + point, Named((module, point), tuple(slots))


def inside_layer(layer: Any, prefix: str) -> Iterator[tuple[str, Named]]:
    """What is met in a layer of sub-layers with residuals around them."""
    names = [name for name in SUBLAYERS if getattr(layer, name, None) is not None]
    for name, residual in zip(names, layer.residuals, strict=True):
        yield f"{prefix}{name}.before", forward_of(residual, "input")
        yield from inside(getattr(layer, name), f"{prefix}{name}.")
        yield f"{prefix}{name}.after", forward_of(residual, "output")


def inside(module: Any, prefix: str = "") -> Iterator[tuple[str, Named]]:
    """(name, where it is met) of all that is met in a module, in the order of the sums."""
    if is_attention(module):
        yield from inside_attention(module, prefix)
        return
    if hasattr(module, "residuals"):
        yield from inside_layer(module, prefix)
        return
    sublayer = prefix.split(".")[-2:-1]
    if sublayer and sublayer[0] in SUBLAYERS:
        yield f"{prefix}input", forward_of(module, "input")
    if isinstance(getattr(module, "W_2", None), nn.Module):
        yield f"{prefix}hidden", forward_of(module.W_2, "input")
    layers = getattr(module, "layers", None)
    stack = isinstance(layers, nn.ModuleList)
    parts: Any = layers if stack else module
    for name, child in parts.named_children():
        yield from inside(child, f"{prefix}{name}.")
    if stack or (sublayer and sublayer[0] in SUBLAYERS):
        yield f"{prefix}output", forward_of(module, "output")


def logits_of(model: Any) -> Iterator[tuple[str, Named]]:
    """What a whole model says at its end."""
    if isinstance(getattr(model, "output", None), nn.Module):
        yield "logits", forward_of(model.output, "output")
    elif hasattr(model, "encoder") and hasattr(model, "decoder"):
        yield "logits", forward_of(model, "output")


def places(model: nn.Module) -> dict[str, Named]:
    """All names of a model, or of a part of one, and where they are met.

    ValueError for a compiled model, and for one in which nothing has a name.
    """
    check_plain(model)
    if is_compiled(model):
        raise ValueError(
            "torch.compile has made one piece of this model, into which nobody can look: "
            "take the model as it was before"
        )
    named = dict([*inside(model), *logits_of(model)])
    if not named:
        raise ValueError(
            f"{type(model).__name__} is not built of layers, attentions and networks of "
            "this package, so that nothing in it has a name"
        )
    return named


def chosen(named: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """The names that fit a pattern, in the model's order; * stands for anything.

    ValueError, with the names that are nearest, for a pattern that fits none.
    """
    named, found = list(named), set()
    for pattern in map(str, patterns):
        fitting = [name for name in named if fnmatchcase(name, pattern)]
        if not fitting:
            check_scores(named, pattern)
            raise ValueError(
                f"nothing here is named {pattern!r}; near: "
                f"{', '.join(nearest(pattern, named, n=3, cutoff=0))}"
            )
        found |= set(fitting)
    return [name for name in named if name in found]


def check_scores(named: list[str], pattern: str) -> None:
    """ValueError for a pattern of scores of attention that does not tell them."""
    for name in named:
        scores = f"{name.removesuffix('weights')}scores"
        if name.endswith("weights") and fnmatchcase(scores, pattern):
            raise ValueError(
                f"{scores} is not known: this attention has an `attend` of your own, and "
                f"only that knows what its softmax reads; take {name}"
            )


def slots_of(named: Iterable[Named]) -> list[Slot]:
    """All that has to be watched for these places, each once."""
    slots = {(slot[0], slot[1]): slot for one in named for slot in one.slots}
    return list(slots.values())
