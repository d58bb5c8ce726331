"""The command line: transformer train | evaluate | translate | attend | variations | bench | export | demo."""

import dataclasses
import json
import os
import shlex
import sys
import time
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Literal

import torch
import tyro

from transformer.bench import Bench, run_bench
from transformer.corpora import TREEBANKS, languages_of
from transformer.checks import check_search
from transformer.experiments.records import flatten, write_rows
from transformer.experiments.rows import public, record
from transformer.export import export_ctranslate2, type_names
from transformer.files import prepare_folder, write_file, write_json
from transformer.model import TransformerConfig
from transformer.pretrained import load
from transformer.recipes import RECIPES, recipe, search_of
from transformer.runs import (
    Experiment,
    Task,
    average_last,
    last_update,
    load_run,
    read_log,
    read_settings,
    run_experiment,
)
from transformer.training import TrainingConfig
from transformer.interrupt import Interrupted
from transformer.translation import evaluate, translate_all


def convert(config, kind):
    """The same fields as a dataclass of another kind."""
    return kind(**dataclasses.asdict(config))


class ModelOptions(TransformerConfig):
    """The sizes of the Transformer, with the paper's names."""

    def __post_init__(self):
        """Nothing yet: `parse` checks, so that a mistake is told like every other."""


class TrainingOptions(TrainingConfig):
    """How to train."""

    def __post_init__(self):
        """Nothing yet: `parse` checks."""


@dataclass
class Train(Experiment):
    """Train a model on sentence pairs and save it in a folder.

    Without further options the recipe that suits the corpus is used; every option shown here replaces one
    setting of it. Ctrl-C saves; --resume goes on from there. Several GPUs: torchrun -m transformer train ...
    """

    preset: str | None = None
    """model size: tiny, small, base or big"""
    model: tyro.conf.OmitArgPrefixes[ModelOptions] = field(
        default_factory=lambda: convert(RECIPES["bundled"]["model"], ModelOptions))
    training: tyro.conf.OmitArgPrefixes[TrainingOptions] = field(
        default_factory=lambda: convert(RECIPES["bundled"]["training"], TrainingOptions))


@dataclass
class Evaluate:
    """Translate or parse a test set with beam search, print all scores with signatures, save them beside your model."""

    folder: Path | None = None
    """a trained model's folder (the bundled model where not given)"""
    corpus: str | None = None
    """bundled, multi30k, newstest2014, treebank_craft, ... (the one the model was trained on where not given)"""
    split: str = "test"
    """test, validation, or others that the corpus has"""
    source_file: Path | None = None
    """your own sentences, one a line, instead of a corpus"""
    target_file: Path | None = None
    """their translations, line by line"""
    reverse: bool = False
    """translate German to English (not needed where the model was trained so)"""
    language: str | None = None
    """code of the language translated into, for Moses' rules (the corpus's where not given)"""
    beam: int | None = None
    """hypotheses kept alive; 1 is greedy (where not given what suits the corpus: the paper's 4, for trees 21)"""
    alpha: float | None = None
    """length penalty (where not given what suits the corpus: the paper's 0.6, for multi30k 1.6, for trees 0.3)"""
    average: int | None = None
    """score the average of the last so many weights that the run kept, instead of the model that it left"""
    record: Path | None = None
    """write the run's settings, log and all its scores into this file, for data/runs"""
    device: str = "auto"
    """cpu, cuda or mps; auto takes the fastest there is"""


@dataclass
class Translate:
    """Translate a sentence given as an argument, or standard input line by line."""

    sentence: tyro.conf.Positional[str | None] = None
    """the sentence, in quotes; without it, lines are read from standard input"""
    folder: Path | None = None
    """a trained model's folder (the bundled model where not given)"""
    beam: int | None = None
    """hypotheses kept alive; 1 is greedy (where not given what suits its corpus: the paper's 4, for trees 21)"""
    alpha: float | None = None
    """length penalty (where not given what suits that corpus: the paper's 0.6, for multi30k 1.6, for trees 0.3)"""
    n_best: int = 1
    """with more than 1: so many translations of each sentence, as lines of number, score and text"""
    device: str = "auto"
    """cpu, cuda or mps; auto takes the fastest there is"""


@dataclass
class Attend:
    """Translate a sentence and draw where every head looks, as PNG pictures or as a page to explore."""

    sentence: tyro.conf.Positional[str]
    """the sentence, in quotes"""
    folder: Path | None = None
    """a trained model's folder (the bundled model where not given)"""
    output: Path = Path("attention")
    """folder for the pictures"""
    html: Path | None = None
    """write one self-contained page of this name, for a browser, instead of pictures"""


@dataclass
class Demo:
    """Train on the bundled corpus for a few minutes, then translate, score and draw."""

    folder: Path = Path("runs/demo")
    """where everything is saved"""
    minutes: float = 3.6
    """training stops after so many minutes, should the machine be slow"""
    record: Path | None = None
    """write what demo.json holds into this file, too, for data/runs"""


@dataclass
class Variations:
    """Train every row of Table 3 in small, one change at a time, and compare.

    Finished runs are skipped and interrupted ones go on, so the same command may be given as often as needed.
    """

    corpus: str = "multi30k"
    """multi30k, bundled, ...; on wmt14 the paper's own sizes"""
    rows: tuple[str, ...] = ()
    """groups (A B C D E big schedule data length depth simple) or single rows such as h=1 (Table 3 where not given)"""
    seeds: tuple[int, ...] = (1, 2, 3)
    """each row is trained once with each seed"""
    folder: Path = Path("runs/variations")
    """where the runs are kept"""
    workers: int | None = None
    """runs at the same time, each a process (one for each GPU where not given; on a CPU one, each with one thread)"""
    device: str = "auto"
    """cpu, cuda or mps; auto takes the fastest there is"""
    precision: Literal["auto", "fp32", "bf16", "fp16", "medium"] = "auto"
    """as in train"""
    large: bool = False
    """a larger base, for a GPU"""
    record: Path | None = None
    """the file of results, for data/runs (results.json in the folder where not given); runs that it holds are not trained again"""


@dataclass
class Speed(Bench):
    """Time this package beside torch.nn.Transformer, Marian and CTranslate2: same work, taking turns, medians."""

    parts: tyro.conf.Positional[tuple[str, ...]] = ()
    """T1 T2 small T3 T4 levers learning memory attention products, on a GPU also base and big (notebook 20); or all"""

    def __post_init__(self):
        """Nothing yet: `parse` checks."""


@dataclass
class Export:
    """Write a trained model for CTranslate2, which serves it on CPUs and GPUs without torch."""

    folder: Path | None = None
    """a trained model's folder (the bundled model where not given)"""
    output: Path = Path("exported")
    """the new folder: CTranslate2's model, and the tokenizer"""


COMMANDS = {"train": Train, "evaluate": Evaluate, "translate": Translate, "attend": Attend,
            "variations": Variations, "bench": Speed, "export": Export, "demo": Demo}


# Reading the command line

def peek(arguments, name, default=None):
    """The value of --name among the arguments, before they are parsed."""
    for i, argument in enumerate(arguments):
        if argument == f"--{name}" and i + 1 < len(arguments):
            return arguments[i + 1]
        if argument.startswith(f"--{name}="):
            return argument.split("=", 1)[1]
    return default


def defaults_of_train(arguments):
    """What `train` uses where no option says otherwise: the resumed run's settings, or its corpus's recipe."""
    files = peek(arguments, "source-file") or peek(arguments, "target-file")
    corpus, preset = peek(arguments, "corpus", "bundled"), peek(arguments, "preset")
    folder = Path(peek(arguments, "folder", f"runs/{'files' if files else corpus}"))
    if "--resume" in arguments:
        settings = vars(load_run(folder))
        if preset is not None:
            settings["model"] = TransformerConfig.preset(preset, vocab_size=settings["model"].vocab_size)
    else:
        settings = dict(corpus=corpus, folder=folder, **recipe("files" if files else corpus, preset))
    return Train(**{**settings, "model": convert(settings["model"], ModelOptions),
                    "training": convert(settings["training"], TrainingOptions)})


def parse(arguments):
    """The command's dataclass, filled from the arguments and checked."""
    defaults = {"train": defaults_of_train(arguments[1:])} if arguments[:1] == ["train"] else {}
    commands = {name: Annotated[kind, tyro.conf.subcommand(name, default=defaults[name])] if name in defaults
                else Annotated[kind, tyro.conf.subcommand(name)] for name, kind in COMMANDS.items()}
    command = tyro.cli(reduce(or_, commands.values()), prog="transformer", description=__doc__, args=arguments)
    if isinstance(command, Speed):
        return convert(command, Bench)
    if isinstance(command, Train):
        command.model = convert(command.model, TransformerConfig)
        command.training = convert(command.training, TrainingConfig)
    return command


# The commands

def words():
    """The command as it was typed."""
    return "transformer " + shlex.join(sys.argv[1:])


def train_command(command, count=200):
    """`transformer train`: see `run_experiment`."""
    task = Task()
    if command.corpus in TREEBANKS and command.source_file is None:
        from transformer.parsers import PARSING as task
    if run_experiment(command, words(), count, task=task):
        folder = shlex.quote(str(command.folder))
        print(f"done: {command.folder} holds the model. Next: transformer evaluate --folder {folder}")


def evaluate_command(command):
    """`transformer evaluate`: beam search over a split, all scores, scores.<split>.json, and what --record asks for."""
    from transformer.hardware import choose_device

    name = complete(command)
    model, tokenizer = load(command.folder, choose_device(command.device))
    if command.folder is not None:
        prepare_folder(command.folder)
    elif command.average is not None or command.record is not None:
        raise ValueError("--average and --record need the --folder of a run")
    if command.average is not None:
        kept = len(list(command.folder.glob("weights/*.safetensors")))
        if not 1 <= command.average <= kept:
            raise ValueError(f"--average {command.average}: the run in {command.folder} has kept {kept} weights")
        average_last(model, command.folder, command.average, last_update(load_run(command.folder)))
        name += f".average-{command.average}"
    started, pairs = time.monotonic(), pairs_to_score(command)
    corpus = command.corpus or command.source_file.name
    if corpus in TREEBANKS:
        from transformer.parsers import evaluate_parser

        report = evaluate_parser(model, tokenizer, pairs, command.beam, command.alpha, name)
    else:
        report = {"language": command.language,
                  **evaluate(model, tokenizer, pairs, command.beam, command.alpha, command.language, corpus, name)}
    result = {"corpus": corpus, "split": name, **report, "seconds": round(time.monotonic() - started, 1)}
    print(json.dumps(result, indent=2))
    if command.folder is not None:
        write_json(command.folder / f"scores.{name}.json", result)
    if command.record is not None:
        write_rows(command.record, [{"name": command.record.stem, **record(command.folder)}])


def complete(command):
    """Fill in what `evaluate` was not told, from the run in its folder; returns the name for its scores.

    Raises ValueError where the run was trained on files and none are named.
    """
    run = command.folder and (command.folder / "run.json").is_file() and load_run(command.folder)
    run = run or Experiment()
    reverse = command.reverse or run.reverse
    corpus = command.corpus or run.corpus
    command.language = command.language or languages_of(corpus, reverse)[1]
    choose_search(command, corpus)
    usual = (command.beam, command.alpha) == search_of(corpus)
    suffix = "" if usual else f".beam-{command.beam}-alpha-{command.alpha:g}"  # a trial leaves the run's scores alone
    if command.source_file is not None:
        return f"files.{command.source_file.stem}{suffix}"
    command.reverse = reverse
    if command.corpus is None and run.source_file:
        raise ValueError(f"the model in {command.folder} was trained on your own files: name those to score it on with "
                         "--source-file and --target-file")
    command.corpus = corpus
    return (command.split if corpus == run.corpus else f"{corpus}.{command.split}") + suffix


def choose_search(command, corpus, n_best=1):
    """Fill in a beam and an alpha that were not given, as suits a corpus; ValueError for what no search can do."""
    beam, alpha = search_of(corpus)
    command.beam = beam if command.beam is None else command.beam
    command.alpha = alpha if command.alpha is None else command.alpha
    check_search(command.beam, command.alpha, n_best)


def pairs_to_score(command):
    """The sentence pairs that `evaluate` is asked for."""
    from transformer.corpora import read_corpus, read_parallel
    from transformer.runs import files_of

    files = files_of(command, command.split)
    return read_corpus(command.corpus, command.split, command.reverse) if command.source_file is None else \
        read_parallel(*files)


def translate_command(command):
    """`transformer translate`: one sentence, or standard input."""
    from transformer.search import translate, translate_n_best
    from transformer.hardware import choose_device

    run = command.folder and (command.folder / "run.json").is_file() and load_run(command.folder)
    choose_search(command, run.corpus if run else None, command.n_best)
    model, tokenizer = load(command.folder, choose_device(command.device))
    lines = [command.sentence] if command.sentence is not None else read_standard_input()
    settings = model, tokenizer, lines
    if not lines:
        return
    if command.n_best > 1:
        lists = translate_n_best(*settings, command.n_best, command.beam, command.alpha)
        texts = [f"{number}\t{entry.score:.4f}\t{' '.join(entry.text.split())}"
                 for number, some in enumerate(lists, 1) for entry in some]
    else:  # a bad model may write line ends; here one line in is one line out
        texts = [" ".join(line.splitlines()) for line in translate(*settings, command.beam, command.alpha)]
    for text in texts:
        print(text)


def read_standard_input():
    """Lines of standard input; ValueError, with the line's number, where one is not UTF-8."""
    lines = sys.stdin.buffer.read().split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            lines[number - 1] = line.decode("utf8").removesuffix("\r")
        except UnicodeDecodeError:
            raise ValueError(f"standard input, line {number}, is not UTF-8: convert it, for example with "
                             "iconv -f latin1 -t utf8") from None
    return lines[:-1] if lines[-1] == "" else lines


def attend_command(command):
    """`transformer attend`: pictures of every head for one sentence, or a page."""
    from transformer.search import translate

    if command.html is None:
        prepare_folder(command.output, "--output")
    else:
        prepare_folder(command.html.parent, "--html")
    model, tokenizer = load(command.folder)
    translation = translate(model, tokenizer, [command.sentence])[0]
    print(translation)
    if command.html is not None:
        from transformer.pages import view

        view(model, tokenizer, (command.sentence, translation)).save(command.html)
        print(command.html)
        return
    for path in draw_heads(model, tokenizer, command.sentence, translation, command.output):
        print(path)


def draw_heads(model, tokenizer, source, target, folder):
    """One picture a kind of attention, every layer and head in it; returns the paths."""
    from transformer.figures.heads import save_all
    from transformer.maps import attention_maps

    return save_all(attention_maps(model, tokenizer, [(source, target)])[0], folder)


def variations_command(command):
    """`transformer variations`: see `run_variations`."""
    from transformer.experiments.runner import devices_for
    from transformer.experiments.table3 import base_of, choose, run_variations

    base, rows = base_of(command.corpus, command.large, command.precision), choose(command.rows)
    if not command.seeds:
        raise ValueError("--seeds needs at least one number")
    devices = devices_for(command.device, command.workers)
    run_variations(base, rows, command.seeds, command.folder, devices, words(), command.record)


def demo_command(command):
    """`transformer demo`: train, translate, score and draw on the bundled corpus."""
    from transformer.corpora import read_bundled
    from transformer.scores import bleu, exact_match
    from transformer.visualization import score_attention

    started = time.monotonic()
    recipe = RECIPES["bundled"]
    training = dataclasses.replace(recipe["training"], minutes=command.minutes)  # refused before anything is removed
    prepare_folder(command.folder)
    clear_demo(command.folder)
    print("A Transformer learns to translate English to German from the bundled corpus.")
    train_command(Train(folder=command.folder, model=recipe["model"], training=training), count=30)
    model, tokenizer = load(command.folder)
    run, last = read_settings(command.folder), read_log(command.folder)[-1]
    report = {"command": public(run["command"]), "commit": run["commit"], "hardware": run["hardware"],
              "seed": run["training"]["seed"], "updates": last["update"], "tokens": last["tokens"],
              "minutes_of_training": round(last["seconds"] / 60, 2)}
    for split in ("test", "hard"):
        examples = read_bundled(split)
        references = [e.target for e in examples]
        outputs = translate_all(model, tokenizer, [e.source for e in examples], 4, 0.6, split)
        score = bleu(outputs, references)
        report[split] = {"bleu": score.score, "signature": score.signature,
                         "exact_match": exact_match(outputs, references)}
        if split == "test":
            samples = list(zip(examples, outputs))[::max(1, len(examples) // 6)]
    report.update(score_attention(model, tokenizer, read_bundled("validation"), read_bundled("test")))
    picture = next(e for e in read_bundled("test") if e.pronouns)
    draw_heads(model, tokenizer, picture.source, picture.target, command.folder)
    report["seconds"] = time.monotonic() - started
    write_json(command.folder / "demo.json", report)
    if command.record is not None:
        write_rows(command.record, [flatten({"corpus": "bundled", **report})])
    print(demo_text(report, samples, command.folder))


def clear_demo(folder):
    """Remove an earlier demo's run; ValueError, and nothing removed, where the folder holds something else."""
    old = [path for name in ("checkpoint.safetensors", "model.safetensors", "weights/*.safetensors")
           for path in folder.glob(name)]
    run = folder / "run.json"
    if old and not (run.is_file() and '"transformer demo' in run.read_text(encoding="utf8", errors="replace")):
        raise ValueError(f"{folder} holds a run or a model that is not an earlier demo's: name another --folder")
    for path in old:
        path.unlink()


def demo_text(report, samples, folder):
    """The demo's closing page."""
    alignment, pronoun = report["alignment"], report["pronoun"]
    rows = ["", "Held-out sentences, translated:"]
    for example, output in samples:
        wrong = "" if output == example.target else f"      (should be: {example.target})"
        rows += [f"  {example.source}", f"    {output}{wrong}"]
    for split, name in (("test", "test set"), ("hard", "harder test set")):
        part = report[split]
        rows.append(f"{name}: BLEU {part['bleu']:.1f}, exact match {part['exact_match']:.1%}   [{part['signature']}]")
    rows += [f"word alignment: error {alignment['error']:.3f} on test (cross-attention, layer {alignment['layer']}, "
             f"head {alignment['head']}, chosen on validation); the diagonal has {alignment['diagonal']:.3f}",
             f"\"its\" to its antecedent: accuracy {pronoun['accuracy']:.3f} on {pronoun['count']} of test "
             f"({pronoun['attention']}, layer {pronoun['layer']}, head {pronoun['head']}, chosen on validation); "
             f"first noun {pronoun['first noun']:.3f}, nearest noun {pronoun['nearest noun']:.3f}, "
             f"chance {pronoun['chance']:.3f}",
             f"pictures and figures: {folder}  ({report['seconds']:.0f} s in all)"]
    return "\n".join(rows)


def bench_command(command):
    """`transformer bench`: see `run_bench`."""
    run_bench(command, words())


def export_command(command):
    """`transformer export`: a folder for CTranslate2, with the tokenizer."""
    model, tokenizer = load(command.folder)
    export_ctranslate2(model, type_names(tokenizer), command.output)
    write_file(command.output / "tokenizer.json", tokenizer.save)
    print(f"{command.output} holds the model for CTranslate2; notebook 20 shows how it is used (`translate_there`)")


def main():
    """Run a command; a mistake in the input gives one sentence on standard error and exit status 2."""
    command = None
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf8")  # so that a file of translations can be read again, on Windows, too
    try:
        command = parse(sys.argv[1:])
        run = {Train: train_command, Evaluate: evaluate_command, Translate: translate_command,
               Attend: attend_command, Variations: variations_command, Bench: bench_command, Export: export_command,
               Demo: demo_command}[type(command)]
        run(command)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:  # the system's own have a reason and mostly a file; ours are sentences
        sys.exit(fail(f"{error.filename or 'a file'} cannot be used ({error.strerror}): see what is there, "
                      "then run the command again" if error.strerror else str(error)))
    except (Interrupted, ModuleNotFoundError, ValueError) as error:
        sys.exit(fail(str(error)))
    except torch.cuda.OutOfMemoryError:
        sys.exit(fail("the GPU's memory is too small for this: half of --batch-tokens and twice --accumulate keep the "
                      "updates as large"))
    except KeyboardInterrupt:
        sys.exit(fail("stopped by Ctrl-C; nothing that was saved is lost"))


def fail(sentence):
    """Print one sentence, on one line, to standard error; return the exit status for it, 2."""
    print(f"transformer: {' '.join(sentence.splitlines())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
