"""RESULTS.md, written from data/runs: python -m transformer.experiments.results (make results).

What the page says is in results.md beside this file, with a name in braces for every number that a
record gives. The README's findings are held to the same numbers by a test.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from transformer.core.analysis import agreement_with_interval, beside
from transformer.core.files import write_file
from transformer.core.records import read_rows, table
from transformer.experiments.questions import IN_SMALL
from transformer.experiments.runner import run_command
from transformer.variations import TABLE_3

TEMPLATE = Path(__file__).with_suffix(".md")
LITERATURE = "test.bleu_tokenized_lowercased"


def demo() -> dict[str, float]:
    """The share of the demo's test translations that are right letter for letter."""
    (row,) = read_rows("demo")
    return {"demo_exact": row["test.exact_match"]}


def turned_heads() -> dict[str, float]:
    """How often the German owner follows the head that was chosen on validation, turned by hand,
    and how often it follows any other head of the encoder."""
    rows = table("circuit").query("turn == 'owner'")
    chosen = rows.query("what == 'looks'").iloc[0]
    turned = rows.query("what == 'turned' and kind == 'encoder'")
    follows = turned.set_index(["layer", "head"])["follows"]
    name = chosen["layer"], chosen["head"]
    return {
        "head_turned": follows[name],
        "other_head_turned": follows.drop([name]).max(),
        "heads": len(follows),
        "sentences_turned": turned["follows.count"].iloc[0],
    }


def captions() -> dict[str, float]:
    """Multi30k: the mean of six trainings of the recipe, how far apart three of them end, and what
    one embedding matrix gains."""
    runs, more = table("multi30k"), table("tight-multi30k")
    recipe = runs.query("row == 'recipe'")
    six = [*recipe[LITERATURE], *more.query("row == 'recipe'")[LITERATURE].dropna()]
    gain = beside(runs, "validation.bleu", "recipe")
    return {
        "captions": np.mean(six),
        "captions_trainings": len(six),
        "apart": np.ptp(recipe["test.bleu"]),
        "one_matrix": -gain.loc["tie_embeddings=False", "difference"],
    }


def families() -> dict[str, float]:
    """Table 2's race on the grammar: BLEU of some families on test, and on longer sentences."""
    runs = table("table2-bundled").query("what == 'run'").groupby("family")
    test, longer = runs["part.test"].mean(), runs["part.hard.longer"].mean()
    return {
        "one_vector": test["rnn"],
        "with_attention": test["rnn-attention"],
        "looking_back": test["rnn-attention"] - test["rnn"],
        "attention_alone": test["transformer"],
        "longer_sines": longer["transformer"],
        "longer_rotary": longer["rotary"],
        "longer_rnn": longer["rnn-attention"],
        "rotary_longer": longer["rotary"] - longer["transformer"],
    }


def starts() -> dict[str, float]:
    """Trainings that use their source once their encoder learns at a quarter of the rate."""
    runs = table("starting").query("what == 'run' and centre == 'ignores'")
    started = runs.groupby("row")["started"]
    use = runs.groupby("row")["use"].mean()
    return {
        "use_ignoring": use["centre"],
        "use_cured": use["encoder's rate / 4"],
        "ignoring": (~started.get_group("centre").astype(bool)).sum(),
        "cured": started.get_group("encoder's rate / 4").sum(),
        "cured_of": started.get_group("encoder's rate / 4").count(),
    }


def small_table3() -> dict[str, float]:
    """Changes to a small base whose perplexity moves as in the paper's Table 3."""
    paper = pd.Series({row.name: row.perplexity for row in TABLE_3})[list(IN_SMALL)]
    runs = table("table3").query("row in @paper.index")
    runs = runs.assign(loss=np.log(runs["test.perplexity"]))
    differences = np.log(paper / paper["base"]).drop("base")
    found = agreement_with_interval(runs, "loss", differences, draws=1)["found"]
    return {"table3_signs": found["signs"], "table3_of": found["of"]}


def parsers() -> dict[str, float]:
    """F1 of parsers whose decoders read pieces, or numbered words."""
    f1 = table("parser").set_index("name")["test.beam 4.f1"]
    pieces, words = f1["third-vocabulary-1"], f1["third-words-1"]
    return {
        "reading_pieces": pieces,
        "reading_words": words,
        "numbered_words": words - pieces,
    }


def shuffled_digits() -> dict[str, float]:
    """Points of accuracy that a CNN, and a Transformer, lose with shuffled pixels."""
    runs = table("images").query("what == 'shuffle'")
    accuracy = 100 * runs.groupby(["family", "mixed"])["test"].mean().unstack()
    lost = accuracy[False] - accuracy[True]
    return {"shuffled_cnn": lost["CNN"], "shuffled_vit": lost["ViT"]}


def speeds() -> dict[str, float]:
    """The fast form's speed over that of torch's layer, each at its better precision; hours of an
    H100 for the paper's base."""
    rows = table("bench").query("part == 'T1' and kind == 'dropout'")
    fastest = rows.loc[rows.groupby("system")["tokens_per_second"].idxmax()]
    best = fastest.set_index("system")
    (paper,) = read_rows("gpu-base")
    ratio = best.loc["fast", f"over_torch_{best.loc['torch', 'matmul']}"]
    return {"fast": ratio, "base_hours": paper["hours_of_the_paper"]}


FINDINGS = (
    demo,
    turned_heads,
    captions,
    families,
    starts,
    small_table3,
    parsers,
    shuffled_digits,
    speeds,
)


def figures() -> dict[str, float]:
    """{name in results.md: number} of all findings."""
    return {name: value for finding in FINDINGS for name, value in finding().items()}


def results() -> str:
    """The whole page."""
    return TEMPLATE.read_text(encoding="utf8").format_map(figures())


def main(output: Path = Path("RESULTS.md")) -> None:
    """Write the page.

    Args:
        output: the file
    """
    text = results()
    write_file(output, lambda temporary: temporary.write_text(text, encoding="utf8"))


if __name__ == "__main__":
    run_command(main)
