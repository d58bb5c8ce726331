"""Exercises of notebook 11: memory in training, where the square overtakes the rest."""

import math

from transformer.fast.model import TransformerConfig
from transformer.hardware import attention_flops
from transformer.teaching.exercises import Exercise


def crossing(d_model: int, d_ff: int) -> float:
    """By the notebook's own count of FLOPs, at two lengths."""
    c = TransformerConfig(9, d_model=d_model, d_ff=d_ff, h=2)
    linear = (
        2 * attention_flops(c, 1, 1) - attention_flops(c, 2, 2) / 2 + 4 * d_model * d_ff
    )
    square = attention_flops(c, 2, 2) / 2 - attention_flops(c, 1, 1)
    return linear / square


check_training_bytes = Exercise(
    lambda parameters, *activations: 16 * parameters + math.prod(activations),
    lambda: [(10, 3, 2, 5, 4), (7, 100, 6, 12, 2)],
    "four numbers a parameter: the weight, its gradient and Adam's two averages",
)

check_crossing = Exercise(
    crossing,
    lambda: [(512, 2048), (64, 128)],
    "scores and mixtures take 4 n^2 d_model FLOPs; write down the projections and the network",
)
