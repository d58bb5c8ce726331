"""What a new model says, and what becomes of one that may look ahead: behind evidence 8.

    python -m transformer.experiments.new_models      all of it, some minutes of one core

`first words`: models that have learned nothing guess the next token of random sentences. `dice`: the
game of chapter 08, learned with a causal mask and without it.
"""

import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer import model as plain
from transformer.attention import padding_mask
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.fast.model import Transformer, TransformerConfig

COMMAND = "python -m transformer.experiments.new_models"

# What a new model says

SIZES = {  # their sizes, and how many models of each
    "one narrow layer": (dict(vocab_size=13, d_model=64, d_ff=128, N=1, h=2), 20),
    "two narrow layers": (dict(vocab_size=1000, d_model=64, d_ff=128, N=2, h=4), 20),
    "six wide layers": (dict(vocab_size=1000), 5),
}


def new_model(sizes: dict, tied: bool, values: str) -> Transformer:
    """A model with first values of "torch" (each nn.Linear's own) or of "Glorot"."""
    config = TransformerConfig(**sizes, tie_embeddings=tied)
    model = Transformer(config).eval()
    if values == "torch":
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()
    return model


@torch.no_grad()
def first_words(model: Transformer, V: int) -> dict[str, float]:
    """The loss, and how much goes to the token just read, by guess and by probability."""
    source = torch.randint(3, V, (20, 12))
    target = torch.randint(3, V, (20, 13))
    read, right = target[:, :-1], target[:, 1:]
    scores = model(source, read)
    loss = F.cross_entropy(scores.flatten(0, 1), right.flatten())
    probabilities = scores.softmax(dim=-1).gather(2, read[..., None])
    repeats = scores.argmax(dim=-1) == read
    return {
        "loss": loss.item(),
        "expected": math.log(V) + 0.5,
        "repeats": repeats.float().mean().item(),
        "probability": probabilities.mean().item(),
    }


def measure_first_words(folder: Path, device: str) -> list[dict]:
    """A row a model."""
    rows = []
    for size, (sizes, count) in SIZES.items():
        for values in ("torch", "Glorot"):
            for tied in (True, False):
                torch.manual_seed(0)
                for start in range(count):
                    row = {"size": size, "values": values, "tied": tied, "start": start}
                    model = new_model(sizes, tied, values)
                    found = first_words(model, sizes["vocab_size"])
                    rows.append(row | {k: round(v, 4) for k, v in found.items()})
    return rows


# Dice

DICE = plain.TransformerConfig(vocab_size=9, d_model=32, d_ff=64, N=1, h=4, P_drop=0.0)


class Peeking(plain.Transformer):
    """Without a causal mask."""

    def decode(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        real = padding_mask(source, self.config.pad_id)
        return self.decoder(self.embed(target), memory, None, real)


def games(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Six throws each, top and bottom: an empty source, the input, and what is right."""
    top = torch.randint(1, 7, (count, 6))
    right = torch.stack([top, 7 - top], dim=2).flatten(1) + 2  # ids 3 to 8
    source = torch.full((count, 1), DICE.eos_id)
    return source, F.pad(right[:, :-1], (1, 0), value=DICE.bos_id), right


def play(kind: type[plain.Transformer], seed: int, steps: int = 300) -> dict:
    """Train a model on games; its loss, and the share right at each number."""
    torch.manual_seed(seed)
    model = kind(DICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _ in range(steps):
        source, target, right = games(32)
        loss = F.cross_entropy(model(source, target).flatten(0, 1), right.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    source, target, right = games(1000)
    with torch.no_grad():
        graded = model(source, target).argmax(dim=-1)
        prefixes = [target[:, : t + 1] for t in range(12)]
        written = [model(source, prefix)[:, -1].argmax(dim=-1) for prefix in prefixes]
    guesses = {"training": graded, "writing": torch.stack(written, dim=1)}
    shares = {
        f"log.{how}": [
            round(share, 3) for share in (guess == right).float().mean(dim=0).tolist()
        ]
        for how, guess in guesses.items()
    }
    repeats = (guesses["writing"][:, 1:11:2] == target[:, 1:11:2]).float().mean()
    return {"loss": sum(losses[-20:]) / 20, "repeats": repeats.item(), **shares}


def measure_dice(folder: Path, device: str) -> list[dict]:
    """A row a training: five with the causal mask, five without."""
    kinds = {"causal": plain.Transformer, "none": Peeking}
    return [
        {"mask": mask, "seed": seed} | play(kind, seed)
        for mask, kind in kinds.items()
        for seed in range(5)
    ]


def main(record: Path | None = None) -> None:
    """Measure new models and dice.

    Args:
        record: the file of results (data/runs/new_models.json where not given)
    """
    jobs = [
        Job("first words", measure_first_words, {"study": "first words"}, COMMAND),
        Job("dice", measure_dice, {"study": "dice"}, COMMAND),
    ]
    folder = Path("runs") / "new_models"
    run_jobs(jobs, folder, ["cpu"], record or "new_models")


if __name__ == "__main__":
    run_command(main)
