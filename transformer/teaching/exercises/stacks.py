"""What the exercise of notebook 03 is checked with."""

import torch

from transformer.teaching.exercises import Exercise, blank, normals


def half_lanes(x, y):
    """A lane that carries the signal only, and one that carries the gradient only."""
    return x.detach() + y, x - x.detach() + y


def with_gradients(lanes, x, y):
    """The values of both lanes, and the gradients of both at x and at y."""
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    signal, gradient = lanes(x, 2 * y)
    found = [signal.detach(), gradient.detach()]
    for lane in (signal, gradient):
        of_x, of_y = torch.autograd.grad(
            lane.sin().sum(), (x, y), retain_graph=True, allow_unused=True
        )
        found += [torch.zeros_like(x) if of_x is None else of_x, of_y]
    return found


class OfLanes(Exercise):
    """An exercise in which the gradients are compared, too."""

    def verdict(self, yours):
        if blank(yours):
            return "not tried yet"
        return super().verdict(lambda x, y: with_gradients(yours, x, y))


def some_vectors():
    return [tuple(normals(seed, (2, 3, 6), (2, 3, 6))) for seed in (3, 4)]


check_half_lanes = OfLanes(
    lambda x, y: with_gradients(half_lanes, x, y),
    some_vectors,
    "x - x.detach() is zero, and passes a gradient",
)
