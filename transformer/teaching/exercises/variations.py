"""Exercises of notebook 17: parameters counted by hand, Holm's correction, a rank correlation."""

import numpy as np

from transformer.fast.model import TransformerConfig
from transformer.models.families import parameters_of
from transformer.teaching.exercises import Exercise


def parameters(N: int, d_model: int, d_ff: int, h: int, d_k: int, d_v: int) -> int:
    """What the model of these sizes has outside its embedding matrix."""
    c = TransformerConfig(10, d_model=d_model, d_ff=d_ff, N=N, h=h, d_k=d_k, d_v=d_v)
    return parameters_of(c) - 10 * d_model


check_parameters = Exercise(
    parameters,
    lambda: [(1, 8, 32, 2, 4, 4), (2, 12, 20, 3, 2, 5), (6, 512, 2048, 8, 16, 64)],
    "a decoder's layer has one attention and one LayerNorm more than an encoder's; only the "
    "feed-forward network has biases",
)


def holm(p: list[float]) -> list[float]:
    """The smallest p times their number, the next times one less, and so on; never falling."""
    values = np.array(p)
    order = values.argsort()
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(values[order] * np.arange(len(p), 0, -1))
    return corrected.clip(max=1).tolist()


check_holm = Exercise(
    holm,
    lambda: [([0.04, 0.01, 0.03, 0.9],), ([0.6, 0.7, 0.02],), ([0.011, 0.01],)],
    "begin with the smallest p; a larger p must not end below a smaller one, and none above 1",
)


def rank_correlation(here: list[float], there: list[float]) -> float:
    """The correlation of the two orders."""
    ranks = [np.argsort(np.argsort(values)) for values in (here, there)]
    return float(np.corrcoef(*ranks)[0, 1])


check_rank_correlation = Exercise(
    rank_correlation,
    lambda: [
        ([3.0, 1.0, 2.0], [30.0, 10.0, 900.0]),
        ([0.1, -4.0, 2.0, 7.5], [4.0, 3.0, 2.0, 1.0]),
        ([5.0, 1.0, 9.0, 2.0, 3.0], [0.5, 0.2, 0.9, 0.1, 0.4]),
    ],
    "only the place of a number in its own list counts; then it is the usual correlation",
)
