"""Why do some trainings never start? Small trainings that do and that do not, looked into as they
go, for notebook 14.

    python -m transformer.experiments.starting --folder runs/starting

Two centres, of which one uses its source within 600 updates and the other hardly does, and rows
that change one factor of either. At each validation held-out pairs say how much the source is used:
by how much their loss rises when each target gets its neighbour's source. What was expected and how
it is tested was written down before the runs, in data/runs/starting.md.
"""

import math
import re
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer.core.analysis import beside
from transformer.core.files import write_file
from transformer.core.records import flatten, read_rows, write_rows
from transformer.corpora import stream_corpus
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import collate, encode_pairs
from transformer.experiments.runner import Job, run_command, run_jobs, settings_of, slug
from transformer.fast.loss import ChunkedLoss, SmoothedLoss
from transformer.fast.model import TransformerConfig
from transformer.fast.stacks import Residual, Stack
from transformer.fast.training import AdamByParts, part_of
from transformer.models.families import build_fast
from transformer.models.recording import cache
from transformer.optimizer import peak_rate
from transformer.runs.experiment import Experiment
from transformer.runs.training import TrainingConfig, held_out_loss, train
from transformer.stacks import LayerNorm

CORPUS, VOCAB_SIZE, HELD_OUT = "bundled", 1000, 100
SIZES = dict(d_model=64, d_ff=256, h=4, max_positions=256)
TRAINING = TrainingConfig(batch_tokens=400, keep=1, precision="fp32")
VALIDATIONS = 10  # in a run
COMMAND = "python -m transformer.experiments.starting"


@dataclass(frozen=True)
class Setting:
    """What a row may change."""

    N: int = 4
    norm_first: bool = False
    peak: float = 0.004  # the largest learning rate
    warmup: int = 100  # updates until then
    updates: int = 600
    clip: float | None = None
    P_drop: float = 0.0
    gain: float = 2**-0.5  # of W_Q, W_K and W_V before training, beside Xavier's 1
    embedding: float = 1.0  # standard deviation of scaled embeddings before training
    encoder: float = 1.0  # the encoder's rate as a part of the whole,
    cross: float = 1.0  # that of cross-attention,
    decoder: float = 1.0  # and that of the rest of the decoder
    first_in: str = ""  # "encoder" or "decoder": norms first in this stack alone
    N_encoder: int | None = None  # layers of the encoder, where they are not N,
    N_decoder: int | None = None  # and of the decoder


# What is trained


def corpus(folder: Path) -> tuple[Tokenizer, list, list]:
    """The tokenizer (learned once, kept in folder), and the encoded training and held-out pairs."""
    pairs, path = list(stream_corpus(CORPUS, "train")), folder / "tokenizer.json"
    if not path.is_file():
        tokenizer = Tokenizer.train(
            (text for pair in pairs for text in pair), VOCAB_SIZE
        )
        write_file(path, tokenizer.save)
    tokenizer = Tokenizer.load(path)
    held_out = list(islice(stream_corpus(CORPUS, "validation"), HELD_OUT))
    return tokenizer, encode_pairs(tokenizer, pairs), encode_pairs(tokenizer, held_out)


def new_model(s: Setting, c: TransformerConfig, seed: int) -> nn.Module:
    """A model whose weights the seed decides, scaled as the setting says."""
    torch.manual_seed(seed)
    model = build_fast(c)
    with torch.no_grad():
        model.embedding.weight.mul_(s.embedding)
        for name, weight in model.named_parameters():
            if re.search(r"W_[QKV]\.", name):
                weight.mul_(s.gain / 2**-0.5)
    model.encoder.layers = model.encoder.layers[: s.N_encoder]
    model.decoder.layers = model.decoder.layers[: s.N_decoder]
    if s.first_in:
        put_norms_first(getattr(model, s.first_in), c.d_model)
    return model


def put_norms_first(stack: Stack, d_model: int) -> None:
    """Turn a post-norm stack into a pre-norm one."""
    for module in stack.modules():
        if isinstance(module, Residual):
            module.norm_first = True
    stack.final_norm = LayerNorm(d_model)


# What is measured


def neighbours(encoded: list) -> list:
    """The same targets, each with the source of the next pair."""
    sources = [source for source, _ in encoded[1:] + encoded[:1]]
    return [(source, target) for source, (_, target) in zip(sources, encoded)]


def spread(x: Tensor, real: Tensor) -> tuple[float, float]:
    """How x (B, S, d_model) varies where real (B, S) is True, as parts of its mean square: over the
    positions of a sentence, and between the means of sentences.
    """
    real = real[..., None].to(x.dtype)
    count = real.sum(dim=1)  # (B, 1)
    mean = (x * real).sum(dim=1) / count  # (B, d_model)
    overall = (mean * count).sum(dim=0) / count.sum()
    square = (x**2 * real).sum()
    within = ((x - mean[:, None]) ** 2 * real).sum() / square
    return within.item(), (((mean - overall) ** 2 * count).sum() / square).item()


def entropy(weights: Tensor, lengths: Tensor, real: Tensor) -> float:
    """Mean entropy of attention (B, h, T, S) as a part of the largest: log of the source's length.

    lengths: of the sources (B,); real: where targets are no padding (B, T).
    """
    nats = -(weights * weights.clamp_min(1e-12).log()).sum(dim=-1).mean(dim=1)  # (B, T)
    return (nats / lengths.log()[:, None])[real].mean().item()


def gradient_norms(model: nn.Module, loss: Tensor) -> dict[str, float]:
    """The norm of the gradient in the encoder, in cross-attention, in the decoder's self-attention
    and in the rest of the decoder.
    """
    squares = {"encoder": 0.0, "cross": 0.0, "self": 0.0, "decoder": 0.0}
    names, parameters = zip(*model.named_parameters())
    for name, gradient in zip(names, torch.autograd.grad(loss, parameters)):
        part = part_of(name)
        if part == "decoder" and "self_attention" in name:
            part = "self"
        if part in squares:
            squares[part] += gradient.square().sum().item()
    return {f"gradient.{part}": math.sqrt(square) for part, square in squares.items()}


def look(model: nn.Module, batch) -> dict[str, float]:
    """Gradients, spread and entropy of a model on a batch, layer by layer, without dropout."""
    outputs = []
    hooks = [
        layer.register_forward_hook(lambda *found: outputs.append(found[-1].detach()))
        for layer in model.encoder.layers
    ]
    with cache(model, "*.cross_attention.weights") as seen:
        loss = model.loss(batch, SmoothedLoss(0.0, model.config.pad_id))
    for hook in hooks:
        hook.remove()
    real, written = (ids != model.config.pad_id for ids in (batch.source, batch.gold))
    figures = gradient_norms(model, loss / written.sum())
    for number, x in enumerate(outputs, 1):
        within, between = spread(x, real)
        figures |= {
            f"spread.positions.{number}": within,
            f"spread.sentences.{number}": between,
        }
    for number, weights in enumerate(seen.values(), 1):
        figures[f"entropy.{number}"] = entropy(
            weights, real.sum(dim=1).float(), written
        )
    return figures


def source_use(encoded: list, model: nn.Module) -> dict[str, float]:
    """Held-out loss with each target's own source, and "use": what its neighbour's costs, in nats a
    token.
    """
    own = held_out_loss(model, encoded)["validation_loss"]
    other = held_out_loss(model, neighbours(encoded))["validation_loss"]
    return {"validation_loss": own, "use": other - own}


def probe(encoded: list, model: nn.Module) -> dict[str, float]:
    """`source_use`, and what `look` sees. No random numbers are drawn: the model must be in
    evaluation.
    """
    seen = look(model, collate(encoded, model.config.pad_id))
    return {**source_use(encoded, model), **seen}


# The runs


def experiment_of(s: Setting, seed: int) -> Experiment:
    """A setting as an experiment of the loop."""
    c = TransformerConfig(
        VOCAB_SIZE, N=s.N, P_drop=s.P_drop, norm_first=s.norm_first, **SIZES
    )
    lr_scale = s.peak / peak_rate(c.d_model, s.warmup)
    training = replace(
        TRAINING,
        seed=seed,
        warmup=s.warmup,
        clip=s.clip,
        lr_scale=lr_scale,
        updates=s.updates,
        validate_every=s.updates // VALIDATIONS,
    )
    return Experiment(CORPUS, model=c, training=training)


HIDDEN = ("epoch", "tokens", "seconds", "tokens_per_second", "utilisation", "skipped")


def curves_of(log: list[dict]) -> dict:
    """A log as columns, four digits each."""
    curves = {
        name: [float(f"{row[name]:.4g}") for row in log]
        for name in log[0]
        if name not in HIDDEN
    }
    curves["update"] = [row["update"] for row in log]
    return curves


def run(s: Setting, seed: int, folder: Path, device: str) -> dict:
    """Train a setting with a seed, or go on with it; its curves as columns, four digits each."""
    tokenizer, encoded, held_out = corpus(folder.parent)
    e = experiment_of(s, seed)
    shares = {"encoder": s.encoder, "cross": s.cross, "decoder": s.decoder}
    log = train(
        new_model(s, e.model, seed),
        encoded,
        e.training,
        folder,
        partial(probe, held_out),
        resume=(folder / "checkpoint.safetensors").is_file(),
        criterion=ChunkedLoss(e.training.epsilon_ls, e.model.pad_id),
        optimizer=partial(AdamByParts, shares=shares),
    )
    last = log[-2:]  # one validation is noisy
    curves = curves_of(log)
    return {
        "use": round(sum(row["use"] for row in last) / len(last), 4),
        "log": curves,
        "minutes": round(log[-1]["seconds"] / 60, 2),
        "updates": log[-1]["update"],
        "tokens": log[-1]["tokens"],
    }


CENTRES = {"ignores": Setting(), "uses": Setting(N=2)}
LONGER = "updates x 4"
# (centre, row, what it changes), in the order in which they are run
ROWS = [
    ("ignores", "centre", {}),
    ("uses", "centre", {}),
    ("ignores", "norms first", {"norm_first": True}),
    ("ignores", "peak / 2", {"peak": 0.002}),
    ("ignores", "encoder's rate / 4", {"encoder": 0.25}),
    ("ignores", "encoder N = 2", {"N_encoder": 2}),
    ("ignores", "decoder N = 2", {"N_decoder": 2}),
    ("ignores", "norms first in the encoder", {"first_in": "encoder"}),
    ("ignores", "norms first in the decoder", {"first_in": "decoder"}),
    ("ignores", "warm-up x 4", {"warmup": 400}),
    ("uses", "peak x 2", {"peak": 0.008}),
    ("ignores", "decoder's rate / 4", {"decoder": 0.25}),
    ("ignores", "cross-attention's rate / 4", {"cross": 0.25}),
    ("uses", "warm-up / 4", {"warmup": 25}),
    ("ignores", "N = 6", {"N": 6}),
    ("ignores", "clip 1", {"clip": 1.0}),
    ("ignores", "gain 1", {"gain": 1.0}),
    ("ignores", "embeddings / 2", {"embedding": 0.5}),
    ("uses", "dropout 0.2", {"P_drop": 0.2}),
    ("uses", "norms first", {"norm_first": True}),
    ("uses", "gain 1", {"gain": 1.0}),
    ("uses", "embeddings / 2", {"embedding": 0.5}),
    ("uses", "clip 1", {"clip": 1.0}),
    ("ignores", LONGER, {"updates": 2400}),
]


def jobs_of(seeds: tuple[int, ...]) -> list[Job]:
    """Every row with all seeds, those of a row one after another."""
    jobs = []
    for centre, row, changes in ROWS:
        s = replace(CENTRES[centre], **changes)
        own = {
            "centre": centre,
            "row": row,
            "rate": s.peak,
            "gain": s.gain,
            "embedding": s.embedding,
            "share": {"encoder": s.encoder, "cross": s.cross, "decoder": s.decoder},
        }
        for seed in seeds:
            known = {**flatten(own), **settings_of(experiment_of(s, seed))}
            jobs.append(
                Job(
                    f"{centre}-{slug(row)}-{seed}",
                    partial(run, s, seed),
                    known,
                    COMMAND,
                )
            )
    return jobs


# What the runs say, as data/runs/starting.md laid down

STARTED, LOSS, READ_AT = 0.3, 3.2, 240


def use_at_loss(row: dict) -> float | None:
    """The use where a run's held-out loss first falls below LOSS, between two validations on a
    line; None where it does not.
    """
    losses, uses = row["log.validation_loss"], row["log.use"]
    below = next((i for i, loss in enumerate(losses) if loss < LOSS), 0)
    if below == 0:
        return None
    part = (losses[below - 1] - LOSS) / (losses[below - 1] - losses[below])
    return round(uses[below - 1] + part * (uses[below] - uses[below - 1]), 4)


def signs(row: dict) -> dict[str, bool]:
    """What the candidates for the mechanism say of a run at update READ_AT."""
    i = row["log.update"].index(READ_AT)
    positions = [row[name] for name in row if name.startswith("log.spread.positions.")][
        -1
    ]
    entropies = [row[name][i] for name in row if name.startswith("log.entropy.")]
    gradients = row["log.gradient.encoder"][i], row["log.gradient.self"][i]
    return {
        "collapsed": positions[i] < positions[0] / 10,
        "vanished": gradients[0] < gradients[1] / 10,
        "even": min(entropies) > 0.95,
        "stuck": min(entropies) < 0.2,
    }


def completed(row: dict) -> dict:
    """The row of a run with what is derived from its curves."""
    if "diverged" in row:
        return {**row, "what": "run", "use": 0.0, "started": False}
    if row["row"] == LONGER:  # no factor: shows what becomes of the centre
        return {**row, "what": "long run", "started": row["use"] >= STARTED}
    signed = {f"sign.{name}": value for name, value in signs(row).items()}
    return {
        **row,
        "what": "run",
        "started": row["use"] >= STARTED,
        "use_at_loss": use_at_loss(row),
        **signed,
    }


def verdict(difference: dict, started: int, before: int, seeds: int) -> str:
    """Whether a row's factor decides, contributes, or cannot be told from nothing."""
    if seeds < 3:
        return "few seeds"
    if difference["p"] >= 0.05:
        return "none"
    return "decides" if {started, before} == {0, seeds} else "contributes"


def around(runs: list[dict], centre: str) -> list[dict]:
    """The runs of a centre's rows; the other centre is its row of another depth."""
    depth = [
        {**run, "row": f"N = {run['model.N']}"}
        for run in runs
        if run["centre"] != centre and run["row"] == "centre"
    ]
    return [run for run in runs if run["centre"] == centre] + depth


def digits(figures, what: str) -> dict:
    """Figures of a row with three digits, their names after what they are of."""
    return {f"{what}.{name}": float(f"{value:.3g}") for name, value in figures.items()}


def differences(runs: list[dict], centre: str) -> list[dict]:
    """Every row around a centre minus the centre itself: use, use at equal loss, verdict."""
    import pandas

    frame = pandas.DataFrame(around(runs, centre))
    if frame.empty or frame["row"].nunique() < 2 or frame["seed"].nunique() < 2:
        return []
    origin = frame.loc[0, ["command", "commit", "hardware"]].to_dict()
    started = frame.groupby("row")["started"].sum()
    equal = frame.dropna(subset="use_at_loss")
    comparable = "centre" in set(equal["row"]) and equal["row"].nunique() > 1
    equal = beside(equal, "use_at_loss", "centre") if comparable else None
    rows = []
    for row, found in beside(frame, "use", "centre").iterrows():
        seeds = int((frame["row"] == row).sum())
        rows.append(
            {
                "what": "difference",
                "name": f"difference-{centre}-{slug(row)}",
                **origin,
                "centre": centre,
                "row": row,
                "seeds": seeds,
                "started": int(started[row]),
                **digits(found, "use"),
                "verdict": verdict(found, started[row], started["centre"], seeds),
            }
        )
        if equal is not None and row in equal.index:
            rows[-1] |= digits(equal.loc[row], "use_at_loss")
    return rows


def summarize(record: Path) -> None:
    """Write what follows from the runs in the file of results into it."""
    done = [
        completed(row) for row in read_rows(record) if row.get("what") != "difference"
    ]
    runs = [row for row in done if row["what"] == "run"]
    both = [row for centre in CENTRES for row in differences(runs, centre)]
    if done:
        write_rows(record, [*done, *both])


def main(
    seeds: tuple[int, ...] = (1, 2, 3),
    folder: Path = Path("runs/starting"),
    record: Path | None = None,
    minutes: float | None = None,
) -> None:
    """Train every row of both centres, one after another, on one thread.

    Args:
        seeds: of initial weights and the order of the batches
        folder: where the runs are kept while they go on
        record: the file of results (data/runs/starting.json where not given)
        minutes: stop after so many; the same command goes on
    """
    record = record or "starting"
    try:
        run_jobs(jobs_of(seeds), folder, ["cpu"], record, minutes)
    finally:
        summarize(record)


if __name__ == "__main__":
    run_command(main)
