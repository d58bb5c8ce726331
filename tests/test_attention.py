"""Attention, masks, heads and caches, against torch's own and against loops."""

import math

import pytest
import torch
import torch.nn.functional as F
from helpers import close, random
from torch import nn

from transformer.attention import (
    attention,
    causal_mask,
    masked_softmax,
    padding_mask,
)
from transformer.fast.attention import (
    MultiHeadAttention,
    kernel_attention,
    scaled_dot_product,
    scaled_dot_product_attention,
)
from transformer.fast.positions import RotaryPositions
from transformer.fast.search import KeyValueCache
from transformer.models.recording import cache
from transformer.recurrence import AdditiveScore

B, H, T, S, D_K, D_V, D = 2, 3, 4, 5, 8, 6, 12

pytestmark = pytest.mark.usefixtures("seed")


@pytest.fixture
def qkv():
    return random(B, H, T, D_K), random(B, H, S, D_K), random(B, H, S, D_V)


def some_mask(*shape):
    """Random, with at least one key allowed in every row."""
    mask = torch.rand(*shape) < 0.6
    mask[..., 0] = True
    return mask


# Scores


def test_scores_equal_a_loop(qkv):
    q, k, _ = qkv
    scores = scaled_dot_product(q, k)
    scale = 1 / math.sqrt(D_K)
    assert scores.shape == (B, H, T, S)
    for t in range(T):
        for s in range(S):
            assert close(
                scores[:, :, t, s], scale * (q[:, :, t] * k[:, :, s]).sum(dim=-1)
            )


def test_additive_score_equals_a_loop(qkv):
    q, k, _ = qkv
    score = AdditiveScore(D_K, 7).double()
    assert [p.shape for p in score.parameters()] == [(7, D_K), (7, D_K), (1, 7)], (
        "W, U, w and no bias"
    )
    scores = score(q, k)
    for t in range(T):
        for s in range(S):
            hidden = torch.tanh(
                score.W.weight @ q[1, 2, t] + score.U.weight @ k[1, 2, s]
            )
            assert close(scores[1, 2, t, s], score.w.weight[0] @ hidden)


def test_attention_is_a_softmax_of_scores(qkv):
    """Whatever the score, weights are its softmax; equation 1's is the scaled one."""
    q, k, v = qkv
    for score in (scaled_dot_product, AdditiveScore(D_K, 7).double()):
        assert close(masked_softmax(score(q, k)), score(q, k).softmax(dim=-1))
    output, weights = attention(q, k, v)
    assert close(weights, scaled_dot_product(q, k).softmax(dim=-1))
    assert close(output, weights @ v)
    for ours, checked in zip((output, weights), scaled_dot_product_attention(q, k, v)):
        assert torch.equal(ours, checked)


# Softmax with a mask


def test_masked_softmax_equals_softmax_over_the_allowed():
    logits, mask = random(3, 6), some_mask(3, 6)
    weights = masked_softmax(logits, mask)
    for row in range(3):
        assert close(weights[row][mask[row]], logits[row][mask[row]].softmax(dim=0))
        assert weights[row][~mask[row]].eq(0).all()


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16]
)
def test_rows_sum_to_1_in_every_precision(dtype):
    logits = (30 * torch.randn(8, 6, 6)).to(dtype)
    sums = masked_softmax(logits, some_mask(8, 6, 6)).double().sum(dim=-1)
    assert (sums - 1).abs().max() < {torch.float64: 1e-9, torch.float32: 1e-5}.get(
        dtype, 0.02
    )


@pytest.mark.parametrize(
    "mask",
    [torch.ones(2, 3), torch.ones(2, 3, dtype=torch.uint8), torch.zeros(2, 3).long()],
)
@pytest.mark.parametrize("attend", [scaled_dot_product_attention, kernel_attention])
def test_a_mask_that_is_not_boolean_is_refused(attend, mask):
    x = torch.randn(2, 3, 4)
    with pytest.raises(
        TypeError, match=r"mask must be boolean \(True = may attend\), not torch\.\w+$"
    ):
        attend(x[:, :2], x, x, mask)


# Attention


@pytest.mark.parametrize("shape", [None, (T, S), (B, 1, 1, S), (B, H, T, S)])
def test_attention_equals_torch(qkv, shape):
    mask = None if shape is None else some_mask(*shape)
    direction = torch.randn(B, H, T, D_V, dtype=torch.float64)
    ours, theirs = (
        scaled_dot_product_attention(*qkv, mask)[0],
        F.scaled_dot_product_attention(*qkv, mask),
    )
    assert close(ours, theirs)
    for a, b in zip(
        *(torch.autograd.grad((y * direction).sum(), qkv) for y in (ours, theirs))
    ):
        assert close(a, b)


def test_attention_equals_a_loop(qkv):
    q, k, v = qkv
    mask = some_mask(B, 1, T, S)
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    for b in range(B):
        for t in range(T):
            scores = [
                (q[b, 1, t] @ k[b, 1, s]).item() / math.sqrt(D_K) for s in range(S)
            ]
            powers = [
                math.exp(score) if mask[b, 0, t, s] else 0.0
                for s, score in enumerate(scores)
            ]
            shares = [power / sum(powers) for power in powers]
            assert weights[b, 1, t].tolist() == pytest.approx(shares, abs=1e-9)
            assert close(
                output[b, 1, t],
                sum(share * v[b, 1, s] for s, share in enumerate(shares)),
            )


def test_a_fully_masked_row_is_zero_everywhere(qkv):
    q, k, v = qkv
    mask = some_mask(T, S)
    mask[2] = False
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    assert output[:, :, 2].eq(0).all() and weights[:, :, 2].eq(0).all()
    gradients = torch.autograd.grad((output * torch.randn_like(output)).sum(), qkv)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert gradients[0][:, :, 2].eq(0).all() and gradients[0][:, :, 1].ne(0).any()


def test_a_masked_key_changes_nothing(qkv):
    q, k, v = qkv
    mask = torch.tensor([True, True, False, True, True])
    other_k, other_v = k.detach().clone(), v.detach().clone()
    other_k[:, :, 2], other_v[:, :, 2] = 100.0, -100.0
    for a, b in zip(attention(q, k, v, mask), attention(q, other_k, other_v, mask)):
        assert torch.equal(a, b)


def test_each_key_needs_a_value(qkv):
    q, k, v = qkv
    with pytest.raises(ValueError, match="each key needs one value: 5 keys, 4 values"):
        scaled_dot_product_attention(q, k, v[:, :, :4])


# Masks


def test_padding_mask():
    mask = padding_mask(torch.tensor([[5, 8, 9], [7, 9, 9]]), pad_id=9)
    assert mask.shape == (2, 1, 1, 3) and mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, False, False]]


@pytest.mark.parametrize("n", [1, 2, 7])
def test_causal_mask(n):
    mask = causal_mask(n)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[key <= query for key in range(n)] for query in range(n)]


# Several heads


def both(bias=False):
    """Our heads and torch's with the same weights, at float64."""
    ours = MultiHeadAttention(D, H, bias=bias).double()
    theirs = nn.MultiheadAttention(D, H, bias=bias, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(
            torch.cat([ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight])
        )
        theirs.out_proj.weight.copy_(ours.W_O.weight)
        if bias:
            theirs.in_proj_bias.copy_(
                torch.cat([ours.W_Q.bias, ours.W_K.bias, ours.W_V.bias])
            )
            theirs.out_proj.bias.copy_(ours.W_O.bias)
    return ours, theirs


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["self", "masked self", "cross", "three sources"])
def test_heads_equal_torch(kind, bias):
    ours, theirs = both(bias)
    x, memory, values = random(B, T, D), random(B, S, D), random(B, S, D)
    inputs = {"cross": (x, memory, memory), "three sources": (x, memory, values)}.get(
        kind, (x, x, x)
    )
    mask = causal_mask(T) if kind == "masked self" else None
    output, (expected, _) = (
        ours(*inputs, mask),
        theirs(*inputs, attn_mask=None if mask is None else ~mask),
    )
    assert output.shape == (B, T, D) and close(output, expected)
    direction, leaves = torch.randn_like(output), list(dict.fromkeys(inputs))
    of_inputs = [
        torch.autograd.grad((y * direction).sum(), leaves, retain_graph=True)
        for y in (output, expected)
    ]
    assert all(close(a, b) for a, b in zip(*of_inputs))
    (output * direction).sum().backward()
    (expected * direction).sum().backward()
    projections = torch.cat(
        [ours.W_Q.weight.grad, ours.W_K.weight.grad, ours.W_V.weight.grad]
    )
    assert close(projections, theirs.in_proj_weight.grad) and close(
        ours.W_O.weight.grad, theirs.out_proj.weight.grad
    )


def test_heads_equal_torch_with_padding():
    ours, theirs = both()
    x, tokens = random(B, S, D), torch.tensor([[3, 4, 5, 6, 7], [3, 4, 0, 0, 0]])
    expected, weights = theirs(
        x, x, x, key_padding_mask=tokens == 0, average_attn_weights=False
    )
    with cache(ours) as seen:
        assert close(ours(x, x, x, padding_mask(tokens, 0)), expected)
    assert close(seen["weights"], weights)


@pytest.mark.parametrize("d_k, d_v", [(None, None), (5, None), (None, 7), (5, 7)])
def test_widths_of_keys_and_values_are_free(d_k, d_v):
    """Each head on its own, from its rows of the matrices, joined: Concat(head_1, ..., head_h) W_O."""
    heads, x, memory = (
        MultiHeadAttention(D, H, d_k, d_v).double(),
        random(B, T, D),
        random(B, S, D),
    )
    d_k, d_v = d_k or D // H, d_v or D // H
    assert [tuple(p.shape) for p in heads.parameters()] == [
        (H * d_k, D),
        (H * d_k, D),
        (H * d_v, D),
        (D, H * d_v),
    ]
    parts = []
    for i in range(H):
        q, k = (
            x @ heads.W_Q.weight[i * d_k : (i + 1) * d_k].T,
            memory @ heads.W_K.weight[i * d_k : (i + 1) * d_k].T,
        )
        parts.append(
            F.scaled_dot_product_attention(
                q, k, memory @ heads.W_V.weight[i * d_v : (i + 1) * d_v].T
            )
        )
    assert close(
        heads(x, memory, memory), torch.cat(parts, dim=-1) @ heads.W_O.weight.T
    )


def test_an_indivisible_width_is_refused():
    with pytest.raises(
        ValueError, match="d_model=12 does not divide by h=5: give d_k and d_v"
    ):
        MultiHeadAttention(12, 5)
    assert MultiHeadAttention(12, 5, d_k=4, d_v=3)(
        *[torch.randn(1, 2, 12)] * 3
    ).shape == (1, 2, 12)


def test_a_later_word_changes_no_earlier_output():
    heads, x = MultiHeadAttention(D, H).double(), random(B, S, D)
    changed = torch.cat([x[:, :3], random(B, 2, D)], dim=1)
    before, after = (heads(y, y, y, causal_mask(S)) for y in (x, changed))
    assert torch.equal(before[:, :3], after[:, :3]) and not torch.equal(
        before[:, 3:], after[:, 3:]
    )


# Keys and values of earlier steps


@pytest.mark.parametrize("h_kv", [1, 3])
@pytest.mark.parametrize("rotated", [False, True])
@pytest.mark.parametrize("steps", [[1, 1, 1, 1, 1], [3, 1, 1], [2, 3]])
def test_growing_cache_equals_all_at_once(steps, rotated, h_kv):
    rotate = RotaryPositions(S, D // H).double() if rotated else None
    heads = MultiHeadAttention(D, H, h_kv=h_kv, rotate=rotate).double()
    x, cache, outputs, mask = random(B, S, D), KeyValueCache(), [], causal_mask(S)
    for n in steps:
        start = cache.length
        new = x[:, start : start + n]
        outputs.append(
            heads(new, new, new, mask[start : start + n, : start + n], cache, start)
        )
        assert cache.length == start + n and cache.k.shape[1] == h_kv
    assert close(torch.cat(outputs, dim=1), heads(x, x, x, mask))


def test_a_filled_cache_needs_no_keys():
    heads, cache = MultiHeadAttention(D, H).double(), KeyValueCache()
    x, memory = random(B, T, D), random(B, S, D)
    cache.update(*heads.keys_and_values(memory, memory))
    for t in range(T):
        new = x[:, t : t + 1]
        assert (
            close(heads(new, cache=cache), heads(new, memory, memory))
            and cache.length == S
        )
    assert (
        cache.k.is_contiguous() and cache.v.is_contiguous()
    )  # otherwise each step would copy them


@torch.no_grad()
@pytest.mark.parametrize("rows", [[2, 0, 1], [1], [2, 0, 0, 1], []])
def test_selected_rows_of_a_cache(rows):
    """Dropped, repeated, in another order: the next step sees the past of those rows."""
    heads, x, cache = (
        MultiHeadAttention(D, H).double(),
        random(3, 3, D),
        KeyValueCache(),
    )
    for t in range(2):
        heads(x[:, t : t + 1], x[:, t : t + 1], x[:, t : t + 1], cache=cache)
    k, v = (held.clone() for held in cache.update())
    cache.select(torch.tensor(rows, dtype=torch.long))
    for now, before in zip(cache.update(), (k, v)):
        assert torch.equal(now, before[rows])
    new = x[rows, 2:]
    assert close(heads(new, new, new, cache=cache), heads(new, x[rows], x[rows]))


# Other functions, positions and heads of keys


def test_fewer_heads_of_keys_equal_repeated_ones():
    """Each head of keys and values, repeated for its share of queries (Ainslie et al., 2023)."""
    shared, x = MultiHeadAttention(D, 6, h_kv=2).double(), random(B, T, D)
    full = MultiHeadAttention(D, 6).double()
    with torch.no_grad():
        full.W_Q.weight.copy_(shared.W_Q.weight)
        full.W_O.weight.copy_(shared.W_O.weight)
        for name in ("W_K", "W_V"):
            heads = getattr(shared, name).weight.unflatten(0, (2, -1))
            getattr(full, name).weight.copy_(
                heads.repeat_interleave(3, dim=0).flatten(0, 1)
            )
    assert close(shared(x, x, x, causal_mask(T)), full(x, x, x, causal_mask(T)))
    with pytest.raises(
        ValueError, match="h=6 heads of queries do not divide by h_kv=4 heads of keys"
    ):
        MultiHeadAttention(D, 6, h_kv=4)


def test_rotated_scores_depend_on_the_distance():
    heads, x = (
        MultiHeadAttention(D, H, rotate=RotaryPositions(20, 4)).double(),
        random(B, T, D),
    )
    with cache(heads) as seen:
        before = heads(x, x, x)
        moved = heads(
            torch.cat([x, x], dim=1),
            torch.cat([x, x], dim=1),
            torch.cat([x, x], dim=1),
            torch.block_diag(*[torch.ones(T, T)] * 2).bool(),
        )
    assert torch.allclose(
        moved[:, T:], before, atol=1e-6
    )  # the table of angles is float32
    first, second = seen.calls("weights")
    assert torch.allclose(second[:, :, T:, T:], first, atol=1e-6)


def everything(q, k, v, mask=None):
    """The plain average of all values."""
    return v.mean(dim=-2, keepdim=True).expand(-1, -1, q.shape[-2], -1), None


def test_any_function_may_attend():
    heads, x = MultiHeadAttention(D, H, attend=everything).double(), random(B, T, D)
    average = heads.W_O(heads.W_V(x).mean(dim=1, keepdim=True)).expand(-1, T, -1)
    assert close(heads(x, x, x), average)


@pytest.mark.parametrize("attend", [scaled_dot_product_attention, kernel_attention])
@pytest.mark.parametrize("n", [1, 4])
def test_a_fully_masked_row_gives_zeros_on_every_path(attend, n):
    heads, x = MultiHeadAttention(D, H, attend=attend, h_kv=1).double(), random(B, n, D)
    mask = torch.ones(n, S, dtype=torch.bool)
    mask[-1] = False
    memory, cache = random(B, S, D), KeyValueCache()
    cache.update(*heads.keys_and_values(memory, memory))
    for y in (heads(x, memory, memory, mask), heads(x, mask=mask, cache=cache)):
        assert y[:, -1].eq(0).all()
        gradients = torch.autograd.grad(
            y.square().sum(), (x, memory), retain_graph=True
        )
        assert (
            all(gradient.isfinite().all() for gradient in gradients)
            and gradients[0][:, -1].eq(0).all()
        )


@pytest.mark.parametrize("mask", [None, "causal", "padding"])
def test_kernel_attention_equals_the_formula(qkv, mask):
    mask = {
        None: None,
        "causal": causal_mask(S)[S - T :],
        "padding": some_mask(B, 1, 1, S),
    }[mask]
    ours, fast = (
        scaled_dot_product_attention(*qkv, mask)[0],
        kernel_attention(*qkv, mask)[0],
    )
    assert close(ours, fast)
    direction = torch.randn_like(ours)
    for a, b in zip(
        *(torch.autograd.grad((y * direction).sum(), qkv) for y in (ours, fast))
    ):
        assert close(a, b)


def test_a_mask_of_three_axes_is_refused():
    """Elsewhere it is (B, T, S); here it would be broadcast as (h, T, S)."""
    x = torch.randn(2, 4, 8)
    with pytest.raises(
        ValueError, match=r"a mask is \(T, S\) or \(B, h, T, S\), .*; not \(2, 4, 4\)"
    ):
        MultiHeadAttention(8, 2)(x, x, x, torch.ones(2, 4, 4, dtype=torch.bool))
