"""A model's folder: kind, configuration, weights, tokenizer, and what else travels with it."""

import json
import shlex
from dataclasses import asdict
from functools import cache
from pathlib import Path

import torch
from torch import nn

from transformer.data import Tokenizer
from transformer.files import data_folder, existing, write_file, write_json
from transformer.protocol import About, about, build, kind_named, kind_of
from transformer.weights import count_parameters, load_parameters, load_weights, save_weights


def bundled_folder(name: str = "bundled") -> Path:
    """The folder of a model that comes with the package: the translator's, or "chat"."""
    return data_folder() / "models" / name


@cache
def parameters_of(config) -> int:
    """How many parameters a model of this configuration has, without making it.

    ValueError for sizes that do not fit. (torch's `meta` device has shapes and no numbers.)
    """
    with torch.device("meta"):
        return count_parameters(build(config))


def save(model: nn.Module, folder: Path | str, tokenizer: Tokenizer | None = None) -> None:
    """Write config.json, model.safetensors and, with a tokenizer, tokenizer.json.

    config.json comes last: a folder that has one is complete.
    """
    folder = Path(folder)
    save_weights(dict(model.named_parameters()), folder / "model.safetensors")
    if tokenizer is not None:
        write_file(folder / "tokenizer.json", tokenizer.save)
    write_json(folder / "config.json", {
        "kind": kind_of(model), "about": asdict(about(model)), "config": asdict(model.config)})


def read_config(path: Path) -> tuple:
    """(configuration, `About`) in a config.json.

    FileNotFoundError or ValueError where it is missing or damaged.
    """
    existing(path, "name the folder of a trained model")
    try:
        saved = json.loads(path.read_text(encoding="utf8"))
        config = kind_named(saved["kind"]).config
        return config(**saved["config"]), About(**saved["about"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a model's configuration ({error}): copy it again from "
                         "the trained model") from None


def load_model(folder: Path, **parts) -> nn.Module:
    """The model in a folder, in evaluation mode, built from other parts where they are given."""
    config, model_about = read_config(folder / "config.json")
    model, path = build(config, **parts), folder / "model.safetensors"
    load_parameters(model, load_weights(path)[0], path)
    model.about = model_about
    return model.eval()


def load_tokenizer(folder: Path, config) -> Tokenizer:
    """The tokenizer in a model's folder; ValueError where it is another model's."""
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    if tokenizer.vocab_size != config.vocab_size:
        raise ValueError(
            f"{folder / 'tokenizer.json'} has {tokenizer.vocab_size} types and the model "
            f"{config.vocab_size}: use the tokenizer that was saved with this model")
    return tokenizer


def load(folder: Path | str | None = None, device: str | torch.device = "cpu",
         **parts) -> tuple[nn.Module, Tokenizer]:
    """A trained model and its tokenizer (the bundled model where no folder is given).

    Raises FileNotFoundError or ValueError for a folder without a model, with an unfinished run,
    or with a damaged file.
    """
    folder = Path(folder or bundled_folder())
    unfinished = (folder / "checkpoint.safetensors").is_file()
    if unfinished and not (folder / "config.json").is_file():
        raise ValueError(f"the run in {folder} is not finished; go on with: transformer train "
                         f"--resume --folder {shlex.quote(str(folder))}")
    model = load_model(folder, **parts)
    return model.to(device), load_tokenizer(folder, model.config)
