"""Positional encoding: the formula, the shift property, learned positions, the end of the table."""

import math

import pytest
import torch

from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
)
from transformer.positions import frequencies, shift_matrix, sinusoids

both_kinds = pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])


def difference(a, b):
    return (a - b).abs().max().item()


@pytest.mark.parametrize("n, d_model", [(1, 2), (50, 6), (130, 16)])
def test_sinusoids_equal_the_formula(n, d_model):
    expected = torch.empty(n, d_model, dtype=torch.float64)
    for pos in range(n):
        for i in range(d_model // 2):
            expected[pos, 2 * i] = math.sin(pos / 10000 ** (2 * i / d_model))
            expected[pos, 2 * i + 1] = math.cos(pos / 10000 ** (2 * i / d_model))
    table = sinusoids(n, d_model)
    assert table.dtype == torch.float64 and table.shape == (n, d_model)
    assert difference(table, expected) < 1e-9


@pytest.mark.parametrize("d_model", [2, 16, 512])
def test_wavelengths_are_a_geometric_progression(d_model):
    lengths = 2 * math.pi / frequencies(d_model)
    assert lengths[0].item() == pytest.approx(2 * math.pi)
    assert lengths[-1].item() == pytest.approx(
        2 * math.pi * 10000 ** ((d_model - 2) / d_model)
    )
    assert len(lengths) == d_model // 2
    assert (lengths[1:] / lengths[:-1]).tolist() == pytest.approx(
        [10000 ** (2 / d_model)] * (d_model // 2 - 1)
    )


@pytest.mark.parametrize("k", [0, 1, 7, 400, -7])
def test_a_shift_is_a_fixed_rotation(k):
    table, M = sinusoids(1000, 64), shift_matrix(k, 64)
    pos = torch.arange(max(0, -k), 1000 - max(0, k))
    assert difference(table[pos] @ M.T, table[pos + k]) < 1e-9
    assert difference(M @ M.T, torch.eye(64)) < 1e-9
    blocks = torch.block_diag(*[torch.ones(2, 2)] * 32)
    assert (M[blocks == 0] == 0).all()


def test_inner_products_depend_on_the_distance_only():
    table = sinusoids(200, 32)
    for distance in (0, 1, 5, 60):
        products = (table[distance:] * table[: 200 - distance]).sum(dim=1)
        assert difference(products, (distance * frequencies(32)).cos().sum()) < 1e-9


@both_kinds
def test_adds_row_by_row(kind):
    positions = kind(10, 8)
    x = torch.randn(3, 6, 8)
    expected = torch.stack(
        [
            torch.stack([x[b, t] + positions.table[t] for t in range(6)])
            for b in range(3)
        ]
    )
    assert torch.equal(positions(x), expected)
    assert torch.equal(positions(x[:, 4:], start=4), expected[:, 4:])


def test_sinusoids_are_not_learned_and_not_saved():
    assert (
        not list(SinusoidalPositions(10, 8).parameters())
        and not SinusoidalPositions(10, 8).state_dict()
    )


def test_learned_positions_are_learned_where_they_are_used():
    positions = LearnedPositions(10, 8)
    positions(torch.randn(2, 4, 8)).square().sum().backward()
    touched = positions.table.grad.abs().sum(dim=1) > 0
    assert touched.tolist() == [True] * 4 + [False] * 6


def test_learned_positions_start_as_embeddings_do():
    torch.manual_seed(0)
    assert LearnedPositions(1000, 64).table.var().item() == pytest.approx(
        1 / 64, rel=0.05
    )


@pytest.mark.parametrize("start", [0, 7])
def test_rotary_positions_turn_each_pair_by_its_angle(start):
    """As a product of complex numbers: the pair 2i, 2i + 1 times exp(i pos omega_i)."""
    x, pos = torch.randn(2, 3, 5, 8), torch.arange(start, start + 5)[:, None]
    turns = torch.exp(1j * pos * frequencies(8))
    expected = torch.view_as_complex(x.double().unflatten(-1, (-1, 2))) * turns
    found = RotaryPositions(20, 8)(x, start)
    assert difference(found, torch.view_as_real(expected).flatten(-2)) < 1e-5


@both_kinds
@pytest.mark.parametrize("start, length", [(0, 11), (10, 1), (8, 3)])
def test_past_the_table_is_an_error(kind, start, length):
    positions = kind(10, 8)
    message = (
        f"a sentence of {start + length} tokens is longer than the model's 10 positions"
    )
    with pytest.raises(ValueError, match=message):
        positions(torch.zeros(1, length, 8), start)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sinusoids(5, 7),
        lambda: frequencies(7),
        lambda: SinusoidalPositions(5, 7),
    ],
)
def test_an_odd_width_is_an_error(make):
    with pytest.raises(ValueError, match="d_model must be even.*not 7"):
        make()


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
@pytest.mark.parametrize("start", [-1, -3])
def test_a_start_before_the_first_row_is_refused(kind, start):
    with pytest.raises(ValueError, match=f"start must be at least 0, not {start}"):
        kind(10, 8)(torch.zeros(1, 2, 8), start)


def test_heads_of_an_odd_width_are_named():
    """The sentence was about d_model, "not 5", where d_model is 30."""
    sizes = {"d_model": 30, "h": 6, "d_ff": 8, "N": 1, "positions": "rotary"}
    said = r"the width of a head must be even .* d_model / h \(or d_k\) is 5"
    with pytest.raises(ValueError, match=said):
        Transformer(TransformerConfig(30, **sizes))
