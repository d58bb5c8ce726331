"""Table 2 in small: a plain RNN, an RNN with attention, a convolutional model and a Transformer, for notebook 16.

    python tools/families.py                                    bundled corpus: data/runs/families-bundled.json
    python tools/families.py --corpus multi30k --seeds 1        the same for Multi30k, with one seed
    python tools/families.py --only rnn convolution             some of the families; start the others beside it

All four have the same corpus, vocabulary, batches, updates (so tokens seen), loss, schedule, clipping, dropout and
averaging, and within 10% as many parameters. Only the schedule's peak is each family's own: three are tried (and more
while the best is the first or last of them) in shorter runs of the first seed, and validation BLEU (greedy search,
averaged weights) decides. Then each seed trains in full and translates the test split once, with beam 4; of the bundled
corpus also the split of unseen combinations and lengths.

A run is kept in runs/families-<corpus>/<family>-<peak>-<seed>-<updates>: run.json when it is trained, test.json when it
is scored. What is there is not done again; a run that was stopped goes on. The result file is written once all families
have all seeds. Minutes are those of training alone, on one thread: the median over stretches of a run, times their
number. All figures of one corpus should come from the same machine.
"""

import argparse
import json
import shutil
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, median, stdev

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from transformer.convolution import ConvolutionConfig  # noqa: E402
from transformer.corpora import stream_corpus  # noqa: E402
from transformer.data import Tokenizer, encode_pairs, lengths_of  # noqa: E402
from transformer.scores import bleu
from transformer.search import translate# noqa: E402
from transformer.experiments.records import thin
from transformer.files import git_commit, write_json  # noqa: E402
from transformer.fast import build_fast  # noqa: E402
from transformer.hardware import training_flops  # noqa: E402
from transformer.optimizer import peak_rate  # noqa: E402
from transformer.pretrained import parameters_of
from transformer.recipes import recipe
from transformer.recurrence import RecurrenceConfig  # noqa: E402
from transformer.runs import average_last, hardware_in_words
from transformer.training import Interrupted, TrainingConfig, train, validation_loss  # noqa: E402
from transformer.translation import score_report
from transformer.weights import load_parameters, load_weights, save_weights  # noqa: E402

STRETCHES, BUCKETS = 24, 6  # validations in a run, groups of sentences by length
SCORED = {"bundled": ("test", "hard"), "multi30k": ("test",)}  # splits that count once all is chosen


@dataclass(frozen=True)
class Comparison:
    """What the families share, and their sizes. The configurations' vocabulary is set by `sized`."""

    models: dict  # {family: configuration}
    training: TrainingConfig  # of a whole run; seed, factor and save_every are set run by run
    choice: int  # updates of the runs that choose the peak of the learning rate
    rates: tuple = (0.00125, 0.0025, 0.005)  # the peaks to begin with: ascending, each twice the one before
    most: int = 6  # peaks tried at most


def families(vocab_size, P_drop, wide, attentive, blocks, transformer):
    """The four configurations, from the widths of the RNNs, the convolutional model's blocks, and the Transformer."""
    shared = dict(vocab_size=vocab_size, P_drop=P_drop, max_positions=256)
    return {"rnn": RecurrenceConfig(d_model=wide, attention=False, **shared),
            "rnn-attention": RecurrenceConfig(d_model=attentive, **shared),
            "convolution": ConvolutionConfig(d_model=128, N=blocks, **shared),
            "transformer": replace(transformer, **shared)}


# Sizes like those of the recipes, and fewer updates: all must be done four times over
COMPARISONS = {
    "bundled": Comparison(
        families(3500, 0.0, 176, 168, 4, recipe("bundled")["model"]),
        TrainingConfig(updates=3000, batch_tokens=400, warmup=300, clip=1.0, keep=5, precision="fp32"), choice=1500),
    "multi30k": Comparison(
        families(6000, 0.2, 192, 184, 6, recipe("multi30k")["model"]),
        TrainingConfig(updates=2000, batch_tokens=4096, warmup=400, clip=1.0, keep=5, precision="bf16"), choice=600),
}


# What is compared must be comparable

def sized(models, tokenizer):
    """The configurations for a tokenizer; ValueError where their numbers of parameters differ by more than 10%."""
    ids = {name: getattr(tokenizer, name) for name in ("vocab_size", "pad_id", "bos_id", "eos_id")}
    models = {family: replace(c, **ids) for family, c in models.items()}
    counts = {family: parameters_of(c) for family, c in models.items()}
    if max(counts.values()) > 1.1 * min(counts.values()):
        listed = ", ".join(f"{family} {count:,}" for family, count in counts.items())
        raise ValueError(f"parameters differ by more than 10% ({listed}): change a width or a depth")
    return models


def next_rate(tried, first, most):
    """The peak to try next, given {peak: validation BLEU}; None where the best lies inside, or `most` have been tried.

    First come those of `first`; then, while the best is the smallest or the largest, half or twice it.
    """
    for rate in first:
        if rate not in tried:
            return rate
    best = best_rate(tried)
    if len(tried) >= most or min(tried) < best < max(tried):
        return None
    return best / 2 if best == min(tried) else best * 2


def best_rate(tried):
    """The peak with the highest validation BLEU; of equals, the smallest."""
    return max(sorted(tried), key=tried.get)


# One run

def timed(validate):
    """validate(model), noting also the seconds of training since its last call ended: by the clock, and of the CPU."""
    before = [time.monotonic(), time.process_time()]

    def noting(model):
        wall, cpu = time.monotonic() - before[0], time.process_time() - before[1]
        row = {**validate(model), "wall_seconds": wall, "cpu_seconds": cpu}
        before[:] = time.monotonic(), time.process_time()
        return row

    return noting


def minutes(log):
    """{"wall", "cpu"}: minutes of a whole run's training, from the median stretch between two rows of its log."""
    updates = [b["update"] - a["update"] for a, b in zip([{"update": 0}, *log], log)]
    return {name: round(log[-1]["update"] * median(row[f"{name}_seconds"] / n for row, n in zip(log, updates)) / 60, 2)
            for name in ("wall", "cpu")}


@dataclass
class Material:
    """A corpus ready for training; pairs is {split: [(source, target), ...]}, encoded holds train and validation."""

    corpus: str
    pairs: dict
    tokenizer: Tokenizer
    encoded: dict

    @classmethod
    def of(cls, corpus, pairs, vocab_size):
        """The vocabulary is learned from the training split."""
        tokenizer = Tokenizer.train((text for pair in pairs["train"] for text in pair), vocab_size)
        encoded = {split: encode_pairs(tokenizer, pairs[split]) for split in ("train", "validation")}
        return cls(corpus, pairs, tokenizer, encoded)

    def flops_per_token(self, c):
        """Training FLOPs of a model of configuration c, a target token, padding not counted."""
        source, target = lengths_of(self.encoded["train"], range(len(self.encoded["train"])))
        return float(training_flops(c, source.astype(float), target - 1.0).sum() / (target - 1).sum())


def finished(path):
    """What an earlier process left in a JSON file; None where it left nothing."""
    return json.loads(path.read_text(encoding="utf8")) if path.is_file() else None


def run_name(family, rate, seed, updates):
    """The name of a run's folder, such as rnn-0.0025-1-3000."""
    return f"{family}-{rate:g}-{seed}-{updates}"


def run(family, c, training, rate, material, root):
    """Train one model to the end, or take what is there; returns its folder and the content of its run.json.

    rate: the peak of the schedule. The averaged weights are left in model.safetensors.
    """
    folder = root / run_name(family, rate, training.seed, training.updates)
    if done := finished(folder / "run.json"):
        return folder, done
    training = replace(training, factor=rate / peak_rate(c.d_model, training.warmup),
                       save_every=max(1, training.updates // STRETCHES))
    torch.manual_seed(training.seed)
    model, few = build_fast(c), material.encoded["validation"][:200]
    print(f"{folder.name}: {training.updates:,} updates", flush=True)
    log = train(model, material.encoded["train"], training, folder, timed(lambda model: validation_loss(model, few)),
                resume=(folder / "checkpoint.safetensors").is_file(), quiet=True)
    average_last(model, folder, training.keep)
    sources, references = zip(*material.pairs["validation"])
    score = bleu(translate(model, material.tokenizer, sources, beam=1), references)
    result = {
        "family": family, "rate": rate, "seed": training.seed, "updates": training.updates, "tokens": log[-1]["tokens"],
        "epochs": log[-1]["epoch"], "flops": float(f"{log[-1]['tokens'] * material.flops_per_token(c):.4g}"),
        "minutes": minutes(log), "commit": git_commit(),
        "hardware": hardware_in_words(torch.device("cpu"), training.precision),
        "validation": {"bleu": round(score.score, 2), "signature": score.signature, "beam": 1},
        "model": asdict(c), "training": asdict(training), "log": thin(log)}
    save_weights(dict(model.named_parameters()), folder / "model.safetensors")
    write_json(folder / "run.json", result)
    shutil.rmtree(folder / "weights")
    (folder / "checkpoint.safetensors").unlink()
    print(f"{folder.name}: validation BLEU {score.score:.2f}, {result['minutes']['cpu']} minutes of CPU", flush=True)
    return folder, result


# BLEU by length

def length_buckets(lengths, count=BUCKETS):
    """Ranges [(first, last), ...] of lengths, none split, that hold about equally many sentences; at most `count`."""
    ordered = sorted(lengths)
    bounds = sorted({ordered[max(1, len(ordered) * i // count) - 1] for i in range(1, count + 1)})
    return list(zip([ordered[0], *(last + 1 for last in bounds)], bounds))


def by_length(sources, outputs, references):
    """BLEU of each `length_buckets` of sources, counted in words."""
    lengths, rows = [len(source.split()) for source in sources], []
    for first, last in length_buckets(lengths):
        chosen = [i for i, n in enumerate(lengths) if first <= n <= last]
        score = bleu([outputs[i] for i in chosen], [references[i] for i in chosen])
        rows.append({"from": first, "to": last, "sentences": len(chosen), "bleu": round(score.score, 2)})
    return rows


def score(folder, c, material, beam=4):
    """Translate the test splits with a run's averaged weights and score them, once; returns what test.json holds."""
    if done := finished(folder / "test.json"):
        return done
    model, result = build_fast(c), {}
    load_parameters(model, load_weights(folder / "model.safetensors")[0], folder)
    for split in SCORED[material.corpus]:
        sources, references = zip(*material.pairs[split])
        outputs = translate(model, material.tokenizer, sources, beam=beam)
        result[split] = {"sentences": len(sources), "beam": beam, "alpha": 0.6,
                         "scores": score_report(outputs, references, corpus=material.corpus),
                         "lengths": by_length(sources, outputs, references)}
        print(f"{folder.name}: {split} BLEU {result[split]['scores']['bleu']['score']}", flush=True)
    write_json(folder / "test.json", result)
    return result


# One family, and all

def choose_rate(family, c, comparison, seed, material, root):
    """{peak: validation BLEU} of the shorter runs, as far as `next_rate` asks for them."""
    tried, training = {}, replace(comparison.training, updates=comparison.choice, seed=seed)
    while (rate := next_rate(tried, comparison.rates, comparison.most)) is not None:
        tried[rate] = run(family, c, training, rate, material, root)[1]["validation"]["bleu"]
    return tried


def measure(family, c, comparison, seeds, material, root):
    """Choose the rate, train and score every seed; leaves the family's part of the result in root/<family>.json."""
    tried = choose_rate(family, c, comparison, seeds[0], material, root)
    rate, runs, reports = best_rate(tried), {}, {}
    for seed in seeds:
        folder, runs[seed] = run(family, c, replace(comparison.training, seed=seed), rate, material, root)
        reports[seed] = score(folder, c, material)
    write_json(root / f"{family}.json", {"seeds": seeds, **summary(c, tried, runs, reports)})


def spread_of(scores):
    """{"mean", "deviation"} of one BLEU a seed; no deviation of a single one."""
    return {"mean": round(mean(scores), 2), "deviation": round(stdev(scores), 2) if len(scores) > 1 else None}


def of_split(reports):
    """A split's scores over seeds, from {seed: its part of test.json}."""
    lengths = [{"from": rows[0]["from"], "to": rows[0]["to"], "sentences": rows[0]["sentences"],
                **spread_of([row["bleu"] for row in rows])}
               for rows in zip(*(report["lengths"] for report in reports.values()))]
    return {"bleu": spread_of([report["scores"]["bleu"]["score"] for report in reports.values()]), "lengths": lengths,
            "seeds": {seed: report["scores"] for seed, report in reports.items()}}


def summary(c, tried, runs, reports):
    """What is kept of a family: {peak: validation BLEU}, {seed: content of run.json}, {seed: content of test.json}."""
    first, some, total = next(iter(runs.values())), list(runs.values()), parameters_of(c)
    return {
        "model": asdict(c), "parameters": total, "parameters_without_embeddings": total - c.vocab_size * c.d_model,
        "choice": {f"{rate:g}": bleu for rate, bleu in sorted(tried.items())}, "rate": best_rate(tried),
        "factor": float(f"{first['training']['factor']:.4g}"), "tokens": round(mean(r["tokens"] for r in some)),
        "epochs": first["epochs"], "flops": mean(r["flops"] for r in some),
        "minutes": {name: round(mean(r["minutes"][name] for r in some), 2) for name in ("wall", "cpu")},
        "validation": spread_of([r["validation"]["bleu"] for r in some]),
        **{split: of_split({seed: report[split] for seed, report in reports.items()})
           for split in reports[first["seed"]]},
        "commits": sorted({str(r["commit"]) for r in some}), "hardware": sorted({r["hardware"] for r in some}),
        "log": first["log"]}


def assemble(comparison, corpus, seeds, root, path):
    """Write the result file if every family has these seeds; otherwise say which are missing, and return them."""
    parts = {family: finished(root / f"{family}.json") for family in comparison.models}
    missing = [family for family, part in parts.items() if part is None or part["seeds"] != seeds]
    if missing:
        print(f"no result file yet: {', '.join(missing)} still to come")
        return missing
    training, seed_words = asdict(comparison.training), " ".join(map(str, seeds))
    for name in ("seed", "factor", "save_every"):  # not the same in all runs
        del training[name]
    for part in parts.values():
        del part["seeds"]
    write_json(path, {
        "command": f"python tools/families.py --corpus {corpus} --seeds {seed_words}", "commit": git_commit(),
        "hardware": hardware_in_words(torch.device("cpu"), training["precision"]), "corpus": corpus, "seed": seeds,
        "training": training,
        "choice": {"updates": comparison.choice, "seed": seeds[0], "split": "validation", "score": "bleu", "beam": 1},
        "timing": "training alone, one thread; median stretch times number of stretches. The Transformer's attention "
                  "is torch's fused kernel, the GRU torch's compiled layer, additive attention plain operations",
        "families": parts})
    print(f"written: {path}")
    return []


def compare(comparison, material, only, seeds, root, path):
    """Measure some families of a comparison, and assemble what is there."""
    models = sized(comparison.models, material.tokenizer)
    for family in only:
        measure(family, models[family], comparison, seeds, material, root)
    return assemble(comparison, material.corpus, seeds, root, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", choices=COMPARISONS, default="bundled")
    parser.add_argument("--only", nargs="+", choices=COMPARISONS["bundled"].models, help="families (all if not given)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="the first chooses the rate, too")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    comparison, name = COMPARISONS[arguments.corpus], f"families-{arguments.corpus}"
    try:
        splits = ("train", "validation", *SCORED[arguments.corpus])
        pairs = {split: list(stream_corpus(arguments.corpus, split)) for split in splits}
        vocab_size = comparison.models["transformer"].vocab_size
        compare(comparison, Material.of(arguments.corpus, pairs, vocab_size), arguments.only or list(comparison.models),
                arguments.seeds, ROOT / "runs" / name, ROOT / "data" / "runs" / f"{name}.json")
    except (Interrupted, OSError, ValueError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
