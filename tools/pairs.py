"""Pair, sync and execute the notebooks; always from the project's root, where alone Jupytext works.

python tools/pairs.py pair 04_attention   make the pair from whichever side exists
python tools/pairs.py sync [04 ...]       the newer side of each pair, or of those named, wins
python tools/pairs.py check               name the pairs whose sides differ; exit status 1 for any
python tools/pairs.py stale               name the notebooks whose code or shown results changed
python tools/pairs.py execute [04 ...]    execute those, or the ones named (--all: every one)
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import jupytext
import nbformat

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


def notebooks(root=ROOT):
    """The numbered notebooks, in reading order."""
    return sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def module_of(notebook):
    """notebooks/04_attention.ipynb -> transformer/attention.py"""
    return notebook.parent.parent / "transformer" / f"{notebook.stem[3:]}.py"


def formats(stem):
    """What Jupytext must know of the pair 04_attention; the second // marks the folder."""
    return f"notebooks/{stem[:3]}/ipynb,transformer//py:percent"


def run_jupytext(root, *arguments):
    command = [sys.executable, "-m", "jupytext", *map(str, arguments)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        sys.exit(
            f"jupytext {' '.join(map(str, arguments))}:\n{done.stdout}{done.stderr}"
        )


def tidy(book, stem):
    """Keep what readers need and every machine writes alike: kernel, pairing, tags, outputs in one
    piece."""
    kept = {
        "jupytext": {"formats": formats(stem)},
        "kernelspec": KERNEL,
        "language_info": {"name": "python"},
    }
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
    text = nbformat.writes(tidy(book, path.stem)) + "\n"
    if not path.exists() or path.read_text(encoding="utf8") != text:
        path.write_text(text, encoding="utf8", newline="\n")


def cells(path):
    """(cell type, source, tags) of every cell of a notebook or a module."""
    return [
        (c.cell_type, c.source, tuple(c.metadata.get("tags", ())))
        for c in jupytext.read(path).cells
    ]


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
    sync(root)


def sync(root=ROOT, names=()):
    """Bring both sides of every pair together, or of those named; a missing side is made from the
    other."""
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
    for notebook in choose(names, root) or notebooks(root):
        module = module_of(notebook)
        newer = max(
            filter(Path.exists, (notebook, module)),
            key=lambda path: path.stat().st_mtime_ns,
        )
        write(nbformat.read(notebook, as_version=4), notebook)
        if not module.exists():
            run_jupytext(
                root,
                "--set-formats",
                formats(notebook.stem),
                notebook.relative_to(root),
            )
        set_header(module, notebook.stem)
        if cells(notebook) != cells(module):
            os.utime(newer)  # tidying has touched the notebook
            run_jupytext(root, "--sync", newer.relative_to(root))
            write(nbformat.read(notebook, as_version=4), notebook)
            print(f"synced {notebook.stem} from {newer.relative_to(root)}")
        os.utime(
            module
        )  # Jupyter takes the inputs from the module where it is the newer side


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
    folder, seen = module_of(notebook).parent, {}
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


def choose(names, root=ROOT):
    """The notebooks that are named, by number or stem; a name that fits none stops everything."""
    unknown = [
        name
        for name in names
        if not any(name in (n.stem, n.stem[:2]) for n in notebooks(root))
    ]
    if unknown:
        sys.exit(
            f"no notebook {' or '.join(unknown)}: "
            "give its number, such as 04, or its name, 04_attention"
        )
    return [n for n in notebooks(root) if n.stem in names or n.stem[:2] in names]


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
    command = [
        sys.executable,
        "-m",
        "nbconvert",
        "--to",
        "notebook",
        "--execute",
        "--inplace",
        "--log-level=WARN",
        "--ExecutePreprocessor.record_timing=False",
        "--ExecutePreprocessor.kernel_name=python3",
        "--ExecutePreprocessor.timeout=600",
        str(notebook),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(
            f"{done.stderr}\n{notebook.name} did not run to its end; the file is as it was"
        )
    book = nbformat.read(notebook, as_version=4)
    book.metadata["annotated_attention"] = {"code_hash": code_hash(notebook)}
    write(book, notebook)
    os.utime(module_of(notebook))
    print(f"{notebook.name}: {time.time() - start:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "command", choices=["pair", "sync", "check", "stale", "execute"]
    )
    parser.add_argument("names", nargs="*", help="notebooks, by number or name")
    parser.add_argument("--all", action="store_true", help="execute every notebook")
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="another copy of the project"
    )
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    if arguments.command == "pair":
        for name in arguments.names:
            pair(name, root)
        return
    if arguments.command == "sync":
        sync(root, arguments.names)
    elif arguments.command == "check":
        differing = [n.name for n in notebooks(root) if cells(n) != cells(module_of(n))]
        sys.exit(
            f"not equal to their modules: {', '.join(differing)}: make sync"
            if differing
            else 0
        )
    elif arguments.command == "stale":
        print(
            "\n".join(n.name for n in notebooks(root) if is_stale(n))
            or "every notebook has run with this code"
        )
    else:
        sync(root, arguments.names)
        due = [n for n in notebooks(root) if arguments.all or is_stale(n)]
        for notebook in choose(arguments.names, root) or due:
            execute(notebook)


if __name__ == "__main__":
    main()
