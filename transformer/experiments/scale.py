"""Does memory grow with the corpus? Generate pairs, prepare them on disk, walk through one epoch,
and measure.

    python -m transformer.experiments.scale                   0.45 and 4.5 million pairs
    python -m transformer.experiments.scale --pairs 2000 20000 --record quick.json

A line joins one to three random sentence pairs that the grammar of the bundled corpus drew, so that
it is about as long as in WMT 2014. Each phase runs in a process of its own, so that each has its
own peak of memory. Resident memory is all that the system counts for the process; its anonymous
part is what the program holds itself, the rest are pages of files, which the system may drop at any
time. Seconds of CPU are those of all cores together. Text is encoded in as many threads as there
are cores, or as RAYON_NUM_THREADS says (better fewer than cores that others use). Linux only, in a
checkout.
"""

import os
import random
import re
import shutil
import time
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import torch

from transformer.corpora import read_parallel, stream_parallel
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import collate, encode_pairs
from transformer.experiments.grammar import grammar
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.hardware import peak_memory
from transformer.runs.batches import epoch_batches
from transformer.runs.encoded import EncodedPairs, encode_to_folder

BATCH_TOKENS, SEED = 25_000, 2017


# The phases: (folder, number of pairs) -> dict of figures


def text_files(folder, size):
    """The English and the German file of so many pairs."""
    return folder / f"{size}.en", folder / f"{size}.de"


def generate(folder, size, drawn=50_000):
    """Write <size>.en and <size>.de; a smaller corpus is the beginning of a larger one."""
    corpus = grammar().Corpus(SEED)
    parts = [corpus.plain() for _ in range(min(drawn, size))]
    chance = random.Random(SEED)
    source, target = text_files(folder, size)
    with (
        source.open("w", encoding="utf8") as english,
        target.open("w", encoding="utf8") as german,
    ):
        for _ in range(size):
            joined = chance.choices(parts, k=chance.randint(1, 3))
            english.write(" ".join(pair.source for pair in joined) + "\n")
            german.write(" ".join(pair.target for pair in joined) + "\n")
    return {}


def vocabulary(folder, size, vocab_size=37_000):
    """Train a tokenizer on the first 100,000 pairs."""
    pairs = islice(stream_parallel(*text_files(folder, size)), 100_000)
    tokenizer = Tokenizer.train((text for pair in pairs for text in pair), vocab_size)
    tokenizer.save(folder / "tokenizer.json")
    return {"types": tokenizer.vocab_size}


def prepare(folder, size):
    """Encode the text into a folder of memory-mapped arrays."""
    encoded = folder / f"{size}.encoded"
    shutil.rmtree(encoded, ignore_errors=True)
    pairs = stream_parallel(*text_files(folder, size))
    encode_to_folder(Tokenizer.load(folder / "tokenizer.json"), pairs, encoded, "scale")
    return {
        "folder_mb": round(
            sum(path.stat().st_size for path in encoded.iterdir()) / 2**20, 1
        )
    }


def iterate(folder, size):
    """An epoch of batches as tensors, as training takes them; the memory about 20 times on the way."""
    encoded = EncodedPairs(folder / f"{size}.encoded")
    done = batches = real = places = total = 0
    samples = []
    for rows in epoch_batches(encoded, BATCH_TOKENS):
        batch = collate([encoded[i] for i in rows])
        done += len(rows)
        batches += 1
        total += sum(rows)
        for side in (batch.source, batch.target):
            places += side.numel()
            real += int((side != 0).sum())
        if done >= size * (len(samples) + 1) / 20:
            samples.append([done, *memory()])
    assert done == len(encoded) == size, "an epoch must hold every pair once"
    assert total == size * (size - 1) // 2, "an epoch must hold every pair once"
    return {
        **dict(zip(("pairs", "resident_mb", "anonymous_mb"), zip(*samples))),
        "batches": batches,
        "tokens_per_pair": round(real / done, 1),
        "padding": round(1 - real / places, 4),
    }


def memory():
    """(resident, anonymous) megabytes of this process now."""
    status = Path("/proc/self/status").read_text(encoding="utf8")
    kilobytes = [
        int(re.search(rf"{name}:\s+(\d+)", status)[1]) for name in ("VmRSS", "RssAnon")
    ]
    return [round(number / 1024) for number in kilobytes]


def as_list(folder, size):
    """For comparison: the same pairs as Python lists in memory (the time is that of encoding)."""
    pairs = read_parallel(*text_files(folder, size))
    encode_pairs(Tokenizer.load(folder / "tokenizer.json"), pairs)
    return {}


def do(phase, size: int, folder: Path, device: str) -> dict:
    """A phase in the folder that all phases share, its time and its peak of memory."""
    start, cpu = time.monotonic(), time.process_time()
    figures = phase(folder.parent, size)
    seconds, cpu = time.monotonic() - start, time.process_time() - cpu
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "pairs_per_second": round(size / seconds),
        "peak_mb": round(1024 * peak_memory(torch.device(device))),
        **figures,
    }


def job_of(phase, size: int, command: str) -> Job:
    """A phase with so many pairs."""
    known = {
        "seed": SEED,
        "batch_tokens": BATCH_TOKENS,
        "corpus.pairs": size,
        "phase": phase.__name__,
        "threads": int(os.environ.get("RAYON_NUM_THREADS", os.cpu_count())),
        **{
            name: version(name).partition("+")[0]
            for name in ("torch", "numpy", "tokenizers")
        },
    }
    return Job(f"{phase.__name__}-{size}", partial(do, phase, size), known, command)


def main(
    pairs: tuple[int, ...] = (450_000, 4_500_000),
    folder: Path = Path("runs/scale"),
    record: Path | None = None,
) -> None:
    """All phases with all sizes, one after another.

    Args:
        pairs: sizes, small to large
        folder: where the corpora are made, and kept
        record: the file of results (data/runs/scale.json where not given)
    """
    command = (
        f"python -m transformer.experiments.scale --pairs {' '.join(map(str, pairs))}"
    )
    first = [job_of(generate, size, command) for size in pairs]
    run_jobs([*first, job_of(vocabulary, pairs[0], command)], folder, ["cpu"])
    measured = [
        job_of(phase, size, command) for size in pairs for phase in (prepare, iterate)
    ]
    run_jobs(
        [*measured, job_of(as_list, pairs[0], command)],
        folder,
        ["cpu"],
        record or "scale",
    )


if __name__ == "__main__":
    run_command(main)
