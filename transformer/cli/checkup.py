"""transformer checkup: what is wrong with a Transformer of one's own."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, util
from pathlib import Path
from types import ModuleType

import tyro

from transformer.core.files import prepare_folder, write_json
from transformer.core.names import did_you_mean


@dataclass
class Checkup:
    """Examine a model of your own in a minute: leaks, plumbing, its loss, and what it learns. The
    exit status is 1 where something was found."""

    model: tyro.conf.Positional[str]
    """a file and a function in it that makes the model: mine.py:build_model; the model takes ids
    of source and target, (B, S) and (B, T), and gives scores (B, T, V)"""
    loss: str | None = None
    """a function of the same file, loss(model, source, target), on targets with begin and end"""
    accumulate: str | None = None
    """a function of the same file, accumulate(model, batches), which leaves the gradient of one
    update of several batches"""
    ids: tuple[int, int, int] = (0, 1, 2)  # of padding, begin and end
    learn: bool = True  # also train it, which takes most of the minute
    seed: int = 0  # of the sentences with which it is examined
    html: Path | None = None  # write the report as a page for a browser, too
    json: Path | None = None  # write the report as data, too

    def run(self) -> None:
        from transformer.doctor.examination import checkup

        for path, option in ((self.html, "--html"), (self.json, "--json")):
            if path is not None:
                prepare_folder(path.parent, option)
        build, module = function_named(self.model)
        functions = {
            name: function_in(module, self.model, value)
            for name, value in (("loss", self.loss), ("accumulate", self.accumulate))
            if value is not None
        }
        known = dict(ids=self.ids, learn=self.learn, seed=self.seed)
        report = checkup(made(build, self.model), **functions, **known)
        print(report)
        if self.html is not None:
            from transformer.views.checkup import checkup_page

            checkup_page(report).save(self.html)
        if self.json is not None:
            write_json(self.json, report.data())
        if not report.healthy:
            sys.exit(1)


def function_named(place: str) -> tuple[Callable, ModuleType]:
    """The function that mine.py:build_model names, and its module; ValueError for none."""
    file, colon, name = place.rpartition(":")
    if not colon or not file or not name:
        raise ValueError(
            f"{place!r} names no function: write a file and a function in it, "
            "mine.py:build_model"
        )
    module = module_of(file)
    return function_in(module, place, name), module


def function_in(module: ModuleType, place: str, name: str) -> Callable:
    """A function of a module; ValueError, naming those that are there, for none."""
    function = getattr(module, name, None)
    if not callable(function):
        there = [n for n, v in vars(module).items() if callable(v) and n[0] != "_"]
        file = place.rpartition(":")[0]
        raise ValueError(
            f"{file} has no function {name}{did_you_mean(name, there)}: it has "
            f"{', '.join(there) or 'none at all'}"
        )
    return function


def module_of(file: str) -> ModuleType:
    """The module in a file, or of a dotted name; ValueError where it cannot be imported."""
    path = Path(file)
    if path.suffix == ".py" and not path.is_file():
        raise ValueError(f"no file {file}: name the one that makes your model")
    try:
        if path.suffix != ".py":
            return import_module(file)
        sys.path.append(str(path.parent.resolve()))  # for what stands beside it
        spec = util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)
        spec.loader.exec_module(module)
        return module
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{file} cannot be imported ({type(error).__name__}: {said}): see that "
            f"python {file} runs"
        ) from None


def made(build: Callable, place: str) -> Callable:
    """The model that a function makes; ValueError where it fails."""
    try:
        return build()
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{place} fails when called without arguments ({type(error).__name__}: "
            f"{said}): give all of them defaults"
        ) from None
