"""The convolutional encoder-decoder: a loop over windows, reach through gradients, caches, training, search."""

import math

import pytest
import torch
import torch.nn.functional as F
from helpers import SENTENCES, batch
from helpers import assert_close as close
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from transformer.convolution import Convolution, GatedBlock, dependence, glu
from transformer.core.state import Cache
from transformer.corpora import read_corpus
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import encode_pairs
from transformer.decoding import length_penalty
from transformer.fast.convolution import (
    ConvolutionalEncoderDecoder,
    ConvolutionConfig,
    convolve_on,
)
from transformer.fast.search import beam_search, greedy_search
from transformer.runs.training import TrainingConfig, train, validation_loss


def model_of(vocab_size=12, seed=3, **changes):
    """A random model in float64 whose probabilities are far from even, so that searches have something to find."""
    torch.manual_seed(seed)
    sizes = dict(d_model=16, N=2, P_drop=0.0, max_positions=40)
    model = ConvolutionalEncoderDecoder(
        ConvolutionConfig(vocab_size, **{**sizes, **changes})
    )
    with torch.no_grad():
        model.positions.table *= 10
    return model.double().eval()


# Gate and window


def test_glu_is_torchs_and_the_formula():
    x = torch.randn(3, 4, 10, dtype=torch.float64)
    close(glu(x), F.glu(x, dim=-1))
    by_hand = [
        x[1, 2, i].item() / (1 + math.exp(-x[1, 2, i + 5].item())) for i in range(5)
    ]
    assert glu(x)[1, 2].tolist() == pytest.approx(by_hand)


@pytest.mark.parametrize(
    "k, causal", [(1, False), (3, False), (5, False), (1, True), (2, True), (3, True)]
)
def test_a_convolution_is_a_loop_over_windows(k, causal):
    layer, x = (
        Convolution(4, 6, k, causal).double(),
        torch.randn(2, 7, 4, dtype=torch.float64),
    )
    before = k - 1 if causal else k // 2
    for b in range(2):
        for t in range(7):
            window = [(j, t - before + j) for j in range(k) if 0 <= t - before + j < 7]
            close(
                layer(x)[b, t],
                layer.conv.bias
                + sum(layer.conv.weight[:, :, j] @ x[b, s] for j, s in window),
            )


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_a_cached_convolution_equals_the_whole(k):
    layer, x, cache = (
        Convolution(4, 6, k, causal=True).double(),
        torch.randn(2, 9, 4).double(),
        Cache(),
    )
    close(
        torch.cat(
            [convolve_on(layer, part, cache) for part in x.split([1, 1, 3, 4], dim=1)],
            dim=1,
        ),
        layer(x),
    )
    assert torch.equal(cache.tensors[0], x[:, 9 - k + 1 :])


def test_numbers_keep_their_size():
    torch.manual_seed(0)
    x = torch.randn(8, 200, 64)
    for causal in (True, False):
        assert glu(Convolution(64, 128, 3, causal)(x)).std().item() == pytest.approx(
            1, abs=0.05
        )
        stack = nn.Sequential(*[GatedBlock(64, 3, causal) for _ in range(12)])
        assert stack(x).std().item() == pytest.approx(1, abs=0.2)
        dropped = Convolution(64, 128, 3, causal, P_drop=0.5)
        assert glu(dropped(F.dropout(x, 0.5))).std().item() == pytest.approx(1, abs=0.1)


def test_a_block_is_its_formula():
    block, x = (
        GatedBlock(6, 3, causal=False).double().eval(),
        torch.randn(2, 5, 6).double(),
    )
    conv = block.convolution.conv
    theirs = F.glu(
        F.conv1d(x.transpose(1, 2), conv.weight, conv.bias, padding=1), dim=1
    )
    close(block(x), (x + theirs.transpose(1, 2)) * 0.5**0.5)


# Reach


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_stack_sees_depth_times_k_minus_1(k, depth):
    """Exactly zero beyond, and above zero within, for every output of 21 positions."""
    x, distance = torch.randn(1, 21, 8), torch.arange(21)[:, None] - torch.arange(21)
    centred = dependence(
        nn.Sequential(*[GatedBlock(8, k, False) for _ in range(depth)]), x
    )
    assert torch.equal(centred > 0, distance.abs() <= depth * (k - 1) // 2)
    causal = dependence(
        nn.Sequential(*[GatedBlock(8, k, True) for _ in range(depth)]), x
    )
    assert torch.equal(causal > 0, (distance >= 0) & (distance <= depth * (k - 1)))


def test_dependence_is_the_size_of_the_gradient():
    W = torch.randn(6, 6, dtype=torch.float64)
    torch.manual_seed(0)
    norms = dependence(lambda x: W @ x, torch.randn(1, 6, 1, dtype=torch.float64))
    torch.manual_seed(0)
    torch.randn(1, 6, 1, dtype=torch.float64)
    close(norms, (W * torch.randn(1, 6, 1, dtype=torch.float64)[0]).abs())


@pytest.mark.parametrize("k", [1, 3])
def test_the_model_is_causal_and_sees_all_of_the_source(k):
    model, seen = model_of(k=k), []
    model.embedding.register_forward_hook(
        lambda module, inputs, output: seen.append(output)
    )
    logits = model(
        torch.tensor([[4, 5, 6, 7, 2]]), torch.tensor([[1, 8, 9, 10, 11, 3, 4, 5]])
    )
    for t in range(8):
        to_source, to_target = torch.autograd.grad(
            logits[0, t].square().sum(), seen, retain_graph=True
        )
        within = (torch.arange(8) <= t) & (torch.arange(8) >= t - 2 * (k - 1))
        assert torch.equal(to_target[0].abs().sum(dim=1) > 0, within)
        assert to_source[0].abs().sum(dim=1).gt(0).all()


# The model


def reference(model, source, target):
    """The model on one sentence pair, step by step with torch's functions (Gehring et al., 2017, Section 3)."""
    half, d = 0.5**0.5, model.config.d_model

    def conv(layer, x, left, right):
        return F.glu(
            F.conv1d(F.pad(x.T, (left, right)), layer.conv.weight, layer.conv.bias),
            dim=0,
        ).T

    e = model.embedding.weight[source] * d**0.5 + model.positions.table[: len(source)]
    z = e
    for block in model.encoder.blocks:
        z = (z + conv(block.convolution, z, 1, 1)) * half
    x = g = (
        model.embedding.weight[target] * d**0.5 + model.positions.table[: len(target)]
    )
    for layer in model.decoder.layers:
        h = conv(layer.block.convolution, x, 2, 0)
        q = (layer.score.W(h) + g) * half
        context = F.scaled_dot_product_attention(
            q[None], z[None], ((z + e) * half)[None]
        )[0]
        x = (x + (h + context) * half) * half
    return x @ model.embedding.weight.T


def test_the_model_is_its_description():
    model, target = model_of(), torch.randint(3, 12, (6, 5))
    logits = model(batch(), target)
    for i, row in enumerate(SENTENCES):
        close(logits[i], reference(model, torch.tensor(row), target[i]))


def test_padding_changes_nothing():
    model, source, target = model_of(), batch(), torch.randint(3, 12, (6, 5))
    logits = model(source, target)
    close(model(F.pad(source, (0, 4)), F.pad(target, (0, 3)))[:, :5], logits)
    for i, row in enumerate(SENTENCES):
        close(model(torch.tensor([row]), target[i : i + 1])[0], logits[i])


@pytest.mark.parametrize("k", [1, 3, 5])
def test_step_by_step_equals_the_whole(k):
    model, source, target = model_of(k=k), batch(), torch.randint(3, 12, (6, 7))
    state, logits, end = model.initial_state(source), model(source, target), 0
    for part in target.split([1, 1, 3, 2], dim=1):
        end += part.shape[1]
        close(model.step(part, state), logits[:, end - 1])


def test_rows_of_a_state_are_dropped_repeated_and_reordered():
    model, source, target = model_of(), batch(), torch.randint(3, 12, (6, 4))
    state, rows = model.initial_state(source), torch.tensor([3, 0, 0, 5])
    model.step(target[:, :3], state)
    state.select(rows)
    close(model.step(target[rows, 3:], state), model(source[rows], target[rows])[:, 3])


def test_dropout_is_where_it_should_be():
    """On the vectors below, on each window's input, and on the output; none in evaluation."""
    model, source, target = model_of(P_drop=0.5), batch(), torch.randint(3, 12, (6, 5))
    assert torch.equal(model(source, target), model(source, target))
    calls = []
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.register_forward_hook(lambda *_: calls.append(1))
    model.train()
    assert not torch.equal(model(source, target), model(source, target))
    assert len(calls) == 2 * (3 + 2 * model.config.N)


def test_dropout_in_a_block_is_on_the_window_alone():
    """Where all of its input is dropped, the bias and the path around are left."""
    block, x = (
        GatedBlock(8, 3, causal=True, P_drop=0.5).double(),
        torch.randn(2, 5, 8).double(),
    )
    block.dropout.p = 1.0
    nn.init.normal_(block.convolution.conv.bias)
    close(block(x), (x + glu(block.convolution.conv.bias)) * 0.5**0.5)


def test_flops_are_those_torch_counts():
    model, S, T = model_of(k=5), 6, 4
    with FlopCounterMode(display=False) as counter:
        model(torch.ones(1, S, dtype=torch.long), torch.ones(1, T, dtype=torch.long))
    assert counter.get_total_flops() == model.config.forward_flops(S, T)


# Search and training


def test_searches_with_caches_equal_those_without():
    model, source = model_of(), batch()
    greedy = greedy_search(model, source, extra=12)
    assert greedy == [
        greedy_search(model, torch.tensor([row]), extra=12)[0] for row in SENTENCES
    ]
    assert greedy == [
        some[0].tokens
        for some in beam_search(model, source, beam=1, alpha=0.0, extra=12)
    ]
    assert len({tuple(tokens) for tokens in greedy}) > 1


def test_beams_have_true_scores():
    model = model_of()
    together = beam_search(model, batch(), beam=3, extra=8, n_best=3)
    for row, some in zip(SENTENCES, together):
        alone = beam_search(model, torch.tensor([row]), beam=3, extra=8, n_best=3)[0]
        assert [h.tokens for h in alone] == [h.tokens for h in some]
        for hypothesis in some:
            tokens = hypothesis.tokens
            log_p = model(torch.tensor([row]), torch.tensor([[1, *tokens[:-1]]]))[
                0
            ].log_softmax(dim=-1)
            score = log_p[range(len(tokens)), tokens].sum().item() / length_penalty(
                len(tokens)
            )
            assert hypothesis.score == pytest.approx(score, abs=1e-9)


def test_the_loop_trains_it(tmp_path):
    """The first pairs of the bundled corpus, through 14's loop, stopped and resumed, and searched by 15."""
    pairs = read_corpus("bundled", "train")[:40]
    tokenizer = Tokenizer.train(
        [sentence for pair in pairs for sentence in pair], vocab_size=300
    )
    encoded = encode_pairs(tokenizer, pairs)
    torch.manual_seed(1)
    model = ConvolutionalEncoderDecoder(
        ConvolutionConfig(tokenizer.vocab_size, d_model=32, N=2, max_positions=100)
    )
    before = validation_loss(model, encoded)["validation_loss"]
    settings = dict(batch_tokens=400, warmup=10, validate_every=6)
    log = train(model, encoded, TrainingConfig(updates=12, **settings), tmp_path)
    assert [row["update"] for row in log] == [6, 12] and log[0]["utilisation"] >= 0
    train(model, encoded, TrainingConfig(updates=18, **settings), tmp_path, resume=True)
    assert validation_loss(model, encoded)["validation_loss"] < before - 0.5
    outputs = beam_search(model, torch.tensor([encoded[0][0]]), beam=2, extra=5)
    assert 1 <= len(outputs[0][0].tokens) <= len(encoded[0][0]) + 5


# Bad input


def test_bad_settings_and_ids_get_a_sentence():
    with pytest.raises(
        ValueError, match="k must be odd, so that a window has a middle, not 4"
    ):
        ConvolutionConfig(50, k=4)
    with pytest.raises(
        ValueError, match="k must be odd, so that a window has a middle, not 2"
    ):
        GatedBlock(8, 2, causal=False)
    with pytest.raises(ValueError, match="N must be at least 1, not 0"):
        ConvolutionConfig(50, N=0)
    model = model_of()
    with pytest.raises(
        ValueError, match="token id 12 is outside the vocabulary of 12 types"
    ):
        model(torch.tensor([[3, 12]]), torch.tensor([[1]]))
    with pytest.raises(ValueError, match="source sentence 2 is empty"):
        model.encode(torch.tensor([[3, 2], [0, 0]]))
    with pytest.raises(
        ValueError,
        match="a sentence of 41 tokens is longer than the model's 40 positions",
    ):
        model.encode(torch.ones(1, 41, dtype=torch.long))


def test_a_cached_step_past_the_last_position_is_refused():
    model, source = model_of(max_positions=3), torch.tensor([[3, 2]])
    state = model.initial_state(source)
    for _ in range(3):
        model.step(torch.tensor([[4]]), state)
    with pytest.raises(
        ValueError,
        match="a sentence of 4 tokens is longer than the model's 3 positions",
    ):
        model.step(torch.tensor([[4]]), state)
