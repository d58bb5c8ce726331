"""Treebanks: sentences with their trees, cut out of the archives they come in."""

import gzip
import io
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

CRAFT_TEXT = re.compile(
    r"(?:^|/)(penn/\d+\.tree|ids/craft-ids-(?:train|dev|test)\.txt)$"
)
WSJ = re.compile(r"combined/wsj_\d+\.mrg$")


def craft_texts(path: str | Path) -> dict[str, bytes]:
    """CRAFT's trees and lists of articles in a .tar.gz that holds them, by name.

    Names are "penn/<article>.tree" and "ids/craft-ids-<split>.txt".
    """
    try:
        texts = {}
        with tarfile.open(path, "r|gz") as tar:
            for member in tar:
                found, content = CRAFT_TEXT.search(member.name), tar.extractfile(member)
                if found and content:
                    texts[found[1]] = content.read()
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error):
        raise ValueError(
            f"{path} is not a whole .tar.gz file: copy or download it again"
        ) from None
    return dict(sorted(texts.items()))


def pack_texts(path: str | Path, texts: dict[str, bytes]) -> None:
    """Write {name: bytes} as a .tar.gz file."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def trees_in(text: str) -> Iterator[str]:
    """Yield the bracketed trees of a text, each on one line; ValueError for unmatched brackets."""
    depth = start = 0
    for bracket in re.finditer(r"[()]", text):
        depth += 1 if bracket[0] == "(" else -1
        if depth < 0:
            break
        if depth == 0:
            yield re.sub(r"[ \t\r\n]+", " ", text[start : bracket.end()]).strip(" ")
            start = bracket.end()
    if depth:
        raise ValueError(
            f"brackets do not match in a tree: ...{text[start : start + 40]!r}"
        )


def stream_trees(path: str | Path, split: str) -> Iterator[str]:
    """Yield a treebank's trees: those of a split from CRAFT's .tar.gz, all from NLTK's .zip."""
    if Path(path).suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in sorted(filter(WSJ.search, archive.namelist())):
                yield from trees_in(archive.read(name).decode("utf8"))
        return
    texts, part = craft_texts(path), "dev" if split == "validation" else split
    for article in texts[f"ids/craft-ids-{part}.txt"].decode("utf8").split():
        yield from trees_in(texts[f"penn/{article}.tree"].decode("utf8"))


LEAF = re.compile(r"\(([^ ()]+) ([^ ()]+)\)")
WRITTEN = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
}


def sentence_of(tree: str) -> str:
    """The words of a tree given as text, with spaces between, brackets as they look."""
    words = (word for tag, word in LEAF.findall(tree) if tag != "-NONE-")
    return " ".join(WRITTEN.get(word, word.replace("\\/", "/")) for word in words)


def tree_pairs(paths: Sequence[Path], split: str) -> Iterator[tuple[str, str]]:
    """(sentence, tree as text in brackets) of a split of a treebank, or of all of it."""
    return ((sentence_of(tree), tree) for tree in stream_trees(paths[0], split))
