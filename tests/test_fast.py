"""Fast parts against the plain ones: torch's attention kernel, the loss in chunks, packed weights."""

import copy
import gc
import pickle
import subprocess
import sys
import textwrap
import weakref

import pytest
import torch
import torch.nn.functional as F

from transformer import load, translate
from transformer.data import Batch
from transformer.embeddings import Projection
from transformer.fast import FAST, projected
from transformer.fast import attention as kernels
from transformer.fast import packed as packing
from transformer.fast.dropout import BitDropout
from transformer.fast.loss import SmoothedLoss
from transformer.fast.model import Parts, Transformer, TransformerConfig
from transformer.fast.packed import PackedLinear, can_pack, packed
from transformer.fast.projected import projected_loss
from transformer.fast.search import KeyValueCache
from transformer.hardware import autocast, matmul_precision
from transformer.regularization import label_smoothing_loss

CPU = torch.device("cpu")


def model_of(**changes):
    """A small Transformer of fast parts."""
    torch.manual_seed(0)
    sizes = dict(vocab_size=30, d_model=16, d_ff=32, N=2, h=4, P_drop=0.0)
    return Transformer(TransformerConfig(**{**sizes, **changes}), FAST)


def tokens(B, n, padding=True):
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(3, 30, (B, n), generator=generator)
    if padding:
        for row, keep in enumerate(
            torch.randint(1, n + 1, (B,), generator=generator).tolist()
        ):
            ids[row, keep:] = 0
    return ids


# Dropout from few bits


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_bit_dropout_loses_a_share_and_keeps_the_mean(p):
    """As torch's: the share lost within five standard errors, the others times 1/(1-p), the same
    entries in the gradient; nothing lost outside training or at p = 0, everything at p = 1."""
    torch.manual_seed(0)
    x = torch.ones(401, 503, requires_grad=True)
    dropped = BitDropout(p)(x)
    lost = (dropped == 0).float().mean().item()
    assert abs(lost - p) < 5 * (p * (1 - p) / x.numel()) ** 0.5
    assert dropped[dropped != 0].allclose(torch.tensor(1 / (1 - p)))
    assert torch.autograd.grad(dropped.sum(), x)[0].equal(dropped)
    assert not BitDropout(p)(x).equal(dropped)
    assert BitDropout(p).eval()(x).equal(x) and BitDropout(0.0)(x).equal(x)
    assert not BitDropout(1.0)(x).any()


# The chunked loss


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("space", [1, 1000, 10**9])
@pytest.mark.parametrize("whole", [False, True])
def test_chunked_loss_equals_the_plain_one(monkeypatch, epsilon, space, whole):
    """Value and gradients at float64, in chunks of one row, some rows, and all rows; of real rows,
    or, as on a GPU, of padding, too, even where the states there are no numbers."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: whole)
    monkeypatch.setattr(
        projected, "chunk_rows", lambda E: max(1, space // (4 * len(E)))
    )
    torch.manual_seed(0)
    x, E = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True)
        for shape in ((5, 9, 16), (30, 16))
    )
    gold, results = tokens(5, 9), []
    spoilt = x.masked_fill((gold == 0)[..., None], torch.nan)
    for loss in (
        projected_loss(spoilt, E, gold, epsilon),
        label_smoothing_loss(x @ E.T, gold, epsilon, 0, "sum"),
    ):
        results.append((loss, *torch.autograd.grad(3 * loss, (x, E))))
    for a, b in zip(*results):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def test_chunked_loss_has_no_second_derivative():
    """Its gradient is no function of x for torch: a second derivative would be wrong without a word."""
    x = torch.randn(1, 3, 4, requires_grad=True)
    loss = projected_loss(x, torch.eye(5, 4), torch.tensor([[1, 2, 3]]))
    with pytest.raises(RuntimeError, match="no second derivative: take SmoothedLoss"):
        torch.autograd.grad(loss, x, create_graph=True)


@pytest.mark.parametrize("epsilon", [-0.1, 2.0])
def test_chunked_loss_refuses_a_smoothing_out_of_range(epsilon):
    with pytest.raises(
        ValueError, match=f"epsilon must be between 0 and 1, not {epsilon}"
    ):
        projected_loss(
            torch.ones(1, 1, 4), torch.eye(5, 4), torch.tensor([[4]]), epsilon
        )


def test_chunked_loss_with_logits_that_overflow():
    x, E = (
        torch.full((1, 1, 4), 100.0, requires_grad=True),
        (torch.eye(5, 4) * 50).requires_grad_(),
    )
    loss = projected_loss(x, E, torch.tensor([[4]]), 0.1)
    expected = label_smoothing_loss(x @ E.T, torch.tensor([[4]]), 0.1, 0, "sum")
    torch.testing.assert_close(loss, expected)
    assert all(g.isfinite().all() for g in torch.autograd.grad(loss, (x, E)))


@pytest.mark.parametrize("precision, tolerance", [("bf16", 0.02), ("fp16", 0.003)])
def test_chunked_loss_in_short_numbers(precision, tolerance):
    torch.manual_seed(0)
    x, E, gold = (
        torch.randn(5, 9, 16, requires_grad=True),
        torch.randn(30, 16, requires_grad=True),
        tokens(5, 9),
    )
    exact = projected_loss(x, E, gold)
    with autocast(CPU, precision):
        short = projected_loss(x, E, gold)
    assert short.dtype == torch.float32
    assert short.item() == pytest.approx(exact.item(), rel=tolerance)
    for a, b in zip(
        torch.autograd.grad(short, (x, E)), torch.autograd.grad(exact, (x, E))
    ):
        assert (
            a.dtype == torch.float32
            and (a - b).abs().max() < tolerance * b.abs().max() * 2
        )


@pytest.mark.system
def test_chunked_loss_takes_no_memory_for_logits():
    """A backward pass over logits of 1.6 GB adds a small part of that to the process's peak."""
    code = """
        import torch
        from transformer.hardware import peak_memory
        from transformer.fast.projected import projected_loss
        x, E = torch.randn(4, 2500, 16, requires_grad=True), torch.randn(40_000, 16, requires_grad=True)
        before = peak_memory(torch.device("cpu"))
        projected_loss(x, E, torch.ones(4, 2500, dtype=torch.long)).backward()
        print(peak_memory(torch.device("cpu")) - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) < 0.2


def test_the_projection_learns_even_where_its_input_does_not():
    x, E = torch.randn(2, 3, 4), torch.randn(9, 4, requires_grad=True)
    gold = torch.tensor([[3, 4, 0], [5, 6, 7]])
    logits = (x @ E.T).flatten(0, 1)
    plain = F.cross_entropy(
        logits, gold.flatten(), label_smoothing=0.1, ignore_index=0, reduction="sum"
    )
    (ours,), (expected,) = (
        torch.autograd.grad(loss, [E]) for loss in (projected_loss(x, E, gold), plain)
    )
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def test_without_gradients_only_the_loss_is_computed(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "addmm_", None)
    x, E, gold = torch.randn(2, 3, 4), torch.randn(9, 4), torch.randint(1, 9, (2, 3))
    with torch.no_grad():
        assert projected_loss(x, E, gold) > 0


# Attention by torch's kernel (that it equals the formula: test_attention.py, test_model.py)


@pytest.mark.parametrize(
    "n, calls", [(8, 6), (257, 12)]
)  # few keys take the formula where the precision is another
@pytest.mark.parametrize(
    "precision, dtype", [("bf16", torch.bfloat16), ("medium", torch.float32)]
)
def test_a_model_in_another_precision_on_a_cpu(
    exact_products, monkeypatch, n, calls, precision, dtype
):
    """Loss and gradients near those of fp32; torch's kernel gets fp32, and only where there are many keys."""
    kinds, kernel = [], F.scaled_dot_product_attention

    def spy(q, k, v, mask):
        kinds.append({t.dtype for t in (q, k, v)})
        return kernel(q, k, v, mask)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    fast, source, target, results = (
        model_of(max_positions=300),
        tokens(5, n),
        tokens(5, n - 1),
        [],
    )
    for name in ("fp32", precision):
        with autocast(CPU, name), matmul_precision(name):
            logits = fast(source, target)
            gradients = torch.autograd.grad(
                logits.float().square().sum(), list(fast.parameters())
            )
        results.append((logits.float(), *gradients))
    assert kinds == [{torch.float32}] * calls and logits.dtype == dtype
    for a, b in zip(*results):
        assert (a - b).norm() < 0.05 * a.norm()


def test_a_mask_of_numbers_is_refused():
    q, k, v = torch.randn(3, 1, 2, 4, 8)
    with pytest.raises(TypeError, match="mask must be boolean"):
        kernels.kernel_attention(q, k, v, torch.ones(4, 4).tril())
    with pytest.raises(ValueError, match="each key needs one value: 4 keys, 3 values"):
        kernels.kernel_attention(q, k, v[..., :3, :])


# Packed weights

needs_onednn = pytest.mark.skipif(
    not can_pack(torch.nn.Linear(1, 1)), reason="this torch has no oneDNN"
)


@needs_onednn
@pytest.mark.parametrize("shape", [(1, 48), (64, 48), (7, 5, 48)])
@pytest.mark.parametrize("bias", [False, True])
def test_packed_map_equals_the_plain_one(shape, bias):
    torch.manual_seed(0)
    linear, x = torch.nn.Linear(48, 80, bias), torch.randn(*shape)
    laid_out = PackedLinear(linear)
    with torch.no_grad():
        torch.testing.assert_close(laid_out(x), linear(x), rtol=0, atol=1e-5)
        x = x.transpose(0, -2).contiguous().transpose(0, -2)  # another order in memory
        torch.testing.assert_close(laid_out(x), linear(x), rtol=0, atol=1e-5)
        with torch.autocast("cpu", torch.bfloat16):  # short inputs are left to torch
            short = laid_out(x.bfloat16())
            assert torch.equal(short, linear(x.bfloat16()))
    (gradient,) = torch.autograd.grad(laid_out(x).sum(), linear.weight)
    assert gradient.abs().sum() > 0


@needs_onednn
@pytest.mark.parametrize(
    "changes", [{}, {"tie_embeddings": False}, {"norm_first": True}]
)
def test_packed_copy_equals_the_model(monkeypatch, changes):
    """No product of the copy reads the unpacked weight; the model itself stays as it was."""
    monkeypatch.setattr(packing, "SMALLEST", 1)
    model, source, target = (
        model_of(**changes).eval(),
        tokens(5, 8),
        tokens(5, 7, padding=False),
    )
    quick = packed(model)
    with torch.no_grad():
        expected = quick(source, target)
        torch.testing.assert_close(expected, model(source, target), rtol=0, atol=1e-5)
        assert all(
            a is b for a, b in zip(model.parameters(), quick.parameters())
        )  # shared
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.fill_(float("nan"))
        assert (
            quick(source, target).equal(expected)
            and model(source, target).isnan().any()
        )
    assert not any(isinstance(module, PackedLinear) for module in model.modules())


def test_packed_copy_of_a_model_with_hooks_and_memories(monkeypatch):
    """A hook is called, what a forward pass kept may be there, a weight may be computed from others, and a layer still
    tells its sizes."""
    monkeypatch.setattr(packing, "SMALLEST", 1)
    model, source, target = model_of().eval(), tokens(5, 8), tokens(5, 7, padding=False)
    calls, model.kept = [], model.encode(source)
    torch.nn.utils.parametrizations.weight_norm(
        model.encoder.layers[1].feed_forward.W_1
    )
    model.encoder.layers[0].feed_forward.W_1.register_forward_hook(
        lambda *_: calls.append(1)
    )
    quick = packed(model)
    with torch.no_grad():
        torch.testing.assert_close(
            quick(source, target), model(source, target), rtol=0, atol=1e-5
        )
    assert len(calls) == 2
    for mine, theirs in zip(model.modules(), quick.modules()):
        if isinstance(mine, torch.nn.Linear):  # packed or not
            assert (mine.in_features, mine.out_features) == (
                theirs.in_features,
                theirs.out_features,
            )


def layouts(model):
    """The laid-out weights of a model's packed copy."""
    return [m.packed for m in packed(model).modules() if isinstance(m, PackedLinear)]


def unchanged(before, after):
    return [a is b for a, b in zip(before, after, strict=True)]


def updated(model, **options):
    """One update of Adam's."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6, **options)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()


def fused(model):
    try:
        updated(model, fused=True)
    except RuntimeError:
        pytest.skip("this torch has no fused Adam on a CPU")


CHANGES = {
    "update": updated,
    "fused update": fused,
    "load_state_dict": lambda model: model.load_state_dict(
        {name: tensor + 1 for name, tensor in model.state_dict().items()}
    ),
    "data": lambda model: [p.data.mul_(1.001) for p in model.parameters()],
    "one entry": lambda model: [
        p.data.view(-1)[-1:].add_(1) for p in model.parameters()
    ],
    "new parameters": lambda model: [
        setattr(m, "weight", torch.nn.Parameter(m.weight + 1))
        for m in model.modules()
        if isinstance(m, (torch.nn.Linear, Projection))
    ],
}


@needs_onednn
@pytest.mark.parametrize("change", CHANGES)
def test_weights_are_laid_out_once_and_again_when_they_changed(monkeypatch, change):
    monkeypatch.setattr(packing, "SMALLEST", 1)
    model = model_of(tie_embeddings=False).eval()
    first = layouts(model)
    assert len(first) > 10 and all(unchanged(first, layouts(model)))
    CHANGES[change](model)
    second = layouts(model)
    assert not any(unchanged(first, second))
    assert all(unchanged(second, layouts(model)))
    source, target = tokens(5, 8), tokens(5, 7, padding=False)
    with torch.no_grad():
        torch.testing.assert_close(
            packed(model)(source, target), model(source, target), rtol=0, atol=1e-5
        )


@needs_onednn
def test_one_changed_weight_is_laid_out_alone():
    maps = torch.nn.ModuleList(torch.nn.Linear(512, 512) for _ in range(3))
    first = layouts(maps)
    with torch.no_grad():
        maps[1].weight[5, 7] += 1
    assert unchanged(first, layouts(maps)) == [True, False, True]
    with torch.no_grad():  # the same numbers in another place
        maps[0].weight.copy_(maps[0].weight.flip(0))
        maps[2].weight.copy_(maps[2].weight.roll(2, 1))
    assert unchanged(first, layouts(maps)) == [False, False, False]


@needs_onednn
def test_translating_again_lays_out_nothing():
    def kept():
        return [
            packing.LAID_OUT[m][-1] for m in model.modules() if m in packing.LAID_OUT
        ]

    model, tokenizer = load()
    assert not kept()
    first = translate(model, tokenizer, ["The cat sleeps."])
    laid_out = kept()
    assert laid_out
    assert translate(model, tokenizer, ["The cat sleeps."]) == first
    assert all(unchanged(laid_out, kept()))


@needs_onednn
def test_what_is_laid_out_goes_with_its_model(monkeypatch, tmp_path):
    """It keeps no model alive, and is not saved, pickled or copied with it."""
    monkeypatch.setattr(packing, "SMALLEST", 1)
    model = model_of(tie_embeddings=False)
    before = len(pickle.dumps(model)), set(vars(model)), model.state_dict().keys()
    count = len(packing.LAID_OUT)
    laid_out = weakref.ref(layouts(model)[0])
    assert len(packing.LAID_OUT) > count
    after = len(pickle.dumps(model)), set(vars(model)), model.state_dict().keys()
    assert after == before
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    copied = copy.deepcopy(model)
    assert not any(unchanged(layouts(model), layouts(copied)))
    del model, copied
    gc.collect()
    assert laid_out() is None and len(packing.LAID_OUT) <= count


def test_what_is_not_packed(monkeypatch):
    def kinds(model):
        return [type(module) for module in packed(model).children()]

    large, small, plain = (
        torch.nn.Linear(512, 256, False),
        torch.nn.Linear(512, 255, False),
        torch.nn.Linear,
    )
    both = torch.nn.ModuleList([large, small])
    assert kinds(both) == ([PackedLinear, plain] if can_pack(both) else [plain, plain])
    assert kinds(both.double()) == kinds(both.bfloat16()) == [plain, plain]
    compiled = torch.nn.ModuleList([torch.nn.Linear(512, 512)])
    compiled[0].compile()
    assert packed(compiled) is compiled
    around = torch.compile(both, backend="eager")
    assert packed(around) is around and kinds(both) == kinds(
        torch.nn.ModuleList([large, small])
    )
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert kinds(both.float()) == [plain, plain]


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("parts", [Parts(), FAST], ids=["plain", "fast"])
def test_no_tensor_is_made_on_another_device(parts, positions, norm_first):
    """A model made on the CPU and moved to torch's meta device, as it would be to a GPU: loss, its
    gradients and steps of a search. A tensor on the CPU would not mix with its own."""
    config = TransformerConfig(
        50, 16, 32, 2, 2, positions=positions, norm_first=norm_first
    )
    model = Transformer(config, parts).to("meta")
    source, target = (torch.ones(2, n, dtype=torch.long, device="meta") for n in (5, 4))
    model.loss(Batch(source, target), SmoothedLoss(0.1, 0)).backward()
    assert all(
        p.grad.device.type == "meta" for p in model.parameters() if p.grad is not None
    )
    assert model.embedding.weight.grad is not None
    state = model.eval().initial_state(source, KeyValueCache)
    for column in target.T:
        assert model.step(column[:, None], state).device.type == "meta"
    with pytest.raises(RuntimeError, match="not on the expected device"):
        model.embedding(source) + torch.ones(16)
