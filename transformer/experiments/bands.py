"""Time and memory of sparse attention against the length of the sequence, for notebook 22.

    python -m transformer.experiments.bands                  n = 512 to 8,192, d = 512
    python -m transformer.experiments.bands --largest 1024 --record quick.json

The same layer in different forms: a loop over diagonals, 09's blocks, blocks with gaps and a global
token, with random blocks, the table in full (to 4,096), torch's kernel. One sequence, float32,
one thread; the forms take turns at each size, and the median of all turns counts (see `measure`).
"""

from functools import partial
from pathlib import Path

import torch

from transformer.complexity import SelfAttention, local_attention
from transformer.experiments.rows import times_and_bytes
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.fast.attention import kernel_attention, scaled_dot_product_attention
from transformer.sparse import Pattern, diagonal_attention, sparse_attention
from transformer.teaching.measuring import measure

SEED, SMALLEST, PASSES, SECONDS, R, H = 2017, 512, 3, 1.0, 32, 8
GAPS = (1, 1, 1, 1, 4, 4, 16, 16)
WAYS = {
    "loop over diagonals": partial(diagonal_attention, r=R),
    "blocks": partial(local_attention, r=R),
    "blocks, global": partial(sparse_attention, pattern=Pattern(R, global_tokens=(0,))),
    "blocks, gaps, global": partial(sparse_attention, pattern=Pattern(R, GAPS, (0,))),
    "blocks, random": partial(sparse_attention, pattern=Pattern(R, random_blocks=2)),
    "full": scaled_dot_product_attention,
    "full, fused": kernel_attention,
}
LONGEST = {"full": 4096}  # beyond it the tables alone take 4 GB


def measure_all(largest: int, d: int, folder: Path, device: str) -> list[dict]:
    """A row a form and size, forward alone and with the backward pass."""
    torch.manual_seed(SEED)
    layers = {
        name: SelfAttention(d, H, attend=attend).to(device)
        for name, attend in WAYS.items()
    }
    rows = []
    for n in [SMALLEST * 2**i for i in range((largest // SMALLEST).bit_length())]:
        some = {
            name: layer for name, layer in layers.items() if n <= LONGEST.get(name, n)
        }
        found = measure(some, [n], d, PASSES, SECONDS, torch.device(device))
        rows += times_and_bytes(found, [n])
    return rows


def main(
    largest: int = 8192, d: int = 512, device: str = "cpu", record: Path | None = None
) -> None:
    """Measure every form at every size.

    Args:
        largest: the longest sequence: 512 times a power of 2
        d: width of the vectors, a multiple of 8
        device: cpu or cuda
        record: the file of results (data/runs/bands.json where not given)
    """
    known = {
        "seed": SEED,
        "largest": largest,
        "d": d,
        "h": H,
        "r": R,
        "gaps": list(GAPS),
        "passes": PASSES,
    }
    command = "python -m transformer.experiments.bands"
    job = Job("bands", partial(measure_all, largest, d), known, command)
    run_jobs([job], Path("runs"), [device], record or "bands")


if __name__ == "__main__":
    run_command(main)
