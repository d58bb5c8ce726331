"""The exercise of notebook 14: whether scores know what comes after them."""

import torch
import torch.nn.functional as F

from transformer.teaching.exercises import Exercise

VOCABULARY = 9


def peeks(model, source, target) -> bool:
    """Whether earlier scores move when the last word of each target becomes the begin mark."""
    changed = target.clone()
    changed[:, -1] = 1
    before, after = model(source, target), model(source, changed)
    return not torch.allclose(before[:, :-1], after[:, :-1], atol=1e-5)


def words(target):
    return F.one_hot(target, VOCABULARY).double()


def honest(source, target):
    """Each row of scores has read its own word, those before it, and the source."""
    return words(target).cumsum(dim=1) + source.sum(dim=1)[:, None, None]


def source_alone(source, target):
    return words(target) * 0 + source.sum(dim=1)[:, None, None]


def one_ahead(source, target):
    return words(target).roll(-1, dims=1)


def all_ahead(source, target):
    """Each row has read a little of every word."""
    return words(target) + 0.01 * words(target).sum(dim=1, keepdim=True)


def some_models():
    source = torch.tensor([[5, 6, 7], [8, 4, 0]])
    target = torch.tensor([[1, 3, 4, 5, 2], [1, 6, 2, 0, 0]])
    models = honest, one_ahead, source_alone, all_ahead
    return [(model, source, target) for model in models]


check_peeks = Exercise(
    peeks,
    some_models,
    "the last row of scores may move, because it has read the changed word",
)
