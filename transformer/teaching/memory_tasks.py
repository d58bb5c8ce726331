"""Tasks that ask for what stood earlier in a sequence, for notebook 24: copying and recall.

A task(count, generator) gives ids (count, n) and what comes after each, -100 where that is not
asked. Nothing here knows the model: any that maps ids (B, n) to logits (B, n, V) will do.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BEGIN, NOISE, FIRST = (
    1,
    3,
    4,
)  # the begin mark, what fills up, and the first id that says something
VALUES, UNASKED = 16, -100


def distinct(count: int, k: int, of: int, generator: torch.Generator) -> Tensor:
    """k different numbers of 0 to of - 1 in each of count rows."""
    return torch.rand(count, of, generator=generator).argsort(dim=1)[:, :k]


def copying(
    count: int,
    generator: torch.Generator,
    n: int = 64,
    words: int = 16,
    types: int = 32,
    spread: bool = True,
) -> tuple[Tensor, Tensor]:
    """Words among noise, n positions in all; behind the begin mark they come again, in order.

    spread: they stand anywhere; otherwise at the beginning, as many steps before their copy in
    every row. Words are different ones of so many types.
    """
    said = FIRST + distinct(count, words, types, generator)
    places = distinct(count, words, n, generator).sort(dim=1).values
    if not spread:
        places = torch.arange(words).expand(count, words)
    read = torch.full((count, n), NOISE).scatter(1, places, said)
    ids = torch.cat([read, torch.full((count, 1), BEGIN), said[:, :-1]], dim=1)
    return ids, torch.cat([torch.full((count, n), UNASKED), said], dim=1)


def recall(
    count: int, generator: torch.Generator, pairs: int = 8, keys: int = 32
) -> tuple[Tensor, Tensor]:
    """Pairs of a key and a value, then all keys in another order: which value had each?"""
    key = FIRST + distinct(count, pairs, keys, generator)
    value = FIRST + keys + torch.randint(VALUES, (count, pairs), generator=generator)
    order = distinct(count, pairs, pairs, generator)
    asked, answers = key.gather(1, order), value.gather(1, order)
    told = torch.stack([key, value], dim=2).flatten(1)
    gold = torch.cat([torch.full_like(told, UNASKED), answers], dim=1)
    return torch.cat([told, asked], dim=1), gold


def learn(
    model: nn.Module, task, updates: int, peak: float, rows: int = 32, seed: int = 1
) -> list[float]:
    """Train on fresh rows with Adam, its rate rising for a tenth and then falling; the losses."""
    optimizer = torch.optim.Adam(model.train().parameters(), betas=(0.9, 0.98))
    generator, losses = torch.Generator().manual_seed(seed), []
    for update in range(updates):
        ids, gold = task(rows, generator)
        loss = F.cross_entropy(
            model(ids).flatten(0, 1), gold.flatten(), ignore_index=UNASKED
        )
        part = 10 * (update + 1) / updates
        optimizer.param_groups[0]["lr"] = peak * min(part, (10 - part) / 9 + 1e-3)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def share_right(model: nn.Module, task, rows: int = 500, seed: int = 0) -> float:
    """The share of what is asked in new rows that a model gives its largest logit."""
    ids, gold = task(rows, torch.Generator().manual_seed(seed))
    asked = gold != UNASKED
    return (model.eval()(ids).argmax(dim=-1) == gold)[asked].float().mean().item()
