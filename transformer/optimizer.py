# %% [markdown]
# # 5.3 Optimizer

# %%
import torch

# %%
def learning_rate(step, d_model=512, warmup=4000, factor=1.0):
    """factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (equation 3); step counts updates from 1."""
    if step < 1 or warmup < 1:
        raise ValueError(f"step and warmup count from 1, not {step} and {warmup}")
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


# %%
def adam(model):
    """Adam with the paper's beta_1 = 0.9, beta_2 = 0.98, epsilon = 1e-9; the loop sets its learning rate."""
    parameters = list(model.parameters())
    try:
        return torch.optim.Adam(parameters, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    except (RuntimeError, ValueError):  # no fused kernel for this device in this torch
        return torch.optim.Adam(parameters, lr=0.0, betas=(0.9, 0.98), eps=1e-9)


# %%
def set_learning_rate(optimizer, rate):
    """Give every group of parameters this learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate
