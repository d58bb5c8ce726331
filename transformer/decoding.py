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
# A trained model gives a probability to every next token. A translation is a whole sequence of tokens, and there are more sequences than
# anyone can try. At the end you will have the searches of Section 6.1, greedy and with a beam, know what the length penalty repairs,
# have averaged checkpoints, and have computed BLEU and the margin of a difference by hand. Reading takes about 30 minutes,
# running it half a minute.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     # This book has no address yet. Upload its wheel: python -m pip wheel --no-deps .
#     from google.colab import files
#
#     wheel = next(iter(files.upload()))
#     %pip install -q {wheel}

# %%
from dataclasses import dataclass

import torch
from torch import Tensor, nn

# %% [markdown]
# The next cell holds what only the pictures and checks below need.

# %% tags=["active-ipynb"]
# import itertools
# import math
# import random
# import tempfile
# from collections import Counter
# from pathlib import Path
#
# from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
#
# import transformer
# from transformer import (
#     Tokenizer,
#     TrainingConfig,
#     Transformer,
#     TransformerConfig,
#     bleu,
#     encode_pairs,
#     load,
#     train,
#     translate,
#     translate_n_best,
# )
# from transformer.core.records import read_rows
# from transformer.core.scores import (
#     compound_bleu,
#     exact_match,
#     moses_words,
#     split_compounds,
#     tokenized_bleu,
# )
# from transformer.core.weights import load_weights
# from transformer.corpora import read_aligned, read_bundled
# from transformer.views import plotting, trees
#
# random.seed(0)
# torch.manual_seed(0)
# torch.set_num_threads(1)  # the models below are too small to share between cores

# %% [markdown]
# ## What does a search ask the model?
#
# A search always asks the same: given the source and the tokens so far, how likely is each next token? The model of
# [notebook 08](08_model.ipynb) answers with logits at every position, and the last position's are the answer.
#
# Padding is not a word, but a model gives it a little probability (label smoothing asks for that), so it is ruled out here.


# %%
def next_log_probs(model: nn.Module, source: Tensor, outputs: Tensor) -> Tensor:
    """log P(next token) in nats: sources (k, S), outputs so far (k, T) -> (k, V).

    Padding is no token: -inf.
    """
    log_probs = model(source, outputs)[:, -1].log_softmax(dim=-1)
    log_probs[:, model.config.pad_id] = -torch.inf
    return log_probs


# %% [markdown]
# ## Greedy search
#
# The simplest search takes the likeliest token, appends it and asks again, until the end mark or the limit. The
# paper lets an output be at most 50 tokens longer than the input. Here the end mark counts on both sides. A batch of
# sentences goes along together, and a sentence that is done gets padding until all are. The cell after the definition
# follows one sentence through the model that comes with the package.


# %%
@torch.no_grad()
def greedy_search(model: nn.Module, source: Tensor, extra: int = 50) -> list[list[int]]:
    """At each step the likeliest token: source ids (B, S) -> B lists of ids.

    The end mark is included where it was reached. The model is in evaluation mode
    afterwards, as after `beam_search`.
    """
    c = model.eval().config
    limit = (source != c.pad_id).sum(dim=1) + extra
    outputs = torch.full_like(source[:, :1], c.bos_id)
    done = torch.zeros_like(limit, dtype=torch.bool)
    while not done.all():
        best = next_log_probs(model, source, outputs).argmax(dim=-1)
        best[done] = c.pad_id
        outputs = torch.cat([outputs, best[:, None]], dim=1)
        done |= (best == c.eos_id) | (outputs.shape[1] > limit)
    return [tokens[tokens != c.pad_id].tolist() for tokens in outputs[:, 1:]]


# %% tags=["active-ipynb"]
# model, tokenizer = load()
# sentence = "Did a lady bathe gladly before the boring meeting?"
# source = torch.tensor([[*tokenizer.encode(sentence), tokenizer.eos_id]])
#
#
# def piece(token):
#     return tokenizer.decode([token]) or "</s>"
#
#
# @torch.no_grad()
# def log_p_of(model, source, tokens):
#     """log P of each token, in one forward pass: a list"""
#     logits = model.eval()(source, torch.tensor([[1, *tokens[:-1]]]))[0]
#     return logits.log_softmax(dim=-1)[range(len(tokens)), tokens].tolist()
#
#
# greedy = greedy_search(model, source)[0]
# print(tokenizer.decode(greedy))
# steps = [math.exp(log_p) for log_p in log_p_of(model, source, greedy)]
# print(" ".join(f"{piece(token)} {p:.2f}" for token, p in zip(greedy, steps)))
# print(f"product: {math.prod(steps):.4f}")

# %% [markdown]
# The source is in the past tense ("did"), the translation *Badet ...* in the present: it is wrong. The numbers
# show where. After the piece *B* the model has no favourite, *ad* is the likeliest with 0.08, and after it the ending *et* gets only
# 0.32. Greedy search cannot go back and try another second piece.

# %% [markdown]
# ## What need not be computed again?
#
# This code is wasteful. To choose token 10 it pushes tokens 1 to 9 through the decoder again, although their keys and values have not changed, because no position looks
# ahead ([notebook 04](04_attention.ipynb)). A *cache* keeps them, so that each step computes one position instead of the whole
# sentence. **Not in the paper:** the cache; nearly every implementation has one. Each decoder layer gets two: one
# grows with the output, and one holds keys and values of the source, which are computed once. Every output that a search is writing has a row in the cache.
#
# **The package's own searches**, `from transformer import greedy_search, beam_search`, have such caches
# ([transformer/fast/search.py](../transformer/fast/search.py)). They are called like those of this page and give the same, for many sentences at once. In this notebook
# they are `transformer.greedy_search` and `transformer.beam_search`.
#
# What does a cache save? Without it, an output of $n$ tokens costs $n(n+1)/2$ positions instead of $n$. The next cell counts those that
# the first decoder layer computes, for eight long sentences.

# %% tags=["active-ipynb"]
# computed = []
# hook = model.decoder.layers[0].register_forward_hook(
#     lambda layer, inputs, output: computed.append(output.shape[0] * output.shape[1])
# )
# texts = sorted((example.source for example in read_bundled("test")), key=len)[-8:]
# rows = [torch.tensor([[*tokenizer.encode(text), 2]]) for text in texts]
# cached = [transformer.greedy_search(model, row)[0] for row in rows]
# with_caches, computed[:] = sum(computed), []
# assert cached == [greedy_search(model, row)[0] for row in rows]
# hook.remove()
# print(f"positions computed: {with_caches} with caches, {sum(computed)} without")
# print("the eight translations are the same, token by token")

# %% [markdown]
# ## Beam search
#
# A beam search keeps the $K$ best beginnings alive, the *beam* (in the paper $K = 4$). At each step it extends every one of them by
# every token and keeps the best $K$ of all those. What is written so far is called a *hypothesis*. **The paper does not
# name** two details, in which implementations differ:
#
# - Here a hypothesis that ends leaves the beam, and the next best beginning takes its place. One that ends counts only if it was
#   among the $K$ best of its step.
# - At the length limit the $K$ best count as finished, ended or not.

# %% [markdown]
# First the step. Of the extensions of one beginning only the best $K + 1$ can matter: at most one of them ends, so $K$ of them go on, and no
# beam has room for more.
#
# The picture after it shows the first steps of our sentence with $K = 2$: the three best extensions of each step, with the
# probability of the whole beginning. The two that are kept are bold.


# %%
def extensions(
    model: nn.Module, source: Tensor, alive: list[tuple[float, list[int]]], K: int
) -> list[tuple[float, list[int]]]:
    """The best extensions by one token of pairs (log P, tokens), best first.

    source: ids (S,). All that can be among the K best, or the K best that go on.
    """
    outputs = torch.tensor([tokens for _, tokens in alive], device=source.device)
    rows = next_log_probs(model, source.expand(len(alive), -1), outputs)
    longer = []
    for (log_p, tokens), row in zip(alive, rows):
        best = row.topk(min(K + 1, len(row)))
        for more, token in zip(best.values.tolist(), best.indices.tolist()):
            if more > -torch.inf:
                longer.append((log_p + more, [*tokens, token]))
    return sorted(longer, reverse=True)


# %% tags=["active-ipynb"]
# alive = [(0.0, [tokenizer.bos_id])]
# tree, kept = {}, []
# for _ in range(4):
#     with torch.no_grad():
#         longer = extensions(model, source[0], alive, K=2)
#     paths = [tuple(map(piece, tokens[1:])) for _, tokens in longer]
#     tree |= {path: math.exp(log_p) for path, (log_p, _) in zip(paths[:3], longer)}
#     kept += paths[:2]
#     alive = longer[:2]
# ax = trees.hypotheses(tree, kept, "<s>", width=1.6)
# ax.set_title("the second-best beginning after two steps is the best after three");

# %% [markdown]
# *B ad* leads after two steps. But *B ade* goes on with *te* almost surely, so its probability hardly falls (4.7% to 4.4%), while that of
# *B ad* falls from 7.3% to 2.3%. After three steps *B ade te* is ahead, and the greedy search has dropped it by then.
#
# Finished hypotheses have different lengths. To compare them, the search divides $\log P$ by a *length penalty*,
# which Google's earlier translator GNMT (Wu et al., 2016) introduced and the paper takes over with $\alpha = 0.6$. For an output $Y$ of $|Y|$ tokens and a
# source $X$:
#
# $$\mathrm{score}(Y) = \frac{\log P(Y \mid X)}{lp(Y)}, \qquad lp(Y) = \left(\frac{5 + |Y|}{6}\right)^{\alpha}$$
#
# The next section shows what it is for. With $\alpha = 0$ it is 1.


# %%
def length_penalty(length: float | Tensor, alpha: float = 0.6) -> float | Tensor:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al., 2016); |Y| counts the end mark."""
    return ((5 + length) / 6) ** alpha


@dataclass(frozen=True)
class Hypothesis:
    """A finished output: tokens, with the end mark where there was room for it, and
    log P(Y | X) / lp(Y) in nats."""

    tokens: list[int]
    score: float


# %% [markdown]
# When may the search of a sentence stop? The first finished hypothesis may still be overtaken by one that is alive. But
# $\log P$ only falls, and no penalty is larger than that of the longest output allowed. With $\log P = -4$ now and a largest penalty of 2, a
# live hypothesis cannot end above $-2$. The paper says only that it ends early when it can; here a search ends as soon as these bounds prove that nothing
# can change.


# %%
def can_improve(
    alive: list, finished: list[Hypothesis], n_best: int, limit: int, alpha: float
) -> bool:
    """Can the best live hypothesis still become one of the n_best?"""
    at_best = alive[0][0] / length_penalty(limit, alpha)
    return len(finished) < n_best or at_best > finished[-1].score


# %% [markdown]
# Now the whole search. Each step puts the extensions that ended, and were among the $K$ best, beside the beam, where the best few remain, as many as are asked for. The best
# $K$ of the others live on. Sentences are searched one after another, each without its padding.


# %%
@torch.no_grad()
def beam_search(
    model: nn.Module,
    source: Tensor,
    beam: int = 4,
    alpha: float = 0.6,
    extra: int = 50,
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    """The best hypotheses by log P / lp, several kept alive at each step (Section 6.1).

    source: (B, S) ids -> for each sentence at most n_best of them, best first.
    """
    c = model.eval().config
    results = []
    for sentence in source:
        sentence = sentence[sentence != c.pad_id]
        limit = len(sentence) + extra
        alive = [(0.0, [c.bos_id])]
        finished = []
        while alive and can_improve(alive, finished, n_best, limit, alpha):
            longer = extensions(model, sentence, alive, beam)
            alive = []
            for rank, (log_p, tokens) in enumerate(longer):
                length = len(tokens) - 1  # without the begin mark
                if tokens[-1] != c.eos_id and length < limit:
                    alive.append((log_p, tokens))
                elif rank < beam:
                    score = log_p / length_penalty(length, alpha)
                    finished.append(Hypothesis(tokens[1:], score))
            alive = alive[:beam]
            finished = sorted(finished, key=lambda h: h.score, reverse=True)[:n_best]
        results.append(finished)
    return results


# %% tags=["active-ipynb"]
# for hypothesis in beam_search(model, source, beam=4, alpha=0.0, n_best=4)[0]:
#     text = tokenizer.decode(hypothesis.tokens)
#     print(f"P = {math.exp(hypothesis.score):.4f}  {text}")
# narrow = beam_search(model, source, beam=1, alpha=0.0)[0][0]
# assert narrow.tokens == greedy
# assert tokenizer.decode(beam_search(model, source)[0][0].tokens).startswith("Badete")
# print("a beam of 1 is greedy search, and the beam of 4 finds the past tense")

# %% [markdown]
# *Badete* is right, and twice as likely as the greedy output, which comes second. Then follow a wrong verb and *Bante*, which is no word. All four
# differ in nothing but the verb.
#
# In a search with caches each live hypothesis has a row in them. When one goes on in two ways and another dies, the rows must follow: those of the first are
# copied, and those of the second dropped. The package's own search does that for the beams of a whole batch.
#
# For texts there is `translate` ([transformer/models/search.py](../transformer/models/search.py)). It sorts sentences by length and cuts batches so that the caches stay within a
# bound on memory.
#
# ## What is the length penalty for?
#
# Every further token lowers $\log P$, so a search that compares plain sums favours short outputs:

# %% tags=["active-ipynb"]
# sentence = (
#     "The happy niece paints our brave brown cow in front of the museum although "
#     "the rich clubs beside the hospital do not build their theatre."
# )
# long = torch.tensor([[*tokenizer.encode(sentence), tokenizer.eos_id]])
# for alpha in (0.0, 0.6):
#     best = beam_search(model, long, beam=4, alpha=alpha)[0][0]
#     n = len(best.tokens)
#     log_p = best.score * length_penalty(n, alpha)
#     print(f"α = {alpha}: {n} tokens, log P = {log_p:.1f}, score {best.score:.1f}")
#     print("        ", tokenizer.decode(best.tokens))

# %% [markdown]
# Without a penalty, the likeliest output that the search finds breaks off after three words. The model gives this output a small probability ($\log P = -7.0$), but the 28 tokens of the whole sentence cost more together ($-9.6$). The penalty of 0.6 lets the whole sentence win,
# although its end is wrong (the theatre is missing, the hospital is plural, and the verb singular).
#
# How strong is $\alpha = 0.6$? With one more token, $lp$ grows by this part of itself:
#
# $$\frac{d \log lp}{d |Y|} = \frac{\alpha}{5 + |Y|}$$
#
# The library fairseq divides by $|Y|^{\beta}$ instead. With its default, $\beta = 1$, this grows by $1/|Y|$, so both are equally strong where
# $\alpha = (5 + |Y|)/|Y|$. So an $\alpha$ can be compared between programs only at a length:

# %% tags=["active-ipynb"]
# lengths = range(4, 41)
# growth = {f"GNMT, α = {a}": [a / (5 + n) for n in lengths] for a in (0.6, 1.0, 1.3)}
# growth["fairseq's default"] = [1 / n for n in lengths]
# title = "at 16 tokens fairseq's default is as strong as α = 1.3"
# plotting.lines(lengths, growth, "tokens |Y|", "growth of the penalty per token", title)
# for n in (16, 28):
#     print(f"at {n} tokens fairseq's default equals α = {(5 + n) / n:.2f}")
# ratio = length_penalty(16.001, 21 / 16) / length_penalty(16, 21 / 16)
# assert abs((ratio - 1) / 0.001 - 1 / 16) < 1e-5
# print("and the penalties' ratios agree with this derivative")

# %% [markdown]
# Captions of Multi30k have 13 words, about 16 tokens, and [notebook 16](16_translation.ipynb) finds $\alpha = 1.6$ best on its validation set, nearer to fairseq's default than to the paper's 0.6, and shows what that cost on the test set, where some outputs ran on. So choose $\alpha$ on sentences as long as those to come, and limit the length of outputs.
#
# What do beams and penalties do to scores? The next cell translates 200 sentences of the bundled corpus's *hard* test set: longer ones than in
# training, and combinations of words and constructions that training never shows. BLEU is the score of [notebook 13](13_regularization.ipynb), and has a
# section of its own below.

# %% tags=["active-ipynb"]
# hard = random.Random(0).sample(read_bundled("hard"), 200)
# sources = [example.source for example in hard]
# gold = [example.target for example in hard]
# total = sum(len(text.split()) for text in gold)
# outputs = {}
# for beam, alpha in [(1, 0.0), (2, 0.6), (4, 0.0), (4, 0.6), (4, 1.4), (4, 4.0)]:
#     some = outputs[beam, alpha] = translate(model, tokenizer, sources, beam, alpha)
#     share = sum(len(text.split()) for text in some) / total
#     print(
#         f"beam {beam}, α = {alpha}: {share:4.0%} of the reference's words, "
#         f"BLEU {bleu(some, gold).score:.1f}"
#     )

# %% [markdown]
# Without penalty the beam of 4 writes 6% too few words, for which BLEU takes off points, and ends below greedy search. With $\alpha = 4$ the longest
# outputs win, whatever they say. With 0.6 and 1.4 the beam is about as good as greedy search.
#
# ## And on real sentences?
#
# The grammar has one right translation for every sentence, and its model is nearly always sure. The package brings a second model, which
# learned from everyday sentences that people wrote ([its card](../data/models/tatoeba/README.md)). It gets 24 sentences of our own, without a
# penalty, and ever wider beams:

# %% tags=["active-ipynb"]
# everyday, pieces = load("tatoeba")
# own = [english for english, *_ in read_aligned()]
# likeliest = {}
# for beam in (1, 2, 4, 16, 64):
#     best = [found[0] for found in translate_n_best(everyday, pieces, own, 1, beam, 0.0)]
#     likeliest[beam] = sum(found.score for found in best) / len(best)
#     count = sum(len(found.text.split()) for found in best)
#     print(f"beam {beam:2}: {count} words, log P {likeliest[beam]:.2f} on average")
# assert likeliest[64] > likeliest[1]
# print("a wider beam finds likelier outputs")

# %% [markdown]
# Is likelier also better? A record answers for 2,000 validation sentences (`python -m transformer.experiments.alpha`):

# %% tags=["active-ipynb"]
# rows = {(row["beam"], row["alpha"]): row for row in read_rows("tatoeba-alpha")}
# beams = (1, 2, 4, 8, 16, 64)
# greedily = rows[1, 0.0]["validation.bleu"]
# curves = {
#     f"α = {alpha}": [
#         greedily,
#         *(rows[beam, alpha]["validation.bleu"] for beam in beams[1:]),
#     ]
#     for alpha in (0.0, 0.6)
# }
# ax = plotting.lines(
#     beams,
#     curves,
#     "beam",
#     "validation BLEU",
#     "wider than 8 the beam gains nothing",
#     "x",
#     markers=True,
# )
# ax.set_xticks(beams, beams)
# for beam in beams:
#     row = rows[beam, 0.0]
#     print(
#         f"beam {beam:2}, α = 0: log P {row['validation.log_p']:.2f}, "
#         f"{row['validation.length']:.1%} of the reference's words"
#     )

# %% [markdown]
# Most is gained by the first few beginnings that are kept alive. Wider beams go on finding likelier outputs, but these are shorter, and from a
# beam of 8 on BLEU gains nothing from them, with a penalty or without. Koehn and Knowles (2017) found in larger systems that wide
# beams can even lower the score. So likelier is not always better, and beam and $\alpha$ are chosen on validation data, as the paper did. Its sentences should be as long as those to come: in [notebook 16](16_translation.ipynb) an $\alpha$ chosen on shorter ones lets a model's outputs run on.
#
# ## Averaging checkpoints
#
# Each batch asks for something else, so the weights at the end of a training depend on which batches came last. The mean of several checkpoints' weights depends on them less. The paper averages the last 5 (base) or 20 (big).


# %%
def average_checkpoints(checkpoints: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several {name: weights}, parameter by parameter (Section 6.1)."""
    average = {}
    for name in checkpoints[0]:
        weights = torch.stack([checkpoint[name] for checkpoint in checkpoints])
        average[name] = weights.mean(dim=0)
    return average


# %% [markdown]
# The package's own ([transformer/models/checkpoint.py](../transformer/models/checkpoint.py)) also takes files, which it reads one after another.
#
# A small model learns to say rows of digits backwards. It is stopped early, with a checkpoint every ten updates. What share of 300 new rows
# does each of the last five get right, and what share their mean?

# %% tags=["active-ipynb"]
# digits = "zero one two three four five six seven eight nine".split()
# rows = [random.choices(digits, k=random.randint(3, 7)) for _ in range(2300)]
# pairs = [(" ".join(row), " ".join(reversed(row))) for row in rows]
# small_tokenizer = Tokenizer.train([text for text, _ in pairs], vocab_size=300)
# encoded = encode_pairs(small_tokenizer, pairs)
# questions, answers = zip(*pairs[2000:])
# small = Transformer(
#     TransformerConfig(
#         small_tokenizer.vocab_size,
#         d_model=32,
#         d_ff=64,
#         N=1,
#         h=2,
#         P_drop=0.0,
#         max_positions=80,
#     )
# )
# how = TrainingConfig(
#     updates=200, batch_tokens=500, warmup=50, lr_scale=0.8, validate_every=10
# )

# %% tags=["active-ipynb"]
# def share_right(tensors):
#     small.load_state_dict(tensors, strict=False)  # tied matrices are saved once
#     return exact_match(translate(small, small_tokenizer, questions, beam=1), answers)
#
#
# with tempfile.TemporaryDirectory() as folder:
#     train(small, encoded[:2000], how, folder)
#     paths = sorted(Path(folder, "weights").iterdir())
#     checkpoints = [load_weights(path)[0] for path in paths]
# average = average_checkpoints(checkpoints)
# right = {
#     f"update {path.stem.lstrip('0')}": share_right(tensors)
#     for path, tensors in zip(paths, checkpoints)
# }
# right["their mean"] = share_right(average)
# title = "the mean of the weights gets more rows right than any of them"
# plotting.bars(right, "", "share of rows right", title, ax=plotting.new_axes(6.5, 3))
# assert right["their mean"] == max(right.values())
# by_hand = sum(tensors["embedding.weight"] for tensors in checkpoints) / 5
# assert torch.allclose(average["embedding.weight"], by_hand, rtol=0, atol=1e-6)
# print("the mean was taken parameter by parameter")

# %% [markdown]
# The five are only ten updates apart, and their mean gets more rows right than each. In one run that proves little. On Multi30k's test set averaging ten gained 0.6 to 1.9 points of BLEU over the last alone, in each of six runs ([notebook 16](16_translation.ipynb)).

# %% [markdown]
# ## BLEU
#
# BLEU (Papineni et al., 2002) compares translations with *references*, which people wrote. It asks how many runs of $n$ words (*n-grams*)
# of the translation also stand in the reference. The precision $P_n$ is their share, where a run counts at most as often as the reference
# has it. By precision alone an output of a few sure words would win. So a *brevity penalty* $BP$ lowers the score of an output whose $c$ words are
# fewer than the reference's $r$. All counts are summed over the corpus before any division.
#
# $$\mathrm{BLEU} = 100 \cdot BP \cdot \left(P_1\, P_2\, P_3\, P_4\right)^{1/4}, \qquad BP = \min\left(1, e^{1 - r/c}\right)$$

# %% tags=["active-ipynb"]
# cut = Tokenizer13a()  # sacreBLEU's words: punctuation stands alone
#
#
# def counts_of(output, reference):
#     """Hits and runs for n = 1 to 4, and the two lengths: 10 numbers"""
#     ours, theirs = cut(output).split(), cut(reference).split()
#     hits, runs = [], []
#     for n in (1, 2, 3, 4):
#         mine, right = (
#             Counter(zip(*(side[i:] for i in range(n)))) for side in (ours, theirs)
#         )
#         hits.append((mine & right).total())  # & takes the smaller count
#         runs.append(mine.total())
#     return [*hits, *runs, len(ours), len(theirs)]
#
#
# def bleu_of(counts):
#     """The score of a corpus, from the counts of its sentences (..., sentences, 10)"""
#     total = torch.as_tensor(counts, dtype=torch.float64).sum(dim=-2)
#     precisions = total[..., :4] / total[..., 4:8]
#     brevity = (1 - total[..., 9] / total[..., 8]).clamp(max=0).exp()
#     return 100 * brevity * precisions.log().mean(dim=-1).exp()

# %% tags=["active-ipynb"]
# output = "the red red fox jumps over the sleeping dog"
# reference = "the quick red fox jumps over the very lazy dog"
# counts = counts_of(output, reference)
# print(
#     "precisions",
#     [f"{h}/{n}" for h, n in zip(counts[:4], counts[4:8])],
#     f"brevity penalty {math.exp(1 - 10 / 9):.3f}  BLEU {bleu_of([counts]):.2f}",
# )
# ours = bleu_of([counts_of(*pair) for pair in zip(outputs[4, 0.6], gold)])
# theirs = bleu(outputs[4, 0.6], gold)
# assert abs(bleu_of([counts]) - bleu([output], [reference]).score) < 1e-6
# assert abs(ours - theirs.score) < 1e-4
# print(f"the 200 translations: {ours:.2f} by hand, {theirs.score:.2f} by sacreBLEU")
# print(theirs.signature)

# %% [markdown]
# Of the two "red" one counts, because the reference has only one. The bundled grammar has one right translation for
# each sentence. A real sentence has many, and the reference is one of them, so real scores are far from 100: the paper's best are 28.4 (German) and 41.8 (French).
#
# How text is cut into words changes the score, so sacreBLEU (Post, 2018) fixes it, and its *signature* says how: one reference, case kept,
# the tokeniser 13a, and so on. A score should be reported with it.

# %% [markdown]
# ## Why are there several BLEUs?
#
# Two older conventions matter here. Both cut text with the tokeniser of the Moses system. (Both also leave out a detail of sacreBLEU, its *smoothing*, which matters only where some
# $P_n$ is 0.) Papers on **Multi30k** lower-case the text and replace quotes and other punctuation by plain forms. The code of the paper's authors,
# tensor2tensor, scores **WMT 2014** with case, and makes the hyphen of a compound a word of its own, written `##AT##-##AT##`:

# %% tags=["active-ipynb"]
# german = (
#     "„Die E-Mail-Adresse der CDU-Politikerin ist neu“, sagt er, „und ihr T-Shirt auch.“"
# )
# output = (
#     '"Die Email-Adresse der CDU-Politikerin ist neu", sagt er, "und Ihr T-Shirt auch."'
# )
# same_quotes = german.replace("„", '"').replace("“", '"')
# cuts = {
#     "sacreBLEU 13a": cut(german),
#     "Moses, lower case": moses_words([german], "de", lowercase=True)[0],
#     "Moses, compounds": split_compounds(moses_words([german], "de")[0]),
# }
# for (name, words), way in zip(cuts.items(), (bleu, tokenized_bleu, compound_bleu)):
#     score, tweaked = (way([output], [text]).score for text in (german, same_quotes))
#     print(f"{name:18}{score:5.1f}, with plain quotes in the reference {tweaked:5.1f}")
#     print("  ", words.replace(" ", "|"))

# %% [markdown]
# One translation gets very different scores. (The cut lines are the reference.) Quotes of another shape are errors to the first and the last way (to the first „Die is one word, and not Die), and become right when somebody replaces the reference's. The last way also counts
# the parts of compounds: *Adresse* is right there, in spite of *Email*.

# %% [markdown]
# The paper does not say how its 28.4 was counted. Later versions of tensor2tensor's script replace quotes (except „) in the output alone, and so need a reference whose quotes were replaced as well. Popel scored a published
# model on newstest2014 both ways ([tensor2tensor, issue 317](https://github.com/tensorflow/tensor2tensor/issues/317)):
# 27.52 with sacreBLEU, 29.02 with the script and such a reference. [NVIDIA](https://github.com/NVIDIA/DeepLearningExamples/tree/master/PyTorch/Translation/Transformer) fitted sacreBLEU to another score, fairseq's own BLEU on tokenised text: 0.978 times that minus 0.05, a gap of about 0.7. Which gap is the paper's we do not
# know. **Here** `compound_bleu` leaves quotes as they are, on both sides.

# %% [markdown]
# ## Is a difference real?
#
# Two searches differ by some tenths of a point on 200 sentences. Would another 200 say the same? The *bootstrap* (Koehn, 2004) draws
# as many sentences again, some twice and some not at all, a thousand times, and scores each draw. The middle 95% of these scores is an interval for the score; the cell prints their mean before it. To compare two systems, both are scored on the *same* draws, and the interval is that of the difference (*paired* bootstrap).

# %% tags=["active-ipynb"]
# counts = {
#     name: torch.tensor([counts_of(*pair) for pair in zip(some, gold)])
#     for name, some in outputs.items()
# }
# draws = torch.randint(200, (1000, 200))
# scores = {name: bleu_of(some[draws]) for name, some in counts.items()}  # (1000,) each
# ends = torch.tensor([0.025, 0.975], dtype=torch.float64)
#
#
# def interval(values):
#     low, high = values.quantile(ends).tolist()
#     return f"{values.mean():5.2f}, 95% from {low:5.2f} to {high:5.2f}"
#
#
# print("beam 4, α = 0.6:           ", interval(scores[4, 0.6]))
# pairs = {
#     "α = 1.4 minus α = 0": ((4, 1.4), (4, 0.0)),
#     "beam 4 minus greedy": ((4, 0.6), (1, 0.0)),
# }
# differences = {name: scores[a] - scores[b] for name, (a, b) in pairs.items()}
# for name, values in differences.items():
#     print(f"{name:27}", interval(values), f"{(values > 0).float().mean():.1%} above 0")
# title = "one difference is clear of 0, the other is not"
# ax = plotting.histograms(differences, "difference in BLEU, 1000 draws", title)
# ax.axvline(0, color="black", linewidth=1);

# %% [markdown]
# The interval of one system is more than five points wide, and yet the paired interval of the first difference is clear of 0: hard sentences are hard for both
# systems, so much of the luck of the draw cancels. The penalty of 1.4 is better than none on sentences like these (the pair was picked after its scores were seen, but every draw is above 0), and between greedy
# search and a beam of 4 these 200 sentences do not decide. Whoever tries many pairs must ask for more
# than 95%: of twenty pairs without a difference, one on average looks clear of 0 by chance. The program sacreBLEU has this test as `--paired-bs`. It draws sentences alone, for two models as they are: trained again from another seed, a model may differ by two BLEU ([16](16_translation.ipynb)).

# %% [markdown]
# ## Checks
#
# **Scores are true.** The search adds up $\log P$ step by step, with caches and with rows that move. One forward pass over each
# finished output must give the same. **A beam wide enough is exhaustive search.** A random model that has four
# tokens, and may write at most four of them, has 121 possible outputs, and all can be scored.

# %% tags=["active-ipynb"]
# def score_of(model, source, tokens, alpha=0.6):
#     return sum(log_p_of(model, source, tokens)) / length_penalty(len(tokens), alpha)
#
#
# found = [
#     (row, h) for row in (source, long) for h in beam_search(model, row, n_best=4)[0]
# ]
# gaps = [abs(h.score - score_of(model, row, h.tokens)) for row, h in found]
# assert max(gaps) < 1e-4
# print(f"{len(gaps)} scores differ from a forward pass by at most {max(gaps):.0e}")
#
# tiny = Transformer(TransformerConfig(5, d_model=16, d_ff=32, N=1, h=2))
# ids = torch.tensor([[3, 2]])
# everything = [
#     list(tokens)
#     for n in (1, 2, 3, 4)
#     for tokens in itertools.product([1, 2, 3, 4], repeat=n)
#     if 2 not in tokens[:-1] and (tokens[-1] == 2 or n == 4)
# ]
# for alpha in (0.0, 0.6, 3.0):
#     by_force = sorted(
#         everything, key=lambda tokens: -score_of(tiny, ids, tokens, alpha)
#     )
#     ten = beam_search(tiny, ids, beam=130, alpha=alpha, extra=2, n_best=10)[0]
#     assert [h.tokens for h in ten] == by_force[:10]
# print(f"a wide beam finds the ten best of all {len(everything)} outputs")

# %% [markdown]
# **Stopping early changes nothing.** For the first search below, `can_improve` is replaced by
# a function that never lets it stop before the limit. **A batch gives each sentence what it gets alone**, and **the package's searches give the same as those of this page.**

# %% tags=["active-ipynb"]
# early = can_improve
#
#
# def can_improve(alive, finished, n_best, limit, alpha):
#     return True
#
#
# patient = beam_search(model, long, extra=5, n_best=4)
# can_improve = early
# assert patient == beam_search(model, long, extra=5, n_best=4)
# print("a search that goes on to the limit finds nothing else")
# rows = [[*tokenizer.encode(text), tokenizer.eos_id] for text in sources[:8]]
# longest = max(map(len, rows))
# batch = torch.tensor([row + [0] * (longest - len(row)) for row in rows])  # padding
# together = greedy_search(model, batch)
# assert together == [greedy_search(model, torch.tensor([row]))[0] for row in rows]
# assert together == transformer.greedy_search(model, batch)
# print("8 sentences together are translated as each alone")
# for alpha in (0.0, 0.6):
#     here = beam_search(model, batch, alpha=alpha)
#     there = transformer.beam_search(model, batch, alpha=alpha)
#     for [plain], [fast] in zip(here, there):
#         assert plain.tokens == fast.tokens and abs(plain.score - fast.score) < 1e-4
# print("and the package's searches give the same as those of this page")

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Write one step of a beam search with plain lists: all extensions of all beginnings, of which the `K` best remain, best
# first. (End marks need no attention here.)

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.decoding import check_beam_step
#
#
# def beam_step(beam, log_probs, K):
#     """k pairs (log P, tokens), k lists of V log probabilities -> K pairs"""
#     ...
#
#
# check_beam_step(beam_step)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def beam_step(beam, log_probs, K):
#     extended = []
#     for (log_p, tokens), row in zip(beam, log_probs):
#         for token, more in enumerate(row):
#             extended.append((log_p + more, [*tokens, token]))
#     return sorted(extended, reverse=True)[:K]
# ```
#
# Sorting the extensions of each beginning by themselves would keep bad beginnings alive; all of them compete.
# </details>
#
# **2.** A short and a longer output are given as pairs (number of tokens, $\log P$); the short one is likelier. From which
# $\alpha$ on does the longer one win with GNMT's penalty?

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.decoding import check_tie
#
#
# def tie(short, long):
#     """two pairs (tokens, log P) -> alpha"""
#     ...
#
#
# check_tie(tie)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def tie(short, long):
#     n, log_p = short
#     m, log_q = long
#     penalties = (5 + m) / (5 + n)  # their ratio, for an alpha of 1
#     return math.log(log_q / log_p) / math.log(penalties)
# ```
#
# Equal scores mean $\log Q / \log P = \left(\frac{5 + m}{5 + n}\right)^{\alpha}$. With 6 tokens and $\log P = -3$ against 12 tokens
# and $\log P = -4$, it is 0.66: at the paper's 0.6 the short one still wins.
# </details>
#
# **3.** Write BLEU's brevity penalty of a corpus whose words are separated by spaces.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.decoding import check_brevity
#
#
# def brevity(outputs, references):
#     """two lists of strings -> a number between 0 and 1"""
#     ...
#
#
# check_brevity(brevity)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def brevity(outputs, references):
#     c = sum(len(text.split()) for text in outputs)
#     r = sum(len(text.split()) for text in references)
#     return math.exp(min(0, 1 - r / c))
# ```
#
# The lengths are summed before dividing, so a sentence that is too long can make up for one that is too short.
# </details>

# %% [markdown]
# ## Next
#
# [16 Translation](16_translation.ipynb) puts all this together and trains a translator.
