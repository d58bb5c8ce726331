"""How a translation's score depends on the size of the vocabulary, for notebook 10.

    python -m transformer.experiments.vocabularies --folder runs/vocabularies

One model on Multi30k, English to German, with vocabularies of five sizes and three seeds. Every
batch holds about as many sentences, whatever its tokens. What was expected was written down before
the runs, in data/runs/vocabularies.md.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from transformer.core.analysis import beside
from transformer.core.records import read_rows
from transformer.core.scores import bleu
from transformer.data import WORD, encode_pairs
from transformer.experiments.runner import (
    Job,
    run_command,
    run_jobs,
    settings_of,
    train_and_score,
)
from transformer.fast.model import TransformerConfig
from transformer.models.pretrained import load
from transformer.models.search import translate
from transformer.runs.experiment import Experiment, stream_pairs
from transformer.runs.planning import schedule
from transformer.runs.training import TrainingConfig, held_out_loss

COMMAND = "python -m transformer.experiments.vocabularies"
SIZES, BASE = (4000, 1000, 16_000, 2000, 8000), "4000"
CORPUS, BATCH_TOKENS, UPDATES = "multi30k", 4096, 1000  # of the base's tokens
MODEL = TransformerConfig(
    4000, d_model=128, d_ff=256, N=3, h=4, P_drop=0.1, norm_first=True
)


def batch_tokens(V: int) -> int:
    """The places of a batch that holds about as many sentences as the base's: by the tokens that a
    validation sentence has with so many types (data/runs/corpora.json)."""
    lengths = {
        row["V"]: row["tokens"]
        for row in read_rows("corpora")
        if row["what"] == "vocabulary" and row["corpus"] == CORPUS
    }
    return round(BATCH_TOKENS * lengths[V] / lengths[int(BASE)])


def score(e: Experiment, device) -> dict:
    """Greedy BLEU on test, and the loss there for each word of the references."""
    model, tokenizer = load(e.folder, device)
    pairs = list(stream_pairs(e, "test"))
    sources, references = zip(*pairs)
    found = bleu(translate(model, tokenizer, sources, beam=1), references)
    encoded = encode_pairs(tokenizer, pairs)
    tokens = sum(len(target) - 1 for _, target in encoded)
    words = sum(len(WORD.findall(text)) for text in references)
    loss = held_out_loss(model, encoded)["validation_loss"] * tokens
    return {
        "test": {
            "bleu": round(found.score, 2),
            "signature": found.signature,
            "nats_a_word": round(loss / words, 4),
            "tokens_a_word": tokens / words,
        }
    }


def job_of(V: int, seed: int) -> Job:
    """A size with a seed."""
    training = schedule(
        TrainingConfig(precision="bf16", seed=seed),
        UPDATES,
        batch_tokens(V),
        MODEL.d_model,
    )
    e = Experiment(CORPUS, model=replace(MODEL, vocab_size=V), training=training)
    known = {"row": str(V), **settings_of(e)}
    return Job(
        f"{V}-{seed}", partial(train_and_score, e, score, COMMAND), known, COMMAND
    )


def differences(rows: list[dict], figure: str = "test.bleu") -> pd.DataFrame:
    """Every size's figure minus the base's, in the model of `beside`."""
    return beside(pd.DataFrame(rows), figure, BASE)


def main(
    seeds: tuple[int, ...] = (1, 2, 3),
    folder: Path = Path("runs/vocabularies"),
    record: Path | None = None,
    minutes: float | None = None,
) -> None:
    """Train all sizes with the first seed, then with the next, on one thread.

    Args:
        seeds: of initial weights and the order of the batches
        folder: where the runs are kept while they go on
        record: the file of results (data/runs/vocabularies.json where not given)
        minutes: stop after so many; the same command goes on
    """
    jobs = [job_of(V, seed) for seed in seeds for V in SIZES]
    run_jobs(jobs, folder, ["cpu"], record or "vocabularies", minutes)


if __name__ == "__main__":
    run_command(main)
