"""A synchronous grammar of English and German: it writes the bundled corpus.

A sentence is drawn once as a small tree of clauses and noun phrases (sampling.py draws with
clauses.py, phrases.py). The tree is then written twice, by english.py and by german.py. Every word
written carries the names of the parts of the tree it stands for, and two words that share such a
name are aligned. The words themselves stand in data/lexicon.

    python -m data.grammar --seed 2017 --folder data/bundled    write the four files
    python -m data.grammar --sample 10                          read ten sentences, aligned
    python -m data.grammar --statistics                         figures of the four files
    python -m data.grammar --baseline                           BLEU word for word
"""

from .corpus import Corpus

__all__ = ["Corpus"]
