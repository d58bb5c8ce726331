"""Hardware: the choice of device and precision, FLOPs against torch's counter, the chunked loss and the fast attention
against the plain ones, the meter, and several processes against one."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from helpers import KILL
from torch.utils.flop_counter import FlopCounterMode

from transformer import hardware
from transformer.decoding import KeyValueCache
from transformer.attention import MultiHeadAttention, causal_mask, padding_mask
from transformer.decoding import beam_search, greedy_search
from transformer.hardware import (
    AddNorm, BitDropout, Meter, SharedCache, accelerate, autocast, autocast_off,
    choose_device, choose_precision, estimate_seconds, forward_flops, loss_scaler,
    matmul_precision, matmul_rate, packed_weights, precision_hint, processes,
    shared_caches, torch_attention, training_flops, wait_for,
)
from transformer.fast.packed import compile_stacks, packed_linear
from transformer.fast.loss import projected_loss
from transformer.model import Transformer, TransformerConfig
from transformer.recurrence import RecurrenceConfig, RecurrentEncoderDecoder
from transformer.regularization import label_smoothing_loss
from transformer.stacks import Residual

CPU = torch.device("cpu")


def model_of(**changes):
    torch.manual_seed(0)
    sizes = dict(vocab_size=30, d_model=16, d_ff=32, N=2, h=4, P_drop=0.0)
    return Transformer(TransformerConfig(**{**sizes, **changes}))


def tokens(B, n, padding=True):
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(3, 30, (B, n), generator=generator)
    if padding:
        for row, keep in enumerate(torch.randint(1, n + 1, (B,), generator=generator).tolist()):
            ids[row, keep:] = 0
    return ids


# Device and precision

def test_devices():
    assert choose_device("cpu") == CPU
    assert choose_device().type in ("cpu", "cuda", "mps")
    for name in ("tpu", "meta", "cuda:99"):
        with pytest.raises(ValueError, match=f"no device '{name}' here: choose cpu, cuda or mps"):
            choose_device(name)


@pytest.mark.parametrize("capability, expected", [((7, 5), "fp16"), ((8, 0), "bf16"), ((9, 0), "bf16")])
def test_precision_follows_the_gpu(monkeypatch, capability, expected):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert choose_precision(torch.device("cuda")) == expected
    assert choose_precision(torch.device("cuda"), "fp32") == "fp32"
    assert choose_precision(CPU) == choose_precision(torch.device("mps")) == "fp32"
    with pytest.raises(ValueError, match="unknown precision 'fp8'"):
        choose_precision(CPU, "fp8")


def test_autocast_shortens_products_only():
    x = torch.randn(3, 3)
    with autocast(CPU, "bf16"):
        assert (x @ x).dtype == torch.bfloat16 and F.layer_norm(x, (3,)).dtype == torch.float32
    with autocast(CPU, "fp32"):
        assert (x @ x).dtype == torch.float32


def test_only_fp16_scales_the_loss():
    assert loss_scaler(CPU, "fp16").is_enabled()
    assert not loss_scaler(CPU, "bf16").is_enabled() and not loss_scaler(CPU, "fp32").is_enabled()


# FLOPs

@pytest.mark.parametrize("changes", [{}, {"N": 3, "d_ff": 20}, {"d_k": 5, "d_v": 3}, {"h": 1}])
@pytest.mark.parametrize("S, T", [(7, 9), (1, 1), (12, 3)])
def test_flops_equal_torchs_counter(changes, S, T):
    model = model_of(**changes)
    with FlopCounterMode(display=False) as counter:
        logits = model(torch.full((2, S), 5), torch.full((2, T), 5))
    assert counter.get_total_flops() == 2 * forward_flops(model.config, S, T)
    with FlopCounterMode(display=False) as counter:
        logits.sum().backward()
    assert counter.get_total_flops() + 2 * forward_flops(model.config, S, T) == 2 * training_flops(model.config, S, T)


def test_estimate_by_hand():
    c = model_of().config
    seconds = estimate_seconds(c, 10, 600, rate=1e6, utilisation=0.5, length=20)
    assert seconds == pytest.approx(10 * 30 * training_flops(c, 20, 20) / 5e5)


def test_rate_is_that_of_a_product():
    """Within a factor of the same product timed here; a wrong count of operations or seconds is far outside."""
    x, best = torch.randn(512, 512), float("inf")
    for _ in range(10):
        started = time.perf_counter()
        x @ x
        best = min(best, time.perf_counter() - started)
    assert 0.1 < matmul_rate(CPU, n=512) / (2 * 512**3 / best) < 10


def test_meter_by_hand(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    c = model_of().config
    meter = Meter(c, peak=1e6)
    meter.add(pairs=4, source_tokens=40, target_tokens=48)
    meter.add(pairs=2, source_tokens=10, target_tokens=12)
    now[0] += 2.0
    flops = 4 * training_flops(c, 10, 12) + 2 * training_flops(c, 5, 6)
    assert meter.read() == {"tokens_per_second": 30, "utilisation": round(flops / 2 / 1e6, 3)}
    meter.restart()
    now[0] += 1.0
    assert meter.read() == {"tokens_per_second": 0, "utilisation": 0.0}


def test_peak_memory_sees_what_was_used():
    """In a process of its own: here an earlier test may have used more."""
    program = textwrap.dedent("""
        import torch
        from transformer.hardware import peak_memory
        before = peak_memory(torch.device("cpu"))
        block = torch.ones(2**26)  # a quarter of a GiB
        print(before, peak_memory(torch.device("cpu")))""")
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    before, after = map(float, printed.split())
    assert 0.01 < before < after - 0.2 and after < 100


# The chunked loss

@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("space", [1, 1000, 10**9])
def test_chunked_loss_equals_the_plain_one(monkeypatch, epsilon, space):
    """Value and gradients at float64, in chunks of one row, some rows, and all rows."""
    monkeypatch.setattr(hardware, "chunk_rows", lambda E: max(1, space // (4 * len(E))))
    torch.manual_seed(0)
    x, E = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((5, 9, 16), (30, 16)))
    gold, results = tokens(5, 9), []
    for loss in (projected_loss(x, E, gold, epsilon), label_smoothing_loss(x @ E.T, gold, epsilon, 0, "sum")):
        results.append((loss, *torch.autograd.grad(3 * loss, (x, E))))
    for a, b in zip(*results):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


@pytest.mark.parametrize("epsilon", [-0.1, 2.0])
def test_chunked_loss_refuses_a_smoothing_out_of_range(epsilon):
    with pytest.raises(ValueError, match=f"epsilon must be between 0 and 1, not {epsilon}"):
        projected_loss(torch.ones(1, 1, 4), torch.eye(5, 4), torch.tensor([[4]]), epsilon)


def test_chunked_loss_with_logits_that_overflow():
    x, E = torch.full((1, 1, 4), 100.0, requires_grad=True), (torch.eye(5, 4) * 50).requires_grad_()
    loss = projected_loss(x, E, torch.tensor([[4]]), 0.1)
    expected = label_smoothing_loss(x @ E.T, torch.tensor([[4]]), 0.1, 0, "sum")
    torch.testing.assert_close(loss, expected)
    assert all(g.isfinite().all() for g in torch.autograd.grad(loss, (x, E)))


@pytest.mark.parametrize("precision, tolerance", [("bf16", 0.02), ("fp16", 0.003)])
def test_chunked_loss_in_short_numbers(precision, tolerance):
    torch.manual_seed(0)
    x, E, gold = torch.randn(5, 9, 16, requires_grad=True), torch.randn(30, 16, requires_grad=True), tokens(5, 9)
    exact = projected_loss(x, E, gold)
    with autocast(CPU, precision):
        short = projected_loss(x, E, gold)
    assert short.dtype == torch.float32
    assert short.item() == pytest.approx(exact.item(), rel=tolerance)
    for a, b in zip(torch.autograd.grad(short, (x, E)), torch.autograd.grad(exact, (x, E))):
        assert a.dtype == torch.float32 and (a - b).abs().max() < tolerance * b.abs().max() * 2


def test_chunked_loss_takes_no_memory_for_logits():
    """A backward pass over logits of 1.6 GB adds a small part of that to the process's peak."""
    code = """
        import torch
        from transformer.hardware import peak_memory
        from transformer.fast.loss import projected_loss
        x, E = torch.randn(4, 2500, 16, requires_grad=True), torch.randn(40_000, 16, requires_grad=True)
        before = peak_memory(torch.device("cpu"))
        projected_loss(x, E, torch.ones(4, 2500, dtype=torch.long)).backward()
        print(peak_memory(torch.device("cpu")) - before)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.2


# The fast attention

def assert_same_results(plain, fast, source, target, atol=1e-9):
    results = []
    for model in (plain, fast):
        logits = model(source, target)
        real = logits[target != 0]  # rows of padding may differ: nobody reads them
        results.append((real, *torch.autograd.grad(real.square().sum(), list(model.parameters()))))
    for a, b in zip(*results):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=atol)


@pytest.mark.parametrize("changes", [{}, {"d_k": 6, "d_v": 3}, {"norm_first": True, "h": 1}])
def test_accelerated_model_equals_the_plain_one(changes):
    plain, fast = model_of(**changes).double(), accelerate(model_of(**changes).double())
    assert_same_results(plain, fast, tokens(5, 8), tokens(5, 7))


def test_accelerated_attention_really_takes_the_other_way(monkeypatch):
    calls = []
    def packed(x, *linears):
        calls.append(len(linears))
        return [linear(x) for linear in linears]

    monkeypatch.setattr(hardware, "packed_projection", packed)
    accelerate(model_of())(tokens(2, 5), tokens(2, 5))
    assert calls == [3, 3, 3, 2, 3, 2]  # two encoder layers; two decoder layers: itself, the memory


def test_recording_and_caches_take_the_plain_way():
    plain, fast = model_of(), accelerate(model_of())
    recorded = []
    for model in (plain, fast):
        attention = model.encoder.layers[0].self_attention
        attention.record = []
        model.encode(tokens(2, 6))
        recorded.append(attention.record[0])
        attention.record = None
    torch.testing.assert_close(*recorded, rtol=0, atol=1e-6)
    source, target = tokens(2, 6), tokens(2, 5, padding=False)
    memory, mask, caches = fast.encode(source), padding_mask(source, 0), fast.new_caches()
    steps = torch.cat([fast.decode(target[:, t:t + 1], memory, mask, caches) for t in range(5)], dim=1)
    torch.testing.assert_close(steps, plain(source, target), rtol=0, atol=1e-5)


@pytest.mark.parametrize("n, calls", [(8, 6), (257, 12)])  # few keys take the formula where the precision is another
@pytest.mark.parametrize("precision, dtype", [("bf16", torch.bfloat16), ("medium", torch.float32)])
def test_accelerated_model_in_another_precision_on_a_cpu(exact_products, monkeypatch, n, calls, precision, dtype):
    """Loss and gradients near those of fp32; torch's attention kernel gets fp32, and only where there are many keys."""
    kinds, kernel = [], hardware.F.scaled_dot_product_attention

    def spy(q, k, v, mask):
        kinds.append({t.dtype for t in (q, k, v)})
        return kernel(q, k, v, mask)

    monkeypatch.setattr(hardware.F, "scaled_dot_product_attention", spy)
    fast, source, target, results = accelerate(model_of(max_positions=300)), tokens(5, n), tokens(5, n - 1), []
    for name in ("fp32", precision):
        with autocast(CPU, name), matmul_precision(name):
            logits = fast(source, target)
            gradients = torch.autograd.grad(logits.float().square().sum(), list(fast.parameters()))
        results.append((logits.float(), *gradients))
    assert kinds == [{torch.float32}] * calls and logits.dtype == dtype
    for a, b in zip(*results):
        assert (a - b).abs().max() < 0.05 * a.abs().max()


# The fast dropout

@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_bit_dropout_drops_its_share(p):
    torch.manual_seed(0)
    x = torch.full((1001, 999), 2.0)  # not a multiple of four
    y = BitDropout.apply(x, p)
    margin = 5 * (p * (1 - p) / x.numel()) ** 0.5
    dropped = (y == 0).double()
    assert abs(dropped.mean() - p) < margin
    for i in range(4):  # the four entries of one random number
        assert abs(dropped.flatten()[i::4].mean() - p) < 2 * margin
        neighbours = dropped.flatten()[i:-1:4] * dropped.flatten()[i + 1::4][:len(dropped.flatten()[i:-1:4])]
        assert abs(neighbours.mean() - p * p) < 2 * margin
    torch.testing.assert_close(y[y != 0], (x / (1 - p))[y != 0])


def test_bit_dropout_sends_the_gradient_where_the_entry_went():
    x = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    y = BitDropout.apply(x, 0.5)
    gradient, = torch.autograd.grad((3 * y).sum(), x)
    torch.testing.assert_close(gradient, 3 * y.detach() / x.detach(), rtol=0, atol=1e-12)


def test_fast_dropout_is_for_training_only_and_follows_the_seed():
    fast, source, target = accelerate(model_of(P_drop=0.4)), tokens(4, 6), tokens(4, 5)
    outputs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outputs.append(fast.train()(source, target))
    assert outputs[0].equal(outputs[1]) and not outputs[0].equal(outputs[2])
    torch.testing.assert_close(fast.eval()(source, target), model_of(P_drop=0.4).eval()(source, target))
    for p, expected in ((0.0, 1.0), (1.0, 0.0)):
        assert accelerate(torch.nn.Sequential(torch.nn.Dropout(p)))(torch.ones(9)).eq(expected).all()


def test_fast_dropout_takes_the_place_of_torchs(monkeypatch):
    calls, kept, random_keep = [], [], hardware.random_keep
    monkeypatch.setattr(BitDropout, "apply", lambda x, p: calls.append(p) or x)
    monkeypatch.setattr(hardware, "random_keep", lambda x, p: kept.append(p) or random_keep(x, p))
    accelerate(model_of(P_drop=0.4)).train()(tokens(2, 5), tokens(2, 5))
    assert calls == [0.4] * 2  # two embeddings
    assert kept == [0.4] * (2 * 2 + 2 * 3)  # in `AddNorm`: two and three sub-layers in two layers each


# The norm that goes back from its output

def residual_of(p=0.0, smallest=0.5, dtype=torch.float64):
    """A `Residual` with gains between `smallest` and 2, of either sign, and its accelerated copy."""
    torch.manual_seed(4)
    plain = Residual(6, p).to(dtype)
    with torch.no_grad():
        plain.norm.gain.uniform_(smallest, 2).mul_(torch.randn(6, dtype=dtype).sign())
        plain.norm.gain[0] = smallest
        plain.norm.bias.normal_()
    return plain, accelerate(deepcopy(plain), [Residual])


def residual_gradients(residual, x, y, weight):
    """Output and gradients of the norm of x + dropout(y), with respect to x, y, gain and bias."""
    output = residual(x, lambda _: y)
    return output, *torch.autograd.grad((output * weight).sum(), (x, y, *residual.parameters()))


class Masked(torch.nn.Module):
    """Dropout with a given pattern."""

    def __init__(self, factors):
        super().__init__()
        self.factors = factors

    def forward(self, y):
        return y * self.factors


@pytest.mark.parametrize("p", [0.0, 0.4])
def test_add_norm_equals_the_plain_formula(p, monkeypatch):
    """Output and all four gradients, with a given pattern of dropped entries."""
    plain, fast = residual_of(p)
    x, y, weight = (torch.randn(3, 5, 6, dtype=torch.float64, requires_grad=i < 2) for i in range(3))
    keep = torch.rand(3, 5, 6) >= p
    monkeypatch.setattr(hardware, "random_keep", lambda x, p: keep)
    plain.dropout = Masked(keep.double() / (1 - p))
    for a, b in zip(residual_gradients(plain, x, y, weight), residual_gradients(fast, x, y, weight)):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_add_norm_in_single_precision_with_the_smallest_gain():
    plain, fast = residual_of(smallest=0.05, dtype=torch.float32)
    x, y, weight = (torch.randn(30, 6, requires_grad=i < 2) for i in range(3))
    calls = residual_gradients(fast, x, y, weight)
    assert type(calls[0].grad_fn).__name__ == "AddNormBackward"
    for a, b in zip(residual_gradients(plain, x, y, weight), calls):
        torch.testing.assert_close(a, b, rtol=0, atol=2e-5)


def kept_for_the_way_back(residual, x):
    """The output, and {address: tensor} of what autograd keeps in the size and type of x."""
    kept = {}
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.setdefault(t.data_ptr(), t), lambda t: t):
        output = residual(x, torch.sin)
    return output, {address: t for address, t in kept.items() if t.numel() == x.numel() and t.dtype == x.dtype}


def test_add_norm_keeps_its_output_and_no_sum():
    """The sine keeps x; the plain norm keeps the sum that goes into it, the other what comes out."""
    plain, fast = residual_of(0.4)
    x = torch.randn(50, 6, dtype=torch.float64, requires_grad=True)
    output, kept = kept_for_the_way_back(plain, x)
    assert len(kept) > 1 and x.data_ptr() in kept and output.data_ptr() not in kept
    output, kept = kept_for_the_way_back(fast, x)
    assert kept.keys() == {x.data_ptr(), output.data_ptr()}


def test_add_norm_drops_its_share_in_training_only():
    _, fast = residual_of(0.4)
    x, y = torch.zeros(2000, 6, dtype=torch.float64), torch.ones(2000, 6, dtype=torch.float64, requires_grad=True)
    inside, = torch.autograd.grad(fast(x, lambda _: y * y).square().sum(), y)
    assert inside.eq(0).double().mean().item() == pytest.approx(0.4, abs=0.02)
    fast.eval()
    assert fast(x, lambda _: y).equal(fast(x, lambda _: y))


@pytest.mark.parametrize("case", ["small gain", "inference", "pre-norm"])
def test_add_norm_is_not_for(case, monkeypatch):
    plain, fast = residual_of()
    for residual in (plain, fast):
        residual.norm_first = case == "pre-norm"
        with torch.no_grad():
            residual.norm.gain[2] = 0.0 if case == "small gain" else 1.0
    monkeypatch.setattr(AddNorm, "apply", None)
    x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    with torch.set_grad_enabled(case != "inference"):
        torch.testing.assert_close(fast(x, torch.sin), plain(x, torch.sin), rtol=0, atol=0)


def test_hint_names_what_the_cpu_gains_by(monkeypatch):
    rates = {"fp32": 100.0, "bf16": 180.0, "medium": 210.0}
    monkeypatch.setattr(hardware, "matmul_rate", lambda device, precision="fp32", rounds=2: rates[precision])
    assert "1.8 times" in precision_hint(CPU) and "--precision bf16" in precision_hint(CPU)
    assert precision_hint(CPU, "bf16") == precision_hint(CPU, "medium") == ""
    rates["bf16"] = 140.0
    assert "2.1 times" in precision_hint(CPU) and "--precision medium" in precision_hint(CPU)
    rates["medium"] = 140.0
    assert precision_hint(CPU) == ""


def test_the_switch_for_products_goes_back(monkeypatch, exact_products):
    assert torch.get_float32_matmul_precision() == "highest"
    for name, inside in (("medium", "medium"), ("fp32", "highest"), ("bf16", "highest")):
        with pytest.raises(KeyError), hardware.matmul_precision(name):
            assert torch.get_float32_matmul_precision() == inside
            raise KeyError
        assert torch.get_float32_matmul_precision() == "highest"
    seen = []
    monkeypatch.setattr(hardware, "wait_for", lambda device: seen.append(torch.get_float32_matmul_precision()))
    assert hardware.matmul_rate(CPU, "medium", n=16, rounds=1) > 0 and set(seen) == {"medium"}


def test_other_kinds_of_attention_are_left_alone():
    class Own(MultiHeadAttention):
        pass

    own = Own(16, 4)
    assert "forward" not in vars(accelerate(own))
    with_bias, x = MultiHeadAttention(16, 4, bias=True), torch.randn(2, 3, 16)
    expected = with_bias(x, x, x, causal_mask(3))
    torch.testing.assert_close(accelerate(with_bias)(x, x, x, causal_mask(3)), expected)


def test_saved_weights_do_not_know(tmp_path):
    fast = accelerate(model_of())
    fast.save_pretrained(tmp_path)
    assert "forward" not in vars(Transformer.from_pretrained(tmp_path).encoder.layers[0].self_attention)


# Packed weights

needs_onednn = pytest.mark.skipif(not hardware.can_pack(torch.nn.Linear(1, 1)), reason="this torch has no oneDNN")


@needs_onednn
@pytest.mark.parametrize("shape", [(1, 48), (64, 48), (7, 5, 48)])
@pytest.mark.parametrize("bias", [False, True])
def test_packed_map_equals_the_plain_one(shape, bias):
    torch.manual_seed(0)
    linear, x = torch.nn.Linear(48, 80, bias), torch.randn(*shape)
    with torch.no_grad():
        packed = packed_linear(linear.weight, linear.bias)
        torch.testing.assert_close(packed(x), linear(x), rtol=0, atol=1e-5)
        x = x.transpose(0, -2).contiguous().transpose(0, -2)  # another order in memory
        torch.testing.assert_close(packed(x), linear(x), rtol=0, atol=1e-5)
    gradient, = torch.autograd.grad(packed(x).sum(), linear.weight)
    assert gradient.abs().sum() > 0


@needs_onednn
@pytest.mark.parametrize("changes", [{}, {"tie_embeddings": False}, {"norm_first": True}])
def test_packed_model_equals_the_plain_one(monkeypatch, changes):
    """Every large weight is packed inside the block, plain or accelerated; none after it, also where it ends badly."""
    calls = []
    monkeypatch.setattr(hardware, "SMALLEST_PACKED", 1)
    monkeypatch.setattr(hardware, "packed_linear", lambda w, b: calls.append(w) or (lambda x: packed_linear(w, b)(x)))
    plain, fast = model_of(**changes).eval(), accelerate(model_of(**changes).eval())
    source, target = tokens(5, 8), tokens(5, 7, padding=False)
    with torch.no_grad():
        expected = plain(source, target)
        for model in (plain, fast):
            with packed_weights(model):
                torch.testing.assert_close(model(source, target), expected, rtol=0, atol=1e-5)
                with packed_weights(model):  # a block inside a block adds nothing
                    pass
                assert "forward" in vars(model.encoder.layers[0].feed_forward.W_1) and "logits" in vars(model.output)
            assert {w.data_ptr() for w in calls} >= {p.data_ptr() for p in (model.output.weight, *(
                m.weight for m in model.modules() if isinstance(m, torch.nn.Linear)))}
    with pytest.raises(KeyError), packed_weights(plain):
        raise KeyError
    assert not any("forward" in vars(m) or "logits" in vars(m) for m in plain.modules())


@needs_onednn
def test_packed_weights_take_every_product(monkeypatch):
    """Inside the block no linear map of the accelerated model reads the unpacked weight."""
    monkeypatch.setattr(hardware, "SMALLEST_PACKED", 1)
    fast, source, target = accelerate(model_of().eval()), tokens(5, 8), tokens(5, 7)
    with torch.no_grad(), packed_weights(fast):
        before = fast(source, target)
        for module in fast.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.fill_(float("nan"))
        assert fast(source, target).equal(before)
    assert fast(source, target).isnan().any()


# The cache of all hypotheses

@pytest.mark.parametrize("B, K", [(1, 1), (3, 4), (2, 21)])
def test_shared_caches_equal_plain_ones(B, K):
    """While hypotheses change places and sentences leave, the decoder says what it says with plain caches."""
    chance, model = torch.Generator().manual_seed(0), accelerate(model_of()).double().eval()
    sources = tokens(B, 7)
    memory, mask, kinds = model.encode(sources), padding_mask(sources, 0), []
    with torch.no_grad(), shared_caches(model):
        both = [model.new_caches(), Transformer.new_caches(model)]
        kinds = [[type(cache) for pair in caches for cache in pair] for caches in both]
        for step in range(60):
            R = len(memory)
            new = torch.randint(3, 30, (R, 1), generator=chance)
            ours, plain = (model.decode(new, memory, mask, caches) for caches in both)
            torch.testing.assert_close(ours, plain, rtol=0, atol=1e-9)
            assert both[0][0][0].length == both[1][0][0].length == step + 1
            each = 1 if step == 0 else K  # hypotheses of a sentence so far
            stay = [s for s in range(R // each) if B == 1 or s < 1 or step not in (20, 40)]
            places = torch.randint(each, (len(stay), K), generator=chance)
            rows = (each * torch.tensor(stay)[:, None] + places).flatten()
            for own, cross in (pair for caches in both for pair in caches):
                own.select(rows)
                cross.select(rows)
            memory, mask = memory[rows], mask[rows]
    assert kinds == [[SharedCache] * 4, [KeyValueCache] * 4]
    assert both[0][0][0].k.shape[2] < 60 * K or K == 1  # what nobody looks at was thrown out


def test_searches_with_shared_caches_find_the_same():
    torch.manual_seed(3)
    model, source = model_of(max_positions=200).eval(), tokens(6, 8)
    with torch.no_grad():
        model.embedding.weight.mul_(3)  # surer, so that hypotheses end at different steps

    def found():
        best = [h for hypotheses in beam_search(model, source, n_best=3) for h in hypotheses]
        return greedy_search(model, source), [h.tokens for h in best], torch.tensor([h.score for h in best])

    greedy, outputs, scores = found()
    with shared_caches(model):
        assert type(model.new_caches()[0][0]) is SharedCache
        other_greedy, other_outputs, other_scores = found()
    assert greedy == other_greedy and outputs == other_outputs and len({len(row) for row in outputs}) > 1
    torch.testing.assert_close(scores, other_scores, rtol=0, atol=1e-4)


@pytest.mark.parametrize("static", [False, True])
def test_shared_caches_follow_any_selection(static):
    """What each row may see is what a plain cache holds of it: also of rows in no order, and of none."""
    chance, plain, shared = torch.Generator().manual_seed(0), KeyValueCache(static), SharedCache(static)
    selections = (
        [0, 0, 1, 1, 2, 2], [1, 0, 2, 2, 4, 5], [0, 3, 1], [0, 0, 1], [2, 1], [1, 1, 1, 0, 0, 0], [5, 0, 1], [])
    for rows in selections:
        if plain.k is None or not static:
            k, v = (torch.randn(3 if plain.k is None else len(plain.k), 2, 1, d, generator=chance) for d in (3, 5))
            for cache in (plain, shared):
                cache.append(k, v)
        for cache in (plain, shared):
            cache.select(torch.tensor(rows, dtype=torch.long))
        for row in range(len(rows)):
            sentence, place = divmod(row, shared.each)
            own = [0] if static else shared.own[sentence, place].nonzero()[:, 0]
            assert shared.k[sentence][:, own].equal(plain.k[row]) and shared.v[sentence][:, own].equal(plain.v[row])
    assert len(shared.k) == len(plain.k) == 0


def test_a_shared_cache_takes_one_position_at_a_time():
    x = torch.randn(4, 3, 2, 4)
    with pytest.raises(ValueError, match="one new position at a time, not 2"):
        SharedCache().append(x, x)


def test_shared_caches_are_for_the_block():
    model = accelerate(model_of()).eval()
    attention, source, target = model.decoder.layers[0].self_attention, tokens(2, 5), tokens(2, 4)
    before, expected = attention.forward, model(source, target)
    with pytest.raises(KeyError), shared_caches(model), shared_caches(model):
        torch.testing.assert_close(model(source, target), expected, rtol=0, atol=1e-6)  # without caches: as ever
        raise KeyError
    assert attention.forward == before and "new_caches" not in vars(model)
    plain = model_of()
    with shared_caches(plain):
        assert "forward" in vars(plain.decoder.layers[1].cross_attention)
    assert "forward" not in vars(plain.decoder.layers[1].cross_attention)
    plain.decoder.layers[1].self_attention.record = []
    others = [plain, RecurrentEncoderDecoder(RecurrenceConfig(30, d_model=8)), compile_stacks(model_of())]
    for other in others:
        with shared_caches(other):
            assert "new_caches" not in vars(other)


def test_what_is_not_packed(monkeypatch):
    def names(model):
        with packed_weights(model):
            return [name for name, module in model.named_modules() if "forward" in vars(module)]

    large, small = torch.nn.Linear(512, 256, False), torch.nn.Linear(512, 255, False)
    both = torch.nn.ModuleList([large, small])
    assert names(both) == (["0"] if hardware.can_pack(both) else [])
    assert names(both.double()) == [] and names(both.bfloat16()) == []
    compiled = torch.nn.ModuleList([torch.nn.Linear(512, 512)])
    compiled[0].compile()
    assert names(compiled) == []
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert names(both.float()) == []


# Several processes

PROGRAM = """
    import json, os, sys, time, torch
    from transformer.hardware import processes
    from transformer.model import Transformer, TransformerConfig
    from transformer.training import TrainingConfig, train

    torch.set_num_threads(1)
    folder, updates, resume, pause = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "resume", float(sys.argv[4])
    generator = torch.Generator().manual_seed(3)
    def ids(n):
        return torch.randint(3, 20, (n,), generator=generator).tolist()
    lengths = torch.randint(2, 9, (40, 2), generator=generator).tolist()
    encoded = [([*ids(s), 2], [1, *ids(t), 2]) for s, t in lengths]
    torch.manual_seed(1)
    model = Transformer(TransformerConfig(20, d_model=16, d_ff=32, N=1, h=2, P_drop=0.2, max_positions=16)).double()
    if pause:
        model.encoder.register_forward_hook(lambda *_: time.sleep(pause))
    config = TrainingConfig(updates=updates, batch_tokens=40, accumulate=4, warmup=4, save_every=3, clip=0.5,
                            save_minutes=1e-4)
    with processes(torch.device("cpu")):
        print("started", flush=True)
        train(model, encoded, config, folder, resume=resume, quiet=True)
"""


def start(tmp_path, folder, updates, count=1, resume=False, pause=0.0):
    """The program above in one process, or in several by torchrun."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM), encoding="utf8")
    runner = [] if count == 1 else ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    arguments = [str(tmp_path / folder), str(updates), "resume" if resume else "new", str(pause)]
    command = [sys.executable, *runner, str(program), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finish(process):
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors[-3000:]
    return output


def checkpoint(tmp_path, folder):
    from transformer.weights import load_weights
    tensors, metadata = load_weights(tmp_path / folder / "checkpoint.safetensors")
    return tensors, json.loads(metadata["progress"])


def place_of(progress):
    return {name: progress[name] for name in ("update", "epoch", "index", "tokens")}


def assert_same(one, other, exactly=False):
    (a, progress_a), (b, progress_b) = one, other
    assert a.keys() == b.keys() and place_of(progress_a) == place_of(progress_b)
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=0, atol=0 if exactly else 1e-9)
    for row_a, row_b in zip(progress_a["log"], progress_b["log"], strict=True):
        for figure in ("loss", "norm"):
            assert row_a[figure] == pytest.approx(row_b[figure], abs=1e-9)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Seven updates in one process."""
    tmp_path = tmp_path_factory.mktemp("alone")
    finish(start(tmp_path, "run", 7))
    return checkpoint(tmp_path, "run")


def test_two_processes_give_the_weights_of_one(tmp_path, alone):
    """With dropout and clipping, on the same global batches: float64, 1e-9; and one goes on where two stopped."""
    finish(start(tmp_path, "two", 7, count=2))
    assert_same(checkpoint(tmp_path, "two"), alone)
    finish(start(tmp_path, "mixed", 4, count=2))
    finish(start(tmp_path, "mixed", 7, resume=True))
    tensors, progress = checkpoint(tmp_path, "mixed")
    assert place_of(progress) == place_of(alone[1])
    for name in tensors:
        torch.testing.assert_close(tensors[name], alone[0][name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("how", [signal.SIGTERM, KILL])
def test_stopped_or_killed_run_goes_on_as_if_nothing_had_been(tmp_path, alone, how):
    process = start(tmp_path, "run", 7, pause=0.15)
    path, deadline = tmp_path / "run" / "checkpoint.safetensors", time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(how)
    process.communicate(timeout=60)
    assert process.returncode != 0 and checkpoint(tmp_path, "run")[1]["update"] < 7
    finish(start(tmp_path, "run", 7, resume=True))
    assert_same(checkpoint(tmp_path, "run"), alone, exactly=True)


def test_processes_wait_for_one_that_prepares_a_corpus(monkeypatch):
    """Longer than the ten minutes that NCCL waits by itself."""
    asked = {}
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setattr(hardware.distributed, "init_process_group", lambda kind, timeout: asked.update({kind: timeout}))
    monkeypatch.setattr(hardware.distributed, "barrier", lambda: None)
    monkeypatch.setattr(hardware.distributed, "destroy_process_group", lambda: None)
    with processes(torch.device("cpu")):
        assert asked["gloo"].total_seconds() >= 12 * 3600


def test_an_error_in_one_of_several_gpus_is_not_kept_waiting(monkeypatch):
    """NCCL's clean end waits for all processes, and the others wait for this one: after an error it is left out."""
    ended = []
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(hardware.torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(hardware.distributed, "init_process_group", lambda kind, timeout: None)
    monkeypatch.setattr(hardware.distributed, "barrier", lambda: None)
    monkeypatch.setattr(hardware.distributed, "destroy_process_group", lambda: ended.append(True))
    with pytest.raises(OSError, match="disk full"), processes(torch.device("cuda")):
        raise OSError("disk full")
    assert not ended
    with processes(torch.device("cuda")) as device:
        assert device == torch.device("cuda", 1)
    assert ended


def test_each_of_several_processes_asks_for_its_own_gpu(monkeypatch):
    asked = []

    def empty(size, device):
        asked.append(device)
        return torch.zeros(size)

    monkeypatch.setattr(hardware.torch, "empty", empty)
    monkeypatch.setenv("LOCAL_RANK", "3")
    choose_device("cuda")
    choose_device("cuda:1")
    monkeypatch.delenv("LOCAL_RANK")
    choose_device("cuda")
    assert asked == ["cuda:3", "cuda:1", "cuda"]


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_a_gpu_is_waited_for_by_its_own_name(kind, monkeypatch):
    waited = []
    monkeypatch.setattr(hardware.torch.cuda, "synchronize", waited.append)
    monkeypatch.setattr(hardware.torch.mps, "synchronize", lambda: waited.append("mps"))
    wait_for(torch.device(kind, 2) if kind == "cuda" else torch.device(kind))
    wait_for(torch.device("cpu"))
    assert waited == [torch.device("cuda", 2) if kind == "cuda" else "mps"]


def test_autocast_is_switched_off_where_there_is_any():
    for kind in ("mps", "meta", "cpu"):
        with torch.autocast("cpu", torch.bfloat16), autocast_off(torch.device(kind)):
            product = torch.ones(2, 2) @ torch.ones(2, 2)
        assert product.dtype == (torch.float32 if kind == "cpu" else torch.bfloat16)


def test_the_projection_learns_even_where_its_input_does_not():
    x, E = torch.randn(2, 3, 4), torch.randn(9, 4, requires_grad=True)
    gold = torch.tensor([[3, 4, 0], [5, 6, 7]])
    logits = (x @ E.T).flatten(0, 1)
    plain = F.cross_entropy(logits, gold.flatten(), label_smoothing=0.1, ignore_index=0, reduction="sum")
    (ours,), (expected,) = (torch.autograd.grad(loss, [E]) for loss in (projected_loss(x, E, gold), plain))
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_fast_attention_for_short_weights(kind):
    heads, x = accelerate(MultiHeadAttention(8, 2).to(kind)), torch.randn(2, 300, 8).to(kind)
    assert heads(x, x, x).dtype == kind


def test_packed_weights_leave_short_inputs_to_torch():
    linear, x = torch.nn.Linear(512, 512), torch.randn(4, 512)
    with torch.no_grad(), packed_weights(linear), torch.autocast("cpu", torch.bfloat16):
        assert torch.allclose(linear(x.bfloat16()).float(), F.linear(x.bfloat16(), linear.weight, linear.bias).float())


def test_only_medium_chooses_the_formula(monkeypatch):
    """The switch stands at "high" once TF32 is allowed, which changes nothing on a CPU."""
    monkeypatch.setattr(hardware, "scaled_dot_product_attention", None)
    q = torch.randn(1, 2, 5, 4)
    for switch in ("highest", "high"):
        torch.set_float32_matmul_precision(switch)
        assert torch_attention(q, q, q, None).shape == q.shape


def test_every_process_needs_its_share(monkeypatch):
    from transformer import training
    monkeypatch.setattr(training, "process_count", lambda: 3)
    with pytest.raises(ValueError, match="accumulate is 4: 3 processes need a multiple of 3"):
        training.check_share(dataclasses.replace(training.TrainingConfig(), accumulate=4))


def test_values_of_their_own_take_the_plain_way():
    torch.manual_seed(0)
    attention, (x, y, z) = MultiHeadAttention(16, 4), torch.randn(3, 2, 5, 16)
    expected = attention(x, y, z)
    torch.testing.assert_close(hardware.accelerate(attention)(x, y, z), expected)
    assert not torch.allclose(attention(x, y, y), expected)


def test_without_gradients_only_the_loss_is_computed(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "addmm_", None)
    x, E, gold = torch.randn(2, 3, 4), torch.randn(9, 4), torch.randint(1, 9, (2, 3))
    with torch.no_grad():
        assert hardware.projected_loss(x, E, gold) > 0
