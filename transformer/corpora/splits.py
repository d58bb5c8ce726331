"""Splits that do not leak: no sentence of the test, nor a copy of it, stands in training."""

import random
import re
import zipfile



def fold(text):
    """A text without what makes trivial duplicates differ: case, punctuation, spaces."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def groups(pairs):
    """For each pair the number of its group; pairs that share a folded sentence, directly or through others, have one."""
    leader, first = list(range(len(pairs))), {}

    def lead(i):
        while leader[i] != i:
            leader[i] = i = leader[leader[i]]
        return i

    for i, pair in enumerate(pairs):
        for side in (0, 1):
            leader[lead(i)] = lead(first.setdefault((side, fold(pair[side])), i))
    return [lead(i) for i in range(len(pairs))]


def hold_out(pairs, count, seed=2017):
    """The pairs in a random order: first `count` held-out ones, no two of a group, then all that share no group with them.

    What shares a group with a held-out pair is left out. The seed decides the order, on every machine alike.
    """
    pairs = random.Random(seed).sample(pairs, len(pairs))
    number = groups(pairs)
    held_out = {}
    for i, group in enumerate(number):
        if len(held_out) < count:
            held_out.setdefault(group, i)
    return [pairs[i] for i in held_out.values()] + [pair for pair, g in zip(pairs, number) if g not in held_out]


def read_tatoeba(path):
    """[(English, German), ...] from the zip of manythings.org/anki: 2,000 validation and 2,000 test pairs, then training."""
    with zipfile.ZipFile(path) as archive:
        lines = archive.read("deu.txt").decode("utf8").split("\n")
    return hold_out([tuple(line.split("\t")[:2]) for line in lines if line], 4000)
