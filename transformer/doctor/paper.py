"""The same weights in a reference: where do the two part?"""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer.doctor.report import Finding, Verdict
from transformer.doctor.subject import Subject, change

PARTED = 1e-3


def paper(s: Subject) -> Finding:
    """Give the reference the model's weights: scores are equal, or a first part differs."""
    if s.reference is None or not isinstance(s.model, nn.Module):
        return Finding("paper", "not examined", "no reference was given")
    twin = copy.deepcopy(s.reference).eval()
    names = s.names or {}
    state = {names.get(n, n): v for n, v in s.model.state_dict().items()}
    try:
        twin.load_state_dict(state)
    except RuntimeError as error:
        seen = " ".join(str(error).split())[:200]
        return Finding(
            "paper", "broken", f"other parameters than the reference: {seen}"
        )
    source, target = s.sentences(2)
    source[1, -2:] = s.pad
    ours, theirs = s.scores(source, target), twin(source, target).detach()
    gap = change(ours, theirs)
    seen = f"scores are those of the reference, but for {gap:.1e} of their spread"
    if gap > PARTED:
        seen = f"scores differ by {gap:.1e} of their spread, {first_parting(s.model, twin, (source, target), names)}"
    verdict: Verdict = "broken" if gap > PARTED else "healthy"
    return Finding("paper", verdict, seen, {"gap": gap})


def first_parting(
    model: nn.Module, twin: nn.Module, batch: tuple[Tensor, Tensor], names: dict
) -> str:
    """The first part, in the order of computing, that gives something else."""
    ours, theirs = (passing(module, batch) for module in (model, twin))
    last = "the embeddings"
    names = {module_of(name): module_of(own) for own, name in names.items()}
    for name, (given, result) in theirs.items():
        own = names.get(name, name)
        if own not in ours:
            continue
        our_given, our_result = ours[own]
        if our_given.shape != given.shape or change(our_given, given) > PARTED:
            return f"first between {last} and {own}"
        if our_result.shape != result.shape or change(our_result, result) > PARTED:
            return f"first in {own}"
        last = own
    return "after all parts"


def module_of(parameter: str) -> str:
    """The name of the module that has a parameter."""
    return parameter.rpartition(".")[0]


@torch.no_grad()
def passing(module: nn.Module, batch: tuple) -> dict[str, tuple[Tensor, Tensor]]:
    """What goes into each leaf module at its last call, and what comes out, in order."""
    kept: dict[str, tuple[Tensor, Tensor]] = {}

    def keeper(name: str) -> Callable:
        def keep(part: nn.Module, given: tuple, result: Tensor) -> None:
            kept.pop(name, None)
            kept[name] = given[0].float(), result.float()

        return keep

    leaves = [(n, m) for n, m in module.named_modules() if not list(m.children())]
    hooks = [m.register_forward_hook(keeper(n)) for n, m in leaves]
    module.eval()(*batch)
    for hook in hooks:
        hook.remove()
    return kept
