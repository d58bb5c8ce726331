"""Pair, sync and execute the notebooks; always from the project's root, where alone Jupytext works.

python tools/pairs.py pair 04_attention   make the pair from whichever side exists
python tools/pairs.py sync [04 ...]       the side of each pair that changed since the last commit, or
                                          since both were equal, wins; where both changed, neither
                                          does (--take notebook or --take module: this one)
python tools/pairs.py check               name the pairs whose sides differ; exit status 1 for any
python tools/pairs.py stale               name the notebooks whose code or shown results changed
python tools/pairs.py execute [04 ...]    execute those, or the ones named (--all: every one)

The pages of notebooks/evidence have no module: they are executed, and never synced.
"""

import argparse
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import jupytext
import nbformat
from jupytext.cli import jupytext as jupytext_command
from live_cells import tag_cells

IN_COLAB = (
    '"google.colab" in sys.modules'  # stands in the cell that installs the package
)
ROOT = Path(__file__).resolve().parent.parent
KERNEL = {
    "display_name": "Python 3 (ipykernel)",
    "language": "python",
    "name": "python3",
}
WIDGET = "application/vnd.jupyter.widget-view+json"
HEAVY = 1_000_000  # bytes
MEMORY = (
    ".pairs.json"  # hashes of the cells that both sides had when they were last equal
)


def notebooks(root=ROOT):
    """The numbered notebooks, in reading order."""
    return sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def evidence(root=ROOT):
    """The pages of evidence, which have no module."""
    return sorted((root / "notebooks" / "evidence").glob("[0-9][0-9]_*.ipynb"))


def is_evidence(notebook):
    return notebook.parent.name == "evidence"


def name_of(notebook):
    """04_attention; of a page of evidence evidence/04_attention"""
    return f"{'evidence/' * is_evidence(notebook)}{notebook.stem}"


def root_of(notebook):
    """The folder of the project that a notebook belongs to."""
    return notebook.parents[2 if is_evidence(notebook) else 1]


def module_of(notebook):
    """notebooks/04_attention.ipynb -> transformer/attention.py"""
    return notebook.parent.parent / "transformer" / f"{notebook.stem[3:]}.py"


def formats(stem):
    """What Jupytext must know of the pair 04_attention; the second // marks the folder."""
    return f"notebooks/{stem[:3]}/ipynb,transformer//py:percent"


def run_jupytext(root, *arguments):
    said = io.StringIO()
    with contextlib.chdir(root), contextlib.redirect_stdout(said):
        status = jupytext_command([*map(str, arguments)])
    if status:
        sys.exit(f"jupytext {' '.join(map(str, arguments))}:\n{said.getvalue()}")


def tidy(book, stem):
    """Keep what readers need and every machine writes alike: kernel, pairing, tags, outputs in one
    piece."""
    kept = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    if stem is not None:
        kept["jupytext"] = {"formats": formats(stem)}
    if "annotated_attention" in book.metadata:
        kept["annotated_attention"] = book.metadata["annotated_attention"]
    book.metadata = nbformat.from_dict(kept)
    for cell in book.cells:
        cell.metadata = nbformat.from_dict(
            {"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {}
        )
        outputs = []
        for output in cell.get("outputs", []):
            last = outputs[-1] if outputs else {}
            if output.output_type == "stream" and last.get("name") == output.name:
                last["text"] += output.text
            elif WIDGET not in output.get("data", {}):
                # a page that holds a model is for who runs the cell
                if len(output.get("data", {}).get("text/html", "")) > HEAVY:
                    del output["data"]["text/html"]
                outputs.append(output)
        if cell.cell_type == "code":
            cell.outputs = outputs
    return book


def write(book, path):
    """Write a notebook, and only where something changed (the date of a file decides which side is
    newer)."""
    stem = None if is_evidence(path) else path.stem
    text = nbformat.writes(tidy(book, stem)) + "\n"
    if not path.exists() or path.read_text(encoding="utf8") != text:
        path.write_text(text, encoding="utf8", newline="\n")


def contents(book):
    """(cell type, source, tags) of every cell."""
    return [
        (c.cell_type, c.source, tuple(c.metadata.get("tags", ()))) for c in book.cells
    ]


def cells(path):
    """The `contents` of a notebook or a module."""
    return contents(jupytext.read(path))


def tag_saved(model, path, contents_manager, **_):
    """Jupyter's hook before saving (`make edit`): tags, and notes what both sides now hold."""
    if model["type"] == "notebook" and re.fullmatch(
        r"notebooks/\d\d_\w+\.ipynb", path.strip("/")
    ):
        book = nbformat.from_dict(model["content"])
        tag_cells(book)
        for cell, tagged in zip(model["content"]["cells"], book.cells):
            cell["metadata"].update(tagged.metadata)
        remember(Path(contents_manager.root_dir), {Path(path).stem: book})


# Which side is newer


def digest(book):
    return hashlib.sha256(repr(contents(book)).encode()).hexdigest()[:16]


def memory(root):
    try:
        return json.loads((root / MEMORY).read_text(encoding="utf8"))
    except (OSError, ValueError):
        return {}


def remember(root, books):
    """Note what both sides of these pairs hold: {stem: notebook}."""
    known = memory(root)
    noted = {**known, **{stem: digest(book) for stem, book in books.items()}}
    if noted != known:
        (root / MEMORY).write_text(json.dumps(noted, indent=1), encoding="utf8")


def committed(path, root):
    """A side as the last commit has it; None where there is none."""
    name = path.relative_to(root).as_posix()
    command = ["git", "-C", str(root), "show", f"HEAD:./{name}"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf8")
    if done.returncode:
        return None
    return jupytext.reads(
        done.stdout, fmt="ipynb" if path.suffix == ".ipynb" else "py:percent"
    )


def unchanged(path, root, stem):
    """Whether a side is as in the last commit, or as both were when they were last equal."""
    now, before = jupytext.read(path), committed(path, root)
    if before is not None and contents(before) == contents(now):
        return True
    return digest(now) == memory(root).get(stem)


def side_to_believe(notebook, root):
    """The side that changed, where the sides of a pair differ; None where both did. Where there is
    nothing to compare with, as without git, the newer one, and the older is kept beside it."""
    sides = (notebook, module_of(notebook))
    found = [path for path in sides if not unchanged(path, root, notebook.stem)]
    if len(found) == 1:
        return found[0]
    if all(committed(path, root) is None for path in sides):
        older, newer = sorted(sides, key=lambda path: path.stat().st_mtime_ns)
        copy = older.with_name(f"{older.name}.old")
        shutil.copy(older, copy)
        print(f"nothing to compare {notebook.stem} with: kept {copy.relative_to(root)}")
        return newer
    return None


def set_header(module, stem):
    """Let the module's header name its notebook (first pairing, or a notebook that was renamed)."""
    text, date = module.read_text(encoding="utf8"), module.stat()
    header = (
        f"# ---\n# jupyter:\n#   jupytext:\n#     formats: {formats(stem)}\n# ---\n\n"
    )
    if not text.startswith(header):
        text = header + re.sub(r"\A# ---\n(#.*\n)*?# ---\n\n*", "", text)
        module.write_text(text, encoding="utf8", newline="\n")
        # its cells are no newer than they were
        os.utime(module, ns=(date.st_atime_ns, date.st_mtime_ns))


def pair(stem, root=ROOT):
    """Pair NN_noun, from whichever side is there."""
    notebook = root / "notebooks" / f"{stem}.ipynb"
    if not re.fullmatch(r"\d\d_[a-z][a-z0-9_]*", stem):
        sys.exit(f"{stem}: a notebook's name is NN_noun, such as 04_attention")
    if module_of(notebook).exists():
        set_header(module_of(notebook), stem)
    elif not notebook.exists():
        sides = (
            f"{notebook.relative_to(root)} nor {module_of(notebook).relative_to(root)}"
        )
        sys.exit(f"{stem}: neither {sides} is there")
    sync(root, [stem])


def make_missing_notebooks(root):
    """Make the notebook of each module that names one which is not there."""
    known = {module_of(notebook) for notebook in notebooks(root)}
    for module in sorted(set((root / "transformer").glob("*.py")) - known):
        header = re.match(
            r"# ---\n(?:#.*\n)*?#\s+formats: notebooks/(\d\d_)/ipynb",
            module.read_text(encoding="utf8"),
        )
        if header:
            notebook = root / "notebooks" / f"{header[1]}{module.stem}.ipynb"
            notebook.parent.mkdir(exist_ok=True)
            write(jupytext.read(module), notebook)
            print(
                f"made {notebook.relative_to(root)} from {module.relative_to(root)}: "
                "it has no outputs yet"
            )


def carry(path, root):
    """Write the other side of a pair from this one."""
    os.utime(path)  # Jupytext believes the newer file
    run_jupytext(root, "--sync", path.relative_to(root))


def lint(paths, root):
    """Order the imports, and give the files ruff's form, where ruff is there."""
    if importlib.util.find_spec("ruff"):
        for order in (["check", "--select", "I", "--fix-only"], ["format"]):
            command = [
                sys.executable,
                "-m",
                "ruff",
                *order,
                "--quiet",
                *map(str, paths),
            ]
            subprocess.run(command, cwd=root, check=False)


def write_both(notebook, side, root):
    """Write both sides of a pair as one of them says, each cell tagged and in ruff's form."""
    module = module_of(notebook)
    if side == module:
        carry(module, root)
    book = nbformat.read(notebook, as_version=4)
    tag_cells(book)
    write(book, notebook)
    lint([notebook], root)
    carry(notebook, root)
    lint([module], root)
    if cells(notebook) != cells(module):  # ruff has read the module's cells as one text
        carry(module, root)
    write(nbformat.read(notebook, as_version=4), notebook)


def sync_pair(notebook, root, take=None):
    """Bring both sides of a pair together; False where both changed and differ."""
    module = module_of(notebook)
    book, date = nbformat.read(notebook, as_version=4), notebook.stat()
    write(book, notebook)
    os.utime(notebook, ns=(date.st_atime_ns, date.st_mtime_ns))  # tidying is no edit
    if not module.exists():
        run_jupytext(
            root, "--set-formats", formats(notebook.stem), notebook.relative_to(root)
        )
        set_header(module, notebook.stem)
        write_both(notebook, notebook, root)
    set_header(module, notebook.stem)
    if cells(notebook) != cells(module):
        sides = {"notebook": notebook, "module": module}
        side = sides[take] if take else side_to_believe(notebook, root)
        if side is None:
            return False
        write_both(notebook, side, root)
        print(f"synced {notebook.stem} from {side.relative_to(root)}")
    elif tag_cells(book):
        write_both(notebook, notebook, root)
        print(f"tagged cells of {notebook.stem} that are not for the module")
    os.utime(
        module
    )  # Jupyter takes the inputs from the module where it is the newer side
    return True


def sync(root=ROOT, names=(), take=None):
    """Bring both sides of every pair together, or of those named; a missing side is made from the
    other. SystemExit names the pairs whose sides both changed: they are left as they are."""
    make_missing_notebooks(root)
    asked = [notebook for notebook in choose(names, root) if not is_evidence(notebook)]
    refused, equal = [], {}
    for notebook in asked if names else notebooks(root):
        if sync_pair(notebook, root, take):
            equal[notebook.stem] = nbformat.read(notebook, as_version=4)
        else:
            sides = (notebook, module_of(notebook))
            refused.append(" and ".join(str(path.relative_to(root)) for path in sides))
    remember(root, equal)
    if refused:
        sys.exit(
            "both sides changed since the last commit, and differ:\n"
            + "".join(f"  {pair}\n" for pair in refused)
            + "Nothing was written there. Compare them (git diff), then say which one holds: "
            "python tools/pairs.py sync NUMBER --take notebook (or module)"
        )


def code(text):
    """The lines with code, without comments that stand alone."""
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and line.lstrip()[0] != "#")


def imported(text, front):
    """What a text imports from inside the package, and all above it: for `from transformer.a.b
    import c` a, a.b and a.b.c.

    A name of the front door, whose text is given, stands for the module it comes from.
    """
    names = re.findall(r"import transformer\.([\w.]+)", text)
    for home, line in re.findall(
        r"from transformer\.?([\w.]*) import ([^()\n]+|\([^)]*\))", text
    ):
        for name in re.findall(r"\w+", line):
            found = re.search(
                rf"^from transformer\.(\S+) import {name} as", front, re.MULTILINE
            )
            home_of = found[1] if found and not home else home
            names.append(f"{home_of}.{name}".lstrip("."))
    parts = [name.split(".") for name in names]
    return {".".join(own[:n]) for own in parts for n in range(1, len(own) + 1)}


def code_hash(notebook):
    """A hash of the code that a notebook runs, cells and imports, and of the results it shows."""
    folder, seen = root_of(notebook) / "transformer", {}
    front = (folder / "__init__.pyi").read_text(encoding="utf8")
    book = nbformat.read(notebook, as_version=4)
    cells = [c.source for c in book.cells if c.cell_type == "code"]
    # The address of the repository changes no result
    text = code("\n".join(cell for cell in cells if IN_COLAB not in cell))
    waiting = imported(text, front)
    while waiting:
        name = waiting.pop()
        place = folder / name.replace(".", "/")
        paths = [place.with_suffix(".py"), place / "__init__.py"]
        if name not in seen:
            found = [path.read_text(encoding="utf8") for path in paths if path.exists()]
            seen[name] = code("\n".join(found))
            waiting |= imported(seen[name], front)
    runs = folder.parent / "data" / "runs"
    results = sorted(
        {
            path
            for name in re.findall(r'"(\w[\w*-]*)"', text)
            for path in runs.glob(f"{name}.json")
        }
    )  # read_rows("bench"), table("t*")
    whole = [text, *(seen[name] for name in sorted(seen) if seen[name])]
    whole += [path.read_text(encoding="utf8") for path in results]
    return hashlib.sha256("\n".join(whole).encode()).hexdigest()[:16]


def is_stale(notebook):
    book = nbformat.read(notebook, as_version=4)
    return book.metadata.get("annotated_attention", {}).get("code_hash") != code_hash(
        notebook
    )


def names_of(notebook):
    """What a notebook is called on a command line."""
    names = (notebook.stem, notebook.stem[:2])
    return [f"evidence/{name}" for name in names] if is_evidence(notebook) else names


def choose(names, root=ROOT):
    """The notebooks that are named, by number or stem (evidence/16: a page of evidence); a name
    that fits none stops everything."""
    there = [*notebooks(root), *evidence(root)]
    unknown = [name for name in names if not any(name in names_of(n) for n in there)]
    if unknown:
        sys.exit(
            f"no notebook {' or '.join(unknown)}: "
            "give its number, such as 04, or its name, 04_attention"
        )
    return [n for n in there if set(names_of(n)) & set(names)]


EXECUTE = (
    "--to",
    "notebook",
    "--execute",
    "--inplace",
    "--log-level=WARN",
    "--ExecutePreprocessor.record_timing=False",
    "--ExecutePreprocessor.kernel_name=python3",
    "--ExecutePreprocessor.timeout=600",
)


def execute(notebook):
    """Run a notebook top to bottom and keep its outputs; a failing cell leaves the file as it
    was."""
    # runs anywhere, but its readers should see torchtext at work
    if notebook.stem == "90_vocabulary":
        from transformer.vocabulary import why_not

        if why_not():
            print(
                f"{notebook.name}: left as it is; "
                "its outputs are made where torchtext works: make torchtext"
            )
            return
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    environment["TQDM_DISABLE"] = "1"  # a bar is for who waits, and no output to keep
    start = time.time()
    command = [sys.executable, "-m", "nbconvert", *EXECUTE, str(notebook)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(
            f"{done.stderr}\n{notebook.name} did not run to its end; the file is as it was"
        )
    book = nbformat.read(notebook, as_version=4)
    book.metadata["annotated_attention"] = {"code_hash": code_hash(notebook)}
    write(book, notebook)
    if not is_evidence(notebook):
        os.utime(module_of(notebook))
    print(f"{notebook.name}: {time.time() - start:.0f} s", flush=True)


def check(root):
    """What is wrong with the pairs, in a sentence; 0 where all are equal."""
    differing = [n.name for n in notebooks(root) if cells(n) != cells(module_of(n))]
    if differing:
        return f"not equal to their modules: {', '.join(differing)}: make sync"
    return 0


def arguments_of_command():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "command", choices=["pair", "sync", "check", "stale", "execute"]
    )
    parser.add_argument("names", nargs="*", help="notebooks, by number or name")
    parser.add_argument("--all", action="store_true", help="execute every notebook")
    parser.add_argument(
        "--take", choices=["notebook", "module"], help="the side that holds"
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="another copy of the project"
    )
    return parser.parse_args()


def main():
    arguments = arguments_of_command()
    root = arguments.root.resolve()
    pages = [*notebooks(root), *evidence(root)]
    if arguments.command == "pair":
        for name in arguments.names:
            pair(name, root)
    elif arguments.command == "sync":
        if arguments.take and not arguments.names:
            sys.exit("--take needs the number of a notebook, such as 04")
        sync(root, arguments.names, arguments.take)
    elif arguments.command == "check":
        sys.exit(check(root))
    elif arguments.command == "stale":
        stale = [n.name for n in pages if is_stale(n)]
        print("\n".join(stale) or "every notebook has run with this code")
    else:
        sync(root, arguments.names)
        due = [n for n in pages if arguments.all or is_stale(n)]
        for notebook in choose(arguments.names, root) or due:
            execute(notebook)


if __name__ == "__main__":
    main()
