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


check_several_heads = Exercise(
    heads,
    lambda: [(normal(4, 2, 5, 12), *normal(h, 4, 12, 12), h) for h in (1, 3, 4)],
    "head i has the columns from i d_k to (i + 1) d_k of q, k and v, and its result has the same "
    "columns of what W_O multiplies",
)
