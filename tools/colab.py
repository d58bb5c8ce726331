"""Rehearse Colab: python tools/colab.py [folder], or make colab

1. Makes an environment as Colab's is: its IPython, kernel, numpy and matplotlib are there, torch is,
   and nothing else that the package wants.
2. Builds the wheel, and lets the install cell of a notebook install it, as a file that is uploaded.
   Nothing that was there may be replaced.
3. Executes some notebooks from top to bottom outside the checkout.
4. Opens them in Chromium, as HTML: widgets are drawn, and nothing is complained of.

The environment is made anew each time, in seconds where uv has the packages in its cache, and
stays for whoever wants to look into it (.venv-colab). It all takes some minutes.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pairs
import stamp
from nbclient import NotebookClient
from nbconvert import HTMLExporter

ROOT = pairs.ROOT
PYTHONS = ("3.12", "3.11")  # Colab's, and the one before it
# What Colab had in 2026, as far as notebooks need it; torch is the one of constraints.txt
THERE = (
    "ipython==7.34.0",
    "ipykernel==6.17.1",
    "jupyter-client==7.4.9",
    "tornado==6.5.1",
    "traitlets==5.7.1",
    "numpy==2.0.2",
    "matplotlib==3.10.0",
    "pandas==2.2.2",
    "scipy==1.16.3",
    "scikit-learn==1.6.1",
    "nltk==3.9.1",
    "requests==2.32.4",
    "tqdm==4.67.1",
    "filelock",
    "safetensors",
    "tokenizers",
)
MISSING = ("tyro", "pooch", "jupytext", "sacrebleu", "annotated-attention")
NOTEBOOKS = ("00", "04", "16", "19")
# google.colab as far as the install cell asks for it: whoever runs the cell chooses the wheel
FILES = """import os, pathlib, shutil

def upload():
    wheel = pathlib.Path(os.environ["REHEARSED_WHEEL"])
    shutil.copy(wheel, wheel.name)
    return {wheel.name: b""}
"""
# The browser has no network here; what it says of that is no fault of a page
OFFLINE = "network"


def run(*command, **options):
    """A command's output; the program ends with its last words where it fails."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, **options
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}"[-4000:])
    return done.stdout


# The environment


def torch_here():
    """How constraints.txt names torch: torch==2.13.0"""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf8").splitlines()
    return next(line for line in lines if line.startswith("torch=="))


def has_torch(version):
    """Whether there is a torch for a Python: a folder of wheels may hold one for another alone."""
    folder = os.environ.get("PIP_FIND_LINKS", "")
    wheels = list(Path(folder).glob("torch-*.whl")) if folder else []
    tag = f"cp{version.replace('.', '')}"
    return not wheels or any(tag in wheel.name for wheel in wheels)


def python_of_colab():
    """(version, program) of the Python to rehearse with."""
    for version in PYTHONS:
        places = [shutil.which(f"python{version}")]
        if shutil.which("uv"):
            asked = subprocess.run(
                ["uv", "python", "find", "--no-python-downloads", version],
                capture_output=True,
                text=True,
            )
            places.insert(0, asked.stdout.strip())
        if has_torch(version) and any(places):
            return version, next(filter(None, places))
    sys.exit(f"a rehearsal needs Python {' or '.join(PYTHONS)}")


def make_environment(folder):
    """The environment before anything of this project is in it; its Python."""
    shutil.rmtree(folder, ignore_errors=True)
    version, program = python_of_colab()
    run(program, "-m", "venv", folder)
    python = folder / "bin" / "python"
    wanted = [*THERE, torch_here()]
    if shutil.which("uv"):
        links = os.environ.get("PIP_FIND_LINKS")
        environment = os.environ | ({"UV_FIND_LINKS": links} if links else {})
        run("uv", "pip", "install", "--python", python, *wanted, env=environment)
    else:
        run(python, "-m", "pip", "install", *wanted)
    colab = Path(
        run(python, "-c", "import site; print(site.getsitepackages()[0])").strip()
    )
    (colab / "google" / "colab").mkdir(parents=True)
    (colab / "google" / "colab" / "__init__.py").write_text("", encoding="utf8")
    (colab / "google" / "colab" / "files.py").write_text(FILES, encoding="utf8")
    print(f"an environment with Python {version} and {torch_here()}")
    return python


def packages(python):
    """{name: version} of what is installed."""
    lines = run(python, "-m", "pip", "list", "--format=freeze").split()
    return dict(line.split("==") for line in lines)


# The notebooks


def kernel_in(folder, python, wheel):
    """Environment variables with which a kernel called colab runs in the environment."""
    kernel = folder / "jupyter" / "kernels" / "colab"
    kernel.mkdir(parents=True)
    start = f'["{python}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
    text = f'{{"argv": {start}, "display_name": "colab", "language": "python"}}'
    (kernel / "kernel.json").write_text(text, encoding="utf8")
    startup = folder / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text("import google.colab\n", encoding="utf8")
    kept = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MPLBACKEND")
    }
    return kept | {
        "JUPYTER_PATH": str(folder / "jupyter"),
        "IPYTHONDIR": str(folder / "ipython"),
        "REHEARSED_WHEEL": str(wheel),
        "TQDM_DISABLE": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def execute(notebook, folder):
    """Execute a copy of a notebook in the folder, with an upload in its install cell; the book."""
    book = nbformat.read(notebook, as_version=4)
    for cell in filter(stamp.is_install_cell, book.cells):
        cell.source = stamp.install_cell(stamp.PLACEHOLDER)
    client = NotebookClient(
        book,
        kernel_name="colab",
        timeout=900,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return book


def look(page, folder):
    """What Chromium complains of on a page, and how many widgets it drew there."""
    sys.path.insert(0, str(ROOT / "tests"))
    from browser import CHROMIUM, Browser

    if CHROMIUM is None:
        sys.exit(f"there is no Chromium here to look at {page}")
    browser = Browser(folder)
    try:
        browser.open(page)
        browser.run("new Promise(done => setTimeout(done, 2000))")
        frames = browser.run("document.querySelectorAll('iframe[srcdoc]').length")
        for number in range(frames):
            browser.run(
                "document.querySelectorAll('iframe[srcdoc]').forEach((frame, n) => "
                f"frame.toggleAttribute('data-looked-at', n === {number}))"
            )
            with browser.frame("iframe[data-looked-at]"):
                drawn = browser.run("document.body.querySelectorAll('*').length")
                if drawn < 10:
                    sys.exit(f"{page.name}: widget {number + 1} has drawn nothing")
        complaints = [
            complaint
            for complaint in browser.complaints
            if complaint.get("entry", {}).get("source") != OFFLINE
            and complaint.get("type") not in ("log", "info", "debug")
        ]
    finally:
        browser.close()
    return frames, complaints


def rehearse(python, wheel, names, folder):
    """Run and look at notebooks; the program ends at the first that fails."""
    os.environ.clear()
    os.environ.update(kernel_in(folder, python, wheel))
    before = packages(python)
    if here := set(MISSING) & set(before):
        sys.exit(f"Colab has no {', '.join(here)}")
    for number, notebook in enumerate(pairs.choose(names)):
        book = execute(notebook, folder)
        after = packages(python)
        replaced = {n: after.get(n) for n, v in before.items() if after.get(n) != v}
        if replaced:
            sys.exit(f"{notebook.name} replaces {replaced}, and had {before}")
        page = folder / f"{notebook.stem}.html"
        page.write_text(HTMLExporter().from_notebook_node(book)[0], encoding="utf8")
        frames, complaints = look(page, folder / f"profile-{number}")
        if complaints:
            sys.exit(f"{notebook.name}: {complaints}")
        print(f"{notebook.name}: executed; {frames} widgets drawn", flush=True)
    added = sorted(set(after) - set(before))
    print(f"installed: {', '.join(added)}; nothing was replaced")


def main(folder=ROOT / ".venv-colab", names=NOTEBOOKS):
    python = make_environment(folder.resolve())
    with TemporaryDirectory() as place:
        run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", place, ROOT)
        (wheel,) = Path(place).glob("*.whl")
        print(f"a wheel: {wheel.name}, {wheel.stat().st_size / 1e6:.0f} MB")
        work = Path(place, "content")
        work.mkdir()
        rehearse(python, wheel, names, work)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
