"""A corpus encoded on disk: pairs of token ids that are read where they are touched."""

import hashlib
import json
import mmap
import os
import shutil
from itertools import chain, islice
from pathlib import Path

import numpy as np

from transformer.corpora import corpus_paths, stream_corpus
from transformer.corpora.download import download_folder, sha256_of
from transformer.data import encode_pairs



PART = 10_000  # pairs encoded, and held in memory, at a time


def write_encoded(tokenizer, pairs, folder, longest=None):
    """Encode pairs, one part after the other, into folder/tokens.bin and offsets.bin; returns what about.json says of them.

    longest: leave out pairs for which a model would need more positions. ValueError where no pair is left.
    """
    from tqdm import tqdm

    dtype = np.dtype("uint16" if tokenizer.vocab_size <= 2**16 else "int32")
    pairs, end, kept, seen = iter(pairs), 0, 0, 0
    with (open(folder / "tokens.bin", "wb") as tokens, open(folder / "offsets.bin", "wb") as offsets,
          tqdm(desc="encoding", unit="pair", unit_scale=True, delay=20) as bar):
        offsets.write(np.zeros(1, np.int64).tobytes())
        while part := list(islice(pairs, PART)):
            encoded = [(source, target) for source, target in encode_pairs(tokenizer, part)
                       if longest is None or max(len(source), len(target) - 1) <= longest]
            ends = end + np.array([len(side) for pair in encoded for side in pair], np.int64).cumsum()
            offsets.write(ends.tobytes())
            tokens.write(np.fromiter(chain.from_iterable(chain.from_iterable(encoded)), dtype).tobytes())
            end, kept, seen = int(ends[-1]) if encoded else end, kept + len(encoded), seen + len(part)
            bar.update(len(part))
    if not kept:
        raise ValueError("no sentence pairs to encode" + (f" of at most {longest} tokens" if seen else ""))
    return {"pairs": kept, "left_out": seen - kept, "dtype": dtype.name}


def memory_map(path, dtype):
    """(map, array): a file's numbers as an array that is read from disk where it is touched."""
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return mapped, np.frombuffer(mapped, dtype)


class EncodedPairs:
    """Encoded pairs in a folder, made by `encode_to_folder`; len(), [i], slices and loops as with a list of them.

    Item i is (source ids with end mark, target ids with begin and end marks). `left_out` counts pairs that were too
    long. Raises ValueError where the folder is damaged, or its key is not the one asked for.
    """

    def __init__(self, folder, key=None):
        about = read_about(Path(folder), key)
        self.left_out = about["left_out"]
        self.maps, (self.tokens, self.offsets) = zip(
            memory_map(Path(folder) / "tokens.bin", about["dtype"]), memory_map(Path(folder) / "offsets.bin", np.int64))

    def __len__(self):
        return len(self.offsets) // 2

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[n] for n in range(*i.indices(len(self)))]
        i = range(len(self))[i]  # negative ones count from the end; IndexError as a list's
        start, middle, end = self.offsets[2 * i:2 * i + 3].tolist()
        return self.tokens[start:middle].tolist(), self.tokens[middle:end].tolist()

    def lengths(self, rows):
        """Lengths of sources and of targets, two integer arrays, without reading a token; rows is an array of indices."""
        start, middle, end = (self.offsets[2 * rows + n] for n in range(3))
        return middle - start, end - middle

    def release(self):
        """Give pages that were read back to the operating system (where it can be told so)."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for mapped in self.maps:
                mapped.madvise(mmap.MADV_DONTNEED)


ENCODED_FILES = ("tokens.bin", "offsets.bin")


READING = 1  # to be raised whenever the same files give other sentences: `detokenize`, a corpus's cut, `hold_out`, how lines are read


def read_about(folder, key):
    """The dict in folder/about.json; ValueError, saying what to do, where the folder is damaged or not the one meant."""
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf8"))
        whole = about["sha256"] == {name: sha256_of(folder / name) for name in ENCODED_FILES}
        saved_key, _, _ = about["key"], about["left_out"], np.dtype(about["dtype"])
    except (OSError, KeyError, TypeError, ValueError):
        whole = False
    if not whole:
        raise ValueError(f"{folder} is not a folder of encoded pairs, or damaged: delete it and run the command again")
    if key is not None and saved_key != key:
        raise ValueError(f"{folder} holds other text, or was made with another tokenizer: name another folder, "
                         "or delete it and run the command again")
    return about


def encode_to_folder(tokenizer, pairs, folder, key, longest=None):
    """`EncodedPairs` in folder, encoded from pairs (any iterable) if it is not there yet; key names what they depend on.

    longest leaves out pairs for which a model would need more positions. Raises ValueError where the folder holds
    something else or is damaged.
    """
    folder = Path(folder)
    if not folder.exists():
        temporary = folder.with_name(f".{folder.name}.{os.getpid()}.{os.urandom(4).hex()}.part")
        temporary.mkdir(parents=True, exist_ok=True)
        try:
            about = write_encoded(tokenizer, pairs, temporary, longest)
            about |= {"key": key, "sha256": {name: sha256_of(temporary / name) for name in ENCODED_FILES}}
            (temporary / "about.json").write_text(json.dumps(about, indent=1), encoding="utf8")
            os.rename(temporary, folder)
        except OSError as error:
            if not folder.exists():  # otherwise another process was quicker
                error.filename = error.filename or str(folder)
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return EncodedPairs(folder, key)


def prepare(tokenizer, pairs, files, name, *settings):
    """`EncodedPairs` of pairs read from files, in a folder of the download folder that is named by their key.

    settings: whatever else the ids depend on; the last is `longest`, see `encode_to_folder`.
    """
    text = json.dumps([1, READING, tokenizer.bpe.to_str(), *map(sha256_of, files), *settings])  # 1: the form of the folder
    key = hashlib.sha256(text.encode()).hexdigest()
    return encode_to_folder(tokenizer, pairs, download_folder() / "encoded" / f"{name}-{key[:16]}", key, settings[-1])


def prepare_corpus(tokenizer, name, split, reverse=False, longest=None):
    """`EncodedPairs` of a split of a corpus; encoded once, then found again. See `stream_corpus`, `encode_to_folder`."""
    pairs = stream_corpus(name, split, reverse)
    return prepare(tokenizer, pairs, corpus_paths(name, split), f"{name}-{split}", name, split, reverse, longest)
