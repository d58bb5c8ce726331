"""The families of models: by name, by configuration, and one of a user's own."""

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from torch import nn

from transformer.core.protocol import About
from transformer.fast.convolution import ConvolutionalEncoderDecoder, ConvolutionConfig
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.recurrence import RecurrenceConfig, RecurrentEncoderDecoder
from transformer.language import LanguageConfig, LanguageModel
from transformer.models.evaluation import evaluate
from transformer.models.families import (
    FAMILIES,
    build,
    family_named,
    family_of,
    register,
)
from transformer.models.pretrained import save
from transformer.models.search import translate


@pytest.mark.parametrize(
    "family, model_class, config",
    [
        ("transformer", Transformer, TransformerConfig(30, 16, 32, 1, 2)),
        ("recurrence", RecurrentEncoderDecoder, RecurrenceConfig(30, 16, 1)),
        ("convolution", ConvolutionalEncoderDecoder, ConvolutionConfig(30, 16, 1)),
        ("language", LanguageModel, LanguageConfig(30, 16, 32, 1, 2)),
    ],
)
def test_a_configuration_knows_its_model(family, model_class, config):
    model = build(config)
    assert (
        type(model) is model_class and family_of(config) == family_of(model) == family
    )
    assert family_named(family).config is type(config)


def test_a_family_of_ones_own(monkeypatch):
    @dataclass(frozen=True)
    class MineConfig:
        vocab_size: int = 10

    class Mine(nn.Module):
        def __init__(self, config, parts=1):
            super().__init__()
            self.config, self.parts = config, parts

    with pytest.raises(
        ValueError, match="MineConfig belongs to no family of models: register it"
    ):
        family_of(MineConfig())
    monkeypatch.setattr("transformer.models.families.FAMILIES", dict(FAMILIES))
    register("mine", Mine, MineConfig)
    assert type(build(MineConfig())) is Mine and family_of(Mine(MineConfig())) == "mine"
    assert build(MineConfig(), parts=3).parts == 3
    register("mine", Transformer, MineConfig)  # a name may get another class,
    with pytest.raises(
        ValueError, match="is the configuration of transformer: give yours one"
    ):
        register(
            "yours", Mine, TransformerConfig
        )  # and a configuration has one family,
    register(
        "yours", Mine, type("MineConfig", (MineConfig,), {})
    )  # not one of its name


def test_an_unknown_family():
    with pytest.raises(
        ValueError, match="'gru'.*: choose one of transformer, recurrence, conv"
    ):
        family_named("gru")


# What travels with a model


def model_of():
    return Transformer(TransformerConfig(50, d_model=16, d_ff=16, N=1, h=2))


def test_a_fresh_model_knows_no_languages():
    assert model_of().about == About(source=None, target=None, beam=4, alpha=0.6)


def test_a_model_of_another_class_is_refused(tmp_path):
    """A classifier around an encoder, say, which has a Transformer's configuration."""
    classifier = nn.Linear(2, 2)
    classifier.config = TransformerConfig(50)
    with pytest.raises(ValueError, match="Linear is no SequenceModel: derive it"):
        save(classifier, tmp_path)
    with pytest.raises(ValueError, match="Linear is no SequenceModel: derive it"):
        translate(classifier, None, ["Hello."])
    assert list(tmp_path.iterdir()) == []


def test_what_is_known_of_a_model_is_checked_when_set():
    model = model_of()
    model.about = About("en", "de", np.int64(6), 1)
    assert (model.about.source, model.about.beam) == ("en", 6)
    assert copy.deepcopy(model).about == model.about
    assert pickle.loads(pickle.dumps(model)).about == model.about
    with pytest.raises(ValueError, match="model.about must be an About, such as"):
        model.about = {"source": "en"}
    assert model.about == About("en", "de", 6, 1)


@pytest.mark.parametrize(
    "values, said",
    [
        ({"source": 3}, "source must be the code of a language"),
        ({"target": " "}, "target must be the code of a language"),
        ({"beam": 0}, "beam must be at least 1"),
        ({"beam": 2.5}, "beam must be a whole number"),
        ({"alpha": -1}, "alpha must be between 0 and 10"),
        ({"alpha": "much"}, "alpha must be between 0 and 10"),
    ],
)
def test_what_cannot_be_known_of_a_model(values, said):
    with pytest.raises(ValueError, match=said):
        About(**values)


def test_scores_ask_for_a_language_that_nobody_has_said():
    with pytest.raises(ValueError, match="this model knows none: give its code"):
        evaluate(model_of(), None, [("a", "b")])
