"""The one runner of experiments: rows kept and found again, stops, failures, divergence, processes that die."""

import contextlib
import json
import math
import shutil
import signal
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from helpers import KILL

from transformer.core.checks import Diverged
from transformer.core.interrupt import Interrupted
from transformer.core.records import read_rows, write_rows
from transformer.core.weights import load_weights
from transformer.experiments import runner, table3
from transformer.experiments.choosing import best_rates
from transformer.experiments.runner import Job, devices_for, in_processes, run_jobs
from transformer.fast.model import TransformerConfig
from transformer.runs import training
from transformer.runs.progress import read_log
from transformer.runs.training import TrainingConfig
from transformer.variations import TABLE_3, Trial

pytestmark = pytest.mark.usefixtures("one_thread")
BY_NAME = {row.name: row for row in TABLE_3}


# Jobs that need no training


def figures(value, folder, device):
    """What a job does: {"test": {"bleu": value}}, or the error that it is given."""
    if isinstance(value, Exception):
        raise value
    return {"test": {"bleu": {"score": value, "margin": 0.5}}}


def job(name, value=1.0, **known):
    return Job(name, partial(figures, value), known, f"a test --folder /scratch/{name}")


@pytest.fixture
def here(monkeypatch):
    """Jobs go one after the other in this process; the list holds the names of those begun."""
    begun = []

    def in_this_process(jobs, folder, devices, minutes=None):
        for one in jobs:
            begun.append(one.name)
            runner.work(one, folder / one.name, devices[0])
            yield one, 0

    monkeypatch.setattr(runner, "in_processes", in_this_process)
    return begun


def run(jobs, folder, record=None):
    return run_jobs(jobs, folder, ["cpu"], record, tell=lambda text: None)


def test_a_row_holds_what_is_known_the_figures_and_where_it_came_from(here, tmp_path):
    record = tmp_path / "record.json"
    rows = run(
        [job("a", 3.5, seed=1, row="base"), job("b", 4.5, seed=2, row="base")],
        tmp_path / "runs",
        record,
    )
    assert rows == read_rows(record) and here == ["a", "b"]
    assert [
        (
            row["name"],
            row["row"],
            row["seed"],
            row["test.bleu"],
            row["test.bleu.margin"],
        )
        for row in rows
    ] == [("a", "base", 1, 3.5, 0.5), ("b", "base", 2, 4.5, 0.5)]
    assert all(
        row["command"] == "a test"
        and "thread" in row["hardware"]
        and row["minutes"] >= 0
        for row in rows
    )


def test_a_sweep_goes_on_with_the_best_rate_of_each_family(here, tmp_path):
    """On validation, not on test; of equals the first; a rate that diverged is none."""
    validation = {
        ("a", 1): 2.0,
        ("a", 2): 9.0,
        ("a", 3): 9.0,
        ("b", 1): 5.0,
        ("b", 2): Diverged("at once"),
        ("b", 3): 4.0,
        ("c", 1): Diverged("at once"),
        ("c", 2): Diverged("later"),
        ("c", 3): Diverged(""),
    }

    def job_of(family, rate, seed):
        return job(
            f"{family}-{rate}-{seed}",
            validation[family, rate],
            family=family,
            rate=rate,
        )

    rows = run([job_of(family, rate, 7) for family, rate in validation], tmp_path)
    assert best_rates(rows, lambda row: row["test.bleu"]) == {"a": 2, "b": 1}
    here.clear()
    runner.sweep(
        job_of,
        "abc",
        (1, 2, 3),
        (7, 8, 9),
        lambda row: row["test.bleu"],
        partial(run, folder=tmp_path),
    )
    assert here[-4:] == ["a-2-8", "b-1-8", "a-2-9", "b-1-9"]


def test_what_is_done_is_not_done_again(here, tmp_path):
    """Not what the folder holds, nor what only the record holds; a job given twice is done once."""
    record = tmp_path / "record.json"
    rows = run([job("a"), job("b"), job("a")], tmp_path / "runs", record)
    assert here == ["a", "b"] and len(rows) == 2
    assert (
        run([job("a"), job("b")], tmp_path / "runs")
        == rows
        == run([job("a"), job("b")], tmp_path / "new", record)
    )
    run([job("c")], tmp_path / "new", record)
    assert here == ["a", "b", "c"] and [row["name"] for row in read_rows(record)] == [
        "a",
        "b",
        "c",
    ]


def test_a_failed_job_loses_nothing_and_is_tried_again(here, tmp_path):
    record, jobs = (
        tmp_path / "record.json",
        [job("a"), job("b", OSError("no\ndisk")), job("c")],
    )
    with pytest.raises(
        ValueError,
        match="without a result: b: no disk. The same command tries them again",
    ):
        run(jobs, tmp_path / "runs", record)
    assert [row["name"] for row in read_rows(record)] == ["a", "c"]
    rows = run([job("a"), job("b"), job("c")], tmp_path / "runs", record)
    assert here == ["a", "b", "c", "b"] and len(rows) == len(read_rows(record)) == 3


def test_a_record_beats_a_failure(here, tmp_path):
    write_rows(tmp_path / "record.json", run([job("a")], tmp_path / "runs"))
    with pytest.raises(ValueError):
        run([job("a", ValueError("it"))], tmp_path / "other")
    assert len(
        run([job("a")], tmp_path / "other", tmp_path / "record.json")
    ) == 1 and here == ["a", "a"]


def test_that_a_job_diverged_is_a_result(here, tmp_path):
    first, again = (
        run(
            [job("a", Diverged("loss is nan"), N=2)], tmp_path, tmp_path / "record.json"
        )
        for _ in range(2)
    )
    assert first == again and here == ["a"]
    assert (first[0]["diverged"], first[0]["N"]) == (
        "loss is nan",
        2,
    ) and "test.bleu" not in first[0]


@pytest.mark.parametrize("only_in_the_record", [False, True])
def test_other_settings_get_another_folder(here, tmp_path, only_in_the_record):
    run([job("a", N=1, precision="fp32")], tmp_path / "runs", tmp_path / "record.json")
    if only_in_the_record:
        shutil.rmtree(tmp_path / "runs")
    with pytest.raises(
        ValueError,
        match=r"a was made with other settings \(N is 1 there and 2 here\): name another",
    ):
        run(
            [job("a", N=2, precision="fp32")],
            tmp_path / "runs",
            tmp_path / "record.json",
        )
    assert here == ["a"]


def test_another_precision_is_told_by_the_hardware(here, tmp_path):
    rows = [
        run([job("a", **{"training.precision": name})], tmp_path)
        for name in ("fp32", "bf16")
    ]
    assert rows[0] == rows[1] and here == ["a"]


@pytest.mark.parametrize("text", ["[1, 2]", "{", '{"rows": 3}'])
def test_a_record_of_something_else_is_refused(here, tmp_path, text):
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(
        ValueError, match="record.json is not a file of results: name another"
    ):
        run([job("a")], tmp_path / "runs", tmp_path / "record.json")
    assert here == [] and (tmp_path / "record.json").read_text() == text


def test_the_record_is_written_after_each_job_and_may_grow_meanwhile(
    tmp_path, monkeypatch
):
    record = tmp_path / "record.json"

    def stopped(jobs, folder, devices, minutes):
        runner.work(jobs[0], folder / jobs[0].name, "cpu")
        write_rows(record, [{"name": "another's", "seed": 7}])
        yield jobs[0], 0
        raise Interrupted("stopped")

    monkeypatch.setattr(runner, "in_processes", stopped)
    with pytest.raises(Interrupted):
        run([job("a"), job("b")], tmp_path / "runs", record)
    assert [row["name"] for row in read_rows(record)] == ["another's", "a"]


def test_a_process_that_dies(tmp_path, monkeypatch):
    """Killed for its memory, say: a sentence. Stopped by us: nothing, it goes on next time."""
    monkeypatch.setattr(
        runner, "in_processes", lambda jobs, *_: zip(jobs, (-KILL, -signal.SIGTERM))
    )
    with pytest.raises(
        ValueError,
        match=rf"without a result: a: its process ended with status -{int(KILL)}. The same",
    ):
        run([job("a"), job("b")], tmp_path)


# Processes


@pytest.fixture
def staged(monkeypatch):
    """Processes that end as staged.script says (name, status), or (signal,) comes; what happens to them is noted."""
    stage = SimpleNamespace(begun=[], told=[], most=0, running=[], script=[])

    class Staged:
        def __init__(self, target, args):
            assert target is runner.work
            self.job, self.folder, self.device = args
            self.exitcode, self.sentinel = None, self

        def start(self):
            stage.begun.append((self.job.name, self.folder.name, self.device))
            stage.running.append(self)

        def is_alive(self):
            return self in stage.running

        def terminate(self):
            stage.told.append(self.job.name)

        def join(self):
            if self in stage.running:
                self.exitcode = 0
                stage.running.remove(self)

    def wait(sentinels, timeout):
        assert sorted(map(id, sentinels)) == sorted(map(id, stage.running))
        stage.most = max(stage.most, len(sentinels))
        if not stage.script:
            return
        what, *status = stage.script.pop(0)
        if not status:
            return signal.raise_signal(what)
        (process,) = (process for process in stage.running if process.job.name == what)
        process.exitcode = status[0]
        stage.running.remove(process)

    monkeypatch.setattr(
        runner.multiprocessing,
        "get_context",
        lambda method: SimpleNamespace(Process=Staged),
    )
    monkeypatch.setattr(runner.connection, "wait", wait)
    return stage


FIVE = [job(name) for name in "abcde"]


def test_a_process_follows_where_another_has_ended(staged, tmp_path):
    staged.script = [("b", 0), ("a", -9), ("d", 0), ("c", 1), ("e", 0)]
    found = [
        (one.name, status)
        for one, status in in_processes(FIVE, tmp_path, ["cuda:0", "cuda:1"])
    ]
    assert (
        found == [("b", 0), ("a", -9), ("d", 0), ("c", 1), ("e", 0)]
        and staged.most == 2
        and staged.told == []
    )
    assert staged.begun == [
        (name, name, f"cuda:{device}") for name, device in zip("abcde", (0, 1, 1, 0, 0))
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_reaches_every_process_and_no_other_begins(staged, number, tmp_path):
    staged.script, ended = [("a", 0), (number,)], []
    with pytest.raises(Interrupted, match="the same command goes on"):
        ended.extend(
            one.name for one, _ in in_processes(FIVE, tmp_path, ["cpu", "cpu"])
        )
    assert [name for name, *_ in staged.begun] == ["a", "b", "c"]
    assert sorted(staged.told) == ["b", "c"] and not staged.running


def test_so_many_minutes_and_no_more(staged, tmp_path):
    staged.script = [("a", 0)]
    with pytest.raises(Interrupted, match="the same command goes on"):
        list(in_processes(FIVE, tmp_path, ["cpu", "cpu"], minutes=-1))
    assert (
        [name for name, *_ in staged.begun] == ["a", "b"]
        and "b" in staged.told
        and not staged.running
    )


def test_an_error_leaves_no_process_behind(staged, tmp_path):
    staged.script = [("a", 0)]
    with (
        pytest.raises(OSError),
        contextlib.closing(in_processes(FIVE, tmp_path, ["cpu", "cpu"])) as ended,
    ):
        for _ in ended:
            raise OSError("the disk is full")
    assert staged.told == ["b"] and not staged.running


def test_devices(monkeypatch):
    assert devices_for("cpu") == ["cpu"] and devices_for("cpu", 3) == ["cpu"] * 3
    for wrong, said in (
        (("cpu", 0), "workers must be at least 1"),
        (("tpu", None), "there is no device 'tpu' here"),
    ):
        with pytest.raises(ValueError, match=said):
            devices_for(*wrong)
    names = {"auto": "cuda:0", "cuda": "cuda:0"}
    monkeypatch.setattr(
        runner, "choose_device", lambda name: torch.device(names.get(name, name))
    )
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices_for() == ["cuda:0", "cuda:1"] and devices_for("cuda", 3) == [
        "cuda:0",
        "cuda:1",
        "cuda:0",
    ]
    assert devices_for("cuda:1", 2) == ["cuda:1"] * 2


# Runs of training


@pytest.fixture(scope="module", autouse=True)
def rate_is_known():
    """A run begins with some products of matrices, to say how long it will take: not here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "matmul_rate", lambda *_, **__: 1e9)
        yield


@pytest.fixture(scope="module")
def base(own_files):
    """A base of a moment, on sixty pairs."""
    return Trial(
        source_file=own_files[0],
        target_file=own_files[1],
        model=TransformerConfig(300, d_model=16, d_ff=32, N=1, h=8, max_positions=150),
        training=TrainingConfig(
            updates=2, batch_tokens=300, warmup=10, validate_every=1, keep=2
        ),
    )


def trial(base, row="base"):
    return table3.job_of(
        BY_NAME[row], base, 1, "transformer variations --folder /scratch/here"
    )


@pytest.fixture(scope="module")
def whole(base, tmp_path_factory):
    """Base without a stop: its folder and its row."""
    folder = tmp_path_factory.mktemp("whole") / "base-seed1"
    runner.work(trial(base), folder, "cpu")
    return folder, json.loads((folder / "result.json").read_text())[0]


def test_a_run_and_its_row(whole, base):
    folder, row = whole
    model = json.loads((folder / "run.json").read_text())["model"]
    weights = load_weights(folder / "model.safetensors")[0]
    assert row["parameters"] == sum(weight.numel() for weight in weights.values())
    assert (
        row["parameters"] - row["parameters.outside_embeddings"]
        == model["vocab_size"] * 16
    )
    assert (row["row"], row["seed"], row["updates"], row["model.vocab_size"]) == (
        "base",
        1,
        2,
        300,
    )
    assert (
        row["validation.perplexity"] > 1
        and row["log.update"] == [1, 2]
        and row["minutes.cpu"] >= 0
    )
    assert (
        row["command"] == "transformer variations"
        and row["corpus"] == base.source_file.name
    )
    assert not list(folder.glob("checkpoint.safetensors")) and not list(
        folder.glob("weights/*")
    )


def same(row, other):
    names = (
        "validation.perplexity",
        "validation.bleu",
        "updates",
        "tokens",
        "parameters",
        "log.loss",
    )
    return all(row[name] == other[name] for name in names)


def test_an_interrupted_run_goes_on(base, whole, tmp_path, monkeypatch):
    """Stopped by Ctrl-C at the first validation, then begun again: the same weights and scores as without a stop."""
    stops = replace(
        table3.TASK,
        make_validator=lambda *_: (
            lambda model: signal.raise_signal(signal.SIGINT) or {}
        ),
    )
    one = trial(base)
    runner.work(replace(one, do=partial(one.do, task=stops)), tmp_path, "cpu")
    assert [row["update"] for row in read_log(tmp_path)] == [1]
    assert (
        not (tmp_path / "model.safetensors").exists()
        and not (tmp_path / "result.json").exists()
    )
    runner.work(one, tmp_path, "cpu")
    row = json.loads((tmp_path / "result.json").read_text())[0]
    assert row["minutes.cpu"] is None and row["resumed"]
    assert row["validation.perplexity"] == whole[1]["validation.perplexity"]
    assert (tmp_path / "model.safetensors").read_bytes() == (
        whole[0] / "model.safetensors"
    ).read_bytes()


def test_a_run_without_a_loss_has_diverged(base, tmp_path, monkeypatch):
    monkeypatch.setattr(
        table3, "held_out_loss", lambda *_: dict(validation_loss=math.nan)
    )
    runner.work(trial(base), tmp_path, "cpu")
    row = json.loads((tmp_path / "result.json").read_text())[0]
    assert (
        row["diverged"] == "after training the validation loss is nan"
        and row["model.N"] == 1
    )


def test_weights_without_a_checkpoint_do_not_stop_a_run(base, tmp_path):
    """A run killed between its first weights and its first checkpoint begins anew; beside a model weights stay."""
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "00000001.safetensors").write_bytes(b"half")
    runner.work(trial(base), tmp_path, "cpu")
    assert json.loads((tmp_path / "result.json").read_text())[0]["updates"] == 2
    (tmp_path / "weights" / "00000001.safetensors").write_bytes(b"somebody's")
    runner.work(trial(base), tmp_path, "cpu")
    assert (
        "already holds a run or a model"
        in json.loads((tmp_path / "result.json").read_text())[0]["failed"]
    )
    assert (tmp_path / "weights" / "00000001.safetensors").exists()


@pytest.mark.system
def test_a_real_process_trains_the_same_and_saves_when_it_is_stopped(
    base, whole, tmp_path, monkeypatch
):
    """SIGTERM to the parent while a long run goes on: it saves and ends, and the one that waited never begins."""
    long = replace(base, training=replace(base.training, updates=1_000_000))
    first, second = trial(long), trial(long, "h=1")
    ended, told, wait = [], [], runner.connection.wait

    def watched(sentinels, timeout):
        if len(read_log(tmp_path / first.name)) >= 2 and not told:
            told.append(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
        return wait(sentinels, 0.05)

    monkeypatch.setattr(runner.connection, "wait", watched)
    with pytest.raises(Interrupted):
        ended.extend(
            (one.name, status)
            for one, status in in_processes([first, second], tmp_path, ["cpu"])
        )
    folder = tmp_path / first.name
    assert (
        not (tmp_path / second.name).exists() and not (folder / "result.json").exists()
    )
    assert (folder / "checkpoint.safetensors").is_file()
    for here, there in zip(read_log(whole[0]), read_log(folder)):
        assert all(
            here[key] == there[key]
            for key in ("update", "tokens", "rate", "loss", "validation_loss")
        )
