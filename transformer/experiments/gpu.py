"""What somebody with a GPU can measure, stage by stage, the most important first.

    python -m transformer.experiments.gpu             stages that have no result yet; again: go on
    python -m transformer.experiments.gpu base big    only these
    python -m transformer.experiments.gpu --list      what there is, and what has a result
    python -m transformer.experiments.gpu --small     a rehearsal with tiny models on a CPU

0. check: loss and gradient of each path that a GPU has (padded and packed batches, short numbers,
   torch.compile) beside those of padded batches in fp32, and outputs of searches with caches of one
   shape beside those with growing ones. What does not agree is measured nowhere.

1. rounds-base, rounds-big, rounds-multi30k, rounds-tatoeba: training with the recipe's model and
   batch, the paths that passed in turns with the plain form, torch's own layer (compiled, too) and
   Marian (where transformers is there). Tokens a second, and memory.

2. kernels: what an update of base asks of the GPU, and the twenty kernels that take most of it.

3. searches: 64 and 256 sentences at once, one and four hypotheses, with both kinds of caches.

4. base, big: the paper's models at its full batch size, 200 updates each: utilisation, and from it
   the hours and the cost of the whole runs.

Token ids are random, with lengths drawn like those of the corpora. No stage takes more than eight
minutes on an H100, as far as can be told before. Each stage leaves data/runs/gpu-<stage>.json. Trainings for a GPU are
`transformer.experiments.multi30k`, with many workers, and `transformer train` on tatoeba or wmt14.
"""

import gc
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from tyro.conf import Positional

from transformer import hardware
from transformer.core.files import data_folder, prepare_folder
from transformer.core.interrupt import Interrupted
from transformer.core.records import read_rows, write_rows
from transformer.experiments.gpu_paths import check_paths, random_pairs
from transformer.experiments.gpu_rounds import (
    MODELS,
    TINY,
    dearest_kernels,
    training_rounds,
)
from transformer.experiments.gpu_searches import check_searches, search_rounds
from transformer.experiments.runner import Job, run_command, run_jobs, settings_of
from transformer.fast.training import fast_training
from transformer.models.families import build_fast, parameters_of
from transformer.runs.experiment import Experiment
from transformer.runs.recipes import recipe
from transformer.runs.training import train

PAPER = {"base": 100_000, "big": 300_000}  # updates
CHECK = "check"
STAGES = (CHECK, *(f"rounds-{name}" for name in MODELS), "kernels", "searches", *PAPER)
DOLLARS = 2.5  # an hour of one H100, roughly what it was rented for in 2025
COMMAND = "python -m transformer.experiments.gpu"


# The paper's sizes, at its batch


def measured(c, training, encoded, device) -> dict:
    """Train a fresh model without saving; what its updates took, the first quarter left out as
    warm-up.
    """
    torch.manual_seed(training.seed)
    model = build_fast(c).to(device)
    log = train(model, encoded, training, **fast_training(training, c))
    first, last = log[0], log[-1]
    updates = last["update"] - first["update"]
    seconds = max(1e-9, last["seconds"] - first["seconds"])
    return {
        "seconds_per_update": round(seconds / updates, 6),
        "tokens_per_second": round((last["tokens"] - first["tokens"]) / seconds),
        "tokens_per_update": round((last["tokens"] - first["tokens"]) / updates),
        "utilisation": round(
            sum(row["utilisation"] for row in log[1:]) / len(log[1:]), 3
        ),
        "skipped": last["skipped"],
        "log.loss": [round(row["loss"], 3) for row in log],
    }


def in_parts(c, training, encoded, device) -> dict:
    """`measured` with as few batches an update as memory allows; ValueError where sixteen are too
    few.
    """
    for parts in (1, 2, 4, 8, 16):
        here = replace(
            training, accumulate=parts, batch_tokens=training.batch_tokens // parts
        )
        try:
            found = measured(c, here, encoded, device)
            return {"accumulate": parts, "batch_tokens": here.batch_tokens, **found}
        except torch.cuda.OutOfMemoryError:
            print(
                f"{here.batch_tokens:,} tokens do not fit: trying half as many",
                flush=True,
            )
        gc.collect()  # here, where the exception is gone and holds nothing any more
        torch.cuda.empty_cache()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
    raise ValueError("the model does not fit into this GPU's memory")


def throughput(name: str, small: bool, folder: Path, device: str) -> dict:
    """Speed of the paper's base or big at 25,000 tokens a side an update, and what the whole run
    would take.
    """
    hardware.allow_tf32()
    (c, training), device = recipe("wmt14", name).values(), torch.device(device)
    if small:
        c, training = (
            replace(c, vocab_size=300, **TINY),
            replace(training, batch_tokens=500),
        )
    updates = 8 if small else 200
    training = replace(training, updates=updates, validate_every=updates // 4)
    speed = in_parts(
        c, training, random_pairs(200 if small else 40_000, c.vocab_size), device
    )
    hours = PAPER[name] * speed["seconds_per_update"] / 3600
    rate = hardware.matmul_rate(device, hardware.choose_precision(device))
    return {
        "matmul_teraflops": round(rate / 1e12, 2),
        "parameters": parameters_of(c),
        "updates": updates,
        **speed,
        "peak_memory_gib": round(hardware.peak_memory(device), 2),
        "updates_of_the_paper": PAPER[name],
        "hours_of_the_paper": round(hours, 2),
        "dollars_an_hour_assumed": DOLLARS,
        "dollars": round(hours * DOLLARS, 2),
    }


# The stages


def job_of(stage: str, small: bool, out: Path | None) -> Job:
    """What a stage does; out: where the record of the check lies."""
    command = f"{COMMAND} {stage}"
    check = record_of(CHECK, out)
    if stage in PAPER:
        what = "speed of training on random token ids, lengths drawn like WMT's; no translation run"
        known = {
            "what": what,
            **settings_of(Experiment("random ids", **recipe("wmt14", stage))),
        }
        return Job(stage, partial(throughput, stage, small), known, command)
    does = {
        CHECK: partial(checks, small),
        "kernels": partial(dearest_kernels, small, check),
        "searches": partial(search_rounds, small, check),
        **{f"rounds-{n}": partial(training_rounds, n, small, check) for n in MODELS},
    }
    return Job(stage, does[stage], {}, command)


def checks(small: bool, folder: Path, device: str) -> list[dict]:
    """Whether each path of updates and each search is right on a device."""
    return check_paths(small, folder, device) + check_searches(small, device)


def rehearse(job: Job, folder: Path, record: Path) -> None:
    """Do a stage here and now: a process for each would take longer than what it does."""
    found = job.do(folder=folder, device="cpu")
    rows = found if isinstance(found, list) else [found]
    known = {"name": job.name, "command": job.command, **job.known}
    prepare_folder(record.parent)
    write_rows(record, [{**known, **row} for row in rows])


def finished(
    name: str, small: bool, folder: Path, device: str, out: Path | None
) -> bool:
    """Measure a stage; whether there is a result, the reason printed where not."""
    try:
        job, record = job_of(name, small, out), record_of(name, out)
        if small:
            rehearse(job, folder, record)
        else:
            run_jobs([job], folder, [device], record)
    except (Interrupted, ValueError, OSError) as problem:
        print(f"{name}: {problem}", flush=True)
        return False
    return True


def main(
    stages: Positional[tuple[str, ...]] = (),
    list: bool = False,
    small: bool = False,
    folder: Path = Path("runs/gpu"),
    out: Path | None = None,
) -> None:
    """Measure what a GPU is needed for, stage by stage; what has a result is left out.

    Args:
        stages: some of the stages (all that have no result yet where none is named)
        list: only say what there is
        small: rehearse with tiny models on the CPU
        folder: for what is needed meanwhile
        out: where the results go (data/runs where not given, which a rehearsal leaves alone)
    """
    if unknown := set(stages) - set(STAGES):
        raise ValueError(
            f"there is no stage {unknown.pop()}: choose from {', '.join(STAGES)}"
        )
    with tempfile.TemporaryDirectory() as scratch:
        if small and out is None:
            folder, out = Path(scratch, "runs"), Path(scratch, "results")
        folder = folder / "small" if small else folder
        records = {name: record_of(name, out) for name in stages or STAGES}
        waiting = [name for name in records if not read_rows(records[name])]
        if list:
            for name in records:
                print(f"{'to do' if name in waiting else 'done':6} {name}")
            return
        waiting = [*stages] or waiting
        device = "cpu" if small else a_gpu()

        def fails(name):
            return not finished(name, small, folder / name, device, out)

        left = [name for name in waiting if fails(name)]
        done = f"{len(waiting) - len(left)} of {len(waiting)}"
        print(f"{done} stages done; to do: {', '.join(left) or 'nothing'}")
        sys.exit(bool(left))


def record_of(stage: str, out: Path | None) -> Path:
    """Where a stage's result lies, beside what was made on a CPU."""
    return (out or data_folder() / "runs") / f"gpu-{stage}.json"


def a_gpu() -> str:
    """The fastest device there is; ValueError where that is a CPU."""
    device = hardware.choose_device()
    if device.type == "cpu":
        cuda = torch.version.cuda
        old = f" (this torch wants CUDA {cuda}: is the driver too old?)" if cuda else ""
        raise ValueError(
            f"there is no GPU here{old}: --small rehearses everything on a CPU"
        )
    return str(device)


if __name__ == "__main__":
    run_command(main)
