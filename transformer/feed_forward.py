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
# In chapter 4 a query asked for two numbers, and two heads brought them home. Now we want to know which of the two is larger. For a computer this should be nothing. But both numbers are now in one word, and attention can only choose between words.
#
# So who compares? In every layer of a Transformer a second part follows attention: a small network that works on one word at a time. What can it do that attention cannot?

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
#
# import torch
#
# from transformer import load, read_corpus, translate, views
# from transformer.attention import MultiHeadAttention
# from transformer.teaching import toys, units
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits

# %% [markdown]
# ## Attention has brought two numbers. Which is larger?
#
# As in chapter 4, there are six pairs of a name and a number, and a query asks for two names. But now it wants only the larger of their numbers:

# %% tags=["active-ipynb"]
# pairs = {"Ada": 0.3, "Ben": -1.2, "Cleo": 0.8, "Dan": -0.5, "Eve": 1.1, "Fay": 0.1}
# views.larger_of_two(pairs, asked=("Dan", "Ada"))

# %% [markdown]
# *Follow the two blue arrows: each head brings one number to the query's lane, and then somebody has to say which is larger.*
#
# Could one more head compare them on the lane? A head gives a weight to a *word*. Here two numbers $a$ and $b$ are in one word, so both come home with the same weight, whatever it is. If the query looks only at its own lane, there is a single score, and its softmax is 1. Whatever the matrices $W_V$ and $W_O$ then make of $a$ and $b$, it is a sum.
#
# Could a sum say which number is larger? Then there would be three numbers $u$, $v$ and $w$ with
#
# $$\max(a, b) = u\,a + v\,b + w .$$
#
# Look for them with a pencil:
#
# - Of 0 and 0 the larger is 0, so $w = 0$.
# - Of 1 and 0 the larger is 1, so $u = 1$.
# - Of 0 and 1 the larger is 1, so $v = 1$.
# - Of 1 and 1 the larger is 1. But the sum says 2.
#
# So no sum is always right. How wrong is the best one? We take ten thousand random pairs, and let least squares (`lstsq`) find the $u$, $v$ and $w$ with the smallest mean squared error:

# %% tags=["active-ipynb"]
# a, b = torch.randn(2, 10_000)  # mean 0 and variance 1, as in chapter 4
# columns = torch.stack([a, b, torch.ones(10_000)], dim=1)
# larger = torch.maximum(a, b)
# best = torch.linalg.lstsq(columns, larger[:, None]).solution  # u, v, w
# best_error = (columns @ best - larger[:, None]).square().mean().item()
# u, v, w = best.flatten().tolist()
# print(f"best sum: {u:.2f} a + {v:.2f} b + {w:.2f}, error {best_error:.2f}")

# %% [markdown]
# The best sum takes the mean of the two numbers and always adds the same. It says the same for 1 and 3 as for 2 and 2, because $1 + 3 = 2 + 2$. To do better, it would have to follow $a$ as long as $a$ leads, and from there on follow $b$. A sum goes straight on. What it lacks is a **bend**.

# %% [markdown]
# ## One bend can compare
#
# The simplest function with a bend is $\max(0, x)$, called **ReLU**. A positive number passes, and a negative number becomes 0.
#
# Put two numbers $a$ and $b$ side by side on a word's lane, for example 1 and 3. How far is $b$ ahead? Let
#
# $$h = \max(0,\, b - a) .$$
#
# Here $h = 2$. Now add $h$ to $a$ and take it from $b$: the lane has $(3, 1)$. If the lane had $(3, 1)$ from the beginning, $b$ is not ahead, so $h = 0$ and nothing changes. Either way the larger number is now the first. One bend has sorted two numbers.
#
# We did three things:
#
# 1. We **read** from the lane, with the weights $(-1, 1)$.
# 2. We **bent** the result, so that only a lead counts.
# 3. We **wrote** to the lane $h$ times $(1, -1)$.
#
# A number such as $h$ is called a **hidden unit**. The paper's **feed-forward network** is many hidden units side by side, $d_{ff}$ of them, and nothing else. The matrix $W_1$ has the weights with which they read, the matrix $W_2$ has those with which they write, and to each result a bias is added:
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


# %% [markdown]
# Our unit that sorts is such a network with $d_{ff} = 1$. We give it three pairs. What will it write for the last one, $(-2, 0.5)$?

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
# The network gives only the correction. What was on the lane stays there, and the correction is added: that is the residual connection of [chapter 3](03_stacks.ipynb).

# %% [markdown]
# ## Does training find the bend?
#
# We chose these weights by hand. A model has to find them. In ours, two heads fetch, a second part adds to the lane, and a sum reads the answer off it. The second part is either a network, or two more heads with about as many parameters. These heads have it easier than on the lane alone: they may look at all pairs again.

# %% tags=["active-ipynb"]
# class Larger(nn.Module):
#     def __init__(self, second):
#         super().__init__()
#         self.fetch = MultiHeadAttention(32, h=2)
#         self.second = second
#         self.answer = nn.Linear(32, 1)
#
#     def forward(self, query, pairs):
#         x = query + self.fetch(query, pairs, pairs)  # (queries, 1, 32)
#         if isinstance(self.second, FeedForward):
#             x = x + self.second(x)  # it sees only the lane
#         else:
#             x = x + self.second(x, pairs, pairs)  # they see the pairs
#         return self.answer(x)[:, 0, 0]  # one number for each query

# %% [markdown]
# The data are those of chapter 4, and we train each kind three times. Before you look: will two more heads beat the best sum, or a network, or both?

# %% tags=["active-ipynb"]
# names = torch.randn(32, 16)  # a stock of names, of which each input has six
#
#
# def train(second, updates=500):
#     """The error at each update."""
#     model = Larger(second)
#     optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
#     errors = []
#     for _ in range(updates):
#         query, pairs, numbers, _ = toys.ask_for_two(names, count=64)  # numbers (64, 2)
#         error = (model(query, pairs) - numbers.amax(dim=1)).square().mean()
#         optimizer.zero_grad()
#         error.backward()
#         optimizer.step()
#         errors.append(error.item())
#     return errors
#
#
# heads = [train(MultiHeadAttention(32, h=2)) for _ in range(3)]
# networks = [train(FeedForward(32, d_ff=64)) for _ in range(3)]
# errors = {"two more heads": torch.tensor(heads), "a network": torch.tensor(networks)}
# views.learning_larger(errors, floor=best_error)

# %% [markdown]
# *A line is one training, a point the mean of 25 updates, and from tick to tick the error falls to a tenth: the blue lines, heads alone, end a little below the best sum, and the orange ones, with a network, go far below it.*
#
# The network leaves less than a twentieth of the best sum's error. The heads do get below the dashed line, slowly. How can they? For them the numbers are still in two different words, and a softmax is a bend, too: a head can lean towards the word with the larger number. Exercise 3 builds one by hand, with error 0.002. So heads can compare *words*, and here they learn it slowly. For what has already met on one lane, the network has the bend.

# %% [markdown]
# ## Every word has the same network, and has it to itself
#
# In our task only the query had a lane. In a sentence every word has one, and the network works at every place with the same $W_1$ and $W_2$, and on each word as if the others were not there. That is why its full name is **position-wise** feed-forward network.
#
# Let us put another word in the place of "dog". Which of the four words will get another output from attention, and which from the network?

# %% tags=["active-ipynb"]
# words = ["Tom", "feeds", "his", "dog"]
# x = torch.randn(4, 32)  # a vector for each word
# with_cat = x.clone()
# with_cat[3] = torch.randn(32)
#
# attention, network = MultiHeadAttention(32, h=2), FeedForward(32, d_ff=128)
# attended = [attention(y, y, y)[0] for y in (x[None], with_cat[None])]  # batches of one
# changes = {
#     "attention": (attended[0] - attended[1]).norm(dim=1),
#     "network": (network(x) - network(with_cat)).norm(dim=1),
# }
# views.who_notices(changes, words, "cat")

# %% [markdown]
# *The numbers say how far each output moves (its norm): in attention all four words notice the cat, in the network only the word that has changed.*
#
# So a layer divides its work: attention brings what a word knows of other words, and the network makes something of it.

# %% [markdown]
# ## More units, more kinks
#
# What do more units add? Let the input be a single number $x$. The unit $\max(0, x)$ draws a line with a kink: it is 0 up to $x = 0$, and rises from there. Two units make the absolute value:
#
# $$|x| = \max(0, x) + \max(0, -x) .$$
#
# In the same way $d_{ff}$ units draw a line with up to $d_{ff}$ kinks. How many does it take to follow a wave? Below, $W_1$ and $b_1$ put the kinks at even distances, and least squares finds $W_2$ and $b_2$.

# %% tags=["active-ipynb"]
# line = torch.linspace(-2, 2, 161)[:, None]
# wave = torch.sin(3 * line)
# followers = {
#     d_ff: units.even_kinks(FeedForward(d_model=1, d_ff=d_ff), line, wave)
#     for d_ff in range(1, 33)
# }
# views.kinks(followers, line, wave)

# %% [markdown]
# *A dot is where a unit sets in: with more units the orange line bends more often and gets closer to the grey wave.* (In a running notebook: move the number of units.)
#
# How many units does a Transformer need? The paper takes four times the width of the lane: $d_{ff} = 2048$ for $d_{model} = 512$. With twice as many, BLEU, its score for translations, rose by 0.4, and the parameters from 65 to 90 million (Table 3).
#
# Count their cost with a pencil. Attention has four matrices of $d_{model} \times d_{model}$ numbers: $W_Q$, $W_K$, $W_V$ and $W_O$. The network has two of $d_{model} \times 4\,d_{model}$, as much as eight of attention's. So two thirds of an encoder layer's numbers are in the network. What might they hold?

# %% [markdown]
# ## Each unit is a key and a value
#
# Read equation 2 once more, unit by unit. Unit $i$ reads with column $i$ of $W_1$: call it the key $k_i$. It writes with row $i$ of $W_2$: call it the value $v_i$. Then the network is a sum over its units:
#
# $$\mathrm{FFN}(x) = \sum_{i=1}^{d_{ff}} \max(0,\; x \cdot k_i + b_i)\; v_i \;+\; c$$
#
# (Here $b_i$ is unit $i$'s number in $b_1$, and $c$ is the vector that equation 2 calls $b_2$.)
#
# You know this shape from attention: compare with keys, and add up values by how well they fit. Two things differ. Attention makes its keys and values from the words of the sentence, while the network's are learned and the same for every sentence. And there is no softmax, so many units may be on at a time, or none.
#
# So one can read the network as a **key-value memory** (Geva et al., 2021). Each entry says: *where you find this pattern, write that.*

# %% tags=["active-ipynb"]
# total = network.W_2.bias
# for i in range(128):
#     key = network.W_1.weight[i]  # nn.Linear keeps a matrix turned on its side
#     value = network.W_2.weight[:, i]
#     bias = network.W_1.bias[i]
#     total = total + (x[0] @ key + bias).relu() * value
# assert torch.allclose(total, network(x)[0], atol=1e-5)
# print("unit by unit, the network's output is the same")
# views.memory()

# %% [markdown]
# *Follow x from left to right: it meets all keys, most units stay off, and the values of the others are added to the lane, with the bias c.*

# %% [markdown]
# ## Can you read the entries?
#
# This book ships with a small translator from English to German: two layers on each side, 1.4 million parameters, trained on 20,000 pairs of sentences that a grammar wrote. The last network of its decoder has 512 units, and works just before the next German word is named. We let the model read test sentences with their translations.
#
# What does a unit *read*, and what does it *write*? We find the 100 places where it is strongest and count the German words just before them. Then we take its value off the lane there, and see which next words lose probability (`next_word` is the rest of the model). That is what `units.entries` does:
#
# ```python
# at = hidden[:, unit].topk(100).indices  # after which words?
# gain = (next_word(lane[at]) - next_word(lane[at] - hidden[at, unit, None] * value)).mean(0)
# ```
#
# We sort the units by what they add to their best words, and show the first four and the one in the middle.

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# sentences = read_corpus("bundled", "test")[:300]
# views.units(units.entries(model, tokenizer, sentences, ranks=(1, 2, 3, 4, 256)))

# %% [markdown]
# *Left are the words after which the unit is strongest, right the next words that it makes likelier, in hundredths of probability; the two lists are separate, so a bar does not belong to the one beside it.*
#
# Unit 364 likes the start of a sentence and helps *Die* there. Its full stop must be for other places: one unit can serve two patterns. Unit 50 helps *der*, but what does it read? "When", "but" and "if" cover only 17 of its 100 places. The words before unit 488's comma have little in common, either. Both must read something else on the lane.
#
# Unit 213 looks most like a rule: *after a preposition, an article.* But it adds about two points. Remember this when, below, the model writes *auf einem* ("on a") with this whole network taken away. The unit helps, and something else knows the rule, too.
#
# And the unit in the middle adds less than half a point to any word. So "memory" is a good way to read equation 2, but not a dictionary that you could print.

# %% [markdown]
# ## What breaks without it?
#
# Now we take whole sublayers away from the translator, one at a time. With zeros in its last matrix a sublayer adds nothing to the lanes. The model reads a translation up to some word, and we call it right if its likeliest next word is the translation's. (The whole model nearly always is: these are sentences of the grammar it learned.) What will it miss most, a network or an attention?

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
# right = {"the whole model": units.right_words(model, tokenizer, sentences[:100])}
# for name, _ in model.named_modules():
#     if name.endswith(("attention", "feed_forward")):
#         silent = without(name)
#         right[name] = units.right_words(silent, tokenizer, sentences[:100])
# views.switched_off(right)

# %% [markdown]
# *Compare the bars with the first: blue is without an attention, orange without a network, and the three lowest are all in the decoder.*
#
# It misses an attention most: the decoder's last cross-attention, through which the source comes. Next come the decoder's two networks, the first before the second. Each other part costs 12 words of 100 at most, and the encoder's networks least. Do the three worst fail in the same way? Let them translate a sentence that should become *Dieser Esel wartete geduldig auf einem Hügel*, word by word "this donkey waited patiently on a hill":

# %% tags=["active-ipynb"]
# english = ["This donkey waited patiently on a hill."]
# for title, part in (
#     ("decoder 2's cross-attention", "1.cross_attention"),
#     ("decoder 1's network", "0.feed_forward"),
#     ("decoder 2's network", "1.feed_forward"),
# ):
#     silent = without(f"decoder.layers.{part}")
#     (german,) = translate(silent, tokenizer, english, beam=1)
#     print(f"without {title}: {german[:51]}")

# %% [markdown]
# Without the cross-attention the first word means "luckily", the second is no German, and the last three say "wrote the doctor": nothing of the source has arrived. Without a network it has arrived. But without the first the model says "patiently" again and again, and without the second it writes the whole sentence and does not stop (we show 51 letters).
#
# Who compares, then? In our task the network did, once attention had brought both numbers to one lane. In the translator we did not see a unit compare. We saw units make some next words likelier, and the model lose its way without them.
#
# *Most later models replaced the ReLU: GELU (Hendrycks and Gimpel, 2016) bends smoothly, and SwiGLU (Shazeer, 2020) multiplies two hidden layers.*

# %% [markdown]
# ## What to keep
#
# - Attention weighs words. To compare two numbers on one lane takes a bend, and the network has many.
# - Each hidden unit reads the lane of one word with its key, and where it finds its pattern it adds its value to the same lane.
# - The network is the same for every word and sees only that word: attention brings, and the network makes something of it.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Two features of a word, $x_1$ and $x_2$, are each 0 or 1: say, "is in the plural" and "is the subject". Find a unit that is 1 if both are there, and else 0. Then find two units whose sum, with weights, is 1 if *exactly one* is there, and else 0. Why can no sum without units do that?
#
# <details><summary>Answer</summary>
#
# Both: $\max(0,\ x_1 + x_2 - 1)$. Exactly one: $\max(0,\ x_1 + x_2) - 2\max(0,\ x_1 + x_2 - 1)$. For none, one and both of the features this is 0, 1 and $2 - 2 = 0$. A sum would need $w = 0$, $u = 1$ and $v = 1$, and then says 2 for both, as it did for the larger of 1 and 1.
# </details>
#
# **2. In code.** Draw a hat with kinks: 0 up to $-1$, from there up to 1 at 0, down to 0 at 1, and 0 from there on. It is a weighted sum of three hidden units, each the `relu` of $x$ plus a bias. Use `relu` and no other function with a bend.

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
# **3. In code, and to think about.** How far can a head lean, if we choose its scores by hand? Let the score of a pair be 10 if its name is asked for, plus $s$ times its number. Write what the head brings home: the numbers, blended by the softmax of these scores. Then take `torch.randn(10_000, 6)` numbers, ask for the first two, and look at the variance of the distance from the larger one, for $s = 0$, 2 and 8. Does a larger $s$ always help? And what could the head do about two numbers in *one* word?

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
# With $s = 0$ the head takes both numbers alike, and the variance is the 0.18 of the best sum. With $s = 2$ it is about 0.002: the softmax is a bend, too. With $s = 8$ it is worse than at the beginning, because a large number with a wrong name now has the highest score. Of two numbers in one word the head cannot take the larger: both come home with the same weight.
# </details>
#
# **4. With the translator.** In `without` we set the matrix $W_2$ *and* its bias to 0. So perhaps the model did not miss the units but only the bias, which is added at every place, whatever the word. Change `without` so that it stays, and look again. Does the model still repeat itself?
#
# <details><summary>Answer</summary>
#
# Set only `last.weight` to 0 (the attentions have no bias). The two bars of the decoder's networks hardly move, and the donkey's sentence breaks in the same way. What the model missed was what the units write.
# </details>
#
# **Next.** Words have been vectors all along. [Chapter 6](06_embeddings.ipynb) shows where these come from, and how a vector becomes a word again.
