"""Scores, first loss, gradients, modes, precision: what a plumber would look at."""

import math
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.doctor.report import Finding, Verdict, grade
from transformer.doctor.subject import Subject, change, cross_entropy

HIGH, TOO_HIGH = 2.0, 5.0  # nats that a first loss may lie above a guess
SAME, LEAK = 1e-5, 1e-3


def output(s: Subject) -> Finding:
    """Scores are finite, of both signs, and no probabilities."""
    scores = s.scores(*s.sentences(4))
    totals = scores.sum(dim=-1)
    negative = (scores < 0).float().mean().item()
    problem = ""
    if not scores.isfinite().all():
        problem = "some scores are no numbers"
    elif not negative and (totals - 1).abs().max() < 1e-3:
        problem = "the scores are probabilities, and the loss takes a softmax again"
    elif not negative:
        problem = "no score is below zero: something cuts them off"
    seen = problem or f"scores are finite, and {negative:.0%} of them negative"
    figures = {"negative": negative}
    return Finding("output", "broken" if problem else "healthy", seen, figures)


def start(s: Subject) -> Finding:
    """The first loss, against that of a guess. A new model may repeat what it has read
    (08 says why), so this token is left out.
    """
    source, target = s.sentences(16)
    scores, read = s.scores(source, target[:, :-1]), target[:, :-1, None]
    loss = cross_entropy(scores.scatter(-1, read, -math.inf), target, s.pad).item()
    guess = math.log(s.V - 1)
    above = loss - guess
    verdict = grade(above, HIGH, TOO_HIGH) if math.isfinite(above) else "broken"
    seen = f"the first loss is {loss:.2f}, and a guess costs {guess:.2f}"
    return Finding("start", verdict, seen, {"loss": loss, "above": above})


def whole(s: Subject, count: int = 8) -> tuple[Tensor, Tensor]:
    """Sources, and whole targets with begin and end."""
    source, target = s.sentences(count)
    return source, F.pad(target, (0, 1), value=s.end)


def gradients(s: Subject) -> Finding:
    """After one backward pass: which parameters got nothing, and which are unknown?"""
    s.mode(training=False)
    named = s.named_parameters()
    if not named:
        return Finding("gradients", "not examined", "the model shows no parameters")
    for _, p in named:
        p.grad = None
    loss = s.own_loss(*whole(s))
    loss.backward()
    empty = [n for n, p in named if p.grad is None or not p.grad.any()]
    strangers = leaves(loss) - {id(p) for _, p in named}
    norms = [
        p.grad.norm().item() for _, p in named if p.dim() > 1 and p.grad is not None
    ]
    seen = f"all {len(named)} parameters get a gradient"
    if empty:
        seen = f"{len(empty)} parameters get no gradient: {', '.join(empty[:3])}"
    if strangers:
        seen = f"{len(strangers)} tensors are trained by nobody: not in parameters()"
    figures = {"empty": len(empty), "strangers": len(strangers)}
    if norms:
        figures["largest"], figures["smallest"] = max(norms), min(norms)
    ill = empty or strangers
    return Finding("gradients", "broken" if ill else "healthy", seen, figures)


def leaves(loss: Tensor) -> set[int]:
    """The ids of the tensors at which the graph of a loss ends."""
    waiting, known, found = [loss.grad_fn], set(), set()
    while waiting:
        node = waiting.pop()
        if node is None or node in known:
            continue
        known.add(node)
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        waiting += [before for before, _ in node.next_functions]
    return found


def sharing(s: Subject) -> Finding:
    """Is one layer used at two places, or are two layers copies of each other?"""
    if not isinstance(s.model, nn.Module):
        return Finding("sharing", "not examined", "the model shows no modules")
    places, values = defaultdict(list), defaultdict(list)
    for name, module in s.model.named_modules(remove_duplicate=False):
        weight = getattr(module, "weight", None)
        if isinstance(module, nn.Embedding) or not isinstance(weight, nn.Parameter):
            continue
        if weight.dim() > 1 and s.V not in weight.shape and weight.std() > 0:
            places[id(weight)].append(name)
            values[weight.detach().flatten()[:64].numpy().tobytes()].append(id(weight))
    shared = [names for names in places.values() if len(names) > 1]
    copies = [same for same in values.values() if len(set(same)) > 1]
    seen = "no matrix stands at two places, and none begins as a copy"
    if copies:
        seen = f"{len(copies)} matrices begin equal to another one"
    if shared:
        seen = f"{shared[0][0]} is also {shared[0][1]}, and {len(shared) - 1} more so"
    figures = {"shared": len(shared), "copies": len(copies)}
    return Finding("sharing", "look" if shared or copies else "healthy", seen, figures)


def modes(s: Subject) -> Finding:
    """Two passes agree in evaluation; in training dropout, if there is one, is seen."""
    source, target = s.sentences(2)
    first = s.scores(source, target)
    with torch.no_grad():
        torch.manual_seed(1)
        twice = change(s.logits(source, target).float(), first)
    trained = change(s.scores(source, target, training=True), first)
    parts = s.model.modules() if isinstance(s.model, nn.Module) else ()
    dropouts = any(isinstance(m, nn.Dropout) and m.p > 0 for m in parts)
    verdict: Verdict = "healthy"
    seen = "two passes agree in evaluation"
    if dropouts and trained < SAME:
        verdict, seen = "look", "dropout is there, and training does not show it"
    if twice > SAME:
        verdict, seen = "broken", f"two passes in evaluation differ by {twice:.1e}"
    return Finding("modes", verdict, seen, {"twice": twice, "training": trained})


def empty(s: Subject) -> Finding:
    """One source of a batch is all padding: the gradient stays a number, and so do the
    scores of the others. (torch's fast path gives NaN to that sentence alone.)
    """
    s.mode(training=False)
    source, target = whole(s, 2)
    before = s.scores(source, target[:, :-1])
    source[1] = s.pad
    try:
        after = s.scores(source, target[:, :-1])
    except (ValueError, RuntimeError):
        return Finding("empty", "healthy", "a source of padding alone is refused")
    own = int((~after[1].isfinite()).any())
    moved = change(after[:1], before[:1])
    s.own_loss(source, target).backward()
    gradients = [p.grad for _, p in s.named_parameters() if p.grad is not None]
    bad = sum(not gradient.isfinite().all() for gradient in gradients)
    seen = "a source of padding alone spoils nothing" + " but its own scores" * own
    if moved > LEAK:
        seen = (
            "a source of padding alone changes another sentence's scores by "
            f"{moved:.1e} of their spread"
        )
    if bad:
        seen = f"a source of padding alone makes {bad} gradients NaN"
    verdict: Verdict = "broken" if bad else grade(moved, LEAK, 10 * LEAK)
    return Finding("empty", verdict, seen, {"gradients": bad, "moved": moved})


def half(s: Subject) -> Finding:
    """Under autocast, in both kinds of half precision, scores stay near those in fp32."""
    source, target = s.sentences(2)
    source[1, -2:] = s.pad  # so that something is masked
    before, figures = s.scores(source, target), {}
    for name, kind in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        try:
            with torch.autocast("cpu", dtype=kind):
                after = s.logits(source, target).detach().float()
            figures[name] = change(after, before)
        except RuntimeError as error:
            seen = f"{name}: {' '.join(str(error).split())[:120]}"
            verdict: Verdict = "broken" if "overflow" in seen else "not examined"
            return Finding("half", verdict, seen, figures)
    worst = max(figures.values())
    seen = f"half precision changes scores by {worst:.1e} of their spread"
    return Finding("half", grade(worst, 1.0, 5.0), seen, figures)
