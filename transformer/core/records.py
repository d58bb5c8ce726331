"""What is kept of experiments in data/runs: one schema, long tables, a row a run.

A file holds rows with plain columns; what is nested elsewhere is flattened with dots: "model.N",
"training.warmup", "test.bleu", "test.bleu.margin", "log.update" (a curve is a list). Where it came
from stands in "command", "commit", "hardware", "seed" and "minutes". What all rows of a file share
stands once at its top, and the rest under "rows".
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.core.files import data_folder, write_file

if TYPE_CHECKING:
    import pandas


def flatten(nested: dict, prefix: str = "") -> dict:
    """What is nested as plain columns; a key "score" is left out of their names, lists stay.

    {"test": {"bleu": {"score": 40.1, "margin": 1.6}}} becomes
    {"test.bleu": 40.1, "test.bleu.margin": 1.6}.
    """
    flat: dict[str, Any] = {}
    for name, value in nested.items():
        path = ".".join(
            part for part in (prefix, name) if part and (part != "score" or not prefix)
        )
        flat |= flatten(value, path) if isinstance(value, dict) else {path: value}
    return flat


def under(row: dict, prefix: str) -> dict:
    """The columns of a row below a name, without it: under(row, "model") is {"N": ..., ...}."""
    return {
        name.removeprefix(f"{prefix}."): value
        for name, value in row.items()
        if name.startswith(f"{prefix}.")
    }


# Names that settings of training had until they were renamed, and of what came later the value
# that all had before

FORMER = {"factor": "lr_scale", "save_every": "validate_every"}
BEFORE = {
    "schedule": "inverse_sqrt",
    "restore_best": False,
    "monitor_mode": "auto",
}


def renamed(training: dict) -> dict:
    """Settings of training under today's names; run.json and records have older ones, too."""
    now = {FORMER.get(name, name): value for name, value in training.items()}
    if now.pop("falling", False):
        now["schedule"] = "linear"
    return BEFORE | now if now else now


def with_names_of_today(row: dict) -> dict:
    """A row of a record whose columns of training have today's names; see `renamed`."""
    training = renamed(under(row, "training"))
    columns = {f"training.{name}": value for name, value in training.items()}
    result: dict[str, Any] = {}
    for name, value in row.items():
        result |= columns if name.startswith("training.") else {name: value}
    return result


# Files


def file_of(record: Path | str) -> Path:
    """A path as it is, or the file of a name in data/runs."""
    return (
        record
        if isinstance(record, Path)
        else data_folder() / "runs" / f"{record}.json"
    )


def write_rows(record: Path | str, rows: list[dict]) -> None:
    """Write rows into a file; columns that have the same value in all of them stand once."""
    first, same = rows[0], {}
    for name, value in first.items():
        text = json.dumps(value)
        if all(name in row and json.dumps(row[name]) == text for row in rows):
            same[name] = value
    lines = [
        f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in same.items()
    ]
    if len(rows) > 1:
        own = [
            {name: value for name, value in row.items() if name not in same}
            for row in rows
        ]
        listed = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in own)
        lines.append(f' "rows": [\n  {listed}\n ]')
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    write_file(
        file_of(record), lambda temporary: temporary.write_text(text, encoding="utf8")
    )


def read_rows(record: Path | str) -> list[dict]:
    """The rows of a file, or of the file of that name in data/runs; none where there is no file.

    Settings of training have today's names, whatever the file calls them (`renamed`).
    ValueError for a file that holds something else.
    """
    path = file_of(record)
    if not path.is_file():
        return []
    try:
        content = json.loads(path.read_text(encoding="utf8"))
        rows = content.pop("rows", [{}])
        return [with_names_of_today({**content, **row}) for row in rows]
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a file of results: name another") from error


def table(*patterns: str, folder: Path | None = None) -> "pandas.DataFrame":
    """The rows of all files in data/runs (or another folder) whose names fit a pattern, in pandas.

    A pattern is one such as "multi30k-*"; without any, all files are read. The column "file" names
    where a row stands; what a row has no value for is missing (NaN).
    """
    import pandas

    folder = folder or data_folder() / "runs"
    paths = dict.fromkeys(
        path
        for pattern in patterns or ["*"]
        for path in sorted(folder.glob(f"{pattern}.json"))
    )
    rows = [{"file": path.stem, **row} for path in paths for row in read_rows(path)]
    return pandas.DataFrame(rows)
