"""Notebook 02's model for training and search: caches, and bad input refused in a sentence."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer import convolution as plain
from transformer.convolution import ROOT_HALF, Convolution, ConvolutionalDecoder, glu
from transformer.core.checks import check_padding, check_sides, outside_vocabulary
from transformer.core.settings import EncoderDecoderConfig
from transformer.core.state import Cache, EncoderDecoder


@dataclass(frozen=True)
class ConvolutionConfig(EncoderDecoderConfig):
    """The sizes of a `ConvolutionalEncoderDecoder`.

    A block is smaller than a layer of the Transformer, so the presets have twice as many.
    """

    N: int = 12  # blocks in the encoder, and as many in the decoder
    k: int = 3  # positions in each window
    presets: ClassVar[dict[str, dict]] = {
        "tiny": dict(d_model=128, N=4),
        "small": dict(d_model=256, N=6),
        "base": dict(),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < 1 or self.k % 2 == 0:
            raise ValueError(
                f"k must be odd, so that a window has a middle, not {self.k}"
            )

    def forward_flops(self, S: float, T: float) -> float:
        """FLOPs of the matrix products in one pass over a pair of S and T tokens."""
        d = self.d_model
        blocks = self.N * 4 * self.k * (S + T) * d * d  # 2d outputs from k d inputs
        look = self.N * (2 * T * d * d + 4 * S * T * d)
        return blocks + look + 2 * T * d * self.vocab_size


def convolve_on(convolution: Convolution, x: Tensor, cache: Cache) -> Tensor:
    """A causal convolution of new positions x (B, T, d_in) -> (B, T, d_out), after those whose last
    k - 1 are in the cache."""
    before = x.new_zeros(len(x), convolution.k - 1, x.shape[2])
    if cache.tensors:
        (before,) = cache.tensors
    x = torch.cat([before, x], dim=1)
    cache.tensors = (x[:, x.shape[1] - before.shape[1] :],)
    return convolution.conv(x.transpose(1, 2)).transpose(1, 2)


def decode_on(
    decoder: ConvolutionalDecoder,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    caches: list,
) -> Tensor:
    """The decoder for new positions x (B, T, d_model); caches: a pair a layer, of which the first
    holds the last inputs of its window."""
    g = x
    for layer, (own, _) in zip(decoder.layers, caches, strict=True):
        h = glu(convolve_on(layer.block.convolution, layer.block.dropout(x), own))
        x = (x + layer.look(h, g, memory, mask)) * ROOT_HALF
    return x


class ConvolutionalEncoderDecoder(plain.ConvolutionalEncoderDecoder, EncoderDecoder):
    """ConvS2S (Gehring et al., 2017): ids (B, S) and (B, T) -> logits (B, T, V).

    Raises ValueError for a token id outside the vocabulary (checked on a CPU), an empty source
    sentence, sides that do not pair up, and a sentence longer than config.max_positions.
    """

    def embed(self, tokens: Tensor, start: int = 0) -> Tensor:
        """Token ids (B, T), the first at position start -> vectors (B, T, d_model)."""
        c, end = self.config, start + tokens.shape[1]
        if end > c.max_positions:
            raise ValueError(
                f"a sentence of {end} tokens is longer than the model's "
                f"{c.max_positions} positions: shorten it, or train with "
                "a larger max_positions"
            )
        try:
            x = self.embedding(tokens) * math.sqrt(c.d_model)
        except IndexError:
            raise outside_vocabulary(tokens, c.vocab_size) from None
        return self.dropout(x + self.positions.table[start:end])

    def encode(self, source: Tensor) -> Tensor:
        """Source ids (B, S) -> memory (B, S, 2 d_model)."""
        check_padding(source != self.config.pad_id)
        return super().encode(source)

    def new_caches(self) -> list[tuple[Cache, Cache]]:
        """Empty caches, a pair a layer: its last inputs, and nothing for the memory."""
        return [(Cache(), Cache()) for _ in self.decoder.layers]

    def states(
        self,
        target: Tensor,
        memory: Tensor,
        source_mask: Tensor | None,
        caches: list | None = None,
        start: int = 0,
    ) -> Tensor:
        """The decoder's output (B, T, d_model); see `EncoderDecoder`."""
        x = self.embed(target, start)
        if caches is None:
            return self.dropout(self.decoder(x, memory, source_mask))
        return self.dropout(decode_on(self.decoder, x, memory, source_mask, caches))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        check_sides(source, target)
        return super().forward(source, target)
