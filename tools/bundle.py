"""Make the model that comes with the package: the demo's recipe, trained twice as long, in half
precision.

python tools/bundle.py [--run runs/bundled] [--folder data/models/bundled]

It takes about an hour of one CPU core.
"""

import argparse
import dataclasses
import json
import subprocess
from pathlib import Path

import pairs
import torch

from transformer.corpora import read_bundled
from transformer.files import write_json
from transformer.pretrained import load, save
from transformer.recipes import RECIPES
from transformer.runs import Experiment, run_experiment
from transformer.scores import bleu, exact_match
from transformer.search import translate
from transformer.visualization import score_attention
from transformer.weights import save_weights


def train_longer(run, times=2):
    """Train the demo's recipe with `times` as many updates; returns the minutes it took."""
    recipe = RECIPES["bundled"]["training"]
    training = dataclasses.replace(recipe, updates=times * recipe.updates, minutes=None)
    e = Experiment(folder=run, model=RECIPES["bundled"]["model"], training=training)
    run_experiment(e, "python tools/bundle.py")
    last = (run / "log.jsonl").read_text(encoding="utf8").splitlines()[-1]
    return json.loads(last)["seconds"] / 60


def halve(run, folder):
    """Copy a trained model to folder with weights in half precision: half the bytes."""
    model, tokenizer = load(run)
    save(model, folder, tokenizer)
    weights = {name: p.half() for name, p in model.named_parameters()}
    save_weights(weights, folder / "model.safetensors")


def scores(folder):
    """What the model in folder reaches on the test sets, and its attention."""
    model, tokenizer = load(folder)
    result = {}
    for split in ("test", "hard"):
        examples = read_bundled(split)
        outputs = translate(model, tokenizer, [e.source for e in examples])
        score = bleu(outputs, [e.target for e in examples])
        result[split] = {"bleu": round(score.score, 2), "signature": score.signature,
                         "exact_match": exact_match(outputs, [e.target for e in examples])}
    examples = read_bundled("validation"), read_bundled("test")
    return {**result, **score_attention(model, tokenizer, *examples)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=pairs.ROOT / "runs" / "bundled")
    parser.add_argument("--folder", type=Path, default=pairs.ROOT / "data" / "models" / "bundled")
    arguments = parser.parse_args()
    minutes = train_longer(arguments.run)
    halve(arguments.run, arguments.folder)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=pairs.ROOT,
                            capture_output=True, text=True)
    settings = json.loads((arguments.run / "run.json").read_text(encoding="utf8"))["training"]
    card = {
        "command": "python tools/bundle.py",
        "commit": commit.stdout.strip(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "minutes": round(minutes, 1),
        "training": settings,
        **scores(arguments.folder)
    }
    write_json(arguments.folder / "card.json", card)
    print(json.dumps(card, indent=2))


if __name__ == "__main__":
    main()
