# ---
# jupyter:
#   jupytext:
#     formats: notebooks/08_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 8 · The model
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/08_model.ipynb)
#
# *Section 3 of the paper, with its Figure 1. Reading takes about 25 minutes, running half a minute. You need chapters [3](03_stacks.ipynb) to [7](07_positions.ipynb).*
#
# One line of this chapter makes a mask for the decoder. Write `None` in its place, and Python does not complain: all shapes fit, the model trains, and its loss falls. It is useless all the same. How would you notice?
#
# To answer this we build the whole machine. [Chapter 0](00_first_transformer.ipynb) showed it whole, and now you know each part from inside.

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

from torch import Tensor, nn

from transformer.attention import MultiHeadAttention, causal_mask, padding_mask
from transformer.embeddings import Embedding
from transformer.feed_forward import FeedForward
from transformer.positions import Positions
from transformer.stacks import DecoderLayer, EncoderLayer, Stack

# %% tags=["active-ipynb"]
# import math
# from dataclasses import replace
#
# import torch
# import torch.nn.functional as F
# from torch.nn.utils.rnn import pad_sequence
#
# from transformer import load, views
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits

# %% [markdown]
# ## All the parts in one picture
#
# This is the paper's Figure 1, with the lanes of [chapter 3](03_stacks.ipynb) drawn in: each violet line carries the vector of one token. How does the right half learn what the left half has read?

# %% tags=["active-ipynb"]
# views.whole_model()

# %% [markdown]
# *Follow the blue line: what the source says reaches the decoder only through the memory, from above the encoder's last layer into the cross-attention of every decoder layer.*
#
# The **encoder** reads the source sentence and leaves the memory. The **decoder** reads the target tokens written so far, and in cross-attention their lanes ask the memory. At the top each lane is compared with every row of the embedding. So every entry of the vocabulary gets a score, its *logit*, and softmax turns the logits into probabilities of the next token.

# %% [markdown]
# ## The same picture as a class
#
# The picture leaves open how wide a lane is, how many layers there are, and which token ids have a special meaning. A config holds these choices, so that one class can be the paper's model and also the small ones of this chapter. If you give only the size of the vocabulary, you get the paper's base model.


# %%
@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of a Transformer, in the paper's names; its base model by default."""

    vocab_size: int  # entries of the vocabulary of both languages
    d_model: int = 512  # width of every lane
    d_ff: int = 2048  # hidden units of the feed-forward network
    N: int = 6  # layers in the encoder, and as many in the decoder
    h: int = 8  # attention heads
    P_drop: float = 0.1  # dropout
    pad_id: int = 0  # token id that fills up short sentences
    bos_id: int = 1  # token id that every target begins with, <s>
    eos_id: int = 2  # token id that every sentence ends with, </s>


# %% [markdown]
# The sums and norms of a layer are [chapter 3](03_stacks.ipynb)'s. Here we only hand them the sub-layers: a decoder layer has a second attention, which will look at the memory.


# %%
def encoder_layer(c: TransformerConfig) -> EncoderLayer:
    """One layer of the encoder, of a config's sizes."""
    self_attention = MultiHeadAttention(c.d_model, c.h)
    feed_forward = FeedForward(c.d_model, c.d_ff)
    return EncoderLayer(self_attention, feed_forward, c.d_model, c.P_drop)


def decoder_layer(c: TransformerConfig) -> DecoderLayer:
    """One layer of the decoder, of a config's sizes."""
    self_attention = MultiHeadAttention(c.d_model, c.h)
    cross_attention = MultiHeadAttention(c.d_model, c.h)
    feed_forward = FeedForward(c.d_model, c.d_ff)
    return DecoderLayer(
        self_attention, cross_attention, feed_forward, c.d_model, c.P_drop
    )


# %% [markdown]
# Read the class beside the figure. Begin with `forward`: `encode` is the left half, `decode` the right half, and `score` the last green box. The line of our question is the first one in `decode`.


# %%
class Transformer(nn.Module):
    """Figure 1: token ids of source (B, S) and target (B, T) -> scores (B, T, V).

    Row t has a score for each candidate to follow the tokens 0 to t of the target. Short
    sentences end with padding, config.pad_id.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = c = config
        self.embedding = Embedding(c.vocab_size, c.d_model)
        self.positions = Positions(c.d_model)
        self.dropout = nn.Dropout(c.P_drop)
        self.encoder = Stack(encoder_layer(c) for _ in range(c.N))
        self.decoder = Stack(decoder_layer(c) for _ in range(c.N))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.score(self.decode(target, self.encode(source), source))

    def embed(self, tokens: Tensor) -> Tensor:
        """Ids (B, n) -> the start of the lanes (B, n, d_model)."""
        return self.dropout(self.positions(self.embedding(tokens)))

    def encode(self, source: Tensor) -> Tensor:
        """Source ids (B, S) -> memory (B, S, d_model)."""
        real = padding_mask(source, self.config.pad_id)
        return self.encoder(self.embed(source), real)

    def decode(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """Target ids (B, T), the memory -> the end of the lanes (B, T, d_model)."""
        so_far = causal_mask(target.shape[1], target.device)  # for self-attention
        real = padding_mask(source, self.config.pad_id)  # for cross-attention
        return self.decoder(self.embed(target), memory, so_far, real)

    def score(self, x: Tensor) -> Tensor:
        """Compare vectors (B, T, d_model) with every row of the embedding: (B, T, V)."""
        return x @ self.embedding.weight.T


# %% [markdown]
# Two things are easy to miss. The picture has three green boxes, and the class has one `embedding`. The same matrix turns source and target tokens into vectors and, transposed, compares the top of each lane with its rows. (The package has a faster class, which can have three matrices, by its switch `tie_embeddings`; two other switches, `norm_first` and `positions`, choose pre-norm and other positions.)
#
# And `decode` asks for the source although it has the memory, because only the ids tell which vectors of the memory belong to padding ([chapter 4](04_attention.ipynb)). The mask `real` hides these vectors.

# %% [markdown] tags=["question-18"]
# ## How does a vector become a word?
#
# Before we break a model, let us see a sound one at work, the small translator of chapter 0. Its weights fit our class. `double` makes the model calculate with 16 digits, and `eval` switches dropout off.

# %% tags=["active-ipynb"]
# trained, tokenizer = load()
# c = trained.config
# model = Transformer(c).double().eval()
# model.load_state_dict(dict(trained.named_parameters()))  # each matrix by its name

# %% [markdown]
# Follow *The cat lost its ball.* on its way up. The German has come as far as *Die Katze verlor*. Next must come "its": *ihren* for the cat, but *seinen* for a *Hund*, a dog.
#
# With the end mark the source has seven tokens, and with the begin mark the target so far has four. A lane is 128 numbers wide, and the vocabulary has 3,500 entries. What are the shapes of the memory and of the logits ("scores" in the picture)?

# %% tags=["active-ipynb"]
# def encoded(english, german):
#     """A source with its end token and a target with its start token, both (1, n)."""
#     source = torch.tensor([[*tokenizer.encode(english), c.eos_id]])
#     target = torch.tensor([[c.bos_id, *tokenizer.encode(german)]])
#     return source, target
#
#
# @torch.no_grad()
# def follow(english, german):
#     source, target = encoded(english, german)
#     memory = model.encode(source)
#     x = model.decode(target, memory, source)
#     scores = model.score(x)
#     probabilities = scores[0, -1].softmax(dim=-1)  # the last row: what comes next
#     stations = dict(source=source, target=target, memory=memory, x=x, scores=scores)
#     return stations, probabilities
#
#
# stations, probabilities = follow("The cat lost its ball.", "Die Katze verlor")
# views.traced(stations, probabilities, tokenizer, N=c.N)

# %% [markdown]
# *Count the lanes: seven ids become seven lanes and four ids become four, and only the last step widens each of the four from 128 numbers to the whole vocabulary.*
#
# The vector above *verlor* is compared with all rows of the embedding, and softmax makes probabilities of its logits. The largest is that of *ihren*. The 0.057 of the others is spread thin, less than two in a hundred thousand for each on average.
#
# Inside the stacks the shape never changes. What changes is what the lanes hold. At the bottom of the fourth lane is *verlor*, a word already written, and at its top is a vector that fits *ihren*, a word not yet written.

# %% [markdown] tags=["question-16"]
# No learned number knows how many tokens there are, because every learned matrix works on the vector of one token. The length is only in what is computed: a lane for each token, and in every attention a table of pairs of tokens.

# %% [markdown]
# ## Does it translate, or does it only continue German?
#
# Leave *Die Katze verlor* as it is, and exchange the cat for a dog **in the source only**. Now the German so far says one animal and the English another. Which will the model believe?

# %% tags=["active-ipynb"]
# pronouns = {}
# for german in ("Die Katze verlor", "Der Hund verlor"):
#     for english in ("The cat lost its ball.", "The dog lost its ball."):
#         _, p = follow(english, german)
#         pronouns[english, german] = [
#             (word, p[tokenizer.encode(word)[0]].item()) for word in ("ihren", "seinen")
#         ]
# views.next_word(pronouns)

# %% [markdown]
# *Compare left with right and top with bottom: another animal in the English turns the pronoun around, and another animal in the German changes nothing.*
#
# The model believes the source. At the top right the German says *cat*, and the model gives the dog's pronoun all the same. It did so in all of 336 such contradictions ([evidence 8.1](evidence/08_model.ipynb)). Training did not ask for this choice, because there the two sentences never contradict each other.

# %% [markdown]
# ## What makes a model autoregressive?
#
# So far the model has named one word. A model that goes on from what it has written, up to the end mark `</s>`, is called **autoregressive**.
#
# In training the target goes in whole, and every token is asked for the next at once:
#
# ```text
# goes in:         <s>    Die     Katze    verlor
# must be named:   Die    Katze   verlor   ihren
# ```
#
# The begin mark moves all words one position to the right, which the paper calls *outputs (shifted right)*. So the answer to every question but the last is in the input, one position further on. Only the causal mask hides these answers: it is the line of our question. To see what becomes of a model without the mask, we need a game whose best possible loss is known.
#
# Throw a die six times, and write down for each throw the number on top and then the number underneath. Opposite faces add up to seven. So a game is twelve numbers, half of them luck and half of them certain.

# %% tags=["active-ipynb"]
# sizes = TransformerConfig(vocab_size=9, d_model=32, d_ff=64, N=1, h=4, P_drop=0.0)
#
#
# def games(count):
#     """Sources, targets, and the right answers; a source is </s> and says nothing."""
#     top = torch.randint(1, 7, (count, 6))
#     right = torch.stack([top, 7 - top], dim=2).flatten(1) + 2  # 1 to 6 have ids 3 to 8
#     source = torch.full((count, 1), sizes.eos_id)
#     target = F.pad(right[:, :-1], (1, 0), value=sizes.bos_id)  # <s>, then shifted right
#     return source, target, right

# %% [markdown]
# What is the best loss? A number on top has six equally likely values, which costs $\ln 6 = 1.79$ on average. A number underneath follows from the number on top, so it need not cost anything. The mean of both is 0.90. This is the floor: on many new games, a model cannot get below it without knowing the next throw. So a loss clearly below 0.90 is not skill but proof of cheating.
#
# Now we train two models in the same way. The second is our class with `None` where the causal mask was. Guess first: what loss will each reach on new games?

# %% tags=["active-ipynb"]
# class Peeking(Transformer):
#     def decode(self, target, memory, source):
#         real = padding_mask(source, self.config.pad_id)
#         return self.decoder(self.embed(target), memory, None, real)
#
#
# def train(kind, steps=600):
#     torch.manual_seed(0)
#     model = kind(sizes)
#     optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
#     for _ in range(steps):
#         source, target, right = games(32)
#         loss = F.cross_entropy(model(source, target).flatten(0, 1), right.flatten())
#         optimizer.zero_grad()
#         loss.backward()
#         optimizer.step()
#     return model.eval()
#
#
# def loss_on(player):
#     with torch.no_grad():
#         scores = player(source, target)
#     return F.cross_entropy(scores.flatten(0, 1), right.flatten()).item()
#
#
# players = {"with the causal mask": train(Transformer), "without it": train(Peeking)}
# source, target, right = games(1000)  # new ones
# losses = {name: loss_on(player) for name, player in players.items()}
# for name, loss in losses.items():
#     print(f"{name:20}  loss {loss:.3f}")

# %% [markdown]
# The first model comes close to the floor and stays above it. The second is far below it, on games that it has never seen. So it cheats.
#
# What is it worth when it has to write? Then the target ends at the number before. We count how often each of the twelve numbers is guessed right, first with the whole target as in training, then with only its beginning as in writing. The beginning always has the true numbers, so one wrong guess spoils no later one. We also print one game and what the second player writes in it.

# %% tags=["active-ipynb"]
# def guessed_right(guesses):
#     return (guesses == right).float().mean(dim=0).tolist()
#
#
# shares = {}  # {(training or writing, player): the share at each of the twelve numbers}
# with torch.no_grad():
#     for name, player in players.items():
#         in_training = player(source, target).argmax(dim=-1)
#         in_writing = torch.empty_like(in_training)
#         for t in range(12):
#             scores = player(source, target[:, : t + 1])  # nothing after token t
#             in_writing[:, t] = scores[:, -1].argmax(dim=-1)
#         shares["training", name] = guessed_right(in_training)
#         shares["writing", name] = guessed_right(in_writing)
# print("one game           ", *(right[0] - 2).tolist())
# print("written, without it", *(in_writing[0] - 2).tolist())
# views.dice(shares)

# %% [markdown]
# *Compare the two red panels: in training every number is right, and in writing only the last is clearly better than luck, because it is the only one that could not be copied.*
#
# With the mask, training and writing are the same game, since what comes later never mattered. Without it eleven of the twelve answers are in the input in training, and the model copies them. In writing nothing is there to copy. Compare the two printed lines: now it repeats the number that it has just read. For a number underneath this is never right, and it nearly always happens, in five trainings out of five ([evidence 8.4](evidence/08_model.ipynb)). Only the twelfth number was never in the input. There, and there alone, it had to learn that faces add up to seven.

# %% [markdown]
# ## How do you notice?
#
# Here the loss gave the cheat away, because we know its floor. But a leak may be small. In the next model a single row sees a single token too many: above the fifth token, which must name the third throw, the model sees that throw. How much can this save? One of the six costs of 1.79 goes away, shared among twelve numbers: $1.79 / 12 = 0.15$.

# %% tags=["active-ipynb"]
# class Leaking(Transformer):
#     def decode(self, target, memory, source):
#         mask = causal_mask(target.shape[1])
#         mask[4, 5] = True  # row 4 may look at its own answer
#         real = padding_mask(source, self.config.pad_id)
#         return self.decoder(self.embed(target), memory, mask, real)
#
#
# losses["one leak"] = loss_on(train(Leaking))
# print(f"with one leak the loss is {losses['one leak']:.3f}")

# %% [markdown]
# The model has found its leak and won most of the 0.15. Here this proves cheating, because we know the floor. But suppose that you saw the two losses, 0.905 and 0.793, in translation, where nobody knows the floor. You would keep the second model, and be proud of it.
#
# So the loss alone cannot tell. But three rules must hold in *any* model of this kind, trained or not, and you can test them without a look at its code.
#
# **1. No row may look ahead.** Change one token of the target, and see which rows of logits move. We take new models, which have learned nothing. Their random weights use whatever they can see, so a leak shows at once. Which squares will be filled?

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def moved(model, source, target):
#     """(T, T): does a row of scores (down) move with a target token (across)?"""
#     before = model(source, target)
#     columns = []
#     for t in range(target.shape[1]):
#         changed = target.clone()
#         changed[0, t] = (changed[0, t] + 1) % model.config.vocab_size
#         columns.append((model(source, changed) != before).any(dim=-1)[0])
#     return torch.stack(columns, dim=1)
#
#
# kinds = {"causal mask": Transformer, "one leak": Leaking, "no mask": Peeking}
# tables = {
#     name: moved(kind(sizes).eval(), source[:1], target[:1])
#     for name, kind in kinds.items()
# }
# for name, table in tables.items():
#     print(f"{name}: {table.triu(1).sum()} of 66 squares above the diagonal are filled")
# shown = {name: tables[name] for name in ("one leak", "no mask")}
# views.moved(shown, ["<s>", *["top", "under"] * 6][:12])

# %% [markdown]
# *Look above the diagonal: each red square is a row that moves with a token that comes after it, a single one on the left, and all of them on the right.*
#
# Where a square is white, the row of logits stays equal bit for bit, because a forbidden weight is exactly zero.
#
# So this is how you notice: before the first update you change every token once, and look which rows move. It takes a second, and even a leak at one position shows.

# %% [markdown]
# **2. Padding must mean nothing.** What fills up a short sentence must not change its logits. You would break this rule if you forgot the mask `real`. So put a sentence in once as it is and once with padding behind it.
#
# **3. Neighbours must not matter.** Each sentence of a batch must get the logits that it gets alone. You would break this rule if you confused two axes. Torch's own attention expects tokens first and sentences second, unless you write `batch_first=True`. If you forget this, each token looks not at its own sentence but at the same position of the *other* sentences, and no shape complains. So put a sentence in alone and beside another one of equal length, which needs no padding.
#
# We plant each of the two faults in the trained model and run both tests on all three. Which numbers will be zero?

# %% tags=["active-ipynb"]
# class Forgetful(Transformer):  # without the mask `real`
#     def encode(self, source):
#         return self.encoder(self.embed(source), None)
#
#     def decode(self, target, memory, source):
#         so_far = causal_mask(target.shape[1])
#         return self.decoder(self.embed(target), memory, so_far, None)
#
#
# class Mixing(Transformer):  # the encoder takes sentences for tokens
#     def encode(self, source):
#         x = self.embed(source).transpose(0, 1)
#         return self.encoder(x, None).transpose(0, 1)
#
#
# cat, begun = encoded("The cat lost its ball.", "Die Katze verlor")
# cow, _ = encoded("The cow saw the dog.", "")  # seven tokens, too
# changes, words = {}, {}
# for kind in (Transformer, Forgetful, Mixing):
#     name = kind.__name__
#     one = kind(c).double().eval()
#     one.load_state_dict(model.state_dict())
#     with torch.no_grad():
#         alone = one(cat, begun)[0]
#         padded = one(F.pad(cat, (0, 6), value=c.pad_id), begun)[0]
#         beside = one(torch.cat([cat, cow]), begun.expand(2, -1))[0]  # the cat's row
#     changes[name] = [(x - alone).abs().max().item() for x in (padded, beside)]
#     chosen = [x[-1].argmax().item() for x in (alone, padded, beside)]
#     words[name] = [tokenizer.decode([token]) for token in chosen]
#     moves = "padding moves {:.2f}, a neighbour {:.2f}".format(*changes[name])
#     print(f"{name:11}  {moves}  ", *words[name])

# %% [markdown]
# Each number is the largest change of any logit, and the three words are the next word alone, with padding, and with the neighbour. Each fault fails one test and passes the other, so you need both.
#
# Would you have noticed the faults by reading? `Mixing` has lost the pronoun, and its wrong choice depends on another sentence. But `Forgetful` says *ihren* three times. One of its logits moved by 0.25, so a token became $e^{0.25} = 1.3$ times as probable, compared with one whose logit stayed. The chosen word does not show this, and the test does.

# %% [markdown]
# ## Is it the paper's model?
#
# A model can keep all three rules and be another one. Torch has a class of its own for the two stacks, written from the same paper. We copy our trained weights into it. Torch stores $W_Q$, $W_K$ and $W_V$ as one matrix, and its masks are the opposite of ours ([chapter 4](04_attention.ipynb)). Two sentences of different length go in, so that padding counts.

# %% tags=["active-ipynb"]
# theirs = nn.Transformer(
#     c.d_model, c.h, c.N, c.N, c.d_ff, dropout=0.0, batch_first=True
# ).double()
# theirs.encoder.norm = theirs.decoder.norm = None  # torch's extra norms above the stacks
# our_layers = [*model.encoder.layers, *model.decoder.layers]
# their_layers = [*theirs.encoder.layers, *theirs.decoder.layers]
# for our, their in zip(our_layers, their_layers, strict=True):
#     attentions = [(our.self_attention, their.self_attn)]
#     if hasattr(our, "cross_attention"):
#         attentions.append((our.cross_attention, their.multihead_attn))
#     for a, b in attentions:
#         b.in_proj_weight.data = torch.cat(
#             [a.W_Q.weight, a.W_K.weight, a.W_V.weight]
#         ).data
#         b.out_proj.weight.data = a.W_O.weight.data
#     ours_left = [*our.feed_forward.parameters(), *our.residuals.parameters()]
#     theirs_left = [p for name, p in their.named_parameters() if "attn" not in name]
#     for p, q in zip(ours_left, theirs_left, strict=True):
#         q.data = p.data
#
# short, _ = encoded("The dog slept.", "")
# both = pad_sequence([short[0], cat[0]], batch_first=True, padding_value=c.pad_id)
# begun_twice = begun.expand(2, -1)  # one German beginning for each source
# hidden = both == c.pad_id
# x = theirs(
#     model.embed(both),
#     model.embed(begun_twice),
#     tgt_mask=~causal_mask(begun.shape[1]),
#     src_key_padding_mask=hidden,
#     memory_key_padding_mask=hidden,
# )
# gap = (model.score(x) - model(both, begun_twice)).abs().max().item()
# print(f"torch's scores differ from ours by at most {gap:.0e}")

# %% [markdown]
# What is left is rounding. Torch's class has no embedding and no positions, so both sides use ours, which chapters [6](06_embeddings.ipynb) and [7](07_positions.ipynb) tested. What stays open is how the weights start before training, which the paper does not say ([evidence 8.3](evidence/08_model.ipynb)).

# %% [markdown]
# ### Is it as large?
#
# One attention of the base model has four matrices of $512 \cdot 512$. Six encoder layers have one attention each and six decoder layers two. So all attention has $18 \cdot 4 \cdot 512^2$ parameters, 18.9 million. Which colour of the figure has more? Guess, for base and for the paper's big model, which is twice as wide.

# %% tags=["active-ipynb"]
# def by_part(config):
#     with torch.device("meta"):  # shapes without numbers, which need no memory
#         named = list(Transformer(config).named_parameters())
#     counts = {"embedding": 0, "attention": 0, "feed_forward": 0, "norm": 0}
#     for name, p in named:  # for example encoder.layers.0.self_attention.W_Q.weight
#         for part in counts:
#             if part in name:
#                 counts[part] += p.numel()
#     return counts
#
#
# base = TransformerConfig(vocab_size=37_000)
# big = replace(base, d_model=1024, d_ff=4096, h=16)
# views.parameters({"base": by_part(base), "big": by_part(big)})

# %% [markdown]
# *Compare the colours (the numbers are millions): the paper is called "Attention Is All You Need", but the largest share is orange, and in base the embedding alone has as many numbers as all attention.*
#
# The paper reports 65 million for base and 213 for big. We count fewer for base and more for big, so no other vocabulary would make both fit. The paper does not say how it counted ([evidence 8.2](evidence/08_model.ipynb)).

# %% [markdown]
# The page checks its own claims:

# %% tags=["active-ipynb"]
# floor = math.log(6) / 2
# assert losses["without it"] < 0.1 < losses["one leak"] < floor - 0.05
# assert floor < losses["with the causal mask"] < floor + 0.05
#
# assert min(shares["training", "without it"]) > 0.95
# under = slice(1, 11, 2)  # numbers underneath, without the twelfth
# assert max(shares["writing", "without it"][under]) < 0.1
# assert shares["writing", "without it"][11] > 0.95
# assert min(shares["writing", "with the causal mask"][under]) > 0.9
# assert max(shares["writing", "with the causal mask"][::2]) < 0.25  # on top: luck
#
# assert torch.equal(tables["causal mask"], torch.ones(12, 12).tril().bool())
# assert tables["one leak"].triu(1).sum() == 1 and tables["no mask"].all()
#
# assert max(changes["Transformer"]) < 1e-9
# assert changes["Forgetful"][0] > 0.1 and changes["Forgetful"][1] < 1e-9
# assert changes["Mixing"][0] < 1e-9 and changes["Mixing"][1] > 0.1
# assert words["Transformer"] == words["Forgetful"] == 3 * ["ihren"]
# assert words["Mixing"] == ["sein", "sein", "seinen"]
# assert gap < 1e-9
# print("the rules hold, torch agrees, and the model that looks ahead fails in writing")

# %% [markdown]
# ## What to keep
#
# - A Transformer is two stacks of lanes and one bridge: the encoder makes the memory, and the decoder turns what is written so far, with the memory, into logits for the next token.
# - One pass asks every row of a target for its next token, and only the causal mask makes this the same game as writing word by word.
# - No row may look ahead, and neither padding nor neighbours may matter; test these rules from outside, because a model that breaks them trains all the same, and its loss need not tell.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** The leak above let row 4 see token 5, and 0.15 could be saved. How much could be saved (a) if row 5 saw token 6 instead, and (b) if row 3 saw token 5? Row $t$ must name token $t + 1$. In (b), does it matter that the player has one layer?
#
# <details><summary>Answer</summary>
#
# (a) Nothing. Token 6 is the number underneath the third throw, which follows from the number on top. The best loss stays 0.90, so no loss could ever betray this leak.
#
# (b) With one layer nothing, because row 3 must name token 4, the number underneath the second throw, which it knows anyway. With two layers 0.15: after the first layer the lane of row 3 may hold the third throw, and in the second layer row 4 may look at row 3 and read its own answer there. So a leak travels upwards.
# </details>
#
# **2. In code.** A language model such as GPT continues a text: it has no source, no memory, and one stack. Build it from the parts that our `model` has. Which of its two stacks will you take, and which mask?

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.model import check_continued
#
#
# def continued(model, tokens):
#     """Ids (B, T) -> scores (B, T, V) of what comes next, with one stack of a model."""
#     ...
#
#
# check_continued(continued)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def continued(model, tokens):
#     x = model.embed(tokens)
#     so_far = causal_mask(tokens.shape[1])
#     x = model.encoder(x, so_far)
#     return model.score(x)
# ```
#
# It is the *encoder's* stack, because its layers have no cross-attention. What lets it go on from its own words is the mask, under which training and writing are one game.
# </details>
#
# **3. In code.** You are handed a model, and somebody may have planted a fault in it. Tell from outside which rule it breaks. The checker tries a sound model and four with faults, one of which leaks at a single place.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.model import check_broken_rule
#
#
# def broken_rule(model, source, target):
#     """1 if a row looks ahead, 2 if padding moves scores, 3 if a neighbour does, else 0.
#
#     source (1, S) and target (1, T) have no padding; padding is model.config.pad_id.
#     """
#     ...
#
#
# check_broken_rule(broken_rule)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def broken_rule(model, source, target):
#     if moved(model, source, target).triu(1).any():  # above the diagonal
#         return 1
#     padded = F.pad(source, (0, 3), value=model.config.pad_id)
#     alone = model(source, target)
#     if (model(padded, target) - alone).abs().max() > 1e-3:
#         return 2
#     two = torch.cat([source, source.flip(1)])  # a neighbour of equal length
#     change = model(two, target.expand(2, -1))[:1] - alone
#     return 3 if change.abs().max() > 1e-3 else 0
# ```
#
# If you change the last token alone, the small leak stays hidden. Padding and neighbours change the shapes, so torch may add in another order, and the last of seven digits may differ. A change of 0.001 is far above that.
# </details>
#
# **4. To think about.** The decoder hides padding in the *source*. Why does it need no such mask for padding in its own sentence? And what would go wrong if you filled up targets on the left?
#
# <details><summary>A thought</summary>
#
# Padding is behind the sentence, and no row looks ahead, so no real token ever sees it. The padding's own rows are ignored by the loss ([chapter 14](14_training.ipynb)). With padding on the left every real token would see it, and the first word would not be at the first position.
# </details>
#
# **Next.** Now we know what the machine is. [Chapter 10](10_data.ipynb), the next of the main path, asks what it reads, and [chapter 9](09_complexity.ipynb) what it costs.
