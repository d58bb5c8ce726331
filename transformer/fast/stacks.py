"""The layers of notebook 03 with a choice of parts, and with caches for searches."""

from collections.abc import Callable, Iterable, Sequence

from torch import Tensor, nn

from transformer import stacks
from transformer.stacks import LayerNorm


class Residual(stacks.Residual):
    """`stacks.Residual` with a choice of order and parts.

    With norm_first=True it is x + Dropout(Sublayer(LayerNorm(x))), the later pre-norm.
    norm(d_model) and dropout(P_drop) make the two parts.
    """

    def __init__(
        self,
        d_model: int,
        P_drop: float = 0.1,
        norm_first: bool = False,
        norm: Callable = LayerNorm,
        dropout: Callable = nn.Dropout,
    ):
        super().__init__(d_model, P_drop)
        self.norm = norm(d_model)
        self.dropout = dropout(P_drop)
        self.norm_first = norm_first

    def forward(self, x: Tensor, sublayer: Callable) -> Tensor:
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return super().forward(x, sublayer)


class EncoderLayer(stacks.EncoderLayer):
    """`stacks.EncoderLayer` that may also write, token by token, if its mask is causal.

    Its attention is then called as self_attention(query, key, value, mask, cache, start).
    """

    cross_attention = None

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        source_mask: Tensor | None = None,
        caches: tuple | None = None,
        start: int = 0,
    ) -> Tensor:
        """x (B, T, d_model), the first at position start -> (B, T, d_model).

        memory and source_mask are not used: they come where such a layer stands in the
        place of a decoder's. caches: a search's pair, of which the first is this layer's.
        """
        own = () if caches is None else (caches[0], start)
        x = self.residuals[0](x, lambda x: self.self_attention(x, x, x, mask, *own))
        return self.residuals[1](x, self.feed_forward)


class DecoderLayer(stacks.DecoderLayer):
    """`stacks.DecoderLayer` that writes token by token in a search."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None,
        mask: Tensor | None = None,
        source_mask: Tensor | None = None,
        caches: tuple | None = None,
        start: int = 0,
    ) -> Tensor:
        """x (B, T, d_model), memory (B, S, d_model) -> (B, T, d_model).

        caches: what the two attentions remember in; memory may then be None, if the
        second holds its keys and values. start: the position of the first of x.
        """
        own = () if caches is None else (caches[0], start)
        of_source = () if caches is None else (caches[1],)
        x = self.residuals[0](x, lambda x: self.self_attention(x, x, x, mask, *own))
        x = self.residuals[1](
            x,
            lambda x: self.cross_attention(x, memory, memory, source_mask, *of_source),
        )
        return self.residuals[2](x, self.feed_forward)


class Stack(stacks.Stack):
    """`stacks.Stack` with a norm at its end, which pre-norm stacks need, and with caches.

    caches: None, or a pair for each layer; ValueError for another number of pairs.
    """

    def __init__(
        self, layers: Iterable[nn.Module], final_norm: nn.Module | None = None
    ):
        super().__init__(layers)
        self.final_norm = final_norm or nn.Identity()

    def forward(
        self,
        x: Tensor,
        *context,
        caches: Sequence | None = None,
        start: int = 0,
        **named_context,
    ) -> Tensor:
        if caches is None:
            caches = [None] * len(self.layers)
        if len(caches) != len(self.layers):
            raise ValueError(
                f"{len(self.layers)} layers need as many pairs of caches, "
                f"not {len(caches)}"
            )
        for layer, pair in zip(self.layers, caches):
            of_search = {} if pair is None else {"caches": pair, "start": start}
            x = layer(x, *context, **named_context, **of_search)
        return self.final_norm(x)
