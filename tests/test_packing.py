"""Packed batches: their layout, attention inside documents by three ways, and training on them."""

import dataclasses
import inspect
import itertools

import numpy as np
import pytest
import torch
from helpers import needs_newer_torch
from test_training import (
    BRIEF,
    SMALL,
    encoded,  # noqa: F401
    model_of,
    resumes,
    without_dropout,
)
from torch._dynamo.testing import CompileCounterWithBackend
from torch._dynamo.utils import counters

from transformer.data import collate
from transformer.fast import FAST, documents
from transformer.fast.attention import MultiHeadAttention, kernel_attention
from transformer.fast.documents import (
    PackedBatch,
    document_attention,
    document_mask,
    way_on,
)
from transformer.fast.loss import ChunkedLoss, SmoothedLoss
from transformer.fast.model import Transformer
from transformer.fast.packing import Layout, fill_packs, layout_of, pack
from transformer.fast.training import fused_adam
from transformer.hardware import loss_scaler
from transformer.models.checkpoint import progress_in
from transformer.optimizer import adam
from transformer.runs.batches import epoch_packs, epochs_in_memory, packed_layout
from transformer.runs.training import (
    Trainer,
    TrainingConfig,
    endless_batches,
    train,
)
from transformer.runs.update import Objective, copied, update_weights

pytestmark = pytest.mark.usefixtures("one_thread")
LAYOUT = Layout(tokens=64, sentences=9, longest=10)
PAIRS = [
    ([5, 6, 2], [1, 7, 2]),
    ([8, 2], [1, 9, 9, 9, 2]),
    ([4, 4, 4, 4, 2], [1, 3, 2]),
]
SIDES = ("sources", "targets")
PACKED = dataclasses.replace(BRIEF, packed=True, batch_tokens=64)


def numbers(batch):
    """Everything of a batch as one list of tensors."""
    sides = [getattr(batch, name) for name in SIDES]
    of_sides = [x for s in sides for x in (s.numbers, s.positions, s.offsets)]
    return [batch.source, batch.decoder_input, batch.gold, *of_sides]


# The layout


def test_sentences_lie_back_to_back():
    batch = pack(PAIRS, LAYOUT)
    ids = [5, 6, 2, 8, 2, 4, 4, 4, 4, 2]
    assert batch.source[0].tolist() == ids + [0] * 54
    assert batch.decoder_input[0].tolist() == [1, 7, 1, 9, 9, 9, 1, 3] + [0] * 56
    assert batch.gold[0].tolist() == [7, 2, 9, 9, 9, 2, 3, 2] + [0] * 56
    assert batch.sources.positions[:10].tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3, 4]
    assert batch.targets.numbers[:8].tolist() == [0, 0, 1, 1, 1, 1, 2, 2]


def test_offsets_have_one_length_and_agree_with_the_numbers():
    batch = pack(PAIRS, LAYOUT)
    for side in (batch.sources, batch.targets):
        assert len(side.offsets) == LAYOUT.sentences + LAYOUT.tails + 1
        assert side.offsets.dtype == torch.int32
        assert side.offsets[0] == 0
        assert side.offsets[-1] == LAYOUT.tokens
        sizes = side.offsets.diff()
        assert torch.equal(sizes, torch.bincount(side.numbers, minlength=len(sizes)))
        assert sizes.max() <= side.longest == LAYOUT.longest
        assert (sizes[-LAYOUT.tails :] > 0).all()


def test_all_batches_have_one_shape(encoded):  # noqa: F811
    layout = packed_layout(encoded, 64)
    packs = list(epoch_packs(encoded, layout, seed=3))
    batches = [pack([encoded[i] for i in rows], layout) for rows in packs]
    shapes = {tuple(x.shape for x in numbers(batch)) for batch in batches}
    assert len(batches) > 2
    assert len(shapes) == 1


def test_an_epoch_of_packs_has_every_pair_once(encoded):  # noqa: F811
    layout = packed_layout(encoded, 64)
    orders = [list(epoch_packs(encoded, layout, seed)) for seed in (1, 2)]
    for packs in orders:
        assert sorted(sum(packs, [])) == list(range(len(encoded)))
    assert orders[0] != orders[1]


def test_the_stream_of_packs_goes_on_from_any_place(encoded):  # noqa: F811
    layout = packed_layout(encoded, 64)
    stream = endless_batches(encoded, 64, 5, layout=layout)
    whole = list(itertools.islice(stream, 12))
    for k in (1, 4, 11):
        epoch, index, _ = whole[k]
        rest = endless_batches(encoded, 64, 5, epoch, index, layout)
        assert list(itertools.islice(rest, 12 - k)) == whole[k:]


def test_packs_are_full_but_for_what_no_sentence_fits_into(encoded):  # noqa: F811
    layout = packed_layout(encoded, 64)
    *full, _ = epoch_packs(encoded, layout, 1)
    for rows in full:
        used = max(
            sum(len(encoded[i][0]) for i in rows),
            sum(len(encoded[i][1]) - 1 for i in rows),
        )
        assert layout.room - layout.longest < used <= layout.room


def test_too_many_sentences_begin_another_pack():
    lengths = np.full(20, 2)
    packs = fill_packs(list(range(20)), lengths, lengths, LAYOUT)
    assert [len(rows) for rows in packs] == [9, 9, 2]


def test_what_does_not_fit_is_refused(encoded):  # noqa: F811
    with pytest.raises(ValueError, match="room for a sentence of 8.*one has 9.*more"):
        layout_of(np.array([9]), np.array([4]), tokens=9)
    with pytest.raises(ValueError, match="do not fit into"):
        pack(PAIRS * 4, LAYOUT)
    with pytest.raises(ValueError, match="Transformer reads no packed batches"):
        model = model_of()
        model.reads_packed = False
        train(model, encoded, PACKED)
    with pytest.raises(ValueError, match="way must be"):
        batch = pack(PAIRS, LAYOUT)
        document_mask(batch.sources, batch.sources, False, "other")


# Attention inside documents


def sides_of(batch, kind):
    """Queries, keys and whether causal, of encoder, decoder and what the decoder looks at."""
    return {
        "encoder": (batch.sources, batch.sources, False),
        "decoder": (batch.targets, batch.targets, True),
        "cross": (batch.targets, batch.sources, False),
    }[kind]


KINDS = ("encoder", "decoder", "cross")


@pytest.mark.parametrize("kind", KINDS)
def test_the_mask_has_a_block_for_each_document(kind):
    queries, keys, causal = sides_of(pack(PAIRS, LAYOUT), kind)
    table = document_mask(queries, keys, causal, "dense").dense()
    expected = torch.zeros(64, 64, dtype=torch.bool)
    for (a, b), (c, d) in zip(
        itertools.pairwise(queries.offsets.tolist()),
        itertools.pairwise(keys.offsets.tolist()),
    ):
        block = torch.ones(b - a, d - c, dtype=torch.bool)
        expected[a:b, c:d] = block.tril() if causal else block
    assert torch.equal(table, expected)
    assert table.any(dim=1).all()  # the tail attends to itself


def by_offsets(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, causal):
    """Attention one document at a time, as torch's varlen_attn is documented: (n, h, d)."""
    rows = []
    for (a, b), (c, d) in zip(
        itertools.pairwise(cu_seq_q.tolist()), itertools.pairwise(cu_seq_k.tolist())
    ):
        assert b - a <= max_q and d - c <= max_k
        q, k, v = (x.transpose(0, 1) for x in (query[a:b], key[c:d], value[c:d]))
        mask = torch.ones(b - a, d - c, dtype=torch.bool).tril() if causal else None
        rows.append(kernel_attention(q[None], k[None], v[None], mask)[0][0])
    return torch.cat(rows, dim=1).transpose(0, 1)


def old_varlen(q, k, v, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False):
    return by_offsets(q, k, v, cu_seq_q, cu_seq_k, max_q, max_k, is_causal)


def new_varlen(q, k, v, cu_seq_q, cu_seq_k, max_q, max_k, *, window_size=(-1, -1)):
    assert window_size in [(-1, -1), (-1, 0)]
    causal = window_size == (-1, 0)
    return by_offsets(q, k, v, cu_seq_q, cu_seq_k, max_q, max_k, causal)


def heads_of(batch):
    generator = torch.Generator().manual_seed(1)
    shape = 3, 1, 2, LAYOUT.tokens, 8
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [old_varlen, new_varlen])
def test_attention_by_offsets_equals_the_dense_table(monkeypatch, kind, form):
    """With a stand-in for torch's kernel, which is for GPUs, in both of its signatures."""
    told = {"is_causal": True} if form is old_varlen else {"window_size": (-1, 0)}
    monkeypatch.setattr(documents, "varlen", lambda: (form, told))
    batch = pack(PAIRS, LAYOUT)
    q, k, v = heads_of(batch)
    results = [
        document_attention(q, k, v, document_mask(*sides_of(batch, kind), way))
        for way in ("dense", "varlen")
    ]
    torch.testing.assert_close(*results, rtol=0, atol=1e-12)


def test_torchs_varlen_takes_what_it_is_given():
    found = documents.varlen()
    if found is None:
        pytest.skip("this torch has no torch.nn.attention.varlen")
    attend, causal = found
    inspect.signature(attend).bind(*range(7), **causal)


def test_without_varlen_it_is_said_what_to_take(monkeypatch):
    monkeypatch.setattr(documents, "varlen", lambda: None)
    batch = pack(PAIRS, LAYOUT)
    q, k, v = heads_of(batch)
    mask = document_mask(batch.sources, batch.sources, False, "varlen")
    with pytest.raises(RuntimeError, match="no torch.nn.attention.varlen.*way flex"):
        document_attention(q, k, v, mask)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("kind", KINDS)
def test_flex_attention_equals_the_dense_table(kind):
    """Its forward pass, as the formula; compiled kernels are for GPUs."""
    pytest.importorskip("torch.nn.attention.flex_attention")
    layout = Layout(tokens=128, sentences=9, longest=16)
    batch = pack(PAIRS, layout)
    q, k, v = torch.randn(3, 1, 2, 128, 16)
    results = [
        document_attention(q, k, v, document_mask(*sides_of(batch, kind), way))
        for way in ("dense", "flex")
    ]
    torch.testing.assert_close(*results, rtol=0, atol=1e-5)


def test_the_way_goes_by_device_precision_and_torch(monkeypatch):
    assert way_on(torch.device("cpu"), "bf16") == "dense"
    gpu = torch.device("cuda")
    monkeypatch.setattr(documents, "varlen", lambda: (None, {}))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert way_on(gpu, "bf16") == "varlen"
    assert way_on(gpu, "fp32") == "flex"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert way_on(gpu, "fp16") == "flex"  # Colab's T4 has no flash attention
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(documents, "varlen", lambda: None)
    assert way_on(gpu, "bf16") == "flex"


# The model


def results_of(model, batches, criterion, tokens):
    """Loss and gradients of a model on some batches together."""
    model.zero_grad()
    losses = [model.loss(batch, criterion) / tokens for batch in batches]
    sum(losses).backward()
    return sum(losses).item(), [p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("criterion", [SmoothedLoss(0.1), ChunkedLoss(0.1)])
@pytest.mark.parametrize("way", ["dense", "varlen"])
@pytest.mark.parametrize("tied", [True, False])
def test_packed_equals_padded(
    monkeypatch,
    encoded,  # noqa: F811
    positions,
    criterion,
    way,
    tied,  # noqa: F811
):
    """Loss and all gradients, fp64."""
    told = {"window_size": (-1, 0)}
    monkeypatch.setattr(documents, "varlen", lambda: (new_varlen, told))
    c = without_dropout(positions=positions, tie_embeddings=tied)
    torch.manual_seed(1)
    model = Transformer(c, FAST).double()
    layout = packed_layout(encoded, 64)
    packs = [
        pack([encoded[i] for i in rows], layout, way=way)
        for rows in epoch_packs(encoded, layout)
    ]
    tokens = sum(len(target) - 1 for _, target in encoded)
    loss, gradients = results_of(model, packs, criterion, tokens)
    padded, expected = results_of(model, [collate(encoded)], criterion, tokens)
    assert loss == pytest.approx(padded, rel=1e-12)
    for a, b in zip(gradients, expected):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_any_attention_reads_a_packed_batch_by_the_table(encoded):  # noqa: F811
    """One that gives its weights, too."""
    model = model_of(without_dropout()).double()
    assert isinstance(model.encoder.layers[0].self_attention, MultiHeadAttention)
    layout = packed_layout(encoded[:5], 64)
    loss = model.loss(pack(encoded[:5], layout), SmoothedLoss())
    padded = model.loss(collate(encoded[:5]), SmoothedLoss())
    torch.testing.assert_close(loss, padded, rtol=1e-12, atol=0)


# Training


def test_an_update_of_packs_equals_one_of_padded_batches(encoded):  # noqa: F811
    layout = packed_layout(encoded, 64)
    packs = [
        (0, pack([encoded[i] for i in rows], layout))
        for rows in epoch_packs(encoded, layout)
    ]
    tokens = sum(len(target) - 1 for _, target in encoded)
    models = []
    for batches in (packs, [(0, collate(encoded))]):
        model = model_of(without_dropout()).double()
        scaler = torch.amp.GradScaler("cpu", enabled=False)
        objective = Objective(model, SmoothedLoss())
        update_weights(objective, adam(model), scaler, batches, tokens, 0.01, 0.5)
        models.append(model)
    for a, b in zip(*(model.parameters() for model in models)):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_packed_training_resumes(encoded, tmp_path, monkeypatch, accumulate):  # noqa: F811
    config = dataclasses.replace(PACKED, accumulate=accumulate)
    monkeypatch.setitem(resumes.__globals__, "BRIEF", config)
    log = resumes(encoded, tmp_path)
    assert log[-1]["loss"] < log[0]["loss"]
    assert log[-1]["tokens"] > 0


def test_the_figures_count_real_tokens(encoded):  # noqa: F811
    config = dataclasses.replace(PACKED, updates=1)
    trainer = Trainer(model_of(), encoded, config)
    _, _, rows = next(endless_batches(encoded, 64, config.seed, layout=trainer.layout))
    log = trainer.run()
    assert log[-1]["tokens"] == sum(len(encoded[i][1]) - 1 for i in rows)


def test_epochs_are_counted_in_packs(encoded):  # noqa: F811
    packs = list(epoch_packs(encoded, packed_layout(encoded, 64)))
    config = TrainingConfig(updates=2 * len(packs), batch_tokens=64, packed=True)
    assert epochs_in_memory(config, encoded) == pytest.approx(2, rel=0.3)


def test_packed_batches_are_moved_whole(encoded):  # noqa: F811
    layout = packed_layout(encoded, 64)
    batch = pack(encoded[:3], layout)
    moved = copied(batch, torch.device("meta"))
    assert isinstance(moved, PackedBatch)
    assert all(x.is_meta for x in numbers(moved))
    assert moved.way == batch.way
    assert moved.sources.longest == layout.longest


@needs_newer_torch
@pytest.mark.parametrize("criterion", [ChunkedLoss(), SmoothedLoss()])
def test_a_compiled_update_is_one_graph_for_all_packs(encoded, criterion):  # noqa: F811
    """No break in it, and nothing compiled again after the first."""
    torch._dynamo.reset()
    counters.clear()
    layout = packed_layout(encoded, 64)
    model = Transformer(SMALL, FAST)
    backend = CompileCounterWithBackend("aot_eager")
    objective = torch.compile(Objective(model, criterion), backend=backend)
    parts = objective, fused_adam(model), torch.amp.GradScaler("cpu", enabled=False)
    stream = endless_batches(encoded, 64, 5, layout=layout)
    for seed, (_, _, rows) in enumerate(itertools.islice(stream, 6)):
        batch = pack([encoded[i] for i in rows], layout)
        update_weights(*parts, [(seed, batch)], 50, 0.01, 1.0)
    assert not counters["graph_break"]
    assert backend.frame_count == 1
    torch._dynamo.reset()


# Short numbers


@pytest.mark.parametrize("precision, tolerance", [("bf16", 0.05), ("fp16", 0.01)])
def test_packs_in_short_numbers(encoded, precision, tolerance):  # noqa: F811
    """Their gradient, whose loss fp16 scales, beside that of padded batches in fp32."""
    layout = packed_layout(encoded[:5], 64)
    gradients = []
    for batch, name in (
        (collate(encoded[:5]), "fp32"),
        (pack(encoded[:5], layout), precision),
    ):
        model = model_of(without_dropout())
        scaler = loss_scaler(torch.device("cpu"), name)
        parts = Objective(model, ChunkedLoss(), name), fused_adam(model), scaler
        update_weights(*parts, [(0, batch)], 25, 0.0)
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    expected, short = gradients
    assert (short - expected).norm() < tolerance * expected.norm()


def test_packed_training_in_fp16_resumes_with_its_scale(
    encoded,  # noqa: F811
    tmp_path,
    monkeypatch,
):
    config = dataclasses.replace(PACKED, precision="fp16")
    monkeypatch.setitem(resumes.__globals__, "BRIEF", config)
    resumes(encoded, tmp_path, optimizer=fused_adam)
    progress = progress_in(tmp_path / "parts" / "checkpoint.safetensors")
    assert progress["scaler"]["scale"] == 2.0**16
    assert progress["scaler"]["_growth_tracker"] == 7


def test_a_bad_update_in_fp16_halves_the_scale_and_leaves_the_weights(
    encoded,  # noqa: F811
):
    layout = packed_layout(encoded[:5], 64)
    model = model_of()
    scaler = loss_scaler(torch.device("cpu"), "fp16")
    optimizer = fused_adam(model)
    parts = Objective(model, ChunkedLoss(), "fp16"), optimizer, scaler
    batches = [(0, pack(encoded[:5], layout))]
    update_weights(*parts, batches, 25, 0.01, 1.0)
    before = [p.detach().clone() for p in model.parameters()]
    spoil = model.encoder.register_forward_hook(lambda *_: _[2] * torch.inf)
    _, norm = update_weights(*parts, batches, 25, 0.01, 1.0)
    spoil.remove()
    assert not norm.isfinite()
    assert all(map(torch.equal, before, model.parameters()))
    assert scaler.get_scale() == 2.0**15
    assert optimizer.state[next(model.parameters())]["step"] == 1
    update_weights(*parts, batches, 25, 0.01, 1.0)
    assert not all(map(torch.equal, before, model.parameters()))
