"""The words of both languages, one entry a line of lexicon.tsv, and the forms that a rule gives."""

import re
from dataclasses import dataclass, field
from pathlib import Path

LEXICON = Path(__file__).resolve().parents[1] / "lexicon.tsv"
GENDERS = {"der": "m", "die": "f", "das": "n"}


@dataclass(frozen=True)
class Entry:
    """A word and its translation, each a string or all its forms; `number` is its line."""

    number: int
    english: str | tuple
    german: str | tuple

    def is_a(self, *kinds: str) -> bool:
        return not self.kinds.isdisjoint(kinds)


@dataclass(frozen=True)
class Simple(Entry):
    """A word that does not change: an adverb, a conjunction, a modal verb."""

    use: str = ""


@dataclass(frozen=True)
class Noun(Entry):
    """A noun, a name or a city; singular and plural. `kinds` say what it does and goes with."""

    gender: str  # m f n
    kinds: frozenset
    weak: bool = False  # der Junge, den Jungen
    role: str = "noun"  # noun, name or city


@dataclass(frozen=True)
class Pronoun(Entry):
    """Subject, object; nominative, accusative, dative. It does what a person does."""

    person: str  # agreement with the verb: 1 (ich), 3 or pl
    kinds: frozenset = frozenset({"person"})
    role: str = "pronoun"


@dataclass(frozen=True)
class Adjective(Entry):
    stem: str  # what the endings are added to
    comparative: Simple | None  # None where it is not used
    kinds: tuple


@dataclass(frozen=True)
class Preposition(Simple):
    case: str = "dat"


@dataclass(frozen=True)
class Determiner(Entry):
    plural: str
    endings: str  # weak, mixed or strong: the adjectives that follow


@dataclass(frozen=True, eq=False)
class Verb(Entry):
    """Base, third person, past, participle; infinitive, third person, past, participle."""

    tail: str  # "for" in "look for"
    particle: str  # "an" in "anrufen"
    auxiliary: str  # haben or sein
    reflexive: bool
    frames: list = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Frame:
    """One way to use a verb: its kind, who does it, to what, and the optional parts that fit."""

    verb: Verb
    kind: str
    subjects: list
    objects: tuple
    extras: str
    preposition: Preposition | None = None

    @property
    def number(self) -> int:
        return self.verb.number


class Lexicon:
    """All entries: `lexicon["noun"]` is the list of the nouns."""

    def __init__(self, path: Path = LEXICON):
        self.entries = {}
        for number, line in enumerate(path.read_text(encoding="utf8").splitlines()):
            if line and not line.startswith("#"):
                kind, english, german, use = line.split("\t")
                read = READERS.get(kind, read_simple)
                self.entries.setdefault(kind, []).append(read(number, english, german, use))
        self.frames = [frame for verb in self["verb"] for frame in verb.frames]

    def __getitem__(self, kind: str) -> list:
        return self.entries[kind]

    def find(self, kind: str, english: str):
        """The entry with this (base) form."""
        return next(entry for entry in self[kind] if base_form(entry) == english)

    def used(self, kind: str, *uses: str) -> list:
        """The entries of a class with one of these uses."""
        return [e for e in self[kind] if e.use in uses]

    def frames_of(self, *kinds: str) -> list:
        """The ways to use verbs."""
        return [frame for frame in self.frames if frame.kind in kinds]

    def prepositions(self, kind: str, case: str) -> list:
        return [p for p in self.used("preposition", kind) if p.case == case]


def base_form(entry) -> str:
    """The English lemma."""
    return entry.english if isinstance(entry.english, str) else entry.english[0]


# ---- the forms that follow a rule


def english_s(word: str) -> str:
    """The ending of plurals and of the third person."""
    if re.search(r"(s|x|z|ch|sh)$", word) or word in ("go", "do"):
        return word + "es"
    return re.sub(r"(?<=[^aeiou])y$", "ie", word) + "s"


def english_ed(word: str) -> str:
    """The ending of the past."""
    if word.endswith("e"):
        return word + "d"
    return re.sub(r"(?<=[^aeiou])y$", "i", word) + "ed"


# ---- one reader for each class


def read_simple(number, english, german, use):
    return Simple(number, english.replace("_", " "), german, use)


def read_noun(number, english, german, kinds):
    forms = (*english.split(), english_s(english))[:2]
    article, singular, plural, *weak = german.split()
    tags = {forms[0], *kinds.split()}
    if "person" in tags and "young" not in tags:
        tags |= {"adult"} if "aged" in tags else {"adult", "junior"}
    return Noun(number, forms, (singular, plural), GENDERS[article], frozenset(tags), bool(weak))


def read_name(number, english, german, gender):
    kinds = frozenset({"person", "adult", english})
    return Noun(number, (english,), (german,), gender, kinds, role="name")


def read_city(number, english, german, use):
    return Noun(number, (english,), (german,), "n", frozenset({"city"}), role="city")


def read_pronoun(number, english, german, person):
    # to the rule for held-out pairs all pronouns are one noun with number 0
    return Pronoun(0, tuple(english.split()), tuple(german.split()), person)


def read_adjective(number, english, german, kinds):
    base, *compared = english.split()
    positive, *german_compared = german.split()
    german, _, stem = positive.partition("/")
    comparative = None
    if german_compared:
        text = compared[0] if compared else f"more {base}"
        comparative = Simple(number, text, german_compared[0])
    return Adjective(number, base, german, stem or german, comparative, tuple(kinds.split()))


def read_verb(number, english, german, frames):
    first, *irregular = english.split()
    base, _, tail = first.partition("_")
    past = irregular[0] if irregular else english_ed(base)
    forms = base, english_s(base), past, irregular[-1] if irregular else past
    first, third, german_past, participle, *reflexive = german.split()
    particle, _, infinitive = first.rpartition("-")
    auxiliary = "sein" if participle.startswith("+") else "haben"
    german_forms = infinitive, third, german_past, participle.lstrip("+")
    verb = Verb(number, forms, german_forms, tail, particle, auxiliary, "sich" in reflexive)
    verb.frames.extend(read_frame(verb, text) for text in frames.split(";"))
    return verb


def read_frame(verb, text):
    kind, subjects, objects, extras = text.split(":")
    preposition = None
    if kind == "prep":
        english, german, case, objects = objects.split()
        preposition = Preposition(0, english, german, case=case)
    objects = tuple(filter(None, objects.split(",")))
    return Frame(verb, kind, subjects.split(","), objects, extras, preposition)


def read_preposition(number, english, german, use):
    german, case = german.split()
    return Preposition(number, english.replace("_", " "), german, use, case)


def read_determiner(number, english, german, use):
    forms = english.split()
    return Determiner(number, forms[0], german, forms[-1], use.split()[0])


CHANGING = (
    read_noun, read_name, read_city, read_pronoun, read_adjective, read_verb,
    read_preposition, read_determiner,
)
READERS = {reader.__name__.removeprefix("read_"): reader for reader in CHANGING}
