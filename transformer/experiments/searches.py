"""What beams and length penalties make of everyday sentences: kept in data/runs/searches.json.

python -m transformer.experiments.searches [--record PATH]

The bundled model of everyday sentences translates Tatoeba's 2,000 validation sentences with beams
of several widths and penalties of several strengths, some minutes of one CPU core. For three
searches the record has what BLEU counts in each sentence, so that sentences can be drawn again.
data/runs/searches-repairs.json counts the sentences of the made-up grammar that a beam repairs.
"""

import random
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch
import tyro

from transformer.core.files import git_commit
from transformer.core.records import flatten, write_rows
from transformer.core.scores import bleu, bleu_of_counts, ngram_counts
from transformer.corpora import read_bundled, read_corpus
from transformer.models.pretrained import load
from transformer.models.search import translate, translate_n_best
from transformer.runs.folder import hardware_in_words

COMMAND = "python -m transformer.experiments.searches"
COUNTED = [(1, 0.0), (4, 0.0), (4, 0.6)]
SEARCHES = [
    *COUNTED,
    *((4, alpha) for alpha in (0.3, 1.0, 1.4, 1.8, 2.2)),
    *((beam, alpha) for beam in (2, 8, 16) for alpha in (0.0, 0.6)),
]
HARD = [(1, 0.0), (2, 0.6), (4, 0.0), (4, 0.6), (4, 1.4), (4, 4.0)]


def measure(model, tokenizer, pairs: list, beam: int, alpha: float) -> dict:
    """Scores of one search, as a row."""
    sources, references = zip(*pairs)
    start = time.process_time()
    found = translate_n_best(model, tokenizer, list(sources), 1, beam, alpha)
    outputs = [best.text for (best,) in found]
    counts = ngram_counts(outputs, references)
    written, wanted = (
        sum(len(text.split()) for text in texts) for texts in (outputs, references)
    )
    report: dict = {
        "bleu": round(bleu_of_counts(counts), 2),
        "length": round(written / wanted, 4),
    }
    if alpha == 0:
        report["log_p"] = round(fmean(best.score for (best,) in found), 3)
    row = {"beam": beam, "alpha": alpha, **report}
    row["minutes_of_processor"] = round((time.process_time() - start) / 60, 2)
    if (beam, alpha) in COUNTED:  # who draws again needs no more
        row["counts"] = counts
    return flatten(row)


def rows_of(name: str, pairs: list, searches: list, **about) -> list[dict]:
    """A row for each search with the bundled model of a name."""
    model, tokenizer = load(name)
    source = {
        "command": COMMAND,
        "commit": git_commit(),
        "hardware": hardware_in_words(torch.device("cpu"), "fp32"),
        "model": name,
        "sentences": len(pairs),
        **about,
    }
    return [
        {**source, **measure(model, tokenizer, pairs, beam, alpha)}
        for beam, alpha in searches
    ]


def repairs() -> list[dict]:
    """How a beam of 4 changes greedy outputs, on all of the bundled test and hard sentences.

    repaired: wrong letters in the greedy output and none in the beam's; spoiled: the reverse.
    """
    model, tokenizer = load("bundled")
    rows = []
    for split in ("test", "hard"):
        sources, references = zip(
            *((example.source, example.target) for example in read_bundled(split))
        )
        greedy = translate(model, tokenizer, list(sources), 1, 0.0)
        for alpha in (0.0, 0.6):
            outputs = translate(model, tokenizer, list(sources), 4, alpha)
            triples = list(zip(greedy, outputs, references))
            row = {
                "command": COMMAND,
                "commit": git_commit(),
                "hardware": hardware_in_words(torch.device("cpu"), "fp32"),
                "model": "bundled",
                "split": split,
                "sentences": len(references),
                "beam": 4,
                "alpha": alpha,
                "greedy.right": sum(one == right for one, _, right in triples),
                "greedy.bleu": round(bleu(greedy, references).score, 2),
                "bleu": round(bleu(outputs, references).score, 2),
                "changed": sum(one != other for one, other, _ in triples),
                "repaired": sum(one != right == other for one, other, right in triples),
                "spoiled": sum(one == right != other for one, other, right in triples),
            }
            rows.append(row)
    return rows


@dataclass(frozen=True)
class Options:
    """Measure the searches of chapter 15, and write their records."""

    folder: Path | None = None  # data/runs where not given


def main(options: Options) -> None:
    """Search, score, record."""
    torch.set_num_threads(1)
    hard = random.Random(0).sample(read_bundled("hard"), 200)
    pairs = [(example.source, example.target) for example in hard]
    validation = list(read_corpus("tatoeba", "validation"))
    rows = {
        "searches-hard": rows_of("bundled", pairs, HARD, split="hard"),
        "searches": rows_of("tatoeba", validation, SEARCHES, split="validation"),
        "searches-repairs": repairs(),
    }
    for name, of_file in rows.items():
        path = options.folder / f"{name}.json" if options.folder else name
        write_rows(path, of_file)


if __name__ == "__main__":
    main(tyro.cli(Options))
