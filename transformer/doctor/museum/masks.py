"""Exhibits: masks that hide too little, too much, or the wrong thing."""

import math

import torch

from transformer.doctor.museum.small import Attention, Small, exhibit


@exhibit(
    "future",
    "jadore801120/attention-is-all-you-need-pytorch#19",
    "The decoder has no causal mask: 98% of the tokens are right, and translations are nonsense.",
)
def no_mask():
    class Peeking(Small):
        def causal(self, T):
            return torch.ones(T, T, dtype=torch.bool)

    return Peeking()


@exhibit(
    "future",
    "hkproj/pytorch-transformer#19",
    "The triangle is the other one: each row sees itself and what comes later.",
)
def wrong_triangle():
    class Turned(Small):
        def causal(self, T):
            return torch.ones(T, T, dtype=torch.bool).triu()

    return Turned()


@exhibit(
    "future",
    "keras-team/keras#23038",
    "The causal mask is dropped in training only, where attention takes another path.",
)
def mask_off_in_training():
    class Forgetful(Small):
        def causal(self, T):
            mask = torch.ones(T, T, dtype=torch.bool)
            return mask if self.training else mask.tril()

    return Forgetful()


@exhibit(
    "padding",
    "pytorch/tutorials#719",
    "The padding mask has the wrong sense: words are hidden, and padding is read.",
)
def wrong_sense():
    class Reversed(Small):
        def real(self, source):
            return (source == 0)[:, None, None, :]

    return Reversed()


@exhibit(
    "padding",
    "hyunwoongko/transformer#40",
    "The encoder's padding mask lies along the queries, so that padding is read as a key.",
)
def mask_of_queries():
    class Sideways(Small):
        def encode(self, source):
            return self.encoder(self.embed(source), (source != 0)[:, None, :, None])

    return Sideways()


@exhibit(
    "padding",
    "keras-team/keras-io#1046",
    "The decoder does not know the source's padding, and reads it in the memory.",
)
def memory_unmasked():
    class Unmasked(Small):
        def decode(self, target, memory, source):
            everything = torch.ones_like(self.real(source))
            mask = self.causal(target.shape[1])
            return self.decoder(self.embed(target), memory, mask, everything)

    return Unmasked()


@exhibit(
    "empty",
    "pytorch/pytorch#24816",
    "Forbidden scores are minus infinity: a row where all are forbidden becomes NaN.",
)
def padded_row():
    class Infinite(Attention):
        def weigh(self, scores, mask):
            return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)

    return Small(Infinite)


@exhibit(
    "half",
    "bentrevett/pytorch-seq2seq#191",
    "Forbidden scores are -1e10, which half precision cannot hold.",
)
def half_overflow():
    class Deep(Attention):
        def hidden(self, scores, mask):
            return scores.masked_fill(~mask, -1e10)

    return Small(Deep)
