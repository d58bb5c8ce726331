"""Trained models: made by their configuration, loaded from a folder."""

import shlex
from pathlib import Path

import torch

from transformer.convolution import ConvolutionalEncoderDecoder, ConvolutionConfig
from transformer.data import Tokenizer
from transformer.files import data_folder
from transformer.model import Transformer, TransformerConfig
from transformer.weights import count_parameters
from transformer.recurrence import RecurrenceConfig, RecurrentEncoderDecoder


MODELS = {TransformerConfig: Transformer, RecurrenceConfig: RecurrentEncoderDecoder, ConvolutionConfig: ConvolutionalEncoderDecoder}


def build(c):
    """The model of a configuration, with fresh weights."""
    return MODELS[type(c)](c)


def parameters_of(c):
    """How many parameters a model of configuration c has, without making it; ValueError for sizes that do not fit."""
    with torch.device("meta"):
        return count_parameters(build(c))


def load_tokenizer(folder, config):
    """The tokenizer in a model's folder; ValueError where it is another model's."""
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    if tokenizer.vocab_size != config.vocab_size:
        raise ValueError(f"{folder / 'tokenizer.json'} has {tokenizer.vocab_size} types and the model "
                         f"{config.vocab_size}: use the tokenizer that was saved with this model")
    return tokenizer


def bundled_folder():
    """The folder of the model that comes with the package."""
    return data_folder() / "models" / "bundled"


def load(folder=None, device="cpu"):
    """A trained model and its tokenizer (the bundled model where no folder is given).

    Raises FileNotFoundError or ValueError for a folder without a model, with an unfinished run, or with a damaged file.
    """
    folder = Path(folder or bundled_folder())
    if (folder / "checkpoint.safetensors").is_file() and not (folder / "config.json").is_file():
        raise ValueError(f"the run in {folder} is not finished; go on with: transformer train --resume --folder {shlex.quote(str(folder))}")
    model = Transformer.from_pretrained(folder)
    return model.to(device), load_tokenizer(folder, model.config)
