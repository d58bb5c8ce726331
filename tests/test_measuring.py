"""Memory and time of layers: what is counted, who takes turns, what a bad minute spoils."""

import time

import pytest
import torch
from torch import nn

from transformer.teaching.measuring import TensorMemory, measure, work


def test_memory_of_what_is_held_at_once():
    x = torch.randn(500, 500)
    with TensorMemory() as memory:
        y = (x @ x + 1).t().relu_()
        x.mul_(2)
        z = y[:250] * 2
        parts = x.split(250)
    assert (memory.peak, memory.held) == (2_000_000, 1_500_000)
    del y, z, parts
    assert memory.held == 0


def test_memory_of_the_backward_pass():
    x = torch.randn(1000, requires_grad=True)
    with TensorMemory() as memory:
        (gradient,) = torch.autograd.grad(x.exp().sum(), x)
    assert memory.held == 4000 and 8000 <= memory.peak <= 16_100


@pytest.mark.parametrize("training", [False, True])
def test_work_takes_all_gradients_only_when_training(training):
    seen = []
    layer = nn.Linear(4, 4)
    layer.weight.register_hook(lambda gradient: seen.append("weight"))
    x = torch.randn(1, 3, 4, requires_grad=training)
    x.requires_grad and x.register_hook(lambda gradient: seen.append("x"))
    work(layer, x, training)
    assert (
        sorted(seen) == (["weight", "x"] if training else [])
        and layer.weight.grad is None
    )


def test_the_forward_pass_alone_keeps_nothing_for_a_gradient():
    chain = nn.Sequential(*[nn.Linear(100, 100) for _ in range(5)])
    with TensorMemory() as memory:
        work(chain, torch.randn(100, 100))
    assert memory.peak < 3 * 40_000 + 1000


class Slow(nn.Module):
    """Doubles x, in no less than `least(number of the call)` seconds; `calls` are the shapes that it saw."""

    def __init__(self, least=lambda call: 0.003):
        super().__init__()
        self.least, self.calls = least, []

    def forward(self, x):
        end = time.thread_time() + self.least(len(self.calls))
        self.calls.append(tuple(x.shape))
        while time.thread_time() < end:
            pass
        return x * 2


class Quick(nn.Module):
    def forward(self, x):
        return x + torch.cat([x, x])[: len(x)]


def test_measures_each_layer_at_each_size():
    slow, heard = Slow(), []
    found = measure(
        {"slow": slow, "quick": Quick()},
        [8, 16],
        5,
        passes=3,
        seconds=0.0,
        tell=lambda number, mode, n, times: heard.append(
            (number, mode, n, list(times))
        ),
    )
    modes = ["forward", "training"]
    assert (
        slow.calls == [(1, 8, 5), (1, 16, 5)] * 2 * 4
    )  # in both modes, once for memory, three times for the clock
    assert heard == [
        (i, mode, n, ["slow", "quick"])
        for i in (1, 2, 3)
        for mode in modes
        for n in (8, 16)
    ]
    for mode in modes:
        assert (
            min(found[mode]["slow"]["seconds"])
            > 2 * max(found[mode]["quick"]["seconds"])
            > 0
        )
    assert found["forward"]["slow"]["bytes"] == [160, 320] and found["forward"][
        "quick"
    ]["bytes"] == [480, 960]
    assert all(a > b for a, b in zip(found["training"]["slow"]["bytes"], [160, 320]))


@pytest.mark.parametrize("first", range(4, 14))
def test_a_bad_minute_spoils_no_size(first):
    """Of the calls, four are for memory and four for each of three passes; three in a row are slow."""
    layer = Slow(lambda call: 0.02 if first <= call < first + 3 else 0.0)
    found = measure({"slow": layer}, [8, 16], 5, passes=3, seconds=0.0)
    assert all(max(found[mode]["slow"]["seconds"]) < 0.01 for mode in found)
