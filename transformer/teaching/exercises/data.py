"""Exercises of notebook 10: a training set without the sentences of the test."""

from transformer.corpora.splits import fold
from transformer.teaching.exercises import Exercise

Pairs = list[tuple[str, str]]


def without_leaks(training: Pairs, test: Pairs) -> Pairs:
    """The training pairs of which the test has neither side."""
    tested = [{fold(text) for text in side} for side in zip(*test)]
    return [
        pair
        for pair in training
        if not any(fold(text) in side for text, side in zip(pair, tested))
    ]


TEST = [("Stop!", "Halt!"), ("We sing.", "Wir singen."), ("Hand", "Die Hand")]
TRAINING = [
    ("Stop.", "Hör auf!"),
    ("Give up.", "Hör auf."),
    ("Freeze!", "HALT"),
    ("We  sing", "Wir singen gern."),
    ("Sing!", "Sing!"),
    ("The hand", "Hand"),
    ("Halt!", "Stop!"),
]

check_without_leaks = Exercise(
    without_leaks,
    lambda: [(TRAINING, TEST), (TRAINING[::-1], TEST[:1]), (TEST, TRAINING)],
    "compare English with English and German with German, and fold both before you do",
)
