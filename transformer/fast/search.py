"""Searches with caches, many sentences at once: the outputs of notebook 15's searches, sooner.

They ask a model for `initial_state(source, new_cache)` and `step(tokens, state)` (core/protocol.py).
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.core.checks import (
    DeadlinePassed,
    check_deadline,
    check_extra,
    check_ids,
    check_padding,
    check_search,
)
from transformer.core.protocol import check_plain
from transformer.decoding import Hypothesis, length_penalty


def step_log_probs(model: nn.Module, tokens: Tensor, state) -> Tensor:
    """log P(next token) in nats after tokens (rows, T), T >= 1, that the state has not read yet:
    (rows, V). Padding is no token: -inf."""
    log_probs = model.step(tokens, state).log_softmax(dim=-1)
    log_probs[:, model.config.pad_id] = -torch.inf
    return log_probs


def output_limit(model: nn.Module, source: Tensor, extra: int = 50) -> Tensor:
    """Most tokens each output may have, (B,): source length + extra (Section 6.1), within the
    model's positions.

    Raises ValueError for a negative extra, and for a sentence that is empty or has padding before
    it.
    """
    check_plain(model)
    check_extra(extra)
    real = source != model.config.pad_id
    room = model.config.max_positions
    if getattr(model.config, "one_sequence", False):  # notebook 21: no gap between
        room -= source.shape[1]
    else:
        check_padding(real)
    return (real.sum(dim=1) + extra).clamp(max=room)


def alarm(deadline: float | None) -> Callable[[], bool]:
    """A function that says whether so many seconds have passed since this call; None: never."""
    check_deadline(deadline)
    if deadline is None:
        return lambda: False
    end = time.monotonic() + deadline
    return lambda: time.monotonic() >= end


# Keys and values of what was read


def append(held: Tensor | None, new: Tensor, n: int) -> Tensor:
    """Held keys or values (rows, h, n or more, d), with new ones behind the first n."""
    if held is None:
        return new.contiguous()
    end = n + new.shape[2]
    if held.shape[2] < end:
        return torch.cat([held[:, :, :n], new], dim=2)
    held[:, :, n:end] = new
    return held


def copy_rows(held: Tensor, rows: Tensor, n: int) -> Tensor:
    """A copy of these rows' first n positions, with room for one more, which `append` then fills
    without copying again."""
    copy = held.new_empty(len(rows), held.shape[1], n + 1, held.shape[3])
    torch.index_select(held[:, :, :n], 0, rows, out=copy[:, :, :n])
    return copy


class KeyValueCache:
    """Projected keys and values (rows, h, n, d) of all that a decoder layer has read, a row for
    each output that a search is writing.

    See `MultiHeadAttention`. For searches: without gradients.
    """

    def __init__(self):
        self.k = self.v = None
        self.length = 0  # positions that are held

    def update(
        self, k: Tensor | None = None, v: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new positions, if any; return all there are.

        The source has new ones once only: later steps call this with none.
        """
        if k is not None:
            self.k = append(self.k, k, self.length)
            self.v = append(self.v, v, self.length)
            self.length += k.shape[2]
        return self.k[:, :, : self.length], self.v[:, :, : self.length]

    def select(self, rows: Tensor):
        """Keep these rows, in this order: searches drop, repeat and reorder them."""
        if self.k is not None:
            self.k = copy_rows(self.k, rows, self.length)
            self.v = copy_rows(self.v, rows, self.length)

    def shorten(self, length: int):
        """Forget all positions behind the first so many (notebook 21)."""
        self.length = min(self.length, length)


# Greedy search


@torch.no_grad()
def greedy_tokens(
    model: nn.Module,
    source: Tensor,
    extra: int = 50,
    passed: Callable[[], bool] = lambda: False,
) -> Iterator[int]:
    """Yield the ids that `greedy_search` writes for one sentence, source (1, S), as they come.

    `DeadlinePassed` where another one is to be written and passed() says that the time is over.
    """
    model.eval()
    limit = int(output_limit(model, check_ids(source), extra))
    state = model.initial_state(source, KeyValueCache)
    newest = source.new_full((1, 1), model.config.bos_id)
    for written in range(max(1, limit)):
        if passed():
            raise DeadlinePassed(
                "the deadline came before the end of the sentence: what was written "
                "till then is its beginning"
                if written
                else "the deadline came before the sentence was begun: give it longer",
                begun=written > 0,
            )
        newest = step_log_probs(model, newest, state).argmax(dim=-1, keepdim=True)
        token = int(newest)
        yield token
        if token == model.config.eos_id:
            return


def greedy_search(
    model: nn.Module, source: Tensor, extra: int = 50, deadline: float | None = None
) -> list[list[int]]:
    """At each step the likeliest token: source ids (B, S) -> B lists of ids.

    The end mark is included where it was reached. A sentence that is done leaves the batch and the
    state. deadline: seconds, after which those that are not done get what was written till then.
    The model is in evaluation mode afterwards, as after `beam_search`.
    """
    return timed_greedy_search(model, source, extra, deadline)[0]


@torch.no_grad()
def timed_greedy_search(
    model: nn.Module, source: Tensor, extra: int, deadline: float | None
) -> tuple[list[list[int]], list[bool]]:
    """What `greedy_search` finds, and for each sentence whether the search came to its end."""
    passed = alarm(deadline)
    model.eval()
    limit = output_limit(model, check_ids(source), extra)
    alive = torch.arange(len(source), device=source.device)
    output = torch.full((len(source), 1), model.config.bos_id, device=source.device)
    state = model.initial_state(source, KeyValueCache)
    results: list[list[int]] = [[] for _ in source]
    done = [True] * len(source)
    while len(alive):
        if passed():
            for b, tokens in zip(alive.tolist(), output[:, 1:].tolist()):
                results[b], done[b] = tokens, False
            break
        best = step_log_probs(model, output[:, -1:], state).argmax(dim=-1, keepdim=True)
        output = torch.cat([output, best], dim=1)
        go_on = (best[:, 0] != model.config.eos_id) & (output.shape[1] <= limit)
        if not go_on.all():
            for b, tokens in zip(alive[~go_on].tolist(), output[~go_on, 1:].tolist()):
                results[b] = tokens
            state.select(go_on.nonzero()[:, 0])
            alive = alive[go_on]
            output = output[go_on]
            limit = limit[go_on]
    return results, done


# Beam search


@dataclass
class Beam:
    """The hypotheses of B sentences: k alive of each (1 at first, then up to K), and
    the n best finished ones."""

    sentence: Tensor  # (B,): its number in the batch
    limit: Tensor  # (B,): most tokens of an output
    tokens: Tensor  # (B, k, t), begin mark included
    scores: Tensor  # (B, k): log P
    finished: Tensor  # (B, n, t)
    finished_scores: Tensor  # (B, n): log P / lp, -inf where there is none yet

    def keep(self, which: Tensor) -> "Beam":
        """The same for some of the sentences."""
        return Beam(*(getattr(self, field.name)[which] for field in fields(self)))


def take(tokens: Tensor, places: Tensor) -> Tensor:
    """Rows of each sentence's n hypotheses: (B, n, t), places (B, k) -> (B, k, t)."""
    return tokens.gather(1, places[:, :, None].expand(-1, -1, tokens.shape[2]))


def extend(
    tokens: Tensor, scores: Tensor, log_probs: Tensor, K: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The 2K best one-token extensions of each sentence's k <= K live hypotheses.

    tokens (B, k, t), scores (B, k), log_probs (B, k, V) -> tokens (B, 2K, t + 1), best
    first, their scores, and which of the k hypotheses each extends, both (B, 2K). If
    there are fewer than 2K, k V of each.

    Of the extensions of K beginnings at most K end, one each, so at least K of the best 2K go on.
    With K = 21 and 8,000 types a sentence has 168,000 extensions. To rank fewer, each token is
    rated by the best extension that ends with it, and the 2K best tokens are kept: an extension
    with any other is no loss, as each of the 2K has one that is at least as good.
    """
    k, V = log_probs.shape[1:]
    totals = scores[:, :, None] + log_probs
    ends = totals.amax(dim=1).topk(min(2 * K, V)).indices  # (B, m), m <= 2K
    totals_of_ends = totals.gather(2, ends[:, None].expand(-1, k, -1))  # (B, k, m)
    best, place = totals_of_ends.flatten(1).topk(min(2 * K, k * V))
    parent = place // ends.shape[1]  # place counts through all k * m of them
    token = ends.gather(1, place % ends.shape[1])
    return torch.cat([take(tokens, parent), token[:, :, None]], dim=2), best, parent


def keep_finished(
    beam: Beam, tokens: Tensor, scores: Tensor, pad_id: int
) -> tuple[Tensor, Tensor]:
    """The best n of a beam's n finished (B, n, t) and the newly finished (B, K, t + 1).

    Their tokens (B, n, t + 1) and scores (B, n); -inf marks what is none.
    """
    n = beam.finished_scores.shape[1]
    scores, places = torch.cat([beam.finished_scores, scores], dim=1).topk(n)
    earlier = F.pad(beam.finished, (0, 1), value=pad_id)
    return take(torch.cat([earlier, tokens], dim=1), places), scores


def can_improve(
    finished_scores: Tensor, live: Tensor, limit: Tensor, alpha: float
) -> Tensor:
    """(B,): can the best live hypothesis still overtake the last of the finished ones?

    finished_scores: (B, n), log P / lp, best first; live: (B,), the best one's log P, which only
    falls, and no penalty is larger than that of the longest output.
    """
    return finished_scores[:, -1] < live / length_penalty(limit, alpha)


def advance(
    beam: Beam, log_probs: Tensor, K: int, alpha: float, c
) -> tuple[Beam, Tensor]:
    """A step with log_probs (B, k, V) of a model with configuration c.

    Returns the next `Beam`, and which of the B * k rows each one extends, (B, K).
    """
    candidates, best, parent = extend(beam.tokens, beam.scores, log_probs, K)
    length = candidates.shape[2] - 1  # without the begin mark
    ended = (candidates[:, :, -1] == c.eos_id) | (beam.limit <= length)[:, None]
    newly = best.masked_fill(~ended, -torch.inf)[:, :K] / length_penalty(length, alpha)
    finished, finished_scores = keep_finished(beam, candidates[:, :K], newly, c.pad_id)
    scores, places = best.masked_fill(ended, -torch.inf).topk(min(K, best.shape[1]))
    B, k = log_probs.shape[:2]
    first = torch.arange(0, B * k, k, device=best.device)[:, None]
    beam = replace(
        beam,
        tokens=take(candidates, places),
        scores=scores,
        finished=finished,
        finished_scores=finished_scores,
    )
    return beam, first + parent.gather(1, places)


def first_beam(source: Tensor, limit: Tensor, bos_id: int, n: int) -> Beam:
    """The `Beam` before the first step: a hypothesis a sentence, its begin mark."""
    B = len(source)
    tokens = source.new_full((B, 1, 1), bos_id)
    return Beam(
        sentence=torch.arange(B, device=source.device),
        limit=limit,
        tokens=tokens,
        scores=torch.zeros(B, 1, device=source.device),
        finished=tokens.expand(-1, n, -1),
        finished_scores=torch.full((B, n), -torch.inf, device=source.device),
    )


def stopped(beam: Beam, alpha: float) -> Beam:
    """A `Beam` at its deadline: of a sentence of which nothing has ended, the best beginnings that
    are alive stand where the finished ones would."""
    n = beam.finished_scores.shape[1]
    alive = beam.scores[:, :n] / length_penalty(beam.tokens.shape[2] - 1, alpha)
    more = n - alive.shape[1]
    alive = F.pad(alive, (0, more), value=-torch.inf)
    tokens = F.pad(beam.tokens[:, :n], (0, 0, 0, more))
    none = beam.finished_scores[:, :1] == -torch.inf
    return replace(
        beam,
        finished=torch.where(none[:, :, None], tokens, beam.finished),
        finished_scores=torch.where(none, alive, beam.finished_scores),
    )


def beam_steps(
    model: nn.Module,
    source: Tensor,
    K: int,
    alpha: float,
    extra: int,
    n: int,
    passed: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Beam, bool]]:
    """Run the search; yield a `Beam` of the sentences that are done, once some are, and True; and
    one of all that are left, and False, when passed() says that the time is over."""
    c = model.config
    state = model.initial_state(source, KeyValueCache)
    beam = first_beam(source, output_limit(model, source, extra), c.bos_id, n)
    while len(beam.sentence):
        if passed():
            yield stopped(beam, alpha), False
            return
        newest = beam.tokens[:, :, -1:].flatten(0, 1)  # (B * k, 1)
        log_probs = step_log_probs(model, newest, state).unflatten(0, beam.scores.shape)
        beam, rows = advance(beam, log_probs, K, alpha, c)
        # at the limit all have ended, and none can improve
        go_on = can_improve(beam.finished_scores, beam.scores[:, 0], beam.limit, alpha)
        if not go_on.all():
            yield beam.keep(~go_on), True
            beam, rows = beam.keep(go_on), rows[go_on]
        state.select(rows.flatten())


def beam_search(
    model: nn.Module,
    source: Tensor,
    beam: int = 4,
    alpha: float = 0.6,
    extra: int = 50,
    n_best: int = 1,
    deadline: float | None = None,
) -> list[list[Hypothesis]]:
    """The best hypotheses by log P / lp, several kept alive at each step (Section 6.1).

    source: (B, S) ids -> for each sentence a list of at most n_best `Hypothesis`, best
    first. A hypothesis that ends leaves the beam, and the next best takes its place. A
    sentence is done when none alive can still overtake the n_best finished. deadline: seconds,
    after which a sentence that is not done gets the best hypotheses that have ended till then,
    or, where none has, the best beginnings (without an end mark, and shorter than the limit).
    The model is in evaluation mode afterwards. Raises ValueError for a beam, an n_best, an
    alpha, an extra or a deadline out of range.
    """
    return timed_beam_search(model, source, beam, alpha, extra, n_best, deadline)[0]


@torch.no_grad()
def timed_beam_search(
    model: nn.Module,
    source: Tensor,
    beam: int,
    alpha: float,
    extra: int,
    n_best: int,
    deadline: float | None,
) -> tuple[list[list[Hypothesis]], list[bool]]:
    """What `beam_search` finds, and for each sentence whether the search came to its end."""
    check_plain(model)
    check_search(beam, alpha, n_best)
    passed = alarm(deadline)
    model.eval()
    results: list[list[Hypothesis]] = [[] for _ in range(len(source))]
    done = [True] * len(source)
    steps = beam_steps(model, source, beam, alpha, extra, n_best, passed)
    for part, to_its_end in steps:
        for i, b in enumerate(part.sentence.tolist()):
            done[b] = to_its_end
            outputs = part.finished[i, :, 1:]
            results[b] = [
                Hypothesis(tokens[tokens != model.config.pad_id].tolist(), score)
                for tokens, score in zip(outputs, part.finished_scores[i].tolist())
                if score > -torch.inf
            ]
    return results, done
