"""Splits that do not leak: no sentence of the test, nor a copy of it, stands in training."""

import random
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from transformer.core.records import read_rows


def fold(text: str) -> str:
    """A text without what makes trivial duplicates differ: case, punctuation, spaces."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def with_blanks(text: str) -> set[tuple]:
    """The words of a text, with a blank in place of each of them in turn."""
    words = fold(text).split()
    return {(*words[:i], None, *words[i + 1 :]) for i in range(len(words))}


def near_copies(test: list[str], training: list[str]) -> list[str]:
    """The texts of test that differ from a text of training in at most one word."""
    known = set().union(*map(with_blanks, training))
    return [text for text in test if with_blanks(text) & known]


def groups(pairs: list) -> list[int]:
    """For each pair the number of its group.

    Pairs that share a folded sentence, directly or through others, are of one group. Each pair
    points to another of its group, and following the pointers leads to the group's leader.
    """
    leader = list(range(len(pairs)))
    first: dict[tuple[int, str], int] = {}

    def lead(i: int) -> int:
        while leader[i] != i:
            leader[i] = i = leader[leader[i]]
        return i

    for i, pair in enumerate(pairs):
        for side in (0, 1):
            leader[lead(i)] = lead(first.setdefault((side, fold(pair[side])), i))
    return [lead(i) for i in range(len(pairs))]


def hold_out(pairs: list, count: int, seed: int = 2017) -> list:
    """The pairs in a random order: first `count` held-out ones, no two of a group, then the others.

    What shares a group with a held-out pair is left out. The seed decides the order, on every
    machine alike.
    """
    pairs = random.Random(seed).sample(pairs, len(pairs))
    number = groups(pairs)
    held_out: dict[int, int] = {}
    for i, group in enumerate(number):
        if len(held_out) < count:
            held_out.setdefault(group, i)
    others = [pair for pair, group in zip(pairs, number) if group not in held_out]
    return [pairs[i] for i in held_out.values()] + others


def shapes(pairs: list) -> Counter:
    """How often each shape of a group occurs: {"0-0 0-1": groups, ...}.

    A shape names a group's pairs in their order, with a number for each different sentence
    of the group: "0-0 0-1" is one English sentence with two translations.
    """
    members = defaultdict(list)
    for pair, number in zip(pairs, groups(pairs)):
        members[number].append(pair)
    count: Counter = Counter()
    for group in members.values():
        numbers: tuple[dict, dict] = ({}, {})
        shape = []
        for pair in group:
            english, german = (
                known.setdefault(fold(text), len(known))
                for known, text in zip(numbers, pair)
            )
            shape.append(f"{english}-{german}")
        count[" ".join(shape)] += 1
    return count


def numbered_tatoeba() -> list[tuple[str, str]]:
    """The lines of Tatoeba with a number for each different sentence: [("en 0", "de 0"), ...].

    Case, punctuation and spaces make no difference. Made from the record of
    `python -m transformer.experiments.repeats`, which holds no sentence; the order of the
    lines is not that of Tatoeba.
    """
    pairs, english, german = [], 0, 0
    for row in read_rows("repeats"):
        shape = [tuple(map(int, pair.split("-"))) for pair in row["shape"].split()]
        sources, targets = (max(side) + 1 for side in zip(*shape))
        for _ in range(row["groups"]):
            pairs += [(f"en {english + i}", f"de {german + j}") for i, j in shape]
            english, german = english + sources, german + targets
    return pairs


def tatoeba_lines(path: Path) -> list[tuple[str, str]]:
    """All (English, German) in the zip of manythings.org/anki, in its order."""
    with zipfile.ZipFile(path) as archive:
        lines = archive.read("deu.txt").decode("utf8").split("\n")
    fields = [line.split("\t") for line in lines if line]
    return [(english, german) for english, german, *_ in fields]


def tatoeba_pairs(paths: Sequence[Path], split: str) -> Iterator[tuple]:
    """Those pairs, mixed: 4,000 held-out ones, then training."""
    return iter(hold_out(tatoeba_lines(paths[0]), 4000))
