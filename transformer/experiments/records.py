"""What is kept of finished runs in data/runs, and the tables that are made from it."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

from transformer.files import data_folder, git_commit
from transformer.model import TransformerConfig
from transformer.pretrained import parameters_of
from transformer.recipes import recipe
from transformer.runs import Experiment, power, read_log, read_settings


def public(command):
    """A command without where its files and folders lie: --folder goes, and of other paths the name stays."""
    words, kept = iter(shlex.split(command)), []
    for word in words:
        name, _, value = word.partition("=")
        if name == "--folder":
            if not value:
                next(words, None)
            continue
        value = value or word
        kept.append(word.replace(value, re.split(r"[/\\]", value.rstrip("/\\"))[-1]))
    return shlex.join(kept)


def thin(log, most=40):
    """At most about `most` rows of a log, evenly spread, the last among them; figures cut to four digits."""
    step = -(-len(log) // most)
    names = ("update", "epoch", "tokens", "seconds", "tokens_per_second", "utilisation", "loss", "validation_loss", "bleu", "f1")
    return [{name: row[name] if isinstance(row[name], int) else float(f"{row[name]:.4g}") for name in names if name in row}
            for row in log[::-1][::step][::-1]]


def record(folder):
    """What is kept of a finished run and its scores, as a dict for data/runs/; ValueError where there is nothing yet."""
    saved, log = read_settings(folder), read_log(folder)
    reports = {path.name.removeprefix("scores.").removesuffix(".json"): json.loads(path.read_text(encoding="utf8"))
               for path in sorted(folder.glob("scores.*.json"))}
    if not log or not reports:
        raise ValueError(f"the run in {folder} has no {'scores' if log else 'log'}: train, then evaluate, then record it")
    last = log[-1]
    return {"command": public(saved["command"]), "commit": saved.get("commit") or git_commit(),
            "hardware": saved.get("hardware", "not recorded"),
            "resumed": [{**again, "command": public(again["command"])} for again in saved.get("resumed", [])],
            "corpus": Path(saved["source_file"]).name if saved["source_file"] else saved["corpus"], "reverse": saved.get("reverse", False),
            "seed": saved["training"]["seed"], "minutes": round(last["seconds"] / 60, 1), "updates": last["update"],
            "epochs": last["epoch"], "tokens": last["tokens"], "parameters": parameters_of(TransformerConfig(**saved["model"])),
            "model": saved["model"], "training": saved["training"], "scores": reports, "log": thin(log)}


SEEDS = {f"multi30k-en-de-{seed}": dict(corpus="multi30k", seed=seed) for seed in (1, 2, 3)}


ABLATIONS = {
    "multi30k-no-smoothing": dict(corpus="multi30k", seed=1, epsilon_ls=0.0),
    "multi30k-untied": dict(corpus="multi30k", seed=1, tie_embeddings=False),
    "multi30k-short-warmup": dict(corpus="multi30k", seed=1, warmup=500),
}


RUNS = {**SEEDS, "multi30k-de-en-1": dict(corpus="multi30k", reverse=True, seed=1), **ABLATIONS,
        "tatoeba-en-de": dict(corpus="tatoeba")}


def options_of(name):
    """A run of RUNS as options of `transformer train`."""
    words = []
    for setting, value in RUNS[name].items():
        option = setting.replace("_", "-")
        words += [f"--{option}" if value else f"--no-{option}"] if isinstance(value, bool) else [f"--{option}", str(value)]
    return " ".join(words)


def commands_of(name):
    """The commands that make data/runs/<name>.json: train, score the last weights alone, score their average."""
    folder, result = f"runs/{name}", f"data/runs/{name}.json"
    return [f"transformer train {options_of(name)} --folder {folder}",
            f"transformer evaluate --folder {folder} --average 1",
            f"transformer evaluate --folder {folder} --record {result}"]


def experiment_of(name, folder):
    """The `Experiment` of a run of RUNS, to be kept in a folder."""
    settings = dict(RUNS[name])
    corpus, reverse, parts = settings.pop("corpus"), settings.pop("reverse", False), {}
    for part, config in recipe(corpus).items():
        parts[part] = replace(config, **{key: value for key, value in settings.items() if hasattr(config, key)})
    return Experiment(corpus, reverse, folder=folder, **parts)


def read_results(folder=None):
    """{name: record} of the runs in a folder (data/runs where not given) that have scores; none where there is no folder."""
    found = {path.stem: json.loads(path.read_text(encoding="utf8"))
             for path in sorted(Path(folder or data_folder() / "runs").glob("*.json"))}
    return {name: result for name, result in found.items() if "scores" in result}


def figure_of(result, split="test", score="bleu"):
    """One score of a result file; None where it was not measured."""
    return result["scores"].get(split, {}).get(score, {}).get("score")


def missing(results):
    """One sentence on the runs that have no result file yet, and how to make one; empty where none is missing."""
    names = [name for name in RUNS if name not in results]
    if not names:
        return ""
    return f"No result yet of {', '.join(names)}. The first of them: {' && '.join(commands_of(names[0]))}"


MULTI30K_LITERATURE = {"Wu et al. 2021, tiny (2.6 M)": 41.02, "their small (36.5 M)": 39.68, "their base (49.1 M)": 38.33}


def over_seeds(values):
    """Mean and standard deviation in words: "12.30 ± 0.20"; no deviation of a single value, a dash for none."""
    own = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{own}" if values else "-"


def spread(values):
    """`over_seeds` of the scores that are not None, and how many: "12.30 ± 0.20 (3 seeds)"."""
    values = [value for value in values if value is not None]
    return over_seeds(values) + (f" ({len(values)} seed{'s' * (len(values) > 1)})" if values else "")


def markdown_table(columns, rows):
    """A table as Markdown text."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def multi30k_rows(results):
    """Rows of the Multi30k table: the literature, this project's seeds, the last weights alone, the ablations and what they change, De-En."""
    rows = [[name, f"{score:.2f}", "-"] for name, score in MULTI30K_LITERATURE.items()]
    groups = {}
    for place, prefix in (("here", ""), ("here, on a GPU", "gpu-")):
        seeds = [prefix + name for name in SEEDS]
        changed = {name: name.removeprefix("multi30k-") for name in ABLATIONS} | {"multi30k-de-en-1": "German to English"}
        groups |= {place: (seeds, "test"), f"{place}, the last weights, not averaged": (seeds, "test.average-1"),
                   **{f"{place}, {words}": ([prefix + name], "test") for name, words in changed.items()}}
        if any(prefix + name in results for name in ABLATIONS):
            groups[f"{place}, seed 1, beside which the changes above stand"] = seeds[:1], "test"
    if results.get("this run", {}).get("corpus") == "multi30k":
        groups["this run"] = ["this run"], "test"
    for label, (names, split) in groups.items():
        found = [results[name] for name in names if name in results]
        row = [spread([figure_of(r, split, score) for r in found]) for score in ("bleu_tokenized_lowercased", "bleu")]
        if row != ["-", "-"]:
            rows.append([label, *row])
    return rows


def read_alphas(folder=None):
    """What `tools/alpha.py` measured of the recipe and of the run without smoothing: {"smoothing 0.1": ..., "smoothing 0.0": ...}, as far as it was."""
    files = {"smoothing 0.1": "multi30k-alpha.json", "smoothing 0.0": "multi30k-no-smoothing-alpha.json"}
    paths = {name: Path(folder or data_folder() / "runs") / file for name, file in files.items()}
    return {name: json.loads(path.read_text(encoding="utf8")) for name, path in paths.items() if path.is_file()}


TATOEBA_LITERATURE = {"OPUS-MT 2020, on its own sample": (47.3, 66.4), "OPUS-MT 2021, big, on its own sample": (43.7, None)}


def tatoeba_rows(results):
    """Rows (system, BLEU, chrF, exact translations) of the Tatoeba table: the literature, then each run with its average and its last weights."""
    rows = [[name, bleu, chrf or "-", "-"] for name, (bleu, chrf) in TATOEBA_LITERATURE.items()]
    for name, r in results.items():
        if r["corpus"] == "tatoeba":
            for split, words in ("test.average-1", "last weights alone"), ("test", f"last {r['training']['keep']} averaged"):
                if scores := r["scores"].get(split):
                    figures = (f"{scores[figure]['score']} ± {scores[figure]['margin']}" for figure in ("bleu", "chrf"))
                    rows.append([f"here, {name}, {words}", *figures, f"{scores['exact_match']:.1%}"])
    return rows


FAMILY_NAMES = {"rnn": "RNN, one vector", "rnn-attention": "RNN with attention", "convolution": "convolution", "transformer": "Transformer"}


def read_families(corpus, folder=None):
    """What `tools/families.py` measured on a corpus, from data/runs or another folder; None where that was not done."""
    path = Path(folder or data_folder() / "runs") / f"families-{corpus}.json"
    return json.loads(path.read_text(encoding="utf8")) if path.is_file() else None


def families_rows(result, splits):
    """Rows (family, parameters, those without embeddings, peak rate, BLEU of each split, FLOPs, minutes)."""
    rows = []
    for family, part in result["families"].items():
        scores = [spread([report["bleu"]["score"] for report in part[split]["seeds"].values()]) for split in splits]
        rows.append([FAMILY_NAMES[family], *(f"{part[name] / 1e6:.2f} M" for name in ("parameters", "parameters_without_embeddings")),
                     f"{part['rate']:g}", *scores, power(part["flops"]),
                     part["minutes"]["cpu"]])
    return rows


def estimate_rows(estimate):
    """Rows (model, hardware, seconds an update, hours, dollars) of the file that `tools/gpu.py` estimates."""
    def text(number):
        return "-" if number is None else f"{number:.2g}" if number < 10 else f"{number:,.0f}"

    return [[row["model"], row["hardware"], *(text(row[name]) for name in ("seconds_per_update", "hours", "dollars"))]
            for row in estimate["rows"]]
