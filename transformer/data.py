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
# A small model ships with this book. It has learned from 20,000 English sentences and their German translations. We give it two sentences that differ in one word:

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
from torch.nn.utils.rnn import pad_sequence

from transformer.core.batches import Sides
from transformer.corpora.tokenizer import Tokenizer, encode_sides
from transformer.corpora.windows import random_numbers, shuffled, similar

# %% tags=["active-ipynb"]
# import random
# import re
# from collections import Counter
#
# from transformer import load, read_corpus, translate, views
# from transformer.corpora.splits import numbered_tatoeba
# from transformer.corpora.windows import padding_share

# %% tags=["active-ipynb"]
# model, tokenizer = load("bundled")
# known = "The gardener lost her flowers."
# sentence = "The gardener lost her sunflowers."  # or yours
# for english in (known, sentence):
#     print(english, "->", *translate(model, tokenizer, [english]))

# %% [markdown]
# The first translation is right but for the gardener, who has become a man. The second says that the gardener lost *sie*, German for "them", or "her". Where have the sunflowers gone?
#
# You may suspect the weights. But before the first weight was trained, three things had been decided: how a sentence is **cut**, how it becomes a row of a **batch**, and which sentences training would see, the **split**. Each could lose a flower, or leave the model without a clue to it. So we follow our sentence from the keyboard to the tensor and ask: **what does the model actually read, and who lost the sunflowers?** Which of the three do you suspect?

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
# The model needs a fixed list of tokens, its **vocabulary**, because each entry has an embedding and an output score of its own ([chapter 6](06_embeddings.ipynb)). Why not list all the words of the training sentences? What is not in the list would be written `<unk>`, for "unknown":

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
# print(f"flowers: {counts[' flowers']} times, sunflowers: {counts[' sunflowers']} times")
#
# words, letters = counts.total(), sum(map(len, texts))
# print(
#     f"{words / len(texts):.0f} words in a sentence, {letters / words:.1f} letters in a word"
# )

# %% [markdown]
# With such a list the sunflowers would be lost right here. And real text is full of new words. Whoever has read 18,000 German sentences of the European Parliament still meets about one unknown word in each sentence that follows ([evidence 10.1](evidence/10_data.ipynb)).
#
# Letters lose nothing. But with about five letters in a word, a sentence of letters would be five times as long. Attention compares every token with every other, so it would have more than 25 times as much to do.
#
# So we want whole words where they are frequent, and parts where they are not. Counting finds both.

# %% [markdown]
# ## Join what stands together most often
#
# The paper uses **byte-pair encoding** (Sennrich et al., 2016). It begins with letters, looks for the two neighbours that stand together most often, and joins them into one symbol wherever they do. Then it counts again. Each such step is a **merge**.
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
# Here is a whole tokenizer. It learns 700 merges from both languages together. An entry's place in the vocabulary is its **token id**, the number that the model is given.

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
# *Look at "é" and "鍵": their bytes stand alone, as numbers. Below each box is its token id, for a single byte the byte plus 3, because the three marks come first.*
#
# From the ids, the text has come back as it was. An unseen word falls apart, at worst into its bytes, but it is never lost. (**Deviation:** in the paper's time byte-pair encoding joined letters, in spite of its name.)

# %% [markdown]
# ## Which words have cut the sunflowers?
#
# But why these five pieces? A merge is an election. Each word votes for its neighbours, as often as it occurs, and the neighbours with most votes win. So we can ask who voted for each merge in our word: all words that had these neighbours at that moment. Who made "low"? Guess before you look.

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
# stages = {"bytes": word}
# for step, merge in enumerate(merges):
#     if join(word, merge) != word:
#         word = join(word, merge)
#         first = ",".join(voters(step)[:3])  # each with the space before it
#         stages[f"merge {step + 1}:{first}"] = word
# views.pieces(stages)

# %% [markdown]
# *Read from top to bottom: each row is the word after one more merge, and on its left are the three most frequent words that voted for it.*
#
# So "un" comes from *und* ("and"), "ers" from *teachers*, and the first voter for "low" is *slowly*. Each word voted with its own letters, and none with sunflowers in mind. But then why does *flowers* keep its "flow", and *sunflowers* not? Because that piece begins with a space. It is what a *word* may begin with, and inside *sunflowers* there is no space. That is how a tokenizer can cut one word in two ways.
#
# The cut is odd, but it lost no letter. Whether a model can make sense of such pieces is another question, and we keep it for the end.
#
# Each merge makes sentences shorter, but adds an embedding. The paper's vocabulary has about 37,000 entries, that of our model 3,500 ([evidence 10.3](evidence/10_data.ipynb)). From here on we use the model's own `tokenizer`, which does the same in compiled code.

# %% [markdown]
# ## From pieces to one padded batch
#
# The second suspect is the batch. Several sentences become one tensor, with the help of three marks: `<s>` is the beginning of a target, `</s>` is the end of a sentence, and `<pad>` is an empty place.
#
# The decoder learns to name the *next* token at every place of the target at once ([chapter 4](04_attention.ipynb)). For that, a target is written once, from `<s>` to `</s>`, and used twice. The decoder reads all of it but the last token. What it should answer is all of it but the first token; these right answers are called the **gold**.
#
# The source ends with `</s>`, too, but needs no `<s>`, because nobody has to name its first word. And a tensor needs rows of equal length, so shorter rows are filled up with `<pad>`.


# %%
@dataclass(frozen=True)
class Batch(Sides):  # Sides: what later chapters do with a batch
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
    encoded = encode_sides(tokenizer, pairs)  # [(source ids, target ids), ...]
    return [(source + end, begin + target + end) for source, target in encoded]


def pad(rows: list, pad_id: int) -> Tensor:
    """Lists of ids, filled up with pad_id to the longest: (B, length), int64."""
    if not rows:
        raise ValueError("a batch needs at least one sentence")
    tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=pad_id)


def collate(encoded: list, pad_id: int = 0) -> Batch:
    """A `Batch` of encoded pairs."""
    sources = pad([source for source, _ in encoded], pad_id)
    targets = pad([target for _, target in encoded], pad_id)
    return Batch(sources, targets)


# %% tags=["active-ipynb"]
# two = [
#     (sentence, "Die Gärtnerin verlor ihre Sonnenblumen."),
#     ("Was the mother tired?", "War die Mutter müde?"),
# ]
# batch = collate(encode_pairs(tokenizer, two))
# blocks = {
#     "the encoder reads": batch.source,
#     "the decoder reads": batch.decoder_input,
#     "the decoder should answer": batch.gold,
# }
# views.batch(blocks, tokenizer)

# %% [markdown]
# *Compare the last two blocks: at each place the answer is the token that is read at the next place. White is padding, which masks hide from attention and which the loss leaves out.*
#
# What the model reads are the numbers below the boxes, and nothing else. Is our sentence in them?

# %% tags=["active-ipynb"]
# row = batch.source[0].tolist()
# assert tokenizer.decode(row) == sentence
# print(row, "is", tokenizer.decode(row))

# %% [markdown]
# Every letter of it. And neither padding nor neighbours matter to a row, which [chapter 8](08_model.ipynb) tested. The second suspect may go, too.

# %% [markdown]
# ## How much of a batch is nothing?
#
# The batch lost no flower, but it can waste time. A batch is a rectangle, as wide as its longest sentence, and the model computes every place of it. For example, sentences of 3, 4, 9 and 30 tokens have 46 together, but their rectangle has $4 \cdot 30 = 120$ places.
#
# How much padding has our corpus, in batches of sixty pairs at random? And if we put pairs of similar length together, as the paper does? A pair has two lengths, so there are two ways to sort. The simple one goes by the longer side alone. The other one (`similar`) also puts pairs together whose two sides differ equally much. Guess what is left to padding each time.

# %% tags=["active-ipynb"]
# def sixties(order):
#     return [order[i : i + 60] for i in range(0, len(order), 60)]
#
#
# encoded = encode_pairs(tokenizer, pairs)
# mixed = random.Random(0).sample(range(len(encoded)), len(encoded))
# longer = [max(len(source), len(target)) for source, target in encoded]
# ways = {
#     "at random": sixties(mixed),
#     "by the longer side": sixties(sorted(mixed, key=lambda i: longer[i])),
#     "by both sides": sixties(sorted(mixed, key=lambda i: similar(encoded[i]))),
# }
# for way, batches in ways.items():
#     print(f"{way}: {padding_share(encoded, batches):.0%} of all places are padding")
# views.padding(encoded, ways)

# %% [markdown]
# *Look for the grey, which is padding: sorting by the longer side takes it from the targets, and sorting by both sides takes it from the sources, too.* (Each line is a pair, and each panel the batch with the median padding.)
#
# But now the last batch holds sixty long sentences, which may not fit into memory. The cure is to count tokens instead of sentences. A batch of the paper has about 25,000 source tokens and 25,000 target tokens. We fill a batch until the next pair would make its rectangle too large.
#
# Training should not see all the short sentences first, so the batches come in random order. And we shuffle the pairs before we sort them, so that equally long pairs meet other neighbours in the next pass over the corpus.


# %%
def fill_batches(order: list, lengths: list, batch_tokens: int) -> list[list]:
    """Cut sentences in this order into batches of at most batch_tokens places each.

    lengths: of the sentences, in the same order, short ones first.
    """
    batches: list[list] = [[]]
    for i, length in zip(order, lengths):  # the newest sentence is the longest so far
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
    chance = random_numbers(seed)  # numpy's
    mixed = shuffled(len(encoded), chance)  # all indices, in random order
    order = sorted(mixed, key=lambda i: similar(encoded[i]))
    lengths = [max(map(len, encoded[i])) for i in order]
    batches = fill_batches(order, lengths, batch_tokens)
    return [batches[i] for i in chance.permutation(len(batches))]


# %% tags=["active-ipynb"]
# batches = token_batches(encoded, batch_tokens=2048)
# sizes = [len(batch) * max(longer[i] for i in batch) for batch in batches]
# print(f"{len(batches)} batches, {padding_share(encoded, batches):.0%} padding")
# print(f"the smallest rectangle has {min(sizes):,} places, the largest {max(sizes):,}")

# %% [markdown]
# Hardly any padding is left, and no batch is larger than the memory allows.
#
# ## Is a test drawn at random really new?
#
# The third suspect is the split. Our sentence is new to the model, which makes it an honest test. Had training shown this very pair, the model could have written the sunflowers by heart.
#
# That is why a corpus is split in three. The **training** set moves the weights, the **validation** set tells on the way when to stop and what to choose, and the **test** set is scored once, at the end. A test sentence that training has seen is a **leak**.
#
# Are there leaks if we draw at random? Take **Tatoeba**, 169,813 pairs of short everyday sentences. Here it matters only which of them are equal, so each different sentence has become a number. We draw 2,000 pairs for a test. How many share a sentence with training?

# %% tags=["active-ipynb"]
# def leaked(test, training):
#     seen = {sentence for pair in training for sentence in pair}
#     return [pair for pair in test if seen & set(pair)]
#
#
# tatoeba = numbered_tatoeba()
# print("for example:", *tatoeba[160_001:160_004])
#
# mixed = random.Random(0).sample(tatoeba, len(tatoeba))
# test, rest = mixed[:2000], mixed[2000:]
# print(f"{len(leaked(test, rest)) / len(test):.0%} of the test pairs have leaked")

# %% [markdown]
# Two of five. The first two examples show why: they are different pairs, but they share a German sentence. The cure is to leave out of training whatever shares a sentence with the test. Here it is for five pairs, the second for the test:

# %% tags=["active-ipynb"]
# def kept_clean(test, rest):
#     """The pairs of rest that share no sentence with the test."""
#     asked = {sentence for pair in test for sentence in pair}
#     return [pair for pair in rest if not asked & set(pair)]
#
#
# five = [
#     ("stop", "halt"),
#     ("stop", "hör auf"),
#     ("give up", "hör auf"),
#     ("we sing", "wir singen"),
#     ("run", "lauf"),
# ]
# chosen, others = five[1:2], five[:1] + five[2:]
# clean = kept_clean(chosen, others)
# left_out = [pair for pair in others if pair not in clean]
# views.kept_apart({"test": chosen, "left out": left_out, "training": clean})

# %% [markdown]
# *Each line is a pair of sentences: whatever shares a sentence with the test pair is left out.*
#
# Does it cure Tatoeba, and what does it cost?

# %% tags=["active-ipynb"]
# training = kept_clean(test, rest)
# print(f"{len(leaked(test, training)) / len(test):.0%} of the test pairs have leaked")
# lost = len(rest) - len(training)
# print(f"{lost:,} pairs are left out, {lost / len(tatoeba):.1%} of the corpus")

# %% [markdown]
# The leaks are gone, for one pair in a hundred. Near copies, which differ in a single word, are still there; exercise 2 looks for them. (The book's own splits are stricter, [evidence 10.4](evidence/10_data.ipynb).)

# %% [markdown]
# ## So who lost the sunflowers?
#
# | suspect | what it did to the sunflowers |
# |---|---|
# | the cut | made five tokens of them, and lost no letter |
# | the batch | put the five ids into a row, in their order |
# | the split | gave training no sentence about them |
#
# Nothing was lost on the way: the model has read every letter. But was it the odd cut that it could not read, or the missing sentences? The two came together, so we need somebody who had the one without the other. The package's everyday model learned from Tatoeba, where the training set has four sentences with a sunflower. How does it cut them?

# %% tags=["active-ipynb"]
# everyday, its_tokenizer = load("tatoeba")
# print(its_tokenizer.pieces(sentence))
# print(*translate(everyday, its_tokenizer, [sentence]))

# %% [markdown]
# Its cut is almost as odd, and *Sonnenblumen* are sunflowers. So an odd cut need not be fatal, if training has shown the pieces together, beside a translation. (That model is larger, too, and may have made something of "sun".) Our model reads five numbers whose company it has never met. **That leaves the third suspect:** what a model can know is decided when somebody chooses the sentences for its training.

# %% [markdown]
# ## What to keep
#
# - A tokenizer learns its pieces by counting: what stands together most often is joined, so that frequent words become whole, and every other word can still be spelled.
# - The model reads a padded row of numbers; the decoder's answer is its input shifted by one, and batches of similar lengths keep padding rare.
# - A model can read words that it was never taught; whether it understands them is shown only by a test that shares no sentence with training.

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
# **2. In code.** Find near copies: the test sentences that differ from a training sentence of as many words in at most one word. Case and punctuation do not count (`folded` leaves them out). To compare each sentence with each takes too long. The word that differs may be any word, so what would you look up in a set?

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
# Two sentences are near copies if they are equal with a blank in the same place. In our corpus 27 of 1,000 English test sentences are near copies, and in Tatoeba, even with the book's stricter split, 29% of those with four words or more ([evidence 10.4](evidence/10_data.ipynb)).
# </details>
#
# **3. To think about.** A friend learns her vocabulary from training and test set together, "because it holds no translations". Her model never sees a test pair. Is that a leak? And would you notice it in her score?
#
# <details><summary>Answer</summary>
#
# Yes, a small one. A word that only the test has may get a token of its own, whose embedding is then never trained, so the model is likely to do *worse* on it than on known pieces. But the test's sentences get shorter than new text would be. The score may move either way. What it no longer tells you is how the model does on text that nobody has looked at.
# </details>
#
# **Next.** The everyday model learned its sunflowers when training moved its weights. Which of them, in which direction, and how far? [Chapter 12](12_optimizer.ipynb) walks down a valley to find out.
