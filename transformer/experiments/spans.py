"""A parser that scores every span of words and takes the best tree by CKY, after Stern et al.
(2017) and Kitaev and Klein (2018): the encoder of a `TreeTransformer` without a decoder.
"""

import torch
from torch import Tensor, nn

from transformer.corpora.trees import Tree, is_leaf
from transformer.embeddings import Projection
from transformer.experiments.charts import JOIN, best_spans, collapsed, tree_of_spans
from transformer.fast.embeddings import Embedding
from transformer.fast.model import Parts
from transformer.models.tree_model import ParserConfig, ParserTokenizer, TreeTransformer
from transformer.stacks import LayerNorm

HIDDEN = 256
LONGEST = 2**11  # words, in what a target's numbers say
NOTHING = ""  # the label of a span that is no constituent


def labelled_spans(tree: Tree) -> list[tuple[int, int, str]]:
    """(start, end, label) of each constituent and each leaf of a collapsed tree."""
    spans, place = [], 0

    def visit(t):
        nonlocal place
        start = place
        if is_leaf(t):
            place += 1
        else:
            for part in t:
                visit(part)
        spans.append((start, place, t.label()))

    visit(tree)
    return spans


class Labels:
    """The labels of spans by number: 0 is padding, 1 a span that is no constituent."""

    def __init__(self, trees: list[Tree]):
        """Those of gold trees."""
        leaves, others = set(), set()
        for tree in trees:
            for start, end, label in labelled_spans(collapsed(tree)):
                (leaves if end - start == 1 else others).add(label)
        self.names = ["<pad>", NOTHING, *sorted(leaves | others)]
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.of_leaf = torch.tensor([name in leaves for name in self.names])
        self.of_others = torch.tensor([name in others for name in self.names])
        # of a sentence of one word, which is a constituent, too
        self.of_one_word = torch.tensor(
            [name in leaves and JOIN in name for name in self.names]
        )

    def encode(self, tree: Tree) -> list[int]:
        """A gold tree as what a `Batch` takes for a target: a mark, then for each span one number,
        of start + 1, end and label. A label that is not known is left out."""
        return [1] + [
            ((start + 1) * LONGEST + end) * len(self.names) + self.numbers[label]
            for start, end, label in labelled_spans(collapsed(tree))
            if label in self.numbers
        ]


class SpanParser(TreeTransformer):
    """Sentences to trees: a label, or none, for each span of words, from the same encoder.

    A border between two words is half of the vector before and half of the one behind; a span is
    the difference of its borders, through a hidden layer (Kitaev and Klein, 2018).
    """

    def __init__(
        self,
        config: ParserConfig,
        tokenizer: ParserTokenizer,
        labels: Labels,
        parts: Parts = Parts(),
    ):
        super().__init__(config, tokenizer, parts)
        del self.decoder, self.target_embedding
        self.labels = labels
        self.hidden = nn.Linear(config.d_model, HIDDEN)
        self.norm = LayerNorm(HIDDEN)
        self.output = Projection(Embedding(len(labels.names), HIDDEN))

    def spans(self, source: Tensor) -> Tensor:
        """Source ids (B, S) -> a vector for each span (B, W, W, HIDDEN): [:, i, j - 1] is that of
        the words i to j - 1."""
        memory = self.encode(source)  # (B, W + 1, d_model), the end mark being the last
        before, behind = memory.chunk(2, dim=-1)
        before = torch.cat([torch.zeros_like(before[:, :1]), before[:, :-1]], dim=1)
        borders = self.hidden(torch.cat([before, behind], dim=-1))  # (B, W + 1, HIDDEN)
        return self.norm(borders[:, None, 1:] - borders[:, :-1, None]).relu()

    def gold(self, target: Tensor, lengths: Tensor) -> Tensor:
        """The label of each span, (B, W, W); 0 where there is none."""
        W, L = int(lengths.max()), len(self.labels.names)
        spans, labels = target[:, 1:] // L, target[:, 1:] % L
        found = target.new_ones(len(target), W + 1, W + 1)
        rows = torch.arange(len(target), device=target.device)[:, None]
        found[rows, spans // LONGEST, spans % LONGEST] = labels
        inside = torch.arange(1, W + 1, device=target.device) <= lengths[:, None]
        real = (
            torch.ones(W, W, dtype=torch.bool, device=target.device).triu()
            & inside[:, None]
        )
        return found[:, 1:, 1:] * real

    def loss(self, batch, criterion) -> Tensor:
        """criterion(output, states, gold) of a batch whose targets `Labels` has encoded."""
        gold = self.gold(batch.target, self.lengths(batch.source))
        return criterion(self.output, self.spans(batch.source), gold)

    @torch.no_grad()
    def trees(self, source: Tensor) -> list[Tree]:
        """The best tree of each sentence of source ids (B, S), with its words' numbers as words."""
        scores = self.output(self.spans(source)).cpu()  # (B, W, W, labels)
        leaf = scores.masked_fill(~self.labels.of_leaf, -torch.inf).max(dim=-1)
        other = scores.masked_fill(~self.labels.of_others, -torch.inf).max(dim=-1)
        gains = other.values - scores[..., 1]
        found = []
        for b, n in enumerate(self.lengths(source).tolist()):
            gain = gains[b, :n, :n]
            names = torch.where(gain > 0, other.indices[b, :n, :n], 1)
            names[0, n - 1] = other.indices[b, 0, n - 1]  # the whole is a constituent,
            names.diagonal().copy_(
                leaf.indices[b].diagonal()[:n]
            )  # and every word a leaf
            if n == 1:
                allowed = scores[b, 0, 0].masked_fill(
                    ~self.labels.of_one_word, -torch.inf
                )
                names[0, 0] = allowed.argmax()
            spans = best_spans(gain.clamp(min=0).fill_diagonal_(0))
            found.append(
                tree_of_spans(
                    [str(i) for i in range(n)],
                    [(i, j, self.labels.names[names[i, j - 1]]) for i, j in spans],
                )
            )
        return found
