"""Exhibits: positions, memory, layers and scores that are wired wrongly."""

import copy
import math

import torch
from torch import nn

from transformer import first_transformer as first
from transformer.doctor.museum.small import SIZES, Small, exhibit

LAYER = tuple(SIZES[name] for name in ("d_model", "d_ff", "h", "P_drop"))


@exhibit(
    "order",
    "Lightning-AI/pytorch-lightning#20099",
    "Positions are made, and not used.",
)
def no_positions():
    class Timeless(Small):
        def embed(self, tokens):
            return self.dropout(self.embedding(tokens) * math.sqrt(self.d_model))

    return Timeless()


@exhibit(
    "order",
    "DiffPoseTalk/DiffPoseTalk#20",
    "A colon is missing: every word gets the position behind the last one.",
)
def one_position():
    class Standing(Small):
        def embed(self, tokens):
            x = self.embedding(tokens) * math.sqrt(self.d_model)
            return self.dropout(x + self.positions[tokens.shape[1]])

    return Standing()


@exhibit(
    "order",
    "KasperGroesLudvigsen/influenza_transformer#9",
    "Positions count sentences of the batch, and not words: the axes are exchanged.",
)
def positions_of_batch():
    class Numbered(Small):
        def embed(self, tokens):
            x = self.embedding(tokens) * math.sqrt(self.d_model)
            return self.dropout(x + self.positions[: len(tokens), None])

    return Numbered()


@exhibit(
    "paper",
    "SamLynnEvans/Transformer#25",
    "The cosine has another wavelength than its sine.",
)
def exponent():
    model = Small()
    n, d_model = model.positions.shape
    place = torch.arange(n)[:, None]
    model.positions[:, 1::2] = (
        place * 10_000 ** (-2 * torch.arange(1, d_model, 2) / d_model)
    ).cos()
    return {"model": model, "reference": first.Transformer(**SIZES)}


@exhibit(
    "source",
    "keitakurita/Practical_NLP_in_PyTorch#1",
    "The second attention of the decoder looks at the target, and not at the memory.",
)
def own_memory():
    class Selfish(first.DecoderLayer):
        def forward(self, x, memory, mask, source_mask):
            return super().forward(x, x, mask, mask)

    model = Small()
    model.decoder = first.Stack(Selfish(*LAYER) for _ in range(2))
    return model


@exhibit(
    "source",
    "kingnobro/IconShop#4",
    "The decoder is given zeros in place of the memory.",
)
def empty_memory():
    class Deaf(Small):
        def encode(self, source):
            return torch.zeros_like(super().encode(source))

    return Deaf()


@exhibit(
    "gradients",
    "lucidrains/CoCa-pytorch#6",
    "The encoder's output is detached, so that the encoder never learns.",
)
def encoder_cut_off():
    class Frozen(Small):
        def encode(self, source):
            return super().encode(source).detach()

    return Frozen()


@exhibit(
    "gradients",
    "maruya24/pytorch_robotics_transformer#3",
    "Layers stand in a Python list, where no optimizer finds them.",
)
def plain_list():
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [first.DecoderLayer(*LAYER) for _ in range(2)]

        forward = first.Stack.forward

    model = Small()
    model.decoder = Listed()
    return model


@exhibit(
    "gradients",
    "oliverguhr/transformer-time-series-prediction#13",
    "A layer that was only a pattern for others is kept, and never used.",
)
def unused_layer():
    model = Small()
    model.pattern = first.EncoderLayer(*LAYER)
    return model


@exhibit(
    "sharing",
    "espnet/espnet#1278",
    "A stack runs through one and the same layer again and again.",
)
def one_layer_twice():
    model = Small()
    model.encoder = first.Stack([first.EncoderLayer(*LAYER)] * 2)
    return model


@exhibit(
    "sharing",
    "pytorch/pytorch#86274",
    "Layers are deep copies of one, and begin with the same weights.",
)
def equal_layers():
    model, layer = Small(), first.EncoderLayer(*LAYER)
    model.encoder = first.Stack(copy.deepcopy(layer) for _ in range(2))
    return model


@exhibit(
    "paper",
    "kyegomez/BitNet#32",
    "What attention gives is added to itself, and not to what was there.",
)
def doubled_residual():
    class Doubled(first.Residual):
        def forward(self, x, sublayer):
            given = self.dropout(sublayer(x))
            return self.norm(given + given)

    model = Small()
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.residuals[0] = Doubled(SIZES["d_model"], 0.1)
    return {"model": model, "reference": first.Transformer(**SIZES)}


@exhibit(
    "paper",
    "strutive07/transformer-tensorflow2.0#14",
    "After the feed-forward network the layer's input is added, and not the network's.",
)
def wrong_residual():
    class Jumping(first.EncoderLayer):
        def forward(self, x, mask):
            y = self.residuals[0](x, lambda x: self.self_attention(x, x, mask))
            return self.residuals[1](x, lambda x: self.feed_forward(y))

    model = Small()
    model.encoder = first.Stack(Jumping(*LAYER) for _ in range(2))
    return {"model": model, "reference": first.Transformer(**SIZES)}


@exhibit(
    "output",
    "bkitano/llama-from-scratch#5",
    "The model ends with a softmax, and the loss makes another.",
)
def softmax_twice():
    class Sure(Small):
        def score(self, x):
            return super().score(x).softmax(dim=-1)

    return Sure()


@exhibit(
    "output",
    "huyng/tensorflow-vgg#13",
    "A ReLU cuts off all scores below zero.",
)
def relu_on_logits():
    class Cut(Small):
        def score(self, x):
            return super().score(x).relu()

    return Cut()


@exhibit(
    "start",
    "pytorch/pytorch#3121",
    "Embeddings begin with variance 1, and the same matrix makes the scores.",
)
def wide_embedding():
    model = Small()
    nn.init.normal_(model.embedding.weight)
    return model
