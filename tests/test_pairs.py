"""Pairs of notebook and module: equal, synced from either side; the repository's address."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import jupytext
import live_cells
import nbformat
import pairs
import pytest
import stamp

ROOT = pairs.ROOT
NOTEBOOKS = pairs.notebooks()
PACKAGE_FILES = ("transformer/__init__.pyi", "pyproject.toml")

each_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=pairs.name_of)
each_page = pytest.mark.parametrize(
    "notebook", [*NOTEBOOKS, *pairs.evidence()], ids=pairs.name_of
)


def read(notebook):
    return nbformat.read(notebook, as_version=4)


@each_notebook
def test_both_sides_are_equal(notebook):
    module = pairs.module_of(notebook)
    assert pairs.cells(notebook) == pairs.cells(module), "make sync"
    for side in (notebook, module):
        formats = jupytext.read(side).metadata.jupytext.formats
        assert formats == pairs.formats(notebook.stem), f"{side.name}: make sync"
    assert read(notebook).metadata.get("kernelspec") == pairs.KERNEL, "make sync"


def copied(root, notebooks):
    """A copy of some pairs, and of what the tools ask for besides."""
    modules = map(pairs.module_of, notebooks)
    for path in (*map(ROOT.joinpath, PACKAGE_FILES), *notebooks, *modules):
        (root / path.relative_to(ROOT)).parent.mkdir(exist_ok=True)
        shutil.copy(path, root / path.relative_to(ROOT))
    return root


@pytest.fixture
def copy(tmp_path):
    """One pair in a copy of the project: (root, notebook, module)."""
    copied(tmp_path, NOTEBOOKS[-1:])
    notebook = tmp_path / NOTEBOOKS[-1].relative_to(ROOT)
    return tmp_path, notebook, pairs.module_of(notebook)


def edit(module):
    with module.open("a", encoding="utf8") as file:
        file.write("\n# %%\nEDITED = True\n")


def git(root, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    subprocess.run(command, cwd=root, check=True, capture_output=True)


@pytest.fixture
def kept(copy):
    """`copy`, in a commit."""
    root = copy[0]
    shutil.copy(ROOT / ".gitignore", root)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--no-verify", "--message", "all")
    return copy


def edit_notebook(notebook, source="NOTED = True"):
    book = read(notebook)
    book.cells.append(nbformat.v4.new_code_cell(source))
    nbformat.write(book, notebook)


def save_in_jupyter(root, notebook, source):
    """Save a notebook with one cell more, as `make edit` does."""
    manager = jupytext.TextFileContentsManager()
    manager.root_dir, manager.pre_save_hook = str(root), pairs.tag_saved
    path = str(notebook.relative_to(root))
    model = manager.get(path)
    model["content"]["cells"].append(nbformat.v4.new_code_cell(source))
    manager.save(model, path)


def test_saving_in_jupyter_writes_the_module(copy):
    root, notebook, module = copy
    save_in_jupyter(root, notebook, "SAVED_IN_JUPYTER = True")
    assert module.read_text(encoding="utf8").endswith("SAVED_IN_JUPYTER = True\n")
    assert pairs.cells(notebook) == pairs.cells(module)


def test_a_scratch_cell_saved_in_jupyter_is_a_comment_in_the_module(copy):
    root, notebook, module = copy
    save_in_jupyter(root, notebook, 'print("my scratch", plain.sum())')
    assert module.read_text("utf8").endswith('# print("my scratch", plain.sum())\n')
    assert pairs.cells(notebook)[-1][2] == ("active-ipynb",)


def test_an_edited_module_writes_the_notebook(kept):
    root, notebook, module = kept
    edit(module)
    pairs.sync(root)
    assert pairs.cells(notebook)[-1] == ("code", "EDITED = True", ())
    assert pairs.cells(notebook) == pairs.cells(module)


@pytest.mark.parametrize("side", ["notebook", "module"])
def test_the_edited_side_wins_whatever_the_dates(kept, side):
    root, notebook, module = kept
    changed, other = (notebook, module) if side == "notebook" else (module, notebook)
    (edit_notebook if side == "notebook" else edit)(changed)
    os.utime(changed, (1, 1))
    expected = pairs.cells(changed)
    pairs.sync(root)
    assert pairs.cells(other) == pairs.cells(changed) == expected


def test_nothing_is_written_where_both_sides_changed(kept):
    root, notebook, module = kept
    edit(module)
    edit_notebook(notebook)
    before = pairs.cells(notebook), pairs.cells(module)
    with pytest.raises(SystemExit) as refusal:
        pairs.sync(root)
    assert f"notebooks/{notebook.name} and transformer/{module.name}" in str(
        refusal.value
    )
    assert (pairs.cells(notebook), pairs.cells(module)) == before
    pairs.sync(root, [notebook.stem], take="module")
    assert pairs.cells(notebook) == pairs.cells(module) == before[1]


def test_a_second_edit_needs_no_commit(kept):
    root, notebook, module = kept
    edit(module)
    pairs.sync(root)
    edit_notebook(notebook)
    pairs.sync(root)
    assert pairs.cells(module)[-1] == ("code", "NOTED = True", ())
    edit(module)
    pairs.sync(root)
    assert pairs.cells(notebook)[-1] == ("code", "EDITED = True", ())


def test_without_git_the_older_side_is_kept(copy):
    root, notebook, module = copy
    edit(module)
    edit_notebook(notebook)
    os.utime(module, (1, 1))
    pairs.sync(root)
    assert pairs.cells(module)[-1] == ("code", "NOTED = True", ())
    old = module.with_name(f"{module.name}.old").read_text(encoding="utf8")
    assert old.endswith("EDITED = True\n")


def test_sync_leaves_what_ruff_leaves(kept):
    root, notebook, module = kept
    pytest.importorskip("ruff")
    edit_notebook(notebook, "import sys, os\ndef wide( a ):\n  return {'a':a}")
    pairs.sync(root)
    expected = 'import os\nimport sys\n\n\ndef wide(a):\n    return {"a": a}'
    assert pairs.cells(module)[-1] == ("code", expected, ())
    assert pairs.cells(notebook) == pairs.cells(module)
    command = [sys.executable, "-m", "ruff", "format", "--check", str(module)]
    assert subprocess.run([*command, str(notebook)], cwd=root).returncode == 0


@pytest.mark.parametrize(
    "source, live",
    [
        ("import math", True),
        ("LIMIT = math.inf", True),
        ("def scaled(x):\n    return unknown(x)", True),
        ("class Other(nn.Module):\n    pass", True),
        ("half = partial(math.pow, 2)", True),
        ("class Other(Unknown):\n    pass", False),
        ("LIMIT = plain.sum()", False),
        ("plain = math.sqrt(2)", False),
        ("print('my scratch')", False),
        ("LIMIT", False),
        ("for i in range(3):\n    pass", False),
        ("%pip install x", False),
        ("assert math.pi", False),
    ],
)
def test_a_cell_is_live_where_it_only_defines(source, live):
    known = {"math", "nn", "partial"}
    assert live_cells.only_defines(source, known) == live


@each_notebook
def test_every_live_cell_only_defines(notebook):
    assert live_cells.tag_cells(jupytext.read(notebook)) == []


@pytest.mark.parametrize("target, paired", [("lab", False), ("edit", True)])
def test_only_authors_work_with_pairing(target, paired, tmp_path, monkeypatch):
    """The options that the Makefile gives to JupyterLab, given to its server."""
    server = pytest.importorskip("jupyter_server.serverapp")
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    makefile = (ROOT / "Makefile").read_text(encoding="utf8")
    recipe = re.search(rf"^{target}:.*\n\t.*-m jupyterlab (.*)", makefile, re.M)[1]
    options = shlex.split(recipe.replace("$(CURDIR)", str(ROOT)))
    app = server.ServerApp()
    app.initialize([*options, "--allow-root", "--no-browser"], new_httpserver=False)
    assert hasattr(app.contents_manager, "formats") == paired
    assert (app.contents_manager.pre_save_hook is not None) == paired
    server.ServerApp.clear_instance()


def test_a_rebuilt_notebook_has_its_kernel(copy):
    root, notebook, module = copy
    before = pairs.cells(module)
    notebook.unlink()
    pairs.sync(root)
    assert read(notebook).metadata.kernelspec == pairs.KERNEL
    assert pairs.cells(notebook) == pairs.cells(module) == before


def test_naming_one_notebook_touches_no_other(tmp_path):
    first, second = pairs.notebooks(copied(tmp_path, NOTEBOOKS[:2]))
    for notebook in (first, second):
        edit(pairs.module_of(notebook))
    before = first.read_bytes()
    pairs.sync(tmp_path, [second.stem[:2]])
    assert first.read_bytes() == before
    assert pairs.cells(second)[-1] == ("code", "EDITED = True", ())


def test_an_unknown_name_stops_everything():
    with pytest.raises(SystemExit, match="no notebook 99 or pairs: give its number"):
        pairs.choose(["90", "99", "pairs"])


def notebook_with(cell, folder):
    """A copy of the first notebook, with one cell more."""
    (notebook,) = pairs.notebooks(copied(folder, NOTEBOOKS[:1]))
    book = read(notebook)
    book.cells.append(nbformat.v4.new_code_cell(cell))
    nbformat.write(book, notebook)
    return notebook


def test_a_notebook_is_stale_when_code_behind_it_changed(tmp_path):
    """Code in a package's file, reached through the front door, counts; a comment does not."""
    notebook = notebook_with("from transformer import word", tmp_path)
    words = tmp_path / "transformer" / "words" / "spelt.py"
    words.parent.mkdir()
    front = tmp_path / "transformer" / "__init__.pyi"
    front.write_text("from transformer.words.spelt import word as word\n")
    hashes = []
    for text in ("word = 1\n", "word = 1  \n# a comment\n", "word = 2\n"):
        words.write_text(text)
        hashes.append(pairs.code_hash(notebook))
    assert hashes[0] == hashes[1] != hashes[2]
    (words.parent / "others.py").write_text("word = 3\n")  # nothing imports it
    assert pairs.code_hash(notebook) == hashes[2]
    (words.parent / "__init__.py").write_text("from transformer.words import others\n")
    assert pairs.code_hash(notebook) != hashes[2]


def test_a_notebook_is_stale_when_a_record_that_it_shows_changed(tmp_path):
    notebook = notebook_with('table("some-*")', tmp_path)
    (tmp_path / "data" / "runs").mkdir(parents=True)
    hashes = []
    for name in ("other-1", "some-1", "some-2", "another"):
        (tmp_path / "data" / "runs" / f"{name}.json").write_text(name)
        hashes.append(pairs.code_hash(notebook))
    assert len(set(hashes)) == 3 and hashes[2] == hashes[3]


@pytest.mark.system
def test_evidence_is_executed_and_has_no_module(tmp_path):
    root = copied(tmp_path, NOTEBOOKS[:1])
    page = root / "notebooks" / "evidence" / NOTEBOOKS[0].name
    page.parent.mkdir()
    cells = [nbformat.v4.new_code_cell(f"value = {n}\nvalue") for n in (1, 2)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), page)
    assert pairs.evidence(root) == [page] and page not in pairs.notebooks(root)
    number = page.stem[:2]
    assert pairs.choose([number], root) == pairs.notebooks(root)
    assert pairs.choose([f"evidence/{number}"], root) == [page]
    before = page.read_bytes()
    pairs.sync(root)
    pairs.sync(root, [f"evidence/{number}"])
    assert page.read_bytes() == before and pairs.is_stale(page)
    pairs.execute(page)
    book = read(page)
    assert [cell.execution_count for cell in book.cells] == [1, 2]
    assert book.cells[1].outputs[0].data["text/plain"] == "2"
    assert "jupytext" not in book.metadata and not pairs.is_stale(page)
    assert {path.parent.name for path in root.rglob("*.py")} == {"transformer"}


# The address


@each_page
def test_badge_and_install_cell(notebook):
    url, cells = stamp.address(), read(notebook).cells
    assert stamp.badge(url, notebook) in cells[0].source.splitlines(), "make stamp"
    (install,) = (cell for cell in cells if stamp.is_install_cell(cell))
    assert install.source == stamp.install_cell(url), "make stamp"
    assert install.metadata.tags == ["active-ipynb"] and not install.outputs
    installing = [
        cell.source
        for cell in cells
        if cell.cell_type == "code" and re.search(r"[%!]\s*(pip|conda)\b", cell.source)
    ]
    assert installing == [install.source], "only the install cell installs"


def project_texts():
    """Every text file of the project, with or without git."""
    suffixes = {".py", ".ipynb", ".md", ".toml", ".txt", ".yml", ".cff", ".json", ""}
    folders = ("transformer", "notebooks", "tests", "tools", "data", ".ci", ".github")
    files = [path for path in ROOT.iterdir() if path.is_file()]
    files += [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    ]
    return [
        path
        for path in files
        if path.suffix in suffixes and "__pycache__" not in path.parts
    ]


def test_the_address_stands_nowhere_else():
    right = stamp.address().removeprefix("https://github.com/")
    names = rf"(?:{re.escape(right.split('/')[1])}|annotated-attention)"
    pattern = re.compile(
        rf"(?:github(?:usercontent)?\.com|\.com/github)/([\w.-]+/{names})\b"
    )
    for path in project_texts():
        found = pattern.findall(path.read_text(encoding="utf8", errors="replace"))
        assert set(found) <= {right}, f"{path}: make stamp"
    cited = stamp.CITED.search((ROOT / "CITATION.cff").read_text(encoding="utf8"))
    assert cited[1] == stamp.address()


def test_stamp_follows_the_address(copy):
    root, notebook, module = copy
    for name in stamp.DOCUMENTS:
        shutil.copy(ROOT / name, root)
    shutil.copy(ROOT / "pyproject.toml", root)
    book = read(notebook)
    book.cells.append(
        nbformat.v4.new_markdown_cell(f"[A link]({stamp.address()}/issues)")
    )
    pairs.write(book, notebook)
    owner, new = "someone-else", "https://github.com/" + "someone-else/renamed"
    stamp.main(root, f"{new}.git")
    assert stamp.address(root) == new
    old = stamp.address().removeprefix("https://github.com/")
    pages = "{}.github.io/{}".format(*old.split("/"))
    for path in (notebook, module, *(root / name for name in stamp.DOCUMENTS)):
        text = path.read_text(encoding="utf8")
        assert old not in text and pages not in text, path.name
    assert f"[A link]({new}/issues)" in read(notebook).cells[-1].source
    readme = (root / "README.md").read_text(encoding="utf8")
    assert (
        f"git clone {new} && cd renamed\n" in readme
        and f"{owner}.github.io/renamed" in readme
    )
    assert stamp.install_cell(new) in [cell.source for cell in read(notebook).cells]
    assert pairs.cells(notebook) == pairs.cells(module)


@pytest.fixture
def documented(copy):
    """`copy`, with all that stamp.py writes into."""
    for name in (*stamp.DOCUMENTS, "pyproject.toml"):
        shutil.copy(ROOT / name, copy[0])
    return copy[0]


def with_origin(root, url):
    for command in (["init", "-q"], ["remote", "add", "origin", url]):
        subprocess.run(["git", "-C", str(root), *command], check=True)


def contents(root):
    paths = [path for path in root.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in paths if ".git" not in path.parts}


@pytest.mark.parametrize("origin", [None, "https://github.com/jane/book.git"])
def test_to_stamp_twice_changes_nothing(documented, origin):
    if origin:
        with_origin(documented, origin)
    stamp.main(documented)
    once = contents(documented)
    stamp.main(documented)
    assert contents(documented) == once


@pytest.mark.parametrize(
    "origin",
    [
        "https://github.com/jane/book",
        "https://github.com/jane/book.git",
        "https://jane@github.com/jane/book.git",
        "git@github.com:jane/book.git",
        "ssh://git@github.com/jane/book",
    ],
)
def test_an_origin_at_github_is_the_address(tmp_path, origin):
    with_origin(tmp_path, origin)
    assert stamp.origin(tmp_path) == "https://github.com/jane/book"


@pytest.mark.parametrize(
    "origin",
    [
        "https://example.org/jane/book",
        "https://github.com.example.org/jane/book",
        "../book.git",
        "ssh://git@example.org/github.com/book",
    ],
)
def test_another_origin_leaves_the_placeholder(documented, origin):
    with_origin(documented, origin)
    before = stamp.address(documented)
    stamp.main(documented)
    assert stamp.origin(documented) is None
    assert stamp.address(documented) == before


def test_a_folder_inside_a_repository_has_no_origin_of_its_own(tmp_path):
    with_origin(tmp_path, "https://github.com/jane/book")
    (tmp_path / "inside").mkdir()
    assert stamp.origin(tmp_path / "inside") is None


def test_without_an_address_a_wheel_is_uploaded():
    placeholder = stamp.install_cell(stamp.PLACEHOLDER + "annotated-attention")
    assert "no address yet" in placeholder
    assert "files.upload()" in placeholder
    assert "git+" not in placeholder
    address = stamp.install_cell("https://github.com/jane/book")
    assert "%pip install -q git+https://github.com/jane/book" in address
    assert "upload" not in address


def test_a_second_stamp_finds_what_the_first_has_written():
    """Hosts are in small letters, and a path keeps its capitals."""
    first, second = (
        "https://github.com/JaneDoe/Annotated",
        "https://github.com/other/thing",
    )
    text = "https://OWNER.github.io/annotated-attention/live.html"
    once = stamp.moved(text, "https://github.com/OWNER/annotated-attention", first)
    assert once == "https://janedoe.github.io/Annotated/live.html"
    assert stamp.moved(once, first, second) == "https://other.github.io/thing/live.html"


@pytest.mark.parametrize(
    "wrong", ["https://example.org/a/b", "https://github.com/a", "a b"]
)
def test_stamp_refuses_what_is_no_address(copy, wrong):
    shutil.copy(ROOT / "CITATION.cff", copy[0])
    with pytest.raises(
        SystemExit, match="the new address: .* is not https://github.com/"
    ):
        stamp.main(copy[0], wrong)


@each_page
def test_a_notebook_has_the_form_that_editors_check(notebook):
    """nbformat's schema, unconverted, as VS Code and Jupyter read it; every cell has its own id."""
    book = nbformat.read(notebook, as_version=nbformat.NO_CONVERT)
    nbformat.validate(book)
    assert (book.nbformat, book.nbformat_minor) >= (4, 5)
    assert len({cell.id for cell in book.cells}) == len(book.cells)
