"""Look inside a model, and change what is found there: `cache`, `edit`.

Both work inside a `with` block, for this thread alone, on every model that is built of this
package's layers, plain or strong. Names count layers from 0; `list(names(model))` shows all::

    encoder.0.self_attention.before    residual stream before the sub-layer, (B, S, d_model)
    encoder.0.self_attention.input     what the sub-layer reads (pre-norm: after the norm)
    encoder.0.self_attention.queries   (B, h, T, d_k), as scores are made of them; also keys
    encoder.0.self_attention.values    (B, h, S, d_v)
    encoder.0.self_attention.scores    (B, h, T, S), what softmax reads, lowest where masked;
                                       not of an `attend` of your own
    encoder.0.self_attention.weights   (B, h, T, S), rows sum to 1
    encoder.0.self_attention.heads     (B, h, T, d_v), what each head puts out
    encoder.0.self_attention.output    what the sub-layer puts out, before dropout
    encoder.0.self_attention.after     residual stream after it (post-norm: after the norm)
    encoder.0.feed_forward.hidden      (B, S, d_ff), after the ReLU; also before ... after
    encoder.output                     what the decoder reads: the memory
    decoder.0.cross_attention.weights  and so on, in the decoder
    logits                             (B, T, V)
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.core.names import nearest
from transformer.models.places import chosen, places, slots_of
from transformer.models.watching import Block, Visit, opened

SHOWN = 8  # names in the short form of what a cache has seen
Change = Callable[[Tensor], Tensor]


def names(model: nn.Module) -> list[str]:
    """All names that `cache` and `edit` know of a model, in the order of its sums."""
    return list(places(model))


class Activations(Mapping[str, Tensor]):
    """What a `cache` has seen, by name: seen["encoder.0.self_attention.weights"].

    A mapping of the names that were met. What a search computes at every step has many calls:
    `calls` lists them, `joined` puts their steps behind one another.
    """

    def __init__(self, names: list[str]):
        self.kept: dict[str, list[Tensor]] = {name: [] for name in names}

    def calls(self, name: str) -> list[Tensor]:
        """One tensor for each call; ValueError for a name that was not asked for."""
        if name not in self.kept:
            near = ", ".join(nearest(name, self.kept, n=3, cutoff=0))
            raise ValueError(f"this cache does not keep {name!r}; near: {near}")
        return self.kept[name]

    def __getitem__(self, name: str) -> Tensor:
        """The tensor of the only call; ValueError where there were none, or more."""
        calls = self.calls(name)
        if len(calls) != 1:
            raise ValueError(
                f"{name} was computed {len(calls)} times inside the block, not once: "
                f"seen.calls({name!r}) lists all, seen.joined({name!r}) joins the steps "
                "of a search with beam=1"
            )
        return calls[0]

    def joined(self, name: str) -> Tensor:
        """The steps of a greedy search behind one another: (B, h, T, S), (B, T, d_model).

        Weights and scores of what was not yet written are 0 and the lowest number. ValueError
        where the calls are no single steps of the same sentences.
        """
        calls, point = self.calls(name), name.split(".")[-1]
        if point in ("keys", "values") and calls:
            return calls[-1]  # it holds all
        calls = [x[:, None] if x.dim() == 2 else x for x in calls]
        one_by_one = all(
            x.shape[0] == calls[0].shape[0] and x.shape[-2] == 1 for x in calls[1:]
        )
        if not calls or not one_by_one:
            raise ValueError(
                f"the {len(calls)} calls of {name} are no steps of one greedy search for "
                f"the same sentences: use beam=1, or seen.calls({name!r}), which lists them"
            )
        if point in ("weights", "scores"):
            fill = 0.0 if point == "weights" else torch.finfo(calls[0].dtype).min
            most = max(x.shape[-1] for x in calls)
            calls = [F.pad(x, (0, most - x.shape[-1]), value=fill) for x in calls]
        return torch.cat(calls, dim=-2)

    def __iter__(self) -> Iterator[str]:
        return (name for name, calls in self.kept.items() if calls)

    def __len__(self) -> int:
        return sum(map(bool, self.kept.values()))

    def __contains__(self, name: object) -> bool:
        return bool(self.kept.get(str(name)))

    def __repr__(self) -> str:
        lines = [f"Activations of {len(self)} names:"]
        for name in islice(self, SHOWN):
            calls = self.kept[name]
            more = f", and {len(calls) - 1} more calls" if len(calls) > 1 else ""
            lines.append(f"  {name}: {tuple(calls[0].shape)}{more}")
        if len(self) > SHOWN:
            lines.append(f"  ... and {len(self) - SHOWN} more; list(...) names all")
        return "\n".join(lines)


def keeping(calls: list[Tensor], device: str | torch.device | None) -> Visit:
    """A visit that appends a copy, without its gradient, and changes nothing."""

    def visit(x: Tensor) -> Tensor:
        calls.append(x.detach().to(device or x.device, copy=True))
        return x

    return visit


def changing(name: str, change: Change) -> Visit:
    """A visit that puts change(copy of x) in the place of x; ValueError for another shape."""

    def visit(x: Tensor) -> Tensor:
        try:
            changed = change(x.clone())
        except IndexError as error:
            raise ValueError(
                f"the edit of {name} asks for a place that a tensor {tuple(x.shape)} does "
                f"not have; layers, heads and words count from 0: {error}"
            ) from error
        if not isinstance(changed, Tensor):
            raise ValueError(
                f"the edit of {name} returned {type(changed).__name__}, not a tensor: "
                "end it with return"
            )
        for what in ("shape", "dtype", "device"):
            before, after = getattr(x, what), getattr(changed, what)
            if before != after:
                raise ValueError(
                    f"the edit of {name} returned the {what} {after}, where the model "
                    f"goes on with {before}"
                )
        if not changed.is_meta and changed.isnan().any() and not x.isnan().any():
            raise ValueError(
                f"the edit of {name} returned values that are not numbers (nan)"
            )
        return changed

    return visit


@contextmanager
def cache(
    model: nn.Module, *patterns: str, device: str | torch.device | None = None
) -> Iterator[Activations]:
    """Inside the block, keep what a model computes, by name (module docstring).

    patterns: names, in which * stands for anything; all where none is given. Kept are copies
    without gradients, of what the model goes on with after all edits, on `device` ("cpu" saves a
    GPU's memory). Calls by other threads are not kept. ValueError, with the nearest names, for
    a pattern that fits none, and for a compiled model. For example::

        with cache(model, "encoder.*.weights") as seen:
            translate(model, tokenizer, ["The cat lost its ball."])
        seen["encoder.0.self_attention.weights"]  # (1, 4, 7, 7)
    """
    named = places(model)
    seen = Activations(chosen(named, patterns or ("*",)))
    visits = {
        named[name].place: keeping(calls, device) for name, calls in seen.kept.items()
    }
    slots = slots_of(named[name] for name in seen.kept)
    with opened(Block(visits, last=True), slots):
        yield seen


@contextmanager
def edit(model: nn.Module, changes: Mapping[str, Change]) -> Iterator[None]:
    """Inside the block, a model goes on with change(x) in the place of what it computed.

    changes: functions by name or pattern (module docstring). Each gets a copy, which it may
    change in place, and returns a tensor of the same shape. Gradients flow through. Of several
    blocks the one that began first changes first. ValueError as in `cache`, where two patterns
    fit one name, and for what an edit returns of another shape.

        def no_third_head(heads):  # (B, h, T, d_v)
            heads[:, 2] = 0
            return heads

        with edit(model, {"encoder.0.self_attention.heads": no_third_head}):
            translate(model, tokenizer, ["The cat lost its ball."])
    """
    named, visits, used = places(model), {}, []
    if not isinstance(changes, Mapping) or not all(map(callable, changes.values())):
        raise ValueError(
            "edit takes functions by name, such as edit(model, "
            '{"encoder.0.self_attention.heads": change})'
        )
    for pattern, change in changes.items():
        for name in chosen(named, [pattern]):
            if named[name].place in visits:
                raise ValueError(
                    f"two changes fit {name}: open one block inside the other, "
                    "in the order in which they are to work"
                )
            visits[named[name].place] = changing(name, change)
            used.append(named[name])
    with opened(Block(visits, last=False), slots_of(used)):
        yield
