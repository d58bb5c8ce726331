# %% [markdown]
# # 3.4 Embeddings and softmax

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

# %%
class Embedding(nn.Module):
    """One matrix E (V, d_model) for two jobs (Section 3.4; Press and Wolf, 2017).

    forward: token ids (B, T) -> rows of E times sqrt(d_model), (B, T, d_model).
    logits: (..., d_model) -> (..., V), the product with E transposed, without a bias.
    Rows start as N(0, 1 / d_model), so that scaled rows have variance 1. Raises ValueError for a
    token id outside the vocabulary (checked on a CPU; a GPU reports it as a device-side assert).
    """

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))

    def forward(self, tokens):
        try:
            return F.embedding(tokens, self.weight) * math.sqrt(self.weight.shape[1])
        except IndexError:
            V = self.weight.shape[0]
            wrong = tokens[(tokens < 0) | (tokens >= V)][0].item()
            raise ValueError(f"token id {wrong} is outside the vocabulary of {V} types (0 to {V - 1}): "
                             "encode the text with the tokenizer saved beside this model") from None

    def logits(self, x):
        return F.linear(x, self.weight)
