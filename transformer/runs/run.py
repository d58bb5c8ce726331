"""A training run from beginning to end: its vocabulary, its updates, the model that it leaves."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transformer.core.distributed import (
    LostPeer,
    check_share,
    process_group,
    rank,
    rank_zero_first,
    world_size,
)
from transformer.core.files import prepare_folder, write_file, write_json
from transformer.core.interrupt import Interrupted
from transformer.core.protocol import About
from transformer.core.scores import bleu
from transformer.core.weights import count_parameters, load_parameters
from transformer.corpora.tokenizer import Tokenizer
from transformer.corpora.windows import lengths_of
from transformer.data import encode_pairs
from transformer.fast.packed import compile_stacks
from transformer.fast.training import fast_training
from transformer.hardware import allow_tf32, choose_device
from transformer.models.checkpoint import named_weights
from transformer.models.families import build_fast
from transformer.models.pretrained import (
    check_memory,
    folder_named,
    load_model,
    load_tokenizer,
    read_tokenizer,
    save,
)
from transformer.models.search import translate
from transformer.runs.batches import epochs_in_memory
from transformer.runs.encoded import check_pairs, fitting
from transformer.runs.experiment import (
    Experiment,
    Sentences,
    encoded_training,
    fitted,
    languages,
    on_disk,
    stream_pairs,
)
from transformer.runs.folder import (
    HELD_OUT,
    average_last,
    check_same_data,
    check_unused,
    continued,
    done_in,
    has_begun,
    init_of,
    kept_weights,
    last_update,
    note_resumed,
    reserved,
    settings_of,
    sums_of,
)
from transformer.runs.held_out import write_held_out
from transformer.runs.monitor import Forecast, check_functions, figures_in
from transformer.runs.own_files import plan_files
from transformer.runs.progress import Progress, monitor_of
from transformer.runs.recipes import search_of
from transformer.runs.training import TrainingConfig, held_out_loss, train

# validation pairs that tell whether the average is better than the last weights: 100 have told wrong
AT_END = 1000

# What a run does; a task may put something else in each place


def validation_pairs(
    e: Experiment, tokenizer: Tokenizer, sentences: Sentences, count: int
) -> tuple[list, list]:
    """The texts and the ids of the first `count` validation pairs.

    What is too long for the model is left out where the corpus is on disk, as from training.
    Elsewhere it is refused; of own files any, as `evaluate` scores all that were kept.
    """
    most = None if e.source_file else count
    pairs = list(islice(sentences("validation"), most))
    encoded = encode_pairs(tokenizer, pairs)
    if on_disk(e):
        rows = fitting(encoded, e.model, "validation ")[:count]
        return [pairs[i] for i in rows], [encoded[i] for i in rows]
    kept = f"of your files' {len(pairs)} pairs that are kept for validation, "
    part = kept if e.source_file else "validation "
    check_pairs(encoded, e.model, part, sentences.lines("validation"))
    return pairs[:count], encoded[:count]


def make_validator(
    e: Experiment, tokenizer: Tokenizer, sentences: Sentences, count: int
) -> Callable:
    """validate(model) for `train`: loss and greedy BLEU on the first `count` validation pairs.

    ValueError where one is too long; see `validation_pairs`.
    """
    pairs, encoded = validation_pairs(e, tokenizer, sentences, count)
    sources, references = zip(*pairs)

    def validate(model):
        figures = held_out_loss(model, encoded)
        if model.initial_state is None:  # it writes nothing
            return figures
        outputs = translate(model, tokenizer, sources, beam=1)
        into = languages(e)[1]
        score = bleu(outputs, references, language=into).score
        return {**figures, "bleu": score, "validation_pairs": len(pairs)}

    return validate


def new_model(e: Experiment, device: torch.device):
    """The experiment's model with fresh weights, which its seed decides, or with those of the
    model that it begins with; fast, on the device."""
    torch.manual_seed(e.training.seed)
    model = build_fast(e.model)
    init = init_of(e)
    if init is not None:
        folder = folder_named(init)
        load_parameters(model, named_weights(load_model(folder)), folder)
    model = model.to(device)
    return compile_stacks(model, not e.training.packed) if e.compile else model


@dataclass(frozen=True)
class Task:
    """What a run learns; left as it is, to translate."""

    pairs: Callable = stream_pairs  # pairs(e, split): the texts
    make_validator: Callable = make_validator  # of (e, tokenizer, sentences, count)
    new_model: Callable = new_model  # new_model(e, device)
    plan: Callable = plan_files  # of a new run: (e, sentences, device) -> e


# A figure of one's own


def validator_of(
    e: Experiment,
    tokenizer: Tokenizer,
    sentences: Sentences,
    count: int,
    task: Task,
    own: Callable | None,
) -> Callable:
    """validate(model) of a task; it measures what own(model, tokenizer, pairs) gives, too."""
    validate = task.make_validator(e, tokenizer, sentences, count)
    if own is None:
        return validate
    pairs = list(islice(sentences("validation"), count))

    def both(model) -> dict:
        figures = figures_in(validate(model), {})
        return figures | figures_in(own(model, tokenizer, pairs), figures)

    return both


def validators_of(
    e: Experiment,
    tokenizer: Tokenizer,
    sentences: Sentences,
    count: int,
    task: Task,
    own: Callable | None,
) -> tuple[Callable, Callable]:
    """`validator_of` on `count` pairs, for the training, and on `AT_END` or more, for the choice
    of weights after it."""
    during = validator_of(e, tokenizer, sentences, count, task, own)
    most = max(count, AT_END)
    return during, validator_of(e, tokenizer, sentences, most, task, own)


def checked(
    e: Experiment, task: Task, validate: Callable | None, callbacks: Sequence[Callable]
) -> Experiment:
    """An experiment, `continued`; ValueError for functions that are none, for a figure to watch
    whose sense is not known, or that nothing measures, as far as that can be known before a run."""
    check_functions(validate, callbacks)
    e = continued(e)
    monitor = monitor_of(e.training)
    monitor.check_sense()
    if monitor.name and validate is None and task.make_validator is make_validator:
        measured = dict.fromkeys(("validation_loss", "bleu", "validation_pairs"), 0.0)
        monitor.check(measured, Progress().row({}))
    return e


# Begin, go on, finish


def note_held_out(e: Experiment, sentences: Sentences) -> None:
    """Write down which pairs of own files are kept from training, and print what is to be said."""
    pairs = sentences("validation") if e.source_file else ()
    if sentences.divided is not None:
        write_held_out(e.folder, sentences.divided.held_out, pairs)
        print(*sentences.divided.report.sentences(), sep="\n", flush=True)


def new_tokenizer(e: Experiment, sentences: Sentences) -> Tokenizer:
    """The vocabulary of a new run: that of the model it begins with, or learned from its texts."""
    if e.init is not None:
        return load_tokenizer(folder_named(e.init), e.model)
    texts = (text for pair in sentences("train") for text in pair)
    return Tokenizer.train(texts, e.model.vocab_size)


def delete_weights(folder: Path) -> None:
    """Delete what a run that was killed before its first checkpoint has kept."""
    for left in [*kept_weights(folder), *kept_weights(folder, of="best")]:
        left.unlink()


def begin(
    e: Experiment, sentences: Sentences, command: str, device: torch.device
) -> tuple[Experiment, Tokenizer]:
    """Save the vocabulary of a new run (`new_tokenizer`) and its settings."""
    check_unused(e.folder)
    delete_weights(e.folder)
    prepare_folder(e.folder)
    tokenizer = new_tokenizer(e, sentences)
    e = fitted(e, tokenizer)
    check_memory(e.model)
    write_file(e.folder / "tokenizer.json", tokenizer.save)
    note_held_out(e, sentences)
    held_out = {"held_out": HELD_OUT} if e.source_file else {}
    settings = settings_of(e, command, device) | {"sha256": sums_of(e)} | held_out
    write_json(e.folder / "run.json", settings)
    return e, tokenizer


def resume(e: Experiment) -> tuple[Experiment, Tokenizer]:
    """Check a run that goes on, and read its vocabulary; one without a checkpoint begins."""
    check_same_data(e)
    if not has_begun(e.folder):
        delete_weights(e.folder)
    check_memory(e.model)
    return e, load_tokenizer(e.folder, e.model)


def open_run(
    e: Experiment, sentences: Sentences, command: str, device: torch.device
) -> tuple[Experiment, Tokenizer]:
    """Begin a new run, or check a resumed one; the other processes join the first."""
    with rank_zero_first():
        if e.resume:
            return resume(e)
        if rank() == 0:
            return begin(e, sentences, command, device)
        path = e.folder / "tokenizer.json"
        tokenizer, _ = read_tokenizer(path)
        return fitted(e, tokenizer), tokenizer


def epochs_of(e: Experiment, encoded) -> float:
    """Epochs that a run comes to: from the batches of one, or for pairs on disk from the lengths of
    the first 200,000, where every batch counts as full, which is some per cent too high.
    """
    if isinstance(encoded, list):
        return epochs_in_memory(e.training, encoded)
    rows = range(min(len(encoded), 200_000))
    lengths = np.maximum(*lengths_of(encoded, rows))
    pairs = e.training.accumulate * e.training.batch_tokens / lengths.mean()
    return e.training.updates * pairs / len(encoded)


def say_where(e: Experiment) -> None:
    """Print from where a resumed run goes on."""
    if has_begun(e.folder):
        said = f"goes on after update {done_in(e)['update']:,}"
    else:
        said = "has no checkpoint yet: it begins, as it was set"
    print(f"the run in {e.folder} {said}", flush=True)


def announce(e: Experiment, model, tokenizer: Tokenizer, encoded) -> None:
    """Print, in the first process, what is going to be trained, and how long that may take."""
    if rank() > 0:
        return
    print(
        f"{len(encoded):,} sentence pairs, {tokenizer.vocab_size:,} types, "
        f"{count_parameters(model):,} parameters"
    )
    minutes = e.training.minutes
    if minutes and done_in(e)["seconds"] >= 60 * minutes:
        print(
            f"its {minutes:g} minutes are used up: to train further, give more with "
            "--minutes"
        )
    epochs = epochs_of(e, encoded)
    plan = f"plan: {e.training.updates:,} updates, {epochs:,.1f} epochs"
    plan += f", validation every {e.training.validate_every:,}"
    if world_size() > 1:
        batches = e.training.accumulate
        plan += f"; {batches} batches an update, over {world_size()} processes"
    print(plan, flush=True)
    if e.resume:
        say_where(e)
    if watching := monitor_of(e.training).sentence():
        print(watching, flush=True)


def imports_in(command: str) -> str:
    """The --import of a command, such as " --import mine", for the one that is to follow it."""
    given = shlex.split(command)
    names = [name for word, name in pairwise(given) if word == "--import"]
    names += [word.partition("=")[2] for word in given if word.startswith("--import=")]
    return "".join(f" --import {shlex.quote(name)}" for name in names)


def fit(
    model, e: Experiment, encoded, validate: Callable, callbacks=(), command: str = ""
) -> list[dict]:
    """Train the model of an experiment by the fast parts; a stop says how to go on. See `train`."""
    parts: dict[str, Any] = fast_training(e.training, e.model)
    parts["callbacks"] = [Forecast(e.training, done_in(e)), *callbacks]
    resume = e.resume and has_begun(e.folder)
    try:
        return train(model, encoded, e.training, e.folder, validate, resume, **parts)
    except LostPeer:
        raise
    except Interrupted as stop:
        folder = shlex.quote(str(e.folder))
        how = f"transformer train{imports_in(command)} --resume --folder {folder}"
        if not command:
            how = f'run_experiment(Experiment(folder="{e.folder}", resume=True))'
        raise Interrupted(f"{stop}; go on with: {how}") from None


@contextmanager
def noted(e: Experiment, command: str, device: torch.device) -> Iterator[None]:
    """After the block, also where it was stopped, run.json says how a resumed run went on."""
    try:
        yield
    except Interrupted:
        note_resumed(e, command, device)
        raise
    note_resumed(e, command, device)


def out_of_patience(config: TrainingConfig, log: list[dict]) -> str:
    """Why a run ended before its updates and minutes were used up; "" where they were."""
    late = config.minutes is not None and log[-1]["seconds"] >= 60 * config.minutes
    if config.patience is None or log[-1]["update"] >= config.updates or late:
        return ""
    monitor = monitor_of(config)
    best = monitor.figure(monitor.best(log))
    return (
        f"patience is used up, validations without a better {best}: {config.patience}"
    )


def choice_in_words(e: Experiment, log: list[dict]) -> str:
    """Which weights a run that watches its validations ends with, and by which figure."""
    monitor = monitor_of(e.training)
    row = monitor.best(log)
    update = row["update"]
    figure = monitor.in_words(row)
    if e.training.restore_best:
        return f"restore_best: the weights of update {update}, which has {figure}"
    return f"patience: the weights up to update {update} count, which has {figure}"


def listed(updates: list[int]) -> str:
    """Such as "300, 350 and 400"."""
    *first, last = map(str, updates)
    return f"{', '.join(first)} and {last}" if first else last


def average(model, e: Experiment, log: list[dict], measure: Callable) -> None:
    """Give a model the average of the weights that were kept, if that validates no worse than the
    last of them: after few updates it can, as its weights are then far apart."""
    last = last_update(e)
    updates = average_last(model, e.folder, e.training.keep, last)
    if len(updates) < 2:
        return
    figures = figures_in(measure(model), {})
    average_last(model, e.folder, 1, last)
    row = next(row for row in log if row["update"] == updates[-1])
    row = row | figures_in(measure(model), {})
    averaged = row | figures
    monitor = monitor_of(e.training)
    said = f"the average of the weights of updates {listed(updates)}"
    if monitor.score(averaged) >= monitor.score(row):
        average_last(model, e.folder, e.training.keep, last)
        print(f"the model is {said}")
        return
    name = monitor.figure(row)
    print(
        f"{said} has a {name} of {averaged[name]:.4g}, and the last have {row[name]:.4g}: "
        "the model has the last"
    )


def finish(model, e: Experiment, log: list[dict], measure: Callable) -> None:
    """Leave the best weights, which training restored, those at which a callback stopped, or the
    `average` of those that were kept, with what travels with a model."""
    stopped = log[-1].get("stopped")
    if why := stopped or out_of_patience(e.training, log):
        print(f"stopped after update {log[-1]['update']}: {why}")
    if e.training.restore_best or e.training.patience and not stopped:
        print(choice_in_words(e, log))
    elif stopped:
        print("the model has the weights of that update: none are averaged")
    if not e.training.restore_best and not stopped:
        average(model, e, log, measure)
    beam, alpha = search_of("files" if e.source_file else e.corpus)
    model.about = About(*languages(e), beam, alpha)
    save(model, e.folder)


def settle_process(e: Experiment, device: torch.device) -> None:
    """See that each process has its share of an update, and let a GPU multiply in tf32."""
    check_share(e.training.accumulate)
    if device.type == "cuda" and e.training.precision != "fp32":
        allow_tf32()


def run_experiment(
    e: Experiment,
    command: str = "",
    count: int = 200,
    callbacks: Sequence[Callable] = (),
    task: Task = Task(),
    validate: Callable | None = None,
) -> Experiment | None:
    """Vocabulary, plan, training (validated on `count` pairs), average: a model in e.folder.

    command: the words that started it, for run.json. callbacks: see `train`. validate: a function
    that gives figures of your own, beside those of the task:

        def exact(model, tokenizer, pairs):  # the pairs of texts that are validated on
            written = translate(model, tokenizer, [source for source, _ in pairs], beam=1)
            right = [text == target for text, (_, target) in zip(written, pairs)]
            return {"exact": sum(right) / len(right)}

        run_experiment(e, validate=exact)  # training={"monitor": "exact"} goes by it

    A function that is handed in is not kept with the run: give it again where the run is resumed.
    Of own files, `held_out.tsv` in the folder has the pairs that were kept to validate on: line of
    the files, source, target.

    Started by torchrun, each process calls it. Returns the experiment as it was run, in the first of them.
    Raises ValueError or OSError for data, settings or a folder that cannot be used, Interrupted
    (of `transformer.core.interrupt`) after Ctrl-C.
    """
    e = checked(e, task, validate, callbacks)
    with process_group(choose_device(e.device)) as device, ExitStack() as stack:
        settle_process(e, device)
        with rank_zero_first():
            if rank() == 0:
                stack.enter_context(reserved(e))
        sentences = Sentences(e, task.pairs)
        e = e if e.resume else task.plan(e, sentences, device)
        e, tokenizer = open_run(e, sentences, command, device)
        with rank_zero_first():  # it may have to download what is validated on
            encoded = encoded_training(e, tokenizer, sentences)
            of_data = e, tokenizer, sentences
            of_count, at_end = validators_of(*of_data, count, task, validate)
        del sentences
        model = task.new_model(e, device)
        announce(e, model, tokenizer, encoded)
        with noted(e, command, device):
            log = fit(model, e, encoded, of_count, callbacks, command)
        if rank() > 0:
            return None
        finish(model, e, log, at_end)
        return e
