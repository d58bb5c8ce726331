"""Time and memory of the layers of Table 1 against the length of the sequence, for notebook 09.

    python -m transformer.experiments.complexity                  n = 64 to 8,192, d = 512
    python -m transformer.experiments.complexity --largest 512 --record quick.json

One sequence, float32, on a CPU one thread. Memory once; then three passes over all sizes, forward
and with the backward pass, so that a bad minute of the machine spoils one pass of many sizes and
not all that is known of one. In a pass the layers take turns at each size for a second, once at
least; the median of all turns counts. All takes seven to nine minutes on one core; n = 8,192 needs
8 GB of memory.
"""

from functools import partial
from pathlib import Path

import torch

from transformer.complexity import KINDS, make_layer
from transformer.experiments.rows import times_and_bytes
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.teaching.measuring import measure

SEED, SMALLEST, DEPTH, PASSES, SECONDS = 2017, 64, 3, 3, 1.0
COMMAND = "python -m transformer.experiments.complexity"


def measure_all(largest: int, d: int, folder: Path, device: str) -> list[dict]:
    """A row a layer and size, from 64 to largest, forward alone and with the backward pass."""
    torch.manual_seed(SEED)
    layers = {kind: make_layer(kind, d, depth=DEPTH).to(device) for kind in KINDS}
    sizes = [SMALLEST * 2**i for i in range((largest // SMALLEST).bit_length())]
    found = measure(layers, sizes, d, PASSES, SECONDS, torch.device(device))
    return times_and_bytes(found, sizes)


def main(
    largest: int = 8192, d: int = 512, device: str = "cpu", record: Path | None = None
) -> None:
    """Measure every layer at every size.

    Args:
        largest: the longest sequence: 64 times a power of 2
        d: width of the vectors, a multiple of 8
        device: cpu or cuda
        record: the file of results (data/runs/complexity.json where not given)
    """
    known = {
        "seed": SEED,
        "d": d,
        "h": 8,
        "k": 3,
        "gap": 3**DEPTH,
        "r": 32,
        "passes": PASSES,
        "largest": largest,
    }
    job = Job("complexity", partial(measure_all, largest, d), known, COMMAND)
    run_jobs([job], Path("runs"), [device], record or "complexity")


if __name__ == "__main__":
    run_command(main)
