"""Does memory grow with the corpus? Generate pairs, prepare them on disk, walk through one epoch, and measure.

    python tools/scale.py                                   0.45 and 4.5 million pairs; writes data/runs/scale.json
    python tools/scale.py --pairs 2000 20000 --result ""    a quick try that only prints
    python tools/scale.py --padding multi30k tatoeba        padding and number of batches; only prints

A line joins one to three random sentence pairs that data/grammar drew, so that it is about as long as in WMT 2014.
Each phase runs in a process of its own, so that each has its own peak of memory. Resident memory is all that the system
counts for the process; its anonymous part is what the program holds itself, the rest are pages of files, which the
system may drop at any time. Seconds of CPU are those of all cores together. Text is encoded in as many threads as there
are cores, or as RAYON_NUM_THREADS says (better fewer than cores that others use). Linux only.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BATCH_TOKENS, SEED = 25_000, 2017
NUMBERS = {1: "one core", 2: "two cores", 4: "four cores", 8: "eight cores", 16: "sixteen cores"}


def memory():
    """(resident, anonymous) megabytes of this process now."""
    status = Path("/proc/self/status").read_text(encoding="utf8")
    return [round(int(re.search(rf"{name}:\s+(\d+)", status)[1]) / 1024) for name in ("VmRSS", "RssAnon")]


class Watch:
    """Time since it was made, and memory."""

    def __init__(self, total):
        self.total, self.start, self.cpu, self.samples = total, time.monotonic(), time.process_time(), []

    def see(self, done):
        """Note the memory after `done` pairs, about 20 times in all."""
        if done >= self.total * (len(self.samples) + 1) / 20:
            self.samples.append([done, *memory()])

    def report(self):
        import resource  # not on Windows, which imports this file for its other functions

        seconds, cpu = time.monotonic() - self.start, time.process_time() - self.cpu
        return {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1),
                "pairs_per_second": round(self.total / seconds),
                "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
                **dict(zip(("pairs", "resident_mb", "anonymous_mb"), zip(*self.samples)))}


# The phases: (folder, number of pairs, watch) -> dict of further figures

def text_files(folder, size):
    return folder / f"{size}.en", folder / f"{size}.de"


def generate(folder, size, watch, drawn=50_000):
    """Write <size>.en and <size>.de; a smaller corpus is the beginning of a larger one."""
    sys.path.insert(0, str(ROOT / "data"))
    from grammar import Corpus

    corpus = Corpus(SEED)
    parts = [(pair.english, pair.german) for pair in (corpus.plain() for _ in range(min(drawn, size)))]
    chance = random.Random(SEED)
    source, target = text_files(folder, size)
    with open(source, "w", encoding="utf8") as english, open(target, "w", encoding="utf8") as german:
        for _ in range(size):
            joined = chance.choices(parts, k=chance.randint(1, 3))
            english.write(" ".join(pair[0] for pair in joined) + "\n")
            german.write(" ".join(pair[1] for pair in joined) + "\n")
    return {}


def vocabulary(folder, size, watch, vocab_size=37_000):
    """Train a tokenizer on the first 100,000 pairs."""
    from transformer.corpora import stream_parallel
    from transformer.data import Tokenizer

    pairs = islice(stream_parallel(*text_files(folder, size)), 100_000)
    tokenizer = Tokenizer.train((text for pair in pairs for text in pair), vocab_size)
    tokenizer.save(folder / "tokenizer.json")
    return {"types": tokenizer.vocab_size}


def prepare(folder, size, watch):
    """Encode the text into a folder of memory-mapped arrays."""
    from transformer.corpora import stream_parallel
    from transformer.corpora.encoded import encode_to_folder
    from transformer.data import Tokenizer

    encoded = folder / f"{size}.encoded"
    shutil.rmtree(encoded, ignore_errors=True)
    pairs = stream_parallel(*text_files(folder, size))
    encode_to_folder(Tokenizer.load(folder / "tokenizer.json"), pairs, encoded, "scale")
    return {"folder_mb": round(sum(path.stat().st_size for path in encoded.iterdir()) / 2**20, 1)}


def iterate(folder, size, watch):
    """An epoch of batches as tensors, as training takes them."""
    from transformer.corpora.encoded import EncodedPairs
    from transformer.data import collate, epoch_batches

    encoded = EncodedPairs(folder / f"{size}.encoded")
    done = batches = real = places = total = 0
    for rows in epoch_batches(encoded, BATCH_TOKENS):
        batch = collate([encoded[i] for i in rows])
        done, batches, total = done + len(rows), batches + 1, total + sum(rows)
        for side in (batch.source, batch.target):
            places, real = places + side.numel(), real + int((side != 0).sum())
        watch.see(done)
    assert done == len(encoded) == size and total == size * (size - 1) // 2, "an epoch must hold every pair once"
    return {"batches": batches, "tokens_per_pair": round(real / done, 1), "padding": round(1 - real / places, 4)}


def as_list(folder, size, watch):
    """For comparison: the same pairs as Python lists in memory (the time is that of encoding)."""
    from transformer.corpora import read_parallel
    from transformer.data import Tokenizer, encode_pairs

    encode_pairs(Tokenizer.load(folder / "tokenizer.json"), read_parallel(*text_files(folder, size)))
    return {}


PHASES = {f.__name__: f for f in (generate, vocabulary, prepare, iterate, as_list)}


def in_a_process(phase, folder, size):
    """Run a phase in a fresh process; returns what it measured."""
    command = [sys.executable, __file__, "--phase", phase.__name__, "--folder", str(folder), "--pairs", str(size)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    if done.returncode:
        sys.exit(f"{phase.__name__} with {size} pairs failed:\n{done.stderr}")
    row = json.loads(done.stdout.splitlines()[-1])
    print(f"{size:>9,} pairs  {phase.__name__:10} {row['seconds']:7.1f} s ({row['cpu_seconds']:.1f} s of CPU)  "
          f"{row['pairs_per_second']:>9,} pairs/s  peak {row['peak_mb']:.0f} MB", flush=True)
    return row


def one_phase(phase, folder, size):
    """What a process of its own does."""
    if phase != "generate":
        import transformer.data  # noqa: F401     importing torch is not what is timed
    watch = Watch(size)
    more = PHASES[phase](folder, size, watch)
    print(json.dumps({**watch.report(), **more}))


def hardware():
    """What the figures were measured on, in words."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf8"))
    count = os.cpu_count()
    return f"{NUMBERS.get(count, f'{count} cores')} of {'an ' + model[1].strip() if model else 'a CPU'}"


def versions():
    from importlib.metadata import version

    return {name: version(name).split("+")[0] for name in ("torch", "numpy", "tokenizers")}


def measure(folder, sizes):
    """All phases for all sizes; text that is there already is used again."""
    start = time.monotonic()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    result = {"command": "python tools/scale.py --pairs " + " ".join(map(str, sizes)), "commit": commit.stdout.strip(),
              "hardware": hardware(), "threads": int(os.environ.get("RAYON_NUM_THREADS", os.cpu_count())),
              "other_load": round(os.getloadavg()[1], 1), **versions(), "seed": SEED, "batch_tokens": BATCH_TOKENS}
    for size in sizes:
        if not all(path.is_file() for path in text_files(folder, size)):
            in_a_process(generate, folder, size)
    result["types"] = in_a_process(vocabulary, folder, sizes[0])["types"]
    result["sizes"] = {str(size): {phase.__name__: in_a_process(phase, folder, size) for phase in (prepare, iterate)}
                       for size in sizes}
    result["sizes"][str(sizes[0])]["as_list"] = in_a_process(as_list, folder, sizes[0])
    return {**result, "minutes": round((time.monotonic() - start) / 60, 1)}


def as_json(result):
    """JSON with every list of numbers on a line of its own."""
    text = json.dumps(result, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda found: " ".join(found[0].split()), text) + "\n"


# What padding costs on real corpora

def print_padding(names, vocab_size=8000, sizes=(1000, 4096, 25_000)):
    """Padding and number of batches of training corpora."""
    from transformer.corpora import read_corpus
    from transformer.data import Tokenizer, encode_pairs, padding_share, token_batches

    for name in names:
        pairs = read_corpus(name, "train")
        encoded = encode_pairs(Tokenizer.train((text for pair in pairs for text in pair), vocab_size), pairs)
        for size in sizes:
            batches = token_batches(encoded, size)
            print(f"{name}, {size:,} tokens: {padding_share(encoded, batches):.1%}; {len(batches):,} batches", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[450_000, 4_500_000], help="sizes, small to large")
    parser.add_argument("--folder", type=Path, help="where the corpora are made, and kept (otherwise a temporary one)")
    parser.add_argument("--result", default=str(ROOT / "data" / "runs" / "scale.json"), help="empty: only print")
    parser.add_argument("--padding", nargs="+", metavar="CORPUS", help="measure the padding of these instead")
    parser.add_argument("--phase", choices=PHASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.phase:
        one_phase(arguments.phase, arguments.folder, arguments.pairs[0])
        return
    if arguments.padding:
        sys.path.insert(0, str(ROOT))
        print_padding(arguments.padding)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        result = measure(folder, arguments.pairs)
    if arguments.result:
        Path(arguments.result).write_text(as_json(result), encoding="utf8")


if __name__ == "__main__":
    main()
