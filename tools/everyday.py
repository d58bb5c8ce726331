"""Make the model of everyday sentences that comes with the package: English to German, trained on
Tatoeba (CC BY 2.0 FR), in half precision.

python tools/everyday.py [--runs runs] [--folder data/models/tatoeba]

It takes some three hours of one CPU core; stopped, the same command goes on. The corpus is
downloaded where TRANSFORMER_MIRROR names no folder that has it.
"""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import bundle
import torch

from transformer.corpora import stream_corpus
from transformer.experiments import runner
from transformer.models.evaluation import evaluate
from transformer.models.pretrained import load
from transformer.models.search import chosen
from transformer.runs.experiment import Experiment
from transformer.runs.planning import SIZES, schedule
from transformer.runs.scoring import Scoring, pairs_of
from transformer.runs.training import TrainingConfig

COMMAND = "python tools/everyday.py"
SIZE = next(
    size for size in SIZES if size.pairs == 100_000
)  # what own files of that number get
MODEL = replace(SIZE.model, positions="rotary", P_drop=0.2)
TRAINING = schedule(
    TrainingConfig(precision="bf16"),
    updates=11_000,
    batch=SIZE.batch_tokens,
    d_model=SIZE.model.d_model,
)
SPLITS = {"test": "tatoeba", "newstest2014": "newstest2014"}


def owners() -> dict[str, int]:
    """How many pairs of training have "its", and a form of "sein" or of "ihr" with it, for notebook
    19."""
    found = [
        german
        for english, german in stream_corpus("tatoeba", "train")
        if re.search(r"\bits\b", english, re.IGNORECASE)
    ]
    return {
        "pairs": len(found),
        **{
            stem: sum(
                bool(re.search(rf"\b{stem}(e[mnrs]?)?\b", german, re.IGNORECASE))
                for german in found
            )
            for stem in ("sein", "ihr")
        },
    }


def score(folder: Path, e: Experiment, device) -> dict:
    """What the run's model, its weights halved in folder, reaches on what it never saw."""
    bundle.halve(e.folder, folder)
    model, tokenizer = load(folder, device)
    reports = {
        name: evaluate(
            model,
            tokenizer,
            pairs_of(Scoring(), None, model, corpus),
            *chosen(model, None, None),
            "de",
            corpus,
            "test",
        )
        for name, corpus in SPLITS.items()
    }
    return {"its": owners(), **reports}


def job_of(folder: Path) -> runner.Job:
    """The training and its scores as a job of the runner."""
    e = Experiment("tatoeba", model=MODEL, training=TRAINING)
    do = partial(runner.train_and_score, e, partial(score, folder), COMMAND)
    return runner.Job(
        "tatoeba", do, {**runner.settings_of(e), "torch": torch.__version__}, COMMAND
    )


if __name__ == "__main__":
    runner.run_command(bundle.command_of(job_of, "tatoeba"))
