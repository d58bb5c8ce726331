"""A trained model's scores on a split of a corpus or on own files, saved beside it."""

import hashlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from transformer.core.files import existing, read_json, write_json
from transformer.corpora import languages_of, read_corpus, read_parallel
from transformer.models.evaluation import evaluate
from transformer.models.pretrained import folder_named, load
from transformer.models.search import chosen
from transformer.runs.experiment import Experiment, files_of
from transformer.runs.folder import held_out_pairs, load_run, take_average


@dataclass
class Scoring:
    """Which model to score, on what, and how it searches."""

    # a trained model's folder (the bundled model where not given)
    folder: Path | None = None
    # bundled, multi30k, newstest2014, treebank_craft, ... (the one trained on where not given)
    corpus: str | None = None
    # test, validation (of a run on own files what it kept from training), or others that the
    # corpus has
    split: str = "test"
    # your own sentences, one a line, instead of a corpus
    source_file: Path | None = None
    target_file: Path | None = None  # their translations, line by line
    # turn the corpus round (not needed where the model was trained so)
    reverse: bool = False
    # translated into, for Moses' rules (the model's where not given)
    language: str | None = None
    # hypotheses kept alive; 1 is greedy (the model's own where not given)
    beam: int | None = None
    alpha: float | None = None  # length penalty (the model's own where not given)
    # score the average of the last so many weights, not the model
    average: int | None = None
    device: str = "auto"  # cpu, cuda or mps; auto takes the fastest there is

    def __post_init__(self):
        self.folder = self.folder and Path(self.folder)
        self.source_file = self.source_file and Path(self.source_file)
        self.target_file = self.target_file and Path(self.target_file)


def corpus_of(s: Scoring, run: Experiment | None) -> str | None:
    """The corpus to score on; None for own files.

    ValueError where the run was trained on files, and neither others nor its validation is named.
    """
    if s.source_file is not None:
        if s.corpus is not None:
            raise ValueError(
                "--corpus and --source-file exclude each other: name one of them"
            )
        return None
    if s.corpus is None and run is not None and run.source_file:
        if s.split == "validation":
            return None
        raise ValueError(
            f"the model in {s.folder} was trained on your own files: name those to "
            "score it on with --source-file and --target-file, or take --split "
            "validation, the pairs that it kept from training"
        )
    if s.corpus is None and run is None and s.folder is not None:
        card = folder_named(s.folder) / "card.json"  # of the models that come along
        if not card.is_file():
            raise ValueError(
                f"nothing in {s.folder} says what its model learned from: name a "
                "--corpus, or --source-file and --target-file"
            )
        return read_json(card).get("corpus", "bundled")
    return s.corpus or (run.corpus if run else "bundled")


def run_of(s: Scoring) -> Experiment | None:
    """The run that made the model, where its folder tells; FileNotFoundError for no model."""
    if s.folder is None:
        return None
    existing(
        folder_named(s.folder) / "config.json", "name the folder of a trained model"
    )
    return load_run(s.folder) if (s.folder / "run.json").is_file() else None


def moved(s: Scoring, run: Experiment | None) -> tuple[Scoring, Experiment]:
    """The validation pairs of a run whose files lie elsewhere now; ValueError for another split,
    which own files do not have."""
    if run is None or not run.source_file or s.split != "validation":
        raise ValueError(
            f"your own files have no split {s.split}: leave out --split, or name the "
            "--folder of a run that was trained on them for --split validation"
        )
    there = replace(run, source_file=s.source_file, target_file=s.target_file)
    return replace(s, source_file=None, target_file=None), there


def name_of(s: Scoring, model, corpus: str | None, own_corpus: str) -> str:
    """The name of a file of scores; a trial of another search leaves the run's scores alone."""
    name = s.split
    if s.source_file is not None:
        path = s.source_file.resolve()
        folder = hashlib.sha256(str(path.parent).encode()).hexdigest()[
            :6
        ]  # others share its name
        name = f"files.{path.parent.name[:40]}-{folder}.{path.stem[:80]}"
    if corpus not in (None, own_corpus):
        name = f"{corpus}.{name}"
    beam, alpha = chosen(model, s.beam, s.alpha)
    if (beam, alpha) != chosen(model, None, None):
        name += f".beam-{beam}-alpha-{alpha:g}"
    name += f".{s.language}" if s.language else ""
    name += ".reversed" if s.reverse else ""
    return name if s.average is None else f"{name}.average-{s.average}"


def pairs_of(s: Scoring, run: Experiment | None, model, corpus: str | None) -> list:
    """The sentence pairs to score on, in the direction that the model translates."""
    if s.source_file is not None or s.target_file is not None:
        return read_parallel(*files_of(s, s.split))
    if corpus is None:
        return held_out_pairs(replace(run, reverse=s.reverse))
    own = model.about
    reverse = s.reverse or languages_of(corpus) == (own.target, own.source)
    return read_corpus(corpus, s.split, reverse)


def score(
    s: Scoring, evaluators: dict[str, Callable] | None = None, most: int | None = None
) -> dict:
    """Translate (the first `most` sentences) and score; in a folder, save scores.<name>.json.

    evaluators: other scores for other target languages ("trees"), each a function of (model,
    tokenizer, pairs, beam, alpha, name). Raises ValueError or OSError for what cannot be scored.
    """
    if s.folder is None and s.average is not None:
        raise ValueError("--average and --record need the --folder of a run")
    run = run_of(s)
    if s.source_file is not None and s.split != "test":
        s, run = moved(s, run)
    corpus = corpus_of(s, run)
    model, tokenizer = load(s.folder, s.device)
    if s.average is not None:
        take_average(model, s.folder, s.average)
    name = name_of(s, model, corpus, run.corpus if run else "bundled")
    started = time.monotonic()
    pairs = pairs_of(s, run, model, corpus)[:most]
    label = corpus or (s.source_file or run.source_file).name
    language = s.language or model.about.target
    search = chosen(model, s.beam, s.alpha)
    if evaluators and model.about.target in evaluators:
        report = evaluators[model.about.target](model, tokenizer, pairs, *search, name)
    else:
        report = {
            "language": language,
            **evaluate(model, tokenizer, pairs, *search, language, label, name),
        }
    seconds = round(time.monotonic() - started, 1)
    result = {"corpus": label, "split": name, **report, "seconds": seconds}
    keep(s, name, result)
    return result


def keep(s: Scoring, name: str, result: dict) -> None:
    """Save scores in the model's folder, but not beside a model that comes along."""
    if s.folder is None or not s.folder.is_dir():
        return
    try:
        write_json(s.folder / f"scores.{name}.json", result)
    except OSError as error:
        print(f"these scores are not saved: {error}", file=sys.stderr)
