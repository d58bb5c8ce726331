"""Dropout from few random bits."""

import torch
from torch import Tensor, nn


class BitDropout(nn.Dropout):
    """`nn.Dropout` that takes 16 random bits an entry on a CPU, where torch draws a number for
    each; elsewhere, and in what torch.compile writes, it is torch's.

    An entry is lost with probability p, rounded to a multiple of 1/65,536.
    """

    def forward(self, x: Tensor) -> Tensor:
        idle = not self.training or self.p in (0, 1)
        if idle or x.device.type != "cpu" or torch.compiler.is_compiling():
            return super().forward(x)
        return (x * random_keep(x, self.p)).mul_(1 / (1 - self.p))


def random_keep(x: Tensor, p: float) -> Tensor:
    """0 with probability p, else 1, for every entry of x, as bytes: torch multiplies by them
    several times as fast as by booleans.
    """
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device)
    bits = words.random_(-(2**63), None).view(torch.int16)[: x.numel()].view(x.shape)
    return (bits >= round(p * 2**16) - 2**15).view(torch.uint8)
