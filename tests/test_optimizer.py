"""Section 5.3: Adam and the schedule."""

import pytest
import torch
from torch import nn

from transformer.experiments.warmup import UPDATES, WARMUP, plans, train_with_rates
from transformer.fast.training import fused_adam
from transformer.optimizer import (
    adam,
    adam_update,
    learning_rate,
    peak_rate,
    set_learning_rate,
    step_lengths,
)


@pytest.mark.parametrize(
    "d_model, warmup", [(512, 4000), (1024, 4000), (512, 16_000), (128, 800), (64, 1)]
)
def test_schedule_is_equation_3(d_model, warmup):
    for step in (1, 2, warmup // 2 or 1, warmup, warmup + 1, 10 * warmup):
        rising, falling = step / warmup**1.5, 1 / step**0.5
        assert learning_rate(step, d_model, warmup) == pytest.approx(
            min(rising, falling) / d_model**0.5, rel=1e-12
        )


@pytest.mark.parametrize("d_model, warmup", [(512, 4000), (128, 300)])
def test_peak_stands_at_the_end_of_the_warmup(d_model, warmup):
    rates = [learning_rate(step, d_model, warmup) for step in range(1, 4 * warmup)]
    assert (
        max(rates)
        == rates[warmup - 1]
        == pytest.approx(peak_rate(d_model, warmup), rel=1e-12)
    )
    assert peak_rate(d_model, warmup) == pytest.approx(
        d_model**-0.5 * warmup**-0.5, rel=1e-12
    )
    assert rates[:warmup] == sorted(rates[:warmup]) and rates[warmup - 1 :] == sorted(
        rates[warmup - 1 :], reverse=True
    )


def test_schedule_of_the_paper():
    assert learning_rate(4000) == pytest.approx(6.987712e-4, rel=1e-6)
    assert learning_rate(1) == pytest.approx(1.746928e-7, rel=1e-6)
    assert learning_rate(400_000) == pytest.approx(learning_rate(4000) / 10, rel=1e-12)


@pytest.mark.parametrize("step, warmup", [(0, 4000), (-1, 4000), (1, 0)])
def test_steps_count_from_one(step, warmup):
    with pytest.raises(
        ValueError,
        match=f"step, d_model and warmup must be at least 1, not {step}, 512 and {warmup}",
    ):
        learning_rate(step, warmup=warmup)


@pytest.mark.parametrize("d_model, warmup", [(-4, 4000), (0, 4000), (512, -1)])
def test_widths_and_warmups_count_from_one(d_model, warmup):
    for rate in (peak_rate, lambda *sizes: learning_rate(1, *sizes)):
        with pytest.raises(
            ValueError,
            match=f"d_model.* and warmup must be at least 1, not .*{d_model} and {warmup}",
        ):
            rate(d_model, warmup)


def problem():
    """A small model at float64 and a loss with curvature."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    x, y = (
        torch.randn(20, 4, dtype=torch.float64),
        torch.randn(20, 3, dtype=torch.float64),
    )
    return model, lambda model: (model(x) - y).square().mean()


@pytest.mark.parametrize("kind", [adam, fused_adam])
def test_adam_equals_the_update_written_out(kind):
    model, loss_of = problem()
    optimizer = kind(model)
    state = [
        (p.detach().clone(), torch.zeros_like(p), torch.zeros_like(p))
        for p in model.parameters()
    ]
    for step in range(1, 31):
        rate = learning_rate(step, 16, 10)
        set_learning_rate(optimizer, rate)
        optimizer.zero_grad()
        loss_of(model).backward()
        state = [
            adam_update(p, own.grad, m, v, step, rate)
            for (p, m, v), own in zip(state, model.parameters())
        ]
        optimizer.step()
        for (p, _, _), own in zip(state, model.parameters()):
            assert torch.allclose(p, own, rtol=0, atol=1e-9)


def test_adam_update_number_by_number():
    """Kingma and Ba's algorithm in plain Python, one weight."""
    gradients, p, m, v, theta, first, second = (
        [0.5, -2.0, 1e-3, 0.0],
        1.0,
        0.0,
        0.0,
        1.0,
        0.0,
        0.0,
    )
    for t, g in enumerate(gradients, 1):
        p, m, v = adam_update(p, g, m, v, t, rate=0.01)
        first, second = 0.9 * first + 0.1 * g, 0.98 * second + 0.02 * g * g
        theta -= (
            0.01 * (first / (1 - 0.9**t)) / ((second / (1 - 0.98**t)) ** 0.5 + 1e-9)
        )
        assert p == pytest.approx(theta, abs=1e-15)


@pytest.mark.parametrize("optimizer", [adam, fused_adam])
def test_adam_has_the_settings_of_the_paper(optimizer):
    model, _ = problem()
    (group,) = optimizer(model).param_groups
    assert (group["betas"], group["eps"], group["weight_decay"], group["lr"]) == (
        (0.9, 0.98),
        1e-9,
        0,
        0.0,
    )
    assert not group["amsgrad"] and len(group["params"]) == 4


def test_length_of_a_step():
    assert step_lengths([3.0] * 50) == pytest.approx(
        [1.0] * 50, abs=1e-6
    )  # whatever the gradient's size
    assert step_lengths([1e-9])[0] == pytest.approx(
        0.5, abs=1e-12
    )  # as large as epsilon: half a step
    jump = [1.0] * 300 + [0.1] * 600
    assert (
        step_lengths(jump)[-1] > 0.99
        and step_lengths(jump, betas=(0.9, 0.999))[-1] < 0.3
    )


def test_train_with_rates_follows_its_rates():
    model, loss_of = problem()
    start = loss_of(model).item()
    assert train_with_rates(model, loss_of, [0.0] * 3) == pytest.approx(
        [start] * 3, abs=1e-12
    )
    losses = train_with_rates(model.eval(), loss_of, [0.01] * 50)
    assert model.training and len(losses) == 50 and losses[-1] < 0.8 * losses[0]


def test_a_rate_of_zero_leaves_weights_and_m_alone_and_forms_v():
    model = torch.nn.Linear(1, 1, bias=False).double()
    start = model.weight.item()
    train_with_rates(model, lambda model: 3 * model.weight.sum(), [0.0] * 3 + [0.1])
    # the gradient is 3: v is formed, m only begins, and is divided by what 4 updates would give it
    assert start - model.weight.item() == pytest.approx(
        0.1 * 0.1 / (1 - 0.9**4), abs=1e-9
    )


def test_plans_of_rates():
    """A plan holds the weights still, or trains them for 250 updates; after the warm-up all with
    the whole peak go on alike."""
    rates = {name: rates for name, (rates, _) in plans().items()}
    assert {len(plan) for plan in rates.values()} == {UPDATES, UPDATES + WARMUP}
    for name in ("no warm-up", "pre-norm, no warm-up", "v first, short steps"):
        assert rates[name][WARMUP - UPDATES :] == rates["warm-up"][WARMUP:]
    assert rates["short steps"][0] == pytest.approx(0.1 * rates["no warm-up"][0])
    assert rates["v first, full steps"][WARMUP] > 9 * rates["no warm-up"][0]
