"""Is each of a GPU's paths right? Loss and gradient beside those of padded batches in fp32.

A path is a form of batches, a precision, and whether torch.compile writes it. Only one that agrees
is measured, and may be advised.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer.core.records import read_rows
from transformer.data import collate
from transformer.fast import FAST, documents
from transformer.fast.documents import Way
from transformer.fast.loss import ChunkedLoss, SmoothedLoss
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.packed import compile_stacks
from transformer.fast.packing import pack
from transformer.fast.training import fused_adam
from transformer.hardware import choose_precision, loss_scaler
from transformer.runs.batches import epoch_packs, packed_layout
from transformer.runs.update import Objective, update_weights

# Of the norm of the gradient: more than rounding comes to
TOLERANCE = {"fp32": 1e-3, "bf16": 0.05, "fp16": 0.02}
PAIRS = 64


@dataclass(frozen=True)
class GpuPath:
    """How an update is made: on padded batches, or on packed ones by a way of attention."""

    packed: Way | None = None
    precision: str = "fp32"
    compiled: bool = False

    @property
    def name(self) -> str:
        """Such as "varlen bf16 compiled"."""
        words = [self.packed or "padded", self.precision]
        return " ".join([*words, "compiled"] if self.compiled else words)


def paths_on(device: torch.device) -> list[GpuPath]:
    """The paths that a device may have; on a CPU, where a rehearsal runs, few."""
    if device.type == "cpu":
        packed = [GpuPath("flex"), GpuPath("dense"), GpuPath("dense", compiled=True)]
        return [GpuPath(), *packed]
    short = choose_precision(device)
    precisions = ["fp32"] if short == "fp32" else [short, "fp32"]
    found = []
    for precision in precisions:
        for compiled in (False, True):
            found.append(GpuPath(None, precision, compiled))
            found.append(GpuPath("flex", precision, compiled))
            if precision != "fp32" and documents.varlen() is not None:
                found.append(GpuPath("varlen", precision, compiled))
        found.append(GpuPath("dense", precision))
    return found


def random_pairs(
    count: int,
    vocab_size: int,
    seed: int = 2017,
    middle: float = 24,
    longest: int = 150,
) -> list:
    """Encoded pairs of random ids with lengths like those of WMT 2014 cut into 37,000 types.

    Log-normal, 29 tokens on average, 3 to 150; a target is 0.7 to 1.5 times as long as its source.
    middle, longest: other lengths, by their median and their largest.
    """
    chance = np.random.RandomState(seed)
    source = chance.lognormal(np.log(middle), 0.6, count).clip(3, longest)
    target = source * chance.lognormal(0.03, 0.2, count).clip(0.7, 1.5)
    target = target.clip(3, longest)

    def ids(n: float) -> list[int]:
        return chance.randint(3, vocab_size, int(n)).tolist()

    return [([*ids(s), 2], [1, *ids(t), 2]) for s, t in zip(source, target)]


def compiled_objective(
    objective: Objective, path: GpuPath, device: torch.device
) -> Any:
    """An objective as a path has it: on packed batches compiled as a whole, on padded ones its
    stacks, for any shape; on a CPU without kernels of its own."""
    if not path.compiled:
        return objective
    if path.packed is None:
        compile_stacks(objective.model)
        return objective
    backend = "aot_eager" if device.type == "cpu" else "inductor"
    return torch.compile(objective, backend=backend, dynamic=False)


def batches_of(path: GpuPath, pairs: list, batch_tokens: int) -> list:
    """The pairs as a path's batches, on the host."""
    if path.packed is None:
        return [collate(pairs)]
    layout = packed_layout(pairs, batch_tokens)
    packs = epoch_packs(pairs, layout)
    return [pack([pairs[i] for i in rows], layout, 0, path.packed) for rows in packs]


def gradient_by(
    path: GpuPath | None,
    c: TransformerConfig,
    pairs: list,
    batch_tokens: int,
    device: torch.device,
) -> tuple[float, Tensor]:
    """Loss (nats a target token) and gradient of one update by a path; None: the reference."""
    torch.manual_seed(1)
    model = (Transformer(c) if path is None else Transformer(c, FAST)).to(device)
    tokens = sum(len(target) - 1 for _, target in pairs)
    if path is None:
        path, criterion = GpuPath(), SmoothedLoss()
        objective: Any = Objective(model, criterion)
    else:
        objective = Objective(model, ChunkedLoss(), path.precision)
        objective = compiled_objective(objective, path, device)
    batches = [(0, batch) for batch in batches_of(path, pairs, batch_tokens)]
    scaler = loss_scaler(device, path.precision)
    parts = objective, fused_adam(model), scaler, batches, tokens, 0.0
    loss, _ = update_weights(*parts)
    gradients = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return loss.item(), torch.cat(gradients).double()


def check_paths(small: bool, folder: Path, device: str) -> list[dict]:
    """A row for each path: how far its loss and its gradient are from the reference's."""
    where = torch.device(device)
    sizes = dict(d_model=32, d_ff=64, N=1, h=2) if small else dict(N=2)
    c = TransformerConfig(500 if small else 8000, P_drop=0.0, **sizes)
    pairs = random_pairs(8 if small else PAIRS, c.vocab_size)
    batch_tokens = 256 if small else 2048
    expected = gradient_by(None, c, pairs, batch_tokens, where)
    return [
        {"path": path.name, **compared(path, c, pairs, batch_tokens, expected, where)}
        for path in paths_on(where)
    ]


def compared(
    path: GpuPath,
    c: TransformerConfig,
    pairs: list,
    batch_tokens: int,
    expected: tuple[float, Tensor],
    device: torch.device,
) -> dict:
    """Relative errors of a path's loss and gradient, or why it could not be tried."""
    try:
        loss, gradient = gradient_by(path, c, pairs, batch_tokens, device)
    except (RuntimeError, NotImplementedError, ValueError) as error:
        return {
            "passed": False,
            "reason": f"{type(error).__name__}: {str(error)[:300]}",
        }
    error = ((gradient - expected[1]).norm() / expected[1].norm()).item()
    of_loss = abs(loss - expected[0]) / abs(expected[0])
    tolerance = TOLERANCE[path.precision]
    return {
        "passed": error < tolerance and of_loss < tolerance,
        "loss_error": of_loss,
        "gradient_error": error,
        "tolerance": tolerance,
    }


def passed_paths(record: Path, device: torch.device) -> list[GpuPath]:
    """The paths to measure on a device: those that a record of `check_paths` says agree (none
    without one), on a GPU without dense tables, which grow with the square of a batch; on a CPU
    a rehearsal compiles in its check alone."""
    passed = {row["path"] for row in read_rows(record) if row["passed"]}
    return [
        path
        for path in paths_on(device)
        if path.name in passed
        and not (path.compiled if device.type == "cpu" else path.packed == "dense")
    ]
