# ---
# jupyter:
#   jupytext:
#     formats: notebooks/10_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 5.1 Training data and batching
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/10_data.ipynb)
#
# A translation model learns from pairs of sentences. Before it sees them, they become numbers: text is cut into
# tokens, tokens become ids, and sentences of similar length are put together into batches. This notebook covers
# Section 5.1 of the paper: where the pairs come from, how byte-pair encoding cuts them, and what a batch is.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from transformer.checks import check_texts
from transformer.corpora.windows import windows
from transformer.files import existing

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# import json
# from collections import Counter
#
# from transformer import plotting
# from transformer.corpora import CORPORA, Example, read_bundled, read_corpus
# from transformer.corpora.splits import fold, groups, hold_out

# %% [markdown]
# ## The bundled corpus
#
# A corpus comes with the package, so that everything here runs without a network. `data/bundled/` holds English-German
# pairs in four **splits**: 20,000 to train on; 1,000 for validation, with which settings are compared; 1,000 for the test,
# used once, at the end; and 1,000 for a harder test, with combinations and lengths that training never shows. The last
# three are *held out*: nothing is learned from them.
#
# A grammar writes both sides at once, so it also knows what people must annotate by hand elsewhere: which word
# translates which, and what each pronoun refers to (its *antecedent*). A word is a run of letters and digits, or one
# punctuation mark.

# %%
WORD = re.compile(r"\w+|[^\w\s]")

# %% [markdown]
# `read_bundled` (in `transformer.corpora`, which reads all corpora) gives the pairs of a split, each an `Example` with
# its `source`, its `target`, and this annotation.

# %% tags=["active-ipynb"]
# perfect = Example("He has opened the bottle.", "Er hat die Flasche geöffnet.",
#                   {(0, 0), (1, 1), (2, 4), (3, 2), (4, 3), (5, 5)}, (), ("perfect",))
# simple = Example("The cat lost its ball.", "Die Katze verlor ihren Ball.",
#                  {(i, i) for i in range(6)}, (), ("possessive",))
# separable = next(e for e in read_bundled("test")
#                  if {"separable", "subordinate"} <= set(e.constructions))
# for e in (perfect, simple, separable):
#     print(e.source, "|", e.target, "|", ", ".join(e.constructions))

# %% tags=["active-ipynb"]
# panels = []
# for e in (perfect, simple, separable):
#     english, german = WORD.findall(e.source), WORD.findall(e.target)
#     squares = [[(i, j) in e.alignment for i in range(len(english))]
#                for j in range(len(german))]
#     panels.append(("", squares, english, german))
# plotting.heatmaps(panels, across=3, width=4.4, height=4,
#                   labels=("English", "German"));

# %% [markdown]
# Behind each pair stand the constructions it uses. Yellow joins words that translate each other. The first two pairs were
# written for this page: in the first the participle (*geöffnet*) waits at the end of the German sentence, so the diagonal breaks; in the second it
# does not. The third comes from the test split. It has a verb that falls into two parts ("separable"): "opened" is *machte ... auf*,
# two squares in one column. Later notebooks ask whether attention finds these squares.
#
# How long are the sentences?

# %% tags=["active-ipynb"]
# pairs = read_corpus("bundled", "train")
# lengths = {"English": [len(WORD.findall(english)) for english, _ in pairs],
#            "German": [len(WORD.findall(german)) for _, german in pairs]}
# plotting.histograms(lengths, xlabel="words in a sentence, punctuation included",
#                     bins=[n - 0.5 for n in range(1, 28)]);

# %% [markdown]
# Nearly all have 5 to 20 words; German spreads a little wider.
#
# ## Real corpora
#
# `read_corpus(name, split)` returns the pairs of a corpus. Real ones are downloaded when they are first asked for, and
# checked: a file that changed since, or half arrived, is refused. **Multi30k** describes photographs. **Tatoeba** collects
# short everyday sentences. **newstest2013** and **newstest2014** are the news articles that the paper validates and tests
# on, **wmt14** is its training text, **Europarl** (debates of the European Parliament) a part of that. The treebanks are
# for notebook 18: their pairs are a sentence and its tree. What may be done with each is said by its licence.

# %% tags=["active-ipynb"]
# for name, corpus in CORPORA.items():
#     print(f"{name:13} licence: {corpus.licence}\n{'':13} cite: {corpus.citation}")

# %% [markdown]
# The paper's corpus, 4.5 million pairs, is not for a laptop. **Deviation: the notebooks learn from the bundled corpus
# and Multi30k.** The next cell turns the direction round, then asks for things that do not exist.

# %% tags=["active-ipynb"]
# print(read_corpus("bundled", "test", reverse=True)[0])
# for wrong in (("multi31k", "train"), ("bundled", "exam")):
#     try:
#         read_corpus(*wrong)
#     except ValueError as error:
#         print(error)

# %% [markdown]
# **Deviations: the paper held out no part of Europarl**; here its last 2,000 pairs are validation and test, so that this
# sample can be used alone. **The paper's text seems to have stayed cut into words** (it does not say); here the wmt14
# training text, which comes with spaces around its punctuation, is put together again, because the tests are plain text.
#
# The command `transformer train` (notebook 16) takes two files of your own, too: `--source-file` and `--target-file`,
# where line $n$ of one translates line $n$ of the other.

# %% [markdown]
# ## Splits that do not leak
#
# A test is worth something only if its sentences were not trained on. In Tatoeba's one file the same English sentence stands
# on several lines with different translations. Drawing *lines* for the test would leave copies of many in training. So
# lines are put into groups. Two lines are in one group if their English sides are equal, or their German sides; case, punctuation and spaces do not count. This carries on: if A goes
# with B and B with C, all three are one group.
#
# A small corpus of our own: five lines, of which three hang together although the first and the third share nothing.

# %% tags=["active-ipynb"]
# five = [("Stop!", "Halt!"), ("Stop.", "Hör auf!"), ("Give up.", "Hör auf."),
#         ("We sing.", "Wir singen."), ("Run!", "Lauf!")]
# print("groups:", groups(five))
# for english, german in hold_out(five, 1, seed=2):
#     print(f"{english:10} {german}")
#
# for seed in range(100):
#     held_out, *rest = hold_out(five, 1, seed)
#     trained_on = {fold(text) for pair in rest for text in pair}
#     assert not {fold(text) for text in held_out} & trained_on

# %% [markdown]
# The first three have the same group number. "Stop!" was drawn as the held-out pair and stands first; the last two are for
# training, and the rest of the group is left out.
#
# On Tatoeba (169,813 pairs in 125,973 groups), drawing 2,000 lines leaves the English side of 34% of them in training,
# and the German side of 12%. Drawing by English sentence mends only the first. With groups no sentence of validation or
# test, of either language, stands in another split. One pair a group is held out, so that no test sentence counts twice;
# 3,961 pairs are left out.

# %% [markdown]
# ## Byte-pair encoding
#
# Should a token be a word? Then there are too many of them, and new ones turn up all the time. A letter? Then
# sentences get very long. Byte-pair encoding (Sennrich et al., 2016) lies between. Start from single characters. Count
# which two neighbours occur together most often. Merge them into one new symbol. Repeat. Frequent words become one
# token; rare ones stay in parts. Five merges on five words, with the number of times each occurs:

# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# words = {"l a n d": 6, "l a n d s": 2, "h a n d": 4, "h a n d s": 3, "m a n": 2}
# for _ in range(5):
#     count = Counter()
#     for word, times in words.items():
#         symbols = word.split()
#         for neighbours in zip(symbols, symbols[1:]):
#             count[neighbours] += times
#     (left, right), most = count.most_common(1)[0]
#     words = {re.sub(rf"\b{left} {right}\b", left + right, word): times
#              for word, times in words.items()}
#     print(f"{left + right:6}{most:3} times   {'   '.join(words)}")

# %% [markdown]
# "an" is most frequent (in all 17 words), then "and" (15), then "land", "hand" and "hands". "lands" was too rare to
# get a symbol of its own, and stays "land" + "s"; so would "mans" become "m" + "an" + "s", although it never occurred.
#
# The paper shares **one vocabulary** of about 37,000 types between both languages. (A *type* is an entry of the vocabulary, a *token* one occurrence of it in a text.) That allows one embedding matrix
# for both, and names and numbers are the same tokens on both sides.

# %% [markdown]
# The library `tokenizers` does the same quickly, and on **bytes** instead of characters: every text is a sequence of
# 256 possible bytes, so nothing is ever unknown. Three ids are marks: padding, begin and end.
#
# Merges must not cross words, so the text is first cut at `PRE_TOKEN`: a word (or one punctuation mark) with the space
# before it, or leftover white space. This agrees with `WORD`, so each piece lies in one word.

# %%
SPECIALS = ("<pad>", "<s>", "</s>")
PRE_TOKEN = r" ?[\p{L}\p{N}_]+| ?[^\s\p{L}\p{N}_]|\s+(?!\S)|\s+"


def train_bpe(sentences: Iterable[str], vocab_size: int):
    """A byte-level BPE learned from sentences, each with a space before it."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PRE_TOKEN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=list(SPECIALS), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    bpe.train_from_iterator((" " + sentence for sentence in sentences), trainer)
    return bpe


# %%
def load_bpe(path: str | Path):
    """The BPE in a tokenizer.json.

    Raises FileNotFoundError or ValueError where it is missing or damaged.
    """
    from tokenizers import Tokenizer

    existing(path, "a model's folder needs the tokenizer it was trained with")
    try:
        bpe = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise ValueError(f"{path} is not a tokenizer ({error}): "
                         "copy it again from the trained model") from None
    if any(bpe.token_to_id(token) is None for token in SPECIALS):
        raise ValueError(f"{path} lacks the marks {' '.join(SPECIALS)}: "
                         "copy it again from the trained model")
    return bpe


# %% [markdown]
# A tokenizer then goes from text to ids and back. Each text is given one space before its first word, so that a word
# is the same token at the start of a sentence and inside it; `decode` takes the space away again.

# %%
class BytePairs:
    """Texts to token ids and back: decode(encode(text)) == text for every text."""

    def __init__(self, bpe):
        self.bpe = bpe
        self.bpe.encode_special_tokens = True  # "</s>" typed in a text is text, no mark
        self.pad_id, self.bos_id, self.eos_id = map(bpe.token_to_id, SPECIALS)

    @property
    def vocab_size(self) -> int:
        """Number of types: bytes, merges and marks."""
        return self.bpe.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, without marks at its ends."""
        return self.bpe.encode(" " + text).ids

    def encode_all(self, texts: Iterable[str]) -> list[list[int]]:
        """`encode` for a list of texts, on all cores."""
        spaced = [" " + text for text in check_texts(texts)]
        return [encoding.ids for encoding in self.bpe.encode_batch(spaced)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids; marks (padding, begin, end) are left out."""
        return self.bpe.decode(list(ids), skip_special_tokens=True).removeprefix(" ")


# %% [markdown]
# The class that everybody uses adds learning, files, and what pictures of attention need: the pieces as strings, and
# the word that each piece belongs to.

# %%
class Tokenizer(BytePairs):
    """Byte-pair encoding over UTF-8 bytes, one vocabulary for both languages."""

    @classmethod
    def train(cls, sentences: Iterable[str], vocab_size: int) -> "Tokenizer":
        """Learn merges from the training split, up to vocab_size types."""
        least = 256 + len(SPECIALS)
        if vocab_size < least:
            raise ValueError(f"vocab_size must be at least {least} "
                             f"(256 bytes and the marks), not {vocab_size}")
        if isinstance(sentences, str):
            check_texts(sentences)
        return cls(train_bpe(sentences, vocab_size))

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read what `save` wrote; see `load_bpe`."""
        return cls(load_bpe(path))

    def save(self, path: str | Path) -> None:
        """Write tokenizer.json."""
        self.bpe.save(str(path))

    def pieces(self, text: str) -> list[str]:
        """The tokens of a text as strings; a part of a character shows as U+FFFD."""
        return [self.bpe.decode([i]) for i in self.encode(text)]

    def word_of_each_piece(self, text: str) -> list[int]:
        """For each token the index of its word, as `WORD` finds them.

        White space with a token of its own belongs to the word after it; at the end of
        the text that is the number of words, the place of the end mark.
        """
        ends = [match.end() for match in WORD.finditer(" " + text)]
        offsets = self.bpe.encode(" " + text).offsets
        return [bisect_right(ends, end - 1) for _, end in offsets]


# %% tags=["active-ipynb"]
# tokenizer = Tokenizer.train((text for pair in pairs for text in pair), vocab_size=2000)
# for text in ("The gardener opened the bottle.", "Der Gärtner öffnete die Flasche.",
#              "unbelievably"):
#     words = tokenizer.word_of_each_piece(text)
#     print(" | ".join(tokenizer.pieces(text)), "   words", words)

# %% [markdown]
# Frequent words are one token each, with the space before them. Rarer ones are cut, and a word that never occurred
# falls into short pieces, but it can be written. The numbers say which word each piece belongs to.
#
# How large should the vocabulary be? More types make shorter sentences but larger matrices.

# %% tags=["active-ipynb"]
# held_out = [text for pair in read_corpus("bundled", "validation") for text in pair]
# sample = [text for pair in pairs[:5000] for text in pair]
# mean = {}
# for V in (259, 300, 400, 600, 1000, 2000):
#     ids = Tokenizer.train(sample, V).encode_all(held_out)
#     mean[V] = sum(map(len, ids)) / len(held_out)
# plotting.lines(mean, {"tokens": mean.values()}, "types in the vocabulary",
#                "tokens in a validation sentence", markers=True);

# %% [markdown]
# On the left, 259 types: only bytes and marks, one token a byte (a letter like ö has two). The first few hundred merges shorten sentences
# most. How much of the vocabulary do the languages share?

# %% tags=["active-ipynb"]
# def types_of(texts):
#     return {i for ids in tokenizer.encode_all(texts) for i in ids}
#
# english_texts, german_texts = zip(*pairs)
# english, german = types_of(english_texts), types_of(german_texts)
# parts = {"English only": english - german, "both": english & german,
#          "German only": german - english}
# plotting.bars({name: len(types) for name, types in parts.items()}, ylabel="types")
# for name, texts in (("English", english_texts), ("German", german_texts)):
#     words = {word for text in texts for word in WORD.findall(text)}
#     print(f"different words in {name}: {len(words):,}")

# %% [markdown]
# Names, punctuation and short pieces of words are shared. German needs more types of its own: it has more different words, its
# endings among the reasons. The rest of the 2,000 are bytes that do not occur here, and merges that were only a step on the
# way to longer ones.
#
# **Lossless.** Whatever you type comes back, even what the training data never held, and even a mark typed as text.

# %% tags=["active-ipynb"]
# nasty = ["", " ", "  two  spaces ", "line\nbreak\r\n\ttab", "🙂 日本語 Ünïcödé",
#          "e\u0301 \u2028 \x00", "</s> <pad>", "don't ... _x_"]
# for text in nasty:
#     print(f"{len(tokenizer.encode(text)):3} tokens for {text!r}")

# %% tags=["active-ipynb"]
# for text in nasty:
#     assert tokenizer.decode(tokenizer.encode(text)) == text
#     words = range(len(WORD.findall(text)))
#     assert set(words) <= set(tokenizer.word_of_each_piece(text))
# marks = {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id}
# assert not marks & set(tokenizer.encode("</s> <pad> <s>"))

# %% [markdown]
# ## Marks and batches
#
# A source ends with the end mark. A target begins with the begin mark and ends with the end mark; the decoder reads
# all of it but the last token, and must answer with all of it but the first. So each position's answer is the token
# that it reads next.

# %%
@dataclass(frozen=True)
class Batch:
    """Token ids, padded: source (B, S) and target (B, T).

    The source ends with the end mark; the target begins with the begin mark and ends
    with the end mark.
    """

    source: torch.Tensor
    target: torch.Tensor

    @property
    def decoder_input(self) -> torch.Tensor:
        """What the decoder reads, (B, T - 1): all but the last token."""
        return self.target[:, :-1]

    @property
    def gold(self) -> torch.Tensor:
        """What it should answer, (B, T - 1): the same shifted by one."""
        return self.target[:, 1:]

    def to(self, device: torch.device | str) -> "Batch":
        return Batch(self.source.to(device), self.target.to(device))


# %%
def encode_pairs(
    tokenizer: Tokenizer, pairs: list[tuple[str, str]]
) -> list[tuple[list[int], list[int]]]:
    """[(source ids with end mark, target ids with begin and end marks), ...]"""
    sources = tokenizer.encode_all([source for source, _ in pairs])
    targets = tokenizer.encode_all([target for _, target in pairs])
    begin, end = [tokenizer.bos_id], [tokenizer.eos_id]
    return [(source + end, begin + target + end)
            for source, target in zip(sources, targets)]


# %% [markdown]
# Rows of a tensor are equally long, so shorter sentences are filled up with the padding id. Masks (notebook 04) and
# the loss (notebook 13) ignore it.

# %%
def pad(rows: list, pad_id: int) -> torch.Tensor:
    """Lists of ids, filled up with pad_id to the longest: (B, length), int64.

    Raises ValueError for no rows at all.
    """
    if not rows:
        raise ValueError("a batch needs at least one sentence")
    tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=pad_id)


def collate(encoded: list, pad_id: int = 0) -> Batch:
    """A `Batch` of encoded pairs."""
    return Batch(pad([source for source, _ in encoded], pad_id),
                 pad([target for _, target in encoded], pad_id))


# %% tags=["active-ipynb"]
# batch = collate(encode_pairs(tokenizer, [("The cat sleeps.", "Die Katze schläft."),
#                                          ("Go!", "Geh!")]))
# for name, rows in (("source", batch.source), ("decoder reads", batch.decoder_input),
#                    ("should answer", batch.gold)):
#     for row in rows.tolist():
#         tokens = [tokenizer.bpe.id_to_token(i).replace("Ġ", "_") for i in row]
#         print(f"{name:14}", " | ".join(tokens))

# %% [markdown]
# An underscore stands for a space; an umlaut looks odd because the library shows bytes. Compare the last two blocks:
# the answer is the input moved by one. The decoder's input leaves out the last token. In the longer row that is the end mark. In the
# shorter row it is padding, so its end mark is read like any token; the answers from there on are padding, which is not counted.
#
# Encoding millions of pairs takes minutes, and as Python lists they would fill the memory. So a large corpus is encoded
# once, into a folder of plain files, and read from there (`prepare_corpus` in `transformer.corpora.encoded`). What comes
# next takes either, a list or such a folder.

# %% tags=["active-ipynb"]
# encoded = encode_pairs(tokenizer, pairs)

# %% [markdown]
# ## How many tokens are in a batch?
#
# If a batch had so many *sentences*, one of long ones would cost ten times the memory and time of one of short ones.
#
# Section 5.1 puts sentences of about the same length together, about 25,000 source tokens and as many target tokens a
# batch. The paper does not say whether padding counts. Here it does, as every *place* in a batch, token or padding, costs
# memory and time: the number of sentences times the longest sentence of either side is at most `batch_tokens`.

# %% [markdown]
# A pair has two lengths, and a batch pads both sides. Sorting by one leaves the other mixed. So pairs are ordered by
# the longer of their sides; among equals by the difference of the sides, upwards and downwards in turn, so that
# neighbours are similar on both. Pairs that are equal in both lengths stay in random order.

# %%
def similar_order(
    source: np.ndarray, target: np.ndarray, chance: np.random.RandomState
) -> np.ndarray:
    """Indices of pairs with these lengths, in an order where neighbours are similar."""
    mixed = chance.permutation(len(source))
    difference = source[mixed] - target[mixed]
    longer = np.maximum(source, target)[mixed]
    return mixed[np.lexsort((np.where(longer % 2, difference, -difference), longer))]


# %% tags=["active-ipynb"]
# lengths = np.array([(len(source), len(target)) for source, target in encoded]).T
# order = similar_order(*lengths, np.random.RandomState(0))
# for i in (1000, 10_000, 19_000):
#     some = lengths[:, order[i:i + 200:20]].T
#     print(f"from place {i:6,}:", "  ".join(f"{s}/{t}" for s, t in some))

# %% [markdown]
# Source/target lengths of every twentieth pair, in three stretches: neighbours are alike. So this order is cut into
# batches, each filled up before the next begins. As lengths grow, the pair that comes last is the longest of its batch.

# %%
def similar_batches(
    source: np.ndarray, target: np.ndarray, batch_tokens: int,
    chance: np.random.RandomState,
) -> list[list[int]]:
    """Indices of pairs with these lengths in batches, short sentences first."""
    longer = np.maximum(source, target).tolist()
    batches, batch = [], []
    for i in similar_order(source, target, chance).tolist():
        if batch and (len(batch) + 1) * longer[i] > batch_tokens:
            batches.append(batch)
            batch = []
        batch.append(i)
    return [*batches, batch]


# %% [markdown]
# An epoch is one pass over all pairs. A large corpus is mixed in *windows* of 200,000 pairs, so that memory does not
# grow with it (`transformer.corpora.windows`); a corpus that fits into one window is mixed as a whole.

# %%
def lengths_of(encoded, rows) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of the sources and of the targets of some encoded pairs."""
    if hasattr(encoded, "lengths"):  # pairs on disk know them without reading a token
        return encoded.lengths(np.asarray(rows))
    source, target = (
        np.array([len(encoded[i][side]) for i in rows]) for side in (0, 1))
    return source, target


# %%
def epoch_batches(
    encoded, batch_tokens: int, seed: int = 0, start: int = 0
) -> Iterator[list[int]]:
    """Yield the batches of an epoch, lists of indices, from number start on.

    encoded: a list of encoded pairs, or `EncodedPairs`. A batch holds pairs of similar
    length, at most batch_tokens a side with padding; a pair longer than that stands
    alone. Every pair comes once. The seed decides everything; use another for every
    epoch. Raises ValueError where there are no pairs, for batch_tokens below 1 and for
    a negative start.
    """
    if batch_tokens < 1 or start < 0:
        raise ValueError("batch_tokens must be at least 1 and start at least 0, "
                         f"not {batch_tokens} and {start}")
    if not len(encoded):
        raise ValueError("no sentence pairs to make batches of")
    # this generator gives the same numbers with every version of numpy
    chance = np.random.RandomState(np.random.MT19937(seed % 2**64))
    for rows in windows(len(encoded), chance):
        batches = similar_batches(*lengths_of(encoded, rows), batch_tokens, chance)
        order = chance.permutation(len(batches))
        yield from (rows[batches[i]].tolist() for i in order[start:])
        start = max(0, start - len(batches))


def token_batches(encoded, batch_tokens: int, seed: int = 0) -> list[list[int]]:
    """The batches of an epoch as a list; see `epoch_batches`."""
    return list(epoch_batches(encoded, batch_tokens, seed))


# %%
def padding_share(encoded, batches: list[list[int]]) -> float:
    """The part of all places in the batches, both sides, that holds padding."""
    real = places = 0
    for batch in batches:
        for lengths in lengths_of(encoded, batch):
            real += int(lengths.sum())
            places += len(batch) * int(lengths.max())
    return 1 - real / places


# %% tags=["active-ipynb"]
# batches = token_batches(encoded, batch_tokens=2048)
# for rows in batches[:4]:
#     batch = collate([encoded[i] for i in rows])
#     print(f"{len(rows):4} sentences: source {tuple(batch.source.shape)}, "
#           f"target {tuple(batch.target.shape)}")

# %% [markdown]
# Short sentences come in large batches, long ones in small batches, and the work of each is about the same. The
# batches themselves are in random order, otherwise training would go from short to long again and again.
#
# ## What padding costs
#
# Padding is not wrong, only wasted: masks keep it from the result, but every layer computes it. So its share is the part
# of time and memory that buys nothing. Four ways to make the same number of batches:

# %% tags=["active-ipynb"]
# mixed = np.random.RandomState(0).permutation(len(encoded))
# by_target = np.argsort(lengths[1], kind="stable")
# places = len(encoded) * lengths.max(axis=1).sum()
# share = {
#     "both lengths": padding_share(encoded, batches),
#     "target length": padding_share(encoded, np.array_split(by_target, len(batches))),
#     "random": padding_share(encoded, np.array_split(mixed, len(batches))),
#     "fixed length": 1 - lengths.sum() / places,
# }
# plotting.bars({name: 100 * value for name, value in share.items()},
#               ylabel="padding, per cent of all places");

# %% tags=["active-ipynb"]
# assert list(share.values()) == sorted(share.values()) and share["both lengths"] < 0.05

# %% [markdown]
# Sorted by both lengths, hardly a place is wasted; sorted by the target's alone, every eighth; in random batches, nearly half.
# Fixed length wastes most, and it also tempts people to cut long sentences, end mark included, from which a model cannot learn when
# to stop.
#
# ## Checks
#
# **Every pair is in exactly one batch, no batch is too large, the seed decides everything,** and an epoch can go on from any of
# its batches, as training does after a break.

# %% tags=["active-ipynb"]
# assert sorted(i for rows in batches for i in rows) == list(range(len(encoded)))
# for rows in batches:
#     assert len(rows) * max(len(side) for i in rows for side in encoded[i]) <= 2048
# one, again, other = [token_batches(encoded, 2048, seed) for seed in (7, 7, 8)]
# assert one == again != other
# assert list(epoch_batches(encoded, 2048, seed=7, start=100)) == one[100:]

# %% [markdown]
# **The library applies its merges in order.** Encode a word by applying its own merges in the order they were learned.

# %% tags=["active-ipynb"]
# symbols = ["Ġ", *"unbelievably"]
# for merge in json.loads(tokenizer.bpe.to_str())["model"]["merges"]:
#     left, right = merge if isinstance(merge, list) else merge.split(" ")
#     for i in range(len(symbols) - 1, 0, -1):
#         if symbols[i - 1:i + 1] == [left, right]:
#             symbols[i - 1:i + 1] = [left + right]
# assert symbols == tokenizer.bpe.encode(" unbelievably").tokens

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** The bundled corpus has no emoji. How many tokens does the text "🙂" become? Think before you count.

# %% tags=["active-ipynb"]
# your_answer = ...
# if your_answer is not ...:
#     assert len(tokenizer.encode("🙂")) == your_answer

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_answer = 5`: the space that each text begins with, and the four bytes of the emoji in UTF-8. No merge joins
# them, because the training data never held them side by side.
# </details>
#
# **2.** All sources have 10 tokens and all targets 16, marks included. How many pairs fit in a batch of `batch_tokens`?

# %% tags=["active-ipynb"]
# def pairs_in_a_batch(batch_tokens):
#     return ...
#
# alike = [([5] * 10, [5] * 16)] * 1000
# if pairs_in_a_batch(2048) is not ...:
#     for n in (100, 2048, 5000):
#         assert max(map(len, token_batches(alike, n))) == pairs_in_a_batch(n)

# %% [markdown]
# <details><summary>Solution</summary>
#
# `return batch_tokens // 16`: the longer side decides. The source side of such a batch has 10 columns, so it takes 10/16 of `batch_tokens`, without padding.
# </details>

# %% [markdown]
# ## Next
#
# [11 Hardware](11_hardware.ipynb) or, if you want to go on learning, [12 Optimizer](12_optimizer.ipynb): how weights
# follow the gradient. In Colab the next notebook imports this module from the installed package; to try changes of
# your own, clone the repository and install it with `pip install -e .`.
