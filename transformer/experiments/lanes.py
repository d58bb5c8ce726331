"""What lanes and norms are for: the trainings behind evidence 3.

    python -m transformer.experiments.lanes      all of them, about fifteen minutes of one core

`wirings`: the model of chapter 00 learns to say numbers backwards, as its chapter prints it and in
three other wirings, at several rates. `deep`: the same with six layers on each side, whose matrices
start as Glorot and Bengio's (2010), with the norms and without. `networks`: twelve small networks on top of
each other, wired in nine ways, before training and in two tasks. A row is one training, or one
stack before training.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer import first_transformer as first
from transformer.experiments.runner import Job, run_command, run_jobs

COMMAND = "python -m transformer.experiments.lanes"
SEEDS = (0, 1, 2)

# The model of chapter 00 in four wirings


class NoLane(first.Residual):
    """The norm without the lane."""

    def forward(self, x: Tensor, sublayer: Callable) -> Tensor:
        return self.norm(self.dropout(sublayer(x)))


class NoNorm(first.Residual):
    """The lane without the norm."""

    def forward(self, x: Tensor, sublayer: Callable) -> Tensor:
        return x + self.dropout(sublayer(x))


class PreNorm(first.Residual):
    """The norm in front of the sub-layer."""

    def forward(self, x: Tensor, sublayer: Callable) -> Tensor:
        return x + self.dropout(sublayer(self.norm(x)))


class Normed(first.Stack):
    """A stack with one more norm at its top, which pre-norm needs."""

    def __init__(self, layers: Iterable[nn.Module], d_model: int):
        super().__init__(layers)
        self.norm = first.LayerNorm(d_model)

    def forward(self, x: Tensor, *context: Tensor) -> Tensor:
        return self.norm(super().forward(x, *context))


WIRINGS = {
    "post-norm": first.Residual,
    "no lanes": NoLane,
    "no norms": NoNorm,
    "pre-norm": PreNorm,
}
D_MODEL = 64


def build(wiring: str, N: int) -> first.Transformer:
    """The model of chapter 00, of N layers, in one of `WIRINGS`."""
    model = first.Transformer(13, D_MODEL, 128, 4, N, 0.0)
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        count = len(layer.residuals)
        layer.residuals = nn.ModuleList(
            WIRINGS[wiring](D_MODEL, 0.0) for _ in range(count)
        )
    if wiring == "pre-norm":
        model.encoder = Normed(model.encoder.layers, D_MODEL)
        model.decoder = Normed(model.decoder.layers, D_MODEL)
    return model


def start_as_glorot(model: first.Transformer) -> None:
    """First values that keep the size of what passes; torch's have a third of their variance."""
    for name, p in model.named_parameters():
        if p.dim() > 1 and name != "embedding.weight":
            nn.init.xavier_uniform_(p)


def train(model: first.Transformer, factor: float, steps: int) -> list[float]:
    """The losses of chapter 00's recipe, its rate multiplied by factor in place of 0.3."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for step in range(1, steps + 1):
        rate = factor * D_MODEL**-0.5 * min(step**-0.5, step * 100**-1.5)
        optimizer.param_groups[0]["lr"] = rate
        source, target = first.examples(64)
        scores = model(source, target[:, :-1]).flatten(0, 1)
        loss = F.cross_entropy(scores, target[:, 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def answers(model: first.Transformer, count: int = 200) -> dict[str, float]:
    """What the model makes of new numbers.

    `exact`: the share that come out backwards. `commonest`: where a digit occurs more often than
    any other, how often it is the first that the model writes. `likeness`: the mean cosine between
    the digits of one number in the memory.
    """
    source, target = first.examples(count)
    written = first.write(model, source, longest=9)
    exact = [
        first.shown(ours) == first.shown(right) for ours, right in zip(written, target)
    ]
    commonest = []
    for digits, answer in zip(source.tolist(), written.tolist()):
        counts = Counter(digit for digit in digits if digit).most_common(2)
        if len(counts) == 1 or counts[0][1] > counts[1][1]:
            commonest.append(answer[1] == counts[0][0])
    long = source[source[:, 7] > 0]
    mask = torch.ones(8, 8, dtype=torch.bool)
    memory = F.normalize(model.encoder(model.embed(long), mask), dim=-1)
    cosines = memory @ memory.transpose(1, 2)  # (n, 8, 8)
    return {
        "exact": sum(exact) / len(exact),
        "commonest": sum(commonest) / max(1, len(commonest)),
        "likeness": ((cosines.sum(dim=(1, 2)) - 8) / 56).mean().item(),
    }


def measure_wiring(
    N: int,
    wiring: str,
    factors: tuple,
    steps: int,
    folder: Path,
    device: str,
    glorot: bool = False,
) -> list[dict]:
    """A row for each factor and seed."""
    rows = []
    for factor in factors:
        for seed in SEEDS:
            torch.manual_seed(seed)
            model = build(wiring, N)
            if glorot:
                start_as_glorot(model)
            losses = train(model, factor, steps)
            tens = torch.tensor(losses).unflatten(0, (-1, 10)).mean(dim=1)
            rows.append(
                {"factor": factor, "seed": seed, "steps": steps}
                | {"loss": sum(losses[-20:]) / 20}
                | {"log.loss": [round(loss, 4) for loss in tens.tolist()]}
                | {name: round(share, 4) for name, share in answers(model).items()}
            )
    return rows


# Twelve small networks in nine wirings; several runs side by side

D, DEPTH = 32, 12
RATES = (0.001, 0.003, 0.01)
STARTS = 5


def glorot(runs: int, d_in: int, d_out: int) -> Tensor:
    """Matrices (runs, d_in, d_out), uniform, of variance 2 / (d_in + d_out)."""
    return (6 / (d_in + d_out)) ** 0.5 * (2 * torch.rand(runs, d_in, d_out) - 1)


class Networks(nn.Module):
    """A small network a run: two matrices with a ReLU between, x (runs, n, d) -> (runs, n, d).

    They start as Glorot and Bengio's (2010), the second matrix gain times as large: He et al.
    (2015) have a gain of sqrt(2) after a ReLU.
    """

    def __init__(
        self, runs: int, d_model: int, hidden: int | None = None, gain: float = 1.0
    ):
        super().__init__()
        hidden = hidden or d_model
        self.W_1 = nn.Parameter(glorot(runs, d_model, hidden))
        self.b_1 = nn.Parameter(torch.zeros(runs, 1, hidden))
        self.W_2 = nn.Parameter(gain * glorot(runs, hidden, d_model))
        self.b_2 = nn.Parameter(torch.zeros(runs, 1, d_model))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x @ self.W_1 + self.b_1) @ self.W_2 + self.b_2


def starting_as_lane(runs: int, d_model: int) -> Networks:
    """Networks that compute x + F(x) until they are trained: ReLU(x) - ReLU(-x) is x."""
    small, wide = Networks(runs, d_model), Networks(runs, d_model, 3 * d_model)
    one = torch.eye(d_model).expand(runs, -1, -1)
    wide.W_1.data = torch.cat([small.W_1.data, one, -one], dim=2)
    wide.W_2.data = torch.cat([small.W_2.data, one, -one], dim=1)
    return wide


class Wrapped(nn.Module):
    """A sub-layer and what goes around it: forward(x) is wrapper(x, sublayer)."""

    def __init__(self, wrapper: Callable, sublayer: nn.Module):
        super().__init__()
        self.wrapper = wrapper
        self.sublayer = sublayer

    def forward(self, x: Tensor) -> Tensor:
        return self.wrapper(x, self.sublayer)


def norm(x: Tensor) -> Tensor:
    """LayerNorm without gain and bias."""
    return F.layer_norm(x, x.shape[-1:])


WAYS: dict[str, tuple[Callable, Callable]] = {
    "no lane": (lambda x, f: f(x), Networks),
    "no lane, He": (lambda x, f: f(x), partial(Networks, gain=2**0.5)),
    "norm, no lane": (lambda x, f: norm(f(x)), Networks),
    "post-norm": (lambda x, f: norm(x + f(x)), Networks),
    "pre-norm": (lambda x, f: x + f(norm(x)), Networks),
    "lane for the signal only": (lambda x, f: norm(x.detach() + f(x)), Networks),
    "lane for the gradient only": (lambda x, f: norm(x - x.detach() + f(x)), Networks),
    "lane in the weights": (lambda x, f: norm(f(x)), starting_as_lane),
    "random, as wide": (lambda x, f: norm(f(x)), partial(Networks, hidden=3 * D)),
}


def twelve(way: str, runs: int) -> list[nn.Module]:
    """Twelve wrapped networks of several runs; a pre-norm stack ends with a norm."""
    wrapper, networks = WAYS[way]
    layers: list[nn.Module] = [
        Wrapped(wrapper, networks(runs, D)) for _ in range(DEPTH)
    ]
    if way == "pre-norm":
        top = nn.LayerNorm(D, elementwise_affine=False)
        layers[-1] = nn.Sequential(layers[-1], top)
    return layers


def readable(wanted: Tensor, x: Tensor) -> Tensor:
    """The share of the variance of wanted that a linear map of x explains, a run: (runs,).

    Both (runs, n, d); the map is fitted to the first half of the n rows, and judged on the rest.
    """
    x = x - x.mean(dim=1, keepdim=True)
    seen, new = (x / x.std()).double().chunk(2, dim=1)
    known, right = wanted.double().chunk(2, dim=1)
    # a little on the diagonal keeps numbers out that hardly vary
    little = 1e-3 * seen.shape[1] * torch.eye(x.shape[2])
    fitted = torch.linalg.solve(seen.mT @ seen + little, seen.mT @ known)
    missed = (new @ fitted - right).square().mean((1, 2))
    return 1 - missed / right.square().mean((1, 2))


def up_and_down(
    layers: list, runs: int, d_model: int, n: int = 4000
) -> dict[str, Tensor]:
    """Send n random vectors up a list of layers, and random gradients down.

    For every height, input first, and run, (heights, runs): the `size` of the vectors (standard
    deviation), the `length` of the gradient (relative to the top), the share of the `input` that
    can be read from the vectors, and the share of the gradient at the top, the `message`, that can
    be read from the gradient.
    """
    states = [torch.randn(runs, n, d_model).requires_grad_()]
    for layer in layers:
        states.append(layer(states[-1]))
    message = torch.randn(runs, n, d_model)
    gradients = torch.autograd.grad((states[-1] * message).sum(), states)
    lengths = torch.stack([g.norm(dim=(1, 2)) for g in gradients])
    states = [state.detach() for state in states]
    return {
        "size": torch.stack([state.std(dim=(1, 2)) for state in states]),
        "length": lengths / lengths[-1],
        "input": torch.stack([readable(states[0], state) for state in states]),
        "message": torch.stack([readable(message, gradient) for gradient in gradients]),
    }


def tasks() -> dict[str, Callable]:
    """What is to be put out for x (runs, n, D), with mean 0 and variance about 1 each."""
    order = torch.randperm(D)
    teacher = Networks(1, D, gain=2**0.5).requires_grad_(False)
    seen = teacher(torch.randn(1, 10_000, D))
    mean = seen.mean(dim=1, keepdim=True)
    size = (seen - mean).std()
    return {
        "reorder": lambda x: x[..., order],
        "teacher": lambda x: (teacher(x) - mean) / size,
    }


def learn(layers: list, task: Callable, rates: list, steps: int = 150) -> Tensor:
    """Train layers, and a matrix on top of them; the mean squared errors (steps, runs).

    rates: the learning rate of each run.
    """
    stack = nn.Sequential(*layers)
    top = nn.Parameter(glorot(len(rates), D, D))
    parameters = [*stack.parameters(), top]
    optimizer = torch.optim.Adam(parameters, lr=1.0)
    of_run = torch.tensor(rates)[:, None, None]
    losses = []
    for _ in range(steps):
        x = torch.randn(len(rates), 32, D)
        loss = (stack(x) @ top - task(x)).square().mean(dim=(1, 2))
        optimizer.zero_grad()
        loss.sum().backward()
        before = [p.detach().clone() for p in parameters]
        optimizer.step()
        for p, old in zip(parameters, before):
            p.data = old + of_run * (p.data - old)  # Adam's step, times a run's rate
        losses.append(loss.detach())
    return torch.stack(losses)


def untrained(way: str) -> list[dict]:
    """A row a start: what is at each height of the stack before training."""
    torch.manual_seed(0)
    measured = up_and_down(twelve(way, STARTS), STARTS, D)
    return [
        {"study": "untrained", "start": start}
        | {
            f"log.{name}": [float(f"{v:.4g}") for v in values[:, start].tolist()]
            for name, values in measured.items()
        }
        for start in range(STARTS)
    ]


def trained(way: str, name: str, top_alone: bool) -> list[dict]:
    """A row a rate and start: the error of the last 20 steps, and the curve."""
    torch.manual_seed(1)
    task = tasks()[name]
    torch.manual_seed(0)
    rates = [rate for rate in RATES for _ in range(STARTS)]
    layers = twelve(way, len(rates))
    for layer in layers:
        layer.requires_grad_(not top_alone)
    errors = learn(layers, task, rates)
    tens = errors.unflatten(0, (-1, 10)).mean(dim=1)
    rows = []
    for run, rate in enumerate(rates):
        row = {"study": "top alone" if top_alone else "trained", "task": name}
        row |= {"rate": rate, "start": run % STARTS}
        row["error"] = round(errors[-20:, run].mean().item(), 4)
        row["log.error"] = [round(error, 3) for error in tens[:, run].tolist()]
        rows.append(row)
    return rows


def measure_networks(folder: Path, device: str) -> list[dict]:
    """All rows of the nine ways."""
    rows = []
    for way in WAYS:
        found = untrained(way)
        for name in tasks():
            for top_alone in (False, True):
                found += trained(way, name, top_alone)
        rows += [{"wiring": way, **row} for row in found]
    return rows


def jobs() -> list[Job]:
    """The nine ways of wiring networks, and a job a wiring of the model of each depth."""
    every = [Job("networks", measure_networks, {"part": "networks"}, COMMAND)]
    for wiring in WIRINGS:
        factors: tuple = (0.1, 0.3)
        if wiring == "no lanes":  # it was given more chances
            factors = (0.03, *factors, 1.0)
        known = {"part": "wirings", "wiring": wiring, "N": 2}
        do = partial(measure_wiring, 2, wiring, factors, 400)
        every.append(Job(wiring, do, known, COMMAND))
    for wiring in ("post-norm", "no norms", "pre-norm"):
        known = {"part": "deep", "wiring": wiring, "N": 6}
        do = partial(measure_wiring, 6, wiring, (0.03, 0.1, 0.3), 200, glorot=True)
        every.append(Job(f"deep {wiring}", do, known, COMMAND))
    return every


def main(record: Path | None = None) -> None:
    """Train all stacks of evidence 3.

    Args:
        record: the file of results (data/runs/lanes.json where not given)
    """
    run_jobs(jobs(), Path("runs") / "lanes", ["cpu"], record or "lanes")


if __name__ == "__main__":
    run_command(main)
