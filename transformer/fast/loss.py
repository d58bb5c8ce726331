"""The loss of notebook 13 as a model calls it: from logits, or without the table of logits."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from transformer.fast.projected import projected_loss
from transformer.regularization import label_smoothing_loss


@dataclass(frozen=True)
class SmoothedLoss:
    """`label_smoothing_loss` of notebook 13, summed over the real tokens, in nats.

    A model hands its loss what it needs of it: output maps states (B, T, d_model) to logits
    (B, T, V); x: the states; gold: (B, T) ids. So another loss can take its place.
    """

    epsilon: float = 0.1
    pad_id: int = 0

    def __call__(self, output: Callable, x: torch.Tensor, gold: torch.Tensor):
        logits = output(x).to(x.dtype)  # a product in bf16, the loss in fp32
        return label_smoothing_loss(logits, gold, self.epsilon, self.pad_id, "sum")


@dataclass(frozen=True)
class ChunkedLoss:
    """`SmoothedLoss`, some rows of logits at a time."""

    epsilon: float = 0.1
    pad_id: int = 0

    def __call__(self, output, x, gold):
        E, bias = output.weight, getattr(output, "bias", None)
        if bias is not None:  # one more column of the matrix, with ones to multiply
            E, x = torch.cat([E, bias[:, None]], dim=1), F.pad(x, (0, 1), value=1.0)
        return projected_loss(x, E, gold, self.epsilon, self.pad_id)
