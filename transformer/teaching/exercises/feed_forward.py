"""Exercise of notebook 05: a hat of kinks."""

import torch
import torch.nn.functional as F

from transformer.teaching.exercises import Exercise

check_hat = Exercise(
    lambda x, relu: relu(x + 1) - 2 * relu(x) + relu(x - 1),
    lambda: [
        (torch.linspace(-7, 3, 41), kink) for kink in (torch.relu, F.softplus)
    ],  # no abs
    "a weighted sum of three units: each adds a kink; the slopes have to be 0, 1, -1 and 0 in turn",
)
