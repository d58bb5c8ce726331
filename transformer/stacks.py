# %% [markdown]
# # 3.1 Encoder and decoder stacks

# %%
import torch
import torch.nn.functional as F
from torch import nn

# %% [markdown]
# ## Layer normalization

# %%
def layer_norm(x, gain, bias, eps=1e-5):
    """Normalise the last axis to mean 0 and variance 1, then scale and shift (Ba et al., 2016).

    x: (..., d_model); gain, bias: (d_model,). The variance divides by d_model, not d_model - 1,
    and eps stands inside the root, so a constant row gives `bias` and never divides by zero.
    """
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias


# %%
class LayerNorm(nn.Module):
    """`layer_norm` with a learned gain and bias; torch's fused kernel computes the same formula."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


# %% [markdown]
# ## A path around every sub-layer

# %%
class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))): Section 3.1, with the dropout of Section 5.4.

    With norm_first=True it is x + Dropout(Sublayer(LayerNorm(x))), the later pre-norm variant.
    """

    def __init__(self, d_model, P_drop=0.1, norm_first=False):
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(P_drop)
        self.norm_first = norm_first

    def forward(self, x, sublayer):
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


# %% [markdown]
# ## The encoder's layer

# %%
class EncoderLayer(nn.Module):
    """Self-attention, then a position-wise network, each inside a `Residual` (Section 3.1).

    self_attention(query, key, value, mask) and feed_forward(x) are any modules that keep the shape
    of their first argument. forward: x (B, S, d_model), mask broadcastable to (B, h, S, S),
    True = may attend -> (B, S, d_model).
    """

    def __init__(self, self_attention, feed_forward, d_model, P_drop=0.1, norm_first=False):
        super().__init__()
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.residuals = nn.ModuleList(Residual(d_model, P_drop, norm_first) for _ in range(2))

    def forward(self, x, mask=None):
        x = self.residuals[0](x, lambda x: self.self_attention(x, x, x, mask))
        return self.residuals[1](x, self.feed_forward)


# %% [markdown]
# ## The decoder's layer

# %%
class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's output, then the network (Section 3.1).

    forward: x (B, T, d_model), memory (B, S, d_model), source_mask broadcastable to (B, h, T, S),
    target_mask to (B, h, T, T) -> (B, T, d_model). cache: None, or a pair handed on to the two
    attentions, which remember in it the keys and values of earlier steps.
    """

    def __init__(self, self_attention, cross_attention, feed_forward, d_model, P_drop=0.1, norm_first=False):
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.residuals = nn.ModuleList(Residual(d_model, P_drop, norm_first) for _ in range(3))

    def forward(self, x, memory, source_mask=None, target_mask=None, cache=(None, None)):
        x = self.residuals[0](x, lambda x: self.self_attention(x, x, x, target_mask, cache[0]))
        x = self.residuals[1](x, lambda x: self.cross_attention(x, memory, memory, source_mask, cache[1]))
        return self.residuals[2](x, self.feed_forward)


# %% [markdown]
# ## Stacks of N

# %%
class Encoder(nn.Module):
    """N encoder layers, one after the other; final_norm is for pre-norm stacks only."""

    def __init__(self, layers, final_norm=None):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.final_norm = final_norm or nn.Identity()

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.final_norm(x)


# %%
class Decoder(nn.Module):
    """N decoder layers; caches: None, or one pair a layer (see `DecoderLayer`)."""

    def __init__(self, layers, final_norm=None):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.final_norm = final_norm or nn.Identity()

    def forward(self, x, memory, source_mask=None, target_mask=None, caches=None):
        for layer, cache in zip(self.layers, caches or [(None, None)] * len(self.layers)):
            x = layer(x, memory, source_mask, target_mask, cache)
        return self.final_norm(x)
