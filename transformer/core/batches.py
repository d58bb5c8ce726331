"""What a batch of two sides can do besides what chapter 10 shows of it."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor


class Sides:
    """Two tensors of token ids with padding, `source` and `target`, of a dataclass."""

    source: Tensor
    target: Tensor

    def to(self, device: torch.device | str) -> Any:
        """The batch on another device."""
        return replace(
            self, source=self.source.to(device), target=self.target.to(device)
        )

    def pairs(self, pad_id: int = 0) -> list:
        """Each pair as a batch of its own, without padding."""
        alone = []
        for source, target in zip(self.source, self.target):
            source, target = source[source != pad_id], target[target != pad_id]
            alone.append(
                replace(self, source=source.unsqueeze(0), target=target.unsqueeze(0))
            )
        return alone
