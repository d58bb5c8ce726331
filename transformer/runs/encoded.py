"""A corpus encoded on disk: pairs of token ids that are read where they are touched.

Encoding takes minutes for millions of pairs, and as Python lists the result takes eight bytes a
token and more. So a large corpus is encoded once, part by part, into a folder of two plain files:
tokens.bin holds all ids one after another, source, target, source, target; offsets.bin says where
each begins. about.json keeps their checksums and a key, computed from all that the ids depend on.
"""

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path

import numpy as np

from transformer.core.checks import nth
from transformer.corpora import corpus_paths, stream_corpus
from transformer.corpora.download import download_folder, sha256_of, sum_of
from transformer.corpora.windows import lengths_of
from transformer.data import encode_pairs

PART = 10_000  # pairs encoded, and held in memory, at a time
ENCODED_FILES = ("tokens.bin", "offsets.bin")
FORM = 1  # of the folder
# To be raised whenever the same files give other sentences: a corpus's reader, its cut, `hold_out`.
READING = 3


def write_encoded(
    tokenizer, pairs: Iterable, folder: Path, longest: int | None = None
) -> dict:
    """Encode pairs part by part into folder/tokens.bin and offsets.bin.

    Returns what about.json says of them. longest: leave out pairs for which a model would need more
    positions. ValueError where no pair is left.
    """
    from tqdm import tqdm

    dtype = np.dtype("uint16" if tokenizer.vocab_size <= 2**16 else "int32")
    pairs = iter(pairs)
    seen = kept = end = 0
    tokens, offsets = (open(folder / name, "wb") for name in ENCODED_FILES)
    bar = tqdm(desc="encoding", unit="pair", unit_scale=True, delay=20)
    with tokens, offsets, bar:
        offsets.write(np.zeros(1, np.int64).tobytes())
        while part := list(islice(pairs, PART)):
            encoded = [
                (source, target)
                for source, target in encode_pairs(tokenizer, part)
                if longest is None or max(len(source), len(target) - 1) <= longest
            ]
            sides = list(chain.from_iterable(encoded))
            ends = end + np.array([len(side) for side in sides], np.int64).cumsum()
            offsets.write(ends.tobytes())
            tokens.write(np.fromiter(chain.from_iterable(sides), dtype).tobytes())
            end = int(ends[-1]) if sides else end
            kept += len(encoded)
            seen += len(part)
            bar.update(len(part))
    if not kept:
        why = f" of at most {longest} tokens" if seen else ""
        raise ValueError(f"no sentence pairs to encode{why}")
    return {"pairs": kept, "left_out": seen - kept, "dtype": dtype.name}


class EncodedPairs:
    """Encoded pairs in a folder made by `encode_to_folder`, used as a list of them.

    Item i is (source ids with end mark, target ids with begin and end marks). `left_out` counts
    pairs that were too long. Raises ValueError where the folder is damaged, or its key is not the
    one asked for.
    """

    def __init__(self, folder: str | Path, key: str | None = None, new: bool = False):
        """new: written just now, so that its checksums need not be computed again."""
        self.folder = Path(folder)
        about = read_about(self.folder, key, new)
        self.left_out = about["left_out"]
        self.dtype = about["dtype"]
        self.release()

    def release(self) -> None:
        """Map the files anew, so that the pages read so far go back to the operating system."""
        self.tokens = np.asarray(np.memmap(self.folder / "tokens.bin", self.dtype, "r"))
        self.offsets = np.asarray(np.memmap(self.folder / "offsets.bin", np.int64, "r"))

    def __len__(self) -> int:
        return len(self.offsets) // 2

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[n] for n in range(*i.indices(len(self)))]
        i = range(len(self))[
            i
        ]  # negative ones count from the end; IndexError as a list's
        start, middle, end = self.offsets[2 * i : 2 * i + 3].tolist()
        return self.tokens[start:middle].tolist(), self.tokens[middle:end].tolist()

    def lengths(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lengths of the sources and of the targets of these rows, without reading a token.

        An epoch asks for them once a window, so this is where the pages of the last one are let go.
        """
        self.release()
        start, middle, end = (self.offsets[2 * rows + n] for n in range(3))
        return middle - start, end - middle


def sums_in(folder: Path) -> dict[str, str]:
    """The checksums of a folder's files of ids."""
    return {name: sha256_of(folder / name) for name in ENCODED_FILES}


def read_about(folder: Path, key: str | None, new: bool = False) -> dict:
    """What folder/about.json says; ValueError where the folder is damaged or not the one meant."""
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf8"))
        whole = new or about["sha256"] == sums_in(folder)
        whole = whole and {"key", "left_out", "dtype"} <= set(about)
    except (OSError, KeyError, TypeError, ValueError):
        whole = False
    if not whole:
        raise ValueError(
            f"{folder} is not a folder of encoded pairs, or damaged: "
            "delete it and run the command again"
        )
    if key is not None and about["key"] != key:
        raise ValueError(
            f"{folder} holds other text, or was made with another tokenizer: name another folder, "
            "or delete it and run the command again"
        )
    return about


def encode_to_folder(
    tokenizer, pairs: Iterable, folder: str | Path, key: str, longest: int | None = None
) -> EncodedPairs:
    """`EncodedPairs` in folder, encoded from pairs if it is not there yet.

    key names what the ids depend on; longest leaves out pairs for which a model would need more
    positions. The folder is made under a temporary name and then renamed, so that nobody meets half
    of one. Raises ValueError where the folder holds something else or is damaged.
    """
    folder = Path(folder)
    new = not folder.exists()
    if new:
        temporary = folder.with_name(
            f".{folder.name}.{os.getpid()}.{os.urandom(4).hex()}.part"
        )
        temporary.mkdir(parents=True, exist_ok=True)
        try:
            about = write_encoded(tokenizer, pairs, temporary, longest)
            about |= {"key": key, "sha256": sums_in(temporary)}
            text = json.dumps(about, indent=1)
            (temporary / "about.json").write_text(text, encoding="utf8")
            os.rename(temporary, folder)
        except OSError as error:
            if not folder.exists():  # otherwise another process was quicker
                error.filename = error.filename or str(folder)
                raise
            new = False
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return EncodedPairs(folder, key, new)


def prepare(
    tokenizer,
    pairs: Iterable,
    files: list,
    name: str,
    split: str,
    reverse: bool,
    longest: int | None,
) -> EncodedPairs:
    """`EncodedPairs` of pairs read from files, in a subfolder of downloads named by their key.

    name, split, reverse: what else the ids depend on; longest: see `encode_to_folder`. All of
    encoded/ may be deleted at any time; it is made again.
    """
    text = json.dumps(
        [
            FORM,
            READING,
            tokenizer.bpe.to_str(),
            *map(sum_of, files),
            name,
            split,
            reverse,
            longest,
        ]
    )
    key = hashlib.sha256(text.encode()).hexdigest()
    folder = download_folder() / "encoded" / f"{name}-{split}-{key[:16]}"
    encoded = encode_to_folder(tokenizer, pairs, folder, key, longest)
    count = len(encoded) + encoded.left_out
    warn_too_long(encoded.left_out, count, longest, f"{name}, {split}, ")
    return encoded


def prepare_corpus(
    tokenizer, name: str, split: str, reverse: bool = False, longest: int | None = None
) -> EncodedPairs:
    """`EncodedPairs` of a split of a corpus; encoded once, then found again."""
    pairs, files = stream_corpus(name, split, reverse), corpus_paths(name, split)
    return prepare(tokenizer, pairs, files, name, split, reverse, longest)


def warn_too_long(left_out: int, count: int, longest: int | None, part: str) -> None:
    """The sentence, as a warning, where so many of `count` pairs are too long for a model."""
    if left_out:
        warnings.warn(
            f"{left_out:,} of {count:,} {part}sentence pairs ({left_out / count:.1%}) need "
            f"more than the model's {longest} positions and are left out",
            stacklevel=1,  # one place, so that each sentence is shown once
        )


def fitting(encoded, config, part: str = "") -> list[int]:
    """The numbers of the encoded pairs that fit into a model's positions; a warning counts the
    others. ValueError where none fits.

    part: "validation " or another word for the sentence.
    """
    source, target = lengths_of(encoded, range(len(encoded)))
    together = getattr(config, "one_sequence", False)
    # The end mark of a target is never read
    longest = source + target - 1 if together else np.maximum(source, target - 1)
    found = np.flatnonzero(longest <= config.max_positions).tolist()
    if not found:
        raise ValueError(
            f"no {part}sentence pair fits into the model's {config.max_positions} positions"
        )
    left_out = len(encoded) - len(found)
    warn_too_long(left_out, len(encoded), config.max_positions, part)
    return found


def check_sides_are_ids(
    encoded, part: str, pad_id: int | None, outputs: int | None = None
) -> None:
    """ValueError for texts, and, naming it, for the first pair that is not two lists of ids, or
    whose target has padding, of which nothing is learned, or an id without an output.

    outputs: what the model tells apart, where that is not its vocabulary, as in a classifier
    """
    for index, pair in enumerate(encoded if isinstance(encoded, list) else ()):
        source, target = pair
        if isinstance(source, str) or isinstance(target, str):
            raise ValueError(
                f"{part}sentence pairs are texts: turn them into ids with encode_pairs"
            )
        for name, side in (("source", source), ("target", target)):
            if not hasattr(side, "__len__"):
                raise ValueError(
                    f"the {name} of {part}sentence pair {nth(index)} is {side!r}, not a list "
                    "of ids: a single class is a target, too, as [bos_id, class]"
                )
        if pad_id is not None and pad_id in target:
            raise ValueError(
                f"the target of {part}sentence pair {nth(index)} has the id {pad_id}, "
                "which is padding, so nothing is learned of it: count classes from "
                f"{pad_id + 1} on"
            )
        if outputs is None:
            continue
        for id in target[1:]:
            if isinstance(id, str) or not 0 <= id < outputs:
                raise ValueError(
                    f"the target of {part}sentence pair {nth(index)} has the class {id!r}, and "
                    f"the model's outputs are 0 to {outputs - 1}: correct the class, or "
                    "build the model with more of them"
                )


def check_pairs(
    encoded,
    config,
    part: str = "",
    lines: np.ndarray | None = None,
    outputs: int | None = None,
) -> None:
    """ValueError where there is no pair, or, naming it, where one is too long for the model or has
    nothing to learn.

    part: "training " or another word for the sentence. lines: where each
    stands in its file, by which it is named; otherwise by its place here.
    outputs: as in `check_sides_are_ids`.
    """
    if not len(encoded):
        raise ValueError(f"no {part}sentence pairs to train on")
    check_sides_are_ids(encoded, part, getattr(config, "pad_id", None), outputs)
    called = nth if lines is None else lines.item
    for start in range(0, len(encoded), 100_000):
        rows = range(start, min(start + 100_000, len(encoded)))
        source, target = lengths_of(encoded, rows)
        together = getattr(config, "one_sequence", False)
        # The end mark of a target is never read
        longest = source + target - 1 if together else np.maximum(source, target - 1)
        if (target < 2).any():
            number = start + int((target < 2).argmax())
            raise ValueError(
                f"{part}sentence pair {called(number)} has no token to learn: a target is "
                "bos_id and then what is learned, a sentence with its end mark or a class"
            )
        number = int((longest > config.max_positions).argmax())
        if longest[number] > config.max_positions:
            raise ValueError(
                f"{part}sentence pair {called(start + number)} has "
                f"{longest[number]} tokens, more than the model's {config.max_positions} positions: "
                "shorten or remove it, or train with a larger max_positions"
            )
