"""What a search carries from step to step (notebook 15). Nothing here knows the model."""

from dataclasses import dataclass, field

import torch


@dataclass
class State:
    """One row for each hypothesis that is alive.

    caches: pairs with `select(rows)`, of what is written and of what is read, a pair a layer.
    source_mask (rows, 1, 1, S): True where a source token is real. memory: what an encoder left,
    (rows, S, d), where a model reads it anew at each step. length: tokens read so far.
    """

    caches: list
    source_mask: torch.Tensor
    memory: torch.Tensor | None = None
    length: int = 0
    source: torch.Tensor = field(init=False)  # (rows,): which sentence each row translates

    def __post_init__(self) -> None:
        self.source = torch.arange(len(self.source_mask), device=self.source_mask.device)

    def select(self, rows: torch.Tensor) -> None:
        """Row i becomes what row rows[i] was: hypotheses are dropped, repeated and reordered."""
        source = self.source[rows]
        others = not torch.equal(source, self.source)  # otherwise what is read stays in place
        for own, of_source in self.caches:
            own.select(rows)
            if others:
                of_source.select(rows)
        if others:
            self.source = source
            self.source_mask = self.source_mask[rows]
            self.memory = None if self.memory is None else self.memory[rows]
