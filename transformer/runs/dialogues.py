"""Dialogues about the bundled corpus: what is asked, and the answers that its grammar knows.

Nothing here knows the model. A dialogue is a list of (question, answer).
"""

import random
from collections.abc import Iterator, Sequence

from transformer.corpora.bundled import Example, partners
from transformer.corpora.tokenizer import WORD

TRANSLATE = {
    "de": ("Translate into German: {}", "In German: {}"),
    "en": ("Translate into English: {}", "In English: {}"),
}
WORDS = ("Which word is {}?", "What is {}?")
PRONOUNS = ("Which word does {} mean?", "What does {} mean?")
PRONOUN_FIRST = "Which word does {} mean here? {}"
EXAMPLES = (
    TRANSLATE["de"][0].format("The cat lost its ball."),
    WORDS[0].format("Katze"),
    PRONOUNS[0].format("its"),
    TRANSLATE["en"][1].format("Das Mädchen schläft."),
    PRONOUN_FIRST.format("her", "The teacher near the dog has found her key."),
)
HELP = 'ask "{}", then "{}" or "{}"'.format(*EXAMPLES)


def sides(example: Example, into: str) -> tuple[str, str, dict[int, list[int]]]:
    """(sentence, its translation, the sentence's words of each word of the translation)."""
    found, both = partners(example, into), (example.source, example.target)
    return (*both, found) if into == "de" else (*both[::-1], found)


def word_questions(example: Example, into: str) -> list[tuple[str, str]]:
    """(word of the translation, its words in the sentence), where the word stands there once."""
    sentence, translation, links = sides(example, into)
    words, asked = WORD.findall(sentence), WORD.findall(translation)
    return [
        (asked[place], " ".join(words[i] for i in here))
        for place, here in links.items()
        if asked.count(asked[place]) == 1 and asked[place].isalpha()
    ]


def pronoun_questions(example: Example, language: str) -> list[tuple[str, str]]:
    """(possessive, the noun that it refers to) in one language, where it stands there once."""
    words = WORD.findall(example.source if language == "en" else example.target)
    pronouns = [both[language != "en"] for both in example.pronouns]
    return [
        (words[p.index], words[p.antecedent])
        for p in pronouns
        if words.count(words[p.index]) == 1
    ]


def asked(
    questions: Sequence[tuple[str, str]], forms: Sequence[str], chance: random.Random
) -> tuple[str, str]:
    """One of (word, answer), put as a question."""
    word, answer = chance.choice(questions)
    return chance.choice(forms).format(word), answer


def dialogue(
    example: Example, into: str, chance: random.Random
) -> list[tuple[str, str]]:
    """A translation, a question about a word of it, and about a possessive if there is one."""
    sentence, translation, _ = sides(example, into)
    turns = [(chance.choice(TRANSLATE[into]).format(sentence), translation)]
    words = word_questions(example, into)
    pronouns = [
        pair
        for language in ("en", "de")
        for pair in pronoun_questions(example, language)
    ]
    others = [
        asked(questions, forms, chance)
        for questions, forms in ((words, WORDS), (pronouns, PRONOUNS))
        if questions
    ]
    chance.shuffle(others)
    return [*turns, *others]


def dialogues(
    examples: Sequence[Example], seed: int
) -> Iterator[list[tuple[str, str]]]:
    """Both directions of every example, and where it has possessives a question about them."""
    chance = random.Random(seed)
    for example in examples:
        yield from (dialogue(example, into, chance) for into in ("de", "en"))
        for word, answer in pronoun_questions(example, "en"):
            yield [(PRONOUN_FIRST.format(word, example.source), answer)]


def encode_dialogue(
    tokenizer, turns: Sequence[tuple[str, str]]
) -> tuple[list[int], list[int]]:
    """(source, target) ids: the first question, and all that follows it, the marks included.

    A text ends with the end mark, and an answer begins with the begin mark.
    """
    source: list[int] = []
    target: list[int] = []
    for number, (question, answer) in enumerate(turns):
        text = [*tokenizer.encode(question), tokenizer.eos_id]
        said = [tokenizer.bos_id, *tokenizer.encode(answer), tokenizer.eos_id]
        source += text if number == 0 else []
        target += said if number == 0 else text + said
    return source, target
