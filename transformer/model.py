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
# One line of this chapter hands the decoder a mask. Write `None` in its place, and Python does not complain: all shapes fit, the model trains, and its loss falls. It is useless all the same. How would you notice?
#
# Take this question along while we put the machine together, and a second one: where does each part belong? At the end, dice will answer the first.

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
# from collections import Counter
# from dataclasses import replace
#
# import torch
# import torch.nn.functional as F
#
# from transformer import cache, load, views
# from transformer.teaching.torchs import torchs_transformer
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits

# %% [markdown]
# ## The whole machine on one page
#
# You have built every box of this picture, which is the paper's Figure 1 with the lanes of [chapter 3](03_stacks.ipynb) drawn in. Each violet line is a bundle of lanes, one for every token. Before you read on, find the only way from the left half to the right half.

# %% tags=["active-ipynb"]
# views.whole_model()

# %% [markdown]
# *Everything that the decoder knows about the source comes through one blue line, which starts above the encoder's last layer and ends in the cross-attention of every decoder layer.*
#
# The **encoder** reads the source sentence and leaves the *memory*, one vector for every source token. The **decoder** reads the tokens written so far and the memory. In its cross-attention each lane of the target asks: the queries come from the lane, the keys and values from the memory. At its end the decoder gives a score to every entry of the vocabulary, as a candidate for the next token, and softmax turns the scores into probabilities.

# %% [markdown]
# ## The same picture as a class
#
# A few sizes decide everything else. They have the paper's names. The size of the vocabulary you must give; where you give no other, you get the paper's base model.


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
# An encoder layer is one attention and one feed-forward network, and a decoder layer has a second attention, which will look at the memory. The wiring around them is chapter 3's.


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
# Now read the class beside the figure, from the bottom of the picture to its top. Begin with `forward`: `encode` is the left half, `decode` the right half, and `score` is the last green box.


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
# Three things are easy to miss. The first is that the picture has three green boxes and the class has one `embedding`: the same matrix turns source tokens into vectors, does so for target tokens, and at the top, turned on its side, compares vectors with all its rows.
#
# The second is that the target goes in *whole*. Row $t$ of the result sees the target up to its token $t$ and scores token $t + 1$, so that one pass answers every "what comes next?" of a sentence at once. The first word needs a row, too. That is why every target begins with a start token, `<s>`, which moves all words one place to the right; the paper calls it *outputs (shifted right)*.
#
# The third is that `decode` asks for the source although it has the memory. It needs the ids once more to see which of the memory's vectors belong to padding, and to hide them from cross-attention.

# %% [markdown] tags=["question-18"]
# ## How does a vector become a word?
#
# The model that ships with this book is a Transformer of this very kind. It was trained on sentences of a small made-up grammar, and its weights fit our class. (`eval` switches dropout off, which is for training only.)

# %% tags=["active-ipynb"]
# trained, tokenizer = load()
# c = trained.config
# model = Transformer(c).eval()
# weights = dict(trained.named_parameters())  # names the shared matrix once
# model.load_state_dict(weights)

# %% [markdown]
# Follow *The cat lost its ball.* on its way up. The German has come as far as *Die Katze verlor*. Next must come "its", and German has to choose: *ihren* if the owner's noun is feminine, as *Katze* is, and *seinen* if it is masculine, as *Hund*, the dog, is.

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
# What the decoder puts out is one vector for each target token. Multiplied by the embedding it becomes a row of scores, one for each entry of the vocabulary, and softmax makes probabilities of them. Choosing is a step of its own: here we take the place of the largest probability, a whole number, and the vocabulary, a list, turns this number into the string *ihren*.
#
# Inside the stacks the shape never changes. What changes is what the lanes hold. At the bottom of the fourth lane is *verlor*, a word already written, and at its top is a vector that fits *ihren*, a word not yet written.
#
# Does the model translate, or does it only continue German? Let us test it. Leave *Die Katze verlor* as it is, and exchange the cat for a dog **in the source only**. Now the German so far tells a lie. Whom will the model believe?

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
# *Compare each title with its longer bar: the choice follows the animal in the English source, even where the German already written names the other one.*
#
# The model believes the blue line. In the second case the German says *cat*, and the model gives the dog's pronoun all the same. Thirteen animals, seven of them feminine and six masculine, make 84 such lies, and four kinds of sentences make 336. It believed the source every time ([evidence 8.1](evidence/08_model.ipynb)).

# %% [markdown]
# ## Three rules that it must never break
#
# A Transformer with a mistake in it often trains. So do not wait for symptoms. Three things must hold in *any* Transformer, trained or not, and you can test each of them from outside, without a look at its code.
#
# **1. No row may look ahead.** Row $t$ of the scores answers "what comes after token $t$?", so no later token may touch it. To test this, we change a token and see which rows of scores move. It is not enough to change the last token, because a mask may leak at a single place. We change every token in turn. Which squares of the table do you expect to be filled?

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
# table = moved(model, stations["source"], stations["target"])
# views.moved({"our model": table}, ["<s>", "Die", "Katze", "verlor"])

# %% [markdown]
# *Go down the column of a changed token: its own row moves and all rows below it, and a white square is a row that stays equal bit for bit.*
#
# A change travels down and never up. The white squares are not merely almost equal, because a weight that is forbidden is exactly zero.
#
# **2. Padding must mean nothing.** Short sentences of a batch are filled up with padding, and the padding must not change their scores.
#
# **3. Neighbours must not matter.** Each sentence of a batch must get the answer that it gets alone.
#
# To see what a test of these two is worth, we need a model that fails. `careless` has the same weights and one wrong number in its configuration: it takes another token for padding, and so it reads the real padding as words. We measure by how much the scores of a short sentence change at most, first with padding behind it, then beside a longer sentence.

# %% tags=["active-ipynb"]
# careless = Transformer(replace(c, pad_id=3)).eval()  # 3 is "!"
# careless.load_state_dict(model.state_dict())
#
# source, target = encoded("The dog slept.", "Der Hund")
# longer, its_target = encoded("The old cat that saw the dog lost its ball.", "Die alte")
# missing = longer.shape[1] - source.shape[1]
# padded = F.pad(source, (0, 9), value=c.pad_id)  # nine paddings
# both = torch.cat([F.pad(source, (0, missing), value=c.pad_id), longer])
# both_targets = torch.cat([target, its_target])
#
# models, changes = {"our model": model, "careless": careless}, {}
# with torch.no_grad():
#     for name, one in models.items():
#         alone = one(source, target)
#         with_padding = (one(padded, target) - alone).abs().max()
#         in_batch = (one(both, both_targets)[:1] - alone).abs().max()
#         changes[name] = with_padding, in_batch
#         print(f"{name:9}  padding {with_padding:.6f}  neighbour {in_batch:.6f}")

# %% [markdown]
# In our model some scores change by a few millionths. That is rounding: tensors of another shape may be summed in another order. In the careless model the change is a hundred thousand times as large, and a neighbour is as bad as padding, because it brings padding along. Would its words have told you?

# %% tags=["active-ipynb"]
# words = {}
# with torch.no_grad():
#     for name, one in models.items():
#         best = one(both, both_targets)[:, -1].argmax(dim=-1)
#         words[name] = [tokenizer.decode([token]) for token in best.tolist()]
#         print(f"{name:9}  Der Hund {words[name][0]} ...  Die alte {words[name][1]} ...")

# %% [markdown]
# They would not. Both models go on with the same words. That is how such a mistake survives.

# %% tags=["active-ipynb"]
# assert torch.equal(table, torch.ones(4, 4).tril().bool())
# assert max(changes["our model"]) < 1e-4
# assert min(changes["careless"]) > 0.1
# assert words["our model"] == words["careless"]
# print("all three rules hold, and the careless model breaks two of them")

# %% [markdown]
# ## What becomes of a model that looks ahead?
#
# Back to the question of the beginning. To see what a missing mask does, we need a game whose best possible loss is known before any training.
#
# Throw a die six times, and write down for each throw the number on top and then the number underneath. Opposite faces of a die add up to seven. So every game is twelve numbers, half of them luck and half of them certain. This is why we write down both: a model can learn one half, and nobody can learn the other.

# %% tags=["active-ipynb"]
# sizes = TransformerConfig(vocab_size=9, d_model=32, d_ff=64, N=1, h=4, P_drop=0.0)
#
#
# def games(count):
#     """Sources, of which there is nothing to translate, targets, and what is right."""
#     top = torch.randint(1, 7, (count, 6))
#     right = torch.stack([top, 7 - top], dim=2).flatten(1) + 2  # ids 3 to 8
#     source = torch.full((count, 1), sizes.eos_id)
#     return source, F.pad(right[:, :-1], (1, 0), value=sizes.bos_id), right

# %% [markdown]
# What is the best loss? A number on top has six equally likely values, and whoever predicts it honestly pays $\ln 6 = 1.79$ on average. A number underneath can be had for nothing. For a whole game that makes
#
# $$\frac{6 \cdot \ln 6 + 6 \cdot 0}{12} = 0.90$$
#
# for each number. This is a floor. No player who does not know the next throw gets below it in the long run, however clever. So a loss clearly below 0.90 is not skill but proof of cheating.
#
# Now we train two models in the same way. The second is our class with `None` where the causal mask was. Guess first: what loss will each of them reach?

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
#
#
# players = {"with the causal mask": train(Transformer)}

# %% tags=["active-ipynb"]
# players["without it"] = train(Peeking)

# %% tags=["active-ipynb"]
# source, target, right = games(1000)  # new ones
# losses = {}
# with torch.no_grad():
#     for name, player in players.items():
#         scores = player(source, target)
#         losses[name] = F.cross_entropy(scores.flatten(0, 1), right.flatten()).item()
#         print(f"{name:20}  loss {losses[name]:.3f}")
# print(f"{'floor':20}  loss {math.log(6) / 2:.3f}")

# %% [markdown]
# The first model comes close to the floor. The second is far below it, on games that it has never seen. So it cheats. But how?
#
# Let both play again, and count how often each of the twelve numbers is guessed right: once as in training, where the target goes in whole, and once as in writing, where the target ends at the number before. In writing we hand over the true numbers so far and never a model's own guesses, so that a wrong guess spoils no later one. (A model that writes on its own reads what it has written, as in [chapter 15](15_decoding.ipynb).)

# %% tags=["active-ipynb"]
# shares = {}
# with torch.no_grad():
#     for name, player in players.items():
#         graded = player(source, target).argmax(dim=-1)
#         starts = [target[:, : t + 1] for t in range(12)]
#         written = [player(source, start)[:, -1].argmax(dim=-1) for start in starts]
#         for how, guess in (("training", graded), ("writing", torch.stack(written, 1))):
#             shares[how, name] = (guess == right).float().mean(dim=0).tolist()
# views.dice(shares)

# %% [markdown]
# *Compare the two red panels: in training every number is right, and in writing the last one alone is better than luck, because it is the only one that could not be copied.*
#
# With the mask, training and writing look alike, since what comes later never mattered. Without it they are two different games.
#
# **In training** the target is `<s>` and the first eleven numbers. So eleven of the twelve answers are in the input, each one place to the right of the row that has to give it, and the model copies them. Only the twelfth is nowhere in the input. There it had to learn that faces add up to seven, and there it did.
#
# **In writing** nothing is to the right yet. For the first number the input is always `<s>`, so the guess is always the same face, which is luck. After that the model nearly always repeats the number that it has just read ([evidence 8.4](evidence/08_model.ipynb)). For a new throw this is as good as any guess, and for the number underneath it is always wrong, because no die shows the same number above and below. The rule that it knows at the twelfth place does not help it at the others.
#
# Dice gave the model away because we know their floor. Nobody knows the floor of German, and there a loss that is too good only looks like success. But rule 1 needs no floor. It does not even need training. We point its test at two new models that have learned nothing:

# %% tags=["active-ipynb"]
# names = ["<s>", *["top", "under"] * 6][:12]
# kinds = {"with the causal mask": Transformer, "without it": Peeking}
# new = {name: kind(sizes).eval() for name, kind in kinds.items()}
# tables = {name: moved(one, source[:1], target[:1]) for name, one in new.items()}
# views.moved(tables, names)

# %% [markdown]
# *Look above the diagonal: each red square is a row that moves with a token that comes after it, and without the mask every square up there is red.*
#
# So this is how you notice: not by the loss, which is only too good, but by a test from outside, before the first training step.

# %% tags=["active-ipynb"]
# tops, bottoms = slice(0, 12, 2), slice(1, 11, 2)
# assert losses["without it"] < 0.1 < math.log(6) / 2 < losses["with the causal mask"]
# assert min(shares["training", "without it"]) > 0.95
# assert max(shares["writing", "without it"][bottoms]) < 0.1
# assert min(shares["writing", "with the causal mask"][bottoms]) > 0.9
# assert max(shares["writing", "with the causal mask"][tops]) < 0.25
# assert torch.equal(tables["with the causal mask"], torch.ones(12, 12).tril().bool())
# assert tables["without it"].all()
# print("the model that looks ahead wins in training and fails in writing")

# %% [markdown] tags=["question-16"]
# ## Sentences vary in length. Which learned number knows it?
#
# You may hand this model three tokens or three hundred. It has 1.4 million learned numbers. Which of them says how many tokens there are? Guess before you look at what one pass computes. (Inside the block `cache` keeps what a model computes, here every table of attention weights.)

# %% tags=["active-ipynb"]
# for n in (3, 300):
#     tokens = torch.randint(3, c.vocab_size, (1, n))
#     with torch.no_grad(), cache(model, "*.weights") as seen:
#         model(tokens, tokens)
#     entries = sum(table.numel() for table in seen.values())
#     print(f"{n} tokens: {len(seen)} attentions of {c.h} heads, {entries:,} weights")

# %% [markdown]
# None of them does. Every learned matrix works on the vector of one token, however many tokens there are. The length is in what is *computed*: one lane for each token, and in each head of each attention a table with one entry for each pair of tokens, so $6 \cdot 4 \cdot 3^2$ weights for three tokens. With three hundred tokens these are more numbers than the whole model has learned, and they are made again for every sentence and forgotten after it. That a model *accepts* three hundred tokens does not mean that it is good at them, as [chapter 16](16_translation.ipynb) shows.

# %% [markdown]
# ## Where are the parameters?
#
# The paper has two sizes, base and big, and a vocabulary of about 37,000 entries. Which colour of the figure has most of the learned numbers? (On torch's device `meta` a model has shapes and no numbers, so that even big costs nothing.)

# %% tags=["active-ipynb"]
# def by_part(model):
#     counts = Counter()
#     for name, p in model.named_parameters():
#         parts = ("embedding", "attention", "feed_forward")
#         counts[next((part for part in parts if part in name), "norms")] += p.numel()
#     return counts
#
#
# base = TransformerConfig(vocab_size=37_000)
# big = replace(base, d_model=1024, d_ff=4096, h=16)
# with torch.device("meta"):
#     counts = {"base": by_part(Transformer(base)), "big": by_part(Transformer(big))}
# views.parameters(counts)

# %% [markdown]
# *Compare the colours (the numbers are millions): the paper is called "Attention Is All You Need", but the largest share is orange, and in base the embedding alone has as many numbers as all attention.*
#
# Big is twice as wide. That makes four times as many numbers in every layer, but only twice as many in the embedding.
#
# The paper reports 65 and 213 million parameters. We count 63 and 214. The paper does not say how it counted; [chapter 17](17_variations.ipynb) finds a larger vocabulary that fits every model of its Table 3 but big.

# %% [markdown]
# ## Is it right?
#
# Torch has a Transformer of its own, which others have tested for years. We give it our weights ([this function](https://github.com/OWNER/annotated-attention/blob/main/transformer/teaching/torchs.py) copies them layer by layer) and ask both for the scores of the same sentences. Torch's class is only the two stacks, so our embedding stands below and above it. Our masks say True for "may look" and torch's for "must not", so the code hands over the opposite of ours.

# %% tags=["active-ipynb"]
# torchs = torchs_transformer(model)
# (
#     model.double(),
#     torchs.double(),
#     trained.double(),
# )  # 16 digits, so that rounding is no excuse
# ignored = both == c.pad_id
# with torch.no_grad():
#     expected = model(both, both_targets)
#     x = torchs(
#         model.embed(both),
#         model.embed(both_targets),
#         tgt_mask=~causal_mask(both_targets.shape[1]),
#         src_key_padding_mask=ignored,
#         memory_key_padding_mask=ignored,
#     )
#     theirs = {"torch's": model.score(x), "the package's": trained(both, both_targets)}
# gaps = {name: (scores - expected).abs().max() for name, scores in theirs.items()}
# for name, gap in gaps.items():
#     print(f"{name:13}  scores differ by at most {gap:.0e}")

# %% [markdown]
# Torch's agrees to the last digits. So does the class that you get from `from transformer import Transformer`, the [package's faster version of ours](https://github.com/OWNER/annotated-attention/blob/main/transformer/fast/model.py), but only as far as its positions allow: it keeps their sines in a table of 32-bit numbers, which have seven digits.
#
# **Deviation: the paper does not say how its weights start.** Our class keeps torch's first values, with which a new model repeats the token that it has just read. The package starts with larger ones ([evidence 8.3](evidence/08_model.ipynb)).

# %% tags=["active-ipynb"]
# assert gaps["torch's"] < 1e-9
# assert gaps["the package's"] < 1e-5
# print("our class, torch's and the package's give the same scores")

# %% [markdown]
# ## What to keep
#
# - A Transformer is two stacks of lanes and one bridge: the encoder makes the memory, and the decoder turns what is written so far, with the memory, into scores for the next token.
# - In any Transformer no row of the decoder may look ahead, and neither padding nor neighbours may matter; test these rules from outside, because a model that breaks them trains all the same, with a loss that only looks like success.
# - No learned number knows the length of a sentence, since every matrix works on one token, and the tables of attention are made again each time.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Count the parameters of a tiny Transformer with a vocabulary of 10 entries, $d_{model} = 4$, $d_{ff} = 8$, $h = 2$ and $N = 1$. Attention has no biases, the feed-forward network has two, and each norm has a gain and a bias for every number of the vector.
#
# <details><summary>Answer</summary>
#
# The embedding has $10 \cdot 4 = 40$ numbers, once. An attention has four matrices of $4 \cdot 4$, so 64, and $h$ does not matter. A feed-forward network has $32 + 8 + 32 + 4 = 76$, and a norm has 8. So the encoder layer has $64 + 76 + 2 \cdot 8 = 156$, the decoder layer $2 \cdot 64 + 76 + 3 \cdot 8 = 228$, and the model $40 + 156 + 228 = 424$.
# </details>
#
# **2. In code.** A mask can also forbid too much, and that raises no error either. Write a detector of the opposite mistake, for any model: which rows do not move with a token that they may see, their own or an earlier one? (A model in evaluation mode is assumed, because dropout would move every row.)

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.model import check_blind_spots
#
#
# def blind_spots(model, source, target, V):
#     """The set of pairs (row, token), token <= row, where row does not see token.
#
#     model(source, target) gives scores (1, T, V); rows and tokens count from 0.
#     """
#     ...
#
#
# check_blind_spots(blind_spots)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def blind_spots(model, source, target, V):
#     before, found = model(source, target), set()
#     for token in range(target.shape[1]):
#         changed = target.clone()
#         changed[0, token] = (changed[0, token] + 1) % V
#         still = (model(source, changed) == before).all(dim=-1)[0]
#         found |= {(row, token) for row in range(token, len(still)) if still[row]}
#     return found
# ```
#
# The detector judges the whole model and not one attention. In a Transformer the lane carries a row's own token past any mask, and an earlier token may arrive in two hops, by way of a row between. So an entry that is missing in a mask makes a blind spot in one layer, and often none in six.
# </details>
#
# **3. In code.** Make what training needs of a batch of targets: what goes into the decoder, and what its rows are compared with. Each target is a list of ids without marks. Add the marks (the decoder reads no end mark), and fill up with padding at the end.

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
# Row by row the two are the same sentence, one place apart. The last real token goes in as well: after it the model has to name the end mark.
# </details>
#
# **4. To think about.** The decoder gets a mask against padding in the *source*. Why does it need none against padding in its own sentence? And what would go wrong if you filled up targets on the left?
#
# <details><summary>A thought</summary>
#
# Padding is behind the sentence, and no row looks ahead, so no real token ever sees it. The rows *of* the padding do see real tokens and score nonsense, but the loss ignores them ([chapter 14](14_training.ipynb)). With padding on the left every real token would see it, and the first word would not be at the first position, so you would need a mask and other positions.
# </details>
#
# **Next.** Now we know what the machine is. [Chapter 9](09_complexity.ipynb) asks what it costs, beside a recurrent and a convolutional network.
