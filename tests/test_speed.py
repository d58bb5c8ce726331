"""The comparison of speeds: every system does the same work, and the figures mean what they say."""

import json
import math
import types

import pytest
import torch
from torch import nn

from transformer import speed
from transformer.attention import MultiHeadAttention
from transformer.corpora import read_corpus
from transformer.decoding import greedy_search, translate
from transformer.hardware import training_flops
from transformer.model import Transformer, TransformerConfig
from transformer.optimizer import adam
from transformer.stacks import Residual
from transformer.translation import load

CPU = torch.device("cpu")
SIZES = dict(vocab_size=40, N=2, d_model=16, d_ff=24, h=4, P_drop=0.0, eos_id=0)
PEERS = [pytest.param("torch"), pytest.param("marian", marks=pytest.mark.skipif(
    "marian" not in speed.available(), reason="the extra [bench] is not installed"))]


@torch.no_grad()
def copy_weights(model, name, peer):
    """Give a peer the weights of one of our models; its biases of attention become zero."""
    theirs = peer.model if name == "torch" else peer.model.model
    embedding = peer.embedding if name == "torch" else theirs.shared
    embedding.weight.copy_(model.embedding.weight)
    if name == "marian":
        for side in (theirs.encoder, theirs.decoder):
            side.embed_positions.weight.copy_(model.positions.table)
    layers = [[*both.encoder.layers, *both.decoder.layers] for both in (model, theirs)]
    for ours, other in zip(*layers):
        attentions = [ours.self_attention, *([ours.cross_attention] if hasattr(ours, "cross_attention") else [])]
        if name == "torch":
            names = ["self_attn", "multihead_attn"], ["linear1", "linear2"], ["norm1", "norm2", "norm3"]
        else:
            norms = ["self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"]
            names = ["self_attn", "encoder_attn"], ["fc1", "fc2"], norms if len(attentions) == 2 else norms[::2]
        for attention, place in zip(attentions, names[0]):
            matrices = [attention.W_Q.weight, attention.W_K.weight, attention.W_V.weight]
            place = getattr(other, place)
            for parameter_name, parameter in place.named_parameters():
                if "bias" in parameter_name:
                    parameter.zero_()
            place.out_proj.weight.copy_(attention.W_O.weight)
            if name == "torch":
                place.in_proj_weight.copy_(torch.cat(matrices))
            else:
                for matrix, projection in zip(matrices, (place.q_proj, place.k_proj, place.v_proj)):
                    projection.weight.copy_(matrix)
        for linear, place in zip((ours.feed_forward.W_1, ours.feed_forward.W_2), names[1]):
            getattr(other, place).load_state_dict(linear.state_dict())
        for residual, place in zip(ours.residuals, names[2]):
            getattr(other, place).weight.copy_(residual.norm.gain)
            getattr(other, place).bias.copy_(residual.norm.bias)


def pair(name, factor=1):
    """Our plain system and another one with the same weights; factor multiplies some of them."""
    systems = speed.make_systems(TransformerConfig(**SIZES), ["plain", name], CPU, compiled=False)
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in systems["plain"].parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # gains and biases too
        for layer in systems["plain"].model.decoder.layers:
            layer.feed_forward.W_2.weight *= factor
    if name == "fast":
        systems["fast"].load_state_dict(systems["plain"].state_dict())
    else:
        copy_weights(systems["plain"].model, name, systems[name])
    return systems["plain"], systems[name]


@pytest.mark.parametrize("name", ["fast", *PEERS])
def test_all_systems_compute_the_same_loss(name):
    """Value, and gradient of the embedding, on a batch with padding; and an update makes the loss smaller."""
    plain, other = pair(name)
    batch, = speed.draw_batches(40, 200, 1, CPU)
    tokens = speed.real_tokens(batch)
    assert (batch.source == 0).any() and (batch.gold == 0).any()
    with torch.no_grad():
        logits = plain.eval().logits(batch).log_softmax(dim=-1)
        real = batch.gold != 0
        by_hand = -(0.9 * logits.gather(2, batch.gold[:, :, None])[:, :, 0] + 0.1 * logits.mean(dim=2))[real].sum()
    gradients = []
    for system in (plain, other):
        system.prepare()
        assert system.update(batch, tokens) == pytest.approx(by_hand.item() / tokens, rel=1e-5)
        gradients.append(next(p for p in system.parameters() if p.shape == (40, 16)).grad.clone())
        assert system.update(batch, tokens) < by_hand.item() / tokens
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["fast", *PEERS])
def test_all_systems_find_the_same_tokens(name):
    plain, other = pair(name, factor=30)  # otherwise a random model repeats its last token
    source = torch.randint(3, 40, (5, 6), generator=torch.Generator().manual_seed(0))
    found = plain.greedy(source)
    assert other.greedy(source) == found and [len(tokens) for tokens in found] == [6 + speed.EXTRA] * 5
    assert any(len(set(tokens)) > 3 for tokens in found)
    if name == "fast":
        assert other.beam(source) == plain.beam(source)
    if name == "marian":  # scores probabilities among real tokens only, ours among all: a beam may choose otherwise
        assert [len(tokens) for tokens in other.beam(source)] == [6 + speed.EXTRA] * 5


@pytest.mark.parametrize("name", ["plain", *PEERS])
def test_dropout_stands_in_the_papers_places_only(monkeypatch, name):
    """Two embeddings, two sub-layers in an encoder layer, three in a decoder layer; none on attention weights."""
    system = speed.TRAINED[name](TransformerConfig(**{**SIZES, "P_drop": 0.25})).train()
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
    system.logits(speed.draw_batches(40, 100, 1, CPU)[0])
    assert places == [0.25] * (2 + 2 * 2 + 2 * 3)
    assert set(weights) <= {0.0}


def test_batches_have_the_tokens_and_padding_that_are_claimed():
    batches = speed.draw_batches(8000, 2048, 12, CPU)
    counts = [sum(sum(token != 0 for token in row) - 1 for row in batch.target.tolist()) for batch in batches]
    assert counts == [speed.real_tokens(batch) for batch in batches]
    assert sum(counts) / len(counts) == pytest.approx(2048, rel=0.03)
    assert 1 - sum(counts) / sum(batch.gold.numel() for batch in batches) == pytest.approx(0.15, abs=0.03)
    assert len({tuple(batch.gold.shape) for batch in batches}) > 5
    for batch in batches[:2]:
        assert all(row[0] == 1 and [t for t in row if t][-1] == 2 for row in batch.target.tolist())
        assert all([t for t in row if t][-1] == 2 for row in batch.source.tolist())
    c = TransformerConfig(**SIZES)
    by_hand = sum(training_flops(c, sum(s != 0 for s in source), sum(t != 0 for t in target) - 1)
                  for source, target in zip(batches[0].source.tolist(), batches[0].target.tolist()))
    assert speed.flops_of(c, batches[0]) == by_hand


def test_systems_take_turns_and_the_first_round_does_not_count(exact_products):
    calls, now = [], [0.0]

    def work(name, seconds):
        def once(number):
            calls.append((name, number, torch.get_float32_matmul_precision()))
            now[0] += seconds[len([c for c in calls if c[0] == name]) - 1]
            return 60
        return once

    works = {("fast", "highest"): work("a", [99.0, 1.0, 2.0, 6.0]),
             ("torch", "medium"): work("b", [99.0, 3.0, 6.0, 5.0])}
    rates = speed.in_turns(works, 3, CPU, lambda: now[0])
    assert rates == {("fast", "highest"): [60.0, 30.0, 10.0], ("torch", "medium"): [20.0, 10.0, 12.0]}
    a, b = ("a", "highest"), ("b", "medium")
    assert calls == [(name, number, precision) for number, order in ((0, (a, b)), (0, (b, a)), (1, (a, b)), (2, (b, a)))
                     for name, precision in order]
    assert torch.get_float32_matmul_precision() == "highest"
    ours, theirs = speed.rows_of(rates)
    assert (ours["tokens_per_second"], theirs["tokens_per_second"], ours["over_torch_medium"]) == (30.0, 12.0, 3.0)
    assert not any(name.startswith("over") for name in theirs)


def test_the_fastest_fp32_class_product_is_the_peak():
    products = [{"gflops_per_second": 50.0, "fp32_class": True}, {"gflops_per_second": 80.0, "fp32_class": True},
                {"gflops_per_second": 200.0, "fp32_class": False}]
    row = {"system": "fast", "matmul": "highest", "gflops_per_second": 20.0}
    parts = {"products": products, "T1": {"dropout": {"rows": [row]}}}
    assert speed.fraction_of_peak(parts) == {"dropout": {"fast highest": 0.25}}
    assert speed.fraction_of_peak({"products": products}) == {}


def test_the_first_round_of_a_product_does_not_count_and_its_error_is_taken_in_double(monkeypatch):
    seconds, now, kept = iter([1.0, 5.0, 2.0, 3.0]), [0.0], []

    def one_route(x, weight):
        def way():
            now[0] += next(seconds)
            return x @ weight.T
        kept.extend((x, weight))
        return {"a": ("highest", way)}

    monkeypatch.setattr(speed, "routes", one_route)
    found = speed.time_products(30, 40, 20, 3, CPU, lambda: now[0])
    x, weight = kept
    exact = x.double() @ weight.double().T
    error = ((x @ weight.T - exact).norm() / exact.norm()).item()
    assert x.shape == (30, 40) and weight.shape == (20, 40) and 0 < error < 1e-6
    assert found == {"a": (2.0, pytest.approx(error))}


def test_products_of_all_shapes_make_one_rate_and_the_largest_error(monkeypatch):
    errors = iter([1e-7, 2e-7, 2e-5, 1e-7, 1e-7])

    def timed(m, k, n, rounds, device, clock):
        return {"torch": (m * k * n / 1e9, 2e-6), "other": (m * k * n / 4e9, next(errors))}

    monkeypatch.setattr(speed, "time_products", timed)
    assert speed.measure_products(TransformerConfig(**SIZES), 100, CPU) == [
        {"route": "torch", "gflops_per_second": 2.0, "error": 2e-6, "fp32_class": True},
        {"route": "other", "gflops_per_second": 8.0, "error": 2e-5, "fp32_class": False}]


def test_a_process_of_its_own(monkeypatch, capsys):
    arguments = dict(form="kernel", n=32, device="cpu")
    figures = speed.in_a_process("attention_of", **arguments)
    assert figures["n"] == 32 and figures["seconds"] > 0 and figures["above_start_gib"] >= 0
    filled = torch.ones(2**28)  # 1 GiB here is not the new process's
    assert speed.in_a_process("attention_of", **arguments)["above_start_gib"] < 0.5 and filled.numel()
    sizes = {**speed.QUICK, "vocab_size": 30_000}
    memory = speed.in_a_process("memory_of", name="plain", sizes=sizes, tokens=2000, device="cpu")
    assert 0.3 < memory["above_start_gib"] < 3  # logits alone: 2,000 times 30,000 numbers of 4 bytes, and gradients
    killed = types.SimpleNamespace(returncode=-9, stdout="", stderr="out of memory")
    monkeypatch.setattr(speed.subprocess, "run", lambda *arguments, **named: killed)
    assert speed.in_a_process("attention_of", **arguments) is None
    assert "status -9. out of memory" in capsys.readouterr().err


def test_the_fast_way_learns_what_the_plain_way_learns():
    """In double precision, with the same entries dropped, fifty updates lead to the same weights."""
    c = TransformerConfig(**{**SIZES, "P_drop": 0.3, "eos_id": 2})
    batches, systems = speed.draw_batches(c.vocab_size, 60, 50, CPU), []
    for name in ("plain", "fast"):
        torch.manual_seed(5)
        system = speed.TRAINED[name](c).double().prepare()
        speed.accelerate(system.model, [nn.Dropout])
        for number, batch in enumerate(batches):
            system.seed, system.rate = number, 1e-3
            torch.manual_seed(number)
            system.update(batch, speed.real_tokens(batch))
        systems.append(system)
    plain, fast = (dict(system.model.named_parameters()) for system in systems)
    assert all(torch.allclose(plain[name], fast[name], rtol=0, atol=1e-7) for name in plain)
    torch.manual_seed(5)
    fresh = speed.TRAINED["fast"](c).double().model.embedding.weight
    assert not torch.allclose(fast["embedding.weight"], fresh, atol=1e-3)


def test_all_ways_learn_from_the_same():
    """After a few updates, before roundings have grown, all stand where plain does: same batches, same dropout."""
    plain, *ways = speed.bundled_learning(quick=True)
    assert [row["way"] for row in ways] == list(speed.WAYS)[1:] and len(set(plain["losses"])) == len(plain["losses"])
    for row in ways:
        assert row["losses"] == pytest.approx(plain["losses"], abs=2e-2 if row["way"] == "fast, bf16" else 2e-4)


def test_a_part_that_memory_does_not_hold_is_left_out(tmp_path, monkeypatch, capsys):
    """And the parts after it are measured all the same."""
    def measure(b, part):
        if part == "T1":
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return [{"route": "torch", "gflops_per_second": 1.0}]

    monkeypatch.setattr(speed, "measure", measure)
    path = tmp_path / "bench.json"
    speed.run_bench(speed.Bench(("T1", "products"), quick=True, device="cpu", record=path))
    assert list(json.loads(path.read_text())["parts"]) == ["products"]
    assert "T1 is left out: it does not fit into this GPU's memory" in capsys.readouterr().out


def test_the_longest_part_only_where_it_is_named(monkeypatch):
    asked = []
    monkeypatch.setattr(speed, "measure", lambda b, part: asked.append(part) or [{"row": 1}])
    monkeypatch.setattr(speed, "fraction_of_peak", lambda parts: {})
    speed.run_bench(speed.Bench(device="cpu"))
    assert asked == ["T1", "T2", "small", "T3", "T4", "levers", "memory", "attention", "products"]


def test_what_is_written(tmp_path, monkeypatch, capsys):
    """The parts that were asked for, with everything needed to judge them; memory and attention run elsewhere."""
    figures = {"system": "fast", "peak_gib": 1.0, "above_start_gib": 0.5}
    monkeypatch.setattr(speed, "in_a_process", lambda function, **arguments: figures)
    path = tmp_path / "new" / "bench.json"
    parts = ("T1", "T3", "levers", "memory", "products")
    speed.run_bench(speed.Bench(parts, quick=True, device="cpu", clock="cpu", record=path), "the command")
    written, printed = json.loads(path.read_text()), capsys.readouterr().out
    for name in ("command", "commit", "hardware", "threads", "torch", "clock", "seed", "rounds", "minutes"):
        assert name in written, name
    assert list(written["parts"]) == list(parts) and written["command"] == "the command"
    training = list(written["parts"]["T1"].values())
    for figure in [*training, written["parts"]["T3"]]:
        decoding = "beam" in figure
        assert [(row["system"], row["matmul"]) for row in figure["rows"]] == [
            (name, precision) for name in speed.available(speed.WORDS if decoding else speed.TRAINED)
            for precision in ("highest", "medium") if (name, precision) != ("ctranslate2", "medium")]
        assert all(math.isfinite(row["tokens_per_second"]) and row["tokens_per_second"] > 0 for row in figure["rows"])
    assert [figure["P_drop"] for figure in training] == [0.1, 0.0, 0.1]
    assert training[2]["padding"] == 0 < training[0]["padding"]
    routes = {row["route"]: row for row in written["parts"]["products"]}
    assert routes["torch"]["fp32_class"] and not routes["bf16"]["fp32_class"]
    assert routes["torch"]["error"] < 1e-5 < 1e-4 < routes["bf16"]["error"]
    assert list(written["fraction_of_peak"]) == ["dropout", "no_dropout", "similar_lengths"]
    assert "torch.nn.Transformer" in printed and "T3" in printed


@pytest.mark.parametrize("wrong, message", [
    (dict(parts=("T9",)), "no part T9: choose from T1"), (dict(clock="sun"), "clock is wall or cpu, not sun"),
    (dict(rounds=0), "rounds must be 1 or more")])
def test_what_cannot_be_measured_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        speed.Bench(**wrong)


@pytest.mark.parametrize("pulled", range(1, len(speed.LEVERS) + 1))
def test_each_lever_is_pulled_once_and_changes_no_loss(pulled, monkeypatch):
    """With the first so many levers: the plain loss, to rounding; and nothing is switched that was not pulled."""
    c, (batch,) = TransformerConfig(**SIZES), speed.draw_batches(40, 200, 1, CPU)
    plain, levered = speed.make_systems(c, ["plain"], CPU)["plain"].prepare(), speed.Levered(c, pulled).prepare()
    levered.load_state_dict(plain.state_dict())
    tokens, levers = speed.real_tokens(batch), set(speed.LEVERS[:pulled])
    expected = pytest.approx(plain.update(batch, tokens), rel=1e-2 if "bf16" in levers else 1e-5)
    whole, precisions, cross_entropy, autocast = [], [], nn.functional.cross_entropy, speed.autocast
    monkeypatch.setattr(nn.functional, "cross_entropy", lambda *a, **b: whole.append(1) or cross_entropy(*a, **b))
    monkeypatch.setattr(speed, "autocast", lambda device, name: precisions.append(name) or autocast(device, name))
    assert levered.update(batch, tokens) == expected
    assert levered.pulled == speed.LEVERS[:pulled] and len(whole) == ("loss in chunks" not in levers)
    assert precisions == ["bf16" if "bf16" in levers else "fp32"]
    switched = {type(module) for module in levered.modules() if "forward" in vars(module)}
    kinds = {"attention": {MultiHeadAttention}, "dropout": {nn.Dropout, Residual}}
    assert switched == set().union(*(kinds[lever] for lever in kinds if lever in levers))
    if "fused Adam" in levers:  # where this torch has it
        assert levered.optimizer.defaults["fused"] == adam(levered.model).defaults["fused"]
    else:
        assert not levered.optimizer.defaults["fused"]


def test_all_levers_do_the_same_work_but_for_similar_lengths(monkeypatch):
    updates = []

    class Told:
        def __init__(self, c, count):
            self.pulled = speed.LEVERS[:count]

        def to(self, device):
            return self

        def prepare(self):
            return self

        def update(self, batch, tokens):
            updates.append((len(self.pulled), batch, tokens))

    monkeypatch.setattr(speed, "Levered", Told)
    monkeypatch.setattr(speed, "draw_batches", lambda vocab_size, tokens, count, device, spread: [
        (spread, number) for number in range(count)])
    monkeypatch.setattr(speed, "real_tokens", lambda batch: 90 if batch[0] else 120)
    monkeypatch.setattr(speed, "in_turns", lambda works, rounds, device, clock: {
        row: [work(number) for number in range(rounds)] for row, work in works.items()})
    rows = speed.measure_levers(speed.QUICK, 100, 2, CPU)
    assert updates == [(count, (0.18 if count == 1 else 0.0, number), 90 if count == 1 else 120)
                       for count in range(1, len(speed.LEVERS) + 1) for number in range(2)]
    assert rows == [{"lever": lever, "tokens_per_second": 90 if lever == "plain" else 120,
                     "over_plain": 1 if lever == "plain" else 1.333} for lever in speed.LEVERS]


# Export

needs_ctranslate2 = pytest.mark.skipif("ctranslate2" not in speed.available(["ctranslate2"]),
                                       reason="ctranslate2 is not installed")


def random_model(seed=0, **changes):
    """A model whose every weight is random, gains and biases too."""
    torch.manual_seed(seed)
    model = Transformer(TransformerConfig(**{**SIZES, "eos_id": 2, "vocab_size": 60, **changes})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@needs_ctranslate2
@pytest.mark.parametrize("changes", [{}, dict(norm_first=True), dict(positions="learned", max_positions=30),
                                     dict(tie_embeddings=False)], ids=str)
def test_ctranslate2_gives_every_token_the_same_probability(tmp_path, changes):
    """Log probabilities of given targets, and what greedy search finds; the sentences differ in length."""
    import ctranslate2

    model, names = random_model(**changes), [f"t{i}" for i in range(60)]
    speed.export_ctranslate2(model, names, tmp_path / "there")
    there = ctranslate2.Translator(str(tmp_path / "there"), compute_type="float32", intra_threads=1)
    chance = torch.Generator().manual_seed(1)
    sources = [torch.randint(3, 60, (n,), generator=chance).tolist() + [2] for n in (3, 9, 6)]
    targets = [torch.randint(3, 60, (n,), generator=chance).tolist() for n in (5, 2, 11)]
    named = [[[names[i] for i in row] for row in rows] for rows in (sources, targets)]
    for source, target, theirs in zip(sources, targets, there.score_batch(*named)):
        log_probs = model(torch.tensor([source]), torch.tensor([[1, *target]]))[0].log_softmax(dim=-1)
        ours = [log_probs[t, token].item() for t, token in enumerate([*target, 2])]
        assert theirs.log_probs == pytest.approx(ours, abs=1e-4)
    found = there.translate_batch(named[0], beam_size=1, max_decoding_length=15)
    for source, result in zip(sources, found):
        ours = greedy_search(model, torch.tensor([source]), extra=15 - len(source))[0]
        assert [names.index(name) for name in result.hypotheses[0]] == [i for i in ours if i != 2]


@needs_ctranslate2
def test_the_bundled_model_translates_the_same_there(tmp_path):
    model, tokenizer = load()
    speed.export_ctranslate2(model, speed.type_names(tokenizer), tmp_path / "there")
    sentences = [source for source, _ in read_corpus("bundled", "validation")[:60]]
    ours = translate(model, tokenizer, sentences, beam=1)
    assert speed.translate_there(tmp_path / "there", tokenizer, sentences) == ours and len(set(ours)) > 50


@needs_ctranslate2
def test_what_cannot_be_exported(tmp_path):
    names = [f"t{i}" for i in range(60)]
    with pytest.raises(ValueError, match="d_k=8, d_v=None: it cannot be exported"):
        speed.export_ctranslate2(random_model(d_k=8), names, tmp_path / "there")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError, match="there is there already"):
        speed.export_ctranslate2(random_model(), names, tmp_path / "there")


def test_an_export_without_ctranslate2_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(speed.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install"):
        speed.export_ctranslate2(random_model(), [], tmp_path / "there")
