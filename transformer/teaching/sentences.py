"""The tiny English and German of chapter 14: pairs, and what German means word by word.

Articles and adjectives change with gender and case, participles come last, and an adverb that ends
the English begins the German. "now" and "perhaps" have two German words each: a coin decides.
"""

import itertools
import random

NOUNS = {
    "man": "m Mann",
    "dog": "m Hund",
    "bird": "m Vogel",
    "woman": "f Frau",
    "cat": "f Katze",
    "cow": "f Kuh",
    "child": "n Kind",
    "horse": "n Pferd",
}
ADJECTIVES = {"old": "alt", "small": "klein", "young": "jung", "wild": "wild"}
VERBS = {
    "sees seen": "sieht gesehen",
    "feeds fed": "füttert gefüttert",
    "hears heard": "hört gehört",
    "finds found": "findet gefunden",
    "washes washed": "wäscht gewaschen",
    "paints painted": "malt gemalt",
}
ADVERBS = {
    "today": ["heute"],
    "here": ["hier"],
    "now": ["jetzt", "nun"],
    "perhaps": ["vielleicht", "womöglich"],
}


def phrase(noun: str, adjective: str | None, role: str) -> tuple[str, str]:
    """A noun with its article in both languages; role: "subject" or "object"."""
    gender, german = NOUNS[noun].split()
    den = gender == "m" and role == "object"
    article = "den" if den else {"m": "der", "f": "die", "n": "das"}[gender]
    if adjective is None:
        return f"the {noun}", f"{article} {german}"
    ending = "en" if den else "e"
    return (
        f"the {adjective} {noun}",
        f"{article} {ADJECTIVES[adjective]}{ending} {german}",
    )


def sentence(who, whom, verb: str, perfect: bool, adverb: str | None, wann: str | None):
    """(English, German) of phrases (English, German), a verb of `VERBS` and an adverb."""
    (does, done), (tut, getan) = verb.split(), VERBS[verb].split()
    english = [who[0], f"has {done}" if perfect else does, whom[0], adverb]
    verb_second = "hat" if perfect else tut
    start = [who[1], verb_second] if wann is None else [wann, verb_second, who[1]]
    german = [*start, whom[1], getan if perfect else None]
    return " ".join(filter(None, english)), " ".join(filter(None, german))


def sentence_pair(chance: random.Random) -> tuple[str, str]:
    """A random (English, German); half of them are in the perfect."""
    nouns = chance.sample(list(NOUNS), 2)
    adjectives = [chance.choice([*ADJECTIVES, None, None, None]) for _ in nouns]
    who = phrase(nouns[0], adjectives[0], "subject")
    whom = phrase(nouns[1], adjectives[1], "object")
    verb, perfect = chance.choice(list(VERBS)), chance.random() < 0.5
    adverb = chance.choice([*ADVERBS, None, None])
    wann = chance.choice(ADVERBS[adverb]) if adverb else None  # the coin
    return sentence(who, whom, verb, perfect, adverb, wann)


def sentence_pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """So many random pairs, no English twice; the same for the same seed."""
    chance = random.Random(seed)
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        english, german = sentence_pair(chance)
        pairs.setdefault(english, german)
    return list(pairs.items())


def meanings() -> dict[str, str]:
    """{German word: English word}, every form."""
    words = {"der": "the", "die": "the", "das": "the", "den": "the", "hat": "has"}
    words |= {german.split()[1]: english for english, german in NOUNS.items()}
    for english, stem in ADJECTIVES.items():
        words |= {f"{stem}e": english, f"{stem}en": english}
    for english, german in VERBS.items():
        words |= dict(zip(german.split(), english.split()))
    for english, several in ADVERBS.items():
        words |= dict.fromkeys(several, english)
    return words


def gloss(german: str) -> str:
    """German word by word in English: what somebody who knows none can read."""
    known = meanings()
    return " ".join(known.get(word, word) for word in german.split())


def all_german() -> set[str]:
    """Every German sentence that the grammar allows; somebody may do something to himself."""
    adjectives = [None, *ADJECTIVES]
    roles = [
        [phrase(noun, adjective, role) for noun in NOUNS for adjective in adjectives]
        for role in ("subject", "object")
    ]
    wanns = [None, *itertools.chain(*ADVERBS.values())]
    return {
        sentence(who, whom, verb, perfect, None, wann)[1]
        for who, whom in itertools.product(*roles)
        for verb in VERBS
        for perfect in (False, True)
        for wann in wanns
    }
