"""Does the fast way learn as well as the plain one? Validation losses over seeds, in each of four
ways.
"""

import statistics

import torch

from transformer.bench.settings import QUICK
from transformer.corpora import read_corpus
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import encode_pairs
from transformer.fast import FAST
from transformer.fast.model import Parts, Transformer, TransformerConfig
from transformer.fast.training import fast_training
from transformer.hardware import matmul_precision
from transformer.models.families import build_fast
from transformer.models.pretrained import bundled_folder
from transformer.runs import training

# precisions; all but plain by the fast parts
WAYS = {"plain": "fp32", "fast": "fp32", "fast, medium": "medium", "fast, bf16": "bf16"}


def train(
    way: str, seed: int, encoded, updates: int, c: TransformerConfig, nudge: float = 0.0
):
    """A model of config c after so many updates in one of `WAYS`, and the loss of each of them
    (nats a token).

    All ways see the same batches, with the same entries dropped. nudge: added to one weight before
    the start.
    """
    settings = training.TrainingConfig(
        updates=updates,
        batch_tokens=400,
        warmup=updates // 4,
        lr_scale=0.5,
        validate_every=1,
        precision=WAYS[way],
        seed=seed,
    )
    torch.manual_seed(seed)
    model = (
        Transformer(c, Parts(dropout=FAST.dropout)) if way == "plain" else build_fast(c)
    )
    model.decoder.layers[0].feed_forward.W_1.weight.data[0, 0] += nudge
    parts = {} if way == "plain" else fast_training(settings, c)
    log = training.train(model, encoded, settings, **parts)
    return model, [row["loss"] for row in log]


def measure_learning(
    c, encoded, held_out, updates, seeds=(1, 2, 3, 4, 5, 6)
) -> list[dict]:
    """One row for each of `WAYS`: mean and standard deviation over seeds of the validation loss
    (nats a target token) in the end.
    """
    rows = []
    for way, precision in WAYS.items():
        with matmul_precision(precision):
            models = (train(way, seed, encoded, updates, c)[0] for seed in seeds)
            losses = [
                training.validation_loss(model, held_out)["validation_loss"]
                for model in models
            ]
        rows.append(
            {
                "way": way,
                "validation_loss": round(statistics.mean(losses), 4),
                "deviation": round(statistics.stdev(losses), 4),
                "losses": [round(loss, 4) for loss in losses],
            }
        )
    return rows


def bundled_learning(quick: bool) -> list[dict]:
    """`measure_learning` on the bundled corpus, on the CPU: 1,000 updates."""
    tokenizer = Tokenizer.load(bundled_folder() / "tokenizer.json")
    encoded = encode_pairs(
        tokenizer, read_corpus("bundled", "train")[: 400 if quick else None]
    )
    held_out = read_corpus("bundled", "validation")[: 40 if quick else None]
    sizes = QUICK if quick else dict(N=2, d_model=128, d_ff=256, h=4)
    c = TransformerConfig(**{**sizes, "vocab_size": tokenizer.vocab_size}, P_drop=0.1)
    updates = 4 if quick else 1000
    return measure_learning(c, encoded, encode_pairs(tokenizer, held_out), updates)
