"""Figures of the four files, a word-for-word baseline, and sentences to read."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .corpus import SIZES, WORD, Corpus, Pair, read_pairs
from .lexicon import Lexicon, base_form
from .writing import Word, text_of


def mean(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / max(1, len(values))


def share(values: Iterable[float]) -> str:
    """In percent, of truths or of probabilities."""
    return f"{100 * mean(values):.1f}%"


def nearest(pronoun: tuple) -> int:
    """The baseline: the candidate that stands nearest before the possessive."""
    position, _, candidates = pronoun
    before = [c for c in candidates if c < position]
    return before[-1] if before else candidates[0]


def figures(pairs: list[Pair]) -> dict:
    """Lengths of the sentences, and what their possessives need."""
    lengths = sorted(len(WORD.findall(p.english)) for p in pairs)
    n = len(lengths)
    quantiles = [lengths[min(n - 1, q * n // 4)] for q in range(5)]
    german = mean(len(WORD.findall(p.german)) for p in pairs)
    pronouns = [p for pair in pairs for p in pair.pronouns]
    its = [WORD.findall(pair.english)[p[0]] == "its" for pair in pairs for p in pair.pronouns]
    candidates = [len(p[2]) for p in pronouns]
    return {
        "sentences": n,
        "English words, mean": f"{mean(lengths):.2f}",
        "quantiles 0, 25, 50, 75, 100": " ".join(map(str, quantiles)),
        "over 15 words": share(length > 15 for length in lengths),
        "German words, mean": f"{german:.2f}",
        "sentences with a pronoun": share(bool(p.pronouns) for p in pairs),
        "pronouns": len(pronouns),
        "its": sum(its),
        "candidates, mean": f"{mean(candidates):.2f}",
        "two candidates or more": share(number > 1 for number in candidates),
        "words from antecedent to pronoun, mean": f"{mean(p[0] - p[1] for p in pronouns):.1f}",
        "nearest noun is right": share(nearest(p) == p[1] for p in pronouns),
        "first noun is right": share(p[2][0] == p[1] for p in pronouns),
        "chance": share(1 / number for number in candidates),
    }


# ---- lemmas


def forms_of(kind: str, entry) -> set[str]:
    """How a lemma is written in English."""
    if kind in ("noun", "name", "city"):
        return set(entry.english)
    if kind == "verb":
        more = ("am", "is", "are", "were") if entry.english[0] == "be" else ()
        return {f"{form} {entry.tail}".strip() for form in (*entry.english, *more)}
    if kind == "adjective":
        compared = entry.comparative.english.split() if entry.comparative else ()
        return {entry.english, *compared} - {"more"}
    if kind == "determiner":
        return {entry.english, entry.plural}
    if kind == "pronoun":
        return {entry.english[0], entry.english[0].lower()}
    return {entry.english, entry.english.replace("want ", "wants ")}


def lemma_counts(lexicon: Lexicon, pairs: list[Pair]) -> dict:
    """{(class, English lemma): in how many places of the English side it occurs}."""
    text = Counter()
    for pair in pairs:
        words = [w.lower() for w in WORD.findall(pair.english)]
        for n in (1, 2, 3):
            text.update(" ".join(words[i : i + n]) for i in range(len(words) - n + 1))
    counts = {}
    for kind, entries in lexicon.entries.items():
        for entry in entries:
            lemma = f"{base_form(entry)} {getattr(entry, 'tail', '')}".strip()
            counts[kind, lemma] = sum(text[form.lower()] for form in forms_of(kind, entry))
    return counts


# ---- what is printed


def print_statistics(folder: Path) -> None:
    lexicon = Lexicon()
    corpus = {name: read_pairs(folder / f"{name}.tsv") for name in SIZES}
    train = corpus["train"]
    sizes = {kind: len(entries) for kind, entries in lexicon.entries.items()}
    print("lemmas:", sum(sizes.values()), sizes)
    for name, pairs in corpus.items():
        print(f"\n{name}")
        for label, value in figures(pairs).items():
            print(f"  {label}: {value}")
    names = Counter(name for pair in train for name in pair.constructions)
    print("\nconstructions in train, share of sentences")
    for name, count in names.most_common():
        print(f"  {name}: {100 * count / len(train):.1f}%")
    for side in ("english", "german"):
        forms = Counter(w.lower() for pair in train for w in WORD.findall(getattr(pair, side)))
        rare = sum(count < 10 for count in forms.values())
        print(f"\n{side}: {len(forms)} word forms, {rare} of them fewer than ten times")
    rarest = sorted(lemma_counts(lexicon, train).items(), key=lambda item: item[1])[:8]
    rarest = [f"{lemma} ({kind}) {count}" for (kind, lemma), count in rarest]
    print("\nrarest lemmas in train:", ", ".join(rarest))


def word_table(pairs: list[Pair]) -> dict[str, str]:
    """The German word most often aligned to each English word."""
    counts = {}
    for pair in pairs:
        english, german = WORD.findall(pair.english), WORD.findall(pair.german)
        for i, j in pair.alignment:
            counts.setdefault(english[i].lower(), Counter())[german[j]] += 1
    return {w: min(c, key=lambda german: (-c[german], german)) for w, c in counts.items()}


def baseline(folder: Path, split: str = "test") -> tuple[float, str]:
    """BLEU of a word-for-word translation in English order, and sacreBLEU's signature."""
    from sacrebleu.metrics import BLEU

    table = word_table(read_pairs(folder / "train.tsv"))
    pairs = read_pairs(folder / f"{split}.tsv")
    guesses = []
    for pair in pairs:
        words = WORD.findall(pair.english)
        guesses.append(text_of([Word(table.get(w.lower(), w), ()) for w in words]))
    metric = BLEU()
    score = metric.corpus_score(guesses, [[pair.german for pair in pairs]])
    return score.score, str(metric.get_signature())


def print_samples(number: int, seed: int) -> None:
    """Readable pairs, every English word with the German words it is aligned to."""
    corpus = Corpus(seed)
    for _ in range(number):
        pair = corpus.plain()
        english, german = WORD.findall(pair.english), WORD.findall(pair.german)
        print(f"{pair.english}\n{pair.german}")
        partners = {place: [] for place in range(len(english))}
        for i, j in pair.alignment:
            partners[i].append(german[j])
        pairs = (f"{w}={'+'.join(partners[i]) or '-'}" for i, w in enumerate(english))
        print("   " + "  ".join(pairs))
        for position, antecedent, candidates in pair.pronouns:
            nouns = ", ".join(english[c] for c in candidates)
            print(f"   {english[position]} -> {english[antecedent]} (of {nouns})")
        print(f"   {', '.join(pair.constructions)}\n")
