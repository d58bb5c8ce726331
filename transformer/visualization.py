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
# *Figures 3 to 5 of the paper. Reading takes about 25 minutes, running a minute.*
#
# Two English sentences differ in one word, and the model that ships with this book translates one right and the other wrong. The mistake is in the German word for "its". Its stem says who owns: *ihr-* if the owner's noun is feminine, like the cat's, and *sein-* otherwise, as for a garden or a house. Its ending agrees with what is owned: *-en* for a ball, which is masculine, and *-e* for anything feminine. So the cat's ball is *ihren Ball*. Nobody gave the house a ball. Why does the model?

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

# %% tags=["active-ipynb", "hide-input"]
# from collections import Counter
#
# from transformer import attention_maps, cache, edit, load, translate, view, views
# from transformer.corpora import read_bundled
# from transformer.models import gold, probing
#
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits
# model, tokenizer = load()

# %% tags=["active-ipynb"]
# garden = "In the garden the cat lost its ball."
# house = "In the house the cat lost its ball."
# german = translate(model, tokenizer, [garden, house])
# maps = attention_maps(model, tokenizer, list(zip([garden, house], german)))
# marks = [("ihren", "right: the cat's", True), ("seinen", "wrong: the house's", False)]
# views.looks(maps, "its", layer=0, head=2, german=german, marks=marks)

# %% [markdown]
# *Thicker arcs are larger weights of the third head in the encoder's first layer: beside the garden "its" leans towards the cat, and beside the house it looks at the house.*
#
# The head looks where the German goes wrong. That is a suspicion, and not yet a proof: a thermometer, too, shows what it does not cause. The paper ends with such pictures. We shall go on as a mechanic would, and move one part at a time.

# %% [markdown]
# ## Every number has a name
#
# Everything that the model computes on its way has a name. Inside a `with` block, `cache` keeps what you name:

# %% tags=["active-ipynb"]
# with cache(model, "encoder.0.self_attention.*") as seen:
#     translate(model, tokenizer, [house])
# for point in ("queries", "scores", "weights", "heads"):
#     print(f"{point:8}", tuple(seen[f"encoder.0.self_attention.{point}"].shape))

# %% [markdown]
# Queries meet keys and give scores, softmax makes weights of them, and each of the four heads puts out 32 numbers for each of the ten tokens, the end mark among them. In code, layers and heads count from 0, and in the text they are the first, the second and so on: head 2 of `encoder.0` is the third head of the first layer.
#
# The second tool is `edit`. It takes a function, and the model goes on with what that returns. For example, this one makes a word look wherever we want:


# %%
def turned(head: int, rows: Tensor, columns: Tensor) -> Change:
    """An edit of "...weights": row rows[b] of this head looks at columns[b].

    rows: (B,), one for each sentence; columns: (B, S), weights that sum to 1.
    """

    def change(weights):  # (B, h, T, S)
        weights[torch.arange(len(rows)), head, rows] = columns
        return weights

    return change


# %% [markdown]
# ## Is looking using?
#
# In the house, we make "its" look at the cat, and in the garden at the garden. That is one row of one of the model's 24 heads. If this head is a thermometer, the German stays as it is. What do you expect?

# %% tags=["active-ipynb"]
# def its_at(noun, sentence, head):
#     """Make "its" look at a noun of the sentence."""
#     pieces = [tokenizer.decode([i]).strip() for i in tokenizer.encode(sentence)]
#     columns = torch.zeros(1, len(pieces) + 1)  # one more: the end mark
#     columns[0, pieces.index(noun)] = 1.0
#     return turned(head, torch.tensor([pieces.index("its")]), columns)
#
#
# for noun, sentence in (("cat", house), ("garden", garden)):
#     with edit(model, {"encoder.0.self_attention.weights": its_at(noun, sentence, 2)}):
#         print(f"its at {noun}:", *translate(model, tokenizer, [sentence]))

# %% [markdown]
# The wrong sentence becomes right, and the right one wrong. This is an **intervention**: one row was set by hand and all else left alone, so that row is a cause of the German word. Let us call this head the **owner head**.

# %% tags=["active-ipynb"]
# view(model, tokenizer, [house, garden], views.Turn("its", "cat", layer=0, head=2))

# %% [markdown]
# *Above, the head is left alone and looks at the house; below, it was made to look at the cat, and one German word has changed.* (Where you see only a picture, run the cell: it opens a page with the model inside. There you can turn the head by degrees, silence any other, and type a sentence of your own.)

# %% [markdown] tags=["question-31"]
# ## The owner head has a price list
#
# So why does "its" fall for the house, and not for the garden? In the first layer a vector holds a word and its place, and knows nothing yet of the sentence. So the score of a noun can depend only on *which* noun it is and *where* it is, as if each had its price. And the cat's price is the same in both sentences.
#
# That makes a bold prediction: put *any* noun in the place of the house, and whichever scores higher, the noun or the cat, decides the German. We try all masculine and neuter nouns that are a single token, so that every word keeps its place.

# %% tags=["active-ipynb"]
# nouns = gold.one_token_nouns(tokenizer, "mn")
# texts = [f"In the {noun} the cat lost its ball." for noun in nouns]
# ids = torch.tensor([[*tokenizer.encode(text), tokenizer.eos_id] for text in texts])
# with torch.no_grad(), cache(model, "encoder.0.self_attention.scores") as seen:
#     model.encode(ids)
# scores = seen["encoder.0.self_attention.scores"][:, 2, 6]  # "its" is token 6
# lead = scores[:, 2] - scores[:, 4]  # of the noun before the cat
# right = torch.tensor(["ihren" in text for text in translate(model, tokenizer, texts)])
# views.rivals(nouns, lead, right, named=("garden", "house"))

# %% [markdown]
# *Each dot is a noun: where the cat is scored higher the German is mostly right (blue, on the left), and where the noun is scored higher it is wrong (red, on the right).*

# %% tags=["active-ipynb"]
# kept = (lead < 0) == right
# print(f"the higher score decides: {kept.sum()} of {len(nouns)} sentences")
# print(f"always seinen: {(~right).sum()} of {len(nouns)}")

# %% tags=["active-ipynb"]
# assert kept.sum() > (~right).sum() + 30
# assert lead[~kept].abs().max() < 2, "it fails only where the scores are near"

# %% [markdown]
# The prediction fails only near the middle, where the two nouns share the weight. And where does a price come from? Let us look for owners in the sentences that the model was trained on:

# %% tags=["active-ipynb"]
# owns = gold.owner_counts(read_bundled("train"))
# print({noun: owns[noun] for noun in ("house", "garden", "cat")})
# owner = torch.tensor([owns[noun] > 0 for noun in nouns])
# print(f"nouns that own: {(lead > 0)[owner].sum()} of {owner.sum()} beat the cat")
# print(f"that never do: {(lead > 0)[~owner].sum()} of {(~owner).sum()}")

# %% [markdown]
# So somebody did give the house something: six sentences are like *A house that lost the gate needs its door*. Gardens never own anything. The list is rough, for cats own twice as often as houses and still score less, only in part because of their place. What the head knows is not grammar but, roughly, who usually owns. That finds nine owners in ten in new sentences ([evidence 19.1](evidence/19_visualization.ipynb)).

# %% [markdown]
# ## Which heads matter? Silence them one by one
#
# Are there other such heads? We silence one after the other and count what breaks, which the field calls **ablation**. In 111 sentences that the model was not trained on, another noun would need the other stem. We give the German up to the word for "its", and let the model write that word. How many stems and how many endings are right?


# %%
def silent(head: int) -> Change:
    """An edit of "...heads": this head puts out zeros."""

    def change(heads):  # (B, h, T, d_v)
        heads[:, head] = 0.0
        return heads

    return change


# %% tags=["active-ipynb"]
# examples = [*read_bundled("validation"), *read_bundled("test")]
# turns = gold.owner_turns(examples, gold.read_genders())  # an "its", and another noun
# encoded = gold.encode_turns(tokenizer, turns)
# untouched = gold.next_words(model, tokenizer, encoded)
# words, shares = {}, {}  # what is written instead, and how much of it is right
# for part in ("encoder.{}.self", "decoder.{}.self", "decoder.{}.cross"):
#     for layer in (0, 1):
#         for head in range(4):
#             name = part.format(layer) + "_attention.heads"
#             with edit(model, {name: silent(head)}):
#                 words[name, head] = gold.next_words(model, tokenizer, encoded)
#             shares[name, head] = gold.parts_right(words[name, head], turns)
# views.silenced(shares, gold.parts_right(untouched, turns))

# %% [markdown]
# *Three bars stand out. Without the owner head a third of the stems are lost and no endings, without the first head of the encoder's second layer most endings and no stems, and without the first head of the decoder's second layer some of both.*

# %% tags=["active-ipynb"]
# owner_head = shares["encoder.0.self_attention.heads", 2]
# noun_head = shares["encoder.1.self_attention.heads", 0]
# assert owner_head["stem"] < 0.7 and owner_head["ending"] > 0.95
# assert noun_head["ending"] < 0.5 and noun_head["stem"] > 0.9

# %% [markdown]
# Silence any of the other 21, and hardly a word suffers. Two heads of the encoder share the work: the owner head carries the stem, and another the ending. We call that one the **noun head**, because it looks from "the" and "its" to the noun behind. And the third bar, in the decoder: does it help with both?

# %% [markdown]
# ## The third bar is something else
#
# A bar says that something broke, and not what. So let us read what the model writes when that head is silent:

# %% tags=["active-ipynb"]
# broken = words["decoder.1.self_attention.heads", 0]
# for german, before, after in gold.changed(turns, untouched, broken)[:4]:
#     print(f"... {german} | {after}, instead of {before}")

# %% [markdown]
# Not one of them is a wrong possessive. In nearly all the model writes a verb, or the first piece of one (*ges-ucht*), and mostly the very verb with which the clause ends. German puts the verb last in a subordinate clause, and here it comes too early. Of 23 changed words 19 are due later in the sentence ([evidence 19.4](evidence/19_visualization.ipynb)). This head helps with neither stem nor ending. It keeps the words in order.
#
# ## Four words from two heads
#
# If one head carries the stem and the other the ending, we can order any possessive that we like. Take a sentence with two possible owners, the cat and the dog (masculine), and two things, the ball and the bag (feminine). We turn the owner head to an owner, and the noun head to a thing:

# %% tags=["active-ipynb"]
# sentence = "The cat that hid the bag near the dog lost its ball."
# for owner in ("cat", "dog"):
#     for thing in ("ball", "bag"):
#         changes = {
#             "encoder.0.self_attention.weights": its_at(owner, sentence, 2),
#             "encoder.1.self_attention.weights": its_at(thing, sentence, 0),
#         }
#         with edit(model, changes):
#             print(f"{owner}, {thing}:", *translate(model, tokenizer, [sentence]))

# %% [markdown]
# Two switches, four words: *ihren*, *ihre*, *seinen*, *seine*. (A ball is masculine whatever we do to a head, so *ihre* and *seine* are wrong on purpose.) A sentence picked by hand proves little. In 500 new sentences for each, the stem follows the owner head in 82% and the ending the noun head in 94%, and hardly any word follows another head of the encoder ([evidence 19.5](evidence/19_visualization.ipynb)).

# %% [markdown] tags=["question-32"]
# ## What does one vector hold?
#
# If this is right, the vector of "its" learns in the first layer whose it is, and in the second what is owned. A **probe**, a small classifier trained on labelled vectors, tries to read that off in sentences that it has not seen ([evidence 19.7](evidence/19_visualization.ipynb)):

# %% tags=["active-ipynb"]
# read = probing.read_off(model, tokenizer, read_bundled("train"), examples)
# views.probes(read, ["embedding", "after 1st layer", "after 2nd layer"])

# %% [markdown]
# *Each number is the share that the probe reads right, beside always giving the commonest answer. In the rows of "its" the owner appears in the first layer, and what is owned is complete in the second: each in the layer of its head.*
#
# A probe says what is *there*, and not what is *used*. In the second row "the" mostly knows its noun's gender after the first layer, and yet German articles need the noun head, which comes later ([evidence 19.3](evidence/19_visualization.ipynb)).

# %% [markdown] tags=["question-17"]
# ## What does the decoder take from the encoder?
#
# Now "its" knows everything. How does the German word learn of it? By **cross-attention**: at each step a query from what has been written meets keys and values from the encoder's vectors.

# %% tags=["active-ipynb"]
# views.crossing(maps[0], layer=1, head=3, word="ihren")

# %% [markdown]
# *Above, one head of the decoder's second layer: nearly every German word looks at the English word that it translates. Below, all four heads of that layer when they write "ihren": each of them looks at "its".*
#
# Yet in our bars none of the four mattered. Are they not used? Let us silence all four, and this time read before we count:

# %% tags=["active-ipynb"]
# with edit(model, {"decoder.1.cross_attention.heads": torch.zeros_like}):
#     blind = gold.next_words(model, tokenizer, encoded)
# print(Counter(blind).most_common(4))

# %% [markdown]
# *Auf*, full stops, commas: it is the trap of the third bar once more. The model has lost not only whose ball it is but the sentence, and no longer knows which word is due. We need a question that leaves all else alone.
#
# Run the model as it is, and again with the owner head turned, so that it wants the other stem. Take what the four heads put out in the second run, at this one step, and paste it into the first. That is **activation patching**. If the word changes, the pasted numbers carried the owner.


# %%
def paste(heads: list[int], rows: Tensor | int, donor: Tensor) -> Change:
    """An edit of "...heads": in row rows[b] these heads put out what they do in donor.

    rows: (B,), one for each sentence, or a number for a single one; donor: (B, h, T, d_v), of another run.
    """

    rows = torch.as_tensor(rows).reshape(-1)

    def change(outputs):  # (B, h, T, d_v)
        sentences = torch.arange(len(rows))
        for head in heads:
            outputs[sentences, head, rows] = donor[sentences, head, rows]
        return outputs

    return change


# %% [markdown]
# What do you expect from one head, and what from four?

# %% tags=["active-ipynb"]
# name = "decoder.1.cross_attention.heads"
# turn = turned(2, encoded.rows, encoded.columns)  # "its" looks at the other noun
# with (
#     edit(model, {"encoder.0.self_attention.weights": turn}),
#     cache(model, name) as seen,
# ):
#     wanted = gold.next_words(model, tokenizer, encoded)
# for heads in ([0], [0, 1], [0, 1, 2], [0, 1, 2, 3]):
#     with edit(model, {name: paste(heads, encoded.steps, seen[name])}):
#         pasted = gold.next_words(model, tokenizer, encoded)
#     follow, turning = gold.following(untouched, wanted, pasted)
#     print(f"{len(heads)} of 4 heads pasted: {follow} of {turning} words follow")

# %% tags=["active-ipynb"]
# assert follow == turning > 80 and pasted == wanted

# %% [markdown]
# With all four pasted, every word follows. With one, hardly any: all four bring the same message, and like votes they add up. That is why the bars were blind. **Silence one head, and the other three still say it.** The ending takes the same way ([evidence 19.8](evidence/19_visualization.ipynb)).
#
# ## The circuit of one word
#
# Parts that together do one job, and the ways between them, are called a **circuit**. Here is ours:

# %% tags=["active-ipynb"]
# views.circuit_diagram()

# %% [markdown]
# *Follow the arrows: in the encoder the owner head brings the cat's gender to "its", and the noun head the ball's; four heads of the cross-attention carry both to the decoder, where the word is put together.*
#
# Nothing in the training said that there should be such parts. There were pairs of sentences, and a loss.

# %% [markdown]
# ## What do the paper's pictures show?
#
# They are of three kinds, all from the fifth of six encoder layers. In Figure 3 heads reach from *making* far ahead to *more difficult*. In Figure 4 two heads look from *its* to *Law* and *application*, as our owner head does. In Figure 5 two heads seem to follow the structure of the sentence, as our noun head does. The authors write that the heads of Figure 4 are "apparently involved" in finding what *its* refers to. They chose the word well, because they had only looked.

# %% [markdown] tags=["question-08"]
# The heads of Figure 5 "clearly learned to perform different tasks", as one would expect of the filters of a convolution. In our encoder two of eight heads have a task that no other does, and for the rest we found none ([evidence 19.11](evidence/19_visualization.ipynb)).

# %% [markdown]
# ## Where to go on
#
# What we did is a field, **mechanistic interpretability**. Voita et al. (2019) cut 38 of 48 encoder heads from a translator for 0.15 BLEU, those with a clear task last, and Michel et al. (2019) removed 20 to 40% of heads without much loss. Wang et al. (2023) traced how GPT-2 finds a name through 26 heads, some of which stand in for others that are silenced. The **logit lens** (nostalgebraist, 2020) reads a decoder layer by layer: `logit_lens(model, tokenizer, source, target)`.

# %% [markdown]
# ## What to keep
#
# - Where a head looks is a suspicion; only what happens when you change the head tells you what it does.
# - A head of the first layer knows words and places and nothing else, so its grammar is a price list of words.
# - Silencing accuses parts that break the word for another reason and acquits parts that do the same work side by side; pasting from one run into another asks the sharper question.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** In the owner head the cat's score is 9.1, the garden's 8.7 and the house's 12.6. Suppose that all other words get no weight. How much does the cat get beside the garden, and how much beside the house?
#
# <details><summary>Answer</summary>
#
# Only differences count. Beside the garden it is $1/(1 + e^{-0.4}) = 1/1.67 = 0.60$, and beside the house $1/(1 + e^{3.5}) = 1/34 = 0.03$. The first picture has the same ratios.
# </details>
#
# **2. In code.** A silent head puts out zeros, which the layers above never met in training. More gently, let the head look evenly at all words of its sentence, padding left out. Write that edit of its weights.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.visualization import check_even_head
#
#
# def even_head(weights, head, mask):
#     """weights (B, h, S, S), mask (B, S): True for words -> changed weights."""
#     ...
#
#
# check_even_head(even_head)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def even_head(weights, head, mask):
#     even = mask / mask.sum(dim=1, keepdim=True)  # (B, S)
#     weights[:, head] = even[:, None]
#     return weights
# ```
#
# Try it on the garden's sentence, which has ten tokens and no padding: `lambda weights: even_head(weights, 2, torch.ones(1, 10))` is an edit of `encoder.0.self_attention.weights`.
# </details>
#
# **3. To think about.** When the possessive is due, one head of the decoder mostly looks at the *German* owner. Silence it, and no stem is lost, which acquits nobody, as you know by now. This cell asks otherwise: it begins the German with another owner than the English has. What would each outcome prove?

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def next_word(english, german):
#     """The word with which the model continues a German beginning."""
#     source = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]])
#     target = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(german)]])
#     return tokenizer.decode([model(source, target)[0, -1].argmax().item()]).strip()
#
#
# for english in ("The cat lost its ball.", "The dog lost its ball."):
#     for german in ("Die Katze verlor", "Der Hund verlor"):
#         print(english, german, "...", next_word(english, german))

# %% [markdown]
# <details><summary>Answer</summary>
#
# The stem follows the English owner, not the German one. Another beginning changes the input of every head that reads it, so in these sentences none of them decides the stem, not even together. The head may still have another job, or help where the English is in doubt. To find out, paste what it puts out from one run into another, in many sentences.
# </details>
#
# **Next.** [Chapter 20](20_speed.ipynb) asks how fast all this can be.
