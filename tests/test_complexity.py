"""Table 1's layers: restricted attention equals the masked full form, dilation torch's; what counts."""

import math

import pytest
import torch
import torch.nn.functional as F
from helpers import assert_close, random
from torch.utils.flop_counter import FlopCounterMode

from transformer.attention import causal_mask, padding_mask
from transformer.complexity import (
    KINDS,
    Dilated,
    Recurrent,
    ReusedTables,
    layer_flops,
    local_attention,
    longest_chain,
    make_layer,
    path_length,
    pruned_attention,
    recurrent_round,
    sorted_attention,
    stacked,
    windows,
)
from transformer.convolution import Convolution
from transformer.experiments import limits
from transformer.fast.attention import scaled_dot_product_attention
from transformer.teaching.measuring import TensorMemory, crossing, exponent

pytestmark = pytest.mark.usefixtures("seed")
PLAIN = [kind for kind in KINDS if "fused" not in kind]


# Restricted attention


def band(n, r, causal):
    """The mask of the full form: |i - j| <= r, and j <= i if causal."""
    allowed = [
        [abs(i - j) <= r and (j <= i or not causal) for j in range(n)] for i in range(n)
    ]
    return torch.tensor(allowed)


def test_windows_hold_a_block_and_its_neighbours():
    x = torch.arange(1, 8)[:, None]
    assert windows(x, 3)[..., 0].tolist() == [
        [0, 0, 0, 1, 2, 3, 4, 5, 6],
        [1, 2, 3, 4, 5, 6, 7, 0, 0],
        [4, 5, 6, 7, 0, 0, 0, 0, 0],
    ]
    assert windows(x, 4, causal=True)[..., 0].tolist() == [
        [0, 0, 0, 0, 1, 2, 3, 4],
        [1, 2, 3, 4, 5, 6, 7, 0],
    ]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    "n, r", [(24, 4), (23, 5), (5, 5), (4, 7), (1, 3), (6, 1), (9, 8)]
)
def test_equals_the_masked_full_form(n, r, padded, causal):
    q, k, v = random(2, 3, n, 4), random(2, 3, n, 4), random(2, 3, n, 6)
    real = None
    if padded:
        tokens = torch.ones(2, n).int()
        tokens[0, n // 2 :] = tokens[1, 0] = 0
        real = padding_mask(tokens, pad_id=0)
    allowed = band(n, r, causal) if real is None else band(n, r, causal) & real
    ours, _ = local_attention(q, k, v, real, r=r, causal=causal)
    full, _ = scaled_dot_product_attention(q, k, v, allowed)
    assert_close(ours, full)
    direction = torch.randn_like(ours)
    for a, b in zip(
        torch.autograd.grad((ours * direction).sum(), (q, k, v)),
        torch.autograd.grad((full * direction).sum(), (q, k, v)),
    ):
        assert_close(a, b)


def test_who_sees_nothing_gets_zeros():
    q, tokens = random(1, 2, 40, 4), (torch.arange(40) < 15).int()[None]
    output, _ = local_attention(q, q, q, padding_mask(tokens, pad_id=0), r=3)
    (gradient,) = torch.autograd.grad(output.square().sum(), q)
    assert output[:, :, :18].ne(0).all() and output[:, :, 18:].eq(0).all()
    assert (
        gradient[:, :, :15].ne(0).any(dim=-1).all() and gradient[:, :, 18:].eq(0).all()
    )


def test_needs_memory_in_proportion_to_n():
    """Twice the length, twice the bytes; never a tensor of n x n."""
    peaks = []
    for n in (512, 1024):
        q = torch.randn(1, 2, n, 8)
        with TensorMemory() as memory:
            local_attention(q, q, q, r=16)
        peaks.append(memory.peak)
    assert (
        peaks[1] == pytest.approx(2 * peaks[0], rel=0.05) and peaks[1] < 2 * 1024 * 1024
    )


@pytest.mark.parametrize(
    "r, lengths", [(0, (6, 6, 6)), (-1, (6, 6, 6)), (2, (6, 5, 5)), (2, (6, 6, 5))]
)
def test_refuses_other_lengths_and_no_neighbours(r, lengths):
    q, k, v = (torch.zeros(1, 1, n, 4) for n in lengths)
    with pytest.raises(
        ValueError, match=f"r must be at least 1 and q, k, v equally long: r = {r}, 6"
    ):
        local_attention(q, k, v, r=r)


@pytest.mark.parametrize(
    "mask", [causal_mask(6), torch.ones(1, 6), torch.ones(1, 5, dtype=torch.bool)]
)
def test_refuses_another_kind_of_mask(mask):
    x = torch.zeros(1, 1, 6, 4)
    with pytest.raises(
        ValueError,
        match=r"the mask must be boolean, \(..., 1, 6\): the same keys for all queries",
    ):
        local_attention(x, x, x, mask, r=2)


# Layers


@pytest.mark.parametrize("kind", ["self-attention, fused", "restricted attention"])
def test_other_self_attentions_equal_it(kind):
    full, other, x = (
        make_layer("self-attention", 16, h=4),
        make_layer(kind, 16, h=4, r=9),
        torch.randn(2, 9, 16),
    )
    other.load_state_dict(full.state_dict())
    assert torch.allclose(other(x), full(x), rtol=0, atol=1e-5)


def test_reused_tables_give_the_same_whatever_the_sizes():
    attend = torch.no_grad()(ReusedTables())
    for n in (5, 5, 9):
        q, k, v = random(2, 3, n, 4), random(2, 3, 7, 4), random(2, 3, 7, 6)
        assert_close(attend(q, k, v)[0], scaled_dot_product_attention(q, k, v)[0])


def test_restricted_attention_reaches_r():
    layer, x = (
        make_layer("restricted attention", 8, h=2, r=3).double(),
        random(1, 20, 8),
    )
    (gradient,) = torch.autograd.grad(layer(x)[0, 10].sum(), x)
    assert gradient[0].ne(0).any(dim=-1).nonzero()[:, 0].tolist() == list(range(7, 14))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n, gap", [(29, 4), (12, 3), (5, 9), (7, 1)])
def test_dilated_equals_torchs(n, gap, causal):
    layer, x = Convolution(6, 8, 3, causal).double(), random(2, n, 6)
    sides = (2 * gap, 0) if causal else (gap, gap)
    theirs = F.conv1d(
        F.pad(x.transpose(1, 2), sides),
        layer.conv.weight,
        layer.conv.bias,
        dilation=gap,
    )
    assert_close(Dilated(layer, gap)(x), theirs.transpose(1, 2))


def test_gaps_grow_with_depth():
    assert [
        make_layer("dilated convolution", 8, k=3, depth=i).gap for i in range(4)
    ] == [1, 3, 9, 27]


# Steps and paths


def test_longest_chain_of_small_graphs():
    x = torch.ones(3, requires_grad=True)
    assert longest_chain(x * 2) == 1  # the leaf is no operation
    y = x
    for _ in range(2000):
        y = y + 1
    assert longest_chain(y + x) == 2001
    assert longest_chain(x.exp() * (x + 1).sin().cos()) == 4


@pytest.mark.parametrize("kind", PLAIN)
def test_only_recurrence_waits(kind):
    chains = [
        longest_chain(make_layer(kind, 16, r=4, depth=2)(torch.randn(1, n, 16)))
        for n in (16, 32, 64)
    ]
    if kind == "recurrent":
        assert chains[2] - chains[1] == 2 * (chains[1] - chains[0]) >= 2 * 16
    else:
        assert len(set(chains)) == 1


def test_n_rounds_are_torchs_gru():
    gru, x = (
        Recurrent(6, 6, batch_first=True).double(),
        torch.randn(2, 11, 6, dtype=torch.float64),
    )
    step, h = recurrent_round(gru), x
    for i in range(11):
        h = step(i, x, h)
        assert torch.allclose(h[:, : i + 1], gru(x)[:, : i + 1], rtol=0, atol=1e-9)
        assert i == 10 or not torch.allclose(
            h[:, i + 1], gru(x)[:, i + 1], rtol=0, atol=1e-6
        )


@pytest.mark.parametrize("n", [2, 9, 10, 28])
def test_paths(n):
    x = torch.randn(1, n, 8, dtype=torch.float64)
    lengths = {
        kind: path_length(stacked(kind, 8, h=2, r=4), x)
        for kind in PLAIN
        if kind != "recurrent"
    }
    assert lengths == {
        "self-attention": 1,
        "convolution": math.ceil((n - 1) / 2),
        "dilated convolution": next(i for i in range(9) if 3**i >= n),
        "restricted attention": math.ceil((n - 1) / 4),
    }
    assert (
        path_length(recurrent_round(Recurrent(8, 8, batch_first=True).double()), x) == n
    )


def test_no_path_is_an_error():
    with pytest.raises(
        ValueError, match="no path from the first position to the last in 6 steps"
    ):
        path_length(lambda i, x, y: 2 * y, torch.randn(1, 6, 4))


# Counting and measuring


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("n", [20, 100])
def test_flops_are_those_that_torch_counts(kind, n):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        make_layer(kind, 16)(torch.randn(1, n, 16))
    assert layer_flops(kind, n, 16) == counter.get_total_flops()


@pytest.mark.parametrize("d", [64, 512, 1024])
def test_the_crossing_is_at_n_equal_to_d(d):
    sizes = [d // 4, d // 2, d, 2 * d]
    curves = [
        [layer_flops(kind, n, d) for n in sizes]
        for kind in ("self-attention", "recurrent")
    ]
    assert crossing(sizes, *curves) == pytest.approx(d)
    assert layer_flops("self-attention", d, d) == layer_flops("recurrent", d, d)


def test_crossing_of_power_laws():
    sizes = [1, 10, 100, 1000]
    assert crossing(
        sizes, [n**2 for n in sizes], [40 * n for n in sizes]
    ) == pytest.approx(40)
    assert crossing(sizes, [1, 20, 50, 2000], sizes) == pytest.approx(
        100 * 10**0.5
    )  # the last time counts
    twice = [2 * n for n in sizes]
    assert (
        crossing(sizes, sizes, twice) is None and crossing(sizes, twice, sizes) is None
    )


def test_exponent_is_that_of_the_larger_half():
    sizes = [2, 4, 8, 16, 32, 64]
    assert exponent(
        sizes, [1, 1, 1, *(3 * n**1.7 for n in sizes[3:])]
    ) == pytest.approx(1.7)


@pytest.mark.parametrize(
    "seconds, longest, stopped", [(60, 6656, "memory"), (3, 4096, "time")]
)
def test_reach_doubles_and_then_tries_between(monkeypatch, seconds, longest, stopped):
    monkeypatch.setattr(
        limits,
        "in_a_process",
        lambda try_length, kind, n, *rest: n / 1000 if n < 7000 else None,
    )
    row = limits.reach("self-attention", 8, 1, seconds, None, "cpu")
    assert row == {
        "layer": "self-attention",
        "longest": longest,
        "seconds": float(f"{longest / 1000:.3g}"),
        "stopped": stopped,
    }


def test_unknown_names_are_refused():
    for what in (
        lambda kind: make_layer(kind, 16),
        lambda kind: layer_flops(kind, 9, 16),
    ):
        with pytest.raises(
            ValueError, match="unknown kind 'lstm': choose one of self-attention, "
        ):
            what("lstm")
    q = torch.randn(1, 2, 5, 4)
    for wrong in (dict(keep=0), dict(by="nearest")):
        with pytest.raises(
            ValueError,
            match="keep must be at least 1, not .*, and by 'weight', 'distance' or",
        ):
            pruned_attention(q, q, q, **wrong)


# Pruning


def test_sorted_attention_is_full_where_r_covers_all_and_finds_what_points_the_same_way():
    q, k, v, directions = (
        random(2, 9, 4),
        random(2, 9, 4),
        random(2, 9, 3),
        random(4, 5),
    )
    assert_close(
        sorted_attention(q, k, v, directions, r=9),
        scaled_dot_product_attention(q, k, v)[0],
    )
    order = torch.randperm(60)
    keys, values = 9 * random(60, 16), random(60, 3)
    found = sorted_attention(keys[order], keys, values, random(16, 30), r=8)
    assert ((found - values[order]).abs().amax(dim=1) < 0.01).double().mean() > 0.9


@pytest.mark.parametrize("masked", [False, True])
def test_pruned_attention_keeps_the_largest(masked):
    q, k, v = random(2, 3, 5, 4), random(2, 3, 7, 4), random(2, 3, 7, 4)
    mask = (
        padding_mask(torch.tensor([[1] * 7, [1, 1, 1, 0, 0, 0, 0]]), pad_id=0)
        if masked
        else None
    )
    full = scaled_dot_product_attention(q, k, v, mask)[1]
    output, weights = pruned_attention(q, k, v, mask, keep=3)
    least = full.sort(dim=-1, descending=True).values[..., 2:3]
    kept = torch.where(full >= least, full, 0.0)
    assert_close(weights, kept / kept.sum(dim=-1, keepdim=True))
    assert_close(output, weights @ v)
    for a, b in zip(
        pruned_attention(q, k, v, mask, keep=7),
        scaled_dot_product_attention(q, k, v, mask),
    ):
        assert_close(a, b)


def test_pruning_at_random_keeps_as_many_and_respects_the_mask():
    x, mask = (
        random(2, 3, 8, 4),
        padding_mask(torch.tensor([[1] * 8, [1] * 5 + [0] * 3]), pad_id=0),
    )
    weights = pruned_attention(x, x, x, mask, keep=4, by="chance")[1]
    assert (weights > 0).sum(dim=-1).eq(4).all() and weights[1, :, :, 5:].eq(0).all()
    assert not torch.equal(weights > 0, pruned_attention(x, x, x, mask, keep=4)[1] > 0)


def test_pruning_by_distance_keeps_the_nearest():
    x, mask = (
        random(1, 2, 6, 4),
        padding_mask(torch.tensor([[1, 1, 1, 1, 0, 0]]), pad_id=0),
    )
    kept = pruned_attention(x, x, x, keep=3, by="distance")[1][0, 0] > 0
    assert torch.equal(kept[1:5], band(6, 1, False)[1:5])
    assert [kept[i].nonzero()[:, 0].tolist() for i in (0, 5)] == [[0, 1, 2], [3, 4, 5]]
    two = (
        pruned_attention(x, x, x, mask & causal_mask(6), keep=2, by="distance")[1][0, 1]
        > 0
    )
    assert [row.nonzero()[:, 0].tolist() for row in two] == [
        [0],
        [0, 1],
        [1, 2],
        [2, 3],
        [2, 3],
        [2, 3],
    ]
    longer = random(1, 2, 9, 4)
    assert (
        pruned_attention(x, longer, longer, keep=1, by="distance")[1][0, 0].argmax(
            dim=-1
        )
        == torch.arange(6)
    ).all()
