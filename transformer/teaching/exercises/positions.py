"""Exercise of notebook 07: the key that fits a query some words back."""

import torch

from transformer.positions import frequencies
from transformer.teaching.exercises import Exercise, normals


def key_for(q: torch.Tensor, back: int) -> torch.Tensor:
    """A query whose pairs, as complex numbers, are turned by `back` positions."""
    pairs = torch.view_as_complex(q.unflatten(0, (-1, 2)).contiguous())
    angles = back * frequencies(len(q)).to(q)
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flatten()


check_key_for = Exercise(
    key_for,
    lambda: [(*normals(1, (8,)), 3), (*normals(2, (16,)), 1), (*normals(3, (4,)), 0)],
    "the query will be turned by `back` positions more than the key: let the key have them from "
    "the start (and mind which of two numbers is the sine's: in `rotate` the cosine's comes first)",
)
