"""Lists of settings given to the runner: notebook 16's runs, the alphas, the stages for a GPU."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer.cli as command_line
from transformer.cli.train import experiment_of
from transformer.core.records import read_rows
from transformer.core.scores import bleu, bleu_of_counts, tokenized_bleu
from transformer.core.weights import load_weights, save_weights
from transformer.corpora import read_corpus
from transformer.experiments import alpha, corpora, gpu, multi30k
from transformer.experiments.runner import finished, settings_of
from transformer.models.pretrained import bundled_folder, load
from transformer.models.search import Batching, translate
from transformer.runs.experiment import Experiment
from transformer.runs.recipes import recipe

CPU = torch.device("cpu")


# What corpora look like


def test_statistics_of_a_corpus():
    pairs = [
        ("A dog. A cat.", "Ein Hund."),
        ("Yes!", "Ja doch, ja, sicher!"),
        ("", "Nein."),
        ("a CAT a dog", "x"),
    ]
    row = corpora.text_row(
        "mine", "English", [source for source, _ in pairs], ["A bird"]
    )
    assert (row["words"], row["types"], row["unseen"]) == (12, 8, 0.5) and row[
        "lengths"
    ][[0, 2, 4, 6]].tolist() == [0.25] * 4
    row = corpora.pairs_row("mine", pairs)
    assert (row["empty"], row["over 2"], row["repeated"]) == (0.25, 2 / 3, 0)
    forms = [
        set(corpora.one_changed(text)) for text in ("a b c", "a x c", "a b", "b a c")
    ]
    assert forms[0] & forms[1] and not forms[0] & forms[2] and not forms[0] & forms[3]


# Notebook 16's runs

SINGLE = {
    "multi30k-en-de-1": {},
    "multi30k-de-en-1": {"reverse": True},
    "tatoeba-en-de": {},
    "multi30k-no-smoothing": {"training.epsilon_ls": 0.0},
    "multi30k-short-warmup": {"training.warmup": 500},
}


@pytest.mark.parametrize("name", SINGLE)
def test_a_command_still_means_what_its_record_has(name):
    (kept,) = read_rows(name)
    plain = settings_of(Experiment(kept["corpus"], **recipe(kept["corpus"]))) | {
        "reverse": False
    }
    free = {
        "seed",
        "training.precision",
        "model.pad_id",
        "model.bos_id",
        "model.eos_id",
        "model.vocab_size",
    }
    assert {
        column: kept[column]
        for column in plain.keys() & kept.keys() - free
        if kept[column] != plain[column]
    } == SINGLE[name]
    e = experiment_of(command_line.parse(kept["command"].split()[1:]))
    asked = settings_of(e) | {"reverse": e.reverse}
    tokenizer = {"model.vocab_size", "model.pad_id", "model.bos_id", "model.eos_id"}
    assert not {
        column
        for column in asked.keys() & kept.keys() - tokenizer
        if asked[column] != kept[column]
    }
    for split in ("test", "test.average-1"):
        assert (
            kept[f"{split}.sentences"] >= 1000
            and kept[f"{split}.bleu"] >= 0
            and kept[f"{split}.bleu.signature"]
        )


def test_the_command_of_multi30ks_rows_would_go_on():
    kept, done = read_rows("multi30k"), []
    each = float(kept[0]["command"].rpartition(" ")[2])
    for row in multi30k.ROWS:
        job = multi30k.job_of(row, 1, each)
        done += finished(
            job, Path("nowhere"), [row for row in kept if row["name"] == job.name]
        )
    assert [row["row"] for row in done] == [
        "recipe",
        "epsilon_ls=0.0",
        "tie_embeddings=False",
        "positions=rotary",
        "positions=rotary,norm_first=True,P_drop=0.3",
    ]


@pytest.mark.parametrize("right, chosen", [((1, 3), 3.0), ((3, 1), 0.0), ((3, 3), 0.0)])
def test_validation_chooses_the_alpha(right, chosen, monkeypatch):
    """Test is scored with it, though it would choose the other; of equals the first counts."""
    pairs = {
        split: read_corpus("bundled", split)[:4] for split in ("validation", "test")
    }
    known = {source: target for split in pairs.values() for source, target in split}
    number = {
        (split, alpha): count
        for split, counts in (("validation", right), ("test", right[::-1]))
        for alpha, count in zip((0.0, 3.0), counts)
    }

    def translate(model, tokenizer, sources, beam, alpha, how=Batching(7)):
        assert how.extra == 7
        split = next(split for split in pairs if sources[0] == pairs[split][0][0])
        return [
            known[source] if i < number[split, alpha] else "nothing"
            for i, source in enumerate(sources)
        ]

    monkeypatch.setattr(multi30k, "stream_corpus", lambda corpus, split: pairs[split])
    monkeypatch.setattr(multi30k, "ALPHAS", (0.0, 3.0))
    monkeypatch.setattr(multi30k, "translate", translate)
    row = multi30k.searched(None, None, 7)
    sources, references = zip(*pairs["test"])
    scored = {
        alpha: round(
            bleu(translate(None, None, sources, 4, alpha), references).score, 2
        )
        for alpha in (0.0, 3.0)
    }
    assert row["validation"]["alpha"] == row["test"]["alpha"] == chosen
    assert row["test"]["bleu"]["score"] == scored[chosen] and list(
        row["test"]["by_alpha"].values()
    ) == [*scored.values()]
    assert round(bleu_of_counts(row["test"]["ngrams"]), 2) == scored[chosen]


def test_the_average_is_searched_with_both_limits_and_where_asked_the_last_weights_alone(
    tmp_path, monkeypatch
):
    """The average lies in the run's folder; the last of what it kept are zeros here."""
    shutil.copytree(bundled_folder(), tmp_path, dirs_exist_ok=True)
    tensors, said = load_weights(tmp_path / "model.safetensors")
    for update, part in ((900, 1), (1000, 0)):
        save_weights(
            {name: part * tensor for name, tensor in tensors.items()},
            tmp_path / "weights" / f"{update:06}.safetensors",
            said,
        )
    monkeypatch.setattr(
        multi30k,
        "searched",
        lambda model, tokenizer, extra=50: {
            "zero": not any(p.any() for p in model.parameters()),
            "extra": extra,
        },
    )
    e = Experiment("multi30k", folder=tmp_path)
    both = {"zero": False, "extra": 50, "tight": {"zero": False, "extra": 10}}
    assert multi30k.score(False, e, CPU) == both
    assert multi30k.score(True, e, CPU) == both | {"last": {"zero": True, "extra": 50}}


@pytest.mark.parametrize("changes", multi30k.ROWS.values(), ids=multi30k.name_of)
def test_a_row_changes_what_its_name_says(changes):
    plain, e = multi30k.experiment_of({}), multi30k.experiment_of(changes)
    differ = {
        name: getattr(there, name)
        for here, there in ((plain.model, e.model), (plain.training, e.training))
        for name in vars(there)
        if getattr(here, name) != getattr(there, name)
    }
    assert differ == changes and all(
        f"{name}={value}" in multi30k.name_of(changes)
        for name, value in changes.items()
    )
    assert dict(model=plain.model, training=plain.training) == recipe("multi30k")


# Alphas


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("beam, penalty", [(1, 0.0), (4, 3.0)])
def test_a_row_is_a_search_with_its_scores(beam, penalty, tmp_path, monkeypatch):
    pairs = read_corpus("bundled", "hard")[:8]
    monkeypatch.setattr(alpha, "stream_pairs", lambda e, split: iter(pairs))
    monkeypatch.setattr(alpha, "load_run", lambda folder: multi30k.experiment_of({}))
    found = alpha.measure(bundled_folder(), beam, penalty, tmp_path, "cpu")[
        "validation"
    ]
    sources, references = zip(*pairs)
    outputs = translate(*load(), sources, beam, penalty)
    assert found["bleu"] == pytest.approx(bleu(outputs, references).score, abs=0.01)
    assert found["bleu_tokenized_lowercased"] == pytest.approx(
        tokenized_bleu(outputs, references).score, abs=0.01
    )
    words = [
        sum(len(text.split()) for text in texts) for texts in (outputs, references)
    ]
    assert found["length"] == pytest.approx(words[0] / words[1], abs=1e-4)


# Speed on a GPU


def test_random_pairs_have_lengths_like_wmts():
    pairs = gpu.random_pairs(5000, vocab_size=100)
    lengths = np.array([(len(source), len(target)) for source, target in pairs])
    assert (
        27 < lengths[:, 0].mean() < 32
        and 28 < lengths[:, 1].mean() < 34
        and lengths.max() <= 152
    )
    assert np.corrcoef(lengths.T)[0, 1] > 0.9
    for source, target in pairs[:100]:
        assert (
            source[-1] == target[-1] == 2 and target[0] == 1 and min(source[:-1]) >= 3
        )
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
    assert sizes == [(500, 1), (250, 2), (125, 4)] and (
        result["accumulate"],
        result["batch_tokens"],
    ) == (4, 125)
    hours = result["hours_of_the_paper"]
    assert hours == pytest.approx(
        300_000 * result["seconds_per_update"] / 3600, abs=0.01
    )
    assert result["dollars"] == pytest.approx(
        hours * result["dollars_an_hour_assumed"], abs=0.03
    )
    assert (
        result["updates"] == 8
        and result["peak_memory_gib"] > 0
        and result["utilisation"] >= 0
    )


def run(*arguments):
    command = [
        sys.executable,
        "-m",
        "transformer.experiments.gpu",
        *map(str, arguments),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.system
def test_the_command(tmp_path):
    """A stage in a process of its own; what is done is known; a stage that is none, or that wants a GPU, is refused."""
    status, out, err = run(
        "big", "--small", "--out", tmp_path, "--folder", tmp_path / "runs"
    )
    assert status == 0 and "1 of 1 stages done" in out, err
    status, out, _ = run("--list", "--out", tmp_path)
    assert status == 0 and out.splitlines()[-2:] == ["to do  base", "done   big"]
    status, _, err = run("nothing")
    assert (
        status == 1
        and "there is no stage nothing: choose from check" in err
        and "Traceback" not in err
    )
    if not torch.cuda.is_available():
        status, _, err = run("base", "--out", tmp_path)
        assert (
            status == 1
            and "there is no GPU here" in err
            and "--small rehearses everything on a CPU" in err
        )


@pytest.mark.slow
def test_the_whole_rehearsal(tmp_path):
    """Every stage leaves its records where it is told, and is done the next time."""
    told = "--small", "--folder", tmp_path / "runs", "--out", tmp_path / "results"
    began = os.times()
    status, out, err = run(*told)
    ended = os.times()
    spent = sum(ended[2:4]) - sum(began[2:4])
    assert spent < 120  # seconds of a processor
    assert (
        status == 0 and f"{len(gpu.STAGES)} of {len(gpu.STAGES)} stages done" in out
    ), err[-2000:]
    assert {path.name for path in tmp_path.glob("results/*")} == {
        gpu.record_of(stage, tmp_path).name for stage in gpu.STAGES
    }
    assert "0 of 0 stages done" in run(*told)[1]
