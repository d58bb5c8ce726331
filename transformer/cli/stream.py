"""Lines in, lines out: a stream is translated as it comes, and a line that cannot be is named."""

import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import BinaryIO

from transformer.core.white_space import normalised

MANY = 200  # lines translated at a time, where so many are there
LONGEST = 2**24  # bytes of a line


def standard_input() -> BinaryIO:
    """Standard input as bytes; ValueError where it is closed."""
    if sys.stdin is None or sys.stdin.closed:
        raise ValueError(
            "standard input is closed: give a sentence in quotes, or lines through a "
            "pipe"
        )
    return sys.stdin.buffer


def lines_of(stream) -> Iterator[list[bytes]]:
    """Yield the whole lines that have come, at most `MANY` at a time, without their ends."""
    rest = b""
    while part := stream.read1(2**16):
        *lines, rest = (rest + part).split(b"\n")
        for start in range(0, len(lines), MANY):
            yield lines[start : start + MANY]
        if len(rest) > LONGEST:
            raise ValueError(
                f"standard input holds a line of more than {LONGEST:,} bytes: write "
                "one sentence a line"
            )
    if rest:
        yield [rest]


def text_of(line: bytes) -> str:
    """A line as text, without a byte order mark; ValueError where it is not UTF-8."""
    try:
        return line.decode("utf8").removeprefix("\ufeff").removesuffix("\r")
    except UnicodeDecodeError:
        raise ValueError(
            "is not UTF-8: convert it, for example with iconv -f latin1 -t utf8"
        ) from None


def sentence_in(line: bytes, tokenizer, max_positions: int) -> str:
    """The sentence of a line, its white space normalised as `translate` does; ValueError where it
    is not UTF-8, or too long for the model."""
    text = normalised(text_of(line))
    length = len(tokenizer.encode_all([text])[0]) + 1  # with the end mark
    if length > max_positions:
        raise ValueError(
            f"has {length} tokens, more than the model's {max_positions} positions: "
            "split it"
        )
    return text


def answers(stream, tokenizer, max_positions: int, answer: Callable) -> Iterator[tuple]:
    """Yield (number of the line, its answer, None) or (number, None, what is wrong with it).

    answer(sentences) -> a list with one entry for each of them.
    """
    numbers = count(1)
    for lines in lines_of(stream):
        texts, wrong = [], []
        for line in lines:
            try:
                texts.append(sentence_in(line, tokenizer, max_positions))
                wrong.append(None)
            except ValueError as error:
                wrong.append(str(error))
        found = iter(answer(texts))
        for reason in wrong:
            yield next(numbers), None if reason else next(found), reason
