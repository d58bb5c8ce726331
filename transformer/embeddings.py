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
# A small translator from English to German ships with this book. It holds every word that it knows as a row of 128 numbers. Here are the rows of sixty English nouns, laid out on the page. (The two directions in which the rows differ most are across and up. We chose the nouns, and the computer chose the places.) Cover the large words, and guess: what do the nouns of one heap have in common?

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
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% tags=["active-ipynb"]
# import copy
#
# from transformer import cache, load, translate, views
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits
# nouns = {
#     "der": "man boy teacher doctor king dog wolf fox bear lion bus cake apple cheese "
#     "letter coat hat key table tree",
#     "die": "woman mother nurse queen witch cat cow mouse owl snake school soup milk "
#     "bottle clock lamp crown bridge door street",
#     "das": "child girl horse pig lamb museum car ship boat bread egg book shirt glass "
#     "knife picture bed house roof window",
# }
# nouns = {article: words.split() for article, words in nouns.items()}

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# E = model.embedding.weight.detach()  # a row for each word
# names = [name for words in nouns.values() for name in words]
# ids = torch.tensor([tokenizer.encode(name)[0] for name in names])
# rows = F.normalize(E[ids], dim=1)  # all of length 1: only directions count
# centred = rows - rows.mean(dim=0)
# _, _, directions = torch.linalg.svd(centred, full_matrices=False)
# views.noun_map(centred @ directions[:2].T, nouns)

# %% [markdown]
# *Look at one heap at a time: a king and a cheese are together, and a cow and a cat are far from a dog; but the computer has not mixed any two colours.*
#
# The heaps are the three genders of German. A man is *der Mann*, a table *der Tisch*, and both are masculine; a cat is *die Katze*, a house is *das Haus*. But these are English words, and English nouns have no gender. Nobody told the model of any. It was shown pairs of sentences, and learned to write the second.
#
# How does German grammar get into English words? To see it we need both ends of a Transformer: where words become vectors, and where vectors become words. It is one matrix that does both.

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
# The dog's row is also a product: $(0, 1, 0)\, E = (0, 2)$. A vector with one 1 and zeros elsewhere is called **one-hot**. Nobody multiplies by all those zeros. But it shows that the look-up is an ordinary linear layer, and its rows are weights like any others: they begin at random and are learned.


# %%
def one_hot_product(tokens: Tensor, weight: Tensor) -> Tensor:
    """Rows of an embedding matrix as a product: (...), (V, d_model) -> (..., d_model)."""
    if ((tokens < 0) | (tokens >= len(weight))).any():
        raise ValueError(f"token ids must lie between 0 and {len(weight) - 1}")
    one_hot = tokens[..., None] == torch.arange(len(weight), device=weight.device)
    return one_hot.to(weight.dtype) @ weight  # (..., V) times (V, d_model)


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
# x = small(tokens)
# print(f"tokens {tuple(tokens.shape)} become vectors {tuple(x.shape)}")
# assert torch.equal(x[0, 1], x[1, 0])  # token 17 is the same everywhere
# assert torch.allclose(x, 8 * one_hot_product(tokens, small.weight))
# print("a look-up is a product with a one-hot vector (times the root of 64)")

# %% [markdown]
# The factor $\sqrt{d_{model}}$ has a section of its own below. Note that a row knows no context: "bank" has one row, whatever it is the bank of. The layers above add the rest.

# %% [markdown]
# ## A vector finds its word
#
# At its other end the model has worked out a vector $x$ for the next word, and must say which word that is. So compare $x$ with every row of $E$, as a query is compared with keys. The inner products are called **logits**, one for each word:
#
# $$z = x E^\top$$
#
# In our small vocabulary, let $x$ be $(1.5,\ 0.5)$. The logits are $3$ for the cat, $1$ for the dog and $2$ for the hat. What do these numbers mean? We want probabilities, which are positive and add up to 1. Softmax makes them, as it made weights of scores in chapter 4:
#
# $$p_i = \frac{e^{z_i}}{\sum_j e^{z_j}}$$
#
# Here $e^3 = 20.1$, $e^1 = 2.7$ and $e^2 = 7.4$, together 30.2. So the cat has the probability $20.1/30.2 = 0.67$, the dog has 0.09 and the hat 0.24. Divide two of them, and the sum drops out: $p_i / p_j = e^{z_i - z_j}$. **A logit larger by 1 makes the ratio of two probabilities $e = 2.7$ times as large**, whatever else is in the vocabulary. (The probability itself grows less, because the sum grows, too.)


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
# logits = Projection(tiny)(torch.tensor([1.5, 0.5]))
# print("logits", logits.tolist(), "probabilities", softmax(logits).detach())
# assert torch.equal(softmax(logits), softmax(logits + 1000))  # no overflow
# assert torch.allclose(softmax(logits), logits.softmax(dim=-1))

# %% [markdown]
# Now the translator. It has read "The lady saw the cat that lost its ball." and has written *Die Dame sah die Katze, die*. Next comes "its", which is *ihren* if the owner is feminine and *seinen* if not. Here are the four words that fit best, with their logits. If you divide logits by a number, the **temperature**, they lie closer together or further apart, and so do the probabilities. Which word is ahead does not change.

# %% tags=["active-ipynb"]
# english, german = (
#     "The lady saw the cat that lost its ball.",
#     "Die Dame sah die Katze, die",
# )
# source = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]])
# written = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(german)]])
# with torch.no_grad(), cache(model, "logits") as seen:
#     model(source, written)
# best = seen["logits"][0, -1].topk(4)
# words = [tokenizer.decode([token]) for token in best.indices.tolist()]
# views.temperature(words, best.values)

# %% [markdown]
# *Compare the first two bars: with a low temperature the word that is ahead takes nearly all, and with a high one the second comes close.* (In a running notebook: move the temperature.)
#
# At temperature 1 these are the model's own probabilities (among the four words). Check the ratio of the first two: $0.76/0.24 = 3.2$, and $\ln 3.2 = 1.16$ is the difference of their logits before rounding. A chat bot that writes boldly has a high temperature, and one that always takes the likeliest word has, so to speak, the temperature 0 ([chapter 21](21_language.ipynb)).

# %% [markdown]
# ## What training does to a row
#
# A prediction is scored by $-\log p$ of the word that was right, the **cross-entropy**. If the cat was right, our small model loses $-\log 0.67 = 0.41$; if it was the dog, $-\log 0.09 = 2.41$. Training moves everything so that this gets smaller. In which direction does it push the logits? The logarithm makes it simple: up for the right word, down for the others, each by as much as the prediction was off:
#
# $$\frac{\partial\,\mathrm{loss}}{\partial z_i} = p_i - q_i$$
#
# where $q_i$ is 1 for the right word and 0 elsewhere. If the hat was right, that is $0.67$, $0.09$ and $0.24 - 1 = -0.76$.

# %% tags=["active-ipynb"]
# logits = logits.detach().requires_grad_()
# F.cross_entropy(logits, torch.tensor(2)).backward()  # the hat was right
# print(logits.grad)

# %% [markdown]
# And the rows? A logit is $x \cdot E_i$, so the step of row $i$ goes along $x$: **the row of the right word is pulled towards the vector that should have predicted it, and all other rows are pushed away from that vector**, each as strongly as it was expected. Two words that are right after the same things are pulled the same way.
#
# That was the output. The same matrix also embeds what the encoder reads and what the decoder has written, because German and English share one vocabulary. The paper uses one matrix for all three, which is called **tying** (Press and Wolf, 2017). Then a row's gradient is the sum of what each use alone would give. To see the three apart, here is a model without anything between its ends, which may be handed one matrix three times or three matrices:


# %%
def three_uses(source, target, gold, E_source, E_target, E_output) -> Tensor:
    """A loss that uses embeddings three times, without the model between them.

    source, target, gold: token ids (B, T). The mean of the source is added to each
    target vector; the sums are scored: cross-entropy with gold, in nats.
    """
    scale = math.sqrt(E_source.shape[1])
    x = (E_target[target] + E_source[source].mean(dim=1, keepdim=True)) * scale
    return F.cross_entropy((x @ E_output.T).flatten(0, 1), gold.flatten())


# %% tags=["active-ipynb"]
# start = Embedding(20, 16).weight.detach() / 2  # halved: no answer is sure yet
# source, target, gold = torch.tensor([[[1, 2, 3]], [[10, 11, 12]], [[11, 12, 13]]])
#
# copies = [start.clone().requires_grad_() for _ in range(3)]
# parts = torch.autograd.grad(three_uses(source, target, gold, *copies), copies)
# tied = start.clone().requires_grad_()
# three_uses(source, target, gold, tied, tied, tied).backward()
#
# uses = {"reads the source": parts[0], "reads the target": parts[1]}
# uses |= {"writes": parts[2], "one matrix": tied.grad}
# views.reached({use: gradient.norm(dim=1) for use, gradient in uses.items()})

# %% [markdown]
# *Each column is a row of E: reading reaches only the words that occur (1 to 3, and 10 to 12), and writing reaches every word, those to be written (11 to 13) most.*

# %% tags=["active-ipynb"]
# assert torch.allclose(tied.grad, sum(parts), atol=1e-6)
# print("the gradient of one matrix is the sum of the three")

# %% [markdown]
# Why share? The paper does not say. One matrix is smaller: with the paper's 37,000 words and a width of 512 two matrices fewer are 38 million numbers fewer, where the whole base model has 63 million. It may also translate better. On captions a small model with one matrix was 1.6 BLEU ahead of the same with three on validation (three trainings each), but whether that holds on the test set we could not tell ([evidence 6.2](evidence/06_embeddings.ipynb)).

# %% [markdown]
# ## Why times the root of d?
#
# A matrix with two jobs gets into trouble over its size. As output, its rows are multiplied with vectors $x$ whose numbers have variance 1 (LayerNorm sees to that, [chapter 3](03_stacks.ipynb)). A logit is a sum of $d_{model}$ products, so it has variance 1 if the numbers in $E$ have variance $1/d_{model}$. As input, a row meets the sines of [chapter 7](07_positions.ipynb), whose mean square is 1/2, and beside them such small numbers would hardly be heard. So the paper multiplies what goes *in* by $\sqrt{d_{model}}$. (It gives no reason; this is a plausible one.)

# %% tags=["active-ipynb"]
# widths = [32, 64, 128, 256, 512]
# sizes = {"row times √d": [], "logit": [], "row of E": []}
# for d_model in widths:
#     table = Embedding(2000, d_model)
#     x = torch.randn(100, d_model)
#     sizes["row times √d"].append(table(torch.arange(2000)).var().item())
#     sizes["logit"].append(Projection(table)(x).var().item())
#     sizes["row of E"].append(table.weight.var().item())
# views.sizes_by_width(widths, sizes)

# %% [markdown]
# *At every width, what goes in and the logits that come out have variance 1, while the rows themselves get smaller and smaller.*
#
# And if we began with larger rows, of variance 1? (That is how `nn.Embedding` of torch begins.) A model that knows nothing should give each of 2,000 words the same probability, which costs $\log 2000 = 7.6$.

# %% tags=["active-ipynb"]
# x, gold = torch.randn(500, 512), torch.randint(2000, (500,))
# logits = Projection(Embedding(2000, 512))(x)
# for name, factor in {"1/d": 1, "1": math.sqrt(512)}.items():
#     loss = F.cross_entropy(factor * logits, gold).item()
#     print(f"rows of variance {name}: the untrained loss is {loss:.1f}")

# %% [markdown]
# With large rows an untrained model is *sure*, and of the wrong words: it loses ten times what knowing nothing would cost.
#
# The factor has a second effect, which is easily overlooked. Adam, the optimizer of [chapter 12](12_optimizer.ipynb), moves each number by about the learning rate, however small its gradient is. What goes into the model is the row *times* $\sqrt{d_{model}}$, so with each step it moves $\sqrt{d_{model}}$ times as far. So to drop the factor changes two things at once, how large words are at the start and how fast they change. In a very small model we tried each with and without the other. Large words slowed it down at the start, long steps helped at a low learning rate and harmed at a high one, and without the factor it learned about as well or better ([evidence 6.1](evidence/06_embeddings.ipynb)). Whether the factor helps at the paper's size we do not know; we keep it because the paper has it.

# %% [markdown]
# ## So how did gender get in?
#
# The row of "cat" is only ever read, by the encoder; nobody writes "cat" in German. So all that it has learned has come back through the whole model from German words. Whenever there was a cat in the source, the decoder had to write *die* and not *der*, *ihren* and not *seinen*, *kleine Katze* and not *kleiner*. A row that helps with this lowers the loss. And it is the same help, pulled for in the same way, for every noun with *die*. That is a likely story. Does the model also *use* what we see in the map? Then we should be able to turn a cat into a masculine animal. We take the mean row of the *der* nouns minus the mean row of the *die* nouns, and add it to the row of "cat":

# %% tags=["active-ipynb"]
# rows_of = {
#     gender: torch.tensor([tokenizer.encode(word)[0] for word in words])
#     for gender, words in nouns.items()
# }
# means = {gender: E[rows].mean(dim=0) for gender, rows in rows_of.items()}
#
#
# def turned(word, old, new):
#     """The translator with another gender in the row of one word."""
#     other = copy.deepcopy(model)
#     row = tokenizer.encode(word)[0]
#     other.embedding.weight.data[row] += means[new] - means[old]
#     return other
#
#
# english = ["The old cat lost its ball.", "The man saw the cat."]
# print("as it is:", *translate(model, tokenizer, english))
# for new in ("der", "das"):
#     print(f"as {new}:  ", *translate(turned("cat", "die", new), tokenizer, english))

# %% [markdown]
# *Der Katze* is wrong German, and wonderful: the noun is the same cat, and its gender has been exchanged. With it change the article (*die* becomes *der*, or *den* where the cat is seen), and the word for "its" (*ihren* becomes *seinen*). So the row holds "which animal" and "which gender" side by side, in different directions, and the decoder uses them apart. Is that true of the cat only? We turn each of the sixty nouns to both other genders, and count how often the article follows while all else stays the same.

# %% tags=["active-ipynb"]
# articles, followed, tried = {"der": "Der", "die": "Die", "das": "Das"}, 0, 0
# for old, words in nouns.items():
#     for word in words:
#         english = [f"The {word} was old."]
#         before = translate(model, tokenizer, english)[0].split()
#         for new in nouns.keys() - {old}:
#             after = translate(turned(word, old, new), tokenizer, english)[0].split()
#             followed += after == [articles[new], *before[1:]]
#             tried += 1
# print(f"{followed} of {tried} turns change the article and nothing else")

# %% [markdown]
# What else is in a row? Its nearest neighbours tell, the rows whose directions differ least. First among the sixty nouns, then in the whole matrix:

# %% tags=["active-ipynb"]
# every = F.normalize(E, dim=1)
#
#
# def nearest(word, k=5):
#     near = (every @ every[tokenizer.encode(word)[0]]).topk(k + 1).indices.tolist()[1:]
#     return ", ".join(tokenizer.decode([row]) for row in near)
#
#
# kin = (rows @ rows.T).fill_diagonal_(-1).argmax(dim=1)  # the nearest of the sixty
# print(
#     f"of the same gender as its nearest: {(kin // 20 == torch.arange(60) // 20).sum()}"
# )
# for word in ("cat", "hat"):
#     print(f"nearest to {word}: {nearest(word)}")
# for pair in (("cat", "Katze"), ("dog", "Hund")):
#     a, b = (every[tokenizer.encode(word)[0]] for word in pair)
#     nearer = (every @ a > a @ b).sum()
#     print(*pair, f"- cosine {a @ b:.2f}, {nearer:,} of 3,500 rows are nearer")

# %% [markdown]
# All sixty have a noun of their own gender nearest. What have an aunt, a company, a duck, a violin and a blanket in common with a cat? Only that they are *die Tante, die Firma, die Ente, die Geige, die Decke*. And "hat" is at the edge of its heap for a reason of its own: *hat* is German, too, and means "has". Both languages share one vocabulary, so the two words share one row, and nearest to it are German verbs like *haben* and *kann* (have, can). But of a word and its translation one knows nothing of the other: thousands of rows are nearer to "cat" than the row of *Katze*.
#
# So a row is a record of what training needed to know about a word. The genders were needed, and they are in English words. That "cat" and *Katze* mean the same was never needed at this place, because the layers between the two rows see to that.
#
# *The package's embedding is [this class](https://github.com/OWNER/annotated-attention/blob/main/transformer/fast/embeddings.py), with a clear sentence for a token that is not in the vocabulary.*

# %% [markdown]
# ## What to keep
#
# - A word goes in as a row of a matrix, and comes out as the row that fits best: the logits are inner products with all rows, and softmax turns them into probabilities.
# - Training pulls the row of the right word towards the vector that should have predicted it, and pushes all others away; where one matrix has several uses, it learns from the sum of them.
# - A row holds what the task needs and nothing else: English nouns sort themselves by German gender, and a word need not be near its translation.

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
# **2. In code.** Write the loss of a batch, $-\log p$ of the right word averaged over all predictions, from the logits. Nothing may overflow, and no probability may be rounded to 0 before its logarithm is taken. Use `exp`, `log` and sums, not a ready softmax.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.embeddings import check_cross_entropy
#
#
# def cross_entropy(logits, gold):
#     """logits (n, V), gold (n,) ids -> a number, in nats"""
#     ...
#
#
# check_cross_entropy(cross_entropy)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def cross_entropy(logits, gold):
#     z = logits - logits.max(dim=1, keepdim=True).values
#     log_sum = z.exp().sum(dim=1).log()
#     right = z[torch.arange(len(gold)), gold]
#     return (log_sum - right).mean()
# ```
#
# The logarithm of softmax is a difference, so no probability has to be computed, and none can round to 0.
# </details>
#
# **3. To think about.** The rows of "cat" and of *Katze* come from one matrix, and the two words mean the same. Yet their cosine is nearly 0. Why does nothing pull them together? And in what kind of training would something do so?
#
# <details><summary>Answer</summary>
#
# The row of "cat" is read by the encoder. The row of *Katze* is read and written by the decoder. The two never meet in one inner product: between them are all the layers, whose matrices may translate any direction into any other. They would come together if both had to do the same job in the same place, for example if one stack read both languages, or if the output had to predict "cat" in contexts in which it predicts *Katze* at other times.
# </details>
#
# **Next.** Sixty nouns, each with a row of its own, and no idea who comes first. [Chapter 7](07_positions.ipynb) tells words where they are.
