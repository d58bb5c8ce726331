# ---
# jupyter:
#   jupytext:
#     formats: notebooks/19_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 19 · Visualization
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/19_visualization.ipynb)
#
# *Figures 3 to 5 of the paper. Reading takes about 20 minutes, running a minute.*
#
# Two English sentences differ in one word. In both of them the cat owns the ball, and German has to say so: "its" becomes *ihren* if the owner's noun is feminine, as the cat's is, and *seinen* if it is masculine or neuter, as a garden's and a house's are. Here is what the model that ships with this book makes of them:

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     # This book has no address yet. Upload its wheel: python -m pip wheel --no-deps .
#     from google.colab import files
#
#     wheel = next(iter(files.upload()))
#     %pip install -q {wheel}

# %% tags=["hide-input"]
import torch
from torch import Tensor

from transformer.models.recording import Change

# %% tags=["active-ipynb"]
# from transformer import attention_maps, cache, edit, load, translate, view, views
#
# torch.set_num_threads(1)  # faster for a model as small as this
# model, tokenizer = load()
# garden = "In the garden the cat lost its ball."
# house = "In the house the cat lost its ball."
# german = translate(model, tokenizer, [garden, house])
# print(*german, sep="\n")

# %% [markdown]
# The first is right. In the second the ball belongs to the house. What happens inside the model, between "its" and *seinen*? The paper ends with pictures of where words look. We begin there, and go on as a mechanic would: change one part, and see what else changes.
#
# ## Every number in the model has a name
#
# Inside a `cache` block, everything that the model computes is kept under a name. Here are four of the names:

# %% tags=["active-ipynb"]
# with cache(model) as seen:
#     translate(model, tokenizer, [garden, house])
# for point in ("queries", "scores", "weights", "heads"):
#     name = f"encoder.0.self_attention.{point}"
#     print(name, tuple(seen[name].shape))

# %% [markdown]
# The last, `heads`, is what each head puts out. Read the shape of the weights: two sentences, four heads, ten tokens that look (nine and the end mark), and ten that are looked at. In code, layers and heads count from 0.
#
# Two runs that differ in one word are called a **minimal pair**: whatever else differs between them comes from that word. So let us compare. How much of its weight does "its" give to the cat, in each head of the encoder, beside the garden and beside the house?

# %% tags=["active-ipynb"]
# CAT, ITS = 4, 6  # places in both sentences, counted from 0
# for layer in (0, 1):
#     weights = seen[f"encoder.{layer}.self_attention.weights"]  # (2, 4, 10, 10)
#     for sentence, heads in zip(("garden", "house"), weights[:, :, ITS, CAT]):
#         print(f"layer {layer}, {sentence}:", *[f"{weight:.2f}" for weight in heads])

# %% [markdown]
# One head lets go of the cat: the third of the first layer, in code head 2. (In the second layer something shifts, too, but there the vectors already differ.) Here is the whole look of this head:

# %% tags=["active-ipynb"]
# maps = attention_maps(model, tokenizer, list(zip([garden, house], german)))
# marks = [("ihren", "right: the cat's", True), ("seinen", "wrong: the house's", False)]
# views.looks(maps, "its", layer=0, head=2, german=german, marks=marks)

# %% [markdown]
# *Thicker arcs are larger weights: beside the garden "its" gives the cat half of its weight, and beside the house it gives the house nearly all.*
#
# Where the head looks at the wrong noun, the German is wrong. That is a suspicion, and not yet a proof: a thermometer rises in the heat, and heats nothing.
#
# ## Is looking using?
#
# The second tool is `edit`. You give it a function, and the model goes on with what your function returns. This one makes "its" look only at the cat. If the head is a thermometer, the German will stay as it is. What do you expect?

# %% tags=["active-ipynb"]
# def at_the_cat(weights):  # (B, h, S, S)
#     weights[:, 2, ITS] = 0.0
#     weights[:, 2, ITS, CAT] = 1.0
#     return weights
#
#
# with edit(model, {"encoder.0.self_attention.weights": at_the_cat}):
#     print(*translate(model, tokenizer, [house]))

# %% [markdown]
# The wrong sentence has become right. This is an **intervention**: we set one row of one head by hand and left all else alone, so this row is a cause of the German word. Let us call the head the **owner head**.
#
# A page that holds the model does the same with the mouse. Here it starts with a dog, who is masculine:

# %% tags=["active-ipynb"]
# dog = "The dog near the cat lost its ball."
# view(model, tokenizer, [dog, house, garden], views.Turn("its", "cat", layer=0, head=2))

# %% [markdown]
# *Above, the head is left alone and looks at the dog, and the ball is his; below, it was made to look at the cat, and the ball is hers.* (If you run this cell, you can turn the head by degrees, silence any other, and type a sentence of your own.)

# %% [markdown] tags=["question-31"]
# ## Does the higher score win?
#
# So why does "its" fall for the house, and not for the garden? In the first layer a vector holds a word and its place, and knows nothing yet of the sentence. So the score that "its" gives to a noun depends only on *which* noun it is and *where* it is. The cat's score is the same in both sentences.
#
# Suppose that the noun with the higher score decides the gender. Put *any* noun in the place of the house: where the noun is scored higher than the cat, the German will be wrong, and where the cat is scored higher, it will be right. We try all 159 masculine or neuter nouns that are a single token, so that each word keeps its place. (Some of the sentences are silly. Grammar does not mind.)

# %% tags=["active-ipynb"]
# from transformer.models.gold import one_token_nouns
#
# NOUN, BALL = 2, 7
# nouns = one_token_nouns(tokenizer, "mn")  # masculine or neuter in German
# texts = [f"In the {noun} the cat lost its ball." for noun in nouns]
# ids = torch.tensor([[*tokenizer.encode(text), tokenizer.eos_id] for text in texts])
# with torch.no_grad(), cache(model, "encoder.0.self_attention.scores") as seen:
#     model.encode(ids)
# scores = seen["encoder.0.self_attention.scores"][:, 2, ITS]  # (nouns, 10)
# for noun in ("garden", "house"):
#     row = scores[nouns.index(noun)]
#     print(f"{noun} {row[NOUN]:.1f}, cat {row[CAT]:.1f}")
#
#
# def its_right():
#     """For each noun: is the German right?"""
#     translated = translate(model, tokenizer, texts)
#     return torch.tensor(["ihren" in text for text in translated])
#
#
# lead, right = scores[:, NOUN] - scores[:, CAT], its_right()
# views.rivals(nouns, lead, right, named=("garden", "house", "hat", "orchestra"))

# %% [markdown]
# *Each mark is a noun, and its colour the German that came out: right of zero all are wrong, as predicted; left of zero the dots are right, and the crosses are wrong although the cat is scored higher.*
#
# One half of the prediction holds without exception. In the other half 20 of 79 nouns miss, all of them close to zero. There the noun may have a helper. The ball is masculine, too, and "its" looks at it a little (exercise 2).
#
# But are the scores the *cause*? Then we can decide every sentence by setting one number. We put the noun's score one below the cat's, and then one above:

# %% tags=["active-ipynb"]
# def noun_ahead_by(lead):
#     """An edit of scores: the noun's is the cat's and this lead."""
#
#     def change(scores):  # (B, h, S, S)
#         scores[:, 2, ITS, NOUN] = scores[:, 2, ITS, CAT] + lead
#         return scores
#
#     return change
#
#
# for by in (-1, 1):
#     with edit(model, {"encoder.0.self_attention.scores": noun_ahead_by(by)}):
#         print(f"{by:+}: {its_right().sum()} of {len(nouns)} right")

# %% [markdown]
# With the cat ahead by one every sentence is right, with the noun ahead by one every sentence is wrong. So the house's sentence goes wrong by one number: a house is scored 12.6 and a cat 9.1. In the training sentences houses do own things, as in *A house that lost the gate needs its door* ([evidence 19.1](evidence/19_visualization.ipynb)). That is a likely reason, untested.
#
# ## Which heads matter? Silence them one by one
#
# Is the owner head the only one that matters? Let us take each of the 24 heads away, one at a time, and read what the model writes then. The field calls this **ablation**.
#
# The German word has two halves. Its *stem* says who owns: *ihr-* or *sein-*. Its *ending* agrees with what is owned. So we let the cat lose a bag, which is feminine: *ihre* is right, and a mistake in either half shows. The model is given the German up to there, and writes one word.


# %%
def silent(head: int) -> Change:
    """An edit of "...heads": this head puts out zeros."""

    def change(heads):  # (B, h, T, d_v)
        heads[:, head] = 0.0
        return heads

    return change


# %% tags=["active-ipynb"]
# @torch.no_grad()
# def logits(english, german):
#     """The scores of all words to come next after a German beginning."""
#     source = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]])
#     target = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(german)]])
#     return model(source, target)[0, -1]
#
#
# def next_word(english, german):
#     return tokenizer.decode([logits(english, german).argmax().item()]).strip()
#
#
# bag = "In the garden the cat lost its bag."
# begun = "Im Garten verlor die Katze"
# written = {}
# for part in ("encoder.{}.self", "decoder.{}.self", "decoder.{}.cross"):
#     for layer in (0, 1):
#         name = f"{part.format(layer)}_attention.heads"
#         for head in range(4):
#             with edit(model, {name: silent(head)}):
#                 written[name, head] = next_word(bag, begun)
# views.silenced(written, next_word(bag, begun))

# %% [markdown]
# *Grey is the word that the model writes anyway: without the third head of the encoder's first layer the stem is lost (blue), without the first head of its second layer the ending (green), and no other head is missed.*
#
# So the work is divided. The first of the two is the owner head. The other we call the **noun head**, because it looks from "the" and "its" to the noun behind. In 500 other sentences it was the same ([evidence 19.3](evidence/19_visualization.ipynb)): without the owner head the model writes *sein-* nearly everywhere, with the right endings, and without the noun head the stems are right and most endings wrong. (One head of the decoder was missed there, too, but for something else: without it the verb comes too early, [19.4](evidence/19_visualization.ipynb).)
#
# ## Four words from two heads
#
# If the owner head carries the stem and the noun head the ending, then we can order any possessive that we like. To turn heads to any word, we write the edit once for all:


# %%
def turned(head: int, rows: Tensor, columns: Tensor) -> Change:
    """An edit of "...weights": in sentence b, word rows[b] of this head looks at columns[b].

    rows: (B,); columns: (B, S), weights that sum to 1.
    """

    def change(weights):  # (B, h, T, S)
        weights[torch.arange(len(rows)), head, rows] = columns
        return weights

    return change


# %% [markdown]
# Take a sentence with two possible owners, the cat and the dog, and two things, the ball and the bag. We turn the owner head to one of the owners, and the noun head to one of the things:

# %% tags=["active-ipynb"]
# sentence = "The cat that hid the bag near the dog lost its ball."
# pieces = [tokenizer.decode([i]).strip() for i in tokenizer.encode(sentence)]
# rows = torch.tensor([pieces.index("its")])
# only = torch.eye(len(pieces) + 1)  # row i: all weight on token i; + 1: the end mark
# for owner in ("cat", "dog"):
#     for thing in ("ball", "bag"):
#         at_owner, at_thing = only[[pieces.index(owner)]], only[[pieces.index(thing)]]
#         changes = {
#             "encoder.0.self_attention.weights": turned(2, rows, at_owner),
#             "encoder.1.self_attention.weights": turned(0, rows, at_thing),
#         }
#         with edit(model, changes):
#             print(f"{owner}, {thing}:", *translate(model, tokenizer, [sentence]))

# %% [markdown]
# Nothing changes but the word before *Ball*: two switches, and all four words, *ihren*, *ihre*, *seinen*, *seine*. (A ball stays masculine, so *ihre Ball* and *seine Ball* are wrong, and wrong on purpose.)
#
# A sentence picked by hand proves little. So each head was turned in 500 new sentences: the German follows the owner head in 82% of them and the noun head in 94%, and any other head of the encoder in at most 6% ([evidence 19.5](evidence/19_visualization.ipynb)).

# %% [markdown] tags=["question-32"]
# What does the vector of "its" hold, then? A **probe** is a small classifier that reads one property off a vector. Below the first layer it can only guess the owner's gender, and above it is nearly always right ([evidence 19.7](evidence/19_visualization.ipynb)). But a probe only tells you what is *there*. Whether the model *uses* it, an edit must tell.

# %% [markdown] tags=["question-17"]
# ## What does the decoder take from the encoder?
#
# Now the vector of "its" holds all that is needed. How does the German word learn of it? By **cross-attention**: at each step a query, made of what has been written, meets keys and values that are made of the encoder's vectors.

# %% tags=["active-ipynb"]
# views.crossing(maps[0], layer=1, head=3, word="ihren")

# %% [markdown]
# *Above, one head of the decoder's second layer: nearly every German word looks at the English word that it translates. Below, the four heads of that layer at the moment when they write "ihren": each of them looks at "its".*
#
# Yet when we silenced any of these four heads, nothing happened. Are they not used? Ask in another way. Run the model on the house's sentence with the owner head turned to the cat, so that it will write *ihren*, and keep what the four heads put out at this step. Then run it again as it is, on its way to *seinen*, and paste the kept numbers in. If the word changes, these numbers carried the owner. This is **activation patching**.


# %%
def paste(heads: list[int], rows: Tensor, donor: Tensor) -> Change:
    """An edit of "...heads": in row rows[b] these heads put out what they do in donor.

    rows: (B,), one for each sentence; donor: (B, h, T, d_v), what another run put out.
    """

    def change(outputs):  # (B, h, T, d_v)
        sentences = torch.arange(len(rows))
        for head in heads:
            outputs[sentences, head, rows] = donor[sentences, head, rows]
        return outputs

    return change


# %% [markdown]
# We paste each head alone, then more and more of them, and see by how much the score of *ihren* exceeds that of *seinen*. Below zero the model writes *seinen*. What do you expect of one head alone?

# %% tags=["active-ipynb"]
# IHREN, SEINEN = (tokenizer.encode(f"Katze {word}")[-1] for word in ("ihren", "seinen"))
# begun = "Im Haus verlor die Katze"
# name = "decoder.1.cross_attention.heads"
# with edit(model, {"encoder.0.self_attention.weights": at_the_cat}):
#     with cache(model, name) as seen:
#         logits(house, begun)
#
# last = torch.tensor([-1])  # the row that writes the next word
# leads = {}
# for heads in ([], [0], [1], [2], [3], [0, 1], [0, 1, 2], [0, 1, 2, 3]):
#     with edit(model, {name: paste(heads, last, seen[name])}):
#         scores = logits(house, begun)
#     leads[tuple(heads)] = (scores[IHREN] - scores[SEINEN]).item()
# views.pasted(leads, "ihren", "seinen")

# %% [markdown]
# *Each bar is a choice of heads to paste: any head alone moves the scores towards "ihren" by about the same step and leaves the word as it was, and together the steps go all the way.*
#
# No head is special. All four carry the owner, and like votes they add up. Now you see why silencing told us nothing here. **Silence one head, and the other three still say it.** In 500 sentences it was the same: one head alone changed at most three words in a hundred, and all four changed as many as turning the owner head does ([evidence 19.8](evidence/19_visualization.ipynb)).
#
# Here is a check of what was said so far:

# %% tags=["active-ipynb"]
# assert not right[lead > 0].any()  # the noun scored higher: always wrong
# missed = {place: word for place, word in written.items() if word != "ihre"}
# assert missed == {
#     ("encoder.0.self_attention.heads", 2): "seine",
#     ("encoder.1.self_attention.heads", 0): "ihren",
# }
# assert max(lead for heads, lead in leads.items() if len(heads) == 1) < 0
# assert leads[0, 1, 2, 3] > 0
# print("all as said")

# %% [markdown]
# ## The circuit of one word
#
# Parts that do one job together are called a **circuit**. Here is ours:

# %% tags=["active-ipynb"]
# views.circuit_diagram()

# %% [markdown]
# *Follow the arrows: in the encoder the owner head brings the cat's gender to "its", and the noun head the ball's; four heads of the cross-attention look at "its" when the decoder puts the word together. (Pasting showed that they carry the owner; for the ending, and for the feed-forward networks, which are not drawn, we did not test it.)*
#
# And the house? There the owner head's arrow begins at the house, because the house is scored higher than the cat. All other parts do their work as always, and write *seinen*. Nobody built these parts. In training there were pairs of sentences and a loss.
#
# ## What do the paper's pictures show?
#
# Figures 3 to 5 list the words twice and draw a line from each word to what it looks at. Here are our two heads, drawn in the same way:

# %% tags=["active-ipynb"]
# both = sentence, *translate(model, tokenizer, [sentence])
# views.as_in_the_paper(*attention_maps(model, tokenizer, [both]))

# %% [markdown]
# *Words that look are on the left, words looked at on the right, and darker lines are larger weights: our two heads lead from "its" to the owner and to the thing, and the noun head leads each article to its noun.*
#
# In the paper's Figure 4 two heads lead from *its* to *Law* and to *application*: to an owner and to what it owns, as ours do. The authors write that these heads are "apparently involved" in finding what *its* stands for. They chose the word well, because they had only looked.

# %% [markdown] tags=["question-08"]
# Of Figure 5 they say that heads "clearly learned to perform different tasks". Is each head then like a filter of a convolution, with something of its own to find? In our encoder two heads of eight are. For the other six we found no task that only one of them does ([evidence 19.11](evidence/19_visualization.ipynb)).

# %% [markdown]
# ## Where to go on
#
# What we did is a field, **mechanistic interpretability**.
#
# - *Does attention explain anything?* Jain and Wallace (2019) found that quite different weights can lead to the same output. Wiegreffe and Pinter (2019) answered that one has to test it case by case.
# - *Does it work in a large model?* Wang et al. (2023) traced how GPT-2 decides which of two names comes next. There, too, some heads stand in for others that are silenced.
# - *What would each layer write?* The **logit lens** (nostalgebraist, 2020) reads a word off every layer: `logit_lens(model, tokenizer, source, target)`.
#
# ## What to keep
#
# - Where a head looks is a suspicion; only what happens when you change the head tells you what it does.
# - A head of the first layer knows words and places and nothing else, so "its" can fall for a noun that merely scores high.
# - Silencing a part tells you whether it is missed, and not what it says: parts that say the same thing cover for one another. Pasting from one run into another shows what they carry.
#
# ## Exercises
#
# **1. By hand.** In the owner head the cat's score is 9.1, the garden's 8.7 and the house's 12.6. Suppose that all other words get no weight. How much does the cat get beside the garden, and how much beside the house?
#
# <details><summary>Answer</summary>
#
# Only differences count. Beside the garden it is $1/(1 + e^{-0.4}) = 1/1.67 = 0.60$, and beside the house $1/(1 + e^{3.5}) = 1/34 = 0.03$. In the first picture the cat has only 0.51, because the ball takes 0.14.
# </details>
#
# **2. In code.** Does the ball help the wrong nouns, the crosses in our picture of nouns? Take its weight away: write an edit after which one word no longer looks at one other word, in one head. The rest of its row must sum to 1 again.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.visualization import check_looks_away
#
#
# def looks_away(weights, head, word, other):
#     """weights (B, h, S, S) -> those where this head's word gives the other nothing."""
#     ...
#
#
# check_looks_away(looks_away)
#
#
# def without_the_ball():
#     """How many nouns come right where the cat is scored higher, before and after."""
#
#     def change(weights):
#         return looks_away(weights, 2, ITS, BALL)
#
#     with edit(model, {"encoder.0.self_attention.weights": change}):
#         now = its_right()
#     print(right[lead < 0].sum().item(), now[lead < 0].sum().item(), (lead < 0).sum())
#
#
# # When it is right, call without_the_ball().

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def looks_away(weights, head, word, other):
#     weights[:, head, word, other] = 0.0
#     row = weights[:, head, word]
#     weights[:, head, word] = row / row.sum(dim=-1, keepdim=True)
#     return weights
# ```
#
# It does. Of the 79 sentences in which the cat is scored higher, 59 were right, and without the ball 72 are. The seven that are left are all close to zero.
# </details>
#
# **3. To think about.** How would you find out what the paper's two heads for *its* decide, and what might fool you?
#
# <details><summary>Answer</summary>
#
# Find a minimal pair whose translations differ because "its" has another owner. Turn the head to the other owner, and see whether the word follows; turn other heads, and see that it does not. Silencing might fool you twice. If nothing breaks, other heads may say the same. If something breaks, read what is written instead: it may be something else that broke. And one pair is not enough.
# </details>
#
# **Next.** [Chapter 20](20_speed.ipynb) asks how fast all this can be.
