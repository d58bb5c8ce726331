"""The bundled corpus, data/bundled: English-German pairs of a grammar, with what it knows about them."""

from dataclasses import dataclass

from transformer.corpora.lines import stream_lines
from transformer.files import data_folder



BUNDLED_SPLITS = ("train", "validation", "test", "hard")


@dataclass(frozen=True)
class Pronoun:
    """A possessive pronoun: word indices of it, of its antecedent and of all nouns it might refer to."""

    index: int
    antecedent: int
    candidates: tuple


@dataclass(frozen=True)
class Example:
    """A pair of the bundled corpus with its gold annotation.

    Words are what `WORD` finds. alignment holds (English word, German word) index pairs; pronouns
    holds pairs of `Pronoun`, English and German.
    """

    source: str
    target: str
    alignment: frozenset
    pronouns: tuple
    constructions: tuple


def parse_pronoun(text):
    """A `Pronoun` from `index:antecedent:candidate,candidate,...`."""
    index, antecedent, candidates = text.split(":")
    return Pronoun(int(index), int(antecedent), tuple(int(c) for c in candidates.split(",")))


def parse_example(line):
    """An `Example` from one TAB-separated line of data/bundled/*.tsv."""
    source, target, alignment, pronouns, constructions = line.split("\t")
    links = frozenset(tuple(int(i) for i in link.split("-")) for link in alignment.split())
    both = tuple(tuple(parse_pronoun(side) for side in item.split("/")) for item in pronouns.split())
    return Example(source, target, links, both, tuple(constructions.split(",")))


def bundled_file(split):
    """The file of one split of the bundled corpus; ValueError where it has no such split."""
    if split not in BUNDLED_SPLITS:
        raise ValueError(f"bundled has no split {split!r}: choose one of {', '.join(BUNDLED_SPLITS)}")
    return data_folder() / "bundled" / f"{split}.tsv"


def read_bundled(split):
    """The `Example`s of one split of the bundled corpus: train, validation, test or hard."""
    return [parse_example(line) for line in stream_lines(bundled_file(split))]
