"""Text files of one sentence a line: nothing but a newline byte ends a line."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from transformer.core.files import existing
from transformer.core.white_space import without_blanks

# How packed files begin: what they are, their suffix, and what unpacks them
PACKED = {
    b"\x1f\x8b": ("gzip", ".gz", "gunzip"),
    b"BZh": ("bzip2", ".bz2", "bunzip2"),
    b"\xfd7zXZ\x00": ("xz", ".xz", "unxz"),
    b"\x28\xb5\x2f\xfd": ("zstd", ".zst", "unzstd"),
    b"PK\x03\x04": ("zip", ".zip", "unzip"),
}


def byte_lines(path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file as bytes, unpacked where its name ends in .gz."""
    path = existing(path, "check the name, or give the full path")
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        try:
            yield from file
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise ValueError(
                f"{path} is not a whole gzip file: copy or download it again"
            ) from None


def stream_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, plain or .gz; only a newline ends one.

    Raises ValueError where there are none, and where a line is not UTF-8.
    """
    lines = byte_lines(path)
    first = next(lines, b"").removeprefix(b"\xef\xbb\xbf")  # without a byte order mark
    if not first:
        raise ValueError(f"{path} is empty: it should hold one sentence a line")
    for magic, (name, suffix, tool) in PACKED.items():
        if first.startswith(magic):
            how = (
                "give its name the suffix .gz, or unpack"
                if suffix == ".gz"
                else "unpack"
            )
            again = (
                " once more" if suffix == ".gz" and Path(path).suffix == ".gz" else ""
            )
            raise ValueError(
                f"{path} holds {name} data{again}, no text: {how} it ({tool})"
            )
    for number, line in enumerate(chain([first], lines), 1):
        try:
            text = line.decode("utf8")
        except UnicodeDecodeError:
            encoding = (
                "utf16" if first.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin1"
            )
            raise ValueError(
                f"{path}, line {number}, is not UTF-8: convert the file, for example with "
                f"iconv -f {encoding} -t utf8"
            ) from None
        yield text.removesuffix("\n").removesuffix("\r")


def stream_parallel(
    source_file: str | Path, target_file: str | Path
) -> Iterator[tuple]:
    """Yield (source sentence, target sentence) from two files whose lines correspond.

    Raises ValueError where one is longer.
    """
    for pair in zip_longest(stream_lines(source_file), stream_lines(target_file)):
        if None in pair:
            source = sum(1 for _ in stream_lines(source_file))
            target = sum(1 for _ in stream_lines(target_file))
            raise ValueError(
                f"{source_file} has {source} lines and {target_file} has {target}: "
                "line n of one must translate line n of the other"
            )
        yield pair


def parallel_pairs(paths: Sequence[Path], split: str) -> Iterator[tuple]:
    """The pairs of a split that has two files of its own."""
    return stream_parallel(*paths)


def read_parallel(source_file: str | Path, target_file: str | Path) -> list[tuple]:
    """[(source sentence, target sentence), ...] from two files whose lines correspond.

    Pairs with a blank side are left out, and a warning counts them.
    """
    pairs = stream_parallel(source_file, target_file)
    return list(without_blanks(pairs, f"pairs of {source_file} and {target_file}"))
