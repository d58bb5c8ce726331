"""Recipes for own files: what they make of few and many pairs, of minutes, of options."""

import math
import signal
from dataclasses import replace

import pytest
import torch

import transformer.cli as command_line
from transformer.cli.train import limits_of
from transformer.core.interrupt import Interrupted, catch_interrupt
from transformer.core.records import read_rows
from transformer.models.families import parameters_of
from transformer.optimizer import peak_rate
from transformer.runs import own_files as own_files_of
from transformer.runs import planning
from transformer.runs.experiment import Experiment, Sentences
from transformer.runs.own_files import LEAST, PROBE
from transformer.runs.planning import SIZES, TOO_FEW, batch_of, dropout, outlook, plan
from transformer.runs.schedules import name_of, rate_of
from transformer.runs.training import TrainingConfig

pytestmark = pytest.mark.usefixtures("one_thread")
WORDS = "a red dog walks near the old river while two small children look at it".split()
LINES = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))]


def work(model):
    """Weights outside the embeddings, whose number depends on the text."""
    return parameters_of(model) - model.vocab_size * model.d_model


def planned(count, *options, time=None, flops=1e10):
    """The plan for so many pairs on a CPU of this speed."""

    def seconds(trial, batch_tokens, minutes):
        return batch_tokens * trial.training.accumulate * work(trial.model) / flops

    t = command_line.parse(
        [
            "train",
            "--source-file",
            "a",
            "--target-file",
            "b",
            "--folder",
            "none",
            *map(str, options),
        ]
    )
    limits = replace(limits_of(t), probe=PROBE, least=LEAST)
    rows = range(0, count, math.ceil(count / 100))
    sample = [(LINES[i % 15], LINES[i % 7]) for i in rows]
    return plan(count, sample, limits, time or seconds)


def epochs(said):
    return float(said.split(" epochs")[0].split()[-1])


@pytest.mark.parametrize("count", [1000, 30_000, 200_000])
@pytest.mark.parametrize("flops", [1e9, 1e10, 1e13])
def test_plans_have_5_to_100_epochs_and_a_short_warm_up(count, flops):
    e = planned(count, flops=flops)
    said = "\n".join(e.lines())
    assert 5 <= epochs(said) <= 100
    assert (
        1 <= e.training.warmup <= e.training.updates / 10
        and e.training.schedule == "linear"
    )
    assert e.training.keep <= e.training.updates / e.training.validate_every
    assert "too few" not in said and ("are few: expect" in said) == (count < 10_000)


def test_two_million_pairs_take_a_day_where_they_can():
    e = planned(2_000_000)
    seconds = e.training.batch_tokens * work(e.model) / 1e10
    assert (
        e.training.updates * seconds <= 24 * 3600
        and 5 <= epochs("\n".join(e.lines())) <= 10
    )
    assert e.training.warmup <= e.training.updates / 10
    faster = planned(2_000_000, flops=1e13)
    assert faster.model.d_model > e.model.d_model


@pytest.mark.parametrize("minutes", [2, 20, 60])
def test_minutes_hold_the_whole_schedule(minutes):
    e = planned(30_000, "--minutes", minutes)
    t = e.training
    assert 0.5 * minutes < t.updates * t.batch_tokens * work(e.model) / 6e11 < minutes
    assert (
        t.minutes == minutes
        and t.warmup <= t.updates / 10
        and 3 < t.updates / t.validate_every
    )
    assert rate_of(t, t.updates, 128, 0) < rate_of(t, t.warmup, 128, 0) / 100
    longer = planned(30_000, "--minutes", 3 * minutes)
    assert parameters_of(longer.model) >= parameters_of(e.model)


def test_a_batch_in_parts_changes_no_plan():
    """Four parts an update are four times the work, and read four times as much."""
    whole = planned(200_000, "--minutes", 120)
    parts = planned(200_000, "--minutes", 120, "--accumulate", 4)
    assert parts.model == whole.model
    read = [
        t.updates * t.accumulate * t.batch_tokens
        for t in (whole.training, parts.training)
    ]
    assert read[1] == pytest.approx(read[0], rel=0.1)


def test_options_count_more_than_the_plan():
    def refuse(*_):
        raise AssertionError("timed, though the updates are given")

    e = planned(20_000, "--d-model", 64, "--P-drop", 0.15, "--lr-scale", 1.5)
    assert (e.model.d_model, e.model.P_drop, e.training.lr_scale) == (64, 0.15, 1.5)
    big = planned(20_000, "--preset", "base", "--no-norm-first").model
    assert (big.d_model, big.norm_first) == (512, False)
    assert planned(20_000, "--preset", "base").model.norm_first
    assert planned(20_000, "--family", "recurrence").model.d_model == 128
    e = planned(20_000, "--updates", 50, "--batch-tokens", 300, time=refuse)
    assert (e.training.updates, e.training.batch_tokens, e.training.warmup) == (
        50,
        300,
        5,
    )
    assert "an update" not in "\n".join(e.lines())


def test_what_is_said_beforehand():
    assert outlook(TOO_FEW - 1, 1e6).startswith(
        "499 pairs are too few to learn a translation from"
    )
    assert "5,000 pairs are few" in outlook(5000, 1e6)
    assert "reads 2.5 million tokens a side" in outlook(10_000, 2.5e6)
    for name in ("multi30k-en-de-1", "tatoeba-en-de"):
        (row,) = read_rows(name)
        for millions, said in planning.OURS.items():
            near = min(
                range(len(row["log.bleu"])),
                key=lambda i: abs(row["log.tokens"][i] - 1e6 * millions),
            )
            assert row["log.bleu"][near] == pytest.approx(said, abs=2), name


def test_sizes_and_batches():
    sizes = [parameters_of(found.model) for found in SIZES]
    assert sizes == sorted(sizes) and [found.pairs for found in SIZES][0] == 0
    assert [dropout(n) for n in (1, 13, 62, 100)] == [0.0, 0.1, 0.2, 0.3]
    assert batch_of(0, 512, 4096) == 512 and batch_of(1e9, 512, 4096) == 4096
    assert batch_of(3000 * 1500, 512, 4096) == 1024


def test_a_trial_takes_the_time_of_updates(own_files, monkeypatch):
    e = Experiment(source_file=own_files[0], target_file=own_files[1])
    count, sample = own_files_of.sample_of(Sentences(e))
    assert count == len(sample) == 59
    tried = planning.trial(SIZES[0].model, TrainingConfig(), sample)
    time = own_files_of.Timer(torch.device("cpu"))
    assert 5 < tried.tokens_a_pair() < 40
    assert 0 < time(tried, 256, 1) < 60
    assert 0 < time(tried, 256, 1e-9) < 60
    # as in all but one process
    monkeypatch.setattr(own_files_of, "train", lambda *_, **named: [])
    assert time(tried, 256, 1) == 0

    def stopped_in_the_last_update(*_, **named):
        with catch_interrupt():
            signal.raise_signal(signal.SIGINT)
        return [{"seconds": 1.0}]

    monkeypatch.setattr(own_files_of, "train", stopped_in_the_last_update)
    with pytest.raises(Interrupted, match="stopped while updates were timed"):
        time(tried, 256, 1)
    with pytest.raises(
        ValueError, match="all sentence pairs are longer than the model's 2 posit"
    ):
        planning.trial(
            SIZES[0].model.preset("tiny", vocab_size=300, max_positions=2),
            TrainingConfig(),
            [("a long line", "a long line")],
        )


def test_a_falling_rate():
    t = TrainingConfig(updates=100, warmup=10, lr_scale=2.0, schedule="linear")
    paper = TrainingConfig(updates=100, warmup=10, lr_scale=2.0)
    rates = [rate_of(t, update, 64, 1e6) for update in range(1, 101)]
    assert rates[:10] == [rate_of(paper, update, 64, 0) for update in range(1, 11)]
    steps = [a - b for a, b in zip(rates[9:], rates[10:])]
    assert steps == pytest.approx([rates[9] / 91] * 90) and rates[-1] == pytest.approx(
        steps[0]
    )


def test_schedules():
    """All rise alike; then in a line or a cosine to 0, not at all, or by the paper's formula."""
    settings = dict(updates=109, warmup=10)
    by_name = {
        name: [
            rate_of(TrainingConfig(schedule=name, **settings), update, 64)
            for update in range(1, 110)
        ]
        for name in ("inverse_sqrt", "linear", "cosine", "constant")
    }
    peak = peak_rate(64, 10)
    rising = [peak * update / 10 for update in range(1, 11)]
    for rates in by_name.values():
        assert rates[:10] == pytest.approx(rising)
    assert by_name["inverse_sqrt"][39] == pytest.approx(peak / 2)
    assert by_name["linear"][59] == pytest.approx(peak / 2)
    assert by_name["cosine"][59] == pytest.approx(peak / 2)
    assert by_name["cosine"][34] > by_name["linear"][34]
    assert by_name["cosine"][-1] < by_name["linear"][-1] < peak / 50
    assert by_name["constant"][10:] == [peak] * 99


def steps(update):
    return 0.01 * 0.5 ** (update // 10)


def test_a_schedule_of_ones_own():
    by_name = TrainingConfig(schedule=name_of(steps))
    assert by_name.schedule == f"{__name__}:steps"
    for config in (by_name, TrainingConfig(schedule=steps)):
        assert [rate_of(config, update, 64) for update in (1, 25)] == [0.01, 0.0025]


@pytest.mark.parametrize("wrong", [None, -1.0, float("nan"), "much"])
def test_a_schedule_that_gives_no_rate(wrong):
    with pytest.raises(ValueError, match="gives no learning rate for update 7"):
        rate_of(TrainingConfig(schedule=lambda update: wrong), 7, 64)


def test_a_schedule_that_is_not_there():
    with pytest.raises(ValueError, match="import its module first .--import nowhere"):
        rate_of(TrainingConfig(schedule="nowhere:steps"), 1, 64)


def test_a_rate_falls_to_the_end_of_the_minutes_on_a_machine_that_became_slower():
    t = TrainingConfig(
        updates=100, minutes=1, warmup=10, lr_scale=2.0, schedule="linear"
    )
    peak = rate_of(t, 10, 64, 30)
    assert (
        rate_of(t, 11, 64, 45) == pytest.approx(peak / 4)
        and rate_of(t, 11, 64, 61) == 0
    )
    assert rate_of(t, 100, 64, 1) == pytest.approx(peak / 91)
