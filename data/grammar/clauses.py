"""Drawing clauses: a verb and its objects, adverbials, relative clauses, to be, the passive."""

from .lexicon import Entry
from .phrases import WEIGHTS, Phrases
from .trees import (
    Adverb,
    Asked,
    Clause,
    Gap,
    Phrase,
    Predicate,
    Prepositional,
    Relative,
    phrase_of,
)

FRAMES = WEIGHTS["frames"]
TIMES = WEIGHTS["times"]
CONSTRUCTIONS = {"dit": "ditransitive", "dat": "dative"}  # of a kind of frame
UNTENSED = ("infinitive", "request")
NEVER_NEGATED = (*UNTENSED, "before", "after", "when", "while", "temporal")
BY = Entry(("by",), ("von",))


class Clauses(Phrases):
    """Draws clauses. `context` names the place of a clause in its sentence: main, that, because."""

    def adverb(self, english: str) -> Adverb:
        return Adverb(self.lexicon.find("adverb", english))

    def not_(self) -> Adverb:
        self.note("negation")
        return Adverb(self.lexicon.find("word", "not"))

    def time(self, c: Clause) -> Adverb:
        return self.adverb(self.dice.choice(TIMES[c.tense]))

    def note_particle(self, c: Clause, context: str) -> None:
        if c.verb.particle:
            self.note("separable", context)

    # ---- the verb

    def frame(self, context: str, kinds: tuple, subject):
        """A way to use a verb, of a kind in `kinds`, that a given subject can have."""
        kinds = [
            kind for kind in kinds if self.may(CONSTRUCTIONS.get(kind, kind), context)
        ]
        weights = {kind: weight for kind, weight in FRAMES.items() if kind in kinds}
        for _ in range(30):
            options = self.lexicon.frames_of(self.dice.weighted(weights))
            if subject is not None:
                options = [
                    frame for frame in options if subject.head.is_a(*frame.subjects)
                ]
            if not options:
                continue
            frame = self.dice.even(options)
            verb = frame.verb
            if context in UNTENSED and verb.base in WEIGHTS["verbs"]["unwilled"]:
                continue
            if not verb.particle or self.may("separable", context):
                return frame
        return None

    def set_tense(self, c: Clause, context: str, tense: str | None) -> None:
        """The given tense or any; infinitives and requests have none."""
        if context in UNTENSED:
            c.tense = "present"
            return
        past = tense is None
        if tense is None:
            relative = context.startswith("relative")
            weights = WEIGHTS["tenses-of-relatives" if relative else "tenses"]
            allowed = {
                name: n for name, n in weights.items() if self.may(name, context)
            }
            tense = self.dice.weighted(allowed)
        c.tense = tense
        if tense == "modal":
            c.modal = self.dice.choice(self.modals(c, past))
        if tense not in ("past", "present"):
            self.note(tense, context)

    def modals(self, c: Clause, past: bool) -> list:
        """The modal verbs for a clause."""

        def fits(modal):
            if modal in ("could", "wanted to") and not past:
                return False
            if c.marker and modal not in ("can", "could", "should"):
                return False
            willing = (
                c.subject.head.is_a("person", "animal")
                and not c.question
                and not c.passive
            )
            return willing or not modal.startswith("want")

        return [modal for modal in self.lexicon["modal"] if fits(modal.base)]

    # ---- a clause with a full verb

    def clause(
        self,
        context: str,
        subject=None,
        tense=None,
        question=False,
        extras=0.3,
        possessives=0.5,
        modify=0.25,
        kinds=tuple(FRAMES),
    ) -> Clause | None:
        """A clause with a full verb, each optional part with some chance; None if nothing fits."""
        frame = self.frame(context, kinds, subject)
        if frame is None:
            return None
        negatable = context not in NEVER_NEGATED
        negated = self.dice.chance(0.1) and negatable and not isinstance(subject, Asked)
        self.definite = negated
        whose = subject or self.somebody(frame.subjects)
        c = Clause(frame.verb, whose, question=question)
        if negated:
            self.negate(c, tense)
        self.set_tense(c, context, tense)
        simple = c.tense in ("past", "present", "perfect")
        self.fill(c, frame, context, possessives, negatable and not negated and simple)
        self.adverbials(c, frame, context, extras)
        self.definite = False
        if subject is None:
            self.modify_subject(c, context, modify)
        self.finish(c, context, modify)
        return c

    def finish(self, c, context, modify):
        """What stands last, perhaps described; notes of a separable particle and a reflexive."""
        self.modify_last(c, context, modify)
        self.note_particle(c, context)
        if c.verb.reflexive:
            self.note("reflexive", context)

    def owning_clause(self, context: str, tense: str | None) -> Clause | None:
        """A clause about an animal, a group, a vehicle or a building and something of its own."""
        subject = self.phrase(self.noun((self.dice.weighted(WEIGHTS["owning"]),)))
        if subject.has("my", "our", "your", "every"):
            subject.determiner = self.lexicon.find("determiner", "the")
        rates = {"extras": 0.15, "possessives": 1, "modify": 0}
        c = self.clause(context, subject, tense, kinds=("acc", "dat"), **rates)
        if c is not None:
            self.modify_subject(c, context, 0.2)
        return c

    def negate(self, c: Clause, tense: str | None) -> None:
        never = tense != "modal" and self.dice.chance(0.25)
        c.marker = self.adverb("never") if never else self.not_()
        self.note("negation")

    def fill(
        self, c: Clause, frame, context: str, possessives: float, negatable: bool
    ) -> None:
        """The objects a frame asks for."""
        owner, kinds = c.owner, frame.objects
        if frame.kind in ("acc", "dit"):
            sociable = frame.kind == "acc" and c.verb.tail in ("", "for", "to")
            c.accusative = self.object(
                c, kinds, owner, possessives, negatable, sociable
            )
        if frame.kind == "dat":
            c.dative = self.object(c, kinds, owner, possessives * 0.7, negatable)
        elif frame.kind == "dit":
            negatable = negatable and not c.denies
            kin = (
                None
                if self.dice.chance(0.7)
                else self.owned(c.subject, ("kin",), c.verb)
            )
            c.dative = kin or self.object(c, ("person",), None, 0, negatable)
        elif frame.kind == "prep":
            own = owner and self.dice.chance(possessives * 0.7)
            phrase = self.owned(owner, kinds) if own else None
            phrase = phrase or self.phrase(self.noun(kinds))
            c.governed = self.prepositional(frame.preposition, phrase)
        elif frame.kind == "loc":
            c.place = self.place(kinds, owner)
        elif frame.kind in ("dir", "jump", "trip"):
            c.direction = self.direction(frame.kind, c.subject.head.is_a("person"))
        if frame.kind in CONSTRUCTIONS:
            self.note(CONSTRUCTIONS[frame.kind], context)

    # ---- optional parts

    def adverbials(self, c: Clause, frame, context: str, share: float) -> None:
        """Optional parts, each with some chance."""
        chance = self.dice.chance
        often = (
            "o" in frame.extras and c.tense in ("past", "present") and not c.question
        )
        if c.marker is None and not c.denies:
            if c.tense == "perfect":
                c.marker = self.adverb("already") if chance(0.2) else None
            elif often and chance(share * 0.5):
                adverbs = self.lexicon.used("adverb", "frequency")
                c.frequency = Adverb(self.dice.even(adverbs))
        manners = self.lexicon.used("adverb", *frame.extras)
        never = c.marked("never") or c.frequency or c.denies
        if manners and not never and chance(share * 0.7):
            c.manner = Adverb(self.dice.even(manners))
        if chance(max(share * 0.7, 0.4 if "r" in frame.extras else 0)):
            c.company = self.company(frame.extras, c.subject)
        if c.place is None and "p" in frame.extras and chance(share * 0.8):
            c.place = self.place(owner=c.owner)
        timeless = (
            c.frequency or c.at_event or "t" not in frame.extras or not TIMES[c.tense]
        )
        if not timeless and chance(share * 0.8) and not c.marked("never", "already"):
            c.time = self.time(c)
        if context in UNTENSED:
            c.frequency = None
        if context == "infinitive":
            c.time = None

    def modify_subject(self, c: Clause, context: str, share: float) -> None:
        """A place or relative clause after the subject; mostly where a possessive refers to it."""
        subject = c.subject
        if not isinstance(subject, Phrase) or subject.head.role in ("pronoun", "city"):
            return
        if (
            not self.dice.chance(0.85 if c.refers else share)
            or subject.head.role == "name"
        ):
            return
        if self.dice.chance(0.55):
            subject.relative = self.relative(subject, context)
        if subject.relative is None:
            kind = self.dice.choice(("by", "by", "in", "ground"))
            if subject.head.is_a("person", "animal", "vehicle"):
                subject.place = self.place((kind,), adverbs=False)
            elif subject.head.is_a("group", "building"):
                subject.place = self.place(("by",), adverbs=False)

    def modify_last(self, c: Clause, context: str, share: float) -> None:
        """A relative clause at the end, where nothing follows it that it could belong to."""
        objects = c.dative, c.accusative, c.governed, c.manner, c.direction
        parts = [
            part for part in (*objects, *c.circumstances, c.time) if part is not None
        ]
        phrase = phrase_of(parts[-1]) if parts else None
        if phrase is None or phrase.head.role != "noun" or phrase.owner:
            return
        modified = self.dice.chance(share * 0.6)
        if modified and phrase.has("the", "a", "many", "some", "all", "every"):
            phrase.relative = self.relative(phrase, context)

    # ---- relative clauses

    def relative(self, antecedent: Phrase, context: str) -> Relative | None:
        """A relative clause for a noun, or None."""
        if context.startswith("relative"):
            return None
        weights = WEIGHTS["relatives"].items()
        kind = self.dice.weighted(
            {k: weight for k, weight in weights if self.may(k, context)}
        )
        before = self.names.copy(), self.unseen.copy()
        gap = Gap(antecedent)
        clause = getattr(self, kind.replace("-", "_"))(gap, kind)
        if clause is None:
            self.names, self.unseen = before
            return None
        self.note(kind, context)
        return Relative(gap, clause)

    def relative_subject(self, gap: Gap, kind: str) -> Clause | None:
        """the man who slept, the room that was cold."""
        if self.dice.chance(0.25):
            gap.antecedent.adjectives = []  # not: the cold room that was cold
            return self.copula(kind, gap)
        return self.clause(kind, gap, extras=0.12, modify=0)

    def relative_object(self, gap: Gap, kind: str) -> Clause | None:
        """the book that the woman bought, the man whom the woman helped."""
        head = gap.head
        frames = [
            frame
            for frame in self.lexicon.frames_of("acc", "dat")
            if "person" in frame.subjects
            and head.is_a(*frame.objects)
            and not frame.verb.tail
        ]
        frames = [frame for frame in frames if self.allowed(frame.verb, head)]
        if not frames:
            return None
        frame = self.dice.even(frames)
        self.pair(frame.verb, head)
        role = "accusative" if frame.kind == "acc" else "dative"
        c = Clause(frame.verb, self.somebody(), **{role: gap})
        self.set_tense(c, kind, None)
        if "t" in frame.extras and TIMES[c.tense] and self.dice.chance(0.15):
            c.time = self.time(c)
        self.note_particle(c, kind)
        return c

    def relative_preposition(self, gap: Gap, kind: str) -> Clause | None:
        """the house in which the man slept, the man with whom the woman danced."""
        letter = "w" if gap.head.is_a("person") else "p"
        places = ("in", "ground", "at")
        places = ["on" if p == "ground" else p for p in places if gap.head.is_a(p)]
        if letter == "p" and not places:
            return None
        frames = [
            frame for frame in self.lexicon.frames_of("intr") if letter in frame.extras
        ]
        frame = self.dice.choice(
            [frame for frame in frames if "person" in frame.subjects]
        )
        self.dice.used[frame.number] += 1
        c = Clause(frame.verb, self.somebody())
        self.set_tense(c, kind, None)
        if letter == "w":
            company = self.lexicon.prepositions("person", "dat")
            preposition = self.dice.choice([p for p in company if p.base == "with"])
            c.company = Prepositional(preposition, gap)
        else:
            preposition = self.preposition(self.dice.choice(places), "dat")
            c.place = Prepositional(preposition, gap)
        self.note_particle(c, kind)
        return c

    def relative_possessive(self, gap: Gap, kind: str) -> Clause | None:
        """the man whose sister sang."""
        if not gap.head.is_a("person"):
            return None
        gap.owned = Phrase(self.noun(("kin", "pet")), self.dice.chance(0.2))
        if self.dice.chance(0.4):
            return self.copula(kind, gap)
        return self.clause(kind, gap, extras=0.1, modify=0, kinds=("acc", "intr"))

    # ---- to be and the passive

    def grade(self, c, head, compared):
        """Compare the adjective, give it a degree, or negate it, each with some chance."""
        if compared:
            self.compare(c.predicate, head)
        elif len(c.predicate.adjective.english) > 1 and self.dice.chance(0.3):
            c.predicate.degree = self.dice.choice(self.lexicon.used("adverb", "degree"))
        elif self.dice.chance(0.15) and self.sure(c.subject):
            c.marker = self.not_()

    def described(self):
        """Somebody or something that an adjective can be said of."""
        kinds = tuple(WEIGHTS["described"]["kinds"])
        person = self.dice.chance(0.4)
        return self.somebody() if person else self.phrase(self.noun(kinds))

    def copula(
        self,
        context: str,
        subject=None,
        tense=None,
        question=False,
        compare=0.0,
        modify=0.0,
    ) -> Clause | None:
        """to be with an adjective, perhaps compared."""
        self.definite = not self.dice.chance(0.1)
        subject = self.described() if subject is None else subject
        self.definite = False
        if isinstance(subject, Phrase):
            subject.adjectives = []
        head = subject.head
        compared = self.dice.chance(compare) and head.role != "pronoun"
        adjective = self.adjective(head, False if compared else None)
        if adjective is None or head.role == "noun" and not self.pair(adjective, head):
            return None
        c = Clause(self.lexicon.find("verb", "be"), subject, question=question)
        c.predicate = Predicate(adjective)
        c.tense = tense or ("past" if self.dice.chance(0.6) else "present")
        self.grade(c, head, compared)
        if modify:
            self.modify_subject(c, context, modify)
        self.note("copula", context)
        return c

    def compare(self, predicate: Predicate, head) -> None:
        """bigger than, as big as: something of the same kind."""
        kind = next(k for k in predicate.adjective.kinds if head.is_a(k))
        options = [noun for noun in self.nouns((kind,)) if noun is not head]
        if not options:
            return
        predicate.than = self.phrase(self.dice.even(options), plain=True)
        predicate.equal = self.dice.chance(0.35)
        self.note("comparison")

    def passive(self, context: str, tense=None, question=False, modify=0.0) -> Clause:
        """The book was read by the man."""
        odd = WEIGHTS["verbs"]["no-passive"]
        frames = [f for f in self.lexicon.frames_of("acc") if f.verb.base not in odd]
        frames = [f for f in frames if "person" in f.subjects and not f.verb.tail]
        frame = self.dice.even(frames)
        subject = self.phrase(self.noun(frame.objects, frame.verb))
        c = Clause(frame.verb, subject, question=question, passive=True)
        if tense == "present":
            tense = "modal" if self.may("modal", context) else "perfect"
        weights = dict(WEIGHTS["tenses-of-passives"])
        if context == "that":
            del weights["future"]  # not: gezeichnet werden werden
        self.set_tense(c, context, tense or self.dice.weighted(weights))
        if self.dice.chance(0.65):
            c.agent = Prepositional(BY, self.somebody(pronouns=0))
        elif "p" in frame.extras and self.dice.chance(0.5):
            c.place = self.place()
        if TIMES[c.tense] and self.dice.chance(0.35):
            c.time = self.time(c)
        if modify:
            self.modify_subject(c, context, modify)
        self.note("passive", context)
        self.note_particle(c, context)
        return c

    def any_clause(self, context: str, tense: str | None = None, subject=None, **more):
        """A clause of any sort for a place in a larger sentence."""
        roll = self.dice.random()
        if subject is None and self.dice.chance(0.16):
            return self.owning_clause(context, tense)
        passive = subject is None and tense != "future" and self.may("passive", context)
        if roll < 0.13 and passive:
            return self.passive(context, tense, modify=0.15)
        copula = tense in (None, "past", "present") and context not in (
            "before",
            "while",
        )
        if roll < 0.3 and copula:
            return self.copula(context, subject, tense, compare=0.1, modify=0.2)
        return self.clause(context, subject, tense, **more)
