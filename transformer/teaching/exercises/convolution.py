"""What the exercises of notebook 02 are checked with."""

import torch
import torch.nn.functional as F

from transformer.convolution import glu
from transformer.teaching.exercises import Exercise, normals


def gated_convolution(x, W, b):
    padded = F.pad(x, (0, 0, W.shape[-1] - 1, 0))
    return glu(F.conv1d(padded.T, W, b).T)


def dilated_convolution(x, W, gap):
    padded = F.pad(x, (0, 0, gap * (W.shape[-1] - 1), 0))
    return F.conv1d(padded.T, W, dilation=gap).T


def receptive_field(windows, gaps):
    """Counted: the last output's gradient is zero at positions before those that it sees."""
    x = torch.ones(1, 1, 200, requires_grad=True)
    y = x
    for k, gap in zip(windows, gaps):
        y = F.conv1d(F.pad(y, (gap * (k - 1), 0)), torch.ones(1, 1, k), dilation=gap)
    seen = torch.autograd.grad(y[0, 0, -1], x)[0][0, 0].nonzero()
    return x.shape[-1] - int(seen.min())


check_gated_convolution = Exercise(
    gated_convolution,
    lambda: [normals(2, (6, 3), (8, 3, k), (8,)) for k in (1, 3)],
    "k - 1 zeros before the sentence; the first half of the outputs times the sigmoid of the rest",
)
check_dilated_convolution = Exercise(
    dilated_convolution,
    lambda: [(*normals(2, (9, 3), (4, 3, 3)), gap) for gap in (1, 2, 4)],
    "the window reaches gap * (k - 1) places back, and its last weight belongs to x_t",
)
check_receptive_field = Exercise(
    receptive_field,
    lambda: [([3], [1]), ([3, 3, 3], [1, 1, 1]), ([3, 2, 5], [1, 4, 9])],
    "each layer reaches k - 1 gaps further back than the one below",
)
