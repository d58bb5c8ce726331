"""What the corpora look like, in numbers, for notebook 10; kept in data/runs/corpora.json.

    python -m transformer.experiments.corpora

Lengths, rare words and ratios of lengths of the training texts (of newstest2014 the test); tokens a
sentence by the size of the vocabulary; what stands on both sides of Tatoeba's splits. Downloads the
corpora where TRANSFORMER_MIRROR names no folder that has them. A few minutes on one core; no
sentence is kept.
"""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from transformer.corpora import corpus_paths, read_corpus
from transformer.corpora.splits import fold, tatoeba_lines
from transformer.corpora.tokenizer import WORD, Tokenizer
from transformer.experiments.runner import Job, run_command, run_jobs

SEED = 2017
TRAINED_ON = ("bundled", "multi30k", "tatoeba", "europarl")
SIZES = (300, 500, 1000, 2000, 4000, 8000, 16_000, 32_000)
LONGEST = 60  # words; longer sentences count as this long
LANGUAGES = ("English", "German")


def text_row(corpus: str, language: str, texts: list[str], held_out=()) -> dict:
    """Lengths in words, different words, those that occur once, those of held_out never seen."""
    sentences = [WORD.findall(text) for text in texts]
    lengths = np.array([len(words) for words in sentences])
    count = Counter(word for words in sentences for word in words)
    row = {
        "what": "text",
        "corpus": corpus,
        "language": language,
        "sentences": len(texts),
        "words": int(lengths.sum()),
        "mean": lengths.mean(),
        "types": len(count),
        "once": sum(times == 1 for times in count.values()) / len(count),
        "lengths": np.bincount(lengths.clip(max=LONGEST), minlength=LONGEST + 1)
        / len(texts),
    }
    others = [word for text in held_out for word in WORD.findall(text)]
    unseen = sum(word not in count for word in others)
    return row | ({"unseen": unseen / len(others)} if others else {})


def pairs_row(corpus: str, pairs: list) -> dict:
    """How the two lengths of a pair compare, and what would be filtered."""
    lengths = np.array([[len(WORD.findall(text)) for text in pair] for pair in pairs])
    some = lengths[(lengths > 0).all(axis=1)]
    ratio = some.max(axis=1) / some.min(axis=1)
    long = some.min(axis=1) >= 5
    folded = Counter(fold(source) for source, _ in pairs)
    return {
        "what": "pairs",
        "corpus": corpus,
        "pairs": len(pairs),
        "empty": 1 - len(some) / len(pairs),
        "same": sum(source == target for source, target in pairs) / len(pairs),
        "repeated": sum(folded[fold(source)] > 1 for source, _ in pairs) / len(pairs),
        "over 2": (ratio > 2).mean(),
        "long over 2": (long & (ratio > 2)).sum() / long.sum(),
    }


def vocabulary_rows(corpus: str, train: list, held_out: list) -> Iterator[dict]:
    """Tokens in a sentence not trained on, and the types that each language uses, by V."""
    texts = [text for pair in train for text in pair]
    others = [text for pair in held_out for text in pair]
    words = sum(len(WORD.findall(text)) for text in others) / len(others)
    for V in SIZES:
        tokenizer = Tokenizer.train(texts, V)
        if tokenizer.vocab_size < V:  # nothing is left to merge
            return
        english, german = (
            {i for ids in tokenizer.encode_all(side) for i in ids}
            for side in zip(*train)
        )
        tokens = sum(map(len, tokenizer.encode_all(others))) / len(others)
        yield {
            "what": "vocabulary",
            "corpus": corpus,
            "V": V,
            "tokens": tokens,
            "words": words,
            "English only": len(english - german),
            "both": len(english & german),
            "German only": len(german - english),
        }


def one_changed(text: str) -> list[tuple]:
    """A folded sentence once for each of its words, with that word left open."""
    words = text.split()
    return [(*words[:i], None, *words[i + 1 :]) for i in range(len(words))]


def split_rows(draws: int = 2000) -> Iterator[dict]:
    """What a test of lines drawn from Tatoeba shares with the rest; what the split here does."""
    train, test = (read_corpus("tatoeba", split) for split in ("train", "test"))
    mixed = tatoeba_lines(corpus_paths("tatoeba", "train")[0])
    random.Random(SEED).shuffle(mixed)
    for name, held_out, rest in (
        ("lines", mixed[:draws], mixed[draws:]),
        ("groups", test, train),
    ):
        row = {
            "what": "splits",
            "corpus": "tatoeba",
            "drawn": name,
            "test": len(held_out),
        }
        for side, language in enumerate(LANGUAGES):
            known = {fold(pair[side]) for pair in rest}
            row[f"{language} in training"] = np.mean(
                [fold(pair[side]) in known for pair in held_out]
            )
        english = [
            fold(pair[0]) for pair in held_out if len(fold(pair[0]).split()) >= 4
        ]
        near = {form for pair in rest for form in one_changed(fold(pair[0]))}
        row["one word apart"] = np.mean(
            [not near.isdisjoint(one_changed(text)) for text in english]
        )
        yield row


def measure(folder: Path, device: str) -> list[dict]:
    """All rows of the record, fractions to four places."""
    rows = []
    for corpus in (*TRAINED_ON, "newstest2014"):
        splits = ["test"] if corpus == "newstest2014" else ["train", "validation"]
        train, *held_out = (read_corpus(corpus, split) for split in splits)
        for side, language in enumerate(LANGUAGES):
            texts, *others = (
                [pair[side] for pair in split] for split in (train, *held_out)
            )
            rows.append(text_row(corpus, language, texts, *others))
        rows.append(pairs_row(corpus, train))
        if held_out:
            rows += vocabulary_rows(corpus, train, held_out[0])
    return [
        {name: plain(value) for name, value in row.items()}
        for row in [*rows, *split_rows()]
    ]


def plain(value):
    """Fractions as JSON takes them, rounded."""
    fraction = isinstance(value, float | np.floating | np.ndarray)
    return np.round(value, 4).tolist() if fraction else value


def main(record: Path | None = None) -> None:
    """Count what notebook 10 tells of the corpora.

    Args:
        record: the file of results (data/runs/corpora.json where not given)
    """
    job = Job(
        "corpora", measure, {"seed": SEED}, "python -m transformer.experiments.corpora"
    )
    run_jobs([job], Path("runs"), ["cpu"], record or "corpora")


if __name__ == "__main__":
    run_command(main)
