"""Corpora: sentence pairs by name, bundled with the package, downloaded, or your own."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from transformer.core.names import did_you_mean
from transformer.core.white_space import without_blanks
from transformer.corpora.bundled import Example, Pronoun, read_aligned, read_bundled
from transformer.corpora.download import corpus_file
from transformer.corpora.lines import read_parallel, stream_lines, stream_parallel
from transformer.corpora.registry import (
    CORPORA,
    TREEBANKS,
    corpus_named,
    languages_of,
    register_corpus,
)

__all__ = [
    "CORPORA",
    "Example",
    "Pronoun",
    "TREEBANKS",
    "corpus_paths",
    "languages_of",
    "read_aligned",
    "read_bundled",
    "read_corpus",
    "read_parallel",
    "register_corpus",
    "stream_corpus",
    "stream_lines",
    "stream_parallel",
    "without_blanks",
]


def corpus_paths(name: str, split: str) -> list[Path]:
    """The files that a split of a corpus is read from, downloaded if need be.

    Raises ValueError for an unknown name or split.
    """
    splits = corpus_named(name).splits
    if split not in splits:
        raise ValueError(
            f"{name} has no split {split!r}{did_you_mean(split, splits)}: choose one of {', '.join(splits)}"
        )
    return [corpus_file(name, file) for file in splits[split]]


def stream_corpus(
    name: str, split: str, reverse: bool = False
) -> Iterator[tuple[str, str]]:
    """An iterator over the (source, target) pairs of a split, with reverse (target, source).

    Of a treebank the source is a sentence, the target its tree as text in brackets. Of a corpus of
    two files one pair at a time is in memory. Pairs with a blank side are left out, and a warning
    counts them. ValueError for an unknown corpus or split.
    """
    paths, corpus = corpus_paths(name, split), corpus_named(name)
    lines = islice(corpus.read(paths, split), *corpus.cut.get(split, (0, None)))
    pairs = without_blanks(lines, f"pairs of {name}, {split},")
    return ((target, source) for source, target in pairs) if reverse else pairs


def read_corpus(name: str, split: str, reverse: bool = False) -> list[tuple[str, str]]:
    """[(source, target), ...] of one split (train, validation, test and others) of a corpus.

    See `stream_corpus`.
    """
    return list(stream_corpus(name, split, reverse))
