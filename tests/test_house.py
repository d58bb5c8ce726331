"""The rules of the project (CONTRIBUTING.md): directions, sizes, patches, switches, cells.

Which module imports which is held by import-linter's contracts in pyproject.toml; what it cannot
see, notebook cells and names in strings, has rules here.

A rule is a function that yields (place, what is wrong there). `EXCUSED` names the places that do
not keep a rule yet, with the reason; a place that keeps it by now must leave the list.
"""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import nbformat
import pairs
import pytest
from live_cells import does_something

ROOT = pairs.ROOT
PACKAGE = ROOT / "transformer"
NOTEBOOKS = pairs.notebooks()
PAGES = [*NOTEBOOKS, *pairs.evidence()]
NUMBER = {path.stem[3:]: int(path.stem[:2]) for path in NOTEBOOKS}
OUTER = {"__init__", "__main__", "cli"}  # may change torch for the whole process
GROUND = {"core", "corpora"}  # what all chapters may import
NAMED = re.compile(r"transformer\.([\w.]+)(?::\w+)?")
FILE, FUNCTION, CELL = 400, 30, 40  # code lines
PARAMETERS = 8  # without self
HEAVIEST, TOGETHER = 1_000_000, 14_000_000  # bytes of a notebook, of all
READABLE = 2_000_000  # bytes of a text file
SWITCHES = {
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "set_default_device",
    "set_default_dtype",
    "use_deterministic_algorithms",
}
FORWARD = ("forward", "__class__", "__call__")  # what makes a module compute
MACHINE_PATH = re.compile(r"(?<![\w./:])/(?:home|root|Users|tmp|mnt|srv|work)/\w")
QUESTIONS = {
    "01": {15, 21},
    "02": {11},
    "03": {10},
    "04": {1, 3, 4, 5, 6},
    "08": {16, 18},
    "09": {2, 14, 26},
    "14": {19},
    "16": {12, 13},
    "17": {7, 9, 20, 22, 23},
    "19": {8, 17, 31, 32},
    "21": {24},
    "22": {25, 27, 28},
    "23": {29, 33},
    "24": {30},
    "25": {35},
}
EXCUSED: dict[str, dict[str, str]] = {}
# Pages that still compute with a model: to read a record instead
COMPUTING = {"08_model"}


# What the rules look at


def dotted(path):
    """transformer/corpora/lines.py -> corpora.lines, transformer/corpora/__init__.py -> corpora"""
    name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    return name.removesuffix(".__init__")


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf8"))


@cache
def code_lines(path):
    """{number: line} of the lines with code: neither blank, nor a comment, nor of a docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    strings = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, documented) and ast.get_docstring(node):
            strings.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(path.read_text(encoding="utf8").splitlines(), 1)
    return {
        number: line
        for number, line in lines
        if line.strip() and not line.lstrip().startswith("#") and number not in strings
    }


MODULES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}
PYTHON = [
    path
    for folder in ("transformer", "tools", "data")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


@cache
def cells(notebook):
    return nbformat.read(notebook, as_version=4).cells


def code_cells(notebook):
    return [
        cell
        for cell in cells(notebook)
        if cell.cell_type == "code" and cell.source.strip()
    ]


def tree_of(cell):
    """The syntax tree of a cell, its magics (%pip, !ls) left out."""
    return ast.parse(
        re.sub(r"^(\s*)[%!].*$", r"\1pass", cell.source, flags=re.MULTILINE)
    )


def base_of(node, package):
    """The name inside the package that `from ... import` starts from; None: another package's."""
    named = (node.module or "").split(".")
    if node.level == 0:
        return ".".join(named[1:]) if named[0] == "transformer" else None
    parents = package.split(".") if package else []
    return ".".join(filter(None, [*parents[: len(parents) + 1 - node.level], *named]))


def imports(tree, where=""):
    """(line, name inside the package) of what a module or a cell imports; "" is the front door."""
    is_package = MODULES.get(where, Path()).name == "__init__.py"
    package = where if is_package else where.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = base_of(node, package)
            for alias in node.names if base is not None else []:
                deeper = f"{base}.{alias.name}".strip(".")
                yield node.lineno, deeper if deeper in MODULES else base
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "transformer":
                    yield node.lineno, alias.name.partition(".")[2]


def outermost(name):
    return name.split(".")[0] or "__init__"


def goes_beyond(name, number):
    """Whether a name inside the package lies beyond what chapter `number` builds on: chapters up to
    its own, core and corpora; from 17 on all but the commands."""
    if name in NUMBER:
        return NUMBER[name] > number
    return outermost(name) not in GROUND and (number < 17 or outermost(name) == "cli")


def strings(tree):
    """(line, name inside the package) of each string that names a module or what is in one."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and NAMED.fullmatch(value):
            parts = NAMED.fullmatch(value)[1].split(".")
            names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
            yield from ((node.lineno, name) for name in names if name in MODULES)


@cache
def latest_chapter(name, above=()):
    """The highest number among the chapters that a module needs, directly or through others."""
    if name in NUMBER:
        return NUMBER[name]
    if name not in MODULES or name in above:
        return 0
    tree = ast.parse(MODULES[name].read_text(encoding="utf8"))
    needed = (target for _, target in imports(tree, name))
    return max((latest_chapter(n, (*above, name)) for n in needed), default=0)


# The rules


def direction_of_cells():
    """A notebook's cells import what its chapter builds on, the front door, views and what of
    teaching needs no later chapter, and in 09, 11, 16 and from 17 on the engine; a page of evidence
    imports its chapter, too."""
    for notebook in PAGES:
        number = int(notebook.name[:2])
        if pairs.is_evidence(notebook):
            number = max(17, number + 1)
        for cell in code_cells(notebook):
            for _, target in imports(tree_of(cell)):
                free = outermost(target) in ("__init__", "views")
                if outermost(target) == "teaching":
                    free = latest_chapter(target) <= number
                beyond = goes_beyond(
                    target, 17 if shows_engine(target, number) else number
                )
                if beyond and not free:
                    yield pairs.name_of(notebook), f"a cell imports {target}"


def shows_engine(target, number):
    return number in (9, 11, 16) and target not in NUMBER


def direction_of_strings():
    """No string names, to be imported later, what its module could not import: import-linter does
    not see these."""
    for name, path in MODULES.items():
        for line, target in strings(parsed(path)):
            chapter, folder = target in NUMBER, outermost(target)
            if outermost(name) == "core" and (chapter or folder != "core"):
                yield name, f"line {line} names {target}"
            if outermost(name) == "corpora" and (chapter or folder not in GROUND):
                yield name, f"line {line} names {target}"
            if name in NUMBER and goes_beyond(target, NUMBER[name]):
                yield name, f"line {line} names {target}"


def long_file():
    """A file has at most 400 lines of code."""
    for path in PYTHON:
        if len(code_lines(path)) > FILE:
            yield str(path.relative_to(ROOT)), f"{len(code_lines(path))} code lines"


def functions():
    for path in PYTHON:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(ROOT)} {node.name}", path, node


def long_function():
    """A function has at most 30 lines of code."""
    for place, path, node in functions():
        inside = range(node.lineno, node.end_lineno + 1)
        count = sum(number in inside for number in code_lines(path))
        if count > FUNCTION:
            yield place, f"{count} code lines"


def parameters():
    """A function has at most 8 parameters; an `__init__` says what a thing is made of."""
    for place, _, node in functions():
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        count = sum(argument.arg not in ("self", "cls") for argument in given)
        if count > PARAMETERS and node.name != "__init__":
            yield place, f"{count} parameters"


def names_forward(node):
    """Whether an assignment's target, or a call, is one by which a module's forward is replaced."""
    if isinstance(node, ast.Attribute):
        return node.attr in FORWARD
    if isinstance(node, ast.Subscript):
        return "__dict__" in ast.unparse(node.value)
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).split(".")[-1]
        named = [
            argument.value
            for argument in node.args
            if isinstance(argument, ast.Constant)
        ]
        sets = name in ("setattr", "__setattr__", "object", "patch")
        return (
            name == "MethodType"
            or sets
            and any(str(value).endswith(FORWARD) for value in named)
        )
    return False


def patch():
    """No forward is replaced, whether by assignment, setattr, __class__, __dict__ or MethodType."""
    trees = [(str(path.relative_to(ROOT)), parsed(path)) for path in PYTHON]
    trees += [
        (pairs.name_of(notebook), tree_of(cell))
        for notebook in PAGES
        for cell in code_cells(notebook)
    ]
    for place, tree in trees:
        for node in ast.walk(tree):
            targets = (
                [node] if isinstance(node, ast.Call) else getattr(node, "targets", [])
            )
            for target in targets:
                if names_forward(target):
                    yield place, f"line {node.lineno}: {ast.unparse(target)}"


def is_switch(node):
    """A call or an assignment that changes torch for the whole process."""
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).split(".")[-1]
        return name in {*SWITCHES, "set_float32_matmul_precision", "set_num_threads"}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any("torch.backends." in ast.unparse(target) for target in targets)


def runs_unasked(tree):
    """The parts of a module that run when it is imported, or when something is constructed."""
    yield from (
        node
        for node in tree.body
        if not isinstance(node, ast.FunctionDef | ast.ClassDef)
    )
    yield from (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.name in ("__init__", "__post_init__")
    )


def switch():
    """Neither an import nor a constructor changes torch for the whole process; some changes are
    left to the commands altogether."""
    for name, path in MODULES.items():
        for part in runs_unasked(parsed(path)):
            for node in filter(is_switch, ast.walk(part)):
                yield name, f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(parsed(path)):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in SWITCHES
                and name not in OUTER
            ):
                yield name, f"line {node.lineno}: {node.attr}"


def top_level():
    """At the top level of a notebook's module stand imports, definitions and constants."""
    for name in NUMBER:
        for node in does_something(parsed(MODULES[name]).body):
            yield name, f"line {node.lineno}: {ast.unparse(node)[:60]}"


def is_one_definition(cell):
    """Whether a cell is one class or one function, which a page shows in one piece."""
    body = tree_of(cell).body
    definitions = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return len(body) == 1 and isinstance(body[0], definitions)


def long_cell():
    """A cell has at most 40 lines of code, or is one class or one function."""
    for notebook in PAGES:
        for cell in code_cells(notebook):
            lines = [line for line in cell.source.splitlines() if line.strip()]
            if len(lines) > CELL and not is_one_definition(cell):
                yield (
                    pairs.name_of(notebook),
                    f"{len(lines)} lines: {cell.source[:60]!r}",
                )


def heavy():
    """A notebook has at most 1 MB, all together 14: clones, Colab and GitHub stay quick."""
    sizes = {pairs.name_of(notebook): notebook.stat().st_size for notebook in PAGES}
    for name, size in sizes.items():
        if size > HEAVIEST:
            yield name, f"{size} bytes"
    if sum(sizes.values()) > TOGETHER:
        yield "notebooks", f"{sum(sizes.values())} bytes"


def no_check():
    """A notebook asserts something."""
    for notebook in PAGES:
        sources = [cell.source for cell in code_cells(notebook)]
        if not any(re.search(r"\bassert\b|assert_close", source) for source in sources):
            yield pairs.name_of(notebook), "no assert"


def not_run():
    """The outputs of a notebook come from one run, top to bottom, without an error."""
    for notebook in PAGES:
        counts = [cell.execution_count for cell in code_cells(notebook)]
        if counts != list(range(1, len(counts) + 1)):
            yield pairs.name_of(notebook), f"make notebooks: {counts}"
        outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
        for output in outputs:
            if output.output_type == "error":
                yield pairs.name_of(notebook), output.ename


def questions():
    """A question's tag stands at a text, and the notebook that owes an answer has it."""
    for notebook in NOTEBOOKS:
        found = set()
        for cell in cells(notebook):
            for tag in cell.metadata.get("tags", []):
                if tag.startswith("question"):
                    found.add(int(tag[-2:]))
                    if cell.cell_type != "markdown" or not re.fullmatch(
                        r"question-\d\d", tag
                    ):
                        yield pairs.name_of(notebook), tag
        for number in QUESTIONS.get(notebook.name[:2], set()) - found:
            yield pairs.name_of(notebook), f"no answer to question {number}"


def texts():
    """(place, text) of the project's files, of notebooks what readers see but for pictures."""
    suffixes = {".py", ".md", ".toml", ".txt", ".yml", ".cff", ".json", ""}
    folders = ("transformer", "tests", "tools", "data", ".ci", ".github")
    files = [path for path in ROOT.iterdir() if path.is_file()]
    files += [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    ]
    for path in files:
        skipped = {"__pycache__", "downloads"} & {*path.parts} or path.name == ".git"
        if path.suffix in suffixes and not skipped and path.stat().st_size < READABLE:
            yield (
                str(path.relative_to(ROOT)),
                path.read_text(encoding="utf8", errors="replace"),
            )
    for notebook in PAGES:
        for cell in cells(notebook):
            parts = [cell.source]
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                parts += [
                    output.get("text", ""),
                    *(str(data[k]) for k in data if k != "image/png"),
                ]
            yield pairs.name_of(notebook), "\n".join(parts)


def machine_path():
    """No file names a folder of somebody's machine."""
    for place, text in texts():
        for found in MACHINE_PATH.finditer(text):
            yield place, text[found.start() : found.start() + 60]


RULES = (
    direction_of_cells,
    direction_of_strings,
    long_file,
    long_function,
    parameters,
    patch,
    switch,
    top_level,
    long_cell,
    heavy,
    no_check,
    not_run,
    questions,
    machine_path,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule(rule):
    found = {}
    for place, what in rule():
        found.setdefault(place, []).append(what)
    excused = EXCUSED.get(rule.__name__, {})
    broken = [
        f"{place}: {' '.join(what)}"
        for place, what in found.items()
        if place not in excused
    ]
    assert not broken, "\n".join([f"{rule.__name__}: {rule.__doc__}", *broken])
    kept = set(excused) - set(found)
    assert not kept, (
        f"these places keep the rule {rule.__name__} now: they leave EXCUSED"
    )


def test_contracts_of_imports_are_kept():
    """pyproject.toml says which folder imports which; the chapters stand there in reading order."""
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", code, "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    contracts = {
        contract["id"]: contract
        for contract in settings["tool"]["importlinter"]["contracts"]
    }
    chapters = [f"transformer.{notebook.stem[3:]}" for notebook in NOTEBOOKS]
    early = [f"transformer.{name}" for name, number in NUMBER.items() if number <= 16]
    assert contracts["reading-order"]["layers"] == chapters[::-1]
    assert contracts["plain"]["source_modules"] == early
    assert contracts["ground"]["forbidden_modules"] == chapters


def test_modules_have_notebooks():
    """Numbers are given once, names are NN_noun, and each has its module."""
    stems = [path.stem for path in (ROOT / "notebooks").glob("*.ipynb")]
    assert all(re.fullmatch(r"\d\d_[a-z][a-z0-9_]*", stem) for stem in stems)
    assert len({stem[:2] for stem in stems}) == len(stems)
    assert set(NUMBER) <= set(MODULES)


def test_evidence_reads_records():
    """A page computes with what others have measured, and with what its chapter defines: no model,
    no training."""
    plain = {"__init__", "core", "corpora", "views", *NUMBER}
    for page in pairs.evidence():
        if page.stem in COMPUTING:
            continue
        for cell in code_cells(page):
            tree = tree_of(cell)
            assert {outermost(target) for _, target in imports(tree)} <= plain, (
                page.name
            )
            aliases = [
                alias.name
                for node in ast.walk(tree)
                if isinstance(node, ast.Import | ast.ImportFrom)
                for alias in node.names
            ]
            assert not {"torch", "load", "train"} & set(aliases), page.name


def test_evidence_is_that_of_a_chapter():
    """notebooks/evidence/16_translation.ipynb holds what notebooks/16_translation.ipynb claims."""
    stems = {path.stem for path in (ROOT / "notebooks" / "evidence").glob("*.ipynb")}
    assert stems <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize(
    "code, wrong",
    [
        ("module.forward = other", True),
        ("setattr(module, 'forward', other)", True),
        ("object.__setattr__(module, 'forward', other)", True),
        ("module.__class__ = Other", True),
        ("module.__dict__['forward'] = other", True),
        ("types.MethodType(other, module)", True),
        ("mock.patch.object(module, 'forward', other)", True),
        ("patch('a.b.forward', other)", True),
        ("patch('transformer.attention.scaled_dot_product', other)", False),
        ("module.cache = other", False),
        ("setattr(config, 'N', 6)", False),
        ("values['forward'] = other", False),
    ],
)
def test_a_patch_is_seen_whatever_its_means(code, wrong):
    node = ast.parse(code).body[0]
    assert (
        names_forward(node.value if isinstance(node, ast.Expr) else node.targets[0])
        == wrong
    )


@pytest.mark.parametrize(
    "code, where, target",
    [
        ("from transformer import load", "cli", ""),
        ("import transformer.data", "", "data"),
        ("from transformer.corpora import registry", "", "corpora.registry"),
        ("from transformer.corpora.registry import x", "", "corpora.registry"),
        ("from . import registry", "corpora", "corpora.registry"),
        ("from .registry import x", "corpora.download", "corpora.registry"),
        ("from ..data import x", "corpora.download", "data"),
    ],
)
def test_imports_are_seen_whatever_their_form(code, where, target):
    assert [name for _, name in imports(ast.parse(code), where)] == [target]
