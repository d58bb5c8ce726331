"""One schema: what is written is read again, nested figures become columns, data/runs holds nothing else."""

import json

import pandas as pd
import pytest

from transformer.core.records import flatten, read_rows, table, under, write_rows
from transformer.experiments.rows import public, thin


def test_flatten():
    nested = {
        "corpus": "x",
        "model": {"N": 3, "d_k": None},
        "test": {
            "bleu": {"score": 40.1, "margin": 1.6},
            "by": {"1-10": {"f1": 3.0}},
            "curve": [1, {"a": 2}],
        },
    }
    flat = flatten(nested)
    assert flat == {
        "corpus": "x",
        "model.N": 3,
        "model.d_k": None,
        "test.bleu": 40.1,
        "test.bleu.margin": 1.6,
        "test.by.1-10.f1": 3.0,
        "test.curve": [1, {"a": 2}],
    }
    assert under(flat, "model") == nested["model"] and flatten(flat) == flat
    assert flatten({"score": 1}) == {"score": 1}


ROWS = [
    {"name": "a", "seed": 1, "N": 3, "log.loss": [1.0, 0.5]},
    {"name": "b", "seed": 2, "N": 3, "diverged": "ä, ü"},
    {"name": "c", "seed": True, "N": 3.0, "longest": None},
]


@pytest.mark.parametrize("rows", [ROWS, ROWS[:2], ROWS[:1]])
def test_what_is_written_is_read_again(rows, tmp_path):
    write_rows(tmp_path / "x.json", rows)
    assert [
        json.dumps(row, sort_keys=True) for row in read_rows(tmp_path / "x.json")
    ] == [json.dumps(row, sort_keys=True) for row in rows]  # 1, 1.0 and True differ


def test_what_all_rows_share_stands_once(tmp_path):
    write_rows(tmp_path / "x.json", ROWS[:2])
    content = json.loads((tmp_path / "x.json").read_text(encoding="utf8"))
    assert (
        content["N"] == 3
        and all("N" not in row for row in content["rows"])
        and "seed" not in content
    )
    assert read_rows(tmp_path / "nothing.json") == []


def test_a_table_of_files(tmp_path):
    write_rows(tmp_path / "x-1.json", ROWS[:1])
    write_rows(tmp_path / "x-2.json", ROWS)
    found = table("x-*", folder=tmp_path)
    assert (
        list(found["file"]) == ["x-1", "x-2", "x-2", "x-2"]
        and found["diverged"].notna().sum() == 1
    )
    assert (
        len(table("x-1", "x-*", folder=tmp_path)) == 4
        and table("y", folder=tmp_path).empty
    )
    assert isinstance(found, pd.DataFrame)


@pytest.mark.parametrize(
    "command, kept",
    [
        (
            "transformer train --folder /scratch/ann/run --seed 3",
            "transformer train --seed 3",
        ),
        (
            "transformer train --folder=/x --source-file /data/my.en",
            "transformer train --source-file my.en",
        ),
        (
            r"transformer train --source-file 'C:\Users\ann\x.en' --target-file C:/Users/ann/y.de --record data/runs/z.json",
            "transformer train --source-file x.en --target-file y.de --record z.json",
        ),
    ],
)
def test_nothing_of_a_machines_folders_stays(command, kept):
    assert public(command) == kept


def test_a_thin_log_ends_where_the_log_ends():
    log = [{"update": n, "loss": n / 3, "grad": 1.0} for n in range(1, 101)]
    found = thin(log, most=10)
    assert (
        found["update"] == list(range(10, 101, 10))
        and found["loss"][-1] == 33.33
        and "grad" not in found
    )
    assert thin(log[:3]) == {"update": [1, 2, 3], "loss": [0.3333, 0.6667, 1.0]}


def test_every_record_has_plain_columns_and_says_where_it_comes_from(root):
    paths = [
        path
        for path in sorted((root / "data" / "runs").glob("*.json"))
        if "bench" not in path.name
    ]
    assert len(paths) > 15
    for path in paths:
        text = path.read_text(encoding="utf8")
        assert not any(
            place in text for place in ("/tmp", "/home", "/root", "/work", "\\Users")
        ), path
        for row in read_rows(path):
            assert not any(isinstance(value, dict) for value in row.values()), path
            assert row["command"] and "commit" in row and row["hardware"], path
            assert "failed" not in row


def test_older_names_of_settings_are_read_as_todays(tmp_path):
    path = tmp_path / "x.json"
    old = {"training.factor": 0.5, "training.save_every": 10, "training.falling": True}
    path.write_text(json.dumps({"name": "a", **old, "seed": 1}))
    (row,) = read_rows(path)
    assert not old.keys() & row.keys()
    assert row["training.schedule"] == "linear"
    assert row["training.lr_scale"] == 0.5
    assert row["training.validate_every"] == 10


def test_rows_of_before_there_were_schedules_have_the_papers(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(
        json.dumps({"training.updates": 3, "rows": [{"training.falling": False}, {}]})
    )
    assert [row["training.schedule"] for row in read_rows(path)] == ["inverse_sqrt"] * 2
