# ---
# jupyter:
#   jupytext:
#     formats: notebooks/14_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 14 · Training
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/14_training.ipynb)
#
# *Section 5 of the paper. Reading takes about 20 minutes, running about a minute.*
#
# Three translators of one size came out of the same loop. This is what each of them loses per word, on 200 sentences that it never saw:
#
# | | A | B | C | a blind guess |
# |---|---|---|---|---|
# | loss per word | 0.042 | 0.005 | 1.4 | 4.3 |
#
# Only one of the three can translate. Which one would you take home?
#
# You will build all three with the same dozen lines, and find tests that tell them apart. Then you train a translator of your own.

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
# import math
# from collections import Counter
#
# import torch
# import torch.nn.functional as F
#
# from transformer import views
# from transformer.attention import padding_mask
# from transformer.corpora import read_corpus
# from transformer.data import Tokenizer, encode_pairs, pad
# from transformer.first_transformer import write
# from transformer.model import Transformer, TransformerConfig
# from transformer.optimizer import adam, learning_rate
# from transformer.teaching.sentences import all_german, gloss, sentence_pairs
# from transformer.teaching.small_runs import four_minutes, word_by_word
# from transformer.views.evidence import markdown_table
#
# threads = torch.get_num_threads()
# torch.set_num_threads(1)  # on models this small, a second thread only waits

# %% [markdown]
# ## A language small enough to check
#
# To judge a translation you have to know what is right. So we begin with eight nouns and six verbs. They follow the rules of German: articles change, half of a verb waits at the end, and the adverb comes first. You need no German, because `gloss` gives each sentence in English, word by word.

# %% tags=["active-ipynb"]
# pairs = sentence_pairs(1200)  # drawn by chance from a small grammar, none twice
# # no model learns from the first 200: they are for validation
# held_out, train_pairs = pairs[:200], pairs[200:]
# shown = [9, 6, 1]  # three of the held-out pairs, for all tables
# headings = ["English", "German", "the German, word by word"]
# table = [[*held_out[i], gloss(held_out[i][1])] for i in shown]
# markdown_table(headings, table)

# %% [markdown]
# One thing in this language nobody can know. For "now" its German says *jetzt* or *nun*, and for "perhaps" *vielleicht* or *womöglich*. Both are right, and whoever wrote the sentence tossed a coin. Remember the coin: it will convict a cheat.
#
# ## Every word is a question
#
# We ask a translator for one word at a time. The decoder reads the true German up to a word, and has to name the next one. Even where it would have erred, it continues from the *true* word (**teacher forcing**). So one pass through the model asks all the questions of a sentence. The answers are the *gold* of [chapter 10](10_data.ipynb), the same sentence shifted by one place.
#
# Say that four right words had the probabilities $p$ = 1, ½, 1 and ¼. By $-\ln p$ a sure one costs nothing, ½ costs 0.69, and ¼ costs 1.39. The mean, 0.52, is the loss. Padding is no question, so the mean leaves it out.

# %% tags=["active-ipynb"]
# PAD, BEGIN, END = 0, 1, 2
# words = sorted({word for pair in pairs for text in pair for word in text.split()})
# names = ["(pad)", "(begin)", "(end)", *words]  # a word's id is its place in this list
#
#
# def tensors(pairs):  # sources (n, S), targets (n, T)
#     sources = [[names.index(word) for word in english.split()] for english, _ in pairs]
#     targets = [[names.index(word) for word in german.split()] for _, german in pairs]
#     return pad(sources, PAD), pad([[BEGIN, *ids, END] for ids in targets], PAD)
#
#
# def loss_of(model, source, target):
#     scores = model(source, target[:, :-1])  # the decoder reads all but the last word
#     gold = target[:, 1:]  # and is asked for all but the first: (n, T - 1)
#     return F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=PAD)
#
#
# source, target = tensors(train_pairs)
# held_source, held_target = tensors(held_out)
# print(len(names), "words and marks of both languages;", len(train_pairs), "pairs")

# %% [markdown]
# ## The whole loop
#
# Now the model of [chapter 8](08_model.ipynb), Adam and the warm-up of [chapter 12](12_optimizer.ipynb) and the loss come together. An update draws 64 sentences and computes the gradient of their loss. Then it moves each weight a little, so that the loss falls.

# %% tags=["active-ipynb"]
# def training(
#     model, source, target, updates=300, size=64, warmup=50, scale=0.17, optimizer=None
# ):
#     optimizer = optimizer or adam(model)
#     for update in range(1, updates + 1):
#         model.train()  # dropout on
#         rows = torch.randint(len(source), (size,))
#         loss = loss_of(model, source[rows], target[rows])
#         optimizer.zero_grad()
#         loss.backward()
#         rate = learning_rate(update, model.config.d_model, warmup, scale)
#         optimizer.param_groups[0]["lr"] = rate  # how far it steps
#         optimizer.step()
#         yield update  # a chance to look before the next update
#
#
# def fresh(kind=Transformer):  # always with the same random weights
#     torch.manual_seed(1)
#     return kind(TransformerConfig(len(names), d_model=64, d_ff=128, N=1, h=4, P_drop=0))
#
#
# print(f"the highest rate, at update 50: {learning_rate(50, 64, 50, 0.17):.4f}")

# %% [markdown]
# The learning rate is the paper's formula: it rises for 50 updates, and falls afterwards. We set `scale` so that the rate never exceeds 0.003. This language is so small and clean that `P_drop` is 0.
#
# The paper's base model made 100,000 updates, each on about 25,000 tokens a side, in twelve hours on eight GPUs.
#
# ## Can it learn sixteen sentences by heart?
#
# If the loop is sound, a model soon can. For comparison we make a common mistake: the optimizer is given the weights of *another* model. What will you see?

# %% tags=["active-ipynb"]
# few = source[:16], target[:16]
#
#
# def by_heart(name, model, optimizer):
#     before = loss_of(model, *few).item()
#     for _ in training(model, *few, updates=100, optimizer=optimizer):
#         pass
#     print(f"{name}: loss {before:.2f}, afterwards {loss_of(model, *few).item():.2f}")
#
#
# model, another = fresh(), fresh()
# by_heart("sound", model, adam(model))
# by_heart("with the mistake", fresh(), adam(another))
#
# untrained = fresh()
# german = few[1]
# scores = untrained(few[0], german)
# unshifted = F.cross_entropy(scores.flatten(0, 1), german.flatten(), ignore_index=PAD)
# print(f"a blind guess among {len(names)} words: {math.log(len(names)):.2f}")
# print(f"untrained, asked for the next word: {loss_of(untrained, *few).item():.2f}")
# print(f"untrained, asked for the word it has just read: {unshifted.item():.2f}")

# %% [markdown]
# There is no error message. The mistaken loop just never learns. Sixteen sentences leave no doubt.
#
# The last lines show a second mistake: the target is not shifted. An untrained model makes the bet of [chapter 3](03_stacks.ipynb), on the word that it has just read. Without the shift it wins this bet, and pays far less than a blind guess among $V$ words, $\ln V$. With the shift it loses the bet, because here no word follows itself.
#
# ## A: a translator after 300 updates
#
# After training, the model writes *by itself*, with `write` of [chapter 0](00_first_transformer.ipynb): it takes the likeliest next word, reads it, and so on. How many of the 200 held-out sentences will be right? Either side of a coin counts.

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def held_out_loss(model):
#     model.eval()  # dropout off
#     return loss_of(model, held_source, held_target).item()
#
#
# def trained(model, source, target):
#     """Train; the held-out losses on the way, [(update, loss), ...]."""
#     updates = training(model, source, target)
#     return [(update, held_out_loss(model)) for update in updates if update % 10 == 0]
#
#
# def before_end(row):
#     """The ids that a model wrote: without the begin mark, and up to the end mark."""
#     ids = row.tolist()[1:]
#     return ids[: ids.index(END)] if END in ids else ids
#
#
# def written_by(model):
#     rows = write(model, held_source, longest=12)
#     return [" ".join(names[i] for i in before_end(row)) for row in rows]
#
#
# def without_coins(german):
#     return german.replace("nun", "jetzt").replace("womöglich", "vielleicht")
#
#
# def judge(sentences):
#     right = [
#         without_coins(one) == without_coins(german)
#         for one, (_, german) in zip(sentences, held_out)
#     ]
#     faultless = [one in possible for one in sentences]
#     print(
#         f"of 200 sentences {sum(right)} are right, {sum(faultless)} faultless German,"
#     )
#     print(f"and {len(set(sentences))} different")
#
#
# def some_of(sentences):
#     three = [(held_out[i][0], sentences[i] or "(nothing)") for i in shown]
#     return markdown_table(headings, [[*pair, gloss(pair[1])] for pair in three])
#
#
# possible = all_german()  # the set of all sentences that the grammar can make
# model_a = fresh()
# curve_a = trained(model_a, source, target)
# print(f"A: held-out loss {held_out_loss(model_a):.3f}")
# judge(written_by(model_a))
# some_of(written_by(model_a))

# %% [markdown]
# A is a translator. Now let us break it.

# %% [markdown] tags=["question-19"]
# ## B: why such a fuss about the mask?
#
# Here is `Peeking` of [chapter 8](08_model.ipynb), with `None` in the causal mask's place. You know what becomes of its loss. But what will it write?

# %% tags=["active-ipynb"]
# class Peeking(Transformer):
#     def decode(self, target, memory, source):
#         real = padding_mask(source, PAD)
#         no_mask = None  # the causal mask of chapter 8 was here
#         return self.decoder(self.embed(target), memory, no_mask, real)
#
#
# model_b = fresh(Peeking)
# curve_b = trained(model_b, source, target)
# print(f"B: held-out loss {held_out_loss(model_b):.3f}")
# judge(written_by(model_b))
# some_of(written_by(model_b))

# %% [markdown]
# B's loss is far lower than A's. Yet B stammers, or writes nothing. In training it has copied, like the player without a mask in chapter 8:

# %% tags=["active-ipynb"]
# english, german = held_out[1]
# views.leak(german.split(), gloss(german).split(), place=0)

# %% [markdown]
# *Above, the first question has its own answer among the words that the model may look at (red); below, when the model writes, that place is empty.*
#
# In training B could always read the next word, one place to the right, and has never learned to do without it. In chapter 8 the dice proved the cheat, and here the coin does. We take all held-out sentences with "now", once with *jetzt* as the first German word, once with *nun*. How likely does a model find *jetzt*, before it may have read either?

# %% tags=["active-ipynb"]
# with_now = [i for i, (english, _) in enumerate(held_out) if english.endswith("now")]
#
#
# @torch.no_grad()
# def belief_in_jetzt(model, first_word):
#     """The mean probability of "jetzt" when first_word comes next."""
#     target = held_target[with_now].clone()
#     target[:, 1] = names.index(first_word)
#     scores = model(held_source[with_now], target)[:, 0]  # the first question of each
#     return scores.softmax(dim=-1)[:, names.index("jetzt")].mean().item()
#
#
# def ask_for_the_coin(name, model):
#     jetzt, nun = belief_in_jetzt(model, "jetzt"), belief_in_jetzt(model, "nun")
#     print(f"{name} expects jetzt: {jetzt:.2f} if it comes next, {nun:.2f} if nun does")
#
#
# ask_for_the_coin("A", model_a)
# ask_for_the_coin("B", model_b)
# learned = [
#     german.split()[0] for english, german in train_pairs if english.endswith("now")
# ]
# print(f"in training: jetzt in {learned.count('jetzt')} of {len(learned)} sentences")
#
# coins = sum(english.split()[-1] in ("now", "perhaps") for english, _ in held_out)
# questions = (held_target[:, 1:] != PAD).sum().item()  # words and end marks
# floor = coins * math.log(2) / questions  # if nothing else costs anything
# jetzt, nun = belief_in_jetzt(model_a, "jetzt"), belief_in_jetzt(model_a, "nun")
# assert math.isclose(jetzt, nun, rel_tol=1e-4)  # A has read neither
# print(f"{coins} coins among {questions} words: {floor:.3f} nats per word")

# %% [markdown]
# What comes next does not move A at all. A expects *jetzt* a little less often than *nun*, because it has heard it a little less often. B says *jetzt* where *jetzt* comes, and *nun* where *nun* comes. **B knew the coin.**
#
# The coins also say how low an honest loss can be (last line). Whoever cannot know a fair coin does best to give each side ½, and pays $\ln 2 = 0.69$. If nothing else costs anything, that makes 77 · 0.69 / 1,672 = 0.032 per word. A, with 0.042, is above this floor, and B, with 0.005, far below.

# %% [markdown] tags=["question-36"]
# ## C: fluent, and about something else
#
# The second accident happens in a file. Its first German line is lost, so every English sentence is beside its neighbour's translation.

# %% tags=["active-ipynb"]
# neighbours = train_pairs[1:] + train_pairs[:1]
# slipped_pairs = [
#     (english, german) for (english, _), (_, german) in zip(train_pairs, neighbours)
# ]
# slipped_source, slipped_target = tensors(slipped_pairs)
# model_c = fresh()
# curve_c = trained(model_c, slipped_source, slipped_target)
# print(f"C: held-out loss {held_out_loss(model_c):.3f}")
# judge(written_by(model_c))
# beginnings = Counter(german.split()[0] for _, german in train_pairs)
# print("commonest first words in training:", beginnings.most_common(2))
# some_of(written_by(model_c))

# %% [markdown]
# Every sentence is faultless, and none is right. C has learned what German sounds like: it begins with a common first word, *heute* (today) or *hier* (here), and so on.
#
# Does C ignore its English, then? `write` always takes the likeliest word. So a model that ignores its English would write one sentence 200 times. C writes 85 different sentences, so its English makes some difference. But does it *help*? Give each held-out sentence *another* sentence's English, and look at the loss of the true German. What should happen to A, and what to C?

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def own_and_strange(model, source, target):
#     """The loss with each sentence's own source, and with another sentence's."""
#     model.eval()
#     strange = source.roll(1, dims=0)  # each gets the source of its neighbour
#     return loss_of(model, source, target).item(), loss_of(model, strange, target).item()
#
#
# models = {"untrained": fresh(), "A": model_a, "B": model_b, "C": model_c}
# losses = {
#     name: own_and_strange(one, held_source, held_target) for name, one in models.items()
# }
# views.strange_sources(losses)

# %% [markdown]
# *Compare the two bars of each model: for A another sentence's English makes the German far more expensive; for C, as for an untrained model, it makes almost no difference.*
#
# **If another sentence's English does as well, a model has learned nothing from its own.** But why does C's German change with its English at all? And why does the loss of B rise, which has the answers before its eyes?

# %% tags=["active-ipynb"]
# no_english = torch.full_like(source, END)  # a model that never sees an English word
# deaf = fresh()
# for _ in training(deaf, no_english, target, updates=150):
#     pass
# own, strange = own_and_strange(model_c, slipped_source, slipped_target)
# print(f"C, on the pairs that it learned: {own:.2f}, with strange English {strange:.2f}")
# loss = loss_of(deaf, torch.full_like(held_source, END), held_target).item()
# print(f"a model without English, on held-out sentences: {loss:.2f}")
#
# with torch.no_grad():
#     scores = model_b(held_source.roll(1, dims=0), held_target[:, :-1])
# said, gold, other = scores.argmax(-1), held_target[:, 1:], held_target.roll(1, dims=0)
# wrong = (said != gold) & (gold != PAD)
# stolen = (said[:, :, None] == other[:, None]).any(-1)  # is it in the other German?
# right, follows = 1 - wrong.sum() / questions, stolen[wrong].float().mean()
# print(f"B, with strange English: {right:.0%} of its words are right;")
# print(f"of the wrong ones, {follows:.0%} are in the other sentence's German")

# %% [markdown]
# **C.** Among a thousand wrong pairs, some words meet by accident more often than others. C has learned some of these accidents: on its own pairs the English helps a little. On new sentences they are worth nothing. There C's 1.43 is what this German costs a model that has never seen any English.
#
# **B.** In training, the peeked word and the English always agreed, and B learned to use both. Now they contradict each other. Often B follows the peeked word, and where it errs, it mostly says what the wrong English says. So its loss rises, and this test does not catch B.
#
# ## Which one would you take home?
#
# What does C say about the coin? And here are all three trainings.

# %% tags=["active-ipynb"]
# ask_for_the_coin("C", model_c)
# curves = {"C": curve_c, "A": curve_a, "B": curve_b}  # from top to bottom
# writes = {name: gloss(written_by(models[name])[0]) for name in curves}
# views.three_trainings(curves, writes, floor)

# %% [markdown]
# *All three losses fall smoothly, and only one falls through the floor of the coins; at the right is what each model writes for "the wild child hears the old horse perhaps", word by word in English.*
#
# C does not even know that the English says "now". It gives *jetzt* about its share among all first words.
#
# | | A: sound | B: no mask | C: slipped |
# |---|---|---|---|
# | does it know the coin? | no | **yes** | no |
# | does a strange source cost more? | yes | yes | **no** |
# | does it translate? | yes | **no** | **no** |
#
# Only the last line convicts both. So read what your model writes: it tells you *that* something is wrong, and the tests tell you *what*.

# %% [markdown]
# ## Your own translator
#
# Let us give the loop a harder language, and a sentence to look forward to: *Why did the children sing?* In German: *Warum sangen die Kinder?* The small translator of chapter 0 learned from 20,000 pairs that a grammar made, with plurals, questions and irregular verbs. Our sentence is not among them. You take only the pairs with at most seven English words.
#
# Every 25 updates we pause for validation, on 200 sentences that no update has used. When will a strange source begin to hurt?

# %% tags=["active-ipynb"]
# def short(pairs):
#     return [pair for pair in pairs if len(pair[0].split()) <= 7]
#
#
# def in_tokens(pairs):
#     sources, targets = zip(*encode_pairs(tokenizer, pairs))
#     return pad(sources, PAD), pad(targets, PAD)
#
#
# def translated(model, sentences):
#     source, _ = in_tokens([(english, "") for english in sentences])
#     return [tokenizer.decode(before_end(row)) for row in write(model, source, 16)]
#
#
# everything = read_corpus("bundled", "train")
# to_learn, unseen = short(everything), short(read_corpus("bundled", "validation"))[:200]
# for name, some in {"all": everything, "yours": to_learn}.items():
#     sang = sum("sangen" in german for _, german in some)
#     print(f"{name}: {len(some)} pairs, {sang} with sangen")
# tokenizer = Tokenizer.train(
#     [text for pair in to_learn for text in pair], vocab_size=3500
# )
# torch.manual_seed(1)
# yours = Transformer(TransformerConfig(3500, d_model=128, d_ff=256, N=1, h=4, P_drop=0))
# question, log = "Why did the children sing?", []
#
# torch.set_num_threads(threads)  # this model is large enough for more than one
# numbers, unseen_numbers = in_tokens(to_learn), in_tokens(unseen)
# settings = dict(updates=800, size=32, warmup=150, scale=0.7)  # the highest rate: 0.005
# for update in training(yours, *numbers, **settings):
#     if update % 25 == 0:
#         own, strange = own_and_strange(yours, *unseen_numbers)
#         [german] = translated(yours, [question])
#         log.append((update, own, strange, german))
# views.reading_begins([row[:3] for row in log])

# %% [markdown]
# *At first the two curves are one. Where they part, the English has begun to help your translator, and from there on a wrong source costs more and more.*
#
# In this test, **yours begins like C**: for about fifty updates, any English will do. In the end a strange source costs more than at update 25. The less your model doubts its wrong translation, the less probability is left for the right one.
#
# ## Its first German
#
# How many of the 200 validation sentences does it get right to the letter? What does it make of a sentence of your own?

# %% tags=["active-ipynb"]
# sentence = "The old king has opened the window."  # write your own
# written = translated(yours, [english for english, _ in unseen])
# right = sum(one == german for one, (_, german) in zip(written, unseen))
# print(f"{right} of {len(unseen)} are right to the letter")
# [yours_in_german] = translated(yours, [sentence])
# # word_by_word gives each German word the English one that stands for it most often
# print(sentence, "→", yours_in_german, f"({word_by_word(yours_in_german)})")
#
# columns = ["after update", "the model's German", "word by word"]
# diary = {update: german or "(nothing)" for update, _, _, german in log}
# table = [[n, diary[n], word_by_word(diary[n])] for n in (25, 100, 200, 400, 800)]
# markdown_table(columns, table)

# %% [markdown]
# The king's sentence is right. Most of the 200 are not yet, and neither is ours: its last translation is faultless German about smiling children. (On your machine other words may come.)
#
# ## The children sing
#
# We gave all 20,000 pairs to a model of two layers, as large as the small translator of chapter 0, for less than four minutes of one processor core (`python -m transformer.experiments.bundled_run`). `four_minutes` reads its log. What became of our sentence?

# %% tags=["active-ipynb"]
# ran = four_minutes()
# diary = {row["update"]: row["translations"][question] for row in ran}
# own, strange = ran[-1]["validation_loss"], ran[-1]["strange_loss"]
# print(f"at the end: held-out loss {own:.2f}, with strange sources {strange:.2f}")
# others = [n for n, german in diary.items() if german != "Warum sangen die Kinder?"]
# print("the last time that it wrote anything but sangen: update", max(others))
# table = [[n, diary[n], word_by_word(diary[n])] for n in (600, 1600, 1800, 2000, 4000)]
# markdown_table(columns, table)

# %% [markdown]
# The third line is our favourite. *Singten* is no German: it is the regular past of an irregular verb, what a child says before it has heard *sangen* often enough. This model has nineteen sentences with *sangen*, yours five. For a while it wavered between the two, and then it stayed with *sangen*. Of 1,000 test sentences 80% are right to the letter ([evidence 14.5](evidence/14_training.ipynb)). Take this one home: its English helps it, and we have read what it writes.
#
# ## First aid
#
# | symptom | test | remedy |
# |---|---|---|
# | the first loss is far below $\ln V$ | is it asked for the word that it has just read? | shift the target |
# | the loss does not move | overfit sixteen sentences | give the optimizer *this* model's weights |
# | the loss is better than you can explain | change a later word: do earlier scores move? (exercise 2) | put the causal mask back |
# | the outputs are fluent and wrong | give it strange sources: does the loss rise? | read ten training pairs by eye |
# | the same sentence has another loss each time | ask twice | `model.eval()` |
#
# [Chapter 27](27_diagnosis.ipynb) has a dozen more.
#
# ## What to keep
#
# - A training loop is a dozen lines, and a falling loss says only that *something* is being learned.
# - A loss that is better than you can explain is a leak until proved otherwise: nobody can guess a coin.
# - Read what your model writes, and give it the wrong sources: if the loss does not rise, the right ones do not help it.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** Suppose that all coins were crooked, and one side came up in three cases of four. What should an honest model say, and how low is the floor then, with 77 coins among 1,672 words?
#
# <details><summary>Answer</summary>
#
# The model should say ¾ and ¼. It pays $-\ln ¾ = 0.29$ three times and $-\ln ¼ = 1.39$ once, 0.56 on average, and the floor is 77 · 0.56 / 1,672 = 0.026.
# </details>
#
# **2. In code.** Few languages have a coin. So overwrite the last place of each target with the begin mark (id 1), which no target has there, and see whether *earlier* scores move. Ask A and B: `peeks(model_b, held_source, held_target)`.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.training import check_peeks
#
#
# def peeks(model, source, target):
#     """model, (n, S), (n, T) -> True or False; model(source, target) gives (n, T, V)"""
#     ...
#
#
# check_peeks(peeks)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def peeks(model, source, target):
#     changed = target.clone()
#     changed[:, -1] = 1
#     before, after = model(source, target), model(source, changed)
#     return not torch.allclose(before[:, :-1], after[:, :-1], atol=1e-5)
# ```
#
# B peeks, and A does not. Only the last scores may move: they have read the changed word.
# </details>
#
# **3. To think about.** Train C on only a hundred slipped pairs, until it knows them by heart. What will strange sources cost on these pairs, and on the held-out ones?
#
# <details><summary>Answer</summary>
#
# ```python
# clerk, hundred = fresh(), tensors(slipped_pairs[:100])
# for _ in training(clerk, *hundred, updates=600):
#     pass
# print("its hundred:", own_and_strange(clerk, *hundred))
# print("held out:", own_and_strange(clerk, held_source, held_target))
# ```
#
# On its hundred pairs, a strange source raises the loss from 0.00 to 5.1. On the held-out ones it does not: 5.3 with the right source, 5.1 with a strange one. For a pair learned by heart, the source tells it everything: it is the label under which one German sentence is filed. For a new pair it tells nothing. So the test counts on held-out sentences only.
# </details>
#
# **Next.** Our models have always written the likeliest word. [Chapter 15](15_decoding.ipynb) shows a sentence in which that goes wrong, and what to do instead.
#
# ## Appendix: the loop that the package uses
#
# The run of four minutes used this loop. (Chapter 16's `TrainingConfig` is this one with more fields.)
#
# A batch of 25,000 tokens is too large for many memories. So you cut it into parts, and let their gradients add up before you take the step (**gradient accumulation**). Say that one part has two words, which cost 3 each, and the other has eight, which cost 1 each. The mean of all ten is 1.4. But the mean of the two parts' means is (3 + 1)/2 = 2, because the two words have got as much say as the eight. So `accumulate` *sums* the losses, and divides by the words of *all* parts. `stream_batches` never ends: each pass over the corpus, an **epoch**, forms new batches of similar length.

# %%
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn

from transformer.data import Batch, collate, token_batches
from transformer.optimizer import adam, learning_rate, set_learning_rate
from transformer.regularization import label_smoothing_loss


def accumulate(model: nn.Module, batches: list[Batch], epsilon_ls: float) -> float:
    """Add up the gradients of an update's batches; its loss, in nats a target token."""
    pad_id = model.config.pad_id
    tokens = sum(int((batch.gold != pad_id).sum()) for batch in batches)
    total = 0.0
    for batch in batches:
        scores = model(batch.source, batch.decoder_input)
        summed = label_smoothing_loss(scores, batch.gold, epsilon_ls, pad_id, "sum")
        loss = summed / tokens
        loss.backward()
        total += loss.item()
    return total


def epoch_seed(seed: int, epoch: int) -> int:
    """The seed of an epoch's order; no two seeds share one."""
    return seed * 1_000_003 + epoch


def stream_batches(encoded, batch_tokens: int, seed: int) -> Iterator[list[int]]:
    """Yield batches, the numbers of their pairs, for ever."""
    for epoch in itertools.count():
        yield from token_batches(encoded, batch_tokens, epoch_seed(seed, epoch))


@dataclass(frozen=True)
class TrainingConfig:
    """How to train: the defaults are the paper's (Section 5)."""

    updates: int = 100_000  # weight updates in all
    batch_tokens: int = 25_000  # a side of a batch, padding included
    accumulate: int = 1  # batches of one update
    warmup: int = 4000  # updates during which the learning rate rises
    lr_scale: float = 1.0  # multiplies the paper's learning rate
    epsilon_ls: float = 0.1  # label smoothing
    validate_every: int = 1000  # updates between validations
    seed: int = 2017  # of the order of the batches


# %%
@torch.no_grad()
def validation_loss(
    model: nn.Module, encoded, batch_tokens: int = 4000
) -> dict[str, float]:
    """{"validation_loss": nats a target token, without dropout and smoothing}."""
    model.eval()
    pad_id = model.config.pad_id
    total = tokens = 0
    for rows in token_batches(encoded, batch_tokens):
        batch = collate([encoded[i] for i in rows], pad_id)
        scores = model(batch.source, batch.decoder_input)
        total += label_smoothing_loss(scores, batch.gold, 0.0, pad_id, "sum").item()
        tokens += int((batch.gold != pad_id).sum())
    return {"validation_loss": total / tokens}


def train(
    model: nn.Module,
    encoded: list,
    config: TrainingConfig,
    *,
    validate: Callable = lambda model: {},
) -> list[dict]:
    """Train a model on encoded pairs; return the log, a dict of figures a validation."""
    c = model.config
    optimizer = adam(model)
    stream = stream_batches(encoded, config.batch_tokens, config.seed)
    log, losses = [], []
    for update in range(1, config.updates + 1):
        parts = itertools.islice(stream, config.accumulate)
        batches = [collate([encoded[i] for i in rows], c.pad_id) for rows in parts]
        model.train()
        optimizer.zero_grad()
        losses.append(accumulate(model, batches, config.epsilon_ls))
        rate = learning_rate(update, c.d_model, config.warmup, config.lr_scale)
        set_learning_rate(optimizer, rate)
        optimizer.step()
        if update % config.validate_every == 0 or update == config.updates:
            loss = sum(losses) / len(losses)
            log.append({"update": update, "loss": loss, **validate(model)})
            losses = []
    return log


# %% tags=["active-ipynb"]
# learned = encode_pairs(tokenizer, to_learn)
# # two parts of 600 tokens an update; the rate is at the paper's very first steps
# settings = TrainingConfig(updates=20, batch_tokens=600, accumulate=2, validate_every=10)
# for row in train(yours, learned, settings):
#     print(row)
