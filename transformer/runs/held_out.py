"""Pairs of own files that are kept from training, to validate on: whole groups of equal sentences.

Copies of a sentence on both sides of the border would let a model recite what it is asked. Pairs
with an equal source or an equal target, and what these are linked to by others, are a group; a
group is trained on or held out, never both. `hold_out` keeps three numbers of a line, so that the
pairs need not be in memory, and `chosen_pairs` picks those of one side.
"""

import hashlib
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from transformer.core.files import write_file
from transformer.core.white_space import is_blank, normalised

SHARE, MOST = 100, 1000  # a hundredth of the pairs, and no more than so many
FILE = "held_out.tsv"


@dataclass(frozen=True)
class Report:
    """What `hold_out` counted; `sentences` says it."""

    pairs: int  # in the files
    blank: int  # with a blank side: on neither side
    held_out: int  # different pairs
    copies: int  # of held-out pairs: on neither side
    near: int  # held-out pairs like a training pair but for case, digits, marks and spaces
    linked: bool  # True where the pairs are all one group, so that only equal pairs stay together

    def sentences(self) -> list[str]:
        """What is to be said before a training begins."""
        said = [
            f"{self.held_out:,} of {self.pairs:,} pairs, from all over your files, are "
            f"kept from training to validate on: see {FILE} in the run's folder"
        ]
        if self.blank:
            said.append(f"{self.blank:,} pairs with a blank side are left out")
        if self.copies:
            said.append(f"{self.copies:,} copies of pairs to validate on are left out")
        if self.near:
            said.append(
                f"{self.near:,} of the pairs to validate on are in training but for case, "
                "digits, punctuation or spaces: validation will look better than it is"
            )
        if self.linked:
            said.append(
                "all pairs are linked by equal sources or targets, so some of these are "
                "on both sides: validation will look better than it is"
            )
        return said


class Split(NamedTuple):
    """Indices of pairs, from 0 and ascending, and the report."""

    training: np.ndarray
    held_out: np.ndarray
    report: Report


def number_of(text: str) -> int:
    """A number of 64 bits, in practice another one for another text; the same everywhere."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf8"), digest_size=8).digest())


def bare(text: str) -> str:
    """A text without case, digits, punctuation and spaces; itself where nothing is left."""
    return re.sub(r"[\W\d_]+", "", text.casefold()) or text


def numbers_of(
    pairs: Iterable[tuple[str, str]],
) -> tuple[np.ndarray, np.ndarray, int]:
    """(source, target, bare source and target) of each pair that is not blank, (3, n); the index of
    each; how many pairs there are."""
    columns = [array("Q"), array("Q"), array("Q")]  # eight bytes a number
    places, place = array("q"), -1
    for place, (source, target) in enumerate(pairs):
        if is_blank(source) or is_blank(target):
            continue
        source, target = normalised(source), normalised(target)
        columns[0].append(number_of(source))
        columns[1].append(number_of(target))
        columns[2].append(number_of(f"{bare(source)}\t{bare(target)}"))
        places.append(place)
    numbers = np.array(columns, dtype=np.uint64)
    return numbers, np.array(places, dtype=np.int64), place + 1


def groups_of(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """For each pair the number of its group: the lowest source that it is linked to."""
    names, own = np.unique(source, return_inverse=True)
    targets, other = np.unique(target, return_inverse=True)
    group = np.arange(len(names))  # of each source
    while True:
        lowest = np.full(len(targets), len(names))
        np.minimum.at(lowest, other, group[own])
        linked = group.copy()
        np.minimum.at(linked, own, lowest[other])
        linked = linked[linked]  # a long chain in few rounds
        if (linked == group).all():
            return names[group[own]]
        group = linked


def drawn(groups: np.ndarray, wanted: int) -> np.ndarray:
    """The groups to hold out, in an order that only their texts decide, together about `wanted`.

    groups: that of each different pair. A group that would be too many is passed over; where all
    are, the smallest one is taken. None where there is one group.
    """
    names, sizes = np.unique(groups, return_counts=True)
    if len(names) < 2:
        return names[:0]
    order = np.argsort(names * np.uint64(0x9E3779B97F4A7C15), kind="stable")
    names, sizes = names[order], sizes[order]
    chosen, count = [], 0
    for name, size in zip(names, sizes.tolist()):
        if count + size <= wanted:
            chosen.append(name)
            count += size
        if count == wanted:
            break
    return np.array(chosen or [names[sizes.argmin()]], dtype=np.uint64)


def wanted_of(different: int, count: int | None) -> int:
    """How many of so many different pairs to hold out; ValueError as in `hold_out`."""
    if different < 2:
        raise ValueError(
            f"training needs at least 2 different pairs, one of them to validate on, not "
            f"{different}"
        )
    if count is not None and count >= different:
        raise ValueError(
            f"held_out {count} leaves nothing to train on: there are {different} "
            "different pairs"
        )
    return count or max(1, min(MOST, different // SHARE))


def hold_out(pairs: Iterable[tuple[str, str]], count: int | None = None) -> Split:
    """Which pairs to train on, and which about `count` to validate on: where it is not given a
    hundredth, at most 1,000, at least one.

    Of equal pairs that are held out the first stands for all. The same pairs in another order are
    held out alike. ValueError where there are not two different pairs, and where none would be
    left to train on.
    """
    (source, target, near), places, found = numbers_of(pairs)
    both = source * np.uint64(3) ^ target  # of equal pairs the same
    different, first = np.unique(both, return_index=True)
    wanted = wanted_of(len(different), count)
    groups = groups_of(source, target)
    names = drawn(groups[first], wanted)
    if linked := not len(names):
        groups = both
        names = drawn(different, wanted)
    held = np.isin(groups, names)
    kept = np.zeros(len(held), dtype=bool)
    kept[first] = True
    shown, trained = held & kept, ~held
    report = Report(
        found,
        found - len(places),
        int(shown.sum()),
        int(held.sum() - shown.sum()),
        int(np.isin(near[shown], near[trained]).sum()),
        linked,
    )
    return Split(places[trained], places[shown], report)


def chosen_pairs(
    pairs: Iterable[tuple[str, str]], indices: np.ndarray
) -> Iterator[tuple[str, str]]:
    """Yield the pairs at these ascending indices."""
    wanted = iter(indices.tolist())
    next_one = next(wanted, None)
    for place, pair in enumerate(pairs):
        if place == next_one:
            yield pair
            next_one = next(wanted, None)
        if next_one is None:
            return


def write_held_out(
    folder: Path, held_out: np.ndarray, pairs: Iterable[tuple[str, str]]
) -> Path:
    """Write line number, source and target of what is held out into a run's folder; the path.

    held_out: the indices of these pairs.
    """
    rows = zip((held_out + 1).tolist(), pairs)
    lines = [
        f"{number}\t{normalised(source)}\t{normalised(target)}\n"
        for number, (source, target) in rows
    ]
    path = Path(folder) / FILE
    write_file(
        path, lambda file: Path(file).write_text("".join(lines), encoding="utf8")
    )
    return path
