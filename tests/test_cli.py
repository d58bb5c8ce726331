"""The commands: what they make, and what they say when the input is wrong."""

import contextlib
import dataclasses
import errno
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers import small_bundled
from matplotlib.image import imread

import transformer.cli as command_line
from transformer import (
    Transformer,
    TransformerConfig,
    corpora,
    language,
)
from transformer.cli import demo
from transformer.cli import train as train_command
from transformer.core.files import git_commit
from transformer.core.protocol import About
from transformer.core.records import flatten, read_rows
from transformer.corpora import read_bundled
from transformer.corpora.tokenizer import Tokenizer
from transformer.experiments import rows
from transformer.models import families, pretrained, search
from transformer.models.checkpoint import average_checkpoints
from transformer.models.pretrained import load
from transformer.runs import experiment as experiments
from transformer.runs import folder as folders
from transformer.runs import parsers, recipes, scoring, training
from transformer.runs import run as runs
from transformer.runs.monitor import Forecast
from transformer.runs.scoring import Scoring, corpus_of, name_of
from transformer.runs.training import TrainingConfig

HAS_CTRANSLATE2 = importlib.util.find_spec("ctranslate2") is not None
SIZES = [
    "--vocab-size",
    "300",
    "--d-model",
    "16",
    "--d-ff",
    "32",
    "--N",
    "1",
    "--h",
    "2",
    "--max-positions",
    "150",
]
SPEED = [
    "--updates",
    "6",
    "--batch-tokens",
    "300",
    "--warmup",
    "10",
    "--validate-every",
    "3",
    "--keep",
    "2",
]


def call(*arguments, stdin=b""):
    """Run a command in this process: its exit status and what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["transformer", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            command_line.main()
            status = 0
        except SystemExit as stop:
            status = stop.code or 0
    return SimpleNamespace(status=status, out=out.getvalue(), err=err.getvalue())


def complaint(*arguments, stdin=b""):
    """The one sentence with which a command refuses its input."""
    done = call(*arguments, stdin=stdin)
    assert done.status == 2, done
    assert (
        done.err.startswith("transformer: ")
        and done.err.endswith("\n")
        and done.err.count("\n") == 1
    ), done.err
    return done.err.removeprefix("transformer: ").strip()


def contents(folder):
    """Every file of a folder with its bytes."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def files(own_files):
    """The options for `own_files`."""
    return ["--source-file", own_files[0], "--target-file", own_files[1]]


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    """The folder of a finished run. Tests only read it."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    done = call("train", *files, "--folder", folder, *SIZES, *SPEED)
    assert done.status == 0, done.err
    return folder


@pytest.fixture
def run(trained, tmp_path):
    """A copy of it, free to be damaged."""
    return shutil.copytree(trained, tmp_path / "run")


def stop_after(monkeypatch, updates):
    """Press Ctrl-C during an update."""
    done, update_weights = [], training.update_weights

    def update_and_interrupt(*arguments):
        done.append(True)
        if len(done) == updates:
            signal.raise_signal(signal.SIGINT)
        return update_weights(*arguments)

    monkeypatch.setattr(training, "update_weights", update_and_interrupt)


# What the commands make


def test_train(trained):
    assert {
        "checkpoint.safetensors",
        "config.json",
        "held_out.tsv",
        "log.jsonl",
        "model.safetensors",
        "run.json",
        "tokenizer.json",
        "weights",
    } == {path.name for path in trained.iterdir()}
    log = [
        json.loads(line) for line in (trained / "log.jsonl").read_text().splitlines()
    ]
    assert [row["update"] for row in log] == [3, 6] and {
        "loss",
        "validation_loss",
        "bleu",
    } <= log[0].keys()
    model, tokenizer = pretrained.load(trained)
    expected = TransformerConfig(
        300, 16, 32, 1, 2, P_drop=0.0, norm_first=True, max_positions=150
    )
    assert model.config == expected and tokenizer.vocab_size == 300


def test_the_model_is_the_average_of_the_last_checkpoints_if_that_is_no_worse(trained):
    e = folders.load_run(trained)
    _, tokenizer = pretrained.load(trained)
    validate = runs.make_validator(e, tokenizer, experiments.Sentences(e), 200)
    kept = sorted((trained / "weights").iterdir())
    average, last = average_checkpoints(kept), average_checkpoints(kept[-1:])

    def score(weights):
        model = pretrained.load_model(trained)
        model.load_state_dict(weights, strict=False)
        return folders.monitor_of(e.training).score(validate(model))

    expected = average if score(average) >= score(last) else last
    for name, parameter in pretrained.load_model(trained).named_parameters():
        assert torch.equal(parameter, expected[name])


def test_an_interrupted_run_ends_like_a_whole_one(
    trained, files, tmp_path, monkeypatch
):
    folder = tmp_path / "a run"
    stop_after(monkeypatch, 4)
    done = call("train", *files, "--folder", folder, *SIZES, *SPEED)
    monkeypatch.undo()
    assert done.status == 2 and "Traceback" not in done.err
    assert done.err.splitlines()[-1] == (
        f"transformer: stopped after update 4, all saved in {folder}; "
        f"go on with: transformer train --resume --folder '{folder}'"
    )
    assert (
        f"the run in {folder} is not finished; go on with: transformer train --resume --folder '{folder}'"
        in complaint("translate", "Hello.", "--folder", folder)
    )
    done = call("train", "--resume", "--folder", folder)
    assert done.status == 0, done.err
    for name in (
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "weights/00000003.safetensors",
    ):
        assert (folder / name).read_bytes() == (trained / name).read_bytes(), name


def test_a_run_remembers_how_it_went_on(run, files, monkeypatch):
    """Settings that a resumed run changed are those of run.json from then on, and each way of going on is noted."""
    left = []

    class Silent(Forecast):
        def __init__(self, training, done):
            super().__init__(training, done, say=lambda text: None)
            left.append(self.updates)

    monkeypatch.setattr(runs, "Forecast", Silent)
    assert (
        call("train", "--resume", "--folder", run, "--updates", "6").status == 0
    )  # all are done
    for updates in ("7", "9"):
        assert (
            call(
                "train",
                "--resume",
                "--folder",
                run,
                *files,
                *SIZES,
                *SPEED,
                "--updates",
                updates,
            ).status
            == 0
        )
    saved = json.loads((run / "run.json").read_text())
    assert saved["training"]["updates"] == 9 and left == [0, 1, 2]
    assert [" --updates " in again["command"] for again in saved["resumed"]] == [
        True,
        True,
        True,
    ]
    assert all(again["hardware"] and again["commit"] for again in saved["resumed"])
    assert call("evaluate", "--folder", run, *files).status == 0
    kept = rows.record(run)
    assert kept["updates"] == 9 and kept["corpus"] == "own.en"
    assert kept["resumed"] == [
        {**again, "command": rows.public(again["command"])}
        for again in saved["resumed"]
    ]
    assert str(run) in str(saved["resumed"]) and str(run) not in str(kept["resumed"])
    again = "train", "--resume", "--folder", run
    assert call(*again, "--target-language", "fr").status == call(*again).status == 0
    assert load(run)[0].about.target == "fr"
    assert "its 0.001 minutes are used up" in call(*again, "--minutes", "0.001").out


def test_a_trial_of_another_search_leaves_the_scores_alone(run, files):
    """Nor does a file of the name of a split."""
    for options in ([], ["--alpha", "0"], ["--beam", "1"]):
        assert call("evaluate", "--folder", run, *files, *options).status == 0
    found = sorted(path.name for path in run.glob("scores.*"))
    name = re.match(
        rf"scores\.files\.{files[1].parent.name}-[0-9a-f]{{6}}\.own\.", found[0]
    )[0]
    assert found == [
        f"{name}beam-1-alpha-0.6.json",
        f"{name}beam-4-alpha-0.json",
        f"{name}json",
    ]


def test_files_of_one_name_in_folders_of_one_name_are_kept_apart(tmp_path):
    model, _ = load(None)
    names = {
        name_of(
            Scoring(tmp_path, source_file=f"{tmp_path}/{place}/data/own.en"),
            model,
            None,
            "bundled",
        )
        for place in "ab"
    }
    assert len(names) == 2 and all(name.startswith("files.data-") for name in names)


def test_the_corpus_to_score_on(run):
    """That of the card of a model that comes along; what only holds a model has none."""
    assert [
        corpus_of(Scoring(folder), None) for folder in (None, "bundled", "tatoeba")
    ] == ["bundled", "bundled", "tatoeba"]
    (run / "run.json").unlink()
    assert complaint("evaluate", "--folder", run).endswith(
        "says what its model learned from: name a --corpus, or --source-file and --target-file"
    )


def test_names_of_scores_are_short_and_tell_the_language(tmp_path):
    model, _ = load(None)
    name = name_of(
        Scoring(
            tmp_path, source_file=tmp_path / (200 * "a") / (200 * "b"), language="fr"
        ),
        model,
        None,
        "x",
    )
    assert name.endswith("b.fr") and len(name) < 200


def test_a_model_in_a_folder_that_cannot_be_written_to(run, files, monkeypatch):
    def refuse(path, data):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(scoring, "write_json", refuse)
    done = call("evaluate", "--folder", run, *files)
    assert done.status == 0 and json.loads(done.out)["sentences"] == 60
    assert (
        "these scores are not saved: " in done.err and "Permission denied" in done.err
    )


def test_an_average_is_of_weights_before_the_best_validation(run, files, monkeypatch):
    monkeypatch.setattr(folders, "last_update", lambda e: 0)
    assert complaint("evaluate", "--folder", run, *files, "--average", "1").endswith(
        "has kept 0 weights"
    )


def test_evaluate(run, files):
    done = call("evaluate", "--folder", run, *files, "--beam", "2")
    scores = json.loads(done.out)
    assert done.status == 0 and scores == json.loads(
        next(run.glob("scores.files.*.own.beam-2-alpha-0.6.json")).read_text()
    )
    assert (
        scores["sentences"] == 60 and scores["beam"] == 2 and scores["language"] == "de"
    )
    names = {"bleu", "bleu_lowercased", "bleu_tokenized_lowercased", "chrf"}
    assert names <= scores.keys() and "bleu_compounds_split" not in scores
    assert all(
        0 <= scores[name]["score"] <= 100 and scores[name]["margin"] is None
        for name in names
    )  # too few
    assert (
        "case:mixed" in scores["bleu"]["signature"]
        and "case:lc" in scores["bleu_lowercased"]["signature"]
    )


@pytest.mark.parametrize("count", [0, 9])
def test_an_average_of_weights_that_were_not_kept(run, files, count):
    said = complaint("evaluate", "--folder", run, *files, "--average", str(count))
    assert f"--average {count}: the run in " in said and "has kept " in said


@pytest.mark.parametrize(
    "options, expected",
    [([], (3, 1.25)), (["--alpha", "0"], (3, 0.0)), (["--beam", "2"], (2, 1.25))],
)
def test_beam_and_alpha_are_those_of_the_model(run, monkeypatch, options, expected):
    """The same in Python, in the command line, with one text or in an n-best list."""
    config, asked = json.loads((run / "config.json").read_text()), []
    config["about"].update(beam=3, alpha=1.25)
    (run / "config.json").write_text(json.dumps(config))
    beam_search = search.timed_beam_search
    monkeypatch.setattr(
        search,
        "timed_beam_search",
        lambda *arguments, **settings: (
            asked.append(arguments[2:4]) or beam_search(*arguments, **settings)
        ),
    )
    line = call("translate", "Hello.", "--folder", run, *options).out
    assert (
        call("translate", "Hello.", "--folder", run, *options, "--n-best", "2").status
        == 0
    )
    assert asked == [expected, expected]
    if not options:
        model, tokenizer = pretrained.load(run)
        assert (
            line
            == " ".join(search.translate(model, tokenizer, ["Hello."])[0].splitlines())
            + "\n"
        )


@pytest.mark.parametrize(
    "family, options",
    [
        ("recurrence", ["--cell", "lstm"]),
        ("convolution", ["--k", "5"]),
        ("mine", ["--d-ff", "24"]),
        ("language", ["--prefix", "--norm-first"]),
    ],
)
def test_every_kind_of_model_is_trained_alike(
    family, options, files, tmp_path, monkeypatch
):
    """Trained, interrupted, resumed, saved, loaded, translated with, evaluated; "mine" is a user's own."""
    monkeypatch.setattr(families, "FAMILIES", dict(families.FAMILIES))

    class Mine(TransformerConfig):
        pass

    families.register("mine", Transformer, Mine)
    both = family == "language"  # source and target share the positions
    sizes = [
        "--vocab-size",
        "300",
        "--d-model",
        "16",
        "--N",
        "1",
        "--max-positions",
        "400" if both else "150",
    ]
    sizes += ["--h", "2"] * (family in ("mine", "language"))
    folder, arguments = (
        tmp_path / "run",
        ["--family", family, *files, *sizes, *options, *SPEED],
    )
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 4)
        assert (
            call(
                "train", *arguments, "--folder", folder, "--target-language", "fr"
            ).status
            == 2
        )
    assert call("train", "--resume", "--folder", folder).status == 0
    model, tokenizer = pretrained.load(folder)
    assert families.family_of(model) == family and model.about == About("en", "fr")
    value = str(getattr(model.config, options[0].strip("-").replace("-", "_")))
    assert value == ("True" if options[1].startswith("-") else options[1])
    line = call("translate", "The cat sleeps.", "--folder", folder).out
    assert (
        line
        == " ".join(
            search.translate(model, tokenizer, ["The cat sleeps."])[0].splitlines()
        )
        + "\n"
    )
    done = call("evaluate", "--folder", folder, *files)
    assert done.status == 0 and json.loads(done.out)["language"] == "fr"


def test_an_option_of_another_kind_of_model(files):
    said = complaint("train", "--family", "recurrence", *files, "--h", "2")
    assert said.startswith(
        "--h is no option of --family recurrence: it has --N, --P-drop, --attention, "
    )
    assert complaint("train", "--family", "lamp").startswith(
        "unknown family of models 'lamp': choose one of "
    )


def test_a_run_is_not_resumed_with_another_kind_of_model(run):
    said = complaint("train", "--resume", "--folder", run, "--family", "recurrence")
    assert re.fullmatch(
        "the run in .* has family transformer, not recurrence: resume it without .*",
        said,
    )


def test_evaluate_wants_files_or_validation_where_the_model_was_trained_on_files(run):
    said = complaint("evaluate", "--folder", run)
    assert said.endswith(
        "was trained on your own files: name those to score it on with --source-file and --target-file, "
        "or take --split validation, the pairs that it kept from training"
    )


def test_evaluate_on_what_was_kept_from_training(run, files, tmp_path):
    """The same scores as those of a file that has the last of the 60 lines alone."""
    done = call("evaluate", "--folder", run, "--split", "validation")
    assert done.status == 0 and json.loads(
        (run / "scores.validation.json").read_text()
    ) == json.loads(done.out)
    for number, name in ((1, "en"), (3, "de")):
        (tmp_path / name).write_text(
            files[number].read_text(encoding="utf8").splitlines()[-1] + "\n",
            encoding="utf8",
        )
    last = call(
        "evaluate",
        "--folder",
        run,
        "--source-file",
        tmp_path / "en",
        "--target-file",
        tmp_path / "de",
    )
    kept, named = json.loads(done.out), json.loads(last.out)
    assert (
        kept["sentences"] == 1
        and kept["corpus"] == "own.en"
        and kept["split"] == "validation"
    )
    for name in ("corpus", "split", "seconds"):
        del kept[name], named[name]
    assert kept == named
    said = complaint("evaluate", "--folder", run, "--split", "validation", "--reverse")
    assert said.startswith("--reverse turns a corpus round")


def test_what_was_kept_from_files_that_lie_elsewhere_now(run, files, tmp_path):
    """Files named for the validation of a run on them are cut as the run cut them, or refused."""
    moved = [shutil.copy(path, tmp_path / path.name) for path in files[1::2]]
    named = "--source-file", moved[0], "--target-file", moved[1]
    done = call("evaluate", "--folder", run, "--split", "validation", *named)
    assert done.status == 0 and json.loads(done.out)["sentences"] == 1
    assert complaint("evaluate", "--folder", run, "--split", "exam", *named).startswith(
        "your own files have no split exam: "
    )
    assert complaint("evaluate", "--split", "validation", *named).startswith(
        "your own files have no split validation: "
    )
    Path(moved[0]).write_text(
        Path(moved[0]).read_text(encoding="utf8").replace("a", "e", 1), encoding="utf8"
    )
    assert complaint(
        "evaluate", "--folder", run, "--split", "validation", *named
    ).startswith("your files are not what")


def test_evaluate_names_what_a_folder_lacks(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    missing = (
        f"no file {Path('nowhere', 'config.json')}: name the folder of a trained model"
    )
    assert complaint("evaluate", "--folder", "nowhere") == missing
    said = complaint("evaluate", "--folder", "tatoeba", "--record", "new/row.json")
    assert (
        said
        == "--record is of a run with its log, and tatoeba has none: name the folder of a training"
    )


def test_what_was_kept_from_training_is_known_by_its_checksum(files, tmp_path):
    own = [shutil.copy(path, tmp_path / path.name) for path in files[1::2]]
    before = Path(own[0]).read_text(encoding="utf8")
    folder = tmp_path / "run"
    done = call(
        "train",
        "--source-file",
        own[0],
        "--target-file",
        own[1],
        "--folder",
        folder,
        *SIZES,
        *SPEED,
    )
    assert done.out.endswith(
        f"Next: transformer evaluate --folder {folder} --split validation\n"
    )
    Path(own[0]).write_text(before.replace("a", "e", 1), encoding="utf8")
    assert complaint(
        "evaluate", "--folder", folder, "--split", "validation"
    ).startswith("your files are not what")


def test_chat(trained):
    """A line in, its answer out; what was said before counts until an empty line."""
    first, second = "Translate into German: The cat sleeps.", "Which word is Katze?"
    done = call("chat", stdin=f"{first}\n{second}\n\n{first}".encode())
    lines = done.out.splitlines()
    assert done.status == 0 and len(lines) == 3 and lines[0] == lines[2], done.err
    model, tokenizer = pretrained.load("chat")
    chat = language.Chat(model, tokenizer)
    assert lines[:2] == [chat.say(first), chat.say(second)]
    drawn = [
        call("chat", "--temperature", "3", "--seed", seed, stdin=first.encode()).out
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert (
        "holds a model of the family transformer: chat needs a language model"
        in complaint("chat", "--folder", trained)
    )
    bot = pretrained.bundled_folder("chat")
    assert "this model has no attention of the kind encoder, cross" in complaint(
        "attend", "Hello.", "--folder", bot
    )
    long = call("chat", stdin=b"cat " * 600)
    assert long.status == 2 and long.err.endswith("positions: shorten the prompt\n")


def test_a_parser(monkeypatch, tmp_path):
    """A treebank's sentences go in, their linearised trees come out; scores are of brackets, with the paper's beam."""
    pairs = [
        (f"the {noun} sings", f"( (S (NP-SBJ (DT the) (NN {noun})) (VP (VBZ sings))) )")
        for noun in "abcdefgh"
    ]
    for module in (parsers, scoring):
        monkeypatch.setattr(module, "read_corpus", lambda *_: pairs)
    monkeypatch.setattr(parsers, "stream_corpus", lambda *_: iter(pairs))
    monkeypatch.setattr(experiments, "corpus_paths", lambda *_: [])
    folder, result = tmp_path / "run", tmp_path / "result.json"
    assert (
        call(
            "train", "--corpus", "treebank_nltk", "--folder", folder, *SIZES, *SPEED
        ).status
        == 0
    )
    assert (
        len(
            Tokenizer.load(folder / "tokenizer.json").encode(
                "S_ NP_ DT NN _NP VP_ VBZ _VP _S"
            )
        )
        == 9
    )
    done = call("evaluate", "--folder", folder, "--record", result)
    assert done.status == 0, done.err
    scores = json.loads((folder / "scores.test.json").read_text())
    assert (scores["corpus"], scores["beam"], scores["alpha"], scores["sentences"]) == (
        "treebank_nltk",
        21,
        0.3,
        8,
    )
    assert (
        0 <= scores["f1"] <= 100
        and 0 <= scores["valid_trees"] <= 100
        and "bleu" not in scores
    )
    (kept,) = read_rows(result)
    assert kept["test.f1"] == scores["f1"] and len(kept["log.f1"]) == 2


def test_translate(trained):
    one = call("translate", "The cat sleeps.", "--folder", trained)
    assert one.status == 0 and one.out.count("\n") == 1 and not one.err
    lines = call(
        "translate", "--folder", trained, stdin=b"The cat sleeps.\r\n\nThe dog sleeps."
    )
    assert (
        lines.status == 0
        and lines.out.count("\n") == 3
        and lines.out.startswith(one.out)
    )
    assert call("translate", "--folder", trained).out == ""
    assert (
        call(
            "translate", "The cat sleeps.\r\n\nThe dog sleeps.", "--folder", trained
        ).out
        == lines.out
    )


def test_translate_says_which_of_its_models_it_used():
    known, everyday = (
        call("translate", "The cat sleeps."),
        call("translate", "I am tired.", "--folder", "tatoeba"),
    )
    assert known.out == "Die Katze schläft.\n" and everyday.out == "Ich bin müde.\n"
    assert known.err.startswith("model: bundled (") and "--folder tatoeba" in known.err
    assert (
        everyday.err.startswith("model: tatoeba (")
        and "--folder bundled" in everyday.err
    )
    assert (
        call("translate", "--folder", "tatoeba", stdin=b"I am tired.").out
        == everyday.out
    )


def test_a_folder_goes_before_a_name(tmp_path, monkeypatch, trained):
    """Somebody's own folder of the name of a model that comes along; scoring the latter makes none."""
    monkeypatch.chdir(tmp_path)
    small_bundled(monkeypatch, lambda split: read_bundled(split)[:3])
    done = call("evaluate", "--folder", "tatoeba", "--corpus", "bundled")
    assert json.loads(done.out)["sentences"] == 3 and not Path("tatoeba").exists()
    shutil.copytree(trained, "tatoeba")
    assert call("translate", "The cat sleeps.", "--folder", "tatoeba").err == ""


def test_n_best(trained):
    """Lines of number, score, text; the first of each sentence is what translate gives."""
    done = call(
        "translate",
        "--folder",
        trained,
        "--n-best",
        "3",
        "--beam",
        "3",
        stdin=b"The cat sleeps.\nA dog.\n",
    )
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert done.status == 0 and [row[0] for row in rows] == ["1"] * 3 + ["2"] * 3
    best = call(
        "translate",
        "--folder",
        trained,
        "--beam",
        "3",
        stdin=b"The cat sleeps.\nA dog.\n",
    ).out.splitlines()
    assert [" ".join(line.split()) for line in best] == [rows[0][2], rows[3][2]]
    assert [float(row[1]) for row in rows[:3]] == sorted(
        (float(row[1]) for row in rows[:3]), reverse=True
    )


@pytest.mark.parametrize("sentence", ["The cat sleeps.", "", "It costs $5, or $6?"])
def test_attend(trained, tmp_path, sentence):
    done = call(
        "attend",
        sentence,
        "--folder",
        trained,
        "--output",
        tmp_path / "new" / "pictures",
    )
    assert done.status == 0, done.err
    paths = [Path(line) for line in done.out.splitlines()[-3:]]
    assert [path.name for path in paths] == ["encoder.png", "decoder.png", "cross.png"]
    for path in paths:
        picture = imread(path)
        assert min(picture.shape[:2]) > 200 and max(picture.shape[:2]) < 8000
        assert len(np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)) > 1


@pytest.fixture
def small_demo(monkeypatch):
    """The demo's recipe and corpus, cut down to seconds."""
    recipe = dict(
        model=TransformerConfig(300, 16, 32, 1, 2),
        training=TrainingConfig(
            updates=4, batch_tokens=300, warmup=10, validate_every=2
        ),
    )
    monkeypatch.setitem(recipes.RECIPES, "bundled", recipe)
    small = {
        split: [e for e in read_bundled(split) if " its " in e.source][:12]
        for split in ("train", "validation", "test", "hard")
    }
    small_bundled(monkeypatch, small.get)
    monkeypatch.setattr(demo, "read_bundled", small.get)


@pytest.mark.system
def test_demo(small_demo, tmp_path):
    done = call(
        "demo",
        "--folder",
        tmp_path / "demo",
        "--record",
        tmp_path / "data" / "demo.json",
    )
    assert done.status == 0, done.err
    report = json.loads((tmp_path / "demo" / "demo.json").read_text())
    (row,) = read_rows(tmp_path / "data" / "demo.json")
    assert row == flatten({"corpus": "bundled", **report})
    assert (
        report["command"] == "transformer demo --record demo.json"
        and report["commit"] == git_commit()
    )
    assert (
        (report["updates"], report["seed"]) == (4, 2017)
        and report["tokens"] > 0
        and report["hardware"]
    )
    pronoun, alignment = report["pronoun"], report["alignment"]
    assert pronoun["count"] > 0 and pronoun.keys() == {
        "attention",
        "layer",
        "head",
        "count",
        "accuracy",
        "chance",
        "nearest noun",
        "first noun",
    }
    for text in (
        f"error {alignment['error']:.3f}",
        f"the diagonal has {alignment['diagonal']:.3f}",
        f"accuracy {pronoun['accuracy']:.3f} on {pronoun['count']} of",
        f"first noun {pronoun['first noun']:.3f}",
        f"nearest noun {pronoun['nearest noun']:.3f}",
        f"chance {pronoun['chance']:.3f}",
        f"test set: BLEU {report['test']['bleu']:.1f}",
        f"harder test set: BLEU {report['hard']['bleu']:.1f}",
        report["hard"]["signature"],
        corpora.read_bundled("test")[0].source,
    ):
        assert text in done.out
    for kind in ("encoder", "decoder", "cross"):
        assert np.ptp(imread(tmp_path / "demo" / f"{kind}.png")) > 0
    assert (
        call("translate", "The cat sleeps.", "--folder", tmp_path / "demo").status == 0
    )


@pytest.mark.system
def test_demo_begins_anew_over_a_demo_but_over_nothing_else(small_demo, run, tmp_path):
    before = contents(run)
    assert "holds a run or a model, but no demo's: name another" in complaint(
        "demo", "--folder", run
    )
    assert contents(run) == before
    for old in ("checkpoint.safetensors", "model.safetensors"):
        (run / old).write_bytes(b"of an earlier demo, of another size")
    (run / "run.json").write_text(json.dumps({"command": "transformer demo"}))
    assert "minutes must be above 0, not 0.0" in complaint(
        "demo", "--folder", run, "--minutes", "0"
    )
    assert (run / "model.safetensors").is_file()
    assert call("demo", "--folder", run, "--positions", "rotary").status == 0
    assert len(list((run / "weights").iterdir())) == 2
    assert json.loads((run / "run.json").read_text())["model"]["positions"] == "rotary"


# Help


def test_help_of_the_program():
    done = subprocess.run(
        [sys.executable, "-m", "transformer", "--help"],
        capture_output=True,
        encoding="utf8",
        env={**os.environ, "PYTHONIOENCODING": "utf8", "COLUMNS": "200"},
    )
    assert done.returncode == 0 and all(
        name in done.stdout for name in command_line.COMMANDS
    ), done.stderr


@pytest.mark.parametrize("name", command_line.COMMANDS)
def test_every_option_has_a_text_of_its_own(name):
    """A comment behind a value that spans lines is lost, or that of the option before it taken."""
    help_text = " ".join(call(name, "--help").out.split())
    value = r"(?:[\[{]\S*|STR|INT|FLOAT|PATH)"
    texts = re.findall(rf"--[a-z-]+ (?:{value} )*(.*?) ?\(default:", help_text)
    assert texts
    assert all(texts)
    assert len(set(texts)) == len(texts)
    assert "--import mine, before or after the others, first imports" in help_text


@pytest.mark.parametrize("family", ["transformer", "recurrence", "convolution"])
def test_every_setting_has_a_meaning_and_the_recipes_default(family):
    """Both stand in the help of train; what the tokenizer decides is no option."""
    help_text = " ".join(call("train", "--family", family, "--help").out.split())
    config = families.family_named(family).config
    settings = recipes.recipe("bundled", None, family)
    for f in [*dataclasses.fields(config), *dataclasses.fields(TrainingConfig)]:
        option = f"--{f.name.replace('_', '-')}"
        if f.name in ("pad_id", "bos_id", "eos_id"):
            assert f" {option} " not in help_text
            continue
        part = settings["model"] if f in dataclasses.fields(config) else None
        default = getattr(part or settings["training"], f.name)
        said = re.search(
            rf"{option}[ ,].*?([a-z;)]+) │? ?│? ?\(default: │? ?│? ?([^)]*)\)",
            help_text,
        )
        assert said and said[2].strip(" │") == str(default), (option, help_text)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["train", "--no-such-option"],
        ["train", "--updates", "many"],
        ["attend"],
    ],
)
def test_a_command_line_that_cannot_be_read(arguments):
    done = call(*arguments)
    assert done.status == 2 and "Traceback" not in done.err
    assert done.out + done.err  # the parser prints; which stream depends on its version


# Wrong options


def test_a_gpu_that_is_too_small_is_named_in_one_sentence(monkeypatch, tmp_path):
    def full(*arguments, **named):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 4 GiB")

    monkeypatch.setattr(train_command, "run_experiment", full)
    assert complaint("train", "--folder", tmp_path).startswith(
        "the GPU's memory is too small for this: half of "
    )


def test_a_compiler_that_is_missing_is_named_in_one_sentence(monkeypatch, tmp_path):
    import torch._dynamo

    def missing(*arguments, **named):
        raise torch._dynamo.exc.TorchDynamoException(
            "InvalidCxxCompiler: No working C++ compiler found\n\nmore"
        )

    monkeypatch.setattr(train_command, "run_experiment", missing)
    assert complaint("train", "--folder", tmp_path, "--compile") == (
        "torch.compile cannot work here (InvalidCxxCompiler: No working C++ compiler found): leave out --compile, "
        "or install a C++ compiler"
    )


@pytest.mark.parametrize(
    "arguments, said",
    [
        (
            ["train", "--corpus", "multi31k"],
            "unknown corpus 'multi31k' (did you mean multi30k?): choose one of bundled, multi30k, tatoeba, ",
        ),
        (
            ["evaluate", "--split", "exam"],
            "bundled has no split 'exam': choose one of train, validation, test, hard",
        ),
        (
            ["evaluate", "--corpus", "multi30k", "--split", "hard"],
            "multi30k has no split 'hard': choose one of train, ",
        ),
        (
            ["train", "--preset", "huge"],
            "unknown preset 'huge': choose one of tiny, small, base, big",
        ),
        (
            ["train", "--P-drop", "1.5"],
            "P_drop must be at least 0 and below 1, not 1.5",
        ),
        (
            ["train", "--updates", "0"],
            "updates must be a whole number of at least 1, not 0",
        ),
        (["train", "--vocab-size", "100"], "vocab_size must be at least 259"),
        (["train", "--d-model", "30"], "d_model"),
        (
            ["train", "--device", "nonsense"],
            "there is no device 'nonsense' here: choose cpu, cuda or mps",
        ),
        (
            ["train", "--device", "meta"],
            "there is no device 'meta' here: choose cpu, cuda or mps",
        ),
        (
            ["translate", "Hello.", "--device", "cuda:99"],
            "there is no device 'cuda:99' here",
        ),
        (["translate", "Hello.", "--beam", "0"], "beam must be at least 1, not 0"),
        (["evaluate", "--alpha", "-1"], "alpha must be between 0 and 10, not -1.0"),
        (
            ["translate", "Hello.", "--n-best", "5"],
            "n_best must be between 1 and the beam, 4, not 5",
        ),
        (
            ["evaluate", "--reverse", "--source-file", "a.en", "--target-file", "a.de"],
            "--reverse turns a corpus round: ",
        ),
        (
            ["train", "--reverse", "--source-file", "a.en", "--target-file", "a.de"],
            "--reverse turns a corpus round: ",
        ),
        (
            ["train", "--source-file", "a.en"],
            "--source-file and --target-file go together: give both, or a --corpus",
        ),
        (
            ["train", "--source-file", "a.en", "--target-file", "a.de"],
            "no file a.en: check the name, or give the full ",
        ),
        (
            ["train", "--resume", "--folder", "nowhere"],
            "no run in nowhere: name the folder of a training with --folder",
        ),
        (["bench", "T9"], "there is no part T9: choose from T1, T2, small"),
        (["bench", "--clock", "sun"], "the clock is wall or cpu, not sun"),
        (
            ["export", "--output", "."],
            ". is there already: name a folder"
            if HAS_CTRANSLATE2
            else "the export needs",
        ),
        (
            ["chat", "--seed", str(2**64)],
            f"seed must be at most {2**63 - 1}, not {2**64}",
        ),
        (
            ["chat", "--temperature", "-1"],
            "temperature must be at least 0 and finite, not -1.0",
        ),
        (["chat", "--top-k", "0"], "top_k must be at least 1, not 0"),
        (["chat", "--top-p", "2"], "top_p must be above 0 and at most 1, not 2.0"),
        (
            ["chat", "--folder", "nowhere"],
            f"no file {Path('nowhere', 'config.json')}: name the folder of ",
        ),
        (
            ["translate", "Hello.", "--folder", "nowhere"],
            f"no file {Path('nowhere', 'config.json')}: name the folder of ",
        ),
        (
            ["translate", "Hello.", "--folder", "tatoebq"],
            "tatoebq is not there (did you mean tatoeba?): name the folder of ",
        ),
        (
            ["export", "--format", "torch", "--output", "."],
            ". is there already: name a folder that is not",
        ),
    ],
)
def test_wrong_options(arguments, said, monkeypatch, tmp_path, trained):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pretrained, "bundled_folder", lambda name="bundled": trained)
    small_bundled(
        monkeypatch,
        lambda split: (
            read_bundled("validation")[:20] if split == "train" else read_bundled(split)
        ),
    )
    assert complaint(*arguments).startswith(said)
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_bench(tmp_path):
    record = tmp_path / "new" / "bench.json"
    done = call(
        "bench", "levers", "products", "--quick", "--device", "cpu", "--record", record
    )
    assert done.status == 0 and "fused Adam" in done.out, done.err
    kept = read_rows(record)
    assert {row["part"] for row in kept} == {"levers", "products"}
    assert all(
        row["command"].startswith("transformer bench levers products") for row in kept
    )


@pytest.mark.skipif(not HAS_CTRANSLATE2, reason="ctranslate2 is not installed")
def test_export(trained, tmp_path):
    done = call("export", "--folder", trained, "--output", tmp_path / "there")
    assert done.status == 0 and "holds the model for CTranslate2" in done.out, done.err
    assert {path.name for path in (tmp_path / "there").iterdir()} >= {
        "model.bin",
        "config.json",
        "tokenizer.json",
    }
    assert Tokenizer.load(tmp_path / "there" / "tokenizer.json").encode(
        "A cat."
    ) == Tokenizer.load(trained / "tokenizer.json").encode("A cat.")


@pytest.mark.system
@pytest.mark.skipif(
    not hasattr(torch.export.Dim, "DYNAMIC"), reason="needs torch 2.6 or newer"
)
def test_export_of_a_graph(trained, tmp_path):
    folder = tmp_path / "there"
    done = call("export", "--format", "torch", "--folder", trained, "--output", folder)
    assert done.status == 0, done.err
    assert "holds model.pt2; torch.export.load" in done.out
    assert {path.name for path in folder.iterdir()} == {"model.pt2", "tokenizer.json"}


def test_a_run_is_not_overwritten(run, files):
    before = contents(run)
    assert (
        "already holds a run or a model: go on with the run (--resume), or name another --folder"
        in complaint("train", *files, "--folder", run, *SIZES, *SPEED)
    )
    (run / "checkpoint.safetensors").unlink()
    assert "already holds a run or a model" in complaint(
        "train", *files, "--folder", run, *SIZES, *SPEED
    )
    assert contents(run) == {
        name: content
        for name, content in before.items()
        if name.name != "checkpoint.safetensors"
    }


def test_a_run_is_not_resumed_with_other_data(run):
    before = contents(run)
    said = complaint("train", "--resume", "--folder", run, "--corpus", "multi30k")
    assert re.fullmatch(
        "the run in .* is of your own files: resume it without --corpus", said
    )
    assert re.fullmatch(
        "the run in .* has seed .*, not 7: resume it without that option, .*",
        complaint("train", "--resume", "--folder", run, "--seed", 7),
    )
    assert contents(run) == before


# White space, and notes


def test_white_space_of_a_line_is_normalised_before_it_is_counted(trained):
    lines = b"A cat." + b" " * 1000 + b"\n  A \t cat.\nA cat.\n"
    done = call("translate", "--folder", trained, "--beam", 1, stdin=lines)
    assert (done.status, len(set(done.out.splitlines()))) == (0, 1), done.err


def test_a_warning_is_one_plain_line(trained, tmp_path):
    """Without the path and the line of code that Python shows programmers."""
    for name, last in (("en", "A dog."), ("de", "")):
        (tmp_path / name).write_text(f"A cat.\n{last}\n", encoding="utf8")
    own = ["--source-file", tmp_path / "en", "--target-file", tmp_path / "de"]
    before = warnings.showwarning
    done = call("evaluate", "--folder", trained, *own, "--beam", 1)
    assert done.status == 0 and warnings.showwarning is before
    (said,) = (line for line in done.err.splitlines() if "left out" in line)
    assert said.startswith("transformer: 1 of 2 pairs of ")
    assert ".py" not in done.err and "UserWarning" not in done.err


# Wrong files


@pytest.mark.parametrize(
    "source, target, said",
    [
        (
            b"a\nb\n",
            b"a\n",
            r"\S*en has 2 lines and \S*de has 1: line n of one must translate line n of the other",
        ),
        (b"", b"a\n", r"\S*en is empty: it should hold one sentence a line"),
        (
            b"a\nb\n",
            b"gut\nsch\xf6n\n",
            r"\S*de, line 2, is not UTF-8: convert the file, for example with iconv .*",
        ),
        (
            b"a\n",
            b"a\n",
            "training needs at least 2 different pairs, one of them to validate on, not 1",
        ),
        (
            b"a\n" + b"a b c d e f g h i " * 29 + b"\nb\nc\n",
            b"a\nb\nc\nd\n",
            r"training sentence pair 2 has .* tokens, more than the model's 150 positions: shorten or remove it, .*",
        ),
        (
            b"a\na\n",
            b"a\n" + b"a b c d e f g h i " * 32 + b"\n",
            r"of your files' 1 pairs that are kept for validation, sentence pair 2 has .* tokens, more than the model's 150 positions: .*",
        ),
    ],
)
def test_wrong_sentence_files(source, target, said, tmp_path):
    (tmp_path / "en").write_bytes(source)
    (tmp_path / "de").write_bytes(target)
    arguments = [
        "--source-file",
        tmp_path / "en",
        "--target-file",
        tmp_path / "de",
        "--folder",
        tmp_path / "run",
    ]
    assert re.fullmatch(said, complaint("train", *arguments, *SIZES, *SPEED))
    assert (tmp_path / "en").read_bytes() == source and not (
        tmp_path / "run" / "model.safetensors"
    ).exists()
    (tmp_path / "en").write_bytes(b"good\nday\n")
    (tmp_path / "de").write_bytes(b"guten\nTag\n")
    assert call("train", *arguments, *SIZES, *SPEED).status == 0, (
        "the failed attempt stands in the way"
    )


def test_wrong_standard_input(trained):
    said = complaint(
        "translate", "--folder", trained, stdin="good\nschön\n".encode("latin1")
    )
    assert said.startswith(
        "standard input, line 2, is not UTF-8: convert it, for example with iconv"
    )


def test_a_byte_order_mark_is_no_word(trained):
    marked, plain = (
        call("translate", "--folder", trained, stdin=mark + b"The cat sleeps.\n")
        for mark in (b"\xef\xbb\xbf", b"")
    )
    assert marked.status == 0 and marked.out == plain.out


def test_so_many_entries_are_refused_for_a_sentence_too(trained):
    for given in ({"stdin": b"A dog.\n"}, {}):
        said = complaint(
            "translate",
            *([] if given else ["A dog."]),
            "--folder",
            trained,
            "--n-best",
            "0",
            **given,
        )
        assert said.startswith("n_best must be between 1 and the beam")


def test_chat_where_something_is_called_chat(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("chat").mkdir()
    done = call("chat", stdin=b"Translate into German: The cat sleeps.")
    assert done.status == 0 and done.out.strip(), done.err


def test_attend_as_a_page(trained, tmp_path):
    page = tmp_path / "new" / "attention.html"
    done = call("attend", "Hello.", "--folder", trained, "--html", page)
    assert done.out.splitlines()[-1] == str(page) and list(page.parent.iterdir()) == [
        page
    ]
    assert "Hello" in page.read_text(encoding="utf8") and "<script" in page.read_text(
        encoding="utf8"
    )


def test_chat_as_a_page(trained, tmp_path):
    page = tmp_path / "new" / "chat.html"
    done = call("chat", "--html", page)
    assert done.out.splitlines() == [str(page)] and list(page.parent.iterdir()) == [
        page
    ]
    assert "The cat lost its ball." in page.read_text(encoding="utf8")
    said = complaint("chat", "--html", page, "--temperature", "1")
    assert said == "the page of --html draws nothing: leave --temperature out"
    assert "holds a model of the family transformer" in complaint(
        "chat", "--html", page, "--folder", trained
    )


@pytest.mark.parametrize("command", ["translate", "attend"])
def test_a_sentence_longer_than_the_positions(command, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = complaint(command, "word " * 200, "--folder", trained)
    assert re.fullmatch(
        r"sentence 1 \(index 0\) has \d+ tokens, more than the model's 150 positions: split it",
        said,
    )


def test_a_folder_that_cannot_be_written(trained, files, tmp_path):
    (tmp_path / "file").write_text("precious")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        for option, arguments in (
            ("--folder", ["train", *files, *SIZES, *SPEED]),
            ("--folder", ["demo"]),
            ("--output", ["attend", "Hello.", "--folder", trained]),
        ):
            said = complaint(*arguments, option, place)
            assert re.fullmatch(
                rf"cannot write to the folder \S* \(.*\): name another with {option}",
                said,
            )
    assert (tmp_path / "file").read_text() == "precious"


def test_the_name_of_a_file_is_a_sentence_and_a_note(trained, tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("Hello.\n")
    done = call("translate", path, "--folder", trained)
    assert done.status == 0
    assert f"is a file: transformer translate < {path} reads it" in done.err
    assert "is a file" not in call("translate", "Hello.", "--folder", trained).err


def complaint_at_the_end(done):
    """The sentence after a progress bar."""
    assert done.status == 2 and "Traceback" not in done.err
    return done.err.splitlines()[-1]


def test_interrupt_outside_the_loop(trained, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "translate", interrupt)
    assert complaint("translate", "Hello.", "--folder", trained).startswith(
        "stopped by Ctrl-C"
    )


# Damaged models and runs


def another_model(run, path):
    """What stands in path in a run of another size."""
    pretrained.save(Transformer(TransformerConfig(300, 32, 32, 1, 2)), run / "other")
    shutil.move(run / "other" / "model.safetensors", path)
    shutil.rmtree(run / "other")


DAMAGES = {
    "truncated": lambda run, path: path.write_bytes(path.read_bytes()[:-100]),
    "headless": lambda run, path: path.write_bytes(path.read_bytes()[100:]),
    "empty": lambda run, path: path.write_bytes(b""),
    "a pickle": lambda run, path: torch.save({"a": torch.zeros(2)}, path),
    "missing": lambda run, path: path.unlink(),
    "another configuration": another_model,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "arguments, name",
    [
        (["translate", "Hello."], "model.safetensors"),
        (["train", "--resume", "--updates", "9"], "checkpoint.safetensors"),
    ],
)
def test_damaged_weights(arguments, name, damage, run):
    DAMAGES[damage](run, run / name)
    before = contents(run)
    said = complaint(*arguments, "--folder", run)
    assert name in said
    expected = {
        "missing": "no file .*: train a model there first, or name another|has no .* to go on from, and has weights: copy",
        "another configuration": "model do not fit: .*; use the config|holds weights but no training",
    }
    assert re.search(
        expected.get(damage, r"is not a whole safetensors file \(.*\): copy it again"),
        said,
    ), said
    assert contents(run) == before


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{}"])
def test_damaged_configuration(content, run):
    (run / "config.json").write_bytes(content)
    said = complaint("translate", "Hello.", "--folder", run)
    assert re.search(
        r"config.json is not a model's configuration \(.*\): copy it again from the trained model",
        said,
    )


def test_a_kind_that_nobody_registered(run):
    (run / "config.json").write_text('{"kind": "lamp"}')
    said = complaint("translate", "Hello.", "--folder", run)
    assert "is of the family 'lamp', which is not registered: import the module" in said


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe"])
@pytest.mark.parametrize("arguments", [["translate", "Hello."], ["train", "--resume"]])
def test_damaged_tokenizer(content, arguments, run):
    (run / "tokenizer.json").write_bytes(content)
    said = complaint(*arguments, "--folder", run)
    assert re.search(
        r"tokenizer.json is not a tokenizer \(.*\): copy it again from the trained model",
        said,
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"corpus": "bundled"}',
        b'{"corpus": 1, "source_file": 2, "target_file": 3, "model": 4, "training": 5}',
    ],
)
@pytest.mark.parametrize("arguments", [["train", "--resume"], ["evaluate"]])
def test_damaged_settings(content, arguments, run):
    (run / "run.json").write_bytes(content)
    said = complaint(*arguments, "--folder", run)
    assert re.search(
        r"run.json does not hold the settings of a run \(.*\): copy it again, or train anew",
        said,
    )


@pytest.mark.parametrize("arguments", [["translate", "Hello."], ["train", "--resume"]])
def test_tokenizer_of_another_model(arguments, run):
    Tokenizer.train(["good day", "guten Tag"], 280).save(run / "tokenizer.json")
    said = complaint(*arguments, "--folder", run)
    assert re.search(
        r"tokenizer.json has 2\d\d types and the model 300: use the tokenizer that was saved with",
        said,
    )


# A corpus that is downloaded


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No network, no earlier download, and a mirror without files; returns its folder for multi30k."""

    def refuse(*arguments, **named):
        raise OSError("network is unreachable")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    for name in (
        "http_proxy",
        "https_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "all_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRANSFORMER_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path / "downloads"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mirror" / "multi30k").mkdir(parents=True)
    return tmp_path / "mirror" / "multi30k"


def test_no_network(offline, tmp_path):
    said = complaint_at_the_end(
        call("train", "--corpus", "multi30k")
    )  # after the licence
    assert re.fullmatch(
        r"transformer: could not download the corpus multi30k from https://\S* \(\w+\): check the "
        r"network, or set TRANSFORMER_MIRROR .*; --corpus bundled always works",
        said,
    )
    assert not any(
        path.is_file() and path.suffix != ".lock" for path in tmp_path.rglob("*")
    )


MIRROR = os.environ.get("TRANSFORMER_MIRROR", "")


@pytest.fixture
def multi30k():
    if not os.path.isdir(os.path.join(MIRROR, "multi30k")):
        pytest.skip("TRANSFORMER_MIRROR names no folder that holds multi30k/")


def shingles(text, size=8):
    """Hashes of every few words in a row."""
    words = re.findall(r"\w+", text.lower())
    return {hash(tuple(words[i : i + size])) for i in range(len(words) - size + 1)}


@pytest.mark.system
def test_no_sentence_of_multi30k_stands_in_the_repository(multi30k, root):
    theirs = set().union(
        *(
            shingles(text)
            for split in ("train", "validation", "test")
            for pair in corpora.read_corpus("multi30k", split)
            for text in pair
        )
    )
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    texts = [
        root / name
        for name in listed
        if Path(name).suffix
        in {
            ".py",
            ".md",
            ".ipynb",
            ".json",
            ".jsonl",
            ".tsv",
            ".txt",
            ".toml",
            ".yml",
            ".csv",
            ".svg",
        }
    ]
    assert len(texts) > 10
    for path in texts:
        lines = path.read_text(encoding="utf8").splitlines() if path.is_file() else []
        assert not any(shingles(line) & theirs for line in lines), path
