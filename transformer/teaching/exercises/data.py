"""Exercises of notebook 10: test sentences that training has almost seen."""

from transformer.corpora.splits import fold
from transformer.teaching.exercises import Exercise


def with_blanks(text: str) -> set[tuple]:
    """The words of a text, with a blank in place of each of them in turn."""
    words = fold(text).split()
    return {(*words[:i], None, *words[i + 1 :]) for i in range(len(words))}


def near_copies(test: list[str], training: list[str]) -> list[str]:
    """The texts of test that differ from a text of training in at most one word."""
    known = set().union(*map(with_blanks, training))
    return [text for text in test if with_blanks(text) & known]


TRAINING = [
    "The old king was not happy.",
    "Was the mother tired?",
    "We sing.",
    "He lost his keys, didn't he?",
]
TEST = [
    "The old queen was not happy.",
    "the old king was not happy",
    "The king was not happy.",
    "The old queen was not tired.",
    "The mother was tired.",
    "They sing!",
    "We sing songs.",
    "She lost his keys; didn't he?",
]

check_near_copies = Exercise(
    near_copies,
    lambda: [(TEST, TRAINING), (TRAINING, TEST), (TEST, TRAINING[:1])],
    "put a blank in place of each word in turn, and leave the other words where they are",
)
