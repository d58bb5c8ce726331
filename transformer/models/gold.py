"""What the bundled corpus's grammar knows about its words, to ask a trained model about (19).

Places are word indices, as in `Example`; words are those of `transformer.corpora.tokenizer.WORD`.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.core.files import data_folder
from transformer.corpora import Example, Pronoun
from transformer.corpora.bundled import partners
from transformer.corpora.tokenizer import WORD
from transformer.data import Batch, collate, encode_pairs, pad
from transformer.models.maps import words_and_groups

POSSESSIVES = {"its", "his", "her", "their", "my", "our", "your"}
ARTICLES = {"the", "a", "an", "this", "these", "every", "no"}
ENDINGS = [  # of sein and ihr in the nominative, accusative and dative
    {"m": "", "f": "e", "n": ""},
    {"m": "en", "f": "e", "n": ""},
    {"m": "em", "f": "er", "n": "em"},
]


def read_genders() -> dict[str, str]:
    """{English noun or name in the singular: the gender of its German noun, m, f or n}."""
    genders = {}
    for table in ("noun", "name"):
        with open(
            data_folder() / "lexicon" / "words" / f"{table}.tsv", encoding="utf8"
        ) as file:
            for row in csv.DictReader(file, delimiter="\t"):
                genders[row["english"].split(",")[0]] = row["gender"]
    return genders


def one_token_nouns(tokenizer, genders: str) -> list[str]:
    """The lexicon's English nouns with one of these German genders, one token long."""
    return [
        noun
        for noun, gender in read_genders().items()
        if gender in genders
        and noun.islower()
        and len(tokenizer.encode(f"In the {noun}"))
        == len(tokenizer.encode("In the")) + 1
    ]


def stem_for(gender: str) -> str:
    """The possessive that stands for a noun of this gender, without its ending."""
    return "ihr" if gender == "f" else "sein"


def stem_and_ending(word: str) -> tuple[str, str]:
    """("ihr", "en") of ihren; of a word that is neither sein nor ihr two empty ones."""
    found = re.fullmatch("(sein|ihr)(e|en|em|er|es|)", word)
    return (found[1], found[2]) if found else ("", "")


# Who belongs to whom


def references(examples: Sequence[Example]) -> list[tuple[int, Pronoun, Pronoun]]:
    """(index of the example, English `Pronoun`, German `Pronoun`) of every "its"."""
    return [
        (i, english, german)
        for i, example in enumerate(examples)
        for english, german in example.pronouns
        if WORD.findall(example.source)[english.index] == "its"
    ]


def owner_counts(examples: Sequence[Example]) -> Counter[str]:
    """{English noun: how often "its" refers to it}."""
    return Counter(
        WORD.findall(examples[i].source)[english.antecedent]
        for i, english, _ in references(examples)
    )


def owner_shares(examples: Sequence[Example]) -> dict[str, float]:
    """{English noun: in which part of the places where "its" might refer to it, it does}."""
    owners = owner_counts(examples)
    candidates: Counter[str] = Counter()
    for i, english, _ in references(examples):
        words = WORD.findall(examples[i].source)
        candidates.update(words[place] for place in english.candidates)
    return {word: owners[word] / count for word, count in candidates.items()}


def likeliest_owner(examples: Sequence[Example], shares: dict[str, float]) -> float:
    """How often the candidate with the largest share is the antecedent of "its"."""
    hits = []
    for i, english, _ in references(examples):
        words = WORD.findall(examples[i].source)
        own = [shares.get(words[place], 0.0) for place in english.candidates]
        hits.append(english.candidates[own.index(max(own))] == english.antecedent)
    return sum(hits) / len(hits)


def noun_after(example: Example, determiner: int) -> int | None:
    """The noun that an English determiner belongs to: German writes nouns with a capital."""
    german, links = WORD.findall(example.target), partners(example)
    for place in range(determiner + 1, len(WORD.findall(example.source))):
        if any(
            german[partner][0].isupper() for partner in links.get(place, []) if partner
        ):
            return place
    return None


def determiners(example: Example) -> list[tuple[int, int]]:
    """(determiner, its noun) of every English article and possessive that has one."""
    owned = {english.index for english, _ in example.pronouns}
    found = [
        (place, noun_after(example, place))
        for place, word in enumerate(WORD.findall(example.source))
        if word.lower() in ARTICLES | POSSESSIVES and (word != "her" or place in owned)
    ]
    return [(place, noun) for place, noun in found if noun is not None]


def word_classes(example: Example) -> list[str]:
    """The class of each German word: article, possessive, adjective, noun, or other."""
    english, german = WORD.findall(example.source), WORD.findall(example.target)
    links = partners(example)
    classes = [
        "noun" if t and word[0].isupper() and word != "Sie" else "other"
        for t, word in enumerate(german)
    ]
    for place, noun in determiners(example):
        mine = "possessive" if english[place].lower() in POSSESSIVES else "article"
        for between in range(place, noun):
            for t in links.get(between, []):
                classes[t] = mine if between == place else "adjective"
    return classes


# Turning "its" to another noun


@dataclass(frozen=True)
class Turn:
    """An "its", another noun that it can be made to look at, and the German step that writes it.

    gold is the right possessive, wanted the one that would be right if the noun were the one that
    decides; both in lower case.
    """

    example: Example
    its: int
    noun: int
    step: int
    gold: str
    wanted: str


def possessives(
    examples: Sequence[Example],
) -> Iterator[tuple[Example, Pronoun, int, str]]:
    """(example, English "its", place of its German word, that word in lower case)"""
    for i, english, german in references(examples):
        gold = WORD.findall(examples[i].target)[german.index].lower()
        yield examples[i], english, german.index, gold


def owner_turns(examples: Sequence[Example], genders: dict) -> list[Turn]:
    """To a noun that would need the other stem: *ihren* becomes *seinen*, or the reverse."""
    turns = []
    for example, english, step, gold in possessives(examples):
        words = WORD.findall(example.source)
        stem, ending = stem_and_ending(gold)
        other = "ihr" if stem == "sein" else "sein"
        rivals = [
            noun
            for noun in english.candidates
            if words[noun] in genders and stem_for(genders[words[noun]]) == other
        ]
        if rivals:
            turns.append(
                Turn(example, english.index, rivals[0], step, gold, other + ending)
            )
    return turns


def noun_turns(examples: Sequence[Example], genders: dict) -> list[Turn]:
    """To a noun that would need another ending: *ihren* becomes *ihre*, and so on."""
    turns = []
    for example, english, step, gold in possessives(examples):
        words = WORD.findall(example.source)
        stem, ending = stem_and_ending(gold)
        own = genders.get(words[noun_after(example, english.index)])
        cases = [case for case in ENDINGS if case.get(own) == ending]
        for noun in english.candidates:
            wanted = {
                stem + case[genders[words[noun]]]
                for case in cases
                if words[noun] in genders
            }
            if len(wanted) == 1 and gold not in wanted:
                turns.append(Turn(example, english.index, noun, step, gold, *wanted))
                break
    return turns


@dataclass(frozen=True)
class Turns:
    """Turns as tensors: rows (B,) are the tokens "its", columns (B, S) share out each noun's tokens
    evenly, steps (B,) are the decoder's rows that write the possessive."""

    batch: Batch
    rows: Tensor
    columns: Tensor
    steps: Tensor


def encode_turns(tokenizer, turns: Sequence[Turn]) -> Turns:
    """Turns ready for a model."""
    batch = collate(
        encode_pairs(tokenizer, [(t.example.source, t.example.target) for t in turns])
    )
    columns = torch.zeros(batch.source.shape)
    rows, steps = [], []
    for i, turn in enumerate(turns):
        source = words_and_groups(tokenizer, turn.example.source)[1]
        target = words_and_groups(tokenizer, turn.example.target)[1]
        rows.append(source.tolist().index(turn.its))
        steps.append(target.tolist().index(turn.step))
        columns[i, : len(source)] = (source == turn.noun) / (source == turn.noun).sum()
    return Turns(batch, torch.tensor(rows), columns, torch.tensor(steps))


@torch.no_grad()
def next_words(model, tokenizer, turns: Turns) -> list[str]:
    """What the model writes for each "its", in lower case, the German before it being given."""
    logits = model(turns.batch.source, turns.batch.decoder_input)
    best = logits[torch.arange(len(turns.steps)), turns.steps].argmax(dim=-1)
    return [tokenizer.decode([token]).strip().lower() for token in best.tolist()]


def parts_right(words: Sequence[str], turns: Sequence[Turn]) -> dict[str, float]:
    """The shares of words whose stem, and whose ending, is that of the right possessive."""
    written = [stem_and_ending(word) for word in words]
    gold = [stem_and_ending(turn.gold) for turn in turns]
    return {
        part: sum(a[i] == b[i] for a, b in zip(written, gold)) / len(gold)
        for i, part in enumerate(("stem", "ending"))
    }


def changed(
    turns: Sequence[Turn], before: Sequence[str], after: Sequence[str]
) -> list[tuple[str, str, str]]:
    """(the four German words up to the possessive, the word before, after), where these differ."""
    return [
        (" ".join(WORD.findall(turn.example.target)[: turn.step][-4:]), old, new)
        for turn, old, new in zip(turns, before, after)
        if old != new
    ]


def following(
    untouched: Sequence[str], wanted: Sequence[str], words: Sequence[str]
) -> tuple[int, int]:
    """Of the words that are wanted to change: how many are as wanted, and how many they are."""
    hits = [
        word == to for before, to, word in zip(untouched, wanted, words) if before != to
    ]
    return sum(hits), len(hits)


@torch.no_grad()
def right_words(
    model, tokenizer, examples: Sequence[Example]
) -> list[tuple[int, str, bool]]:
    """(index of the example, class, right?) of each German word; those before it are given."""
    batch = collate(encode_pairs(tokenizer, [(e.source, e.target) for e in examples]))
    right = model(batch.source, batch.decoder_input).argmax(dim=-1) == batch.gold
    found = []
    for i, example in enumerate(examples):
        groups = words_and_groups(tokenizer, example.target)[1]
        for place, name in enumerate(word_classes(example)):
            found.append(
                (i, name, right[i, : len(groups)][groups == place].all().item())
            )
    return found


# What a vector may hold


def properties(example: Example, genders: dict) -> Iterator[tuple[str, int, str | int]]:
    """(property, place of the English word whose vector may hold it, value)."""
    words = WORD.findall(example.source)
    nouns = dict(determiners(example))
    for place, word in enumerate(words):
        yield "word", place, word
        yield "place", place, place
        if word in genders:
            yield "noun: gender", place, genders[word]
        if word == "the" and place in nouns:
            noun = words[nouns[place]]
            yield "the: number of its noun", place, noun in genders
            if noun in genders:
                yield "the: gender of its noun", place, genders[noun]
    for _, english, _ in references([example]):
        owner, owned = words[english.antecedent], words[nouns[english.index]]
        if owner in genders:
            yield "its: gender of the owner", english.index, genders[owner]
            yield "its: which owner", english.index, owner
        if owned in genders:
            yield "its: gender of the owned", english.index, genders[owned]


def share(
    hits: Sequence, sentences: Sequence[int] | None = None
) -> tuple[float, float]:
    """The share of hits, and half the width of its 95% interval: 1.96 standard errors, or where all
    or none hit 3 / n (the rule of three).

    sentences: for each hit the number of its sentence, of which the sample consists; each hit has
    its own where not given.
    """
    found = torch.as_tensor(hits, dtype=torch.float64)
    places = (
        torch.arange(len(found)) if sentences is None else torch.as_tensor(sentences)
    )
    counts, sums = (
        torch.bincount(places).double(),
        torch.bincount(places, weights=found),
    )
    mean = sums.sum() / counts.sum()
    error = (sums - mean * counts).square().sum().sqrt() / counts.sum()
    return mean.item(), 1.96 * error.item() or 3 / counts.count_nonzero().item()


def labelled_vectors(
    layers: Callable,
    tokenizer,
    examples: Sequence[Example],
    genders: dict,
    size: int = 250,
) -> dict[str, tuple[Tensor, list, list]]:
    """{property: (vectors (N + 1, n, d_model), n values, the n words)} of all examples.

    layers(source ids (B, S)) -> (N + 1, B, S, d_model). A word's vector is that of its last token.
    """
    found: dict[str, list] = {}
    for start in range(0, len(examples), size):
        part = examples[start : start + size]
        ids = [
            [*ids, tokenizer.eos_id]
            for ids in tokenizer.encode_all([e.source for e in part])
        ]
        vectors = layers(pad(ids, 0))
        for i, example in enumerate(part):
            groups = words_and_groups(tokenizer, example.source)[1].tolist()
            last = {word: token for token, word in enumerate(groups)}
            words = WORD.findall(example.source)
            for name, place, value in properties(example, genders):
                entry = vectors[:, i, last[place]], value, words[place]
                found.setdefault(name, []).append(entry)
    return {
        name: (
            torch.stack([vector for vector, _, _ in entries], dim=1),
            [value for _, value, _ in entries],
            [word for *_, word in entries],
        )
        for name, entries in found.items()
    }


def relabelled(side: tuple[Tensor, list, list], values: dict, words: Sequence) -> tuple:
    """Of labelled vectors those of some words, each with the value that its word has in values."""
    vectors, _, own = side
    places = [i for i, word in enumerate(own) if word in words]
    return (
        vectors[:, places],
        [values[own[i]] for i in places],
        [own[i] for i in places],
    )


def made_up(values: dict, seed: int = 0) -> dict:
    """The same words, with their values dealt out anew."""
    generator = torch.Generator().manual_seed(seed)
    words = sorted(values)
    order = torch.randperm(len(words), generator=generator).tolist()
    return {word: values[words[i]] for word, i in zip(words, order)}


def probe_accuracy(probe: Callable, known: tuple, unseen: tuple) -> list[float]:
    """Shares of unseen values that come right: the most common one's, a probe's of each layer, and
    a probe's of the top layer that learned from shuffled values.

    probe(vectors (n, d), labels (n,), unseen vectors (m, d)) -> labels (m,).
    """
    number = {value: i for i, value in enumerate(dict.fromkeys(known[1]))}
    labels = torch.tensor([number[value] for value in known[1]])
    right = torch.tensor([number.get(value, -1) for value in unseen[1]])
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    guesses = [
        labels.mode().values,
        *(probe(x, labels, z) for x, z in zip(known[0], unseen[0])),
        probe(known[0][-1], labels[order], unseen[0][-1]),
    ]
    return [(guess == right).float().mean().item() for guess in guesses]
