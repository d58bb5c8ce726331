"""The words of both languages: the tables of data/lexicon, one for each class of words."""

import csv
from dataclasses import dataclass, fields, replace
from pathlib import Path

LEXICON = Path(__file__).resolve().parents[1] / "lexicon"


@dataclass(frozen=True, eq=False)
class Entry:
    """A word and its translation: a row of a table. Columns that its class has not are empty."""

    english: tuple  # all its forms, the base first
    german: tuple
    kinds: tuple = ()  # what it does and goes with
    number: int = (
        0  # to the rule for held-out pairs all pronouns are one noun with number 0
    )
    role: str = "word"  # the table that it is from
    gender: str = ""  # of a noun: m f n
    weak: bool = False  # of a noun: der Junge, den Jungen
    person: str = ""  # of a pronoun, agreement with the verb: 1 (ich), 3 or pl
    stem: str = ""  # of an adjective: what the endings are added to
    endings: str = (
        ""  # of a determiner, weak, mixed or strong: the adjectives that follow
    )
    case: str = "dat"  # of a preposition
    tail: str = ""  # of a verb: "for" in "look for"
    particle: str = ""  # of a verb: "an" in "anrufen"
    auxiliary: str = ""  # of a verb: haben or sein
    reflexive: bool = False  # of a verb

    @property
    def base(self) -> str:
        """The English lemma."""
        return self.english[0]

    def is_a(self, *kinds: str) -> bool:
        return not set(kinds).isdisjoint(self.kinds)


@dataclass(frozen=True, eq=False)
class Frame:
    """One way to use a verb: its kind, who does it, to what, and the optional parts that fit."""

    number: int  # of its verb
    kind: str
    subjects: tuple
    objects: tuple
    extras: str
    governs: tuple = ()  # preposition, its translation, and their case
    verb: Entry | None = None

    @property
    def preposition(self) -> Entry:
        english, german, case = self.governs
        return Entry((english,), (german,), case=case)


class Lexicon:
    """All entries: `lexicon["noun"]` is the list of the nouns."""

    def __init__(self, folder: Path = LEXICON):
        frames = read_table(folder / "frames.tsv", Frame)
        self.entries = {
            path.stem: read_table(path, Entry, role=path.stem)
            for path in sorted(folder.glob("words/*.tsv"))
        }
        verbs = {verb.number: verb for verb in self["verb"]}
        self.frames = [replace(frame, verb=verbs[frame.number]) for frame in frames]

    def __getitem__(self, role: str) -> list:
        return self.entries[role]

    def find(self, role: str, english: str) -> Entry:
        """The entry with this base form."""
        return next(entry for entry in self[role] if entry.base == english)

    def used(self, role: str, *kinds: str) -> list:
        """The entries of a class that are of one of some kinds."""
        return [entry for entry in self[role] if entry.is_a(*kinds)]

    def frames_of(self, *kinds: str) -> list:
        """The ways to use verbs."""
        return [frame for frame in self.frames if frame.kind in kinds]

    def prepositions(self, kind: str, case: str) -> list:
        return [p for p in self.used("preposition", kind) if p.case == case]


def read_table(path: Path, row_class: type, **same) -> list:
    """The rows of a table as objects; cells that hold several values have commas between them."""
    types = {column.name: column.type for column in fields(row_class)}
    with open(path, encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [
        row_class(
            **{name: value(types[name], cell) for name, cell in row.items()}, **same
        )
        for row in rows
    ]


def value(kind: type, cell: str):
    """A cell as a value of a type."""
    return tuple(filter(None, cell.split(","))) if kind is tuple else kind(cell)
