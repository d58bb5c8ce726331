"""The corpora known by name: their files, checksums, licences, languages, splits."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
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


MULTI30K_SHA256 = {
    "train.en": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.de": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "val.en": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.de": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "test_2016_flickr.en": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.de": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2017_flickr.en": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_flickr.de": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    "test_2017_mscoco.en": "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
    "test_2017_mscoco.de": "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
    "test_2018_flickr.en": "ef4f4844037d4c5dea75c9a8ed5fd78905967a26f67c255e230cc9780032654d",
    "test_2018_flickr.de": "ddd0130c7d97482dc5197a02141dae8dd79f20f03586c480d675c09a32daf608",
}
MULTI30K = (
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw"
)
MULTI30K_FILES = {
    f"multi30k/{name}.gz": File(f"{MULTI30K}/{name}.gz", sha256)
    for name, sha256 in MULTI30K_SHA256.items()
}
WMT13 = partial(File, "https://statmt.org/wmt13/test.tgz", md5="48eca5d02f637af44e85186847141f67")
WMT14 = partial(File, "https://statmt.org/wmt14/test-full.tgz",
                md5="a8cd784e006feb32ac6f3d9ec7eb389a")
STANFORD = "https://nlp.stanford.edu/projects/nmt/data/wmt14.en-de"
EUROPARL = partial(File, "https://www.statmt.org/europarl/v7/de-en.tgz", lines=20_000)
# A file is named as it lies in the download folder, or in a mirror: folder, slash, file.
FILES = {
    **MULTI30K_FILES,
    "newstest/newstest2013.en-de.en": WMT13(
        member="newstest2013-src.en.sgm",
        sha256="ace268a1d9724ca76f6d8e5c720ffdc08f01bdce45630ed8b269dc7918e1c16e"),
    "newstest/newstest2013.en-de.de": WMT13(
        member="newstest2013-src.de.sgm",
        sha256="d7ea35ab91ff3709e03ad9cb6bf5b4f2cc775cd2d72efd5254c4aec5e69663ca"),
    "newstest/newstest2014.en-de.en": WMT14(
        member="newstest2014-deen-src.en.sgm",
        sha256="7294bccf2879a97b3706b95c9595f1459617a8ee7130d5d8581c910e69736971"),
    "newstest/newstest2014.en-de.de": WMT14(
        member="newstest2014-deen-ref.de.sgm",
        sha256="ae5d110486bc33d7175e9e28c7d0051eb3e5fcd2166dd93371089852c091a20e"),
    "wmt14/train.en": File(f"{STANFORD}/train.en", lines=4_468_840),  # no checksum of it is known
    "wmt14/train.de": File(f"{STANFORD}/train.de", lines=4_468_840),
    "europarl_20k/europarl-v7.first20000.de-en.en.gz": EUROPARL(
        member="europarl-v7.de-en.en",
        sha256="4fc27e152d74d7c587b9dca8aa785da898f5995a3432155245aa064cc1862969"),
    "europarl_20k/europarl-v7.first20000.de-en.de.gz": EUROPARL(
        member="europarl-v7.de-en.de",
        sha256="c40e45eeb5b92156422a9c9781bafdab1dbbb525b09c0f410ad21943d205cafb"),
    "tatoeba/deu-eng.zip": File(
        "https://raw.githubusercontent.com/rioyshky/translation/"
        "de48b7027f7318d77010a6e08ed928c10748c23d/deu-eng.zip",
        sha256="b7688f84f99fa33c17397c14d8bd9cef1fdeb2ee0bf50074767023aee8926e28"),
    "treebank_nltk/treebank.zip": File(
        "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/treebank.zip",
        sha256="9da92d76c3666cfb6cddeaed0f7e86b344cce0f0928a286d439e555f19c37399"),
    "treebank_craft/craft_treebank_penn.tar.gz": File(
        "https://github.com/UCDenver-ccp/CRAFT/archive/refs/tags/v5.0.2.tar.gz",
        member="penn/*.tree",
        sha256="d605aff6832d7aea36696b1482e5daa6dc1464a1d9cad864b4ac8c9fc9bc023b"),
}

WMT_USE = "none stated; distributed for research by the Workshop on Statistical Machine Translation"
NEWSTEST_2013 = ("newstest/newstest2013.en-de.en", "newstest/newstest2013.en-de.de")
NEWSTEST_2014 = ("newstest/newstest2014.en-de.en", "newstest/newstest2014.en-de.de")
EUROPARL_FILES = (
    "europarl_20k/europarl-v7.first20000.de-en.en.gz",
    "europarl_20k/europarl-v7.first20000.de-en.de.gz",
)
MULTI30K_SPLITS = {
    "train": "train",
    "validation": "val",
    "test": "test_2016_flickr",
    "test_2017_flickr": "test_2017_flickr",
    "test_2017_mscoco": "test_2017_mscoco",
    "test_2018_flickr": "test_2018_flickr",
}
THREE = ("train", "validation", "test")
CORPORA = {
    "bundled": Corpus(
        {split: (bundled_file(split),) for split in BUNDLED_SPLITS},
        "that of this project", "made by the grammar in data/grammar", read=bundled_pairs),
    "multi30k": Corpus(
        {split: (f"multi30k/{name}.en.gz", f"multi30k/{name}.de.gz")
         for split, name in MULTI30K_SPLITS.items()},
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
        dict.fromkeys(THREE, EUROPARL_FILES), "none stated", "Koehn: Europarl, 2005",
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
