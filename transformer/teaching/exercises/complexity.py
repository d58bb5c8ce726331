"""Exercises of notebook 09: the path through a stack, the work of writing, attention nearby."""

import torch

from transformer.attention import causal_mask
from transformer.complexity import layer_flops, local_attention
from transformer.teaching.exercises import Exercise


def layers_until(sees: torch.Tensor) -> int:
    """By powers of the matrix: layers until the last position depends on the first."""
    reached, layers = sees, 1
    while not reached[-1, 0]:
        reached = reached.float() @ sees.float() > 0
        layers += 1
    return layers


def neighbourhoods() -> list[tuple]:
    """A causal window of three, a neighbour on each side, the same with a position for all, ..."""
    window = causal_mask(8) & ~causal_mask(8).tril(-3)
    both = causal_mask(9).triu(-1) | causal_mask(9).triu(-1).T
    for_all, forked = both.clone(), torch.eye(5).bool()
    for_all[4] = for_all[:, 4] = True
    forked[[4, 4, 3, 2, 1], [3, 2, 0, 1, 0]] = True  # the farthest step is not the best
    return [(window,), (both,), (for_all,), (forked,), (torch.ones(4, 4).bool(),)]


def writing_flops(n: int, d: int) -> int:
    """Of n positions written with a cache: by 09's count of one position, and the pairs beyond."""
    return n * layer_flops("self-attention", 1, d) + 4 * d * (n * (n - 1) // 2)


def vectors(n: int, r: int) -> tuple:
    """Always the same q, k, v (n, n - 2), and r."""
    return *torch.randn(3, n, n - 2, generator=torch.Generator().manual_seed(n)), r


check_layers_until = Exercise(
    layers_until,
    neighbourhoods,
    "after one layer the last position depends on what it sees; with one layer more, on whatever "
    "any of those sees",
)

check_writing_flops = Exercise(
    writing_flops,
    lambda: [(1, 4), (5, 8), (30, 512)],
    "position t makes one query, key, value and output, and has t keys to be compared with",
)

check_nearby = Exercise(
    lambda q, k, v, r: local_attention(q, k, v, r=r)[0],
    lambda: [vectors(9, 2), vectors(5, 7), vectors(12, 1)],
    "position i sees from i - r to i + r, both included, and no position before the first",
)
