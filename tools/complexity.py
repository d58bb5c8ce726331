"""Time and memory of the layers of Table 1 against the length of the sequence, for notebook 09.

    python tools/complexity.py                             n = 64 to 8,192, d = 512; writes data/runs/complexity.json
    python tools/complexity.py --largest 512 --result ""   a quick try that only prints
    python tools/complexity.py --device cuda --result gpu.json

One sequence, float32, on a CPU one thread. The layers take turns; medians count, of as many rounds as two seconds hold,
and of at least three (of two from 8,192 on). All takes some five minutes on one core; n = 8,192 needs 8 GB of memory.
"""

import argparse
import sys
import time

import torch
from scale import ROOT, as_json

sys.path.insert(0, str(ROOT))
from transformer.complexity import KINDS, make_layer, measure  # noqa: E402
from transformer.model import write_file  # noqa: E402
from transformer.translation import git_commit, hardware_in_words  # noqa: E402

SEED, SMALLEST, DEPTH, SECONDS = 2017, 64, 3, 2.0


def measure_all(largest, d, device):
    """Sizes from 64 to largest, forward alone and with the backward pass."""
    layers = {kind: make_layer(kind, d, depth=DEPTH).to(device) for kind in KINDS}
    sizes = [SMALLEST * 2**i for i in range((largest // SMALLEST).bit_length())]
    result = {"d": d, "h": 8, "k": 3, "gap": 3**DEPTH, "r": 32, "sizes": sizes}
    for name in ("forward", "training"):
        result[name] = {kind: {"seconds": [], "bytes": []} for kind in KINDS}
        for n in sizes:
            row = measure(layers, [n], d, name == "training", SECONDS, 3 if n < 8192 else 2, device)
            for kind in KINDS:
                result[name][kind]["seconds"].append(float(f"{row[kind]['seconds'][0]:.4g}"))
                result[name][kind]["bytes"] += row[kind]["bytes"]
            print(f"{name:8} n = {n:5,}:", *(f"{kind} {row[kind]['seconds'][0]:.3g} s;" for kind in KINDS), flush=True)
    return result


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
