"""The choice of a length penalty: what each row holds is what a search of its own gives."""

import alpha
import pytest

from transformer.corpora import read_corpus
from transformer.scores import bleu, tokenized_bleu
from transformer.search import translate
from transformer.pretrained import load


@pytest.mark.usefixtures("one_thread")
def test_rows_are_searches_with_their_scores():
    model, tokenizer = load()
    pairs = read_corpus("bundled", "hard")[:8]
    sources, references = zip(*pairs)
    rows = alpha.measure(model, tokenizer, pairs, alphas=(0.0, 3.0))
    assert [(row["beam"], row["alpha"]) for row in rows] == [(1, 0.0), (4, 0.0), (4, 3.0)]
    for row in rows:
        outputs = translate(model, tokenizer, sources, row["beam"], row["alpha"])
        assert row["bleu"] == pytest.approx(bleu(outputs, references).score, abs=0.01)
        assert row["bleu_tokenized_lowercased"] == pytest.approx(tokenized_bleu(outputs, references).score, abs=0.01)
        words = [sum(len(text.split()) for text in texts) for texts in (outputs, references)]
        assert row["length"] == pytest.approx(words[0] / words[1], abs=1e-4)
