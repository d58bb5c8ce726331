# ---
# jupyter:
#   jupytext:
#     formats: notebooks/05_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 5 · Feed-forward networks
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/05_feed_forward.ipynb)
#
# *Section 3.3 of the paper. Reading takes about 30 minutes, running half a minute. You need chapters [3](03_stacks.ipynb) and [4](04_attention.ipynb).*
#
# In chapter 4 two heads brought home two numbers, and we were content. But say that you want to know which of the two is larger. For a computer this should be nothing. Yet attention adds up, and adding up cannot compare. What can compare is a small network, four lines of code, that follows attention in every layer. It looks at one word at a time, and it holds two thirds of an encoder layer's numbers. What does it do that attention does not, and what are so many numbers for?

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
from torch import Tensor, nn

# %% tags=["active-ipynb"]
# import copy
# from collections import Counter
#
# import torch
# from torch.nn.utils.rnn import pad_sequence
#
# from transformer import cache, load, read_corpus, translate, views
# from transformer.attention import MultiHeadAttention
# from transformer.teaching import toys
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits

# %% [markdown]
# ## A sum cannot compare
#
# Attention takes so much of this vector and so much of that, and adds up. Let us hold these shares fixed for a moment. Can a sum tell the larger of two numbers $a$ and $b$? We look for $u$, $v$ and $w$ with
#
# $$\max(a, b) = u\,a + v\,b + w .$$
#
# Of 0 and 0 the larger is 0, so $w = 0$. Of 1 and 0 it is 1, so $u = 1$, and of 0 and 1 it is 1, so $v = 1$. Then the sum says that of 1 and 1 the larger is 2. No numbers $u$, $v$ and $w$ will do.
#
# How close can a sum come? The larger number is half the sum plus half the difference,
#
# $$\max(a, b) = \frac{a + b}{2} + \frac{|a - b|}{2} .$$
#
# For example, of 1 and 3 it is $2 + 1$. The first part is a sum. The second part has a bend, where $a = b$, and a sum has none. Let $a$ and $b$ be random and independent, with mean 0 and variance 1, as the numbers of chapter 4 were. Then a sum can do no better than to take the first part as it is and to guess the mean of the second. Its mean squared error is the variance of the second part:

# %% tags=["active-ipynb"]
# a, b = torch.randn(2, 100_000)
# best_sum = ((a - b).abs() / 2).var().item()
# print(f"the best sum's mean squared error: {best_sum:.3f}")

# %% [markdown]
# ## Attention leans
#
# Now to attention itself. In chapter 4 the input was six pairs of a name and a number, a query asked for two of the names, and two heads fetched the two numbers. This time we ask for the larger of the two:

# %% tags=["active-ipynb"]
# pairs = {"Ada": 0.3, "Ben": -1.2, "Cleo": 0.8, "Dan": -0.5, "Eve": 1.1, "Fay": 0.1}
# views.larger_of_two(pairs, asked=("Dan", "Ada"))

# %% [markdown]
# *Follow the two arrows: each head brings one number to the query's lane, and the answer is the larger of these two (Eve's is larger still, but nobody asked for Eve).*
#
# The model fetches with two heads. Something may follow, and adds what it finds to what they brought. At the end a sum reads one number off the lane.

# %% tags=["active-ipynb"]
# class Larger(nn.Module):
#     def __init__(self, more_heads=None, network=None):
#         super().__init__()
#         self.fetch = MultiHeadAttention(32, h=2)
#         self.more_heads, self.network = more_heads, network
#         self.read = nn.Linear(32, 1)
#
#     def forward(self, query, pairs):
#         x = self.fetch(query, pairs, pairs)  # (queries, 1, 32)
#         if self.more_heads:
#             x = x + self.more_heads(x, pairs, pairs)
#         if self.network:
#             x = x + self.network(x)
#         return self.read(x)[:, 0, 0]

# %% [markdown]
# Each update of a training takes 64 queries. The data are as in chapter 4: a query is two names side by side, and a pair is a name, its number, and zeros up to the same width.

# %% tags=["active-ipynb"]
# names = torch.randn(32, 16)  # a stock of names, of which each input has six
#
#
# def train(model, updates=500):
#     optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
#     errors = []
#     for _ in range(updates):
#         query, pairs, numbers, _ = toys.ask_for_two(names, count=64)
#         error = (model(query, pairs) - numbers.amax(dim=1)).square().mean()
#         optimizer.zero_grad()
#         error.backward()
#         optimizer.step()
#         errors.append(error.item())
#     return errors
#
#
# def three_trainings(make):
#     """Three models, and their errors (3, updates)."""
#     models, errors = [], []
#     for _ in range(3):
#         model = make()
#         models.append(model)
#         errors.append(train(model))
#     return models, torch.tensor(errors)

# %% [markdown]
# We train three models of each kind: two heads alone, and two heads that two more heads follow.

# %% tags=["active-ipynb"]
# def four_heads():
#     return Larger(more_heads=MultiHeadAttention(32, h=2))
#
#
# errors = {}
# _, errors["two heads"] = three_trainings(Larger)
# _, errors["two heads, then two more"] = three_trainings(four_heads)
# for name, runs in errors.items():
#     print(f"{name}:", [f"{error:.3f}" for error in runs[:, -100:].mean(dim=1)])

# %% [markdown]
# Each number is one training, and is the mean error of its last 100 updates. We expected 0.18, and got less. How? Our proof held the shares fixed, and the shares of attention depend on the words. The number beside a name is a part of its word, so it can have a say in the key, and the pair with the larger number can get the larger share. Attention *leans* towards the larger number, by the softmax that makes its shares.
#
# But leaning is not choosing. Most of the error is still there, and two more heads, with twice the parameters, have not removed it. One score has two jobs here. It must find the right names among six, and it must weigh their numbers. If the numbers count for little, the head hardly leans. If they count for much, a large number with the wrong name gets in. (With scores chosen by hand the two jobs can be balanced quite well, as exercise 3 shows. Training is slow to find that balance.)
#
# And attention can lean only while the two numbers are in *different* words. Once both are on one lane, there is little left to share out: a word that looks at itself alone, for example, gives itself the weight 1, and what comes out is $x W_V W_O$, a fixed sum. What a word needs by now is a bend of its own.

# %% [markdown]
# ## One bend is enough
#
# The simplest function with a bend is $\max(0, x)$, called **ReLU**: a positive number passes, and a negative number becomes 0. Let us see what a single ReLU can do for two numbers $(a, b)$ that are side by side on a word's lane. Take
#
# $$h = \max(0,\, b - a),$$
#
# which is the lead of $b$ over $a$, or nothing if there is none. Then add $h$ to $a$, and subtract it from $b$. From $(1, 3)$ we get $h = 2$, and $(1 + 2,\ 3 - 2) = (3, 1)$. From $(3, 1)$ we get $h = 0$, and nothing changes. One bend has sorted two numbers, and the larger of them is now always the first.
#
# What have we done? We *read* from the lane with some weights, here $(-1, 1)$. We bent the result, and then we *wrote* to the lane with other weights, here $(1, -1)$. A number like $h$ is called a **hidden unit**. The position-wise feed-forward network of the paper is $d_{ff}$ of these units, and nothing else. $W_1$ has the weights with which they read, $W_2$ the weights with which they write, and there are two biases:
#
# $$\mathrm{FFN}(x) = \max(0,\; xW_1 + b_1)\, W_2 + b_2$$


# %%
class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 (equation 2): (..., d_model) -> the same."""

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.W_2(self.W_1(x).relu())


# %% tags=["active-ipynb"]
# sort = FeedForward(d_model=2, d_ff=1)
# sort.W_1.weight.data = torch.tensor([[-1.0, 1.0]])  # how far is b ahead?
# sort.W_2.weight.data = torch.tensor([[1.0], [-1.0]])  # a gets it, b gives it
# sort.W_1.bias.data.zero_()
# sort.W_2.bias.data.zero_()
#
# x = torch.tensor([[1.0, 3.0], [3.0, 1.0], [-2.0, 0.5]])
# print("sorted:", (x + sort(x)).tolist())
# views.sorting(sort, x)

# %% [markdown]
# *Go along each row: where the second number leads, the unit moves its lead over to the first; where it does not lead (the grey row), the unit writes nothing.*
#
# The network need not produce the sorted pair. Its output is *added* to the lane (the residual connection of [chapter 3](03_stacks.ipynb)), so it only supplies the correction.
#
# Can training find such a correction? We give the two heads a network of 64 units, which has about as many parameters as the two heads more. What will its error be: 0.1, or a tenth of that?

# %% tags=["active-ipynb"]
# def heads_and_network():
#     return Larger(network=FeedForward(d_model=32, d_ff=64))
#
#
# models, errors["two heads, then a network"] = three_trainings(heads_and_network)
# views.learning_larger(errors, floor=best_sum)

# %% [markdown]
# *A line is one training: compare where the orange lines, with a network, are after 500 updates with where the blue lines are.*
#
# Twice the error falls to about a hundredth of what attention leaves, and it is not a matter of more numbers to learn, because the dotted models had about as many. The third training with a network does better than attention, too, but it remains far above the other two. Did its network fail to compare, or did its heads fail to fetch? We look at what the heads put on the lane, before the network, and ask how well the best sum reads each of the two numbers off it. (`lstsq` finds the weights of this sum by least squares, so nothing is trained.)

# %% tags=["active-ipynb"]
# for model in models:
#     query, pairs, numbers, _ = toys.ask_for_two(names, count=4000)
#     fetched = model.fetch(query, pairs, pairs)[:, 0].detach()
#     best_weights = torch.linalg.lstsq(fetched, numbers).solution
#     error = (fetched @ best_weights - numbers).square().mean()
#     print(f"each number can be read off the lane with the error {error:.3f}")

# %% [markdown]
# In the third model the heads failed. The error of one half is what a single head reached in chapter 4: both heads bring the same blend, and what has not come cannot be compared. In the other two models both numbers had come, and the network compared them.
#
# In this task only the query had a lane. In a sentence every word has a lane, and the network works on each of them: with the same $W_1$ and $W_2$ everywhere, and on each by itself, as if the other words were not there. That is what **position-wise** means. So a Transformer divides the work. Whatever a word knows of other words has come by attention, and what is to be made of it is worked out in the network.

# %% [markdown]
# ## How many units?
#
# One unit can sort two numbers. What do more units add? To see it, let the input be a single number. Then each unit is a straight line that is cut off at 0 on one side, and where it sets in, the network's line gets a kink. So $d_{ff}$ units can make $d_{ff}$ kinks, and the width says how finely a function can be shaped. Here the kinks are at equal distances, and the weights $W_2$ are the best weights for a wave, found by `lstsq` once more.

# %% tags=["active-ipynb"]
# line = torch.linspace(-2, 2, 161)[:, None]
# wave = torch.sin(3 * line)
#
#
# def fitted(d_ff):
#     network = FeedForward(d_model=1, d_ff=d_ff).requires_grad_(False)
#     network.W_1.weight.data.fill_(1.0)
#     network.W_1.bias.data = -torch.linspace(-2, 2, d_ff + 2)[1:-1]  # unit: x - its kink
#     hidden = network.W_1(line).relu()
#     for_b_2 = torch.ones(len(line), 1)
#     columns = torch.cat([hidden, for_b_2], dim=1).double()
#     best = torch.linalg.lstsq(columns, wave.double()).solution.float()
#     network.W_2.weight.data, network.W_2.bias.data = best[:-1].T, best[-1]
#     return network
#
#
# views.kinks({d_ff: fitted(d_ff) for d_ff in range(1, 33)}, line, wave)

# %% [markdown]
# *A dot is where a unit sets in: with more units the orange line bends more often and gets closer to the grey wave.* (In a running notebook: move the number of units.)
#
# How many units does a model need, then? No formula says. The paper takes four times the width of the lane, $d_{ff} = 2048$ for $d_{model} = 512$, and tried half and twice as many in its Table 3. BLEU, its score for translations, was 25.4 with half as many units, 25.8 with 2,048, and 26.2 with twice as many. More units were better, and they cost more. The network has two matrices of $d_{model} \times 4\,d_{model}$ numbers, where attention has four of $d_{model} \times d_{model}$:

# %% tags=["active-ipynb"]
# parts = {"attention": MultiHeadAttention(512, h=8), "network": FeedForward(512, 2048)}
# for name, part in parts.items():
#     print(f"{name}: {sum(p.numel() for p in part.parameters()):,} numbers")

# %% [markdown]
# So two thirds of an encoder layer's numbers are in the network. A decoder layer has two attentions, and there it is half.

# %% [markdown]
# ## A memory with 2,048 entries
#
# What might so many units be good for? Look at equation 2 once more, unit by unit. Call unit $i$'s column of $W_1$ its key $k_i$, and its row of $W_2$ its value $v_i$:
#
# $$\mathrm{FFN}(x) = \sum_{i=1}^{d_{ff}} \max(0,\; x \cdot k_i + b_i)\; v_i \;+\; b_2$$
#
# You have seen this shape before. It is attention's: compare with keys, and add up values by how well they fit. Two things differ. The keys and values do not come from the other words of the sentence; they are learned, and the same for every sentence. And there is no softmax, so the units do not share a total of 1: many may be on, or none. So one can read the network as a **memory** (Geva et al., 2021): *where you find this pattern, write that.*

# %% tags=["active-ipynb"]
# views.memory()

# %% [markdown]
# *Follow x from left to right: it meets all keys, most units stay off, and the values of the others, with one bias, are added to the lane.*
#
# Does the sum over units give the same as the class? In the code a key is a *row* of `W_1.weight` and a value a *column* of `W_2.weight`, because `nn.Linear` keeps its matrix turned on its side.

# %% tags=["active-ipynb"]
# network, x = FeedForward(d_model=32, d_ff=128), torch.randn(32)
# total = network.W_2.bias
# for i in range(128):
#     key, bias = network.W_1.weight[i], network.W_1.bias[i]
#     value = network.W_2.weight[:, i]
#     total = total + (x @ key + bias).relu() * value
# assert torch.allclose(total, network(x), atol=1e-5)
# print("unit by unit: the same")

# %% [markdown]
# ## Can you read the entries?
#
# This book ships with a small translator from English to German, trained on sentences of a small made-up grammar. We take the last network of its decoder. It has 512 units, and it works just before the model names the next German word. We let the model read 300 test sentences with their translations, and `cache` keeps three things at each place: what the units say, what was on the lane before the network, and what the network adds.

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# english, german = zip(*read_corpus("bundled", "test")[:300])
#
#
# def padded(rows):
#     return pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
#
#
# source = padded([*tokenizer.encode(text), tokenizer.eos_id] for text in english)
# target = padded([tokenizer.bos_id, *tokenizer.encode(text)] for text in german)
# real = target[:, 1:] != tokenizer.pad_id  # places that are no padding
# before, after = target[:, :-1][real], target[:, 1:][real]  # the words around a place
#
# name = "decoder.1.feed_forward"
# with torch.no_grad(), cache(model, f"{name}.*") as seen:
#     model(source, target[:, :-1])
# hidden = seen[f"{name}.hidden"][real]  # (places, 512)
# lane = (seen[f"{name}.before"] + seen[f"{name}.output"])[real]  # (places, 128)
# on = (hidden > 0).float().mean().item()
# print(f"{len(hidden):,} places; at a place {on:.0%} of the units are on")

# %% [markdown]
# So the other units write nothing there. What does a unit *read*? We find the 100 places where it is strongest, and count the words just before these places.
#
# What does it *write*? We take it away. At these 100 places we subtract the unit's value, as often as the unit wrote it, from the lane. Then we look which next words have lost probability: these words the unit had made likelier. (How a lane becomes probabilities is the matter of [chapter 6](06_embeddings.ipynb).)

# %% tags=["active-ipynb"]
# last_layer = model.decoder.layers[1]
# values = last_layer.feed_forward.W_2.weight.detach().T  # (512, 128)
# strongest = hidden.topk(100, dim=0).indices.T  # (512, 100): the places of each unit
#
#
# @torch.no_grad()
# def next_words(lane):
#     """The probabilities of all words to come next."""
#     return model.output(last_layer.residuals[2].norm(lane)).softmax(dim=-1)
#
#
# def brings(unit):
#     """The probability that a unit brings to each word, mean of its 100 places."""
#     places = strongest[unit]
#     written = hidden[places, unit, None] * values[unit]
#     gain = next_words(lane[places]) - next_words(lane[places] - written)
#     return gain.mean(dim=0)
#
#
# brought = torch.stack([brings(unit) for unit in range(512)])  # (512, words)
# best_four = brought.topk(4, dim=1).values.sum(dim=1)
# order = best_four.argsort(descending=True).tolist()

# %% [markdown]
# Now we could pick units that look good. To be fair, we sort all 512 by what they bring to their four best words together, and show the first four units and the unit in the middle.

# %% tags=["active-ipynb"]
# def said(token):
#     return tokenizer.decode([token]) or "(start)"
#
#
# def reads_and_writes(unit):
#     words = Counter(before[strongest[unit]].tolist()).most_common(4)
#     points, best = (100 * brought[unit]).topk(4)
#     reads = {said(word): count for word, count in words}
#     writes = {said(word): gain for word, gain in zip(best.tolist(), points.tolist())}
#     return reads, writes
#
#
# rows = {}
# for place in (1, 2, 3, 4, 256):
#     unit = order[place - 1]
#     rows[f"unit {unit}, number {place} of 512"] = reads_and_writes(unit)
# views.units(rows)

# %% [markdown]
# *Read each row as a rule: left, the words after which the unit is strongest; right, the words that it makes likelier, in hundredths of probability (five points: from 30% to 35%, say).*
#
# Unit 50 is on where a new clause begins, after "when", "but", "if" and "that", and it writes *der* and *ein*, "the" and "a" before a masculine subject. Unit 213 is on after prepositions, and writes articles in the forms that German has after prepositions. Unit 488 brings the comma. The words before its places have little in common, so it hardly reads the word before: what it reads, the layers below must have put on the lane. Unit 364 does two jobs. At the start of a sentence it writes *Die*, and after words such as *worden*, "been", it writes the full stop.
#
# So of the four units at the top one or two can be read as rules, unit 213 best of all. None of them decides alone. Even the strongest brings 7 points, and the other units have to bring the rest. And the unit in the middle? We have no name for what it does: it brings no word even half a point.
#
# The left column could deceive us, because some words are frequent before *any* place. How many of 100 places follow one of only five words, for a unit, and for places drawn at random?

# %% tags=["active-ipynb"]
# def commonest(places):
#     """How many places follow one of their five commonest words."""
#     words = Counter(before[places].tolist()).most_common(5)
#     return sum(count for _, count in words)
#
#
# random_places = [torch.randperm(len(before))[:100] for _ in range(200)]
# by_chance = sum(map(commonest, random_places)) / 200
# print(f"five words before 100 random places: {by_chance:.0f}")
# reading = torch.tensor([commonest(places) for places in strongest])
# print(
#     f"the units: {reading.median()} in the middle; {(reading >= 50).sum()} from 50 up"
# )

# %% [markdown]
# Unit 213's five commonest words make up more than half of its places. In the middle of all units it is 24, where chance alone gives 21. So most units are not tied to the word before. They answer to mixtures for which we have no name, or to things that the layers below have worked out, as unit 488 does. "Memory" is a good way to read equation 2, but not a dictionary that you could print.

# %% [markdown]
# ## What breaks without it?
#
# Last, we take whole sublayers away from the trained translator, one at a time: where the last matrix of a sublayer is 0, it adds nothing to the lanes. We do it to the networks and, for comparison, to the attentions. The model reads 100 of our test sentences, and at each place of the translation it names the next word. Before you look: what will it miss most, and will it fail in the same way without an attention as without a network?

# %% tags=["active-ipynb"]
# def without(name):
#     """The model, but one of its sublayers adds nothing."""
#     silent = copy.deepcopy(model)
#     part = silent.get_submodule(name)
#     last = part.W_2 if name.endswith("feed_forward") else part.W_O
#     for p in last.parameters():
#         p.data.zero_()
#     return silent
#
#
# @torch.no_grad()
# def named(model):
#     """The word that the model finds likeliest at each place of 100 sentences."""
#     best = model(source[:100], target[:100, :-1]).argmax(dim=-1)
#     return best[real[:100]]
#
#
# right = after[: len(named(model))]
# kinds = {"self_attention": "self-attention", "feed_forward": "network"}
# in_decoder = {**kinds, "cross_attention": "cross-attention"}
# score = {"the whole model": 100 * (named(model) == right).float().mean().item()}
# for half, parts in (("encoder", kinds), ("decoder", in_decoder)):
#     for layer in (0, 1):
#         for part, title in parts.items():
#             silent = without(f"{half}.layers.{layer}.{part}")
#             share = (named(silent) == right).float().mean().item()
#             score[f"without {half} {layer + 1}'s {title}"] = 100 * share
# views.switched_off(score)

# %% [markdown]
# *Compare the bars with the first: blue is without an attention, orange without a network, and the three lowest are all in the decoder.*
#
# The whole model names nearly every word right, which is no wonder in a language this small. Without one of the encoder's networks it hardly notices. Without one of the decoder's networks it does, and it suffers most without the last cross-attention, through which the source reaches the translation.
#
# Let these three write by themselves, each word after its own words. The sentence should become *Dieser Esel wartete geduldig auf einem Hügel*, word by word "this donkey waited patiently on a hill".

# %% tags=["active-ipynb"]
# english = ["This donkey waited patiently on a hill."]
# for part in ("0.feed_forward", "1.feed_forward", "1.cross_attention"):
#     silent = without(f"decoder.layers.{part}")
#     (german,) = translate(silent, tokenizer, english, beam=1)
#     print(f"{part:18}{german[:58]}")

# %% [markdown]
# The failures are of two kinds. Without the cross-attention of the last layer the German is still mostly German, and it ends. But it is another sentence: "luckily", then a word that does not exist, then "wrote the doctor". What the source says has not arrived. Without a network in the decoder it has arrived. But the model says *geduldig*, "patiently", again and again, or it writes the whole sentence and cannot stop. In this sentence, at least, what is missing is the step from "this has just been said" to what comes next.
#
# Be careful with the conclusion, though. The encoder's networks are hardly missed, so the work is not divided as cleanly everywhere. And this model was trained with all its parts: one that had to do without might have found another way.
#
# So attention moves things between words, and the network makes something of what has come: it compares, cuts off, and writes what it has learned. *Most later models replaced the ReLU: GELU (Hendrycks and Gimpel, 2016) is a smooth one, and SwiGLU (Shazeer, 2020) multiplies two hidden layers.*

# %% [markdown]
# ## What to keep
#
# - A fixed sum cannot compare. Attention can lean by its softmax, but once two numbers are on one lane, choosing between them takes a bend on that lane.
# - Each hidden unit reads the lane of one word with its key, and where it finds its pattern it adds its value to the same lane.
# - Nothing in the network sees another word: attention moves, and the network makes something of it.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Two features of a word, $x_1$ and $x_2$, are each 0 or 1: say, "is in the plural" and "is the subject". Find a unit that is 1 if both are there, and else 0. Then find two units whose sum, with weights, is 1 if *exactly one* is there, and else 0. (No sum without units can do that. Why not?)
#
# <details><summary>Answer</summary>
#
# Both: $\max(0,\ x_1 + x_2 - 1)$. Exactly one: $\max(0,\ x_1 + x_2) - 2\max(0,\ x_1 + x_2 - 1)$, which is 0, 1, 1 and $2 - 2 = 0$ for the four cases. (The first of the two units never cuts anything off here, because $x_1 + x_2$ is never negative. All the bending is done by the second.) A sum $u x_1 + v x_2 + w$ would need $w = 0$, $u = 1$ and $v = 1$, and then says 2 for the last case, as the larger of two numbers did.
# </details>
#
# **2. In code.** Shape a function with kinks: the hat that is 0 up to $-1$, rises to 1 at 0, falls to 0 at 1, and stays 0. It is a weighted sum of three hidden units, each the `relu` of $x$ plus a bias. Use `relu` and no other function with a bend. (To see that you did, the check also calls your function with a rounded `relu`, and expects a rounded hat.)

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.feed_forward import check_hat
#
#
# def hat(x, relu):
#     """x (n,) -> max(0, 1 - |x|), as a sum of kinks."""
#     ...
#
#
# check_hat(hat)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def hat(x, relu):
#     rise = relu(x + 1)
#     turn = -2 * relu(x)
#     end = relu(x - 1)
#     return rise + turn + end
# ```
#
# The slope is 1 after the first unit sets in, the second takes 2 away, and the third brings it back to 0.
# </details>
#
# **3. In code, and to think about.** How well could a head compare, if we chose its scores by hand? Let the score of a pair be 10 if its name is asked for, plus $s$ times its number. Write what the head brings home: the numbers, blended by the softmax of these scores. Then try it on `torch.randn(10_000, 6)` numbers of which the first two are asked for, and look at the variance of its distance from the larger of the two. Try $s = 0, 1, 2, 4$ and $8$. Before you do: will a larger $s$ always help? And what would the head do about two numbers in *one* word?

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.feed_forward import check_blend
#
#
# def blend(numbers, asked, s):
#     """numbers (count, 6), asked (6,) of 0 and 1 -> what the head brings home (count,)."""
#     ...
#
#
# check_blend(blend)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def blend(numbers, asked, s):
#     scores = 10 * asked + s * numbers
#     weights = scores.softmax(dim=-1)
#     return (weights * numbers).sum(dim=-1)
# ```
#
# With $s = 0$ the head takes both numbers alike, and the variance is the 0.18 of the best sum. With 1 it is about 0.006, and with 2 about 0.002: the bend of the softmax is quite enough. But with 4 it is back at 0.18, and with 8 it is worse. By now a large number with a wrong name has a higher score than the right names. To choose more sharply, the lead of the right names, 10, would have to grow with $s$. About two numbers in one word the head can do nothing: both come home with the same weight, whatever the scores.
# </details>
#
# **4. With the translator.** In `without` we set $W_2$ *and* $b_2$ to 0. So perhaps the units were not what the model missed: $b_2$ is added at every place, whatever the word. Change `without` so that the bias stays, and look again. Does the model still repeat itself?
#
# <details><summary>Answer</summary>
#
# Leave `last.bias` alone and set only `last.weight` to 0 (the attentions have no bias). The two bars of the decoder's networks hardly move, and the sentence about the donkey is broken in the same way. What the model missed was what the units write, which depends on the word.
# </details>
#
# **Next.** Words have been vectors all along. [Chapter 6](06_embeddings.ipynb) shows where these come from, and how a vector becomes a word again.
