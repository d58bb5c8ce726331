"""The bundled corpus, data/bundled: pairs that a grammar wrote, with what it knows about them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.core.files import data_folder
from transformer.core.names import did_you_mean
from transformer.corpora.lines import stream_lines

BUNDLED_SPLITS = ("train", "validation", "test", "hard")


@dataclass(frozen=True)
class Pronoun:
    """A possessive pronoun: word indices of it, its antecedent, all nouns it might refer to."""

    index: int
    antecedent: int
    candidates: tuple[int, ...]


@dataclass(frozen=True)
class Example:
    """A pair of the bundled corpus with its gold annotation.

    Words are what `transformer.corpora.tokenizer.WORD` finds. alignment holds (English word, German word) index
    pairs; pronouns holds pairs of `Pronoun`, English and German.
    """

    source: str
    target: str
    alignment: frozenset
    pronouns: tuple
    constructions: tuple


def parse_pronoun(text: str) -> Pronoun:
    """A `Pronoun` from `index:antecedent:candidate,candidate,...`."""
    index, antecedent, candidates = text.split(":")
    return Pronoun(
        int(index), int(antecedent), tuple(int(c) for c in candidates.split(","))
    )


def parse_example(line: str) -> Example:
    """An `Example` from one TAB-separated line of data/bundled/*.tsv."""
    source, target, alignment, pronouns, constructions = line.split("\t")
    links = frozenset(
        tuple(int(i) for i in link.split("-")) for link in alignment.split()
    )
    both = [tuple(map(parse_pronoun, item.split("/"))) for item in pronouns.split()]
    return Example(source, target, links, tuple(both), tuple(constructions.split(",")))


def bundled_file(split: str) -> Path:
    """The file of one split of the bundled corpus; ValueError where it has no such split."""
    if split not in BUNDLED_SPLITS:
        known = ", ".join(BUNDLED_SPLITS)
        raise ValueError(
            f"bundled has no split {split!r}{did_you_mean(split, BUNDLED_SPLITS)}: "
            f"choose one of {known}"
        )
    return data_folder() / "bundled" / f"{split}.tsv"


def read_bundled(split: str) -> list[Example]:
    """The `Example`s of one split of the bundled corpus: train, validation, test or hard."""
    return [parse_example(line) for line in stream_lines(bundled_file(split))]


def read_aligned() -> list[tuple[str, str, set]]:
    """[(English, German, {(English word, German word), ...}), ...] of data/aligned.tsv: everyday
    sentences of the project, aligned by hand.
    """
    rows = [line.split("\t") for line in stream_lines(data_folder() / "aligned.tsv")]
    return [
        (source, target, {tuple(map(int, link.split("-"))) for link in links.split()})
        for source, target, links in rows
    ]


def partners(example: Example, language: str = "en") -> dict[int, list[int]]:
    """{word in this language: the words of the other sentence that belong to it}."""
    found: dict[int, list[int]] = {}
    for english, german in sorted(example.alignment):
        here, there = (english, german) if language == "en" else (german, english)
        found.setdefault(here, []).append(there)
    return found


def bundled_pairs(paths: Sequence[Path], split: str) -> Iterator[tuple[str, str]]:
    """(English, German) of each `Example`."""
    return ((example.source, example.target) for example in read_bundled(split))
