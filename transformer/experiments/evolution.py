"""Could the architecture be evolved, with its running time in the price? Small models of
characters, for notebook 22: an evolutionary search beside random search.

    python -m transformer.experiments.evolution --folder runs/evolution

A candidate has two layers with a radius each, heads, and a width of its networks. Both searches may
train the same number of candidates, briefly, on the text of `characters`. What was expected was
written down before the runs, in data/runs/evolution.md. No text is drawn.
"""

import random
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from transformer.core.files import read_json, write_json
from transformer.experiments.characters import (
    MODEL,
    TRAINING,
    bytes_of,
    character_bits,
    text_of,
    windows,
)
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.fast.attention import MultiHeadAttention
from transformer.fast.model import Parts
from transformer.fast.training import fast_training
from transformer.language import LanguageModel
from transformer.optimizer import peak_rate
from transformer.runs.training import train
from transformer.sparse import Pattern, evolve, sparse_attention

RADII, HEADS, WIDTHS = (2, 4, 8, 16, 32, 64, 128), (1, 2, 4, 8), (32, 64, 128, 256, 512)
SIZES = replace(MODEL, d_model=64, N=2)
RATE, WARMUP, UPDATES, ROWS = 0.006, 30, 150, 4  # ROWS windows a batch
WEIGHT = 0.5  # bits that a candidate pays for the FLOPs of the largest one
POPULATION, TRIALS, FRESH = (
    10,
    40,
    3,
)  # FRESH: seeds with which a winner is trained again
READ = 20_000  # characters that are scored
COMMAND = "python -m transformer.experiments.evolution"


@dataclass(frozen=True, order=True)
class Candidate:
    """Two radii, heads, and d_ff."""

    first: int
    second: int
    h: int
    d_ff: int


CHOICES = {"first": RADII, "second": RADII, "h": HEADS, "d_ff": WIDTHS}


def draw(chance: random.Random) -> Candidate:
    """Any candidate, all equally likely."""
    return Candidate(
        **{name: chance.choice(values) for name, values in CHOICES.items()}
    )


def change(candidate: Candidate, chance: random.Random) -> Candidate:
    """A neighbour: one of its numbers is the next larger or smaller one."""
    while True:
        name = chance.choice(list(CHOICES))
        place = CHOICES[name].index(getattr(candidate, name)) + chance.choice([-1, 1])
        if 0 <= place < len(CHOICES[name]):
            return replace(candidate, **{name: CHOICES[name][place]})


def model_of(candidate: Candidate) -> LanguageModel:
    """A model with fresh weights."""
    radii = iter((candidate.first, candidate.second))

    def attention(*sizes, **switches):
        attend = partial(sparse_attention, pattern=Pattern(next(radii), causal=True))
        return MultiHeadAttention(*sizes, attend=attend, **switches)

    return LanguageModel(
        replace(SIZES, h=candidate.h, d_ff=candidate.d_ff), Parts(attention)
    )


@cache
def flops(candidate: Candidate) -> int:
    """Of reading one window."""
    ids = torch.full((1, SIZES.max_positions), MODEL.bos_id)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model_of(candidate).eval()(ids)
    return counter.get_total_flops()


LARGEST = Candidate(RADII[-1], RADII[-1], HEADS[-1], WIDTHS[-1])


def trained_bits(candidate: Candidate, seed: int, split: str) -> float:
    """Bits a character of a split's beginning, after a short training."""
    torch.manual_seed(seed)
    model = model_of(candidate)
    training = replace(
        TRAINING,
        seed=seed,
        updates=UPDATES,
        warmup=WARMUP,
        validate_every=UPDATES,
        batch_tokens=ROWS * (MODEL.max_positions + 1),
        lr_scale=RATE / peak_rate(SIZES.d_model, WARMUP),
    )
    train(model, text_windows(), training, **fast_training(training, model.config))
    return character_bits(model, text_of(split)[:READ], MODEL.max_positions)


@cache
def text_windows() -> list:
    """The training text, cut once."""
    return windows(bytes_of(text_of("train")), MODEL.max_positions)


def price(bits: float, candidate: Candidate) -> float:
    """What a search makes small."""
    return bits + WEIGHT * flops(candidate) / flops(LARGEST)


def search(population: int, seed: int, folder: Path, device: str) -> dict:
    """One search: its trials in order, and its winner, trained again and scored on test."""
    path, bits = folder / "tried.json", {}
    if path.is_file():
        bits = {Candidate(**row["candidate"]): row["bits"] for row in read_json(path)}

    def price_of(candidate: Candidate) -> float:
        if candidate not in bits:
            bits[candidate] = trained_bits(candidate, seed, "validation")
            write_json(
                path,
                [
                    {"candidate": asdict(one), "bits": found}
                    for one, found in bits.items()
                ],
            )
        return price(bits[candidate], candidate)

    tried = evolve(draw, change, price_of, population, TRIALS, random.Random(seed))
    best = min(tried)[1]
    again = [
        trained_bits(best, 1000 * seed + number, "test") for number in range(FRESH)
    ]
    return {
        "trials": [round(cost, 4) for cost, _ in tried],
        "trained": len(bits),
        "best": asdict(best),
        "validation.price": round(min(tried)[0], 4),
        "test.price": [round(price(found, best), 4) for found in again],
        "test.bits": [round(found, 4) for found in again],
        "flops": sum(flops(one) for _, one in tried),
        "best.flops": flops(best),
    }


def main(
    seeds: tuple[int, ...] = (1, 2, 3),
    folder: Path = Path("runs/evolution"),
    record: Path | None = None,
    minutes: float | None = None,
) -> None:
    """Both searches with every seed, one after another, on one thread.

    Args:
        seeds: of the searches, and of the trainings in them
        folder: where the searches are kept while they go on
        record: the file of results (data/runs/evolution.json where not given)
        minutes: stop after so many; the same command goes on
    """
    kinds = {"evolution": POPULATION, "random": TRIALS}  # a population that never fills
    jobs = [
        Job(
            f"{kind}-{seed}",
            partial(search, population, seed),
            {
                "search": kind,
                "seed": seed,
                "trials_allowed": TRIALS,
                "updates": UPDATES,
                "weight": WEIGHT,
            },
            COMMAND,
        )
        for seed in seeds
        for kind, population in kinds.items()
    ]
    run_jobs(jobs, folder, ["cpu"], record or "evolution", minutes)


if __name__ == "__main__":
    run_command(main)
