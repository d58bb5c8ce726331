"""Text files of one sentence a line: nothing but a newline byte ends a line."""

import gzip
import zlib
from itertools import chain, zip_longest
from pathlib import Path



def byte_lines(path):
    """Yield the lines of a file as bytes, unpacked where its name ends in .gz; errors name the file."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: check the name, or give the full path")
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        try:
            yield from file
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise ValueError(f"{path} is not a whole gzip file: copy or download it again") from None


def stream_lines(path):
    """Yield the lines of a UTF-8 text file, plain or .gz; only a newline ends one. ValueError where there are none."""
    lines = byte_lines(path)
    first = next(lines, b"").removeprefix(b"\xef\xbb\xbf")  # without a byte order mark
    if not first:
        raise ValueError(f"{path} is empty: it should hold one sentence a line")
    for number, line in enumerate(chain([first], lines), 1):
        try:
            text = line.decode("utf8")
        except UnicodeDecodeError:
            encoding = "utf16" if first.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin1"
            raise ValueError(f"{path}, line {number}, is not UTF-8: convert the file, for example with "
                             f"iconv -f {encoding} -t utf8") from None
        yield text.removesuffix("\n").removesuffix("\r")


def stream_parallel(source_file, target_file):
    """Yield (source sentence, target sentence) from two files whose lines correspond; ValueError where one is longer."""
    source, target = stream_lines(source_file), stream_lines(target_file)
    for number, pair in enumerate(zip_longest(source, target)):
        if None in pair:
            counts = [number + (side is not None) for side in pair]
            counts = [n + sum(1 for _ in rest) for n, rest in zip(counts, (source, target))]
            raise ValueError(f"{source_file} has {counts[0]} lines and {target_file} has {counts[1]}: "
                             "line n of one must translate line n of the other")
        yield pair


def read_parallel(source_file, target_file):
    """[(source sentence, target sentence), ...] from two files whose lines correspond."""
    return list(stream_parallel(source_file, target_file))
