"""Table 3 in small at one rate for all rows, and at a rate for each; notebook 17.

    python -m transformer.experiments.rates --folder runs/table3

Short runs find the common rate, all rows are trained with every seed, shorter ones ask each row for
a rate of its own, and where that is another one the row is trained with it. The rules were written
down before the runs, in data/runs/table3.md.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from transformer.experiments.choosing import best_of
from transformer.experiments.questions import AT_RISK, CHOSEN, LOWER, SHORT, TRIED
from transformer.experiments.runner import devices_for, run_command
from transformer.experiments.table3 import base_of, choose, run_variations
from transformer.hardware import Precision
from transformer.variations import PAPER, Trial

COMMAND = "python -m transformer.experiments.rates"
LEARNED = 1.0  # nats a token that another sentence's source must cost
Run = Callable[
    [Trial, list[str], tuple[int, ...]], list[dict]
]  # (base, rows, seeds) -> results


def learns(row: dict) -> bool:
    """Whether a run has come to use its source: the mean of the last two validations."""
    return "diverged" not in row and sum(row["log.use"][-2:]) / 2 >= LEARNED


def common_factor(run: Run, base: Trial) -> float:
    """The largest of the rates tried at which the rows at risk learn, and at twice which base does;
    as a multiple of the base's. ValueError where there is none.
    """
    for factor in TRIED[1:]:
        names = [
            *(f"{name},tried={factor:g}" for name in AT_RISK),
            f"base,tried={2 * factor:g}",
        ]
        if all(learns(run(base, [name], (1,))[0]) for name in names):
            return factor
    raise ValueError("no rate lets all rows learn: try lower ones")


def early_loss(row: dict, share: float) -> float:
    """The validation loss of a run after a share of its updates; inf where it diverged."""
    if "diverged" in row:
        return float("inf")
    early = [
        loss
        for update, loss in zip(row["log.update"], row["log.validation_loss"])
        if update <= share * row["updates"]
    ]
    return early[-1]


def chosen_factor(whole: dict, short: dict[float, dict]) -> float:
    """A row's own rate, as a multiple of the common one: that with the smallest validation loss
    after a quarter of the updates. whole: its run at the common rate; short: by factor.
    """
    losses = {1.0: early_loss(whole, SHORT / PAPER.training.updates)}
    losses |= {factor: early_loss(row, 1.0) for factor, row in short.items()}
    return best_of({factor: -loss for factor, loss in losses.items()})


def tune(run: Run, base: Trial, whole: list[dict]) -> list[dict]:
    """The rows that choose another rate than the common one, trained with it."""
    names = {row["row"]: row for row in whole}
    short = {
        factor: run(base, [f"{name},factor={factor:g},short" for name in names], (1,))
        for factor in LOWER
    }
    chosen = {
        name: chosen_factor(row, {factor: rows[i] for factor, rows in short.items()})
        for i, (name, row) in enumerate(names.items())
    }
    other = [
        f"{name},factor={factor:g}" for name, factor in chosen.items() if factor != 1
    ]
    return [row for name in other for row in run(base, [name], (1,))]


def main(
    seeds: tuple[int, ...] = (1, 2, 3),
    corpus: str = "multi30k",
    lr_scale: float | None = None,
    precision: Precision = "fp32",
    workers: int = 1,
    device: str = "cpu",
    folder: Path = Path("runs/table3"),
    record: Path | None = None,
) -> None:
    """Rates, all rows, each row's own rate; what is finished is left out.

    Args:
        seeds: of the rows at the common rate
        corpus: what they learn from
        lr_scale: the common rate, as a multiple of base's (found by short runs where not given)
        precision: of all runs
        workers: runs at the same time
        device: cpu, or cuda
        folder: where the runs are kept
        record: the file of results (data/runs/table3.json where not given)
    """
    record, devices = record or "table3", devices_for(device, workers)

    def run(base: Trial, names: list[str], seeds: tuple[int, ...]) -> list[dict]:
        rows = [row for row in choose(tuple(names)) if row.name in names]
        return run_variations(base, rows, list(seeds), folder, devices, COMMAND, record)

    base = base_of(corpus, precision=precision)
    lr_scale = lr_scale or common_factor(run, base)
    training = replace(base.training, lr_scale=lr_scale * base.training.lr_scale)
    base = replace(base, training=training)
    train = partial(run, base, [row.name for row in CHOSEN])
    whole = train(seeds[:1])
    failed = [row["row"] for row in whole if not learns(row)]
    if len(failed) > 1:
        raise ValueError(
            f"at this rate {', '.join(failed)} do not learn: begin again with "
            f"--lr-scale {lr_scale / 2:g}, another --folder and another --record"
        )
    for number in range(1, len(seeds)):
        train(seeds[: number + 1])
    tune(run, base, whole)


if __name__ == "__main__":
    run_command(main)
