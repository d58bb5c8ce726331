"""What `make gpu` does: paths are checked before they are measured, systems take turns."""

import json
from pathlib import Path

import pytest
import torch

from transformer.core.records import write_rows
from transformer.experiments import gpu_paths, gpu_rounds, gpu_searches
from transformer.experiments.gpu_paths import GpuPath, check_paths, passed_paths
from transformer.fast.documents import DocumentMask
from transformer.fast.fixed import FixedState

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")


def checked(monkeypatch, *paths):
    monkeypatch.setattr(gpu_paths, "paths_on", lambda device: [*paths])
    return {row["path"]: row for row in check_paths(True, Path(), "cpu")}


def test_paths_that_agree_pass(monkeypatch):
    rows = checked(monkeypatch, GpuPath(), GpuPath("dense"), GpuPath(None, "bf16"))
    json.dumps(rows)
    assert list(rows) == ["padded fp32", "dense fp32", "padded bf16"]
    assert all(row["passed"] for row in rows.values())
    assert rows["dense fp32"]["gradient_error"] < 1e-5
    assert 1e-4 < rows["padded bf16"]["gradient_error"] < 0.05


def test_a_path_that_disagrees_does_not_pass(monkeypatch):
    """Attention over all sentences of a pack."""
    table = torch.ones(256, 256, dtype=torch.bool)
    monkeypatch.setattr(DocumentMask, "dense", lambda mask: table)
    row = checked(monkeypatch, GpuPath("dense"))["dense fp32"]
    assert not row["passed"]
    assert row["gradient_error"] > row["tolerance"]


def test_a_path_that_fails_does_not_pass_and_says_why(monkeypatch):
    monkeypatch.setattr(gpu_paths.documents, "varlen", lambda: None)
    row = checked(monkeypatch, GpuPath("varlen"))["varlen fp32"]
    assert not row["passed"]
    assert "has no torch.nn.attention.varlen" in row["reason"]


def test_paths_without_a_check_are_not_measured(tmp_path):
    record = tmp_path / "check.json"
    assert passed_paths(record, CPU) == []
    rows = [
        {"path": "padded fp32", "passed": True},
        {"path": "dense fp32", "passed": False},
        {"path": "dense fp32 compiled", "passed": True},
    ]
    write_rows(record, rows)
    assert passed_paths(record, CPU) == [GpuPath()]  # a rehearsal compiles in its check


def test_a_gpu_measures_no_dense_tables(tmp_path, monkeypatch):
    paths = [GpuPath("flex", compiled=True), GpuPath("dense")]
    monkeypatch.setattr(gpu_paths, "paths_on", lambda device: paths)
    write_rows(tmp_path / "x.json", [{"path": p.name, "passed": True} for p in paths])
    assert passed_paths(tmp_path / "x.json", torch.device("cuda")) == paths[:1]


def test_a_gpu_has_paths_in_short_numbers_and_in_fp32(monkeypatch):
    monkeypatch.setattr(gpu_paths, "choose_precision", lambda device: "fp16")
    monkeypatch.setattr(gpu_paths.documents, "varlen", lambda: (None, {}))
    names = [path.name for path in gpu_paths.paths_on(torch.device("cuda"))]
    assert len(set(names)) == len(names)
    assert {"varlen fp16 compiled", "flex fp32", "padded fp16"} <= {*names}
    assert not [name for name in names if name.startswith("varlen fp32")]


@pytest.fixture
def record(tmp_path):
    path = tmp_path / "check.json"
    names = "padded fp32", "dense fp32"
    write_rows(path, [{"path": name, "passed": True} for name in names])
    return path


def test_systems_take_turns_on_the_same_pairs(record):
    rows = gpu_rounds.training_rounds("tatoeba", True, record, Path(), "cpu")
    json.dumps(rows)
    names = [row["system"] for row in rows]
    expected = ["padded fp32", "dense fp32", "plain", "torch", "torch compiled"]
    assert names[:5] == expected
    assert all(row["tokens_per_second"] > 0 for row in rows)


def test_a_system_that_fails_leaves_the_others(monkeypatch, record):
    def no_memory(*_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(gpu_rounds.Peer, "train", no_memory)
    rows = gpu_rounds.training_rounds("tatoeba", True, record, Path(), "cpu")
    rows = {row["system"]: row for row in rows}
    assert rows["torch"]["reason"] == "CUDA out of memory"
    assert rows["padded fp32"]["tokens_per_second"] > 0


def test_the_dearest_kernels_of_an_update(record):
    rows = gpu_rounds.dearest_kernels(True, record, Path(), "cpu")
    json.dumps(rows)
    (total,) = (r for r in rows if r["path"] == "dense fp32" and "kernels" in r)
    assert total["kernels"] > 100
    kernels = [r for r in rows if r["path"] == "dense fp32" and "kernel" in r]
    assert len(kernels) == gpu_rounds.DEAREST
    assert "aten::mm" in {row["kernel"] for row in kernels}
    times = [row["microseconds"] for row in kernels]
    assert times == sorted(times, reverse=True)
    assert 0 < sum(row["share"] for row in kernels) <= 1


def test_searches_of_two_sizes(monkeypatch, tmp_path):
    """What has not passed the check is not measured."""
    monkeypatch.setattr(gpu_searches, "SEARCHING", ("plain", "fast"))
    check = tmp_path / "check.json"
    rows = [{"path": gpu_searches.path_of(k), "passed": k == 4} for k in (1, 4)]
    write_rows(check, rows)
    rows = gpu_searches.search_rounds(True, check, Path(), "cpu")
    json.dumps(rows)
    places = [(row["sentences"], row["beam"], row["system"]) for row in rows]
    systems = {1: ("plain", "fast"), 4: ("plain", "fast", "fast growing")}
    assert places == [(n, k, s) for n in (4, 8) for k in (1, 4) for s in systems[k]]
    assert all(row["tokens_per_second"] > 0 for row in rows)
    fixed = {row["beam"]: row for row in rows if row.get("fixed")}
    growing = {row["beam"]: row for row in rows if row.get("fixed") is False}
    assert list(fixed) == [4] and list(growing) == [1, 4]
    assert fixed[4]["reads"] < growing[4]["reads"] / 3


def test_searches_that_agree_pass():
    rows = gpu_searches.check_searches(True, "cpu")
    json.dumps(rows)
    assert [row["passed"] for row in rows] == [True, True]
    assert [row["equal"] for row in rows] == [8, 8]


def test_searches_that_disagree_do_not_pass(monkeypatch):
    """A mask that does not move with the hypotheses."""
    monkeypatch.setattr(FixedState, "select", lambda state, rows: None)
    assert [row["passed"] for row in gpu_searches.check_searches(True, "cpu")] == [
        True,
        False,
    ]
