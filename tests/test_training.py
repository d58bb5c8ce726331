"""Training: an update against plain torch, accumulation, the order of data, checkpoints, resume, Ctrl-C, bad input."""

import contextlib
import dataclasses
import itertools
import json
import math
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from transformer.core.interrupt import Interrupted, catch_interrupt
from transformer.core.weights import load_weights, save_weights
from transformer.data import collate
from transformer.fast.loss import SmoothedLoss
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.training import fused_adam
from transformer.hardware import forward_flops, loss_scaler, matmul_precision
from transformer.models import families
from transformer.models.checkpoint import load_checkpoint, progress_in
from transformer.optimizer import adam, learning_rate
from transformer.runs import training
from transformer.runs.batches import token_batches
from transformer.runs.encoded import check_pairs
from transformer.runs.progress import Monitor
from transformer.runs.schedules import set_rates
from transformer.runs.training import (
    TrainingConfig,
    endless_batches,
    train,
    validation_loss,
)
from transformer.runs.update import Objective, update_weights

SMALL = TransformerConfig(
    20, d_model=16, d_ff=32, N=1, h=2, P_drop=0.1, max_positions=16
)
SCALER = loss_scaler(torch.device("cpu"), "fp32")
UNTIMED = {"seconds": 0, "tokens_per_second": 0, "utilisation": 0}
R = range(9)
BRIEF = TrainingConfig(updates=7, batch_tokens=40, warmup=4, validate_every=3)


def model_of(config=SMALL, seed=1):
    torch.manual_seed(seed)
    return Transformer(config)


def without_dropout(**changes):
    return TransformerConfig(
        20, d_model=16, d_ff=32, N=1, h=2, P_drop=0.0, max_positions=16, **changes
    )


@pytest.fixture
def encoded():
    """24 pairs of random ids, three to nine tokens long, end mark included."""
    generator = torch.Generator().manual_seed(3)

    def ids(n):
        return torch.randint(3, 20, (n,), generator=generator).tolist()

    lengths = torch.randint(2, 9, (24, 2), generator=generator).tolist()
    return [([*ids(s), 2], [1, *ids(t), 2]) for s, t in lengths]


def interrupt_at_forward(model, number):
    """Ctrl-C during the model's forward pass of this number."""
    calls = itertools.count(1)
    model.encoder.register_forward_hook(
        lambda *_: signal.raise_signal(2) if next(calls) == number else None
    )
    return model


def assert_same_checkpoint(one, other):
    a, b = (
        load_weights(one / "checkpoint.safetensors")[0],
        load_weights(other / "checkpoint.safetensors")[0],
    )
    assert a.keys() == b.keys()
    assert {name.split(".")[0] for name in a} == {"model", "optimizer"}
    assert [name for name in a if not torch.equal(a[name], b[name])] == []


# One update


def test_updates_equal_plain_torch(encoded):
    """train() against a loop with torch alone: shifted target, smoothing, mean over real tokens, Adam, schedule."""
    config = TrainingConfig(
        updates=3, batch_tokens=40, warmup=2, lr_scale=0.5, epsilon_ls=0.2, clip=0.3
    )
    ours, plain = model_of(without_dropout()), model_of(without_dropout())
    log = train(ours, encoded, config)
    optimizer, losses = (
        torch.optim.Adam(plain.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9),
        [],
    )
    for update, rows in enumerate(
        token_batches(encoded, 40, seed=config.seed * 1_000_003)[:3], 1
    ):
        batch = collate([encoded[i] for i in rows])
        logits = plain(batch.source, batch.target[:, :-1])
        loss = F.cross_entropy(
            logits.transpose(1, 2),
            batch.target[:, 1:],
            ignore_index=0,
            label_smoothing=0.2,
        )
        optimizer.zero_grad()
        loss.backward()
        norm = torch.cat([p.grad.flatten() for p in plain.parameters()]).norm()
        for p in plain.parameters():
            p.grad *= min(1.0, 0.3 / norm)
        optimizer.param_groups[0]["lr"] = (
            0.5 * 16**-0.5 * min(update**-0.5, update * 2**-1.5)
        )
        optimizer.step()
        losses.append(loss.item())
    for a, b in zip(ours.parameters(), plain.parameters()):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)
    assert log[-1]["loss"] == pytest.approx(sum(losses) / 3, abs=1e-6)


@pytest.mark.parametrize("epsilon_ls", [0.0, 0.1])
def test_halves_accumulate_to_the_whole(encoded, epsilon_ls):
    results, tokens = [], sum(len(target) - 1 for _, target in encoded)
    for cuts in ([0, 24], [0, 12, 24], [0, 3, 9, 24]):
        model = model_of(without_dropout()).double()
        batches = [collate(encoded[a:b]) for a, b in itertools.pairwise(cuts)]
        objective, parts = (
            Objective(model, SmoothedLoss(epsilon_ls)),
            [(0, batch) for batch in batches],
        )
        loss, _ = update_weights(objective, adam(model), SCALER, parts, tokens, 0.01)
        results.append(
            (
                loss.item(),
                torch.cat([p.grad.flatten() for p in model.parameters()]),
                torch.cat([p.detach().flatten() for p in model.parameters()]),
            )
        )
    for loss, gradient, weights in results[1:]:
        assert loss == pytest.approx(results[0][0], abs=1e-6)
        assert (gradient - results[0][1]).abs().max() < 1e-12
        assert (weights - results[0][2]).abs().max() < 1e-9


def test_schedule_counts_updates_not_batches(encoded):
    config = TrainingConfig(
        updates=3, batch_tokens=40, accumulate=4, warmup=10, validate_every=1
    )
    log = train(model_of(), encoded, config)
    assert [row["rate"] for row in log] == [learning_rate(n, 16, 10) for n in (1, 2, 3)]


def test_divergence_stops_before_the_step(encoded, tmp_path):
    model = model_of()
    with torch.no_grad():
        model.decoder.layers[0].feed_forward.W_1.weight[0, 0] = float("inf")
    before = {name: p.clone() for name, p in model.named_parameters()}
    with pytest.raises(
        ValueError, match="20th update in a row.*diverged.*smaller lr_scale"
    ):
        train(
            model,
            encoded,
            dataclasses.replace(BRIEF, updates=100, validate_every=50),
            tmp_path,
        )
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    assert list(tmp_path.iterdir()) == []


def resumes(encoded, tmp_path, model_of=model_of, **parts):
    """Asserts that a run with such parts goes on as if it had not been stopped; the log of the whole one."""
    whole = train(model_of(), encoded, BRIEF, tmp_path / "whole", **parts)
    with pytest.raises(Interrupted):
        train(
            interrupt_at_forward(model_of(), 4),
            encoded,
            BRIEF,
            tmp_path / "parts",
            **parts,
        )
    train(model_of(seed=2), encoded, BRIEF, tmp_path / "parts", resume=True, **parts)
    assert_same_checkpoint(tmp_path / "whole", tmp_path / "parts")
    return whole


def test_another_loss_and_another_optimizer(encoded, tmp_path):
    """They are what the loop uses, and their state is kept and found again."""

    def likelihood(output, x, gold):
        return F.cross_entropy(
            output(x).flatten(0, 1), gold.flatten(), ignore_index=0, reduction="sum"
        )

    def momentum(model):
        return torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9)

    whole = resumes(encoded, tmp_path, criterion=likelihood, optimizer=momentum)
    plain = train(
        model_of(),
        encoded,
        dataclasses.replace(BRIEF, epsilon_ls=0.0),
        optimizer=momentum,
    )
    assert whole[0]["loss"] == pytest.approx(plain[0]["loss"], abs=1e-6)


def groups(model):
    """As one often has it: matrices decay, vectors do not."""
    sides = [
        [p for p in model.parameters() if (p.dim() > 1) == matrix]
        for matrix in (True, False)
    ]
    return torch.optim.AdamW(
        [{"params": sides[0]}, {"params": sides[1], "weight_decay": 0.0}]
    )


def keys_first(model):
    """Adam with W_Q and W_K, whose shapes are equal, in the other order."""
    named = dict(model.named_parameters())
    return adam_of(
        [
            named[
                name.replace("W_Q", "W_?").replace("W_K", "W_Q").replace("W_?", "W_K")
            ]
            for name in named
        ]
    )


def adam_of(parameters):
    return torch.optim.Adam(parameters, lr=0.0)


@pytest.mark.parametrize(
    "optimizer",
    [
        groups,
        keys_first,
        lambda model: adam_of(list(model.parameters())[1:]),
        pytest.param(
            lambda model: torch.optim.Adafactor(model.parameters(), lr=0.1),
            marks=pytest.mark.skipif(
                not hasattr(torch.optim, "Adafactor"),
                reason="this torch has no Adafactor",
            ),
        ),
    ],
)
def test_an_optimizer_of_other_order_parts_or_state_resumes(
    encoded, tmp_path, optimizer
):
    resumes(encoded, tmp_path, optimizer=optimizer)


def test_a_frozen_parameter_resumes(encoded, tmp_path):
    def frozen(seed=1):
        model = model_of(seed=seed)
        model.embedding.weight.requires_grad_(False)
        return model

    resumes(encoded, tmp_path, frozen)


def test_a_model_with_buffers_is_refused(encoded):
    model = model_of()
    model.register_buffer("count", torch.zeros(()), persistent=False)
    train(model, encoded, dataclasses.replace(BRIEF, updates=1))
    model.register_buffer("mean", torch.zeros(3))
    with pytest.raises(
        ValueError, match="mean is a buffer, and only parameters are saved"
    ):
        train(model, encoded, BRIEF)


# Data


def test_stream_goes_on_from_any_place(encoded):
    whole = list(itertools.islice(endless_batches(encoded, 40, seed=5), 30))
    for k in (0, 3, 11, 29):
        epoch, index, _ = whole[k]
        assert (
            list(
                itertools.islice(endless_batches(encoded, 40, 5, epoch, index), 30 - k)
            )
            == whole[k:]
        )


def test_an_epoch_has_every_pair_once_and_each_another_order(encoded):
    epochs = {}
    for epoch, _, rows in itertools.takewhile(
        lambda item: item[0] < 3, endless_batches(encoded, 40, seed=5)
    ):
        epochs.setdefault(epoch, []).append(rows)
    assert all(
        sorted(sum(batches, [])) == list(range(24)) for batches in epochs.values()
    )
    assert epochs[0] != epochs[1] != epochs[2]


# Validation and the log


def test_validation_loss_equals_one_sentence_at_a_time(encoded):
    model, losses = model_of(), []
    for source, target in encoded:
        log_p = model.eval()(torch.tensor([source]), torch.tensor([target[:-1]]))[
            0
        ].log_softmax(dim=-1)
        losses += [-log_p[t, token].item() for t, token in enumerate(target[1:])]
    model.train()  # dropout must not count
    found = validation_loss(model, encoded, batch_tokens=30)["validation_loss"]
    assert found == pytest.approx(sum(losses) / len(losses), abs=1e-5)


def test_log_and_files(encoded, tmp_path):
    seen = []

    def validate(model):
        seen.append(model.training)
        return {"figure": len(seen)}

    config = TrainingConfig(
        updates=8, batch_tokens=40, warmup=4, validate_every=2, keep=2
    )
    log = train(model_of(), encoded, config, tmp_path, validate)
    assert seen == [False] * 4 and [row["figure"] for row in log] == [1, 2, 3, 4]
    assert [row["update"] for row in log] == [2, 4, 6, 8]
    assert [
        json.loads(line)
        for line in (tmp_path / "log.jsonl").read_text(encoding="utf8").splitlines()
    ] == log
    assert sorted(p.name for p in (tmp_path / "weights").iterdir()) == [
        "00000006.safetensors",
        "00000008.safetensors",
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "checkpoint.safetensors",
        "log.jsonl",
        "weights",
    ]


def test_figures_of_other_libraries_are_logged(encoded, tmp_path):
    figures = {
        "tensor": torch.tensor(1.5),
        "short": np.float32(2.5),
        "count": np.int64(3),
    }
    train(
        model_of(),
        encoded,
        dataclasses.replace(BRIEF, updates=1),
        tmp_path,
        lambda model: figures,
    )
    row = json.loads((tmp_path / "log.jsonl").read_text())
    assert (row["tensor"], row["short"], row["count"]) == (1.5, 2.5, 3)


def test_a_file_in_the_folders_place_is_named_at_once(encoded, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match="cannot write to the folder .*file"):
        train(interrupt_at_forward(model_of(), 1), encoded, BRIEF, tmp_path / "file")


def test_minutes_end_a_run(encoded):
    started = time.monotonic()
    config = TrainingConfig(
        minutes=0.005, batch_tokens=40, warmup=4, validate_every=10**6
    )
    log = train(model_of(), encoded, config)
    assert (
        len(log) == 1 and log[0]["seconds"] >= 0.3 and time.monotonic() - started < 10
    )


# Going on


@pytest.mark.parametrize("stop", [1, 3, 4, 6])
def test_resume_equals_never_stopped(encoded, tmp_path, stop):
    """Bit for bit, with dropout, over the end of an epoch: weights, moments, random state, log and files."""
    whole = train(model_of(), encoded, BRIEF, tmp_path / "whole", validation)
    with pytest.raises(Interrupted, match=f"stopped after update {stop}, all saved"):
        train(
            interrupt_at_forward(model_of(), stop), encoded, BRIEF, tmp_path / "parts"
        )
    parts = train(
        model_of(seed=2), encoded, BRIEF, tmp_path / "parts", validation, resume=True
    )
    assert_same_checkpoint(tmp_path / "whole", tmp_path / "parts")
    names = [
        sorted(p.name for p in (tmp_path / run / "weights").iterdir())
        for run in ("whole", "parts")
    ]
    assert names[0] == names[1]
    for a, b in zip(whole[-1:], parts[-1:], strict=True):
        assert {**a, **UNTIMED} == {**b, **UNTIMED}


def validation(model):
    return {"total": sum(p.sum().item() for p in model.parameters())}


def test_accumulated_runs_resume_too(encoded, tmp_path):
    config = TrainingConfig(
        updates=4, batch_tokens=40, accumulate=3, warmup=4, validate_every=2
    )
    train(model_of(), encoded, config, tmp_path / "whole")
    with pytest.raises(Interrupted, match="after update 3"):
        train(interrupt_at_forward(model_of(), 8), encoded, config, tmp_path / "parts")
    train(model_of(seed=2), encoded, config, tmp_path / "parts", resume=True)
    assert_same_checkpoint(tmp_path / "whole", tmp_path / "parts")


def test_a_compiled_model_and_a_plain_one_go_on_with_each_others_files(
    encoded, tmp_path
):
    train(torch.compile(model_of(), backend="eager"), encoded, BRIEF, tmp_path)
    assert progress_in(tmp_path / "checkpoint.safetensors")["update"] == BRIEF.updates
    names = {name for name, _ in model_of().named_parameters()}
    assert all(
        load_weights(path)[0].keys() == names
        for path in (tmp_path / "weights").iterdir()
    )
    longer = dataclasses.replace(BRIEF, updates=BRIEF.updates + 2)
    log = train(model_of(seed=2), encoded, longer, tmp_path, resume=True)
    assert log[-1]["update"] == longer.updates


@pytest.mark.parametrize("validate_every", [3, 100])
def test_a_stopped_run_can_be_wound_up(encoded, tmp_path, validate_every):
    """Gone on with as many updates as it has: validated and kept as if no more had been planned."""
    config = dataclasses.replace(BRIEF, validate_every=validate_every)
    with pytest.raises(Interrupted, match="after update 5"):
        train(
            interrupt_at_forward(model_of(), 5),
            encoded,
            config,
            tmp_path / "parts",
            validation,
        )
    config = dataclasses.replace(config, updates=5)
    parts = train(
        model_of(seed=2), encoded, config, tmp_path / "parts", validation, resume=True
    )
    whole = train(model_of(), encoded, config, tmp_path / "whole", validation)
    assert [{**row, **UNTIMED} for row in parts] == [
        {**row, **UNTIMED} for row in whole
    ]
    names = [
        sorted(p.name for p in (tmp_path / run / "weights").iterdir())
        for run in ("whole", "parts")
    ]
    assert names[0] == names[1]


def test_finished_run_is_left_alone(encoded, tmp_path):
    log = train(model_of(), encoded, BRIEF, tmp_path)
    before = (tmp_path / "checkpoint.safetensors").read_bytes()
    assert train(model_of(seed=2), encoded, BRIEF, tmp_path, resume=True) == log
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before


def test_stop_before_the_first_update(encoded, tmp_path, monkeypatch):
    def precision_after_ctrl_c(name):
        signal.raise_signal(signal.SIGINT)
        return matmul_precision(name)

    with (
        monkeypatch.context() as patch,
        pytest.raises(Interrupted, match="after update 0"),
    ):
        patch.setattr(training, "matmul_precision", precision_after_ctrl_c)
        train(model_of(), encoded, BRIEF, tmp_path / "parts")
    train(model_of(seed=2), encoded, BRIEF, tmp_path / "parts", resume=True)
    train(model_of(), encoded, BRIEF, tmp_path / "whole")
    assert_same_checkpoint(tmp_path / "whole", tmp_path / "parts")


def test_ctrl_c_from_outside(encoded, tmp_path):
    """A signal at no particular moment of the training, as a person sends it."""
    timer, model = (
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)),
        model_of(),
    )
    first = model.encoder.register_forward_hook(
        lambda *_: timer.start() or first.remove()
    )
    config = TrainingConfig(
        updates=10**6, batch_tokens=40, warmup=4, validate_every=10**6
    )
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted, match="all saved"):
        train(model, encoded, config, tmp_path)
    assert signal.getsignal(signal.SIGINT) is before
    model = model_of(seed=2)
    assert (
        load_checkpoint(tmp_path / "checkpoint.safetensors", model, adam(model))[
            "update"
        ]
        > 0
    )


def test_ctrl_c_without_a_folder(encoded):
    with pytest.raises(Interrupted, match="stopped after update 2$"):
        train(interrupt_at_forward(model_of(), 2), encoded, BRIEF)


def test_sigterm_saves_too(encoded, tmp_path):
    """What a computing centre sends before it takes the machine away."""
    model, calls = model_of(), itertools.count(1)
    model.encoder.register_forward_hook(
        lambda *_: signal.raise_signal(signal.SIGTERM) if next(calls) == 4 else None
    )
    before = signal.signal(
        signal.SIGTERM, lambda *_: pytest.fail("SIGTERM was not caught")
    )
    try:
        with pytest.raises(Interrupted, match="after update 4, all saved"):
            train(model, encoded, BRIEF, tmp_path)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (
        load_checkpoint(tmp_path / "checkpoint.safetensors", model, adam(model))[
            "update"
        ]
        == 4
    )


def test_the_clock_saves_between_validations(encoded, tmp_path):
    """A run that is killed without warning loses save_minutes at most, although no validation came yet."""
    model, calls = model_of(), itertools.count(1)
    model.encoder.register_forward_hook(lambda *_: next(calls) == 5 and 1 / 0 or None)
    config = dataclasses.replace(
        BRIEF, updates=100, validate_every=100, save_minutes=1e-9
    )
    with pytest.raises(ZeroDivisionError):
        train(model, encoded, config, tmp_path)
    assert (
        load_checkpoint(tmp_path / "checkpoint.safetensors", model, adam(model))[
            "update"
        ]
        == 4
    )
    assert not list(tmp_path.glob("weights/*"))


def test_a_second_ctrl_c_stops_at_once():
    before = signal.getsignal(
        signal.SIGINT
    )  # a job in the background may have been started with Ctrl-C ignored
    with pytest.raises(KeyboardInterrupt), catch_interrupt():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_note_reaches_the_block_around():
    """Of the second of two blocks inside, too, and not what comes after both."""
    with catch_interrupt() as outer:
        with catch_interrupt():
            pass
        with catch_interrupt() as inner:
            signal.raise_signal(signal.SIGINT)
        assert inner == outer == ["Ctrl-C"] and inner is not outer
    with catch_interrupt() as later:
        assert later == []


# Bad input


@pytest.fixture
def run(encoded, tmp_path):
    train(model_of(), encoded, BRIEF, tmp_path)
    return tmp_path


def test_truncated_checkpoint(encoded, run):
    path = run / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(
        ValueError, match="checkpoint.safetensors is not a whole safetensors file"
    ):
        train(model_of(), encoded, BRIEF, run, resume=True)


def test_weights_without_training_state(encoded, run):
    os.replace(run / "weights" / "00000007.safetensors", run / "checkpoint.safetensors")
    with pytest.raises(ValueError, match="holds weights but no training state"):
        train(model_of(), encoded, BRIEF, run, resume=True)


@pytest.mark.parametrize(
    "changes, match",
    [
        (dict(h=4), "h is 2 there and 4 here"),
        (dict(d_ff=64), "d_ff is 32 there and 64 here"),
        (dict(N=2), "N is 1 there and 2 here"),
    ],
)
def test_checkpoint_of_another_configuration(encoded, run, changes, match):
    config = TransformerConfig(**{**SMALL.__dict__, **changes})
    with pytest.raises(ValueError, match=f"another configuration .*{match}"):
        train(model_of(config), encoded, BRIEF, run, resume=True)


def test_a_folder_with_another_run_is_refused(encoded, tmp_path):
    """Its weights would be mixed with the new ones, and the newest by number kept."""
    train(
        model_of(),
        encoded,
        TrainingConfig(updates=2, batch_tokens=40, validate_every=1),
        tmp_path,
    )
    with pytest.raises(
        ValueError,
        match="already holds a run: go on with it .resume=True., or name another folder",
    ):
        train(
            model_of(),
            encoded,
            TrainingConfig(updates=2, batch_tokens=40, validate_every=1),
            tmp_path,
        )


def test_nothing_to_resume(encoded, tmp_path):
    with pytest.raises(FileNotFoundError, match="checkpoint.safetensors"):
        train(model_of(), encoded, BRIEF, tmp_path, resume=True)


@pytest.mark.parametrize(
    "source, target, fits", [(16, 17, True), (17, 5, False), (5, 18, False)]
)
def test_pairs_longer_than_the_positions(encoded, source, target, fits):
    pair = ([3] * (source - 1) + [2], [1] + [3] * (target - 2) + [2])
    config = TrainingConfig(updates=1, batch_tokens=10**4, warmup=4)
    if fits:
        train(model_of(), [*encoded, pair], config)
        return
    with pytest.raises(
        ValueError,
        match=r"sentence pair 25 \(index 24\) has 17 tokens, more than the model's 16 positions",
    ):
        train(model_of(), [*encoded, pair], config)


def test_a_target_that_is_a_number(encoded):
    said = r"the target of sentence pair 25 \(index 24\) is 3, not a list of ids: a single class"
    with pytest.raises(ValueError, match=said):
        train(model_of(), [*encoded, ([5, 2], 3)], BRIEF)


def test_no_pairs():
    with pytest.raises(ValueError, match="no sentence pairs"):
        train(model_of(), [], BRIEF)


@pytest.mark.parametrize(
    "name, value",
    [
        ("updates", 0),
        ("batch_tokens", 0),
        ("accumulate", 0),
        ("warmup", 0),
        ("validate_every", 0),
        ("keep", 0),
        ("updates", 2.5),
        ("keep", 1.0),
        ("warmup", True),
        ("minutes", 0),
        ("lr_scale", 0.0),
        ("lr_scale", float("nan")),
        ("clip", -1.0),
        ("epsilon_ls", 1.0),
        ("epsilon_ls", -0.1),
    ],
)
def test_bad_settings(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be .*, not {value}$"):
        TrainingConfig(**{name: value})


def test_resuming_needs_a_folder(encoded):
    with pytest.raises(ValueError, match="resume=True needs the folder"):
        train(model_of(), encoded, BRIEF, resume=True)


def test_defaults_are_the_papers():
    config = TrainingConfig()
    assert (config.updates, config.batch_tokens, config.warmup, config.epsilon_ls) == (
        100_000,
        25_000,
        4000,
        0.1,
    )
    assert (config.lr_scale, config.accumulate, config.keep, config.clip) == (
        1.0,
        1,
        5,
        None,
    )


# What goes wrong on the way, and when to stop


@pytest.mark.parametrize("optimizer", [adam, fused_adam])
def test_a_bad_update_is_skipped_and_counted(encoded, optimizer):
    """The third update's gradient is not a number: weights and moments stay, the run goes on, the log counts it."""
    model, calls, states = model_of(), itertools.count(1), []

    def spoil(module, inputs, output):
        number = next(calls)
        states.append(
            {name: p.detach().clone() for name, p in model.named_parameters()}
        )
        return output * float("nan") if number == 3 else output

    model.encoder.register_forward_hook(spoil)
    log = train(model, encoded, BRIEF, optimizer=optimizer)
    assert [row["skipped"] for row in log] == [1, 1, 1] and all(
        row["loss"] < 10 for row in log
    )
    assert all(torch.equal(states[2][name], states[3][name]) for name in states[2])
    assert not all(torch.equal(states[3][name], states[4][name]) for name in states[3])


def far_away(encoded, config, **parts):
    """A training that takes its device for one whose host should not wait."""
    trainer = training.Trainer(model_of(), encoded, config, **parts)
    trainer.device = torch.device("meta")
    return trainer


def without_times(log):
    return [row | UNTIMED for row in log]


def test_figures_read_late_make_the_same_log(encoded, monkeypatch):
    config = dataclasses.replace(BRIEF, updates=14, validate_every=6)
    monkeypatch.setattr(training, "READ_EVERY", 4)
    late, reads = far_away(encoded, config), []
    monkeypatch.setattr(
        training.Trainer,
        "read_figures",
        lambda self, read=training.Trainer.read_figures: (
            reads.append(self.progress.update) if self.waiting else None,
            read(self),
        ),
    )
    log = late.run()
    assert reads == [4, 6, 8, 12, 14]
    assert without_times(log) == without_times(train(model_of(), encoded, config))


def test_callbacks_decide_whether_figures_are_read(encoded):
    seen = []

    def losses(progress):
        seen.append(progress.loss)

    far_away(encoded, BRIEF, callbacks=[losses]).run()
    assert None not in seen
    seen.clear()
    losses.reads_figures = False
    far_away(encoded, BRIEF, callbacks=[losses]).run()
    assert seen[:2] == [None, None]
    assert seen[2] is not None  # a log line


def test_divergence_is_noticed_at_the_log_line_at_the_latest(encoded):
    config = dataclasses.replace(BRIEF, updates=100, validate_every=30)
    trainer = far_away(encoded, config)
    with torch.no_grad():
        trainer.model.decoder.layers[0].feed_forward.W_1.weight[0, 0] = float("inf")
    with pytest.raises(ValueError, match="20th update in a row.*diverged"):
        trainer.run()
    assert trainer.progress.update == 30


def test_a_rate_that_is_a_tensor_is_filled():
    rate = torch.zeros(())
    optimizer = torch.optim.SGD(model_of().parameters(), lr=rate)
    set_rates(optimizer, 0.25)
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate == 0.25


def test_log_has_the_norm_before_clipping(encoded):
    norms = [
        train(model_of(), encoded, dataclasses.replace(BRIEF, updates=1, clip=clip))[0][
            "norm"
        ]
        for clip in (None, 1e-3)
    ]
    assert norms[0] == norms[1] > 1e-3


@pytest.mark.parametrize(
    "figures, expected",
    [
        (
            [{"bleu": 3.0}, {"bleu": 5.0}, {"bleu": 5.0}, {"bleu": 4.0}, {"bleu": 9.0}],
            12,
        ),
        (
            [
                {"validation_loss": 3.0},
                {"validation_loss": 2.0},
                {"validation_loss": 2.5},
                {"validation_loss": 2.1},
            ],
            12,
        ),
        ([{"bleu": 1.0 * n} for n in range(9)], 20),
        # of too few pairs, or 0, BLEU does not tell
        ([{"bleu": 1, "validation_pairs": 9, "validation_loss": 9 - n} for n in R], 20),
        ([{"bleu": n, "validation_pairs": 9, "validation_loss": 9} for n in R], 9),
        ([{"bleu": 0.0, "validation_loss": 9 - n} for n in R], 20),
        ([{"bleu": 1, "validation_pairs": 100, "validation_loss": -n} for n in R], 9),
    ],
)
def test_patience(encoded, figures, expected):
    """Two validations without a better one end the run; without any such pair it goes on to its last update."""
    results = iter(figures)
    config = dataclasses.replace(BRIEF, updates=20, patience=2)
    log = train(model_of(), encoded, config, validate=lambda model: next(results))
    assert log[-1]["update"] == expected


@pytest.mark.parametrize(
    "figures, error, said",
    [
        ({"loss": 1.0}, ValueError, "names a figure 'loss', which the log has"),
        (
            {"bleu": "3.1"},
            TypeError,
            "gives {'bleu': '3.1'}: numbers by name are wanted",
        ),
        ({"mine": object()}, TypeError, "not JSON serializable"),
        (3.0, TypeError, "numbers by name"),
        ({"verdict": "good"}, TypeError, "numbers by name"),
    ],
)
def test_a_validation_that_fails_loses_nothing(figures, error, said, encoded, tmp_path):
    with pytest.raises(error, match=said):
        train(model_of(), encoded, BRIEF, tmp_path, lambda model: figures)
    log = train(
        model_of(seed=2), encoded, BRIEF, tmp_path, lambda model: None, resume=True
    )
    whole = train(model_of(), encoded, BRIEF)
    assert [row["update"] for row in log] == [6, 7] and log[-1]["loss"] == whole[-1][
        "loss"
    ]


def test_a_run_does_not_go_back(encoded, tmp_path):
    train(model_of(), encoded, BRIEF, tmp_path)
    with pytest.raises(
        ValueError, match="has done 7 updates: go on with at least as many, not 4"
    ):
        train(
            model_of(),
            encoded,
            dataclasses.replace(BRIEF, updates=4),
            tmp_path,
            resume=True,
        )


def test_another_optimizer_does_not_go_on(encoded, tmp_path):
    train(
        model_of(),
        encoded,
        BRIEF,
        tmp_path,
        optimizer=lambda model: torch.optim.SGD(model.parameters()),
    )
    more = dataclasses.replace(BRIEF, updates=9)
    with pytest.raises(
        ValueError,
        match="with the optimizer SGD, not Adam: resume with the one it began with",
    ):
        train(model_of(), encoded, more, tmp_path, resume=True)


@pytest.mark.parametrize("figures", [{"accuracy": 0.5}, {}])
def test_patience_needs_something_to_watch(figures, encoded, tmp_path):
    """It watched the loss of training, which falls to the end."""
    config = dataclasses.replace(BRIEF, updates=20, patience=2)
    with pytest.raises(ValueError, match="patience and restore_best go by validations"):
        train(model_of(), encoded, config, tmp_path, validate=lambda model: figures)
    assert (tmp_path / "checkpoint.safetensors").is_file()


def test_it_is_said_which_figure_decided():
    rows = [
        {"update": n, "loss": 1, "validation_loss": 3 - n, "bleu": 5 - n}
        for n in (1, 2)
    ]
    best = Monitor().best(rows)
    assert best["update"] == 1
    assert Monitor().in_words(best) == "the highest bleu, 4"
    for row in rows:
        row["validation_pairs"] = 9
    best = Monitor().best(rows)
    assert best["update"] == 2
    assert "the lowest validation loss, 1 (BLEU is of fewer" in Monitor().in_words(best)
    rows[1]["bleu"] = 0.0
    assert "(BLEU is 0)" in Monitor().in_words(Monitor().best(rows))


class Slowing(torch.optim.SGD):
    """Keeps its state in its groups, as schedule-free optimizers and others do."""

    def __init__(self, model):
        halves = [list(model.encoder.parameters()), list(model.decoder.parameters())]
        super().__init__(
            [
                {"params": p, "share": 1.0 / n, "seen": (0, 0.0)}
                for n, p in enumerate(halves, 1)
            ]
        )

    def step(self, closure=None):
        for group in self.param_groups:
            count, total = group["seen"]
            group["seen"] = count + 1, total + group["lr"] * group["share"]
            group["largest"] = max(group.get("largest", 0.0), group["lr"])
            group["lr"] = group["share"] / (1 + group["seen"][0]) + group["largest"]
        return super().step(closure)


def test_state_in_an_optimizers_groups_survives_a_resume(encoded, tmp_path):
    """20 updates are 10 and 10."""
    config = dataclasses.replace(BRIEF, updates=20)
    brief = dataclasses.replace(BRIEF, updates=10)
    train(model_of(), encoded, config, tmp_path / "whole", optimizer=Slowing)
    train(model_of(), encoded, brief, tmp_path / "parts", optimizer=Slowing)
    train(
        model_of(seed=2),
        encoded,
        config,
        tmp_path / "parts",
        None,
        True,
        optimizer=Slowing,
    )
    whole, parts = (
        load_weights(tmp_path / name / "checkpoint.safetensors")
        for name in ("whole", "parts")
    )
    assert all(torch.equal(tensor, parts[0][name]) for name, tensor in whole[0].items())
    assert whole[1]["groups"] == parts[1]["groups"]
    assert json.loads(whole[1]["groups"])[1]["seen"][0] == 20


@pytest.mark.parametrize(
    "key, value, said",
    [
        ("exp_avg", 1e38, "exp_avg of .* holds a number too large"),
        ("exp_avg", -3e38, "exp_avg of .* holds a number too large"),
        ("exp_avg_sq", 1e38, "exp_avg_sq of .* holds a number too large"),
        ("exp_avg_sq", -1e-9, "exp_avg_sq of .* holds a number below 0"),
        ("step", 1e38, "step of .* holds a number too large"),
        ("step", -1.0, "step of .* holds a number below 0"),
    ],
)
def test_a_state_that_no_training_leaves(key, value, said, encoded, tmp_path):
    train(model_of(), encoded, BRIEF, tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    tensors, metadata = load_weights(path)
    name = next(name for name in tensors if name.startswith(f"optimizer.{key}."))
    tensors[name].view(-1)[0] = value
    save_weights(tensors, path, metadata)
    with pytest.raises(ValueError, match=f"is no whole checkpoint .{said}"):
        train(model_of(), encoded, BRIEF, tmp_path, resume=True)


def test_betas_that_no_training_leaves(encoded, tmp_path):
    train(model_of(), encoded, BRIEF, tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    tensors, metadata = load_weights(path)
    groups = [
        group | {"betas": [0.9, 1e38]} for group in json.loads(metadata["groups"])
    ]
    save_weights(tensors, path, metadata | {"groups": json.dumps(groups)})
    with pytest.raises(ValueError, match="is no whole checkpoint .betas of a group is"):
        train(model_of(), encoded, BRIEF, tmp_path, resume=True)


def test_patience_keeps_the_best_weights(encoded, tmp_path):
    """Rotation must not delete them while the run waits for something better."""
    results = iter(
        [{"bleu": math.nan}, {"bleu": 3.0}, {"bleu": 5.0}, {"bleu": 4.0}, {"bleu": 1.0}]
    )
    config = dataclasses.replace(BRIEF, updates=30, patience=2, keep=2)
    log = train(model_of(), encoded, config, tmp_path, lambda model: next(results))
    assert log[-1]["update"] == 15 and Monitor().best(log)["update"] == 9
    assert [int(path.stem) for path in sorted((tmp_path / "weights").iterdir())] == [
        6,
        9,
        12,
        15,
    ]


def test_patience_survives_a_resume(encoded, tmp_path):
    config = dataclasses.replace(BRIEF, updates=20, patience=2)
    with pytest.raises(Interrupted):
        train(
            interrupt_at_forward(model_of(), 7),
            encoded,
            config,
            tmp_path,
            lambda model: {"bleu": 1.0},
        )
    resumed = train(
        model_of(), encoded, config, tmp_path, lambda model: {"bleu": 1.0}, resume=True
    )
    assert resumed[-1]["update"] == 9, "the third validation had used the patience up"


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_short_numbers_learn_as_well(encoded, precision):
    config = dataclasses.replace(BRIEF, updates=30, validate_every=30, lr_scale=0.5)
    losses = [
        train(model_of(), encoded, dataclasses.replace(config, precision=p))[-1]
        for p in ("fp32", precision)
    ]
    assert (
        losses[1]["loss"] == pytest.approx(losses[0]["loss"], rel=0.03)
        and losses[1]["skipped"] < 10
    )
    assert losses[1]["loss"] != losses[0]["loss"]


def test_medium_takes_the_other_route_in_training_and_validation_and_learns_as_well(
    encoded, exact_products
):
    seen = []

    def validate(model):
        seen.append(torch.get_float32_matmul_precision())
        return {}

    losses = [
        train(
            model_of(),
            encoded,
            dataclasses.replace(BRIEF, precision=precision),
            validate=validate,
        )[-1]["loss"]
        for precision in ("fp32", "medium")
    ]
    assert set(seen[: len(seen) // 2]) == {"highest"} and set(
        seen[len(seen) // 2 :]
    ) == {"medium"}
    assert (
        losses[1] == pytest.approx(losses[0], rel=2e-2)
        and torch.get_float32_matmul_precision() == "highest"
    )


@pytest.mark.parametrize("first, then", [("fp16", "fp32"), ("bf16", "fp16")])
def test_a_run_goes_on_in_another_precision(encoded, tmp_path, first, then):
    """As where "auto" meets another GPU: the scale of fp16 is left, or begun."""
    with pytest.raises(Interrupted):
        train(
            interrupt_at_forward(model_of(), 4),
            encoded,
            dataclasses.replace(BRIEF, precision=first),
            tmp_path,
        )
    log = train(
        model_of(),
        encoded,
        dataclasses.replace(BRIEF, precision=then),
        tmp_path,
        resume=True,
    )
    assert log[-1]["update"] == 7 and math.isfinite(log[-1]["loss"])


def test_fp16_resumes_with_its_scale(encoded, tmp_path):
    config = dataclasses.replace(BRIEF, precision="fp16")
    train(model_of(), encoded, config, tmp_path / "whole")
    with pytest.raises(Interrupted):
        train(interrupt_at_forward(model_of(), 4), encoded, config, tmp_path / "parts")
    train(model_of(seed=2), encoded, config, tmp_path / "parts", resume=True)
    assert_same_checkpoint(tmp_path / "whole", tmp_path / "parts")


# What a broken line would not have shown


def test_every_batch_of_every_update_drops_other_entries():
    places = [
        (seed, update, number)
        for seed in (1, 2)
        for update in (1, 2, 3)
        for number in range(4)
    ]
    assert len({training.batch_seed(*place) for place in places}) == len(places)


def test_fp16_clips_the_gradient_itself(encoded):
    """Not the gradient times the loss scale of 65,536."""
    norms = [
        train(model_of(), encoded, dataclasses.replace(BRIEF, updates=1, precision=p))[
            0
        ]["norm"]
        for p in ("fp32", "fp16")
    ]
    assert norms[1] == pytest.approx(norms[0], rel=0.05)


def test_a_row_is_the_mean_since_the_last_row(encoded):
    each, some = (
        train(
            model_of(),
            encoded,
            dataclasses.replace(BRIEF, updates=6, validate_every=every),
        )
        for every in (1, 3)
    )
    for name in ("loss", "norm"):
        values = [row[name] for row in each]
        assert [row[name] for row in some] == pytest.approx(
            [sum(values[:3]) / 3, sum(values[3:]) / 3]
        )


def test_a_pair_that_is_too_long_is_named_beyond_the_first_part():
    pairs = [([3, 2], [1, 2])] * 100_004 + [([3] * 20, [1, 2])]
    with pytest.raises(
        ValueError, match=r"sentence pair 100005 \(index 100004\) has 20 tokens"
    ):
        check_pairs(pairs, SMALL)


def test_an_unknown_schedule():
    with pytest.raises(ValueError, match="schedule must be inverse_sqrt.*, not 'no'"):
        TrainingConfig(schedule="no")


@pytest.mark.parametrize(
    "name", ["updates", "warmup", "keep", "lr_scale", "save_minutes"]
)
def test_most_settings_may_not_be_none(name):
    with pytest.raises(ValueError, match=f"^{name} must be .*, not None$"):
        TrainingConfig(**{name: None})
    assert TrainingConfig(minutes=None, clip=None, patience=None) == TrainingConfig()


def test_a_model_of_ones_own_needs_no_width_and_no_count_of_its_products(monkeypatch):
    """Its configuration has the five fields of `SequenceConfig`, and no other."""
    monkeypatch.setattr(families, "FAMILIES", dict(families.FAMILIES))

    @dataclasses.dataclass(frozen=True)
    class Sizes:
        vocab_size: int = 30
        max_positions: int = 20
        pad_id: int = 0
        bos_id: int = 1
        eos_id: int = 2

    class Table(nn.Module):
        """The next token from the last one."""

        def __init__(self, config):
            super().__init__()
            self.config, self.first, self.output = (
                config,
                nn.Embedding(30, 8),
                nn.Linear(8, 30),
            )

        def loss(self, batch, criterion):
            return criterion(self.output, self.first(batch.decoder_input), batch.gold)

    families.register("table", Table, Sizes)
    (row,) = train(
        Table(Sizes()),
        [([5, 2], [1, 7, 2])],
        TrainingConfig(updates=2, validate_every=2),
    )
    assert (
        row["utilisation"] >= 0
        and forward_flops(Sizes(), 3, 5, parameters=510) == 510 * 8
    )


@pytest.mark.parametrize(
    "kernel, disabled, shown",
    [(True, None, True), (True, "1", False), (False, None, False)],
)
def test_a_notebook_shows_a_bar(kernel, disabled, shown, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    if kernel:
        monkeypatch.setitem(sys.modules, "ipykernel", object())
    if disabled:
        monkeypatch.setenv("TQDM_DISABLE", disabled)
    train(model_of(), [([5, 2], [1, 7, 2])], TrainingConfig(updates=2))
    assert ("2/2" in capsys.readouterr().err) == shown


# What is trained, and what is left as it was


@pytest.mark.parametrize("validate", [None, lambda model: 1 / 0])
def test_the_generator_is_left_as_it_was_found(validate, encoded):
    """It stood in one state, so that models made after trainings began alike."""
    model = model_of()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with contextlib.suppress(ZeroDivisionError):
        train(model, encoded, BRIEF, validate=validate)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("kind, name", [("half", "fp16"), ("bfloat16", "bf16")])
def test_short_weights_are_refused(kind, name, encoded):
    """Trained so, weights became NaN, and the advice was a smaller lr_scale."""
    said = rf"embedding.weight is in torch.{kind.replace('half', 'float16')}, in which "
    with pytest.raises(ValueError, match=said + f'.*precision="{name}"'):
        train(getattr(model_of(), kind)(), encoded, BRIEF)


def test_a_model_of_which_nothing_is_trained_is_refused(encoded):
    with pytest.raises(ValueError, match="all parameters of the model are frozen"):
        train(model_of().requires_grad_(False), encoded, BRIEF)
