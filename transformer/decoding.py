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
# *Section 6.1 of the paper. Reading takes about 30 minutes, running a quarter of a minute.*
#
# *Did a lady bathe gladly before the boring meeting?* A trained model puts this into German: *Badet eine Dame vor der langweiligen Sitzung gern?* Every word is right except the first. *Badet* means "bathes", but the question is about the past, and that would be *Badete*.
#
# Does the model not know? It does. If you show it both sentences, it calls the right one almost twice as likely as the one that it wrote. We asked it badly. How should one ask?

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
# import itertools
# import math
# from collections import Counter
#
# from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
#
# import transformer
# from transformer import Transformer, TransformerConfig, bleu, load, views
# from transformer.core.records import read_rows, under
# from transformer.corpora import read_bundled
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # the models below are too small to share between cores

# %% [markdown]
# ## A model says one token at a time
#
# The model has learned one thing: given a source and the beginning of a translation, how likely is each token to come next? (A token is a word or a piece of one, as in [chapter 10](10_data.ipynb).) A translation needs many tokens, so somebody has to choose. The choosing is called **decoding**, and no weight of the model changes in it.
#
# Scores at the last position are the answer, and softmax turns them into probabilities. We work with their logarithms. Where probabilities of several tokens are multiplied, their logarithms are added: two tokens with ½ and ¼ together have ⅛, and −0.69 − 1.39 = −2.08. Padding is no word, so it is ruled out.


# %%
def next_log_probs(model: nn.Module, source: Tensor, outputs: Tensor) -> Tensor:
    """log P(next token) in nats: sources (k, S), outputs so far (k, T) -> (k, V).

    Padding is no token: -inf.
    """
    log_probs = model(source, outputs)[:, -1].log_softmax(dim=-1)
    log_probs[:, model.config.pad_id] = -torch.inf
    return log_probs


# %% [markdown]
# The simplest choice is the likeliest token. Take it, append it, and ask again until the end mark comes. This is **greedy search**. Here it is for our sentence, and beside each token we note how sure the model was.

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# BEGIN, END = tokenizer.bos_id, tokenizer.eos_id
#
#
# def read(english):
#     return torch.tensor([[*tokenizer.encode(english), END]])
#
#
# def piece(token):
#     return tokenizer.decode([token]) or "(end)"
#
#
# source = read("Did a lady bathe gladly before the boring meeting?")
# output, log_ps = [BEGIN], []
# with torch.no_grad():
#     while output[-1] != END and len(output) <= source.shape[1] + 50:
#         log_probs = next_log_probs(model, source, torch.tensor([output]))[0]
#         output.append(log_probs.argmax().item())
#         log_ps.append(log_probs.max().item())
# print(f"P = {math.exp(sum(log_ps)):.4f}")
# views.sure([piece(token) for token in output[1:]], log_ps)

# %% [markdown]
# *The two red bars show the accident: after "B" the model has no favourite, greedy search takes the best of a bad lot, and it can never go back.*
#
# The probability of the whole output is the product of all these numbers. A second token that is a little less likely might lead to a better product. What would you try?

# %% [markdown]
# ## Keep several beginnings alive
#
# We cannot try every sentence. With 3,500 tokens to choose from there are twelve million beginnings of two tokens, and our short sentence has twelve. But we can keep more than one beginning. At each step, extend each of them by every token, and of all these keep the best $K$. This is **beam search**. What is written so far is called a **hypothesis**, and those that are kept are the **beam**. With $K = 1$ it is greedy search; the paper keeps 4.
#
# On paper first, with two beginnings, $K = 2$: "a" has 0.5 and "b" has 0.4. After "a" the likeliest tokens have 0.3 and 0.3, after "b" 0.9 and 0.1. The four extensions have 0.15, 0.15, 0.36 and 0.04. So "b" and its first extension takes the lead, although "a" was ahead.
#
# Below is that step for any beginnings. It need not look at every extension: of one beginning at most the best $K + 1$ can matter, because at most one of them is the end mark, and then $K$ remain.


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
# @torch.no_grad()
# def extend(alive, K):
#     return extensions(model, source[0], alive, K)
#
#
# views.beam_tree(extend, piece, K=2, steps=4)

# %% [markdown]
# *Blue beginnings are kept, and a thick frame marks the best of each step: "B ad" leads after two steps, but "B ade te" overtakes it. (In a running notebook or on the web page: move $K$ to 1, and the right answer dies at step 2.)*
#
# Follow the numbers, which are those of the whole beginning. "B ad" has 7.3%, and "B ade" only 4.7%. But *te* follows "ade" almost surely, while *et* follows "ad" in a third of cases, and so the order turns round. Greedy search had dropped the winner one step too early.

# %% [markdown]
# ## Which finished output wins?
#
# Sooner or later a hypothesis ends, and others go on. To choose among outputs of different lengths, simply compare their probabilities? Try it on a longer sentence: *The happy niece paints our brave brown cow in front of the museum although the rich clubs beside the hospital do not build their theatre.* Here are two outputs. The first says "The happy niece?" and falls silent. The second goes on to the end. Which of them does the model call likelier?

# %% tags=["active-ipynb"]
# long = read(
#     "The happy niece paints our brave brown cow in front of the museum although "
#     "the rich clubs beside the hospital do not build their theatre."
# )
# brief = "Die glückliche Nichte?"
# whole = (
#     "Die glückliche Nichte malt unsere mutige braune Kuh vor dem Museum, obwohl "
#     "die reichen Vereine nicht neben den Krankenhäusern baut."
# )
#
#
# @torch.no_grad()
# def log_p_of(model, source, tokens):
#     """log P of each token of an output, in one pass: a list."""
#     scores = model(source, torch.tensor([[1, *tokens[:-1]]]))[0]  # 1 begins an output
#     return scores.log_softmax(dim=-1)[range(len(tokens)), tokens].tolist()
#
#
# curves = {
#     "the short one": log_p_of(model, long, [*tokenizer.encode(brief), END]),
#     "the long one": log_p_of(model, long, [*tokenizer.encode(whole), END]),
# }
# marks = {"the long one": [(21, "Krankenhäusern"), (24, "baut")]}
# views.falling(curves, marks)

# %% [markdown]
# *The short output pays once, for breaking off, and is done; the long one goes on paying with every token, and ends lower.*
#
# Even a token of which the model is sure costs about a tenth of a nat, and now and then comes one of which it is not. So whoever stops first has paid least. Google's earlier translator GNMT (Wu et al., 2016) divides $\log P$ by a **length penalty**, and the paper takes it over with $\alpha = 0.6$. For an output $Y$ of $|Y|$ tokens and a source $X$:
#
# $$\mathrm{score}(Y) = \frac{\log P(Y \mid X)}{lp(Y)}, \qquad lp(Y) = \left(\frac{5 + |Y|}{6}\right)^{\alpha}$$
#
# Dividing a negative number by more brings it closer to zero, so longer outputs gain. With $\alpha = 0$ the penalty is 1 and nothing changes.


# %%
def length_penalty(length: float | Tensor, alpha: float = 0.6) -> float | Tensor:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al., 2016); |Y| counts the end mark."""
    return ((5 + length) / 6) ** alpha


# %% tags=["active-ipynb"]
# for name, steps in curves.items():
#     log_p, lp = sum(steps), length_penalty(len(steps))
#     print(f"{name}: {log_p:.1f} / {lp:.2f} = {log_p / lp:.1f}")

# %% [markdown]
# Now the long one wins. It is complete, though not right. It says that the clubs do not build "beside the hospitals", and the theatre is missing. The picture knew: its two steep falls are *Krankenhäusern* ("hospitals") and *baut* ("builds"). A search can only choose among what a model offers.
#
# ## The whole search
#
# One question remains: when may the search stop? Every further token can only lower $\log P$, and no penalty is larger than that of the longest output allowed, which in the paper is 50 tokens longer than the source. Say that the best hypothesis alive has $\log P = -4$, and the largest penalty is 2. Whatever becomes of it, it cannot score above $-2$. If a finished one has $-1.9$, the search is over.


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
# The rest is the step from above, in a loop. A hypothesis that ends leaves the beam if it was among the $K$ best of its step, and the next best beginning takes its place. **The paper does not say** either of these two things; programs differ in them. At the length limit everything counts as finished.


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
# for hypothesis in beam_search(model, source, beam=4, alpha=0.0, n_best=3)[0]:
#     text = tokenizer.decode(hypothesis.tokens)
#     print(f"P = {math.exp(hypothesis.score):.4f}  {text}")

# %% [markdown]
# The right sentence comes first, the greedy one second. The third has a wrong verb: *brachte* means "brought". All three are alike but for one word, and that is usual: the hypotheses of a beam are often near copies.
#
# Is the code right? A beam so wide that it drops nothing tries *everything*, and in a small enough world we can do that by force. A random model with four tokens, which may write at most four of them, has 121 possible outputs. Does the beam find the best ten of them, whatever the penalty?

# %% tags=["active-ipynb"]
# tiny = Transformer(TransformerConfig(5, d_model=16, d_ff=32, N=1, h=2)).eval()
# ids = torch.tensor([[3, 2]])
# everything = [
#     list(tokens)
#     for n in (1, 2, 3, 4)
#     for tokens in itertools.product([1, 2, 3, 4], repeat=n)  # 0 is padding, 2 the end
#     if 2 not in tokens[:-1] and (tokens[-1] == 2 or n == 4)
# ]
#
#
# def score_of(tokens, alpha):
#     return sum(log_p_of(tiny, ids, tokens)) / length_penalty(len(tokens), alpha)
#
#
# for alpha in (0.0, 0.6, 3.0):
#     by_force = sorted(everything, key=lambda tokens: -score_of(tokens, alpha))
#     ten = beam_search(tiny, ids, beam=130, alpha=alpha, extra=2, n_best=10)[0]
#     assert [h.tokens for h in ten] == by_force[:10]
# print(f"a wide beam finds the best ten of all {len(everything)} outputs")

# %% [markdown]
# ## Do not compute what you have
#
# The search is right, and slow. To choose token 10, our code pushes tokens 1 to 9 through the decoder once more, although nothing about them has changed: the causal mask of [chapter 4](04_attention.ipynb) forbids them to look ahead. All that a new token wants of the old ones is their keys and values. Keep these, and every step computes a single position.

# %% tags=["active-ipynb"]
# views.cache([piece(token) for token in output[1:]])

# %% [markdown]
# *Each row is a step: on the left the red squares are computed again and again, and on the right they are looked up.*
#
# Such a store is a **key-value cache**. The paper does not mention it, and nearly every program has one. An output of $n$ tokens costs $n(n + 1)/2$ positions without it and $n$ with it. In a beam the rows of the cache follow the tree: where a hypothesis goes on in two ways its row is copied, and where it dies the row is dropped.
#
# The searches that you get from the package (`from transformer import beam_search`, [their code](https://github.com/OWNER/annotated-attention/blob/main/transformer/fast/search.py)) have caches, and take many sentences at once. They must not find anything else than ours:

# %% tags=["active-ipynb"]
# texts = sorted((example.source for example in read_bundled("test")), key=len)[-8:]
# found = []
# for text in texts:
#     [plain] = beam_search(model, read(text))[0]
#     [quick] = transformer.beam_search(model, read(text))[0]
#     assert plain.tokens == quick.tokens
#     assert abs(plain.score - quick.score) < 1e-4
#     found.append(len(quick.tokens))
# without = sum(n * (n + 1) // 2 for n in found)
# print(
#     f"eight long sentences, the same outputs: {sum(found)} positions, not {without:,}"
# )

# %% [markdown]
# Greedy search for a batch is written once more for the chapters to come, still without a cache. All sentences step together, and one that is done gets padding until the last is.


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
# greedy = greedy_search(model, source)[0]
# assert greedy == output[1:]
# assert greedy == transformer.greedy_search(model, source)[0]
# assert greedy == beam_search(model, source, beam=1, alpha=0.0)[0][0].tokens
# print("greedy search, the package's, and a beam of 1 agree")

# %% [markdown]
# ## How good is a translation?
#
# A beam finds likelier outputs. Are they *better*? To say so we need a grade that a machine can give. **BLEU** (Papineni et al., 2002) compares an output with a **reference**, which a person wrote. It counts the runs of one to four words (**n-grams**) of the output that are in the reference, too. Take a pencil: how many single words of this output would you count, and how many pairs?

# %% tags=["active-ipynb"]
# translation = "the red red fox jumps over the sleeping dog"
# reference = "the quick red fox jumps over the very lazy dog"
# views.bleu_runs(translation, reference)

# %% [markdown]
# *A blue run is in the reference, a red one is not: the second "red" earns nothing, because the reference has a single "red" to give.*
#
# The four shares are the **precisions** $P_1$ to $P_4$: 7/9, 4/8, 3/7 and 2/6. Their geometric mean is $(0.78 \cdot 0.5 \cdot 0.43 \cdot 0.33)^{1/4} = 0.485$. But an output of a few safe words would have high precisions, so the **brevity penalty** $BP$ punishes an output whose $c$ words are fewer than the reference's $r$. Ours has 9 of 10, so $BP = e^{1 - 10/9} = 0.895$, and together that is 43.4.
#
# $$\mathrm{BLEU} = 100 \cdot BP \cdot \left(P_1 P_2 P_3 P_4\right)^{1/4}, \qquad BP = \min\left(1, e^{1 - r/c}\right)$$

# %% tags=["active-ipynb"]
# cut = Tokenizer13a()  # sacreBLEU's words: punctuation is a word of its own
#
#
# def counts_of(output, reference):
#     """Runs found and runs there are, for n = 1 to 4, and both lengths: 10 numbers."""
#     ours, theirs = cut(output).split(), cut(reference).split()
#     found, there = [], []
#     for n in (1, 2, 3, 4):
#         mine, right = (
#             Counter(zip(*(side[i:] for i in range(n)))) for side in (ours, theirs)
#         )
#         found.append((mine & right).total())  # & takes the smaller count
#         there.append(mine.total())
#     return torch.tensor([*found, *there, len(ours), len(theirs)], dtype=torch.float64)
#
#
# def bleu_of(counts):  # (..., 10), summed over sentences -> (...)
#     precisions, (c, r) = counts[..., :4] / counts[..., 4:8], counts[..., 8:].unbind(-1)
#     return 100 * (1 - r / c).clamp(max=0).exp() * precisions.log().mean(dim=-1).exp()
#
#
# by_hand = bleu_of(counts_of(translation, reference))
# assert abs(by_hand - bleu([translation], [reference]).score) < 1e-6
# print(f"by hand {by_hand:.2f}, the same as sacreBLEU's")

# %% [markdown]
# For a whole test set all counts are summed before anything is divided. And is "dog." one word or two? The program **sacreBLEU** (Post, 2018) settles such questions, so name it where you report a score; older ways of counting can differ by several points ([evidence 15.3](evidence/15_decoding.ipynb)). A sentence has many good translations and the reference is one of them, so that scores are far from 100. The paper's best are 28.4 for German and 41.8 for French.

# %% [markdown]
# ## Is likelier better?
#
# Here are 2,000 everyday sentences that volunteers wrote and translated (Tatoeba, [chapter 16](16_translation.ipynb)), held out from training, and the model that `load("tatoeba")` gives. A record has its scores for beams of several widths. Before you look: where would you stop?

# %% tags=["active-ipynb"]
# runs = {(row["beam"], row["alpha"]): row for row in read_rows("searches")}
# beams = (1, 2, 4, 8, 16)
#
#
# def curve(figure, alpha):
#     """{K: a figure}; greedy search has no penalty."""
#     return {K: runs[K, alpha if K > 1 else 0.0][figure] for K in beams}
#
#
# names = {"no penalty": 0.0, "α = 0.6": 0.6}
# scores = {name: curve("bleu", alpha) for name, alpha in names.items()}
# lengths = {
#     name: {K: 100 * share for K, share in curve("length", alpha).items()}
#     for name, alpha in names.items()
# }
# views.beam_width(scores, lengths)

# %% [markdown]
# *Left, the first few beginnings bring nearly all of the gain; right, wider beams write ever fewer words, and the penalty holds some of them back.*
#
# From greedy search to $K = 4$ BLEU gains three quarters of a point, up to 8 another quarter, and beyond that nothing, though a wider beam has more outputs to choose from. In larger systems wide beams have even done harm (Koehn and Knowles, 2017), where outputs grew shorter, too. The bundled corpus, whose sentences a grammar wrote, can show it. On its harder test set a beam of 4 without a penalty writes 6% too few words, and scores *below* greedy search ([evidence 15.4](evidence/15_decoding.ipynb)).
#
# How strong should the penalty be? On these sentences it hardly matters. Captions of photographs (Multi30k) are longer, and their model wants more of it, up to a point:

# %% tags=["active-ipynb"]
# captions = {
#     row["alpha"]: row["validation.bleu"]
#     for row in read_rows("multi30k-alpha")
#     if row["beam"] == 4
# }
# everyday = {alpha: row["bleu"] for (K, alpha), row in sorted(runs.items()) if K == 4}
# views.alphas({"everyday sentences": everyday, "captions": captions})

# %% [markdown]
# *The curve of everyday sentences is nearly flat for a long way, that of captions climbs by a point, and then both fall off a cliff.*
#
# So this is all the advice on $\alpha$ that this book has: **take 0.6**, which is far from the cliff in both. If you tune it, as captions would reward, do so on validation sentences as long as those to come, look at the lengths of the outputs, and stay well away from the cliff.

# %% [markdown]
# ## Average the last weights
#
# The paper has one more trick for the finished model, and it costs no search at all. A training ends on some batch, and that batch has pulled the weights its way. Save the weights several times along the way; such a copy is a **checkpoint**. In the mean of the last few, much of these pulls should cancel. The paper averages the last five of base and the last twenty of big. With two checkpoints in which one weight is 0.4 and 0.6, the mean has 0.5 there.


# %%
def average_checkpoints(checkpoints: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several {name: weights}, parameter by parameter (Section 6.1)."""
    average = {}
    for name in checkpoints[0]:
        weights = torch.stack([checkpoint[name] for checkpoint in checkpoints])
        average[name] = weights.mean(dim=0)
    return average


# %% [markdown]
# [Chapter 14](14_training.ipynb)'s run kept its last six checkpoints. How many of 1,000 test sentences does each of them translate right to the letter, and how many does their mean?

# %% tags=["active-ipynb"]
# [run] = read_rows("bundled-run")
# steps = [100 * share for share in run["test.steps.exact"]]
# views.averaging(run["log.update"][-len(steps) :], steps, 100 * run["test.mean.exact"])

# %% [markdown]
# *A grey dot is a checkpoint: none of the six gets as many sentences right as the mean of their weights.*
#
# This is one training, whose learning rate was still high at its end. In trainings on real sentences the trick gained one to two BLEU ([evidence 14.3](evidence/14_training.ipynb)); where the rate falls to zero, little is left to average away ([chapter 16](16_translation.ipynb)).

# %% [markdown]
# ## Is a difference real?
#
# On Tatoeba, $K = 4$ beats greedy search by 0.75 BLEU. Would another 2,000 sentences say the same? We have no others, but we can draw 2,000 *from our own*, some of them twice and some not at all, and score both searches on the same draw. A thousand draws show what luck can do. This is the **paired bootstrap** (Koehn, 2004). It costs nothing, because BLEU's counts simply add up; the record has them for every sentence.

# %% tags=["active-ipynb"]
# def table_of(row):
#     """Per sentence the 10 numbers of `counts_of`, from a record: (2000, 10)."""
#     counts = {
#         name: torch.tensor(column) for name, column in under(row, "counts").items()
#     }
#     there = [(counts["output"] - n).clamp(min=0) for n in range(4)]
#     found = [counts[str(n)] for n in (1, 2, 3, 4)]
#     columns = [*found, *there, counts["output"], counts["reference"]]
#     return torch.stack(columns, dim=1).double()
#
#
# draws = torch.randint(2000, (1000, 2000))
# tables = {search: table_of(runs[search]) for search in [(1, 0.0), (4, 0.0), (4, 0.6)]}
# drawn = {
#     search: bleu_of(torch.stack([table[draw].sum(dim=0) for draw in draws]))
#     for search, table in tables.items()
# }
# differences = {
#     "K = 4 minus greedy, both without penalty": drawn[4, 0.0] - drawn[1, 0.0],
#     "K = 4: α = 0.6 minus no penalty": drawn[4, 0.6] - drawn[4, 0.0],
# }
# low, high = drawn[4, 0.0].quantile(torch.tensor([0.025, 0.975]).double())
# gain = differences["K = 4 minus greedy, both without penalty"]
# print(f"K = 4 alone: from {low:.1f} to {high:.1f} in the middle 95% of the draws")
# print(
#     f"K = 4 is ahead of greedy search in {(gain > 0).double().mean():.1%} of the draws"
# )
# views.bootstrap(differences)

# %% [markdown]
# *The bar under each heap holds the middle 95% of the draws: above, it is clear of zero, and below it is not.*
#
# So for this model the beam's gain is real, on sentences like these: nearly every draw has it. Of the penalty's effect we cannot even tell the sign. Notice what *pairing* buys. The score of one search alone, in the first printed line, wanders over three points, four times the gain that we want to see. But a draw of hard sentences is hard for both searches, and in the difference that cancels.
#
# One warning. This draws *sentences* again, not trainings. The same recipe with another seed may end more than one BLEU away ([chapter 16](16_translation.ipynb)), and no redrawn sentence will tell you.
#
# ## What to keep
#
# - A model only says how likely each next token is. A search makes a sentence of that, and a beam rescues good sentences whose beginnings look weak.
# - Every token costs probability, so searches favour short outputs, and dividing by a length penalty makes up for it. A likelier output is still not always a better one.
# - BLEU counts shared runs of words, and a difference between two systems means little until you know what luck alone could do.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** "der" has probability 0.6 and "die" 0.4. After "der" the likeliest tokens are "alte" (0.4) and "Hund" (0.3), after "die" they are "Katze" (0.9) and "alte" (0.1). The output ends after two words with a probability of 0.9 for "der Hund", of 0.4 for "die Katze", and of 0.1 for the other two. Which of the four outputs is the likeliest? Which does greedy search find, which a beam of two, and which a beam of three? (Compare plain probabilities.)
#
# <details><summary>Answer</summary>
#
# The four beginnings have 0.6 · 0.4 = 0.24 ("der alte"), 0.18 ("der Hund"), 0.36 ("die Katze") and 0.04 ("die alte"). With their ends they have 0.024, 0.162, 0.144 and 0.004, so "der Hund" is the likeliest output. Greedy search takes "der" and then "alte". A beam of two keeps "die Katze" and "der alte", and finds "die Katze". Only a beam of three keeps "der Hund" as well. So a beam is better than greed, and still no guarantee.
# </details>
#
# **2. In code.** The hypotheses of a beam are often near copies. Write a step that keeps the beam more varied: of each beginning only the best two extensions may compete, and of these the best $K$ are kept, best first. (End marks need no attention here.)

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.decoding import check_varied_step
#
#
# def varied_step(beam, log_probs, K):
#     """k pairs (log P, tokens), k lists of V log probabilities -> at most K pairs"""
#     ...
#
#
# check_varied_step(varied_step)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def varied_step(beam, log_probs, K):
#     longer = []
#     for (log_p, tokens), row in zip(beam, log_probs):
#         own = [(log_p + more, [*tokens, token]) for token, more in enumerate(row)]
#         longer += sorted(own, reverse=True)[:2]
#     return sorted(longer, reverse=True)[:K]
# ```
#
# Without the `[:2]` it is a plain step of beam search, in which all extensions of a strong beginning may crowd out the others.
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
