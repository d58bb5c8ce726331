"""What somebody with a GPU for an hour can measure: prepared stages of at most ten minutes, the most important first.

    python tools/gpu.py                      every stage that has no result yet (make gpu); run it again to go on
    python tools/gpu.py base big             only these
    python tools/gpu.py --list               what there is, and what has a result
    python tools/gpu.py --small              a rehearsal of all stages with tiny models: some minutes on a CPU
    python tools/gpu.py estimate             the one stage that needs no GPU

1. Multi30k: English-German with three seeds, German-English, the ablations: trained, scored, kept in data/runs.
2. The paper's base and big at its full batch size, 200 updates each: tokens a second, utilisation, memory, and from
   them the hours and the cost of the whole runs. The token ids are random, with lengths drawn like WMT's.
3. Tatoeba.
4. `transformer bench`: base, big, decoding, memory, beside torch's own layer and Marian (where transformers is there).
5. Table 3 with a larger base than on a CPU, three seeds: hours, so it takes several calls.
6. What base and big would take on several GPUs, estimated from the count of FLOPs.

A stage that runs into the limit is stopped, saved, and goes on the next time (a part of the benchmark begins anew).
Stages run one after another, each in a process of its own; --jobs 4 trains four of Multi30k's models at a time (their
minutes are then not those of one alone).
"""

import argparse
import gc
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from transformer.bench import Bench, run_bench  # noqa: E402
from transformer.experiments.records import RUNS, experiment_of, options_of, record
from transformer.files import git_commit, write_json  # noqa: E402
from transformer.hardware import (  # noqa: E402
    UTILISATION,
    allow_tf32,
    choose_device,
    choose_precision,
    matmul_rate,
    peak_memory,
    training_flops,
)
from transformer.fast import FAST  # noqa: E402
from transformer.model import Transformer  # noqa: E402
from transformer.pretrained import parameters_of
from transformer.recipes import recipe
from transformer.runs import hardware_in_words, load_run, run_experiment
from transformer.training import Interrupted, train  # noqa: E402
from transformer.translation import score_run
from transformer.variations import base_of, choose, devices_for, run_variations  # noqa: E402

PAPER = {"base": 100_000, "big": 300_000}  # updates
BENCH = {"bench-base": ("base",), "bench-big": ("big",), "bench-decoding": ("T3", "T4"),  # parts of `transformer bench`
         "bench-memory": ("memory", "attention")}
STAGES = [*(name for name in RUNS if name.startswith("multi30k")), *PAPER, "tatoeba-en-de", *BENCH, "variations",
          "estimate"]
DOLLARS = 2.5  # an hour of one H100, roughly what it is rented for in 2025
# hardware; FLOPs a second of dense matrix products in this precision, by the makers' data sheets; dollars an hour
GPUS = [("1 x H100, bf16", 989e12, DOLLARS), ("8 x H100, bf16", 8 * 989e12, 8 * DOLLARS),
        ("1 x A100, bf16", 312e12, 1.5), ("1 x T4, fp16", 65e12, 0.35),
        ("8 x P100, fp32 (the paper's)", 8 * 9.5e12, None)]
TINY = dict(d_model=16, d_ff=32, N=1, h=2)


def result_file(name, out):
    """Where a stage's result lies: gpu-<name>, beside what was made on a CPU; the estimate as estimate."""
    return out / f"{name if name == 'estimate' else f'gpu-{name}'}.json"


# 1 and 3: training to the end

def train_and_score(name, folder, small, device):
    """Train a run of RUNS in a folder, or go on with it, and score it: its last weights alone, then their average."""
    command = f"transformer train {options_of(name)}"
    if (folder / "checkpoint.safetensors").is_file():
        e = load_run(folder)
    else:
        e = experiment_of(name, folder)
    if small and not e.resume:
        e.corpus, command = "bundled", f"{command}, rehearsed"
        e.model = replace(e.model, vocab_size=300, **TINY)
        e.training = replace(e.training, updates=2, batch_tokens=300, save_every=1)
    e.device = str(device)
    run_experiment(e, command, count=2 if small else 200)
    for average in (1, None):
        score_run(folder, device, average, most=4 if small else None)
    return record(folder)


# 2: the paper's sizes, at its batch

def random_pairs(count, vocab_size, seed=2017):
    """Encoded pairs of random ids with lengths like those of WMT 2014 cut into 37,000 types.

    Log-normal, 29 tokens on average, 3 to 150; a target is 0.7 to 1.5 times as long as its source.
    """
    chance = np.random.RandomState(seed)
    source = chance.lognormal(np.log(24), 0.6, count).clip(3, 150)
    target = (source * chance.lognormal(0.03, 0.2, count).clip(0.7, 1.5)).clip(3, 150)

    def ids(n):
        return chance.randint(3, vocab_size, int(n)).tolist()

    return [([*ids(s), 2], [1, *ids(t), 2]) for s, t in zip(source, target)]


def measured(c, training, encoded, device):
    """Train a fresh model without saving; what its updates took, the first quarter left out as warm-up."""
    torch.manual_seed(training.seed)
    log = train(Transformer(c, FAST).to(device), encoded, training)
    first, last = log[0], log[-1]
    updates, seconds = last["update"] - first["update"], max(1e-9, last["seconds"] - first["seconds"])
    return {"seconds_per_update": round(seconds / updates, 6),
            "tokens_per_second": round((last["tokens"] - first["tokens"]) / seconds),
            "tokens_per_update": round((last["tokens"] - first["tokens"]) / updates),
            "utilisation": round(sum(row["utilisation"] for row in log[1:]) / len(log[1:]), 3),
            "skipped": last["skipped"], "loss": [round(row["loss"], 3) for row in log]}


def throughput(name, small, device):
    """Speed of the paper's base or big at 25,000 tokens a side an update; in parts where memory does not hold that."""
    c, training = recipe("wmt14", name).values()
    if small:
        c, training = replace(c, vocab_size=300, **TINY), replace(training, batch_tokens=500)
    updates = 8 if small else 200
    encoded = random_pairs(200 if small else 40_000, c.vocab_size)
    for parts in (1, 2, 4, 8, 16):
        here = replace(training, updates=updates, save_every=updates // 4, accumulate=parts,
                       batch_tokens=training.batch_tokens // parts)
        try:
            speed = measured(c, here, encoded, device)
            break
        except torch.cuda.OutOfMemoryError:
            print(f"{here.batch_tokens:,} tokens do not fit: trying half as many, twice an update", flush=True)
        gc.collect()  # here, where the exception is gone and holds nothing any more
        torch.cuda.empty_cache()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
    else:
        raise ValueError(f"{name} does not fit into this GPU's memory")
    hours = PAPER[name] * speed["seconds_per_update"] / 3600
    return {"what": "speed of training on random token ids, lengths drawn like WMT's; not a translation run",
            "command": f"python tools/gpu.py {name}", "commit": git_commit(), "hardware": hardware_in_words(device),
            "matmul_teraflops": round(matmul_rate(device, choose_precision(device)) / 1e12, 2),
            "parameters": parameters_of(c), "model": asdict(c), "updates": updates, "batch_tokens": here.batch_tokens,
            "accumulate": parts, **speed,
            "peak_memory_gib": round(peak_memory(device), 2), "updates_of_the_paper": PAPER[name],
            "hours_of_the_paper": round(hours, 2), "dollars_an_hour_assumed": DOLLARS,
            "dollars": round(hours * DOLLARS, 2)}


# 4 and 5: the benchmark, and Table 3

def bench(name, small, device):
    """The figures of a part of `transformer bench`, as a dict."""
    return run_bench(Bench(parts=BENCH[name], quick=small, device=str(device)), f"python tools/gpu.py {name}")


def table_3(folder, small, device):
    """Train and score the rows of Table 3 that have no result yet in a folder; results.json as a dict."""
    base, rows, seeds = base_of("bundled" if small else "multi30k", large=not small), choose(), (1, 2, 3)
    if small:
        base = replace(base, model=replace(base.model, vocab_size=300, **TINY),
                       training=replace(base.training, updates=2, batch_tokens=300, save_every=1))
        rows, seeds = choose(("E",)), (1,)
    found = run_variations(base, rows, seeds, folder, devices_for(str(device)), "python tools/gpu.py variations")
    if found["failed"]:
        raise ValueError(f"without a result: {', '.join(run['row'] for run in found['failed'])}; the reasons stand in "
                         f"{folder / 'results.json'}, and the same command tries them again")
    return found


# 6: on paper

def short(number):
    """A number cut to three digits."""
    return float(f"{number:.3g}")


def estimate():
    """Hours and dollars of the paper's runs on several GPUs, from the count of FLOPs alone. Marked as an estimate."""
    rows = []
    for name, updates in PAPER.items():
        c, training = recipe("wmt14", name).values()
        flops = training.batch_tokens / 30 * training_flops(c, 30, 30)
        for hardware, peak, dollars in GPUS:
            seconds = flops / (peak * UTILISATION)
            hours = updates * seconds / 3600
            rows.append({"model": name, "hardware": hardware, "updates": updates, "flops": short(flops * updates),
                         "seconds_per_update": short(seconds), "hours": short(hours),
                         "dollars": dollars and short(hours * dollars)})
    return {"what": "an estimate from the count of FLOPs, not a measurement", "command": "python tools/gpu.py estimate",
            "commit": git_commit(), "estimate": True, "assumptions": ASSUMPTIONS, "rows": rows}


ASSUMPTIONS = [
    "a third of each GPU's data-sheet rate of dense products reaches the model (published speeds come to: NVIDIA's "
    "big 34% on one A100 and one V100, 29% on eight A100; the paper's base 31% and big 42% of eight P100)",
    "25,000 source and 25,000 target tokens an update, none of them padding, in sentences of 30 tokens",
    "several GPUs lose nothing by waiting for each other", "validation and checkpoints cost nothing",
    "dollars an hour for one GPU: H100 2.50, A100 1.50, T4 0.35, roughly 2025's prices for renting"]


# All of them

def stage(name, folder, out, small):
    """Run one stage in this process and write its result."""
    started, device = time.monotonic(), choose_device("cpu" if small else "auto")
    if name == "estimate":
        result = estimate()
    elif name == "variations":
        result = table_3(folder / f"gpu-{name}", small, device)
    elif name in BENCH:
        result = bench(name, small, device)
    else:
        allow_tf32()
        result = (throughput(name, small, device) if name in PAPER
                  else train_and_score(name, folder / f"gpu-{name}", small, device))
    write_json(result_file(name, out), result)
    print(f"{name}: {time.monotonic() - started:.0f} s, {result_file(name, out).name}", flush=True)


def in_a_process(name, arguments):
    """Run one stage in a process of its own, for so many minutes; True where it came to its end."""
    command = [sys.executable, __file__, name, "--here", "--folder", str(arguments.folder), "--out", str(arguments.out)]
    process = subprocess.Popen([*command, *(["--small"] if arguments.small else [])])
    try:
        done = process.wait(timeout=60 * arguments.minutes) == 0
    except subprocess.TimeoutExpired:
        process.terminate()  # training saves and ends
        process.wait()
        done = False
    if not done:
        print(f"{name}: not finished; what was trained is kept, run the command again", flush=True)
    return done


def run_stages(names, arguments):
    """Run stages in processes; names of those that did not come to their end."""
    many = [name for name in names if name.startswith("multi30k")] if arguments.jobs > 1 else []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        done = dict(zip(many, pool.map(lambda name: in_a_process(name, arguments), many)))
    done |= {name: in_a_process(name, arguments) for name in names if name not in many}
    return [name for name in names if not done[name]]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="stage", help=", ".join(STAGES))
    parser.add_argument("--list", action="store_true", help="only say what there is")
    parser.add_argument("--small", action="store_true", help="rehearse with tiny models on the CPU")
    parser.add_argument("--minutes", type=float, default=9.5, help="limit of a stage")
    parser.add_argument("--jobs", type=int, default=1, help="models of Multi30k trained side by side")
    parser.add_argument("--folder", type=Path, default=ROOT / "runs", help="where runs are kept while they train")
    parser.add_argument("--out", type=Path, default=ROOT / "data" / "runs", help="where the results go")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # one stage, in this process
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in STAGES:
            parser.error(f"there is no stage {name}: choose from {', '.join(STAGES)}")
    return arguments


def main():
    arguments = parse()
    names = arguments.names or STAGES
    if arguments.here:
        try:
            stage(names[0], arguments.folder, arguments.out, arguments.small)
        except (Interrupted, ValueError, OSError) as problem:
            sys.exit(f"{names[0]}: {problem}")
        return
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.small and arguments.out == ROOT / "data" / "runs":
            arguments.folder, arguments.out = Path(scratch, "runs"), Path(scratch, "results")
        there = {name: result_file(name, arguments.out).is_file() for name in names}
        if arguments.list:
            print("\n".join(f"{'done' if there[name] else 'to do':6} {name}" for name in names))
            return
        todo = [name for name in names if arguments.names or not there[name]]
        if not arguments.small and todo != ["estimate"] and choose_device().type == "cpu":
            old = f" (this torch wants CUDA {torch.version.cuda}: is the driver too old?)" if torch.version.cuda else ""
            sys.exit(f"there is no GPU here{old}: --small rehearses everything on a CPU, "
                     "and the stage estimate needs none")
        left = run_stages(todo, arguments)
        print(f"{len(todo) - len(left)} of {len(todo)} stages done" + (f"; to do: {', '.join(left)}" if left else ""))
        sys.exit(bool(left))


if __name__ == "__main__":
    main()
