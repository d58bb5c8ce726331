"""Figures of the four files, a word-for-word baseline, and sentences to read."""

from collections import Counter
from pathlib import Path

import pandas as pd

from transformer.core.scores import bleu
from transformer.corpora.bundled import Example, Pronoun, parse_example

from .corpus import SIZES, WORD, Corpus
from .lexicon import Lexicon
from .writing import Word, text_of


def read_examples(path: Path) -> list[Example]:
    """The lines of a corpus file."""
    return [
        parse_example(line) for line in path.read_text(encoding="utf8").splitlines()
    ]


def nearest(pronoun: Pronoun) -> int:
    """The baseline: the candidate that stands nearest before the possessive."""
    before = [place for place in pronoun.candidates if place < pronoun.index]
    return before[-1] if before else pronoun.candidates[0]


def needs(p, text: list[str]) -> dict:
    """What one possessive of a sentence needs."""
    return {
        "its": text[p.index] == "its",
        "candidates": len(p.candidates),
        "two": len(p.candidates) > 1,
        "words": p.index - p.antecedent,
        "nearest": nearest(p) == p.antecedent,
        "first": p.candidates[0] == p.antecedent,
        "chance": 1 / len(p.candidates),
    }


def figures(examples: list[Example]) -> dict:
    """Lengths of the sentences, and what their possessives need."""
    words = [WORD.findall(e.source) for e in examples]
    lengths = pd.Series(map(len, words))
    german = pd.Series(len(WORD.findall(e.target)) for e in examples)
    owning = pd.Series(bool(e.pronouns) for e in examples)
    quartiles = lengths.quantile([0, 0.25, 0.5, 0.75, 1], interpolation="higher")
    possessives = pd.DataFrame(
        [needs(p, text) for text, e in zip(words, examples) for p, _ in e.pronouns]
    )
    mean = possessives.mean()
    return {
        "English words, mean": f"{lengths.mean():.2f}",
        "shortest, quartiles, longest": " ".join(map(str, quartiles)),
        "over 15 words": f"{(lengths > 15).mean():.1%}",
        "German words, mean": f"{german.mean():.2f}",
        "sentences with a possessive": f"{owning.mean():.1%}",
        "possessives (of them its)": f"{len(possessives):,} ({possessives['its'].sum():,})",
        "candidates, mean": f"{mean['candidates']:.2f}",
        "two candidates or more": f"{mean['two']:.1%}",
        "words from antecedent to possessive, mean": f"{mean['words']:.1f}",
        "nearest noun before it is right": f"{mean['nearest']:.1%}",
        "first noun is right": f"{mean['first']:.1%}",
        "chance": f"{mean['chance']:.1%}",
    }


def lemma_counts(lexicon: Lexicon, examples: list[Example]) -> Counter:
    """{(class, English lemma): in how many places of the English side it occurs}."""
    text, counts = Counter(), Counter()
    for example in examples:
        words = [w.lower() for w in WORD.findall(example.source)]
        for n in (1, 2, 3):
            text.update(" ".join(words[i : i + n]) for i in range(len(words) - n + 1))
    for role, entries in lexicon.entries.items():
        for entry in entries:
            forms = {
                f"{form.removeprefix('more ')} {entry.tail}".strip().lower()
                for form in entry.english
            }
            counts[role, f"{entry.base} {entry.tail}".strip()] = sum(
                text[form] for form in forms
            )
    return counts


# ---- what is printed


def print_statistics(folder: Path) -> None:
    """The figures of data/README.md."""
    lexicon = Lexicon()
    corpus = {name: read_examples(folder / f"{name}.tsv") for name in SIZES}
    train = corpus["train"]
    sizes = {role: len(entries) for role, entries in lexicon.entries.items()}
    print("entries:", sum(sizes.values()), sizes)
    rarest = lemma_counts(lexicon, train).most_common()[:-9:-1]
    print(
        "rarest in train:",
        ", ".join(f"{lemma} ({role}) {n}" for (role, lemma), n in rarest),
    )
    for side in ("source", "target"):
        forms = Counter(
            w.lower() for e in train for w in WORD.findall(getattr(e, side))
        )
        rare = sum(count < 10 for count in forms.values())
        print(f"{side}: {len(forms)} word forms, {rare} of them fewer than ten times")
    table = pd.DataFrame({name: figures(examples) for name, examples in corpus.items()})
    print(f"\n{table.to_markdown(disable_numparse=True)}\n")
    names = Counter(name for example in train for name in example.constructions)
    shares = [
        f"{name} {100 * count / len(train):.1f}%" for name, count in names.most_common()
    ]
    print("constructions, share of the sentences in train:", ", ".join(shares))


def word_table(examples: list[Example]) -> dict[str, str]:
    """The German word most often aligned to each English word."""
    counts = {}
    for example in examples:
        english, german = WORD.findall(example.source), WORD.findall(example.target)
        for i, j in example.alignment:
            counts.setdefault(english[i].lower(), Counter())[german[j]] += 1
    return {
        w: min(c, key=lambda german: (-c[german], german)) for w, c in counts.items()
    }


def word_for_word(folder: Path, split: str = "test"):
    """BLEU of a word-for-word translation in English order."""
    table = word_table(read_examples(folder / "train.tsv"))
    examples = read_examples(folder / f"{split}.tsv")
    guesses = [
        text_of([Word(table.get(w.lower(), w), ()) for w in WORD.findall(e.source)])
        for e in examples
    ]
    return bleu(guesses, [e.target for e in examples])


def print_samples(number: int, seed: int) -> None:
    """Readable pairs, every English word with the German words it is aligned to."""
    corpus = Corpus(seed)
    for _ in range(number):
        example = corpus.plain()
        english, german = WORD.findall(example.source), WORD.findall(example.target)
        partners = {place: [] for place in range(len(english))}
        for i, j in sorted(example.alignment):
            partners[i].append(german[j])
        aligned = (f"{w}={'+'.join(partners[i]) or '-'}" for i, w in enumerate(english))
        print(f"{example.source}\n{example.target}\n   {'  '.join(aligned)}")
        for pronoun, _ in example.pronouns:
            nouns = ", ".join(english[place] for place in pronoun.candidates)
            print(
                f"   {english[pronoun.index]} -> {english[pronoun.antecedent]} (of {nouns})"
            )
        print(f"   {', '.join(example.constructions)}\n")
