"""What both languages do alike when they write a tree, and the alignment of what they wrote."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from transformer.corpora.bundled import Pronoun

from .lexicon import Entry
from .trees import (
    Adverb,
    Gap,
    Part,
    Phrase,
    Predicate,
    Prepositional,
    Relative,
    Sentence,
)

FORMS = tomllib.loads(Path(__file__).with_name("forms.toml").read_text(encoding="utf8"))
PLEASE = Entry(("please",), ("bitte",))
THAT = Entry(("that",), ("dass",))
SO = Entry(("as",), ("so",))
AS = Entry(("as",), ("wie",))
THAN = Entry(("than",), ("als",))


@dataclass
class Word:
    """A written word and the names of what it stands for; of nouns and possessives the phrase."""

    text: str
    links: tuple
    noun: int | None = None
    owner: tuple | None = None  # (key of its phrase, key of its antecedent)


def word(text: str, *links: str) -> Word:
    return Word(text, links)


def form_of(auxiliary: str, tense: str, person: str) -> str:
    """A form of to be, to have or to do, of sein, haben or werden."""
    return FORMS["auxiliaries"][auxiliary][tense][person]


class Writer:
    """Writes a tree in one language; each method writes one kind of part, as a list of words."""

    language = ""

    def say(self, entry: Entry, link: str, form: int = 0) -> list[Word]:
        """The words of an entry of the lexicon, in one of its forms."""
        return [
            word(text, link) for text in getattr(entry, self.language)[form].split()
        ]

    def sentence(self, s: Sentence) -> list[Word]:
        out = self.say(PLEASE, "please") if s.order == "request" else []
        for place, (conjunction, clause) in enumerate(s.clauses):
            if place and self.has_comma(s):
                out.append(word(",", "comma"))
            if conjunction:
                out += self.say(conjunction, "conjunction")
            out += self.clause(clause, self.order(s, conjunction))
        return [*out, word(s.mark, "end")]

    def part(
        self, part: Part | None, case: str = "acc", extrapose: bool = False
    ) -> list[Word]:
        """Any part of a clause; `extrapose` leaves its relative clause to the end of the clause."""
        if part is None or isinstance(part, Gap):
            return []
        if isinstance(part, Adverb):
            return self.say(part.entry, part.link("word"))
        if isinstance(part, Predicate):
            return self.predicate(part)
        if isinstance(part, Prepositional):
            return (
                self.prepositional(part, extrapose)
                if isinstance(part.phrase, Phrase)
                else []
            )
        return self.phrase(part, case, extrapose)

    def parts(self, parts: list[Part]) -> list[Word]:
        return [w for part in parts for w in self.part(part, extrapose=self.extraposes)]

    def phrase(self, p: Phrase, case: str, extrapose: bool = False) -> list[Word]:
        """A noun phrase in a case (nom, acc, dat), with what stands before and after the noun."""
        if p.head.role == "pronoun":
            return [word(self.pronoun(p.head, case), p.link("noun"))]
        out = [word(self.adjective(a, p, case), p.link(a.base)) for a in p.adjectives]
        out.append(Word(self.noun(p, case), (p.link("noun"),), noun=p.key))
        if p.determiner:
            owner = (p.key, p.owner.key) if p.owner else None
            text = self.determiner(p, case, out[0].text)
            out.insert(0, Word(text, (p.link("determiner"),), owner=owner))
        out += self.part(p.place)
        if p.relative and not extrapose:
            out += self.relative(p.relative)
        return out

    def predicate(self, p: Predicate) -> list[Word]:
        """The adjective without what it is compared with."""
        name = p.link("adjective")
        if p.than and not p.equal:
            return self.say(p.adjective, name, form=1)
        degree = self.say(SO, p.link("so")) if p.equal else []
        if p.degree:
            degree = self.say(p.degree, p.link("degree"))
        return degree + self.say(p.adjective, name)

    def comparison(self, p: Predicate | None) -> list[Word]:
        """than the dog, as the dog."""
        if p is None or p.than is None:
            return []
        return self.say(AS if p.equal else THAN, p.link("than")) + self.phrase(
            p.than, "nom"
        )

    def relative(self, r: Relative) -> list[Word]:
        """The relative pronoun, perhaps after a preposition or before its noun, and the clause."""
        gap, c = r.gap, r.clause
        governor = c.governor(gap)
        if gap.owned:
            start = [
                word(self.whose(gap), r.link("relative")),
                *self.phrase(gap.owned, "nom"),
            ]
        elif governor:
            pronoun = self.relative_pronoun(gap, governor.preposition.case, True)
            start = self.say(governor.preposition, governor.link("preposition"))
            start.append(word(pronoun, r.link("relative")))
        else:
            pronoun = self.relative_pronoun(gap, c.case_of(gap), False)
            start = [word(pronoun, r.link("relative"))]
        return start + self.clause(c, self.relative_order)


def text_of(written: list[Word]) -> str:
    """Words to a sentence: no space before punctuation, a capital at the start."""
    text = re.sub(r" ([,.?!])", r"\1", " ".join(w.text for w in written))
    return text[0].upper() + text[1:]


def align(english: list[Word], german: list[Word]) -> frozenset:
    """All pairs of positions whose words share a name."""
    return frozenset(
        (i, j)
        for i, ours in enumerate(english)
        for j, theirs in enumerate(german)
        if not set(ours.links).isdisjoint(theirs.links)
    )


def antecedents(written: list[Word]) -> list[Pronoun]:
    """Every possessive with an owner, by their phrases."""
    nouns = {w.noun: i for i, w in enumerate(written) if w.noun is not None}
    possessives = {w.owner: i for i, w in enumerate(written) if w.owner}
    found = []
    for (owned, owner), place in sorted(possessives.items()):
        candidates = sorted(i for phrase, i in nouns.items() if phrase != owned)
        found.append(Pronoun(place, nouns[owner], tuple(candidates)))
    return found
