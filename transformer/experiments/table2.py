"""Table 2 in small: recurrent, convolutional and attentional families of models side by side, for
notebook 16, and Transformers that know places in different ways, for notebook 07.

    python -m transformer.experiments.table2
    python -m transformer.experiments.table2 --corpus multi30k

All have the same corpus, vocabulary, batches, updates (so tokens seen), loss, clipping, dropout and
averaging, and within 10% as many parameters. Each family's own are the peak of the learning rate,
the length of its warm-up, and the length penalty of the search, all chosen on validation by a rule
that stands in data/runs/table2.md beside what was expected. With the first seed a family is tuned
and trained in full, one family after another; then come the other seeds. Every run keeps for each
test sentence what BLEU counts, and on its way the loss and BLEU of 200 validation sentences. The
test splits are searched with every length penalty; the outcome is that of the one chosen. Minutes
are those of training alone: the median over stretches of a run, times their number.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import pandas as pd

from transformer.core.analysis import beside, counts_at
from transformer.core.interrupt import Interrupted
from transformer.core.records import read_rows, under, write_rows
from transformer.core.scores import (
    bleu,
    bleu_of_counts,
    exact_match,
    ngram_counts,
    scores,
)
from transformer.corpora import stream_corpus
from transformer.corpora.windows import lengths_of
from transformer.data import encode_pairs
from transformer.experiments import runner
from transformer.experiments.choosing import best_of, next_rates
from transformer.experiments.positions import placed
from transformer.experiments.runner import Job
from transformer.experiments.table3 import make_loss_validator
from transformer.fast.convolution import ConvolutionConfig
from transformer.fast.recurrence import RecurrenceConfig
from transformer.hardware import training_flops
from transformer.models.families import parameters_of
from transformer.models.pretrained import load
from transformer.models.search import translate
from transformer.optimizer import peak_rate
from transformer.runs.experiment import Experiment, stream_pairs
from transformer.runs.progress import read_log
from transformer.runs.recipes import recipe
from transformer.runs.run import Task, make_validator
from transformer.runs.training import TrainingConfig

STRETCHES = 20  # validations in a run
COMMAND = "python -m transformer.experiments.table2"
BASE = "transformer"  # the paper's: sines, norms last
# Parts of a test split that are scored by themselves, too: the places of their sentences
PARTS = {"hard": {"combinations": slice(0, 700), "longer": slice(700, 1000)}}


@dataclass(frozen=True)
class Comparison:
    """What the families share, and their sizes."""

    models: dict  # {family: configuration}, in the order in which they are run
    training: TrainingConfig  # of a whole run; seed, lr_scale, warmup, validate_every are set run by run
    choice: int = 1000  # updates of the runs that choose peak and warm-up
    tests: tuple = ("test",)  # splits that count once all is chosen
    rates: tuple = (
        0.00125,
        0.0025,
        0.005,
    )  # the peaks to begin with: each twice the one before
    most: int = 6  # peaks tried at most
    warmups: tuple = (
        300,
        100,
        600,
    )  # the first goes with all peaks, the others with the best
    alphas: tuple = (
        0.6,
        0.0,
        1.2,
        1.8,
    )  # of length penalties that score alike the first is taken
    beam: int = 4


def families(vocab_size, P_drop, wide, attentive, blocks, transformer) -> dict:
    """All configurations, from the widths of the RNNs, the convolutional model's blocks, and the
    Transformer.
    """
    shared = dict(vocab_size=vocab_size, P_drop=P_drop, max_positions=256)
    sines = replace(transformer, **shared)
    return {
        "rnn-attention": RecurrenceConfig(d_model=attentive, **shared),
        BASE: sines,
        "rotary": replace(sines, positions="rotary"),
        "sines-shifted": placed(sines, "shifted"),
        "bias": placed(sines, "bias"),
        "none": placed(sines, "none"),
        "sines-rotary": placed(sines, "both"),
        "learned": replace(sines, positions="learned"),
        "pre-norm": replace(sines, norm_first=True),
        "rotary-pre-norm": replace(sines, positions="rotary", norm_first=True),
        "convolution": ConvolutionConfig(d_model=128, N=blocks, **shared),
        "rnn": RecurrenceConfig(d_model=wide, attention=False, **shared),
    }


SHARED = TrainingConfig(updates=4000, clip=1.0, keep=5)
OF_CAPTIONS = (
    "rnn-attention",
    BASE,
    "rotary",
    "pre-norm",
    "rotary-pre-norm",
    "bias",
    "learned",
    "convolution",
    "rnn",
)  # what runs on Multi30k, in this order
WIDE = families(6000, 0.2, 192, 184, 6, recipe("multi30k")["model"])
COMPARISONS = {
    "bundled": Comparison(
        families(3500, 0.0, 176, 168, 4, recipe("bundled")["model"]),
        replace(SHARED, batch_tokens=400, precision="fp32"),
        tests=("test", "hard"),
    ),
    "multi30k": Comparison(
        {family: WIDE[family] for family in OF_CAPTIONS},
        replace(SHARED, batch_tokens=2048, precision="bf16"),
    ),
}


def check_sizes(models: dict) -> None:
    """ValueError where the numbers of parameters differ by more than 10%."""
    counts = {family: parameters_of(c) for family, c in models.items()}
    if max(counts.values()) > 1.1 * min(counts.values()):
        listed = ", ".join(f"{family} {count:,}" for family, count in counts.items())
        raise ValueError(
            f"parameters differ by more than 10% ({listed}): change a width or a depth"
        )


# What is chosen: {(peak, warm-up): validation BLEU} are the runs that helped to


def next_choices(comparison: Comparison, tried: dict) -> list[tuple[float, int]]:
    """The peaks and warm-ups to try next: all peaks with the first warm-up, then the best of them
    with the others.
    """
    first, *others = comparison.warmups
    peaks = {rate: found for (rate, warmup), found in tried.items() if warmup == first}
    if rates := next_rates(peaks, comparison.rates, comparison.most):
        return [(rate, first) for rate in rates]
    return [
        (best_of(peaks), warmup)
        for warmup in others
        if (best_of(peaks), warmup) not in tried
    ]


# One run


def make_timed_validator(of: Callable, *given):
    """validate(model) for `train`: what of(*given) finds, and the seconds of training
    since the last call ended.
    """
    figures = of(*given)
    before = [time.monotonic(), time.process_time()]

    def validate(model):
        wall, cpu = time.monotonic() - before[0], time.process_time() - before[1]
        row = {**figures(model), "wall_seconds": wall, "cpu_seconds": cpu}
        before[:] = time.monotonic(), time.process_time()
        return row

    return validate


def minutes(log: list[dict]) -> dict:
    """{"minutes.wall", "minutes.cpu"}: minutes of a whole run's training, from the median stretch
    between two rows of its log.
    """
    rows = pd.DataFrame(log)
    updates = rows["update"].diff().fillna(rows["update"])
    seconds = {
        name: (rows[f"{name}_seconds"] / updates).median() for name in ("wall", "cpu")
    }
    return {
        f"minutes.{name}": round(float(log[-1]["update"] * of_one / 60), 2)
        for name, of_one in seconds.items()
    }


def flops_of(e: Experiment, tokenizer) -> float:
    """FLOPs of training for each target token of an experiment's corpus."""
    encoded = encode_pairs(tokenizer, list(stream_pairs(e, "train")))
    source, target = lengths_of(encoded, range(len(encoded)))
    flops = training_flops(e.model, source.astype(float), target - 1.0)
    return float(flops.sum() / (target - 1).sum())


def choose_alpha(comparison: Comparison, model, tokenizer, pairs: list) -> dict:
    """{"alpha", "by_alpha": {alpha: BLEU}} of validation pairs."""
    sources, references = zip(*pairs)
    found = {
        alpha: round(
            bleu(
                translate(model, tokenizer, sources, comparison.beam, alpha), references
            ).score,
            2,
        )
        for alpha in comparison.alphas
    }
    return {
        "alpha": max(found, key=found.get),
        "by_alpha": {f"{alpha:g}": score for alpha, score in found.items()},
    }


def score_choice(e: Experiment, device) -> dict:
    """Greedy BLEU of a finished run on validation, by its averaged weights."""
    model, tokenizer = load(e.folder, device)
    sources, references = zip(*stream_pairs(e, "validation"))
    found = bleu(translate(model, tokenizer, sources, beam=1), references)
    return {
        "validation": {
            "bleu": {"score": round(found.score, 2), "signature": found.signature},
            "beam": 1,
        }
    }


def figures_of(outputs: dict, references, alpha: float, split: str) -> dict:
    """Scores of translations, {length penalty: sentences}; in full for one penalty."""
    counts = {
        tried: ngram_counts(texts, references) for tried, texts in outputs.items()
    }
    figures = {
        "alpha": alpha,
        "exact_match": exact_match(outputs[alpha], references),
        "by_alpha": {f"{a:g}": parts_of(some, split) for a, some in counts.items()},
        "ngrams": counts[alpha],
    }
    for name, s in scores(outputs[alpha], references, resamples=0).items():
        figures[name] = {"score": round(s.score, 2), "signature": s.signature}
    return figures


def score(comparison: Comparison, alpha: float | None, e: Experiment, device) -> dict:
    """A finished run on validation and on the test splits, sentence by sentence; FLOPs, and minutes
    of training. alpha: None where validation shall choose it.
    """
    (model, tokenizer), log = load(e.folder, device), read_log(e.folder)
    figures = score_choice(e, device)
    if alpha is None:
        pairs = list(stream_pairs(e, "validation"))
        figures["validation"] |= choose_alpha(comparison, model, tokenizer, pairs[::2])
        alpha = figures["validation"]["alpha"]
    for split in comparison.tests:
        sources, references = zip(*stream_corpus(e.corpus, split))
        outputs = {
            tried: translate(model, tokenizer, sources, comparison.beam, tried)
            for tried in comparison.alphas
        }
        figures[split] = {"sentences": len(sources), "beam": comparison.beam}
        figures[split] |= figures_of(outputs, references, alpha, split)
    flops = log[-1]["tokens"] * flops_of(e, tokenizer)
    return {**figures, "flops": float(f"{flops:.4g}"), **minutes(log)}


# All of them


@dataclass(frozen=True)
class Plan:
    """A comparison on a corpus; the first of the seeds chooses."""

    comparison: Comparison
    corpus: str
    seeds: tuple

    def job(
        self,
        family: str,
        rate: float,
        warmup: int,
        seed: int,
        updates: int | None = None,
        alpha: float | None = None,
    ) -> Job:
        """A whole run of a family, or one of so many updates that helps to choose."""
        own, c = self.comparison, self.comparison.models[family]
        what = "choice" if updates else "run"
        updates = updates or own.training.updates
        training = replace(
            own.training,
            updates=updates,
            seed=seed,
            warmup=warmup,
            validate_every=max(1, updates // STRETCHES),
            lr_scale=rate / peak_rate(c.d_model, warmup),
        )
        e = Experiment(self.corpus, model=c, training=training)
        scored, watched = score_choice, make_loss_validator
        if what == "run":
            scored, watched = partial(score, own, alpha), make_validator
        task = Task(make_validator=partial(make_timed_validator, watched))
        command = f"{COMMAND} --corpus {self.corpus}"
        do = partial(runner.train_and_score, e, scored, command, task=task)
        known = {"what": what, "family": family, "rate": rate, **runner.settings_of(e)}
        return Job(f"{family}-{rate:g}-{warmup}-{seed}-{updates}", do, known, command)

    def next_jobs(self, rows: list[dict]) -> list[Job]:
        """All jobs that can be begun, given the rows of those that are finished; most urgent
        first.
        """
        jobs, first = [], self.seeds[0]
        done = {
            (row["family"], row["seed"]): row for row in rows if row["what"] == "run"
        }
        for seed in self.seeds:
            for family in self.comparison.models:
                tried = self.tried(rows, family)
                choices = next_choices(self.comparison, tried)
                if seed == first and choices:
                    jobs += [
                        self.job(family, *choice, first, self.comparison.choice)
                        for choice in choices
                    ]
                if choices or (family, seed) in done:
                    continue
                alpha = done.get((family, first), {}).get("test.alpha")
                if seed == first or (family, first) in done:
                    jobs.append(self.job(family, *best_of(tried), seed, alpha=alpha))
        return jobs

    def tried(self, rows: list[dict], family: str) -> dict:
        """{(peak, warm-up): validation BLEU} of the runs that chose; one that diverged has 0."""
        return {
            (row["rate"], row["training.warmup"]): row.get("validation.bleu", 0.0)
            for row in rows
            if row["what"] == "choice" and row["family"] == family
        }


def run_plan(
    plan: Plan,
    folder: Path,
    devices: list[str],
    record: Path,
    minutes: float | None = None,
) -> None:
    """Do all jobs of a plan that the record does not hold, as many at a time as there are devices.

    Raises Interrupted after so many minutes; see `run_jobs`.
    """
    check_sizes(plan.comparison.models)
    end = time.monotonic() + 60 * (minutes or float("inf"))
    while jobs := plan.next_jobs(read_rows(record)):
        left = (end - time.monotonic()) / 60
        if left <= 0:
            raise Interrupted("no time left; the same command goes on")
        print(f"{time.strftime('%H:%M')}: at least {len(jobs)} to do")
        runner.run_jobs(jobs[: len(devices)], folder, devices, record, minutes and left)


# What the runs say, as data/runs/table2.md laid down


def parts_of(counts: dict, split: str) -> dict[str, float]:
    """{"part.hard": BLEU, "length.hard": words written over the references', "part.hard.longer":
    ...}: a split and its parts, from each sentence's n-gram counts.
    """
    found = {}
    for part, places in {"": slice(None), **PARTS.get(split, {})}.items():
        own, name = counts_at(counts, places), f"{split}.{part}".rstrip(".")
        length = sum(own["output"]) / sum(own["reference"])
        found |= {
            f"part.{name}": round(bleu_of_counts(own), 3),
            f"length.{name}": round(length, 4),
        }
    return found


def judged(run: dict) -> dict[str, str]:
    """{what is compared: its column in a run}: splits, their parts, and splits with each alpha."""
    at = re.compile(r"(\w+)\.by_alpha\.(.+)\.part\.\1")
    return {
        name.removeprefix("part."): name for name in run if name.startswith("part.")
    } | {f"{m[1]} at {m[2]}": name for name in run if (m := at.fullmatch(name))}


def differences(runs: list[dict], part: str, column: str) -> list[dict]:
    """Every family minus `BASE` in a column, which is called part."""
    frame = pd.DataFrame(runs).rename(columns={"family": "row"})
    origin = {
        name: runs[0][name] for name in ("command", "commit", "hardware", "corpus")
    }
    found, seeds = beside(frame, column, BASE), frame["row"].value_counts()
    return [
        {
            "what": "difference",
            "name": f"difference-{part}-{family}",
            **origin,
            "part": part,
            "family": family,
            "seeds": int(seeds[family]),
            **{f"bleu.{name}": float(f"{value:.3g}") for name, value in own.items()},
        }
        for family, own in found.iterrows()
    ]


def comparable(runs: list[dict], seeds: int) -> list[dict]:
    """The runs that did not diverge, without families of which two did; none before `BASE` and all
    others have so many seeds."""
    families = {
        row["family"]: [one for one in runs if one["family"] == row["family"]]
        for row in runs
    }
    stable = {
        family: own
        for family, own in families.items()
        if sum("diverged" in row for row in own) < 2
    }
    if (
        BASE not in stable
        or seeds < 2
        or any(len(own) < seeds for own in families.values())
    ):
        return []
    return [row for own in stable.values() for row in own if "diverged" not in row]


def summarize(record: Path | str, seeds: int) -> None:
    """Write what follows from the runs in the file of results into it."""
    rows = [row for row in read_rows(record) if row["what"] in ("choice", "run")]
    runs = [row for row in rows if row["what"] == "run"]
    for run in runs:
        for split in ("test", "hard"):
            if f"{split}.ngrams.output" in run:
                run |= parts_of(under(run, f"{split}.ngrams"), split)
    runs = comparable(runs, seeds)
    parts = judged(runs[0]) if runs else {}
    if rows:
        write_rows(
            record,
            [*rows, *(row for one in parts.items() for row in differences(runs, *one))],
        )


def main(
    corpus: Literal["bundled", "multi30k"] = "bundled",
    seeds: tuple[int, ...] = (1, 2, 3),
    families: tuple[str, ...] = (),
    workers: int = 1,
    device: str = "cpu",
    folder: Path | None = None,
    record: Path | None = None,
    minutes: float | None = None,
) -> None:
    """Families of models on one corpus, side by side.

    Args:
        corpus: what they learn from
        seeds: the first chooses the rate, too
        families: some of them (all where none is named)
        workers: runs at the same time; on a CPU one thread each
        device: cpu, or cuda
        folder: where the runs are kept (runs/table2-<corpus> where not given)
        record: the file of results (data/runs/table2-<corpus>.json where not given)
        minutes: stop after so many; the same command goes on
    """
    comparison = COMPARISONS[corpus]
    if unknown := [name for name in families if name not in comparison.models]:
        raise ValueError(
            f"unknown family {unknown[0]!r}: choose {', '.join(comparison.models)}"
        )
    models = {name: comparison.models[name] for name in families or comparison.models}
    plan = Plan(replace(comparison, models=models), corpus, seeds)
    record = record or f"table2-{corpus}"
    folder = folder or Path("runs") / f"table2-{corpus}"
    try:
        run_plan(plan, folder, runner.devices_for(device, workers), record, minutes)
    finally:
        summarize(record, len(seeds))


if __name__ == "__main__":
    runner.run_command(main)
