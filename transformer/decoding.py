# %% [markdown]
# # 6.1 Decoding and scores

# %%
from dataclasses import dataclass
from pathlib import Path

import torch

from transformer.attention import padding_mask
from transformer.data import pad
from transformer.model import load_weights

# %% [markdown]
# ## Greedy search

# %%
def output_limit(model, source, extra=50):
    """Most tokens each output may have, (B,): source length + extra (Section 6.1), within the model's positions."""
    lengths = (source != model.config.pad_id).sum(dim=1)
    return (lengths + extra).clamp(max=model.config.max_positions)


# %%
@torch.no_grad()
def greedy_search(model, source, extra=50, cached=True):
    """At each step the likeliest token: source ids (B, S) -> B lists of ids, end mark included where it was reached.

    cached=False computes every earlier position again at each step, for comparison.
    """
    model.eval()
    c, limit = model.config, output_limit(model, source, extra)
    memory, mask = model.encode(source), padding_mask(source, c.pad_id)
    caches = model.new_caches() if cached else None
    output = torch.full((len(source), 1), c.bos_id, device=source.device)
    done = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    while not done.all():
        logits = model.decode(output[:, -1:] if cached else output, memory, mask, caches)[:, -1]
        token = logits.argmax(dim=-1).masked_fill(done, c.pad_id)
        output = torch.cat([output, token[:, None]], dim=1)
        done = done | (token == c.eos_id) | (output.shape[1] > limit)
    return [[token for token in row if token != c.pad_id] for row in output[:, 1:].tolist()]


# %% [markdown]
# ## Length penalty

# %%
def length_penalty(length, alpha=0.6):
    """lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al., 2016); |Y| counts the end mark."""
    return ((5 + length) / 6) ** alpha


# %% [markdown]
# ## Beam search

# %%
@dataclass(frozen=True)
class Hypothesis:
    """A finished output: its tokens, end mark included, and log P(Y | X) / lp(Y) in nats."""

    tokens: list
    score: float


# %%
@torch.no_grad()
def beam_search(model, source, beam=4, alpha=0.6, extra=50, n_best=1):
    """The best hypotheses by log P / lp, several kept alive at each step (Section 6.1).

    source: (B, S) ids -> for each sentence a list of at most n_best `Hypothesis`, best first. A
    hypothesis that ends leaves the beam, and the next best takes its place. A sentence is done when
    no live hypothesis can still overtake the n_best found: log P only falls, and no penalty is
    larger than that of the longest output allowed.
    """
    if not 1 <= n_best <= beam or alpha < 0:
        raise ValueError(f"n_best must be between 1 and beam={beam}, not {n_best}, and alpha at least 0, not {alpha}")
    model.eval()
    c, device = model.config, source.device
    K, limit = beam, output_limit(model, source, extra)
    found = [[] for _ in range(len(source))]
    alive = torch.arange(len(source), device=device)  # which sentence each row block belongs to
    memory = model.encode(source).repeat_interleave(K, dim=0)  # (B * K, S, d_model)
    mask = padding_mask(source, c.pad_id).repeat_interleave(K, dim=0)
    caches = model.new_caches()
    output = torch.full((len(source), K, 1), c.bos_id, device=device)
    scores = torch.full((len(source), K), -torch.inf, device=device)
    scores[:, 0] = 0.0  # the K copies are still the same: start from one
    while len(alive):
        step = output.shape[2]  # length of the outputs after this step, end mark included
        logits = model.decode(output[:, :, -1].reshape(-1, 1), memory, mask, caches)[:, -1]
        total = scores[:, :, None] + logits.log_softmax(dim=-1).unflatten(0, (-1, K))  # (B, K, V)
        best, place = total.flatten(1).topk(min(2 * K, total[0].numel()))
        parent, token = place // c.vocab_size, place % c.vocab_size
        ended = token == c.eos_id
        collect(found, alive, output, best, parent, token, ended, K, step, alpha)
        order = ended.long().sort(dim=1, stable=True).indices[:, :K]  # live candidates first, best first
        scores = best.masked_fill(ended, -torch.inf).gather(1, order)
        parent, token = parent.gather(1, order), token.gather(1, order)
        output = torch.cat([output.gather(1, parent[:, :, None].expand(-1, -1, step)), token[:, :, None]], dim=2)
        keep = torch.tensor([still_open(found[b], scores[i, 0].item(), step, int(limit[b]), n_best, alpha)
                             for i, b in enumerate(alive.tolist())], device=device)
        cut_short(found, alive, output, scores, step, limit, alpha)
        rows = (torch.arange(len(alive), device=device)[:, None] * K + parent)[keep].flatten()
        alive, output, scores, memory, mask = alive[keep], output[keep], scores[keep], memory[rows], mask[rows]
        for own, cross in caches:
            own.select(rows)
            cross.select(rows)
    return [sorted(some, key=lambda h: -h.score)[:n_best] for some in found]


# %%
def collect(found, alive, output, best, parent, token, ended, K, step, alpha):
    """Move candidates that have just ended, if they are among their sentence's K best, to found."""
    ended = ended.clone()
    ended[:, K:] = False
    for i, j in (ended & best.isfinite()).nonzero().tolist():
        tokens = [*output[i, parent[i, j], 1:].tolist(), token[i, j].item()]
        found[alive[i]].append(Hypothesis(tokens, best[i, j].item() / length_penalty(step, alpha)))


# %%
def cut_short(found, alive, output, scores, step, limit, alpha):
    """At the length limit, hypotheses without an end mark count as they are."""
    for i in (limit[alive] <= step).nonzero().flatten().tolist():
        for j in scores[i].isfinite().nonzero().flatten().tolist():
            found[alive[i]].append(Hypothesis(output[i, j, 1:].tolist(), scores[i, j].item() / length_penalty(step, alpha)))


# %%
def still_open(finished, best_live, step, limit, n_best, alpha):
    """False when the limit is reached, or n_best finished hypotheses beat all that the best live one can become."""
    if step >= limit or best_live == -float("inf"):
        return False
    if len(finished) < n_best:
        return True
    bound = best_live / length_penalty(limit, alpha)
    return sorted((h.score for h in finished), reverse=True)[n_best - 1] < bound


# %% [markdown]
# ## From sentences to sentences

# %%
def translate(model, tokenizer, sentences, beam=4, alpha=0.6, extra=50, batch_tokens=4000, progress=lambda n: None):
    """Translate a list of sentences (beam=1: greedily), batched by length, in the order given.

    progress(n) is called with the number of sentences done after each batch. Raises ValueError for
    a sentence longer than the model's positions.
    """
    encoded = [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_all(sentences)]
    for number, ids in enumerate(encoded, 1):
        if len(ids) > model.config.max_positions:
            raise ValueError(f"sentence {number} has {len(ids)} tokens, more than the model's {model.config.max_positions} "
                             "positions: split it")
    order = sorted(range(len(encoded)), key=lambda i: -len(encoded[i]))
    results, device = [""] * len(encoded), next(model.parameters()).device
    while order:
        size = max(1, batch_tokens // (len(encoded[order[0]]) * beam))
        rows, order = order[:size], order[size:]
        source = pad([encoded[i] for i in rows], model.config.pad_id).to(device)
        outputs = (greedy_search(model, source, extra) if beam == 1
                   else [best[0].tokens for best in beam_search(model, source, beam, alpha, extra)])
        for i, output in zip(rows, outputs):
            results[i] = tokenizer.decode(output)
        progress(len(rows))
    return results


# %% [markdown]
# ## Averaging checkpoints

# %%
def average_checkpoints(paths):
    """The mean of the weights in several files, parameter by parameter (Section 6.1): {name: tensor}."""
    paths = [Path(path) for path in paths]
    if not paths:
        raise ValueError("no checkpoints to average: name at least one file")
    total = {}
    for path in paths:
        for name, tensor in load_weights(path)[0].items():
            total[name] = total.get(name, 0) + tensor.double()
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}


# %% [markdown]
# ## BLEU

# %%
@dataclass(frozen=True)
class Score:
    """A corpus BLEU in per cent with the sacreBLEU signature that says how it was counted."""

    bleu: float
    signature: str


# %%
def bleu(hypotheses, references, lowercase=False):
    """Cased, detokenised sacreBLEU (Post, 2018) of translations against one reference each."""
    from sacrebleu.metrics import BLEU

    metric = BLEU(lowercase=lowercase)
    score = metric.corpus_score(hypotheses, [references]).score
    return Score(score, str(metric.get_signature()))


# %%
def exact_match(hypotheses, references):
    """The part of translations that equal their reference, character by character."""
    return sum(h == r for h, r in zip(hypotheses, references, strict=True)) / len(references)
