"""LayerNorm, residual connections, layers and stacks, against formulas and torch's own layers."""

import re
from functools import partial
from pathlib import Path

import nbformat
import pytest
import torch
from helpers import close, random
from torch import nn

from transformer.attention import causal_mask
from transformer.experiments.lanes import (
    Networks,
    readable,
    starting_as_lane,
    up_and_down,
)
from transformer.fast.attention import MultiHeadAttention
from transformer.fast.stacks import DecoderLayer, EncoderLayer, Residual, Stack
from transformer.feed_forward import FeedForward
from transformer.first_transformer import Transformer
from transformer.stacks import LayerNorm, PreNorm

D, H, D_FF = 16, 4, 40
pytestmark = pytest.mark.usefixtures("seed")


# Stand-ins for attention and for the feed-forward network


class Average(nn.Module):
    """Stands in for attention: every position gets the plain average of the values it may see.

    query (B, T, d_model), value (B, S, d_model), mask (T, S) or None -> (B, T, d_model).
    """

    def forward(self, query, key, value, mask=None):
        if mask is None:
            seen = value.new_ones(query.shape[1], value.shape[1])
        else:
            seen = mask.to(value.dtype)
        return seen / seen.sum(dim=-1, keepdim=True) @ value


def small_network(d_model):
    """Stands in for any sub-layer: two matrices with a bend between, started as the model's are."""
    network = nn.Sequential(
        nn.Linear(d_model, d_model), nn.ReLU(), nn.Linear(d_model, d_model)
    )
    for layer in (network[0], network[2]):
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    return network


# LayerNorm


def layer_norm(x, gain, bias, eps=1e-5):
    """The formula, written out."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias


def test_layer_norm_by_hand():
    x = torch.tensor([1.0, 2.0, 3.0, 6.0], dtype=torch.float64)  # mean 3, variance 3.5
    norm = LayerNorm(4).double()
    nn.init.constant_(norm.gain, 2)
    nn.init.constant_(norm.bias, 1)
    centred = torch.tensor([-2.0, -1.0, 0.0, 3.0], dtype=torch.float64)
    assert close(norm(x), 2 * centred / (3.5 + 1e-5) ** 0.5 + 1)


def test_layer_norm_of_a_constant_row_is_the_bias():
    norm = LayerNorm(D).double()
    nn.init.normal_(norm.gain)
    nn.init.normal_(norm.bias)
    assert torch.equal(norm(torch.full((D,), 7.0, dtype=torch.float64)), norm.bias)


def test_module_equals_the_formula():
    norm = LayerNorm(D, eps=1e-3).double()
    assert torch.equal(norm.gain, torch.ones(D)) and torch.equal(
        norm.bias, torch.zeros(D)
    )
    nn.init.normal_(norm.gain), nn.init.normal_(norm.bias)
    x = random(2, 3, D)
    assert close(norm(x), layer_norm(x, norm.gain, norm.bias, eps=1e-3))


# Residual


def test_post_norm_is_the_default():
    residual, x, sublayer = (
        Residual(D, P_drop=0.0).double(),
        random(2, 3, D),
        nn.Linear(D, D).double(),
    )
    assert not torch.equal(sublayer(x), x)
    assert close(residual(x, sublayer), layer_norm(x + sublayer(x), 1, 0))


@pytest.mark.parametrize("kind", [partial(Residual, norm_first=True), PreNorm])
def test_pre_norm(kind):
    residual, x = kind(D, P_drop=0.0).double(), random(2, 3, D)
    sublayer = nn.Linear(D, D).double()
    assert close(residual(x, sublayer), x + sublayer(layer_norm(x, 1, 0)))


@pytest.mark.parametrize("norm_first", [False, True])
def test_dropout_stands_on_the_sublayers_output(norm_first):
    """With everything dropped only the path is left: normalised after the sum, or untouched."""
    residual, x = (
        Residual(D, P_drop=1.0, norm_first=norm_first).double(),
        random(2, 3, D),
    )
    assert close(residual(x, torch.ones_like), x if norm_first else layer_norm(x, 1, 0))
    residual.eval()
    assert not close(residual(x, torch.sin), x if norm_first else layer_norm(x, 1, 0))


def test_dropout_is_a_tenth_by_default():
    x = torch.zeros(1000, 64)
    dropped = Residual(64, norm_first=True)(x, torch.ones_like).eq(0).float().mean()
    assert 0.09 < dropped < 0.11


# Whole layers against torch's


def copy_attention(ours, theirs):
    """Give torch's attention our weights; its biases become zero."""
    with torch.no_grad():
        theirs.in_proj_weight.copy_(
            torch.cat([ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight])
        )
        theirs.out_proj.weight.copy_(ours.W_O.weight)
        theirs.in_proj_bias.zero_()
        theirs.out_proj.bias.zero_()


def copy_rest(ours, theirs):
    """Give torch's layer our network's weights and our norms', which are made random first."""
    with torch.no_grad():
        for linear, name in [
            (ours.feed_forward.W_1, "linear1"),
            (ours.feed_forward.W_2, "linear2"),
        ]:
            getattr(theirs, name).load_state_dict(linear.state_dict())
        for i, residual in enumerate(ours.residuals, start=1):
            norm = getattr(theirs, f"norm{i}")
            norm.weight.copy_(residual.norm.gain.normal_())
            norm.bias.copy_(residual.norm.bias.normal_())


def residual(norm_first):
    return partial(Residual, norm_first=norm_first)


def encoder_layer():
    return EncoderLayer(Average(), small_network(D), D, 0.0).double()


def decoder_layer(attention=Average):
    return DecoderLayer(attention(), attention(), small_network(D), D, 0.0).double()


def layers(kind, norm_first):
    """Our layer and torch's, with the same weights, at float64."""
    attentions = [MultiHeadAttention(D, H) for _ in range(2)]
    if kind == "encoder":
        ours = EncoderLayer(
            attentions[0], FeedForward(D, D_FF), D, 0.0, residual(norm_first)
        )
        theirs = nn.TransformerEncoderLayer(
            D, H, D_FF, 0.0, batch_first=True, norm_first=norm_first
        )
    else:
        ours = DecoderLayer(
            *attentions, FeedForward(D, D_FF), D, 0.0, residual(norm_first)
        )
        theirs = nn.TransformerDecoderLayer(
            D, H, D_FF, 0.0, batch_first=True, norm_first=norm_first
        )
        copy_attention(ours.cross_attention, theirs.multihead_attn)
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_rest(ours, theirs)
    return ours.double(), theirs.double()


def gradients_of_ours(layer):
    """Gradients of the parameters that our layer and torch's both have, by name."""
    found = {
        f"{name}.{i}": p.grad
        for i, r in enumerate(layer.residuals, 1)
        for name, p in r.norm.named_parameters()
    }
    for i, linear in enumerate((layer.feed_forward.W_1, layer.feed_forward.W_2), 1):
        found |= {f"W_{i}": linear.weight.grad, f"b_{i}": linear.bias.grad}
    for name in ("self_attention", "cross_attention"):
        if a := getattr(layer, name, None):
            found[name] = torch.cat(
                [
                    a.W_Q.weight.grad,
                    a.W_K.weight.grad,
                    a.W_V.weight.grad,
                    a.W_O.weight.grad,
                ]
            )
    return found


def gradients_of_theirs(layer):
    """The same of torch's layer, under the same names."""
    norms = [
        getattr(layer, f"norm{i}") for i in (1, 2, 3) if hasattr(layer, f"norm{i}")
    ]
    found = {f"gain.{i}": norm.weight.grad for i, norm in enumerate(norms, 1)}
    found |= {f"bias.{i}": norm.bias.grad for i, norm in enumerate(norms, 1)}
    for i, linear in enumerate((layer.linear1, layer.linear2), 1):
        found |= {f"W_{i}": linear.weight.grad, f"b_{i}": linear.bias.grad}
    for name, theirs in (
        ("self_attention", "self_attn"),
        ("cross_attention", "multihead_attn"),
    ):
        if a := getattr(layer, theirs, None):
            found[name] = torch.cat([a.in_proj_weight.grad, a.out_proj.weight.grad])
    return found


def compare(ours, theirs, our_output, their_output, inputs):
    """Outputs, gradients of the inputs, and gradients of every shared parameter."""
    assert close(our_output, their_output)
    direction, of_inputs = torch.randn_like(our_output), []
    for y in (our_output, their_output):
        of_inputs.append(
            torch.autograd.grad((y * direction).sum(), inputs, retain_graph=True)
        )
        (y * direction).sum().backward()
    assert all(close(a, b) for a, b in zip(*of_inputs))
    mine, other = gradients_of_ours(ours), gradients_of_theirs(theirs)
    assert mine.keys() == other.keys()
    for name, gradient in mine.items():
        assert close(gradient, other[name]), name


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layer_equals_torch(norm_first):
    ours, theirs = layers("encoder", norm_first)
    x, real = (
        random(2, 5, D),
        torch.tensor([[True] * 5, [True, True, True, False, False]]),
    )
    compare(
        ours,
        theirs,
        ours(x, real[:, None, None]),
        theirs(x, src_key_padding_mask=~real),
        (x,),
    )


@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_layer_equals_torch(norm_first):
    ours, theirs = layers("decoder", norm_first)
    x, memory, real = (
        random(2, 4, D),
        random(2, 5, D),
        torch.tensor([[True] * 5, [True, True, True, False, False]]),
    )
    mine = ours(x, memory, causal_mask(4), real[:, None, None])
    compare(
        ours,
        theirs,
        mine,
        theirs(x, memory, ~causal_mask(4), memory_key_padding_mask=~real),
        (x, memory),
    )


# Stand-ins: who sees whom


def test_decoder_layer_masks():
    """No output depends on a later target position, or on a source position that is masked."""
    layer = decoder_layer()
    x, memory = random(1, 4, D), random(1, 5, D)
    source_mask = torch.tensor([True, True, True, False, True]).expand(4, 5)
    y = layer(x, memory, causal_mask(4), source_mask)[0]
    for t in range(4):
        own, source = torch.autograd.grad(
            (y[t] * torch.randn(D)).sum(), (x, memory), retain_graph=True
        )
        assert own[0].norm(dim=-1).gt(0).tolist() == [s <= t for s in range(4)]
        assert source[0].norm(dim=-1).gt(0).tolist() == [True, True, True, False, True]


def test_encoder_layer_uses_its_mask():
    layer = encoder_layer()
    x, mask = random(1, 4, D), torch.eye(4, dtype=torch.bool)
    alone = torch.cat([layer(x[:, t : t + 1]) for t in range(4)], dim=1)
    assert close(layer(x, mask), alone) and not close(layer(x), alone)


def test_stacks_are_their_layers_in_order():
    layers, x = [encoder_layer() for _ in range(3)], random(2, 4, D)
    assert torch.equal(Stack(layers)(x), layers[2](layers[1](layers[0](x))))


def test_every_decoder_layer_gets_the_same_memory():
    layers = [decoder_layer() for _ in range(2)]
    x, memory, mask = random(2, 4, D), random(2, 5, D), causal_mask(4)
    by_hand = layers[1](layers[0](x, memory, mask), memory, mask)
    assert torch.equal(Stack(layers)(x, memory, mask), by_hand)


def test_final_norm_comes_last():
    x, norm = random(2, 4, D), LayerNorm(D).double()
    assert close(Stack([], norm)(x), layer_norm(x, 1, 0))
    assert torch.equal(Stack([])(x), x)


class Remembers(Average):
    """Keeps the cache and the position that it was given."""

    def forward(self, query, key, value, mask=None, cache=None, start=None):
        self.cache, self.start = cache, start
        return super().forward(query, key, value, mask)


def test_each_attention_gets_its_own_cache():
    layers, pairs = (
        [decoder_layer(Remembers) for _ in range(2)],
        [("own 0", "cross 0"), ("own 1", "cross 1")],
    )
    Stack(layers)(random(1, 2, D), random(1, 3, D), caches=pairs, start=7)
    for layer in layers:
        assert layer.self_attention.start == 7
        assert layer.cross_attention.start is None
    assert [
        (layer.self_attention.cache, layer.cross_attention.cache) for layer in layers
    ] == pairs
    with pytest.raises(
        ValueError, match="2 layers need as many pairs of caches, not 1"
    ):
        Stack(layers)(random(1, 2, D), random(1, 3, D), caches=pairs[:1])


# What evidence 3 measures with


def test_up_and_down_by_hand():
    """Two layers that double: sizes 1, 2, 4 on the way up, gradients 4, 2, 1 on the way down."""
    found = up_and_down([lambda x: 2 * x] * 2, runs=3, d_model=4, n=500)
    assert (found["size"] / found["size"][0])[:, 0].tolist() == pytest.approx([1, 2, 4])
    assert found["length"][:, 0].tolist() == pytest.approx([4, 2, 1])
    assert found["input"].min() > 0.99 and found["message"].min() > 0.99


def test_what_is_readable():
    x, noise = torch.randn(2, 3, 4000, 5)
    assert readable(x, noise).abs().max() < 0.02
    assert (readable(x, x + noise) - 0.5).abs().max() < 0.05


def test_a_lane_in_the_weights():
    x, runs = torch.randn(2, 6, 5), 2
    torch.manual_seed(1)
    wide = starting_as_lane(runs, 5)
    torch.manual_seed(1)
    torch.testing.assert_close(wide(x), x + Networks(runs, 5)(x))


# What the chapter says of its own pictures


def chapter_outputs():
    """All that chapter 3's cells printed, and its pictures in words."""
    path = Path(__file__).parents[1] / "notebooks" / "03_stacks.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    outputs = [one for cell in cells for one in cell.get("outputs", [])]
    return "\n".join(
        one.text if one.output_type == "stream" else one.data["text/plain"]
        for one in outputs
    )


def numbers_after(text, start):
    """The numbers of the list that follows `start`."""
    listed = re.search(re.escape(start) + r" ((?:-?[\d.]+(?:, )?)+)", text)[1]
    return [float(number.strip(" .")) for number in listed.split(",") if number.strip()]


def test_the_chapter_s_pictures_show_what_its_text_says():
    text = chapter_outputs()
    first, last = map(
        float, re.search(r"without x \+ from (\S+) to ([\d.]+),", text).groups()
    )
    whole = float(re.search(r", with x \+ from \S+ to ([\d.]+\d)", text)[1])
    assert last > 1.5 > whole and first > last
    encoder = text[text.index("layer 2: the memory. The smallest") :]
    assert numbers_after(encoder, "no lanes:")[2] > 0.99
    assert numbers_after(encoder, " lanes:")[2] < 0.5
    before, after = re.search(
        r"before cross-attention (\S+), after it (\S+)", text
    ).groups()
    assert float(before) < 0.5 and float(after) == 1
    bets = re.search(r"first token: (.*?); ninth token: (.*?)\. They", text).groups()
    assert bets[0] == bets[1]
    knower, model = re.findall(r"(?:counts|steps): +([\d.]+)", text)
    assert abs(float(knower) - float(model)) < 0.05
    assert numbers_after(text, "no norms: sizes")[-1] > 10
    assert max(numbers_after(text, " norms: sizes")) < 1.1
    grown = re.findall(
        r"weights ((?:[\d.]+,? ?)+)", text[text.index("Sizes and largest") :]
    )
    normed, free = [
        [float(w.strip(" .")) for w in one.split(",") if w.strip()] for one in grown[:2]
    ]
    assert free[-1] > 0.9 and normed[-1] < normed[0]
    ways = text[text.index("Multiples of the sent gradient") :]
    post, pre, none = (
        numbers_after(ways, name) for name in ("post-norm", "pre-norm", "no lanes")
    )
    assert min(pre) > 0.9 and 0.33 < post[2] < 0.5 and 0.05 < post[-1] < 0.15
    assert max(map(abs, none[1:])) < 0.05
    assert (
        "in all six layers: 15 of 25" in text and "forgotten in one: 25 of 25" in text
    )
    rows = text[text.index("layer 2, layer 6. The smallest") :]
    both, attention, network = (
        numbers_after(rows, f"{name}:")
        for name in ("both lanes", "lane: attention", "lane: network")
    )
    assert both[2] < attention[2] < 0.5 and network[2] > 0.9 and both[3] > 0.8


def test_an_untrained_model_bets_on_the_token_that_it_has_read():
    torch.manual_seed(0)
    model = Transformer(V=13, d_model=64, d_ff=128, h=4, N=2, P_drop=0.0)
    source = torch.tensor([[6, 4, 7, 4, 8, 12, 5, 9]])
    given = torch.tensor([[1, 9, 5, 12, 8, 4, 7, 4, 6]])
    assert torch.equal(model(source, given).argmax(dim=-1), given)


def test_layer_norm_leaves_the_cosines_of_the_chapter_s_table():
    mix = torch.tensor([[0.6, 0.4], [0.4, 0.6]])
    given = torch.tensor([[1.0, 1, -1, -1], [1, -1, 1, -1]])
    norm, found = LayerNorm(4), {}
    for name, layer in (
        ("replaced", lambda x: mix @ x),
        ("replaced, norm", lambda x: norm(mix @ x)),
        ("added", lambda x: x + mix @ x),
        ("added, norm", lambda x: norm(x + mix @ x)),
    ):
        x, found[name] = given, []
        for _ in range(2):
            x = layer(x)
            found[name].append(torch.cosine_similarity(x[0], x[1], dim=0).item())
    assert found["replaced"] == pytest.approx([0.923, 0.997], abs=1e-3)
    assert found["replaced, norm"] == pytest.approx([0.923, 0.997], abs=1e-3)
    assert found["added"] == pytest.approx([0.47, 0.77], abs=5e-3)
    assert found["added, norm"] == pytest.approx([0.47, 0.77], abs=5e-3)
