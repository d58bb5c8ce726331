"""Brackets counted as EVALB (Sekine and Collins) counts them: equal on its sample in every
figure."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain

from transformer.corpora.trees import leaves_of, walk


@dataclass(frozen=True)
class Settings:
    """What EVALB reads from a parameter file.

    Labels it deletes, labels that do not count for the length, and what counts as equal. A deleted
    label on a leaf takes the word away; on a constituent only the bracket.
    """

    delete: tuple = ("TOP", "-NONE-", ",", ":", "``", "''", ".")
    delete_for_length: tuple = ("-NONE-",)
    equal_labels: tuple = (("ADVP", "PRT"),)
    equal_words: tuple = ()


COLLINS = Settings()  # the usual ones


@dataclass(frozen=True)
class BracketScore:
    """One row of EVALB's report.

    Counts for one sentence: brackets in both trees, in gold, in test; test brackets that cross gold
    ones; words; right tags. status: 0 scored; 1 an error, because the words differ or the test line
    is no tree; 2 skipped, because it has no words.
    """

    length: int
    status: int = 0
    matched: int = 0
    gold: int = 0
    test: int = 0
    crossing: int = 0
    words: int = 0
    tags: int = 0


def first_of(name, equal):
    """A label or word, or the one that it counts as equal to."""
    return next((a for a, b in equal if b == name), name)


def brackets(trees, settings=COLLINS):
    """What counts in a sentence's trees: the leaves, and the spans (label, first word, end).

    Leaves are (word, part of speech); spans come as a Counter. A constituent that holds no word any
    more does not count.
    """
    leaves, spans, starts = [], Counter(), []
    for mark, t in chain.from_iterable(map(walk, trees)):
        if mark == "leaf":
            leaves += [(t[0], t.label())] if t.label() not in settings.delete else []
        elif mark == "open":
            starts.append(len(leaves))
        else:
            start = starts.pop()
            label = re.split("[-=]", t.label())[0]
            if start < len(leaves) and label not in settings.delete:
                spans[first_of(label, settings.equal_labels), start, len(leaves)] += 1
    return leaves, spans


def cross(a, b):
    """Do two spans (label, start, end) overlap, neither inside the other?"""
    return a[1] < b[1] < a[2] < b[2] or b[1] < a[1] < b[2] < a[2]


def score_trees(gold, test, settings=COLLINS) -> BracketScore:
    """The score of a sentence's trees, two lists, usually of one tree; test may be None: no
    tree."""
    all_tags = [tag for tree in gold for _, tag in leaves_of(tree)]
    length = sum(tag not in settings.delete_for_length for tag in all_tags)
    leaves, spans = brackets(gold, settings)
    words, tags = equal_names(leaves, settings)
    test_leaves, test_spans = brackets(test or [], settings)
    test_words, test_tags = equal_names(test_leaves, settings)
    if not test_words or words != test_words:
        without_words = test is not None and not test_words
        return BracketScore(length, status=2 if without_words else 1, words=len(words))
    crossing = [
        count
        for span, count in test_spans.items()
        if any(cross(span, other) for other in spans)
    ]
    return BracketScore(
        length,
        matched=(spans & test_spans).total(),
        gold=spans.total(),
        test=test_spans.total(),
        crossing=sum(crossing),
        words=len(words),
        tags=sum(a == b for a, b in zip(tags, test_tags)),
    )


def equal_names(leaves, settings):
    """The words and the parts of speech of leaves, each as the one that it counts as equal to."""
    words = [first_of(word, settings.equal_words) for word, _ in leaves]
    return words, [first_of(tag, settings.equal_labels) for _, tag in leaves]


def summary(rows) -> dict:
    """EVALB's summary of `BracketScore`s, shares in per cent.

    The counts are added up first, then divided; errors and skipped sentences take no part.
    """

    def percent(part, whole):
        return 100 * part / whole if whole else 0.0

    valid = [row for row in rows if row.status == 0]
    names = ("matched", "gold", "test", "crossing", "words", "tags")
    total = {name: sum(getattr(row, name) for row in valid) for name in names}
    complete = sum(row.matched == row.gold == row.test for row in valid)
    return {
        "sentences": len(rows),
        "errors": sum(row.status == 1 for row in rows),
        "skipped": sum(row.status == 2 for row in rows),
        "recall": percent(total["matched"], total["gold"]),
        "precision": percent(total["matched"], total["test"]),
        "f1": percent(2 * total["matched"], total["gold"] + total["test"]),
        "complete": percent(complete, len(valid)),
        "average_crossing": total["crossing"] / max(1, len(valid)),
        "no_crossing": percent(sum(row.crossing == 0 for row in valid), len(valid)),
        "two_or_less_crossing": percent(
            sum(row.crossing <= 2 for row in valid), len(valid)
        ),
        "tagging": percent(total["tags"], total["words"]),
    }
