"""The command line: `python -m data.grammar`."""

import argparse
from pathlib import Path

from . import __doc__ as description
from .corpus import SIZES, write_corpus
from .lexicon import LEXICON
from .statistics import baseline, print_samples, print_statistics


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m data.grammar", description=description.splitlines()[0]
    )
    add = parser.add_argument
    bundled = LEXICON.parent / "bundled"
    add("--seed", type=int, default=2017)
    add("--folder", type=Path, default=bundled, help="where the four files are or go")
    add("--size", type=int, default=SIZES["train"], help="pairs in train.tsv")
    add("--sample", type=int, metavar="N", help="print N sentences, aligned, and write nothing")
    add("--statistics", action="store_true", help="print figures of the files and write nothing")
    add("--baseline", action="store_true", help="print BLEU word for word and write nothing")
    a = parser.parse_args()
    if a.sample:
        print_samples(a.sample, a.seed)
    elif a.statistics:
        print_statistics(a.folder)
    elif a.baseline:
        score, signature = baseline(a.folder)
        print(f"word-for-word BLEU on test: {score:.2f}   {signature}")
    else:
        write_corpus(a.folder, a.seed, a.size)


if __name__ == "__main__":
    main()
