"""The lines of the corpus: pairs drawn without repetition, and the four files."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from transformer.corpora.bundled import Example, Pronoun

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


def write_pair(sentence: Sentence, names: list[str]) -> Example:
    """A tree in both languages."""
    sides = English().sentence(sentence), German().sentence(sentence)
    pronouns = tuple(zip(*map(antecedents, sides)))
    return Example(*map(text_of, sides), align(*sides), pronouns, tuple(names))


def line_of(example: Example) -> str:
    """An example as a line of a file."""
    alignment = " ".join(f"{i}-{j}" for i, j in sorted(example.alignment))
    pronouns = " ".join("/".join(map(item, both)) for both in example.pronouns)
    names = ",".join(example.constructions)
    return "\t".join((example.source, example.target, alignment, pronouns, names))


def item(pronoun: Pronoun) -> str:
    candidates = ",".join(map(str, pronoun.candidates))
    return f"{pronoun.index}:{pronoun.antecedent}:{candidates}"


class Corpus:
    """Draws pairs without ever repeating an English or a German sentence."""

    def __init__(self, seed: int):
        self.sampler = Sampler(Lexicon(), seed)
        self.seen = set()

    def draw(self, mode: str, accept: Callable[[Example, int], bool]) -> Example:
        """The next new pair that `accept(pair, number of English words)` takes."""
        self.sampler.mode = mode
        while True:
            sentence = self.sampler.sentence()
            if sentence is None or mode == "unseen" and not self.sampler.unseen:
                continue
            pair = write_pair(sentence, self.sampler.names)
            if self.too_easy(pair) or not accept(pair, len(WORD.findall(pair.source))):
                continue
            both = {("en", pair.source), ("de", pair.target)}
            if self.seen.isdisjoint(both):
                self.seen |= both
                return pair

    def too_easy(self, pair: Example) -> bool:
        """Thin out what English already tells: possessives with a gender (his, her), and those
        whose only candidate, or whose first, is the antecedent."""
        chance = self.sampler.dice.chance
        if pair.pronouns and not re.search(r"\bits\b", pair.source) and chance(0.4):
            return True
        pronouns = [english for english, _ in pair.pronouns]
        if any(len(p.candidates) == 1 for p in pronouns):
            return chance(0.75)
        first = all(p.antecedent == p.candidates[0] for p in pronouns)
        return bool(pronouns) and first and chance(0.35)

    def plain(self) -> Example:
        """A pair for train, validation or test."""
        return self.draw("seen", lambda pair, n: 4 <= n <= LONGEST)

    def longer(self) -> Example:
        low, high = LONGER
        pair = self.draw("longer", lambda pair, n: low <= n <= high)
        return replace(pair, constructions=(*pair.constructions, "longer"))

    def unseen(self, kind: str) -> Example:
        """A held-out pair of lemmas, or of constructions, no longer than training."""
        pair = self.draw(
            "unseen", lambda pair, n: n <= LONGEST and kind in self.sampler.unseen
        )
        return replace(pair, constructions=(*pair.constructions, "unseen-combination"))

    def hard(self, size: int) -> Iterator[Example]:
        """The hard set: seven tenths unseen combinations, three tenths longer sentences."""
        longer = round(size * LONGER_SHARE)
        for i in range(size - longer):
            yield self.unseen("constructions" if i % 2 else "lemmas")
        for _ in range(longer):
            yield self.longer()


def splits(
    seed: int, train: int = SIZES["train"]
) -> Iterator[tuple[str, Iterator[Example]]]:
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
                file.write(line_of(pair) + "\n")
