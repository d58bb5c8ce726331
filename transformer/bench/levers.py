"""What each lever gives: the package with all of them pulled, and with each of them left out."""

import statistics

import torch

from transformer.bench.harness import under, updates_of
from transformer.bench.peers import LEVERS, Ours
from transformer.fast.model import TransformerConfig
from transformer.speed import SEED, draw_batches, in_turns, times_as_fast


def lever_sets() -> dict[str, tuple[str, ...]]:
    """{name of a row: the levers that are pulled there}."""
    rows = {"none": (), "all": LEVERS}
    for lever in LEVERS:
        rows[f"all but {lever}"] = tuple(other for other in LEVERS if other != lever)
    rows["all, in bf16"] = (*LEVERS, "bf16")
    return rows


def measure_levers(sizes: dict, tokens: int, updates: int, rounds: int, device, clock):
    """Tokens a second with each lever left out, and as a part of what all of them reach: the median
    over rounds.

    "similar lengths" are equal ones, without padding: the best that sorting can give.
    """
    c = TransformerConfig(**sizes, P_drop=0.1)
    drawn, equal = (
        draw_batches(c.vocab_size, tokens, updates * rounds, device, spread)
        for spread in (0.18, 0.0)
    )
    works = {}
    for name, pulled in lever_sets().items():
        torch.manual_seed(SEED)
        system = (
            Ours(c, pulled).to(device).prepare("bf16" if "bf16" in pulled else "fp32")
        )
        batches = equal if "similar lengths" in pulled else drawn
        works[name] = under("highest", device, updates_of(system, batches, updates))
    rates = in_turns(works, rounds, device, clock)
    return [
        {
            "lever": name,
            "tokens_per_second": round(statistics.median(values), 1),
            "over_all": round(times_as_fast(values, rates["all"]), 3),
            "over_none": round(times_as_fast(values, rates["none"]), 3),
        }
        for name, values in rates.items()
    ]
