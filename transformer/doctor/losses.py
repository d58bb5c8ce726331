"""What does a loss ask for? Read off its gradient, without a model."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.doctor.report import Finding, Verdict
from transformer.doctor.subject import Subject

EVEN = 1.2  # how often the weight of a token may be that of another


class Answers:
    """Stands in for a model: answers with given scores, and keeps what it has read."""

    def __init__(self, scores: Tensor):
        self.scores = scores

    def __call__(self, source: Tensor, target: Tensor, *rest: Any) -> Tensor:
        self.read = target
        return self.scores[:, : target.shape[1]]


@dataclass(frozen=True)
class Asked:
    """What a loss asks for at every place: weight (B, T) and distribution (B, T, V).

    read: the tokens read there; misfit: how far it is from any cross-entropy.
    """

    weight: Tensor
    wanted: Tensor
    read: Tensor
    misfit: float


def gradient_at(s: Subject, source: Tensor, target: Tensor, scores: Tensor) -> tuple:
    """The gradient of the loss by the scores, those scores' softmax, and what was read."""
    scores = scores.double().requires_grad_()
    answers = Answers(scores)
    s.own_loss(source, target, answers).backward()
    T = answers.read.shape[1]
    assert scores.grad is not None
    return scores.grad[:, :T], scores.softmax(dim=-1)[:, :T].detach(), answers.read


def asked(s: Subject, source: Tensor, target: Tensor) -> Asked:
    """A cross-entropy has the gradient weight * (p - wanted), so two p give both."""
    shape = (*target.shape, s.V)
    flat, p_flat, read = gradient_at(s, source, target, torch.zeros(shape))
    tilted, p_tilted, _ = gradient_at(s, source, target, torch.randn(shape))
    turn, step = tilted - flat, p_tilted - p_flat
    weight = (turn * step).sum(dim=-1) / step.square().sum(dim=-1)
    misfit = (turn - weight[..., None] * step).norm() / turn.norm().clamp_min(1e-12)
    wanted = p_flat - flat / weight[..., None].where(weight[..., None] > 1e-9, 1)
    return Asked(weight, wanted, read, misfit.item())


def padded_batch(s: Subject) -> tuple[Tensor, Tensor]:
    """Two pairs, of six and of two tokens, with begin, end and padding."""
    source, tokens = s.numbers(2, 6), s.varied(2, 6)
    target = F.pad(F.pad(tokens, (1, 0), value=s.begin), (0, 1), value=s.end)
    source[1, 2:] = s.pad
    target[1, 3], target[1, 4:] = s.end, s.pad
    return source, target


def complaints(s: Subject, a: Asked, target: Tensor) -> list[str]:
    """What a loss asks for that it should not."""
    T = a.read.shape[1]
    following = F.pad(target, (0, 1), value=s.pad)[:, 1 : T + 1]
    real = (following != s.pad) & (a.read != s.pad) & (a.read != s.end)
    weight, choice = a.weight[real], a.wanted.argmax(dim=-1)
    found = []
    if (choice == a.read)[real].double().mean() > 0.5:
        found.append("asks for the token just read: the target is not shifted")
    elif (choice == following)[real].double().mean() < 0.99:
        found.append("does not ask for the next token")
    if a.weight[~real].abs().max() > 1e-3 * weight.abs().max():
        found.append("counts padding")
    if weight.min() <= 0 or weight.max() / weight.min() > EVEN:
        found.append("weighs the tokens of short and long sentences differently")
    if a.misfit > 0.05:
        found.append("is no cross-entropy of scores: is a softmax taken twice?")
    return found


def extremes(s: Subject, source: Tensor, target: Tensor) -> list[str]:
    """Whether the loss of a very sure model, and of a batch without padding, is a number."""
    sure = 200 * F.one_hot(target.roll(-1, dims=1), s.V).float()
    found = []
    if not s.own_loss(source, target, Answers(sure)).isfinite():
        found.append("is infinite where the model is sure")
    if not s.own_loss(source[:1], target[:1], Answers(sure[:1])).isfinite():
        found.append("fails for a batch without padding")
    return found


def loss(s: Subject) -> Finding:
    """Every real place asks for its next token, with one weight, and padding for nothing."""
    if s.loss is None:
        return Finding("loss", "not examined", "no loss was given")
    source, target = padded_batch(s)
    try:
        found = extremes(s, source, target)
        a = asked(s, source, target)
    except (AttributeError, TypeError, RuntimeError) as error:
        said = " ".join(str(error).split())[:120]
        seen = f"the loss cannot be called as loss(model, source, target): {said}"
        return Finding("loss", "not examined", seen)
    found += complaints(s, a, target)
    seen = "the loss " + (" and ".join(found) or "asks for the next token, once each")
    figures = {"misfit": a.misfit, "wanted": a.wanted.amax(dim=-1).median().item()}
    table = a.wanted[0].tolist()
    return Finding("loss", "broken" if found else "healthy", seen, figures, table)


def accumulation(s: Subject) -> Finding:
    """The gradient of one batch, and of the same pairs as two batches of unequal size."""
    if s.accumulate is None or not s.named_parameters():
        return Finding("accumulation", "not examined", "no accumulate was given")
    s.mode(training=False)
    source, target = padded_batch(s)
    source, target = source[[0, 0, 0, 1]], target[[0, 0, 0, 1]]
    short = source[3:, :2], target[3:, :4]
    gradients = []
    for batches in ([(source, target)], [(source[:3], target[:3]), short]):
        for _, p in s.named_parameters():
            p.grad = None
        s.accumulate(s.model, batches)
        parts = [
            p.grad.flatten() for _, p in s.named_parameters() if p.grad is not None
        ]
        gradients.append(torch.cat(parts).double())
    whole, summed = gradients
    gap = ((whole - summed).norm() / whole.norm()).item()
    seen = f"the gradients of one batch and of two parts differ by {gap:.1e} of their length"
    verdict: Verdict = "broken" if gap > 0.01 else "healthy"
    return Finding("accumulation", verdict, seen, {"gap": gap})
