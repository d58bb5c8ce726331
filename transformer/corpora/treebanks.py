"""Treebanks: sentences with their trees, cut out of the archives they come in."""

import gzip
import io
import re
import tarfile
import zipfile
import zlib
from pathlib import Path



CRAFT_TEXT = re.compile(r"(?:^|/)(penn/\d+\.tree|ids/craft-ids-(?:train|dev|test)\.txt)$")


def craft_texts(path):
    """{"penn/<article>.tree" or "ids/craft-ids-<split>.txt": bytes} of a .tar.gz that holds CRAFT's treebank, by name."""
    try:
        with tarfile.open(path, "r|gz") as tar:
            texts = {found[1]: tar.extractfile(member).read() for member in tar
                     if (found := CRAFT_TEXT.search(member.name))}
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error):
        raise ValueError(f"{path} is not a whole .tar.gz file: copy or download it again") from None
    return dict(sorted(texts.items()))


def pack_texts(path, texts):
    """Write {name: bytes} as a .tar.gz file."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def trees_in(text):
    """Yield the bracketed trees of a text, each on one line; ValueError where brackets do not match."""
    depth = start = 0
    for bracket in re.finditer(r"[()]", text):
        depth += 1 if bracket[0] == "(" else -1
        if depth < 0:
            break
        if depth == 0:
            yield re.sub(r"[ \t\r\n]+", " ", text[start:bracket.end()]).strip(" ")
            start = bracket.end()
    if depth:
        raise ValueError(f"brackets do not match in a tree: ...{text[start:start + 40]!r}")


def stream_trees(path, split):
    """Yield a treebank's trees as text: those of a split from CRAFT's .tar.gz, all in order of file from NLTK's .zip."""
    if Path(path).suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if re.search(r"combined/wsj_\d+\.mrg$", name))
            for name in names:
                yield from trees_in(archive.read(name).decode("utf8"))
        return
    texts, part = craft_texts(path), "dev" if split == "validation" else split
    for article in texts[f"ids/craft-ids-{part}.txt"].decode("utf8").split():
        yield from trees_in(texts[f"penn/{article}.tree"].decode("utf8"))


LEAF = re.compile(r"\(([^ ()]+) ([^ ()]+)\)")


WRITTEN = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


def sentence_of(tree):
    """The words of a tree given as text, with spaces between, brackets as they look."""
    words = (word for tag, word in LEAF.findall(tree) if tag != "-NONE-")
    return " ".join(WRITTEN.get(word, word.replace("\\/", "/")) for word in words)
