"""The position-wise network, against equation 2 and against two convolutions."""

import pytest
import torch
import torch.nn.functional as F

from transformer.feed_forward import FeedForward


@pytest.fixture
def network():
    torch.manual_seed(0)
    return FeedForward(6, 10).double()


def test_equals_a_loop_over_positions_and_units(network):
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    y = network(x)
    for b in range(2):
        for t in range(3):
            expected = network.W_2.bias.clone()
            for j in range(10):
                unit = (
                    sum(x[b, t, i] * network.W_1.weight[j, i] for i in range(6))
                    + network.W_1.bias[j]
                )
                expected = expected + max(unit.item(), 0.0) * network.W_2.weight[:, j]
            assert torch.allclose(y[b, t], expected, rtol=0, atol=1e-9)


def test_equals_two_convolutions_of_kernel_size_1(network):
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    W_1, b_1, W_2, b_2 = network.parameters()
    hidden = F.conv1d(x.transpose(1, 2), W_1[:, :, None], b_1).relu()
    convolved = F.conv1d(hidden, W_2[:, :, None], b_2).transpose(1, 2)
    assert torch.allclose(convolved, network(x), rtol=0, atol=1e-9)


def test_no_position_sees_another(network):
    x = torch.randn(1, 4, 6, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(network(x)[0, 2].sum(), x)
    assert gradient[0].norm(dim=-1).gt(0).tolist() == [False, False, True, False]


def test_two_units_compute_the_absolute_value():
    network = FeedForward(1, 2)
    numbers = ([[1.0], [-1.0]], [0.0, 0.0], [[1.0, 1.0]], [0.0])
    network.load_state_dict(dict(zip(network.state_dict(), map(torch.tensor, numbers))))
    assert network(torch.tensor([[-3.0], [0.0], [2.0]])).flatten().tolist() == [
        3.0,
        0.0,
        2.0,
    ]
