"""What a warm-up does for a small stack, and for which part of it: the trainings behind evidence 12.

    python -m transformer.experiments.warmup        all of them, some minutes of one core

`plans`: the encoder of chapter 12, four layers of width 64, learns to write six digits backwards in
250 updates, by eight plans of rates and from twenty starts each, and by one of the plans in 500. A
row is one training. `moved`: how much of a new encoder's output changes when every weight moves by
the peak rate, up or down at random. A row is one encoder.
"""

from pathlib import Path

import torch
from torch import nn

from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.fast.model import Transformer, TransformerConfig
from transformer.optimizer import adam, learning_rate, set_learning_rate

COMMAND = "python -m transformer.experiments.warmup"
SEEDS = range(20)
PEAK, UPDATES, WARMUP = 0.005, 250, 100
DEPTHS = (1, 2, 4, 8, 16)


def encoder(N: int = 4, norm_first: bool = False) -> Transformer:
    """The model of chapter 12, of N layers."""
    sizes = {"d_model": 64, "d_ff": 128, "N": N, "h": 4, "P_drop": 0.0}
    return Transformer(TransformerConfig(13, **sizes, norm_first=norm_first))


def backwards_loss(model: Transformer) -> torch.Tensor:
    """The loss on sixteen rows of six digits, to be written backwards."""
    digits = torch.randint(3, 13, (16, 6))
    logits = model.output(model.encode(digits))
    return nn.functional.cross_entropy(logits.flatten(0, 1), digits.flip(1).flatten())


def train_with_rates(model: nn.Module, loss_of, rates: list[float]) -> list[float]:
    """One update for each rate; loss_of(model) is the loss on a fresh batch.

    A rate of 0 forms only Adam's v: m is set to 0. Returns the losses.
    """
    optimizer = adam(model)
    losses = []
    model.train()
    for rate in rates:
        set_learning_rate(optimizer, rate)
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if rate == 0:
            for state in optimizer.state.values():
                state["exp_avg"].zero_()  # torch's name of m
    return losses


def plans(updates: int = UPDATES) -> dict[str, tuple[list[float], bool]]:
    """{plan: (rates, whether norms come first)}"""
    rising = [learning_rate(step, 64, WARMUP, 0.4) for step in range(1, updates + 1)]
    at_once = [max(rising)] * WARMUP + rising[WARMUP:]
    growth = [1 - 0.9**step for step in range(1, updates + 1)]
    held = [0.0] * WARMUP
    short = [rate * part for rate, part in zip(at_once, growth)]
    # after `held`, m's start at 0 is no longer made up for: the first steps are short
    full = [rate / part for rate, part in zip(at_once, growth)]
    return {
        "warm-up": (rising, False),
        "no warm-up": (at_once, False),
        "no warm-up, half the peak": ([rate / 2 for rate in at_once], False),
        "pre-norm, warm-up": (rising, True),
        "pre-norm, no warm-up": (at_once, True),
        "short steps": (short, False),
        "v first, full steps": (held + full, False),
        "v first, short steps": (held + at_once, False),
    }


def trainings() -> list[dict]:
    """A row a plan and a start: the losses of the last 250 updates, each a mean of ten."""
    rows = []
    late = plans(2 * UPDATES)["no warm-up"]
    for plan, (rates, norm_first) in (
        plans() | {"no warm-up, 500 updates": late}
    ).items():
        for seed in SEEDS:
            torch.manual_seed(seed)
            model = encoder(norm_first=norm_first)
            losses = train_with_rates(model, backwards_loss, rates)[-UPDATES:]
            means = torch.tensor(losses).unflatten(0, (-1, 10)).mean(dim=1)
            curve = [round(mean, 4) for mean in means.tolist()]
            row = {"part": "plans", "plan": plan, "seed": seed, "loss": curve[-1]}
            rows.append(row | {"log.loss": curve})
    return rows


@torch.no_grad()
def moved(N: int, norm_first: bool, seed: int) -> float:
    """The norm of the change of an encoder's output, as a part of the output's."""
    torch.manual_seed(seed)
    model = encoder(N, norm_first).eval()
    digits = torch.randint(3, 13, (64, 6))
    before = model.encode(digits)
    for parameter in model.encoder.parameters():
        parameter += PEAK * torch.randn_like(parameter).sign()
    return ((model.encode(digits) - before).norm() / before.norm()).item()


def moves() -> list[dict]:
    """A row a depth, a place of the norms and a start."""
    return [
        {"part": "moved", "norms": name, "N": N, "seed": seed}
        | {"change": moved(N, norm_first, seed)}
        for name, norm_first in (("post-norm", False), ("pre-norm", True))
        for N in DEPTHS
        for seed in SEEDS
    ]


def measure_all(folder: Path, device: str) -> list[dict]:
    """The rows of both parts."""
    torch.set_num_threads(1)
    return trainings() + moves()


def main(record: Path | None = None) -> None:
    """Train all small encoders of evidence 12.

    Args:
        record: the file of results (data/runs/warmup.json where not given)
    """
    known = {"peak": PEAK, "updates": UPDATES}
    job = Job("warmup", measure_all, known, COMMAND)
    run_jobs([job], Path("runs"), ["cpu"], record or "warmup")


if __name__ == "__main__":
    run_command(main)
