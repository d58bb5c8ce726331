# ---
# jupyter:
#   jupytext:
#     formats: notebooks/27_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 27 · Why does my Transformer not learn?

# %%
import copy
import math

import torch
import torch.nn.functional as F

# %% [markdown]
# x


# %%
def date():
    """A day as people write it and with the year first: "24121987", "19871224"."""
    day, month = torch.randint(1, 29, ()).item(), torch.randint(1, 13, ()).item()
    year = torch.randint(1900, 2030, ()).item()
    if torch.rand(()) < 0.5:  # half of us leave the year out
        year = ""
    return f"{day:02}{month:02}{year}", f"{year}{month:02}{day:02}"


def dates(n):
    """n dates as sources (n, 8), and turned, with marks (n, 10); 0 is padding."""
    source = torch.zeros(n, 8, dtype=torch.long)
    target = torch.zeros(n, 10, dtype=torch.long)
    for i in range(n):
        asked, answer = date()
        source[i, : len(asked)] = torch.tensor([int(digit) + 3 for digit in asked])
        tokens = [1, *(int(digit) + 3 for digit in answer), 2]  # begin, digits, end
        target[i, : len(tokens)] = torch.tensor(tokens)
    return source, target


# %%
def loss_of(model, source, target):
    """Nats a token: source (n, S), target (n, T) with its begin and end marks."""
    scores, gold = model(source, target[:, :-1]), target[:, 1:]
    return F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=0)


# %%
def training(model, loss=loss_of, updates=240):
    """Train on new dates; yield the loss after each update."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for update in range(1, updates + 1):
        rate = 0.0375 * min(update**-0.5, update * 50**-1.5)
        optimizer.param_groups[0]["lr"] = rate
        error = loss(model, *dates(32))
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        yield error.item()
