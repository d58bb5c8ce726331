"""What a trained Multi30k model's attention does, for notebook 19: kept in
data/runs/multi30k-attention.json.

    python -m transformer.experiments.attention --folder runs/multi30k-en-de-1

The sentences are the project's own (data/aligned.tsv: English, German, alignment by hand). Their
first half chooses the cross-attention head, the second half scores it. What a head costs is counted
in BLEU on validation sentences of the run's corpus, with greedy search. Two sentences are kept
whole, as the model translates them, with the weights of every head.
"""

from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import torch

from transformer.core.scores import bleu
from transformer.corpora import read_aligned
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.models import head_scores
from transformer.models.maps import KINDS, all_maps, as_thousandths, attention_name
from transformer.models.pretrained import load
from transformer.models.recording import edit
from transformer.models.search import translate
from transformer.runs.experiment import stream_pairs
from transformer.runs.folder import load_run
from transformer.visualization import silent

SHOWN = (3, 20)  # of data/aligned.tsv


def rounded(table, digits=3):
    """A tensor as lists of rounded numbers."""
    return [[round(x, digits) for x in row] for row in table.tolist()]


def head_costs(model, tokenizer, examples) -> dict:
    """BLEU that is lost with one head silent, by kind of attention, (N, h) each: greedy search,
    scored on the examples' targets.
    """
    sources, references = [e.source for e in examples], [e.target for e in examples]

    def score():
        return bleu(translate(model, tokenizer, sources, beam=1), references).score

    whole, costs = score(), {}
    for kind in KINDS:
        table = torch.zeros(model.config.N, model.config.h)
        for n in range(model.config.N):
            for head in range(model.config.h):
                name = attention_name(kind, n) + ".heads"
                with edit(model, {name: silent(head)}):
                    table[n, head] = whole - score()
        costs[kind] = table
    return costs


def head_entropy(maps, kind):
    """Mean entropy of a head's rows in nats, (N, h), over all words of all maps."""
    rows = [
        torch.special.entr(getattr(m, kind)).sum(dim=-1) for m in maps
    ]  # (N, h, rows) each
    return torch.cat(rows, dim=-1).mean(dim=-1)


def head_distance(maps):
    """Mean distance in words from a word to what it looks at in the encoder, (N, h); end marks are
    left out.
    """
    total = shares = 0
    for m in maps:
        weights = m.encoder[:, :, :-1, :-1]
        place = torch.arange(len(m.source) - 1)
        far = (place[:, None] - place).abs()
        total = total + (weights * far).sum(dim=(-2, -1))
        shares = shares + weights.sum(dim=(-2, -1))
    return total / shares


def alignment_of(maps, aligned) -> dict:
    """The cross-attention head that aligns best on the first half of hand-aligned sentences, and
    its error on the second."""
    gold, half = [links for *_, links in aligned], len(aligned) // 2
    chosen_on = head_scores.cross_head_errors(maps[:half], gold[:half])
    scored_on = head_scores.cross_head_errors(maps[half:], gold[half:])
    layer, head = divmod(chosen_on.argmin().item(), chosen_on.shape[1])
    return {
        "layer": layer + 1,
        "head": head + 1,
        "chosen_on": half,
        "scored_on": len(aligned) - half,
        "error": round(scored_on[layer, head].item(), 3),
        "diagonal": round(head_scores.diagonal_error(maps[half:], gold[half:]), 3),
        "errors_where_chosen": rounded(chosen_on),
    }


def measure(run: Path, sentences: int, folder: Path, device: str) -> dict:
    """Everything notebook 19 draws of a trained run."""
    model, tokenizer = load(run)
    aligned = read_aligned()
    maps = all_maps(
        model, tokenizer, [(source, target) for source, target, _ in aligned]
    )
    pairs = islice(stream_pairs(load_run(run), "validation"), sentences)
    validation = [
        SimpleNamespace(source=source, target=target) for source, target in pairs
    ]
    costs = head_costs(model, tokenizer, validation)
    shown = [aligned[i][0] for i in SHOWN]
    pairs = list(zip(shown, translate(model, tokenizer, shown)))
    return {
        "alignment": alignment_of(maps, aligned),
        "encoder_entropy": rounded(head_entropy(maps, "encoder")),
        "encoder_distance": rounded(head_distance(maps)),
        "bleu_lost_without_head": {
            kind: rounded(table, 2) for kind, table in costs.items()
        },
        "bleu_lost_on": f"{len(validation)} validation sentences, greedy search",
        "sentences": [as_thousandths(m) for m in all_maps(model, tokenizer, pairs)],
    }


def main(
    folder: Path = Path("runs/multi30k-en-de-1"),
    sentences: int = 200,
    record: Path | None = None,
) -> None:
    """Look at every head of a finished run.

    Args:
        folder: of the run
        sentences: validation sentences for the cost of a head
        record: the file of results (data/runs/multi30k-attention.json where not given)
    """
    command = f"python -m transformer.experiments.attention --folder runs/{folder.name}"
    e = load_run(folder)
    known = {"corpus": e.corpus, "seed": e.training.seed}
    job = Job("attention", partial(measure, folder, sentences), known, command)
    run_jobs([job], folder, ["cpu"], record or "multi30k-attention")


if __name__ == "__main__":
    run_command(main)
