"""Searches over many sentences: cut into batches of like length, answered in the order given."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal

import torch
from tqdm import tqdm

from transformer.core.checks import (
    DeadlinePassed,
    check_deadline,
    check_extra,
    check_search,
    check_sentences,
    check_texts,
)
from transformer.core.protocol import check_plain, check_sequence_model, longest_source
from transformer.core.white_space import is_blank, normalised
from transformer.corpora.tokenizer import WORD
from transformer.data import pad
from transformer.decoding import Hypothesis
from transformer.fast.packed import packed
from transformer.fast.search import (
    alarm,
    greedy_tokens,
    output_limit,
    stop_dropout,
    timed_beam_search,
    timed_greedy_search,
)
from transformer.models.alignment import Alignment, align
from transformer.models.pieces import texts_of


def chosen(model, beam: int | None, alpha: float | None) -> tuple[int, float]:
    """(beam, alpha), where not given those that travel with the model; ValueError out of range."""
    check_plain(model)
    if beam is None or alpha is None:
        check_sequence_model(model)
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
    progress: Callable[[int], object] = field(default=lambda n: None, repr=False)

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


def check_writes(model) -> None:
    """ValueError for what stands around a model, and for one that has no search."""
    check_plain(model)
    if model.initial_state is None:
        raise ValueError(f"{type(model).__name__} has no search: it writes nothing")


def encoded_sources(model, tokenizer, sentences: list[str]) -> list[list[int]]:
    """The ids of sentences with their end marks; ValueError for one that is too long."""
    encoded = [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_all(sentences)]
    check_sentences(encoded, longest_source(model))
    return encoded


def room_for(model, longest: list[int], beam: int, how: Batching) -> int:
    """How many sentences a batch may have whose longest is this one, ids with their end mark."""
    on_cuda = next(model.parameters()).is_cuda
    room = how.batch_tokens or (ROOM_ON_CUDA if on_cuda else ROOM_ON_CPU)
    source = pad([longest], model.config.pad_id)
    limit = int(output_limit(model, source, how.extra))
    return max(1, room // (beam * (len(longest) + limit)))  # positions in caches


def in_batches(
    model,
    tokenizer,
    sentences,
    search,
    beam: int,
    how: Batching,
    deadline: float | None = None,
) -> list:
    """search(model, source ids (B, S), seconds left or None) -> B results, on batches of sentences
    of like length; results in the order given, None for those to which the deadline left no time.
    """
    check_deadline(deadline)
    end = time.monotonic() + (math.inf if deadline is None else deadline)
    check_writes(model)
    stop_dropout(model)
    pad_id = model.config.pad_id
    device = next(model.parameters()).device
    encoded = encoded_sources(model, tokenizer, sentences)
    order = sorted(range(len(encoded)), key=lambda i: -len(encoded[i]))
    results = [None] * len(encoded)
    quick = packed(model)
    while order and (left := end - time.monotonic()) > 0:
        most = room_for(model, encoded[order[0]], beam, how)
        size = together(model, [len(encoded[i]) for i in order[:most]], how.extra)
        rows, order = order[:size], order[size:]
        source = pad([encoded[i] for i in rows], pad_id).to(device)
        found = search(quick, source, None if deadline is None else left)
        for i, result in zip(rows, found):
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
    deadline: float | None = None,
) -> list[str]:
    """Translate a list of sentences (beam=1: greedily), batched by length, in the order given.

    beam, alpha: where not given those that travel with the model (`model.about`). White space
    is normalised: one blank for each run of it, none at the ends. What holds nothing else has the
    translation "". The model is left in evaluation mode. deadline: seconds that all of them may
    take together; a TimeoutError where some are not finished by then (`translate_n_best` gives
    what was found). Raises ValueError for a sentence longer than the model's positions, and for
    settings that `beam_search` refuses.
    """
    sentences = [normalised(text) for text in check_texts(sentences)]
    beam, alpha = chosen(model, beam, alpha)

    def search(model, source, left):
        if beam == 1:
            outputs, done = timed_greedy_search(model, source, how.extra, left)
        else:
            found, done = timed_beam_search(
                model, source, beam, alpha, how.extra, 1, left
            )
            outputs = [best[0].tokens for best in found]
        return list(zip(outputs, done))

    outputs = in_batches(model, tokenizer, sentences, search, beam, how, deadline)
    found = [
        ([], True) if is_blank(sentence) else output or ([], False)
        for sentence, output in zip(sentences, outputs)
    ]
    check_done([status_of(*output) for output in found], deadline)
    return [tokenizer.decode(tokens) for tokens, _ in found]


Status = Literal["finished", "partial", "not begun"]


def status_of(tokens: list[int], finished: bool) -> Status:
    """How far a search has come that wrote these tokens till its end, or till its deadline."""
    if finished:
        return "finished"
    return "partial" if tokens else "not begun"


def check_done(statuses: list[Status], deadline: float | None) -> None:
    """`DeadlinePassed` where some sentences are not finished."""
    late = [i for i, status in enumerate(statuses) if status != "finished"]
    if late:
        not_begun = statuses.count("not begun")
        raise DeadlinePassed(
            f"{len(late)} of {len(statuses)} sentences are not translated after "
            f"{deadline:g} s ({not_begun} of them not begun), the first of them "
            f"sentences[{late[0]}]: give them longer, or take what translate_n_best finds "
            "by a deadline",
            begun=not_begun < len(late),
        )


@dataclass(frozen=True)
class Translation:
    """One entry of an n-best list. Printed, it is score and text.

    text: the translation. score: log P(Y | X) / lp(Y) in nats. tokens: its pieces as strings, a
    space before one that begins a word. source: the sentence, as it was read. alignment: which
    source word each of its words looks at, computed when it is first asked for. status:

        finished
            the search came to its end
        partial
            a deadline stopped it: the text is the best that had ended till then, which a
            longer search might have bettered, or, where nothing had ended, a beginning
        not begun
            the deadline left it no time: the text is "", and the score nan
    """

    text: str
    score: float
    tokens: tuple[str, ...] = field(default=(), repr=False)
    source: str = ""
    status: Status = "finished"

    @cached_property
    def alignment(self) -> Alignment:
        """Which source word each word looks at: `align` of source and text.

        Computed when it is first asked for, by the model as it is then, which the entry holds. A
        copy by pickle has no model: ValueError there, unless it had been asked for before.
        """
        aligned = getattr(self, "aligned", None)
        if aligned is None:
            raise ValueError(
                "this translation is a copy without its model: ask for its alignment "
                "before copying, or for align(model, tokenizer, [(source, text)])"
            )
        return aligned()[0]

    def __getstate__(self) -> dict:
        return {k: v for k, v in self.__dict__.items() if k != "aligned"}

    def __str__(self) -> str:
        ends = {"partial": " (stopped by the deadline)", "not begun": "(not begun)"}
        return f"{self.score:7.3f}  {self.text}{ends.get(self.status, '')}"


def entry_of(
    model, tokenizer, source: str, found: Hypothesis, finished: bool
) -> Translation:
    """The `Translation` of a sentence that a search has found."""
    text, tokens = tokenizer.decode(found.tokens), texts_of(tokenizer, found.tokens)
    status = status_of(found.tokens, finished)
    score = math.nan if status == "not begun" else found.score
    entry = Translation(text, score, tokens, source, status)
    # no field, so that it is neither compared nor saved
    aligned = partial(align, model, tokenizer, [(source, text)])
    object.__setattr__(entry, "aligned", aligned)
    return entry


def translate_n_best(
    model,
    tokenizer,
    sentences,
    n_best: int | None = None,
    beam: int | None = None,
    alpha: float | None = None,
    how: Batching = Batching(),
    deadline: float | None = None,
) -> list[list[Translation]]:
    """For each sentence a list of its n_best `Translation`s, best first, as many as the beam where
    not given; the rest as in `translate`.

    A list is shorter where fewer outputs exist, and two entries read alike where only their pieces
    differ. deadline: seconds that all sentences may take together. The entries of each sentence say
    in their `status` whether its search was finished by then, partial, or not begun.
    """
    sentences = [normalised(text) for text in check_texts(sentences)]
    beam, alpha = chosen(model, beam, alpha)
    wanted = beam if n_best is None else n_best
    check_search(beam, alpha, wanted)

    def search(model, source, left):
        lists, done = timed_beam_search(
            model, source, beam, alpha, how.extra, wanted, left
        )
        return [[(h, whole) for h in some] for some, whole in zip(lists, done)]

    lists = in_batches(model, tokenizer, sentences, search, beam, how, deadline)
    nothing = Hypothesis([], 0.0)  # log P of no tokens
    found = [
        [(nothing, True)] if is_blank(text) else entries or [(nothing, False)]
        for text, entries in zip(sentences, lists)
    ]
    return [
        [entry_of(model, tokenizer, text, *entry) for entry in entries]
        for text, entries in zip(sentences, found)
    ]


def stream(
    model, tokenizer, sentence: str, extra: int = 50, deadline: float | None = None
) -> Iterator[str]:
    """Yield a sentence's greedy translation word by word, as soon as each is written.

    A piece is a word or a mark, with the white space before it; joined they are exactly
    translate(model, tokenizer, [sentence], beam=1)[0]. extra: tokens that the output may have more
    than its source. deadline: seconds from the call; where the sentence has not come to its end by
    then, a TimeoutError after all words that have, whose `status` is "partial", or "not begun" where
    the time was over before the first piece. The model is left in evaluation mode. ValueError,
    before the first word, for what `translate` refuses.
    """
    passed = alarm(deadline)
    if not isinstance(sentence, str):
        raise ValueError(f"sentence must be one string, not {str(sentence)[:60]}")
    (sentence,) = [normalised(text) for text in check_texts([sentence])]
    check_extra(extra)
    check_writes(model)
    stop_dropout(model)
    if is_blank(sentence):
        return words_of(tokenizer, ())
    source = torch.tensor(
        encoded_sources(model, tokenizer, [sentence]),
        device=next(model.parameters()).device,
    )
    return words_of(tokenizer, greedy_tokens(packed(model), source, extra, passed))


def words_of(tokenizer, tokens: Iterable[int]) -> Iterator[str]:
    """The text of tokens, cut before each word: a word is given once the next one has begun."""
    ids: list[int] = []
    text, told = "", 0
    for token in tokens:
        ids.append(token)
        text = tokenizer.decode(ids)
        whole = text.rstrip("\ufffd")  # without a part of a character
        for word in list(WORD.finditer(whole, told))[:-1]:  # the last may go on
            yield text[told : word.end()]
            told = word.end()
    if text[told:]:
        yield text[told:]


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
