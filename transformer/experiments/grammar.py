"""The grammar that drew the bundled corpus, for experiments that draw more: in a clone only."""

import sys
from importlib import import_module
from types import ModuleType

from transformer.core.files import data_folder


def grammar() -> ModuleType:
    """The module `corpus` of data/grammar; ValueError outside a clone, where it is not."""
    if not (data_folder() / "grammar").is_dir():
        raise ValueError(
            "pairs are drawn by the grammar in data/grammar: clone the repository"
        )
    sys.path.insert(0, str(data_folder()))
    return import_module("grammar.corpus")
