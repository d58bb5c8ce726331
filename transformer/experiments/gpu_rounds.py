"""Training in turns: this package's paths, torch's layer, Marian; and where the time of an update
goes."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from transformer.bench.dispatch import dispatched
from transformer.bench.harness import rows_of
from transformer.bench.peers import available, make_systems
from transformer.data import collate
from transformer.experiments.gpu_paths import (
    GpuPath,
    compiled_objective,
    passed_paths,
    random_pairs,
)
from transformer.fast import FAST
from transformer.fast.loss import ChunkedLoss
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.packing import pack
from transformer.fast.training import fused_adam
from transformer.hardware import allow_tf32, choose_precision, loss_scaler
from transformer.runs.batches import epoch_packs, packed_layout, token_batches
from transformer.runs.recipes import recipe
from transformer.runs.update import Objective, update_weights
from transformer.speed import SEED, in_turns, seconds_of

# corpus, preset; median length of a source, and the longest
MODELS = {
    "base": ("wmt14", "base", 24, 150),
    "big": ("wmt14", "big", 24, 150),
    "multi30k": ("multi30k", None, 13, 40),
    "tatoeba": ("tatoeba", None, 9, 40),
}
UPDATES = 10  # of padded batches in a round
ROUNDS = 3
TINY = dict(d_model=16, d_ff=32, N=1, h=2)
DEAREST = 20  # kernels


class Ours:
    """This package's update by a path, the way a training makes it: no number is read."""

    def __init__(self, c: TransformerConfig, path: GpuPath, device: torch.device):
        torch.manual_seed(SEED)
        self.path = path
        self.model = Transformer(c, FAST).to(device)
        objective = Objective(self.model, ChunkedLoss(), path.precision)
        scaler = loss_scaler(device, path.precision)
        self.method: Any = (
            compiled_objective(objective, path, device),
            fused_adam(self.model),
            scaler,
        )

    def train(self, pairs: list, batch_tokens: int, layout: Any) -> None:
        """Updates on all the pairs, each on one batch."""
        if self.path.packed is None:
            for rows in token_batches(pairs, batch_tokens, SEED):
                self.update(collate([pairs[i] for i in rows]), pairs, rows)
            return
        for rows in epoch_packs(pairs, layout, SEED):
            batch = pack([pairs[i] for i in rows], layout, 0, self.path.packed)
            self.update(batch, pairs, rows)

    def update(self, batch: Any, pairs: list, rows: list) -> None:
        """One update on a batch of these pairs."""
        tokens = sum(len(pairs[i][1]) - 1 for i in rows)
        update_weights(*self.method, [(SEED, batch)], tokens, 1e-4)


class Peer:
    """The update of one of `transformer bench`'s systems on the same pairs."""

    def __init__(
        self, name: str, c: TransformerConfig, device: torch.device, compiled: bool
    ):
        systems = make_systems(c, [name], device, compiled and device.type != "cpu")
        self.system = systems[name].prepare(choose_precision(device))
        self.device = device

    def train(self, pairs: list, batch_tokens: int, layout: Any) -> None:
        """Updates on all the pairs, each on one batch."""
        for rows in token_batches(pairs, batch_tokens, SEED):
            batch = collate([pairs[i] for i in rows])
            self.system.update(batch.to(self.device))


def systems_of(
    c: TransformerConfig, paths: list[GpuPath], device: torch.device
) -> dict[str, Callable]:
    """{name: what makes the system}: this package's plain form and its paths, torch's layer with
    fused Adam, compiled, too, and Marian where transformers is installed."""
    makers: dict[str, Callable] = {
        path.name: lambda path=path: Ours(c, path, device) for path in paths
    }
    peers = [("plain", "plain", False), ("torch", "tuned", False)]
    peers += [("torch compiled", "tuned", True)]
    if "marian" in available():
        peers += [("marian", "marian", False)]
    for name, kind, compiled in peers:
        makers[name] = lambda kind=kind, compiled=compiled: Peer(
            kind, c, device, compiled
        )
    return makers


def tried(
    makers: dict[str, Callable], train: Callable, device: torch.device
) -> tuple[dict[str, Any], list[dict]]:
    """The systems that get through a first round, which compiles, and rows of its memory; of the
    others, why not."""
    made: dict[str, Any] = {}
    rows = []
    for name, make in makers.items():
        gpu = device.type == "cuda"
        if gpu:
            torch.cuda.reset_peak_memory_stats(device)
            before = torch.cuda.memory_allocated(device)
        try:
            system = make()
            seconds, _ = seconds_of(partial(train, system), device)
        except (RuntimeError, NotImplementedError) as error:
            rows.append({"system": name, "reason": str(error)[:300]})
            if gpu:
                torch.cuda.empty_cache()
            continue
        made[name] = system
        row = {"system": name, "seconds_of_first_round": round(seconds, 2)}
        if gpu:
            used = torch.cuda.max_memory_allocated(device) - before
            row["memory_gib"] = round(used / 2**30, 3)
        rows.append(row)
    return made, rows


def sizes_of(name: str, small: bool) -> tuple[TransformerConfig, int, int, int]:
    """The model of a stage, tokens a side of its batches, median and longest source."""
    corpus, preset, middle, longest = MODELS[name]
    settings = recipe(corpus, preset)
    c, batch_tokens = settings["model"], settings["training"].batch_tokens
    if small:
        return replace(c, vocab_size=300, **TINY), 300, min(middle, 12), 40
    return c, batch_tokens, middle, longest


def training_rounds(
    name: str, small: bool, check: Path, folder: Path, device: str
) -> list[dict]:
    """Target tokens a second in training the model of a recipe, all systems in turns.

    check: the record of `check_paths`; a path that it does not have, or has as wrong, is left out.
    """
    where = torch.device(device)
    paths = passed_paths(check, where)
    allow_tf32()
    c, batch_tokens, middle, longest = sizes_of(name, small)
    updates = 2 if small else UPDATES
    count = int(updates * batch_tokens / (1.2 * middle))
    rounds = 1 if small else ROUNDS
    data = [
        random_pairs(count, c.vocab_size, seed, middle, longest)
        for seed in range(rounds + 1)
    ]
    layout = packed_layout(sum(data, []), batch_tokens)

    def work(system: Any) -> Callable[[int], int]:
        def train(number: int) -> int:
            pairs = data[number]
            system.train(pairs, batch_tokens, layout)
            return sum(len(target) - 1 for _, target in pairs)

        return train

    makers = systems_of(c, paths, where)
    made, first = tried(makers, lambda system: work(system)(-1), where)
    works = {(key, "highest"): work(system) for key, system in made.items()}
    speeds = {row["system"]: row for row in rows_of(in_turns(works, rounds, where))}
    shared = {"model": name, "batch_tokens": batch_tokens, "pairs_a_round": count}
    return [{**shared, **row, **speeds.get(row["system"], {})} for row in first]


def dearest_kernels(small: bool, check: Path, folder: Path, device: str) -> list[dict]:
    """Of one update of base by each path that passed: what it asks of the device, and the kernels
    that take most of its time."""
    where = torch.device(device)
    paths = passed_paths(check, where)
    allow_tf32()
    c, batch_tokens, middle, longest = sizes_of("base", small)
    count = int(batch_tokens / (1.3 * middle))
    pairs = random_pairs(count, c.vocab_size, 0, middle, longest)
    layout = packed_layout(pairs, 2 * batch_tokens)
    rows = []
    for path in paths:
        system = Ours(c, path, where)

        def once(system: Ours = system) -> None:
            system.train(pairs, batch_tokens, layout)

        once()  # compiles, and makes Adam's moments
        asked = {} if path.compiled else dispatched(once).totals()
        rows.append({"path": path.name, **asked})
        rows += [{"path": path.name, **row} for row in kernels_of(once, where)]
    return rows


def kernels_of(work: Callable[[], None], device: torch.device) -> list[dict]:
    """The kernels that take most of a work's time: calls, microseconds, and their share."""
    gpu = device.type == "cuda"
    kinds = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * gpu
    with profile(activities=kinds) as profiled:
        seconds_of(work, device)
    side = "self_device_time_total" if gpu else "self_cpu_time_total"

    def time_of(event: Any) -> float:
        return getattr(event, side, getattr(event, "self_cuda_time_total", 0.0))

    events = profiled.key_averages()
    total = sum(map(time_of, events)) or 1.0
    dearest = sorted(events, key=time_of, reverse=True)[:DEAREST]
    return [
        {
            "kernel": event.key[:120],
            "calls": event.count,
            "microseconds": round(time_of(event)),
            "share": round(time_of(event) / total, 4),
        }
        for event in dearest
    ]
