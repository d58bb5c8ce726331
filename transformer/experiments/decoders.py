"""Does a translator need two stacks? Encoder-decoder, decoder alone, and decoder whose prompt sees
itself, with kinds of positions, for notebook 21.

    python -m transformer.experiments.decoders --folder runs/decoders

Each family is trained with three rates and one seed, and with its best rate, by validation BLEU,
with the other seeds. What was expected was written down before the runs, in data/runs/decoders.md.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from transformer.core.scores import bleu, exact_match
from transformer.corpora import read_bundled
from transformer.experiments.runner import (
    Job,
    run_command,
    run_jobs,
    settings_of,
    slug,
    sweep,
    train_and_score,
)
from transformer.fast.model import TransformerConfig
from transformer.language import LanguageConfig
from transformer.models.pretrained import load
from transformer.models.search import translate
from transformer.optimizer import peak_rate
from transformer.runs.experiment import Experiment
from transformer.runs.training import TrainingConfig

COMMAND = "python -m transformer.experiments.decoders"
SIZES = dict(vocab_size=1000, d_model=96, d_ff=384, h=4, P_drop=0.0, max_positions=160)
DECODER = LanguageConfig(
    N=5, **SIZES
)  # as many parameters as both stacks with N = 2, within 10%
FAMILIES = {
    "encoder-decoder": TransformerConfig(
        N=2, positions="rotary", norm_first=True, **SIZES
    ),
    "decoder": DECODER,
    "decoder, prefix": replace(DECODER, prefix=True),
    "decoder, sinusoidal": replace(DECODER, positions="sinusoidal"),
    "decoder, learned": replace(DECODER, positions="learned"),
}
PEAKS, WARMUP = (0.0015, 0.003, 0.006), 200
TRAINING = TrainingConfig(
    updates=1500,
    batch_tokens=800,
    warmup=WARMUP,
    clip=1.0,
    validate_every=300,
    keep=2,
    precision="fp32",
)


def examples(part: str) -> list:
    """Test, every second validation sentence, or the sentences longer than any in training."""
    if part == "longer":
        return [e for e in read_bundled("hard") if "longer" in e.constructions]
    return read_bundled(part)[:: 2 if part == "validation" else 1]


def score(e: Experiment, device) -> dict:
    """Greedy BLEU and exact translations of a run on each part."""
    model, tokenizer = load(e.folder, device)
    found = {}
    for part in ("validation", "test", "longer"):
        sources, targets = zip(*((one.source, one.target) for one in examples(part)))
        outputs = translate(model, tokenizer, list(sources), beam=1)
        found[part] = {
            "bleu": round(bleu(outputs, targets).score, 2),
            "exact_match": round(exact_match(outputs, targets), 4),
        }
    return found


def job_of(family: str, peak: float, seed: int) -> Job:
    """A family with a rate and a seed."""
    lr_scale = peak / peak_rate(SIZES["d_model"], WARMUP)
    e = Experiment(
        model=FAMILIES[family], training=replace(TRAINING, seed=seed, lr_scale=lr_scale)
    )
    known = {"family": family, "rate": peak, **settings_of(e)}
    name = f"{slug(family)}-{peak}-{seed}"
    return Job(name, partial(train_and_score, e, score, COMMAND), known, COMMAND)


def main(
    seeds: tuple[int, ...] = (1, 2, 3),
    folder: Path = Path("runs/decoders"),
    record: Path | None = None,
    minutes: float | None = None,
) -> None:
    """Sweep the rate of every family, then train with all seeds, on one thread.

    Args:
        seeds: of initial weights and the order of the batches; the first sweeps
        folder: where the runs are kept while they go on
        record: the file of results (data/runs/decoders.json where not given)
        minutes: stop after so many; the same command goes on
    """
    run = partial(
        run_jobs,
        folder=folder,
        devices=["cpu"],
        record=record or "decoders",
        minutes=minutes,
    )
    sweep(job_of, FAMILIES, PEAKS, seeds, lambda row: row["validation.bleu"], run)


if __name__ == "__main__":
    run_command(main)
