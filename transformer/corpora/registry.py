"""The corpora known by name: their files, checksums, licences, languages, splits."""

import csv
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from transformer.core.names import did_you_mean
from transformer.corpora.bundled import BUNDLED_SPLITS, bundled_file, bundled_pairs
from transformer.corpora.lines import parallel_pairs
from transformer.corpora.moses import wmt14_pairs
from transformer.corpora.splits import tatoeba_pairs
from transformer.corpora.treebanks import tree_pairs


@dataclass(frozen=True)
class File:
    """Where a file of a corpus comes from, and how to know that it is whole."""

    url: str  # its address, or with member that of the .tgz archive that holds it
    sha256: str | None = None  # of its bytes; with member, of the text in it
    lines: int | None = (
        None  # with member: take only so many; otherwise: so many there must be
    )
    member: str | None = None  # its name inside the archive
    md5: str | None = None  # of the archive

    @property
    def known_hash(self) -> str | None:
        """The checksum of what the address sends, as pooch writes it; None where none is known."""
        return self.sha256 if self.member is None else self.md5 and f"md5:{self.md5}"


@dataclass(frozen=True)
class Corpus:
    """A corpus: its files, what may be done with it, whom to cite, how its pairs are read.

    splits maps a split to its files, registered in FILES or lying on this machine. languages: codes
    of the first and the second side, "trees" for trees in brackets. read(paths, split) yields the
    pairs of these files. cut: where several splits share files, the first and the last pair
    (excluded) of each.
    """

    splits: dict[str, tuple]
    licence: str
    citation: str
    languages: tuple[str, str] = ("en", "de")
    read: Callable = parallel_pairs
    cut: dict[str, tuple] = field(default_factory=dict)


HERE = Path(__file__).parent
# The others' files correspond line by line.
READERS: dict[str, Callable] = {
    "tatoeba": tatoeba_pairs,
    "wmt14": wmt14_pairs,
    "wmt14_eighth": partial(wmt14_pairs, every=8),
    "treebank_nltk": tree_pairs,
    "treebank_craft": tree_pairs,
}


def read_files() -> dict[str, File]:
    """The files of files.tsv, each named as it lies in the download folder, or in a mirror."""
    with open(HERE / "files.tsv", encoding="utf8", newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    return {
        row["file"]: File(
            row["url"],
            row["sha256"] or None,
            int(row["lines"]) if row["lines"] else None,
            row["member"] or None,
            row["md5"] or None,
        )
        for row in rows
    }


def read_corpora() -> dict[str, Corpus]:
    """The corpora of corpora.toml, and the bundled one."""
    found = {
        "bundled": Corpus(
            {split: (bundled_file(split),) for split in BUNDLED_SPLITS},
            "that of this project",
            "made by the grammar in data/grammar",
            read=bundled_pairs,
        )
    }
    with open(HERE / "corpora.toml", "rb") as file:
        tables = tomllib.load(file)
    for name, entry in tables.items():
        splits = {split: tuple(files) for split, files in entry["splits"].items()}
        cut = {split: (*ends, None)[:2] for split, ends in entry.get("cut", {}).items()}
        first, second = entry.get("languages", ("en", "de"))
        found[name] = Corpus(
            splits,
            entry["licence"],
            entry["citation"],
            (first, second),
            READERS.get(name, parallel_pairs),
            cut,
        )
    return found


FILES = read_files()
CORPORA = read_corpora()
BUILT_IN = tuple(CORPORA)
TREEBANKS = tuple(
    name for name, corpus in CORPORA.items() if corpus.languages[1] == "trees"
)


def register_corpus(
    name: str,
    languages: tuple[str, str] = ("en", "de"),
    licence: str = "none stated",
    citation: str = "none stated",
    **splits: tuple,
) -> None:
    """Make two text files a split, whose lines correspond (plain or .gz), a corpus with a name.

    register_corpus("mine", languages=("en", "fr"), train=("a.en", "a.fr"), test=("b.en", "b.fr")).
    Splits called train, validation and test are what training and scoring ask for. The name then
    goes wherever a corpus is asked for; the files are read when it is. Raises ValueError for a
    built-in name, for no splits, and where a split is not two files.
    """
    if name in BUILT_IN:
        raise ValueError(f"{name} is a built-in corpus: choose another name for yours")
    if not splits:
        raise ValueError(
            f"the corpus {name} needs files: for example train=('a.en', 'a.fr')"
        )
    for split, files in splits.items():
        if isinstance(files, (str, Path)) or len(files) != 2:
            raise ValueError(
                f"{split} of the corpus {name} must be two files, one a language"
            )
    if isinstance(languages, str) or len(languages) != 2:
        raise ValueError(
            f"languages of the corpus {name} must be two codes, not {languages!r}"
        )
    own = {split: tuple(map(Path, files)) for split, files in splits.items()}
    CORPORA[name] = Corpus(own, licence, citation, (languages[0], languages[1]))


def corpus_named(name: str) -> Corpus:
    """The corpus registered under a name; ValueError, naming those there are, for another."""
    if name not in CORPORA:
        known = ", ".join(CORPORA)
        raise ValueError(
            f"unknown corpus {name!r}{did_you_mean(name, CORPORA)}: choose one of {known}, "
            "or give your own files"
        )
    return CORPORA[name]


def languages_of(name: str, reverse: bool = False) -> tuple[str, str]:
    """The codes of a corpus's source and target language; with reverse the other way round."""
    first, second = corpus_named(name).languages
    return (second, first) if reverse else (first, second)
