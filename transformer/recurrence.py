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
# have read. This notebook builds one that translates, first through a single vector, then with attention: a way to look back
# at every word. Attention was invented for such networks, and here one can see what for.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from transformer.checks import check_padding, check_sides, outside_vocabulary
from transformer.settings import check_sizes, named_sizes
from transformer.state import EncoderDecoder
from transformer.toys import rows_to_reverse


# %% [markdown]
# Each notebook is also a Python module, here `transformer/recurrence.py`. The next cell holds what only the pictures and checks
# below need; like them it stays out of the module. An `assert` that holds prints nothing.

# %% tags=["active-ipynb"]
# import copy
# import re
#
# from transformer import plotting
# from transformer.figures import diagrams
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # matrices as small as these gain nothing from a second core

# %% [markdown] tags=["question-21"]
# ## What does "transduction" mean?
#
# A transducer turns one kind of signal into another: a microphone, sound into voltage. **Sequence transduction** turns one
# sequence of symbols into another. Input and output may use other alphabets, differ in length, and stand in another order.
# The rules are learned from pairs: here a sentence and its translation ([notebook 10](10_data.ipynb) names the corpora) or its
# parse tree. The first pair below stands in the bundled corpus, made by a grammar; the others were made up for this page, in the
# manner of captions and of a treebank.

# %% tags=["active-ipynb"]
# pairs = {
#     "grammar": ("The cat that protects a mouse found its ball.",
#                 "Die Katze, die eine Maus schützt, fand ihren Ball."),
#     "caption": ("Two girls in yellow boots splash through a puddle.",
#                 "Zwei Mädchen in gelben Stiefeln platschen durch eine Pfütze."),
#     "parse tree": ("Old clocks rarely agree.",
#                    "S_ NP_ XX XX _NP ADVP_ XX _ADVP VP_ XX _VP XX _S"),
# }
# for name, sides in pairs.items():
#     before, after = (len(re.findall(r"\w+|[.,]", side)) for side in sides)
#     print(f"{name}, {before} -> {after} words and marks")
#     print(f"    {sides[0]}\n    {sides[1]}")

# %% [markdown]
# In the first pair a verb, *protects*, moves to the end of its clause, and *its* becomes *ihren* because *Katze* is feminine.
# In the third the output has no words at all: `NP_` and `_NP` are brackets around words that belong together, and `XX` stands for a
# word or mark, as Vinyals et al. (2015) wrote it ([notebook 18](18_parsing.ipynb) has more of this). So symbol $t$ of the output cannot be computed from symbol $t$ of the input. A
# transducer has to read before it writes. That is why a translator has two halves: an **encoder** reads, a **decoder** writes.

# %% [markdown]
# ## A network with a memory
#
# Sentences have any length; a layer has a fixed number of weights. Recurrence solves this by using the same weights at each
# position. A **state** $h$, a vector, stands for what was read so far. One step combines it with the next word, which is a
# vector too, $x_t$ (where that comes from, below):
#
# $$h_t = f(h_{t-1},\; x_t)$$
#
# Drawn in time, from left to right, a translator looks like this:

# %% tags=["active-ipynb"]
# words = ["the", "dog", "sleeps", "<s>", "der", "Hund", "schläft"]
# boxes = {f"x{i}": (i + (i > 2), 0, word, None) for i, word in enumerate(words)}
# for i in range(7):
#     boxes[f"h{i}"] = (i + (i > 2), 1, "h" + "₁₂₃₄₅₆₇"[i], 0 if i < 3 else 1)
# for i, word in enumerate([*words[4:], "</s>"], start=3):
#     boxes[f"y{i}"] = (i + 1, 2, word, None)
# arrows = [(f"x{i}", f"h{i}", 0) for i in range(7)]
# arrows += [(f"h{i}", f"h{i + 1}", 0) for i in range(6)]
# arrows += [(f"h{i}", f"y{i}", 0) for i in range(3, 7)]
# diagrams.flow(boxes, arrows, ax=plotting.new_axes(9, 2.6));

# %% [markdown]
# The encoder's states are blue, the decoder's orange. The decoder starts from the encoder's last state and a start mark `<s>`.
# Each word it writes is what it reads next, until it writes the end mark `</s>`. While training, the true target is known, so it
# reads that instead (*teacher forcing*).
#
# Follow the arrows between states: $h_7$ needs $h_6$, which needs $h_5$. **The steps must happen one after
# the other**, however many processors there are. That is the paper's complaint, and notebook 09 measures it.

# %% [markdown]
# ## One step
#
# The simplest $f$ is a layer of a network, $\tanh(W x + U h)$. In practice two others are used. Both have **gates**: numbers
# between 0 and 1 that say how much passes. The *gated recurrent unit* (GRU; Cho et al., 2014) has a reset gate $r$ and an
# update gate $z$. It makes a proposal $n$, for which $r$ says how much of the old state may be used, and mixes it with the old state; $z$ says how much of that is kept:
#
# $$r, z = \sigma(W_{r,z}\, x + U_{r,z}\, h), \qquad n = \tanh(W_n x + r \odot U_n h), \qquad h' = (1 - z) \odot n + z \odot h$$

# %% [markdown]
# $\sigma$, the sigmoid, brings any number between 0 and 1; $\odot$ multiplies number by number. This is torch's form: the
# published one multiplies $h$ by $r$ before $U_n$, and some papers swap $z$ and $1 - z$. The code adds biases. Shapes stand in
# brackets: (B, d) is a batch of B vectors of d numbers.

# %%
def gru_step(x, h, W, U, b_W, b_U):
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
# The older *long short-term memory* (LSTM; Hochreiter and Schmidhuber, 1997) keeps two vectors: a cell $c$ and the state $h$
# that it shows to others. At first the cell was only added to. Its gates were input $i$ and output $o$; Gers et al. (2000) gave
# it a third, forget $f$, which scales what the cell holds. Today's form has all three, each computed as the GRU's are,
# $i, f, o = \sigma(W_{i,f,o}\, x + U_{i,f,o}\, h)$:
#
# $$c' = f \odot c + i \odot \tanh(W_g x + U_g h), \qquad h' = o \odot \tanh(c')$$

# %%
def lstm_step(x, h, c, W, U, b_W, b_U):
    """One step of an LSTM (Gers et al., 2000): x (B, d_in), h, c (B, d) -> next h, c.

    W (4d, d_in), U (4d, d) and the biases (4d) hold input gate, forget gate, new
    content and output gate, in torch's order.
    """
    i, f, g, o = (F.linear(x, W, b_W) + F.linear(h, U, b_U)).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


# %% [markdown]
# A layer is this step in a loop over positions. Torch's `nn.GRU` and `nn.LSTM` do the loop in compiled code. With the same
# weights they agree, up to float32's rounding:

# %% tags=["active-ipynb"]
# gru = nn.GRU(8, 6, batch_first=True)
# lstm = nn.LSTM(8, 6, batch_first=True)
# x = torch.randn(3, 20, 8)
# h = torch.zeros(3, 6)
# h_lstm, c = torch.zeros(2, 3, 6)
# for t in range(20):
#     h = gru_step(x[:, t], h, *gru.parameters())
#     h_lstm, c = lstm_step(x[:, t], h_lstm, c, *lstm.parameters())
# print(f"largest difference, GRU:  {(gru(x)[1] - h).abs().max():.0e}")
# print(f"largest difference, LSTM: {(lstm(x)[1][1] - c).abs().max():.0e}")
# assert torch.allclose(gru(x)[0][:, -1], h, atol=1e-6)
# assert torch.allclose(lstm(x)[0][:, -1], h_lstm, atol=1e-6)

# %% [markdown] tags=["question-15"]
# ## Vanishing and exploding gradients: where do they go?
#
# Training asks: had the first word been a little different, how would the last state have changed? The answer, a list of rates of change called
# the **gradient**, travels back through every step, and each step multiplies it by a matrix. Take the plainest recurrence, $h_t = W h_{t-1} + x_t$. After
# $t$ steps the gradient has been multiplied by $W$ $t$ times. If $W$ makes vectors $g$ times as long, that is $g^t$:
# with $g = 0.9$ and $t = 100$ it is $0.00003$, with $g = 1.1$ it is $14{,}000$. They go where powers go.

# %%
def gradient_by_distance(layer, x):
    """Norms of the gradient of a layer's last output with respect to each input, (T,).

    The nearest input comes first. layer: x (B, T, d_in) -> outputs (B, T, d), alone or
    first of a tuple, as of torch's recurrent layers. The gradient is that of one
    number: a sum of the output's numbers with random weights.
    """
    x = x.detach().requires_grad_()
    y = layer(x)
    last = (y[0] if isinstance(y, tuple) else y)[:, -1]
    gradient = torch.autograd.grad((last * torch.randn_like(last)).sum(), x)[0]
    return gradient.norm(dim=-1).mean(dim=0).flip(0)


# %%
class LinearRecurrence(nn.Module):
    """h_t = W h_(t-1) + x_t, from h = 0: x (B, T, d) -> (B, T, d).

    W is g times a random rotation, so that W^t is g^t long.
    """

    def __init__(self, d, g):
        super().__init__()
        self.W = nn.Parameter(g * nn.init.orthogonal_(torch.empty(d, d)))

    def forward(self, x):
        states = [x[:, 0]]
        for x_t in x[:, 1:].unbind(dim=1):
            states.append(states[-1] @ self.W.T + x_t)
        return torch.stack(states, dim=1)


# %% [markdown]
# Left, this recurrence with three values of $g$. Right, the real ones as torch initialises them ("tanh" is the simplest $f$
# from above; for "forget gate near 1" one bias of the LSTM was set to 4 by hand), every curve divided by its value at distance 0. (The
# average is explained at the end of this section.)

# %% tags=["active-ipynb"]
# distance = range(100)
# d = 64
# x = torch.randn(16, 100, d)
# linear = {}
# for g in (0.9, 1.0, 1.1):
#     linear[f"g = {g}"] = gradient_by_distance(LinearRecurrence(d, g), x)
# open_gates = nn.LSTM(d, d, batch_first=True)
# open_gates.bias_ih_l0.data[d:2 * d] = 4.0  # the forget gate: keep nearly everything
# layers = {
#     "tanh": nn.RNN(d, d, batch_first=True),
#     "GRU": nn.GRU(d, d, batch_first=True),
#     "LSTM": nn.LSTM(d, d, batch_first=True),
#     "LSTM, forget gate near 1": open_gates,
#     "average of all inputs": lambda x: x.mean(dim=1, keepdim=True),
# }
# curves = {name: gradient_by_distance(layer, x) for name, layer in layers.items()}

# %% tags=["active-ipynb"]
# left, right = plotting.new_axes(5, 3.4, columns=2)
# axes = ("distance in steps", "gradient, nearest = 1")
# panels = ((left, linear, "h = W h + x"), (right, curves, "untrained layers"))
# for ax, some, title in panels:
#     relative = {name: curve / curve[0] for name, curve in some.items()}
#     plotting.lines(distance, relative, *axes, title, log="y", ax=ax)
# right.set_ylim(1e-12, 10);

# %% tags=["active-ipynb"]
# for g in (0.9, 1.0, 1.1):
#     curve = linear[f"g = {g}"]
#     assert torch.allclose(curve, curve[0] * g ** torch.arange(100.0), rtol=1e-3)
# final = {name: (curve[-1] / curve[0]).item() for name, curve in curves.items()}
# assert final["tanh"] < 1e-9
# assert final["LSTM, forget gate near 1"] > 1e3 * final["LSTM"]
# assert abs(final["average of all inputs"] - 1) < 1e-5

# %% [markdown]
# Left: straight lines on a logarithmic axis, exactly $g^t$. Right: as torch initialises them, tanh, GRU and LSTM forget a word within some
# twenty steps; its gradient is still there, but so small beside that of the nearest words that it can teach little. Gates help, **if** training opens them (below it
# does): with a forget gate near 1 the cell passes almost unchanged, and the curve stays high. The first LSTM was built for
# this: its cell was only added to, as if $f$ were 1.
#
# Why does the high curve dip, and rise again? The same layer with $U = 0$, whose gates and content do not read the last state:

# %% tags=["active-ipynb"]
# without_U = copy.deepcopy(open_gates)
# without_U.weight_hh_l0.data.zero_()
# curve = gradient_by_distance(without_U, x)
# before = curves["LSTM, forget gate near 1"]
# for name, some in (("as above", before), ("with U = 0", curve)):
#     shares = [f"{some[t] / some[0]:.2f} at distance {t}" for t in (0, 1, 50, 99)]
#     print(f"{name:11}" + ", ".join(shares))
# a_step = (curve[99] / curve[1]) ** (1 / 98)
# assert curve[1] < 0.8 * curve[0]
# assert abs(a_step - torch.sigmoid(torch.tensor(4.0))) < 0.01

# %% [markdown]
# Most of the dip stays. The newest word acts in two ways, through the cell and through the output gate; with $U = 0$ all earlier ones act through the cell only. Then the curve falls by a factor near $\sigma(4) = 0.98$ a
# step, which is the forget gate's. So what rises comes through $U$: each state enters the next step's gates and content. That is
# a second way back, and added to the first it makes some directions longer at each step. Far enough away they are all that is
# left, and the gradient begins to explode.

# %% [markdown]
# Exploding is cured by a simple rule: clip a gradient that is too long. Against vanishing there is a better way than
# gates: a shorter path. The flat line is an average of all inputs. There the distance does not matter, because every
# input is one step away. Attention is such an average, with weights.

# %% [markdown]
# ## Configuration
#
# Now the translator. First the sizes that the convolutional model of [notebook 02](02_convolution.ipynb) needs too, with the
# paper's names. The *vocabulary* is a numbered list of all words and marks that the model knows. An entry is called a *type*,
# its number an *id*, each occurrence in a sentence a *token*. Three ids are marks: the start, the end, and padding, which fills
# up short sentences so that a batch is a rectangle. (Dropout is for notebook 13; `forward_flops`, which counts additions and
# multiplications, for 11.)

# %%
@dataclass(frozen=True)
class SequenceConfig:
    """The fields that the models of notebooks 01 and 02 share.

    ValueError for a value out of its range.
    """

    vocab_size: int  # types in the vocabulary that both languages share
    d_model: int = 512  # width of every token's vector between layers
    N: int = 2  # layers in the encoder, and as many in the decoder
    P_drop: float = 0.1  # dropout on embeddings and between layers
    max_positions: int = 1024  # longest sentence in tokens
    pad_id: int = 0  # token id that fills up short sentences
    bos_id: int = 1  # token id that every target begins with
    eos_id: int = 2  # token id that every sentence ends with
    presets = {"tiny": dict(d_model=128), "small": dict(d_model=256), "base": dict()}

    def __post_init__(self):
        check_sizes(self)

    @classmethod
    def preset(cls, name: str, **changes):
        """A named size: "tiny", "small" or "base"; changes replace single fields."""
        return cls(**{**named_sizes(cls.presets, name), **changes})


# %%
@dataclass(frozen=True)
class RecurrenceConfig(SequenceConfig):
    """The sizes of a `RecurrentEncoderDecoder`.

    Deeper ones learn more slowly: there is no path around a layer.
    """

    cell: Literal["gru", "lstm"] = "gru"  # the kind of recurrent layer
    attention: bool = True  # look at every state of the encoder, or get one vector only

    def __post_init__(self):
        super().__post_init__()
        if self.d_model % 2:
            raise ValueError("d_model must be even, because the encoder reads in two "
                             f"directions, not {self.d_model}")
        if self.cell not in ("gru", "lstm"):
            raise ValueError(f"cell must be 'gru' or 'lstm', not {self.cell!r}")

    def forward_flops(self, S: int, T: int) -> int:
        """FLOPs of matrix products in one pass over a pair of S and T tokens."""
        d = self.d_model
        gates = {"gru": 3, "lstm": 4}[self.cell]
        # two halves of d / 2 read the source, a whole d writes the target
        layers = self.N * gates * (3 * S + 4 * T) * d * d
        start = 2 * d * d * self.N * (gates - 2)  # a layer's, of an LSTM two
        look = 2 * (S + T) * d * d + 4 * S * T * d if self.attention else 0
        return layers + start + look + 4 * T * d * d + 2 * T * d * self.vocab_size


# %% [markdown]
# ## What every encoder-decoder has
#
# The frame around the two halves is always the same. Below, a table with a vector for each type, the *embedding*. On top,
# the same table turns a vector into a score for each type, a *logit*. (Notebook 06 takes this apart, $\sqrt{d_{model}}$
# included.) Between encoder and decoder stands the *memory*, all that the encoder tells the decoder. In shapes, B counts the
# sentences of a batch, S and T the tokens of source and target, V the types. `EncoderDecoder` adds the three methods that training (14) and
# searching (15) ask for: `loss`, `start` and `step`. The Transformer has the same, so both work with all three models.

# %%
class SequenceToSequence(EncoderDecoder):
    """The frame: source (B, S) and target (B, T) ids -> logits (B, T, V).

    A subclass has `encode`, `states` and `new_caches`. Embedding and output share one
    matrix. Raises ValueError for a token id outside the vocabulary (checked on a CPU),
    an empty source sentence, and sides that do not pair up.
    """

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.output.weight = self.embedding.weight
        self.dropout = nn.Dropout(config.P_drop)

    def embed(self, tokens):
        """Token ids (B, T) -> vectors (B, T, d_model)."""
        try:
            return self.embedding(tokens) * math.sqrt(self.config.d_model)
        except IndexError:
            raise outside_vocabulary(tokens, self.config.vocab_size) from None

    def forward(self, source, target):
        check_sides(source, target)
        memory = self.encode(source)
        return self.output(self.states(target, memory, self.mask(source)))


# %% [markdown]
# A network that reads on through the padding would end in another state, so we need the true lengths.

# %%
def sentence_lengths(source, pad_id):
    """Tokens of each sentence without the padding at its end: (B, S) -> (B,).

    ValueError, naming it, for an empty sentence and for padding that stands before a
    token.
    """
    real = source != pad_id
    check_padding(real)
    return real.sum(dim=1)


# %% [markdown]
# ## The encoder
#
# A state knows only what stands to its left. So the encoder reads the sentence twice, from left to right and from right to
# left, each with half of the width, and joins the two states of each word. Torch does this with `bidirectional=True`;
# *packing* tells it where each sentence ends.

# %%
def recurrent_layers(c, bidirectional=False):
    """N layers of torch's GRU or LSTM, d_model wide in all.

    x (B, T, d_model) -> (B, T, d_model) and last states.
    """
    kind = {"gru": nn.GRU, "lstm": nn.LSTM}[c.cell]
    width = c.d_model // (2 if bidirectional else 1)
    between = c.P_drop if c.N > 1 else 0.0
    return kind(c.d_model, width, c.N, batch_first=True, bidirectional=bidirectional,
                dropout=between)


# %%
class RecurrentEncoder(nn.Module):
    """Reads in both directions: x (B, S, d_model) and lengths (B,) -> (B, S, d_model).

    What lies past a sentence's length is 0.
    """

    def __init__(self, config):
        super().__init__()
        self.layers = recurrent_layers(config, bidirectional=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True,
                                      enforce_sorted=False)
        states, _ = self.layers(packed)
        return pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])[0]


# %% [markdown]
# ## The bottleneck
#
# The first encoder-decoders (Cho et al., 2014; Sutskever et al., 2014) give the decoder one vector, whatever the length of the
# sentence: the state after the last word. Ours joins the last states of both directions.

# %%
def summary(states, lengths):
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
# Bahdanau et al. (2015) removed the bottleneck. Keep **all** states $m_1, \ldots, m_S$ of the encoder. For each word to be
# written, score how well each fits the decoder's state $q$; turn the scores into shares of sum 1 (*softmax*); and take the
# weighted sum, the *context*. The score is a small network, called **additive** because the two vectors meet in a sum:
#
# $$e_s = w^\top \tanh(W q + U m_s), \qquad a_s = \frac{\exp e_s}{\sum_i \exp e_i}, \qquad context = \sum_s a_s m_s$$

# %% [markdown]
# Today $q$ is called the *query*. Each $m_s$ has two parts to play: compared with $q$ it is a *key*, in the sum a *value*.
# [Notebook 04](04_attention.ipynb) comes back to them.

# %%
class AdditiveScore(nn.Module):
    """How well each query fits each key: w . tanh(W q + U k) (Bahdanau et al., 2015).

    q: (..., T, d_model), keys: (..., S, d_model), already multiplied by U -> (..., T,
    S). Multiplying them once, not at each step, is why `U` stays outside. It holds T *
    S * d_model numbers at once.
    """

    def __init__(self, d_model):
        super().__init__()
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.U = nn.Linear(d_model, d_model, bias=False)
        self.w = nn.Linear(d_model, 1, bias=False)

    def forward(self, q, keys):
        hidden = torch.tanh(self.W(q).unsqueeze(-2) + keys.unsqueeze(-3))
        return self.w(hidden).squeeze(-1)


# %% [markdown]
# Shares and sum are the same for any score, so they are a function of their own. A mask keeps the padding out: a score of
# $-\infty$ gives a share of 0.

# %%
def blend(scores, values, mask=None):
    """softmax(scores) values: scores (B, T, S), values (B, S, d) -> (B, T, d).

    mask (B, 1, S), True = may be looked at; each row needs at least one such value.
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim=-1) @ values


# %% [markdown]
# Equal to a loop that follows the formula word by word:

# %% tags=["active-ipynb"]
# score = AdditiveScore(16)
# q = torch.randn(2, 3, 16)
# m = torch.randn(2, 5, 16)
# real = torch.arange(5) < torch.tensor([[[5]], [[4]]])  # the second sentence is shorter
# context = blend(score(q, score.U(m)), m, real)
# W, U, w = score.W.weight, score.U.weight, score.w.weight[0]
# for b, length in ((0, 5), (1, 4)):
#     for t in range(3):
#         e = [(w @ torch.tanh(W @ q[b, t] + U @ m[b, s])).exp() for s in range(length)]
#         by_hand = sum(e[s] / sum(e) * m[b, s] for s in range(length))
#         assert torch.allclose(by_hand, context[b, t], atol=1e-6)

# %% [markdown]
# ## What is carried from word to word
#
# When the trained model writes, it gets one new token at a time. All it has to remember of what it wrote is its state: that is the charm of
# recurrence. A search over several beginnings, called *hypotheses* (notebook 15), copies states when one beginning goes on in
# two ways, and drops those of sentences that are done.

# %%
class Cache:
    """Tensors that a step leaves for the next one, a row for each hypothesis."""

    def __init__(self):
        self.tensors = ()

    def select(self, rows):
        """Keep these rows, in this order: hypotheses go, repeat, change places."""
        self.tensors = tuple(x.index_select(0, rows) for x in self.tensors)


# %% [markdown]
# ## The decoder
#
# Its first state is computed from the memory's first vector. In the bottleneck model that is the one vector. With
# attention it is the joined state of the first word, whose backward half has read the whole sentence.
# After the recurrent layers, state and context meet in one more layer.
#
# **Deviation: Bahdanau's decoder looks before each step, ours after it** (as in Luong et al., 2015). So torch's layer
# can run over the whole target in one call, and attention does all its positions at once.

# %%
def go_on(layers, x, state):
    """Run torch's layers from a state: x (B, T, d) -> y (B, T, d) and the last state.

    A state is a tuple of (B, N, d): a GRU has one tensor, an LSTM two. Torch wants the
    batch on their second axis; here it comes first, as everywhere.
    """
    state = tuple(s.transpose(0, 1).contiguous() for s in state)
    y, state = layers(x, state if len(state) == 2 else state[0])
    state = state if isinstance(state, tuple) else (state,)
    return y, tuple(s.transpose(0, 1).contiguous() for s in state)


# %%
class RecurrentDecoder(nn.Module):
    """Writes: x (B, T, d_model) over memory (B, S, d_model) -> (B, T, d_model).

    mask: (B, 1, S), True = may be looked at. own and cross are `Cache`s: states, and
    the keys of the memory.
    """

    def __init__(self, config):
        super().__init__()
        c = config
        self.vectors = {"gru": 1, "lstm": 2}[c.cell]  # an LSTM's state is two vectors
        self.start = nn.Linear(c.d_model, self.vectors * c.N * c.d_model)
        self.layers = recurrent_layers(c)
        self.score = AdditiveScore(c.d_model) if c.attention else None
        self.join = nn.Linear(2 * c.d_model, c.d_model)

    def first_state(self, memory):
        """(B, N, d_model), once for a GRU, twice for an LSTM."""
        start = torch.tanh(self.start(memory[:, 0]))
        start = start.unflatten(-1, (self.vectors, self.layers.num_layers, -1))
        return start.unbind(dim=1)

    def look(self, y, memory, mask, cross):
        """The context of each state: y (B, T, d_model) -> (B, T, d_model)."""
        if self.score is None:
            return memory.expand_as(y)
        if not cross.tensors:
            cross.tensors = (self.score.U(memory),)
        return blend(self.score(y, cross.tensors[0]), memory, mask)

    def forward(self, x, memory, mask, own, cross):
        y, own.tensors = go_on(self.layers, x, own.tensors or self.first_state(memory))
        context = self.look(y, memory, mask, cross)
        return torch.tanh(self.join(torch.cat([y, context], dim=-1)))


# %% [markdown]
# ## The model
#
# Both halves in their frame. The differences between the two versions: how many vectors the memory holds, hence which one the decoder starts from, and, with
# attention, the parameters of the score (32,896 in the preset "tiny", where $d_{model} = 128$).

# %%
class RecurrentEncoderDecoder(SequenceToSequence):
    """Recurrent encoder and decoder: ids (B, S) and (B, T) -> logits (B, T, V)."""

    def __init__(self, config):
        super().__init__(config)
        self.encoder = RecurrentEncoder(config)
        self.decoder = RecurrentDecoder(config)

    def encode(self, source):
        """Source ids (B, S) -> memory (B, S, d_model), or (B, 1, d_model)."""
        lengths = sentence_lengths(source, self.config.pad_id)
        states = self.encoder(self.dropout(self.embed(source)), lengths)
        return states if self.config.attention else summary(states, lengths)

    def new_caches(self):
        """Two empty caches: for the decoder's states, and for the memory's keys."""
        return [(Cache(), Cache())]

    def states(self, target, memory, source_mask, caches=None, start=0):
        """Target ids (B, T) over a memory -> the decoder's output (B, T, d_model).

        source_mask: (B, 1, 1, S), or None where every token is real. With caches the
        target holds new tokens only, from position start on.
        """
        own, cross = (caches or self.new_caches())[0]
        mask = None if source_mask is None else source_mask[:, 0]
        x = self.dropout(self.embed(target))
        y = self.dropout(self.decoder(x, memory, mask, own, cross))
        # under autocast (11) the layers give short numbers; the loss wants long ones
        return y.to(self.embedding.weight.dtype)


# %% tags=["active-ipynb"]
# source = torch.randint(3, 50, (4, 9))
# target = torch.randint(3, 50, (4, 7))
# for attention in (False, True):
#     config = RecurrenceConfig.preset("tiny", vocab_size=50, attention=attention)
#     model = RecurrentEncoderDecoder(config)
#     count = sum(p.numel() for p in model.parameters())
#     memory, logits = model.encode(source), model(source, target)
#     print(f"attention {attention!s:5}  memory {str(tuple(memory.shape)):12}  "
#           f"logits {tuple(logits.shape)}  {count:,} parameters")

# %% [markdown]
# ## What the bottleneck costs
#
# A task that needs every word of the input: say a row of digits backwards. Token 3 is the digit 0, and 13 types are enough.
# `rows_to_reverse` makes such rows, and what is to be said, between the marks.
#
# The models train for some seconds on new rows at each step, with a plain loop (06 explains the loss, 12 to 14 do it properly).
# At each position a model has to name the next token. So the target goes in without its last token, and is compared without its
# first.

# %%
def learn_to_reverse(model, steps):
    """Train an encoder-decoder on 64 rows of two to ten digits a step, and return it.

    The learning rate falls from 0.005 to 0; afterwards the model is in eval mode.
    """
    optimizer = torch.optim.Adam(model.train().parameters())
    for step in range(steps):
        source, target = rows_to_reverse(64, 2, 10)
        logits = model(source, target[:, :-1])
        gold = target[:, 1:]
        loss = F.cross_entropy(logits.flatten(0, 1), gold.flatten(), ignore_index=0)
        optimizer.param_groups[0]["lr"] = 0.005 * (1 - step / steps)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


# %% [markdown]
# The exam is harder: now the model reads its own words, and one mistake spoils the row.

# %%
@torch.no_grad()
def share_reversed(model, length, count=300):
    """The share of count new rows of a length that the model says backwards.

    Every digit and the end mark must be right.
    """
    source, target = rows_to_reverse(count, length, length)
    state = model.start(source)
    token = target[:, :1]
    right = torch.ones(count, dtype=torch.bool)
    for t in range(1, length + 2):
        token = model.step(token, state).argmax(dim=-1, keepdim=True)  # goes back in
        right &= token[:, 0] == target[:, t]
    return right.float().mean().item()


# %% [markdown]
# Both models are the same size but for the score, and see 16,000 rows:

# %% tags=["active-ipynb"]
# sizes = dict(vocab_size=13, d_model=48, N=1, P_drop=0.0)
# models = {}
# for name, attention in (("one vector", False), ("attention", True)):
#     config = RecurrenceConfig(**sizes, attention=attention)
#     models[name] = learn_to_reverse(RecurrentEncoderDecoder(config), steps=250)

# %% tags=["active-ipynb"]
# lengths = range(2, 15)
# right = {}
# for name, model in models.items():
#     right[name] = [share_reversed(model, length) for length in lengths]
# ax = plotting.lines(lengths, right, "digits in the row", "share of rows wholly right",
#                     "Saying digits backwards", markers=True)
# ax.axvspan(10.5, 14.5, color="#eeeeee");

# %% tags=["active-ipynb"]
# assert right["one vector"][0] > 0.9  # two digits
# assert right["one vector"][8] < 0.2  # ten digits
# assert right["attention"][8] > 0.4 + right["one vector"][8]

# %% [markdown]
# After so little training two digits go through one vector, ten do not: 48 numbers must hold the whole row, and the decoder must
# unpack them in order. With attention each digit stays where it is, and only the place to look at must be found. (Grey: longer
# than any row in training. There attention fails in the end, too; lengths one has never seen are another problem.)
#
# Notebook 16 asks the same question of real sentences. And where does the model look? The shares, from dark (0) to yellow (1):

# %% tags=["active-ipynb"]
# model = models["attention"]
# digits = [4, 7, 1, 9, 0, 3, 8, 5]
# source = torch.tensor([digits]) + 3
# target = torch.cat([torch.tensor([[1]]), source.flip(1)], dim=1)
# memory = model.encode(source)
# with torch.no_grad():
#     states, _ = go_on(model.decoder.layers, model.embed(target),
#                       model.decoder.first_state(memory))
#     scores = model.decoder.score(states, model.decoder.score.U(memory))
# weights = scores[0].softmax(dim=-1)  # (T, S)
# written = [*digits[::-1], "</s>"]
# plotting.heatmap(weights, digits, written, "From right to left", largest=1.0,
#                  labels=("digit read", "digit written"));

# %% [markdown]
# Rows are the digits it writes, columns the digits it reads. While it writes from top to bottom it looks from right to left.
# Nobody told it to. It is blurred: much goes to the neighbours of the right digit. Each state of the encoder knows its neighbours too, so they are easily confused. At the end mark there is
# nothing left to fetch. The picture is an *alignment*: which word comes from which. Bahdanau et al. drew such pictures of
# French and English.

# %% tags=["active-ipynb"]
# looked = weights[:8].argmax(dim=-1)
# assert (looked.diff() <= 0).float().mean() > 0.7  # mostly from right to left
# assert looked[0] > looked[7]

# %% [markdown]
# ### Did training open the way?
#
# With one vector the decoder gets the forward half's state after the last digit, and the backward half's after the first. Each has just read the
# digit at its own end. A digit in the middle must be carried at least four steps by either. Here is the backward half as a GRU of its own, on
# rows of ten digits, untrained and after both trainings. The update gate $z$ can be computed from its states; near 1 it keeps the old state.

# %% tags=["active-ipynb"]
# def backward_half(model):
#     gru = nn.GRU(48, 24, batch_first=True)
#     weights = model.encoder.layers.state_dict()
#     for name, weight in gru.named_parameters():
#         weight.data.copy_(weights[f"{name}_reverse"])
#     return gru
#
# def update_gates(gru, x):
#     before = F.pad(gru(x)[0], (0, 0, 1, -1))  # the state before each step, at first 0
#     W, U, b_W, b_U = gru.parameters()
#     r, z, n = (F.linear(x, W, b_W) + F.linear(before, U, b_U)).chunk(3, dim=-1)
#     return torch.sigmoid(z)

# %% tags=["active-ipynb"]
# source = rows_to_reverse(300, 10, 10)[0]
# untrained = RecurrentEncoderDecoder(RecurrenceConfig(**sizes))
# curves, opened = {}, {}
# for name, model in {"untrained": untrained, **models}.items():
#     half = backward_half(model)
#     x = model.embed(source).flip(1)
#     curve = gradient_by_distance(half, x)
#     curves[name] = curve / curve[0]
#     opened[name] = update_gates(half, x).mean().item()
#     print(f"{name:11} mean update gate {opened[name]:.2f}, "
#           f"gradient nine steps away {curves[name][9]:.3f}")
# plotting.lines(range(10), curves, "distance in steps", "gradient, nearest = 1",
#                "The encoder's backward half", log="y", markers=True)
# assert opened["one vector"] > 0.1 + opened["untrained"]
# assert curves["one vector"][9] > 10 * curves["untrained"][9]

# %% [markdown]
# It did, and most where more had to be carried. With one vector the gates let most of the old state through, and what is nine steps away counts tens of times
# as much as before training. With attention each digit can be looked up in its own place, so there was less to carry. Its mean gate hardly moved, and still the far digit counts more than before: a mean can hide
# single open gates, and $U$ is a way back, too.

# %% [markdown]
# ## Checks
#
# **Padding changes nothing**, and **token by token equals all at once**, with both cells and both memories.

# %% tags=["active-ipynb"]
# source = torch.randint(3, 50, (3, 8))
# target = torch.randint(3, 50, (3, 6))
# for cell, attention in (("gru", True), ("gru", False), ("lstm", True), ("lstm", False)):
#     config = RecurrenceConfig(50, d_model=32, N=2, cell=cell, attention=attention)
#     model = RecurrentEncoderDecoder(config).eval()
#     logits = model(source, target)
#     padded = model(F.pad(source, (0, 5)), F.pad(target, (0, 2)))[:, :6]
#     state = model.start(source)
#     steps = [model.step(target[:, [t]], state) for t in range(6)]
#     others = (padded, torch.stack(steps, dim=1))
#     worst = max((other - logits).abs().max() for other in others)
#     print(f"{cell:4} attention {attention!s:5} largest difference {worst:.0e}")
#     assert worst < 1e-5

# %% [markdown]
# **The decoder does not see the future.** The gradient of output $t$ with respect to the vectors of later words is exactly 0:

# %% tags=["active-ipynb"]
# seen = []
#
# def keep(module, inputs, output):
#     seen.append(output)
#
# model.embedding.register_forward_hook(keep)
# row = model(source, target)[:, 2].sum()
# gradient = torch.autograd.grad(row, seen[1])[0]  # the first call embedded the source
# assert gradient[:, :3].abs().sum(dim=-1).min() > 0
# assert gradient[:, 3:].abs().max() == 0

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right, and stops with an `AssertionError` when not.
#
# **1.** Which value of the update gate $z$ makes a GRU keep its state for ever, whatever it reads?

# %% tags=["active-ipynb"]
# your_z = ...
# if your_z is not ...:
#     h, n = torch.randn(6), torch.randn(100, 6)  # a state, and a hundred proposals
#     kept = h
#     for proposal in n:
#         kept = (1 - your_z) * proposal + your_z * kept
#     assert torch.equal(kept, h)

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_z = 1`: nothing of the proposal is taken. Such a state carries its gradient back undiminished, too.
# </details>
#
# **2.** How many weights and biases has one GRU layer of the decoder, with $d_{model} = 512$? (See the shapes in `gru_step`.)

# %% tags=["active-ipynb"]
# your_count = ...
# if your_count is not ...:
#     with torch.device("meta"):
#         assert your_count == sum(p.numel() for p in nn.GRU(512, 512).parameters())

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_count = 2 * 3 * 512 * 512 + 2 * 3 * 512`: 1,575,936. $W$ and $U$ have three blocks of 512 by 512 each, and each has
# biases.
# </details>

# %% [markdown]
# ## Next
#
# [02 Convolution](02_convolution.ipynb) gives up the chain of states: all positions at once, each seeing its neighbours. In
# Colab the next notebook imports this module from the installed package; to try changes of your own, clone the
# repository and install it with `pip install -e .`.
