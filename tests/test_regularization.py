"""Section 5.4: dropout and label smoothing."""

import math

import pytest
import torch
import torch.nn.functional as F
from helpers import assert_close, random

from transformer.fast import projected
from transformer.fast.loss import ChunkedLoss, SmoothedLoss
from transformer.fast.model import Transformer, TransformerConfig
from transformer.models.recording import cache
from transformer.regularization import (
    cross_entropy_with_targets,
    dropout,
    label_smoothing_loss,
    smoothed_targets,
)


@pytest.fixture
def tiny():
    torch.manual_seed(0)
    return Transformer(TransformerConfig(20, d_model=16, d_ff=32, N=2, h=2, P_drop=0.5))


# Dropout


@pytest.mark.parametrize("P_drop", [0.0, 0.1, 0.3, 0.9])
def test_dropout_keeps_the_mean(P_drop):
    torch.manual_seed(0)
    x = torch.rand(400_000, dtype=torch.float64) + 1
    spread = (
        4 * math.sqrt(x.square().mean().item() * P_drop / (1 - P_drop) / len(x)) + 1e-12
    )  # four standard errors
    for y in (dropout(x, P_drop), F.dropout(x, P_drop)):
        assert abs(y.mean() - x.mean()).item() < spread
        assert abs((y == 0).double().mean().item() - P_drop) < 0.004
        assert torch.allclose(y[y != 0], x[y != 0] / (1 - P_drop), rtol=0, atol=1e-12)


@pytest.mark.parametrize("P_drop", [-0.1, 1.0, 2.0])
def test_dropout_out_of_range(P_drop):
    with pytest.raises(
        ValueError, match=f"P_drop must be at least 0 and below 1, not {P_drop}"
    ):
        dropout(torch.ones(3), P_drop)


@pytest.mark.parametrize("N", [1, 2, 6])
def test_where_dropout_stands(N):
    with torch.device("meta"):
        model = Transformer(TransformerConfig.preset("base", vocab_size=100, N=N))
    expected = {
        f"{side}.layers.{n}.residuals.{i}.dropout"
        for side, sublayers in (("encoder", 2), ("decoder", 3))
        for n in range(N)
        for i in range(sublayers)
    } | {"dropout"}
    dropouts = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Dropout)
    }
    assert set(dropouts) == expected
    assert all(module.p == 0.1 for module in dropouts.values())


def test_sublayers_and_attention_weights_are_not_dropped(tiny):
    x = torch.randn(2, 5, 16)
    layer = tiny.encoder.layers[0]
    results = []
    for mode in (True, False):
        tiny.train(mode)
        with cache(layer, "self_attention.weights") as seen:
            results.append(
                (
                    layer.self_attention(x, x, x),
                    layer.feed_forward(x),
                    seen["self_attention.weights"],
                )
            )
    assert all(torch.equal(a, b) for a, b in zip(*results))


def test_embedding_sums_are_dropped(tiny):
    seen = []
    tiny.encoder.register_forward_pre_hook(
        lambda module, inputs: seen.append(inputs[0])
    )
    tiny.decoder.register_forward_pre_hook(
        lambda module, inputs: seen.append(inputs[0])
    )
    tokens = torch.randint(3, 20, (8, 12))
    tiny.train()(tokens, tokens)
    assert (
        all(abs((x == 0).float().mean() - 0.5) < 0.08 for x in seen) and len(seen) == 2
    )
    tiny.eval()(tokens, tokens)
    assert not any((x == 0).any() for x in seen[2:])


# Label smoothing


@pytest.fixture
def batch():
    """Logits at float64 and gold tokens, five of them padding."""
    torch.manual_seed(0)
    gold = torch.randint(1, 7, (3, 5))
    gold[1, 3:], gold[2, 2:] = 0, 0
    return torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True), gold


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2, 0.9])
@pytest.mark.parametrize("V", [3, 10, 37_000])
def test_targets_are_a_distribution_over_all_types(V, epsilon):
    targets = smoothed_targets(torch.tensor([[1, 0], [2, 1]]), V, epsilon)
    assert targets.shape == (2, 2, V)
    assert torch.allclose(targets.sum(dim=-1), torch.ones(2, 2), atol=1e-4)
    assert targets[0, 0, 1].item() == pytest.approx(1 - epsilon + epsilon / V, abs=1e-6)
    assert (
        targets[0, 0, 2].item()
        == targets[0, 0, 0].item()
        == pytest.approx(epsilon / V, abs=1e-7)
    )  # padding's too


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3])
def test_loss_equals_a_loop(batch, epsilon):
    logits, gold = batch
    total = 0.0
    for row, answer in zip(logits.detach().flatten(0, 1), gold.flatten().tolist()):
        if answer == 0:
            continue
        log_p = (row - row.exp().sum().log()).tolist()
        total -= sum(
            ((1 - epsilon) * (k == answer) + epsilon / 7) * log_p[k] for k in range(7)
        )
    assert label_smoothing_loss(
        logits, gold, epsilon, reduction="sum"
    ).item() == pytest.approx(total, abs=1e-9)
    assert label_smoothing_loss(logits, gold, epsilon).item() == pytest.approx(
        total / 10, abs=1e-9
    )


def test_targets_and_cross_entropy_give_the_same(batch):
    logits, gold = batch
    losses = cross_entropy_with_targets(logits, smoothed_targets(gold, 7, 0.1))
    ours = label_smoothing_loss(logits, gold, 0.1, reduction="none").unflatten(
        0, gold.shape
    )
    assert torch.allclose(ours, losses.masked_fill(gold == 0, 0.0), rtol=0, atol=1e-6)


def test_padding_is_ignored(batch):
    logits, gold = batch
    changed = logits.detach().clone()
    changed[gold == 0] = 1e3 * torch.randn(5, 7, dtype=torch.float64)
    for reduction in ("mean", "sum"):
        losses = [
            label_smoothing_loss(rows, gold, reduction=reduction)
            for rows in (changed, logits)
        ]
        assert losses[0] == losses[1]
    label_smoothing_loss(logits, gold).backward()
    assert logits.grad[gold == 0].eq(0).all() and logits.grad[gold != 0].ne(0).all()


def test_gradient_is_probability_minus_target(batch):
    logits, gold = batch
    label_smoothing_loss(logits, gold, 0.1, reduction="sum").backward()
    expected = (logits.softmax(dim=-1) - smoothed_targets(gold, 7, 0.1)).masked_fill(
        (gold == 0)[..., None], 0.0
    )
    assert torch.allclose(logits.grad, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("criterion", [SmoothedLoss, ChunkedLoss])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("pad_id", [0, 3])
def test_a_criterion_is_the_loss_of_the_logits(criterion, epsilon, pad_id, monkeypatch):
    """Summed over real tokens, gradients included; the fast one in several chunks."""
    monkeypatch.setattr(projected, "chunk_rows", lambda E: 4)
    torch.manual_seed(0)
    output, x = torch.nn.Linear(6, 9, bias=False).double(), random(3, 5, 6)
    gold = torch.randint(0, 9, (3, 5))
    found = criterion(epsilon, pad_id)(output, x, gold)
    expected = label_smoothing_loss(output(x), gold, epsilon, pad_id, "sum")
    assert_close(found, expected)
    for a, b in zip(
        *(
            torch.autograd.grad(2 * total, (x, output.weight))
            for total in (found, expected)
        )
    ):
        assert_close(a, b)


@pytest.mark.parametrize(
    "V, epsilon", [(5, 0.1), (1000, 0.1), (1000, 0.2), (37_000, 0.1)]
)
def test_nothing_is_below_the_entropy_of_the_targets(V, epsilon):
    targets = torch.full((V,), epsilon / V, dtype=torch.float64)
    targets[1] += 1 - epsilon
    assert torch.allclose(
        smoothed_targets(torch.tensor(1), V, epsilon).double(), targets
    )
    entropy = torch.special.entr(targets).sum().item()
    gold = torch.ones(1, 1, dtype=torch.long)
    best = label_smoothing_loss(targets.log()[None, None], gold, epsilon)
    assert best.item() == pytest.approx(entropy, abs=1e-9)
    torch.manual_seed(0)
    others = targets.log() + 0.3 * torch.randn(20, 1, V, dtype=torch.float64)
    losses = label_smoothing_loss(others, gold.expand(20, 1), epsilon, reduction="none")
    assert losses.min() > entropy


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_padding_alone_costs_nothing(epsilon):
    """The mean of nothing was NaN, and one such batch made all weights so."""
    x = torch.randn(2, 3, 4, requires_grad=True)
    E = torch.randn(7, 4, requires_grad=True)
    gold = torch.zeros(2, 3, dtype=torch.long)
    losses = [
        label_smoothing_loss(x @ E.T, gold, epsilon),
        label_smoothing_loss(x @ E.T, gold, epsilon, reduction="sum"),
        projected.projected_loss(x, E, gold, epsilon),
    ]
    for found in losses:
        assert found.item() == 0
        for gradient in torch.autograd.grad(found, (x, E), retain_graph=True):
            assert (gradient == 0).all()
