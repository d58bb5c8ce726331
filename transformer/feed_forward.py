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
# *Section 3.3 of the paper. Reading takes about 20 minutes, running half a minute. You need chapters [3](03_stacks.ipynb) and [4](04_attention.ipynb).*
#
# In chapter 4 two heads brought home two numbers, and we were content. But say that you want to know which of the two is larger. For a machine this should be nothing. Yet attention is bad at it, and more attention does not help. What helps is a small network, four lines of code, which every word has for itself and in which most numbers of an encoder are. Why is it so good at what attention is so bad at, and what else does it do?

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
# import torch.nn.functional as F
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
# Once its weights are chosen, all that attention does is to add up: so much of this vector and so much of that. Can a sum tell the larger of two numbers $a$ and $b$? Let us look for $u$, $v$ and $w$ with
#
# $$\max(a, b) = u\,a + v\,b + w .$$
#
# Of 0 and 0 the larger is 0, so $w = 0$. Of 1 and 0 it is 1, so $u = 1$, and of 0 and 1 it is 1, so $v = 1$. Then the sum says that of 1 and 1 the larger is 2. No numbers $u$, $v$ and $w$ will do.
#
# How close can a sum come? The larger number is half the sum plus half the difference,
#
# $$\max(a, b) = \frac{a + b}{2} + \frac{|a - b|}{2} .$$
#
# For example, of 1 and 3 it is $2 + 1$. The first part is a sum. The second has a bend in it, where $a = b$. All that a sum with a constant can do is to guess its mean, and what remains is its variance:

# %% tags=["active-ipynb"]
# a, b = torch.randn(2, 100_000)
# print(f"the best sum's mean squared error: {((a - b).abs() / 2).var():.3f}")

# %% [markdown]
# Now for the real thing. As in chapter 4 a query asks for two names among six pairs of a name and a number, and two heads fetch. But now the answer is the larger of the two numbers. `then` is what comes after the heads, and what it finds is added to what they brought.

# %% tags=["active-ipynb"]
# names = torch.randn(32, 16)  # a stock of names, of which each input has six
#
#
# def train(then=None, steps=600):
#     """The mean error of the last 100 steps."""
#     fetch, read = MultiHeadAttention(32, h=2), nn.Linear(32, 1)
#     learned = [p for part in (fetch, then, read) if part for p in part.parameters()]
#     optimizer = torch.optim.Adam(learned, lr=0.01)
#     errors = []
#     for _ in range(steps):
#         query, pairs, numbers, _ = toys.ask_for_two(names, count=64)
#         x = fetch(query, pairs, pairs)
#         if isinstance(then, MultiHeadAttention):
#             x = x + then(x, pairs, pairs)
#         elif then is not None:
#             x = x + then(x)
#         error = (read(x)[:, 0, 0] - numbers.amax(dim=1)).square().mean()
#         optimizer.zero_grad()
#         error.backward()
#         optimizer.step()
#         errors.append(error.item())
#     return sum(errors[-100:]) / 100
#
#
# print("two heads:         ", *[f"{train():.3f}" for _ in range(3)])
# again = [train(MultiHeadAttention(32, h=2)) for _ in range(3)]
# print("and two more after:", *[f"{error:.3f}" for error in again])

# %% [markdown]
# Each number is one training. We expected 0.18, and got a little less. The heads have found a way around our proof: their weights are not fixed, because the number beside a name can have a say in the key, and so they can *lean* towards the larger of the two (exercise 3). But leaning is not choosing. Most of the error is still there, and two heads more, with twice the parameters, lean no better. What is missing is the bend.

# %% [markdown]
# ## One bend is enough
#
# The simplest function with a bend is $\max(0, x)$, called **ReLU**: a positive number passes, and a negative one becomes 0. Let us see what a single one can do for two numbers $(a, b)$ that are side by side on a word's lane. Take
#
# $$h = \max(0,\, b - a),$$
#
# which is the lead of $b$ over $a$, or nothing if there is none. Then add $h$ to $a$, and subtract it from $b$. From $(1, 3)$ we get $h = 2$, and $(1 + 2,\ 3 - 2) = (3, 1)$. From $(3, 1)$ we get $h = 0$, and nothing changes. One bend has sorted two numbers, and the larger of them is now always the first.
#
# What have we done? We *read* from the lane with some weights, here $(-1, 1)$. We bent the result, and then we *wrote* to the lane with other weights, here $(1, -1)$. A number like $h$ is called a **hidden unit**. The position-wise feed-forward network of the paper is $d_{ff}$ of these units, and nothing else. $W_1$ has the weights with which they read, $W_2$ those with which they write, and there are two biases:
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
# for bias in (sort.W_1.bias, sort.W_2.bias):
#     bias.data.zero_()
#
# steps = []
# for pair in ((1.0, 3.0), (3.0, 1.0), (-2.0, 0.5)):
#     x = torch.tensor(pair)
#     hidden = sort.W_1(x).relu()
#     steps.append([v.tolist() for v in (x, hidden, sort(x), x + sort(x))])
# views.sorting([(before, h[0], written, after) for before, h, written, after in steps])

# %% [markdown]
# *Go along each row: where the second number leads, the unit is on and moves its lead over to the first; where it does not (in the middle), the unit writes nothing.*
#
# Note that the network need not produce the sorted pair. Its output is *added* to the lane (the residual connection of [chapter 3](03_stacks.ipynb)), so it need only supply the correction. Can it be learned, too? We give the heads a network of 64 units, which has as many parameters as the two heads more:

# %% tags=["active-ipynb"]
# errors = [train(FeedForward(d_model=32, d_ff=64)) for _ in range(3)]
# print("two heads, then a network:", *[f"{error:.3f}" for error in errors])

# %% [markdown]
# Now the error is all but gone (one of the three trainings is slower than the others). Attention fetched, and the network compared.
#
# ## Every word for itself
#
# At what does the network look? Only at one word. The same $W_1$ and $W_2$ work at each position, and none of them sees another. So if you replace one word, then the outputs at all others stay as they are:

# %% tags=["active-ipynb"]
# network = FeedForward(d_model=32, d_ff=128)
# x = torch.randn(6, 32)  # six words
# replaced = x.clone()
# replaced[2] = torch.randn(32)
# changed = (network(replaced) - network(x)).abs().amax(dim=1) > 0
# print("outputs that changed:", changed.tolist())

# %% [markdown]
# This is what **position-wise** means. It also says who does what in a Transformer: whatever a word knows of other words has come by attention, and what is to be made of it is worked out here, in each word by itself. (The paper says that this is the same as two convolutions whose windows are one word wide. So it is:)

# %% tags=["active-ipynb"]
# W_1, b_1, W_2, b_2 = network.parameters()
# hidden = F.conv1d(x.T, W_1[:, :, None], b_1).relu()
# assert torch.allclose(F.conv1d(hidden, W_2[:, :, None], b_2).T, network(x), atol=1e-5)
# print("two convolutions of width 1 give the same")

# %% [markdown]
# ## How many units?
#
# To see what a unit can do for a function, let the input be a single number. Then each unit is a straight line that is cut off at 0 on one side, and where it sets in, the network's line may get a kink. So $d_{ff}$ units can make $d_{ff}$ kinks, and the width says how finely a function can be shaped. Here we put the kinks at equal distances, and find the best weights $W_2$ for a wave (by least squares, so without any training).

# %% tags=["active-ipynb"]
# line = torch.linspace(-2, 2, 161)[:, None]
# wave = torch.sin(3 * line)
#
#
# def fitted(d_ff):
#     network = FeedForward(d_model=1, d_ff=d_ff).requires_grad_(False)
#     network.W_1.weight.data.fill_(1.0)
#     network.W_1.bias.data = -torch.linspace(-2, 2, d_ff + 1)[:-1]  # where units set in
#     hidden = torch.cat([network.W_1(line).relu(), torch.ones(161, 1)], dim=1)
#     best = torch.linalg.lstsq(hidden.double(), wave.double()).solution.float()
#     network.W_2.weight.data, network.W_2.bias.data = best[:-1].T, best[-1]
#     return network
#
#
# views.kinks({d_ff: fitted(d_ff) for d_ff in range(1, 33)}, line, wave)

# %% [markdown]
# *A dot is where a unit sets in: with more units the orange line bends more often and gets closer to the wave.* (In a running notebook: move the number of units.)
#
# Training has to find good places for the kinks, too, and it does not always: two may land in the same place, or far out where there are no inputs. That is one reason to have more of them than seem necessary. The paper has $d_{ff} = 2048$ units for vectors of $d_{model} = 512$ numbers. What does that cost? Attention has four matrices of $d_{model} \times d_{model}$ numbers, and the network has two of $d_{model} \times 4\,d_{model}$. That is 4 squares against 8.

# %% tags=["active-ipynb"]
# sizes = {
#     part.__class__.__name__: sum(p.numel() for p in part.parameters())
#     for part in (MultiHeadAttention(512, h=8), FeedForward(512, d_ff=2048))
# }
# print(sizes, f"-> {sizes['FeedForward'] / sum(sizes.values()):.0%} in the network")

# %% [markdown]
# Two thirds of an encoder layer. (A decoder layer has two attentions, so there it is half.)

# %% [markdown]
# ## A memory with 2,048 entries
#
# What are so many units for, if one can sort? Look at equation 2 once more, unit by unit. Call unit $i$'s column of $W_1$ its key $k_i$, and its row of $W_2$ its value $v_i$:
#
# $$\mathrm{FFN}(x) = \sum_{i=1}^{d_{ff}} \max(0,\; x \cdot k_i + b_i)\; v_i \;+\; b_2$$
#
# You have seen this shape before. It is attention's: compare with keys, and add up values by how well they fit. But here keys and values do not come from the other words of the sentence. They are learned, and the same for every sentence. So one can read the network as a **memory** (Geva et al., 2021): *where you find this pattern, write that.*

# %% tags=["active-ipynb"]
# views.memory()

# %% [markdown]
# *Follow x from left to right: it meets all keys, most units stay off, and the values of the others are added up.*
#
# Is that how a trained network works? This book ships with a small translator from English to German. We take the last network of its decoder, with 512 units, and let it read 300 test pairs. `cache` keeps what its units say at each place. What a unit *reads* we see from the words after which it is strongest. What it *writes* is a vector like those that the model compares with the rows of its embedding matrix, one for each word that may come next ([chapter 6](06_embeddings.ipynb)). So we compare its value with these rows, too. (This is rough, because a LayerNorm comes between.)

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# name = "decoder.1.feed_forward.hidden"
# hidden, before, after = [], [], []
# for english, german in read_corpus("bundled", "test")[:300]:
#     source = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]])
#     target = [tokenizer.bos_id, *tokenizer.encode(german)]
#     with torch.no_grad(), cache(model, name) as seen:
#         model(source, torch.tensor([target[:-1]]))
#     hidden.append(seen[name][0])
#     before += target[:-1]
#     after += target[1:]
# hidden = torch.cat(hidden)  # (places, 512)
# values = model.decoder.layers[1].feed_forward.W_2.weight.detach()  # (128, 512)
# writes = model.embedding.weight.detach() @ values  # (words, 512)
# writes -= writes.mean(dim=0)

# %% tags=["active-ipynb"]
# def reads_and_writes(unit):
#     places = hidden[:, unit].topk(100).indices.tolist()  # where it is strongest
#     words = Counter(tokenizer.decode([before[place]]) for place in places)
#     best = writes[:, unit].topk(6)
#     likelier = [tokenizer.decode([word]) for word in best.indices.tolist()]
#     return dict(words.most_common(5)), dict(zip(likelier, best.values.tolist()))
#
#
# views.units({f"unit {unit}": reads_and_writes(unit) for unit in (213, 50, 281)})

# %% [markdown]
# *Read each row as a rule: left, how often a word comes just before in the unit's 100 strongest places; right, how well the unit's value fits the rows of words.*
#
# You can nearly read German grammar here. Unit 213 is on after prepositions (*vor* is "before", *nach* is "after", *von* is "of"), and writes articles in the cases that follow prepositions: *den*, *diesen*, *ihren*. Unit 50 is on where a new clause begins, after "when", "but" and "that", and writes what its subject begins with: *der*, *ein*, *unser*. Unit 281 is on after *die* and *eine* and writes adjectives with the ending *-e* that belongs there.
#
# We looked for these three among 512, and you should ask how typical they are. Count how often, in a unit's 100 strongest places, the next word is among the ten that the unit favours:

# %% tags=["active-ipynb"]
# strongest = hidden.topk(100, dim=0).indices.T  # (512, 100)
# favoured = writes.topk(10, dim=0).indices.T  # (512, 10)
# came = torch.tensor(after)[strongest]  # (512, 100): the next word
# hits = (came[:, :, None] == favoured[:, None]).any(dim=2).sum(dim=1)
# print("units 213, 50, 281:", hits[[213, 50, 281]].tolist(), "of 100")
# print(
#     f"the median unit: {hits.median()}; {(hits > 50).sum()} of 512 units are above 50"
# )
# print(f"at a place {(hidden > 0).float().mean():.0%} of the units are on")

# %% [markdown]
# Most units are no such rules. They answer to mixtures for which we have no name, and only many of them together say something. (Unit 281 is a rule with a low count, because there are many more adjectives than ten.) So "memory" is a good way to read equation 2, but not one that you could print as a dictionary.

# %% [markdown]
# ## What is lost without it?
#
# Last, we take the networks away from the trained translator, one layer at a time: with $W_2 = 0$ and $b_2 = 0$ a network adds nothing to the lanes. Then we count how many of 100 test sentences still come out exactly right. Which networks will be missed more, the encoder's or the decoder's?

# %% tags=["active-ipynb"]
# sources, references = zip(*read_corpus("bundled", "test")[:100])
#
#
# def exactly_right(model):
#     german = translate(model, tokenizer, sources, beam=1)
#     return sum(text == right for text, right in zip(german, references))
#
#
# right = {"none": exactly_right(model)}
# for half in ("encoder", "decoder"):
#     for layer in (0, 1):
#         without = copy.deepcopy(model)
#         network = getattr(without, half).layers[layer].feed_forward
#         network.W_2.weight.data.zero_()
#         network.W_2.bias.data.zero_()
#         right[f"{half}, layer {layer + 1}"] = exactly_right(without)
# views.switched_off(right, total=100)

# %% [markdown]
# *Compare the bars with the first: without one of the encoder's networks most sentences survive, and without one of the decoder's none does.*
#
# That fits the story of the memory, because it is the decoder that has to say German words. But be careful with the conclusion: this model was trained with all its networks, and one that had to do without might have found another way.
#
# So attention moves things between words, and the network makes something of them: it compares, cuts off, and looks up what it has learned. *Most later models replaced the ReLU: GELU (Hendrycks and Gimpel, 2016) is a smooth one, and SwiGLU (Shazeer, 2020) multiplies two hidden layers. The package uses this very class.*

# %% [markdown]
# ## What to keep
#
# - Attention can only blend; to compare, to cut off, to decide, a word needs the bend of a small network.
# - Each hidden unit reads the lane of one word with its key, and where it finds its pattern it adds its value to the same lane.
# - Nothing in the network sees another word: attention moves, and the network makes something of it.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Two features of a word, $x_1$ and $x_2$, are each 0 or 1: say, "is in the plural" and "is the subject". Find a unit that is 1 if both are there, and else 0. Then find two units whose sum, with weights, is 1 if *exactly one* is there, and else 0. (No sum without units can do that. Why not?)
#
# <details><summary>Answer</summary>
#
# Both: $\max(0,\ x_1 + x_2 - 1)$. Exactly one: $\max(0,\ x_1 + x_2) - 2\max(0,\ x_1 + x_2 - 1)$, which is 0, 1, 1 and $2 - 2 = 0$ for the four cases. A sum $u x_1 + v x_2 + w$ would need $w = 0$, $u = 1$ and $v = 1$, and then says 2 for the last case, as the larger of two numbers did.
# </details>
#
# **2. In code.** Shape a function with kinks: the hat that is 0 up to $-1$, rises to 1 at 0, falls to 0 at 1, and stays 0. It is a weighted sum of three hidden units, each the `relu` of $x$ plus a bias. (Use only the `relu` that you are given. The check also tries a smooth one.)

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
# **3. To think about.** Two heads brought the error of the larger number below what any fixed sum reaches. But attention only adds up! Where is their bend? And why is comparing so much harder for a head than for the network?
#
# <details><summary>Answer</summary>
#
# The bend is in the softmax. The weights of the sum are not fixed: they depend on queries and keys, and the numbers are a part of these. For example, a head whose keys grow with the number beside the name gives more weight to the pair with the larger number, and so brings home more of it. But it must find the two pairs by their names *and* weigh their numbers in one and the same score, and its weights only lean: they choose the larger number cleanly only if the scores are huge. The network gets the two numbers ready on one lane, and needs one bend.
# </details>
#
# **Next.** Words have been vectors all along. [Chapter 6](06_embeddings.ipynb) shows where these come from, and how a vector becomes a word again.
