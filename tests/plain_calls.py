"""The calls of plain classes and functions that the notebooks make, read from their code."""

import ast
import re
from dataclasses import dataclass
from functools import cache

import nbformat
import pairs

LAST = 16  # from 17 on notebooks use the engine


@dataclass(frozen=True)
class Call:
    """A call of something that a chapter defines, "attention.MultiHeadAttention" or, of an instance
    of such a class, "attention.MultiHeadAttention.forward"."""

    name: str
    positional: int
    keywords: tuple[str, ...]
    partly: (
        bool  # more arguments than the text shows: *these, **those, functools.partial
    )
    text: str


def chapters():
    """{module: its notebook} up to the last that uses the plain forms."""
    numbered = pairs.notebooks()
    return {path.stem[3:]: path for path in numbered if int(path.stem[:2]) <= LAST}


@cache
def tree_of(notebook):
    """The syntax tree of a notebook's whole code."""
    cells = nbformat.read(notebook, as_version=4).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    lines = "\n".join(code).splitlines()
    # magics begin with %, commands with !
    return ast.parse(
        "\n".join(re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in lines)
    )


def defined_in(chapter):
    """The names of the classes and functions that a chapter defines."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    body = tree_of(chapters()[chapter]).body
    return {node.name for node in body if isinstance(node, kinds)}


def named_in(chapter):
    """{name in a chapter's code: "module.name" of what a chapter defines}."""
    names = {name: f"{chapter}.{name}" for name in defined_in(chapter)}
    for node in ast.walk(tree_of(chapters()[chapter])):
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").removeprefix("transformer.")
            if module in chapters():
                for alias in node.names:
                    names[alias.asname or alias.name] = f"{module}.{alias.name}"
    return names


def made_by(node, names):
    """What a value is an instance of: `Class(...)`, also with `.double().eval()` behind it."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return names.get(node.func.id)
        node = node.func.value if isinstance(node.func, ast.Attribute) else None
    return None


def instances_in(tree, names):
    """{"model" or "self.attention": "module.Class"} of what is assigned in a tree."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and (made := made_by(node.value, names)):
            found |= {ast.unparse(target): made for target in node.targets}
    return found


def target_of(function, names, instances):
    """What a call's function is: "module.name", "module.Class.method", or None."""
    text = ast.unparse(function)
    if text in names:
        return names[text]
    if text in instances:
        return f"{instances[text]}.forward"
    if isinstance(function, ast.Call) and (made := made_by(function, names)):
        return f"{made}.forward"
    if isinstance(function, ast.Attribute):
        made = instances.get(ast.unparse(function.value)) or made_by(
            function.value, names
        )
        return made and f"{made}.{function.attr}"
    return None


def call_of(node, names, instances):
    """The `Call` that a node is, or None."""
    function, arguments = node.func, node.args
    in_part = ast.unparse(function) == "partial" and bool(arguments)
    if in_part:
        function, *arguments = arguments
    name = target_of(function, names, instances)
    if name is None:
        return None
    plain = [part for part in arguments if not isinstance(part, ast.Starred)]
    keywords = tuple(word.arg for word in node.keywords if word.arg)
    partly = (
        in_part or len(plain) < len(arguments) or len(keywords) < len(node.keywords)
    )
    return Call(name, len(plain), keywords, partly, ast.unparse(node))


def arguments_of(function):
    """The names of a function's parameters, which stand for something else inside it."""
    given = function.args
    every = [
        *given.posonlyargs,
        *given.args,
        *given.kwonlyargs,
        given.vararg,
        given.kwarg,
    ]
    return {part.arg for part in every if part}


def calls_below(node, names, instances):
    """Yield the calls in a tree, with what each name means where they stand."""
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        own = arguments_of(node)
        names = {name: what for name, what in names.items() if name not in own}
        instances = {name: what for name, what in instances.items() if name not in own}
    if isinstance(node, ast.Call) and (call := call_of(node, names, instances)):
        yield call
    for inner in ast.iter_child_nodes(node):
        yield from calls_below(inner, names, instances)


def calls_in(chapter):
    """The calls of what chapters define, in one chapter's notebook."""
    tree, names = tree_of(chapters()[chapter]), named_in(chapter)
    return list(calls_below(tree, names, instances_in(tree, names)))
