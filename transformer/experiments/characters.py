"""Characters of scientific articles, for notebook 21: a Transformer and an LSTM of equal size,
beside what counts and what compresses.

    python -m transformer.experiments.characters --folder runs/characters

The articles of CRAFT's treebank, their sentences joined, as bytes of UTF-8; bits are per character.
What was expected was written down before the runs, in data/runs/characters.md. No text is drawn.
"""

import copy
import lzma
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from transformer.core.weights import count_parameters
from transformer.corpora import read_corpus
from transformer.embeddings import Projection
from transformer.experiments.runner import Job, run_command, run_jobs, settings_of, slug
from transformer.fast import FAST
from transformer.fast.embeddings import Embedding
from transformer.fast.training import fast_training, fused_adam
from transformer.language import (
    LanguageConfig,
    LanguageModel,
    bits_per_token,
    generate_ahead,
    overlapping_windows,
)
from transformer.optimizer import peak_rate
from transformer.regularization import label_smoothing_loss
from transformer.runs.experiment import Experiment
from transformer.runs.folder import average_last
from transformer.runs.training import TrainingConfig, train

CORPUS, MARKS, BYTES = "treebank_craft", 3, 256
WINDOW = 256  # bytes read at once, and at most this many known before each
COMMAND = "python -m transformer.experiments.characters"
MODEL = LanguageConfig(
    MARKS + BYTES, d_model=128, d_ff=512, N=4, h=4, P_drop=0.0, max_positions=WINDOW
)
WIDE = replace(MODEL, d_model=192, d_ff=768, h=6, P_drop=0.2, max_positions=2 * WINDOW)
UNITS = 224  # of each of the LSTM's two layers
WARMUP = 100
READ = 8 * WINDOW  # bytes an update
RATES, CHOOSING = (
    (0.0003, 0.001, 0.003),
    120_000,
)  # of what learns as it reads; on so much text
TRAINING = TrainingConfig(
    batch_tokens=8 * (WINDOW + 1),
    warmup=WARMUP,
    clip=1.0,
    schedule="linear",
    epsilon_ls=0.0,
    keep=1,
    save_minutes=2.0,
    precision="medium",
)


# The text


def text_of(split: str) -> str:
    """The sentences of a split's articles, one a line."""
    return "\n".join(sentence for sentence, _ in read_corpus(CORPUS, split))


def bytes_of(text: str) -> np.ndarray:
    """Its bytes in UTF-8, (n,), 0 to 255."""
    return np.frombuffer(text.encode("utf8"), dtype=np.uint8).astype(np.int64)


def windows(data: np.ndarray, window: int) -> list[tuple[list, list]]:
    """A text's bytes as pairs for `train`: no source, and a window behind the begin mark."""
    cut = range(0, len(data) - window + 1, window)
    return [([], [MODEL.bos_id, *(data[i : i + window] + MARKS).tolist()]) for i in cut]


# What counts, and what compresses


class NGram:
    """What came after each context of at most n - 1 bytes, or ids.

    `after` maps a context to how often each came next. What is read is bytes or a tuple.
    """

    def __init__(self, n: int):
        self.n, self.after = n, defaultdict(Counter)

    def contexts(self, data: Sequence, place: int) -> list[Sequence]:
        """What stands before a place in data: nothing, one, ... n - 1 of them."""
        return [data[place - k : place] for k in range(min(self.n, place + 1))]

    def learn(self, data: Sequence, place: int) -> None:
        """Count what stands at a place."""
        for context in self.contexts(data, place):
            self.after[context][data[place]] += 1

    def read(self, data: Sequence) -> "NGram":
        """Count all of data."""
        for place in range(len(data)):
            self.learn(data, place)
        return self

    def probability(self, data: Sequence, place: int) -> float:
        """P of the byte at a place in data after those before it (Witten and Bell).

        Each order is mixed with the next lower one: (count + types P_lower) / (total + types),
        where types is the number of different bytes seen after the context.
        """
        p = 1 / BYTES
        for context in self.contexts(data, place):
            if (seen := self.after.get(context)) is None:
                break
            p = (seen[data[place]] + len(seen) * p) / (seen.total() + len(seen))
        return p

    def guess(self, ids: list[int], most: int = 4) -> list[int]:
        """For `generate_ahead`: what came most often after the longest context that is known."""
        read = tuple(ids)
        for _ in range(most):
            context = next(
                known
                for known in reversed(self.contexts(read, len(read)))
                if known in self.after
            )
            read += (self.after[context].most_common(1)[0][0],)
        return list(read[-most:])


def ngram_bits(ngram: NGram, text: str, learns: bool = False) -> float:
    """Bits a character of a text by an n-gram of bytes; where it learns, it counts each byte that
    it has predicted."""
    data, total = text.encode("utf8"), 0.0
    for place in range(len(data)):
        total -= math.log2(ngram.probability(data, place))
        if learns:
            ngram.learn(data, place)
    return total / len(text)


def xz_bits(known: str, text: str) -> float:
    """Bits a character that a text adds to a file of xz behind the known text."""
    filters = [
        {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 2**26}
    ]
    before, both = (
        len(lzma.compress(part.encode("utf8"), filters=filters))
        for part in (known, known + text)
    )
    return 8 * (both - before) / len(text)


def counted(folder: Path, device: str) -> list[dict]:
    """The rows of xz and of n-grams."""
    known, test = text_of("train"), text_of("test")
    rows = []
    for n in range(1, 7):
        ngram = NGram(n).read(known.encode("utf8"))
        rows.append(
            {
                "row": f"{n}-gram",
                "bits": ngram_bits(ngram, test),
                "bits.learning": ngram_bits(ngram, test, learns=True),
            }
        )
    return [*rows, {"row": "xz", "bits.learning": xz_bits(known, test)}]


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
    model: LanguageConfig = MODEL


def experiment_of(s: Setting, seed: int) -> Experiment:
    """A setting as an experiment of the loop."""
    window, lr_scale = (
        s.model.max_positions,
        s.peak / peak_rate(s.model.d_model, WARMUP),
    )
    training = replace(
        TRAINING,
        seed=seed,
        updates=s.updates,
        lr_scale=lr_scale,
        batch_tokens=READ // window * (window + 1),
        validate_every=s.updates // 5,
    )
    return Experiment(CORPUS, model=s.model, training=training)


def character_bits(model: nn.Module, text: str, window: int) -> float:
    """Bits a character of a text by a model of its bytes."""
    data = bytes_of(text)
    return (
        bits_per_token(model, torch.from_numpy(data + MARKS), window)
        * len(data)
        / len(text)
    )


def learning_bits(model: nn.Module, text: str, window: int, rate: float) -> float:
    """Bits a character by a copy of a model that learns as it reads: half a window is predicted
    from what stands before it, then learned from once, by Adam with a rate that stays."""
    model, c = copy.deepcopy(model).eval(), model.config
    optimizer, total = fused_adam(model), 0.0
    optimizer.param_groups[0]["lr"] = rate
    ids = torch.from_numpy(bytes_of(text) + MARKS)
    for row, gold in zip(*overlapping_windows(ids, window, c)):
        loss = label_smoothing_loss(model(row[None]), gold[None], 0.0, c.pad_id, "sum")
        total += loss.item()
        optimizer.zero_grad()
        (loss / (gold != c.pad_id).sum()).backward()
        optimizer.step()
    return total / math.log(2) / len(text)


def learned_as_read(model: nn.Module, window: int) -> dict:
    """Bits on test by a model that learns as it reads, with the best rate on validation."""
    held_out = text_of("validation")[:CHOOSING]
    found = {rate: learning_bits(model, held_out, window, rate) for rate in RATES}
    best = min(found, key=found.get)
    return {
        "rates": {f"{rate:g}": bits for rate, bits in found.items()},
        "rate.learning": best,
        "bits.learning": learning_bits(model, text_of("test"), window, best),
    }


def written_ahead(model: LanguageModel, count: int = 20) -> dict:
    """Passes with a 6-gram's guesses and without, where the model goes on with half a window of
    each of several places in the test text for as long again; and in how many it writes the same.
    """
    known, data = (bytes_of(text_of(split)) + MARKS for split in ("train", "test"))
    guess = NGram(6).read(tuple(known.tolist())).guess
    passes = np.zeros(2, dtype=int)
    same, half = 0, model.config.max_positions // 2
    for start in range(0, len(data) - half, len(data) // count):
        prompt = [MODEL.bos_id, *data[start : start + half - 1].tolist()]
        texts, took = zip(
            *(
                generate_ahead(model, prompt, half, ahead)
                for ahead in (lambda ids: [], guess)
            )
        )
        passes += took
        same += texts[0] == texts[1]
    return {
        "passes": int(passes[0]),
        "passes.guessed": int(passes[1]),
        "written.same": same,
    }


def run(s: Setting, seed: int, folder: Path, device: str) -> dict:
    """Train a setting with a seed, or go on with it; its bits, and passes that guesses save."""
    torch.manual_seed(seed)
    model = LSTM(s.model) if s.lstm else LanguageModel(s.model, FAST)
    found = trained(model, s, seed, folder) | learned_as_read(
        model, s.model.max_positions
    )
    return found if s.lstm else found | written_ahead(model)


def trained(model: nn.Module, s: Setting, seed: int, folder: Path) -> dict:
    """Train a model as a setting says, or go on with it; its bits."""
    e, window, held_out = (
        experiment_of(s, seed),
        s.model.max_positions,
        text_of("validation"),
    )
    watched = "".join(held_out[i : i + 2000] for i in range(0, len(held_out), 16_000))
    log = train(
        model,
        windows(bytes_of(text_of("train")), window),
        e.training,
        folder,
        lambda model: {"validation_bits": character_bits(model, watched, window)},
        resume=(folder / "checkpoint.safetensors").is_file(),
        **fast_training(e.training, s.model),
    )
    average_last(model, folder, 1)
    return {
        "bits": character_bits(model, text_of("test"), window),
        "validation_bits": character_bits(model, held_out, window),
        "parameters": count_parameters(model),
        "updates": log[-1]["update"],
        "characters": log[-1]["tokens"],
        "loss": round(log[-1]["loss"], 4),
    }


# (row, what it is), in the order in which they are run
ROWS = [
    ("Transformer, short", Setting()),
    ("LSTM, short", Setting(lstm=True)),
    ("Transformer", Setting(updates=20_000)),
    ("LSTM", Setting(lstm=True, updates=20_000)),
    ("Transformer, dropout", Setting(updates=8000, model=WIDE)),
]


def jobs_of(seeds: tuple[int, ...], most: int | None = None) -> list[Job]:
    """What counts and compresses, and every row with its seeds."""
    jobs = [Job("counted", counted, {"corpus": CORPUS}, COMMAND)]
    for row, s in ROWS:
        for seed in seeds:
            known = {"row": row, "rate": s.peak, **settings_of(experiment_of(s, seed))}
            jobs.append(
                Job(f"{slug(row)}-{seed}", partial(run, s, seed), known, COMMAND)
            )
    return jobs[:most]


def main(
    seeds: tuple[int, ...] = (1,),
    folder: Path = Path("runs/characters"),
    record: Path | None = None,
    minutes: float | None = None,
    most: int | None = None,
) -> None:
    """Count, compress, and train every row, one after another, on one thread.

    Args:
        seeds: of initial weights and the order of the batches
        folder: where the runs are kept while they go on
        record: the file of results (data/runs/characters.json where not given)
        minutes: stop after so many; the same command goes on
        most: only the first so many of the jobs
    """
    run_jobs(jobs_of(seeds, most), folder, ["cpu"], record or "characters", minutes)


if __name__ == "__main__":
    run_command(main)
