"""The run of chapter 16: everyday sentences from English to German, and how four of them become
German on the way.

python -m transformer.experiments.tatoeba_run [--folder runs/tatoeba-run] [--record PATH]

Minutes on a GPU, an hour or so on a CPU core; stopped, the same command goes on. The record
holds sentences of Tatoeba (CC BY 2.0 FR), as their licence allows where they are attributed.
"""

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import tyro

from transformer.core.records import read_rows, under, write_rows
from transformer.core.scores import bleu, exact_match
from transformer.corpora import read_corpus
from transformer.experiments.rows import row_of
from transformer.hardware import Precision, choose_device
from transformer.models.pretrained import load
from transformer.models.search import translate, translate_n_best
from transformer.runs.experiment import Experiment
from transformer.runs.folder import average_last, has_begun, load_run, runs_folder
from transformer.runs.planning import SIZES, schedule
from transformer.runs.progress import read_log
from transformer.runs.run import run_experiment
from transformer.runs.training import TrainingConfig

COMMAND = "python -m transformer.experiments.tatoeba_run"
SENTENCES = [
    "The cat lost its ball.",
    "Why didn't you call me yesterday?",
    "My sister wants to buy a red bicycle.",
    "I don't know what I would do without you.",
]
OWNERS = [
    "The cat lost its ball.",
    "The dog lost its ball.",
    "The girl lost her ball.",
    "The old cat behind the school lost its ball.",
]
ATTRIBUTION = (
    "Sentences by the contributors of Tatoeba (https://tatoeba.org), through "
    "manythings.org/anki, CC BY 2.0 FR"
)
SIZE = next(size for size in SIZES if size.pairs == 100_000)
MODEL = replace(SIZE.model, positions="rotary", P_drop=0.1)
UPDATES = 4800
TRAINING = replace(
    schedule(
        TrainingConfig(),
        updates=UPDATES,
        batch=SIZE.batch_tokens,
        d_model=SIZE.model.d_model,
    ),
    validate_every=UPDATES // 24,
)
VALIDATED = 200  # pairs


def wanted(run: str) -> bool:
    """Whether chapter 16 makes the run itself: "yes", "no", or "auto", which does where there is a
    GPU. RUN=1 in the environment is a "yes", too."""
    if run not in ("auto", "yes", "no"):
        raise ValueError(f'RUN is {run!r}: choose "auto", "yes" or "no"')
    has_gpu = choose_device().type == "cuda"
    return run == "yes" or os.environ.get("RUN") == "1" or (run == "auto" and has_gpu)


def folder(keep_in_drive: bool = True) -> Path:
    """Where chapter 16 keeps its run; in Colab, if asked, on one's Google Drive, since a machine
    there may vanish with all its files."""
    if keep_in_drive and "google.colab" in sys.modules:
        from google.colab import drive

        drive.mount("/content/drive")
    return runs_folder() / "tatoeba-run"


def record() -> dict:
    """The row of the run that was kept in data/runs."""
    (row,) = read_rows("tatoeba-run")
    return row


def experiment(
    folder: Path, device: str = "auto", precision: Precision = "auto"
) -> Experiment:
    """The run in a folder: a new one, or the one that was begun there, which keeps its settings."""
    training = replace(TRAINING, precision=precision)
    e = Experiment("tatoeba", folder=folder, model=MODEL, training=training)
    if has_begun(Path(folder)):
        e = load_run(folder)
    return replace(e, device=device)


def watched(model, tokenizer, pairs: list) -> dict:
    """Greedy translations of some sentences, for the log; of whatever pairs."""
    return {"translations": translate(model, tokenizer, SENTENCES, beam=1)}


def run(e: Experiment, callbacks=()) -> None:
    """Train to the end; what was begun in the folder goes on."""
    run_experiment(e, COMMAND, VALIDATED, list(callbacks), validate=watched)


def ladder(folder: Path, device: torch.device) -> dict[str, list[str]]:
    """Translations of the test sources, from the simplest way to the best: {way: outputs}."""
    sources = [source for source, _ in read_corpus("tatoeba", "test")]
    model, tokenizer = load(folder, device)
    averaged = {
        "averaged, greedy": translate(model, tokenizer, sources, beam=1),
        "averaged, beam": translate(model, tokenizer, sources, beam=4, alpha=0.6),
    }
    average_last(model, folder, 1)
    last = translate(model, tokenizer, sources, beam=1)
    return {"last, greedy": last, **averaged}


def record_of(folder: Path, device: torch.device | None = None) -> dict:
    """What chapter 16 shows of a finished run, as a row of a record; device: the fastest."""
    device = device or choose_device()
    pairs = read_corpus("tatoeba", "test")
    references = [reference for _, reference in pairs]
    outputs = ladder(folder, device)
    model, tokenizer = load(folder, device)
    reports = {
        way: {
            "bleu": round(bleu(lines, references, language="de").score, 2),
            "exact": round(exact_match(lines, references), 4),
        }
        for way, lines in outputs.items()
    }
    lists = translate_n_best(model, tokenizer, SENTENCES, n_best=3)
    log = read_log(folder)
    return {
        "name": "tatoeba-run",
        "attribution": ATTRIBUTION,
        **row_of(folder, {"test": reports}),
        "log.translations": [row["translations"] for row in log],
        "sentences": SENTENCES,
        "n_best": [[[entry.text, entry.score] for entry in some] for some in lists],
        "owners": [list(pair) for pair in zip(OWNERS, owners_of(model, tokenizer))],
        "first_ten": [
            [source, output, reference]
            for (source, reference), output in zip(pairs, outputs["averaged, beam"])
        ][:10],
    }


def log_of(row: dict) -> list[dict]:
    """The log of a record, a row a validation, as `read_log` gives that of a run."""
    columns = under(row, "log")
    return [dict(zip(columns, values)) for values in zip(*columns.values())]


def owners_of(model, tokenizer) -> list[str]:
    """What the model writes for each of `OWNERS`."""
    return translate(model, tokenizer, OWNERS, beam=4, alpha=0.6)


@dataclass(frozen=True)
class Options:
    """Train the translator of chapter 16, score it, and write its record."""

    folder: Path = Path("runs/tatoeba-run")  # where the run is kept
    record: Path | None = None  # data/runs/tatoeba-run.json where not given
    device: str = "auto"  # cpu, cuda or mps; auto takes the fastest there is
    precision: Precision = "auto"  # bf16 is quicker on some CPUs, too


def main(options: Options) -> None:
    """Train, score, record."""
    run(experiment(options.folder, options.device, options.precision))
    row = record_of(options.folder, choose_device(options.device))
    write_rows(options.record or "tatoeba-run", [row])


if __name__ == "__main__":
    main(tyro.cli(Options))
