"""What a trained Multi30k model's attention does, for notebook 19: kept in data/runs/multi30k-attention.json.

python tools/attention.py --folder runs/multi30k-en-de-1      # after `transformer train --corpus multi30k --seed 1 ...`

The sentences are the project's own (data/aligned.tsv: English, German, alignment by hand). Their first half chooses the
cross-attention head, the second half scores it. What a head costs is counted in BLEU on validation sentences of the
run's corpus, with greedy search. Two sentences are kept whole, as the model translates them, with the weights of every
head.
"""
import argparse
import json
import sys
import time
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
SHOWN = (3, 20)  # of data/aligned.tsv


def read_aligned(path=ROOT / "data" / "aligned.tsv"):
    """[(English, German, {(English word, German word), ...}), ...] of the project's sentences aligned by hand."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf8").splitlines()]
    return [(source, target, {tuple(map(int, link.split("-"))) for link in links.split()})
            for source, target, links in rows]


def rounded(table, digits=3):
    """A tensor as lists of rounded numbers."""
    return [[round(x, digits) for x in row] for row in table.tolist()]


def measure(folder, sentences):
    """Everything notebook 19 draws of a trained run."""
    from transformer import visualization as v
    from transformer.search import translate
    from transformer.pretrained import load
    from transformer.runs import load_run, stream_pairs

    model, tokenizer = load(folder)
    aligned = read_aligned()
    maps = v.all_maps(model, tokenizer, [(source, target) for source, target, _ in aligned])
    gold, half = [links for *_, links in aligned], len(aligned) // 2
    errors = v.cross_head_errors(maps[:half], gold[:half])
    layer, head = divmod(errors.argmin().item(), errors.shape[1])
    pairs = islice(stream_pairs(load_run(folder), "validation"), sentences)
    validation = [SimpleNamespace(source=source, target=target) for source, target in pairs]
    costs = v.head_costs(model, tokenizer, validation)
    shown = [aligned[i][0] for i in SHOWN]
    pairs = list(zip(shown, translate(model, tokenizer, shown)))
    return {
        "alignment": {
            "layer": layer + 1, "head": head + 1, "chosen_on": half, "scored_on": len(aligned) - half,
            "error": round(v.cross_head_errors(maps[half:], gold[half:])[layer, head].item(), 3),
            "diagonal": round(v.diagonal_error(maps[half:], gold[half:]), 3), "errors_where_chosen": rounded(errors)},
        "encoder_entropy": rounded(v.head_entropy(maps, "encoder")),
        "encoder_distance": rounded(v.head_distance(maps)),
        "bleu_lost_without_head": {kind: rounded(table, 2) for kind, table in costs.items()},
        "bleu_lost_on": f"{len(validation)} validation sentences, greedy search",
        "sentences": [v.as_thousandths(m) for m in v.all_maps(model, tokenizer, pairs)],
    }


def main():
    from transformer.files import git_commit, write_file
    from transformer.runs import hardware_in_words, read_settings

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs/multi30k-en-de-1"), help="of a finished run")
    parser.add_argument("--sentences", type=int, default=200, help="validation sentences for the cost of a head")
    parser.add_argument("--result", type=Path, default=ROOT / "data" / "runs" / "multi30k-attention.json")
    arguments = parser.parse_args()
    import torch

    started, settings = time.time(), read_settings(arguments.folder)
    result = {"command": f"python tools/attention.py --folder runs/{arguments.folder.name}", "commit": git_commit(),
              "hardware": hardware_in_words(torch.device("cpu")), "corpus": settings["corpus"],
              "seed": settings["training"]["seed"], **measure(arguments.folder, arguments.sentences)}
    result["minutes"] = round((time.time() - started) / 60, 1)
    text = json.dumps(result, ensure_ascii=False) + "\n"
    write_file(arguments.result, lambda path: path.write_text(text, encoding="utf8"))
    print(json.dumps({name: value for name, value in result.items() if name != "sentences"}, indent=1))


if __name__ == "__main__":
    main()
