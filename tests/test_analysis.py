"""What tables of runs say: spread over seeds, rows beside rows, how their order agrees with the paper's."""

import numpy as np
import pandas as pd
import pytest

from transformer.core.analysis import (
    COUNTED,
    agreement,
    agreement_with_interval,
    along,
    beside,
    by_chance,
    compare,
    holm,
    learned,
    limit_differences,
    limit_means,
    minus,
    parser_scores,
    spread,
)


def test_spread():
    runs = pd.DataFrame({"row": ["a", "a", "b", "c"], "x": [1.0, 3.0, 2.5, np.nan]})
    found = spread(runs, "row", ["x"])
    assert list(found["x"]) == ["2.00 ± 1.41", "2.50", "-"] and list(found["runs"]) == [
        2,
        1,
        1,
    ]


def test_two_rows_in_a_model_of_row_and_seed_are_a_paired_t_test():
    stats = pytest.importorskip("scipy.stats")
    values = {"base": [1.0, 2.5, 2.9], "row": [1.7, 3.9, 3.4]}
    runs = pd.DataFrame(
        [
            {"row": row, "seed": seed, "use": use}
            for row, own in values.items()
            for seed, use in enumerate(own)
        ]
    )
    found, expected = (
        beside(runs, "use", "base").loc["row"],
        stats.ttest_rel(values["row"], values["base"]),
    )
    interval = expected.confidence_interval(0.95)
    assert found.tolist() == pytest.approx(
        [
            np.mean(values["row"]) - np.mean(values["base"]),
            interval.low,
            interval.high,
            expected.pvalue,
        ]
    )
    with pytest.raises(ValueError, match="second seed"):
        beside(runs[runs["seed"] == 0], "use", "base")


def test_rows_without_a_common_seed_are_not_compared():
    values = [
        ("a", 1, 10.0),
        ("a", 2, 12.0),
        ("b", 1, 10.5),
        ("b", 2, 12.2),
        ("base", 3, 0.0),
        ("base", 4, 2.0),
        ("c", 3, 1.0),
        ("c", 4, 3.3),
    ]
    runs = pd.DataFrame(values, columns=["row", "seed", "use"])
    with pytest.raises(ValueError, match="must be connected by seeds"):
        beside(runs, "use", "base")


def test_holm_multiplies_the_smallest_by_all_and_stays_in_order():
    assert holm(np.array([0.04, 0.01, 0.03, 0.9])) == pytest.approx(
        [0.09, 0.04, 0.09, 0.9]
    )


def test_rows_beside_rows_of_their_own():
    runs = pd.DataFrame(
        [
            {
                "row": row,
                "seed": seed,
                "use": value + 0.1 * seed + 0.01 * (-1) ** seed * (row == "b"),
            }
            for row, value in (("base", 1.0), ("a", 3.0), ("b", 7.0))
            for seed in (1, 2, 3, 4)
        ]
    )
    found = beside(runs, "use", {"base": "base", "a": "base", "b": "a"})
    assert (
        found["difference"].to_dict() == pytest.approx({"a": 2.0, "b": 4.0})
        and (found["low"] < found["high"]).all()
    )


def test_rows_that_learned_are_compared_where_they_can_be():
    """A row that does not translate is left out, and perplexities compare between runs on the same sentences."""
    rows = {
        "base": ("base", 30.0, None),
        "a": ("base", 33.0, None),
        "few": ("base", 25.0, 9.0),
        "few,a": ("few", 26.0, 9.0),
        "never": ("base", 2.0, None),
        "never,a": ("never", 31.0, None),
    }
    runs = pd.DataFrame(
        [
            {
                "row": row,
                "seed": seed,
                "beside": other,
                "every": every,
                "validation.perplexity": 9.0 + seed,
                "validation.bleu": bleu + seed % 2 * (row == "a"),
            }
            for row, (other, bleu, every) in rows.items()
            for seed in (1, 2, 3)
        ]
    )
    assert set(runs["row"]) - set(learned(runs)["row"]) == {"never"}
    found = compare(learned(runs), ["a", "few", "few,a", "never,a"])
    assert found["BLEU", "difference"].to_dict() == pytest.approx(
        {"a": 3 + 2 / 3, "few": -5.0, "few,a": 1.0}
    )
    assert found["log perplexity", "difference"].isna().to_dict() == {
        "a": False,
        "few": True,
        "few,a": False,
    }


def test_where_use_was_logged_it_says_who_learned():
    use = {
        "a": [[0.1, 1.0, 1.2], [0.0, 0.9, 1.1]],
        "b": [[0.0, 3.0, 3.0], [0.0, 1.2, 0.7]],
    }
    runs = pd.DataFrame(
        [
            {"row": row, "seed": seed, "log.use": values, "validation.bleu": 1.0}
            for row, own in use.items()
            for seed, values in enumerate(own)
        ]
    )
    assert (
        set(learned(runs)["row"]) == {"a"}
        and learned(runs.drop(columns="log.use")).empty
    )


def test_agreement_with_the_paper():
    paper = pd.Series({"a": 1.0, "b": -0.5, "c": 0.2, "d": 0.0, "not here": 9.0})
    values = {"base": 2.0, "a": 2.5, "b": 1.9, "c": 1.8, "d": 2.1}
    runs = pd.DataFrame(
        [
            {"row": row, "seed": seed, "use": value + seed}
            for row, value in values.items()
            for seed in (1, 2)
        ]
    )
    here = minus(runs, "use")
    assert here.to_dict() == pytest.approx({"a": 0.5, "b": -0.1, "c": -0.2, "d": 0.1})
    assert agreement(here, paper) == dict(signs=2, of=3, rank=pytest.approx(0.4))
    stats = pytest.importorskip("scipy.stats")
    assert agreement(here, paper)["rank"] == pytest.approx(
        stats.spearmanr(here, paper[here.index]).statistic
    )
    found = agreement_with_interval(runs, "use", paper, draws=200)
    assert (found["low"] <= found["found"]).all() and (
        found["found"] <= found["high"]
    ).all()


@pytest.mark.system
def test_random_orders_agree_as_often_as_counting_says():
    """Base is the best of three in a third of all orders, and the other two are in the paper's order in half of these."""
    paper = pd.Series({"a": 2.0, "b": 1.0})
    shares = by_chance({"signs": 2, "rank": 1.0}, paper, draws=3000)
    assert shares["signs"] == pytest.approx(1 / 3, abs=0.03) and shares[
        "rank"
    ] == pytest.approx(1 / 2, abs=0.03)
    assert by_chance({"signs": 0, "rank": -1.0}, paper, draws=100) == {
        "signs": 1.0,
        "rank": 1.0,
    }


def test_the_order_along_a_training():
    paper = pd.Series({"a": 5.0, "b": 4.0, "c": 3.0, "not here": 1.0})
    curves = {"a": [3.0, 3.0], "b": [4.0, 2.0], "c": [5.0, 1.0]}
    runs = pd.DataFrame(
        [
            {
                "row": row,
                "seed": 1,
                "log.update": [10, 20],
                "log.validation_loss": curve,
            }
            for row, curve in curves.items()
        ]
    )
    assert along(runs, paper)[1].to_dict() == pytest.approx({10: -1.0, 20: 1.0})


def test_a_parser_has_the_means_of_its_seeds_and_what_it_can_do():
    """Differences beside the runs are no runs; a baseline writes only trees."""
    runs = pd.DataFrame(
        [
            {
                "row": "all",
                "minutes": 1,
                "test.beam 4.f1": 70.0,
                "test.beam 4.malformed": 4.0,
            },
            {
                "row": "all",
                "minutes": 1,
                "test.beam 4.f1": 72.0,
                "test.beam 4.malformed": 2.0,
            },
            {"row": "grammar", "minutes": 1, "test.f1": 60.0, "test.malformed": 0.0},
            {"row": "all", "what": "difference", "test.beam 4.f1": 0.0},
        ]
    )
    whole, baseline = parser_scores(runs).to_dict("records")
    assert (whole["parser"], whole["seeds"], whole["beam 4"], whole["malformed"]) == (
        "all",
        2,
        71,
        3,
    )
    assert np.isnan(whole["only trees"]) and np.isnan(baseline["beam 4"])
    assert (baseline["only trees"], baseline["seeds"]) == (60, 1)


def test_differences_within_limits_are_paired_by_seed_and_means_have_students_interval():
    """As scipy has both; p is after Holm's correction over the three."""
    stats = pytest.importorskip("scipy.stats")
    scores = {
        ("recipe", ""): [40.1, 40.9, 39.8],
        ("recipe", "tight."): [40.4, 40.8, 40.1],
        ("other", ""): [39.0, 41.0, 40.2],
        ("other", "tight."): [41.5, 41.4, 41.0],
    }
    runs = pd.DataFrame(
        [
            {"row": row, "seed": seed}
            | {
                f"{limit}{name}": scores[row, limit][seed]
                for limit in ("", "tight.")
                for name in (COUNTED, "validation.bleu", "test.bleu")
            }
            for row in ("other", "recipe")
            for seed in range(3)
        ]
    )
    means = limit_means(runs)
    for (row, limit), own in scores.items():
        interval = stats.t.interval(0.95, 2, np.mean(own), stats.sem(own))
        assert tuple(
            means.loc[(row, "10" if limit else "50"), ["low", "high"]]
        ) == pytest.approx(interval)
    found = limit_differences(runs)
    pairs = {
        "other": (("other", "tight."), ("recipe", "tight.")),
        "other, 10 - 50": (("other", "tight."), ("other", "")),
        "recipe, 10 - 50": (("recipe", "tight."), ("recipe", "")),
    }
    tests = [
        stats.ttest_rel(scores[one], scores[other]) for one, other in pairs.values()
    ]
    assert list(found.index) == list(pairs)
    assert found["p"].to_numpy() == pytest.approx(
        holm(np.array([test.pvalue for test in tests]))
    )
    intervals = [test.confidence_interval(0.95) for test in tests]
    assert found[["low", "high"]].to_numpy() == pytest.approx(
        np.array([(x.low, x.high) for x in intervals])
    )
