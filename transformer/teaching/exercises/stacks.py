"""What the exercises of notebook 03 are checked with."""

import torch
import torch.nn.functional as F

from transformer.teaching.exercises import Exercise, normals


def writes(x, sublayers):
    """What each sub-layer adds to the lanes of a pre-norm stack."""
    added = []
    for sublayer in sublayers:
        before = x
        x = x + sublayer(F.layer_norm(x, x.shape[-1:]))
        added.append(x - before)
    return added


def some_stacks():
    (x,) = normals(3, (2, 3, 6))
    sublayers = [torch.sin, lambda x: 2 * x.flip(-1), torch.relu]
    return [(x, sublayers[:n]) for n in (0, 1, 2, 3)]


def layer_norm_gradient(x, gradient, eps=1e-5):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(F.layer_norm(x, x.shape[-1:], eps=eps), x, gradient)[0]


def some_gradients():
    x, gradient = normals(3, (2, 3, 6), (2, 3, 6))
    return [(x, gradient), (5 + 3 * x, gradient)]


check_writes = Exercise(
    writes,
    some_stacks,
    "a sub-layer reads the lanes as they are after all the additions before it, normalised",
)
check_layer_norm_gradient = Exercise(
    layer_norm_gradient,
    some_gradients,
    "a change that shifts or stretches the whole vector leaves the output as it is",
)
