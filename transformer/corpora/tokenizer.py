"""The tokenizer of the book: byte pairs over UTF-8, learned and applied by the library `tokenizers`.

It is chapter 10's byte-pair encoding, with bytes where the chapter has characters.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transformer.core.checks import (
    check_ids_given,
    check_texts,
    check_vocabulary,
    learnable,
    sides_of,
)
from transformer.core.files import load_bpe

WORD = re.compile(r"\w+|[^\w\s]")  # letters and digits, or one punctuation mark
SPECIALS = ("<pad>", "<s>", "</s>")
# A word or a punctuation mark, with the space before it; other white space, which (third
# part) leaves its last place to the word that follows
PRE_TOKEN = r" ?[\p{L}\p{N}_]+| ?[^\s\p{L}\p{N}_]|\s+(?!\S)|\s+"
# Characters of a piece that merges are learned from: the time for one grows with the
# square of its length
LONGEST = 500


def byte_of_letter() -> dict[str, int]:
    """The byte that each letter of a byte-level vocabulary stands for.

    Bytes that print as themselves are their own letters; the others have those from 256 on.
    """
    printing = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [byte for byte in range(256) if byte not in printing]
    letters = {chr(byte): byte for byte in printing}
    return letters | {chr(256 + place): byte for place, byte in enumerate(others)}


def cut_by(expression: str):
    """The part of a tokenizer that cuts a text into pieces, and these into bytes."""
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(expression), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def train_bpe(sentences: Iterable[str], vocab_size: int):
    """A byte-level BPE learned from sentences, each with a space before it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = cut_by(PRE_TOKEN.replace("+", f"{{1,{LONGEST}}}"))
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIALS),
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator((" " + sentence for sentence in sentences), trainer)
    bpe.pre_tokenizer = cut_by(PRE_TOKEN)
    return bpe


class BytePairs:
    """Texts to token ids and back: decode(encode(text)) == text for every text."""

    def __init__(self, bpe):
        self.bpe = bpe
        self.bpe.encode_special_tokens = True  # "</s>" typed in a text is text, no mark
        self.pad_id, self.bos_id, self.eos_id = map(bpe.token_to_id, SPECIALS)

    def __setstate__(self, state):  # a copy of the library's part forgets the switch
        self.__dict__ |= state
        self.bpe.encode_special_tokens = True

    @property
    def vocab_size(self) -> int:
        """Number of types: bytes, merges and marks."""
        return self.bpe.get_vocab_size()

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.vocab_size} types"

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, without marks at its ends."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Iterable[str]) -> list[list[int]]:
        """`encode` for a list of texts, on all cores."""
        spaced = [" " + text for text in check_texts(texts)]
        return [encoding.ids for encoding in self.bpe.encode_batch(spaced)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids; marks (padding, begin, end) are left out."""
        ids = check_ids_given(ids)
        return self.bpe.decode(ids, skip_special_tokens=True).removeprefix(" ")


class Tokenizer(BytePairs):
    """Byte-pair encoding over UTF-8 bytes, one vocabulary for both languages."""

    @classmethod
    def train(cls, sentences: Iterable[str], vocab_size: int) -> "Tokenizer":
        """Learn merges from the training split, up to vocab_size types."""
        check_vocabulary(vocab_size, 256 + len(SPECIALS))
        return cls(train_bpe(learnable(sentences), vocab_size))

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """What `save` wrote; FileNotFoundError or ValueError if it is no tokenizer."""
        return cls(load_bpe(path, SPECIALS))

    def save(self, path: str | Path) -> None:
        """Write tokenizer.json."""
        Path(path).write_text(self.bpe.to_str(pretty=True), encoding="utf8")

    def pieces(self, text: str) -> list[str]:
        """The tokens of a text as strings; a part of a character shows as U+FFFD."""
        return [self.bpe.decode([i]) for i in self.encode(text)]

    def bytes_of_each_piece(self, text: str) -> list[bytes]:
        """The tokens of a text as bytes, which need not be whole characters."""
        byte = byte_of_letter()
        pieces = map(self.bpe.id_to_token, self.encode(text))
        return [bytes(byte[letter] for letter in piece) for piece in pieces]

    def word_of_each_piece(self, text: str) -> list[int]:
        """For each token the index of its word, as `WORD` finds them.

        White space with a token of its own belongs to the word after it; at the end of
        the text that is the number of words, the place of the end mark.
        """
        ends = [match.end() for match in WORD.finditer(" " + text)]
        offsets = self.bpe.encode(" " + text).offsets
        return [bisect_right(ends, end - 1) for _, end in offsets]


def encode_sides(tokenizer: Any, pairs: list[tuple[str, str]]) -> Any:
    """(source ids, target ids) of sentence pairs, one after the other, without marks.

    Targets may have a vocabulary of their own, `tokenizer.of_targets`. ValueError for
    what is no pair of texts.
    """
    sources, targets = sides_of(pairs)
    of_targets = getattr(tokenizer, "of_targets", tokenizer)
    return zip(tokenizer.encode_all(sources), of_targets.encode_all(targets))
