"""transformer train: a recipe, with what the options change in it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import tyro

from transformer.cli.options import (
    Settings,
    check_known,
    options_in,
    settings_given,
    words,
)
from transformer.corpora import TREEBANKS
from transformer.models.families import FAMILIES, family_named, family_of
from transformer.runs.experiment import Experiment, Given
from transformer.runs.folder import load_run
from transformer.runs.planning import Limits
from transformer.runs.recipes import recipe, resized, sized, slower
from transformer.runs.run import Task, imports_in, run_experiment
from transformer.runs.training import TrainingConfig


@dataclass
class Choice:
    """What a recipe is chosen by."""

    # bundled (ships with the package), multi30k, tatoeba, europarl, wmt14, wmt14_eighth (one pair
    # in eight), treebank_craft, treebank_nltk (downloaded)
    corpus: str = "bundled"
    # translate the other way round
    reverse: bool = False
    # your own sentences, one a line, UTF-8, instead of a corpus
    source_file: Path | None = None
    # their translations, line by line
    target_file: Path | None = None
    # where the run is kept (runs/<corpus> where not given)
    folder: Path | None = None
    # go on with the run in the folder, with its own settings
    resume: bool = False
    # begin with the weights and the vocabulary of the model in this folder (fine-tuning), at a
    # tenth of the learning rate; tatoeba ships with the package
    init: Path | None = None
    # transformer, recurrence, convolution, language
    family: str = "transformer"
    # model size: tiny, small, base or big
    preset: str | None = None


@dataclass
class Train(Choice):
    """Train a model on sentence pairs and save it in a folder.

    Without further options the recipe that suits the corpus is used, for files of your own one that
    suits their size, this machine and --minutes; every option shown here replaces one setting of
    it. Ctrl-C saves; --resume goes on from there. Several GPUs: torchrun -m transformer train ...
    """

    # code of your sentences' language
    source_language: str = "en"
    # code of their translations' language
    target_language: str = "de"
    # pairs of your files that are kept to validate on (a hundredth where not given)
    held_out: int | None = None
    # cpu, cuda or mps; auto takes the fastest there is
    device: str = "auto"
    # let torch.compile write kernels first (a minute; pays on GPUs)
    compile: bool = False
    # its family and sizes
    model: tyro.conf.OmitArgPrefixes[Any] = None
    # how it is trained
    training: tyro.conf.OmitArgPrefixes[Any] = None
    # the names of the options that were given
    names: tyro.conf.Suppress[tuple[str, ...]] = ()

    def run(self) -> None:
        e = experiment_of(self)
        task = Task()
        if e.corpus in TREEBANKS and e.source_file is None:
            from transformer.runs.parsers import PARSING as task
        if run_experiment(e, words(), task=task):
            split = " --split validation" if e.source_file else ""
            print(
                f"done: {e.folder} holds the model. Next: transformer evaluate"
                f"{imports_in(words())} --folder {shlex.quote(str(e.folder))}{split}"
            )


def resumed(choice: Choice, names: set[str]) -> Experiment:
    """The run in the folder, with another family or size of model where one is given."""
    files = {"source_file": choice.source_file, "target_file": choice.target_file}
    named = Experiment(
        choice.corpus, **files, folder=choice.folder, resume=True, init=choice.init
    )
    e = load_run(named.folder)
    if "corpus" in names and e.source_file:
        raise ValueError(
            f"the run in {e.folder} is of your own files: resume it without --corpus"
        )
    family = choice.family if "family" in names else family_of(e.model)
    if choice.preset or family != family_of(e.model):
        e = replace(e, model=sized(e.model, family, choice.preset))
    return e


def begun(choice: Choice, names: set[str]) -> Experiment:
    """The recipe of a corpus, or of files."""
    own = choice.source_file or choice.target_file
    if own and "corpus" in names:
        raise ValueError(
            "--corpus and your own files exclude each other: name one of them"
        )
    corpus = "bundled" if own else choice.corpus
    if choice.init is not None:
        if choice.preset or "family" in names:
            raise ValueError(
                "--init takes kind and sizes from the model to begin with: leave out "
                "--preset and --family"
            )
        training = slower(recipe("files" if own else corpus)["training"])
        return Experiment(corpus, init=choice.init, training=training)
    settings = recipe("files" if own else corpus, choice.preset, choice.family)
    return Experiment(corpus, **settings)


def recipe_for(arguments: Sequence[str]) -> Train:
    """The defaults of the command: a recipe, or the settings of the run that goes on."""
    choice, _ = tyro.cli(
        Choice, args=arguments, return_unknown_args=True, add_help=False
    )
    names = options_in(arguments)
    e = (resumed if choice.resume else begun)(choice, names)
    family = family_of(e.model)
    others = [family_named(name).config for name in FAMILIES]
    check_known(names, e.model, others, f"--family {family}")
    settings = {f.name: getattr(e, f.name) for f in fields(Train) if hasattr(e, f.name)}
    settings |= {"family": family, "preset": choice.preset}
    settings["folder"] = e.folder if choice.resume else None
    settings["names"] = tuple(sorted(names))
    return Train(**settings)


def parse_train(arguments: Sequence[str], description: str) -> Train:
    """The command with its options, whose defaults are those of a recipe."""
    default = recipe_for(arguments)
    with Settings(type(default.model), TrainingConfig):
        return tyro.cli(
            Train,
            prog="transformer train",
            description=description,
            args=arguments,
            default=default,
        )


def experiment_of(t: Train) -> Experiment:
    """The experiment: a corpus's recipe, or the resumed run, with what the options give."""
    settings = {
        f.name: getattr(t, f.name) for f in fields(Experiment) if hasattr(t, f.name)
    }
    settings |= {"model": t.model(), "training": t.training()}
    if t.source_file is not None and not t.resume:
        settings["limits"] = limits_of(t)
    return Experiment(**settings)


def limits_of(t: Train) -> Limits:
    """What the options leave to the plan of a run on own files."""
    names = set(t.names)
    sizes = settings_given(t.model, names)
    settings = settings_given(t.training, names)
    if t.init is not None:
        return Given(t.model(), settings).limits(trained=True)

    def settle(model: Any, training: TrainingConfig) -> tuple:
        model = resized(model, t.family, t.preset)
        return replace(model, **sizes), replace(training, **settings)

    fixed = t.preset is not None or "d_model" in sizes
    return Limits(settle, settings, fixed)
