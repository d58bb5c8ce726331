"""What chapter 05 needs to look into a trained translator: sentences with their translations, and
what a part of a model is given.

Nothing here knows a class: models are passed in.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from transformer.corpora.tokenizer import Tokenizer


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


def inputs_of(part: nn.Module, run) -> Tensor:
    """What a part of a model is given when run() runs the model."""
    given = []
    hook = part.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    try:
        run()
    finally:
        hook.remove()
    return given[0]
