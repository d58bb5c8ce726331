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
# Two English sentences differ in one word. In both the cat owns the ball, so German has to say *ihren Ball*; a garden, a house or a dog, masculine or neuter, would have *seinen Ball*. Here is what the small translator of chapter 0 writes:

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
# import torch
#
# from transformer import attention_maps, cache, edit, load, translate, view, views
#
# torch.set_num_threads(1)  # faster for a model as small as this
# model, tokenizer = load()
# garden = "In the garden the cat lost its ball."
# house = "In the house the cat lost its ball."
# german = translate(model, tokenizer, [garden, house])
# print(*german, sep="\n")

# %% [markdown]
# Only the first is right: in the second the ball is no longer the cat's. What happens inside the model, between "its" and *seinen*? The paper ends with pictures of where words look. We begin there, and then change one part after another.
#
# ## Every number in the model has a name
#
# In PyTorch, `register_forward_hook` shows you the output of any module. This book's layers also report what happens inside them, such as scores and weights, and a `cache` block (not the key-value cache of chapter 15) keeps copies under their names. Here are four:

# %% tags=["active-ipynb"]
# with cache(model) as seen:
#     translate(model, tokenizer, [garden, house])
# for point in ("queries", "scores", "weights", "heads"):
#     name = f"encoder.0.self_attention.{point}"
#     print(name, tuple(seen[name].shape))

# %% [markdown]
# The last, `heads`, is what each head puts out. The weights are of two sentences, four heads, ten tokens that look (nine and the end mark `</s>`), and ten looked at.
#
# Two runs that differ in one word are a **minimal pair**: whatever else differs comes from that word. How much of its weight does "its" give to the cat, in each head of the encoder, beside the garden and beside the house?

# %% tags=["active-ipynb"]
# CAT, ITS = 4, 6  # positions in both sentences, counted from 0
# for layer in (0, 1):
#     weights = seen[f"encoder.{layer}.self_attention.weights"]  # (2, 4, 10, 10)
#     to_cat = weights[:, :, ITS, CAT]  # (sentences, heads)
#     for sentence, row in zip(("garden", "house"), to_cat):
#         print(f"layer {layer}, {sentence}:", *[f"{weight:.2f}" for weight in row])

# %% [markdown]
# The largest change by far is in layer 0: the third head lets go of the cat. It is head 2 in code, which counts from 0, the **owner head** of [chapter 0](00_first_transformer.ipynb). In layer 1 the input has changed already, so we begin here. This is all that the head looks at:

# %% tags=["active-ipynb"]
# maps = attention_maps(model, tokenizer, list(zip([garden, house], german)))
# marks = [("ihren", "right", True), ("seinen", "wrong", False)]  # a word and a verdict
# views.looks(maps, "its", layer=0, head=2, german=german, marks=marks)

# %% [markdown]
# *Thicker arcs are larger weights: beside the garden "its" gives the cat half of its weight, and beside the house it gives the house nearly all.*
#
# Where the head looks at the wrong noun, the German is wrong. This is a suspicion, not a proof: a thermometer rises in the heat, and heats nothing.
#
# ## Is looking using?
#
# The second tool is `edit`. You give it a function, and the model goes on with what your function returns. Ours makes "its" look only at the cat. If the head is a thermometer, the German will stay as it is. What do you expect?

# %% tags=["active-ipynb"]
# OWNER_HEAD = 2  # in layer 0
# OWNER_WEIGHTS = "encoder.0.self_attention.weights"
#
#
# def at_the_cat(weights):  # (sentences, heads, words that look, words looked at)
#     weights[:, OWNER_HEAD, ITS] = 0.0
#     weights[:, OWNER_HEAD, ITS, CAT] = 1.0
#     return weights
#
#
# with edit(model, {OWNER_WEIGHTS: at_the_cat}):
#     print(*translate(model, tokenizer, [house]))

# %% [markdown]
# The wrong sentence has become right. This is an **intervention**: we set one row of one head by hand and left all else alone, so this row is a cause of the German word.
#
# On the book's live page you can do this with your mouse. In this picture of it the first noun is a dog, masculine in German:

# %% tags=["active-ipynb"]
# dog = "The dog near the cat lost its ball."
# view(model, tokenizer, [dog, house, garden], views.Turn("its", "cat", layer=0, head=2))

# %% [markdown]
# *Above, the head is left alone and looks at the dog, and "seinen" is right; below, it was made to look at the cat, and "ihren" is now wrong.* (Run this cell, and you can turn the head by degrees, in your own sentence, too.)
#
# ## What does the house say?
#
# Is the ball the house's, then? Let us turn "its" to each token of the house's sentence. A finer measure than the word are the logits (the picture calls them scores): by how much is *ihren* ahead of *seinen*? (This is the *leaning* of chapter 16.)

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def logits(english, begun):
#     """The logits of all words to come next after a German beginning."""
#     source = torch.tensor([[*tokenizer.encode(english), tokenizer.eos_id]])
#     target = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(begun)]])
#     return model(source, target)[0, -1]
#
#
# def lead_of(one, other, english, begun):
#     """The leaning of chapter 16: how far one word is ahead of another as the next."""
#     after = logits(english, begun)
#     first, second = (tokenizer.encode(f"Katze {word}")[-1] for word in (one, other))
#     return (after[first] - after[second]).item()
#
#
# def only_at(head, word, other):
#     """An edit of weights: in this head the word looks only at the other."""
#
#     def change(weights):  # (B, h, S, S)
#         weights[:, head, word] = 0.0
#         weights[:, head, word, other] = 1.0
#         return weights
#
#     return change
#
#
# begun = "Im Haus verlor die Katze"  # the model is given this, and the next word is due
# tokens = "In|the (1st)|house|the (2nd)|cat|lost|its|ball|.|end".split("|")
# leads = {}
# for place, token in enumerate(tokens):
#     with edit(model, {OWNER_WEIGHTS: only_at(OWNER_HEAD, ITS, place)}):
#         leads[token] = lead_of("ihren", "seinen", house, begun)
# assert [token for token, ahead in leads.items() if ahead > 0] == ["cat"]
# views.leads(leads, "ihren", "seinen")

# %% [markdown]
# *Each bar is a token that "its" was made to look at: only the cat brings "ihren", and all others bring "seinen", even the full stop and the end mark.*
#
# A full stop has no gender, and yet *seinen* comes. So *seinen* is the **default**, the word for when no feminine owner is seen. The house need not own anything. It draws the weight away from the cat, and the default remains.

# %% [markdown] tags=["question-31"]
# ## Does the higher score win?
#
# Why does the house draw the weight away, and the garden not? We know from chapter 0 that in layer 0 a vector holds only a word and its position. So the score that "its" gives to a noun depends only on *which* noun it is and *where* it is.
#
# Softmax turns scores into shares. If the noun is scored higher than the cat, the cat gets less than half of the weight. Let us guess that this is too little. Then the German is wrong where a noun is scored higher than the cat, and right elsewhere. We put each of 159 masculine or neuter nouns, all of one token, in the place of the house.

# %% tags=["active-ipynb"]
# from transformer.models.gold import one_token_nouns  # from the lexicon of the corpus
#
# NOUN, BALL = 2, 7  # positions, as CAT and ITS
# nouns = one_token_nouns(tokenizer, "mn")  # masculine or neuter in German
# texts = [f"In the {noun} the cat lost its ball." for noun in nouns]
# ids = torch.tensor([[*tokenizer.encode(text), tokenizer.eos_id] for text in texts])
# with torch.no_grad(), cache(model, "encoder.0.self_attention.scores") as seen:
#     model.encode(ids)
# scores = seen["encoder.0.self_attention.scores"][:, OWNER_HEAD, ITS]  # (nouns, 10)
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
# assert not right[lead > 0].any()  # where the noun is scored higher, none is right
# views.rivals(nouns, lead, right, named=("garden", "house", "hat", "orchestra"))

# %% [markdown]
# *Each mark is a noun, and its colour the German that came out: right of zero all are wrong, as predicted; left of zero the dots are right and the crosses wrong.*
#
# One half of the prediction holds without exception. In the other half 20 of 79 nouns miss, all close to zero. There the cat is hardly ahead, and a third word, such as the ball, can keep it from half of the weight (exercise 2).
#
# But are the scores the *cause*? Then we can decide all 159 sentences by setting one number. We put the noun's score one below the cat's, and then one above:

# %% tags=["active-ipynb"]
# def noun_ahead_by(lead):
#     """An edit of scores: the noun's is the cat's and this lead."""
#
#     def change(scores):  # (B, h, S, S)
#         scores[:, OWNER_HEAD, ITS, NOUN] = scores[:, OWNER_HEAD, ITS, CAT] + lead
#         return scores
#
#     return change
#
#
# for by in (-1, 1):
#     with edit(model, {"encoder.0.self_attention.scores": noun_ahead_by(by)}):
#         print(f"{by:+}: {its_right().sum()} of {len(nouns)} right")

# %% [markdown]
# With the cat ahead every sentence is right, with the noun ahead every sentence is wrong. So the house's sentence goes wrong by one number: a house is scored 12.6 and a cat 9.1. (In chapter 0 the cat had 8.0 at this position, for "its" stood one further on.)
#
# ## Which heads matter? Silence them one by one
#
# Let us silence each of the model's 24 heads, one at a time, and read what the model writes. The field calls this **ablation**.
#
# The German word has a stem, the owner's, and an ending, which agrees with what is owned. So we let the cat lose a bag, which is feminine: *ihre* is right, and a mistake in either half shows.

# %%
from transformer.models.recording import Change  # a type: an edit's function


def silent(head: int | list[int]) -> Change:
    """An edit of "...heads": this head puts out zeros, or all of these heads do."""

    def change(heads):  # (B, h, T, d_v)
        heads[:, head] = 0.0
        return heads

    return change


# %% tags=["active-ipynb"]
# def next_word(english, begun):
#     return tokenizer.decode([logits(english, begun).argmax().item()]).strip()
#
#
# bag = "In the garden the cat lost its bag."
# begun = "Im Garten verlor die Katze"
# written = {}  # {(name of the layer's heads, head): the word written without that head}
# for part in ("encoder.{}.self", "decoder.{}.self", "decoder.{}.cross"):
#     for layer in (0, 1):
#         name = f"{part.format(layer)}_attention.heads"
#         for head in range(4):
#             with edit(model, {name: silent(head)}):
#                 written[name, head] = next_word(bag, begun)
# views.silenced(written, next_word(bag, begun))

# %% [markdown]
# *Grey is the word that the model writes anyway: without the owner head (blue) the stem is lost, and without the noun head (green; in code layer 1, head 0) the ending.*
#
# Without the owner head the stem is the default, *sein-*. The **noun head**, also of chapter 0, looks from "the" and "its" at the noun that follows. The two heads divide the work in the same way in 500 other sentences ([evidence 19.3](evidence/19_visualization.ipynb)).
#
# ## Four words from two heads
#
# If the owner head carries the stem and the noun head the ending, we can order any possessive. Take a sentence with two owners, the cat and the dog, and two things, the ball and the bag. We turn each head to one of its two nouns:

# %% tags=["active-ipynb"]
# NOUN_HEAD, NOUN_WEIGHTS = 0, "encoder.1.self_attention.weights"
# sentence = "The cat that hid the bag near the dog lost its ball."
# pieces = [tokenizer.decode([i]).strip() for i in tokenizer.encode(sentence)]
# its = pieces.index("its")
# print("untouched:", *translate(model, tokenizer, [sentence]))
# for owner in ("cat", "dog"):
#     for thing in ("ball", "bag"):
#         changes = {
#             OWNER_WEIGHTS: only_at(OWNER_HEAD, its, pieces.index(owner)),
#             NOUN_WEIGHTS: only_at(NOUN_HEAD, its, pieces.index(thing)),
#         }
#         with edit(model, changes):
#             print(f"{owner}, {thing}:", *translate(model, tokenizer, [sentence]))

# %% [markdown]
# Nothing changes but the word before *Ball*: two switches, and all four words, *ihren*, *ihre*, *seinen*, *seine*. A ball stays masculine, so *ihre Ball* and *seine Ball* are wrong, and wrong on purpose.
#
# ## What has the owner head learned?
#
# Why does a house score so high, and a hat so low? And does the head bring the gender of any noun? The grammar that wrote the training sentences noted what each "its" stands for. So we can tell *owners*, nouns that own something there, from others. For the second question we put each feminine noun in the place of the cat, and turn "its" to this noun:

# %% tags=["active-ipynb"]
# from transformer.corpora import read_bundled
# from transformer.models.gold import owner_counts
#
# owns = owner_counts(read_bundled("train"))  # {noun: how often "its" stands for it}
# print({noun: owns[noun] for noun in ("hat", "garden", "house", "orchestra")})
#
# feminine = one_token_nouns(tokenizer, "f")
# lost = [f"In the house the {noun} lost its ball." for noun in feminine]
# with edit(model, {OWNER_WEIGHTS: at_the_cat}):  # the noun is where the cat was
#     follows = ["ihren" in text for text in translate(model, tokenizer, lost)]
#
# for name, owner in (("owners", True), ("others", False)):
#     high = [x > 0 for noun, x in zip(nouns, lead) if (owns[noun] > 0) == owner]
#     bring = [yes for noun, yes in zip(feminine, follows) if (owns[noun] > 0) == owner]
#     print(f"{name}: {sum(high)} of {len(high)} score higher than the cat;", end=" ")
#     print(f"{sum(bring)} of {len(bring)} feminine nouns bring ihren")
# print("not:", *[noun for noun, yes in zip(feminine, follows) if not yes])

# %% [markdown]
# Most owners score higher than the cat, and most other nouns do not. So the head seems to prefer likely owners, such as the house, which owns something in six sentences. We did not train a model without them.
#
# And every feminine owner brings *ihren*. The eleven nouns that fail are never what an "its" stands for: a sister's ball is *her* ball, and lamps own nothing. For them the default is written. When the owner head is turned to another noun in 500 new sentences, the German follows in 82%, and nearly all that fail have such a noun ([evidence 19.6](evidence/19_visualization.ipynb)).

# %% [markdown] tags=["question-32"]
# Do such nouns lack their gender? A **probe** is a small classifier that reads one property off a vector. It reads the gender of such nouns, too ([evidence 19.7](evidence/19_visualization.ipynb)). So the gender is *there*, and still the German does not follow. A probe tells you what a vector holds, and an edit tells you what the model uses.

# %% [markdown] tags=["question-17"]
# ## What does the decoder take from the encoder?
#
# After the encoder, the vector of "its" holds both halves. They reach the German word by cross-attention. This is the decoder's second layer, in the garden's sentence:

# %% tags=["active-ipynb"]
# views.crossing(maps[0], layer=1, head=3, word="ihren")

# %% [markdown]
# *Above, each row is named by the German word that is about to be written, and nearly every one looks at the word that it translates; below, all four heads look at "its" when "ihren" is due.*
#
# Yet when we silenced one of these four heads, nothing happened. Are they not used? Run the model on the house's sentence with the owner head turned to the cat, so that it will write *ihren*, and keep what the four heads put out at this step. Then run the model untouched, on its way to *seinen*, and paste the kept numbers in. The first run differs from the second in one row of the owner head. So if the word changes, the pasted numbers carried the owner. This is **activation patching**.
#
# We paste each head alone, then more and more of them. What do you expect of one?

# %% tags=["active-ipynb"]
# def pasted(heads, donor):
#     """An edit of outputs: at the last word these heads put out what they do in donor."""
#
#     def change(outputs):  # (B, h, T, d_v)
#         outputs[:, heads, -1] = donor[:, heads, -1]
#         return outputs
#
#     return change
#
#
# begun = "Im Haus verlor die Katze"
# name = "decoder.1.cross_attention.heads"
# with edit(model, {OWNER_WEIGHTS: at_the_cat}), cache(model, name) as seen:
#     logits(house, begun)
#
# choices = {"nothing": [], "1st head": [0], "2nd head": [1], "3rd head": [2]}
# choices |= {"4th head": [3], "1st + 2nd": [0, 1], "1st + 2nd + 3rd": [0, 1, 2]}
# choices |= {"all four": [0, 1, 2, 3]}
# leads = {}
# for choice, heads in choices.items():
#     with edit(model, {name: pasted(heads, seen[name])}):
#         leads[choice] = lead_of("ihren", "seinen", house, begun)
# with edit(model, {name: silent([0, 1, 2, 3])}):
#     print("all four silent:", next_word(house, begun))
# views.leads(leads, "ihren", "seinen", start=leads["nothing"])

# %% [markdown]
# *Each bar begins where the untouched model is (dotted line): any head alone moves the lead by about three and leaves the word as it was, two come close to zero, and three turn the word.*
#
# All four carry the owner, and like votes they add up. Now you see why silencing told us nothing. **Silence one head, and the other three still say it.** Silence all four, and too much is lost: the model writes a comma, and no possessive at all. In 500 sentences, too, pasting one head changes hardly a word, and pasting all four changes as many as turning the owner head ([evidence 19.8](evidence/19_visualization.ipynb)).
#
# ## The circuit of one word
#
# Parts that do one job together are called a **circuit**. Here is ours:

# %% tags=["active-ipynb"]
# views.circuit_diagram()

# %% [markdown]
# *Beside the garden the owner head brings the cat's gender to "its"; beside the house its arrow begins at the house (red), and the stem is the default; in both, the noun head brings the ball's gender, and the cross-attention fetches both halves from "its".*
#
# This answers our first question. The house is scored higher than the cat, so too little that is feminine reaches "its". All other parts do their work as always, and write *seinen*. We did not test the feed-forward networks, so they are not drawn. Nobody built this circuit. Training did, from pairs of sentences and a loss.
#
# ## What do the paper's pictures show?
#
# Figures 3 to 5 list the words twice and draw a line from each word to what it looks at. In Figure 3 several heads lead from *making* to *more difficult*, far behind it. In Figure 4 two heads lead from *its* to *Law* and to *application*: to an owner and to what it owns. In Figure 5 all words look. Here are our own two heads:

# %% tags=["active-ipynb"]
# both = sentence, *translate(model, tokenizer, [sentence])
# views.as_in_the_paper(*attention_maps(model, tokenizer, [both]))

# %% [markdown]
# *Lines lead from a word to what it looks at, darker ones for larger weights: left, our two heads lead from "its" to the owner and to the thing; right, the noun head leads each article and "its" to the noun that follows (green), and other words elsewhere (grey).*
#
# The left picture is like the paper's Figure 4. Its authors write that the two heads are "apparently involved" in finding what *its* stands for. They chose the word well, because they had only looked.

# %% [markdown] tags=["question-08"]
# Of Figure 5 they say that heads "clearly learned to perform different tasks". Does each head have a task of its own? In our encoder the owner head and the noun head do. For the other six we found no task that only one of them does ([evidence 19.11](evidence/19_visualization.ipynb)).

# %% [markdown]
# ## Where to go on
#
# The field of such experiments is **mechanistic interpretability**. [Wang et al. (2023)](https://arxiv.org/abs/2211.00593) traced how GPT-2 decides which of two names comes next. There, too, some heads stand in for others that are silenced.
#
# ## What to keep
#
# - Where a head looks is a suspicion; only what happens when you change the head tells you what it does.
# - A head of the first layer knows only words and positions, so "its" can fall for a noun that merely scores high. When no feminine owner gets through, the model writes its default.
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
# **2. In code.** Is the ball to blame for the crosses in our picture of nouns? Write an edit after which one word no longer looks at one other word, in one head. The rest of the row must sum to 1 again.

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
# def without_the_ball(weights):
#     return looks_away(weights, OWNER_HEAD, ITS, BALL)
#
#
# cat_higher = lead < 0
# print(f"{right[cat_higher].sum()} of {cat_higher.sum()} right, with the ball")
# # When your edit is right, count them without the ball:
# # with edit(model, {OWNER_WEIGHTS: without_the_ball}):
# #     print(its_right()[cat_higher].sum().item())

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
# Mostly. Of the 79 sentences in which the cat is scored higher, 59 were right, and without the ball 72 are.
# </details>
#
# **3. In code: paste the other half.** Our circuit says that the same four heads also fetch the ending. Test it. The sentences `bag` (*ihre*) and `garden` (a ball, *ihren*) are a minimal pair. Paste what the heads put out for the bag into the run for the ball, each head alone and all four. Then try the decoder's first layer.
#
# <details><summary>Solution</summary>
#
# ```python
# begun = "Im Garten verlor die Katze"
# for layer in (0, 1):
#     name = f"decoder.{layer}.cross_attention.heads"
#     with cache(model, name) as seen:
#         logits(bag, begun)
#     for heads in ([], [0], [1], [2], [3], [0, 1, 2, 3]):
#         with edit(model, {name: pasted(heads, seen[name])}):
#             print(layer, heads, round(lead_of("ihre", "ihren", garden, begun), 1))
# ```
#
# In the second layer all four heads together turn the word: the lead of *ihre* goes from -8.9 to 7.8. The votes are unequal: the third head alone brings 4.6, and the first next to nothing. In the first layer nothing moves. So the ending goes the same way as the stem.
# </details>
#
# **4. To think about.** How would you find out what the paper's two heads for *its* decide? What might fool you?
#
# <details><summary>Answer</summary>
#
# Take sentences in which another owner asks for another word. Turn one head to that owner, and see whether the word follows; turn other heads, and see that it does not. Turn the head to a full stop, too, to see the default. Silencing might fool you: if nothing breaks, other heads may say the same.
# </details>
#
# **Next.** [Chapter 20](20_speed.ipynb) asks how fast all this can be.
