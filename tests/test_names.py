"""What is said of a name that is not known: the nearest of those that are."""

import pytest

from transformer import (
    Experiment,
    TrainingConfig,
    TransformerConfig,
    cache,
    edit,
    load,
    read_corpus,
)
from transformer.cli import parse
from transformer.core.names import did_you_mean


@pytest.fixture(scope="module")
def model():
    return load()[0]


@pytest.mark.parametrize(
    "name, said",
    [
        ("bgi", " (did you mean big?)"),
        ("BASE", " (did you mean base?)"),
        ("big-one", " (did you mean big_one?)"),
        ("zebra", ""),
        (3, ""),
    ],
)
def test_the_nearest_of_the_known_names(name, said):
    assert did_you_mean(name, ["base", "big", "big_one"]) == said


@pytest.mark.parametrize(
    "ask, near",
    [
        (lambda: Experiment(model={"d_modle": 64}), "d_model"),
        (lambda: Experiment(training={"minuts": 3}), "minutes"),
        (lambda: Experiment(model={"preset": "bgi"}), "big"),
        (lambda: TransformerConfig.preset("smal", vocab_size=300), "small"),
        (lambda: TransformerConfig(300, positions="rotory"), "rotary"),
        (lambda: TrainingConfig(schedule="cosin"), "cosine"),
        (lambda: load("tatoebq"), "tatoeba"),
        (lambda: read_corpus("multi30", "test"), "multi30k"),
        (lambda: read_corpus("bundled", "tset"), "test"),
        (lambda: parse(["trian"]), "train"),
        (lambda: parse(["train", "--family", "recurence"]), "recurrence"),
        (lambda: parse(["bench", "smal"]).run(), "small"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(ask, near):
    with pytest.raises(
        (ValueError, FileNotFoundError), match=rf"did you mean {near}\?"
    ):
        ask()


def test_an_unknown_option_is_answered_with_the_nearest(capsys):
    with pytest.raises(SystemExit):
        parse(["train", "--d-modle", "8"])
    assert "--d-model" in capsys.readouterr().err


@pytest.mark.parametrize(
    "look", [cache, lambda *names: edit(names[0], {names[1]: abs})]
)
def test_an_unknown_activation_is_answered_with_the_nearest(model, look):
    with pytest.raises(ValueError, match="near: encoder.0.self_attention.weights, "):
        with look(model, "encoder.0.self_atention.weights"):
            pass
