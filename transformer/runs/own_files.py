"""The plan of a run on own files: their pairs are counted, a sample is taken, updates are timed."""

import math
from collections.abc import Sized
from dataclasses import replace
from itertools import islice

import numpy as np
import torch

from transformer.core.distributed import rank, rank_zero_first, sum_over_processes
from transformer.core.interrupt import Interrupted, catch_interrupt
from transformer.fast.training import fast_training
from transformer.models.families import build_fast
from transformer.models.pretrained import folder_named, load_tokenizer
from transformer.runs.experiment import Experiment, Sentences
from transformer.runs.folder import check_unused
from transformer.runs.monitor import TIMED
from transformer.runs.planning import Trial, plan
from transformer.runs.training import train

SAMPLE = 4000  # pairs that lengths and times are taken from
# tokens of batches on a CPU: of those that are timed, and of the smallest
PROBE = 1024
LEAST = 512


class Timer:
    """time(trial, batch_tokens, minutes): median seconds of twenty updates on a device, or of as
    many as there is time for."""

    def __init__(self, device: torch.device):
        self.device = device

    def __call__(self, tried: Trial, batch_tokens: int, minutes: float) -> float:
        brief = replace(
            tried.training,
            updates=TIMED + 1,
            minutes=minutes,
            validate_every=1,
            batch_tokens=batch_tokens,
            patience=None,
            restore_best=False,
            monitor=None,
            monitor_mode="auto",
            learning_rate=None,
        )
        stopped = Interrupted(
            "stopped while updates were timed: nothing has begun, give the "
            "command again"
        )
        model = build_fast(tried.model).to(self.device)
        with catch_interrupt() as notes:
            try:
                parts = fast_training(brief, tried.model)
                log = train(model, tried.encoded, brief, **parts)
            except Interrupted:
                raise stopped from None
        if notes:  # in the last of these updates
            raise stopped
        # of several processes the first alone has a log
        ends = [row["seconds"] for row in log]
        each = float(np.median(np.diff(ends))) if len(ends) > 1 else sum(ends)
        return sum_over_processes(each)


def sample_of(sentences: Sentences) -> tuple[int, list]:
    """How many training pairs there are, and some thousands from all over."""
    pairs = sentences("train")
    count = len(pairs) if isinstance(pairs, Sized) else sum(1 for _ in pairs)
    step = math.ceil(count / SAMPLE)
    return count, list(islice(pairs, 0, None, step))


def plan_files(e: Experiment, sentences: Sentences, device: torch.device) -> Experiment:
    """An experiment on own files with the model and the training that suit them, within its
    `limits`; prints the plan. One without limits stays as it is.

    ValueError or OSError for files or a folder that cannot be used.
    """
    if e.limits is None:
        return e
    with rank_zero_first():
        if rank() == 0:
            check_unused(e.folder)
    count, sample = sample_of(sentences)
    limits = e.limits
    if e.init is not None:
        known = load_tokenizer(folder_named(e.init), e.model)
        limits = replace(limits, tokenizer=known)
    if device.type == "cpu":
        limits = replace(limits, probe=PROBE, least=LEAST)
    found = plan(count, sample, limits, Timer(device))
    if rank() == 0:
        print(*found.lines(), sep="\n", flush=True)
    return replace(e, model=found.model, training=found.training, limits=None)
