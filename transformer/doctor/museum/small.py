"""The model of chapter 00 in methods that an exhibit breaks one by one, and the list of exhibits."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer import first_transformer as first

SIZES = dict(V=13, d_model=64, d_ff=128, h=4, N=2, P_drop=0.1)


@dataclass(frozen=True)
class Exhibit:
    """A broken model: make() gives what `checkup` takes, "model" and perhaps more.

    report: repository and number of the issue or pull request where somebody had this bug.
    """

    name: str
    organ: str
    report: str
    bug: str
    make: Callable[[], dict]

    @property
    def address(self) -> str:
        """Where the report can be read."""
        return f"https://github.com/{self.report.replace('#', '/issues/')}"


EXHIBITS: dict[str, Exhibit] = {}


def exhibit(organ: str, report: str, bug: str) -> Callable:
    """Put a function that makes a broken model, or a dict with one, into the museum."""

    def put(make: Callable) -> Callable:
        def made() -> dict:
            patient = make()
            return patient if isinstance(patient, dict) else {"model": patient}

        name = make.__name__.replace("_", "-")
        EXHIBITS[name] = Exhibit(name, organ, report, bug, made)
        return make

    return put


class Attention(first.Attention):
    """Chapter 00's, in steps."""

    def scaled(self, scores: Tensor, q: Tensor) -> Tensor:
        return scores / math.sqrt(q.shape[-1])

    def hidden(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)

    def weigh(self, scores: Tensor, mask: Tensor) -> Tensor:
        return self.hidden(scores, mask).softmax(dim=-1).masked_fill(~mask, 0)

    def join(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).flatten(2)

    def forward(self, x: Tensor, seen: Tensor, mask: Tensor) -> Tensor:
        q = self.split(self.W_Q(x))
        k = self.split(self.W_K(seen))
        v = self.split(self.W_V(seen))
        weights = self.weigh(self.scaled(q @ k.transpose(2, 3), q), mask)
        self.weights = weights.detach()  # kept for pictures
        return self.W_O(self.join(weights @ v))


class Small(first.Transformer):
    """Chapter 00's, in steps, and with any attention."""

    def __init__(self, attention: type[nn.Module] = Attention):
        super().__init__(**SIZES)
        for layer in [*self.encoder.layers, *self.decoder.layers]:
            for name in ("self_attention", "cross_attention"):
                if hasattr(layer, name):
                    setattr(layer, name, attention(SIZES["d_model"], SIZES["h"]))

    def causal(self, T: int) -> Tensor:
        return torch.ones(T, T, dtype=torch.bool).tril()

    def real(self, source: Tensor) -> Tensor:
        return (source != 0)[:, None, None, :]

    def encode(self, source: Tensor) -> Tensor:
        return self.encoder(self.embed(source), self.real(source))

    def decode(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        mask = self.causal(target.shape[1])
        return self.decoder(self.embed(target), memory, mask, self.real(source))

    def score(self, x: Tensor) -> Tensor:
        return x @ self.embedding.weight.T

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.score(self.decode(target, self.encode(source), source))
