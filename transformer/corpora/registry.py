"""The corpora known by name: their files, checksums, licences, languages, splits."""

import csv
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

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
    lines: int | None = None  # with member: take only so many; otherwise: so many there must be
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


FILES_TABLE = Path(__file__).with_name("files.tsv")


def read_files(path: Path = FILES_TABLE) -> dict[str, File]:
    """The files of a table, each named as it lies in the download folder, or in a mirror."""
    with open(path, encoding="utf8", newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    return {row["file"]: File(row["url"], row["sha256"] or None,
                              int(row["lines"]) if row["lines"] else None,
                              row["member"] or None, row["md5"] or None) for row in rows}


FILES = read_files()
WMT_USE = "none stated; distributed for research by the Workshop on Statistical Machine Translation"
NEWSTEST_2013 = ("newstest/newstest2013.en-de.en", "newstest/newstest2013.en-de.de")
NEWSTEST_2014 = ("newstest/newstest2014.en-de.en", "newstest/newstest2014.en-de.de")
EUROPARL = "europarl_20k/europarl-v7.first20000.de-en"
MULTI30K = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
MULTI30K |= {name: name for name in ("test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")}
THREE = ("train", "validation", "test")
CORPORA = {
    "bundled": Corpus(
        {split: (bundled_file(split),) for split in BUNDLED_SPLITS},
        "that of this project", "made by the grammar in data/grammar", read=bundled_pairs),
    "multi30k": Corpus(
        {split: (f"multi30k/{name}.en.gz", f"multi30k/{name}.de.gz")
         for split, name in MULTI30K.items()},
        "research and education, non-commercial",
        "Elliott, Frank, Sima'an, Specia: Multi30K, 2016; "
        "its later test sets: Elliott et al., 2017; Barrault et al., 2018"),
    "tatoeba": Corpus(
        dict.fromkeys(THREE, ("tatoeba/deu-eng.zip",)), "CC BY 2.0",
        "the contributors of tatoeba.org, through manythings.org/anki (13 May 2018)",
        read=tatoeba_pairs,
        cut={"validation": (0, 2000), "test": (2000, 4000), "train": (4000, None)}),
    "newstest2013": Corpus({"test": NEWSTEST_2013}, WMT_USE, "Bojar et al.: Findings of WMT 2013"),
    "newstest2014": Corpus({"test": NEWSTEST_2014}, WMT_USE, "Bojar et al.: Findings of WMT 2014"),
    "wmt14": Corpus(
        {"train": ("wmt14/train.en", "wmt14/train.de"),
         "validation": NEWSTEST_2013, "test": NEWSTEST_2014},
        WMT_USE, "Bojar et al.: Findings of WMT 2014; prepared by Luong, Pham, Manning, 2015",
        read=wmt14_pairs),
    "europarl": Corpus(
        dict.fromkeys(THREE, (f"{EUROPARL}.en.gz", f"{EUROPARL}.de.gz")),
        "none stated", "Koehn: Europarl, 2005",
        cut={"train": (0, 18_000), "validation": (18_000, 19_000), "test": (19_000, 20_000)}),
    "treebank_nltk": Corpus(
        dict.fromkeys(THREE, ("treebank_nltk/treebank.zip",)), "non-commercial use only",
        "Marcus, Santorini, Marcinkiewicz: Building a large annotated corpus of English, 1993; "
        "the sample in NLTK",
        ("en", "trees"), tree_pairs,  # whole files: to 0136, 0162, 0199
        cut={"train": (0, 2998), "validation": (2998, 3449), "test": (3449, 3914)}),
    "treebank_craft": Corpus(
        dict.fromkeys(THREE, ("treebank_craft/craft_treebank_penn.tar.gz",)), "CC BY 3.0",
        "Verspoor et al., 2012, and the other authors of CRAFT, "
        "the Colorado Richly Annotated Full-Text corpus",
        ("en", "trees"), tree_pairs),
}
BUILT_IN = tuple(CORPORA)
TREEBANKS = tuple(name for name, corpus in CORPORA.items() if corpus.languages[1] == "trees")


def register_corpus(name: str, languages: tuple[str, str] = ("en", "de"),
                    licence: str = "none stated", citation: str = "none stated",
                    **splits: tuple) -> None:
    """Make two text files a split, whose lines correspond (plain or .gz), a corpus with a name.

    register_corpus("mine", languages=("en", "fr"), train=("a.en", "a.fr"), test=("b.en", "b.fr")).
    Splits called train, validation and test are what training and scoring ask for. The name then
    goes wherever a corpus is asked for; the files are read when it is. Raises ValueError for a
    built-in name, for no splits, and where a split is not two files.
    """
    if name in BUILT_IN:
        raise ValueError(f"{name} is a built-in corpus: choose another name for yours")
    if not splits:
        raise ValueError(f"the corpus {name} needs files: for example train=('a.en', 'a.fr')")
    for split, files in splits.items():
        if isinstance(files, (str, Path)) or len(files) != 2:
            raise ValueError(f"{split} of the corpus {name} must be two files, one a language")
    own = {split: tuple(map(Path, files)) for split, files in splits.items()}
    CORPORA[name] = Corpus(own, licence, citation, (languages[0], languages[1]))


def corpus_named(name: str) -> Corpus:
    """The corpus registered under a name; ValueError, naming those there are, for another."""
    if name not in CORPORA:
        known = ", ".join(CORPORA)
        raise ValueError(f"unknown corpus {name!r}: choose one of {known}, or give your own files")
    return CORPORA[name]


def languages_of(name: str, reverse: bool = False) -> tuple[str, str]:
    """The codes of a corpus's source and target language; with reverse the other way round."""
    first, second = corpus_named(name).languages
    return (second, first) if reverse else (first, second)
