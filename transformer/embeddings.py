# ---
# jupyter:
#   jupytext:
#     formats: notebooks/06_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 3.4 Embeddings and softmax
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/06_embeddings.ipynb)
#
# A model computes with vectors, and a text consists of *tokens*: words from a fixed vocabulary, or pieces of them. At the bottom of the model each
# token becomes a vector, and at the top each vector becomes a probability for every entry of the vocabulary. Section 3.4 does both, for
# both languages, with one matrix. At the end you will have this matrix, know what sharing it saves and what the factor
# $\sqrt{d_{model}}$ changes in a small model, and have seen which rows of a trained matrix are alike. Reading takes about 20 minutes,
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
import math

import torch
import torch.nn.functional as F
from torch import nn

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from transformer import load
# from transformer.attention import MultiHeadAttention
# from transformer.feed_forward import FeedForward
# from transformer.stacks import EncoderLayer
# from transformer.views import plotting
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small a second thread only waits

# %% [markdown]
# ## From a token to a vector
#
# The vocabulary has $V$ entries, called *types* and numbered from 0; a token is one occurrence of a type, given by its number. A matrix $E$ has a row of $d_{model}$ numbers for each type, and to embed a
# token is to take its row. The same can be written as a product: a row of zeros with a 1 at the token's place
# (*one-hot*), times $E$. Nobody computes it in this way, but it shows that embedding is a linear layer.


# %%
def one_hot_product(tokens: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Rows of an embedding matrix as a product.

    tokens (...), weight (V, d_model) -> (..., d_model). What a look-up computes, with V
    times the work: the definition that `Embedding` is checked against.
    """
    if ((tokens < 0) | (tokens >= len(weight))).any():
        raise ValueError(f"token ids must lie between 0 and {len(weight) - 1}")
    types = torch.arange(len(weight), device=weight.device)
    one_hot = (tokens[..., None] == types).to(weight.dtype)  # (..., V)
    return one_hot @ weight


# %% [markdown]
# At the top of the model a vector has to become a choice among the types. Its inner products with all rows of $E$ are $V$ scores, the *logits*, which say how well each
# type fits. So the same matrix, transposed, can serve there. The paper uses one matrix three times: for the source, for
# the target, and for the logits, as Press and Wolf (2017) had done in recurrent models. This is called *tying*. Source and target can share it
# because both languages share one vocabulary ([notebook 10](10_data.ipynb)).
#
# At the bottom the rows are multiplied by $\sqrt{d_{model}}$; the next section asks why. `Projection` holds the same parameter as `Embedding`, not a copy: a step of the optimizer changes both.


# %%
class Embedding(nn.Module):
    """Rows of a matrix E (V, d_model), times sqrt(d_model) (Section 3.4).

    Token ids (B, T) -> (B, T, d_model). Rows start as N(0, 1 / d_model), so that
    scaled rows have variance 1.
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        rows = torch.randn(vocab_size, d_model) / math.sqrt(d_model)
        self.weight = nn.Parameter(rows)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.embedding(tokens, self.weight) * math.sqrt(self.weight.shape[1])


# %%
class Projection(nn.Module):
    """The scores of all types, without a bias (Section 3.4).

    x (..., d_model) -> x E^T (..., V). E is the weight of an `Embedding`, which may be
    the one that tokens go in by (Press and Wolf, 2017).
    """

    def __init__(self, embedding: Embedding):
        super().__init__()
        self.weight = embedding.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight)


# %% tags=["active-ipynb"]
# embedding = Embedding(vocab_size=1000, d_model=64)  # √64 = 8
# tokens = torch.tensor([[5, 17, 999], [17, 2, 0]])
# x = embedding(tokens)
# logits = Projection(embedding)(x)
# shapes = [tuple(some.shape) for some in (tokens, x, logits)]
# print("tokens {}  vectors {}  logits {}".format(*shapes))
# assert torch.allclose(x, 8 * one_hot_product(tokens, embedding.weight))
# assert torch.equal(x[0, 1], x[1, 0])
# assert torch.equal(logits.argmax(dim=-1), tokens)
# print("a row is the one-hot product, and each token's own row scores highest")

# %% [markdown]
# Two sentences of three tokens become vectors of 64 numbers, and each vector gives 1000 scores. Token 17 has the same
# vector in both sentences, because a look-up knows no context. Sent straight back to the top, each vector fits its own token's row
# best: with nothing between bottom and top, tied embeddings copy their input.

# %% [markdown]
# ## Why times $\sqrt{d_{model}}$?
#
# The paper gives no reason for this factor. A plausible one: the matrix has two tasks that want two sizes. At the top,
# $E$ is multiplied with vectors $x$ whose numbers have variance 1 (LayerNorm, [notebook 03](03_stacks.ipynb)). A logit
# is a sum of $d_{model}$ products, and has variance 1 if the numbers in $E$ have variance $1/d_{model}$. Much larger logits would make an untrained model sure of wrong answers (see below).
# At the bottom, a row is added to a positional encoding of sines and cosines ([notebook 07](07_positions.ipynb)), whose mean square is 1/2.
# Beside it a row of variance $1/d_{model}$ is very small. Multiplied by $\sqrt{d_{model}}$, its variance is 1.
#
# **Not in the paper:** the start of the rows. The authors' own code, tensor2tensor, begins with $N(0, 1/d_{model})$, too.

# %% tags=["active-ipynb"]
# widths = [32, 64, 128, 256, 512]
# rows, scaled, logits = [], [], []
# for d_model in widths:
#     e = Embedding(2000, d_model)
#     x = torch.randn(100, d_model)
#     rows.append(e.weight.var().item())
#     scaled.append(e(torch.arange(2000)).var().item())
#     logits.append(Projection(e)(x).var().item())
# curves = {"row of E": rows, "row times √d_model": scaled, "logits": logits}
# curves["positions (mean square)"] = [0.5] * 5
# title = "scaled rows and logits keep variance 1 at every width"
# plotting.lines(widths, curves, "d_model", "variance", title, log="y", markers=True)
# assert all(abs(v - 1) < 0.1 for v in scaled + logits)

# %% [markdown]
# At $d_{model} = 512$ an unscaled row has variance 0.002, about 250 times less than the positions beside it. The scaled
# rows and the logits (two curves, one on the other) stay at 1 for every width.
#
# So much for the sizes at the start. Does a model *learn* better with the factor? We train a very small one: a single encoder layer of
# notebooks 03 to 05 that has to write twelve random tokens backwards, for which it must know both which tokens there are
# and where they stand. It is trained with the factor ($\sqrt{32} = 5.7$) and without, with one matrix for input and output and with a matrix for each, three seeds each. (The loss is explained below; guessing among 100 types costs $\log 100 = 4.6$.)

# %% tags=["active-ipynb"]
# class Backwards(nn.Module):
#     def __init__(self, V, d, factor, tied):
#         super().__init__()
#         self.embedding = Embedding(V, d)
#         self.output = Projection(self.embedding if tied else Embedding(V, d))
#         self.factor = factor / math.sqrt(d)  # `Embedding` has the root already
#         self.layer = EncoderLayer(
#             MultiHeadAttention(d, 4), FeedForward(d, 2 * d), d, P_drop=0.0
#         )
#         angles = torch.arange(12)[:, None] / 10_000 ** (torch.arange(0, d, 2) / d)
#         self.positions = torch.cat([angles.sin(), angles.cos()], dim=1)  # see 07
#
#     def forward(self, tokens):
#         x = self.factor * self.embedding(tokens) + self.positions
#         return self.output(self.layer(x))

# %% tags=["active-ipynb"]
# def learn_backwards(factor, tied, seed, V=100, steps=300):
#     torch.manual_seed(seed)
#     model, losses = Backwards(V, 32, factor, tied), []
#     optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
#     for _ in range(steps):
#         tokens = torch.randint(V, (32, 12))
#         logits = model(tokens)
#         loss = F.cross_entropy(logits.flatten(0, 1), tokens.flip(1).flatten())
#         optimizer.zero_grad()
#         loss.backward()
#         optimizer.step()
#         losses.append(loss.item())
#     return losses

# %% tags=["active-ipynb"]
# losses = {}
# for tied in (True, False):
#     for factor in (math.sqrt(32), 1.0):
#         name = f"{'one matrix' if tied else 'two matrices'}, factor {factor:.1f}"
#         runs = [learn_backwards(factor, tied, seed) for seed in range(3)]
#         losses[name] = torch.tensor(runs)  # (seeds, steps)
#         ends = ", ".join(f"{run[-20:].mean():.2f}" for run in losses[name])
#         print(f"{name:25} loss at the end, by seed: {ends} nats")
# curves = {name: runs.mean(dim=0)[::5] for name, runs in losses.items()}
# title = "without the factor this small model ends lower"
# plotting.lines(
#     range(0, 300, 5), curves, "step", "loss (nats a token), mean of 3 seeds", title
# );

# %% tags=["active-ipynb"]
# end = {name: runs[:, -20:].mean().item() for name, runs in losses.items()}
# assert max(end.values()) < 0.3 * math.log(100)
# for matrices in ("one matrix", "two matrices"):
#     assert end[f"{matrices}, factor 1.0"] < end[f"{matrices}, factor 5.7"]
# print("all four learn the task, and those without the factor end lower")

# %% [markdown]
# All four learn it, and here, at one learning rate, the models without the factor end lower. So for this model and this task the factor is not needed.
# One possible reason, which we have not tested, is Adam ([notebook 12](12_optimizer.ipynb)): it moves small numbers as fast as large ones, and can make up for a small start within some hundred steps. Why the factor costs steps here, we do not know. In a whole translator the start can matter: [notebook 14](14_training.ipynb) halves the shared matrix, and with it the logits, before training, and a model of two layers then depends less on its source after 600 updates: its loss rises less when it gets another sentence's. Whether the factor helps at the paper's size we do not know; we keep it because the paper has it.

# %% [markdown]
# ## From scores to probabilities
#
# Softmax makes probabilities of the $V$ logits: all positive, adding up to 1.
#
# $$p_i = \frac{e^{z_i}}{\sum_{j=1}^{V} e^{z_j}}$$
#
# The largest logit is subtracted from all of them first. This divides numerator and denominator by the same number, so the fraction stays as it is;
# without it $e^{z}$ overflows: in float32 $e^{89}$ is already infinite.


# %%
def softmax(logits: torch.Tensor) -> torch.Tensor:
    """exp(z_i) / sum_j exp(z_j) over the last axis, (..., V) -> (..., V) (Section 3.4).

    The largest logit is subtracted first, so that no exponential overflows. Equal
    logits give 1 / V each, whatever their size.
    """
    powers = torch.exp(logits - logits.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


# %% tags=["active-ipynb"]
# z = torch.tensor([[2.0, 1.0, 0.0, -1.0], [1002.0, 1001.0, 1000.0, 999.0]])
# p = softmax(z)
# print([round(value, 3) for value in p[0].tolist()])
# assert torch.allclose(p, z.softmax(dim=-1))
# assert torch.allclose(p[0], p[1])
# print("equal to torch's, and logits near 1000 give the same without overflow")

# %% [markdown]
# A logit that is larger by 1 means a probability that is $e = 2.7$ times as large. The second row of logits has the same differences as the first, and so
# the same probabilities.
#
# The loss of a prediction is $-\log p$ of the right token (*cross-entropy*; with the natural logarithm its unit is the
# *nat*). A model that knows nothing should answer $1/V$ for every type, which is a loss of $\log V$. How far from this is
# the start, with rows of variance $1/d_{model}$, and with rows of variance 1 (the default of torch's `nn.Embedding`)? Random vectors of variance 1 stand for what the decoder hands over (real ones lean towards the token just read: [notebook 08](08_model.ipynb)). The right tokens of a target are called `gold` in this book.

# %% tags=["active-ipynb"]
# x = torch.randn(500, 512)
# gold = torch.randint(0, 2000, (500,))
# logits = Projection(Embedding(2000, 512))(x)
# start = F.cross_entropy(logits, gold).item()
# larger = math.sqrt(512) * logits  # what rows of variance 1 would give
# too_large = F.cross_entropy(larger, gold).item()
# print(
#     f"log V = {math.log(2000):.2f}; loss at the start: {start:.2f}; "
#     f"with variance 1: {too_large:.2f}"
# )
# assert abs(start - math.log(2000)) < 1
# assert too_large > 3 * start

# %% [markdown]
# With rows of variance 1 the model begins by being sure of wrong answers, and its loss is ten times that of knowing nothing. With
# rows of variance $1/d_{model}$ the loss is only 0.5 above $\log V$, because the logits differ by chance and not by much.

# %% [markdown]
# ## What sharing saves
#
# The paper's vocabulary has about 37,000 types. With it the base model has 63.0 million parameters as we count them
# ([notebook 08](08_model.ipynb); the paper says 65). Training with Adam keeps four numbers of four bytes for each parameter:
# the weight, its gradient, and two averages ([notebook 12](12_optimizer.ipynb)).

# %% tags=["active-ipynb"]
# for name, matrices in {"one matrix": 1, "three": 3, "saved": 2}.items():
#     numbers = matrices * 37_000 * 512
#     megabytes = numbers * 4 * 4 / 1e6
#     print(f"{name:11}{numbers:>11,} parameters, in training {megabytes:4.0f} MB")

# %% [markdown]
# Untied, the base model would have 101 million parameters, and more than half of them would be embeddings.
#
# Would they buy a better translation? On validation, on Multi30k's captions, a small model has 1.6 BLEU less with three matrices than with one (three runs of each; 95% interval 1.1 to 2.1). On test, which was to decide, it has 1.8 less, but this may be chance ($p$ 0.09, corrected, as it was one of four comparisons). ([Notebook 15](15_decoding.ipynb) explains the score, [16](16_translation.ipynb) has the table.)

# %% [markdown]
# ## One matrix, three gradients
#
# A shared matrix also learns from three places. If a matrix is used three times, its gradient is the sum of what each use
# alone would give. To see the three apart, the loss below takes three matrices, which may all be the same one.


# %%
def three_uses(source, target, gold, E_source, E_target, E_output) -> torch.Tensor:
    """A loss that uses embeddings three times, without the model between them.

    source, target, gold: token ids (B, T). The mean of the source is added to each
    target vector; the sums are scored: cross-entropy with gold, in nats.
    """
    scale = math.sqrt(E_source.shape[1])
    x = (E_target[target] + E_source[source].mean(dim=1, keepdim=True)) * scale
    return F.cross_entropy((x @ E_output.T).flatten(0, 1), gold.flatten())


# %% tags=["active-ipynb"]
# E = Embedding(20, 16).weight.detach() / 2  # halved, so that no answer is sure yet
# E.requires_grad_()
# source = torch.tensor([[1, 2, 3]])
# target = torch.tensor([[10, 11, 12]])
# gold = torch.tensor([[11, 12, 13]])
# (tied,) = torch.autograd.grad(three_uses(source, target, gold, E, E, E), E)
# copies = [E.detach().clone().requires_grad_() for _ in range(3)]
# parts = torch.autograd.grad(three_uses(source, target, gold, *copies), copies)
#
# norms = [gradient.norm(dim=1) for gradient in (*parts, tied)]
# uses = ["source", "target", "output", "sum"]
# title = "the output's gradient reaches every row"
# labels = ("row of E", "use", "norm of the gradient")
# plotting.heatmap(norms, range(20), uses, title, labels=labels)
# assert torch.allclose(tied, sum(parts), atol=1e-6)
# assert norms[2].min() > 0
# print("the gradient of the shared matrix is the sum of the three;")
# print(f"the output's part is at least {norms[2].min():.2f} long in every row")

# %% [markdown]
# The columns are the 20 rows of $E$, and the colour is the size of each row's gradient. Source and target reach only the rows of
# tokens that occur (1 to 3, and 10 to 12). The output reaches every row: the rows of the right tokens (11 to 13) are pulled towards the $x$ that should predict them, and each $x$ pushes every row away as strongly as it is predicted. So the row of a word that is missing from this batch changes,
# too. A separate output matrix would learn the same, but with tying this row is also the word's input vector.

# %% [markdown]
# ## Which rows of a trained matrix are alike?
#
# The small model that comes with the package, trained on sentences of a made-up grammar, has one matrix for English and German. Here are sixty English nouns that it knows
# as single tokens, sorted by the *grammatical gender of their German translation*, which English does not have. The colours are cosines:
# inner products of two rows that were first scaled to length 1, so that only their directions count. Every second noun is named.

# %% tags=["active-ipynb"]
# nouns = {
#     "der": "man boy teacher doctor king dog wolf fox bear lion bus cake apple cheese "
#     "letter coat hat key table tree",
#     "die": "woman mother nurse queen witch cat cow mouse owl snake school soup milk "
#     "bottle clock lamp crown bridge door street",
#     "das": "child girl horse pig lamb museum car ship boat bread egg book shirt glass "
#     "knife picture bed house roof window",
# }
# genders = [gender for gender, some in nouns.items() for _ in some.split()]
# names = [name for some in nouns.values() for name in some.split()]
# model, tokenizer = load()
# ids = torch.tensor([tokenizer.encode(name) for name in names])[:, 0]
# everything = F.normalize(model.embedding.weight.detach(), dim=1)
# rows = everything[ids]
# cosines = rows @ rows.T
# title = "nouns of one German gender are alike (lines between der, die, das)"
# marks = [names[i] if i % 2 == 0 else "" for i in range(60)]
# ax = plotting.new_axes(8, 6.5)
# plotting.heatmap(
#     cosines,
#     marks,
#     marks,
#     title,
#     ax,
#     largest=0.7,
#     labels=("noun", "noun", "cosine (1 on the diagonal)"),
# )
# for edge in (19.5, 39.5):
#     ax.axhline(edge, color="black", linewidth=1)
#     ax.axvline(edge, color="black", linewidth=1)

# %% tags=["active-ipynb"]
# nearest = cosines.fill_diagonal_(-1).argmax(dim=1).tolist()
# same = sum(genders[i] == genders[j] for i, j in enumerate(nearest))
# print(f"the nearest of the 60 has the same German gender: {same} of 60 (chance: 19)")
# living = {*names[:10], *names[20:30], *names[40:45]}  # persons and animals
# kind = [name in living for name in names]
# alike = {
#     what: [kind[j] == what for i, j in enumerate(nearest) if kind[i] == what]
#     for what in (True, False)
# }
# print(
#     f"nearest to a person or animal is one, too: {sum(alike[True])} of "
#     f"{len(alike[True])}; to a thing, a thing: {sum(alike[False])} of "
#     f"{len(alike[False])} (by chance within a gender: 31 of 60)"
# )
# for name in ("cat", "dog", "house"):
#     near = cosines[names.index(name)].topk(4).indices.tolist()
#     print(f"nearest to {name}:", ", ".join(names[i] for i in near))
# near = (everything @ rows[names.index("hat")]).topk(5).indices.tolist()[1:]
# found = [tokenizer.decode([i]) for i in near]
# print("nearest to hat in the whole matrix:", ", ".join(found))
# assert same > 50 and sum(map(sum, alike.values())) > 40

# %% [markdown]
# The model has sorted English nouns by German gender: the nearest of the sixty always has the same one. Nobody gave it
# genders; but to write *der*, *die* or *das*, and the right ending of every adjective before the noun, it needs them. Within a gender
# meaning shows as well, if less: the nearest to a person or an animal is mostly a person or an animal (of the five of *das* for two), and the nearest to a thing mostly a thing.
#
# One row of the picture is like no other: "hat". These three letters are also a German word (*has*), and because both languages share
# one vocabulary, both words share a row, and the German one is eleven times as frequent here. Its nearest rows in the whole matrix are German auxiliaries (*have*, *can*, *was*, *were*).
#
# Does sharing one matrix bring a word and its translation together?

# %% tags=["active-ipynb"]
# german = {"cat": "Katze", "dog": "Hund", "house": "Haus", "book": "Buch"}
# for name, translation in german.items():
#     row = rows[names.index(name)]
#     (token,) = tokenizer.encode(translation)  # each of these words is one token
#     other = everything[token]
#     rank = (everything @ row > other @ row).sum().item()
#     print(
#         f"{name} and {translation}: cosine {other @ row:.2f}, "
#         f"{rank:,} of {len(everything):,} rows are nearer"
#     )

# %% [markdown]
# Not for these four: most rows are nearer to each of these nouns than the row of its translation. Nothing in training asks for
# nearness. The English row is read by the encoder, the German row is read
# and written by the decoder, and the layers between translate one into the other.

# %% [markdown]
# ## Checks
#
# **Equal to torch's** `nn.Embedding` and `nn.Linear` with the same weights, in values and gradients.

# %% tags=["active-ipynb"]
# embedding = Embedding(1000, 16).double()  # √16 = 4
# table = nn.Embedding(1000, 16).double()
# linear = nn.Linear(16, 1000, bias=False).double()
# table.weight = linear.weight = nn.Parameter(embedding.weight.detach().clone())
#
# ours = Projection(embedding)(embedding(tokens))
# theirs = linear(4 * table(tokens))
# direction = torch.randn_like(ours)
# (our_gradient,) = torch.autograd.grad((ours * direction).sum(), embedding.weight)
# (their_gradient,) = torch.autograd.grad((theirs * direction).sum(), table.weight)
# assert torch.allclose(ours, theirs, rtol=0, atol=1e-9)
# assert torch.allclose(our_gradient, their_gradient, rtol=0, atol=1e-9)
# print("values and gradients equal torch's to 1e-9")

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Write the loss of a batch, $-\log p$ of the right type averaged over all predictions, from the logits. Nothing may overflow, and no probability be rounded to 0 before its logarithm.
# Use `exp`, `log` and sums, not a ready softmax.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.embeddings import check_cross_entropy
#
#
# def cross_entropy(logits, gold):
#     """logits (n, V), gold (n,) ids -> a number, in nats"""
#     ...
#
#
# check_cross_entropy(cross_entropy)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def cross_entropy(logits, gold):
#     z = logits - logits.max(dim=1, keepdim=True).values
#     log_sum = z.exp().sum(dim=1).log()
#     right = z[torch.arange(len(gold)), gold]
#     return (log_sum - right).mean()
# ```
#
# The logarithm of softmax is a difference, so no probability has to be computed, and none can round to 0.
# </details>
#
# **2.** Write the gradient of this loss with respect to the logits. (Which scores should go up, and which down?)

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.embeddings import check_gradient
#
#
# def gradient(logits, gold):
#     """logits (n, V), gold (n,) ids -> (n, V)"""
#     ...
#
#
# check_gradient(gradient)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def gradient(logits, gold):
#     predicted = logits.softmax(dim=1)
#     right = F.one_hot(gold, logits.shape[1])
#     return (predicted - right) / len(gold)
# ```
#
# The gradient is what was predicted minus what was right. It is zero where the prediction is certain and correct.
# </details>
#
# **3.** Find neighbours: the `k` rows of a matrix that are nearest to a given row by cosine, the row itself left out,
# nearest first.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.embeddings import check_neighbours
#
#
# def neighbours(E, row, k):
#     """E (V, d), the number of a row, how many -> list of k row numbers"""
#     ...
#
#
# check_neighbours(neighbours)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def neighbours(E, row, k):
#     lengths = E.norm(dim=1)
#     cosines = E @ E[row] / (lengths * lengths[row])
#     cosines[row] = -2
#     return cosines.topk(k).indices.tolist()
# ```
#
# Without the division by the lengths, long rows would come first too often.
# </details>

# %% [markdown]
# ## Next
#
# [07 Positional encoding](07_positions.ipynb) tells the words where they stand.
