"""The comparison of speeds: every system does the same work, and the figures mean what they say."""

import math
import os
import time

import pytest
import torch
from torch import nn

from transformer.bench import learning, levers, parts, run
from transformer.bench.harness import in_a_process, rows_of, under
from transformer.bench.peers import (
    EXTRA,
    LEVERS,
    OURS,
    TRAINED,
    Ours,
    available,
    make_systems,
)
from transformer.bench.run import run_bench
from transformer.bench.settings import QUICK, Bench, EndlessConfig
from transformer.core.records import read_rows
from transformer.fast.attention import scaled_dot_product_attention
from transformer.fast.loss import ChunkedLoss
from transformer.fast.model import TransformerConfig
from transformer.speed import draw_batches, in_turns, real_tokens

CPU = torch.device("cpu")
SIZES = dict(vocab_size=40, N=2, d_model=16, d_ff=24, h=4, P_drop=0.0)
marian = pytest.param(
    "marian",
    marks=pytest.mark.skipif(
        "marian" not in available(), reason="the extra [bench] is not installed"
    ),
)
PEERS = ["torch", "tuned", marian]


@torch.no_grad()
def copy_weights(model, name, peer):
    """Give a peer the weights of one of our models; its biases of attention become zero."""
    of_torch = name in ("torch", "tuned")
    theirs = peer.model if of_torch else peer.model.model
    embedding = peer.embedding if of_torch else theirs.shared
    embedding.weight.copy_(model.embedding.weight)
    if name == "marian":
        for side in (theirs.encoder, theirs.decoder):
            side.embed_positions.weight.copy_(model.positions.table)
    layers = [[*both.encoder.layers, *both.decoder.layers] for both in (model, theirs)]
    for ours, other in zip(*layers):
        attentions = [
            attention
            for attention in (ours.self_attention, ours.cross_attention)
            if attention
        ]
        if of_torch:
            names = (
                ["self_attn", "multihead_attn"],
                ["linear1", "linear2"],
                ["norm1", "norm2", "norm3"],
            )
        else:
            norms = [
                "self_attn_layer_norm",
                "encoder_attn_layer_norm",
                "final_layer_norm",
            ]
            names = (
                ["self_attn", "encoder_attn"],
                ["fc1", "fc2"],
                norms if len(attentions) == 2 else norms[::2],
            )
        for attention, place in zip(attentions, names[0]):
            matrices = [
                attention.W_Q.weight,
                attention.W_K.weight,
                attention.W_V.weight,
            ]
            place = getattr(other, place)
            for parameter_name, parameter in place.named_parameters():
                if "bias" in parameter_name:
                    parameter.zero_()
            place.out_proj.weight.copy_(attention.W_O.weight)
            if of_torch:
                place.in_proj_weight.copy_(torch.cat(matrices))
            else:
                for matrix, projection in zip(
                    matrices, (place.q_proj, place.k_proj, place.v_proj)
                ):
                    projection.weight.copy_(matrix)
        for linear, place in zip(
            (ours.feed_forward.W_1, ours.feed_forward.W_2), names[1]
        ):
            getattr(other, place).load_state_dict(linear.state_dict())
        for residual, place in zip(ours.residuals, names[2]):
            getattr(other, place).weight.copy_(residual.norm.gain)
            getattr(other, place).bias.copy_(residual.norm.bias)


def pair(name, factor=1):
    """Our plain system and another one with the same weights; factor multiplies some of them."""
    systems = make_systems(EndlessConfig(**SIZES), ["plain", name], CPU)
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in systems["plain"].parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # gains and biases too
        for layer in systems["plain"].model.decoder.layers:
            layer.feed_forward.W_2.weight *= factor
    if name in OURS:
        systems[name].load_state_dict(systems["plain"].state_dict())
    else:
        copy_weights(systems["plain"].model, name, systems[name])
    return systems["plain"], systems[name]


@pytest.mark.parametrize("name", ["fast", *PEERS])
def test_all_systems_compute_the_same_loss(name):
    """Value, and gradient of the embedding, on a batch with padding; and an update makes the loss smaller."""
    plain, other = pair(name)
    (batch,) = draw_batches(40, 200, 1, CPU)
    real = batch.gold != 0
    assert (batch.source == 0).any() and not real.all()
    with torch.no_grad():
        logits = plain.eval().logits(batch).log_softmax(dim=-1)
    gold = logits.gather(2, batch.gold[:, :, None])[:, :, 0]
    by_hand = -(0.9 * gold + 0.1 * logits.mean(dim=2))[real].mean().item()
    gradients = []
    for system in (plain, other):
        system.prepare()
        assert system.update(batch) == pytest.approx(by_hand, rel=1e-5)
        gradients.append(
            next(p for p in system.parameters() if p.shape == (40, 16)).grad.clone()
        )
        assert system.update(batch) < by_hand
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["fast", "torch", marian])
def test_all_systems_find_the_same_tokens(name):
    plain, other = pair(
        name, factor=30
    )  # otherwise a random model repeats its last token
    source = torch.randint(3, 40, (5, 6), generator=torch.Generator().manual_seed(0))
    found = plain.search(source)
    assert (
        other.search(source) == found
        and [len(tokens) for tokens in found] == [6 + EXTRA] * 5
    )
    assert any(len(set(tokens)) > 3 for tokens in found)
    if name == "fast":
        assert other.search(source, 4) == plain.search(source, 4)
    if (
        name == "marian"
    ):  # scores probabilities among real tokens only, ours among all: a beam may choose otherwise
        assert [len(tokens) for tokens in other.search(source, 4)] == [6 + EXTRA] * 5


@pytest.mark.parametrize("name", ["plain", *PEERS])
def test_dropout_stands_in_the_papers_places_only(monkeypatch, name):
    """Two embeddings, two sub-layers in an encoder layer, three in a decoder layer; none on attention weights."""
    system = TRAINED[name](EndlessConfig(**{**SIZES, "P_drop": 0.25})).train()
    places, weights, dropout = [], [], nn.functional.dropout
    kernel = nn.functional.scaled_dot_product_attention

    def spy(x, p=0.5, training=True, inplace=False):
        places.extend([p] * (training and p > 0))
        return dropout(x, p, training, inplace)

    def spy_kernel(*args, **named):
        weights.append(named.get("dropout_p", args[4] if len(args) > 4 else 0.0))
        return kernel(*args, **named)

    monkeypatch.setattr(nn.functional, "dropout", spy)
    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", spy_kernel)
    system.logits(draw_batches(40, 100, 1, CPU)[0])
    assert places == [0.25] * (2 + 2 * 2 + 2 * 3)
    assert set(weights) <= {0.0}


def test_batches_have_the_tokens_and_padding_that_are_claimed():
    batches = draw_batches(8000, 2048, 12, CPU)
    counts = [
        sum(sum(token != 0 for token in row) - 1 for row in batch.target.tolist())
        for batch in batches
    ]
    assert counts == [real_tokens(batch) for batch in batches]
    assert sum(counts) / len(counts) == pytest.approx(2048, rel=0.03)
    assert 1 - sum(counts) / sum(
        batch.gold.numel() for batch in batches
    ) == pytest.approx(0.15, abs=0.03)
    assert len({tuple(batch.gold.shape) for batch in batches}) > 5
    for row in batches[0].target.tolist():
        assert row[0] == 1 and [token for token in row if token][-1] == 2
    for row in batches[0].source.tolist():
        assert [token for token in row if token][-1] == 2


def test_systems_take_turns_and_the_first_round_does_not_count(exact_products):
    calls, now = [], [0.0]

    def work(name, seconds):
        seconds = iter(seconds)

        def once(number):
            calls.append((name, number, torch.get_float32_matmul_precision()))
            now[0] += next(seconds)
            return 60

        return once

    works = {
        ("fast", "highest"): work("a", [99.0, 1.0, 2.0, 6.0]),
        ("torch", "medium"): under("medium", CPU, work("b", [99.0, 3.0, 6.0, 5.0])),
    }
    rates = in_turns(works, 3, CPU, lambda: now[0])
    assert rates == {
        ("fast", "highest"): [60.0, 30.0, 10.0],
        ("torch", "medium"): [20.0, 10.0, 12.0],
    }
    a, b = ("a", "highest"), ("b", "medium")
    assert calls == [
        (name, number, precision)
        for number, order in ((-1, (a, b)), (0, (b, a)), (1, (a, b)), (2, (b, a)))
        for name, precision in order
    ]
    assert torch.get_float32_matmul_precision() == "highest"
    ours, theirs = rows_of(rates)
    assert ours["tokens_per_second"] == 30.0 and theirs["tokens_per_second"] == 12.0
    assert (
        ours["over_torch_medium"] == 3.0
    )  # of single rounds; the medians' own ratio is 2.5
    assert not any(name.startswith("over") for name in theirs)


def test_the_first_round_of_a_product_does_not_count_and_its_error_is_taken_in_double(
    monkeypatch,
):
    seconds, now, kept = iter([1.0, 5.0, 2.0, 3.0, 0.0]), [0.0], []

    def one_route(x, weight):
        def way():
            now[0] += next(seconds)
            return x @ weight.T

        kept.extend((x, weight))
        return {"a": way}

    monkeypatch.setattr(parts, "routes", one_route)
    found = parts.time_products(30, 40, 20, 3, CPU, lambda: now[0])
    x, weight = kept
    exact = x.double() @ weight.double().T
    error = ((x @ weight.T - exact).norm() / exact.norm()).item()
    assert x.shape == (30, 40) and weight.shape == (20, 40) and 0 < error < 1e-6
    assert found == {"a": (2.0, pytest.approx(error))}


def test_products_of_all_shapes_make_one_rate_and_the_largest_error(monkeypatch):
    errors = iter([1e-7, 2e-7, 2e-5, 1e-7, 1e-7])

    def timed(m, k, n, rounds, device, clock):
        return {
            "torch": (m * k * n / 1e9, 2e-6),
            "other": (m * k * n / 4e9, next(errors)),
        }

    monkeypatch.setattr(parts, "time_products", timed)
    assert parts.measure_products(
        EndlessConfig(**SIZES), 100, CPU, time.perf_counter
    ) == [
        {"route": "torch", "gflops_per_second": 2.0, "error": 2e-6, "fp32_class": True},
        {
            "route": "other",
            "gflops_per_second": 8.0,
            "error": 2e-5,
            "fp32_class": False,
        },
    ]


@pytest.mark.system
def test_a_process_of_its_own(capsys):
    arguments = "kernel", 32, "cpu", time.perf_counter
    filled = torch.ones(2**28)  # 1 GiB here is not the new process's
    figures = in_a_process(parts.attention_of, *arguments)
    assert figures["n"] == 32 and figures["seconds"] > 0 and filled.numel()
    assert 0 <= figures["above_start_gib"] < 0.5
    memory = in_a_process(
        parts.memory_of, "plain", {**QUICK, "vocab_size": 30_000}, 600, "cpu"
    )
    # logits alone: 600 times 30,000 numbers of 4 bytes, and gradients
    assert 0.1 < memory["above_start_gib"] < 1
    assert in_a_process(os._exit, 9) is None
    assert "terminated abruptly" in capsys.readouterr().err


def test_the_fast_way_learns_what_the_plain_way_learns():
    """In double precision, with the same entries dropped, fifty updates lead to the same weights."""
    c = TransformerConfig(**{**SIZES, "P_drop": 0.3, "eos_id": 2})
    batches, systems = draw_batches(c.vocab_size, 60, 50, CPU), []
    for pulled in (("dropout",), LEVERS):
        torch.manual_seed(5)
        system = Ours(c, pulled).double().prepare()
        for number, batch in enumerate(batches):
            system.seed, system.rate = number, 1e-3
            torch.manual_seed(number)
            system.update(batch)
        systems.append(system)
    plain, fast = (dict(system.model.named_parameters()) for system in systems)
    assert all(
        torch.allclose(plain[name], fast[name], rtol=0, atol=1e-7) for name in plain
    )
    torch.manual_seed(5)
    fresh = TRAINED["fast"](c).double().model.embedding.weight
    assert not torch.allclose(fast["embedding.weight"], fresh, atol=1e-3)


@pytest.mark.system
def test_all_ways_learn_from_the_same():
    """After a few updates, before roundings have grown, all stand where plain does: same batches, same dropout."""
    plain, *ways = learning.bundled_learning(quick=True)
    assert len(set(plain["losses"])) == len(plain["losses"])
    for row in ways:
        # "medium" is fp32 on some processors and bf16 on others
        allowed = 2e-4 if row["way"] == "fast" else 2e-2
        assert row["losses"] == pytest.approx(plain["losses"], abs=allowed)


def test_a_part_that_memory_does_not_hold_is_left_out(tmp_path, monkeypatch, capsys):
    """And the parts after it are measured all the same."""

    def measure(b, part, device):
        if part == "T1":
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return [{"route": "torch", "gflops_per_second": 1.0}]

    monkeypatch.setattr(run, "MEASURED", dict.fromkeys(("T1", "products"), measure))
    path = tmp_path / "bench.json"
    run_bench(Bench(("T1", "products"), quick=True, device="cpu", record=path))
    assert [row["part"] for row in read_rows(path)] == ["products"]
    assert (
        "T1 is left out: it does not fit into this GPU's memory"
        in capsys.readouterr().out
    )


@pytest.mark.system
def test_what_is_written(tmp_path, monkeypatch):
    """The parts that were asked for, with everything needed to judge them; memory and attention run elsewhere."""
    figures = {"system": "fast", "peak_gib": 1.0, "above_start_gib": 0.5}
    monkeypatch.setattr(parts, "in_a_process", lambda function, *arguments: figures)
    path = tmp_path / "new" / "bench.json"
    asked = ("T1", "T3", "T4", "levers", "memory", "products")
    run_bench(
        Bench(asked, quick=True, device="cpu", clock="cpu", record=path), "the command"
    )
    rows = read_rows(path)
    for name in (
        "command",
        "commit",
        "hardware",
        "threads",
        "torch",
        "clock",
        "seed",
        "rounds",
        "minutes",
    ):
        assert all(name in row for row in rows), name
    assert (
        tuple(dict.fromkeys(row["part"] for row in rows)) == asked
        and rows[0]["command"] == "the command"
    )
    for part in ("T1", "T3", "T4"):
        rates = {
            row["system"]: row["tokens_per_second"]
            for row in rows
            if row["part"] == part
        }
        assert rates.keys() >= {"plain", "fast"}  # and the peers that are installed
        assert all(math.isfinite(rate) and rate > 0 for rate in rates.values())
    routes = {row["route"]: row for row in rows if row["part"] == "products"}
    assert routes["torch"]["fp32_class"] and not routes["bf16"]["fp32_class"]
    assert routes["torch"]["error"] < 1e-5 < 1e-4 < routes["bf16"]["error"]


@pytest.mark.parametrize(
    "wrong, message",
    [
        (dict(parts=("T9",)), "no part T9: choose from T1"),
        (dict(clock="sun"), "clock is wall or cpu, not sun"),
        (dict(rounds=0), "rounds must be 1 or more"),
    ],
)
def test_what_cannot_be_measured_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        Bench(**wrong)


@pytest.mark.parametrize("row", levers.lever_sets())
def test_a_lever_left_out_changes_no_loss(row, monkeypatch):
    """With whichever levers: the plain loss, to rounding; and nothing is pulled that was left out."""
    pulled = set(levers.lever_sets()[row])
    c, (batch,) = EndlessConfig(**SIZES), draw_batches(40, 200, 1, CPU)
    plain, levered = make_systems(c, ["plain"], CPU)["plain"].prepare(), Ours(c, pulled)
    levered.prepare("bf16" if "bf16" in pulled else "fp32")
    levered.load_state_dict(plain.state_dict())
    expected = pytest.approx(
        plain.update(batch), rel=1e-2 if "bf16" in pulled else 1e-5
    )
    assert levered.update(batch) == expected
    assert isinstance(levered.objective.criterion, ChunkedLoss) == (
        "loss in chunks" in pulled
    )
    assert levered.objective.precision == ("bf16" if "bf16" in pulled else "fp32")
    attend = levered.model.encoder.layers[0].self_attention.attend
    assert (attend is scaled_dot_product_attention) == ("attention" not in pulled)
    if "fused Adam" not in pulled:  # else where this torch has it
        assert not levered.optimizer.defaults["fused"]


def test_all_levers_do_the_same_work_but_for_similar_lengths(monkeypatch):
    batches = {}
    monkeypatch.setattr(
        Ours,
        "update",
        lambda self, batch: batches.setdefault(self.pulled, []).append(batch),
    )
    rows = levers.measure_levers(QUICK, 100, 2, 1, CPU, time.perf_counter)
    assert [row["lever"] for row in rows] == list(levers.lever_sets())
    with_padding = [
        pulled
        for pulled, seen in batches.items()
        if any((batch.gold == 0).any() for batch in seen)
    ]
    assert with_padding == [
        pulled for pulled in batches if "similar lengths" not in pulled
    ]
    assert {len(seen) for seen in batches.values()} == {3}  # one to warm up
