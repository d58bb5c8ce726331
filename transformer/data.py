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
# *Section 5.1 of the paper. Reading takes about 20 minutes, running a quarter of a minute.*
#
# Between your keyboard and a Transformer, a sentence is cut up. Below is one, cut by a program that has read 20,000 sentences and their German translations, but never the words "unbelievably" or "sunflowers". Before you look: where would you cut?

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
from transformer.corpora.windows import random_numbers, similar_orders

# %% tags=["active-ipynb"]
# import random
# import re
#
# from tokenizers import Tokenizer as Library
# from tokenizers import models, pre_tokenizers, trainers
#
# from transformer import read_corpus, views
# from transformer.corpora.tokenizer import WORD

# %% tags=["active-ipynb"]
# pairs = read_corpus("bundled", "train")  # [(English, German), ...]
# texts = [text for pair in pairs for text in pair]
# tokenizer = Tokenizer.train(texts, vocab_size=2000)
#
# sentence = "The gardener unbelievably lost her sunflowers."  # or yours
# views.pieces({"": tokenizer.pieces(sentence)}, [tokenizer.encode(sentence)])

# %% [markdown]
# *Each box is a token, with its number below it and `_` for the space in front: pale boxes are whole words, darker ones are parts of words.*
#
# Familiar words are whole, and the others are in pieces that were never words. Nobody made a list of such pieces. Where do they come from, how do they become the tensor that the model reads, and which sentences may be in it? These are the three steps of this chapter.

# %% [markdown]
# ## Why not words? Why not letters?
#
# The model needs a fixed list of pieces, its **vocabulary**, since it has one embedding and one output score for each. Why not list the words? In our corpus that would do. (A grammar of this project wrote its sentences, so that they can be part of the book, and it knows few words.)

# %% tags=["active-ipynb"]
# words = Counter(word for text in texts for word in WORD.findall(text))
# letters = Counter(letter for text in texts for letter in text)
# print(f"{len(words):,} different words, {len(letters)} different characters")
# per_text = words.total() / len(texts), letters.total() / len(texts)
# print("a sentence has {:.0f} words, or {:.0f} characters".format(*per_text))

# %% [markdown]
# Real text is another matter. In 18,000 sentences of the European Parliament there are 29,000 different German words, half of which occur a single time. In sentences kept aside, one word in 24 is not among them: about one in every sentence ([evidence 10.1](evidence/10_data.ipynb)). A model that knows words can neither read nor write it.
#
# Single characters never run out. But a sentence gets five times as long, and attention's table of weights 25 times as large.
#
# So we want something in between: whole words where they are frequent, and parts where they are not. Counting finds both.

# %% [markdown]
# ## Join what stands together most often
#
# The paper uses **byte-pair encoding** (Sennrich et al., 2016). It begins with letters, looks for the two neighbours that stand together most often, and joins them into one symbol wherever they do. Then it counts again.
#
# Take a text with five different words: *land* 6 times, *lands* 2, *hand* 4, *hands* 3 and *man* 2. The neighbours "l a" are in *land* and *lands*, so they occur 6 + 2 = 8 times. The neighbours "a n" are in all five words: 6 + 2 + 4 + 3 + 2 = 17. Nothing beats that, so "an" becomes one symbol. What will be joined next?


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
# "an" and "d" come next, 15 times, and then *land*, *hand* and *hands* become whole. *Lands* is too rare for a symbol of its own and stays "land" and "s". And *sand*, which never occurred, can be written: "s" and "and".
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
# Now the real thing, on the English half of the corpus. A word takes the space in front of it along, as `_`, so that the pieces remember where words begin. Watch one sentence while the merges come in:

# %% tags=["active-ipynb"]
# def symbols(text):  # words and punctuation, as tuples of letters
#     found = re.findall(r" ?\w+| ?[^\w\s]", " " + text)
#     return [tuple(word.replace(" ", "_")) for word in found]
#
#
# english = Counter(word for text, _ in pairs for word in symbols(text))
# merges = learn_merges(english, 300)
# stages = {}
# for n in (0, 20, 100, 300):
#     words = [cut(word, merges[:n]) for word in symbols("The gardener lost her keys.")]
#     stages[f"{n} merges"] = [piece for word in words for piece in word]
# views.pieces(stages)

# %% [markdown]
# *Read from top to bottom: "The" and "her" are whole first, while "gardener" ends in two pieces, and "lost" and "keys" in three.*
#
# One thing is missing. No merge helps with a letter that was never seen, and there are some 150,000 characters in the world. But a computer stores each of them as one to four **bytes**, and there are only 256 of those:

# %% tags=["active-ipynb"]
# for text in ("key", "Tür", "鍵", "🔑"):
#     same = tokenizer.decode(tokenizer.encode(text)) == text
#     print(text, list(text.encode()), "comes back" if same else "is lost")

# %% [markdown]
# So real tokenizers join bytes instead of letters, and nothing is ever unknown: in the worst case a word falls apart into its bytes. Ours does that, with one vocabulary for both languages, as in the paper. (**Deviation:** for French the paper used word pieces, a cousin. Byte pairs serve all languages here.)

# %% [markdown]
# ## How many pieces?
#
# Merging can stop at any size. A larger vocabulary has a price, a row of $d_{model}$ weights for each entry, and a reward, shorter sentences. How much shorter are they?

# %% tags=["active-ipynb"]
# held_out = [text for pair in read_corpus("bundled", "validation") for text in pair]
# sizes, lengths = [300, 500, 1000, 2000, 4000], []
# for size in sizes:
#     coder = Tokenizer.train(texts, size)
#     lengths.append(sum(map(len, coder.encode_all(held_out))) / len(held_out))
# levels = {"characters": per_text[1], "words and punctuation": per_text[0]}
# views.vocabulary_sizes(sizes, lengths, levels)

# %% [markdown]
# *Follow the curve from the left: the first merges shorten sentences most, and with 4,000 entries nearly every word is one token.*
#
# On real text the curve has the same shape and flattens later. The paper took 37,000 entries for 4.5 million pairs, and the models of this book have 3,500 to 8,000. Whether other sizes would translate better, we have not measured ([evidence 10.3](evidence/10_data.ipynb)).
#
# Byte pairs have rivals. The oldest is a list of the most frequent **words**. A third way, **unigram** (Kudo, 2018), which the library SentencePiece made popular, works from the other end. It starts with very many pieces, each with a probability, and throws out those that it can best spare. It cuts a word so that the product of the probabilities is largest. Say *land* has 0.02, *s* 0.05, *l* 0.01 and *ands* 0.001. Then "land" and "s" have $0.02 \cdot 0.05 = 0.001$, and "l" and "ands" a hundredth of that. Here are all three, with 1,000 entries each:

# %% tags=["active-ipynb"]
# unknown = {"special_tokens": ["?"]}
# ways = {
#     "words": (models.WordLevel(unk_token="?"), trainers.WordLevelTrainer(**unknown)),
#     "byte pairs": (models.BPE(), trainers.BpeTrainer(**unknown)),
#     "unigram": (models.Unigram(), trainers.UnigramTrainer(**unknown, unk_token="?")),
# }
# spaces = pre_tokenizers.Metaspace(prepend_scheme="first")
# first_cut = pre_tokenizers.Sequence([pre_tokenizers.Punctuation(), spaces])
# cuts = {}
# for name, (model, trainer) in ways.items():
#     coder = Library(model)
#     coder.pre_tokenizer = first_cut
#     trainer.vocab_size, trainer.show_progress = 1000, False
#     coder.train_from_iterator(texts, trainer)
#     cuts[name] = coder.encode("The kangaroo lost her keys.").tokens
# views.pieces(cuts)

# %% [markdown]
# *Compare the rows: a list of words makes question marks of the kangaroo and even of the rare "keys", while the other two ways spell both, each in its own pieces.*
#
# Both kinds of pieces are in use today. What follows is the same for all three.

# %% [markdown]
# ## From pieces to a batch
#
# Three tokens stand for no text: `<s>` begins a target, `</s>` ends a source and a target, and `<pad>` fills up.
#
# Why two marks? The decoder learns to name the *next* token at every place of the target at once ([chapter 4](04_attention.ipynb)). So it reads the target without its last token, and it must answer with the target without its first. Before the first word it needs something to read, which is `<s>`. And after the last word it must say that it has finished, which is `</s>`.
#
# Padding is there because a tensor has rows of one length, while sentences have not.


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
        return Batch(self.source.to(device), self.target.to(device))

    def pairs(self, pad_id: int = 0) -> list["Batch"]:
        """Each pair as a batch of its own, without padding."""
        rows = zip(self.source, self.target)
        return [Batch(*(ids[None, ids != pad_id] for ids in pair)) for pair in rows]


# %%
def encode_pairs(tokenizer: Tokenizer, pairs: list) -> list[tuple]:
    """[(source ids with end mark, target ids with begin and end marks), ...]"""
    begin, end = [tokenizer.bos_id], [tokenizer.eos_id]
    encoded = encode_sides(tokenizer, pairs)  # [(source ids, target ids), ...]
    return [(source + end, begin + target + end) for source, target in encoded]


def pad(rows: list, pad_id: int) -> Tensor:
    """Lists of ids, filled up with pad_id to the longest: (B, length), int64.

    Raises ValueError for no rows at all.
    """
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
#
#
# def piece(i):
#     return tokenizer.bpe.decode([i], skip_special_tokens=False)
#
#
# sides = {
#     "source": batch.source.tolist(),
#     "decoder reads": batch.decoder_input.tolist(),
#     "should answer": batch.gold.tolist(),
# }
# views.batch({n: ([[*map(piece, row)] for row in ids], ids) for n, ids in sides.items()})

# %% [markdown]
# *Compare the last two blocks: at each place the answer is the token that is read at the next place. White is padding, which masks hide from attention and which the loss leaves out.*
#
# In the shorter row the decoder still reads its own `</s>`. The answer there is padding, so nobody asks for it.

# %% [markdown]
# ## Padding is work for nothing
#
# A batch is a rectangle, as wide as its longest sentence, and the model computes every place of it. Put sentences of 3, 4, 9 and 30 tokens together: 46 tokens in $4 \cdot 30 = 120$ places, of which more than half are padding. How much is it in our corpus, if batches are drawn at random?


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
# So sentences of similar length should be together. Then a second trouble goes, too: sixty long sentences need several times the memory of sixty short ones. The paper's batches therefore have not a number of sentences but a number of *tokens*, about 25,000 on either side. Sort the sentences, short ones first, and put them into a batch until the next one would make its rectangle too large:


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
# similar = fill_batches(order, [longer[i] for i in order], batch_tokens=2048)
# print(f"{padding_share(encoded, similar):.0%} of all places are padding")
#
# shown = next(batch for batch in similar if len(batch) <= 60)
# masks = {}
# for name, batch in (("at random", at_random[0]), ("similar lengths", shown)):
#     masks[name] = collate([encoded[i] for i in batch]).target != tokenizer.pad_id
# views.padding(masks)

# %% [markdown]
# *Dark places hold tokens, and pale ones padding: among sentences of similar length little is left of it.*
#
# In training, batches come in random order, since otherwise a model would see only short sentences first. And the order within one length is drawn anew for every pass over the corpus, which is called an **epoch**:


# %%
def token_batches(encoded: list, batch_tokens: int, seed: int = 0) -> list[list[int]]:
    """The batches of an epoch, lists of indices, in random order.

    A batch holds pairs of similar length, at most batch_tokens a side with padding; a
    pair longer than that stands alone. Every pair comes once. The seed decides
    everything; use another for every epoch.
    """
    chance = random_numbers(seed)
    epoch = []
    for order, lengths in similar_orders(encoded, chance):  # one part, or several
        batches = fill_batches(order, lengths, batch_tokens)
        epoch += [batches[i] for i in chance.permutation(len(batches))]
    return epoch


# %% [markdown]
# (The imported `similar_orders` sorts as we did, and among equal lengths also by the other side; a large corpus comes in parts of 200,000 pairs, so that it need not be in memory.) **Deviation:** padding counts in our `batch_tokens`. The paper does not say whether it does there.

# %% tags=["active-ipynb"]
# batches = token_batches(encoded, batch_tokens=2048)
# assert sorted(i for batch in batches for i in batch) == list(range(len(encoded)))
# for batch in batches:
#     assert len(batch) * max(longer[i] for i in batch) <= 2048
# print(len(batches), "batches, every pair in one of them, and none too large")
# print(f"{padding_share(encoded, batches):.0%} of all places are padding")

# %% [markdown]
# ## What must not be in the batch
#
# The last step is easily forgotten. A model is judged on sentences kept aside, and the score is worth something only if it has not learned these by heart. So are they new?
#
# Take the corpus Tatoeba, short sentences by volunteers. The same English sentence is there several times, with other translations. For example:

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
# for i, pair in enumerate(lines):  # if this line were the test ...
#     others = {folded(text) for j, other in enumerate(lines) for text in other if j != i}
#     known = [text for text in pair if folded(text) in others]
#     print(*pair, "| already in training:", ", ".join(known) or "nothing")

# %% [markdown]
# If you draw the test *lines* at random, you have drawn a leak: in Tatoeba, 36% of the English test sentences are in training, too. So the package first puts lines that share a side into one group. (Our first three lines are one group, since the second shares a side with either of the others.) Then it draws groups, and of a group with a test sentence nothing is used for training. The 36% become 0.
#
# That is not the end of the matter. Of the longer test sentences, 29% still have a copy in training that differs in a single word ([evidence 10.4](evidence/10_data.ipynb)). A good score on Tatoeba says little about sentences of another kind.
#
# *The package's version. `Tokenizer` ([source](https://github.com/OWNER/annotated-attention/blob/main/transformer/corpora/tokenizer.py)) has the merges learned and applied by the library `tokenizers`, which is quick; a test compares them with this page's. Batches of corpora that do not fit into memory come [from disk](https://github.com/OWNER/annotated-attention/blob/main/transformer/runs/encoded.py), the same ones in the same order. `read_corpus` knows other corpora, too, and downloads them when asked: try "tatoeba" in the cell at the top ([evidence 10.1](evidence/10_data.ipynb)).*

# %% [markdown]
# ## What to keep
#
# - A tokenizer learns its pieces by counting: what stands together most often is joined, so that frequent words become whole and every other word can still be spelled.
# - The decoder's answer is its input shifted by one, and padding makes rows equally long; masks and loss ignore it.
# - Batches hold sentences of similar length and about equally many tokens, and none whose copy is in the test.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A text has the words *low* 5 times, *lower* 2, *new* 6 and *newer* 3. Find the first four merges. How are *lowest* and *renew* cut by them, of which the text has neither? (Where two pairs are equally frequent, take the one that you meet first.)
#
# <details><summary>Answer</summary>
#
# The pairs are: "l o" 7, "o w" 7, "w e" 2 + 3 = 5, "e r" 2 + 3 = 5, "n e" 9, "e w" 9. So "n e" is joined first (9; it is met before "e w"), then "ne" and "w" (9), and then "l o" (7), "lo" and "w" (7). *Lowest* is "low", "e", "s", "t", and *renew* is "r", "e", "new".
# </details>
#
# **2. In code.** Somebody gives you a training set and a test set that leak. Keep the training pairs whose English and German side are both new, that is, in no test pair, where case, punctuation and spaces do not count. (Use `folded` from above.)

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.data import check_without_leaks
#
#
# def without_leaks(training, test):
#     """Two lists of (English, German) -> the training pairs that may stay."""
#     ...
#
#
# check_without_leaks(without_leaks)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def without_leaks(training, test):
#     english = {folded(source) for source, _ in test}
#     german = {folded(target) for _, target in test}
#     return [
#         (source, target)
#         for source, target in training
#         if folded(source) not in english and folded(target) not in german
#     ]
# ```
#
# Without `folded` copies pass that differ in an exclamation mark. And this is still weaker than drawing groups: "Give up." may stay although it is in one group with "Stop!".
# </details>
#
# **3. To think about.** A friend learns her vocabulary from training and test set together, "because it holds no translations". Her model never sees a test pair. Is that a leak? And would you notice it in her score?
#
# <details><summary>Answer</summary>
#
# Yes, a small one. Words that occur in the test only may get a token of their own, so that the test has shorter sentences than new text would have. But such a token has never been in a training sentence, so its embedding has never been trained, and the model is likely to do *worse* on it than on known pieces. The score may move either way. What it no longer tells you is how the model does on text that nobody has looked at, and that was its purpose.
# </details>
#
# **Next.** The sentences are in the batch. [Chapter 12](12_optimizer.ipynb) asks what the weights do with them. (How long it will take, and on what machine, is [chapter 11](11_hardware.ipynb), which can wait.)
