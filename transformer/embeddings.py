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
# A model computes with vectors; a text consists of words, here *tokens* from a fixed vocabulary. At the bottom each
# token becomes a vector, at the top each vector becomes a probability for every token. Section 3.4 does both, and for both
# languages, with one matrix. This notebook builds it, and asks what sharing brings and what the factor $\sqrt{d_{model}}$ is for.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from transformer import plotting
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small a second thread only waits

# %% [markdown]
# ## From a token to a vector
#
# The vocabulary has $V$ types, numbered from 0. A matrix $E$ has a row of $d_{model}$ numbers for each. To embed
# a token is to take its row. One can also write it as a product: a row of zeros with a 1 at the token's
# place (*one-hot*), times $E$. Nobody computes it that way, but it shows that embedding is a linear layer.

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
# The other way round, the product of a vector with every row of $E$ gives $V$ scores, the *logits*: how well does each
# type fit? So the same matrix serves at the top, transposed. The paper uses it three times: for the source, for the
# target, and for the logits (as Press and Wolf, 2017, had tried in recurrent models). That is possible because both languages share one vocabulary (notebook 10).
#
# At the bottom, rows are multiplied by $\sqrt{d_{model}}$. We see below why.

# %%
class Embedding(nn.Module):
    """Rows of a matrix E (V, d_model), times sqrt(d_model) (Section 3.4).

    Token ids (B, T) -> (B, T, d_model). Rows start as N(0, 1 / d_model), so that
    scaled rows have variance 1. Raises ValueError for a token id outside the vocabulary
    (checked on a CPU; a GPU reports it as a device-side assert).
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        rows = torch.randn(vocab_size, d_model) / math.sqrt(d_model)
        self.weight = nn.Parameter(rows)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        try:
            return F.embedding(tokens, self.weight) * math.sqrt(self.weight.shape[1])
        except IndexError:
            V = self.weight.shape[0]
            wrong = tokens[(tokens < 0) | (tokens >= V)][0].item()
            raise ValueError(
                f"token id {wrong} is outside the vocabulary of {V} types "
                f"(0 to {V - 1}): "
                "encode the text with the tokenizer saved beside this model"
            ) from None


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

# %% [markdown]
# Two sentences of three tokens become vectors of 64 numbers, and each vector gives 1000 scores. Token 17 has the same vector
# in both sentences: a look-up knows no context. The last line sends the vectors straight
# back to the top: each token's own row fits best. With nothing between bottom and top, tied embeddings copy their input.
#
# A token that does not exist gets a sentence instead of a crash somewhere deep inside:

# %% tags=["active-ipynb"]
# try:
#     embedding(torch.tensor([[5, 1000]]))
# except ValueError as error:
#     print(error)

# %% [markdown]
# ## Why times $\sqrt{d_{model}}$?
#
# The matrix has two jobs that want two sizes. At the top, $E$ meets vectors $x$ whose numbers have variance 1 (LayerNorm,
# notebook 03). A logit is a sum of $d_{model}$ products; to have variance 1, the numbers in $E$ need
# variance $1/d_{model}$. At the bottom, a row is added to a positional encoding of sines and cosines (07), whose mean
# square is 1/2. A row with variance $1/d_{model}$ would be drowned by it. Times $\sqrt{d_{model}}$ its variance is 1.
#
# **Not in the paper:** it gives no reason for the factor (the above is ours), and names no initialisation. Rows from $N(0, 1/d_{model})$ are this project's choice.

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
# plotting.lines(widths, curves, "d_model", "variance", log="y", markers=True)
# assert all(abs(v - 1) < 0.1 for v in scaled + logits)

# %% [markdown]
# At $d_{model} = 512$ an unscaled row has variance 0.002, hundreds of times less than the positions beside it. The scaled rows
# and the logits (two lines, one on the other) stay at 1 for every width.

# %% [markdown]
# ## From scores to probabilities
#
# Softmax makes probabilities of the $V$ logits: all positive, adding up to 1.
#
# $$p_i = \frac{e^{z_i}}{\sum_{j=1}^{V} e^{z_j}}$$
#
# The largest logit is subtracted first. It cancels in the fraction, and without it $e^{z}$ overflows: in float32
# already $e^{89}$ is infinite.

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

# %% [markdown]
# A logit that is larger by 1 means a probability $e = 2.7$ times as large. The second row has the same differences, so the
# same probabilities.
#
# The loss of a prediction is $-\log p$ of the right token (*cross-entropy*; with the natural logarithm its unit is the *nat*). A
# model that knows nothing should answer $1/V$ for all, a loss of $\log V$. How far is the start from that, with rows of variance
# $1/d_{model}$, and with variance 1 (the default of torch's `nn.Embedding`)? (Random vectors of variance 1 stand for what the decoder hands over.)

# %% tags=["active-ipynb"]
# x = torch.randn(500, 512)
# gold = torch.randint(0, 2000, (500,))
# logits = Projection(Embedding(2000, 512))(x)
# start = F.cross_entropy(logits, gold).item()
# too_large = F.cross_entropy(math.sqrt(512) * logits, gold).item()
# print(f"log V = {math.log(2000):.2f}; loss at the start: {start:.2f}; "
#       f"with variance 1: {too_large:.2f}")
# assert abs(start - math.log(2000)) < 1
# assert too_large > 3 * start

# %% [markdown]
# With rows of variance 1 the model begins by being sure of wrong answers, many times worse than knowing nothing. With ours it is
# hardly worse than that (what is left comes from logits that differ by chance).

# %% [markdown]
# ## What sharing saves
#
# The paper's vocabulary has about 37,000 types; with it we count 63.0 million parameters in the base model (notebook 08; the paper says 65). Training with Adam keeps four
# numbers for each, of four bytes: the weight, its gradient, and two averages (notebook 12).

# %% tags=["active-ipynb"]
# for name, matrices in {"one matrix": 1, "three": 3, "saved": 2}.items():
#     numbers = matrices * 37_000 * 512
#     megabytes = numbers * 4 * 4 / 1e6
#     print(f"{name:11}{numbers:>11,} parameters, in training {megabytes:4.0f} MB")

# %% [markdown]
# Untied, the base model would have 101 million parameters, and more than half of them would be embeddings.

# %% [markdown]
# ## One matrix, three gradients
#
# Sharing also means learning from three places. If a matrix is used three times, its gradient is the sum of what each
# use alone would give. To see them apart, the loss below takes three matrices; all three may be the same one.

# %%
def three_uses(source, target, gold, E_source, E_target, E_output) -> torch.Tensor:
    """A loss that uses embeddings three times, without the model between them.

    source, target, gold: token ids (B, T). The mean of the source is added to each
    target vector, then scored; cross-entropy with gold, in nats.
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
# tied, = torch.autograd.grad(three_uses(source, target, gold, E, E, E), E)
# copies = [E.detach().clone().requires_grad_() for _ in range(3)]
# parts = torch.autograd.grad(three_uses(source, target, gold, *copies), copies)
#
# norms = [gradient.norm(dim=1) for gradient in (*parts, tied)]
# uses = ["source", "target", "output", "sum"]
# plotting.heatmap(norms, range(20), uses, labels=("row of E", ""))
# assert torch.allclose(tied, sum(parts), atol=1e-6)
# assert norms[2].min() > 0

# %% [markdown]
# Across are the 20 rows of $E$, in colour the size of each row's gradient. Source and target reach only the rows of tokens that
# occur (1 to 3, and 10 to 12). The output reaches every row: those of the right tokens (11 to 13) are pulled towards $x$, all
# others pushed a little away. So even a word that is missing from this batch learns something: that it was not the
# answer. An output matrix of its own would learn that, too. But with tying the same row is also the word's input vector.

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
# ours = Projection(embedding)(embedding(tokens).tanh())
# theirs = linear((4 * table(tokens)).tanh())
# direction = torch.randn_like(ours)
# our_gradient, = torch.autograd.grad((ours * direction).sum(), embedding.weight)
# their_gradient, = torch.autograd.grad((theirs * direction).sum(), table.weight)
# assert torch.allclose(ours, theirs, rtol=0, atol=1e-9)
# assert torch.allclose(our_gradient, their_gradient, rtol=0, atol=1e-9)

# %% [markdown]
# ## Exercise
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# The gradient of the loss $-\log p_{gold}$ with respect to the logits $z$ has a simple form. Write it with `softmax(z)`
# and `F.one_hot(gold, 4)`. (A hint: which scores should go up, and which down?)

# %% tags=["active-ipynb"]
# z = torch.randn(3, 4, requires_grad=True)  # three predictions among four types
# gold = torch.tensor([0, 3, 1])
# your_answer = ...
# if your_answer is not ...:
#     loss = -softmax(z)[range(3), gold].log().sum()
#     gradient, = torch.autograd.grad(loss, z)
#     assert torch.allclose(gradient, your_answer, atol=1e-6)

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_answer = softmax(z) - F.one_hot(gold, 4)`:
# what was predicted minus what was right. It is zero where the prediction is certain and correct.
# </details>

# %% [markdown]
# ## Next
#
# [07 Positional encoding](07_positions.ipynb) tells the words where they stand. In Colab the next notebook imports this
# module from the installed package; to try changes of your own, clone the repository and install it with
# `pip install -e .`.
