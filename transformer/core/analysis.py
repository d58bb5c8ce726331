"""What tables of runs say (pandas): spread over seeds, differences between rows with their
intervals, and how they agree with the paper's.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np
import pandas as pd

from transformer.core.scores import bleu_of_counts


def spread(runs: pd.DataFrame, by: list[str] | str, figures: list[str]) -> pd.DataFrame:
    """Mean and standard deviation over seeds as text, "12.30 ± 0.20", for each group of runs; one
    run has no deviation.
    """
    groups = runs.groupby(by, sort=False)[figures]
    mean = groups.mean().round(
        6
    )  # a sum's last digit does not decide how 21.265 is rounded
    own = groups.std()
    text = mean.map("{:.2f}".format) + own.map(
        lambda s: "" if np.isnan(s) else f" ± {s:.2f}"
    )
    return text.where(mean.notna(), "-").assign(runs=groups.size())


def name_here(run: pd.Series) -> str:
    """A row's name in the paper, and after an arrow the size that it has here: "N=8 → 4"."""
    field, _, number = run["row"].partition("=")
    here = run.get(f"model.{field}")
    if not number.isdigit() or pd.isna(here) or int(here) == int(number):
        return run["row"]
    return f"{run['row']} → {int(here)}"


# Rows beside the rows that they are compared with


def learned(runs: pd.DataFrame, least: float = 10.0) -> pd.DataFrame:
    """The runs of rows whose mean BLEU is at least so much; the others do not translate, and tell
    nothing of what their change is worth. Where the use of the source was logged (nats a token),
    the mean of its last two values decides: at least 1 in all runs of a row.
    """
    if "log.use" in runs and runs["log.use"].notna().all():
        use = runs["log.use"].map(lambda values: sum(values[-2:]) / 2)
        return runs[use.groupby(runs["row"]).transform("min") >= 1]
    return runs[runs.groupby("row")["validation.bleu"].transform("mean") >= least]


def sentences_of(known: pd.DataFrame) -> pd.Series:
    """What tells on which sentences a row was trained."""
    columns = known.reindex(columns=["every", "longest", "drawn"])
    return columns.fillna(0).apply(tuple, axis=1)


def compare(
    runs: pd.DataFrame, rows: Iterable[str], split: str = "validation"
) -> pd.DataFrame:
    """Rows minus those they stand beside, in log perplexity (nats a token) and in BLEU.

    The noise is that of all runs, Holm's correction over these rows; see `beside`. Perplexities
    compare only with the same vocabulary, so between runs on the same sentences.
    """
    known = runs.groupby("row", sort=False).first()
    wanted = {
        row
        for row in known.index.intersection(list(rows))
        if known.loc[row, "beside"] in known.index
    }
    base = {
        row: known.loc[row, "beside"] if row in wanted else row for row in known.index
    }
    figures = {
        "log perplexity": np.log(runs[f"{split}.perplexity"]),
        "BLEU": runs[f"{split}.bleu"],
    }
    found = pd.concat(
        {
            name: beside(runs.assign(figure=values), "figure", base)
            for name, values in figures.items()
        },
        axis=1,
    )
    sentences = sentences_of(known)
    other = [row for row in found.index if sentences[row] != sentences[base[row]]]
    found.loc[other, "log perplexity"] = np.nan
    return found


def contrasts_of(X: np.ndarray, columns: list[tuple[int, int]]) -> np.ndarray:
    """A line for each pair of columns of a model: the first minus the second.

    ValueError where the model does not tell the two apart.
    """
    contrasts = np.zeros((len(columns), X.shape[1]))
    for contrast, pair in zip(contrasts, columns):
        contrast[[*pair]] = 1, -1
    if not np.allclose(contrasts @ np.linalg.pinv(X) @ X, contrasts):
        raise ValueError(
            "a row and its base must be connected by seeds that rows have in common"
        )
    return contrasts


def beside(
    runs: pd.DataFrame, figure: str, base: str | Mapping[str, str], level: float = 0.95
) -> pd.DataFrame:
    """Every "row" of runs minus row `base`, or the row that `base` maps it to, in a linear model:
    figure = row + seed + noise, the noise as large in all rows.

    "difference", "low" and "high" (of the interval), and "p" of Student's t after Holm's correction
    over the rows. ValueError where no run is left to tell the noise from, or where rows and their
    bases share no seeds.
    """
    from scipy import stats

    rows, seeds = pd.get_dummies(runs["row"]), pd.get_dummies(runs["seed"]).iloc[:, 1:]
    X, y = np.hstack([rows, seeds]).astype(float), runs[figure].to_numpy(float)
    effects, _, rank, _ = np.linalg.lstsq(X, y, rcond=None)
    left = len(y) - rank
    if left < 1:
        raise ValueError("a row needs a second seed before the noise is known")
    noise = ((y - X @ effects) ** 2).sum() / left
    names = list(runs["row"].unique())
    pairs = {row: base if isinstance(base, str) else base[row] for row in names}
    others = [row for row in names if row != pairs[row]]
    contrasts = contrasts_of(
        X, [rows.columns.get_indexer([row, pairs[row]]) for row in others]
    )
    difference = contrasts @ effects
    variance = noise * (contrasts @ np.linalg.pinv(X.T @ X) * contrasts).sum(axis=1)
    deviation = np.sqrt(variance)
    reach = stats.t.ppf((1 + level) / 2, left) * deviation
    p = 2 * stats.t.sf(np.abs(difference) / deviation, left)
    found = {"difference": difference, "low": difference - reach}
    found |= {"high": difference + reach, "p": holm(p)}
    return pd.DataFrame(found, index=others)


def holm(p: np.ndarray) -> np.ndarray:
    """p values after Holm's correction (1979) for as many comparisons."""
    order = np.argsort(p)
    corrected = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return corrected[np.argsort(order)]


# Multi30k with outputs kept short (data/runs/multi30k.md)

COUNTED = "test.bleu_tokenized_lowercased"  # as the literature counts


def by_limit(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of tight-multi30k.json with a line for each "limit", of 50 and of 10 tokens, and the
    scores within it.
    """
    tight = runs.filter(regex="^(row$|seed$|tight[.])").rename(
        columns=lambda name: name.removeprefix("tight.")
    )
    return pd.concat([runs.assign(limit="50"), tight.assign(limit="10")])


def limit_means(runs: pd.DataFrame) -> pd.DataFrame:
    """Scores of tight-multi30k.json over seeds, a line for each row and limit; the mean as the
    literature counts has an interval of 95%, by Student's t.
    """
    from scipy import stats

    by, both = ["row", "limit"], by_limit(runs)
    counted = both.groupby(by, sort=False)[COUNTED]
    reach = stats.t.ppf(0.975, counted.size() - 1) * counted.sem()
    scores = spread(both, by, ["validation.bleu", "test.bleu", COUNTED])
    return scores.assign(low=counted.mean() - reach, high=counted.mean() + reach)


def limit_differences(runs: pd.DataFrame) -> pd.DataFrame:
    """The tests planned for the seeds of tight-multi30k.json, of BLEU as the literature counts: the
    other row minus the recipe within 10 tokens, and 10 minus 50 in each row. Each is paired
    by seed, with its interval of 95%, and p is after Holm's correction over the three.
    """
    both = by_limit(runs)
    found = [beside(both[both["limit"] == "10"], COUNTED, "recipe")]
    for row, own in both.groupby("row", sort=False):
        shorter = beside(own.assign(row=own["limit"]), COUNTED, "50")
        found.append(shorter.set_axis([f"{row}, 10 - 50"]))
    together = pd.concat(found)
    return together.assign(p=holm(together["p"].to_numpy()))


# Beside the paper's Table 3


def minus(runs: pd.DataFrame, figure: str, base: str = "base") -> pd.Series:
    """Each row's mean over seeds minus that of row `base`."""
    means = runs.groupby("row", sort=False)[figure].mean()
    return (means - means[base]).drop(base)


def agreement(here: pd.Series, paper: pd.Series) -> dict[str, float]:
    """How differences from base agree with the paper's: "signs" that are the same, "of" those rows
    that differ in the paper, and Spearman's "rank" correlation.
    """
    both = pd.concat([here, paper], axis=1, join="inner").dropna()
    own, theirs = both.iloc[:, 0], both.iloc[:, 1]
    return {
        "signs": int((own * theirs > 0).sum()),
        "of": int((theirs != 0).sum()),
        "rank": float(both.rank().corr().iloc[0, 1]),
    }


def agreement_with_interval(
    runs: pd.DataFrame, figure: str, paper: pd.Series, draws: int = 2000
) -> pd.DataFrame:
    """`agreement`, and the 95% interval of draws in which each row draws as many of its runs as it
    has, with replacement.
    """
    chance = np.random.default_rng(2017)
    own = {row: values.to_numpy() for row, values in runs.groupby("row")[figure]}
    drawn = []
    for _ in range(draws):
        means = pd.Series(
            {row: chance.choice(x, len(x)).mean() for row, x in own.items()}
        )
        drawn.append(agreement((means - means["base"]).drop("base"), paper))
    low, high = pd.DataFrame(drawn).quantile([0.025, 0.975]).to_numpy()
    found = agreement(minus(runs, figure), paper)
    return pd.DataFrame(
        {"found": found, "low": dict(zip(found, low)), "high": dict(zip(found, high))}
    )


def by_chance(found: dict, paper: pd.Series, draws: int = 2000) -> dict[str, float]:
    """The shares of tables in random order, base's row among them, that agree with the paper's
    differences in at least as many signs, or as high a rank correlation, as an `agreement`."""
    chance = np.random.default_rng(2017)
    orders = [chance.permutation(len(paper) + 1) for _ in range(draws)]
    drawn = pd.DataFrame(
        [
            agreement(pd.Series(order[1:] - order[0], paper.index), paper)
            for order in orders
        ]
    )
    return {
        name: float((drawn[name] >= found[name]).mean()) for name in ("signs", "rank")
    }


def along(runs: pd.DataFrame, paper: pd.Series) -> pd.DataFrame:
    """The rank correlation of validation losses with the paper's order at each validation, a column
    a seed.
    """
    curves = {}
    for seed, own in runs.groupby("seed"):
        losses = pd.DataFrame(dict(zip(own["row"], own["log.validation_loss"])))
        losses.index = own["log.update"].iloc[0]
        curves[seed] = losses.apply(
            lambda row: row.rank().corr(paper[row.index].rank()), axis=1
        )
    return pd.DataFrame(curves)


# Two outputs of the same sentences, from their n-gram counts (`transformer.core.scores.ngram_counts`)


def counts_at(counts: dict, places: slice | list[int]) -> dict:
    """The counts of sentences at some places: a slice, or numbers."""
    return {
        name: np.asarray(column)[places].tolist() for name, column in counts.items()
    }


@lru_cache(maxsize=4)
def times_drawn(n: int, draws: int) -> np.ndarray:
    """How often each of n sentences is drawn (draws, n): always the same, as sacreBLEU draws."""
    places = np.random.default_rng(12345).choice(n, size=(draws, n), replace=True)
    return np.array([np.bincount(draw, minlength=n) for draw in places])


def drawn_bleu(counts: dict, draws: int = 1000) -> np.ndarray:
    """BLEU of as many sentences, drawn with replacement, once for each draw (draws,). The draws are
    the same for all outputs of as many sentences.
    """
    from sacrebleu.metrics import BLEU

    lengths = np.array(counts["output"])
    shared = [counts[str(length)] for length in range(1, 5)]
    possible = [(lengths - less).clip(0) for less in range(4)]
    columns = np.array([*shared, *possible, lengths, counts["reference"]])
    sums = (times_drawn(len(lengths), draws) @ columns.T).tolist()  # (draws, 10)
    scores = [
        BLEU.compute_bleu(
            drawn[:4], drawn[4:8], drawn[8], drawn[9], smooth_method="exp"
        ).score
        for drawn in sums
    ]
    return np.array(scores)


def paired_bootstrap(one: dict, other: dict, draws: int = 1000) -> dict[str, float]:
    """One output's BLEU minus another's, by drawing the sentences again: "difference", "low" and
    "high" (95%), and sacreBLEU's "p", with its seed.
    """
    difference = bleu_of_counts(one) - bleu_of_counts(other)
    again = drawn_bleu(one, draws) - drawn_bleu(other, draws)
    low, high = np.quantile(again, [0.025, 0.975])
    far = np.abs(again) - np.abs(again).mean() > abs(difference)
    return {
        "difference": difference,
        "low": float(low),
        "high": float(high),
        "p": float((far.sum() + 1) / (draws + 1)),
    }


# What a parser is scored with; what can write nothing but trees has one search
PARSED = {
    "greedy": ["greedy.f1"],
    "beam 4": ["beam 4.f1"],
    "malformed": ["beam 4.malformed", "CKY.malformed", "malformed"],
    "right number": ["beam 4.right_count"],
    "only trees": ["beam 4, only trees.f1", "CKY.f1", "f1"],
}


def parser_scores(runs: pd.DataFrame) -> pd.DataFrame:
    """Of each "parser" of parser.json: "seeds", and over these the mean F1 of its free outputs,
    "greedy" and with "beam 4", the shares of "malformed" ones in the beam and of those with the
    "right number" of words, and F1 of the search for "only trees"; missing where it has none.
    """
    found = []
    for row, some in runs.dropna(subset="minutes").groupby("row", sort=False):
        own = {"parser": row, "seeds": len(some)}
        for name, paths in PARSED.items():
            scored = some.filter([f"test.{path}" for path in paths]).mean().dropna()
            own[name] = scored.iloc[0] if len(scored) else np.nan
        found.append(own)
    return pd.DataFrame(found)
