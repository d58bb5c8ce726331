# ---
# jupyter:
#   jupytext:
#     formats: notebooks/06_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 6 · Embeddings
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/06_embeddings.ipynb)
#
# *Section 3.4 of the paper. Reading takes about 20 minutes, running half a minute. You need [chapter 4](04_attention.ipynb).*
#
# A small translator from English to German ships with this book. It holds every word that it knows as a row of 128 numbers. Here are the rows of sixty English nouns. The computer chose their places: across and up are the two directions in which the rows differ most. Go around the picture, and guess: what do the nouns of one colour have in common?

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     # This book has no address yet. Upload its wheel: python -m pip wheel --no-deps .
#     from google.colab import files
#
#     wheel = next(iter(files.upload()))
#     %pip install -q {wheel}

# %% tags=["active-ipynb"]
# import copy
#
# import torch
# import torch.nn.functional as F
#
# from transformer import Transformer, cache, load, translate, views
# from transformer.teaching.nouns import (
#     ARTICLES,
#     MAP,
#     OTHERS,
#     gradients_by_job,
#     pairs_with,
#     two_directions,
# )
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# E = model.embedding.weight.detach()  # a row for each word
#
#
# def row(word):
#     return tokenizer.encode(word)[0]
#
#
# nouns = [noun for heap in MAP.values() for noun in heap]
# rows = F.normalize(E[[row(noun) for noun in nouns]], dim=1)  # only directions count
# across_and_up = two_directions(rows)
# places = (rows - rows.mean(dim=0)) @ across_and_up.T
# views.noun_map(places, MAP)

# %% [markdown]
# *There are three heaps: a king and a cheese share one, a cat and a dog do not, and the hat keeps away from all.*
#
# The heaps are the three genders of German. The nouns on the left are feminine in German, with the article *die*: a cat is *die Katze*. Those at the top are masculine, with *der*: a man is *der Mann*, and a cheese *der Käse*. Those at the bottom are neuter, with *das*: a house is *das Haus*. Only the colours are ours.
#
# Nobody told the translator of genders. It was shown pairs of sentences, and learned to write the second from the first. And English nouns have no gender. **How does German grammar get into the row of an English cat?** And what does the hat do out there, at the edge of its heap?

# %% [markdown]
# ## A word is a row
#
# A model has a list of all words that it may meet, its **vocabulary**, and a text is a list of numbers in it, the **token ids**. (A rare word is split into several tokens, [chapter 10](10_data.ipynb).) A matrix $E$ has a row of $d_{model}$ numbers for each word. To **embed** a token is to look up its row.
#
# Take a vocabulary of three words, and rows of two numbers:
#
# | id | word | row of $E$ |
# |---|---|---|
# | 0 | cat | $(2, 0)$ |
# | 1 | dog | $(0, 2)$ |
# | 2 | hat | $(1, 1)$ |
#
# The rows are weights like any others: they begin at random and are learned. A row that is looked up is multiplied by $\sqrt{d_{model}}$, here $\sqrt 2 = 1.41$. We shall see why.

# %%
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


# %%
class Embedding(nn.Module):
    """Rows of a matrix E (V, d_model), times sqrt(d_model): (B, T) -> (B, T, d_model).

    Section 3.4. Rows start as N(0, 1 / d_model), so that scaled rows have variance 1.
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        rows = torch.randn(vocab_size, d_model) / math.sqrt(d_model)
        self.weight = nn.Parameter(rows)

    def forward(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.weight) * math.sqrt(self.weight.shape[1])


# %% tags=["active-ipynb"]
# tiny = Embedding(vocab_size=3, d_model=2)
# tiny.weight.data = torch.tensor([[2.0, 0], [0, 2], [1, 1]])  # cat, dog, hat
# sentence = torch.tensor([[1, 2, 1]])  # dog, hat, dog
# print(tiny(sentence).detach())

# %% [markdown]
# The dog comes twice and gets the same vector twice: a row knows no context. "Bank" has one row, whether money or a river is near.
#
# ## The same rows write
#
# At its other end the model has worked out a vector $x$, and must say which word comes next. So it compares $x$ with a row for every word, as a query is compared with keys. The inner products are called **logits**:
#
# $$z = x E^\top$$
#
# Here the paper saves a matrix. The rows that $x$ is compared with are those of $E$ again. To use one matrix at both ends is called **tying** (Press and Wolf, 2017).
#
# In our small vocabulary, let $x$ be $(1.5,\ 0.5)$. The logits are $3$ for the cat, $1$ for the dog and $2$ for the hat. Softmax makes probabilities of them, as it made weights of scores in chapter 4:
#
# $$p_i = \frac{e^{z_i}}{\sum_j e^{z_j}}$$
#
# Here $e^3 = 20.1$, $e^1 = 2.7$ and $e^2 = 7.4$, together 30.2. So the cat has the probability $20.1/30.2 = 0.67$, the dog has 0.09 and the hat 0.24.


# %%
def softmax(logits: Tensor) -> Tensor:
    """exp(z_i) / sum_j exp(z_j) over the last axis: (..., V) -> the same (Section 3.4).

    The largest logit is subtracted first, so that no power overflows; ratios stay.
    """
    powers = torch.exp(logits - logits.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


class Projection(nn.Module):
    """The logits of all words, x E^T: (..., d_model) -> (..., V), without a bias.

    E is the weight of an `Embedding`, the same parameter and not a copy (Section 3.4).
    """

    def __init__(self, embedding: Embedding):
        super().__init__()
        self.weight = embedding.weight

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)


# %% tags=["active-ipynb"]
# logits = Projection(tiny)(torch.tensor([1.5, 0.5])).detach()
# print("logits", logits.tolist(), "probabilities", softmax(logits))
# assert torch.allclose(softmax(logits), logits.softmax(dim=0))  # torch's own

# %% [markdown]
# Now the translator. It has read "The lady saw the cat that lost its ball." and has written *Die Dame sah die Katze, die*. Next comes "its". German says *ihren* if the owner is feminine, and *seinen* if the owner is masculine or neuter. Which row will fit better?

# %% tags=["active-ipynb"]
# english = "The lady saw the cat that lost its ball."
# german = "Die Dame sah die Katze, die"
# source = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]])
# written = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(german)]])
# with torch.no_grad(), cache(model) as seen:
#     model(source, written)
# x = seen["decoder.output"][0, -1]  # for the word after the last
# z = seen["logits"][0, -1]
#
# some = ["cat", "ball", "die", "Katze", "ihren", "seinen", "hat"]
# ids = [row(word) for word in some]
# reading = {"encoder": "cat", "decoder": "die"}
# views.one_matrix(E[ids], some, x, softmax(z)[ids], read=reading)

# %% [markdown]
# *Begin on the left: the encoder picks the row of "cat" and the decoder the row of die, and the x that comes out is compared with all rows of the same matrix; ihren fits best. (Drawn are seven of 3,500 rows, and ten of their 128 numbers.)*
#
# So one matrix has three jobs: it **reads English**, it **reads German**, namely what has been written so far, and it **writes German**. Why should they share? The paper does not say. One matrix is smaller: three matrices instead of one would make the paper's base model more than half as large again. It may also translate better, but on our test set we could not tell ([evidence 6.2](evidence/06_embeddings.ipynb)).

# %% [markdown]
# ## How bold should a writer be?
#
# The right word is *ihren*: the cat is feminine, and the lady is, too. Yet *seinen* gets a fifth. A translator takes the likeliest words. A program that invents stories would then always tell the same story, so it draws its words by their probabilities ([chapter 21](21_language.ipynb)). How bold should it be? Before softmax, the logits are divided by a number, the **temperature**. Below 1 it moves them apart, and above 1 together. The word in front stays in front. How far?

# %% tags=["active-ipynb"]
# best = z.topk(4)
# views.temperature([tokenizer.decode([i]) for i in best.indices.tolist()], best.values)

# %% [markdown]
# *Beside each word is its logit, and the bars are probabilities among these four words: follow the second bar from left to right, and the wrong word becomes a serious rival.* (In a running notebook: move the temperature.)
#
# Among four words the probabilities are larger than among 3,500. But at temperature 1 their ratio $0.76 / 0.24$ is the same as $0.61 / 0.19$ before, 3.2, because the sum drops out of a ratio: $p_i / p_j = e^{z_i - z_j}$. **If a logit grows by 1, its word's probability divided by any other word's becomes $e = 2.7$ times as large**, whatever else is in the vocabulary.

# %% [markdown]
# ## Why times the root of d?
#
# Reading and writing want rows of different sizes. **To write, the rows should be small.** The numbers of $x$ have about variance 1, because they come out of a LayerNorm ([chapter 3](03_stacks.ipynb)). A logit is a sum of $d_{model}$ products. If the numbers of $E$ had variance 1, too, then at a width of 512 a logit would be about $\sqrt{512} = 23$ in size. An untrained model would be sure, and of the wrong words: its loss would begin near 80 instead of 8 ([evidence 6.1](evidence/06_embeddings.ipynb)). So rows begin with variance $1/d_{model}$, and logits of about 1.
#
# **To be read, the rows should be larger.** The vectors that mark positions, which are added to them in [chapter 7](07_positions.ipynb), have numbers up to 1, and beside these a small row is faint. So $E$ stays small, and what goes in is multiplied by $\sqrt{d_{model}}$: in the picture, on the green arrows. The paper gives no reason for the factor. This is a plausible one, though in a very small model we found no gain from it.

# %% [markdown]
# ## Writing pulls one row and pushes all others
#
# How does training move a row that writes? A prediction is scored by $-\log p$ of the word that was right, the **cross-entropy**. It is small, $-\log 0.67 = 0.41$, if the cat was right, and large, $-\log 0.09 = 2.41$, if the dog was right. With $g$ for the right word, the loss is
#
# $$-\log p_g = -z_g + \log \sum_j e^{z_j} .$$
#
# Take its derivative by a logit $z_i$. The second part gives $e^{z_i} / \sum_j e^{z_j}$, which is $p_i$. The first part gives $-1$ for the right word. So
#
# $$\frac{\partial\,\mathrm{loss}}{\partial z_i} = p_i - q_i ,$$
#
# where $q_i$ is 1 for the right word and 0 elsewhere. If the hat was right, that is $0.67$, $0.09$ and $0.24 - 1 = -0.76$.
#
# Training steps *against* the gradient, so the hat's logit goes up and the others go down. And the rows? A logit is $x \cdot E_i$, so the row $E_i$ moves by $(q_i - p_i)\, x$, times the learning rate. **The row of the right word is pulled towards the vector that should have predicted it. Every other row is pushed away from that vector, by as much as its word was expected.** With a learning rate of 1, the rows move like this:

# %% tags=["active-ipynb"]
# x = torch.tensor([1.5, 0.5])
# F.cross_entropy(Projection(tiny)(x), torch.tensor(2)).backward()  # the hat was right
# rows, steps = tiny.weight.detach(), -tiny.weight.grad
# views.pulls(rows, steps, x, ["cat", "dog", "hat"])

# %% [markdown]
# *Compare each arrow with x: the row of the hat, which was right, goes the way of x, and the other two go the opposite way, the cat furthest, because it was expected.*
#
# Now think of "cat" in our translator. The model writes German, so "cat" is never the right word, and at every prediction its row is pushed away a little. Can that have brought it to the feminine nouns? Hardly: "dog" and "house" are never right either, and are pushed away from the same vectors. A crowd that drifts together does not sort itself ([evidence 6.3](evidence/06_embeddings.ipynb)).

# %% [markdown]
# ## Reading sorts the nouns
#
# The cat's other job is to be read, and what the encoder reads changes the German in many places. A cat that sleeps is *die Katze*, and a dog that sleeps *der Hund*. The cat loses *ihren Ball* and the dog *seinen Ball*. A row that does not tell the gender makes the decoder guess at each of these words. Every wrong guess sends a gradient back through decoder and encoder, down to the row that could have told.
#
# We can watch it. We make the translator forget one noun: its row goes to the middle of all nouns, where no heap is. Then we show it ten sentences with that noun, and ask how the next step of training would move the row, for its job of reading English. Where to?

# %% tags=["active-ipynb"]
# means = {
#     article: E[[row(noun) for noun in heap]].mean(dim=0)
#     for article, heap in OTHERS.items()  # 185 nouns that are not on the map
# }
# middle = sum(means.values()) / 3
#
#
# def next_step(noun):
#     """How reading would move the row of a noun that has been forgotten."""
#     forgetful = copy.deepcopy(model)
#     forgetful.embedding.weight.data[row(noun)] = middle
#     source, target = pairs_with(noun, tokenizer, count=10)
#     gradients = gradients_by_job(forgetful, source, target, tokenizer.pad_id)
#     return -gradients["reads English"][row(noun)]
#
#
# steps = torch.stack([next_step(noun) for noun in nouns])
# arrows = F.normalize(steps, dim=1) @ across_and_up.T
# views.next_steps(places, arrows, MAP, told="house")

# %% [markdown]
# *Every arrow begins in the middle and has the colour of its noun's gender: it shows where the next step of training moves the row, and each bundle points to its own heap (pale), though the house is not so sure.*
#
# And in all 128 directions?

# %% tags=["active-ipynb"]
# def heap_of(step):
#     """The heap to which a step from the middle points best."""
#     fits = {a: F.cosine_similarity(step, means[a] - middle, dim=0) for a in means}
#     return max(fits, key=fits.get)
#
#
# home = sum(heap_of(step) == ARTICLES[noun] for noun, step in zip(nouns, steps))
# print(f"{home} of {len(nouns)} steps point to the noun's own heap")

# %% [markdown]
# All sixty point home. That is how gender reaches an English row. The English sentences carry no sign of it, but the German answers do, and their errors come back to the row. (What we have watched is a noun called back to a heap that exists, not how the heaps first came apart.)

# %% [markdown]
# ## Turn a cat, and the grammar follows
#
# Does the decoder *use* the place of a row? Then we can turn a cat into a masculine animal. We add the mean row of *der* nouns to the row of "cat", and subtract the mean row of *die* nouns. Guess which words of the German will change.

# %% tags=["active-ipynb"]
# def turned(word, old, new):
#     """The translator with another gender in the row of one word."""
#     other = copy.deepcopy(model)
#     other.embedding.weight.data[row(word)] += means[new] - means[old]
#     return other
#
#
# english = ["The old cat lost its ball.", "The man saw the cat."]
# print("as it is:", *translate(model, tokenizer, english))
# for new in ("der", "das"):
#     print(f"as {new}:  ", *translate(turned("cat", "die", new), tokenizer, english))

# %% [markdown]
# *Der Katze* is wrong German, and wonderful: it is the same cat with another gender. The article changes (*die* becomes *der*, or *den* where the cat is seen), and so does the word for "its" (*ihren* becomes *seinen*). So the row holds "which animal" and "which gender" side by side, in different directions, and the decoder uses them apart.
#
# The cat is no exception. We turned each of the sixty nouns to both other genders, and in 119 of 120 cases the article followed and nothing else changed ([evidence 6.4](evidence/06_embeddings.ipynb)). The noun that failed is the hat.

# %% [markdown]
# ## What is the hat doing out there?
#
# The matrix has three jobs. Which of them does the row of "hat" do? We ask the first step of a training, when every row is still random, how far each job would move the row. Before you look: "cat" is read by the encoder, and *Katze* by the decoder. And "hat"?

# %% tags=["active-ipynb"]
# untrained = Transformer(model.config)
# source, target = pairs_with("", tokenizer, count=300)  # any sentences
# gradients = gradients_by_job(untrained, source, target, tokenizer.pad_id)
# views.jobs(gradients, {word: row(word) for word in ("cat", "dog", "Katze", "hat")})

# %% [markdown]
# *Go from row to row: the cat and the dog are read by the encoder alone, Katze by the decoder alone, and the hat by both; on the right writing pulls or pushes every row.*
#
# Why does a German decoder read and write "hat"? Because *hat* is also a German word, and a frequent one: it means "has". Both languages share one matrix, so the two words share one row. That is the price of tying. Look at the row's nearest neighbours, those whose directions differ least from its own:

# %% tags=["active-ipynb"]
# every = F.normalize(E, dim=1)
#
#
# def nearest(word, count=5):
#     likeness = every @ every[row(word)]
#     likeness[row(word)] = -1  # not the word itself
#     return [tokenizer.decode([i]) for i in likeness.topk(count).indices.tolist()]
#
#
# print("nearest to hat:", *nearest("hat"))
# print("nearest to cat:", *nearest("cat"))
# print(f"cat and Katze: cosine {every[row('cat')] @ every[row('Katze')]:.2f}")

# %% [markdown]
# *Haben, kann, wurde, wurden, sollte* are German verbs (have, can, was, were, should). The hat cannot simply join the other *der* nouns, because two of its three jobs are a verb's.
#
# And the cat? An aunt, a company, a duck, a violin and a blanket have one thing in common with it: they are *die Tante, die Firma, die Ente, die Geige, die Decke*. The heaps are not an accident of our sixty nouns ([evidence 6.5](evidence/06_embeddings.ipynb)). But *Katze* is nowhere near. Training never needed the two rows to be alike, because all the layers of the model are between them. What the German sentence needs to know of a cat is which word and which gender, and that is what we found in the row.

# %% [markdown]
# ## What to keep
#
# - A word goes in as a row of a matrix and comes out by comparing with all rows of the same matrix: the inner products are the logits, and softmax makes probabilities of them.
# - Where a row is to be written, training pulls it towards the vectors that should have predicted it and pushes it away from others; where it is read, errors come back to it through the whole model.
# - So English nouns sort themselves by German gender, because the German answers depend on it; and a word need not be near its translation.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Three words have the logits $\ln 2$, $\ln 3$ and $\ln 5$. What are their probabilities? Now raise the first logit by $\ln 4$. By which factor does the ratio of the first to the second change, and by which the probability of the first? And if the second word is the right one, what was the gradient of the logits at first?
#
# <details><summary>Answer</summary>
#
# The powers are 2, 3 and 5, so the probabilities are 0.2, 0.3 and 0.5. Afterwards the powers are 8, 3 and 5, and the probabilities 0.5, 0.19 and 0.31. The ratio has become $e^{\ln 4} = 4$ times as large, the probability only 2.5 times, because the sum grows, too. The gradient $p - q$ was $(0.2, -0.7, 0.5)$.
# </details>
#
# **2. In code: a noun of your own.** Guess the German article of an English noun from nothing but its row. Your function gets a row and the mean row of each gender. When the checker is content, try nouns that are not on the map, for example "bird" or "idea". Then turn your noun with `turned`. Which words will follow?

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.embeddings import check_article
#
#
# def article(vector, means):
#     """vector (d,), means {article: (d,)} -> the article whose mean is nearest"""
#     ...
#
#
# check_article(article)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def article(vector, means):
#     distances = {}
#     for name, mean in means.items():
#         distances[name] = (vector - mean).norm()
#     return min(distances, key=distances.get)
# ```
#
# To try it:
#
# ```python
# of_map = {name: E[[row(noun) for noun in heap]].mean(dim=0) for name, heap in MAP.items()}
# print(article(E[row("bird")], of_map))
# english = ["The bird lost its ring.", "The young bird saw its mother."]
# print(translate(turned("bird", "der", "die"), tokenizer, english))
# ```
#
# The bird is masculine, *der Vogel*. Turned, it becomes *Die Vogel verlor seinen Ring. Die junge Vogel sah ihre Mutter.* "Its" follows in the second sentence alone: for a pronoun one shift is not always enough.
# </details>
#
# **3. In code: pull and push.** From vectors $x$, the matrix $E$ and the right words, compute the step of every row, which is minus the gradient of the mean loss. Use $(q_i - p_i)\, x$ and no `backward`.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.embeddings import check_pulls
#
#
# def pulls(x, E, right):
#     """x (n, d), E (V, d), right (n,) ids -> the steps of all rows (V, d)"""
#     ...
#
#
# check_pulls(pulls)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def pulls(x, E, right):
#     p = (x @ E.T).softmax(dim=1)
#     q = torch.zeros_like(p)
#     q[torch.arange(len(x)), right] = 1
#     return (q - p).T @ x / len(x)
# ```
# </details>
#
# **4. To think about.** Suppose that the translator had three matrices instead of one. Would there still be three heaps? Would the hat still be at the edge? And if the translator went from German to English, would you find heaps of gender among the German nouns?
#
# <details><summary>Answer</summary>
#
# The heaps should stay, because what sorts the nouns is the job of reading English. The hat should move into its heap, because its English row would no longer do the work of a German verb.
#
# From German to English you might find none, though German has the genders: they hardly matter to what is written, because all three articles become "the". (We have trained none of these models.)
# </details>
#
# **Next.** Sixty nouns, each with a row of its own, and no idea who comes first. [Chapter 7](07_positions.ipynb) tells words where they are.
