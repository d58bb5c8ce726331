"""The length penalty for a corpus, chosen on its validation sentences: kept in data/runs/<corpus>-alpha.json.

python tools/alpha.py --folder runs/multi30k-en-de-1      # after `transformer train --corpus multi30k --seed 1 ...`

Greedy search, then beam 4 (the paper's) with every alpha. Each is scored by BLEU; `length` is words written over words
in the references. No test sentence is touched.
"""
import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
ALPHAS = (0.0, 0.3, 0.6, 1.0, 1.2, 1.4, 1.6, 1.8, 2.2)


def measure(model, tokenizer, pairs, language="de", alphas=ALPHAS):
    """Rows of beam, alpha, BLEU (cased, and as the Multi30k literature counts) and length, greedy search first."""
    from transformer.search import translate
    from transformer.scores import bleu, tokenized_bleu

    sources, references = zip(*pairs)
    rows = []
    for beam, alpha in [(1, 0.0), *((4, alpha) for alpha in alphas)]:
        outputs = translate(model, tokenizer, sources, beam, alpha)
        written, wanted = (sum(len(text.split()) for text in texts) for texts in (outputs, references))
        rows.append({"beam": beam, "alpha": alpha, "bleu": round(bleu(outputs, references).score, 2),
                     "bleu_tokenized_lowercased": round(tokenized_bleu(outputs, references, language).score, 2),
                     "length": round(written / wanted, 4)})
        print(rows[-1], flush=True)
    return rows


def main():
    from transformer.corpora import languages_of
    from transformer.files import git_commit, write_json
    from transformer.pretrained import load
    from transformer.runs import hardware_in_words, load_run, stream_pairs

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs/multi30k-en-de-1"), help="of a finished run")
    parser.add_argument("--result", type=Path, help="the file (data/runs/<corpus>-alpha.json where not given)")
    arguments = parser.parse_args()
    started, e = time.monotonic(), load_run(arguments.folder)
    model, tokenizer = load(arguments.folder)
    pairs = list(stream_pairs(e, "validation"))
    rows = measure(model, tokenizer, pairs, languages_of(e.corpus, e.reverse)[1])
    result = arguments.result or ROOT / "data" / "runs" / f"{e.corpus}-alpha.json"
    write_json(result, {"command": f"python tools/alpha.py --folder {arguments.folder}", "commit": git_commit(),
                        "hardware": hardware_in_words(next(model.parameters()).device), "split": "validation",
                        "sentences": len(pairs), "minutes": round((time.monotonic() - started) / 60, 1), "rows": rows})


if __name__ == "__main__":
    main()
