"""The English nouns of chapter 06 by the article of their German, sentences with them, and what
each job of a shared matrix would change in it.

All are words of the bundled corpus, and each is one token of the bundled translator.
"""

import copy
import re
from functools import cache
from itertools import islice

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from transformer.corpora import read_corpus
from transformer.corpora.tokenizer import Tokenizer


def split(lists: dict[str, str]) -> dict[str, list[str]]:
    """Words of lists in one string each."""
    return {article: words.split() for article, words in lists.items()}


ON_THE_MAP = {
    "der": "man boy teacher doctor king dog wolf fox bear lion bus cake apple "
    "cheese letter coat hat key table tree",
    "die": "woman mother nurse queen witch cat cow mouse owl snake school soup "
    "milk bottle clock lamp crown bridge door street",
    "das": "child girl horse pig lamb museum car ship boat bread egg book shirt "
    "glass knife picture bed house roof window",
}
ALL_OTHERS = {
    "der": "farmer baker chef father brother uncle son grandfather friend "
    "neighbour student painter driver gardener hunter soldier policeman "
    "waiter engineer thief director customer guest mayor monkey elephant "
    "donkey bird club publisher choir zoo shop train tractor truck biscuit "
    "fish coffee tea wine novel report contract article scarf skirt sweater "
    "ball bone plate spoon suitcase umbrella ring basket pencil hammer "
    "mirror computer chair cupboard carpet tower stable station fence "
    "garden cellar forest park hill balcony lake river beach engine plan "
    "mistake",
    "die": "sister aunt daughter grandmother niece actress waitress princess lady "
    "nun saleswoman businesswoman goat duck company bank university factory "
    "library team family ferry tram machine pear cherry banana tomato "
    "potato sausage lemonade newspaper story message jacket cap blouse cup "
    "vase fork bag candle crate blanket doll flower camera necklace guitar "
    "violin church hut mill wall kitchen cave city meadow island party "
    "wedding meeting journey question answer idea",
    "das": "pony calf camel zebra rabbit hotel hospital restaurant theatre "
    "orchestra ministry bicycle taxi meat water beer poem diary dress rope "
    "photo gift piano telephone radio sofa shelf castle office room valley "
    "village field gate wheel breakfast lunch concert problem secret",
}
MAP = split(ON_THE_MAP)  # twenty of each
OTHERS = split(ALL_OTHERS)
ARTICLES = {
    noun: article
    for lists in (MAP, OTHERS)
    for article, nouns in lists.items()
    for noun in nouns
}


@cache
def training_pairs() -> list[tuple[str, str]]:
    """English and German of the bundled corpus, read once."""
    return read_corpus("bundled", "train")


def pairs_with(word: str, tokenizer: Tokenizer, count: int = 10) -> list[Tensor]:
    """The first training pairs whose English has a word, the first of all for "": ids of sources
    (count, S), with the end mark, and of targets (count, T), with both marks, padded."""
    has = re.compile(rf"\b{word}\b")
    pairs = (pair for pair in training_pairs() if has.search(pair[0]))
    begin = ([], [tokenizer.bos_id])
    return [
        pad_sequence(
            [torch.tensor([*first, *ids, tokenizer.eos_id]) for ids in side],
            batch_first=True,
            padding_value=tokenizer.pad_id,
        )
        for first, side in zip(
            begin, map(tokenizer.encode_all, zip(*islice(pairs, count)))
        )
    ]


def two_directions(vectors: Tensor) -> Tensor:
    """The two directions (2, d) in which vectors (n, d) differ most, of length 1."""
    centred = vectors - vectors.mean(dim=0)
    return torch.linalg.svd(centred, full_matrices=False).Vh[:2]


def gradients_by_job(
    model: nn.Module, source: Tensor, target: Tensor, pad_id: int
) -> dict[str, Tensor]:
    """The gradient (V, d_model) of the mean loss for each job of a translator's shared matrix.

    The model gets three equal matrices, so that each job has a gradient of its own.
    """
    model = copy.deepcopy(model)
    model.target_embedding = copy.deepcopy(model.embedding)
    model.output = copy.deepcopy(model.output)
    read, right = target[:, :-1], target[:, 1:].flatten()
    logits = model(source, read).flatten(0, 1)
    loss = F.cross_entropy(logits, right, ignore_index=pad_id)
    jobs = {
        "reads English": model.embedding.weight,
        "reads German": model.target_embedding.weight,
        "writes German": model.output.weight,
    }
    return dict(zip(jobs, torch.autograd.grad(loss, list(jobs.values()))))
