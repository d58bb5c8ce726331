"""Multi30k's recipe beside changes of it, one at a time and several at once; notebook 16.

    python -m transformer.experiments.multi30k --each 8.1 --device cuda --workers 15 \
        --rows recipe positions=rotary

Every run is searched with each length penalty, within the paper's limit of 50 tokens more than the
source and within 10, and validation chooses the penalty that counts. The questions, the rules and
what was expected were written down before the runs, in data/runs/multi30k.md. Many runs at a time
want as many cores beside the GPU, and NVIDIA's Multi-Process Service
(`nvidia-cuda-mps-control -d`), so that they need not take turns.
"""

import shlex
import sys
from functools import partial
from pathlib import Path

from transformer.core.scores import bleu, ngram_counts, scores
from transformer.corpora import stream_corpus
from transformer.experiments.runner import (
    Job,
    devices_for,
    run_command,
    run_jobs,
    settings_of,
    train_and_score,
)
from transformer.experiments.table3 import make_loss_validator
from transformer.models.pretrained import load
from transformer.models.search import Batching, translate
from transformer.runs.experiment import Experiment, files_of
from transformer.runs.folder import average_last
from transformer.runs.recipes import recipe
from transformer.runs.run import Task
from transformer.variations import Trial, with_changes

COMMAND = "python -m transformer.experiments.multi30k"
ROTARY, FIRST, MORE = dict(positions="rotary"), dict(norm_first=True), dict(P_drop=0.3)
ALPHAS = (0.6, 1.2, 1.6, 2.0)  # of those that score alike the first is taken
BEAM = 4
TIGHT = 10  # tokens that an output may have more than its source


def name_of(changes: dict) -> str:
    """What a row is called: "recipe", or its changes, such as "positions=rotary,P_drop=0.3"."""
    return ",".join(f"{name}={value}" for name, value in changes.items()) or "recipe"


ROWS = {
    name_of(changes): changes
    for changes in (
        {},
        dict(epsilon_ls=0.0),
        dict(tie_embeddings=False),
        ROTARY,
        ROTARY | FIRST | MORE,
        FIRST,
        MORE,
        ROTARY | FIRST,
        ROTARY | MORE,
        dict(vocab_size=10_000),
        dict(P_drop=0.1),
        dict(vocab_size=3000),
        dict(schedule="linear"),
        ROTARY | FIRST | MORE | dict(schedule="linear"),
    )
}


def experiment_of(changes: dict, **more) -> Experiment:
    """The recipe with a row's changes, and more of them."""
    return with_changes(Trial("multi30k", **recipe("multi30k")), changes | more)


def searched(model, tokenizer, extra: int = 50) -> dict:
    """{split: figures} of a model on validation and test, with the alpha that validation chooses;
    BLEU with the others beside it. Outputs have at most `extra` tokens more than their source.
    """
    found, alpha, how = {}, None, Batching(extra)
    for split in ("validation", "test"):
        sources, references = zip(*stream_corpus("multi30k", split))
        outputs = {
            a: translate(model, tokenizer, sources, BEAM, a, how) for a in ALPHAS
        }
        by_alpha = {
            a: round(bleu(some, references).score, 2) for a, some in outputs.items()
        }
        alpha = max(by_alpha, key=by_alpha.get) if alpha is None else alpha
        found[split] = {
            "sentences": len(sources),
            "beam": BEAM,
            "alpha": alpha,
            "by_alpha": {f"{a:g}": score for a, score in by_alpha.items()},
            "ngrams": ngram_counts(outputs[alpha], references),
        }
        for name, s in scores(outputs[alpha], references, resamples=0).items():
            found[split][name] = {"score": round(s.score, 2), "signature": s.signature}
    return found


def score(last: bool, e: Experiment, device) -> dict:
    """A finished run by its averaged weights, with both limits ("tight": of 10 tokens) and, where
    `last` asks for it, by the last alone.
    """
    model, tokenizer = load(e.folder, device)
    found = searched(model, tokenizer) | {"tight": searched(model, tokenizer, TIGHT)}
    if last:
        average_last(model, e.folder, 1)
        found["last"] = searched(model, tokenizer)
    return found


def job_of(row: str, seed: int, each: float | None, command: str = COMMAND) -> Job:
    """A row with a seed; `each`: minutes of training at most."""
    e = experiment_of(ROWS[row], seed=seed, precision="fp32", minutes=each)
    do = partial(
        train_and_score,
        e,
        partial(score, row == "recipe"),
        command,
        task=Task(make_validator=make_loss_validator),
    )
    return Job(f"{row}-seed{seed}", do, {"row": row, **settings_of(e)}, command)


def main(
    seeds: tuple[int, ...] = (1, 2, 3),
    rows: tuple[str, ...] = tuple(ROWS),
    each: float | None = None,
    workers: int = 1,
    device: str = "cpu",
    folder: Path = Path("runs/multi30k-rows"),
    record: Path | None = None,
) -> None:
    """Train and score rows with seeds, a row with all seeds after the other.

    Args:
        seeds: of each row
        rows: their names, in the order of the runs
        each: minutes after which a run ends, with fewer updates
        workers: runs at the same time
        device: cpu, or cuda
        folder: where the runs are kept
        record: the file of results (data/runs/multi30k.json where not given)
    """
    for split in ("train", "validation", "test"):
        files_of(
            Experiment("multi30k"), split
        )  # downloaded once, before many ask for it
    if unknown := [row for row in rows if row not in ROWS]:
        raise ValueError(f"unknown row {unknown[0]!r}: choose from {' '.join(ROWS)}")
    command = f"{COMMAND} {shlex.join(sys.argv[1:])}"
    jobs = [job_of(row, seed, each, command) for row in rows for seed in seeds]
    run_jobs(jobs, folder, devices_for(device, workers), record or "multi30k")


if __name__ == "__main__":
    run_command(main)
