"""Time and memory of the layers of Table 1 against the length of the sequence, for notebook 09.

    python tools/complexity.py                             n = 64 to 8,192, d = 512; writes data/runs/complexity.json
    python tools/complexity.py --largest 512 --result ""   a quick try that only prints
    python tools/complexity.py --device cuda --result gpu.json

One sequence, float32, on a CPU one thread. Memory once; then three passes over all sizes, forward and with the backward
pass, so that a bad minute of the machine spoils one pass of many sizes and not all that is known of one. In a pass the
layers take turns at each size for a second, once at least; the median of all turns counts. Each pass is printed. All
takes seven to nine minutes on one core; n = 8,192 needs 8 GB of memory.
"""

import argparse
import sys
import time
from statistics import median

import torch
from scale import ROOT, as_json

sys.path.insert(0, str(ROOT))
from transformer.complexity import KINDS, make_layer, measure  # noqa: E402
from transformer.files import (
    git_commit,  # noqa: E402
    write_file,  # noqa: E402
)
from transformer.runs import hardware_in_words

SEED, SMALLEST, DEPTH, PASSES, SECONDS = 2017, 64, 3, 3, 1.0


def tell(number, mode, n, times):
    """A line for each size of a pass."""
    print(f"pass {number}: {mode:8} n = {n:5,}:", *(f"{kind} {median(some):.3g} s;" for kind, some in times.items()),
          flush=True)


def measure_all(largest, d, device):
    """Sizes from 64 to largest, forward alone and with the backward pass; seconds to four figures."""
    layers = {kind: make_layer(kind, d, depth=DEPTH).to(device) for kind in KINDS}
    sizes = [SMALLEST * 2**i for i in range((largest // SMALLEST).bit_length())]
    found = measure(layers, sizes, d, PASSES, SECONDS, device, tell)
    for row in (row for rows in found.values() for row in rows.values()):
        row["seconds"] = [float(f"{seconds:.4g}") for seconds in row["seconds"]]
    return {"d": d, "h": 8, "k": 3, "gap": 3**DEPTH, "r": 32, "passes": PASSES, "sizes": sizes, **found}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=8192, help="the longest sequence: 64 times a power of 2")
    parser.add_argument("--d", type=int, default=512, help="width of the vectors, a multiple of 8")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--result", default=str(ROOT / "data" / "runs" / "complexity.json"), help="empty: only print")
    arguments = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    start = time.monotonic()
    given = [f"--{name} {getattr(arguments, name)}" for name in ("largest", "d", "device")
             if getattr(arguments, name) != parser.get_default(name)]
    result = {"command": " ".join(["python tools/complexity.py", *given]), "commit": git_commit(), "seed": SEED,
              "hardware": hardware_in_words(torch.device(arguments.device), "fp32"),
              **measure_all(arguments.largest, arguments.d, arguments.device)}
    result["minutes"] = round((time.monotonic() - start) / 60, 1)
    if arguments.result:
        write_file(arguments.result, lambda path: path.write_text(as_json(result), encoding="utf8"))


if __name__ == "__main__":
    main()
