"""Table 3 as a list: the paper's numbers, what a row changes, its small copy, parts taken out, and its jobs."""

from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
import torch
from helpers import close

from transformer.attention import causal_mask
from transformer.core.weights import count_parameters
from transformer.corpora import read_corpus
from transformer.corpora.tokenizer import Tokenizer
from transformer.experiments import rates, table3
from transformer.experiments.questions import ENDLESS, QUESTIONS
from transformer.experiments.table3 import base_of, choose, job_of, sample
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.search import beam_search, greedy_search
from transformer.models.families import parameters_of
from transformer.models.pretrained import save
from transformer.models.search import translate
from transformer.variations import (
    PAPER,
    SMALL,
    TABLE_3,
    WITHOUT,
    NoPath,
    Trial,
    millions,
    model_of,
    scaled,
    scores_as_weights,
    vocabulary_that_fits,
    with_changes,
    without_values,
)

ROWS = [*TABLE_3, *QUESTIONS]
BY_NAME = {row.name: row for row in ROWS}
CPU = torch.device("cpu")

pytestmark = pytest.mark.usefixtures("one_thread")


# The list


def test_the_papers_numbers():
    """Table 3 as published: perplexity, BLEU, millions of parameters, row by row."""
    published = """4.92 25.8 65 | 5.29 24.9 | 5.00 25.5 | 4.91 25.8 | 5.01 25.4 | 5.16 25.1 58 | 5.01 25.4 60
        | 6.11 23.7 36 | 5.19 25.3 50 | 4.88 25.5 80 | 5.75 24.5 28 | 4.66 26.0 168 | 5.12 25.4 53 | 4.75 26.2 90
        | 5.77 24.6 | 4.95 25.5 | 4.67 25.3 | 5.47 25.7 | 4.92 25.7 | 4.33 26.4 213"""
    rows = [[float(number) for number in row.split()] for row in published.split("|")]
    assert [[n for n in row[3:6] if n is not None] for row in TABLE_3] == rows
    assert (
        "".join(row.group for row in TABLE_3)
        == "base" + "A" * 4 + "BB" + "C" * 7 + "DDDD" + "E" + "big"
    )


def test_the_paper_has_the_papers_sizes():
    assert (
        PAPER.model == TransformerConfig(37_000) and PAPER.training.updates == 100_000
    )
    big = with_changes(PAPER, BY_NAME["big"].changes)
    assert (
        big.model == TransformerConfig.preset("big", vocab_size=37_000)
        and big.training.updates == 300_000
    )


def test_names_are_unique_and_can_be_folders():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names) and not {row.group for row in ROWS[1:]} - {
        "big"
    } & set(names)
    assert all(not set(name) & set("/\\:*?[] ") for name in names)


def test_a_row_changes_what_it_names():
    def everything(e):
        return {
            **vars(e),
            **asdict(e.model),
            **asdict(e.training),
            "model": None,
            "training": None,
            "given": None,
        }

    for base in (PAPER, SMALL):
        before = everything(base)
        for row in ROWS:
            after = everything(with_changes(base, scaled(row.changes, base)))
            differ = {name for name in before if before[name] != after[name]}
            assert differ <= set(row.changes) and bool(differ) == bool(row.changes), (
                row.name
            )


def test_a_field_that_nobody_has():
    with pytest.raises(ValueError, match="there is no setting 'heads'"):
        with_changes(PAPER, dict(heads=3))


# Parameters


@pytest.mark.parametrize(
    "row", [row for row in TABLE_3 if row.millions], ids=lambda row: row.name
)
def test_parameters(row):
    """By the sizes of the matrices; and with 41,100 types every row but big is the paper's to rounding."""
    c = with_changes(PAPER, row.changes).model
    d, d_k, d_v = c.d_model, c.d_k or c.d_model // c.h, c.d_v or c.d_model // c.h
    attention, ffn, norm = 2 * d * c.h * (d_k + d_v), 2 * d * c.d_ff + c.d_ff + d, 2 * d
    layers = c.N * (3 * attention + 2 * ffn + 5 * norm)

    def count(vocab_size):
        return (vocab_size * d + layers) / 1e6

    assert millions(row) == pytest.approx(count(37_000), abs=1e-9)
    assert (round(count(41_100)) == row.millions) == (row.name != "big")
    least, most = vocabulary_that_fits(row)
    assert least <= 41_100 <= most or row.name == "big"
    for vocab_size, inside in (
        (least - 1, False),
        (least, True),
        (most, True),
        (most + 1, False),
    ):
        assert (-0.5 <= count(vocab_size) - row.millions < 0.5) == inside


# In small


@pytest.mark.parametrize(
    "name, expected",
    [
        ("h=1", dict(h=1, d_k=64, d_v=64)),
        ("h=32", dict(h=32, d_k=2, d_v=2)),
        ("d_k=16", dict(d_k=2)),
        ("N=2", dict(N=1)),
        ("d_model=1024", dict(d_model=128, d_k=16, d_v=16)),
        ("d_ff=1024", dict(d_ff=128)),
        ("P_drop=0.0", dict(P_drop=0.0)),
        ("epsilon_ls=0.2", dict(epsilon_ls=0.2)),
        ("positions=learned", dict(positions="learned")),
        ("big", dict(d_model=128, d_ff=512, h=16, P_drop=0.3, updates=1500)),
        ("N=8,factor=0.5,short", dict(N=4, lr_scale=0.25, updates=375)),
        (
            "big,tried=2",
            dict(d_model=128, d_ff=512, h=16, P_drop=0.3, lr_scale=1.0, updates=375),
        ),
        ("narrow,drawn=3000", dict(d_model=32, d_ff=128, drawn=3000)),
        ("without=W_V", dict(without="W_V")),
        (
            "positions=learned,longest=8",
            dict(positions="learned", longest=8, drawn=ENDLESS),
        ),
    ],
)
def test_scaled(name, expected):
    base = replace(SMALL, training=replace(SMALL.training, updates=1500))
    assert scaled(BY_NAME[name].changes, base) == expected


def test_the_schedule_is_scaled_around_the_base():
    base = replace(SMALL, training=replace(SMALL.training, warmup=400, lr_scale=0.5))
    assert scaled(dict(lr_scale=2.0, warmup=12_000), base) == dict(
        lr_scale=1.0, warmup=1200
    )


def test_scaled_to_the_paper_is_the_paper():
    assert all(scaled(row.changes, PAPER) == row.changes for row in ROWS)


@torch.no_grad()
def test_every_row_makes_a_model():
    source, target, seen = (
        torch.randint(3, 50, (2, 7)),
        torch.randint(3, 50, (2, 5)),
        set(),
    )
    for e in [
        with_changes(SMALL, {**scaled(row.changes, SMALL), "vocab_size": 50})
        for row in ROWS
    ]:
        if (e.model, e.without) in seen:  # rows that change training or data only
            continue
        seen.add((e.model, e.without))
        logits = model_of(e, CPU).eval()(source, target)
        assert logits.shape == (2, 5, 50) and logits.isfinite().all(), e
    assert len(seen) > 20


def test_rows_of_a_cost():
    """A keeps the parameters; every row of C and B changes them."""
    counts = {
        row.name: parameters_of(with_changes(SMALL, scaled(row.changes, SMALL)).model)
        for row in choose(["A", "B", "C"])
    }
    assert len({counts[row.name] for row in choose(["A"])}) == 1
    assert len({counts[row.name] for row in choose(["B", "C"])}) == 10


def test_bases():
    assert base_of("wmt14") == PAPER
    assert base_of("bundled", precision="bf16") == replace(
        SMALL, corpus="bundled", training=replace(SMALL.training, precision="bf16")
    )


# Parts taken out


def test_without_softmax_by_a_loop(seed):
    q, k, v = (torch.randn(1, 2, n, 4, dtype=torch.float64) for n in (3, 4, 4))
    mask = torch.tensor([[True, False, True, True], [False] * 4, [True] * 4])
    output, weights = scores_as_weights(q, k, v, mask)
    for i in range(2):
        for t in range(3):
            seen = [s for s in range(4) if mask[t, s]]
            expected = sum(
                (q[0, i, t] @ k[0, i, s] / 2 * v[0, i, s] for s in seen),
                torch.zeros(4).double(),
            )
            assert close(output[0, i, t], expected / max(1, len(seen)))
    assert close(weights @ v, output)


def test_without_a_path(seed):
    residual, x = (
        NoPath(8, P_drop=0.0).double(),
        torch.randn(2, 3, 8, dtype=torch.float64),
    )
    assert close(residual(x, torch.sin), residual.norm(x.sin()))


def test_without_values_equals_an_identity_matrix(seed):
    heads, x = (
        without_values(16, 2).double(),
        torch.randn(1, 4, 16, dtype=torch.float64),
    )
    answer = heads(x, x, x, causal_mask(4))
    heads.W_V = torch.nn.Linear(16, 16, bias=False).double()
    with torch.no_grad():
        heads.W_V.weight.copy_(torch.eye(16))
    assert close(heads(x, x, x, causal_mask(4)), answer)


@pytest.mark.parametrize("part", WITHOUT)
def test_a_part_is_taken_out_everywhere(part, seed):
    """Caches still agree with none, nobody looks ahead, `translate` does not bring the part back."""
    tokenizer = Tokenizer.train(["a b c d e f g h i"], 300)
    c = TransformerConfig(
        tokenizer.vocab_size, d_model=16, d_ff=32, N=2, h=2, P_drop=0.0
    )
    model = model_of(Trial(model=c, without=part), CPU).eval()
    whole = model_of(Trial(model=c), CPU)
    assert count_parameters(whole) - count_parameters(model) == (
        6 * 16 * 16 if part == "W_V" else 0
    )
    source, target = torch.randint(3, 40, (2, 6)), torch.randint(3, 40, (2, 5))
    logits = model(source, target)
    torch.testing.assert_close(model(source, target[:, :3]), logits[:, :3])
    for row, tokens in zip(source, greedy_search(model, source)):
        again = model(row[None], torch.tensor([[c.bos_id, *tokens[:-1]]])).argmax(
            dim=-1
        )
        assert again[0].tolist() == tokens
    texts = ["a b c", "i h g f", "b"]
    with torch.no_grad():
        for beam in (1, 2):
            plain = [search_texts(model, tokenizer, text, beam) for text in texts]
            assert translate(model, tokenizer, texts, beam=beam) == plain


def search_texts(model, tokenizer, text, beam):
    """What a plain search says for one text."""
    source = torch.tensor([[*tokenizer.encode(text), tokenizer.eos_id]])
    tokens = (
        beam_search(model, source, beam)[0][0].tokens
        if beam > 1
        else greedy_search(model, source)[0]
    )
    return tokenizer.decode(tokens)


def test_no_such_part():
    with pytest.raises(
        ValueError,
        match="cannot take 'norm' out of the model: choose W_V, softmax, residual",
    ):
        model_of(Trial(without="norm"), CPU)


# Runs


def test_sample(own_files):
    base = Trial(source_file=own_files[0], target_file=own_files[1])
    everything = list(sample(base, "train"))
    short = list(sample(replace(base, longest=6), "train"))
    assert short == [
        (s, t) for s, t in everything if len(s.split()) < 7 and len(t.split()) < 7
    ]
    assert 0 < len(short) < len(everything)
    assert list(sample(replace(base, drawn=4, longest=2), "validation")) == list(
        sample(base, "validation")
    )


@pytest.mark.system
def test_what_is_drawn_begins_with_the_bundled_corpus(tmp_path):
    base = Trial("bundled", folder=tmp_path / "run", drawn=5)
    for _ in range(2):  # drawn, then read
        assert list(sample(base, "train")) == read_corpus("bundled", "train")[:5]
    with pytest.raises(ValueError, match="go with --corpus bundled"):
        list(sample(replace(base, corpus="multi30k"), "train"))


def test_short_and_long_sentences_are_scored_apart(tmp_path, monkeypatch):
    pairs = [("a b", "c"), ("a b c d e f g h i j k l m", "n"), ("o", "p q")]
    tokenizer = Tokenizer.train([text for pair in pairs for text in pair], 300)
    c = TransformerConfig(
        tokenizer.vocab_size, d_model=16, d_ff=32, N=1, h=2, max_positions=40
    )
    save(Transformer(c), tmp_path, tokenizer)
    monkeypatch.setattr(table3, "stream_pairs", lambda e, split: iter(pairs))
    own = dict(source_file=tmp_path, target_file=tmp_path)
    found = table3.score(Trial(folder=tmp_path, model=c, longest=7, **own), CPU)[
        "validation"
    ]
    assert (
        found["sentences"] == 3
        and found["perplexity"] > 1
        and 0 <= found["bleu"]["score"] <= 100
    )
    assert {part: found[part]["sentences"] for part in ("short", "double")} == dict(
        short=2, double=1
    )


def test_a_job_is_a_row_with_a_seed():
    """Its settings are known beforehand, flat; the same list always makes the same jobs."""
    job = job_of(BY_NAME["narrow,drawn=3000"], SMALL, 2, "a test")
    assert job.name == "narrow,drawn=3000-seed2" and job.command == "a test"
    known = SimpleNamespace(
        **{name.replace(".", "_"): value for name, value in job.known.items()}
    )
    assert (known.row, known.beside, known.group, known.seed) == (
        "narrow,drawn=3000",
        "base,drawn=3000",
        "data",
        2,
    )
    assert (known.model_d_model, known.training_updates, known.drawn, known.corpus) == (
        32,
        3400,
        3000,
        "multi30k",
    )
    assert not any(isinstance(value, dict) for value in job.known.values())


def test_choose():
    assert choose() == TABLE_3 == choose(["base", "A", "B", "C", "D", "E", "big"])
    assert [row.name for row in choose(["d_k=32", "E"])] == [
        "base",
        "d_k=32",
        "positions=learned",
    ]
    assert (
        len(choose(["schedule"])) == 9
        and len(choose(["data"])) == 18
        and len(choose(["length"])) == 3
    )
    assert [row.name for row in choose(["narrow,drawn=1000"])] == [
        "narrow,drawn=1000",
        "base,drawn=1000",
    ]
    assert [row.name for row in choose(["depth"])] == [
        "base",
        "N=8",
        "N=8,norm_first=True",
        "norm_first=True",
    ]
    assert len(choose(["simple"])) == 6 and choose(["base"]) == [TABLE_3[0]]
    with pytest.raises(
        ValueError,
        match=r"unknown row 'F': choose groups \(base, A, B, C, D, E, big, rates, tuned",
    ):
        choose(["A", "F"])


# Rates


def result(row, use=3.0, losses=(4.0, 3.0, 2.0, 1.0)):
    updates = [10 * (1 + i) for i in range(len(losses))]
    return {
        "row": row,
        "log.use": [0.0, use, use],
        "log.update": updates,
        "updates": updates[-1],
        "log.validation_loss": list(losses),
    }


@pytest.mark.parametrize(
    "fails, factor",
    [
        (set(), 2),
        ({"base,tried=4"}, 1),
        ({"N=8,tried=2", "big,tried=1"}, 0.5),
        ({"big,tried=2", "base,tried=2"}, 0.5),
    ],
)
def test_the_common_rate_is_the_largest_at_which_all_learn_and_base_at_twice(
    fails, factor
):
    def run(base, names, seeds):
        return [
            result(name, use=0.9) if name in fails else result(name) for name in names
        ]

    assert rates.common_factor(run, SMALL) == factor


def test_no_rate_lets_all_learn():
    with pytest.raises(ValueError, match="try lower ones"):
        rates.common_factor(
            lambda base, names, seeds: [
                {"row": name, "diverged": "nan"} for name in names
            ],
            SMALL,
        )


def test_a_row_is_trained_again_where_another_rate_was_better_after_a_quarter():
    asked = []

    def run(base, names, seeds):
        asked.append((names, seeds))
        return [
            result(name, losses=[5.0, 3.9 if name == "big,factor=0.25,short" else 4.1])
            for name in names
        ]

    found = rates.tune(run, SMALL, [result("N=8"), result("big")])
    assert [row["row"] for row in found] == ["big,factor=0.25"] and all(
        seeds == (1,) for _, seeds in asked
    )
    assert asked[0][0] == ["N=8,factor=0.5,short", "big,factor=0.5,short"]
    assert all(name in BY_NAME for names, _ in asked for name in names)
