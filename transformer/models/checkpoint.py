"""A run's files: the checkpoint to go on from, the weights of its last validations, its log."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transformer.core.files import write_file
from transformer.core.protocol import check_plain
from transformer.core.weights import (
    HUGE,
    check_dtypes,
    check_numbers,
    load_parameters,
    load_weights,
    said_in,
    save_weights,
)


def plain(model: nn.Module) -> nn.Module:
    """The model itself, where torch.compile stands around it and gives its weights other names."""
    return getattr(model, "_orig_mod", model)


WRAPPERS = (
    "_orig_mod",
    "_checkpoint_wrapped_module",
)  # torch.compile's, and of checkpointing


def plain_name(name: str) -> str:
    """A parameter's or a module's name without those that wrappers around parts put into it."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def named_weights(model: nn.Module) -> dict[str, nn.Parameter]:
    """The model's parameters under their plain names, whatever parts are wrapped in."""
    return {plain_name(name): p for name, p in model.named_parameters()}


def save_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, progress: dict
) -> None:
    """What the next update depends on besides settings and corpus, in the safetensors format.

    That is the weights, the optimizer's state of each, and `progress`, plain numbers and lists
    that are kept as JSON (the place in the data among them). The model's configuration goes with
    it: some differ without any weight having another shape.
    """
    check_plain(model)
    tensors = {}
    for name, p in named_weights(model).items():
        tensors[f"model.{name}"] = p
        for key, value in optimizer.state.get(p, {}).items():
            if value is not None:
                tensors[f"optimizer.{key}.{name}"] = torch.as_tensor(value)
    metadata = {
        "progress": json.dumps(progress),
        "groups": json.dumps(groups_of(optimizer)),
        "config": json.dumps(asdict(model.config)),
        "optimizer": type(optimizer).__name__,
    }
    save_weights(tensors, path, metadata)


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> dict:
    """Put model and optimizer back as `save_checkpoint` found them; return its progress.

    Raises ValueError for a file that is cut off, of another configuration, or without a training
    state, FileNotFoundError where there is none.
    """
    tensors, metadata = load_weights(path)
    if "progress" not in metadata:
        raise ValueError(
            f"{path} holds weights but no training state: resume needs the "
            "checkpoint.safetensors of a run"
        )
    try:
        saved, progress = (
            json.loads(metadata[name]) for name in ("config", "progress")
        )
        check_config(path, dict(saved), json.loads(json.dumps(asdict(model.config))))
        groups = json.loads(metadata.get("groups", "null"))
    except (KeyError, TypeError, RecursionError, json.JSONDecodeError) as error:
        raise damaged(path, f"what it says of itself: {error}") from None
    weights, state = weights_and_state(tensors)
    load_parameters(model, weights, path, plain_name, checked="sha256" in metadata)
    check_state(path, state, weights)
    there, here = metadata.get("optimizer"), type(optimizer).__name__
    if there not in (None, here):
        raise ValueError(
            f"{path} is of a run with the optimizer {there}, not {here}: resume with "
            "the one it began with"
        )
    load_optimizer(model, optimizer, state)
    load_groups(path, optimizer, groups)
    return progress


def weights_and_state(tensors: dict) -> tuple[dict[str, torch.Tensor], dict[str, dict]]:
    """The weights in a checkpoint, and for each what the optimizer knows of it: nothing before the
    first update, or where it is not trained."""
    weights: dict[str, torch.Tensor] = {}
    state: dict[str, dict] = {}
    for full_name, tensor in tensors.items():
        kind, _, name = full_name.partition(".")
        if kind == "model":
            weights[name] = tensor
            continue
        key, _, name = name.partition(".")
        # not a part of the open file
        state.setdefault(name, {})[key] = tensor.clone()
    return weights, state


def load_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, dict]
) -> None:
    """Give an optimizer what it knew of the model's parameters, by their names."""
    names = {p: name for name, p in named_weights(model).items()}
    order = [names.get(p) for group in optimizer.param_groups for p in group["params"]]
    numbered = {
        number: state[name] for number, name in enumerate(order) if name in state
    }
    optimizer.load_state_dict({**optimizer.state_dict(), "state": numbered})


# How an optimizer computes on its device, and what it computes it for
NOT_KEPT = {"params", "fused", "foreach", "capturable", "differentiable"}


def plain_value(value: object) -> object:
    """What JSON can hold of a value in an optimizer's group: tensors as numbers."""
    return value.tolist() if isinstance(value, torch.Tensor) else value


def groups_of(optimizer: torch.optim.Optimizer) -> list[dict]:
    """What an optimizer keeps in its groups of parameters: settings, and the state of some."""
    return [
        {
            name: plain_value(value)
            for name, value in group.items()
            if name not in NOT_KEPT and is_plain(plain_value(value))
        }
        for group in optimizer.param_groups
    ]


def is_plain(value: object) -> bool:
    """Whether a value is one that JSON brings back: no function or the like."""
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def as_before(value: Any, now: object) -> Any:
    """A value from JSON in the type of the one that an optimizer's group holds now."""
    if isinstance(now, torch.Tensor):
        return torch.as_tensor(value, dtype=now.dtype, device=now.device)
    return tuple(value) if isinstance(now, tuple) else value


def load_groups(path: Path, optimizer: torch.optim.Optimizer, groups: Any) -> None:
    """Give an optimizer's groups what they held; ValueError where they are others.

    groups: None of a checkpoint from before they were kept.
    """
    if groups is None:
        return
    if not isinstance(groups, list) or not all(isinstance(g, dict) for g in groups):
        raise damaged(path, "groups are none")
    own = optimizer.param_groups
    if len(groups) != len(own):
        raise ValueError(
            f"{path} is of an optimizer with {len(groups)} groups of parameters, not "
            f"{len(own)}: resume with the one it began with"
        )
    for group, saved in zip(own, groups):
        for name, value in saved.items():
            now = group.get(name)
            try:
                found = as_before(value, now)
            except (RuntimeError, TypeError, ValueError):
                found = None
            wrong = not is_plain(value) or now is not None and not alike(found, now)
            wrong |= name == "betas" and not fractions(found)
            if name in NOT_KEPT or wrong:
                raise damaged(path, f"{name} of a group is {str(value)[:40]!r}")
            group[name] = found


def fractions(betas: object) -> bool:
    """Whether an optimizer's betas lie from 0 to below 1."""
    numbers = betas if isinstance(betas, (list, tuple)) else [betas]
    return all(isinstance(beta, (int, float)) and 0 <= beta < 1 for beta in numbers)


def alike(one: object, other: object) -> bool:
    """Whether two values are both numbers, or of one type."""
    numbers = (int, float)
    return (
        type(one) is type(other)
        or isinstance(one, numbers)
        and isinstance(other, numbers)
    )


def progress_in(path: Path) -> dict:
    """The progress of a checkpoint, without its weights; {} where it cannot be read, of which
    `load_checkpoint` says why."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return dict(json.loads(said_in(file.metadata())["progress"]))
    except (SafetensorError, KeyError, TypeError, ValueError):
        return {}


def damaged(path: Path, what: str) -> ValueError:
    """The ValueError for a checkpoint whose content cannot be."""
    return ValueError(
        f"{path} is no whole checkpoint ({what}): copy it again, or train anew in "
        "another folder"
    )


def check_state(path: Path, state: dict, weights: dict) -> None:
    """ValueError where an optimizer's state is of other parameters, or holds what no training
    leaves; where it is Adam's, also where its averages are not those of every parameter, or have
    other shapes."""
    kinds = {frozenset(some) for some in state.values() if any(map(is_average, some))}
    if not state.keys() <= weights.keys() or len(kinds) > 1:
        raise damaged(path, "parameters differ in what the optimizer knows of them")
    for name, some in state.items():
        for key, tensor in some.items():
            if is_average(key) and tensor.shape != weights[name].shape:
                raise damaged(path, f"{key} of {name} has another shape")
            if wrong := unusable(key, tensor):
                raise damaged(path, f"{key} of {name} holds {wrong}")


def unusable(key: str, tensor: torch.Tensor) -> str:
    """What is wrong with a value of an optimizer's state, in words; "" for nothing."""
    whole = is_average(key) and not tensor.is_floating_point()
    if whole or not tensor.isfinite().all():
        return "what is no number"
    if not (is_average(key) or key == "step"):
        return ""
    if not (tensor.abs() < HUGE).all():
        return "a number too large for any training"
    # a count of updates, or an average of squares
    least = 0 if key == "step" or "sq" in key else -HUGE
    return "" if (tensor >= least).all() else "a number below 0"


def is_average(key: str) -> bool:
    """Whether a name of an optimizer's state is that of one of Adam's moving averages."""
    return key.startswith("exp_avg")


def check_config(path: Path, saved: dict, config: dict) -> None:
    """ValueError, naming what differs, where a model of another configuration wrote it."""
    differ = [
        f"{name} is {saved.get(name)} there and {value} here"
        for name, value in config.items()
        if saved.get(name) != value
    ]
    if differ:
        raise ValueError(
            f"{path} is of another configuration ({', '.join(differ)}): resume with "
            "the settings the run began with"
        )


def check_buffers(model: nn.Module) -> None:
    """ValueError where a model holds something besides parameters that its files would lack."""
    every = model.named_parameters(remove_duplicate=False)
    parameters = {plain_name(name) for name, _ in every}
    if more := sorted({plain_name(name) for name in model.state_dict()} - parameters):
        raise ValueError(
            f"{more[0]} is a buffer, and only parameters are saved: make it one, or "
            "register it with persistent=False if it can be computed again"
        )


def check_folder(folder: Path | None, resume: bool) -> None:
    """ValueError where a run would be mixed with another one, or has nothing to go on from."""
    if folder is None:
        if resume:
            raise ValueError("resume=True needs the folder of the run to go on with")
    elif resume and not (Path(folder) / "checkpoint.safetensors").is_file():
        raise FileNotFoundError(
            f"{folder} has no checkpoint.safetensors to go on from: name the folder of "
            "the run, or begin with resume=False"
        )
    elif not resume and (Path(folder) / "checkpoint.safetensors").is_file():
        raise ValueError(
            f"{folder} already holds a run: go on with it (resume=True), "
            "or name another folder"
        )


def shared_names(model: nn.Module) -> dict[str, str]:
    """{further name of a shared parameter: the name under which it is saved}."""
    saved = {parameter: name for name, parameter in named_weights(model).items()}
    every = model.named_parameters(remove_duplicate=False)
    names = [(plain_name(name), parameter) for name, parameter in every]
    return {name: saved[p] for name, p in names if name != saved[p]}


def keep_weights(
    folder: Path, model: nn.Module, update: int, keep: int, under: str = "weights"
) -> None:
    """Save folder/weights/<update>.safetensors and delete all but the newest `keep`."""
    path = folder / under / f"{update:08d}.safetensors"
    save_weights(named_weights(model), path, {"shared": shared_names(model)})
    for old in sorted(path.parent.glob("*.safetensors"))[:-keep]:
        old.unlink()


def save_state(
    folder: Path | None,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    progress: dict,
    keep: int = 0,
) -> None:
    """Write a run's log, its checkpoint, and with keep > 0 the weights; nothing without a
    folder."""
    if folder is None:
        return
    log = "".join(json.dumps(row) + "\n" for row in progress["log"])
    write_file(
        Path(folder) / "log.jsonl",
        lambda temporary: temporary.write_text(log, encoding="utf8"),
    )
    if keep:
        keep_weights(Path(folder), model, progress["update"], keep)
    save_checkpoint(Path(folder) / "checkpoint.safetensors", model, optimizer, progress)


def shapes(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Size]:
    """{name: shape} of {name: tensor}."""
    return {name: tensor.shape for name, tensor in tensors.items()}


Weights = str | Path | dict[str, torch.Tensor]


def read_checkpoints(
    checkpoints: Iterable[Weights],
) -> Iterator[tuple[str, dict[str, torch.Tensor]]]:
    """What each is called in errors, and its {name: tensor}; a file that says which parameters
    were shared gives them under all of their names.

    ValueError for what is no number; a file with a checksum was looked through when it was written.
    """
    for number, checkpoint in enumerate(checkpoints, 1):
        if isinstance(checkpoint, (str, Path)):
            tensors, metadata = load_weights(Path(checkpoint))
            check = check_dtypes if "sha256" in metadata else check_numbers
            check(tensors, checkpoint)
            for name, saved in metadata.get("shared", {}).items():
                tensors[name] = tensors[saved]
            yield str(checkpoint), tensors
        else:
            check_numbers(checkpoint, f"checkpoint {number}")
            yield f"checkpoint {number}", checkpoint


def average_checkpoints(
    checkpoints: Weights | Iterable[Weights],
) -> dict[str, torch.Tensor]:
    """The mean of several checkpoints' weights, parameter by parameter (Section 6.1).

    checkpoints: files (of a run, or model.safetensors of several), of which one at a time is held,
    or {name: tensor}s. Returns {name: tensor}, float32 (float64 where they are), which fits the
    `load_state_dict` of the model, also where it ties matrices, which files hold once.
    Raises ValueError for no checkpoints at all, and for one whose names or shapes differ from the
    first's, or that holds no numbers.
    """
    if isinstance(checkpoints, (str, Path, dict)):
        checkpoints = [checkpoints]
    total: dict[str, torch.Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    first = ""
    count = 0
    for place, tensors in read_checkpoints(checkpoints):
        first = first or place
        if total and shapes(tensors) != shapes(total):
            raise ValueError(
                f"{place} is of another configuration than {first}: "
                "average the checkpoints of one run"
            )
        count += 1
        for name, tensor in tensors.items():
            total[name] = total.get(name, 0) + tensor.double()
            dtypes[name] = torch.promote_types(tensor.dtype, torch.float32)
    if not count:
        raise ValueError("no checkpoints to average: name at least one file")
    return {name: (tensor / count).to(dtypes[name]) for name, tensor in total.items()}
