"""Drawing noun phrases and places: which nouns, determiners and adjectives, and who owns what."""

import random
import tomllib
from collections import Counter
from pathlib import Path

from .lexicon import Lexicon
from .trees import Adverb, Clause, Phrase, Prepositional

WEIGHTS = tomllib.loads(
    Path(__file__).with_name("weights.toml").read_text(encoding="utf8")
)
OWNS = {kind: tuple(kinds) for kind, kinds in WEIGHTS["owns"].items()}
HELD_OUT = {
    (clause, name) for clause, names in WEIGHTS["held-out"].items() for name in names
}


def held_out_pair(first, second) -> bool:
    """One pair of lemmas in ten is kept for the hard set."""
    return (3 * first.number + 7 * second.number) % 10 == 0


class Dice:
    """Random choices that need nothing but `random()`, so that every Python draws the same."""

    def __init__(self, seed: int):
        self.random = random.Random(seed).random
        self.used = Counter()

    def chance(self, p: float) -> bool:
        return self.random() < p

    def choice(self, items):
        return items[int(self.random() * len(items))]

    def weighted(self, weights: dict):
        """A key of a dict, drawn in proportion to its value."""
        point = self.random() * sum(weights.values())
        for key, weight in weights.items():
            point -= weight
            if point < 0:
                return key
        return key

    def even(self, entries: list):
        """The least used of three entries drawn: rare ones catch up."""
        drawn = [self.choice(entries) for _ in range(3)]
        best = min(drawn, key=lambda entry: self.used[entry.number])
        self.used[best.number] += 1
        return best


class Phrases:
    """Draws noun phrases; `mode` is seen (train, validation, test), longer or unseen."""

    def __init__(self, lexicon: Lexicon, seed: int):
        self.lexicon = lexicon
        self.dice = Dice(seed)
        self.mode = "seen"
        self.cache = {}
        self.start()

    def start(self) -> None:
        """Forget the last sentence."""
        self.names = []  # its constructions
        self.unseen = set()  # what only the hard set may hold: lemmas, constructions
        self.definite = (
            False  # negated clauses have no quantifiers, whose scope would be doubtful
        )

    # ---- what training never shows

    def note(self, name: str, context: str | None = None) -> None:
        """Remember a construction, and whether training never has it in such a clause."""
        if name not in self.names:
            self.names.append(name)
        if (context, name) in HELD_OUT:
            self.unseen.add("constructions")

    def may(self, name: str, context: str) -> bool:
        return self.mode == "unseen" or (context, name) not in HELD_OUT

    def allowed(self, first, second) -> bool:
        return self.mode == "unseen" or not held_out_pair(first, second)

    def pair(self, first, second) -> bool:
        """`allowed`, and a held-out pair is remembered."""
        if held_out_pair(first, second):
            self.unseen.add("lemmas")
        return self.allowed(first, second)

    # ---- entries

    def options(self, name: tuple, entries: list, fits) -> list:
        """The entries that fit, in the lexicon's order; found once under a name."""
        name = (*name, self.mode == "unseen")
        if name not in self.cache:
            self.cache[name] = [entry for entry in entries if fits(entry)]
        return self.cache[name]

    def nouns(self, kinds: tuple, partner=None, within: tuple = ()) -> list:
        def fits(noun):
            suits = noun.is_a(*kinds) and (not within or noun.is_a(*within))
            return suits and (partner is None or self.allowed(partner, noun))

        name = "noun", kinds, within, partner and partner.number
        return self.options(name, self.lexicon["noun"], fits)

    def noun(self, kinds: tuple, partner=None, within: tuple = ()):
        """A noun of one of some kinds (and of one in `within`) that may stand with `partner`."""
        nouns = self.nouns(kinds, partner, within)
        if not nouns:
            return None
        noun = self.dice.even(nouns)
        if partner is not None:
            self.pair(partner, noun)
        return noun

    def adjective(self, noun, colour: bool | None = None):
        """An adjective for a noun; colours are those without a comparative."""

        def fits(adjective):
            suits = colour is None or colour == (len(adjective.english) == 1)
            return (
                suits and noun.is_a(*adjective.kinds) and self.allowed(adjective, noun)
            )

        name = "adjective", noun.number, colour
        adjectives = self.options(name, self.lexicon["adjective"], fits)
        return self.dice.even(adjectives) if adjectives else None

    # ---- noun phrases

    def phrase(self, head, plain: bool = False, negatable: bool = False) -> Phrase:
        """A noun phrase around a noun: number, determiner and perhaps adjectives."""
        if head.role in ("name", "city"):
            return Phrase(head)
        mass = head.is_a("mass")
        plural = not mass and self.dice.chance(0.1 if plain else 0.24)
        determiner = self.determiner(head, plural, mass, plain)
        if negatable and self.dice.chance(0.08):
            determiner = self.lexicon.find("determiner", "no")
            self.note("negation")
        phrase = Phrase(head, plural, determiner)
        if head.is_a("single") and phrase.has("my", "our", "your"):
            phrase.plural = False
        self.describe(phrase, 0.12 if plain else 0.36)
        return phrase

    def determiner(self, head, plural: bool, mass: bool, plain: bool):
        groups = ["any"]
        if head.is_a(*OWNS["person"]):
            groups.append("ownable")
        if plural and not plain and not self.definite:
            groups.append("plural")
        elif not plural and not mass and not self.definite:
            groups.append("plain" if plain else "singular")
        weights = {}
        for group in groups:
            weights |= WEIGHTS["determiners"][group]
        return self.lexicon.find("determiner", self.dice.weighted(weights))

    def describe(self, phrase: Phrase, share: float) -> None:
        """Perhaps an adjective before the noun, rarely two."""
        if not self.dice.chance(share):
            return
        for colour in (False, True) if self.dice.chance(0.12) else (None,):
            adjective = self.adjective(phrase.head, colour)
            if adjective and self.pair(adjective, phrase.head):
                phrase.adjectives.append(adjective)
                self.note("adjective")

    def named(self, kind: str) -> Phrase:
        """A name or a city."""
        return self.phrase(self.dice.even(self.lexicon[kind]))

    def somebody(self, kinds: tuple = ("person",), pronouns: float = 0.12) -> Phrase:
        """A subject: a pronoun or a name where a person can be it, or a noun."""
        kind = self.dice.choice(kinds)
        if kind == "person":
            if self.dice.chance(pronouns):
                return Phrase(self.dice.choice(self.lexicon["pronoun"]))
            if self.dice.chance(0.16):
                return self.named("name")
        return self.phrase(self.noun((kind,)))

    # ---- possessives

    def owner_kind(self, subject) -> str | None:
        """The kind of possessor a subject is, or None where no possessive may refer to it."""
        if not isinstance(subject, Phrase) or subject.head.role == "pronoun":
            return None
        head = subject.head
        if head.is_a("person"):
            return "person" if subject.plural or head.gender != "n" else None
        return next((kind for kind in OWNS if head.is_a(kind)), None)

    def possessive(self, owner: Phrase):
        text = "its"
        if owner.plural:
            text = "their"
        elif owner.head.is_a("person"):
            text = "his" if owner.head.gender == "m" else "her"
        return self.lexicon.find("determiner", text)

    def owned(self, owner, kinds: tuple, partner=None) -> Phrase | None:
        """A phrase with a possessive that refers to `owner`, or None."""
        kind = self.owner_kind(owner)
        head = self.noun(kinds, partner, OWNS[kind]) if kind else None
        if head is None or head is owner.head:
            return None
        plural = not head.is_a("mass") and (owner.plural or not head.is_a("single"))
        plural = plural and self.dice.chance(0.2)
        phrase = Phrase(head, plural, self.possessive(owner), owner)
        self.describe(phrase, 0.25)
        self.note("possessive")
        return phrase

    # ---- objects

    def object(
        self,
        c: Clause,
        kinds: tuple,
        owner,
        share: float,
        negatable: bool,
        pronouns: bool = True,
    ) -> Phrase:
        """An object of a verb: owned by the subject, a pronoun, a name or any noun."""
        if owner is not None and self.dice.chance(share):
            phrase = self.owned(owner, kinds, c.verb)
            if phrase:
                return phrase
        if "person" in kinds and self.dice.chance(0.16):
            if pronouns and self.dice.chance(0.5):
                return Phrase(self.dice.choice(self.others(c.subject)))
            name = self.dice.even(self.lexicon["name"])
            if self.pair(c.verb, name):
                return self.phrase(name)
        negatable = negatable and self.sure(owner)
        return self.phrase(self.noun(kinds, c.verb), negatable=negatable)

    def others(self, subject) -> list:
        """The pronouns that need no reflexive after this subject."""
        same = [subject.head]
        if subject.head.base in ("I", "we"):
            same = [self.lexicon.find("pronoun", english) for english in ("I", "we")]
        return [p for p in self.lexicon["pronoun"] if p not in same]

    def sure(self, subject) -> bool:
        """True where a negation has no quantifier beside it."""
        if not isinstance(subject, Phrase) or subject.determiner is None:
            return True
        return subject.has("the", "this", "my", "our", "your")

    # ---- places and company

    def prepositional(self, preposition, phrase: Phrase) -> Prepositional:
        self.note("preposition")
        return Prepositional(preposition, phrase)

    def preposition(self, use: str, case: str):
        return self.dice.choice(self.lexicon.prepositions(use, case))

    def place(
        self,
        kinds: tuple = ("in", "ground", "by", "at"),
        owner=None,
        adverbs: bool = True,
    ):
        """Where: in, on, at, under or beside something; a city, or here, there, outside."""
        kind = self.dice.choice(kinds)
        if adverbs and self.dice.chance(0.1):
            return Adverb(self.dice.choice(self.lexicon.used("adverb", "place")))
        if kind == "in" and self.dice.chance(0.12):
            return self.prepositional(self.preposition("in", "dat"), self.named("city"))
        use = "on" if kind == "ground" else kind
        preposition = self.dice.even(self.lexicon.prepositions(use, "dat"))
        phrase = None
        if (
            owner is not None
            and self.dice.chance(0.25)
            and self.owner_kind(owner) == "person"
        ):
            phrase = self.owned(owner, (kind,))
        phrase = phrase or self.phrase(self.noun((kind,)), plain=True)
        return self.prepositional(preposition, phrase)

    def direction(self, kind: str, far: bool) -> Prepositional:
        """Where to: into, to, through, across, around, onto something; a city for journeys."""
        if kind == "trip" or (kind == "dir" and far and self.dice.chance(0.12)):
            return self.prepositional(
                self.preposition("goal", "dat"), self.named("city")
            )
        use = "on"
        if kind == "dir":
            use = self.dice.choice(
                ("in", "goal", "goal", "through", "across", "around")
            )
        preposition = self.preposition(use, "dat" if use == "goal" else "acc")
        goal = self.noun(("up" if kind == "jump" else use,))
        return self.prepositional(preposition, self.phrase(goal, plain=True))

    def company(self, extras: str, subject) -> Prepositional | None:
        """with, for, from somebody; after or before something."""
        options = []
        for letter, prepositions in WEIGHTS["company"].items():
            options += prepositions * (letter in extras)
        if not options:
            return None
        preposition = self.lexicon.find("preposition", self.dice.choice(options))
        if preposition.is_a("event"):
            return self.prepositional(preposition, self.event())
        phrase = None
        if self.dice.chance(0.5) and self.owner_kind(subject) == "person":
            phrase = self.owned(subject, ("kin",))
        return self.prepositional(preposition, phrase or self.somebody(pronouns=0))

    def event(self) -> Phrase:
        phrase = self.phrase(self.noun(("event",)), plain=True)
        phrase.plural = False
        text = "the" if self.dice.chance(0.8) else "this"
        phrase.determiner = self.lexicon.find("determiner", text)
        return phrase
