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
# To answer this we build the whole machine. You met it in [chapter 0](00_first_transformer.ipynb), when most of its parts were only names. Now you know each of them from inside.

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
# from transformer.teaching.torchs import torchs_scores
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits

# %% [markdown]
# ## All the parts in one picture
#
# This is the paper's Figure 1, with the lanes of [chapter 3](03_stacks.ipynb) drawn in. Each violet line is a bundle of lanes, one for every token. Before you read on, find the only way from the left half to the right half.

# %% tags=["active-ipynb"]
# views.whole_model()

# %% [markdown]
# *Everything that the decoder knows about the source comes through one blue line, which starts above the encoder's last layer and ends in the cross-attention of every decoder layer.*
#
# The **encoder** reads the source sentence and leaves the *memory*, one vector for every source token. The **decoder** reads the target tokens written so far. In cross-attention their lanes ask the memory: queries come from the decoder, keys and values from the memory. At the top each lane is compared with every row of the embedding. So every entry of the vocabulary gets a score, and softmax turns the scores into probabilities of the next token.

# %% [markdown]
# ## The same picture as a class
#
# A few sizes decide everything else. If you give only the size of the vocabulary, you get the paper's base model.


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
# Now read the class beside the figure. Begin with `forward`: `encode` is the left half, `decode` the right half, and `score` the last green box. The line of our question is the first one in `decode`.


# %%
class Transformer(nn.Module):
    """Figure 1: token ids of source (B, S) and target (B, T) -> scores (B, T, V).

    Row t scores the token after target[:, :t + 1]; padding is config.pad_id, behind a
    sentence.
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
        so_far = causal_mask(target.shape[1], target.device)
        real = padding_mask(source, self.config.pad_id)
        return self.decoder(self.embed(target), memory, so_far, real)

    def score(self, x: Tensor) -> Tensor:
        """Compare vectors (B, T, d_model) with every row of the embedding: (B, T, V)."""
        return x @ self.embedding.weight.T


# %% [markdown]
# Two things are easy to miss. The picture has three green boxes, and the class has one `embedding`. The same matrix turns source and target tokens into vectors and, transposed, compares the top of each lane with its rows.
#
# And `decode` asks for the source although it has the memory. Short sentences of a batch are filled up with **padding**, and only the ids tell which vectors of the memory belong to it. The mask `real` hides the padding.

# %% [markdown]
# ## Where are the parameters?
#
# Count the attention of the base model by hand. One attention has four matrices of $512 \cdot 512$, about a million numbers. Six encoder layers have one attention each and six decoder layers two, which makes eighteen, so all attention together has 18.9 million parameters. Which colour of the figure has more? Guess, for base and for the paper's big model, which is twice as wide. (On torch's device `meta` a model has shapes and no numbers.)

# %% tags=["active-ipynb"]
# def by_part(config):
#     with torch.device("meta"):
#         named = list(Transformer(config).named_parameters())
#     parts = ("embedding", "attention", "feed_forward", "norm")
#     return {part: sum(p.numel() for name, p in named if part in name) for part in parts}
#
#
# base = TransformerConfig(vocab_size=37_000)
# big = replace(base, d_model=1024, d_ff=4096, h=16)
# views.parameters({"base": by_part(base), "big": by_part(big)})

# %% [markdown]
# *Compare the colours (the numbers are millions): the paper is called "Attention Is All You Need", but the largest share is orange, and in base the embedding alone has as many numbers as all attention.*
#
# Twice the width makes four times as many numbers in every layer, but only twice as many in the embedding. The paper reports 65 and 213 million, and does not say how it counted ([evidence 8.2](evidence/08_model.ipynb)).

# %% [markdown] tags=["question-18"]
# ## How does a vector become a word?
#
# The model that ships with this book is a small Transformer of this kind, trained on sentences of a made-up grammar. Its weights fit our class. (`double` makes it calculate with 16 digits, which we shall need, and `eval` switches dropout off.)

# %% tags=["active-ipynb"]
# trained, tokenizer = load()
# c = trained.config
# model = Transformer(c).double().eval()
# weights = dict(trained.named_parameters())  # names the shared matrix once
# model.load_state_dict(weights)

# %% [markdown]
# Follow *The cat lost its ball.* on its way up. The German has come as far as *Die Katze verlor*. Next must come "its": *ihren* if the owner's noun is feminine, as *Katze* is, and *seinen* if it is masculine, as *Hund*, the dog, is.
#
# With their start and end tokens the source has seven tokens and the target so far has four. A lane is 128 numbers wide, and the vocabulary has 3,500 entries. What are the shapes of the memory and of the scores?

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
# *Follow the shapes from below: seven ids become seven lanes and four ids become four, and only the last step widens each lane to the whole vocabulary.*
#
# The decoder puts out one vector for each target token. The one above *verlor* is compared with all rows of the embedding, and softmax makes probabilities of its scores. We choose the largest. Its place is a whole number, and the vocabulary, a list, turns this number into the string *ihren*.
#
# Inside the stacks the shape never changes. What changes is what the lanes hold. At the bottom of the fourth lane is *verlor*, a word already written, and at its top is a vector that fits *ihren*, a word not yet written.

# %% [markdown] tags=["question-16"]
# ### Which learned number knows how long the sentence is?
#
# Seven tokens and four have gone through the same model. Which of its 1.4 million learned numbers says how many there are? None. Every learned matrix works on the vector of one token. The length is only in what is *computed*: one lane for each token, and in each head a table with one weight for each pair of tokens. The model has six attentions of four heads. So three hundred tokens would make $6 \cdot 4 \cdot 300^2$ weights, over two million, all forgotten after the sentence.

# %% [markdown]
# ## Does it translate, or does it only continue German?
#
# Leave *Die Katze verlor* as it is, and exchange the cat for a dog **in the source only**. Now the German so far tells a lie. Whom will the model believe?

# %% tags=["active-ipynb"]
# cases = [
#     ("The cat lost its ball.", "Die Katze verlor"),
#     ("The dog lost its ball.", "Die Katze verlor"),
#     ("The cat lost its ball.", "Der Hund verlor"),
# ]
# tables = {}
# for english, german in cases:
#     _, p = follow(english, german)
#     words = ("ihren", "seinen")
#     tables[english, german] = [(w, p[tokenizer.encode(w)[0]].item()) for w in words]
# views.next_word(tables)

# %% [markdown]
# *Compare each English line with the longer bar below it: the choice follows the animal in the source, even where the German already written names the other one.*
#
# The model believes the blue line. In the second case the German says *cat*, and the model gives the dog's pronoun all the same. Of 336 such lies it believed none ([evidence 8.1](evidence/08_model.ipynb)).

# %% [markdown]
# ## What makes a model autoregressive?
#
# So far the model has named one word. To write a sentence, you append *ihren* to the target and ask again, until the answer is the end token `</s>`. A model that goes on from what it has written is called **autoregressive**.
#
# In training the right sentence is known. The target goes in whole, and every token's row of scores is asked at once:
#
# ```text
# goes in:         <s>    Die     Katze    verlor
# must be named:   Die    Katze   verlor   ihren
# ```
#
# The start token moves all words one place to the right, which the paper calls *outputs (shifted right)*. So the answer of each row is in the input, one place further on. Only the causal mask hides it. To see what becomes of a model without it, we need a game whose best possible loss is known.
#
# Throw a die six times, and write down for each throw the number on top and then the number underneath. Opposite faces add up to seven. So a game is twelve numbers, half of them luck and half of them certain.

# %% tags=["active-ipynb"]
# sizes = TransformerConfig(vocab_size=9, d_model=32, d_ff=64, N=1, h=4, P_drop=0.0)
#
#
# def games(count):
#     """Sources (empty: nothing is translated), targets, and what is right."""
#     top = torch.randint(1, 7, (count, 6))
#     right = torch.stack([top, 7 - top], dim=2).flatten(1) + 2  # ids 3 to 8
#     source = torch.full((count, 1), sizes.eos_id)
#     target = F.pad(right[:, :-1], (1, 0), value=sizes.bos_id)  # <s>, then shifted right
#     return source, target, right

# %% [markdown]
# What is the best loss? A number on top has six equally likely values, which costs $\ln 6 = 1.79$ on average. A number underneath can be had for nothing. The mean of both is 0.90. In the long run nobody gets below this floor who does not know the next throw. So a loss clearly below it is not skill but proof of cheating.
#
# Now we train two models in the same way. The second is our class with `None` where the causal mask was. Guess first: what loss will each of them reach on new games?

# %% tags=["active-ipynb"]
# class Peeking(Transformer):
#     def decode(self, target, memory, source):
#         real = padding_mask(source, self.config.pad_id)
#         return self.decoder(self.embed(target), memory, None, real)
#
#
# def train(kind, steps=300):
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

# %% tags=["active-ipynb"]
# players = {"with the causal mask": train(Transformer), "without it": train(Peeking)}
# source, target, right = games(1000)  # new ones
# losses = {}
# with torch.no_grad():
#     for name, player in players.items():
#         scores = player(source, target)
#         losses[name] = F.cross_entropy(scores.flatten(0, 1), right.flatten()).item()
#         print(f"{name:20}  loss {losses[name]:.3f}")

# %% [markdown]
# The first model comes close to the floor. The second is far below it, on games that it has never seen. So it cheats.
#
# What is it worth when it has to write? Then the target ends at the number before. We count how often each of the twelve numbers is guessed right, once as in training and once as in writing. (In writing it gets the true numbers so far, so that one wrong guess spoils no later one.)

# %% tags=["active-ipynb"]
# shares = {}
# with torch.no_grad():
#     for name, player in players.items():
#         in_training = player(source, target).argmax(dim=-1)
#         starts = [target[:, : t + 1] for t in range(12)]
#         written = [player(source, start)[:, -1].argmax(dim=-1) for start in starts]
#         ways = {"training": in_training, "writing": torch.stack(written, dim=1)}
#         for way, guess in ways.items():
#             shares[way, name] = (guess == right).float().mean(dim=0).tolist()
# views.dice(shares)

# %% [markdown]
# *Compare the two red panels: in training every number is right, and in writing the last one alone is better than luck, because it is the only one that could not be copied.*
#
# With the mask, training and writing are the same game, since what comes later never mattered. Without it they are two different games. In training eleven of the twelve answers are in the input, and the model copies them. In writing it nearly always repeats the number that it has just read ([evidence 8.4](evidence/08_model.ipynb)), and no die shows the same number underneath. Only the twelfth number was never in the input. There, and there alone, it had to learn that faces add up to seven.

# %% [markdown]
# ## How do you notice?
#
# Here the loss gave the cheat away, because we know its floor. But a leak may be small. In the next model one single row may see one token too many, and it is trained like the others.

# %% tags=["active-ipynb"]
# class Leaking(Transformer):
#     def decode(self, target, memory, source):
#         mask = causal_mask(target.shape[1])
#         mask[..., 4:5, 5:6] = True  # row 4 may look at its own answer
#         real = padding_mask(source, self.config.pad_id)
#         return self.decoder(self.embed(target), memory, mask, real)
#
#
# leaking = train(Leaking)
# with torch.no_grad():
#     scores = leaking(source, target)
#     losses["one leak"] = F.cross_entropy(scores.flatten(0, 1), right.flatten()).item()
# print(f"with one leak the loss is {losses['one leak']:.3f}")

# %% [markdown]
# This loss is above the floor, like an honest one. In so few updates the model has not found its leak. With five times as many its loss is 0.75, only a little too good. On German, where nobody knows the floor, you would be proud of that. So do not wait for the loss. Three rules must hold in *any* Transformer, trained or not, and you can test them without a look at its code.
#
# **1. No row may look ahead.** Change one token of the target, and see which rows of scores move. All models here are new and have learned nothing. Which squares will be filled?

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
# A white square is a row that stays equal bit for bit, because a forbidden weight is exactly zero.
#
# So this is how you notice: you touch every token once, before the first training step, and look what moves. It takes a second, and the smallest leak shows.
#
# **2. Padding must mean nothing.** What fills up a short sentence must not change its scores. **3. Neighbours must not matter.** Each sentence of a batch must get the scores that it gets alone.
#
# We compare a short sentence alone with the same sentence beside a longer neighbour, which also gives it padding. A sound model passes both tests at once. To see one fail, we hand over a careless model, too. It has the same weights and one wrong number: it takes "!" for padding, and reads real padding as words.

# %% tags=["active-ipynb"]
# careless = Transformer(replace(c, pad_id=3)).double().eval()  # 3 is "!"
# careless.load_state_dict(model.state_dict())
#
# short, begun = encoded("The dog slept.", "Der Hund")
# longer, _ = encoded("The old cat that saw the dog lost its ball.", "")
# both = pad_sequence([short[0], longer[0]], batch_first=True, padding_value=c.pad_id)
# begun_twice = begun.expand(2, -1)  # one German beginning for each source
# changes, words = {}, {}
# with torch.no_grad():
#     for name, one in {"our model": model, "careless": careless}.items():
#         alone, in_batch = one(short, begun)[0], one(both, begun_twice)[0]
#         changes[name] = (in_batch - alone).abs().max()
#         words[name] = tokenizer.decode([in_batch[-1].argmax().item()])
#         print(f"{name:9}  scores move by {changes[name]:.0e}  Der Hund {words[name]}")

# %% [markdown]
# In our model the scores move in their last digits, which is rounding. In the careless one they move visibly, and it still names the same next word. That is how such a mistake survives: nothing looks wrong until a sentence comes that was nearly undecided.

# %% [markdown]
# ## Is it the paper's model?
#
# A model can keep all three rules and be another one. Torch has a class of its own for the two stacks, written from the same paper and used for years. We [hand it our weights](https://github.com/OWNER/annotated-attention/blob/main/transformer/teaching/torchs.py) and the same two sentences.

# %% tags=["active-ipynb"]
# with torch.no_grad():
#     theirs = torchs_scores(model, both, begun_twice)
#     gap = (theirs - model(both, begun_twice)).abs().max()
# print(f"torch's scores differ from ours by at most {gap:.0e}")

# %% [markdown]
# They agree to the last digits. (Embedding, positions and output are not in torch's class; chapters [6](06_embeddings.ipynb) and [7](07_positions.ipynb) tested them.) What stays open is how the weights start before training, which the paper does not say ([evidence 8.3](evidence/08_model.ipynb)).

# %% tags=["active-ipynb"]
# tops, bottoms = slice(0, 12, 2), slice(1, 11, 2)
# assert losses["without it"] < 0.1 < math.log(6) / 2 < losses["with the causal mask"]
# assert min(shares["training", "without it"]) > 0.95
# assert max(shares["writing", "without it"][bottoms]) < 0.1
# assert min(shares["writing", "with the causal mask"][bottoms]) > 0.9
# assert max(shares["writing", "with the causal mask"][tops]) < 0.25
# assert torch.equal(tables["causal mask"], torch.ones(12, 12).tril().bool())
# assert tables["one leak"].triu(1).sum() == 1 and tables["no mask"].all()
# assert losses["one leak"] > math.log(6) / 2  # nothing to be seen
# assert changes["our model"] < 1e-9 and changes["careless"] > 0.1
# assert words["our model"] == words["careless"]
# assert gap < 1e-9
# print("the rules hold, torch agrees, and the model that looks ahead fails in writing")

# %% [markdown]
# ## What to keep
#
# - A Transformer is two stacks of lanes and one bridge: the encoder makes the memory, and the decoder turns what is written so far, with the memory, into scores for the next token.
# - One pass asks every row of a target for its next token, and only the causal mask makes this the same game as writing word by word.
# - No row may look ahead, and neither padding nor neighbours may matter; test these rules from outside, because a model that breaks them trains all the same, and its loss need not tell.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Count the parameters of the dice player: a vocabulary of 9 entries, $d_{model} = 32$, $d_{ff} = 64$, one layer in each stack, four heads. Attention has no biases, the network has two, and a norm has a gain and a bias for every number of a vector. (`by_part(sizes)` checks your four sums.)
#
# <details><summary>Answer</summary>
#
# The embedding has $9 \cdot 32 = 288$ numbers, once. An attention has four matrices of $32 \cdot 32$, so 4,096, and the heads do not matter. A feed-forward network has $2 \cdot 32 \cdot 64 + 64 + 32 = 4{,}192$, and a norm 64. There are three attentions, two networks and five norms: $288 + 12{,}288 + 8{,}384 + 320 = 21{,}280$.
# </details>
#
# **2. In code.** GPT continues a text: it has no source, no memory, and one stack. Build it from the parts that our `model` has. Which of its two stacks will you take, and which mask?

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
# It is the *encoder's* stack, because its layers have no cross-attention. What lets it go on from its own words is the mask, under which training and writing are one game. (This stack was never trained for it, so its words are nonsense.)
# </details>
#
# **3. In code.** You are handed a model, and somebody may have planted a fault in it. Tell from outside which rule it breaks. The checker tries a sound model and three with faults, one of which leaks at a single place.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.model import check_broken_rule
#
#
# def broken_rule(model, source, target):
#     """1 if a row looks ahead, 2 if padding changes scores, 0 if neither.
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
#     change = (model(padded, target) - model(source, target)).abs().max()
#     return 2 if change > 1e-3 else 0
# ```
#
# If you change the last token alone, the small leak stays hidden.
# </details>
#
# **4. To think about.** The decoder hides padding in the *source*. Why does it need no such mask for padding in its own sentence? And what would go wrong if you filled up targets on the left?
#
# <details><summary>A thought</summary>
#
# Padding is behind the sentence, and no row looks ahead, so no real token ever sees it. The padding's own rows are ignored by the loss ([chapter 14](14_training.ipynb)). With padding on the left every real token would see it, and the first word would not be at the first position.
# </details>
#
# **Next.** Now we know what the machine is. [Chapter 9](09_complexity.ipynb) asks what it costs.
