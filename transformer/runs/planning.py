"""A recipe for own files: a function of their number, a sample, the options, and timed updates.

The sizes and the rounds through the pairs follow the corpora of `transformer.runs.recipes`; data/runs
holds what these came to. Norms come first: with the paper's order a short warm-up can fail.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from transformer.corpora.tokenizer import Tokenizer
from transformer.corpora.windows import lengths_of
from transformer.data import encode_pairs
from transformer.fast.model import TransformerConfig
from transformer.models.families import parameters_of
from transformer.models.pretrained import check_memory
from transformer.runs.batches import epochs_in_memory
from transformer.runs.monitor import clock
from transformer.runs.recipes import shared_out
from transformer.runs.training import TrainingConfig

TOO_FEW = 500  # pairs
DAY = 24 * 60  # minutes that a plan takes at most where none are given, if it can
SHARE = (
    0.85  # of the minutes is for updates, the rest for validating and other programs
)
LEAST_UPDATES = 3000  # rather than large batches
LEAST_EPOCHS = 5
TOKENS_A_WEIGHT = 2  # at 0.2 of Multi30k two layers beat four, at 1 they did not
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
    vocab_size, d_model, d_ff, N, h = sizes
    config = TransformerConfig(
        vocab_size, d_model=d_model, d_ff=d_ff, N=N, h=h, norm_first=True
    )
    return Size(pairs, epochs, batch_tokens, config)


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
    steps = ((3, 0.0), (30, 0.1), (80, 0.2), (math.inf, 0.3))
    return next(p for most, p in steps if epochs < most)


def as_it_is(model: Any, training: TrainingConfig) -> tuple[Any, TrainingConfig]:
    """Options that change nothing."""
    return model, training


@dataclass(frozen=True)
class Limits:
    """What the options and the machine leave to a plan.

    settle(model, training): both with what the options set; overrides: the settings of training
    among these; fixed_size: whether they name the model's size; trained: whether it has been trained
    before, with which tokenizer. probe and least: tokens of the batches that are timed, and of the
    smallest ones; a size's own where they are None.
    """

    settle: Callable = as_it_is
    overrides: dict = field(default_factory=dict)
    fixed_size: bool = False
    trained: bool = False
    tokenizer: Tokenizer | None = None
    probe: int | None = None
    least: int | None = None


@dataclass
class Trial:
    """A size of model on a sample of the pairs, encoded."""

    model: Any
    training: TrainingConfig
    encoded: list

    def tokens_a_pair(self) -> float:
        """Mean of the longer sides."""
        rows = range(len(self.encoded))
        return float(np.maximum(*lengths_of(self.encoded, rows)).mean())


# seconds of an update, of (trial, tokens of a batch, minutes that timing may take)
Timing = Callable[[Trial, int, float], float]


def trial(
    model: Any,
    training: TrainingConfig,
    sample: list,
    tokenizer: Tokenizer | None = None,
) -> Trial:
    """A `Trial`, with a vocabulary of the sample where there is no tokenizer.

    ValueError for a model too large for the machine, and where all pairs of the sample are longer
    than its positions.
    """
    check_memory(model)
    if tokenizer is None:
        texts = (text for pair in sample for text in pair)
        tokenizer = Tokenizer.train(texts, model.vocab_size)
    model = replace(model, vocab_size=tokenizer.vocab_size)
    encoded = [
        (source, target)
        for source, target in encode_pairs(tokenizer, sample)
        if max(len(source), len(target) - 1) <= model.max_positions
    ]
    if not encoded:
        raise ValueError(
            f"all sentence pairs are longer than the model's {model.max_positions} "
            "positions: split them, or give more with `max_positions`"
        )
    return Trial(model, training, encoded)


def brief_minutes(minutes: float) -> float:
    """Minutes that timing may take, of those that the run has."""
    return min(1, minutes / 60)


def fitting(
    trials: Callable, sizes: list[Size], minutes: float, probe: int | None, time: Timing
) -> tuple[Size, float]:
    """The largest of the sizes that sees `TOKENS_A_WEIGHT` tokens for each of its parameters in so
    many minutes, or the smallest; (size, tokens that it sees in them).

    probe: tokens of the batches that are timed; its own where it is None.
    """
    for chosen in reversed(sizes):
        tried = trials(chosen)
        batch = probe or chosen.batch_tokens
        an_update = batch * tried.training.accumulate
        each = time(tried, batch, brief_minutes(minutes))
        seen = 60 * SHARE * minutes * an_update / each
        if seen >= TOKENS_A_WEIGHT * parameters_of(tried.model):
            break
    return chosen, seen


def batch_of(tokens: float, least: int, most: int) -> int:
    """The largest power of two that makes `LEAST_UPDATES` of so many tokens, within bounds."""
    wanted = 2 ** int(math.log2(max(1, tokens / LEAST_UPDATES)))
    return min(most, max(least, wanted))


def schedule(
    training: TrainingConfig, updates: int, batch: int, d_model: int
) -> TrainingConfig:
    """So many updates: a tenth of them warm-up, then a rate that falls to the end; the last weights
    are averaged."""
    validations = int(min(20, max(4, 2 * (training.minutes or DAY))))
    warmup = max(1, min(4000, updates // 10))
    return replace(
        training,
        updates=updates,
        batch_tokens=batch,
        warmup=warmup,
        schedule="linear",
        lr_scale=PEAK * (warmup / d_model) ** 0.5,
        keep=max(1, validations // 6),
        validate_every=math.ceil(updates / validations),
    )


def updates_in(
    tried: Trial, batch: int, wanted: float, least: float, time: Timing
) -> tuple[int, float]:
    """(updates, seconds of one): those of `wanted` tokens, or what fits into the minutes; where
    none are given, into a day, if that does not make fewer than `least` tokens."""
    training = tried.training
    minutes = training.minutes or DAY
    a_batch = batch * training.accumulate
    each = time(tried, batch, brief_minutes(minutes))
    updates = min(wanted / a_batch, 60 * SHARE * minutes / each)
    if training.minutes is None:
        updates = max(updates, least / a_batch)
    return max(1, int(updates)), each


@dataclass(frozen=True)
class Plan:
    """The model and the training that suit some files."""

    model: Any
    training: TrainingConfig
    pairs: int
    tokens: float  # of an epoch, a side
    epochs: float
    each: float | None = None  # seconds of an update, where they were timed
    trained: bool = False  # the model, before

    def lines(self) -> list[str]:
        """The plan in words."""
        c, t = self.model, self.training
        names = ("N", "d_model", "P_drop", "vocab_size")
        sizes = ", ".join(f"{n} {getattr(c, n)}" for n in names if hasattr(c, n))
        timed = ""
        if self.each:
            total = clock(t.updates * self.each / SHARE)
            timed = f"; about {total}, {self.each:.3f} s an update"
        return [
            f"{self.pairs:,} pairs of about {self.tokens / self.pairs:.0f} tokens: "
            f"{sizes}, batches of {t.batch_tokens:,} tokens",
            f"{t.updates:,} updates, {self.epochs:.1f} epochs, "
            f"warm-up {t.warmup:,}{timed}",
            FORGETS if self.trained else outlook(self.pairs, self.epochs * self.tokens),
        ]


FORGETS = (
    "the model has been trained before: it learns what is in the files, and may forget what "
    "is not"
)


def outlook(pairs: int, tokens: float) -> str:
    """What to expect of so many pairs, and of a run that reads so many tokens a side."""
    if pairs < TOO_FEW:
        return (
            f"{pairs:,} pairs are too few to learn a translation from, which takes thousands: "
            "this run shows no more than that the files can be read"
        )
    if pairs < SIZES[1].pairs:
        return (
            f"{pairs:,} pairs are few: expect words and phrases that are frequent in the "
            "files, and mistakes elsewhere"
        )
    ours = ", ".join(f"{bleu} after {millions}" for millions, bleu in OURS.items())
    return (
        f"it reads {tokens / 1e6:.1f} million tokens a side; to compare, our runs on captions "
        "and on everyday sentences, whose schedules were longer, had a greedy validation BLEU "
        f"of about {ours} million"
    )


def plan(pairs: int, sample: list, limits: Limits, time: Timing) -> Plan:
    """The model and the training for so many pairs, of which `sample` is a part.

    time(trial, tokens of a batch, minutes) -> seconds of an update. ValueError where no pair of
    the sample fits the model, or the model the machine.
    """
    sizes = [known for known in SIZES if known.pairs <= pairs]
    brief = limits.settle(sizes[0].model, shared_out(TrainingConfig()))[1]

    def trials(known: Size) -> Trial:
        model, _ = limits.settle(known.model, brief)
        return trial(model, brief, sample, limits.tokenizer)

    chosen, seen, each = sizes[-1], math.inf, None
    if "updates" not in limits.overrides:
        candidates = sizes[-1:] if limits.fixed_size else sizes
        minutes = brief.minutes or DAY
        chosen, seen = fitting(trials, candidates, minutes, limits.probe, time)
    tried = trials(chosen)
    tokens = pairs * tried.tokens_a_pair()
    wanted = sizes[-1].epochs * tokens
    least = limits.least or chosen.batch_tokens
    batch = batch_of(min(wanted, seen) / brief.accumulate, least, chosen.batch_tokens)
    batch = limits.overrides.get("batch_tokens", batch)
    updates = limits.overrides.get("updates")
    if updates is None:
        updates, each = updates_in(tried, batch, wanted, LEAST_EPOCHS * tokens, time)
    training = schedule(brief, updates, batch, getattr(tried.model, "d_model", 512))
    epochs = updates * brief.accumulate * batch / tokens
    if len(sample) == pairs:  # all are in memory: batches need not count as full
        epochs = epochs_in_memory(training, tried.encoded)
    model = replace(chosen.model, P_drop=dropout(epochs))
    model, training = limits.settle(model, training)
    return Plan(model, training, pairs, tokens, epochs, each, limits.trained)
