"""A run on own files gets a plan in Python, too; a run begins with a trained model's weights and tokenizer."""

import json
import re
from dataclasses import replace

import pytest
import torch

from transformer import (
    Experiment,
    TrainingConfig,
    TransformerConfig,
    load,
    run_experiment,
    translate,
)
from transformer.cli import parse
from transformer.cli.train import experiment_of
from transformer.core.weights import load_weights
from transformer.runs.folder import load_run
from transformer.runs.progress import read_log
from transformer.runs.recipes import recipe

TINY = TransformerConfig(300, d_model=16, d_ff=32, N=1, h=2, max_positions=150)
TRAINING = TrainingConfig(updates=4, batch_tokens=300, warmup=2, validate_every=2)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def files(own_files):
    return dict(source_file=own_files[0], target_file=own_files[1], device="cpu")


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    """The folder of a model that was trained on own files, from French into Dutch."""
    folder = tmp_path_factory.mktemp("begun") / "first"
    languages = dict(source_language="fr", target_language="nl")
    run_experiment(
        Experiment(**files, **languages, folder=folder, model=TINY, training=TRAINING)
    )
    return folder


# Own files


@pytest.mark.parametrize("name", ["source_language", "target_language"])
def test_the_name_of_a_language_is_no_code(files, tmp_path, name):
    with pytest.raises(ValueError, match=f'`{name}` must be the code .* such as "fr"'):
        Experiment(**files, folder=tmp_path / "run", **{name: "french"})


def test_own_files_get_a_plan(files, tmp_path, capsys):
    """Within the minutes, and with a patience that what is timed does not know of."""
    settings = dict(minutes=0.05, patience=30)
    e = Experiment(**files, folder=tmp_path / "run", training=settings)
    assert e.training.minutes == 0.05
    e = run_experiment(e)
    out = capsys.readouterr().out
    assert "59 pairs of about" in out
    assert "59 pairs are too few to learn a translation from" in out
    assert e.training.schedule == "linear"
    assert e.training.patience == 30
    assert e.model.norm_first
    assert load_run(tmp_path / "run").training == e.training


def test_what_is_given_counts_more_than_the_plan(files, tmp_path):
    settings = dict(updates=2, batch_tokens=300)
    e = Experiment(
        **files, folder=tmp_path, model={"N": 1, "d_model": 16}, training=settings
    )
    e = run_experiment(e)
    assert (e.model.N, e.model.d_model, e.training.updates) == (1, 16, 2)


def test_a_whole_configuration_is_no_plans_business(files, tmp_path):
    e = Experiment(**files, folder=tmp_path, model=TINY, training=TRAINING)
    assert run_experiment(e).training == TRAINING


def test_a_few_own_files_keep_as_many_as_are_wanted(files, trained, tmp_path, capsys):
    """Fine-tuning, too; the folder knows it, and another number is refused."""
    e = Experiment(
        **files,
        folder=tmp_path / "run",
        init=trained,
        held_out=8,
        training=dict(updates=2, batch_tokens=300, validate_every=2),
    )
    run_experiment(e)
    assert "8 of 60 pairs, from all over your files" in capsys.readouterr().out
    rows = (tmp_path / "run" / "held_out.tsv").read_text(encoding="utf8").splitlines()
    assert len(rows) == 8
    assert read_log(tmp_path / "run")[-1]["validation_pairs"] == 8
    assert load_run(tmp_path / "run").held_out == 8
    again = Experiment(folder=tmp_path / "run", resume=True, held_out=5)
    with pytest.raises(ValueError, match="has held out 8, not 5"):
        run_experiment(again)


def test_a_figure_of_ones_own_is_watched(files, trained, tmp_path, capsys):
    def exact(model, tokenizer, pairs):
        assert len(pairs) == 2
        return {"exact": len(translate(model, tokenizer, [pairs[0][0]])) == 1}

    settings = dict(updates=4, batch_tokens=300, validate_every=2, monitor="exact")
    e = Experiment(
        **files, folder=tmp_path / "run", init=trained, held_out=2, training=settings
    )
    mistyped = replace(e, training=replace(e.training, monitor="exact_score"))
    with pytest.raises(
        ValueError, match="'exact_score', and what is measured is .*bleu"
    ):
        run_experiment(mistyped)
    assert not (tmp_path / "run").exists()
    run_experiment(e, validate=exact)
    assert "watching exact: highest is best" in capsys.readouterr().out
    rows = read_log(tmp_path / "run")
    assert [row["exact"] for row in rows] == [1, 1]
    assert rows[0].keys() >= {"validation_loss", "bleu"}
    with pytest.raises(ValueError, match="names a figure 'bleu', which the log has"):
        run_experiment(
            replace(e, folder=tmp_path / "taken"), validate=lambda *_: {"bleu": 1.0}
        )


def test_more_than_there_are_cannot_be_held_out(files, tmp_path):
    e = Experiment(**files, folder=tmp_path / "run", held_out=60)
    with pytest.raises(ValueError, match="held_out 60 leaves nothing to train on"):
        run_experiment(e)
    with pytest.raises(ValueError, match="held_out must be a whole number"):
        Experiment(**files, held_out=0)
    with pytest.raises(ValueError, match="a corpus has its validation"):
        Experiment("bundled", held_out=8)


def test_a_run_goes_on_by_its_folder_alone(files, tmp_path, capsys):
    settings = dict(updates=2, batch_tokens=300, validate_every=1)
    e = Experiment(**files, folder=tmp_path, model=TINY, training=settings)
    begun = run_experiment(e)
    again = Experiment(folder=tmp_path, resume=True, training={"updates": 3})
    again = run_experiment(again)
    assert "goes on after update 2\n" in capsys.readouterr().out
    assert again.model == begun.model
    assert again.training == replace(begun.training, updates=3)
    assert [row["update"] for row in read_log(tmp_path)] == [1, 2, 3]


def stopped_before_its_checkpoint(e):
    """A run as it is left by who kills it then, with what its first validation has kept."""
    run_experiment(e)
    for name in ("checkpoint", "model"):
        (e.folder / f"{name}.safetensors").unlink()
    (e.folder / "config.json").unlink()


@pytest.mark.parametrize("with_init", [False, True])
def test_a_run_without_a_checkpoint_begins(with_init, files, trained, tmp_path, capsys):
    """With its settings, its tokenizer, and the weights that it was to begin with."""
    settings = dict(updates=2, batch_tokens=300, validate_every=2)
    start = dict(init=trained) if with_init else dict(model=TINY)
    e = Experiment(**files, **start, folder=tmp_path, training=settings)
    stopped_before_its_checkpoint(e)
    before = load_weights(tmp_path / "weights" / "00000002.safetensors")[0]
    run_experiment(Experiment(folder=tmp_path, resume=True, device="cpu"))
    said = "has no checkpoint yet: it begins, as it was set"
    assert said in capsys.readouterr().out
    after = load_weights(tmp_path / "model.safetensors")[0]
    assert all(torch.equal(after[name], p) for name, p in before.items())


def test_a_run_that_lost_its_checkpoint_does_not_begin(files, tmp_path):
    settings = dict(updates=2, batch_tokens=300, validate_every=1)
    e = Experiment(**files, folder=tmp_path, model=TINY, training=settings)
    stopped_before_its_checkpoint(e)
    with pytest.raises(FileNotFoundError, match="to go on from, and has weights"):
        run_experiment(load_run(tmp_path))
    assert len(list((tmp_path / "weights").iterdir())) == 2


def test_a_run_does_not_go_on_with_another_corpus(files, tmp_path):
    run_experiment(Experiment(**files, folder=tmp_path, model=TINY, training=TRAINING))
    with pytest.raises(ValueError, match="has corpus bundled, not multi30k"):
        run_experiment(Experiment("multi30k", folder=tmp_path, resume=True))


def test_single_settings_of_a_recipe():
    e = Experiment("multi30k", model={"P_drop": 0.3}, training={"updates": 7})
    assert (e.model.d_model, e.model.P_drop) == (128, 0.3)
    assert (e.training.warmup, e.training.updates) == (2000, 7)


def test_a_preset_with_changes():
    e = Experiment("wmt14", model={"preset": "big", "N": 4})
    assert e.model == TransformerConfig.preset("big", vocab_size=37_000, N=4)
    assert e.training == recipe("wmt14", "big")["training"]


def test_an_experiment_as_json():
    text = '{"corpus": "multi30k", "model": {"preset": "base", "h": 4}}'
    e = Experiment(**json.loads(text))
    assert (e.model.d_model, e.model.h, e.model.vocab_size) == (512, 4, 6000)


def test_a_preset_of_own_files_is_kept_by_the_plan(files):
    """As --preset is; place of norms and dropout are the plan's."""
    e = Experiment(**files, model={"preset": "base"}, training={"updates": 7})
    planned = replace(TINY, norm_first=True, P_drop=0.25)
    model, training = e.limits.settle(planned, TrainingConfig())
    assert (model.d_model, model.norm_first, model.P_drop) == (512, True, 0.25)
    assert training.updates == 7
    assert e.limits.fixed_size


def test_a_preset_of_a_model_to_begin_with(files, trained):
    with pytest.raises(
        ValueError, match="init takes its sizes .*: leave out the prese"
    ):
        Experiment(**files, init=trained, model={"preset": "base"})


@pytest.mark.parametrize("what", ["model", "training"])
def test_a_setting_that_is_none(what):
    with pytest.raises(ValueError, match=f"{what} has no setting 'noise': it has"):
        Experiment(**{what: {"noise": 1}})


# A model to begin with


def test_a_run_begins_with_a_model(files, trained, tmp_path, capsys):
    """Its weights, its tokenizer, its languages; a learning rate of nothing leaves it as it is."""
    folder = tmp_path / "run"
    run_experiment(
        Experiment(
            **files,
            folder=folder,
            init=trained,
            training=dict(updates=1, batch_tokens=300, learning_rate=1e-12),
        )
    )
    assert "the model has been trained before" in capsys.readouterr().out
    before = load_weights(trained / "model.safetensors")[0]
    model, tokenizer = load(folder)
    for name, p in model.named_parameters():
        torch.testing.assert_close(p, before[name], rtol=0, atol=1e-9)
    assert (model.about.source, model.about.target) == ("fr", "nl")
    vocabularies = [
        json.loads((path / "tokenizer.json").read_text()) for path in (trained, folder)
    ]
    assert vocabularies[0] == vocabularies[1]
    assert json.loads((folder / "run.json").read_text())["init"] == str(trained)


def test_the_plan_counts_by_the_vocabulary_that_it_begins_with(
    files, trained, tmp_path, capsys
):
    settings = dict(minutes=0.05)
    e = Experiment(**files, init=trained, folder=tmp_path / "run", training=settings)
    run_experiment(e)
    epochs = re.findall(r"([\d.]+) epochs", capsys.readouterr().out)
    assert len(epochs) == 2
    assert epochs[0] == epochs[1]


def test_another_target_language_than_the_models_is_remarked_upon(files, trained):
    with pytest.warns(
        UserWarning, match="writes nl, and your files are to teach it de"
    ):
        Experiment(**files, init=trained, source_language="fr", target_language="de")


def test_it_goes_on_with_its_own_weights(files, trained, tmp_path):
    """What it began with may be gone by then."""
    settings = dict(updates=2, batch_tokens=300)
    e = Experiment(**files, folder=tmp_path, init=trained, training=settings)
    run_experiment(e)
    before = load_weights(tmp_path / "model.safetensors")[0]
    e = load_run(tmp_path)
    assert e.init is None
    run_experiment(e)
    after = load_weights(tmp_path / "model.safetensors")[0]
    assert all(torch.equal(after[name], p) for name, p in before.items())


def test_it_learns_at_a_tenth_of_the_rate(trained):
    from_nothing, begun = Experiment("multi30k"), Experiment("multi30k", init=trained)
    assert begun.training.lr_scale == pytest.approx(from_nothing.training.lr_scale / 10)
    e = Experiment("multi30k", init=trained, training={"learning_rate": 0.001})
    assert e.training.learning_rate == 0.001


def test_another_dropout_fits(trained):
    assert Experiment(init=trained, model={"P_drop": 0.4}).model.P_drop == 0.4


@pytest.mark.parametrize("model", [{"d_model": 64}, TransformerConfig(300, d_model=64)])
def test_sizes_that_contradict(model, trained):
    with pytest.raises(ValueError, match="has d_.* its weights decide that, so leave"):
        Experiment(init=trained, model=model)


def command(*options):
    return experiment_of(parse(["train", *map(str, options)]))


def test_the_command(files, trained):
    own = "--source-file", files["source_file"], "--target-file", files["target_file"]
    e = command("--init", trained, *own, "--updates", 7)
    assert (e.model.d_model, e.training.updates) == (16, 7)
    assert e.source_language == "fr"
    model, training = e.limits.settle(e.model, TrainingConfig())
    assert model == e.model
    assert (training.updates, training.lr_scale) == (7, 0.1)


@pytest.mark.parametrize(
    "options, said",
    [
        (["--preset", "tiny"], "leave out --preset and --family"),
        (["--family", "recurrence"], "leave out --preset and --family"),
        (["--resume"], "leave one of them out"),
        (["--N", "2"], "has N 1, not 2: its weights decide that, so leave out N"),
        (["--vocab-size", "20"], "has vocab_size 300, not 20"),
    ],
)
def test_options_that_contradict(options, said, trained):
    with pytest.raises(ValueError, match=said):
        command("--init", trained, *options)


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(FileNotFoundError, match="name the folder of a trained model"):
        Experiment(init=tmp_path)
