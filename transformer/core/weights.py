"""Weights in safetensors files, into a model's parameters and back."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import nn

from transformer.core.files import existing, write_file


def count_parameters(model: nn.Module) -> int:
    """Learned numbers in a model; a matrix used three times counts once."""
    return sum(p.numel() for p in model.parameters())


def checksum(tensors: dict[str, torch.Tensor], metadata: dict) -> str:
    """SHA-256 over the names, types, shapes and bytes of tensors, and over what is said of them."""
    found = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def save_weights(
    tensors: dict[str, torch.Tensor], path: Path, metadata: dict | None = None
) -> None:
    """Named tensors to a safetensors file, through a temporary name, with a checksum.

    All that is said of them is one entry of the file's metadata: the library writes several in an
    order of chance.
    """
    from safetensors.torch import save

    tensors = {
        name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()
    }
    said = {key: value for key, value in (metadata or {}).items() if key != "sha256"}
    said = {"sha256": checksum(tensors, said), **said}
    # before safetensors 0.5 a file without tensors cannot say anything
    content = save(tensors, {"saved": json.dumps(said)} if tensors else None)
    write_file(path, lambda temporary: temporary.write_bytes(content))


def said_in(metadata: dict | None) -> dict:
    """What `save_weights` was told, and the checksum; other files have entries of their own."""
    metadata = metadata or {}
    return (
        dict(json.loads(metadata["saved"])) if "saved" in metadata else dict(metadata)
    )


def load_weights(path: Path) -> tuple[dict[str, torch.Tensor], dict]:
    """Named tensors and metadata of a safetensors file; ValueError where it is damaged, which a
    file without a checksum does not always tell.

    The metadata has "sha256" where the content is what `save_weights` wrote.
    """
    from safetensors import SafetensorError, safe_open

    existing(path, "train a model there first, or name another folder")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            metadata = said_in(file.metadata())
        said = {key: value for key, value in metadata.items() if key != "sha256"}
        if metadata.get("sha256") not in (None, checksum(tensors, said)):
            raise SafetensorError("its content has changed since it was written")
    except (SafetensorError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is not a whole safetensors file ({error}): copy it again, "
            "or use an earlier checkpoint of the run"
        ) from None
    return tensors, metadata


def weights_in(folder: Path) -> Path:
    """The safetensors file of a folder of the library transformers; ValueError where there is only
    a pickle, FileNotFoundError where there is nothing."""
    path, pickles = (
        folder / "model.safetensors",
        sorted(folder.glob("pytorch_model*.bin")),
    )
    if pickles and not path.is_file():
        raise ValueError(
            f"{pickles[0]} is a pickle, which can run programs and is not opened "
            "here: where you trust it, from_pretrained(FOLDER).save_pretrained(NEW) "
            "of the library transformers writes NEW/model.safetensors"
        )
    return existing(path, "weights are imported from one whole safetensors file")


HUGE = 1e18  # no weight comes near it


def check_dtypes(tensors: Mapping[str, torch.Tensor], where: object) -> None:
    """ValueError, naming the first, where weights are not stored as real numbers."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ValueError(
                f"{where}: {name} holds {tensor.dtype}, no weights; copy the file "
                "again from the trained model"
            )


def check_numbers(tensors: Mapping[str, torch.Tensor], where: object) -> None:
    """ValueError, naming the first, where weights are not real numbers of a usable size."""
    check_dtypes(tensors, where)
    for name, tensor in tensors.items():
        if not (tensor.abs() < HUGE).all():  # nor where one is not a number
            raise ValueError(
                f"{where}: {name} holds weights that are no usable numbers "
                "(nan, inf or huge): training has diverged, or the file is damaged; "
                "use an earlier checkpoint"
            )


def check_trainable(model: nn.Module) -> None:
    """ValueError for a model of which nothing is trained, or whose weights are short numbers."""
    parameters = dict(model.named_parameters())
    if not any(p.requires_grad for p in parameters.values()):
        raise ValueError(
            "all parameters of the model are frozen (requires_grad is False): let some "
            "be trained"
        )
    for name, p in parameters.items():
        if p.dtype in (torch.float16, torch.bfloat16):
            short = "fp16" if p.dtype == torch.float16 else "bf16"
            raise ValueError(
                f"{name} is in {p.dtype}, in which small updates are lost: train "
                f'model.float() with TrainingConfig(precision="{short}"), which '
                "multiplies in short numbers and keeps the weights in fp32"
            )


def check_fit(own: Mapping[str, torch.Tensor], tensors: dict, where: object) -> None:
    """ValueError where a model's parameters and named tensors differ in names or shapes."""
    for name in sorted(own.keys() | tensors.keys()):
        if (
            name not in own
            or name not in tensors
            or own[name].shape != tensors[name].shape
        ):
            here, there = (
                tuple(t[name].shape) if name in t else "nothing" for t in (own, tensors)
            )
            raise ValueError(
                f"{where} and the model do not fit: {name} is {there} in the file and "
                f"{here} in the model; use the config.json that was saved with these "
                "weights"
            )


def load_parameters(
    model: nn.Module,
    tensors: dict[str, torch.Tensor],
    where: Path,
    name_of: Callable[[str], str] = str,
    checked: bool = False,
) -> None:
    """Copy named tensors into a model's parameters; ValueError where names or shapes differ, or
    something is no number. What several parts share needs to be there under its first name only.

    name_of: what the file calls a parameter. checked: all were numbers when the file was written,
    and its checksum says that they are the same.
    """
    parameters = {name_of(name): p for name, p in model.named_parameters()}
    every = {
        name_of(name): p for name, p in model.named_parameters(remove_duplicate=False)
    }
    given = {name: every[name] for name in every.keys() & tensors.keys()}
    check_fit(parameters | given, tensors, where)
    (check_dtypes if checked else check_numbers)(tensors, where)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(tensors[name])
