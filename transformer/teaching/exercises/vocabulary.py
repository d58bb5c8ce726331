"""Exercises of notebook 90: a vocabulary of words, a word cut into pieces. None needs torchtext."""

from collections import Counter

from transformer.teaching.exercises import Exercise


def most_frequent(words: list[str], marks: list[str], size: int) -> list[str]:
    """torchtext's order: by frequency, then as `sorted` has them."""
    ordered = sorted(sorted(set(words)), key=Counter(words).get, reverse=True)
    return (marks + ordered)[:size]


check_most_frequent = Exercise(
    most_frequent,
    lambda: [
        ("the dog and the cat and a dog and".split(), ["<pad>", "<unk>"], 5),
        (list("banana"), [], 10),
        (list("zzyx"), ["<unk>"], 3),
    ],
    "count the words; size counts the marks, too; of words as frequent as each other the one that "
    "`sorted` puts first comes first",
)


def likeliest_pieces(word: str, log_p: dict[str, float]) -> list[str]:
    """Each first piece with the likeliest pieces of the rest."""
    ways = [
        [word[:i], *likeliest_pieces(word[i:], log_p)]
        for i in range(1, len(word) + 1)
        if word[:i] in log_p
    ]
    return max(ways, key=lambda pieces: sum(map(log_p.get, pieces)), default=[])


PIECES = {
    **dict.fromkeys("Hausdortr", -6.0),
    "H": -3.0,
    "s": -2.0,
    "Haus": -5.0,
    "Hau": -6.0,
    "or": -4.0,
    "dor": -7.0,
    "st": -3.0,
    "tor": -4.0,
    "stor": -9.0,
    "aus": -4.5,
    "to": -4.0,
    "Haustor": -12.0,
}

check_likeliest_pieces = Exercise(
    likeliest_pieces,
    lambda: [(word, PIECES) for word in ("Haus", "Haustor", "rosa", "Hausdorst", "to")],
    "the likeliest pieces of the first n letters are the likeliest of fewer letters, and one more "
    "piece; logarithms of probabilities are added",
)
