"""What sizes, masks, batches and searches must be; what is not is refused with one sentence."""

from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any

import torch

from transformer.core.names import did_you_mean
from transformer.core.white_space import check_characters

WIDEST = 1000  # most hypotheses of a beam
LARGEST = 10**7  # most types of a vocabulary


class Diverged(ValueError):
    """Losses, gradients or outputs that are no numbers any more."""


class DeadlinePassed(TimeoutError):
    """A deadline that came before the end. status: "partial" where something was written till
    then, "not begun" where nothing was."""

    def __init__(self, said: str, begun: bool):
        super().__init__(said)
        self.status = "partial" if begun else "not begun"


def outside_vocabulary(tokens: torch.Tensor, vocab_size: int) -> ValueError:
    """The ValueError for a batch with a token id that no vocabulary of this size has."""
    wrong = tokens[(tokens < 0) | (tokens >= vocab_size)][0].item()
    return ValueError(
        f"token id {wrong} is outside the vocabulary of {vocab_size} types "
        f"(0 to {vocab_size - 1}): encode the text with the tokenizer saved beside "
        "this model"
    )


def check_sides(
    source: torch.Tensor, target: torch.Tensor, name: str = "source"
) -> None:
    """ValueError where a batch has not one target for each source sentence."""
    sentences, targets = source.shape[0], target.shape[0]  # `len` is a fixed number
    if sentences != targets:
        raise ValueError(
            f"{name} has {sentences} sentences and target {targets}: they must pair up"
        )


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
        raise ValueError(
            f"source sentence {n} has padding before a token: "
            "padding belongs at its end"
        )


def check_heads(
    d_model: int,
    h: int,
    d_k: int | None = None,
    d_v: int | None = None,
    h_kv: int | None = None,
) -> None:
    """ValueError where heads cannot have these sizes."""
    for name, value in (("h", h), ("d_k", d_k), ("d_v", d_v), ("h_kv", h_kv)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    if d_model % h and not (d_k and d_v):
        raise ValueError(
            f"d_model={d_model} does not divide by h={h}: give d_k and d_v"
        )
    if h_kv is not None and h % h_kv:
        raise ValueError(
            f"h={h} heads of queries do not divide by h_kv={h_kv} heads of keys"
        )


def check_values(k: torch.Tensor, v: torch.Tensor) -> None:
    """ValueError where keys (..., S, d_k) and values (..., S, d_v) differ in number."""
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"each key needs one value: {k.shape[-2]} keys, {v.shape[-2]} values"
        )


def check_boolean(mask: torch.Tensor | None) -> None:
    """TypeError for a mask of numbers, whose sense could be another one."""
    if mask is not None and mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean (True = may attend), not {mask.dtype}")


def exporting() -> bool:
    """Whether torch.export is writing down what is computed, for sizes that are not known yet:
    what is compared then would hold for all later ones."""
    asked = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)
    return asked()


def check_mask(mask: torch.Tensor | None, query: torch.Tensor | None = None) -> None:
    """ValueError for a mask that would be taken for something else.

    One (B, T, S) would be broadcast as (h, T, S), one (B, S) as (T, S). query: (B, T, d_model);
    without it the second cannot be seen.
    """
    if mask is None:
        return
    if mask.dim() == 3 or mask.dim() < 2:
        raise ValueError(
            "a mask is (T, S) or (B, h, T, S), with 1 for what is the same for all; "
            f"not {tuple(mask.shape)}"
        )
    if query is None or mask.dim() > 2 or exporting():
        return
    B, T = query.shape[:2]
    if mask.shape[0] not in (1, T):
        raise ValueError(
            f"a mask (T, S) has a row for each of {T} positions, not {mask.shape[0]}: "
            "one (B, S) goes in as mask[:, None, None]"
        )
    if mask.shape[0] == B > 1 and not of_positions(mask):
        raise ValueError(
            f"a mask {tuple(mask.shape)} for {B} sentences of {T} positions may be (B, S) "
            "or (T, S): write mask[:, None, None] for the first, mask[None, None] for "
            "the second"
        )


def of_positions(mask: torch.Tensor) -> bool:
    """Whether a mask is (T, S) by its looks, which padding (B, S) cannot have.

    All rows are the same, or each position sees itself, and either nothing later or whom it
    sees sees it. A compiled model is not asked.
    """
    if torch.compiler.is_compiling() or mask.is_meta or mask.dtype != torch.bool:
        return True
    T, S = mask.shape
    if bool((mask == mask[:1]).all()):
        return True
    sees_itself = S >= T and bool(mask.diagonal(S - T).all())
    causal = not bool(mask.triu(S - T + 1).any())
    return sees_itself and (causal or (S == T and bool((mask == mask.T).all())))


def check_ids(tokens: torch.Tensor) -> torch.Tensor:
    """The token ids (B, T) as they are; ValueError for something else."""
    if not isinstance(tokens, torch.Tensor) or tokens.is_floating_point():
        kind = getattr(tokens, "dtype", type(tokens).__name__)
        raise ValueError(f"token ids must be a tensor of whole numbers, not {kind}")
    if tokens.dim() != 2:
        raise ValueError(
            "token ids must be (B, T), a row for each sentence, not of shape "
            f"{tuple(tokens.shape)}: one sentence is tokens[None]"
        )
    return tokens


def check_whole(name: str, value: Any, least: int, most: int) -> None:
    """ValueError where a setting is no whole number from least to most."""
    if not isinstance(value, Integral):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    value = int(value)
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    if value > most:
        raise ValueError(f"{name} must be at most {most}, not {value}")


def check_from_one(**numbers: float) -> None:
    """ValueError, naming them all, where one of some numbers is below 1."""
    if min(numbers.values()) < 1:
        *names, last = numbers
        *values, value = numbers.values()
        raise ValueError(
            f"{', '.join(names)} and {last} must be at least 1, "
            f"not {', '.join(map(str, values))} and {value}"
        )


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """ValueError, naming the choices, for another value."""
    choices = tuple(choices)
    if value not in choices:
        raise ValueError(
            f"{name} must be one of {', '.join(choices)}, not {value!r}"
            f"{did_you_mean(value, choices)}"
        )


def check_place(name: str, value: Any, count: int) -> None:
    """ValueError where a layer, a head or the like, counted from 0, is none of so many."""
    check_whole(name, value, 0, count - 1)


def check_search(beam: int, alpha: float, n_best: int) -> None:
    """ValueError, naming the setting, for a search that makes no sense."""
    check_whole("beam", beam, 1, WIDEST)
    if not isinstance(n_best, Integral) or not 1 <= n_best <= beam:
        raise ValueError(f"n_best must be between 1 and the beam, {beam}, not {n_best}")
    if not isinstance(alpha, Real) or not 0 <= alpha <= 10:
        raise ValueError(f"alpha must be between 0 and 10, not {alpha}")


def nth(index: int) -> str:
    """How an item of a list is named: by its number, and by its index in Python."""
    return f"{index + 1} (index {index})"


def check_texts(texts: Iterable[str], name: str = "sentences") -> list[str]:
    """texts as a list; ValueError for a single string, and, naming it, for an item that is no
    string."""
    if isinstance(texts, (str, bytes)):
        raise ValueError(
            f"{name} must be a list of strings, not one string: put it in brackets"
        )
    if not isinstance(texts, Iterable) or isinstance(texts, Mapping):
        raise ValueError(f"{name} must be a list of strings, not {str(texts)[:60]}")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str) or not text.isascii():
            check_text(text, f"number {nth(index)} of {name}")
    return texts


def check_text(text: object, name: str) -> None:
    """ValueError for what is no string, or none that UTF-8 can write."""
    if not isinstance(text, str):
        raise ValueError(f"{name} is a {type(text).__name__}, not a string")
    check_characters(text, name)


def check_sentences(
    encoded: Iterable[list[int]], max_positions: int, what: str = "sentence"
) -> None:
    """ValueError, naming it, for a sentence that is longer than the model's positions."""
    for index, ids in enumerate(encoded):
        if len(ids) > max_positions:
            raise ValueError(
                f"{what} {nth(index)} has {len(ids)} tokens, more than the model's "
                f"{max_positions} positions: split it"
            )


def sides_of(pairs: Iterable[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The sources and the targets of sentence pairs; ValueError, naming it, for what is no pair of
    texts."""
    pairs = list(pairs)
    for index, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(
                f"sentence pair {nth(index)} is not a source and a target: "
                f"{str(pair)[:60]!r}"
            )
    return (
        check_texts([source for source, _ in pairs], "sources"),
        check_texts([target for _, target in pairs], "targets"),
    )


def check_ids_given(ids: Iterable[int]) -> list[int]:
    """Token ids, of a tensor or others, as a list; ValueError for what cannot be one."""
    numbers = ids.tolist() if isinstance(ids, torch.Tensor) else list(ids)
    for token in numbers:
        if not isinstance(token, Integral) or not 0 <= int(token) < 2**31:
            raise ValueError(
                f"a token id is a whole number of at least 0, not {token!r}"
            )
    return numbers


def check_vocabulary(vocab_size: int, least: int) -> None:
    """ValueError where a vocabulary cannot have so many types."""
    if not isinstance(vocab_size, Integral) or vocab_size < least:
        raise ValueError(
            f"vocab_size must be at least {least} (256 bytes and the marks), "
            f"not {vocab_size}"
        )
    check_whole("vocab_size", vocab_size, least, LARGEST)


def learnable(texts: Iterable[str]) -> Iterator[str]:
    """The texts that a vocabulary is learned from; ValueError for one that is no text."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        check_texts(texts)
    for index, text in enumerate(texts):
        check_text(text, f"sentence {nth(index)}")
        yield text


def check_extra(extra: int) -> None:
    """ValueError where outputs cannot be longer than their sources by so much."""
    check_whole("extra", extra, 0, LARGEST)


def check_deadline(deadline: float | None) -> None:
    """ValueError where a search cannot end after so many seconds."""
    if deadline is None:
        return
    if not isinstance(deadline, Real) or not 0 <= deadline < float("inf"):
        raise ValueError(
            "deadline must be seconds, at least 0 and finite, or None for as long as "
            f"it takes, not {deadline!r}"
        )


def usable(logits: torch.Tensor) -> torch.Tensor:
    """Whether all logits are numbers of some use: (), on their device."""
    if not logits.numel():
        return torch.ones((), dtype=torch.bool, device=logits.device)
    # a comparison with what is not a number is false
    return (logits.amax() < 1e18) & (logits.amin() > -1e18)


def check_usable(fine: bool | torch.Tensor) -> None:
    """`Diverged` where a model's logits are not `usable`."""
    if not fine:
        raise Diverged(
            "the model's outputs are no usable numbers any more: its weights are "
            "damaged, or training has diverged; take an earlier checkpoint"
        )


def check_logits(logits: torch.Tensor) -> torch.Tensor:
    """The logits as they are; `Diverged` where the weights that made them have no use."""
    if not logits.is_meta:
        check_usable(usable(logits))
    return logits


def check_local_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, r: int, mask: torch.Tensor
) -> None:
    """ValueError for r < 1, for lengths that differ, and for a mask that is not one over keys."""
    n = q.shape[-2]
    if r < 1 or k.shape[-2] != n or v.shape[-2] != n:
        raise ValueError(
            f"r must be at least 1 and q, k, v equally long: r = {r}, "
            f"{n}, {k.shape[-2]} and {v.shape[-2]} positions"
        )
    if mask.dtype != torch.bool or mask.shape[-2:] != (1, n):
        raise ValueError(
            f"the mask must be boolean, (..., 1, {n}): the same keys for all queries; "
            f"not {mask.dtype}, {tuple(mask.shape)}"
        )


def check_sampling(temperature: float, top_k: int | None, top_p: float) -> None:
    """ValueError, naming the setting, for one from which nothing can be drawn."""
    if not 0 <= temperature < float("inf"):
        raise ValueError(
            f"temperature must be at least 0 and finite, not {temperature}"
        )
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, not {top_k}")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, not {top_p}")


def check_room(read: int, write: int, max_positions: int) -> None:
    """ValueError where a prompt, and what is to be written after it, have too few positions."""
    if read < 1 or write < 1:
        raise ValueError(
            f"a prompt needs at least one token and something to write, not {read} "
            f"and {write}"
        )
    if read + write > max_positions:
        raise ValueError(
            f"a prompt of {read} tokens and {write} to write after it need more than "
            f"the model's {max_positions} positions: shorten the prompt"
        )


def check_patch(height: int, width: int, p: int) -> None:
    """ValueError where an image cannot be cut into squares of p x p pixels."""
    check_whole("the side of a patch", p, 1, LARGEST)
    if height % p or width % p:
        raise ValueError(
            f"an image of {height} x {width} pixels cannot be cut into patches of "
            f"{p} x {p}: choose a side that divides both"
        )


def check_images(images: torch.Tensor, size: int, levels: int) -> torch.Tensor:
    """Grey levels (B, size, size) as they are; ValueError for another size, or for what is no
    level."""
    if images.dim() != 3:
        raise ValueError(
            "images must be (B, height, width), not of shape "
            f"{tuple(images.shape)}: one image is images[None]"
        )
    if images.shape[1:] != (size, size):
        raise ValueError(
            f"an image has {images.shape[1]} x {images.shape[2]} pixels, and the "
            f"model reads {size} x {size}: scale it, or train a model of its size"
        )
    if images.dtype.is_floating_point or ((images < 0) | (images >= levels)).any():
        raise ValueError(
            f"pixels must be whole numbers from 0 to {levels - 1}, the model's grey "
            f"levels, not {images.dtype} from {images.min()} to {images.max()}"
        )
    return images


def check_image_ids(ids: torch.Tensor, size: int, first: int, end: int) -> None:
    """ValueError where ids (B, size**2) are not those of grey levels, first to end - 1."""
    if check_ids(ids).shape[1] != size**2:
        raise ValueError(
            f"an image has {ids.shape[1]} pixels, and the model reads {size} x "
            f"{size}: scale it, or train a model of its size"
        )
    if ((ids < first) | (ids >= end)).any():
        raise ValueError(
            f"pixels are the ids {first} to {end - 1}, not {ids.min()} to "
            f"{ids.max()}: make them of grey levels with as_ids"
        )


def check_pattern(
    r: int, gaps: tuple, global_tokens: tuple, random_blocks: int
) -> None:
    """ValueError, naming the setting, for a pattern that cannot be."""
    check_whole("r", r, 1, LARGEST)
    if not gaps:
        raise ValueError("a pattern needs a gap: 1 for neighbours side by side")
    for gap in gaps:
        check_whole("a gap", gap, 1, LARGEST)
    for place in global_tokens:
        check_whole("a global token's position", place, 0, LARGEST)
    check_whole("random_blocks", random_blocks, 0, LARGEST)
    if random_blocks and set(gaps) != {1}:
        raise ValueError(f"random blocks go with gaps of 1, not with {gaps}")


def check_gaps(gaps: tuple, h: int) -> None:
    """ValueError where there is not one gap for all heads, or one for each."""
    if len(gaps) not in (1, h):
        raise ValueError(
            f"{len(gaps)} gaps do not fit {h} heads: give one for all, or {h}"
        )


def check_from_the_left(real: torch.Tensor) -> None:
    """ValueError where padding stands first, (..., 1, n): fixed places would be shifted."""
    if not (real[..., 0] | ~real.any(dim=-1)).all():
        raise ValueError(
            "global tokens and random blocks have fixed places, so that padding "
            "belongs at the end: give prompts of different lengths one by one"
        )


def check_sees_both_ways(causal: bool) -> None:
    """ValueError for a causal pattern where global rows have matrices of their own."""
    if causal:
        raise ValueError(
            "global tokens with matrices of their own see what comes later: "
            "the pattern must not be causal"
        )


def check_span(longest: int, ramp: float) -> None:
    """ValueError for a span, or a ramp, below one position."""
    check_whole("longest", longest, 1, LARGEST)
    if not 1 <= ramp < float("inf"):
        raise ValueError(f"ramp must be at least 1 and finite, not {ramp}")


def check_left_to_right(
    query: torch.Tensor, key: torch.Tensor | None, mask: torch.Tensor | None
) -> torch.Tensor | None:
    """Which positions of query (B, n, d) are no padding, (B, n), by a causal mask; None: all.

    ValueError for keys of another sequence and for any other mask.
    """
    if not (key is None or key is query or torch.equal(key, query)):
        raise ValueError(
            "a layer with a state reads one sequence, and no memory beside it: "
            "attention to a memory stays attention"
        )
    if mask is None:
        return None
    n, S = query.shape[1], mask.shape[-1]
    mask = mask if mask.dim() == 4 else mask[None, None]
    seen = mask[:, 0, -1]  # what the last position sees
    causal = torch.ones(n, S, dtype=torch.bool, device=mask.device).tril(S - n)
    if mask.shape[1:3] != (1, n) or not torch.equal(mask[:, 0], causal & seen[:, None]):
        raise ValueError(
            "a layer with a state reads from left to right: its mask must be causal, "
            "but for padding"
        )
    return seen[:, S - n :].expand(len(query), n)
