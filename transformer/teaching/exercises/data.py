"""Exercises of notebook 10: test sentences that training has almost seen."""

from transformer.corpora.splits import near_copies
from transformer.teaching.exercises import Exercise

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
