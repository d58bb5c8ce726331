"""German: the finite verb second or last, the rest of it at the end, and the field between."""

from dataclasses import replace

from .trees import PERFECT, Gap, Phrase, phrase_of
from .writing import FORMS, THAT, Word, Writer, form_of, word

CASES = ("nom", "acc", "dat")
ENDINGS = FORMS["endings"]  # by kind, case and gender


class German(Writer):
    """Writes a tree in German."""

    language = "german"
    extraposes = True
    relative_order = "final"

    # ---- clauses

    def sentence(self, s):
        return tidy_commas(super().sentence(s))

    def has_comma(self, s):
        return True

    def order(self, s, conjunction):
        if conjunction and s.order != "coordinate":
            return "final"
        return "inverted" if s.order in ("fronted", "request") else "second"

    def clause(self, c, order="second"):
        """A clause with its finite verb second, first (inverted) or last (final)."""
        finite, particle, rest = self.verb(c)
        subject, reflexive = self.part(c.subject, "nom"), self.reflexive(c)
        field, tail = self.field(c), self.tail(c)
        if order == "final":
            return subject + reflexive + field + rest + joined(particle, finite) + tail
        if c.front or c.question or order == "inverted":
            front = self.part(c.front, c.case_of(c.front))
            both = subject + reflexive if is_pronoun(c.subject) else reflexive + subject
            start = front + finite + both
        else:
            start = subject + finite + reflexive
        return start + field + particle + rest + tail

    def reflexive(self, c):
        """mich, uns or sich, aligned to the verb."""
        if not c.verb.reflexive:
            return []
        text = {"ich": "mich", "wir": "uns"}.get(c.subject.head.german[0], "sich")
        return [word(text, c.link("verb"))]

    def field(self, c):
        """Between the two parts of the verb: pronouns, time, objects, negation, all the others."""
        pronouns, nouns = [], []
        for part in c.stay(c.dative, c.accusative):
            written = self.part(part, c.case_of(part), extrapose=True)
            (pronouns if is_pronoun(part) else nouns).extend(written)
        marker = self.part(c.marker)
        objects = marker + nouns if c.marked("already") else nouns + marker
        others = (
            c.company,
            c.manner,
            c.place,
            c.governed,
            c.direction,
            c.agent,
            c.predicate,
        )
        times = self.parts(c.stay(c.time, c.frequency))
        return pronouns + times + objects + self.parts(c.stay(*others))

    def tail(self, c):
        """After the last verb: than ..., relative clauses and the clause that the verb governs."""
        out = self.comparison(c.predicate)
        objects = c.stay(c.dative, c.accusative)
        others = c.governed, c.company, c.place, c.direction, c.agent
        for part in (*objects, *others):
            phrase = phrase_of(part)
            if phrase and phrase.relative:
                out += self.relative(phrase.relative)
        inner = c.complement
        if c.complement_kind == "that":
            that = self.say(THAT, inner.link("that"))
            out += [word(","), *that, *self.clause(inner, "final")]
        elif c.complement_kind == "infinitive":
            start = [word(","), *self.reflexive(inner)]
            out += start + self.field(inner) + self.zu(inner) + self.tail(inner)
        return out

    # ---- the verb

    def verb(self, c):
        """The finite verb, its separated particle, and the infinitive or participle."""
        name, finite, been = c.link("verb"), c.link("finite"), c.link("been")
        person = c.subject.person
        infinitive, *_, participle = c.verb.german
        if c.passive:
            rest = [word(participle, name)]
        else:
            rest = [word(c.verb.particle + infinitive, name, c.link("to"))]
        if c.tense in PERFECT:
            auxiliary = "sein" if c.passive else c.verb.auxiliary
            text = form_of(
                auxiliary, "past" if c.tense == "pluperfect" else "present", person
            )
            rest = [word(participle, name)] + [word("worden", been)] * c.passive
        elif c.tense in ("future", "modal"):
            modal = c.tense == "modal"
            text = (
                c.modal.german[person == "pl"]
                if modal
                else form_of("werden", "present", person)
            )
            rest += [word("werden", been)] * c.passive
        elif c.passive:
            text = form_of("werden", c.tense, person)
        else:
            particle = [word(c.verb.particle, name)] if c.verb.particle else []
            text = conjugate(c.verb, c.tense, person)
            return [word(text, name, finite)], particle, []
        return [word(text, finite)], [], rest

    def zu(self, c):
        """The infinitive with zu: zu lesen, anzurufen."""
        verb, to = c.link("verb"), c.link("to")
        infinitive = c.verb.german[0]
        if c.verb.particle:
            return [word(c.verb.particle + "zu" + infinitive, to, verb)]
        return [word("zu", to), word(infinitive, verb)]

    # ---- phrases

    def prepositional(self, part, extrapose):
        """A preposition and its phrase; in dem becomes im, except before a relative clause."""
        name, phrase = part.link("preposition"), part.phrase
        german = part.preposition.german[0]
        if german == "zu" and phrase.head.role == "city":
            german = "nach"
        first, *rest = self.phrase(phrase, part.preposition.case, extrapose)
        contracted = FORMS["contractions"].get(f"{german} {first.text}")
        if contracted and not phrase.relative:
            return [word(contracted, name, *first.links), *rest]
        return [word(german, name), first, *rest]

    def pronoun(self, head, case):
        return head.german[CASES.index(case)]

    def adjective(self, adjective, p, case):
        endings = p.determiner.endings if p.determiner else "strong"
        return adjective.stem + ENDINGS[endings][case][p.gender]

    def noun(self, p: Phrase, case):
        if not p.plural:
            return p.head.german[p.head.weak and case != "nom"]
        form = p.head.german[1]
        return form + "n" if case == "dat" and not form.endswith(("n", "s")) else form

    def determiner(self, p: Phrase, case, following):
        german, endings = p.determiner.german[0], p.determiner.endings
        if german == "der":
            return ENDINGS["der"][case][p.gender]
        if endings == "mixed":
            if p.has("its"):
                german = "ihr" if p.owner.gender == "f" else "sein"
            return german + ENDINGS["ein"][case][p.gender]
        if endings == "strong" or german == "alle":
            return german + "n" if case == "dat" and german.endswith("e") else german
        return german.removesuffix("er") + ENDINGS["dieser"][case][p.gender]

    # ---- relative clauses

    def relative(self, r):
        return [word(","), *super().relative(r), word(",")]

    def whose(self, gap):
        return "deren" if gap.antecedent.gender in ("f", "pl") else "dessen"

    def relative_pronoun(self, gap: Gap, case, governed) -> str:
        gender = gap.antecedent.gender
        return (
            "denen" if (case, gender) == ("dat", "pl") else ENDINGS["der"][case][gender]
        )


def is_pronoun(part) -> bool:
    return isinstance(part, Phrase) and part.head.role == "pronoun"


def conjugate(verb, tense: str, person: str) -> str:
    """A verb without an auxiliary."""
    infinitive, first, third, past, past_plural, _ = verb.german
    if infinitive == "sein":
        return form_of("sein", tense, person)
    present = {"1": first, "3": third, "pl": infinitive}
    if tense == "present":
        return present[person]
    return past_plural if person == "pl" else past


def joined(particle: list[Word], finite: list[Word]) -> list[Word]:
    """The particle written together with the verb, as at the end of a subordinate clause."""
    if not particle:
        return finite
    return [word(particle[0].text + finite[0].text, *finite[0].links)]


def tidy_commas(out: list[Word]) -> list[Word]:
    """One comma where two meet, none before the final mark."""
    tidy = []
    for w in out:
        if w.text in ",.?!" and tidy and tidy[-1].text == ",":
            before = tidy.pop()
            w = replace(w, links=w.links + before.links) if w.text == "," else w
        tidy.append(w)
    return tidy
