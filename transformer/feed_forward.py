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
# In chapter 4 a query asked for two numbers, and two heads brought them home. Now we want to know which of these numbers is larger. For a computer this should be nothing. But both numbers are now in one vector, on the lane of one word, and attention was made to choose between words.
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
# from transformer.teaching import units
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
# Could one more head compare the numbers $a$ and $b$ on the lane? If it looks only at the lane itself, it has a single score, and the softmax of a single score is 1, whatever the score. So it brings home the lane's own value: the matrices $W_V$ and $W_O$ multiply $a$ and $b$ by fixed numbers and add. **Alone with one lane, a head computes a sum.** (With another word to look at it can do more, as we shall see.)
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
# The best sum takes the mean of $a$ and $b$ and always adds the same number, about 0.56. A right answer would follow $a$ while $a$ leads, and $b$ while $b$ leads. Where the lead changes, it turns. A sum goes straight on. What it lacks is a **bend**.

# %% [markdown]
# ## One bend can compare
#
# The simplest function with a bend is $\max(0, x)$, called **ReLU**. A positive number passes, and a negative number becomes 0.
#
# Put two numbers $a$ and $b$ side by side on a word's lane, for example 1 and 3. How far is $b$ ahead? Let
#
# $$m = \max(0,\, b - a) .$$
#
# Here $m = 2$. Now add $m$ to $a$ and take it from $b$: the lane has $(3, 1)$. If the lane had $(3, 1)$ from the beginning, $b$ is not ahead, so $m = 0$ and nothing changes. Either way the larger number is now the first.
#
# We did three things:
#
# 1. We **read** from the lane, with the weights $(-1, 1)$.
# 2. We **bent** the result, so that only a lead counts.
# 3. We **wrote** to the lane $m$ times $(1, -1)$.
#
# A number such as $m$ is called a **hidden unit**. The paper's **feed-forward network** is $d_{ff}$ hidden units side by side. The matrix $W_1$ has the weights with which the units read, the matrix $W_2$ the weights with which they write, and both steps add a bias:
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
# Our unit that sorts is such a network with $d_{ff} = 1$. We give it three pairs. What does it add to the last one, $(-2, 0.5)$?

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
# ## Can a head bend, too?
#
# A softmax is not straight, either. So give a head another word to look at, and let it *look away* from its own lane when $b$ does not lead. The other word carries no numbers, only a mark by which the head knows it: a word is $(a, b, \text{mark})$, so our lane is $(a, b, 0)$ and the other word $(0, 0, 1)$. What the head reads and writes on its own lane is what the unit read and wrote:

# %% tags=["active-ipynb"]
# def head_that_bends(t):
#     """A head that adds b's lead to a and takes it from b; t: how sharply it decides."""
#     head = MultiHeadAttention(d_model=3, h=1).requires_grad_(False)
#     for W in head.parameters():
#         W.zero_()
#     root = 3**0.5  # the head divides its scores by this
#     head.W_Q.weight[0] = root * torch.tensor([t, -t, 0])  # how far a is ahead
#     head.W_K.weight[0] = torch.tensor([0.0, 0, 1])  # only a mark answers
#     head.W_V.weight[0] = torch.tensor([-1.0, 1, 0])  # read b - a, as the unit did,
#     head.W_O.weight[:, 0] = torch.tensor([1.0, -1, 0])  # and write it with (1, -1)
#     return head
#
#
# leads = torch.linspace(-3, 3, 61)
# zeros = torch.zeros_like(leads)
# lanes = torch.stack([zeros, leads, zeros], dim=1)[:, None]  # a is 0, and b leads or not
# added = {}  # what the head adds to a
# for t, others in ((1.0, 1), (4.0, 1), (4.0, 5), (4.0, 20)):
#     marked = torch.tensor([0.0, 0, 1]).expand(len(leads), others, 3)
#     words = torch.cat([lanes, marked], dim=1)
#     added[t, others] = head_that_bends(t)(lanes, words, words)[:, 0, 0]
# views.head_bends(leads, added)

# %% [markdown]
# *Compare the blue lines with the ReLU in orange: a sharper head bends more like it (left), and with more words to look at, the sharp head's bend moves (right).*
#
# So a head can bend. To see why, let $d = b - a$ be $b$'s lead. The other word's score is $-t\,d$ and the lane's is 0. After the softmax the lane has the weight $1/(1 + e^{-td})$: nearly 1 where $b$ leads clearly, nearly 0 where it does not. The head adds this weight times $d$.
#
# But it bends clumsily. It needs a word to look away to. Near a tie it is soft. Its bend depends on how many words are there, because the softmax divides the weight among all. And such a head has one bend, while a network has one in each unit.

# %% [markdown]
# ## Does training find the bend?
#
# We chose all these weights by hand. A model has to find them. Now $a$ and $b$ are on one lane, a second part adds to it, and a sum reads the answer off. The second part is one of three: two heads that see only the lane, two heads that see a marked word as well, and a network. At width 32 the heads have $4 \cdot 32 \cdot 32 = 4096$ parameters. A network of 64 units has as many, and its biases.
#
# Which of them will beat the best sum?

# %% tags=["active-ipynb"]
# marked = torch.zeros(64, 1, 32)  # another word for each of 64 lanes
# marked[:, :, -1] = 1.0
#
#
# def only_the_lane(heads, x):
#     return heads(x, x, x)
#
#
# def with_a_marked_word(heads, x):
#     words = torch.cat([x, marked], dim=1)
#     return heads(x, words, words)
#
#
# def network_on_the_lane(network, x):
#     return network(x)
#
#
# def train(second, use, updates=500):
#     """The error at each update; use(second, x) is what the second part adds to lanes x."""
#     enter, answer = nn.Linear(2, 32, bias=False), nn.Linear(32, 1)
#     parts = nn.ModuleList([enter, second, answer])
#     optimizer = torch.optim.Adam(parts.parameters(), lr=0.003)
#     errors = []
#     for _ in range(updates):
#         numbers = torch.randn(64, 2)
#         x = enter(numbers)[:, None]  # 64 lanes of one word: (64, 1, 32)
#         x = x + use(second, x)
#         error = (answer(x).flatten() - numbers.amax(dim=1)).square().mean()
#         optimizer.zero_grad()
#         error.backward()
#         optimizer.step()
#         errors.append(error.item())
#     return errors
#
#
# kinds = {
#     "heads, lane only": (lambda: MultiHeadAttention(32, h=2), only_the_lane),
#     "heads, a marked word": (lambda: MultiHeadAttention(32, h=2), with_a_marked_word),
#     "network": (lambda: FeedForward(32, d_ff=64), network_on_the_lane),
# }
# errors = {
#     name: torch.tensor([train(second(), use) for _ in range(3)])
#     for name, (second, use) in kinds.items()
# }
# views.learning_larger(errors, floor=best_error)

# %% [markdown]
# *Each line is one training; from tick to tick the error falls to a tenth. The grey lines stay at the best sum; the blue lines fall below it, and the orange lines fall faster and further.*
#
# Heads that see only the lane stay where the pencil said. With a marked word, heads do learn to bend. The network learns it in far fewer updates, and needs no other word.

# %% [markdown]
# ## Every word has the same network, and has it to itself
#
# The network works on every lane by itself, with the same $W_1$ and $W_2$. That is why its full name is **position-wise** feed-forward network.
#
# Let us put another word in the place of "dog", with random vectors and untrained weights. Which of the four words can notice it?

# %% tags=["active-ipynb"]
# words = ["Tom", "feeds", "his", "dog"]
# x = torch.randn(4, 32)  # a vector for each word
# with_cat = x.clone()
# with_cat[3] = torch.randn(32)
#
# attention, network = MultiHeadAttention(32, h=2), FeedForward(32, d_ff=128)
# attended = [attention(y, y, y)[0] for y in (x[None], with_cat[None])]  # batches of one
# changed = {
#     "attention": (attended[0] - attended[1]).norm(dim=1) > 0,
#     "network": (network(x) - network(with_cat)).norm(dim=1) > 0,
# }
# views.who_notices(changed, words, "cat")

# %% [markdown]
# *A filled box is an output that has changed: in attention all four words notice the cat, in the network only the word that is new.*
#
# So a layer divides its work: attention brings something from other words, and the network works on it.

# %% [markdown]
# ## More units, more kinks
#
# What do more units add? Let the input be a single number $x$. The unit $\max(0, x)$ draws a line with a kink at 0. Two units make the absolute value:
#
# $$|x| = \max(0, x) + \max(0, -x) .$$
#
# So $d_{ff}$ units draw a line with up to $d_{ff}$ kinks. How many does it take to follow a wave? Below, every unit has the weight 1 in $W_1$, and $b_1$ puts the kinks at even distances. What is left, $W_2$ and $b_2$, is a sum, so least squares finds the best one.

# %% tags=["active-ipynb"]
# line = torch.linspace(-2, 2, 161)[:, None]
# wave = torch.sin(3 * line)
#
#
# def follow_the_wave(d_ff):
#     network = FeedForward(d_model=1, d_ff=d_ff).requires_grad_(False)
#     network.W_1.weight.fill_(1.0)
#     network.W_1.bias.copy_(-torch.linspace(-2, 2, d_ff + 1)[:-1])  # the first at -2
#     hidden = network.W_1(line).relu()
#     columns = torch.cat([hidden, torch.ones_like(line)], dim=1)
#     best = torch.linalg.lstsq(columns, wave).solution
#     network.W_2.weight.copy_(best[:-1].T)
#     network.W_2.bias.copy_(best[-1])
#     return network
#
#
# followers = {d_ff: follow_the_wave(d_ff) for d_ff in range(1, 33)}
# views.kinks(followers, line, wave, widths=(3, 8, 32))

# %% [markdown]
# *A dot is where a unit sets in: with more units the orange line bends more often and gets closer to the grey wave.* (In a running notebook: move the number of units.)
#
# The paper takes four times as many units as the lane has numbers: $d_{ff} = 2048$ for $d_{model} = 512$. Count with a pencil what that costs. Attention has four matrices of $d_{model} \times d_{model}$ numbers: $W_Q$, $W_K$, $W_V$ and $W_O$. The network has two of $d_{model} \times 4\,d_{model}$, as much as eight of attention's. So two thirds of an encoder layer's numbers are in the network. What might they hold?

# %% [markdown]
# ## Each unit is a key and a value
#
# Read equation 2 once more, unit by unit. Unit $i$ reads with column $i$ of $W_1$: call it the key $k_i$. Its bias, number $i$ of $b_1$, is $\beta_i$. It writes with row $i$ of $W_2$: call it the value $v_i$. Then the network is a sum over its units:
#
# $$\mathrm{FFN}(x) = \sum_{i=1}^{d_{ff}} \max(0,\; x \cdot k_i + \beta_i)\; v_i \;+\; b_2$$
#
# Our unit that sorts has the key $(-1, 1)$ and the value $(1, -1)$.
#
# Attention makes its keys and values from the words of the sentence. The network's are learned and the same for every sentence. And there is no softmax, so many units may be on at a time, or none.
#
# So one can read the network as a **key-value memory** (Geva et al., 2021), which is not the encoder's memory. Each entry says: *where you find this pattern, write that.*

# %% tags=["active-ipynb"]
# total = network.W_2.bias
# for i in range(128):
#     key = network.W_1.weight[i]  # a row, because nn.Linear keeps W_1 transposed
#     value = network.W_2.weight[:, i]
#     bias = network.W_1.bias[i]
#     total = total + (x[0] @ key + bias).relu() * value
# assert torch.allclose(total, network(x)[0], atol=1e-5)
# print("unit by unit, the network's output is the same")
# views.memory()

# %% [markdown]
# *Follow x from left to right: it meets all keys, most units stay off, and the values of the others are added to the lane, with the bias.*
#
# Can one read the entries of a trained network? Take the small translator of chapter 0, with two layers on each side. The decoder's last network has 512 units and works just before the next German word is named. We let the decoder read *Dieser Esel wartete geduldig auf einem Hügel*, word by word "this donkey waited patiently on a hill", and watch three units, picked because they are easy to read. How strong is each after every word? And which words does its value raise? The model's last step compares the lane with a vector for each word ([chapter 6](06_embeddings.ipynb)), so we compare the value with these vectors.

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# model.requires_grad_(False)
#
#
# def lane_into(translator, layer, pairs):
#     """What a layer's network is given at each place of the sentences: (places, 128)."""
#     # before: the German words that the decoder reads, after: the right next words
#     source, before, after = units.read_with_translation(tokenizer, pairs)
#     network = translator.get_submodule(f"{layer}.feed_forward")
#     x = units.inputs_of(network, lambda: translator(source, before))
#     real = (source if layer.startswith("encoder") else after) != tokenizer.pad_id
#     return x[real]
#
#
# english = "This donkey waited patiently on a hill."
# german = "Dieser Esel wartete geduldig auf einem Hügel."
# last = model.decoder.layers[1].feed_forward
# x = lane_into(model, "decoder.layers.1", [(english, german)])
# hidden = last.W_1(x).relu()  # (places, 512)
# entries = {}
# for unit in (213, 41, 14):
#     raised = (model.embedding.weight @ last.W_2.weight[:, unit]).topk(3).indices
#     words = [tokenizer.decode([word]) for word in raised.tolist()]
#     entries[unit] = hidden[:, unit], words
# print(f"on at a place: {(hidden > 0).sum(dim=1).float().mean():.0f} of 512 units")
# views.entries(entries, german.removesuffix(".").split())

# %% [markdown]
# *Go along a row: the bars say how strong a unit is after each German word, and the words at the right are those that its value raises most.*
#
# After *auf* ("on") units 213 and 41 are at their strongest, and both call for a word such as "the" or "this": 213 for forms that end in *-en*, 41 for forms that end in *-em*, and *einem* comes next. After the last noun unit 14 calls for the full stop. But unit 41 is also on at two other places, and about a fifth of all units are on at a time. What the network writes is the sum of many entries.

# %% [markdown]
# ## Where does the translator need a bend?
#
# Do the translator's four networks need their bends, or would a sum do? We ask as at the beginning, with least squares. We collect what a network is given and what it adds, at every place of 300 sentences, and put the best sum in its place. For comparison we put a constant there: the mean of what the network adds, whatever the word.
#
# In 100 other sentences the model reads each translation up to some word, and we count how often its likeliest next word is right. Before you look: how much will a sum lose?

# %% tags=["active-ipynb"]
# sentences = read_corpus("bundled", "test")  # the model has not learned from these
# to_fit, to_test = sentences[100:400], sentences[:100]
#
#
# def constant(x, y):
#     return torch.zeros(128, 128), y.mean(dim=0)
#
#
# def best_sum(x, y):
#     columns = torch.cat([x, torch.ones(len(x), 1)], dim=1)
#     solution = torch.linalg.lstsq(columns, y).solution
#     return solution[:-1], solution[-1]  # a matrix and a bias
#
#
# def put(kind, layers):
#     """The translator with a constant or a sum in the place of these layers' networks."""
#     changed = copy.deepcopy(model)
#     for layer in layers:
#         network = model.get_submodule(f"{layer}.feed_forward")
#         x = lane_into(model, layer, to_fit)
#         matrix, bias = kind(x, network(x))
#         straight = nn.Linear(128, 128).requires_grad_(False)
#         straight.weight.copy_(matrix.T)
#         straight.bias.copy_(bias)
#         changed.get_submodule(layer).feed_forward = straight
#     return changed
#
#
# def right_words(translator):
#     """Of 100 next words, how many are the translator's likeliest?"""
#     source, before, after = units.read_with_translation(tokenizer, to_test)
#     right = translator(source, before).argmax(dim=-1) == after
#     return 100 * right[after != tokenizer.pad_id].float().mean().item()
#
#
# every = ["encoder.layers.0", "encoder.layers.1", "decoder.layers.0", "decoder.layers.1"]
# replaced = {layer: [layer] for layer in every} | {"all four": every}
# right = {
#     name: [right_words(put(kind, layers)) for kind in (constant, best_sum)]
#     for name, layers in replaced.items()
# }
# views.without_bends(right, whole=right_words(model))

# %% [markdown]
# *The pale bars are with a constant in the network's place, the orange bars with the best sum; the dashed line is the model with its networks.*
#
# In the encoder not even a constant costs much. The network of the decoder's first layer ("decoder 1") matters greatly, but a sum can nearly replace it. That of the second layer needs its bend: a sum there loses nine words of 100. Sums in all four places lose 28. What goes wrong without the last network's bend? Here are two sentences that we picked because the sum gets them wrong:

# %% tags=["active-ipynb"]
# english = ["This donkey waited patiently on a hill.", "The dog sleeps."]
# without_last_bend = put(best_sum, ["decoder.layers.1"])
# for title, translator in (("whole model", model), ("without", without_last_bend)):
#     # beam=1: word by word, always the likeliest
#     print(f"{title}:", *translate(translator, tokenizer, english, beam=1))

# %% [markdown]
# *Warteten* is the plural, for a single donkey, and *schlief* means "slept". In both sentences the model has chosen the wrong form of the right verb.
#
# Who compares, then? In our task one unit can, once attention has brought both numbers to one lane. In the translator a sum can do most of what one network does. But without the last network's bend, the model chooses the wrong form of a verb in our two sentences.
#
# *Many later models bend smoothly. One such bend, the SiLU, $x/(1 + e^{-x})$, is exactly our head's curve for $t = 1$.*

# %% [markdown]
# ## What to keep
#
# - Alone with one lane, a head computes a sum. With another word to look at it can bend, clumsily; the network has a bend in every unit.
# - Each hidden unit reads the lane of one word with its key, and where it finds its pattern it adds its value to the same lane.
# - The network is the same for every word and sees only that word: attention brings, and the network makes something of it.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Two features of a word, $x_1$ and $x_2$, are each 0 or 1: say, "is in the plural" and "is the subject". Find two units whose weighted sum is 1 if *exactly one* is there, and else 0. Why can no sum without units do that?
#
# <details><summary>Answer</summary>
#
# $\max(0,\ x_1 + x_2) - 2\max(0,\ x_1 + x_2 - 1)$. For none, one and both of the features this is 0, 1 and $2 - 2 = 0$. A sum would need $w = 0$, $u = 1$ and $v = 1$, and then says 2 for both.
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
# **3. In code, and to think about.** Could a head take the larger number *while both are still in two words*? Let the score of a pair be 10 if its name is asked for, plus $s$ times its number. Write what the head brings home: the numbers, blended by the softmax of these scores. Then take `torch.randn(10_000, 6)` numbers and ask for the first two. How far is the blend from the larger, for $s = 0$, 2 and 8? Measure the variance of the distance: a bias could repair its mean.

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
# With $s = 0$ the head takes the mean of both numbers, and the variance is the 0.18 of the best sum. With $s = 2$ it is about 0.002: the head leans to the word with the larger number. With $s = 8$ it is worse than at the beginning, because a large number with a wrong name now has the highest score. So a head can compare *words* by their scores. On one lane $a$ and $b$ share a weight. There it can only weigh their difference against another word, as our head that bends did.
# </details>
#
# **4. With the translator.** Alone, the four sums cost 0.7, 0.7, 1.7 and 8.8 words of 100, together 12, but all four at once cost 28. Is `put` to blame? It fits each sum to lanes of the whole model, but behind another sum the lanes are different. Fit each sum to the lanes of the model in which the sums before it are already at work. How many words are right now?

# %% [markdown]
# <details><summary>Answer</summary>
#
# In `put` write `lane_into(changed, layer, to_fit)`. Now about 76 of 100 are right instead of 71. So the other lanes explain a part of the loss, not most of it.
# </details>
#
# **Next.** Words have been vectors all along. [Chapter 6](06_embeddings.ipynb) shows where these come from, and how a vector becomes a word again.
