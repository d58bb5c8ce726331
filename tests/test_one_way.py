"""From the command to a translation each thing is done once: parses, hashes, writes, builds."""

import collections
import json
import shutil
from pathlib import Path

import pytest
from test_cli import SIZES, SPEED, call

from transformer.core import weights
from transformer.corpora import bundled, download, lines
from transformer.corpora.registry import File
from transformer.corpora.tokenizer import Tokenizer
from transformer.models import pretrained
from transformer.runs import experiment, parsed

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def counted(monkeypatch):
    """count(place, name): let calls be counted by name in the counter that is returned."""
    calls = collections.Counter()

    def count(place, name):
        function = getattr(place, name)

        def counting(*arguments, **named):
            calls[name] += 1
            return function(*arguments, **named)

        monkeypatch.setattr(place, name, counting)
        return calls

    return count


@pytest.fixture
def read(monkeypatch):
    """How often each file was read whole, by name."""
    calls = collections.Counter()

    def count(name):
        function = getattr(Path, name)

        def counting(path, *arguments, **named):
            calls[path.name] += 1
            return function(path, *arguments, **named)

        monkeypatch.setattr(Path, name, counting)

    count("read_text")
    count("read_bytes")
    return calls


@pytest.mark.system
def test_a_corpus_is_parsed_once_and_the_tokenizer_saved_once(counted, tmp_path):
    read = counted(bundled, "read_bundled")
    saved = counted(Tokenizer, "save")
    loaded = counted(Tokenizer, "load")
    folder = tmp_path / "run"
    sizes = [*SIZES, "--folder", folder]
    done = call("train", "--corpus", "bundled", *sizes, *SPEED)
    assert done.status == 0, done.err
    assert read["read_bundled"] == 2  # one for each of two splits
    assert saved["save"] == 1
    assert loaded["load"] == 0


def test_own_files_are_parsed_once(counted, own_files, tmp_path):
    """For the plan, the vocabulary, training and validation together."""
    streamed = counted(experiment, "stream_parallel")
    files = ["--source-file", own_files[0], "--target-file", own_files[1]]
    folder = tmp_path / "run"
    done = call("train", *files, "--folder", folder, *SIZES, *SPEED)
    assert done.status == 0, done.err
    assert streamed["stream_parallel"] == 1


def test_large_own_files_are_parsed_and_hashed_once(
    counted, own_files, monkeypatch, tmp_path
):
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path / "downloads"))
    monkeypatch.setattr(experiment, "LARGE", 1)
    streamed = counted(experiment, "stream_parallel")
    hashed = []
    sha256_of = download.sha256_of
    monkeypatch.setattr(
        download, "sha256_of", lambda path: hashed.append(path) or sha256_of(path)
    )
    source, target = (shutil.copy(path, tmp_path) for path in own_files)
    files = ["--source-file", source, "--target-file", target]
    folder = tmp_path / "run"
    done = call("train", *files, "--folder", folder, *SIZES, *SPEED)
    assert done.status == 0, done.err
    assert streamed["stream_parallel"] == 1
    assert hashed == [Path(source), Path(target)]
    left = sorted(path.name for path in (tmp_path / "downloads").iterdir())
    assert left == ["encoded"]


@pytest.mark.system
def test_a_corpus_on_disk_is_parsed_once(counted, monkeypatch, tmp_path):
    """Its vocabulary is learned and its pairs are encoded from what was parsed."""
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path / "downloads"))
    monkeypatch.setattr(experiment, "ON_DISK", ("bundled",))
    read = counted(bundled, "read_bundled")
    folder = tmp_path / "run"
    sizes = [*SIZES, "--folder", folder]
    done = call("train", "--corpus", "bundled", *sizes, *SPEED)
    assert done.status == 0, done.err
    assert read["read_bundled"] == 2  # one for each of two splits


@pytest.mark.parametrize("full", [False, True])
def test_what_was_parsed_once_comes_again(full, monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path / "downloads"))
    monkeypatch.setattr(parsed, "PART", 3)
    if full:
        monkeypatch.setattr(parsed, "written", lambda part, file: False)
    passes = []
    expected = [(f"a\n{i}", f"\u2028b {i}\r") for i in range(10)]

    def stream():
        passes.append("begun")
        yield from expected

    pairs = parsed.ParsedOnce(stream)
    assert next(iter(pairs)) == expected[0]  # and no more, so that it begins anew
    assert list(pairs) == expected
    together = list(zip(pairs, pairs))
    assert together == list(zip(expected, expected))
    assert len(passes) == (4 if full else 2)


@pytest.mark.system
def test_a_model_is_built_once_when_it_loads(counted, read, tmp_path):
    sizes = [*SIZES, "--folder", tmp_path / "run"]
    assert call("train", "--corpus", "bundled", *sizes, *SPEED).status == 0
    built = counted(pretrained, "build")
    looked_through = counted(weights, "check_numbers")
    read.clear()
    pretrained.load(tmp_path / "run")
    assert built["build"] == 1
    assert read["tokenizer.json"] == 1
    assert looked_through["check_numbers"] == 0


@pytest.mark.parametrize("name", sorted(pretrained.BUNDLED_MODELS))
def test_a_model_that_comes_along_is_built_once_and_read_once(counted, read, name):
    """What a checksum vouches for is not looked through again."""
    built = counted(pretrained, "build")
    looked_through = counted(weights, "check_numbers")
    pretrained.load(name)
    assert built["build"] == 1
    assert read["tokenizer.json"] == 1
    assert looked_through["check_numbers"] == 0


def test_a_registered_file_is_hashed_when_it_is_new_or_changed(
    counted, monkeypatch, tmp_path
):
    mirror = tmp_path / "mirror"
    file = mirror / "some" / "text.txt"
    file.parent.mkdir(parents=True)
    file.write_text("one\ntwo\n")
    entry = File("", sha256=download.sha256_of(file))
    monkeypatch.setitem(download.registry.FILES, "some/text.txt", entry)
    monkeypatch.setenv("TRANSFORMER_MIRROR", str(mirror))
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path / "downloads"))
    hashed = counted(download, "sha256_of")
    for _ in range(3):
        assert download.corpus_file("some", "some/text.txt") == file
    assert hashed["sha256_of"] == 1
    file.write_text("one\nTwo, changed\n")
    with pytest.raises(ValueError, match="is damaged"):
        download.corpus_file("some", "some/text.txt")
    assert hashed["sha256_of"] == 2
    book = tmp_path / "downloads" / "checked.json"
    assert len(json.loads(book.read_text())) == 1
    book.write_text("no JSON")
    file.write_text("one\ntwo\n")
    assert list(lines.byte_lines(download.corpus_file("some", "some/text.txt")))
    assert hashed["sha256_of"] == 3
