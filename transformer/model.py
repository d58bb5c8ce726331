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
# *Section 3 of the paper, with its Figure 1. Reading takes about 20 minutes, running half a minute.*
#
# Can a machine predict dice? Somebody throws a die six times, and each time we write down the number on top and then the number underneath. Below you will train a Transformer that names every single number before it is written, and its loss falls almost to zero.
#
# It has found no law of dice. One argument is missing in its code, and nothing warns you: there is no error, and its loss is far better than that of the right model. So take two questions along while we put the machine together. Where does each part belong? And how would you notice that one is missing?

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
# from collections import Counter
# from dataclasses import replace
#
# import torch
# import torch.nn.functional as F
#
# from transformer import cache, load, views
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
# The **encoder** reads the source sentence and leaves the *memory*, one vector for every source token. The **decoder** reads the tokens written so far and the memory, and gives a score to every entry of the vocabulary, as a candidate for the next token. Softmax turns the scores into probabilities.

# %% [markdown]
# ## The same picture as a class
#
# A few sizes decide everything else. They have the paper's names, and where you give none you get the paper's base model.


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
# Two things are easy to miss. The first is that the picture has three green boxes and the class has one `embedding`: the same matrix turns source tokens into vectors, does so for target tokens, and at the top, turned on its side, compares vectors with all its rows.
#
# The second is that the target goes in *whole*. Row $t$ of the result sees the target up to its token $t$ and scores token $t + 1$, so that one pass answers every "what comes next?" of a sentence at once. The first word needs a row, too. That is why every target begins with a mark, `<s>`, which moves all words one place to the right; the paper calls it *outputs (shifted right)*.

# %% [markdown] tags=["question-18"]
# ## How does a vector become a word?
#
# The model that ships with this book is a Transformer of this very kind, and its weights fit our class. They were trained on sentences of a small made-up grammar. (`eval` switches dropout off, which is for training only.)

# %% tags=["active-ipynb"]
# trained, tokenizer = load()
# c = trained.config
# model = Transformer(c).eval()
# model.load_state_dict(dict(trained.named_parameters()));

# %% [markdown]
# Follow *The cat lost its ball.* on its way up. The German has come as far as *Die Katze verlor*. Next must come "its", and German has to choose: *ihren* if the owner's noun is feminine, as *Katze* is, and *seinen* if it is masculine, as *Hund*, the dog, is.

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def follow(english, german):
#     source = torch.tensor([[*tokenizer.encode(english), c.eos_id]])
#     target = torch.tensor([[c.bos_id, *tokenizer.encode(german)]])
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
# Inside the stacks the shape never changes. What changes is what the lanes hold. At the bottom of the fourth lane is *verlor*, a word already written, and at its top is a vector that fits *ihren*, a word not yet written. (A new model of our class, which has learned nothing, is still at the bottom: it repeats the token that it has just read, as [evidence 8.3](evidence/08_model.ipynb) shows.)
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
# The model believes the blue line. It seems to have written "the cat", and it gives the dog's pronoun all the same. We told it 336 such lies, about thirteen animals, and it believed the source every time ([evidence 8.1](evidence/08_model.ipynb)).

# %% [markdown]
# ## Three rules that it must never break
#
# A Transformer with a mistake in it often trains, and is only worse than it could be. So do not wait for symptoms. Three things must hold in *any* Transformer, trained or not, and you can test each of them from outside.
#
# **No row of the decoder may look ahead.** Exchange the last target token. Which of the four rows of scores may change?

# %% tags=["active-ipynb"]
# source, target = stations["source"], stations["target"]
# other = target.clone()
# other[0, -1] = tokenizer.encode("Hund")[0]
# with torch.no_grad():
#     changed = (model(source, other) != model(source, target)).any(dim=-1)
# print("row changed:", changed[0].tolist())

# %% [markdown]
# Only the last. The other rows are equal bit for bit, and not merely close, because a weight that is forbidden is exactly zero.
#
# **Neighbours must not matter, and padding must mean nothing.** Short sentences of a batch are filled up with padding, but each sentence must get the answer that it gets alone. To see what the test is worth, we need a model that fails. `careless` has the same weights and one wrong number in its configuration: it takes another token for padding, and so it reads the real padding as words.

# %% tags=["active-ipynb"]
# careless = Transformer(replace(c, pad_id=3)).eval()  # 3 is "!"
# careless.load_state_dict(model.state_dict())
#
# sentences = ["The dog slept.", "The old cat that saw the dog lost its ball."]
# alone = [torch.tensor([*tokenizer.encode(text), c.eos_id]) for text in sentences]
# batch = nn.utils.rnn.pad_sequence(alone, batch_first=True, padding_value=c.pad_id)
# wider = F.pad(batch, (0, 9), value=c.pad_id)  # nine more paddings for everyone
#
#
# @torch.no_grad()
# def differences(one):
#     expected = torch.cat([one(source[None], target) for source in alone])
#     return [
#         (one(source, target.expand(2, -1)) - expected).abs().max().item()
#         for source in (batch, wider)
#     ]
#
#
# for name, one in (("our model", model), ("careless", careless)):
#     together, padded = differences(one)
#     print(f"{name:9}  in a batch {together:.6f}  with more padding {padded:.6f}")

# %% [markdown]
# The numbers say by how much a score changes at most. In our model it is some millionths, which is rounding: tensors of another shape may be summed in another order. In the careless model it is a hundred thousand times as much, and it grows with every padding. Yet even the careless model would write the same next word for both sentences. That is how such mistakes survive: the model translates, only a little worse.

# %% tags=["active-ipynb"]
# with torch.no_grad():
#     guesses = [
#         one(wider, target.expand(2, -1)).argmax(dim=-1) for one in (model, careless)
#     ]
# assert changed[0].tolist() == [False, False, False, True]
# assert max(differences(model)) < 1e-4
# assert min(differences(careless)) > 0.3
# assert torch.equal(guesses[0][:, -1], guesses[1][:, -1])
# print("all three rules hold, and the careless model breaks two of them")

# %% [markdown]
# ## The machine that predicts dice
#
# What happens to a model that may look ahead? Back to the dice. The faces of a die that are opposite to each other add up to seven, so a number on top is luck, and the number underneath, which we write down next, is certain.

# %% tags=["active-ipynb"]
# sizes = TransformerConfig(vocab_size=9, d_model=32, d_ff=64, N=1, h=4, P_drop=0.0)
#
#
# def games(count):
#     """Six throws each, top and bottom: an empty source, the input, and what is right."""
#     top = torch.randint(1, 7, (count, 6))
#     right = torch.stack([top, 7 - top], dim=2).flatten(1) + 2  # ids 3 to 8
#     source = torch.full((count, 1), sizes.eos_id)  # there is nothing to translate
#     return source, F.pad(right[:, :-1], (1, 0), value=sizes.bos_id), right

# %% [markdown]
# The second model has `None` where the first has its causal mask. That is the missing argument of the beginning. Both are trained in the same way. Guess first: which of them will end with the lower loss?

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
#     return model.eval(), loss.item()
#
#
# masked, loss_of_masked = train(Transformer)

# %% tags=["active-ipynb"]
# peeking, loss_of_peeking = train(Peeking)
# print(
#     f"loss with the causal mask {loss_of_masked:.2f}, without it {loss_of_peeking:.2f}"
# )

# %% [markdown]
# The model without a mask wins, and its loss is next to nothing. Now let both do what they were built for. In training the whole game is the input. In writing there is only what has been written so far, and the next number does not exist yet.

# %% tags=["active-ipynb"]
# source, target, right = games(1000)
# shares = {}
# with torch.no_grad():
#     for name, dice in (("with the causal mask", masked), ("without it", peeking)):
#         graded = dice(source, target).argmax(dim=-1)
#         written = [dice(source, target[:, : t + 1])[:, -1].argmax(1) for t in range(12)]
#         for how, guess in (("training", graded), ("writing", torch.stack(written, 1))):
#             shares[how, name] = (guess == right).float().mean(dim=0).tolist()
# views.dice(shares)

# %% [markdown]
# *Compare the two red panels: in training the model without a mask is never wrong, but as soon as it has to write, it knows neither tops, which are luck, nor the numbers underneath, which are certain.*
#
# It does not predict. It reads the answer one place to its right. And because reading is so easy, it had no need to learn that faces add up to seven. When it writes, there is nothing to its right, and it simply repeats the last number that is there. A die never shows the same number above and below, so these guesses are worse than luck ([evidence 8.4](evidence/08_model.ipynb)). Only the last number of a game had nothing to its right in training, either, and there the model did learn the rule.
#
# Dice give the mistake away, because we know what luck can do. On real sentences a loss that is too good only looks like success. So test the rule instead. Exercise 2 catches this model before its first training step.

# %% tags=["active-ipynb"]
# tops, bottoms = slice(0, 12, 2), slice(1, 11, 2)
# assert min(shares["training", "without it"]) > 0.95
# assert max(shares["writing", "without it"][bottoms]) < 0.1
# assert min(shares["writing", "with the causal mask"][bottoms]) > 0.9
# assert max(shares["writing", "with the causal mask"][tops]) < 0.25
# print("the model that looks ahead wins in training and fails in writing")

# %% [markdown] tags=["question-16"]
# ## Sentences vary in length. Which learned number knows it?
#
# You may hand this model three tokens or three hundred. Which of its learned numbers says how many there are? Guess before you look.

# %% tags=["active-ipynb"]
# lengths, learned, computed = (3, 300), [], []
# for n in lengths:
#     tokens = torch.randint(3, c.vocab_size, (1, n))
#     with torch.no_grad(), cache(trained, "*.weights") as seen:
#         trained(tokens, tokens)
#     learned.append(sum(p.numel() for p in trained.parameters()))
#     computed.append(sum(table.numel() for table in seen.values()))
# views.two_lengths(lengths, learned, computed)

# %% [markdown]
# *The grey bars are equal and the blue areas are not: what grows with the square of the length are attention weights, which nobody learns.*
#
# None of them does. Every learned matrix works on the vector of one token, however many tokens there are. The length is in what is *computed*: one lane for each token, and tables of attention with one entry for each pair of tokens. These are made again for every sentence and forgotten after it. That a model *accepts* three hundred tokens does not mean that it is good at them, as [chapter 16](16_translation.ipynb) shows.

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
# The paper reports 65 and 213 million parameters. We count 63 and 214: too few for base, and too many for big. Another vocabulary cannot explain both, because base would need more entries and big fewer ([evidence 8.2](evidence/08_model.ipynb)).

# %% tags=["active-ipynb"]
# def by_formula(V, d, d_ff, N):
#     attention, feed_forward, norm = 4 * d * d, 2 * d * d_ff + d_ff + d, 2 * d
#     encoder = attention + feed_forward + 2 * norm
#     decoder = 2 * attention + feed_forward + 3 * norm
#     return V * d + N * (encoder + decoder)
#
#
# assert sum(counts["base"].values()) == by_formula(37_000, 512, 2048, 6) == 63_045_632
# assert sum(counts["big"].values()) == by_formula(37_000, 1024, 4096, 6) == 214_171_648
# print("both counts equal a formula")

# %% [markdown]
# ## Is it right?
#
# Torch has a Transformer of its own, whose masks mean the opposite of ours. It has no embeddings, so it gets ours, and one more norm at the end of each stack, which we leave out. We copy the trained weights into it, layer by layer.

# %% tags=["active-ipynb"]
# def copy_attention(ours, theirs):
#     matrices = [ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight]
#     theirs.in_proj_weight.data = torch.cat(matrices).detach()
#     theirs.out_proj.weight.data = ours.W_O.weight.detach()
#
#
# def copy_layer(ours, theirs):
#     copy_attention(ours.self_attention, theirs.self_attn)
#     if isinstance(ours, DecoderLayer):
#         copy_attention(ours.cross_attention, theirs.multihead_attn)
#     theirs.linear1.load_state_dict(ours.feed_forward.W_1.state_dict())
#     theirs.linear2.load_state_dict(ours.feed_forward.W_2.state_dict())
#     for i, residual in enumerate(ours.residuals, 1):
#         norm = getattr(theirs, f"norm{i}")
#         norm.weight.data = residual.norm.gain.detach()
#         norm.bias.data = residual.norm.bias.detach()
#
#
# shape = dict(d_model=c.d_model, nhead=c.h, dim_feedforward=c.d_ff, batch_first=True)
# layer = nn.TransformerEncoderLayer(**shape)
# encoder = nn.TransformerEncoder(layer, c.N, enable_nested_tensor=False)
# decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**shape), c.N)
# torchs = nn.Transformer(
#     c.d_model, c.h, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
# )
# for ours, theirs in zip(model.encoder.layers, encoder.layers):
#     copy_layer(ours, theirs)
# for ours, theirs in zip(model.decoder.layers, decoder.layers):
#     copy_layer(ours, theirs)

# %% tags=["active-ipynb"]
# model.double(), trained.double(), torchs.double().eval()
# target = stations["target"].expand(2, -1)
# ignored = batch == c.pad_id
# with torch.no_grad():
#     expected = model(batch, target)
#     x = torchs(
#         model.embed(batch),
#         model.embed(target),
#         tgt_mask=~causal_mask(target.shape[1]),
#         src_key_padding_mask=ignored,
#         memory_key_padding_mask=ignored,
#     )
#     assert (model.score(x) - expected).abs().max() < 1e-9
#     assert (trained(batch, target) - expected).abs().max() < 1e-4
# print("our class, torch's and the package's give the same scores")

# %% [markdown]
# *`from transformer import Transformer` gives the [engine's version](https://github.com/OWNER/annotated-attention/blob/main/transformer/fast/model.py): the same names and the same weights, and also heads of other sizes, rotary positions, pre-norm, caches for fast search, and errors that say what is wrong. A test holds the two equal.* **Deviation: the paper does not say how its weights start.** *Our class keeps torch's first values, and the engine draws matrices by the rule of Glorot and Bengio (2010); [evidence 8.3](evidence/08_model.ipynb) shows what difference that makes.*

# %% [markdown]
# ## What to keep
#
# - A Transformer is two stacks of lanes and one bridge: the encoder makes the memory, and the decoder turns what is written so far, with the memory, into scores for the next token.
# - In any Transformer no row of the decoder may look ahead, and neither padding nor neighbours may matter; test these rules from outside, because a loss that is too good does not tell.
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
# **2. In code.** Write a detector of peeking that needs no training and works for any model. Careful: it is not enough to change only the *last* token. Why not?

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.model import check_looks_ahead
#
#
# def looks_ahead(model, source, target, V):
#     """True if a row of model(source, target), (B, T, V), depends on a later token."""
#     ...
#
#
# check_looks_ahead(looks_ahead)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def looks_ahead(model, source, target, V):
#     before = model(source, target)
#     for t in range(1, target.shape[1]):
#         changed = target.clone()
#         changed[:, t] = (changed[:, t] + 1) % V
#         if not torch.equal(model(source, changed)[:, :t], before[:, :t]):
#             return True
#     return False
# ```
#
# A mask may leak at one place only, for example where somebody forgot a single entry beside the diagonal. Then one token in the middle betrays it, and no other. (The model must be in evaluation mode, because dropout would change every row.)
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
