"""Torch's own Transformer with the weights of one of ours, to compare them."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from transformer.attention import causal_mask


def torchs_transformer(model: nn.Module) -> nn.Transformer:
    """torch.nn.Transformer with a model's weights, sizes, type, and mode.

    It has no embeddings, and its masks are True where ours are False. Its attentions get
    biases of zero, and its stacks no norm at their ends, which the paper has not.
    """
    c = model.config
    sizes = dict(d_model=c.d_model, nhead=c.h, dim_feedforward=c.d_ff, dropout=c.P_drop)
    layer = nn.TransformerEncoderLayer(**sizes, batch_first=True)
    encoder = nn.TransformerEncoder(layer, c.N, enable_nested_tensor=False)
    layer = nn.TransformerDecoderLayer(**sizes, batch_first=True)
    decoder = nn.TransformerDecoder(layer, c.N)
    stacks = dict(custom_encoder=encoder, custom_decoder=decoder)
    torchs = nn.Transformer(c.d_model, c.h, **stacks, batch_first=True)
    ours = [*model.encoder.layers, *model.decoder.layers]
    for layer, theirs in zip(ours, torchs_layers(torchs), strict=True):
        for p, q in zip(parameters(layer), torchs_parameters(theirs), strict=True):
            q.data = p.detach().clone()
        for name, p in theirs.named_parameters():
            if name.endswith(("in_proj_bias", "out_proj.bias")):
                p.data.zero_()
    return torchs.to(model.embedding.weight.dtype).train(model.training)


def torchs_scores(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """What torch.nn.Transformer makes of a plain model's weights: scores (B, T, V).

    Torch's class is the two stacks alone, so the model's embedding is below and above it.
    """
    ignored = source == model.config.pad_id  # torch's masks: True is not seen
    x = torchs_transformer(model)(
        model.embed(source),
        model.embed(target),
        tgt_mask=~causal_mask(target.shape[1], target.device),
        src_key_padding_mask=ignored,
        memory_key_padding_mask=ignored,
    )
    return model.score(x)


def torchs_layers(torchs: nn.Transformer) -> list[nn.Module]:
    """The encoder's, then the decoder's."""
    return [*torchs.encoder.layers, *torchs.decoder.layers]


def parameters(layer: nn.Module) -> Iterator[Tensor]:
    """A layer's parameters in the order of torchs_parameters; W_Q, W_K, W_V as one."""
    for name in ("self_attention", "cross_attention"):
        attention = getattr(layer, name, None)
        if attention is not None:
            three = (attention.W_Q, attention.W_K, attention.W_V)
            yield torch.cat([matrix.weight for matrix in three])
            yield attention.W_O.weight
    yield from layer.feed_forward.parameters()
    for residual in layer.residuals:
        yield from residual.norm.parameters()


def torchs_parameters(layer: nn.Module) -> Iterator[nn.Parameter]:
    """A layer's of torch: attentions, the two linear layers, the norms."""
    for name in ("self_attn", "multihead_attn"):
        if hasattr(layer, name):
            yield getattr(layer, name).in_proj_weight
            yield getattr(layer, name).out_proj.weight
    for name in ("linear1", "linear2", "norm1", "norm2", "norm3"):
        if hasattr(layer, name):
            yield from getattr(layer, name).parameters()
