"""Sentences longer than a model's positions: left out, and counted in one sentence."""

import warnings

import pytest

from transformer import Tokenizer, TransformerConfig
from transformer.corpora import CORPORA, register_corpus
from transformer.data import encode_pairs
from transformer.runs.encoded import fitting, prepare_corpus

PAIRS = [("a b", "c d"), ("a " * 50, "c"), ("a", "c " * 50), ("b", "d")]


@pytest.fixture
def tokenizer():
    return Tokenizer.train([text for pair in PAIRS for text in pair], 259)


@pytest.fixture
def config(tokenizer):
    sizes = {"d_model": 16, "d_ff": 16, "N": 1, "h": 2, "max_positions": 20}
    return TransformerConfig(tokenizer.vocab_size, **sizes)


@pytest.mark.parametrize("part", ["training ", "validation "])
def test_pairs_that_fit_are_kept_and_the_others_counted(tokenizer, config, part):
    encoded = encode_pairs(tokenizer, PAIRS)
    said = rf"2 of 4 {part}sentence pairs \(50.0%\) need more than the model's 20 positions"
    with pytest.warns(UserWarning, match=said):
        assert fitting(encoded, config, part) == [0, 3]


def test_nothing_is_said_where_all_fit(tokenizer, config):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitting(encode_pairs(tokenizer, PAIRS[:1]), config) == [0]


def test_nothing_that_fits_is_refused(tokenizer, config):
    with pytest.raises(ValueError, match="no validation sentence pair fits"):
        fitting(encode_pairs(tokenizer, PAIRS[1:3]), config, "validation ")


def test_a_corpus_encoded_to_disk_says_what_it_leaves_out(
    tokenizer, tmp_path, monkeypatch
):
    monkeypatch.setattr("transformer.corpora.registry.CORPORA", dict(CORPORA))
    monkeypatch.setattr("transformer.runs.encoded.download_folder", lambda: tmp_path)
    for side in (0, 1):
        text = "".join(pair[side] + "\n" for pair in PAIRS)
        (tmp_path / f"text.{side}").write_text(text, encoding="utf8")
    register_corpus("mine", train=(tmp_path / "text.0", tmp_path / "text.1"))
    for _ in range(2):  # made, and found again
        with pytest.warns(UserWarning, match="2 of 4 mine, train, sentence pairs"):
            assert len(prepare_corpus(tokenizer, "mine", "train", longest=20)) == 2
