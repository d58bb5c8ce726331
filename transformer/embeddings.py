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
# The small translator of chapter 0 holds every word that it knows as a row of 128 numbers. Here are the rows of sixty English nouns. The computer chose their places: across and up are the two directions in which these sixty rows differ most. Go around the picture, and guess: what do the nouns of one colour have in common?

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
# import re
#
# import torch
#
# from transformer import Transformer, TransformerConfig, cache, load, translate, views
# from transformer.teaching.nouns import MAP, OTHERS
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# E = model.embedding.weight.detach()  # a row for each word
# nouns = [noun for heap in MAP.values() for noun in heap]  # sixty, in three lists
#
#
# def row(word):
#     return tokenizer.encode(word)[0]  # each word used here is a single token
#
#
# def flat(rows):
#     """Places in the plane of the two directions in which some rows differ most."""
#     rows = rows / rows.norm(dim=1, keepdim=True)  # only directions, no lengths
#     rows = rows - rows.mean(dim=0)
#     # svd sorts all directions by how far the rows differ along them: take two
#     return rows @ torch.linalg.svd(rows, full_matrices=False).Vh[:2].T
#
#
# views.noun_map(flat(E[[row(noun) for noun in nouns]]), MAP, ring="hat")

# %% [markdown]
# *There are three heaps: a king and a cheese share one, a cat and a dog do not. The ringed hat is nearer than any other noun to the cross in the middle.*
#
# The heaps are the three genders of German. The nouns on the left are feminine in German, with the article *die*: a cat is *die Katze*. Those at the top are masculine, with *der*: a man is *der Mann*, and a cheese *der Käse*. Those at the bottom are neuter, with *das*: a house is *das Haus*. Only the colours are ours.
#
# Nobody told the translator of genders. It was shown pairs of sentences, and learned to write the second from the first. And English nouns have no gender. **How does German grammar get into the row of an English cat?** And why is the hat, *der Hut*, outside its heap?

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


class Embedding(nn.Module):
    """Rows of a matrix E (V, d_model), times sqrt(d_model): (B, T) -> (B, T, d_model).

    Section 3.4. Rows start random, with variance 1 / d_model, which scaling makes 1.
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
# At its other end the model has worked out a vector $x$, and must say which word comes next. So it compares $x$ with a row for every word, as a query is compared with keys. The inner products, chapter 0's scores of the vocabulary, are called **logits**:
#
# $$z = x E^\top$$
#
# Here the paper saves a matrix. The rows that $x$ is compared with are those of $E$ again. To use one matrix at both ends is called **tying** (Press and Wolf, 2017). And the paper makes a second decision: both languages have one vocabulary, so the encoder and the decoder read from the same matrix, too.
#
# In our small vocabulary, let $x$ be $(1.5,\ 0.5)$. The logits are $3$ for the cat, $1$ for the dog and $2$ for the hat. Softmax makes probabilities of them, as it made weights of scores in chapter 4:
#
# $$p_i = \frac{e^{z_i}}{\sum_j e^{z_j}}$$
#
# Here $e^3 = 20.1$, $e^1 = 2.7$ and $e^2 = 7.4$, together 30.2. So the cat has the probability $20.1/30.2 = 0.67$, the dog has 0.09 and the hat 0.24. The cat's logit is larger than the hat's by 1, and its probability $e = 2.7$ times as large.


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
# Now the translator. It has read "The lady saw the cat that lost its ball." and has written *Die Dame sah die Katze, die*. Here German puts the verb "lost" at the end, so next comes "its". German says *ihren* if the owner is feminine, and *seinen* if the owner is masculine or neuter. The cat is feminine, so *ihren* is right. Which row will fit better?

# %% tags=["active-ipynb"]
# told = "The lady saw the cat that lost its ball."
# so_far = "Die Dame sah die Katze, die"
# source = torch.tensor([[*tokenizer.encode(told), tokenizer.eos_id]])
# written = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(so_far)]])
# with torch.no_grad(), cache(model) as seen:  # keeps what each part puts out
#     model(source, written)
# x = seen["decoder.output"][0, -1]  # for the word after the last
# z = seen["logits"][0, -1]
#
# some = ["cat", "ball", "die", "Katze", "ihren", "seinen", "hat"]
# ids = [row(word) for word in some]
# reading = {"encoder": "cat", "decoder": "die"}
# views.one_matrix(E[ids], some, x, softmax(z)[ids], read=reading)

# %% [markdown]
# *Begin on the left: among other words the encoder reads "cat" and the decoder die, each by its row. On the right the x that comes out is compared with all rows of the same matrix, and ihren fits best. Drawn are seven of 3,500 rows and ten of their 128 numbers.*
#
# So one matrix has three jobs: it **reads English**, it **reads German**, namely what has been written so far, and it **writes German**. Why should they share? The paper does not say. One matrix is smaller: with three, the paper's base model would have about 101 million parameters, not the 63 that chapter 8 counts. It may also translate better, but on new sentences we could not tell ([evidence 6.2](evidence/06_embeddings.ipynb)).

# %% [markdown]
# ## Why times the root of d?
#
# The paper gives no reason for the factor, and a very small model of ours did as well without it ([evidence 6.1](evidence/06_embeddings.ipynb)). A plausible reason is that reading and writing want rows of different sizes.
#
# **To write, the rows should be small.** The numbers of $x$ have about variance 1, because they come out of a LayerNorm ([chapter 3](03_stacks.ipynb)). Let the numbers of $E$ have it, too, and let rows be 512 wide. A logit is then a sum of 512 products, and about $\sqrt{512} = 23$ in size. Take a vocabulary of 2,000 words. The largest of 2,000 such logits is by chance near 80, and the right word's is on average 0. So before any training the loss is near 80, where an even guess would cost $\ln 2000 = 7.6$. If the rows have variance $1/d_{model}$, logits are about 1 in size, and the loss begins at 8.
#
# **To be read, the rows should be larger.** They are added to vectors that mark positions ([chapter 7](07_positions.ipynb)), with numbers up to 1. Beside these a small row is faint. So $E$ stays small, and only what is read is multiplied by $\sqrt{d_{model}}$.

# %% [markdown]
# ## Writing pulls one row and pushes all others
#
# How does training move a row that writes? A prediction is scored by $-\ln p$ of the word that was right, the **cross-entropy**. It is small, $-\ln 0.67 = 0.41$, if the cat was right, and large, $-\ln 0.09 = 2.41$, if the dog was right. With $g$ for the right word, the loss is
#
# $$-\ln p_g = -z_g + \ln \sum_j e^{z_j} .$$
#
# Take its derivative by a logit $z_i$. The second part gives $e^{z_i} / \sum_j e^{z_j}$, which is $p_i$. The first part gives $-1$ for the right word. So
#
# $$\frac{\partial\,\mathrm{loss}}{\partial z_i} = p_i - q_i ,$$
#
# where $q_i$ is 1 for the right word and 0 elsewhere. If the hat was right, that is $0.67$, $0.09$ and $0.24 - 1 = -0.76$.
#
# Training steps *against* the gradient, so the hat's logit goes up and the others go down. And the rows? A logit is $x \cdot E_i$, so the row $E_i$ moves by $(q_i - p_i)\, x$, times the learning rate. **The row of the right word is pulled towards the vector that should have predicted it. Every other row is pushed away from that vector, by as much as its word was expected.** With a learning rate of 1, the rows move like this:

# %% tags=["active-ipynb"]
# toy_x = torch.tensor([1.5, 0.5])
# loss = F.cross_entropy(Projection(tiny)(toy_x), torch.tensor(2))  # the hat was right
# loss.backward()
# views.pulls(tiny.weight.detach(), -tiny.weight.grad, toy_x, ["cat", "dog", "hat"])

# %% [markdown]
# *Compare each arrow with x: the row of the hat, which was right, goes the way of x, and the other two go the opposite way, the cat furthest, because it was expected.*
#
# Now think of "cat" in our translator. The model writes German, so "cat" is never the right word, and its row is only pushed. Can pushes have brought the cat to the feminine nouns? Or was it the cat's other job, to be read? We can separate the two jobs: we give English a matrix of its own. Its rows are read and never written, so nothing pushes them.

# %% [markdown]
# ## Reading sorts the nouns
#
# A new translator shall learn from the beginning, with random rows. To learn within seconds it gets a small world: 600 sentences like "The cat has seen the dog." The trained translator writes the German. For comparison we make a German without gender, in which every article is *das*.

# %% tags=["active-ipynb"]
# torch.manual_seed(0)
# english = []
# for _ in range(10):
#     seen_nouns = [nouns[i] for i in torch.randperm(60).tolist()]
#     english += [f"The {a} has seen the {b}." for a, b in zip(nouns, seen_nouns)]
# german = translate(model, tokenizer, english)
# no_gender = [re.sub(r"\b(Der|Die|Das|der|die|das|den)\b", "das", s) for s in german]
# for sentences in (english, german, no_gender):
#     print(sentences[25])

# %% [markdown]
# The new model is this book's Transformer (chapters 3 to 8) with one layer and rows of 32 numbers. We keep its English matrix at three moments.

# %% tags=["active-ipynb"]
# texts = " ".join(english + german + no_gender).replace(".", " .")
# words = ["<pad>", "<start>", "<end>", *sorted(set(texts.split()))]
#
#
# def ids_of(sentences):
#     split = [s.replace(".", " .").split() for s in sentences]  # six tokens in each
#     return torch.tensor([[words.index(word) for word in s] for s in split])
#
#
# def learn(first, second, one_matrix=False):
#     """Train a new translator; its source matrix after 0, 50 and 200 updates."""
#     source = ids_of(first)
#     target = F.pad(ids_of(second), (1, 0), value=1)  # 1 is <start>
#     torch.manual_seed(2)  # of seeds 0 to 2 the middle one
#     sizes = dict(d_model=32, d_ff=64, N=1, h=2, P_drop=0.0)
#     config = TransformerConfig(len(words), **sizes, tie_embeddings=one_matrix)
#     small = Transformer(config)  # the package's: one matrix for all, or three
#     adam = torch.optim.Adam(small.parameters(), lr=0.005)
#     kept = {}
#     for step in range(201):
#         if step in (0, 50, 200):
#             kept[step] = small.embedding.weight.detach().clone()
#         some = torch.randint(len(source), (64,))  # sentences of this update
#         logits = small(source[some], target[some, :-1])
#         loss = F.cross_entropy(logits.flatten(0, 1), target[some, 1:].flatten())
#         adam.zero_grad()
#         loss.backward()
#         adam.step()
#     return kept

# %% [markdown]
# Which of the two translators will sort its English nouns by German gender? To count, we ask of each noun whether the nearest other noun, in all 32 directions, has the same gender. By chance that holds for a third of them, about twenty. The random start below happens to have 27.

# %% tags=["active-ipynb"]
# genders = [article for article, heap in MAP.items() for _ in heap]
#
#
# def sorted_nouns(rows):
#     """How many nouns have a noun of their own gender nearest."""
#     rows = F.normalize(rows, dim=1)
#     nearest = (rows @ rows.T).fill_diagonal_(-1).argmax(dim=1).tolist()
#     return sum(genders[i] == genders[j] for i, j in enumerate(nearest))
#
#
# learned = {
#     "German": learn(english, german),
#     "German without gender": learn(english, no_gender),
# }
# places, counts = {}, {}
# for name, kept in learned.items():
#     for step, matrix in kept.items():
#         rows = matrix[[words.index(noun) for noun in nouns]]
#         places[name, step], counts[name, step] = flat(rows), sorted_nouns(rows)
# views.coming_apart(places, counts, MAP)

# %% [markdown]
# *Every dot is an English noun, in the colour of its German gender. Above, the colours begin mixed and move into three regions, which still touch at step 200. Below, where German has no gender, they stay mixed.*
#
# That is how gender gets into an English row. No English sentence tells it, and nothing pushed these rows. But a row that does not tell the gender makes the decoder guess at each article, and a wrong guess sends a gradient back through decoder and encoder, down to the row that could have told. Without the genders in German, the heaps do not form.
#
# Pushes do exist in the translator of chapter 0, where one matrix serves all. But they do not tell nouns apart: at the first update of a training, they move the cat, the dog and the house in almost the same direction ([evidence 6.3](evidence/06_embeddings.ipynb)).

# %% [markdown]
# ## Turn a cat, and the grammar follows
#
# Back to the translator of chapter 0. Does its decoder *use* the place of a row? Then we can turn a cat into a masculine animal. We add the mean row of *der* nouns to the row of "cat", and subtract the mean row of *die* nouns. The means come from 185 other nouns, none of which is on the map. Guess which words of the German will change.

# %% tags=["active-ipynb"]
# means = {
#     article: E[[row(noun) for noun in heap]].mean(dim=0)
#     for article, heap in OTHERS.items()  # nouns that are not on the map
# }
#
#
# def turned(word, old, new):
#     """The translator with another gender in the row of one word."""
#     other = copy.deepcopy(model)
#     other.embedding.weight.data[row(word)] += means[new] - means[old]
#     return other
#
#
# about_cats = ["The old cat lost its ball.", "The man saw the cat."]
# print("as it is:", *translate(model, tokenizer, about_cats))
# for new in ("der", "das"):
#     print(f"as {new}:  ", *translate(turned("cat", "die", new), tokenizer, about_cats))

# %% [markdown]
# *Der Katze* is wrong German, and wonderful: it is the same cat with another gender. The article changes: *die* becomes *der*, or *den* where the cat is seen. So does the word for "its": *ihren* becomes *seinen*. But *Katze* stays *Katze*. The shift changes which gender the decoder reads, and not which animal.
#
# The cat is no exception. We turned each of the sixty nouns to both other genders in the sentence "The ... was old." In 119 of 120 cases the article followed and all else stayed ([evidence 6.4](evidence/06_embeddings.ipynb)). The noun that failed is the hat.

# %% [markdown]
# ## What is the hat doing out there?
#
# We turn the hat, too, and then look at the nearest neighbours of its row as it was. These are the rows whose directions differ least from its own.

# %% tags=["active-ipynb"]
# for new in ("die", "das"):
#     turned_hat = turned("hat", "der", new)
#     print(f"as {new}:", *translate(turned_hat, tokenizer, ["The hat was old."]))
#
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
# Turned to *die*, the hat follows. Turned to *das*, it stays *der Hut*. Its neighbours tell what else is in the row: *haben, kann, wurde, wurden, sollte* are German verbs (have, can, was, were, should). And *hat* is also a German word: it means "has". Both languages share one vocabulary and one matrix, so the two words share one row. The encoder reads it as a hat, and the decoder reads and writes it as a verb.
#
# Then a matrix of its own should bring the English hat home. Our new translators can tell, because each of their German sentences has a *hat*. How well does the row of the hat fit the mean direction of the other *der* nouns?

# %% tags=["active-ipynb"]
# matrices = {
#     "English has its own matrix": learned["German"][200],
#     "one matrix for all": learn(english, german, one_matrix=True)[200],
# }
# for name, matrix in matrices.items():
#     rows = F.normalize(matrix, dim=1)
#     print(name)
#     for noun in ("dog", "hat"):
#         others = [words.index(other) for other in MAP["der"] if other != noun]
#         home = rows[others].mean(dim=0)
#         fit = F.cosine_similarity(rows[words.index(noun)], home, dim=0)
#         print(f"  {noun} beside the other der nouns: cosine {fit:.2f}")

# %% [markdown]
# With a matrix of its own for English, the hat fits its heap about as well as the dog does. In the shared matrix it points away, although the dog fits even better there. That is the price of one row for two words. Tying alone would not ask for it: the decoder could read and write with one matrix, and the encoder could have another.
#
# And the cat? An aunt, a company, a duck, a violin and a blanket have one thing in common with it: they are *die Tante, die Firma, die Ente, die Geige, die Decke*. The heaps are not an accident of our sixty nouns ([evidence 6.5](evidence/06_embeddings.ipynb)). But *Katze* is nowhere near. Training never needed the two rows to be alike, because all the layers of the model are between them.

# %% [markdown]
# ## What to keep
#
# - A word goes in as a row of a matrix and comes out by comparing with all rows of the same matrix: the inner products are the logits, and softmax makes probabilities of them.
# - Where a row is to be written, training pulls it towards the vectors that should have predicted it and pushes it away from others; where it is read, errors come back to it through the whole model.
# - Reading alone can sort English nouns by German gender, because the German answers depend on it; and where two languages share a matrix, two words may have to share a row.

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
# birds = ["The bird lost its ring.", "The young bird saw its mother."]
# print(translate(turned("bird", "der", "die"), tokenizer, birds))
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
# **4. To think about.** Suppose that the new translator went from German to English. German nouns have genders of their own. Would you find heaps of gender among their rows?
#
# <details><summary>Answer</summary>
#
# No. German has the genders, but nothing in the English answer depends on them, because all articles become "the". A row learns what the answer needs, not what is true of the word. The cell below trains the translator backwards. Its nouns are sorted no better than by chance.
# </details>

# %% tags=["active-ipynb"]
# german_nouns = [sentence.split()[1] for sentence in german[:60]]  # after the article
# rows = learn(german, english)[200][[words.index(noun) for noun in german_nouns]]
# print(sorted_nouns(rows), "of 60 have a noun of their own gender nearest")

# %% [markdown]
# **Next.** Sixty nouns, each with a row of its own, and no idea who comes first. [Chapter 7](07_positions.ipynb) tells words where they are.
