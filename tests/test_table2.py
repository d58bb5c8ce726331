"""Table 2 in small: what is shared and what is chosen, kinds of positions, what the runs say."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import SENTENCES, assert_close, batch, small_bundled
from sacrebleu.metrics import BLEU

from transformer.core.analysis import counts_at, paired_bootstrap
from transformer.core.records import flatten, read_rows, table, write_rows
from transformer.core.scores import bleu, bleu_of_counts, ngram_counts
from transformer.corpora import read_bundled, read_corpus
from transformer.experiments import positions, table2
from transformer.fast.model import TransformerConfig
from transformer.fast.search import KeyValueCache
from transformer.models.families import build
from transformer.optimizer import learning_rate
from transformer.positions import sinusoids
from transformer.views import families

SIZES = TransformerConfig(
    12, d_model=16, d_ff=32, N=2, h=2, P_drop=0.0, max_positions=40
)
BUNDLED = table2.COMPARISONS["bundled"]


# What the families share


@pytest.mark.parametrize("corpus", table2.COMPARISONS)
def test_families_are_of_one_size_and_share_all_else(corpus):
    models = table2.COMPARISONS[corpus].models
    table2.check_sizes(models)
    for name in ("vocab_size", "P_drop", "max_positions"):
        assert len({getattr(c, name) for c in models.values()}) == 1
    wide = replace(models["transformer"], d_ff=4 * models["transformer"].d_ff)
    with pytest.raises(ValueError, match="more than 10% .*transformer"):
        table2.check_sizes({**models, "transformer": wide})


@pytest.mark.parametrize("family", BUNDLED.models)
def test_the_peak_is_the_rate_asked_for(family):
    job = table2.Plan(BUNDLED, "bundled", (1,)).job(
        family, 0.0025, 100, 7, updates=1000
    )
    lr_scale, d_model = job.known["training.lr_scale"], job.known["model.d_model"]
    assert learning_rate(100, d_model, 100, lr_scale) == pytest.approx(0.0025)
    assert (job.known["what"], job.known["training.updates"]) == ("choice", 1000)


def test_an_unknown_family_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match="unknown family 'gru': choose rnn-attention, transformer"
    ):
        table2.main(
            families=("rnn", "gru"), folder=tmp_path, record=tmp_path / "x.json"
        )


# What is chosen


def chosen(merit, **changes):
    """The peaks and warm-ups that are tried, in order, where merit(peak, warm-up) is the BLEU, and
    the best."""
    comparison = replace(BUNDLED, rates=(1, 2, 4), warmups=(30, 10), **changes)
    tried = {}
    while choices := table2.next_choices(comparison, tried):
        tried |= {choice: merit(*choice) for choice in choices}
    return list(tried), table2.best_of(tried)


def test_peaks_are_tried_until_the_best_lies_inside_then_warm_ups():
    def peaks(merit):
        found, _ = chosen(lambda rate, warmup: merit(rate))
        return [rate for rate, warmup in found if warmup == 30]

    assert peaks(lambda rate: -abs(rate - 2)) == [1, 2, 4]
    assert peaks(lambda rate: -abs(rate - 7)) == [1, 2, 4, 8, 16]
    assert peaks(lambda rate: -abs(rate - 0.6)) == [1, 2, 4, 0.5, 0.25]
    assert peaks(lambda rate: rate) == [1, 2, 4, 8, 16, 32]  # at most six
    found, best = chosen(lambda rate, warmup: -abs(rate - 2) - abs(warmup - 10))
    assert found[3:] == [(2, 10)] and best == (2, 10)


def test_jobs_come_family_by_family_and_seed_by_seed():
    some = {name: BUNDLED.models[name] for name in ("rnn", "bias")}
    plan = table2.Plan(replace(BUNDLED, models=some), "bundled", (1, 2))
    rows, names, alphas = [], [], []
    while jobs := plan.next_jobs(rows):
        job = jobs[0]
        names.append(job.name)
        found = (
            {}
            if job.known["rate"] == 0.005
            else {"validation.bleu": 1000 * job.known["rate"]}
        )
        rows.append(
            {**job.known, "test.alpha": 1.2, **found}
        )  # one without a score diverged
        if job.known["what"] == "run":
            alphas.append(job.do.args[1].args[1])
    tuned = [
        f"{{}}-{rate}-1-1000"
        for rate in (
            "0.00125-300",
            "0.0025-300",
            "0.005-300",
            "0.0025-100",
            "0.0025-600",
        )
    ]
    assert names == [
        *(name.format("rnn") for name in tuned),
        "rnn-0.0025-300-1-4000",
        *(name.format("bias") for name in tuned),
        "bias-0.0025-300-1-4000",
        "rnn-0.0025-300-2-4000",
        "bias-0.0025-300-2-4000",
    ]
    assert alphas == [None, None, 1.2, 1.2]


def test_minutes_count_training_only(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(table2.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(table2.time, "process_time", lambda: clock[0] / 2)

    def slow(model):
        clock[0] += 1000
        return {"validation_loss": 1.0}

    validate, log = table2.make_timed_validator(lambda *given: slow, None, None, 0), []
    for update, seconds in (
        (10, 30),
        (20, 30),
        (30, 300),
        (40, 30),
        (42, 6),
    ):  # one is disturbed
        clock[0] += seconds
        log.append({"update": update, **validate(None)})
    first = {
        "update": 10,
        "validation_loss": 1.0,
        "wall_seconds": 30,
        "cpu_seconds": 15,
    }
    assert log[0] == first and table2.minutes(log) == {
        "minutes.wall": 2.1,
        "minutes.cpu": 1.05,
    }


# Kinds of positions


def model_of(places):
    torch.manual_seed(2)
    model = build(positions.placed(SIZES, places)).double().eval()
    if places == "bias":
        for layer in [*model.encoder.layers, *model.decoder.layers]:
            torch.nn.init.normal_(layer.self_attention.bias.weight)
    return model


@pytest.mark.parametrize("places", positions.ADDED)
def test_word_by_word_equals_all_at_once(places):
    model, source = model_of(places), batch()
    target = batch([row[::-1] for row in SENTENCES])
    with torch.no_grad():
        state = model.initial_state(source, KeyValueCache)
        steps = [model.step(target[:, [t]], state) for t in range(target.shape[1])]
        assert_close(torch.stack(steps, dim=1), model(source, target))


def test_a_bias_depends_on_distance_alone_and_on_no_new_one():
    score = positions.RelativeBias(2).double()
    torch.nn.init.normal_(score.weight)
    found = score(torch.zeros(1, 2, 60, 4).double(), torch.zeros(1, 2, 60, 4).double())[
        0
    ]
    assert_close(found[:, 1:, 1:], found[:, :-1, :-1])
    assert len(found[0].unique()) == 2 * positions.REACH + 1
    assert found[0, 30, 31] != found[0, 31, 30]  # before is not after


def test_without_positions_the_encoder_sees_a_bag_of_words():
    words, order = torch.tensor([[3, 4, 5, 6]]), torch.tensor([2, 0, 3, 1])
    for places in positions.ADDED:
        model = model_of(places)
        same = torch.allclose(
            model.encode(words)[:, order], model.encode(words[:, order])
        )
        assert same == (places == "none")


def test_shifted_sines_begin_anywhere_in_training_and_at_zero_later():
    added, sines = positions.ShiftedPositions(200, 8), sinusoids(200, 8).float()
    x = torch.zeros(50, 5, 8)
    assert torch.equal(added.eval()(x, start=3)[0], sines[3:8])
    found = added.train()(x)
    begin = [(sines == rows[0]).all(dim=1).nonzero().item() for rows in found]
    assert all(torch.equal(rows, sines[i : i + 5]) for i, rows in zip(begin, found))
    assert len(set(begin)) > 20 and max(begin) <= positions.SHIFT


# What the runs say

TEXTS = [text for _, text in read_corpus("bundled", "test")[:60]]
WORSE = [text.replace(" der ", " die ").replace("t", "d", 1) for text in TEXTS]
BAD = [" ".join(text.split()[1:]) for text in WORSE]


def test_the_paired_bootstrap_is_sacrebleus():
    from sacrebleu.significance import PairedTest

    counts = [ngram_counts(texts, TEXTS) for texts in (WORSE, BAD)]
    few = bleu(BAD[10:30], TEXTS[10:30]).score
    assert bleu_of_counts(counts_at(counts[1], slice(10, 30))) == pytest.approx(few)
    both, metrics = [("a", WORSE), ("b", BAD)], {"BLEU": BLEU(references=[TEXTS])}
    _, found = PairedTest(both, metrics, None, "bs")()
    ours = paired_bootstrap(*counts)
    assert ours["p"] == pytest.approx(found["BLEU"][1].p_value, abs=2e-3)
    assert ours["low"] < ours["difference"] < ours["high"]


def test_parts_of_the_harder_set_are_what_its_lines_say():
    labels = [example.constructions for example in read_bundled("hard")]
    for part, label in (("combinations", "unseen-combination"), ("longer", "longer")):
        assert all(label in some for some in labels[table2.PARTS["hard"][part]])


def test_parts_have_the_bleu_and_the_length_of_their_sentences():
    found = table2.parts_of(ngram_counts(BAD, TEXTS), "test")
    expected = BLEU().corpus_score(BAD, [TEXTS])
    assert found == {
        "part.test": pytest.approx(expected.score, abs=1e-3),
        "length.test": pytest.approx(expected.sys_len / expected.ref_len, abs=1e-4),
    }


@pytest.mark.system
def test_a_run_is_searched_with_every_alpha(monkeypatch, tmp_path):
    """The outputs are made up: with an alpha of 1.2 all is right, with others ends are missing."""
    right = {e.source: e.target for e in read_bundled("train")[:4]}

    def outputs(model, tokenizer, sources, beam, alpha=0.6):
        return [right[s] if alpha == 1.2 else right[s][:-8] for s in sources]

    small_bundled(monkeypatch, lambda split: read_bundled("train")[:4])
    monkeypatch.setattr(table2, "translate", outputs)
    model = replace(SIZES, vocab_size=300, max_positions=200)
    small = replace(
        BUNDLED,
        models={"rotary": model},
        tests=("test",),
        alphas=(0.0, 1.2, 1.8),
        training=replace(BUNDLED.training, updates=2),
    )
    row = (
        table2.Plan(small, "bundled", (1,))
        .job("rotary", 0.01, 1, 1)
        .do(tmp_path, "cpu")
    )
    assert (
        row["validation.alpha"] == row["test.alpha"] == 1.2 and row["test.bleu"] == 100
    )
    assert (
        row["test.by_alpha.1.2.part.test"] == 100
        and row["test.by_alpha.1.2.length.test"] == 1
    )
    assert (
        0 < row["test.by_alpha.0.part.test"] < 90
        and row["test.by_alpha.0.length.test"] < 1
    )
    assert row["test.ngrams.output"] == row["test.ngrams.reference"]


def test_differences_are_those_of_the_parts(tmp_path):
    """Of a family that is worse in the harder set's second part alone."""
    rows = []
    for family, lost in (("transformer", 0), ("rotary", 2)):
        for seed in (1, 2, 3):
            counts = {"output": np.full(1000, 12), "reference": np.full(1000, 12)}
            for n in range(1, 5):
                counts[f"{n}"] = np.full(1000, 13 - n)
                counts[f"{n}"][700:] -= lost
                counts[f"{n}"][:seed] = 0  # what is left to chance
            counts = {name: column.tolist() for name, column in counts.items()}
            rows.append(
                {
                    "name": f"{family}-{seed}",
                    "what": "run",
                    "family": family,
                    "seed": seed,
                    "command": "",
                    "commit": "",
                    "hardware": "",
                    "corpus": "bundled",
                    **flatten({"hard": {"ngrams": counts}}),
                }
            )
    write_rows(tmp_path / "x.json", rows)
    for _ in range(2):  # the second time nothing is added
        table2.summarize(tmp_path / "x.json", 3)
    found = read_rows(tmp_path / "x.json")
    by = {row["part"]: row for row in found if row["what"] == "difference"}
    assert (
        by["hard.longer"]["bleu.difference"] < -15 < by["hard"]["bleu.difference"] < -4
    )
    assert by["hard"]["bleu.p"] < 0.001 and len(found) == 6 + 3
    assert by["hard.combinations"]["bleu.difference"] == pytest.approx(0, abs=1e-9)


def test_families_are_compared_when_all_seeds_are_there_and_only_stable_ones():
    def runs(**seeds):
        return [
            {
                "family": family,
                "seed": seed,
                **({} if found else {"diverged": "at once"}),
            }
            for family, own in seeds.items()
            for seed, found in enumerate(own, 1)
        ]

    whole = runs(transformer=(1, 1, 1), bias=(1, 0, 1), rotary=(0, 1, 0))
    found = table2.comparable(whole, 3)
    assert [(row["family"], row["seed"]) for row in found] == [
        ("transformer", 1),
        ("transformer", 2),
        ("transformer", 3),
        ("bias", 1),
        ("bias", 3),
    ]
    assert table2.comparable(runs(transformer=(1, 1, 1), bias=(1, 1)), 3) == []
    for few in (runs(bias=(1, 1, 1)), runs(transformer=(1,)), []):
        assert table2.comparable(few, len(few)) == []


def test_groups_by_length_are_of_like_size_and_split_no_length():
    words = [len(source.split()) for source, _ in read_corpus("bundled", "test")]
    found = families.buckets(words)
    assert sorted(i for *_, places in found for i in places) == list(range(len(words)))
    assert all(a[1] < b[0] for a, b in zip(found, found[1:]))
    counts = [len(places) for *_, places in found]
    assert len(found) == 6 and max(counts) < 3 * min(counts)
    assert families.buckets([5] * 9 + [9])[0] == (5, 5, list(range(9)))


def test_kept_families_compare_like_with_like():
    """Same updates and tokens, parameters within 10%; peak and warm-up are the best of those tried,
    and the best peak lies inside.
    """
    rows, setting = table("table2-*"), ["rate", "training.warmup"]
    for _, own in rows.groupby("corpus"):
        runs, choices = own[own["what"] == "run"], own[own["what"] == "choice"]
        if runs.empty:
            continue  # a record in the making
        assert runs["updates"].nunique() == 1
        assert (runs.groupby("seed")["tokens"].nunique() == 1).all()
        assert runs["parameters"].max() <= 1.1 * runs["parameters"].min()
        for family, whole in runs.groupby("family"):
            (best,) = set(map(tuple, whole[setting].values))
            tried = choices[choices["family"] == family]
            assert best == tried.set_index(setting)["validation.bleu"].idxmax()
            assert (
                len(tried) >= 5 and tried["rate"].min() < best[0] < tried["rate"].max()
            )


@pytest.mark.parametrize(
    "record, part, column",
    [
        ("table2-bundled", "hard", "part.hard"),
        ("table2-bundled", "hard at 1.8", "hard.by_alpha.1.8.part.hard"),
        ("table2-multi30k", "test at 0.6", "test.by_alpha.0.6.part.test"),
    ],
)
def test_kept_differences_are_those_of_the_runs(record, part, column):
    """Means over seeds minus the Transformer's, as all families have the same seeds."""
    rows = table(record)
    means = rows[rows["what"] == "run"].groupby("family")[column].mean()
    found = rows[rows["part"] == part].set_index("family")["bleu.difference"]
    assert len(found) == len(means) - 1 and (rows["what"] == "run").sum() == 3 * len(
        means
    )
    for family, difference in found.items():
        assert difference == pytest.approx(
            means[family] - means["transformer"], abs=0.06
        )
