"""What is kept of a run of training: its settings, where it came from, its scores and its log, as
one row.
"""

import json
import re
import shlex
from pathlib import Path

from transformer.core.files import git_commit
from transformer.core.records import flatten
from transformer.core.weights import load_weights
from transformer.runs.folder import read_settings
from transformer.runs.progress import read_log

LOGGED = (
    "update",
    "epoch",
    "tokens",
    "seconds",
    "tokens_per_second",
    "utilisation",
    "loss",
    "validation_loss",
    "use",
    "bleu",
    "f1",
)


def public(command: str) -> str:
    """A command without where its files and folders lie: --folder goes, and of other paths the name
    stays.
    """
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


def thin(log: list[dict], most: int = 40) -> dict[str, list]:
    """At most about `most` rows of a log, evenly spread, the last among them, as columns; figures
    cut to four digits.
    """
    step = -(-len(log) // most)
    rows = log[::-1][::step][::-1]

    def cut(value: float) -> float:
        return value if isinstance(value, int) else float(f"{value:.4g}")

    return {
        name: [cut(row[name]) for row in rows] for name in LOGGED if name in rows[0]
    }


def outside_embeddings(parameters: int, model: dict) -> int:
    """How many of a model's parameters are not in its embedding matrix (or its three, where they
    are not tied).
    """
    matrices = 1 if model.get("tie_embeddings", True) else 3
    return parameters - model["vocab_size"] * model["d_model"] * matrices


def parameters_in(path: Path) -> int:
    """How many numbers a file of weights holds."""
    return sum(weight.numel() for weight in load_weights(path)[0].values())


def row_of(folder: Path, reports: dict) -> dict:
    """What is kept of a finished run, as a row; reports is {split: figures}."""
    saved, log = read_settings(folder), read_log(folder)
    last, settings = log[-1], {**saved["training"]}
    parameters = parameters_in(folder / "model.safetensors")
    again = saved.get("resumed", [])
    resumed = [{**one, "command": public(one["command"])} for one in again]
    source = saved.get("source_file")
    outside = outside_embeddings(parameters, saved["model"])
    return flatten(
        {
            "command": public(saved["command"]),
            "commit": saved.get("commit") or git_commit(),
            "hardware": saved.get("hardware", "not recorded"),
            "resumed": resumed,
            "corpus": Path(source).name if source else saved["corpus"],
            "reverse": saved.get("reverse", False),
            "seed": settings.pop("seed"),
            "minutes": round(last["seconds"] / 60, 2),
            "updates": last["update"],
            "epochs": last["epoch"],
            "tokens": last["tokens"],
            "parameters": parameters,
            "parameters.outside_embeddings": outside,
            "model": saved["model"],
            "training": settings,
            **reports,
            "log": thin(log),
        }
    )


def record(folder: Path) -> dict:
    """The row of a finished run with all its scores; ValueError where there is nothing yet."""
    reports = {}
    for path in sorted(folder.glob("scores.*.json")):
        report = json.loads(path.read_text(encoding="utf8"))
        split = path.name.removeprefix("scores.").removesuffix(".json")
        reports[split] = {
            name: report[name] for name in report if name not in ("corpus", "split")
        }
    if not read_log(folder) or not reports:
        raise ValueError(
            f"the run in {folder} has no {'scores' if read_log(folder) else 'log'}: "
            "train, then evaluate, then record it"
        )
    return row_of(folder, reports)


def times_and_bytes(found: dict, sizes: list[int]) -> list[dict]:
    """What `measure` found as rows, one a way, layer and size; seconds to four figures."""
    return [
        {
            "mode": mode,
            "layer": layer,
            "n": n,
            "seconds": float(f"{seconds:.4g}"),
            "bytes": memory,
        }
        for mode, layers in found.items()
        for layer, row in layers.items()
        for n, seconds, memory in zip(sizes, row["seconds"], row["bytes"])
    ]
