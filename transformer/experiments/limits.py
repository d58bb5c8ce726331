"""How long a sequence one layer trains on, and what fresh memory costs, for notebook 09.

    python -m transformer.experiments.limits                     4 GiB, ten seconds a pass
    python -m transformer.experiments.limits --gibibytes 16

"reach": one sequence, one pass forward and back, float32, one thread. Lengths are doubled, each in
a process of its own that may take so many GiB more than torch itself; where memory is refused,
lengths between are tried, down to an eighth. A pass of more than ten seconds of the processor ends
it, too. "tables": attention forward whose tables of scores and weights are fresh memory at
each call, or the same memory; seconds of the program and of the system working for it. Linux only.
"""

import os
from functools import partial
from pathlib import Path

import torch

from transformer.bench.harness import in_a_process
from transformer.complexity import ReusedTables, SelfAttention, make_layer
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.fast.attention import kernel_attention, scaled_dot_product_attention
from transformer.teaching.measuring import turns, work

SHORTEST, TURNS = 1024, 2
TRIED = ("self-attention", "self-attention, fused", "restricted attention")
FORMS = {
    "fresh": lambda: scaled_dot_product_attention,
    "reused": ReusedTables,
    "fused": lambda: kernel_attention,
}


def try_length(kind: str, n: int, d: int, gibibytes: float) -> float:
    """Seconds of one pass of training over n positions; RuntimeError where memory is refused."""
    import resource  # not on Windows

    torch.set_num_threads(1)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + int(gibibytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    layer, x = make_layer(kind, d), torch.randn(1, n, d, requires_grad=True)
    return turns({kind: layer}, x, training=True)[kind][0]


def reach(
    kind: str, d: int, gibibytes: float, seconds: float, folder: Path, device: str
) -> dict:
    """The longest sequence that a layer trains on within so many GiB and, a pass, seconds."""

    def attempt(n: int) -> float | None:
        return in_a_process(try_length, kind, n, d, gibibytes)

    longest, took = 0, 0.0
    while took <= seconds and (now := attempt(max(SHORTEST, 2 * longest))) is not None:
        longest, took = max(SHORTEST, 2 * longest), now
    stopped = "time" if took > seconds else "memory"
    for step in (
        (longest // 2, longest // 4, longest // 8) if stopped == "memory" else ()
    ):
        if (now := attempt(longest + step)) is not None:
            longest, took = longest + step, now
    return {
        "layer": kind,
        "longest": longest,
        "seconds": float(f"{took:.3g}"),
        "stopped": stopped,
    }


def fresh_and_reused(d: int, largest: int, folder: Path, device: str) -> list[dict]:
    """Seconds of attention forward over 512 to largest positions, of the program itself and of the
    system, a call, for each of `FORMS`.
    """
    rows = []
    for n in (512 * 2**i for i in range((largest // 512).bit_length())):
        for form, make in FORMS.items():
            layer, x = SelfAttention(d, 8, attend=make()), torch.randn(1, n, d)
            work(layer, x)
            before = os.times()
            for _ in range(TURNS):
                work(layer, x)
            after = os.times()
            rows.append(
                {
                    "form": form,
                    "n": n,
                    "program": round((after.user - before.user) / TURNS, 4),
                    "system": round((after.system - before.system) / TURNS, 4),
                }
            )
            del layer
    return rows


def check_memory(gibibytes: float) -> None:
    """ValueError where this machine has not so much memory free, and 4 GiB to spare."""
    text = Path("/proc/meminfo").read_text()
    free = int(text.split("MemAvailable:")[1].split()[0]) / 2**20
    if free < gibibytes + 4:
        raise ValueError(
            f"{free:.0f} GiB are free: name fewer than {free - 4:.0f} --gibibytes"
        )


def main(
    gibibytes: float = 4,
    seconds: float = 10,
    largest: int = 8192,
    d: int = 512,
    record: Path | None = None,
) -> None:
    """Measure both parts.

    Args:
        gibibytes: memory that a layer may take in training
        seconds: a pass that takes longer is the last
        largest: the longest sequence of "tables": 512 times a power of 2
        d: width of the vectors, a multiple of 8
        record: the file of results (data/runs/limits.json where not given)
    """
    check_memory(gibibytes)
    command = f"python -m transformer.experiments.limits --largest {largest}"
    known = {"d": d, "h": 8, "r": 32, "gibibytes": gibibytes, "limit.seconds": seconds}
    jobs = [Job("tables", partial(fresh_and_reused, d, largest), known, command)]
    jobs += [
        Job(
            f"reach {kind}", partial(reach, kind, d, gibibytes, seconds), known, command
        )
        for kind in TRIED
    ]
    run_jobs(jobs, Path("runs"), ["cpu"], record or "limits")


if __name__ == "__main__":
    run_command(main)
