"""The length penalty and the beam for a corpus, chosen on its validation sentences: kept in
data/runs/<corpus>-alpha.json.

    python -m transformer.experiments.alpha --folder runs/multi30k-en-de-1

The folder is that of a finished run of `transformer train`.

Greedy search, beam 4 (the paper's) with every alpha, then other beams. Each is scored by BLEU;
"validation.length" is words written over words in the references, and without a penalty
"validation.log_p" the mean of log P of what the search found. No test sentence is touched.
"""

from functools import partial
from pathlib import Path
from statistics import fmean

from transformer.core.scores import bleu, tokenized_bleu
from transformer.corpora import languages_of
from transformer.experiments.runner import Job, devices_for, run_command, run_jobs
from transformer.models.pretrained import load
from transformer.models.search import translate_n_best
from transformer.runs.experiment import stream_pairs
from transformer.runs.folder import load_run

SEARCHES = [
    (1, 0.0),
    *((4, alpha) for alpha in (0.0, 0.3, 0.6, 1.0, 1.2, 1.4, 1.6, 1.8, 2.2)),
    *((beam, alpha) for beam in (2, 8, 16, 64) for alpha in (0.0, 0.6)),
]


def measure(run: Path, beam: int, alpha: float, folder: Path, device: str) -> dict:
    """BLEU (cased, and as the Multi30k literature counts) and length of a run's validation
    translations.
    """
    e, (model, tokenizer) = load_run(run), load(run, device)
    sources, references = zip(*stream_pairs(e, "validation"))
    found = [
        best for (best,) in translate_n_best(model, tokenizer, sources, 1, beam, alpha)
    ]
    outputs = [best.text for best in found]
    language = languages_of(e.corpus, e.reverse)[1]
    written, wanted = (
        sum(len(text.split()) for text in texts) for texts in (outputs, references)
    )
    cased, lowercased = (
        bleu(outputs, references),
        tokenized_bleu(outputs, references, language),
    )
    return {
        "validation": {
            "sentences": len(sources),
            "bleu": round(cased.score, 2),
            "bleu_tokenized_lowercased": round(lowercased.score, 2),
            "length": round(written / wanted, 4),
            **(
                {}
                if alpha
                else {"log_p": round(fmean(best.score for best in found), 3)}
            ),
        }
    }


def main(
    folder: Path = Path("runs/multi30k-en-de-1"),
    record: Path | None = None,
    workers: int = 1,
    device: str = "auto",
) -> None:
    """Search with every alpha and beam.

    Args:
        folder: of a finished run
        record: the file of results (data/runs/<corpus>-alpha.json where not given)
        workers: searches at the same time
        device: cpu, cuda or mps
    """
    e, command = load_run(folder), "python -m transformer.experiments.alpha"
    known = {"corpus": e.corpus, "training.epsilon_ls": e.training.epsilon_ls}
    jobs = [
        Job(
            f"beam{beam}-alpha{alpha}",
            partial(measure, folder, beam, alpha),
            {**known, "beam": beam, "alpha": alpha},
            command,
        )
        for beam, alpha in SEARCHES
    ]
    run_jobs(
        jobs,
        folder / "alpha",
        devices_for(device, workers),
        record or f"{e.corpus}-alpha",
    )


if __name__ == "__main__":
    run_command(main)
