"""Characters of texts: white space that is normalised, pairs with a blank side, left out and
counted, and what UTF-8 cannot write."""

import unicodedata
import warnings
from collections.abc import Iterable, Iterator

INVISIBLE = ("Zs", "Zl", "Zp", "Cc", "Cf")  # Unicode's separators, controls and formats


def is_blank(text: str) -> bool:
    """Whether nothing in a text can be seen: no character, white space, marks of no width."""
    rest = text.strip()
    if not rest or rest[0].isalnum():
        return not rest
    return all(unicodedata.category(character) in INVISIBLE for character in rest)


def normalised(text: str) -> str:
    """A text as models read it: one blank for each run of Unicode's white space, none at the ends;
    "" for one in which nothing can be seen (`is_blank`), such as control characters alone.

    `translate`, `translate_n_best`, `view` and chats do so with what they are given, as corpora
    hold sentences; `Tokenizer.encode` and training do not. A byte order mark, which files begin
    with, is no text.
    """
    found = " ".join(text.removeprefix("\ufeff").split())
    return "" if is_blank(found) else found


def check_characters(text: str, name: str) -> None:
    """ValueError for a text with half of a surrogate pair, which UTF-8 cannot write."""
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} cannot be written as UTF-8 (character {error.start + 1} is half "
            "of a surrogate pair): read the text with its own encoding"
        ) from None


def warn_of_blanks(blank: int, count: int, what: str) -> None:
    """The sentence, as a warning, where of `count` pairs so many have a blank side."""
    if blank:
        warnings.warn(
            f"{blank:,} of {count:,} {what} have a blank source or target and are left out",
            stacklevel=1,  # one place, so that each sentence is shown once
        )


def without_blanks(
    pairs: Iterable[tuple[str, str]], what: str = "sentence pairs"
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of which no side is blank; at the end, a warning that counts the others.

    what: what the warning calls them. Nothing is held in memory.
    """
    count = blank = 0
    for source, target in pairs:
        count += 1
        if is_blank(source) or is_blank(target):
            blank += 1
        else:
            yield source, target
    warn_of_blanks(blank, count, what)
