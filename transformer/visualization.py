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
# Two English sentences differ in one word. In both of them the cat owns the ball, and German has to say so: "its" becomes *ihren* if the owner's noun is feminine, as the cat's is, and *seinen* if it is masculine or neuter, as those of a garden and a house are. The model that ships with this book translates one of the sentences right. In the other it gives the ball to the house. Why?

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
# torch.set_num_threads(1)  # faster for a model as small as this
# model, tokenizer = load()

# %% [markdown]
# The encoder and the decoder have two layers each, and every attention has four heads: 24 in all. Here is where "its" looks in one of them, the third head of the encoder's first layer. How we found this head comes below.

# %% tags=["active-ipynb"]
# garden = "In the garden the cat lost its ball."
# house = "In the house the cat lost its ball."
# german = translate(model, tokenizer, [garden, house])
# maps = attention_maps(model, tokenizer, list(zip([garden, house], german)))
# marks = [("ihren", "right: the cat's", True), ("seinen", "wrong: the house's", False)]
# views.looks(maps, "its", layer=0, head=2, german=german, marks=marks)

# %% [markdown]
# *Thicker arcs are larger weights: beside the garden "its" gives the cat half of its weight, and beside the house it gives the house nearly all.*
#
# Where the head looks at the wrong noun, the German is wrong. That is a suspicion, and not yet a proof: a thermometer rises in the heat, and heats nothing. The paper ends with pictures like this one. We shall go on as a mechanic would: change one part, and see what else changes.

# %% [markdown]
# ## Is looking using?
#
# Suppose that "its" looked only at the cat. What this head puts out for "its" would then be the cat's value vector, and nothing else. So we can write that vector there by hand.
#
# PyTorch lets us in. It calls a function of ours, a **hook**, whenever a module is about to compute something or has just done so. `W_V` puts out the values of all four heads side by side, 32 numbers each, and `W_O` takes in what the four heads put out, side by side as well. The third head's are the numbers 64 to 95.
#
# If the head is a thermometer, the German will stay as it is. What do you expect?

# %% tags=["active-ipynb"]
# attention = model.encoder.layers[0].self_attention
# third = slice(64, 96)
# CAT, ITS = 4, 6  # places in "In the house the cat lost its ball."
# kept = {}
#
#
# def keep(module, inputs, output):
#     kept["values"] = output
#
#
# def change(module, inputs):
#     heads = inputs[0].clone()  # (1, 10, 128)
#     heads[0, ITS, third] = kept["values"][0, CAT, third]
#     return (heads,)  # W_O goes on with this
#
#
# hooks = [
#     attention.W_V.register_forward_hook(keep),
#     attention.W_O.register_forward_pre_hook(change),
# ]
# print(*translate(model, tokenizer, [house]))
# for hook in hooks:
#     hook.remove()

# %% [markdown]
# *In the house the cat lost her ball*: the wrong sentence has become right. This is an **intervention**. We set 32 numbers by hand and left all else alone, so these numbers are a cause of the German word. Let us call this head the **owner head**.
#
# You can do the same to any PyTorch model of your own: find the module, keep what it puts out in one place, and write over it in another.

# %% [markdown]
# ## Every number has a name
#
# With hooks one has to know where each head begins, and must not forget to remove them. So the package has two tools that put hooks in place at the beginning of a `with` block and remove them at its end. They call each number by its name. The first is `cache`. It keeps what you name:

# %% tags=["active-ipynb"]
# with cache(model, "encoder.0.self_attention.*") as seen:
#     translate(model, tokenizer, [house])
# for point in ("queries", "scores", "weights", "heads"):
#     print(f"{point:8}", tuple(seen[f"encoder.0.self_attention.{point}"].shape))

# %% [markdown]
# Queries meet keys and give scores, softmax makes weights of the scores, and the weights mix values into what the heads put out. The shapes say: one sentence, four heads, ten tokens with the end mark, and 32 numbers or ten weights for each token. In code, layers and heads count from 0: head 2 of `encoder.0` is the third head of the first layer.
#
# The second tool is `edit`. You give it a function, and the model goes on with what your function returns. This function makes a word look wherever we want:


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
# Now the other way round: can we spoil the sentence that was right? We make "its" look at the garden.

# %% tags=["active-ipynb"]
# def its_at(noun, sentence, head):
#     """Make "its" look at a noun of the sentence."""
#     pieces = [tokenizer.decode([i]).strip() for i in tokenizer.encode(sentence)]
#     columns = torch.zeros(1, len(pieces) + 1)  # one more: the end mark
#     columns[0, pieces.index(noun)] = 1.0
#     return turned(head, torch.tensor([pieces.index("its")]), columns)
#
#
# with edit(model, {"encoder.0.self_attention.weights": its_at("garden", garden, 2)}):
#     print(*translate(model, tokenizer, [garden]))

# %% [markdown]
# *In the garden the cat lost its ball*, the garden's ball. One row of one head makes the sentence right or wrong. It works for a dog as well:

# %% tags=["active-ipynb"]
# dog = "The dog near the cat lost its ball."
# view(model, tokenizer, [dog, house, garden], views.Turn("its", "cat", layer=0, head=2))

# %% [markdown]
# *Above, the head is left alone and looks at the dog, and the ball is his; below, it was made to look at the cat, and the ball is hers.* (If you run this cell, it opens a page with the model inside. There you can turn the head by degrees, silence any other head, and type a sentence of your own.)

# %% [markdown] tags=["question-31"]
# ## Does the higher score win?
#
# So why does "its" fall for the house, and not for the garden? In the first layer a vector holds a word and its place, and knows nothing yet of the sentence. So the score that "its" gives to a noun depends only on *which* noun it is and *where* it is. The cat's score is the same in both sentences, and what differs is the score of the noun before it.
#
# That makes a bold prediction: put *any* noun in the place of the house. If the noun is scored higher than the cat, the German will be wrong, and if the cat is scored higher, it will be right. We try all masculine and neuter nouns that are a single token, so that every word keeps its place.

# %% tags=["active-ipynb"]
# NOUN, BALL = 2, 7
# nouns = gold.one_token_nouns(tokenizer, "mn")  # gold knows the grammar of our corpus
# texts = [f"In the {noun} the cat lost its ball." for noun in nouns]
# ids = torch.tensor([[*tokenizer.encode(text), tokenizer.eos_id] for text in texts])
# with torch.no_grad(), cache(model, "encoder.0.self_attention.scores") as seen:
#     model.encode(ids)
# scores = seen["encoder.0.self_attention.scores"][:, 2, ITS]  # (159, 10)
# lead = scores[:, NOUN] - scores[:, CAT]
# right = torch.tensor(["ihren" in text for text in translate(model, tokenizer, texts)])
#
# others = scores[0].exp().sum() - scores[0, [NOUN, CAT]].exp().sum()
# half = torch.log(1 - others / scores[0, CAT].exp())  # the lead that leaves the cat half
# named = ("garden", "house", "hat", "orchestra")
# views.rivals(nouns, lead, right, named, border=half.item())

# %% [markdown]
# *Each mark is a noun, and its colour the German that came out: right of zero all are wrong, as predicted; left of zero the dots are right, and the crosses are wrong although the cat is scored higher.*

# %% tags=["active-ipynb"]
# def report(what, right):
#     """How many sentences are right, those sorted by who is scored higher untouched."""
#     cat, noun = right[lead < 0], right[lead > 0]
#     print(f"{what:13} cat higher: {cat.sum()} of {len(cat)} right,", end=" ")
#     print(f"noun higher: {noun.sum()} of {len(noun)}")
#
#
# report("untouched", right)

# %% tags=["active-ipynb"]
# assert not right[lead > 0].any() and right[lead < half - 0.2].all()

# %% [markdown]
# One half of the prediction holds without exception. In the other half there are 20 misses, all close to zero and all on one side. So the higher score alone does not decide. What else does? The first picture has a hint. Beside the garden "its" gave some weight to the *ball*, too, and a ball is masculine. Noun and ball together can outvote the cat. The dashed line is where the cat has exactly half of the weight, and there the colours change for all but seven nouns.
#
# If that is so, then without the ball the change should move to zero. And if scores are really the cause, we can decide every sentence by setting them. Each of these tests is one edit:

# %% tags=["active-ipynb"]
# def without_ball(scores):
#     scores[:, 2, ITS, BALL] = -1e9  # no weight
#     return scores
#
#
# def noun_behind(scores):
#     scores[:, 2, ITS, NOUN] = scores[:, 2, ITS, CAT] - 1
#     return scores
#
#
# def noun_ahead(scores):
#     scores[:, 2, ITS, NOUN] = scores[:, 2, ITS, CAT] + 1
#     return scores
#
#
# for change in (without_ball, noun_behind, noun_ahead):
#     with edit(model, {"encoder.0.self_attention.scores": change}):
#         texts_now = translate(model, tokenizer, texts)
#     report(change.__name__, torch.tensor(["ihren" in text for text in texts_now]))

# %% [markdown]
# Without the ball, 72 of the 79 sentences are right instead of 59, and the seven that are left lie within 0.3 of zero. With every noun scored one below the cat all sentences are right, and with every noun one above the cat none is. So the house's sentence goes wrong by one number: the owner head scores a house 12.6 and a cat 9.1.
#
# Why does it score a house so high? The training sentences offer a guess. In some of them a house does own something, as in *A house that lost the gate needs its door*. We count:

# %% tags=["active-ipynb"]
# owns = gold.owner_counts(read_bundled("train"))
# print({noun: owns[noun] for noun in ("house", "garden", "cat")})
# owner = torch.tensor([owns[noun] > 0 for noun in nouns])
# print(
#     f"nouns that own: {(lead > 0)[owner].sum()} of {owner.sum()} scored above the cat"
# )
# print(f"other nouns: {(lead > 0)[~owner].sum()} of {(~owner).sum()}")

# %% [markdown]
# Nouns that own something are mostly scored high. But this is only looking, and the count does not explain everything: a cat owns more often than a house, and is scored lower. The test would be to train again without those sentences. We have not done that, so it stays a guess.

# %% [markdown]
# ## Which heads matter? Silence them one by one
#
# Is the owner head the only one that matters? We silence each of the 24 heads and count what breaks, which the field calls **ablation**. Now the second half of the German word counts, too. Its *stem* says who owns, *ihr-* or *sein-*. Its *ending* agrees with what is owned: *-en* here for a ball, which is masculine, and *-e* for a bag, which is feminine.
#
# We take all sentences that the model was not trained on in which another noun would need the other stem, so that a wrong choice would show. There are 111, and this is the first:

# %% tags=["active-ipynb"]
# examples = [*read_bundled("validation"), *read_bundled("test")]
# turns = gold.owner_turns(examples, gold.read_genders())
# print(turns[0].example.source, turns[0].example.target, sep="\n")

# %% [markdown]
# The library is feminine and loses *ihr Dach*. Had the girl lost it, who is neuter in German, it would be *sein Dach*. We give the model the German up to the word for "its", let it write that word, and compare stem and ending with the right ones.


# %%
def silent(head: int) -> Change:
    """An edit of "...heads": this head puts out zeros."""

    def change(heads):  # (B, h, T, d_v)
        heads[:, head] = 0.0
        return heads

    return change


# %% tags=["active-ipynb"]
# # as tensors: .rows[i] is the place of "its", .columns[i] the other noun's, and
# # .steps[i] the step at which the possessive is written
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
# always = {"always seinen": gold.parts_right(["seinen"] * len(turns), turns)}
# views.silenced(shares, gold.parts_right(untouched, turns), always)

# %% [markdown]
# *Each bar is what is lost with one head silent, and the dashed lines are what is lost by writing "seinen" in every sentence: the owner head's bar reaches the line for stems, the first head of the encoder's second layer reaches the line for endings, and one head of the decoder costs some of both.*

# %% tags=["active-ipynb"]
# owner_head = shares["encoder.0.self_attention.heads", 2]
# noun_head = shares["encoder.1.self_attention.heads", 0]
# floor = always["always seinen"]
# assert owner_head["stem"] < floor["stem"] + 0.05 and owner_head["ending"] > 0.95
# assert noun_head["ending"] < floor["ending"] + 0.05 and noun_head["stem"] > 0.9

# %% [markdown]
# The encoder divides the work. Without the owner head the model knows no more about the stem than somebody who always writes *seinen*, and its endings are as good as before. Without the first head of the second layer it is the other way round. We call that one the **noun head**, because it looks from "the" and "its" to the noun behind. Of the other heads only one has a high bar, in the decoder. Does that head help with both halves of the word?

# %% [markdown]
# ## The third bar is something else
#
# A bar says that something broke, and not what. So let us read what the model writes when that head is silent:

# %% tags=["active-ipynb"]
# broken = words["decoder.1.self_attention.heads", 0]
# different = [i for i in range(len(turns)) if broken[i] != untouched[i]]
# for i in different[:2]:
#     print(turns[i].example.source, turns[i].example.target, sep="\n")
#     print(f"    {broken[i]} instead of {untouched[i]}")

# %% [markdown]
# Neither of the two new words is a possessive. *Versteckte* means "hid", and *ges-* begins *gesucht*, "looked for". In German both belong to the end of their clause, and here the model writes them too early. Of 23 changed words 21 are a verb or its first piece ([evidence 19.4](evidence/19_visualization.ipynb)). So this bar says nothing about stems and endings: without the head, the whole possessive comes too late, and whatever the head might do for its halves stays hidden. Had we only counted, we would have been fooled.

# %% [markdown]
# ## Four words from two heads
#
# If the owner head carries the stem and the noun head the ending, then we can order any possessive that we like. Take a sentence with two possible owners, the cat and the dog (masculine), and two things, the ball and the bag. We turn the owner head to one of the owners, and the noun head to one of the things:

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
# The German says the same as the English each time, but for the one word before *Ball*: two switches, and all four words, *ihren*, *ihre*, *seinen*, *seine*. (A ball is masculine whatever we do to a head, so *ihre Ball* and *seine Ball* are wrong, and wrong on purpose.)
#
# A sentence picked by hand proves little. So both heads were turned in 500 new sentences each ([evidence 19.5](evidence/19_visualization.ipynb)). The word becomes the one that the other owner would need in 82% of them, and the one that another thing would need in 94%. Turning any other head of the encoder does either in at most 6%. And the sentences whose stem does not follow? In nearly all of them the head was turned to a feminine noun that owns nothing in training. What such a noun hands over in this head does not say *ihr-*, and without a clear sign the model writes *sein-* (19.6).

# %% [markdown] tags=["question-32"]
# ## What does one vector hold?
#
# If this is right, the vector of "its" learns in the first layer whose it is, and in the second what is owned. To see that, we train a **probe**, a small classifier that reads one property off a vector. Ours takes up to 1,500 training sentences with "its" and averages the vectors of each answer. Then it gives a new vector the answer whose average is nearest ([evidence 19.7](evidence/19_visualization.ipynb) has the details).

# %% tags=["active-ipynb"]
# read = probing.read_off(model, tokenizer, read_bundled("train"), examples)
# shown = (
#     "a noun: its gender",
#     "“its”: gender of the owner",
#     "“its”: gender of what is owned",
# )
# columns = ["embedding", "after 1st layer", "after 2nd layer"]
# views.probes({name: read[name] for name in shown}, columns)

# %% [markdown]
# *Each number is the share of new vectors that the probe reads right, beside always giving the commonest answer ("best guess"): nouns hold their gender from the start, "its" learns the owner's in the first layer, and the gender of what is owned is complete only after the second.*
#
# The last row holds a warning. After the first layer the probe reads more than a guess, so something in that layer has brought a part of the gender early. Yet without the noun head, which works in the second layer, the endings were no better than always writing *-en*. What the first layer had brought was there, and it did not help. A probe says what is *there*, and not what is *used*.

# %% [markdown] tags=["question-17"]
# ## What does the decoder take from the encoder?
#
# Now the vector of "its" holds all that is needed. How does the German word learn of it? By **cross-attention**: at each step a query, made of what has been written, meets keys and values that are made of the encoder's vectors.

# %% tags=["active-ipynb"]
# views.crossing(maps[0], layer=1, head=3, word="ihren")

# %% [markdown]
# *Above, one head of the decoder's second layer: nearly every German word looks at the English word that it translates. Below, the four heads of that layer at the moment when they write "ihren": each of them looks at "its".*
#
# Yet in our bars none of these four heads mattered. Are they not used? Let us silence all four, and this time read before we count:

# %% tags=["active-ipynb"]
# with edit(model, {"decoder.1.cross_attention.heads": torch.zeros_like}):
#     blind = gold.next_words(model, tokenizer, encoded)
# print(Counter(blind).most_common(4))

# %% [markdown]
# *Auf* ("on"), full stops, commas, *sich* ("oneself"): it is the trap of the third bar once more. The model has lost the whole sentence, and no longer knows which word is due. We need a question that leaves all else alone.
#
# Here is one. Run the model once as it is. Run it again with the owner head turned to the other noun, so that the German changes its stem. Take what the four heads put out in the second run, at this one step, and paste it into the first run. If the word changes, the pasted numbers carried the owner. That is **activation patching**.


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
# Turning the owner head changes the word in 85 of the 111 sentences. In how many of the 85 does the pasted word change in the same way? We paste each head alone, then all heads but one, then all four. The first layer of the decoder has a cross-attention as well, so we ask its four heads, too. What do you expect?

# %% tags=["active-ipynb"]
# turn = turned(2, encoded.rows, encoded.columns)  # "its" looks at the other noun
# with edit(model, {"encoder.0.self_attention.weights": turn}):
#     with cache(model, "decoder.*.cross_attention.heads") as seen:
#         wanted = gold.next_words(model, tokenizer, encoded)
# changing = [i for i in range(len(turns)) if wanted[i] != untouched[i]]
#
#
# def follow(heads, layer=1):
#     """How many words change as wanted if these heads are pasted."""
#     name = f"decoder.{layer}.cross_attention.heads"
#     with edit(model, {name: paste(heads, encoded.steps, seen[name])}):
#         pasted = gold.next_words(model, tokenizer, encoded)
#     return sum(pasted[i] == wanted[i] for i in changing)
#
#
# four = [0, 1, 2, 3]
# alone = [follow([head]) for head in four]
# but_one = [follow([other for other in four if other != head]) for head in four]
# print("each head alone:", alone)
# print("all but each:", but_one)
# print("all four:", follow(four), "of", len(changing))
# print("all four of the first layer:", follow(four, layer=0))

# %% tags=["active-ipynb"]
# assert len(changing) == 85 and max(alone) < 5 and min(but_one) > 60

# %% [markdown]
# Any head alone turns hardly a word, any three turn about four in five, and all four turn every word. No head is special. All of them carry the owner, and like votes they add up. The first layer's heads carry nothing of it.
#
# Now you see why the bars were blind. **Silence one head, and the other three still say it.** The ending takes the same way ([evidence 19.8](evidence/19_visualization.ipynb)).

# %% [markdown]
# ## The circuit of one word
#
# Parts that together do one job, and the ways between them, are called a **circuit**. Here is ours:

# %% tags=["active-ipynb"]
# views.circuit_diagram()

# %% [markdown]
# *Follow the arrows: in the encoder the owner head brings the cat's gender to "its", and the noun head the ball's; four heads of the cross-attention carry both to the decoder, where the word is put together.*
#
# And the house? There the owner head's arrow begins at the house, because the house is scored higher than the cat. All other parts do their work as always, and write *seinen*. Nobody built these parts. In training there were pairs of sentences and a loss.

# %% [markdown]
# ## What do the paper's pictures show?
#
# The paper's Figures 3 to 5 come from the fifth of six encoder layers. They list the words twice and draw a line from each word that looks to what it looks at. We draw some of our heads in the same way. The German of the first panel is *The big wolf in the castle opened the old window*, where "opened" is two words, *machte* and, at the very end, *auf*.

# %% tags=["active-ipynb"]
# pair = ["The big wolf in the castle opened the old window.", sentence]
# verb, its = attention_maps(
#     model, tokenizer, list(zip(pair, translate(model, tokenizer, pair)))
# )
# views.as_in_the_paper(verb, its)

# %% [markdown]
# *Words that look are on the left, words looked at on the right, and darker lines are larger weights: two of four heads of the decoder's second layer lead from "auf" to its other half "machte", our two heads lead from "its" to owner and thing, and the noun head leads each article to its noun.*
#
# In the paper's Figure 3 several heads lead from *making* to *more difficult*, several words further on, which belongs to it. In Figure 4 two heads lead from *its* to *Law* and to *application*, so to an owner and to what it owns, as ours do. The authors write that these heads are "apparently involved" in finding what *its* stands for. They chose the word well, because they had only looked. Figure 5 shows two heads for all words of a sentence, which seem to follow its structure, as our noun head does.

# %% [markdown] tags=["question-08"]
# Of Figure 5 the authors also say that the heads "clearly learned to perform different tasks". One often hears that heads are like the filters of a convolution, of which each learns something of its own. In our encoder that holds for two heads of eight. For the other six we found no task that only one of them does ([evidence 19.11](evidence/19_visualization.ipynb)).

# %% [markdown]
# ## Where to go on
#
# What we did is a field, **mechanistic interpretability**.
#
# - *Does attention explain anything?* Jain and Wallace (2019) found that quite different weights can lead to the same output, and concluded that attention is not an explanation. Wiegreffe and Pinter (2019) answered that this depends on what you want explained, and that one has to test it. In our model the owner head's weights decide a word. The cross-attention's weights looked just as telling, and silencing any one of its heads changed nothing.
# - *Can one do without heads?* Voita et al. (2019) removed 38 of a translator's 48 encoder heads, and its BLEU hardly fell. The heads whose task they knew were the last to go. Michel et al. (2019) found that some layers do as well with a single head.
# - *Does it work in a large model?* Wang et al. (2023) traced how GPT-2 decides which of two names comes next, through 26 heads. There, too, some heads stand in for others that are silenced.
# - *What does each layer think so far?* The **logit lens** (nostalgebraist, 2020) reads a word off every layer of a decoder. Here it is `logit_lens(model, tokenizer, source, target)`.

# %% [markdown]
# ## What to keep
#
# - Where a head looks is a suspicion; only what happens when you change the head tells you what it does.
# - A head of the first layer knows words and places and nothing else, so "its" can fall for a noun that merely scores high.
# - Silencing accuses parts without which some other word comes first, and it acquits parts that say the same thing side by side; pasting from one run into another asks the sharper question.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** In the owner head the cat's score is 9.1, the garden's 8.7 and the house's 12.6. Suppose that all other words get no weight. How much does the cat get beside the garden, and how much beside the house?
#
# <details><summary>Answer</summary>
#
# Only differences count. Beside the garden it is $1/(1 + e^{-0.4}) = 1/1.67 = 0.60$, and beside the house $1/(1 + e^{3.5}) = 1/34 = 0.03$. In the first picture the cat has only 0.51 beside the garden, because the ball takes 0.14.
# </details>
#
# **2. In code.** A silent head puts out zeros, which the layers above never met in training. Perhaps it was the zeros that broke the German, and not the missing look. A gentler way: let the head look evenly at all words of its sentence, padding left out. Write that edit of its weights, and see whether the two heads of the encoder are still guilty.

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
#
#
# def with_even(layer, head):
#     """What is still right with this head even, and with it silent."""
#     mask = encoded.batch.source != tokenizer.pad_id
#     name = f"encoder.{layer}.self_attention."
#     with edit(
#         model, {f"{name}weights": lambda weights: even_head(weights, head, mask)}
#     ):
#         now = gold.next_words(model, tokenizer, encoded)
#     print(
#         "even:", gold.parts_right(now, turns), "silent:", shares[f"{name}heads", head]
#     )
#
#
# # When it is right, try with_even(0, 2), the owner head, and with_even(1, 0).

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
# They are guilty. An even owner head loses as many stems as a silent one: 61% are right either way. An even noun head is a little better than a silent one, with 47% of the endings right instead of 39%, and 98% with the head as it is. So most of the damage does not come from the zeros. What is missed is the look at the right word.
# </details>
#
# **3. To think about.** When the possessive is due, one head of the decoder, the fourth of its second layer, mostly looks at the *German* owner. Silence it, and no stem is lost, which acquits nobody, as you know by now. This cell asks otherwise: it begins the German with another owner than the English has. What would each outcome prove?

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
# (*Die Katze verlor*: the cat lost; *Der Hund verlor*: the dog lost.) The stem follows the English owner, not the German one. Another beginning changes the input of every head that reads it, so in these sentences none of them decides the stem, not even together. The head may still have another job, or help where the English is in doubt. To find out, paste what it puts out from one run into another, in many sentences.
# </details>
#
# **Next.** [Chapter 20](20_speed.ipynb) asks how fast all this can be.
