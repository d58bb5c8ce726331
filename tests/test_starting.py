"""What is measured along trainings that do and do not use their source."""

import math

import pytest
import torch

from transformer.core.records import read_rows, write_rows
from transformer.experiments import starting
from transformer.experiments.starting import Setting
from transformer.fast.training import AdamByParts, part_of
from transformer.runs.schedules import set_rates

C = starting.experiment_of(Setting(N=2), seed=1).model
ENCODED = [
    ([5, 6, 7, 2], [1, 8, 9, 2]),
    ([10, 2], [1, 11, 2]),
    ([5, 12, 2], [1, 8, 13, 14, 2]),
]


def test_spread_is_that_of_positions_and_of_sentences():
    real = torch.tensor([[True, True], [True, False]])
    x = torch.tensor(
        [[[3.0], [1.0]], [[2.0], [99.0]]]
    )  # means 2 and 2, squares 9, 1, 4
    assert starting.spread(x, real) == pytest.approx((2 / 14, 0.0))
    x = torch.tensor([[[3.0], [3.0]], [[-6.0], [99.0]]])  # about 0, twice 3 and once -6
    assert starting.spread(x, real) == pytest.approx((0.0, 1.0))


def test_entropy_is_one_where_attention_is_even():
    weights = torch.tensor(
        [[[[0.25] * 4, [1.0, 0, 0, 0]]], [[[0.5, 0.5, 0, 0], [1.0, 0, 0, 0]]]]
    )
    lengths, both = torch.tensor([4.0, 2.0]), torch.ones(2, 2, dtype=torch.bool)
    first = torch.tensor([[True, False], [True, False]])
    assert starting.entropy(weights, lengths, first) == pytest.approx(1.0)
    assert starting.entropy(weights, lengths, both) == pytest.approx(0.5)


def test_a_probe_changes_nothing():
    model = starting.new_model(Setting(N=2), C, 1).eval()
    before, state = (
        {k: v.clone() for k, v in model.state_dict().items()},
        torch.get_rng_state(),
    )
    found = starting.probe(ENCODED, model)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[name], p) for name, p in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert {"use", "spread.positions.2", "entropy.2", "gradient.cross"} <= set(found)
    assert all(math.isfinite(value) for value in found.values())


@pytest.mark.parametrize("part", ["encoder", "cross", "decoder"])
def test_a_part_with_no_share_of_the_rate_stays(part):
    model = starting.new_model(Setting(N=2), C, 1)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = AdamByParts(model, {part: 0.0})
    sum(p.square().sum() for p in model.parameters()).backward()
    set_rates(optimizer, 0.1)
    optimizer.step()
    for name, p in model.named_parameters():
        if p.grad.any():
            assert torch.equal(p, before[name]) == (part_of(name) == part), name


def run_row(row, seed, use):
    losses = [4.0, 3.4, 3.0, 2.9]
    return {
        "name": f"{row}-{seed}",
        "command": "",
        "commit": "",
        "hardware": "",
        "centre": "ignores",
        "row": row,
        "seed": seed,
        "use": use,
        "model.N": 1,
        "log.update": [60, 240, 300, 360],
        "log.validation_loss": losses,
        "log.use": [0, 0.1, 0.3, use],
        "log.spread.positions.1": [0.5, 0.01, 0.1, 0.1],
        "log.entropy.1": [1, 0.99, 0.9, 0.5],
        "log.gradient.encoder": [1, 1, 1, 1],
        "log.gradient.self": [1, 2, 1, 1],
    }


def test_a_factor_decides_where_every_seed_changes_sides(tmp_path):
    uses = {
        "centre": [0.1, 0.11, 0.12],
        "a": [0.8, 0.82, 0.81],
        "b": [0.2, 0.21, 0.45],
        "c": [0.1, 0.12, 0.11],
    }
    rows = [
        run_row(row, seed, use)
        for row, own in uses.items()
        for seed, use in enumerate(own)
    ]
    write_rows(tmp_path / "found.json", rows)
    for _ in range(2):  # the second time nothing is added
        starting.summarize(tmp_path / "found.json")
    found = read_rows(tmp_path / "found.json")
    verdicts = {
        row["row"]: row["verdict"] for row in found if row["what"] == "difference"
    }
    assert verdicts == {"a": "decides", "b": "contributes", "c": "none"}
    assert found[0]["use_at_loss"] == pytest.approx(0.2) and found[0]["sign.collapsed"]
    assert (
        found[0]["sign.even"] and not found[0]["sign.vanished"] and len(found) == 12 + 3
    )


def test_nothing_is_written_of_no_runs(tmp_path):
    starting.summarize(tmp_path / "none.json")
    assert not list(tmp_path.iterdir())
