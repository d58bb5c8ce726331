"""Table 2 in small: a plain RNN, an RNN with attention, a convolutional model and a Transformer,
for notebook 16.

    python -m transformer.experiments.table2
    python -m transformer.experiments.table2 --corpus multi30k --seeds 1

All four have the same corpus, vocabulary, batches, updates (so tokens seen), loss, schedule,
clipping, dropout and averaging, and within 10% as many parameters. Only the schedule's peak is each
family's own: three are tried (and more while the best is the first or last of them) in shorter runs
of the first seed, and validation BLEU (greedy search, averaged weights) decides. Then each seed
trains in full and translates the test split once, with beam 4; of the bundled corpus also the split
of unseen combinations and lengths. Minutes are those of training alone, on one thread: the median
over stretches of a run, times their number. All figures of one corpus should come from the same
machine.
"""

import time
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from transformer.convolution import ConvolutionConfig
from transformer.corpora import stream_corpus
from transformer.data import encode_pairs, lengths_of
from transformer.experiments import runner
from transformer.experiments.records import write_rows
from transformer.experiments.runner import Job
from transformer.files import data_folder
from transformer.hardware import training_flops
from transformer.optimizer import peak_rate
from transformer.pretrained import load, parameters_of
from transformer.recipes import recipe
from transformer.recurrence import RecurrenceConfig
from transformer.runs import Experiment, Task, held_out_loss, read_log, stream_pairs
from transformer.scores import bleu
from transformer.search import translate
from transformer.training import TrainingConfig
from transformer.translation import score_report

STRETCHES, BUCKETS = 24, 6  # validations in a run, groups of sentences by length
COMMAND = "python -m transformer.experiments.table2"


@dataclass(frozen=True)
class Comparison:
    """What the families share, and their sizes."""

    models: dict  # {family: configuration}
    training: TrainingConfig  # of a whole run; seed, factor and save_every are set run by run
    choice: int  # updates of the runs that choose the peak of the learning rate
    tests: tuple = ("test",)  # splits that count once all is chosen
    rates: tuple = (0.00125, 0.0025, 0.005)  # the peaks to begin with: each twice the one before
    most: int = 6  # peaks tried at most


def families(vocab_size, P_drop, wide, attentive, blocks, transformer):
    """The four configurations, from the widths of the RNNs, the convolutional model's blocks, and
    the Transformer.
    """
    shared = dict(vocab_size=vocab_size, P_drop=P_drop, max_positions=256)
    return {"rnn": RecurrenceConfig(d_model=wide, attention=False, **shared),
            "rnn-attention": RecurrenceConfig(d_model=attentive, **shared),
            "convolution": ConvolutionConfig(d_model=128, N=blocks, **shared),
            "transformer": replace(transformer, **shared)}


# Sizes like those of the recipes, and fewer updates: all must be done four times over
SHARED = TrainingConfig(clip=1.0, keep=5)
COMPARISONS = {
    "bundled": Comparison(
        families(3500, 0.0, 176, 168, 4, recipe("bundled")["model"]),
        replace(SHARED, updates=3000, batch_tokens=400, warmup=300, precision="fp32"),
        choice=1500, tests=("test", "hard")),
    "multi30k": Comparison(
        families(6000, 0.2, 192, 184, 6, recipe("multi30k")["model"]),
        replace(SHARED, updates=2000, batch_tokens=4096, warmup=400, precision="bf16"), choice=600),
}


def check_sizes(models: dict) -> None:
    """ValueError where the numbers of parameters differ by more than 10%."""
    counts = {family: parameters_of(c) for family, c in models.items()}
    if max(counts.values()) > 1.1 * min(counts.values()):
        listed = ", ".join(f"{family} {count:,}" for family, count in counts.items())
        raise ValueError(f"parameters differ by more than 10% ({listed}): "
                         "change a width or a depth")


# The learning rate

def next_rates(tried: dict, first: tuple, most: int) -> list:
    """The peaks to try next, given {peak: validation BLEU}; none where the best lies inside, or
    `most` have been tried.

    First come those of `first`; then, while the best is the smallest or the largest, half or twice
    it.
    """
    if waiting := [rate for rate in first if rate not in tried]:
        return waiting
    best = best_rate(tried)
    if len(tried) >= most or min(tried) < best < max(tried):
        return []
    return [best / 2 if best == min(tried) else best * 2]


def best_rate(tried: dict) -> float:
    """The peak with the highest validation BLEU; of equals, the smallest."""
    return max(sorted(tried), key=tried.get)


# One run

def timed_validator(e, tokenizer, count=200, watch=None):
    """validate(model) for `train`: the validation loss, and the seconds of training since its last
    call ended.
    """
    encoded = encode_pairs(tokenizer, list(islice(stream_pairs(e, "validation"), count)))
    before = [time.monotonic(), time.process_time()]

    def validate(model):
        wall, cpu = time.monotonic() - before[0], time.process_time() - before[1]
        row = {**held_out_loss(model, encoded), "wall_seconds": wall, "cpu_seconds": cpu}
        before[:] = time.monotonic(), time.process_time()
        return row

    return validate


def minutes(log: list[dict]) -> dict:
    """{"minutes.wall", "minutes.cpu"}: minutes of a whole run's training, from the median stretch
    between two rows of its log.
    """
    rows = pd.DataFrame(log)
    updates = rows["update"].diff().fillna(rows["update"])
    seconds = {name: (rows[f"{name}_seconds"] / updates).median() for name in ("wall", "cpu")}
    return {f"minutes.{name}": round(float(log[-1]["update"] * of_one / 60), 2)
            for name, of_one in seconds.items()}


def by_length(sources, outputs, references) -> list[dict]:
    """BLEU of groups of sentences by the words of their sources: about equally many sentences in
    each, at most `BUCKETS` groups, no length in two.
    """
    rows = pd.DataFrame({"words": [len(source.split()) for source in sources],
                         "output": outputs, "reference": references})
    buckets = np.ceil(BUCKETS * rows["words"].rank(pct=True))
    return [{"from": int(own["words"].min()), "to": int(own["words"].max()), "sentences": len(own),
             "bleu": round(bleu([*own["output"]], [*own["reference"]]).score, 2)}
            for _, own in rows.groupby(buckets)]


def score(tests: tuple, e: Experiment, device) -> dict:
    """Greedy BLEU of a finished run on validation; the test splits with beam 4; FLOPs, and minutes
    of training.
    """
    (model, tokenizer), log = load(e.folder, device), read_log(e.folder)
    sources, references = zip(*stream_pairs(e, "validation"))
    found = bleu(translate(model, tokenizer, sources, beam=1), references)
    greedy = {"score": round(found.score, 2), "signature": found.signature}
    figures = {"validation": {"bleu": greedy, "beam": 1}}
    for split in tests:
        sources, references = zip(*stream_corpus(e.corpus, split))
        outputs = translate(model, tokenizer, sources, beam=4)
        figures[split] = {"sentences": len(sources), "beam": 4, "alpha": 0.6,
                          **score_report(outputs, references, corpus=e.corpus),
                          "lengths": by_length(sources, outputs, references)}
    encoded = encode_pairs(tokenizer, list(stream_pairs(e, "train")))
    source, target = lengths_of(encoded, range(len(encoded)))
    flops = training_flops(e.model, source.astype(float), target - 1.0).sum() / (target - 1).sum()
    return {**figures, "flops": float(f"{log[-1]['tokens'] * flops:.4g}"), **minutes(log)}


# All of them

def job_of(comparison: Comparison, corpus: str, family: str, rate: float, seed: int,
           whole: bool) -> Job:
    """A family with a peak and a seed: the whole run, scored on the test splits, or the shorter one
    that helps to choose.
    """
    c, updates = comparison.models[family], comparison.choice
    if whole:
        updates = comparison.training.updates
    training = replace(comparison.training, updates=updates, seed=seed,
                       save_every=max(1, updates // STRETCHES),
                       factor=rate / peak_rate(c.d_model, comparison.training.warmup))
    e = Experiment(corpus, model=c, training=training)
    scored = partial(score, comparison.tests if whole else ())
    do = partial(runner.train_and_score, e, scored, COMMAND, task=Task(validator=timed_validator))
    known = {"what": "run" if whole else "choice", "family": family, "rate": rate,
             **runner.settings_of(e)}
    return Job(f"{family}-{rate:g}-{seed}-{updates}", do, known, COMMAND)


def length_rows(runs: list[dict], tests: tuple) -> list[dict]:
    """Rows "length" (mean over seeds, deviation) from what the runs have; it leaves the runs."""
    rows = pd.DataFrame([
        {**run, **bucket, "what": "length", "split": split}
        for run in runs for split in tests for bucket in run.pop(f"{split}.lengths")])
    same = ["what", "command", "commit", "hardware", "corpus", "family", "split", "from", "to",
            "sentences"]
    over_seeds = rows.groupby(same, sort=False, dropna=False)["bleu"]
    found = over_seeds.agg(**{"bleu": "mean", "bleu.deviation": "std", "seeds": "count"}).round(2)
    found = found.reset_index().astype(object)
    return found.where(found.notna(), None).to_dict("records")


def choose_rates(comparison: Comparison, corpus: str, seed: int, folder: Path,
                 devices: list[str]) -> tuple[dict, list[dict]]:
    """The best peak of each family, and the rows of the shorter runs that say so."""
    tried, rows = {family: {} for family in comparison.models}, []
    while True:
        jobs = []
        for family, rates in tried.items():
            for rate in next_rates(rates, comparison.rates, comparison.most):
                jobs.append(job_of(comparison, corpus, family, rate, seed, whole=False))
        if not jobs:
            return {family: best_rate(rates) for family, rates in tried.items()}, rows
        for row in runner.run_jobs(jobs, folder, devices):  # one that diverged has no BLEU
            tried[row["family"]][row["rate"]] = row.get("validation.bleu", 0.0)
            rows.append({name: row[name] for name in row if not name.startswith("log.")})


def run_table(comparison: Comparison, corpus: str, seeds: tuple, folder: Path, devices: list[str],
              record: Path) -> None:
    """Choose each family's rate, train and score every seed, and write the file of results."""
    check_sizes(comparison.models)
    best, choices = choose_rates(comparison, corpus, seeds[0], folder, devices)
    jobs = [job_of(comparison, corpus, family, rate, seed, whole=True)
            for family, rate in best.items() for seed in seeds]
    runs = runner.run_jobs(jobs, folder, devices)
    lengths = length_rows(runs, comparison.tests)
    write_rows(record, [*runs, *choices, *lengths])


def main(corpus: Literal["bundled", "multi30k"] = "bundled", seeds: tuple[int, ...] = (1, 2, 3),
         workers: int = 1, folder: Path | None = None, record: Path | None = None) -> None:
    """Four families of models on one corpus, side by side.

    Args:
        corpus: what they learn from
        seeds: the first chooses the rate, too
        workers: runs at the same time, one thread each
        folder: where the runs are kept (runs/families-<corpus> where not given)
        record: the file of results (data/runs/families-<corpus>.json where not given)
    """
    name = f"families-{corpus}"
    record = record or data_folder() / "runs" / f"{name}.json"
    folder, devices = folder or Path("runs") / name, runner.devices_for("cpu", workers)
    run_table(COMPARISONS[corpus], corpus, seeds, folder, devices, record)


if __name__ == "__main__":
    runner.run_command(main)
