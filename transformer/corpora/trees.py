"""Trees of phrases as nltk's `Tree`s: reading brackets, and going through a tree without recursion.

An untrained parser may open a thousand brackets, so nothing here calls itself. A leaf is a `Tree`
of one word whose label is its part of speech.
"""

from itertools import accumulate

try:
    from nltk.tree import Tree
except ModuleNotFoundError:

    class Tree:
        """Stands in where nltk is missing: whoever makes a tree is told what to install."""

        def __new__(cls, *arguments, **options):
            raise ModuleNotFoundError(
                "trees need nltk, which is not installed: pip install nltk", name="nltk"
            )

        fromstring = __new__


SYMBOL = r"[^ \t\n\r\f\v()]+"  # words of CRAFT may hold spaces that are not ASCII's
DEEPEST = 400  # brackets inside each other; nltk stops soon after


def is_leaf(tree):
    """True for a part of speech over its word."""
    return len(tree) == 1 and isinstance(tree[0], str)


def walk(tree):
    """Yield (mark, tree) from left to right: "open" and later "close", or "leaf"."""
    if tree is None:
        raise ValueError("there is no tree: nothing was left of it")
    todo = [("leaf" if is_leaf(tree) else "open", tree)]
    while todo:
        mark, t = todo.pop()
        yield mark, t
        if mark == "open":
            todo.append(("close", t))
            todo += [
                ("leaf" if is_leaf(part) else "open", part) for part in reversed(t)
            ]


def leaves_of(tree):
    """(word, part of speech) of each leaf, from left to right, as nltk's `pos` gives them."""
    return [(t[0], t.label()) for mark, t in walk(tree) if mark == "leaf"]


def read_tree(text: str):
    """The first `Tree` in a text of brackets; ValueError where there is none."""
    found = read_trees(text)
    if not found:
        raise ValueError(f"there is no tree in {text[:60]!r}")
    return found[0]


def read_trees(text: str) -> list:
    """The `Tree`s in a text of brackets.

    ValueError where brackets do not match, nest too deep for nltk, or hold two words.
    """
    depths = accumulate((symbol == "(") - (symbol == ")") for symbol in text)
    if max(depths, default=0) > DEEPEST:
        raise ValueError(
            f"more than {DEEPEST} brackets inside each other in {text[:60]!r}"
        )
    try:
        found = Tree.fromstring(f"({text})", node_pattern=SYMBOL, leaf_pattern=SYMBOL)
    except ValueError:
        found = Tree(text, [text])
    if found.label() or any(isinstance(part, str) for part in found):
        raise ValueError(f"brackets do not match in {text[:60]!r}")
    for tree in found.subtrees():
        if len(tree) > 1 and any(isinstance(part, str) for part in tree):
            raise ValueError(
                f"the bracket {tree.label()} holds a word and something else: "
                "a word stands in a bracket of its own"
            )
    return list(found)
