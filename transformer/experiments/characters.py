"""Characters of scientific articles, for notebook 21: a Transformer and an LSTM of equal size,
beside what counts and what compresses.

    python -m transformer.experiments.characters --folder runs/characters

The articles of CRAFT's treebank, their sentences joined, as bytes of UTF-8; bits are per character.
What was expected was written down before the runs, in data/runs/characters.md. No text is drawn.
"""

import lzma
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from transformer.corpora import read_corpus
from transformer.embeddings import Embedding, Projection
from transformer.experiments.runner import Job, devices_for, run_command, run_jobs, settings_of
from transformer.fast import FAST
from transformer.fast.training import fast_training
from transformer.files import data_folder
from transformer.language import LanguageConfig, LanguageModel, bits_per_token, generate_ahead
from transformer.optimizer import peak_rate
from transformer.runs import Experiment, average_last
from transformer.training import TrainingConfig, train
from transformer.weights import count_parameters

CORPUS, MARKS, BYTES = "treebank_craft", 3, 256
WINDOW = 256  # bytes read at once, and at most this many known before each
COMMAND = "python -m transformer.experiments.characters"
MODEL = LanguageConfig(MARKS + BYTES, d_model=128, d_ff=512, N=4, h=4, P_drop=0.0,
                       max_positions=WINDOW)
UNITS = 224  # of each of the LSTM's two layers
WARMUP = 100
TRAINING = TrainingConfig(batch_tokens=8 * (WINDOW + 1), warmup=WARMUP, clip=1.0, falling=True,
                          epsilon_ls=0.0, keep=1, save_minutes=2.0, precision="medium")


# The text

def text_of(split: str) -> str:
    """The sentences of a split's articles, one a line."""
    return "\n".join(sentence for sentence, _ in read_corpus(CORPUS, split))


def bytes_of(text: str) -> np.ndarray:
    """Its bytes in UTF-8, (n,), 0 to 255."""
    return np.frombuffer(text.encode("utf8"), dtype=np.uint8).astype(np.int64)


def windows(data: np.ndarray, window: int | None = None) -> list[tuple[list, list]]:
    """A text's bytes as pairs for `train`: no source, and a window behind the begin mark."""
    window = window or WINDOW
    cut = range(0, len(data) - window + 1, window)
    return [([], [MODEL.bos_id, *(data[i:i + window] + MARKS).tolist()]) for i in cut]


# What counts, and what compresses

def ngram_probabilities(known: np.ndarray, data: np.ndarray, n: int) -> np.ndarray:
    """P of each byte of data after the n - 1 before it, from counts in known (Witten and Bell).

    Each order is mixed with the next lower one: (count + types P_lower) / (total + types), where
    types is the number of different bytes seen after the context.
    """
    p = np.full(len(data), 1 / BYTES)
    for k in range(n):  # bytes of context
        seen, counts = np.unique(joined(known, k), return_counts=True)
        contexts, first = np.unique(seen >> 8, return_index=True)
        totals, types = np.add.reduceat(counts, first), np.diff([*first, len(seen)])
        asked = joined(data, k)
        count = looked_up(seen, counts, asked)
        total, kinds = (looked_up(contexts, found, asked >> 8) for found in (totals, types))
        mixed = (count + kinds * p[k:]) / np.maximum(total + kinds, 1)
        p[k:] = np.where(total > 0, mixed, p[k:])
    return p


def joined(data: np.ndarray, k: int) -> np.ndarray:
    """Each byte with the k before it as one number, (n - k,); k is at most 6."""
    return sum(data[i:len(data) - k + i] << 8 * (k - i) for i in range(k + 1))


def looked_up(keys: np.ndarray, values: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """The value of each key asked for, 0 where it is none; keys are sorted."""
    places = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    return np.where(keys[places] == asked, values[places], 0)


def ngram_bits(known: str, text: str, n: int) -> float:
    """Bits a character of a text by an n-gram of bytes."""
    p = ngram_probabilities(bytes_of(known), bytes_of(text), n)
    return float(-np.log2(p).sum() / len(text))


def guesser(known: np.ndarray, n: int, most: int = 4) -> Callable:
    """guess(ids) of `generate_ahead`: the bytes that came most often after the n - 1 before them
    in known, or after fewer where these never came."""
    tables = {}
    for k in range(n):
        seen, counts = np.unique(joined(known, k), return_counts=True)
        seen = seen[np.argsort(counts, kind="stable")]  # the most frequent last
        tables[k] = dict(zip((seen >> 8).tolist(), (seen & 255).tolist()))

    def guess(ids: list[int]) -> list[int]:
        read = bytes(i - MARKS for i in ids[1 - n:] if i >= MARKS)

        def before(k):
            return int.from_bytes(read[len(read) - k:], "big")

        for _ in range(most):
            k = max(k for k in range(min(n, len(read) + 1)) if before(k) in tables[k])
            read += bytes([tables[k][before(k)]])
        return [byte + MARKS for byte in read[-most:]]

    return guess


def xz_bits(known: str, text: str) -> float:
    """Bits a character that a text adds to a file of xz behind the known text."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 2**26}]
    before, both = (len(lzma.compress(part.encode("utf8"), filters=filters))
                    for part in (known, known + text))
    return 8 * (both - before) / len(text)


def counted(folder: Path, device: str) -> list[dict]:
    """The rows of xz and of n-grams."""
    known, test = text_of("train"), text_of("test")
    rows = [{"row": f"{n}-gram", "bits": ngram_bits(known, test, n)} for n in range(1, 7)]
    return [*rows, {"row": "xz", "bits": xz_bits(known, test)}]


# Models

class LSTM(nn.Module):
    """Two layers of an LSTM over bytes, with the methods that training and `bits_per_token` ask
    for: ids (B, T) -> logits (B, T, V)."""

    def __init__(self, config: LanguageConfig, units: int = UNITS):
        super().__init__()
        self.config = config
        self.embedding = Embedding(config.vocab_size, units)
        self.layers = nn.LSTM(units, units, num_layers=2, batch_first=True)
        self.output = Projection(self.embedding)

    def states(self, tokens: Tensor) -> Tensor:
        return self.layers(self.embedding(tokens))[0]

    def forward(self, tokens: Tensor) -> Tensor:
        return self.output(self.states(tokens))

    def loss(self, batch, criterion) -> Tensor:
        return criterion(self.output, self.states(batch.decoder_input), batch.gold)


@dataclass(frozen=True)
class Setting:
    """What is trained, and how."""

    lstm: bool = False
    updates: int = 2000
    peak: float = 0.003  # the largest learning rate


def experiment_of(s: Setting, seed: int) -> Experiment:
    """A setting as an experiment of the loop."""
    factor = s.peak / peak_rate(MODEL.d_model, WARMUP)
    training = replace(TRAINING, seed=seed, updates=s.updates, factor=factor,
                       save_every=s.updates // 5)
    return Experiment(CORPUS, model=MODEL, training=training)


def character_bits(model: nn.Module, text: str, window: int | None = None) -> float:
    """Bits a character of a text by a model of its bytes."""
    data = bytes_of(text)
    bits = bits_per_token(model, torch.from_numpy(data + MARKS), window or WINDOW)
    return bits * len(data) / len(text)


def written_ahead(model: LanguageModel, count: int = 20) -> dict:
    """Passes with a 6-gram's guesses and without, where the model goes on with half a window of
    each of several places in the test text for as long again; and in how many it writes the same.
    """
    guess, data = guesser(bytes_of(text_of("train")), 6), bytes_of(text_of("test")) + MARKS
    passes = np.zeros(2, dtype=int)
    same, half = 0, WINDOW // 2
    for start in range(0, len(data) - half, len(data) // count):
        prompt = [MODEL.bos_id, *data[start:start + half - 1].tolist()]
        texts, took = zip(*(generate_ahead(model, prompt, half, ahead)
                            for ahead in (lambda ids: [], guess)))
        passes += took
        same += texts[0] == texts[1]
    return {"passes": int(passes[0]), "passes.guessed": int(passes[1]), "written.same": same}


def run(s: Setting, seed: int, folder: Path, device: str) -> dict:
    """Train a setting with a seed, or go on with it; its bits, and passes that guesses save."""
    torch.manual_seed(seed)
    model = LSTM(MODEL) if s.lstm else LanguageModel(MODEL, FAST)
    found = trained(model, s, seed, folder)
    return found if s.lstm else {**found, **written_ahead(model)}


def trained(model: nn.Module, s: Setting, seed: int, folder: Path) -> dict:
    """Train a model as a setting says, or go on with it; its bits."""
    e, held_out = experiment_of(s, seed), text_of("validation")
    log = train(model, windows(bytes_of(text_of("train"))), e.training, folder,
                lambda model: {"validation_bits": character_bits(model, held_out[:50_000])},
                resume=(folder / "checkpoint.safetensors").is_file(),
                **fast_training(e.training, MODEL))
    average_last(model, folder, 1)
    return {"bits": character_bits(model, text_of("test")),
            "validation_bits": character_bits(model, held_out),
            "parameters": count_parameters(model), "updates": log[-1]["update"],
            "characters": log[-1]["tokens"], "loss": round(log[-1]["loss"], 4)}


# (row, what it is), in the order in which they are run
ROWS = [
    ("Transformer, short", Setting()),
    ("LSTM, short", Setting(lstm=True)),
    ("Transformer", Setting(updates=20_000)),
    ("LSTM", Setting(lstm=True, updates=20_000)),
]


def jobs_of(seeds: tuple[int, ...], most: int | None = None) -> list[Job]:
    """What counts and compresses, and every row with its seeds."""
    jobs = [Job("counted", counted, {"corpus": CORPUS}, COMMAND)]
    for row, s in ROWS:
        for seed in seeds:
            known = {"row": row, "rate": s.peak, **settings_of(experiment_of(s, seed))}
            name = f"{row.lower().replace(', ', '-')}-{seed}"
            jobs.append(Job(name, partial(run, s, seed), known, COMMAND))
    return jobs[:most]


def main(seeds: tuple[int, ...] = (1,), folder: Path = Path("runs/characters"),
         record: Path | None = None, minutes: float | None = None,
         most: int | None = None) -> None:
    """Count, compress, and train every row, one after another, on one thread.

    Args:
        seeds: of initial weights and the order of the batches
        folder: where the runs are kept while they go on
        record: the file of results (data/runs/characters.json where not given)
        minutes: stop after so many; the same command goes on
        most: only the first so many of the jobs
    """
    record = record or data_folder() / "runs" / "characters.json"
    run_jobs(jobs_of(seeds, most), folder, devices_for("cpu"), record, minutes)


if __name__ == "__main__":
    run_command(main)
