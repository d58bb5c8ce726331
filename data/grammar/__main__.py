"""The command line: `python -m data.grammar`."""

from pathlib import Path

import tyro

from .corpus import SIZES, write_corpus
from .lexicon import LEXICON
from .statistics import print_samples, print_statistics, word_for_word


def main(
    seed: int = 2017,
    folder: Path = LEXICON.parent / "bundled",
    size: int = SIZES["train"],
    sample: int = 0,
    statistics: bool = False,
    baseline: bool = False,
) -> None:
    """A synchronous grammar of English and German: it writes the bundled corpus.

    Args:
        seed: of all that is drawn
        folder: where the four files are or go
        size: pairs in train.tsv
        sample: print so many sentences, aligned, and write nothing
        statistics: print figures of the files and write nothing
        baseline: print BLEU word for word and write nothing
    """
    if sample:
        print_samples(sample, seed)
    elif statistics:
        print_statistics(folder)
    elif baseline:
        score = word_for_word(folder)
        print(f"word-for-word BLEU on test: {score.score:.2f}   {score.signature}")
    else:
        write_corpus(folder, seed, size)


if __name__ == "__main__":
    tyro.cli(main)
