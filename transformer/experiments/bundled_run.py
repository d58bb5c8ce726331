"""The run at the end of chapter 14: the plain model and the plain loop learn the bundled corpus.

python -m transformer.experiments.bundled_run [--record PATH]

Some minutes of one CPU core. The record has both validation losses (with a sentence's own source,
and with another sentence's), what four sentences became on the way, and the scores of the last
weights, of those before them, and of their mean.
"""

import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
import tyro

from transformer.core.files import git_commit
from transformer.core.records import flatten, write_rows
from transformer.core.scores import bleu, exact_match
from transformer.corpora import read_corpus
from transformer.data import Tokenizer, encode_pairs, pad
from transformer.decoding import greedy_search
from transformer.experiments.rows import thin
from transformer.fast import model as fast
from transformer.model import Transformer, TransformerConfig
from transformer.models.checkpoint import average_checkpoints
from transformer.models.search import translate
from transformer.runs.folder import hardware_in_words
from transformer.training import TrainingConfig, train, validation_loss

COMMAND = "python -m transformer.experiments.bundled_run"
SENTENCES = [
    "The old cat behind the school lost its ball.",
    "She has not opened the window.",
    "Why did the children sing?",
    "The dog in the city lost its ball.",
]
SIZES = dict(d_model=128, d_ff=512, N=2, h=4, P_drop=0.0)
TRAINING = TrainingConfig(
    updates=4000, batch_tokens=400, warmup=300, lr_scale=0.5, validate_every=200
)
VALIDATED = 200  # pairs
KEPT = 6  # checkpoints, the last among them


def in_german(model, tokenizer, sentences: list[str]) -> list[str]:
    """Greedy translations."""
    rows = [[*tokenizer.encode(text), tokenizer.eos_id] for text in sentences]
    source = pad(rows, tokenizer.pad_id)
    return [tokenizer.decode(tokens) for tokens in greedy_search(model, source)]


def validate(model, tokenizer, held_out: list, kept: list) -> dict:
    """The figures of a validation; the weights of the last few are kept."""
    kept.append({name: value.clone() for name, value in model.state_dict().items()})
    del kept[:-KEPT]
    sources = [source for source, _ in held_out[1:] + held_out[:1]]
    strange = [(source, target) for source, (_, target) in zip(sources, held_out)]
    return {
        **validation_loss(model, held_out),
        "strange_loss": validation_loss(model, strange)["validation_loss"],
        "translations": in_german(model, tokenizer, SENTENCES),
    }


def scores_of(state: dict, tokenizer, pairs: list) -> dict:
    """BLEU and exact translations of some weights; the engine's search, which is quicker, finds
    what the plain one finds.
    """
    model = fast.Transformer(fast.TransformerConfig(tokenizer.vocab_size, **SIZES))
    model.load_state_dict(state, strict=False)
    sources, references = zip(*pairs)
    outputs = translate(model.eval(), tokenizer, list(sources), beam=1)
    return {
        "bleu": round(bleu(outputs, references).score, 2),
        "exact": round(exact_match(outputs, references), 4),
        "outputs": outputs,
    }


def run(seed: int = 2017) -> dict:
    """Train and score; a row of a record."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    pairs, test = read_corpus("bundled", "train"), read_corpus("bundled", "test")
    tokenizer = Tokenizer.train((text for pair in pairs for text in pair), 3500)
    held_out = encode_pairs(tokenizer, read_corpus("bundled", "validation")[:VALIDATED])
    model = Transformer(TransformerConfig(tokenizer.vocab_size, **SIZES))
    kept: list[dict] = []
    watch = partial(validate, tokenizer=tokenizer, held_out=held_out, kept=kept)
    start, used = time.monotonic(), time.process_time()
    log = train(model, encode_pairs(tokenizer, pairs), TRAINING, validate=watch)
    used, seconds = time.process_time() - used, time.monotonic() - start
    return {
        "name": "bundled-run",
        "command": COMMAND,
        "commit": git_commit(),
        "hardware": hardware_in_words(torch.device("cpu"), "fp32"),
        "seed": seed,
        "minutes": round(seconds / 60, 2),
        "minutes_of_processor": round(used / 60, 2),
        "parameters": sum(p.numel() for p in model.parameters()),
        **flatten({"model": asdict(model.config), "training": asdict(TRAINING)}),
        **flatten({"log": {**thin(log), **unthinned(log)}}),
        "sentences": SENTENCES,
        **tested(kept, tokenizer, test),
    }


def tested(kept: list[dict], tokenizer, test: list) -> dict:
    """Scores on the test set: of the last weights, of each that was kept, and of their mean."""
    steps = [scores_of(state, tokenizer, test) for state in kept]
    mean, last = scores_of(average_checkpoints(kept), tokenizer, test), steps[-1]
    examples = [[*pair, output] for pair, output in zip(test, last["outputs"])]
    return {
        "test.bleu": last["bleu"],
        "test.exact": last["exact"],
        "test.mean.bleu": mean["bleu"],
        "test.mean.exact": mean["exact"],
        "test.steps.bleu": [score["bleu"] for score in steps],
        "test.steps.exact": [score["exact"] for score in steps],
        "first_ten": examples[:10],
    }


def unthinned(log: list[dict]) -> dict[str, list]:
    """What `thin` does not know: the loss with strange sources, and translations."""
    losses = [float(f"{row['strange_loss']:.4g}") for row in log]
    return {"strange_loss": losses, "translations": [r["translations"] for r in log]}


@dataclass(frozen=True)
class Options:
    """Train the translator of chapter 14, score it, and write its record."""

    record: Path | None = None  # data/runs/bundled-run.json where not given


def main(options: Options) -> None:
    """Train, score, record."""
    write_rows(options.record or "bundled-run", [run()])


if __name__ == "__main__":
    main(tyro.cli(Options))
