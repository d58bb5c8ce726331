"""Exercise of notebook 00: a head, written by hand, that turns a number round."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.teaching.exercises import Exercise, blank

SHARP = 0.99  # the least weight on the right place


def backwards(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """W_Q, W_K (n + 10, n) and W_V (n + 10, 10) of the head."""
    W_Q, W_K, W_V = (torch.zeros(n + 10, columns) for columns in (n, n, 10))
    for place in range(n):
        W_Q[place, n - 1 - place] = 10.0 * n
        W_K[place, place] = 1.0
    W_V[n:] = torch.eye(10)
    return W_Q, W_K, W_V


def rows(digits: Tensor) -> Tensor:
    """What a digit's vector holds: a 1 at its place, and a 1 at the digit itself."""
    return torch.cat([torch.eye(len(digits)), F.one_hot(digits, 10)], dim=1)


def misshapen(answer: object, n: int) -> str | None:
    """Whether the answer is three matrices that fit the vectors and each other."""
    if not isinstance(answer, tuple | list) or len(answer) != 3:
        return "it should return three matrices, W_Q, W_K and W_V"
    for name, matrix in zip(("W_Q", "W_K", "W_V"), answer):
        shape = tuple(getattr(matrix, "shape", ()))
        if len(shape) != 2 or shape[0] != n + 10:
            return f"{name} has shape {shape}, and should have {n + 10} rows"
    widths = [matrix.shape[1] for matrix in answer]
    if widths[0] != widths[1]:
        return f"a query has {widths[0]} numbers and a key {widths[1]}: none can fit"
    if widths[2] != 10:
        return f"a value has {widths[2]} numbers, and should have 10, one a digit"
    return None


def wrong_look(weights: Tensor) -> str | None:
    """The first place that does not look, or not sharply enough, at the one that mirrors it."""
    n = len(weights)
    for place, row in enumerate(weights):
        mirror = n - 1 - place
        if int(row.argmax()) != mirror:
            return (
                f"of {n} places, place {place} gives {row[mirror]:.2f} of its weight to "
                f"place {mirror}, and most to place {int(row.argmax())}"
            )
        if row[mirror] < SHARP:
            return (
                f"place {place} looks most at place {mirror}, as it should, but with a "
                f"weight of {row[mirror]:.2f} only: ask louder"
            )
    return None


class Backwards(Exercise):
    """Tries the head on numbers of several lengths, and says where it looks instead."""

    def verdict(self, yours: Callable) -> str:
        """What the call prints."""
        for (digits,) in self.inputs():
            try:
                answer = yours(len(digits))
                if answer is ... or answer is None and blank(yours):
                    return "not tried yet"
                wrong = misshapen(answer, len(digits)) or self.wrong(answer, digits)
            except Exception as error:  # whatever a first try does wrong
                wrong = f"it stops with {type(error).__name__}: {error}"
            if wrong:
                return f"not yet: {wrong}. Hint: {self.hint}"
        return "right"

    def wrong(self, answer: tuple, digits: Tensor) -> str | None:
        """What is wrong with where the head looks, or else with what it brings."""
        x = rows(digits)
        q, k, v = (x @ torch.as_tensor(matrix).float() for matrix in answer)
        weights = (q @ k.T / math.sqrt(q.shape[1])).softmax(dim=1)
        if look := wrong_look(weights):
            return look
        for place, brought in enumerate(weights @ v):
            digit = int(digits[len(digits) - 1 - place])
            if (brought - F.one_hot(torch.tensor(digit), 10)).abs().max() > 0.05:
                found = [round(number, 2) for number in brought.tolist()]
                return (
                    f"place {place} looks at the right place, a {digit}, but brings home "
                    f"{found} instead of a 1 in column {digit}"
                )
        return None


check_backwards = Backwards(
    backwards,
    lambda: [
        (torch.tensor(digits),)
        for digits in ([3, 1, 4, 1, 5], [2, 7, 1, 8], [*range(10)])
    ],
    "places ask for places and are labelled as places; what they give is the digit",
)
