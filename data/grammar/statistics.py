"""Figures of the four files, a word-for-word baseline, and sentences to read."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .corpus import SIZES, WORD, Corpus, Pair, read_pairs
from .lexicon import Lexicon, base_form
from .writing import Word, text_of


def share(hits: float, total: int) -> str:
    return f"{100 * hits / max(1, total):.1f}%"


def nearest(pronoun: tuple) -> int:
    """The baseline: the candidate that stands nearest before the possessive."""
    position, _, candidates = pronoun
    before = [c for c in candidates if c < position]
    return before[-1] if before else candidates[0]


def length_figures(pairs: list[Pair]) -> dict:
    lengths = sorted(len(WORD.findall(p.english)) for p in pairs)
    n = len(lengths)
    quantiles = [lengths[min(n - 1, q * n // 4)] for q in range(5)]
    german = sum(len(WORD.findall(p.german)) for p in pairs)
    return {
        "sentences": n,
        "English words, mean": f"{sum(lengths) / n:.2f}",
        "quantiles 0, 25, 50, 75, 100": " ".join(map(str, quantiles)),
        "over 15 words": share(sum(length > 15 for length in lengths), n),
        "German words, mean": f"{german / n:.2f}",
    }


def pronoun_figures(pairs: list[Pair]) -> dict:
    places = [(WORD.findall(pair.english), p) for pair in pairs for p in pair.pronouns]
    pronouns = [p for _, p in places]
    n = len(pronouns)
    distance = sum(position - antecedent for position, antecedent, _ in pronouns)
    candidates = sum(len(p[2]) for p in pronouns)
    return {
        "sentences with a pronoun": share(sum(bool(p.pronouns) for p in pairs), len(pairs)),
        "pronouns": n,
        "its": sum(words[position] == "its" for words, (position, _, _) in places),
        "candidates, mean": f"{candidates / max(1, n):.2f}",
        "two candidates or more": share(sum(len(p[2]) > 1 for p in pronouns), n),
        "words from antecedent to pronoun, mean": f"{distance / max(1, n):.1f}",
        "nearest noun is right": share(sum(nearest(p) == p[1] for p in pronouns), n),
        "first noun is right": share(sum(p[2][0] == p[1] for p in pronouns), n),
        "chance": share(sum(1 / len(p[2]) for p in pronouns), n),
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


def lemma_forms(lexicon: Lexicon) -> Iterator[tuple[str, str, set[str]]]:
    """(class, English lemma, its written forms) for every entry."""
    for kind, entries in lexicon.entries.items():
        for entry in entries:
            lemma = f"{base_form(entry)} {getattr(entry, 'tail', '')}".strip()
            yield kind, lemma, forms_of(kind, entry)


def lemma_counts(lexicon: Lexicon, pairs: list[Pair]) -> dict:
    """In how many places of the English side each lemma occurs."""
    text = Counter()
    for pair in pairs:
        words = [w.lower() for w in WORD.findall(pair.english)]
        for n in (1, 2, 3):
            text.update(" ".join(words[i : i + n]) for i in range(len(words) - n + 1))
    return {
        (kind, lemma): sum(text[form.lower()] for form in forms)
        for kind, lemma, forms in lemma_forms(lexicon)
    }


# ---- what is printed


def print_statistics(folder: Path) -> None:
    lexicon = Lexicon()
    corpus = {name: read_pairs(folder / f"{name}.tsv") for name in SIZES}
    train = corpus["train"]
    sizes = {kind: len(entries) for kind, entries in lexicon.entries.items()}
    print("lemmas:", sum(sizes.values()), sizes)
    for name, pairs in corpus.items():
        print(f"\n{name}")
        for label, value in {**length_figures(pairs), **pronoun_figures(pairs)}.items():
            print(f"  {label}: {value}")
    names = Counter(name for pair in train for name in pair.constructions)
    print("\nconstructions in train, share of sentences")
    for name, count in names.most_common():
        print(f"  {name}: {share(count, len(train))}")
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
