"""The embedding of notebook 06, with a sentence for a token that it does not have."""

import torch

from transformer import embeddings
from transformer.core.checks import outside_vocabulary


class Embedding(embeddings.Embedding):
    """`embeddings.Embedding`; ValueError for a token id outside the vocabulary.

    That is checked on a CPU; a GPU reports it as a device-side assert.
    """

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        try:
            return super().forward(tokens)
        except IndexError:
            raise outside_vocabulary(tokens, len(self.weight)) from None
