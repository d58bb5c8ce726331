"""The recurrent encoder-decoder: torch's layers, attention as a loop, caches, padding, training, search."""

import math

import pytest
import torch
from helpers import SENTENCES, batch
from helpers import assert_close as close
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from transformer.core.state import Cache
from transformer.corpora import read_corpus
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import encode_pairs
from transformer.decoding import length_penalty
from transformer.fast.recurrence import (
    AdditiveScore,
    RecurrenceConfig,
    RecurrentEncoderDecoder,
    go_on,
    sentence_lengths,
)
from transformer.fast.search import beam_search, greedy_search
from transformer.recurrence import (
    blend,
    gradient_by_distance,
    gru_step,
    lstm_step,
    summary,
)
from transformer.runs.training import TrainingConfig, train, validation_loss
from transformer.teaching.toys import (
    LinearRecurrence,
    learn_to_reverse,
    rows_to_reverse,
)

KINDS = [("gru", True), ("gru", False), ("lstm", True), ("lstm", False)]
NAMES = [
    f"{cell}-{'attention' if attention else 'bottleneck'}" for cell, attention in KINDS
]
each_kind = pytest.mark.parametrize("cell, attention", KINDS, ids=NAMES)


def model_of(cell="gru", attention=True, vocab_size=12, seed=3, **changes):
    """A random model in float64 whose probabilities are far from even, so that searches have something to find."""
    torch.manual_seed(seed)
    sizes = dict(
        cell=cell, attention=attention, d_model=16, N=2, P_drop=0.0, max_positions=40
    )
    model = RecurrentEncoderDecoder(
        RecurrenceConfig(vocab_size, **{**sizes, **changes})
    )
    with torch.no_grad():
        model.embedding.weight *= 4
    return model.double().eval()


@each_kind
def test_the_decoder_is_its_description(cell, attention):
    """Logits sentence by sentence: states from torch's layer, begun as the text says, a look, one joining layer."""
    model, source, target = (
        model_of(cell, attention),
        batch(),
        torch.randint(3, 12, (6, 5)),
    )
    memory, logits, decoder = model.encode(source), model(source, target), model.decoder
    for i, row in enumerate(SENTENCES):
        m = memory[i, : len(row)] if attention else memory[i]
        first = torch.tanh(decoder.start(m[0])).view(decoder.vectors, 2, 1, 16)
        y = decoder.layers(
            model.embed(target[i : i + 1]),
            first[0] if cell == "gru" else (first[0], first[1]),
        )[0][0]
        if attention:
            scores = decoder.score.w(
                torch.tanh(decoder.score.W(y)[:, None] + decoder.score.U(m))
            )[..., 0]
        context = scores.softmax(-1) @ m if attention else m.expand(5, -1)
        close(
            torch.tanh(decoder.join(torch.cat([y, context], -1)))
            @ model.embedding.weight.T,
            logits[i],
        )


@each_kind
def test_dropout_is_where_it_should_be(cell, attention):
    """On what either half reads and between its layers, and on the decoder's output; none in evaluation."""
    model, source, target = (
        model_of(cell, attention, P_drop=0.5),
        batch(),
        torch.randint(3, 12, (6, 5)),
    )
    calls = []
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.register_forward_hook(lambda *_: calls.append(1))
    assert torch.equal(model(source, target), model(source, target))
    assert model.encoder.layers.dropout == model.decoder.layers.dropout == 0.5
    calls.clear()
    assert not torch.equal(model.train()(source, target), model(source, target))
    assert len(calls) == 2 * 3


# One step


def test_gru_step_is_torchs():
    torch.manual_seed(0)
    layer, x = (
        nn.GRU(5, 7, batch_first=True).double(),
        torch.randn(3, 9, 5, dtype=torch.float64),
    )
    h = torch.randn(3, 7, dtype=torch.float64)
    theirs, last = layer(x, h[None])
    for t in range(9):
        h = gru_step(
            x[:, t],
            h,
            layer.weight_ih_l0,
            layer.weight_hh_l0,
            layer.bias_ih_l0,
            layer.bias_hh_l0,
        )
        close(h, theirs[:, t])
    close(h, last[0])


def test_lstm_step_is_torchs():
    torch.manual_seed(0)
    layer, x = (
        nn.LSTM(5, 7, batch_first=True).double(),
        torch.randn(3, 9, 5, dtype=torch.float64),
    )
    h, c = torch.randn(2, 3, 7, dtype=torch.float64)
    theirs, (last, cell) = layer(x, (h[None], c[None]))
    for t in range(9):
        h, c = lstm_step(
            x[:, t],
            h,
            c,
            layer.weight_ih_l0,
            layer.weight_hh_l0,
            layer.bias_ih_l0,
            layer.bias_hh_l0,
        )
        close(h, theirs[:, t])
    close(c, cell[0])


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_going_on_equals_going_through(kind):
    torch.manual_seed(0)
    layers, x = (
        kind(6, 6, 3, batch_first=True).double(),
        torch.randn(4, 8, 6, dtype=torch.float64),
    )
    state = tuple(
        torch.randn(4, 3, 6, dtype=torch.float64)
        for _ in range(2 if kind is nn.LSTM else 1)
    )
    whole, last = go_on(layers, x, state)
    first, middle = go_on(layers, x[:, :5], state)
    second, end = go_on(layers, x[:, 5:], middle)
    close(torch.cat([first, second], dim=1), whole)
    for a, b in zip(end, last, strict=True):
        assert a.shape == (4, 3, 6)
        close(a, b)


# Gradients


@pytest.mark.parametrize("g", [0.8, 1.0, 1.3])
def test_a_linear_recurrences_gradient_is_a_power(g):
    torch.manual_seed(0)
    norms = gradient_by_distance(
        LinearRecurrence(6, g).double(), torch.randn(2, 30, 6, dtype=torch.float64)
    )
    torch.testing.assert_close(
        norms / norms[0], g ** torch.arange(30, dtype=torch.float64), rtol=1e-4, atol=0
    )


def test_a_linear_recurrence_is_its_loop():
    layer, x = (
        LinearRecurrence(4, 0.9).double(),
        torch.randn(2, 6, 4, dtype=torch.float64),
    )
    h = torch.zeros(2, 4, dtype=torch.float64)
    for t in range(6):
        h = torch.stack([layer.W @ row for row in h]) + x[:, t]
        torch.testing.assert_close(layer(x)[:, t], h)


def test_gradient_by_distance_counts_from_the_end():
    norms = gradient_by_distance(
        lambda x: (x * torch.arange(5.0)[:, None]).cumsum(dim=1), torch.randn(2, 5, 3)
    )
    assert (norms / norms[0] * 4).tolist() == pytest.approx([4, 3, 2, 1, 0])


# Attention


def test_additive_attention_is_a_loop():
    torch.manual_seed(0)
    score, q, m = (
        AdditiveScore(8).double(),
        torch.randn(3, 4, 8).double(),
        torch.randn(3, 5, 8).double(),
    )
    lengths = [5, 2, 1]
    mask = torch.arange(5) < torch.tensor(lengths)[:, None, None]
    output, scores = blend(score(q, m), m, mask), score(q, score.U(m), multiplied=True)
    W, U, w = score.W.weight, score.U.weight, score.w.weight[0]
    for b, length in enumerate(lengths):
        for t in range(4):
            e = [
                (w @ torch.tanh(W @ q[b, t] + U @ m[b, s])).item()
                for s in range(length)
            ]
            assert scores[b, t, :length].tolist() == pytest.approx(e, abs=1e-12)
            total = sum(math.exp(x) for x in e)
            by_hand = sum(math.exp(x) / total * m[b, s] for s, x in enumerate(e))
            close(output[b, t], by_hand)


# Encoder


@each_kind
def test_both_directions_are_torchs(cell, attention):
    """The encoder, sentence by sentence and layer by layer, each direction a layer of its own."""
    model, source = model_of(cell, attention), batch()
    memory, kind = model.encode(source), {"gru": nn.GRU, "lstm": nn.LSTM}[cell]
    for i, row in enumerate(SENTENCES):
        x = model.embedding.weight[row][None] * 4
        for n in range(2):
            sides = []
            for suffix, order in (("", 1), ("_reverse", -1)):
                layer = kind(16, 8, batch_first=True).double()
                layer.load_state_dict(
                    {
                        f"{name}_l0": getattr(
                            model.encoder.layers, f"{name}_l{n}{suffix}"
                        )
                        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                    }
                )
                sides.append(layer(x[:, ::1] if order == 1 else x.flip(1))[0])
            x = torch.cat([sides[0], sides[1].flip(1)], dim=-1)
        expected = (
            x[0] if attention else torch.cat([sides[0][0, -1], sides[1][0, -1]])[None]
        )
        close(memory[i, : len(expected)], expected)


def test_summary_takes_the_last_token_and_the_first():
    states, lengths = torch.arange(24.0).view(2, 3, 4), torch.tensor([3, 2])
    assert summary(states, lengths).tolist() == [[[8, 9, 2, 3]], [[16, 17, 14, 15]]]


# The model


@each_kind
def test_padding_changes_nothing(cell, attention):
    model, source, target = (
        model_of(cell, attention),
        batch(),
        torch.randint(3, 12, (6, 5)),
    )
    logits = model(source, target)
    close(
        model(nn.functional.pad(source, (0, 4)), nn.functional.pad(target, (0, 3)))[
            :, :5
        ],
        logits,
    )
    for i, row in enumerate(SENTENCES):
        close(model(torch.tensor([row]), target[i : i + 1])[0], logits[i])


@each_kind
def test_the_decoder_is_causal_and_sees_all_of_the_source(cell, attention):
    model, seen = model_of(cell, attention), []
    model.embedding.register_forward_hook(
        lambda module, inputs, output: seen.append(output)
    )
    logits = model(torch.tensor([[4, 5, 6, 7, 2]]), torch.tensor([[1, 8, 9, 10, 11]]))
    for t in range(5):
        to_source, to_target = torch.autograd.grad(
            logits[0, t].square().sum(), seen, retain_graph=True
        )
        assert to_target[0, t + 1 :].eq(0).all()
        assert (
            to_target[0, : t + 1].abs().sum(dim=1).gt(0).all()
            and to_source[0].abs().sum(dim=1).gt(0).all()
        )


@each_kind
def test_step_by_step_equals_the_whole(cell, attention):
    model, source, target = (
        model_of(cell, attention),
        batch(),
        torch.randint(3, 12, (6, 7)),
    )
    state, logits, end = model.initial_state(source), model(source, target), 0
    for part in target.split([1, 1, 3, 2], dim=1):
        end += part.shape[1]
        close(model.step(part, state), logits[:, end - 1])
    assert state.length == 7


@each_kind
def test_rows_of_a_state_are_dropped_repeated_and_reordered(cell, attention):
    model, source, target = (
        model_of(cell, attention),
        batch(),
        torch.randint(3, 12, (6, 4)),
    )
    state, rows = model.initial_state(source), torch.tensor([3, 0, 0, 5])
    model.step(target[:, :3], state)
    state.select(rows)
    close(model.step(target[rows, 3:], state), model(source[rows], target[rows])[:, 3])


def test_embeddings_are_tied_and_scaled():
    model = model_of()
    assert model.output.weight is model.embedding.weight
    assert torch.equal(model.embed(torch.tensor([5])), model.embedding.weight[[5]] * 4)
    fresh = RecurrentEncoderDecoder(RecurrenceConfig(5000, d_model=64, N=1, P_drop=0.0))
    assert fresh.embed(torch.arange(5000)).std().item() == pytest.approx(1, abs=0.02)


@each_kind
def test_flops_are_those_torch_counts(cell, attention):
    """Of a model whose layers are unrolled into steps: torch does not count inside its own recurrent layers."""
    model, S, T = model_of(cell, attention), 5, 4
    step = {"gru": gru_step, "lstm": lstm_step}[cell]

    def layers(x, *state, n, suffix=""):
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        owner = model.encoder.layers if suffix is not None else model.decoder.layers
        weights = [getattr(owner, f"{name}_l{n}{suffix or ''}") for name in names]
        for t in range(x.shape[1]):
            state = step(x[:, t], *state, *weights)
            state = state if isinstance(state, tuple) else (state,)

    with FlopCounterMode(display=False) as counter:
        vectors = model.decoder.vectors
        for n in range(2):
            for suffix in ("", "_reverse"):
                layers(
                    torch.randn(1, S, 16).double(),
                    *torch.zeros(vectors, 1, 8).double(),
                    n=n,
                    suffix=suffix,
                )
            layers(
                torch.randn(1, T, 16).double(),
                *torch.zeros(vectors, 1, 16).double(),
                n=n,
                suffix=None,
            )
        memory = torch.randn(1, S if attention else 1, 16).double()
        model.decoder.first_state(memory)
        y, cross = torch.randn(1, T, 16).double(), Cache()
        model.output(
            model.decoder.join(
                torch.cat([y, model.decoder.look(y, memory, None, cross)], dim=-1)
            )
        )
    assert counter.get_total_flops() == model.config.forward_flops(S, T)


# Search and training


@each_kind
def test_searches_with_caches_equal_those_without(cell, attention):
    model, source = model_of(cell, attention), batch()
    greedy = greedy_search(model, source, extra=12)
    assert greedy == [
        greedy_search(model, torch.tensor([row]), extra=12)[0] for row in SENTENCES
    ]
    assert greedy == [
        some[0].tokens
        for some in beam_search(model, source, beam=1, alpha=0.0, extra=12)
    ]
    assert len({tuple(tokens) for tokens in greedy}) > 1


@each_kind
def test_beams_have_true_scores(cell, attention):
    model, source = model_of(cell, attention), batch()
    together = beam_search(model, source, beam=3, extra=8, n_best=3)
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


@pytest.mark.parametrize("cell, attention", [("gru", True), ("lstm", False)])
def test_the_loop_trains_it(cell, attention, tmp_path):
    """The first pairs of the bundled corpus, through 14's loop, stopped and resumed, and searched by 15."""
    pairs = read_corpus("bundled", "train")[:40]
    tokenizer = Tokenizer.train(
        [sentence for pair in pairs for sentence in pair], vocab_size=300
    )
    encoded = encode_pairs(tokenizer, pairs)
    torch.manual_seed(1)
    config = RecurrenceConfig(
        tokenizer.vocab_size,
        d_model=32,
        N=2,
        cell=cell,
        attention=attention,
        max_positions=100,
    )
    model = RecurrentEncoderDecoder(config)
    before = validation_loss(model, encoded)["validation_loss"]
    settings = dict(batch_tokens=400, warmup=10, validate_every=6)
    log = train(model, encoded, TrainingConfig(updates=12, **settings), tmp_path)
    assert [row["update"] for row in log] == [6, 12] and log[0]["utilisation"] >= 0
    train(model, encoded, TrainingConfig(updates=18, **settings), tmp_path, resume=True)
    assert validation_loss(model, encoded)["validation_loss"] < before - 0.5
    outputs = beam_search(model, torch.tensor([encoded[0][0]]), beam=2, extra=5)
    assert 1 <= len(outputs[0][0].tokens) <= len(encoded[0][0]) + 5


# The task of the notebook


def test_rows_to_reverse():
    source, target = rows_to_reverse(200, 2, 5)
    lengths = [sum(token != 0 for token in row) for row in source.tolist()]
    assert set(lengths) == {2, 3, 4, 5} and set(source.flatten().tolist()) == {
        0,
        *range(3, 13),
    }
    for row, backwards, length in zip(source.tolist(), target.tolist(), lengths):
        assert backwards == [1, *row[:length][::-1], 2] + [0] * (5 - length)


def test_learn_to_reverse():
    torch.manual_seed(0)
    model = RecurrentEncoderDecoder(
        RecurrenceConfig(13, d_model=32, N=1, P_drop=0.0)
    ).eval()
    source, target = rows_to_reverse(100, 2, 10)

    def loss():
        logits = model(source, target[:, :-1]).flatten(0, 1)
        return nn.functional.cross_entropy(
            logits, target[:, 1:].flatten(), ignore_index=0
        ).item()

    before = loss()
    assert learn_to_reverse(model, 60) is model and not model.training
    assert loss() < before - 0.4


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_in_bf16_a_gpu_runs_recurrent_layers_in_fp32(cell):
    model, x = model_of(cell=cell).float().cuda(), batch().cuda()
    exact, kept = model(x, x), []
    for half in (model.encoder, model.decoder):  # the encoder's output is packed
        half.layers.register_forward_hook(
            lambda layers, given, y: kept.append(y[0].data.dtype)
        )
    with torch.autocast("cuda", torch.bfloat16):
        short = model(x, x)
    assert kept == [torch.float32] * 2
    assert (short - exact).norm() < 0.02 * exact.norm()


# Bad input


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(vocab_size=0), "vocab_size must be at least 1, not 0"),
        (dict(N=0), "N must be at least 1, not 0"),
        (
            dict(d_model=15),
            "d_model must be even, because the encoder reads in two directions, not 15",
        ),
        (dict(P_drop=1.0), "P_drop must be at least 0 and below 1, not 1.0"),
        (dict(cell="rnn"), "cell must be 'gru' or 'lstm', not 'rnn'"),
        (
            dict(eos_id=50),
            "pad_id, bos_id and eos_id must lie inside the vocabulary of 50 types",
        ),
        (
            dict(pad_id=2),
            "pad_id, bos_id and eos_id must be three different ids, not 2, 1 and 2",
        ),
    ],
)
def test_a_config_that_cannot_work_is_refused(changes, message):
    with pytest.raises(ValueError) as error:
        RecurrenceConfig(**{"vocab_size": 50, **changes})
    assert str(error.value) == message


def test_presets():
    c = RecurrenceConfig.preset("tiny", vocab_size=100, P_drop=0.2, cell="lstm")
    assert (c.d_model, c.N, c.P_drop, c.cell) == (128, 2, 0.2, "lstm")
    assert RecurrenceConfig.preset("base", vocab_size=100) == RecurrenceConfig(100)
    with pytest.raises(
        ValueError, match="unknown preset 'huge': choose one of tiny, small, base"
    ):
        RecurrenceConfig.preset("huge", vocab_size=100)


def test_bad_ids_get_a_sentence():
    model = model_of()
    with pytest.raises(
        ValueError, match="token id 12 is outside the vocabulary of 12 types"
    ):
        model(torch.tensor([[3, 12]]), torch.tensor([[1]]))
    with pytest.raises(
        ValueError, match="source has 2 sentences and target 1: they must pair up"
    ):
        model(torch.ones(2, 3, dtype=torch.long), torch.ones(1, 3, dtype=torch.long))
    with pytest.raises(ValueError, match="source sentence 2 is empty"):
        model.encode(torch.tensor([[3, 2], [0, 0]]))
    with pytest.raises(
        ValueError,
        match="source sentence 2 has padding before a token: padding belongs at its end",
    ):
        model.encode(torch.tensor([[3, 2, 0], [0, 3, 2]]))
    assert sentence_lengths(batch(), 0).tolist() == [5, 2, 4, 7, 1, 3]
