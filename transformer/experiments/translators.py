"""The runs of notebook 16, each by what it changes in its corpus's recipe, and how they are trained
and scored.

Three seeds, because one could be luck; the other direction; three changes of one setting each; and
Tatoeba.
"""

from dataclasses import replace
from functools import partial

from transformer.experiments.runner import Job, settings_of, train_and_score
from transformer.recipes import recipe
from transformer.runs import Experiment
from transformer.scoring import score_run

SEEDS = {f"multi30k-en-de-{seed}": dict(corpus="multi30k", seed=seed) for seed in (1, 2, 3)}
ABLATIONS = {
    "multi30k-no-smoothing": dict(corpus="multi30k", seed=1, epsilon_ls=0.0),
    "multi30k-untied": dict(corpus="multi30k", seed=1, tie_embeddings=False),
    "multi30k-short-warmup": dict(corpus="multi30k", seed=1, warmup=500),
}
RUNS = {**SEEDS, "multi30k-de-en-1": dict(corpus="multi30k", reverse=True, seed=1), **ABLATIONS,
        "tatoeba-en-de": dict(corpus="tatoeba")}


def options_of(name: str) -> str:
    """A run of RUNS as options of `transformer train`."""
    words = []
    for setting, value in RUNS[name].items():
        option = setting.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", str(value)]
    return " ".join(words)


def experiment_of(name: str) -> Experiment:
    """The `Experiment` of a run of RUNS."""
    settings = dict(RUNS[name])
    corpus, reverse, parts = settings.pop("corpus"), settings.pop("reverse", False), {}
    for part, config in recipe(corpus).items():
        own = {key: value for key, value in settings.items() if hasattr(config, key)}
        parts[part] = replace(config, **own)
    return Experiment(corpus, reverse, **parts)


def score(most: int | None, e: Experiment, device) -> dict:
    """The test split (its first `most` pairs), by a run's last weights alone and by their average.
    """
    return {"test.average-1": score_run(e.folder, device, average=1, most=most),
            "test": score_run(e.folder, device, most=most)}


def job_of(name: str, e: Experiment | None = None, most: int | None = None) -> Job:
    """A run of RUNS; e replaces its experiment (by a smaller one, to rehearse)."""
    e, command = e or experiment_of(name), f"transformer train {options_of(name)}"
    do = partial(train_and_score, e, partial(score, most), command)
    return Job(name, do, {**settings_of(e), "reverse": e.reverse}, command)
