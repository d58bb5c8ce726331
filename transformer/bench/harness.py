"""How systems take turns under both of torch's matmul precisions, and what becomes of their rates."""

import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from transformer.bench.peers import OURS
from transformer.hardware import matmul_precision
from transformer.speed import in_turns, real_tokens, times_as_fast


def precisions(device) -> tuple[str, ...]:
    """Matmul precisions to compare: on a GPU products are short anyway."""
    return ("highest", "medium") if device.type == "cpu" else ("highest",)


def under(precision: str, device, work):
    """A work under a matmul precision; a GPU keeps TF32."""

    def once(number):
        with matmul_precision(precision if device.type == "cpu" else "as it is"):
            return work(number)

    return once


def updates_of(system, batches, count: int):
    """A work: so many updates of a system in each round, on the round's own batches; one to warm
    up.
    """

    def train(number):
        own = (
            batches[:1]
            if number < 0
            else batches[number * count : (number + 1) * count]
        )
        for batch in own:
            system.update(batch)
        return sum(real_tokens(batch) for batch in own)

    return train


def compare(works: dict, rounds: int, device, clock) -> list[dict]:
    """Rows of a table; works: {(system, matmul precision): function of the round -> tokens}.

    A row has the median of tokens a second, and how many times as fast this package is as each
    peer.
    """
    turns = {row: under(row[1], device, work) for row, work in works.items()}
    return rows_of(in_turns(turns, rounds, device, clock))


def rows_of(rates: dict) -> list[dict]:
    """What `compare` gives, from {(system, matmul precision): tokens a second in each round}."""
    rows = []
    for (system, precision), values in rates.items():
        row = {
            "system": system,
            "matmul": precision,
            "tokens_per_second": round(statistics.median(values), 1),
            "rounds": [round(value, 1) for value in values],
        }
        for (peer, other), theirs in rates.items():
            if system in OURS and peer not in OURS:
                row[f"over_{peer}_{other}"] = round(times_as_fast(values, theirs), 3)
        rows.append(row)
    return rows


def in_a_process(function, *arguments):
    """What a function returns in a new process, or None, with the reason on standard error, where
    that died.

    Peak memory is a property of a process; and attention over long inputs may die of it.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(function, *arguments).result()
        except (MemoryError, RuntimeError) as error:
            print(
                f"{function.__name__}{arguments} ended: {str(error)[-300:]}",
                file=sys.stderr,
            )
            return None
