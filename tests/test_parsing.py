"""Section 6.3: trees in and out as text, repairs, EVALB's bracket scores, and the training loop on a treebank."""

import os
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from transformer import data, parsing
from transformer.corpora import read_corpus
from transformer.corpora.tokenizer import Tokenizer
from transformer.corpora.trees import Tree, leaves_of, read_trees, walk
from transformer.fast.model import Transformer, TransformerConfig
from transformer.models.evalb import (
    COLLINS,
    BracketScore,
    Settings,
    cross,
    score_trees,
    summary,
)
from transformer.models.recording import cache
from transformer.models.search import Translation
from transformer.parsing import (
    choose,
    closing_looks,
    closings,
    gold_tree,
    linearize,
    parse,
    read_back,
    symbol_attention,
    tidy,
    untagged,
)
from transformer.runs import experiment as experiments
from transformer.runs import parsers
from transformer.runs.experiment import Experiment
from transformer.runs.parsers import PARSING, evaluate_parser, spaced, tree_pairs
from transformer.runs.progress import read_log
from transformer.runs.run import run_experiment
from transformer.runs.training import TrainingConfig

FENCE = (
    "(S (NP (DT The) (NN gardener)) (VP (VBD repaired) (NP (NP (DT the) (NN fence)) (PP (IN behind) "
    "(NP (DT the) (NN school))))) (. .))"
)


def words(n):
    return [(f"w{i}", "T") for i in range(n)]


def random_tree(chance, depth=0):
    """A tree in which every constituent holds something; chains of single parts and labels with functions come, too."""
    parts = []
    for _ in range(chance.randint(1, 4)):
        deeper = depth < 5 and chance.random() < 0.5
        parts.append(
            random_tree(chance, depth + 1)
            if deeper
            else Tree(chance.choice("DNV"), [chance.choice("abcd")])
        )
    return Tree(chance.choice(["S", "NP", "VP", "PP"]), parts)


@pytest.fixture(scope="module")
def trees():
    chance = random.Random(0)
    return [random_tree(chance) for _ in range(300)]


def one_line(tree):
    """A tree in brackets, on one line, however deep it is."""
    words = {"open": " ({0}", "close": ")", "leaf": " ({0} {1})"}
    return "".join(
        words[mark].format(t.label(), t[0] if mark == "leaf" else "")
        for mark, t in walk(tree)
    ).lstrip(" ")


# Trees as text


def test_brackets_come_back(trees):
    for tree in trees:
        assert read_trees(one_line(tree)) == [tree] and leaves_of(tree) == tree.pos()
    assert read_trees(" ".join(map(one_line, trees))) == trees
    assert read_trees("") == []


def test_brackets_are_read_over_lines_and_with_any_spaces():
    assert read_trees("( (S\n    (NP-SBJ (DT A)\t(NN dog) )\n  (. .) ))") == [
        Tree(
            "",
            [
                Tree(
                    "S",
                    [
                        Tree("NP-SBJ", [Tree("DT", ["A"]), Tree("NN", ["dog"])]),
                        Tree(".", ["."]),
                    ],
                )
            ],
        )
    ]
    no_break = "(NN a\u00a0b\u2009c)"
    assert (
        read_trees(no_break) == [Tree("NN", ["a\u00a0b\u2009c"])]
        and one_line(read_trees(no_break)[0]) == no_break
    )


@pytest.mark.parametrize(
    "text", ["(S (NP (NN a))", "(S (NP (NN a))))", "word", "(S) word", ")", "("]
)
def test_brackets_that_do_not_match(text):
    with pytest.raises(ValueError, match="brackets do not match"):
        read_trees(text)


def test_a_leaf_has_one_word():
    for text in ("(NP two words)", "(NP (NN a) word)"):
        with pytest.raises(
            ValueError, match="the bracket NP holds a word and something else"
        ):
            read_trees(text)


def deep(depth):
    tree = Tree("NN", ["a"])
    for _ in range(depth):
        tree = Tree("NP", [tree])
    return tree


def test_walk_meets_everything_once_and_in_order(trees):
    def visit(tree):
        if tree.height() == 2:
            return [("leaf", tree)]
        return [
            ("open", tree),
            *(step for part in tree for step in visit(part)),
            ("close", tree),
        ]

    for tree in trees:
        assert list(walk(tree)) == visit(tree)


def test_trees_may_be_deep():
    """What a model writes may be deeper than Python's recursion goes; text that is read may not."""
    tree = deep(5000)
    assert (
        len(list(walk(tree))) == 10_001
        and len(one_line(tree)) == 5000 * 5 + 6
        and len(leaves_of(tree)) == 1
    )
    assert len(linearize(tidy(tree)).split()) == 10_001
    assert (
        score_trees([deep(3)], [read_back(linearize(tree), [("a", "NN")])[0]]).matched
        == 3
    )
    with pytest.raises(ValueError, match="more than 400 brackets inside each other"):
        read_trees(one_line(deep(900)))
    assert score_lines(["(S (NN a))"], [one_line(deep(900))])[0].status == 1


def test_tidy():
    annotated = (
        "( (S (NP-SBJ-1 (DT The) (NN window)) (VP (VBD was) (VP (VBN opened) (NP (-NONE- *-1)) "
        "(PP-LGS (IN by) (NP=2 (NN nobody))))) (SBAR (-NONE- 0) (S (-NONE- *T*-1))) (. .)) )"
    )
    assert one_line(gold_tree(annotated)) == (
        "(S (NP (DT The) (NN window)) (VP (VBD was) (VP (VBN opened) (PP (IN by) "
        "(NP (NN nobody))))) (. .))"
    )
    several = "( (NP (-LRB- -LRB-) (NN a)) (S (NN b)) )"
    assert one_line(gold_tree(several)) == "(TOP (NP (-LRB- -LRB-) (NN a)) (S (NN b)))"
    assert tidy(read_trees("( (S (NP (-NONE- *))) )")[0]) is None
    assert one_line(tidy(read_trees("(ADVP|PRT (RP up))")[0])) == "(ADVP|PRT (RP up))"


def test_tidy_changes_nothing_twice(trees):
    for tree in trees:
        assert tidy(tree) == tree == tidy(Tree("", [tree]))


# Linearised trees, and back


def test_linearize():
    assert linearize(read_trees(FENCE)[0]) == (
        "S_ NP_ DT NN _NP VP_ VBD NP_ NP_ DT NN _NP PP_ IN NP_ DT NN _NP _PP _NP _VP . _S"
    )


def test_a_linearised_tree_is_read_back(trees):
    for tree in trees:
        assert read_back(linearize(tree), leaves_of(tree)) == (tree, 0)


@pytest.mark.parametrize(
    "text, tree, repairs",
    [
        ("S_ XX XX XX _S", "(S (T w0) (T w1))", 1),  # a word too many
        (
            "S_ NP_ XX _NP _S",
            "(S (NP (T w0)) (T w1))",
            1,
        ),  # one too few goes into the root
        (
            "S_ NP_ XX",
            "(S (NP (T w0)) (T w1))",
            3,
        ),  # one too few, and two brackets open
        (
            "NP_ XX _NP VP_ _VP",
            "(NP (T w0) (T w1))",
            2,
        ),  # the empty VP goes first: one piece is left
        ("S_ NP_ XX XX _S", "(S (NP (T w0) (T w1)))", 1),  # one bracket open inside
        ("S_ NP_ XX XX _VP _NP _S", "(S (NP (T w0) (T w1)))", 1),  # VP was never opened
        (
            "S_ NP_ XX NP_ XX _NP _S",
            "(S (NP (T w0) (NP (T w1))))",
            1,
        ),  # the innermost NP is closed first
        ("S_ NP_ _NP XX XX _S", "(S (T w0) (T w1))", 1),  # an empty constituent
        (
            "S_ NP_ VP_ _NP XX XX _S",
            "(S (T w0) (T w1))",
            3,
        ),  # an unclosed empty one in an empty one
        ("NP_ XX _NP VP_ XX _VP", "(S (NP (T w0)) (VP (T w1)))", 1),  # two roots
        ("XX XX", "(S (T w0) (T w1))", 1),
        ("S_ XX _the _ XX _S", "(S (T w0) (T w1))", 2),  # no symbols
        ("S_ XX XX _S _S", "(S (T w0) (T w1))", 1),
        ("", "(S (T w0) (T w1))", 4),  # the empty symbol, two words, a root
    ],
)
def test_repairs(text, tree, repairs):
    found, count = read_back(text, words(2))
    assert (one_line(found), count) == (tree, repairs)


def test_anything_becomes_a_tree_over_the_words():
    chance = random.Random(1)
    symbols = [
        "XX",
        "XX",
        "XX",
        "S_",
        "_S",
        "NP_",
        "_NP",
        "VP_",
        "_VP",
        "_",
        "__",
        ".",
        "",
        "XX_",
        "_XX",
    ]
    perfect = 0
    for _ in range(8000):
        leaves = words(chance.randint(1, 6))
        tree, repairs = read_back(
            " ".join(chance.choices(symbols, k=chance.randint(0, 14))), leaves
        )
        assert leaves_of(tree) == leaves and tree.height() > 2
        assert all(t for _, t in walk(tree))
        assert read_back(linearize(tree), leaves) == (tree, 0), (
            "what was repaired needs no repair"
        )
        perfect += repairs == 0
    assert 0 < perfect < 1000
    assert leaves_of(read_back("S_ " * 3000 + "XX", words(1))[0]) == words(1)


def test_words_get_the_parts_of_speech_that_were_written():
    tree, repairs = read_back("S_ NP_ DT NN _NP VBZ _S", untagged("the gardener sings"))
    assert (one_line(tree), repairs) == (
        "(S (NP (DT the) (NN gardener)) (VBZ sings))",
        0,
    )
    tree, repairs = read_back("S_ NP_ DT _NP", untagged("the gardener"))
    assert (one_line(tree), repairs) == ("(S (NP (DT the)) (XX gardener))", 2)


# Bracket scores

EVALB_SAMPLE = Settings(equal_labels=(("T", "TT"),), equal_words=(("This", "this"),))


def score_lines(gold, test, settings=COLLINS):
    """The `BracketScore` of each pair of lines of brackets, as EVALB reads them."""
    rows = []
    for gold_line, test_line in zip(gold, test, strict=True):
        gold_trees = read_trees(gold_line)
        try:
            test_trees = read_trees(test_line)
        except ValueError:
            test_trees = None
        rows.append(score_trees(gold_trees, test_trees, settings))
    return rows


def one(gold, test, settings=COLLINS):
    return score_lines([gold], [test], settings)[0]


def test_a_tree_equals_itself(trees):
    rows = score_lines(map(one_line, trees), map(one_line, trees))
    found = summary(rows)
    assert (
        found["f1"]
        == found["recall"]
        == found["precision"]
        == found["complete"]
        == found["tagging"]
        == 100
    )
    assert (
        found["sentences"] == len(trees)
        and found["average_crossing"] == found["errors"] == found["skipped"] == 0
    )


def test_scores_by_hand():
    """The PP hangs on the verb: 7 gold brackets, 6 in the other tree, which are all right."""
    other = FENCE.replace(
        "(NP (NP (DT the) (NN fence)) (PP (IN behind) (NP (DT the) (NN school)))))",
        "(NP (DT the) (NN fence)) (PP (IN behind) (NP (DT the) (NN school))))",
    )
    row = one(FENCE, other)
    assert row == BracketScore(
        length=9, status=0, matched=6, gold=7, test=6, crossing=0, words=8, tags=8
    )
    found = summary([row])
    assert found["recall"] == pytest.approx(600 / 7) and found["precision"] == 100
    assert (
        found["f1"] == pytest.approx(1200 / 13)
        and found["complete"] == 0
        and found["tagging"] == 100
    )


def test_counts_are_summed_before_they_are_divided():
    rows = score_lines(
        ["(S (A (X a) (Y b)) (Z c))", "(S (X a))"],
        ["(S (X a) (B (Y b) (Z c)))", "(S (X a))"],
    )
    assert [(row.matched, row.gold, row.test, row.crossing) for row in rows] == [
        (1, 2, 2, 1),
        (1, 1, 1, 0),
    ]
    found = summary(rows)
    assert (
        found["recall"] == found["precision"] == found["f1"] == pytest.approx(200 / 3)
    )
    assert (found["complete"], found["no_crossing"], found["average_crossing"]) == (
        50,
        50,
        0.5,
    )
    assert found["two_or_less_crossing"] == 100


def test_punctuation_and_traces():
    """A comma takes no place in a span, nor a trace; what holds nothing else does not count; TOP never does."""
    plain = "(S (NP (NN a)) (VP (VB b)))"
    full = "(TOP (S (NP (NN a) (, ,)) (PRN (, ,)) (VP (VB b) (NP (-NONE- *))) (. .)))"
    row = one(plain, full)
    assert (row.status, row.matched, row.gold, row.test, row.words) == (0, 3, 3, 3, 2)
    assert one(full, plain).length == 5 and row.length == 2, (
        "the length counts punctuation, not traces"
    )
    assert one(plain, full, Settings(delete=())).status == 1, (
        "with nothing deleted the words differ"
    )


def test_labels():
    assert one("(S-ADV=1 (NP-SBJ-2 (NN a)))", "(S (NP (NN a)))").matched == 2
    assert one("(S (PRT (RP up)))", "(S (ADVP (RP up)))").matched == 2
    assert one("(S (ADVP (RP up)))", "(S (PRT (RP up)))").matched == 2
    assert one("(S (ADVP (RP up)))", "(S (PRT (RP up)))", EVALB_SAMPLE).matched == 1
    twice = one("(S (NP (NP (NN a))))", "(S (NP (NN a)))")
    assert (twice.matched, twice.gold, twice.test) == (2, 3, 2), (
        "a bracket counts as often as it stands there"
    )
    row = one("(S (A a) (B b))", "(S (A a) (C b))")
    assert (row.matched, row.words, row.tags) == (1, 2, 1)


def test_errors_and_skipped():
    gold = "(S (A a) (B b))"
    others = {
        "": 2,
        "(S (-NONE- *))": 2,
        "(S (A a) (B c))": 1,
        "(S (A a))": 1,
        "(S (A a) (B b)": 1,
    }
    for test, status in others.items():
        row = one(gold, test)
        assert (row.status, row.matched, row.gold, row.test, row.length, row.words) == (
            status,
            0,
            0,
            0,
            2,
            2,
        )
    found = summary(score_lines([gold] * 3, [gold, "", "(S (A a))"]))
    assert (
        found["sentences"],
        found["errors"],
        found["skipped"],
        found["f1"],
        found["tagging"],
    ) == (3, 1, 1, 100, 100)
    assert summary(score_lines([gold], [""]))["f1"] == 0
    with pytest.raises(ValueError, match="brackets do not match"):
        score_lines(["(S"], [gold])


def test_crossing_equals_its_definition():
    spans = [("X", i, j) for i in range(5) for j in range(i + 1, 6)]
    for a in spans:
        for b in spans:
            inside, other = set(range(*a[1:])), set(range(*b[1:]))
            assert cross(a, b) == bool(
                inside & other and inside - other and other - inside
            )


@pytest.mark.skipif(
    "TRANSFORMER_MIRROR" not in os.environ,
    reason="EVALB's sample is not part of the repository: "
    "set TRANSFORMER_MIRROR to a folder that holds evalb_sample/sample.gld, .tst and .rsl",
)
def test_all_figures_of_evalbs_sample():
    folder = Path(os.environ["TRANSFORMER_MIRROR"], "evalb_sample")
    gold, test, report = (
        (folder / f"sample.{kind}").read_text().split("\n")
        for kind in ("gld", "tst", "rsl")
    )
    rows = score_lines(gold[:-1], test[:-1], EVALB_SAMPLE)

    def share(part, whole):
        return f"{100 * part / whole if whole else 0:.2f}"

    expected = [
        line.split() for line in report if re.match(r" *\d+ +\d+ +[012] ", line)
    ]
    found = [
        [
            str(number),
            str(row.length),
            str(row.status),
            share(row.matched, row.gold),
            share(row.matched, row.test),
            *map(
                str,
                (row.matched, row.gold, row.test, row.crossing, row.words, row.tags),
            ),
            share(row.tags, row.words),
        ]
        for number, row in enumerate(rows, 1)
    ]
    assert found == expected and len(expected) == 24
    names = {
        "Number of sentence": "sentences",
        "Number of Error sentence": "errors",
        "Number of Skip  sentence": "skipped",
        "Bracketing Recall": "recall",
        "Bracketing Precision": "precision",
        "Complete match": "complete",
        "Average crossing": "average_crossing",
        "No crossing": "no_crossing",
        "2 or less crossing": "two_or_less_crossing",
        "Tagging accuracy": "tagging",
    }
    parts = "\n".join(report).split("-- len<=40 --")
    for part, some in zip(parts, (rows, [row for row in rows if row.length <= 40])):
        figures = dict(re.findall(r"^([A-Z2][\w ]+?) += +([\d.]+)$", part, re.M))
        assert set(names) <= set(figures)
        for name, key in names.items():
            assert f"{summary(some)[key]:.2f}" == f"{float(figures[name]):.2f}", name


# The model


@pytest.fixture
def treebank(monkeypatch):
    """A treebank of 60 small trees in place of CRAFT's."""
    chance, found = random.Random(2), []
    while len(found) < 60:
        tree = random_tree(chance, depth=3)
        if len(leaves_of(tree)) < 8:
            found.append(tree)
    pairs = [(" ".join(tree.leaves()), f"( {tree} )") for tree in found]
    for module in (parsers, experiments):
        monkeypatch.setattr(
            module, "stream_corpus", lambda name, split, reverse=False: iter(pairs)
        )
    monkeypatch.setattr(parsers, "read_corpus", lambda name, split: pairs)
    return found, pairs


def test_tree_pairs(treebank):
    found, pairs = treebank
    expected = [
        (sentence, linearize(tree)) for (sentence, _), tree in zip(pairs, found)
    ]
    assert list(tree_pairs(Experiment("treebank_craft"), "train")) == expected
    with pytest.raises(ValueError, match="one direction, from sentences to trees"):
        tree_pairs(Experiment("treebank_craft", reverse=True), "train")


def test_spaced():
    assert spaced("Don't, she said (twice).") == "Don ' t , she said ( twice ) ."


@pytest.fixture
def scripted(monkeypatch, treebank):
    """The search answers with the gold trees, the first one with a bracket missing; what it was asked is kept."""
    found, pairs = treebank
    asked = {}

    def search(model, tokenizer, sentences, n_best, beam, alpha, how):
        asked.update(n_best=n_best, beam=beam, alpha=alpha, extra=how.extra)
        outputs = dict(zip((s for s, _ in pairs), map(linearize, found)))
        how.progress(len(sentences))
        texts = [outputs[s] for s in sentences]
        texts[0] = texts[0].rpartition(" ")[0]
        return [[Translation(text, -1.0)] for text in texts]

    monkeypatch.setattr(parsing, "translate_n_best", search)
    monkeypatch.setattr(parsers, "stream_corpus", None)
    return asked


def test_evaluate_parser(treebank, scripted):
    found, pairs = treebank
    unlike = {s: pair for pair in pairs for s in [pair[0]]}  # one tree a sentence
    some = list(unlike.values())[:20]
    report = evaluate_parser(None, None, some, what=None)
    assert scripted == {"n_best": 21, "beam": 21, "alpha": 0.3, "extra": 300}
    assert report["f1"] == report["precision"] == report["recall"] == 100
    assert (
        report["valid_trees"] == 95
        and report["repairs_a_sentence"] == 0.05
        and report["sentences"] == 20
    )
    assert report["tags"] == report["right_count"] == 100
    assert sum(group["sentences"] for group in report["by_length"].values()) == 20


def test_wrong_parts_of_speech_cost_no_bracket(treebank, scripted):
    """Full stops which the model calls V: EVALB would leave such sentences out; the gold leaves prevent that."""
    _, pairs = treebank
    marked = {
        sentence: (sentence, text.replace("(V ", "(. "))
        for sentence, text in pairs
        if "(V " in text
    }
    some = list(marked.values())[:20]
    report = evaluate_parser(None, None, some, what=None)
    tags = [tag for _, text in some for _, tag in leaves_of(gold_tree(text))]
    assert report["f1"] == 100 and tags.count(".") > 5
    assert report["tags"] == pytest.approx(
        100 * (1 - tags.count(".") / len(tags)), abs=0.01
    )


def test_parse(treebank, scripted):
    found, pairs = treebank
    ((tree, repairs),) = parse(None, None, [pairs[0][0]])
    assert repairs == 1 and tree == found[0]
    assert scripted == {"n_best": 21, "beam": 21, "alpha": 0.3, "extra": 300}


def test_choose():
    leaves = untagged("a b")
    assert (
        choose(["S_ A B C _S", "S_ A B", "S_ B B _S", "S_ A B _S"], leaves)
        == "S_ B B _S"
    ), "likeliest of two"
    assert (
        choose(["S_ A", "S_ A B"], leaves) == "S_ A B"
        and choose(["S_ A"], leaves) == "S_ A"
    )


def test_a_parser_is_trained_by_the_loop_of_translation(treebank, tmp_path, one_thread):
    e = Experiment(
        "treebank_craft",
        folder=tmp_path / "run",
        device="cpu",
        model=TransformerConfig(
            vocab_size=300, d_model=16, d_ff=32, N=1, h=2, max_positions=400
        ),
        training=TrainingConfig(
            updates=4, batch_tokens=200, warmup=2, validate_every=2, keep=1
        ),
    )
    assert run_experiment(e, "test", count=5, task=PARSING)
    log = read_log(e.folder)
    assert (
        len(log) == 2
        and {"f1", "valid_trees", "validation_loss"} <= set(log[-1])
        and "bleu" not in log[-1]
    )
    tokenizer = Tokenizer.load(e.folder / "tokenizer.json")
    assert len(tokenizer.encode("NP_ D _NP")) == 3, "a symbol is one token"


# Attention at closing brackets


def test_closings():
    symbols = linearize(read_trees(FENCE)[0]).split(" ")
    found = closings(symbols)
    assert [(symbols[a], symbols[b], n) for a, b, n in found] == [
        ("_NP", "NP_", 2),
        ("_NP", "NP_", 5),
        ("_NP", "NP_", 8),
        ("_PP", "PP_", 8),
        ("_NP", "NP_", 8),
        ("_VP", "VP_", 8),
        ("_S", "S_", 9),
    ]
    assert [b for _, b, _ in found] == [1, 8, 14, 12, 7, 5, 0]


@pytest.fixture
def small(seed):
    """A tiny model, and a tokenizer to which words and rare labels are several pieces."""
    tokenizer = Tokenizer.train(["S_ NP_ XX XX _NP XX _S"] * 5, vocab_size=275)
    c = TransformerConfig(
        tokenizer.vocab_size, d_model=16, d_ff=32, N=2, h=2, max_positions=200
    )
    return Transformer(c).eval(), tokenizer


def test_symbol_attention_equals_a_sum_over_tokens(small):
    model, tokenizer = small
    sentence, text = "the gardener sings", "S_ NP_ XX XX _NP WHADVP_ XX _WHADVP _S"
    found = symbol_attention(model, tokenizer, sentence, text)
    batch = data.collate(data.encode_pairs(tokenizer, [(sentence, text)]))
    with cache(model) as seen, torch.no_grad():
        model(batch.source, batch.decoder_input)
    written = [
        i for i, symbol in enumerate(text.split(" ")) for _ in tokenizer.encode(symbol)
    ]
    words = [
        i
        for i, word in enumerate([*sentence.split(" "), ""])
        for _ in (tokenizer.encode(word) if word else [0])
    ]
    assert len(written) > 9 and len(words) > 4
    for weights, kind, columns in zip(
        found, ("self_attention", "cross_attention"), ([-1, *written], words)
    ):
        layers = [
            weights_of_layer[0]
            for name, weights_of_layer in seen.items()
            if name.startswith("decoder.") and name.endswith(f"{kind}.weights")
        ]
        first = min(columns)
        for layer, by_token in zip(weights, layers, strict=True):
            for i in range(9):
                for j in range(layer.shape[2]):
                    places = [
                        c for c, owner in enumerate(columns) if owner == j + first
                    ]
                    expected = by_token[:, written.index(i), places].sum(-1)
                    torch.testing.assert_close(
                        layer[:, i, j], expected, atol=1e-5, rtol=0
                    )


def test_closing_looks(monkeypatch):
    """Heads that look at the opening bracket and the last word inside; at the begin and end mark; at the next word."""
    text = "S_ NP_ XX XX _NP VP_ XX _VP _S"
    symbols = text.split(" ")

    def attention(model, tokenizer, sentence, text):
        decoder, over = torch.zeros(1, 3, 9, 9), torch.zeros(1, 3, 9, 4)
        for place, opening, n in closings(symbols):
            decoder[0, 0, place, opening + 1] = over[0, 0, place, n - 1] = over[
                0, 2, place, n
            ] = 1
        decoder[0, 1:, :, 0] = over[0, 1, :, 3] = 1
        return decoder, over

    monkeypatch.setattr(parsing, "symbol_attention", attention)
    found, guess = closing_looks(None, None, [("a b c", text)])
    assert (
        found["its opening bracket"].tolist()
        == found["the last word inside"].tolist()
        == [[1, 0, 0]]
    )
    assert found["the next word"].tolist() == [
        [0, 0, 1]
    ]  # of the one bracket with a word behind it
    assert guess == pytest.approx(2 / 3)  # VP_, opened last, is not what _S closes


# The treebanks


@pytest.mark.skipif(
    "TRANSFORMER_MIRROR" not in os.environ,
    reason="the treebanks are not part of the repository: "
    "set TRANSFORMER_MIRROR to a folder that holds treebank_nltk and treebank_craft",
)
@pytest.mark.parametrize("name", ["treebank_nltk", "treebank_craft"])
def test_every_validation_tree_comes_back(name):
    for sentence, text in read_corpus(name, "validation"):
        tree = gold_tree(text)
        assert len(leaves_of(tree)) == len(sentence.split(" "))
        assert read_back(linearize(tree), leaves_of(tree)) == (tree, 0)
    row = one(text, one_line(tree), replace(COLLINS, delete=(*COLLINS.delete, "")))
    assert row.matched == row.gold == row.test, "tidying changes no bracket that counts"
