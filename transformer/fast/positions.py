"""The positions of notebook 07 from tables, which have an end, and from any position on."""

from torch import Tensor, nn

from transformer import positions
from transformer.fast.loading import keep_filled
from transformer.positions import rotate, sinusoids


def positions_of(table: Tensor, start: int | Tensor, length: int) -> Tensor:
    """Rows start to start + length of a table (max_positions, d), or the rows start (length,).

    Raises ValueError past its end; of several rows that are named, nothing is checked.
    """
    if isinstance(start, Tensor):
        return table[start]
    if start < 0:
        raise ValueError(f"start must be at least 0, not {start}")
    if start + length > len(table):
        raise ValueError(
            f"a sentence of {start + length} tokens is longer than the model's "
            f"{len(table)} positions: split the sentence, or make the model with a "
            "larger max_positions (learned positions have to be trained with it)"
        )
    return table[start : start + length]


class SinusoidalPositions(positions.Positions):
    """Add the fixed sinusoids to embeddings (B, T, d_model), the first being at start, or each at
    its own of start (T,).

    Raises ValueError for a sentence that goes past max_positions.
    """

    def __init__(self, max_positions: int, d_model: int):
        super().__init__(d_model)
        table = sinusoids(max_positions, d_model).float()
        self.register_buffer("table", table, persistent=False)
        keep_filled(self)

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        return x + positions_of(self.table, start, x.shape[1])


class LearnedPositions(positions.LearnedPositions):
    """Add a learned vector a position (row E of Table 3), as `SinusoidalPositions` do."""

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        return x + positions_of(self.table, start, x.shape[1])


class RotaryPositions(nn.Module):
    """`rotate` queries or keys x (B, h, n, d_k), the first being at position start.

    Raises ValueError past max_positions, and for an odd d_k.
    """

    def __init__(self, max_positions: int, d_k: int):
        super().__init__()
        if d_k % 2:
            raise ValueError(
                "the width of a head must be even for rotary positions, which turn pairs "
                f"of numbers, and d_model / h (or d_k) is {d_k}"
            )
        table = sinusoids(max_positions, d_k).float()
        self.register_buffer("table", table, persistent=False)
        keep_filled(self)

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        return rotate(x, positions_of(self.table, start, x.shape[-2]))
