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

import pytest
import torch
import torch.nn.functional as F
from helpers import KILL
from torch.utils.flop_counter import FlopCounterMode

from transformer import hardware
from transformer.hardware import (
    Meter,
    autocast,
    choose_device,
    choose_precision,
    estimate_seconds,
    forward_flops,
    loss_scaler,
    matmul_rate,
    precision_hint,
    processes,
    training_flops,
    wait_for,
)
from transformer.model import Transformer, TransformerConfig

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


def test_every_process_needs_its_share(monkeypatch):
    from transformer import training
    monkeypatch.setattr(training, "process_count", lambda: 3)
    with pytest.raises(ValueError, match="accumulate is 4: 3 processes need a multiple of 3"):
        training.check_share(dataclasses.replace(training.TrainingConfig(), accumulate=4))
