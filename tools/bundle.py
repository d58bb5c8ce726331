"""Make the model that comes with the package: the demo's recipe, trained twice as long, in half
precision.

python tools/bundle.py [--runs runs] [--folder data/models/bundled]

It takes about an hour of one CPU core; stopped, the same command goes on.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pairs
import torch

from transformer.cli.demo import scores_of
from transformer.core.records import write_rows
from transformer.core.weights import load_weights, save_weights
from transformer.corpora import read_bundled
from transformer.experiments import runner
from transformer.models.head_scores import score_attention
from transformer.models.pretrained import load, save
from transformer.runs.experiment import Experiment
from transformer.runs.recipes import recipe

COMMAND = "python tools/bundle.py"


def halve(run: Path, folder: Path) -> None:
    """Copy a trained model to folder with weights in half precision: half the bytes."""
    model, tokenizer = load(run)
    save(model, folder, tokenizer)
    path = folder / "model.safetensors"
    weights, metadata = load_weights(path)
    save_weights({name: p.half() for name, p in weights.items()}, path, metadata)


def score(folder: Path, e: Experiment, device) -> dict:
    """What the run's model, its weights halved in folder, reaches on the test sets, and its
    attention.
    """
    halve(e.folder, folder)
    model, tokenizer = load(folder)
    reports = {
        split: scores_of(model, tokenizer, split)[0] for split in ("test", "hard")
    }
    return reports | score_attention(
        model, tokenizer, read_bundled("validation"), read_bundled("test")
    )


def job_of(folder: Path) -> runner.Job:
    """The demo's recipe with twice as many updates."""
    parts = recipe("bundled")
    training = replace(parts["training"], updates=2 * parts["training"].updates)
    e = Experiment(model=parts["model"], training=training)
    do = partial(runner.train_and_score, e, partial(score, folder), COMMAND)
    return runner.Job(
        "bundled", do, {**runner.settings_of(e), "torch": torch.__version__}, COMMAND
    )


def command_of(job_of: Callable, name: str) -> Callable:
    """A command that makes one of the models that come with the package."""

    def main(
        runs: Path = pairs.ROOT / "runs",
        folder: Path = pairs.ROOT / "data" / "models" / name,
    ) -> None:
        """Make the model, or go on with that.

        Args:
            runs: where it is trained, in a folder of its own
            folder: where the model goes
        """
        write_rows(
            folder / "card.json", runner.run_jobs([job_of(folder)], runs, ["cpu"])
        )

    return main


if __name__ == "__main__":
    runner.run_command(command_of(job_of, "bundled"))
