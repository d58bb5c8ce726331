"""What chapter 05 asks of small networks and of a trained translator: kinks at even distances, what
units read and write, how many next words are right.

Nothing here knows a class: networks and models are passed in.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from transformer.corpora.tokenizer import Tokenizer

PLACES = 100  # of a unit: where it is strongest


@torch.no_grad()
def even_kinks(network: nn.Module, x: Tensor, y: Tensor) -> nn.Module:
    """A FeedForward(1, d_ff) whose units set in at even distances along x (n, 1), and whose W_2 and
    b_2 are the best ones for the curve y (n, 1)."""
    ends = x.min().item(), x.max().item()
    places = torch.linspace(*ends, network.W_1.out_features + 2)[1:-1]
    network.requires_grad_(False)
    network.W_1.weight.fill_(1.0)
    network.W_1.bias.copy_(-places)  # so a unit is x - its place, or 0
    columns = torch.cat([network.W_1(x).relu(), torch.ones_like(x)], dim=1).double()
    best = torch.linalg.lstsq(columns, y.double()).solution.to(x.dtype)
    network.W_2.weight.copy_(best[:-1].T)
    network.W_2.bias.copy_(best[-1])
    return network


def read_with_translation(
    tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]]
) -> tuple[Tensor, Tensor, Tensor]:
    """Ids of sources (B, S); at each place of their translations the word before it and the right
    next word (B, T). All are padded."""
    sources, targets = zip(*pairs)
    rows = (
        [[*tokenizer.encode(text), tokenizer.eos_id] for text in sources],
        [[tokenizer.bos_id, *tokenizer.encode(text)] for text in targets],
    )
    source, target = (
        pad_sequence(
            [torch.tensor(row) for row in side],
            batch_first=True,
            padding_value=tokenizer.pad_id,
        )
        for side in rows
    )
    return source, target[:, :-1], target[:, 1:]


@torch.no_grad()
def right_words(
    model: nn.Module, tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]]
) -> float:
    """How many next words, of 100, are the model's likeliest: it reads the right ones before."""
    source, before, after = read_with_translation(tokenizer, pairs)
    right = model(source, before).argmax(dim=-1) == after
    return 100 * right[after != tokenizer.pad_id].float().mean().item()


@torch.no_grad()
def entries(
    model: nn.Module,
    tokenizer: Tokenizer,
    pairs: Iterable[tuple[str, str]],
    ranks: Sequence[int],
    words: int = 3,
) -> dict[str, tuple[dict[str, int], dict[str, float]]]:
    """What units of the decoder's last network read and write, for `views.units`.

    Of each unit: the commonest words just before the 100 places where it is strongest, and the next
    words to which it brings most probability there, in points. Units are sorted by what they bring
    to their four best words together; rank 1 is the first.
    """
    source, before, after = read_with_translation(tokenizer, pairs)
    real = after != tokenizer.pad_id
    layer = model.decoder.layers[-1]
    x = inputs_of(layer.feed_forward, lambda: model(source, before))[real]
    hidden = layer.feed_forward.W_1(x).relu()  # (places, units)
    strongest = hidden.topk(PLACES, dim=0).indices.T
    gains = [
        points_brought(model, layer, x[at], hidden[at, unit], unit)
        for unit, at in enumerate(strongest)
    ]
    brought = torch.stack(gains)  # (units, words)
    order = brought.topk(4).values.sum(dim=1).argsort(descending=True).tolist()
    rows = {}
    for rank in ranks:
        unit = order[rank - 1]
        read = Counter(before[real][strongest[unit]].tolist()).most_common(words)
        points, best = (part.tolist() for part in brought[unit].topk(words))
        rows[f"unit {unit}, number {rank} of {len(order)}"] = tuple(
            {said(tokenizer, word): number for word, number in side}
            for side in (read, zip(best, points))
        )
    return rows


def inputs_of(part: nn.Module, run) -> Tensor:
    """What a part of a model is given when run() runs the model."""
    given = []
    hook = part.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    try:
        run()
    finally:
        hook.remove()
    return given[0]


def points_brought(model, layer, x, strength, unit):
    """Points of probability that one unit brings to each next word, the mean of places x (n, d):
    with all that the network adds to the lane, less the same without the unit's value."""
    lane = x + layer.feed_forward(x)
    written = strength[:, None] * layer.feed_forward.W_2.weight[:, unit]
    whole, without = (
        model.output(layer.residuals[2].norm(sums)).softmax(dim=-1)
        for sums in (lane, lane - written)
    )
    return 100 * (whole - without).mean(dim=0)


def said(tokenizer: Tokenizer, token: int) -> str:
    """A token as a word; the mark at the start as "(start)"."""
    return tokenizer.decode([token]) or "(start)"
