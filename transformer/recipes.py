"""A model, a way to train it and a search for each corpus."""

from dataclasses import replace

from transformer.model import TransformerConfig
from transformer.training import TrainingConfig


RECIPES = {
    "bundled": dict(
        model=TransformerConfig.preset("tiny", vocab_size=3500, P_drop=0.0),
        training=TrainingConfig(updates=5900, batch_tokens=400, warmup=300, factor=0.5, save_every=200, keep=6)),
    "multi30k": dict(
        model=TransformerConfig(vocab_size=6000, N=4, d_model=128, d_ff=256, h=4, P_drop=0.2),
        training=TrainingConfig(updates=8000, batch_tokens=4096, warmup=2000, factor=2.5, save_every=200, keep=10)),
    "tatoeba": dict(
        model=TransformerConfig(vocab_size=8000, N=3, d_model=256, d_ff=512, h=4, P_drop=0.1),
        training=TrainingConfig(updates=6000, batch_tokens=4096, warmup=1000, save_every=300)),
    "europarl": dict(
        model=TransformerConfig.preset("small", vocab_size=8000),
        training=TrainingConfig(updates=3000, batch_tokens=4096, warmup=1000, save_every=250)),
    "treebank_nltk": dict(
        model=TransformerConfig(vocab_size=3000, N=4, d_model=128, d_ff=512, h=4, P_drop=0.2),
        training=TrainingConfig(updates=5000, batch_tokens=2048, warmup=1000, factor=0.7, save_every=250)),
    "treebank_craft": dict(
        model=TransformerConfig(vocab_size=8000, N=4, d_model=128, d_ff=512, h=4, norm_first=True, max_positions=1536),
        training=TrainingConfig(updates=30_000, batch_tokens=1024, warmup=1000, save_every=1000)),
    "files": dict(
        model=TransformerConfig.preset("small", vocab_size=8000),
        training=TrainingConfig(updates=20_000, batch_tokens=4096, warmup=2000, save_every=500)),
}


RECIPES["wmt14"] = dict(
    model=TransformerConfig.preset("base", vocab_size=37_000),
    training=TrainingConfig(updates=100_000, batch_tokens=25_000, warmup=4000, save_every=1500, keep=5))


WMT14_BIG = replace(RECIPES["wmt14"]["training"], updates=300_000, save_every=600, keep=20)


def recipe(corpus, preset=None):
    """{"model", "training"} for a corpus, or "files"; preset names another size (on wmt14 big is trained as in the paper)."""
    found = dict(RECIPES.get(corpus, RECIPES["files"]))
    if preset is not None:
        found["model"] = TransformerConfig.preset(preset, vocab_size=found["model"].vocab_size)
    if (corpus, preset) == ("wmt14", "big"):
        found["training"] = WMT14_BIG
    return found


SEARCH = {"multi30k": (4, 1.6), "treebank_nltk": (21, 0.3), "treebank_craft": (21, 0.3)}


def search_of(corpus):
    """(beam, alpha) for a corpus: Multi30k's alpha was chosen on its validation split, all else is the paper's (6.1, 6.3)."""
    return SEARCH.get(corpus, (4, 0.6))
