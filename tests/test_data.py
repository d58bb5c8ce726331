"""Section 5.1: byte-pair encoding, batches by tokens."""

import copy
import json
import pickle
import random
import re
import time
from collections import Counter

import numpy as np
import pytest
import torch

from transformer.corpora import read_corpus, windows
from transformer.corpora.tokenizer import LONGEST, WORD, Tokenizer
from transformer.corpora.windows import padding_share
from transformer.data import (
    Batch,
    collate,
    count_neighbours,
    cut,
    encode_pairs,
    fill_batches,
    in_bytes,
    join,
    learn_merges,
    pad,
)
from transformer.runs.batches import epoch_batches, token_batches


@pytest.fixture(scope="module")
def pairs():
    return read_corpus("bundled", "train")[:1500]


@pytest.fixture(scope="module")
def tokenizer(pairs):
    return Tokenizer.train([text for pair in pairs for text in pair], 600)


# Byte-pair encoding

FIVE = {
    tuple(word): times
    for word, times in {"land": 6, "lands": 2, "hand": 4, "hands": 3, "man": 2}.items()
}


def test_neighbours_are_counted_as_often_as_their_word():
    count = count_neighbours(FIVE)
    assert count["a", "n"] == 17
    assert count["l", "a"] == 8
    assert count["d", "s"] == 5
    assert ("n", "a") not in count


@pytest.mark.parametrize(
    "word, pair, joined",
    [
        ("hands", ("a", "n"), ("h", "an", "d", "s")),
        ("banana", ("a", "n"), ("b", "an", "an", "a")),
        ("aaa", ("a", "a"), ("aa", "a")),
        ("", ("a", "n"), ()),
        ("man", ("n", "a"), ("m", "a", "n")),
    ],
)
def test_a_pair_is_joined_wherever_it_stands(word, pair, joined):
    assert join(tuple(word), pair) == joined


def test_merges_cut_words_that_were_never_there():
    merges = learn_merges(FIVE, 5)
    assert ["".join(pair) for pair in merges] == ["an", "and", "land", "hand", "hands"]
    assert cut(tuple("sand"), merges) == ("s", "and")
    assert cut(tuple("lands"), merges) == ("land", "s")
    assert cut(tuple("man"), merges) == ("m", "an")


def test_merges_are_those_of_the_library(pairs):
    """Up to the first two pairs that are equally frequent, of which each takes another."""
    words = Counter()
    for english, _ in pairs:
        for word in re.findall(r" ?\w+| ?[^\w\s]", " " + english):
            words[tuple(word.replace(" ", "Ġ"))] += 1
    ours = learn_merges(words, 60)
    bpe = Tokenizer.train([english for english, _ in pairs], 259 + 60).bpe
    model = json.loads(bpe.to_str())["model"]
    library = [
        tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge)
        for merge in model["merges"]
    ]
    assert len(set(ours) & set(library)) >= 56
    assert ours[:10] == library[:10]


def test_merges_of_bytes_cut_as_the_library_does(pairs):
    words = Counter(
        word
        for english, _ in pairs
        for word in re.findall(r" ?\w+| ?[^\w\s]", " " + english)
    )
    library = Tokenizer.train([english for english, _ in pairs], 259 + 60)
    merges = learn_merges({in_bytes(word): n for word, n in words.items()}, 60)
    differ = [
        word
        for word in words
        if word.startswith(" ")
        and list(cut(in_bytes(word), merges)) != library.bytes_of_each_piece(word[1:])
    ]
    assert len(differ) < 0.02 * len(words)


def test_bytes_of_a_word_come_back():
    assert in_bytes("é鍵") == (b"\xc3", b"\xa9", b"\xe9", b"\x8d", b"\xb5")
    assert b"".join(in_bytes("Québec")).decode() == "Québec"


def test_a_batch_is_filled_until_the_next_would_not_fit():
    assert fill_batches([4, 2, 0, 1], [2, 3, 3, 5], 9) == [[4, 2, 0], [1]]
    assert fill_batches([0, 1, 2], [4, 4, 50], 8) == [[0, 1], [2]]
    assert fill_batches([7], [50], 8) == [[7]]


def random_text(chance):
    """Characters of every kind: letters, marks, white space, emoji, the marks typed as text."""
    kinds = [
        "abcdefgh",
        " ",
        "  ",
        "\n",
        "\t",
        "äöüß",
        "…“”'-_.,",
        "0123456789²",
        "日本語",
        "🙂👩‍🚀",
        "e\u0301",
        "\u2028\x00\x1c",
        "مرحبا",
        ["</s>", "<s>", "<pad>"],
    ]
    return "".join(
        chance.choice(chance.choice(kinds)) for _ in range(chance.randrange(12))
    )


NASTY = [
    "",
    " ",
    "   ",
    "\n",
    " a",
    "a ",
    "a  b",
    "</s>",
    "<pad><s></s>",
    "🙂",
    "日本語",
    "e\u0301",
    "\u2028",
    "\r\n",
    "\x00",
    "don't ... stop_it _",
    "²x",
    "\ufeffa",
    "\U00010d4a\u200d",
]


@pytest.mark.parametrize("text", NASTY)
def test_round_trip(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_round_trip_of_random_texts(tokenizer):
    texts = [random_text(random.Random(seed)) for seed in range(1000)]
    encoded = tokenizer.encode_all(texts)
    assert [tokenizer.decode(ids) for ids in encoded] == texts
    assert encoded == [tokenizer.encode(text) for text in texts]
    assert not {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id} & {
        i for ids in encoded for i in ids
    }


def test_the_bytes_of_the_pieces_are_those_of_the_text(tokenizer):
    for text in [*NASTY, *(random_text(random.Random(seed)) for seed in range(200))]:
        pieces = tokenizer.bytes_of_each_piece(text)
        assert b"".join(pieces) == (" " + text).encode()
        assert len(pieces) == len(tokenizer.encode(text))


def test_a_copy_takes_marks_in_a_text_for_text(tokenizer):
    text = "a </s> b"
    for copied in (copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert (
            copied.encode(text) == tokenizer.encode(text)
            and copied.decode(copied.encode(text)) == text
        )


def test_marks_are_left_out(tokenizer):
    ids = tokenizer.encode("A cat.")
    assert (
        tokenizer.decode([tokenizer.bos_id, *ids, tokenizer.eos_id, tokenizer.pad_id])
        == "A cat."
    )
    assert tokenizer.decode(torch.tensor(ids)) == "A cat."
    assert tokenizer.decode([]) == "" and (
        tokenizer.pad_id,
        tokenizer.bos_id,
        tokenizer.eos_id,
    ) == (0, 1, 2)


def test_decoding_takes_away_nothing_but_the_first_space(tokenizer):
    without_space = tokenizer.encode("a. b")[1:]  # a model may begin with any token
    assert tokenizer.decode(without_space) == ". b"


def by_hand(tokenizer, text):
    """Token ids by applying the merges, in the order they were learned, to bytes, without the library."""
    model = json.loads(tokenizer.bpe.to_str())["model"]
    merges = [
        tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge)
        for merge in model["merges"]
    ]
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letter = {
        byte: chr(byte) for byte in printable
    }  # bytes without a sign of their own get one from 256 on
    letter.update(
        {
            byte: chr(256 + n)
            for n, byte in enumerate(b for b in range(256) if b not in letter)
        }
    )
    ids = []
    for word in WORD.findall(text):
        symbols = [letter[byte] for byte in (" " + word).encode()]
        for left, right in merges:
            for i in range(len(symbols) - 2, -1, -1):
                if symbols[i : i + 2] == [left, right]:
                    symbols[i : i + 2] = [left + right]
        ids += [model["vocab"][symbol] for symbol in symbols]
    return ids


def test_encoding_equals_merging_by_hand(tokenizer):
    for text in (
        "The gardener opened the bottle",
        "Der Gärtner öffnete die Flasche",
        "unbelievably größer 2024 naïve",
    ):
        assert tokenizer.encode(text) == by_hand(tokenizer, text)


def test_small_and_exhausted_vocabularies():
    with pytest.raises(
        ValueError,
        match=r"vocab_size must be at least 259 \(256 bytes and the marks\), not 258",
    ):
        Tokenizer.train(["a"], 258)
    assert (
        Tokenizer.train(["a b"], 5000).vocab_size == 261
    )  # " a" and " b", then nothing is left to merge


RUNS = {
    "blanks": " ",
    "lines": "\n",
    "white space": " \t\n\u3000",
    "letters": "a",
    "letters without spaces": "的一是不了人",
    "punctuation": ".",
    "digits": "01",
    "emoji": "🙂",
    "a joined emoji": "👩‍🚀",
    "combining marks": "e\u0301\u0308",
}


@pytest.mark.parametrize("run", RUNS)
def test_merges_of_a_line_without_end_take_no_time(run):
    """Quadratic in one piece's length, these would take minutes each."""
    line = RUNS[run] * (500_000 // len(RUNS[run]))
    started = time.process_time()
    learned = Tokenizer.train([line, "a b"], 300)
    assert time.process_time() - started < 30
    assert learned.vocab_size <= 300
    assert learned.decode(learned.encode(line[:5000])) == line[:5000]


def test_a_longer_piece_is_cut_where_merges_are_learned_only():
    line = "a" * (4 * LONGEST)
    learned = Tokenizer.train([line, "a b"], 400)
    longest = max(learned.bpe.get_vocab(), key=len)
    assert len(longest) <= LONGEST + 1  # and the space before it
    assert learned.decode(learned.encode(line)) == line
    assert learned.bpe.pre_tokenizer.pre_tokenize_str(" " + line)[0][1] == (0, 2001)


@pytest.mark.parametrize(
    "text, groups",
    [
        ("Größe!", ["Größe", "!"]),
        ("日本", ["日本"]),  # three bytes a character
        ("a  🙂\n", ["a", "🙂"]),  # white space of its own, at the end too
        ("don't...", ["don", "'", "t", ".", ".", "."]),
    ],
)
def test_word_of_each_piece(tokenizer, text, groups):
    words, ids = tokenizer.word_of_each_piece(text), tokenizer.encode(text)
    assert len(words) == len(ids) and words == sorted(words)
    for index, word in enumerate(groups):
        assert (
            tokenizer.decode([i for i, w in zip(ids, words) if w == index]).strip()
            == word
        )


def test_every_word_has_a_piece(tokenizer):
    for text in [*NASTY, *(random_text(random.Random(seed)) for seed in range(500))]:
        words, n = tokenizer.word_of_each_piece(text), len(WORD.findall(text))
        assert set(range(n)) <= set(words) <= set(range(n + 1)), repr(text)


def test_save_and_load(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert all(
        loaded.encode(text) == tokenizer.encode(text) for text in NASTY
    )  # "</s>" stays text


def test_damaged_tokenizer(tmp_path):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(
        FileNotFoundError,
        match="no file .*tokenizer.json: a model's folder needs the tokenizer",
    ):
        Tokenizer.load(path)
    path.write_text('{"version": "1.0"')
    with pytest.raises(
        ValueError, match=r"tokenizer.json is not a tokenizer .*: copy it again"
    ):
        Tokenizer.load(path)


def test_tokenizer_without_marks(tmp_path):
    from tokenizers import Tokenizer as Bare
    from tokenizers import models

    Bare(models.BPE()).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match="lacks the marks <pad> <s> </s>"):
        Tokenizer.load(tmp_path / "tokenizer.json")


# Marks and batches


def test_encoded_pairs_have_their_marks(tokenizer):
    ((source, target),) = encode_pairs(tokenizer, [("A cat.", "")])
    assert source == [*tokenizer.encode("A cat."), 2] and target == [
        1,
        *tokenizer.encode(""),
        2,
    ]


def test_gold_is_the_input_one_later():
    batch = Batch(torch.tensor([[5, 2]]), torch.tensor([[1, 7, 8, 2]]))
    assert batch.decoder_input.tolist() == [[1, 7, 8]] and batch.gold.tolist() == [
        [7, 8, 2]
    ]
    moved = batch.to("cpu")
    assert torch.equal(moved.target, batch.target) and torch.equal(
        moved.source, batch.source
    )


def test_pairs_of_a_batch_have_no_padding():
    batch = collate([([5, 2], [1, 9, 9, 2]), ([5, 6, 2], [1, 2])], pad_id=0)
    first, second = batch.pairs()
    assert isinstance(first, Batch)
    assert (first.source.tolist(), first.target.tolist()) == ([[5, 2]], [[1, 9, 9, 2]])
    assert (second.source.tolist(), second.target.tolist()) == ([[5, 6, 2]], [[1, 2]])


def test_padding():
    batch = collate([([5, 2], [1, 9, 9, 2]), ([5, 6, 2], [1, 2])], pad_id=0)
    assert batch.source.tolist() == [
        [5, 2, 0],
        [5, 6, 2],
    ] and batch.target.tolist() == [[1, 9, 9, 2], [1, 2, 0, 0]]
    assert (
        pad([[], []], 0).shape == (2, 0)
        and pad([(3,)], 0).dtype == pad([[]], 0).dtype == torch.int64
    )


def test_empty_batches():
    for make in (lambda: pad([], 0), lambda: collate([])):
        with pytest.raises(ValueError, match="a batch needs at least one sentence"):
            make()
    with pytest.raises(ValueError, match="no sentence pairs to make batches of"):
        token_batches([], 100)


@pytest.mark.parametrize("batch_tokens, skip", [(0, 0), (100, -1)])
def test_batches_out_of_range(batch_tokens, skip):
    with pytest.raises(
        ValueError,
        match=f"batch_tokens must be .* and skip .*, not {batch_tokens} and {skip}",
    ):
        list(epoch_batches([([3, 2], [1, 3, 2])], batch_tokens, skip=skip))


def test_one_string_is_no_list_of_sentences(tokenizer):
    for read in (tokenizer.encode_all, lambda texts: Tokenizer.train(texts, 300)):
        with pytest.raises(
            ValueError,
            match="sentences must be a list of strings, not one string: put it in brackets",
        ):
            read("The cat sleeps.")
    with pytest.raises(ValueError, match="must be a list of strings, not {'q': 'The"):
        tokenizer.encode_all({"q": "The cat."})  # its keys are no sentences
    with pytest.raises(ValueError, match=r"number 2 \(index 1\) of sentences is a int"):
        tokenizer.encode_all(["The cat sleeps.", 3])


def random_pairs(n=400, longest=30, seed=0):
    chance = random.Random(seed)
    return [
        ([3] * chance.randint(1, longest), [3] * chance.randint(2, longest))
        for _ in range(n)
    ]


def test_batches_are_full():
    """Pairs of one length: as many as fit, and only the last batch may be smaller."""
    sizes = sorted(map(len, token_batches([([3] * 10, [3] * 16)] * 100, 160)))
    assert (
        sizes == [10] * 10
        and len(token_batches([([3] * 10, [3] * 16)] * 100, 159)) == 12
    )


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
    assert random.getstate() == state[0] and torch.equal(
        torch.get_rng_state(), state[1]
    ), "it used others' chance"


@pytest.mark.parametrize("batch_tokens", [30, 500, 25_000])
def test_a_batch_never_exceeds_its_tokens_whatever_the_lengths(batch_tokens):
    for seed in range(30):
        chance = random.Random(seed)
        longest = chance.choice((1, 3, 40, 900, 60_000))
        lengths = [
            (chance.randint(1, longest), chance.randint(2, longest + 1))
            for _ in range(chance.randint(1, 300))
        ]
        encoded = [(range(a), range(b)) for a, b in lengths]
        batches = token_batches(encoded, batch_tokens, seed)
        assert sorted(i for batch in batches for i in batch) == list(
            range(len(lengths))
        )
        for batch in batches:
            assert (
                len(batch) == 1
                or len(batch) * max(max(lengths[i]) for i in batch) <= batch_tokens
            )


# Epochs


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr(windows, "BLOCK", 8)
    monkeypatch.setattr(windows, "WINDOW", 100)


def test_windows_hold_every_pair_once(small_windows):
    for n in (1, 7, 8, 99, 100, 101, 999, 1000):
        parts = list(windows.windows(n, np.random.RandomState(n)))
        assert sorted(np.concatenate(parts).tolist()) == list(range(n))
        assert max(map(len, parts)) <= 104 and len(parts) == max(1, -(-n // 100))
        for part in parts:  # whole blocks of neighbours
            assert all(
                set(range(i - i % 8, min(n, i - i % 8 + 8))) <= set(part.tolist())
                for i in part.tolist()
            )


@pytest.mark.parametrize("n", [90, 1003])
def test_an_epoch_holds_every_pair_once_and_keeps_the_limit(small_windows, n):
    encoded = random_pairs(n)
    batches = list(epoch_batches(encoded, 200, seed=5))
    assert sorted(i for batch in batches for i in batch) == list(range(n))
    assert (
        max(
            len(batch) * max(len(side) for i in batch for side in encoded[i])
            for batch in batches
        )
        <= 200
    )
    assert all(type(i) is int for batch in batches for i in batch)
    assert (
        token_batches(encoded, 200, seed=5)
        == batches
        != list(epoch_batches(encoded, 200, seed=6))
    )


@pytest.mark.parametrize("n", [90, 1003])
def test_an_epoch_goes_on_from_any_batch(small_windows, n):
    encoded = random_pairs(n)
    batches = list(epoch_batches(encoded, 200, seed=5))
    for skip in [
        *range(0, len(batches), 9),
        len(batches) - 1,
        len(batches),
        len(batches) + 1,
    ]:
        assert list(epoch_batches(encoded, 200, seed=5, skip=skip)) == batches[skip:]


def test_large_corpora_are_mixed_in_windows(small_windows):
    encoded = random_pairs(1000)
    firsts = [sorted(next(epoch_batches(encoded, 10**6, seed=seed))) for seed in (0, 1)]
    assert firsts[0] != firsts[1] and all(len(first) <= 104 for first in firsts)
    assert all(first[-1] - first[0] > 500 for first in firsts), (
        "a window should reach all over the corpus"
    )


def test_a_corpus_of_one_window_is_mixed_as_a_whole():
    """Pairs of one length: a batch holds any of them, not neighbours."""
    batches = token_batches([([3] * 5, [3] * 5)] * 1000, 500, seed=1)
    gaps = [abs(a - b) for batch in batches for a, b in zip(batch, batch[1:])]
    assert sum(gaps) / len(gaps) == pytest.approx(1000 / 3, rel=0.15)
    assert sum(gap == 1 for gap in gaps) < 20


def test_batches_are_the_same_on_every_machine():
    """Python's, torch's and numpy's own chance change between versions; the legacy generator used here does not."""
    encoded = [([3] * (1 + i % 3), [3] * (2 + i % 2)) for i in range(12)]
    assert token_batches(encoded, 16, seed=1) == [
        [8, 2],
        [3, 1, 7, 11, 5],
        [10, 4, 0, 6, 9],
    ]


def test_padding_share_equals_counting():
    encoded = random_pairs()
    batches = token_batches(encoded, 300)
    built = [collate([encoded[i] for i in batch]) for batch in batches]
    places = torch.cat(
        [side.flatten() for batch in built for side in (batch.source, batch.target)]
    )
    assert padding_share(encoded, batches) == pytest.approx(
        (places == 0).double().mean().item(), abs=1e-12
    )


def test_similar_lengths_save_padding(tokenizer, pairs):
    encoded = encode_pairs(tokenizer, pairs)
    batches = token_batches(encoded, 1000)
    order = random.Random(0).sample(range(len(encoded)), len(encoded))
    mixed = [order[i : i + 30] for i in range(0, len(order), 30)]
    assert padding_share(encoded, batches) < 0.15 < 0.3 < padding_share(encoded, mixed)
