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
# Between your keyboard and a Transformer, a sentence is cut up. Below is a sentence, cut by a program that has read 20,000 English sentences and their German translations, but never the words "unbelievably" or "sunflowers". Before you look: where would you cut?

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
from collections import Counter
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer.corpora.tokenizer import Tokenizer, encode_sides
from transformer.corpora.windows import random_numbers, shuffled

# %% tags=["active-ipynb"]
# import random
# import re
# from statistics import median
#
# from transformer import read_corpus, views

# %% tags=["active-ipynb"]
# pairs = read_corpus("bundled", "train")  # [(English, German), ...]
# texts = [text for pair in pairs for text in pair]
# tokenizer = Tokenizer.train(texts, vocab_size=2000)
#
# sentence = "The gardener unbelievably lost her sunflowers."  # or yours
# views.pieces({"": tokenizer.pieces(sentence)}, [tokenizer.encode(sentence)])

# %% [markdown]
# *Each box is a token, with its number below it and `_` for the space in front of it: a pale box is a whole word or a punctuation mark, and a darker box is a part of a word.*
#
# Familiar words are whole. But the "sunflowers" have become "s", "un", "f", "low" and "ers", and nobody who knows flowers would cut them like that. Where do such pieces come from? How do they become the tensor that the model reads? And which sentences must be kept out of it? These are the three questions of this chapter.

# %% [markdown]
# ## Why not words? Why not letters?
#
# The model needs a fixed list of pieces, its **vocabulary**, because each entry has an embedding and an output score of its own ([chapter 6](06_embeddings.ipynb)). So why not list all words?
#
# In the corpus of this chapter we could. Its sentences are made up: a program of this book writes them by the rules of a grammar, and the program knows few words.

# %% tags=["active-ipynb"]
# # A word or a punctuation mark, each with the space before it
# WORD = re.compile(r" ?(?:\w+|[^\w\s])")
#
# words = Counter(word.strip() for text in texts for word in WORD.findall(text))
# print(f"{len(words):,} different words (and punctuation marks)")
# print(f"a sentence has {words.total() / len(texts):.0f} words on average,")
# print(f"which are {sum(map(len, texts)) / len(texts):.0f} characters")

# %% [markdown]
# Real text is another matter. German, for example, builds a word whenever it needs one: *Sonnenblumenbrot* is bread with sunflower seeds. In 18,000 sentences from the European Parliament there are 29,000 different German words, and half of them occur a single time. Read on after these sentences, and one word in 24 is new, which is about one in every sentence ([evidence 10.1](evidence/10_data.ipynb)). A model that knows a list of words can neither read nor write a new one.
#
# Letters are few, and every word can be spelled with them. But a sentence of letters is more than five times as long, and attention compares every token with every other: it has nearly thirty times as much to do.
#
# So we want something in between: whole words where they are frequent, and parts where they are not. Counting finds both.

# %% [markdown]
# ## Join what stands together most often
#
# The paper uses **byte-pair encoding** (Sennrich et al., 2016). It begins with letters, looks for the two neighbours that stand together most often, and joins them into one symbol wherever they do. Then it counts again.
#
# Take a text with five different words: *land* 6 times, *lands* 2, *hand* 4, *hands* 3 and *man* 2. The neighbours "l a" are in *land* and *lands*, so they occur 6 + 2 = 8 times. The neighbours "a n" are in all five words: 6 + 2 + 4 + 3 + 2 = 17. No other neighbours occur as often, so "an" becomes one symbol. What will be joined next?


# %%
def count_neighbours(words: dict) -> Counter:
    """How often two symbols are neighbours in words, {(symbol, ...): times}."""
    count: Counter = Counter()
    for word, times in words.items():
        for neighbours in zip(word, word[1:]):
            count[neighbours] += times
    return count


def join(word: tuple, pair: tuple) -> tuple:
    """The word with each occurrence of the pair as one symbol."""
    joined: list = []
    for symbol in word:
        if joined and (joined[-1], symbol) == pair:
            joined[-1] += symbol
        else:
            joined.append(symbol)
    return tuple(joined)


# %% tags=["active-ipynb"]
# counts = {"land": 6, "lands": 2, "hand": 4, "hands": 3, "man": 2}
# example = {tuple(word): times for word, times in counts.items()}
# for _ in range(5):
#     pair, times = count_neighbours(example).most_common(1)[0]
#     example = {join(word, pair): times for word, times in example.items()}
#     print(f"{''.join(pair):6}{times:3} times  ", "   ".join(map(" ".join, example)))

# %% [markdown]
# "an" and "d" come next, 15 times, and then *land*, *hand* and *hands* become whole. The word *lands* occurs only twice. It gets no symbol of its own and stays "land" and "s". And *sand*, which never occurred, can be written all the same: "s" and "and".
#
# The pairs that were joined, in their order, are all that has been learned. To cut a new word, join its letters by the same pairs in the same order:


# %%
def learn_merges(words: dict, count: int) -> list[tuple]:
    """The pairs joined in so many steps, {(symbol, ...): times} -> [(left, right), ...]."""
    merges = []
    for _ in range(count):
        pair, _ = count_neighbours(words).most_common(1)[0]
        words = {join(word, pair): times for word, times in words.items()}
        merges.append(pair)
    return merges


def cut(word: tuple, merges: list[tuple]) -> tuple:
    """A word's letters, joined by merges that were learned before."""
    for pair in merges:
        word = join(word, pair)
    return word


# %% [markdown]
# Now the real thing, on the English half of the corpus. A word takes the space in front of it along, as `_`, so that the pieces remember where words begin. Watch a sentence while the merges come in:

# %% tags=["active-ipynb"]
# def symbols(text):  # each word and punctuation mark as a tuple of letters
#     return [tuple(word.replace(" ", "_")) for word in WORD.findall(" " + text)]
#
#
# english = Counter(word for text, _ in pairs for word in symbols(text))
# merges = learn_merges(english, 300)
# stages = {}
# for n in (0, 20, 100, 300):
#     row = []
#     for word in symbols("The gardener lost her keys."):
#         row += cut(word, merges[:n])
#     stages[f"{n} merges"] = row
# views.pieces(stages)

# %% [markdown]
# *Read from top to bottom: after 100 merges "The" is whole, and after 300 "her" is, too, while "gardener" still has two pieces, and "lost" and "keys" have three.*

# %% [markdown]
# ## What about a letter that was never seen?
#
# Merging begins with the letters of the training text. Our corpus contains no "Q", no "é" and no "鍵", so there is no entry to begin with. All that the model can be given for such a letter is a token that means "unknown", which is usually written `<unk>`. And a list of all letters is no way out, since the world has more than 150,000 characters.
#
# Computers met this problem long ago. In **UTF-8**, the usual way to store text, every character is one to four **bytes**: "k" is the byte 107, "é" is 195 and 169, and "鍵", the Japanese word for a key, is 233, 141 and 181. There are only 256 different bytes. So let the merging begin with bytes instead of letters, and nothing is ever unknown. The tokenizer that cut the sunflowers does this. Here it is, below the letters of this page:

# %% tags=["active-ipynb"]
# text = "A kangaroo from Québec lost her 鍵."
# seen = {letter for word in english for letter in word}
# row = []
# for word in symbols(text):
#     known = tuple(letter if letter in seen else "<unk>" for letter in word)
#     row += cut(known, merges)
# views.pieces({"letters": row, "bytes": tokenizer.bytes_of_each_piece(text)})

# %% [markdown]
# *Compare the two rows: where letters have no entry, red marks take their places, and bytes, written as numbers, do not need them.*
#
# Three letters of the upper row are lost for good. From the tokens of the lower row, the text comes back:

# %% tags=["active-ipynb"]
# print(tokenizer.decode(tokenizer.encode(text)))

# %% [markdown]
# The vocabulary of this tokenizer has 2,000 entries: the 256 bytes, three marks that we shall meet below, and 1,741 merges, learned from both languages together. The worst that can happen to a word is that it falls apart into its bytes. (**Deviation:** when the paper was written, byte-pair encoding joined letters, in spite of its name. Joining bytes became usual with GPT-2.)

# %% [markdown]
# ## How many pieces?
#
# Merging can stop at any size. So how large should a vocabulary be? Two things pull in opposite directions. Each merge makes sentences shorter, which saves work. But it also spreads the same text over more entries, so that an entry is seen less often, and an embedding learns only where its token occurs. We can measure both. Let a typical token be the median of all tokens that occur:

# %% tags=["active-ipynb"]
# length, seen = {}, {}
# for size in (500, 1000, 2000, 4000):
#     coder = Tokenizer.train(texts, size)
#     times = Counter(i for ids in coder.encode_all(texts) for i in ids)
#     length[size] = times.total() / len(texts)
#     seen[size] = median(times.values())
# views.vocabulary_sizes(length, seen)

# %% [markdown]
# *Read both panels from left to right: while the vocabulary doubles at each step, sentences get shorter and a typical token gets rarer.*
#
# So the answer depends on how much text you have. The more there is, the more entries it can show often enough. The models of this book have 3,500 entries for 20,000 pairs and 8,000 for 160,000, and the paper's have about 37,000 for 4.5 million. Which size translates best must be tried. This chapter takes only 2,000, so that you can see words in parts ([evidence 10.3](evidence/10_data.ipynb) has the curves of real text).
#
# Byte pairs have a rival, **unigram** ([Kudo, 2018](https://arxiv.org/abs/1804.10959)). It begins with far too many pieces, gives each of them a probability, drops those that it can best spare, and cuts a word in the likeliest way.

# %% [markdown]
# ## From pieces to a batch
#
# Three entries of the vocabulary are marks and stand for no text: `<s>` is the beginning of a target, `</s>` the end of a sentence, and `<pad>` an empty place.
#
# Why does a target need a beginning and an end? The decoder learns to name the *next* token at every place of the target at once ([chapter 4](04_attention.ipynb)). So it reads the target without its last token. What it should answer, called the **gold**, is the target without its first token. Before the first word the decoder needs something to read, which is `<s>`. And after the last word it must say that it has finished, which is `</s>`. (The source gets an `</s>` by custom.)
#
# Padding is there because all rows of a tensor are equally long, and sentences are not.


# %%
@dataclass(frozen=True)
class Batch:
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

    def to(self, device: torch.device | str) -> "Batch":
        """The batch on another device."""
        return Batch(self.source.to(device), self.target.to(device))

    def pairs(self, pad_id: int = 0) -> list["Batch"]:
        """Each pair as a batch of its own, without padding."""
        alone = []
        for source, target in zip(self.source, self.target):
            source, target = source[source != pad_id], target[target != pad_id]
            alone.append(Batch(source.unsqueeze(0), target.unsqueeze(0)))
        return alone


# %%
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
    return Batch(
        pad([source for source, _ in encoded], pad_id),
        pad([target for _, target in encoded], pad_id),
    )


# %% tags=["active-ipynb"]
# two = [
#     ("The old king was not happy.", "Der alte König war nicht glücklich."),
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
# In the shorter row the decoder still reads its own `</s>`. The answer in this place is padding, which the loss leaves out, so it does not matter what the model says here.

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
# encoded = encode_pairs(tokenizer, pairs)
# mixed = random.Random(0).sample(range(len(encoded)), len(encoded))
# at_random = [mixed[i : i + 60] for i in range(0, len(mixed), 60)]
# print(f"{padding_share(encoded, at_random):.0%} of all places are padding")

# %% [markdown]
# So let us sort the pairs by their longer sides, and cut the sorted list into batches. Then each batch holds sentences of similar length.
#
# But sorting brings a trouble of its own. If we still put sixty pairs into every batch, the last batches hold sixty long sentences, and need several times the memory of the first. The cure is to count tokens instead of sentences. In the paper a batch has about 25,000 tokens on either side. We fill a batch until the next pair would make its rectangle too large:


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


# %% tags=["active-ipynb"]
# longer = [max(map(len, pair)) for pair in encoded]  # the longer of the two sides
# order = sorted(range(len(encoded)), key=lambda i: longer[i])
# by_longer = fill_batches(order, [longer[i] for i in order], batch_tokens=2048)
# print(f"{padding_share(encoded, by_longer):.0%} of all places are padding")
#
# share = sum(len(target) > len(source) for source, target in encoded) / len(encoded)
# print(f"the target is the longer side of {share:.0%} of all pairs")

# %% [markdown]
# Most of the padding is gone, but 9% are left. The second line of the output tells where: the longer side is nearly always the target. So the targets of a batch are equally long now, and their sources are not. Among pairs with equal longer sides, we should sort by the other side, too:


# %%
def similar(pair: tuple) -> tuple[int, int]:
    """A key to sort by: the longer side, then how much longer the source is."""
    source, target = map(len, pair)
    longer = max(source, target)
    difference = source - target
    return longer, difference if longer % 2 else -difference


# %% tags=["active-ipynb"]
# order = sorted(range(len(encoded)), key=lambda i: similar(encoded[i]))
# by_both = fill_batches(order, [longer[i] for i in order], batch_tokens=2048)
# print(f"{padding_share(encoded, by_both):.0%} of all places are padding")

# %% [markdown]
# The last line of `similar` does what you do when you mow a lawn: up one lane, and down the next. Where the longer side is odd, the sources get longer, and where it is even, they get shorter again. So the sources do not jump from long to short where one length ends and the next begins.

# %% tags=["active-ipynb"]
# ways = {
#     "at random": at_random,
#     "by the longer side": by_longer,
#     "by both sides": by_both,
# }
# views.padding(encoded, ways)

# %% [markdown]
# *Look for the grey, which is padding: sorting by the longer side takes it from the targets, and sorting by both sides takes it from the sources, too.* (Each panel shows the batch whose share of padding is the median. Short sentences make tall batches, and long sentences wide batches.)
#
# Two things are missing. Training should not see all the short sentences first, so the batches come in random order. And in the next pass over the corpus (each pass is called an **epoch**) a pair should meet other neighbours. So we shuffle the pairs before we sort them: Python's `sorted` leaves pairs with equal keys in the order in which it found them.


# %%
def token_batches(encoded: list, batch_tokens: int, seed: int = 0) -> list[list[int]]:
    """The batches of an epoch, lists of indices, in random order.

    A batch holds pairs of similar length, at most batch_tokens a side with padding; a
    pair longer than that stands alone. Every pair comes once. The seed decides
    everything; use another for every epoch.
    """
    chance = random_numbers(seed)
    mixed = shuffled(len(encoded), chance)  # 0, 1, 2, ... in random order
    order = sorted(mixed, key=lambda i: similar(encoded[i]))
    lengths = [max(map(len, encoded[i])) for i in order]
    batches = fill_batches(order, lengths, batch_tokens)
    return [batches[i] for i in chance.permutation(len(batches))]


# %% tags=["active-ipynb"]
# batches = token_batches(encoded, batch_tokens=2048)
# assert sorted(i for batch in batches for i in batch) == list(range(len(encoded)))
# for batch in batches:
#     assert len(batch) * max(longer[i] for i in batch) <= 2048
# print(len(batches), "batches, every pair in one of them, and none too large")

# %% [markdown]
# ## Is the test really new?
#
# The batches are ready, but one question is left: which sentences must not be in them? A model is judged on sentences kept aside, and its score is worth something only if the model has not learned them by heart. It is easy to believe that they are new because we drew them at random.
#
# Take Tatoeba, a corpus of short sentences by volunteers. It often has the same sentence several times, with different translations. Here are five lines of this kind. Let each of them be the test once, and the other four be the training:

# %% tags=["active-ipynb"]
# lines = [
#     ("Stop!", "Halt!"),
#     ("Stop.", "Hör auf!"),
#     ("Give up.", "Hör auf."),
#     ("We sing.", "Wir singen."),
#     ("Run!", "Lauf!"),
# ]
#
#
# def folded(text):  # without case, punctuation and spaces
#     return " ".join(re.findall(r"\w+", text.casefold()))
#
#
# for pair in lines:
#     others = [line for line in lines if line != pair]
#     training = {folded(text) for line in others for text in line}
#     known = [f'"{text}"' for text in pair if folded(text) in training]
#     print(" = ".join(pair), "| in training:", " and ".join(known) or "nothing")

# %% [markdown]
# Three of five tests have leaked. In Tatoeba itself, if the test lines are drawn at random, 36% of the English test sentences are in training, too ([evidence 10.4](evidence/10_data.ipynb)).
#
# The cure is to draw groups instead of lines. Lines that share a sentence belong to one group, and a line that shares sentences with two groups makes them one:

# %% tags=["active-ipynb"]
# def grouped(pairs):
#     """The pairs in groups: pairs of different groups have no sentence in common."""
#     groups = []  # [(the sentences of a group, its pairs), ...]
#     for pair in pairs:
#         sentences, members = {folded(text) for text in pair}, [pair]
#         apart = []
#         for known, others in groups:
#             if known & sentences:  # they meet in this pair
#                 sentences, members = known | sentences, others + members
#             else:
#                 apart.append((known, others))
#         groups = [*apart, (sentences, members)]
#     return [members for _, members in groups]

# %% [markdown]
# Now we draw a group, and one pair of it becomes a test pair. The other pairs of this group are used for nothing, neither for the test nor for training. Say the draw falls on "Stop." and "Hör auf!":

# %% tags=["active-ipynb"]
# test = ("Stop.", "Hör auf!")
# parts = {"test": [test], "left out": [], "training": []}
# for group in grouped(lines):
#     if test in group:
#         parts["left out"] += [pair for pair in group if pair != test]
#     else:
#         parts["training"] += group
# views.kept_apart(parts, folded)

# %% [markdown]
# *Each line is a pair of sentences: whatever hangs together with the test pair is left out, and the training pairs touch nothing of it.*
#
# Drawn like this, the 36% of Tatoeba become 0. And our own corpus, on whose validation set later chapters judge their models? The program that writes it refuses every sentence that it has written before. So there should be no copies:

# %% tags=["active-ipynb"]
# training = {folded(text) for text in texts}
# for split in ("validation", "test"):
#     sentences = [text for pair in read_corpus("bundled", split) for text in pair]
#     copies = sum(folded(text) in training for text in sentences)
#     print(f"{split}: {copies} of {len(sentences):,} sentences are in training")

# %% [markdown]
# Copies are not everything. Even with groups, 29% of the Tatoeba test sentences of four words or more differ in a single word from a sentence in training ([evidence 10.4](evidence/10_data.ipynb)). So a good score on Tatoeba says little about sentences of another kind. How is it in our corpus? That is exercise 3.

# %% [markdown]
# ## What to keep
#
# - A tokenizer learns its pieces by counting: what stands together most often is joined, so that frequent words become whole and every other word can still be spelled, if need be in bytes.
# - The decoder's answer is its input shifted by one, and padding makes rows equally long; masks and loss ignore it.
# - A batch holds pairs that are similar in both lengths, and is measured in tokens; what shares a sentence with a test pair stays out of training.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A text has the words *low* 5 times, *lower* 2, *new* 6 and *newer* 3. Find the first four merges. How are *lowest* and *renew* cut by them, of which the text has neither? (Where two pairs are equally frequent, take the pair that you meet first.)
#
# <details><summary>Answer</summary>
#
# The pairs are: "l o" 7, "o w" 7, "w e" 2 + 3 = 5, "e r" 2 + 3 = 5, "n e" 9, "e w" 9. So "n e" is joined first (9; it is met before "e w"), then "ne" and "w" (9), and then "l o" (7), "lo" and "w" (7). *Lowest* is "low", "e", "s", "t", and *renew* is "r", "e", "new".
# </details>
#
# **2. By hand.** Six sentences have 3, 3, 4, 8, 9 and 20 tokens. Which batches does `fill_batches` make of them, if a batch may have 20 places? Which part of all places is padding, and which part would it be if all six sentences were one batch?
#
# <details><summary>Answer</summary>
#
# The first three sentences make a batch of $3 \cdot 4 = 12$ places, since with the fourth it would have $4 \cdot 8 = 32$. The sentences of 8 and 9 tokens have $2 \cdot 9 = 18$ places, and the last sentence stands alone with 20. These are 50 places for 47 tokens: 6% are padding. One batch of all six has $6 \cdot 20 = 120$ places, of which 73 are padding, which is 61%.
# </details>
#
# **3. In code.** Write the function that finds near copies: the test sentences that differ from a training sentence in at most one word. Case and punctuation do not count (`folded` is there), and both sentences must have equally many words. There are 20,000 training sentences, so comparing each with each takes too long. The word that differs may be any word, so what would you look up in a set?

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.data import check_near_copies
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
# Two sentences are near copies if they are equal with a blank in the same place. On the English sides of our corpus, `near_copies` finds 27 of 1,000 test sentences ([evidence 10.4](evidence/10_data.ipynb)). That is far fewer than in Tatoeba.
# </details>
#
# **4. To think about.** A friend learns her vocabulary from training and test set together, "because it holds no translations". Her model never sees a test pair. Is that a leak? And would you notice it in her score?
#
# <details><summary>Answer</summary>
#
# Yes, a small one. Words that occur in the test only may get a token of their own, so that the test has shorter sentences than new text would have. But such a token has never been in a training sentence, so its embedding has never been trained, and the model is likely to do *worse* on it than on known pieces. The score may move either way. What it no longer tells you is how the model does on text that nobody has looked at, and that was its purpose.
# </details>
#
# **Next.** The sentences are in the batch. [Chapter 12](12_optimizer.ipynb) asks what the weights do with them. Before it comes [chapter 11](11_hardware.ipynb), on how long that takes and on which machine: read it whenever you need a machine.
