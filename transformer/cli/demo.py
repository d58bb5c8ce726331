"""Some minutes of training on the bundled corpus, then translations, scores, pictures."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from transformer.cli.options import words
from transformer.core.files import prepare_folder, write_json
from transformer.core.scores import bleu, exact_match
from transformer.corpora import read_bundled
from transformer.experiments.rows import public
from transformer.fast.model import Positions
from transformer.models.head_scores import score_attention
from transformer.models.maps import AttentionMaps, attention_maps
from transformer.models.pretrained import load
from transformer.models.search import translate_all
from transformer.runs.experiment import Experiment
from transformer.runs.folder import read_settings
from transformer.runs.progress import ENOUGH, read_log
from transformer.runs.recipes import RECIPES
from transformer.runs.run import run_experiment


def clear(folder: Path) -> None:
    """Remove an earlier demo's run.

    ValueError, and nothing removed, where the folder holds something else.
    """
    names = ("checkpoint.safetensors", "model.safetensors", "weights/*.safetensors")
    old = [path for name in names for path in folder.glob(name)]
    run = folder / "run.json"
    ours = run.is_file() and '"transformer demo' in run.read_text(
        "utf8", errors="replace"
    )
    if old and not ours:
        raise ValueError(
            f"{folder} holds a run or a model, but no demo's: name another --folder"
        )
    for path in old:
        path.unlink()


def train_demo(
    folder: Path, minutes: float, command: str, positions: Positions
) -> None:
    """Train the bundled corpus's recipe in a folder; refused before anything is removed."""
    recipe = RECIPES["bundled"]
    e = Experiment(
        folder=folder,
        model=replace(recipe["model"], positions=positions),
        training=replace(recipe["training"], minutes=minutes),
    )
    prepare_folder(folder)
    clear(folder)
    print(
        "A Transformer learns to translate English to German from the bundled corpus."
    )
    run_experiment(e, command, count=ENOUGH)


def scores_of(model, tokenizer, split: str) -> tuple[dict, list]:
    """BLEU and exact translations on a split, and its (example, output) pairs."""
    examples = read_bundled(split)
    references = [e.target for e in examples]
    outputs = translate_all(model, tokenizer, [e.source for e in examples], what=split)
    score = bleu(outputs, references)
    report = {
        "bleu": score.score,
        "signature": score.signature,
        "exact_match": exact_match(outputs, references),
    }
    return report, list(zip(examples, outputs))


def run_demo(
    folder: Path, minutes: float, command: str, positions: Positions = "sinusoidal"
) -> tuple[dict, list, AttentionMaps]:
    """Everything but drawing: what demo.json holds, some (example, output) pairs, and maps of one."""
    started = time.monotonic()
    train_demo(folder, minutes, command, positions)
    model, tokenizer = load(folder)
    run, last = read_settings(folder), read_log(folder)[-1]
    report = {
        "command": public(run["command"]),
        "commit": run["commit"],
        "tokens": last["tokens"],
        "hardware": run["hardware"],
        "seed": run["training"]["seed"],
        "updates": last["update"],
        "minutes_of_training": round(last["seconds"] / 60, 2),
    }
    report["test"], outputs = scores_of(model, tokenizer, "test")
    report["hard"], _ = scores_of(model, tokenizer, "hard")
    report.update(
        score_attention(
            model, tokenizer, read_bundled("validation"), read_bundled("test")
        )
    )
    picture = next(example for example, _ in outputs if example.pronouns)
    maps = attention_maps(model, tokenizer, [(picture.source, picture.target)])[0]
    report["seconds"] = time.monotonic() - started
    write_json(folder / "demo.json", report)
    return report, outputs[:: max(1, len(outputs) // 6)], maps


@dataclass
class Demo:
    """Train on the bundled corpus for a few minutes, then translate, score and draw."""

    folder: Path = Path("runs/demo")  # where everything is saved
    # training stops after so many minutes, should the machine be slow
    minutes: float = 3.6
    # rotary: better at somewhat longer sentences (07)
    positions: Positions = "sinusoidal"
    # write what demo.json holds into this file, too, for data/runs
    record: Path | None = None

    def run(self) -> None:
        from transformer.views import demo, heads

        if self.record is not None:
            prepare_folder(self.record.parent, "--record")
        report, samples, maps = run_demo(
            self.folder, self.minutes, words(), self.positions
        )
        heads.save_all(maps, self.folder)
        print(demo.page(report, samples, self.folder))
        if self.record is not None:
            from transformer.core.records import flatten, write_rows

            write_rows(self.record, [flatten({"corpus": "bundled", **report})])
