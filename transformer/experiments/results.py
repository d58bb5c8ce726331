"""RESULTS.md, written from data/runs: python -m transformer.experiments.results (make results).

What the page says, and which columns its tables have, stands in results.toml.
"""

import tomllib
from pathlib import Path
from string import Formatter

import numpy as np
import pandas as pd

from transformer.core.analysis import (
    beside,
    compare,
    learned,
    limit_differences,
    limit_means,
    parser_scores,
    spread,
)
from transformer.core.files import write_file
from transformer.core.records import read_rows, table
from transformer.experiments.choosing import best_rates
from transformer.experiments.images import chosen as chosen_settings
from transformer.experiments.runner import run_command
from transformer.models.pretrained import bundled_folder
from transformer.variations import TABLE_3

PAGE = Path(__file__).with_suffix(".toml")


# Rows that are computed from several records; each function is a "query" of results.toml


def grammar_models() -> pd.DataFrame:
    """The demo, the bundled model, and each word by itself."""
    return pd.concat(
        [
            table("demo").assign(model="demo"),
            table("card", folder=bundled_folder()).assign(model="bundled model"),
            table("word-for-word").assign(model="each word by itself, no model"),
        ]
    )


def of_card(model: str, column: str, prefixes: dict[str, str]) -> pd.DataFrame:
    """The card of a bundled model, a row for each name in prefixes, {name: its figures' prefix}."""
    card = table("card", folder=bundled_folder(model))
    return pd.concat(
        [
            card.set_axis(card.columns.str.removeprefix(prefix), axis=1).assign(
                **{column: name}
            )
            for name, prefix in prefixes.items()
        ]
    )


def chat() -> pd.DataFrame:
    """The bundled bot: a row a direction."""
    return of_card("chat", "language", {"German": "test.de.", "English": "test.en."})


def everyday() -> pd.DataFrame:
    """The bundled model of everyday sentences: a row a test set."""
    return of_card(
        "tatoeba", "corpus", {"Tatoeba": "test.", "newstest2014": "newstest2014."}
    )


def decoders() -> pd.DataFrame:
    """One stack or two: a row a family, with the rate that validation chose."""
    rows = table("decoders")
    best = best_rates(read_rows("decoders"), lambda row: row["validation.bleu"])
    rows = rows[rows["rate"] == rows["family"].map(best)]
    scores = spread(rows, "family", ["test.bleu", "test.exact_match", "longer.bleu"])
    cost = rows.groupby("family", sort=False)[["parameters", "rate"]].mean()
    return scores.join(cost).reset_index()


def evolution() -> pd.DataFrame:
    """Searches for an architecture: the winner's price with new seeds is a mean."""
    rows = table("evolution").sort_values(["search", "seed"])
    return rows.assign(again=rows["test.price"].map(np.mean))


def digits() -> pd.DataFrame:
    """Accuracy in percent by training images, n32 to n1029: a row a family, with the settings that
    validation chose.
    """
    rows = pd.DataFrame(read_rows("images")).query("what == 'curve'")
    best = chosen_settings(rows.to_dict("records"), rows["seed"].min())
    own = [
        row
        for row in rows.to_dict("records")
        if row["rate"] == best[row["family"]][row["images"]]
    ]
    runs = pd.DataFrame(own).assign(
        name=lambda found: [f"n{n:.0f}" for n in found["images"]],
        percent=lambda found: 100 * found["test"],
    )
    scores = spread(runs, ["family", "name"], ["percent"])["percent"].unstack()
    own = runs.groupby("family", sort=False).agg(
        parameters=("parameters", "max"), seeds=("seed", "nunique")
    )
    return own.join(scores).reset_index()


def shuffled_digits() -> pd.DataFrame:
    """All training images, as they are and with their pixels mixed: a row a family."""
    rows = table("images").query("what == 'shuffle'")
    rows = rows.assign(
        percent=100 * rows["test"], order=np.where(rows["mixed"], "mixed", "plain")
    )
    scores = spread(rows, ["family", "order"], ["percent"])["percent"].unstack()
    return scores.loc[rows["family"].unique()].reset_index()


def drawings() -> pd.DataFrame:
    """What the CNN reads: a row a kind of drawing, over seeds."""
    rows = table("images").query("what == 'drawing'")
    rows = rows.assign(percent=100 * rows["read"], copied=100 * rows["copies"])
    return spread(rows, "row", ["percent", "copied", "distance", "bits"]).reset_index()


def families() -> pd.DataFrame:
    """Table 2 in small: a row a corpus and family, over seeds, and its differences from the
    Transformer on the harder set, or on test where there is none; "paper.": with its alpha.
    """
    by, rows = ["corpus", "family"], table("table2-*")
    judged = ["bleu.difference", "bleu.low", "bleu.high", "bleu.p"]
    parts = ["part.test", "part.hard.combinations", "part.hard.longer"]
    runs = rows.query("what == 'run'")
    scores = spread(runs, by, parts)
    own = ["parameters", "rate", "training.warmup", "test.alpha", "flops"]
    found = [
        rows[rows["part"].isin(names)].groupby(by)[judged].last()
        for names in (("test", "hard"), ("test at 0.6", "hard at 0.6"))
    ]
    found[1] = found[1].add_prefix("paper.")
    return scores.join([runs.groupby(by, sort=False)[own].mean(), *found]).reset_index()


def captions() -> pd.DataFrame:
    """Multi30k's recipe and its changes over seeds, minus the recipe on validation, on test, and
    there with the paper's alpha.
    """
    runs = table("multi30k")
    scores = spread(
        runs, "row", ["validation.bleu", "test.bleu", "test.bleu_tokenized_lowercased"]
    )
    judged = {
        "validation": "validation.bleu",
        "test": "test.bleu",
        "paper": "test.by_alpha.0.6",
        "usual": "test.by_alpha.1.6",
    }
    found = [
        beside(runs, figure, "recipe").add_prefix(f"{name}.")
        for name, figure in judged.items()
    ]
    updates = runs.groupby("row")["updates"].agg(fewest="min", most="max")
    return scores.join([updates, *found]).reset_index()


def within_limits() -> pd.DataFrame:
    """More seeds of Multi30k's recipe and of the best recipe, within each limit."""
    return limit_means(table("tight-multi30k")).reset_index()


def limits_compared() -> pd.DataFrame:
    """The tests planned for them."""
    return (
        limit_differences(table("tight-multi30k"))
        .rename_axis("difference of")
        .reset_index()
    )


def variations() -> pd.DataFrame:
    """Table 3: every row over seeds, and its differences from the row that it stands beside."""
    found, base = [], TABLE_3[0].bleu
    paper = {row.name: row.bleu - base for row in TABLE_3[1:]}
    runs = table("variations*", "table3").query("`validation.bleu`.notna()")
    for file, own in runs.groupby("file", sort=False):
        split = (
            "test" if file == "table3" else "validation"
        )  # as data/runs/table3.md has it
        rows = own.groupby("row", sort=False)[["file", "corpus", "beside"]].first()
        scores = spread(own, "row", [f"{split}.perplexity", f"{split}.bleu"])
        scores.columns = ["perplexity", "bleu", "runs"]
        found.append(rows.join([scores, differences_in_words(learned(own), split)]))
    rows = pd.concat(found).reset_index()
    alone = rows["row"] == rows["beside"]
    return rows.assign(paper=rows["row"].map(paper), beside=rows["beside"].mask(alone))


def differences_in_words(runs: pd.DataFrame, split: str) -> pd.DataFrame:
    """ "+0.51 (+0.20 to +0.82), p 0.02" for every row and figure, those of Table 3 by themselves;
    nothing where too few rows have two seeds.
    """
    if len(runs) < runs["row"].nunique() + runs["seed"].nunique():
        return pd.DataFrame(columns=["log perplexity", "BLEU"])
    own = runs["row"].isin({row.name for row in TABLE_3})
    found = pd.concat(
        [
            compare(judged, some["row"].unique(), split)
            for judged, some in ((runs[own], runs[own]), (runs, runs[~own]))
        ]
    )
    form = "{:+.2f} ({:+.2f} to {:+.2f}), p {:.2g}"
    names = ["difference", "low", "high", "p"]
    digits = dict.fromkeys(names[:3], 6)  # the last ones differ between machines
    return pd.DataFrame(
        {
            figure: found[figure][names]
            .dropna()
            .round(digits)
            .apply(lambda row: form.format(*row), axis=1)
            for figure in ("log perplexity", "BLEU")
        }
    )


def starts() -> pd.DataFrame:
    """Trainings that use their source, and that do not: a row a setting, over seeds."""
    rows, by = table("starting"), ["centre", "row"]
    runs = rows.query("what == 'run'").groupby(by, sort=False)
    found = runs[["use", "use_at_loss"]].mean().assign(runs=runs.size())
    columns = ["use.difference", "use.low", "use.high", "use.p", "verdict"]
    judged = rows.query("what == 'difference'").set_index(by)[columns]
    started = runs["started"].sum().astype(int)
    return found.assign(started=started).join(judged).reset_index()


def parses() -> pd.DataFrame:
    """The parser's scores, by the way in which an output is chosen."""
    run = table("parser-*", "gpu-parser*").iloc[:1]
    run = run.assign(millions=run["parameters"] / 1e6)
    ways = {
        "fewest repairs of the beam": "test.",
        "likeliest output": "test.likeliest.",
    }
    return pd.concat(
        [
            run.set_axis(run.columns.str.removeprefix(prefix), axis=1).assign(way=way)
            for way, prefix in ways.items()
        ]
    )


def parses_by_length() -> pd.DataFrame:
    """The parser's F1 by the number of words."""
    figures = (
        table("parser-*", "gpu-parser*").iloc[:1].filter(like="test.by_length.").T[0]
    )
    parts = figures.index.str.removeprefix("test.by_length.").str.rsplit(
        ".", n=1, expand=True
    )
    return figures.set_axis(parts).unstack().rename_axis("words").reset_index()


def parsers() -> pd.DataFrame:
    """Baselines and parsers of parser.json."""
    return parser_scores(table("parser"))


def exponents() -> pd.DataFrame:
    """The exponent of n in the seconds of every layer."""
    layers = (
        table("complexity").query("n >= 1024").groupby(["layer", "mode"], sort=False)
    )

    def slope(part):
        return np.polyfit(np.log(part["n"]), np.log(part["seconds"]), 1)[0]

    return layers[["n", "seconds"]].apply(slope).unstack().reset_index()


def speeds() -> pd.DataFrame:
    """Tokens a second of every work, and how many times those of each peer, both at their best."""
    rows, found = table("bench", "gpu-bench*").fillna({"kind": ""}), []
    timed = rows.query("tokens_per_second.notna() and system.notna()")
    for (part, kind), own in timed.groupby(["part", "kind"], sort=False):
        best = own.loc[own.groupby("system")["tokens_per_second"].idxmax()].set_index(
            "system"
        )
        over = {
            peer: best.loc["fast", f"over_{peer}_{best.loc[peer, 'matmul']}"]
            for peer in ("torch", "marian", "ctranslate2")
            if peer in best.index
        }
        found.append(
            {
                "work": f"{part} {kind}".strip(),
                "hardware": rows["hardware"][0],
                "tokens": best.loc["fast", "tokens_per_second"],
                **over,
            }
        )
    return pd.DataFrame(found)


def files() -> pd.DataFrame:
    """Where every figure comes from."""
    return (
        table()
        .groupby(["file", "command"], as_index=False, sort=False)
        .agg(
            hardware=("hardware", "first"),
            commit=("commit", lambda own: ", ".join(sorted(set(own)))),
        )
    )


# The page


class Columns(Formatter):
    """`str.format` for names with dots and blanks, such as "{test.bleu:.2f}"."""

    def get_field(self, name, names, row):
        return row[name], name


def fill(text: str, row: dict) -> str:
    """A text with figures of a row in place of their names; a dash where one is missing."""
    names = [name for _, name, _, _ in Formatter().parse(text) if name]
    missing = any(pd.isna(row.get(name)) for name in names)
    return "-" if missing else Columns().vformat(text, (), row)


def rows_of(description: dict) -> list[pd.DataFrame]:
    """The rows of a table of results.toml, or of the several into which it is split."""
    if "query" in description:
        rows = globals()[description["query"]]()
    else:
        rows = table(*description["files"])
    if "where" in description:
        rows = rows.query(description["where"])
    by = description.get("split_by")
    return [own for _, own in rows.groupby(by, sort=False)] if by else [rows]


def in_words(rows: pd.DataFrame, columns: dict[str, str]) -> str:
    """Rows as a table in Markdown."""
    records = rows.to_dict("records")
    cells = {
        fill(heading, records[0]): [fill(cell, row) for row in records]
        for heading, cell in columns.items()
    }
    return pd.DataFrame(cells).to_markdown(index=False, disable_numparse=True)


def results() -> str:
    """The whole page."""
    page = tomllib.loads(PAGE.read_text(encoding="utf8"))
    blocks = [page["introduction"].strip()]
    for section in page["section"]:
        if "needs" in section and table(section["needs"]).empty:
            continue
        tables = [
            (rows, description["columns"])
            for description in section["table"]
            for rows in rows_of(description)
        ]
        text = fill(section["text"].strip(), tables[0][0].to_dict("records")[0])
        blocks += [f"## {section['title']}", text]
        blocks += [in_words(rows, columns) for rows, columns in tables]
    return "\n\n".join(blocks) + "\n"


def main(output: Path = Path("RESULTS.md")) -> None:
    """Write the page.

    Args:
        output: the file
    """
    text = results()
    write_file(output, lambda temporary: temporary.write_text(text, encoding="utf8"))


if __name__ == "__main__":
    run_command(main)
