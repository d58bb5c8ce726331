"""Four families under one budget: same size, same batches; the rate by validation; runs done once; BLEU by length."""

import json
import shutil
from dataclasses import replace
from functools import partial

import families
import pytest
import torch
from families import (
    COMPARISONS,
    Comparison,
    Material,
    assemble,
    best_rate,
    by_length,
    choose_rate,
    compare,
    length_buckets,
    minutes,
    next_rate,
    run,
    run_name,
    sized,
    spread_of,
    timed,
)

from transformer.convolution import ConvolutionalEncoderDecoder, ConvolutionConfig
from transformer.corpora import read_corpus
from transformer.scores import bleu, chrf
from transformer.search import translate
from transformer.experiments.records import read_results
from transformer.hardware import training_flops
from transformer.model import Transformer, TransformerConfig
from transformer.optimizer import learning_rate
from transformer.pretrained import build
from transformer.recurrence import RecurrenceConfig, RecurrentEncoderDecoder
from transformer.training import TrainingConfig
from transformer.weights import count_parameters, load_parameters, load_weights

pytestmark = pytest.mark.usefixtures("one_thread")
SHARED = dict(vocab_size=600, P_drop=0.0, max_positions=90)
SMALL = Comparison(
    {"rnn": RecurrenceConfig(d_model=12, N=1, attention=False, **SHARED),
     "rnn-attention": RecurrenceConfig(d_model=12, N=1, **SHARED),
     "convolution": ConvolutionConfig(d_model=12, N=1, **SHARED),
     "transformer": TransformerConfig(d_model=12, d_ff=12, N=1, h=2, **SHARED)},
    TrainingConfig(updates=4, batch_tokens=200, warmup=3, clip=1.0, keep=2, precision="fp32"), choice=2,
    rates=(0.0025, 0.005), most=2)
FAMILIES, UPDATES = list(SMALL.models), SMALL.training.updates


@pytest.fixture(scope="module")
def material():
    pairs = read_corpus("bundled", "validation")
    splits = {"train": pairs[:150], "validation": pairs[150:152], "test": pairs[156:159], "hard": pairs[162:165]}
    return Material.of("bundled", splits, 600)


brief = partial(translate, extra=4)  # so little trained, a model writes until it is stopped


@pytest.fixture(scope="module")
def done(material, tmp_path_factory):
    """All four families with two seeds: the folder of the runs, and the result file."""
    folder = tmp_path_factory.mktemp("families")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "translate", brief)
        assert compare(SMALL, material, FAMILIES, [1, 2], folder / "runs", folder / "families.json") == []
    return folder / "runs", json.loads((folder / "families.json").read_text(encoding="utf8"))


# Comparable

@pytest.mark.parametrize("corpus", COMPARISONS)
def test_families_are_of_one_size_and_share_all_else(corpus):
    comparison, few = COMPARISONS[corpus], []
    for c in comparison.models.values():
        few.append(count_parameters(build(c)))
    assert max(few) <= 1.1 * min(few)
    for name in ("vocab_size", "P_drop", "max_positions"):
        assert len({getattr(c, name) for c in comparison.models.values()}) == 1
    kinds = [(type(c), getattr(c, "attention", None)) for c in comparison.models.values()]
    assert kinds[:2] == [(RecurrenceConfig, False), (RecurrenceConfig, True)]
    assert kinds[2:] == [(ConvolutionConfig, None), (TransformerConfig, None)]
    assert len(comparison.rates) >= 3 and comparison.training.updates > comparison.choice > comparison.training.warmup


def test_a_configuration_decides_the_model():
    plain, attentive, convolutional, transformer = (build(SMALL.models[family]) for family in FAMILIES)
    assert type(plain) is type(attentive) is RecurrentEncoderDecoder
    assert plain.decoder.score is None and attentive.decoder.score is not None
    assert type(convolutional) is ConvolutionalEncoderDecoder and type(transformer) is Transformer


def test_unequal_sizes_are_refused(material):
    assert {c.vocab_size for c in sized(SMALL.models, material.tokenizer).values()} == {material.tokenizer.vocab_size}
    ratios = []
    for d_ff in range(12, 92, 8):
        models = {**SMALL.models, "transformer": replace(SMALL.models["transformer"], d_ff=d_ff)}
        vocab_size = material.tokenizer.vocab_size
        counts = [count_parameters(build(replace(c, vocab_size=vocab_size))) for c in models.values()]
        ratios.append(max(counts) / min(counts))
        if ratios[-1] > 1.1:
            with pytest.raises(ValueError, match="more than 10% .*transformer"):
                sized(models, material.tokenizer)
        else:
            sized(models, material.tokenizer)
    assert any(1.05 < ratio < 1.1 for ratio in ratios) and any(1.1 < ratio < 1.15 for ratio in ratios)


# The learning rate

def asked(merit):
    """The peaks that are tried, in order, where merit(peak) is the BLEU."""
    tried = {}
    while (rate := next_rate(tried, (1, 2, 4), 6)) is not None:
        tried[rate] = merit(rate)
    return list(tried), best_rate(tried)


def test_rates_are_tried_until_the_best_lies_inside():
    assert asked(lambda rate: -abs(rate - 2)) == ([1, 2, 4], 2)
    assert asked(lambda rate: -abs(rate - 7)) == ([1, 2, 4, 8, 16], 8)
    assert asked(lambda rate: -abs(rate - 0.6)) == ([1, 2, 4, 0.5, 0.25], 0.5)
    assert asked(lambda rate: rate)[0] == [1, 2, 4, 8, 16, 32]  # at most six
    assert best_rate({4: 1.0, 2: 1.0, 1: 0.5}) == 2


def test_validation_chooses(monkeypatch, tmp_path):
    bleus, seen = {0.00125: 10.0, 0.0025: 30.0, 0.005: 20.0}, []

    def fake_run(family, c, training, rate, material, root):
        seen.append((training.updates, training.seed))
        return tmp_path, {"validation": {"bleu": bleus[rate]}, "test": {"bleu": -bleus[rate]}}

    monkeypatch.setattr(families, "run", fake_run)
    comparison = replace(SMALL, rates=tuple(bleus), most=3)
    tried = choose_rate("rnn", SMALL.models["rnn"], comparison, 5, None, tmp_path)
    assert tried == bleus and best_rate(tried) == 0.0025 and set(seen) == {(SMALL.choice, 5)}


# Runs

def test_the_peak_is_the_rate_asked_for(done):
    root, result = done
    for family in FAMILIES:
        rate = result["families"][family]["rate"]
        saved = json.loads((root / run_name(family, rate, 2, UPDATES) / "run.json").read_text(encoding="utf8"))
        t, c = saved["training"], saved["model"]
        assert learning_rate(t["warmup"], c["d_model"], t["warmup"], t["factor"]) == pytest.approx(rate)
        assert (saved["rate"], saved["seed"], t["seed"], saved["log"][-1]["update"]) == (rate, 2, 2, UPDATES)


def test_all_families_see_the_same_tokens(done, material):
    _, result = done
    assert len({part["tokens"] for part in result["families"].values()}) == 1
    for part, c in zip(result["families"].values(), sized(SMALL.models, material.tokenizer).values()):
        pairs = material.encoded["train"]
        flops, tokens = sum(training_flops(c, len(s), len(t) - 1) for s, t in pairs), sum(len(t) - 1 for _, t in pairs)
        assert part["flops"] == pytest.approx(part["tokens"] * flops / tokens, rel=1e-3)
        assert part["parameters"] == count_parameters(build(c))
        assert part["parameters"] - part["parameters_without_embeddings"] == c.vocab_size * c.d_model


def test_the_test_score_is_that_of_the_averaged_weights(done, material):
    root, result = done
    c, part = sized(SMALL.models, material.tokenizer)["rnn-attention"], result["families"]["rnn-attention"]
    model, folder = build(c), root / run_name("rnn-attention", part["rate"], 1, UPDATES)
    load_parameters(model, load_weights(folder / "model.safetensors")[0], folder)
    sources, references = zip(*material.pairs["test"])
    expected = chrf(brief(model, material.tokenizer, sources, beam=4), references)  # BLEU is 0 after so few updates
    found = part["test"]["seeds"]["1"]
    assert found["chrf"]["score"] == round(expected.score, 2) > 0
    assert found["bleu"]["signature"].startswith("nrefs:1|case:mixed")


def test_spread():
    assert spread_of([1.0, 3.0]) == {"mean": 2.0, "deviation": 1.41}
    assert spread_of([2.5]) == {"mean": 2.5, "deviation": None}


def test_only_chosen_runs_see_the_test_split(done):
    root, result = done
    chosen = {run_name(family, part["rate"], seed, UPDATES)
              for family, part in result["families"].items() for seed in (1, 2)}
    assert {path.parent.name for path in root.glob("*/test.json")} == chosen
    assert not list(root.glob("*/checkpoint.safetensors")) and not list(root.glob("*/weights"))


def test_what_is_there_is_not_done_again(done, material, monkeypatch, tmp_path):
    root, result = done

    def never(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr(families, "train", never)
    monkeypatch.setattr(families, "translate", never)
    assert compare(SMALL, material, ["convolution"], [1, 2], root, tmp_path / "again.json") == []
    again = json.loads((tmp_path / "again.json").read_text(encoding="utf8"))
    assert again["families"] == result["families"]


def test_a_stopped_run_goes_on_and_is_averaged(done, material, monkeypatch, tmp_path):
    root, result = done
    c, rate = sized(SMALL.models, material.tokenizer)["rnn"], result["families"]["rnn"]["rate"]
    training, whole = replace(SMALL.training, seed=1), root / run_name("rnn", rate, 1, UPDATES)
    real, calls, saved = families.train, [], []

    def stopping(model, encoded, config, folder, validate, resume, quiet):
        calls.append(resume)
        log = real(model, encoded, config if resume else replace(config, updates=2), folder, validate, resume, quiet)
        saved[:] = [load_weights(path)[0] for path in sorted((folder / "weights").iterdir())]
        return log if resume else 1 / 0

    monkeypatch.setattr(families, "train", stopping)
    with pytest.raises(ZeroDivisionError):
        run("rnn", c, training, rate, material, tmp_path)
    folder, _ = run("rnn", c, training, rate, material, tmp_path)
    a, b = (load_weights(path / "model.safetensors")[0] for path in (whole, folder))
    assert calls == [False, True] and all(torch.equal(a[name], b[name]) for name in a)
    assert len(saved) == SMALL.training.keep
    for name in a:
        torch.testing.assert_close(b[name], (saved[0][name] + saved[1][name]) / 2)


def test_the_result_waits_for_all_families(done, material, tmp_path, capsys):
    root, _ = done
    some = tmp_path / "runs"
    some.mkdir()
    for family in ("rnn", "transformer"):
        shutil.copy(root / f"{family}.json", some)
    assert assemble(SMALL, "bundled", [1, 2], some, tmp_path / "x.json") == ["rnn-attention", "convolution"]
    assert "rnn-attention, convolution still to come" in capsys.readouterr().out and not (tmp_path / "x.json").exists()
    assert assemble(SMALL, "bundled", [1, 2, 3], root, tmp_path / "x.json") == FAMILIES  # of another number of seeds


def test_the_result_file(done, tmp_path):
    _, result = done
    assert result["seed"] == [1, 2]
    assert result["choice"] == {"updates": 2, "seed": 1, "split": "validation", "score": "bleu", "beam": 1}
    assert "factor" not in result["training"] and result["training"]["updates"] == UPDATES
    for part in result["families"].values():
        assert list(part["choice"]) == ["0.0025", "0.005"] and f"{part['rate']:g}" in part["choice"]
        for split in ("test", "hard"):
            found = [scores["bleu"]["score"] for scores in part[split]["seeds"].values()]
            assert part[split]["bleu"]["mean"] == pytest.approx(sum(found) / 2, abs=0.006)
            assert part[split]["bleu"]["deviation"] == pytest.approx(abs(found[0] - found[1]) / 2**0.5, abs=0.006)
            assert sum(row["sentences"] for row in part[split]["lengths"]) == 3
    (tmp_path / "families.json").write_text(json.dumps(result), encoding="utf8")
    assert read_results(tmp_path) == {}  # it is no single run


# Time

def test_minutes_count_training_only(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(families.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(families.time, "process_time", lambda: clock[0] / 2)

    def slow(model):
        clock[0] += 1000
        return {"validation_loss": 1.0}

    validate, log = timed(slow), []
    for update, seconds in ((10, 30), (20, 30), (30, 300), (40, 30), (42, 6)):  # one stretch is disturbed, one short
        clock[0] += seconds
        log.append({"update": update, **validate(None)})
    assert log[0] == {"update": 10, "validation_loss": 1.0, "wall_seconds": 30, "cpu_seconds": 15}
    assert minutes(log) == {"wall": 2.1, "cpu": 1.05}


# Length

def test_buckets_hold_about_equally_many_and_split_no_length():
    assert length_buckets([1, 2, 3, 4, 5, 6], 3) == [(1, 2), (3, 4), (5, 6)]
    assert length_buckets([5] * 9 + [9], 3) == [(5, 5), (6, 9)]
    assert length_buckets([3, 8], 6) == [(3, 3), (4, 8)] and length_buckets([7], 6) == [(7, 7)]
    lengths = [len(source.split()) for source, _ in read_corpus("bundled", "test")]
    buckets = length_buckets(lengths)
    counts = [sum(first <= n <= last for n in lengths) for first, last in buckets]
    assert len(buckets) in (5, 6) and sum(counts) == len(lengths) and max(counts) < 3 * min(counts)
    assert all(b[0] == a[1] + 1 for a, b in zip(buckets, buckets[1:]))


def test_bleu_by_length_equals_that_of_each_bucket():
    sources = ["a b c d", "a b c d e f"] * 3
    references = ["eins zwei drei vier fünf"] * 6
    outputs = ["eins zwei drei vier fünf", "eins zwei drei vier sechs"] * 3
    rows = by_length(sources, outputs, references)
    assert [(row["from"], row["to"], row["sentences"]) for row in rows] == [(4, 4, 3), (5, 6, 3)]
    assert rows[0]["bleu"] == 100 and rows[1]["bleu"] == round(bleu(outputs[1::2], references[1::2]).score, 2) < 100


# Bad input

@pytest.mark.parametrize("arguments", [["--corpus", "wmt"], ["--only", "lstm"], ["--seeds", "one"]])
def test_bad_options_are_refused(arguments, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["families.py", *arguments])
    with pytest.raises(SystemExit) as stop:
        families.main()
    assert stop.value.code == 2 and "invalid" in capsys.readouterr().err


def test_a_corpus_that_cannot_be_read_ends_in_one_sentence(monkeypatch):
    def nowhere(corpus, split):
        raise OSError("no corpus here")

    monkeypatch.setattr("sys.argv", ["families.py", "--corpus", "multi30k"])
    monkeypatch.setattr(families, "stream_corpus", nowhere)
    with pytest.raises(SystemExit, match="no corpus here"):
        families.main()
