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
# from collections import Counter
# from statistics import fmean
#
# from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
#
# import transformer
# from transformer import bleu, load, translate_n_best, views
# from transformer.attention import attention, causal_mask
# from transformer.core.analysis import drawn_bleu
# from transformer.core.records import read_rows, under
# from transformer.corpora import read_bundled
# from transformer.views.evidence import markdown_table
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # the models below are too small to share between cores

# %% [markdown]
# ## A model says one token at a time
#
# The model has learned one thing: given a source and the beginning of a translation, how likely is each token to come next? A translation needs many tokens, so somebody has to choose. The choosing is called **decoding**, and no weight of the model changes in it.
#
# The simplest choice is the likeliest token. Take it, append it, and ask again until the end mark comes. This is **greedy search**.
#
# We work with logarithms, because they add where probabilities multiply: ½ · ¼ = ⅛, and −0.69 − 1.39 = −2.08. (The unit is the **nat**.) `source` is a batch of sentences, and like the paper we let an output be at most 50 tokens longer than its source.


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
        best[done] = c.pad_id  # who is done waits for the others
        outputs = torch.cat([outputs, best[:, None]], dim=1)
        done |= (best == c.eos_id) | (outputs.shape[1] > limit)
    return [tokens[tokens != c.pad_id].tolist() for tokens in outputs[:, 1:]]


# %% [markdown]
# Here is its output, and over each piece how sure the model was of it:

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
#     scores = model(source, torch.tensor([[BEGIN, *tokens[:-1]]]))[0]
#     return scores.log_softmax(dim=-1)[range(len(tokens)), tokens].tolist()
#
#
# source = read("Did a lady bathe gladly before the boring meeting?")
# greedy = greedy_search(model, source)[0]
# log_ps = log_p_of(source, greedy)
# print(f"P = {math.exp(sum(log_ps)):.4f}")
# views.sure(pieces(greedy), log_ps)

# %% [markdown]
# *The two red bars show the accident: after "B" no piece is likely, greedy search takes the best of a bad lot, and it can never go back.*
#
# Where the model is sure it says 0.9 and not 1, because the label smoothing of [chapter 13](13_regularization.ipynb) asked for no more.
#
# The probability of the whole output is the product of all these numbers. A second token that is a little less likely might lead to a better product. What would you try?

# %% [markdown]
# ## Keep several beginnings alive
#
# We cannot try every sentence: with 3,500 tokens to choose from, there are twelve million beginnings of two tokens. But we can keep more than one beginning. At each step, extend each of them by every token, and of all these extensions keep the best $K$. This is **beam search**. What is written so far is called a **hypothesis**, and the hypotheses that are kept are the **beam**. With $K = 1$ it is greedy search; the paper keeps 4.
#
# On paper first, with $K = 2$: the beginning "a" has 0.5 and "b" has 0.4. After "a" the likeliest tokens have 0.3 and 0.3, after "b" 0.9 and 0.1. The four extensions have 0.15, 0.15, 0.36 and 0.04. So "b" and its first extension take the lead.
#
# Below is that step for any beginnings.


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
        best = row.topk(min(K + 1, len(row)))  # one more: one may be the end
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
# *Blue beginnings are kept, and a thick frame marks the best of each step: "B ad" leads after two steps, but "B ade te" overtakes it. (In a running notebook or on the web page: move $K$ to 1, and the right answer dies at step 2.)*
#
# Follow the numbers, which are those of the whole beginning. "B ad" has 7.3%, and "B ade" only 4.7%. But *te* follows "ade" almost surely, while *et* follows "ad" in a third of cases, and so the order turns round. Greedy search had dropped the winner one step too early.

# %% [markdown]
# ## When is a search over?
#
# Two things are missing. What becomes of a hypothesis that ends? It leaves the beam and waits in a list, and the next best beginning takes its place. And when may we stop? One more token can only lower $\log P$. So once the best beginning alive is below the best finished output, nothing can overtake that output any more.
#
# We try this search on the lady, and then on a longer sentence: *The happy niece paints our brave brown cow in front of the museum although the rich clubs beside the hospital do not build their theatre.* What will it make of this one?

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def first_search(source, K=4):
#     alive, finished = [(0.0, [BEGIN])], []
#     while not finished or alive[0] > max(finished):
#         longer = extensions(model, source[0], alive, K)
#         finished += [pair for pair in longer[:K] if pair[1][-1] == END]
#         alive = [pair for pair in longer if pair[1][-1] != END][:K]
#     return max(finished)[1][1:]  # the tokens without the begin mark
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
# The lady has her *Badete*. But *Die glückliche Nichte?* means "The happy niece?", and then nothing more comes.
#
# ## Why does the beam fall silent?
#
# Is there a bug? The package's beam search, which has a remedy, finds a whole sentence. The picture shows how $\log P$ falls while this output and the stump grow.

# %% tags=["active-ipynb"]
# whole = transformer.beam_search(model, long)[0][0].tokens
# print(tokenizer.decode(whole))
# outputs = {"the stump": stump, "the whole sentence": whole}
# costs = {name: log_p_of(long, tokens) for name, tokens in outputs.items()}
# views.falling({name: (pieces(outputs[name]), costs[name]) for name in outputs})

# %% [markdown]
# *The stump pays once, 6.7 nats for its question mark, and is done; the whole sentence goes on paying, and ends lower.*
#
# So there is no bug. The model really finds the stump likelier.
#
# Every further token costs something. Even where the model is sure it pays a tenth of a nat, since it says 0.9 and not 1, and each word is one more place to stumble. Here it stumbles twice, at *Krankenhäusern* (hospitals) and at *baut* (builds), and rightly so: both words are wrong. A long output has more of all this behind it than a short one.

# %% [markdown]
# ## Divide by the length
#
# Google's earlier translator GNMT (Wu et al., 2016) therefore divides $\log P$ by a **length penalty**, and the paper takes this over with $\alpha = 0.6$. For an output $Y$ of $|Y|$ tokens and a source $X$:
#
# $$\mathrm{score}(Y) = \frac{\log P(Y \mid X)}{lp(Y)}, \qquad lp(Y) = \left(\frac{5 + |Y|}{6}\right)^{\alpha}$$
#
# Dividing a negative number by more brings it closer to zero, so longer outputs gain. By hand: the stump has 5 tokens and gets −7.0 / 1.36 = −5.2, and the whole sentence has 28 and gets −9.6 / 2.78 = −3.5. Now it wins. (With $\alpha = 0$ the divisor is always 1.)
#
# When may the search stop now? A further token still lowers $\log P$, but it raises the divisor, too, at most to that of the longest output allowed. Say that the best beginning alive has −4, and that largest divisor is 2. It can never score above −2. If a finished output has −1.9, the search is over.


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
# The rest is the first search, for one sentence of a batch after another.


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
    rows = [row[row != model.config.pad_id] for row in source]
    return [
        search_one(model, row, beam, alpha, len(row) + extra, n_best) for row in rows
    ]


# %% tags=["active-ipynb"]
# for hypothesis in beam_search(model, source, n_best=3)[0]:
#     print(f"{hypothesis.score:.2f}  {tokenizer.decode(hypothesis.tokens)}")
# assert beam_search(model, source, beam=1, alpha=0.0)[0][0].tokens == greedy
# assert beam_search(model, long)[0][0].tokens == whole

# %% [markdown]
# The lady's right sentence comes first, the greedy one second; the third says *brachte*, "brought". ([Evidence 15.6](evidence/15_decoding.ipynb) says how the search is tested.)
#
# The niece gets her whole sentence, too. It is not right, for the theatre is missing: a search can only choose among what a model offers.

# %% [markdown]
# ## How good is a translation?
#
# A beam rescued the lady, and made a stump of the niece. Which is more common? To say so for hundreds of sentences we need a grade that a machine can give. **BLEU** (Papineni et al., 2002) compares an output with a **reference**, which a person wrote. It counts the runs of one to four words (**n-grams**) of the output that are in the reference, too.
#
# Take a pencil: the output is "the red red fox jumps over the sleeping dog", and the reference "the quick red fox jumps over the very lazy dog". How many single words of the output would you count, and how many pairs?

# %% tags=["active-ipynb"]
# translation = "the red red fox jumps over the sleeping dog"
# reference = "the quick red fox jumps over the very lazy dog"
# views.bleu_runs(translation, reference)

# %% [markdown]
# *A blue run is in the reference, a red one is not: the second "red" earns nothing, because the reference has a single "red" to give.*
#
# The four shares are the **precisions** $p_1$ to $p_4$: 7/9, 4/8, 3/7 and 2/6. Their geometric mean is 0.485. But an output of a few safe words would have high precisions, so the **brevity penalty** $BP$ punishes an output whose $c$ words are fewer than the reference's $r$. Ours has 9 of 10, so $BP = e^{1 - 10/9} = 0.895$, and together that is 43.4.
#
# $$\mathrm{BLEU} = 100 \cdot BP \cdot \left(p_1 p_2 p_3 p_4\right)^{1/4}, \qquad BP = \min\left(1, e^{1 - r/c}\right)$$
#
# For many sentences all counts are summed first, and only then divided. So the code keeps ten counts of each sentence.

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
# Is "dog." one word or two? The program **sacreBLEU** (Post, 2018) settles such questions, so name it where you report a score ([evidence 15.3](evidence/15_decoding.ipynb)). Scores stay far from 100, because the reference is only one of many good translations: the paper's best are 28.4 for German and 41.8 for French.

# %% [markdown]
# ## Is likelier better?
#
# The niece is from a test set of hard sentences, which are longer or combine words and constructions as training never did. We translate 200 of them in three ways: greedily, with a beam of four, and with that beam and the penalty. The last column of the table is from a record: the same three searches of a larger model, on 2,000 everyday sentences by volunteers ([chapter 16](16_translation.ipynb)).
#
# A beam finds likelier outputs than greedy search. Which way will BLEU go?

# %% tags=["active-ipynb"]
# hard = random.Random(0).sample(read_bundled("hard"), 200)
# sources = [example.source for example in hard]
# references = [example.target for example in hard]
# everyday = {(row["beam"], row["alpha"]): row for row in read_rows("searches")}
# searches = {"greedy": (1, 0.0), "beam of 4": (4, 0.0), "beam, α = 0.6": (4, 0.6)}
#
# tables, lines = {}, []
# for name, (K, alpha) in searches.items():
#     found = translate_n_best(model, tokenizer, sources, 1, K, alpha)
#     best = [outputs[0] for outputs in found]
#     # log P without the penalty; the end mark is a token, too
#     log_p = fmean(b.score * length_penalty(len(b.tokens) + 1, alpha) for b in best)
#     rows = [counts_of(output.text, right) for output, right in zip(best, references)]
#     tables[name] = torch.stack(rows)  # (200, 10)
#     short = (tables[name][:, 8] <= tables[name][:, 9] - 5).sum().item()
#     score = bleu_of(tables[name].sum(dim=0))
#     other = everyday[K, alpha]["bleu"]
#     lines.append([name, f"{log_p:.1f}", short, f"{score:.1f}", f"{other:.1f}"])
# columns = ["hard: log P", "hard: 5 words too short", "hard: BLEU", "everyday: BLEU"]
# markdown_table(["search", *columns], lines)

# %% [markdown]
# On hard sentences the beam finds likelier outputs and gets a *lower* BLEU. More of its outputs are stumps, at least five words shorter than the reference. The penalty brings most of the loss back.
#
# On everyday sentences, which are about half as long, the beam is ahead, with the penalty or without.
#
# ## Is the difference real?
#
# Would another 200 sentences say the same? We have no others, but we can draw 200 *from our own*, some of them twice and some not at all, and score both searches on the same draw. A thousand draws show what luck can do. This is the **paired bootstrap** (Koehn, 2004). (`drawn_bleu` does the same with recorded counts.)

# %% tags=["active-ipynb"]
# draws = torch.randint(200, (1000, 200))
# differences = {}
# for name in ("beam of 4", "beam, α = 0.6"):
#     differences[f"hard sentences, {name}"] = [
#         bleu_of(tables[name][draw].sum(dim=0))
#         - bleu_of(tables["greedy"][draw].sum(dim=0))
#         for draw in draws
#     ]
# drawn = {key: drawn_bleu(under(everyday[key], "counts")) for key in searches.values()}
# for name in ("beam of 4", "beam, α = 0.6"):
#     difference = drawn[searches[name]] - drawn[1, 0.0]
#     differences[f"everyday sentences, {name}"] = difference.tolist()
# views.bootstrap(differences)

# %% [markdown]
# *Each heap is a search minus greedy search on a thousand draws: where the bar, the middle 95%, is clear of zero, the heap is red (worse) or blue (better).*
#
# So the plain beam's harm is real, for this model and sentences like these, and so is its gain on everyday sentences. Of what remains with the penalty on hard ones we cannot even tell the sign.
#
# One warning: this draws *sentences* again, not trainings. The same recipe with another seed may end more than one BLEU away ([chapter 16](16_translation.ipynb)).

# %% [markdown]
# ## How should one ask?
#
# Was the lady the rule? Of the 1,000 ordinary test sentences, to which hers belongs, a beam of four repairs three, one of them hers, and spoils two ([evidence 15.4](evidence/15_decoding.ipynb)). So she was an exception. On sentences like those of its training, this model says nearly always the same however it is asked.
#
# If you have nothing to tune on, ask as the paper does: keep four beginnings, divide by the penalty with $\alpha = 0.6$, and look at the lengths of what comes back. To tune $\alpha$, use validation sentences as long as those to come, and stop well before outputs run on ([evidence 15.1](evidence/15_decoding.ipynb)).

# %% [markdown]
# ## Two tricks that cost no training
#
# **The cache.** To choose the tenth token, our code pushes nine old ones through the decoder again. Nothing about them has changed: the causal mask of [chapter 4](04_attention.ipynb) forbids them to look ahead. All that a new position wants of them is their keys and values. So nearly every program keeps these in a **key-value cache**, which the paper does not mention. Here is one head that writes five positions, one after the other:

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
# *Each row is a step, named after the token that it chooses: on the left the red squares are computed again and again, and on the right they are looked up.*
#
# **The mean of the last weights.** The last batch of a training has pulled the weights its way. So the paper saves copies of the weights, called **checkpoints**, and takes the mean of the last five, number by number, in which such pulls may cancel. In [chapter 14](14_training.ipynb)'s run the last six checkpoints get at most 81% of the test sentences right to the letter, and the mean of all six gets 88% ([evidence 14.5](evidence/14_training.ipynb)).


# %%
def average_checkpoints(checkpoints: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several {name: weights}, parameter by parameter (Section 6.1)."""
    average = {}
    for name in checkpoints[0]:
        weights = torch.stack([checkpoint[name] for checkpoint in checkpoints])
        average[name] = weights.mean(dim=0)
    return average


# %% [markdown]
# ## What to keep
#
# - A model only says how likely each next token is. A search makes a sentence of that, and a beam rescues good sentences whose beginnings look weak.
# - Every token costs probability, so searches favour short outputs, and dividing by a length penalty makes up for it. A likelier output is still not always a better one.
# - BLEU counts shared runs of words, and a difference between two systems means little until you know what luck alone could do.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A tiny model knows four outputs of two words. The first word is "der" with 0.6 or "die" with 0.4. After "der" comes "alte" with 0.4 or "Hund" with 0.3; after "die" comes "Katze" with 0.9 or "alte" with 0.1. Then the output may end: "der Hund" with 0.9, "die Katze" with 0.4, the other two with 0.1. Which output is the likeliest, without a penalty? Which does greedy search find, which a beam of two, and which a beam of three?
#
# <details><summary>Answer</summary>
#
# "der alte" has 0.6 · 0.4 = 0.24, "der Hund" 0.18, "die Katze" 0.36 and "die alte" 0.04. With their ends they have 0.024, 0.162, 0.144 and 0.004, so "der Hund" is the likeliest output. Greedy search takes "der alte". A beam of two keeps "die Katze" and "der alte", and finds "die Katze". Only a beam of three keeps "der Hund" as well: a beam is no guarantee.
# </details>
#
# **2. In code.** A search can get caught in a circle. Many programs therefore forbid an output to repeat a run of $n$ tokens. Write the function that says which tokens are forbidden next: with $n = 3$ and the output 5 6 7 8 5 6, for example, 7 is forbidden, because 5 6 7 has been there. The second cell runs greedy search with it. What becomes of the museums beside the shops?

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
# The circle *neben den Läden neben den Läden* (beside the shops beside the shops) is gone, and the output ends. It is still wrong: a search that is kept from one mistake makes the next likeliest.
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
