# ---
# jupyter:
#   jupytext:
#     formats: notebooks/08_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 3 Model architecture
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/08_model.ipynb)
#
# The notebooks before this one built the parts: attention, position-wise networks, embeddings, positions, and the stacks
# that hold them. This one joins them into the Transformer of Figure 1. At the end you will have the whole model, know
# what it must never do and how to check that, know where its parameters sit (we count 63 million, the paper 65), and have seen a very small one
# learn to say numbers backwards. Reading takes about 30 minutes, running it half a minute.

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
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from transformer.attention import MultiHeadAttention, causal_mask, padding_mask
from transformer.embeddings import Embedding
from transformer.feed_forward import FeedForward
from transformer.positions import Positions
from transformer.stacks import DecoderLayer, EncoderLayer, Stack

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# import math
#
# import torch
# import torch.nn.functional as F
# from torch.nn.utils.rnn import pad_sequence
#
# import transformer
# from transformer import views
# from transformer.attention import attention, split_heads
# from transformer.core.weights import count_parameters
# from transformer.views import plotting
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # matrices as small as these gain nothing from a second core

# %% [markdown]
# ## The whole picture
#
# The model has two halves. The **encoder** reads the source sentence and turns it into one vector for each token,
# the *memory*. The **decoder** writes the target: it looks at the tokens so far and at the memory, and scores every type
# of the vocabulary as the next token. Bottom to top:

# %% tags=["active-ipynb"]
# views.whole_model()

# %% [markdown]
# Colours are notebooks: green is [06](06_embeddings.ipynb), red [07](07_positions.ipynb), blue
# [04](04_attention.ipynb), orange [05](05_feed_forward.ipynb), and the pale frames, with a sum and a norm after each sub-layer, are the layers of
# [03](03_stacks.ipynb), repeated N times. The thick line, to which every sub-layer is added, is the residual connection. The three green boxes are one
# matrix. Only one arrow leads from the left half to the right one; every decoder layer uses it. The last box, softmax, is left to the loss and to the search, which take logits. Dropout, on embeddings and on the output of each sub-layer, is not drawn.

# %% [markdown]
# ## Configuration
#
# A handful of sizes decides everything. Those that the paper names have its names, and their defaults are the paper's base
# model. Its other main model is big, the last row of Table 3.


# %%
@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of a Transformer, in the paper's names; its base model by default."""

    vocab_size: int  # types in the vocabulary of both languages (paper: about 37,000)
    d_model: int = 512  # width of every token's vector between layers
    d_ff: int = 2048  # hidden units of the position-wise network
    N: int = 6  # layers in the encoder, and as many in the decoder
    h: int = 8  # attention heads
    P_drop: float = 0.1  # dropout on each sub-layer's output and on embeddings
    pad_id: int = 0  # token id that fills up short sentences
    bos_id: int = 1  # token id that every target begins with
    eos_id: int = 2  # token id that every sentence ends with


# %% tags=["active-ipynb"]
# base = TransformerConfig(vocab_size=37000)
# big = TransformerConfig(vocab_size=37000, d_model=1024, d_ff=4096, h=16, P_drop=0.3)
# for name, c in (("base", base), ("big", big)):
#     print(
#         f"{name:4} d_model {c.d_model:4}  d_ff {c.d_ff:4}  N {c.N}  h {c.h:2}  "
#         f"P_drop {c.P_drop}"
#     )

# %% [markdown]
# ## First values
#
# **Deviation: the paper does not say how weights are initialised.** The models that `from transformer import Transformer` makes draw the numbers of a matrix from $m$ to $n$ units uniformly between $-\sqrt{6/(m + n)}$ and $\sqrt{6/(m + n)}$ (Glorot and Bengio, 2010; often called Xavier). Their variance is $2/(m + n)$, which is $1/d$ for a matrix of
# $d \times d$, so that a product keeps the size of a vector. $W_Q$, $W_K$ and $W_V$ start smaller by a factor of $\sqrt{2}$, as in torch's own layer, which
# stores the three as one matrix from $d$ to $3d$ units: $m + n$ is then $4d$ in place of $2d$. (Without it a small model's loss rose less with another sentence's source, but not clearly so at an equal loss: [14](14_training.ipynb).) Biases start at zero, and embeddings with variance $1/d_{model}$ ([06](06_embeddings.ipynb)).
#
# The class below leaves its matrices as torch's `nn.Linear` makes them, uniform between $-1/\sqrt{m}$ and $1/\sqrt{m}$.

# %% [markdown]
# ## From tokens to logits
#
# The class below is the picture above. Begin with `forward`: `encode` makes the memory, `decode` runs the decoder over
# it, and `score` makes logits of the decoder's vectors. The target is given as a whole, and all next tokens are predicted
# in parallel: row $t$ of the result sees the target up to and including token $t$, and scores token
# $t + 1$. No row would score the first token, so the target that goes in begins with a start mark: the paper calls it *shifted right*.

# %% [markdown]
# One place is left to hand something in: the class of the attention. With `from transformer import ...` this model comes in a larger form (`transformer/fast/model.py`) with the same parameters under the same names: it knows more sizes and parts, refuses wrong input with one sentence, and keeps what it has computed while it writes ([15](15_decoding.ipynb)).


# %%
class Transformer(nn.Module):
    """Figure 1: token ids of source (B, S) and target (B, T) -> logits (B, T, V).

    Row t scores the token after target[:, :t + 1]; padding is config.pad_id, behind a
    sentence.
    """

    def __init__(
        self, config: TransformerConfig, attention: Callable = MultiHeadAttention
    ):
        super().__init__()
        self.config = c = config
        self.embedding = Embedding(c.vocab_size, c.d_model)
        self.positions = Positions(c.d_model)
        self.dropout = nn.Dropout(c.P_drop)

        def heads():
            return attention(c.d_model, c.h)

        def network():
            return FeedForward(c.d_model, c.d_ff)

        self.encoder = Stack(
            EncoderLayer(heads(), network(), c.d_model, c.P_drop) for _ in range(c.N)
        )
        self.decoder = Stack(
            DecoderLayer(heads(), heads(), network(), c.d_model, c.P_drop)
            for _ in range(c.N)
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.score(self.decode(target, self.encode(source), source))

    def embed(self, tokens: Tensor) -> Tensor:
        """Ids (B, n) -> vectors with positions (B, n, d_model)."""
        return self.dropout(self.positions(self.embedding(tokens)))

    def encode(self, source: Tensor) -> Tensor:
        """Source ids (B, S) -> memory (B, S, d_model)."""
        return self.encoder(
            self.embed(source), padding_mask(source, self.config.pad_id)
        )

    def decode(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """Target ids (B, T) and the memory of a source -> vectors (B, T, d_model)."""
        so_far = causal_mask(target.shape[1], target.device)
        real = padding_mask(source, self.config.pad_id)
        return self.decoder(self.embed(target), memory, so_far, real)

    def score(self, x: Tensor) -> Tensor:
        """Compare vectors with every row of the embedding: (B, T, d_model) -> (B, T, V)."""
        return x @ self.embedding.weight.T


# %% [markdown]
# The decoder needs no mask for padding at the end of its own sentence: real tokens stand before it, and never look ahead.
#
# Here is a first run, with random tokens and random weights. The first logits are nearly normal, with mean 0 and variance 1 (why: see below). Then each power $e^z$ is $e^{1/2}$ on average, and the denominator of softmax about $V e^{1/2}$. The loss is the denominator's logarithm minus the score of the right token, which is 0 on average: about $\log V + \tfrac12$.

# %% tags=["active-ipynb"]
# config = TransformerConfig(vocab_size=1000, d_model=64, d_ff=128, N=2, h=4)
# model = Transformer(config).eval()
# source, target = torch.randint(3, 1000, (8, 9)), torch.randint(3, 1000, (8, 30))
# logits = model(source, target)
# loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), target[:, 1:].flatten()).item()
# print("memory", tuple(model.encode(source).shape), " logits", tuple(logits.shape))
# print(
#     f"variance of the logits {logits.var():.2f}, loss {loss:.2f}, "
#     f"log V + 1/2 = {math.log(1000) + 0.5:.2f}"
# )
# assert logits.shape == (8, 30, 1000) and abs(loss - math.log(1000) - 0.5) < 0.4

# %% [markdown]
# The memory has one vector for each source token, and the logits have one score for every type at each target token. The
# logits start with a variance near 1, because the last layer's output is normalised and embeddings have variance
# $1/d_{model}$. So the first loss is only half a nat above $\log V$, that of guessing all types alike. This is worth looking for in a new model, but it can fail, as we shall see.
#
# ## What it must never do
#
# **The decoder must not look ahead.** When the last target tokens change, no earlier logit may change, not even by
# rounding. A model that can look ahead copies the answer while it is trained, and fails when it has to write and
# there is no answer to copy.

# %% tags=["active-ipynb"]
# changed = target.clone()
# changed[:, 20:] = torch.randint(3, 1000, (8, 10))
# difference = (model(source, changed) - logits).abs().amax(dim=(0, 2))
# print("first row that differs:", difference.nonzero()[0].item())
# assert torch.equal(model(source, changed)[:, :20], logits[:, :20])
# assert (difference[20:] > 0).all()

# %% [markdown]
# **Padding must not change anything.** With nine tokens of padding after the source, and nine after the target, the logits stay the same, up to rounding (tensors of another shape may be summed in another order):

# %% tags=["active-ipynb"]
# padded = [F.pad(tokens, (0, 9), value=config.pad_id) for tokens in (source, target)]
# difference = (model(*padded)[:, :30] - logits).abs().max().item()
# print(f"largest difference {difference:.0e}")
# assert difference < 1e-5

# %% [markdown]
# **The other sentences of a batch must not change anything.** A sentence alone gives what it gives in a batch:

# %% tags=["active-ipynb"]
# alone = torch.cat([model(source[i : i + 1], target[i : i + 1]) for i in range(8)])
# assert torch.allclose(alone, logits, rtol=0, atol=1e-5)
# print("eight sentences one by one give what they give together")

# %% [markdown] tags=["question-16"]
# ## Sentences vary in length. Where is the variable size, if the weights are fixed?
#
# The variable size is in what the model computes, not in what it learns. Every learned matrix ($W_Q$, $W_1$, the embedding)
# works on one token's vector at a time, and does not know how many tokens there are. What grows with the sentence are the
# values that pass through: one vector for each token, and a table of attention weights with one number for each pair of tokens.
# Neither of them is a parameter; both are made anew from each input. Softmax and the weighted sum take any
# number of keys. Here are the same weights on 3 tokens and on 300:

# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# class KeepsWeights(MultiHeadAttention):
#     """Attention that keeps the weights (B, h, T, S) with which it last looked."""
#
#     def forward(self, query, key, value, mask=None):
#         q = split_heads(self.W_Q(query), self.h)
#         k = split_heads(self.W_K(key), self.h)
#         _, self.weights = attention(q, k, k, mask)
#         return super().forward(query, key, value, mask)
#
#
# watched = Transformer(config, KeepsWeights).eval()
# watched.load_state_dict(model.state_dict())
# for n in (3, 300):
#     tokens = torch.randint(3, 1000, (1, n))
#     logits_n = watched(tokens, tokens)
#     table = watched.encoder.layers[0].self_attention.weights
#     learned = sum(p.numel() for p in model.parameters())
#     print(
#         f"{n:3} tokens: logits {tuple(logits_n.shape)}, "
#         f"attention {tuple(table.shape)}, learned numbers {learned:,}"
#     )
#     assert torch.allclose(table.sum(dim=-1), torch.ones(1, 4, n), atol=1e-5)

# %% [markdown]
# The table of attention has $n \times n$ entries for each of four heads, and the learned numbers are the same. The length is
# limited by the computer's memory (and with learned positions, [07](07_positions.ipynb), by their table). The class with which we looked was handed in as `attention`.
#
# ## Counting parameters
#
# Parameters can be counted by hand. With $d$ for $d_{model}$, each attention has four matrices of $d^2$ numbers and no biases (each head has $1/h$ of them, so $h$ does not matter), each
# position-wise network has $2 d\, d_{ff} + d_{ff} + d$ numbers, and each LayerNorm $2d$. An encoder layer has one
# attention and two norms, a decoder layer two attentions and three norms. The embedding has $V d$ numbers, once: the output uses them, too. The sinusoids are not learned. On torch's
# `meta` device a model has shapes and no numbers, so that even big is built in a moment.

# %% tags=["active-ipynb"]
# def by_formula(V, d, d_ff, N):
#     feed_forward = 2 * d * d_ff + d_ff + d
#     encoder_layer = 4 * d * d + feed_forward + 4 * d
#     decoder_layer = 8 * d * d + feed_forward + 6 * d
#     return V * d + N * (encoder_layer + decoder_layer)

# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# for name, c, paper in (("base", base, 65), ("big", big, 213)):
#     with torch.device("meta"):
#         count = count_parameters(Transformer(c))
#     print(f"{name:4} {count:11,} = {count / 1e6:.1f} M; the paper says {paper} M")
#     assert count == by_formula(c.vocab_size, c.d_model, c.d_ff, c.N)
#     layers = by_formula(0, c.d_model, c.d_ff, c.N)
#     low, high = ((1e6 * (paper + half) - layers) / c.d_model for half in (-0.5, 0.5))
#     print(f"     {paper} M would need a vocabulary of {low:,.0f} to {high:,.0f} types")

# %% [markdown]
# The paper reports 65 and 213 million (Table 3) and does not say how it counted. The vocabulary has "about 37,000" types, but as
# the last lines show, no single size gives both numbers: base would need more types, big fewer. Biases in the attention would add
# under 0.1 million. So the differences stay unexplained: 3% for base, 0.6% for big. (The types are ranges because the paper rounds to millions.)
#
# Where the numbers sit:

# %% tags=["active-ipynb"]
# axes = plotting.new_axes(3.8, 3, columns=2)
# for ax, name, c in zip(axes, ("base", "big"), (base, big)):
#     parts = {
#         "embedding": c.vocab_size * c.d_model,
#         "attention": 12 * c.N * c.d_model**2,  # three times four matrices
#         "norms": 10 * c.N * c.d_model,  # five times two vectors
#     }
#     total = by_formula(c.vocab_size, c.d_model, c.d_ff, c.N)
#     parts["feed-forward"] = total - sum(parts.values())
#     millions = {part: count / 1e6 for part, count in parts.items()}
#     share = parts["embedding"] / total
#     title = f"{name}: {share:.0%} of {total / 1e6:.0f} million is embedding"
#     plotting.bars(millions, ylabel="million parameters", title=title, ax=ax)

# %% [markdown]
# Twice the widths ($d_{model}$ and $d_{ff}$) means four times the numbers in the matrices of every layer, but only twice
# the numbers in the embedding. In base the embedding holds nearly a third of all parameters; three separate matrices would hold
# more than half. The position-wise networks have more parameters than all attention together.

# %% [markdown]
# ## It learns
#
# So far all weights were random. Now a small model learns a language of thirteen types: three marks, and ten digits as
# words. Its task is to say a number backwards, as in [notebook 00](00_first_transformer.ipynb). That is easy to describe, and impossible for a model that does not know
# positions, or that does not look at the source.

# %% tags=["active-ipynb"]
# digits = "zero one two three four five six seven eight nine".split()
# words = ["<pad>", "<s>", "</s>", *digits]
#
#
# def examples(n):
#     """n random numbers of 2 to 5 digits, and the same backwards from <s> to </s>.
#
#     0 is padding, 1 and 2 are <s> and </s>. These sources have no end mark.
#     """
#     lengths = torch.randint(2, 6, (n,)).tolist()
#     numbers = [torch.randint(3, 13, (length,)) for length in lengths]
#     backwards = [F.pad(number.flip(0), (1, 0), value=1) for number in numbers]
#     targets = [F.pad(number, (0, 1), value=2) for number in backwards]
#     return [pad_sequence(rows, batch_first=True) for rows in (numbers, targets)]
#
#
# source, target = examples(3)
# for s, t in zip(source.tolist(), target.tolist()):
#     print(" ".join(words[i] for i in s), "   ->   ", " ".join(words[i] for i in t))

# %% [markdown]
# The training loop is a plain one: a batch, the loss of each next token (padding ignored), a step of Adam with a falling learning rate.
# The target goes in without its last token and is compared with the target without its first: shifted by one. Notebooks
# [12](12_optimizer.ipynb) to [14](14_training.ipynb) explain each piece and do it as the paper does.

# %% tags=["active-ipynb"]
# config = TransformerConfig(len(words), d_model=64, d_ff=128, N=1, h=2, P_drop=0.0)
#
#
# def loss_of(model, source, target):
#     logits = model(source, target[:, :-1])
#     gold = target[:, 1:].flatten()
#     return F.cross_entropy(logits.flatten(0, 1), gold, ignore_index=0)
#
#
# model = Transformer(config, KeepsWeights)
# optimizer = torch.optim.Adam(model.parameters())
# losses, seen = [], set()
# for step in range(400):
#     batch = examples(64)
#     seen.update(tuple(row[row > 0].tolist()) for row in batch[0])
#     loss = loss_of(model, *batch)
#     optimizer.param_groups[0]["lr"] = 0.004 * (1 - step / 400)
#     optimizer.zero_grad()
#     loss.backward()
#     optimizer.step()
#     losses.append(loss.item())
# print(
#     f"loss {losses[0]:.2f} at first, {losses[-1]:.4f} at the end; "
#     f"guessing the ten digits and the end {math.log(11):.2f}"
# )
# title = "the loss starts above guessing and falls to nearly nothing"
# plotting.lines(
#     range(400),
#     {"loss": losses, "guessing": [math.log(11)] * 400},
#     "step",
#     "loss per token (nats)",
#     title,
#     log="y",
# );

# %% [markdown]
# The loss falls far below that of guessing. But it starts above 4, and not near $\log 13 + \tfrac12 \approx 3.1$. We suspect the tied embeddings, with which the token just read has a high score at first
# ([notebook 06](06_embeddings.ipynb)), though it is seldom the next one. If so, models with three separate matrices start near 3.1. We build twenty of each, from the package's larger form of the class, which has a switch for it:

# %% tags=["active-ipynb"]
# source, target = examples(300)
# read, firsts = target[:, :-1], {}
# for name, tied in (("one matrix", True), ("three matrices", False)):
#     c = transformer.TransformerConfig(**vars(config), tie_embeddings=tied)
#     models = [transformer.Transformer(c) for _ in range(20)]
#     with torch.no_grad():
#         firsts[name] = torch.stack([loss_of(one, source, target) for one in models])
#         logits = torch.stack([one(source, read) for one in models])
#     just_read = F.one_hot(read, 13).bool() & (target[:, 1:, None] != 0)  # no padding
#     share = logits.softmax(dim=-1)[:, just_read].mean()
#     print(
#         f"{name}: loss {firsts[name].mean():.2f} on average at the start, "
#         f"{firsts[name].min():.2f} to {firsts[name].max():.2f}; "
#         f"the token just read gets {share:.0%}"
#     )
# assert firsts["one matrix"].mean() > firsts["three matrices"].mean() + 0.8

# %% [markdown]
# Three matrices do start near 3.1. With one matrix the token just read gets most of the probability. (The first model of this notebook, tied as well, started near $\log V + \tfrac12$ all the same: it has two layers, and 1,000 types, beside which one high score adds little to softmax's denominator.)
#
# To make the model write, we give it a source and the start mark, take the most probable next token, append this token to the target, and repeat. This is greedy decoding. We always write six tokens, and ignore what comes after the end mark.

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def answer(model, source, length=7):
#     tokens = torch.ones(len(source), 1, dtype=torch.long)  # <s>
#     while tokens.shape[1] < length:
#         logits = model(source, tokens)  # (B, T, V)
#         tokens = torch.cat([tokens, logits[:, -1:].argmax(dim=-1)], dim=1)
#     return tokens

# %% tags=["active-ipynb"]
# source, target = examples(300)
# written = answer(model.eval(), source).tolist()
# lengths = (target != 0).sum(dim=1).tolist()
# right = [t[:n] == a[:n] for t, a, n in zip(target.tolist(), written, lengths)]
# print(f"{sum(right)} of {len(right)} random numbers come out exactly backwards")
# sources = [tuple(row[row > 0].tolist()) for row in source]
# of_new = [r for r, digits in zip(right, sources) if digits not in seen]
# print(f"{sum(of_new)} of {len(of_new)} that training did not show")
# assert sum(of_new) > 0.8 * len(of_new)
# assert sum(right) > 0.8 * len(right)

# %% [markdown]
# After a few seconds of training the model says numbers backwards, and it does not do so by heart. There are 111,100 such numbers, nearly all of them with four or five digits; lengths are drawn equally often, so that training shows nearly all of the short ones. Those that it did not show come out backwards, too, with few exceptions.

# %% [markdown] tags=["question-18"]
# ## What is the decoder's output, and how does it become a word?
#
# The decoder stack returns vectors, one for each target token: $(B, T, d_{model})$. Multiplying by the embedding matrix
# compares each vector with every type's embedding, which gives scores, $(B, T, V)$. Softmax turns the scores into
# probabilities over the vocabulary. Choosing a type is a separate step; here it takes the index of the largest probability, an
# integer. The vocabulary, a list, turns the integer into a string.

# %% tags=["active-ipynb"]
# source = torch.tensor([[words.index(word) for word in "four seven one nine".split()]])
# written = answer(model, source)
# target = written[:, :5]
# with torch.no_grad():
#     x = model.decode(target, model.encode(source), source)
#     probabilities = model.score(x).softmax(dim=-1)
# best = probabilities.argmax(dim=-1)
# text = " ".join(words[i] for i in best[0])
# shapes = [str(tuple(tensor.shape)) for tensor in (x, probabilities, best)]
# print(" -> ".join([*shapes, repr(text)]))
# assert torch.equal(best, written[:, 1:6])  # read all at once as word by word

# %% tags=["active-ipynb"]
# rows = [f"after {words[i]}" for i in target[0]]
# looks = model.decoder.layers[0].cross_attention.weights  # of the last call
# looks = looks[0].mean(dim=0)  # of the first sentence, the mean of the heads
# left, right = plotting.new_axes(4.8, 3, columns=2)
# title = "the next word is nearly certain"
# labels = ("next word", "", "probability")
# plotting.heatmap(probabilities[0], words, rows, title, left, largest=1.0, labels=labels)
# title = "the decoder looks from right to left"
# labels = ("source", "", "weight, mean of heads")
# columns = [words[i] for i in source[0]]
# plotting.heatmap(looks, columns, rows, title, right, largest=1.0, labels=labels);

# %% [markdown]
# On the left each row is a distribution over all thirteen types, with nearly all of its weight on one type. Row by row the dark squares
# spell the number backwards, and then the end mark. On the right the decoder looks at the source from right to left while
# it writes; only the loss has taught it to. After the last digit the model still needs the source, because only the source
# tells that no digit is left. With "two" in front of the source, and the same target, the model does not stop but writes "two":

# %% tags=["active-ipynb"]
# longer = F.pad(source, (1, 0), value=words.index("two"))
# with torch.no_grad():
#     next_one = model(source, target)[0, -1].argmax().item()
#     other = model(longer, target)[0, -1].argmax().item()
# print("after the last digit:", words[next_one])
# print('with "two" in front of the source:', words[other])
# assert other == longer[0, 0]

# %% [markdown]
# ## Checks
#
# **The model equals `torch.nn.Transformer`** with the same weights. Torch's class has biases in attention (they start at zero),
# and one more norm at the end of each stack, which we leave out by handing it stacks without one. True means
# the opposite in its masks: a place that may not be attended to. It has no embeddings, so it gets ours.

# %% tags=["active-ipynb"]
# def copy_layer(ours, theirs):
#     pairs = [(ours.self_attention, theirs.self_attn)]
#     if isinstance(ours, DecoderLayer):
#         pairs += [(ours.cross_attention, theirs.multihead_attn)]
#     for a, b in pairs:
#         matrices = [a.W_Q.weight, a.W_K.weight, a.W_V.weight]
#         b.in_proj_weight.data = torch.cat(matrices).detach()
#         b.out_proj.weight.data = a.W_O.weight.detach().clone()
#         assert not b.in_proj_bias.any() and not b.out_proj.bias.any()
#     theirs.linear1.load_state_dict(ours.feed_forward.W_1.state_dict())
#     theirs.linear2.load_state_dict(ours.feed_forward.W_2.state_dict())
#     for i, residual in enumerate(ours.residuals, 1):
#         norm = getattr(theirs, f"norm{i}")
#         norm.weight.data = residual.norm.gain.detach().clone()
#         norm.bias.data = residual.norm.bias.detach().clone()

# %% tags=["active-ipynb"]
# sizes = dict(d_model=64, nhead=2, dim_feedforward=128, dropout=0.0, batch_first=True)
# layer_of_torch = nn.TransformerEncoderLayer(**sizes)
# encoder = nn.TransformerEncoder(layer_of_torch, 1, enable_nested_tensor=False)
# decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**sizes), 1)
# theirs = nn.Transformer(
#     64, 2, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
# )
# copy_layer(model.encoder.layers[0], encoder.layers[0])
# copy_layer(model.decoder.layers[0], decoder.layers[0])
# for some in (model, theirs):
#     some.double()

# %% tags=["active-ipynb"]
# source, target = examples(16)
# ignored = source == 0
# x, y = model.embed(source), model.embed(target)
# masks = dict(src_key_padding_mask=ignored, memory_key_padding_mask=ignored)
# output = theirs(x, y, tgt_mask=~causal_mask(target.shape[1]), **masks)
# difference = (model.score(output) - model(source, target)).abs().max().item()
# print(f"largest difference of the trained model's logits (float64): {difference:.0e}")
# assert difference < 1e-9

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Count the parameters of a Transformer from its sizes, with tied embeddings or with three separate matrices, and
# with or without biases in the four matrices of each attention.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.model import check_count
#
#
# def count(V, d, d_ff, N, tied, bias):
#     """The number of parameters of a Transformer with N layers in each stack."""
#     ...
#
#
# check_count(count)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def count(V, d, d_ff, N, tied, bias):
#     attention = 4 * d * d + (4 * d if bias else 0)
#     feed_forward = 2 * d * d_ff + d_ff + d
#     norm = 2 * d
#     encoder_layer = attention + feed_forward + 2 * norm
#     decoder_layer = 2 * attention + feed_forward + 3 * norm
#     matrices = 1 if tied else 3
#     return matrices * V * d + N * (encoder_layer + decoder_layer)
# ```
#
# With 37,000 types the base model without tying has 101 million parameters.
# </details>
#
# **2.** Make what training needs of a batch of targets: what goes into the decoder, and what its outputs are
# compared with. Each target is a list of ids without marks; add the marks (the decoder reads no end mark), and fill up with padding at the end.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.model import check_shifted
#
#
# def shifted(targets, pad_id, bos_id, eos_id):
#     """Lists of ids -> (decoder_input, gold), two tensors (B, T) of ids."""
#     ...
#
#
# check_shifted(shifted)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def shifted(targets, pad_id, bos_id, eos_id):
#     T = 1 + max(len(target) for target in targets)
#     decoder_input = torch.full((len(targets), T), pad_id)
#     gold = torch.full((len(targets), T), pad_id)
#     for row, target in enumerate(targets):
#         decoder_input[row, :len(target) + 1] = torch.tensor([bos_id, *target])
#         gold[row, :len(target) + 1] = torch.tensor([*target, eos_id])
#     return decoder_input, gold
# ```
#
# Row by row the two are the same sentence, one place apart. The last real token goes in as well: after it the model has to name
# the end mark.
# </details>
#
# **3.** Write greedy decoding for a single sentence: stop at the end mark or after `longest` tokens, and return the ids
# without marks. `logits_of(source, target)` is a model: ids $(1, S)$ and $(1, T)$ to logits $(1, T, V)$.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.model import check_greedy
#
#
# def greedy(logits_of, source, bos_id, eos_id, longest):
#     """Source ids (1, S) -> list of ids."""
#     ...
#
#
# check_greedy(greedy)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def greedy(logits_of, source, bos_id, eos_id, longest):
#     written = [bos_id]
#     while len(written) <= longest:
#         logits = logits_of(source, torch.tensor([written]))
#         best = logits[0, -1].argmax().item()
#         if best == eos_id:
#             break
#         written.append(best)
#     return written[1:]
# ```
#
# Only the last row of the logits is new at each step; all other rows were computed before.
# [Notebook 15](15_decoding.ipynb) keeps the keys and values of the tokens before, so that only the last token has to pass the decoder.
# </details>

# %% [markdown]
# ## Next
#
# Section 3 of the paper is complete. [09 Complexity](09_complexity.ipynb) asks what all this costs, beside recurrence and
# convolution. From [10 Data](10_data.ipynb) on there are real sentences, and notebooks 12 to 15 train and translate.
