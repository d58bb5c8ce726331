"""Text that the Moses tokenizer cut into words, put together again."""

import html
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from transformer.corpora.lines import stream_parallel


def detokenizer(language: str) -> Callable[[str], str]:
    """A function that makes plain text of one cut into words.

    Compounds may be split at ##AT##-##AT##, signs written as HTML entities.
    """
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(language)

    def detokenize(text: str) -> str:
        whole = html.unescape(text.replace(" ##AT##-##AT## ", "-"))
        return moses.detokenize(whole.split(" "), unescape=False)

    return detokenize


def wmt14_pairs(
    paths: Sequence[Path], split: str, every: int = 1
) -> Iterator[tuple[str, str]]:
    """The pairs of a split of wmt14, whose training text, and only that, comes cut into words.

    every: of the training pairs only one in so many, from all over the text.
    """
    if split != "train":
        return stream_parallel(*paths)
    english, german = detokenizer("en"), detokenizer("de")
    pairs = islice(stream_parallel(*paths), 0, None, every)
    return ((english(source), german(target)) for source, target in pairs)
