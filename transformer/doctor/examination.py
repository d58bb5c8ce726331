"""An examination of any Transformer in seconds, on a CPU, without a corpus."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from transformer.doctor import leaks, learning, losses, plumbing
from transformer.doctor.paper import paper
from transformer.doctor.report import Finding, Report
from transformer.doctor.sines import sines
from transformer.doctor.subject import Subject, subject_of, unharmed

CHECKS = {
    "output": plumbing.output,
    "start": plumbing.start,
    "future": leaks.future,
    "past": leaks.past,
    "padding": leaks.padding,
    "neighbours": leaks.neighbours,
    "source": leaks.source,
    "order": leaks.order,
    "sines": sines,
    "modes": plumbing.modes,
    "empty": plumbing.empty,
    "half": plumbing.half,
    "gradients": plumbing.gradients,
    "sharing": plumbing.sharing,
    "loss": losses.loss,
    "accumulation": losses.accumulation,
    "paper": paper,
}
LEARNING = {
    "one batch": learning.one_batch,
    "floor": learning.floor,
    "copying": learning.copying,
    "reversing": learning.reversing,
}


def checkup(
    model: Callable,
    *,
    loss: Callable | None = None,
    accumulate: Callable | None = None,
    reference: nn.Module | None = None,
    names: dict[str, str] | None = None,
    ids: tuple[int, int, int] = (0, 1, 2),
    learn: bool = True,
    seed: int = 0,
) -> Report:
    """Examine model(source, target) -> scores: ids (B, S) and (B, T) to (B, T, V).

    loss(model, source, target) is its loss on whole targets, begin and end included;
    accumulate(model, [(source, target), ...]) leaves the gradient of one update of several
    batches. reference is a module that gets the model's weights, under other names where
    names says {the model's: the reference's}. ids are those of padding, begin and end.
    learn=False leaves out what takes most of a minute. The model is as before afterwards.
    ValueError where it gives no scores.
    """
    began = time.perf_counter()
    with unharmed(model):
        known = dict(loss=loss, accumulate=accumulate, reference=reference, names=names)
        if isinstance(model, nn.Module):
            model.eval()
        subject = subject_of(model, ids, **known)
    checks = CHECKS | LEARNING if learn else CHECKS
    findings = tuple(
        examined(subject, organ, check, seed) for organ, check in checks.items()
    )
    count = sum(p.numel() for _, p in subject.named_parameters())
    return Report(findings, time.perf_counter() - began, count)


def examined(s: Subject, organ: str, check: Callable, seed: int) -> Finding:
    """One check; a model that fails in it is broken there."""
    with unharmed(s.model), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        try:
            return check(s)
        except Exception as error:
            said = " ".join(str(error).split())[:160]
            seen = f"the model fails ({type(error).__name__}: {said})"
            return Finding(organ, "broken", seen)


def assert_healthy(model: Callable, **options: Any) -> Report:
    """`checkup`, without learning unless asked; AssertionError, the report, for a finding.

    For tests: `def test_my_model(): assert_healthy(build_model())`.
    """
    report = checkup(model, **{"learn": False, **options})
    if not report.healthy:
        raise AssertionError(f"the model is not healthy\n{report}")
    return report
