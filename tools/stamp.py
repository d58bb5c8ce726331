"""Carry the repository's address from pyproject.toml to badges, install cells and the documents
that name it."""

import re
import sys
import tomllib

import nbformat
import pairs

ROOT = pairs.ROOT
CITED = re.compile(r"^repository-code: *(\S+)", re.MULTILINE)
DOCUMENTS = ("README.md", "CITATION.cff", "CONTRIBUTING.md", "CHANGELOG.md")
LIVE = re.compile(r"https://[\w-]+\.github\.io/[\w.-]+/live\.html")
BADGE_LINE = re.compile(r"^\[!\[Open in Colab\].*$", re.MULTILINE)


def address(root=ROOT):
    """The address in pyproject's project URLs, https://github.com/<owner>/<name>"""
    with open(root / "pyproject.toml", "rb") as file:
        url = tomllib.load(file)["project"]["urls"]["Repository"]
    if not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", url):
        sys.exit(f"pyproject.toml: Repository = {url!r} is not https://github.com/<owner>/<name>")
    return url


def live(url):
    """Where the site that GitHub publishes has the page that holds the model."""
    owner, name = url.removeprefix("https://github.com/").split("/")
    return f"https://{owner}.github.io/{name}/live.html"


def badge(url, notebook):
    """The line that opens this notebook in Colab."""
    repository = url.removeprefix("https://github.com/")
    picture = "https://colab.research.google.com/assets/colab-badge.svg"
    link = f"https://colab.research.google.com/github/{repository}/blob/main/notebooks/{notebook.name}"
    return f"[![Open in Colab]({picture})]({link})"


def install_cell(url):
    """The cell that installs the package, in Colab only."""
    return f'import sys\n\nif "google.colab" in sys.modules:\n    %pip install -q git+{url}'


def is_install_cell(cell):
    return cell.cell_type == "code" and '"google.colab" in sys.modules' in cell.source


def stamp_notebook(notebook, url):
    """Put the badge into the first cell and the install cell after it, or mend those that are
    there."""
    book = nbformat.read(notebook, as_version=4)
    title = book.cells[0]
    line = badge(url, notebook)
    if BADGE_LINE.search(title.source):
        title.source = BADGE_LINE.sub(lambda _: line, title.source)
    else:
        first, _, rest = title.source.partition("\n")
        title.source = "\n\n".join(part for part in (first, line, rest.strip("\n")) if part)
    for cell in book.cells:
        cell.source = LIVE.sub(live(url), cell.source)
    install = next((cell for cell in book.cells if is_install_cell(cell)), None)
    if install is None:
        install = nbformat.v4.new_code_cell()
        book.cells.insert(1, install)
    install.source, install.metadata = install_cell(url), nbformat.from_dict(
        {"tags": ["active-ipynb"]})
    pairs.write(book, notebook)


def main(root=ROOT):
    url = address(root)
    pairs.sync(root)
    old = CITED.search((root / "CITATION.cff").read_text(encoding="utf8"))[1]
    for path in (root / name for name in DOCUMENTS):
        text = path.read_text(encoding="utf8")
        for before, after in ((old, url), (old.removeprefix("https://"), url.removeprefix("https://")),
                              (old.removeprefix("https://github.com/"), url.removeprefix("https://github.com/"))):
            text = text.replace(before, after)
        text = LIVE.sub(live(url), text)
        path.write_text(text, encoding="utf8", newline="\n")
    for notebook in pairs.notebooks(root):
        stamp_notebook(notebook, url)
    pairs.sync(root)
    print(f"stamped {url}")


if __name__ == "__main__":
    main()
