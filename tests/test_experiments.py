"""Lists of settings given to the runner: Table 2 in small, notebook 16's runs, the alphas, the stages for a GPU."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer.cli as command_line
from transformer.corpora import read_corpus
from transformer.experiments import alpha, corpora, gpu, results, table2, translators
from transformer.experiments.records import read_rows, table
from transformer.hardware import training_flops
from transformer.optimizer import learning_rate
from transformer.pretrained import bundled_folder, load, parameters_of
from transformer.recipes import recipe
from transformer.scores import bleu, tokenized_bleu
from transformer.search import translate

CPU = torch.device("cpu")


# What corpora look like

def test_statistics_of_a_corpus():
    pairs = [("A dog. A cat.", "Ein Hund."), ("Yes!", "Ja doch, ja, sicher!"), ("", "Nein."), ("a CAT a dog", "x")]
    row = corpora.text_row("mine", "English", [source for source, _ in pairs], ["A bird"])
    assert (row["words"], row["types"], row["unseen"]) == (12, 8, 0.5) and row["lengths"][[0, 2, 4, 6]].tolist() == [0.25] * 4
    row = corpora.pairs_row("mine", pairs)
    assert (row["empty"], row["over 2"], row["repeated"]) == (0.25, 2 / 3, 0)
    forms = [set(corpora.one_changed(text)) for text in ("a b c", "a x c", "a b", "b a c")]
    assert forms[0] & forms[1] and not forms[0] & forms[2] and not forms[0] & forms[3]


# Table 2 in small

@pytest.mark.parametrize("corpus", table2.COMPARISONS)
def test_families_are_of_one_size_and_share_all_else(corpus):
    comparison = table2.COMPARISONS[corpus]
    table2.check_sizes(comparison.models)
    for name in ("vocab_size", "P_drop", "max_positions"):
        assert len({getattr(c, name) for c in comparison.models.values()}) == 1
    assert len(comparison.rates) >= 3 and comparison.training.updates > comparison.choice > comparison.training.warmup


def test_unequal_sizes_are_refused():
    models, ratios = table2.COMPARISONS["bundled"].models, []
    for d_ff in range(256, 1280, 64):
        some = {**models, "transformer": replace(models["transformer"], d_ff=d_ff)}
        counts = [parameters_of(c) for c in some.values()]
        ratios.append(max(counts) / min(counts))
        if ratios[-1] > 1.1:
            with pytest.raises(ValueError, match="more than 10% .*transformer"):
                table2.check_sizes(some)
        else:
            table2.check_sizes(some)
    assert min(ratios) < 1.1 < max(ratios)


def asked(merit):
    """The peaks that are tried, in order, where merit(peak) is the BLEU."""
    tried = {}
    while rates := table2.next_rates(tried, (1, 2, 4), 6):
        tried |= {rate: merit(rate) for rate in rates}
    return list(tried), table2.best_rate(tried)


def test_rates_are_tried_until_the_best_lies_inside():
    assert asked(lambda rate: -abs(rate - 2)) == ([1, 2, 4], 2)
    assert asked(lambda rate: -abs(rate - 7)) == ([1, 2, 4, 8, 16], 8)
    assert asked(lambda rate: -abs(rate - 0.6)) == ([1, 2, 4, 0.5, 0.25], 0.5)
    assert asked(lambda rate: rate)[0] == [1, 2, 4, 8, 16, 32]  # at most six
    assert table2.best_rate({4: 1.0, 2: 1.0, 1: 0.5}) == 2


@pytest.mark.parametrize("family", ["rnn", "rnn-attention", "convolution", "transformer"])
def test_the_peak_is_the_rate_asked_for(family):
    job = table2.job_of(table2.COMPARISONS["bundled"], "bundled", family, 0.0025, 7, whole=False)
    warmup, factor = job.known["training.warmup"], job.known["training.factor"]
    assert learning_rate(warmup, job.known["model.d_model"], warmup, factor) == pytest.approx(0.0025)
    assert (job.known["what"], job.known["seed"], job.known["training.updates"]) == ("choice", 7, 1500)


def test_validation_chooses_and_all_seeds_are_scored(monkeypatch, tmp_path):
    """The rates that the shorter runs of the first seed like best; a run that diverged has a BLEU of 0."""
    bleus, asked = {0.00125: 10.0, 0.0025: 30.0, 0.005: None}, []

    def run_jobs(jobs, folder, devices):
        asked.extend(job.name for job in jobs)
        found = [{"name": job.name, **job.known, "command": "", "commit": "", "hardware": ""} for job in jobs]
        for row in found:
            if row["what"] == "choice" and row["rate"] in bleus and bleus[row["rate"]]:
                row["validation.bleu"] = bleus[row["rate"]]
            row["test.lengths"] = [{"from": 1, "to": 3, "sentences": 5, "bleu": 10.0 * row["seed"]}]
        return found

    monkeypatch.setattr(table2.runner, "run_jobs", run_jobs)
    comparison = replace(table2.COMPARISONS["multi30k"], most=3)
    table2.run_table(comparison, "multi30k", (1, 2), tmp_path, ["cpu"], tmp_path / "x.json")
    rows = read_rows(tmp_path / "x.json")
    count = {what: sum(row["what"] == what for row in rows) for what in ("run", "choice", "length")}
    assert count == {"run": 8, "choice": 12, "length": 4}
    assert {(row["rate"], row["seed"]) for row in rows if row["what"] == "run"} == {(0.0025, 1), (0.0025, 2)}
    lengths = [row for row in rows if row["what"] == "length"]
    assert all((row["bleu"], row["bleu.deviation"], row["seeds"]) == (15.0, 7.07, 2) for row in lengths)
    assert "rnn-0.0025-1-600" in asked and "rnn-0.0025-2-2000" in asked and "rnn-0.0025-2-600" not in asked


def test_minutes_count_training_only(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(table2.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(table2.time, "process_time", lambda: clock[0] / 2)
    monkeypatch.setattr(table2, "stream_pairs", lambda e, split: iter(()))
    monkeypatch.setattr(table2, "encode_pairs", lambda tokenizer, pairs: pairs)

    def slow(model, encoded):
        clock[0] += 1000
        return {"validation_loss": 1.0}

    monkeypatch.setattr(table2, "held_out_loss", slow)
    validate, log = table2.timed_validator(None, None), []
    for update, seconds in ((10, 30), (20, 30), (30, 300), (40, 30), (42, 6)):  # one stretch is disturbed, one short
        clock[0] += seconds
        log.append({"update": update, **validate(None)})
    assert log[0] == {"update": 10, "validation_loss": 1.0, "wall_seconds": 30, "cpu_seconds": 15}
    assert table2.minutes(log) == {"minutes.wall": 2.1, "minutes.cpu": 1.05}


def lengths_of(buckets):
    return [(row["from"], row["to"], row["sentences"]) for row in buckets]


def test_bleu_by_length_equals_that_of_each_bucket(monkeypatch):
    """Buckets hold about equally many sentences, and split no length."""
    sources = ["a b c d", "a b c d e f"] * 3
    references = ["eins zwei drei vier fünf"] * 6
    outputs = ["eins zwei drei vier fünf", "eins zwei drei vier sechs"] * 3
    rows = table2.by_length(sources, outputs, references)
    assert lengths_of(rows) == [(4, 4, 3), (6, 6, 3)]
    assert rows[0]["bleu"] == 100 and rows[1]["bleu"] == round(bleu(outputs[1::2], references[1::2]).score, 2) < 100
    sources = [source for source, _ in read_corpus("bundled", "test")]
    buckets = lengths_of(table2.by_length(sources, sources, sources))
    counts = [count for *_, count in buckets]
    assert len(buckets) in (5, 6) and sum(counts) == len(sources) and max(counts) < 3 * min(counts)
    assert all(a[1] < b[0] for a, b in zip(buckets, buckets[1:]))
    monkeypatch.setattr(table2, "BUCKETS", 3)
    for words, expected in (([5] * 9 + [9], [(5, 5, 9), (9, 9, 1)]), ([7], [(7, 7, 1)]),
                            ([1, 2, 3, 4, 5, 6], [(1, 2, 2), (3, 4, 2), (5, 6, 2)])):
        texts = ["a " * n for n in words]
        assert lengths_of(table2.by_length(texts, texts, texts)) == expected


def test_kept_families_compare_like_with_like():
    """Same tokens, parameters within 10%, the best peak inside those tried."""
    rows = table("families-*")
    for _, own in rows.groupby("corpus"):
        runs, choices = own[own["what"] == "run"], own[own["what"] == "choice"]
        assert runs["tokens"].nunique() == 1 and runs["parameters"].max() <= 1.1 * runs["parameters"].min()
        for family, tried in choices.groupby("family"):
            best = runs[runs["family"] == family]["rate"].unique()
            assert len(tried) >= 3 and tried["rate"].min() < best < tried["rate"].max()
            assert best == tried.set_index("rate")["validation.bleu"].idxmax()


# Notebook 16's runs

@pytest.mark.parametrize("name", translators.RUNS)
def test_a_run_its_command_and_its_record_agree(name):
    e = translators.experiment_of(name)
    train, last, evaluate = ([*line.split()] for line in translators.commands_of(name))
    parsed = command_line.experiment_of(command_line.parse(train[1:]))
    for field in ("corpus", "reverse", "model", "training"):
        assert getattr(parsed, field) == getattr(e, field), field
    assert name == "tatoeba-en-de" or dict(model=e.model, training=e.training) != recipe(e.corpus)
    assert command_line.parse(last[1:]).average == 1 and command_line.parse(evaluate[1:]).record.stem == name
    (kept,) = read_rows(name)
    assert set(translators.options_of(name).split()) <= set(kept["command"].split())
    for split in ("test", "test.average-1"):
        assert kept[f"{split}.sentences"] >= 1000 and kept[f"{split}.bleu"] >= 0 and kept[f"{split}.bleu.signature"]


# Alphas

@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("beam, penalty", [(1, 0.0), (4, 3.0)])
def test_a_row_is_a_search_with_its_scores(beam, penalty, tmp_path, monkeypatch):
    pairs = read_corpus("bundled", "hard")[:8]
    monkeypatch.setattr(alpha, "stream_pairs", lambda e, split: iter(pairs))
    monkeypatch.setattr(alpha, "load_run", lambda folder: translators.experiment_of("multi30k-en-de-1"))
    found = alpha.measure(bundled_folder(), beam, penalty, tmp_path, "cpu")["validation"]
    sources, references = zip(*pairs)
    outputs = translate(*load(), sources, beam, penalty)
    assert found["bleu"] == pytest.approx(bleu(outputs, references).score, abs=0.01)
    assert found["bleu_tokenized_lowercased"] == pytest.approx(tokenized_bleu(outputs, references).score, abs=0.01)
    words = [sum(len(text.split()) for text in texts) for texts in (outputs, references)]
    assert found["length"] == pytest.approx(words[0] / words[1], abs=1e-4)


# An hour on a GPU

def test_stages_are_lists_of_jobs():
    names = {stage: [job.name for job in gpu.jobs_of(stage, small=False)] for stage in gpu.STAGES}
    assert {*names["multi30k"], *names["tatoeba"]} == set(translators.RUNS) and len(names["variations"]) == 60
    rehearsed = {stage: gpu.jobs_of(stage, small=True) for stage in gpu.STAGES}
    assert all(job.known["training.updates"] == 2 for stage in ("multi30k", "tatoeba", "variations")
               for job in rehearsed[stage])
    assert rehearsed["multi30k"][0].known["model.d_model"] == 16 and len(rehearsed["variations"]) == 2


def test_random_pairs_have_lengths_like_wmts():
    pairs = gpu.random_pairs(5000, vocab_size=100)
    lengths = np.array([(len(source), len(target)) for source, target in pairs])
    assert 27 < lengths[:, 0].mean() < 32 and 28 < lengths[:, 1].mean() < 34 and lengths.max() <= 152
    assert np.corrcoef(lengths.T)[0, 1] > 0.9
    for source, target in pairs[:100]:
        assert source[-1] == target[-1] == 2 and target[0] == 1 and min(source[:-1]) >= 3
    assert pairs == gpu.random_pairs(5000, vocab_size=100)


@pytest.mark.usefixtures("one_thread")
def test_throughput(monkeypatch):
    """In as many parts as memory asks for; hours and dollars follow from the seconds of an update."""
    sizes, measured = [], gpu.measured

    def short_of_memory(c, training, encoded, device):
        sizes.append((training.batch_tokens, training.accumulate))
        if training.batch_tokens > 130:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return measured(c, training, encoded, device)

    monkeypatch.setattr(gpu, "measured", short_of_memory)
    monkeypatch.setattr(gpu.hardware, "matmul_rate", lambda *_: 1e12)
    result = gpu.throughput("big", True, Path(), "cpu")
    json.dumps(result)
    assert sizes == [(500, 1), (250, 2), (125, 4)] and (result["accumulate"], result["batch_tokens"]) == (4, 125)
    hours = result["hours_of_the_paper"]
    assert hours == pytest.approx(300_000 * result["seconds_per_update"] / 3600, abs=0.01)
    assert result["dollars"] == pytest.approx(hours * result["dollars_an_hour_assumed"], abs=0.03)
    assert result["updates"] == 8 and result["peak_memory_gib"] > 0 and result["utilisation"] >= 0


def test_the_estimate_is_the_formula_and_the_file():
    found, kept = gpu.estimate(), read_rows("estimate")
    for row, there in zip(found, kept, strict=True):
        assert all(there[name] == row[name] for name in row if name != "minutes")
        c, training = recipe("wmt14", row["model"]).values()
        flops = training.updates * training.batch_tokens / 30 * training_flops(c, 30, 30)
        peak = {some["name"]: some["flops"] for some in gpu.ASSUMED["hardware"]}[row["hardware"]]
        assert row["updates"] == training.updates and row["flops"] == pytest.approx(flops, rel=0.01)
        assert row["hours"] == pytest.approx(flops / (peak / 3) / 3600, rel=0.01)
    paper = {row["model"]: row["hours"] for row in found if "P100" in row["hardware"]}
    assert 0.7 < paper["base"] / 12 < 1.4 and 0.7 < paper["big"] / 84 < 1.4     # what the paper measured


def run(*arguments):
    command = [sys.executable, "-m", "transformer.experiments.gpu", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    return done.returncode, done.stdout, done.stderr


def test_the_command(tmp_path):
    """A stage in a process of its own; what is done is known; a stage that is none, or that wants a GPU, is refused."""
    status, out, err = run("estimate", "--out", tmp_path, "--folder", tmp_path / "runs")
    assert status == 0 and "1 of 1 stages done" in out, err
    status, out, _ = run("--list", "--out", tmp_path)
    assert status == 0 and out.splitlines()[-1] == "done   estimate" and "to do  base" in out
    status, _, err = run("nothing")
    assert status == 1 and "there is no stage nothing: choose from multi30k" in err and "Traceback" not in err
    if not torch.cuda.is_available():
        status, _, err = run("base", "--out", tmp_path)
        assert status == 1 and "there is no GPU here" in err and "--small rehearses everything on a CPU" in err


@pytest.mark.slow
def test_the_whole_rehearsal(tmp_path):
    """Every stage leaves its records where it is told, and is done the next time."""
    told = "--small", "--minutes", "30", "--folder", tmp_path / "runs", "--out", tmp_path / "results"
    status, out, err = run(*told)
    assert status == 0 and f"{len(gpu.STAGES)} of {len(gpu.STAGES)} stages done" in out, err[-2000:]
    assert {path.name for path in tmp_path.glob("results/*")} == {
        gpu.record_of(stage, tmp_path).name for stage in gpu.STAGES}
    assert "0 of 0 stages done" in run(*told)[1]


# The page of results

def test_the_page_is_what_the_records_say(root):
    assert (root / "RESULTS.md").read_text(encoding="utf8") == results.results(), "make results writes it again"
