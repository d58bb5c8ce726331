"""Searches over many sentences: cut into batches of like length, answered in the order given."""

from collections.abc import Callable
from dataclasses import dataclass

from tqdm import tqdm

from transformer.core.checks import check_extra, check_search, check_texts
from transformer.core.protocol import longest_source
from transformer.core.white_space import is_blank, normalised
from transformer.data import pad
from transformer.fast.packed import packed
from transformer.fast.search import beam_search, greedy_search, output_limit
from transformer.models.checkpoint import check_plain


def check_sentences(encoded, max_positions):
    """ValueError, naming it, for a sentence that is longer than the model's positions."""
    for number, ids in enumerate(encoded, 1):
        if len(ids) > max_positions:
            raise ValueError(
                f"sentence {number} has {len(ids)} tokens, more than the model's "
                f"{max_positions} positions: split it"
            )


def chosen(model, beam: int | None, alpha: float | None) -> tuple[int, float]:
    """(beam, alpha), where not given those that travel with the model; ValueError out of range."""
    check_plain(model)
    beam = model.about.beam if beam is None else beam
    alpha = model.about.alpha if alpha is None else alpha
    check_search(beam, alpha, n_best=1)
    return beam, alpha


# positions whose keys and values a batch may hold
ROOM_ON_CPU = 16_000
ROOM_ON_CUDA = 50_000


@dataclass(frozen=True)
class Batching:
    """How a search works through many sentences.

    batch_tokens: most positions whose keys and values a batch may hold, all beams counted (at N=6
    and d_model=512 one takes 25 kB in float32); `ROOM_ON_CUDA` or `ROOM_ON_CPU` where not given.
    progress(n) is called with the number of sentences done after each batch.
    """

    extra: int = 50  # tokens that an output may have more than its source (Section 6.1)
    batch_tokens: int | None = None
    progress: Callable[[int], object] = lambda n: None

    def __post_init__(self) -> None:
        check_extra(self.extra)
        if self.batch_tokens is not None and self.batch_tokens < 1:
            raise ValueError(
                f"batch_tokens must be at least 1, not {self.batch_tokens}"
            )


def together(model, lengths: list[int], extra: int) -> int:
    """How many sentences of these lengths, the longest first, one batch can hold and give each the
    output that it has alone; where the output goes on behind the source, padding takes its room."""
    if not getattr(model.config, "one_sequence", False):
        return len(lengths)
    most = model.config.max_positions
    return next(
        (
            number
            for number, n in enumerate(lengths)
            if min(n + extra, most - n) > most - lengths[0]
        ),
        len(lengths),
    )


def in_batches(model, tokenizer, sentences, search, beam: int, how: Batching) -> list:
    """search(model, source ids (B, S)) -> B results, on batches of sentences of like length;
    results in the order given."""
    check_plain(model)
    if model.initial_state is None:
        raise ValueError(f"{type(model).__name__} has no search: it writes nothing")
    pad_id = model.eval().config.pad_id
    device = next(model.parameters()).device
    encoded = [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_all(sentences)]
    check_sentences(encoded, longest_source(model))
    order = sorted(range(len(encoded)), key=lambda i: -len(encoded[i]))
    results = [None] * len(encoded)
    quick = packed(model)
    room = how.batch_tokens or (ROOM_ON_CUDA if device.type == "cuda" else ROOM_ON_CPU)
    while order:
        longest = pad([encoded[order[0]]], pad_id)
        limit = output_limit(model, longest, how.extra).item()
        positions = beam * (longest.shape[1] + limit)  # in caches, of one sentence
        most = max(1, room // positions)
        size = together(model, [len(encoded[i]) for i in order[:most]], how.extra)
        rows, order = order[:size], order[size:]
        source = pad([encoded[i] for i in rows], pad_id).to(device)
        for i, result in zip(rows, search(quick, source)):
            results[i] = result
        how.progress(len(rows))
    return results


def translate(
    model,
    tokenizer,
    sentences,
    beam: int | None = None,
    alpha: float | None = None,
    how: Batching = Batching(),
) -> list[str]:
    """Translate a list of sentences (beam=1: greedily), batched by length, in the order given.

    beam, alpha: where not given those that travel with the model (`model.about`). White space
    is normalised: one blank for each run of it, none at the ends. What holds nothing else has the
    translation "". The model is left in evaluation mode. Raises ValueError for
    a sentence longer than the model's positions, and for settings that `beam_search` refuses.
    """
    sentences = [normalised(text) for text in check_texts(sentences)]
    beam, alpha = chosen(model, beam, alpha)

    def search(model, source):
        if beam == 1:
            return greedy_search(model, source, how.extra)
        return [
            best[0].tokens
            for best in beam_search(model, source, beam, alpha, how.extra)
        ]

    outputs = in_batches(model, tokenizer, sentences, search, beam, how)
    return [
        "" if is_blank(sentence) else tokenizer.decode(tokens)
        for sentence, tokens in zip(sentences, outputs)
    ]


@dataclass(frozen=True)
class Translation:
    """One entry of an n-best list: its text, and log P(Y | X) / lp(Y) in nats."""

    text: str
    score: float


def translate_n_best(
    model,
    tokenizer,
    sentences,
    n_best: int | None = None,
    beam: int | None = None,
    alpha: float | None = None,
    how: Batching = Batching(),
) -> list[list[Translation]]:
    """For each sentence a list of its n_best `Translation`s, best first, as many as the beam where
    not given; the rest as in `translate`.

    A list is shorter where fewer outputs exist, and two entries read alike where only their pieces
    differ.
    """
    sentences = [normalised(text) for text in check_texts(sentences)]
    beam, alpha = chosen(model, beam, alpha)
    wanted = beam if n_best is None else n_best

    def search(model, source):
        return beam_search(model, source, beam, alpha, how.extra, wanted)

    lists = in_batches(model, tokenizer, sentences, search, beam, how)
    return [
        [Translation("", 0.0)]
        if is_blank(sentence)
        else [Translation(tokenizer.decode(h.tokens), h.score) for h in hypotheses]
        for sentence, hypotheses in zip(sentences, lists)
    ]


def translate_all(
    model,
    tokenizer,
    sentences: list[str],
    beam: int | None = None,
    alpha: float | None = None,
    what: str = "test",
) -> list[str]:
    """`translate` with a progress bar, named after what the sentences are."""
    with tqdm(total=len(sentences), desc=what, unit="sentence", mininterval=1.0) as bar:
        return translate(
            model, tokenizer, sentences, beam, alpha, Batching(progress=bar.update)
        )
