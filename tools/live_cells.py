"""Which cells of a notebook are live in its module: those that only import and define."""

import ast
import builtins
from collections.abc import Iterator
from symtable import symtable

LOOKS = "active-ipynb"  # the tag of a cell that is a comment in the module
FOLDED = "hide-input"  # the tag of a cell whose code the site folds away


def does_something(body) -> Iterator[ast.stmt]:
    """Statements that do something when a module is imported, besides importing and defining."""
    defines = (
        ast.Import,
        ast.ImportFrom,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Assign,
        ast.AnnAssign,
        ast.Pass,
        ast.Raise,
    )
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            handlers = [
                line
                for handler in getattr(node, "handlers", [])
                for line in handler.body
            ]
            yield from does_something(
                [*node.body, *node.orelse, *handlers, *getattr(node, "finalbody", [])]
            )
        elif not isinstance(node, defines):
            if not (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            ):
                yield node


def computes(node):
    """Whether an assignment is no constant: a name in small letters for what a call gives."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    small = any(
        not ast.unparse(target).lstrip("(_")[:1].isupper() for target in targets
    )
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    made = all(ast.unparse(call.func) in ("partial", "replace") for call in calls)
    return small and not made


def only_defines(source, known):
    """Whether a cell can stand in a module that knows these names; adds those that it defines."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # magics, or unfinished
        return False
    symbols = symtable(source, "cell", "exec").get_symbols()
    defined = {
        symbol.get_name()
        for symbol in symbols
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    }
    read = {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
    strange = read - defined - known - set(dir(builtins)) - {"__file__", "__name__"}
    if strange or any(does_something(body)) or any(map(computes, body)):
        return False
    known |= defined
    return True


def tag_cells(book):
    """Tag each untagged cell of code that does more than import and define: it looks, or it is
    somebody's scratch; the sources of those."""
    known, tagged = set(), []
    for cell in book.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "code" and cell.source.strip() and not {*tags} - {FOLDED}:
            if not only_defines(cell.source, known):
                cell.metadata["tags"] = [LOOKS, *tags]
                tagged.append(cell.source)
    return tagged
