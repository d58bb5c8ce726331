"""Blank lines: left out of corpora and of scores, and counted in one sentence."""

import warnings

import pytest

from transformer import align, evaluate, load, translate, translate_n_best, view
from transformer.core.scores import exact_match, score_report
from transformer.core.white_space import is_blank, normalised
from transformer.corpora import (
    CORPORA,
    read_corpus,
    read_parallel,
    register_corpus,
    without_blanks,
)

BLANK = [
    "",
    " ",
    "\t",
    "\r",
    "\u00a0",
    "\u3000 ",
    "\u2028",
    "\x00",
    "\u200b",
    "\ufeff",
    "\xad ",
]
PAIRS = [("a", "b"), ("", "c"), ("d", " "), ("e", "f"), ("\u200b", "\u3000")]


@pytest.mark.parametrize("text", BLANK, ids=ascii)
def test_what_is_blank(text):
    assert is_blank(text)


@pytest.mark.parametrize(
    "text", ["a", " a ", ".", "0", "\u200ba", "🙂", "\u0301", "¿"], ids=ascii
)
def test_what_is_not(text):
    assert not is_blank(text)


def test_pairs_with_a_blank_side_are_left_out_and_counted():
    with pytest.warns(UserWarning, match="3 of 5 lines have a blank source or target"):
        assert list(without_blanks(PAIRS, "lines")) == [("a", "b"), ("e", "f")]


def test_nothing_is_said_where_nothing_is_blank():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(without_blanks(iter(PAIRS[:1]))) == PAIRS[:1]


@pytest.fixture
def files(tmp_path):
    for side in (0, 1):
        text = "".join(pair[side] + "\n" for pair in PAIRS)
        (tmp_path / f"text.{side}").write_text(text, encoding="utf8")
    return tmp_path / "text.0", tmp_path / "text.1"


def test_own_files(files):
    with pytest.warns(UserWarning, match="3 of 5 pairs of .*text.0 and .*text.1"):
        assert read_parallel(*files) == [("a", "b"), ("e", "f")]


def test_a_corpus_with_a_name(files, monkeypatch):
    monkeypatch.setattr("transformer.corpora.registry.CORPORA", dict(CORPORA))
    register_corpus("mine", train=files)
    with pytest.warns(UserWarning, match="3 of 5 pairs of mine, train, have a blank"):
        assert read_corpus("mine", "train", reverse=True) == [("b", "a"), ("f", "e")]


def test_blank_references_are_no_exact_match():
    with pytest.warns(UserWarning, match="2 of 4 pairs to score have a blank"):
        assert exact_match(["", " ", "x", "z"], ["", "\t", "x", "y"]) == 0.5


def test_a_blank_translation_is_wrong():
    assert exact_match(["", "a"], ["a", "a"]) == 0.5


def test_a_report_leaves_blank_references_out():
    texts = ["Das ist ein kleiner Hund .", "Er sieht den alten Mann ."]
    with pytest.warns(UserWarning, match="1 of 3 pairs to score have a blank"):
        report = score_report([*texts, "Noch ein Satz ist da ."], [*texts, ""])
    assert report == score_report(texts, texts)


@pytest.mark.parametrize("score", [exact_match, score_report])
def test_nothing_but_blanks_cannot_be_scored(score):
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="nothing to score"):
        score(["", "a"], ["", " "])


def test_evaluation_leaves_blank_pairs_out():
    model, tokenizer = load()
    pairs = [("The cat is old.", "Die Katze ist alt."), ("", ""), ("The dog.", " ")]
    with pytest.warns(UserWarning, match="2 of 3 pairs to score have a blank"):
        report = evaluate(model, tokenizer, pairs, beam=1)
    assert report["sentences"] == 1
    assert report["exact_match"] == 1.0


def test_an_evaluation_of_nothing_is_refused():
    model, tokenizer = load()
    with pytest.raises(ValueError, match="nothing to score"):
        evaluate(model, tokenizer, [])


# Inputs

SENTENCE = "The old cat sleeps."
VARIANTS = [
    " The old cat sleeps.",
    "The old cat sleeps. ",
    "The  old cat sleeps.",
    "The old\tcat sleeps.\r\n",
    "The\u00a0old\u2003cat\u3000sleeps.",
    "\u2028The old\x85cat\x1fsleeps.",
    "\ufeffThe old cat sleeps.",
]


@pytest.fixture(scope="module")
def bundled():
    return load()


@pytest.mark.parametrize("variant", VARIANTS, ids=ascii)
def test_white_space_of_an_input_changes_no_translation(bundled, variant):
    assert normalised(variant) == SENTENCE
    assert translate(*bundled, [variant], 1) == translate(*bundled, [SENTENCE], 1)


def test_white_space_of_an_input_changes_no_n_best_list(bundled):
    lists = translate_n_best(*bundled, [SENTENCE, *VARIANTS], 2, 2)
    texts = [[entry.text for entry in each] for each in lists]
    assert texts == [texts[0]] * len(texts)


@pytest.mark.parametrize("text", BLANK, ids=ascii)
def test_what_is_blank_is_translated_by_nothing(bundled, text):
    assert normalised(text) == ""
    assert translate(*bundled, [text], 1) == [""]


def test_what_cannot_be_seen_is_a_blank_source(bundled):
    text = "\u200b\x07\u200d"
    (entry,) = translate_n_best(*bundled, [text], 1)[0]
    assert (entry.text, entry.source) == ("", "")
    assert entry.alignment.source == []
    assert align(*bundled, [(text, "Die Katze.")])[0].source == []


def test_white_space_of_an_input_changes_no_page(bundled):
    pages = [view(*bundled, [text])._repr_html_() for text in (SENTENCE, *VARIANTS)]
    assert pages == [pages[0]] * len(pages)
