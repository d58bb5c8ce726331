"""Which lines of Tatoeba share a sentence, for notebook 10; kept in data/runs/repeats.json.

    python -m transformer.experiments.repeats

Two lines are of one group if their English or their German sides are equal, where case,
punctuation and spaces do not count, directly or through others. A row is a shape of groups and how
often it occurs. Downloads Tatoeba where TRANSFORMER_MIRROR names no folder that has it. Less than a
minute on one core; no sentence is kept.
"""

from pathlib import Path

from transformer.corpora import corpus_paths
from transformer.corpora.splits import shapes, tatoeba_lines
from transformer.experiments.runner import Job, run_command, run_jobs

COMMAND = "python -m transformer.experiments.repeats"


def measure(folder: Path, device: str) -> list[dict]:
    """All shapes, frequent ones first, and the number of groups that have them."""
    lines = tatoeba_lines(corpus_paths("tatoeba", "train")[0])
    return [
        {"corpus": "tatoeba", "shape": shape, "groups": groups}
        for shape, groups in shapes(lines).most_common()
    ]


def main(record: Path | None = None) -> None:
    """Count which lines of Tatoeba share a sentence.

    Args:
        record: the file of results (data/runs/repeats.json where not given)
    """
    job = Job("repeats", measure, command=COMMAND)
    run_jobs([job], Path("runs/repeats"), ["cpu"], record or "repeats")


if __name__ == "__main__":
    run_command(main)
