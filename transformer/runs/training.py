"""The loop of notebook 14 as runs of hours need it: resumed, in several processes, in short
numbers.

Objective, accumulation and rate are those of the plain loop; `tests/test_plain_training.py` holds
both together.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor, nn

from transformer import training
from transformer.core.checks import check_choice
from transformer.core.distributed import (
    check_share,
    copies_in_step,
    copy_from_first,
    from_first,
    own_share,
    process_group,
    rank,
    sum_on_device,
    sum_over_processes,
    watch_peers,
    world_size,
)
from transformer.core.interrupt import Interrupted, catch_interrupt
from transformer.core.settings import check_counts, check_fractions, check_positive
from transformer.core.weights import check_trainable
from transformer.data import collate
from transformer.fast.documents import way_on
from transformer.fast.loss import ChunkedLoss, SmoothedLoss
from transformer.fast.packing import Layout, pack
from transformer.hardware import (
    Meter,
    Precision,
    choose_precision,
    loss_scaler,
    matmul_precision,
    matmul_rate,
)
from transformer.optimizer import adam
from transformer.runs.batches import (
    epoch_batches,
    epoch_packs,
    packed_layout,
    token_batches,
)
from transformer.runs.encoded import check_pairs
from transformer.runs.monitor import (
    Clock,
    check_functions,
    check_weights,
    measure,
    progress_bar,
    show,
)
from transformer.runs.progress import Progress, Sense, monitor_of
from transformer.runs.saving import Saver
from transformer.runs.schedules import (
    check_schedule,
    function_of,
    keep_ratios,
    rate_of,
    warn_of_peak,
)
from transformer.runs.update import Objective, batch_seed, update_weights

READ_EVERY = 100  # updates on a GPU, at most, till their losses are read


@dataclass(frozen=True)
class TrainingConfig(training.TrainingConfig):
    """How to train: the paper's defaults (5). ValueError for a setting out of its range.

    Attributes:
        updates: weight updates in all
        batch_tokens: most tokens in a side of a batch, padding included
        accumulate: batches of one update, over all processes together: a multiple of their number
        warmup: updates during which the learning rate rises from 0 to its peak
        lr_scale: multiplies the paper's learning rate; 1 leaves it
        epsilon_ls: label smoothing, the share of probability that goes to all types (0: none)
        validate_every: updates between validations
        seed: of the order of the batches and of dropout; of a run's first weights, too
        packed: sentences back to back, batch_tokens a side without padding between: for GPUs
        minutes: stop after so many, validating and saving included; None sets no limit
        learning_rate: its peak; where None, the paper's formula gives it, times lr_scale
        schedule: the learning rate after its warm-up: inverse_sqrt (the paper's formula), linear or
            cosine (to 0 at the end), constant; in Python also a function of the update's number
        clip: largest norm of the gradient; None, as in the paper, clips nothing
        save_minutes: minutes between checkpoints, about what a killed run loses at most
        keep: how many of the last weights are kept, and averaged at the end
        patience: stop after so many validations without a better one; None never does
        restore_best: end with the weights of the best validation, in place of an average of the last
        monitor: the figure that tells which is better: bleu, validation_loss or one of your own;
            where None, BLEU, or where that is 0 or of few pairs the loss
        monitor_mode: max where more of it is better, min where less is; auto goes by its name,
            where that tells
        precision: of matrix products: fp32, bf16, fp16 or medium; auto takes bf16 or fp16 on a GPU,
            otherwise fp32 (notebook 11)
    """

    accumulate: int = 1
    packed: bool = False
    minutes: float | None = None
    learning_rate: float | None = None
    schedule: str | Callable[[int], float] = "inverse_sqrt"
    clip: float | None = None
    save_minutes: float = 10.0
    keep: int = 5
    patience: int | None = None
    restore_best: bool = False
    monitor: str | None = None
    monitor_mode: Sense = "auto"
    precision: Precision = "auto"

    def __post_init__(self):
        check_counts(self, "updates batch_tokens accumulate warmup keep patience")
        check_counts(self, "validate_every")
        check_schedule(self.schedule)
        check_choice("monitor_mode", self.monitor_mode, get_args(Sense))
        if self.monitor is None and self.monitor_mode != "auto":
            raise ValueError(
                "monitor_mode says in which sense a figure counts: name it with monitor"
            )
        check_positive(self, "minutes lr_scale learning_rate clip save_minutes")
        check_fractions(self, "epsilon_ls")
        choose_precision(torch.device("cpu"), self.precision)  # refuses an unknown name


def endless_batches(
    encoded,
    batch_tokens: int,
    seed: int,
    epoch: int = 0,
    index: int = 0,
    layout: Layout | None = None,
) -> Iterator[tuple[int, int, list[int]]]:
    """Yield (epoch, index, numbers of the batch's pairs) for ever.

    The seed decides the order; epoch and index are the place in it to begin from. layout: that of
    packed batches.
    """
    while True:
        order = training.epoch_seed(seed, epoch)
        if layout is None:
            batches = epoch_batches(encoded, batch_tokens, order, skip=index)
        else:
            batches = epoch_packs(encoded, layout, order, skip=index)
        for i, rows in enumerate(batches, index):
            yield epoch, i, rows
        epoch += 1
        index = 0


@torch.no_grad()
def validation_loss(
    model: nn.Module,
    encoded,
    batch_tokens: int = 4000,
    criterion: Callable | None = None,
) -> dict[str, float]:
    """{"validation_loss": cross-entropy on held-out pairs, nats a target token}.

    Without dropout, and without smoothing unless the criterion smooths. The mean is
    over all tokens of a target, also where a loss skips some (notebook 21).
    """
    model.eval()
    pad_id = model.config.pad_id
    device = next(model.parameters()).device
    objective = Objective(model, criterion or SmoothedLoss(0.0, pad_id))
    total = tokens = 0
    for rows in token_batches(encoded, batch_tokens):
        pairs = [encoded[i] for i in rows]
        total += objective(collate(pairs, pad_id).to(device)).item()
        tokens += sum(len(target) - 1 for _, target in pairs)
    return {"validation_loss": total / tokens}


def held_out_loss(model: nn.Module, encoded) -> dict[str, float]:
    """`validation_loss`, by the loss in chunks."""
    criterion = ChunkedLoss(0.0, model.config.pad_id)
    return validation_loss(model, encoded, criterion=criterion)


def share(
    encoded, picked: list, seed: int, update: int, make: Callable[[list], Any]
) -> list:
    """This process's batches of an update, with their seeds: [(seed, batch), ...].

    make(pairs): a `Batch`, or a packed one.
    """
    batches = []
    for number, (_, _, rows) in own_share(picked):
        batch = make([encoded[i] for i in rows])
        batches.append((batch_seed(seed, update, number), batch))
    return batches


def own_outputs(model: nn.Module) -> int | None:
    """How many entries a model's output has where it is not one for each id of the vocabulary."""
    entries = getattr(getattr(model, "output", None), "out_features", None)
    return None if entries == getattr(model.config, "vocab_size", None) else entries


def extended(config: training.TrainingConfig) -> TrainingConfig:
    """Settings of the plain loop, as those of this one."""
    if isinstance(config, TrainingConfig):
        return config
    return TrainingConfig(**vars(config))


class Trainer:
    """A training, begun anew or brought back to where its checkpoint found it; `run` goes on.

    optimizer(model): a torch optimizer, see `adam`; criterion: see `SmoothedLoss`. Of several
    processes the first one validates, logs, saves and calls callback(progress) after each update,
    and the others wait for it.
    """

    def __init__(
        self,
        model: Any,
        encoded,
        config: training.TrainingConfig,
        folder: Path | None = None,
        validate: Callable | None = None,
        resume: bool = False,
        *,
        criterion: Callable | None = None,
        optimizer: Callable | None = None,
        callbacks: Sequence[Callable] = (),
    ):
        check_pairs(encoded, model.config, outputs=own_outputs(model))
        check_share(config.accumulate)
        check_functions(validate, callbacks)
        self.model = model
        self.encoded = encoded
        self.config = config = extended(config)
        self.validate = validate
        self.callbacks = callbacks
        self.monitor = monitor_of(config)
        self.check_monitor()
        self.optimizer = (optimizer or adam)(model)
        keep_ratios(self.optimizer)
        self.saver = Saver(folder, model, self.optimizer, config.save_minutes)
        self.saver.prepare(resume)
        self.prepare(criterion)
        self.progress = self.brought_back() if resume else Progress()
        self.clock = Clock(self.progress.seconds)

    def check_monitor(self) -> None:
        """ValueError for a figure to watch that is known to be none before anything is trained."""
        self.monitor.check_sense()
        if self.watches() and self.validate is None:
            self.monitor.check({}, Progress().row({}))

    def watches(self) -> bool:
        """Whether a figure decides anything."""
        c = self.config
        return bool(c.patience or c.restore_best or c.monitor)

    def brought_back(self) -> Progress:
        """The progress that the checkpoint holds; which validation was the best, by what this run
        watches and has kept the weights of."""
        progress = self.saver.load(self.config.updates, self.scaler)
        progress.rank_all(self.monitor)
        if self.config.restore_best and progress.log:
            if not self.saver.has_best(progress.best_update()):
                progress.best = None  # the next one
        return progress

    def prepare(self, criterion: Callable | None) -> None:
        """What the device and the precision decide: the objective, the scale, the meter."""
        self.waiting: list[Tensor] = []  # losses and norms not read yet
        check_trainable(self.model)
        function_of(self.config.schedule)  # refused before the first update
        if rank() == 0:
            warn_of_peak(self.config, self.width())
        self.device = next(self.model.parameters()).device
        precision = choose_precision(self.device, self.config.precision)
        self.scaler = loss_scaler(self.device, precision)
        if criterion is None:
            pad_id = self.model.config.pad_id
            criterion = SmoothedLoss(self.config.epsilon_ls, pad_id)
        self.objective = copies_in_step(Objective(self.model, criterion, precision))
        self.prepare_batches(precision)
        peak = matmul_rate(self.device, precision) * world_size()
        self.meter = Meter(self.model.config, peak)

    def prepare_batches(self, precision: str) -> None:
        """What makes a batch of pairs; ValueError for a model that reads no packed ones."""
        pad_id = self.model.config.pad_id
        self.layout: Layout | None = None
        self.make_batch: Callable = partial(collate, pad_id=pad_id)
        if self.config.packed:
            if not getattr(self.model, "reads_packed", False):
                raise ValueError(
                    f"{type(self.model).__name__} reads no packed batches, the Transformer "
                    "does: train it without packed"
                )
            self.layout = packed_layout(self.encoded, self.config.batch_tokens)
            way = way_on(self.device, precision)
            self.make_batch = partial(pack, layout=self.layout, pad_id=pad_id, way=way)

    def width(self) -> int:
        """d_model; a model of one's own may have no such width."""
        return getattr(self.model.config, "d_model", 512)

    def run(self) -> list[dict]:
        """Do the updates that are left; the log, a dict of figures a validation.

        Ctrl-C waits for the end of an update. `LostPeer` where another process has ended.
        """
        with watch_peers():
            return self.finish()

    def finish(self) -> list[dict]:
        """See `run`."""
        config, done = self.config, self.progress
        place = done.epoch, done.index, self.layout
        stream = endless_batches(self.encoded, config.batch_tokens, config.seed, *place)
        self.bar = progress_bar(config.updates, done.update)
        with catch_interrupt() as self.signals, self.bar:
            with matmul_precision(config.precision):
                while self.goes_on():
                    self.update(list(islice(stream, config.accumulate)))
        return self.close()

    def goes_on(self) -> bool:
        """False when all is done, or somebody wants to stop: then for all processes alike."""
        done = rank() == 0 and self.progress.finished(self.config)
        if done and not self.progress.validated:  # stopped, or only to be wound up
            self.log_validation()
            self.call_back()
        return not sum_over_processes(bool(self.signals) or done)

    def update(self, picked: list) -> None:
        """Do an update with batches [(epoch, index, rows), ...], and what is due after it."""
        config = self.config
        number = self.progress.update + 1
        pairs = [self.encoded[i] for _, _, rows in picked for i in rows]
        tokens = sum(len(target) - 1 for _, target in pairs)
        batches = share(self.encoded, picked, config.seed, number, self.make_batch)
        rate = rate_of(config, number, self.width(), self.progress.seconds)
        method = self.objective, self.optimizer, self.scaler
        loss, norm = update_weights(*method, batches, tokens, rate, config.clip)
        self.waiting += sum_on_device(loss), norm
        self.progress.update = number
        self.progress.rate = rate
        self.progress.epoch, last, _ = picked[-1]
        self.progress.index = last + 1
        self.progress.tokens += tokens
        if self.figures_are_due():
            self.read_figures()
        self.progress.seconds = self.clock.read()
        self.meter.add(len(pairs), sum(len(source) for source, _ in pairs), tokens)
        self.bar.update()
        if rank() == 0:
            self.record()

    def figures_are_due(self) -> bool:
        """Whether loss and norm are to be read now: a GPU's host would wait for them each time."""
        asked = any(getattr(call, "reads_figures", True) for call in self.callbacks)
        update, config = self.progress.update, self.config
        due = update % config.validate_every == 0 or update >= config.updates
        return self.device.type == "cpu" or asked or due or update % READ_EVERY == 0

    def read_figures(self) -> None:
        """Count the updates whose loss and norm have not been read; `Diverged` after too many
        that were skipped."""
        waiting, self.waiting = self.waiting, []
        if waiting:
            figures = torch.stack(waiting).tolist()
            for loss, norm in zip(figures[::2], figures[1::2]):
                self.progress.count(loss, norm)

    def save(self, keep: int = 0) -> None:
        """Save all; with keep > 0 the weights, too, of which so many stay."""
        self.read_figures()
        self.progress.scaler = self.scaler.state_dict()
        self.saver.save(self.progress, keep)

    def record(self) -> None:
        """Log, validate and save every validate_every updates and at the end; every save_minutes
        only save; then the callbacks."""
        progress, config = self.progress, self.config
        if progress.finished(config) or progress.update % config.validate_every == 0:
            self.log_validation()
        elif self.saver.due():
            self.save()
        self.call_back()

    def log_validation(self) -> None:
        """Add a row to the log, with what `validate` measures, and save."""
        progress, config = self.progress, self.config
        self.read_figures()
        check_weights(self.model)
        row = progress.row(self.meter.read())
        row |= self.figures(row)
        progress.add(row, self.monitor)
        show(self.bar, row, self.device)
        if config.restore_best and progress.since_best == 0:
            self.saver.save_best(progress.update)
        # With patience, the weights before that many validations are the best
        waited = progress.since_best if config.patience else 0
        # A run that goes on after a stop averages what one without it would
        regular = progress.update % config.validate_every == 0
        stray = bool(progress.stopped) and not regular
        self.save(0 if stray else config.keep + waited)
        self.meter.restart()

    def call_back(self) -> None:
        """Tell the callbacks how far the run has come; where one fails all is saved first."""
        try:
            for callback in self.callbacks:
                callback(self.progress)
        except Exception:
            self.save()
            raise

    def figures(self, row: dict) -> dict:
        """What `validate` measures; where it fails all is saved first. See `measure`."""
        try:
            figures = measure(self.validate, self.model, row)
            if self.watches():
                self.monitor.check(figures, row)
            return figures
        except Exception:
            self.save()
            raise

    def close(self) -> list[dict]:
        """The log; where the run is not finished all is saved, and Interrupted says so."""
        done = rank() == 0 and self.progress.finished(self.config)
        if not sum_over_processes(done):  # the first alone knows of time
            if rank() == 0:
                self.save()
            # Wait: when one process leaves, torchrun stops the others, saving or not
            sum_over_processes(0)
            folder = self.saver.folder
            place = f", all saved in {folder}" if folder else ""
            raise Interrupted(f"stopped after update {self.progress.update}{place}")
        if rank() == 0:
            self.wind_up()
        if self.config.restore_best:
            copy_from_first(self.model)
        return from_first(self.progress.log)

    def wind_up(self) -> None:
        """Say in the log why a callback stopped, and take the best weights back."""
        progress = self.progress
        if progress.stopped:
            progress.log[-1]["stopped"] = progress.stopped
            self.save()
        if self.config.restore_best:
            self.saver.load_best(progress.best_update())


def train(
    model: nn.Module,
    encoded,
    config: training.TrainingConfig,
    folder: Path | None = None,
    validate: Callable | None = None,
    resume: bool = False,
    **parts: Any,
) -> list[dict]:
    """Train a model on encoded pairs; return the log, a dict of figures a validation.

    folder: where it is saved, and gone on with where `resume` is True. validate(model): figures by
    name, measured every `config.validate_every` updates and at the end. parts: criterion and
    optimizer, see `Trainer`, and callbacks: each is called with the `Progress` after each update,
    and can stop the training. On a GPU one that has `reads_figures = False` finds losses and norms
    up to `READ_EVERY` updates late, and the host need not wait for them:

        from transformer.runs.training import validation_loss

        def good_enough(progress):
            if progress.validated and progress.log[-1]["validation_loss"] < 1.5:
                progress.stop("the loss is below 1.5")

        def held_out(model):
            return validation_loss(model, encoded[:100])

        train(model, encoded[100:], config, validate=held_out, callbacks=[good_enough])

    The model is left in training mode, as it was trained: call `model.eval()` before you use it.
    Raises Interrupted (of `transformer.core.interrupt`) after Ctrl-C before the last update, and
    ValueError for pairs or a folder that do not fit, and where training diverges. Torch's generators
    are left as they were found.
    Started by torchrun, each process calls it with the same arguments, whose model is brought to
    the process's GPU; all get the log and the weights, and the first alone validates, saves and
    calls back.
    """
    there = next(model.parameters()).device
    with torch.random.fork_rng(seeded_gpus(model)), process_group(there) as device:
        if device != there:
            model.to(device)
        return Trainer(model, encoded, config, folder, validate, resume, **parts).run()


def seeded_gpus(model: nn.Module) -> set[int]:
    """The GPUs whose random numbers a training on a model's device decides."""
    devices = {p.device.index for p in model.parameters() if p.device.type == "cuda"}
    used = torch.cuda.is_initialized()
    return devices | ({torch.cuda.current_device()} if used else set())
