# ---
# jupyter:
#   jupytext:
#     formats: notebooks/16_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 16 · Machine translation
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/16_translation.ipynb)
#
# *Section 6.1 of the paper. Reading takes about 20 minutes, running less than one, or a quarter of an hour where a GPU makes the whole run.*
#
# One model has written both of these:
#
# > *After the game, he went straight home to feed his dog.*
# >
# > *Nach dem Spiel ging er direkt nach Hause, um seinen Hund zu füttern.*
#
# > *The cat lost its ball.*
# >
# > *Die Katze hat seinen Ball verloren.*
#
# The first is perfect. The second is wrong, for a *Katze* is feminine and *seinen* is "his". Yet the model's score is good, and would be as good if every cat lost *his* ball.
#
# **So what does a good score tell you about a translator?** You will watch a model learn German from real sentences, give it its score, and see what such a score is good for. Then we go after the mistake that it hides, and our first two guesses are wrong.

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
# from collections import Counter
# from statistics import median
#
# import torch
#
# from transformer import (
#     Experiment,
#     attention_maps,
#     load,
#     read_corpus,
#     run_experiment,
#     translate,
#     translate_n_best,
# )
# from transformer.core.records import table
# from transformer.data import encode_pairs
# from transformer.experiments import tatoeba_run
# from transformer.runs.folder import has_begun
# from transformer.training import TrainingConfig, train
# from transformer.views import evidence
# from transformer.views import translation as drawn
#
# torch.manual_seed(0)
# torch.set_num_threads(1)  # the models below are too small to share between cores

# %% [markdown]
# ## Watch German appear
#
# In [chapter 14](14_training.ipynb) you trained a translator on sentences that a grammar had made up. Now real ones. [Tatoeba](https://tatoeba.org) is a collection that volunteers have been writing and translating for years: greetings, proverbs, complaints, a great deal about somebody called Tom. 161,852 pairs are for training and 2,000 for the test. The model is told nothing else: no grammar, no dictionary, not even which word belongs to which.
#
# It is a Transformer with three layers on each side, a tenth of the paper's base. `run_experiment` is chapter 14's loop grown up, which can also go on after a break. **On a GPU the next cell makes this run in front of you** (in Colab, choose a GPU and *Run all*). Everywhere else it reads the record of ours.

# %% tags=["active-ipynb"]
# # @title Make the run here?
# RUN = "auto"  # @param ["auto", "yes", "no"]
# KEEP_IN_DRIVE = True  # @param {type: "boolean"}
#
# if tatoeba_run.wanted(RUN):  # "auto": where there is a GPU
#     folder = tatoeba_run.folder(KEEP_IN_DRIVE)
#     experiment = Experiment(
#         "tatoeba",  # the corpus, with its vocabulary of 8,000
#         folder=folder,
#         resume=has_begun(folder),
#         model={"N": 3, "d_model": 256, "norm_first": True, "positions": "rotary"},
#         training={
#             "updates": 4800,
#             "batch_tokens": 4096,
#             "warmup": 480,
#             "lr_scale": 0.685,
#             "schedule": "linear",  # after the warm-up the rate falls to zero
#             "validate_every": 200,
#             "keep": 3,  # the weights of the last three validations
#         },
#     )
#     watch = [drawn.Live(tatoeba_run.SENTENCES)]  # draws what is drawn below
#     run_experiment(experiment, validate=tatoeba_run.watched, callbacks=watch)
#     run = tatoeba_run.record_of(folder)
# else:
#     folder = "tatoeba"  # the model of everyday sentences that ships with the package
#     run = tatoeba_run.record()
# print(f"{run['updates']:,} updates, {run['minutes']:.0f} minutes on {run['hardware']}")

# %% [markdown]
# At every validation the model has translated the same four sentences. What do you expect after 200 of the 4,800 updates: English, nothing, or bad German?

# %% tags=["active-ipynb"]
# log = tatoeba_run.log_of(run)
# drawn.becoming(log, run["sentences"], updates=(200, 400, 600, 1000, 4800))

# %% [markdown]
# *Read each block downwards: the numbers are updates, the last line is the finished model's, and grey says what the German means.*
#
# It is German from the start, but of the commonest words only, and a sister has become a father, three times. After 400 updates the sentences have a frame: a sister wants to buy a bicycle. But it is not red yet, and nobody has called. These gaps close one by one. The first sentence settles, too, but on the wrong answer.

# %% tags=["active-ipynb"]
# drawn.progress(log)

# %% [markdown]
# *On the left both losses fall to the end; on the right most of the gain comes in the first third.* (Training lies above validation because only in training are the labels smoothed and dropout at work, see [chapter 13](13_regularization.ipynb).)
#
# A falling loss alone is no translation. In a training of ours on captions of photos, with a shorter warm-up, the loss fell to its end, too, and BLEU came to 3 where its sister had 40 ([evidence 16.5](evidence/16_translation.ipynb)). So read what a model writes.

# %% [markdown]
# ## Ten sentences that it never saw
#
# Here are the first ten sentences of the test set, good and bad as they fall. How many would you accept?

# %% tags=["active-ipynb"]
# headings = ["English", "the model", "a volunteer", "what the model's German says"]
# rows = [[*row, drawn.says(row[1])] for row in run["first_ten"]]
# evidence.markdown_table(headings, rows)

# %% [markdown]
# *Sentences by the contributors of [Tatoeba](https://tatoeba.org), through [manythings.org/anki](https://www.manythings.org/anki/), CC BY 2.0 FR.*
#
# Two are broken: the proverb, and Tom's job (its German is as odd as its gloss). Two more have faults of grammar, and in one "all men" can be read as males. The other five are right, for example *Ich billige es nicht*. The volunteer's *Ich halte nichts davon* says the same, with one word in common. BLEU counts shared runs of words ([chapter 15](15_decoding.ipynb)), and gives almost nothing for it. So a score far below 100 can stand for good translations.
#
# ## One number for two thousand sentences
#
# Before the paper takes a score, it **averages the weights** of the last few validations, number by number, so that much of what the last batches happened to push cancels. And it **searches with a beam** of four instead of taking the likeliest word each time. Which of the two will gain more?

# %% tags=["active-ipynb"]
# names = {
#     "last, greedy": "last weights, greedy",
#     "averaged, greedy": "average of the last three, greedy",
#     "averaged, beam": "average, beam of four",
# }
# drawn.ladder({name: run[f"test.{way}.bleu"] for way, name in names.items()})

# %% [markdown]
# *The scale does not begin at 0: averaging gains almost nothing here, and the beam 1.4 BLEU.*
#
# Is 42.8 good? The paper's best model has 28, but on long sentences of news. **Only scores on the same sentences compare**, and that is what they are good for.

# %% [markdown]
# ## What a score is good for: a race
#
# The paper's Table 2 compares its two Transformers with the translators of their day on one test: recurrent networks (GNMT), convolutions (ConvS2S), networks that choose among experts (MoE), and ensembles of several models.

# %% tags=["active-ipynb"]
# drawn.table_2()

# %% [markdown]
# *Higher is better and further left is cheaper: the two Transformers are above all others, and base is also to the left of them.*
#
# That was the claim: better scores for the money. But these translators differ in everything, so the table cannot tell whether attention made the difference. So we ran a smaller race, on the grammar's sentences: models of one size, with the same number of updates, each at the learning rate that suits it ([evidence 16.3](evidence/16_translation.ipynb)). A second test has sentences longer than any in training. Who will do well there?

# %% tags=["active-ipynb"]
# shown = {
#     "rnn": "RNN, one vector",
#     "rnn-attention": "RNN with attention",
#     "convolution": "convolution with attention",
#     "transformer": "Transformer, as in the paper",
#     "rotary": "Transformer, rotary positions",
# }
# race = table("table2-bundled").query("what == 'run'").groupby("family")
# means = race[["part.test", "part.hard.longer"]].mean().loc[list(shown)]
# rows = [[shown[f], *(f"{bleu:.0f}" for bleu in row)] for f, row in means.iterrows()]
# evidence.markdown_table(["BLEU, mean of three", "familiar lengths", "longer"], rows)

# %% [markdown] tags=["question-13"]
# **Looking back is the great step.** The first RNN squeezes the sentence into a single vector. The second may look back at every word by attention, and more than doubles the score. (The first was still learning when its updates ended.)

# %% [markdown] tags=["question-12"]
# **After that step, recurrence can go.** The paper's Transformer has none, and on familiar lengths it equals the RNN that has both. What it gains is time, which this race does not measure: on a GPU an RNN waits for each word, and a Transformer takes all at once.

# %% [markdown]
# **Long sentences are the price.** There the paper's Transformer falls behind the RNN. Rotary positions ([chapter 7](07_positions.ipynb)) win back most of it, and that is why our run has them.
#
# <details><summary>The paper's own run: training on one GPU or on eight, and the score</summary>
#
# ```
# transformer train --corpus wmt14
# torchrun --nproc-per-node 8 -m transformer train --corpus wmt14 --batch-tokens 3125 --accumulate 8
# transformer evaluate --folder runs/wmt14
# ```
#
# By our estimate an H100 would need two and a half hours. Nobody has made this run with our code yet; [tell us](../CONTRIBUTING.md) what comes out.
# </details>

# %% [markdown]
# ## How a score fools you
#
# A score depends on luck, too. We trained a recipe for captions of photos three times, alike in all but the random seed, and four variants of it three times each. Which differences would you believe?

# %% tags=["active-ipynb"]
# variants = {
#     "recipe": "the recipe",
#     "epsilon_ls=0.0": "no label smoothing",
#     "tie_embeddings=False": "three embedding matrices",
#     "positions=rotary": "rotary positions",
#     "positions=rotary,norm_first=True,P_drop=0.3": "rotary, pre-norm, more dropout",
# }
# captions = table("multi30k").groupby("row")[["validation.bleu", "test.bleu"]]
# drawn.trainings(
#     {name: captions.get_group(row).T.values.tolist() for row, name in variants.items()}
# )

# %% [markdown]
# *A dot is a training, a stroke the mean of three: see how far apart the dots of one row are, above all on the test.*
#
# On validation one shared matrix instead of three is worth 1.6 BLEU, and label smoothing 1.3. On test both point the same way, but three trainings are too few to be sure ([evidence 16.1](evidence/16_translation.ipynb)). And the last row, which we had predicted to win, wins only on validation.
#
# Part of this noise has a face: the length penalty of [chapter 15](15_decoding.ipynb). On validation nearly all trainings preferred a large one. But with it a few outputs do not stop: in one training twelve of a thousand ran on, and cost 1.8 BLEU on test ([evidence 16.2](evidence/16_translation.ipynb)). So read your longest outputs before you believe a BLEU.

# %% [markdown]
# ## Your own sentence
#
# Back to everyday sentences, and to you. If you have made the run, this is your model. If not, it is the one that ships with the package, and of which we speak from here on: equally large, trained twice as long, and two BLEU better. Type a sentence: the cell prints the beam's three best answers with their scores, and draws where the model looked as it wrote the first.

# %% tags=["active-ipynb"]
# # @title Your own sentence
# SENTENCE = ""  # @param {type: "string"}
#
# model, its_tokenizer = load(folder)
# sentence = SENTENCE or "My sister wants to buy a red bicycle."
# best = translate_n_best(model, its_tokenizer, [sentence], n_best=3)[0]
# for answer in best:
#     print(f"{answer.score:6.2f}  {answer.text}")
#
# (maps,) = attention_maps(model, its_tokenizer, [(sentence, best[0].text)])
# looks = maps.cross[-1].mean(dim=0)  # the four heads of the last layer
# drawn.alignment(looks, *maps.labels("cross"))

# %% [markdown]
# *Go down the rows, the German words as they are written: their looks follow the diagonal, until “kaufen”, which German keeps for the end, jumps back to "buy".*
#
# But a map shows where a model looks, and not what it goes by. To know that, we shall have to change something.

# %% [markdown]
# ## Whose ball is it?
#
# The cat has waited since chapter 0. German says *seinen Ball* if the owner's noun is masculine or neuter, and *ihren Ball* if it is feminine. *Hund*, the dog, is masculine; *Katze*, the cat, is feminine.

# %% tags=["active-ipynb"]
# owners = [
#     "The dog lost its ball.",
#     "The cat lost its ball.",
#     "The old cat behind the school lost its ball.",
# ]
# print(*translate(model, its_tokenizer, owners), sep="\n")

# %% [markdown]
# The dog's *seinen* is right, and the cat should have *ihren*, both times. And yet the little model of [chapter 4](04_attention.ipynb), which knows only a few hundred words, gets the cat right. It learned from our grammar. Did it have a better teacher? Let us count:

# %%
import re

FEMININE = (
    "bank bee city clock company cow duck flower machine mouse snake sun university"
).split()
MASCULINE = (
    "bear bird computer elephant fish king lion moon river table train tree wolf"
).split()


def stem(german):
    """Which possessive is in a German sentence: "ihr", "sein" or "neither"?"""
    found = re.search(r"\b(ihr|sein)(e|en|em|er|es)?\b", german.lower())
    return found[1] if found else "neither"


def with_its(pairs):
    """The pairs (English, German) in which English says "its"."""
    return [pair for pair in pairs if re.search(r"\bits\b", pair[0].lower())]


def lessons(pairs, held_out, n):
    """n pairs with "its" and *ihr*, n with *sein*; none has one of the words held out."""
    kinds = {"ihr": [], "sein": [], "neither": []}
    for english, german in with_its(pairs):
        if not set(held_out) & set(re.findall(r"\w+", english.lower())):
            kinds[stem(german)].append((english, german))
    return kinds["ihr"][:n] + kinds["sein"][:n]


# %% tags=["active-ipynb"]
# pairs = read_corpus("bundled", "train")  # the grammar's
# its = with_its(pairs)
# print(f'{len(its):,} of {len(pairs):,} sentences of the grammar say "its"')
# print(Counter(stem(german) for _, german in its))

# %% [markdown]
# The grammar asks the question in every tenth sentence. Tatoeba's volunteers ask it in 179 of their 161,852 ([evidence 16.9](evidence/16_translation.ipynb)). So here is **our first guess: the model does not know the rule, since hardly anybody has taught it.**
#
# If so, a few lessons should help. We take 400 of the grammar's sentences, half with *ihr* and half with *sein*, and go on training for 60 updates. Then we ask about owners that are in none of the lessons: thirteen whose German noun is feminine and thirteen whose noun is masculine.

# %% tags=["active-ipynb"]
# nouns = FEMININE + MASCULINE
# taught = lessons(pairs, held_out=nouns, n=200)
# assert not set(nouns) & {word for text, _ in taught for word in text.lower().split()}
# settings = TrainingConfig(updates=60, batch_tokens=600, warmup=10, lr_scale=0.03)
# untaught = copy.deepcopy(model)
# train(model, encode_pairs(its_tokenizer, taught), settings)
# both = {"before": untaught.eval(), "after": model.eval()}
#
# english = [f"The {noun} lost its ball." for noun in nouns]
# german = {when: translate(m, its_tokenizer, english) for when, m in both.items()}
# for when in both:
#     stems = [stem(sentence) for sentence in german[when]]
#     right = f"{stems[:13].count('ihr')} of 13 feminine"
#     print(f"{when}: {right}, {stems[13:].count('sein')} of 13 masculine owners right")
# print(*translate(model, its_tokenizer, owners), sep="\n")

# %% [markdown]
# Before the lessons every owner was treated as masculine. Now nearly all feminine owners get *ihren*, nearly all masculine ones have kept *seinen*, and both cats have their ball. Would any practice with the grammar have done as much? No: after 400 of its sentences *without* "its", nearly every feminine owner stayed wrong. (Trainings differ; in some the lessons cure only half of them, [evidence 16.9](evidence/16_translation.ipynb).)
#
# ## Was it ignorance?
#
# Case closed? Look inside. Just before it writes the possessive, the model has a logit for *ihren* and one for *seinen*. Their difference says which way it leans. We give both models the same beginning, for example *Die Kuh verlor* (the cow lost), and ask for the next word. If the untaught model is ignorant, a cow and a moon (*der Mond*) must lean alike.

# %% tags=["active-ipynb"]
# IHREN, SEINEN = (
#     its_tokenizer.encode(f"verlor {word}")[-1] for word in ("ihren", "seinen")
# )
#
#
# @torch.no_grad()
# def leaning(model, english, german):
#     """How much the model prefers *ihren* to *seinen* as the next word, in logits."""
#     source = torch.tensor([[*its_tokenizer.encode(english), its_tokenizer.eos_id]])
#     target = torch.tensor([[its_tokenizer.bos_id, *its_tokenizer.encode(german)]])
#     logits = model(source, target)[0, -1]
#     return (logits[IHREN] - logits[SEINEN]).item()
#
#
# begun = [sentence.split()[:2] for sentence in german["before"]]  # ["Die", "Kuh"], ...
# leans = {
#     when: {
#         noun: leaning(which, text, f"{article} {owner} verlor")
#         for noun, text, (article, owner) in zip(nouns, english, begun)
#     }
#     for when, which in both.items()
# }
# drawn.leanings(leans, FEMININE, MASCULINE)

# %% [markdown]
# *Each dot is an owner, and right of the line the feminine possessive wins: before the lessons nearly all feminine nouns are already to the right of the masculine ones, but no noun has crossed the line.* (The counts above differ by one, since there each model chose its own beginning.)
#
# Look at the upper row. Without a single lesson the two kinds are nearly in order. But all of them lean to *seinen*, and the lessons have pushed the whole field to the right. **So our first guess was wrong. The model told the two kinds apart before anybody taught it, and what looked like ignorance was a prejudice.**
#
# If that is so, no lesson is needed. Add 2.5 to the untaught model's logit of *ihren*, for every owner alike, and count:

# %% tags=["active-ipynb"]
# feminine = torch.tensor([leans["before"][noun] for noun in FEMININE])
# masculine = torch.tensor([leans["before"][noun] for noun in MASCULINE])
# print((feminine + 2.5 > 0).sum().item(), "of 13 feminine owners right,", end=" ")
# print((masculine + 2.5 < 0).sum().item(), "of 13 masculine")

# %% [markdown]
# One number has done what sixty updates did. (But these very owners have chosen it, see exercise 2.)
#
# ## What does it go by?
#
# How then does the model tell a cow from a moon? **Our second guess: by the English owner**, at which the head of [chapter 4](04_attention.ipynb) looks. But the model has also written an article and a noun, and each of them gives the gender away. So we change one thing at a time, from cow to moon, and leave the rest. Which change will matter?

# %% tags=["active-ipynb"]
# def typical(model, owner="cow", article="Die", noun="Kuh"):
#     """The median leaning of 13 pairs of owners, each like a cow and a moon."""
#     found = []
#     for cow, moon in zip(range(13), range(13, 26)):
#         text = english[cow if owner == "cow" else moon]
#         kuh = begun[cow if noun == "Kuh" else moon][1]
#         found.append(leaning(model, text, f"{article} {kuh} verlor"))
#     return f"{median(found):+.1f}"
#
#
# rows = []
# for change in {}, {"owner": "moon"}, {"noun": "Mond"}, {"article": "Der"}:
#     says = {"owner": "cow", "article": "Die", "noun": "Kuh"}
#     says |= {what: f"**{word}**" for what, word in change.items()}
#     texts = [
#         f"The {says['owner']} lost its ...",
#         f"{says['article']} {says['noun']} verlor ...",
#     ]
#     rows.append([*texts, *(typical(which, **change) for which in both.values())])
# headings = ["English", "German so far", "leaning, untaught", "taught"]
# evidence.markdown_table(headings, rows)

# %% [markdown]
# **It goes by one word, and it has written that word itself.** Another English owner changes next to nothing, and neither does another German noun. Another article changes the leaning by 1, which is the distance between the two kinds in the picture. So our second guess was wrong, too. This model does not go back to the owner, as a person would. It reads its own *Die* or *Der*.
#
# That explains the duck, the one feminine owner among the masculine dots. Ask the untaught model for *The duck lost its ball.*, and it begins: *Der Staub*. It takes the duck for dust, and dust is masculine.
#
# ## What the score did not say
#
# Why did 42.8 say nothing of all this? The test set hardly ever says "its". **A good score tells you that a model does well on sentences like those of its test.** It does not tell you what the test rarely asks, and never why an answer is right or wrong. For that you have to ask yourself, read the answers, and change one thing at a time.
#
# It does know the price of our lessons: on Tatoeba's test set the taught model is two to three BLEU worse ([evidence 16.9](evidence/16_translation.ipynb)). The field calls this **forgetting**.
#
# ## What to keep
#
# - A Transformer learns to translate from pairs of sentences alone: first common words, then the frame of a sentence, and then, bit by bit, what was missing.
# - A score compares translators on one test, and speaks only about sentences like those of that test. What it rarely asks, you have to ask yourself.
# - A wrong answer need not be ignorance, and a map shows only where a model looks. Change one thing at a time, and you see what it goes by.
#
# ## Exercises
#
# **1. By hand.** 179 of Tatoeba's 161,852 training pairs have "its". About how many of the 2,000 test pairs have it? A German test sentence has eight words on average. If the possessive is wrong in every one of these sentences, how many of all words are wrong? Would you see it in a BLEU of 42.8?
#
# <details><summary>Answer</summary>
#
# 2,000 · 179 / 161,852 is about 2.2 sentences, and 2.2 wrong words among 16,000 are one in about 7,000. Even with the longer runs of words that they spoil, the score changes by a few hundredths.
# </details>
#
# **2. In code.** We took 2.5 by eye. Add the same number to the logit of *ihren* for every owner: in the picture, all dots move to the right together. How many of the upper row's owners can such a shift get right at best? An owner that lands on the line counts as *ihren*. Then call `most_right(feminine, masculine)` on the picture's own dots.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.translation import check_most_right
#
#
# def most_right(feminine, masculine):
#     """leanings (F,) and (M,) -> how many are right after the best shift, an int"""
#     ...
#
#
# check_most_right(most_right)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def most_right(feminine, masculine):
#     lines = [*feminine.tolist(), *masculine.tolist(), float("inf")]  # where the line may fall
#     return max(
#         int((feminine >= line).sum() + (masculine < line).sum()) for line in lines
#     )
# ```
#
# Instead of moving the dots you may move the line, and only the places of dots need to be tried. But these owners have now chosen their own line. To know what it is worth, choose it on half of the nouns and count on the others.
# </details>
#
# **3. To try.** German has a third gender, neuter, with the article *Das*, and its possessive is *seinen*. Where in the picture should *The horse lost its ball.* with *Das Pferd verlor* lie if the model has learned the rule, and where if it only knows that *Die* calls for *ihren*? Guess, then ask `leaning` about horses, and about *Die Pferd*.
#
# **4. To think about.** You have two models: the untaught one, and the taught one, which is two BLEU worse and says *ihren*. Which would you ship? What would you measure first, and on which sentences?
#
# <details><summary>Answer</summary>
#
# It depends on what your users write. You need two tests: one like your users' sentences, and a small one of the question itself, which the field calls a challenge set. And look for a third model, for example one whose lessons had old sentences mixed among them, or one with a shifted logit.
# </details>
#
# **Next.** [Chapter 17](17_variations.ipynb) turns one knob at a time, as the paper's Table 3 does, and asks you to bet first.
