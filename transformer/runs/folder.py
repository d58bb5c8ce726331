"""The folder of a run: its settings, its lock, its log, the weights that it kept."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from transformer.core.distributed import rank, world_size
from transformer.core.files import (
    data_folder,
    git_commit,
    locked,
    prepare_folder,
    processor,
    read_json,
    write_json,
)
from transformer.core.records import renamed
from transformer.core.weights import load_parameters
from transformer.corpora.download import sum_of
from transformer.hardware import choose_precision
from transformer.models.checkpoint import average_checkpoints, progress_in
from transformer.models.families import family_named, family_of, registered
from transformer.runs.experiment import (
    Experiment,
    Sentences,
    files_of,
    languages,
)
from transformer.runs.progress import is_number, monitor_of, read_log
from transformer.runs.schedules import name_of
from transformer.runs.training import TrainingConfig

# Its settings


class UnknownFamily(Exception):
    """The family of a run's model is not registered; its settings are as they should be."""


def check_family(saved: dict) -> None:
    """`UnknownFamily` for a family that is a name, and none that is registered."""
    kind = saved.get("kind", "transformer")
    if isinstance(kind, str) and kind not in registered():
        raise UnknownFamily(kind)


def read_settings(folder: Path) -> dict:
    """What is in a folder's run.json; FileNotFoundError or ValueError where it is damaged."""
    path = folder / "run.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"no run in {folder}: name the folder of a training with `folder`"
        )
    try:
        saved = read_json(path)
        saved["training"] = renamed(saved["training"])
        check_family(saved)
        experiment_in(saved)
        return saved
    except UnknownFamily as error:
        raise ValueError(
            f"the run in {folder} is of the family {str(error)!r}, which is not registered: "
            "import the module that registers it first (on the command line --import); "
            f"known are {', '.join(registered())}"
        ) from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} does not hold the settings of a run ({error}): copy it again, "
            "or train anew in another `folder`"
        ) from None


TYPES = {
    "corpus": str | None,
    "source_file": str | None,
    "target_file": str | None,
    "source_language": str,
    "target_language": str,
    "reverse": bool,
    "init": str | None,
    "resumed": list,
    "held_out": str,
    "held_out_pairs": int | None,
}
HELD_OUT = "groups"  # how own files keep pairs from training: see `hold_out`


def experiment_in(saved: dict) -> Experiment:
    """The experiment of a run.json; AttributeError, KeyError, TypeError, ValueError for none."""
    for name, expected in TYPES.items():
        if name in saved and not isinstance(saved[name], expected):
            raise TypeError(f"{name} is {saved[name]!r}")
    files = {
        name: saved[name] and Path(saved[name])
        for name in ("source_file", "target_file")
    }
    names = ("reverse", "source_language", "target_language")
    more = {name: saved[name] for name in names if name in saved}
    config = family_named(saved.get("kind", "transformer")).config
    return Experiment(
        saved["corpus"],
        **files,
        **more,
        held_out=saved.get("held_out_pairs"),
        model=config(**saved["model"]),
        training=TrainingConfig(**saved["training"]),
    )


def load_run(folder: Path) -> Experiment:
    """The experiment in a folder, ready to resume; OSError or ValueError where there is none."""
    saved = read_settings(Path(folder))
    return replace(experiment_in(saved), folder=folder, resume=True)


def as_it_came_out(model: Any, types: int | None) -> Any:
    """A model's configuration with the types that a run's vocabulary came to, where as many or
    more were asked for: its texts may not have held so many."""
    if types is None or model.vocab_size <= types:
        return model
    return replace(model, vocab_size=types)


def continued(e: Experiment) -> Experiment:
    """An experiment that resumes, with the settings of the run in its folder for those that it was
    not given; a new one as it is."""
    if not e.resume:
        return e
    if e.given.whole():
        saved = read_settings(e.folder)["model"]
        return replace(e, model=as_it_came_out(e.model, saved.get("vocab_size")))
    saved = load_run(e.folder)
    model, training = e.given.settle(saved.model, saved.training)
    model = as_it_came_out(model, saved.model.vocab_size)
    return replace(
        saved,
        corpus=saved.corpus if e.corpus == "bundled" else e.corpus,
        source_file=e.source_file or saved.source_file,
        target_file=e.target_file or saved.target_file,
        held_out=e.held_out or saved.held_out,
        device=e.device,
        compile=e.compile,
        model=model,
        training=training,
    )


def hardware_in_words(device: torch.device, precision: str = "auto") -> str:
    """What a run works on, such as "2 x NVIDIA L4, torch 2.6.0, bf16"."""
    if device.type == "cuda":
        what = f"{world_size()} x {torch.cuda.get_device_name(device)}"
    elif device.type == "mps":
        what = f"the GPU of {processor()}"
    else:
        threads = torch.get_num_threads() * world_size()
        what = f"{threads} thread{'s' * (threads > 1)} of {processor()}"
    version = torch.__version__.partition("+")[0]
    return f"{what}, torch {version}, {choose_precision(device, precision)}"


def sums_of(e: Experiment) -> list[str] | None:
    """The checksums of an experiment's own files, source first."""
    if e.source_file is None:
        return None
    return [sum_of(path) for path in files_of(e, "train")]


def settings_of(e: Experiment, command: str, device: torch.device) -> dict:
    """What run.json keeps of an experiment."""
    source, target = languages(e)
    return {
        "command": command,
        "commit": git_commit(),
        "hardware": hardware_in_words(device, e.training.precision),
        "corpus": e.corpus,
        "reverse": e.reverse,
        "source_file": e.source_file and str(e.source_file.absolute()),
        "target_file": e.target_file and str(e.target_file.absolute()),
        "source_language": source,
        "target_language": target,
        "held_out_pairs": e.held_out,
        "init": None if e.init is None else str(e.init),
        "kind": family_of(e.model, own=True),
        "model": asdict(e.model),
        "training": asdict(e.training) | {"schedule": name_of(e.training.schedule)},
    }


def family_and_settings(e: Experiment) -> dict:
    """An experiment's settings by name, those of training among them."""
    return {"family": family_of(e.model), **vars(e), **vars(e.training)}


# what a resumed run has as it was
SAME = "corpus", "reverse", "held_out", "seed", "batch_tokens", "family"


def check_same_data(e: Experiment) -> None:
    """ValueError where an experiment resumes a run of other data, batches or kind of model. Own
    files may lie elsewhere by now; what is in them must be the same."""
    saved = read_settings(e.folder)
    sums = saved.get("sha256")
    there = family_and_settings(experiment_in(saved))
    here = family_and_settings(e)
    files = () if sums else ("source_file", "target_file")
    for name in (*files, *SAME):
        old, new = there[name], here[name]
        if name in files and Path(old or "").absolute() == Path(new or "").absolute():
            continue
        if old != new:
            raise ValueError(
                f"the run in {e.folder} has {name.replace('_', ' ')} {old}, not "
                f"{new}: resume it without that option, or name another `folder`"
            )
    if e.source_file is not None and saved.get("held_out") != HELD_OUT:
        raise ValueError(
            f"the run in {e.folder} kept the last hundredth of your files from training, "
            "and by now groups of equal sentences from all over them are kept: train "
            "anew in another `folder`"
        )
    if sums is not None and sums != sums_of(e):
        raise ValueError(
            f"your files are not what the run in {e.folder} began with: name those "
            "with `source_file` and `target_file`, or another `folder`"
        )


def held_out_pairs(e: Experiment) -> list[tuple[str, str]]:
    """The pairs that the run in an experiment's folder validates on; ValueError where its files
    have changed."""
    files_of(e, "validation")
    check_same_data(e)
    return list(Sentences(e)("validation"))


def note_resumed(e: Experiment, command: str, device: torch.device) -> None:
    """Write into run.json how a resumed run went on: by which command, code and hardware."""
    if not e.resume or rank() > 0:
        return
    saved = read_settings(e.folder)
    now = settings_of(e, command, device)
    again = {name: now[name] for name in ("command", "commit", "hardware")}
    names = (
        "training",
        "source_file",
        "target_file",
        "source_language",
        "target_language",
    )
    saved |= {name: now[name] for name in names}
    saved |= {"resumed": [*saved.get("resumed", []), again]}
    write_json(e.folder / "run.json", saved)


# Whose it is

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
        raise ValueError(
            f"{folder} already holds a run or a model: go on with the run (`resume=True`), "
            "or name another `folder`"
        )
    weights = kept_weights(folder)
    first = len(weights) == 1 and (folder / "run.json").is_file()
    if weights and not first:
        raise ValueError(
            f"{folder} holds weights, but no checkpoint to go on from: delete its "
            "folder weights, or name another `folder`"
        )


def has_begun(folder: Path) -> bool:
    """Whether a run has a checkpoint to go on from; one that was killed before its first has not,
    and begins.

    FileNotFoundError where there was one, by what else is there.
    """
    if (folder / "checkpoint.safetensors").is_file():
        return True
    if list(folder.glob("*.safetensors")) or len(kept_weights(folder)) > 1:
        raise FileNotFoundError(
            f"{folder} has no checkpoint.safetensors to go on from, and has weights: copy "
            "it again, or train anew in another `folder`"
        )
    return False


def init_of(e: Experiment) -> Path | str | None:
    """The model whose weights an experiment begins with; also of one that resumes a run which was
    stopped before its first checkpoint. None: random weights, or those of the checkpoint."""
    if not e.resume or has_begun(e.folder):
        return e.init
    return read_settings(e.folder).get("init")


@contextmanager
def reserved(e: Experiment) -> Iterator[None]:
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


# What training left there


def done_in(e: Experiment) -> dict:
    """The "update" and the "seconds" that a run goes on from; 0 of one that begins."""
    path = e.folder / "checkpoint.safetensors"
    done = progress_in(path) if e.resume and path.is_file() else {}
    begun = {"update": 0, "seconds": 0.0}
    # what is no number here is refused, in words, when the checkpoint is loaded
    return begun | {
        name: n for name, n in done.items() if name in begun and is_number(n)
    }


def kept_weights(
    folder: Path, until: int | None = None, of: str = "weights"
) -> list[Path]:
    """The weights that the run in folder kept, oldest first, up to those of update `until`; of the
    best validations with of="best"."""
    return [
        path
        for path in sorted(folder.glob(f"{of}/*.safetensors"))
        if until is None or path.stem.isdecimal() and int(path.stem) <= until
    ]


def average_last(
    model, folder: Path, count: int, until: int | None = None
) -> list[int]:
    """Give a model the average of the last `count` weights that the run in folder kept; the updates
    that these are of.

    Those after update `until` are left out.
    """
    last = kept_weights(folder, until)[-count:]
    load_parameters(model, average_checkpoints(last), folder, checked=True)  # each was
    return [int(path.stem) for path in last]


def last_update(e: Experiment) -> int | None:
    """The update whose weights count as a run's last; None: simply the last.

    That of the best validation where the run stops early (`patience`).
    """
    if not e.training.patience:
        return None
    rows = read_log(e.folder)
    return monitor_of(e.training).best(rows)["update"] if rows else None


def take_average(model, folder: Path, count: int) -> None:
    """Give a model the average of a run's last `count` weights; ValueError where it kept fewer."""
    last = last_update(load_run(folder))
    kept = len(kept_weights(folder, last))
    if not 1 <= count <= kept:
        raise ValueError(
            f"--average {count}: the run in {folder} has kept {kept} weights"
        )
    average_last(model, folder, count, last)
