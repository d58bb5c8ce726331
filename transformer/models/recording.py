"""What a model's heads look at, collected while it computes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

from transformer.attention import attention
from transformer.fast.attention import MultiHeadAttention


def recording(attend: Callable, kept: list) -> Callable:
    """attend(q, k, v, mask), which appends its weights (B, h, T, S) to the list `kept`.

    Where attend returns None in their place, `attention` computes them; ValueError where
    its output is another one.
    """

    def attend_and_keep(q, k, v, mask=None):
        output, weights = attend(q, k, v, mask)
        if weights is None:
            full, weights = attention(q, k, v, mask)
            if (full - output).norm() > 0.05 * full.norm():  # bf16 is off by 1%
                raise ValueError(
                    "no weights to record: this attention looks elsewhere "
                    "than its mask says, and does not say where"
                )
        kept.append(weights.detach())
        return output, weights

    return attend_and_keep


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict]:
    """Inside the block, collect the weights of every `MultiHeadAttention` in model.

    Yields {name of the module: [weights (B, h, T, S) of each call]}.
    """
    heads = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention)
    }
    before = {name: module.attend for name, module in heads.items()}
    record: dict[str, list] = {name: [] for name in heads}
    for name, module in heads.items():
        module.attend = recording(module.attend, record[name])
    try:
        yield record
    finally:
        for name, module in heads.items():
            module.attend = before[name]
