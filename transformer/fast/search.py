"""Searches with caches, many sentences at once: the outputs of notebook 15's searches, sooner.

They ask a model for `initial_state(source, new_cache)` and `step(tokens, state)` (core/protocol.py).
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache

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
from transformer.fast import FAST
from transformer.fast.fixed import FixedState, run, takes_fixed
from transformer.fast.model import Transformer, TransformerConfig


def log_probs_of(logits: Tensor, pad_id: int) -> Tensor:
    """log P in nats of logits (..., V). Padding is no token: -inf."""
    log_probs = logits.log_softmax(dim=-1)
    log_probs[..., pad_id] = -torch.inf
    return log_probs


def likeliest(logits: Tensor, pad_id: int) -> Tensor:
    """The token of the largest logit: (..., V) -> (...). Padding is no token."""
    of_tokens = logits.clone()  # a hook may have kept the model's own
    of_tokens[..., pad_id] = -torch.inf
    return of_tokens.argmax(dim=-1)


def step_log_probs(model: nn.Module, tokens: Tensor, state) -> Tensor:
    """log P(next token) in nats after tokens (rows, T), T >= 1, that the state has not read yet:
    (rows, V)."""
    return log_probs_of(model.step(tokens, state), model.config.pad_id)


def stop_dropout(model: nn.Module) -> None:
    """Put a model in evaluation mode. To see that it is takes a fraction of the time of saying it to
    every part."""
    if any(part.training for part in model.modules()):
        model.eval()


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


def most_of(limit: Tensor) -> int:
    """Tokens that the longest output may have; one is always written."""
    return max(1, *limit.tolist()) if len(limit) else 1


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


# Which caches


@cache
def replays_agree(device: torch.device) -> bool:
    """Whether steps that a GPU replays write what growing caches write: tried once, with a small
    model in fp64."""
    with torch.random.fork_rng(devices=[]):  # drawn on the CPU
        c = TransformerConfig(24, d_model=32, d_ff=32, N=1, h=2, tie_embeddings=False)
        model = Transformer(c, FAST).double().to(device)
    source = torch.arange(3, 23, device=device).view(4, 5)
    ways = []
    try:
        for fixed in (False, True):
            beams = beam_search(model, source, fixed=fixed)
            tokens = [best.tokens for [best] in beams]
            ways.append((greedy_search(model, source, fixed=fixed), tokens))
    except RuntimeError:
        return False
    return ways[0] == ways[1]


def choose_fixed(model: nn.Module, device: torch.device, fixed: bool | None) -> bool:
    """Whether a search takes caches of one shape: as asked, or, where nothing is, on a GPU if the
    model can and `replays_agree`. ValueError where it is asked for and the model cannot."""
    if fixed and not takes_fixed(model):
        raise ValueError(
            f"{type(model).__name__} has no caches of one shape: only a Transformer has, "
            "with the package's attention and positions, and without hooks"
        )
    if fixed is None:
        return device.type == "cuda" and takes_fixed(model) and replays_agree(device)
    return fixed


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
    stop_dropout(model)
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
        newest = likeliest(model.step(newest, state), model.config.pad_id)[:, None]
        token = int(newest)
        yield token
        if token == model.config.eos_id:
            return


def greedy_search(
    model: nn.Module,
    source: Tensor,
    extra: int = 50,
    deadline: float | None = None,
    fixed: bool | None = None,
) -> list[list[int]]:
    """At each step the likeliest token: source ids (B, S) -> B lists of ids.

    The end mark is included where it was reached. deadline: seconds, after which those that are
    not done get what was written till then. fixed: caches of one shape (fixed.py), which a GPU
    takes where nothing is said; with growing ones a sentence that is done leaves the batch and the
    state. The model is in evaluation mode afterwards, as after `beam_search`.
    """
    return timed_greedy_search(model, source, extra, deadline, fixed)[0]


@torch.no_grad()
def timed_greedy_search(
    model: nn.Module,
    source: Tensor,
    extra: int,
    deadline: float | None,
    fixed: bool | None = None,
) -> tuple[list[list[int]], list[bool]]:
    """What `greedy_search` finds, and for each sentence whether the search came to its end."""
    passed = alarm(deadline)
    stop_dropout(model)
    limit = output_limit(model, check_ids(source), extra)
    way = fixed_greedy if choose_fixed(model, source.device, fixed) else growing_greedy
    return way(model, source, limit, passed)


def growing_greedy(
    model: nn.Module, source: Tensor, limit: Tensor, passed: Callable[[], bool]
) -> tuple[list[list[int]], list[bool]]:
    """A greedy search whose caches grow; limit: (B,), most tokens of each output."""
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
        best = likeliest(model.step(output[:, -1:], state), model.config.pad_id)
        output = torch.cat([output, best[:, None]], dim=1)
        go_on = (best != model.config.eos_id) & (output.shape[1] <= limit)
        if not go_on.all():
            for b, tokens in zip(alive[~go_on].tolist(), output[~go_on, 1:].tolist()):
                results[b] = tokens
            state.select(go_on.nonzero()[:, 0])
            alive = alive[go_on]
            output = output[go_on]
            limit = limit[go_on]
    return results, done


def fixed_greedy(
    model: nn.Module, source: Tensor, limit: Tensor, passed: Callable[[], bool]
) -> tuple[list[list[int]], list[bool]]:
    """A greedy search with caches of one shape; a sentence that is done gets padding."""
    c, room = model.config, most_of(limit)
    state = FixedState(model.initial_state(source, KeyValueCache), 1, room)
    output = source.new_full((len(source), 1 + room), c.pad_id)
    output[:, 0] = c.bos_id
    going = torch.ones_like(source[:, 0], dtype=torch.bool)

    def step():
        newest = output.index_select(1, state.position)
        logits = state.read(model, newest)[:, 0]
        best = likeliest(logits, c.pad_id)
        written = best.masked_fill(~going, c.pad_id)
        output.index_copy_(1, state.position, written[:, None])
        going.logical_and_((best != c.eos_id) & (state.position < limit))
        state.say(going)

    run(step, state, room, passed)
    results = [[t for t in row if t != c.pad_id] for row in output[:, 1:].tolist()]
    return results, (~going).tolist()


# Beam search


@dataclass
class Beam:
    """The hypotheses of B sentences: k alive of each (up to K), and the n best finished ones.

    Their tokens stand behind a begin mark, with padding up to L, the longest output's number.
    """

    sentence: Tensor  # (B,): its number in the batch
    limit: Tensor  # (B,): most tokens of an output
    tokens: Tensor  # (B, k, 1 + L)
    scores: Tensor  # (B, k): log P
    finished: Tensor  # (B, n, 1 + L)
    finished_scores: Tensor  # (B, n): log P / lp, -inf where there is none yet
    written: Tensor  # (1,): tokens of each that is alive

    def keep(self, which: Tensor) -> "Beam":
        """The same for some of the sentences."""
        *of_each, written = (getattr(self, field.name) for field in fields(self))
        return Beam(*(value[which] for value in of_each), written)

    def become(self, other: "Beam"):
        """Take another's numbers into this one's memory."""
        for field in fields(self):
            getattr(self, field.name).copy_(getattr(other, field.name))

    def newest(self) -> Tensor:
        """The last token of each that is alive: (B, k)."""
        return self.tokens.index_select(2, self.written)[:, :, 0]

    def can_improve(self, alpha: float) -> Tensor:
        """Which sentences are not done, (B,); at the limit all have ended."""
        best = self.scores[:, 0]
        return can_improve(self.finished_scores, best, self.limit, alpha)


def take(tokens: Tensor, places: Tensor) -> Tensor:
    """Rows of each sentence's n hypotheses: (B, n, t), places (B, k) -> (B, k, t)."""
    return tokens.gather(1, places[:, :, None].expand(-1, -1, tokens.shape[2]))


def extend(scores: Tensor, log_probs: Tensor, K: int) -> tuple[Tensor, Tensor, Tensor]:
    """The 2K best one-token extensions of each sentence's k <= K live hypotheses.

    scores (B, k), log_probs (B, k, V) -> the tokens (B, 2K), best first, the scores with them, and
    which of the k hypotheses each extends, both (B, 2K). If there are fewer than 2K, k V of each.

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
    return token, best, parent


def keep_finished(beam: Beam, tokens: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """The best n of a beam's n finished and the newly finished (B, K, 1 + L).

    Their tokens (B, n, 1 + L) and scores (B, n); -inf marks what is none.
    """
    n = beam.finished_scores.shape[1]
    scores, places = torch.cat([beam.finished_scores, scores], dim=1).topk(n)
    return take(torch.cat([beam.finished, tokens], dim=1), places), scores


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
    token, best, parent = extend(beam.scores, log_probs, K)
    length = beam.written + 1
    candidates = take(beam.tokens, parent).index_copy_(2, length, token[:, :, None])
    ended = (token == c.eos_id) | (beam.limit <= length)[:, None]
    penalty = length_penalty(length.to(best.dtype), alpha)
    newly = best.masked_fill(~ended, -torch.inf)[:, :K] / penalty
    finished, finished_scores = keep_finished(beam, candidates[:, :K], newly)
    scores, places = best.masked_fill(ended, -torch.inf).topk(min(K, best.shape[1]))
    B, k = log_probs.shape[:2]
    first = torch.arange(0, B * k, k, device=best.device)[:, None]
    beam = replace(
        beam,
        tokens=take(candidates, places),
        scores=scores,
        finished=finished,
        finished_scores=finished_scores,
        written=length,
    )
    return beam, first + parent.gather(1, places)


def first_beam(
    limit: Tensor, c, k: int, n: int, dtype: torch.dtype = torch.float32
) -> Beam:
    """The `Beam` before the first step: of each sentence its begin mark, k times, of which all but
    the first have no probability."""
    B, room = len(limit), most_of(limit)
    tokens = limit.new_full((B, k, 1 + room), c.pad_id)
    tokens[:, :, 0] = c.bos_id
    scores = torch.full((B, k), -torch.inf, dtype=dtype, device=limit.device)
    scores[:, 0] = 0.0
    return Beam(
        sentence=torch.arange(B, device=limit.device),
        limit=limit,
        tokens=tokens,
        scores=scores,
        finished=tokens[:, :1].repeat(1, n, 1),
        finished_scores=torch.full_like(scores[:, :1], -torch.inf).repeat(1, n),
        written=limit.new_zeros(1),
    )


def stopped(beam: Beam, alpha: float) -> Beam:
    """A `Beam` at its deadline: of a sentence of which nothing has ended, the best beginnings that
    are alive stand where the finished ones would."""
    n = beam.finished_scores.shape[1]
    penalty = length_penalty(beam.written.to(beam.scores.dtype), alpha)
    alive = beam.scores[:, :n] / penalty
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
    beam = first_beam(output_limit(model, source, extra), c, 1, n)
    while len(beam.sentence):
        if passed():
            yield stopped(beam, alpha), False
            return
        newest = beam.newest().flatten()[:, None]  # (B * k, 1)
        log_probs = step_log_probs(model, newest, state).unflatten(0, beam.scores.shape)
        beam, rows = advance(beam, log_probs, K, alpha, c)
        go_on = beam.can_improve(alpha)
        if not go_on.all():
            yield beam.keep(~go_on), True
            beam, rows = beam.keep(go_on), rows[go_on]
        state.select(rows.flatten())


def fixed_beam_steps(
    model: nn.Module,
    source: Tensor,
    K: int,
    alpha: float,
    extra: int,
    n: int,
    passed: Callable[[], bool],
) -> Iterator[tuple[Beam, bool]]:
    """What `beam_steps` yields, with caches of one shape: all of it at the end, as no sentence
    leaves the batch."""
    c = model.config
    dtype = torch.promote_types(torch.float32, next(model.parameters()).dtype)
    beam = first_beam(output_limit(model, source, extra), c, K, n, dtype)
    room = beam.tokens.shape[2] - 1
    state = FixedState(model.initial_state(source, KeyValueCache), K, room)

    def step():
        log_probs = log_probs_of(state.read(model, beam.newest()), c.pad_id)
        after, rows = advance(beam, log_probs, K, alpha, c)
        go_on = after.can_improve(alpha)
        # nothing comes of a sentence that is done, so that it stays as it is
        after.scores.masked_fill_(~go_on[:, None], -torch.inf)
        beam.become(after)
        state.select(rows)
        state.say(go_on)

    run(step, state, room, passed)
    go_on = beam.can_improve(alpha)
    yield beam.keep(~go_on), True
    yield stopped(beam.keep(go_on), alpha), False


def beam_search(
    model: nn.Module,
    source: Tensor,
    beam: int = 4,
    alpha: float = 0.6,
    extra: int = 50,
    n_best: int = 1,
    deadline: float | None = None,
    fixed: bool | None = None,
) -> list[list[Hypothesis]]:
    """The best hypotheses by log P / lp, several kept alive at each step (Section 6.1).

    source: (B, S) ids -> for each sentence a list of at most n_best `Hypothesis`, best
    first. A hypothesis that ends leaves the beam, and the next best takes its place. A
    sentence is done when none alive can still overtake the n_best finished. deadline: seconds,
    after which a sentence that is not done gets the best hypotheses that have ended till then,
    or, where none has, the best beginnings (without an end mark, and shorter than the limit).
    fixed: caches of one shape, as in `greedy_search`. The model is in evaluation mode afterwards.
    Raises ValueError for a beam, an n_best, an alpha, an extra or a deadline out of range.
    """
    return timed_beam_search(
        model, source, beam, alpha, extra, n_best, deadline, fixed
    )[0]


@torch.no_grad()
def timed_beam_search(
    model: nn.Module,
    source: Tensor,
    beam: int,
    alpha: float,
    extra: int,
    n_best: int,
    deadline: float | None,
    fixed: bool | None = None,
) -> tuple[list[list[Hypothesis]], list[bool]]:
    """What `beam_search` finds, and for each sentence whether the search came to its end."""
    check_plain(model)
    check_search(beam, alpha, n_best)
    passed = alarm(deadline)
    stop_dropout(model)
    results: list[list[Hypothesis]] = [[] for _ in range(len(source))]
    done = [True] * len(source)
    chosen = choose_fixed(model, source.device, fixed)
    way = fixed_beam_steps if chosen else beam_steps
    steps = way(model, source, beam, alpha, extra, n_best, passed)
    for part, to_its_end in steps:
        found = part.sentence, part.finished[:, :, 1:], part.finished_scores
        for b, outputs, scores in zip(*(x.tolist() for x in found)):
            done[b] = to_its_end
            results[b] = [
                Hypothesis([t for t in tokens if t != model.config.pad_id], score)
                for tokens, score in zip(outputs, scores)
                if score > -torch.inf
            ]
    return results, done
