"""The two boxes of a layer, before chapters 4 and 5 open them: chapter 0's, called as in chapter 3."""

import torch
from torch import Tensor

from transformer import first_transformer
from transformer.first_transformer import FeedForward

__all__ = ["Attention", "FeedForward"]


class Attention(first_transformer.Attention):
    """Chapter 0's attention, called with query, key and value; key and value are one tensor.

    query (B, T, d_model), key and value (B, S, d_model), mask (T, S) or None. The weights (B, h, T,
    S) are kept in `weights`.
    """

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        assert key is value
        if mask is None:
            mask = query.new_ones(query.shape[1], key.shape[1], dtype=torch.bool)
        return super().forward(query, key, mask)
