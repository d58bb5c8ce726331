"""Transformers that differ in how they know where a token stands: for Table 2 in small, where they
separate what rotary positions may owe their scores to.

Rotary positions (notebook 07) change three things at once: nothing is added to the embeddings, each
layer hears of the places anew, and scores depend on distances alone. Each kind here has some of
that:

- none: nothing is added, and no layer hears of places (the decoder's mask alone is left)
- shifted: sines are added, but in training each sentence begins anywhere (Kiyono et al., 2021), so
  that only distances can be relied on
- both: sines are added, and queries and keys are turned as well
- bias: nothing is added; each head of self-attention learns a number for each distance, which is
  added to its scores (Shaw et al., 2018; Raffel et al., 2020)
"""

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from transformer.attention import masked_softmax
from transformer.fast import FAST
from transformer.fast.attention import scaled_dot_product
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.positions import SinusoidalPositions
from transformer.models.families import register

SHIFT, REACH = (
    100,
    16,
)  # latest place of a sentence's beginning; distances told apart, in tokens


class NoPositions(nn.Module):
    """Adds nothing, with the arguments of `SinusoidalPositions`."""

    def __init__(self, max_positions: int, d_model: int):
        super().__init__()

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        return x


class ShiftedPositions(SinusoidalPositions):
    """Sines from a random place on for each sentence of a batch in training, from 0 on otherwise.

    x (B, T, d_model) -> the same shape.
    """

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        if not self.training:
            return super().forward(x, start)
        B, T, _ = x.shape
        most = min(SHIFT, len(self.table) - T)
        begin = torch.randint(most + 1, (B, 1), device=x.device)
        return x + self.table[begin + torch.arange(T, device=x.device)]


class RelativeBias(nn.Module):
    """q . k / sqrt(d_k) + b[head, distance]: q (B, h, T, d_k), k (B, h, S, d_k) -> (B, h, T, S).

    The queries are those of the last T of S positions. Distances of `REACH` and more share a number
    a side, so that none is new in a long sentence.
    """

    def __init__(self, h: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(h, 2 * REACH + 1))

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        T, S = q.shape[-2], k.shape[-2]
        keys = torch.arange(S, device=q.device)
        distance = keys - keys[S - T :, None]  # (T, S)
        bias = self.weight[:, distance.clamp(-REACH, REACH) + REACH]  # (h, T, S)
        return scaled_dot_product(q, k) + bias


def biased_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, bias: RelativeBias
) -> tuple[Tensor, Tensor]:
    """Attention whose scores are those of a `RelativeBias`; output and weights."""
    weights = masked_softmax(bias(q, k), mask)
    return weights @ v, weights


ADDED = {
    "none": NoPositions,
    "bias": NoPositions,
    "shifted": ShiftedPositions,
    "both": SinusoidalPositions,
}


@dataclass(frozen=True)
class PlacedConfig(TransformerConfig):
    """A Transformer's sizes, and how it knows places."""

    places: Literal["none", "shifted", "both", "bias"] = "none"


class PlacedTransformer(Transformer):
    """A `Transformer` of a `PlacedConfig`."""

    def __init__(self, config: PlacedConfig):
        super().__init__(config, replace(FAST, positions=ADDED[config.places]))
        if config.places == "bias":
            for layer in [*self.encoder.layers, *self.decoder.layers]:
                heads = layer.self_attention
                heads.bias = RelativeBias(config.h)
                heads.attend = partial(biased_attention, bias=heads.bias)


register("placed", PlacedTransformer, PlacedConfig)


def placed(c: TransformerConfig, places: str) -> PlacedConfig:
    """A Transformer's configuration with places of a kind."""
    sizes = {field.name: getattr(c, field.name) for field in fields(TransformerConfig)}
    if places == "both":
        sizes["positions"] = "rotary"  # what is added stands in ADDED
    return PlacedConfig(**sizes, places=places)
