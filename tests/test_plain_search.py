"""The searches of notebook 15 against the engine's: same calls, same outputs; and on their own.
The engine's with growing caches against those with caches of one shape."""

import math
from functools import partial

import pytest
import torch
from helpers import needs_newer_torch
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend

from transformer import decoding, load
from transformer.bench.dispatch import dispatched
from transformer.core.checks import Diverged
from transformer.corpora import read_bundled
from transformer.data import pad
from transformer.fast import FAST, fixed, search
from transformer.fast.attention import MultiHeadAttention, kernel_attention
from transformer.fast.model import Parts, Transformer, TransformerConfig
from transformer.fast.recurrence import RecurrenceConfig, RecurrentEncoderDecoder
from transformer.language import LanguageConfig, LanguageModel

SOURCES = [[3, 5, 7, 8, 2], [9, 2], [4, 4, 6, 2], [11, 10, 9, 8, 7, 6, 2], [2]]
SETTINGS = [(beam, alpha) for beam in (1, 4) for alpha in (0.0, 0.6, 1.6)]


def random_model(
    vocab_size: int, seed: int, parts: Parts = Parts(), **changes
) -> nn.Module:
    """A model in fp64 whose probabilities are far from even."""
    torch.manual_seed(seed)
    sizes = {**dict(d_model=16, d_ff=32, N=1, h=2, tie_embeddings=False), **changes}
    model = Transformer(TransformerConfig(vocab_size, **sizes), parts).double()
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


# Caches of one shape


def many(count: int, vocab_size: int = 12) -> torch.Tensor:
    """Sentences of one to eight tokens, with padding."""
    lengths = torch.randint(0, 8, (count,)).tolist()
    return pad([[*torch.randint(3, vocab_size, (n,)).tolist(), 2] for n in lengths], 0)


def same_with_fixed_caches(model: nn.Module, source: torch.Tensor, extra: int) -> None:
    """Assert that both kinds of caches give the same, greedily and in all settings."""
    ways = [dict(extra=extra, fixed=f) for f in (False, True)]
    growing, one_shape = (search.greedy_search(model, source, **way) for way in ways)
    assert growing == one_shape
    for beam, alpha in SETTINGS[:2] + SETTINGS[3:5]:
        same(*(search.beam_search(model, source, beam, alpha, **way) for way in ways))


@pytest.mark.parametrize("count, parts", [(64, Parts()), (256, FAST)])
def test_fixed_caches_give_the_same(count, parts):
    same_with_fixed_caches(random_model(12, 0, parts, N=2), many(count), 10)


def test_fixed_caches_of_the_bundled_model(bundled):
    model, batches = bundled
    same_with_fixed_caches(model, batches[0][:16], 50)


GROUPED = Parts(partial(MultiHeadAttention, h_kv=2, attend=kernel_attention))


@pytest.mark.parametrize(
    "parts, changes",
    [
        (FAST, dict(positions="rotary")),
        (Parts(), dict(positions="learned", norm_first=True)),
        (FAST, dict(d_k=6, d_v=10)),
        (GROUPED, dict(h=4, positions="rotary")),
    ],
)
def test_fixed_caches_of_other_models(parts, changes):
    same_with_fixed_caches(random_model(12, 1, parts, **changes), many(40), 9)


@pytest.mark.parametrize("vocab_size", [4, 5])
def test_fixed_caches_of_beams_wider_than_the_vocabulary(vocab_size):
    model, source = random_model(vocab_size, 0), many(9, vocab_size)
    settings = dict(beam=7, extra=5, n_best=7)
    growing = search.beam_search(model, source, **settings)
    same(growing, search.beam_search(model, source, **settings, fixed=True))


@pytest.mark.parametrize("max_positions, extra", [(9, 50), (64, 0)])
def test_fixed_caches_end_at_the_limit(max_positions, extra):
    model = random_model(12, 0, max_positions=max_positions)
    never_ends = nn.Sequential(model.output, Unlikely())
    model.output = never_ends
    source = many(20)
    limit = search.output_limit(model, source, extra)
    greedy = search.greedy_search(model, source, extra, fixed=True)
    beams = search.beam_search(model, source, extra=extra, fixed=True)
    assert [len(tokens) for tokens in greedy] == limit.tolist()
    assert [len(best.tokens) for [best] in beams] == limit.tolist()
    same_with_fixed_caches(model, source, extra)


class Unlikely(nn.Module):
    """No search takes the end mark."""

    def forward(self, logits):
        return logits.index_fill(-1, torch.tensor(2), -1e9)


@pytest.mark.parametrize("steps", [0, 1, 5, 11])
def test_fixed_caches_at_a_deadline(monkeypatch, steps):
    """What is written after so many steps, and which sentences were done."""

    def alarm(deadline):
        asked = iter(range(1000))
        return lambda: next(asked) >= steps

    monkeypatch.setattr(search, "alarm", alarm)
    model, source = random_model(12, 0), many(40)
    ways = False, True
    growing, one_shape = (
        search.timed_greedy_search(model, source, 9, 1.0, fixed) for fixed in ways
    )
    assert growing == one_shape
    for n_best in (1, 3):
        (growing, done), (one_shape, done_too) = (
            search.timed_beam_search(model, source, 4, 0.6, 9, n_best, 1.0, fixed)
            for fixed in ways
        )
        same(growing, one_shape)
        assert done == done_too


def tokens_of(found: list) -> list:
    """What a search wrote, without scores."""
    return [best[0].tokens if hasattr(best[0], "tokens") else best for best in found]


@needs_newer_torch
def test_a_step_with_fixed_caches_is_one_graph(monkeypatch):
    """No break in it, and nothing compiled again."""
    backend = CompileCounterWithBackend("aot_eager")
    compiled = partial(torch.compile, backend=backend, fullgraph=True)
    torch._dynamo.reset()
    monkeypatch.setattr(fixed, "replayed", lambda step, device: compiled(step))
    model, source = random_model(12, 0, FAST), many(20)
    for number, find in enumerate((search.greedy_search, search.beam_search), 1):
        ways = [find(model, source, fixed=fixed) for fixed in (False, True)]
        assert tokens_of(ways[0]) == tokens_of(ways[1])
        assert backend.frame_count == number
    torch._dynamo.reset()


@pytest.mark.parametrize("beam", [1, 4])
def test_with_fixed_caches_the_host_reads_every_eight_steps(beam):
    model, source = random_model(12, 0, FAST), many(3)
    model.output = nn.Sequential(model.output, Unlikely())

    def reads(extra, fixed):
        how = dict(extra=extra, fixed=fixed)
        found = dispatched(lambda: search.beam_search(model, source, beam, **how))
        return found.reads.total()

    assert reads(24, True) - reads(8, True) == 16 / fixed.EVERY
    assert reads(24, False) - reads(8, False) > 2 * 16


def test_fixed_caches_tell_damaged_weights():
    model = random_model(12, 0)
    with torch.no_grad():
        model.output.weight[3] = torch.inf
    for find in (search.greedy_search, search.beam_search):
        with pytest.raises(Diverged, match="no usable numbers"):
            find(model, many(3), fixed=True)


def halved(q, k, v, mask):
    return kernel_attention(q, k / 2, v, mask)


class Derived(Transformer):
    """With states of its own."""

    def states(self, *arguments, **named):
        return super().states(*arguments, **named)


def listened_to():
    model = random_model(12, 0)
    model.encoder.register_forward_hook(lambda module, inputs, output: None)
    return model


SMALL = dict(d_model=16, N=1)
OTHERS = {
    "recurrent": lambda: RecurrentEncoderDecoder(RecurrenceConfig(12, **SMALL)),
    "language": lambda: LanguageModel(LanguageConfig(12, **SMALL, d_ff=16, h=2)),
    "derived": lambda: Derived(TransformerConfig(12, **SMALL, d_ff=16, h=2)),
    "attention": lambda: random_model(
        12, 0, Parts(partial(MultiHeadAttention, attend=halved))
    ),
    "hook": listened_to,
}


@pytest.mark.parametrize("kind", OTHERS)
def test_what_has_no_fixed_caches_falls_back(monkeypatch, kind):
    monkeypatch.setattr(search, "replays_agree", lambda device: True)
    gpu, model = torch.device("cuda"), OTHERS[kind]()
    assert not search.choose_fixed(model, gpu, None)
    with pytest.raises(ValueError, match="has no caches of one shape"):
        search.greedy_search(model, many(2), fixed=True)
    assert len(search.greedy_search(model, many(2), 3)) == 2


@pytest.mark.parametrize("agree", [True, False])
def test_fixed_caches_are_a_gpus_choice_where_replays_agree(monkeypatch, agree):
    model, gpu, cpu = random_model(12, 0), torch.device("cuda"), torch.device("cpu")
    monkeypatch.setattr(search, "replays_agree", lambda device: agree)
    assert search.choose_fixed(model, gpu, None) == agree
    assert not search.choose_fixed(model, cpu, None)
    assert search.choose_fixed(model, cpu, True)


def test_replays_are_tried(monkeypatch):
    cpu, drawn = torch.device("cpu"), torch.random.get_rng_state()
    tried = search.replays_agree.__wrapped__
    assert tried(cpu)
    assert torch.equal(drawn, torch.random.get_rng_state())
    monkeypatch.setattr(fixed.FixedState, "select", lambda state, rows: None)
    assert not tried(cpu)


def test_a_step_that_cannot_be_recorded_is_done_as_it_is(monkeypatch):
    def refuse():
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda, "CUDAGraph", refuse)
    assert fixed.replayed(refuse, torch.device("cuda")) is refuse
