"""Models with nothing wrong, on which no check may raise a false alarm."""

import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from transformer import first_transformer as first
from transformer import model as plain
from transformer.doctor.museum.losses import right_accumulate, right_loss
from transformer.doctor.museum.small import SIZES
from transformer.fast import recurrence
from transformer.fast.convolution import ConvolutionalEncoderDecoder, ConvolutionConfig
from transformer.fast.model import Transformer, TransformerConfig
from transformer.recurrence import RecurrenceConfig, RecurrentEncoderDecoder

COMMON = {name: SIZES[name] for name in ("d_model", "d_ff", "h", "N", "P_drop")}


def strong(**settings) -> nn.Module:
    """The engine's Transformer in some setting."""
    return Transformer(TransformerConfig(13, **COMMON, max_positions=64, **settings))


class Torchs(nn.Module):
    """torch.nn.Transformer between an embedding and a matrix of its own."""

    def __init__(self, norm_first: bool, activation: str = "relu"):
        super().__init__()
        d, h, N = (COMMON[name] for name in ("d_model", "h", "N"))
        self.embedding = nn.Embedding(13, d)
        self.register_buffer("positions", first.sinusoids(64, d), persistent=False)
        options = dict(batch_first=True, norm_first=norm_first, dropout=0.1)
        options["activation"] = activation
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says that it will be slower
            self.layers = nn.Transformer(d, h, N, N, COMMON["d_ff"], **options)
        self.output = nn.Linear(d, 13)

    def embed(self, tokens: Tensor) -> Tensor:
        return self.embedding(tokens) + self.positions[: tokens.shape[1]]

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        T = target.shape[1]
        ahead = torch.ones(T, T, dtype=torch.bool).triu(1)  # True: forbidden
        ignored = source == 0
        x = self.layers(
            self.embed(source),
            self.embed(target),
            tgt_mask=ahead,
            src_key_padding_mask=ignored,
            memory_key_padding_mask=ignored,
        )
        return self.output(x)


class Wrapped(nn.Module):
    """An encoder-decoder of the library transformers, called with ids alone."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        given = dict(input_ids=source, attention_mask=(source != 0).long())
        return self.inner(**given, decoder_input_ids=target, use_cache=False).logits


IDS = dict(pad_token_id=0, eos_token_id=2, decoder_start_token_id=1)


def sides() -> dict:
    """The sizes of both stacks, as the library calls them, and those of the whole."""
    stack = dict(layers=2, attention_heads=4, ffn_dim=128)
    both = [(f"{s}_{k}", v) for s in ("encoder", "decoder") for k, v in stack.items()]
    return dict(both, vocab_size=13, d_model=64, max_position_embeddings=64)


def marian() -> nn.Module:
    """A small Marian of the library transformers; ModuleNotFoundError without it."""
    from transformers import MarianConfig, MarianMTModel

    return Wrapped(MarianMTModel(MarianConfig(**sides(), **IDS)))


def bart() -> nn.Module:
    """A small BART of the library transformers; ModuleNotFoundError without it."""
    from transformers import BartConfig, BartForConditionalGeneration

    config = BartConfig(**sides(), **IDS, bos_token_id=1, forced_eos_token_id=None)
    return Wrapped(BartForConditionalGeneration(config))


def t5() -> nn.Module:
    """A small T5 of the library transformers; ModuleNotFoundError without it."""
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = dict(
        vocab_size=13, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4
    )
    return Wrapped(T5ForConditionalGeneration(T5Config(**sizes, **IDS)))


HEALTHY: dict[str, Callable[[], nn.Module]] = {
    "plain-00": partial(first.Transformer, **SIZES),
    "plain-08": lambda: plain.Transformer(plain.TransformerConfig(13, **COMMON)),
    "strong": strong,
    "strong-learned": partial(strong, positions="learned"),
    "strong-rotary": partial(strong, positions="rotary"),
    "strong-norm-first": partial(strong, norm_first=True),
    "strong-untied": partial(strong, tie_embeddings=False),
    "strong-all": partial(
        strong, positions="rotary", norm_first=True, tie_embeddings=False
    ),
    "torch-norm-last": partial(Torchs, norm_first=False),
    "torch-norm-first": partial(Torchs, norm_first=True),
    "torch-gelu": partial(Torchs, norm_first=True, activation="gelu"),
    "marian": marian,
    "bart": bart,
    "t5": t5,
    "recurrent": lambda: RecurrentEncoderDecoder(RecurrenceConfig(13, 64)),
    "lstm": lambda: recurrence.RecurrentEncoderDecoder(
        recurrence.RecurrenceConfig(13, d_model=64, cell="lstm", max_positions=64)
    ),
    "convolution": lambda: ConvolutionalEncoderDecoder(
        ConvolutionConfig(13, 64, N=4, max_positions=64)
    ),
}


def patient(name: str) -> dict:
    """A healthy model with what `checkup` takes besides: its loss, and its accumulation.

    Two of them are trained with label smoothing.
    """
    smoothed = name in ("plain-08", "strong-untied")
    loss = partial(right_loss, smoothing=0.1) if smoothed else right_loss
    return {"model": HEALTHY[name](), "loss": loss, "accumulate": right_accumulate}
