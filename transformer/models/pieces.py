"""Tokenizers of other libraries' folders: SentencePiece's two models and one vocabulary, as Marian
has them, and GPT-2's byte pairs. They are read from their files, and saved as tokenizer.json.
"""

import base64
import json
import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path

from transformer.core.checks import check_ids_given, check_texts
from transformer.core.files import existing, read_json, readable_as
from transformer.corpora.tokenizer import WORD, BytePairs


def whole_number(message: bytes, place: int) -> tuple[int, int]:
    """A number in groups of seven bits, the low ones first, and the place after it."""
    value = shift = 0
    while shift < 64:
        value |= (message[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if message[place - 1] < 128:
            return value, place
    raise ValueError("a number has more than 64 bits")


def fields_of(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field of a protocol buffer: whole numbers, or bytes."""
    place = 0
    while place < len(message):
        key, place = whole_number(message, place)
        if key & 7 == 0:
            value, place = whole_number(message, place)
        else:
            length = {1: 8, 5: 4}.get(key & 7)
            if length is None:
                length, place = whole_number(message, place)
            value, place = message[place : place + length], place + length
            if place > len(message):
                raise ValueError("it ends in the middle of a field")
        yield key >> 3, value


def read_pieces(path: Path) -> dict:
    """What a SentencePiece model says: pieces with scores, and how texts are cleaned."""
    pieces, about = [], {2: {}, 3: {}}
    for number, value in fields_of(path.read_bytes()):
        if number == 1:
            piece = {3: 1, 2: bytes(4), **dict(fields_of(value))}
            pieces.append((piece[1].decode(), *struct.unpack("<f", piece[2]), piece[3]))
        elif number in about:
            about[number] = dict(fields_of(value))
    if not pieces:
        raise ValueError("it holds no pieces")
    trainer, cleaning = about[2], {2: b"", 3: 1, 4: 1, **about[3]}
    if trainer.get(3, 1) != 1 or not {kind for *_, kind in pieces} <= {1, 2, 3, 5}:
        raise ValueError("it is of another kind than unigram")
    return {
        "pieces": [piece[:2] for piece in pieces if piece[2] == 1],
        "characters": base64.b64encode(cleaning[2]).decode(),
        "prefix": bool(cleaning[3]),
        "strip": bool(cleaning[4]),
    }


UNKNOWN = "\U0010fffe"  # no text holds this character


def unigram(said: dict):
    """What cuts texts as a SentencePiece model of the unigram kind does."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    pieces = [(UNKNOWN, 0.0), *((text, score) for text, score in said["pieces"])]
    cut = Tokenizer(models.Unigram(pieces, 0))
    steps = []
    if said["characters"]:
        steps.append(normalizers.Precompiled(base64.b64decode(said["characters"])))
    if said["strip"]:
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    cut.normalizer = normalizers.Sequence(steps)
    first = "always" if said["prefix"] else "never"
    cut.pre_tokenizer = pre_tokenizers.Metaspace("▁", first, split=False)
    return cut


def made(what: Callable, path: Path):
    """what(), or ValueError: the file cannot be read as what it should be."""
    with readable_as("what a tokenizer is made of", path, "copy it again"):
        return what()


class Described:
    """A tokenizer that is made from what can be said of it in JSON, and saved as that."""

    said: dict

    @classmethod
    def made_of(cls, said: dict, path: Path):
        """That of what `save` wrote; ValueError, naming the file's path, where it is damaged."""
        return made(lambda: cls(said), path)

    def save(self, path: str | Path) -> None:
        """Write tokenizer.json."""
        Path(path).write_text(
            json.dumps(self.said, ensure_ascii=False), encoding="utf8"
        )


def check_types(vocabulary: dict[str, int]) -> list[str]:
    """The types of {type: id} in the order of their ids; ValueError for a gap."""
    types = sorted(vocabulary, key=vocabulary.__getitem__)
    if [vocabulary[name] for name in types] != list(range(len(types))):
        raise ValueError("its ids are not 0, 1, 2 and so on")
    return types


BEGIN = "<begin>"
CODE = re.compile(">>[^<]*<<")  # of the language to write, where there are several


class SentencePieces(Described):
    """Two SentencePiece models and one vocabulary: a `Tokenizer` of sources.

    `of_targets` is that of targets. Marks that stand in a text are text.
    """

    def __init__(self, said: dict, side: str = "source"):
        self.said, self.side = said, side
        vocabulary, self.cut = said["vocabulary"], unigram(said[side])
        self.types = [*check_types(vocabulary), BEGIN]
        self.pad_id, self.eos_id, self.unk_id = (
            vocabulary[mark] for mark in ("<pad>", "</s>", "<unk>")
        )
        self.bos_id = len(vocabulary)
        marks = {self.pad_id, self.eos_id}
        self.ids = {name: i for name, i in vocabulary.items() if i not in marks}
        self.vocab_size = len(self.types)

    @cached_property
    def of_targets(self) -> "SentencePieces":
        """The same vocabulary, and the other SentencePiece model."""
        return SentencePieces(self.said, "target")

    def cuts(self, texts: Iterable[str]) -> list[tuple[list[str], list[int]]]:
        """(pieces, the place where each ends) of each text."""
        texts, cuts = check_texts(texts), []
        codes = [(CODE.match(text) or [""])[0] for text in texts]
        codes = [code if code in self.ids else "" for code in codes]
        rest = [text[len(code) :] for code, text in zip(codes, texts)]
        for code, found in zip(codes, self.cut.encode_batch(rest)):
            first, n = [code][: len(code)], len(code)
            ends = [n + end for _, end in found.offsets]
            cuts.append((first + found.tokens, [n][:n] + ends))
        return cuts

    def encode_all(self, texts: Iterable[str]) -> list[list[int]]:
        """Ids of texts, without marks at their ends."""
        return [
            [self.ids.get(piece, self.unk_id) for piece in pieces]
            for pieces, _ in self.cuts(texts)
        ]

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without marks at its ends."""
        return self.encode_all([text])[0]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; marks (padding, begin, end) are left out."""
        marks = {self.pad_id, self.bos_id, self.eos_id}
        kept = [
            i for i in check_ids_given(ids) if i not in marks and i < self.vocab_size
        ]
        return "".join(self.types[i] for i in kept).replace("▁", " ").strip()

    def pieces(self, text: str) -> list[str]:
        """The tokens of a text as strings."""
        return [self.types[i].replace("▁", " ") for i in self.encode(text)]

    def word_of_each_piece(self, text: str) -> list[int]:
        """For each token the index of its word, as `WORD` finds them."""
        words = [match.end() for match in WORD.finditer(text)]
        return [bisect_right(words, end - 1) for end in self.cuts([text])[0][1]]


class GPT2Pieces(Described, BytePairs):
    """GPT-2's byte pairs, with padding and a begin mark behind its types.

    It sets no space before a text, other than `Tokenizer`.
    """

    def __init__(self, said: dict):
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers

        self.said, vocabulary = said, said["vocabulary"]
        pairs = [
            pair.split(" ") if isinstance(pair, str) else pair
            for pair in said["merges"]
        ]
        self.bpe = Tokenizer(models.BPE(vocabulary, [tuple(pair) for pair in pairs]))
        self.bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.bpe.decoder = decoders.ByteLevel()
        self.pad_id = len(check_types(vocabulary))
        self.bos_id, self.eos_id = self.pad_id + 1, vocabulary["<|endoftext|>"]

    @property
    def vocab_size(self) -> int:
        """Number of types: GPT-2's, and two marks."""
        return self.pad_id + 2

    def encode_all(self, texts: Iterable[str]) -> list[list[int]]:
        """`encode` for a list of texts."""
        return [found.ids for found in self.bpe.encode_batch(check_texts(texts))]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; marks (padding, begin, end) are left out."""
        marks = {self.pad_id, self.bos_id, self.eos_id}
        return self.bpe.decode([i for i in check_ids_given(ids) if i not in marks])


def texts_of(tokenizer, ids: Iterable[int]) -> tuple[str, ...]:
    """Token ids as strings, marks left out; a space before one that begins a word, and U+FFFD for a
    part of a character."""
    marks = {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id}
    kept = [i for i in ids if i not in marks]
    if hasattr(tokenizer, "bpe"):
        return tuple(tokenizer.bpe.decode([i]) for i in kept)
    if hasattr(tokenizer, "types"):
        return tuple(tokenizer.types[i].replace("▁", " ") for i in kept)
    return tuple(tokenizer.decode([i]) for i in kept)


def marian_pieces(folder: Path) -> SentencePieces:
    """Two SentencePiece models and vocab.json, in a Marian folder."""
    said = {"kind": "marian"}
    for side in ("source", "target"):
        path = existing(folder / f"{side}.spm", "a Marian folder has one for each side")
        said[side] = made(partial(read_pieces, path), path)
    path = existing(folder / "vocab.json", "a Marian folder has its types there")
    said["vocabulary"] = made(partial(read_json, path), path)
    return made(partial(SentencePieces, said), path)


def gpt2_pieces(folder: Path) -> GPT2Pieces:
    """Byte pairs in tokenizer.json, or in vocab.json and merges.txt; ValueError where the former
    does something else with a text besides.
    """
    path = folder / "tokenizer.json"
    if path.is_file():
        return gpt2_pieces_in(path)
    path = existing(
        folder / "vocab.json",
        "a GPT-2 folder has its types there, or in tokenizer.json",
    )
    merges = existing(folder / "merges.txt", "a GPT-2 folder has it beside vocab.json")
    lines = made(lambda: merges.read_text(encoding="utf8").splitlines(), merges)
    pairs = [line for line in lines if line and not line.startswith("#version")]
    return made(lambda: byte_pairs(read_json(path), pairs), path)


def gpt2_pieces_in(path: Path) -> GPT2Pieces:
    """The byte pairs of a tokenizer.json."""
    said = made(lambda: dict(read_json(path)), path)
    cut = made(lambda: dict(said.get("pre_tokenizer") or {}), path)
    if (
        said.get("normalizer")
        or cut.get("type") != "ByteLevel"
        or cut.get("add_prefix_space")
    ):
        raise ValueError(
            f"{path} cuts texts in another way than GPT-2: import another model"
        )
    return made(
        lambda: byte_pairs(said["model"]["vocab"], said["model"]["merges"]), path
    )


def byte_pairs(vocabulary: dict, merges: list) -> GPT2Pieces:
    """A vocabulary (type: id) and the pairs to merge, in their order."""
    said = {"kind": "gpt2", "vocabulary": vocabulary, "merges": merges}
    return GPT2Pieces(said)


def languages_in(folder: Path) -> list[str]:
    """Codes of the languages that are read and written, as far as a folder says them."""
    path = folder / "tokenizer_config.json"
    said = made(lambda: dict(read_json(path)), path) if path.is_file() else {}
    names = [said.get(f"{side}_lang") for side in ("source", "target")]
    return names if all(isinstance(name, str) for name in names) else []
