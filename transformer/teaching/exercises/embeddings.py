"""Exercises of notebook 06: the nearest mean, and what training does to every row."""

import torch
import torch.nn.functional as F

from transformer.teaching.exercises import Exercise, normals


def nearest(vector: torch.Tensor, means: dict[str, torch.Tensor]) -> str:
    """The name of the nearest mean."""
    return min(means, key=lambda name: float((vector - means[name]).norm()))


def places() -> list[tuple[torch.Tensor, dict[str, torch.Tensor]]]:
    """Vectors beside means, one of which is long and so fits everything."""
    der, die, das, noise = normals(6, *[(8,)] * 4)
    means = {"der": der, "die": die, "das": 4 * das + der}
    return [(mean + 0.3 * noise, means) for mean in means.values()]


def steps(x: torch.Tensor, E: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Minus the gradient of the mean loss."""
    E = E.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(F.cross_entropy(x @ E.T, right), E)
    return -gradient


check_article = Exercise(
    nearest,
    places,
    "the length of the difference from each mean, and the name of the smallest; "
    "a large inner product may only come from a long mean",
)
check_pulls = Exercise(
    steps,
    lambda: [(*normals(n, (n, 5), (7, 5)), torch.arange(n) * 3 % 7) for n in (4, 6)],
    "each prediction moves row i by (q_i - p_i) x; the loss is a mean over predictions",
)
