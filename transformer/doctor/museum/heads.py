"""Exhibits: axes that are confused inside attention, and around it."""

import math

import torch
from torch import nn

from transformer import first_transformer as first
from transformer.doctor.museum.small import SIZES, Attention, Small, exhibit


@exhibit(
    "future",
    "labmlai/annotated_deep_learning_paper_implementations#282",
    "The softmax runs over queries: what a word gets depends on who else asks.",
)
def softmax_over_queries():
    class Sideways(Attention):
        def weigh(self, scores, mask):
            return self.hidden(scores, mask).softmax(dim=-2).masked_fill(~mask, 0)

    return Small(Sideways)


@exhibit(
    "neighbours",
    "PetrochukM/PyTorch-NLP#2",
    "The softmax runs over the first axis, the sentences of a batch.",
)
def softmax_over_batch():
    class Across(Attention):
        def weigh(self, scores, mask):
            return self.hidden(scores, mask).softmax(dim=0).masked_fill(~mask, 0)

    return Small(Across)


@exhibit(
    "future",
    "reczoo/FuxiCTR#30",
    "Heads are cut by view alone, without a transpose: a head gets other words.",
)
def heads_cut_by_view():
    class Cut(Attention):
        def split(self, x):
            return x.reshape(len(x), self.h, x.shape[1], -1)

    return Small(Cut)


@exhibit(
    "future",
    "jsbaan/transformer-from-scratch#6",
    "Heads are joined by reshape alone: a word gets pieces of other words.",
)
def heads_joined_by_view():
    class Joined(Attention):
        def join(self, x):
            return x.reshape(len(x), x.shape[2], -1)

    return Small(Joined)


@exhibit(
    "neighbours",
    "gazelle93/Transformer-Various-Positional-Encoding#1",
    "Heads and sentences change places where the heads are joined.",
)
def heads_and_batch():
    class Mixed(Attention):
        def join(self, x):
            B, h, T, d_k = x.shape
            turned = x.flatten(0, 1).view(h, B, T, d_k)
            return turned.permute(1, 2, 0, 3).reshape(B, T, -1)

    return Small(Mixed)


@exhibit(
    "neighbours",
    "Exorust/TorchLeet#5",
    "torch's layers take the first axis for time, unless batch_first is set.",
)
def batch_as_time():
    class Torchs(Small):
        def __init__(self):
            super().__init__()
            sizes = (SIZES[name] for name in ("d_model", "h", "d_ff"))
            layer = nn.TransformerEncoderLayer(*sizes)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def encode(self, source):
            return self.encoder(self.embed(source))

    return Torchs()


@exhibit(
    "future",
    "jadore801120/attention-is-all-you-need-pytorch#17",
    "The norm takes mean and variance over the words of a sentence.",
)
def norm_over_positions():
    class Along(first.LayerNorm):
        def forward(self, x):
            mean, deviation = x.mean(dim=1, keepdim=True), x.std(dim=1, keepdim=True)
            return self.gain * (x - mean) / (deviation + 1e-3) + self.bias

    model = Small()
    for module in model.modules():
        if isinstance(module, first.Residual):
            module.norm = Along(SIZES["d_model"])
    return model


@exhibit(
    "paper",
    "jadore801120/attention-is-all-you-need-pytorch#42",
    "Scores are divided by the root of d_model, and not of d_k.",
)
def scale_of_model():
    class Flat(Attention):
        def scaled(self, scores, q):
            return scores / math.sqrt(SIZES["d_model"])

    return {"model": Small(Flat), "reference": first.Transformer(**SIZES)}


@exhibit(
    "modes",
    "pytorch/pytorch#124464",
    "Dropout on the weights is a function, which does not know evaluation.",
)
def dropout_always():
    class Dropped(Attention):
        def weigh(self, scores, mask):
            return torch.dropout(super().weigh(scores, mask), 0.1, True)

    return Small(Dropped)
