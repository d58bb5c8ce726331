"""What the root of d_model does for a small model: the trainings behind evidence 6.1.

    python -m transformer.experiments.embedding_factor      some minutes of one core

One encoder layer (chapters 03 to 05) writes twelve random tokens of 100 backwards, for which it must
know each token and its place. The factor changes how large words are at the start beside the sines,
and how far a step of Adam moves them; `WAYS` have each of the two with and without the other.
"""

import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention
from transformer.embeddings import Embedding, Projection
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.feed_forward import FeedForward
from transformer.positions import sinusoids
from transformer.stacks import EncoderLayer

COMMAND = "python -m transformer.experiments.embedding_factor"
V, D, LENGTH, STEPS = 100, 32, 12, 300
ROOT = math.sqrt(D)
# way: (what words are multiplied by, what rows are multiplied by before training)
WAYS = {
    "the paper's": (ROOT, 1.0),
    "no factor": (1.0, 1.0),
    "as large, no factor": (1.0, ROOT),
    "as small, with the factor": (ROOT, 1 / ROOT),
}
RATES = (0.0025, 0.005, 0.01)
SEEDS = range(5)


class Backwards(nn.Module):
    """Token ids (B, 12) -> logits (B, 12, V), through one encoder layer."""

    def __init__(self, factor: float, start: float, tied: bool):
        super().__init__()
        self.embedding = Embedding(V, D)
        self.output = Projection(self.embedding if tied else Embedding(V, D))
        self.embedding.weight.data *= start
        self.factor = factor
        layers = MultiHeadAttention(D, 4), FeedForward(D, 2 * D)
        self.layer = EncoderLayer(*layers, D, P_drop=0.0)
        self.register_buffer("positions", sinusoids(LENGTH, D).float())

    def forward(self, tokens: Tensor) -> Tensor:
        words = self.factor * self.embedding.weight[tokens]
        return self.output(self.layer(words + self.positions))


def train(factor: float, start: float, tied: bool, rate: float, seed: int) -> float:
    """The mean loss of the last 20 steps, in nats a token."""
    torch.manual_seed(seed)
    model = Backwards(factor, start, tied)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for _ in range(STEPS):
        tokens = torch.randint(V, (32, LENGTH))
        logits = model(tokens).flatten(0, 1)
        loss = F.cross_entropy(logits, tokens.flip(1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[-20:]) / 20


def measure_all(folder: Path, device: str) -> list[dict]:
    """A row for each way, number of matrices, rate and seed."""
    rows = []
    for matrices in (2, 1):
        for way, (factor, start) in WAYS.items():
            if matrices == 1 and start != 1:
                continue  # one matrix has one size, for both its uses
            for rate in RATES:
                for seed in SEEDS:
                    loss = train(factor, start, matrices == 1, rate, seed)
                    row = {"way": way, "matrices": matrices, "rate": rate}
                    rows.append(row | {"start": seed, "loss": loss})
    return rows


def main(record: Path | None = None) -> None:
    """Train all small models of evidence 6.1.

    Args:
        record: the file of results (data/runs/embedding_factor.json where not given)
    """
    torch.set_num_threads(1)
    job = Job("embedding_factor", measure_all, {}, COMMAND)
    run_jobs([job], Path("runs"), ["cpu"], record or "embedding_factor")


if __name__ == "__main__":
    run_command(main)
