"""The kinds of models: by name, by configuration, and one of a user's own."""

from dataclasses import dataclass

import pytest
from torch import nn

from transformer.fast.convolution import ConvolutionalEncoderDecoder, ConvolutionConfig
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.recurrence import RecurrenceConfig, RecurrentEncoderDecoder
from transformer.language import LanguageConfig, LanguageModel
from transformer.models.kinds import KINDS, build, kind_named, kind_of, register


@pytest.mark.parametrize(
    "kind, model_class, config",
    [
        ("transformer", Transformer, TransformerConfig(30, 16, 32, 1, 2)),
        ("recurrence", RecurrentEncoderDecoder, RecurrenceConfig(30, 16, 1)),
        ("convolution", ConvolutionalEncoderDecoder, ConvolutionConfig(30, 16, 1)),
        ("language", LanguageModel, LanguageConfig(30, 16, 32, 1, 2)),
    ],
)
def test_a_configuration_knows_its_model(kind, model_class, config):
    model = build(config)
    assert type(model) is model_class and kind_of(config) == kind_of(model) == kind
    assert kind_named(kind).config is type(config)


def test_a_kind_of_ones_own(monkeypatch):
    @dataclass(frozen=True)
    class MineConfig:
        vocab_size: int = 10

    class Mine(nn.Module):
        def __init__(self, config, depth=1):
            super().__init__()
            self.config, self.depth = config, depth

    with pytest.raises(
        ValueError, match="MineConfig belongs to no kind of model: register it"
    ):
        kind_of(MineConfig())
    monkeypatch.setattr("transformer.models.kinds.KINDS", dict(KINDS))
    register("mine", Mine, MineConfig)
    assert type(build(MineConfig())) is Mine and kind_of(Mine(MineConfig())) == "mine"
    assert build(MineConfig(), depth=3).depth == 3
    register("mine", Transformer, MineConfig)  # a name may get another class,
    with pytest.raises(
        ValueError, match="is the configuration of transformer: give yours one"
    ):
        register("yours", Mine, TransformerConfig)  # and a configuration has one kind,
    register(
        "yours", Mine, type("MineConfig", (MineConfig,), {})
    )  # not one of its name


def test_an_unknown_kind():
    with pytest.raises(
        ValueError, match="'gru': choose one of transformer, recurrence, conv"
    ):
        kind_named("gru")
