"""One runner for all long experiments: each job in a process of its own; it resumes, scores, and
keeps a row a run.

A job is a name, what is known of it beforehand (labels, settings), and a function that does it.
Jobs know nothing of each other, so any number can go on side by side: one for each GPU; on a CPU
one, or as many as there are workers, with one thread each. Each leaves `result.json` in its folder,
be it its rows or the reason why there are none. That a run diverged is a result, too; what failed
for another reason is tried again by the same command.
"""

import json
import multiprocessing
import os
import re
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import connection
from pathlib import Path
from threading import Thread

import torch
import tyro

from transformer.core.checks import Diverged
from transformer.core.files import git_commit, prepare_folder, write_json
from transformer.core.interrupt import Interrupted, catch_interrupt
from transformer.core.records import flatten, read_rows, write_rows
from transformer.corpora.tokenizer import Tokenizer
from transformer.experiments.choosing import best_rates
from transformer.experiments.rows import public, row_of
from transformer.hardware import choose_device
from transformer.runs.experiment import Experiment, fitted
from transformer.runs.folder import hardware_in_words
from transformer.runs.run import Task, run_experiment

YOUNGER = {"training.packed": False}  # settings that some records were made without


@dataclass(frozen=True)
class Job:
    """A piece of work: its folder's name, do(folder, device) -> figures (a dict, or a list of
    them), and what is known.
    """

    name: str
    do: Callable
    known: dict = field(
        default_factory=dict
    )  # flat: what stands in its rows besides the figures
    command: str = ""  # the words that started it


def slug(row: str) -> str:
    """A row's name as a part of a folder's name."""
    return re.sub("[^a-z0-9]+", "-", row.lower())


def settings_of(e: Experiment) -> dict:
    """The settings of an experiment as columns: "corpus", "model.N", "training.warmup", ..."""
    corpus = Path(e.source_file).name if e.source_file else e.corpus
    training = asdict(e.training)
    seed = training.pop("seed")
    return flatten(
        {"corpus": corpus, "seed": seed, "model": asdict(e.model), "training": training}
    )


# One run of training


def train_and_score(
    e: Experiment,
    score: Callable,
    command: str,
    folder: Path,
    device: str,
    task: Task = Task(),
) -> dict:
    """Train an experiment in a folder, or go on with it there, and score it; its row.

    score(e, device) -> {split: figures}. Raises ValueError, OSError or Interrupted as
    `run_experiment` does.
    """
    began, checkpoint = time.process_time(), folder / "checkpoint.safetensors"
    e = replace(e, folder=folder, device=device, resume=checkpoint.is_file())
    if e.resume:
        e = fitted(e, Tokenizer.load(folder / "tokenizer.json"))
    elif not (folder / "model.safetensors").is_file():
        remove_weights(folder)  # of a run that was killed before its first checkpoint
    with redirect_stdout(None):
        e = run_experiment(e, command, task=task)
    trained = time.monotonic()
    row = row_of(folder, score(e, choose_device(device)))
    row["minutes"] = round(row["minutes"] + (time.monotonic() - trained) / 60, 2)
    cpu = None if e.resume else round((time.process_time() - began) / 60, 2)
    return {"minutes.cpu": cpu, **row}


def remove_weights(folder):
    """Remove the weights that a run kept on its way."""
    for path in folder.glob("weights/*.safetensors"):
        path.unlink()


# Processes


def stop_with_parent():
    """Let this process get a SIGTERM when the one that began it is gone; Ctrl-C reaches the parent
    alone, which passes it on.
    """
    if parent := multiprocessing.parent_process():
        if hasattr(os, "setpgrp"):
            os.setpgrp()
        Thread(target=stop_after, args=(parent,), daemon=True).start()


def stop_after(parent):
    """Wait for the end of a process, then stop this one."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def work(job: Job, folder: Path, device: str):
    """A worker process: one job in its folder, and its result.json. What went wrong stands there,
    too; a stop leaves none.
    """
    stop_with_parent()
    if device == "cpu":
        torch.set_num_threads(1)
    started = time.monotonic()
    try:
        found = job.do(folder=folder, device=device)
        rows = found if isinstance(found, list) else [found]
    except Interrupted:
        return
    except (ValueError, OSError, RuntimeError) as error:
        what = "diverged" if isinstance(error, Diverged) else "failed"
        rows = [{what: " ".join(str(error).split())}]
    about = {
        "name": job.name,
        "command": public(job.command),
        "commit": git_commit(),
        "hardware": hardware_in_words(choose_device(device)),
        "minutes": round((time.monotonic() - started) / 60, 2),
        **job.known,
    }
    write_json(
        folder / "result.json", [about | flatten(row) | job.known for row in rows]
    )
    if "failed" not in rows[0]:  # what was needed only to go on
        (folder / "checkpoint.safetensors").unlink(missing_ok=True)
        remove_weights(folder)


def begun(job: Job, folder: Path, device: str):
    """A new process that does a job."""
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=work, args=(job, folder, device))
    process.start()
    return process


def in_processes(
    jobs: list[Job], folder: Path, devices: list[str], minutes: float | None = None
) -> Iterator:
    """Do jobs, one process for each of devices at a time; yield (job, exit status) when its process
    has ended.

    Raises Interrupted after Ctrl-C, SIGTERM, or so many minutes, when all processes have saved and
    ended.
    """
    waiting, free, running = list(jobs), list(devices), {}
    end = time.monotonic() + 60 * (minutes or float("inf"))
    with catch_interrupt() as notes:
        try:
            while running or waiting and not notes:
                while waiting and free and not notes:
                    job, device = waiting.pop(0), free.pop(0)
                    running[begun(job, folder / job.name, device)] = job, device
                connection.wait([process.sentinel for process in running], timeout=1)
                if time.monotonic() > end:
                    notes.append("no time left")
                if notes:
                    stop(running)
                for process in [each for each in running if not each.is_alive()]:
                    job, device = running.pop(process)
                    free.append(device)
                    yield job, process.exitcode
        finally:
            stop(running)
    if notes:
        raise Interrupted(
            "stopped, all that was done is saved; the same command goes on"
        )


def stop(processes):
    """SIGTERM to each process, which saves, and wait for them."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()


def devices_for(device: str = "auto", workers: int | None = None) -> list[str]:
    """The device of each process that runs at the same time: all GPUs, or a CPU; ValueError for a
    device that is not there.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    found = choose_device(device)
    if found.type == "cuda" and device in ("auto", "cuda"):
        names = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    else:
        names = [str(found)]
    return [names[number % len(names)] for number in range(workers or len(names))]


# All jobs, and the file that keeps their rows


def finished(job: Job, folder: Path, kept: list[dict]) -> list[dict]:
    """The rows of a job in its folder, or those kept of it; none where it was not done, or failed.

    ValueError where they are those of a job of that name with other settings.
    """
    path = folder / job.name / "result.json"
    rows = json.loads(path.read_text(encoding="utf8")) if path.is_file() else []
    rows = [row for row in rows if "failed" not in row] or kept
    for row in rows:
        differ = [
            f"{name} is {row.get(name)} there and {value} here"
            for name, value in job.known.items()
            if row.get(name, YOUNGER.get(name)) != value
            and name != "training.precision"  # "hardware" tells it
        ]
        if differ:
            raise ValueError(
                f"{job.name} was made with other settings ({', '.join(differ)}): "
                "name another --folder or --record"
            )
    return rows


def keep(
    jobs: list[Job], folder: Path, record: Path | str | None
) -> dict[str, list[dict]]:
    """Write the rows of finished jobs into the file record beside what it holds of others; {job's
    name: its rows}.
    """
    kept = defaultdict(list)
    for row in read_rows(record) if record else []:
        kept[row["name"]].append(row)
    done = {
        job.name: rows
        for job in jobs
        if (rows := finished(job, folder, kept[job.name]))
    }
    if record is not None and done:
        write_rows(record, [row for rows in (kept | done).values() for row in rows])
    return done


def result_of(path: Path, status: int | None) -> list[dict] | None:
    """What a job's process has left; None where it was stopped before its end."""
    if path.is_file():
        return json.loads(path.read_text(encoding="utf8"))
    if status in (0, -signal.SIGTERM):
        return None
    return [{"failed": f"its process ended with status {status}"}]


def run_jobs(
    jobs: list[Job],
    folder: Path,
    devices: list[str],
    record: Path | str | None = None,
    minutes: float | None = None,
    tell: Callable = print,
) -> list[dict]:
    """Do all jobs that have no rows yet, in folder or in the file record (a path, or a name
    in data/runs); the rows of all.

    The record is written after each job, and may grow meanwhile. tell(text) gets a line a job.
    Raises Interrupted after Ctrl-C or so many minutes, and ValueError at the end where a job has
    failed, with the reasons.
    """
    jobs = list({job.name: job for job in jobs}.values())
    prepare_folder(folder)
    done, failed = keep(jobs, folder, record), {}
    waiting = [job for job in jobs if job.name not in done]
    finished = f"{len(jobs)} runs, {len(done)} of them finished"
    tell(f"{finished}; at the same time: {len(devices)}")
    for job in waiting:
        (folder / job.name / "result.json").unlink(missing_ok=True)
    for job, status in in_processes(waiting, folder, devices, minutes):
        rows = result_of(folder / job.name / "result.json", status)
        if rows is None:
            continue
        done = keep(jobs, folder, record)
        if "failed" in rows[0]:
            failed[job.name] = rows[0]["failed"]
        tell(line_of(job, rows[0]))
    if failed:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
        raise ValueError(
            f"without a result: {reasons}. The same command tries them again"
        )
    return [row for rows in done.values() for row in rows]


def sweep(
    job_of: Callable,
    families: Collection[str],
    rates: Iterable[float],
    seeds: tuple[int, ...],
    score: Callable,
    run: Callable,
) -> None:
    """Every family with every rate and the first seed, then with its best rate and the others.

    job_of(family, rate, seed) makes a Job, and run(jobs) does some and returns their rows.
    """
    rows = run(
        [job_of(family, rate, seeds[0]) for rate in rates for family in families]
    )
    best = best_rates(rows, score)
    run(
        [
            job_of(family, best[family], seed)
            for seed in seeds[1:]
            for family in families
            if family in best
        ]
    )


def line_of(job: Job, row: dict) -> str:
    """A finished job in a line: its name, its minutes and scores, or what went wrong."""
    wrong = [f"{name}: {row[name]}" for name in ("failed", "diverged") if name in row]
    figures = re.compile(r"minutes|(?!log\b).*\.(bleu|perplexity|f1)")
    shown = [f"{name} {row[name]}" for name in row if figures.fullmatch(name)]
    return f"{job.name:34} {', '.join(wrong or shown)}"


def run_command(main: Callable) -> None:
    """Call main with the options of the command line; a mistake, or a stop, gives one sentence and
    exit status 1.
    """
    try:
        tyro.cli(main)
    except (Interrupted, OSError, ValueError) as error:
        sys.exit(str(error))
