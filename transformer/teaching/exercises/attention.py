"""Exercises of notebook 04: heads that share their keys and values."""

import torch

from transformer.attention import MultiHeadAttention
from transformer.teaching.exercises import Exercise, normal


def heads(x, W_Q, W_K, W_V, W_O, h):
    module = MultiHeadAttention(x.shape[-1], h)
    matrices = (W_Q, W_K, W_V, W_O)
    module.load_state_dict(
        {f"W_{name}.weight": W.T for name, W in zip("QKVO", matrices)}
    )
    with torch.no_grad():
        return module(x, x, x)


def shared(x, W_Q, W_K, W_V, W_O, h):
    return heads(x, W_Q, W_K.repeat(1, h), W_V.repeat(1, h), W_O, h)


def shared_matrices(h):
    W_Q, W_O = normal(h, 2, 12, 12)
    W_K, W_V = normal(h + 10, 2, 12, 12 // h)
    return normal(4, 2, 5, 12), W_Q, W_K, W_V, W_O, h


check_shared_keys = Exercise(
    shared,
    lambda: [shared_matrices(h) for h in (1, 3, 4)],
    "only q is cut into heads; every head looks at the same k, and blends the same v",
)
