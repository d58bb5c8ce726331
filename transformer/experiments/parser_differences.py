"""What the rows of the parsers' record say (`transformer.experiments.parser`), as data/runs/parser.md
laid down."""

import numpy as np

from transformer.core.analysis import holm
from transformer.core.files import git_commit
from transformer.experiments.runner import slug

COMMAND = "python -m transformer.experiments.parser"
UNCONSTRAINED, CONSTRAINED = "test.beam 4", "test.beam 4, only trees"
SINGLE = [
    ("third: vocabulary", "third: as it was"),
    ("third: words", "third: vocabulary"),
    ("third: count", "third: vocabulary"),
    ("third: falling rate", "third: vocabulary"),
    ("third: all", "third: vocabulary"),
    ("third: all, bracket", "third: all"),
    ("third: all, bracket, depth", "third: all"),
]
# ((row, way), (row, way)): the first minus the second
FINAL = [
    (("all", UNCONSTRAINED), ("as it was", UNCONSTRAINED)),
    (("all", CONSTRAINED), ("all", UNCONSTRAINED)),
    (("all", CONSTRAINED), ("grammar", "test")),
    (("spans", "test.CKY"), ("all", CONSTRAINED)),
    (("all, bracket", UNCONSTRAINED), ("all", UNCONSTRAINED)),  # given up, but counted
    (("all, bracket, depth", UNCONSTRAINED), ("all", UNCONSTRAINED)),
]


def counted(rows: list[dict], row: str, way: str) -> tuple | None:
    """Right brackets and brackets of each sentence, (2, sentences), summed over the seeds of a row,
    and how many seeds; None where it has not been scored so.
    """
    found = [
        (r[f"{way}.sentence.matched"], r[f"{way}.sentence.test"])
        for r in rows
        if r.get("row") == row and f"{way}.sentence.matched" in r
    ]
    return (np.sum(found, axis=0), len(found)) if found else None


def difference(
    one: tuple, other: tuple, gold: np.ndarray, sizes: list[int], draws: int = 10_000
) -> dict:
    """F1 minus F1 with its interval and p, by a paired bootstrap over whole articles.

    one, other: see `counted`; gold (sentences,): brackets in the gold trees.
    """
    article = np.repeat(np.arange(len(sizes)), sizes)

    def by_article(found):
        (matched, test), seeds = found
        both = [2 * matched, test + seeds * gold]
        return np.array([np.bincount(article, side, len(sizes)) for side in both])

    sides = [by_article(found) for found in (one, other)]
    times = np.random.RandomState(0).multinomial(
        len(sizes), [1 / len(sizes)] * len(sizes), draws
    )
    found = [100 * (side[0] @ times.T) / (side[1] @ times.T) for side in sides]
    drawn = found[0] - found[1]
    whole = [100 * side[0].sum() / side[1].sum() for side in sides]
    low, high = np.percentile(drawn, [2.5, 97.5])
    p = min(1.0, 2 * (1 + min((drawn <= 0).sum(), (drawn >= 0).sum())) / (1 + draws))
    return {
        "f1": round(whole[0] - whole[1], 2),
        "low": round(low, 2),
        "high": round(high, 2),
        "p": p,
    }


def compared(rows: list[dict], a: tuple, b: tuple, text: dict) -> dict | None:
    """One (row, way) minus another, where both are there; text: the row that holds the articles."""
    one, other = counted(rows, *a), counted(rows, *b)
    if not (one and other):
        return None
    first, second = (
        f"{row}{way.removeprefix('test').replace('.', ', ')}" for row, way in (a, b)
    )
    return {
        "what": "difference",
        "name": f"difference-{slug(a[0])}-{slug(b[0])}",
        "row": first,
        "beside": second,
        **difference(one, other, np.array(text["gold"]), text["articles"]),
    }


def differences(rows: list[dict]) -> list[dict]:
    """The comparisons that parser.md names, where both sides are there."""
    text = next((r for r in rows if r["name"] == "right-branching"), None)
    if text is None:
        return []
    origin = {"command": COMMAND, "commit": git_commit(), "hardware": text["hardware"]}
    found = []
    for group in ([((a, UNCONSTRAINED), (b, UNCONSTRAINED)) for a, b in SINGLE], FINAL):
        pairs = [compared(rows, a, b, text) for a, b in group]
        part = [{**pair, **origin} for pair in pairs if pair]
        # the correction is for all that are planned
        missing = [1.0] * (len(group) - len(part))
        for row, p in zip(part, holm(np.array([row["p"] for row in part] + missing))):
            row["p"] = float(f"{p:.3g}")
        found += part
    return found
