# ---
# jupyter:
#   jupytext:
#     formats: notebooks/10_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 10 · Data
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/10_data.ipynb)
#
# *Section 5.1 of the paper. Reading takes about 25 minutes, running half a minute.*
#
# The small translator of [chapter 0](00_first_transformer.ipynb) has learned from 20,000 English sentences and their German translations. We give it two sentences that differ in one word:

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
from dataclasses import dataclass

import torch
from torch import Tensor

# Small helpers of the package; comments below say what each does
from transformer.core.batches import Sides
from transformer.corpora.tokenizer import Tokenizer, encode_sides
from transformer.corpora.windows import random_numbers, shuffled

# %% tags=["active-ipynb"]
# import copy
# import random
# import re
# from collections import Counter
#
# from torch.nn.functional import cross_entropy
#
# from transformer import load, read_corpus, translate, views
# from transformer.corpora.splits import numbered_tatoeba
#
# torch.set_num_threads(1)  # on a model this small, a second thread only waits

# %% tags=["active-ipynb"]
# model, tokenizer = load("bundled")
# known = "The queen lost her flowers."
# sentence = "The queen lost her sunflowers."  # or yours
# for english in (known, sentence):
#     print(english, "->", *translate(model, tokenizer, [english]))

# %% [markdown]
# The first translation is right. The second says that the queen lost *sie*, German for "them" or "her". Where have the sunflowers gone?
#
# You may suspect the weights. But before the first weight was trained, three things had been decided: how a sentence is **cut**, how it becomes a row of a **batch**, and which **sentences** training shows. A bad cut could make a word unreadable, a batch could drop or mix up its tokens, and training could have too little to say about a flower. So we follow our sentence from the keyboard to the tensor and ask: **what does the model actually read, and who lost the sunflowers?** Which of the three do you suspect?

# %% [markdown]
# ## Why is a sentence cut at all?
#
# The model reads pieces, which are called **tokens**. Before you look: where would you cut our sentence?

# %% tags=["active-ipynb"]
# views.pieces({"known": tokenizer.pieces(known), "new": tokenizer.pieces(sentence)})

# %% [markdown]
# *Each box is a token, `_` is a space, and parts of a word are darker: compare the last words, of which one has become two pieces and the other five.*
#
# Nobody who knows flowers would cut sunflowers like that. So the cut is our first suspect. But why are there pieces at all?
#
# The model needs a fixed list of tokens, its **vocabulary**, because each entry has an embedding and a logit of its own ([chapter 6](06_embeddings.ipynb)). Why not list all the words of the training sentences? What is not in the list would be written `<unk>`, for "unknown":

# %% tags=["active-ipynb"]
# pairs = read_corpus("bundled", "train")  # [(English, German), ...]
# texts = [text for pair in pairs for text in pair]
#
# # A word or a punctuation mark, each with the space before it, or other white space
# WORD = re.compile(r" ?\w+| ?[^\w\s]|\s")
#
#
# def words_of(text):
#     return WORD.findall(" " + text)
#
#
# counts = Counter(word for text in texts for word in words_of(text))
# print(*[word if word in counts else " <unk>" for word in words_of(sentence)], sep="")
# assert not any("sunflower" in text.lower() for text in texts)
#
# words, letters = counts.total(), sum(map(len, texts))
# print(
#     f"{words / len(texts):.0f} words in a sentence, {letters / words:.1f} letters in a word"
# )

# %% [markdown]
# With such a list the sunflowers would be lost right here, because no training sentence has the word. And real text is full of new words ([evidence 10.1](evidence/10_data.ipynb) counts them).
#
# Letters lose nothing. But with about five letters in a word, a sentence of letters would be five times as long. Attention compares every token with every other, so it would have more than 25 times as much to do.
#
# So we want whole words where they are frequent, and parts where they are not. Counting finds both.

# %% [markdown]
# ## Join what stands together most often
#
# The paper uses **byte-pair encoding** (Sennrich et al., 2016). It begins with letters as its symbols. Two symbols side by side are called *neighbours*. Those neighbours that occur most often are joined into one symbol, everywhere. Then it counts again. Each such step is a **merge**.
#
# For example, take a text with five different words: *land* 6 times, *lands* 2, *hand* 4, *hands* 3 and *man* 2. The neighbours "l a" are in *land* and *lands*, so they occur 6 + 2 = 8 times. The neighbours "a n" are in all five words: 6 + 2 + 4 + 3 + 2 = 17. No others occur as often, so "an" becomes one symbol. What will be joined next?
#
# This takes four short functions. The merges, in their order, are all that is learned, and the last function, `cut`, makes the same merges in a new word.


# %%
def count_neighbours(words: dict) -> dict:
    """How often two symbols are neighbours in words, {(symbol, ...): times}."""
    count: dict = {}
    for word, times in words.items():
        for neighbours in zip(word, word[1:]):
            count[neighbours] = count.get(neighbours, 0) + times
    return count


def join(word: tuple, neighbours: tuple) -> tuple:
    """The word with each occurrence of the two neighbours as one symbol."""
    if neighbours[0] not in word:  # nothing to join, which is the usual case
        return word
    joined: list = []
    for symbol in word:
        if joined and (joined[-1], symbol) == neighbours:
            joined[-1] += symbol  # its left neighbour is there already
        else:
            joined.append(symbol)
    return tuple(joined)


def learn_merges(words: dict, steps: int) -> list[tuple]:
    """The neighbours joined in so many steps, {(symbol, ...): times} -> [(left, right), ...]."""
    merges = []
    for _ in range(steps):
        count = count_neighbours(words)
        most = max(count, key=lambda neighbours: count[neighbours])
        words = {join(word, most): times for word, times in words.items()}
        merges.append(most)
    return merges


def cut(word: tuple, merges: list[tuple]) -> tuple:
    """A word's symbols, joined by merges that were learned before."""
    for neighbours in merges:
        word = join(word, neighbours)
    return word


# %% tags=["active-ipynb"]
# text = {"land": 6, "lands": 2, "hand": 4, "hands": 3, "man": 2}
# words = {tuple(word): times for word, times in text.items()}
# merges = learn_merges(words, 5)
# for step in range(1, 6):
#     now = [" ".join(cut(word, merges[:step])) for word in words]
#     print(f"{''.join(merges[step - 1]):6}", *now, sep="   ")
# print("sand:", *cut(tuple("sand"), merges))

# %% [markdown]
# "an" and "d" come next, since 6 + 2 + 4 + 3 = 15 words have them, and then *land*, *hand* and *hands* become whole. And *sand*, which never occurred, can be written all the same: "s" and "and".

# %% [markdown]
# ## Can it read a letter that it never saw?
#
# Our corpus has no "é" and no "鍵", which is Japanese for a key. If merging begins with the letters of the corpus, both are `<unk>` again, and the world has more than 150,000 letters.
#
# In **UTF-8**, the usual way to store text, a letter is one to four **bytes**, and a byte is a number from 0 to 255. For example, "k" is 107, and "é" is 195 and 169. So let the merging begin with bytes: there are only 256, and nothing is ever unknown. Python joins bytes with `+=` as it joins letters, so we only have to take a word apart:


# %%
def in_bytes(word: str) -> tuple:
    """The bytes of a word in UTF-8, each a symbol of its own."""
    return tuple(bytes([byte]) for byte in word.encode())


# %% [markdown]
# Here is a whole tokenizer. It learns 700 merges from both languages together. (The translator's own has 3,241, but the later ones leave *sunflowers* as it is.) An entry's number in the vocabulary is its **token id**, which the model is given.

# %% tags=["active-ipynb"]
# merges = learn_merges({in_bytes(word): times for word, times in counts.items()}, 700)
#
# vocabulary = ["<pad>", "<s>", "</s>"]  # three marks, which we need later
# vocabulary += [bytes([byte]) for byte in range(256)]
# vocabulary += [left + right for left, right in merges]
#
#
# def encode(text):
#     pieces = [piece for word in words_of(text) for piece in cut(in_bytes(word), merges)]
#     return [vocabulary.index(piece) for piece in pieces]
#
#
# def decode(ids):
#     text = b"".join(vocabulary[i] for i in ids).decode()
#     return text[1:]  # without the space that words_of puts in front
#
#
# ids = encode("Her sunflowers from Québec, and her 鍵.")
# print(decode(ids))
# views.pieces({"": [vocabulary[i] for i in ids]}, [ids])

# %% [markdown]
# *The numbers inside boxes are bytes: "é" has become 195 and 169, and "鍵" has become 233, 141 and 181. Below each box is its token id.*
#
# From the ids, the text has come back as it was. An unseen word falls apart, at worst into its bytes, but it is never lost. The ids of single bytes are the bytes plus 3, because the three marks come first.
#
# **Deviation:** we join bytes. The byte-pair encoding that the paper used joined letters, in spite of its name.

# %% [markdown]
# ## Which words have cut the sunflowers?
#
# But why these five pieces? A merge is an election. Each time that a word occurs, it gives a vote to every two neighbours inside it, and the neighbours with most votes are joined. So we can ask who voted for a merge: all words that had these neighbours inside them at that moment. Who made "low", do you guess?

# %% tags=["active-ipynb"]
# def voters(step):
#     """The words that a merge changes, those that occur most often first."""
#     before = {word: cut(in_bytes(word), merges[:step]) for word in counts}
#     changed = [
#         word for word in counts if join(before[word], merges[step]) != before[word]
#     ]
#     return sorted(changed, key=counts.get, reverse=True)
#
#
# word = in_bytes(" sunflowers")
# stages = {"bytes": word}  # {what the picture says on the left: the symbols}
# for step, merge in enumerate(merges):
#     if join(word, merge) != word:
#         word = join(word, merge)
#         first = ",".join(voters(step)[:3])  # each with the space before it
#         stages[f"merge {step + 1}:{first}"] = word
# views.pieces(stages)

# %% [markdown]
# *Read from top to bottom: each row is the word after one more merge, and on its left are the three most frequent words that voted for it.*
#
# So "un" comes from *und* ("and"), "ers" from *teachers*, and the first voter for "low" is *slowly*; *flower* and *flowers* only helped. But then why is *flowers* cut into "_flow" and "ers", while *sunflowers* has no "flow"? Because the piece "_flow" begins with a space. Inside *sunflowers* there is no space, so "_flow" cannot be used.
#
# The cut is odd, but it lost no letter. Whether a model can make sense of such pieces is another question, and we come back to it.
#
# Each merge makes sentences shorter, but adds an embedding. The paper's vocabulary has about 37,000 entries, our translator's 3,500 ([evidence 10.3](evidence/10_data.ipynb) compares sizes). From here on we use the translator's own `tokenizer`, which is compiled and fast. It lists the single bytes in another order, so their ids are no longer the bytes plus 3, and a few other ids differ, too.

# %% [markdown]
# ## From pieces to one padded batch
#
# The second suspect is the batch. Several sentences become one tensor, with the help of three marks: the begin mark `<s>` of a target, the end mark `</s>` of a sentence, and `<pad>` for padding.
#
# The decoder learns to name the *next* token at every position of the target at once ([chapter 4](04_attention.ipynb)). For example, the target `<s> War die Mutter müde ? </s>` is used twice:
#
# - The decoder reads it without the last token: `<s> War die Mutter müde ?`
# - It should answer it without the first token: `War die Mutter müde ? </s>`. These right answers are called the **gold**.
#
# The source ends with `</s>`, too, but needs no `<s>`, because nobody has to name its first word. And a tensor needs rows of equal length, so shorter rows are filled up with `<pad>`. In such a row the last token is a `<pad>`. So the decoder then reads the `</s>`, too, and the gold below it is `<pad>`, which the loss leaves out.


# %%
@dataclass(frozen=True)
class Batch(Sides):  # Sides can move a batch to a GPU, and take it apart
    """Token ids, padded: source (B, S) and target (B, T).

    The source ends with the end mark; the target begins with the begin mark and ends
    with the end mark.
    """

    source: Tensor
    target: Tensor

    @property
    def decoder_input(self) -> Tensor:
        """What the decoder reads, (B, T - 1): all but the last token."""
        return self.target[:, :-1]

    @property
    def gold(self) -> Tensor:
        """What it should answer, (B, T - 1): the same shifted by one."""
        return self.target[:, 1:]


def encode_pairs(tokenizer: Tokenizer, pairs: list) -> list[tuple]:
    """[(source ids with end mark, target ids with begin and end marks), ...]"""
    begin, end = [tokenizer.bos_id], [tokenizer.eos_id]
    encoded = encode_sides(tokenizer, pairs)  # encodes both: [(ids, ids), ...]
    return [(source + end, begin + target + end) for source, target in encoded]


def pad(rows: list, pad_id: int) -> Tensor:
    """Lists of ids, filled up with pad_id to the longest: (B, length), int64."""
    if not rows:
        raise ValueError("a batch needs at least one sentence")
    longest = max(map(len, rows))
    filled = [[*row, *[pad_id] * (longest - len(row))] for row in rows]
    return torch.tensor(filled, dtype=torch.long)


def collate(encoded: list, pad_id: int = 0) -> Batch:
    """A `Batch` of encoded pairs."""
    sources = pad([source for source, _ in encoded], pad_id)
    targets = pad([target for _, target in encoded], pad_id)
    return Batch(sources, targets)


# %% tags=["active-ipynb"]
# two = [
#     (sentence, "Die Königin verlor ihre Sonnenblumen."),
#     ("Was the mother tired?", "War die Mutter müde?"),
# ]
# batch = collate(encode_pairs(tokenizer, two))
# blocks = {
#     "the encoder reads": batch.source,
#     "the decoder reads": batch.decoder_input,
#     "the decoder should answer": batch.gold,
# }
# row = batch.source[0].tolist()
# print(row, "is", tokenizer.decode(row))
# views.batch(blocks, tokenizer)

# %% [markdown]
# *Compare the last two blocks: at each position the answer is the token that the decoder reads at the next position. White is padding: in the second row even `</s>` is read, and the answer to it is padding.*
#
# The numbers below the boxes are all that the model reads. The printed line shows that they hold every letter of our sentence; only the 2 is no text but the end mark. And a row gets the same translation whatever other rows and padding its batch has, which [chapter 8](08_model.ipynb) tested. So the batch is innocent, too.

# %% [markdown]
# ## So who lost the sunflowers?
#
# The model has read every letter. So was it the odd cut that the model could not read, or had it only never been told what these five pieces mean together? To find out, we keep the model, its cut and its batches, and change nothing but sentences.
#
# Training has 136 pairs about a flower. We take thirty of them and write *sunflower* for *flower* and *Sonnenblume* for *Blume*. One copy of the translator, the *pupil*, gets a short lesson with these pairs. A second copy, its *twin*, gets the same lesson with the flowers left as they were. Each update also has eight old pairs, so that little is forgotten. If the cut is unreadable, neither of them will find the sunflowers.

# %% tags=["active-ipynb"]
# def after_lesson(lesson):
#     """A copy of our model after 60 updates on pairs of the lesson and old ones."""
#     learner, chance = copy.deepcopy(model).train(), random.Random(0)
#     optimizer = torch.optim.Adam(learner.parameters(), lr=0.001)
#     for _ in range(60):
#         mixed = chance.choices(lesson, k=8) + chance.sample(pairs, 8)
#         batch = collate(encode_pairs(tokenizer, mixed))
#         scores = learner(batch.source, batch.decoder_input)
#         # how far the logits are from the gold, without padding; see chapter 14
#         loss = cross_entropy(scores.transpose(1, 2), batch.gold, ignore_index=0)
#         optimizer.zero_grad()
#         loss.backward()
#         optimizer.step()
#     return learner.eval()
#
#
# def sunny(pair):
#     english, german = pair
#     german = german.replace("Blume", "Sonnenblume")
#     return english.replace(" flower", " sunflower"), german
#
#
# flowers = [pair for pair in pairs if " flower" in pair[0]][:30]
# print("one of the twin's pairs: ", *flowers[0])
# print("one of the pupil's pairs:", *sunny(flowers[0]))
# twin = after_lesson(flowers)
# pupil = after_lesson([sunny(pair) for pair in flowers])
# for name, student in {"pupil": pupil, "twin": twin}.items():
#     print(f"{name}:", *translate(student, tokenizer, [known, sentence]))

# %% [markdown]
# The pupil has found them: *Sonnenblumen* are sunflowers, and flowers are *Blumen* as before. The twin, whose lesson had only flowers, makes flowers of both. Both copies read our sentence in the same pieces and made as many updates. All that differs is one word in thirty pairs. **So it was the sentences.** The cut can be read, once there are sentences to learn it from. (With other pieces, such as "_sun" and "flowers", the model might have needed fewer of them, which we have not tried.) Pieces let a model *read* a word that it was never taught. To *understand* the word, the model must have met its pieces together, beside a translation.

# %% [markdown]
# ## Is a test drawn at random really new?
#
# Was that a fair test of the pupil? It was, because none of its thirty sentences was ours. That is why a corpus is divided in three. The **training** set moves the weights, the **validation** set tells on the way when to stop and what to choose, and the **test** set is scored once, at the end. A test sentence that training has seen is a **leak**.
#
# What would a leak do? We give a third copy a lesson that is nothing but our test pair. We ask this leaky copy and the honest pupil for our sentence, and for all the flower sentences of validation and test with sunflowers in them. In how many will each write a sunflower?

# %% tags=["active-ipynb"]
# leaky = after_lesson([(sentence, "Die Königin verlor ihre Sonnenblumen.")])
#
# unseen = read_corpus("bundled", "validation") + read_corpus("bundled", "test")
# others = [sunny(pair)[0] for pair in unseen if " flower" in pair[0]]
# for name, student in {"honest": pupil, "leaky": leaky}.items():
#     ours, *answers = translate(student, tokenizer, [sentence, *others])
#     found = sum("Sonnenblume" in german for german in answers)
#     print(f"{name}: {ours} And in {found} of {len(others)} other sentences.")

# %% [markdown]
# On the leaked sentence both look equally good. Only new sentences show that the leaky copy has learned a sentence by heart, and not a word.
#
# A leak need not be a whole pair. If training has the same English sentence with another translation, or the same German one, half of the answer has been shown. Do such leaks occur if we draw at random? Take **Tatoeba**, 169,813 pairs of short sentences that volunteers translated, often one sentence several times. Our record of it has a number for each different sentence, which is enough to see which are equal. We draw 2,000 pairs for a test. How many share a sentence with training?

# %% tags=["active-ipynb"]
# def leaked(test, training):
#     seen = {sentence for pair in training for sentence in pair}
#     return [pair for pair in test if seen & set(pair)]
#
#
# tatoeba = numbered_tatoeba()
# mixed = random.Random(0).sample(tatoeba, len(tatoeba))
# test, rest = mixed[:2000], mixed[2000:]
# print(f"{len(leaked(test, rest)) / len(test):.0%} of the test pairs have leaked")

# %% [markdown]
# Two of five. The cure is to leave out of training whatever shares a sentence with the test. What does that cost Tatoeba? The picture shows the cure for five pairs, of which the second is drawn for the test.

# %% tags=["active-ipynb"]
# def kept_clean(test, rest):
#     """The pairs of rest that share no sentence with the test."""
#     asked = {sentence for pair in test for sentence in pair}
#     return [pair for pair in rest if not asked & set(pair)]
#
#
# training = kept_clean(test, rest)
# print(f"{len(leaked(test, training)) / len(test):.0%} of the test pairs have leaked")
# lost = len(rest) - len(training)
# print(f"{lost:,} pairs are left out, {lost / len(tatoeba):.1%} of the corpus")
#
# five = [
#     ("stop", "halt"),
#     ("stop", "hör auf"),
#     ("give up", "hör auf"),
#     ("we sing", "wir singen"),
#     ("run", "lauf"),
# ]
# drawn, remaining = five[1:2], five[:1] + five[2:]
# clean = kept_clean(drawn, remaining)
# left_out = [pair for pair in remaining if pair not in clean]
# views.kept_apart({"test": drawn, "left out": left_out, "training": clean})

# %% [markdown]
# *Each line is a pair of sentences. The test pair shares "stop" with one pair and "hör auf" with another, so both are left out.*
#
# The leaks are gone, for one pair in a hundred. Near copies, which differ in a single word, are left; exercise 2 looks for them.

# %% [markdown]
# ## How much of a batch is nothing?
#
# One more thing is decided before training: which sentences share a batch. A batch is a rectangle, as wide as its longest sentence, and the model computes every place of it. For example, sentences of 3, 4, 9 and 30 tokens have 46 together, but their rectangle has $4 \cdot 30 = 120$ places.
#
# How much padding has our corpus, in batches of sixty pairs at random? And if we put pairs of similar length together, as the paper does? A pair has two lengths, so we try two ways to sort. The first goes by the longer side alone. The second sorts pairs whose longer sides are equal once more, by how much longer the source is than the target. Guess what is left to padding each time.

# %% tags=["active-ipynb"]
# def sixties(order):
#     return [order[i : i + 60] for i in range(0, len(order), 60)]
#
#
# def padding_share(batches):
#     real = places = 0
#     for batch in batches:
#         for side in zip(*[encoded[i] for i in batch]):  # the sources, the targets
#             lengths = [len(ids) for ids in side]
#             real += sum(lengths)
#             places += len(lengths) * max(lengths)
#     return 1 - real / places
#
#
# encoded = encode_pairs(tokenizer, pairs)
# mixed = random.Random(0).sample(range(len(encoded)), len(encoded))
# longer = [max(len(source), len(target)) for source, target in encoded]
# more = [len(source) - len(target) for source, target in encoded]
# ways = {
#     "at random": sixties(mixed),
#     "by the longer side": sixties(sorted(mixed, key=lambda i: longer[i])),
#     "by both sides": sixties(sorted(mixed, key=lambda i: (longer[i], more[i]))),
# }
# for way, batches in ways.items():
#     print(f"{way}: {padding_share(batches):.0%} of all places are padding")
# views.padding(encoded, ways)

# %% [markdown]
# *Each line is a pair, padding is grey here, and each panel is the batch with the median padding: sorting by the longer side takes the grey from the targets, and sorting by both sides takes it from the sources, too.*
#
# The German side is mostly the longer one, so the first way already sorts the targets.
#
# But after sorting, the last batch is sixty of the longest sentences, and may not fit into memory. The cure is to count tokens instead of sentences. We fill a batch until the next pair would make its rectangle too large. A batch of the paper has about 25,000 source tokens and 25,000 target tokens; for our small model we take 2,048.
#
# Training should not see all the short sentences first, so the batches come in random order. And we shuffle the pairs before we sort them, so that equally long pairs meet other neighbours in the next pass over the corpus.


# %%
def similar(pair: tuple) -> tuple[int, int]:
    """A key to sort encoded pairs by: the longer side, then how much more the source has."""
    source, target = map(len, pair)
    longer, more = max(source, target), source - target
    # up and down in turn, so that neighbours of different length are similar, too
    return longer, more if longer % 2 else -more


def fill_batches(order: list, lengths: list, batch_tokens: int) -> list[list]:
    """Cut sentences in this order into batches of at most batch_tokens places each.

    lengths: of the sentences, in the same order, short ones first.
    """
    batches: list[list] = [[]]
    for i, length in zip(order, lengths):
        # this sentence is the longest so far, so it would be the rectangle's width
        if batches[-1] and (len(batches[-1]) + 1) * length > batch_tokens:
            batches.append([])
        batches[-1].append(i)
    return batches


def token_batches(encoded: list, batch_tokens: int, seed: int = 0) -> list[list[int]]:
    """The batches of an epoch, lists of indices, in random order.

    A batch holds pairs of similar length, at most batch_tokens a side with padding; a
    pair longer than that stands alone. Every pair comes once. The seed decides
    everything; use another for every epoch.
    """
    # an epoch is one pass over all pairs
    chance = random_numbers(seed)  # a random generator of numpy
    mixed = shuffled(len(encoded), chance)  # all indices, in random order
    order = sorted(mixed, key=lambda i: similar(encoded[i]))
    lengths = [max(map(len, encoded[i])) for i in order]
    batches = fill_batches(order, lengths, batch_tokens)
    return [batches[i] for i in chance.permutation(len(batches))]


# %% tags=["active-ipynb"]
# batches = token_batches(encoded, 2048)
# print(f"{len(batches)} batches, {padding_share(batches):.0%} of all places are padding")

# %% [markdown]
# ## What to keep
#
# - A tokenizer learns its pieces by counting: what stands together most often is joined, so that frequent words become whole, and every other word can still be spelled.
# - The model reads a padded row of numbers; the decoder's answer is its input shifted by one, and batches of similar lengths keep padding rare.
# - A model can read a word that it was never taught, but it understands only what its training sentences have shown; whether it does, only a test without leaks can tell.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A text has the words *low* 5 times, *lower* 2, *new* 6 and *newer* 3. Find the first four merges of its letters. How do they cut *renew* and *lowest*, of which the text has neither? (Where two neighbours are equally frequent, take those that you meet first.)
#
# <details><summary>Answer</summary>
#
# The neighbours are: "l o" 7, "o w" 7, "w e" 2 + 3 = 5, "e r" 2 + 3 = 5, "n e" 9, "e w" 9. So "n e" is joined first, which is met before "e w", then "ne" and "w" (9), and then "l o" (7), "lo" and "w" (7). *Renew* is "r", "e", "new", and *lowest* is "low", "e", "s", "t". The text has no "s" and no "t", but as bytes they are in the vocabulary.
# </details>
#
# **2. In code.** Find near copies. A test sentence is a near copy if some training sentence has as many words, and at most one word is different. Case and punctuation do not count (`folded` leaves them out). The word that differs may be any word, so what would you look up in a set?

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.data import check_near_copies
#
#
# def folded(text):
#     return " ".join(re.findall(r"\w+", text.casefold()))
#
#
# def near_copies(test, training):
#     """Two lists of sentences -> those of test with a near copy in training."""
#     ...
#
#
# check_near_copies(near_copies)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def with_blanks(text):  # a blank in place of each word in turn
#     words = folded(text).split()
#     return {(*words[:i], None, *words[i + 1 :]) for i in range(len(words))}
#
#
# def near_copies(test, training):
#     known = set()
#     for text in training:
#         known |= with_blanks(text)
#     return [text for text in test if with_blanks(text) & known]
# ```
#
# Two sentences are near copies if they are equal with a blank in the same place. In Tatoeba, of the English test sentences with four words or more, 29% are near copies, even with the book's own split, which also leaves out copies with other case or punctuation ([evidence 10.4](evidence/10_data.ipynb)).
# </details>
#
# **3. To think about, and to try.** How few sentences are enough? Give `after_lesson` only the first one, three or ten sunny pairs, and count the sunflowers in `others`. Before you run it: with how many pairs can a model tell the sunflowers from the rest of the sentence?
#
# <details><summary>Answer</summary>
#
# With one pair we found 1 of 14, with three 10, and with ten 11. In a single sentence any word of the German may belong to the five pieces, so little more can be learned than the sentence by heart. Three sentences have little in common but the sunflower.
# </details>
#
# **Next.** Our pupil learned its sunflowers when training moved its weights. Which of them, in which direction, and how far? [Chapter 12](12_optimizer.ipynb), the next of the main path, walks down a valley to find out.
