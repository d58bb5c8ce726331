# ---
# jupyter:
#   jupytext:
#     formats: notebooks/15_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 6.1 Decoding and scores
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/15_decoding.ipynb)
#
# A trained model gives a probability to every next token. A translation is a whole sequence, and there are more of them
# than anyone can try. This notebook searches: greedily, and with a beam (Section 6.1). Then it averages checkpoints, and
# scores translations with BLEU.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.checks import check_search
from transformer.weights import load_weights


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# import itertools
# import math
# import random
# import tempfile
# import time
# from collections import Counter
#
# from transformer import plotting
# from transformer.figures import trees
# from transformer.data import Tokenizer, encode_pairs, pad
# from transformer.scores import (
#     bleu, compound_bleu, exact_match, moses_words, multi_bleu, scores,
#     split_compounds, tokenized_bleu)
# from transformer.search import translate, translate_n_best
# from transformer.state import State
# from transformer.corpora import read_bundled
# from transformer.model import Transformer, TransformerConfig
# from transformer.training import TrainingConfig, train
#
# torch.manual_seed(0)
# torch.set_num_threads(1)      # the models below are too small to share between cores

# %% [markdown]
# ## A model one can follow by hand
#
# To see what a search does, we need probabilities that fit on paper. Here is a "model" with five words and three marks, whose next word
# depends on the last one only. It has the two methods of a `Transformer` that the searches use, `start` on a source and one `step`, and ignores its source.

# %% tags=["active-ipynb"]
# class Bigrams(torch.nn.Module):
#     def __init__(self, table, max_positions=100):
#         super().__init__()
#         self.table = torch.tensor(table).log()  # row: last token, column: next token
#         self.config = TransformerConfig(len(table), max_positions=max_positions)
#
#     def start(self, source, new_cache):
#         return State([], source[:, None, None] > 0)
#
#     def step(self, tokens, state):
#         return self.table[tokens[:, -1]]

# %% tags=["active-ipynb"]
# words = ["<pad>", "<s>", "</s>", "the", "a", "dog", "cat", "fox"]
# end = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]  # columns: the eight words above
# start = [0.0, 0.0, 0.0, 0.6, 0.4, 0.0, 0.0, 0.0]
# the = [0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.3, 0.3]
# a = [0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.8, 0.1]
# toy = Bigrams([end, start, end, the, a, end, end, end])
# source = torch.tensor([[3, 2]])

# %% [markdown]
# "the" (0.6) is the likelier first word. But after it the three animals share its 0.6, while "a" is nearly always
# followed by "cat": $P(\text{the dog}) = 0.6 \cdot 0.4 = 0.24$, and $P(\text{a cat}) = 0.4 \cdot 0.8 = 0.32$.
# The likeliest sentence does not begin with the likeliest word.

# %% [markdown]
# ## One step
#
# Every search asks the same question: given the tokens so far, how likely is each next one? Padding is not a word. A model
# gives it a little probability all the same (label smoothing asks for that), so it is ruled out here.

# %%
def next_log_probs(model: nn.Module, tokens: Tensor, state) -> Tensor:
    """log P(next token) in nats after tokens (rows, 1): (rows, V).

    Padding is no token: -inf.
    """
    log_probs = model.step(tokens, state).log_softmax(dim=-1)
    log_probs[:, model.config.pad_id] = -torch.inf
    return log_probs


# %% [markdown]
# The paper lets an output be at most 50 tokens longer than the input. The end mark counts on both sides here.

# %%
def output_limit(model: nn.Module, source: Tensor, extra: int = 50) -> Tensor:
    """Most tokens each output may have, (B,): source length + extra (Section 6.1).

    It stays within the model's positions. Raises ValueError for a negative extra.
    """
    if extra < 0:
        raise ValueError(f"extra must be at least 0, not {extra}")
    lengths = (source != model.config.pad_id).sum(dim=1)
    return (lengths + extra).clamp(max=model.config.max_positions)


# %% [markdown]
# ## Keys and values of earlier steps
#
# When the decoder writes a translation word by word, the keys and values of earlier words never change, because
# nothing may look ahead. Keeping them turns each step from "compute the whole sentence again" into "compute one word".
# The paper does not mention it; nearly every implementation that is made for use does it. Each decoder layer gets two such caches
# when a search starts: one grows with what is written, one holds the source and is filled once.

# %%
def append(held: Tensor | None, new: Tensor, n: int) -> Tensor:
    """Held keys or values (rows, h, n or more, d), with new ones behind the first n."""
    if held is None:
        return new.contiguous()
    end = n + new.shape[2]
    if held.shape[2] < end:
        return torch.cat([held[:, :, :n], new], dim=2)
    held[:, :, n:end] = new
    return held


def some_rows(held: Tensor, rows: Tensor, n: int) -> Tensor:
    """A copy of some rows, with room for the next position."""
    copy = held.new_empty(len(rows), held.shape[1], n + 1, held.shape[3])
    torch.index_select(held[:, :, :n], 0, rows, out=copy[:, :, :n])
    return copy


# %%
class KeyValueCache:
    """Projected keys and values (rows, h, n, d) of all that a decoder layer has read.

    See `MultiHeadAttention`. For searches: without gradients.
    """

    def __init__(self):
        self.k = self.v = None
        self.length = 0  # positions that are held

    def update(self, k: Tensor | None = None,
               v: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new positions, if any; return all there are."""
        if k is not None:
            self.k = append(self.k, k, self.length)
            self.v = append(self.v, v, self.length)
            self.length += k.shape[2]
        return self.k[:, :, :self.length], self.v[:, :, :self.length]

    def select(self, rows: Tensor):
        """Keep these rows, in this order: searches drop, repeat and reorder them."""
        if self.k is not None:
            self.k = some_rows(self.k, rows, self.length)
            self.v = some_rows(self.v, rows, self.length)


# %% [markdown]
# ## Greedy search
#
# Take the likeliest token, append it, ask again, until the end mark or the limit. A whole batch goes along at once.
# What the model keeps from step to step is the `state` (its caches among it). A sentence that is done leaves the batch and the
# state: nothing is computed for it any more.

# %%
@torch.no_grad()
def greedy_search(model: nn.Module, source: Tensor, extra: int = 50) -> list[list[int]]:
    """At each step the likeliest token: source ids (B, S) -> B lists of ids.

    The end mark is included where it was reached.
    """
    model.eval()
    limit = output_limit(model, source, extra)
    alive = torch.arange(len(source), device=source.device)
    output = torch.full((len(source), 1), model.config.bos_id, device=source.device)
    state = model.start(source, KeyValueCache)
    results = [[] for _ in source]
    while len(alive):
        best = next_log_probs(model, output[:, -1:], state).argmax(dim=-1, keepdim=True)
        output = torch.cat([output, best], dim=1)
        go_on = (best[:, 0] != model.config.eos_id) & (output.shape[1] <= limit)
        if not go_on.all():
            for b, tokens in zip(alive[~go_on].tolist(), output[~go_on, 1:].tolist()):
                results[b] = tokens
            state.select(go_on.nonzero()[:, 0])
            alive, output, limit = (x[go_on] for x in (alive, output, limit))
    return results


# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# print(" ".join(words[token] for token in greedy_search(toy, source)[0]))

# %% [markdown]
# As computed: greedy search starts with "the" and cannot take it back. Its sentence has probability 0.24, and there is
# one with 0.32.

# %% [markdown]
# ## Length penalty
#
# $\log P$ only falls with every token, so comparing sums favours short outputs. GNMT (Wu et al., 2016) divides by a penalty that grows
# with length, and the paper takes it over with $\alpha = 0.6$. For an output $Y$ of $|Y|$ tokens and a source $X$:
#
# $$\mathrm{score}(Y) = \frac{\log P(Y \mid X)}{lp(Y)}, \qquad lp(Y) = \left(\frac{5 + |Y|}{6}\right)^{\alpha}$$
#
# With $\alpha = 0$ it is 1: plain probability. With $\alpha = 1$ the sum is divided by $(5 + |Y|) / 6$, which orders long
# outputs nearly as their mean over tokens does.

# %%
def length_penalty(length: float | Tensor, alpha: float = 0.6) -> float | Tensor:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al., 2016); |Y| counts the end mark."""
    return ((5 + length) / 6) ** alpha


# %% [markdown]
# What does $\alpha$ do to a choice? Three outputs, with made-up log probabilities: short and likely, middle, long.

# %% tags=["active-ipynb"]
# outputs = {
#     "4 tokens, log P = -2.0": (4, -2.0),
#     "8 tokens, log P = -2.4": (8, -2.4),
#     "16 tokens, log P = -3.7": (16, -3.7),
# }
# lengths = range(1, 41)
# penalties = {
#     f"α = {alpha}": [length_penalty(n, alpha) for n in lengths] for alpha in (0, 0.6, 1)
# }
# alphas = [i / 50 for i in range(61)]
# curves = {
#     name: [log_p / length_penalty(n, alpha) for alpha in alphas]
#     for name, (n, log_p) in outputs.items()
# }
# left, right = plotting.new_axes(5, 3.2, columns=2)
# plotting.lines(lengths, penalties, "length |Y|", "penalty lp(Y)", ax=left)
# plotting.lines(alphas, curves, "α", "score", ax=right);

# %% tags=["active-ipynb"]
# def winner(alpha):
#     scored = [(log_p / length_penalty(n, alpha), n) for n, log_p in outputs.values()]
#     return max(scored)[1]
#
# assert length_penalty(1, 0.6) == 1 and abs(length_penalty(7, 0.6) - 2**0.6) < 1e-12
# assert [winner(alpha) for alpha in (0, 0.6, 1)] == [4, 8, 16]

# %% [markdown]
# Left: the penalty. Right: the highest curve wins. Without penalty the short output does, at the paper's 0.6 the middle one,
# at 1 the long one.

# %% [markdown]
# ## Beam search
#
# Keep the $K$ best beginnings alive: they are the *beam* (the paper: $K = 4$). At each step extend every one by every
# token, and keep the best $K$ of all those. An output, finished or not, is called a *hypothesis*. Two details differ
# between implementations. Here:
#
# - A hypothesis that ends **leaves the beam**, and the next best beginning takes its place: $K$ stay alive. It counts
#   only if it was among the $K$ best of its step.
# - At the length limit the $K$ best count as finished, ended or not.
#
# Of the extensions of $K$ beginnings at most $K$ end, one each. So among the best $2K$ at least $K$ go on. The first step starts from the begin
# mark alone.

# %%
def take(tokens: Tensor, places: Tensor) -> Tensor:
    """Rows of each sentence's n hypotheses: (B, n, t), places (B, k) -> (B, k, t)."""
    return tokens.gather(1, places[:, :, None].expand(-1, -1, tokens.shape[2]))


# %% [markdown]
# Sorting through all extensions takes long: with $K = 21$ (the paper's beam for parsing) and 8,000 types they are 168,000 for each
# sentence. So ask first how good each token is at best, whatever it extends, and keep the $2K$ best tokens. Each of them ends an extension at least as good
# as all those of any other token, so these others can be left out.

# %%
def extend(tokens: Tensor, scores: Tensor, log_probs: Tensor,
           K: int) -> tuple[Tensor, Tensor, Tensor]:
    """The 2K best one-token extensions of each sentence's k <= K live hypotheses.

    tokens (B, k, t), scores (B, k), log_probs (B, k, V) -> tokens (B, 2K, t + 1), best
    first, their scores, and which of the k hypotheses each extends, both (B, 2K). If
    there are fewer than 2K, k V of each.
    """
    k, V = log_probs.shape[1:]
    totals = scores[:, :, None] + log_probs
    # (B, n): no other token can end one of the 2K best
    ends = totals.amax(dim=1).topk(min(2 * K, V)).indices
    some = totals.gather(2, ends[:, None].expand(-1, k, -1))  # (B, k, n)
    best, place = some.flatten(1).topk(min(2 * K, k * V))
    parent = place // ends.shape[1]  # place counts through all k * n of them
    token = ends.gather(1, place % ends.shape[1])
    return torch.cat([take(tokens, parent), token[:, :, None]], dim=2), best, parent


# %% [markdown]
# On the five-word model with $K = 2$: the best candidates of each step (at most four), each with the probability of the whole beginning, those kept in bold.

# %% tags=["active-ipynb"]
# tokens = torch.ones(1, 1, 1, dtype=torch.long)  # the begin mark
# log_ps = torch.zeros(1, 1)  # log P of each beginning
# tree, kept = {}, []
# for _ in range(2):
#     log_probs = next_log_probs(toy, tokens.flatten(0, 1), None)[None]
#     candidates, best, _ = extend(tokens, log_ps, log_probs, K=2)
#     paths = [tuple(words[token] for token in row[1:]) for row in candidates[0].tolist()]
#     for path, log_p in zip(paths, best[0]):
#         if log_p.isfinite():
#             tree[path] = log_p.exp().item()
#     kept += paths[:2]
#     tokens, log_ps = candidates[:, :2], best[:, :2]
# trees.hypotheses(tree, kept, "<s>");

# %% [markdown]
# After one step the beam holds both beginnings, because there is room for two. After the second "a cat" (0.32) leads, and
# "the dog" (0.24) is second; "the cat" and "the fox" are dropped. What follows is the end mark, with probability 1.

# %% [markdown]
# The best $n$ finished ones are kept beside the beam, padded to the same length.

# %%
def keep_finished(found: Tensor, found_scores: Tensor, tokens: Tensor, scores: Tensor,
                  pad_id: int) -> tuple[Tensor, Tensor]:
    """The best n of the n found (B, n, t) and the newly finished (B, K, t + 1).

    Their tokens (B, n, t + 1) and scores (B, n); -inf marks what is none.
    """
    n = found_scores.shape[1]
    found_scores, places = torch.cat([found_scores, scores], dim=1).topk(n)
    found = F.pad(found, (0, 1), value=pad_id)
    return take(torch.cat([found, tokens], dim=1), places), found_scores


# %% [markdown]
# When may a sentence stop? Not at the first finished hypothesis: one that is still alive may overtake it. But $\log P$ only falls,
# and no penalty is larger than that of the longest output allowed. With $\log P = -4$ now and a largest penalty of 2, a live hypothesis cannot end above $-2$. The
# paper says "terminate early when possible"; this is the earliest moment at which $\log P$ so far and the length limit prove that nothing can change.

# %%
def can_improve(found_scores: Tensor, live: Tensor, limit: Tensor,
                alpha: float) -> Tensor:
    """(B,): can the best live hypothesis still overtake the last of those found?

    found_scores: (B, n), log P / lp, best first; live: (B,), the best one's log P.
    """
    return found_scores[:, -1] < live / length_penalty(limit, alpha)


# %% [markdown]
# Each hypothesis has a row in the state. When one goes on in two ways and another dies, the rows must follow: each survivor
# takes over the past of the one it extends. The source's keys and values are the same for all
# hypotheses of a sentence: they are copied when the beam grows, and dropped when the sentence leaves.

# %%
@dataclass
class Beam:
    """The hypotheses of B sentences: k alive of each, and the n best finished ones."""

    sentence: Tensor  # (B,): its number in the batch
    limit: Tensor  # (B,): most tokens of an output
    tokens: Tensor  # (B, k, t), begin mark included
    scores: Tensor  # (B, k): log P
    found: Tensor  # (B, n, t)
    found_scores: Tensor  # (B, n): log P / lp, -inf where there is none yet

    def keep(self, which: Tensor) -> "Beam":
        """The same for some of the sentences."""
        return Beam(*(getattr(self, field.name)[which] for field in fields(self)))


# %%
def first_beam(source: Tensor, limit: Tensor, bos_id: int, n: int) -> Beam:
    """The `Beam` before the first step: a hypothesis a sentence, its begin mark."""
    B = len(source)
    tokens = source.new_full((B, 1, 1), bos_id)
    scores = torch.zeros(B, 1, device=source.device)
    nothing = torch.full((B, n), -torch.inf, device=source.device)
    return Beam(torch.arange(B, device=source.device), limit, tokens, scores,
                tokens.expand(-1, n, -1), nothing)


# %% [markdown]
# One step of the search; `k` is the number of hypotheses alive, 1 at first, then $K$:
#
# 1. From the next token's probabilities take the best $2K$ extensions.
# 2. Put those that ended, and were among the $K$ best, beside the beam, divided by their penalty.
# 3. The $K$ best that did not end live on.

# %%
def advance(beam: Beam, log_probs: Tensor, K: int, alpha: float,
            c) -> tuple[Beam, Tensor]:
    """A step with log_probs (B, k, V) of a model with configuration c.

    Returns the next `Beam`, and which of the B * k rows each one extends, (B, K).
    """
    candidates, best, parent = extend(beam.tokens, beam.scores, log_probs, K)
    length = candidates.shape[2] - 1  # without the begin mark
    ended = (candidates[:, :, -1] == c.eos_id) | (beam.limit <= length)[:, None]
    finished = best.masked_fill(~ended, -torch.inf)[:, :K]
    finished = finished / length_penalty(length, alpha)
    found, found_scores = keep_finished(
        beam.found, beam.found_scores, candidates[:, :K], finished, c.pad_id)
    scores, places = best.masked_fill(ended, -torch.inf).topk(min(K, best.shape[1]))
    B, k = log_probs.shape[:2]
    first = torch.arange(0, B * k, k, device=best.device)[:, None]
    beam = replace(beam, tokens=take(candidates, places), scores=scores,
                   found=found, found_scores=found_scores)
    return beam, first + parent.gather(1, places)


# %% [markdown]
# The search itself: steps, until every sentence is done. Sentences that are done are handed out and leave; the state follows the rest.

# %%
def beam_steps(model: nn.Module, source: Tensor, K: int, alpha: float, extra: int,
               n: int) -> Iterator[Beam]:
    """Run the search; yield a `Beam` of the sentences that are done, once some are."""
    c = model.config
    state = model.start(source, KeyValueCache)
    beam = first_beam(source, output_limit(model, source, extra), c.bos_id, n)
    while len(beam.sentence):
        newest = beam.tokens[:, :, -1:].flatten(0, 1)  # (B * k, 1)
        log_probs = next_log_probs(model, newest, state).unflatten(0, beam.scores.shape)
        beam, rows = advance(beam, log_probs, K, alpha, c)
        # at the limit all have ended, and none can improve
        go_on = can_improve(beam.found_scores, beam.scores[:, 0], beam.limit, alpha)
        if not go_on.all():
            yield beam.keep(~go_on)
            beam, rows = beam.keep(go_on), rows[go_on]
        state.select(rows.flatten())


# %%
@dataclass(frozen=True)
class Hypothesis:
    """A finished output: tokens with the end mark, and log P(Y | X) / lp(Y) in nats."""

    tokens: list[int]
    score: float


# %%
@torch.no_grad()
def beam_search(model: nn.Module, source: Tensor, beam: int = 4, alpha: float = 0.6,
                extra: int = 50, n_best: int = 1) -> list[list[Hypothesis]]:
    """The best hypotheses by log P / lp, several kept alive at each step (Section 6.1).

    source: (B, S) ids -> for each sentence a list of at most n_best `Hypothesis`, best
    first. A hypothesis that ends leaves the beam, and the next best takes its place. A
    sentence is done when none alive can still overtake the n_best found. Raises
    ValueError for a beam, an n_best, an alpha or an extra out of range.
    """
    check_search(beam, alpha, n_best)
    model.eval()
    results = [[] for _ in range(len(source))]
    for done in beam_steps(model, source, beam, alpha, extra, n_best):
        scores_of = done.found_scores.tolist()
        found = zip(done.sentence.tolist(), done.found[:, :, 1:], scores_of)
        for b, rows, own in found:
            results[b] = [Hypothesis(row[row != model.config.pad_id].tolist(), score)
                          for row, score in zip(rows, own) if score > -torch.inf]
    return results


# %% tags=["active-ipynb"]
# for hypothesis in beam_search(toy, source, beam=4, alpha=0.0, n_best=4)[0]:
#     print(
#         f"{math.exp(hypothesis.score):.2f}",
#         " ".join(words[token] for token in hypothesis.tokens),
#     )
# best = beam_search(toy, source, beam=2, alpha=0.0)[0][0]
# assert [words[token] for token in best.tokens] == ["a", "cat", "</s>"]
# assert abs(math.exp(best.score) - 0.32) < 1e-6

# %% [markdown]
# With $\alpha = 0$ the score is $\log P$, so its exponential is the probability: 0.32 for "a cat", which a beam of two is enough
# to find, then 0.24 and twice 0.18.

# %% [markdown]
# ## A trained model
#
# Now a real one, trained for a few seconds on a toy task: read words for digits, write them in reverse order. It is stopped
# early on purpose, so that it still makes mistakes.

# %% tags=["active-ipynb"]
# digits = "zero one two three four five six seven eight nine".split()
# numbers = [
#     torch.randint(0, 10, (int(n),)).tolist() for n in torch.randint(3, 8, (2100,))
# ]
# pairs = [
#     (" ".join(digits[d] for d in row), " ".join(digits[d] for d in reversed(row)))
#     for row in numbers
# ]
# tokenizer = Tokenizer.train([source for source, _ in pairs], vocab_size=300)
# encoded = encode_pairs(tokenizer, pairs)
# tests = pairs[2000:]

# %% tags=["active-ipynb"]
# model = Transformer(
#     TransformerConfig(
#         tokenizer.vocab_size,
#         d_model=32,
#         d_ff=64,
#         N=1,
#         h=2,
#         P_drop=0.0,
#         max_positions=80,
#     )
# )
# folder = tempfile.TemporaryDirectory()
# train(
#     model,
#     encoded[:2000],
#     TrainingConfig(updates=300, batch_tokens=600, warmup=60, factor=0.6, save_every=20),
#     folder.name,
# )
# source = pad([ids for ids, _ in encoded[2000:]], pad_id=0)
# outputs = greedy_search(model, source)
# print(pairs[2000][0], "->", tokenizer.decode(outputs[0]))

# %% [markdown]
# **Scores are true.** The search adds up $\log P$ token by token, with caches, padding and shuffled beams. One forward pass
# over each finished output must give the same number:

# %% tags=["active-ipynb"]
# n_best = beam_search(model, source, n_best=4)
#
# @torch.no_grad()
# def score_of(model, ids, tokens, alpha=0.6):
#     logits = model.eval()(ids[None], torch.tensor([[1, *tokens[:-1]]]))[0]
#     log_p = logits.log_softmax(dim=-1)[range(len(tokens)), tokens].sum().item()
#     return log_p / length_penalty(len(tokens), alpha)
#
# gaps = [
#     abs(hypothesis.score - score_of(model, ids[ids != 0], hypothesis.tokens))
#     for ids, some in zip(source[:20], n_best)
#     for hypothesis in some
# ]
# print(f"{len(gaps)} hypotheses, largest difference {max(gaps):.1e}")
# assert max(gaps) < 1e-4
# assert all(some == sorted(some, key=lambda h: -h.score) for some in n_best)

# %% [markdown]
# **What the cache saves**, with a random model and random sentences, and nothing changes, neither there nor with the trained one:

# %% tags=["active-ipynb"]
# from torch.utils.benchmark import Timer
#
# @torch.no_grad()
# def without_cache(model, source, extra=50):
#     tokens = torch.ones(len(source), 1, dtype=torch.long)
#     for _ in range(output_limit(model, source, extra).max()):
#         logits = model(source, tokens)[:, -1]
#         logits[:, 0] = -torch.inf
#         tokens = torch.cat([tokens, logits.argmax(dim=-1, keepdim=True)], dim=1)
#     return tokens[:, 1:].tolist()
#
# c = TransformerConfig(50, d_model=64, d_ff=128, N=2, h=4, tie_embeddings=False)
# random_model = Transformer(c).eval()
# # the end mark is never the likeliest
# torch.nn.init.zeros_(random_model.output.weight[2].detach())
# long = torch.randint(3, 50, (8, 30))
# ways = {"with caches": greedy_search, "without": without_cache}
# seconds = {
#     name: Timer("f(m, s)", globals=dict(f=f, m=random_model, s=long)).timeit(2).median
#     for name, f in ways.items()
# }
# plotting.bars(seconds, "", "seconds for 8 outputs", ax=plotting.new_axes(3.5, 2.6))
# written = greedy_search(random_model, long)
# assert written == without_cache(random_model, long)
# assert len(set(map(tuple, written))) > 1  # the eight outputs are not all alike

# %% [markdown]
# This model cannot end, so its outputs run to the limit of 80 tokens: 80 steps over one position
# each, against 80 steps over 40 positions on average. The time differs by less than that, because a step has costs that do not depend on positions.

# %% [markdown]
# ## From sentences to sentences
#
# Tokenise, sort by length so that little is padding, search in batches, turn ids back into text, and return to the order given.

# %% [markdown]
# How many sentences fit into a batch? What fills the memory is the caches: of each hypothesis the source, and as many
# tokens as an output may have. That sum is bounded, before the search begins, by `batch_tokens`. On a CPU two things make the search
# faster: for its duration the weights are stored in an order that suits the processor, and the hypotheses of a sentence share one cache. Both are explained in notebook 11, and change
# results by roundings only.

# %% tags=["active-ipynb"]
# translations = translate(model, tokenizer, [source for source, _ in tests])
# # whatever the batches were
# assert translations == [tokenizer.decode(some[0].tokens) for some in n_best]
# print(translations[:3])

# %% [markdown]
# Whoever wants to choose among several translations, by hand or with another model, asks for a list of them.

# %% [markdown]
# The model that comes with the package translates English to German. Its four best for one sentence:

# %% tags=["active-ipynb"]
# from transformer import load
#
# bundled, bundled_tokenizer = load()
# sentence = ["The old cat behind the school lost its ball."]
# entries = translate_n_best(bundled, bundled_tokenizer, sentence)[0]
# for entry in entries:
#     print(f"{entry.score:7.3f}  {entry.text}")
# assert entries[0].text == translate(bundled, bundled_tokenizer, sentence)[0]

# %% [markdown]
# They resemble each other, as the entries of an n-best list usually do: a word or an ending is different. The score says how much the model
# prefers the first. For two entries of equal length, multiply the difference of their scores by the length penalty and take the
# exponential: so many times likelier is the first.

# %% [markdown]
# ## Averaging checkpoints
#
# The last steps of training jump about, as each batch pulls elsewhere. The mean of the
# weights of several checkpoints lies in the middle of the jumps. The paper averages the last 5 (base) or 20 (big). What that is worth, notebook 16 measures on Multi30k.

# %%
def shapes(tensors: dict) -> dict:
    """{name: shape} of {name: tensor}."""
    return {name: tensor.shape for name, tensor in tensors.items()}


def average_checkpoints(paths: str | Path | Iterable[str | Path]) -> dict[str, Tensor]:
    """The mean of the weights in several files, parameter by parameter (Section 6.1).

    Returns {name: tensor}, float32. Raises ValueError for no files at all, and for one
    whose names or shapes differ from the first's.
    """
    if isinstance(paths, (str, Path)):
        paths = [paths]
    paths = [Path(path) for path in paths]
    if not paths:
        raise ValueError("no checkpoints to average: name at least one file")
    total = {}
    for path in paths:
        tensors = load_weights(path)[0]
        if total and shapes(tensors) != shapes(total):
            raise ValueError(f"{path} is of another configuration than {paths[0]}: "
                             "average the checkpoints of one run")
        for name, tensor in tensors.items():
            total[name] = total.get(name, 0) + tensor.double()
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}

# %% tags=["active-ipynb"]
# paths = sorted(Path(folder.name, "weights").iterdir())
# average = average_checkpoints(paths)
# matrices = [load_weights(path)[0]["embedding.weight"] for path in paths]
# by_hand = torch.stack(matrices).mean(dim=0)
# assert len(paths) == 5
# assert torch.allclose(average["embedding.weight"], by_hand, rtol=0, atol=1e-6)

# %% [markdown]
# ## BLEU
#
# BLEU (Papineni et al., 2002) compares a translation with a *reference*, one that a person wrote. It asks how many runs of $n$
# words (*n-grams*) of the translation stand in the reference, too. The precision $p_n$ is their share; each run counts at most as
# often as the reference has it. Short outputs would win by saying only what is sure, so a brevity penalty $BP$ punishes $c$ words
# against a reference of $r$:
#
# $$\mathrm{BLEU} = 100 \cdot BP \cdot \left(p_1\, p_2\, p_3\, p_4\right)^{1/4}, \qquad BP = \min\left(1, e^{1 - r/c}\right)$$

# %% [markdown]
# 100 means: equal to the reference. But a sentence can be translated in many ways, so good scores are far from it: the
# paper's best are 28.4 (German) and 41.8 (French). Counts are summed over the corpus before dividing. How text is cut
# into words changes the score by points: sacreBLEU (Post, 2018) fixes how.

# %% [markdown]
# By hand: nine words against ten. "red" stands once too often, so it counts once.

# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# output = "the red red fox jumps over the sleeping dog"
# reference = "the quick red fox jumps over the very lazy dog"
#
# def runs(text, n):
#     return Counter(zip(*(text.split()[i:] for i in range(n))))
#
# # & takes the smaller count
# hits = [(runs(output, n) & runs(reference, n)).total() for n in (1, 2, 3, 4)]
# counts = [runs(output, n).total() for n in (1, 2, 3, 4)]
# brevity = min(1.0, math.exp(1 - 10 / 9))
# by_hand = 100 * brevity * math.prod(h / c for h, c in zip(hits, counts)) ** (1 / 4)
# precisions = [f"{h}/{c}" for h, c in zip(hits, counts)]
# print("precisions", precisions, f"brevity penalty {brevity:.3f}  BLEU {by_hand:.2f}")
# assert abs(by_hand - bleu([output], [reference]).score) < 1e-9

# %% [markdown]
# Seven of nine words are right, four of eight pairs, three of seven triples, two of six runs of four.
#
# Back to the model that reverses digits. Of it one can ask more: is the whole sentence right?

# %% tags=["active-ipynb"]
# references = [target for _, target in tests]
# greedy = translate(model, tokenizer, [source for source, _ in tests], beam=1)
# for name, some in [("greedy", greedy), ("beam of 4", translations)]:
#     score, exact = bleu(some, references).score, exact_match(some, references)
#     print(f"{name}: BLEU {score:.1f}, exact match {exact:.0%}")
# print(bleu(translations, references).signature)

# %% [markdown]
# The signature: one reference, case kept, no "effective order" (meant for single sentences), the tokeniser named 13a,
# exponential smoothing of zero counts, and the version. Always report it.
#
# Where a model is sure, the likeliest next word begins the likeliest output, and both searches find the same. Where it is unsure, the beam finds likelier outputs.
# Those are better only as far as the model is right; on these hundred sentences of a model that was stopped early they are.

# %% [markdown]
# ## Why are there several BLEUs?
#
# BLEU counts words, and papers do not agree on what a word is. Two older conventions matter here. Both cut text with the
# tokeniser of the Moses system, and count with its script `multi-bleu`, which smooths nothing. Here the package sacremoses
# does the cutting, and sacreBLEU the counting.

# %% [markdown]
# **Multi30k.** Papers on this corpus report BLEU on lower-cased, tokenised text.

# %% [markdown]
# **WMT 2014.** The paper does not say how Table 2 is counted. Its authors' code (tensor2tensor) keeps case, and cuts compounds at their hyphens: "rich-text" counts as three words.
# The mark around the hyphen says that it was inside a word. The pattern below is matched from left to right and uses no letter
# twice, so in "a-b-c" only the first hyphen is cut. tensor2tensor's script has the same quirk, and we keep it.

# %% [markdown]
# The same sentence, cut in the three ways (`|` between words), and the same pair scored in each:

# %% tags=["active-ipynb"]
# from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
#
# german = ("„Die E-Mail-Adresse der CDU-Politikerin ist neu“, "
#           "sagt er, „und ihr T-Shirt auch.“")
# output = ('"Die Email-Adresse der CDU-Politikerin ist neu", '
#           'sagt er, "und Ihr T-Shirt auch."')
# cuts = {
#     "sacreBLEU 13a": Tokenizer13a()(german),
#     "Moses, lower case": moses_words([german], "de", lowercase=True)[0],
#     "Moses, compounds": split_compounds(moses_words([german], "de")[0]),
# }
# for (name, cut), way in zip(cuts.items(), (bleu, tokenized_bleu, compound_bleu)):
#     print(f"{name:18} {way([output], [german]).score:5.1f}   {cut.replace(' ', '|')}")

# %% [markdown]
# One pair, three scores, far apart. Quotes of another shape are errors to the first and to the last; the second makes them all alike,
# and forgives a capital, too. Splitting compounds makes easy words: each hyphen becomes a word of its own, and a translation often has it as well.
# So a number without its convention says little. On newstest2014 the gap is less than a point: a fit over many checkpoints (NVIDIA's) puts
# sacreBLEU at 0.978 times the paper's count, minus 0.05, so its 28.4 is about 27.7.

# %% tags=["active-ipynb"]
# divided = split_compounds("rich-text format - a-b-c")
# assert divided == "rich ##AT##-##AT## text format - a ##AT##-##AT## b-c"
# assert cuts["Moses, compounds"].split().count("##AT##-##AT##") == 4
# assert "e-mail-adresse" in cuts["Moses, lower case"]
# fox = multi_bleu(["the red red fox jumps over the sleeping dog"], [reference])
# assert abs(fox.score - by_hand) < 1e-9

# %% [markdown]
# ## Letters instead of words
#
# chrF (Popović, 2015) compares runs of one to six letters. A wrong ending costs a few letters instead of a whole word, which
# suits languages with many endings, and nobody needs to say what a word is. Recall (the share of the reference's runs that the translation has) counts twice as much as precision.

# %% [markdown]
# Everything that a result file should hold, in one call:

# %% tags=["active-ipynb"]
# hard = random.Random(0).sample(read_bundled("hard"), 400)
# sources = [example.source for example in hard]
# gold = [example.target for example in hard]
# bundled_outputs = translate(bundled, bundled_tokenizer, sources)
# for name, score in scores(bundled_outputs, gold).items():
#     print(f"{name:26} {score.score:5.2f} ± {score.margin:.2f}   {score.signature}")

# %% [markdown]
# The bundled corpus has no quotes and no hyphens, and no output here differs from its reference by capitals alone: all ways of counting words agree on it. The **margin** answers another question: how
# much of the score is luck of the draw? The bootstrap (Koehn, 2004) draws as many sentences again, some twice and some not at all,
# a thousand times, and scores each draw. The margin is half the width of the middle 95% of those scores. Its size depends
# on how many sentences there are:

# %% tags=["active-ipynb"]
# sizes = [25, 50, 100, 200, 400]
# margins = [bleu(bundled_outputs[:n], gold[:n], resamples=1000).margin for n in sizes]
# curves = {
#     "margin": margins,
#     "1/√n, from n = 400": [margins[-1] * (sizes[-1] / n) ** 0.5 for n in sizes],
# }
# ax = plotting.lines(sizes, curves, "test sentences n", "± BLEU", markers=True)
# ax.set_ylim(bottom=0)
# assert 0 < margins[-1] < margins[0]

# %% [markdown]
# Roughly, four times the sentences halve the margin. Two systems whose intervals overlap may still differ: the test for that
# resamples both **together** (sacreBLEU has it). Without that test a difference inside the margin is no result.

# %% [markdown]
# ## What the length penalty does to a real model
#
# With the bundled model and its hard test set (longer sentences and new combinations, notebook 10), what do the paper's $\alpha = 0.6$ and its neighbours give?

# %% tags=["active-ipynb"]
# def count_words(texts):
#     return sum(len(text.split()) for text in texts)
#
# for alpha in (0.0, 0.6, 1.0, 2.0, 4.0):
#     some = translate(bundled, bundled_tokenizer, sources[:100], alpha=alpha)
#     share = count_words(some) / count_words(gold[:100])
#     score = bleu(some, gold[:100], resamples=300)
#     print(f"α = {alpha}: {share:4.0%} of the reference's words, "
#           f"BLEU {score.score:.1f} ± {score.margin:.1f}")

# %% [markdown]
# Up to 2 little changes: the outputs become a little longer, and the scores lie within each other's margins. A
# penalty that is too large turns the search over: a longer output wins whatever it says, and there are three times as many words.
# $\alpha$ is a setting like others: choose it on validation data, as the paper did with its beam and its 0.6.
#
# And is a larger beam always better? The last column is the mean of the scores $\log P / lp$ that the search itself goes by.

# %% tags=["active-ipynb"]
# for beam in (1, 2, 4, 8, 16):
#     started = time.perf_counter()
#     lists = translate_n_best(
#         bundled, bundled_tokenizer, sources[:100], n_best=1, beam=beam)
#     seconds = time.perf_counter() - started
#     score = bleu([best.text for (best,) in lists], gold[:100]).score
#     own = sum(best.score for (best,) in lists) / len(lists)
#     print(f"beam {beam:2}: {seconds:.1f} s, BLEU {score:.1f}, mean score {own:.4f}")

# %% [markdown]
# A wider search costs time. It finds outputs that the *model* likes better, and here the first step does nearly all of it. A reader need not like them better: BLEU hardly moves,
# far inside the margin of a hundred sentences. Koehn and Knowles (2017) found that very wide beams even lower the scores of real systems.

# %% [markdown]
# ## Checks
#
# **A beam of 1 without penalty is greedy search**, and **a batch gives each sentence what it gets alone**.

# %% tags=["active-ipynb"]
# narrow = beam_search(model, source, beam=1, alpha=0.0)
# assert [some[0].tokens for some in narrow] == outputs
# for i in range(0, 30, 3):
#     alone = source[i, source[i] != 0][None]
#     assert beam_search(model, alone)[0][0].tokens == n_best[i][0].tokens
#     assert greedy_search(model, alone)[0] == outputs[i]

# %% [markdown]
# **A beam wide enough is exhaustive search.** Four usable tokens, at most four in a row: every possible output can be
# scored, 40 that end and 81 that are cut off by the limit. A random model, several penalties, the ten best:

# %% tags=["active-ipynb"]
# tiny = Transformer(TransformerConfig(5, d_model=16, d_ff=32, N=1, h=2))
# ids = torch.tensor([[3, 2]])
#
# def possible(n):
#     for tokens in itertools.product([1, 2, 3, 4], repeat=n):
#         if 2 not in tokens[:-1] and (tokens[-1] == 2 or n == 4):
#             yield list(tokens)
#
# everything = [tokens for n in (1, 2, 3, 4) for tokens in possible(n)]
# assert len(everything) == 40 + 81
# for alpha in (0.0, 0.6, 1.0, 3.0):
#     by_force = sorted(
#         everything, key=lambda tokens: -score_of(tiny, ids[0], tokens, alpha))
#     ten = beam_search(tiny, ids, beam=130, alpha=alpha, extra=2, n_best=10)[0]
#     assert [hypothesis.tokens for hypothesis in ten] == by_force[:10]

# %% [markdown]
# **Stopping early changes nothing.** The same search with a `can_improve` that always says yes, as long as anything lives:

# %% tags=["active-ipynb"]
# early = can_improve
#
# def can_improve(found_scores, live, limit, alpha):
#     return live.isfinite()
#
# patient = beam_search(model, source, extra=20, n_best=4)
# can_improve = early
# for some, others in zip(beam_search(model, source, extra=20, n_best=4), patient):
#     assert [h.tokens for h in some] == [h.tokens for h in others]

# %% [markdown]
# **Outputs end** at the end mark, or 50 tokens past the length of the input.

# %% tags=["active-ipynb"]
# endless = Bigrams([[0.0, 0.0, 0.0, 1.0]] * 4)  # says token 3 for ever
# two = torch.tensor([[3, 3, 2], [3, 2, 0]])
# found = [best.tokens for (best,) in beam_search(endless, two)]
# for some in greedy_search(endless, two), found:
#     assert [len(tokens) for tokens in some] == [3 + 50, 2 + 50]
# assert all(tokens.count(2) <= 1 and 2 not in tokens[:-1] for tokens in outputs)

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** A short output has 6 tokens and $\log P = -3$, a long one 12 tokens and $\log P = -4$. From which $\alpha$ on does the long one
# win?

# %% tags=["active-ipynb"]
# your_alpha = ...
# if your_alpha is not ...:
#     short = -3.0 / length_penalty(6, your_alpha)
#     long = -4.0 / length_penalty(12, your_alpha)
#     assert abs(short - long) < 1e-3

# %% [markdown]
# <details><summary>Solution</summary>
#
# Equal scores mean $3 / (11/6)^\alpha = 4 / (17/6)^\alpha$, so $(17/11)^\alpha = 4/3$:
# `your_alpha = math.log(4 / 3) / math.log(17 / 11)`, about 0.661. At the paper's 0.6 the short one still wins.
# </details>
#
# **2.** Give the five-word model another start (a list of eight probabilities like `start`, "the" among the possible words) with which
# greedy search, too, finds the likeliest sentence.

# %% tags=["active-ipynb"]
# your_start = ...
# if your_start is not ...:
#     yours = Bigrams([end, your_start, end, the, a, end, end, end])
#     assert abs(sum(your_start) - 1) < 1e-9 and your_start[3] > 0
#     best = beam_search(yours, ids, beam=4, alpha=0.0)[0][0]
#     assert greedy_search(yours, ids)[0] == best.tokens

# %% [markdown]
# <details><summary>Solution</summary>
#
# For example `your_start = [0, 0, 0, 0.4, 0.6, 0, 0, 0]`: when "a" is likelier than "the", the greedy choice is right. So is
# `[0, 0, 0, 0.7, 0.3, 0, 0, 0]`: then "the dog" has $0.28$, more than the $0.24$ of "a cat". Greedy search fails only while the probability of "the" is between 1/2 and 2/3.
# </details>

# %% [markdown]
# ## Next
#
# That is all a translator needs. [16 Translation](16_translation.ipynb) puts it together and trains one. In Colab the next
# notebook imports this module from the installed package; to try changes of your own, clone the repository and install it with
# `pip install -e .`.
