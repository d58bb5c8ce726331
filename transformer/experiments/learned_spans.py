"""How far do heads look if looking costs something? Small models of characters whose heads learn
their spans, for notebook 22: three prices and none.

    python -m transformer.experiments.learned_spans --folder runs/learned-spans

The text is that of `characters`. What was expected was written down before the runs, in
data/runs/learned-spans.md. No text is drawn.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from transformer.core.weights import count_parameters
from transformer.experiments.characters import (
    CORPUS,
    MODEL,
    TRAINING,
    WARMUP,
    bytes_of,
    character_bits,
    text_of,
    windows,
)
from transformer.experiments.runner import Job, run_command, run_jobs, settings_of
from transformer.fast import FAST
from transformer.fast.model import Parts
from transformer.fast.training import fast_training, fused_adam
from transformer.language import LanguageModel
from transformer.optimizer import peak_rate
from transformer.runs.experiment import Experiment
from transformer.runs.folder import average_last
from transformer.runs.training import train
from transformer.sparse import PricedModel, SpanAttention, clamping, crop, spans_of
from transformer.teaching.measuring import turns

WINDOW, RAMP, RATE, UPDATES = 512, 32, 0.003, 800
SIZES = replace(MODEL, d_model=96, d_ff=384, N=3, max_positions=WINDOW)
PRICES = (0.0, 0.003, 0.03, 0.3)  # nats a token, if all heads look as far as can be
READ = {"validation": 50_000, "test": 200_000}  # characters that are scored
COMMAND = "python -m transformer.experiments.learned_spans"


def experiment_of(seed: int) -> Experiment:
    """The settings that all prices share, as an experiment of the loop."""
    training = replace(
        TRAINING,
        seed=seed,
        updates=UPDATES,
        batch_tokens=4 * (WINDOW + 1),
        lr_scale=RATE / peak_rate(SIZES.d_model, WARMUP),
        validate_every=UPDATES // 8,
        save_minutes=0.5,
    )
    return Experiment(CORPUS, model=SIZES, training=training)


def new_model(price: float) -> PricedModel:
    """A model whose heads see everything at first."""
    attention = partial(SpanAttention, longest=WINDOW, ramp=RAMP)
    return PricedModel(SIZES, Parts(attention=attention), price)


def lengths(model: nn.Module) -> list[list[float]]:
    """The spans of each layer's heads, in positions."""
    return [
        [round(z, 1) for z in (span.longest * span.share).tolist()]
        for span in spans_of(model)
    ]


def mean_span(model: nn.Module) -> float:
    """The mean over all heads."""
    found = lengths(model)
    return sum(map(sum, found)) / sum(map(len, found))


def costs(model: PricedModel) -> dict:
    """FLOPs and seconds of reading two windows, the table in full, cropped, and torch's kernel."""
    x = torch.randint(3, SIZES.vocab_size, (2, WINDOW))
    full = new_model(model.price)
    full.load_state_dict(model.state_dict())
    models = {"full": full, "cropped": crop(model), "fused": LanguageModel(SIZES, FAST)}
    times = turns({name: one.eval() for name, one in models.items()}, x, seconds=20)
    found = {}
    for name, one in models.items():
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            one(x)
        seconds = sorted(times[name])
        found[name] = {
            "flops": counter.get_total_flops(),
            "seconds": round(seconds[len(seconds) // 2], 4),
        }
    del found["fused"]["flops"]  # the counter does not look into a kernel
    return found


def measured(model, texts: dict[str, str]) -> dict:
    """Bits a character on each text, spans and costs of a trained model."""
    bits = {
        f"{split}.bits": character_bits(model, text, WINDOW)
        for split, text in texts.items()
    }
    return bits | {
        "span": mean_span(model),
        "cost": costs(model),
        "cropped.bits": character_bits(model, texts["validation"], WINDOW),
    }


def probe(text: str, model) -> dict:
    """What is looked at in training."""
    return {"span": mean_span(model), "bits": character_bits(model, text, WINDOW)}


def run(price: float, seed: int, folder: Path, device: str) -> dict:
    """Train with a price and a seed, or go on with it; bits, spans and costs."""
    e = experiment_of(seed)
    texts = {split: text_of(split)[:count] for split, count in READ.items()}
    torch.manual_seed(seed)
    model = new_model(price)
    log = train(
        model,
        windows(bytes_of(text_of("train")), WINDOW),
        e.training,
        folder,
        partial(probe, texts["validation"][:10_000]),
        resume=(folder / "checkpoint.safetensors").is_file(),
        **{
            **fast_training(e.training, SIZES),
            "optimizer": partial(clamping, make=fused_adam),
        },
    )
    average_last(model, folder, 1)
    found = measured(model, texts)
    curves = {
        name: [float(f"{row[name]:.4g}") for row in log]
        for name in ("update", "span", "bits")
    }
    return {
        **found,
        "parameters": count_parameters(model),
        "characters": log[-1]["tokens"],
        "spans": {str(i): z for i, z in enumerate(lengths(model), 1)},
        "log": curves,
    }


def jobs_of(seeds: tuple[int, ...], prices: tuple[float, ...] = PRICES) -> list[Job]:
    """Every price with its seeds."""
    jobs = []
    for seed in seeds:
        for price in prices:
            known = {
                "price": price,
                "ramp": RAMP,
                "window": WINDOW,
                **settings_of(experiment_of(seed)),
            }
            jobs.append(
                Job(
                    f"price-{price:g}-{seed}", partial(run, price, seed), known, COMMAND
                )
            )
    return jobs


def main(
    seeds: tuple[int, ...] = (1,),
    prices: tuple[float, ...] = PRICES,
    folder: Path = Path("runs/learned-spans"),
    record: Path | None = None,
    minutes: float | None = None,
) -> None:
    """Train with each price, one after another, on one thread.

    Args:
        seeds: of initial weights and the order of the batches
        prices: of the longest spans, in nats a token
        folder: where the runs are kept while they go on
        record: the file of results (data/runs/learned-spans.json where not given)
        minutes: stop after so many; the same command goes on
    """
    run_jobs(
        jobs_of(seeds, prices), folder, ["cpu"], record or "learned-spans", minutes
    )


if __name__ == "__main__":
    run_command(main)
