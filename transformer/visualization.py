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
# Here are two English sentences that differ in one word. The model that ships with this book translates one of them right and the other wrong. In German the ball of a cat is *ihr Ball* and that of a house would be *sein Ball*: *ihren* if the owner's noun is feminine, *seinen* if not. Nobody gave the house a ball. Why does the model?
#
# The paper ends with pictures of heads that seem to understand such sentences, and leaves it there. We shall do what a mechanic does: open the model, move one part at a time, and watch what comes out. At the end there is a wiring diagram of one German word.

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
import torch
from torch import Tensor, nn

from transformer.core.checks import check_place
from transformer.models.recording import Change, cache

# %% tags=["active-ipynb"]
# from functools import partial
#
# from transformer import attention_maps, edit, load, translate, view, views
# from transformer.corpora import read_bundled
# from transformer.data import WORD
# from transformer.models import gold
# from transformer.models.maps import KINDS, attention_name
# from transformer.views import heads
#
# torch.set_num_threads(1)  # on tensors this small, a second thread only waits
# model, tokenizer = load()

# %% tags=["active-ipynb"]
# garden, house = sentences = [
#     "In the garden the cat lost its ball.",
#     "In the house the cat lost its ball.",
# ]
# german = translate(model, tokenizer, sentences)
# maps = attention_maps(model, tokenizer, list(zip(sentences, german)))
# marks = [("ihren", "right: the cat's ball", True)]
# marks += [("seinen", "wrong: the house's ball", False)]
# views.looks(maps, "its", layer=1, head=3, german=german, marks=marks)

# %% [markdown]
# *Thicker arcs are larger weights of head 1.3, the third head in the encoder's first layer: among the garden's words "its" leans towards the cat, among the house's words it looks at the house.*
#
# The head looks where the German goes wrong. That is a suspicion, and not yet a proof: a thermometer, too, shows what it does not cause.

# %% [markdown]
# ## Every number has a name
#
# To open the model we need two tools. The first is `cache`. Everything that the model computes on its way has a name, and inside a `with` block `cache` keeps whatever you name:

# %% tags=["active-ipynb"]
# with cache(model, "encoder.0.self_attention.*") as seen:
#     translate(model, tokenizer, [house])
# for point in ("queries", "scores", "weights", "heads", "output"):
#     print(f"{point:8}", tuple(seen[f"encoder.0.self_attention.{point}"].shape))

# %% [markdown]
# Queries meet keys and give scores, softmax makes weights of them, and each of the four heads puts out 32 numbers for each of the ten tokens, the end mark among them. Around the sub-layer runs the **residual stream**, the vector that each layer adds to ([chapter 3](03_stacks.ipynb)): its names end in `before` and `after`. (In the text, layers and heads count from 1, so that head 1.3 is the third in the first layer. In code they count from 0.)
#
# The second tool is `edit`. It takes a function and puts what the function returns in the place of what the model has computed. For example, this one makes a row of a head's weights whatever we want:


# %%
def turned(head: int, rows: Tensor, columns: Tensor) -> Change:
    """An edit of "...weights": row rows[b] of this head looks at columns[b].

    rows: (B,), one for each sentence; columns: (B, S), weights that sum to 1.
    """

    def change(weights):  # (B, h, T, S)
        check_place("head", head, weights.shape[1])
        weights[torch.arange(len(rows)), head, rows] = columns
        return weights

    return change


# %% [markdown]
# ## Is looking using?
#
# Now we can ask. In the house, we force "its" to look at the cat. In the garden, we force it to look at the garden. Nothing else is touched: one row of one head of 24. If the head is a thermometer, the German stays as it is. What do you expect?

# %% tags=["active-ipynb"]
# def turn(sentence, head, noun):
#     """Make "its" look at a noun of the sentence."""
#     pieces = [tokenizer.decode([i]).strip() for i in tokenizer.encode(sentence)]
#     row = torch.tensor([pieces.index("its")])
#     column = torch.zeros(1, len(pieces) + 1)  # one more: the end mark
#     column[0, pieces.index(noun)] = 1.0
#     return turned(head, row, column)
#
#
# for sentence, noun in ((house, "cat"), (garden, "garden")):
#     change = turn(sentence, 2, noun)
#     with edit(model, {"encoder.0.self_attention.weights": change}):
#         print(f"its -> {noun}:", *translate(model, tokenizer, [sentence]))

# %% [markdown]
# The right sentence becomes wrong, and the wrong one right. The field calls this **activation patching**: put one activation in another's place, and see what follows it. It shows a cause, because all else stayed as it was.
#
# On the page below you can do it by hand. The model runs in it.

# %% tags=["active-ipynb"]
# view(model, tokenizer, [house, garden], views.Turn("its", "cat", layer=0, head=2))

# %% [markdown]
# *The upper sentence is as it is, in the lower one "its" was made to look at the cat, and one German word has changed. (Drag the share, switch a head off, or type a sentence of your own.)*

# %% [markdown] tags=["question-31"]
# ## The head has a price list
#
# So why does "its" fall for the house, and not for the garden? In the first layer a vector holds a word and its place, and knows nothing yet of the sentence. So the score of a noun can depend only on *which* noun it is and *where* it stands. In our two sentences the places are the same. Then the head must have a price for each noun, and the cat, who always stands in the same place, always has the same.
#
# That is a bold guess, and it makes a prediction. Put *any* noun in the place of the house, look up its score, and compare with the cat's. If the cat's is higher, German should say *ihren*, and otherwise *seinen*. We try all 159 masculine and neuter nouns of the lexicon that fit.

# %% tags=["active-ipynb"]
# frame, name = "In the {} the cat lost its ball.", "encoder.0.self_attention.scores"
# genders = gold.read_genders()
# length = len(tokenizer.encode(house))
# nouns = [n for n, g in genders.items() if g in "mn" and n.islower() and " " not in n]
# nouns = [n for n in nouns if len(tokenizer.encode(frame.format(n))) == length]
# texts = [frame.format(noun) for noun in nouns]
# ids = [[*row, tokenizer.eos_id] for row in tokenizer.encode_all(texts)]
# with torch.no_grad(), cache(model, name) as seen:
#     model.encode(torch.tensor(ids))
# scores = seen[name][:, 2, 6]  # of "its", the seventh token, in head 1.3: (159, S)
# better = (scores[:, 2] - scores[:, 4]).tolist()  # the noun's, minus the cat's
# right = ["ihren" in text for text in translate(model, tokenizer, texts)]
# prices = dict(zip(nouns, zip(better, right)))
# views.rivals(prices, named=("hat", "donkey", "garden", "house", "orchestra"))

# %% [markdown]
# *Each dot is a noun. On the far left the cat is scored higher and the German is right (blue), on the right the noun is scored higher and the German is wrong (red).*
#
# How often is the plain prediction right, that the higher score wins?

# %% tags=["active-ipynb"]
# kept = sum((difference < 0) == fine for difference, fine in prices.values())
# assert kept > 0.8 * len(prices)
# print(f"the higher score decides the German in {kept} of {len(prices)} sentences")

# %% [markdown]
# One number decides, but for a narrow strip in which the two nouns share the weight. There the German tips over a little too early, as if *sein* were what the model says when in doubt. And the prices make sense, mostly: orchestras often own things in the training sentences, and a hat never does. (The donkey is an exception. It owns things, too, and the head has not learned it.) So what the head knows is not grammar. It is, more or less, who usually owns. That is a good guess all the same. In new sentences of the same kind the head finds the owner in 92 of 100 cases, where the first noun would be right in 71. A plain table of likely owners is right in 95 ([evidence 19.1](evidence/19_visualization.ipynb)).

# %% [markdown]
# ## Which heads matter? Switch them off, one by one
#
# We met head 1.3 because we had looked at it. Are there others? A blunt way to find out is **ablation**: silence one head after the other, and count what breaks. We take all bundled sentences in which another noun would need the other possessive, give the model the German up to that word, and let it write one word. The word has two parts, the stem (*sein* or *ihr*) and the ending (*-en*, *-e*, ...), and we count them apart.


# %%
def silent(head: int) -> Change:
    """An edit of "...heads": this head, counted from 0, puts out zeros."""

    def change(heads):  # (B, h, T, d_v)
        check_place("head", head, heads.shape[1])
        heads[:, head] = 0.0
        return heads

    return change


# %% tags=["active-ipynb"]
# examples = [*read_bundled("validation"), *read_bundled("test")]
# turns = gold.owner_turns(examples, genders)  # places of "its", and what is right
# encoded = gold.encode_turns(tokenizer, turns)
#
#
# def parts_right(words):
#     """The shares of words with the right stem, and with the right ending."""
#     written = [gold.stem_and_ending(word) for word in words]
#     wanted = [gold.stem_and_ending(turn.gold) for turn in turns]
#     hits = torch.tensor(
#         [[a == b for a, b in zip(*two)] for two in zip(written, wanted)]
#     )
#     return dict(zip(("stem", "ending"), hits.float().mean(dim=0).tolist()))
#
#
# untouched = gold.next_words(model, tokenizer, encoded)
# words, shares = {}, {"stem": {}, "ending": {}}
# for kind in KINDS:
#     for layer in range(2):
#         for head in range(4):
#             place = kind, layer + 1, head + 1
#             name = attention_name(kind, layer) + ".heads"
#             with edit(model, {name: silent(head)}):
#                 words[place] = gold.next_words(model, tokenizer, encoded)
#             for part, share in parts_right(words[place]).items():
#                 shares[part][place] = share
# views.silenced(shares, parts_right(untouched))

# %% [markdown]
# *Three bars stand out: without encoder head 1.3 a third of the stems are lost and no endings, without encoder head 2.1 most endings and no stems, and without decoder head 2.1 some of both.*
#
# The bars rest on some hundred sentences, so let us not read much into small ones:

# %% tags=["active-ipynb"]
# tall = {("encoder", 1, 3), ("encoder", 2, 1), ("decoder", 2, 1)}
# stems, endings = shares["stem"], shares["ending"]
# others = [min(stems[place], endings[place]) for place in stems.keys() - tall]
# assert min(others) > 0.9 > endings["encoder", 2, 1] + 0.4
# assert stems["encoder", 1, 3] < 0.7 and endings["encoder", 1, 3] > 0.95
# print(
#     f"{len(turns)} sentences; any other head silent: at least {min(others):.0%} right"
# )

# %% [markdown]
# Twenty-one of the heads can go, one at a time, and the word hardly suffers. Two heads of the encoder share it between them. One carries *whose*, the other *what is owned*, and neither does the other's work. And the third head, in the decoder: does it help both?

# %% [markdown]
# ## The third bar is something else
#
# A number says that something broke, and not what. So let us read what the model writes when decoder head 2.1 is silent. The German before the bar is given:

# %% tags=["active-ipynb"]
# changed = [
#     (WORD.findall(turn.example.target), turn.step, after)
#     for turn, before, after in zip(turns, untouched, words["decoder", 2, 1])
#     if before != after
# ]
# too_early = [
#     any(w.startswith(after) for w in german[step:]) for german, step, after in changed
# ]
# for german, step, after in changed[:4]:
#     print("...", *german[step - 4 : step], "|", after, "  instead of:", *german[step:])
# print(
#     f"{len(changed)} of {len(turns)} words change, {sum(too_early)} to a word due later"
# )

# %% [markdown]
# Not one of them is a wrong possessive. In nearly all of them the model writes a verb, or the first piece of one (*ges-ucht*), and mostly the very verb with which this clause ends. For in a subordinate clause German puts the verb last, and here it comes too early. The head looks at the word that opens the clause, such as a comma or *dass*, or at the verb that is there already ([evidence 19.4](evidence/19_visualization.ipynb)). It seems to tell the decoder whether a verb is due. Our bars called it a helper of both parts. It is a helper of neither: it keeps the words in order.
#
# ## Four words from two heads
#
# If one head carries the stem and the other the ending, we should be able to order any possessive that we like. Take a sentence with two possible owners, the cat and the dog (*der Hund*), and two things, the ball and the bag (*die Tasche*). We turn both heads at once, head 1.3 to an owner and head 2.1 to a thing:

# %% tags=["active-ipynb"]
# sentence = "The cat that hid the bag near the dog lost its ball."
# for owner in ("cat", "dog"):
#     for thing in ("ball", "bag"):
#         changes = {
#             "encoder.0.self_attention.weights": turn(sentence, 2, owner),
#             "encoder.1.self_attention.weights": turn(sentence, 0, thing),
#         }
#         with edit(model, changes):
#             print(f"{owner}, {thing}:", *translate(model, tokenizer, [sentence]))

# %% [markdown]
# Two switches, four words: *ihren*, *ihre*, *seinen*, *seine*. In the second and the fourth line the German is wrong on purpose, because a ball is masculine whatever we do to the head.
#
# A sentence picked by hand proves little, so we did the same in 500 new sentences for each head. The stem follows head 1.3 in 82 of 100, the ending follows head 2.1 in 94, and no other head of the encoder is followed in more than 6 ([evidence 19.5](evidence/19_visualization.ipynb)). Nearly all the failures are feminine nouns that never own anything in training. When we paste in what head 1.3 says on average for *ihr*, they follow, too ([evidence 19.6](evidence/19_visualization.ipynb)).

# %% [markdown] tags=["question-32"]
# ## What does one vector hold?
#
# So the vector of "its" starts out knowing nothing but "its" and its place. Layer 1 should add whose it is, and layer 2 what is owned. Can we read that off the vector itself? A **probe** is a small classifier that tries to. It learns from labelled vectors, and is tested in sentences that it has not seen. Ours draws straight borders, so that whatever it finds the next layer could find as well:


# %%
@torch.no_grad()
def encoder_layers(model: nn.Module, source: Tensor) -> Tensor:
    """Source ids (B, S) -> the residual stream below and above each layer, (N + 1, B, S, d_model)."""
    below, above = "encoder.0.self_attention.before", "encoder.*.feed_forward.after"
    with cache(model, below, above) as seen:
        model.encode(source)
    return torch.stack(list(seen.values()))


def linear_probe(x: Tensor, labels: Tensor, unseen: Tensor) -> Tensor:
    """Labels for unseen vectors (m, d), from x (n, d) with labels (n,) of 0, 1, 2, ...

    Linear discriminant analysis: the label whose mean is nearest, measured in the
    spread that vectors have within a label, and corrected for how frequent it is.
    """
    counts = torch.bincount(labels).clamp(min=1)
    sums = torch.zeros(len(counts), x.shape[1]).index_add(0, labels, x)
    means = sums / counts[:, None]
    within = x - means[labels]
    spread = within.T @ within / len(x)
    spread += 1e-3 * spread.diagonal().mean() * torch.eye(len(spread))
    directions = torch.linalg.solve(spread, means.T)  # (d, labels)
    offsets = (counts / len(x)).log() - (means.T * directions).sum(dim=0) / 2
    return (unseen @ directions + offsets).argmax(dim=1)


# %% tags=["active-ipynb"]
# with_its = [e for e in read_bundled("train") if " its " in e.source][:1500]
# new = [e for e in examples if " its " in e.source]
# known, unseen = (
#     gold.labelled_vectors(partial(encoder_layers, model), tokenizer, some, genders)
#     for some in (with_its, new)
# )
# asked = ("noun: gender", "the: gender of its noun", "its: gender of the owner",
#          "its: which owner", "its: gender of the owned")  # fmt: skip
# read = {
#     name: gold.probe_accuracy(linear_probe, known[name], unseen[name]) for name in asked
# }
# guesses = [row[0] for row in read.values()]
# shown = {name: row[1:4] for name, row in read.items()}
# views.probes(shown, ["embedding", "layer 1", "layer 2"], guesses)

# %% [markdown]
# *Each number is the share that the probe gets right, beside always giving the commonest answer. In the rows of "its" the owner appears after layer 1, and the gender of what is owned is complete only after layer 2, each in the layer of its head.*
#
# A probe says what is *there*, and not what is *used*. After layer 1 the gender of its noun can be read off "the" in nine of ten cases, and still the articles need head 2.1, in layer 2: without it four in ten go wrong. With labels drawn by lot the same probe falls back to guessing ([evidence 19.7](evidence/19_visualization.ipynb)).

# %% [markdown] tags=["question-17"]
# ## What does it mean to give the encoder's output to the decoder?
#
# Now "its" knows everything. How does the German word learn of it? Each step of the decoder asks the source a question by cross-attention: the query comes from what has been written, keys and values from the encoder. If that works as it should, a German word looks at the English word that it translates.

# %% tags=["active-ipynb"]
# example = next(e for e in examples if "relative-object" in e.constructions)
# pair = attention_maps(model, tokenizer, [(example.source, example.target)])
# drawn = heads.one_a_panel(pair, [("cross", 1, 3)], size=4.6)
# alternative = "Dark squares link most German words to the English words they translate."
# views.picture(drawn, alternative)

# %% [markdown]
# *Read along a row: nearly every German word looks at its English one, also where German has another order and the dark squares leave the diagonal.*
#
# Taken as links between words, the looks of this one head agree with the grammar's but for an error of 0.08. Along the diagonal it would be 0.50 ([evidence 19.8](evidence/19_visualization.ipynb)). Yet in our bars no head of the cross-attention mattered. Is it not used? Let us silence the four heads of layer 2 together:

# %% tags=["active-ipynb"]
# alone = [shares["stem"]["cross", 2, head] for head in (1, 2, 3, 4)]
# with edit(model, {"decoder.1.cross_attention.heads": torch.zeros_like}):
#     together = parts_right(gold.next_words(model, tokenizer, encoded))["stem"]
# print(f"stems right, any one of four silent: at least {min(alone):.0%}")
# print(f"stems right, all four silent: {together:.0%}")

# %% [markdown]
# At this step all four look at "its", and each can stand in for the others. **Ablation, one part at a time, does not see parts that are there twice.** It has now misled us in both directions.
#
# ## The circuit of one word
#
# Parts that together do one job, and the ways between them, are called a **circuit**. Here is ours, with everything that we found:

# %% tags=["active-ipynb"]
# views.circuit_diagram()

# %% [markdown]
# *From left to right: encoder head 1.3 brings the cat's gender to "its", head 2.1 brings the ball's, the cross-attention takes both over to the decoder, and there the word is put together.*
#
# Nothing in the training said that there should be such parts. There were pairs of sentences, and a loss.
#
# ## The paper's Figures 3 to 5, beside ours
#
# The paper shows heads of the fifth of six encoder layers. In Figure 3 *making* reaches far ahead to *more difficult*. In Figure 4 *its* finds *Law*. In Figure 5 two heads follow the structure of the sentence. We looked for the same three kinds:

# %% tags=["active-ipynb"]
# verb = next(e for e in examples if e.target.startswith("Vielleicht nahm der Zoo"))
# far, dog, donkey = attention_maps(
#     model,
#     tokenizer,
#     [
#         (verb.source, verb.target),
#         ("In the city the dog lost its ball.", ""),
#         ("Laura refused to ride the clever brown donkey slowly.", ""),
#     ],
# )
# an, its, the = (
#     far.target.index("an"),
#     dog.source.index("its"),
#     donkey.source.index("the"),
# )
# back = [*far.decoder[1, 3, an, 1 : an + 1].tolist(), 0, 0]  # what has been read
# rows = [
#     ("far apart (Figure 3): decoder head 2.4", far.target[:-1], an, back),
#     (
#         "a pronoun (Figure 4): encoder head 1.3",
#         dog.source[:-1],
#         its,
#         dog.encoder[0, 2, its],
#     ),
#     (
#         "structure (Figure 5): encoder head 2.1",
#         donkey.source[:-1],
#         the,
#         donkey.encoder[1, 0, the],
#     ),
# ]
# views.three_heads(rows)

# %% [markdown]
# *Above, the second half of a German verb finds the first ("an" and "nahm" are one verb, to accept), in the middle "its" finds its owner, and below an article finds its noun across two adjectives.*
#
# The authors write that their heads are "apparently involved" in such work, and chose the word well, because they had only looked. For two of our three we know more now. The first we did not test by itself: silencing it costs only two in a hundred of the words that its verbs belong to ([evidence 19.9](evidence/19_visualization.ipynb)).

# %% [markdown] tags=["question-08"]
# Do heads act like the filters of a convolution, then, each finding something else? Partly. Two of eight had a task that no other head of the encoder does. But a filter weighs fixed distances, and a head goes by words, too. For the other six we found no task, and after training the heads' looks have more in common than before ([evidence 19.11](evidence/19_visualization.ipynb)).

# %% [markdown]
# ## Where to go on
#
# What we did by hand is a field, mechanistic interpretability, and its words are now yours:
#
# - **Ablation.** Michel et al. (2019) and Voita et al. (2019) removed most heads of a translator for almost nothing; heads with a clear task went last.
# - **Attention and explanation.** Jain and Wallace (2019) found very different weights with equal answers, and Wiegreffe and Pinter (2019) answered that it depends on what you call an explanation.
# - **Probes and their controls.** Hewitt and Liang (2019).
# - **Activation patching and circuits.** Vig et al. (2020); Wang et al. (2023) took apart how GPT-2 finds a person's name, with 26 heads.
# - **Induction heads.** Olsson et al. (2022): two heads in a row that find what came after the last occurrence of a word, and copy it.
# - **Attention sinks.** Places that draw weight without saying much, such as punctuation: 17% of our tokens, and up to 38% of a head's weight ([evidence 19.10](evidence/19_visualization.ipynb)). Clark et al. (2019), Xiao et al. (2024).
# - **The logit lens** (nostalgebraist, 2020) reads the decoder's residual stream as if each layer were the last: `logit_lens(model, tokenizer, source, target)`.
#
# And beyond our small world of made-up sentences? A second model of this book learned from sentences that people wrote. Given 36 sentences with a feminine owner, it writes a form of *sein* 36 times ([evidence 19.12](evidence/19_visualization.ipynb)). It has met "its" in 179 sentences, twice as often with *sein* as with *ihr*. Whether that is the reason or its size, we do not know. No circuit, no *ihren*.

# %% [markdown]
# ## What to keep
#
# - Where a head looks is a suspicion; only what happens when you change the head tells you what it does.
# - A head of the first layer knows words and places and nothing else, so its grammar is a price list of words.
# - Switching parts off can mislead twice: it accuses parts that break the word for another reason, and it acquits parts that stand in for each other.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** In head 1.3 the cat's score is 9.1, the garden's 8.7 and the house's 12.6. Suppose that all other words get no weight. How much does the cat get beside the garden, and how much beside the house?
#
# <details><summary>Answer</summary>
#
# Only differences count. Beside the garden it is $1/(1 + e^{-0.4}) = 1/1.67 = 0.60$, and beside the house $1/(1 + e^{3.5}) = 1/34 = 0.03$. In the first picture the garden and the cat share what is left after the other words in just this ratio.
# </details>
#
# **2. In code.** A silent head puts out zeros, which the layers above it never met in training. A gentler way lets the head look evenly at all words of its sentence, padding left out. Write that edit of its weights.

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
# With `lambda weights: even_head(weights, 2, encoded.batch.source != model.config.pad_id)` as an edit of `encoder.0.self_attention.weights`, head 1.3 loses about as many stems as when it is silent.
# </details>
#
# **3. To think about.** Head 2.4 of the decoder looks at the German owner when it writes the possessive, in 77% of the validation sentences. Silence it, and not one stem more is lost. Name two explanations, and for each an edit that would tell.
#
# <details><summary>Answer</summary>
#
# It may look without its output being used, as a by-product of another task. Then turning its row to another noun changes nothing either. Or the stem reaches the decoder twice, from "its" and from the German owner, and one way stands in for the other. Then silencing it should hurt once the other way is cut: silence head 1.3 as well, and see whether fewer stems are left. (They are not: the German owner is not used.)
# </details>
#
# **Next.** [Chapter 20](20_speed.ipynb) asks how fast all this can be.
