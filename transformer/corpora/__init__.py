"""Corpora: sentence pairs by name, bundled, downloaded or your own."""

from itertools import islice

from transformer.corpora.bundled import Example, Pronoun, bundled_file, read_bundled
from transformer.corpora.download import corpus_file
from transformer.corpora.lines import read_parallel, stream_lines, stream_parallel
from transformer.corpora.moses import detokenize
from transformer.corpora.registry import CORPORA, TREEBANKS
from transformer.corpora.splits import read_tatoeba
from transformer.corpora.treebanks import sentence_of, stream_trees

__all__ = [
    "CORPORA", "Example", "Pronoun", "TREEBANKS", "corpus_paths", "read_bundled", "read_corpus",
    "read_parallel", "stream_corpus", "stream_lines", "stream_parallel",
]



def corpus_paths(name, split):
    """The files that a split of a corpus is read from, downloaded if need be; ValueError for an unknown name or split."""
    if name == "bundled":
        return [bundled_file(split)]
    if name not in CORPORA:
        known = ", ".join(["bundled", *CORPORA])
        raise ValueError(f"unknown corpus {name!r}: choose one of {known}, or give your own files")
    if split not in CORPORA[name].splits:
        raise ValueError(f"{name} has no split {split!r}: choose one of {', '.join(CORPORA[name].splits)}")
    return [corpus_file(name, file) for file in CORPORA[name].splits[split]]


def stream_corpus(name, split, reverse=False):
    """An iterator over the (source, target) pairs of a split: English to German, or with reverse German to English.

    Of a treebank the source is a sentence, the target its tree as text in brackets.
    Of a corpus of two files one pair at a time is in memory. ValueError for an unknown corpus or split.
    """
    paths = corpus_paths(name, split)
    if name == "bundled":
        pairs = ((example.source, example.target) for example in read_bundled(split))
    else:
        corpus = CORPORA[name]
        if name in TREEBANKS:
            pairs = ((sentence_of(tree), tree) for tree in stream_trees(*paths, split))
        else:
            pairs = read_tatoeba(*paths) if name == "tatoeba" else stream_parallel(*paths)
        pairs = islice(pairs, *corpus.cut.get(split, (0, None)))
        if split in corpus.tokenized:
            pairs = ((detokenize(english), detokenize(german, german=True)) for english, german in pairs)
    return ((target, source) for source, target in pairs) if reverse else pairs


def read_corpus(name, split, reverse=False):
    """[(source, target), ...] of one split (train, validation, test and others) of a corpus; see `stream_corpus`."""
    return list(stream_corpus(name, split, reverse))
