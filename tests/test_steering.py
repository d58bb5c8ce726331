"""What steers a training: its peak, groups of parameters, the figure it watches, callbacks that stop it."""

import dataclasses
import json
import math
import warnings
from functools import partial

import pytest
import torch

from transformer import (
    Experiment,
    TrainingConfig,
    Transformer,
    TransformerConfig,
    run_experiment,
    train,
)
from transformer.core.interrupt import Interrupted
from transformer.fast.training import AdamByParts
from transformer.optimizer import peak_rate
from transformer.runs.progress import sense_of
from transformer.runs.schedules import rate_of

SMALL = TransformerConfig(
    20, d_model=16, d_ff=32, N=1, h=2, P_drop=0.1, max_positions=16
)
BRIEF = TrainingConfig(updates=12, batch_tokens=40, warmup=4, validate_every=3)
PAIRS = [([3 + n % 9, 4, 2], [1, 5, 3 + n % 9, 2]) for n in range(24)]

pytestmark = pytest.mark.usefixtures("one_thread")


def model_of(seed=1):
    torch.manual_seed(seed)
    return Transformer(SMALL)


def figures(name, values):
    """validate(model) that gives one value after the other."""
    values = iter(values)
    return lambda model: {name: next(values)}


def weights_at(update, tmp_path):
    """The weights of a whole run's update, trained without watching anything."""
    config = dataclasses.replace(BRIEF, updates=update)
    model = model_of()
    train(model, PAIRS, config, tmp_path / f"until-{update}")
    return model.state_dict()


def assert_equal(model, weights):
    for name, p in model.state_dict().items():
        assert torch.equal(p, weights[name]), name


# The peak of the learning rate


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "linear", "cosine", "constant"])
def test_a_peak_that_is_given(schedule):
    config = TrainingConfig(
        updates=100, warmup=10, learning_rate=3e-3, lr_scale=7.0, schedule=schedule
    )
    rates = [rate_of(config, update, 64) for update in range(1, 101)]
    assert max(rates) == pytest.approx(3e-3)
    assert rates[9] == pytest.approx(3e-3)
    assert rates[4] == pytest.approx(1.5e-3)


def test_a_peak_far_above_the_papers_is_warned_of():
    paper = peak_rate(16, 4)
    with pytest.warns(UserWarning, match="5 times what the paper's formula gives") as w:
        train(model_of(), PAIRS, dataclasses.replace(BRIEF, learning_rate=5 * paper))
    assert len(w) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(model_of(), PAIRS, dataclasses.replace(BRIEF, learning_rate=3 * paper))


# Groups of parameters


def halves(model):
    """The decoder begins at a tenth of the encoder's rate."""
    encoder = [p for name, p in model.named_parameters() if "encoder" in name]
    others = [p for name, p in model.named_parameters() if "encoder" not in name]
    return torch.optim.SGD(
        [{"params": encoder, "lr": 1.0}, {"params": others, "lr": 0.1}]
    )


def rates_of(make, folder=None, resume=False, updates=12):
    """The rates of an optimizer's groups, and the schedule's, after each update."""
    made, seen = [], []

    def optimizer(model):
        made.append(make(model))
        return made[0]

    def look(progress):
        groups = made[0].param_groups
        seen.append((progress.rate, [group["lr"] for group in groups]))

    config = dataclasses.replace(BRIEF, updates=updates)
    parts = dict(optimizer=optimizer, callbacks=[look])
    train(model_of(), PAIRS, config, folder, resume=resume, **parts)
    return seen


def test_groups_keep_their_ratios(tmp_path):
    seen = rates_of(halves, tmp_path, updates=6)
    seen += rates_of(halves, tmp_path, resume=True)
    assert len(seen) == 12
    for rate, groups in seen:
        assert groups == pytest.approx([rate, rate / 10])


def test_parts_of_a_model_have_their_shares():
    make = partial(AdamByParts, shares={"encoder": 0.25})
    parts = ["encoder" in name for name, _ in model_of().named_parameters()]
    for rate, groups in rates_of(make):
        assert groups == pytest.approx([rate / 4 if part else rate for part in parts])


def test_a_part_without_a_rate_stays():
    make = partial(AdamByParts, shares={"encoder": 0.0})
    model, before = model_of(), model_of().state_dict()
    train(model, PAIRS, BRIEF, optimizer=make)
    for name, p in model.named_parameters():
        assert torch.equal(p, before[name]) == name.startswith("encoder"), name


# The figure that is watched


@pytest.mark.parametrize(
    "name, sense",
    [
        ("validation_loss", "min"),
        ("perplexity", "min"),
        ("bits", "min"),
        ("TER", "min"),
        ("bleu", "max"),
        ("accuracy", "max"),
        ("f1", "max"),
        ("exact", "max"),
        ("interest", "auto"),
        ("error_score", "auto"),
    ],
)
def test_the_sense_of_a_figure(name, sense):
    assert sense_of(name) == sense


def test_a_figure_whose_name_does_not_tell_its_sense(tmp_path):
    config = dataclasses.replace(BRIEF, monitor="mistakes", patience=2)
    with pytest.raises(ValueError, match="'mistakes', .* say so by monitor_mode"):
        train(model_of(), PAIRS, config, tmp_path, figures("mistakes", [1.0]))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("settings", [dict(monitor="bleu"), dict(patience=2)])
def test_nothing_to_watch_is_told_before_training(settings, tmp_path):
    config = dataclasses.replace(BRIEF, **settings)
    with pytest.raises(ValueError, match="validat"):
        train(model_of(), PAIRS, config, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_figure_that_is_true_counts_as_1(tmp_path):
    config = dataclasses.replace(BRIEF, monitor="exact", restore_best=True)
    log = train(model_of(), PAIRS, config, validate=lambda model: {"exact": True})
    assert [row["exact"] for row in log] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "given, said",
    [
        (dict(callbacks=print), "callbacks must be a list of functions"),
        (dict(callbacks=[None]), "callbacks must be a list of functions"),
        (dict(validate=0.5), "validate must be a function"),
    ],
)
def test_what_are_no_functions(given, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        train(model_of(), PAIRS, BRIEF, tmp_path, **given)
    with pytest.raises(ValueError, match=said):
        run_experiment(Experiment(folder=tmp_path / "run"), **given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name, mode, values, last",
    [
        ("accuracy", "auto", [1.0, 3.0, 2.0, 2.0], 12),
        ("perplexity", "auto", [3.0, 1.0, 2.0, 2.0], 12),
        ("surprise", "min", [3.0, 1.0, 2.0, 2.0], 12),
        ("errors", "max", [1.0, 3.0, 2.0, 2.0], 12),
        ("bleu", "auto", [0.0, 5.0, 0.0, math.nan], 12),
    ],
)
def test_patience_goes_by_the_figure_that_is_named(name, mode, values, last, tmp_path):
    watched = dict(monitor=name, monitor_mode=mode, patience=2, restore_best=True)
    config = dataclasses.replace(BRIEF, updates=30, **watched)
    model = model_of()
    log = train(model, PAIRS, config, tmp_path / "run", figures(name, values))
    assert log[-1]["update"] == last
    assert_equal(model, weights_at(6, tmp_path))


def test_the_best_weights_are_restored_without_a_folder_too(tmp_path):
    config = dataclasses.replace(BRIEF, restore_best=True)
    model = model_of()
    train(model, PAIRS, config, validate=figures("bleu", [1.0, 9.0, 3.0, 4.0]))
    assert_equal(model, weights_at(6, tmp_path))


def test_the_best_weights_survive_a_resume(tmp_path):
    """Stopped after the best validation, and gone on with by a process that knows its folder only."""
    config = dataclasses.replace(BRIEF, restore_best=True)
    brief = dataclasses.replace(config, updates=9)
    train(model_of(), PAIRS, brief, tmp_path, figures("bleu", [1.0, 9.0, 3.0]))
    model = model_of(seed=5)
    train(model, PAIRS, config, tmp_path, figures("bleu", [4.0]), resume=True)
    assert_equal(model, weights_at(6, tmp_path))
    assert [path.stem for path in (tmp_path / "best").iterdir()] != []


def test_best_weights_that_were_not_kept(tmp_path):
    """Watched from the second half on: the best is looked for there."""
    brief = dataclasses.replace(BRIEF, updates=6)
    train(model_of(), PAIRS, brief, tmp_path, figures("bleu", [9.0, 8.0]))
    config = dataclasses.replace(BRIEF, restore_best=True)
    model = model_of(seed=5)
    train(model, PAIRS, config, tmp_path, figures("bleu", [4.0, 3.0]), resume=True)
    assert_equal(model, weights_at(9, tmp_path))


def test_a_figure_that_is_not_measured(tmp_path):
    config = dataclasses.replace(BRIEF, monitor="accuracy", patience=2)
    said = "monitor watches 'accuracy', and what is measured is .*bleu"
    with pytest.raises(ValueError, match=said):
        train(model_of(), PAIRS, config, tmp_path, figures("bleu", [1.0]))
    assert (tmp_path / "checkpoint.safetensors").is_file()


def test_a_sense_without_a_figure():
    with pytest.raises(ValueError, match="name it with monitor"):
        TrainingConfig(monitor_mode="min")
    with pytest.raises(ValueError, match="monitor_mode must be one of auto, min, max"):
        TrainingConfig(monitor="bleu", monitor_mode="up")


# Callbacks


def test_callbacks_see_each_update_and_each_validation():
    seen = []
    train(
        model_of(),
        PAIRS,
        dataclasses.replace(BRIEF, updates=7),
        validate=figures("bleu", [1.0, 2.0, 3.0]),
        callbacks=[lambda progress: seen.append((progress.update, progress.validated))],
    )
    assert [update for update, _ in seen] == [1, 2, 3, 4, 5, 6, 7]
    assert [update for update, validated in seen if validated] == [3, 6, 7]


@pytest.mark.parametrize("at", [5, 6])
def test_a_callback_stops_a_training(at, tmp_path):
    """It is validated, saved and returned; a resumed run goes on to the end of one that was not
    stopped."""

    def stop(progress):
        if progress.update == at:
            progress.stop("enough")

    log = train(
        model_of(),
        PAIRS,
        BRIEF,
        tmp_path / "run",
        figures("bleu", [1.0, 2.0, 3.0]),
        callbacks=[stop],
    )
    rows = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert [row["update"] for row in log] == [3, at]
    assert log[-1]["stopped"] == "enough"
    assert log[-1]["bleu"] == 2.0
    assert json.loads(rows[-1])["stopped"] == "enough"
    model = model_of(seed=2)
    train(model, PAIRS, BRIEF, tmp_path / "run", resume=True)
    assert_equal(model, weights_at(12, tmp_path))


def test_a_stopped_training_has_its_best_weights_too(tmp_path):
    config = dataclasses.replace(BRIEF, restore_best=True)
    model = model_of()
    train(
        model,
        PAIRS,
        config,
        validate=figures("bleu", [9.0, 2.0, 3.0]),
        callbacks=[lambda progress: progress.update == 8 and progress.stop("enough")],
    )
    assert_equal(model, weights_at(3, tmp_path))


def test_a_callback_that_fails_loses_no_update(tmp_path):
    def fail(progress):
        if progress.update == 5:
            raise KeyError("a slip in somebody's callback")

    with pytest.raises(KeyError, match="a slip"):
        train(model_of(), PAIRS, BRIEF, tmp_path / "run", callbacks=[fail])
    model = model_of(seed=2)
    updates = []
    train(
        model,
        PAIRS,
        BRIEF,
        tmp_path / "run",
        resume=True,
        callbacks=[lambda progress: updates.append((progress.update, progress.loss))],
    )
    assert updates[0][0] == 6
    assert all(math.isfinite(loss) for _, loss in updates)
    assert_equal(model, weights_at(12, tmp_path))


def test_ctrl_c_in_a_callback_is_no_stop_of_its_own(tmp_path):
    import signal

    def press(progress):
        if progress.update == 4:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted, match="stopped after update 4"):
        train(model_of(), PAIRS, BRIEF, tmp_path, callbacks=[press])
