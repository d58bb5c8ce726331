"""Table 3 as a list: the paper's numbers, what a row changes, its small copy, runs that are resumed and compared."""

import contextlib
import io
import json
import math
import shutil
import signal
import statistics
import sys
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from types import SimpleNamespace

import pytest
import torch
from helpers import KILL, close

import transformer.__main__ as command_line
from transformer import hardware, runs, variations
from transformer.attention import MultiHeadAttention, causal_mask
from transformer.data import Tokenizer
from transformer.decoding import beam_search, greedy_search
from transformer.search import translate
from transformer.model import Transformer, TransformerConfig
from transformer.pretrained import parameters_of
from transformer.runs import read_log
from transformer.stacks import Residual
from transformer.training import Interrupted, TrainingConfig
from transformer.variations import (
    LARGE,
    PAPER,
    QUESTIONS,
    SMALL,
    TABLE_3,
    Trial,
    attend_without_softmax,
    base_of,
    beside_in_percent,
    beside_the_paper,
    by_seed,
    by_share,
    choose,
    compare,
    devices_for,
    direction,
    earlier_results,
    further_rows,
    has_result,
    head_rows,
    in_words,
    judge,
    millions,
    model_of,
    no_path,
    outside_embeddings,
    result_rows,
    run_trial,
    run_variations,
    sample,
    scaled,
    schedule_grid,
    share_gains,
    short_and_long,
    take_out,
    taken_out,
    trial_of,
    vocabulary_that_fits,
    with_changes,
)
from transformer.weights import count_parameters, load_weights

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
    assert "".join(row.group for row in TABLE_3) == "base" + "A" * 4 + "BB" + "C" * 7 + "DDDD" + "E" + "big"


def test_the_paper_has_the_papers_sizes():
    assert PAPER.model == TransformerConfig(37_000) and PAPER.training.updates == 100_000
    big = with_changes(PAPER, BY_NAME["big"].changes)
    assert big.model == TransformerConfig.preset("big", vocab_size=37_000) and big.training.updates == 300_000


def test_names_are_unique_and_can_be_folders():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names) and not {row.group for row in ROWS[1:]} - {"big"} & set(names)
    assert all(not set(name) & set("/\\:*?[] ") for name in names)


def test_a_row_changes_what_it_names():
    def everything(e):
        return {**vars(e), **asdict(e.model), **asdict(e.training), "model": None, "training": None}

    for base in (PAPER, SMALL, LARGE):
        before = everything(base)
        for row in ROWS:
            after = everything(with_changes(base, scaled(row.changes, base)))
            differ = {name for name in before if before[name] != after[name]}
            assert differ <= set(row.changes) and bool(differ) == bool(row.changes), row.name


def test_a_field_that_nobody_has():
    with pytest.raises(ValueError, match="there is no setting 'heads'"):
        with_changes(PAPER, dict(heads=3))


# Parameters

@pytest.mark.parametrize("row", [row for row in TABLE_3 if row.millions], ids=lambda row: row.name)
def test_parameters(row):
    """By the sizes of the matrices; and with 41,100 types every row but big is the paper's to rounding."""
    c = with_changes(PAPER, row.changes).model
    d, d_k, d_v = c.d_model, c.d_k or c.d_model // c.h, c.d_v or c.d_model // c.h
    attention, ffn, norm = 2 * d * c.h * (d_k + d_v), 2 * d * c.d_ff + c.d_ff + d, 2 * d
    layers = c.N * (3 * attention + 2 * ffn + 5 * norm)

    def count(vocab_size):
        return (vocab_size * d + layers) / 1e6

    assert millions(row) == pytest.approx(count(37_000), abs=1e-9) and outside_embeddings(c) == layers
    assert (round(count(41_100)) == row.millions) == (row.name != "big")
    least, most = vocabulary_that_fits(row)
    assert least <= 41_100 <= most or row.name == "big"
    for vocab_size, inside in ((least - 1, False), (least, True), (most, True), (most + 1, False)):
        assert (-0.5 <= count(vocab_size) - row.millions < 0.5) == inside


def test_three_matrices_are_all_left_out():
    c = replace(SMALL.model, tie_embeddings=False)
    assert outside_embeddings(c) == outside_embeddings(SMALL.model) > 500_000


# In small

@pytest.mark.parametrize("name, expected", [
    ("h=1", dict(h=1, d_k=96, d_v=96)), ("h=32", dict(h=32, d_k=3, d_v=3)), ("d_k=16", dict(d_k=3)),
    ("N=2", dict(N=1)), ("d_model=1024", dict(d_model=192, d_k=24, d_v=24)), ("d_ff=1024", dict(d_ff=192)),
    ("P_drop=0.0", dict(P_drop=0.0)),
    ("epsilon_ls=0.2", dict(epsilon_ls=0.2)), ("positions=learned", dict(positions="learned")),
    ("big", dict(d_model=192, d_ff=768, h=16, P_drop=0.3, updates=4500)),
    ("narrow,every=3", dict(d_model=48, d_ff=192, every=3)), ("without=W_V", dict(without="W_V")),
    ("positions=learned,longest=12", dict(positions="learned", longest=12))])
def test_scaled(name, expected):
    base = replace(SMALL, training=replace(SMALL.training, updates=1500))
    assert scaled(BY_NAME[name].changes, base) == expected


def test_the_schedule_is_scaled_around_the_base():
    base = replace(SMALL, training=replace(SMALL.training, warmup=400, factor=0.5))
    assert scaled(dict(factor=2.0, warmup=12_000), base) == dict(factor=1.0, warmup=1200)


def test_scaled_to_the_paper_is_the_paper():
    assert all(scaled(row.changes, PAPER) == row.changes for row in ROWS)


@torch.no_grad()
def test_every_row_makes_a_model():
    source, target, seen = torch.randint(3, 50, (2, 7)), torch.randint(3, 50, (2, 5)), set()
    for e in [with_changes(SMALL, {**scaled(row.changes, SMALL), "vocab_size": 50}) for row in ROWS]:
        if (e.model, e.without) in seen:  # rows that change training or data only
            continue
        seen.add((e.model, e.without))
        logits = model_of(e, CPU).eval()(source, target)
        assert logits.shape == (2, 5, 50) and logits.isfinite().all(), e
    assert len(seen) > 20


def test_rows_of_a_cost():
    """A keeps the parameters; every row of C and B changes them."""
    counts = {row.name: parameters_of(with_changes(SMALL, scaled(row.changes, SMALL)).model)
              for row in choose(["A", "B", "C"])}
    assert len({counts[row.name] for row in choose(["A"])}) == 1
    assert len({counts[row.name] for row in choose(["B", "C"])}) == 10


def test_bases():
    assert base_of("wmt14") == PAPER and base_of("multi30k", large=True) == LARGE
    assert base_of("bundled", precision="bf16") == replace(SMALL, corpus="bundled",
                                                            training=replace(SMALL.training, precision="bf16"))


# Parts taken out

def test_without_softmax_by_a_loop(seed):
    heads = MultiHeadAttention(8, 2).double()
    x, memory = torch.randn(1, 3, 8, dtype=torch.float64), torch.randn(1, 4, 8, dtype=torch.float64)
    mask = torch.tensor([[True, False, True, True], [False] * 4, [True] * 4])
    rows = []
    for t in range(3):
        parts = []
        for i in range(2):
            inputs = (heads.W_Q, x), (heads.W_K, memory), (heads.W_V, memory)
            q, k, v = (W(y)[0, :, 4 * i:4 * i + 4] for W, y in inputs)
            seen = [s for s in range(4) if mask[t, s]]
            parts.append(sum((q[t] @ k[s] / 2 * v[s] for s in seen), torch.zeros(4).double()) / max(1, len(seen)))
        rows.append(heads.W_O(torch.cat(parts)))
    assert close(attend_without_softmax(heads, x, memory, memory, mask)[0], torch.stack(rows))


def test_without_a_path(seed):
    residual, x = Residual(8, P_drop=0.0).double(), torch.randn(2, 3, 8, dtype=torch.float64)
    assert close(no_path(residual, x, torch.sin), residual.norm(x.sin()))
    assert not close(residual(x, torch.sin), residual.norm(x.sin()))


@pytest.mark.parametrize("part", ["W_V", "softmax", "residual"])
def test_a_part_is_taken_out_everywhere(part, seed):
    """Another answer, caches still agree with none, nobody looks ahead, and without W_V its matrices are gone."""
    c = TransformerConfig(40, d_model=16, d_ff=32, N=2, h=2, P_drop=0.0)
    model = Transformer(c).double().eval()
    source, target = torch.randint(3, 40, (2, 6)), torch.randint(3, 40, (2, 5))
    whole, before = model(source, target), count_parameters(model)
    assert take_out(model, part) is model
    logits = model(source, target)
    assert not torch.allclose(whole, logits, atol=1e-3)
    assert close(model(source, target[:, :3]), logits[:, :3])
    assert count_parameters(model) == before - (6 * 16 * 16 if part == "W_V" else 0)
    assert greedy_search(model, source, cached=True) == greedy_search(model, source, cached=False)
    if part == "W_V":
        heads = model.decoder.layers[0].self_attention
        x = torch.randn(1, 4, 16, dtype=torch.float64)
        with torch.no_grad():
            value = torch.nn.Linear(16, 16, bias=False).double()
            value.weight.copy_(torch.eye(16))
            answer = heads(x, x, x, causal_mask(4))
            heads.W_V = value
            assert close(heads(x, x, x, causal_mask(4)), answer)


@pytest.mark.parametrize("part", ["W_V", "softmax", "residual"])
def test_a_part_is_missing_from_translations_too(part, seed):
    """`translate` has faster ways for a whole Transformer; they must not bring the part back."""
    tokenizer = Tokenizer.train(["a b c d e f g h i"], 300)
    c = TransformerConfig(tokenizer.vocab_size, d_model=16, d_ff=32, N=2, h=2, P_drop=0.0)
    model, texts = take_out(Transformer(c), part), ["a b c", "i h g f", "b"]
    for beam in (1, 2):
        with torch.no_grad():
            plain = [search_texts(model, tokenizer, text, beam) for text in texts]
        assert translate(model, tokenizer, texts, beam=beam) == plain


def search_texts(model, tokenizer, text, beam):
    """What a plain search says for one text."""
    source = torch.tensor([[*tokenizer.encode(text), tokenizer.eos_id]])
    tokens = beam_search(model, source, beam)[0][0].tokens if beam > 1 else greedy_search(model, source)[0]
    return tokenizer.decode(tokens)


def test_no_such_part():
    with pytest.raises(ValueError, match="cannot take 'norm' out of the model: choose W_V, softmax or residual"):
        take_out(Transformer(TransformerConfig(40, d_model=16, d_ff=32, N=1, h=2)), "norm")


# Runs

@pytest.fixture(scope="module", autouse=True)
def rate_is_known():
    """A run begins with some products of matrices, to say how long it will take: not here."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (hardware, runs):
            patch.setattr(module, "matmul_rate", lambda *_, **__: 1e9)
        yield


@pytest.fixture(scope="module")
def base(own_files):
    """A base of a moment, on sixty pairs."""
    return Trial(source_file=own_files[0], target_file=own_files[1], device="cpu",
                 model=TransformerConfig(300, d_model=16, d_ff=32, N=1, h=8, max_positions=150),
                 training=TrainingConfig(updates=2, batch_tokens=300, warmup=10, save_every=1, keep=2))


def one_after_the_other(begun):
    """What takes the place of in_processes: runs in this process, their names noted in begun."""
    def in_this_process(trials, devices, command):
        for e in trials:
            begun.append(e.folder.name)
            variations.work(replace(e, device=devices[0]), command)
            yield e, 0

    return in_this_process


@pytest.fixture
def here(monkeypatch):
    """Runs go one after the other in this process; the list holds the names of those begun."""
    begun = []
    monkeypatch.setattr(variations, "in_processes", one_after_the_other(begun))
    return begun


def run_rows(base, names, seeds, folder, record=None):
    """run_variations: (its result, what it printed)."""
    out, command = io.StringIO(), f"transformer variations --folder {folder}"
    with contextlib.redirect_stdout(out):
        results = run_variations(base, choose(names), seeds, folder, ["cpu"], command, record)
    return results, out.getvalue()


@pytest.fixture(scope="module")
def done(base, tmp_path_factory):
    """Base and h=1 with two seeds each: folder, results, what was printed, names in the order of their beginning."""
    folder, begun = tmp_path_factory.mktemp("done") / "runs", []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variations, "in_processes", one_after_the_other(begun))
        results, out = run_rows(base, ["h=1"], (1, 2), folder)
    return SimpleNamespace(folder=folder, results=results, out=out, begun=begun)


@pytest.fixture
def with_base(done, tmp_path):
    """A folder that holds the finished run of base with seed 1, and no other."""
    folder = tmp_path / "runs"
    shutil.copytree(done.folder / "base-seed1", folder / "base-seed1")
    return folder


def test_sample(base):
    everything = list(sample(base, "train"))
    assert list(sample(replace(base, every=4), "train")) == everything[::4]
    short = list(sample(replace(base, longest=6), "train"))
    assert short == [(s, t) for s, t in everything if len(s.split()) < 7 and len(t.split()) < 7]
    assert 0 < len(short) < len(everything)
    assert list(sample(replace(base, every=4, longest=2), "validation")) == list(sample(base, "validation"))


def test_a_run_and_its_result(base, tmp_path):
    """Of the whole validation split, and where `longest` is set of its short and its long part."""
    e = trial_of(BY_NAME["positions=learned,longest=12"], base, 3, tmp_path)
    assert e.folder == tmp_path / "positions=learned,longest=12-seed3" and e.training.seed == 3
    result = run_trial(e, "a test")
    assert result["updates"] == 2 and result["sentences"] == 1 and result["perplexity"] > 1 and not result["resumed"]
    model = Transformer(model_config(e))
    assert model.config.positions == "learned" and result["parameters"] == count_parameters(model)
    assert result["outside_embeddings"] == count_parameters(model) - model.embedding.weight.numel()
    tokenizer, names = Tokenizer.load(e.folder / "tokenizer.json"), load_weights(e.folder / "model.safetensors")[0]
    assert tokenizer.vocab_size == model.config.vocab_size and names.keys() == dict(model.named_parameters()).keys()
    pairs = [("a b", "c"), ("a b c d e f g h i j k l m", "n"), ("o", "p q")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variations, "stream_pairs", lambda e, split: iter(pairs))
        result = variations.score_trial(replace(e, model=model.config), tokenizer, CPU)
    assert [result[part]["sentences"] for part in ("short", "long")] == [2, 1] and result["sentences"] == 3


def model_config(e):
    """The sizes that a run has taken from its tokenizer."""
    return TransformerConfig(**json.loads((e.folder / "run.json").read_text())["model"])


@pytest.mark.parametrize("name", ["base", "without=W_V"])
def test_an_interrupted_run_goes_on(base, done, name, tmp_path, monkeypatch):
    """Stopped by Ctrl-C at the first validation, then begun again: the same model and scores as without a stop."""
    whole, parts = (trial_of(BY_NAME[name], base, 1, tmp_path / kind) for kind in ("whole", "parts"))
    if name == "base":
        whole, expected = replace(whole, folder=done.folder / "base-seed1"), done.results["runs"][0]
    else:
        expected = run_trial(whole, "a test")

    def stops(e, tokenizer, count=200, watch=None):
        return lambda model: signal.raise_signal(signal.SIGINT) or {}

    with monkeypatch.context() as patch:
        patch.setattr(variations, "loss_validator", stops)
        with pytest.raises(Interrupted):
            run_trial(parts, "a test")
    assert [row["update"] for row in read_log(parts.folder)] == [1]
    assert not (parts.folder / "model.safetensors").exists()
    result = run_trial(parts, "a test")
    assert result["resumed"] and not expected["resumed"]
    assert all(result[key] == expected[key] for key in ("perplexity", "bleu", "updates", "tokens", "parameters"))
    assert (parts.folder / "model.safetensors").read_bytes() == (whole.folder / "model.safetensors").read_bytes()


def test_all_rows_of_a_seed_come_first_and_none_twice(base, done, here, tmp_path):
    results, folder = done.results, tmp_path / "runs"
    assert done.begun == ["base-seed1", "h=1-seed1", "base-seed2", "h=1-seed2"]
    assert json.loads((done.folder / "results.json").read_text()) == json.loads(json.dumps(results))
    assert [(run["row"], run["seed"]) for run in results["runs"]] == [("base", 1), ("base", 2), ("h=1", 1), ("h=1", 2)]
    assert results["command"] == "transformer variations" and results["base"]["model"] == asdict(base.model)
    first, second = ([run["perplexity"] for run in results["runs"] if run["row"] == row] for row in ("base", "h=1"))
    lines = done.out.splitlines()
    assert f"{second[0] - first[0]:+.2f}" in lines[3] and len(lines) == 9
    expected = f"{mean(second) - mean(first):+.2f}, few runs"
    assert lines[-1].startswith("h=1") and "2 seeds" in lines[-1] and expected in lines[-1]
    assert not list(done.folder.glob("*/checkpoint.safetensors"))
    assert not list(done.folder.glob("*/weights/*.safetensors"))
    shutil.copytree(done.folder, folder)
    shutil.rmtree(folder / "h=1-seed2")
    again, out = run_rows(base, ["h=1"], (1, 2), folder)
    assert here == ["h=1-seed2"] and "4 runs, 3 of them finished" in out and len(out.splitlines()) == 9
    assert again["runs"][:3] == json.loads(json.dumps(results["runs"][:3]))
    assert [again["runs"][3][key] == results["runs"][3][key] for key in ("row", "seed", "perplexity", "bleu")]


def test_a_failed_row_loses_nothing_and_is_tried_again(base, here, with_base):
    (with_base / "h=1-seed1").mkdir()
    (with_base / "h=1-seed1" / "model.safetensors").write_bytes(b"somebody's")
    results, out = run_rows(base, ["h=1", "h=4"], (1,), with_base)
    assert [run["row"] for run in results["runs"]] == ["base", "h=4"]
    assert here == ["h=1-seed1", "h=4-seed1"]
    assert results["failed"][0]["row"] == "h=1" and "already holds a run or a model" in results["failed"][0]["failed"]
    assert "h=1" in out and "failed: " in out
    assert [has_result(trial_of(BY_NAME[name], base, 1, with_base)) for name in ("h=1", "h=4")] == [False, True]
    (with_base / "h=1-seed1" / "model.safetensors").unlink()
    results, _ = run_rows(base, ["h=1", "h=4"], (1,), with_base)
    assert here[2:] == ["h=1-seed1"] and not results["failed"] and len(results["runs"]) == 3


def test_a_row_that_diverged_is_a_result(base, here, with_base):
    """Its loss is no number any more: not scored, not compared, not tried again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variations, "validation_loss", lambda *_: dict(validation_loss=math.nan))
        results, out = run_rows(base, ["h=1"], (1,), with_base)
    assert [run["row"] for run in results["runs"]] == ["base"]
    assert [run["row"] for run in results["diverged"]] == ["h=1"]
    assert "diverged: after training the validation loss is nan" in out and not results["failed"]
    (with_base / "results.json").unlink()
    again, out = run_rows(base, ["h=1"], (1,), with_base)
    assert here == ["h=1-seed1"] and again == results and "2 runs, 2 of them finished" in out and "diverged:" in out
    assert json.loads((with_base / "results.json").read_text()) == json.loads(json.dumps(results))


def test_a_process_that_dies(base, tmp_path, monkeypatch):
    """Killed for its memory, say: a sentence. Stopped by us: nothing, it goes on next time."""
    monkeypatch.setattr(variations, "in_processes", lambda trials, *_: zip(trials, (-KILL, -signal.SIGTERM)))
    for e in (trial_of(row, base, 1, tmp_path) for row in choose(["h=1"])):
        e.folder.mkdir()
    results, _ = run_rows(base, ["h=1"], (1,), tmp_path)
    assert [(run["row"], run["failed"]) for run in results["failed"]] == [("base", "its process ended with status -9")]


def test_another_base_gets_another_folder(base, done, here):
    with pytest.raises(ValueError, match=r"results.json was made with other settings .updates is 2 there and 6 here"):
        run_rows(with_changes(base, dict(updates=6)), ["base"], (3,), done.folder)
    with pytest.raises(ValueError, match=r"corpus is bundled there and multi30k here.: name another --folder"):
        run_rows(replace(base, corpus="multi30k"), ["base"], (3,), done.folder)
    assert here == []


def test_what_a_record_holds_is_not_trained_again(base, done, here, tmp_path):
    """Base and h=1 come from the record, the third row is trained in an empty folder; then the record holds all."""
    record = tmp_path / "record.json"
    shutil.copy(done.folder / "results.json", record)
    results, out = run_rows(base, ["h=1", "h=4"], (1,), tmp_path / "elsewhere", record)
    assert here == ["h=4-seed1"] and "3 runs, 2 of them finished" in out
    assert json.loads(record.read_text()) == json.loads(json.dumps(results))
    before = json.loads(json.dumps(done.results["runs"]))
    assert [run for run in results["runs"] if run["row"] != "h=4"] == before and len(results["runs"]) == 5


def test_a_record_is_written_after_each_run(base, tmp_path, monkeypatch):
    """So a stop loses no more than in the folder."""
    def stopped(trials, devices, command):
        yield from one_after_the_other([])(trials[:1], devices, command)
        raise Interrupted("stopped")

    monkeypatch.setattr(variations, "in_processes", stopped)
    with pytest.raises(Interrupted):
        run_rows(base, ["h=1"], (1,), tmp_path / "runs", tmp_path / "record.json")
    assert [run["row"] for run in json.loads((tmp_path / "record.json").read_text())["runs"]] == ["base"]


@pytest.mark.parametrize("change, message", [
    (lambda saved: saved["base"]["model"].update(N=9), r"was made with other settings .N is 9 there and 1 here.: name"),
    (lambda saved: saved["runs"][0].update(row="h=3"), "has rows that are not in the list any more .h=3.: name"),
    (lambda saved: saved.pop("runs"), "is not a file of results of transformer variations: name another"),
])
def test_a_record_of_something_else_is_refused(base, done, here, tmp_path, change, message):
    record, saved = tmp_path / "record.json", json.loads((done.folder / "results.json").read_text())
    change(saved)
    text = json.dumps(saved)
    record.write_text(text)
    with pytest.raises(ValueError, match=f"record.json {message}"):
        run_rows(base, ["h=1"], (3,), tmp_path / "runs", record)
    assert here == [] and record.read_text() == text


def test_a_record_beats_a_failure_and_what_another_command_adds_stays(base, done, here, tmp_path, monkeypatch):
    """In the folder h=1 has failed, in the record it is; during h=4 another command records seed 2 of base."""
    record, saved = tmp_path / "record.json", json.loads((done.folder / "results.json").read_text())
    first = [run for run in saved["runs"] if run["seed"] == 1]
    record.write_text(json.dumps({**saved, "runs": first}))
    (tmp_path / "runs" / "h=1-seed1").mkdir(parents=True)
    (tmp_path / "runs" / "h=1-seed1" / "result.json").write_text('{"failed": "for want of a disk"}')

    def meanwhile(trials, devices, command):
        record.write_text(json.dumps(saved))
        yield from one_after_the_other([])(trials, devices, command)

    monkeypatch.setattr(variations, "in_processes", meanwhile)
    results, out = run_rows(base, ["h=1", "h=4"], (1, 1), tmp_path / "runs", record)
    assert "3 runs, 2 of them finished" in out and not results["failed"]
    assert [(run["row"], run["seed"]) for run in results["runs"]] == [
        ("base", 1), ("base", 2), ("h=1", 1), ("h=1", 2), ("h=4", 1)]
    assert json.loads(record.read_text()) == json.loads(json.dumps(results))


def test_a_record_does_not_ask_for_the_same_precision(base, done, here, tmp_path):
    """A GPU's bf16 and a CPU's fp32 are told by each run's hardware."""
    shutil.copy(done.folder / "results.json", tmp_path / "record.json")
    bf16 = replace(base, training=replace(base.training, precision="bf16"))
    results, _ = run_rows(bf16, ["h=1"], (1, 2), tmp_path / "runs", tmp_path / "record.json")
    assert len(results["runs"]) == 4 and not here


def test_a_failure_is_reported_by_the_command_that_asked_for_it(base, here, with_base):
    (with_base / "h=1-seed1").mkdir()
    (with_base / "h=1-seed1" / "result.json").write_text('{"failed": "for want of a disk"}')
    assert run_rows(base, ["h=4"], (1,), with_base)[0]["failed"] == [] and here == ["h=4-seed1"]


KEPT = sorted((Path(__file__).parents[1] / "data" / "runs").glob("variations*.json"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_kept_results_are_those_of_the_list(path):
    """Of rows and a base that the module still has, none failed, no path of a machine."""
    text = path.read_text(encoding="utf8")
    saved = json.loads(text)
    assert earlier_results(path, base_of(saved["corpus"])) and not saved["failed"]
    assert not any(place in text for place in ("/tmp", "/home", "/root", "/work", "\\Users"))
    assert all({"command", "commit", "hardware", "minutes", "updates"} <= run.keys() for run in saved["runs"])


# Processes

@pytest.fixture
def staged(monkeypatch):
    """Processes that end as staged.script says (name, status), or (signal,) comes; what happens to them is noted."""
    stage = SimpleNamespace(begun=[], told=[], most=0, running=[], script=[])

    class Staged:
        def __init__(self, target, args):
            assert target is variations.work
            self.e, self.command, self.exitcode, self.sentinel = *args, None, self

        def start(self):
            stage.begun.append((self.e.folder.name, self.e.device, self.command))
            stage.running.append(self)

        def is_alive(self):
            return self in stage.running

        def terminate(self):
            stage.told.append(self.e.folder.name)

        def join(self):
            if self in stage.running:
                self.exitcode = 0
                stage.running.remove(self)

    def wait(sentinels, timeout):
        assert sorted(map(id, sentinels)) == sorted(map(id, stage.running))
        stage.most = max(stage.most, len(sentinels))
        what, *status = stage.script.pop(0)
        if not status:
            return signal.raise_signal(what)
        process, = (process for process in stage.running if process.e.folder.name == f"{what}-seed1")
        process.exitcode = status[0]
        stage.running.remove(process)

    monkeypatch.setattr(variations.multiprocessing, "get_context", lambda method: SimpleNamespace(Process=Staged))
    monkeypatch.setattr(variations.connection, "wait", wait)
    return stage


@pytest.fixture
def trials(base, tmp_path):
    """Base and the four rows of A."""
    return [trial_of(row, base, 1, tmp_path) for row in choose(["A"])]


def test_a_process_follows_where_another_has_ended(trials, staged):
    staged.script = [("h=1", 0), ("base", -9), ("h=16", 0), ("h=4", 1), ("h=32", 0)]
    found = [(e.folder.name, status) for e, status in variations.in_processes(trials, ["cuda:0", "cuda:1"], "a test")]
    assert found == [("h=1-seed1", 0), ("base-seed1", -9), ("h=16-seed1", 0), ("h=4-seed1", 1), ("h=32-seed1", 0)]
    assert staged.begun == [(f"{name}-seed1", f"cuda:{device}", "a test")
                            for name, device in (("base", 0), ("h=1", 1), ("h=4", 1), ("h=16", 0), ("h=32", 0))]
    assert staged.most == 2 and staged.told == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_reaches_every_process_and_no_other_begins(trials, staged, number):
    staged.script, ended = [("base", 0), (number,)], []
    with pytest.raises(Interrupted, match="the same command goes on"):
        ended.extend(e.folder.name for e, _ in variations.in_processes(trials, ["cpu", "cpu"], "a test"))
    assert [name for name, *_ in staged.begun] == ["base-seed1", "h=1-seed1", "h=4-seed1"]
    assert sorted(staged.told) == ["h=1-seed1", "h=4-seed1"] and not staged.running


def test_an_error_leaves_no_process_behind(trials, staged):
    staged.script = [("base", 0)]
    with pytest.raises(OSError), contextlib.closing(variations.in_processes(trials, ["cpu", "cpu"], "a test")) as ended:
        for _ in ended:
            raise OSError("the disk is full")
    assert staged.told == ["h=1-seed1"] and not staged.running


def test_a_real_process_trains_the_same_and_saves_when_it_is_stopped(base, done, tmp_path, monkeypatch):
    """SIGTERM to the parent while a long run goes on: it saves and ends, and the one that waited never begins."""
    long = replace(base, training=replace(base.training, updates=1_000_000))
    first, second = (trial_of(BY_NAME[name], long, 1, tmp_path) for name in ("h=1", "base"))
    ended, told, wait = [], [], variations.connection.wait

    def watched(sentinels, timeout):
        if len(read_log(first.folder)) >= 2 and not told:
            told.append(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
        return wait(sentinels, 0.05)

    monkeypatch.setattr(variations.connection, "wait", watched)
    with pytest.raises(Interrupted):
        for e, status in variations.in_processes([first, second], ["cpu"], "a test"):
            ended.append((e.folder.name, status))
    assert ended == [("h=1-seed1", 0)] and not second.folder.exists()
    assert (first.folder / "checkpoint.safetensors").is_file() and not (first.folder / "result.json").exists()
    for here, there in zip(read_log(done.folder / "h=1-seed1"), read_log(first.folder)):
        assert all(here[key] == there[key] for key in ("update", "tokens", "rate", "loss", "validation_loss"))


# What is chosen, and where it runs

def test_choose():
    assert choose() == TABLE_3 == choose(["base", "A", "B", "C", "D", "E", "big"])
    assert [row.name for row in choose(["d_k=32", "E"])] == ["base", "d_k=32", "positions=learned"]
    assert len(choose(["schedule"])) == 9 and len(choose(["data"])) == 9 and len(choose(["length"])) == 3
    assert [row.name for row in choose(["narrow,every=9"])] == ["base", "narrow,every=9", "base,every=9"]
    assert [row.name for row in choose(["depth"])] == ["base", "N=8", "N=8,norm_first=True", "N=8,factor=0.25"]
    assert len(choose(["simple"])) == 4 and choose(["base"]) == [TABLE_3[0]]
    with pytest.raises(ValueError, match=r"unknown row 'F': choose groups \(base, A, B, C, D, E, big, schedule"):
        choose(["A", "F"])


def test_devices(monkeypatch):
    assert devices_for("cpu") == ["cpu"] and devices_for("cpu", 3) == ["cpu"] * 3
    for wrong, said in ((("cpu", 0), "workers must be at least 1"), (("tpu", None), "there is no device 'tpu' here")):
        with pytest.raises(ValueError, match=said):
            devices_for(*wrong)
    names = {"auto": "cuda:0", "cuda": "cuda:0"}
    monkeypatch.setattr(variations, "choose_device", lambda name: torch.device(names.get(name, name)))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices_for() == ["cuda:0", "cuda:1"] and devices_for("cuda", 3) == ["cuda:0", "cuda:1", "cuda:0"]
    assert devices_for("cuda:1", 2) == ["cuda:1"] * 2


@pytest.mark.parametrize("arguments, said", [
    (["--rows", "F"], "unknown row 'F': choose groups"), (["--workers", "0"], "workers must be at least 1, not 0"),
    (["--corpus", "multi31k"], "unknown corpus 'multi31k'"), (["--device", "tpu"], "there is no device 'tpu' here"),
    (["--seeds"], "--seeds needs at least one number")])
def test_wrong_commands(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["transformer", "variations", "--folder", str(tmp_path / "runs"), *arguments])
    with pytest.raises(SystemExit) as stop:
        command_line.main()
    assert stop.value.code == 2 and capsys.readouterr().err.startswith(f"transformer: {said}")


def test_the_command(base, here, with_base, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command_line, "base_of", lambda corpus, large, precision: base)
    monkeypatch.setattr(sys, "argv", ["transformer", "variations", "--rows", "h=1", "--seeds", "1", "--device", "cpu",
                                      "--folder", str(with_base), "--record", str(tmp_path / "kept.json")])
    command_line.main()
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert kept == json.loads((with_base / "results.json").read_text()) and len(kept["runs"]) == 2
    assert str(tmp_path) not in json.dumps(kept) and here == ["h=1-seed1"]
    for path in (with_base / "h=1-seed1" / "result.json", tmp_path / "kept.json"):
        path.unlink()
    with pytest.raises(SystemExit):
        command_line.main()
    assert "without a result: h=1 (seed 1); the reasons stand above" in capsys.readouterr().err


# Differences

def test_a_row_has_its_own_deviation_or_the_median():
    values = {"a": [1.0, 2.0, 4.0], "b": [10.0, 10.1, 9.9], "c": [7.0, 7.5, 6.5], "d": [3.0], "e": []}
    found = judge(values, "bleu")
    own = [statistics.stdev(values[row]) for row in "abc"]
    expected = {"a": own[0] / 3**0.5, "b": 0.5 / 3**0.5, "c": 0.5 / 3**0.5, "d": 0.5}
    assert {row: s for row, (_, s, _) in found.items()} == pytest.approx(expected) and own[0] > own[2] == 0.5
    few = judge({"a": [1.0, 1.2], "d": [3.0]}, "bleu")  # two runs may agree by chance
    assert few["a"][0] == pytest.approx(1.1)
    assert all(math.isnan(s) and verdict == "few runs" for _, s, verdict in few.values())


@pytest.mark.parametrize("value, verdicts", [
    (1.3, ("better", "worse")), (1.1, ("none", "none")), (0.0, ("none", "none")),
    (-1.1, ("none", "none")), (-1.3, ("worse", "better"))])
def test_a_difference_under_two_deviations_is_none(value, verdicts):
    differences = [value - 1, value, value + 1]  # deviation 1 / sqrt(3), two of it 1.155
    for figure, verdict in zip(("bleu", "perplexity"), verdicts):
        assert judge({"row": differences}, figure) == {"row": (pytest.approx(value), pytest.approx(3**-0.5), verdict)}
    assert judge({"row": [0.0, 0.0, 0.0]}, "bleu") == {"row": (0.0, 0.0, "none")}


def test_rows_are_compared_seed_by_seed():
    """By a loop over all pairs; a seed that only one of the two has is left out."""
    runs = [dict(seed=seed, bleu=seed * 5.0, long=dict(bleu=seed * 4.0)) for seed in (3, 1, 7)]
    others = [dict(seed=seed, bleu=seed * 2.0, long=dict(bleu=seed * 3.0)) for seed in (1, 2, 3)]
    expected = [run["bleu"] - other["bleu"] for run in runs for other in others if run["seed"] == other["seed"]]
    assert by_seed(runs, others, "bleu") == expected == [9.0, 3.0]
    assert by_seed(runs, others, "long", "bleu") == [3.0, 1.0]


def test_a_bad_seed_is_bad_for_both():
    """What shifts every run of a seed alike does not count as chance between two rows."""
    runs = [*runs_of("base", 10.0, 20.0, 0.0), *runs_of("N=2", 9.0, 19.0, 0.1)]
    (depth,) = compare([dict(run, bleu=run["bleu"] - 10 * (run["seed"] == 3)) for run in runs])
    assert depth["bleu"] == (pytest.approx(-1.0), pytest.approx(0.1 / 3**0.5), "worse")


def runs_of(row, perplexity, bleu, deviation=3**0.5):
    """Three runs of a row; beside a row of deviation 0 the mean difference deviates by 1."""
    common = dict(group=BY_NAME[row].group, row=row, changes=BY_NAME[row].changes)
    return [dict(common, seed=seed, perplexity=perplexity + d, bleu=bleu + d)
            for seed, d in enumerate((-deviation, 0, deviation), 1)]


def test_every_row_is_compared():
    """By hand: each difference has a deviation of 1, three seeds a row; perplexity only of the same sentences."""
    runs = [*runs_of("base", 10.0, 20.0, 0.0), *runs_of("d_ff=4096", 7.0, 21.5), *runs_of("base,every=3", 30.0, 12.0),
            *runs_of("narrow,every=3", 34.0, 13.0, 0.0), *runs_of("narrow,every=1", 11.0, 20.0)]
    wide, few, small, all_pairs = compare(runs)
    assert all_pairs["perplexity"][0] == pytest.approx(1.0)  # of the same sentences as base
    assert (wide["row"], wide["seeds"], wide["beside"]) == ("d_ff=4096", 3, "base")
    assert wide["perplexity"] == (pytest.approx(-3.0), pytest.approx(1.0), "better")
    assert wide["bleu"] == (pytest.approx(1.5), pytest.approx(1.0), "none")
    assert few["perplexity"] is None and few["bleu"] == (pytest.approx(-8.0), pytest.approx(1.0), "worse")
    assert small["beside"] == "base,every=3" and small["bleu"][0] == pytest.approx(1.0)
    assert small["perplexity"] == (pytest.approx(4.0), pytest.approx(1.0), "worse")
    assert in_words(wide["perplexity"]) == "-3.00 ± 1.00, better" and in_words(None) == "-"
    once = compare(runs[1::3])
    assert all(row["bleu"][2] == "few runs" and math.isnan(row["bleu"][1]) for row in once)
    assert in_words(once[0]["bleu"]) == "+1.50, few runs"
    assert compare(runs[3:])[0]["bleu"] is None  # no base
    assert [row[3:] for row in further_rows(runs, "data")][1] == ["+4.00 ± 1.00, worse", "+1.00 ± 1.00, none"]
    assert further_rows(runs, "schedule") == []


def test_a_wild_row_leaves_the_others_alone():
    runs = [*runs_of("base", 10.0, 20.0, 0.1), *runs_of("N=2", 12.0, 18.0, 0.1), *runs_of("N=4", 90.0, 3.0, 50.0),
            *runs_of("h=4", 10.0, 20.0, 0.2)]
    depth, wild, heads = compare(runs)
    assert depth["bleu"][2] == "worse" and wild["bleu"][2] == heads["bleu"][2] == "none"


def test_beside_the_paper():
    rows = ("base", 30.0), ("N=2", 28.0), ("P_drop=0.2", 33.0), ("h=16", 33.0), ("without=W_V", 29.0)
    runs = [run for row, bleu in rows for run in runs_of(row, 9.0, bleu, 0.1 * (row != "base"))]
    depth, dropout, heads = beside_the_paper(runs)
    assert depth == ["N=2", "N 2", 3, "+0.00 ± 0.06, none", "+1.19", "none", "-2.00 ± 0.06, worse", "-2.1", "same way"]
    assert dropout[-2:] == ["-0.3", "only here"] and heads[-2:] == ["+0.0", "only here"]
    drawn = beside_in_percent(runs, "bleu")
    assert list(drawn) == ["N=2", "P_drop=0.2", "h=16"]
    assert drawn["N=2"] == pytest.approx((-200 / 30, 20 * (1 / 3)**0.5 / 30, 100 * (23.7 / 25.8 - 1)))
    assert direction(None, 1.0) == "-" and beside_in_percent([], "bleu") == {}
    seen = (0.5, 0.1, "better")
    assert direction(seen, -0.01, "perplexity") == "only here" and direction(seen, -0.06, "perplexity") == "reversed"
    assert [direction(seen, paper) for paper in (-0.3, -0.4, 0.4)] == ["only here", "reversed", "same way"]
    assert direction((0.5, math.nan, "few runs"), 1.0) == "few runs"


def test_what_is_shown_of_a_result_file():
    base = dict(row="base", updates=1500, epochs=3, outside_embeddings=780_000)
    runs = [dict(base, seed=seed, cpu_minutes=minutes, perplexity=p, bleu=b,
                 short=dict(perplexity=1.0, bleu=p), long=dict(perplexity=2.0, bleu=b))
            for seed, minutes, p, b in ((1, 7, 10, 20), (2, 9, 12, 21))]
    line = ["base", 2, "1,500", 3, "8.0", "0.78", "11.00 ± 1.41", "20.50 ± 0.71"]
    assert result_rows(runs) == [line]
    resumed = [dict(run, cpu_minutes=None) for run in runs]
    assert result_rows([resumed[0], runs[1]])[0][4] == "9.0" and result_rows(resumed)[0][4] == "-"
    assert short_and_long(runs) == [["base", "11.00 ± 1.41", "20.50 ± 0.71", "1.00 ± 0.00", "2.00 ± 0.00"]]
    assert short_and_long([{}]) == []
    other = [dict(run, row="other", long=dict(perplexity=2.0, bleu=15.0)) for run in runs]
    assert short_and_long([*runs, *other])[2] == [
        "the second minus the first", "+0.00, few runs", "-5.50, few runs", "+0.00, few runs", "+0.00, few runs"]
    third = [dict(run, seed=3, short=dict(perplexity=1.0, bleu=short))
             for run, short in ((runs[0], 10.0), (other[0], 9.0))]
    assert short_and_long([*runs, *other, *third])[2][1] == "-0.33 ± 0.33, none"


def test_heads_and_the_width_of_their_keys():
    base = {"model": {"h": 8, "d_model": 96, "d_k": None}}
    runs = [*runs_of("base", 10.0, 20.0, 0.0), *runs_of("h=4", 9.0, 21.0), *runs_of("d_k=16", 9.0, 19.0, 1.0)]
    for run in runs:
        run["changes"] = scaled(BY_NAME[run["row"]].changes, SMALL)
    assert head_rows({"base": base, "runs": runs}) == [
        ["base", 8, 12, "20.00 ± 0.00", 25.8], ["h=4", 4, 24, "21.00 ± 1.73", 25.5],
        ["d_k=16", 8, 3, "19.00 ± 1.00", 25.1]]


def test_the_schedule_as_a_grid():
    """By hand; a row that diverged has 0, there is no grid until all rows have run, warm-ups are scaled."""
    rows = [row for row in QUESTIONS if row.group == "schedule"]
    names = ["base", *(row.name for row in rows[:-1])]
    runs = [dict(row=name, seed=1, bleu=bleu) for bleu, name in enumerate(names, 10)]
    runs.append(dict(row="base", seed=2, bleu=99))  # a seed that the others have not takes no part
    base = {"model": {"d_model": 64}, "training": {"warmup": 400, "factor": 2.0}}
    result = {"base": base, "runs": runs, "diverged": []}
    assert schedule_grid(result) is None
    grid, peaks, warmups = schedule_grid({**result, "diverged": [dict(row=rows[-1].name, seed=1)]})
    assert warmups == [100, 400, 1200]
    assert grid == [[11, 12, 13], [14, 10, 15], [16, 17, 0]]
    assert peaks[1][:2] == pytest.approx([2 / 8 / 10, 2 / 8 / 20]) and peaks[2][0] == pytest.approx(4 * peaks[1][0])


def test_scores_by_share_of_the_sentences():
    runs = [dict(row=row, seed=seed, bleu=bleu)
            for row, seed, bleu in [("base", 1, 20), ("base", 2, 22), ("base", 3, 90), ("narrow,every=9", 1, 7),
                                    ("narrow,every=9", 2, 9), ("h=1", 4, 1)]]
    found = by_share(runs)  # seed 3, which narrow has not, takes no part; nor does h=1
    assert found["base"][2] == 21 and found["narrow"][0] == 8 and math.isnan(found["wide"][1])


def test_gains_from_more_sentences_seed_by_seed():
    scores = {"wide,every=3": [22, 21, 18, 5], "wide,every=1": [20, 20, 15], "wide,every=9": [20]}
    runs = [dict(row=row, seed=seed, bleu=bleu) for row, own in scores.items() for seed, bleu in enumerate(own)]
    lines = {tuple(line[:3]): line[3:] for line in share_gains(runs)}
    assert lines["wide", "wide,every=3", "wide,every=1"] == ["-2.0, -1.0, -3.0", "-2.00 ± 0.58, worse"]  # 1 / sqrt(3)
    assert lines["wide", "wide,every=9", "wide,every=3"] == ["+2.0", "+2.00, few runs"]
    assert len(lines) == 6 and lines["base", "base,every=3", "base"] == ["-", "-"]


def test_weights_without_a_checkpoint_do_not_stop_a_run(base, tmp_path):
    """A run killed between its first weights and its first checkpoint begins anew."""
    e = trial_of(TABLE_3[0], base, 1, tmp_path)
    (e.folder / "weights").mkdir(parents=True)
    (e.folder / "weights" / "00000001.safetensors").write_bytes(b"half")
    assert run_trial(e, "")["updates"] == e.training.updates
    (e.folder / "checkpoint.safetensors").unlink()  # beside a model weights are somebody's, and stay
    before = sorted((e.folder / "weights").iterdir())
    with pytest.raises(ValueError, match="already holds a run or a model"):
        run_trial(e, "")
    assert before and sorted((e.folder / "weights").iterdir()) == before


@pytest.mark.parametrize("part, missing", [(None, 0), ("W_V", 3 * 16 * 16), ("softmax", 0), ("residual", 0)])
def test_parameters_that_were_taken_out_do_not_count(base, part, missing):
    assert taken_out(replace(base, without=part)) == missing  # one layer of each kind: three attentions
