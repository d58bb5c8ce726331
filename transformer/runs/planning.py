"""A recipe for own files, from the number of pairs, their lengths, and twenty timed updates.

The sizes and the rounds through the pairs follow the corpora of `transformer.runs.recipes`; data/runs
holds what these came to. Norms come first: with the paper's order a short warm-up can fail.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from transformer.data import Tokenizer, encode_pairs, lengths_of
from transformer.core.distributed import process_number, sum_over_processes
from transformer.fast import build_fast
from transformer.fast.training import fast_training
from transformer.core.interrupt import Interrupted, catch_interrupt
from transformer.model import TransformerConfig
from transformer.models.pretrained import check_memory
from transformer.runs.run import TIMED, Experiment, check_unused, clock, first_goes_ahead, stream_pairs
from transformer.training import TrainingConfig, train
from transformer.core.weights import parameters_of

TOO_FEW = 500  # pairs
SAMPLE = 4000  # pairs that lengths and times are taken from
DAY = 24 * 60  # minutes that a plan takes at most where none are given, if it can
SHARE = 0.85  # of the minutes is for updates, the rest for validating and for other programs
LEAST_UPDATES = 3000  # rather than large batches
LEAST_EPOCHS = 5
TOKENS_A_WEIGHT = 2  # at 0.2 of Multi30k two layers were ahead of four, at 1 behind them
# millions of tokens: greedy BLEU there, of multi30k-en-de-1 and tatoeba-en-de in data/runs
OURS = {1: 2, 3: 22, 7: 31, 15: 38}
PEAK = 0.5  # over d_model: the highest learning rate


@dataclass(frozen=True)
class Size:
    """What suits so many pairs and more."""

    pairs: int
    epochs: int
    batch_tokens: int
    model: TransformerConfig


def size(pairs: int, epochs: int, batch_tokens: int, *sizes: int) -> Size:
    """A `Size`; sizes: vocab_size, d_model, d_ff, N, h."""
    return Size(pairs, epochs, batch_tokens, TransformerConfig(*sizes, norm_first=True))


SIZES = [
    size(0, 100, 2048, 2000, 128, 256, 2, 4),
    size(10_000, 60, 4096, 6000, 128, 256, 4, 4),  # Multi30k
    size(100_000, 20, 4096, 8000, 256, 512, 3, 4),  # Tatoeba
    size(1_000_000, 10, 8192, 16_000, 512, 2048, 4, 8),  # an eighth of WMT 2014
    size(5_000_000, 10, 25_000, 37_000, 512, 2048, 6, 8),  # the paper's base model
]


def dropout(epochs: float) -> float:
    """The more often a pair is seen, the more of it: 0 was best at 2 epochs of Multi30k, 0.2
    serves 62 there, 0.1 the 13 of Tatoeba."""
    return next(p for most, p in ((3, 0.0), (30, 0.1), (80, 0.2), (math.inf, 0.3)) if epochs < most)


@dataclass
class Trial:
    """A size of model on a sample of the pairs, encoded with a vocabulary of the sample."""

    model: Any
    training: TrainingConfig
    encoded: list
    device: Any

    def tokens_a_pair(self) -> float:
        """Mean of the longer sides."""
        return float(np.maximum(*lengths_of(self.encoded, range(len(self.encoded)))).mean())

    def seconds(self, batch_tokens: int, minutes: float) -> float:
        """Median seconds of twenty updates, or of as many as there is time for."""
        brief = replace(self.training, updates=TIMED + 1, minutes=minutes, save_every=1,
                        batch_tokens=batch_tokens)
        stopped = Interrupted("stopped while updates were timed: nothing has begun, give the "
                              "command again")
        with catch_interrupt() as notes:
            try:
                log = train(build_fast(self.model).to(self.device), self.encoded, brief,
                            **fast_training(brief, self.model))
            except Interrupted:
                raise stopped from None
        if notes:  # in the last of these updates
            raise stopped
        ends = [row["seconds"] for row in log]  # of several processes the first alone has a log
        each = float(np.median(np.diff(ends))) if len(ends) > 1 else sum(ends)
        return sum_over_processes(each, self.device)


def trial(model, training: TrainingConfig, sample: list, device) -> Trial:
    """ValueError for a model too large for the machine, and where all pairs of the sample are
    longer than its positions."""
    check_memory(model)
    tokenizer = Tokenizer.train((text for pair in sample for text in pair), model.vocab_size)
    model = replace(model, vocab_size=tokenizer.vocab_size)
    encoded = [pair for pair in encode_pairs(tokenizer, sample)
               if max(len(pair[0]), len(pair[1]) - 1) <= model.max_positions]
    if not encoded:
        raise ValueError(f"all sentence pairs are longer than the model's {model.max_positions} "
                         "positions: split them, or give more with --max-positions")
    return Trial(model, training, encoded, device)


def fitting(trials: Callable, sizes: list[Size], minutes: float, probe: int | None) -> tuple:
    """The largest of the sizes that sees `TOKENS_A_WEIGHT` tokens for each of its parameters in so
    many minutes, or the smallest; (size, tokens that it sees in them).

    probe: tokens of the batches that are timed; its own where it is None.
    """
    for found in reversed(sizes):
        tried, batch = trials(found), probe or found.batch_tokens
        an_update = batch * tried.training.accumulate
        seen = 60 * SHARE * minutes * an_update / tried.seconds(batch, min(1, minutes / 60))
        if seen >= TOKENS_A_WEIGHT * parameters_of(tried.model):
            break
    return found, seen


def batch_of(tokens: float, least: int, most: int) -> int:
    """The largest power of two that makes `LEAST_UPDATES` of so many tokens, within bounds."""
    wanted = 2 ** int(math.log2(max(1, tokens / LEAST_UPDATES)))
    return min(most, max(least, wanted))


def schedule(training: TrainingConfig, updates: int, batch: int, d_model: int) -> TrainingConfig:
    """So many updates: a tenth of them warm-up, then a rate that falls to the end; the last weights
    are averaged."""
    validations = int(min(20, max(4, 2 * (training.minutes or DAY))))
    warmup = max(1, min(4000, updates // 10))
    return replace(training, updates=updates, batch_tokens=batch, warmup=warmup, falling=True,
                   factor=PEAK * (warmup / d_model) ** 0.5, keep=max(1, validations // 6),
                   save_every=math.ceil(updates / validations))


def outlook(pairs: int, tokens: float) -> str:
    """What to expect of so many pairs, and of a run that reads so many tokens a side."""
    if pairs < TOO_FEW:
        return (f"{pairs:,} pairs are too few to learn a translation from, which takes thousands: "
                "this run shows no more than that the files can be read")
    if pairs < SIZES[1].pairs:
        return (f"{pairs:,} pairs are few: expect words and phrases that are frequent in the "
                "files, and mistakes elsewhere")
    ours = ", ".join(f"{bleu} after {millions}" for millions, bleu in OURS.items())
    return (f"it reads {tokens / 1e6:.1f} million tokens a side; to compare, our runs on captions "
            "and on everyday sentences, whose schedules were longer, had a greedy validation BLEU "
            f"of about {ours} million")


def updates_in(tried: Trial, batch: int, wanted: float, least: float) -> tuple[int, float]:
    """(updates, seconds of one): those of `wanted` tokens, or what fits into the minutes; where
    none are given, into a day, if that does not make fewer than `least` tokens."""
    training = tried.training
    minutes, a_batch = training.minutes or DAY, batch * training.accumulate
    each = tried.seconds(batch, min(1, minutes / 60))
    updates = min(wanted / a_batch, 60 * SHARE * minutes / each)
    if training.minutes is None:
        updates = max(updates, least / a_batch)
    return max(1, int(updates)), each


def say(pairs: int, tokens: float, e: Experiment, each: float | None) -> None:
    """Print a plan."""
    c, t = e.model, e.training
    seen = t.updates * t.accumulate * t.batch_tokens
    names = [name for name in ("N", "d_model", "P_drop", "vocab_size") if hasattr(c, name)]
    sizes = ", ".join(f"{name} {getattr(c, name)}" for name in names)
    print(f"{pairs:,} pairs of about {tokens / pairs:.0f} tokens: {sizes}, batches of "
          f"{t.batch_tokens:,} tokens")
    timed = f"; about {clock(t.updates * each / SHARE)}, {each:.3f} s an update" if each else ""
    print(f"{t.updates:,} updates, {seen / tokens:.1f} epochs, warm-up {t.warmup:,}{timed}")
    print(outlook(pairs, seen), flush=True)


def plan_files(settle: Callable, given: dict, fixed: bool, e: Experiment, device) -> None:
    """Set the model and the training of an experiment on own files, and print the plan.

    settle(model, training): both with what the options give; given: the settings of training
    among these; fixed: whether they name the model's size. ValueError or OSError for files or a
    folder that cannot be used.
    """
    with first_goes_ahead():
        if process_number() == 0:
            check_unused(e.folder)
    pairs = sum(1 for _ in stream_pairs(e, "train"))
    sample = list(islice(stream_pairs(e, "train"), 0, None, math.ceil(pairs / SAMPLE)))
    sizes = [found for found in SIZES if found.pairs <= pairs]
    brief, cpu = settle(sizes[0].model, TrainingConfig())[1], device.type == "cpu"

    def trials(found: Size) -> Trial:
        return trial(settle(found.model, brief)[0], brief, sample, device)

    found, seen, each = sizes[-1], math.inf, None
    if "updates" not in given:
        found, seen = fitting(trials, sizes[-1:] if fixed else sizes, brief.minutes or DAY,
                              1024 if cpu else None)
    tried = trials(found)
    tokens = pairs * tried.tokens_a_pair()
    wanted = sizes[-1].epochs * tokens
    batch = batch_of(min(wanted, seen) / brief.accumulate,
                     512 if cpu else found.batch_tokens, found.batch_tokens)
    batch, updates = given.get("batch_tokens", batch), given.get("updates")
    if updates is None:
        updates, each = updates_in(tried, batch, wanted, LEAST_EPOCHS * tokens)
    epochs = updates * brief.accumulate * batch / tokens
    training = schedule(brief, updates, batch, getattr(tried.model, "d_model", 512))
    e.model, e.training = settle(replace(found.model, P_drop=dropout(epochs)), training)
    if process_number() == 0:
        say(pairs, tokens, e, each)
