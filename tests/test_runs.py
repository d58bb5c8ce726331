"""A run from data to scores: what it learns from, what it plans, what it leaves, what is kept of it."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from helpers import KILL, small_bundled

import transformer.cli as command_line
from transformer import corpora
from transformer.core import distributed
from transformer.core.distributed import rank_zero_first
from transformer.core.files import git_commit
from transformer.core.records import read_rows, under
from transformer.core.scores import bleu, score_report, scores
from transformer.core.weights import load_weights
from transformer.corpora import read_corpus
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import collate, encode_pairs
from transformer.experiments.rows import record
from transformer.fast.model import Transformer, TransformerConfig
from transformer.models.families import parameters_of
from transformer.models.pretrained import load
from transformer.models.search import translate
from transformer.runs import experiment as experiments
from transformer.runs import monitor
from transformer.runs import run as runs
from transformer.runs.batches import token_batches
from transformer.runs.experiment import (
    Experiment,
    Sentences,
    files_of,
    on_disk,
    stream_pairs,
)
from transformer.runs.folder import (
    average_last,
    check_same_data,
    hardware_in_words,
    last_update,
    load_run,
    note_resumed,
)
from transformer.runs.monitor import Forecast
from transformer.runs.own_files import Timer
from transformer.runs.planning import trial
from transformer.runs.progress import Progress, read_log
from transformer.runs.recipes import RECIPES, recipe
from transformer.runs.run import (
    epochs_of,
    make_validator,
    out_of_patience,
    run_experiment,
)
from transformer.runs.scoring import Scoring, score
from transformer.runs.training import TrainingConfig

TINY = dict(d_model=16, d_ff=32, N=1, h=2, max_positions=150)
TRAINING = TrainingConfig(
    updates=6, batch_tokens=300, warmup=10, validate_every=3, keep=2, accumulate=2
)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def files(own_files):
    """`own_files`, as an experiment's fields."""
    return dict(source_file=own_files[0], target_file=own_files[1])


def experiment(files, folder, **changes):
    return Experiment(
        **files,
        folder=folder,
        device="cpu",
        model=TransformerConfig(300, **TINY),
        training=dataclasses.replace(TRAINING, **changes),
    )


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    """The folder of a finished run. Tests only read it."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    run_experiment(
        experiment(files, folder), f"transformer train --seed 2017 --folder {folder}"
    )
    return folder


# Recipes


def test_the_papers_recipes():
    """Sections 5.1 to 5.4 and Table 3; checkpoints ten minutes apart at 0.4 and 1.0 seconds an update."""
    base, big = recipe("wmt14"), recipe("wmt14", "big")
    assert base["model"] == TransformerConfig(
        37_000, d_model=512, d_ff=2048, N=6, h=8, P_drop=0.1
    )
    assert big["model"] == TransformerConfig(
        37_000, d_model=1024, d_ff=4096, N=6, h=16, P_drop=0.3
    )
    for found, updates, seconds, keep in (
        (base, 100_000, 0.4, 5),
        (big, 300_000, 1.0, 20),
    ):
        every = round(600 / seconds)
        assert found["training"] == TrainingConfig(
            updates,
            batch_tokens=25_000,
            warmup=4000,
            epsilon_ls=0.1,
            lr_scale=1.0,
            validate_every=every,
            keep=keep,
        )


def test_every_recipe_makes_a_model():
    for name in RECIPES:
        assert parameters_of(recipe(name)["model"]) > 1e6
    assert parameters_of(recipe("tatoeba")["model"]) >= 5e6
    assert recipe("nowhere") == recipe("files") != recipe("bundled")
    assert recipe("multi30k", "tiny")["model"] == TransformerConfig.preset(
        "tiny", vocab_size=6000
    )
    assert recipe("multi30k", "tiny")["training"] == recipe("multi30k")["training"]


def test_parameters_without_a_model():
    c = TransformerConfig(300, **TINY)
    assert parameters_of(c) == sum(p.numel() for p in Transformer(c).parameters())


# Sentences


@pytest.mark.parametrize(
    "count, held_out", [(2, 1), (60, 1), (250, 2), (150_000, 1000)]
)
def test_own_files_are_split(count, held_out, tmp_path, monkeypatch):
    lines = [(f"e{n}", f"d{n}") for n in range(count)]
    monkeypatch.setattr(
        experiments, "stream_parallel", lambda source, target: iter(lines)
    )
    e = Experiment(source_file=tmp_path / "en", target_file=tmp_path / "de")
    train, validation = (
        list(stream_pairs(e, "train")),
        list(stream_pairs(e, "validation")),
    )
    assert len(validation) == held_out
    assert sorted(train + validation) == sorted(lines)


def test_reverse():
    forward, back = (
        list(stream_pairs(Experiment(reverse=r), "validation")) for r in (False, True)
    )
    assert back == [(target, source) for source, target in forward]


@pytest.mark.parametrize(
    "wrong, said",
    [
        (dict(source_file="a"), "`source_file` and `target_file` go together"),
        (dict(target_file="a"), "`source_file` and `target_file` go together"),
        (
            dict(source_file="a", target_file="b", reverse=True),
            "with your own files swap `source_file` and `target_file`",
        ),
        (dict(corpus="bundled", target_language="fr"), "are those of your own files"),
        (dict(corpus="multi31k"), "unknown corpus 'multi31k'"),
    ],
)
def test_wrong_sentences(wrong, said):
    with pytest.raises(ValueError, match=said):
        files_of(Experiment(**wrong), "train")


def test_what_goes_through_the_disk(files, monkeypatch):
    assert not on_disk(Experiment("bundled")) and not on_disk(Experiment("multi30k"))
    assert on_disk(Experiment("europarl")) and on_disk(Experiment("wmt14"))
    assert not on_disk(Experiment("wmt14", **files))
    monkeypatch.setattr(experiments, "LARGE", 100)
    assert on_disk(Experiment(**files))


def test_a_corpus_on_disk_trains_the_same_model(
    finished, files, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(experiments, "LARGE", 0)
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path / "downloads"))
    run_experiment(experiment(files, tmp_path / "run"), "a test")
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (
        finished / "model.safetensors"
    ).read_bytes()
    assert list((tmp_path / "downloads" / "encoded").iterdir())
    tokenizer, pairs = (
        Tokenizer.load(finished / "tokenizer.json"),
        list(stream_pairs(Experiment(**files), "train")),
    )
    lengths = [max(len(s), len(t) - 1) for s, t in encode_pairs(tokenizer, pairs)]
    limit = sorted(lengths)[-1] - 1
    short = experiment(files, tmp_path / "short")
    short.model = dataclasses.replace(short.model, max_positions=limit)
    said = r"of 59 own, train, sentence pairs \(.*\) need more"
    with pytest.warns(UserWarning, match=said):
        run_experiment(short, "a test")
    assert (
        f"{sum(n <= limit for n in lengths)} sentence pairs" in capsys.readouterr().out
    )


def test_validation_pairs_on_disk_that_are_too_long_are_left_out(finished, monkeypatch):
    """As from training; that they are there is said."""
    tokenizer = Tokenizer.load(finished / "tokenizer.json")
    pairs = read_corpus("bundled", "validation")[:20]
    lengths = [max(len(s), len(t) - 1) for s, t in encode_pairs(tokenizer, pairs)]
    limit = sorted(lengths)[10]
    e = Experiment(model=TransformerConfig(300, **{**TINY, "max_positions": limit}))
    with pytest.raises(ValueError, match=r"validation sentence pair . \(index .\) has"):
        make_validator(e, tokenizer, Sentences(e), 20)
    monkeypatch.setattr(experiments, "ON_DISK", ("bundled",))
    long = sum(length > limit for length in lengths)
    with pytest.warns(UserWarning, match=f"{long} of 20 validation sentence pairs"):
        validate = make_validator(e, tokenizer, Sentences(e), 20)
    assert validate(Transformer(e.model)).keys() >= {"validation_loss", "bleu"}


# The plan


def test_epochs_are_those_of_real_batches():
    """Against batches that differ in length and are padded."""
    encoded = [([5] * n, [5] * (n + 1)) for n in range(2, 30) for _ in range(40)]
    updates = len(token_batches(encoded, 1000))
    e = Experiment(training=TrainingConfig(updates=updates, batch_tokens=1000))
    assert epochs_of(e, encoded) == 1
    few = encoded[::30]  # they fill less than half of a batch
    assert epochs_of(e, few) == updates / len(token_batches(few, 1000))


@pytest.mark.parametrize("done", [0, 50])
@pytest.mark.parametrize(
    "minutes, said",
    [(None, "100 will take about 0:05:00"), (2, "40 will take about 0:02:00")],
)
def test_updates_are_timed(minutes, said, done, monkeypatch, capsys):
    """The first step, which warms up, takes ten minutes, a validation later on as long, any other step three seconds.
    done: updates before the run was resumed; they do not count."""
    steps, now = {0: 600, 12: 603}, [0.0]
    monkeypatch.setattr(monitor.time, "monotonic", lambda: now[0])
    forecast = Forecast(
        TrainingConfig(updates=100 + done, minutes=minutes and minutes + done / 10),
        {"update": done, "seconds": 6.0 * done},
        print,
    )
    for step in range(30):
        assert step != 20 or capsys.readouterr().out == ""
        now[0] += steps.get(step, 3)
        forecast(Progress(update=done + step + 1))
    assert capsys.readouterr().out == f"20 updates timed: {said} (h:mm:ss)\n"


def test_a_plan_does_not_stop_where_the_run_would():
    """Twenty updates are timed even where the run itself has time for one."""
    brief = dataclasses.replace(TRAINING, minutes=1e-6)
    sample = read_corpus("bundled", "train")[:200]
    tried = trial(TransformerConfig(300, **TINY), brief, sample)
    assert 0 < Timer(torch.device("cpu"))(tried, 300, 5) < 60


# Training


def test_validation(finished, files):
    model, tokenizer = load(str(finished))
    e = experiment(files, finished)
    kept, *pair = (finished / "held_out.tsv").read_text("utf8").strip().split("\t")
    pairs = read_corpus("bundled", "validation")[int(kept) - 1 : int(kept)]
    assert pairs == [tuple(pair)]
    with pytest.raises(
        ValueError,
        match="of your files' 1 pairs that are kept for validation, sentence pair "
        f"{kept} has",
    ):
        short = dataclasses.replace(
            e, model=dataclasses.replace(e.model, max_positions=2)
        )
        # also those that are not validated on
        make_validator(short, tokenizer, Sentences(short), 0)
    figures = make_validator(e, tokenizer, Sentences(e), 200)(model)
    outputs = translate(model, tokenizer, [pairs[0][0]], beam=1)
    assert figures["bleu"] == bleu(outputs, [pairs[0][1]]).score
    batch = collate(encode_pairs(tokenizer, pairs))
    with torch.no_grad():
        log_p = model(batch.source, batch.decoder_input).log_softmax(dim=-1)
    by_hand = -log_p.gather(2, batch.gold[:, :, None]).mean().item()
    assert figures["validation_loss"] == pytest.approx(by_hand, abs=1e-5)


def test_validation_scores_by_the_words_of_the_language(finished, monkeypatch):
    outputs = ["我今天学了很多新的东西。", "猫坐在垫子上看着我们。"]
    references = ["我今天又学了很多新的东西。", "猫坐在垫子上看着我们大家。"]
    monkeypatch.setattr(runs, "translate", lambda *_, **__: outputs)
    monkeypatch.setattr(runs, "on_disk", lambda e: False)
    model, tokenizer = load(finished)
    e = Experiment(source_file="a", target_file="b", model=model.config)
    e.target_language = "zh"
    sentences = Sentences(e)
    sentences.kept["validation"] = [(text, text) for text in references]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # another language's would be by characters
        found = make_validator(e, tokenizer, sentences, 2)(model)["bleu"]
    assert found == bleu(outputs, references, language="zh").score > 50


def test_what_a_run_says_and_leaves(files, tmp_path, capsys):
    e = experiment(files, tmp_path / "run", patience=5)
    e.target_language = "fr"
    seen = []
    run_experiment(
        e,
        "transformer train --seed 3",
        callbacks=[seen.append],
    )
    assert len(seen) == 6 and [row["update"] for row in seen[-1].log] == [3, 6]
    assert load(tmp_path / "run")[0].about.target == "fr"
    said = capsys.readouterr().out
    assert said.count("1 of 60 pairs, from all over your files, are kept from") == 1
    assert (
        "patience: the weights up to update 6 count, which has the lowest val" in said
    )
    assert (
        "59 sentence pairs, 300 types" in said
        and "plan: 6 updates" in said
        and str(tmp_path) not in said
    )
    saved = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (
        saved["command"] == "transformer train --seed 3" and saved["reverse"] is False
    )
    assert saved["held_out"] == "groups"
    assert saved["hardware"] == hardware_in_words(torch.device("cpu"))
    assert (
        f"torch {torch.__version__.split('+')[0]}, fp32" in saved["hardware"]
        and "1 thread of" in saved["hardware"]
    )


def test_the_vocabulary_knows_the_training_split_only(finished, files):
    pairs = list(stream_pairs(Experiment(**files), "train"))
    by_hand = Tokenizer.train([sentence for pair in pairs for sentence in pair], 300)
    assert json.loads((finished / "tokenizer.json").read_text()) == json.loads(
        by_hand.bpe.to_str()
    )


@pytest.mark.parametrize(
    "settings, why",
    [
        (
            dict(patience=1, updates=20),
            "patience is used up, validations without a bet",
        ),
        (dict(patience=1, updates=6), ""),
        (dict(patience=1, updates=20, minutes=0.1), ""),
        (dict(updates=20), ""),
    ],
)
def test_a_run_says_that_its_patience_was_used_up(settings, why):
    log = [
        {"update": 3, "seconds": 3.0, "validation_loss": 1.0},
        {"update": 6, "seconds": 6.0, "validation_loss": 2.0},
    ]
    said = out_of_patience(TrainingConfig(**settings), log)
    assert said.startswith(why) if why else said == ""


def test_a_run_that_stops_early_ends_with_its_best_weights(finished, tmp_path):
    e = load_run(finished)
    assert last_update(e) is None
    e.folder, e.training = tmp_path, dataclasses.replace(e.training, patience=1)
    rows = [
        {"update": 3, "loss": 1.0, "bleu": 2.0},
        {"update": 6, "loss": 0.5, "bleu": 1.0},
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert last_update(e) == 3
    assert e.log() == rows
    model, _ = load(finished)
    average_last(model, finished, 2, until=3)
    first = load_weights(finished / "weights" / "00000003.safetensors")[0]
    assert all(torch.equal(p, first[name]) for name, p in model.named_parameters())


def test_a_run_leaves_its_best_weights(files, tmp_path, capsys):
    e = experiment(files, tmp_path / "run", restore_best=True, monitor="loss")

    def stop(progress):
        if progress.update == 5:
            progress.stop("the reader has seen enough")

    run_experiment(e, "", callbacks=[stop])
    out = capsys.readouterr().out
    assert "stopped after update 5: the reader has seen enough" in out
    assert "restore_best: the weights of update 5, which has the lowest loss" in out
    model, _ = load(e.folder)
    best = load_weights(e.folder / "best" / "00000005.safetensors")[0]
    assert all(torch.equal(p, best[name]) for name, p in model.named_parameters())


def stop_at(update):
    """A callback that stops there."""
    return lambda progress: progress.update == update and progress.stop("enough")


def test_a_stopped_run_leaves_the_weights_at_which_it_stopped(files, tmp_path, capsys):
    """None are averaged, as the figure that stopped it is of these."""
    e = experiment(files, tmp_path / "run", keep=2)
    e = run_experiment(e, callbacks=[stop_at(5)])
    out = capsys.readouterr().out
    assert "the model has the weights of that update: none are averaged" in out
    model, tokenizer = load(e.folder)
    pairs, encoded = runs.validation_pairs(e, tokenizer, Sentences(e), 200)
    row = read_log(e.folder)[-1]
    assert row["stopped"] == "enough"
    loss = runs.held_out_loss(model, encoded)["validation_loss"]
    assert loss == pytest.approx(row["validation_loss"], rel=1e-5)


def test_a_run_goes_on_after_a_stop_as_if_there_had_been_none(files, tmp_path, capsys):
    whole = run_experiment(experiment(files, tmp_path / "whole", keep=2))
    e = experiment(files, tmp_path / "run", keep=2)
    run_experiment(e, callbacks=[stop_at(5)])
    capsys.readouterr()
    run_experiment(dataclasses.replace(load_run(e.folder), device="cpu"))
    assert "the average of the weights of updates" in capsys.readouterr().out
    ours = load_weights(e.folder / "model.safetensors")[0]
    theirs = load_weights(whole.folder / "model.safetensors")[0]
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("of_average", [1.5, 2.5])
def test_an_average_that_validates_worse_is_not_taken(
    of_average, files, tmp_path, capsys
):
    scores = iter([1.0, 2.0, of_average, 2.0])  # the last is measured again
    e = experiment(files, tmp_path / "run", keep=2, monitor="score")
    e = run_experiment(e, validate=lambda *_: {"score": next(scores)})
    out = capsys.readouterr().out
    assert ("the model has the last" in out) == (of_average < 2)
    assert ("the model is the average" in out) == (of_average > 2)
    model, _ = load(e.folder)
    last = load_weights(e.folder / "weights" / "00000006.safetensors")[0]
    same = all(torch.equal(p, last[name]) for name, p in model.named_parameters())
    assert same == (of_average < 2)


def test_a_run_resumes_that_asked_for_more_types_than_there_are(files, tmp_path):
    """As the command does that is given twice, the second time with --resume."""
    sizes = {"d_model": 16, "d_ff": 32, "N": 1, "h": 2}
    given = dict(**files, folder=tmp_path / "run", training={"updates": 2})
    given["device"] = "cpu"
    e = run_experiment(Experiment(**given, model={"vocab_size": 5000, **sizes}))
    assert e.model.vocab_size < 5000
    given["training"] = {"updates": 3}
    again = Experiment(**given, model={"vocab_size": 5000, **sizes}, resume=True)
    assert run_experiment(again).model.vocab_size == e.model.vocab_size
    whole = dataclasses.replace(e.model, vocab_size=4000)
    given["training"] = dataclasses.replace(e.training, updates=4)
    again = Experiment(**given, model=whole, resume=True)
    assert run_experiment(again).model.vocab_size == e.model.vocab_size


def test_weights_of_an_earlier_run_are_not_averaged_with_new_ones(
    finished, files, tmp_path
):
    """Without its checkpoint a run cannot go on, and what it kept must not mix with another's."""
    shutil.copytree(finished / "weights", tmp_path / "run" / "weights")
    with pytest.raises(
        ValueError, match="holds weights, but no checkpoint to go on from: delete"
    ):
        e = experiment(files, tmp_path / "run")
        runs.begin(e, Sentences(e), "a test", torch.device("cpu"))


def test_an_unfinished_run_is_no_model_yet(tmp_path):
    (tmp_path / "checkpoint.safetensors").write_bytes(b"of a stopped run")
    with pytest.raises(
        ValueError,
        match=r"has no model yet: save\(model, folder, tokenizer\) writes it after train",
    ):
        load(tmp_path)
    (tmp_path / "run.json").touch()
    with pytest.raises(
        ValueError,
        match=f"the run in {tmp_path} is not finished; go on with: transformer train",
    ):
        load(tmp_path)


def test_resume_with_another_direction(finished):
    e = load_run(finished)
    check_same_data(e)
    e.reverse = True
    with pytest.raises(
        ValueError, match="has reverse False, not True: resume it without that option"
    ):
        check_same_data(e)
    for changes, said in (
        (dict(seed=99), "seed"),
        (dict(batch_tokens=77), "batch tokens"),
    ):
        e = load_run(finished)
        e.training = dataclasses.replace(e.training, **changes)
        with pytest.raises(
            ValueError,
            match=f"has {said} .*, not {list(changes.values())[0]}: resume it without",
        ):
            check_same_data(e)


def test_own_files_may_move_but_not_change(files, tmp_path):
    e = experiment(files, tmp_path / "run")
    run_experiment(e, "transformer train")
    moved = {name: tmp_path / path.name for name, path in files.items()}
    for name, path in files.items():
        moved[name].write_bytes(path.read_bytes())
    e = dataclasses.replace(load_run(e.folder), **moved)
    check_same_data(e)
    note_resumed(e, "transformer train --resume", torch.device("cpu"))
    assert load_run(e.folder).source_file == moved["source_file"].absolute()
    old = json.loads((e.folder / "run.json").read_text())
    assert old.pop("sha256") and Path(old["source_file"]).is_absolute()
    with moved["target_file"].open("a") as file:
        file.write("Noch eine Zeile.\n")
    with pytest.raises(
        ValueError, match="your files are not what the run in .* began with"
    ):
        check_same_data(e)
    (e.folder / "run.json").write_text(
        json.dumps(old)
    )  # of a version that kept no checksums
    check_same_data(dataclasses.replace(e, source_file=str(e.source_file)))
    with pytest.raises(
        ValueError, match="has source file .*, not .*: resume it without"
    ):
        check_same_data(dataclasses.replace(e, **files))


def test_a_run_that_held_out_its_last_lines_is_refused(finished, tmp_path):
    """Of before whole groups were held out: what it was trained on is not known any more."""
    shutil.copytree(finished, tmp_path / "run")
    saved = json.loads((finished / "run.json").read_text())
    assert saved.pop("held_out") == "groups"
    (tmp_path / "run" / "run.json").write_text(json.dumps(saved))
    said = "the run in .* kept the last hundredth of your files from training"
    with pytest.raises(ValueError, match=said):
        run_experiment(load_run(tmp_path / "run"), "transformer train --resume")
    with pytest.raises(ValueError, match=said):
        score(Scoring(tmp_path / "run", split="validation", device="cpu"))


def test_a_run_of_before_settings_were_renamed_goes_on(finished, files, tmp_path):
    """Its run.json says factor, save_every and falling."""
    e = experiment(files, tmp_path / "run", updates=4, schedule="linear")
    run_experiment(e, "")
    path = tmp_path / "run" / "run.json"
    saved = json.loads(path.read_text())
    training = saved["training"]
    training["factor"] = training.pop("lr_scale")
    training["save_every"] = training.pop("validate_every")
    training["falling"] = training.pop("schedule") == "linear"
    path.write_text(json.dumps(saved))
    again = load_run(tmp_path / "run")
    assert again.training == e.training
    run_experiment(again, "transformer train --resume")
    assert "factor" not in path.read_text()
    assert load_run(tmp_path / "run").training == e.training


def test_large_own_files_are_divided_alike(files, monkeypatch):
    """Where they go through a folder on disk they are read again, not kept."""
    small, large = Sentences(Experiment(**files)), Sentences(Experiment(**files))
    expected = [small("train"), small("validation")]
    monkeypatch.setattr(experiments, "LARGE", 1)
    assert not isinstance(large("train"), list)
    assert [list(large(split)) for split in ("train", "validation")] == expected
    assert (large.lines("validation") == small.lines("validation")).all()


def test_an_experiment_takes_the_recipe_of_its_corpus(files):
    """It was that of the bundled corpus, whatever it was named."""
    for name in ("bundled", "multi30k", "wmt14"):
        e = Experiment(corpus=name)
        assert {"model": e.model, "training": e.training} == recipe(name)
    own = Experiment(**files, training=TRAINING)
    assert (own.model, own.training) == (recipe("files")["model"], TRAINING)
    assert Experiment("multi30k", model=own.model).model == own.model


def test_a_run_has_a_folder_even_where_none_is_named(files):
    assert Experiment().folder == Path("runs/bundled") and Experiment(
        **files
    ).folder == Path("runs/files")
    assert Experiment(folder="runs/mine").folder == Path("runs/mine")


# Through the command, with a kill, and with two processes


def command(*arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def options(files, folder):
    sizes = {"vocab_size": 300, **TINY}
    sizes = [
        word
        for name, value in sizes.items()
        for word in (f"--{name.replace('_', '-')}", value)
    ]
    return [
        "transformer",
        "train",
        "--source-file",
        files["source_file"],
        "--target-file",
        files["target_file"],
        "--folder",
        folder,
        "--device",
        "cpu",
        *sizes,
        "--updates",
        6,
        "--batch-tokens",
        300,
        "--warmup",
        10,
        "--validate-every",
        3,
        "--keep",
        2,
        "--accumulate",
        2,
        "--save-minutes",
        1e-4,
        "--P-drop",
        0.1,
        "--no-norm-first",
        "--lr-scale",
        1.0,
        "--schedule",
        "inverse_sqrt",
    ]  # as in `experiment`


@pytest.mark.system
def test_torchrun(finished, files, tmp_path):
    """Two processes through the real command: one vocabulary, one folder, and the weights of one process."""
    torchrun = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        "-m",
    ]
    run = command(*torchrun, *options(files, tmp_path / "two"))
    out, err = run.communicate(timeout=240)
    assert run.returncode == 0, err[-3000:]
    assert out.count("59 sentence pairs") == out.count("done: ") == 1
    one, two = (
        load_weights(folder / "model.safetensors")[0]
        for folder in (finished, tmp_path / "two")
    )
    assert one.keys() == two.keys() and all(
        torch.allclose(one[name], two[name], rtol=0, atol=1e-4) for name in one
    )
    alone = [
        json.loads(line)["loss"]
        for line in (finished / "log.jsonl").read_text().splitlines()
    ]
    together = [
        json.loads(line)["loss"]
        for line in (tmp_path / "two" / "log.jsonl").read_text().splitlines()
    ]
    assert together == pytest.approx(alone, abs=1e-4)


@pytest.mark.system
def test_kill_and_resume(finished, files, tmp_path):
    """SIGKILL in the middle, then --resume: the same model, bit for bit."""
    run, path = (
        command("-m", *options(files, tmp_path / "run")),
        tmp_path / "run" / "checkpoint.safetensors",
    )
    deadline = time.monotonic() + 120
    while not path.exists() and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    run.send_signal(KILL)
    run.communicate()
    assert path.exists() and not (tmp_path / "run" / "model.safetensors").exists(), (
        "killed too early or too late"
    )
    run = command(
        "-m",
        "transformer",
        "train",
        "--resume",
        "--folder",
        tmp_path / "run",
        "--device",
        "cpu",
    )
    _, err = run.communicate(timeout=240)
    assert run.returncode == 0, err[-3000:]
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (
        finished / "model.safetensors"
    ).read_bytes()


# Scores


def test_score_report():
    pairs = read_corpus("bundled", "test")[:100]
    references = [target for _, target in pairs]
    outputs = [target.replace("die", "der") for target in references]
    report, expected = score_report(outputs, references), scores(outputs, references)
    assert report.keys() == expected.keys() - {"bleu_compounds_split"}
    for name, row in report.items():
        assert row["score"] == round(expected[name].score, 2) and row[
            "margin"
        ] == round(expected[name].margin, 2)
        assert row["signature"] == expected[name].signature
    few = score_report(outputs[:99], references[:99], corpus="newstest2014")
    assert "bleu_compounds_split" in few and all(
        row["margin"] is None for row in few.values()
    )


@pytest.fixture
def scored(finished, monkeypatch):
    """The finished run as if it had been trained on the bundled corpus, scored on four sentences."""
    saved = json.loads((finished / "run.json").read_text())
    (finished / "run.json").write_text(
        json.dumps({**saved, "source_file": None, "target_file": None})
    )
    yield finished
    for path in finished.glob("scores.*"):
        path.unlink()
    (finished / "run.json").write_text(json.dumps(saved))


def test_score_and_record(scored):
    with pytest.raises(
        ValueError, match="has no scores: train, then evaluate, then record it"
    ):
        record(scored)
    score(Scoring(scored, device="cpu", average=1), most=4)
    report = score(Scoring(scored, device="cpu"), most=4)
    kept = record(scored)
    assert kept["test.average-1.sentences"] == kept["test.sentences"] == 4
    assert (
        kept["test.bleu"] == report["bleu"]["score"]
        and kept["test.bleu.signature"] == report["bleu"]["signature"]
    )
    log = [json.loads(line) for line in (scored / "log.jsonl").read_text().splitlines()]
    assert (
        kept["updates"] == 6
        and kept["tokens"] == log[-1]["tokens"]
        and kept["seed"] == 2017
    )
    assert kept["parameters"] == parameters_of(
        TransformerConfig(**under(kept, "model"))
    )
    assert kept["log.update"] == [row["update"] for row in log]
    assert (
        kept["command"] == "transformer train --seed 2017"
        and "torch" in kept["hardware"]
    )
    saved = json.loads((scored / "run.json").read_text())
    again = {
        "command": "transformer train --resume --folder somewhere/run",
        "commit": "abc1234",
        "hardware": "a CPU",
    }
    (scored / "run.json").write_text(json.dumps({**saved, "resumed": [again]}))
    assert record(scored)["resumed"] == [
        {**again, "command": "transformer train --resume"}
    ]
    assert kept["commit"] == git_commit()
    assert str(scored.parent) not in json.dumps(kept)


def test_evaluate_writes_the_record(scored, tmp_path, monkeypatch, capsys):
    small_bundled(monkeypatch, lambda split, read=corpora.read_bundled: read(split)[:3])
    monkeypatch.setattr(
        sys,
        "argv",
        [
            "transformer",
            "evaluate",
            "--folder",
            str(scored),
            "--beam",
            "1",
            "--record",
            str(tmp_path / "kept.json"),
        ],
    )
    command_line.main()
    assert read_rows(tmp_path / "kept.json") == [{"name": "kept", **record(scored)}]
    assert json.loads(capsys.readouterr().out)["sentences"] == 3


# Table 2

# The way of WMT 2014, with a true part of it


@pytest.mark.slow
def test_europarl(tmp_path, monkeypatch, capsys):
    """Tokenizer from a stream, pairs on disk, training, scores of both conventions; needs a mirror or a network."""
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path / "downloads"))
    e = Experiment(
        "europarl",
        folder=tmp_path / "run",
        device="cpu",
        model=TransformerConfig(1000, **{**TINY, "max_positions": 256}),
        training=dataclasses.replace(TRAINING, batch_tokens=2000),
    )
    run_experiment(e, "a test", count=5)
    assert (
        next((tmp_path / "downloads" / "encoded").glob("europarl-train-*/tokens.bin"))
        .stat()
        .st_size
        > 1e6
    )
    assert score(Scoring(e.folder, device="cpu"), most=5).keys() >= {
        "bleu",
        "bleu_compounds_split",
        "bleu_tokenized_lowercased",
        "chrf",
    }


def test_the_others_stop_where_the_first_could_not_finish(monkeypatch):
    """And say its reason: the first may be killed by torchrun, once one has ended, before it has spoken itself."""
    sent, done = [], []

    def exchange(words):
        if distributed.rank() == 0:
            sent[:] = words
        words[:] = sent

    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    monkeypatch.setattr(
        distributed, "distributed", SimpleNamespace(broadcast_object_list=exchange)
    )
    monkeypatch.setattr(distributed, "rank", lambda: 0)
    with pytest.raises(OSError), rank_zero_first():
        raise OSError("the disk is full")
    monkeypatch.setattr(distributed, "rank", lambda: 1)
    with (
        pytest.raises(ValueError, match="first process stopped, .*: the disk is full"),
        rank_zero_first(),
    ):
        done.append("inside")
    assert done == []
