"""The rules of the house: pairs, reading order, what a module may do, what a notebook may look like, addresses."""

import ast
import json
import re
import shutil
import statistics
import subprocess
import sys
import textwrap
import venv
import zipfile
from pathlib import Path

import jupytext
import nbformat
import pairs
import pytest
import stamp
from hatchling.builders.wheel import WheelBuilder

ROOT = pairs.ROOT
NOTEBOOKS = pairs.notebooks()
MODULES = sorted((ROOT / "transformer").glob("*.py"))
NUMBER = {path.stem[3:]: int(path.stem[:2]) for path in NOTEBOOKS}
HELPERS = {"plotting", "figures", "toys", "files", "settings", "checks", "corpora"}                   # import no numbered module
FRONT = {"__init__", "__main__"}                        # import every module
QUESTIONS = {"01": {15, 21}, "02": {11}, "03": {10}, "04": {1, 3, 4, 5, 6}, "08": {16, 18},
             "09": {2, 14, 26}, "14": {19}, "16": {12, 13}, "17": {7, 9, 20, 22, 23}, "19": {8, 17, 31}}
LONGEST_CELL, LONGEST_PROSE, HEAVIEST = 30, 150, 2_000_000      # lines of code, words, bytes
MACHINE_PATH = re.compile(r"(?<![\w./:])/(?:home|root|Users|tmp|mnt|srv|work)/\w")

each_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
each_module = pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)


def read(notebook):
    return nbformat.read(notebook, as_version=4)


def code_cells(notebook):
    return [cell for cell in read(notebook).cells if cell.cell_type == "code" and cell.source.strip()]


def lines(source):
    return [line for line in source.splitlines() if line.strip()]


def parse(source):
    """The syntax tree of a cell, its magics (%pip, !ls) left out."""
    return ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.MULTILINE))


def tags(cell):
    return cell.metadata.get("tags", [])


# Pairs

def test_numbers_and_names():
    stems = [path.stem for path in (ROOT / "notebooks").glob("*.ipynb")]
    assert all(re.fullmatch(r"\d\d_[a-z][a-z0-9_]*", stem) for stem in stems), f"not NN_noun: {stems}"
    assert len({stem[:2] for stem in stems}) == len(stems), f"two notebooks share a number: {sorted(stems)}"
    assert {path.stem for path in MODULES} - HELPERS - FRONT == set(NUMBER), "modules without notebook, or the reverse"


@each_notebook
def test_both_sides_are_equal(notebook):
    module = pairs.module_of(notebook)
    assert pairs.cells(notebook) == pairs.cells(module), f"{notebook.name} and {module.name} differ: make sync"
    for side in (notebook, module):
        assert jupytext.read(side).metadata.jupytext.formats == pairs.formats(notebook.stem), f"{side.name}: make sync"


@pytest.fixture
def copy(tmp_path):
    """One pair in a copy of the project: (root, notebook, module)."""
    if not NOTEBOOKS:
        pytest.skip("no notebook yet")
    notebook, module = NOTEBOOKS[-1], pairs.module_of(NOTEBOOKS[-1])
    for path in (ROOT / "pyproject.toml", notebook, module):
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    return tmp_path, tmp_path / notebook.relative_to(ROOT), tmp_path / module.relative_to(ROOT)


def test_saving_in_jupyter_writes_the_module(copy):
    root, notebook, module = copy
    manager = jupytext.TextFileContentsManager()
    manager.root_dir = str(root)
    path = str(notebook.relative_to(root))
    model = manager.get(path)
    model["content"]["cells"].append(nbformat.v4.new_code_cell("SAVED_IN_JUPYTER = True"))
    manager.save(model, path)
    assert module.read_text(encoding="utf8").endswith("SAVED_IN_JUPYTER = True\n")
    assert pairs.cells(notebook) == pairs.cells(module)


def test_an_edited_module_writes_the_notebook(copy):
    root, notebook, module = copy
    with module.open("a", encoding="utf8") as file:
        file.write("\n# %%\nEDITED = True\n")
    pairs.sync(root)
    assert pairs.cells(notebook)[-1] == ("code", "EDITED = True", ())
    assert pairs.cells(notebook) == pairs.cells(module)


def test_a_rebuilt_notebook_has_its_kernel(copy):
    root, notebook, module = copy
    before = pairs.cells(module)
    notebook.unlink()
    pairs.sync(root)
    assert read(notebook).metadata.kernelspec == pairs.KERNEL
    assert pairs.cells(notebook) == pairs.cells(module) == before


# Modules

def imports(tree):
    """(line, module of the package) of every import from it; "" stands for its front door."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "transformer." * bool(node.level) + (node.module or "")
            inside = base.rstrip(".") == "transformer"
            known = [a.name for a in node.names if a.name in NUMBER or a.name in HELPERS]
            names = [f"transformer.{name}" for name in known] if inside and len(known) == len(node.names) else [base]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "transformer":
                yield node.lineno, name.partition(".")[2].split(".")[0]


def check_direction(where, tree, number):
    """Imports go to smaller numbers and the helpers, by module; number 0 (a helper) may import helpers only."""
    for line, target in imports(tree):
        assert target and target not in FRONT, f"{where}:{line} imports from the package's front door"
        assert target in HELPERS or NUMBER.get(target, 99) < number, \
            f"{where}:{line} imports {target} ({NUMBER.get(target, '?')}), which comes no earlier than {number}"


@each_module
def test_imports_point_backwards(module):
    if module.stem not in FRONT:
        number = 0 if module.stem in HELPERS else NUMBER.get(module.stem, 0)
        check_direction(module.name, ast.parse(module.read_text(encoding="utf8")), number)


@each_notebook
def test_cells_import_backwards(notebook):
    for cell in code_cells(notebook):
        check_direction(notebook.name, parse(cell.source), int(notebook.name[:2]))


def check_top_level(where, body):
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            handlers = [line for handler in getattr(node, "handlers", []) for line in handler.body]
            check_top_level(where, [*node.body, *node.orelse, *getattr(node, "finalbody", []), *handlers])
            continue
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        main = where == "__main__.py" and isinstance(node, ast.Expr) and "main()" in ast.unparse(node)
        defines = isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
                             | ast.Assign | ast.AnnAssign | ast.Pass | ast.Raise)
        assert text or main or defines, f"{where}:{node.lineno} runs at import: {ast.unparse(node)[:60]}"


@each_module
def test_modules_define_and_do_nothing(module):
    check_top_level(module.name, ast.parse(module.read_text(encoding="utf8")).body)


def python(code, *arguments):
    """Run code in a fresh interpreter; returns (standard output, standard error)."""
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_import_is_quiet_and_offline():
    code = """
        import importlib, socket, sys

        def refuse(*arguments, **named):
            raise RuntimeError(f"the network was touched: {arguments}")

        socket.getaddrinfo = socket.create_connection = socket.socket.connect = refuse
        import transformer
        for name in sys.argv[1:]:
            importlib.import_module(f"transformer.{name}")
        pyplot = sys.modules.get("matplotlib.pyplot")
        assert pyplot is None or not pyplot.get_fignums(), "a figure was drawn"
    """
    assert python(code, *(path.stem for path in MODULES)) == ("", "")


def test_import_is_quick():
    code = """
        import time
        import torch
        start = time.process_time()
        import transformer
        print(time.process_time() - start)
    """
    seconds = [float(python(code)[0]) for _ in range(3)]
    assert statistics.median(seconds) < 1, f"import transformer took {seconds} s beyond torch"


def test_an_installed_package_is_complete(tmp_path):
    """The wheel holds every module and the bundled corpus, and finds it there."""
    wheel, = WheelBuilder(str(ROOT)).build(directory=str(tmp_path / "wheel"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    assert {p.name for p in (tmp_path / "site" / "transformer").glob("*.py")} == {p.name for p in MODULES}
    code = """
        import sys
        sys.path.insert(0, sys.argv[1])
        import transformer
        from transformer.corpora import read_corpus
        from transformer.files import data_folder
        assert transformer.__file__.startswith(sys.argv[1]), transformer.__file__
        print(len(read_corpus("bundled", "test")), data_folder().name)
    """
    assert python(code, str((tmp_path / "site").resolve()))[0] == "1000 _bundled\n"
    assert (tmp_path / "site/transformer/view.js").is_file()
    inside = {p.relative_to(tmp_path / "site/transformer/_bundled") for p in (tmp_path / "site").rglob("_bundled/*/*")}
    outside = {p.relative_to(ROOT / "data") for name in ("bundled", "models", "runs")
               for p in (ROOT / "data" / name).glob("*")}
    assert inside == outside


def test_colab_keeps_its_own_torch(tmp_path):
    """pip, asked what it would install where torch, numpy and matplotlib are, names none of them."""
    wheel = next(WheelBuilder(str(ROOT)).build(directory=str(tmp_path)))
    venv.create(tmp_path / "colab", with_pip=False)
    packages = next((tmp_path / "colab").rglob("site-packages"))
    colab = {"torch": "2.6.0+cu124", "numpy": "2.0.2", "matplotlib": "3.10.0"}
    besides = {"tokenizers": "0.21.0", "safetensors": "0.5.3", "requests": "2.32.3", "tqdm": "4.67.1"}
    for name, version in {**colab, **besides}.items():
        folder = packages / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (folder / "RECORD").write_text("")
    interpreter = next(path for path in (tmp_path / "colab").glob("*/python*") if path.stem == "python")
    done = subprocess.run([sys.executable, "-m", "pip", "--python", interpreter, "install", "--dry-run", "--quiet",
                           "--retries", "0", "--report", tmp_path / "plan.json", wheel], capture_output=True, text=True)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("no package registry can be reached from here")
    assert done.returncode == 0, done.stderr[-2000:]
    plan = {item["metadata"]["name"].lower() for item in json.loads((tmp_path / "plan.json").read_text())["install"]}
    assert {"annotated-attention", "sacrebleu", "tyro"} <= plan
    assert plan.isdisjoint(colab)


# Notebooks

@each_notebook
def test_kernel(notebook):
    assert read(notebook).metadata.get("kernelspec") == pairs.KERNEL, "make sync restores it"


@each_notebook
def test_cells_are_short(notebook):
    assert notebook.stat().st_size <= HEAVIEST
    for cell in read(notebook).cells:
        if cell.cell_type == "code":
            assert len(lines(cell.source)) <= LONGEST_CELL, f"cell too long: {cell.source[:80]!r}"
        else:
            assert len(re.findall(r"\w+", cell.source)) <= LONGEST_PROSE, f"too many words: {cell.source[:80]!r}"


@each_notebook
def test_looks_are_at_most_half(notebook):
    counts = [(len(lines(cell.source)), "active-ipynb" in tags(cell)) for cell in code_cells(notebook)]
    looks, total = sum(n for n, look in counts if look), sum(n for n, _ in counts)
    assert looks <= total / 2, f"{looks} of {total} code lines look, plot or check"


@each_notebook
def test_something_is_checked(notebook):
    checks = [node for cell in code_cells(notebook) for node in ast.walk(parse(cell.source))
              if isinstance(node, ast.Assert) or "assert_close" in getattr(getattr(node, "func", None), "attr", "")]
    assert checks, "a notebook without a single assert"


@each_notebook
def test_was_executed_in_one_go(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1)), f"make notebooks: {counts}"
    errors = [o.ename for cell in code_cells(notebook) for o in cell.outputs if o.output_type == "error"]
    assert not errors


@each_notebook
def test_no_machine_path(notebook):
    for cell in read(notebook).cells:
        texts = [cell.source]
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            texts += [output.get("text", ""), *(str(data[kind]) for kind in data if kind != "image/png")]
        assert not MACHINE_PATH.search("\n".join(texts)), f"a path of one machine: {cell.source[:60]!r}"


@each_notebook
def test_questions(notebook):
    found = set()
    for cell in read(notebook).cells:
        for tag in tags(cell):
            if tag.startswith("question"):
                assert re.fullmatch(r"question-(0[1-9]|[12]\d|3[01])", tag), tag
                assert cell.cell_type == "markdown", f"{tag} belongs to the text of its answer"
                found.add(int(tag[-2:]))
    missing = QUESTIONS.get(notebook.name[:2], set()) - found
    assert not missing, f"readers' questions without an answer: {missing}"


# Addresses

@each_notebook
def test_badge_and_install_cell(notebook):
    url, cells = stamp.address(), read(notebook).cells
    assert cells[0].cell_type == "markdown" and stamp.badge(url, notebook) in cells[0].source.splitlines(), "make stamp"
    installs = [cell for cell in cells if stamp.is_install_cell(cell)]
    assert [cell.source for cell in installs] == [stamp.install_cell(url)], "make stamp"
    assert tags(installs[0]) == ["active-ipynb"] and not installs[0].outputs
    others = [c.source for c in cells if c.cell_type == "code" and re.search(r"[%!]\s*(pip|conda)\b", c.source)]
    assert others == [stamp.install_cell(url)], "only the install cell installs"


def project_texts():
    """Every text file of the project, with or without git."""
    suffixes = {".py", ".ipynb", ".md", ".toml", ".txt", ".yml", ".cff", ".json", ""}
    folders = [ROOT / name for name in ("transformer", "notebooks", "tests", "tools", "data", ".ci", ".github")]
    files = [p for p in ROOT.iterdir() if p.is_file()] + [p for f in folders for p in f.rglob("*") if p.is_file()]
    return [p for p in files if p.suffix in suffixes and "__pycache__" not in p.parts and p.stat().st_size < HEAVIEST]


def test_the_address_stands_nowhere_else():
    right = stamp.address().removeprefix("https://github.com/")
    name = right.split("/")[1]
    names = rf"(?:{re.escape(name)}|annotated-attention)"
    pattern = re.compile(rf"(?:github(?:usercontent)?\.com|\.com/github)/([\w.-]+/{names})\b")
    strays = [f"{path.relative_to(ROOT)}: {found}" for path in project_texts()
              for found in pattern.findall(path.read_text(encoding="utf8", errors="replace")) if found != right]
    assert not strays, f"make stamp: {strays}"
    assert stamp.CITED.search((ROOT / "CITATION.cff").read_text(encoding="utf8"))[1] == stamp.address()


def test_stamp_follows_the_address(copy):
    root, notebook, module = copy
    for name in stamp.DOCUMENTS:
        shutil.copy(ROOT / name, root)
    pyproject = root / "pyproject.toml"
    new = "https://github.com/" + "someone-else/renamed"
    pyproject.write_text(pyproject.read_text(encoding="utf8").replace(stamp.address(), new), encoding="utf8")
    stamp.main(root)
    for path in (notebook, module, *(root / name for name in stamp.DOCUMENTS)):
        assert stamp.address().removeprefix("https://") not in path.read_text(encoding="utf8"), path.name
    assert stamp.install_cell(new) in [cell.source for cell in read(notebook).cells]
    assert pairs.cells(notebook) == pairs.cells(module)


def test_versions_agree():
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(encoding="utf8"), re.MULTILINE)[1]
    assert python("import transformer; print(transformer.__version__)")[0].strip() == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf8")
    for name, torch in (("constraints.txt", "2.13.0"), ("constraints-oldest.txt", "2.3.1")):
        pins = (ROOT / name).read_text(encoding="utf8").splitlines()
        assert f"torch=={torch}" in pins
        assert all(re.fullmatch(r"#.*|[\w.-]+==[\w.]+|", pin) for pin in pins), "name==version, without a local part"


@pytest.mark.parametrize("path", sorted((ROOT / "data").rglob("*.json")), ids=lambda path: Path(path).name)
def test_results_are_json(path):
    json.loads(path.read_text(encoding="utf8"))
