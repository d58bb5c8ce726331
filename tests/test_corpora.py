"""Corpora: files, the bundled corpus, the registry, your own, splits, mirrored real data."""

import gzip
import hashlib
import itertools
import os
import random
import re
import subprocess
import sys
import tracemalloc
import urllib.parse
import zipfile

import pytest

from transformer import corpora
from transformer.core.files import data_folder
from transformer.core.records import read_rows
from transformer.corpora import bundled, download, registry, splits, treebanks
from transformer.corpora.moses import detokenizer
from transformer.corpora.splits import (
    fold,
    groups,
    hold_out,
    numbered_tatoeba,
    shapes,
)
from transformer.corpora.tokenizer import WORD, Tokenizer
from transformer.runs import encoded

# Files of one sentence a line


def read_lines(path):
    return list(corpora.stream_lines(path))


@pytest.mark.parametrize(
    "content, lines",
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),  # no newline at the end
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),  # byte order mark
        (b"a\n\nb\n\n", ["a", "", "b", ""]),  # empty lines count
        (
            "a\u2028b\x85c\x0bd\x0ce\u2029f\rg\nh\n".encode(),
            ["a\u2028b\x85c\x0bd\x0ce\u2029f\rg", "h"],
        ),
        (b"\n", [""]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_lines(tmp_path, content, lines, packed):
    path = tmp_path / ("x.gz" if packed else "x.txt")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert read_lines(path) == read_lines(str(path)) == lines


def test_own_files(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n", encoding="utf8")
    (tmp_path / "b").write_text("eins\nzwei", encoding="utf8")
    assert corpora.read_parallel(tmp_path / "a", tmp_path / "b") == [
        ("one", "eins"),
        ("two", "zwei"),
    ]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_empty_file(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(
        ValueError, match="a is empty: it should hold one sentence a line"
    ):
        read_lines(tmp_path / "a")


def test_invalid_utf8_names_file_and_line(tmp_path):
    (tmp_path / "old.de").write_bytes("gut\nschön\n".encode("latin1"))
    with pytest.raises(
        ValueError, match=r"old\.de, line 2, is not UTF-8: convert the file"
    ):
        read_lines(tmp_path / "old.de")


def test_missing_file(tmp_path):
    with pytest.raises(
        FileNotFoundError, match="no file .*nothing.txt: check the name"
    ):
        read_lines(tmp_path / "nothing.txt")


def test_lines_are_read_one_at_a_time(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n" + "three\n" * 100_000)
    tracemalloc.start()
    assert [next(lines := corpora.stream_lines(tmp_path / "a")), next(lines)] == [
        "one",
        "two",
    ]
    assert sum(1 for _ in lines) == 100_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150_000, f"{peak:,} bytes were held"


@pytest.mark.parametrize(
    "lines, said",
    [
        (("one\n" * 7, "eins\n" * 4), "a has 7 lines and .*b has 4"),
        (("one\n" * 3, "eins\n" * 8), "a has 3 lines and .*b has 8"),
    ],
)
def test_parallel_files_are_streamed_and_counted(tmp_path, lines, said):
    for name, text in zip("ab", lines):
        (tmp_path / name).write_text(text)
    pairs = corpora.stream_parallel(tmp_path / "a", tmp_path / "b")
    assert list(itertools.islice(pairs, 3)) == [("one", "eins")] * 3
    with pytest.raises(ValueError, match=said):
        list(pairs)


def test_damaged_gzip(tmp_path):
    whole = gzip.compress(random.Random(0).randbytes(5000).hex().encode())
    for damaged in (whole[:2000], b"no gzip at all", whole[:-6] + b"wrong!", b""):
        (tmp_path / "a.gz").write_bytes(damaged)
        with pytest.raises(ValueError, match="a.gz is (not a whole gzip file|empty)"):
            read_lines(tmp_path / "a.gz")


# The bundled corpus


@pytest.mark.parametrize(
    "split, size",
    [("train", 20_000), ("validation", 1000), ("test", 1000), ("hard", 1000)],
)
def test_bundled_splits(split, size):
    examples = corpora.read_bundled(split)
    assert len(examples) == size
    assert corpora.read_corpus("bundled", split) == [
        (e.source, e.target) for e in examples
    ]


def test_bundled_annotation_stays_inside_its_sentence():
    for e in corpora.read_bundled("hard"):
        S, T = len(WORD.findall(e.source)), len(WORD.findall(e.target))
        assert e.alignment and all(i < S and j < T for i, j in e.alignment)
        for english, german in e.pronouns:
            for pronoun, n in ((english, S), (german, T)):
                assert pronoun.antecedent in pronoun.candidates
                assert all(0 <= i < n for i in (pronoun.index, *pronoun.candidates))


def test_parse_example():
    line = "The cat lost its ball.\tDie Katze verlor ihren Ball.\t0-0 1-1 2-2\t3:1:1,0/3:1:1\tsimple,possessive"
    e = bundled.parse_example(line)
    assert (e.source, e.target) == (
        "The cat lost its ball.",
        "Die Katze verlor ihren Ball.",
    )
    assert e.alignment == {(0, 0), (1, 1), (2, 2)} and e.constructions == (
        "simple",
        "possessive",
    )
    assert e.pronouns == ((corpora.Pronoun(3, 1, (1, 0)), corpora.Pronoun(3, 1, (1,))),)


def test_the_package_knows_where_its_data_lies(monkeypatch, tmp_path):
    assert (data_folder() / "bundled" / "train.tsv").is_file()
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path))
    assert download.download_folder() == tmp_path
    monkeypatch.delenv("TRANSFORMER_DOWNLOADS")
    assert download.download_folder().parts[-1] in ("downloads", "annotated-attention")


def test_what_is_not_downloaded_needs_no_downloader():
    """Images with a GPU often come without pooch."""
    code = """if True:
        import sys
        from transformer.corpora import read_corpus
        assert len(read_corpus("bundled", "test")) == 1000
        assert not {"pooch", "requests", "filelock", "sacremoses", "torch"} & set(sys.modules)"""
    subprocess.run([sys.executable, "-c", code], check=True)


# Corpora of one's own


@pytest.fixture
def mine(monkeypatch, tmp_path):
    """A corpus of two files a split, English and French, one of them packed."""
    monkeypatch.setattr(registry, "CORPORA", dict(registry.CORPORA))
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.fr.gz").write_bytes(gzip.compress(b"un\ndeux\n"))
    files = (tmp_path / "a.en", str(tmp_path / "a.fr.gz"))
    corpora.register_corpus("mine", train=files, test=files, languages=("en", "fr"))
    return files


def test_a_registered_corpus_is_read_like_any_other(mine, monkeypatch, tmp_path):
    assert corpora.read_corpus("mine", "test") == [("one", "un"), ("two", "deux")]
    assert corpora.read_corpus("mine", "train", reverse=True) == [
        ("un", "one"),
        ("deux", "two"),
    ]
    assert (
        corpora.languages_of("mine")
        == ("en", "fr")
        == corpora.languages_of("mine", reverse=True)[::-1]
    )
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path / "downloads"))
    tokenizer = Tokenizer.train(["a"], 259)
    assert len(encoded.prepare_corpus(tokenizer, "mine", "train")) == 2
    with pytest.raises(
        ValueError, match="mine has no split 'validation': choose one of train, test"
    ):
        corpora.read_corpus("mine", "validation")
    mine[0].unlink()
    with pytest.raises(FileNotFoundError, match="no file .*a.en: check the name"):
        corpora.read_corpus("mine", "test")


@pytest.mark.parametrize(
    "name, splits, said",
    [
        (
            "bundled",
            {"train": ("a", "b")},
            "bundled is a built-in corpus: choose another name",
        ),
        ("mine", {}, "the corpus mine needs files"),
        ("mine", {"train": "a.en"}, "train of the corpus mine must be two files"),
        (
            "mine",
            {"train": ("a", "b"), "languages": "en"},
            "languages of the corpus mine must be two codes, not 'en'",
        ),
        (
            "mine",
            {"train": ("a", "b", "c")},
            "train of the corpus mine must be two files",
        ),
    ],
)
def test_what_cannot_be_registered(name, splits, said):
    with pytest.raises(ValueError, match=said):
        corpora.register_corpus(name, **splits)
    assert "mine" not in registry.CORPORA


def test_languages():
    assert corpora.languages_of("multi30k") == ("en", "de") and corpora.languages_of(
        "tatoeba", True
    ) == ("de", "en")
    assert all(
        corpora.languages_of(name) == ("en", "trees") for name in corpora.TREEBANKS
    )
    with pytest.raises(ValueError, match="unknown corpus 'multi31k'"):
        corpora.languages_of("multi31k")


# The registry


def test_the_registry_is_consistent():
    used = {
        file
        for corpus in corpora.CORPORA.values()
        for files in corpus.splits.values()
        for file in files
    }
    own = set(corpora.CORPORA["bundled"].splits.values())
    assert used - {file for files in own for file in files} == set(registry.FILES)
    for name, entry in registry.FILES.items():
        assert (
            urllib.parse.urlparse(entry.url).scheme == "https"
            and len(name.split("/")) == 2
        )
        assert entry.sha256 is None or re.fullmatch("[0-9a-f]{64}", entry.sha256)
        assert (
            entry.md5 is None
            or re.fullmatch("[0-9a-f]{32}", entry.md5)
            and entry.member
        )
        assert entry.sha256 or entry.lines, f"nothing says whether {name} is whole"
    sums = [entry.sha256 for entry in registry.FILES.values() if entry.sha256]
    assert len(set(sums)) == len(sums), "two files cannot have one checksum"
    for corpus in corpora.CORPORA.values():
        assert corpus.licence and corpus.citation and "test" in corpus.splits
        assert set(corpus.cut) <= set(corpus.splits) and len(corpus.languages) == 2


@pytest.mark.parametrize("name", ["tatoeba", "europarl", "treebank_nltk"])
def test_cuts_do_not_overlap(name):
    cuts = sorted(corpora.CORPORA[name].cut.values())
    assert cuts[0][0] == 0 and all(a[1] == b[0] for a, b in zip(cuts, cuts[1:]))


def test_unknown_corpus_and_split():
    with pytest.raises(
        ValueError,
        match=r"unknown corpus 'multi31k' \(did you mean multi30k\?\): choose one of bundled, multi30k, tatoeba, .*, or",
    ):
        corpora.read_corpus("multi31k", "train")
    with pytest.raises(
        ValueError,
        match="multi30k has no split 'hard': choose one of train, validation, test, ",
    ):
        corpora.read_corpus("multi30k", "hard")
    with pytest.raises(
        ValueError,
        match="bundled has no split 'exam': choose one of train, validation, test, hard",
    ):
        corpora.stream_corpus("bundled", "exam")


def test_text_of_windows_is_named_as_it_is(tmp_path):
    """UTF-16 read as latin1 would have a NUL between any two letters."""
    (tmp_path / "a.txt").write_bytes("Guten Tag.\n".encode("utf16"))
    with pytest.raises(
        ValueError,
        match="a.txt, line 1, is not UTF-8: convert the file, .* iconv -f utf16 -t utf8",
    ):
        list(corpora.stream_lines(tmp_path / "a.txt"))


def test_segments():
    lines = [
        '<doc docid="1"> ',
        '<seg id="1">A &amp; B</seg>',
        "<hl>",
        "<p>no sentence</p>",
        ' <seg id="2">  two  \t blanks\u00a0kept </seg> ',
        '<seg id="3"></seg>',
    ]
    found = [
        line.decode()
        for line in download.segments(line.encode() + b"\n" for line in lines)
    ]
    assert found == ["A & B\n", "two blanks\u00a0kept\n", "\n"]


# Splits that do not leak


def folded(pairs, side):
    return {fold(pair[side]) for pair in pairs}


def test_fold():
    assert fold("  Don't  STOP!") == fold("don t stop") == "don t stop" and fold(
        "Straße"
    ) == fold("STRASSE")
    assert fold("a b") != fold("ab")


def components(pairs):
    """Groups by spreading from pair to pair until nothing changes."""
    number = list(range(len(pairs)))
    changed = True
    while changed:
        changed = False
        for i, one in enumerate(pairs):
            for j, other in enumerate(pairs):
                if number[i] < number[j] and any(
                    fold(a) == fold(b) for a, b in zip(one, other)
                ):
                    number[j], changed = number[i], True
    return number


def test_groups_are_connected_components():
    for seed in range(8):
        chance = random.Random(seed)
        pairs = [
            (f"e{chance.randrange(30)}", f"g{chance.randrange(30)}.") for _ in range(35)
        ]
        found, expected = groups(pairs), components(pairs)
        same = {(a, b) for a, b in zip(found, expected)}
        assert len(same) == len(set(found)) == len(set(expected))


def test_the_two_sides_are_kept_apart():
    """An English sentence that is spelt like a German one says nothing."""
    assert len(set(groups([("Hand", "x"), ("y", "Hand")]))) == 2


def test_shapes_name_the_pairs_of_a_group():
    lines = [
        ("Stop!", "Halt!"),
        ("Stop.", "Hör auf!"),
        ("Give up.", "Hör auf."),
        ("We sing.", "Wir singen."),
        ("Run!", "Lauf!"),
    ]
    assert shapes(lines) == {"0-0 0-1 1-1": 1, "0-0": 2}


def test_numbered_tatoeba_has_the_groups_of_its_record():
    pairs = numbered_tatoeba()
    assert len(pairs) == 169_813
    assert shapes(pairs) == {
        row["shape"]: row["groups"] for row in read_rows("repeats")
    }


def test_held_out_pairs_share_nothing():
    chance = random.Random(0)
    pairs = [
        (f"E{chance.randrange(900)}", f"g {chance.randrange(900)}") for _ in range(1000)
    ]
    for seed in range(5):
        arranged = hold_out(pairs, 100, seed)
        held, rest = arranged[:100], arranged[100:]
        for side in (0, 1):
            assert len(folded(held, side)) == 100, "two held-out pairs of one group"
            assert not folded(held, side) & folded(rest, side)
        number = dict(zip(pairs, groups(pairs)))
        groups_held = {number[pair] for pair in held}
        assert sorted(rest) == sorted(
            pair for pair in pairs if number[pair] not in groups_held
        )
        assert hold_out(pairs, 100, seed) == arranged
    assert hold_out(pairs, 100, 1) != hold_out(pairs, 100, 2)


def test_tatoeba_is_read_from_its_archive(tmp_path):
    rows = [f"Number {i}.\tNummer {i}.\tCC-BY 2.0" for i in range(5000)]
    with zipfile.ZipFile(tmp_path / "deu-eng.zip", "w") as archive:
        archive.writestr("deu.txt", "\n".join([*rows, ""]))
    pairs = list(splits.tatoeba_pairs([tmp_path / "deu-eng.zip"], "train"))
    assert len(pairs) == 5000 and set(pairs) == {
        (f"Number {i}.", f"Nummer {i}.") for i in range(5000)
    }
    assert pairs != sorted(pairs)


# Sentences with their trees


def test_trees_are_cut_apart():
    text = "( (S (NP (NN a) )\n   (. .) ))\n\n( (X\t(NN b\u00a0c)) )"
    assert list(treebanks.trees_in(text)) == [
        "( (S (NP (NN a) ) (. .) ))",
        "( (X (NN b\u00a0c)) )",
    ]
    assert list(treebanks.trees_in(" \n")) == []
    for wrong in ("( (S (NN a))", "(S (NN a))) (X (NN b))"):
        with pytest.raises(ValueError, match="brackets do not match in a tree"):
            list(treebanks.trees_in(wrong))


def test_the_sentence_of_a_tree():
    tree = "( (S (NP (DT A) (NP (-NONE- *T*-1)) (NN 1\\/2) ) (-LRB- -LRB-) (NN b\u00a0c) (-RRB- -RCB-) (. .)) )"
    assert treebanks.sentence_of(tree) == "A 1/2 ( b\u00a0c } ."


def test_a_treebank_of_several_files_in_their_order(tmp_path):
    with zipfile.ZipFile(tmp_path / "treebank.zip", "w") as archive:
        for name, text in {
            "combined/wsj_0002.mrg": "( (S (NN b)) )",
            "combined/wsj_0001.mrg": "( (S (NN a)) )\n( (S\n (NN c)) )",
            "combined/README": "( (S (NN no)) )",
            "tagged/wsj_0001.pos": "no/NN",
        }.items():
            archive.writestr(f"treebank/{name}", text)
    assert list(treebanks.stream_trees(tmp_path / "treebank.zip", "test")) == [
        f"( (S (NN {word})) )" for word in "acb"
    ]


# Text that was cut into words


@pytest.mark.parametrize(
    "cut, plain, language",
    [
        (
            "It &apos;s a well ##AT##-##AT## known fact .",
            "It's a well-known fact.",
            "en",
        ),
        (
            "&quot; No , &quot; she said &#91; 1 &#93; ; 5 % &amp; more",
            '"No," she said [1]; 5% & more',
            "en",
        ),
        ("„ Das ist gut “ , sagte er .", "„Das ist gut“, sagte er.", "de"),
        ("", "", "en"),
    ],
)
def test_detokenize(cut, plain, language):
    assert detokenizer(language)(cut) == plain


# Real data

MIRROR = os.environ.get("TRANSFORMER_MIRROR", "")


def needs(file):
    """Skip where the mirror lacks a file: tests download nothing."""
    return pytest.mark.skipif(
        not MIRROR or not os.path.isfile(os.path.join(MIRROR, file)),
        reason=f"TRANSFORMER_MIRROR names no folder that holds {file}",
    )


@pytest.mark.parametrize(
    "file", [pytest.param(file, marks=needs(file)) for file in registry.FILES]
)
def test_mirrored_files_are_the_registered_ones(file):
    assert download.damage(os.path.join(MIRROR, file), registry.FILES[file]) is None


SIZES = {
    ("multi30k", "train"): 29_000,
    ("multi30k", "validation"): 1014,
    ("multi30k", "test"): 1000,
    ("multi30k", "test_2017_flickr"): 1000,
    ("multi30k", "test_2017_mscoco"): 461,
    ("multi30k", "test_2018_flickr"): 1071,
    ("tatoeba", "validation"): 2000,
    ("tatoeba", "test"): 2000,
    ("tatoeba", "train"): 161_852,
    ("newstest2013", "test"): 3000,
    ("newstest2014", "test"): 3003,
    ("wmt14", "train"): 4_468_840,
    ("wmt14", "validation"): 3000,
    ("wmt14", "test"): 3003,
    ("wmt14_eighth", "train"): 558_605,
    ("wmt14_eighth", "validation"): 3000,
    ("wmt14_eighth", "test"): 3003,
    ("europarl", "train"): 18_000,
    ("europarl", "validation"): 1000,
    ("europarl", "test"): 1000,
    ("treebank_nltk", "train"): 2998,
    ("treebank_nltk", "validation"): 451,
    ("treebank_nltk", "test"): 465,
    ("treebank_craft", "train"): 18_951,
    ("treebank_craft", "validation"): 2780,
    ("treebank_craft", "test"): 9099,
}


def test_sizes_of_all_splits_are_known():
    known = {
        (name, split)
        for name, corpus in corpora.CORPORA.items()
        for split in corpus.splits
    }
    assert set(SIZES) == {(name, split) for name, split in known if name != "bundled"}


@pytest.mark.system
@pytest.mark.parametrize(
    "name, split",
    [
        pytest.param(name, split, marks=needs(corpora.CORPORA[name].splits[split][0]))
        for name, split in SIZES
    ],
)
def test_sizes(name, split):
    count = 0
    for source, target in corpora.stream_corpus(name, split):
        assert source and target
        count += 1
    assert count == SIZES[name, split]


AS_READ = (
    3,
    {
        "multi30k": "f4d7469377f2",
        "tatoeba": "0dea57746b57",
        "newstest2013": "8bc856c449fb",
        "newstest2014": "ad29f29d7a40",
        "europarl": "555ef2219f6c",
        "treebank_nltk": "16c9b8b31dad",
        "treebank_craft": "5b6969073d7d",
    },
)


@pytest.mark.system
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs(corpora.CORPORA[name].splits["test"][0]))
        for name in AS_READ[1]
    ],
)
def test_reading_is_raised_when_the_same_files_give_other_sentences(name):
    """Corpora encoded by earlier versions would be taken for current ones. After a change raise it and AS_READ."""
    digest = hashlib.sha256()
    for split in [
        split
        for split in ("train", "validation", "test")
        if split in corpora.CORPORA[name].splits
    ]:
        for pair in itertools.islice(corpora.stream_corpus(name, split), 300):
            digest.update("\t".join(pair).encode() + b"\n")
    assert (encoded.READING, digest.hexdigest()[:12]) == (AS_READ[0], AS_READ[1][name])


@needs("multi30k/train.en.gz")
def test_multi30k_round_trip():
    tokenizer = Tokenizer.train(
        [text for pair in corpora.read_corpus("bundled", "test") for text in pair], 600
    )
    for pair in corpora.read_corpus("multi30k", "validation"):
        for text in pair:
            assert tokenizer.decode(tokenizer.encode(text)) == text
            words = tokenizer.word_of_each_piece(text)
            assert set(range(len(WORD.findall(text)))) <= set(
                words
            ) and words == sorted(words)


@pytest.mark.system
@needs("tatoeba/deu-eng.zip")
def test_tatoeba_does_not_leak():
    parts = [
        corpora.read_corpus("tatoeba", split)
        for split in ("train", "validation", "test")
    ]
    for side in (0, 1):
        train, validation, test = (folded(part, side) for part in parts)
        assert len(validation) == len(test) == 2000, "a sentence counts twice"
        assert not train & validation and not train & test and not validation & test
    lengths = [len(source) for source, _ in parts[0]]
    middle = len(lengths) // 2
    assert sum(lengths[:middle]) == pytest.approx(sum(lengths[middle:]), rel=0.02), (
        "still sorted by length"
    )
