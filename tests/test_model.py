"""The whole model: configuration, what it must never do, torch's nn.Transformer, parameters, to a folder and back."""

import pytest
import torch
from torch import nn

from transformer import model as plain
from transformer.attention import causal_mask, padding_mask
from transformer.core.weights import count_parameters
from transformer.fast import FAST
from transformer.fast.model import (
    PRESETS,
    Parts,
    Transformer,
    TransformerConfig,
    initialize,
)
from transformer.fast.search import KeyValueCache
from transformer.fast.stacks import Residual
from transformer.stacks import LayerNorm
from transformer.teaching.torchs import (
    torchs_layers,
    torchs_parameters,
    torchs_transformer,
)

SMALL = dict(vocab_size=50, d_model=16, d_ff=32, N=2, h=4, P_drop=0.0, max_positions=40)
VARIANTS = {
    "paper": {},
    "pre-norm": {"norm_first": True},
    "learned": {"positions": "learned"},
    "untied": {"tie_embeddings": False},
    "rotary": {"positions": "rotary"},
    "free heads": {"d_k": 3, "d_v": 5},
    "other pad": {"pad_id": 7},
}
each_variant = pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)


def build(**changes):
    torch.manual_seed(1)
    return Transformer(TransformerConfig(**{**SMALL, **changes})).eval()


def tokens(B, T, low=8, seed=2):
    return torch.randint(
        low, 50, (B, T), generator=torch.Generator().manual_seed(seed + 100 * B + T)
    )


def difference(a, b):
    return (a - b).abs().max().item()


# Configuration


def test_defaults_are_the_base_model():
    c = TransformerConfig(vocab_size=37000)
    assert (c.d_model, c.d_ff, c.N, c.h, c.P_drop) == (512, 2048, 6, 8, 0.1)
    assert (c.positions, c.norm_first, c.tie_embeddings) == ("sinusoidal", False, True)
    assert c == TransformerConfig.preset("base", vocab_size=37000)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_can_be_changed(name):
    c = TransformerConfig.preset(name, vocab_size=100, N=1, P_drop=0.25)
    assert (c.vocab_size, c.N, c.P_drop) == (100, 1, 0.25)
    with torch.device("meta"):
        ids = torch.ones(2, 4, dtype=torch.long)
        assert Transformer(c)(ids[:, :3], ids).shape == (2, 4, 100)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(vocab_size=0), "vocab_size must be at least 1, not 0"),
        (dict(d_model=0), "d_model must be at least 1"),
        (dict(d_ff=-1), "d_ff must be at least 1"),
        (dict(N=0), "N must be at least 1"),
        (dict(h=0), "h must be at least 1"),
        (dict(d_k=0), "d_k must be at least 1"),
        (dict(d_v=-2), "d_v must be at least 1"),
        (dict(max_positions=0), "max_positions must be at least 1"),
        (dict(P_drop=1.0), "P_drop must be at least 0 and below 1, not 1.0"),
        (dict(P_drop=-0.1), "P_drop must be at least 0"),
        (
            dict(positions="sines"),
            "positions must be 'sinusoidal', 'learned', 'rotary' or 'none', not 'sines'",
        ),
        (dict(pad_id=50), "must lie inside the vocabulary of 50 types"),
        (dict(eos_id=-1), "must lie inside the vocabulary of 50 types"),
    ],
)
def test_sizes_that_cannot_work_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        TransformerConfig(**{**SMALL, **changes})


def test_unknown_preset():
    with pytest.raises(
        ValueError, match="unknown preset 'huge': choose one of tiny, small, base, big"
    ):
        TransformerConfig.preset("huge", vocab_size=10)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(h=3), "d_model=16 does not divide by h=3: give d_k and d_v"),
        (dict(d_model=15, h=5), "d_model must be even"),
    ],
)
def test_widths_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        build(**changes)


# Shapes and variants


@each_variant
def test_shapes(changes):
    model = build(**changes)
    source, target = tokens(3, 5), tokens(3, 7)
    memory = model.encode(source)
    assert memory.shape == (3, 5, 16)
    logits = model(source, target)
    assert logits.shape == (3, 7, 50) and logits.isfinite().all()
    states = model.states(target, memory, padding_mask(source, model.config.pad_id))
    assert torch.equal(model.output(states), logits)


def test_tied_embeddings_are_one_matrix():
    model = build()
    assert (
        model.embedding is model.target_embedding
        and model.output.weight is model.embedding.weight
    )
    assert [name for name, p in model.named_parameters() if p.shape == (50, 16)] == [
        "embedding.weight"
    ]


def test_untied_embeddings_are_three_matrices():
    model = build(tie_embeddings=False)
    assert count_parameters(model) == count_parameters(build()) + 2 * 50 * 16
    model(tokens(2, 4), tokens(2, 3)).square().sum().backward()
    weights = [
        part.weight for part in (model.embedding, model.target_embedding, model.output)
    ]
    assert len({id(weight) for weight in weights}) == 3 and all(
        weight.grad.any() for weight in weights
    )


def test_every_parameter_gets_a_gradient():
    for changes in VARIANTS.values():
        model = build(**changes)
        model(tokens(2, 40), tokens(2, 40))[..., :25].square().sum().backward()
        assert not [
            name
            for name, p in model.named_parameters()
            if p.grad is None or not p.grad.any()
        ]


def test_pre_norm_ends_each_stack_with_a_norm():
    model, post = build(norm_first=True), build()
    assert isinstance(model.encoder.final_norm, LayerNorm) and isinstance(
        model.decoder.final_norm, LayerNorm
    )
    assert isinstance(post.encoder.final_norm, nn.Identity) and isinstance(
        post.decoder.final_norm, nn.Identity
    )
    assert count_parameters(model) == count_parameters(post) + 2 * 2 * 16


def test_dropout_reaches_embeddings_and_sublayers():
    model = build(P_drop=0.5)
    assert {
        module.p for module in model.modules() if isinstance(module, nn.Dropout)
    } == {0.5}
    source, target = tokens(2, 5), tokens(2, 5)
    assert torch.equal(model(source, target), model(source, target))
    assert not torch.equal(model.train()(source, target), model(source, target))
    seen = []
    model.dropout.register_forward_hook(
        lambda module, inputs, output: seen.append(inputs[0].shape)
    )
    model(source, target)
    assert seen == [(2, 5, 16)] * 2


def test_the_first_values():
    """Glorot's rule; queries, keys and values as torch's own layer has them, in one matrix."""
    torch.manual_seed(0)
    model = Transformer(
        TransformerConfig(vocab_size=1000, d_model=64, d_ff=256, N=1, h=4)
    )
    torchs = nn.MultiheadAttention(64, 4).in_proj_weight.abs().max().item()
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            bound = (6 / sum(module.weight.shape)) ** 0.5
            if name[-3:] in ("W_Q", "W_K", "W_V"):
                bound *= 0.5**0.5
                assert bound == pytest.approx(torchs, rel=0.01)
            assert 0.98 * bound < module.weight.abs().max() <= bound
            assert module.weight.var().item() == pytest.approx(bound**2 / 3, rel=0.1)
            assert module.bias is None or not module.bias.any()
    assert model.embedding.weight.var().item() == pytest.approx(1 / 64, rel=0.05)


def test_a_new_model_is_initialised_and_a_seed_decides_it():
    first, second = build(), build()
    assert all(
        torch.equal(p, q) for p, q in zip(first.parameters(), second.parameters())
    )
    before = first.encoder.layers[0].feed_forward.W_1.weight.clone()
    initialize(first)
    assert not torch.equal(before, first.encoder.layers[0].feed_forward.W_1.weight)


# What it must never do


@each_variant
def test_a_later_token_never_changes_an_earlier_logit(changes):
    model = build(**changes)
    source, target = tokens(2, 6), tokens(2, 9)
    logits = model(source, target)
    for t in range(1, 9):
        changed = target.clone()
        changed[:, t:] = (changed[:, t:] - 8 + 1) % 42 + 8
        other = model(source, changed)
        assert torch.equal(other[:, :t], logits[:, :t])
        assert ((other - logits).abs().amax(dim=-1)[:, t:] > 0).all()


@each_variant
def test_padding_changes_nothing(changes):
    model = build(**changes)
    pad = model.config.pad_id
    source, target = tokens(3, 6), tokens(3, 5)
    wide = (
        nn.functional.pad(source, (0, 9), value=pad),
        nn.functional.pad(target, (0, 4), value=pad),
    )
    assert difference(model(*wide)[:, :5], model(source, target)) < 1e-5


def test_ragged_batches_equal_single_sentences():
    model = build()
    lengths = [(1, 9), (12, 2), (5, 5), (30, 1)]
    source, target = (
        torch.zeros(4, 30, dtype=torch.long),
        torch.zeros(4, 9, dtype=torch.long),
    )
    for row, (S, T) in enumerate(lengths):
        source[row, :S], target[row, :T] = tokens(1, S), tokens(1, T)
    together = model(source, target)
    for row, (S, T) in enumerate(lengths):
        assert (
            difference(together[row : row + 1, :T], model(tokens(1, S), tokens(1, T)))
            < 1e-5
        )


@each_variant
@pytest.mark.parametrize("pieces", [[1] * 8, [3, 1, 4], [8]])
def test_step_by_step_equals_all_at_once(changes, pieces):
    model = build(**changes)
    source, target = tokens(3, 6), tokens(3, 8)
    source[1, 4:] = model.config.pad_id
    state, logits, end = (
        model.initial_state(source, KeyValueCache),
        model(source, target),
        0,
    )
    for piece in target.split(pieces, dim=1):
        end += piece.shape[1]
        assert difference(model.step(piece, state), logits[:, end - 1]) < 1e-5
    assert state.length == 8
    assert [(own.length, cross.length) for own, cross in state.caches] == [
        (8, 6),
        (8, 6),
    ]


@torch.no_grad()
@each_variant
def test_rows_of_a_state_are_dropped_repeated_and_reordered(changes):
    model, rows = build(**changes), torch.tensor([2, 0, 0])
    source, target = tokens(3, 6), tokens(3, 4)
    source[1, 4:] = model.config.pad_id
    state = model.initial_state(source, KeyValueCache)
    model.step(target[:, :3], state)
    state.select(rows)
    expected = model(source[rows], target[rows])[:, 3]
    assert difference(model.step(target[rows, 3:], state), expected) < 1e-5


# torch's own model


def gradients(layer):
    """Each parameter's gradient, in the order of torchs_parameters."""
    named = {name: p.grad for name, p in layer.named_parameters()}
    for attention in ["self_attention"] + (
        ["cross_attention"] if layer.cross_attention else []
    ):
        yield torch.cat([named[f"{attention}.W_{name}.weight"] for name in "QKV"])
        yield named[f"{attention}.W_O.weight"]
    for name in named:
        if name.startswith(("feed_forward", "residuals")):
            yield named[name]


@pytest.mark.parametrize(
    "dtype, tolerance",
    [(torch.float64, 1e-9), (torch.float32, 1e-5)],
    ids=["float64", "float32"],
)
def test_equal_to_nn_transformer(dtype, tolerance):
    model = build().to(dtype).train()
    for p in model.parameters():  # so that gains and biases count
        p.data += 0.1 * torch.randn(
            p.shape, generator=torch.Generator().manual_seed(5)
        ).to(dtype)
    theirs = torchs_transformer(model)
    source, target = tokens(3, 6), tokens(3, 5)
    source[0, 4:] = source[2, 1:] = 0
    inputs = (
        model.positions(model.embedding(source)),
        model.positions(model.embedding(target)),
    )
    ignored = source == 0
    output = theirs(
        *inputs,
        tgt_mask=~causal_mask(5),
        src_key_padding_mask=ignored,
        memory_key_padding_mask=ignored,
    )
    expected, logits = model.output(output), model(source, target)
    assert logits.dtype == dtype and difference(logits, expected) < tolerance

    weights = torch.randn(3, 5, 50, generator=torch.Generator().manual_seed(6)).to(
        dtype
    )
    (shared,) = torch.autograd.grad(
        (expected * weights).sum(), model.embedding.weight, retain_graph=True
    )
    (expected * weights).sum().backward()
    model.zero_grad()
    (logits * weights).sum().backward()
    scale = 1.0 if dtype == torch.float64 else shared.abs().max().item()
    assert difference(model.embedding.weight.grad, shared) < tolerance * scale
    layers = zip([*model.encoder.layers, *model.decoder.layers], torchs_layers(theirs))
    for ours, other in layers:
        theirs_grad = [p.grad for p in torchs_parameters(other)]
        ours_grad = list(gradients(ours))
        assert len(ours_grad) == len(theirs_grad)
        assert (
            max(difference(a, b) for a, b in zip(ours_grad, theirs_grad))
            < tolerance * scale
        )


# Parameters


def by_formula(V, d, d_ff, N):
    feed_forward = 2 * d * d_ff + d_ff + d
    return (
        V * d
        + N * (4 * d * d + feed_forward + 2 * 2 * d)
        + N * (8 * d * d + feed_forward + 3 * 2 * d)
    )


@pytest.mark.parametrize("kind", [Transformer, plain.Transformer])
@pytest.mark.parametrize("name, count", [("base", 63_045_632), ("big", 214_171_648)])
def test_parameters_of_base_and_big(name, count, kind):
    c = TransformerConfig.preset(name, vocab_size=37000)
    with torch.device("meta"):
        model = kind(c)
    assert count_parameters(model) == by_formula(37000, c.d_model, c.d_ff, c.N) == count


# Errors of what comes in


@pytest.mark.parametrize("wrong", [50, 51, -1])
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_token_outside_the_vocabulary(side, wrong):
    sentences = {"source": tokens(2, 4), "target": tokens(2, 4)}
    sentences[side][1, 2] = wrong
    with pytest.raises(
        ValueError,
        match=rf"token id {wrong} is outside the vocabulary of 50 types \(0 to 49\)",
    ):
        build()(**sentences)


def test_without_positions_order_is_unknown_to_the_encoder():
    model, source = build(positions="none").eval(), tokens(1, 7)
    order = torch.randperm(7)
    shuffled = model.encode(source[:, order])
    assert difference(model.encode(source)[:, order], shuffled) < 1e-5


@pytest.mark.parametrize("S, T", [(41, 5), (5, 41)])
def test_a_sentence_longer_than_the_positions(S, T):
    build()(tokens(1, min(S, 40)), tokens(1, min(T, 40)))
    with pytest.raises(
        ValueError,
        match="a sentence of 41 tokens is longer than the model's 40 positions",
    ):
        build()(tokens(1, S), tokens(1, T))


def test_too_many_steps_with_caches():
    model = build(max_positions=5)
    source = tokens(1, 4)
    state = model.initial_state(source, KeyValueCache)
    model.step(tokens(1, 5), state)
    with pytest.raises(
        ValueError,
        match="a sentence of 6 tokens is longer than the model's 5 positions",
    ):
        model.step(tokens(1, 1), state)


@pytest.mark.parametrize("B_source, B_target", [(1, 3), (3, 1), (2, 3)])
def test_batches_of_different_sizes(B_source, B_target):
    with pytest.raises(
        ValueError,
        match=f"source has {B_source} sentences and target {B_target}: they must pair up",
    ):
        build()(tokens(B_source, 4), tokens(B_target, 4))


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(vocab_size=50.5), "vocab_size must be a whole number, not 50.5"),
        (dict(d_model=None), "d_model must be a whole number, not None"),
        (dict(N="2"), "N must be a whole number, not '2'"),
        (dict(N=True), "N must be a whole number, not True"),
        (dict(pad_id=0.5), "pad_id must be a whole number, not 0.5"),
        (dict(max_positions=40.5), "max_positions must be a whole number, not 40.5"),
        (dict(tie_embeddings="no"), "tie_embeddings must be True or False, not 'no'"),
        (dict(norm_first="false"), "norm_first must be True or False, not 'false'"),
        (dict(P_drop="0.1"), "P_drop must be a number, not '0.1'"),
    ],
)
def test_settings_of_another_type_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        TransformerConfig(**{**SMALL, **changes})


@pytest.mark.parametrize("shape", [(6,), (1,), (16,), (1, 2, 3)])
def test_ids_without_a_row_for_each_sentence_are_refused(shape):
    ids, model = torch.randint(3, 50, shape), build()
    for call in (
        lambda: model(ids, ids),
        lambda: model.encode(ids),
        lambda: model.states(ids, torch.zeros(len(ids), 2, 16), None),
    ):
        with pytest.raises(
            ValueError, match=r"token ids must be \(B, T\), a row for each sentence"
        ):
            call()


def test_memory_and_target_must_pair_up():
    model, ids = build(), tokens(2, 4)
    memory = model.encode(ids)
    for some, others in ((memory[:1], ids), (memory, ids[:1])):
        with pytest.raises(
            ValueError,
            match=f"memory has {len(some)} sentences and target {len(others)}",
        ):
            model.states(others, some, None)


@each_variant
def test_fast_parts_change_nothing(changes):
    plain, source, target = build(**changes).double(), tokens(3, 6), tokens(3, 8)
    fast = Transformer(plain.config, FAST).double().eval()
    fast.load_state_dict(plain.state_dict())
    source[1, 4:] = plain.config.pad_id
    losses = [model(source, target).square().sum() for model in (plain, fast)]
    assert difference(*losses) < 1e-9 * losses[0]
    for a, b in zip(
        *(
            torch.autograd.grad(loss, m.parameters())
            for loss, m in zip(losses, (plain, fast))
        )
    ):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_parts_are_what_a_model_is_built_from():
    parts = Parts(norm=nn.LayerNorm, dropout=nn.Identity, residual=NoPath)
    model = Transformer(TransformerConfig(**SMALL, norm_first=True), parts)
    assert isinstance(model.encoder.final_norm, nn.LayerNorm) and isinstance(
        model.dropout, nn.Identity
    )
    assert all(
        isinstance(r, NoPath) for layer in model.decoder.layers for r in layer.residuals
    )


class NoPath(Residual):
    """Without the path around the sub-layer."""

    def forward(self, x, sublayer):
        return self.norm(self.dropout(sublayer(x)))
