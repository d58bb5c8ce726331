"""A treebank as a task of the training loop, and a parser's scores on a whole test set."""

import math

from tqdm import tqdm

from transformer.corpora import read_corpus, stream_corpus
from transformer.corpora.tokenizer import WORD
from transformer.corpora.trees import leaves_of
from transformer.data import encode_pairs
from transformer.models.evalb import score_trees, summary
from transformer.parsing import (
    UNKNOWN,
    choose,
    gold_tree,
    is_tag,
    linearize,
    read_back,
    untagged,
    write_trees,
)
from transformer.runs.encoded import check_pairs
from transformer.runs.run import Task
from transformer.runs.training import held_out_loss

LENGTHS = {
    "1-10": 10,
    "11-20": 20,
    "21-30": 30,
    "31-40": 40,
    "41 or more": math.inf,
}  # words


def spaced(text: str) -> str:
    """A plain sentence roughly as a treebank has it: words and marks with spaces between.

    A treebank would write contractions, decimals and hyphens otherwise: "does n't", "3.5",
    "well-known".
    """
    return " ".join(WORD.findall(text))


def by_length(rows, counted):
    """{length in words: {"sentences": n, "f1": F1, "right_count": per cent}}, where there are any.

    rows: `BracketScore`s; counted: for each, whether its output had as many tags as words.
    """
    groups = {name: [] for name in LENGTHS}
    for row, right in zip(rows, counted):
        name = next(name for name, most in LENGTHS.items() if row.length <= most)
        groups[name].append((row, right))
    figures = {}
    for name, some in groups.items():
        if some:
            figures[name] = {
                "sentences": len(some),
                "f1": round(summary([row for row, _ in some])["f1"], 2),
                "right_count": per_cent([right for _, right in some]),
            }
    return figures


def per_cent(hits):
    """The share of a list that is true, in per cent, to two places."""
    return round(100 * sum(hits) / len(hits), 2)


def score_outputs(outputs, golds) -> dict:
    """The figures of one output (a linearised tree) for each gold tree.

    By `COLLINS`; but tags: per cent of the words whose part of speech is that of the gold tree.
    valid_trees: per cent of the outputs that need no repair. right_count: per cent of the outputs
    with as many parts of speech as words.
    """
    rows, repairs, counted, tags = [], [], [], []
    for output, gold in zip(outputs, golds):
        leaves = leaves_of(gold)
        tree, mended = read_back(output, leaves)
        rows.append(score_trees([gold], [tree]))
        repairs.append(mended)
        counted.append(sum(map(is_tag, output.split(" "))) == len(leaves))
        own, _ = read_back(output, [(word, UNKNOWN) for word, _ in leaves])
        tags += [
            found == right for (_, found), (_, right) in zip(leaves_of(own), leaves)
        ]
    found = summary(rows)
    names = ("f1", "precision", "recall", "complete", "average_crossing")
    return {
        **{name: round(found[name], 2) for name in names},
        "tags": per_cent(tags),
        "valid_trees": per_cent([mended == 0 for mended in repairs]),
        "right_count": per_cent(counted),
        "repairs_a_sentence": round(sum(repairs) / len(repairs), 3),
        "by_length": by_length(rows, counted),
    }


def evaluate_parser(model, tokenizer, pairs, beam=21, alpha=0.3, what="test") -> dict:
    """Parse the sentences of (sentence, tree as text) pairs; the figures for scores.json.

    They are those of the outputs that `choose` takes; under "likeliest" are those of the likeliest
    ones.
    """
    sentences = [sentence for sentence, _ in pairs]
    golds = [gold_tree(tree) for _, tree in pairs]
    with tqdm(
        total=len(pairs),
        desc=what,
        unit="sentence",
        mininterval=1.0,
        disable=what is None,
    ) as bar:
        written = write_trees(model, tokenizer, sentences, beam, alpha, bar.update)
    chosen = [
        choose(outputs, untagged(sentence))
        for outputs, sentence in zip(written, sentences)
    ]
    likeliest = [outputs[0] for outputs in written]
    return {
        "sentences": len(pairs),
        "beam": beam,
        "alpha": alpha,
        **score_outputs(chosen, golds),
        "likeliest": score_outputs(likeliest, golds),
    }


def tree_pairs(e, split):
    """Yield (sentence, linearised tree) of a split of an experiment's treebank."""
    if e.reverse:
        raise ValueError(
            "a treebank has one direction, from sentences to trees: leave out `reverse`"
        )
    return (
        (sentence, linearize(gold_tree(tree)))
        for sentence, tree in stream_corpus(e.corpus, split)
    )


def make_tree_validator(e, tokenizer, sentences, count):
    """validate(model) for `train`: cross-entropy, F1 and valid trees on validation sentences.

    The `count` sentences come from all over the split, because neighbours are of one article.
    """
    pairs = read_corpus(e.corpus, "validation")
    pairs = pairs[:: max(1, len(pairs) // count)][:count]
    texts = [(sentence, linearize(gold_tree(tree))) for sentence, tree in pairs]
    encoded = encode_pairs(tokenizer, texts)
    check_pairs(encoded, e.model, "validation ")

    def validate(model):
        report = evaluate_parser(model, tokenizer, pairs, beam=1, what=None)
        figures = {name: report[name] for name in ("f1", "valid_trees")}
        return {**held_out_loss(model, encoded), **figures}

    return validate


PARSING = Task(tree_pairs, make_tree_validator)
