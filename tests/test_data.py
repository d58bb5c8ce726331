"""Section 5.1: reading files, byte-pair encoding, encoded pairs on disk, batches by tokens."""

import functools
import gzip
import itertools
import json
import os
import random
import re
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from transformer import data
from transformer.data import (
    WORD,
    Batch,
    EncodedPairs,
    Tokenizer,
    collate,
    encode_pairs,
    encode_to_folder,
    epoch_batches,
    pad,
    padding_share,
    token_batches,
)


@pytest.fixture(scope="module")
def pairs():
    return data.read_corpus("bundled", "train")[:1500]


@pytest.fixture(scope="module")
def tokenizer(pairs):
    return Tokenizer.train([text for pair in pairs for text in pair], 600)


# Files of one sentence a line

def read_lines(path):
    return list(data.stream_lines(path))


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
    assert read_lines(path) == read_lines(str(path)) == lines


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
        read_lines(tmp_path / "a")


def test_invalid_utf8_names_file_and_line(tmp_path):
    (tmp_path / "old.de").write_bytes("gut\nschön\n".encode("latin1"))
    with pytest.raises(ValueError, match=r"old\.de, line 2, is not UTF-8: convert the file"):
        read_lines(tmp_path / "old.de")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file .*nothing.txt: check the name"):
        read_lines(tmp_path / "nothing.txt")


def test_lines_are_read_one_at_a_time(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n" + "three\n" * 100_000)
    tracemalloc.start()
    assert [next(lines := data.stream_lines(tmp_path / "a")), next(lines)] == ["one", "two"]
    assert sum(1 for _ in lines) == 100_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150_000, f"{peak:,} bytes were held"


@pytest.mark.parametrize("lines, said", [(("one\n" * 7, "eins\n" * 4), "a has 7 lines and .*b has 4"),
                                         (("one\n" * 3, "eins\n" * 8), "a has 3 lines and .*b has 8")])
def test_parallel_files_are_streamed_and_counted(tmp_path, lines, said):
    for name, text in zip("ab", lines):
        (tmp_path / name).write_text(text)
    pairs = data.stream_parallel(tmp_path / "a", tmp_path / "b")
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


@pytest.mark.parametrize("batch_tokens, start", [(0, 0), (100, -1)])
def test_batches_out_of_range(batch_tokens, start):
    with pytest.raises(ValueError, match=f"batch_tokens must be .* and start .*, not {batch_tokens} and {start}"):
        list(epoch_batches([([3, 2], [1, 3, 2])], batch_tokens, start=start))


def test_one_string_is_no_list_of_sentences(tokenizer):
    for read in (tokenizer.encode_all, lambda texts: Tokenizer.train(texts, 300)):
        with pytest.raises(ValueError, match="sentences must be a list of strings, not one string: put it in brackets"):
            read("The cat sleeps.")
    with pytest.raises(ValueError, match="sentences must be strings; number 2 is a int"):
        tokenizer.encode_all(["The cat sleeps.", 3])


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


@pytest.mark.parametrize("batch_tokens", [30, 500, 25_000])
def test_a_batch_never_exceeds_its_tokens_whatever_the_lengths(batch_tokens):
    for seed in range(30):
        chance = random.Random(seed)
        longest = chance.choice((1, 3, 40, 900, 60_000))
        lengths = [(chance.randint(1, longest), chance.randint(2, longest + 1)) for _ in range(chance.randint(1, 300))]
        encoded = [(range(a), range(b)) for a, b in lengths]
        batches = token_batches(encoded, batch_tokens, seed)
        assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
        for batch in batches:
            assert len(batch) == 1 or len(batch) * max(max(lengths[i]) for i in batch) <= batch_tokens


def cheapest(source, target, batch_tokens, price):
    """The least cost of cutting ordered pairs into batches, by trying every cut."""
    @functools.cache
    def best(end):
        if end == 0:
            return 0
        costs = []
        for start in range(end):
            S, T, count = max(source[start:end]), max(target[start:end]), end - start
            if count == 1 or max(S, T) * count <= batch_tokens:
                costs.append(best(start) + (S + T) * count + price)
        return min(costs)

    return best(len(source))


@pytest.mark.parametrize("price", [0, 30, 200])
def test_cuts_are_the_cheapest(price):
    for seed in range(20):
        chance = np.random.RandomState(seed)
        source, target = chance.randint(1, 20, 60), chance.randint(2, 20, 60)
        order = data.similar_order(source, target, chance)
        source, target = source[order], target[order]
        cuts = data.best_cuts(source, target, 60, price)
        parts = list(zip(cuts, cuts[1:]))
        assert cuts[0] == 0 and cuts[-1] == 60 and all(a < b for a, b in parts)
        cost = sum((source[a:b].max() + target[a:b].max()) * (b - a) + price for a, b in parts)
        assert cost == cheapest(tuple(source.tolist()), tuple(target.tolist()), 60, price)


def test_padding_is_little():
    """Lengths as in short news, the sides related."""
    chance = np.random.RandomState(0)
    source = np.clip(chance.lognormal(2.7, 0.4, 40_000), 3, 80).astype(int)
    target = np.clip(source * chance.normal(1.1, 0.15, 40_000), 3, 80).astype(int)
    encoded = [(range(a), range(b)) for a, b in zip(source, target)]
    for batch_tokens, limit, fill in ((2048, 0.03, 0.93), (25_000, data.PADDING, 0.5)):
        batches = token_batches(encoded, batch_tokens)
        assert padding_share(encoded, batches) <= limit
        assert len(batches) * batch_tokens * fill < np.maximum(source, target).sum(), "batches are not full"


# Epochs

@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr(data, "BLOCK", 8)
    monkeypatch.setattr(data, "WINDOW", 100)


def test_windows_hold_every_pair_once(small_windows):
    for n in (1, 7, 8, 99, 100, 101, 999, 1000):
        parts = list(data.windows(n, np.random.RandomState(n)))
        assert sorted(np.concatenate(parts).tolist()) == list(range(n))
        assert max(map(len, parts)) <= 104 and len(parts) == max(1, -(-n // 100))
        for part in parts:      # whole blocks of neighbours
            assert all(set(range(i - i % 8, min(n, i - i % 8 + 8))) <= set(part.tolist()) for i in part.tolist())


@pytest.mark.parametrize("n", [90, 1003])
def test_an_epoch_holds_every_pair_once_and_keeps_the_limit(small_windows, n):
    encoded = random_pairs(n)
    batches = list(epoch_batches(encoded, 200, seed=5))
    assert sorted(i for batch in batches for i in batch) == list(range(n))
    assert max(len(batch) * max(len(side) for i in batch for side in encoded[i]) for batch in batches) <= 200
    assert all(type(i) is int for batch in batches for i in batch)
    assert token_batches(encoded, 200, seed=5) == batches != list(epoch_batches(encoded, 200, seed=6))


@pytest.mark.parametrize("n", [90, 1003])
def test_an_epoch_goes_on_from_any_batch(small_windows, n):
    encoded = random_pairs(n)
    batches = list(epoch_batches(encoded, 200, seed=5))
    for start in [*range(0, len(batches), 9), len(batches) - 1, len(batches), len(batches) + 1]:
        assert list(epoch_batches(encoded, 200, seed=5, start=start)) == batches[start:]


def test_large_corpora_are_mixed_in_windows(small_windows):
    encoded = random_pairs(1000)
    firsts = [sorted(next(epoch_batches(encoded, 10**6, seed=seed))) for seed in (0, 1)]
    assert firsts[0] != firsts[1] and all(len(first) <= 104 for first in firsts)
    assert all(first[-1] - first[0] > 500 for first in firsts), "a window should reach all over the corpus"


def test_a_corpus_of_one_window_is_mixed_as_a_whole():
    """Pairs of one length: a batch holds any of them, not neighbours."""
    batches = token_batches([([3] * 5, [3] * 5)] * 1000, 500, seed=1)
    gaps = [abs(a - b) for batch in batches for a, b in zip(batch, batch[1:])]
    assert sum(gaps) / len(gaps) == pytest.approx(1000 / 3, rel=0.15)
    assert sum(gap == 1 for gap in gaps) < 20


def test_seeds_may_be_any_integer():
    encoded = random_pairs(50)
    assert token_batches(encoded, 100, seed=-1) != token_batches(encoded, 100, seed=2**70)


def test_batches_are_the_same_on_every_machine():
    """Python's, torch's and numpy's own chance change between versions; the legacy generator used here does not."""
    encoded = [([3] * (1 + i % 3), [3] * (2 + i % 2)) for i in range(12)]
    assert token_batches(encoded, 16, seed=1) == [[11, 5, 8, 2], [9, 3, 1, 7], [10, 4, 0, 6]]


# Encoded pairs on disk

@pytest.fixture(scope="module")
def encoded_once(tokenizer, pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("once") / "encoded"
    encode_to_folder(tokenizer, iter(pairs), folder, "key")
    return folder


@pytest.fixture
def on_disk(encoded_once, tmp_path):
    """The encoded pairs in a folder of the test's own."""
    return EncodedPairs(shutil.copytree(encoded_once, tmp_path / "encoded"), "key")


def test_on_disk_equals_the_list(tokenizer, pairs, on_disk):
    encoded = encode_pairs(tokenizer, pairs)
    assert len(on_disk) == len(encoded) and list(on_disk) == encoded and on_disk.left_out == 0
    assert on_disk[3] == encoded[3] and on_disk[-1] == encoded[-1] and on_disk[5:50:7] == encoded[5:50:7]
    assert on_disk[:0] == [] and all(type(i) is int for side in on_disk[0] for i in side)
    for wrong in (len(encoded), -len(encoded) - 1):
        with pytest.raises(IndexError):
            on_disk[wrong]


def test_lengths_on_disk(tokenizer, pairs, on_disk):
    rows = np.array([7, 0, 1499, 7])
    source, target = on_disk.lengths(rows)
    encoded = encode_pairs(tokenizer, pairs)
    assert source.tolist() == [len(encoded[i][0]) for i in rows]
    assert target.tolist() == [len(encoded[i][1]) for i in rows]


def test_batches_of_pairs_on_disk_equal_those_of_the_list(tokenizer, pairs, on_disk, small_windows):
    encoded = encode_pairs(tokenizer, pairs)
    batches = token_batches(encoded, 300, seed=3)
    assert token_batches(on_disk, 300, seed=3) == batches
    assert padding_share(on_disk, batches) == padding_share(encoded, batches)
    one, other = collate(on_disk[:9]), collate(encoded[:9])
    assert torch.equal(one.source, other.source) and torch.equal(one.target, other.target)


def test_released_pages_come_back(on_disk):
    before = list(on_disk)
    on_disk.release()
    assert list(on_disk) == before


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="only Linux tells how much of a file is in memory")
def test_released_pages_are_out_of_memory(on_disk, tmp_path):
    def in_memory():
        maps = Path("/proc/self/smaps").read_text()
        found = re.findall(rf"{re.escape(str(tmp_path))}/encoded/(\w+)\.bin\n(?:(?!Rss).*\n)*Rss: +(\d+) kB", maps)
        return {name: int(kilobytes) for name, kilobytes in found}

    assert list(on_disk) and all(kilobytes > 0 for kilobytes in in_memory().values())
    on_disk.release()
    assert in_memory() == {"tokens": 0, "offsets": 0}


def test_every_window_releases_the_pages_of_the_last(on_disk, small_windows, monkeypatch):
    released = []
    monkeypatch.setattr(EncodedPairs, "release", lambda self: released.append(self))
    for _ in epoch_batches(on_disk, 300):
        pass
    assert len(released) == len(list(data.windows(len(on_disk), np.random.RandomState(0)))) == 15


def test_large_vocabularies_take_four_bytes(tokenizer, pairs, tmp_path, monkeypatch):
    """Ids above 65,535 would be cut off in two bytes."""
    encoded = [([2**16, 2], [1, 70_000, 2]), ([65_535, 2], [1, 2])]
    monkeypatch.setattr(data, "encode_pairs", lambda tokenizer, pairs: encoded)
    for vocab_size, dtype in ((2**16, "uint16"), (2**16 + 1, "int32")):
        monkeypatch.setattr(Tokenizer, "vocab_size", vocab_size)
        rows = encoded if dtype == "int32" else encoded[1:]
        monkeypatch.setattr(data, "encode_pairs", lambda tokenizer, pairs, rows=rows: rows)
        on_disk = encode_to_folder(tokenizer, [("a", "b")], tmp_path / dtype, "key")
        assert on_disk.tokens.dtype == dtype and list(on_disk) == rows


@pytest.mark.parametrize("part", [1, 7, 200, 201])
def test_encoding_in_parts(tokenizer, pairs, tmp_path, monkeypatch, part):
    monkeypatch.setattr(data, "PART", part)
    on_disk = encode_to_folder(tokenizer, iter(pairs[:200]), tmp_path / "x", "key", longest=15)
    fitting = [pair for pair in encode_pairs(tokenizer, pairs[:200]) if max(len(pair[0]), len(pair[1]) - 1) <= 15]
    assert list(on_disk) == fitting and on_disk.left_out == 200 - len(fitting)


def test_long_pairs_are_left_out(tokenizer, pairs, tmp_path):
    def fits(source, target):               # as training.check_pairs counts
        return max(len(source), len(target) - 1) <= 20

    expected = [pair for pair in encode_pairs(tokenizer, pairs) if fits(*pair)]
    on_disk = encode_to_folder(tokenizer, pairs, tmp_path / "x", "key", longest=20)
    assert list(on_disk) == expected and 0 < on_disk.left_out == len(pairs) - len(expected)
    with pytest.raises(ValueError, match="no sentence pairs to encode of at most 1 tokens"):
        encode_to_folder(tokenizer, pairs, tmp_path / "y", "key", longest=1)
    with pytest.raises(ValueError, match="no sentence pairs to encode$"):
        encode_to_folder(tokenizer, [], tmp_path / "y", "key")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x"], "half a folder was left behind"


def test_a_folder_is_made_once(tokenizer, pairs, on_disk, tmp_path):
    def never():
        raise AssertionError("encoded again")
        yield

    assert list(encode_to_folder(tokenizer, never(), tmp_path / "encoded", "key")) == list(on_disk)
    with pytest.raises(ValueError, match="encoded holds other text, or was made with another tokenizer: name another"):
        encode_to_folder(tokenizer, never(), tmp_path / "encoded", "another key")


def test_interrupted_encoding_leaves_nothing(tokenizer, pairs, tmp_path):
    def broken():
        yield from pairs
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_to_folder(tokenizer, broken(), tmp_path / "x", "key")
    assert not list(tmp_path.iterdir())


def test_another_process_was_quicker(tokenizer, pairs, tmp_path):
    def slow():
        encode_to_folder(tokenizer, pairs, tmp_path / "x", "key")
        yield from pairs

    folder = tmp_path / "x"
    first = encode_to_folder_slowly(tokenizer, slow, folder)
    assert list(first) == encode_pairs(tokenizer, pairs) and [p.name for p in tmp_path.iterdir()] == ["x"]


def encode_to_folder_slowly(tokenizer, slow, folder):
    """The inner call has this process's number too; give the outer one another."""
    number = os.getpid()
    with pytest.MonkeyPatch.context() as patch:
        numbers = iter((1, number))
        patch.setattr(os, "getpid", lambda: next(numbers))
        return encode_to_folder(tokenizer, slow(), folder, "key")


@pytest.mark.parametrize("damage", [
    "tokens.bin cut", "offsets.bin cut", "tokens.bin bit", "offsets.bin gone", "about.json cut", "about.json gone",
    "about.json list", "about.json other", "all gone"])
def test_damaged_folders(on_disk, tokenizer, tmp_path, damage):
    name, kind = damage.split()
    path = tmp_path / "encoded" / name
    if kind == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif kind == "bit":
        content = bytearray(path.read_bytes())
        content[100] ^= 1
        path.write_bytes(content)
    elif kind in ("list", "other"):
        path.write_text("[]" if kind == "list" else '{"key": "key"}')
    else:
        for gone in [path] if name != "all" else list((tmp_path / "encoded").iterdir()):
            gone.unlink()
    with pytest.raises(ValueError, match=r"encoded is not a folder of encoded pairs, or damaged: delete it and run"):
        encode_to_folder(tokenizer, [], tmp_path / "encoded", "key")
    with pytest.raises(ValueError, match=r"nowhere is not a folder of encoded pairs"):
        EncodedPairs(tmp_path / "nowhere")


def test_own_files_are_prepared_once(tokenizer, pairs, tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path / "downloads"))
    files = tmp_path / "my.en", tmp_path / "my.de"
    for side, path in enumerate(files):
        path.write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf8")

    def folders():
        return sorted(path.name for path in (tmp_path / "downloads" / "encoded").iterdir())

    def prepare(tokenizer, source, target, longest=None):
        return data.prepare(tokenizer, data.stream_parallel(source, target), [source, target], "my", longest)

    prepared = prepare(tokenizer, *files)
    assert list(prepared) == encode_pairs(tokenizer, pairs) and len(folders()) == 1
    prepare(tokenizer, *files)
    assert len(folders()) == 1 and folders()[0].startswith("my-")
    prepare(tokenizer, *files, longest=20)
    prepare(tokenizer, *reversed(files))
    prepare(Tokenizer.train(["another"], 300), *files)
    assert len(folders()) == 4
    files[0].write_text(files[0].read_text(encoding="utf8").replace("e", "a"), encoding="utf8")
    changed = prepare(tokenizer, *files)
    assert len(folders()) == 5 and list(changed) != list(prepared)


def test_the_bundled_corpus_is_prepared_in_both_directions(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path))
    for reverse in (False, True):
        prepared = data.prepare_corpus(tokenizer, "bundled", "test", reverse)
        assert list(prepared) == encode_pairs(tokenizer, data.read_corpus("bundled", "test", reverse))
    assert len(list((tmp_path / "encoded").iterdir())) == 2
    with pytest.raises(ValueError, match="bundled has no split 'exam'"):
        data.prepare_corpus(tokenizer, "bundled", "exam")


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


def test_reading_is_part_of_the_key(monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path))
    tokenizer = data.Tokenizer.train(["a b"], 300)
    for reading in (1, 2):
        monkeypatch.setattr(data, "READING", reading)
        data.prepare_corpus(tokenizer, "bundled", "test")
    assert len(list((tmp_path / "encoded").iterdir())) == 2


def test_a_full_disk_names_the_folder(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(data, "write_encoded", full)
    with pytest.raises(OSError) as caught:
        data.encode_to_folder(None, [], tmp_path / "x", "key")
    assert caught.value.filename == str(tmp_path / "x")
