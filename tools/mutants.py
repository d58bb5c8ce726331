"""Break the package on purpose, once a row of mutants.txt, and see whether the unit tests notice.

python tools/mutants.py              every row (make mutants)
python tools/mutants.py masks beam   those of which a word stands in the area or the place
python tools/mutants.py --list       only check that each row fits its place exactly once

A row is matched by the syntax tree of its definition, so that layout and comments do not matter.
Each break is tried in a copy of the package. Exit status 1 where no test fails, or where a row does
not fit.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Mutant(NamedTuple):
    """A break: the expression or statement `old` in a definition becomes `new`.

    place: module and definition, such as "attention.MultiHeadAttention.forward"; tests: names of
    the test files that should notice, where that is not the module's own.
    """

    area: str
    place: str
    old: str
    new: str
    tests: str = ""


def read_table(path=ROOT / "tools" / "mutants.txt"):
    """The rows of the table: after its heading, one a paragraph."""
    row = re.compile(r"(.+): (\S+?)(?: \[(.+)\])?\n- (.+)\n\+ (.+)")
    rows = []
    for paragraph in path.read_text(encoding="utf8").strip().split("\n\n")[1:]:
        area, place, tests, old, new = row.fullmatch(paragraph).groups(default="")
        rows.append(Mutant(area, place, old, new, tests))
    return rows


def find(place, root=ROOT):
    """(path of the module, its tree, the node of the definition) of a place."""
    names, folder = place.split("."), root / "transformer"
    while (folder / names[0]).is_dir():
        folder /= names.pop(0)
    path = folder / f"{names.pop(0)}.py"
    tree = node = ast.parse(path.read_text(encoding="utf8"))
    for name in names:
        node = next((part for part in node.body if name in named(part)), None)
        if node is None:
            raise ValueError(f"{path.name} has no {'.'.join(names)}")
    return path, tree, node


def named(statement):
    """The names that a statement defines: of a function, a class, or constants."""
    targets = getattr(statement, "targets", [statement])
    return [getattr(target, "name", getattr(target, "id", None)) for target in targets]


def parse(text):
    """The tree of an expression or of a statement."""
    (statement,) = ast.parse(text).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def same(pattern, node, bound):
    """Does a node look like the pattern? What underscored names stand for goes into `bound`."""
    if isinstance(pattern, ast.Name) and pattern.id.startswith("_"):
        bound[pattern.id] = node
        return isinstance(node, ast.expr)
    if isinstance(pattern, list):
        return len(pattern) == len(node) and all(
            same(a, b, bound) for a, b in zip(pattern, node)
        )
    if isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and all(
            same(part, getattr(node, name), bound)
            for name, part in ast.iter_fields(pattern)
        )
    return pattern == node


class Replace(ast.NodeTransformer):
    """Puts a new tree where an old one stands, and counts how often."""

    def __init__(self, old, new):
        self.old, self.new, self.count = parse(old), new, 0

    def visit(self, node):
        bound = {}
        if not same(self.old, node, bound):
            return self.generic_visit(node)
        self.count += 1
        return Fill(bound).visit(parse(self.new))


class Fill(ast.NodeTransformer):
    """Puts expressions in the places of the names that stand for them."""

    def __init__(self, bound):
        self.bound = bound

    def visit_Name(self, node):
        return self.bound.get(node.id, node)


def broken(mutant, root=ROOT):
    """(path of the module, its text with the break); ValueError where old is not there once."""
    path, tree, node = find(mutant.place, root)
    replace = Replace(mutant.old, mutant.new)
    replace.visit(node)
    if replace.count != 1:
        raise ValueError(
            f"{mutant.place}: {mutant.old} stands there {replace.count} times, not once"
        )
    return path, ast.unparse(ast.fix_missing_locations(tree))


def tests_of(mutant):
    """The test files that should notice a break."""
    module = find(mutant.place)[0].stem
    return [f"tests/test_{name}.py" for name in (mutant.tests or module).split()]


QUICKLY = ("-xq", "--tb=line", "-p", "no:cacheprovider")


def run_tests(tests, path=None, text=None, limit=900):
    """(pytest's exit status, what failed first) in a copy of the package, broken by text at path.

    Status 1: a test failed.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        for part in ("transformer", "tests"):
            shutil.copytree(
                ROOT / part,
                Path(name, part),
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        for part in ("data", "notebooks", "tools", "pyproject.toml"):
            Path(name, part).symlink_to(ROOT / part)
        if path:
            Path(name, path.relative_to(ROOT)).write_text(text, encoding="utf8")
        environment = {**os.environ, "PYTHONPATH": name, "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *QUICKLY, *tests],
                cwd=name,
                env=environment,
                capture_output=True,
                text=True,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            return 1, "ran for ever"
    lines = done.stdout.strip().splitlines() or ["no output"]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, (failed or lines[-1:])[0].split(" - ")[0]


def try_mutant(mutant):
    """(noticed, by what) for one mutant."""
    status, by = run_tests(tests_of(mutant), *broken(mutant))
    return status == 1, by.removeprefix("FAILED ")


def arguments_of_command():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def main():
    arguments = arguments_of_command()
    words = arguments.words or [""]
    chosen = [
        m for m in read_table() if any(word in f"{m.area} {m.place}" for word in words)
    ]
    for mutant in chosen:
        broken(mutant)
    if arguments.list:
        print(f"{len(chosen)} rows, each fits once")
        return
    start, survived = time.time(), 0
    files = sorted({name for mutant in chosen for name in tests_of(mutant)})
    status, last = run_tests(["-n", str(arguments.jobs), *files])
    if status:
        sys.exit(f"the tests must pass on the unbroken package first: {last}")
    print(f"unbroken: {last}", flush=True)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, (noticed, by) in zip(chosen, pool.map(try_mutant, chosen)):
            survived += not noticed
            print(
                f"{'noticed ' if noticed else 'SURVIVED'}  {mutant.area:20} {mutant.place}: "
                f"{mutant.old} -> {mutant.new}  ({by})",
                flush=True,
            )
    print(
        f"{len(chosen) - survived} of {len(chosen)} noticed in {time.time() - start:.0f} s"
    )
    sys.exit(survived > 0)


if __name__ == "__main__":
    main()
