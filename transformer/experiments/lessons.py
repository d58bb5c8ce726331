"""Lessons on "its" for the everyday model, of which chapter 16 gives one on its page.

    python -m transformer.experiments.lessons        half an hour of one core

The chapter's 400 pairs, or as many of the grammar's without "its", are trained for 60 updates, with
three seeds each. A row holds how many owners that are in no lesson get the right possessive, and
BLEU on Tatoeba's test set, which tells what was forgotten. The first row has the model as it is and
what "its" becomes in both corpora.
"""

import random
from collections import Counter
from pathlib import Path

from transformer.core.scores import bleu
from transformer.corpora import read_corpus
from transformer.data import encode_pairs
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.models.pretrained import load
from transformer.models.search import translate
from transformer.runs.training import TrainingConfig, train
from transformer.teaching.possessives import (
    FEMININE,
    MASCULINE,
    lessons,
    stem,
    with_its,
    without,
)

COMMAND = "python -m transformer.experiments.lessons"
THINGS = ("ball", "way", "game")
HELD_OUT = {*FEMININE, *MASCULINE}


def right_stems(model, tokenizer) -> dict[str, int]:
    """How many sentences about owners in no lesson get the right possessive, of 39 each."""
    found = {}
    for nouns, wanted in (FEMININE, "ihr"), (MASCULINE, "sein"):
        english = [
            f"The {noun} lost its {thing}." for thing in THINGS for noun in nouns
        ]
        german = translate(model, tokenizer, english)
        found[f"right.{wanted}"] = sum(stem(line) == wanted for line in german)
        found[f"neither.{wanted}"] = sum(stem(line) == "neither" for line in german)
    return found


def forgotten(model, tokenizer) -> dict[str, float]:
    """BLEU of greedy translations of Tatoeba's test set."""
    sources, references = zip(*read_corpus("tatoeba", "test"))
    outputs = translate(model, tokenizer, list(sources), beam=1)
    return {"test.bleu": round(bleu(outputs, references, language="de").score, 2)}


def counted() -> dict[str, int]:
    """What "its" becomes in each corpus."""
    found = {}
    for corpus in ("bundled", "tatoeba"):
        pairs = read_corpus(corpus, "train")
        its = with_its(pairs)
        found[f"{corpus}.pairs"], found[f"{corpus}.its"] = len(pairs), len(its)
        for kind, n in Counter(stem(german) for _, german in its).items():
            found[f"{corpus}.{kind}"] = n
    return found


def pairs_of(kind: str, seed: int) -> list[tuple[str, str]]:
    """400 pairs of the grammar, with "its" or without."""
    pairs = list(read_corpus("bundled", "train"))
    random.Random(seed).shuffle(pairs)
    pairs = without(pairs, HELD_OUT)
    if kind == "its":
        return lessons(pairs, n=200)
    return without(pairs, ["its"])[:400]


def taught(kind: str, seed: int) -> dict:
    """A row: the model after 60 updates of such lessons."""
    model, tokenizer = load("tatoeba")
    encoded = encode_pairs(tokenizer, pairs_of(kind, seed))
    settings = TrainingConfig(
        updates=60, batch_tokens=600, learning_rate=6e-4, warmup=10, seed=seed
    )
    train(model, encoded, settings)
    found = right_stems(model, tokenizer) | forgotten(model, tokenizer)
    return {"lessons": kind, "seed": seed, **found}


def measure(folder: Path, device: str) -> list[dict]:
    """The row without lessons, then three seeds of each kind."""
    model, tokenizer = load("tatoeba")
    first = right_stems(model, tokenizer) | forgotten(model, tokenizer)
    rows = [{"lessons": "none", **first, **counted()}]
    return rows + [
        taught(kind, seed) for kind in ("its", "others") for seed in (1, 2, 3)
    ]


def main(record: Path | None = None) -> None:
    """Teach the everyday model what "its" becomes, and note what it learned and forgot.

    Args:
        record: the file of results (data/runs/lessons.json where not given)
    """
    job = Job("lessons", measure, command=COMMAND)
    run_jobs([job], Path("runs"), ["cpu"], record or "lessons")


if __name__ == "__main__":
    run_command(main)
