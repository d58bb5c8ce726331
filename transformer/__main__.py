"""The command line: transformer train | evaluate | translate | attend | demo."""

import dataclasses
import json
import os
import shlex
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from transformer.model import TransformerConfig, write_file
from transformer.training import Interrupted, TrainingConfig

RECIPES = {
    "bundled": dict(
        model=TransformerConfig.preset("tiny", vocab_size=3500, P_drop=0.0),
        training=TrainingConfig(updates=5900, batch_tokens=400, warmup=300, factor=0.5, save_every=200, keep=6)),
    "multi30k": dict(
        model=TransformerConfig(vocab_size=6000, N=4, d_model=128, d_ff=256, h=4, P_drop=0.3),
        training=TrainingConfig(updates=8000, batch_tokens=4096, warmup=2000, factor=2.5, save_every=200, keep=10)),
    "files": dict(
        model=TransformerConfig.preset("small", vocab_size=8000),
        training=TrainingConfig(updates=20_000, batch_tokens=4096, warmup=2000, save_every=500)),
}


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
class Train:
    """Train a model on sentence pairs and save it in a folder.

    Without further options the recipe that suits the corpus is used; every option shown here replaces one
    setting of it. Ctrl-C saves; --resume goes on from there.
    """

    corpus: str = "bundled"
    """bundled (comes with the package) or multi30k (downloaded)"""
    source_file: Path | None = None
    """your own sentences, one a line, UTF-8, instead of a corpus"""
    target_file: Path | None = None
    """their translations, line by line"""
    folder: Path | None = None
    """where the run is kept (runs/<corpus> where not given)"""
    preset: str | None = None
    """model size: tiny, small, base or big"""
    resume: bool = False
    """go on with the run in the folder, with its own settings"""
    device: str = "auto"
    """cpu, cuda or mps; auto takes the fastest there is"""
    compile: bool = False
    """let torch.compile write kernels for the model first (a minute; pays on GPUs)"""
    model: tyro.conf.OmitArgPrefixes[ModelOptions] = field(
        default_factory=lambda: convert(RECIPES["bundled"]["model"], ModelOptions))
    training: tyro.conf.OmitArgPrefixes[TrainingOptions] = field(
        default_factory=lambda: convert(RECIPES["bundled"]["training"], TrainingOptions))


@dataclass
class Evaluate:
    """Translate a test set with beam search and print BLEU with its signature; saves the scores beside your model."""

    folder: Path | None = None
    """a trained model's folder (the bundled model where not given)"""
    corpus: str | None = None
    """bundled or multi30k (the one the model was trained on where not given)"""
    split: str = "test"
    """test, validation, or for the bundled corpus hard"""
    source_file: Path | None = None
    """your own sentences, one a line, instead of a corpus"""
    target_file: Path | None = None
    """their translations, line by line"""
    beam: int = 4
    """hypotheses kept alive; 1 is greedy"""
    alpha: float = 0.6
    """length penalty"""
    device: str = "auto"
    """cpu, cuda or mps; auto takes the fastest there is"""


@dataclass
class Translate:
    """Translate a sentence given as an argument, or standard input line by line."""

    sentence: tyro.conf.Positional[str | None] = None
    """the sentence, in quotes; without it, lines are read from standard input"""
    folder: Path | None = None
    """a trained model's folder (the bundled model where not given)"""
    beam: int = 4
    """hypotheses kept alive; 1 is greedy"""
    alpha: float = 0.6
    """length penalty"""
    device: str = "auto"
    """cpu, cuda or mps; auto takes the fastest there is"""


@dataclass
class Attend:
    """Translate a sentence and draw where every head looks, as PNG pictures."""

    sentence: tyro.conf.Positional[str]
    """the sentence, in quotes"""
    folder: Path | None = None
    """a trained model's folder (the bundled model where not given)"""
    output: Path = Path("attention")
    """folder for the pictures"""


@dataclass
class Demo:
    """Train on the bundled corpus for a few minutes, then translate, score and draw."""

    folder: Path = Path("runs/demo")
    """where everything is saved"""
    minutes: float = 3.6
    """training stops after so many minutes, should the machine be slow"""


COMMANDS = {"train": Train, "evaluate": Evaluate, "translate": Translate, "attend": Attend, "demo": Demo}


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
    corpus = peek(arguments, "corpus", "bundled")
    folder = Path(peek(arguments, "folder", f"runs/{'files' if files else corpus}"))
    if "--resume" in arguments:
        command = load_run(folder)
    else:
        recipe = RECIPES["files" if files else corpus if corpus in RECIPES else "bundled"]
        command = Train(corpus=corpus, folder=folder, **recipe)
    preset = peek(arguments, "preset")
    if preset is not None:
        command.model = TransformerConfig.preset(preset, vocab_size=command.model.vocab_size)
    command.model = convert(command.model, ModelOptions)
    command.training = convert(command.training, TrainingOptions)
    return command


def load_run(folder):
    """The settings of the run in a folder, ready to resume; OSError or ValueError where there are none."""
    path = folder / "run.json"
    if not path.is_file():
        raise FileNotFoundError(f"no run to resume in {folder}: name its folder with --folder")
    try:
        saved = json.loads(path.read_text(encoding="utf8"))
        files = {name: saved[name] and Path(saved[name]) for name in ("source_file", "target_file")}
        return Train(corpus=saved["corpus"], **files, folder=folder, resume=True,
                     model=TransformerConfig(**saved["model"]), training=TrainingConfig(**saved["training"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} does not hold the settings of a run ({error}): copy it again, "
                         "or train anew in another --folder") from None


def parse(arguments):
    """The command's dataclass, filled from the arguments and checked."""
    defaults = {"train": defaults_of_train(arguments[1:])} if arguments[:1] == ["train"] else {}
    commands = {name: Annotated[kind, tyro.conf.subcommand(name, default=defaults[name])] if name in defaults
                else Annotated[kind, tyro.conf.subcommand(name)] for name, kind in COMMANDS.items()}
    union = commands["train"] | commands["evaluate"] | commands["translate"] | commands["attend"] | commands["demo"]
    command = tyro.cli(union, prog="transformer", description=__doc__, args=arguments)
    if getattr(command, "beam", 1) < 1:
        raise ValueError(f"beam must be at least 1, not {command.beam}")
    if isinstance(command, Train):
        command.model = convert(command.model, TransformerConfig)
        command.training = convert(command.training, TrainingConfig)
    return command


# What the commands share

def prepare_folder(folder, option="--folder"):
    """Make a folder and see that it can be written; OSError in one sentence otherwise."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OSError(f"cannot write to the folder {folder} ({error.strerror}): name another with {option}") from None


def write_json(path, content):
    """Write content as indented JSON, through a temporary name."""
    write_file(path, lambda temporary: temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf8"))


def bundled_folder():
    """The folder of the model that comes with the package."""
    from transformer.data import data_folder

    return data_folder() / "models" / "bundled"


def load(folder, device="cpu"):
    """A trained model and its tokenizer."""
    from transformer.model import Transformer

    folder = folder or bundled_folder()
    model = Transformer.from_pretrained(folder)
    return model.to(device), load_tokenizer(folder, model.config)


def load_tokenizer(folder, config):
    """The tokenizer in a model's folder; ValueError where it is another model's."""
    from transformer.data import Tokenizer

    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    if tokenizer.vocab_size != config.vocab_size:
        raise ValueError(f"{folder / 'tokenizer.json'} has {tokenizer.vocab_size} types and the model "
                         f"{config.vocab_size}: use the tokenizer that was saved with this model")
    return tokenizer


def pairs_of(command, split):
    """Sentence pairs of a command's own files, or of a split of its corpus."""
    from transformer.data import read_corpus, read_parallel

    if (command.source_file is None) != (command.target_file is None):
        raise ValueError("--source-file and --target-file go together: give both, or a --corpus")
    if command.source_file is not None:
        return read_parallel(command.source_file, command.target_file)
    return read_corpus(command.corpus, split)


def translate_all(model, tokenizer, sentences, beam, alpha, what):
    """Translations of many sentences, with a progress bar."""
    from tqdm.auto import tqdm

    from transformer.decoding import translate

    with tqdm(total=len(sentences), desc=what, unit="sentence", mininterval=1.0) as bar:
        return translate(model, tokenizer, sentences, beam, alpha, progress=bar.update)


# The commands

def train_command(command, count=200):
    """`transformer train`: data, vocabulary, training (validated on `count` pairs), average of the last checkpoints."""
    from transformer.hardware import choose_device, processes

    with processes(choose_device(command.device)) as device:
        train_here(command, count, device)


def train_here(command, count, device):
    """`train_command` in one of the processes that torchrun started, or in the only one."""
    import torch

    from transformer.hardware import accelerate, allow_tf32, compile_stacks, process_number
    from transformer.model import Transformer, count_parameters

    first = process_number() == 0
    allow_tf32()
    pairs = pairs_of(command, "train")
    held_out = validation_pairs(command, pairs)
    if first:
        prepare_folder(command.folder)
    tokenizer = resumed_run(command) if command.resume else new_run(command, pairs)
    torch.manual_seed(command.training.seed)
    model = accelerate(Transformer(command.model)).to(device)
    if command.compile:
        compile_stacks(model)
    if first and not command.resume:
        write_file(command.folder / "tokenizer.json", tokenizer.save)
        write_json(command.folder / "run.json", run_settings(command))
    if first:
        print(f"{len(pairs):,} sentence pairs, {tokenizer.vocab_size:,} types, {count_parameters(model):,} parameters, "
              f"in {command.folder}")
    fit(model, tokenizer, pairs, held_out, command, count)
    if first:
        average(model, tokenizer, command)
        print(f"done: {command.folder} holds the model. Next: transformer evaluate --folder {quoted(command.folder)}")


def quoted(folder):
    """A folder's name as one types it in a shell."""
    return shlex.quote(str(folder))


def new_run(command, pairs):
    """Learn the vocabulary and set the model's sizes by it; returns the tokenizer. ValueError for a folder in use."""
    from transformer.data import Tokenizer

    if any((command.folder / name).exists() for name in ("checkpoint.safetensors", "model.safetensors")):
        raise ValueError(f"{command.folder} already holds a run or a model: go on with the run (--resume), "
                         "or name another --folder")
    tokenizer = Tokenizer.train([sentence for pair in pairs for sentence in pair], command.model.vocab_size)
    command.model = dataclasses.replace(command.model, vocab_size=tokenizer.vocab_size, pad_id=tokenizer.pad_id,
                                        bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id)
    return tokenizer


def resumed_run(command):
    """The tokenizer of the run in the folder; ValueError where the command names other data."""
    saved = load_run(command.folder)
    for name in ("corpus", "source_file", "target_file"):
        if getattr(saved, name) != getattr(command, name):
            raise ValueError(f"the run in {command.folder} has {name.replace('_', ' ')} {getattr(saved, name)}, not "
                             f"{getattr(command, name)}: resume it without that option, or name another --folder")
    return load_tokenizer(command.folder, command.model)


def validation_pairs(command, pairs):
    """The corpus's validation split; of own files the last hundredth (at most 1,000 pairs), taken out of pairs."""
    if command.source_file is None:
        return pairs_of(command, "validation")
    count = max(1, min(1000, len(pairs) // 100))
    if len(pairs) < 2:
        raise ValueError(f"{command.source_file} has {len(pairs)} line: training needs at least 2, one of them "
                         "to validate on")
    held_out = pairs[-count:]
    del pairs[-count:]
    return held_out


def run_settings(command):
    """What run.json keeps, so that a run can be resumed and understood."""
    return {"command": "transformer " + " ".join(sys.argv[1:]), "corpus": command.corpus,
            "source_file": command.source_file and str(command.source_file),
            "target_file": command.target_file and str(command.target_file),
            "model": dataclasses.asdict(command.model), "training": dataclasses.asdict(command.training)}


def fit(model, tokenizer, pairs, held_out, command, count):
    """Train, validating on `count` pairs; returns the log."""
    from transformer.data import encode_pairs
    from transformer.decoding import bleu, translate
    from transformer.training import check_pairs, train, validation_loss

    encoded, encoded_held_out = encode_pairs(tokenizer, pairs), encode_pairs(tokenizer, held_out)
    for name, part in (("training", encoded), ("validation", encoded_held_out)):
        try:
            check_pairs(part, model.config.max_positions)
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None
    sources, targets = zip(*held_out[:count])

    def validate(model):
        translations = translate(model, tokenizer, sources, beam=1)
        return {**validation_loss(model, encoded_held_out[:count]), "bleu": bleu(translations, targets).bleu}

    try:
        return train(model, encoded, command.training, command.folder, validate, command.resume)
    except Interrupted as stop:
        raise Interrupted(f"{stop}; go on with: transformer train --resume --folder {quoted(command.folder)}") from None


def average(model, tokenizer, command):
    """Average the weights that the run kept last, and save them as the model of its folder."""
    from transformer.decoding import average_checkpoints
    from transformer.model import load_parameters

    paths = sorted((command.folder / "weights").glob("*.safetensors"))[-command.training.keep:]
    load_parameters(model, average_checkpoints(paths), command.folder)
    model.save_pretrained(command.folder, tokenizer)


def evaluate_command(command):
    """`transformer evaluate`: beam search over a split, BLEU, scores.json."""
    from transformer.decoding import bleu, exact_match
    from transformer.hardware import choose_device

    model, tokenizer = load(command.folder, choose_device(command.device))
    if command.folder is not None:
        prepare_folder(command.folder)
    if command.corpus is None and command.source_file is None:
        command.corpus = corpus_of(command.folder)
    pairs = pairs_of(command, command.split)
    started = time.monotonic()
    sources, references = zip(*pairs)
    outputs = translate_all(model, tokenizer, sources, command.beam, command.alpha, command.split)
    cased, lower = bleu(outputs, references), bleu(outputs, references, lowercase=True)
    name = command.split if command.source_file is None else command.source_file.stem
    result = {"corpus": command.corpus if command.source_file is None else str(command.source_file),
              "split": name, "sentences": len(pairs), "beam": command.beam, "alpha": command.alpha,
              "bleu": round(cased.bleu, 2), "signature": cased.signature,
              "bleu_lowercased": round(lower.bleu, 2), "signature_lowercased": lower.signature,
              "exact_match": round(exact_match(outputs, references), 4),
              "seconds": round(time.monotonic() - started, 1)}
    print(json.dumps(result, indent=2))
    if command.folder is not None:
        write_json(command.folder / f"scores.{name}.json", result)


def corpus_of(folder):
    """The corpus that a folder's model was trained on; ValueError where it was trained on files."""
    run = folder and (folder / "run.json").is_file() and load_run(folder)
    if run and run.source_file:
        raise ValueError(f"the model in {folder} was trained on your own files: name those to score it on with "
                         "--source-file and --target-file")
    return run.corpus if run else "bundled"


def translate_command(command):
    """`transformer translate`: one sentence, or standard input."""
    from transformer.decoding import translate
    from transformer.hardware import choose_device

    model, tokenizer = load(command.folder, choose_device(command.device))
    lines = [command.sentence] if command.sentence is not None else read_standard_input()
    for line in translate(model, tokenizer, lines, command.beam, command.alpha) if lines else []:
        print(" ".join(line.splitlines()))  # a bad model may write line ends; here one line in is one line out


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
    """`transformer attend`: pictures of every head for one sentence."""
    from transformer.decoding import translate

    prepare_folder(command.output, "--output")
    model, tokenizer = load(command.folder)
    translation = translate(model, tokenizer, [command.sentence])[0]
    print(translation)
    for path in draw_heads(model, tokenizer, command.sentence, translation, command.output):
        print(path)


def draw_heads(model, tokenizer, source, target, folder):
    """One picture a kind of attention, every layer and head in it; returns the paths."""
    from transformer import plotting
    from transformer.visualization import attention_maps

    maps = attention_maps(model, tokenizer, [(source, target)])[0]
    axes = {"encoder": (maps.source, maps.source), "decoder": (maps.read, maps.target),
            "cross": (maps.source, maps.target)}
    paths = []
    for kind, (columns, rows) in axes.items():
        weights = getattr(maps, kind)
        N, h = weights.shape[:2]  # words are written once a column and once a row of pictures
        panels = [(f"layer {n + 1}, head {i + 1}", weights[n, i], columns if n == N - 1 else None, None if i else rows)
                  for n in range(N) for i in range(h)]
        size = min(12.0, max(2.4, 0.22 * max(len(columns), len(rows)) + 0.8))  # inches a head
        grid = plotting.heatmaps(panels, across=h, width=size, height=size, largest=1.0)
        path = folder / f"{kind}.png"
        plotting.save(grid, path)
        paths.append(path)
    return paths


def demo_command(command):
    """`transformer demo`: train, translate, score and draw on the bundled corpus."""
    from transformer.data import read_bundled
    from transformer.decoding import bleu, exact_match
    from transformer.visualization import score_attention

    started = time.monotonic()
    recipe = RECIPES["bundled"]
    prepare_folder(command.folder)
    clear_demo(command.folder)
    print("A Transformer learns to translate English to German from the bundled corpus.")
    train_command(Train(folder=command.folder, model=recipe["model"],
                        training=dataclasses.replace(recipe["training"], minutes=command.minutes)), count=30)
    model, tokenizer = load(command.folder)
    report = {"minutes_of_training": command.minutes}
    for split in ("test", "hard"):
        examples = read_bundled(split)
        references = [e.target for e in examples]
        outputs = translate_all(model, tokenizer, [e.source for e in examples], 4, 0.6, split)
        score = bleu(outputs, references)
        report[split] = {"bleu": score.bleu, "signature": score.signature,
                         "exact_match": exact_match(outputs, references)}
        if split == "test":
            samples = list(zip(examples, outputs))[::max(1, len(examples) // 6)]
    report.update(score_attention(model, tokenizer, read_bundled("validation"), read_bundled("test")))
    picture = next(e for e in read_bundled("test") if e.pronouns)
    draw_heads(model, tokenizer, picture.source, picture.target, command.folder)
    report["seconds"] = time.monotonic() - started
    write_json(command.folder / "demo.json", report)
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


def main():
    """Run a command; a mistake in the input gives one sentence on standard error and exit status 2."""
    command = None
    try:
        command = parse(sys.argv[1:])
        run = {Train: train_command, Evaluate: evaluate_command, Translate: translate_command,
               Attend: attend_command, Demo: demo_command}[type(command)]
        run(command)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:  # the system's own have a reason and mostly a file; ours are sentences
        sys.exit(fail(f"{error.filename or 'a file'} cannot be used ({error.strerror}): see what is there, "
                      "then run the command again" if error.strerror else str(error)))
    except (Interrupted, ValueError) as error:
        sys.exit(fail(str(error)))
    except KeyboardInterrupt:
        sys.exit(fail("stopped by Ctrl-C; nothing that was saved is lost"))


def fail(sentence):
    """Print one sentence, on one line, to standard error; return the exit status for it, 2."""
    print(f"transformer: {' '.join(sentence.splitlines())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
