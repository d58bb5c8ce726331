"""Several processes give the weights of one; what stops or kills a run; each process has its share."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest
import torch
from helpers import KILL

from transformer import Experiment, run_experiment
from transformer.cli import parse
from transformer.cli.train import experiment_of
from transformer.core import distributed
from transformer.core.distributed import check_share
from transformer.core.weights import load_weights
from transformer.runs.planning import Limits, plan
from transformer.runs.recipes import recipe

PROGRAM = """
    import json, os, sys, time, torch
    from transformer.fast.model import Transformer, TransformerConfig
    from transformer.runs.training import TrainingConfig, train

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
    timed = dict(schedule="linear", minutes=0.02) if updates > 7 else {}
    packed = dict(packed=True, batch_tokens=64) if "packed" in folder else dict(batch_tokens=40)
    config = TrainingConfig(updates=updates, accumulate=4, **packed, warmup=4, validate_every=3, clip=0.5,
                            save_minutes=1e-4, **timed)
    print("started", flush=True)
    log = train(model, encoded, config, folder, resume=resume)
    assert log[-1]["update"] and not torch.distributed.is_initialized()
    with open(f"{folder}/copy-{os.environ.get('LOCAL_RANK', 0)}", "w") as copy:
        copy.write(sum(p.abs().sum().item() for p in model.parameters()).hex())
"""


def start(tmp_path, folder, updates, count=1, resume=False, pause=0.0):
    """The program above in one process, or in several by torchrun."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM), encoding="utf8")
    runner = (
        []
        if count == 1
        else [
            "-m",
            "torch.distributed.run",
            "--standalone",
            f"--nproc-per-node={count}",
        ]
    )
    arguments = [
        str(tmp_path / folder),
        str(updates),
        "resume" if resume else "new",
        str(pause),
    ]
    command = [sys.executable, *runner, str(program), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def finish(process):
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors[-3000:]
    return output


def checkpoint(tmp_path, folder):
    tensors, metadata = load_weights(tmp_path / folder / "checkpoint.safetensors")
    return tensors, json.loads(metadata["progress"])


def place_of(progress):
    return {name: progress[name] for name in ("update", "epoch", "index", "tokens")}


def assert_same(one, other, exactly=False):
    (a, progress_a), (b, progress_b) = one, other
    assert a.keys() == b.keys() and place_of(progress_a) == place_of(progress_b)
    for name in a:
        torch.testing.assert_close(
            a[name], b[name], rtol=0, atol=0 if exactly else 1e-9
        )
    for row_a, row_b in zip(progress_a["log"], progress_b["log"], strict=True):
        for figure in ("loss", "norm"):
            assert row_a[figure] == pytest.approx(row_b[figure], abs=1e-9)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Seven updates in one process."""
    tmp_path = tmp_path_factory.mktemp("alone")
    finish(start(tmp_path, "run", 7))
    return checkpoint(tmp_path, "run")


@pytest.mark.system
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


@pytest.mark.system
def test_two_processes_give_the_weights_of_one_on_packed_batches(tmp_path):
    finish(start(tmp_path, "packed-one", 4))
    finish(start(tmp_path, "packed-two", 4, count=2))
    assert_same(checkpoint(tmp_path, "packed-two"), checkpoint(tmp_path, "packed-one"))


@pytest.mark.system
def test_copies_stay_equal_where_the_clock_decides_the_rate(tmp_path):
    """Each process has a clock of its own; the rate falls by the first one's."""
    finish(start(tmp_path, "timed", 10**6, count=2))
    one, other = (
        (tmp_path / "timed" / f"copy-{number}").read_text() for number in (0, 1)
    )
    assert one == other


@pytest.mark.system
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


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@pytest.mark.system
def test_a_process_that_is_killed_stops_the_other_in_a_sentence(tmp_path, alone):
    """It names what to do, and doing so gives what would have been."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM), encoding="utf8")
    place = dict(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE="2")
    both = [
        subprocess.Popen(
            [sys.executable, str(program), str(tmp_path / "run"), "7", "new", "0.2"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **place, "RANK": n, "LOCAL_RANK": n},
        )
        for n in "01"
    ]
    path, deadline = tmp_path / "run" / "checkpoint.safetensors", time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    both[1].kill()
    errors = both[0].communicate(timeout=60)[1]
    both[1].communicate(timeout=60)
    said = errors.strip().splitlines()[-1]
    assert both[0].returncode == 1
    assert "another of the 2 processes has ended, so this one stops, too" in said
    assert "--resume" in said
    assert checkpoint(tmp_path, "run")[1]["update"] < 7
    finish(start(tmp_path, "run", 7, resume=True))
    assert_same(checkpoint(tmp_path, "run"), alone)


@pytest.fixture
def torchrun_of_two(monkeypatch):
    """What torchrun tells one of two processes, before they know each other."""
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")


@pytest.mark.usefixtures("torchrun_of_two")
def test_recipes_have_a_batch_for_each_process(own_files):
    files = dict(source_file=own_files[0], target_file=own_files[1])
    assert recipe("bundled")["training"].accumulate == 2
    assert Experiment("multi30k", training={"updates": 7}).training.accumulate == 2
    assert Experiment("multi30k", training={"accumulate": 6}).training.accumulate == 6
    assert Experiment(**files).training.accumulate == 2
    assert experiment_of(parse(["train"])).training.accumulate == 2
    given = experiment_of(parse(["train", "--accumulate", "3"]))
    assert given.training.accumulate == 3  # which is refused


@pytest.mark.usefixtures("torchrun_of_two")
def test_a_plan_has_a_batch_for_each_process():
    limits = Limits(overrides={"updates": 3})
    found = plan(59, [("a cat", "eine Katze")] * 59, limits, time=None)
    assert found.training.accumulate == 2


def test_what_is_no_multiple_is_refused_before_anything_is_written(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(distributed, "world_size", lambda: 3)
    e = Experiment(folder=tmp_path / "run", training={"accumulate": 4})
    with pytest.raises(ValueError, match="accumulate is 4: 3 processes need"):
        run_experiment(e)
    assert not (tmp_path / "run").exists()


def test_every_process_needs_its_share(monkeypatch):
    monkeypatch.setattr(distributed, "world_size", lambda: 3)
    with pytest.raises(
        ValueError, match="accumulate is 4: 3 processes need a multiple of 3"
    ):
        check_share(4)
