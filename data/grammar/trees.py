"""The tree of a sentence, drawn once and written in both languages: clauses and noun phrases.

Each part has a key; what is written for a part of the tree carries names made of that key, and
words of the two languages that share such a name are aligned.
"""

from dataclasses import dataclass, field
from itertools import count

from .lexicon import Entry

PERFECT = ("perfect", "pluperfect")


@dataclass
class Part:
    key: int = field(default_factory=count(1).__next__, init=False)

    def link(self, role: str) -> str:
        """The name of one of its words."""
        return f"{self.key}.{role}"


@dataclass
class Phrase(Part):
    """A noun phrase."""

    head: Entry
    plural: bool = False
    determiner: Entry | None = None
    owner: "Phrase | None" = None  # whom his, her, its or their refers to
    adjectives: list[Entry] = field(default_factory=list)
    place: "Prepositional | None" = None
    relative: "Relative | None" = None

    @property
    def person(self) -> str:
        """Agreement with the verb: 1 (ich), 3 or pl."""
        if self.head.role == "pronoun":
            return self.head.person
        return "pl" if self.plural else "3"

    @property
    def gender(self) -> str:
        return "pl" if self.plural else self.head.gender

    def has(self, *determiners: str) -> bool:
        return self.determiner is not None and self.determiner.base in determiners


@dataclass
class Gap(Part):
    """The place in a relative clause that the relative pronoun stands for."""

    antecedent: Phrase
    owned: Phrase | None = None  # the noun after whose

    @property
    def person(self) -> str:
        return (self.owned or self.antecedent).person

    @property
    def head(self) -> Entry:
        return (self.owned or self.antecedent).head


@dataclass
class Adverb(Part):
    """One word beside the verb: yesterday, here, not."""

    entry: Entry


@dataclass
class Asked(Adverb):
    """who, whom, what, where, when or why."""

    person = "3"
    head = Entry(
        ("who", "whom"), ("wer", "wen", "wem"), ("person",), role="pronoun", person="3"
    )


@dataclass
class Prepositional(Part):
    preposition: Entry
    phrase: Phrase | Gap


@dataclass
class Predicate(Part):
    """An adjective after to be: big, very big, bigger than the dog, as big as the dog."""

    adjective: Entry
    degree: Entry | None = None
    than: Phrase | None = None
    equal: bool = False


@dataclass
class Clause(Part):
    verb: Entry
    subject: Phrase | Gap | Asked
    tense: str = "past"  # present past perfect pluperfect future modal
    modal: Entry | None = None
    dative: Phrase | Gap | None = None
    accusative: Phrase | Gap | None = None
    governed: Prepositional | None = None  # wait for the man
    direction: Prepositional | None = None
    company: Prepositional | None = (
        None  # with, for, from somebody; after, before something
    )
    agent: Prepositional | None = None  # by somebody
    manner: Adverb | None = None
    place: Prepositional | Adverb | None = None
    time: Adverb | None = None
    frequency: Adverb | None = None
    marker: Adverb | None = None  # not, never, already
    predicate: Predicate | None = None
    complement: "Clause | None" = None
    complement_kind: str = ""  # that, infinitive
    front: Part | None = None  # what stands before the verb instead of the subject
    passive: bool = False
    question: bool = False

    def stay(self, *parts: Part | None) -> list[Part]:
        """Those that are there and do not stand before the verb."""
        return [part for part in parts if part is not None and part is not self.front]

    def marked(self, *words: str) -> bool:
        return self.marker is not None and self.marker.entry.base in words

    def case_of(self, part: Part) -> str:
        if part is self.subject:
            return "nom"
        return "dat" if part is self.dative else "acc"

    @property
    def owner(self) -> Phrase | None:
        """Whom a possessive may refer to."""
        return self.subject if isinstance(self.subject, Phrase) else None

    @property
    def at_event(self) -> bool:
        return self.company is not None and self.company.preposition.is_a("event")

    @property
    def circumstances(self) -> tuple:
        """Company and place in English order: with her in the garden, in the garden after lunch."""
        return (
            (self.place, self.company) if self.at_event else (self.company, self.place)
        )

    @property
    def denies(self) -> bool:
        """Is an object denied with no?"""
        return any(
            isinstance(p, Phrase) and p.has("no")
            for p in (self.accusative, self.dative)
        )

    @property
    def refers(self) -> bool:
        """Does a possessive refer to the subject?"""
        parts = self.accusative, self.dative, self.company, self.place, self.governed
        phrases = [phrase for part in parts if (phrase := phrase_of(part))]
        return any(phrase.owner is self.subject for phrase in phrases)

    def governor(self, gap: Gap) -> Prepositional | None:
        """The preposition before a gap."""
        parts = self.governed, self.company, self.place
        return next(
            (p for p in parts if isinstance(p, Prepositional) and p.phrase is gap), None
        )


@dataclass
class Relative(Part):
    gap: Gap
    clause: Clause


@dataclass
class Sentence:
    """Clauses with the conjunctions before them, and the punctuation at the end."""

    clauses: list[tuple[Entry | None, Clause]]
    order: str = "plain"  # plain, final, fronted, coordinate, question, request
    mark: str = "."


def phrase_of(part: Part | None) -> Phrase | None:
    """The noun phrase that a part is, or that follows its preposition."""
    phrase = part.phrase if isinstance(part, Prepositional) else part
    return phrase if isinstance(phrase, Phrase) else None
