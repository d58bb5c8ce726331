"""The plain attention, stacks and model of notebooks 03 to 08 are right by themselves, and equal the
strong forms of `transformer.fast`."""

import inspect

import pytest
import torch
import torch.nn.functional as F
from helpers import close, random

from transformer import attention as plain_attention
from transformer import first_transformer, greedy_search, load, read_corpus
from transformer import model as plain_model
from transformer import positions as plain_positions
from transformer import stacks as plain_stacks
from transformer.core.weights import load_weights
from transformer.embeddings import Embedding
from transformer.fast import attention, embeddings, model, positions, stacks
from transformer.feed_forward import FeedForward
from transformer.models.pretrained import bundled_folder
from transformer.positions import sinusoids

B, S, T, D, H = 2, 5, 4, 12, 3
SIZES = dict(vocab_size=50, d_model=16, d_ff=32, N=2, h=4, P_drop=0.0)

pytestmark = pytest.mark.usefixtures("seed")


def code_lines(thing):
    """Lines of a class or function without docstrings, comments and empty ones."""
    source = inspect.getsource(thing)
    for part in [thing, *vars(thing).values()] if inspect.isclass(thing) else [thing]:
        if inspect.getdoc(part) and callable(part):
            source = source.replace(f'"""{part.__doc__}"""', "")
    lines = [line.split("#")[0].strip() for line in source.splitlines()]
    return sum(map(bool, lines))


@pytest.mark.parametrize(
    "thing, most",
    [
        (plain_attention.attention, 10),
        (plain_attention.MultiHeadAttention, 20),
        (plain_stacks.EncoderLayer, 20),
        (plain_stacks.DecoderLayer, 30),
        (plain_stacks.Stack, 10),
        (plain_model.Transformer, 40),
    ],
)
def test_what_is_plain_is_short(thing, most):
    assert code_lines(thing) <= most


@pytest.mark.parametrize(
    "strong, plain",
    [
        (attention.MultiHeadAttention, plain_attention.MultiHeadAttention),
        (stacks.Residual, plain_stacks.Residual),
        (stacks.EncoderLayer, plain_stacks.EncoderLayer),
        (stacks.DecoderLayer, plain_stacks.DecoderLayer),
        (stacks.Stack, plain_stacks.Stack),
        (embeddings.Embedding, Embedding),
        (positions.SinusoidalPositions, plain_positions.Positions),
        (positions.LearnedPositions, plain_positions.LearnedPositions),
        (model.Transformer, plain_model.Transformer),
        (model.TransformerConfig, plain_model.TransformerConfig),
    ],
    ids=lambda kind: kind.__name__,
)
def test_the_strong_extend_the_plain(strong, plain):
    assert issubclass(strong, plain)


# Attention


def masks():
    causal = plain_attention.causal_mask(S)[S - T :]
    padding = plain_attention.padding_mask(
        torch.tensor([[3, 4, 5, 6, 7], [3, 4, 0, 0, 0]]), pad_id=0
    )
    nothing = causal.clone()
    nothing[1] = False
    return {"none": None, "causal": causal, "padding": padding, "nothing": nothing}


@pytest.mark.parametrize("name", ["none", "causal", "padding", "nothing"])
@pytest.mark.parametrize(
    "attend", [attention.scaled_dot_product_attention, attention.kernel_attention]
)
def test_heads_equal_the_strong(name, attend):
    """Outputs and all gradients, with the same weights."""
    plain = plain_attention.MultiHeadAttention(D, H).double()
    strong = attention.MultiHeadAttention(D, H, attend=attend).double()
    strong.load_state_dict(plain.state_dict())
    x, memory, mask = random(B, T, D), random(B, S, D), masks()[name]
    outputs = [heads(x, memory, memory, mask) for heads in (plain, strong)]
    assert close(*outputs)
    direction = random(B, T, D)
    gradients = [
        torch.autograd.grad(
            (y * direction).sum(), [x, memory, *heads.parameters()], retain_graph=True
        )
        for heads, y in zip((plain, strong), outputs)
    ]
    for ours, theirs in zip(*gradients):
        assert close(ours, theirs)


def test_a_row_that_may_see_nothing_gives_zeros():
    heads = plain_attention.MultiHeadAttention(D, H).double()
    x, memory = random(B, T, D), random(B, S, D)
    q, k, v = random(B, H, T, 4), random(B, H, S, 4), random(B, H, S, 4)
    mask = masks()["nothing"]
    output, weights = plain_attention.attention(q, k, v, mask)
    assert output[:, :, 1].eq(0).all()
    assert weights[:, :, 1].eq(0).all()
    (of_q,) = torch.autograd.grad(output.square().sum(), q)
    assert of_q[:, :, 1].eq(0).all()
    assert of_q[:, :, 0].ne(0).any()
    y = heads(x, memory, memory, mask)
    assert y[:, 1].eq(0).all()
    of_x, of_memory = torch.autograd.grad(y.square().sum(), (x, memory))
    assert of_x[:, 1].eq(0).all()
    assert of_memory.isfinite().all()


# Stacks


def layers(kinds, residuals, attention_kind):
    """A layer of the encoder and one of the decoder."""

    def heads():
        return attention_kind(D, H)

    encoder, decoder = kinds
    return (
        encoder(heads(), FeedForward(D, 20), D, 0.0, residuals).double(),
        decoder(heads(), heads(), FeedForward(D, 20), D, 0.0, residuals).double(),
    )


def pre_norm(d_model, P_drop):
    return stacks.Residual(d_model, P_drop, norm_first=True)


@pytest.mark.parametrize(
    "of_plain, of_strong",
    [
        (plain_stacks.Residual, stacks.Residual),
        (plain_stacks.PreNorm, pre_norm),
    ],
    ids=["post-norm", "pre-norm"],
)
def test_stacks_equal_the_strong(of_plain, of_strong):
    plain = layers(
        (plain_stacks.EncoderLayer, plain_stacks.DecoderLayer),
        of_plain,
        plain_attention.MultiHeadAttention,
    )
    strong = layers(
        (stacks.EncoderLayer, stacks.DecoderLayer),
        of_strong,
        attention.MultiHeadAttention,
    )
    x, memory = random(B, T, D), random(B, S, D)
    causal, padding = plain_attention.causal_mask(T), masks()["padding"]
    direction, found = random(B, T, D), []
    for ours, theirs in zip(plain, strong):
        theirs.load_state_dict(ours.state_dict())
    for stack, (encoder, decoder) in (
        (plain_stacks.Stack, plain),
        (stacks.Stack, strong),
        (stacks.Stack, plain),  # which takes plain layers, too
    ):
        read = stack([encoder, encoder])(memory, padding)
        y = stack([decoder, decoder])(x, read, causal, padding)
        parameters = [*encoder.parameters(), *decoder.parameters()]
        found.append(
            [y, *torch.autograd.grad((y * direction).sum(), [x, memory, *parameters])]
        )
    for ours, theirs, mixed in zip(*found):
        assert close(ours, theirs)
        assert close(ours, mixed)


def test_names_of_parameters():
    names = dict(plain_model.Transformer(config()).named_parameters())
    assert {
        "embedding.weight",
        "encoder.layers.0.self_attention.W_Q.weight",
        "encoder.layers.1.residuals.1.norm.gain",
        "decoder.layers.0.cross_attention.W_O.weight",
        "decoder.layers.1.residuals.2.norm.bias",
        "decoder.layers.1.feed_forward.W_1.bias",
    } <= names.keys()
    strong = model.Transformer(model.TransformerConfig(**SIZES))
    assert names.keys() == dict(strong.named_parameters()).keys()
    first = first_transformer.Transformer(50, 16, 32, 4, 2)
    assert names.keys() == dict(first.named_parameters()).keys()


# Positions and embeddings


def test_positions_equal_the_strong():
    x = torch.randn(B, T, D)
    plain, strong = (
        plain_positions.Positions(D),
        positions.SinusoidalPositions(9, D),
    )
    assert torch.equal(plain(x), strong(x))
    assert torch.equal(plain(x)[:, 2:], strong(x[:, 2:], start=2))
    learned = plain_positions.LearnedPositions(9, D)
    table = positions.LearnedPositions(9, D)
    table.load_state_dict(learned.state_dict())
    assert torch.equal(learned(x), table(x))
    q, rotary = torch.randn(B, H, T, 8), positions.RotaryPositions(9, 8)
    rows = sinusoids(9, 8).float()
    assert torch.equal(plain_positions.rotate(q, rows[:T]), rotary(q))
    assert torch.equal(plain_positions.rotate(q, rows[5 : 5 + T]), rotary(q, start=5))


# The model


def config(**changes):
    return plain_model.TransformerConfig(**{**SIZES, **changes})


def both(**changes):
    """A plain and a strong model with the same weights, at float64."""
    plain = plain_model.Transformer(config(**changes)).double()
    for p in plain.parameters():  # so that gains and biases count
        p.data += 0.1 * torch.randn_like(p)
    strong = model.Transformer(model.TransformerConfig(**{**SIZES, **changes})).double()
    strong.load_state_dict(dict(plain.named_parameters()), strict=False)
    # its table of sines was rounded to float32
    strong.positions.table = sinusoids(1024, 16)
    return plain, strong


def batch(pad_id=0):
    source = torch.randint(8, 50, (3, 6))
    target = torch.randint(8, 50, (3, 5))
    source[1, 4:] = pad_id
    source[2, 1:] = pad_id
    target[1, 3:] = pad_id
    return source, target


def loss_of(one, source, target, pad_id):
    logits = one(source, target[:, :-1])
    return F.cross_entropy(
        logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=pad_id
    )


@pytest.mark.parametrize("pad_id", [0, 7])
def test_the_model_equals_the_strong(pad_id):
    """Outputs, loss and gradients."""
    plain, strong = both(pad_id=pad_id, bos_id=3, eos_id=4)
    source, target = batch(pad_id)
    logits, expected = plain(source, target), strong(source, target)
    assert close(logits, expected)
    memory = plain.encode(source)
    assert close(memory, strong.encode(source))
    assert close(
        plain.decode(target, memory, source), strong.decode(target, memory, source)
    )
    assert close(plain.embed(target), strong.embed(target))
    losses = [loss_of(one, source, target, pad_id) for one in (plain, strong)]
    assert close(*losses)
    gradients = [
        torch.autograd.grad(loss, list(one.parameters()))
        for loss, one in zip(losses, (plain, strong))
    ]
    for ours, theirs in zip(*gradients):
        assert close(ours, theirs)


def test_dropout_is_where_the_strong_has_it():
    plain, strong = both(P_drop=0.3)
    source, target = batch()
    outputs = []
    for one in (plain, strong):
        torch.manual_seed(1)
        outputs.append(one.train()(source, target))
    assert close(*outputs)
    assert not close(plain(source, target), outputs[0])


def test_a_later_token_changes_no_earlier_row():
    plain, _ = both()
    source, target = batch()
    logits = plain(source, target)
    for t in range(1, 5):
        changed = target.clone()
        changed[:, t:] = (changed[:, t:] - 8 + 1) % 42 + 8
        other = plain(source, changed)
        assert torch.equal(other[:, :t], logits[:, :t])
        assert (other != logits).any(dim=-1)[:, t:].all()


def test_padding_changes_nothing():
    plain, _ = both()
    source, target = batch()
    wide = F.pad(source, (0, 9)), F.pad(target, (0, 4))
    assert close(plain(*wide)[:, :5], plain(source, target))


def test_a_batch_equals_its_sentences():
    plain, _ = both()
    source, target = batch()
    together = plain(source, target)
    lengths = (source != 0).sum(dim=1)
    for row, length in enumerate(lengths.tolist()):
        alone = plain(source[row : row + 1, :length], target[row : row + 1])
        assert close(together[row : row + 1], alone)


def test_a_source_of_padding_alone_is_no_nan():
    plain, _ = both()
    source, target = batch()
    source[1] = 0
    loss = loss_of(plain, source, target, 0)
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in plain.parameters())


def test_masks_are_made_where_the_tokens_are():
    one = plain_model.Transformer(config()).to("meta")
    source, target = batch()
    assert one(source.to("meta"), target.to("meta")).device.type == "meta"


def test_it_trains():
    """Sixteen sentences are soon known by heart."""
    one = plain_model.Transformer(config(N=1))
    optimizer = torch.optim.Adam(one.parameters(), lr=0.01)
    source = torch.randint(8, 50, (16, 4))
    target = F.pad(source.flip(1), (1, 0), value=1)
    losses = []
    for _ in range(80):
        loss = loss_of(one, source, target, 0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 3
    assert losses[-1] < 0.5


# The bundled model


@pytest.fixture(scope="module")
def bundled():
    """The strong model that `load` gives, its tokenizer, the plain one and notebook 00's."""
    strong, tokenizer = load()
    weights, _ = load_weights(bundled_folder() / "model.safetensors")
    c = strong.config
    sizes = {name: getattr(c, name) for name in vars(plain_model.TransformerConfig(1))}
    plain = plain_model.Transformer(plain_model.TransformerConfig(**sizes)).eval()
    plain.load_state_dict(weights)
    first = first_transformer.Transformer(c.vocab_size, c.d_model, c.d_ff, c.h, c.N)
    first.load_state_dict(weights)
    return strong, tokenizer, plain, first.eval()


@torch.no_grad()
def test_the_bundled_weights_load_into_each(bundled):
    strong, tokenizer, *others = bundled
    pairs = read_corpus("bundled", "test")[:3]
    for english, german in pairs:
        source = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]])
        target = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(german)]])
        expected = strong(source, target)
        for one in others:
            assert (one(source, target) - expected).abs().max() < 1e-3


@torch.no_grad()
def test_it_translates_greedily_as_the_strong_one(bundled):
    strong, tokenizer, plain, _ = bundled
    for english, _ in read_corpus("bundled", "test")[:5]:
        source = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]])
        output = [tokenizer.bos_id]
        while output[-1] != tokenizer.eos_id and len(output) < 60:
            scores = plain(source, torch.tensor([output]))[0, -1]
            output.append(scores.argmax().item())
        assert greedy_search(strong, source)[0] == output[1:]
