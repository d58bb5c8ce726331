"""The lines of the corpus: pairs drawn without repetition, the four files, and reading them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from .english import English
from .german import German
from .lexicon import Lexicon
from .sampling import Sampler
from .trees import Sentence
from .writing import align, antecedents, text_of

SIZES = {"train": 20_000, "validation": 1_000, "test": 1_000, "hard": 1_000}
LONGEST = 20  # words of an English sentence in train, validation and test
LONGER = (21, 26)  # words of the longer sentences in hard
LONGER_SHARE = 0.3
WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Pair:
    """One line of the corpus."""

    english: str
    german: str
    alignment: tuple  # (English word, German word)
    pronouns: tuple  # English: (possessive, antecedent, candidates)
    german_pronouns: tuple
    constructions: tuple

    def line(self) -> str:
        alignment = " ".join(f"{i}-{j}" for i, j in self.alignment)
        both = zip(self.pronouns, self.german_pronouns)
        pronouns = " ".join(f"{item(english)}/{item(german)}" for english, german in both)
        names = ",".join(self.constructions)
        return "\t".join((self.english, self.german, alignment, pronouns, names))


def item(pronoun: tuple) -> str:
    position, antecedent, candidates = pronoun
    return f"{position}:{antecedent}:{','.join(map(str, candidates))}"


def parse_item(text: str) -> tuple:
    position, antecedent, candidates = text.split(":")
    return int(position), int(antecedent), tuple(map(int, candidates.split(",")))


def parse(line: str) -> Pair:
    english, german, alignment, pronouns, names = line.split("\t")
    links = tuple(tuple(map(int, pair.split("-"))) for pair in alignment.split())
    items = [text.split("/") for text in pronouns.split()]
    ours = tuple(parse_item(text) for text, _ in items)
    theirs = tuple(parse_item(text) for _, text in items)
    return Pair(english, german, links, ours, theirs, tuple(names.split(",")))


def write_pair(sentence: Sentence, names: list[str]) -> Pair:
    """A tree in both languages."""
    sides = English().sentence(sentence), German().sentence(sentence)
    texts, pronouns = map(text_of, sides), map(antecedents, sides)
    return Pair(*texts, align(*sides), *pronouns, tuple(names))


class Corpus:
    """Draws pairs without ever repeating an English or a German sentence."""

    def __init__(self, seed: int):
        self.sampler = Sampler(Lexicon(), seed)
        self.seen = set()

    def draw(self, mode: str, accept: Callable[[Pair, int], bool]) -> Pair:
        """The next new pair that `accept(pair, number of English words)` takes."""
        self.sampler.mode = mode
        while True:
            sentence = self.sampler.sentence()
            if sentence is None or mode == "unseen" and not self.sampler.unseen:
                continue
            pair = write_pair(sentence, self.sampler.names)
            if self.too_easy(pair) or not accept(pair, len(WORD.findall(pair.english))):
                continue
            both = {("en", pair.english), ("de", pair.german)}
            if self.seen.isdisjoint(both):
                self.seen |= both
                return pair

    def too_easy(self, pair: Pair) -> bool:
        """Thin out what English already tells: possessives with a gender (his, her), and those
        whose only candidate, or whose first, is the antecedent."""
        chance = self.sampler.dice.chance
        if pair.pronouns and not re.search(r"\bits\b", pair.english) and chance(0.4):
            return True
        if any(len(candidates) == 1 for _, _, candidates in pair.pronouns):
            return chance(0.75)
        first = all(owner == candidates[0] for _, owner, candidates in pair.pronouns)
        return bool(pair.pronouns) and first and chance(0.35)

    def plain(self) -> Pair:
        """A pair for train, validation or test."""
        return self.draw("seen", lambda pair, n: 4 <= n <= LONGEST)

    def longer(self) -> Pair:
        low, high = LONGER
        pair = self.draw("longer", lambda pair, n: low <= n <= high)
        return replace(pair, constructions=(*pair.constructions, "longer"))

    def unseen(self, kind: str) -> Pair:
        """A held-out pair of lemmas, or of constructions, no longer than training."""
        pair = self.draw("unseen", lambda pair, n: n <= LONGEST and kind in self.sampler.unseen)
        return replace(pair, constructions=(*pair.constructions, "unseen-combination"))

    def hard(self, size: int) -> Iterator[Pair]:
        """The hard set: seven tenths unseen combinations, three tenths longer sentences."""
        longer = round(size * LONGER_SHARE)
        for i in range(size - longer):
            yield self.unseen("constructions" if i % 2 else "lemmas")
        for _ in range(longer):
            yield self.longer()


def splits(seed: int, train: int = SIZES["train"]) -> Iterator[tuple[str, Iterator[Pair]]]:
    """(name, pairs) of the four files; train comes last: the others are the same for every size."""
    corpus = Corpus(seed)
    for name in ("validation", "test"):
        yield name, (corpus.plain() for _ in range(SIZES[name]))
    yield "hard", corpus.hard(SIZES["hard"])
    yield "train", (corpus.plain() for _ in range(train))


def write_corpus(folder: Path, seed: int, size: int = SIZES["train"]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in splits(seed, size):
        with open(folder / f"{name}.tsv", "w", encoding="utf8", newline="\n") as file:
            for pair in pairs:
                file.write(pair.line() + "\n")


def read_pairs(path: Path) -> list[Pair]:
    """The lines of a corpus file as `Pair`s."""
    return [parse(line) for line in path.read_text(encoding="utf8").splitlines()]
