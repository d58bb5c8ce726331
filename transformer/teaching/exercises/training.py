"""The exercise of notebook 14: when to stop."""

import math

from transformer.teaching.exercises import Exercise


def stops(losses: list[float], patience: int) -> tuple[int, int]:
    """Done as soon as the best of all so far lies `patience` validations back."""
    for done in range(1, len(losses) + 1):
        best = min(range(done), key=lambda i: losses[i]) + 1
        if done - best >= patience or done == len(losses):
            return done, best
    return 0, 0


check_stops = Exercise(
    stops,
    lambda: [
        ([3.0, 2.0, 2.5, 2.4, 1.0, 0.5], 2),
        ([3.0, 2.0, 2.5, 1.5, 1.6, 1.4], 2),
        ([2.0, 2.0, 2.0, 1.0], 2),
        ([math.inf, 5.0, 4.0], 1),
    ],
    "count from the best validation so far; an equal loss is not better",
)
