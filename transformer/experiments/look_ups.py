"""What each part of attention is for, on small look-ups: the trainings behind evidence 4.

    python -m transformer.experiments.look_ups        all of them, some minutes of one core

Four pairs of a random name (16 numbers) and a random number, and one of the names: the answer is
the number beside it. Always answering 0 has an error of 1. Every example draws pairs anew, from a
stock of 32 names; `new names` are 32 others. A row is one network, trained from its own start.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.fast.attention import scaled_dot_product
from transformer.recurrence import AdditiveScore
from transformer.teaching import toys

SEED, STARTS = 0, 5
COMMAND = "python -m transformer.experiments.look_ups"
SOFTMAX = partial(torch.softmax, dim=-1)


def dot_product(q: Tensor, k: Tensor) -> Tensor:
    """q . k: (..., T, d_k), (..., S, d_k) -> (..., T, S)."""
    return q @ k.transpose(-2, -1)


def over_sum(x: Tensor) -> Tensor:
    """Shares: each number over the sum of its row."""
    return x / (x.sum(dim=-1, keepdim=True) + 1e-6)


class LookUp(nn.Module):
    """One head that finds the number beside a name.

    start: the size of the first W_Q and W_K; with 1, queries and keys have variance 1.
    """

    def __init__(
        self,
        d_k: int,
        score: Callable = scaled_dot_product,
        start: float = 1.0,
        shares: Callable = SOFTMAX,
    ):
        super().__init__()
        self.W_Q = nn.Parameter(start / 4 * torch.randn(16, d_k))
        self.W_K = nn.Parameter(start / 4 * torch.randn(16, d_k))
        self.score = score
        self.shares = shares

    def forward(self, asked: Tensor, names: Tensor, numbers: Tensor) -> Tensor:
        """asked (B, 1, 16), names (B, n, 16), numbers (B, n, 1) -> (B, 1)."""
        weights = self.shares(self.score(asked @ self.W_Q, names @ self.W_K))
        return (weights @ numbers)[:, 0]


def hidden_layers(d_in: int, width: int) -> nn.Sequential:
    """Two hidden layers and one number out."""
    return nn.Sequential(
        nn.Linear(d_in, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 1),
    )


class WholeInput(nn.Module):
    """A network with a place for each of four pairs and for the name asked for."""

    def __init__(self):
        super().__init__()
        self.layers = hidden_layers(4 * 17 + 16, 256)

    def forward(self, asked: Tensor, names: Tensor, numbers: Tensor) -> Tensor:
        parts = [part.flatten(1) for part in (asked, names, numbers)]
        return self.layers(torch.cat(parts, dim=1))


class EachPair(nn.Module):
    """One network for each pair, with the name asked for; the results are added."""

    def __init__(self):
        super().__init__()
        self.layers = hidden_layers(2 * 16 + 1, 64)

    def forward(self, asked: Tensor, names: Tensor, numbers: Tensor) -> Tensor:
        pairs = torch.cat([asked.expand_as(names), names, numbers], dim=-1)
        return self.layers(pairs).sum(dim=1)


class Fetch(nn.Module):
    """Six kinds of token with a vector each; each token fetches the number of another kind."""

    def __init__(self, itself: bool = True, matrices: bool = False):
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(6, 15))
        start = [torch.randn(16, 16) / 4 for _ in range(2)]
        self.W = nn.ParameterList(start) if matrices else None
        self.register_buffer("others", ~torch.eye(6).bool() | itself)

    def forward(self, kinds: Tensor, numbers: Tensor) -> Tensor:
        """kinds (B, 6, 6) one-hot, numbers (B, 6, 1) -> (B, 6, 1)."""
        # the number is part of what is compared, too
        x = torch.cat([kinds @ self.vectors, numbers], dim=-1)
        q, k = (x, x) if self.W is None else (x @ self.W[0], x @ self.W[1])
        scores = scaled_dot_product(q, k).masked_fill(~self.others, -math.inf)
        return scores.softmax(dim=-1) @ numbers


def errors_on(networks: list, tests: dict[str, tuple]) -> dict[str, list[float]]:
    """{test: the mean squared error of each network}."""
    return {
        name: toys.errors_of(networks, task).tolist() for name, task in tests.items()
    }


def rows_of(study: str, model: str, rate: float, errors: dict[str, list]) -> list[dict]:
    """A row a start: its error in training (the last 50 steps) and on each test."""
    starts = range(len(next(iter(errors.values()))))
    return [
        {"study": study, "model": model, "rate": rate, "start": start}
        | {f"error.{name}": values[start] for name, values in errors.items()}
        for start in starts
    ]


def rivals(known: Tensor, new: Tensor) -> list[dict]:
    """Attention beside two networks that do without: one rate each."""
    models = {
        "whole input": (WholeInput, 1500, 0.002),
        "each pair": (EachPair, 500, 0.003),
        "attention": (partial(LookUp, 32), 400, 0.01),
    }
    rows = []
    for name, (make, steps, rate) in models.items():
        batch = partial(toys.look_ups, known, runs=STARTS, count=64)
        _, networks = toys.train_several(make, batch, steps, rate, runs=STARTS)
        tests = {
            "known names": (known, 4),
            "new names": (new, 4),
            "16 pairs": (known, 16),
        }
        if name == "whole input":  # it has no place for more than four
            del tests["16 pairs"]
        tasks = {
            test: toys.look_ups(names, n, runs=STARTS, count=1000)
            for test, (names, n) in tests.items()
        }
        size = sum(p.numel() for p in networks[0].parameters())
        more = {"parameters": size, "examples": 64 * steps}
        for row in rows_of("rivals", name, rate, errors_on(networks, tasks)):
            rows.append(row | more)
    return rows


def scores(known: Tensor, new: Tensor) -> list[dict]:
    """Four scores at three widths, each at three rates."""
    models = {
        "q.k": lambda d_k: LookUp(d_k, dot_product),
        "q.k, smaller start": lambda d_k: LookUp(d_k, dot_product, d_k**-0.25),
        "q.k / sqrt(d_k)": lambda d_k: LookUp(d_k),
        "additive": lambda d_k: LookUp(d_k, AdditiveScore(d_k, 32)),
    }
    rows = []
    for d_k in (16, 64, 256):
        for name, make in models.items():
            for rate in (0.003, 0.01, 0.03):
                batch = partial(toys.look_ups, known, runs=STARTS)
                errors, networks = toys.train_several(
                    partial(make, d_k), batch, 200, rate, runs=STARTS
                )
                tests = {"new names": toys.look_ups(new, runs=STARTS, count=1000)}
                found = {"training": errors[-50:].mean(dim=0).tolist()}
                found |= errors_on(networks, tests)
                rows += [
                    row | {"d_k": d_k} for row in rows_of("scores", name, rate, found)
                ]
    return rows


def shares(known: Tensor, new: Tensor) -> list[dict]:
    """Other ways from scores to shares than softmax, at one rate."""
    ways = {
        "softmax": SOFTMAX,
        "positive parts over their sum": lambda scores: over_sum(scores.relu()),
        "squares over their sum": lambda scores: over_sum(scores.square()),
        "scores over their sum": over_sum,
    }
    rows = []
    for name, way in ways.items():
        batch = partial(toys.look_ups, known, runs=STARTS)
        make = partial(LookUp, 64, shares=way)
        _, networks = toys.train_several(make, batch, 300, 0.01, runs=STARTS)
        tests = {
            f"{n} pairs": toys.look_ups(known, n, runs=STARTS, count=1000)
            for n in (4, 16)
        }
        rows += rows_of("shares", name, 0.01, errors_on(networks, tests))
    return rows


def matrices(known: Tensor, new: Tensor) -> list[dict]:
    """Vectors that are query and key at once, and vectors with W_Q and W_K."""
    tasks = {"partners": [1, 0, 3, 2, 5, 4], "ring": [1, 2, 3, 4, 5, 0]}
    models = {
        "vectors alone": Fetch,
        "vectors, not itself": partial(Fetch, itself=False),
        "W_Q and W_K": partial(Fetch, matrices=True),
    }
    rows = []
    for task, partner in tasks.items():
        for name, make in models.items():
            batch = partial(toys.fetches, partner, runs=STARTS)
            errors, _ = toys.train_several(make, batch, 300, 0.03, runs=STARTS)
            found = {"training": errors[-50:].mean(dim=0).tolist()}
            rows += [
                row | {"task": task} for row in rows_of("matrices", name, 0.03, found)
            ]
    return rows


def measure_all(folder: Path, device: str) -> list[dict]:
    """The rows of all four studies."""
    rows = []
    for study in (rivals, scores, shares, matrices):
        torch.manual_seed(SEED)
        known, new = torch.randn(32, 16), torch.randn(32, 16)
        rows += study(known, new)
    return rows


def main(record: Path | None = None) -> None:
    """Train all small networks of evidence 4.

    Args:
        record: the file of results (data/runs/look_ups.json where not given)
    """
    job = Job("look_ups", measure_all, {"seed": SEED}, COMMAND)
    run_jobs([job], Path("runs"), ["cpu"], record or "look_ups")


if __name__ == "__main__":
    run_command(main)
