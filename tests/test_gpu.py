"""The prepared hour on a GPU: its stages, rehearsed with tiny models; what is estimated is what the formula says."""

import json
import subprocess
import sys
import time

import gpu
import numpy as np
import pytest
import torch
from helpers import small_bundled

from transformer import corpora
from transformer.experiments.records import RUNS, commands_of, read_results
from transformer.hardware import training_flops
from transformer.recipes import recipe
from transformer.training import Interrupted

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def few_sentences(monkeypatch):
    """A hundredth of the bundled corpus, on one thread."""
    read, threads = corpora.read_bundled, torch.get_num_threads()
    small_bundled(monkeypatch, lambda split: read(split)[:200])
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_stages_in_order():
    """Seeds, the other direction, ablations; base and big; Tatoeba; bench, Table 3, the estimate: each once."""
    assert gpu.STAGES[:4] == ["multi30k-en-de-1", "multi30k-en-de-2", "multi30k-en-de-3", "multi30k-de-en-1"]
    assert gpu.STAGES[-9:-6] == ["base", "big", "tatoeba-en-de"] and gpu.STAGES[-2:] == ["variations", "estimate"]
    assert set(gpu.STAGES) == {*RUNS, "base", "big", *gpu.BENCH, "variations", "estimate"}
    assert len(set(gpu.STAGES)) == len(gpu.STAGES)


def test_random_pairs_have_lengths_like_wmts():
    pairs = gpu.random_pairs(5000, vocab_size=100)
    lengths = np.array([(len(source), len(target)) for source, target in pairs])
    assert 27 < lengths[:, 0].mean() < 32 and 28 < lengths[:, 1].mean() < 34 and lengths.max() <= 152
    assert np.corrcoef(lengths.T)[0, 1] > 0.9
    for source, target in pairs[:100]:
        assert source[-1] == target[-1] == 2 and target[0] == 1 and min(source[:-1]) >= 3
    assert pairs == gpu.random_pairs(5000, vocab_size=100)


def test_throughput():
    result = gpu.throughput("big", small=True, device=CPU)
    json.dumps(result)
    assert result["updates"] == 8 and result["accumulate"] == 1 and result["batch_tokens"] == 500
    seconds, hours = result["seconds_per_update"], result["hours_of_the_paper"]
    assert result["tokens_per_second"] == pytest.approx(result["tokens_per_update"] / seconds, rel=0.05)
    assert hours == pytest.approx(300_000 * seconds / 3600, abs=0.01)
    assert result["dollars"] == pytest.approx(hours * result["dollars_an_hour_assumed"], abs=0.03)
    assert 0 < result["tokens_per_update"] <= 500 and result["peak_memory_gib"] > 0 and result["utilisation"] >= 0


def test_throughput_in_parts_where_memory_is_short(monkeypatch):
    sizes, measured = [], gpu.measured

    def short_of_memory(c, training, encoded, device):
        sizes.append((training.batch_tokens, training.accumulate))
        if training.batch_tokens > 130:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return measured(c, training, encoded, device)

    monkeypatch.setattr(gpu, "measured", short_of_memory)
    assert gpu.throughput("base", small=True, device=CPU)["accumulate"] == 4
    assert sizes == [(500, 1), (250, 2), (125, 4)]


def test_a_run_is_trained_scored_and_kept(tmp_path):
    gpu.stage("multi30k-no-smoothing", tmp_path / "runs", tmp_path / "out", small=True)
    kept = read_results(tmp_path / "out")["gpu-multi30k-no-smoothing"]
    assert kept["scores"].keys() == {"test", "test.average-1"} and kept["training"]["epsilon_ls"] == 0.0
    train = commands_of("multi30k-no-smoothing")[0]
    assert kept["command"].removesuffix(", rehearsed") == train.partition(" --folder")[0]
    before = (tmp_path / "runs" / "gpu-multi30k-no-smoothing" / "log.jsonl").read_text()
    gpu.stage("multi30k-no-smoothing", tmp_path / "runs", tmp_path / "again", small=True)  # no result yet: goes on
    assert (tmp_path / "runs" / "gpu-multi30k-no-smoothing" / "log.jsonl").read_text() == before
    assert read_results(tmp_path / "again")["gpu-multi30k-no-smoothing"]["updates"] == 2


def test_the_bench_in_parts(tmp_path, monkeypatch):
    """Every part once, each in its own file; `run_bench` has tests of its own."""
    monkeypatch.setattr(gpu, "run_bench", lambda b, command: {"parts": list(b.parts), "quick": b.quick, "of": command})
    parts = []
    for name in gpu.BENCH:
        gpu.stage(name, tmp_path / "runs", tmp_path, small=True)
        kept = json.loads((tmp_path / f"gpu-{name}.json").read_text())
        assert kept["quick"] and kept["of"] == f"python tools/gpu.py {name}"
        parts += kept["parts"]
    assert parts == ["base", "big", "T3", "T4", "memory", "attention"]


def test_table_3(tmp_path, monkeypatch):
    """All rows with three seeds from the larger base; a row that failed is named, and no result is left."""
    asked, failed = [], []

    def run_variations(base, rows, seeds, folder, devices, command):
        asked.append((base.corpus, len(rows), seeds, base.model.d_model, folder))
        return {"runs": [], "failed": [{"row": "N=2"}] * len(failed)}

    monkeypatch.setattr(gpu, "run_variations", run_variations)
    folder = tmp_path / "gpu-variations"
    gpu.table_3(folder, small=False, device=CPU)
    gpu.stage("variations", tmp_path, tmp_path, small=True)
    assert asked == [("multi30k", 20, (1, 2, 3), 256, folder), ("bundled", 2, (1,), 16, folder)]
    (tmp_path / "gpu-variations.json").unlink()
    failed.append(True)
    with pytest.raises(ValueError, match="without a result: N=2; the reasons stand in .*results.json"):
        gpu.stage("variations", tmp_path, tmp_path, small=True)
    assert not (tmp_path / "gpu-variations.json").exists()


def test_the_estimate_is_the_formula_and_the_file(root):
    found = gpu.estimate()
    kept = json.loads((root / "data" / "runs" / "estimate.json").read_text(encoding="utf8"))
    assert kept["estimate"] is True and kept["rows"] == json.loads(json.dumps(found["rows"]))
    for row in found["rows"]:
        c, training = recipe("wmt14", row["model"]).values()
        flops = training.updates * training.batch_tokens / 30 * training_flops(c, 30, 30)
        peak = dict((name, rate) for name, rate, _ in gpu.GPUS)[row["hardware"]]
        assert row["updates"] == training.updates and row["flops"] == pytest.approx(flops, rel=0.01)
        assert row["hours"] == pytest.approx(flops / (peak / 3) / 3600, rel=0.01)
    paper = {row["model"]: row["hours"] for row in found["rows"] if "P100" in row["hardware"]}
    assert 0.7 < paper["base"] / 12 < 1.4 and 0.7 < paper["big"] / 84 < 1.4     # what the paper measured


def run(*arguments):
    command = [sys.executable, gpu.__file__, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    return done.returncode, done.stdout, done.stderr


def test_the_command(tmp_path):
    """A stage in a process of its own; what is done is known."""
    status, out, err = run("estimate", "--out", tmp_path)
    assert status == 0 and "1 of 1 stages done" in out, err
    status, out, _ = run("--list", "--out", tmp_path)
    assert status == 0 and out.splitlines()[-1] == "done   estimate" and "to do  base" in out


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["gpu.py", "base", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="there is no GPU here.*: --small rehearses everything on a CPU"):
        gpu.main()


def test_a_stage_that_takes_too_long_is_stopped(tmp_path, monkeypatch, capfd):
    program = tmp_path / "slow.py"
    program.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(gpu, "__file__", str(program))
    monkeypatch.setattr(sys, "argv", ["gpu.py", "base", "--small", "--minutes", "0.02"])
    arguments, started = gpu.parse(), time.monotonic()
    assert gpu.run_stages(["base"], arguments) == ["base"] and time.monotonic() - started < 30
    assert "base: not finished; what was trained is kept, run the command again" in capfd.readouterr().out


def test_an_interrupted_stage_is_told_in_one_sentence(monkeypatch):
    def interrupted(*arguments):
        raise Interrupted("stopped after update 7")

    monkeypatch.setattr(gpu, "stage", interrupted)
    monkeypatch.setattr(sys, "argv", ["gpu.py", "base", "--here", "--small"])
    with pytest.raises(SystemExit, match="base: stopped after update 7"):
        gpu.main()


@pytest.mark.slow
def test_the_whole_rehearsal():
    status, out, err = run("--small")
    assert status == 0 and f"{len(gpu.STAGES)} of {len(gpu.STAGES)} stages done" in out, err[-2000:]
