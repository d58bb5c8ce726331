"""What an update asks of a device: the counting itself, and that no host stands in the loop."""

import pytest
import torch

from transformer.bench.dispatch import dispatched

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
