"""A training run: what it learns from, its folder, its plan, from beginning to end."""

import json
import math
import shlex
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed
from tqdm import tqdm

from transformer.models.checkpoint import progress_in
from transformer.corpora import corpus_paths, languages_of, stream_corpus, stream_parallel
from transformer.corpora.download import sha256_of
from transformer.runs.encoded import check_pairs, prepare
from transformer.data import Tokenizer, encode_pairs, lengths_of
from transformer.decoding import average_checkpoints
from transformer.core.distributed import process_count, process_number, processes
from transformer.fast import build_fast
from transformer.fast.loss import ChunkedLoss
from transformer.fast.packed import compile_stacks
from transformer.fast.training import fast_training
from transformer.core.files import data_folder, git_commit, locked, prepare_folder, processor, read_json, write_file, write_json
from transformer.hardware import allow_tf32, choose_device, choose_precision
from transformer.core.interrupt import Interrupted
from transformer.models.pretrained import check_memory, load_tokenizer, save
from transformer.runs.progress import is_row, merit
from transformer.core.protocol import About, kind_named, kind_of
from transformer.runs.recipes import RECIPES, search_of
from transformer.core.scores import bleu
from transformer.models.search import translate
from transformer.training import TrainingConfig, train, validation_loss
from transformer.core.weights import count_parameters, load_parameters


@dataclass
class Experiment:
    """A run: what to learn from, which model, how to train it, and where to keep it."""

    corpus: str = "bundled"
    reverse: bool = False  # translate the other way round
    source_file: Path | None = None  # your own sentences, one a line, UTF-8, instead of a corpus
    target_file: Path | None = None  # their translations, line by line
    source_language: str = "en"  # codes of the languages of your files
    target_language: str = "de"
    folder: Path | None = None  # where the run is kept (runs/<corpus> where not given)
    resume: bool = False  # go on with the run in the folder, with its own settings
    device: str = "auto"  # cpu, cuda or mps; auto takes the fastest there is
    compile: bool = False  # let torch.compile write kernels first (a minute; pays on GPUs)
    model: Any = field(default_factory=lambda: RECIPES["bundled"]["model"])  # its configuration
    training: TrainingConfig = field(default_factory=lambda: RECIPES["bundled"]["training"])

    def __post_init__(self):
        name = "files" if self.source_file or self.target_file else self.corpus or "bundled"
        self.folder = Path(self.folder or Path("runs", name))
        self.source_file = self.source_file and Path(self.source_file)
        self.target_file = self.target_file and Path(self.target_file)


# What a run learns from


def files_of(e, split: str) -> list[Path]:
    """The files of one split of an experiment's corpus, or its own, source first.

    ValueError for settings that do not fit.
    """
    if (e.source_file is None) != (e.target_file is None):
        raise ValueError("--source-file and --target-file go together: give both, or a --corpus")
    if e.source_file is None:
        own = e.source_language, e.target_language
        if own not in (("en", "de"), languages_of(e.corpus, e.reverse)):
            raise ValueError("--source-language and --target-language are those of your own files: "
                             "a corpus has its own, and --reverse turns it round")
        return corpus_paths(e.corpus, split)
    if e.reverse:
        raise ValueError("--reverse turns a corpus round: with your own files swap --source-file "
                         "and --target-file")
    return [e.source_file, e.target_file]


def languages(e: Experiment) -> tuple[str, str]:
    """The codes of the languages that an experiment translates from and into."""
    if e.source_file is None:
        return languages_of(e.corpus, e.reverse)
    return e.source_language, e.target_language


def stream_pairs(e: Experiment, split: str):
    """Yield the (source, target) pairs of an experiment's train or validation split.

    Of own files the last hundredth, at most 1,000 pairs, is kept for validation.
    """
    files = files_of(e, split)
    if e.source_file is None:
        return stream_corpus(e.corpus, split, e.reverse)
    count = sum(1 for _ in stream_parallel(*files))
    if count < 2:
        raise ValueError(f"{files[0]} has {count} line: training needs at least 2, one of them to "
                         "validate on")
    border = count - max(1, min(1000, count // 100))
    pairs = stream_parallel(*files)
    return islice(pairs, border) if split == "train" else islice(pairs, border, None)


ON_DISK = ("wmt14", "wmt14_eighth", "europarl")
LARGE = 100 * 2**20  # own files: from so many bytes on


def on_disk(e: Experiment) -> bool:
    """True where an experiment's training pairs go through a folder on disk."""
    if e.source_file is None:
        return e.corpus in ON_DISK
    return sum(Path(path).stat().st_size for path in files_of(e, "train")) > LARGE


def encoded_training(e: Experiment, tokenizer: Tokenizer, pairs: Callable = stream_pairs):
    """The encoded training pairs: a list, or `EncodedPairs`.

    The latter leave out what is longer than the model's positions; a list raises ValueError.
    pairs(e, split) yields them as text.
    """
    if on_disk(e):
        name = e.corpus if e.source_file is None else Path(e.source_file).stem
        return prepare(tokenizer, pairs(e, "train"), files_of(e, "train"), name, "train",
                       e.reverse, e.model.max_positions)
    encoded = encode_pairs(tokenizer, list(pairs(e, "train")))
    check_pairs(encoded, e.model, "training ")
    return encoded


# The folder of a run: its settings, its tokenizer, what training saves, and in the end the model


def read_settings(folder: Path) -> dict:
    """What is in a folder's run.json; FileNotFoundError or ValueError where it is damaged."""
    path = folder / "run.json"
    if not path.is_file():
        raise FileNotFoundError(f"no run in {folder}: name the folder of a training with --folder")
    try:
        saved = read_json(path)
        experiment_in(saved)
        return saved
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} does not hold the settings of a run ({error}): copy it again, "
                         "or train anew in another --folder") from None


def experiment_in(saved: dict) -> Experiment:
    """The experiment of a run.json; AttributeError, KeyError, TypeError, ValueError for none."""
    kinds = dict.fromkeys(("corpus", "source_file", "target_file"), str | None) | dict.fromkeys(
        ("source_language", "target_language"), str) | {"reverse": bool, "resumed": list}
    for name, kind in kinds.items():
        if name in saved and not isinstance(saved[name], kind):
            raise TypeError(f"{name} is {saved[name]!r}")
    files = {name: saved[name] and Path(saved[name]) for name in ("source_file", "target_file")}
    names = ("reverse", "source_language", "target_language")
    more = {name: saved[name] for name in names if name in saved}
    config = kind_named(saved.get("kind", "transformer")).config
    return Experiment(saved["corpus"], **files, **more, model=config(**saved["model"]),
                      training=TrainingConfig(**saved["training"]))


def load_run(folder: Path) -> Experiment:
    """The experiment in a folder, ready to resume; OSError or ValueError where there is none."""
    return replace(experiment_in(read_settings(Path(folder))), folder=folder, resume=True)


def hardware_in_words(device: torch.device, precision: str = "auto") -> str:
    """What a run works on, such as "2 x NVIDIA L4, torch 2.6.0, bf16"."""
    if device.type == "cuda":
        what = f"{process_count()} x {torch.cuda.get_device_name(device)}"
    elif device.type == "mps":
        what = f"the GPU of {processor()}"
    else:
        threads = torch.get_num_threads() * process_count()
        what = f"{threads} thread{'s' * (threads > 1)} of {processor()}"
    version = torch.__version__.partition("+")[0]
    return f"{what}, torch {version}, {choose_precision(device, precision)}"


def sums_of(e: Experiment) -> list[str] | None:
    """The checksums of an experiment's own files, source first."""
    return [sha256_of(path) for path in files_of(e, "train")] if e.source_file else None


def settings_of(e: Experiment, command: str, device: torch.device) -> dict:
    """What run.json keeps of an experiment."""
    source, target = languages(e)
    return {
        "command": command, "commit": git_commit(),
        "hardware": hardware_in_words(device, e.training.precision),
        "corpus": e.corpus, "reverse": e.reverse,
        "source_file": e.source_file and str(e.source_file.absolute()),
        "target_file": e.target_file and str(e.target_file.absolute()),
        "source_language": source, "target_language": target,
        "kind": kind_of(e.model, own=True), "model": asdict(e.model),
        "training": asdict(e.training),
    }


DRIVE = Path("/content/drive/MyDrive")


def runs_folder() -> Path:
    """Where runs are kept: `runs` in Google Drive where Colab has mounted it.

    Else in the project's folder, or, without a clone, in this one.
    """
    if DRIVE.is_dir():
        return DRIVE / "runs"
    return (data_folder().parent if data_folder().name == "data" else Path()) / "runs"


def check_unused(folder: Path) -> None:
    """ValueError for a folder that holds a run, a model or weights other than those of a run that
    was killed before its first checkpoint was whole."""
    if list(folder.glob("*.safetensors")):
        raise ValueError(f"{folder} already holds a run or a model: go on with the run (--resume), "
                         "or name another --folder")
    weights = list(folder.glob("weights/*.safetensors"))
    first = len(weights) == 1 and (folder / "run.json").is_file()
    if weights and not first:
        raise ValueError(f"{folder} holds weights, but no checkpoint to go on from: delete its "
                         "folder weights, or name another --folder")


def begin_folder(e: Experiment, command: str, device, pairs: Callable = stream_pairs) -> None:
    """Learn the vocabulary of a new run, from its training split; save it and the settings."""
    check_unused(e.folder)
    for left in e.folder.glob("weights/*.safetensors"):
        left.unlink()
    texts = (text for pair in pairs(e, "train") for text in pair)
    prepare_folder(e.folder)
    tokenizer = Tokenizer.train(texts, e.model.vocab_size)
    adopt(e, tokenizer)
    check_memory(e.model)
    write_file(e.folder / "tokenizer.json", tokenizer.save)
    settings = settings_of(e, command, device) | {"sha256": sums_of(e)}
    write_json(e.folder / "run.json", settings)


def adopt(e: Experiment, tokenizer: Tokenizer) -> None:
    """Set the sizes of an experiment's model by its tokenizer."""
    e.model = replace(e.model, vocab_size=tokenizer.vocab_size, pad_id=tokenizer.pad_id,
                      bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id)


def check_same_data(e: Experiment) -> None:
    """ValueError where an experiment resumes a run of other data, batches or kind of model. Own
    files may lie elsewhere by now; what is in them must be the same."""
    saved, sums = load_run(e.folder), read_settings(e.folder).get("sha256")
    both = [{"family": kind_of(run.model), **vars(run), **vars(run.training)} for run in (saved, e)]
    files = () if sums else ("source_file", "target_file")
    for name in ("corpus", "reverse", *files, "seed", "batch_tokens", "family"):
        there, here = (settings[name] for settings in both)
        if there != here and (name not in files or Path(there or "").absolute() !=
                              Path(here or "").absolute()):
            raise ValueError(f"the run in {e.folder} has {name.replace('_', ' ')} {there}, not "
                             f"{here}: resume it without that option, or name another --folder")
    if sums is not None and sums != sums_of(e):
        raise ValueError(f"your files are not what the run in {e.folder} began with: name those "
                         "with --source-file and --target-file, or another --folder")


def kept_apart(e: Experiment) -> list[tuple[str, str]]:
    """The pairs that the run in an experiment's folder validates on; ValueError where its files
    have changed."""
    pairs = stream_pairs(e, "validation")
    check_same_data(e)
    return list(pairs)


def note_resumed(e: Experiment, command: str, device) -> None:
    """Write into run.json how a resumed run went on: by which command, code and hardware."""
    if not e.resume or process_number() > 0:
        return
    saved, now = read_settings(e.folder), settings_of(e, command, device)
    again = {name: now[name] for name in ("command", "commit", "hardware")}
    kept = {name: now[name] for name in ("training", "source_file", "target_file",
                                         "source_language", "target_language")}
    saved |= kept | {"resumed": [*saved.get("resumed", []), again]}
    write_json(e.folder / "run.json", saved)


@contextmanager
def first_goes_ahead():
    """The other processes enter this block when the first has left it, and find what it made.

    ValueError in each of them where the first could not finish, with its reason: whichever process
    ends first, and has the others stopped before they can speak, has said it.
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


@contextmanager
def own_folder(e: Experiment):
    """Inside the block no other process trains in an experiment's folder; it is made if need be,
    and taken away again if it stays empty."""
    if e.resume and not e.folder.is_dir():
        read_settings(e.folder)  # says that there is no run
    prepare_folder(e.folder)
    try:
        with locked(e.folder):
            yield
    finally:
        with suppress(OSError):
            e.folder.rmdir()


def open_run(e: Experiment, command: str, device, pairs: Callable = stream_pairs) -> tuple:
    """Begin the folder of a new run, or check a resumed one; (tokenizer, encoded pairs)."""
    with first_goes_ahead():
        if e.resume:
            check_same_data(e)
            check_memory(e.model)
        elif process_number() == 0:
            begin_folder(e, command, device, pairs)
        if process_number() > 0:
            adopt(e, Tokenizer.load(e.folder / "tokenizer.json"))
        tokenizer = load_tokenizer(e.folder, e.model)
    with first_goes_ahead():
        return tokenizer, encoded_training(e, tokenizer, pairs)


# A plan, from the first updates of the run itself

TIMED = 20  # updates


def clock(seconds: float) -> str:
    """Such as 1:05:00 (h:mm:ss)."""
    return f"{timedelta(seconds=round(seconds))} (h:mm:ss)"


def tell_time(optimizer, training: TrainingConfig, done: dict) -> None:
    """Have an optimizer say, after its first steps, how long those that were left will take.

    done: the "update" and the "seconds" of a run that is resumed (`done_in`).

    torch calls a hook after every step. The first one warms up; a validation between two others
    does not touch their median.
    """
    ends: list[float] = []

    def after_step(*_) -> None:
        ends.append(time.monotonic())
        if len(ends) <= TIMED:
            return
        hook.remove()
        each = float(np.median(np.diff(ends)))
        seconds = 60 * (training.minutes or math.inf) - done["seconds"]
        updates = min(training.updates - done["update"], seconds / each)
        tqdm.write(f"{TIMED} updates timed: {updates:,.0f} will take about {clock(updates * each)}")

    hook = optimizer.register_step_post_hook(after_step)


def epochs_of(e: Experiment, encoded) -> float:
    """Epochs that a run comes to, from the lengths of its first 200,000 pairs.

    Every batch counts as full, so that this is some per cent too high (on Tatoeba 7).
    """
    lengths = np.maximum(*lengths_of(encoded, range(min(len(encoded), 200_000))))
    pairs = e.training.accumulate * e.training.batch_tokens / lengths.mean()
    return e.training.updates * pairs / len(encoded)


# Training


def held_out_loss(model, encoded) -> dict:
    """`validation_loss`, by the fast parts."""
    return validation_loss(model, encoded, criterion=ChunkedLoss(0.0, model.config.pad_id))


def validator(e: Experiment, tokenizer: Tokenizer, count: int) -> Callable:
    """validate(model) for `train`: loss and greedy BLEU on the first `count` validation pairs.

    ValueError where one is too long; of own files any, as `evaluate` scores all that were kept.
    """
    pairs = list(islice(stream_pairs(e, "validation"), None if e.source_file else count))
    encoded = encode_pairs(tokenizer, pairs)
    check_pairs(encoded, e.model, f"of your files' last {len(pairs)} pairs, kept for validation, "
                if e.source_file else "validation ")
    encoded, (sources, references) = encoded[:count], zip(*pairs[:count])

    def validate(model):
        found = held_out_loss(model, encoded)
        if model.start is None:  # it writes nothing
            return found
        outputs = translate(model, tokenizer, sources, beam=1)
        return {**found, "bleu": bleu(outputs, references).score}

    return validate


@dataclass(frozen=True)
class Watched:
    """validate(model) for `train`, and watch(log), called when a row of the log is complete."""

    validate: Callable
    watch: Callable

    def __call__(self, model) -> dict:
        return self.validate(model)


def new_model(e: Experiment, device: torch.device):
    """The experiment's model with fresh weights, which its seed decides, fast, on the device."""
    torch.manual_seed(e.training.seed)
    model = build_fast(e.model).to(device)
    return compile_stacks(model) if e.compile else model


def fit(model, e: Experiment, encoded, validate: Callable) -> list[dict]:
    """Train the model of an experiment by the fast parts; a stop says how to go on. See `train`."""
    parts = fast_training(e.training, e.model)

    def optimizer(model):
        made = parts["optimizer"](model)
        if process_number() == 0:
            tell_time(made, e.training, done_in(e))
        return made

    try:
        return train(model, encoded, e.training, e.folder, validate, e.resume,
                     criterion=parts["criterion"], optimizer=optimizer)
    except Interrupted as stop:
        folder = shlex.quote(str(e.folder))
        raise Interrupted(f"{stop}; go on with: transformer train --resume --folder {folder}"
                          ) from None


def done_in(e: Experiment) -> dict:
    """The "update" and the "seconds" that a run goes on from; 0 of one that begins."""
    path = e.folder / "checkpoint.safetensors"
    done = progress_in(path) if e.resume and path.is_file() else {}
    return {"update": 0, "seconds": 0.0} | done


def kept_weights(folder: Path, until: int | None = None) -> list[Path]:
    """The weights that the run in folder kept, oldest first, up to those of update `until`."""
    return [path for path in sorted(folder.glob("weights/*.safetensors"))
            if until is None or path.stem.isdecimal() and int(path.stem) <= until]


def average_last(model, folder: Path, count: int, until: int | None = None) -> None:
    """Give a model the average of the last `count` weights that the run in folder kept.

    Those after update `until` are left out.
    """
    load_parameters(model, average_checkpoints(kept_weights(folder, until)[-count:]), folder)


def last_update(e: Experiment) -> int | None:
    """The update whose weights count as a run's last; None: simply the last.

    That of the best validation where the run stops early (`patience`).
    """
    rows = read_log(e.folder)
    return max(rows, key=merit)["update"] if e.training.patience and rows else None


def take_average(model, folder: Path, count: int) -> None:
    """Give a model the average of a run's last `count` weights; ValueError where it kept fewer."""
    last = last_update(load_run(folder))
    kept = len(kept_weights(folder, last))
    if not 1 <= count <= kept:
        raise ValueError(f"--average {count}: the run in {folder} has kept {kept} weights")
    average_last(model, folder, count, last)


def as_given(e: Experiment, device) -> None:
    """A plan that leaves all settings as they are."""


@dataclass(frozen=True)
class Task:
    """What a run learns; left as it is, to translate."""

    pairs: Callable = stream_pairs  # pairs(e, split): the texts
    validator: Callable = validator  # validator(e, tokenizer, count): model -> figures
    new_model: Callable = new_model  # new_model(e, device)
    plan: Callable = as_given  # plan(e, device) sets the model and the training of a new run


def announce(e: Experiment, model, tokenizer: Tokenizer, encoded) -> None:
    """Print what is going to be trained, and how long that may take."""
    print(f"{len(encoded):,} sentence pairs, {tokenizer.vocab_size:,} types, "
          f"{count_parameters(model):,} parameters")
    minutes = e.training.minutes
    if minutes and done_in(e)["seconds"] >= 60 * minutes:
        print(f"its {minutes:g} minutes are used up: to train further, give more with --minutes")
    print(f"plan: {e.training.updates:,} updates, {epochs_of(e, encoded):,.1f} epochs", flush=True)


def finish(model, e: Experiment, tokenizer: Tokenizer) -> None:
    """Leave the average of the weights that were kept, with what travels with a model."""
    average_last(model, e.folder, e.training.keep, last_update(e))
    model.about = About(*languages(e), *search_of("files" if e.source_file else e.corpus))
    save(model, e.folder, tokenizer)


def run_experiment(e: Experiment, command: str, count: int = 200, watch: Callable | None = None,
                   task: Task = Task()) -> bool:
    """Vocabulary, plan, training (validated on `count` pairs), average: a model in e.folder.

    command: the words that started it, for run.json. watch(log) is called after each validation.
    Started by torchrun, each process calls it.
    Returns True in the first of them. Raises ValueError or OSError for data, settings or a folder
    that cannot be used, Interrupted after Ctrl-C.
    """
    with processes(choose_device(e.device)) as device, ExitStack() as stack:
        if device.type == "cuda" and e.training.precision != "fp32":
            allow_tf32()
        with first_goes_ahead():
            if process_number() == 0:
                stack.enter_context(own_folder(e))
        if not e.resume:
            task.plan(e, device)
        tokenizer, encoded = open_run(e, command, device, task.pairs)
        model = task.new_model(e, device)
        with first_goes_ahead():  # it may have to download what is validated on
            validate = task.validator(e, tokenizer, count)
            validate = Watched(validate, watch) if watch else validate
        first = process_number() == 0
        if first:
            announce(e, model, tokenizer, encoded)
        try:
            fit(model, e, encoded, validate)
        except Interrupted:
            note_resumed(e, command, device)
            raise
        note_resumed(e, command, device)
        if first:
            finish(model, e, tokenizer)
        return first


def read_log(folder: Path) -> list[dict]:
    """The rows of a run's log, one dict a validation; none before the first."""
    path = Path(folder) / "log.jsonl"
    if not path.is_file():
        return []
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]
    except (ValueError, RecursionError):
        rows = [None]
    if not all(map(is_row, rows)):
        raise ValueError(f"{path} is not the log of a run: copy it again")
    return rows
