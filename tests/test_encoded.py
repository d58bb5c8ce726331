"""A corpus encoded on disk."""

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from transformer.corpora import read_corpus, stream_parallel, windows
from transformer.corpora.tokenizer import Tokenizer
from transformer.corpora.windows import padding_share
from transformer.data import collate, encode_pairs
from transformer.runs import encoded as module
from transformer.runs.batches import epoch_batches, token_batches
from transformer.runs.encoded import EncodedPairs, encode_to_folder


@pytest.fixture(scope="module")
def pairs():
    return read_corpus("bundled", "train")[:1500]


@pytest.fixture(scope="module")
def tokenizer(pairs):
    return Tokenizer.train([text for pair in pairs for text in pair], 600)


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr(windows, "BLOCK", 8)
    monkeypatch.setattr(windows, "WINDOW", 100)


@pytest.fixture(scope="module")
def encoded_once(tokenizer, pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("once") / "encoded"
    encode_to_folder(tokenizer, iter(pairs), folder, "key")
    return folder


@pytest.fixture
def on_disk(encoded_once, tmp_path):
    """The encoded pairs in a folder of the test's own."""
    return EncodedPairs(shutil.copytree(encoded_once, tmp_path / "encoded"), "key")


def test_on_disk_equals_the_list(tokenizer, pairs, on_disk):
    encoded = encode_pairs(tokenizer, pairs)
    assert (
        len(on_disk) == len(encoded)
        and list(on_disk) == encoded
        and on_disk.left_out == 0
    )
    assert (
        on_disk[3] == encoded[3]
        and on_disk[-1] == encoded[-1]
        and on_disk[5:50:7] == encoded[5:50:7]
    )
    assert on_disk[:0] == [] and all(
        type(i) is int for side in on_disk[0] for i in side
    )
    for wrong in (len(encoded), -len(encoded) - 1):
        with pytest.raises(IndexError):
            on_disk[wrong]


def test_batches_of_pairs_on_disk_equal_those_of_the_list(
    tokenizer, pairs, on_disk, small_windows
):
    encoded = encode_pairs(tokenizer, pairs)
    batches = token_batches(encoded, 300, seed=3)
    assert token_batches(on_disk, 300, seed=3) == batches
    assert padding_share(on_disk, batches) == padding_share(encoded, batches)
    one, other = collate(on_disk[:9]), collate(encoded[:9])
    assert torch.equal(one.source, other.source) and torch.equal(
        one.target, other.target
    )


@pytest.mark.skipif(
    not os.path.exists("/proc/self/smaps"),
    reason="only Linux tells how much of a file is in memory",
)
def test_released_pages_are_out_of_memory(on_disk, tmp_path):
    def in_memory():
        maps = Path("/proc/self/smaps").read_text()
        found = re.findall(
            rf"{re.escape(str(tmp_path))}/encoded/(\w+)\.bin\n(?:(?!Rss).*\n)*Rss: +(\d+) kB",
            maps,
        )
        return {name: int(kilobytes) for name, kilobytes in found}

    assert list(on_disk) and all(kilobytes > 0 for kilobytes in in_memory().values())
    on_disk.release()
    assert in_memory() == {"tokens": 0, "offsets": 0}


def test_every_window_releases_the_pages_of_the_last(on_disk, small_windows):
    opened = []
    for _ in epoch_batches(on_disk, 300):
        if not any(on_disk.tokens is tokens for tokens in opened):
            opened.append(on_disk.tokens)
    assert (
        len(opened)
        == len(list(windows.windows(len(on_disk), np.random.RandomState(0))))
        == 15
    )


def test_large_vocabularies_take_four_bytes(tokenizer, pairs, tmp_path, monkeypatch):
    """Ids above 65,535 would be cut off in two bytes."""
    encoded = [([2**16, 2], [1, 70_000, 2]), ([65_535, 2], [1, 2])]
    monkeypatch.setattr(module, "encode_pairs", lambda tokenizer, pairs: encoded)
    for vocab_size, dtype in ((2**16, "uint16"), (2**16 + 1, "int32")):
        monkeypatch.setattr(Tokenizer, "vocab_size", vocab_size)
        rows = encoded if dtype == "int32" else encoded[1:]
        monkeypatch.setattr(
            module, "encode_pairs", lambda tokenizer, pairs, rows=rows: rows
        )
        on_disk = encode_to_folder(tokenizer, [("a", "b")], tmp_path / dtype, "key")
        assert on_disk.tokens.dtype == dtype and list(on_disk) == rows


@pytest.mark.parametrize("part", [1, 7, 200, 201])
def test_encoding_in_parts(tokenizer, pairs, tmp_path, monkeypatch, part):
    monkeypatch.setattr(module, "PART", part)
    on_disk = encode_to_folder(
        tokenizer, iter(pairs[:200]), tmp_path / "x", "key", longest=15
    )
    fitting = [
        pair
        for pair in encode_pairs(tokenizer, pairs[:200])
        if max(len(pair[0]), len(pair[1]) - 1) <= 15
    ]
    assert list(on_disk) == fitting and on_disk.left_out == 200 - len(fitting)


def test_long_pairs_are_left_out(tokenizer, pairs, tmp_path):
    def fits(source, target):  # as training.check_pairs counts
        return max(len(source), len(target) - 1) <= 20

    expected = [pair for pair in encode_pairs(tokenizer, pairs) if fits(*pair)]
    on_disk = encode_to_folder(tokenizer, pairs, tmp_path / "x", "key", longest=20)
    assert list(on_disk) == expected and 0 < on_disk.left_out == len(pairs) - len(
        expected
    )
    with pytest.raises(
        ValueError, match="no sentence pairs to encode of at most 1 tokens"
    ):
        encode_to_folder(tokenizer, pairs, tmp_path / "y", "key", longest=1)
    with pytest.raises(ValueError, match="no sentence pairs to encode$"):
        encode_to_folder(tokenizer, [], tmp_path / "y", "key")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x"], (
        "half a folder was left behind"
    )


def test_a_folder_is_made_once(tokenizer, pairs, on_disk, tmp_path):
    def never():
        raise AssertionError("encoded again")
        yield

    assert list(
        encode_to_folder(tokenizer, never(), tmp_path / "encoded", "key")
    ) == list(on_disk)
    with pytest.raises(
        ValueError,
        match="encoded holds other text, or was made with another tokenizer: name another",
    ):
        encode_to_folder(tokenizer, never(), tmp_path / "encoded", "another key")


def test_interrupted_encoding_leaves_nothing(tokenizer, pairs, tmp_path):
    def broken():
        yield from pairs
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_to_folder(tokenizer, broken(), tmp_path / "x", "key")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        "tokens.bin cut",
        "offsets.bin cut",
        "tokens.bin bit",
        "offsets.bin gone",
        "about.json cut",
        "about.json gone",
        "about.json list",
        "about.json other",
        "all gone",
    ],
)
def test_damaged_folders(on_disk, tokenizer, tmp_path, damage):
    name, kind = damage.split()
    path = tmp_path / "encoded" / name
    if kind == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif kind == "bit":
        content = bytearray(path.read_bytes())
        content[100] ^= 1
        path.write_bytes(content)
    elif kind in ("list", "other"):
        path.write_text("[]" if kind == "list" else '{"key": "key"}')
    else:
        for gone in [path] if name != "all" else list((tmp_path / "encoded").iterdir()):
            gone.unlink()
    with pytest.raises(
        ValueError,
        match=r"encoded is not a folder of encoded pairs, or damaged: delete it and run",
    ):
        encode_to_folder(tokenizer, [], tmp_path / "encoded", "key")
    with pytest.raises(ValueError, match=r"nowhere is not a folder of encoded pairs"):
        EncodedPairs(tmp_path / "nowhere")


def test_own_files_are_prepared_once(tokenizer, pairs, tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path / "downloads"))
    files = tmp_path / "my.en", tmp_path / "my.de"
    for side, path in enumerate(files):
        path.write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf8")

    def folders():
        return sorted(
            path.name for path in (tmp_path / "downloads" / "encoded").iterdir()
        )

    def prepare(tokenizer, source, target, longest=None):
        return module.prepare(
            tokenizer,
            stream_parallel(source, target),
            [source, target],
            "my",
            "train",
            False,
            longest,
        )

    prepared = prepare(tokenizer, *files)
    assert list(prepared) == encode_pairs(tokenizer, pairs) and len(folders()) == 1
    prepare(tokenizer, *files)
    assert len(folders()) == 1 and folders()[0].startswith("my-")
    prepare(tokenizer, *files, longest=20)
    prepare(tokenizer, *reversed(files))
    prepare(Tokenizer.train(["another"], 300), *files)
    assert len(folders()) == 4
    files[0].write_text(
        files[0].read_text(encoding="utf8").replace("e", "a"), encoding="utf8"
    )
    changed = prepare(tokenizer, *files)
    assert len(folders()) == 5 and list(changed) != list(prepared)
