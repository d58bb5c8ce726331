"""Does the fast way learn as well as the plain one? Validation losses over seeds, in each of four
ways.
"""

import statistics
from itertools import islice

import torch

from transformer.bench.peers import TRAINED
from transformer.bench.settings import QUICK
from transformer.corpora import read_corpus
from transformer.data import Tokenizer, collate, encode_pairs
from transformer.hardware import matmul_precision
from transformer.model import TransformerConfig
from transformer.optimizer import learning_rate
from transformer.pretrained import bundled_folder
from transformer.training import batch_seed, endless_batches, validation_loss

WAYS = {"plain": ("plain", "fp32"), "fast": ("fast", "fp32"),  # system, precision
        "fast, medium": ("fast", "medium"), "fast, bf16": ("fast", "bf16")}


def train(way: str, seed: int, training, updates: int, c: TransformerConfig, nudge: float = 0.0):
    """A model of config c after so many updates in one of `WAYS`, and the loss of each of them
    (nats a token).

    All ways see the same batches, with the same entries dropped. nudge: added to one weight before
    the start.
    """
    name, precision = WAYS[way]
    torch.manual_seed(seed)
    system = TRAINED[name](c).prepare(precision)
    system.model.decoder.layers[0].feed_forward.W_1.weight.data[0, 0] += nudge
    losses = []
    with matmul_precision(precision):
        stream = islice(endless_batches(training, 400, seed), updates)
        for update, (*_, picked) in enumerate(stream, 1):
            system.rate = learning_rate(update, c.d_model, updates // 4, 0.5)
            system.seed = batch_seed(seed, update, 0)
            torch.manual_seed(system.seed)
            losses.append(system.update(collate([training[i] for i in picked], c.pad_id)))
    return system.model, losses


def measure_learning(c, training, validation, updates, seeds=(1, 2, 3, 4, 5, 6)) -> list[dict]:
    """One row for each of `WAYS`: mean and standard deviation over seeds of the validation loss
    (nats a target token) in the end.
    """
    rows = []
    for way, (_, precision) in WAYS.items():
        with matmul_precision(precision):
            models = (train(way, seed, training, updates, c)[0] for seed in seeds)
            losses = [validation_loss(model, validation)["validation_loss"] for model in models]
        rows.append({"way": way, "validation_loss": round(statistics.mean(losses), 4),
                     "deviation": round(statistics.stdev(losses), 4),
                     "losses": [round(loss, 4) for loss in losses]})
    return rows


def bundled_learning(quick: bool) -> list[dict]:
    """`measure_learning` on the bundled corpus, on the CPU: 1,000 updates."""
    tokenizer = Tokenizer.load(bundled_folder() / "tokenizer.json")
    training = encode_pairs(tokenizer, read_corpus("bundled", "train")[:400 if quick else None])
    held_out = read_corpus("bundled", "validation")[:40 if quick else None]
    sizes = QUICK if quick else dict(N=2, d_model=128, d_ff=256, h=4)
    c = TransformerConfig(**{**sizes, "vocab_size": tokenizer.vocab_size}, P_drop=0.1)
    updates = 4 if quick else 1000
    return measure_learning(c, training, encode_pairs(tokenizer, held_out), updates)
