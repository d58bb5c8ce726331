"""Edits of many sentences at once: in each of them its own word is turned, or pasted into."""

import torch
from torch import Tensor

from transformer.models.recording import Change


def turned(head: int, rows: Tensor, columns: Tensor) -> Change:
    """An edit of "...weights": in sentence b, word rows[b] of this head looks at columns[b].

    rows: (B,); columns: (B, S), weights that sum to 1.
    """

    def change(weights):  # (B, h, T, S)
        weights[torch.arange(len(rows)), head, rows] = columns
        return weights

    return change


def paste(heads: list[int], rows: Tensor, donor: Tensor) -> Change:
    """An edit of "...heads": in row rows[b] these heads put out what they do in donor.

    rows: (B,), one for each sentence; donor: (B, h, T, d_v), what another run put out.
    """

    def change(outputs):  # (B, h, T, d_v)
        sentences = torch.arange(len(rows))
        for head in heads:
            outputs[sentences, head, rows] = donor[sentences, head, rows]
        return outputs

    return change
