"""Files: written through a temporary name, found in the checkout or in the installed package.

Nothing here knows the model.
"""

import json
import os
import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import escape as glob_escape
from pathlib import Path
from typing import Any

STALE = 3600  # seconds after which nobody is writing a temporary file any more


def sweep(folder: Path, pattern: str, seconds: float = STALE) -> None:
    """Remove the temporary files that killed processes have left in a folder."""
    for path in folder.glob(pattern):
        with suppress(OSError):  # another process was quicker, or still has it open
            if time.time() - path.stat().st_mtime >= seconds:
                path.unlink()


def write_file(path: str | Path, write: Callable[[Path], object]) -> None:
    """Call write(temporary path) and rename to path, so that a reader never meets half a file.

    OSError, naming the file, where it cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent, f".{glob_escape(path.name)}.*.part")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(temporary)
        os.replace(temporary, path)
    except Exception as error:
        if (
            isinstance(error, OSError)
            and error.errno
            and str(error.filename) in ("None", str(temporary))
        ):
            raise OSError(error.errno, error.strerror, str(path)) from error
        if type(error) is Exception and "os error" in str(
            error
        ):  # the tokenizers library's
            raise OSError(f"{path} cannot be written ({error})") from None
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Inside the block the folder is this process's own; OSError where another one has it.

    What killed processes have left there half written is removed.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise OSError(
            f"another process is training in {folder}: wait for its end, or name "
            "another `folder`"
        ) from None
    except NotImplementedError:  # some network drives know no locks
        yield
        return
    try:
        for pattern in (
            ".*.part",
            "weights/.*.part",
        ):  # not those of runs in other folders below
            sweep(folder, pattern, seconds=0)
        yield
    finally:
        with suppress(OSError):  # Windows keeps an open file
            (folder / ".lock").unlink()
        lock.release()


@contextmanager
def new_folder(folder: Path | str) -> Iterator[Path]:
    """A folder to write into, which gets its name once all is written; FileExistsError where there
    is one of this name."""
    folder = Path(folder)
    if folder.exists():
        raise FileExistsError(f"{folder} is there already: name a folder that is not")
    prepare_folder(folder.parent, "`output`")
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = Path(temporary, "new")
        made.mkdir()
        yield made
        made.rename(folder)


def existing(path: str | Path, otherwise: str) -> Path:
    """The path of a file; FileNotFoundError, saying what to do, where there is none."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"no file {path}: {otherwise}")
    return Path(path)


@contextmanager
def readable_as(what: str, path: str | Path, remedy: str) -> Iterator[None]:
    """Around what reads a file by the library tokenizers: ValueError, in one sentence, for errors.

    The library raises plain Exception, and panics, which are no Exception.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise ValueError(f"{path} is not {what} ({error}): {remedy}") from None


def read_bpe(text: str, path: str | Path, marks: Sequence[str]) -> Any:
    """The byte pairs in the text of a tokenizer.json that has these marks; ValueError, naming its
    path, where it is damaged."""
    from tokenizers import Tokenizer

    with readable_as("a tokenizer", path, "copy it again from the trained model"):
        bpe = Tokenizer.from_str(text)
    if any(bpe.token_to_id(mark) is None for mark in marks):
        raise ValueError(
            f"{path} lacks the marks {' '.join(marks)}: "
            "copy it again from the trained model"
        )
    return bpe


def load_bpe(path: str | Path, marks: Sequence[str]) -> Any:
    """The byte pairs in a tokenizer.json that has these marks.

    Raises FileNotFoundError or ValueError where it is missing or damaged.
    """
    path = existing(path, "a model's folder needs the tokenizer it was trained with")
    with readable_as("a tokenizer", path, "copy it again from the trained model"):
        text = path.read_text(encoding="utf8")
    return read_bpe(text, path, marks)


def data_folder() -> Path:
    """The checkout's data/ where the package runs from one, otherwise the installed copy."""
    package = Path(__file__).resolve().parent.parent
    checkout = package.parent / "data"
    return checkout if (checkout / "bundled").is_dir() else package / "_bundled"


def prepare_folder(folder: Path, option: str = "`folder`") -> None:
    """Make a folder and see that it can be written; OSError in one sentence otherwise."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OSError(
            f"cannot write to the folder {folder} ({error.strerror}): "
            f"name another with {option}"
        ) from None


def read_json(path: Path) -> Any:
    """What a file of JSON holds; ValueError, saying where it breaks, for something else."""
    return parse_json(path.read_text(encoding="utf8"))


def parse_json(text: str) -> Any:
    """What a text of JSON says; ValueError, saying where it breaks, for something else."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        what = (
            f"it breaks in line {error.lineno}, column {error.colno}"
            if error.doc
            else "empty"
        )
        raise ValueError(f"no whole JSON: {what}") from None
    except RecursionError:
        raise ValueError("its brackets nest too deep") from None


def write_json(path: str | Path, content: Any) -> None:
    """Write content as indented JSON, through a temporary name."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_file(path, lambda temporary: temporary.write_text(text, encoding="utf8"))


def git_commit() -> str | None:
    """The commit that the package was checked out at; None outside a checkout."""
    import subprocess

    try:
        command = [
            "git",
            "-C",
            str(data_folder().parent),
            "rev-parse",
            "--short",
            "HEAD",
        ]
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:  # no git here
        return None
    return done.stdout.strip() or None if data_folder().name == "data" else None


def processor() -> str:
    """The name of this machine's processor, as far as the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf8")
        found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()
