"""A training run: what it learns from, its folder, its plan, and the run from beginning to end."""

import json
import shlex
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import distributed

from transformer.corpora import corpus_paths, stream_corpus, stream_parallel
from transformer.corpora.encoded import check_pairs, prepare
from transformer.data import Tokenizer, encode_pairs, lengths_of
from transformer.decoding import average_checkpoints
from transformer.scores import bleu
from transformer.search import translate
from transformer.files import data_folder, git_commit, prepare_folder, processor, write_file, write_json
from transformer.hardware import (
    UTILISATION, allow_tf32, choose_device, choose_precision, matmul_rate,
    precision_hint, training_flops,
)
from transformer.distributed import process_count, process_number, processes
from transformer.fast import build_fast, fast_training
from transformer.fast.loss import ChunkedLoss
from transformer.fast.packed import compile_stacks
from transformer.model import TransformerConfig
from transformer.weights import count_parameters, load_parameters
from transformer.pretrained import load_tokenizer, parameters_of
from transformer.recipes import RECIPES
from transformer.training import TrainingConfig, train, validation_loss
from transformer.progress import merit
from transformer.interrupt import Interrupted


@dataclass
class Experiment:
    """A run: what to learn from, how large a model, how to train it, and where to keep it."""

    corpus: str = "bundled"  # bundled (comes with the package), multi30k, tatoeba, europarl, wmt14, treebank_craft, treebank_nltk (downloaded)
    reverse: bool = False  # translate German to English
    source_file: Path | None = None  # your own sentences, one a line, UTF-8, instead of a corpus
    target_file: Path | None = None  # their translations, line by line
    folder: Path | None = None  # where the run is kept (runs/<corpus> where not given)
    resume: bool = False  # go on with the run in the folder, with its own settings
    device: str = "auto"  # cpu, cuda or mps; auto takes the fastest there is
    compile: bool = False  # let torch.compile write kernels for the model first (a minute; pays on GPUs)
    model: TransformerConfig = field(default_factory=lambda: RECIPES["bundled"]["model"])
    training: TrainingConfig = field(default_factory=lambda: RECIPES["bundled"]["training"])


def files_of(e, split):
    """The files of one split of an experiment's corpus, or its own, source first; ValueError for options that do not fit."""
    if (e.source_file is None) != (e.target_file is None):
        raise ValueError("--source-file and --target-file go together: give both, or a --corpus")
    if e.source_file is None:
        return corpus_paths(e.corpus, split)
    if e.reverse:
        raise ValueError("--reverse turns a corpus round: with your own files swap --source-file and --target-file")
    return [e.source_file, e.target_file]


def stream_pairs(e, split):
    """Yield the (source, target) pairs of an experiment's train or validation split, one at a time."""
    files = files_of(e, split)
    if e.source_file is None:
        return stream_corpus(e.corpus, split, e.reverse)
    count = sum(1 for _ in stream_parallel(*files))
    if count < 2:
        raise ValueError(f"{files[0]} has {count} line: training needs at least 2, one of them to validate on")
    border = count - max(1, min(1000, count // 100))
    return islice(stream_parallel(*files), *((border,) if split == "train" else (border, None)))


ON_DISK, LARGE = ("wmt14", "europarl"), 100 * 2**20  # own files: from so many bytes on


def on_disk(e):
    """True where an experiment's training pairs go through a folder on disk."""
    if e.source_file is None:
        return e.corpus in ON_DISK
    return sum(Path(path).stat().st_size for path in files_of(e, "train")) > LARGE


def encoded_training(e, tokenizer, pairs=stream_pairs):
    """The encoded training pairs: a list, or `EncodedPairs`, which leave out what is longer than the model's positions.

    pairs(e, split) yields them as text. Raises ValueError for a pair in memory that is longer than that.
    """
    if on_disk(e):
        name = e.corpus if e.source_file is None else Path(e.source_file).stem
        settings = (name, "train", e.reverse, e.model.max_positions)
        return prepare(tokenizer, pairs(e, "train"), files_of(e, "train"), f"{name}-train", *settings)
    encoded = encode_pairs(tokenizer, list(pairs(e, "train")))
    check_part("training", encoded, e.model)
    return encoded


def check_part(name, encoded, c):
    """`check_pairs`, saying which part of the data it looked at."""
    try:
        check_pairs(encoded, c.max_positions)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None


def read_settings(folder):
    """The dict in a folder's run.json; FileNotFoundError or ValueError where it is missing or damaged."""
    path = folder / "run.json"
    if not path.is_file():
        raise FileNotFoundError(f"no run to resume in {folder}: name its folder with --folder")
    try:
        saved = json.loads(path.read_text(encoding="utf8"))
        TransformerConfig(**saved["model"]), TrainingConfig(**saved["training"])
        wrong = next((name for name in ("corpus", "source_file", "target_file")
                      if not isinstance(saved[name], str | None)), None)
        if wrong:
            raise TypeError(f"{wrong} is {saved[wrong]!r}")
        return saved
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} does not hold the settings of a run ({error}): copy it again, "
                         "or train anew in another --folder") from None


def load_run(folder):
    """The `Experiment` in a folder, ready to resume; OSError or ValueError where there is none."""
    saved = read_settings(folder)
    files = {name: saved[name] and Path(saved[name]) for name in ("source_file", "target_file")}
    return Experiment(saved["corpus"], saved.get("reverse", False), **files, folder=folder, resume=True,
                      model=TransformerConfig(**saved["model"]), training=TrainingConfig(**saved["training"]))


def hardware_in_words(device, precision="auto"):
    """What a run works on, such as "2 x NVIDIA L4, torch 2.6.0, bf16" or "1 thread of AMD EPYC, torch 2.13.0, fp32"."""
    if device.type == "cuda":
        what = f"{process_count()} x {torch.cuda.get_device_name(device)}"
    elif device.type == "mps":
        what = f"the GPU of {processor()}"
    else:
        threads = torch.get_num_threads() * process_count()
        what = f"{threads} thread{'s' * (threads > 1)} of {processor()}"
    return f"{what}, torch {torch.__version__.partition('+')[0]}, {choose_precision(device, precision)}"


def settings_of(e, command, device):
    """What run.json keeps of an experiment."""
    return {"command": command, "commit": git_commit(), "hardware": hardware_in_words(device, e.training.precision),
            "corpus": e.corpus, "reverse": e.reverse, "source_file": e.source_file and str(e.source_file),
            "target_file": e.target_file and str(e.target_file),
            "model": asdict(e.model), "training": asdict(e.training)}


DRIVE = Path("/content/drive/MyDrive")


def runs_folder():
    """Where runs are kept: `runs` in Google Drive where Colab has mounted it, else in the project's folder, or in this one without a clone."""
    return (DRIVE if DRIVE.is_dir() else data_folder().parent if data_folder().name == "data" else Path()) / "runs"


def begin_folder(e, command, device, pairs=stream_pairs):
    """Learn the vocabulary of a new run, save it and the settings; ValueError for a folder in use."""
    begun = [name for name in ("checkpoint.safetensors", "model.safetensors", "weights/*.safetensors") if list(e.folder.glob(name))]
    if begun == ["weights/*.safetensors"]:
        raise ValueError(f"{e.folder} holds weights, but no checkpoint to go on from: delete its folder weights, or name another --folder")
    if begun:
        raise ValueError(f"{e.folder} already holds a run or a model: go on with the run (--resume), "
                         "or name another --folder")
    texts = (text for pair in pairs(e, "train") for text in pair)
    prepare_folder(e.folder)
    tokenizer = Tokenizer.train(texts, e.model.vocab_size)
    adopt(e, tokenizer)
    parameters_of(e.model)
    write_file(e.folder / "tokenizer.json", tokenizer.save)
    write_json(e.folder / "run.json", settings_of(e, command, device))


def adopt(e, tokenizer):
    """Set the sizes of an experiment's model by its tokenizer."""
    e.model = replace(e.model, vocab_size=tokenizer.vocab_size, pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id,
                      eos_id=tokenizer.eos_id)


def check_same_data(e):
    """ValueError where an experiment resumes a run that was begun with other data, or with other batches."""
    saved = load_run(e.folder)
    for name in ("corpus", "reverse", "source_file", "target_file", "seed", "batch_tokens"):
        there, here = (getattr(run.training if hasattr(run.training, name) else run, name) for run in (saved, e))
        if there != here:
            raise ValueError(f"the run in {e.folder} has {name.replace('_', ' ')} {there}, not "
                             f"{here}: resume it without that option, or name another --folder")


def note_resumed(e, command, device):
    """Write into run.json how a resumed run went on: its settings from there, and by which command, code and hardware."""
    if not e.resume or process_number() > 0:
        return
    saved, now = read_settings(e.folder), settings_of(e, command, device)
    again = {name: now[name] for name in ("command", "commit", "hardware")}
    write_json(e.folder / "run.json", {**saved, "training": now["training"], "resumed": [*saved.get("resumed", []), again]})


@contextmanager
def first_goes_ahead():
    """Inside this block the other processes begin when the first has finished, and find what it has made.

    ValueError in each of them where the first could not finish, with its reason: whichever process ends first, and has
    the others stopped before they can speak, has said it.
    """
    reason = [None]
    if process_number() > 0:
        distributed.broadcast_object_list(reason)
        if reason[0] is not None:
            raise ValueError(f"the first process stopped, so this one does: {reason[0]}")
    try:
        yield
    except BaseException as error:
        reason = [str(error) or type(error).__name__]
        raise
    finally:
        if process_number() == 0 and process_count() > 1:
            distributed.broadcast_object_list(reason)


def open_run(e, command, device, pairs=stream_pairs):
    """Begin the folder of a new run, or check that of a resumed one; returns (tokenizer, encoded training pairs)."""
    with first_goes_ahead():
        if e.resume:
            check_same_data(e)
        elif process_number() == 0:
            begin_folder(e, command, device, pairs)
        if process_number() > 0:
            adopt(e, Tokenizer.load(e.folder / "tokenizer.json"))
        tokenizer = load_tokenizer(e.folder, e.model)
    with first_goes_ahead():
        return tokenizer, encoded_training(e, tokenizer, pairs)


def power(number):
    """A large number in short, such as 3.3e18."""
    return f"{number:.1e}".replace("e+", "e")


@dataclass(frozen=True)
class Plan:
    """What a training run comes to: updates, epochs, real target tokens, FLOPs of matrix products, seconds."""

    updates: int
    epochs: float
    tokens: float
    flops: float
    seconds: float

    def __str__(self):
        unit, length = next((u, n) for u, n in (("hours", 3600), ("minutes", 60), ("seconds", 1)) if self.seconds > 2 * n or n == 1)
        return (f"{self.updates:,} updates, {self.epochs:,.1f} epochs, {float(f'{self.tokens:.3g}'):,.0f} target tokens, "
                f"{power(self.flops)} FLOPs, about {self.seconds / length:,.1f} {unit}")


def plan_run(c, training, source, target, pairs, rate, utilisation=UTILISATION):
    """The `Plan` for a model c on a corpus of so many pairs, whose lengths in tokens are source and target (arrays).

    rate: FLOPs a second of all processes. Settings that end a run early (minutes, patience) are not counted on. Every
    batch counts as full, so that epochs and time come out some per cent too high (on Tatoeba 7).
    """
    source, target = np.asarray(source), np.asarray(target)
    at_once = training.accumulate * training.batch_tokens / np.maximum(source, target).mean()
    flops = training.updates * at_once * training_flops(c, source.mean(), target.mean())
    return Plan(training.updates, training.updates * at_once / pairs, training.updates * at_once * target.mean(),
                flops, flops / (rate * utilisation))


def plan_of(e, encoded, device):
    """The `Plan` of an experiment on a device, from the lengths of its first 200,000 pairs."""
    source, target = lengths_of(encoded, range(min(len(encoded), 200_000)))
    rate = matmul_rate(device, choose_precision(device, e.training.precision)) * process_count()
    return plan_run(e.model, e.training, source, target - 1, len(encoded), rate)


def held_out_loss(model, encoded):
    """`validation_loss`, by the fast parts."""
    return validation_loss(model, encoded, criterion=ChunkedLoss(0.0, model.config.pad_id))


def validator(e, tokenizer, count=200, watch=None):
    """validate(model) for `train`: cross-entropy and greedy BLEU on the first `count` validation pairs.

    watch(folder) is called before each validation.
    """
    pairs = list(islice(stream_pairs(e, "validation"), count))
    encoded, (sources, references) = encode_pairs(tokenizer, pairs), zip(*pairs)
    check_part("validation", encoded, e.model)

    def validate(model):
        if watch is not None:
            watch(e.folder)
        outputs = translate(model, tokenizer, sources, beam=1)
        return {**held_out_loss(model, encoded), "bleu": bleu(outputs, references).score}

    return validate


def new_model(e, device):
    """The experiment's model with fresh weights, which its seed decides, made fast and put on the device."""
    torch.manual_seed(e.training.seed)
    model = build_fast(e.model).to(device)
    return compile_stacks(model) if e.compile else model


def fit(model, e, encoded, validate):
    """Train the model of an experiment by the fast parts; a stop says how to go on. See `train`."""
    parts = fast_training(e.training, e.model)
    try:
        return train(model, encoded, e.training, e.folder, validate, e.resume, **parts)
    except Interrupted as stop:
        folder = shlex.quote(str(e.folder))
        raise Interrupted(f"{stop}; go on with: transformer train --resume --folder {folder}") from None


def average_last(model, folder, count, until=None):
    """Give a model the average of the last `count` weights that the run in folder kept, those after update `until` left out."""
    paths = [path for path in sorted((folder / "weights").glob("*.safetensors")) if until is None or int(path.stem) <= until]
    load_parameters(model, average_checkpoints(paths[-count:]), folder)


def last_update(e):
    """The update whose weights count as a run's last: that of the best validation where it stops early (`patience`), else None."""
    return max(read_log(e.folder), key=merit)["update"] if e.training.patience else None


@dataclass(frozen=True)
class Task:
    """What a run learns; left as it is, to translate."""

    pairs: Callable = stream_pairs  # pairs(e, split): the texts
    validator: Callable = validator  # validator(e, tokenizer, count, watch): a function from the model to a dict of figures
    new_model: Callable = new_model  # new_model(e, device)


def run_experiment(e, command, count=200, watch=None, task=Task()):
    """Vocabulary, plan, training (validated on `count` pairs), average: leaves a model in e.folder.

    command: the words that started it, for run.json. Started by torchrun, each process calls it. Returns True in the
    first of them. Raises ValueError or OSError for data, settings or a folder that cannot be used, Interrupted after Ctrl-C.
    """
    with processes(choose_device(e.device)) as device:
        if device.type == "cuda":
            allow_tf32()
        tokenizer, encoded = open_run(e, command, device, task.pairs)
        model, first = task.new_model(e, device), process_number() == 0
        with first_goes_ahead():  # it may have to download what is validated on
            validate = task.validator(e, tokenizer, count, watch)
        if first:
            print(f"{len(encoded):,} sentence pairs, {tokenizer.vocab_size:,} types, {count_parameters(model):,} "
                  f"parameters\nplan: {plan_of(e, encoded, device)}", flush=True)
            if hint := precision_hint(device, e.training.precision):
                print(hint, flush=True)
        try:
            fit(model, e, encoded, validate)
        except Interrupted:
            note_resumed(e, command, device)
            raise
        note_resumed(e, command, device)
        if first:
            average_last(model, e.folder, e.training.keep, last_update(e))
            model.save_pretrained(e.folder, tokenizer)
        return first


def read_log(folder):
    """The rows of a run's log, one dict a validation; none before the first."""
    path = Path(folder) / "log.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()] if path.is_file() else []
