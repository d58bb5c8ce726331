"""What somebody with a GPU for an hour can measure: prepared stages of at most ten minutes, the
most important first.

    python -m transformer.experiments.gpu             stages that have no result yet; again: go on
    python -m transformer.experiments.gpu base big    only these
    python -m transformer.experiments.gpu --list      what there is, and what has a result
    python -m transformer.experiments.gpu --small     a rehearsal with tiny models, minutes on a CPU
    python -m transformer.experiments.gpu estimate    the one stage that needs no GPU

1. Multi30k: English-German with three seeds, German-English, the ablations: trained and scored.

2. The paper's base and big at its full batch size, 200 updates each: tokens a second, utilisation,
   memory, and from them the hours and the cost of the whole runs. The token ids are random, with
   lengths drawn like WMT's.

3. Tatoeba.

4. `transformer bench`: base, big, decoding, memory, beside torch's own layer and Marian (where
   transformers is there).

5. Table 3 with a larger base than on a CPU, three seeds: hours, so it takes several calls.

6. What base and big would take on several GPUs, estimated from the count of FLOPs.

Each stage is a list of jobs, and leaves data/runs/gpu-<stage>.json. What runs into the limit is
stopped, saved, and goes on the next time. With more workers several models train at a time (their
minutes are then not those of one alone).
"""

import gc
import sys
import tempfile
import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from tyro.conf import Positional

from transformer import hardware
from transformer.bench.run import run_bench
from transformer.bench.settings import Bench
from transformer.experiments import table3, translators
from transformer.experiments.records import read_rows
from transformer.experiments.runner import Job, devices_for, run_command, run_jobs, settings_of
from transformer.fast import build_fast
from transformer.fast.training import fast_training
from transformer.files import data_folder
from transformer.interrupt import Interrupted
from transformer.pretrained import parameters_of
from transformer.recipes import recipe
from transformer.runs import Experiment
from transformer.training import train

PAPER = {"base": 100_000, "big": 300_000}  # updates
BENCH = {"bench-base": ("base",), "bench-big": ("big",),  # parts of `transformer bench`
         "bench-decoding": ("T3", "T4"), "bench-memory": ("memory", "attention")}
STAGES = ("multi30k", *PAPER, "tatoeba", *BENCH, "variations", "estimate")
ASSUMED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf8"))
TINY = dict(d_model=16, d_ff=32, N=1, h=2)
COMMAND = "python -m transformer.experiments.gpu"


def tiny(e: Experiment) -> Experiment:
    """A rehearsal of an experiment: a tiny model, two updates, the bundled corpus."""
    training = replace(e.training, updates=2, batch_tokens=300, save_every=1)
    model = replace(e.model, vocab_size=300, **TINY)
    return replace(e, corpus="bundled", reverse=False, model=model, training=training)


# The paper's sizes, at its batch

def random_pairs(count: int, vocab_size: int, seed: int = 2017) -> list:
    """Encoded pairs of random ids with lengths like those of WMT 2014 cut into 37,000 types.

    Log-normal, 29 tokens on average, 3 to 150; a target is 0.7 to 1.5 times as long as its source.
    """
    chance = np.random.RandomState(seed)
    source = chance.lognormal(np.log(24), 0.6, count).clip(3, 150)
    target = (source * chance.lognormal(0.03, 0.2, count).clip(0.7, 1.5)).clip(3, 150)

    def ids(n):
        return chance.randint(3, vocab_size, int(n)).tolist()

    return [([*ids(s), 2], [1, *ids(t), 2]) for s, t in zip(source, target)]


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
    return {"seconds_per_update": round(seconds / updates, 6),
            "tokens_per_second": round((last["tokens"] - first["tokens"]) / seconds),
            "tokens_per_update": round((last["tokens"] - first["tokens"]) / updates),
            "utilisation": round(sum(row["utilisation"] for row in log[1:]) / len(log[1:]), 3),
            "skipped": last["skipped"], "log.loss": [round(row["loss"], 3) for row in log]}


def in_parts(c, training, encoded, device) -> dict:
    """`measured` with as few batches an update as memory allows; ValueError where sixteen are too
    few.
    """
    for parts in (1, 2, 4, 8, 16):
        here = replace(training, accumulate=parts, batch_tokens=training.batch_tokens // parts)
        try:
            found = measured(c, here, encoded, device)
            return {"accumulate": parts, "batch_tokens": here.batch_tokens, **found}
        except torch.cuda.OutOfMemoryError:
            print(f"{here.batch_tokens:,} tokens do not fit: trying half as many", flush=True)
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
        c, training = replace(c, vocab_size=300, **TINY), replace(training, batch_tokens=500)
    updates = 8 if small else 200
    training = replace(training, updates=updates, save_every=updates // 4)
    speed = in_parts(c, training, random_pairs(200 if small else 40_000, c.vocab_size), device)
    hours = PAPER[name] * speed["seconds_per_update"] / 3600
    rate = hardware.matmul_rate(device, hardware.choose_precision(device))
    return {"matmul_teraflops": round(rate / 1e12, 2),
            "parameters": parameters_of(c), "updates": updates, **speed,
            "peak_memory_gib": round(hardware.peak_memory(device), 2),
            "updates_of_the_paper": PAPER[name], "hours_of_the_paper": round(hours, 2),
            "dollars_an_hour_assumed": ASSUMED["dollars"],
            "dollars": round(hours * ASSUMED["dollars"], 2)}


def bench(name: str, small: bool, folder: Path, device: str) -> dict:
    """The figures of a part of `transformer bench`."""
    return run_bench(Bench(parts=BENCH[name], quick=small, device=device), f"{COMMAND} {name}")


# On paper

def estimate(folder: Path | None = None, device: str = "cpu") -> list[dict]:
    """Hours and dollars of the paper's runs on several GPUs, from the count of FLOPs alone. Marked
    as an estimate.
    """
    about = {"what": "an estimate from the count of FLOPs, not a measurement", "estimate": True,
             "assumptions": ASSUMED["assumptions"], "minutes": 0.0}
    rows = []
    for name, updates in PAPER.items():
        c, training = recipe("wmt14", name).values()
        flops = training.batch_tokens / 30 * hardware.training_flops(c, 30, 30)
        for gpu in ASSUMED["hardware"]:
            seconds = flops / (gpu["flops"] * hardware.UTILISATION)
            hours = updates * seconds / 3600
            dollars = hours * gpu["dollars"] if "dollars" in gpu else None
            rows.append({**about, "model": name, "hardware": gpu["name"], "updates": updates,
                         "flops": short(flops * updates), "seconds_per_update": short(seconds),
                         "hours": short(hours), "dollars": dollars and short(dollars)})
    return rows


def short(number: float) -> float:
    """A number cut to three digits."""
    return float(f"{number:.3g}")


# The stages

def jobs_of(stage: str, small: bool) -> list[Job]:
    """The jobs of a stage."""
    command = f"{COMMAND} {stage}"
    if stage in PAPER:
        what = "speed of training on random token ids, lengths drawn like WMT's; no translation run"
        known = {"what": what, **settings_of(Experiment("random ids", **recipe("wmt14", stage)))}
        return [Job(stage, partial(throughput, stage, small), known, command)]
    if stage in BENCH:
        return [Job(stage, partial(bench, stage, small), {}, command)]
    if stage == "estimate":
        return [Job(stage, estimate, {}, command)]
    if stage == "variations":
        base, rows, seeds = table3.base_of("multi30k", large=True), table3.choose(), (1, 2, 3)
        if small:
            base, rows, seeds = tiny(base), table3.choose(("E",)), (1,)
        return [table3.job_of(row, base, seed, command) for seed in seeds for row in rows]
    names = [name for name in translators.RUNS if name.startswith(stage)]
    if small:
        tried = {name: tiny(translators.experiment_of(name)) for name in names}
        return [translators.job_of(name, e, most=4) for name, e in tried.items()]
    return [translators.job_of(name) for name in names]


def main(stages: Positional[tuple[str, ...]] = (), list: bool = False, small: bool = False,
         minutes: float = 9.5, workers: int | None = None, folder: Path = Path("runs/gpu"),
         out: Path | None = None) -> None:
    """Measure what a GPU is needed for, stage by stage; what has a result is left out.

    Args:
        stages: some of the stages (all that have no result yet where none is named)
        list: only say what there is
        small: rehearse with tiny models on the CPU
        minutes: limit of a stage
        workers: models trained side by side (one for each GPU where not given)
        folder: where runs are kept while they train
        out: where the results go (data/runs where not given, which a rehearsal leaves alone)
    """
    if unknown := set(stages) - set(STAGES):
        raise ValueError(f"there is no stage {unknown.pop()}: choose from {', '.join(STAGES)}")
    with tempfile.TemporaryDirectory() as scratch:
        if small and out is None:
            folder, out = Path(scratch, "runs"), Path(scratch, "results")
        folder = folder / "small" if small else folder
        records = {name: record_of(name, out) for name in stages or STAGES}
        waiting = [name for name in records if not is_done(jobs_of(name, small), records[name])]
        if list:
            for name in records:
                print(f"{'to do' if name in waiting else 'done':6} {name}")
            return
        waiting = [*stages] or waiting
        device = "cpu" if small or waiting == ["estimate"] else a_gpu()
        devices, left = devices_for(device, workers), []
        for name in waiting:
            try:
                run_jobs(jobs_of(name, small), folder / name, devices, records[name], minutes)
            except (Interrupted, ValueError, OSError) as problem:
                print(f"{name}: {problem}", flush=True)
                left.append(name)
        missing = f"; to do: {', '.join(left)}" if left else ""
        print(f"{len(waiting) - len(left)} of {len(waiting)} stages done{missing}")
        sys.exit(bool(left))


def record_of(stage: str, out: Path | None) -> Path:
    """Where a stage's result lies: gpu-<name>.json, beside what was made on a CPU; the estimate as
    estimate.json.
    """
    name = stage if stage == "estimate" else f"gpu-{stage}"
    return (out or data_folder() / "runs") / f"{name}.json"


def is_done(jobs: list[Job], record: Path) -> bool:
    """True where all jobs have a result."""
    return {job.name for job in jobs} <= {row.get("name") for row in read_rows(record)}


def a_gpu() -> str:
    """"auto", where that is no CPU; ValueError where it is."""
    if hardware.choose_device().type == "cpu":
        cuda = torch.version.cuda
        old = f" (this torch wants CUDA {cuda}: is the driver too old?)" if cuda else ""
        raise ValueError(f"there is no GPU here{old}: --small rehearses everything on a CPU, "
                         "and the stage estimate needs none")
    return "auto"


if __name__ == "__main__":
    run_command(main)
