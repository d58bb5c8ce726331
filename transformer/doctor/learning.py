"""What a model learns in a minute: a batch by heart, to copy, to write backwards."""

import math
import time
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.doctor.report import Finding, Verdict
from transformer.doctor.subject import Subject, cross_entropy

RATE, WIDTH = 0.003, 64  # the peak, for a model that is so wide
KNOWN = 0.8  # the least share of one batch
RIGHT, TOLD, USED = 0.3, 0.9, 0.2  # shares of numbers and of tokens, and nats
STEPS, SECONDS = 400, 13.0  # the most for one task


def pairs(s: Subject, count: int, turned: Callable, most: int = 6) -> tuple:
    """Numbers of three to `most` tokens, and what `turned` makes of each, with marks."""
    source = torch.full((count, most), s.pad)
    target = torch.full((count, most + 2), s.pad)
    for i, length in enumerate(torch.randint(3, most + 1, (count,)).tolist()):
        tokens = s.numbers(1, length)[0]
        answer = turned(tokens)
        source[i, :length] = tokens
        target[i, 0], target[i, 1 + length] = s.begin, s.end
        target[i, 1 : 1 + length] = answer
    return source, target


def peak_rate(s: Subject) -> float:
    """A learning rate for the width of the model's matrices."""
    widths = sorted(p.shape[-1] for _, p in s.named_parameters() if p.dim() > 1)
    return RATE * min(1.0, WIDTH / widths[len(widths) // 2])


def training(s: Subject, batch: Callable, steps: int) -> Iterator[float]:
    """Train on batch() for so many steps, or until time is up; yield the losses."""
    parameters = [p for _, p in s.named_parameters()]
    optimizer = torch.optim.Adam(parameters, betas=(0.9, 0.98))
    began, rate = time.process_time(), peak_rate(s)
    for step in range(1, steps + 1):
        s.mode(training=True)
        optimizer.param_groups[0]["lr"] = rate * min(step / 50, (50 / step) ** 0.5)
        loss = s.own_loss(*batch())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        yield loss.item()
        if time.process_time() - began > SECONDS:
            return


@torch.no_grad()
def write(s: Subject, source: Tensor, longest: int) -> Tensor:
    """What the model writes by itself: (B, longest + 1), the begin mark first."""
    s.mode(training=False)
    target = torch.full_like(source[:, :1], s.begin)
    for _ in range(longest):
        best = s.logits(source, target)[:, -1:].argmax(dim=-1)
        target = torch.cat([target, best], dim=1)
    return target


def share_right(s: Subject, source: Tensor, target: Tensor) -> float:
    """The share of targets that the model writes without a mistake."""
    written = write(s, source, target.shape[1] - 1)
    right = (written == target) | (target == s.pad)
    return right.all(dim=1).float().mean().item()


@torch.no_grad()
def use(s: Subject, source: Tensor, target: Tensor) -> float:
    """By how much the loss rises when each target gets another's source, in nats."""
    s.mode(training=False)
    read = target[:, :-1]
    own, other = (s.logits(x, read) for x in (source, source.roll(1, dims=0)))
    losses = [cross_entropy(x, target, s.pad).item() for x in (own, other)]
    return losses[1] - losses[0]


def floor(s: Subject) -> Finding:
    """Targets that nobody can know: a loss below their floor is not earned."""
    if not s.named_parameters():
        return Finding("floor", "not examined", "the model shows no parameters")

    def chance() -> tuple[Tensor, Tensor]:
        target = F.pad(s.numbers(32, 6), (1, 0), value=s.begin)
        return s.numbers(32, 6), F.pad(target, (0, 1), value=s.end)

    losses = list(training(s, chance, 120))
    least = 6 / 7 * math.log(len(s.symbols))  # the end mark is certain
    last = sum(losses[-20:]) / len(losses[-20:])
    verdict: Verdict = "broken" if last < 0.9 * least else "healthy"
    seen = (
        f"on pure chance the loss is {last:.2f}, and no honest one is below {least:.2f}"
    )
    return Finding("floor", verdict, seen, {"loss": last, "floor": least})


def one_batch(s: Subject) -> Finding:
    """Eight pairs of chance, again and again, until they are known by heart."""
    if not s.named_parameters():
        return Finding("one batch", "not examined", "the model shows no parameters")
    source, target = pairs(s, 8, lambda tokens: s.numbers(1, len(tokens))[0])
    known, steps = 0.0, 0
    for steps, _ in enumerate(training(s, lambda: (source, target), 200), 1):
        if steps % 20 == 0:
            s.mode(training=False)
            with torch.no_grad():
                guess = s.logits(source, target[:, :-1]).argmax(dim=-1)
            real = target[:, 1:] != s.pad
            known = (guess == target[:, 1:])[real].float().mean().item()
            if known == 1.0:
                break
    seen = f"after {steps} steps on one batch {known:.0%} of its tokens are known"
    verdict: Verdict = "healthy" if known > KNOWN else "broken"
    return Finding("one batch", verdict, seen, {"known": known, "steps": steps})


@torch.no_grad()
def share_told(s: Subject, source: Tensor, target: Tensor) -> float:
    """The share of tokens that the model names where it is told the true ones before."""
    s.mode(training=False)
    guess = s.logits(source, target[:, :-1]).argmax(dim=-1)
    return (guess == target[:, 1:])[target[:, 1:] != s.pad].float().mean().item()


def task(s: Subject, organ: str, turned: Callable) -> Finding:
    """Train on a task, then write new numbers: how many are right, is the source used?"""
    if not s.named_parameters():
        return Finding(organ, "not examined", "the model shows no parameters")
    test, right, steps = pairs(s, 100, turned), 0.0, 0
    for steps, loss in enumerate(training(s, lambda: pairs(s, 64, turned), STEPS), 1):
        if steps % 50 == 0 and loss < 0.7:
            right = share_right(s, *test)
            if right > 0.9:
                break
    figures = {"right": max(right, share_right(s, *test)), "told": share_told(s, *test)}
    figures |= {"use": use(s, *test), "loss": loss, "steps": steps}
    seen = (
        f"after {steps} steps {figures['right']:.0%} of new numbers are right (loss "
        f"{loss:.2f}; with other sources {figures['use']:+.2f})"
    )
    return Finding(organ, judged(figures), seen, figures)


def judged(figures: dict[str, float]) -> Verdict:
    """A model that is still learning, and uses its source, is not ill but slow."""
    if figures["right"] > RIGHT:
        return "healthy"
    cheats = figures["told"] > TOLD  # knows all when told, and writes nothing right
    return "broken" if cheats or figures["use"] < USED else "not examined"


def copying(s: Subject) -> Finding:
    """Learn to write a number once more."""
    return task(s, "copying", lambda tokens: tokens)


def reversing(s: Subject) -> Finding:
    """Learn to write a number backwards, as chapter 00 does."""
    return task(s, "reversing", lambda tokens: tokens.flip(0))
