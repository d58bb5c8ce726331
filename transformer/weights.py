"""Weights in safetensors files, into a model's parameters and back."""

from pathlib import Path

import torch
from torch import nn

from transformer.files import existing, write_file


def count_parameters(model: nn.Module) -> int:
    """Learned numbers in a model; a matrix used three times counts once."""
    return sum(p.numel() for p in model.parameters())


def save_weights(
        tensors: dict[str, torch.Tensor], path: Path, metadata: dict | None = None) -> None:
    """Named tensors to a safetensors file, through a temporary name."""
    from safetensors.torch import save

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_file(path, lambda temporary: temporary.write_bytes(save(tensors, metadata)))


def load_weights(path: Path) -> tuple[dict[str, torch.Tensor], dict]:
    """Named tensors and metadata of a safetensors file; ValueError where it is damaged."""
    from safetensors import SafetensorError, safe_open

    existing(path, "train a model there first, or name another folder")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file ({error}): copy it again, "
                         "or use an earlier checkpoint of the run") from None


def load_parameters(model: nn.Module, tensors: dict[str, torch.Tensor], where: Path) -> None:
    """Copy named tensors into a model's parameters; ValueError where names or shapes differ."""
    own = dict(model.named_parameters())
    for name in sorted(own.keys() | tensors.keys()):
        if name not in own or name not in tensors or own[name].shape != tensors[name].shape:
            here, there = (tuple(t[name].shape) if name in t else "nothing" for t in (own, tensors))
            raise ValueError(f"{where} and the model do not fit: {name} is {there} in the file and "
                             f"{here} in the model; use the config.json that was saved with these "
                             "weights")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(tensors[name])
