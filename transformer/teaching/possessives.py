"""What "its" becomes in German: owners that chapter 16 asks about, counts, and lessons.

The owners are words of the bundled corpus, thirteen feminine in German and thirteen masculine.
"""

import re
from collections.abc import Iterable

Pairs = list[tuple[str, str]]

FEMININE = (
    "bank bee city clock company cow duck flower machine mouse snake sun university"
).split()
MASCULINE = (
    "bear bird computer elephant fish king lion moon river table train tree wolf"
).split()


def stem(german: str) -> str:
    """Which possessive is in a German sentence: "ihr", "sein" or "neither"?"""
    found = re.search(r"\b(ihr|sein)(e|en|em|er|es)?\b", german.lower())
    return found[1] if found else "neither"


def with_its(pairs: Pairs) -> Pairs:
    """The pairs (English, German) in which English says "its"."""
    return [pair for pair in pairs if re.search(r"\bits\b", pair[0].lower())]


def without(pairs: Pairs, words: Iterable[str]) -> Pairs:
    """The pairs whose English has none of the words."""
    return [p for p in pairs if not set(words) & set(re.findall(r"\w+", p[0].lower()))]


def lessons(pairs: Pairs, n: int) -> Pairs:
    """The first n pairs with "its" and *ihr*, and the first n with "its" and *sein*."""
    its = with_its(pairs)
    ihr, sein = ([p for p in its if stem(p[1]) == kind] for kind in ("ihr", "sein"))
    return ihr[:n] + sein[:n]
