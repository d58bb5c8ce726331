"""The bundled corpus: its size, its coverage, its alignments and antecedents, and that the grammar still writes it."""

import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from data.grammar.corpus import LONGER, LONGEST, SIZES, WORD, write_corpus  # noqa: E402
from data.grammar.german import German  # noqa: E402
from data.grammar.lexicon import Lexicon  # noqa: E402
from data.grammar.phrases import held_out_pair  # noqa: E402
from data.grammar.statistics import lemma_counts, nearest, read_examples, word_for_word  # noqa: E402
from data.grammar.trees import Phrase  # noqa: E402

BUNDLED = ROOT / "data" / "bundled"


@pytest.fixture(scope="module")
def lexicon():
    return Lexicon()


@pytest.fixture(scope="module")
def corpus():
    return {name: read_examples(BUNDLED / f"{name}.tsv") for name in SIZES}


def words(text):
    return WORD.findall(text)


@pytest.mark.system
def test_grammar_writes_the_same_bytes(tmp_path):
    write_corpus(tmp_path, seed=2017)
    for name in SIZES:
        assert (tmp_path / f"{name}.tsv").read_bytes() == (
            BUNDLED / f"{name}.tsv"
        ).read_bytes(), name


def test_sizes_and_lengths(corpus):
    assert {name: len(pairs) for name, pairs in corpus.items()} == SIZES
    assert (BUNDLED / "train.tsv").stat().st_size < 4_400_000
    lengths = [len(words(p.source)) for p in corpus["train"]]
    assert min(lengths) == 4 and max(lengths) == LONGEST
    assert sum(lengths) / len(lengths) >= 9
    assert sum(n > 15 for n in lengths) >= 0.15 * len(lengths)
    assert (
        max(
            len(words(p.source))
            for name in ("validation", "test")
            for p in corpus[name]
        )
        <= LONGEST
    )


def test_no_sentence_twice(corpus):
    for side in ("source", "target"):
        sentences = Counter(
            getattr(p, side) for pairs in corpus.values() for p in pairs
        )
        assert max(sentences.values()) == 1


def test_lemmas_and_constructions(lexicon, corpus):
    counts = lemma_counts(lexicon, corpus["train"])
    german = {
        (kind, entry.german)
        for kind, entries in lexicon.entries.items()
        for entry in entries
    }
    assert len(counts) >= 450 and len(german) >= 450
    numbers = [
        entry.number
        for entries in lexicon.entries.values()
        for entry in entries
        if entry.number
    ]
    assert len(set(numbers)) == len(numbers) >= 450
    assert min(counts.values()) >= 30
    names = Counter(name for p in corpus["train"] for name in p.constructions)
    assert len(names) >= 12 and min(names.values()) >= 200


def test_alignments(corpus):
    free, total = 0, 0
    for pairs in corpus.values():
        for p in pairs:
            english, german = words(p.source), words(p.target)
            assert all(i < len(english) and j < len(german) for i, j in p.alignment)
            assert {i for i, _ in p.alignment} == set(range(len(english))), p.source
            unaligned = set(range(len(german))) - {j for _, j in p.alignment}
            assert {german[j] for j in unaligned} <= {",", "Sie"}, p.target
            assert (len(english) - 1, len(german) - 1) in p.alignment
            free, total = free + len(unaligned), total + len(german)
    assert free < 0.1 * total


def test_antecedents(corpus, lexicon):
    nouns = {
        form
        for n in lexicon["noun"] + lexicon["name"] + lexicon["city"]
        for form in n.english
    }
    for pairs in corpus.values():
        for p in pairs:
            english, german = words(p.source), words(p.target)
            for ours, theirs in p.pronouns:
                assert english[ours.index].lower() in ("his", "her", "its", "their")
                assert german[theirs.index].lower().startswith(("sein", "ihr"))
                assert (
                    ours.antecedent in ours.candidates
                    and theirs.antecedent in theirs.candidates
                )
                assert len(ours.candidates) == len(theirs.candidates)
                assert {
                    (ours.index, theirs.index),
                    (ours.antecedent, theirs.antecedent),
                } <= p.alignment
                assert set(ours.candidates) <= {
                    i for i, w in enumerate(english) if w in nouns
                }


def test_pronouns_need_their_antecedent(corpus, lexicon):
    gender = {form: n.gender for n in lexicon["noun"] for form in n.english[:1]}
    pronouns = [(p, both) for p in corpus["train"] for both in p.pronouns]
    assert sum(bool(p.pronouns) for p in corpus["train"]) >= 0.15 * len(corpus["train"])
    assert sum(len(e.candidates) > 1 for _, (e, _) in pronouns) >= 0.9 * len(pronouns)
    assert sum(nearest(e) == e.antecedent for _, (e, _) in pronouns) < 0.5 * len(
        pronouns
    )
    stems = Counter()
    for p, (e, g) in pronouns:
        if words(p.source)[e.index] == "its":
            owner, stem = words(p.source)[e.antecedent], words(p.target)[g.index][:3]
            assert (stem == "ihr") == (gender[owner] == "f")
            stems[stem] += 1
    assert min(stems["ihr"], stems["sei"]) >= 300


def test_hard_set_is_new(corpus):
    kinds = Counter(
        kind
        for p in corpus["hard"]
        for kind in ("unseen-combination", "longer")
        if kind in p.constructions
    )
    assert kinds == {"unseen-combination": 700, "longer": 300}
    for p in corpus["hard"]:
        n = len(words(p.source))
        low, high = LONGER if "longer" in p.constructions else (4, LONGEST)
        assert low <= n <= high
    assert not any(
        {"longer", "unseen-combination"} & set(p.constructions)
        for name in ("train", "validation", "test")
        for p in corpus[name]
    )


def test_held_out_pairs_are_not_in_train(corpus, lexicon):
    """Adjective before noun is easy to see in the text: no such pair of the held-out tenth stands in train."""
    adjectives = {a.base: a for a in lexicon["adjective"]}
    nouns = {form: n for n in lexicon["noun"] for form in n.english}

    def is_noun(p, place):
        """German nouns have a capital: "tired answer their question" is no adjective and noun."""
        return any(
            words(p.target)[j][0].isupper() for i, j in p.alignment if i == place
        )

    def held_out(pairs):
        seen = [
            (adjectives[a], nouns[b])
            for p in pairs
            for place, (a, b) in enumerate(zip(words(p.source), words(p.source)[1:]), 1)
            if a in adjectives and b in nouns and is_noun(p, place)
        ]
        return sum(held_out_pair(a, b) for a, b in seen), len(seen)

    for name in ("train", "validation", "test"):
        hits, total = held_out(corpus[name])
        assert hits == 0 and total > 100
    assert held_out(corpus["hard"])[0] > 50


@pytest.mark.parametrize(
    "english, german",
    [
        (("feminine", "dat", "the"), "der alten Frau"),
        (("masculine", "acc", "a"), "einen alten Jungen"),
        (("neuter", "nom", "a"), "ein altes Haus"),
        (("plural", "dat", "no"), "keinen alten Häusern"),
        (("plural", "nom", "two"), "zwei alte Häuser"),
        (("masculine", "dat", "my"), "meinem alten Jungen"),
        (("neuter", "acc", "every"), "jedes alte Haus"),
        (("masculine", "nom", "this"), "dieser alte Junge"),
    ],
)
def test_noun_phrases(lexicon, english, german):
    gender, case, determiner = english
    head = {
        "feminine": "woman",
        "masculine": "boy",
        "neuter": "house",
        "plural": "house",
    }[gender]
    phrase = Phrase(
        lexicon.find("noun", head),
        gender == "plural",
        lexicon.find("determiner", determiner),
        adjectives=[lexicon.find("adjective", "old")],
    )
    assert " ".join(w.text for w in German().phrase(phrase, case)) == german


def test_word_for_word_baseline():
    assert 5 < word_for_word(BUNDLED).score < 20
