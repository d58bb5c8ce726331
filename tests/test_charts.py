"""Section 6.3, beyond the reproduction: searches for trees only, a decoder that counts, charts."""

import random
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from torch import nn

from transformer.core.records import flatten
from transformer.corpora.trees import Tree, leaves_of
from transformer.data import collate
from transformer.experiments import parser, parser_differences
from transformer.experiments.charts import (
    Grammar,
    best_spans,
    binarized,
    collapsed,
    fill,
    likeliest,
    read_grammar,
    read_off,
    restored,
    tree_of_spans,
)
from transformer.experiments.parser import (
    Setting,
    right_branching,
    share_of_rate,
)
from transformer.experiments.parser_differences import difference
from transformer.experiments.spans import Labels, SpanParser, labelled_spans
from transformer.fast.model import TransformerConfig
from transformer.fast.search import KeyValueCache, beam_search, greedy_search
from transformer.models.tree_model import (
    ParserConfig,
    ParserTokenizer,
    TreeTransformer,
    kinds,
    still_open,
)
from transformer.models.tree_search import OnlyTrees
from transformer.parsing import linearize, read_back
from transformer.runs.training import TrainingConfig

SYMBOLS = ["<pad>", "<s>", "</s>", "D", "S_", "X_", "_S", "_X"]


def random_tree(chance, depth=0):
    parts = []
    for _ in range(chance.randint(1, 4)):
        leaf = Tree(chance.choice("DNV"), [chance.choice("abcd")])
        deeper = depth < 3 and chance.random() < 0.5
        parts.append(random_tree(chance, depth + 1) if deeper else leaf)
    return Tree(chance.choice(["S", "NP", "VP"]), parts)


TREES = [random_tree(random.Random(seed)) for seed in range(60)]


# Searches


@dataclass
class Prefixes:
    """The state of a search that knows its beginnings by heart."""

    rows: list
    source: torch.Tensor = field(default=None)

    def select(self, rows):
        self.rows = [self.rows[i] for i in rows.tolist()]


class Whims(nn.Module):
    """A model whose logits are random numbers that the beginning decides."""

    @dataclass
    class config:
        pad_id, bos_id, eos_id, max_positions = 0, 1, 2, 100

    def __init__(self, seed):
        super().__init__()
        self.seed, self.one = seed, nn.Parameter(torch.zeros(1))

    def lengths(self, source):
        return (source > 2).sum(dim=1)

    def initial_state(self, source, new_cache):
        return Prefixes([()] * len(source))

    def logits(self, prefix):
        generator = torch.Generator().manual_seed(hash((self.seed, *prefix)) % 2**31)
        return 2 * torch.randn(len(SYMBOLS), generator=generator)

    def step(self, tokens, state):
        state.rows = [
            (*row, token) for row, token in zip(state.rows, tokens[:, 0].tolist())
        ]
        return torch.stack([self.logits(row) for row in state.rows])


def log_p(model, symbols):
    """What the model gives a whole output, which may not hold padding."""
    prefix, total = (1,), 0.0
    for symbol in [*(SYMBOLS.index(s) for s in symbols), 2]:
        total += model.logits(prefix).log_softmax(dim=0)[symbol].item()
        prefix = (*prefix, symbol)
    return total


def all_trees(words, most):
    """Every output over so many words, of at most so many symbols, that needs no repair."""
    level, found = [[]], []
    for _ in range(most):
        level = [
            [*row, symbol]
            for row in level
            for symbol in SYMBOLS[3:]
            if row or symbol.endswith("_")
        ]
        level = [
            row
            for row in level
            if row.count("D") <= words
            and sum(s.endswith("_") - s.startswith("_") for s in row) > -1
        ]
        found += [
            row
            for row in level
            if row.count("D") == words
            and read_back(" ".join(row), [("w", "D")] * words)[1] == 0
        ]
    return found


@pytest.mark.parametrize("seed", range(3))
def test_the_best_tree_is_that_of_all_trees(seed):
    """A wide constrained beam finds what trying all outputs finds; greedily it is one of them."""
    model, source = Whims(seed), torch.tensor([[3, 3, 2], [3, 2, 0]])
    only = OnlyTrees(model, SYMBOLS, extra=5)
    found = beam_search(only, source, beam=300, alpha=0.0, extra=5)
    greedy = greedy_search(only, source, extra=5)
    for words, hypotheses, tokens in zip((2, 1), found, greedy):
        trees = all_trees(words, most=words + 5)  # the end mark takes one token
        best = max(trees, key=lambda row: log_p(model, row))
        assert [SYMBOLS[token] for token in hypotheses[0].tokens[:-1]] == best
        assert hypotheses[0].score == pytest.approx(log_p(model, best), abs=1e-4)
        assert [SYMBOLS[token] for token in tokens[:-1]] in trees


# The model


@pytest.fixture(scope="module")
def texts():
    return [(" ".join(tree.leaves()), linearize(tree)) for tree in TREES]


@pytest.fixture(scope="module")
def tokenizer(texts):
    return ParserTokenizer.train(texts, 300)


def model_of(tokenizer, kind=TreeTransformer, **changes):
    torch.manual_seed(0)
    sizes = dict(d_model=16, d_ff=32, N=2, h=2, max_positions=200)
    c = ParserConfig(tokenizer.vocab_size, **sizes, **changes)
    return kind(c, tokenizer).eval()


CHANGES = [
    {"words": True, "count": False},
    {"words": False, "count": True},
    {"bracket": True},
    {"bracket": True, "depth": True},
]


@pytest.mark.parametrize("changes", CHANGES)
def test_step_by_step_equals_all_at_once(tokenizer, texts, changes):
    model = model_of(tokenizer, **changes)
    batch = collate(tokenizer.encode_pairs(texts[:5]))
    with torch.no_grad():
        expected = model(batch.source, batch.decoder_input)
        state = model.initial_state(batch.source, KeyValueCache)
        for t in range(batch.decoder_input.shape[1]):
            found = model.step(batch.decoder_input[:, t : t + 1], state)
            torch.testing.assert_close(found, expected[:, t], rtol=0, atol=1e-5)
            order = torch.randperm(5)
            state.select(order)
            batch = type(batch)(batch.source[order], batch.target[order])
            expected = expected[order]
    state.shorten(3)  # and written anew
    found = model.step(batch.decoder_input[:, 3:4], state)
    torch.testing.assert_close(found, expected[:, 3], rtol=0, atol=1e-5)


def test_what_is_still_open_equals_a_stack(tokenizer):
    """Also where brackets close that were never open."""
    chance = torch.Generator().manual_seed(0)
    rows = torch.randint(len(tokenizer.symbols), (50, 40), generator=chance)
    innermost, depths = still_open(rows, kinds(tokenizer.symbols))
    for row, found, many in zip(rows.tolist(), innermost.tolist(), depths.tolist()):
        stack, opened, closed = [0], 0, 0
        for token, at, number in zip(row, found, many):
            symbol = tokenizer.symbols[token]
            if symbol.endswith("_"):
                stack, opened = [*stack, token], opened + 1
            elif symbol.startswith("_"):
                stack, closed = stack[:-1] or [0], closed + 1
            assert (at, number) == (stack[-1], opened - closed)


def test_words_are_pooled(tokenizer):
    model, sentences = model_of(tokenizer), ["gardener's well-known (twice)", "a b"]
    rows = [[*ids, 2] for ids in tokenizer.encode_all(sentences)]
    source = collate([(row, [1]) for row in rows]).source
    assert model.lengths(source).tolist() == [3, 2] and len(rows[0]) > 6
    alone = model.encode(source[1:, : len(rows[1])])
    torch.testing.assert_close(model.encode(source)[1:, :3], alone, rtol=0, atol=1e-5)
    assert model.mask(source)[:, 0, 0].tolist() == [[True] * 4, [True] * 3 + [False]]


def test_what_is_written_only_changes_with_what_was_written(tokenizer, texts):
    """Count and brackets read the past alone: logits before a changed symbol stay."""
    model = model_of(tokenizer, bracket=True, depth=True)
    batch = collate(tokenizer.encode_pairs(texts[:1]))
    other = batch.decoder_input.clone()
    other[:, 4:] = other[:, 4:].flip(1)
    before, after = (
        model(batch.source, target)[:, :4] for target in (batch.decoder_input, other)
    )
    torch.testing.assert_close(before, after, rtol=0, atol=1e-6)


# Charts


def splits(start, end):
    """Every tree of two parts over words start to end - 1, as nested (start, end, left, right)."""
    if end - start == 1:
        yield (start, end)
    for middle in range(start + 1, end):
        for left in splits(start, middle):
            for right in splits(middle, end):
                yield (start, end, left, right)


def spans_of(tree):
    return [tree[:2]] + [span for part in tree[2:] for span in spans_of(part)]


@pytest.mark.parametrize("n", range(1, 6))
def test_best_spans_equal_all_trees(n):
    scores = torch.randn(n, n)
    found = best_spans(scores)
    value = sum(scores[i, j - 1].item() for i, j in found)
    every = [
        sum(scores[i, j - 1].item() for i, j in spans_of(tree)) for tree in splits(0, n)
    ]
    assert value == pytest.approx(max(every), abs=1e-5) and len(found) == 2 * n - 1


@pytest.mark.parametrize("n", range(1, 5))
def test_chart_equals_all_derivations(n):
    N, rules = 3, torch.cartesian_prod(*[torch.arange(3)] * 3)
    grammar = Grammar(
        list("ABC"),
        rules[:, 0],
        torch.arange(27) % 9,
        rules[:9, 1:].T.contiguous(),
        torch.randn(27),
        torch.zeros(3),
        None,
    )
    leaves = torch.randn(N, n)

    def best(tree, symbol):
        if len(tree) == 2:
            return leaves[symbol, tree[0]].item()
        return max(
            best(tree[2], b)
            + best(tree[3], c)
            + grammar.log_p[9 * symbol + 3 * b + c].item()
            for b in range(N)
            for c in range(N)
        )

    chart = fill(leaves, grammar)
    for symbol in range(N):
        expected = max(best(tree, symbol) for tree in splits(0, n))
        assert chart[-1][symbol, 0].item() == pytest.approx(expected, abs=1e-5)
        found = read_off(chart, grammar, symbol, 0, [str(i) for i in range(n)])

        def value(t):
            a = "ABC".index(t.label())
            if isinstance(t[0], str):
                return leaves[a, int(t[0])].item()
            b, c = ("ABC".index(part.label()) for part in t)
            return grammar.log_p[9 * a + 3 * b + c].item() + sum(map(value, t))

        assert value(found) == pytest.approx(expected, abs=1e-5)
        assert found.leaves() == [str(i) for i in range(n)]


@pytest.mark.parametrize("siblings, parent", [(0, False), (1, True), (2, True)])
def test_a_grammar_read_off_trees(siblings, parent):
    for tree in TREES:
        assert restored(binarized(tree, siblings, parent)) == tree
    grammar = read_grammar(TREES, siblings, parent)
    sums = torch.zeros(len(grammar.symbols)).scatter_add(
        0, grammar.parent, grammar.log_p.exp()
    )
    assert set(sums.round(decimals=4).tolist()) <= {0.0, 1.0}
    tree, score = likeliest(grammar, ["a", "b", "unseen"])
    assert tree.leaves() == ["a", "b", "unseen"] and score > -np.inf


def test_spans_and_back():
    for tree in TREES:
        spans = sorted(labelled_spans(collapsed(tree)), key=lambda s: (s[0], -s[1]))
        assert tree_of_spans(tree.leaves(), spans) == tree


def test_a_span_parser_learns_its_trees(tokenizer, texts):
    """Spans that score the gold labels highest give the gold trees; the loss asks for these."""
    labels = Labels(TREES)
    model = model_of(
        tokenizer, lambda c, t: SpanParser(c, t, labels), count=False, P_drop=0.0
    )
    rows = tokenizer.encode_all([sentence for sentence, _ in texts])
    targets = [labels.encode(tree) for tree in TREES]
    for target, tree in zip(
        targets, TREES
    ):  # a number a span: few enough for the positions
        assert len(target) == 1 + len(labelled_spans(collapsed(tree)))
    batch = collate([([*row, 2], target) for row, target in zip(rows, targets)])
    gold = model.gold(batch.target, model.lengths(batch.source))
    n = model.lengths(batch.source)
    assert (gold > 0).sum().item() == (n * (n + 1) // 2).sum().item()
    model.spans = lambda source: nn.functional.one_hot(gold, len(labels.names)).float()
    model.output = nn.Identity()
    for found, tree in zip(model.trees(batch.source), TREES):
        assert [t for _, t in leaves_of(found)] == [t for _, t in leaves_of(tree)]
        assert linearize(found) == linearize(tree)


# The runs


def test_right_branching():
    assert right_branching(["a", "b", "c", "."], "S", "X") == "S_ XX X_ XX XX _X XX _S"
    for n in range(1, 6):
        assert (
            read_back(right_branching(["a"] * n, "S", "X"), [("a", "XX")] * n)[1] == 0
        )
    assert right_branching(["."], "S", "X") == "S_ XX _S"


def test_rates():
    s = Setting(updates=1000)
    updates = (50, 100, 550, 1000)
    rates = [share_of_rate(u, s, 100) * min(u / 100, (100 / u) ** 0.5) for u in updates]
    assert rates == pytest.approx([0.5, 1.0, 451 / 901, 1 / 901])


def test_a_difference_of_articles():
    chance = np.random.RandomState(1)
    gold, test = chance.randint(5, 20, (2, 40))
    matched = np.minimum(gold, test) - 2
    one = np.array([matched, test]), 1
    assert difference(one, one, gold, [10] * 4)["p"] == 1.0
    found = difference((np.array([matched + 1, test]), 1), one, gold, [10] * 4)
    assert found["f1"] == pytest.approx(200 * 40 / (gold.sum() + test.sum()), abs=0.01)
    assert found["low"] > 0 and found["p"] < 0.01


def test_what_is_compared_has_a_row():
    rows = {row for row, _, _ in parser.ROWS} | {
        "grammar",
        "all, bracket",
    }  # the last given up
    assert {row for pair in parser_differences.SINGLE for row in pair} <= rows
    assert {row for pair in parser_differences.FINAL for row, _ in pair} <= rows


@pytest.mark.parametrize(
    "s, ways",
    [
        (Setting(4, bracket=True, depth=True), 4),
        (Setting(4, count=False, spans=True), 1),
        (replace(parser.AS_IT_WAS, updates=4), 2),
    ],
)
def test_a_row_is_trained_and_scored(s, ways, texts, monkeypatch, tmp_path, one_thread):
    pairs = [(sentence, tree) for (sentence, _), tree in zip(texts, TREES)][:30]
    c = TransformerConfig(300, d_model=16, d_ff=32, N=1, h=2, max_positions=400)
    training = TrainingConfig(batch_tokens=400, warmup=4, keep=2)
    for name, value in {
        "gold_trees": lambda split: pairs,
        "VALIDATIONS": 2,
        "EXTRA": 30,
    }.items():
        monkeypatch.setattr(parser, name, value)
    monkeypatch.setattr(parser, "RECIPE", {"model": c, "training": training})
    row = flatten(parser.run(s, 1, tmp_path / "row", "cpu"))
    found = [name for name in row if name.startswith("test.") and name.endswith(".f1")]
    assert (
        sum("by_length" not in name for name in found) == ways and row["updates"] == 4
    )
    assert s.spans or not s.vocabulary or row["test.greedy, only trees.malformed"] == 0
    assert len(row["log.f1"]) == len(row["log.malformed"]) == 2
    again = flatten(parser.run(s, 1, tmp_path / "row", "cpu"))
    assert {name: row[name] for name in found} == {name: again[name] for name in found}
