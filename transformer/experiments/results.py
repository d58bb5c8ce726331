"""RESULTS.md, written from data/runs: python -m transformer.experiments.results (make results)."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from transformer.experiments.analysis import FIGURES, beside_the_paper, compare, spread
from transformer.experiments.records import table
from transformer.experiments.runner import run_command
from transformer.files import write_file
from transformer.pretrained import bundled_folder
from transformer.variations import TABLE_3

INTRODUCTION = """# Results

Written by `make results` from the files in [data/runs](data/runs): change a record, not this page.
Each file names its command, commit, hardware, seed and minutes; machines were shared, so minutes of
equal runs differ.

- **BLEU** is sacreBLEU's, from 0 to 100: how many words and groups of up to four words a
  translation shares with the reference. It is **cased** (capitals count) where nothing else is
  said; the literature on Multi30k counts lower-cased, tokenised text, which gives other numbers.
  BLEU of different corpora or languages does not compare.
- **alpha** is the length penalty of beam search: more of it makes translations longer. The paper's
  is 0.6; Multi30k's 1.6 was chosen on validation sentences.
- **±** after a score is its 95% margin, by drawing the test sentences again (another thousand
  sentences would give another score); after a mean over seeds it is the standard deviation of one
  run, and after a difference the standard error of the mean difference.
- Whatever is chosen (a rate, a head, alpha) is chosen on validation sentences and scored on test
  sentences.
"""


def cells(rows: pd.DataFrame, columns: dict) -> pd.DataFrame:
    """A table of text from rows: {heading: (column, format)}, a dash where a value is missing."""
    def text(column, form):
        if column not in rows:
            return ["-"] * len(rows)
        missing = rows[column].isna()
        return ["-" if none else form.format(value) for value, none in zip(rows[column], missing)]

    return pd.DataFrame({heading: text(*what) for heading, what in columns.items()})


def section(title: str, text: str, *tables: pd.DataFrame) -> str:
    """A heading, a paragraph, and tables of text."""
    shown = [frame.to_markdown(index=False, disable_numparse=True) for frame in tables]
    return "\n\n".join([f"## {title}", text.strip(), *shown])


def with_margins(rows: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The rows with "40.12 ± 1.64" in place of a score and its margin."""
    rows = rows.copy()
    for column in columns:
        pairs = zip(rows[column], rows[f"{column}.margin"])
        rows[column] = [f"{score:.2f} ± {margin:.2f}" for score, margin in pairs]
    return rows


# One function a section

def demo() -> str:
    """The demo and the bundled model."""
    card = json.loads((bundled_folder() / "card.json").read_text(encoding="utf8"))
    rows = pd.concat([
        table("demo").assign(model="demo"),
        pd.json_normalize(card).assign(model="bundled model"),
        table("word-for-word").assign(model="each word by itself, no model")])
    return section("The demo: a made-up grammar", """
`make demo` learns the English-German of a **made-up grammar** that comes with the project: ten
thousand sentences of a few hundred words, each with exactly one right translation. "Exact" counts
translations that equal it letter by letter. The harder set combines words and constructions, and
has lengths, that training never shows. The bundled model is the same recipe trained twice as long.
Heads are chosen on validation and scored on test.
""", cells(rows, {
        "model": ("model", "{}"),
        "BLEU, test": ("test.bleu", "{:.1f}"), "exact, test": ("test.exact_match", "{:.1%}"),
        "BLEU, harder": ("hard.bleu", "{:.1f}"), "exact, harder": ("hard.exact_match", "{:.1%}"),
        "alignment error": ("alignment.error", "{:.3f}"),
        "of the diagonal": ("alignment.diagonal", "{:.3f}"),
        '"its" to its noun': ("pronoun.accuracy", "{:.1%}"),
        "first noun": ("pronoun.first noun", "{:.1%}"),
        "nearest noun": ("pronoun.nearest noun", "{:.1%}"), "chance": ("pronoun.chance", "{:.1%}"),
    }))


LITERATURE, LAST = "bleu_tokenized_lowercased", "test.average-1.bleu"


def multi30k() -> str:
    """Multi30k: seeds, the other direction, one setting changed."""
    rows = table("multi30k-*", "gpu-multi30k")
    rows = rows[rows["test.bleu"].notna()]
    return section("Multi30k", """
Captions of photographs, 29,000 sentences; `test_2016_flickr`, 1,000. 2.1 million parameters, 8,000
updates, the last ten weights averaged, beam 4, alpha 1.6. Wu et al. (2021) report 41.02 with 2.6
million parameters. The other rows change one setting of the first seed's run, or the direction.
""", cells(with_margins(rows, "test.bleu", f"test.{LITERATURE}", LAST), {
        "run": ("file", "{}"), "BLEU as the literature counts": (f"test.{LITERATURE}", "{}"),
        "cased": ("test.bleu", "{}"), "cased, last weights alone": (LAST, "{}"),
        "chrF": ("test.chrf", "{:.2f}"), "minutes": ("minutes", "{:.0f}"),
        "hardware": ("hardware", "{}"),
    }))


def tatoeba() -> str:
    """Tatoeba."""
    rows = table("tatoeba-*", "gpu-tatoeba")
    return section("Tatoeba", """
Short sentences about anything: 161,852 pairs, 2,000 held out, of which no sentence is in training.
6.0 million parameters, 6,000 updates, one seed, beam 4, alpha 0.6. On other samples of Tatoeba,
OPUS-MT reports 47.3 (2020) and 43.7 (2021).
""", cells(with_margins(rows, "test.bleu", "test.chrf", LAST), {
        "run": ("file", "{}"), "cased BLEU": ("test.bleu", "{}"), "chrF": ("test.chrf", "{}"),
        "exact": ("test.exact_match", "{:.1%}"), "BLEU, last weights alone": (LAST, "{}"),
        "minutes": ("minutes", "{:.0f}"), "hardware": ("hardware", "{}"),
    }))


def alpha() -> str:
    """The length penalty."""
    return section("The length penalty", """
Chosen on Multi30k's 1,014 validation sentences; beam 1 is greedy search.
""", cells(table("*-alpha"), {
        "label smoothing": ("training.epsilon_ls", "{}"), "beam": ("beam", "{}"),
        "alpha": ("alpha", "{}"),
        "BLEU as the literature counts": (f"validation.{LITERATURE}", "{:.2f}"),
        "cased": ("validation.bleu", "{:.2f}"),
        "words over the references'": ("validation.length", "{:.3f}"),
    }))


def table_2() -> str:
    """Four families on one corpus."""
    rows, by = table("families-*"), ["corpus", "family"]
    runs = rows[rows["what"] == "run"]
    cost = runs.groupby(by, sort=False)[["parameters", "rate", "flops", "minutes.cpu"]].mean()
    found = spread(runs, by, ["test.bleu", "hard.bleu"]).join(cost).reset_index()
    return section("Table 2 in small", """
Four families with the same vocabulary, batches, updates, loss and averaging, and as many parameters
within 10%; each with the best of three learning rates or more, chosen on validation. Cased BLEU,
beam 4, alpha 0.6. A single score's 95% margin on Multi30k is 1.4 to 1.6.
""", cells(found, {
        "corpus": ("corpus", "{}"), "family": ("family", "{}"), "seeds": ("runs", "{}"),
        "BLEU, test": ("test.bleu", "{}"), "BLEU, harder": ("hard.bleu", "{}"),
        "parameters": ("parameters", "{:,.0f}"), "peak rate": ("rate", "{:g}"),
        "FLOPs": ("flops", "{:.2g}"), "CPU minutes": ("minutes.cpu", "{:.1f}"),
    }))


def table_3() -> str:
    """Every row of Table 3 and the further ones."""
    rows, parts = table("variations*", "gpu-variations"), []
    for file, runs in rows[rows["validation.bleu"].notna()].groupby("file", sort=False):
        found = spread(runs, "row", list(FIGURES.values())).join(differences_in_words(runs))
        parts.append(cells(found.reset_index(), {
            f"{runs['corpus'].iloc[0]} ({file})": ("row", "{}"), "seeds": ("runs", "{}"),
            "perplexity": ("validation.perplexity", "{}"), "BLEU": ("validation.bleu", "{}"),
            "beside": ("beside", "{}"), "perplexity, difference": ("perplexity", "{}"),
            "BLEU, difference": ("bleu", "{}"), "the paper's BLEU": ("paper", "{:+.1f}"),
        }))
    return section("Table 3 in small", """
Each row changes one setting of a base with 0.8 million parameters outside the embeddings, trained
for 1,500 updates; greedy translations of the validation sentences. Rows are compared seed by seed.
One difference deviates by the row's own standard deviation, at least by the median of all rows; **a
mean difference under two of its deviations is called none**.
""", *parts)


def differences_in_words(runs: pd.DataFrame) -> pd.DataFrame:
    """"+0.51 ± 0.20, better" for every row and figure, what it is beside, and the paper's BLEU."""
    found, words = compare(runs), {}
    for figure in FIGURES:
        judged = found[figure].dropna(subset="difference")
        form = "{difference:+.2f} ± {deviation:.2f}, {verdict}"
        words[figure] = pd.Series({
            row.Index: form.format(**row._asdict()).replace(" ± nan", "")
            for row in judged.itertuples()})
    paper = beside_the_paper(runs, TABLE_3, "bleu")["paper"]
    return pd.DataFrame(words).assign(beside=found[("", "beside")], paper=paper)


def parsing() -> str:
    """Trees."""
    run = table("parser-*", "gpu-parser*").iloc[0]
    figures = ("f1", "precision", "recall", "valid_trees")
    ways = {"fewest repairs of the beam": "test", "likeliest output": "test.likeliest"}
    outputs = pd.DataFrame([{"way": way, **{name: run[f"{path}.{name}"] for name in figures}}
                            for way, path in ways.items()])
    lengths = pd.DataFrame([
        {"words": words, "sentences": run[f"test.by_length.{words}.sentences"],
         "f1": run[f"test.by_length.{words}.f1"]}
        for words in ("1-10", "11-20", "21-30", "31-40", "41 or more")])
    return section("Parsing", f"""
CRAFT's test articles, {run["test.sentences"]:,} sentences; {run["parameters"] / 1e6:.1f} million
parameters, {run["updates"]:,} updates, beam {run["test.beam"]}, one seed.
""", cells(outputs, {
        "output": ("way", "{}"), "F1": ("f1", "{:.2f}"), "precision": ("precision", "{:.2f}"),
        "recall": ("recall", "{:.2f}"), "valid trees, %": ("valid_trees", "{:.2f}"),
    }), cells(lengths, {
        "words": ("words", "{}"), "sentences": ("sentences", "{}"), "F1": ("f1", "{:.2f}"),
    }))


def attention() -> str:
    """Multi30k's model as word alignment."""
    return section("Word alignment on Multi30k", """
One cross-attention head of the first seed's model, chosen on 12 sentences aligned by hand and
scored on 12 others.
""", cells(table("multi30k-attention"), {
        "layer": ("alignment.layer", "{}"), "head": ("alignment.head", "{}"),
        "error": ("alignment.error", "{:.3f}"), "of the diagonal": ("alignment.diagonal", "{:.3f}"),
    }))


def slope(part: pd.DataFrame) -> float:
    """The exponent of n in seconds."""
    return np.polyfit(np.log(part["n"]), np.log(part["seconds"]), 1)[0]


def complexity() -> str:
    """Exponents of n."""
    rows = table("complexity")
    layers = rows[rows["n"] >= 1024].groupby(["layer", "mode"], sort=False)[["n", "seconds"]]
    return section("Table 1 by the clock", """
The exponent of n in the seconds of one layer, n = 1,024 to 8,192, d = 512, one thread. By count of
products it is 2 for self-attention, in the limit, and 1 for the others.
""", cells(layers.apply(slope).unstack().reset_index(), {
        "layer": ("layer", "{}"), "forward": ("forward", "{:.2f}"),
        "training": ("training", "{:.2f}"),
    }))


def scale() -> str:
    """Millions of pairs."""
    return section("Millions of pairs", """
Pairs of the bundled grammar, encoded to disk (prepare), walked through once in batches of 25,000
tokens (iterate), and for comparison encoded in memory (as_list).
""", cells(table("scale"), {
        "pairs": ("corpus.pairs", "{:,}"), "phase": ("phase", "{}"),
        "pairs a second": ("pairs_per_second", "{:,}"), "peak, MiB": ("peak_mb", "{:,}"),
        "padding": ("padding", "{:.2%}"),
    }))


def bench() -> str:
    """Speed and memory beside others."""
    rows, found = table("bench", "gpu-bench*"), []
    speeds = rows[rows["tokens_per_second"].notna() & rows["system"].notna()]
    for (part, kind), own in speeds.groupby(["part", speeds["kind"].fillna("")], sort=False):
        best = own.loc[own.groupby("system")["tokens_per_second"].idxmax()].set_index("system")
        over = {peer: best.loc["fast", f"over_{peer}_{best.loc[peer, 'matmul']}"]
                for peer in ("torch", "marian", "ctranslate2") if peer in best.index}
        tokens = best.loc["fast", "tokens_per_second"]
        found.append({"part": f"{part} {kind}".strip(), "tokens": tokens, **over})
    return section("Speed", f"""
{rows["hardware"][0]}; target tokens a second, each system at whichever precision of products is
faster for it, medians over rounds. T1 is the paper's base with 8,000 types, T2 has N = 3 and
d_model = 256, small N = 4 and d_model = 128; T3 and T4 decode with T1, greedily and with a beam of
4. Then the peak of memory in training T1. Rounds of one system often differ by a third.
""", cells(pd.DataFrame(found), {
        "part": ("part", "{}"), "tokens a second": ("tokens", "{:,.0f}"),
        "times `nn.Transformer`": ("torch", "{:.2f}"), "times Marian": ("marian", "{:.2f}"),
        "times CTranslate2": ("ctranslate2", "{:.2f}"),
    }), cells(rows[rows["part"] == "memory"], {
        "system": ("system", "{}"), "peak above the start, GiB": ("above_start_gib", "{:.2f}"),
    }))


def estimate() -> str:
    """The paper's runs on several GPUs."""
    return section("What the paper's runs would take", """
**An estimate from the count of FLOPs, not a measurement.** The paper: 12 hours for base and 84 for
big, on eight P100.
""", cells(table("estimate"), {
        "model": ("model", "{}"), "hardware": ("hardware", "{}"), "updates": ("updates", "{:,}"),
        "seconds an update": ("seconds_per_update", "{:.3g}"), "hours": ("hours", "{:.3g}"),
        "dollars": ("dollars", "{:.3g}"),
    }))


def files() -> str:
    """Where every figure comes from."""
    rows = table().groupby(["file", "command"], as_index=False, sort=False).agg(
        hardware=("hardware", "first"),
        commit=("commit", lambda own: ", ".join(sorted(set(own)))))
    return section("The files", """
Every file of [data/runs](data/runs), the command that wrote it, and the code it ran. Older records
name commands that have moved since: `tools/families.py` is now `transformer.experiments.table2`,
`tools/x.py` otherwise `transformer.experiments.x`, run with `python -m`.
""", cells(rows, {
        "file": ("file", "{}.json"), "command": ("command", "`{}`"), "commit": ("commit", "{}"),
        "hardware": ("hardware", "{}"),
    }))


SECTIONS = [demo, multi30k, tatoeba, alpha, table_2, table_3, parsing, attention, complexity, scale,
            bench, estimate, files]


def results() -> str:
    """The whole page."""
    return "\n\n".join([INTRODUCTION.strip(), *(write() for write in SECTIONS)]) + "\n"


def main(output: Path = Path("RESULTS.md")) -> None:
    """Write the page.

    Args:
        output: the file
    """
    text = results()
    write_file(output, lambda temporary: temporary.write_text(text, encoding="utf8"))


if __name__ == "__main__":
    run_command(main)
