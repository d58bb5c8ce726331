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
# *Section 3.4 of the paper. Reading takes about 30 minutes, running half a minute. You need [chapter 4](04_attention.ipynb).*
#
# A small translator from English to German ships with this book. It holds every word that it knows as a row of 128 numbers. Here are the rows of sixty English nouns, laid out on the page. We chose sixty familiar nouns, and the computer chose their places: across and up are the two directions in which their rows differ most. Go around the picture, and guess: what do the nouns of one colour have in common?

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
# from transformer.teaching.nouns import ARTICLES, MAP, OTHERS, pairs_with
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
# centred = rows - rows.mean(dim=0)
# across_and_up = torch.linalg.svd(centred, full_matrices=False).Vh[:2]
# places = centred @ across_and_up.T
# views.noun_map(places, MAP)

# %% [markdown]
# *There are three heaps: a king and a cheese share one, a cat and a dog do not, and the hat is at the edge of its heap.*
#
# The heaps are the three genders of German. On the left are the nouns that are feminine in German, with the article *die*: a cat is *die Katze*, a street *die Straße*. The nouns at the top are masculine, with *der*: a man is *der Mann*, and so is a cheese, *der Käse*. Those at the bottom are neuter, with *das*: a house is *das Haus*. We coloured the nouns by their German article. The computer, which laid them out, was not told of it.
#
# And nobody told the translator. It was shown pairs of sentences, and learned to write the second from the first. These are English words, and English nouns have no gender. **How does German grammar get into the row of an English cat? And what does the hat do out there?** To answer the first question we must see what training does to a row. To answer the second we must know that a Transformer has one matrix for two ends, where words become vectors and where vectors become words.

# %% [markdown]
# ## A word is a row
#
# A model has a list of all words that it may meet, its **vocabulary**, and a text is a list of numbers in it, the **token ids**. (A rare word is split into several tokens, [chapter 10](10_data.ipynb).) A matrix $E$ has a row for each of the $V$ entries of the vocabulary, and the row has $d_{model}$ numbers. To **embed** a token is to look up its row.
#
# Take a vocabulary of three words, and rows of two numbers:
#
# | id | word | row of $E$ |
# |---|---|---|
# | 0 | cat | $(2, 0)$ |
# | 1 | dog | $(0, 2)$ |
# | 2 | hat | $(1, 1)$ |
#
# The dog's row is also a product: $(0, 1, 0)\, E = (0, 2)$. A vector with a single 1 and zeros elsewhere is called **one-hot**. Nobody multiplies by all those zeros. But the product shows that a look-up is an ordinary linear layer. Its rows are weights like any others: they begin at random and are learned.

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
# small = Embedding(vocab_size=1000, d_model=64)
# tokens = torch.tensor([[5, 17, 999], [17, 2, 0]])  # two sentences of three tokens
# print(f"tokens {tuple(tokens.shape)} become vectors {tuple(small(tokens).shape)}")

# %% tags=["active-ipynb"]
# one_hot = F.one_hot(tokens, 1000).float()
# assert torch.allclose(small(tokens), 8 * one_hot @ small.weight)
# print("a look-up is a product with a one-hot vector (times the root of 64)")

# %% [markdown]
# Token 17 is in both sentences, and both times it gets the same vector: a row knows no context. "Bank" has one row, whether money or a river is near. The layers above add the rest. The factor $\sqrt{d_{model}}$ will be explained when we have seen the other end.

# %% [markdown]
# ## A vector finds its word
#
# At its other end the model has worked out a vector $x$ for the next word, and must say which word that is. So it compares $x$ with every row, as a query is compared with keys. Here the paper saves a matrix: the rows that $x$ is compared with are those of $E$ again. The inner products are called **logits**, and there is one for each word:
#
# $$z = x E^\top$$
#
# In our small vocabulary, let $x$ be $(1.5,\ 0.5)$. The logits are $3$ for the cat, $1$ for the dog and $2$ for the hat. What do these numbers mean? We want probabilities, which are positive and add up to 1. Softmax makes them, as it made weights of scores in chapter 4:
#
# $$p_i = \frac{e^{z_i}}{\sum_j e^{z_j}}$$
#
# Here $e^3 = 20.1$, $e^1 = 2.7$ and $e^2 = 7.4$, together 30.2. So the cat has the probability $20.1/30.2 = 0.67$, the dog has 0.09 and the hat 0.24. Divide two of the probabilities, and the sum drops out: $p_i / p_j = e^{z_i - z_j}$. **If a logit grows by 1, its word's probability divided by any other word's becomes $e = 2.7$ times as large**, whatever else is in the vocabulary. The probability itself grows less, because the sum grows, too.


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
# tiny = Embedding(3, 2)
# tiny.weight.data = torch.tensor([[2.0, 0], [0, 2], [1, 1]])  # cat, dog, hat
# logits = Projection(tiny)(torch.tensor([1.5, 0.5])).detach()
# print("logits", logits.tolist(), "probabilities", softmax(logits))

# %% tags=["active-ipynb"]
# assert torch.equal(softmax(logits), softmax(logits + 1000))
# print("1000 more for every logit: the same probabilities, and no overflow")

# %% [markdown]
# ## How bold should a writer be?
#
# Let us see the translator choose. It has read "The lady saw the cat that lost its ball." and has written *Die Dame sah die Katze, die*. Next comes "its". German says *ihren* if the owner is feminine, and *seinen* if the owner is masculine or neuter.
#
# Before they become probabilities, the logits may be divided by a number, the **temperature**. Below 1 it moves the logits apart, and above 1 it moves them together. The word in front stays in front. How far is it in front?

# %% tags=["active-ipynb"]
# english = "The lady saw the cat that lost its ball."
# german = "Die Dame sah die Katze, die"
# source = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]])
# written = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(german)]])
# with torch.no_grad(), cache(model, "logits") as seen:
#     model(source, written)
# best = seen["logits"][0, -1].topk(4)
# words = [tokenizer.decode([token]) for token in best.indices.tolist()]
# views.temperature(words, best.values)

# %% [markdown]
# *Beside each word is its logit, and the bars are probabilities among these four words: follow the second bar from left to right, and the wrong word becomes a serious rival.* (In a running notebook: move the temperature.)
#
# The right word is *ihren*: the cat is feminine, and the lady is, too. Yet the model gives *seinen* a quarter. The two logits are 1.2 apart, and $e^{1.2} = 3.3$; the bars say $0.76 / 0.24 = 3.2$, which differs only by rounding. If we drew one of these four words, about one translation in four would have the wrong pronoun. At temperature 0.5 it would be one in eleven, at 2 one in three. (In the whole vocabulary a high temperature also helps thousands of unlikely words, so that drawing at 2 writes nonsense.) So a translator simply takes the likeliest words. But a program that invents stories would always tell the same story if it did. So it draws its words, with a temperature that says how bold it is ([chapter 21](21_language.ipynb)).

# %% [markdown]
# ## Why times the root of d?
#
# The matrix has two jobs, and each job wants rows of another size. To be compared with, the rows should be small. The vectors $x$ come out of a LayerNorm, so their numbers have about variance 1 ([chapter 3](03_stacks.ipynb)). A logit is a sum of $d_{model}$ products. It keeps variance 1 if the numbers of $E$ have variance $1/d_{model}$. To be read, such rows would be too faint: the vectors that mark positions, which are added to them in [chapter 7](07_positions.ipynb), have numbers up to 1. So the rows stay small, and what goes *in* is multiplied by $\sqrt{d_{model}}$. The paper gives no reason for the factor. This is a plausible one.
#
# What if the rows were large, with variance 1, as torch's own `nn.Embedding` makes them? Let a model that knows nothing guess among 2,000 words. To give each the same probability costs $\log 2000 = 7.6$, and logits that vary by chance with variance 1 cost $1/2$ more.

# %% tags=["active-ipynb"]
# x, right = torch.randn(500, 512), torch.randint(2000, (500,))
# small_rows = Embedding(2000, 512)
# for name, factor in {"1/d": 1, "1": math.sqrt(512)}.items():
#     loss = F.cross_entropy(factor * Projection(small_rows)(x), right).item()
#     print(f"rows of variance {name}: the untrained loss is {loss:.1f}")

# %% [markdown]
# With large rows the untrained model is *sure*, and of the wrong words. Whether the factor also helps afterwards is another matter. In a very small model we found no gain from it ([evidence 6.1](evidence/06_embeddings.ipynb)), and we keep it because the paper has it.
#
# That is all of the paper's Section 3.4: rows that are learned, the same matrix at both ends, a softmax at the upper end, and the factor at the lower.

# %% [markdown]
# ## What training does to a row
#
# Back to the cat. A prediction is scored by $-\log p$ of the word that was right, the **cross-entropy**. If the cat was right, our small model loses $-\log 0.67 = 0.41$; if the dog was right, $-\log 0.09 = 2.41$. In which direction does this push the logits? With $g$ for the right word, the loss is
#
# $$-\log p_g = -z_g + \log \sum_j e^{z_j} .$$
#
# Take its derivative by a logit $z_i$. The second part gives $e^{z_i} / \sum_j e^{z_j}$, which is $p_i$. The first part gives $-1$ for the right word and 0 for the others. So
#
# $$\frac{\partial\,\mathrm{loss}}{\partial z_i} = p_i - q_i ,$$
#
# where $q_i$ is 1 for the right word and 0 elsewhere. If the hat was right, that is $0.67$, $0.09$ and $0.24 - 1 = -0.76$:

# %% tags=["active-ipynb"]
# logits.requires_grad_()
# F.cross_entropy(logits, torch.tensor(2)).backward()  # the hat was right
# print(logits.grad)

# %% [markdown]
# Training steps *against* the gradient, so the logit of the hat goes up, and the logits of the cat and the dog go down. And the rows? A logit is $x \cdot E_i$, so its gradient for the row $E_i$ is $x$, and the step of the row is $(q_i - p_i)\, x$. **The row of the right word is pulled towards the vector that should have predicted it. Every other row is pushed away from that vector, by as much as its word was expected.**
#
# Now think of the row of "cat" in our translator. "Cat" is never the right word, because the model writes German. At every prediction it is one of the wrong words. So from this side its row is only ever pushed away, a little each time. Can pushes have brought it to the feminine nouns?

# %% [markdown]
# ## One matrix, three jobs
#
# A translator uses rows in three places. The encoder reads English, the decoder reads the German that it has written so far, and at the end the rows are compared with $x$ to write the next word. The paper has one matrix for all three jobs, which is called **tying** (Press and Wolf, 2017), and our translator has, too. A row then gets the sum of the gradients of its three jobs.
#
# To see them apart, we give a copy of the model three matrices that are equal, and ask for the gradient of each:

# %% tags=["active-ipynb"]
# def by_job(model, source, target):
#     """The gradients of the matrix as it reads English, reads German, writes German."""
#     model = copy.deepcopy(model)
#     model.target_embedding = copy.deepcopy(model.embedding)
#     model.output = copy.deepcopy(model.output)
#     read, right = target[:, :-1], target[:, 1:].flatten()
#     logits = model(source, read).flatten(0, 1)
#     loss = F.cross_entropy(logits, right, ignore_index=tokenizer.pad_id)
#     jobs = (model.embedding, model.target_embedding, model.output)
#     return torch.autograd.grad(loss, [job.weight for job in jobs])
#
#
# untrained = Transformer(model.config)  # every row is random
# gradients = by_job(untrained, *pairs_with("", tokenizer, count=300))
# words = {word: row(word) for word in ("cat", "dog", "Katze", "hat")}
# views.jobs(gradients, words)

# %% [markdown]
# *Go from row to row: the cat and the dog are read by the encoder alone, Katze by the decoder, and the hat has all three jobs; but on the right no row is spared, because every word that is not right is pushed.*
#
# This is the first step of a training, from 300 pairs of sentences. Look at the hat first. Why should a German decoder read and write "hat", and so strongly? Because *hat* is also a German word, and a frequent one: it means "has". Both languages share one vocabulary, so the two words share one row. That row cannot simply join the heap of the other *der* nouns, because it also has to serve a verb.
#
# And the cat? Reading pulls its row and writing pushes it, and in this first step the pull and the push are of about the same size. But look at *where* the pushes go:

# %% tags=["active-ipynb"]
# reads, _, writes = gradients
# for word in ("dog", "house", "hat"):
#     alike = F.cosine_similarity(writes[row("cat")], writes[row(word)], dim=0)
#     print(f"the pushes on cat and on {word}: cosine {alike:.2f}")

# %% [markdown]
# The cat, the dog and the house are pushed in the same direction. All of them are wrong all the time, so they are pushed away from the same vectors. Their rows drift like a crowd, and a crowd that drifts together does not sort itself. The hat moves the other way, because *hat* is sometimes right. So we have to look for the origin of the heaps in the cat's other job, where it is read.
#
# Why share one matrix at all? The paper does not say. It is smaller: with the paper's 37,000 tokens and a width of 512, two matrices fewer save 38 million numbers, more than half of what the whole base model has. It may also translate better. For a small model of picture captions that was so on validation, but on the test set we could not tell ([evidence 6.2](evidence/06_embeddings.ipynb)).

# %% [markdown]
# ## So how did gender get in?
#
# When the encoder reads "cat", everything that the decoder writes afterwards depends on the row. And a cat in the English changes the German in many places. A cat that sleeps is *die Katze*, and a dog that sleeps *der Hund*. If you play with a cat, it is *mit der Katze*, and with a dog it is *mit dem Hund*. The cat loses *ihren Ball* and the dog *seinen Ball*. A row that does not tell the gender makes the decoder guess at each of these words. Every wrong guess sends a gradient back through the whole model, down to the row that could have told.
#
# We can watch it. We make the translator forget one noun: its row goes to the middle of all nouns, where no heap is. The gradient must then bring back which noun it was, and its gender with it. (Of the hat, which the decoder reads, too, we look at the encoder's job and at the pushes alone.) Then we show it ten sentences with that noun, and compute the next step of training for the row. Where will it point?

# %% tags=["active-ipynb"]
# means = {
#     article: E[[row(noun) for noun in heap]].mean(dim=0)
#     for article, heap in OTHERS.items()  # 185 nouns that are not on the map
# }
# middle = sum(means.values()) / 3
#
#
# def next_step(noun):
#     """How reading and writing would move a noun's row that has forgotten its gender."""
#     forgetful = copy.deepcopy(model)
#     forgetful.embedding.weight.data[row(noun)] = middle
#     reads, _, writes = by_job(forgetful, *pairs_with(noun, tokenizer, count=10))
#     return -reads[row(noun)], -writes[row(noun)]
#
#
# steps = {noun: next_step(noun) for noun in nouns}
# moved = torch.stack([read + write for read, write in steps.values()])
# views.next_steps(places, F.normalize(moved, dim=1) @ across_and_up.T, MAP, told="house")

# %% [markdown]
# *Every arrow begins in the middle and has the colour of its noun's gender: it shows where the next step of training moves the row, and each bundle points to its own heap (pale), though the house, with its short arrow, is not so sure.*

# %% tags=["active-ipynb"]
# aimed = 0
# for noun, step in zip(nouns, moved):
#     fit = {a: F.cosine_similarity(step, means[a] - middle, dim=0) for a in means}
#     aimed += max(fit, key=fit.get) == ARTICLES[noun]
# print(f"{aimed} of {len(nouns)} steps point to the noun's own heap")
# read, write = steps["cat"]
# print(
#     f"cat: pulled with {read.norm():.1f} by reading, with {write.norm():.4f} by writing"
# )

# %% [markdown]
# All sixty steps point home. (The house is the last to do so: with five sentences instead of ten, its step goes astray.) That is how gender comes back in a trained model, where the heaps are already there: the English sentences carry no sign of it, but the German answers do, and their errors come back to the English row.
#
# The push of writing is still there, but it is about ten thousand times weaker than the pull. A noun that has forgotten its gender causes wrong words, and so it is pulled strongly. And the trained model no longer expects an English word in German, so it has hardly anything to push away.
#
# One thing we have not shown. The other layers of this translator know already what each heap means, so a forgetful noun is called back to a place that exists. To see how the heaps first came apart, when all rows were random, you would have to watch a training from its beginning.

# %% [markdown]
# ## Turn a cat
#
# Does the decoder *use* the place of a row in this map? Then we should be able to turn a cat into a masculine animal. We take the mean row of *der* nouns minus the mean row of *die* nouns, and add the difference to the row of "cat". (The means are again those of nouns that are not on the map.) Guess which words of the German will change.

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
# *Der Katze* is wrong German, and wonderful: the noun is the same cat, and its gender has been exchanged. With it change the article (*die* becomes *der*, or *den* where the cat is seen), and the word for "its" (*ihren* becomes *seinen*). So the row holds "which animal" and "which gender" side by side, in different directions, and the decoder uses them apart.
#
# Is that true of the cat only? We turn each of the sixty nouns to both other genders, and count how often the article follows while all else stays the same. We can turn them all at once, because each of the sixty sentences has only one noun. As a control, we move each row equally far in a random direction.

# %% tags=["active-ipynb"]
# english = [f"The {noun} was old." for noun in nouns]
# before = translate(model, tokenizer, english)
#
#
# def followed(new, at_random=False):
#     """The nouns whose article follows a move of all rows, the rest being as before."""
#     other = copy.deepcopy(model)
#     for noun in nouns:
#         shift = means[new] - means[ARTICLES[noun]]
#         if at_random:
#             shift = F.normalize(torch.randn(128), dim=0) * shift.norm()
#         other.embedding.weight.data[row(noun)] += shift
#     after = translate(other, tokenizer, english)
#     pairs = zip(nouns, before, after)
#     article = new.capitalize()
#     return {noun for noun, was, now in pairs if now == article + was[len("der") :]}
#
#
# failed = []
# for new in MAP:
#     others = set(nouns) - set(MAP[new])
#     turned_ones, shaken = others & followed(new), others & followed(new, at_random=True)
#     failed += others - turned_ones
#     print(f"to {new}: {len(turned_ones)} of {len(others)}, at random {len(shaken)}")
# print("not turned:", *failed)

# %% [markdown]
# Of 120 turns 119 change the article and nothing else, and of 120 random shifts none does. The turn that fails is an old acquaintance: it is the hat, which would not become neuter.

# %% [markdown]
# ## What else is in a row?
#
# A row's nearest neighbours tell, the rows whose directions differ least from its own. We look among all 3,500 words of both languages:

# %% tags=["active-ipynb"]
# every = F.normalize(E, dim=1)
#
#
# def nearest(word, count=5):
#     likeness = every @ every[row(word)]
#     first = likeness.topk(count + 1).indices.tolist()
#     found = first[1:]  # the very first is the word itself
#     return ", ".join(tokenizer.decode([token]) for token in found)
#
#
# print("nearest to cat:", nearest("cat"))
# print("nearest to hat:", nearest("hat"))
# for other in ("aunt", "Katze"):
#     print(f"cat and {other}: cosine {every[row('cat')] @ every[row(other)]:.2f}")

# %% [markdown]
# What have an aunt, a company, a duck, a violin and a blanket in common with a cat? Only that they are *die Tante, die Firma, die Ente, die Geige, die Decke*. Is it our choice of sixty nouns that makes it look so, or the two directions of the map? The sentences of this translator have 185 other nouns. Let us take all 245, and all 128 directions:

# %% tags=["active-ipynb"]
# all_nouns = list(ARTICLES)  # the sixty and the 185 others
# directions = every[[row(noun) for noun in all_nouns]]
# closest = (directions @ directions.T).fill_diagonal_(-1).argmax(dim=1).tolist()
# mixed = []
# for noun, place in zip(all_nouns, closest):
#     if ARTICLES[noun] != ARTICLES[all_nouns[place]]:
#         mixed.append(f"{noun}, next to {all_nouns[place]}")
# same = len(all_nouns) - len(mixed)
# print(f"{same} of {len(all_nouns)} have a noun of their gender nearest; not:", *mixed)
# strengths = torch.linalg.svdvals(centred) ** 2
# share = strengths[:2].sum() / strengths.sum()
# print(f"the map's two directions hold {share:.0%} of the differences")

# %% [markdown]
# So the map shows only a fifth of the differences among its nouns, but in the whole rows the genders are as clear as on the page.
#
# The hat, at last, has neighbours like nobody else's: *haben, kann, wurde, wurden, sollte* are German verbs (have, can, was, were, should). Its row does three jobs, and two of them are a verb's.
#
# And where is *Katze*? Nowhere near the cat. Their cosine is as good as 0, which is what two random rows have. The words mean the same, but training never needed their rows to be alike, because all the layers of the model are between the two. What the German sentence needed to know of the cat was which word and which gender, and that is what we find in the row.

# %% [markdown]
# ## What to keep
#
# - A word goes in as a row of a matrix, and comes out as the row that fits best: the logits are inner products with all rows, and softmax turns them into probabilities.
# - Where a row is to be written, training pulls it towards the vectors that should have predicted it and pushes it away from all others; where it is read, errors come back to it through the whole model.
# - So English nouns sort themselves by German gender, because the German answers depend on it; and a word need not be near its translation.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Three words have the logits $\ln 2$, $\ln 3$ and $\ln 5$. What are their probabilities? Now raise the first logit by $\ln 4$. By which factor does the ratio of the first to the second change, and by which the probability of the first? And if the second word is the right one, what is the gradient, before and after?
#
# <details><summary>Answer</summary>
#
# The powers are 2, 3 and 5, so the probabilities are 0.2, 0.3 and 0.5. Afterwards the powers are 8, 3 and 5, and the probabilities 0.5, 0.19 and 0.31. The ratio of the first to the second was 2/3 and is 8/3, four times as large, as $e^{\ln 4}$ says. The probability of the first is only 2.5 times as large. The gradients $p - q$ are $(0.2, -0.7, 0.5)$ and $(0.5, -0.81, 0.31)$.
# </details>
#
# **2. In code: a noun of your own.** Guess the German article of an English noun from nothing but its row. Your function gets a row and the mean row of each gender. When the checker is content, make means of the sixty nouns in `MAP`, and try nouns that are not on the map, for example "bird", "umbrella" or "idea". (If `tokenizer.encode` makes several tokens of your noun, it has no row of its own: take another.) Then turn your noun with `turned`, in a sentence of your own. Which words will follow?

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
# The bird is masculine: *Der Vogel verlor seinen Ring. Der junge Vogel sah seine Mutter.* Turned, both sentences begin with *Die*. But "its" follows in the second alone: *Die Vogel verlor seinen Ring. Die junge Vogel sah ihre Mutter.* For a pronoun one shift is not always enough.
#
# Of the 185 nouns that are not on the map, `article` gets 183 right. It takes a fence and a river for neuter, and they are *der Zaun* and *der Fluss*.
# </details>
#
# **3. In code: pull and push.** From vectors $x$, the matrix $E$ and the right words, compute the *step* of every row, which is minus the gradient of the mean loss. Use the bold sentence of the chapter, and no `backward`.

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
#
# Row $i$ of the result is the mean over all predictions of $(q_i - p_i)\, x$.
# </details>
#
# **4. To think about.** Suppose that the translator had three matrices instead of one. Would English nouns still be in three heaps? Would the hat still be at the edge? And now suppose that the translator went from German to English: which nouns, those of English or of German, would you look at for heaps of gender, and why might you find none?
#
# <details><summary>Answer</summary>
#
# The heaps should stay: what sorts the nouns is the job of reading English, and that job would have a matrix of its own. The hat should move into its heap, because its English row would no longer do the work of a German verb.
#
# From German to English, the nouns that are read are German. But which gender they have hardly matters to what is to be written: all three articles become "the". A gender helps only where it says which noun another word belongs to. For the English nouns, which are now written, gender matters even less. They might sort themselves by what English asks of them, for example by "his", "her" and "its". We have trained none of these models, so these are predictions.
# </details>
#
# **Next.** Sixty nouns, each with a row of its own, and no idea who comes first. [Chapter 7](07_positions.ipynb) tells words where they are.
