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
# Which of its parts does the Transformer need? Section 6.2 changes one thing at a time and trains again. Table 3 has twenty rows. Here
# they are one list, a function that applies a row to a base of any size, and a command that trains all of them.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import math
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import nn

from transformer.attention import MultiHeadAttention, scaled_dot_product
from transformer.model import Parts, Transformer, TransformerConfig
from transformer.pretrained import parameters_of
from transformer.recipes import RECIPES
from transformer.runs import Experiment, new_model
from transformer.stacks import Residual
from transformer.training import TrainingConfig

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# import pandas as pd
# from IPython.display import display
#
# from transformer import plotting
# from transformer.experiments.analysis import (
#     FIGURES, beside_the_paper, compare, differences, judge, spread
# )
# from transformer.experiments.records import table
# from transformer.figures import comparisons
# from transformer.optimizer import peak_rate
#
# pd.set_option("display.max_colwidth", None)
# torch.set_num_threads(1)      # the models below are too small to share between cores

# %% [markdown]
# ## One list
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
    Row("big", "big",
        dict(d_model=1024, d_ff=4096, h=16, P_drop=0.3, updates=300_000),
        4.33, 26.4, 213),
]

# %% tags=["active-ipynb"]
# paper, figures = pd.DataFrame(TABLE_3).set_index("name"), ["perplexity", "bleu"]
# minus = (paper[figures] - paper[figures].loc["base"]).round(2)
# paper[["group", *figures]].join(minus.add_suffix(", minus base"))

# %% [markdown]
# What the paper found, then. Two layers instead of six cost 2.1 BLEU, the most of any row; eight gain none. A width of 256, or no dropout, costs more
# than one. One head costs 0.9, and 32 heads 0.4: the best number lies between. Keys of 16 cost 0.7. More width helps a little, learned positions change
# almost nothing. And label smoothing of 0.1 makes perplexity worse, and BLEU better by 0.5.

# %% [markdown]
# One number for each row: the paper does not say how far two runs of *one* row lie apart.
# That is why seeds come in below.
#
# Readers ask for more variations, and they fit the same form (`transformer/experiments/questions.py`). Besides the settings of model and
# training they change three of a run: how many pairs are drawn from the grammar of the bundled corpus instead of reading a corpus, how long the sentences of training may be, and what is taken
# out of the model.

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
        vocab_size=3000, d_model=64, d_ff=256, N=3, h=8, P_drop=0.1, max_positions=256),
    training=TrainingConfig(
        updates=3400, batch_tokens=2000, warmup=340, factor=0.5, save_every=85,
        keep=5),
)
LARGE = Trial(
    "multi30k",
    model=TransformerConfig(
        vocab_size=6000, d_model=256, d_ff=1024, N=6, h=8, P_drop=0.1,
        max_positions=256),
    training=TrainingConfig(
        updates=3000, batch_tokens=4096, warmup=800, save_every=100, keep=5),
)


# %% [markdown]
# For Table 3 the paper did not average weights (Section 6.2), so only the last are kept: `keep=1`.
#
# `PAPER` is the paper's base model. Training it twenty times is out of reach here. `SMALL` has a fifty-sixth of its parameters outside the
# embeddings, and 1,500 updates, so that three seeds of every row fit on a CPU; `LARGE` is for a GPU. **Deviation: a smaller base, another corpus, far
# fewer updates.**
#
# A field may belong to the model, to its training, or to the trial itself. A name that none of them has is refused.

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
        "a row changes fields of TransformerConfig, TrainingConfig or Trial")


# %%
def with_changes(e: Trial, changes: dict) -> Trial:
    """A `Trial` with some fields, of its model, its training or its own, replaced.

    e stays as it is.
    """
    def own(part):
        return {name: value for name, value in changes.items()
                if holder(e, name) is part}

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
# (notebook [08](08_model.ipynb)) all eleven models with a count are built in a moment, without memory for their numbers.

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
# minus = counts - counts.loc["base"]
# display(counts.join(minus.add_suffix(", minus base")).round(1))
# off = (minus["here"] - minus["paper"]).drop(["d_model=256", "d_model=1024", "big"])
# assert off.abs().max() <= 1

# %% [markdown]
# With 37,000 types every row but big is a little smaller here than in the paper. Where only layers change, the difference from base agrees to
# rounding (two rounded numbers may be off by one together). With $d_{model} = 1024$ it falls short by two million. So what is missing grows with
# $d_{model}$, as an embedding matrix does. Which vocabulary would explain the paper's column?

# %%
def vocabulary_that_fits(row: Row) -> tuple[int, int]:
    """The smallest and largest vocabulary with which a row's count, in millions,
    rounds to the paper's."""
    d_model = with_changes(PAPER, row.changes).model.d_model
    without = millions(row, vocab_size=3)  # a begin, an end and a padding mark
    least, beyond = (
        3 + math.ceil(1e6 * (row.millions + half - without) / d_model)
        for half in (-0.5, 0.5))
    return least, beyond - 1


# %% tags=["active-ipynb"]
# fits = {row.name: vocabulary_that_fits(row) for row in TABLE_3 if row.millions}
# for name, (least, most) in fits.items():
#     print(f"{name:12} {least:7,} to {most:7,} types")
# ranges = pd.DataFrame(fits, index=["least", "most"]).T.drop("big")
# print(f"all but big: {ranges['least'].max():,} to {ranges['most'].min():,}")
# assert ranges["least"].max() < ranges["most"].min() and fits["big"][1] < 37_000

# %% [markdown]
# One vocabulary of about 41,100 types (or 37,000 types and some 4,100 further vectors of width $d_{model}$) brings every row except big to the paper's number. The paper
# speaks of "about 37,000", and does not say what else it counts. **Big fits no such vocabulary**: with 37,000 it already has one million too many. It may
# have been counted otherwise; the paper does not tell.

# %% [markdown]
# ## The same list, in small
#
# A row of Table 3 is an idea ("half as many layers"), and an idea can be applied to a base of another size. One rule does it: **a number is
# multiplied by what the field's base value is here, divided by what it is in the paper.** With $d_{model} = 96$ for 512, a row's 1,024
# becomes 192. Rates, which both bases share, stay as they are, and so do words like "learned".

# %% [markdown]
# Each field is scaled by itself, so proportions between fields differ. Warm-up takes 27% of the updates here, and 4% in the paper; 32 heads have 3 numbers
# each, not 16. And the learning rate, $d_{model}^{-0.5} \cdot warmup^{-0.5}$ at its peak, is higher: 0.0051 here, 0.0007 in the paper (the cell below computes both).
# Where a row does otherwise than in the paper, look here first.

# %%
def setting(e: Trial, name: str):
    """The value of a `Trial`'s field; d_k and d_v, where not given, are d_model / h."""
    value = getattr(holder(e, name), name)
    if value is None and name in ("d_k", "d_v"):
        return e.model.d_model // e.model.h
    return value


# %%
def scaled(changes: dict, base: Trial) -> dict:
    """A row's changes, made for the paper's base, carried over to another:
    each number by the ratio of the bases' values.

    In small no run gets more updates than the base, which spares big two thirds of its."""
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
# pd.DataFrame({
#     "in small": [scaled(row.changes, SMALL) or "-" for row in TABLE_3],
#     "parameters outside the embeddings, M": [
#         (parameters_of(e.model) - e.model.vocab_size * e.model.d_model) / 1e6
#         for e in small.values()],
# }, index=list(small)).round(2)

# %% tags=["active-ipynb"]
# for name, e in (("the paper", PAPER), ("here", SMALL)):
#     peak = peak_rate(e.model.d_model, e.training.warmup, e.training.factor)
#     print(f"peak of the learning rate, {name}: {peak:.4f}")
# assert scaled(dict(h=32, d_k=16, d_v=16), SMALL) == dict(h=32, d_k=2, d_v=2)
# assert scaled(dict(d_model=1024, P_drop=0.3), PAPER) == dict(d_model=1024, P_drop=0.3)

# %% [markdown]
# ## A part taken out
#
# Three of the readers' variations are no setting of the model. Without $W_V$ a head averages slices of the vectors themselves. Without the
# softmax the scores are the weights, divided by the number of keys so that sums stay small. Without the residual path a sub-layer's
# input reaches the next one only through the sub-layer. These models compute the plain way, not the faster one of notebook 11, so their minutes do not
# compare. (And `transformer evaluate` would put the part back: they are scored here.)

# %%
def scores_as_weights(q, k, v, mask=None):
    """Attention whose weights are the scores divided by the number of keys a query may
    see: output (B, h, T, d_v) and weights (B, h, T, S)."""
    scores = scaled_dot_product(q, k)
    seen = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    count = seen.sum(dim=-1, keepdim=True).clamp(min=1)
    weights = scores.masked_fill(~seen, 0) / count
    return weights @ v, weights


# %%
class NoPath(Residual):
    """`Residual` without the path around the sub-layer."""

    def forward(self, x, sublayer):
        return self.norm(self.dropout(sublayer(x)))


# %%
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


# %%
def model_of(e: Trial, device: torch.device) -> Transformer:
    """The model of a `Trial` with fresh weights; what it goes without is another part.

    ValueError for a part that cannot be taken out.
    """
    if e.without is None:
        return new_model(e, device)
    if e.without not in WITHOUT:
        raise ValueError(
            f"cannot take {e.without!r} out of the model: choose {', '.join(WITHOUT)}")
    torch.manual_seed(e.training.seed)
    return Transformer(e.model, WITHOUT[e.without]).to(device)


# %% [markdown]
# ## The runs
#
# A run is one of [notebook 16](16_translation.ipynb): a vocabulary is learned from its training sentences, then the model. `transformer variations` trains every
# row with every seed, each run in a process of its own, and goes on where it was stopped (`transformer/experiments/table3.py` and `runner.py`). All rows
# are trained with the first seed before any is trained with the second, so whoever stops halfway has a run of every row. What came out is kept in `data/runs`, a row a run.
#
# What Table 3 reports: perplexity per token, and BLEU of the model's own translations. **Deviation: they are greedy** (the paper used its beam of four). All rows
# of Table 3 have the same vocabulary, so their perplexities compare. A model trained on fewer sentences has a vocabulary of its own, so against base its BLEU
# alone compares. What a row is compared with is mostly base, but a small model on a ninth of the sentences stands beside the base model on that ninth.

# %% [markdown]
# ## When do two rows differ?

# %% [markdown]
# A seed draws the first weights, the dropout, and the order of the batches. Two runs of one row differ by their seeds. But with the *same* seed two rows
# see the same batches in the same order, and a seed that is bad for one is often bad for the other. So rows are compared **seed by seed**: a run minus
# the run of base with the same seed.

# %% [markdown]
# For $n$ seeds that makes $n$ differences. Their mean is the result, and their *standard deviation* $s$ tells how far chance moves one of them. From three
# it is known badly: three that agree by chance would make any difference look sure. So a row counts with its own $s$, but at least with the middle one
# (the median) of all rows. The mean of $n$ differences then deviates by $s / \sqrt{n}$.
#
# **A mean difference under two of these is called none**: there may be none, or one too small for so few runs. Until some row has three seeds nothing is judged.

# %% [markdown]
# Of forty such differences about two pass by chance. And they are not independent: all are measured from the same runs of base, so a lucky base shifts every row
# at once. Nor does $s$ know of other validation sentences: it is about seeds alone.

# %% [markdown]
# `judge` applies this rule. Four rows made up: a usual one, one whose seeds agree by chance, a wild one, and one that is clearly worse.

# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# made_up = {
#     "usual": [-1.0, 0.0, 1.0], "lucky": [0.7, 0.7, 0.7],
#     "wild": [-5, 10, 4], "worse": [-3.0, -2.0, -4.0],
# }
# values = pd.DataFrame(made_up).melt().set_index("variable")["value"]
# for row in judge(values, "bleu").itertuples():
#     print(f"{row.Index:6} {row.difference:+.2f} ± {row.deviation:.2f} {row.verdict}")

# %% [markdown]
# ## Results in small
#
# Every row that was recorded: how long it was trained, and what came out on the 1,014 validation pairs. Here ± is the standard deviation of one run over seeds.

# %% tags=["active-ipynb"]
# everything = table("variations*")
# runs = everything[everything["validation.bleu"].notna()]
# multi30k = runs[runs["corpus"] == "multi30k"]
# bundled = runs[runs["corpus"] == "bundled"]
# for corpus, own in runs.groupby("corpus"):
#     cost = own.groupby("row", sort=False).agg({
#         "updates": "first", "epochs": "first", "minutes.cpu": "mean",
#         "parameters.outside_embeddings": "first"})
#     print(f"{corpus}: {' '.join(own['command'].unique())}")
#     print(*own["hardware"].unique(), sep="\n")
#     display(spread(own, "row", list(FIGURES.values())).join(cost.round(1)))

# %% [markdown]
# Beside the paper's Table 3, as differences from base, seed by seed; now ± is the deviation of their mean. **Same way**: better than base here and there,
# or worse. **Reversed**: better in one, worse in the other. **Only here**: in the paper hardly a difference (0.3 BLEU, 0.05 of perplexity or less). **None**:
# less than two deviations here. The two bases are not alike, neither in size nor in their corpus, so it is the direction that compares, not the height.
#
# How small a difference could be seen? With three seeds about one BLEU point, and half a point of perplexity. Of the paper's differences in BLEU only those of N=2, d_model=256 and
# P_drop=0.0 are larger than a point. So "none" speaks against the paper for N=2, whose 2.1 would have been seen, and in the other rows against nothing.

# %% tags=["active-ipynb"]
# for figure in FIGURES:
#     display(beside_the_paper(multi30k, TABLE_3, figure).round(2).rename_axis(figure))

# %% tags=["active-ipynb"]
# def in_percent(figure):
#     """{row: (difference from base, two of its deviations, the paper's)} in percent."""
#     found = beside_the_paper(multi30k, TABLE_3, figure).dropna(subset="difference")
#     base = multi30k[multi30k["row"] == "base"][FIGURES[figure]].mean()
#     there = 100 * found["paper"] / paper.loc["base", figure]
#     columns = 100 * found["difference"] / base, 200 * found["deviation"] / base, there
#     return dict(zip(found.index, zip(*columns)))
#
#
# left, right = plotting.new_axes(4.5, 5.5, columns=2)
# titles = {"perplexity": "perplexity (left is better)", "bleu": "BLEU (right is better)"}
# for ax, (figure, title) in zip((left, right), titles.items()):
#     comparisons.differences(
#         in_percent(figure), f"{title}, minus base, in %", "difference ± 2 deviations",
#         "the paper", ax=ax, limit=30).set_xlim(-32, 32)

# %% [markdown]
# Here a run sees its corpus between two and three times (big eight), the paper's base model some twenty times. **Dropout** keeps a model from learning its
# sentences by heart. In so few rounds there is probably little to keep it from: without dropout both figures are better than base's here, in the paper worse. And with more of it,
# 0.2, BLEU falls by 6.6. It need not be so on this corpus: notebook [16](16_translation.ipynb) trains another model on it for 62 rounds, with that very 0.2, and does well.

# %% [markdown]
# **The deepest model and big hardly translate**, with BLEU of 4 to 7 (their loss still falls, slowly). "N=8" has four layers here, and notebook 16's model has four as well. So is it the paper's order of norms
# with this base's high rate? The rows on deep models, below, ask that. Big is no deeper than base, but wider, and it has a dropout of 0.3. After what 0.2 does, that is probably its trouble: "wide" below, with the same widths, 8 heads, a dropout of 0.1 and a third of the updates, loses four
# and a half points, where big loses sixteen. [Notebook 14](14_training.ipynb) asks in small why such trainings ignore their source, one factor at a time.

# %% [markdown] tags=["question-09"]
# ### How many heads are best, and why do too many hurt?
#
# Rows A have more or fewer heads at the same cost, so keys are narrower or wider. Rows B keep eight heads and narrow their keys alone.

# %% tags=["active-ipynb"]
# heads = multi30k[multi30k["group"].isin(["base", "A", "B"])].copy()
# heads["key"] = heads["model.d_k"].fillna(heads["model.d_model"] / heads["model.h"])
# shown = spread(heads, ["row", "model.h", "key"], ["validation.bleu"]).reset_index()
# shown["the paper's BLEU"] = shown["row"].map(paper["bleu"])
# shown

# %% tags=["active-ipynb"]
# width = {"h=1": 1, "h=4": 4, "base": 8, "h=16": 16, "h=32": 32}
# for ax, figure in zip(plotting.new_axes(4.5, 3.2, columns=2), FIGURES):
#     percent = {**in_percent(figure), "base": (0, 0, 0)}
#     here, reach, theirs = zip(*(percent[row] for row in width))
#     counts, curves = list(width.values()), {"here": here, "the paper": theirs}
#     plotting.lines(counts, curves, "heads", f"{figure}, minus base, in %",
#                    log="x", markers=True, ax=ax)
#     ax.errorbar(counts, here, yerr=reach, fmt="none", ecolor="grey", capsize=2)
#     ax.set_xticks(counts, counts)
#     ax.minorticks_off()

# %% [markdown]
# Grey: two deviations of the difference. **From four to sixteen it hardly matters** for BLEU, in the paper as here; perplexity is a little worse with sixteen. **32 lose in both figures**, and one head loses in perplexity.

# %% [markdown]
# Why do 32 hurt? Each has keys of three numbers. Rows B try that alone: eight heads as before, but keys of three numbers (d_k=16; they have a sixth fewer parameters, too). They lose no less than 32 heads do. That suggests
# that short keys are to blame, not the number: three numbers may be too few to tell many places apart. The paper guesses from the same rows that a dot product
# may not be the best way to compare. Why does one head hurt? Its key is wide, but there is one set of weights: whatever a word needs, it must be fetched with
# the same look. That is the paper's reasoning for several heads (Section 3.2.2); no row here tests it.

# %% [markdown]
# Parameters do not depend on the number of heads. Time does: the table above has 4 CPU minutes for one head and 6.6 for 32, which compute 32 tables of weights.

# %% [markdown]
# ### What else readers ask
#
# The other groups, each row beside the one it should be compared with.

# %% tags=["active-ipynb"]
# def show_group(runs, group, *rows):
#     found = compare(runs)
#     chosen = (found["", "group"] == group) | found.index.isin(rows)
#     display(found[chosen].drop(columns=[("", "group")]).round(2))

# %% [markdown] tags=["question-20"]
# **Why are learned positions no better than the sine?** Row E: the paper found no difference. Here learned positions are slightly better, by 0.7 of perplexity and one BLEU point. That point is only
# just beyond two deviations: it counted as none until the rows on shares of the data, below, had all their seeds and moved the median. Attention needs a vector for each place that it can tell from the others, and from which queries and keys can compute
# a distance. The sine is such a table from the start (notebook [07](07_positions.ipynb)). So learning has little to add.
#
# The paper kept the sine because it might serve on longer sentences than any in training. A learned table has vectors there that no step ever changed. So both kinds
# are trained on pairs of at most twelve words, and translate short sentences and longer ones:

# %% tags=["active-ipynb"]
# longest = multi30k[multi30k["longest"].notna()]
# parts = [f"validation.{part}.{figure}" for figure in ("bleu", "perplexity")
#          for part in ("short", "long")]
# display(spread(longest, "row", parts))
# print("learned minus sine:")
# pd.concat({part: judge(differences(longest, part), part) for part in parts}).round(2)

# %% [markdown]
# The sine has no advantage on the longer ones, at least not here: three seeds show no difference in any column. How can untrained vectors do? They are random, so
# they differ from each other, as the trained ones do. And most words can probably be found by what they are, without their places. But this test is mild: sentences of Multi30k are short, and
# of those with more than twelve words nine in ten have fewer than twenty (in the validation split). So most of their words stand at places that training did reach.

# %% [markdown] tags=["question-22"]
# ### The hyperparameters look random. Are they?
#
# The learning rate is swept, one seed each: `factor` multiplies it, and `warmup` is how long it climbs; a longer climb ends lower. The rows name warm-ups in the paper's count: 1,000, 4,000 and 12,000 are
# 100, 400 and 1,200 updates here. In the picture, left BLEU, right the highest rate:

# %% tags=["active-ipynb"]
# show_group(multi30k, "schedule")
# sweep = everything[
#     everything["group"].isin(["base", "schedule"])
#     & (everything["corpus"] == "multi30k")
#     & (everything["seed"] == 1)
# ]
# bleu = sweep.pivot(
#     index="training.factor", columns="training.warmup", values="validation.bleu"
# ).fillna(0)  # a run that diverged has none
# peaks = [
#     [1000 * peak_rate(SMALL.model.d_model, warmup, factor) for warmup in bleu.columns]
#     for factor in bleu.index
# ]
# panels = [
#     ("BLEU", bleu.values, list(bleu.columns), list(bleu.index)),
#     ("highest rate, thousandths", peaks, list(bleu.columns), list(bleu.index)),
# ]
# plotting.heatmaps(
#     panels,
#     across=2,
#     width=3.6,
#     height=3,
#     values=True,
#     labels=("updates of warm-up", "factor"),
# );

# %% [markdown]
# **Our base's pair is the best of nine** (23.8 BLEU, then twice 21.9; perplexity 12.9, then 16.0). Around it lie a slope and a cliff. With a lower rate a run is slow: in 1,500 updates it gets less far.
# With a higher one, or one that climbs too soon, three of nine runs end without having learned to translate at all, with a BLEU under two.

# %% [markdown]
# Height alone does not decide. After 1,200 updates of warm-up a rate of 0.0118 does harm and yet translates; after 100 updates 0.0102 ruins everything. A slow climb is what makes a high rate
# possible (notebook [12](12_optimizer.ipynb) shows the same). And the model matters: with the rate that suits three layers, four learn far too slowly (below, "Deep models").

# %% [markdown]
# So these two numbers cannot be picked at random, nor one without the other. **That the paper's 4,000 is right for its size this does not show**: the factor 1 is the paper's, but 400 updates are our choice (27% of all; the paper's 4% would be 60, and here even 100 fail). And the grid is coarse: its steps are of three or four times.
#
# Smaller steps, of two times, in other numbers (4 or 16 heads, half or twice the inner width) showed no difference in BLEU above, though some in perplexity. That is how round numbers such as 8 and 2,048 can do well.

# %% [markdown] tags=["question-23"]
# ### How much data saturates a given architecture?
#
# Three sizes (narrow: $d_{model}$ 48, $d_{ff}$ 192; base: 96, 384; wide: 192, 768), three seeds each, on all pairs, every third and every ninth.
# Every run has the same number of updates, so on a ninth of the pairs each is seen nine times as often (24 times, not between two and three). This
# shows what new sentences are worth at this budget, and not where a model that is trained to its end has enough of them.

# %% tags=["active-ipynb"]
# show_group(multi30k, "data")
# shares = multi30k[multi30k["group"].isin(["base", "data"])]
# scores = shares.pivot(index=["model.d_model", "seed"], columns="every",
#                       values="validation.bleu")
# gains = pd.DataFrame({"a ninth to a third": scores[3] - scores[9],
#                       "a third to all": scores[1] - scores[3]})
# display(gains.round(2))
# gains.groupby("model.d_model").agg(["mean", "sem"]).round(2)

# %% tags=["active-ipynb"]
# means = scores.groupby("model.d_model").mean()[[9, 3, 1]]
# names = {48: "narrow", 96: "base", 192: "wide"}
# plotting.lines([1 / every for every in means.columns],
#                {names[d_model]: list(row) for d_model, row in means.iterrows()},
#                "share of the training pairs", "BLEU", log="x", markers=True)

# %% [markdown]
# From a ninth (3,223 pairs) to a third all three gain, the wider the more: 2.05, 3.84 and 5.45 BLEU. From a third to all, narrow and base gain 0.73 and 0.47, under two deviations. **So at this budget more than a third of the corpus shows no gain for
# them**; it seems to be time that is short, not sentences. (Notebook 16 trains on all pairs for twenty times as many tokens, and gets to 40. That is another model, with a beam and averaging, so a hint only.)

# %% [markdown]
# **The wide model gets worse** from a third to all: by 2.4, 1.8 and 1.9 BLEU with the three seeds. When there was one seed we put that down to chance. It is not, and we cannot explain it. Perhaps a wide model must meet a
# sentence more often before it pays: eight times with a third, between two and three with all. Whether more updates would turn it round, no run here tells.

# %% [markdown]
# On a ninth it does worst: it learns the sentences by heart (its perplexity on new ones is 57, base's 40). The middle size has the highest BLEU on every share, beyond two deviations; by perplexity narrow is better on a ninth.

# %% [markdown]
# ### Deep models
#
# Four layers, with the norms before the sub-layers (notebook [03](03_stacks.ipynb)), and with a quarter of the rate, both beside the four layers that failed:

# %% tags=["active-ipynb"]
# show_group(multi30k, "depth")

# %% [markdown]
# One seed each, but the differences are large. **Depth alone is not to blame.** With the norms first the same four layers train, and end better than base. With the paper's order
# of norms, a quarter of the rate brings back most of the BLEU that was lost.

# %% [markdown] tags=["question-07"]
# ### Which parts can I drop when my problem is simple?
#
# The bundled corpus is simple: a strict grammar, one right translation for each sentence. On it the same small base is trained without $W_V$, without the softmax, without the paths around the sub-layers, and with one head:

# %% tags=["active-ipynb"]
# show_group(bundled, "simple", "h=1")

# %% [markdown]
# One run each, so how far two equal ones lie apart is not known here. **Without $W_V$, without softmax, or with one head** the model still learns to translate. Each has some four BLEU points fewer than the one run of base (87), which may be a lucky one; perplexities are
# 1.35 to 1.38, base's 1.33, and all were still learning. $W_V$ and the matrix behind it, $W_O$, are two in a row, so $W_O$ may do most of the work, though without $W_V$ each head sees only its own 12 of 96 numbers. And the softmax is not the only way to weights that depend on content: plain scores do it, too.

# %% [markdown]
# **Without the paths it does not learn to translate**, at this rate (a lower one was not tried). After 1,500 updates it knows little more than how frequent words are: its perplexity is 331; word frequencies alone would have 399. Notebook [03](03_stacks.ipynb) has a picture of the reason: with LayerNorm alone the gradient arrives, but the input is no
# longer readable. So whoever has a simple problem can take one head, or spare $W_V$ or the softmax (which has no parameters to save); two at once were not tried. What that costs on real text these runs do not tell. On Multi30k one head (row A, above) lost a little perplexity, and no BLEU that three seeds show.

# %% [markdown]
# ## What is to be learned
#
# **As in the paper**: short keys lose (d_k=16, and 32 heads, whose keys are as short). A narrow model loses (d_model=256). One head loses in perplexity. And the more
# label smoothing, the worse the perplexity.

# %% [markdown]
# **Otherwise than in the paper**: fewer layers show no loss, though N=2 is the paper's largest loss in BLEU. Dropout does harm. A wider inner layer gains nothing, and big, the paper's best, loses sixteen points. This fits a model that goes
# through its corpus two or three times: it has little time to make use of more parameters, and knows nothing by heart that dropout would have to keep it from. That is a guess; runs ten times as long would test it. For depth, the order of norms and the rate explain more (Deep models).
#
# **What three seeds cannot tell** is nearly everything under a BLEU point, and so most of Table 3's rows in BLEU. The paper's rows lie as close together; whether its own seeds do, nobody knows.

# %% [markdown]
# `transformer variations --corpus multi30k --workers 2` trains Table 3. `--rows A B` runs two groups, `--rows schedule length data depth` those of the readers,
# `--rows simple h=1 --corpus bundled --folder runs/variations-bundled` the last one; `--seeds 1` takes one seed. Ctrl-C stops, and the same command goes on. On a machine with several GPUs each
# takes a run.
#
# ## Checks
#
# **A row changes what it names, and nothing else**, in the paper's size and in small:

# %% tags=["active-ipynb"]
# for row in TABLE_3:
#     for base, changes in ((PAPER, row.changes), (SMALL, scaled(row.changes, SMALL))):
#         e = with_changes(base, changes)
#         for part, whole in ((e.model, base.model), (e.training, base.training)):
#             before = vars(whole)
#             differ = {
#                 name for name, value in vars(part).items() if value != before[name]
#             }
#             assert differ <= set(changes), (row.name, differ)
#         assert all(setting(e, name) == changes[name] for name in changes), row.name

# %% [markdown]
# **Row A has as many parameters whatever the number of heads**, to the last one.

# %% tags=["active-ipynb"]
# for base in (PAPER, SMALL):
#     rows = [row for row in TABLE_3 if row.group in ("base", "A")]
#     trials = [with_changes(base, scaled(row.changes, base)) for row in rows]
#     assert len({parameters_of(e.model) for e in trials}) == 1

# %% [markdown]
# ## Exercise
#
# Replace `...` and run the cell; it stays silent when you are right. Keys of 16 instead of 64 save how many parameters in the paper's base
# model? Count by hand: which matrices become smaller, and how many of them are there?

# %% tags=["active-ipynb"]
# saved = ...
# if saved is not ...:
#     assert saved == round(1e6 * (millions(TABLE_3[0]) - millions(TABLE_3[5])))

# %% [markdown]
# <details><summary>Solution</summary>
#
# `saved = 18 * 2 * 512 * 8 * (64 - 16)`: 6 layers of the encoder with one attention, 6 of the decoder with two, in each of the 18 $W_Q$ and $W_K$,
# from 512 numbers to $8 \cdot 64$ or $8 \cdot 16$.
# </details>

# %% [markdown]
# ## Next
#
# [18 Parsing](18_parsing.ipynb) gives the same model another task. In Colab the next notebook imports this module from the installed package; to
# try changes of your own, clone the repository and install it with `pip install -e .`.
