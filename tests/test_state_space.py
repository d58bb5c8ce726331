"""State space layers: loop, chunks, matrix and convolution are one; Mamba of `transformers`; steps
with a cache, padding, masks that cannot be kept; the tasks of notebook 24."""

from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from helpers import SENTENCES, batch
from torch import nn

from transformer.attention import causal_mask
from transformer.data import Batch
from transformer.experiments import characters
from transformer.experiments import state_space as runs
from transformer.fast.loss import SmoothedLoss
from transformer.fast.model import Parts, Transformer, TransformerConfig
from transformer.fast.search import KeyValueCache, beam_search, greedy_search
from transformer.language import LanguageConfig, LanguageModel, generate_ahead
from transformer.state_space import (
    FixedLayer,
    SelectiveLayer,
    StateCache,
    convolve,
    first_deltas,
    kernel,
    scan_chunks,
    scan_loop,
    scan_matrix,
    weights,
)
from transformer.teaching.memory_tasks import (
    FIRST,
    NOISE,
    UNASKED,
    copying,
    learn,
    recall,
    share_right,
)

SIZES = dict(vocab_size=30, d_model=16, d_ff=24, N=2, h=4, P_drop=0.0, max_positions=40)
LAYERS = {
    "one decay": SelectiveLayer,
    "many": partial(SelectiveLayer, one_decay=False),
    "fixed": FixedLayer,
    "no gate": partial(FixedLayer, gate=False),
}
pytestmark = pytest.mark.usefixtures("seed", "one_thread")


def randomized(module):
    """Every parameter random, so that a zero hides nothing."""
    with torch.no_grad():
        for p in module.parameters():
            p.normal_(std=0.5)
    return module.eval()


def model_of(name, **changes):
    parts = Parts(attention=partial(LAYERS[name], **changes))
    return randomized(LanguageModel(LanguageConfig(**SIZES), parts))


def tokens(*shape):
    return torch.randint(3, SIZES["vocab_size"], shape)


def steps_of(n, h=3, p=4, N=5, decays=1, groups=1):
    """Random x, delta, A, B, C in float64, with gradients."""
    made = (
        torch.randn(2, n, h, p),
        torch.rand(2, n, h),
        -4 * torch.rand(h, decays),
        torch.randn(2, n, groups, N),
        torch.randn(2, n, groups, N),
    )
    return [part.double().requires_grad_() for part in made]


# One recurrence, several ways


@pytest.mark.parametrize("decays, groups", [(1, 1), (1, 3), (5, 1), (5, 3)])
@pytest.mark.parametrize(
    "n, scan",
    [
        (13, scan_matrix),
        (13, partial(scan_chunks, length=4)),
        (12, partial(scan_chunks, length=4)),
        (13, partial(scan_chunks, length=50)),
        (1, scan_chunks),
        (70, scan_chunks),
    ],
)
def test_loop_chunks_and_matrix_are_one(n, scan, decays, groups):
    """Outputs, last states, and the gradients of both."""
    steps = steps_of(n, decays=decays, groups=groups)
    results = []
    for way in (scan_loop, scan):
        y, state = way(*steps)
        gradients = torch.autograd.grad((y**2).sum() + (state**3).sum(), steps)
        results.append((y, state, *gradients))
    for expected, found in zip(*results):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("decays", [1, 5])
def test_a_scan_goes_on_from_a_state(decays):
    x, delta, A, B, C = steps_of(11, decays=decays)
    whole, last = scan_loop(x, delta, A, B, C)
    for scan in (scan_loop, partial(scan_chunks, length=3)):
        y, state = scan(x[:, :4], delta[:, :4], A, B[:, :4], C[:, :4])
        rest, state = scan(x[:, 4:], delta[:, 4:], A, B[:, 4:], C[:, 4:], state)
        torch.testing.assert_close(
            torch.cat([y, rest], dim=1), whole, rtol=1e-9, atol=1e-9
        )
        torch.testing.assert_close(state, last, rtol=1e-9, atol=1e-9)


def test_a_recurrence_by_hand():
    """delta = log 2, A = -1: half is kept; log 2 times what is read is written."""
    delta, ones = torch.full((1, 3, 1), 2.0).log(), torch.ones(1, 3, 1, 1)
    x = torch.tensor([1.0, 0.0, 4.0]).view(1, 3, 1, 1)
    y, state = scan_loop(
        x / delta[..., None], delta, -torch.ones(1, 1), ones, 10 * ones
    )
    assert y.flatten().tolist() == pytest.approx([10.0, 5.0, 42.5])
    assert state.item() == pytest.approx(4.25)
    M = weights(delta, -torch.ones(1, 1), ones, 10 * ones)[0, 0] / delta[0, 0]
    expected = [[10, 0, 0], [5, 10, 0], [2.5, 5, 10]]
    torch.testing.assert_close(M, torch.tensor(expected), rtol=1e-5, atol=1e-5)


def test_steps_that_never_change_are_a_convolution():
    h, N, n = 6, 5, 23
    delta, A = torch.rand(h).double(), -3 * torch.rand(h, N).double()
    B, C = torch.randn(2, h, N).double()
    x = torch.randn(2, n, h, 2).double()
    steps = [part.expand(2, n, *part.shape) for part in (delta, B, C)]
    expected, _ = scan_loop(x, steps[0], A, *steps[1:])
    K = kernel(delta, A, B, C, n)
    torch.testing.assert_close(convolve(x, K), expected, rtol=1e-9, atol=1e-9)
    plain = F.conv1d(
        F.pad(x[..., 0].transpose(1, 2), (n - 1, 0)), K.flip(1)[:, None], groups=h
    )
    torch.testing.assert_close(
        plain.transpose(1, 2), expected[..., 0], rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("decays", [1, 16])
def test_long_sums_do_not_overflow(decays):
    """In float32, where exp of 89 is infinite: steps of 8 and decays of 16, outputs and gradients."""
    x, B, C = (
        torch.randn(1, 200, 2, 3),
        torch.randn(1, 200, 1, 16),
        torch.randn(1, 200, 1, 16),
    )
    delta = torch.full((1, 200, 2), 8.0, requires_grad=True)
    A = -torch.linspace(0.01, 16, decays).expand(2, -1).clone().requires_grad_()
    expected, _ = scan_loop(x, delta, A, B, C)
    for scan in (scan_matrix, scan_chunks):
        y, _ = scan(x, delta, A, B, C)
        torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-3)
        gradients = torch.autograd.grad(y.sum(), (delta, A))
        assert all(gradient.isfinite().all() for gradient in gradients)


def test_first_deltas_lie_where_they_should():
    delta = F.softplus(first_deltas(2000)).log10()
    assert delta.min() > -3.001 and delta.max() < -0.999
    assert delta.mean().item() == pytest.approx(-2, abs=0.05)


# The layers


@pytest.mark.parametrize("name", LAYERS)
@torch.no_grad()
def test_step_by_step_is_all_at_once(name):
    """A token at a time, several at a time, and a padded batch row by row."""
    model = model_of(name)
    source, more = batch(SENTENCES), tokens(len(SENTENCES), 5)
    for cut in (1, 2):
        state = model.initial_state(source, KeyValueCache)
        assert isinstance(state.caches[0][0], StateCache)
        steps = [model.read(more[:, i : i + cut], state) for i in range(0, 5, cut)]
        for row, ids, own in zip(
            model.output(torch.cat(steps, dim=1)), SENTENCES, more
        ):
            whole = model(torch.tensor([[*ids, *own.tolist()]]))[0, len(ids) :]
            torch.testing.assert_close(row, whole, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_no_gate_is_an_open_gate():
    """silu(1.2784645) = 1: a gate that stays there, whatever is read."""
    without = randomized(SelectiveLayer(16, 4, gate=False, bias=True))
    gated = randomized(SelectiveLayer(16, 4, bias=True))
    weights = without.state_dict()
    weights["W_in.weight"] = torch.cat([weights["W_in.weight"], torch.zeros(16, 16)])
    weights["W_in.bias"] = torch.cat(
        [weights["W_in.bias"], torch.full((16,), 1.2784645)]
    )
    gated.load_state_dict(weights)
    x = torch.randn(2, 9, 16)
    torch.testing.assert_close(without(x, x, x), gated(x, x, x))


@pytest.mark.parametrize("name", LAYERS)
def test_searches_agree(name):
    model, source = model_of(name), batch(SENTENCES)
    best = beam_search(model, source, beam=1, alpha=0.0, extra=4)
    assert greedy_search(model, source, extra=4) == [found[0].tokens for found in best]
    three = beam_search(model, source, beam=3, alpha=0.0, extra=4)
    assert all(some[0].score >= one[0].score - 1e-4 for some, one in zip(three, best))


@pytest.mark.parametrize("name", LAYERS)
def test_nothing_later_is_seen(name):
    layer = randomized(LAYERS[name](16, 4))
    x = torch.randn(1, 9, 16, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x, x, x, causal_mask(9))[0, 5].sum(), x)
    assert (
        gradient[0, :6].abs().amax(dim=1).gt(0).all()
        and gradient[0, 6:].abs().max() < 1e-6
    )


@pytest.mark.parametrize("name", LAYERS)
def test_every_parameter_learns(name):
    model = model_of(name)
    source, target = batch(SENTENCES), batch([[1, *ids] for ids in SENTENCES])
    model.loss(Batch(source, target), SmoothedLoss(0.0, 0)).backward()
    assert all(
        p.grad.isfinite().all() and p.grad.abs().sum() > 0 for p in model.parameters()
    )


def test_a_state_does_not_grow():
    model = model_of("one decay")
    sizes = []
    for n in (3, 30):
        state = model.initial_state(tokens(1, n))
        sizes.append([(own.state.shape, own.recent.shape) for own, _ in state.caches])
    assert sizes[0] == sizes[1] == [((1, 4, 4, 16), (1, 3, 16))] * 2


@torch.no_grad()
def test_the_first_values_survive_the_models():
    """`initialize` sets biases to 0; the steps' must not be among them."""
    model = LanguageModel(LanguageConfig(**SIZES), Parts(attention=SelectiveLayer))
    delta = F.softplus(model.decoder.layers[0].self_attention.delta_bias)
    assert 0.0009 < delta.min() and delta.max() < 0.11


@pytest.mark.parametrize(
    "mask",
    [
        torch.ones(5, 5, dtype=torch.bool),
        torch.eye(5, dtype=torch.bool),
        causal_mask(6)[:5],
        causal_mask(5).expand(1, 4, 5, 5),
        torch.ones(1, 1, 1, 5, dtype=torch.bool),
    ],
)
def test_masks_that_no_state_can_keep(mask):
    x = torch.randn(1, 5, 16)
    with pytest.raises(ValueError, match="from left to right"):
        SelectiveLayer(16, 4)(x, x, x, mask)


def test_what_else_is_refused():
    x = torch.randn(1, 5, 16)
    with pytest.raises(ValueError, match="no memory beside it"):
        SelectiveLayer(16, 4)(x, x[:, :3], x[:, :3])
    with pytest.raises(ValueError, match="no memory beside it"):  # of the same length
        SelectiveLayer(16, 4)(x, x + 1, x + 1)
    with pytest.raises(ValueError, match="from left to right"):
        LanguageModel(
            LanguageConfig(**SIZES, prefix=True), Parts(attention=SelectiveLayer)
        ).initial_state(tokens(1, 5))
    with pytest.raises(ValueError, match="cannot forget .*: use `generate`"):
        generate_ahead(
            LanguageModel(LanguageConfig(**SIZES), Parts(attention=SelectiveLayer)),
            [1, 5, 6],
            4,
            lambda ids: [7],
        )
    with pytest.raises(ValueError, match="from left to right"):
        Transformer(TransformerConfig(**SIZES), Parts(attention=FixedLayer)).encode(
            tokens(1, 5)
        )
    with pytest.raises(ValueError, match="does not divide"):
        FixedLayer(16, 3)
    with pytest.raises(ValueError, match="d_k must be at least 1"):
        SelectiveLayer(16, 4, d_k=-1)


# Mamba of `transformers`, with our weights


class RootMeanSquare(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return self.gain * x * torch.rsqrt((x**2).mean(dim=-1, keepdim=True) + 1e-5)


class Nothing(nn.Module):
    """Mamba has no position-wise network."""

    def __init__(self, d_model, d_ff):
        super().__init__()

    def forward(self, x):
        return torch.zeros_like(x)


def renamed(model):
    """Our weights under Mamba's names."""
    theirs = {
        "embeddings.weight": 4 * model.embedding.weight,
        "norm_f.weight": model.decoder.final_norm.gain,
    }
    for i, layer in enumerate(model.decoder.layers):
        one, to = layer.self_attention, f"layers.{i}.mixer."
        theirs |= {
            f"layers.{i}.norm.weight": layer.residuals[0].norm.gain,
            to + "in_proj.weight": one.W_in.weight,
            to + "in_proj.bias": one.W_in.bias,
            to + "conv1d.weight": one.window.T[:, None],
            to + "conv1d.bias": one.window_bias,
            to + "x_proj.weight": one.W_step.weight,
            to + "dt_proj.weight": one.W_delta.weight,
            to + "dt_proj.bias": one.delta_bias,
            to + "A_log": one.A_log,
            to + "D": one.D,
            to + "out_proj.weight": one.W_out.weight,
            to + "out_proj.bias": one.W_out.bias,
        }
    return theirs


@torch.no_grad()
def test_mamba_of_transformers(monkeypatch):
    """N decays a channel, all biases random, width twice d_model; no networks, and their norm."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    theirs = pytest.importorskip("transformers")
    attention = partial(SelectiveLayer, one_decay=False, bias=True)
    config = LanguageConfig(**{**SIZES, "d_k": 6, "d_v": 8})
    parts = Parts(attention, Nothing, RootMeanSquare)
    model = randomized(LanguageModel(config, parts))
    mamba = theirs.MambaModel(
        theirs.MambaConfig(
            vocab_size=30,
            hidden_size=16,
            state_size=6,
            num_hidden_layers=2,
            expand=2,
            use_bias=True,
            time_step_rank=1,
            conv_kernel=4,
            layer_norm_epsilon=1e-5,
        )
    ).eval()
    mamba.load_state_dict(renamed(model))
    for n in (3, 21):
        ids = tokens(2, n)
        found = model.states(ids, ids[:, :0].bool())
        torch.testing.assert_close(
            found, mamba(ids).last_hidden_state, rtol=1e-5, atol=1e-5
        )


# The tasks and the runs


def test_copying():
    """The words in order, each asked for from the begin mark on."""
    ids, gold = copying(20, torch.Generator().manual_seed(1), n=12, words=3, types=5)
    assert ids.shape == gold.shape == (20, 15) and gold[:, :12].eq(UNASKED).all()
    for row, said in zip(ids, gold[:, 12:]):
        words = row[:12][row[:12] != NOISE]
        assert torch.equal(words, said) and len(set(words.tolist())) == 3
        assert row[12] == 1 and torch.equal(row[13:], said[:-1])
    ids, _ = copying(5, torch.Generator().manual_seed(1), n=12, words=3, spread=False)
    assert ids[:, :3].min() >= FIRST and ids[:, 3:12].eq(NOISE).all()


def test_recall():
    ids, gold = recall(20, torch.Generator().manual_seed(1), pairs=5, keys=6)
    for row, said in zip(ids, gold):
        known = dict(zip(row[:10:2].tolist(), row[1:10:2].tolist()))
        assert len(known) == 5 and sorted(known) == sorted(row[10:].tolist())
        assert said[10:].tolist() == [known[key] for key in row[10:].tolist()]
        assert said[:10].eq(UNASKED).all() and max(known) < min(known.values())


def test_it_learns_to_repeat():
    torch.manual_seed(1)
    model = LanguageModel(
        LanguageConfig(12, 16, 16, 1, 2, P_drop=0.0, max_positions=16),
        Parts(attention=SelectiveLayer),
    )
    task = partial(copying, n=2, words=1, types=4)
    losses = learn(model, task, updates=80, peak=0.03)
    assert losses[-1] < 0.2 < losses[0] and share_right(model, task) > 0.95


@pytest.mark.parametrize(
    "task, family",
    [(task, family) for task in runs.FAMILIES for family in runs.FAMILIES[task]],
)
def test_a_small_run(task, family, monkeypatch, tmp_path):
    monkeypatch.setitem(runs.UPDATES, task, 2)
    monkeypatch.setattr(runs, "PAIRS", (4,))
    monkeypatch.setattr(runs, "share_right", partial(share_right, rows=4))
    row = runs.memory_job(task, family, 0.003, 1).do(folder=tmp_path, device="cpu")
    assert 0 <= row["validation"] <= 1
    assert ("4 pairs" if task == "recall" else "right") in row


def test_families_have_equal_parameters():
    for task in ("copying", "long copying"):
        sizes = [
            sum(p.numel() for p in runs.memory_model(*family, 1).parameters())
            for family in runs.FAMILIES[task].values()
        ]
        assert max(sizes) < 1.05 * min(sizes)
    sizes = [
        sum(p.numel() for p in runs.character_model(family, 1).parameters())
        for family in ("attention", "selective")
    ]
    assert max(sizes) < 1.05 * min(sizes)


@pytest.mark.parametrize("family", ["attention", "selective"])
def test_small_readers(family, monkeypatch, tmp_path):
    """Trained on 16 bytes at once, tested on those and on four times as many."""
    monkeypatch.setattr(
        runs,
        "LONG",
        replace(runs.LONG, d_model=16, d_ff=16, N=1, h=2, max_positions=64),
    )
    monkeypatch.setattr(characters, "READ", 32)
    monkeypatch.setattr(
        characters, "TRAINING", replace(characters.TRAINING, warmup=5, precision="fp32")
    )
    monkeypatch.setattr(characters, "text_of", lambda split: "aä" * 100)
    row = runs.character_job(5, family, 0.02, 1).do(
        folder=tmp_path / "run", device="cpu"
    )
    assert row["updates"] == 5 and 0 < row["bits"] < 12 and 0 < row["bits.long"] < 12


def test_seconds_of_every_layer(monkeypatch, tmp_path):
    monkeypatch.setattr(
        runs,
        "measure",
        lambda layers, sizes, *_: {
            "training": {
                name: {"seconds": [1.0] * len(sizes), "bytes": [1] * len(sizes)}
                for name in layers
            }
        },
    )
    rows = runs.timed(1024, 1, tmp_path, "cpu")
    assert {row["n"] for row in rows} == {256, 512, 1024} and len(rows) == 18
