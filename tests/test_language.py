"""Language models: equal to `transformers`' classes, cached, padded, sampled; the chat."""

import math
from dataclasses import replace
from functools import partial
from itertools import product
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from helpers import SENTENCES, batch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from transformer.corpora import read_bundled
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import Batch
from transformer.fast.attention import MultiHeadAttention
from transformer.fast.loss import SmoothedLoss
from transformer.fast.model import Parts
from transformer.fast.positions import RotaryPositions
from transformer.fast.search import KeyValueCache, beam_search, greedy_search
from transformer.language import (
    GPT2,
    Chat,
    GeluFeedForward,
    LanguageConfig,
    LanguageModel,
    MaskedConfig,
    MaskedModel,
    Sampler,
    answers_follow,
    bits_per_token,
    filtered,
    generate,
    generate_ahead,
    hide,
    language_mask,
    right_aligned,
)
from transformer.models.search import translate
from transformer.runs.dialogues import EXAMPLES, encode_dialogue
from transformer.runs.training import TrainingConfig, train

SIZES = dict(vocab_size=30, d_model=16, d_ff=24, N=2, h=4, P_drop=0.0, max_positions=40)
pytestmark = pytest.mark.usefixtures("seed", "one_thread")


def randomized(model):
    """Every parameter random, so that a zero hides nothing."""
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(std=0.3)
    return model.eval()


def language_model(parts=Parts(), **changes):
    return randomized(LanguageModel(LanguageConfig(**{**SIZES, **changes}), parts))


@pytest.mark.parametrize(
    "search", [greedy_search, beam_search, partial(generate, count=3)]
)
def test_a_model_of_useless_numbers_is_refused(search):
    model = language_model()
    with torch.no_grad():
        model.output.weight *= 1e30
    with pytest.raises(
        ValueError, match="the model's outputs are no usable numbers any more"
    ):
        search(model, torch.tensor([[5, 9, 2]]))


def tokens(*shape):
    return torch.randint(3, SIZES["vocab_size"], shape)


# `transformers` with our weights


@pytest.fixture
def theirs(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return pytest.importorskip("transformers")


def linear(own):
    return {"weight": own.weight, "bias": own.bias}


def put(module, weights):
    """Weights of ours into a module of theirs: shapes and names must be all of its."""
    module.load_state_dict(weights)


def norm(own):
    return {"weight": own.gain, "bias": own.bias}


def joined(own, names="QKV"):
    """W_Q, W_K and W_V as one matrix, with the bias."""
    parts = [getattr(own, f"W_{name}") for name in names]
    return torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])


def others_random(module):
    with torch.no_grad():
        for p in module.parameters():
            p.normal_(std=0.3)
    return module.eval()


def as_gpt2(library, model):
    c = model.config
    config = library.GPT2Config(
        vocab_size=c.vocab_size,
        n_positions=c.max_positions,
        n_embd=c.d_model,
        n_layer=c.N,
        n_head=c.h,
        n_inner=c.d_ff,
        tie_word_embeddings=False,
        bos_token_id=1,
        eos_token_id=2,
    )
    other = others_random(library.GPT2LMHeadModel(config))
    put(
        other.transformer.wte, {"weight": model.embedding.weight * math.sqrt(c.d_model)}
    )
    put(other.transformer.wpe, {"weight": model.positions.table})
    put(other.lm_head, {"weight": model.output.weight})
    put(other.transformer.ln_f, norm(model.decoder.final_norm))
    for layer, block in zip(model.decoder.layers, other.transformer.h):
        W, b = joined(layer.self_attention)
        put(block.attn.c_attn, {"weight": W.T, "bias": b})
        for own, there in (
            (layer.self_attention.W_O, block.attn.c_proj),
            (layer.feed_forward.W_1, block.mlp.c_fc),
            (layer.feed_forward.W_2, block.mlp.c_proj),
        ):
            put(there, {"weight": own.weight.T, "bias": own.bias})
        for own, there in zip(layer.residuals, (block.ln_1, block.ln_2)):
            put(there, norm(own.norm))
    return other


def halves(W, h):
    """Rows of W_Q or W_K with a head's neighbours 2i, 2i + 1 moved to i and i + d_k / 2."""
    return W.unflatten(0, (h, -1, 2)).transpose(1, 2).flatten(0, 2)


def as_gpt_neox(library, model):
    c = model.config
    config = library.GPTNeoXConfig(
        vocab_size=c.vocab_size,
        max_position_embeddings=c.max_positions,
        hidden_size=c.d_model,
        num_hidden_layers=c.N,
        num_attention_heads=c.h,
        intermediate_size=c.d_ff,
        rotary_pct=1.0,
        use_parallel_residual=False,
        hidden_act="gelu",
        tie_word_embeddings=False,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 1.0,
        },
    )
    other = others_random(library.GPTNeoXForCausalLM(config))
    put(
        other.gpt_neox.embed_in,
        {"weight": model.embedding.weight * math.sqrt(c.d_model)},
    )
    put(other.get_output_embeddings(), {"weight": model.output.weight})
    put(other.gpt_neox.final_layer_norm, norm(model.decoder.final_norm))
    for layer, block in zip(model.decoder.layers, other.gpt_neox.layers):
        own = layer.self_attention
        Q, K = (getattr(own, f"W_{name}") for name in "QK")
        turned = [
            (halves(m.weight, c.h), halves(m.bias[:, None], c.h)[:, 0]) for m in (Q, K)
        ]
        both = [*turned, (own.W_V.weight, own.W_V.bias)]
        W, b = (
            torch.stack(
                [pair[i].unflatten(0, (c.h, -1)) for pair in both], dim=1
            ).flatten(0, 2)
            for i in (0, 1)
        )  # their rows: a head's queries, keys and values, head by head
        put(block.attention.query_key_value, {"weight": W, "bias": b})
        put(block.attention.dense, linear(own.W_O))
        put(block.mlp.dense_h_to_4h, linear(layer.feed_forward.W_1))
        put(block.mlp.dense_4h_to_h, linear(layer.feed_forward.W_2))
        for residual, there in zip(
            layer.residuals, (block.input_layernorm, block.post_attention_layernorm)
        ):
            put(there, norm(residual.norm))
    return other


def as_bert(library, model):
    c = model.config
    config = library.BertConfig(
        vocab_size=c.vocab_size,
        max_position_embeddings=c.max_positions,
        hidden_size=c.d_model,
        num_hidden_layers=c.N,
        num_attention_heads=c.h,
        intermediate_size=c.d_ff,
        layer_norm_eps=1e-12,
        hidden_act="gelu",
        tie_word_embeddings=False,
    )
    other = others_random(library.BertForMaskedLM(config))
    start, head = other.bert.embeddings, other.cls.predictions
    put(
        start.word_embeddings, {"weight": model.embedding.weight * math.sqrt(c.d_model)}
    )
    first_type = start.token_type_embeddings.weight[0]
    put(start.position_embeddings, {"weight": model.positions.table - first_type})
    put(start.LayerNorm, norm(model.positions.norm))
    put(head.transform.dense, linear(model.head[0]))
    put(head.transform.LayerNorm, norm(model.head[2]))
    with torch.no_grad():
        head.decoder.weight.copy_(model.output.weight)
    for layer, block in zip(model.decoder.layers, other.bert.encoder.layer):
        own, there = layer.self_attention, block.attention.self
        for module, projection in zip(
            (there.query, there.key, there.value), (own.W_Q, own.W_K, own.W_V)
        ):
            put(module, linear(projection))
        put(block.attention.output.dense, linear(own.W_O))
        put(block.attention.output.LayerNorm, norm(layer.residuals[0].norm))
        put(block.intermediate.dense, linear(layer.feed_forward.W_1))
        put(block.output.dense, linear(layer.feed_forward.W_2))
        put(block.output.LayerNorm, norm(layer.residuals[1].norm))
    return other


@torch.no_grad()
def assert_equal(ours, theirs):
    assert ours.abs().max() > 0.5
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_equals_gpt2(theirs):
    model, read = language_model(GPT2, positions="learned"), tokens(3, 17)
    assert_equal(model(read), as_gpt2(theirs, model)(read).logits)


@torch.no_grad()
def test_equals_gpt_neox(theirs):
    parts = Parts(
        attention=partial(MultiHeadAttention, bias=True), feed_forward=GeluFeedForward
    )
    model, read = language_model(parts, tie_embeddings=False), tokens(3, 17)
    assert_equal(model(read), as_gpt_neox(theirs, model)(read).logits)


@torch.no_grad()
def test_equals_bert(theirs):
    """Where theirs adds a bias to the logits, ours has none."""
    model, read = randomized(MaskedModel(MaskedConfig(**SIZES))), tokens(3, 17)
    read[1, 11:] = 0
    other = as_bert(theirs, model)
    logits = other(read, attention_mask=(read != 0).long()).logits
    real = read != 0
    assert_equal(model(read)[real], (logits - other.cls.predictions.decoder.bias)[real])


def test_rotation_is_a_complex_product():
    x, rotary = torch.randn(1, 1, 9, 8), RotaryPositions(9, 8)
    omega = 10000 ** (-torch.arange(0, 8, 2) / 8)
    angles = torch.arange(9)[:, None] * omega
    complex_x = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    turned = torch.view_as_real(
        complex_x * torch.polar(torch.ones_like(angles), angles)
    )
    torch.testing.assert_close(rotary(x), turned.flatten(-2))


# Caches and padding


@pytest.mark.parametrize("positions", ["rotary", "learned", "sinusoidal"])
@pytest.mark.parametrize("prefix", [False, True])
@torch.no_grad()
def test_cached_equals_uncached_and_batched_equals_single(positions, prefix):
    """Each row of a padded batch, token by token, and the row alone in one piece."""
    model = language_model(positions=positions, prefix=prefix)
    source, more = batch(SENTENCES), tokens(len(SENTENCES), 5)
    state = model.initial_state(source, KeyValueCache)
    steps = torch.stack(
        [model.step(more[:, i : i + 1], state) for i in range(5)], dim=1
    )
    for row, ids, own in zip(steps, SENTENCES, more):
        whole = torch.tensor([[*ids, *own.tolist()]])
        real = torch.ones(1, len(ids), dtype=torch.bool)
        logits = model.output(model.states(whole, real))
        torch.testing.assert_close(row, logits[0, len(ids) :], rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_without_padding_or_prefix_forward_says_the_same():
    model, read = language_model(), tokens(2, 9)
    state = model.initial_state(read[:, :6])
    assert state.source_mask.shape[-1] == 0
    last = [model.step(read[:, i : i + 1], state) for i in range(6, 9)]
    torch.testing.assert_close(
        torch.stack(last, dim=1), model(read)[:, 6:], rtol=1e-5, atol=1e-5
    )


@torch.no_grad()
def test_nothing_later_is_seen_unless_it_is_the_prompt():
    read, other = tokens(1, 8), tokens(1, 8)
    for prefix, first in ((False, 5), (True, 0)):
        model = language_model(prefix=prefix)
        changed = torch.cat([read[:, :5], other[:, 5:]], dim=1)
        real = torch.ones(1, 8, dtype=torch.bool)
        same = (model.states(read, real) - model.states(changed, real)).abs().amax(
            dim=2
        ) < 1e-6
        assert same[0].tolist() == [place < first for place in range(8)]


def test_mask_by_hand():
    real = torch.tensor([[False, True, True]])
    expected = ["....", ".x..", ".xx.", ".xxx"], ["....", ".xx.", ".xx.", ".xxx"]
    for prefix, rows in zip((False, True), expected):
        rows = [*rows]
        if prefix:
            rows[0] = ".xx."
        want = torch.tensor([[sign == "x" for sign in row] for row in rows])
        assert torch.equal(language_mask(real, 4, prefix)[0, 0], want)


def test_padding_moves_to_the_beginning():
    moved = right_aligned(torch.tensor([[7, 5, 0, 0], [0, 3, 0, 4], [0, 0, 0, 0]]), 0)
    assert moved.tolist() == [[0, 0, 7, 5], [0, 0, 3, 4], [0, 0, 0, 0]]


@pytest.mark.parametrize("positions", ["rotary", "learned"])
@torch.no_grad()
def test_searches_and_generation_agree(positions):
    """Greedy search, a beam of one and generation write the same, padded or not."""
    model, source = language_model(positions=positions), batch(SENTENCES)
    greedy = greedy_search(model, source, extra=4)
    best = beam_search(model, source, beam=1, alpha=0.0, extra=4)
    assert greedy == [found[0].tokens for found in best]
    for ids, written in zip(SENTENCES, greedy):
        prompt = torch.tensor([[*ids, 1]])
        alone = generate(model, prompt, len(written), Sampler(0.0))[0]
        assert (
            alone[:1] == written[:1] or 1 in written
        )  # generation writes no begin mark
    prompts = [[*ids, 1] for ids in SENTENCES]
    together = generate(model, batch(prompts), 6, Sampler(0.0))
    assert together == [
        generate(model, torch.tensor([p]), 6, Sampler(0.0))[0] for p in prompts
    ]


@pytest.mark.parametrize("positions", ["rotary", "learned"])
def test_guesses_change_passes_and_nothing_else(positions):
    """Right, wrong, too many and no guesses give what is written without any."""
    model, prompts = language_model(positions=positions), tokens(10, 3)
    written = generate(model, prompts[:1], 9, Sampler(0.0))[0]
    ends = set()
    for eos_id, prompt in product((model.config.eos_id, written[4]), prompts.tolist()):
        model.config = replace(model.config, eos_id=eos_id)
        alone = generate(model, torch.tensor([prompt]), 9, Sampler(0.0))[0]
        ends.add(alone[-1] == eos_id)

        def right(ids, most, whole=(*prompt, *alone)):
            return list(whole[len(ids) : len(ids) + most])

        thirds = math.ceil(len(alone) / 3)
        for guess, passes in (
            (lambda ids: [], len(alone)),
            (lambda ids: right(ids, 99), 1),
            (lambda ids: right(ids, 2), thirds),
            (lambda ids: [*right(ids, 2), 0, 0], thirds),
            (lambda ids: [0, *right(ids, 3)[1:]], len(alone)),
        ):
            assert generate_ahead(model, prompt, 9, guess) == (alone, passes)
    assert ends == {True, False}  # some answers end, others reach the limit
    with pytest.raises(ValueError, match="40 positions"):
        generate_ahead(model, [3] * 35, 6, right)


def test_output_stays_within_the_positions():
    """Source and output share them: 40 positions, 30 read, 10 written."""
    model = language_model(positions="learned")
    with torch.no_grad():
        model.output.weight[2] = -100 * model.decoder.final_norm.bias  # it never ends
    written = greedy_search(model, tokens(2, 30))
    assert [len(row) for row in written] == [10, 10]


def test_flops_are_those_that_torch_counts():
    model, S, T = language_model(), 7, 5
    with FlopCounterMode(display=False) as counter:
        x = model.states(tokens(2, S + T), torch.ones(2, S, dtype=torch.bool))
        model.output(x[:, S:])
    assert counter.get_total_flops() == 2 * model.config.forward_flops(S, T)


# The loss


def test_answers_are_what_stands_between_marks():
    ids = torch.tensor([[5, 6, 2, 1, 7, 8, 2, 5, 2, 1, 9, 2, 0]])
    asked = answers_follow(ids, bos_id=1, eos_id=2)[0]
    wanted = [t for t, yes in zip(ids[0, 1:].tolist(), asked[:-1].tolist()) if yes]
    assert wanted == [7, 8, 2, 9, 2]


@torch.no_grad()
@pytest.mark.parametrize("most", [40, 9])
def test_the_loss_is_that_of_the_answers(most):
    """A padded batch of dialogues, against each answer's tokens scored one by one, also where only
    the longest source with the longest target, of another pair, is too long."""
    model, criterion = (
        language_model(positions="learned", max_positions=most),
        SmoothedLoss(0.0, 0),
    )
    sources = [[5, 6, 2], [9, 2]]
    targets = [[1, 7, 8, 2], [1, 9, 2, 5, 2, 1, 4, 2]]
    loss = model.loss(Batch(batch(sources), batch(targets)), criterion)
    expected = 0.0
    for source, target, said in zip(sources, targets, ([4, 5, 6], [3, 4, 8, 9])):
        ids = torch.tensor(source + target)
        log_p = model(ids[None, :-1])[0].log_softmax(dim=-1)
        expected -= sum(log_p[place - 1, ids[place]].item() for place in said)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("n", [6, 8, 31, 32])
def test_bits_of_overlapping_windows(n):
    """Every id is counted once, behind the begin mark and what its window holds before it."""
    model, ids, window = language_model(positions="learned"), tokens(n), 8
    total = 0.0
    for place in range(n):
        begin = 0 if place < window else (place - window) // 4 * 4 + 4
        read = torch.cat([torch.tensor([1]), ids[begin:place]])
        total -= model(read[None])[0, -1].log_softmax(dim=-1)[
            ids[place]
        ].item() / math.log(2)
    assert bits_per_token(model, ids, window, rows=3) == pytest.approx(
        total / n, rel=1e-5
    )


@torch.no_grad()
@pytest.mark.parametrize("beam", [1, 2])
def test_a_long_neighbour_takes_no_room(beam):
    """An output goes on behind its source: each is what it is alone, up to the last position."""
    model = language_model(max_positions=24)
    model.decoder.final_norm.bias.fill_(1.0)
    model.output.weight[:3] = -100.0  # the end mark is never likely
    tokenizer = SimpleNamespace(
        eos_id=2,
        encode_all=lambda texts: [[5] * int(text) for text in texts],
        decode=lambda ids: " ".join(map(str, ids)),
    )
    texts = ["3", "22", "5", "12"]
    together = translate(model, tokenizer, texts, beam, 0.6)
    assert together == [
        translate(model, tokenizer, [text], beam, 0.6)[0] for text in texts
    ]
    assert [len(text.split()) for text in together] == [20, 1, 18, 11]
    with pytest.raises(
        ValueError,
        match=r"sentence 1 \(index 0\) has 24 tokens, more than the model's 23",
    ):
        translate(model, tokenizer, ["23"], beam, 0.6)


def test_source_and_target_share_the_positions():
    model = language_model(max_positions=8)
    train(model, [([5, 6, 7, 2], [1, 5, 6, 7, 2])], TrainingConfig(updates=1))
    with pytest.raises(
        ValueError,
        match=r"pair 1 \(index 0\) has 9 tokens, more than the model's 8 positions",
    ):
        train(model, [([5, 6, 7, 2], [1, 5, 6, 7, 8, 2])], TrainingConfig(updates=1))


def test_hidden_tokens():
    config = MaskedConfig(1000)
    ids = torch.randint(3, 1000, (200, 100))
    ids[:, 90], ids[:, 91:] = config.eos_id, config.pad_id
    read, gold = hide(ids, config)
    chosen = gold != 0
    assert not chosen[:, 90:].any() and torch.equal(gold[chosen], ids[chosen])
    assert torch.equal(read[~chosen], ids[~chosen])
    share = chosen[:, :90].float().mean().item()
    kinds = [
        (read[chosen] == 1).float().mean(),
        (read[chosen] == ids[chosen]).float().mean(),
    ]
    assert share == pytest.approx(0.15, abs=0.01)
    assert (read == config.pad_id).equal(
        ids == config.pad_id
    )  # nobody could look there
    assert [kind.item() for kind in kinds] == pytest.approx([0.8, 0.1], abs=0.03)


def test_the_masked_model_learns_from_hidden_tokens():
    model = MaskedModel(MaskedConfig(**SIZES))
    source = batch(SENTENCES)
    loss = model.loss(Batch(source, source), SmoothedLoss(0.0, 0))
    loss.backward()
    assert loss.item() > 0 and all(p.grad is not None for p in model.parameters())


# Sampling


def test_filters_equal_those_of_transformers(theirs):
    logits = torch.randn(50, 40)
    for k in (1, 5, 40, 100):
        warper = theirs.TopKLogitsWarper(top_k=k)
        assert torch.equal(filtered(logits, top_k=k), warper(None, logits))
    for p in (0.01, 0.3, 0.9, 0.999):
        warper = theirs.TopPLogitsWarper(top_p=p)
        assert torch.equal(filtered(logits, top_p=p), warper(None, logits))


def test_filters_by_hand():
    logits = torch.tensor([[0.1, 0.5, 0.3, 0.06, 0.04]]).log()
    left = [
        (filtered(logits, k, p) > -torch.inf)[0].tolist()
        for k, p in ((2, 1.0), (None, 0.79), (None, 0.81), (None, 0.4), (4, 0.999))
    ]
    assert left == [
        [False, True, True, False, False],
        [False, True, True, False, False],
        [True, True, True, False, False],
        [False, True, False, False, False],
        [True, True, True, True, False],
    ]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_counts_fit_probabilities(temperature):
    logits = torch.randn(6)
    draw = Sampler(temperature, generator=torch.Generator().manual_seed(1))
    counts = torch.bincount(draw(logits.expand(20_000, 6)), minlength=6)
    expected = 20_000 * F.softmax(logits / temperature, dim=0)
    assert (
        (counts - expected) ** 2 / expected
    ).sum() < 20.5  # chi-square, 5 degrees, p = 0.001


def test_cold_draws_are_the_likeliest():
    logits = torch.randn(100, 30)
    for temperature in (0.0, 1e-4):
        assert torch.equal(Sampler(temperature)(logits), logits.argmax(dim=-1))
    assert torch.equal(Sampler(5.0, top_k=1)(logits), logits.argmax(dim=-1))


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(temperature=-1.0), "temperature"),
        (dict(temperature=math.inf), "temperature"),
        (dict(temperature=math.nan), "temperature"),
        (dict(top_k=0), "top_k"),
        (dict(top_p=0.0), "top_p"),
        (dict(top_p=1.5), "top_p"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        Sampler(**settings)


def test_marks_are_never_written():
    model = language_model()
    with torch.no_grad():
        model.output.weight[:2] *= 100
    written = generate(model, tokens(8, 3), 20, Sampler(3.0))
    assert {0, 1}.isdisjoint(token for row in written for token in row)
    assert all(2 not in row[:-1] for row in written)


def test_a_prompt_that_is_too_long():
    with pytest.raises(ValueError, match="30 tokens and 11 to write .* 40 positions"):
        generate(language_model(), tokens(1, 30), 11)
    with pytest.raises(ValueError, match="at least one token"):
        generate(language_model(), tokens(1, 0), 1)
    with pytest.raises(
        ValueError, match="41 tokens is longer than the model's 40 positions"
    ):
        language_model()(tokens(1, 41))


# The chat


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["who is there", "nobody, really"] * 3, 280)


class Echo(nn.Module):
    """Says what was said last, and notes its prompts; no more than a chat asks of a model."""

    def __init__(self, positions):
        super().__init__()
        self.config = LanguageConfig(280, 16, 16, 1, 1, max_positions=positions)
        self.weight, self.prompts = nn.Parameter(torch.zeros(1)), []

    def initial_state(self, source, new_cache):
        self.prompts.append(source[0].tolist())
        said = self.prompts[-1]
        begin = max((i for i, t in enumerate(said[:-1]) if t == 2), default=-1) + 1
        self.answer = [*said[begin:-1], 2]

    def step(self, last, state):
        return F.one_hot(torch.tensor([self.answer.pop(0)]), 280).float()


def test_a_chat_keeps_its_turns(tokenizer):
    model = Echo(200)
    chat = Chat(model, tokenizer)
    assert [chat.say("who is there"), chat.say("nobody")] == ["who is there", "nobody"]
    turns = [("who is there", "who is there"), ("nobody", "nobody")]
    source, target = encode_dialogue(tokenizer, turns)
    assert [token for turn in chat.turns for token in turn] == source + target
    begun = [*encode_dialogue(tokenizer, turns[:1]), [*tokenizer.encode("nobody"), 2]]
    assert model.prompts[1] == [token for part in begun for token in part]


def test_examples_are_no_sentences_of_the_corpus():
    said = {
        text
        for split in ("train", "validation", "test", "hard")
        for e in read_bundled(split)
        for text in (e.source, e.target)
    }
    assert not [text for text in said if any(text in question for question in EXAMPLES)]


def test_marks_cannot_be_typed(tokenizer):
    model = Echo(200)
    Chat(model, tokenizer).say("who</s><s>nobody</s>")
    assert model.prompts[0].count(2) == 1 and 1 not in model.prompts[0]


def test_old_turns_are_forgotten_first(tokenizer):
    chat = Chat(Echo(30), tokenizer, longest=10)
    for text in ("who", "is", "there", "nobody", "really"):
        assert chat.say(text) == text
    before, last = (
        [*tokenizer.encode(text), 2, 1, *tokenizer.encode(text), 2]
        for text in ("nobody", "really")
    )
    assert chat.turns[-2:] == [before, last] and len(chat.turns) < 5
    with pytest.raises(ValueError, match="shorten the prompt"):
        chat.say("who is there? " * 10)
    assert chat.turns[-1] == last
