# ---
# jupyter:
#   jupytext:
#     formats: notebooks/17_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 6.2 Model variations
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/17_variations.ipynb)
#
# Which of its parts does the Transformer need? Section 6.2 changes one setting at a time and trains again; Table 3 has the results, twenty rows of them.
# At the end you will have the table as a list, a function that applies a row to a base model of any size, a test of when two rows
# differ, and the results of the same list in small. The page runs in twenty seconds; reading takes half an hour.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     # This book has no address yet. Upload its wheel: python -m pip wheel --no-deps .
#     from google.colab import files
#
#     wheel = next(iter(files.upload()))
#     %pip install -q {wheel}

# %%
import math
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import nn

from transformer.fast.attention import MultiHeadAttention, scaled_dot_product
from transformer.fast.model import Parts, Transformer, TransformerConfig
from transformer.fast.stacks import Residual
from transformer.models.families import parameters_of
from transformer.runs.experiment import Experiment
from transformer.runs.recipes import RECIPES
from transformer.runs.run import new_model
from transformer.runs.training import TrainingConfig

# %% [markdown]
# The next cell holds what only the pictures and checks below need.

# %% tags=["active-ipynb"]
# import numpy as np
# import pandas as pd
# from IPython.display import display
#
# from transformer.core.analysis import (
#     agreement,
#     agreement_with_interval,
#     along,
#     beside,
#     by_chance,
#     compare,
#     learned,
#     name_here,
#     spread,
# )
# from transformer.core.analysis import minus as minus_base
# from transformer.core.records import read_rows, table
# from transformer.experiments.questions import IN_SMALL
# from transformer.optimizer import peak_rate
# from transformer.views import comparisons, plotting
#
# torch.set_num_threads(1)  # the models below are too small to share between cores

# %% [markdown]
# ## Table 3 as a list
#
# A row is a name and the settings that it changes. Everything else stays as in the base model. Beside it stand the paper's own
# numbers: perplexity on newstest2013 (per token), BLEU there, and parameters in millions where the paper gives them.
#
# The letters are the paper's. **A**: more or fewer heads, each narrower or wider, so that the number of parameters stays. **B**: narrower keys.
# **C**: depth and widths. **D**: dropout and label smoothing. **E**: learned positions. And **big**.


# %%
class Row(NamedTuple):
    """A row of Table 3, or another variation, and the paper's own numbers."""

    group: str
    name: str
    changes: dict  # fields of the base, and their values here
    perplexity: float | None = None
    bleu: float | None = None
    millions: float | None = None  # of parameters
    beside: str = "base"  # the row that it is compared with


# %%
TABLE_3 = [
    Row("base", "base", dict(), 4.92, 25.8, 65),
    Row("A", "h=1", dict(h=1, d_k=512, d_v=512), 5.29, 24.9),
    Row("A", "h=4", dict(h=4, d_k=128, d_v=128), 5.00, 25.5),
    Row("A", "h=16", dict(h=16, d_k=32, d_v=32), 4.91, 25.8),
    Row("A", "h=32", dict(h=32, d_k=16, d_v=16), 5.01, 25.4),
    Row("B", "d_k=16", dict(d_k=16), 5.16, 25.1, 58),
    Row("B", "d_k=32", dict(d_k=32), 5.01, 25.4, 60),
    Row("C", "N=2", dict(N=2), 6.11, 23.7, 36),
    Row("C", "N=4", dict(N=4), 5.19, 25.3, 50),
    Row("C", "N=8", dict(N=8), 4.88, 25.5, 80),
    Row("C", "d_model=256", dict(d_model=256, d_k=32, d_v=32), 5.75, 24.5, 28),
    Row("C", "d_model=1024", dict(d_model=1024, d_k=128, d_v=128), 4.66, 26.0, 168),
    Row("C", "d_ff=1024", dict(d_ff=1024), 5.12, 25.4, 53),
    Row("C", "d_ff=4096", dict(d_ff=4096), 4.75, 26.2, 90),
    Row("D", "P_drop=0.0", dict(P_drop=0.0), 5.77, 24.6),
    Row("D", "P_drop=0.2", dict(P_drop=0.2), 4.95, 25.5),
    Row("D", "epsilon_ls=0.0", dict(epsilon_ls=0.0), 4.67, 25.3),
    Row("D", "epsilon_ls=0.2", dict(epsilon_ls=0.2), 5.47, 25.7),
    Row("E", "positions=learned", dict(positions="learned"), 4.92, 25.7),
    Row(
        "big",
        "big",
        dict(d_model=1024, d_ff=4096, h=16, P_drop=0.3, updates=300_000),
        4.33,
        26.4,
        213,
    ),
]


# %% tags=["active-ipynb"]
# paper = pd.DataFrame(TABLE_3).set_index("name")
# paper["log perplexity"] = np.log(paper["perplexity"])
# figures = ["perplexity", "log perplexity", "bleu"]
# minus = paper[figures] - paper[figures].loc["base"]
# numbers = paper[["group", "perplexity", "bleu"]]
# numbers.join(minus.add_suffix(", minus base").round(2))

# %% [markdown]
# In the paper two layers instead of six cost 2.1 BLEU, the most of any row, and eight layers gain none. A width of 256, or no dropout, costs more
# than one point. One head costs 0.9 and 32 heads cost 0.4, so its best lies between. Keys of 16 numbers cost 0.7. Label smoothing of 0.1 makes perplexity worse and BLEU better.
#
# Below, logarithms of perplexities are compared, so differences are in nats a token. The paper has one number for each row and does
# not say how far two runs of *one* row lie apart.

# %% [markdown]
# ## A row applied to a base
#
# A base is an `Experiment` of [notebook 16](16_translation.ipynb): a corpus, a model, and its training. Readers' questions, further below, change three things besides: where pairs come from (perhaps the bundled grammar), how long they may be, and what is taken out of the model.


# %%
@dataclass
class Trial(Experiment):
    """An `Experiment` with what these variations change besides."""

    drawn: int | None = None  # learn from so many pairs drawn from the grammar instead
    longest: int | None = None  # and only from pairs of at most so many words
    without: str | None = None  # W_V, softmax or residual: what is taken out


# %%
PAPER = Trial(
    "wmt14",
    model=RECIPES["wmt14"]["model"],
    training=replace(RECIPES["wmt14"]["training"], keep=1),
)
SMALL = Trial(
    "multi30k",
    model=TransformerConfig(
        vocab_size=3000, d_model=64, d_ff=256, N=3, h=8, P_drop=0.1, max_positions=256
    ),
    training=TrainingConfig(
        updates=3400,
        batch_tokens=2000,
        warmup=340,
        lr_scale=0.5,
        validate_every=85,
        keep=5,
    ),
)


# %% [markdown]
# `PAPER` is the paper's base model. `SMALL` has under a hundredth of its parameters outside the
# embeddings and sees Multi30k eleven times. **Deviations: a smaller base, another corpus, far fewer updates, and averaged weights, which the
# paper did not use for this table.**
#


# %%
def holder(e: Trial, name: str):
    """Where a `Trial` keeps a field: its model, its training, or itself.

    ValueError where there is none of that name.
    """
    for part in (e.model, e.training, e):
        if name in {field.name for field in fields(part)}:
            return part
    raise ValueError(
        f"there is no setting {name!r}: "
        "a row changes fields of TransformerConfig, TrainingConfig or Trial"
    )


def with_changes(e: Trial, changes: dict) -> Trial:
    """A `Trial` with some fields, of its model, its training or its own, replaced.

    e stays as it is.
    """

    def own(part):
        return {
            name: value for name, value in changes.items() if holder(e, name) is part
        }

    model = replace(e.model, **own(e.model))
    training = replace(e.training, **own(e.training))
    return replace(e, model=model, training=training, **own(e))


# %% tags=["active-ipynb"]
# deep = with_changes(PAPER, dict(N=8, epsilon_ls=0.2))
# print("changed:", deep.model.N, deep.training.epsilon_ls)
# print("base is still:", PAPER.model.N, PAPER.training.epsilon_ls)
# try:
#     with_changes(PAPER, dict(heads=3))
# except ValueError as error:
#     print(error)

# %% [markdown]
# ## Parameters
#
# Before any training, one column of Table 3 can be checked exactly: the number of parameters. On torch's `meta` device
# ([notebook 08](08_model.ipynb)) the eleven models with a count are built in a moment.


# %%
def millions(row: Row, vocab_size: int = 37_000) -> float:
    """Parameters of a row's model at the paper's size, in millions."""
    e = with_changes(PAPER, {**row.changes, "vocab_size": vocab_size})
    return parameters_of(e.model) / 1e6


# %% tags=["active-ipynb"]
# given = [row for row in TABLE_3 if row.millions]
# counts = pd.DataFrame(
#     {
#         "here": [millions(row) for row in given],
#         "paper": [row.millions for row in given],
#     },
#     index=[row.name for row in given],
# )
# apart = counts - counts.loc["base"]
# display(counts.join(apart.add_suffix(", minus base")).round(1))
# off = (apart["here"] - apart["paper"]).drop(["d_model=256", "d_model=1024", "big"])
# assert off.abs().max() <= 1
# print("where d_model stays, no difference from base is off by more than a million")

# %% [markdown]
# With 37,000 types every row but big is a little smaller here than in the paper. Where $d_{model}$ stays, the difference from base agrees to
# within rounding. What is missing grows with $d_{model}$, as an embedding matrix does. Which vocabulary would explain the paper's column?


# %%
def vocabulary_that_fits(row: Row) -> tuple[int, int]:
    """The smallest and largest vocabulary with which a row's count, in millions,
    rounds to the paper's."""
    d_model = with_changes(PAPER, row.changes).model.d_model
    without = millions(row, vocab_size=3)  # a begin, an end and a padding mark
    least, beyond = (
        3 + math.ceil(1e6 * (row.millions + half - without) / d_model)
        for half in (-0.5, 0.5)
    )
    return least, beyond - 1


# %% tags=["active-ipynb"]
# fits = {row.name: vocabulary_that_fits(row) for row in TABLE_3 if row.millions}
# for name, (least, most) in fits.items():
#     print(f"{name:12} {least:7,} to {most:7,} types")
# ranges = pd.DataFrame(fits, index=["least", "most"]).T.drop("big")
# print(f"all but big: {ranges['least'].max():,} to {ranges['most'].min():,}")
# assert ranges["least"].max() < ranges["most"].min() and fits["big"][1] < 37_000

# %% [markdown]
# One vocabulary of about 41,100 types brings every row except big to the paper's number. The paper
# speaks of "about 37,000" types. **Big fits no such vocabulary**: with 37,000 types it already has one million parameters too many. We do not know why.
#
# ## The same list, in small
#
# A row is an idea ("a third of the layers") that can be applied to a base of another size by one rule: **a number is
# multiplied by the field's base value here, divided by that in the paper.**
#
# Each field is scaled by itself, so proportions between fields change: 32 heads have keys of two numbers here, and of 16 in the paper. The peak of the learning rate, $lr\_scale \cdot (d_{model} \cdot warmup)^{-0.5}$, is higher here.


# %%
def setting(e: Trial, name: str):
    """The value of a `Trial`'s field; d_k and d_v, where not given, are d_model / h."""
    value = getattr(holder(e, name), name)
    if value is None and name in ("d_k", "d_v"):
        return e.model.d_model // e.model.h
    return value


def scaled(changes: dict, base: Trial) -> dict:
    """A row's changes, made for the paper's base, carried over to another:
    each number by the ratio of the bases' values.

    In small no run gets more updates than the base, so big has no more than the rest.
    """
    found = {}
    for name, value in changes.items():
        there = setting(PAPER, name)
        if there and not isinstance(value, str):
            ratio = setting(base, name) / there
            number = value * ratio
            if name == "updates" and ratio < 1:
                number = min(number, there * ratio)
            value = max(1, round(number)) if isinstance(value, int) else number
        found[name] = value
    return found


# %% tags=["active-ipynb"]
# small = {row.name: with_changes(SMALL, scaled(row.changes, SMALL)) for row in TABLE_3}
# for name, e in (("the paper", PAPER), ("here", SMALL)):
#     peak = peak_rate(e.model.d_model, e.training.warmup, e.training.lr_scale)
#     print(f"peak of the learning rate, {name}: {peak:.4f}")
# pd.options.display.max_colwidth = 80  # the last row is long
# pd.DataFrame(
#     {
#         "in small": [scaled(row.changes, SMALL) or "-" for row in TABLE_3],
#         "parameters outside the embeddings, M": [
#             (parameters_of(e.model) - e.model.vocab_size * e.model.d_model) / 1e6
#             for e in small.values()
#         ],
#     },
#     index=list(small),
# ).round(2)

# %% [markdown]
# Two checks: a row changes what it names and nothing else, in both sizes; and rows A have the same number of parameters.

# %% tags=["active-ipynb"]
# for row in TABLE_3:
#     for base, changes in ((PAPER, row.changes), (SMALL, scaled(row.changes, SMALL))):
#         e = with_changes(base, changes)
#         differ = {
#             name
#             for part, before in ((e.model, base.model), (e.training, base.training))
#             for name, value in vars(part).items()
#             if value != vars(before)[name]
#         }
#         assert set(changes) - {"updates"} <= differ <= set(changes), row.name
# heads = [small[row.name] for row in TABLE_3 if row.group in ("base", "A")]
# assert len({parameters_of(e.model) for e in heads}) == 1
# print(
#     f"{len(TABLE_3)} rows change what they name; {len(heads)} numbers of heads cost "
#     f"{parameters_of(heads[0].model):,} parameters each"
# )

# %% [markdown]
# ## A part taken out
#
# Three variations are no setting of the model. Without $W_V$ a head averages slices of the vectors themselves. Without the
# softmax the scores are the weights, divided by the number of keys so that sums stay small. Without the residual path a sub-layer's
# input reaches the next one only through the sub-layer.


# %%
def scores_as_weights(q, k, v, mask=None):
    """Attention whose weights are the scores divided by the number of keys a query may
    see: output (B, h, T, d_v) and weights (B, h, T, S)."""
    scores = scaled_dot_product(q, k)
    seen = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    count = seen.sum(dim=-1, keepdim=True).clamp(min=1)
    weights = scores.masked_fill(~seen, 0) / count
    return weights @ v, weights


class NoPath(Residual):
    """`Residual` without the path around the sub-layer."""

    def forward(self, x, sublayer):
        return self.norm(self.dropout(sublayer(x)))


def without_values(d_model, h, d_k=None, d_v=None, **more):
    """A `MultiHeadAttention` whose heads average slices of the vectors themselves."""
    attention = MultiHeadAttention(d_model, h, d_k, d_v, **more)
    attention.W_V = nn.Identity()
    return attention


# %%
WITHOUT = {
    "W_V": Parts(attention=without_values),
    "softmax": Parts(attention=partial(MultiHeadAttention, attend=scores_as_weights)),
    "residual": Parts(residual=NoPath),
}


def model_of(e: Trial, device: torch.device) -> Transformer:
    """The model of a `Trial` with fresh weights; what it goes without is another part.

    ValueError for a part that cannot be taken out.
    """
    if e.without is None:
        return new_model(e, device)
    if e.without not in WITHOUT:
        raise ValueError(
            f"cannot take {e.without!r} out of the model: choose {', '.join(WITHOUT)}"
        )
    torch.manual_seed(e.training.seed)
    return Transformer(e.model, WITHOUT[e.without]).to(device)


# %% [markdown]
# ## When do two rows differ?
#
# A seed draws the first weights, the dropout and the order of the batches, so two runs of one row differ. The test used here (`beside`) fits a linear model
#
# $$\text{score} = \text{row} + \text{seed} + \text{noise}$$
#
# to all runs at once. Three runs tell too little about a row's own noise, so it is assumed to be as large in all rows. Each difference from
# base gets a 95% interval and, by Student's $t$, a $p$ value: how often noise makes it as large. Of twenty differences that are
# only noise one is expected to pass $p < 0.05$, so Holm's correction multiplies the smallest $p$ by their number, the next by one less, and
# so on.
#
# Does it work? Here are made-up tables with equal noise, where no row differs:

# %% tags=["active-ipynb"]
# chance, passed = np.random.default_rng(1), []
# grid = [(f"row {row}", seed) for row in range(18) for seed in (1, 2, 3)]
# for _ in range(300):
#     made_up = pd.DataFrame(grid, columns=["row", "seed"])
#     made_up["score"] = chance.normal(size=len(grid))
#     found = beside(made_up, "score", "row 0")
#     passed.append([(found["low"] * found["high"] > 0).any(), (found["p"] < 0.05).any()])
# alone, corrected = np.mean(passed, axis=0)
# print(
#     f"some interval leaves out 0 in {alone:.0%} of the tables,",
#     f"some p is under 0.05 after Holm's correction in {corrected:.0%}",
# )
# assert corrected < 0.1 < alone

# %% [markdown]
# So one of many intervals without a zero proves little: **a difference is claimed only where it passes after the correction**. The test is about seeds alone, not about other sentences.
#
# ## First results: 1,500 updates
#
# `transformer variations` trains every row with every seed. The record in `data/runs` comes from an earlier base, wider than `SMALL` and trained for less, when big still had three times its updates: **1,500 updates, two to three times through the corpus (big 4,500), greedy translations of the 1,014 validation
# sentences.** ± is the standard deviation over seeds.

# %% tags=["active-ipynb"]
# everything = table("variations*")
# runs = everything[everything["validation.bleu"].notna()]
# multi30k, bundled = (runs[runs["corpus"] == name] for name in ("multi30k", "bundled"))
# names = [row.name for row in TABLE_3]
# table3 = multi30k[multi30k["row"].isin(names)]
# base = table3[table3["row"] == "base"].iloc[0]
# sizes = [f"{key} {base[f'model.{key}']}" for key in ("d_model", "d_ff", "N", "h")]
# outside = base["parameters.outside_embeddings"]
# print(
#     f"base: {', '.join(sizes)}; {outside:,} parameters outside the embeddings;",
#     f"peak rate {peak_rate(96, 400):.4f}",
# )
# labels = dict(zip(table3["row"], table3.apply(name_here, axis=1)))
# cost = table3.groupby("row", sort=False)[["updates", "minutes.cpu"]].mean().round(1)
# scores = spread(table3, "row", ["validation.perplexity", "validation.bleu"])
# scores.join(cost).rename(labels)

# %% [markdown]
# An arrow gives the size that a row has here. **The deepest row and big hardly translate** (BLEU about 6). Trainings that ignore their source look like that
# ([notebook 14](14_training.ipynb)). A row that has not learned tells nothing about what its layers are worth, so the two are left out below.

# %% tags=["active-ipynb"]
# judged = learned(table3)
# shorter = compare(judged, names)
# minus["BLEU"] = minus["bleu"]
# limits = {"log perplexity": 0.45, "BLEU": 8}
# titles = {
#     "log perplexity": "left is better: after correction five differ (*)",
#     "BLEU": "right is better: after correction one differs (*)",
# }
# for ax, figure in zip(plotting.new_axes(4.6, 5.4, columns=2), limits):
#     own = shorter[figure]
#     reach = (own["high"] - own["low"]) / 2
#     rows = {
#         labels[row] + (" *" if own.loc[row, "p"] < 0.05 else ""): (
#             own.loc[row, "difference"],
#             reach[row],
#             minus.loc[row, figure],
#         )
#         for row in own.index
#     }
#     comparisons.differences(
#         rows,
#         f"{figure}, minus base",
#         "here, 95% interval",
#         "the paper",
#         ax,
#         limits[figure],
#     )
#     ax.set_title(titles[figure], pad=26)
# calm = judged[judged["row"] != "P_drop=0.2"]
# for title, runs in (("passes after correction", judged), ("without P_drop=0.2", calm)):
#     p = compare(runs, names).xs("p", axis=1, level=1)
#     for figure in limits:
#         print(f"{figure}, {title}: {', '.join(p.index[p[figure] < 0.05])}")

# %% [markdown]
# **Five perplexities differ from base's.** As in the paper, a narrow model (d_model=256), short keys (d_k=16) and more label smoothing make
# them worse. Against the paper, no dropout makes it better. More dropout makes it much worse, in the paper hardly. **Only one BLEU differs**: intervals reach two points to either side, the paper's differences at most 2.1.
#
# **P_drop=0.2 breaks the test's assumption**: its runs lie several times as far apart as most. Without it more rows pass: hints, as we looked afterwards.
#
# Two numbers sum the table up: the rows that differ from base in the paper's direction, and Spearman's rank correlation with the paper's
# differences (1 for the same order, about 0 for unrelated ones).

# %% tags=["active-ipynb"]
# judged = judged.assign(loss=np.log(judged["validation.perplexity"]))
# in_paper = minus["log perplexity"].drop("base")
# # low, high: each row draws its three runs again (seeds' noise alone; too narrow)
# display(agreement_with_interval(judged, "loss", in_paper).round(2))
#
#
# def print_chance(runs):
#     theirs = in_paper[in_paper.index.isin(runs["row"])]
#     guess = agreement(theirs.abs(), theirs)
#     chance_of = by_chance(agreement(minus_base(runs, "loss"), theirs), theirs)
#     print(
#         f"had base been guessed best: {guess['signs']} of {guess['of']} signs; as "
#         f"many as here in {chance_of['signs']:.1%} of 2,000 random orders, as high "
#         f"a correlation in {chance_of['rank']:.1%}"
#     )
#
#
# print_chance(judged)

# %% [markdown]
# Random orders have so many signs in one table of four, and so high a correlation as often; guessing base best gives 12. So little of the paper's order shows.
#
# ## Trained longer
#
# `SMALL` was chosen to ask again: over four times the tokens, a beam of four, averaged weights. Fifteen rows are trained with three seeds at one rate, the highest tried at which N=8 and big learn (and base even at twice it). A row has *learned* if another sentence's source costs it at least 1 nat a token ([14](14_training.ipynb)). What is expected, and by which test, was
# [written down first](https://github.com/OWNER/annotated-attention/blob/main/data/runs/table3.md). `python -m transformer.experiments.rates`
# does all of it. Scores on test, and the differences in log perplexity:

# %% tags=["active-ipynb"]
# longer = pd.DataFrame(read_rows("table3"))
# whole = learned(longer[longer["row"].isin(IN_SMALL)])
# whole = whole.assign(loss=np.log(whole["test.perplexity"]))
# tested = compare(whole, IN_SMALL, "test")
# p = tested["BLEU"]["p"]
# print("BLEU differs after correction:", ", ".join(p.index[p < 0.05]))
# losses = tested["log perplexity"].assign(paper=in_paper).round(3)
# display(spread(whole, "row", ["test.perplexity", "test.bleu"]).join(losses))
# display(agreement_with_interval(whole, "loss", in_paper).round(2))
# for seed, some in whole.groupby("seed"):
#     agrees = agreement(minus_base(some, "loss"), in_paper)
#     print(
#         f"seed {seed}: {agrees['signs']:.0f} of {agrees['of']:.0f} signs,",
#         f"rank correlation {agrees['rank']:.2f}",
#     )
# print_chance(whole)
# both = set(judged["row"]) & set(whole["row"])
# for updates, some in {"1,500": judged, "3,400": whole}.items():
#     agrees = agreement(minus_base(some[some["row"].isin(both)], "loss"), in_paper)
#     print(
#         f"{len(both) - 1} rows of both tables, {updates} updates:",
#         f"{agrees['signs']:.0f} of {agrees['of']:.0f} signs,",
#         f"rank correlation {agrees['rank']:.2f}",
#     )

# %% [markdown]
# **Most of the rows tried come out on the paper's side of base.** Every row has learned, and ten of fourteen log perplexities differ. Twelve of thirteen signs are the paper's (95%: 11 to 12, somewhat too narrow), two of them (N=8, no dropout) of differences that do not pass. Random orders have so many in one of hundreds, guessing base best gives nine. Fewer layers, a narrower model or feed-forward network, shorter keys and 32 heads lose; a wider feed-forward network, no smoothing and big gain (in BLEU big alone). Against the paper, one head is no worse than eight in perplexity (in BLEU 1.1 lower, in the paper 0.9, which does not pass). Sizes agree less: no dropout costs 0.01, half the width 0.53, in the paper 0.16 each.

# %% [markdown]
# On the rows of both tables the rank correlation is 0.07 after 1,500 updates, 0.57 here; base, rate, averaging, beam and split changed, too.

# %% tags=["active-ipynb"]
# order = along(whole, paper["perplexity"])  # a column a seed
# print(order.loc[[85, 340, 510, 850, 1700, 3400]].round(2).T.to_string())
# quarter, last = order.iloc[6:14].mean(), order.iloc[-8:].mean()
# print("eight around a quarter:", *quarter.round(2), " last eight:", *last.round(2))
# comparisons.ranks(whole, paper["perplexity"], bold=("big", "P_drop=0.0"))

# %% [markdown]
# **The paper's order emerges while training**, by the rule written first: with each seed the last eight validations agree better with it than the eight around a quarter. (Judged are single weights, by their loss on validation, base included.) In full, the colours would run from dark above to bright below. The way is not straight: big stands first after 85 updates, last but one after the peak of the rate (update 340), and first in the end; no dropout leads early and ends eighth. So a table depends on when its trainings stop. Whether updates or the falling rate bring it, **we do not know**. (Half the rate is, after 850 updates, at least 0.38 nats behind in each row, with one seed; but so short a trial favours high rates.)

# %% [markdown] tags=["question-09"]
# ## How many heads are best, and why do too many hurt?
#
# Rows A have more or fewer heads with as many parameters, so that more heads mean narrower keys. Rows B keep eight heads and narrow their keys alone.

# %% tags=["active-ipynb"]
# heads = {"h=1": 1, "h=4": 4, "base": 8, "h=16": 16, "h=32": 32}
# theirs = minus.loc[list(heads), "log perplexity"]
# ax = plotting.lines(
#     heads.values(),
#     {"the paper": theirs},
#     "heads",
#     "log perplexity, minus base",
#     "too many heads hurt",
#     log="x",
#     markers=True,
# )
# for label, table_of, color, line in (
#     ("1,500 updates", shorter, "grey", "-"),
#     ("3,400 updates", tested, "C1", "none"),
# ):
#     own = table_of["log perplexity"]
#     own = own.reindex([row for row in heads if row == "base" or row in own.index])
#     own = own.fillna(0)
#     ax.errorbar(
#         [heads[row] for row in own.index],
#         own["difference"],
#         (own["high"] - own["low"]) / 2,
#         label=label,
#         marker="s",
#         capsize=2,
#         color=color,
#         linestyle=line,
#     )
# ax.set_xticks(list(heads.values()), list(heads.values()))
# ax.minorticks_off()
# ax.legend()
# tested.loc[["h=1", "h=32", "d_k=16", "d_k=32"], "log perplexity"].round(3)

# %% [markdown]
# Which number is best we cannot say: only 1, 8 and 32 were trained longer. There 32 heads are worse than eight, and one head, against the paper, is not, by perplexity. Row d_k=16 has keys as short as the 32 heads', two numbers, in eight heads, and loses no less; d_k=32, with four, loses 0.057. That fits short keys as the reason, and does not prove it: 32 heads also mean narrower values, and rows B have fewer parameters.
#
# 32 heads take longer, too: in the shorter runs 6.6 CPU minutes, one head 4.

# %% [markdown] tags=["question-20"]
# ## Why are learned positions no better than the sine?
#
# Row E shows no difference that passes, after 1,500 updates or 3,400, and the paper, too, found hardly any. (With 16's budget learned positions are 1.7 BLEU *lower* on the same corpus, which passes there.) Attention must tell places apart, so each needs a vector of its
# own. Sines are such vectors from the start ([notebook 07](07_positions.ipynb)), so there may be little left to learn.
#
# The paper kept the sines because they might serve on sentences longer than any in training. A learned table has vectors there that no step ever changed. So both kinds
# were trained on pairs of at most twelve words, and translated sentences of up to twelve words, and longer ones:

# %% tags=["active-ipynb"]
# longest = multi30k[multi30k["longest"].notna()]
# sine = "positions=sinusoidal,longest=12"
# rows = {}
# for part, figure in (
#     ("short", "bleu"),
#     ("long", "bleu"),
#     ("short", "perplexity"),
#     ("long", "perplexity"),
# ):
#     column = f"validation.{part}.{figure}"
#     means = longest.groupby("row", sort=False)[column].mean()
#     rows[part, figure] = [*means, *beside(longest, column, sine).iloc[0]]
# columns = ["sine", "learned", "difference", "low", "high", "p"]
# pd.DataFrame(rows, index=columns).T.round(2)

# %% [markdown]
# No difference passes. The test is mild: few of Multi30k's sentences have more than twenty words ([notebook 10](10_data.ipynb)). [Notebook 07](07_positions.ipynb) has a sharper test, on longer sentences of the grammar: learned positions are 6.9 BLEU below the sines, rotary ones 10.7 above.

# %% [markdown] tags=["question-22"]
# ## The hyperparameters look random. Are they?
#
# The learning rate is swept, one seed each: `lr_scale` multiplies it, and `warmup` is how long it climbs; a longer climb ends lower. The
# rows' names have warm-ups at the paper's size (1,000, 4,000, 12,000), here 100, 400 and 1,200. Rows A to C tell the noise.

# %% tags=["active-ipynb"]
# everywhere = everything[everything["corpus"] == "multi30k"]
# sweep = everywhere[
#     everywhere["group"].isin(["base", "schedule"]) & (everywhere["seed"] == 1)
# ]
# bleu = sweep.pivot(
#     index="training.lr_scale", columns="training.warmup", values="validation.bleu"
# )
# peaks = [
#     [1000 * peak_rate(96, warmup, lr_scale) for warmup in bleu.columns]
#     for lr_scale in bleu.index
# ]
# places = list(bleu.columns), list(bleu.index)
# panels = [
#     ("BLEU: best in the middle", bleu.values, *places),
#     ("peak rate, thousandths", peaks, *places),
# ]
# plotting.heatmaps(
#     panels,
#     across=2,
#     width=3.6,
#     height=3,
#     values=True,
#     labels=("updates of warm-up", "lr_scale"),
# )
# swept = learned(multi30k[multi30k["group"].isin(["A", "B", "C", "base", "schedule"])])
# rows = swept[swept["group"] == "schedule"]["row"].unique()
# compare(swept, rows)["log perplexity"].round(3)

# %% [markdown]
# The middle is the best of nine. Five of the others translate, and all five have a worse perplexity, beyond what seeds explain. (1,200 updates of warm-up leave 300.) Height alone does not decide: after 1,200 updates of warm-up a peak of 0.0118 does harm and yet translates, while after 100 updates 0.0102 ruins everything.
#
# So these two numbers cannot be picked at random, nor one without the other. **This does not show that the paper's 4,000 is right for its size.**

# %% [markdown] tags=["question-23"]
# ## How much data saturates a given architecture?
#
# Three sizes ($d_{model}$ and $d_{ff}$ halved or doubled together, unlike the rows above), three seeds each, on all pairs, every third (`every=3`) and every ninth. Every run has the same number of updates, so that each pair of a ninth is seen 24 times,
# and each of all pairs two to three times. This shows what new sentences are worth at this budget, not where an architecture trained to its
# end has enough.

# %% tags=["active-ipynb"]
# shares = multi30k[multi30k["group"].isin(["base", "data"])]
# means = shares.pivot_table("validation.bleu", "model.d_model", "every")[[9, 3, 1]]
# sizes = {48: "narrow", 96: "base", 192: "wide"}
# plotting.lines(
#     [1 / every for every in means.columns],
#     {
#         f"{sizes[d_model]}, d_model {d_model}": list(row)
#         for d_model, row in means.iterrows()
#     },
#     "share of the training pairs",
#     "BLEU",
#     "from a third to all no change passes",
#     log="x",
#     markers=True,
# ).set_xticks([1 / 9, 1 / 3, 1], ["1/9", "1/3", "1"])
# shares = shares.replace({"row": {"base": "base,every=1"}})
# next_fewer = {"1": "3", "3": "9", "9": "9"}  # the last stands beside itself
# fewer = {row: row[:-1] + next_fewer[row[-1]] for row in shares["row"]}
# gains = beside(shares, "validation.bleu", fewer).round(2)
# gains.rename(lambda row: f"{row}, minus {fewer[row]}")

# %% [markdown]
# From a ninth (3,223 pairs) to a third the gain passes for base and wide. From a third to all no change passes, up or
# down, not even the two points that the wide model loses in each seed.
#
# ## Deep models
#
# Two runs with four layers, one with the norms before the sub-layers ([notebook 03](03_stacks.ipynb)), one with a quarter of the rate, minus the four layers that failed (row N=8):

# %% tags=["active-ipynb"]
# rows = ["N=8,norm_first=True", "N=8,factor=0.25"]
# tried = multi30k[multi30k["group"].isin(["base", "A", "B", "C", "depth"])]
# compare(tried, rows).round(2)

# %% [markdown]
# One seed each, but many times the noise. **Depth alone is not to blame** for the failure: both changes let four layers learn.

# %% [markdown] tags=["question-07"]
# ## Which parts can I drop when my problem is simple?
#
# The bundled corpus is simple: a strict grammar, one right translation for each sentence. On it the base of the shorter runs was trained without $W_V$, without the softmax, without the residual paths, and with one head.

# %% tags=["active-ipynb"]
# columns = ["validation.perplexity", "validation.bleu", "parameters", "seed"]
# bundled.set_index("row")[columns].round(2)

# %% [markdown]
# One run each: a few points prove nothing. **Without $W_V$, without softmax or with one head** the model learns to translate. ($W_O$ may do the work of $W_V$.)
#
# **Without the residual paths it did not learn to translate** at this rate ([03](03_stacks.ipynb) asks why).

# %% [markdown]
# ## What is to be learned
#
# - In a table of variations at one learning rate, a row can be low because of that rate: after 1,500 updates two rows had failed, and one of them (N=8, one seed) learned at a quarter of it.
# - After 1,500 updates narrow models and short keys lose, as in the paper; dropout does harm, against the paper. Little of the paper's order shows; in another base, after more than twice the updates, most of it does.
# - In the longer runs three seeds resolve six hundredths of a nat; in BLEU, after the correction, not 1.5 points. Most of the paper's rows lie closer.
#
# `transformer variations --corpus multi30k` trains Table 3, `--rows A B` two of its groups, `--rows heads schedule depth simple` what readers ask;
# `--corpus bundled --rows endless data length` draws pairs from the grammar.

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Count the parameters of a Transformer outside its embedding matrix, which is shared by encoder, decoder and output. Attention has no biases, the feed-forward network has two, and a LayerNorm
# has a gain and a bias.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.variations import check_parameters
#
#
# def parameters(N, d_model, d_ff, h, d_k, d_v):
#     """sizes -> how many numbers are learned in the two stacks"""
#     ...
#
#
# check_parameters(parameters)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def parameters(N, d_model, d_ff, h, d_k, d_v):
#     attention = 2 * d_model * h * (d_k + d_v)
#     feed_forward = 2 * d_model * d_ff + d_ff + d_model
#     norm = 2 * d_model
#     encoder = attention + feed_forward + 2 * norm
#     decoder = 2 * attention + feed_forward + 3 * norm
#     return N * (encoder + decoder)
# ```
#
# $W_Q$ and $W_K$ have $d_{model} \cdot h \cdot d_k$ numbers each, $W_V$ and $W_O$ $d_{model} \cdot h \cdot d_v$. With $h \cdot d_k$ constant the count does not depend on $h$: rows A.
# </details>
#
# **2.** Write Holm's correction. The smallest of $n$ p values is multiplied by $n$, the next by $n - 1$, and so on; a larger p never ends below a smaller one, and none
# above 1. The answers stand in the order of the questions.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.variations import check_holm
#
#
# def holm(p):
#     """list of p values -> list of corrected ones"""
#     ...
#
#
# check_holm(holm)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def holm(p):
#     corrected, largest = [0.0] * len(p), 0.0
#     for place, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
#         largest = max(largest, p[i] * (len(p) - place))
#         corrected[i] = min(largest, 1.0)
#     return corrected
# ```
#
# Multiplying all by $n$ (Bonferroni) is safe as well and finds less: once the smallest has passed, only $n - 1$ chances for a false alarm are left.
# </details>
#
# **3.** Write Spearman's rank correlation of two lists without equal numbers: the usual correlation, of the places that the numbers take in their own list.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.variations import check_rank_correlation
#
#
# def rank_correlation(here, there):
#     """two lists of as many numbers -> a number from -1 to 1"""
#     ...
#
#
# check_rank_correlation(rank_correlation)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def rank_correlation(here, there):
#     ranks = [torch.tensor(values).argsort().argsort().double() for values in (here, there)]
#     a, b = (places - places.mean() for places in ranks)
#     return (a @ b / (a.norm() * b.norm())).item()
# ```
#
# `argsort` gives the order; sorting that order again gives each number its place.
# </details>

# %% [markdown]
# ## Next
#
# [18 Parsing](18_parsing.ipynb) gives the same model another task.
