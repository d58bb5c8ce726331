# ---
# jupyter:
#   jupytext:
#     formats: notebooks/15_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 15 · Decoding
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/15_decoding.ipynb)
#
# *Section 6.1 of the paper. Reading takes about 20 minutes, running half a minute.*
#
# *Did a lady bathe gladly before the boring meeting?* The small translator of chapter 0 puts this into German: *Badet eine Dame vor der langweiligen Sitzung gern?* Every word is right except the first. *Badet* means "bathes", but the question is about the past, and that would be *Badete*.
#
# Does the model know no better? It does. Shown both sentences, it calls the right one almost twice as likely as the one that it wrote. So we asked it badly. How should one ask?

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

# %% tags=["active-ipynb"]
# import math
# import random
# from collections import Counter
#
# from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
#
# from transformer import bleu, load, translate_n_best, views
# from transformer.attention import attention, causal_mask
# from transformer.core.records import read_rows
# from transformer.corpora import read_bundled
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # the models below are too small to share between cores

# %% [markdown]
# ## A model says one token at a time
#
# The model has learned one thing: given a source and the beginning of a translation, how likely is each token to come next? A translation needs many tokens, and choosing them is called **decoding**.
#
# The simplest choice is the likeliest token. Take it, append it, and ask again until the end mark `</s>` comes. This is **greedy search**.
#
# We work with natural logarithms, because they add where probabilities multiply: ½ · ¼ = ⅛, and −0.69 − 1.39 = −2.08.
#
# The code takes a batch of sentences. As in the paper, an output may be at most 50 tokens longer than its source.


# %%
def next_log_probs(model: nn.Module, source: Tensor, outputs: Tensor) -> Tensor:
    """log P(next token) in nats: sources (k, S), outputs so far (k, T) -> (k, V)."""
    log_probs = model(source, outputs)[:, -1].log_softmax(dim=-1)
    log_probs[:, model.config.pad_id] = -torch.inf  # padding is no word
    return log_probs


@torch.no_grad()
def greedy_search(model: nn.Module, source: Tensor, extra: int = 50) -> list[list[int]]:
    """At each step the likeliest token: source ids (B, S) -> B lists of ids."""
    c = model.eval().config
    limit = (source != c.pad_id).sum(dim=1) + extra  # of each sentence
    outputs = torch.full_like(source[:, :1], c.bos_id)
    done = torch.zeros_like(limit, dtype=torch.bool)
    while not done.all():
        best = next_log_probs(model, source, outputs).argmax(dim=-1)
        best[done] = c.pad_id  # a sentence that is done only gets padding
        outputs = torch.cat([outputs, best[:, None]], dim=1)
        done |= (best == c.eos_id) | (outputs.shape[1] > limit)
    return [tokens[tokens != c.pad_id].tolist() for tokens in outputs[:, 1:]]


# %% [markdown]
# Here is its output for the lady, and over each piece how likely it was:

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# BEGIN, END = tokenizer.bos_id, tokenizer.eos_id
#
#
# def read(english):
#     return torch.tensor([[*tokenizer.encode(english), END]])
#
#
# def pieces(tokens):
#     return [tokenizer.decode([token]) or "(end)" for token in tokens]
#
#
# @torch.no_grad()
# def log_p_of(source, tokens):
#     """log P of each token of an output, given those before it: a list."""
#     log_probs = model(source, torch.tensor([[BEGIN, *tokens[:-1]]]))[0].log_softmax(-1)
#     return [row[token].item() for row, token in zip(log_probs, tokens)]
#
#
# source = read("Did a lady bathe gladly before the boring meeting?")
# greedy = greedy_search(model, source)[0]
# right = tokenizer.encode("Badete eine Dame vor der langweiligen Sitzung gern?") + [END]
# for tokens in (greedy, right):
#     P = math.exp(sum(log_p_of(source, tokens)))
#     print(f"{P:.2%} for {tokenizer.decode(tokens)}")
#
# after_B = next_log_probs(model, source, torch.tensor([[BEGIN, greedy[0]]]))[0].exp()
# rare = after_B[after_B < 0.001]
# print(f'after "B": {len(rare)} pieces of less than 0.1% have {rare.sum():.0%} together')
# views.sure(pieces(greedy), log_p_of(source, greedy))

# %% [markdown]
# *The two red bars show the accident: after "B" even the likeliest piece, "ad", has only 8%, and greedy search takes it and can never go back.*
#
# Where is the rest? More than half of the probability is scattered over thousands of unlikely pieces: here the model is lost. Elsewhere it is sure, and says about 90%, because the label smoothing of [chapter 13](13_regularization.ipynb) asked for no more.
#
# The probability of the whole output is the product of all these numbers. A second token that is a little less likely might lead to a better product. What would you try?

# %% [markdown]
# ## Keep several beginnings alive
#
# We cannot try every sentence: with 3,500 tokens to choose from, there are twelve million beginnings of two tokens. But we can keep more than one beginning. At each step, extend each of them by every token, and of all these extensions keep the best $K$. This is **beam search**. What is written so far is called a **hypothesis**, and the hypotheses that are kept are the **beam**. With $K = 1$ it is greedy search; the paper keeps 4.
#
# On paper first, with $K = 2$: the beginning "a" has 0.5 and "b" has 0.4. After "a" the likeliest tokens have 0.4 and 0.3, after "b" 0.9 and 0.1. The four extensions have 0.2, 0.15, 0.36 and 0.04. The two best are kept, and the one that begins with "b" now leads.


# %%
def extensions(
    model: nn.Module, source: Tensor, alive: list[tuple[float, list[int]]], K: int
) -> list[tuple[float, list[int]]]:
    """Pairs (log P, tokens), each longer by one token, best first: for every pair of
    `alive` its K + 1 likeliest extensions. source: ids (S,).
    """
    outputs = torch.tensor([tokens for _, tokens in alive], device=source.device)
    rows = next_log_probs(model, source.expand(len(alive), -1), outputs)
    longer = []
    for (log_p, tokens), row in zip(alive, rows):
        best = row.topk(min(K + 1, len(row)))  # + 1: the end mark may be among them
        for more, token in zip(best.values.tolist(), best.indices.tolist()):
            if more > -torch.inf:  # padding is left out
                longer.append((log_p + more, [*tokens, token]))
    return sorted(longer, reverse=True)


# %% tags=["active-ipynb"]
# @torch.no_grad()
# def extend(alive, K):
#     return extensions(model, source[0], alive, K)
#
#
# views.beam_tree(extend, lambda token: pieces([token])[0], K=2, steps=4)

# %% [markdown]
# *Blue beginnings are kept, and a thick frame marks the best of each step: "B ad" leads after two steps, but one step later "B ade te" has overtaken it. (Move $K$ to 1, and the right answer dies at step 2.)*
#
# In the tree each number is the probability of the whole beginning, so "ad" has 92% · 8% = 7.3%. After two steps "B ade" is behind with only 4.7%. But *te* follows "ade" almost surely, while *et* follows "ad" in a third of cases, and so the order turns round. Greedy search had dropped the winner one step too early.

# %% [markdown]
# ## When is a search over?
#
# A hypothesis that ends leaves the beam and waits in a list, and the next best beginning takes its place. When may we stop? One more token can only lower $\log P$. So once the best beginning alive is below the best finished output, nothing can overtake that output.
#
# We try this search on the lady, and on a longer sentence: *The happy niece paints our brave brown cow in front of the museum although the rich clubs beside the hospital do not build their theatre.*

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def first_search(source, K=4):
#     alive, finished = [(0.0, [BEGIN])], []
#     while not finished or alive[0][0] > finished[0][0]:  # log P of the best of each
#         longer = extensions(model, source[0], alive, K)
#         ended = [(log_p, tokens) for log_p, tokens in longer[:K] if tokens[-1] == END]
#         finished = sorted(finished + ended, reverse=True)
#         alive = [pair for pair in longer if pair[1][-1] != END][:K]
#     return finished[0][1][1:]  # the tokens of the best, without the begin mark
#
#
# long = read(
#     "The happy niece paints our brave brown cow in front of the museum although "
#     "the rich clubs beside the hospital do not build their theatre."
# )
# stump = first_search(long)
# print("the lady: ", tokenizer.decode(first_search(source)))
# print("the niece:", tokenizer.decode(stump))

# %% [markdown]
# The lady has her *Badete*. But *Die glückliche Nichte?* means "The happy niece?", and nothing more.
#
# ## Why does the beam fall silent?
#
# Is there a bug? Let us ask the model what it thinks of two longer outputs. One is the right translation. The other is whole, but goes astray: word for word it ends "although the rich clubs not beside the hospitals builds". The theatre is missing, one hospital has become several, and *baut* would fit a single club.

# %% tags=["active-ipynb"]
# half = "Die glückliche Nichte malt unsere mutige braune Kuh vor dem Museum, obwohl die "
# texts = {
#     "the stump": "Die glückliche Nichte?",
#     "the whole sentence": half + "reichen Vereine nicht neben den Krankenhäusern baut.",
#     "the right translation": half
#     + "reichen Vereine neben dem Krankenhaus ihr Theater nicht bauen.",
# }
# curves = {}
# for name, text in texts.items():
#     tokens = tokenizer.encode(text) + [END]
#     curves[name] = pieces(tokens), log_p_of(long, tokens)
#
# # words between blanks; the 20 of chapter 7 count a full stop, too
# longest = max(len(example.source.split()) for example in read_bundled("train"))
# print(f"The longest sentence in training has {longest} words, the niece's 25.")
# views.falling(curves)

# %% [markdown]
# *The stump pays once, 6.7 nats for its question mark, and is done; the whole sentence goes on paying and ends lower; the right translation falls out of the picture.*
#
# So the search is not broken: of the three outputs it found the likeliest. The fault is the model's. It never saw a sentence this long, and finds the right translation the least likely.
#
# But why a stump? Every token costs something. Where the model is sure it pays a tenth of a nat, because it says 90% and $-\ln 0.9 = 0.1$. Where it is lost it pays far more: "Krankenh" and "b", the beginnings of two wrong words, have 5% and 6%.
#
# And how did such an unlikely question mark get into the beam? After *Die glückliche Nichte* the model is sure of one piece, but the beam has four places, and the others go to whatever is left. So the stump was finished early, and waited in the list until all others had paid more.

# %% [markdown]
# ## Divide by the length
#
# Google's earlier translator GNMT (Wu et al., 2016) therefore divides $\log P$ by a **length penalty**, and the paper takes this over with $\alpha = 0.6$. For an output $Y$ of $|Y|$ tokens and a source $X$:
#
# $$\mathrm{score}(Y) = \frac{\log P(Y \mid X)}{lp(Y)}, \qquad lp(Y) = \left(\frac{5 + |Y|}{6}\right)^{\alpha}$$
#
# Dividing a negative number by more brings it closer to zero, so longer outputs gain. With $\alpha = 0$ the divisor is always 1. By hand: the stump has 5 tokens and gets −7.0 / 1.36 = −5.1, and the whole sentence has 28 and gets −9.6 / 2.78 = −3.5. Now the whole sentence wins.
#
# When may the search stop now? A further token still lowers $\log P$, but it raises the divisor, which helps. The largest divisor is that of the longest output allowed. Suppose it is 2, and the best beginning alive has $\log P = -4$. Then no output that grows from it can score above −2. If a finished output has −1.9, the search is over.


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
# `search_one` is the first search with this score and this rule; it returns the `n_best` outputs.


# %%
def search_one(
    model: nn.Module, sentence: Tensor, beam: int, alpha: float, limit: int, n_best: int
) -> list[Hypothesis]:
    """`beam_search` of one sentence (S,), for outputs of at most `limit` tokens."""
    eos_id = model.config.eos_id
    alive, finished = [(0.0, [model.config.bos_id])], []
    for length in range(1, limit + 1):  # of all outputs at this step
        longer = extensions(model, sentence, alive, beam)
        for log_p, tokens in longer[:beam]:
            if tokens[-1] == eos_id or length == limit:
                score = log_p / length_penalty(length, alpha)
                finished.append(Hypothesis(tokens[1:], score))
        finished = sorted(finished, key=lambda h: h.score, reverse=True)[:n_best]
        alive = [pair for pair in longer if pair[1][-1] != eos_id][:beam]
        if not alive:
            break
        # no output that is still to come can score higher than this:
        at_best = alive[0][0] / length_penalty(limit, alpha)
        if len(finished) == n_best and at_best <= finished[-1].score:
            break
    return finished


@torch.no_grad()
def beam_search(
    model: nn.Module,
    source: Tensor,
    beam: int = 4,
    alpha: float = 0.6,
    extra: int = 50,
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    """source: (B, S) ids -> for each sentence its n_best hypotheses (Section 6.1)."""
    model.eval()
    found = []
    for row in source:  # one sentence after another, without its padding
        sentence = row[row != model.config.pad_id]
        limit = len(sentence) + extra
        found.append(search_one(model, sentence, beam, alpha, limit, n_best))
    return found


# %% tags=["active-ipynb"]
# for hypothesis in beam_search(model, source, n_best=3)[0]:
#     print(f"{hypothesis.score:.2f}  {tokenizer.decode(hypothesis.tokens)}")
# best = beam_search(model, long)[0][0]
# print(f"{best.score:.2f}  {tokenizer.decode(best.tokens)}")
# assert tokenizer.decode(best.tokens) == texts["the whole sentence"]
# assert beam_search(model, source, beam=1, alpha=0.0)[0][0].tokens == greedy

# %% [markdown]
# The lady's right sentence comes first; the third says *brachte*, "brought".
#
# The niece gets the whole sentence. Its first half is right, its second is not: a search can only choose among what a model offers.

# %% [markdown]
# ## How good is a translation?
#
# A beam rescued the lady, and made a stump of the niece. Which is more common? To answer for hundreds of sentences we need a grade that a machine can give. **BLEU** (Papineni et al., 2002) compares an output with a **reference**, which a person wrote. It counts the runs of one to four words (**n-grams**) of the output that are in the reference, too.
#
# Take a pencil: the output is "the quick quick fox jumps over the sleeping dog", and the reference "the quick brown fox jumps over the very lazy dog". How many single words of the output would you count, and how many pairs?

# %% tags=["active-ipynb"]
# translation = "the quick quick fox jumps over the sleeping dog"
# reference = "the quick brown fox jumps over the very lazy dog"
# views.bleu_runs(translation, reference)

# %% [markdown]
# *A blue run is in the reference, a red one is not: the second "quick" earns nothing, because the reference has only one "quick" to give.*
#
# The four shares are the **precisions** $p_1$ to $p_4$: 7/9, 4/8, 2/7 and 1/6. Their geometric mean is 0.369. But an output of a few safe words would have high precisions, so the **brevity penalty** $BP$ punishes an output whose $c$ words are fewer than the reference's $r$. Ours has 9 of 10, so $BP = e^{1 - 10/9} = 0.895$, and together that is 33.0.
#
# $$\mathrm{BLEU} = 100 \cdot BP \cdot \left(p_1 p_2 p_3 p_4\right)^{1/4}, \qquad BP = \min\left(1, e^{1 - r/c}\right)$$
#
# For many sentences all counts are summed first, and then divided.

# %% tags=["active-ipynb"]
# cut = Tokenizer13a()  # sacreBLEU's words: punctuation is a word of its own
#
#
# def runs(words, n):
#     """How often each run of n words occurs."""
#     return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
#
#
# def counts_of(output, reference):
#     """Ten numbers: for n = 1 to 4 the runs found and all runs; then c and r."""
#     ours, theirs = cut(output).split(), cut(reference).split()
#     numbers = []
#     for n in (1, 2, 3, 4):
#         found = runs(ours, n) & runs(theirs, n)  # of each run the smaller count
#         numbers += [found.total(), runs(ours, n).total()]
#     return torch.tensor([*numbers, len(ours), len(theirs)]).double()
#
#
# def bleu_of(counts):
#     """BLEU of ten numbers, summed over as many sentences as you like."""
#     found, there = counts[0:8:2], counts[1:8:2]
#     c, r = counts[8], counts[9]
#     brevity = min(1, math.exp(1 - r / c))
#     return 100 * brevity * (found / there).prod().item() ** (1 / 4)
#
#
# by_hand = bleu_of(counts_of(translation, reference))
# assert abs(by_hand - bleu([translation], [reference]).score) < 1e-6
# print(f"by hand {by_hand:.2f}, the same as sacreBLEU's")

# %% [markdown]
# Is "dog." one word or two? The program **sacreBLEU** (Post, 2018) settles this, so name it beside a score ([evidence 15.3](evidence/15_decoding.ipynb)). On real text scores stay far from 100, because the reference is only one of many good translations: the paper's best are 28.4 for German and 41.8 for French.

# %% [markdown]
# ## Is likelier better?
#
# The niece is from a test set of 1,000 hard sentences. They are longer than those of the training or combine words and constructions as training never did. We translate 200 of them in three ways: greedily, with a beam of four, and with that beam and the penalty. A grammar made these sentences, with few ways to say a thing, so BLEU is higher than on real text.
#
# A beam should find likelier outputs than greedy search. Which way will BLEU go?

# %% tags=["active-ipynb"]
# hard = random.Random(0).sample(read_bundled("hard"), 200)
# sources = [example.source for example in hard]
# references = [example.target for example in hard]
# searches = {"greedy": (1, 0.0), "beam of 4": (4, 0.0), "beam, α = 0.6": (4, 0.6)}
#
# found, tables = {}, {}
# for name, (K, alpha) in searches.items():
#     # the package's faster search: for each sentence a list of 1 output, which has a
#     # text and a score
#     lists = translate_n_best(model, tokenizer, sources, 1, K, alpha)
#     found[name] = [outputs[0] for outputs in lists]
#     rows = [counts_of(best.text, r) for best, r in zip(found[name], references)]
#     tables[name] = torch.stack(rows)  # (200, 10)
#     words, wanted = tables[name][:, 8], tables[name][:, 9]
#     short = (words <= wanted - 5).sum()
#     score = bleu_of(tables[name].sum(dim=0))
#     print(f"{name:14}BLEU {score:.1f}, {short:2} outputs 5 or more words too short")
#
# pairs = list(zip(found["beam of 4"], found["greedy"]))
# likelier = sum(beam.score > one.score + 0.001 for beam, one in pairs)  # log P: α is 0
# less_likely = sum(beam.score < one.score - 0.001 for beam, one in pairs)
# print(f"beam of 4: likelier than greedy {likelier} times, less likely {less_likely}")
#
# ours, theirs = tables["beam of 4"], tables["greedy"]
# is_stump = ours[:, 8] <= theirs[:, 8] - 5  # 5 or more words shorter than greedy's
# mended = torch.where(is_stump[:, None], theirs, ours).sum(dim=0)
# print(f"with greedy's outputs for {is_stump.sum()} stumps: BLEU {bleu_of(mended):.1f}")

# %% [markdown]
# The beam does find likelier outputs, and gets a *lower* BLEU. Stumps are the reason: with greedy search's outputs in their place, nearly all of the loss is gone. The penalty brings back more than half of it.
#
# ## Is the difference real?
#
# Would another 200 sentences say the same? For an idea, draw 200 *from our own*, some of them twice and some not at all, and score both searches on the same draw. A thousand draws show roughly how much the choice of sentences matters. This is the **paired bootstrap** (Koehn, 2004).

# %% tags=["active-ipynb"]
# draws = torch.randint(200, (1000, 200))
# differences = {}
# for name in ("beam of 4", "beam, α = 0.6"):
#     differences[name] = [
#         bleu_of(tables[name][draw].sum(dim=0))
#         - bleu_of(tables["greedy"][draw].sum(dim=0))
#         for draw in draws
#     ]
# views.bootstrap(differences)

# %% [markdown]
# *Each heap is a search minus greedy search on a thousand draws: the heap is red (worse) where the black bar, the middle 95%, is clear of zero, and grey where it is not.*
#
# The plain beam's harm is probably real, though the bar ends close to zero. With the penalty we cannot tell. On all 1,000 sentences greedy search has 89.6, the plain beam 88.3, and the beam with the penalty 89.3 ([evidence 15.4](evidence/15_decoding.ipynb)).

# %% [markdown]
# ## How should one ask?
#
# The lady was an exception. Of the 1,000 ordinary test sentences, to which hers belongs, a beam of four repairs three and spoils two ([evidence 15.4](evidence/15_decoding.ipynb)).
#
# What about sentences that people wrote? There are larger models for them: the translator of everyday sentences of [chapter 16](16_translation.ipynb), and one for captions of photographs ([evidence 16.1](evidence/16_translation.ipynb)). We read from records what a beam of four gains over greedy search with several α. Which α would you choose?

# %% tags=["active-ipynb"]
# def gains(record):
#     """{α: BLEU of a beam of 4, minus that of greedy search}"""
#     score = {}
#     for row in read_rows(record):
#         score[row["beam"], row["alpha"]] = row["validation.bleu"]
#     return {a: score[4, a] - score[1, 0.0] for K, a in sorted(score) if K == 4}
#
#
# # Multi30k is the corpus of the captions
# everyday, captions = gains("tatoeba-alpha"), gains("multi30k-alpha")
# views.gains({"everyday sentences": everyday, "captions": captions})

# %% [markdown]
# *With α from 0.6 to 1.6 both models gain from the beam; a larger α pushes them over a cliff, the everyday sentences first.*
#
# So ask as the paper does: keep four beginnings, and divide by the penalty with $\alpha = 0.6$. On both kinds of sentences this is a little better than greedy search, and the cliff is far away. An α of 1.2 gains a little more on both, but for some trainings the cliff comes sooner ([evidence 16](evidence/16_translation.ipynb)). On everyday sentences the gain is more than luck ([evidence 15.5](evidence/15_decoding.ipynb)); for the captions' 0.2 we did not test that.
#
# At the cliff outputs run on ([evidence 15.1](evidence/15_decoding.ipynb)). So if you tune α, use validation sentences as long as those to come, and stop where outputs become longer than their references.

# %% [markdown]
# ## What does our search compute twice?
#
# For the 200 sentences we took the package's search, because ours is slow. To choose the tenth token, it pushes nine old positions through the decoder again. Nothing about them has changed: the causal mask of [chapter 4](04_attention.ipynb) forbids them to look ahead. All that a new position wants of the old ones is their keys and values. So nearly every program keeps these in a **key-value cache**. Here is one head that writes five positions:

# %% tags=["active-ipynb"]
# W_Q, W_K, W_V = torch.randn(3, 8, 8)
# vectors = torch.randn(5, 8)  # what five positions hold
# keys, values, one_by_one = [], [], []
# for x in vectors:  # a step sees one new position
#     keys.append(x @ W_K)  # computed once, and kept
#     values.append(x @ W_V)
#     scores = torch.stack(keys) @ (x @ W_Q) / math.sqrt(8)
#     one_by_one.append(scores.softmax(dim=0) @ torch.stack(values))
#
# at_once, _ = attention(vectors @ W_Q, vectors @ W_K, vectors @ W_V, causal_mask(5))
# torch.testing.assert_close(torch.stack(one_by_one), at_once)
# print("one position at a time gives what causal attention gives at once")
# views.cache(pieces(greedy))

# %% [markdown]
# *Each row is a step, and a filled square is a position that passes through the decoder in this step: without a cache the red ones pass again, and with one their keys and values are looked up.*

# %% [markdown]
# ## What to keep
#
# - A model only says how likely each next token is. A search makes a sentence of that, and a beam rescues good sentences whose beginnings look weak.
# - Every token costs probability, so searches favour short outputs, and dividing by a length penalty makes up for it. A likelier output is still not always a better one.
# - BLEU counts shared runs of words, and a difference between two systems means little until you know what luck alone could do.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** In a tiny model the first word is "der" with 0.6 or "die" with 0.4. After "der" comes "alte" with 0.4, "Hund" with 0.3, or one of many rare words; after "die" comes "Katze" with 0.9 or "alte" with 0.1. Then the output ends, with 0.9 after "der Hund", 0.4 after "die Katze", and 0.1 after the other two. Leave the rare words out. Which output is the likeliest, without a penalty? Which does greedy search find, which a beam of two, and which a beam of three?
#
# <details><summary>Answer</summary>
#
# "der alte" has 0.6 · 0.4 = 0.24, "der Hund" 0.18, "die Katze" 0.36 and "die alte" 0.04. With their ends they have 0.024, 0.162, 0.144 and 0.004, so "der Hund" is the likeliest output. Greedy search takes "der alte". A beam of two keeps "die Katze" and "der alte", and finds "die Katze". Only a beam of three keeps "der Hund" as well: a beam is no guarantee.
# </details>
#
# **2. In code.** A search can get caught in a circle. So many programs forbid repeating a run of $n$ tokens. Write the function that says which tokens are forbidden next: with $n = 3$ and the output 5 6 7 8 5 6, for example, 7 is forbidden, because 5 6 7 has been there. The cell uses it in greedy search, for a sentence about museums beside shops, whose output otherwise goes in a circle. Does it end now? Is it right?

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.decoding import check_forbidden
#
#
# def forbidden(tokens, n):
#     """ids so far, length of a run -> the set of ids that would repeat a run"""
#     ...
#
#
# check_forbidden(forbidden)
#
#
# @torch.no_grad()
# def without_repeats(source, n):
#     output = [BEGIN]
#     while output[-1] != END and len(output) <= source.shape[1] + 50:
#         log_probs = next_log_probs(model, source, torch.tensor([output]))[0]
#         log_probs[list(forbidden(output, n) or [])] = -math.inf
#         output.append(log_probs.argmax().item())
#     return tokenizer.decode(output)
#
#
# shops = (
#     "This friend in the taxi sent her his difficult newspaper, but the interesting "
#     "white museums beside the shops discussed their question before the journey."
# )
# print(without_repeats(read(shops), n=3))

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def forbidden(tokens, n):
#     end = tokens[len(tokens) - n + 1 :]
#     found = set()
#     for start in range(len(tokens) - n + 1):
#         if tokens[start : start + n - 1] == end:
#             found.add(tokens[start + n - 1])
#     return found
# ```
#
# The circle *neben den Läden neben den Läden* (beside the shops beside the shops) is gone. The output now ends, with *besprachen die Läden neben den Lädern* ("discussed the shops beside the", and *Lädern* is no word). It is not right. A search that is kept from one mistake makes the next likeliest.
# </details>
#
# **3. To think about.** Suppose that a model gives every token of every sentence exactly the right probability. Would you want the likeliest output from it? Think of a coin that shows heads with 0.6, tossed a hundred times.
#
# <details><summary>Answer</summary>
#
# The likeliest sequence is a hundred heads, and you will never see it. What you will see has about sixty. Each single such sequence is less likely than a hundred heads; there are only very many of them. The likeliest output of a good model may be just as odd. For a translation, where few outputs are right, search works well. For a story, where millions are, programs draw at random instead ([chapter 21](21_language.ipynb)).
# </details>
#
# **Next.** [Chapter 16](16_translation.ipynb) trains a model, searches with it and scores it, on real sentences.
