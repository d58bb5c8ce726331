"""The runs of notebook 21: n-grams against a loop, xz, small trainings; dialogues."""

import copy
import math
import random
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
import torch

from transformer.core.records import flatten
from transformer.corpora import read_bundled
from transformer.corpora.tokenizer import Tokenizer
from transformer.experiments import characters, decoders
from transformer.experiments.characters import Setting
from transformer.language import LanguageModel
from transformer.models.families import parameters_of
from transformer.runs import dialogues

KNOWN, TEXT = "abracadabra, a barbarian " * 3, "a bard, häa"


def witten_bell(known, text, n):
    """-log2 of the probability of each byte, context by context."""
    known, text, total = known.encode(), text.encode(), 0.0
    for place, byte in enumerate(text):
        p = 1 / 256
        for k in range(min(n - 1, place) + 1):
            context = text[place - k : place]
            after = Counter(
                known[i + k]
                for i in range(len(known) - k)
                if known[i : i + k] == context
            )
            if after:
                p = (after[byte] + len(after) * p) / (after.total() + len(after))
        total -= math.log2(p)
    return total


@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_ngrams_are_witten_and_bells(n):
    expected = witten_bell(KNOWN, TEXT, n) / len(TEXT)
    ngram = characters.NGram(n).read(KNOWN.encode())
    assert characters.ngram_bits(ngram, TEXT) == pytest.approx(expected)
    assert characters.ngram_bits(ngram, TEXT) == pytest.approx(
        expected
    )  # it has not learned


def test_an_ngram_learns_what_it_has_predicted():
    """As if it had counted the text up to each byte."""
    expected = 0.0
    for place in range(len(TEXT.encode())):
        ngram, seen = characters.NGram(4).read(KNOWN.encode()), TEXT.encode()
        for before in range(place):
            ngram.learn(seen, before)
        expected -= math.log2(ngram.probability(seen, place))
    found = characters.ngram_bits(
        characters.NGram(4).read(KNOWN.encode()), TEXT, learns=True
    )
    assert found == pytest.approx(expected / len(TEXT))


def test_probabilities_of_all_bytes_sum_to_one():
    ngram = characters.NGram(4).read(KNOWN.encode())
    last = [ngram.probability(bytes([*b"abr", byte]), 3) for byte in range(256)]
    assert sum(last) == pytest.approx(1.0)


def test_xz_finds_what_it_has_read():
    chance = random.Random(1)
    text = "".join(chance.choice("abcdefgh") for _ in range(4000))
    other = "".join(chance.choice("abcdefgh") for _ in range(4000))
    assert characters.xz_bits(text, text) < 0.2
    assert 2.8 < characters.xz_bits(other, text) < 3.8  # 3 bits a letter, and a little


def test_guesses_are_the_most_frequent_next_bytes():
    """Each by counting in the text, after as many bytes as were ever seen together."""
    known, ids = KNOWN.encode("utf8"), [1, *(byte + 3 for byte in b"abrzab")]
    read = b"abrzab"
    ngram = characters.NGram(4).read(tuple(characters.bytes_of(KNOWN) + 3))
    for guessed in ngram.guess(ids, most=5):
        seen = [read[i:] for i in range(3, len(read) + 1) if read[i:] in known[:-1]]
        context = max(seen, key=len)
        after = Counter(
            known[i + len(context)]
            for i in range(len(known) - len(context))
            if known.startswith(context, i)
        )
        assert after[guessed - 3] == max(after.values()) > 0
        read = (read + bytes([guessed - 3]))[-6:]


@pytest.mark.system
@pytest.mark.parametrize("lstm", [False, True])
def test_a_small_training(lstm, monkeypatch, tmp_path):
    """It learns a text of two letters, and counts bits a character, not a byte."""
    small = replace(characters.MODEL, d_model=16, d_ff=16, N=1, h=2, max_positions=16)
    monkeypatch.setattr(characters, "READ", 32)
    monkeypatch.setattr(
        characters, "TRAINING", replace(characters.TRAINING, warmup=5, precision="fp32")
    )
    monkeypatch.setattr(characters, "text_of", lambda split: "aä" * 100)
    found = characters.run(Setting(lstm, 10, 0.02, small), 1, tmp_path / "run", "cpu")
    assert found["updates"] == 10 and found["characters"] == 10 * 2 * 16
    assert 0 < found["bits.learning"] < found["bits"] < 1.5 * 8
    assert found["rates"][f"{found['rate.learning']:g}"] == min(found["rates"].values())
    if not lstm:
        assert (
            found["written.same"] == 20
            and found["passes.guessed"] <= found["passes"] <= 20 * 8
        )
    again = characters.bytes_of("aä")
    assert again.tolist() == [97, 195, 164]
    model = torch.nn.Module()
    monkeypatch.setattr(
        characters, "bits_per_token", lambda model, ids, window: float(len(ids))
    )
    assert characters.character_bits(model, "aä", 16) == 3 * 3 / 2


def test_a_model_predicts_before_it_learns():
    """With a rate of nothing it reads as one that does not learn; and a copy learns."""
    torch.manual_seed(1)
    model = LanguageModel(replace(characters.MODEL, d_model=16, d_ff=16, N=1, h=2))
    known = copy.deepcopy(model.state_dict())
    first = "What stands here stands here once. "
    at_once, learning = (
        characters.learning_bits(model, first * 3, 32, rate) for rate in (0.0, 0.01)
    )
    assert at_once == pytest.approx(
        characters.character_bits(model, first * 3, 32), rel=1e-5
    )
    assert learning < at_once
    one = [
        bits(model, first[:32], 32)
        for bits in (
            characters.character_bits,
            partial(characters.learning_bits, rate=0.01),
        )
    ]
    assert one[0] == pytest.approx(
        one[1], rel=1e-5
    )  # a single window, predicted before
    assert all(torch.equal(known[name], w) for name, w in model.state_dict().items())


def test_windows_stand_behind_the_begin_mark():
    data = characters.bytes_of("x" * 600)
    cut = characters.windows(data, 256)
    assert len(cut) == 2 and all(source == [] for source, _ in cut)
    assert all(target == [1] + 256 * [ord("x") + 3] for _, target in cut)


# One stack or two


@pytest.mark.system
@pytest.mark.parametrize("family", ["encoder-decoder", "decoder, prefix"])
def test_a_family_is_trained_and_scored(family, monkeypatch, tmp_path):
    monkeypatch.setattr(
        decoders,
        "TRAINING",
        replace(decoders.TRAINING, updates=2, batch_tokens=200, validate_every=2),
    )
    monkeypatch.setattr(decoders, "examples", lambda part: read_bundled("test")[:3])
    row = decoders.job_of(family, 0.003, 1).do(folder=tmp_path / "run", device="cpu")
    assert {"test.bleu", "longer.exact_match"} <= set(flatten(row)) and row[
        "updates"
    ] == 2


def test_families_have_equally_many_parameters():
    counts = [parameters_of(config) for config in decoders.FAMILIES.values()]
    assert max(counts) < 1.1 * min(counts)


# Dialogues

EXAMPLE = next(e for e in read_bundled("test") if " its " in e.source)


def test_what_is_asked_about_a_sentence():
    """The first possessive of the test split: gold from alignment and antecedents, both ways."""
    assert EXAMPLE.source.startswith(
        "Perhaps the orchestra that has built the new theatre"
    )
    to_german = dict(dialogues.word_questions(EXAMPLE, "de"))
    to_english = dict(dialogues.word_questions(EXAMPLE, "en"))
    assert to_german["dankte"] == "thanked" and to_english["thanked"] == "dankte"
    assert (
        to_german["Orchester"] == "orchestra" and "das" not in to_german
    )  # it stands twice
    assert dialogues.pronoun_questions(EXAMPLE, "en") == [("its", "orchestra")]
    assert dialogues.pronoun_questions(EXAMPLE, "de") == [("seinem", "Orchester")]


def test_dialogues_begin_with_the_sentence():
    both = list(dialogues.dialogues([EXAMPLE], seed=1))
    assert [turns[0][1] for turns in both] == [
        EXAMPLE.target,
        EXAMPLE.source,
        "orchestra",
    ]
    assert all(EXAMPLE.source in turns[0][0] for turns in (both[0], both[2]))
    assert [len(turns) for turns in both] == [3, 3, 1]
    assert both == list(dialogues.dialogues([EXAMPLE], seed=1))


def test_a_dialogue_as_ids():
    tokenizer = Tokenizer.train(["yes", "no"], 262)
    source, target = dialogues.encode_dialogue(tokenizer, [("a", "b"), ("c", "d")])
    a, b, c, d = (tokenizer.encode(letter) for letter in "abcd")
    assert source == [*a, 2] and target == [1, *b, 2, *c, 2, 1, *d, 2]
