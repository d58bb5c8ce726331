"""What can a state remember? Copying, recall, characters and seconds of layers with a state beside
attention, for notebook 24.

    python -m transformer.experiments.state_space --folder runs/state_space
    python -m transformer.experiments.state_space --part characters --folder runs/state_space
    python -m transformer.experiments.state_space --part seconds --folder runs/seconds

Families have two layers each and equal training; the rate of each is the best of those tried with
the first seed. What was expected was written down before the runs, in data/runs/state_space.md.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from transformer.complexity import make_layer
from transformer.core.weights import count_parameters
from transformer.experiments import characters
from transformer.experiments.rows import times_and_bytes
from transformer.experiments.runner import (
    Job,
    run_command,
    run_jobs,
    settings_of,
    slug,
    sweep,
)
from transformer.fast import FAST
from transformer.fast.attention import MultiHeadAttention
from transformer.fast.model import Parts
from transformer.language import LanguageConfig, LanguageModel
from transformer.state_space import FixedLayer, SelectiveLayer
from transformer.teaching.measuring import measure
from transformer.teaching.memory_tasks import copying, learn, recall, share_right

COMMAND = "python -m transformer.experiments.state_space"
LAYERS = {
    "attention": FAST.attention,
    "selective": SelectiveLayer,
    "fixed": FixedLayer,
    "no gate": partial(FixedLayer, gate=False),
}
SIZES = LanguageConfig(
    64, d_model=64, d_ff=128, N=2, h=4, P_drop=0.0, max_positions=160
)
UPDATES, ROWS = {"copying": 2500, "recall": 1500, "long copying": 20_000}, 16
SHORT = 0.01, 0.003, 0.02
PEAKS = {"copying": SHORT, "recall": SHORT, "long copying": (0.005, 0.003)}
PAIRS = (4, 8, 16, 32)  # of a sequence, when recall is tested
# task -> {family: (its layers, numbers that a channel keeps)}
FAMILIES = {
    "copying": {
        "attention": (("attention",) * 2, None),
        "selective": (("selective",) * 2, 16),
        "fixed": (("fixed",) * 2, 16),
    },
    "recall": {
        "attention": (("attention",) * 2, None),
        **{f"selective, {N}": (("selective",) * 2, N) for N in (4, 16, 64)},
        "one of each": (("selective", "attention"), 16),
    },
    "long copying": {
        "selective": (("selective",) * 2, 16),
        "fixed": (("fixed",) * 2, 16),
        "fixed, no gate": (("no gate",) * 2, 16),
    },
}


# Copying and recall


def in_turn(layers: tuple[str, ...]) -> Parts:
    """Parts of one model, whose layers get these kinds of attention in order."""
    kinds = cycle(layers)
    return Parts(
        attention=lambda *sizes, **switches: LAYERS[next(kinds)](*sizes, **switches)
    )


def memory_model(layers: tuple[str, ...], N: int | None, seed: int) -> LanguageModel:
    """Two layers; attention has heads of 16, a layer with a state N numbers a channel.

    Without a gate the network is wider, so that the parameters are as many.
    """
    torch.manual_seed(seed)
    if "attention" in layers:
        N = 16
    sizes = replace(SIZES, d_ff=160) if "no gate" in layers else SIZES
    return LanguageModel(replace(sizes, d_k=N), in_turn(layers))


def remember(
    task: str, family: str, peak: float, seed: int, folder: Path, device: str
) -> dict:
    """Train a family on a task; what it gets right, by the number of pairs where there are any."""
    model = memory_model(*FAMILIES[task][family], seed).to(device)
    what = partial(recall, pairs=16) if task == "recall" else copying
    losses = learn(model, what, UPDATES[task], peak, ROWS, seed)
    tests = {f"{n} pairs": partial(recall, pairs=n) for n in PAIRS}
    if what is copying:
        tests = {"right": copying, "unspread": partial(copying, spread=False)}
    return {
        "validation": round(share_right(model, what, seed=1_000), 4),
        **{
            name: round(share_right(model, test, seed=2_000), 4)
            for name, test in tests.items()
        },
        "loss": round(sum(losses[-50:]) / 50, 4),
        "parameters": count_parameters(model),
    }


def memory_job(task: str, family: str, peak: float, seed: int) -> Job:
    """A family with a rate and a seed."""
    known = {
        "task": task,
        "family": family,
        "rate": peak,
        "seed": seed,
        "updates": UPDATES[task],
    }
    name = f"{slug(task)}-{slug(family)}-{peak}-{seed}"
    return Job(name, partial(remember, task, family, peak, seed), known, COMMAND)


def memory(seeds: tuple[int, ...], run: Callable) -> None:
    """Sweep with the first seed, then all seeds with the best rate."""
    for task, families in FAMILIES.items():
        sweep(
            partial(memory_job, task),
            families,
            PEAKS[task],
            seeds,
            lambda row: row["validation"],
            run,
        )


# Characters

LONG = replace(characters.MODEL, max_positions=4 * characters.WINDOW)


def character_model(family: str, seed: int) -> LanguageModel:
    """Notebook 21's model, or its like with as many parameters within 5%."""
    torch.manual_seed(seed)
    if family == "attention":
        return LanguageModel(LONG, FAST)
    return LanguageModel(
        replace(LONG, d_k=16, d_v=40), replace(FAST, attention=SelectiveLayer)
    )


def read_articles(
    family: str, s: characters.Setting, seed: int, folder: Path, device: str
) -> dict:
    """Train on windows of 256 bytes; bits a character in those and in windows of 1,024."""
    model = character_model(family, seed)
    found = characters.trained(model, s, seed, folder)
    test = characters.text_of("test")
    return {
        **found,
        "bits.long": characters.character_bits(model, test, LONG.max_positions),
    }


def character_job(updates: int, family: str, peak: float, seed: int) -> Job:
    """A family with a rate and a seed."""
    trained_on = replace(LONG, max_positions=LONG.max_positions // 4)
    s = characters.Setting(updates=updates, peak=peak, model=trained_on)
    e = characters.experiment_of(s, seed)
    known = {
        "task": "characters",
        "family": family,
        "rate": peak,
        **settings_of(replace(e, model=LONG)),
    }
    return Job(
        f"characters-{family}-{peak}-{seed}",
        partial(read_articles, family, s, seed),
        known,
        f"{COMMAND} --part characters",
    )


def articles(seeds: tuple[int, ...], run: Callable, updates: int = 2000) -> None:
    """Both families: three rates with the first seed, then all seeds with the best."""
    sweep(
        partial(character_job, updates),
        ("attention", "selective"),
        (0.003, 0.0015, 0.006),
        seeds,
        lambda row: -row["validation_bits"],
        run,
    )


# Seconds


class OfItself(nn.Module):
    """A layer with attention's interface on one sequence."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x, x, x)


def causal_kernel(q, k, v, mask=None) -> tuple:
    """Torch's kernel, which leaves out what comes later."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True), None


def layers_to_time(d: int = 512, h: int = 8) -> dict[str, nn.Module]:
    """The layers whose seconds are compared: notebook 09's fused attention comes first."""
    layers = {
        "attention, fused, causal": MultiHeadAttention(d, h, attend=causal_kernel),
        "one decay a head": SelectiveLayer(d, h),
        "one decay a head, N = 64": SelectiveLayer(d, h, d_k=64),
        "16 decays a channel": SelectiveLayer(d, h, one_decay=False),
        "fixed": FixedLayer(d, h),
    }
    return {
        "attention, fused": make_layer("self-attention, fused", d, h),
        **{name: OfItself(layer) for name, layer in layers.items()},
    }


def timed(largest: int, passes: int, folder: Path, device: str) -> list[dict]:
    """A row a layer and size from 256 on: median seconds of the thread in turns, and bytes."""
    torch.manual_seed(1)
    sizes = [256 * 2**i for i in range((largest // 256).bit_length())]
    return times_and_bytes(measure(layers_to_time(), sizes, 512, passes, 0.5), sizes)


def seconds(run: Callable, largest: int = 4096, passes: int = 3) -> None:
    """Time the layers in turns, forward and in training."""
    known = {"task": "seconds", "d": 512, "h": 8, "passes": passes}
    run(
        [
            Job(
                "seconds",
                partial(timed, largest, passes),
                known,
                f"{COMMAND} --part seconds",
            )
        ]
    )


def main(
    part: Literal["memory", "characters", "seconds"] = "memory",
    seeds: tuple[int, ...] = (1, 2, 3),
    folder: Path = Path("runs/state_space"),
    record: Path | None = None,
    minutes: float | None = None,
) -> None:
    """Run a part on one thread; each has its own record.

    Args:
        part: copying and recall, characters of articles, or seconds of a layer
        seeds: of initial weights and what is read; the first sweeps the rates
        folder: where the runs are kept while they go on; seconds are measured anew in a new one
        record: the file of results (data/runs/state_space-<part>.json where not given)
        minutes: stop after so many; the same command goes on
    """
    run = partial(
        run_jobs,
        folder=folder,
        devices=["cpu"],
        record=record or f"state_space-{part}",
        minutes=minutes,
    )
    if part == "seconds":
        seconds(run)
    else:
        {"memory": memory, "characters": articles}[part](seeds, run)


if __name__ == "__main__":
    run_command(main)
