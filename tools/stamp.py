"""Carry the repository's address from pyproject.toml to badges, install cells, links and the
documents that name it: python tools/stamp.py [address]

An address given as the argument is written into pyproject.toml first; without an argument, that of
git's origin is, if it is one at github.com. Until then a placeholder stands for it.
"""

import re
import sys
import tomllib

import nbformat
import pairs
from version import git

ROOT = pairs.ROOT
CITED = re.compile(r"^repository-code: *(\S+)", re.MULTILINE)
DOCUMENTS = (
    "README.md",
    "INSTALL.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "GUIDE.md",
    "CHANGELOG.md",
)
BADGE_LINE = re.compile(r"^\[!\[Open in Colab\].*$", re.MULTILINE)
GITHUB = "https://github.com/"
PLACEHOLDER = f"{GITHUB}OWNER/"
ORIGIN = r"(?:https://(?:[^@/]+@)?|ssh://git@|git@)github\.com[:/]"
# The first code cell of every notebook
INSTALL = """import sys

if {condition}:
    %pip install -q git+{url}"""
# The same while there is no address to install from
INSTALL_WHEEL = """import sys

if {condition}:
    # This book has no address yet. Upload its wheel: python -m pip wheel --no-deps .
    from google.colab import files

    wheel = next(iter(files.upload()))
    %pip install -q {{wheel}}"""


def checked(url, where):
    """The address without what a browser or git adds; the program ends where it is none."""
    found = re.fullmatch(rf"{GITHUB}([\w-]+/[\w.-]+?)(?:\.git)?/?", url)
    if not found:
        sys.exit(f"{where}: {url!r} is not {GITHUB}<owner>/<name>")
    return GITHUB + found[1]


def address(root=ROOT):
    """The address in pyproject's project URLs, https://github.com/<owner>/<name>"""
    with open(root / "pyproject.toml", "rb") as file:
        url = tomllib.load(file)["project"]["urls"]["Repository"]
    return checked(url, "pyproject.toml, Repository")


def origin(root=ROOT):
    """The address of git's origin if it is at GitHub; nothing for another, or for a folder that is
    no repository itself."""
    if not (root / ".git").exists():
        return None
    url = git(root, "remote", "get-url", "origin")
    found = re.match(ORIGIN, url)
    return checked(GITHUB + url[found.end() :], "git's origin") if found else None


def moved(text, old, new):
    """A text with the new address, that of its GitHub Pages, and the folder of a new clone."""
    (owner, name), (to, renamed) = (
        url.removeprefix(GITHUB).split("/") for url in (old, new)
    )
    for before, after in (
        (re.escape(f"{owner}/{name}"), f"{to}/{renamed}"),
        (
            rf"(?i:{re.escape(owner)})\.github\.io/{re.escape(name)}",
            f"{to.lower()}.github.io/{renamed}",
        ),
        (re.escape(f"&& cd {name}"), f"&& cd {renamed}"),
    ):
        text = re.sub(rf"{before}(?![\w-])", after, text)
    return text


def rewrite(path, old, new):
    """`moved`, in a file."""
    text = path.read_text(encoding="utf8")
    path.write_text(moved(text, old, new), encoding="utf8", newline="\n")


def badge(url, notebook):
    """The line that opens this notebook in Colab."""
    repository = url.removeprefix("https://github.com/")
    picture = "https://colab.research.google.com/assets/colab-badge.svg"
    path = notebook.relative_to(pairs.root_of(notebook)).as_posix()
    link = f"https://colab.research.google.com/github/{repository}/blob/main/{path}"
    return f"[![Open in Colab]({picture})]({link})"


def install_cell(url):
    """The cell that installs the package, in Colab only."""
    words = INSTALL_WHEEL if url.startswith(PLACEHOLDER) else INSTALL
    return words.format(condition=pairs.IN_COLAB, url=url)


def is_install_cell(cell):
    return cell.cell_type == "code" and pairs.IN_COLAB in cell.source


def stamp_notebook(notebook, url, old):
    """Put the badge into the first cell and the install cell after it, or mend those that are
    there; links to the old address follow."""
    book = nbformat.read(notebook, as_version=4)
    for cell in book.cells:
        cell.source = moved(cell.source, old, url)
    title = book.cells[0]
    line = badge(url, notebook)
    if BADGE_LINE.search(title.source):
        title.source = BADGE_LINE.sub(lambda _: line, title.source)
    else:
        first, _, rest = title.source.partition("\n")
        title.source = "\n\n".join(
            part for part in (first, line, rest.strip("\n")) if part
        )
    install = next((cell for cell in book.cells if is_install_cell(cell)), None)
    if install is None:
        install = nbformat.v4.new_code_cell()
        book.cells.insert(1, install)
    install.source, install.metadata = (
        install_cell(url),
        nbformat.from_dict({"tags": ["active-ipynb"]}),
    )
    pairs.write(book, notebook)


def main(root=ROOT, new=None):
    pairs.sync(root)
    old = CITED.search((root / "CITATION.cff").read_text(encoding="utf8"))[1]
    new = origin(root) if new is None else checked(new, "the new address")
    if new is not None:
        rewrite(root / "pyproject.toml", address(root), new)
    url = address(root)
    for name in DOCUMENTS:
        rewrite(root / name, old, url)
    for notebook in (*pairs.notebooks(root), *pairs.evidence(root)):
        stamp_notebook(notebook, url, old)
    pairs.sync(root)
    print(f"stamped {url}")


if __name__ == "__main__":
    main(ROOT, *sys.argv[1:2])
