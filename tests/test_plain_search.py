"""The searches of notebook 15 against the engine's: same calls, same outputs; and on their own."""

import math

import pytest
import torch
from torch import nn

from transformer import decoding, load
from transformer.corpora import read_bundled
from transformer.data import pad
from transformer.fast import search
from transformer.fast.model import Transformer, TransformerConfig
from transformer.models.checkpoint import average_checkpoints

SOURCES = [[3, 5, 7, 8, 2], [9, 2], [4, 4, 6, 2], [11, 10, 9, 8, 7, 6, 2], [2]]
SETTINGS = [(beam, alpha) for beam in (1, 4) for alpha in (0.0, 0.6, 1.6)]


def random_model(vocab_size: int, seed: int) -> nn.Module:
    """A model in fp64 whose probabilities are far from even."""
    torch.manual_seed(seed)
    config = TransformerConfig(
        vocab_size, d_model=16, d_ff=32, N=1, h=2, tie_embeddings=False
    )
    model = Transformer(config).double()
    with torch.no_grad():
        model.output.weight *= 2
    return model


def same(plain: list, strong: list) -> None:
    """Assert equal tokens, and scores equal but for rounding, of two lists of lists."""
    assert len(plain) == len(strong)
    for ours, theirs in zip(plain, strong):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        assert [h.score for h in ours] == pytest.approx(
            [h.score for h in theirs], abs=1e-9
        )


@pytest.fixture(scope="module")
def bundled():
    """The bundled model in fp64, and 200 of the shorter sentences of the test set, in batches."""
    model, tokenizer = load()
    texts = sorted({example.source for example in read_bundled("test")}, key=len)
    rows = [[*tokenizer.encode(text), tokenizer.eos_id] for text in texts[:200]]
    rows.sort(key=len)
    batches = [pad(rows[i : i + 50], 0) for i in range(0, 200, 50)]
    return model.double(), batches


def test_greedy_on_200_sentences(bundled):
    model, batches = bundled
    for source in batches:
        assert decoding.greedy_search(model, source) == search.greedy_search(
            model, source
        )


@pytest.mark.system
@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_beams_of_the_bundled_model(bundled, number):
    """Its 200 sentences are dealt to the settings, each with as many outputs as beams."""
    model, batches = bundled
    beam, alpha = SETTINGS[number]
    for source in batches:
        source = source[number :: len(SETTINGS)]
        same(
            decoding.beam_search(model, source, beam, alpha, n_best=beam),
            search.beam_search(model, source, beam, alpha, n_best=beam),
        )


@pytest.mark.system
@pytest.mark.parametrize("beam, alpha", SETTINGS)
def test_beams_on_200_sentences(beam, alpha):
    """Short ones, of a small model: in every setting all."""
    model = random_model(12, seed=0)
    lengths = torch.randint(0, 6, (200,)).tolist()
    rows = [[*torch.randint(3, 12, (length,)).tolist(), 2] for length in lengths]
    source = pad(rows, 0)
    same(
        decoding.beam_search(model, source, beam, alpha, 4, beam),
        search.beam_search(model, source, beam, alpha, 4, beam),
    )


@pytest.mark.slow
@pytest.mark.parametrize("beam, alpha", SETTINGS)
def test_beams_of_the_bundled_model_in_every_setting(bundled, beam, alpha):
    model, batches = bundled
    for source in batches:
        same(
            decoding.beam_search(model, source, beam, alpha),
            search.beam_search(model, source, beam, alpha),
        )


@pytest.mark.parametrize("vocab_size", [4, 5, 12])
@pytest.mark.parametrize("seed", range(3))
def test_small_random_models(vocab_size, seed):
    model = random_model(vocab_size, seed)
    rows = [[token % (vocab_size - 2) + 2 for token in row] for row in SOURCES]
    source = pad(rows, 0)
    ours = decoding.greedy_search(model, source, 6)
    assert ours == search.greedy_search(model, source, 6)
    for beam, alpha in SETTINGS:
        same(
            decoding.beam_search(model, source, beam, alpha, 6, beam),
            search.beam_search(model, source, beam, alpha, 6, beam),
        )


def test_a_beam_wider_than_there_are_outputs():
    """Four types and two tokens at most leave 2 * 2 + 3 = 7 outputs."""
    model = random_model(4, seed=0)
    source = torch.tensor([[2]])
    ours = decoding.beam_search(model, source, beam=40, extra=1, n_best=40)
    same(ours, search.beam_search(model, source, beam=40, extra=1, n_best=40))
    assert len(ours[0]) == 7


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_gives_what_each_sentence_gets_alone(seed):
    model = random_model(12, seed)
    greedy = decoding.greedy_search(model, pad(SOURCES, 0), 8)
    beams = decoding.beam_search(model, pad(SOURCES, 0), extra=8, n_best=3)
    for row, output, hypotheses in zip(SOURCES, greedy, beams, strict=True):
        source = torch.tensor([row])
        assert decoding.greedy_search(model, source, 8) == [output]
        same(decoding.beam_search(model, source, extra=8, n_best=3), [hypotheses])


class Table(nn.Module):
    """Next-token probabilities that depend on the last token only: a row for each."""

    def __init__(self, table: list[list[float]]):
        super().__init__()
        self.log = torch.tensor(table, dtype=torch.float64).log()
        self.config = TransformerConfig(len(table))

    def forward(self, source, target):
        return self.log[target]


@pytest.mark.parametrize("extra, lengths", [(50, [53, 51]), (0, [3, 1])])
def test_outputs_end_at_the_limit(extra, lengths):
    never_ends = Table([[0.0, 0.0, 0.0, 1.0]] * 4)
    source = torch.tensor([[3, 3, 2], [2, 0, 0]])
    greedy = decoding.greedy_search(never_ends, source, extra)
    beams = decoding.beam_search(never_ends, source, extra=extra)
    assert [len(tokens) for tokens in greedy] == lengths
    assert [len(best.tokens) for [best] in beams] == lengths


def test_outputs_end_at_the_end_mark():
    soon = Table([[0.0, 0.0, 0.4, 0.6], [0.0, 0.0, 0.1, 0.9]] + [[0, 0, 0.9, 0.1]] * 2)
    source = torch.tensor([[3, 2]])
    assert decoding.greedy_search(soon, source) == [[3, 2]]
    for hypothesis in decoding.beam_search(soon, source, n_best=4)[0]:
        assert hypothesis.tokens.index(2) == len(hypothesis.tokens) - 1


def test_padding_is_never_written():
    loud = Table([[0.9, 0.0, 0.04, 0.06]] * 4)  # would like nothing better
    source = torch.tensor([[3, 2]])
    assert decoding.greedy_search(loud, source, extra=5) == [[3] * 7]
    for hypothesis in decoding.beam_search(loud, source, extra=5, n_best=4)[0]:
        log_p = sum(math.log({2: 0.04, 3: 0.06}[token]) for token in hypothesis.tokens)
        penalty = decoding.length_penalty(len(hypothesis.tokens))
        assert hypothesis.score == pytest.approx(log_p / penalty)


def test_searches_leave_dropout_out():
    model = random_model(12, seed=0)
    assert not model.eval().training
    quiet = decoding.greedy_search(model, pad(SOURCES, 0), 8)
    assert decoding.greedy_search(model.train(), pad(SOURCES, 0), 8) == quiet
    assert not model.training


def test_averages():
    checkpoints = [random_model(12, seed).state_dict() for seed in range(3)]
    ours = decoding.average_checkpoints(checkpoints)
    theirs = average_checkpoints(checkpoints)
    assert ours.keys() == theirs.keys() == checkpoints[0].keys()
    for name, tensor in ours.items():
        assert torch.allclose(tensor, theirs[name], rtol=0, atol=1e-15)
        assert tensor.dtype == theirs[name].dtype == torch.float64
