"""What a linear probe reads off the vectors of an encoder, layer by layer (19)."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from transformer.corpora import Example
from transformer.models import gold
from transformer.models.recording import cache

SENTENCES = 1500  # with "its", to learn from


@torch.no_grad()
def encoder_layers(model: nn.Module, source: Tensor) -> Tensor:
    """Source ids (B, S) -> the residual stream below and above each layer, (N + 1, B, S, d_model)."""
    below, above = "encoder.0.self_attention.before", "encoder.*.feed_forward.after"
    with cache(model, below, above) as seen:
        model.encode(source)  # type: ignore[operator]
    return torch.stack(list(seen.values()))


def linear_probe(x: Tensor, labels: Tensor, unseen: Tensor) -> Tensor:
    """Labels for unseen vectors (m, d), from x (n, d) with labels (n,) of 0, 1, 2, ...

    Linear discriminant analysis: the label whose mean is nearest, measured in the spread that
    vectors have within a label, and corrected for how frequent it is.
    """
    counts = torch.bincount(labels).clamp(min=1)
    sums = torch.zeros(len(counts), x.shape[1]).index_add(0, labels, x)
    means = sums / counts[:, None]
    within = x - means[labels]
    spread = within.T @ within / len(x)
    spread += 1e-3 * spread.diagonal().mean() * torch.eye(len(spread))
    directions = torch.linalg.solve(spread, means.T)  # (d, labels)
    offsets = (counts / len(x)).log() - (means.T * directions).sum(dim=0) / 2
    return (unseen @ directions + offsets).argmax(dim=1)


def labelled(model, tokenizer, examples: Sequence[Example], genders: dict) -> dict:
    """`gold.labelled_vectors` of the sentences with "its", by the model's layers."""
    some = [example for example in examples if " its " in example.source][:SENTENCES]
    layers = partial(encoder_layers, model)
    return gold.labelled_vectors(layers, tokenizer, some, genders)
