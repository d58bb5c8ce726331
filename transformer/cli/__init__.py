"""The command line: train, evaluate, translate, chat, attend, checkup, variations, bench, export,
import, demo.

Each takes --import mine, which first imports a module of your own, mine.py in this folder or one
that is installed, so that kinds of models, corpora, recipes and schedules in it are known.
"""

import ast
import errno
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import cleandoc, getdoc
from pathlib import Path
from textwrap import fill
from typing import Any

from transformer.core.interrupt import Interrupted
from transformer.core.names import did_you_mean
from transformer.core.white_space import check_characters

PACKAGE = Path(__file__).parents[1]
# name: module and class
COMMANDS = {
    "train": "train:Train",
    "evaluate": "evaluate:Evaluate",
    "translate": "translate:Translate",
    "chat": "chat:Talk",
    "attend": "attend:Attend",
    "checkup": "checkup:Checkup",
    "variations": "variations:Variations",
    "bench": "bench:Speed",
    "export": "export:Export",
    "import": "export:Import",
    "demo": "demo:Demo",
}


IMPORT = (
    "--import mine, before or after the others, first imports mine.py in this folder, or an "
    "installed module of yours: what it registers is known then."
)


def command(name: str) -> type:
    """The class of a command, imported where it is needed."""
    module, _, attribute = COMMANDS[name].partition(":")
    return getattr(import_module(f"{__name__}.{module}"), attribute)


def import_own(name: str) -> None:
    """Import a module of the user's own, from this folder or installed; ValueError for none."""
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.append(folder)  # behind the others, whose names stay theirs
    try:
        import_module(name)
    except (ModuleNotFoundError, TypeError, ValueError) as error:
        missing = getattr(error, "name", None)
        if missing and name != missing and not name.startswith(f"{missing}."):
            raise  # of what the module itself imports
        raise ValueError(
            f"--import {name}: there is no such module in {folder} or installed; name "
            "mine.py as --import mine"
        ) from None


def without_imports(arguments: Sequence[str]) -> list[str]:
    """The arguments without --import, whose modules are imported."""
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        option, equals, name = argument.partition("=")
        if option == "--import":
            import_own(name if equals else next(waiting, ""))
        else:
            rest.append(argument)
    return rest


def described(named: type) -> str:
    """What the help of a command says before its options."""
    return f"{getdoc(named)}\n\n{IMPORT}"


def summary(name: str) -> str:
    """The first paragraph of a command's docstring, read without importing the command, and torch
    with it."""
    module, _, attribute = COMMANDS[name].partition(":")
    source = Path(__file__).with_name(f"{module}.py").read_text("utf8")
    (node,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == attribute
    )
    return " ".join(cleandoc(ast.get_docstring(node) or "").split("\n\n")[0].split())


class Overview:
    """What `transformer --help` says: every command in a sentence."""

    def run(self) -> None:
        print("usage: transformer [--version] [--import NAME] COMMAND [OPTIONS]")
        print(f"\n{__doc__}")
        for name in COMMANDS:
            print(fill(f"  {name:12}{summary(name)}", 88, subsequent_indent=" " * 14))
        print("\ntransformer COMMAND --help shows the options of one.")


def parse(arguments: Sequence[str]) -> Any:
    """The command that the arguments name, filled in, or the `Overview`; ValueError for none."""
    arguments = without_imports(arguments)
    name, rest = "".join(arguments[:1]), arguments[1:]
    if name in ("-h", "--help"):
        return Overview()
    if name not in COMMANDS:
        said = f"there is no command {name}{did_you_mean(name, COMMANDS)}: it is"
        raise ValueError(
            f"{said if name else 'name a command,'} one of {', '.join(COMMANDS)}; "
            "transformer --help says what each does"
        )
    if name == "train":
        from transformer.cli.train import Train, parse_train

        return parse_train(rest, described(Train))
    import tyro

    named = command(name)
    return tyro.cli(
        named,
        prog=f"transformer {name}",
        description=described(named),
        args=rest,
        config=(tyro.conf.FlagCreatePairsOff,),
    )


def of_gpu_memory(error: BaseException) -> bool:
    """Whether torch raised it because the GPU's memory is full."""
    return type(error).__name__ == "OutOfMemoryError"


def of_compiler(error: BaseException) -> bool:
    """Whether torch.compile raised it."""
    return type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))


def as_options(said: str) -> str:
    """What an error of the package says, with the options of the command line for arguments of
    Python: `source_file` becomes --source-file, `resume=True` --resume."""
    return re.sub(
        r"`([a-z_]+)(?:=True)?`", lambda m: "--" + m[1].replace("_", "-"), said
    )


def sentence_for(error: BaseException) -> str:
    """One sentence for a mistake in the input, and what to do about it."""
    if of_gpu_memory(error):
        return (
            "the GPU's memory is too small for this: half of --batch-tokens and twice "
            "--accumulate keep the updates as large"
        )
    if of_compiler(error):
        first = str(error).strip().partition("\n")[0]
        return (
            f"torch.compile cannot work here ({first}): leave out --compile, or install a C++ "
            "compiler"
        )
    if isinstance(error, MemoryError | RuntimeError):
        return "this needs more memory than there is: choose smaller sizes, or a smaller batch"
    if isinstance(error, KeyboardInterrupt):
        return "stopped by Ctrl-C; nothing that was saved is lost"
    if (
        isinstance(error, OSError) and error.strerror
    ):  # the system's own; ours are sentences
        where = error.filename or "standard input or output"
        return (
            f"{where} cannot be used ({error.strerror}): see what is there, then run the "
            "command again"
        )
    return str(error)


def check_arguments(arguments: list[str]) -> None:
    """ValueError for an argument that is not UTF-8."""
    for number, argument in enumerate(arguments, 1):
        check_characters(argument, f"argument {number}")


def out_of_memory(error: BaseException) -> bool:
    """True where torch or Python could not get the memory that something needs."""
    said = isinstance(error, RuntimeError) and (
        "allocate memory" in str(error) or "not enough memory" in str(error)
    )
    return said or isinstance(error, MemoryError) or of_gpu_memory(error)


def silence_output() -> None:
    """Let the end of Python, which writes what is left, find somewhere to write it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def plain_notes() -> Iterator[None]:
    """Inside the block this package's warnings are one line on standard error each, without a
    path and code; those of others, which are for programmers, stay as they are."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message, category, filename, *rest, **more):
            if category is UserWarning and Path(filename).is_relative_to(PACKAGE):
                print(f"transformer: {message}", file=sys.stderr)
            else:
                others(message, category, filename, *rest, **more)

        warnings.showwarning = show
        yield


def main() -> None:
    """Run a command; a mistake in the input gives one sentence on standard error and status 2."""
    with plain_notes():
        run_command()


def run_command() -> None:
    """Parse the arguments and run; see `main`."""
    if hasattr(
        sys.stdout, "reconfigure"
    ):  # a file of translations can be read again, on Windows
        sys.stdout.reconfigure(encoding="utf8")
    try:
        check_arguments(sys.argv[1:])
        parse(sys.argv[1:]).run()
        print(end="", flush=True)
    except BrokenPipeError:
        silence_output()
    except (
        OSError,
        Interrupted,
        ModuleNotFoundError,
        ValueError,
        KeyboardInterrupt,
        RuntimeError,
        MemoryError,
    ) as error:
        if isinstance(error, RuntimeError) and not (
            out_of_memory(error) or of_compiler(error)
        ):
            raise
        said = as_options(" ".join(sentence_for(error).splitlines()))
        print(f"transformer: {said}", file=sys.stderr)
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            silence_output()
        sys.exit(2)
