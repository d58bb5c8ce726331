# %% [markdown]
# # 3.2 Attention

# %%
import math
from contextlib import contextmanager

import torch
from torch import nn

# %% [markdown]
# ## A score for each query and key

# %%
def dot_product(q, k):
    """Compatibility q . k (Luong et al., 2015): q (..., T, d_k), k (..., S, d_k) -> (..., T, S)."""
    return q @ k.transpose(-2, -1)


# %%
def scaled_dot_product(q, k):
    """Compatibility q . k / sqrt(d_k), equation 1: q (..., T, d_k), k (..., S, d_k) -> (..., T, S)."""
    return dot_product(q, k) / math.sqrt(q.shape[-1])


# %%
class AdditiveScore(nn.Module):
    """Compatibility w . tanh(W q + U k): a network with one hidden layer (Bahdanau et al., 2015).

    q: (..., T, d_k), k: (..., S, d_k) -> (..., T, S). It holds T * S * d_hidden numbers at once.
    """

    def __init__(self, d_k, d_hidden):
        super().__init__()
        self.W = nn.Linear(d_k, d_hidden, bias=False)
        self.U = nn.Linear(d_k, d_hidden, bias=False)
        self.w = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, q, k):
        hidden = torch.tanh(self.W(q).unsqueeze(-2) + self.U(k).unsqueeze(-3))  # (..., T, S, d_hidden)
        return self.w(hidden).squeeze(-1)


# %% [markdown]
# ## From scores to weights

# %%
def masked_softmax(logits, mask=None):
    """Softmax over the last axis, among the positions where mask is True.

    logits: (..., T, S); mask: boolean, broadcastable to it, True = may attend. A row with no
    allowed position becomes zeros (and passes zero gradient back), on every version of torch.
    """
    if mask is None:
        return logits.softmax(dim=-1)
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean (True = may attend), not {mask.dtype}")
    lowest = torch.finfo(logits.dtype).min
    return logits.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


# %% [markdown]
# ## Attention

# %%
def attention(q, k, v, mask=None, score=scaled_dot_product):
    """softmax(score(Q, K)) V: every flavour of attention in the paper (Section 3.2.1).

    q: (..., T, d_k), k: (..., S, d_k), v: (..., S, d_v); mask as in `masked_softmax`.
    Returns the output (..., T, d_v) and the weights (..., T, S). Raises ValueError where k and v
    differ in length.
    """
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"each key needs one value: {k.shape[-2]} keys, {v.shape[-2]} values")
    weights = masked_softmax(score(q, k), mask)
    return weights @ v, weights


# %%
def scaled_dot_product_attention(q, k, v, mask=None):
    """softmax(Q K^T / sqrt(d_k)) V, equation 1. Shapes and results as in `attention`."""
    return attention(q, k, v, mask, scaled_dot_product)


# %% [markdown]
# ## Masks

# %%
def padding_mask(tokens, pad_id):
    """True where a token is real: (B, S) token ids -> (B, 1, 1, S), for all heads and all queries."""
    return (tokens != pad_id)[:, None, None, :]


# %%
def causal_mask(T, device=None):
    """True where the key is not later than the query: (T, T), a lower triangle (Section 3.2.3)."""
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


# %% [markdown]
# ## Keys and values of earlier steps

# %%
class KeyValueCache:
    """The projected keys and values that a decoder has already computed, each (B, h, n, d).

    A growing cache (self-attention) appends what each step brings; a static one (attention over
    the encoder's output) keeps what it was first given.
    """

    def __init__(self, static=False):
        self.static = static
        self.k = self.v = None

    @property
    def length(self):
        """Number of positions held."""
        return 0 if self.k is None else self.k.shape[-2]

    @property
    def filled(self):
        """True where nothing needs to be projected any more."""
        return self.static and self.k is not None

    def append(self, k, v):
        if self.k is not None:
            k, v = torch.cat([self.k, k], dim=-2), torch.cat([self.v, v], dim=-2)
        self.k, self.v = k, v
        return k, v

    def select(self, rows):
        """Keep these rows of the batch, in this order: what beam search does when it drops and copies beams."""
        self.k, self.v = self.k[rows], self.v[rows]


# %% [markdown]
# ## Several heads

# %%
class MultiHeadAttention(nn.Module):
    """Concat(head_1, ..., head_h) W_O, head_i = Attention(Q W_Q_i, K W_K_i, V W_V_i) (Section 3.2.2).

    The h projections of each kind stand side by side in one matrix. No biases, as in the paper.
    d_k and d_v default to d_model / h. forward: query (B, T, d_model), key and value
    (B, S, d_model), mask broadcastable to (B, h, T, S), cache a `KeyValueCache` -> (B, T, d_model).
    Raises ValueError where d_model does not divide by h and d_k or d_v is not given.
    """

    def __init__(self, d_model, h, d_k=None, d_v=None, bias=False):
        super().__init__()
        if d_model % h and not (d_k and d_v):
            raise ValueError(f"d_model={d_model} does not divide by h={h}: give d_k and d_v")
        self.h, self.record = h, None
        d_k, d_v = d_k or d_model // h, d_v or d_model // h
        self.W_Q = nn.Linear(d_model, h * d_k, bias)
        self.W_K = nn.Linear(d_model, h * d_k, bias)
        self.W_V = nn.Linear(d_model, h * d_v, bias)
        self.W_O = nn.Linear(h * d_v, d_model, bias)

    def split(self, x):
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)  # (B, n, h * d) -> (B, h, n, d)

    def forward(self, query, key, value, mask=None, cache=None):
        q = self.split(self.W_Q(query))
        if cache is not None and cache.filled:
            k, v = cache.k, cache.v
        else:
            k, v = self.split(self.W_K(key)), self.split(self.W_V(value))
            if cache is not None:
                k, v = cache.append(k, v)
        output, weights = scaled_dot_product_attention(q, k, v, mask)  # (B, h, T, d_v), (B, h, T, S)
        if self.record is not None:
            self.record.append(weights.detach())
        return self.W_O(output.transpose(1, 2).flatten(2))


# %% [markdown]
# ## Looking at the weights

# %%
@contextmanager
def record_attention(model):
    """Inside the block, collect the weights of every `MultiHeadAttention` in model, call by call.

    Yields {name of the module: [weights (B, h, T, S) of each call]}. Nothing is kept outside it.
    """
    heads = {name: module for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)}
    for module in heads.values():
        module.record = []
    try:
        yield {name: module.record for name, module in heads.items()}
    finally:
        for module in heads.values():
            module.record = None
