"""Time and memory of layers, which take turns so that all share the same good and bad minutes; and
what curves over sizes say."""

import math
import os
import time
import weakref
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


class TensorMemory(TorchDispatchMode):
    """Inside the block, `peak` is the most bytes held at once by tensors that were made there.

    What a compiled operation needs inside itself is not seen.
    """

    def __init__(self):
        super().__init__()
        self.held = 0
        self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        known = {
            id(given.untyped_storage())
            for given in args
            if isinstance(given, torch.Tensor)
        }
        for tensor in made if isinstance(made, (tuple, list)) else (made,):
            # neither a view nor in place
            if (
                isinstance(tensor, torch.Tensor)
                and id(tensor.untyped_storage()) not in known
            ):
                size = tensor.untyped_storage().nbytes()
                weakref.finalize(tensor.untyped_storage(), self.add, -size)
                self.add(size)
        return made

    def add(self, size: int) -> None:
        self.held += size
        self.peak = max(self.peak, self.held)


def work(layer: nn.Module, x: torch.Tensor, training: bool = False) -> None:
    """Send x through a layer; training: and all gradients back. Done on return, on a GPU too."""
    with torch.set_grad_enabled(training):
        y = layer(x)
    if training:
        torch.autograd.grad(y.sum(), [x, *layer.parameters()])
    if x.is_cuda:
        torch.cuda.synchronize(x.device)


def peak_bytes(layers: dict, x: torch.Tensor, training: bool = False) -> dict[str, int]:
    """Of layers {name: layer}, the most bytes that each holds at once, beside weights and input."""
    peaks = {}
    for name, layer in layers.items():
        with TensorMemory() as memory:
            work(layer, x, training)
        peaks[name] = memory.peak
    return peaks


def turns(
    layers: dict, x: torch.Tensor, training: bool = False, seconds: float = 0.0
) -> dict[str, list[float]]:
    """Layers {name: layer} take turns at x until `seconds` are over, once at least.

    Returns {name: [seconds of each turn]}. On a CPU these are seconds of this thread: without
    waiting for the processor, but longer where others use the same core, cache or memory.
    """
    # Windows counts a thread's time too coarsely
    of_thread = x.device.type == "cpu" and os.name == "posix"
    clock = time.thread_time if of_thread else time.perf_counter
    times = {name: [] for name in layers}
    end = time.perf_counter() + seconds
    while not all(times.values()) or time.perf_counter() < end:
        for name, layer in layers.items():
            start = clock()
            work(layer, x, training)
            times[name].append(clock() - start)
    return times


MODES = ("forward", "training")


def measure(
    layers: dict,
    sizes: list[int],
    d: int,
    passes: int = 3,
    seconds: float = 0.05,
    device: str | torch.device = "cpu",
    tell: Callable | None = None,
) -> dict[str, dict]:
    """Layers of width d on one sequence of each size, forward alone and as in training.

    First `peak_bytes`, which warms up, too; then passes over all sizes, in each of which the
    layers take `turns` at a size: a bad minute spoils one pass of many sizes, and not all that is
    known of one. The median of all turns counts. tell(pass, mode, n, times), if given, hears of
    each. Returns {"forward": {name: {"seconds": [...], "bytes": [...]}}, "training": ...}.
    """

    def inputs(mode, n):
        return torch.randn(1, n, d, device=device, requires_grad=mode == "training")

    runs = [(mode, n) for mode in MODES for n in sizes]
    peaks = {}
    for mode, n in runs:
        peaks[mode, n] = peak_bytes(layers, inputs(mode, n), mode == "training")
    times = {run: {name: [] for name in layers} for run in runs}
    for number in range(1, passes + 1):
        for mode, n in runs:
            now = turns(layers, inputs(mode, n), mode == "training", seconds)
            for name in layers:
                times[mode, n][name] += now[name]
            if tell:
                tell(number, mode, n, now)

    def figures(mode, name):
        seconds = [median(times[mode, n][name]) for n in sizes]
        return {"seconds": seconds, "bytes": [peaks[mode, n][name] for n in sizes]}

    return {mode: {name: figures(mode, name) for name in layers} for mode in MODES}


# What curves say


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """p of the power law values ~ sizes^p that fits the larger half best, by least squares of the
    logarithms.
    """
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(values[half:]), 1)[0])


def crossing(
    sizes: Sequence[int], a: Sequence[float], b: Sequence[float]
) -> float | None:
    """Where curve a comes to lie above curve b for good, or None: the n between two sizes, on
    straight lines in log-log.
    """
    gap = [math.log(y / z) for y, z in zip(a, b)]
    i = max((i for i in range(len(gap)) if gap[i] <= 0), default=None)
    if i is None or i + 1 == len(gap):
        return None
    part = gap[i] / (gap[i] - gap[i + 1])
    return sizes[i] * (sizes[i + 1] / sizes[i]) ** part
