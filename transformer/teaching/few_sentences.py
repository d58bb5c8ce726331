"""What chapter 13 learns by heart: a few short sentences of the bundled corpus, and what judges say
of a model on them and on new ones."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.corpora import read_corpus
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import Batch, collate, encode_pairs
from transformer.fast.model import Transformer, TransformerConfig

WORDS = 6  # at most, of the English sentence
BATCH = 50

Judged = tuple[Tensor, Tensor, Tensor]  # loss, whether right, how sure


def short(split: str, count: int) -> list[tuple[str, str]]:
    """The first pairs of the bundled corpus whose English is short."""
    pairs = read_corpus("bundled", split)
    return [pair for pair in pairs if len(pair[0].split()) <= WORDS][:count]


class FewSentences:
    """`count` pairs to learn, in batches; `learned` is a batch of the first 150 of them, and `new` one
    of 150 others."""

    def __init__(self, count: int = 800):
        self.pairs = short("train", count)
        texts = [text for pair in self.pairs for text in pair]
        self.tokenizer = Tokenizer.train(texts, 500)
        self.training = encode_pairs(self.tokenizer, self.pairs)
        self.learned = collate(self.training[:150])
        self.new = collate(encode_pairs(self.tokenizer, short("validation", 150)))

    def model(self, P_drop: float = 0.0, seed: int = 0) -> Transformer:
        """A small model that has learned nothing, the same at every call."""
        torch.manual_seed(seed)
        sizes = {"d_model": 64, "d_ff": 256, "N": 1, "h": 4, "P_drop": P_drop}
        return Transformer(TransformerConfig(self.tokenizer.vocab_size, **sizes))

    def batches(self) -> Iterator[Batch]:
        """All pairs once, shuffled."""
        for rows in torch.randperm(len(self.training)).split(BATCH):
            yield collate([self.training[i] for i in rows])

    def answers(self, model: Transformer, batch: Batch) -> tuple[Tensor, Tensor]:
        """The scores (n, V) at the n real places of a batch, and the right tokens (n,)."""
        real = batch.gold != self.tokenizer.pad_id
        return model(batch.source, batch.decoder_input)[real], batch.gold[real]

    def judge(self, model: Transformer, batch: Batch) -> Judged:
        """At each place (n,), in evaluation: the loss, whether the first guess is right, and its
        probability."""
        with torch.no_grad():
            scores, gold = self.answers(model.eval(), batch)
        sure, guess = scores.softmax(dim=-1).max(dim=-1)
        return F.cross_entropy(scores, gold, reduction="none"), guess == gold, sure
