# ---
# jupyter:
#   jupytext:
#     formats: notebooks/01_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 1 Recurrence
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/01_recurrence.ipynb)
#
# The paper begins with what it replaces (Section 1): networks that read a sentence word by word and carry along what they
# have read. At the end of this notebook you will have built one that turns one sequence into another, first through a single vector, then with attention,
# and will have seen why attention was invented. Reading takes about 25 minutes, running half a minute.

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
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

# %% [markdown]
# Each notebook is also a Python module, this one `transformer/recurrence.py`. The next cell holds what only the pictures and checks
# need; like them it does not become part of the module.

# %% tags=["active-ipynb"]
# import copy
# import re
#
# from transformer.teaching import toys
# from transformer.views import diagrams, plotting
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # matrices as small as these gain nothing from a second core

# %% [markdown] tags=["question-21"]
# ## What does "transduction" mean?
#
# A transducer turns one kind of signal into another, as a microphone turns sound into voltage. **Sequence transduction** turns one
# sequence of symbols into another. The two may use different alphabets, differ in length, and stand in a different order.
# The rules are learned from pairs: in this book a sentence and its translation ([10](10_data.ipynb) names the corpora) or a sentence and its
# parse tree. The first pair below stands in the bundled corpus, which a grammar made. The other two were made up for this page, in the
# manner of captions and of a treebank.

# %% tags=["active-ipynb"]
# pairs = {
#     "grammar": (
#         "The cat that protects a mouse found its ball.",
#         "Die Katze, die eine Maus schützt, fand ihren Ball.",
#     ),
#     "caption": (
#         "Two girls in yellow boots splash through a puddle.",
#         "Zwei Mädchen in gelben Stiefeln platschen durch eine Pfütze.",
#     ),
#     "parse tree": (
#         "Old clocks rarely agree.",
#         "S_ NP_ XX XX _NP ADVP_ XX _ADVP VP_ XX _VP XX _S",
#     ),
# }
# for name, sides in pairs.items():
#     before, after = (len(re.findall(r"\w+|[.,]", side)) for side in sides)
#     print(f"{name}, {before} -> {after} words and marks")
#     print(f"    {sides[0]}\n    {sides[1]}")

# %% [markdown]
# In the first pair the verb *protects* moves to the end of its clause, and *its* becomes *ihren* because *Katze* is feminine.
# In the third the output has no words at all: `NP_` and `_NP` are brackets around words that belong together, and `XX` stands for a
# word or mark ([18](18_parsing.ipynb) has more of this). So symbol $t$ of the output cannot be computed from symbol $t$ of the input alone. A
# translator has two halves for this reason: an **encoder** reads the whole input, and a **decoder** writes the output.

# %% [markdown]
# ## A network with a memory
#
# Sentences have any length, but a layer has a fixed number of weights. Recurrence solves this by using the same weights at every
# position. A **state** $h_t$, a vector, stands for what was read up to position $t$. One step $f$ combines the last state with the vector $x_t$ of the next word:
#
# $$h_t = f(h_{t-1},\; x_t)$$
#
# Drawn in time, from left to right, a translator looks like this, with the encoder's states grey and the decoder's green:

# %% tags=["active-ipynb"]
# diagrams.unrolled(["the", "dog", "sleeps"], ["der", "Hund", "schläft"]);

# %% [markdown]
# The decoder starts from the encoder's last state and a start mark `<s>`.
# Each word it writes is what it reads next, until it writes the end mark `</s>`. In training the true target is known, and the decoder
# reads that instead of its own words (*teacher forcing*).
#
# Follow the arrows between the states: $h_7$ needs $h_6$, which needs $h_5$. **If $f$ is not linear, as in the networks that are built here, the steps are computed one after the other**, however many processors there are. (All states can be guessed, then improved, at a price: Lim et al., 2024.) That is the paper's complaint, and notebook [09](09_complexity.ipynb) measures it. A linear step can be
# regrouped so that $n$ positions take about $\log_2 n$ rounds (exercise 3); later models make use of that.

# %% [markdown]
# ## One step
#
# The simplest $f$ is a layer of a network, $\tanh(W x + U h)$. It rewrites the whole state at every step. In practice two others are used, with **gates**: numbers between 0 and 1 that say how much passes, so that a part of the state can stay as it is.

# %% [markdown]
# The *gated recurrent unit* (GRU; Cho et al., 2014; here in torch's form, see exercise 1) has a reset gate $r$, which says how much of the old state enters a proposal $n$ for the new one, and an
# update gate $z$, which says how much of the old state is kept beside the proposal:
#
# $$r, z = \sigma(W_{r,z}\, x + U_{r,z}\, h), \qquad n = \tanh(W_n x + r \odot U_n h), \qquad h' = (1 - z) \odot n + z \odot h$$
#
# The sigmoid $\sigma$ turns any number into one between 0 and 1; $\odot$ multiplies number by number. The next state
# is $h'$. The code adds biases. (B, d)
# stands for a batch of B vectors of d numbers.


# %%
def gru_step(
    x: Tensor, h: Tensor, W: Tensor, U: Tensor, b_W: Tensor, b_U: Tensor
) -> Tensor:
    """One step of a GRU (Cho et al., 2014): x (B, d_in), h (B, d) -> the next h (B, d).

    W (3d, d_in), U (3d, d) and the biases (3d) hold reset, update and proposal, in this
    order, as in torch's weight_ih_l0, weight_hh_l0, bias_ih_l0 and bias_hh_l0.
    """
    r_x, z_x, n_x = F.linear(x, W, b_W).chunk(3, dim=-1)
    r_h, z_h, n_h = F.linear(h, U, b_U).chunk(3, dim=-1)
    r = torch.sigmoid(r_x + r_h)
    z = torch.sigmoid(z_x + z_h)
    n = torch.tanh(n_x + r * n_h)
    return (1 - z) * n + z * h


# %% [markdown]
# The older *long short-term memory* (LSTM; Hochreiter and Schmidhuber, 1997) keeps two vectors: a cell $c$, and the state $h$
# that it shows to others. The new content is a tanh, as in the GRU. Gate $i$ (input) scales the new content, $o$ (output) what is shown, $f$ (forget; Gers et al., 2000) what the cell holds. The gates are computed as the GRU's are,
# $i, f, o = \sigma(W_{i,f,o}\, x + U_{i,f,o}\, h)$:
#
# $$c' = f \odot c + i \odot \tanh(W_g x + U_g h), \qquad h' = o \odot \tanh(c')$$


# %%
def lstm_step(
    x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b_W: Tensor, b_U: Tensor
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM (Gers et al., 2000): x (B, d_in), h, c (B, d) -> next h, c.

    W (4d, d_in), U (4d, d) and the biases (4d) hold input gate, forget gate, new
    content and output gate, in torch's order.
    """
    i, f, g, o = (F.linear(x, W, b_W) + F.linear(h, U, b_U)).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


# %% [markdown]
# A recurrent layer is such a step in a loop over positions. Torch's `nn.GRU` and `nn.LSTM` do the loop in compiled code:

# %% tags=["active-ipynb"]
# gru = nn.GRU(8, 6, batch_first=True)
# lstm = nn.LSTM(8, 6, batch_first=True)
# x = torch.randn(3, 20, 8)
# h = torch.zeros(3, 6)
# h_lstm, c = torch.zeros(2, 3, 6)
# for t in range(20):
#     h = gru_step(x[:, t], h, *gru.parameters())
#     h_lstm, c = lstm_step(x[:, t], h_lstm, c, *lstm.parameters())
# assert torch.allclose(gru(x)[0][:, -1], h, atol=1e-6)
# assert torch.allclose(lstm(x)[0][:, -1], h_lstm, atol=1e-6)
# print("20 steps of ours equal torch's layers with the same weights: GRU and LSTM")

# %% [markdown] tags=["question-15"]
# ## Vanishing and exploding gradients: where do they go?
#
# Training changes each weight by its **gradient**: how the loss would change with it. To learn what to keep of the first word, it needs to know how the last state changes with that word. The answer travels back through every step, and each multiplies it by a matrix. Take the plainest recurrence, $h_t = U h_{t-1} + x_t$, whose $U$ makes every vector $g$ times as long. After $t$ steps the answer is $g^t$ times as long:
# for $g = 0.9$ and $t = 100$ that is $0.00003$, for $g = 1.1$ it is $14{,}000$. Near 0 it no longer tells training what to keep of the first word; too large, it changes the weights too much. If the step ends in a tanh, each step multiplies by its slope, too, which is at most 1.


# %%
def gradient_by_distance(layer: Callable, x: Tensor) -> Tensor:
    """Norms of the gradient of a layer's last output with respect to each input, (T,).

    The nearest input comes first. layer: x (B, T, d_in) -> outputs (B, T, d), alone or
    first of a tuple, as of torch's recurrent layers. The gradient is that of one
    number: a sum of the output's numbers with random weights.
    """
    x = x.detach().requires_grad_()
    y = layer(x)
    last = (y[0] if isinstance(y, tuple) else y)[:, -1]
    gradient = torch.autograd.grad((last * torch.randn_like(last)).sum(), x)[0]
    gradient = gradient.double()  # in fp32 squares may come out as 0
    return gradient.norm(dim=-1).mean(dim=0).flip(0)


# %% [markdown]
# We measure it for three kinds of untrained layers: the linear recurrence with three values of $g$; the tanh layer with four initialisations of its recurrent matrix $U$, torch's own and
# random rotations times $g$; and layers with gates.

# %% tags=["active-ipynb"]
# d = 64
# x = torch.randn(16, 200, d)  # the first half is not shown: it only comes before
#
#
# def tanh_layer(g):
#     layer = nn.RNN(d, d, batch_first=True)
#     nn.init.orthogonal_(layer.weight_hh_l0, gain=g)
#     return layer
#
#
# open_gates = nn.LSTM(d, d, batch_first=True)
# open_gates.bias_ih_l0.data[d : 2 * d] = 4.0  # the forget gate is near 1: keep it all
# cell_alone = copy.deepcopy(open_gates)
# nn.init.zeros_(cell_alone.weight_hh_l0)  # nothing comes back through h
# kinds = {
#     "h = U h + x": {f"g = {g}": toys.LinearRecurrence(d, g) for g in (0.9, 1.0, 1.1)},
#     "tanh": {"torch's start": nn.RNN(d, d, batch_first=True)}
#     | {f"rotation times {g}": tanh_layer(g) for g in (1.0, 1.5, 2.0)},
#     "gates, and an average": {
#         "GRU": nn.GRU(d, d, batch_first=True),
#         "LSTM": nn.LSTM(d, d, batch_first=True),
#         "LSTM, forget gate near 1": open_gates,
#         "the same, without U": cell_alone,
#         "average of all inputs": lambda x: x.mean(dim=1, keepdim=True),
#     },
# }

# %% tags=["active-ipynb"]
# axes, far = plotting.new_axes(4, 3.4, columns=3, sharey=True), {}
# for ax, (kind, layers) in zip(axes, kinds.items()):
#     curves = {name: gradient_by_distance(layer, x) for name, layer in layers.items()}
#     curves = {name: curve[:100] / curve[0] for name, curve in curves.items()}
#     plotting.lines(
#         range(100),
#         curves,
#         "distance in steps",
#         "gradient, nearest = 1",
#         kind,
#         log="y",
#         ax=ax,
#     )
#     far |= {(kind, name): curve[99].item() for name, curve in curves.items()}
# axes[0].set_ylim(1e-12, 1e9)
# axes[1].legend(loc="upper left", fontsize=8)
# for (kind, name), value in far.items():
#     print(f"{kind:21} {name:24} {value:8.1g} at distance 99")
# for g in (0.9, 1.0, 1.1):
#     assert abs(far["h = U h + x", f"g = {g}"] / g**99 - 1) < 1e-3
# assert far["tanh", "torch's start"] < 1e-9
# assert 1e-3 < far["tanh", "rotation times 1.5"] < 1 < far["tanh", "rotation times 2.0"]
# gates = "gates, and an average"
# assert far[gates, "LSTM, forget gate near 1"] > 1e3 * far[gates, "LSTM"]
# assert far[gates, "LSTM, forget gate near 1"] > 2 * far[gates, "the same, without U"]
# print(
#     "linear: exactly g to the power of the distance; the same tanh layer vanishes,"
#     "\nlasts or explodes, as its first weights are scaled"
# )

# %% [markdown]
# Left the lines are straight, exactly $g^t$. In the middle one kind of layer does all three: as torch initialises it, the gradient is under a thousandth after ten steps;
# with a rotation times 1.5 part of it arrives from 99 steps away; times 2 it explodes. So the weights decide, and training moves them.
#
# Gates as torch initialises them (right) help little. With a forget gate near 1 a good part is there after 99 steps. The cell alone (no $U$) keeps about 98% a step, which leaves less. The first LSTM had no forget gate: its cell was passed on whole and only added to.
#
# Exploding is cured by *clipping*: too long a gradient is cut to a fixed length. Against vanishing a shorter path helps. In an average all inputs are one step away, and its line is flat. Attention is an average with weights.

# %% [markdown]
# ## Words as numbers
#
# The *vocabulary* is a numbered list of the words and punctuation that a model knows. An entry is called a *type*,
# its number an *id*, each occurrence in a sentence a *token*. Three more ids are the start, the end, and the padding that brings
# the sentences of a batch to one length.
#
# A model's sizes have the paper's names: a vector has `d_model` numbers, each half has `N` layers, and training sets a share `P_drop` of the numbers between layers to 0 at random (*dropout*, [13](13_regularization.ipynb)).


# %%
@dataclass(frozen=True)
class RecurrenceConfig:
    """The sizes of a `RecurrentEncoderDecoder`; d_model is even."""

    vocab_size: int  # types in the vocabulary that both languages share
    d_model: int = 512  # width of every token's vector between layers
    N: int = 2  # layers in the encoder, and as many in the decoder
    P_drop: float = 0.1  # dropout on embeddings and between layers
    pad_id: int = 0  # token id that fills up short sentences


# %% [markdown]
# ## The encoder
#
# A state knows only what stands to its left. So the encoder reads the sentence twice, from left to right and from right to
# left, each with half of the width, and joins the two states of each word. Torch does this with `bidirectional=True`.
# Padding, if it were read too, would change the last state, so *packing* tells torch where each sentence ends.


# %%
class RecurrentEncoder(nn.Module):
    """Reads in both directions: x (B, S, d_model) and lengths (B,) -> (B, S, d_model).

    What lies past a sentence's length is 0.
    """

    def __init__(self, c: RecurrenceConfig):
        super().__init__()
        self.layers = nn.GRU(
            c.d_model,
            c.d_model // 2,
            c.N,
            batch_first=True,
            bidirectional=True,
            dropout=c.P_drop if c.N > 1 else 0.0,  # between layers
        )

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(
            x, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = self.layers(packed)
        return pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])[0]


# %% [markdown]
# ## The bottleneck
#
# Early encoder-decoders (Cho et al., 2014; Sutskever et al., 2014) give the decoder one vector, whatever the length of the
# sentence: the state after the last word. Ours joins the last states of both directions.


# %%
def summary(states: Tensor, lengths: Tensor) -> Tensor:
    """The one vector that has read all: states (B, S, d_model) -> (B, 1, d_model).

    The forward state of the last token stands beside the backward state of the first;
    lengths (B,) says which token is the last.
    """
    forward, backward = states.chunk(2, dim=-1)
    last = forward[torch.arange(len(states), device=states.device), lengths - 1]
    return torch.cat([last, backward[:, 0]], dim=-1)[:, None]


# %% [markdown]
# ## Attention
#
# Bahdanau et al. (2015) removed the bottleneck. They keep **all** states $m_1, \ldots, m_S$ of the encoder. For each word to be
# written, every state gets a score for how well it fits the decoder's state $q$. Softmax turns the scores into *weights* that are positive and add up to 1, and the
# states are summed with these weights to a *context*. The score is a small network, called **additive** because the two vectors meet in a sum:
#
# $$e_s = w^\top \tanh(W q + U m_s), \qquad a_s = \frac{\exp e_s}{\sum_i \exp e_i}, \qquad context = \sum_s a_s m_s$$
#
# Today $q$ is called the *query*. Each $m_s$ is a *key* where it is compared with $q$, and a *value* in the sum
# (more in [04](04_attention.ipynb)). Weights and sum stand in `blend`. A mask keeps the padding out: the lowest number
# there is, as a score, gives a weight of 0. (Where nothing may be looked at, softmax would share out its 1 all the same; the last factor makes that 0.)


# %%
class AdditiveScore(nn.Module):
    """How well each query fits each key: w . tanh(W q + U k) (Bahdanau et al., 2015).

    q: (..., T, d), keys: (..., S, d) -> (..., T, S). It holds T * S * d_hidden numbers
    at once; d_hidden is d if not given.
    """

    def __init__(self, d: int, d_hidden: int | None = None):
        super().__init__()
        d_hidden = d_hidden or d
        self.W = nn.Linear(d, d_hidden, bias=False)
        self.U = nn.Linear(d, d_hidden, bias=False)
        self.w = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, q: Tensor, keys: Tensor) -> Tensor:
        hidden = torch.tanh(self.W(q).unsqueeze(-2) + self.U(keys).unsqueeze(-3))
        return self.w(hidden).squeeze(-1)


def blend(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(scores) values: scores (B, T, S), values (B, S, d) -> (B, T, d).

    mask (B, 1, S), True = may be looked at; where nothing may, the result is 0.
    """
    if mask is None:
        return scores.softmax(dim=-1) @ values
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~mask, lowest).softmax(dim=-1) * mask
    return weights @ values


# %% tags=["active-ipynb"]
# score = AdditiveScore(16)
# q = torch.randn(2, 3, 16)
# m = torch.randn(2, 5, 16)
# real = torch.arange(5) < torch.tensor([[[5]], [[4]]])  # the second sentence is shorter
# context = blend(score(q, m), m, real)
# W, U, w = score.W.weight, score.U.weight, score.w.weight[0]
# for b, length in ((0, 5), (1, 4)):
#     for t in range(3):
#         e = [(w @ torch.tanh(W @ q[b, t] + U @ m[b, s])).exp() for s in range(length)]
#         by_hand = sum(e[s] / sum(e) * m[b, s] for s in range(length))
#         assert torch.allclose(by_hand, context[b, t], atol=1e-6)
# print("attention over two sentences at once equals the formula, word by word")

# %% [markdown]
# ## The decoder
#
# The decoder's first state is computed from the memory's first vector: the joined state of the first word, whose backward half has read the whole sentence. (In the bottleneck model it is the one vector.)
# After the recurrent layers, state and context meet in one more layer.
#
# **Deviation: Bahdanau's decoder looks before each step, ours after it** (as in Luong et al., 2015). So torch's layer
# can run over the whole target in one call, and attention does all its positions at once.


# %%
class RecurrentDecoder(nn.Module):
    """Writes: x (B, T, d_model) over memory (B, S, d_model) -> (B, T, d_model).

    mask (B, 1, S): which vectors of the memory may be looked at.
    """

    def __init__(self, c: RecurrenceConfig):
        super().__init__()
        self.start = nn.Linear(c.d_model, c.N * c.d_model)
        dropout = c.P_drop if c.N > 1 else 0.0  # between layers
        self.layers = nn.GRU(
            c.d_model, c.d_model, c.N, batch_first=True, dropout=dropout
        )
        self.score = AdditiveScore(c.d_model)
        self.join = nn.Linear(2 * c.d_model, c.d_model)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        start = torch.tanh(self.start(memory[:, 0]))
        start = start.unflatten(-1, (self.layers.num_layers, -1))  # (B, N, d_model)
        y, _ = self.layers(x, start.transpose(0, 1).contiguous())
        context = blend(self.score(y, memory), memory, mask)
        return torch.tanh(self.join(torch.cat([y, context], dim=-1)))


# %% [markdown]
# ## The model
#
# Around the two halves stands a table that turns ids into vectors, the *embedding*. At the top the same table turns the decoder's vectors into a score for each type, a *logit*
# ([06](06_embeddings.ipynb) takes this apart). The *memory* is all that the encoder tells the decoder. B counts the
# sentences of a batch, S and T the tokens of source and target, V the types.


# %%
class RecurrentEncoderDecoder(nn.Module):
    """Source ids (B, S) and target ids (B, T) -> logits (B, T, V)."""

    def __init__(
        self,
        config: RecurrenceConfig,
        encoder: Callable = RecurrentEncoder,
        decoder: Callable = RecurrentDecoder,
    ):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.output.weight = self.embedding.weight
        self.dropout = nn.Dropout(config.P_drop)
        self.encoder = encoder(config)
        self.decoder = decoder(config)

    def embed(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.embedding(tokens) * math.sqrt(self.config.d_model))

    def mask(self, source: Tensor) -> Tensor:
        return (source != self.config.pad_id)[:, None]  # (B, 1, S)

    def encode(self, source: Tensor) -> Tensor:
        """Source ids (B, S) -> memory (B, S, d_model)."""
        lengths = (source != self.config.pad_id).sum(dim=1)
        return self.encoder(self.embed(source), lengths)

    def states(self, target: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Target ids (B, T) over a memory -> the decoder's vectors (B, T, d_model)."""
        return self.dropout(self.decoder(self.embed(target), memory, mask))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory = self.encode(source)
        return self.output(self.states(target, memory, self.mask(source)))


# %% [markdown]
# The other model, without attention, has the same parts. Its memory is one vector; a softmax over one score gives it all the weight, so that the context is this vector at every step, and what the score has learned does not matter.

# %% tags=["active-ipynb"]
# class OneVector(RecurrentEncoderDecoder):
#     def encode(self, source):
#         lengths = (source != self.config.pad_id).sum(dim=1)
#         return summary(super().encode(source), lengths)
#
#     def mask(self, source):
#         return None  # no part of one vector is padding

# %% tags=["active-ipynb"]
# source = torch.randint(3, 50, (4, 9))
# target = torch.randint(3, 50, (4, 7))
# for kind in (OneVector, RecurrentEncoderDecoder):
#     model = kind(RecurrenceConfig(50, d_model=128))
#     count = sum(p.numel() for p in model.parameters())
#     memory, logits = model.encode(source), model(source, target)
#     print(
#         f"{kind.__name__:23}  memory {str(tuple(memory.shape)):12}  "
#         f"logits {tuple(logits.shape)}  {count:,} parameters"
#     )

# %% [markdown]
# Padding must change nothing, a sentence must not depend on the others of its batch, and the decoder must not see later words:

# %% tags=["active-ipynb"]
# source, target = source[:3], target[:3]
# source[0, 6:] = 0  # a shorter sentence
# for kind in (OneVector, RecurrentEncoderDecoder):
#     model = kind(RecurrenceConfig(50, d_model=32)).eval()
#     logits = model(source, target)
#     padded = model(F.pad(source, (0, 5)), F.pad(target, (0, 2)))[:, :7]
#     alone = model(source[:1, :6], target[:1])
#     later = torch.cat([target[:, :4], target[:, 4:].flip(1)], dim=1)
#     assert torch.equal(model(source, later)[:, :4], logits[:, :4])
#     assert torch.allclose(padded, logits, atol=1e-5)
#     assert torch.allclose(alone, logits[:1], atol=1e-5)
# print(
#     "with both memories: padding changes nothing, nor do a batch's other sentences,"
#     "\nand later words change nothing before them"
# )

# %% [markdown]
# A trained model writes one token at a time and would read all it has written anew for each. `transformer/fast/recurrence.py` has a `RecurrentEncoderDecoder` with these parameters that keeps its last state instead; it can have LSTMs, too, and it is what `transformer train --family recurrence` trains.

# %% [markdown]
# ## What the bottleneck costs
#
# The task is to say a row of two to ten digits backwards, so every digit of the input is needed. The models train on 64 new rows a step; the short loop stands in
# `transformer/teaching/toys.py`. The exam is harder than training: now the model reads its own words, and one mistake spoils the row.
# How much does one vector carry, and does that depend on the model's width, or on how long it trains?

# %% tags=["active-ipynb"]
# models = {}
# for kind, name, width, steps in (
#     (RecurrentEncoderDecoder, "attention", 48, 250),
#     (OneVector, "one vector", 48, 250),
#     (OneVector, "one vector", 96, 250),
#     (OneVector, "one vector", 48, 500),
# ):
#     model = kind(RecurrenceConfig(13, d_model=width, N=1, P_drop=0.0))
#     name = f"{name}, width {width}, {steps} steps"
#     models[name] = toys.learn_to_reverse(model, steps)
#
# right = {
#     name: [toys.share_reversed(model, length) for length in range(2, 13)]
#     for name, model in models.items()
# }
# ax = plotting.lines(
#     range(2, 13),
#     right,
#     "digits in the row",
#     "rows wholly right",
#     "Digits backwards (grey: longer than in training)",
#     markers=True,
# )
# ax.axvspan(10.5, 12.5, color="#eeeeee");

# %% tags=["active-ipynb"]
# attention, one, wider, longer = (shares[4] for shares in right.values())  # six digits
# assert attention > wider > one + 0.1 and longer > one + 0.1
# print(
#     f"rows of six digits right: one vector {one:.0%}, twice as wide {wider:.0%}, "
#     f"trained twice as long {longer:.0%}; with attention {attention:.0%}"
# )
# ten, eleven = next(iter(right.values()))[8:10]
# print(f"with attention, ten digits {ten:.0%}, eleven {eleven:.0%}")

# %% [markdown]
# After 250 steps the model with one vector says less than half of the rows of six digits rightly, and the model with attention more than nine of ten. (Of ten digits it, too, gets many wrong.) The vector is not *full*, though: ten digits are only 33 bits ($10 \log_2 10$), about what one of its 48 numbers takes in memory, and after more training it carries more. These runs (one seed, one learning rate) suggest that packing a row into one vector and unpacking it is *slow to learn*, and less slow in a model twice as wide. How much a vector could carry in the end, they do not tell. With attention each digit stays where it is, and only the place to look at must be learned. Notebook [16](16_translation.ipynb) asks it again, of translation.
#
# Where does the model with attention look?

# %% tags=["active-ipynb"]
# model = next(iter(models.values()))
# digits = [4, 7, 1, 9, 0, 3, 8, 5]
# source = torch.tensor([digits]) + 3  # token 3 is the digit 0
# target = torch.cat([torch.tensor([[1]]), source.flip(1)], dim=1)
# seen = []
# # torch calls a hook with the module, its input and its output: here the scores
# hook = model.decoder.score.register_forward_hook(lambda *call: seen.append(call[2]))
# model(source, target)
# hook.remove()
# weights = seen[0][0].detach().softmax(dim=-1)  # (T, S)
# written = [*digits[::-1], "</s>"]
# plotting.heatmap(
#     weights,
#     digits,
#     written,
#     "It looks from right to left",
#     largest=1.0,
#     labels=("digit read", "digit written", "weight"),
# )
# looked = weights[:8].argmax(dim=-1)
# assert looked[0] > looked[7] and (looked.diff() <= 0).float().mean() > 0.7
# print("most weight, digit by digit, at positions", *(looked + 1).tolist())

# %% [markdown]
# Rows are the digits it writes, from top to bottom, and columns the digits it reads. The model was never told where to look. The weights move from right to left, but they are blurred, and the largest is not always on the right digit, perhaps because each state of the encoder knows its neighbours too. At the end mark no digit is left to fetch, but the weights must add up to 1 all the same. Such a picture is an *alignment*: it shows which word comes from which. Bahdanau et al. drew such pictures for
# French and English.

# %% [markdown]
# ## Exercises
#
# Write each function in place of `...` and run the cell. The cell says "not tried yet", then what is wrong, then "right".
#
# **1.** Torch's GRU differs from the published one, which multiplies the old state by the reset gate *before* $U_n$: $n = \tanh(W_n x + U_n (r \odot h))$. Write this step, without biases. `W` and `U` hold
# the rows for $r$, $z$ and $n$ one after the other.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.recurrence import check_published_gru_step
#
#
# def published_gru_step(x, h, W, U):
#     """x (B, d_in), h (B, d), W (3d, d_in), U (3d, d) -> the next h (B, d)."""
#     ...
#
#
# check_published_gru_step(published_gru_step)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def published_gru_step(x, h, W, U):
#     W_r, W_z, W_n = W.chunk(3)
#     U_r, U_z, U_n = U.chunk(3)
#     r = torch.sigmoid(x @ W_r.T + h @ U_r.T)
#     z = torch.sigmoid(x @ W_z.T + h @ U_z.T)
#     n = torch.tanh(x @ W_n.T + (r * h) @ U_n.T)
#     return (1 - z) * n + z * h
# ```
#
# Torch's form needs one product with $U$ a step instead of two, because $r$ is not needed for it.
# </details>
#
# **2.** The weights of additive attention: for one query and the states of one sentence, who gets how much? Padding, where `real` is False, gets exactly 0.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.recurrence import check_additive_weights
#
#
# def additive_weights(q, m, W, U, w, real):
#     """q (d,), m (S, d), W and U (d, d), w (d,), real (S,) boolean -> weights (S,)."""
#     ...
#
#
# check_additive_weights(additive_weights)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def additive_weights(q, m, W, U, w, real):
#     scores = torch.tanh(W @ q + m @ U.T) @ w
#     powers = scores.exp() * real
#     return powers / powers.sum()
# ```
#
# The padding must be left out of the sum as well. For large scores `exp` would overflow; `softmax` subtracts the largest score first.
# </details>
#
# **3** (harder)**.** All states of $h_t = W h_{t-1} + x_t$ (with $h_0 = x_0$) in about $\log_2 T$ rounds, without a loop over positions (of the rounds the check knows nothing). After the first round position $t$ holds $x_t + W x_{t-1}$,
# after the second a sum of four, and so on.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.recurrence import check_linear_states
#
#
# def linear_states(W, x):
#     """W (d, d), x (T, d) -> all states (T, d)."""
#     ...
#
#
# check_linear_states(linear_states)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def linear_states(W, x):
#     reach = 1
#     while reach < len(x):
#         earlier = F.pad(x, (0, 0, reach, 0))[:len(x)]
#         x = x + earlier @ W.T
#         W = W @ W
#         reach = 2 * reach
#     return x
# ```
#
# In each round all positions can be computed at once. With a tanh around each step this regrouping is not possible.
# </details>

# %% [markdown]
# ## Next
#
# [02 Convolution](02_convolution.ipynb) gives up the chain of states: all positions are computed at once, and each sees its neighbours.
