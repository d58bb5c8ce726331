"""The plain loop of notebook 14 and the engine's: the same losses, weights and validation in fp64."""

import dataclasses

import pytest
import torch
from test_training import encoded, model_of, without_dropout  # noqa: F401

import transformer
from transformer import data
from transformer import training as plain
from transformer.data import collate
from transformer.fast.loss import SmoothedLoss
from transformer.hardware import loss_scaler
from transformer.optimizer import adam
from transformer.runs import batches
from transformer.runs import training as strong

pytestmark = pytest.mark.usefixtures("one_thread")
SETTINGS = dict(
    updates=7, batch_tokens=40, accumulate=2, warmup=3, lr_scale=0.5, validate_every=3
)
FORMS = (plain, strong)


def exact():
    return model_of(without_dropout()).double()


def assert_same_weights(one, other):
    for a, b in zip(one.parameters(), other.parameters()):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("epsilon_ls", [0.0, 0.1])
def test_both_loops_train_alike(encoded, epsilon_ls):  # noqa: F811
    """Each call of the plain loop, with the plain settings, through both."""
    config = plain.TrainingConfig(**SETTINGS, epsilon_ls=epsilon_ls)
    models, logs = [], []
    for form in FORMS:
        model = exact()

        def validate(model, form=form):
            return form.validation_loss(model, encoded[:9])

        logs.append(form.train(model, encoded, config, validate=validate))
        models.append(model)
    assert_same_weights(*models)
    assert [row["update"] for row in logs[0]] == [3, 6, 7]
    for row, other in zip(*logs, strict=True):
        for name, figure in row.items():
            assert other[name] == pytest.approx(figure, rel=1e-12), name


def test_an_update_of_some_parts(encoded):  # noqa: F811
    batches = [collate(encoded[:5]), collate(encoded[5:24])]
    tokens = sum(len(target) - 1 for _, target in encoded)
    one, other = exact(), exact()
    loss = plain.accumulate(one, batches, 0.1)
    objective = strong.Objective(other, SmoothedLoss(0.1))
    scaler = loss_scaler(torch.device("cpu"), "fp32")
    seeded = [(0, batch) for batch in batches]
    parts = objective, adam(other), scaler, seeded, tokens, 0.0
    assert strong.update_weights(*parts)[0].item() == pytest.approx(loss, rel=1e-12)
    for a, b in zip(one.parameters(), other.parameters()):
        torch.testing.assert_close(a.grad, b.grad, rtol=0, atol=1e-12)


def test_both_measure_alike(encoded):  # noqa: F811
    model = exact()
    losses = [form.validation_loss(model, encoded, batch_tokens=30) for form in FORMS]
    assert losses[1] == pytest.approx(losses[0], rel=1e-12)


def test_both_streams_are_one(encoded):  # noqa: F811
    streams = (
        plain.stream_batches(encoded, 40, 5),
        (rows for _, _, rows in strong.endless_batches(encoded, 40, 5)),
    )
    for _ in range(40):
        assert next(streams[0]) == next(streams[1])


def test_both_forms_of_batches_are_one(encoded):  # noqa: F811
    for seed in range(3):
        plain_batches = data.token_batches(encoded, 40, seed)
        assert batches.token_batches(encoded, 40, seed) == plain_batches


def test_the_settings_of_the_engine_are_the_plain_ones_and_more():
    assert issubclass(transformer.TrainingConfig, plain.TrainingConfig)
    settings = dataclasses.asdict(transformer.TrainingConfig())
    assert settings.items() >= dataclasses.asdict(plain.TrainingConfig()).items()
    assert transformer.train is strong.train
