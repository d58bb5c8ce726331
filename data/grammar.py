"""A synchronous grammar of English and German: it writes the bundled corpus, with word alignments and antecedents.

A sentence is drawn once as a small tree of clauses and noun phrases (`Sampler`). The tree is then written twice, by
`English` and by `German`. Every word written carries the names of the parts of the tree it stands for, and two words
that share such a name are aligned. The words themselves stand in lexicon.tsv.

    python data/grammar.py --seed 2017 --folder data/bundled     write the four files
    python data/grammar.py --sample 10                           read ten sentences with their alignments
    python data/grammar.py --statistics                          figures of the four files
    python data/grammar.py --baseline                            BLEU of a word-for-word translation (needs sacrebleu)
"""
import argparse
import random
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZES = {"train": 20_000, "validation": 1_000, "test": 1_000, "hard": 1_000}
LONGEST = 20                      # words of an English sentence in train, validation and test
LONGER = (21, 26)                 # words of the longer sentences in hard
LONGER_SHARE = 0.3
WORD = re.compile(r"\w+|[^\w\s]")

# What a possessor may own, by kind.
OWNS = {
    "person": {
        "thing",
        "clothes",
        "text",
        "own",
        "food",
        "drink",
        "device",
        "furniture",
        "kin",
        "pet",
        "indoor",
        "music",
        "jewel",
        "abstract",
        "house",
        "hut",
        "window",
        "door",
        "balcony",
        "staff",
    },
    "pet": {"toy", "mate"},
    "animal": {"bone", "mate"},
    "group": {"staff", "device", "building", "vehicle", "furniture", "deal", "mail", "bpart", "problem", "question"},
    "vehicle": {"vpart"},
    "building": {"bpart"},
}

# Pairs (clause, construction inside it) that only the hard set contains; each part is frequent in training by itself.
HELD_OUT = {
    ("that", "separable"),
    ("because", "relative-object"),
    ("although", "passive"),
    ("relative-subject", "modal"),
    ("if", "ditransitive"),
    ("infinitive", "dative"),
    ("question", "passive"),
    ("relative-object", "perfect"),
}


# ---------------------------------------------------------------------------------------------------- the lexicon

@dataclass(frozen=True)
class Noun:
    """A noun of both languages; `kinds` say what it can do and what can be done with it."""
    number: int
    english: tuple            # singular, plural
    german: tuple             # singular, plural
    gender: str               # m f n
    kinds: frozenset
    weak: bool = False        # der Junge, den Jungen
    role: str = "noun"        # noun, name or city

    def is_a(self, *kinds):
        return not self.kinds.isdisjoint(kinds)


@dataclass(frozen=True)
class Adjective:
    number: int
    english: str
    comparative: tuple        # the English words of the comparative, () where it is not used
    german: str
    stem: str                 # what the endings are added to
    german_comparative: str
    kinds: tuple


@dataclass(frozen=True)
class Frame:
    """One way to use a verb: its kind, who does it, to what, and the optional parts that make sense with it."""
    kind: str
    subjects: tuple
    objects: tuple
    extras: str
    preposition: tuple = ()


@dataclass(frozen=True)
class Verb:
    number: int
    english: tuple            # base, third person, past, participle
    tail: str                 # "for" in "look for"
    particle: str             # "an" in "anrufen"
    german: tuple             # infinitive without particle, third person, past, participle
    auxiliary: str            # haben or sein
    reflexive: bool
    frames: tuple


@dataclass(frozen=True)
class Preposition:
    english: str
    german: str
    case: str
    kind: str


@dataclass(frozen=True)
class Determiner:
    english: str
    plural: str
    german: str
    endings: str              # weak, mixed or strong: the adjectives that follow
    use: str


@dataclass(frozen=True)
class Pronoun:
    english: tuple            # subject, object
    german: tuple             # nominative, accusative, dative
    person: str               # 1, 3, pl
    role: str = "pronoun"


@dataclass(frozen=True)
class Simple:
    """An adverb, conjunction or modal: one word on either side and how it is used."""
    english: str
    german: str
    use: str


def english_s(word):
    """The ending of plurals and of the third person."""
    if re.search(r"(s|x|z|ch|sh)$", word) or word in ("go", "do"):
        return word + "es"
    return word[:-1] + "ies" if re.search(r"[^aeiou]y$", word) else word + "s"


def english_ed(word):
    if word.endswith("e"):
        return word + "d"
    return word[:-1] + "ied" if re.search(r"[^aeiou]y$", word) else word + "ed"


def read_noun(number, english, german, kinds):
    words = english.split()
    article, *forms = german.split()
    tags = set(kinds.split()) | {words[0]}
    if "person" in tags and "young" not in tags:
        tags |= {"adult"} if "aged" in tags else {"adult", "junior"}
    plural = words[1] if len(words) > 1 else english_s(words[0])
    return Noun(number, (words[0], plural), tuple(forms[:2]), {"der": "m", "die": "f", "das": "n"}[article],
                frozenset(tags), "weak" in forms)


def read_verb(number, english, german, frames):
    words, forms = english.split(), german.split()
    base, _, tail = words[0].partition("_")
    past = words[1] if len(words) > 1 else english_ed(base)
    participle = words[2] if len(words) > 2 else past
    particle, _, infinitive = forms[0].rpartition("-")
    auxiliary = "sein" if forms[3].startswith("+") else "haben"
    return Verb(number, (base, english_s(base), past, participle), tail, particle,
                (infinitive, forms[1], forms[2], forms[3].lstrip("+")), auxiliary, "sich" in forms,
                tuple(read_frame(text) for text in frames.split(";")))


def read_frame(text):
    kind, subjects, objects, extras, *_ = text.split(":") + ["", ""]
    preposition = ()
    if kind == "prep":
        english, german, case, objects = objects.split()
        preposition = Preposition(english, german, case, "")
    return Frame(kind, tuple(subjects.split(",")), tuple(o for o in objects.split(",") if o), extras, preposition)


def read_adjective(number, english, german, kinds):
    words, forms = english.split(), german.split()
    base, _, stem = forms[0].partition("/")
    comparative = tuple(words[1:]) or ("more", words[0])
    return Adjective(number, words[0], comparative if len(forms) > 1 else (), base, stem or base,
                     forms[1] if len(forms) > 1 else "", tuple(kinds.split()))


def read_lexicon(path=HERE / "lexicon.tsv"):
    """All entries of lexicon.tsv, a list for each class of words."""
    lexicon = {}
    for number, line in enumerate(path.read_text(encoding="utf8").splitlines()):
        if line and not line.startswith("#"):
            kind, english, german, use = line.split("\t")
            lexicon.setdefault(kind, []).append(read_entry(kind, number, english, german, use))
    return lexicon


def read_entry(kind, number, english, german, use):
    if kind == "noun":
        return read_noun(number, english, german, use)
    if kind == "name":
        return Noun(number, (english,), (german,), use, frozenset({"person", "adult", english}), role="name")
    if kind == "city":
        return Noun(number, (english,), (german,), "n", frozenset({"city"}), role="city")
    if kind == "verb":
        return read_verb(number, english, german, use)
    if kind == "adjective":
        return read_adjective(number, english, german, use)
    if kind == "preposition":
        return Preposition(english.replace("_", " "), *german.split(), use)
    if kind == "determiner":
        singular, *plural = english.split()
        return Determiner(singular, (plural or [singular])[0], german, *use.split())
    if kind == "pronoun":
        return Pronoun(tuple(english.split()), tuple(german.split()), use)
    return Simple(english.replace("_", " "), german, use)


# ------------------------------------------------------------------------------------------------- the tree

@dataclass
class Phrase:
    """A noun phrase. `key` names it; its determiner, adjectives and noun are named after it."""
    key: int
    head: object                       # Noun or Pronoun
    plural: bool = False
    determiner: Determiner = None
    owner: "Phrase" = None             # whom his, her, its or their refers to
    adjectives: list = field(default_factory=list)
    place: "Prepositional" = None
    relative: "Relative" = None

    @property
    def person(self):
        """Agreement with the verb: 1 (ich), 3 or pl."""
        if self.head.role == "pronoun":
            return self.head.person
        return "pl" if self.plural else "3"

    @property
    def gender(self):
        return "pl" if self.plural else self.head.gender


@dataclass
class Gap:
    """The place in a relative clause that the relative pronoun stands for."""
    key: int
    antecedent: Phrase
    owned: Phrase = None               # the noun after whose

    @property
    def person(self):
        return self.owned.person if self.owned else self.antecedent.person


@dataclass
class Asked:
    """who, whom or what."""
    key: int
    english: str
    german: str
    person: str = "3"


@dataclass
class Prepositional:
    key: int
    preposition: Preposition
    phrase: object


@dataclass
class Place:
    """here, there, outside."""
    key: int
    adverb: Simple


@dataclass
class Relative:
    key: int
    gap: Gap
    clause: "Clause"


@dataclass
class Clause:
    key: int
    verb: Verb
    subject: object
    tense: str = "past"                # present past perfect pluperfect future modal infinitive
    modal: Simple = None
    dative: object = None
    accusative: object = None
    governed: Prepositional = None     # wait for the man
    direction: Prepositional = None
    company: Prepositional = None      # with, for, from somebody
    manner: Simple = None
    place: object = None
    time: Simple = None
    frequency: Simple = None
    marker: Simple = None              # not, never, already
    passive: bool = False
    agent: object = None
    predicate: "Predicate" = None
    complement: "Clause" = None        # that ..., to ...
    complement_kind: str = ""
    front: object = None               # what stands before the verb instead of the subject
    question: bool = False


@dataclass
class Predicate:
    """An adjective after to be: big, very big, bigger than the dog, as big as the dog."""
    key: int
    adjective: Adjective
    degree: Simple = None
    than: Phrase = None
    equal: bool = False


@dataclass
class Sentence:
    """Clauses with the conjunctions before them, and the punctuation at the end."""
    clauses: list                      # (conjunction or None, clause)
    order: str = "plain"               # plain, final, fronted, coordinate, question, request
    mark: str = "."


# ------------------------------------------------------------------------------------------------- words written

@dataclass
class Word:
    """A written word, the names of what it stands for, and for nouns and possessives the phrase they belong to."""
    text: str
    links: tuple
    noun: int = None
    owner: tuple = None                # (key of its phrase, key of its antecedent)


def word(text, *links, **more):
    return Word(text, links, **more)


def words(text, link):
    return [word(part, link) for part in text.split()]


# ------------------------------------------------------------------------------------------------- English

class English:
    """Writes a tree in English."""

    def sentence(self, s):
        if s.order == "request":
            out = words("please", "please") + self.clause(s.clauses[0][1], "request")
        elif s.order == "fronted":
            (conjunction, second), (_, first) = s.clauses
            out = [self.conjunction(conjunction), *self.clause(second), word(",", "comma"), *self.clause(first)]
        else:
            out = []
            for conjunction, clause in s.clauses:
                if conjunction:
                    out += [word(",", "comma")] * (s.order == "coordinate") + [self.conjunction(conjunction)]
                out += self.clause(clause)
        return out + [word(s.mark, "end")]

    def conjunction(self, conjunction):
        return word(conjunction.english, "conjunction")

    def clause(self, c, form="statement"):
        """Words in English order: front, subject, verb, objects, manner, direction, company, place, time."""
        first, rest = self.verb(c, form)
        front = self.element(c.front, c.key) if c.front else []
        subject = self.subject(c) if form not in ("request", "infinitive", "relative") else []
        if c.question and not isinstance(c.subject, Asked):
            out = front + first + subject + rest
        else:
            if first and rest and (first[0].text, rest[0].text) == ("can", "not"):
                first, rest = [word("cannot", *first[0].links, *rest[0].links)], rest[1:]
            out = front + subject + first + rest
        return out + self.after_verb(c)

    def subject(self, c):
        return self.phrase(c.subject, 0)

    def after_verb(self, c):
        out = []
        for phrase in (c.dative, c.accusative):
            if phrase is not None and not isinstance(phrase, (Gap, Asked)) and phrase is not c.front:
                out += self.phrase(phrase, 1)
        if c.predicate:
            out += self.predicate(c.predicate)
        at_event = c.company is not None and c.company.preposition.kind == "event"
        around = (c.place, c.company) if at_event else (c.company, c.place)
        for part in (c.governed, c.manner, c.direction, *around):
            if part is not None and part is not c.front:
                out += self.element(part, c.key)
        if c.agent:
            out += [word("by", f"{c.key}.by")] + self.phrase(c.agent, 1)
        if c.time is not None and c.time is not c.front:
            out += self.element(c.time, c.key)
        if c.complement_kind == "that":
            out += [word("that", f"{c.complement.key}.that")] + self.clause(c.complement)
        elif c.complement_kind == "infinitive":
            out += [word("to", f"{c.complement.key}.to")] + self.clause(c.complement, "infinitive")
        return out

    def element(self, part, key=0):
        if isinstance(part, Simple):
            return words(part.english, f"{key}.{part.english}")
        if isinstance(part, Place):
            return words(part.adverb.english, f"{part.key}.place")
        if isinstance(part, Asked):
            return [word(part.english, f"{part.key}.asked")]
        if isinstance(part, Prepositional):
            if isinstance(part.phrase, Gap):
                return []
            return words(part.preposition.english, f"{part.key}.preposition") + self.phrase(part.phrase, 1)
        return self.phrase(part, 1)

    def verb(self, c, form):
        """The finite auxiliary (moved in questions) and the rest of the verb, with the adverbs between them."""
        names = f"{c.key}.verb", f"{c.key}.finite"
        base, third, past, participle = c.verb.english
        person = c.subject.person if c.subject else "3"
        marker = self.marker(c)
        be = base == "be"
        tail = words(c.verb.tail, names[0]) if c.verb.tail else []
        if form in ("request", "infinitive"):
            return [], [word(base, names[0])] + tail
        if c.passive:
            auxiliary = self.passive_auxiliary(c, person)
            return auxiliary[:1], marker + auxiliary[1:] + [word(participle, names[0])]
        if c.tense in ("perfect", "pluperfect"):
            have = "had" if c.tense == "pluperfect" else "has" if person == "3" else "have"
            return [word(have, names[1])], marker + [word(participle, names[0])] + tail
        if c.tense in ("future", "modal"):
            finite, *more = ["will"] if c.tense == "future" else self.modal(c, person)
            return [word(finite, names[1])], (marker + [word(m, f"{c.key}.to") for m in more]
                                              + [word(base, names[0])] + tail)
        if be:
            form_of_be = self.be(c.tense, person)
            return [word(form_of_be, names[0])], marker
        if c.question and not isinstance(c.subject, Asked) or c.marker and c.marker.english == "not":
            do = "did" if c.tense == "past" else "does" if person == "3" else "do"
            return [word(do, names[1])], marker + [word(base, names[0])] + tail
        finite = past if c.tense == "past" else third if person == "3" else base
        return [], marker + [word(finite, names[0])] + tail

    def modal(self, c, person):
        finite, *more = c.modal.english.split()
        return [english_s(finite) if finite == "want" and person == "3" else finite, *more]

    def be(self, tense, person):
        if tense == "past":
            return "were" if person == "pl" else "was"
        return {"1": "am", "3": "is", "pl": "are"}[person]

    def passive_auxiliary(self, c, person):
        finite, been = f"{c.key}.finite", f"{c.key}.been"
        if c.tense in ("perfect", "pluperfect"):
            have = "had" if c.tense == "pluperfect" else "has" if person == "3" else "have"
            return [word(have, finite), word("been", been)]
        if c.tense == "future":
            return [word("will", finite), word("be", been)]
        if c.tense == "modal":
            return [word(c.modal.english, finite), word("be", been)]
        return [word(self.be(c.tense, person), finite)]

    def marker(self, c):
        out = [word(c.marker.english, f"{c.key}.marker")] if c.marker else []
        return out + ([word(c.frequency.english, f"{c.key}.{c.frequency.english}")] if c.frequency else [])

    def predicate(self, p):
        name = f"{p.key}.adjective"
        if p.than and p.equal:
            return [word("as", f"{p.key}.so"), word(p.adjective.english, name), word("as", f"{p.key}.than"),
                    *self.phrase(p.than, 0)]
        if p.than:
            return [word(w, name) for w in p.adjective.comparative] + [
                word("than", f"{p.key}.than"),
                *self.phrase(p.than, 0),
            ]
        degree = words(p.degree.english, f"{p.key}.degree") if p.degree else []
        return degree + [word(p.adjective.english, name)]

    def phrase(self, p, case):
        """A noun phrase; case 0 is the subject's, 1 every other."""
        if isinstance(p, Gap):
            return []
        if isinstance(p, Asked):
            return [word(p.english, f"{p.key}.asked")]
        name = f"{p.key}.noun"
        if p.head.role == "pronoun":
            return [word(p.head.english[case], name)]
        noun = word(p.head.english[int(p.plural)], name, noun=p.key)
        out = self.determiner(p, noun) + [word(a.english, f"{p.key}.{a.english}") for a in p.adjectives] + [noun]
        if p.place:
            out += self.element(p.place)
        return out + (self.relative(p.relative) if p.relative else [])

    def determiner(self, p, noun):
        if not p.determiner:
            return []
        text = p.determiner.plural if p.plural else p.determiner.english
        if text == "a":
            following = p.adjectives[0].english if p.adjectives else noun.text
            text = "an" if re.match(r"[aeio]|hon|u(?!ni)", following) else "a"
        owner = (p.key, p.owner.key) if p.owner else None
        return [word(text, f"{p.key}.determiner", owner=owner)]

    def relative(self, r):
        """who, whom, that, in which, whose, and the clause."""
        gap, c, name = r.gap, r.clause, f"{r.key}.relative"
        person = gap.antecedent.head.is_a("person")
        if gap.owned:
            start = [word("whose", name)] + self.phrase(gap.owned, 0)
        elif c.subject is gap:
            start = [word("who" if person else "that", name)]
        elif c.dative is gap or c.accusative is gap:
            start = [word("whom" if person else "that", name)]
        else:
            part = next(p for p in (c.governed, c.company, c.place) if p and getattr(p, "phrase", None) is gap)
            start = words(part.preposition.english, f"{part.key}.preposition") + [
                word("whom" if person else "which", name)
            ]
        return start + self.clause(c, "relative" if c.subject is gap else "statement")


# ------------------------------------------------------------------------------------------------- German

CASES = ("nom", "acc", "dat")
DER = {"nom": dict(m="der", f="die", n="das", pl="die"), "acc": dict(m="den", f="die", n="das", pl="die"),
       "dat": dict(m="dem", f="der", n="dem", pl="den")}
DIESER = {"nom": dict(m="er", f="e", n="es", pl="e"), "acc": dict(m="en", f="e", n="es", pl="e"),
          "dat": dict(m="em", f="er", n="em", pl="en")}
EIN = {"nom": dict(m="", f="e", n="", pl="e"), "acc": dict(m="en", f="e", n="", pl="e"),
       "dat": dict(m="em", f="er", n="em", pl="en")}
ADJECTIVE = {
    "weak": {"nom": dict(m="e", f="e", n="e", pl="en"), "acc": dict(m="en", f="e", n="e", pl="en"),
             "dat": dict(m="en", f="en", n="en", pl="en")},
    "mixed": {"nom": dict(m="er", f="e", n="es", pl="en"), "acc": dict(m="en", f="e", n="es", pl="en"),
              "dat": dict(m="en", f="en", n="en", pl="en")},
    "strong": {"nom": dict(pl="e"), "acc": dict(pl="e"), "dat": dict(pl="en")}}
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
}
AUXILIARIES = {
    "sein": {"present": {"1": "bin", "3": "ist", "pl": "sind"}, "past": {"1": "war", "3": "war", "pl": "waren"}},
    "haben": {
        "present": {"1": "habe", "3": "hat", "pl": "haben"},
        "past": {"1": "hatte", "3": "hatte", "pl": "hatten"},
    },
    "werden": {
        "present": {"1": "werde", "3": "wird", "pl": "werden"},
        "past": {"1": "wurde", "3": "wurde", "pl": "wurden"},
    },
}


class German:
    """Writes a tree in German."""

    def sentence(self, s):
        if s.order == "request":
            c = s.clauses[0][1]
            finite, particle, _ = self.verb(c)
            out = words("bitte", "please") + finite + [word("Sie")] + self.field(c) + particle + self.tail(c)
        elif s.order == "fronted":
            (conjunction, second), (_, first) = s.clauses
            out = [self.conjunction(conjunction), *self.clause(second, "final"), word(",", "comma"),
                   *self.clause(first, "inverted")]
        else:
            out = []
            for conjunction, clause in s.clauses:
                if conjunction:
                    comma = word(",", "comma") if s.order == "coordinate" else word(",")
                    out += [comma, self.conjunction(conjunction)]
                out += self.clause(clause, "final" if conjunction and s.order == "final" else "second")
        return tidy_commas(out + [word(s.mark, "end")])

    def conjunction(self, conjunction):
        return word(conjunction.german, "conjunction")

    def clause(self, c, order):
        """A clause with its finite verb second, first (inverted) or last (final)."""
        finite, particle, rest = self.verb(c)
        subject = self.phrase(c.subject, "nom") if not isinstance(c.subject, Gap) else []
        reflexive = self.reflexive(c)
        if order == "final":
            return subject + reflexive + self.field(c) + rest + joined(particle, finite) + self.tail(c)
        if c.front is not None:
            start = self.element(c.front, c)
            return (
                start
                + finite
                + self.subject_and_reflexive(c, subject)
                + self.field(c)
                + particle
                + rest
                + self.tail(c)
            )
        if order == "inverted" or (c.question and not isinstance(c.subject, Asked)):
            return finite + self.subject_and_reflexive(c, subject) + self.field(c) + particle + rest + self.tail(c)
        return subject + finite + reflexive + self.field(c) + particle + rest + self.tail(c)

    def reflexive(self, c):
        """mich, uns or sich, aligned to the verb."""
        if not c.verb.reflexive:
            return []
        return [word("uns" if is_we(c.subject) else {"1": "mich"}.get(c.subject.person, "sich"), f"{c.key}.verb")]

    def subject_and_reflexive(self, c, subject):
        """After the verb a reflexive comes before the subject, unless the subject is a pronoun."""
        pronoun = isinstance(c.subject, Phrase) and c.subject.head.role == "pronoun"
        return subject + self.reflexive(c) if pronoun else self.reflexive(c) + subject

    def field(self, c):
        """What stands between the two parts of the verb: pronouns, time, objects, negation, company, manner, place."""
        out = []
        objects = [(p, case) for p, case in ((c.dative, "dat"), (c.accusative, "acc"))
                   if p is not None and not isinstance(p, (Gap, Asked)) and p is not c.front]
        out += [w for p, case in objects if p.head.role == "pronoun" for w in self.phrase(p, case)]
        for adverb in (c.time, c.frequency):
            if adverb is not None and adverb is not c.front:
                out += self.element(adverb, c)
        marker = [word(c.marker.german, f"{c.key}.marker")] if c.marker else []
        nouns = [w for p, case in objects if p.head.role != "pronoun" for w in self.phrase(p, case, extrapose=True)]
        out += marker + nouns if c.marker and c.marker.english == "already" else nouns + marker
        parts = (c.company, c.manner, c.place, c.governed, c.direction)
        for part in parts:
            if part is not None and part is not c.front:
                out += self.element(part, c)
        if c.agent:
            out += self.prepositional("von", "dat", c.agent, f"{c.key}.by", extrapose=True)
        return out + (self.predicate(c.predicate) if c.predicate else [])

    def tail(self, c):
        """What follows the last verb: than ..., extraposed relative clauses and the clause the verb governs."""
        out = []
        if c.predicate and c.predicate.than:
            out += [
                word("wie" if c.predicate.equal else "als", f"{c.predicate.key}.than"),
                *self.phrase(c.predicate.than, "nom"),
            ]
        for part in (c.dative, c.accusative, c.governed, c.company, c.place, c.direction, c.agent):
            phrase = part.phrase if isinstance(part, Prepositional) else part
            if isinstance(phrase, Phrase) and phrase.relative and phrase is not c.front:
                out += self.relative(phrase.relative)
        if c.complement_kind == "that":
            out += [word(","), word("dass", f"{c.complement.key}.that"), *self.clause(c.complement, "final")]
        elif c.complement_kind == "infinitive":
            inner = c.complement
            out += [word(","), *self.reflexive(inner), *self.field(inner), *self.zu(inner), *self.tail(inner)]
        return out

    def zu(self, c):
        verb, to = f"{c.key}.verb", f"{c.key}.to"
        if c.verb.particle:
            return [word(c.verb.particle + "zu" + c.verb.german[0], to, verb)]
        return [word("zu", to), word(c.verb.german[0], verb)]

    def verb(self, c):
        """The finite verb, its separated particle, and the infinitive or participle, each a list of words."""
        verb, finite = f"{c.key}.verb", f"{c.key}.finite"
        person = c.subject.person if c.subject else "pl"
        infinitive, third, past, participle = c.verb.german
        whole = word(c.verb.particle + infinitive, verb, f"{c.key}.to")
        particle = [word(c.verb.particle, verb)] if c.verb.particle else []
        if c.passive:
            return self.passive(c, person)
        if c.tense in ("perfect", "pluperfect"):
            have = AUXILIARIES[c.verb.auxiliary]["past" if c.tense == "pluperfect" else "present"][person]
            return [word(have, finite)], [], [word(participle, verb)]
        if c.tense == "future":
            return [word(AUXILIARIES["werden"]["present"][person], finite)], [], [whole]
        if c.tense == "modal":
            return [word(self.modal(c.modal, person), finite)], [], [whole]
        return [word(self.conjugate(c.verb, c.tense, person), verb, finite)], particle, []

    def conjugate(self, verb, tense, person):
        infinitive, third, past, _ = verb.german
        if infinitive == "sein":
            return AUXILIARIES["sein"][tense][person]
        if tense == "past":
            return plural_ending(past) if person == "pl" else past
        if infinitive == "wissen":
            return infinitive if person == "pl" else third
        first = infinitive[:-3] + "le" if infinitive.endswith("eln") else re.sub(r"e?n$", "e", infinitive)
        return {"1": first, "3": third, "pl": infinitive}[person]

    def modal(self, modal, person):
        infinitive, singular = modal.german.split()
        if person != "pl":
            return singular
        return plural_ending(singular) if singular.endswith("te") else infinitive

    def passive(self, c, person):
        verb, finite, been = f"{c.key}.verb", f"{c.key}.finite", f"{c.key}.been"
        participle = word(c.verb.german[3], verb)
        if c.tense in ("perfect", "pluperfect"):
            tense = "past" if c.tense == "pluperfect" else "present"
            return [word(AUXILIARIES["sein"][tense][person], finite)], [], [participle, word("worden", been)]
        if c.tense == "future":
            return [word(AUXILIARIES["werden"]["present"][person], finite)], [], [participle, word("werden", been)]
        if c.tense == "modal":
            return [word(self.modal(c.modal, person), finite)], [], [participle, word("werden", been)]
        return [word(AUXILIARIES["werden"][c.tense][person], finite)], [], [participle]

    def element(self, part, c):
        if isinstance(part, Simple):
            return [word(part.german, f"{c.key}.{part.english}")]
        if isinstance(part, Place):
            return [word(part.adverb.german, f"{part.key}.place")]
        if isinstance(part, Asked):
            return [word(part.german, f"{part.key}.asked")]
        if isinstance(part, Prepositional):
            if isinstance(part.phrase, Gap):
                return []
            extrapose = part is not c.front
            return self.prepositional(part.preposition.german, part.preposition.case, part.phrase,
                                      f"{part.key}.preposition", extrapose)
        return self.phrase(part, "dat" if part is c.dative else "acc")

    def prepositional(self, german, case, phrase, name, extrapose):
        """A preposition and its phrase; in dem becomes im unless a relative clause belongs to the noun."""
        if german == "zu" and phrase.head.role == "city":
            german = "nach"
        out = self.phrase(phrase, case, extrapose)
        both = (german, out[0].text) if out else ()
        if both in CONTRACTIONS and phrase.determiner and phrase.determiner.english == "the" and not phrase.relative:
            return [word(CONTRACTIONS[both], name, *out[0].links)] + out[1:]
        return [word(german, name)] + out

    def predicate(self, p):
        name = f"{p.key}.adjective"
        if p.than and p.equal:
            return [word("so", f"{p.key}.so"), word(p.adjective.german, name)]
        if p.than:
            return [word(p.adjective.german_comparative, name)]
        degree = [word(p.degree.german, f"{p.key}.degree")] if p.degree else []
        return degree + [word(p.adjective.german, name)]

    def phrase(self, p, case, extrapose=False):
        """A noun phrase in a case; `extrapose` leaves its relative clause to the end of the clause."""
        if isinstance(p, Gap):
            return []
        if isinstance(p, Asked):
            return [word(p.german, f"{p.key}.asked")]
        name = f"{p.key}.noun"
        if p.head.role == "pronoun":
            return [word(p.head.german[CASES.index(case)], name)]
        out = [word(self.determiner(p, case), f"{p.key}.determiner", owner=(p.key, p.owner.key) if p.owner else None)
               ] if p.determiner else []
        endings = ADJECTIVE[p.determiner.endings if p.determiner else "strong"][case]
        out += [word(a.stem + endings[p.gender], f"{p.key}.{a.english}") for a in p.adjectives]
        out.append(word(self.noun(p, case), name, noun=p.key))
        if p.place:
            out += self.element(p.place, Clause(0, None, None))
        return out + (self.relative(p.relative) if p.relative and not extrapose else [])

    def noun(self, p, case):
        if not p.plural:
            return p.head.german[1] if p.head.weak and case != "nom" else p.head.german[0]
        form = p.head.german[1]
        return form + "n" if case == "dat" and not form.endswith(("n", "s")) else form

    def determiner(self, p, case):
        d, gender = p.determiner, p.gender
        if d.german == "der":
            return DER[case][gender]
        if d.endings == "mixed":
            stem = d.german
            if d.english == "its":
                stem = "ihr" if p.owner.gender == "f" else "sein"
            return stem + EIN[case][gender]
        if d.endings == "strong" or d.german == "alle":
            return d.german + "n" if case == "dat" and d.german.endswith("e") else d.german
        return d.german[:-2] + DIESER[case][gender]

    def relative(self, r):
        gap, c, name = r.gap, r.clause, f"{r.key}.relative"
        gender = gap.antecedent.gender
        if gap.owned:
            start = [word("deren" if gender in ("f", "pl") else "dessen", name)] + self.phrase(gap.owned, "nom")
        elif c.subject is gap or c.accusative is gap or c.dative is gap:
            case = "nom" if c.subject is gap else "acc" if c.accusative is gap else "dat"
            start = [word(self.relative_pronoun(case, gender), name)]
        else:
            part = next(p for p in (c.governed, c.company, c.place) if p and getattr(p, "phrase", None) is gap)
            start = [word(part.preposition.german, f"{part.key}.preposition"),
                     word(self.relative_pronoun(part.preposition.case, gender), name)]
        return [word(","), *start, *self.clause(c, "final"), word(",")]

    def relative_pronoun(self, case, gender):
        return "denen" if (case, gender) == ("dat", "pl") else DER[case][gender]


def is_we(subject):
    return isinstance(subject, Phrase) and subject.head.role == "pronoun" and subject.head.german[0] == "wir"


def plural_ending(past):
    return past + "n" if past.endswith("e") else past + "en"


def joined(particle, finite):
    """The particle written together with the verb, as at the end of a subordinate clause."""
    if not particle:
        return finite
    return [word(particle[0].text + finite[0].text, *finite[0].links)]


def tidy_commas(out):
    """One comma where two meet, none before the final mark."""
    tidy = []
    for w in out:
        if w.text in ",.?!" and tidy and tidy[-1].text == ",":
            before = tidy.pop()
            w = replace(w, links=w.links + before.links) if w.text == "," else w
        tidy.append(w)
    return tidy


# ------------------------------------------------------------------------------------------------- drawing a tree

class Dice:
    """Random choices that need nothing but `random()`, so that every Python draws the same."""

    def __init__(self, seed):
        self.random = random.Random(seed).random
        self.used = Counter()

    def chance(self, p):
        return self.random() < p

    def choice(self, items):
        return items[int(self.random() * len(items))]

    def weighted(self, weights):
        """A key of a dict, drawn in proportion to its value."""
        point = self.random() * sum(weights.values())
        for key, weight in weights.items():
            point -= weight
            if point < 0:
                return key
        return key

    def even(self, entries):
        """The least used of three lexicon entries drawn: rare ones catch up."""
        best = min((self.choice(entries) for _ in range(3)), key=self.count)
        self.used[name_of(best)] += 1
        return best

    def count(self, entry):
        return self.used[name_of(entry)]


def name_of(entry):
    """What an entry is counted by."""
    return getattr(entry, "number", entry.english)


def held_out_pair(first, second):
    """One pair of lemmas in ten is kept for the hard set."""
    return (3 * first.number + 7 * second.number) % 10 == 0


class Sampler:
    """Draws sentences; `mode` is seen (train, validation, test), longer or unseen."""

    FRAMES = {"acc": 54, "intr": 12, "dat": 7, "dit": 9, "loc": 6, "dir": 6, "jump": 2, "trip": 2, "prep": 6}
    RELATIVES = {"relative-subject": 4, "relative-object": 4, "relative-preposition": 2, "relative-possessive": 2.2}
    POSITIVE = ("infinitive", "request", "before", "after", "when", "while", "temporal")         # clauses never negated
    UNWILLED = {"arrive", "wake", "fall", "lose", "need", "see", "hear", "find", "break", "love", "get"}
    NO_PASSIVE = {
        "need",
        "wear",
        "lose",
        "love",
        "meet",
        "marry",
        "kiss",
        "hear",
        "ride",
        "put",
        "take",
        "watch",
        "visit",
    }
    SIMPLE_ADVERBS = {
        "past": ("yesterday", "recently", "today"),
        "present": ("now", "today"),
        "future": ("tomorrow", "soon"),
        "perfect": ("today",),
        "modal": ("today",),
        "pluperfect": (),
    }

    def __init__(self, lexicon, seed):
        self.lexicon, self.dice, self.mode = lexicon, Dice(seed), "seen"
        self.determiners = {d.english: d for d in lexicon["determiner"]}
        self.adverbs = {a.english: a for a in lexicon["adverb"]}
        self.conjunctions = {c.english: c for c in lexicon["conjunction"]}
        self.be = next(v for v in lexicon["verb"] if v.english[0] == "be")
        self.cache = {}
        self.start()

    def start(self):
        self.keys, self.names, self.unseen, self.definite, self.negatable = 0, [], [], False, False
        self.subject = None

    # ---- small tools

    def key(self):
        self.keys += 1
        return self.keys

    def note(self, name, context=None):
        """Remember a construction of the sentence, and whether it stands in a clause where training never has it."""
        if name not in self.names:
            self.names.append(name)
        if (context, name) in HELD_OUT:
            self.unseen.append(f"{context}+{name}")

    def may(self, name, context):
        return self.mode == "unseen" or (context, name) not in HELD_OUT

    def pair(self, first, second):
        """False where a held-out pair must not be used; in the hard set the pair is remembered."""
        if not held_out_pair(first, second):
            return True
        if self.mode == "unseen":
            self.unseen.append(f"{first.english[0]}+{second.english[0]}")
            return True
        return False

    def nouns(self, kinds):
        """All nouns that are one of `kinds`, in the order of the lexicon."""
        if kinds not in self.cache:
            self.cache[kinds] = [n for n in self.lexicon["noun"] if n.is_a(*kinds)]
        return self.cache[kinds]

    def noun(self, kinds, partner=None, within=None):
        """An evenly drawn noun of some kinds (and of one kind in `within`) that may stand with `partner`."""
        key = "noun", tuple(kinds), partner and partner.number, within and tuple(sorted(within)), self.mode == "unseen"
        if key not in self.cache:
            self.cache[key] = [n for n in self.nouns(tuple(kinds)) if (within is None or n.is_a(*within))
                               and (partner is None or self.mode == "unseen" or not held_out_pair(partner, n))]
        if not self.cache[key]:
            return None
        noun = self.dice.even(self.cache[key])
        if partner is not None:
            self.pair(partner, noun)
        return noun

    def adjective(self, noun, colour=None):
        """An adjective for a noun; colours are those without a comparative."""
        key = "adjective", noun.number, colour, self.mode == "unseen"
        if key not in self.cache:
            self.cache[key] = [a for a in self.lexicon["adjective"]
                               if noun.is_a(*a.kinds) and (colour is None or colour == (not a.comparative))
                               and (self.mode == "unseen" or not held_out_pair(a, noun))]
        return self.dice.even(self.cache[key]) if self.cache[key] else None

    # ---- noun phrases

    def phrase(self, head, plain=False, negatable=False):
        """A noun phrase around a noun: number, determiner and perhaps adjectives."""
        if head.role in ("name", "city"):
            return Phrase(self.key(), head)
        mass = head.is_a("mass")
        plural = not mass and self.dice.chance(0.1 if plain else 0.24)
        determiner = self.determiner(head, plural, mass, plain)
        if negatable and self.dice.chance(0.08):
            determiner = self.determiners["no"]
            self.note("negation")
        if head.is_a("single") and determiner.english in ("my", "our", "your"):
            plural = False
        phrase = Phrase(self.key(), head, plural, determiner)
        self.describe(phrase, 0.12 if plain else 0.36)
        return phrase

    def determiner(self, head, plural, mass, plain):
        weights = {"the": 52, "this": 7}
        if head.is_a(*OWNS["person"]):
            weights |= {"my": 5, "our": 4, "your": 4}
        if plain and not plural and not mass and not self.definite:
            weights["a"] = 25
        elif not plain and not self.definite:
            if plural:
                weights |= {"all": 5, "many": 7, "some": 7, "two": 5, "three": 5, "four": 4, "five": 4}
            elif not mass:
                weights |= {"a": 27, "every": 4}
        return self.determiners[self.dice.weighted(weights)]

    def describe(self, phrase, share):
        """Perhaps an adjective before the noun, rarely two."""
        if not self.dice.chance(share):
            return
        for colour in (False, True) if self.dice.chance(0.12) else (None,):
            adjective = self.adjective(phrase.head, colour)
            if adjective and self.pair(adjective, phrase.head):
                phrase.adjectives.append(adjective)
                self.note("adjective")

    def pronoun(self, *avoid):
        return Phrase(self.key(), self.dice.choice([p for p in self.lexicon["pronoun"] if p not in avoid]))

    def somebody(self, frame_subjects, pronouns=0.12, fitting=None):
        """A subject: a pronoun or a name where a person can be it, or a noun."""
        kind = fitting or self.dice.choice(frame_subjects)
        if kind == "person":
            if self.dice.chance(pronouns):
                return self.pronoun()
            if self.dice.chance(0.16):
                return self.phrase(self.dice.even(self.lexicon["name"]))
        return self.phrase(self.noun((kind,)))

    def owner_kind(self, subject):
        """The kind of possessor a subject is, or None where no possessive may refer to it."""
        if not isinstance(subject, Phrase) or subject.head.role == "pronoun" or subject.head.role == "city":
            return None
        head = subject.head
        if head.is_a("person"):
            return "person" if subject.plural or head.gender != "n" else None
        return next((kind for kind in ("pet", "animal", "group", "vehicle", "building") if head.is_a(kind)), None)

    def possessive(self, owner):
        if owner.plural:
            return self.determiners["their"]
        if owner.head.is_a("person"):
            return self.determiners["his" if owner.head.gender == "m" else "her"]
        return self.determiners["its"]

    def owned(self, owner, kinds, partner=None):
        """A phrase with a possessive that refers to `owner`, or None."""
        kind = self.owner_kind(owner)
        if not kind or "none" in kinds:
            return None
        head = self.noun(kinds, partner, OWNS[kind])
        if head is None or head.number == owner.head.number:
            return None
        plural = not head.is_a("mass") and (owner.plural or not head.is_a("single")) and self.dice.chance(0.2)
        phrase = Phrase(self.key(), head, plural, self.possessive(owner), owner)
        self.describe(phrase, 0.25)
        self.note("possessive")
        return phrase

    def object(self, kinds, verb, owner, share, pronouns=True):
        """An object of a verb: owned by the subject, a pronoun, a name or any noun."""
        if owner is not None and self.dice.chance(share):
            phrase = self.owned(owner, kinds, verb)
            if phrase:
                return phrase
        if "person" in kinds and self.dice.chance(0.16):
            if pronouns and self.dice.chance(0.5):
                return self.pronoun(*self.same_person(self.subject))
            name = self.dice.even(self.lexicon["name"])
            if self.pair(verb, name):
                return self.phrase(name)
        head = self.noun(kinds, verb)
        return self.phrase(head, negatable=self.negatable and self.sure(owner)) if head else None

    def same_person(self, subject):
        """Pronouns that would need a reflexive after this subject."""
        head = subject.head if isinstance(subject, Phrase) else None
        if head is None or head.role != "pronoun":
            return []
        return [p for p in self.lexicon["pronoun"] if p is head or {p.english[0], head.english[0]} == {"I", "we"}]

    # ---- places and other adverbials

    def prepositional(self, preposition, phrase):
        self.note("preposition")
        return Prepositional(self.key(), preposition, phrase)

    def place(self, kinds=("in", "ground", "by", "at"), owner=None, plain=True, adverbs=True):
        """Where: in, on, at, under or beside something; sometimes a city, or here, there, outside."""
        kind = self.dice.choice(kinds)
        if adverbs and self.dice.chance(0.1):
            return Place(self.key(), self.dice.choice([a for a in self.lexicon["adverb"] if a.use == "place"]))
        if kind == "in" and self.dice.chance(0.12):
            return self.prepositional(self.preposition("in", "dat"), self.phrase(self.dice.even(self.lexicon["city"])))
        preposition = self.dice.even(
            [p for p in self.lexicon["preposition"] if p.kind == kind.replace("ground", "on") and p.case == "dat"]
        )
        phrase = None
        if owner is not None and self.dice.chance(0.25) and self.owner_kind(owner) == "person":
            phrase = self.owned(owner, (kind,))
        return self.prepositional(preposition, phrase or self.phrase(self.noun((kind,)), plain))

    def preposition(self, kind, case, english=None):
        options = [p for p in self.lexicon["preposition"]
                   if p.kind == kind and p.case == case and (english is None or p.english == english)]
        return self.dice.choice(options)

    def direction(self, kind, far):
        """Where to: into, to, through, across, around, onto something; a city for journeys."""
        if kind == "trip" or (kind == "dir" and far and self.dice.chance(0.12)):
            return self.prepositional(
                self.preposition("goal", "dat"), self.phrase(self.dice.even(self.lexicon["city"]))
            )
        if kind == "jump":
            return self.prepositional(self.preposition("on", "acc"), self.phrase(self.noun(("up",)), plain=True))
        use = self.dice.choice(("in", "goal", "goal", "through", "across", "around"))
        case = "dat" if use == "goal" else "acc"
        return self.prepositional(self.preposition(use, case), self.phrase(self.noun((use,)), plain=True))

    def company(self, extras, subject):
        """with, for, from somebody; after or before something."""
        options = [
            english
            for letter, english in (
                ("w", "with"),
                ("w", "without"),
                ("f", "for"),
                ("r", "from"),
                ("r", "from"),
                ("r", "from"),
                ("r", "from"),
                ("r", "from"),
                ("t", "after"),
                ("t", "before"),
            )
            if letter in extras
        ]
        if not options:
            return None
        english = self.dice.choice(options)
        preposition = next(p for p in self.lexicon["preposition"] if p.english == english)
        if preposition.kind == "event":
            return self.prepositional(preposition, self.event())
        phrase = None
        if self.dice.chance(0.5):
            phrase = self.owned(subject, ("kin",)) if self.owner_kind(subject) == "person" else None
        return self.prepositional(preposition, phrase or self.somebody(("person",), pronouns=0))

    def event(self):
        phrase = self.phrase(self.noun(("event",)), plain=True)
        phrase.plural = False
        phrase.determiner = self.determiners["the" if self.dice.chance(0.8) else "this"]
        return phrase

    # ---- clauses

    def tense(self, context):
        weights = {"past": 42, "present": 20, "perfect": 15, "future": 8, "modal": 15}
        if context.startswith("relative"):
            weights = {"past": 55, "present": 20, "perfect": 15, "modal": 10}
        return self.dice.weighted({t: w for t, w in weights.items() if self.may(t, context)})

    def finish_tense(self, c, context, tense):
        c.tense = tense or self.tense(context)
        if c.tense.endswith("_"):                       # infinitives and requests have no tense
            c.tense = "present"
            return
        if c.tense == "modal":
            past = ("could", "wanted to") if tense == "modal" else ()
            plain = [
                m
                for m in self.lexicon["modal"]
                if m.english not in past and not (m.english.startswith("want") and (c.question or c.passive))
            ]
            if not self.is_animate(c.subject):
                plain = [m for m in plain if not m.english.startswith("want")]
            if c.marker:
                plain = [m for m in plain if m.english in ("can", "could", "should") and m.english not in past]
            c.modal = self.dice.choice(plain)
        if c.tense in ("perfect", "pluperfect", "future", "modal"):
            self.note(c.tense, context)

    def is_animate(self, subject):
        head = getattr(subject, "head", None) or getattr(getattr(subject, "antecedent", None), "head", None)
        return head is None or head.role in ("pronoun", "name") or head.is_a("person", "animal")

    def kinds_of(self, subject):
        noun = getattr(subject, "owned", None) or getattr(subject, "antecedent", None) or subject
        return getattr(getattr(noun, "head", None), "kinds", frozenset())

    def choose_verb(self, context, kinds, subject=None, separable=None):
        """A verb and one of its frames of a kind in `kinds` that a given subject can have."""
        weights = {k: w for k, w in self.FRAMES.items() if k in kinds}
        if not self.may("ditransitive", context):
            weights.pop("dit", None)
        if not self.may("dative", context):
            weights.pop("dat", None)
        for _ in range(30):
            kind = self.dice.weighted(weights)
            options = [o for o in self.uses(kind) if subject is None or self.can_do(subject, o[1])]
            verb, frame = self.even_use(options) if options else (None, None)
            if verb and context in ("infinitive", "request") and verb.english[0] in self.UNWILLED:
                continue
            if verb and (not verb.particle or self.may("separable", context)):
                return verb, frame
        return None, None

    def uses(self, kind):
        """All verbs with their frames of a kind."""
        if kind not in self.cache:
            self.cache[kind] = [(v, f) for v in self.lexicon["verb"] for f in v.frames if f.kind == kind]
        return self.cache[kind]

    def even_use(self, options):
        """A verb with a frame, rare verbs first."""
        verb, frame = min((self.dice.choice(options) for _ in range(3)), key=lambda o: self.dice.used[o[0].number])
        self.dice.used[verb.number] += 1
        return verb, frame

    def can_do(self, subject, frame):
        head = subject.head if isinstance(subject, Phrase) else (
            subject.owned or subject.antecedent).head if isinstance(subject, Gap) else None
        return (head is None or head.role == "pronoun") and "person" in frame.subjects or (
            head is not None and head.role != "pronoun" and head.is_a(*frame.subjects))

    def clause(self, context, subject=None, tense=None, question=False, extras=0.3, possessives=0.5, modify=0.25,
               kinds=("acc", "intr", "dat", "dit", "loc", "dir", "jump", "trip", "prep")):
        """A clause with a full verb; None where nothing fits."""
        verb, frame = self.choose_verb(context, kinds, subject)
        if verb is None:
            return None
        negated = self.dice.chance(0.1) and (
            not isinstance(subject, Asked) and context not in self.POSITIVE)
        self.definite = negated
        fresh = subject is None
        c = Clause(self.key(), verb, subject or self.somebody(frame.subjects), question=question)
        if negated:
            self.negate(c, tense)
        self.finish_tense(c, context, tense)
        self.negatable = c.tense in ("past", "present", "perfect") and not negated and context not in self.POSITIVE
        self.subject = c.subject
        owner = c.subject if isinstance(c.subject, Phrase) else None
        if not self.fill(c, frame, context, owner, possessives):
            return None
        self.adverbials(c, frame, owner, extras)
        if context in ("infinitive", "request"):
            c.frequency, c.time = None, c.time if context == "request" else None
        self.definite = self.negatable = False
        if fresh:
            self.modify_subject(c, context, modify)
        self.modify_last(c, context, modify)
        if verb.particle:
            self.note("separable", context)
        if verb.reflexive:
            self.note("reflexive", context)
        return c

    def owning_clause(self, context, tense):
        """A clause about an animal, a group, a vehicle or a building and something of its own."""
        subject = self.phrase(self.noun((self.dice.weighted({"group": 5, "animal": 4, "vehicle": 2, "building": 1}),)))
        if subject.determiner.english in ("my", "our", "your", "every"):
            subject.determiner = self.determiners["the"]
        c = self.clause(context, subject, tense, extras=0.15, possessives=1, kinds=("acc", "dat"), modify=0)
        if c is not None:
            self.modify_subject(c, context, 0.2)
        return c

    def negate(self, c, tense):
        """not or never; the clause then has no quantifiers, whose scope would be doubtful."""
        c.marker = self.adverbs["never"] if tense != "modal" and self.dice.chance(0.25) else Simple("not", "nicht", "")
        self.note("negation")

    def fill(self, c, frame, context, owner, possessives):
        """The objects a frame asks for; False where a noun is missing."""
        sociable = not c.verb.tail or c.verb.tail in ("for", "to")
        if frame.kind == "acc":
            c.accusative = self.object(frame.objects, c.verb, owner, possessives, sociable)
            return c.accusative is not None
        if frame.kind == "dat":
            c.dative = self.object(frame.objects, c.verb, owner, possessives * 0.7)
            self.note("dative", context)
            return c.dative is not None
        if frame.kind == "dit":
            c.accusative = self.object(frame.objects, c.verb, owner, possessives, False)
            self.negatable = self.negatable and not self.denied(c)
            c.dative = self.object(("person",), c.verb, None, 0) if self.dice.chance(0.7) else self.owned(
                c.subject, ("kin",), c.verb) or self.object(("person",), c.verb, None, 0)
            self.note("ditransitive", context)
            return c.accusative is not None and c.dative is not None
        if frame.kind == "prep":
            target = self.owned(owner, frame.objects) if owner and self.dice.chance(possessives * 0.7) else None
            c.governed = self.prepositional(frame.preposition, target or self.phrase(self.noun(frame.objects)))
        elif frame.kind == "loc":
            c.place = self.place(frame.objects, owner)
        elif frame.kind in ("dir", "jump", "trip"):
            c.direction = self.direction(
                frame.kind, self.is_animate(c.subject) and "animal" not in self.kinds_of(c.subject)
            )
        return True

    def adverbials(self, c, frame, owner, share):
        """Optional parts, each with some chance."""
        if c.marker is None:
            if c.tense == "perfect" and not self.denied(c) and self.dice.chance(0.2):
                c.marker = self.adverbs["already"]
            elif (
                "o" in frame.extras
                and not self.denied(c)
                and c.tense in ("past", "present")
                and not c.question
                and self.dice.chance(share * 0.5)
            ):
                c.frequency = self.dice.even([a for a in self.lexicon["adverb"] if a.use == "frequency"])
        manners = [a for a in self.lexicon["adverb"] if len(a.use) == 1 and a.use in frame.extras]
        denied = self.denied(c)
        if c.marker is not None and c.marker.english == "never":
            manners = []
        if manners and not c.frequency and not denied and self.dice.chance(share * 0.7):
            c.manner = self.dice.even(manners)
        if self.dice.chance(max(share * 0.7, 0.4 if "r" in frame.extras else 0)):
            c.company = self.company(frame.extras, c.subject)
        if c.place is None and "p" in frame.extras and self.dice.chance(share * 0.8):
            c.place = self.place(owner=owner)
        times = self.SIMPLE_ADVERBS[c.tense]
        if times and "t" in frame.extras and not c.frequency and not self.at_event(c) and self.dice.chance(share * 0.8):
            if not (c.marker and c.marker.english in ("never", "already")):
                c.time = self.adverbs[self.dice.choice(times)]

    def denied(self, c):
        """Is an object denied with no?"""
        return any(
            isinstance(p, Phrase) and p.determiner and p.determiner.english == "no" for p in (c.accusative, c.dative)
        )

    def at_event(self, c):
        return c.company is not None and c.company.preposition.kind == "event"

    def modify_subject(self, c, context, share):
        """A place or a relative clause after the subject; nearly always where a possessive refers to it."""
        if not isinstance(c.subject, Phrase) or c.subject.head.role in ("pronoun", "city"):
            return
        owning = self.refers(c)
        if not self.dice.chance(0.85 if owning else share):
            return
        if c.subject.head.role == "noun" and self.dice.chance(0.55):
            c.subject.relative = self.relative(c.subject, context)
        if c.subject.relative is None and c.subject.head.role == "noun":
            kind = self.dice.choice(("by", "by", "in", "ground"))
            if c.subject.head.is_a("person", "animal", "vehicle"):
                c.subject.place = self.place((kind,), adverbs=False)
            elif c.subject.head.is_a("group", "building"):
                c.subject.place = self.place(("by",), adverbs=False)

    def refers(self, c):
        phrases = (c.accusative, c.dative, *(getattr(p, "phrase", None) for p in (c.company, c.place, c.governed)))
        return any(isinstance(p, Phrase) and p.owner is c.subject for p in phrases)

    def modify_last(self, c, context, share):
        """A relative clause at the end, where nothing follows it that it could be confused with."""
        around = (c.place, c.company) if self.at_event(c) else (c.company, c.place)
        parts = [c.dative, c.accusative, c.governed, c.manner, c.direction, *around, c.time]
        last = next((p for p in reversed(parts) if p is not None), None)
        phrase = last.phrase if isinstance(last, Prepositional) else last
        if (
            not isinstance(phrase, Phrase)
            or phrase.head.role != "noun"
            or phrase.owner
            or not self.dice.chance(share * 0.6)
        ):
            return
        if phrase.determiner.english in ("the", "a", "many", "some", "all", "every"):
            phrase.relative = self.relative(phrase, context)

    def relative(self, antecedent, context):
        """A relative clause for a noun, or None."""
        if context.startswith("relative"):
            return None
        weights = {k: w for k, w in self.RELATIVES.items() if self.may(k, context)}
        kind = self.dice.weighted(weights)
        before = len(self.names), len(self.unseen)
        relative = getattr(self, kind.replace("-", "_"))(antecedent, kind)
        if relative is None or relative.clause is None:
            del self.names[before[0]:], self.unseen[before[1]:]
            return None
        self.note(kind, context)
        return relative

    def relative_subject(self, antecedent, kind):
        gap = Gap(self.key(), antecedent)
        if self.dice.chance(0.25):
            antecedent.adjectives = []                    # not: the cold room that was cold
            return Relative(self.key(), gap, self.copula(kind, gap))
        clause = self.clause(kind, gap, extras=0.12, modify=0)
        return Relative(self.key(), gap, clause)

    def relative_object(self, antecedent, kind):
        """the book that the woman bought, the man whom the woman helped."""
        gap = Gap(self.key(), antecedent)
        options = self.cache.setdefault(("object", antecedent.head.number), [
            (v, f) for v in self.lexicon["verb"] for f in v.frames if f.kind in ("acc", "dat")
            and antecedent.head.is_a(*f.objects) and "person" in f.subjects and not v.tail])
        options = [(v, f) for v, f in options if self.mode == "unseen" or not held_out_pair(v, antecedent.head)]
        if not options:
            return None
        verb, frame = self.even_use(options)
        self.pair(verb, antecedent.head)
        c = Clause(self.key(), verb, self.somebody(("person",)))
        setattr(c, "accusative" if frame.kind == "acc" else "dative", gap)
        self.finish_tense(c, kind, None)
        if "t" in frame.extras and self.SIMPLE_ADVERBS[c.tense] and self.dice.chance(0.15):
            c.time = self.adverbs[self.dice.choice(self.SIMPLE_ADVERBS[c.tense])]
        if verb.particle:
            self.note("separable", kind)
        return Relative(self.key(), gap, c)

    def relative_preposition(self, antecedent, kind):
        """the house in which the man slept, the man with whom the woman danced."""
        head, gap = antecedent.head, Gap(self.key(), antecedent)
        letter = "w" if head.is_a("person") else "p"
        places = [k.replace("ground", "on") for k in ("in", "ground", "at") if head.is_a(k)]
        if letter == "p" and not places:
            return None
        options = self.cache.setdefault(("which", letter), [
            (v, f) for v in self.lexicon["verb"] for f in v.frames if f.kind == "intr" and letter in f.extras
            and "person" in f.subjects])
        verb, _ = self.dice.choice(options)
        self.dice.used[verb.number] += 1
        c = Clause(self.key(), verb, self.somebody(("person",)))
        self.finish_tense(c, kind, None)
        if letter == "w":
            c.company = Prepositional(self.key(), self.preposition("person", "dat", "with"), gap)
        else:
            c.place = Prepositional(self.key(), self.preposition(self.dice.choice(places), "dat"), gap)
        if verb.particle:
            self.note("separable", kind)
        return Relative(self.key(), gap, c)

    def relative_possessive(self, antecedent, kind):
        """the man whose sister sang."""
        if not antecedent.head.is_a("person"):
            return None
        owned = Phrase(self.key(), self.noun(("kin", "pet")), self.dice.chance(0.2))
        gap = Gap(self.key(), antecedent, owned)
        clause = self.copula(kind, gap) if self.dice.chance(0.4) else self.clause(
            kind, gap, extras=0.1, modify=0, kinds=("acc", "intr"))
        return Relative(self.key(), gap, clause)

    def copula(self, context, subject=None, tense=None, question=False, compare=0.0, modify=0.0):
        """to be with an adjective, perhaps compared."""
        self.definite = not self.dice.chance(0.1)
        if subject is None:
            subject = (
                self.somebody(("person",))
                if self.dice.chance(0.4)
                else self.phrase(
                    self.noun(
                        (
                            "animal",
                            "vehicle",
                            "thing",
                            "clothes",
                            "text",
                            "building",
                            "furniture",
                            "abstract",
                            "food",
                            "visit",
                            "indoor",
                            "across",
                            "drink",
                        )
                    )
                )
            )
        self.definite = False
        if isinstance(subject, Phrase):
            subject.adjectives = []
        c = Clause(self.key(), self.be, subject, question=question)
        head = subject.head if isinstance(subject, Phrase) else (subject.owned or subject.antecedent).head
        person = Noun(0, ("",), ("",), "m", frozenset({"person"})) if head.role == "pronoun" else head
        compared = self.dice.chance(compare) and head.role != "pronoun"
        adjective = self.adjective(person, False if compared else None)
        if adjective is None or head.role == "noun" and not self.pair(adjective, head):
            return None
        c.predicate = Predicate(self.key(), adjective)
        c.tense = tense or ("past" if self.dice.chance(0.6) else "present")
        if compared:
            self.compare(c, head, adjective)
        else:
            if adjective.comparative and self.dice.chance(0.3):
                c.predicate.degree = self.dice.choice([a for a in self.lexicon["adverb"] if a.use == "degree"])
            elif self.dice.chance(0.15) and self.sure(subject):
                c.marker = Simple("not", "nicht", "")
                self.note("negation")
        if modify:
            self.modify_subject(c, context, modify)
        self.note("copula", context)
        return c

    def sure(self, subject):
        """True where a negation has no quantifier beside it."""
        determiner = getattr(subject, "determiner", None)
        return determiner is None or determiner.english in ("the", "this", "my", "our", "your")

    def compare(self, c, head, adjective):
        """bigger than, as big as: something of the same kind."""
        kind = next(k for k in adjective.kinds if head.is_a(k))
        options = [n for n in self.nouns((kind,)) if n is not head]
        if not options:
            return
        c.predicate.than = self.phrase(self.dice.even(options), plain=True)
        c.predicate.equal = self.dice.chance(0.35)
        self.note("comparison")

    def passive(self, context, tense=None, question=False, modify=0.0):
        """The book was read by the man."""
        key = ("passive",)
        if key not in self.cache:
            self.cache[key] = [(v, f) for v in self.lexicon["verb"] for f in v.frames if f.kind == "acc" and not v.tail
                               and "person" in f.subjects and v.english[0] not in self.NO_PASSIVE]
        verb, frame = self.even_use(self.cache[key])
        head = self.noun(frame.objects, verb)
        if head is None:
            return None
        c = Clause(self.key(), verb, self.phrase(head), question=question, passive=True)
        if tense == "present":
            tense = "modal" if self.may("modal", context) else "perfect"
        future = context != "that"                      # not: gezeichnet werden werden
        c.tense = tense or self.dice.weighted({"past": 6, "perfect": 2, "future": int(future), "modal": 2})
        self.finish_tense(c, context, c.tense)
        if self.dice.chance(0.65):
            c.agent = self.somebody(("person",), pronouns=0)
        elif "p" in frame.extras and self.dice.chance(0.5):
            c.place = self.place()
        times = [t for t in self.SIMPLE_ADVERBS[c.tense]]
        if times and self.dice.chance(0.35):
            c.time = self.adverbs[self.dice.choice(times)]
        if modify:
            self.modify_subject(c, context, modify)
        self.note("passive", context)
        if verb.particle:
            self.note("separable", context)
        return c

    def any_clause(self, context, tense=None, subject=None, **more):
        """A clause of any sort for a place in a larger sentence."""
        roll = self.dice.random()
        if subject is None and self.dice.chance(0.16):
            return self.owning_clause(context, tense)
        if roll < 0.13 and subject is None and tense != "future" and self.may("passive", context):
            return self.passive(context, tense, modify=0.15)
        if roll < 0.3 and tense in (None, "past", "present") and context not in ("before", "while"):
            return self.copula(context, subject, tense, compare=0.1, modify=0.2)
        return self.clause(context, subject, tense, **more)

    # ---- sentences

    KINDS = {
        "simple": 29,
        "copula": 5,
        "passive": 6,
        "infinitive": 8,
        "that": 7,
        "final": 10,
        "fronted": 6,
        "coordinate": 9,
        "question": 9,
        "wh": 8,
        "request": 3,
    }

    def sentence(self):
        """One sentence with the names of its constructions, or None where the draw came to nothing."""
        self.start()
        kind = self.dice.weighted(self.KINDS)
        sentence = getattr(self, kind + "_sentence")()
        if sentence is None or any(clause is None for _, clause in sentence.clauses):
            return None
        self.note(kind if kind not in ("final", "fronted") else "subordinate")
        return sentence

    def main_clause(self, tense=None, **more):
        """A main clause, sometimes with an adverbial before the verb."""
        c = self.owning_clause("main", tense) if self.dice.chance(0.38) else self.clause(
            "main", tense=tense, **{"extras": 0.32, "modify": 0.14, **more})
        if c is not None:
            self.bring_forward(c, 0.3)
        return c

    def bring_forward(self, c, share):
        """Verb second: the adverbial comes first, the subject after the verb."""
        if not self.dice.chance(share):
            return
        options = [c.time] * 3 + [c.place if isinstance(c.place, Prepositional) and not c.place.phrase.owner
                                  and not c.place.phrase.relative else None]
        options = [o for o in options if o is not None]
        if c.time is not None:
            pass
        elif c.tense == "past":
            options += [
                self.adverbs[self.dice.choice(("suddenly", "finally", "unfortunately", "fortunately", "perhaps"))]
            ]
        elif c.tense == "present":
            options += [self.adverbs[self.dice.choice(("unfortunately", "fortunately", "perhaps"))]]
        if options:
            c.front = self.dice.choice(options)
            self.note("fronting")

    def simple_sentence(self):
        return Sentence([(None, self.main_clause())])

    def copula_sentence(self):
        return Sentence([(None, self.copula("main", compare=0.5, modify=0.35))])

    def passive_sentence(self):
        c = self.passive("main", modify=0.3)
        if c is not None and c.time is not None:
            self.bring_forward(c, 0.3)
        return Sentence([(None, c)])

    def infinitive_sentence(self):
        """The man tried to open the door."""
        verb, frame = self.even_use(self.uses("zu"))
        subject = self.somebody(frame.subjects)
        c = Clause(self.key(), verb, subject, tense="past" if self.dice.chance(0.75) else "present")
        inner = self.clause(
            "infinitive", subject, "infinitive_", kinds=("acc", "dat", "dit", "intr", "dir"), extras=0.25
        )
        if inner is None:
            return None
        c.complement, c.complement_kind = inner, "infinitive"
        if self.refers(inner) or self.dice.chance(0.3):
            inner_subject = Clause(0, verb, subject, accusative=inner.accusative, dative=inner.dative)
            self.modify_subject(inner_subject, "main", 0.3)
        if verb.reflexive:
            self.note("reflexive")
        return Sentence([(None, c)])

    def that_sentence(self):
        """The man said that the woman had bought the book."""
        verb, _ = self.even_use(self.uses("that"))
        tense = "past" if self.dice.chance(0.65) else "present"
        c = Clause(self.key(), verb, self.somebody(("person",)), tense=tense)
        inner = self.any_clause("that", "past" if tense == "past" else None, extras=0.22)
        c.complement, c.complement_kind = inner, "that"
        self.modify_subject(c, "main", 0.2)
        return Sentence([(None, c if inner is not None else None)])

    def later_subject(self, first):
        """Now and then the second clause speaks of the same person: he, she, they."""
        if first is None or not isinstance(first.subject, Phrase) or not self.dice.chance(0.25):
            return None
        subject = first.subject
        if subject.head.role == "pronoun" or not subject.head.is_a("person") or first.passive:
            return None
        english = "they" if subject.plural else {"m": "he", "f": "she"}.get(subject.head.gender)
        return next((Phrase(self.key(), p) for p in self.lexicon["pronoun"] if p.english[0] == english), None)

    TENSES = {"because": (("past", "past"), ("present", "present"), ("past", "pluperfect"), ("present", "perfect")),
              "although": (("past", "past"), ("present", "present"), ("past", "pluperfect"), ("present", "perfect")),
              "when": (("past", "past"),), "if": (("present", "present"), ("future", "present"), ("modal", "present")),
              "before": (("past", "past"),), "after": (("past", "pluperfect"),), "while": (("past", "past"),)}

    def pair_of_clauses(self):
        """A main and a subordinate clause whose tenses agree."""
        conjunction = self.dice.choice([c for c in self.lexicon["conjunction"] if c.use != "coordinate"])
        tense, subordinate = self.dice.choice(self.TENSES[conjunction.english])
        context = "temporal" if conjunction.english in self.POSITIVE else "main"
        first = self.clause(context, tense=tense, extras=0.12, modify=0.05, possessives=0.35)
        second = self.any_clause(conjunction.english, subordinate, self.later_subject(first), extras=0.12, modify=0.12)
        self.note(conjunction.english)
        return conjunction, first, second

    def final_sentence(self):
        conjunction, first, second = self.pair_of_clauses()
        return Sentence([(None, first), (conjunction, second)], "final")

    def fronted_sentence(self):
        conjunction, first, second = self.pair_of_clauses()
        return Sentence([(conjunction, second), (None, first)], "fronted")

    def coordinate_sentence(self):
        conjunction = self.dice.choice([c for c in self.lexicon["conjunction"] if c.use == "coordinate"])
        tense = self.dice.weighted({"past": 6, "present": 2, "perfect": 1, "future": 1})
        first = self.clause("main", tense=tense, extras=0.12, modify=0.05, possessives=0.3)
        second = self.any_clause("main", tense, extras=0.12, modify=0.12)
        return Sentence([(None, first), (conjunction, second)], "coordinate")

    def question_sentence(self):
        roll = self.dice.random()
        if roll < 0.2:
            c = self.copula("question", question=True, compare=0.15, modify=0.2)
        elif roll < 0.3 and self.may("passive", "question"):
            c = self.passive("question", question=True)
        else:
            c = self.clause("question", question=True, extras=0.35, modify=0.2)
        return Sentence([(None, c)], "question", "?")

    def wh_sentence(self):
        """who, what, whom, where, when, why, which."""
        kind = self.dice.choice(("who", "what", "whom", "where", "when", "why", "which", "which"))
        if kind == "who":
            c = self.clause("wh", Asked(self.key(), "who", "wer"), extras=0.3, modify=0.3)
        elif kind in ("what", "whom", "which"):
            c = self.ask_object(kind)
        else:
            c = self.ask_adverb(kind)
        return Sentence([(None, c)], "question", "?")

    def ask_object(self, kind):
        c = self.clause("wh", question=True, extras=0.25, possessives=0, modify=0.25,
                        kinds=("acc", "dat") if kind != "what" else ("acc",))
        if c is None or (c.marker and c.marker.english != "already"):
            return None
        role = "accusative" if c.accusative is not None else "dative"
        phrase = getattr(c, role)
        if phrase.head.role != "noun" or phrase.determiner.english == "no" or phrase.relative:
            return None
        if kind == "which":
            phrase.determiner = self.determiners["which"]
            c.front = phrase
            return c
        if phrase.head.is_a("person") != (kind == "whom") or phrase.head.is_a("animal"):
            return None
        c.front = Asked(self.key(), kind, "was" if kind == "what" else "wen" if role == "accusative" else "wem")
        setattr(c, role, None)
        return c

    def ask_adverb(self, kind):
        c = self.clause("wh", question=True, extras=0.2, modify=0.25)
        if c is None or c.marker or c.time and kind == "when" or c.place and kind == "where":
            return None
        if kind == "where" and (c.direction or "p" not in "".join(f.extras for f in c.verb.frames) or c.governed):
            return None
        c.front = Asked(self.key(), kind, {"where": "wo", "when": "wann", "why": "warum"}[kind])
        return c

    def request_sentence(self):
        """Please open the window."""
        c = self.clause(
            "request",
            Phrase(self.key(), self.lexicon["pronoun"][-1]),
            "request_",
            extras=0.35,
            modify=0.25,
            kinds=("acc", "dat", "dit", "dir"),
        )
        if c is None or c.marker or c.verb.reflexive:
            return None
        c.subject = None
        return Sentence([(None, c)], "request")


# ------------------------------------------------------------------------------------------------- pairs and files

@dataclass(frozen=True)
class Pair:
    """One line of the corpus."""
    english: str
    german: str
    alignment: tuple                   # (English word, German word)
    pronouns: tuple                    # English: (possessive, antecedent, candidates)
    german_pronouns: tuple
    constructions: tuple

    def line(self):
        alignment = " ".join(f"{i}-{j}" for i, j in self.alignment)
        pronouns = " ".join(f"{self.item(e)}/{self.item(g)}" for e, g in zip(self.pronouns, self.german_pronouns))
        return "\t".join((self.english, self.german, alignment, pronouns, ",".join(self.constructions)))

    @staticmethod
    def item(pronoun):
        position, antecedent, candidates = pronoun
        return f"{position}:{antecedent}:{','.join(map(str, candidates))}"


def text_of(written):
    """Words to a sentence: no space before punctuation, a capital at the start."""
    text = re.sub(r" ([,.?!])", r"\1", " ".join(w.text for w in written))
    return text[0].upper() + text[1:]


def align(english, german):
    """All pairs of positions whose words share a name."""
    places = {}
    for j, w in enumerate(german):
        for link in w.links:
            places.setdefault(link, []).append(j)
    return tuple(
        (i, j) for i, w in enumerate(english) for j in sorted({j for link in w.links for j in places.get(link, ())})
    )


def antecedents(written):
    """(possessive, antecedent, candidates) of every possessive that refers to a noun, in the order of their phrases."""
    nouns = {w.noun: i for i, w in enumerate(written) if w.noun is not None}
    found = {w.owner: i for i, w in enumerate(written) if w.owner}
    return tuple((found[key], nouns[key[1]], tuple(i for phrase, i in sorted(nouns.items(), key=lambda item: item[1])
                                                   if phrase != key[0])) for key in sorted(found))


def write_pair(sentence, names):
    english, german = English().sentence(sentence), German().sentence(sentence)
    return Pair(
        text_of(english),
        text_of(german),
        align(english, german),
        antecedents(english),
        antecedents(german),
        tuple(names),
    )


class Corpus:
    """Draws pairs without ever repeating an English or a German sentence."""

    def __init__(self, seed, lexicon=None):
        self.sampler = Sampler(lexicon or read_lexicon(), seed)
        self.seen = set()

    def draw(self, mode, accept):
        """The next new pair that `accept(pair, number of English words, held-out pairs in it)` takes."""
        self.sampler.mode = mode
        while True:
            sentence = self.sampler.sentence()
            if sentence is None or mode == "unseen" and not self.sampler.unseen:
                continue
            pair = write_pair(sentence, self.sampler.names)
            if self.too_easy(pair):
                continue
            keys = ("en", pair.english), ("de", pair.german)
            if accept(pair, len(WORD.findall(pair.english)), self.sampler.unseen) and not self.seen.intersection(keys):
                self.seen.update(keys)
                return pair

    def too_easy(self, pair):
        """Thinned out: sentences whose possessives all show their German gender in English already (his, her), and
        those whose only candidate, or whose first, is the antecedent."""
        dice = self.sampler.dice
        if pair.pronouns and not re.search(r"\bits\b", pair.english) and dice.chance(0.4):
            return True
        if any(len(candidates) == 1 for _, _, candidates in pair.pronouns):
            return dice.chance(0.75)
        return (
            bool(pair.pronouns)
            and all(a == candidates[0] for _, a, candidates in pair.pronouns)
            and dice.chance(0.35)
        )

    def plain(self):
        """A pair for train, validation or test."""
        return self.draw("seen", lambda pair, n, unseen: 4 <= n <= LONGEST)

    def longer(self):
        low, high = LONGER
        pair = self.draw("longer", lambda pair, n, unseen: low <= n <= high)
        return replace(pair, constructions=pair.constructions + ("longer",))

    def unseen(self, of_lemmas):
        """A pair with a held-out pair of lemmas, or of constructions, and no longer than training."""
        def accept(pair, n, unseen):
            return n <= LONGEST and any((name in HELD_OUT_NAMES) != of_lemmas for name in unseen)
        pair = self.draw("unseen", accept)
        return replace(pair, constructions=pair.constructions + ("unseen-combination",))

    def hard(self, size):
        """The hard set: seven tenths unseen combinations, three tenths longer sentences."""
        longer = round(size * LONGER_SHARE)
        for i in range(size - longer):
            yield self.unseen(of_lemmas=i % 2 == 0)
        for _ in range(longer):
            yield self.longer()


HELD_OUT_NAMES = {f"{context}+{name}" for context, name in HELD_OUT}


def splits(seed, train=SIZES["train"]):
    """(name, pairs) of the four files; train comes last, so that the others are the same for every size."""
    corpus = Corpus(seed)
    for name in ("validation", "test"):
        yield name, (corpus.plain() for _ in range(SIZES[name]))
    yield "hard", corpus.hard(SIZES["hard"])
    yield "train", (corpus.plain() for _ in range(train))


def write_corpus(folder, seed, size=SIZES["train"]):
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in splits(seed, size):
        with open(folder / f"{name}.tsv", "w", encoding="utf8", newline="\n") as file:
            for pair in pairs:
                file.write(pair.line() + "\n")


def read_pairs(path):
    """The lines of a corpus file as `Pair`s."""
    return [parse(line) for line in path.read_text(encoding="utf8").splitlines()]


def parse(line):
    english, german, alignment, pronouns, names = line.split("\t")
    items = [tuple(parse_item(side) for side in item.split("/")) for item in pronouns.split()]
    return Pair(english, german, tuple(tuple(map(int, pair.split("-"))) for pair in alignment.split()),
                tuple(e for e, _ in items), tuple(g for _, g in items), tuple(names.split(",")))


def parse_item(text):
    position, antecedent, candidates = text.split(":")
    return int(position), int(antecedent), tuple(map(int, candidates.split(",")))


# ------------------------------------------------------------------------------------------------- figures

def nearest(pronoun):
    """The baseline: the candidate that stands nearest before the possessive."""
    position, _, candidates = pronoun
    before = [c for c in candidates if c < position]
    return before[-1] if before else candidates[0]


def share(hits, total):
    return f"{100 * hits / max(1, total):.1f}%"


def pronoun_figures(pairs):
    pronouns = [p for pair in pairs for p in pair.pronouns]
    n = len(pronouns)
    return {"sentences with a pronoun": share(sum(bool(p.pronouns) for p in pairs), len(pairs)), "pronouns": n,
            "its": sum(WORD.findall(pair.english)[p[0]] == "its" for pair in pairs for p in pair.pronouns),
            "candidates, mean": f"{sum(len(p[2]) for p in pronouns) / max(1, n):.2f}",
            "two candidates or more": share(sum(len(p[2]) > 1 for p in pronouns), n),
            "words from antecedent to pronoun, mean": f"{sum(p[0] - p[1] for p in pronouns) / max(1, n):.1f}",
            "nearest noun is right": share(sum(nearest(p) == p[1] for p in pronouns), n),
            "first noun is right": share(sum(p[2][0] == p[1] for p in pronouns), n),
            "chance": f"{100 * sum(1 / len(p[2]) for p in pronouns) / max(1, n):.1f}%"}


def length_figures(pairs):
    lengths = sorted(len(WORD.findall(p.english)) for p in pairs)
    n = len(lengths)
    return {"sentences": n, "English words, mean": f"{sum(lengths) / n:.2f}",
            "quantiles 0, 25, 50, 75, 100": " ".join(str(lengths[min(n - 1, q * n // 4)]) for q in range(5)),
            "over 15 words": share(sum(length > 15 for length in lengths), n),
            "German words, mean": f"{sum(len(WORD.findall(p.german)) for p in pairs) / n:.2f}"}


def lemma_forms(lexicon):
    """(class, English lemma, its written forms) for every entry."""
    for entry in lexicon["noun"] + lexicon["name"] + lexicon["city"]:
        yield entry.role, entry.english[0], set(entry.english)
    for verb in lexicon["verb"]:
        extra = {"am", "is", "are", "were"} if verb.english[0] == "be" else set()
        yield (
            "verb",
            f"{verb.english[0]} {verb.tail}".strip(),
            {f"{form} {verb.tail}".strip() for form in verb.english} | extra,
        )
    for adjective in lexicon["adjective"]:
        yield "adjective", adjective.english, {adjective.english, *adjective.comparative} - {"more"}
    for kind in ("adverb", "conjunction", "modal", "preposition", "word"):
        for entry in lexicon[kind]:
            yield kind, entry.english, {entry.english, entry.english.replace("want ", "wants ")}
    for determiner in lexicon["determiner"]:
        yield "determiner", determiner.english, {determiner.english, determiner.plural}
    for pronoun in lexicon["pronoun"]:
        yield "pronoun", pronoun.english[0], {pronoun.english[0], pronoun.english[0].lower()}


def lemma_counts(lexicon, pairs):
    """In how many places of the English side each lemma occurs."""
    text = Counter()
    for pair in pairs:
        words = [w.lower() for w in WORD.findall(pair.english)]
        for n in (1, 2, 3):
            text.update(" ".join(words[i:i + n]) for i in range(len(words) - n + 1))
    return {
        (kind, lemma): sum(text[form.lower()] for form in sorted(forms))
        for kind, lemma, forms in lemma_forms(lexicon)
    }


def print_statistics(folder):
    lexicon = read_lexicon()
    corpus = {name: read_pairs(folder / f"{name}.tsv") for name in SIZES}
    train = corpus["train"]
    print("lemmas:", sum(map(len, lexicon.values())), {kind: len(entries) for kind, entries in lexicon.items()})
    for name, pairs in corpus.items():
        print(f"\n{name}")
        for label, value in {**length_figures(pairs), **pronoun_figures(pairs)}.items():
            print(f"  {label}: {value}")
    names = Counter(name for pair in train for name in pair.constructions)
    print("\nconstructions in train, share of sentences")
    for name, count in names.most_common():
        print(f"  {name}: {share(count, len(train))}")
    for side in ("english", "german"):
        forms = Counter(w.lower() for pair in train for w in WORD.findall(getattr(pair, side)))
        print(f"\n{side}: {len(forms)} word forms, {sum(c < 10 for c in forms.values())} of them fewer than ten times")
    rarest = sorted(lemma_counts(lexicon, train).items(), key=lambda item: item[1])[:8]
    print("\nrarest lemmas in train:", ", ".join(f"{lemma} ({kind}) {count}" for (kind, lemma), count in rarest))


def word_table(pairs):
    """The German word most often aligned to each English word."""
    counts = {}
    for pair in pairs:
        english, german = WORD.findall(pair.english), WORD.findall(pair.german)
        for i, j in pair.alignment:
            counts.setdefault(english[i].lower(), Counter())[german[j]] += 1
    return {w: min(c.items(), key=lambda item: (-item[1], item[0]))[0] for w, c in counts.items()}


def baseline(folder, split="test"):
    """BLEU of a word-for-word translation in English order."""
    from sacrebleu.metrics import BLEU
    table = word_table(read_pairs(folder / "train.tsv"))
    pairs = read_pairs(folder / f"{split}.tsv")
    guesses = [text_of([Word(table.get(w.lower(), w), ()) for w in WORD.findall(pair.english)]) for pair in pairs]
    metric = BLEU()
    score = metric.corpus_score(guesses, [[pair.german for pair in pairs]])
    return score.score, str(metric.get_signature())


def print_samples(number, seed):
    """Readable pairs, every English word with the German words it is aligned to."""
    corpus = Corpus(seed)
    for _ in range(number):
        pair = corpus.plain()
        english, german = WORD.findall(pair.english), WORD.findall(pair.german)
        print(f"{pair.english}\n{pair.german}")
        print("   " + "  ".join(f"{w}={'+'.join(german[j] for i, j in pair.alignment if i == place) or '-'}"
                                for place, w in enumerate(english)))
        for position, antecedent, candidates in pair.pronouns:
            print(f"   {english[position]} -> {english[antecedent]} (of {', '.join(english[c] for c in candidates)})")
        print(f"   {', '.join(pair.constructions)}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=2017)
    parser.add_argument("--folder", type=Path, default=HERE / "bundled", help="where the four files are or go")
    parser.add_argument("--size", type=int, default=SIZES["train"], help="pairs in train.tsv")
    parser.add_argument("--sample", type=int, metavar="N", help="print N sentences with alignments and write nothing")
    parser.add_argument("--statistics", action="store_true", help="print figures of the files and write nothing")
    parser.add_argument(
        "--baseline", action="store_true", help="print BLEU of a word-for-word translation and write nothing"
    )
    a = parser.parse_args()
    if a.sample:
        print_samples(a.sample, a.seed)
    elif a.statistics:
        print_statistics(a.folder)
    elif a.baseline:
        print("word-for-word BLEU on test: {:.2f}   {}".format(*baseline(a.folder)))
    else:
        write_corpus(a.folder, a.seed, a.size)


if __name__ == "__main__":
    main()
