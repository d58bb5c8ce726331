"""Exercises of notebook 18: a tree as symbols, bracket F1, what may come next in a tree."""

import random
from collections import Counter

from transformer.teaching.exercises import Exercise


def symbols_of(tree: tuple) -> list[str]:
    """The symbols of a tree of tuples: (label, part, part, ...), or (part of speech, word)."""
    label, *parts = tree
    if isinstance(parts[0], str):
        return [label]
    inside = [symbol for part in parts for symbol in symbols_of(part)]
    return [f"{label}_", *inside, f"_{label}"]


def bracket_f1(gold: list, found: list) -> float:
    """F1 in per cent of two lists of (label, start, end), in which a bracket may stand twice."""
    matched = (Counter(gold) & Counter(found)).total()
    return 100 * 2 * matched / (len(gold) + len(found))


def may_follow(written: list[str], words: int) -> set[str]:
    """Which kinds of symbol may come next in a tree over so many words: "open", "word", "close"
    or "end"."""
    left = words - sum(symbol == symbol.strip("_") for symbol in written)
    depth = sum(symbol.endswith("_") - symbol.startswith("_") for symbol in written)
    if depth == 0:
        return {"end"} if written else {"open"}
    empty = written[-1].endswith("_")
    allowed = {"open", "word"} if left else set()
    return allowed | ({"close"} if not empty and (depth > 1 or not left) else set())


def tree_like(chance: random.Random, depth: int = 0) -> tuple:
    """A random tree of tuples."""
    if depth > 3 or depth and chance.random() < 0.5:
        return chance.choice(["NN", "DT", "VB"]), chance.choice(["a", "b"])
    parts = [tree_like(chance, depth + 1) for _ in range(chance.randint(1, 3))]
    return (chance.choice(["S", "NP", "VP"]), *parts)


def beginnings() -> list[tuple]:
    """Beginnings of trees of symbols, each with the number of words in its sentence."""
    chance = random.Random(18)
    found: list[tuple] = [([], 3)]
    for _ in range(6):
        symbols = symbols_of(tree_like(chance))
        words = sum(symbol == symbol.strip("_") for symbol in symbols)
        found += [(symbols[:n], words) for n in range(1, len(symbols) + 1)]
    return found


check_symbols_of = Exercise(
    symbols_of,
    lambda: [(tree_like(random.Random(seed)),) for seed in range(8)],
    "a leaf is its part of speech alone; otherwise open, then the symbols of each part, then close",
)

check_bracket_f1 = Exercise(
    bracket_f1,
    lambda: [
        (
            [("S", 0, 3), ("NP", 0, 2)] * 2,
            [("S", 0, 3), ("VP", 0, 2), ("NP", 1, 2)] * 2,
        ),
        ([("NP", 0, 1), ("NP", 0, 1), ("S", 0, 2)], [("NP", 0, 1), ("S", 0, 2)]),
        ([("NP", 0, 1), ("S", 0, 2)], [("NP", 0, 1), ("NP", 0, 1), ("S", 0, 2)]),
    ],
    "a bracket that stands twice in one list and once in the other matches once",
)

check_may_follow = Exercise(
    may_follow,
    beginnings,
    "count the words that are left and the brackets that are open; an empty bracket cannot close, "
    "and the outermost one has to wait for the last word",
)
