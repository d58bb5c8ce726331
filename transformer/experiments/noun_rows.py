"""What the rows of nouns hold, and what moves them: the looks behind evidence 6.1 and 6.3 to 6.5.

python -m transformer.experiments.noun_rows      a minute of one core
"""

import copy
import math
from pathlib import Path

import torch
import torch.nn.functional as F

from transformer.embeddings import Embedding, Projection
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.fast.model import Transformer
from transformer.models.pretrained import load
from transformer.models.search import translate
from transformer.teaching.nouns import (
    ARTICLES,
    MAP,
    OTHERS,
    gradients_by_job,
    pairs_with,
    two_directions,
)

COMMAND = "python -m transformer.experiments.noun_rows"
V, D = 2000, 512


class Nouns:
    """The bundled translator, and the mean row of each gender's nouns that are not on the map."""

    def __init__(self):
        self.model, self.tokenizer = load()
        self.E = self.model.embedding.weight.detach()
        self.map = [noun for heap in MAP.values() for noun in heap]
        self.means = {
            article: self.E[[self.row(noun) for noun in heap]].mean(dim=0)
            for article, heap in OTHERS.items()
        }

    def row(self, word: str) -> int:
        """The number of a word's row."""
        return self.tokenizer.encode(word)[0]

    def gradients(self, model, word: str, count: int):
        """The gradient of each job from sentences with a word."""
        source, target = pairs_with(word, self.tokenizer, count=count)
        return gradients_by_job(model, source, target, self.tokenizer.pad_id)


def at_the_start(nouns: Nouns) -> list[dict]:
    """The loss of guesses among 2,000 words, with small and with large rows."""
    x, right = torch.randn(500, D), torch.randint(V, (500,))
    logits = Projection(Embedding(V, D))(x)
    return [
        {
            "look": "start",
            "of": name,
            "value": F.cross_entropy(size * logits, right).item(),
        }
        for name, size in {"1/d": 1.0, "1": math.sqrt(D)}.items()
    ]


def pushes(nouns: Nouns) -> list[dict]:
    """How alike writing moves the rows of cat and of others, at the first step of a training."""
    untrained = Transformer(nouns.model.config)
    writes = nouns.gradients(untrained, "", 300)["writes German"]
    cat = writes[nouns.row("cat")]
    return [
        {
            "look": "pushes",
            "of": word,
            "value": F.cosine_similarity(cat, writes[nouns.row(word)], dim=0).item(),
        }
        for word in ("dog", "house", "hat")
    ]


def jobs(nouns: Nouns) -> list[dict]:
    """How far each job would move the row of cat, when the trained model has forgotten it."""
    forgetful = copy.deepcopy(nouns.model)
    row = nouns.row("cat")
    forgetful.embedding.weight.data[row] = sum(nouns.means.values()) / 3
    gradients = nouns.gradients(forgetful, "cat", 10)
    return [
        {"look": "jobs", "of": job, "value": gradient[row].norm().item()}
        for job, gradient in gradients.items()
    ]


def turned(nouns: Nouns) -> list[dict]:
    """For each noun of the map and each other gender, whether the article follows a move of its
    row while all else stays the same, and whether it follows a random move of the same length."""
    english = [f"The {noun} was old." for noun in nouns.map]
    before = translate(nouns.model, nouns.tokenizer, english)
    rows = []
    for new in MAP:
        for look in ("turned", "at random"):
            other = copy.deepcopy(nouns.model)
            for noun in nouns.map:
                shift = nouns.means[new] - nouns.means[ARTICLES[noun]]
                if look == "at random":
                    shift = F.normalize(torch.randn(len(shift)), dim=0) * shift.norm()
                other.embedding.weight.data[nouns.row(noun)] += shift
            after = translate(other, nouns.tokenizer, english)
            for noun, was, now in zip(nouns.map, before, after):
                if ARTICLES[noun] != new:
                    follows = now == new.capitalize() + was[len("der") :]
                    row = {"look": look, "of": noun, "to": new}
                    rows.append(row | {"value": float(follows)})
    return rows


def nearest(nouns: Nouns) -> list[dict]:
    """The nearest noun of each of the 245; and the share of the map's two directions."""
    names = list(ARTICLES)
    directions = F.normalize(nouns.E[[nouns.row(noun) for noun in names]], dim=1)
    closest = (directions @ directions.T).fill_diagonal_(-1).argmax(dim=1).tolist()
    rows = [
        {
            "look": "nearest",
            "of": noun,
            "to": names[place],
            "value": float(ARTICLES[noun] == ARTICLES[names[place]]),
        }
        for noun, place in zip(names, closest)
    ]
    on_map = F.normalize(nouns.E[[nouns.row(noun) for noun in nouns.map]], dim=1)
    centred = on_map - on_map.mean(dim=0)
    flat = centred @ two_directions(on_map).T
    share = (flat.square().sum() / centred.square().sum()).item()
    return [*rows, {"look": "share", "of": "the map", "value": share}]


def measure_all(folder: Path, device: str) -> list[dict]:
    """A row for each number of evidence 6.1 (its last) and 6.3 to 6.5."""
    torch.manual_seed(0)
    nouns = Nouns()
    looks = (at_the_start, pushes, jobs, turned, nearest)
    return [row for look in looks for row in look(nouns)]


def main(record: Path | None = None) -> None:
    """Look at the rows of nouns.

    Args:
        record: the file of results (data/runs/noun_rows.json where not given)
    """
    torch.set_num_threads(1)
    job = Job("noun_rows", measure_all, {}, COMMAND)
    run_jobs([job], Path("runs"), ["cpu"], record or "noun_rows")


if __name__ == "__main__":
    run_command(main)
