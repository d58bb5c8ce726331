"""Table 3 in small: every row with several seeds, trained and scored side by side (`transformer
variations`).
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import torch

from transformer import variations
from transformer.data import Tokenizer, encode_pairs
from transformer.experiments.runner import Job, run_jobs, settings_of, train_and_score
from transformer.progress import Diverged
from transformer.runs import Task, files_of, held_out_loss, stream_pairs
from transformer.scores import bleu
from transformer.search import translate
from transformer.variations import QUESTIONS, TABLE_3, Row, Trial, model_of, scaled, with_changes
from transformer.weights import load_parameters, load_weights


def base_of(corpus: str, large: bool = False, precision: str = "auto") -> Trial:
    """The base on a corpus: the paper's on wmt14, elsewhere the small one, or the larger one for
    GPUs.
    """
    base = variations.LARGE if large else variations.SMALL
    base = variations.PAPER if corpus == "wmt14" else base
    return replace(base, corpus=corpus, training=replace(base.training, precision=precision))


def choose(names: tuple[str, ...] = ()) -> list[Row]:
    """The rows of groups or of single names, and those they are compared with, base first; Table 3
where none is named.

    ValueError for an unknown name.
    """
    rows = [*TABLE_3, *QUESTIONS]
    known = {row.group for row in rows} | {row.name for row in rows}
    for name in names:
        if name not in known:
            groups = ", ".join(dict.fromkeys(row.group for row in rows))
            raise ValueError(f"unknown row {name!r}: choose groups ({groups}) "
                             f"or rows by name, such as {rows[1].name}")
    chosen = [row for row in rows if {row.group, row.name} & set(names)] if names else TABLE_3
    beside = {"base", *(row.beside for row in chosen)}
    return [row for row in rows if row in chosen or row.name in beside]


# One run: it is trained on a part of the corpus, and its vocabulary is learned from that, too

def short_enough(pair, longest):
    """True where neither sentence of a pair has more than so many words."""
    return longest is None or max(len(text.split()) for text in pair) <= longest


def sample(e: Trial, split: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a trial's split; of training every n-th one (`every`), and only what is
    short enough.
    """
    for number, pair in enumerate(stream_pairs(e, split)):
        if split != "train" or number % e.every == 0 and short_enough(pair, e.longest):
            yield pair


def loss_validator(e, tokenizer, count=200, watch=None):
    """validate(model) for `train`: only the cross-entropy of the first `count` validation pairs,
    which is quick.
    """
    encoded = encode_pairs(tokenizer, list(islice(stream_pairs(e, "validation"), count)))
    return lambda model: held_out_loss(model, encoded)


TASK = Task(sample, loss_validator, model_of)


def figures_of(model, tokenizer, pairs) -> dict:
    """Perplexity per target token and BLEU of greedy translations; `Diverged` where there is no
    loss.
    """
    sources, references = zip(*pairs)
    loss = held_out_loss(model, encode_pairs(tokenizer, pairs))["validation_loss"]
    if not math.isfinite(loss):
        raise Diverged(f"after training the validation loss is {loss}")
    found = bleu(translate(model, tokenizer, sources, beam=1), references)
    return {"sentences": len(pairs), "perplexity": round(math.exp(loss), 4),
            "bleu": {"score": round(found.score, 3), "signature": found.signature}}


def score(e: Trial, device: torch.device) -> dict:
    """A finished trial on its validation split; where `longest` is set also on its short and its
    long part.
    """
    tokenizer, model = Tokenizer.load(e.folder / "tokenizer.json"), model_of(e, device)
    load_parameters(model, load_weights(e.folder / "model.safetensors")[0], e.folder)
    pairs = list(stream_pairs(e, "validation"))
    parts = {"short": [], "long": []}
    for pair in pairs if e.longest is not None else []:
        parts["short" if short_enough(pair, e.longest) else "long"].append(pair)
    found = figures_of(model.eval(), tokenizer, pairs)
    for name, part in parts.items():
        if part:
            found[name] = figures_of(model, tokenizer, part)
    return {"validation": found}


# All runs

def job_of(row: Row, base: Trial, seed: int, command: str) -> Job:
    """A row with a seed."""
    e = with_changes(base, {**scaled(row.changes, base), "seed": seed})
    known = {"group": row.group, "row": row.name, "beside": row.beside, **settings_of(e),
             "every": e.every, "longest": e.longest, "without": e.without}
    do = partial(train_and_score, e, score, command, task=TASK)
    return Job(f"{row.name}-seed{seed}", do, known, command)


def run_variations(base: Trial, rows: list[Row], seeds: list[int], folder: Path, devices: list[str],
                   command: str, record: Path | None = None) -> list[dict]:
    """Train and score all rows with all seeds, but for those that the file of results holds; see
`run_jobs`.

    All rows are trained with the first seed before any is trained with the second. Raises
    ValueError or OSError for a corpus, a folder or a record that cannot be used.
    """
    for split in ("train", "validation"):
        files_of(base, split)  # downloaded once, before many ask for it
    jobs = [job_of(row, base, seed, command) for seed in seeds for row in rows]
    found = run_jobs(jobs, folder, devices, record or folder / "results.json")
    if len(set(seeds)) > 1 and find_spec("pandas"):
        print_verdicts(found)
    return found


def print_verdicts(rows: list[dict]) -> None:
    """Every row beside the one it is compared with; a difference under two of its deviations is
    none.
    """
    import pandas

    from transformer.experiments.analysis import compare

    scored = pandas.DataFrame([row for row in rows if "diverged" not in row])
    print("\nminus base (or the row named); a difference under two of its deviations is none")
    print(compare(scored).round(2).to_string())
