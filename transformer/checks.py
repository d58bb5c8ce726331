"""What sizes, masks, batches and searches must be; what is not is refused with one sentence."""

from collections.abc import Iterable, Sized

import torch


def outside_vocabulary(tokens: torch.Tensor, vocab_size: int) -> ValueError:
    """The ValueError for a batch with a token id that no vocabulary of this size has."""
    wrong = tokens[(tokens < 0) | (tokens >= vocab_size)][0].item()
    return ValueError(f"token id {wrong} is outside the vocabulary of {vocab_size} types "
                      f"(0 to {vocab_size - 1}): encode the text with the tokenizer saved beside "
                      "this model")


def check_sides(source: Sized, target: Sized, name: str = "source") -> None:
    """ValueError where a batch has not one target for each source sentence."""
    if len(source) != len(target):
        raise ValueError(f"{name} has {len(source)} sentences and target {len(target)}: "
                         "they must pair up")


def check_padding(real: torch.Tensor) -> None:
    """ValueError, naming the sentence, where one is empty or has padding before a token.

    real: (B, S), True for tokens.
    """
    lengths = real.sum(dim=1)
    if (lengths == 0).any():
        n = int(lengths.argmin()) + 1
        raise ValueError(f"source sentence {n} is empty: leave it out of the batch")
    inside = (~real[:, :-1] & real[:, 1:]).any(dim=1)
    if inside.any():
        n = int(inside.int().argmax()) + 1
        raise ValueError(f"source sentence {n} has padding before a token: "
                         "padding belongs at its end")


def check_heads(d_model: int, h: int, d_k: int | None = None, d_v: int | None = None,
                h_kv: int | None = None) -> None:
    """ValueError where heads cannot have these sizes."""
    for name, value in (("h", h), ("d_k", d_k), ("d_v", d_v), ("h_kv", h_kv)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    if d_model % h and not (d_k and d_v):
        raise ValueError(f"d_model={d_model} does not divide by h={h}: give d_k and d_v")
    if h_kv is not None and h % h_kv:
        raise ValueError(f"h={h} heads of queries do not divide by h_kv={h_kv} heads of keys")


def check_mask(mask: torch.Tensor | None) -> None:
    """ValueError for a mask (B, T, S), which would be taken for (h, T, S)."""
    if mask is not None and mask.dim() == 3:
        raise ValueError("a mask is (T, S) or (B, h, T, S), with 1 for what is the same for all; "
                         f"not {tuple(mask.shape)}")


def check_ids(tokens: torch.Tensor) -> torch.Tensor:
    """The token ids (B, T) as they are; ValueError for another number of axes."""
    if tokens.dim() != 2:
        raise ValueError("token ids must be (B, T), a row for each sentence, not of shape "
                         f"{tuple(tokens.shape)}: one sentence is tokens[None]")
    return tokens


def check_search(beam: int, alpha: float, n_best: int) -> None:
    """ValueError, naming the setting, for a search that makes no sense."""
    if beam < 1:
        raise ValueError(f"beam must be at least 1, not {beam}")
    if not 1 <= n_best <= beam:
        raise ValueError(f"n_best must be between 1 and the beam, {beam}, not {n_best}")
    if not 0 <= alpha <= 10:
        raise ValueError(f"alpha must be between 0 and 10, not {alpha}")


def check_texts(texts: Iterable[str], name: str = "sentences") -> list[str]:
    """texts as a list; ValueError for a single string, and for what is no string."""
    if isinstance(texts, (str, bytes)):
        raise ValueError(
            f"{name} must be a list of strings, not one string: put it in brackets")
    texts = list(texts)
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise ValueError(f"{name} must be strings; number {number} is a {kind}")
    return texts


def check_local_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, r: int,
                          mask: torch.Tensor) -> None:
    """ValueError for r < 1, for lengths that differ, and for a mask that is not one over keys."""
    n = q.shape[-2]
    if r < 1 or k.shape[-2] != n or v.shape[-2] != n:
        raise ValueError(f"r must be at least 1 and q, k, v equally long: r = {r}, "
                         f"{n}, {k.shape[-2]} and {v.shape[-2]} positions")
    if mask.dtype != torch.bool or mask.shape[-2:] != (1, n):
        raise ValueError(f"the mask must be boolean, (..., 1, {n}): the same keys for all queries; "
                         f"not {mask.dtype}, {tuple(mask.shape)}")


def check_sampling(temperature: float, top_k: int | None, top_p: float) -> None:
    """ValueError, naming the setting, for one from which nothing can be drawn."""
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature must be at least 0 and finite, not {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, not {top_k}")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, not {top_p}")


def check_room(read: int, write: int, max_positions: int) -> None:
    """ValueError where a prompt, and what is to be written after it, have too few positions."""
    if read < 1 or write < 1:
        raise ValueError(f"a prompt needs at least one token and something to write, not {read} "
                         f"and {write}")
    if read + write > max_positions:
        raise ValueError(f"a prompt of {read} tokens and {write} to write after it need more than "
                         f"the model's {max_positions} positions: shorten the prompt")
