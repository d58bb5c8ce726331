"""English: subject, verb, objects, manner, direction, company, place, time."""

import re

from .trees import PERFECT, Gap, Phrase
from .writing import THAT, Writer, form_of, word


class English(Writer):
    """Writes a tree in English."""

    language = "english"
    extraposes = False
    relative_order = "statement"

    # ---- clauses

    def has_comma(self, s):
        return s.order != "final"

    def order(self, s, conjunction):
        return "request" if s.order == "request" else "statement"

    def clause(self, c, form="statement"):
        first, rest = self.verb(c, form)
        front = self.part(c.front)
        subject = self.part(c.subject, "nom") if form == "statement" else []
        if c.question:
            return front + first + subject + rest + self.after_verb(c)
        if [w.text for w in first + rest[:1]] == ["can", "not"]:
            first, rest = [word("cannot", *first[0].links, *rest[0].links)], rest[1:]
        return front + subject + first + rest + self.after_verb(c)

    def after_verb(self, c):
        objects = c.stay(c.dative, c.accusative, c.predicate)
        where = c.stay(
            c.governed, c.manner, c.direction, *c.circumstances, c.agent, c.time
        )
        out = self.parts(objects + where)
        if c.complement_kind == "that":
            out += self.say(THAT, c.complement.link("that")) + self.clause(c.complement)
        elif c.complement_kind == "infinitive":
            to = word("to", c.complement.link("to"))
            out += [to, *self.clause(c.complement, "infinitive")]
        return out

    # ---- the verb

    def verb(self, c, form):
        """The auxiliary that questions move, and the rest of the verb with adverbs between them."""
        name = c.link("verb")
        base, third, past, participle = c.verb.english
        tail = [word(text, name) for text in c.verb.tail.split()]
        adverbs = self.parts(c.stay(c.marker, c.frequency))
        if form in ("request", "infinitive"):
            return [], [word(base, name), *tail]
        if base == "be":
            return [word(form_of("be", c.tense, c.subject.person), name)], adverbs
        auxiliaries = [word(text, c.link(role)) for text, role in self.auxiliaries(c)]
        if c.passive or c.tense in PERFECT:
            main = participle
        elif auxiliaries:
            main = base
        elif c.tense == "past":
            main = past
        else:
            main = third if c.subject.person == "3" else base
        return auxiliaries[:1], [*adverbs, *auxiliaries[1:], word(main, name), *tail]

    def auxiliaries(self, c):
        """(auxiliary, its role) before the verb: has been, will, wants to, did."""
        person = c.subject.person
        passive = (
            [("been" if c.tense in PERFECT else "be", "been")] if c.passive else []
        )
        if c.tense in PERFECT:
            have = form_of(
                "have", "past" if c.tense == "pluperfect" else "present", person
            )
            return [(have, "finite"), *passive]
        if c.tense == "future":
            return [("will", "finite"), *passive]
        if c.tense == "modal":
            modal, *to = c.modal.english[person == "3"].split()
            return [(modal, "finite"), *((text, "to") for text in to), *passive]
        if c.passive:
            return [(form_of("be", c.tense, person), "finite")]
        if c.question or c.marked("not"):
            return [(form_of("do", c.tense, person), "finite")]
        return []

    # ---- phrases

    def prepositional(self, part, extrapose):
        preposition = self.say(part.preposition, part.link("preposition"))
        return preposition + self.phrase(part.phrase, "acc")

    def predicate(self, p):
        return super().predicate(p) + self.comparison(p)

    def pronoun(self, head, case):
        return head.english[case != "nom"]

    def adjective(self, adjective, p, case):
        return adjective.base

    def noun(self, p, case):
        return p.head.english[p.plural]

    def determiner(self, p: Phrase, case, following):
        text = p.determiner.english[p.plural]
        return (
            "an" if text == "a" and re.match(r"[aeio]|hon|u(?!ni)", following) else text
        )

    def whose(self, gap):
        return "whose"

    def relative_pronoun(self, gap: Gap, case, governed) -> str:
        if gap.antecedent.head.is_a("person"):
            return "who" if case == "nom" else "whom"
        return "which" if governed else "that"
