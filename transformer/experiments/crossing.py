"""Over which heads owner and owned reach the decoder, and what its vectors hold: evidence 19's record
data/runs/crossing.json.

    python -m transformer.experiments.crossing        two minutes of one core

In the new sentences of `transformer.experiments.circuit`, 500 of each kind, the owner head or the
noun head is turned to another noun. What heads of the cross-attention put out in that run, at the
step that writes the possessive, is pasted into the untouched run: each choice of heads, layer by
layer; or they are silenced. The probes learn from bundled training sentences, and read in those of
validation and test.
"""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import torch

from transformer.corpora import read_bundled
from transformer.experiments.circuit import SEED, SENTENCES, Turned, draw, scored
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.models import gold
from transformer.models.edits import paste
from transformer.models.maps import attention_name
from transformer.models.pretrained import load
from transformer.models.probing import labelled, linear_probe
from transformer.models.recording import cache, edit

TURNED = {"owner": (0, 2), "owned": (1, 0)}  # layer and head of the encoder, from 0


def choices(h: int) -> Iterator[list[int]]:
    """Every choice of at least one of h heads."""
    for count in range(1, h + 1):
        yield from map(list, combinations(range(h), count))


def silence(heads: list[int]):
    """An edit of "...heads": these put out zeros."""

    def change(outputs):
        outputs[:, heads] = 0.0
        return outputs

    return change


def crossings(side: Turned, turn_to: str, layer: int) -> list[dict]:
    """Heads of a cross-attention silenced, and pasted from the run with a head turned."""
    name = attention_name("cross", layer) + ".heads"
    below, head = TURNED[turn_to]
    turn = {attention_name("encoder", below) + ".weights": side.to(head)}
    with edit(side.model, turn), cache(side.model, name) as seen:
        gold.next_words(side.model, side.tokenizer, side.encoded)
    rows = []
    for heads in choices(side.model.config.h):
        place = {
            "turn": turn_to,
            "layer": layer + 1,
            "heads": [head + 1 for head in heads],
        }
        pasted = side.words(name, paste(heads, side.encoded.steps, seen[name]))
        silent = side.words(name, silence(heads))
        for what, words in (("pasted", pasted), ("silent", silent)):
            possessive = [gold.stem_and_ending(word) != ("", "") for word in words]
            row = scored("possessive", possessive) | side.score(words)
            rows.append({"what": what, **place} | row)
    return rows


def probes(model, tokenizer, genders: dict) -> list[dict]:
    """What a probe reads of each property, with its controls; a row each."""
    train = read_bundled("train")
    examples = [*read_bundled("validation"), *read_bundled("test")]
    known, unseen = (
        labelled(model, tokenizer, some, genders) for some in (train, examples)
    )
    sides = {name: (known[name], unseen[name]) for name in known}
    nouns, owned = sorted(genders), gold.owner_counts(train)
    lots = gold.made_up(genders)
    owning = [noun for noun in nouns if owned[noun]]
    for name, table, mine, theirs in (
        ("noun: made-up gender", lots, nouns, nouns),
        ("new noun: gender", genders, nouns[::2], nouns[1::2]),
        ("noun, never owner: gender", genders, owning, genders.keys() - owning),
        ("new noun: made-up gender", lots, nouns[::2], nouns[1::2]),
    ):
        side = known["noun: gender"], unseen["noun: gender"]
        words = mine, theirs
        sides[name] = tuple(
            gold.relabelled(vectors, table, some) for vectors, some in zip(side, words)
        )
    columns = "most common", "embedding", "layer 1", "layer 2", "shuffled"
    return [
        {"what": "probe", "property": name, "words": len(new[1])}
        | dict(zip(columns, rounded(gold.probe_accuracy(linear_probe, old, new))))
        for name, (old, new) in sides.items()
    ]


def rounded(shares: list[float]) -> list[float]:
    """To four digits."""
    return [round(share, 4) for share in shares]


@torch.no_grad()
def measure(folder: Path, device: str) -> list[dict]:
    """All rows of the record."""
    model, tokenizer = load()
    genders = gold.read_genders()
    _, *turns = draw(SENTENCES, genders)
    rows = [
        row
        for turn_to, some in zip(TURNED, turns)
        for layer in range(model.config.N)
        for row in crossings(Turned(model, tokenizer, some), turn_to, layer)
    ]
    return rows + probes(model, tokenizer, genders)


def main(record: Path | None = None) -> None:
    """Paste, silence and probe what carries the owner.

    Args:
        record: the file of results (data/runs/crossing.json where not given)
    """
    command = "python -m transformer.experiments.crossing"
    job = Job("crossing", measure, {"seed": SEED}, command)
    run_jobs([job], Path("runs"), ["cpu"], record or "crossing")


if __name__ == "__main__":
    run_command(main)
