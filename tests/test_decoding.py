"""Greedy and beam search, translation, averaging, BLEU: against exhaustive search, forward passes, counts by hand."""

import functools
import itertools
import math
from collections import Counter

import pytest
import torch
from torch import nn

from transformer.core.protocol import About
from transformer.core.scores import (
    bleu,
    bleu_of_counts,
    chrf,
    compound_bleu,
    exact_match,
    multi_bleu,
    ngram_counts,
    score_report,
    split_compounds,
    tokenized_bleu,
)
from transformer.core.state import DecoderState
from transformer.core.weights import load_parameters, load_weights, save_weights
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import pad
from transformer.decoding import length_penalty
from transformer.fast import FAST
from transformer.fast import packed as packing
from transformer.fast import search as searches
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.search import (
    KeyValueCache,
    beam_search,
    can_improve,
    greedy_search,
    likeliest,
    output_limit,
    step_log_probs,
)
from transformer.models.checkpoint import average_checkpoints, keep_weights
from transformer.models.pretrained import save
from transformer.models.search import Batching, translate, translate_n_best

SOURCES = [
    [3, 5, 7, 8, 2],
    [9, 2],
    [4, 4, 6, 2],
    [11, 10, 9, 8, 7, 6, 2],
    [2],
    [5, 6, 2],
]


def model_of(vocab_size=12, seed=3, **changes):
    """A random model whose probabilities are far from even, and whose outputs end early, late or never."""
    torch.manual_seed(seed)
    changes = {
        "tie_embeddings": False,
        **changes,
    }  # tied, a random model repeats its last token
    model = Transformer(
        TransformerConfig(vocab_size, d_model=16, d_ff=32, N=2, h=2, **changes)
    )
    with torch.no_grad():
        model.output.weight *= 2
    return model


class Unlikely(nn.Module):
    """Makes one type's logits so low that no search takes it."""

    def __init__(self, token):
        super().__init__()
        self.token = torch.tensor(token)

    def forward(self, logits):
        return logits.index_fill(-1, self.token, -30.0)


def batch(rows=SOURCES):
    return pad(rows, 0)


class Table(nn.Module):
    """Next-token probabilities that depend on the last token only: row = last token, column = next token."""

    def __init__(self, table, max_positions=200):
        super().__init__()
        self.log = torch.tensor(table).log()
        self.config = TransformerConfig(len(table), max_positions=max_positions)

    def initial_state(self, source, new_cache):
        return DecoderState([], source[:, None, None] != 0)

    def step(self, tokens, state):
        return self.log[tokens[:, -1]]


@torch.no_grad()
def log_p(model, source, tokens):
    """log P(tokens | source) by one forward pass, without caches, padding or beams."""
    logits = model.eval()(torch.tensor([source]), torch.tensor([[1, *tokens[:-1]]]))[0]
    return logits.log_softmax(dim=-1)[range(len(tokens)), tokens].sum().item()


def outputs_of(V, limit):
    """Every possible output: it ends with the end mark, or is cut off by the limit. Padding is never a token."""
    for n in range(1, limit + 1):
        for tokens in itertools.product(range(1, V), repeat=n):
            if 2 not in tokens[:-1] and (tokens[-1] == 2 or n == limit):
                yield list(tokens)


@functools.cache
def by_force(V, limit, seed):
    """(log P, tokens) of every possible output of a random model; those of one length in one forward pass."""
    model, found = model_of(V, seed=seed).eval(), []
    for n in range(1, limit + 1):
        rows = torch.tensor(
            [tokens for tokens in outputs_of(V, limit) if len(tokens) == n]
        )
        with torch.no_grad():
            begins = torch.ones_like(rows[:, :1])
            logits = model(
                torch.tensor([[3, 2]] * len(rows)),
                torch.cat([begins, rows[:, :-1]], dim=1),
            )
        log_probs = (
            logits.log_softmax(dim=-1).gather(2, rows[:, :, None]).sum(dim=(1, 2))
        )
        found += zip(log_probs.tolist(), rows.tolist())
    return found


def tokens_of(results):
    return [[h.tokens for h in some] for some in results]


# Greedy search


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_greedy_takes_the_likeliest_token(norm_first, positions):
    model = model_of(norm_first=norm_first, positions=positions)
    for source, output in zip(
        SOURCES, greedy_search(model, batch(), extra=8), strict=True
    ):
        for t, token in enumerate(output):
            logits = model(torch.tensor([source]), torch.tensor([[1, *output[:t]]]))[
                0, -1
            ]
            assert token == logits[1:].argmax().item() + 1
        assert 2 not in output[:-1] and (
            output[-1] == 2 or len(output) == len(source) + 8
        )


@pytest.mark.parametrize("seed", range(4))
def test_cached_equals_uncached(seed):
    model = model_of(seed=seed)
    for source, output in zip(
        SOURCES, greedy_search(model, batch(), extra=15), strict=True
    ):
        assert [output] == [
            tokens
            for _, tokens in plain_beam_search(
                model, source, 1, 0.0, len(source) + 15, 1
            )
        ]


@pytest.mark.parametrize("seed", range(3))
def test_fast_parts_give_the_same_tokens(monkeypatch, seed):
    """Fast attention and packed weights: the outputs of the plain model."""
    monkeypatch.setattr(packing, "SMALLEST", 1)
    plain = model_of(seed=seed)
    fast = Transformer(plain.config, FAST)
    fast.load_state_dict(plain.state_dict())
    fast = packing.packed(fast)
    assert greedy_search(fast, batch(), extra=15) == greedy_search(
        plain, batch(), extra=15
    )
    found = beam_search(fast, batch(), extra=10, n_best=3)
    assert tokens_of(found) == tokens_of(
        beam_search(plain, batch(), extra=10, n_best=3)
    )


def test_cached_log_probabilities_equal_uncached():
    model, source = model_of().eval(), batch()
    state = model.initial_state(source, KeyValueCache)
    target, largest = (
        torch.randint(
            3, 12, (len(source), 9), generator=torch.Generator().manual_seed(0)
        ),
        0.0,
    )
    for t in range(9):
        step = step_log_probs(model, target[:, t : t + 1], state)
        whole = step_log_probs(
            model, target[:, : t + 1], model.initial_state(source, KeyValueCache)
        )
        assert step[:, 0].eq(-torch.inf).all() and whole[:, 0].eq(-torch.inf).all()
        largest = max(largest, (step - whole)[:, 1:].abs().max().item())
    assert largest < 1e-5


@pytest.mark.parametrize("seed", range(3))
def test_batched_equals_single(seed):
    model = model_of(seed=seed)
    greedy, beams = (
        greedy_search(model, batch(), extra=10),
        beam_search(model, batch(), extra=10, n_best=3),
    )
    for i, source in enumerate(SOURCES):
        assert greedy_search(model, torch.tensor([source]), extra=10) == [greedy[i]]
        alone = beam_search(model, torch.tensor([source]), extra=10, n_best=3)[0]
        assert [h.tokens for h in alone] == [h.tokens for h in beams[i]]
        assert [h.score for h in alone] == pytest.approx(
            [h.score for h in beams[i]], abs=1e-5
        )


def test_padding_is_never_written():
    loud, source = (
        Table([[0.9, 0.0, 0.04, 0.06]] * 4),
        torch.tensor([[3, 2]]),
    )  # would like nothing better
    assert greedy_search(loud, source, extra=5) == [[3] * 7]
    for hypothesis in beam_search(loud, source, extra=5, n_best=4)[0]:
        log_p = sum(
            math.log(0.04 if token == 2 else 0.06) for token in hypothesis.tokens
        )
        assert hypothesis.tokens and 0 not in hypothesis.tokens
        assert hypothesis.score == pytest.approx(
            log_p / length_penalty(len(hypothesis.tokens)), abs=1e-5
        )


# Limits


@pytest.mark.parametrize("search", [greedy_search, beam_search])
@pytest.mark.parametrize(
    "source, said",
    [
        (
            torch.tensor([[5, 6, 2], [0, 0, 0]]),
            "source sentence 2 is empty: leave it out of the batch",
        ),
        (torch.ones(1, 0, dtype=torch.long), "source sentence 1 is empty"),
        (
            torch.tensor([[5, 6, 2], [0, 6, 2]]),
            "source sentence 2 has padding before a token",
        ),
        (torch.tensor([5, 6, 2]), "a row for each sentence, not of shape"),
        (
            torch.tensor([[5.0, 2.0]]),
            "token ids must be a tensor of whole numbers, not torch.float32",
        ),
    ],
)
def test_what_is_no_batch_of_sources(search, source, said):
    with pytest.raises(ValueError, match=said):
        search(model_of(), source)


NEVER_ENDS = [[0.0, 0.0, 0.0, 1.0]] * 4


@pytest.mark.parametrize(
    "extra, max_positions, lengths",
    [(50, 200, [53, 51]), (0, 200, [3, 1]), (7, 200, [10, 8]), (50, 6, [6, 6])],
)
def test_output_is_at_most_input_plus_extra(extra, max_positions, lengths):
    model, source = (
        Table(NEVER_ENDS, max_positions),
        torch.tensor([[3, 3, 2], [2, 0, 0]]),
    )
    assert output_limit(model, source, extra).tolist() == lengths
    assert [len(tokens) for tokens in greedy_search(model, source, extra)] == lengths
    assert [
        len(some[0].tokens) for some in beam_search(model, source, extra=extra)
    ] == lengths


@pytest.mark.parametrize(
    "search",
    [greedy_search, lambda *args: [some[0].tokens for some in beam_search(*args)]],
)
def test_the_last_position_can_be_reached(search):
    model, source = model_of(max_positions=8), batch([[3, 4, 5, 6, 7, 8, 9, 2], [3, 2]])
    model.output = torch.nn.Sequential(model.output, Unlikely(2))
    assert [len(output) for output in search(model, source)] == [8, 8]


def test_ends_at_the_end_mark():
    ends = Table(
        [
            [0.0, 0.0, 1.0, 0.0],
            [0.0, 0.0, 0.1, 0.9],
            [0.0, 0.0, 0.0, 1.0],
            [0.0, 0.0, 0.9, 0.1],
        ]
    )
    assert greedy_search(ends, torch.tensor([[3, 2]])) == [[3, 2]]
    found = beam_search(ends, torch.tensor([[3, 2]]), n_best=4)[0]
    assert all(h.tokens.count(2) == 1 and h.tokens[-1] == 2 for h in found)


# Beam search


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_without_penalty_is_greedy(seed):
    model = model_of(seed=seed)
    greedy = greedy_search(model, batch(), extra=12)
    assert tokens_of(beam_search(model, batch(), beam=1, alpha=0.0, extra=12)) == [
        [output] for output in greedy
    ]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 4.0])
@pytest.mark.parametrize("V, limit, beam", [(4, 5, 50), (5, 4, 130)])
def test_a_wide_beam_is_exhaustive_search(V, limit, beam, alpha):
    for seed in range(2):
        model, source = model_of(V, seed=seed), [3, 2]
        scored = [
            (p / ((5 + len(tokens)) / 6) ** alpha, tokens)
            for p, tokens in by_force(V, limit, seed)
        ]
        scored.sort(reverse=True)
        found = beam_search(
            model, torch.tensor([source]), beam, alpha, limit - 2, n_best=15
        )[0]
        assert [h.tokens for h in found] == [tokens for _, tokens in scored[:15]]
        assert [h.score for h in found] == pytest.approx(
            [score for score, _ in scored[:15]], abs=1e-5
        )


@pytest.mark.parametrize("n_best", [1, 4, 40])
def test_fewer_outputs_than_the_beam_holds(n_best):
    """Four types and two tokens at most leave 2 * 2 + 3 = 7 outputs; no invented ones fill the list."""
    model, possible = model_of(4), list(outputs_of(4, 2))
    found = beam_search(model, torch.tensor([[2]]), beam=40, extra=1, n_best=n_best)[0]
    assert len(found) == min(n_best, len(possible)) and len(possible) == 7
    assert all(h.tokens in possible and math.isfinite(h.score) for h in found)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
def test_scores_are_true_and_ordered(alpha):
    model = model_of()
    for source, some in zip(
        SOURCES,
        beam_search(model, batch(), alpha=alpha, extra=10, n_best=4),
        strict=True,
    ):
        assert len({tuple(h.tokens) for h in some}) == len(some) == 4
        assert [h.score for h in some] == sorted((h.score for h in some), reverse=True)
        for h in some:
            penalty = ((5 + len(h.tokens)) / 6) ** alpha
            assert h.score == pytest.approx(
                log_p(model, source, h.tokens) / penalty, abs=1e-4
            )


def plain_beam_search(model, source, K, alpha, limit, n_best):
    """The same search with lists, for one sentence, without caches and without stopping early."""
    live, found = [(0.0, [])], []
    for length in range(1, limit + 1):
        logits = model.eval()(
            torch.tensor([source] * len(live)),
            torch.tensor([[1, *tokens] for _, tokens in live]),
        )
        candidates = [
            (score + log_p, [*tokens, token])
            for (score, tokens), log_probs in zip(
                live, logits[:, -1].log_softmax(dim=-1).tolist()
            )
            for token, log_p in enumerate(log_probs)
            if token != 0
        ]
        candidates.sort(key=lambda c: -c[0])
        found += [
            (s / ((5 + length) / 6) ** alpha, t)
            for s, t in candidates[:K]
            if t[-1] == 2 or length == limit
        ]
        live = [(s, t) for s, t in candidates if t[-1] != 2][:K]
    return sorted(found, key=lambda f: -f[0])[:n_best]


@torch.no_grad()
@pytest.mark.parametrize("beam, alpha", [(1, 0.6), (2, 0.0), (3, 0.6), (4, 1.0)])
def test_equals_a_plain_search_with_lists(beam, alpha):
    model = model_of(seed=beam)
    found = beam_search(model, batch(), beam, alpha, extra=6, n_best=min(2, beam))
    for source, some in zip(SOURCES, found, strict=True):
        plain = plain_beam_search(
            model, source, beam, alpha, len(source) + 6, min(2, beam)
        )
        assert [h.tokens for h in some] == [tokens for _, tokens in plain]
        assert [h.score for h in some] == pytest.approx(
            [score for score, _ in plain], abs=1e-4
        )


def search_and_count(model, alpha):
    """Tokens found in a batch where outputs end at different times, and how many rows the model had to compute."""
    rows, step = [], model.step

    def counted(tokens, state):
        rows.append(len(tokens))
        return step(tokens, state)

    model.step = counted
    return tokens_of(beam_search(model, batch(), alpha=alpha, extra=12, n_best=2)), sum(
        rows
    )


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_stopping_early_changes_nothing(monkeypatch, alpha):
    early = [search_and_count(model_of(seed=seed), alpha) for seed in range(4)]
    monkeypatch.setattr(
        searches,
        "can_improve",
        lambda finished_scores, live, limit, alpha: live.isfinite(),
    )
    patient = [search_and_count(model_of(seed=seed), alpha) for seed in range(4)]
    assert [found for found, _ in early] == [found for found, _ in patient]
    if alpha < 1:  # and it does save something
        assert sum(rows for _, rows in early) < 0.9 * sum(rows for _, rows in patient)


def test_done_means_that_nothing_alive_can_overtake():
    """alpha 1, 13 tokens at most: lp is at most 3. The last of the found has -1, so log P must be above -3."""
    found, live = (
        torch.tensor([[-0.5, -1.0]] * 4),
        torch.tensor([-2.9, -3.1, -0.4, -torch.inf]),
    )
    assert can_improve(found, live, torch.tensor([13, 13, 1, 13]), 1.0).tolist() == [
        True,
        False,
        True,
        False,
    ]
    nothing_yet = torch.tensor([[-0.5, -torch.inf]])
    assert can_improve(
        nothing_yet, torch.tensor([-1e9]), torch.tensor([13]), 1.0
    ).tolist() == [True]


@pytest.mark.parametrize(
    "k, K, V", [(1, 4, 50), (4, 4, 50), (4, 4, 5), (3, 3, 2), (21, 21, 300)]
)
def test_the_best_of_all_extensions(k, K, V):
    scores = torch.randn(3, k)
    log_probs = torch.randn(3, k, V).log_softmax(dim=-1)
    log_probs[:, :, 0] = -torch.inf
    tokens, best, parent = searches.extend(scores, log_probs, K)
    every, place = (
        (scores[:, :, None] + log_probs).flatten(1).sort(dim=1, descending=True)
    )
    n = min(2 * K, k * (V - 1))  # those with token 0 are impossible, all alike
    assert torch.equal(best, every[:, : best.shape[1]]) and best.shape[1] == min(
        2 * K, k * V
    )
    assert torch.equal(parent[:, :n], place[:, :n] // V)
    assert torch.equal(tokens[:, :n], place[:, :n] % V)


@torch.no_grad()
def test_as_many_rows_after_a_step_as_before():
    """Three of four sentences end at the first step, while the beam grows to four: the source's rows must move."""
    model = model_of(seed=1).eval()
    sources = [[5, 6, 7, 2], [5, 5, 9, 2], [9, 9, 3, 8, 6, 2], [11, 10, 9, 2]]
    limits = torch.tensor([1, 1, 1, 9])
    alone = [
        plain_beam_search(model, source, 4, 0.6, n, 1)[0]
        for source, n in zip(sources, limits.tolist())
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searches, "output_limit", lambda model, source, extra: limits)
        found = [best[0] for best in beam_search(model, batch(sources))]
    assert [h.tokens for h in found] == [tokens for _, tokens in alone]
    assert [h.score for h in found] == pytest.approx(
        [score for score, _ in alone], abs=1e-5
    )


def test_the_source_is_projected_once_a_sentence():
    model, rows = model_of(), []
    for layer in model.decoder.layers:
        layer.cross_attention.W_K.register_forward_hook(
            lambda module, inputs, output: rows.append(output.shape[:2])
        )
    beam_search(model, batch(), extra=8)
    assert rows == [batch().shape] * 2


def test_a_finished_hypothesis_leaves_its_place():
    """First the end (0.45), 3 (0.3) or 4 (0.25): with the end among them, two beams still go on with both 3 and 4."""
    table = [[0.0] * 6 for _ in range(6)]
    table[1] = [0.0, 0.0, 0.45, 0.3, 0.25, 0.0]
    table[3], table[4] = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    table[5] = table[2] = table[0] = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    found = beam_search(
        Table(table), torch.tensor([[3, 2]]), beam=3, alpha=0.0, n_best=3
    )[0]
    assert [h.tokens for h in found] == [[2], [3, 5, 2], [4, 5, 2]]
    found = beam_search(
        Table(table), torch.tensor([[3, 2]]), beam=2, alpha=0.0, n_best=2
    )[0]
    assert [h.tokens for h in found] == [[2], [3, 5, 2]]
    assert [round(math.exp(h.score), 6) for h in found] == [0.45, 0.3]


def test_an_end_outside_the_beam_does_not_count():
    """The end has 0.2 and is third: a beam of two never takes it, a beam of three does."""
    ends = [0.0, 0.0, 1.0, 0.0, 0.0]
    model = Table([ends, [0.0, 0.0, 0.2, 0.45, 0.35], ends, ends, ends])
    two, three = (
        beam_search(model, torch.tensor([[3, 2]]), K, alpha=0.0, n_best=K)
        for K in (2, 3)
    )
    assert tokens_of(two) == [[[3, 2], [4, 2]]] and tokens_of(three) == [
        [[3, 2], [4, 2], [2]]
    ]


def test_length_penalty_is_gnmts():
    assert length_penalty(1, 0.6) == 1.0 and length_penalty(7, 0.6) == pytest.approx(
        2**0.6
    )
    assert length_penalty(20, 0.0) == 1.0 and length_penalty(13, 1.0) == 3.0
    assert length_penalty(7) == length_penalty(7, 0.6)
    assert length_penalty(torch.tensor([1, 7, 13]), 1.0).tolist() == [1.0, 2.0, 3.0]


def test_a_larger_alpha_chooses_longer_outputs():
    """Ending at once has P = 0.5, five tokens have 0.4."""
    table = [[0.0, 0.0, 1.0] + [0.0] * 4 for _ in range(7)]
    table[1] = [0.0, 0.0, 0.5, 0.4, 0.1, 0.0, 0.0]
    table[3], table[4], table[5] = (
        [0, 0, 0, 0, 1.0, 0, 0],
        [0, 0, 0, 0, 0, 1.0, 0],
        [0, 0, 0, 0, 0, 0, 1.0],
    )
    best = [
        beam_search(Table(table), torch.tensor([[3, 2]]), alpha=alpha)[0][0].tokens
        for alpha in (0.0, 0.2, 0.6)
    ]
    assert best == [[2], [2], [3, 4, 5, 6, 2]]  # both alike at 0.547


@pytest.mark.parametrize(
    "options, match",
    [
        (dict(beam=0), "beam must be at least 1, not 0"),
        (dict(n_best=5), "n_best must be between 1 and the beam, 4, not 5"),
        (dict(n_best=0), "n_best must be"),
        (dict(alpha=-0.1), "alpha must be between 0 and 10, not -0.1"),
        (dict(alpha=float("inf")), "alpha must be between 0 and 10, not inf"),
        (dict(extra=-1), "extra must be at least 0"),
    ],
)
def test_bad_settings(options, match):
    with pytest.raises(ValueError, match=match):
        beam_search(model_of(), batch(), **options)


def test_searches_leave_dropout_out():
    model = model_of(P_drop=0.5)
    assert tokens_of(beam_search(model.train(), batch())) == tokens_of(
        beam_search(model.train(), batch())
    )
    assert greedy_search(model.train(), batch()) == greedy_search(
        model.train(), batch()
    )


# Translation


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(
        ["one two three four five", "five four three two one"] * 5, 280
    )


SENTENCES = [
    "one two three",
    "five",
    "two",
    "four four four one two",
    "two one",
    "three",
]


@pytest.mark.parametrize("beam", [1, 3])
def test_translate_keeps_the_order_whatever_the_batches(tokenizer, beam):
    model, done = model_of(tokenizer.vocab_size), []
    together = translate(
        model, tokenizer, SENTENCES, beam, how=Batching(5, progress=done.append)
    )
    assert sum(done) == len(SENTENCES)
    assert translate(model, tokenizer, SENTENCES, beam, how=Batching(5, 1)) == together
    for sentence, translation in zip(SENTENCES, together, strict=True):
        source = torch.tensor([[*tokenizer.encode(sentence), 2]])
        beams = [
            hypothesis.tokens
            for hypothesis in beam_search(model, source, beam, extra=5)[0]
        ]
        best = greedy_search(model, source, 5)[0] if beam == 1 else beams[0]
        assert translation == tokenizer.decode(best)


def test_beam_and_alpha_travel_with_the_model(tokenizer):
    model = model_of(tokenizer.vocab_size)
    asked = [
        translate(model, tokenizer, SENTENCES, *search)
        for search in ((1, 0.0), (4, 0.6))
    ]
    for search, outputs in zip(((1, 0.0), (4, 0.6)), asked):
        model.about = About("en", "de", *search)
        assert translate(model, tokenizer, SENTENCES) == outputs
    assert asked[0] != asked[1]


def test_translate_nothing(tokenizer):
    assert translate(model_of(tokenizer.vocab_size), tokenizer, []) == []
    assert translate_n_best(model_of(tokenizer.vocab_size), tokenizer, []) == []


def test_n_best_lists(tokenizer):
    """Texts and scores of the search itself, in the order given; the first is what translate says."""
    model = model_of(tokenizer.vocab_size)
    lists = translate_n_best(model, tokenizer, SENTENCES, 3, 4, 1.0, Batching(4, 1))
    assert [some[0].text for some in lists] == translate(
        model, tokenizer, SENTENCES, 4, 1.0, Batching(4)
    )
    for sentence, some in zip(SENTENCES, lists, strict=True):
        found = beam_search(
            model, torch.tensor([[*tokenizer.encode(sentence), 2]]), 4, 1.0, 4, n_best=3
        )[0]
        assert [entry.text for entry in some] == [
            tokenizer.decode(h.tokens) for h in found
        ]
        assert [entry.score for entry in some] == pytest.approx(
            [h.score for h in found], abs=1e-5
        )
    with pytest.raises(
        ValueError, match="n_best must be between 1 and the beam, 2, not 3"
    ):
        translate_n_best(model, tokenizer, SENTENCES, n_best=3, beam=2)
    assert all(
        len(some) == 2 for some in translate_n_best(model, tokenizer, SENTENCES, beam=2)
    )


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("batch_tokens", [1, 200, 500, 2000])
def test_caches_hold_no_more_than_asked(tokenizer, beam, batch_tokens):
    """Positions whose keys and values one layer holds, at every step; where one sentence needs more, it goes alone."""
    model, held, alone, done = model_of(tokenizer.vocab_size), [], [], []
    model.output = nn.Sequential(model.output, Unlikely(2))
    step = model.step

    def measured(tokens, state):
        logits = step(tokens, state)
        held.append(sum(len(cache.k) * cache.length for cache in state.caches[0]))
        alone.append(len(tokens) <= beam)
        return logits

    model.step = measured
    translate(
        model,
        tokenizer,
        SENTENCES * 2,
        beam,
        how=Batching(10, batch_tokens, done.append),
    )
    assert all(
        positions <= batch_tokens or only for positions, only in zip(held, alone)
    )
    assert (
        sum(done) == 12
        and (batch_tokens < 2000 or done == [12])
        and (batch_tokens > 1 or done == [1] * 12)
    )


def test_translate_names_a_sentence_that_is_too_long(tokenizer):
    model = model_of(tokenizer.vocab_size, max_positions=6)
    with pytest.raises(
        ValueError,
        match=r"sentence 2 \(index 1\) has .* tokens, more than the model's 6 positions",
    ):
        translate(model, tokenizer, ["one", "one two three four five one two three"])
    with pytest.raises(ValueError, match="beam must be at least 1"):
        translate(model, tokenizer, ["one"], beam=0)


# Averaging


def test_average_is_the_mean(tmp_path):
    generator = torch.Generator().manual_seed(0)
    files = [
        {
            "a": torch.randn(3, 4, generator=generator),
            "b": 1e6 * torch.randn(5, generator=generator),
        }
        for _ in range(5)
    ]
    for i, tensors in enumerate(files):
        save_weights(tensors, tmp_path / f"{i}.safetensors")
    average = average_checkpoints(sorted(tmp_path.iterdir()))
    assert average.keys() == {"a", "b"}
    for name, tensor in average.items():
        mean = sum(t[name].double() for t in files) / 5
        assert tensor.dtype == torch.float32 and torch.equal(tensor, mean.float())
    assert all(
        torch.equal(
            average_checkpoints([tmp_path / "2.safetensors"])[name], files[2][name]
        )
        for name in "ab"
    )


@pytest.mark.parametrize("tied", [True, False])
def test_an_average_fits_its_model(tmp_path, tied):
    """Files have a shared matrix once, `load_state_dict` wants it under each of its names."""
    models = [model_of(seed=seed, tie_embeddings=tied) for seed in range(3)]
    for update, model in enumerate(models):
        keep_weights(tmp_path, model, update, keep=3)
    average = average_checkpoints(sorted((tmp_path / "weights").iterdir()))
    loaded = model_of(seed=9, tie_embeddings=tied)
    loaded.load_state_dict(average)
    again = model_of(seed=9, tie_embeddings=tied)
    load_parameters(again, average, tmp_path)
    by_hand = sum(model.output.weight.detach().double() for model in models) / 3
    for model in (loaded, again):
        assert torch.equal(model.output.weight, by_hand.float())
        assert (model.output.weight is model.target_embedding.weight) == tied


@pytest.mark.parametrize("tied", [True, False])
def test_an_average_of_saved_models_fits_too(tmp_path, tied):
    """Files, and what is read from them, which hold a shared matrix under one name."""
    models = [model_of(seed=seed, tie_embeddings=tied) for seed in range(2)]
    for number, model in enumerate(models):
        save(model, tmp_path / str(number))
    files = sorted(tmp_path.glob("*/model.safetensors"))
    mean = sum(model.output.weight.detach() for model in models) / 2
    for checkpoints in (files, [load_weights(path)[0] for path in files]):
        model = model_of(seed=9, tie_embeddings=tied)
        model.load_state_dict(average_checkpoints(checkpoints))
        assert torch.allclose(model.output.weight, mean)
        assert (model.output.weight is model.embedding.weight) == tied


def test_two_matrices_for_one_are_refused():
    """Of two that differ the last was taken, without a word."""
    state = model_of(tie_embeddings=False).state_dict()
    with pytest.raises(ValueError, match="are one matrix in this model, and two in"):
        model_of(tie_embeddings=True).load_state_dict(state)


def test_a_shared_matrix_that_is_nowhere_is_missing():
    state = model_of(tie_embeddings=True).state_dict()
    for name in ("embedding.weight", "target_embedding.weight", "output.weight"):
        del state[name]
    with pytest.raises(RuntimeError, match="Missing key"):
        model_of(tie_embeddings=True).load_state_dict(state)


def test_an_average_of_state_dicts():
    states = [model_of(seed=seed).state_dict() for seed in range(3)]
    average = average_checkpoints(states)
    model_of().load_state_dict(average)
    assert torch.allclose(
        average["output.weight"], sum(s["output.weight"] for s in states) / 3
    )
    with pytest.raises(ValueError, match="checkpoint 2 is of another configuration"):
        average_checkpoints([states[0], model_of(13).state_dict()])


@pytest.mark.parametrize(
    "other",
    [
        {"a": torch.ones(4)},
        {"a": torch.ones(3), "b": torch.ones(2)},
        {"b": torch.ones(3)},
        {},
    ],
)
def test_average_of_different_configurations(tmp_path, other):
    save_weights({"a": torch.ones(3)}, tmp_path / "1.safetensors")
    save_weights(other, tmp_path / "2.safetensors")
    with pytest.raises(
        ValueError,
        match="2.safetensors is of another configuration than .*1.safetensors",
    ):
        average_checkpoints([tmp_path / "1.safetensors", tmp_path / "2.safetensors"])


def test_average_of_what_is_no_weight(tmp_path):
    save_weights({"a": torch.ones(2)}, tmp_path / "1.safetensors")
    save_weights({"a": torch.ones(2, dtype=torch.uint8)}, tmp_path / "2.safetensors")
    with pytest.raises(
        ValueError, match="2.safetensors: a holds torch.uint8, no weights"
    ):
        average_checkpoints([tmp_path / "1.safetensors", tmp_path / "2.safetensors"])


def test_average_of_nothing():
    with pytest.raises(ValueError, match="no checkpoints to average"):
        average_checkpoints([])


# Scores


def bleu_by_hand(hypotheses, references):
    """Papineni et al. (2002) on words cut at spaces, where every precision is above 0."""
    hits, counts, c, r = [0] * 4, [0] * 4, 0, 0
    for hypothesis, reference in zip(hypotheses, references):
        h, g = hypothesis.split(), reference.split()
        c, r = c + len(h), r + len(g)
        for n in range(1, 5):
            mine, gold = (
                Counter(zip(*(side[i:] for i in range(n)))) for side in (h, g)
            )
            hits[n - 1] += sum(min(count, gold[run]) for run, count in mine.items())
            counts[n - 1] += sum(mine.values())
    brevity = min(1.0, math.exp(1 - r / c))
    return 100 * brevity * math.prod(a / b for a, b in zip(hits, counts)) ** 0.25


@pytest.mark.parametrize(
    "hypotheses, references",
    [
        (
            ["the red red fox jumps over the sleeping dog"],
            ["the quick red fox jumps over the very lazy dog"],
        ),
        (["a b c d e f", "x y z w v"], ["a b c d g f", "x y z w v u t"]),
        (["a b c d e f g h"], ["a b c d e"]),
        (["same words in the same order"], ["same words in the same order"]),
    ],
)
def test_bleu_by_hand(hypotheses, references):
    score = bleu(hypotheses, references)
    assert score.score == pytest.approx(bleu_by_hand(hypotheses, references), abs=1e-6)
    assert score.signature.startswith(
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"
    )


def test_compounds_are_split_as_in_tensor2tensor():
    assert split_compounds("a rich-text format") == "a rich ##AT##-##AT## text format"
    assert (
        split_compounds("one - two -three") == "one - two -three"
    )  # no letter on one side
    assert (
        split_compounds("a 50%-ige Chance") == "a 50% ##AT##-##AT## ige Chance"
    )  # any character, not only letters
    assert split_compounds("E-Mail-Konto") == "E ##AT##-##AT## Mail ##AT##-##AT## Konto"
    assert (
        split_compounds("a-b-c") == "a ##AT##-##AT## b-c"
    )  # the search uses no letter twice


OUTPUTS = [
    "Der alte Hund-Besitzer sieht den Ball.",
    "Die E-Mail „kam“ heute nicht an!",
    "Ein Mann geht über die Straße.",
]
REFERENCES = [
    "Der alte Hunde-Besitzer sieht den roten Ball.",
    'Die E-Mail "kam" heute nicht hier an!',
    "ein Mann geht über die Straße.",
]


def test_bleu_from_what_is_kept_of_each_sentence():
    counts = ngram_counts(OUTPUTS, REFERENCES)
    assert {len(column) for column in counts.values()} == {len(OUTPUTS)}
    assert bleu_of_counts(counts) == pytest.approx(bleu(OUTPUTS, REFERENCES).score)


def test_bleu_of_multi30k_papers():
    cut = (
        [
            " ".join(
                line.lower()
                .replace(".", " .")
                .replace("!", " !")
                .replace("„", '" ')
                .replace("“", ' "')
                .split()
            )
            for line in OUTPUTS
        ],
        [
            line.lower()
            .replace(".", " .")
            .replace("!", " !")
            .replace('"kam"', '" kam "')
            for line in REFERENCES
        ],
    )
    score = tokenized_bleu(OUTPUTS, REFERENCES)
    assert score.score == pytest.approx(bleu_by_hand(*cut), abs=1e-6)
    for part in (
        "case:lc",
        "tok:none",
        "smooth:none",
        "words:sacremoses-",
        ".de.normalized",
    ):
        assert part in score.signature


def test_bleu_of_the_paper():
    def cut(line):
        return " ".join(
            line.replace(".", " .")
            .replace("!", " !")
            .replace("„", "„ ")
            .replace("“", " “")
            .replace('"kam"', '" kam "')
            .replace("-", " ##AT##-##AT## ")
            .split()
        )

    score = compound_bleu(OUTPUTS, REFERENCES)
    assert score.score == pytest.approx(
        bleu_by_hand([*map(cut, OUTPUTS)], [*map(cut, REFERENCES)]), abs=1e-6
    )
    assert all(
        part in score.signature
        for part in ("case:mixed", "tok:none", "smooth:none", ".de.compounds")
    )
    assert score.score != pytest.approx(
        tokenized_bleu(OUTPUTS, REFERENCES).score, abs=0.5
    )


def test_multi_bleu_smooths_nothing():
    assert (
        multi_bleu(["a b c d e"], ["a b x d e"]).score
        == 0.0
        < bleu(["a b c d e"], ["a b x d e"]).score
    )
    assert multi_bleu(
        ["a b c d e ."], ["a b c d e ."], words="mine"
    ).signature.endswith("|words:mine")


def test_exact_match():
    assert exact_match(["a", "b", "c", "d"], ["a", "b", "C", "d "]) == 0.5


@pytest.mark.parametrize("score", [bleu, exact_match, chrf, tokenized_bleu])
@pytest.mark.parametrize(
    "hypotheses, references", [(["a", "b"], ["a"]), (["a"], ["a", "b"]), ([], [])]
)
def test_scores_need_pairs(score, hypotheses, references):
    with pytest.raises(
        ValueError,
        match="translations and .* references: each translation needs one reference",
    ):
        score(hypotheses, references)


@pytest.mark.parametrize("score", [bleu, exact_match, chrf, tokenized_bleu])
@pytest.mark.parametrize(
    "hypotheses, references, match",
    [
        ("ab", ["a", "b"], "must be a list of strings, not one string"),
        (["a", "b"], "ab", "must be a list of strings, not one string"),
        (["a"], [["a"]], r"number 1 \(index 0\) of references is a list, not a string"),
        (
            ["a", None],
            ["a", "b"],
            r"number 2 \(index 1\) of translations is a NoneType, not a string",
        ),
    ],
)
def test_scores_need_sentences(score, hypotheses, references, match):
    with pytest.raises(ValueError, match=match):
        score(hypotheses, references)


@pytest.mark.parametrize("resamples", [1, -1])
def test_margins_need_two_draws(resamples):
    with pytest.raises(
        ValueError, match=f"resamples must be 0 .* or at least 2, not {resamples}"
    ):
        bleu(["a b c d e"] * 3, ["a b c d e"] * 3, resamples=resamples)


def test_no_margin_where_some_draws_score_nothing():
    """The mean of sacreBLEU 2.6 fails there; the scores are kept. (Older ones have a margin.)"""
    report = score_report(
        [""] * 197 + ["Ein Haus."] * 3, ["Das Haus ist alt."] * 200, "de"
    )
    margin = report["chrf"]["margin"]
    assert (
        (margin is None or margin > 0)
        and report["chrf"]["score"] >= 0
        and report["bleu"]["margin"] is not None
    )


def test_white_space_has_no_translation(tokenizer):
    model = model_of(vocab_size=tokenizer.vocab_size)
    some = ["", "The cat sleeps.", "  "]
    first, second, third = translate(model, tokenizer, some, 2, 0.6, Batching(5))
    assert (
        first == third == ""
        and second == translate(model, tokenizer, some[1:2], 2, 0.6, Batching(5))[0]
    )
    assert [
        [entry.text for entry in entries]
        for entries in translate_n_best(
            model, tokenizer, some[::2], 2, 2, 0.6, Batching(5)
        )
    ] == [[""], [""]]


def test_translate_needs_a_list_and_room(tokenizer):
    model = model_of(vocab_size=tokenizer.vocab_size)
    with pytest.raises(
        ValueError, match="sentences must be a list of strings, not one string"
    ):
        translate(model, tokenizer, "one two")
    with pytest.raises(ValueError, match="batch_tokens must be at least 1, not 0"):
        Batching(batch_tokens=0)


def test_a_batching_is_written_as_it_is_made():
    assert repr(Batching(5)) == "Batching(extra=5, batch_tokens=None)"


def test_sentences_may_come_one_by_one(tokenizer):
    """From a generator, too; and the model is left in evaluation mode."""
    model, some = (
        model_of(vocab_size=tokenizer.vocab_size).train(),
        ["one two", "", "three"],
    )
    assert (
        translate(model, tokenizer, iter(some), 2, 0.6, Batching(5))
        == translate(model, tokenizer, some, 2, 0.6, Batching(5))
        and not model.training
    )
    assert translate_n_best(
        model, tokenizer, iter(some), 2, 2, 0.6, Batching(5)
    ) == translate_n_best(model, tokenizer, some, 2, 2, 0.6, Batching(5))


def test_a_way_to_count_that_gives_no_score_is_named(monkeypatch):
    monkeypatch.setattr("transformer.core.scores.SCORES", {"mine": lambda *_: 3.0})
    from transformer.core.scores import scores

    with pytest.raises(
        TypeError,
        match=r"SCORES\['mine'\] gives 3.0: a Score\(percent, signature\) is wanted",
    ):
        scores(["a b"], ["a b"])


def test_the_likeliest_token_is_no_padding_and_leaves_the_logits_as_they_are():
    logits = torch.tensor([[9.0, 1.0, 3.0], [0.0, 2.0, 1.0]])
    before = logits.clone()
    assert likeliest(logits, pad_id=0).tolist() == [2, 1]
    assert torch.equal(logits, before)


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_search_turns_off_the_dropout_of_a_single_part(search):
    model = model_of(P_drop=0.5).eval()
    source = torch.tensor([SOURCES[0]])
    expected = search(model, source)
    model.decoder.layers[1].train()
    assert search(model, source) == expected
    assert not any(part.training for part in model.modules())
