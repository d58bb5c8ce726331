"""How sure a model gets that learns few sentences by heart: the trainings behind evidence 13.

    python -m transformer.experiments.sure        all of them, some minutes of one core

The model of chapter 13 learns 800 short sentences of the bundled corpus in 14 rounds, two more than
on its page: plainly, with dropout, with label smoothing and with both, from five starts each. A row is one training; its log
has what 150 new sentences say after each round.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.corpora import read_corpus
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import Batch, collate, encode_pairs
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.fast.model import Transformer, TransformerConfig

COMMAND = "python -m transformer.experiments.sure"
SEEDS = range(5)
ROUNDS = 14
REMEDIES = {
    "plain": (0.0, 0.0),
    "dropout": (0.1, 0.0),
    "smoothing": (0.0, 0.1),
    "both": (0.1, 0.1),
}


def short(split: str, count: int) -> list[tuple[str, str]]:
    """The first pairs whose English side has at most six words between spaces."""
    pairs = read_corpus("bundled", split)
    return [pair for pair in pairs if len(pair[0].split()) <= 6][:count]


def loss_of(logits: Tensor, gold: Tensor, epsilon: float = 0.0) -> Tensor:
    """Cross-entropy over the real tokens, nats."""
    return F.cross_entropy(
        logits.flatten(0, 1), gold.flatten(), ignore_index=0, label_smoothing=epsilon
    )


@torch.no_grad()
def judge(model: Transformer, batch: Batch) -> tuple[float, float, float]:
    """(loss, share of right first guesses, mean probability of the first guess)"""
    logits = model.eval()(batch.source, batch.decoder_input)
    real = batch.gold != 0
    right = (logits.argmax(dim=-1) == batch.gold)[real].float().mean().item()
    sure = logits.softmax(dim=-1).amax(dim=-1)[real].mean().item()
    return loss_of(logits, batch.gold).item(), right, sure


def train(P_drop: float, epsilon: float, seed: int, size: int, data: tuple) -> list:
    """What `judge` says after each round; data: encoded pairs, and a batch of new ones."""
    encoded, new = data
    torch.manual_seed(seed)
    sizes = {"d_model": 64, "d_ff": 256, "N": 1, "h": 4, "P_drop": P_drop}
    model = Transformer(TransformerConfig(size, **sizes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.008, betas=(0.9, 0.98))
    log = []
    for _ in range(ROUNDS):
        for rows in torch.randperm(len(encoded)).split(50):
            batch = collate([encoded[i] for i in rows])
            logits = model.train()(batch.source, batch.decoder_input)
            optimizer.zero_grad()
            loss_of(logits, batch.gold, epsilon).backward()
            optimizer.step()
        log.append(judge(model, new))
    return log


def measure_all(folder: Path, device: str) -> list[dict]:
    """A row a remedy and a start."""
    torch.set_num_threads(1)
    pairs = short("train", 800)
    tokenizer = Tokenizer.train([text for pair in pairs for text in pair], 500)
    encoded = encode_pairs(tokenizer, pairs)
    new = collate(encode_pairs(tokenizer, short("validation", 150)))
    rows = []
    for remedy, (P_drop, epsilon) in REMEDIES.items():
        for seed in SEEDS:
            data = encoded, new
            log = train(P_drop, epsilon, seed, tokenizer.vocab_size, data)
            columns = zip(("loss", "right", "sure"), zip(*log))
            row = {"remedy": remedy, "P_drop": P_drop, "epsilon_ls": epsilon}
            row |= {"seed": seed}
            for name, values in columns:
                row[f"log.{name}"] = [round(value, 4) for value in values]
            rows.append(row)
    return rows


def main(record: Path | None = None) -> None:
    """Train all small models of evidence 13.1.

    Args:
        record: the file of results (data/runs/sure.json where not given)
    """
    job = Job("sure", measure_all, {"rounds": ROUNDS}, COMMAND)
    run_jobs([job], Path("runs"), ["cpu"], record or "sure")


if __name__ == "__main__":
    run_command(main)
