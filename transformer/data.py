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
# *Section 5.1 of the paper. Reading takes half an hour, running half a minute.*
#
# Between your keyboard and a Transformer, a sentence is cut up. Below is a sentence, cut by a program that has read 20,000 English sentences and their German translations. The word "sunflowers" was in none of them. Before you look: where would you cut it?

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
from transformer.corpora.windows import random_numbers, shuffled

# %% tags=["active-ipynb"]
# import random
# import re
# from collections import Counter, defaultdict
#
# from transformer import load, read_corpus, translate, views
# from transformer.corpora.splits import numbered_tatoeba

# %% tags=["active-ipynb"]
# pairs = read_corpus("bundled", "train")  # [(English, German), ...]
# texts = [text for pair in pairs for text in pair]
# tokenizer = Tokenizer.train(texts, vocab_size=2000)
#
# sentence = "The gardener lost her sunflowers."  # or yours
# views.pieces({"": tokenizer.pieces(sentence)})

# %% [markdown]
# *Each box is a token, with `_` for the space in front of it: a pale box is a whole word or a punctuation mark, and a darker box is a part of a word.*
#
# Familiar words are whole. But the sunflowers have become "s", "un", "f", "low" and "ers", and nobody who knows flowers would cut them like that. Where do such pieces come from? How do they become the tensor that the model reads? And which sentences must be kept out of it? We follow the sunflowers through these three questions.

# %% [markdown]
# ## Why not words? Why not letters?
#
# The model needs a fixed list of pieces, its **vocabulary**, because each entry has an embedding and an output score of its own ([chapter 6](06_embeddings.ipynb)). So why not list all words?
#
# In the corpus of this chapter, a list would do. Its sentences are made up: a program of this book writes them by the rules of a grammar, and the program knows few words. But our sentence is not from the corpus. A token that stands for whatever is not in the list is usually written `<unk>`, for "unknown":

# %% tags=["active-ipynb"]
# # A word or a punctuation mark, each with the space before it, or other white space
# WORD = re.compile(r" ?\w+| ?[^\w\s]|\s")
#
#
# def words_of(text):
#     return WORD.findall(" " + text)
#
#
# counts = Counter(word for text in texts for word in words_of(text))
# print(f"{len(counts):,} different words and punctuation marks")
# print(*[word if word in counts else " <unk>" for word in words_of(sentence)], sep="")
#
# letters = sum(map(len, texts)) / len(texts)
# print(
#     f"a sentence has {counts.total() / len(texts):.0f} words, or {letters:.0f} letters"
# )

# %% [markdown]
# A model with this list can neither read the lost thing nor write it. And real text is full of such words. Take speeches from the European Parliament: whoever has read 18,000 German sentences of them still meets about one new word in each that follows ([evidence 10.1](evidence/10_data.ipynb)).
#
# Letters are few, and every word can be spelled with them. But by the last line of the output, a sentence of letters is more than five times as long. Attention compares every token with every other, so it would have nearly thirty times as much to do.
#
# So we want something in between: whole words where they are frequent, and parts where they are not. Counting finds both.

# %% [markdown]
# ## Join what stands together most often
#
# The paper uses **byte-pair encoding** (Sennrich et al., 2016). It begins with letters, looks for the two neighbours that stand together most often, and joins them into one symbol wherever they do. Then it counts again. Each such step is a **merge**.
#
# Take a text with five different words: *land* 6 times, *lands* 2, *hand* 4, *hands* 3 and *man* 2. The neighbours "l a" are in *land* and *lands*, so they occur 6 + 2 = 8 times. The neighbours "a n" are in all five words: 6 + 2 + 4 + 3 + 2 = 17. No other neighbours occur as often, so "an" becomes one symbol. What will be joined next?


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
    if neighbours[0] not in word:
        return word
    joined: list = []
    for symbol in word:
        if joined and (joined[-1], symbol) == neighbours:
            joined[-1] += symbol
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


# %% tags=["active-ipynb"]
# text = {"land": 6, "lands": 2, "hand": 4, "hands": 3, "man": 2}
# words = {tuple(word): times for word, times in text.items()}
# for _ in range(5):
#     (most,) = learn_merges(words, 1)
#     times = count_neighbours(words)[most]
#     words = {join(word, most): number for word, number in words.items()}
#     print(f"{''.join(most):6}{times:3} times  ", "   ".join(map(" ".join, words)))

# %% [markdown]
# "an" and "d" come next, 15 times, and then *land*, *hand* and *hands* become whole. We stop after five steps; one step more would make *lands* whole, too. And *sand*, which never occurred, can be written all the same: "s" and "and".
#
# The merges, in their order, are all that has been learned. To cut a new word, begin with its letters and go through the same merges in the same order:


# %%
def cut(word: tuple, merges: list[tuple]) -> tuple:
    """A word's symbols, joined by merges that were learned before."""
    for neighbours in merges:
        word = join(word, neighbours)
    return word


# %% [markdown]
# ## What about a letter that was never seen?
#
# Merging begins with the letters of the training text. Our corpus contains no "é" and no "鍵", which is Japanese for a key, so both would be `<unk>` again. And a list of all letters is no way out, since the world has more than 150,000 characters.
#
# Computers met this problem long ago. In **UTF-8**, the usual way to store text, a character is one to four **bytes**, and a byte is a number from 0 to 255:

# %% tags=["active-ipynb"]
# for letter in "ké鍵":
#     print(letter, *letter.encode())

# %% [markdown]
# So let the merging begin with bytes. There are only 256, we put all of them into the vocabulary, and nothing is ever unknown. How much of the code above must change for this? Nothing. `join` joins two symbols with `+=`, and Python joins bytes as it joins letters. We only have to take a word apart:


# %%
def in_bytes(word: str) -> tuple:
    """The bytes of a word in UTF-8, each a symbol of its own."""
    return tuple(bytes([byte]) for byte in word.encode())


# %% [markdown]
# Here is a whole tokenizer. It learns 700 merges from both languages of the corpus together. A word takes the space in front of it along, so that the pieces remember where words begin. And an entry's place in the vocabulary is its number, the **token id** that the model is given:

# %% tags=["active-ipynb"]
# merges = learn_merges({in_bytes(word): times for word, times in counts.items()}, 700)
#
# vocabulary = ["<pad>", "<s>", "</s>"]  # three marks, which we need later
# vocabulary += [bytes([byte]) for byte in range(256)]
# vocabulary += [left + right for left, right in merges]
#
#
# def encode(text):
#     ids = []
#     for word in words_of(text):
#         for piece in cut(in_bytes(word), merges):
#             ids.append(vocabulary.index(piece))
#     return ids
#
#
# def decode(ids):
#     text = b"".join(vocabulary[i] for i in ids).decode()
#     return text[1:]  # without the space that words_of puts in front
#
#
# strange = "A kangaroo from Québec lost her 鍵."
# ids = encode(strange)
# views.pieces({"": [vocabulary[i] for i in ids]}, [ids])

# %% [markdown]
# *Look at "é" and "鍵": their bytes stand alone, as numbers in darker boxes. Below each box is its token id, which for a single byte is the byte plus 3, because the three marks come first.*
#
# No merge has ever joined the bytes of "é" or of "鍵", because the corpus has neither. The worst that can happen to a word is that it falls apart into its bytes. But nothing is lost. From the ids, the text comes back as it was:

# %% tags=["active-ipynb"]
# assert decode(ids) == strange
# print(decode(ids))

# %% [markdown]
# **Deviation:** when the paper was written, byte-pair encoding joined letters, in spite of its name. Joining bytes became usual with GPT-2.
#
# ## Which words have cut the sunflowers?
#
# Now we can answer the first question. Let us watch "sunflowers" go through the 700 merges, of which nearly all find nothing to join in it. Which do?

# %% tags=["active-ipynb"]
# word = in_bytes(" sunflowers")
# stages = {"bytes": word}
# for step, merge in enumerate(merges, 1):
#     if join(word, merge) != word:
#         word = join(word, merge)
#         stages[f"merge {step}"] = word
# views.pieces(stages)

# %% [markdown]
# *Read from top to bottom: each row is the word after the merge that is named on its left, until the five pieces of the first picture are there.*
#
# The very first merge of all made "er". And whose pieces are the others? We can ask which frequent words of the corpus contain them:

# %% tags=["active-ipynb"]
# for piece in ("un", "low", "ers"):
#     having = [word.strip() for word, times in counts.most_common() if piece in word]
#     print(piece, "is in", ", ".join(having[:4]))

# %% [markdown]
# So "low" is at home in *yellow* and *slowly*, and "un" in *und*, which is German for "and"; among the words with "low", *flower* is only the fourth. (Which of them brought each merge about, the letters alone do not prove: a word teaches a merge only while its two symbols still stand side by side.) The tokenizer knows nothing about flowers: it has only counted.
#
# When should merging stop? Each merge makes sentences shorter, which saves work. But each merge is also one more embedding, and the more entries share a text, the more rarely an entry is seen. So a larger corpus can feed more entries. The program at the top went on to 2,000 for 20,000 sentence pairs, and the paper's has about 37,000 for 4.5 million ([evidence 10.3](evidence/10_data.ipynb) draws both sides of this trade).
#
# From here on we use the program at the top, `Tokenizer`. It does the same in compiled code. Its ids differ from ours: it lists the 256 bytes in another order, and may break ties otherwise. Are its cuts the same? We let it stop where we stopped, and try 200 sentences:

# %% tags=["active-ipynb"]
# small = Tokenizer.train(texts, len(vocabulary))
# tried = random.Random(0).sample(texts, 200)
# alike = 0
# for text in tried:
#     ours = [vocabulary[i] for i in encode(text)]
#     alike += ours == small.bytes_of_each_piece(text)
# print(f"{alike} of {len(tried)} sentences are cut alike")

# %% [markdown]
# ## From pieces to a batch
#
# How do token ids become the tensor that the model reads? The three marks of the vocabulary are for this. They stand for no text: `<s>` is the beginning of a target, `</s>` is the end of a sentence, and `<pad>` is an empty place.
#
# The decoder learns to name the *next* token at every place of the target at once ([chapter 4](04_attention.ipynb)). For that, a target is written once, from `<s>` to `</s>`, and used twice. The decoder reads all of it but the last token. What it should answer is all of it but the first token; these right answers are called the **gold**. So the first thing that it reads is `<s>`, and the last thing that it must say is `</s>`: it has finished.
#
# The source ends with `</s>`, too, as is usual. It needs no `<s>`, because nobody has to name its first word. And a tensor needs rows of equal length, so the shorter rows are filled up with `<pad>`.


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
#     "source": batch.source,
#     "decoder reads": batch.decoder_input,
#     "should answer": batch.gold,
# }
# views.batch(blocks, tokenizer)

# %% [markdown]
# *Compare the last two blocks: at each place the answer is the token that is read at the next place. White is padding, which masks hide from attention and which the loss leaves out.*
#
# *Sonnenblumen* is what the sunflowers are in German, and the tokenizer has cut it as oddly. One place needs a second look. In the shorter row the decoder still reads its own `</s>`, and its answer there is padding. The loss leaves padding out, so it does not matter what the model says here.

# %% [markdown]
# ## Padding is work for nothing
#
# A batch is a rectangle, as wide as its longest sentence, and the model computes every place of it. Put sentences of 3, 4, 9 and 30 tokens together: they have 46 tokens, but the rectangle has $4 \cdot 30 = 120$ places. More than half of the work is for nothing. How much is it in our corpus, if we draw batches of sixty pairs at random?


# %%
def padding_share(encoded: list, batches: list[list[int]]) -> float:
    """The part of all places in the batches, both sides, that holds padding."""
    real = places = 0
    for batch in batches:
        for side in zip(*(encoded[i] for i in batch)):  # the sources, the targets
            lengths = [len(ids) for ids in side]
            real += sum(lengths)
            places += len(lengths) * max(lengths)
    return 1 - real / places


# %% tags=["active-ipynb"]
# def sixties(order):
#     return [order[i : i + 60] for i in range(0, len(order), 60)]
#
#
# encoded = encode_pairs(tokenizer, pairs)
# mixed = random.Random(0).sample(range(len(encoded)), len(encoded))
# print(f"{padding_share(encoded, sixties(mixed)):.0%} of all places are padding")

# %% [markdown]
# So let us do as the paper does, and put pairs of similar length together. We sort all pairs by their longer side, and cut the sorted list into batches of sixty:

# %% tags=["active-ipynb"]
# longer = [max(len(source), len(target)) for source, target in encoded]
# by_longer = sorted(mixed, key=lambda i: longer[i])
# print(f"{padding_share(encoded, sixties(by_longer)):.0%} of all places are padding")
#
# targets = sum(len(target) > len(source) for source, target in encoded)
# print(f"the target is the longer side of {targets / len(encoded):.0%} of all pairs")

# %% [markdown]
# Most of the padding is gone, but 9% is left. The second line of the output tells where. The longer side is nearly always the target, so the targets of a batch are equally long now, and their sources are not. Among pairs with equal longer sides, we should sort by the other side, too:


# %%
def similar(pair: tuple) -> tuple[int, int]:
    """A key to sort by: the longer side, then the difference of the sides, up and down."""
    source, target = map(len, pair)
    longer, difference = max(source, target), source - target
    if longer % 2 == 0:
        difference = -difference
    return longer, difference


# %% tags=["active-ipynb"]
# always_up = sorted(mixed, key=lambda i: (longer[i], min(map(len, encoded[i]))))
# up_and_down = sorted(mixed, key=lambda i: similar(encoded[i]))
# print(f"always upwards: {padding_share(encoded, sixties(always_up)):.1%} are padding")
# print(f"up and down: {padding_share(encoded, sixties(up_and_down)):.1%} are padding")

# %% [markdown]
# Why the minus sign? Sort always upwards, and where one length ends and the next begins, the sources of a batch jump from long to short. `similar` goes through them as you mow a lawn: up one lane, and down the next. Where the longer side is odd, the sources get longer, and where it is even, they get shorter again. It costs two lines and takes away more than half of the padding that was left.

# %% tags=["active-ipynb"]
# ways = {
#     "at random": sixties(mixed),
#     "by the longer side": sixties(by_longer),
#     "by both sides": sixties(up_and_down),
# }
# views.padding(encoded, ways)

# %% [markdown]
# *Look for the grey, which is padding: sorting by the longer side takes it from the targets, and sorting by both sides takes it from the sources, too.* (Each panel is a batch of sixty pairs, drawn as sixty lines. It is the batch whose share of padding is the median.)
#
# But sorting brings a trouble of its own. Now the first batches hold sixty short sentences, and the last batches hold sixty long sentences:

# %% tags=["active-ipynb"]
# sizes = [len(batch) * max(longer[i] for i in batch) for batch in sixties(up_and_down)]
# print(f"the smallest rectangle has {min(sizes)} places, the largest {max(sizes):,}")

# %% [markdown]
# The machine must have memory for the largest, and has little to do with the smallest. The cure is to count tokens instead of sentences. In the paper, a batch has about 25,000 source tokens and 25,000 target tokens. We fill a batch until the next pair would make its rectangle too large:


# %%
def fill_batches(order: list, lengths: list, batch_tokens: int) -> list[list]:
    """Cut sentences in this order into batches of at most batch_tokens places each.

    lengths: of the sentences, in the same order, short ones first.
    """
    batches: list[list] = [[]]
    for i, length in zip(order, lengths):  # so the last one is a batch's longest
        if batches[-1] and (len(batches[-1]) + 1) * length > batch_tokens:
            batches.append([])
        batches[-1].append(i)
    return batches


# %% [markdown]
# Two things are missing. Training should not see all the short sentences first, so the batches come in random order. And in the next pass over the corpus (each pass is called an **epoch**) a pair should meet other neighbours. So we shuffle the pairs before we sort them. Python's `sorted` leaves pairs with equal keys in the order in which it found them, and that order is a new one in every epoch:


# %%
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
# The largest batch now has less than twice the places of the smallest, and the padding has hardly grown. That is what training will use.

# %% [markdown]
# ## Is the test really new?
#
# The batches are ready, and the third question is left: which sentences must not be in them? A model is judged on a **test** set of sentences that were kept aside, and its score is worth something only if the model has not learned them by heart. It is easy to believe that they are new because we drew them at random.
#
# Let us try that on real text. **Tatoeba** is a corpus of short sentences and their translations, written by volunteers. Now and then it has the same sentence again, with another translation. For our question, words do not matter. It matters only which sentences are equal, and here case and punctuation do not count. So this book has Tatoeba with a number in place of each different sentence:

# %% tags=["active-ipynb"]
# tatoeba = numbered_tatoeba()
# print(f"{len(tatoeba):,} pairs, for example:")
# print(*tatoeba[160_001:160_005])

# %% [markdown]
# These four pairs hang together: the first two share a German sentence, and the last three an English one. We draw 2,000 test pairs at random, and count how many of them have leaked, which means that one of their sentences, or both, are in training:

# %% tags=["active-ipynb"]
# def draw_lines(pairs, count, chance):
#     mixed = chance.sample(pairs, len(pairs))
#     return mixed[:count], mixed[count:]
#
#
# def leaked(test, training):
#     known = {sentence for pair in training for sentence in pair}
#     return [pair for pair in test if known & set(pair)]
#
#
# test, training = draw_lines(tatoeba, 2000, random.Random(0))
# print(f"{len(leaked(test, training)) / len(test):.0%} of the test pairs have leaked")

# %% [markdown]
# Two of five test pairs share a sentence with training. The cure is to draw **groups** instead of lines. Pairs that share a sentence belong to one group, and a pair that shares sentences with two groups makes them one. To collect a pair's group, walk from pair to pair, as long as a sentence leads to another:

# %% tags=["active-ipynb"]
# def group_of(pair, having):
#     group, waiting = {pair}, [pair]
#     while waiting:
#         for sentence in waiting.pop():
#             for other in having[sentence]:
#                 if other not in group:
#                     group.add(other)
#                     waiting.append(other)
#     return group
#
#
# def draw_groups(pairs, count, chance):
#     having = defaultdict(list)  # {sentence: the pairs that have it}
#     for pair in pairs:
#         for sentence in pair:
#             having[sentence].append(pair)
#     test, touched = [], set()
#     for pair in chance.sample(pairs, len(pairs)):
#         if len(test) < count and pair not in touched:
#             test.append(pair)
#             touched |= group_of(pair, having)
#     training = [pair for pair in pairs if pair not in touched]
#     return test, training

# %% [markdown]
# One pair of each drawn group becomes a test pair. Its other pairs are used for nothing, neither for the test nor for training. Here are five pairs such as Tatoeba has, of which one is drawn for the test:

# %% tags=["active-ipynb"]
# five = [
#     ("stop", "halt"),
#     ("stop", "hör auf"),
#     ("give up", "hör auf"),
#     ("we sing", "wir singen"),
#     ("run", "lauf"),
# ]
# test, training = draw_groups(five, 1, random.Random(1))
# unused = [pair for pair in five if pair not in test + training]
# views.kept_apart({"test": test, "left out": unused, "training": training})

# %% [markdown]
# *Each line is a pair of sentences: whatever hangs together with the test pair is left out, and the training pairs touch nothing of it.*
#
# Had we drawn a single line, both sentences of this test pair would be in training. Now neither can be there. What does that cost in Tatoeba?

# %% tags=["active-ipynb"]
# test, training = draw_groups(tatoeba, 2000, random.Random(0))
# unused = len(tatoeba) - len(test) - len(training)
# print(f"{unused:,} pairs are left out, {unused / len(tatoeba):.1%} of the corpus")

# %% [markdown]
# About one pair is lost for each test pair, and nearly all of the corpus is left for training.
#
# Copies are not everything. Even when groups are drawn, 29% of Tatoeba's English test sentences of four words or more differ in a single word from a sentence in training ([evidence 10.4](evidence/10_data.ipynb)). Exercise 3 looks for such near copies in our own corpus.

# %% [markdown]
# ## What a tokenizer cannot do
#
# Our sentence has come a long way: it was cut into pieces, numbered and put into a batch. And it is really new, because no training sentence has sunflowers. So let us hand it to a model. This book ships one that has learned from the same 20,000 pairs, with a tokenizer of its own. Beside our sentence it gets one whose words it knows:

# %% tags=["active-ipynb"]
# model, its_tokenizer = load("bundled")
# for english in (sentence, "The gardener lost her flowers."):
#     print(*its_tokenizer.pieces(english), sep=" |")
#     print("->", *translate(model, its_tokenizer, [english]))

# %% [markdown]
# The second translation is nearly right (its gardener is a man). The first says that the gardener lost *sie*, which is German for "them", or "her". The tokenizer has kept its promise: the sunflowers could be read, and nothing was unknown. But it never promised a meaning. What five pieces mean together, the weights must learn.

# %% [markdown]
# ## What to keep
#
# - A tokenizer learns its pieces by counting: what stands together most often is joined, so that frequent words become whole, and every other word can still be spelled, if need be in bytes.
# - The decoder's answer is its input shifted by one. Padding makes rows equally long; masks and loss ignore it, and sorting by both lengths keeps it rare.
# - Lines drawn at random are no new test where sentences repeat: what hangs together with a test pair stays out of training.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A text has the words *low* 5 times, *lower* 2, *new* 6 and *newer* 3. Begin with its bytes, which are simply its letters here, and find the first four merges. How are *renew* and *lowest* cut by them, of which the text has neither? (Where two neighbours are equally frequent, take those that you meet first.)
#
# <details><summary>Answer</summary>
#
# The neighbours are: "l o" 7, "o w" 7, "w e" 2 + 3 = 5, "e r" 2 + 3 = 5, "n e" 9, "e w" 9. So "n e" is joined first (9; it is met before "e w"), then "ne" and "w" (9), and then "l o" (7), "lo" and "w" (7). *Renew* is "r", "e", "new", and *lowest* is "low", "e", "s", "t". No word of the text has an "s" or a "t", but both are bytes, and all bytes are in the vocabulary. A tokenizer that begins with the letters of the text would have to answer `<unk>` for them.
# </details>
#
# **2. By hand.** Six sentences have 3, 3, 4, 8, 9 and 20 tokens. Which batches does `fill_batches` make of them, if a batch may have 20 places? Which part of all places is padding, and which part would it be if all six sentences were one batch?
#
# <details><summary>Answer</summary>
#
# The first three sentences make a batch of $3 \cdot 4 = 12$ places, since with the fourth it would have $4 \cdot 8 = 32$. The sentences of 8 and 9 tokens have $2 \cdot 9 = 18$ places, and the last sentence stands alone with 20. These are 50 places for 47 tokens: 6% are padding. One batch of all six has $6 \cdot 20 = 120$ places, of which 73 are padding, which is 61%.
# </details>
#
# **3. In code.** Write the function that finds near copies: the test sentences that differ from a training sentence in at most one word. Case and punctuation do not count (`folded` leaves them out), and both sentences must have equally many words. There are 20,000 training sentences, so comparing each with each takes too long. The word that differs may be any word, so what would you look up in a set?

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
# Two sentences are near copies if they are equal with a blank in the same place. On the English sides of our corpus, `near_copies` finds 27 of 1,000 test sentences ([evidence 10.4](evidence/10_data.ipynb)). The program that wrote the corpus refuses a sentence that it has written before, but not a sentence that is new in a single word.
# </details>
#
# **4. To think about.** A friend learns her vocabulary from training and test set together, "because it holds no translations". Her model never sees a test pair. Is that a leak? And would you notice it in her score?
#
# <details><summary>Answer</summary>
#
# Yes, a small one. Words that occur in the test only may get a token of their own, so that the test has shorter sentences than new text would have. But such a token has never been in a training sentence, so its embedding has never been trained, and the model is likely to do *worse* on it than on known pieces. The score may move either way. What it no longer tells you is how the model does on text that nobody has looked at, and that was its purpose.
# </details>
#
# **Next.** The model has read the sunflowers and missed them, so its weights must move. Which of them, in which direction, and how far? [Chapter 12](12_optimizer.ipynb) walks down a valley to find out.
