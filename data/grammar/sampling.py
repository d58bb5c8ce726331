"""Drawing whole sentences."""

from dataclasses import replace

from .clauses import Clauses
from .lexicon import Entry
from .phrases import WEIGHTS
from .trees import Asked, Clause, Phrase, Sentence, phrase_of

COMMENTS = WEIGHTS["comments"]


class Sampler(Clauses):
    """Draws sentences."""

    def sentence(self) -> Sentence | None:
        """One sentence, its constructions in `names`; None where the draw came to nothing."""
        self.start()
        kind = self.dice.weighted(WEIGHTS["kinds"])
        sentence = getattr(self, kind + "_sentence")()
        if any(clause is None for _, clause in sentence.clauses):
            return None
        self.note("subordinate" if kind in ("final", "fronted") else kind)
        return sentence

    # ---- one clause

    def simple_sentence(self):
        if self.dice.chance(0.38):
            c = self.owning_clause("main", None)
        else:
            c = self.clause("main", extras=0.32, modify=0.14)
        if c is not None:
            self.bring_forward(c)
        return Sentence([(None, c)])

    def bring_forward(self, c: Clause) -> None:
        """Sometimes an adverbial comes first, and in German the subject after the verb."""
        if not self.dice.chance(0.3):
            return
        options = [] if c.time is None else [c.time] * 3
        where = phrase_of(c.place)
        if where and not where.owner and not where.relative:
            options.append(c.place)
        if c.time is None and c.tense in COMMENTS:
            options.append(self.adverb(self.dice.choice(COMMENTS[c.tense])))
        if options:
            c.front = self.dice.choice(options)
            self.note("fronting")

    def copula_sentence(self):
        return Sentence([(None, self.copula("main", compare=0.5, modify=0.35))])

    def passive_sentence(self):
        c = self.passive("main", modify=0.3)
        if c is not None and c.time is not None:
            self.bring_forward(c)
        return Sentence([(None, c)])

    def request_sentence(self):
        """Please open the window."""
        you = Phrase(self.lexicon.find("pronoun", "you"))
        c = self.clause("request", you, extras=0.35, kinds=("acc", "dat", "dit", "dir"))
        usable = c is not None and not c.marker and not c.verb.reflexive
        return Sentence([(None, c if usable else None)], "request")

    # ---- a clause that a verb governs

    def infinitive_sentence(self):
        """The man tried to open the door."""
        frame = self.dice.even(self.lexicon.frames_of("zu"))
        subject = self.somebody(frame.subjects)
        tense = "past" if self.dice.chance(0.75) else "present"
        c = Clause(frame.verb, subject, tense)
        kinds = ("acc", "dat", "dit", "intr", "dir")
        inner = self.clause("infinitive", subject, kinds=kinds, extras=0.25)
        if inner is None:
            return Sentence([(None, None)])
        c.complement, c.complement_kind = inner, "infinitive"
        if inner.refers or self.dice.chance(0.3):
            objects = {"accusative": inner.accusative, "dative": inner.dative}
            self.modify_subject(replace(c, **objects), "main", 0.3)
        if c.verb.reflexive:
            self.note("reflexive")
        return Sentence([(None, c)])

    def that_sentence(self):
        """The man said that the woman had bought the book."""
        frame = self.dice.even(self.lexicon.frames_of("that"))
        tense = "past" if self.dice.chance(0.65) else "present"
        c = Clause(frame.verb, self.somebody(), tense)
        c.complement = self.any_clause(
            "that", "past" if tense == "past" else None, extras=0.22
        )
        c.complement_kind = "that"
        self.modify_subject(c, "main", 0.2)
        return Sentence([(None, c if c.complement else None)])

    # ---- two clauses

    def pair_of_clauses(self):
        """A main and a subordinate clause whose tenses agree."""
        conjunctions = [
            c for c in self.lexicon["conjunction"] if not c.is_a("coordinate")
        ]
        conjunction = self.dice.choice(conjunctions)
        tense, subordinate = self.dice.choice(WEIGHTS["agreement"][conjunction.base])
        temporal = conjunction.base in ("before", "after", "when", "while")
        context = "temporal" if temporal else "main"
        rates = {"extras": 0.12, "modify": 0.05, "possessives": 0.35}
        first = self.clause(context, tense=tense, **rates)
        again = self.again(first)
        second = self.any_clause(
            conjunction.base, subordinate, again, extras=0.12, modify=0.12
        )
        self.note(conjunction.base)
        return conjunction, first, second

    def again(self, first: Clause | None) -> Phrase | None:
        """Now and then the second clause speaks of the same person: he, she, they."""
        subject = first.subject if first else None
        if not isinstance(subject, Phrase) or not self.dice.chance(0.25):
            return None
        head = subject.head
        if head.role == "pronoun" or not head.is_a("person"):
            return None
        text = "they" if subject.plural else {"m": "he", "f": "she"}.get(head.gender)
        return Phrase(self.lexicon.find("pronoun", text)) if text else None

    def final_sentence(self):
        conjunction, first, second = self.pair_of_clauses()
        return Sentence([(None, first), (conjunction, second)], "final")

    def fronted_sentence(self):
        conjunction, first, second = self.pair_of_clauses()
        return Sentence([(conjunction, second), (None, first)], "fronted")

    def coordinate_sentence(self):
        conjunction = self.dice.choice(self.lexicon.used("conjunction", "coordinate"))
        tense = self.dice.weighted({"past": 6, "present": 2, "perfect": 1, "future": 1})
        first = self.clause(
            "main", tense=tense, extras=0.12, modify=0.05, possessives=0.3
        )
        second = self.any_clause("main", tense, extras=0.12, modify=0.12)
        return Sentence([(None, first), (conjunction, second)], "coordinate")

    # ---- questions

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
        kinds = ("who", "what", "whom", "where", "when", "why", "which", "which")
        kind = self.dice.choice(kinds)
        if kind == "who":
            who = Asked(self.lexicon.find("word", "who"))
            c = self.clause("wh", who, modify=0.3)
        elif kind in ("what", "whom", "which"):
            c = self.ask_object(kind)
        else:
            c = self.ask_adverb(kind)
        return Sentence([(None, c)], "question", "?")

    def ask_object(self, kind: str) -> Clause | None:
        kinds = ("acc",) if kind == "what" else ("acc", "dat")
        c = self.clause("wh", question=True, extras=0.25, possessives=0, kinds=kinds)
        if c is None or (c.marker and not c.marked("already")):
            return None
        phrase = c.accusative or c.dative
        if phrase.head.role != "noun" or phrase.has("no") or phrase.relative:
            return None
        if kind == "which":
            phrase.determiner = self.lexicon.find("determiner", "which")
            c.front = phrase
            return c
        if phrase.head.is_a("person") != (kind == "whom") or phrase.head.is_a("animal"):
            return None
        german = "wen" if c.accusative else "wem"
        asked = (
            Entry(("whom",), (german,))
            if kind == "whom"
            else self.lexicon.find("word", "what")
        )
        c.front = Asked(asked)
        c.accusative, c.dative = None, None
        return c

    def ask_adverb(self, kind: str) -> Clause | None:
        c = self.clause("wh", question=True, extras=0.2)
        if (
            c is None
            or c.marker
            or c.time
            and kind == "when"
            or c.place
            and kind == "where"
        ):
            return None
        frames = [frame for frame in self.lexicon.frames if frame.verb is c.verb]
        somewhere = any("p" in frame.extras for frame in frames)
        if kind == "where" and (c.direction or c.governed or not somewhere):
            return None
        c.front = Asked(self.lexicon.find("word", kind))
        return c
