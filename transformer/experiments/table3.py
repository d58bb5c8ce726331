"""Table 3 in small: every row with several seeds, trained and scored side by side (`transformer
variations`).
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import torch

from transformer import variations
from transformer.core.checks import Diverged
from transformer.core.files import write_file
from transformer.core.scores import bleu, ngram_counts
from transformer.core.weights import load_parameters, load_weights
from transformer.corpora import corpus_named, stream_corpus
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import encode_pairs
from transformer.experiments.grammar import grammar
from transformer.experiments.questions import QUESTIONS
from transformer.experiments.runner import Job, run_jobs, settings_of, train_and_score
from transformer.experiments.starting import source_use
from transformer.models.search import translate
from transformer.runs.experiment import files_of, stream_pairs
from transformer.runs.recipes import search_of
from transformer.runs.run import Task
from transformer.runs.training import held_out_loss
from transformer.variations import TABLE_3, Row, Trial, model_of, scaled, with_changes

HELD_OUT = 300  # pairs that a run is validated on, on its way
SPLITS = ("validation", "test", "hard")  # scored in the end, where a corpus has them


def base_of(corpus: str, precision: str = "auto") -> Trial:
    """The base on a corpus: the paper's on wmt14, elsewhere the small one."""
    base = variations.PAPER if corpus == "wmt14" else variations.SMALL
    return replace(
        base, corpus=corpus, training=replace(base.training, precision=precision)
    )


def choose(names: tuple[str, ...] = ()) -> list[Row]:
    """The rows of groups or of single names, and those they are compared with, base first; Table 3
    where none is named.

    ValueError for an unknown name.
    """
    rows = [*TABLE_3, *QUESTIONS]
    known = {row.group for row in rows} | {row.name for row in rows}
    for name in names:
        if name not in known:
            groups = ", ".join(dict.fromkeys(row.group for row in rows))
            raise ValueError(
                f"unknown row {name!r}: choose groups ({groups}) "
                f"or rows by name, such as {rows[1].name}"
            )
    chosen = (
        [row for row in rows if {row.group, row.name} & set(names)]
        if names
        else TABLE_3
    )
    beside = {row.beside for row in chosen}
    return [row for row in rows if row in chosen or row.name in beside]


# One run: it is trained on a part of the corpus, and its vocabulary is learned from that, too


def words_of(pair: tuple[str, str]) -> int:
    """The words of the longer of two sentences."""
    return max(len(text.split()) for text in pair)


def sample(e: Trial, split: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a trial's split; for training those drawn from the grammar, where it asks
    for them, and only what is short enough.
    """
    if split != "train":
        yield from stream_pairs(e, split)
        return
    if e.drawn and e.corpus != "bundled":
        raise ValueError(
            "rows whose pairs are drawn from the grammar go with --corpus bundled"
        )
    pairs = (
        stream_pairs(e, split)
        if e.drawn is None
        else drawn_pairs(e.drawn, e.folder.parent)
    )
    for pair in pairs:
        if e.longest is None or words_of(pair) <= e.longest:
            yield pair


def drawn_pairs(count: int, folder: Path) -> Iterator[tuple[str, str]]:
    """The first pairs that the bundled corpus's grammar draws for training; 20,000 are the corpus.

    They are kept in a file of folder. ValueError where the grammar is not there.
    """
    path = folder / f"drawn-{count}.tsv"
    if not path.is_file():
        write_file(path, partial(write_drawn, count))
    with path.open(encoding="utf8") as lines:
        for line in lines:
            source, target = line.rstrip("\n").split("\t")
            yield source, target


def write_drawn(count: int, path: Path) -> None:
    """Draw so many pairs, none of which stands in the splits that are scored, into a file."""
    with path.open("w", encoding="utf8") as file:
        for name, pairs in grammar().splits(2017, count):  # in the order of the corpus
            for pair in pairs:
                if name == "train":
                    file.write(f"{pair.source}\t{pair.target}\n")


def make_loss_validator(e, tokenizer, sentences, count):
    """validate(model) for `train`: the cross-entropy of the first `HELD_OUT` validation pairs,
    however many are asked for, and what the source is worth, which is quick.
    """
    pairs = list(islice(sentences("validation"), HELD_OUT))
    encoded = encode_pairs(tokenizer, pairs)
    return partial(source_use, encoded)


TASK = Task(sample, make_loss_validator, model_of)


def figures_of(model, tokenizer, pairs: list, beam: int, alpha: float) -> dict:
    """Perplexity per target token, BLEU, and each sentence's n-gram counts; `Diverged` where there
    is no loss.
    """
    sources, references = zip(*pairs)
    loss = held_out_loss(model, encode_pairs(tokenizer, pairs))["validation_loss"]
    if not math.isfinite(loss):
        raise Diverged(f"after training the validation loss is {loss}")
    outputs = translate(model, tokenizer, sources, beam, alpha)
    found = bleu(outputs, references)
    return {
        "sentences": len(pairs),
        "perplexity": round(math.exp(loss), 4),
        "bleu": {"score": round(found.score, 3), "signature": found.signature},
        "ngrams": ngram_counts(outputs, references),
    }


def parts_of(pairs: list, longest: int | None) -> dict[str, list]:
    """The pairs as long as training's, up to twice, and up to four times as long; none where
    training has no limit, and no part without pairs.
    """
    if longest is None:
        return {}
    limits = {"short": (0, 1), "double": (1, 2), "longer": (2, 4)}
    parts = {
        name: [
            pair for pair in pairs if low * longest < words_of(pair) <= high * longest
        ]
        for name, (low, high) in limits.items()
    }
    return {name: part for name, part in parts.items() if part}


def score(e: Trial, device: torch.device) -> dict:
    """A finished trial on the splits of its corpus, of own files on the pairs kept for validation,
    with the corpus's search.
    """
    tokenizer, model = Tokenizer.load(e.folder / "tokenizer.json"), model_of(e, device)
    load_parameters(model, load_weights(e.folder / "model.safetensors")[0], e.folder)
    model.eval()
    own = e.source_file is not None
    search = search_of("files" if own else e.corpus)
    found: dict[str, dict] = {"search": dict(zip(("beam", "alpha"), search))}
    for split in ("validation",) if own else SPLITS:
        if own or split in corpus_named(e.corpus).splits:
            read = stream_pairs(e, split) if own else stream_corpus(e.corpus, split)
            pairs = list(read)
            found[split] = figures_of(model, tokenizer, pairs, *search)
            for name, part in parts_of(pairs, e.longest).items():
                found[split][name] = figures_of(model, tokenizer, part, *search)
    return found


# All runs


def job_of(row: Row, base: Trial, seed: int, command: str) -> Job:
    """A row with a seed."""
    e = with_changes(base, {**scaled(row.changes, base), "seed": seed})
    known = {
        "group": row.group,
        "row": row.name,
        "beside": row.beside,
        **settings_of(e),
        "drawn": e.drawn,
        "longest": e.longest,
        "without": e.without,
    }
    do = partial(train_and_score, e, score, command, task=TASK)
    return Job(f"{row.name}-seed{seed}", do, known, command)


def run_variations(
    base: Trial,
    rows: list[Row],
    seeds: list[int],
    folder: Path,
    devices: list[str],
    command: str,
    record: Path | None = None,
) -> list[dict]:
    """Train and score all rows with all seeds, but for those that the file of results holds; see
    `run_jobs`.

    All rows are trained with the first seed before any is trained with the second. Raises
    ValueError or OSError for a corpus, a folder or a record that cannot be used.
    """
    for split in ("train", "validation"):
        files_of(base, split)  # downloaded once, before many ask for it
    jobs = [job_of(row, base, seed, command) for seed in seeds for row in rows]
    found = run_jobs(jobs, folder, devices, record or folder / "results.json")
    if len(set(seeds)) > 1 and find_spec("pandas"):
        print_verdicts(found)
    return found


def print_verdicts(rows: list[dict]) -> None:
    """Every row that learned beside the one it is compared with."""
    import pandas

    from transformer.core.analysis import compare, learned

    scored = learned(pandas.DataFrame([row for row in rows if "diverged" not in row]))
    if len(scored) >= scored["row"].nunique() + scored["seed"].nunique():
        print(
            "\nminus base (or the row named), 95% interval, p after Holm's correction"
        )
        print(compare(scored, scored["row"].unique()).round(3).to_string())
