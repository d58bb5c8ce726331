"""Exercises of notebook 08: a decoder alone, and which rule a model breaks."""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.attention import causal_mask, padding_mask
from transformer.model import Transformer, TransformerConfig
from transformer.teaching.exercises import Exercise

SIZES = TransformerConfig(vocab_size=12, d_model=16, d_ff=32, N=2, h=2, P_drop=0.0)


class Peeking(Transformer):
    """No row of the target is hidden from any other."""

    def so_far(self, T: int) -> Tensor:
        return torch.ones(T, T, dtype=torch.bool)

    def decode(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        real = padding_mask(source, self.config.pad_id)
        so_far = self.so_far(target.shape[1])
        return self.decoder(self.embed(target), memory, so_far, real)


class Leaking(Peeking):
    """Row 1 sees token 2, and nothing else is wrong."""

    def so_far(self, T: int) -> Tensor:
        mask = causal_mask(T)
        mask[1, 2] = True
        return mask


class Forgetful(Transformer):
    """Padding is hidden in the encoder, and not in cross-attention."""

    def decode(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        so_far = causal_mask(target.shape[1])
        return self.decoder(self.embed(target), memory, so_far, None)


class Mixing(Transformer):
    """The encoder takes sentences for tokens: each sentence sees its neighbours."""

    def encode(self, source: Tensor) -> Tensor:
        return self.encoder(self.embed(source).transpose(0, 1)).transpose(0, 1)


def built(*kinds: type[Transformer]) -> list[Transformer]:
    """New models, always the same; the state of chance stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return [kind(SIZES).eval() for kind in kinds]


def continued(model: Transformer, tokens: Tensor) -> Tensor:
    """Scores of what comes after each token, by the encoder's stack with a causal mask."""
    x = model.encoder(model.embed(tokens), causal_mask(tokens.shape[1]))
    return model.score(x).detach()


check_continued = Exercise(
    continued,
    lambda: [(*built(Transformer), torch.tensor([[1, 5, 3, 7], [1, 4, 4, 9]]))],
    "embed, one stack with a mask, score; a stack takes the mask after x",
)


@torch.no_grad()
def moved(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    """(T, T): does a row of scores (down) move with a target token (across)?"""
    before, columns = model(source, target), []
    for t in range(target.shape[1]):
        changed = target.clone()
        changed[0, t] = (changed[0, t] + 1) % model.config.vocab_size
        columns.append((model(source, changed) != before).any(dim=-1)[0])
    return torch.stack(columns, dim=1)


@torch.no_grad()
def broken_rule(model: Transformer, source: Tensor, target: Tensor) -> int:
    """1: a row looks ahead; 2: padding changes scores; 3: a neighbour does; 0: none."""
    if moved(model, source, target).triu(1).any():
        return 1
    padded = F.pad(source, (0, 3), value=model.config.pad_id)
    alone = model(source, target)
    if (model(padded, target) - alone).abs().max() > 1e-3:
        return 2
    two = torch.cat([source, source.flip(1)])
    change = model(two, target.expand(2, -1))[:1] - alone
    return 3 if change.abs().max() > 1e-3 else 0


def suspects() -> list[tuple]:
    source, target = torch.tensor([[5, 6, 8, 2]]), torch.tensor([[1, 4, 7, 9, 3]])
    models = built(Transformer, Peeking, Forgetful, Leaking, Mixing)
    return [(model, source, target) for model in models]


check_broken_rule = Exercise(
    broken_rule,
    suspects,
    "change each target token in turn and look at earlier rows; then put padding "
    "behind the source; then put another source beside it; allow for rounding",
)
