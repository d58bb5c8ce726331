"""What the exercises of notebook 03 are checked with."""

import torch
import torch.nn.functional as F

from transformer.stacks import layer_norm
from transformer.teaching.exercises import Exercise, normals


def some_norms():
    x, gain, bias = normals(3, (2, 3, 6), (6,), (6,))
    return [
        (x, gain, bias),
        (0.01 * x, gain, bias),
        (torch.full((1, 1, 6), 7.0), gain, bias),
    ]


def residual_stack(x, sublayers, norm_first):
    for sublayer in sublayers:
        norm = F.layer_norm(x, x.shape[-1:])
        x = (
            x + sublayer(norm)
            if norm_first
            else F.layer_norm(x + sublayer(x), x.shape[-1:])
        )
    return F.layer_norm(x, x.shape[-1:]) if norm_first else x


def some_stacks():
    (x,) = normals(3, (2, 3, 6))
    sublayers = [torch.sin, lambda x: 2 * x.flip(-1), torch.relu]
    return [(x, sublayers[:n], n == 2) for n in (0, 1, 2, 3)]


def layer_norm_gradient(x, gradient, eps=1e-5):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(F.layer_norm(x, x.shape[-1:], eps=eps), x, gradient)[0]


def some_gradients():
    x, gradient = normals(3, (2, 3, 6), (2, 3, 6))
    return [(x, gradient), (5 + 3 * x, gradient)]


check_layer_norm = Exercise(
    layer_norm,
    some_norms,
    "the variance is the mean of d_model squares, and eps stands inside the root",
)
check_residual_stack = Exercise(
    residual_stack,
    some_stacks,
    "post-norm normalises each sum, pre-norm each sub-layer's input and, once, the top",
)
check_layer_norm_gradient = Exercise(
    layer_norm_gradient,
    some_gradients,
    "a change that shifts or stretches the whole vector leaves the output as it is",
)
