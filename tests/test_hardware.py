"""Hardware: the choice of device and precision, FLOPs against torch's counter, the meter."""

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from transformer import hardware
from transformer.fast.model import Transformer, TransformerConfig
from transformer.hardware import (
    Meter,
    autocast,
    choose_device,
    choose_precision,
    estimate_seconds,
    forward_flops,
    loss_scaler,
    peak_memory,
    training_flops,
)

CPU = torch.device("cpu")


def model_of(**changes):
    torch.manual_seed(0)
    sizes = dict(vocab_size=30, d_model=16, d_ff=32, N=2, h=4, P_drop=0.0)
    return Transformer(TransformerConfig(**{**sizes, **changes}))


# Device and precision


def test_devices():
    assert choose_device("cpu") == CPU
    assert choose_device().type in ("cpu", "cuda", "mps")
    for name in ("tpu", "meta", "cuda:99"):
        with pytest.raises(
            ValueError, match=f"no device '{name}' here: choose cpu, cuda or mps"
        ):
            choose_device(name)


@pytest.mark.parametrize(
    "capability, expected", [((7, 5), "fp16"), ((8, 0), "bf16"), ((9, 0), "bf16")]
)
def test_precision_follows_the_gpu(monkeypatch, capability, expected):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert choose_precision(torch.device("cuda")) == expected
    assert choose_precision(torch.device("cuda"), "fp32") == "fp32"
    assert choose_precision(CPU) == choose_precision(torch.device("mps")) == "fp32"
    with pytest.raises(ValueError, match="unknown precision 'fp8'"):
        choose_precision(CPU, "fp8")
    with pytest.raises(ValueError, match="unknown precision"):
        choose_precision(CPU, [])


def test_autocast_shortens_products_only():
    x = torch.randn(3, 3)
    with autocast(CPU, "bf16"):
        assert (x @ x).dtype == torch.bfloat16 and F.layer_norm(
            x, (3,)
        ).dtype == torch.float32
    with autocast(CPU, "fp32"):
        assert (x @ x).dtype == torch.float32


def test_only_fp16_scales_the_loss():
    assert loss_scaler(CPU, "fp16").is_enabled()
    assert (
        not loss_scaler(CPU, "bf16").is_enabled()
        and not loss_scaler(CPU, "fp32").is_enabled()
    )


# FLOPs


@pytest.mark.parametrize(
    "changes", [{}, {"N": 3, "d_ff": 20}, {"d_k": 5, "d_v": 3}, {"h": 1}]
)
@pytest.mark.parametrize("S, T", [(7, 9), (1, 1), (12, 3)])
def test_flops_equal_torchs_counter(changes, S, T):
    model = model_of(**changes)
    with FlopCounterMode(display=False) as counter:
        logits = model(torch.full((2, S), 5), torch.full((2, T), 5))
    assert counter.get_total_flops() == 2 * forward_flops(model.config, S, T)
    with FlopCounterMode(display=False) as counter:
        logits.sum().backward()
    assert counter.get_total_flops() + 2 * forward_flops(
        model.config, S, T
    ) == 2 * training_flops(model.config, S, T)


def test_estimate_by_hand():
    c = model_of().config
    seconds = estimate_seconds(c, 10, 600, rate=1e6, utilisation=0.5, length=20)
    assert seconds == pytest.approx(10 * 30 * training_flops(c, 20, 20) / 5e5)


def test_meter_by_hand(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    c = model_of().config
    meter = Meter(c, peak=1e6)
    meter.add(pairs=4, source_tokens=40, target_tokens=48)
    meter.add(pairs=2, source_tokens=10, target_tokens=12)
    now[0] += 2.0
    flops = 4 * training_flops(c, 10, 12) + 2 * training_flops(c, 5, 6)
    assert meter.read() == {
        "tokens_per_second": 30,
        "utilisation": round(flops / 2 / 1e6, 3),
    }
    meter.restart()
    now[0] += 1.0
    assert meter.read() == {"tokens_per_second": 0, "utilisation": 0.0}


@pytest.mark.system
def test_peak_memory_sees_what_was_used():
    """In a process of its own: here an earlier test may have used more."""
    program = textwrap.dedent("""
        import torch
        from transformer.hardware import peak_memory
        before = peak_memory(torch.device("cpu"))
        block = torch.ones(2**26)  # a quarter of a GiB
        print(before, peak_memory(torch.device("cpu")))""")
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True
    ).stdout
    before, after = map(float, printed.split())
    assert 0.01 < before < after - 0.2 and after < 100


def test_peak_memory_where_the_system_does_not_count_it(monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda *_: "VmRSS: 5 kB")
    assert 0.01 < peak_memory(CPU) < 100


def test_the_switch_for_products_goes_back(monkeypatch, exact_products):
    assert torch.get_float32_matmul_precision() == "highest"
    for name, inside in (
        ("medium", "medium"),
        ("fp32", "highest"),
        ("bf16", "highest"),
    ):
        with pytest.raises(KeyError), hardware.matmul_precision(name):
            assert torch.get_float32_matmul_precision() == inside
            raise KeyError
        assert torch.get_float32_matmul_precision() == "highest"
    seen = []
    monkeypatch.setattr(
        hardware,
        "wait_for",
        lambda device: seen.append(torch.get_float32_matmul_precision()),
    )
    assert hardware.matmul_rate(CPU, "medium", n=16, rounds=1) > 0 and set(seen) == {
        "medium"
    }
