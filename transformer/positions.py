# %% [markdown]
# # 3.5 Positional encoding

# %%
import torch
from torch import nn

# %%
def sinusoids(n, d_model):
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(the same) (Section 3.5).

    Returns (n, d_model), float64. Raises ValueError for an odd d_model: sines and cosines come in pairs.
    """
    if d_model % 2:
        raise ValueError(f"d_model must be even, one sine and one cosine a frequency, not {d_model}")
    pos = torch.arange(n, dtype=torch.float64)[:, None]
    frequency = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = pos * frequency  # (n, d_model / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


# %%
class SinusoidalPositions(nn.Module):
    """Add the fixed sinusoids to embeddings (B, T, d_model); start is the position of the first."""

    def __init__(self, max_positions, d_model):
        super().__init__()
        self.register_buffer("table", sinusoids(max_positions, d_model).float(), persistent=False)

    def forward(self, x, start=0):
        return x + positions_of(self.table, start, x.shape[1])


# %%
class LearnedPositions(nn.Module):
    """Add one learned vector a position (row E of Table 3); otherwise as `SinusoidalPositions`."""

    def __init__(self, max_positions, d_model):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_positions, d_model) / d_model**0.5)

    def forward(self, x, start=0):
        return x + positions_of(self.table, start, x.shape[1])


# %%
def positions_of(table, start, length):
    """Rows start to start + length of a table (max_positions, d_model); ValueError past its end."""
    if start + length > len(table):
        raise ValueError(f"a sentence of {start + length} tokens is longer than the model's {len(table)} positions: "
                         "split the sentence, or train with a larger max_positions")
    return table[start:start + length]
