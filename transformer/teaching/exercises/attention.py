"""Exercises of notebook 04: attention, softmax, a mask, heads."""

import torch

from transformer.attention import (
    MultiHeadAttention,
    causal_mask,
    padding_mask,
)
from transformer.teaching.exercises import Exercise, normal


def window(tokens, r, pad_id):
    T = tokens.shape[1]
    near = causal_mask(T) & ~causal_mask(T).tril(-r)
    return padding_mask(tokens, pad_id) & near


check_window_mask = Exercise(
    window,
    lambda: [
        (torch.tensor([[5, 8, 2, 7, 0], [4, 9, 1, 3, 2]]), 5 - p, p) for p in (0, 2)
    ],
    "with r = 3 the position 4 sees the positions 2, 3 and 4; the shape is (B, 1, T, T)",
)


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
