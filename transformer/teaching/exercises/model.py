"""Exercises of notebook 08: counting parameters, the shifted target, greedy decoding."""

import torch

from transformer.teaching.exercises import Exercise


def count(V: int, d: int, d_ff: int, N: int, tied: bool, bias: bool) -> int:
    """Parameters of a Transformer, from torch's own layers."""
    sizes = dict(d_model=d, nhead=1, dim_feedforward=d_ff)
    with torch.device("meta"):
        layers = [
            torch.nn.TransformerEncoderLayer(**sizes),
            torch.nn.TransformerDecoderLayer(**sizes),
        ]
    total = sum(p.numel() for layer in layers for p in layer.parameters())
    return (V * d if tied else 3 * V * d) + N * (total - (0 if bias else 3 * 4 * d))


check_count = Exercise(
    count,
    lambda: [
        (50, 8, 16, 2, True, False),
        (70, 12, 20, 3, False, False),
        (31, 6, 10, 2, True, True),
    ],
    "a decoder layer has two attentions and three norms; a norm has a gain and a bias",
)


def shifted(targets: list[list[int]], pad_id: int, bos_id: int, eos_id: int) -> tuple:
    """What goes into the decoder and what it should name, by torch's padding."""
    sides = [
        [[bos_id, *target] for target in targets],
        [[*target, eos_id] for target in targets],
    ]
    return tuple(
        torch.nn.utils.rnn.pad_sequence(
            list(map(torch.tensor, side)), batch_first=True, padding_value=pad_id
        )
        for side in sides
    )


check_shifted = Exercise(
    shifted,
    lambda: [([[5, 6, 7], [8], [9, 4]], 0, 1, 2), ([[3], [4, 5]], 9, 7, 8)],
    "the decoder reads the start mark and all tokens, and names all tokens and the end mark",
)


def greedy(logits_of, source, bos_id: int, eos_id: int, longest: int) -> list[int]:
    """The most probable token again and again, from bos_id to before eos_id."""
    written = [bos_id]
    while len(written) <= longest and written[-1] != eos_id:
        written.append(
            logits_of(source, torch.tensor([written]))[0, -1].argmax().item()
        )
    return written[1:] if written[-1] != eos_id else written[1:-1]


def copies(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A model that writes its source, token by token."""
    following = source[:, : target.shape[1]]
    return torch.nn.functional.one_hot(following, 20).float()


check_greedy = Exercise(
    greedy,
    lambda: [
        (copies, torch.tensor([[5, 6, 7, 2]]), 1, 2, 9),
        (copies, torch.tensor([[5, 6, 8, 2]]), 7, 8, 1),
        (copies, torch.tensor([[2, 5, 6]]), 1, 2, 4),
    ],
    "only the last row of the logits counts, and neither mark belongs to the result",
)
