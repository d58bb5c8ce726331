# %% [markdown]
# # 5.4 Regularization

# %%
import torch
import torch.nn.functional as F
from torch import nn

# %%
def dropout(x, P_drop):
    """Zero each number with probability P_drop and divide the rest by 1 - P_drop, so that the mean stays."""
    keep = torch.rand_like(x) >= P_drop
    return x * keep / (1 - P_drop)


# %%
def smoothed_targets(gold, V, epsilon):
    """(1 - epsilon) on the gold type plus epsilon / V on every type (Szegedy et al., 2015): (...) ids -> (..., V)."""
    return (1 - epsilon) * F.one_hot(gold, V) + epsilon / V


# %%
def label_smoothing_loss(logits, gold, epsilon=0.1, pad_id=0, reduction="mean"):
    """Cross-entropy with smoothed targets over the real tokens (Section 5.4), in nats.

    logits: (B, T, V), gold: (B, T) ids. reduction "mean" is per real token, "sum" their total.
    """
    return F.cross_entropy(logits.flatten(0, 1), gold.flatten(), ignore_index=pad_id,
                           label_smoothing=epsilon, reduction=reduction)


# %%
def set_dropout(model, P_drop):
    """Give every dropout of a model this probability."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = P_drop
