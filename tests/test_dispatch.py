"""What an update asks of a device: the counting itself, and that no host stands in the loop."""

from importlib import import_module

import pytest
import torch
from helpers import needs_newer_torch

from transformer.bench.dispatch import dispatched
from transformer.data import collate
from transformer.fast import FAST
from transformer.fast.loss import ChunkedLoss, SmoothedLoss
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.training import fused_adam
from transformer.hardware import loss_scaler
from transformer.optimizer import adam
from transformer.runs.update import Objective, update_weights

X = torch.arange(6.0).view(2, 3)


@pytest.mark.parametrize(
    "work, kernels, reads",
    [
        (lambda: X + 1, 1, 0),
        (lambda: X.T, 0, 0),  # a view
        (lambda: torch.empty(3), 0, 0),
        (lambda: (X @ X.T).relu().sum(), 3, 0),
        (lambda: X.sum().item(), 1, 1),
        (lambda: float(X.sum()), 1, 1),
        (lambda: bool((X > 3).any()), 2, 1),
        (lambda: X.tolist(), 0, 1),
        (lambda: X.numpy(), 0, 1),
        (lambda: X.cpu(), 0, 1),
        (lambda: X.nonzero(), 1, 1),
        (lambda: X[X > 3], 2, 1),
        (lambda: X[torch.tensor([1, 0])], 1, 0),  # the shape is known before
        (lambda: torch.equal(X, X), 1, 1),
    ],
)
def test_kernels_and_reads_are_counted(work, kernels, reads):
    found = dispatched(work)
    assert found.kernels.total() - found.kernels["lift_fresh"] == kernels
    assert found.reads.total() == reads


def test_backward_passes_count():
    x = X.clone().requires_grad_()
    found = dispatched(lambda: (x * x).sum().backward())
    assert found.kernels["mul"] == 3  # one forwards, two backwards
    assert found.reads.total() == 0


def test_allocations_and_casts_are_counted():
    found = dispatched(lambda: (X.to(torch.bfloat16), X.view(-1), X.add_(0), X + X))
    assert found.totals()["allocations"] == 2
    assert dict(found.casts) == {"torch.float32 to torch.bfloat16": 1}


# No host in the loop


@pytest.fixture
def fused_on_meta(monkeypatch):
    """Torch's fused optimizers on a device whose tensors have no numbers: any read is an error."""
    there = "_get_fused_kernels_supported_devices"
    optimizers = import_module("torch.optim.optimizer")
    if not hasattr(optimizers, there):
        pytest.skip("this torch does not say where it has fused optimizers")
    monkeypatch.setattr(optimizers, there, lambda: ["meta"])


def update_on_meta(scaler, clip, criterion, accumulate=1):
    c = TransformerConfig(100, d_model=16, d_ff=32, N=2, h=2)
    with torch.device("meta"):
        model = Transformer(c, FAST)
    batch = collate([([3, 4, 2], [1, 3, 2]), ([3, 2], [1, 3, 5, 5, 2])])
    optimizer = fused_adam(model)
    assert optimizer.param_groups[0]["fused"]
    batches = [(seed, batch) for seed in range(accumulate)]
    parts = Objective(model, criterion), optimizer, scaler, batches, 6, 0.1, clip
    update_weights(*parts)  # makes Adam's moments
    return dispatched(lambda: update_weights(*parts))


@needs_newer_torch
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("criterion", [ChunkedLoss(), SmoothedLoss()])
def test_an_update_reads_nothing(fused_on_meta, precision, clip, criterion):
    """Forward and backward pass, loss, clipping, skipping, loss scaling and Adam."""
    scaler = loss_scaler(torch.device("meta"), precision)
    found = update_on_meta(scaler, clip, criterion)
    assert found.reads.total() == 0
    assert found.kernels["_fused_adam_"] == 1
    assert found.kernels["_amp_update_scale_"] == (precision == "fp16")


@needs_newer_torch
def test_parts_of_a_batch_read_nothing(fused_on_meta):
    scaler = loss_scaler(torch.device("meta"), "fp32")
    one, three = (update_on_meta(scaler, 1.0, ChunkedLoss(), n) for n in (1, 3))
    assert three.reads.total() == 0
    assert three.kernels["native_layer_norm"] == 3 * one.kernels["native_layer_norm"]


def test_an_optimizer_that_cannot_skip_is_read_for(fused_on_meta):
    """So that the test above could fail."""
    c = TransformerConfig(100, d_model=16, d_ff=32, N=1, h=2)
    model = Transformer(c, FAST)
    batch = collate([([3, 4, 2], [1, 3, 2])])
    scaler = loss_scaler(torch.device("cpu"), "fp32")
    parts = Objective(model, ChunkedLoss()), adam(model), scaler, [(0, batch)], 2, 0.1
    assert dispatched(lambda: update_weights(*parts)).reads["_local_scalar_dense"] > 0
