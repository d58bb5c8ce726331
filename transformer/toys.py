"""What stands in for real parts and tasks in notebooks 01 to 05.

Nothing here knows the model: what is examined is passed in.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence


def rows_to_reverse(count, low, high):
    """Random rows of low to high digits, and each backwards between the marks.

    Two id tensors (count, length), padded; ids 3 to 12 are the digits.
    """
    lengths = torch.randint(low, high + 1, (count,)).tolist()
    rows = [torch.randint(3, 13, (length,)) for length in lengths]
    start, end = torch.tensor([1]), torch.tensor([2])
    backwards = [torch.cat([start, row.flip(0), end]) for row in rows]
    source = pad_sequence(rows, batch_first=True)
    return source, pad_sequence(backwards, batch_first=True)


class Average(nn.Module):
    """Stands in for attention: every position gets the plain average of the values it may see.

    query (B, T, d_model), value (B, S, d_model), mask (T, S) or None -> (B, T, d_model).
    """

    def forward(self, query, key, value, mask=None, cache=None):
        if mask is None:
            seen = value.new_ones(query.shape[1], value.shape[1])
        else:
            seen = mask.to(value.dtype)
        return seen / seen.sum(dim=-1, keepdim=True) @ value


def small_network(d_model):
    """Stands in for any sub-layer: two matrices with a bend between, started as the model's are."""
    network = nn.Sequential(nn.Linear(d_model, d_model), nn.ReLU(), nn.Linear(d_model, d_model))
    for layer in (network[0], network[2]):
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    return network


class Floor(nn.Module):
    """A sub-layer inside a wrapper: forward(x) is residual(x, sublayer)."""

    def __init__(self, residual, sublayer):
        super().__init__()
        self.residual = residual
        self.sublayer = sublayer

    def forward(self, x):
        return self.residual(x, self.sublayer)


def sizes_and_gradients(floors, d_model, n=500):
    """Send n random vectors up a list of floors and a random gradient down again.

    Returns for every height, input first: the standard deviation of the vectors, and the norm of
    the gradient relative to the top.
    """
    states = [torch.randn(n, d_model).requires_grad_()]
    for floor in floors:
        states.append(floor(states[-1]))
    gradients = torch.autograd.grad((states[-1] * torch.randn(n, d_model)).sum(), states)
    sizes = [state.std().item() for state in states]
    return sizes, [(g.norm() / gradients[-1].norm()).item() for g in gradients]


def learn_to_reorder(floors, d_model, steps, lr=1e-3):
    """Train floors, with a linear map on top, to put random vectors' numbers in another, fixed
    order.

    Returns the mean squared error of every step; always answering 0 has an error of 1.
    """
    tower = nn.Sequential(*floors, nn.Linear(d_model, d_model))
    order = torch.randperm(d_model)
    optimizer = torch.optim.Adam(tower.parameters(), lr)
    losses = []
    for _ in range(steps):
        x = torch.randn(64, d_model)
        loss = (tower(x) - x[:, order]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fit(network, x, y, steps=600, lr=0.02):
    """Train a network to give y for x; returns its last mean squared error."""
    optimizer = torch.optim.Adam(network.parameters(), lr)
    for _ in range(steps):
        loss = (network(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()
