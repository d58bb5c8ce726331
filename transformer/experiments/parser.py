"""Parsers on CRAFT for notebook 18: plain baselines, the Transformer as it was, what changes make
of it, and a span scorer on the same encoder.

    python -m transformer.experiments.parser --folder runs/parser

What was expected, and how it is judged, was written down before the runs, in data/runs/parser.md.
"""

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import nn

from transformer.core.files import write_file, write_json
from transformer.core.records import read_rows, write_rows
from transformer.core.weights import count_parameters
from transformer.corpora import corpus_paths, read_corpus
from transformer.corpora.tokenizer import Tokenizer
from transformer.corpora.treebanks import craft_texts, trees_in
from transformer.corpora.trees import Tree, is_leaf, leaves_of
from transformer.data import encode_pairs
from transformer.experiments.charts import Grammar, likeliest, read_grammar
from transformer.experiments.parser_differences import COMMAND, differences
from transformer.experiments.rows import thin
from transformer.experiments.runner import (
    Job,
    devices_for,
    run_command,
    run_jobs,
    settings_of,
    slug,
)
from transformer.experiments.spans import Labels, SpanParser
from transformer.fast import FAST
from transformer.fast.training import fast_training, fused_adam
from transformer.models.evalb import brackets, score_trees
from transformer.models.families import build_fast
from transformer.models.search import Batching, in_batches, translate
from transformer.models.tree_model import (
    ParserConfig,
    ParserTokenizer,
    TreeTransformer,
    symbols_in,
)
from transformer.models.tree_search import OnlyTrees
from transformer.parsing import gold_tree, linearize, read_back
from transformer.runs.experiment import Experiment
from transformer.runs.folder import average_last, hardware_in_words
from transformer.runs.parsers import score_outputs
from transformer.runs.recipes import RECIPES
from transformer.runs.training import held_out_loss, train

CPU = torch.device("cpu")  # of the baselines, wherever the others run
CORPUS, ALPHA, EXTRA, CHUNK = "treebank_craft", 0.3, 300, 1000
RECIPE = RECIPES[CORPUS]
FULL, VALIDATIONS = 36_000, 36
# How a trained parser is asked: its beam, and whether it may write trees only
WAYS = {
    "greedy": (1, False),
    "beam 4": (4, False),
    "greedy, only trees": (1, True),
    "beam 4, only trees": (4, True),
}
KEPT = ("beam 4", "beam 4, only trees")  # each sentence's counts are kept of these


@dataclass(frozen=True)
class Setting:
    """What a row may change."""

    updates: int = FULL
    vocabulary: bool = True  # a target vocabulary of its own
    words: bool = True  # the decoder reads words, not pieces,
    count: bool = True  # and is told how many it has written
    bracket: bool = False  # which bracket is open (the innermost),
    depth: bool = False  # and how many are
    falling: bool = True  # the rate falls linearly to zero
    spans: bool = False  # a span scorer instead of the decoder


# The treebank


def gold_trees(split: str) -> list[tuple[str, Tree]]:
    """(sentence, gold tree) of a split."""
    return [
        (sentence, gold_tree(text)) for sentence, text in read_corpus(CORPUS, split)
    ]


def articles() -> list[int]:
    """The number of sentences in each article of the test split, one after the other."""
    texts = craft_texts(corpus_paths(CORPUS, "test")[0])
    names = texts["ids/craft-ids-test.txt"].decode("utf8").split()
    return [
        sum(1 for _ in trees_in(texts[f"penn/{name}.tree"].decode("utf8")))
        for name in names
    ]


# Scores


def counts(outputs: list[str], golds: list[Tree]) -> dict[str, list[int]]:
    """Of each sentence the brackets in the output's tree, and those of them that are right."""
    rows = [
        score_trees([gold], [read_back(output, leaves_of(gold))[0]])
        for output, gold in zip(outputs, golds)
    ]
    return {
        "matched": [row.matched for row in rows],
        "test": [row.test for row in rows],
    }


def figures(outputs: list[str], golds: list[Tree], keep: bool = False) -> dict:
    """The scores of linearised trees, the share of malformed ones, and each sentence's counts."""
    report = score_outputs(outputs, golds)
    report["malformed"] = round(100 - report["valid_trees"], 2)
    return report | ({"sentence": counts(outputs, golds)} if keep else {})


def written(
    parse: Callable, sentences: list, folder: Path, name: str
) -> tuple[list[str], float]:
    """parse(sentences) -> linearised trees, and the seconds that took.

    They are kept in folder, a thousand to a file, and what is there is not done again.
    """
    found, seconds = [], 0.0
    for start in range(0, len(sentences), CHUNK):
        path = folder / f"{name.replace(', ', '-').replace(' ', '-')}.{start:05}.json"
        if not path.is_file():
            began = time.monotonic()
            outputs = parse(sentences[start : start + CHUNK])
            write_json(path, {"seconds": time.monotonic() - began, "outputs": outputs})
        part = json.loads(path.read_text(encoding="utf8"))
        found, seconds = found + part["outputs"], seconds + part["seconds"]
    return found, seconds


# Baselines


def right_branching(words: list[str], root: str, inner: str) -> str:
    """A linearised tree in which every constituent's last part holds all that follows; a mark at
    the end hangs on the root."""
    mark = len(words) > 1 and words[-1] in {".", "?", "!"}
    n = len(words) - mark
    deep = max(0, n - 2)
    symbols = [
        f"{root}_",
        *(["XX", f"{inner}_"] * deep),
        *["XX"] * (n - deep),
        *[f"_{inner}"] * deep,
        *["XX"] * mark,
        f"_{root}",
    ]
    return " ".join(symbols)


def common_labels(trees: list[Tree]) -> tuple[str, str]:
    """The most frequent label of the whole, and of what reaches to the end but not from the
    beginning (punctuation aside)."""
    inner = Counter()
    for tree in trees:
        words, spans = brackets([tree])
        inner.update(
            label for label, start, end in spans if 0 < start and end == len(words)
        )
    roots = Counter(tree.label() for tree in trees)
    return roots.most_common(1)[0][0], inner.most_common(1)[0][0]


def without_labels(tree: Tree) -> Tree:
    """A copy whose constituents all have the same label."""
    tree = tree.copy(deep=True)
    for part in tree.subtrees(lambda t: not is_leaf(t)):
        part.set_label("X")
    return tree


def run_right_branching(folder: Path, device: str) -> dict:
    """Right-branching trees with the commonest labels, scored on test."""
    root, inner = common_labels([tree for _, tree in gold_trees("train")])
    golds = [tree for _, tree in gold_trees("test")]
    outputs = [right_branching(tree.leaves(), root, inner) for tree in golds]
    plain = [right_branching(tree.leaves(), "X", "X") for tree in golds]
    unlabelled = score_outputs(plain, [without_labels(tree) for tree in golds])
    return {
        "hardware": hardware_in_words(CPU),
        "labels": [root, inner],
        "articles": articles(),
        "gold": [brackets([tree])[1].total() for tree in golds],
        "words": [len(tree.leaves()) for tree in golds],
        "test": {
            **figures(outputs, golds, keep=True),
            "unlabelled_f1": unlabelled["f1"],
        },
    }


def by_grammar(grammar: Grammar, sentences: list[list[str]]) -> list[str]:
    """The likeliest trees of sentences; an empty output where the grammar has none."""
    trees = [likeliest(grammar, words)[0] for words in sentences]
    return ["" if tree is None else linearize(tree) for tree in trees]


def f1_of_grammar(
    trees: list[Tree], golds: list[Tree], siblings: int, parent: bool, folder: Path
) -> float:
    """F1 on some trees of a grammar with such a memory, read off others."""
    outputs, _ = written(
        partial(by_grammar, read_grammar(trees, siblings, parent)),
        [tree.leaves() for tree in golds],
        folder,
        f"validation-{siblings}-{parent:d}",
    )
    return score_outputs(outputs, golds)["f1"]


def run_grammar(folder: Path, device: str) -> dict:
    """A grammar read off the training trees, its memory chosen on 300 validation sentences."""
    trees = [tree for _, tree in gold_trees("train")]
    some = [tree for _, tree in gold_trees("validation")]
    some = some[:: len(some) // 300][:300]
    tried = {
        (siblings, parent): f1_of_grammar(trees, some, siblings, parent, folder)
        for parent in (False, True)
        for siblings in (0, 1, 2)
    }
    siblings, parent = max(tried, key=tried.get)
    grammar = read_grammar(trees, siblings, parent)
    golds = [tree for _, tree in gold_trees("test")]
    outputs, seconds = written(
        partial(by_grammar, grammar), [tree.leaves() for tree in golds], folder, "test"
    )
    return {
        "hardware": hardware_in_words(CPU),
        "siblings": siblings,
        "parent": parent,
        "symbols": len(grammar.symbols),
        "rules": len(grammar.parent),
        "no_tree": outputs.count(""),
        "validation": {
            f"{s} siblings{', parent' * p}": f1 for (s, p), f1 in tried.items()
        },
        "test": {**figures(outputs, golds, keep=True), "seconds": round(seconds, 1)},
    }


# Training


def experiment_of(s: Setting, seed: int) -> Experiment:
    """A setting as an experiment: the recipe, with what it changes."""
    model = RECIPE["model"]
    if s.vocabulary:
        changes = {
            name: getattr(s, name) for name in ("words", "count", "bracket", "depth")
        }
        model = ParserConfig(**vars(model), **changes)
    training = replace(
        RECIPE["training"],
        updates=s.updates,
        seed=seed,
        precision="fp32",
        validate_every=-(-s.updates // VALIDATIONS),
        epsilon_ls=0.0 if s.spans else 0.1,
    )
    return Experiment(CORPUS, model=model, training=training)


def tokenizer_of(
    s: Setting, pairs: list[tuple[str, str]], folder: Path
) -> Tokenizer | ParserTokenizer:
    """The tokenizer of a setting, learned once from (sentence, linearised tree) pairs."""
    path = folder / f"{'sentences' if s.vocabulary else 'both'}.json"
    size = RECIPE["model"].vocab_size
    if not path.is_file():
        texts = (
            (sentence,) if s.vocabulary else (sentence, text)
            for sentence, text in pairs
        )
        made = Tokenizer.train((text for both in texts for text in both), size)
        write_file(path, made.save)
    tokenizer = Tokenizer.load(path)
    if s.vocabulary:
        return ParserTokenizer(tokenizer.bpe, symbols_in(text for _, text in pairs))
    return tokenizer


def share_of_rate(update: int, s: Setting, warmup: int) -> float:
    """What the paper's rate is multiplied by: as in the first run (0.3 for the last 18% of the
    updates), or so that it falls linearly to zero after the warm-up."""
    if not s.falling:
        return 0.3 if update > 29_378 / 36_000 * s.updates else 1.0
    if update <= warmup:
        return 1.0
    return (
        (update / warmup) ** 0.5 * (s.updates + 1 - update) / (s.updates + 1 - warmup)
    )


def scheduled(s: Setting, warmup: int, model: nn.Module) -> torch.optim.Optimizer:
    """Adam whose steps multiply the rate, which the loop has set, by `share_of_rate`."""
    optimizer = fused_adam(model)

    def before(optimizer, *_):
        first = next(
            iter(optimizer.state.values()), {"step": 0}
        )  # all have made as many
        for group in optimizer.param_groups:
            group["lr"] *= share_of_rate(1 + int(first["step"]), s, warmup)

    optimizer.register_step_pre_hook(before)
    return optimizer


def best_by_spans(
    model: SpanParser, source: torch.Tensor, left: float | None = None
) -> list[str]:
    """A search of `in_batches`: the linearised tree of each sentence."""
    return [linearize(tree) for tree in model.trees(source)]


@dataclass
class Parser:
    """A setting's model, how it encodes, and how it is asked."""

    model: nn.Module
    tokenizer: Tokenizer | ParserTokenizer
    encode: Callable  # [(sentence, gold tree), ...] -> pairs of ids

    def parse(
        self, sentences: list[str], beam: int = 1, only_trees: bool = False
    ) -> list[str]:
        """Linearised trees."""
        if isinstance(self.model, SpanParser):
            how = Batching(extra=0, batch_tokens=2000)
            return in_batches(
                self.model, self.tokenizer, sentences, best_by_spans, 1, how
            )
        model = self.model
        if only_trees:
            device = next(model.parameters()).device
            model = OnlyTrees(model, self.tokenizer.symbols, EXTRA).to(device)
        how = Batching(extra=EXTRA, batch_tokens=100_000)
        return translate(model, self.tokenizer, sentences, beam, ALPHA, how)


def new_parser(
    s: Setting, e: Experiment, trees: list[tuple[str, Tree]], folder: Path
) -> Parser:
    """The parser of a setting with fresh weights, which the seed decides."""
    texts = [(sentence, linearize(tree)) for sentence, tree in trees]
    tokenizer = tokenizer_of(s, texts, folder)
    torch.manual_seed(e.training.seed)
    if s.spans:
        labels = Labels([tree for _, tree in trees])
        model = SpanParser(e.model, tokenizer, labels, FAST)

        def encode(pairs):
            sources = tokenizer.encode_all([sentence for sentence, _ in pairs])
            return [
                (source + [tokenizer.eos_id], labels.encode(tree))
                for source, (_, tree) in zip(sources, pairs)
            ]

        return Parser(model, tokenizer, encode)
    model = (
        TreeTransformer(e.model, tokenizer, FAST)
        if s.vocabulary
        else build_fast(e.model)
    )
    as_ids = (
        tokenizer.encode_pairs if s.vocabulary else partial(encode_pairs, tokenizer)
    )
    return Parser(
        model,
        tokenizer,
        lambda pairs: as_ids([(sentence, linearize(tree)) for sentence, tree in pairs]),
    )


def make_validator(parser: Parser, pairs: list[tuple[str, Tree]]) -> Callable:
    """validate(model): loss, greedy F1 and the share of malformed outputs."""
    encoded, (sentences, golds) = parser.encode(pairs), zip(*pairs)

    def validate(model):
        report = score_outputs(parser.parse(sentences), golds)
        malformed = round(100 - report["valid_trees"], 2)
        return {
            **held_out_loss(model, encoded),
            "f1": report["f1"],
            "malformed": malformed,
        }

    return validate


def run(s: Setting, seed: int, folder: Path, device: str) -> dict:
    """Train a setting with a seed, or go on with it, and score it on test in all ways."""
    e = experiment_of(s, seed)
    trees, held_out = gold_trees("train"), gold_trees("validation")
    parser = new_parser(s, e, trees, folder.parent)
    parser.model.to(device)
    validate = make_validator(parser, held_out[:: max(1, len(held_out) // 200)][:200])
    parts = fast_training(e.training, e.model)
    log = train(
        parser.model,
        parser.encode(trees),
        e.training,
        folder,
        validate,
        resume=(folder / "checkpoint.safetensors").is_file(),
        criterion=parts["criterion"],
        optimizer=partial(scheduled, s, e.training.warmup),
    )
    average_last(parser.model, folder, e.training.keep)
    return {
        "hardware": hardware_in_words(torch.device(device), e.training.precision),
        "updates": log[-1]["update"],
        "epochs": log[-1]["epoch"],
        "tokens": log[-1]["tokens"],
        "parameters": count_parameters(parser.model),
        "minutes.training": round(log[-1]["seconds"] / 60, 2),
        "test": score(parser, s, folder),
        "log": thin(log) | {"malformed": [row["malformed"] for row in log]},
    }


def score(parser: Parser, s: Setting, folder: Path) -> dict:
    """{way: figures} on the test split; a span scorer has one way."""
    pairs = gold_trees("test")
    sentences, golds = [sentence for sentence, _ in pairs], [tree for _, tree in pairs]
    ways = {"CKY": (1, False)} if s.spans else WAYS
    found = {}
    for way, (beam, only_trees) in ways.items():
        if only_trees and not s.vocabulary:
            continue  # a symbol may be several tokens there
        parse = partial(parser.parse, beam=beam, only_trees=only_trees)
        outputs, seconds = written(parse, sentences, folder, way)
        found[way] = {
            **figures(outputs, golds, keep=s.spans or way in KEPT),
            "seconds": round(seconds, 1),
        }
    return found


# The rows

OWN = Setting(
    FULL // 3, words=False, count=False, falling=False
)  # with a vocabulary of its own
AS_IT_WAS = replace(OWN, vocabulary=False)
# (row, what it is, seeds), in the order in which they are run
ROWS = [
    ("third: all", Setting(FULL // 3), (1,)),
    ("third: vocabulary", OWN, (1,)),
    ("third: words", replace(OWN, words=True), (1,)),
    ("third: count", replace(OWN, count=True), (1,)),
    ("third: falling rate", replace(OWN, falling=True), (1,)),
    ("all", Setting(), (1,)),
    ("spans", Setting(count=False, spans=True), (1,)),
    ("third: as it was", AS_IT_WAS, (1,)),
    ("all", Setting(), (2,)),
    ("as it was", replace(AS_IT_WAS, updates=FULL), (1,)),
    ("spans", Setting(count=False, spans=True), (2,)),
    ("third: all, bracket", Setting(FULL // 3, bracket=True), (1,)),
    ("third: all, bracket, depth", Setting(FULL // 3, bracket=True, depth=True), (1,)),
    ("all, bracket, depth", Setting(bracket=True, depth=True), (1, 2)),
]


def jobs_of(most: int | None = None) -> list[Job]:
    """The baselines, and every row with its seeds."""
    jobs = [
        Job(
            "right-branching", run_right_branching, {"row": "right-branching"}, COMMAND
        ),
        Job("grammar", run_grammar, {"row": "grammar"}, COMMAND),
    ]
    for row, s, seeds in ROWS:
        for seed in seeds:
            own = {
                name: getattr(s, name)
                for name in ("vocabulary", "words", "count", "falling")
            }
            known = {"row": row, **own, **settings_of(experiment_of(s, seed))}
            jobs.append(
                Job(f"{slug(row)}-{seed}", partial(run, s, seed), known, COMMAND)
            )
    return jobs[:most]


def main(
    folder: Path = Path("runs/parser"),
    record: Path | None = None,
    minutes: float | None = None,
    most: int | None = None,
    workers: int = 1,
    device: str = "cpu",
) -> None:
    """The baselines, then all rows.

    Args:
        folder: where the runs are kept while they go on
        record: the file of results (data/runs/parser.json where not given)
        minutes: stop after so many; the same command goes on
        most: do only the first so many of them
        workers: runs at the same time; on a CPU one thread each
        device: cpu, or cuda
    """
    record = record or "parser"
    try:
        run_jobs(jobs_of(most), folder, devices_for(device, workers), record, minutes)
    finally:
        rows = [row for row in read_rows(record) if row.get("what") != "difference"]
        if rows:
            write_rows(record, [*rows, *differences(rows)])


if __name__ == "__main__":
    run_command(main)
