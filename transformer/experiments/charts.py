"""Parsers that fill a chart (CKY): a probabilistic grammar read off a treebank, and a span scorer.

Both work on trees in which chains of single constituents are one label ("S+VP", "NP+NN"), so that
every constituent has two parts or more. A chart holds, for each length and start of a span, the
best log probability (or score) of everything that may stand there; the tree is read off from the
top by asking each entry again where it came from.
"""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.corpora.trees import Tree, leaves_of

JOIN, CHILD, PARENT = "+", "~", "^"  # none of them stands in a label of CRAFT


def collapsed(tree: Tree) -> Tree:
    """A copy in which chains of single constituents are one, down to the part of speech."""
    tree = tree.copy(deep=True)
    tree.collapse_unary(collapsePOS=True, collapseRoot=True, joinChar=JOIN)
    return tree


def binarized(tree: Tree, siblings: int, parent: bool) -> Tree:
    """A copy with two parts a constituent, as the grammar has it.

    siblings: how many of the parts that follow a new constituent's label names; parent: whether a
    label names the constituent above.
    """
    tree = collapsed(tree)
    tree.chomsky_normal_form(
        "right", siblings, int(parent), childChar=CHILD, parentChar=PARENT
    )
    return tree


def restored(tree: Tree) -> Tree:
    """A binarized or collapsed tree as it was."""
    tree.un_chomsky_normal_form(childChar=CHILD, parentChar=PARENT, unaryChar=JOIN)
    return tree


# Words


def classes(word: str) -> list[str]:
    """What is known of a word that was never seen, from the broadest class to the narrowest."""
    shape = (
        ("digit " if any(c.isdigit() for c in word) else "")
        + ("upper " if word.isupper() else "capital " if word[:1].isupper() else "")
        + ("hyphen " if "-" in word[1:] else "")
    )
    return [
        "",
        shape,
        *(f"{shape}-{word[-n:].lower()}" for n in (1, 2, 3) if len(word) > n),
    ]


class Lexicon:
    """log P(part of speech | word) / P(part of speech), of words seen and unseen.

    A word that was seen c times counts c, its narrowest class `weight`; a class as often as its
    rare words (seen at most `rare` times) were seen, the next broader class `weight`.
    """

    def __init__(
        self, leaves: list[list[tuple[str, str]]], rare: int = 5, weight: float = 1.0
    ):
        """leaves: (word, part of speech) of each sentence."""
        self.weight = weight
        self.of_word, self.of_class, total = (
            defaultdict(Counter),
            defaultdict(Counter),
            Counter(),
        )
        for sentence in leaves:
            for word, tag in sentence:
                self.of_word[word][tag] += 1
                total[tag] += 1
        for word, tags in self.of_word.items():
            for name in classes(word) if tags.total() <= rare else ():
                self.of_class[name].update(tags)
        self.tags = sorted(total)
        self.prior = {tag: total[tag] / total.total() for tag in self.tags}

    def mixed(self, counts: Counter, broader: dict) -> dict:
        """Counts as probabilities, the broader ones counting `weight`."""
        whole = counts.total() + self.weight
        return {
            tag: (counts[tag] + self.weight * broader[tag]) / whole for tag in self.tags
        }

    def scores(self, word: str) -> dict[str, float]:
        """{part of speech: score}"""
        p = self.prior
        for name in classes(word):
            p = self.mixed(self.of_class[name], p) if name in self.of_class else p
        p = self.mixed(self.of_word[word], p) if word in self.of_word else p
        return {tag: math.log(p[tag] / self.prior[tag]) for tag in self.tags}


# A grammar


@dataclass
class Grammar:
    """Rules parent -> left right as numbers of symbols (R,), with log_p (R,), sorted by parent.

    pairs (2, P): the different (left, right); pair (R,): which of them a rule has. root (N,): log
    probability of each symbol as the whole.
    """

    symbols: list[str]
    parent: Tensor
    pair: Tensor
    pairs: Tensor
    log_p: Tensor
    root: Tensor
    lexicon: Lexicon


def logs(counts: list[int], of: list[int]) -> Tensor:
    """log(count / of), one by one."""
    return (torch.tensor(counts).double() / torch.tensor(of)).log().float()


def read_grammar(trees: list[Tree], siblings: int, parent: bool) -> Grammar:
    """The grammar of gold trees by relative frequency."""
    rules, roots, leaves = Counter(), Counter(), []
    for tree in trees:
        tree = binarized(tree, siblings, parent)
        roots[tree.label()] += 1
        leaves.append(leaves_of(tree))
        rules.update(
            (t.label(), t[0].label(), t[1].label())
            for t in tree.subtrees()
            if len(t) == 2
        )
    symbols = sorted({symbol for rule in rules for symbol in rule} | set(roots))
    number = {symbol: n for n, symbol in enumerate(symbols)}
    ordered = sorted(
        [number[symbol] for symbol in rule] + [n] for rule, n in rules.items()
    )
    total = Counter()
    for above, _, _, n in ordered:
        total[above] += n
    pairs = sorted({(left, right) for _, left, right, _ in ordered})
    place = {pair: n for n, pair in enumerate(pairs)}
    return Grammar(
        symbols,
        torch.tensor([above for above, *_ in ordered]),
        torch.tensor([place[left, right] for _, left, right, _ in ordered]),
        torch.tensor(pairs).T.contiguous(),
        logs([n for *_, n in ordered], [total[above] for above, *_ in ordered]),
        logs([roots[symbol] for symbol in symbols], [roots.total()] * len(symbols)),
        Lexicon(leaves),
    )


def leaf_scores(g: Grammar, words: list[str]) -> Tensor:
    """The lowest row of a chart, (N, n)."""
    found = torch.full((len(g.symbols), len(words)), -torch.inf)
    number = {symbol: n for n, symbol in enumerate(g.symbols)}
    for place, word in enumerate(words):
        for tag, score in g.lexicon.scores(word).items():
            if tag in number:
                found[number[tag], place] = score
    return found


def fill(leaves: Tensor, g: Grammar) -> list[Tensor]:
    """The chart over leaves (N, n): entry [length - 1] is (N, starts), the best log P of each.

    Parts of one word are looked for among parts of speech only, longer ones among constituents.
    """
    chart, n = [leaves], leaves.shape[1]
    one_word = (leaves > -torch.inf).any(dim=1)
    longer = torch.zeros_like(one_word).index_fill(0, g.parent, True)
    left, right = ({True: one_word[side], False: longer[side]} for side in g.pairs)
    for length in range(2, n + 1):
        cells = n - length + 1
        best = leaves.new_full((g.pairs.shape[1], cells), -torch.inf)
        for first in range(1, length):
            rest = length - first
            rows = (left[first == 1] & right[rest == 1]).nonzero()[:, 0]
            both = chart[first - 1][:, :cells].index_select(0, g.pairs[0, rows])
            both += chart[rest - 1][:, first:].index_select(0, g.pairs[1, rows])
            best[rows] = torch.maximum(best[rows], both)
        scores = best[g.pair] + g.log_p[:, None]
        above = g.parent[:, None].expand(-1, cells)
        nothing = leaves.new_full((len(g.symbols), cells), -torch.inf)
        chart.append(nothing.scatter_reduce(0, above, scores, "amax"))
    return chart


def read_off(
    chart: list[Tensor], g: Grammar, symbol: int, start: int, words: list[str]
) -> Tree:
    """The best tree of a symbol over words, which begin at start, from a filled chart."""
    if len(words) == 1:
        return Tree(g.symbols[symbol], words)
    own = (g.parent == symbol).nonzero()[:, 0]
    left, right = g.pairs[:, g.pair[own]]
    splits = [
        chart[first - 1][left, start]
        + chart[len(words) - first - 1][right, start + first]
        + g.log_p[own]
        for first in range(1, len(words))
    ]
    first, rule = divmod(int(torch.stack(splits).argmax()), len(own))
    first += 1
    return Tree(
        g.symbols[symbol],
        [
            read_off(chart, g, int(left[rule]), start, words[:first]),
            read_off(chart, g, int(right[rule]), start + first, words[first:]),
        ],
    )


def likeliest(g: Grammar, words: list[str]) -> tuple[Tree | None, float]:
    """The likeliest tree of a sentence as the treebank writes it, and its score; None: no tree."""
    chart = fill(leaf_scores(g, words), g)
    score, symbol = (chart[-1][:, 0] + g.root).max(dim=0)
    if score == -torch.inf:
        return None, -math.inf
    return restored(read_off(chart, g, int(symbol), 0, words)), float(score)


# Spans


def best_spans(scores: Tensor) -> list[tuple[int, int]]:
    """The tree of two parts a constituent whose spans have the highest sum, scores[i, j - 1] being
    that of the words i to j - 1: scores (n, n) -> its spans (i, j), the longest first, from left to
    right.
    """
    n = len(scores)
    best = scores.clone()  # (start, last word)
    split = torch.zeros(n, n, dtype=torch.long)
    for length in range(2, n + 1):
        starts = torch.arange(n - length + 1)
        firsts = torch.arange(1, length)
        lasts = starts[:, None] + firsts - 1
        sums = (
            best[starts[:, None], lasts]
            + best[lasts + 1, (starts + length - 1)[:, None]]
        )
        value, place = sums.max(dim=1)
        best[starts, starts + length - 1] += value
        split[starts, starts + length - 1] = starts + 1 + place
    todo, spans = [(0, n)], []
    while todo:
        i, j = todo.pop()
        spans.append((i, j))
        if j - i > 1:
            middle = int(split[i, j - 1])
            todo += [(middle, j), (i, middle)]
    return spans


def tree_of_spans(words: list[str], spans: list[tuple[int, int, str]]) -> Tree:
    """The tree of labelled spans (i, j, label), which come as `best_spans` gives them.

    Spans of one word have a leaf's label; where a label is empty there is no constituent.
    """
    top = Tree("", [])
    open_until = [(top, len(words))]
    for i, j, label in spans:
        while open_until[-1][1] <= i:
            open_until.pop()
        if label:
            t = Tree(label, [words[i]] if j - i == 1 else [])
            open_until[-1][0].append(t)
            open_until.append((t, j))
    return restored(top[0])
