"""Which noun each head looks at from "its": the maps behind evidence 4.

    python -m transformer.experiments.owners        under a minute of one core

A row is an "its" of the bundled corpus with several nouns that it might mean: the places of these
in the sentence, that of its owner, and for each head of the bundled model's encoder the noun that
gets its largest weight.
"""

from collections.abc import Iterator
from pathlib import Path

from transformer.corpora import read_bundled
from transformer.corpora.tokenizer import WORD
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.models.maps import all_maps
from transformer.models.pretrained import load

COMMAND = "python -m transformer.experiments.owners"


def owners(split: str) -> Iterator[dict]:
    """The rows of a split; heads are "guess.layer.head", counted from 1."""
    model, tokenizer = load()
    examples = [
        (example, pronoun)
        for example in read_bundled(split)
        for pronoun, _ in example.pronouns
        if WORD.findall(example.source)[pronoun.index] == "its"
        and len(pronoun.candidates) > 1
    ]
    pairs = [(example.source, example.target) for example, _ in examples]
    for maps, (_, pronoun) in zip(all_maps(model, tokenizer, pairs), examples):
        nouns = sorted(pronoun.candidates)
        row = {"split": split, "its": pronoun.index, "nouns": nouns}
        row["owner"] = pronoun.antecedent
        for layer, heads in enumerate(maps.encoder, 1):
            for head, weights in enumerate(heads, 1):
                looks = weights[pronoun.index].tolist()
                row[f"guess.{layer}.{head}"] = max(nouns, key=looks.__getitem__)
        yield row


def measure(folder: Path, device: str) -> list[dict]:
    """The rows of the validation and the test sentences."""
    return [*owners("validation"), *owners("test")]


def main(record: Path | None = None) -> None:
    """Note where each head of the bundled model looks from "its".

    Args:
        record: the file of results (data/runs/owners.json where not given)
    """
    job = Job("owners", measure, command=COMMAND)
    run_jobs([job], Path("runs"), ["cpu"], record or "owners")


if __name__ == "__main__":
    run_command(main)
