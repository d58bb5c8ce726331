"""Is a table of sines and cosines the one of the paper?"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from transformer.doctor.report import Finding
from transformer.doctor.subject import Subject

APART = (
    0.01  # the most that an entry may be off: more than fp16 rounds, at early places
)
PLACES = 32  # rows that are compared


def sines(s: Subject) -> Finding:
    """Every table whose first row is that of position 0: zeros for sines, ones for cosines."""
    found = list(tables(s.model)) if isinstance(s.model, nn.Module) else []
    if not found:
        return Finding("sines", "not examined", "the model keeps no table of sines")
    for name, table in found:
        gap = min(distance(table, frequencies) for frequencies in spreads(table))
        if gap > APART:
            seen = f"{name} is a table of sines, and {gap:.2f} off the paper's"
            return Finding("sines", "look", seen, {"gap": gap})
    names = ", ".join(name for name, _ in found)
    return Finding("sines", "healthy", f"{names} has the paper's sines", {"gap": 0.0})


def tables(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Names and (positions, d) of what a model keeps, in whatever way, that looks like sines."""
    kept = dict(model.named_buffers()) | dict(model.named_parameters())
    for prefix, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                kept[f"{prefix}.{name}".lstrip(".")] = value
    for name, value in kept.items():
        table = value.detach().squeeze().float().cpu()
        if table.dim() == 2 and len(table) >= 4 and table.shape[1] % 2 == 0:
            first = table[0]
            ones = (first == 1).sum().item()
            if ones == len(first) // 2 == (first == 0).sum().item():
                if table.abs().max() <= 1 + APART:
                    yield name, table[:PLACES]


def spreads(table: Tensor) -> list[Tensor]:
    """The frequencies (d / 2) of Section 3.5, and those of the authors' own program
    (tensor2tensor), which reach the longest wave one step earlier."""
    half = table.shape[1] // 2
    steps = torch.arange(half).double()
    return [10_000 ** -(steps / n) for n in (half, max(half - 1, 1))]


def distance(table: Tensor, frequencies: Tensor) -> float:
    """How far the worst column of a right table is from the nearest of this one's; columns
    may stand in any order."""
    angles = torch.arange(len(table)).double()[:, None] * frequencies
    right = torch.cat([angles.sin(), angles.cos()], dim=1).float()  # (positions, d)
    gaps = (right[:, :, None] - table[:, None, :]).abs().amax(dim=0)
    return gaps.amin(dim=1).max().item()
