"""What the exercises of notebook 01 are checked with."""

import torch

from transformer.recurrence import blend
from transformer.teaching.exercises import Exercise, normals


def published_gru_step(x, h, W, U):
    d = h.shape[-1]
    r, z = torch.sigmoid(x @ W[: 2 * d].T + h @ U[: 2 * d].T).chunk(2, dim=-1)
    n = torch.tanh(x @ W[2 * d :].T + (r * h) @ U[2 * d :].T)
    return n + z * (h - n)


def additive_weights(q, m, W, U, w, real):
    scores = torch.tanh(q @ W.T + m @ U.T) @ w
    return blend(scores[None, None], torch.eye(len(m))[None], real[None, None])[0, 0]


def some_queries():
    given = normals(1, (4,), (5, 4), (4, 4), (4, 4), (4,))
    return [(*given, torch.arange(5) < length) for length in (5, 3)]


def linear_states(W, x):
    states = [x[0]]
    for row in x[1:]:
        states.append(W @ states[-1] + row)
    return torch.stack(states)


def some_recurrences():
    W, x = normals(1, (3, 3), (21, 3))
    W = 0.9 * torch.linalg.qr(W)[0]
    return [(W, x[:length]) for length in (1, 2, 8, 21)]


check_published_gru_step = Exercise(
    published_gru_step,
    lambda: [normals(1, (2, 3), (2, 4), (12, 3), (12, 4))],
    "r multiplies the old state, not its product with U_n; z says how much of h is kept",
)
check_additive_weights = Exercise(
    additive_weights,
    some_queries,
    "one score for each state, exp of each, and real ones alone share out a sum of 1",
)
check_linear_states = Exercise(
    linear_states,
    some_recurrences,
    "if every position holds a sum over the last n inputs, add W^n times what stands n before it",
)
