"""What chapter 14 needs beside its own run on the bundled corpus: what a German word of it means,
and the diary of a run that took four minutes.
"""

from collections import Counter, defaultdict
from functools import cache

from transformer.core.records import read_rows, under
from transformer.corpora.bundled import read_bundled
from transformer.corpora.tokenizer import WORD

# Words of phrases that are aligned as a whole: "sich beeilen", "was asleep"
PARTS = {"sich": "herself", "beeilen": "hurry", "schlief": "slept"}


@cache
def meanings() -> dict[str, str]:
    """{German word of the bundled corpus: the English word with which it is aligned most often}."""
    counts: dict[str, Counter] = defaultdict(Counter)
    for pair in read_bundled("train"):
        english, german = (
            WORD.findall(text.lower()) for text in (pair.source, pair.target)
        )
        for i, j in pair.alignment:
            counts[german[j]][english[i]] += 1
    return {word: seen.most_common(1)[0][0] for word, seen in counts.items()} | PARTS


def word_by_word(german: str) -> str:
    """A sentence with the meaning of each word; a word that the corpus lacks is in brackets."""
    known = meanings()
    words = [known.get(word.lower(), f"({word})") for word in WORD.findall(german)]
    return " ".join(word for word in words if any(map(str.isalpha, word)))


def four_minutes() -> list[dict]:
    """The validations of `python -m transformer.experiments.bundled_run`: rows with "update",
    "validation_loss", "strange_loss", and "translations", {English: German}.
    """
    [run] = read_rows("bundled-run")
    columns = under(run, "log")
    rows = [dict(zip(columns, figures)) for figures in zip(*columns.values())]
    for row in rows:
        row["translations"] = dict(zip(run["sentences"], row["translations"]))
    return rows
