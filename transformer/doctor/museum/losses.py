"""Exhibits: healthy models with a loss that asks for something else."""

import torch.nn.functional as F

from transformer.doctor.museum.small import Small, exhibit


def right_loss(model, source, target, smoothing=0.0):
    """Nats a token, as chapter 00 has it; with label smoothing, as chapter 13."""
    scores, gold = model(source, target[:, :-1]), target[:, 1:]
    smoothed = dict(ignore_index=0, label_smoothing=smoothing)
    return F.cross_entropy(scores.flatten(0, 1), gold.flatten(), **smoothed)


def right_accumulate(model, batches):
    """The gradient of one update: each batch counts for its tokens."""
    tokens = [(target[:, 1:] != 0).sum() for _, target in batches]
    for (source, target), count in zip(batches, tokens):
        (right_loss(model, source, target) * count / sum(tokens)).backward()


@exhibit(
    "loss",
    "Kyubyong/transformer#94",
    "The target is not shifted: the model copies what the decoder reads.",
)
def not_shifted():
    def loss(model, source, target):
        scores = model(source, target)
        return F.cross_entropy(scores.flatten(0, 1), target.flatten(), ignore_index=0)

    return {"model": Small(), "loss": loss}


@exhibit(
    "loss",
    "Lightning-Universe/lightning-transformers#266",
    "Padding is asked for like any token, and makes the loss look good.",
)
def padding_in_loss():
    def loss(model, source, target):
        scores = model(source, target[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten())

    return {"model": Small(), "loss": loss}


@exhibit(
    "loss",
    "OpenNMT/OpenNMT-py#526",
    "Each sentence is divided by its own length: tokens of short ones count for more.",
)
def by_sentence():
    def loss(model, source, target):
        scores, gold = model(source, target[:, :-1]), target[:, 1:]
        each = F.cross_entropy(scores.mT, gold, ignore_index=0, reduction="none")
        return (each.sum(dim=1) / (gold != 0).sum(dim=1)).mean()

    return {"model": Small(), "loss": loss}


@exhibit(
    "loss",
    "harvardnlp/annotated-transformer#115",
    "The logarithm is taken of a probability, which can be zero: the loss is infinite.",
)
def log_of_zero():
    def loss(model, source, target):
        p, gold = model(source, target[:, :-1]).softmax(dim=-1), target[:, 1:]
        real, V = gold != 0, p.shape[-1]
        smoothed = 0.9 * F.one_hot(gold, V) + 0.1 / V
        return -(smoothed * p.log()).sum(dim=-1)[real].mean()

    return {"model": Small(), "loss": loss}


@exhibit(
    "accumulation",
    "meta-pytorch/torchtune#1875",
    "An update of several batches takes the mean of their means.",
)
def mean_of_means():
    def accumulate(model, batches):
        for source, target in batches:
            (right_loss(model, source, target) / len(batches)).backward()

    return {"model": Small(), "loss": right_loss, "accumulate": accumulate}
