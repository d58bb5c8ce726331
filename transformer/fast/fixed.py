"""Caches of one shape for searches: every step is the same work on the same memory.

Memory is taken once, and the host reads nothing but, every few steps, whether all are done. So a GPU
can record a step and replay it. Sentences that are done stay in the batch.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from transformer.core.checks import check_usable, usable
from transformer.core.state import DecoderState
from transformer.fast.attention import (
    MultiHeadAttention,
    kernel_attention,
    scaled_dot_product_attention,
)
from transformer.fast.model import Transformer
from transformer.fast.positions import LearnedPositions, SinusoidalPositions
from transformer.fast.stacks import DecoderLayer, Stack

EVERY = 8  # steps between two looks of the host
EAGER = 2  # steps before one is recorded: they load kernels, and take memory
MULTIPLE = 8  # of keys: what a GPU's attention reads at once

BY_MASK = (scaled_dot_product_attention, kernel_attention)
BY_NUMBER = (SinusoidalPositions, LearnedPositions)


class FixedCache:
    """Keys and values (B, h, columns, d) of a decoder layer, written in place.

    mask and columns are those of the `FixedState`.
    """

    def __init__(self, mask: Tensor, columns: Tensor):
        self.mask, self.columns = mask, columns
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write the keys and values of K new tokens, (B, h, K, d); return all there is room for."""
        if self.k is None or self.v is None:  # at the first step
            self.k, self.v = self.empty(k), self.empty(v)
        self.k.index_copy_(2, self.columns, k)
        self.v.index_copy_(2, self.columns, v)
        return self.k, self.v

    def empty(self, new: Tensor) -> Tensor:
        """Zeros for all columns, where new ones have this form."""
        return new.new_zeros(*new.shape[:2], self.mask.shape[3], new.shape[3])


class FixedState:
    """What a search carries from step to step for K hypotheses of each of B sentences.

    The K newest tokens of a sentence go through the decoder as if they stood side by side in it: a
    sentence's keys and values are there once for all its hypotheses. Column p K + k holds what
    hypothesis k wrote at position p, and mask (B, 1, K, columns) says which columns each comes
    from. Where hypotheses change places or repeat, only rows of the mask move.

    position (K,): of the newest tokens, K times the same. usable and going, in flags (2,): whether
    logits were numbers, and some sentence is not done. All that changes does so in place.
    """

    def __init__(self, read: DecoderState, K: int, room: int):
        """read: of a source, with nothing written; room: most tokens of an output."""
        device, B = read.source_mask.device, len(read.source_mask)
        columns = K * (-(-room // MULTIPLE) * MULTIPLE)
        self.K, self.source_mask = K, read.source_mask
        self.mask = torch.zeros(B, 1, K, columns, dtype=torch.bool, device=device)
        self.own = torch.eye(K, dtype=torch.bool, device=device).expand(B, 1, K, K)
        self.position = torch.zeros(K, dtype=torch.long, device=device)
        self.columns = torch.arange(K, device=device)
        self.flags = torch.ones(2, dtype=torch.bool, device=device)
        self.caches: list[Any] = [
            (FixedCache(self.mask, self.columns), of_source)
            for _, of_source in read.caches
        ]

    def read(self, model: Any, tokens: Tensor) -> Tensor:
        """Read each hypothesis' newest token (B, K) -> logits (B, K, V) of what follows."""
        self.mask.index_copy_(3, self.columns, self.own)
        x = model.states(tokens, None, self.source_mask, self.caches, self.position)
        logits = model.output(x)
        self.flags[0].logical_and_(usable(logits))
        self.position.add_(1)
        self.columns.add_(self.K)
        return logits

    def select(self, rows: Tensor) -> None:
        """Hypothesis i of all B K becomes what rows[i] was, of the same sentence: rows (B, K)."""
        if self.K > 1:
            before = self.mask.flatten(0, 2)
            after = before.index_select(0, rows.flatten())
            before.copy_(after)

    def say(self, going: Tensor) -> None:
        """Note whether one of the sentences is not done: going (B,)."""
        self.flags[1].copy_(going.any())

    def goes_on(self) -> bool:
        """Whether some sentence is not done: the host waits. `Diverged` for useless logits."""
        fine, going = self.flags.tolist()
        check_usable(fine)
        return going


def run(
    step: Callable[[], None], state: FixedState, most: int, passed: Callable[[], bool]
) -> None:
    """Do a step up to `most` times, until all sentences are done or passed() says that the time
    is over; where one is done is asked every `EVERY` steps."""
    for number in range(most):
        if passed():
            break
        if number == EAGER:
            step = replayed(step, state.flags.device)
        step()
        if number % EVERY == EVERY - 1 and not state.goes_on():
            return
    state.goes_on()  # are the last numbers any?


def replayed(step: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """A step as a CUDA graph, which the host starts as one; itself on other devices, and where it
    cannot be recorded. Recording computes nothing."""
    if device.type != "cuda":
        return step
    try:
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                step()
            finally:
                graph.capture_end()
    except RuntimeError:
        return step
    torch.cuda.current_stream(device).wait_stream(stream)
    return graph.replay


def takes_fixed(model: nn.Module) -> bool:
    """Whether a model can search with caches of one shape.

    Its states must be a `Transformer`'s, its attention the package's, which goes by a mask alone,
    and its positions rows of a table. No hook may listen: a replayed step calls none.
    """
    if not isinstance(model, Transformer):
        return False
    methods = ("states", "step", "initial_state", "embed")
    if any(getattr(type(model), n) is not getattr(Transformer, n) for n in methods):
        return False
    if model.positions is not None and type(model.positions) not in BY_NUMBER:
        return False
    if type(model.decoder) is not Stack or hooked(model):
        return False
    return all(
        type(layer) is DecoderLayer
        and by_mask(layer.self_attention)
        and by_mask(layer.cross_attention)
        for layer in model.decoder.layers
    )


def by_mask(attention: nn.Module) -> bool:
    """Whether attention is of a kind that looks at keys wherever they stand, as a mask says."""
    return type(attention) is MultiHeadAttention and attention.attend in BY_MASK


def hooked(model: nn.Module) -> bool:
    """Whether somebody listens to a part of a model."""
    return any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
