"""What a decoder would write if it ended after each of its layers (the logit lens)."""

from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import torch
from torch import Tensor, nn

from transformer.core.checks import check_whole
from transformer.data import collate, encode_pairs
from transformer.models.recording import cache, names


@dataclass(frozen=True)
class LogitLens:
    """The best next tokens below the decoder's first layer and above each layer.

    Rows of the first axis: 0 is the embedding, n what layer n leaves. T positions, k best tokens.
    """

    read: list[str]  # the T tokens that have been read, the begin mark first
    written: list[str]  # the T tokens of the target that follow them, the end mark last
    tokens: list[list[list[str]]]  # (N + 1, T, k), the best first
    probabilities: Tensor  # of these, (N + 1, T, k)
    of_written: Tensor  # probability of the target's own token, (N + 1, T)

    def __repr__(self) -> str:
        """What has been read and the shape; `print` gives the table."""
        read = shorten(" ".join(self.read), 60, placeholder=" ...")
        levels, T, k = self.probabilities.shape
        return f"LogitLens: {read}\n  {levels} levels, {T} tokens read, the {k} likeliest next"

    def __str__(self) -> str:
        """A line for each token read: the best next token and its probability, level by level."""
        levels = [
            [f"{some[0]} {p[0]:.0%}" for some, p in zip(texts, values)]
            for texts, values in zip(self.tokens, self.probabilities.tolist())
        ]
        head = [
            "read",
            *(f"layer {n}" if n else "embedding" for n in range(len(levels))),
        ]
        lines = [head, *zip(self.read, *levels)]
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
            for line in lines
        )


def residual_stream(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """The decoder's residual stream below and above its layers: (N + 1, B, T, d_model)."""
    below, above = "decoder.0.self_attention.before", "decoder.*.feed_forward.after"
    if not {"logits", below} <= set(names(model)) or not hasattr(model, "encoder"):
        raise ValueError(
            f"the lens reads an encoder and a decoder made of layers, and "
            f"{type(model).__name__} has no such pair"
        )
    with cache(model, below, above) as seen:
        model(source, target)
    return torch.stack([seen[name] for name in seen])


def score(model: Any, x: Tensor) -> Tensor:
    """Logits (..., V) of a residual stream (..., d_model): the model's last norm and matrix."""
    x = getattr(model.decoder, "final_norm", nn.Identity())(x)
    return model.output(x) if hasattr(model, "output") else model.score(x)


@torch.no_grad()
def logit_lens(
    model: Any, tokenizer: Any, source: str, target: str, k: int = 5
) -> LogitLens:
    """The k likeliest next tokens after every layer of the decoder, for one sentence pair.

    The target is read, not generated. Each state of the residual stream is scored as if it were
    the last (nostalgebraist, 2020). The model is left in evaluation mode. ValueError for a model
    without a decoder of layers.

        lens = logit_lens(model, tokenizer, "The cat lost its ball.", "Die Katze verlor ihren Ball.")
        lens.tokens[1][3]  # the five best after layer 1, where "Die Katze verlor" has been read
    """
    check_whole("k", k, 1, model.config.vocab_size)
    batch = collate(encode_pairs(tokenizer, [(source, target)]), model.config.pad_id)
    batch = batch.to(next(model.parameters()).device)
    x = residual_stream(model.eval(), batch.source, batch.decoder_input)[:, 0]
    p = score(model, x).float().softmax(dim=-1).cpu()  # (N + 1, T, V)
    best = p.topk(k)
    gold = batch.gold[0].cpu()
    words = getattr(tokenizer, "of_targets", tokenizer)
    marks = {model.config.bos_id: "<s>", model.config.eos_id: "</s>"}

    def texts(ids: list[int]) -> list[str]:
        return [marks.get(i) or words.decode([i]).strip() for i in ids]

    return LogitLens(
        texts(batch.decoder_input[0].tolist()),
        texts(gold.tolist()),
        [[texts(row) for row in layer] for layer in best.indices.tolist()],
        best.values,
        p.gather(-1, gold.expand(len(p), -1)[..., None])[..., 0],
    )
