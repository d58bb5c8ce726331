"""What tables of runs say, by hand: deviations, verdicts, differences seed by seed, directions beside the paper."""

import statistics

import numpy as np
import pandas as pd
import pytest

from transformer.experiments.analysis import (
    agreement,
    agreement_with_interval,
    along,
    beside,
    beside_the_paper,
    compare,
    differences,
    holm,
    judge,
    minus,
    spread,
)
from transformer.variations import TABLE_3, Row

BLEU, PERPLEXITY = "validation.bleu", "validation.perplexity"
SAME = dict(every=1, longest=None, group="C", beside="base")


def series(values):
    return pd.Series([x for some in values.values() for x in some], [row for row in values for _ in values[row]])


def runs_of(row, perplexity, bleu, deviation=3**0.5, **known):
    """Three runs of a row; beside a row of deviation 0 the mean difference deviates by 1."""
    return [{**SAME, "row": row, "seed": seed, PERPLEXITY: perplexity + d, BLEU: bleu + d, **known}
            for seed, d in enumerate((-deviation, 0, deviation), 1)]


def test_a_row_has_its_own_deviation_or_the_median():
    values = {"a": [1.0, 2.0, 4.0], "b": [10.0, 10.1, 9.9], "c": [7.0, 7.5, 6.5], "d": [3.0]}
    found, own = judge(series(values), BLEU), [statistics.stdev(values[row]) for row in "abc"]
    expected = {"a": own[0] / 3**0.5, "b": 0.5 / 3**0.5, "c": 0.5 / 3**0.5, "d": 0.5}
    assert found["deviation"].to_dict() == pytest.approx(expected) and own[0] > own[2] == 0.5
    few = judge(series({"a": [1.0, 1.2], "d": [3.0]}), BLEU)  # two runs may agree by chance
    assert few["difference"]["a"] == pytest.approx(1.1) and few["deviation"].isna().all()
    assert set(few["verdict"]) == {"few runs"}


@pytest.mark.parametrize("value, verdicts", [
    (1.3, ("better", "worse")), (1.1, ("none", "none")), (0.0, ("none", "none")),
    (-1.1, ("none", "none")), (-1.3, ("worse", "better"))])
def test_a_difference_under_two_deviations_is_none(value, verdicts):
    values = series({"row": [value - 1, value, value + 1]})  # deviation 1 / sqrt(3), two of it 1.155
    for figure, verdict in zip((BLEU, PERPLEXITY), verdicts):
        found = judge(values, figure).loc["row"]
        assert found["verdict"] == verdict and found["deviation"] == pytest.approx(3**-0.5)
    assert judge(series({"row": [0.0, 0.0, 0.0]}), BLEU)["verdict"]["row"] == "none"


def test_rows_are_compared_seed_by_seed():
    """A seed that only one of the two has is left out, and what shifts every run of a seed alike is no chance."""
    runs = [*runs_of("base", 10.0, 20.0, 0.0), *runs_of("N=2", 9.0, 19.0, 0.1)]
    shifted = pd.DataFrame([{**run, BLEU: run[BLEU] - 10 * (run["seed"] == 3)} for run in runs])
    found = compare(shifted).loc["N=2", "bleu"]
    assert tuple(found) == (pytest.approx(-1.0), pytest.approx(0.1 / 3**0.5), "worse")
    assert len(differences(shifted[1:], BLEU)) == 2 and compare(shifted[1:])["", "seeds"]["N=2"] == 2


def test_every_row_is_compared():
    """By hand: each difference has a deviation of 1, three seeds a row; perplexity only of the same sentences."""
    third = dict(every=3)
    runs = pd.DataFrame([
        *runs_of("base", 10.0, 20.0, 0.0), *runs_of("d_ff=4096", 7.0, 21.5), *runs_of("base,every=3", 30.0, 12.0, **third),
        *runs_of("narrow,every=3", 34.0, 13.0, 0.0, **{**third, "beside": "base,every=3"}),
        *runs_of("narrow,every=1", 11.0, 20.0)])
    found = compare(runs)
    assert found["", "seeds"].eq(3).all() and found["", "beside"]["narrow,every=3"] == "base,every=3"
    expected = {"d_ff=4096": (-3.0, "better", 1.5, "none"), "base,every=3": (None, None, -8.0, "worse"),
                "narrow,every=3": (4.0, "worse", 1.0, "none"), "narrow,every=1": (1.0, "none", 0.0, "none")}
    for row, (perplexity, first, bleu, second) in expected.items():
        assert found.loc[row, ("bleu", "difference")] == pytest.approx(bleu) and found.loc[row, ("bleu", "verdict")] == second
        if perplexity is None:
            assert np.isnan(found.loc[row, ("perplexity", "difference")])
        else:
            assert tuple(found.loc[row, "perplexity"]) == (pytest.approx(perplexity), pytest.approx(1.0), first)
    once = compare(runs[runs["seed"] == 2])
    assert (once["bleu", "verdict"] == "few runs").all()


def test_a_wild_row_leaves_the_others_alone():
    runs = [*runs_of("base", 10.0, 20.0, 0.1), *runs_of("N=2", 12.0, 18.0, 0.1), *runs_of("N=4", 90.0, 3.0, 50.0),
            *runs_of("h=4", 10.0, 20.0, 0.2)]
    assert list(compare(pd.DataFrame(runs))["bleu", "verdict"]) == ["worse", "none", "none"]


def test_beside_the_paper():
    rows = ("base", 30.0), ("N=2", 28.0), ("P_drop=0.2", 33.0), ("h=16", 33.0), ("without=W_V", 29.0)
    runs = pd.DataFrame([run for row, bleu in rows for run in runs_of(row, 9.0, bleu, 0.1 * (row != "base"))])
    found = beside_the_paper(runs, TABLE_3, "bleu")
    assert list(found.index) == ["N=2", "P_drop=0.2", "h=16"]  # what is no row of the table stays out
    assert list(found["direction"]) == ["same way", "only here", "only here"]
    assert list(found["paper"]) == [-2.1, -0.3, 0.0]
    for paper, direction in ((-0.3, "only here"), (-0.4, "reversed"), (0.4, "same way")):
        made_up = [Row("base", "base", {}, 5.0, 20.0), Row("D", "P_drop=0.2", {}, 5.0, 20.0 + paper)]
        assert beside_the_paper(runs, made_up, "bleu")["direction"]["P_drop=0.2"] == direction
    assert beside_the_paper(runs[runs["seed"] == 1], TABLE_3, "bleu")["direction"].eq("few runs").all()


def test_spread():
    runs = pd.DataFrame({"row": ["a", "a", "b", "c"], "x": [1.0, 3.0, 2.5, np.nan]})
    found = spread(runs, "row", ["x"])
    assert list(found["x"]) == ["2.00 ± 1.41", "2.50", "-"] and list(found["runs"]) == [2, 1, 1]


def test_two_rows_in_a_model_of_row_and_seed_are_a_paired_t_test():
    stats = pytest.importorskip("scipy.stats")
    values = {"base": [1.0, 2.5, 2.9], "row": [1.7, 3.9, 3.4]}
    runs = pd.DataFrame([{"row": row, "seed": seed, "use": use}
                         for row, own in values.items() for seed, use in enumerate(own)])
    found, expected = beside(runs, "use", "base").loc["row"], stats.ttest_rel(values["row"], values["base"])
    interval = expected.confidence_interval(0.95)
    assert found.tolist() == pytest.approx([np.mean(values["row"]) - np.mean(values["base"]),
                                            interval.low, interval.high, expected.pvalue])
    with pytest.raises(ValueError, match="second seed"):
        beside(runs[runs["seed"] == 0], "use", "base")


def test_holm_multiplies_the_smallest_by_all_and_stays_in_order():
    assert holm(np.array([0.04, 0.01, 0.03, 0.9])) == pytest.approx([0.09, 0.04, 0.09, 0.9])


def test_rows_beside_rows_of_their_own():
    runs = pd.DataFrame([{"row": row, "seed": seed, "use": value + 0.1 * seed + 0.01 * (-1) ** seed * (row == "b")}
                         for row, value in (("base", 1.0), ("a", 3.0), ("b", 7.0)) for seed in (1, 2, 3, 4)])
    found = beside(runs, "use", {"base": "base", "a": "base", "b": "a"})
    assert found["difference"].to_dict() == pytest.approx({"a": 2.0, "b": 4.0}) and (found["low"] < found["high"]).all()


def test_agreement_with_the_paper():
    paper = pd.Series({"a": 1.0, "b": -0.5, "c": 0.2, "d": 0.0, "not here": 9.0})
    values = {"base": 2.0, "a": 2.5, "b": 1.9, "c": 1.8, "d": 2.1}
    runs = pd.DataFrame([{"row": row, "seed": seed, "use": value + seed} for row, value in values.items() for seed in (1, 2)])
    here = minus(runs, "use")
    assert here.to_dict() == pytest.approx({"a": 0.5, "b": -0.1, "c": -0.2, "d": 0.1})
    assert agreement(here, paper) == dict(signs=2, of=3, rank=pytest.approx(0.4))
    stats = pytest.importorskip("scipy.stats")
    assert agreement(here, paper)["rank"] == pytest.approx(stats.spearmanr(here, paper[here.index]).statistic)
    found = agreement_with_interval(runs, "use", paper, draws=200)
    assert (found["low"] <= found["found"]).all() and (found["found"] <= found["high"]).all()


def test_the_order_along_a_training():
    paper = pd.Series({"a": 5.0, "b": 4.0, "c": 3.0, "not here": 1.0})
    curves = {"a": [3.0, 3.0], "b": [4.0, 2.0], "c": [5.0, 1.0]}
    runs = pd.DataFrame([{"row": row, "seed": 1, "log.update": [10, 20], "log.validation_loss": curve}
                         for row, curve in curves.items()])
    assert along(runs, paper)[1].to_dict() == pytest.approx({10: -1.0, 20: 1.0})
