"""Section 5.1: reading corpora, byte-pair encoding, batches by tokens."""

import gzip
import json
import os
import random
import socket
import urllib.parse

import pytest
import torch

from transformer import data
from transformer.data import WORD, Batch, Tokenizer, collate, encode_pairs, pad, padding_share, token_batches


@pytest.fixture(scope="module")
def pairs():
    return data.read_corpus("bundled", "train")[:1500]


@pytest.fixture(scope="module")
def tokenizer(pairs):
    return Tokenizer.train([text for pair in pairs for text in pair], 600)


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """A corpus "toy" in the registry, its mirror with the right files, and an empty download folder."""
    mirror = tmp_path / "mirror" / "toy"
    mirror.mkdir(parents=True)
    for name, text in (("a.en.gz", "one\ntwo\n"), ("a.de.gz", "eins\nzwei\n")):
        (mirror / name).write_bytes(gzip.compress(text.encode()))
    sums = {path.name: data.sha256_of(path) for path in mirror.iterdir()}
    toy = data.Corpus("http://127.0.0.1:9/{file}", {"train": ("a.en.gz", "a.de.gz")}, sums, "anyone, for anything")
    monkeypatch.setitem(data.CORPORA, "toy", toy)
    monkeypatch.setenv("TRANSFORMER_MIRROR", str(mirror.parent))
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path / "downloads"))
    return mirror


# Files of one sentence a line

@pytest.mark.parametrize("content, lines", [
    (b"a\nb\n", ["a", "b"]),
    (b"a\nb", ["a", "b"]),                                      # no newline at the end
    (b"a\r\nb\r\n", ["a", "b"]),
    (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),                        # byte order mark
    (b"a\n\nb\n\n", ["a", "", "b", ""]),                        # empty lines count
    ("a\u2028b\x85c\x0bd\x0ce\u2029f\rg\nh\n".encode(), ["a\u2028b\x85c\x0bd\x0ce\u2029f\rg", "h"]),
    (b"\n", [""]),
])
@pytest.mark.parametrize("packed", [False, True])
def test_lines(tmp_path, content, lines, packed):
    path = tmp_path / ("x.gz" if packed else "x.txt")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert data.read_lines(path) == data.read_lines(str(path)) == lines


def test_own_files(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n", encoding="utf8")
    (tmp_path / "b").write_text("eins\nzwei", encoding="utf8")
    assert data.read_parallel(tmp_path / "a", tmp_path / "b") == [("one", "eins"), ("two", "zwei")]


def test_files_of_different_lengths(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    (tmp_path / "b").write_text("eins\n")
    with pytest.raises(ValueError, match=r"a has 2 lines and .*b has 1: line n of one must translate"):
        data.read_parallel(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_empty_file(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match="a is empty: it should hold one sentence a line"):
        data.read_lines(tmp_path / "a")


def test_invalid_utf8_names_file_and_line(tmp_path):
    (tmp_path / "old.de").write_bytes("gut\nschön\n".encode("latin1"))
    with pytest.raises(ValueError, match=r"old\.de, line 2, is not UTF-8: convert the file"):
        data.read_lines(tmp_path / "old.de")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file .*nothing.txt: check the name"):
        data.read_lines(tmp_path / "nothing.txt")


def test_damaged_gzip(tmp_path):
    whole = gzip.compress(random.Random(0).randbytes(5000))
    for damaged in (whole[:2000], b"no gzip at all", whole[:-6] + b"wrong!", b""):
        (tmp_path / "a.gz").write_bytes(damaged)
        with pytest.raises(ValueError, match="a.gz is (not a whole gzip file|empty)"):
            data.read_lines(tmp_path / "a.gz")


# The bundled corpus

@pytest.mark.parametrize("split, size", [("train", 20_000), ("validation", 1000), ("test", 1000), ("hard", 1000)])
def test_bundled_splits(split, size):
    examples = data.read_bundled(split)
    assert len(examples) == size
    assert data.read_corpus("bundled", split) == [(e.source, e.target) for e in examples]


def test_bundled_annotation_stays_inside_its_sentence():
    for e in data.read_bundled("hard"):
        S, T = len(WORD.findall(e.source)), len(WORD.findall(e.target))
        assert e.alignment and all(i < S and j < T for i, j in e.alignment)
        for english, german in e.pronouns:
            for pronoun, n in ((english, S), (german, T)):
                assert pronoun.antecedent in pronoun.candidates
                assert all(0 <= i < n for i in (pronoun.index, *pronoun.candidates))


def test_parse_example():
    line = "The cat lost its ball.\tDie Katze verlor ihren Ball.\t0-0 1-1 2-2\t3:1:1,0/3:1:1\tsimple,possessive"
    e = data.parse_example(line)
    assert (e.source, e.target) == ("The cat lost its ball.", "Die Katze verlor ihren Ball.")
    assert e.alignment == {(0, 0), (1, 1), (2, 2)} and e.constructions == ("simple", "possessive")
    assert e.pronouns == ((data.Pronoun(3, 1, (1, 0)), data.Pronoun(3, 1, (1,))),)


def test_words():
    assert WORD.findall("Don't go, Müller_2!") == ["Don", "'", "t", "go", ",", "Müller_2", "!"]


# Corpora with an address

def test_unknown_corpus_and_split():
    with pytest.raises(ValueError, match="unknown corpus 'multi31k': choose one of bundled, multi30k, or"):
        data.read_corpus("multi31k", "train")
    with pytest.raises(ValueError, match="multi30k has no split 'hard': choose one of train, validation, test"):
        data.read_corpus("multi30k", "hard")
    with pytest.raises(ValueError, match="bundled has no split 'exam': choose one of train, validation, test, hard"):
        data.read_corpus("bundled", "exam")


def test_every_file_has_a_checksum():
    for corpus in data.CORPORA.values():
        files = {file for pair in corpus.splits.values() for file in pair}
        assert files == set(corpus.sha256) and "{file}" in corpus.url and corpus.licence
        assert urllib.parse.urlparse(corpus.url).scheme in ("http", "https")


def test_mirror(registry):
    assert data.read_corpus("toy", "train") == [("one", "eins"), ("two", "zwei")]


def test_sha256(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")                      # the example of FIPS 180-2
    assert data.sha256_of(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize("damage", [b"", b"<html>please log in</html>", None])
def test_corrupt_download(registry, damage):
    whole = (registry / "a.de.gz").read_bytes()
    (registry / "a.de.gz").write_bytes(whole[:-1] if damage is None else damage)
    with pytest.raises(ValueError, match=r"a\.de\.gz is damaged \(its SHA-256 is not the registered one\): delete it"):
        data.read_corpus("toy", "train")


def test_no_network(registry, monkeypatch, tmp_path, capsys):
    def refuse(*arguments, **named):
        raise OSError("network is unreachable")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("TRANSFORMER_MIRROR", str(tmp_path / "empty"))
    with pytest.raises(OSError, match=r"could not download the corpus toy from http://127.0.0.1:9/a.en.gz .*"
                                      r"set TRANSFORMER_MIRROR .*--corpus bundled always works"):
        data.read_corpus("toy", "train")
    assert not list((tmp_path / "downloads").rglob("*.*")), "half a download was left behind"
    assert "licence: anyone, for anything" in capsys.readouterr().out


def test_an_earlier_download_is_used(registry, monkeypatch, tmp_path):
    (tmp_path / "downloads").mkdir()
    registry.rename(tmp_path / "downloads" / "toy")
    monkeypatch.delenv("TRANSFORMER_MIRROR")
    assert data.read_corpus("toy", "train") == [("one", "eins"), ("two", "zwei")]


MIRROR = os.environ.get("TRANSFORMER_MIRROR", "")
needs_multi30k = pytest.mark.skipif(not os.path.isdir(os.path.join(MIRROR, "multi30k")),
                                    reason="TRANSFORMER_MIRROR names no folder that holds multi30k/")


@needs_multi30k
@pytest.mark.parametrize("split, size", [("train", 29_000), ("validation", 1014), ("test", 1000)])
def test_multi30k(split, size):
    assert len(data.read_corpus("multi30k", split)) == size


@needs_multi30k
def test_multi30k_round_trip(tokenizer):
    for pair in data.read_corpus("multi30k", "validation"):
        for text in pair:
            assert tokenizer.decode(tokenizer.encode(text)) == text
            words = tokenizer.word_of_each_piece(text)
            assert set(range(len(WORD.findall(text)))) <= set(words) and words == sorted(words)


# Byte-pair encoding

def random_text(chance):
    """Characters of every kind: letters, marks, white space, emoji, the marks typed as text."""
    kinds = ["abcdefgh", " ", "  ", "\n", "\t", "äöüß", "…“”'-_.,", "0123456789²", "日本語", "🙂👩‍🚀", "e\u0301",
             "\u2028\x00\x1c", "مرحبا", ["</s>", "<s>", "<pad>"]]
    return "".join(chance.choice(chance.choice(kinds)) for _ in range(chance.randrange(12)))


NASTY = ["", " ", "   ", "\n", " a", "a ", "a  b", "</s>", "<pad><s></s>", "🙂", "日本語", "e\u0301", "\u2028",
         "\r\n", "\x00", "don't ... stop_it _", "²x", "\ufeffa", "\U00010d4a\u200d"]


@pytest.mark.parametrize("text", NASTY)
def test_round_trip(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_round_trip_of_random_texts(tokenizer):
    texts = [random_text(random.Random(seed)) for seed in range(1000)]
    encoded = tokenizer.encode_all(texts)
    assert [tokenizer.decode(ids) for ids in encoded] == texts
    assert encoded == [tokenizer.encode(text) for text in texts]
    assert not {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id} & {i for ids in encoded for i in ids}


def test_marks_are_left_out(tokenizer):
    ids = tokenizer.encode("A cat.")
    assert tokenizer.decode([tokenizer.bos_id, *ids, tokenizer.eos_id, tokenizer.pad_id]) == "A cat."
    assert tokenizer.decode([]) == "" and (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2)


def test_decoding_takes_away_nothing_but_the_first_space(tokenizer):
    without_space = tokenizer.encode("a. b")[1:]                # a model may begin with any token
    assert tokenizer.decode(without_space) == ". b"


def by_hand(tokenizer, text):
    """Token ids by applying the merges, in the order they were learned, to bytes, without the library."""
    model = json.loads(tokenizer.bpe.to_str())["model"]
    merges = [tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in model["merges"]]
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letter = {byte: chr(byte) for byte in printable}            # bytes without a sign of their own get one from 256 on
    letter.update({byte: chr(256 + n) for n, byte in enumerate(b for b in range(256) if b not in letter)})
    ids = []
    for word in WORD.findall(text):
        symbols = [letter[byte] for byte in (" " + word).encode()]
        for left, right in merges:
            for i in range(len(symbols) - 2, -1, -1):
                if symbols[i:i + 2] == [left, right]:
                    symbols[i:i + 2] = [left + right]
        ids += [model["vocab"][symbol] for symbol in symbols]
    return ids


def test_encoding_equals_merging_by_hand(tokenizer):
    for text in ("The gardener opened the bottle", "Der Gärtner öffnete die Flasche", "unbelievably größer 2024 naïve"):
        assert tokenizer.encode(text) == by_hand(tokenizer, text)


def test_first_merge_is_the_most_frequent_pair():
    tokenizer = Tokenizer.train(["land hand sand man"] * 3, 260)
    assert tokenizer.vocab_size == 260 and tokenizer.bpe.id_to_token(259) == "an"


def test_small_and_exhausted_vocabularies():
    with pytest.raises(ValueError, match=r"vocab_size must be at least 259 \(256 bytes and the marks\), not 258"):
        Tokenizer.train(["a"], 258)
    assert Tokenizer.train(["a b"], 5000).vocab_size == 261      # " a" and " b", then nothing is left to merge


def test_training_is_deterministic(tokenizer, pairs):
    again = Tokenizer.train([text for pair in pairs for text in pair], 600)
    assert again.bpe.to_str() == tokenizer.bpe.to_str()


@pytest.mark.parametrize("text, groups", [
    ("Größe!", ["Größe", "!"]),
    ("日本", ["日本"]),                                           # three bytes a character
    ("a  🙂\n", ["a", "🙂"]),                                    # white space of its own, at the end too
    ("don't...", ["don", "'", "t", ".", ".", "."]),
])
def test_word_of_each_piece(tokenizer, text, groups):
    words, ids = tokenizer.word_of_each_piece(text), tokenizer.encode(text)
    assert len(words) == len(ids) and words == sorted(words)
    for index, word in enumerate(groups):
        assert tokenizer.decode([i for i, w in zip(ids, words) if w == index]).strip() == word


def test_every_word_has_a_piece(tokenizer):
    for text in [*NASTY, *(random_text(random.Random(seed)) for seed in range(500))]:
        words, n = tokenizer.word_of_each_piece(text), len(WORD.findall(text))
        assert set(range(n)) <= set(words) <= set(range(n + 1)), repr(text)


def test_pieces(tokenizer):
    assert "".join(tokenizer.pieces("The cat, 2 öfter.")) == " The cat, 2 öfter."
    assert tokenizer.pieces("日") == [" ", "\ufffd", "\ufffd", "\ufffd"]


def test_save_and_load(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert all(loaded.encode(text) == tokenizer.encode(text) for text in NASTY)     # "</s>" stays text


def test_damaged_tokenizer(tmp_path):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(FileNotFoundError, match="no file .*tokenizer.json: a model's folder needs the tokenizer"):
        Tokenizer.load(path)
    path.write_text('{"version": "1.0"')
    with pytest.raises(ValueError, match=r"tokenizer.json is not a tokenizer .*: copy it again"):
        Tokenizer.load(path)


def test_tokenizer_without_marks(tmp_path):
    from tokenizers import Tokenizer as Bare
    from tokenizers import models

    Bare(models.BPE()).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match="lacks the marks <pad> <s> </s>"):
        Tokenizer.load(tmp_path / "tokenizer.json")


# Marks and batches

def test_encoded_pairs_have_their_marks(tokenizer):
    (source, target), = encode_pairs(tokenizer, [("A cat.", "")])
    assert source == [*tokenizer.encode("A cat."), 2] and target == [1, *tokenizer.encode(""), 2]


def test_gold_is_the_input_one_later():
    batch = Batch(torch.tensor([[5, 2]]), torch.tensor([[1, 7, 8, 2]]))
    assert batch.decoder_input.tolist() == [[1, 7, 8]] and batch.gold.tolist() == [[7, 8, 2]]
    moved = batch.to("cpu")
    assert torch.equal(moved.target, batch.target) and torch.equal(moved.source, batch.source)


def test_padding():
    batch = collate([([5, 2], [1, 9, 9, 2]), ([5, 6, 2], [1, 2])], pad_id=0)
    assert batch.source.tolist() == [[5, 2, 0], [5, 6, 2]] and batch.target.tolist() == [[1, 9, 9, 2], [1, 2, 0, 0]]
    assert pad([[], []], 0).shape == (2, 0) and pad([(3,)], 0).dtype == pad([[]], 0).dtype == torch.int64


def test_empty_batches():
    for make in (lambda: pad([], 0), lambda: collate([])):
        with pytest.raises(ValueError, match="a batch needs at least one sentence"):
            make()
    with pytest.raises(ValueError, match="no sentence pairs to make batches of"):
        token_batches([], 100)


def random_pairs(n=400, longest=30, seed=0):
    chance = random.Random(seed)
    return [([3] * chance.randint(1, longest), [3] * chance.randint(2, longest)) for _ in range(n)]


@pytest.mark.parametrize("batch_tokens", [30, 64, 500, 10**6])
def test_batches_hold_every_pair_once_and_keep_the_limit(batch_tokens):
    encoded = random_pairs()
    batches = token_batches(encoded, batch_tokens)
    assert sorted(i for batch in batches for i in batch) == list(range(400)) and all(batches)
    assert max(len(batch) * max(len(side) for i in batch for side in encoded[i]) for batch in batches) <= batch_tokens


def test_batches_are_full():
    """Pairs of one length: as many as fit, and only the last batch may be smaller."""
    sizes = sorted(map(len, token_batches([([3] * 10, [3] * 16)] * 100, 160)))
    assert sizes == [10] * 10 and len(token_batches([([3] * 10, [3] * 16)] * 100, 159)) == 12


def test_a_pair_longer_than_a_batch_stands_alone():
    encoded = [([3] * 4, [3] * 4)] * 6 + [([3] * 50, [3] * 4), ([3] * 4, [3] * 60)]
    batches = token_batches(encoded, 12)
    assert [6] in batches and [7] in batches
    assert all(len(batch) <= 3 for batch in batches)


def test_batches_follow_from_the_seed():
    encoded = random_pairs()
    state = random.getstate(), torch.get_rng_state()
    assert token_batches(encoded, 200, seed=3) == token_batches(encoded, 200, seed=3)
    assert token_batches(encoded, 200, seed=3) != token_batches(encoded, 200, seed=4)
    assert random.getstate() == state[0] and torch.equal(torch.get_rng_state(), state[1]), "it used others' chance"


def test_padding_share_equals_counting():
    encoded = random_pairs()
    batches = token_batches(encoded, 300)
    built = [collate([encoded[i] for i in batch]) for batch in batches]
    places = torch.cat([side.flatten() for batch in built for side in (batch.source, batch.target)])
    assert padding_share(encoded, batches) == pytest.approx((places == 0).double().mean().item(), abs=1e-12)


def test_similar_lengths_save_padding(tokenizer, pairs):
    encoded = encode_pairs(tokenizer, pairs)
    batches = token_batches(encoded, 1000)
    order = random.Random(0).sample(range(len(encoded)), len(encoded))
    mixed = [order[i:i + 30] for i in range(0, len(order), 30)]
    assert padding_share(encoded, batches) < 0.15 < 0.3 < padding_share(encoded, mixed)


def test_the_package_knows_where_its_data_lies(monkeypatch, tmp_path):
    assert (data.data_folder() / "bundled" / "train.tsv").is_file()
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path))
    assert data.download_folder() == tmp_path
    monkeypatch.delenv("TRANSFORMER_DOWNLOADS")
    assert data.download_folder().parts[-1] in ("downloads", "annotated-attention")
