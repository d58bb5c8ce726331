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
# *Section 6.1 of the paper. Reading takes about 30 minutes, running half a minute.*
#
# *Did a lady bathe gladly before the boring meeting?* A trained model puts this into German: *Badet eine Dame vor der langweiligen Sitzung gern?* Every word is right except the first. *Badet* means "bathes", but the question is about the past, and that would be *Badete*.
#
# Does the model know no better? It does. If you show it both sentences, it calls the right one almost twice as likely as the one that it wrote. We asked it badly. How should one ask?

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
# import time
# from collections import Counter
# from itertools import product
# from statistics import fmean
#
# from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
#
# import transformer
# from transformer import (
#     Transformer,
#     TransformerConfig,
#     bleu,
#     load,
#     translate_n_best,
#     views,
# )
# from transformer.attention import attention, causal_mask
# from transformer.core.records import read_rows
# from transformer.corpora import read_bundled
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # the models below are too small to share between cores

# %% [markdown]
# ## A model says one token at a time
#
# The model has learned one thing: given a source and the beginning of a translation, how likely is each token to come next? (A token is a word or a piece of one, as in [chapter 10](10_data.ipynb).) A translation needs many tokens, so somebody has to choose. The choosing is called **decoding**, and no weight of the model changes in it.
#
# For every position the model gives a score to each token. We want the scores at the last position, and softmax turns them into probabilities. We work with the logarithms of these. Where probabilities of several tokens are multiplied, their logarithms are added: two tokens with ½ and ¼ together have ⅛, and −0.69 − 1.39 = −2.08. The unit is called a **nat**. Padding is no word, so it is ruled out.


# %%
def next_log_probs(model: nn.Module, source: Tensor, outputs: Tensor) -> Tensor:
    """log P(next token) in nats: sources (k, S), outputs so far (k, T) -> (k, V).

    Padding is no token: -inf.
    """
    log_probs = model(source, outputs)[:, -1].log_softmax(dim=-1)
    log_probs[:, model.config.pad_id] = -torch.inf
    return log_probs


# %% [markdown]
# The simplest choice is the likeliest token. Take it, append it, and ask again until the end mark comes. This is **greedy search**. As everywhere in this book, `source` is a batch: its sentences step together, and a sentence that is done gets padding until the last one is. Like the paper, we let an output be at most 50 tokens longer than its source.


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


# %% [markdown]
# Here is what it makes of our sentence. Over each piece of the output we write how sure the model was of it.

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
# def log_p_of(model, source, tokens):
#     """log P of each token of an output, given those before it: a list."""
#     scores = model(source, torch.tensor([[BEGIN, *tokens[:-1]]]))[0]
#     return scores.log_softmax(dim=-1)[range(len(tokens)), tokens].tolist()
#
#
# source = read("Did a lady bathe gladly before the boring meeting?")
# greedy = greedy_search(model, source)[0]
# log_ps = log_p_of(model, source, greedy)
# print(f"P = {math.exp(sum(log_ps)):.4f}")
# after_B = next_log_probs(model, source, torch.tensor([[BEGIN, greedy[0]]]))[0].exp()
# rare = after_B[after_B < 0.001]
# print(f"after B: {rare.sum():.0%} for {len(rare):,} pieces of less than 0.1% each")
# views.sure(pieces(greedy), log_ps)

# %% [markdown]
# *The two red bars show the accident: after "B" no piece is likely, greedy search takes the best of a bad lot, and it can never go back.*
#
# Where the model is sure it says 0.9 and not 1. That is our own doing: the label smoothing of [chapter 13](13_regularization.ipynb) asked for no more. After "B" the model is at a loss. Its favourite has 0.08, and more than half of the probability is spread thinly over thousands of other pieces.
#
# The probability of the whole output is the product of all these numbers. A second token that is a little less likely might lead to a better product. What would you try?

# %% [markdown]
# ## Keep several beginnings alive
#
# We cannot try every sentence. With 3,500 tokens to choose from there are twelve million beginnings of two tokens, and our short output has twelve tokens. But we can keep more than one beginning. At each step, extend each of them by every token, and of all these extensions keep the best $K$. This is **beam search**. What is written so far is called a **hypothesis**, and the hypotheses that are kept are the **beam**. With $K = 1$ it is greedy search; the paper keeps 4.
#
# On paper first, with two beginnings, $K = 2$: "a" has 0.5 and "b" has 0.4. After "a" the likeliest tokens have 0.3 and 0.3, after "b" 0.9 and 0.1. The four extensions have 0.15, 0.15, 0.36 and 0.04. So "b" and its first extension takes the lead, although "a" was ahead.
#
# Below is that step for any beginnings. Of each beginning it looks at the best $K + 1$ tokens only: $K$ with which it may go on, and perhaps the end mark.


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
        best = row.topk(min(K + 1, len(row)))
        for more, token in zip(best.values.tolist(), best.indices.tolist()):
            if more > -torch.inf:
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
# *Blue beginnings are kept, and a thick frame marks the best of each step: "B ad" leads after two steps, but "B ade te" overtakes it. (In a running notebook or on the web page: move $K$ to 1, and the right answer dies at step 2.)*
#
# Follow the numbers, which are those of the whole beginning. "B ad" has 7.3%, and "B ade" only 4.7%. But *te* follows "ade" almost surely, while *et* follows "ad" in a third of cases, and so the order turns round. Greedy search had dropped the winner one step too early. (A blue box from which no line goes on was kept for one step, and then the extensions of the other beginning pushed it out.)

# %% [markdown]
# ## A first search, and a strange answer
#
# Two things are missing. What becomes of a hypothesis that ends? It leaves the beam and waits in a list, and the next best beginning takes its place. And when may we stop? One more token can only lower $\log P$. So once the best beginning alive is below the best finished output, nothing can overtake that output any more.

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def first_search(source, K=4):
#     alive, finished = [(0.0, [BEGIN])], []
#     while not finished or alive[0] > max(finished):
#         longer = extensions(model, source[0], alive, K)
#         finished += [pair for pair in longer[:K] if pair[1][-1] == END]
#         alive = [pair for pair in longer if pair[1][-1] != END][:K]
#     log_p, tokens = max(finished)
#     return log_p, tokens[1:]  # without the begin mark
#
#
# log_p, tokens = first_search(source)
# print(f"P = {math.exp(log_p):.4f}  {tokenizer.decode(tokens)}")

# %% [markdown]
# The lady has her *Badete*. Encouraged, we try a longer sentence: *The happy niece paints our brave brown cow in front of the museum although the rich clubs beside the hospital do not build their theatre.* What will the two searches make of it?

# %% tags=["active-ipynb"]
# long = read(
#     "The happy niece paints our brave brown cow in front of the museum although "
#     "the rich clubs beside the hospital do not build their theatre."
# )
# stump = first_search(long)[1]
# print("greedy:", tokenizer.decode(greedy_search(model, long)[0]))
# print("beam:  ", tokenizer.decode(stump))

# %% [markdown]
# Greedy search begins well and loses its way at the hospital. The beam says *Die glückliche Nichte?*, "The happy niece?", and falls silent. Is there a bug in it?
#
# ## Why does breaking off pay?
#
# Let us ask the model itself. The package has a beam search, too, and that one answers with a whole sentence. How likely does the model find that sentence, how likely the stump, and how likely the right translation, which the corpus has?

# %% tags=["active-ipynb"]
# whole = transformer.beam_search(model, long)[0][0].tokens
# print("the package's:", tokenizer.decode(whole))
# right = [
#     *tokenizer.encode(
#         "Die glückliche Nichte malt unsere mutige braune Kuh vor dem Museum, obwohl "
#         "die reichen Vereine neben dem Krankenhaus ihr Theater nicht bauen."
#     ),
#     END,
# ]
# outputs = {"the stump": stump, "the whole sentence": whole, "the right one": right}
# costs = {name: log_p_of(model, long, tokens) for name, tokens in outputs.items()}
# print(f"the right translation: log P = {sum(costs['the right one']):.1f}")
# shown = ("the stump", "the whole sentence")
# views.falling({name: (pieces(outputs[name]), costs[name]) for name in shown})

# %% [markdown]
# *The stump pays once, 6.7 nats for its question mark, and is done; the whole sentence goes on paying, and ends lower.*
#
# So there is no bug. The search did what we asked, and the model really finds the stump likelier. The right translation is far below both, and no search for likely outputs would ever return it.
#
# Where do the whole sentence's nats go? Two steps cost 5.7 together: "Krankenh" begins *Krankenhäusern* (hospitals) and "b" begins *baut* (builds), and the model is right to hesitate, because both words are wrong. Each further word is one more place where it can stumble. Most of the other steps cost about a tenth. This is a toll on every token, and it comes from label smoothing, for $-\ln 0.9 = 0.105$. Smoothing also keeps the way out open. It asks the model to keep 0.1/3,500 for every token in every place, so for the question mark and the end mark as well. A step of that probability costs 10.5 nats, and the stump needed even less. Smoothing is not the whole story: a model of captions that was trained without it writes 3% fewer words with a beam of four than greedily ([evidence 15.1](evidence/15_decoding.ipynb)).
#
# Whatever the cause, $\log P$ compares unequal things: a long output has paid more tolls and had more places to stumble than a short one. Google's earlier translator GNMT (Wu et al., 2016) therefore divides it by a **length penalty**, and the paper takes this over with $\alpha = 0.6$. For an output $Y$ of $|Y|$ tokens and a source $X$:
#
# $$\mathrm{score}(Y) = \frac{\log P(Y \mid X)}{lp(Y)}, \qquad lp(Y) = \left(\frac{5 + |Y|}{6}\right)^{\alpha}$$
#
# Dividing a negative number by more brings it closer to zero, so longer outputs gain. The 5 and the 6 are GNMT's choice: an output of one token is divided by 1, and the divisor grows slowly from there. With $\alpha = 0$ it is always 1.


# %%
def length_penalty(length: float | Tensor, alpha: float = 0.6) -> float | Tensor:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al., 2016); |Y| counts the end mark."""
    return ((5 + length) / 6) ** alpha


# %% tags=["active-ipynb"]
# for name in shown:
#     log_p, lp = sum(costs[name]), length_penalty(len(costs[name]))
#     print(f"{name}: {log_p:.1f} / {lp:.2f} = {log_p / lp:.1f}")

# %% [markdown]
# Now the whole sentence wins. It is complete, though not right: it says that the clubs do not build "beside the hospitals", and the theatre is missing. A search can only choose among what a model offers.
#
# ## The whole search
#
# With the penalty, when may the search stop? A further token still lowers $\log P$. But it also raises the divisor, at most to that of the longest output allowed. Say that the best hypothesis alive has $\log P = -4$, and the largest penalty is 2. Whatever becomes of it, it cannot score above $-2$. If a finished output has $-1.9$, the search is over.


# %%
@dataclass(frozen=True)
class Hypothesis:
    """A finished output: tokens, with the end mark where there was room for it, and
    log P(Y | X) / lp(Y) in nats."""

    tokens: list[int]
    score: float


def can_improve(
    alive: list, finished: list[Hypothesis], n_best: int, limit: int, alpha: float
) -> bool:
    """Can the best live hypothesis still become one of the n_best?"""
    at_best = alive[0][0] / length_penalty(limit, alpha)
    return len(finished) < n_best or at_best > finished[-1].score


# %% [markdown]
# The rest is the first search, with scores instead of plain $\log P$. A hypothesis that ends still leaves the beam, provided that it was among the $K$ best of its step. (**The paper does not say** what becomes of it; in some programs it keeps its place in the beam.) A hypothesis that has reached the longest length allowed counts as finished, too.


# %%
def search_one(
    model: nn.Module, sentence: Tensor, beam: int, alpha: float, limit: int, n_best: int
) -> list[Hypothesis]:
    """`beam_search` of one sentence (S,), for outputs of at most `limit` tokens."""
    eos_id = model.config.eos_id
    alive, finished = [(0.0, [model.config.bos_id])], []
    while alive and can_improve(alive, finished, n_best, limit, alpha):
        longer = extensions(model, sentence, alive, beam)
        alive = []
        for rank, (log_p, tokens) in enumerate(longer):
            length = len(tokens) - 1  # without the begin mark
            if tokens[-1] != eos_id and length < limit:
                alive.append((log_p, tokens))
            elif rank < beam:
                score = log_p / length_penalty(length, alpha)
                finished.append(Hypothesis(tokens[1:], score))
        alive = alive[:beam]
        finished = sorted(finished, key=lambda h: h.score, reverse=True)[:n_best]
    return finished


# %% [markdown]
# A batch is searched one sentence after another, each without its padding:


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
    model.eval()
    sentences = [row[row != model.config.pad_id] for row in source]
    return [
        search_one(model, sentence, beam, alpha, len(sentence) + extra, n_best)
        for sentence in sentences
    ]


# %% tags=["active-ipynb"]
# for hypothesis in beam_search(model, source, n_best=3)[0]:
#     print(f"{hypothesis.score:.2f}  {tokenizer.decode(hypothesis.tokens)}")

# %% [markdown]
# The right sentence comes first, the greedy one second. The third has a wrong verb: *brachte* means "brought". All three are alike but for one word, and that is usual: the hypotheses of a beam are often near copies.
#
# Is the code right? A beam so wide that it drops nothing tries *everything*, and in a small enough world we can do that by force. Take a random model with four tokens, one of which is the end mark, and let it write at most four of them. How many outputs are there? One that ends at once, 3 that end after one other token, 9 after two, and 27 beginnings of three tokens with any of four behind them: 1 + 3 + 9 + 108 = 121. Does the beam find the best ten of these, whatever the penalty?

# %% tags=["active-ipynb"]
# tiny = Transformer(TransformerConfig(5, d_model=16, d_ff=32, N=1, h=2)).eval()
# ids = torch.tensor([[3, END]])
# everything = [[END]]
# for n in (1, 2):
#     everything += [[*tokens, END] for tokens in product([1, 3, 4], repeat=n)]
# for tokens in product([1, 3, 4], repeat=3):
#     everything += [[*tokens, last] for last in (1, END, 3, 4)]
#
#
# def score_of(tokens, alpha):
#     return sum(log_p_of(tiny, ids, tokens)) / length_penalty(len(tokens), alpha)
#
#
# for alpha in (0.0, 0.6, 3.0):
#     by_force = sorted(everything, key=lambda tokens: -score_of(tokens, alpha))
#     ten = beam_search(tiny, ids, beam=130, alpha=alpha, extra=2, n_best=10)[0]
#     assert [hypothesis.tokens for hypothesis in ten] == by_force[:10]
# assert beam_search(model, source, beam=1, alpha=0.0)[0][0].tokens == greedy
# assert beam_search(model, long)[0][0].tokens == whole
# print(f"a wide beam finds the best ten of all {len(everything)} outputs")

# %% [markdown]
# A beam so wide never drops anything. That narrow beams drop the right hypotheses is checked against a second search, written independently ([evidence 15.6](evidence/15_decoding.ipynb)).
#
# ## Do not compute what you have
#
# The search is right, and slow. To choose the tenth token, our code pushes the begin mark and nine tokens through the decoder, although it had pushed all but the last of them through at the step before. Nothing about them has changed: the causal mask of [chapter 4](04_attention.ipynb) forbids them to look ahead. All that a new position wants of the old ones is their keys and values. So keep these. Here is one head that writes five positions, one after the other:

# %% tags=["active-ipynb"]
# W_Q, W_K, W_V = torch.randn(3, 8, 8)
# vectors = torch.randn(5, 8)  # what five positions hold
#
# keys, values, one_by_one = [], [], []
# for x in vectors:  # a step sees one new position
#     keys.append(x @ W_K)  # computed once, and kept
#     values.append(x @ W_V)
#     scores = torch.stack(keys) @ (x @ W_Q) / math.sqrt(8)
#     one_by_one.append(scores.softmax(dim=0) @ torch.stack(values))
#
# Q, K, V = vectors @ W_Q, vectors @ W_K, vectors @ W_V
# at_once, _ = attention(Q, K, V, causal_mask(5))
# torch.testing.assert_close(torch.stack(one_by_one), at_once)
# print("one position at a time gives what causal attention gives at once")

# %% [markdown]
# Such a store is a **key-value cache**. The paper does not mention it, and nearly every program has one, in every layer. For our twelve tokens it saves this much:

# %% tags=["active-ipynb"]
# views.cache(pieces(greedy))

# %% [markdown]
# *Each row is a step and is named after the token that it chooses: on the left the red squares are computed again and again, and on the right they are looked up.*
#
# In a beam the rows of the cache follow the tree. Where a hypothesis goes on in two ways its row is copied, and where it dies the row is dropped. The package's searches do this. (They save in other places, too.) On eight long sentences, do both searches find the same, and how long do they take?

# %% tags=["active-ipynb"]
# texts = sorted((example.source for example in read_bundled("test")), key=len)[-8:]
# start = time.perf_counter()
# ours = [beam_search(model, read(text))[0][0].tokens for text in texts]
# middle = time.perf_counter()
# cached = [transformer.beam_search(model, read(text))[0][0].tokens for text in texts]
# end = time.perf_counter()
# assert ours == cached
# print(
#     f"the same outputs: ours {middle - start:.1f} s, the package {end - middle:.1f} s"
# )

# %% [markdown]
# ## How good is a translation?
#
# A beam rescued the lady, and made a stump of the niece. Which of the two is more common? To say so for hundreds of sentences we need a grade that a machine can give. **BLEU** (Papineni et al., 2002) compares an output with a **reference**, which a person wrote. It counts the runs of one to four words (**n-grams**) of the output that are in the reference, too. Take a pencil before you look further: how many single words of the output "the red red fox jumps over the sleeping dog" would you count, and how many pairs, if the reference is "the quick red fox jumps over the very lazy dog"?

# %% tags=["active-ipynb"]
# translation = "the red red fox jumps over the sleeping dog"
# reference = "the quick red fox jumps over the very lazy dog"
# views.bleu_runs(translation, reference)

# %% [markdown]
# *A blue run is in the reference, a red one is not: the second "red" earns nothing, because the reference has a single "red" to give.*
#
# The four shares are the **precisions** $p_1$ to $p_4$: 7/9, 4/8, 3/7 and 2/6. Their geometric mean is $(0.78 \cdot 0.5 \cdot 0.43 \cdot 0.33)^{1/4} = 0.485$. But an output of a few safe words would have high precisions, so the **brevity penalty** $BP$ punishes an output whose $c$ words are fewer than the reference's $r$. Ours has 9 of 10, so $BP = e^{1 - 10/9} = 0.895$, and together that is 43.4.
#
# $$\mathrm{BLEU} = 100 \cdot BP \cdot \left(p_1 p_2 p_3 p_4\right)^{1/4}, \qquad BP = \min\left(1, e^{1 - r/c}\right)$$
#
# For many sentences together all counts are summed first, and only then divided. So we keep ten numbers of each sentence: for each length of run how many were found and how many there are, and the two lengths.

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
# Is "dog." one word or two? The program **sacreBLEU** (Post, 2018) settles such questions, so name it where you report a score. Older ways of counting can differ by several points ([evidence 15.3](evidence/15_decoding.ipynb)). And a sentence has many good translations, of which the reference is only one. That is why scores stay far from 100: the paper's best are 28.4 for German and 41.8 for French.

# %% [markdown]
# ## Is likelier better?
#
# The niece is from a test set that is harder than all that the model has learned from. The same made-up grammar wrote it, but it combines words and constructions, and has lengths, that training never showed. We draw 200 of its sentences and search them with beams of growing width, without a penalty. A wider beam should find likelier outputs. Does BLEU rise with them? A record has the same figures for a larger model and 2,000 everyday sentences, which volunteers wrote (Tatoeba, [chapter 16](16_translation.ipynb)). Before you look: which way will the two curves go?

# %% tags=["active-ipynb"]
# hard = random.Random(0).sample(read_bundled("hard"), 200)
# sources = [example.source for example in hard]
# references = [example.target for example in hard]
#
#
# def counted(outputs):
#     rows = [counts_of(out.text, right) for out, right in zip(outputs, references)]
#     return torch.stack(rows)  # (200, 10)
#
#
# tables, points = {}, []
# for K in (1, 2, 4, 8):
#     found = translate_n_best(model, tokenizer, sources, 1, K, alpha=0.0)
#     best = [outputs[0] for outputs in found]  # without a penalty score is log P
#     table = counted(best)
#     tables[f"K = {K}"] = table
#     log_p = fmean(output.score for output in best)
#     points.append((K, log_p, bleu_of(table.sum(dim=0))))
#
# everyday = [
#     (row["beam"], row["log_p"], row["bleu"])
#     for row in read_rows("searches")
#     if row["alpha"] == 0
# ]
# everyday.sort()
# views.likelier({"200 hard sentences": points, "2,000 everyday sentences": everyday})

# %% [markdown]
# *From left to right outputs get likelier: on hard sentences BLEU falls all the way, and on everyday sentences it rises up to $K = 8$.*
#
# So likelier can be worse. On the hard sentences every step to the right costs BLEU, and greedy search, which finds the least likely outputs, has the best score. The last step, from 4 beginnings to 8, finds hardly likelier outputs and costs more than a point. In larger systems, too, wide beams have done harm (Koehn and Knowles, 2017). Is it the stumps? Count the outputs that are at least five words too short, and then search once more with the paper's penalty:

# %% tags=["active-ipynb"]
# divided = translate_n_best(model, tokenizer, sources, 1, 4, alpha=0.6)
# tables["K = 4, α = 0.6"] = counted([outputs[0] for outputs in divided])
# for name, table in tables.items():
#     c, r = table[:, 8], table[:, 9]
#     short = (c <= r - 5).sum()
#     print(f"{name}: {short} much too short, {bleu_of(table.sum(dim=0)):.1f} BLEU")

# %% [markdown]
# The wider the beam, the more stumps. With the penalty the beam of four has fewer of them, and most of the BLEU that it had lost is back. Among everyday sentences outputs get shorter, too ([evidence 15.2](evidence/15_decoding.ipynb)), and yet BLEU gains. A likely reason, which we did not test, is that everyday sentences are about half as long and so have fewer places to stumble.
#
# ## Is the difference real?
#
# Two hundred sentences are few. Would another 200 say the same? Usually there are no others, but we can draw 200 *from our own*, some of them twice and some not at all, and score both searches on the same draw. A thousand draws show what luck can do. This is the **paired bootstrap** (Koehn, 2004). It costs next to nothing, because BLEU's counts simply add up.

# %% tags=["active-ipynb"]
# draws = torch.randint(200, (1000, 200))
#
#
# def on_all_draws(table):
#     return torch.tensor([bleu_of(table[draw].sum(dim=0)) for draw in draws])
#
#
# drawn = {name: on_all_draws(table) for name, table in tables.items()}
# ends = drawn["K = 1"].quantile(torch.tensor([0.025, 0.975]))
# print(f"greedy search alone: from {ends[0]:.1f} to {ends[1]:.1f} in 95% of the draws")
# views.bootstrap(
#     {
#         "K = 4 without penalty, minus greedy": drawn["K = 4"] - drawn["K = 1"],
#         "K = 4 with α = 0.6, minus greedy": drawn["K = 4, α = 0.6"] - drawn["K = 1"],
#     }
# )

# %% [markdown]
# *The bar under each heap holds the middle 95% of the draws: above it is clear of zero, below it is not.*
#
# So the harm of a plain beam is real, for this model and sentences like these. Of what remains with the penalty we cannot even tell the sign. On the everyday sentences, the same test finds the beam's gain of three quarters of a point clear of zero ([evidence 15.5](evidence/15_decoding.ipynb)).
#
# Notice what *pairing* buys. The score of one search alone, in the printed line, wanders over five points. But a draw of hard sentences is hard for both searches, and in the difference a part of that cancels.
#
# One warning. This draws *sentences* again, not trainings. The same recipe with another seed may end more than one BLEU away ([chapter 16](16_translation.ipynb)), and no redrawn sentence will tell you.

# %% [markdown]
# ## What no search can mend
#
# The niece's right translation had $\log P = -41$. No search will find it; only a better model would. The paper has one trick for that which needs no further training. A training ends on some batch, and that batch has pulled the weights its way. Save the weights several times along the way; such a copy is a **checkpoint**. In the mean of the last few, number by number, these pulls may cancel. The paper averages the last five checkpoints of its base model and the last twenty of its big one.


# %%
def average_checkpoints(checkpoints: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several {name: weights}, parameter by parameter (Section 6.1)."""
    average = {}
    for name in checkpoints[0]:
        weights = torch.stack([checkpoint[name] for checkpoint in checkpoints])
        average[name] = weights.mean(dim=0)
    return average


# %% [markdown]
# May one do that to a network, which is anything but a straight line? Only where the copies are neighbours. Checkpoints of one training have moved a little way from each other, and each hidden unit still does the job that it did before. Two networks trained apart are no neighbours. One may keep in its first unit what the other keeps in its ninth, and then their mean is nonsense.
#
# [Chapter 14](14_training.ipynb)'s run kept its last six checkpoints. How many of 1,000 test sentences does each of them translate right to the letter, and how many does their mean?

# %% tags=["active-ipynb"]
# [run] = read_rows("bundled-run")
# steps = [100 * share for share in run["test.steps.exact"]]
# views.averaging(run["log.update"][-len(steps) :], steps, 100 * run["test.mean.exact"])

# %% [markdown]
# *A grey dot is a checkpoint: none of the six gets as many sentences right as the mean of their weights.*
#
# This is one training, whose learning rate was still high at its end. Where the rate falls to zero, little is left to average away ([chapter 16](16_translation.ipynb)).

# %% [markdown]
# ## How should one ask?
#
# Back to the lady. With a beam of four and the paper's penalty, this is how sure the model is of each piece of its answer:

# %% tags=["active-ipynb"]
# answer = beam_search(model, source)[0][0].tokens
# views.sure(pieces(answer), log_p_of(model, source, answer))

# %% [markdown]
# *Compare it with the first picture: the second piece is even less likely than the one that greedy search took, and the third pays it back.*
#
# Was she the rule? Of the 1,000 ordinary test sentences, to which hers belongs, this search changes 13 outputs. It repairs three, one of them hers, and spoils two ([evidence 15.4](evidence/15_decoding.ipynb)). So the lady was an exception, and we should say so: on sentences like those of its training, this model says the same however it is asked, right or wrong. On everyday sentences the beam earns three quarters of a point. On hard ones the beam without a penalty did harm, and with the penalty we could not tell.
#
# If you have nothing to tune on, ask as the paper does: keep four beginnings, divide by the penalty with $\alpha = 0.6$, and look at the lengths of what comes back. If you want to tune $\alpha$, do it on validation sentences as long as those to come, and stop well before outputs run on ([evidence 15.1](evidence/15_decoding.ipynb)).
#
# ## What to keep
#
# - A model only says how likely each next token is. A search makes a sentence of that, and a beam rescues good sentences whose beginnings look weak.
# - Every token costs probability, so searches favour short outputs, and dividing by a length penalty makes up for it. A likelier output is still not always a better one.
# - BLEU counts shared runs of words, and a difference between two systems means little until you know what luck alone could do.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A tiny model knows four outputs of two words. The first word is "der" with 0.6 or "die" with 0.4. After "der" comes "alte" with 0.4 or "Hund" with 0.3; after "die" comes "Katze" with 0.9 or "alte" with 0.1. Then the output may end: "der Hund" ends with 0.9, "die Katze" with 0.4, and each of the other two with 0.1. Which of the four outputs is the likeliest? Which does greedy search find, which a beam of two, and which a beam of three? (Compare plain probabilities.)
#
# <details><summary>Answer</summary>
#
# The four beginnings have 0.6 · 0.4 = 0.24 ("der alte"), 0.18 ("der Hund"), 0.36 ("die Katze") and 0.04 ("die alte"). With their ends they have 0.024, 0.162, 0.144 and 0.004, so "der Hund" is the likeliest output. Greedy search takes "der" and then "alte". A beam of two keeps "die Katze" and "der alte", and finds "die Katze". Only a beam of three keeps "der Hund" as well. So a beam is better than greed, and still no guarantee.
# </details>
#
# **2. In code.** A search can also get caught in a circle. Many programs therefore forbid an output to repeat a run of $n$ tokens. Write the function that says which tokens are forbidden next. With $n = 3$ and the output 5 6 7 8 5 6, for example, 7 is forbidden, because 5 6 7 has been there. The cell then runs greedy search with your function. What becomes of the museums beside the shops?

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

# %% tags=["active-ipynb"]
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
# The circle *neben den Läden neben den Läden* (beside the shops beside the shops) is gone, and the output ends. It is still wrong: a search that is kept from one mistake makes the next likeliest. And some sentences need a run twice, such as "with whom you have arrived" in a sentence in which two people arrive.
# </details>
#
# **3. To think about.** Suppose that a model gives every token of every sentence exactly the right probability. Would you want the likeliest output from it? Think of a coin that shows heads with 0.6, tossed a hundred times.
#
# <details><summary>Answer</summary>
#
# The likeliest sequence is a hundred heads, and you will never see it. What you will see has about sixty heads. Each single such sequence is less likely than a hundred heads; there are only very many of them. The likeliest output of a good model may be just as odd: short, or repeating itself. For a translation, where few outputs are right, search works well. For a story, where millions are, programs draw at random instead ([chapter 21](21_language.ipynb)).
# </details>
#
# **Next.** We can train a model, search with it and score it. [Chapter 16](16_translation.ipynb) does all three on real sentences.
