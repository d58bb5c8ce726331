# %% [markdown]
# # 3.3 Position-wise feed-forward networks

# %%
from torch import nn

# %%
class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same at every position (equation 2).

    forward: (..., d_model) -> (..., d_model), through d_ff hidden units.
    """

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.W_2(self.W_1(x).relu())
