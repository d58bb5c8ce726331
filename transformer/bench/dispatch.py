"""What a piece of work asks of a device: kernels, waits of the host, allocations and casts.

On a GPU the host only starts kernels and runs ahead, until it asks for a number: then it waits till
all is computed, and the GPU waits for it in turn. What asks can be counted without a GPU.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten
# Their results, or the shapes of these, depend on numbers that only the device knows
READING = {
    aten._local_scalar_dense,  # item(), float(x), `if x:`
    aten.equal,
    aten.masked_select,
    aten.nonzero,
    aten.unique_consecutive,
    aten._unique2,
}
INDEXING = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
# Only memory or a description of it: nothing is started
NO_KERNEL = {
    aten.detach,
    aten.empty,
    aten.empty_like,
    aten.empty_strided,
    aten.new_empty,
    aten.new_empty_strided,
    aten._local_scalar_dense,
    aten._unsafe_view,
    aten.alias,
    aten.promote_types,
}
# Methods that read numbers of a tensor on a CPU without any operation
HOST = {Tensor.tolist: "tolist", Tensor.numpy: "numpy", Tensor.cpu: "cpu"}


@dataclass
class Dispatched:
    """How often each operation was called; `of` says as what it counts.

    kernels: operations that a device starts a program for (a fused one counts once). reads: the
    host waits for a number. allocations: results with memory of their own. casts: copies of
    another type.
    """

    kernels: Counter = field(default_factory=Counter)
    reads: Counter = field(default_factory=Counter)
    allocations: Counter = field(default_factory=Counter)
    casts: Counter = field(default_factory=Counter)

    def totals(self) -> dict[str, int]:
        """The four sums: {"kernels": ..., "reads": ..., "allocations": ..., "casts": ...}."""
        return {name: counter.total() for name, counter in vars(self).items()}


def tensors_in(values: Any) -> Iterator[Tensor]:
    """The tensors of arguments or results, in lists and dicts, too."""
    return (leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor))


def memory_of(tensors: Iterable[Tensor]) -> set[int]:
    """What tells apart the memory of tensors, which views share."""
    return {tensor.untyped_storage()._cdata for tensor in tensors}


def chooses(arguments: tuple) -> bool:
    """Whether an indexing is by a mask of booleans, of which it is counted how many are True."""
    return any(x.dtype == torch.bool for x in tensors_in(arguments[1]))


class Dispatches(TorchDispatchMode):
    """Counts what is dispatched inside this block, backward passes included."""

    def __init__(self, found: Dispatched):
        super().__init__()
        self.found = found

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        before = memory_of(tensors_in((args, kwargs)))
        kinds = [x.dtype for x in tensors_in(args)]
        result = func(*args, **kwargs)
        operation = func.overloadpacket
        name = operation.__name__
        if operation in READING or operation in INDEXING and chooses(args):
            self.found.reads[name] += 1
        idle = func.is_view or operation in NO_KERNEL or func.namespace == "profiler"
        if not idle:
            self.found.kernels[name] += 1
        made = memory_of(tensors_in(result)) - before
        self.found.allocations[name] += len(made)
        if operation is aten._to_copy and result.dtype != kinds[0]:
            self.found.casts[f"{kinds[0]} to {result.dtype}"] += 1
        return result


class HostReads(TorchFunctionMode):
    """Counts what reads a tensor's numbers inside this block without an operation of its own."""

    def __init__(self, found: Dispatched):
        super().__init__()
        self.found = found

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func in HOST:
            self.found.reads[HOST[func]] += 1
        return func(*args, **kwargs or {})


def dispatched(work: Callable[[], Any]) -> Dispatched:
    """What work() asks of a device. Whatever it does is done, once."""
    found = Dispatched()
    with HostReads(found), Dispatches(found):
        work()
    return found
