"""Sentence pairs that are too many for memory, parsed once."""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from tempfile import TemporaryFile
from typing import IO

from transformer.corpora.download import download_folder

PART = 10_000  # pairs in memory at a time

Pairs = Iterable[tuple[str, str]]


def written(part: list, file: IO[bytes]) -> bool:
    """Append a part to a file; False where the disk is full."""
    try:
        pickle.dump(part, file)
        file.flush()
    except OSError:
        return False
    return True


class ParsedOnce:
    """What a stream yields, as often as asked: the first whole pass keeps it in a temporary file.

    The file is as large as the text, lies beside the downloads, and goes with this object. Where
    it cannot be written each pass is a stream.
    """

    def __init__(self, stream: Callable[[], Pairs]):
        self.stream = stream
        self.file: IO[bytes] | None = None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        parts = self.parsed() if self.file is None else self.kept(self.file)
        for part in parts:
            yield from part

    def parsed(self) -> Iterator[list]:
        """The parts of the stream, which are written down by the way."""
        file = None
        with suppress(OSError):
            download_folder().mkdir(parents=True, exist_ok=True)
            file = TemporaryFile(dir=download_folder())
        pairs = iter(self.stream())
        while part := list(islice(pairs, PART)):
            if file is not None and not written(part, file):
                file = None
            yield part
        self.file = file

    def kept(self, file: IO[bytes]) -> Iterator[list]:
        """The parts in the file; another pass may read it meanwhile."""
        end = file.seek(0, os.SEEK_END)
        place = 0
        while place < end:
            file.seek(place)
            part = pickle.load(file)
            place = file.tell()
            yield part
