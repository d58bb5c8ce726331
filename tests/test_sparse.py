"""Sparse attention equals the full form with its pattern's mask; learned spans."""

import math
from copy import deepcopy
from dataclasses import replace
from functools import partial
from random import Random

import pytest
import torch
import torch.nn.functional as F
from helpers import assert_close, random
from torch.utils.flop_counter import FlopCounterMode

from transformer.attention import causal_mask, padding_mask
from transformer.complexity import local_attention
from transformer.data import Batch
from transformer.experiments import evolution
from transformer.fast.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer.fast.loss import SmoothedLoss
from transformer.fast.model import Parts
from transformer.language import (
    LanguageConfig,
    LanguageModel,
    MaskedConfig,
    MaskedModel,
)
from transformer.models.recording import cache
from transformer.runs.training import TrainingConfig, train
from transformer.sparse import (
    LongformerAttention,
    Pattern,
    PricedModel,
    Span,
    SpanAttention,
    clamping,
    crop,
    diagonal_attention,
    drawn_blocks,
    evolve,
    pattern_mask,
    span_attention,
    spans_of,
    sparse_attention,
)
from transformer.teaching.measuring import TensorMemory

pytestmark = pytest.mark.usefixtures("seed", "one_thread")
PATTERNS = {
    "band": Pattern(4),
    "causal": Pattern(4, causal=True),
    "a gap": Pattern(3, gaps=(5,)),
    "gaps": Pattern(3, gaps=(1, 16, 2, 3), causal=True),
    "global": Pattern(3, global_tokens=(0, 7)),
    "gaps and global": Pattern(3, (1, 2, 2, 5), (30, 0, 9), causal=True),
    "wide": Pattern(30, global_tokens=(0,)),
    "random": Pattern(3, random_blocks=2),
    "everything": Pattern(2, global_tokens=(0, 11), random_blocks=3, causal=True),
}


def by_hand(pattern, n, h):
    """The pattern's mask, pair by pair, without its random blocks."""
    gaps = pattern.gaps * h if len(pattern.gaps) == 1 else pattern.gaps
    mask = torch.zeros(h, n, n, dtype=torch.bool)
    for head, gap in enumerate(gaps):
        for i in range(n):
            for j in range(n):
                near = abs(i - j) <= pattern.r * gap and (i - j) % gap == 0
                either = {i, j} & set(pattern.global_tokens)
                mask[head, i, j] = (near or bool(either)) and (
                    j <= i or not pattern.causal
                )
    return mask


@pytest.mark.parametrize(
    "name", ["band", "causal", "gaps", "global", "gaps and global"]
)
def test_mask_is_the_pattern_pair_by_pair(name):
    pattern, right = PATTERNS[name], by_hand(PATTERNS[name], 37, 4)
    assert torch.equal(pattern_mask(pattern, 37, 4), right)
    assert torch.equal(pattern_mask(pattern, 37, 4, rows=3), right[:, -3:])


@pytest.mark.parametrize("causal", [False, True])
def test_random_blocks_are_whole_far_and_as_many_as_asked_for(causal):
    pattern = Pattern(4, random_blocks=2, causal=causal)
    more = (
        pattern_mask(pattern, 40)[0] & ~pattern_mask(Pattern(4, causal=causal), 40)[0]
    )
    far = (
        more.unflatten(1, (10, 4)).unflatten(0, (10, 4)).transpose(1, 2)
    )  # (10, 10, 4, 4)
    chosen = far.all(dim=-1).all(dim=-1)
    b = torch.arange(10)
    assert not chosen[(b[:, None] - b).abs() <= 1].any()
    room = (b - 1).clamp(min=0) if causal else 10 - torch.tensor([2, *[3] * 8, 2])
    assert torch.equal(chosen.sum(dim=1), room.clamp(max=2))
    assert torch.equal(pattern_mask(pattern, 40), pattern_mask(pattern, 40))
    others = drawn_blocks(replace(pattern, seed=1), 40)
    assert not torch.equal(drawn_blocks(pattern, 40), others)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("n", [1, 3, 23, 40])
@pytest.mark.parametrize("name", PATTERNS)
def test_equals_torch_with_the_patterns_mask(name, n, padded):
    """Gradients, too; also for n below r, or not divisible by r or a gap."""
    pattern, tokens = PATTERNS[name], torch.ones(2, n)
    if padded and n > 3:
        tokens[0, n // 2 :] = 0
    q, k, v = random(2, 4, n, 6), random(2, 4, n, 6), random(2, 4, n, 5)
    real = padding_mask(tokens, pad_id=0)
    ours, _ = sparse_attention(q, k, v, real if padded else None, pattern=pattern)
    allowed = pattern_mask(pattern, n, 4) & real
    some = allowed.any(
        dim=-1, keepdim=True
    )  # before torch 2.5 a row without a key gave NaN
    theirs = F.scaled_dot_product_attention(q, k, v, allowed | ~some).masked_fill(
        ~some, 0.0
    )
    assert_close(ours, theirs)
    direction = torch.randn_like(ours)
    for a, b in zip(
        torch.autograd.grad((ours * direction).sum(), (q, k, v)),
        torch.autograd.grad((theirs * direction).sum(), (q, k, v)),
    ):
        assert_close(a, b)


@pytest.mark.parametrize("n, r", [(1, 2), (5, 9), (23, 4)])
def test_diagonals_equal_blocks(n, r):
    q, k, v = random(2, 3, n, 4), random(2, 3, n, 4), random(2, 3, n, 6)
    real = (torch.arange(n) < n - n // 3)[None, None, None]
    ours, theirs = (
        attend(q, k, v, real, r=r)[0]
        for attend in (diagonal_attention, local_attention)
    )
    assert_close(ours, theirs)
    for a, b in zip(
        *(torch.autograd.grad(y.square().sum(), (q, k, v)) for y in (ours, theirs))
    ):
        assert_close(a, b)


def test_needs_memory_in_proportion_to_n():
    attend = partial(sparse_attention, pattern=Pattern(16, (1, 4), (0,)))
    peaks = []
    for n in (512, 1024):
        q = torch.randn(1, 2, n, 8)
        with TensorMemory() as memory:
            attend(q, q, q)
        peaks.append(memory.peak)
    assert peaks[1] == pytest.approx(2 * peaks[0], rel=0.1)


@pytest.mark.parametrize("name", PATTERNS)
def test_equals_flex_attention(name):
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    pattern, n = PATTERNS[name], 128
    mask = pattern_mask(pattern, n, 4)
    q, k, v = (torch.randn(1, 4, n, 8, dtype=torch.float64) for _ in range(3))
    allowed = flex.create_block_mask(
        lambda b, h, i, j: mask[h, i, j], None, 4, n, n, device="cpu"
    )
    theirs = flex.flex_attention(q, k, v, block_mask=allowed)
    assert_close(sparse_attention(q, k, v, pattern=pattern)[0], theirs)


# Longformer


@pytest.mark.parametrize("places", [(0,), (0, 1, 17)])
def test_equals_longformer(monkeypatch, places):
    """`transformers`' class with our weights: a window of 2r, own matrices for global rows."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("transformers")
    from transformers.models.longformer.modeling_longformer import (
        LongformerConfig,
        LongformerSelfAttention,
    )

    n, r = 32, 4
    ours = LongformerAttention(
        16, 2, pattern=Pattern(r, global_tokens=places), bias=True
    )
    with torch.no_grad():
        for p in ours.parameters():
            p.normal_()
        ours.W_O.weight.div_(4)  # the root of its inputs' number: outputs stay as large
    config = LongformerConfig(
        hidden_size=16,
        num_attention_heads=2,
        attention_window=[2 * r],
        attention_probs_dropout_prob=0.0,
    )
    theirs = LongformerSelfAttention(config, layer_id=0).eval()
    theirs.load_state_dict(
        {
            f"{their}{suffix}.{part}": getattr(getattr(module, own), part)
            for suffix, module in (("", ours), ("_global", ours.of_global))
            for own, their in (("W_Q", "query"), ("W_K", "key"), ("W_V", "value"))
            for part in ("weight", "bias")
        }
    )
    x, real = torch.randn(2, n, 16), torch.ones(2, n, dtype=torch.bool)
    real[1, 20:] = False
    special = torch.zeros(2, n, dtype=torch.bool)
    special[:, list(places)] = True
    kind = torch.where(real, torch.where(special, 1.0, 0.0), -1.0)
    expected = theirs(
        x,
        attention_mask=10_000 * kind,
        is_index_masked=kind < 0,
        is_index_global_attn=kind > 0,
        is_global_attn=True,
    )[0]
    found = ours(x, x, x, real[:, None, None])
    difference = found - ours.W_O(
        expected
    )  # their output's matrix stands outside the class
    assert difference[real].abs().max() < 1e-5


# In models, by the seams that exist


def language_model(pattern):
    attention = partial(
        MultiHeadAttention, attend=partial(sparse_attention, pattern=pattern)
    )
    config = LanguageConfig(
        20, d_model=16, d_ff=16, N=2, h=4, P_drop=0.0, max_positions=64
    )
    return LanguageModel(config, Parts(attention=attention))


def test_a_language_model_with_a_pattern_trains_and_writes():
    pattern = Pattern(3, (1, 1, 2, 4), (0,), causal=True)
    model, tokens = language_model(pattern), torch.randint(3, 20, (2, 25))
    config = TrainingConfig(updates=2, batch_tokens=60, warmup=1, validate_every=2)
    log = train(model, [([], [1, *row]) for row in tokens.tolist()], config)
    assert log[-1]["update"] == 2
    model.eval()
    with torch.no_grad():
        whole = model(tokens)
        state = model.initial_state(tokens[:, :20])
        steps = torch.stack(
            [model.step(tokens[:, i : i + 1], state) for i in range(20, 25)], dim=1
        )
    assert torch.allclose(whole[:, 20:], steps, rtol=0, atol=1e-5)
    changed = tokens.clone()
    changed[:, 15] = (changed[:, 15] - 2) % 17 + 3
    moved = (model(changed) - whole).abs().amax(dim=(0, 2)) > 1e-6
    assert not moved[:15].any() and moved[15:19].all()


def test_random_blocks_stay_while_a_text_grows():
    model = language_model(Pattern(2, random_blocks=1, causal=True)).eval()
    tokens = torch.randint(3, 20, (2, 30))
    with torch.no_grad():
        state = model.initial_state(tokens[:, :15])
        steps = torch.stack(
            [model.step(tokens[:, i : i + 1], state) for i in range(15, 30)], dim=1
        )
        assert torch.allclose(model(tokens)[:, 15:], steps, rtol=0, atol=1e-5)


def test_equal_dice_do_not_depend_on_the_length():
    """Of two blocks with the same number one is taken; which, a longer text must not change."""
    pattern = Pattern(1, random_blocks=3, causal=True, seed=14)
    assert drawn_blocks(pattern, 128)[:120].equal(drawn_blocks(pattern, 400)[:120])
    assert drawn_blocks(pattern, 128)[120].equal(drawn_blocks(pattern, 400)[120])


def test_weights_that_are_not_known_are_not_recorded():
    tokens = torch.randint(3, 20, (1, 12))
    with (
        torch.no_grad(),
        pytest.raises(ValueError, match="no weights to record: .* returns none"),
    ):
        model = language_model(Pattern(2, causal=True)).eval()
        with cache(model):
            model(tokens)


def test_prompts_with_padding_in_front_need_a_pattern_without_places():
    prompts, more = (
        torch.tensor([[0, 0, 5, 6, 7], [3, 4, 5, 6, 7]]),
        torch.tensor([[8], [8]]),
    )
    model = language_model(Pattern(2, (1, 2, 1, 2), causal=True)).eval()
    with torch.no_grad():
        both = model.step(more, model.initial_state(prompts))
        alone = model.step(more[:1], model.initial_state(prompts[:1, 2:]))
    assert torch.allclose(both[:1], alone, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="padding belongs at the end"):
        language_model(Pattern(2, global_tokens=(0,), causal=True)).initial_state(
            prompts
        )


def test_a_model_that_fills_gaps_takes_global_rows_of_their_own():
    pattern = Pattern(2, global_tokens=(0,))
    config = MaskedConfig(
        20, d_model=16, d_ff=16, N=2, h=4, P_drop=0.0, max_positions=64
    )
    attention = partial(LongformerAttention, pattern=pattern)
    model = MaskedModel(config, Parts(attention=attention)).eval()
    tokens = torch.randint(3, 20, (1, 30))
    padded = torch.cat([tokens, torch.zeros(1, 7).long()], dim=1)
    assert torch.allclose(model(tokens), model(padded)[:, :30], rtol=0, atol=1e-5)


# Learned spans


def test_a_span_fades_out_over_its_ramp():
    span = Span(2, longest=10, ramp=4)
    span.share.data = torch.tensor([0.5, 0.0])
    assert torch.equal(
        span.soft(torch.arange(11)[None])[:, 0],
        torch.tensor(
            [
                [1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0, 0],
                [1, 0.75, 0.5, 0.25, 0, 0, 0, 0, 0, 0, 0],
            ]
        ),
    )
    assert span.reach() == 8


def test_a_span_weighs_and_normalises():
    span = Span(2, longest=10, ramp=4)
    span.share.data = torch.tensor([0.5, 0.0])
    q, k, v = (torch.randn(1, 2, 12, 4) for _ in range(3))
    output, weights = span_attention(q, k, v, causal_mask(12), span=span)
    scores = (q @ k.mT / 2).masked_fill(~causal_mask(12), -torch.inf).exp()
    i = torch.arange(12)
    scores = scores * span.soft((i[:, None] - i).abs())
    assert torch.allclose(weights, scores / scores.sum(dim=-1, keepdim=True), atol=1e-5)
    assert torch.allclose(output, weights @ v, atol=1e-5)


def test_what_is_out_of_sight_takes_nothing_away():
    """However high its score is."""
    span = Span(2, longest=10, ramp=4).double()
    q, k, v = (torch.randn(1, 2, 12, 4, dtype=torch.float64) for _ in range(3))
    k[:, :, 0] = 100 * q[:, :, 11]
    span.share.data = torch.tensor([0.5, 0.0], dtype=torch.float64)
    output, _ = span_attention(q, k, v, causal_mask(12), span=span)
    alone, _ = span_attention(q[:, :, 11:], k[:, :, 1:], v[:, :, 1:], span=span)
    assert_close(output[:, :, 11:], alone)


def test_a_full_span_is_attention():
    q, k, v = random(2, 2, 9, 4), random(2, 2, 9, 4), random(2, 2, 9, 4)
    ours, _ = span_attention(q, k, v, causal_mask(9), span=Span(2, longest=9).double())
    assert_close(ours, scaled_dot_product_attention(q, k, v, causal_mask(9))[0])


def priced(price, longest=24):
    config = LanguageConfig(
        20, d_model=16, d_ff=16, N=2, h=2, P_drop=0.0, max_positions=64
    )
    attention = partial(SpanAttention, longest=longest, ramp=4)
    return PricedModel(config, Parts(attention=attention), price)


def test_cropped_layers_give_the_same_with_less_work():
    model, tokens = priced(0.0), torch.randint(3, 20, (2, 60))
    for i, span in enumerate(spans_of(model)):
        span.share.data = torch.tensor([0.1, 0.3 + 0.1 * i])
    assert [span.reach() for span in spans_of(model)] == [11, 13]
    flops, outputs = [], []
    for cropped in (model.eval(), crop(deepcopy(model))):
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            outputs.append(cropped(tokens))
        flops.append(counter.get_total_flops())
        state = cropped.initial_state(tokens[:, :59])
        last = cropped.step(tokens[:, 59:], state)
        assert torch.allclose(last, outputs[0][:, -1], rtol=0, atol=1e-5)
    assert torch.allclose(*outputs, rtol=0, atol=1e-5)
    blocks = [
        2 * r * r * math.ceil(60 / r) for r in (11, 13)
    ]  # pairs, of 3600 in the table
    assert flops[0] - flops[1] == 2 * 2 * 2 * 16 * (2 * 3600 - sum(blocks))


def test_the_price_is_per_token_of_the_mean_span():
    gold = torch.tensor([[1, 5, 6, 7, 0], [1, 8, 9, 10, 11]])
    batch = Batch(gold[:, :0], gold)
    torch.manual_seed(1)
    model, criterion = priced(0.5), SmoothedLoss(0.0, 0)
    for span in spans_of(model):
        span.share.data = torch.tensor([0.25, 0.75])
    more = model.loss(batch, criterion) - super(PricedModel, model).loss(
        batch, criterion
    )
    assert more.item() == pytest.approx(0.5 * 7 * 0.5, abs=1e-4)


def test_spans_shrink_at_a_price():
    model = priced(10.0)
    config = TrainingConfig(
        updates=20, batch_tokens=60, warmup=1, lr_scale=0.4, validate_every=20
    )
    rows = torch.randint(3, 20, (8, 20)).tolist()
    train(model, [([], [1, *row]) for row in rows], config, optimizer=clamping)
    assert torch.cat([span.share for span in spans_of(model)]).max() < 0.5


def test_spans_are_clamped_after_each_update():
    model = priced(0.0)
    optimizer = clamping(model)
    optimizer.param_groups[0]["lr"] = 0.7
    for direction, bound in ((1.0, 0.3), (1.0, 0.0), (-1.0, None), (-1.0, None)):
        for span in spans_of(model):
            span.share.grad = torch.full_like(span.share, direction)
        optimizer.step()
        shares = torch.cat([span.share for span in spans_of(model)])
        assert 0 <= shares.min() and shares.max() <= 1
        assert bound is None or torch.allclose(shares, torch.tensor(bound))


# What cannot be


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"r": 0}, "r must be at least 1, not 0"),
        ({"r": 2.5}, "r must be a whole number, not 2.5"),
        ({"gaps": ()}, "a pattern needs a gap"),
        ({"gaps": (1, 0)}, "a gap must be at least 1, not 0"),
        (
            {"global_tokens": (-1,)},
            "a global token's position must be at least 0, not -1",
        ),
        ({"random_blocks": -1}, "random_blocks must be at least 0, not -1"),
        ({"random_blocks": 1, "gaps": (1, 2)}, "random blocks go with gaps of 1"),
    ],
)
def test_refuses_a_pattern_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        Pattern(**{"r": 3, **changes})


def test_refuses_what_does_not_fit_the_pattern():
    x, other = torch.zeros(1, 4, 9, 2), torch.zeros(1, 4, 6, 2)
    three, plain = Pattern(3, gaps=(1, 2, 3)), Pattern(3)
    with pytest.raises(
        ValueError, match="3 gaps do not fit 4 heads: give one for all, or 4"
    ):
        sparse_attention(x, x, x, pattern=three)
    with pytest.raises(ValueError, match="3 gaps do not fit 4 heads"):
        pattern_mask(three, 9, 4)
    with pytest.raises(ValueError, match="takes a mask over keys"):
        sparse_attention(x, x, x, causal_mask(9), pattern=plain)
    with pytest.raises(ValueError, match="takes a mask over keys"):
        sparse_attention(x, x, x, ~causal_mask(9), pattern=Pattern(3, causal=True))
    with pytest.raises(ValueError, match="equally long"):
        sparse_attention(other, x, x, pattern=plain)
    with pytest.raises(ValueError, match="must not be causal"):
        LongformerAttention(8, 2, pattern=Pattern(3, causal=True))
    with pytest.raises(ValueError, match="longest must be at least 1, not 0"):
        Span(2, longest=0)
    with pytest.raises(ValueError, match="ramp must be at least 1 and finite, not 0"):
        Span(2, longest=9, ramp=0)


# Evolution


def numbers(population, trials, seed=1):
    """A search for the largest number, with the candidates in the order of their changes."""
    changed = []

    def change(number, chance):
        changed.append(number)
        return number + chance.choice([-1, 1])

    tried = evolve(
        lambda chance: chance.randrange(1000),
        change,
        lambda number: -number,
        population,
        trials,
        Random(seed),
    )
    return tried, changed


def test_a_population_that_never_fills_is_random_search():
    tried, changed = numbers(population=30, trials=30)
    chance = Random(1)
    drawn = [chance.randrange(1000) for _ in range(30)]
    assert changed == [] and tried == [(-number, number) for number in drawn]


def test_only_the_best_of_some_recent_ones_is_changed():
    tried, changed = numbers(population=5, trials=60)
    assert len(tried) == 60 and len(changed) == 55
    for count, parent in enumerate(changed, 5):
        recent = sorted(number for _, number in tried[count - 5 : count])
        assert (
            parent in recent[2:]
        )  # the best of three of five is at least the third from below
        assert abs(tried[count][1] - parent) == 1
    assert numbers(5, 60) == (tried, changed)


def test_what_is_old_is_forgotten():
    """Where all of a population are rivals, the best is changed until it is too old."""
    changed = []

    def change(old, chance):
        changed.append(old)
        return old + 1

    evolve(
        lambda chance: 0, change, lambda number: number, 3, 10, Random(1)
    )  # each child is worse
    assert changed == [0, 0, 0, 1, 1, 1, 2]


def test_evolution_needs_rivals():
    with pytest.raises(ValueError, match="a population of 2 has no 3 rivals"):
        numbers(population=2, trials=10)


def test_a_candidate_s_neighbours_and_its_model():
    """One step in one number, in range; a model looks as far back as its radii; FLOPs count."""
    chance, one = Random(1), evolution.LARGEST
    for _ in range(200):
        new = evolution.change(one, chance)
        steps = [
            values.index(getattr(new, name)) - values.index(getattr(one, name))
            for name, values in evolution.CHOICES.items()
        ]
        assert sorted(map(abs, steps)) == [0, 0, 0, 1]
        one = new
    small = evolution.Candidate(2, 4, 2, 64)
    model = evolution.model_of(small).double().eval()
    x = torch.randn(1, 20, 64, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(model.decoder(x, causal_mask(20))[0, 15].sum(), x)
    seen = gradient.abs().sum(dim=-1)[0] > 0
    assert seen.nonzero()[:, 0].tolist() == list(range(15 - 6, 16))
    assert evolution.flops(small) < evolution.flops(evolution.LARGEST)
    assert evolution.price(1.0, evolution.LARGEST) == 1.0 + evolution.WEIGHT
