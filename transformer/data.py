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
import gzip
import hashlib
import os
import random
import re
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch

from transformer.model import write_file


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# import tempfile
# from collections import Counter
#
# from transformer import plotting

# %% [markdown]
# ## Where data lies
#
# A corpus comes with the package, so that everything here runs without a network. It lies in the checkout's `data/`,
# or, where the package was installed, inside it. Downloads have a folder of their own, which you can move.

# %%
def data_folder():
    """The checkout's data/ where the package runs from one, otherwise the copy inside the installed package."""
    package = Path(find_spec("transformer").origin).resolve().parent
    checkout = package.parent / "data"
    return checkout if (checkout / "bundled").is_dir() else package / "_bundled"


# %%
def download_folder():
    """Where downloads are kept: $TRANSFORMER_DOWNLOADS, data/downloads in a checkout, or a folder in ~/.cache."""
    if "TRANSFORMER_DOWNLOADS" in os.environ:
        return Path(os.environ["TRANSFORMER_DOWNLOADS"])
    if data_folder().name == "data":
        return data_folder() / "downloads"
    return Path.home() / ".cache" / "annotated-attention"


# %% [markdown]
# ## Files of one sentence a line
#
# The plainest corpus is two text files: line $n$ of one translates line $n$ of the other. Only a newline byte ends a
# line. Python's own `splitlines` also splits at rarer characters, such as U+2028, and one of those inside a sentence
# would shift all lines after it against their translations.

# %%
def read_bytes(path):
    """The bytes of a file, unpacked where its name ends in .gz; errors name the file."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: check the name, or give the full path")
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error):
        raise ValueError(f"{path} is not a whole gzip file: copy or download it again") from None


# %%
def decode_line(line, path, number):
    """The text of one line's bytes, without a carriage return at its end; ValueError where it is not UTF-8."""
    try:
        return line.decode("utf8").removesuffix("\r")
    except UnicodeDecodeError:
        raise ValueError(f"{path}, line {number}, is not UTF-8: convert the file, for example with "
                         "iconv -f latin1 -t utf8") from None


# %%
def read_lines(path):
    """The lines of a UTF-8 text file, plain or .gz; only a newline ends one. ValueError where there are none."""
    lines = read_bytes(path).removeprefix(b"\xef\xbb\xbf").split(b"\n")  # without a byte order mark
    if lines[-1] == b"":
        lines.pop()
    if not lines:
        raise ValueError(f"{path} is empty: it should hold one sentence a line")
    return [decode_line(line, path, number) for number, line in enumerate(lines, 1)]


# %%
def read_parallel(source_file, target_file):
    """[(source sentence, target sentence), ...] from two files whose lines correspond."""
    source, target = read_lines(source_file), read_lines(target_file)
    if len(source) != len(target):
        raise ValueError(f"{source_file} has {len(source)} lines and {target_file} has {len(target)}: "
                         "line n of one must translate line n of the other")
    return list(zip(source, target))


# %% [markdown]
# Two files of your own, with everything that editors on other systems leave in them: a byte order mark, carriage
# returns, a U+2028 inside a sentence, no newline at the end.

# %% tags=["active-ipynb"]
# with tempfile.TemporaryDirectory() as folder:
#     english, german = Path(folder, "my.en"), Path(folder, "my.de")
#     english.write_bytes(b"\xef\xbb\xbfGood morning.\r\nThank you.\r\n")
#     german.write_bytes("Guten\u2028Morgen.\nDanke.".encode())
#     own = read_parallel(english, german)
#     german.write_bytes("Guten Morgen.\nDanke schön.".encode("latin1"))
#     try:
#         read_parallel(english, german)
#     except ValueError as error:
#         print(str(error).replace(str(german), german.name))

# %% tags=["active-ipynb"]
# assert own == [("Good morning.", "Guten\u2028Morgen."), ("Thank you.", "Danke.")]

# %% [markdown]
# The first pair of files is read as meant. The second holds an "ö" in an older encoding; the message says where, and
# what to do. On the command line these are `--source-file` and `--target-file`.

# %% [markdown]
# ## The bundled corpus
#
# `data/bundled/` holds 20,000 English-German pairs for training, and 1,000 each for validation, test and a harder
# test. A grammar writes both sides at once, so it also knows what people must annotate by hand elsewhere: which word
# translates which, and what each pronoun refers to. A word is a run of letters and digits, or one punctuation mark.

# %%
WORD = re.compile(r"\w+|[^\w\s]")
BUNDLED_SPLITS = ("train", "validation", "test", "hard")


# %%
@dataclass(frozen=True)
class Pronoun:
    """A possessive pronoun: word indices of it, of its antecedent and of all nouns it might refer to."""

    index: int
    antecedent: int
    candidates: tuple


# %%
@dataclass(frozen=True)
class Example:
    """A pair of the bundled corpus with its gold annotation.

    Words are what `WORD` finds. alignment holds (English word, German word) index pairs; pronouns
    holds pairs of `Pronoun`, English and German.
    """

    source: str
    target: str
    alignment: frozenset
    pronouns: tuple
    constructions: tuple


# %%
def parse_pronoun(text):
    """A `Pronoun` from `index:antecedent:candidate,candidate,...`."""
    index, antecedent, candidates = text.split(":")
    return Pronoun(int(index), int(antecedent), tuple(int(c) for c in candidates.split(",")))


# %%
def parse_example(line):
    """An `Example` from one TAB-separated line of data/bundled/*.tsv."""
    source, target, alignment, pronouns, constructions = line.split("\t")
    links = frozenset(tuple(int(i) for i in link.split("-")) for link in alignment.split())
    both = tuple(tuple(parse_pronoun(side) for side in item.split("/")) for item in pronouns.split())
    return Example(source, target, links, both, tuple(constructions.split(",")))


# %%
def read_bundled(split):
    """The `Example`s of one split of the bundled corpus: train, validation, test or hard."""
    if split not in BUNDLED_SPLITS:
        raise ValueError(f"bundled has no split {split!r}: choose one of {', '.join(BUNDLED_SPLITS)}")
    return [parse_example(line) for line in read_lines(data_folder() / "bundled" / f"{split}.tsv")]


# %% tags=["active-ipynb"]
# examples = [parse_example(line) for line in (
#     "He has opened the bottle.\tEr hat die Flasche geöffnet.\t0-0 1-1 2-4 3-2 4-3 5-5\t\tperfect",
#     "The cat lost its ball.\tDie Katze verlor ihren Ball.\t0-0 1-1 2-2 3-3 4-4 5-5\t3:1:1/3:1:1\tpossessive")]
# separable = next(e for e in read_bundled("test") if {"separable", "subordinate"} <= set(e.constructions))
# for example in [*examples, separable]:
#     print(f"{example.source}  |  {example.target}  |  {', '.join(example.constructions)}")

# %% tags=["active-ipynb"]
# panels = []
# for e in [*examples, separable]:
#     english, german = WORD.findall(e.source), WORD.findall(e.target)
#     squares = [[(i, j) in e.alignment for i in range(len(english))] for j in range(len(german))]
#     panels.append(("", squares, english, german))
# plotting.heatmaps(panels, across=3, width=4.4, height=4, row_label="German", column_label="English");

# %% [markdown]
# Yellow joins words that translate each other. The first two pairs were written for this page: in the first the verb
# waits at the end of the German sentence, so the diagonal breaks; in the second it does not. The third is the first
# pair of the test split that has a subordinate clause and a separable verb. Later notebooks ask whether attention
# finds these squares.
#
# How long are the sentences?

# %% tags=["active-ipynb"]
# pairs = [(example.source, example.target) for example in read_bundled("train")]
# lengths = {side: [len(WORD.findall(pair[i])) for pair in pairs] for i, side in enumerate(("English", "German"))}
# plotting.histograms(lengths, xlabel="words in a sentence, punctuation included", bins=range(1, 26));

# %% tags=["active-ipynb"]
# assert len(pairs) == 20_000 and sum(lengths["English"]) / len(pairs) >= 9
# assert all(0 <= i < len(WORD.findall(e.source)) and 0 <= j < len(WORD.findall(e.target))
#            for e in read_bundled("hard") for i, j in e.alignment)

# %% [markdown]
# ## Corpora with an address
#
# Real corpora are downloaded when they are first asked for. The registry knows for each its address, its files, what
# may be done with it, and the checksum of every file. The checksum is what makes a result repeatable: a file that
# changed, or half arrived, is refused.

# %%
@dataclass(frozen=True)
class Corpus:
    """A corpus that is downloaded: where it lies, what it is, and what may be done with it.

    url holds {file}; splits maps a split to (source file, target file); sha256 covers every file.
    """

    url: str
    splits: dict
    sha256: dict
    licence: str


# %%
MULTI30K = ("https://raw.githubusercontent.com/multi30k/dataset/"
            "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/{file}")

CORPORA = {
    "multi30k": Corpus(
        MULTI30K,
        {"train": ("train.en.gz", "train.de.gz"), "validation": ("val.en.gz", "val.de.gz"),
         "test": ("test_2016_flickr.en.gz", "test_2016_flickr.de.gz")},
        {"train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
         "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
         "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
         "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
         "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
         "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"},
        "research and education, non-commercial (images: Flickr; text: Elliott et al., 2016)"),
}


# %%
def sha256_of(path):
    """SHA-256 of a file's bytes, as hexadecimal digits."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


# %% [markdown]
# A file is looked for in three places: a **mirror** (a folder of yours that holds `<corpus>/<file>`, named in
# `TRANSFORMER_MIRROR`; useful where many machines share a disk or have no network), the download folder, and the
# official address.

# %%
def corpus_file(name, file):
    """The path of one file of a registered corpus: from $TRANSFORMER_MIRROR, from earlier, or downloaded.

    The mirror is a folder that holds <corpus>/<file>. Raises ValueError where the file's checksum is
    wrong and OSError where no place has it.
    """
    mirror = os.environ.get("TRANSFORMER_MIRROR")
    own = download_folder() / name / file
    mirrored = Path(mirror) / name / file if mirror else own
    path = mirrored if mirrored.is_file() else own
    if not path.is_file():
        download(name, file, own)
    if sha256_of(path) != CORPORA[name].sha256[file]:
        raise ValueError(f"{path} is damaged (its SHA-256 is not the registered one): "
                         "delete it and run the command again")
    return path


# %%
def download(name, file, path):
    """Fetch a file of a corpus to path, with a progress bar; OSError, in one sentence, where it cannot be had."""
    import pooch
    import requests

    url = CORPORA[name].url.format(file=file)
    print(f"{name}: {url}\nlicence: {CORPORA[name].licence}")
    fetch = pooch.HTTPDownloader(progressbar=True, timeout=30)
    try:
        write_file(path, lambda temporary: fetch(url, str(temporary), None))
    except requests.RequestException as error:
        raise OSError(f"could not download the corpus {name} from {url} ({type(error).__name__}): check the network, "
                      "or set TRANSFORMER_MIRROR to a folder that holds <corpus>/<file>; "
                      "--corpus bundled always works") from None


# %%
def read_corpus(name, split):
    """[(source, target), ...] of one split (train, validation, test, for bundled also hard) of a corpus."""
    if name == "bundled":
        return [(example.source, example.target) for example in read_bundled(split)]
    if name not in CORPORA:
        known = ", ".join(["bundled", *CORPORA])
        raise ValueError(f"unknown corpus {name!r}: choose one of {known}, or give your own files")
    if split not in CORPORA[name].splits:
        raise ValueError(f"{name} has no split {split!r}: choose one of {', '.join(CORPORA[name].splits)}")
    return read_parallel(*(corpus_file(name, file) for file in CORPORA[name].splits[split]))


# %% [markdown]
# Multi30k describes photographs: 29,000 pairs for training, 1,014 for validation, and the 1,000 of the 2016 test. The
# paper used WMT 2014, 4.5 million pairs, which is not for a laptop. **Deviation: the notebooks learn from the bundled
# corpus and Multi30k.** The next cell asks for things that do not exist.

# %% tags=["active-ipynb"]
# print(f"multi30k: {CORPORA['multi30k'].licence}")
# for wrong in (("multi31k", "train"), ("multi30k", "exam"), ("bundled", "exam")):
#     try:
#         read_corpus(*wrong)
#     except ValueError as error:
#         print(error)

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
#     (left, right), times = count.most_common(1)[0]
#     words = {re.sub(rf"\b{left} {right}\b", left + right, word): n for word, n in words.items()}
#     print(f"{left + right:6}{times:3} times   {'   '.join(words)}")

# %% [markdown]
# "an" is most frequent (in all 17 words), then "and" (15), then "land", "hand" and "hands". "lands" was too rare to
# get a symbol of its own, and stays "land" + "s"; so would "mans" become "m" + "an" + "s", although it never occurred.
#
# The paper shares **one vocabulary** of about 37,000 types between both languages. That allows one embedding matrix
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


# %%
def train_bpe(sentences, vocab_size):
    """A byte-level BPE of the `tokenizers` library, learned from sentences, each with a space before it."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PRE_TOKEN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(SPECIALS), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    bpe.train_from_iterator((" " + sentence for sentence in sentences), trainer)
    return bpe


# %%
def load_bpe(path):
    """The BPE in a tokenizer.json; FileNotFoundError or ValueError where it is missing or damaged."""
    from tokenizers import Tokenizer

    if not Path(path).is_file():
        raise FileNotFoundError(f"no file {path}: a model's folder needs the tokenizer it was trained with")
    try:
        bpe = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise ValueError(f"{path} is not a tokenizer ({error}): copy it again from the trained model") from None
    if any(bpe.token_to_id(token) is None for token in SPECIALS):
        raise ValueError(f"{path} lacks the marks {' '.join(SPECIALS)}: copy it again from the trained model")
    return bpe


# %% [markdown]
# A tokenizer then goes from text to ids and back. Each text is given one space before its first word, so that a word
# is the same token at the start of a sentence and inside it; `decode` takes the space away again.

# %%
class BytePairs:
    """Texts to token ids and back: decode(encode(text)) == text for every text."""

    def __init__(self, bpe):
        self.bpe = bpe
        self.bpe.encode_special_tokens = True  # "</s>" typed in a text is text, not an end mark
        self.pad_id, self.bos_id, self.eos_id = (bpe.token_to_id(token) for token in SPECIALS)

    @property
    def vocab_size(self):
        """Number of types: bytes, merges and marks."""
        return self.bpe.get_vocab_size()

    def encode(self, text):
        """Token ids of a text, without marks at its ends."""
        return self.bpe.encode(" " + text).ids

    def encode_all(self, texts):
        """`encode` for a list of texts, on all cores."""
        return [encoding.ids for encoding in self.bpe.encode_batch([" " + text for text in texts])]

    def decode(self, ids):
        """The text of token ids; marks (padding, begin, end) are left out."""
        return self.bpe.decode(list(ids), skip_special_tokens=True).removeprefix(" ")


# %% [markdown]
# The class that everybody uses adds learning, files, and what pictures of attention need: the pieces as strings, and
# the word that each piece belongs to.

# %%
class Tokenizer(BytePairs):
    """Byte-pair encoding over UTF-8 bytes (Sennrich et al., 2016), one vocabulary for both languages."""

    @classmethod
    def train(cls, sentences, vocab_size):
        """Learn merges (from the training split only) up to vocab_size types, or until nothing is left to merge."""
        least = 256 + len(SPECIALS)
        if vocab_size < least:
            raise ValueError(f"vocab_size must be at least {least} (256 bytes and the marks), not {vocab_size}")
        return cls(train_bpe(sentences, vocab_size))

    @classmethod
    def load(cls, path):
        """Read what `save` wrote; FileNotFoundError or ValueError where it is missing or damaged."""
        return cls(load_bpe(path))

    def save(self, path):
        """Write tokenizer.json."""
        self.bpe.save(str(path))

    def pieces(self, text):
        """The text cut into its tokens, as strings; a part of a character shows as U+FFFD."""
        return [self.bpe.decode([i]) for i in self.encode(text)]

    def word_of_each_piece(self, text):
        """For each token the index of its word, as `WORD` finds them.

        White space with a token of its own belongs to the word after it; at the end of the text that
        is the number of words, the place of the end mark.
        """
        ends = [match.end() for match in WORD.finditer(" " + text)]
        return [bisect_right(ends, end - 1) for _, end in self.bpe.encode(" " + text).offsets]


# %% tags=["active-ipynb"]
# tokenizer = Tokenizer.train((sentence for pair in pairs for sentence in pair), vocab_size=2000)
# for sentence in ("The gardener opened the bottle.", "Der Gärtner öffnete die Flasche.", "unbelievably"):
#     print(" | ".join(tokenizer.pieces(sentence)), "   words", tokenizer.word_of_each_piece(sentence))

# %% [markdown]
# Frequent words are one token each, with the space before them. Rarer ones are cut, and a word that never occurred
# falls into short pieces, but it can be written. The numbers say which word each piece belongs to.
#
# How large should the vocabulary be? More types make shorter sentences but larger matrices.

# %% tags=["active-ipynb"]
# held_out = [text for pair in read_corpus("bundled", "test") for text in pair]
# sample = [text for pair in pairs[:5000] for text in pair]
# trained = {V: Tokenizer.train(sample, V) for V in (259, 300, 400, 600, 1000, 2000)}
# mean = {V: sum(map(len, bpe.encode_all(held_out))) / len(held_out) for V, bpe in trained.items()}
# plotting.lines(mean, {"tokens": mean.values()}, "types in the vocabulary", "tokens in a test sentence", markers=True);

# %% [markdown]
# On the left, 259 types: only bytes and marks, one token a letter. The first few hundred merges shorten sentences
# most. How much of the vocabulary do the languages share?

# %% tags=["active-ipynb"]
# used = [{i for ids in tokenizer.encode_all([pair[side] for pair in pairs]) for i in ids} for side in (0, 1)]
# parts = {"English only": used[0] - used[1], "both": used[0] & used[1], "German only": used[1] - used[0]}
# plotting.bars({name: len(types) for name, types in parts.items()}, ylabel="types");

# %% [markdown]
# Names, punctuation and short pieces of words are shared. German needs more types of its own, because its words change
# their endings more. The rest of the 2,000 are bytes that do not occur here, and merges that were only a step on the
# way to longer ones.
#
# **Lossless.** Whatever you type comes back, even what the training data never held, and even a mark typed as text.

# %% tags=["active-ipynb"]
# nasty = ["", " ", "  two  spaces ", "line\nbreak\r\n\ttab", "🙂 日本語 Ünïcödé", "e\u0301 \u2028 \x00",
#          "</s> <pad>", "don't ... _x_"]
# for text in nasty:
#     print(f"{len(tokenizer.encode(text)):3} tokens for {text!r}")

# %% tags=["active-ipynb"]
# assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in nasty)
# assert not {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id} & set(tokenizer.encode("</s> <pad> <s>"))
# assert all(set(range(len(WORD.findall(text)))) <= set(tokenizer.word_of_each_piece(text)) for text in nasty)

# %% [markdown]
# ## Marks and batches
#
# A source ends with the end mark. A target begins with the begin mark and ends with the end mark; the decoder reads
# all of it but the last token, and must answer with all of it but the first. So each position's answer is the token
# that it reads next.

# %%
@dataclass(frozen=True)
class Batch:
    """source (B, S) ends with the end mark; target (B, T) begins with the begin mark and ends with the end mark."""

    source: torch.Tensor
    target: torch.Tensor

    @property
    def decoder_input(self):
        """What the decoder reads, (B, T - 1): all but the last token."""
        return self.target[:, :-1]

    @property
    def gold(self):
        """What it should answer, (B, T - 1): the same shifted by one."""
        return self.target[:, 1:]

    def to(self, device):
        return Batch(self.source.to(device), self.target.to(device))


# %%
def encode_pairs(tokenizer, pairs):
    """[(source ids with end mark, target ids with begin and end marks), ...] of sentence pairs."""
    sources, targets = (tokenizer.encode_all([pair[side] for pair in pairs]) for side in (0, 1))
    bos, eos = tokenizer.bos_id, tokenizer.eos_id
    return [([*source, eos], [bos, *target, eos]) for source, target in zip(sources, targets)]


# %% [markdown]
# Rows of a tensor are equally long, so shorter sentences are filled up with the padding id. Masks (notebook 04) and
# the loss (notebook 13) ignore it.

# %%
def pad(rows, pad_id):
    """Lists of ids, filled up with pad_id to the longest: (B, length), int64. ValueError for no rows at all."""
    if not rows:
        raise ValueError("a batch needs at least one sentence")
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows], dtype=torch.long)


# %%
def collate(encoded, pad_id=0):
    """A `Batch` of encoded pairs."""
    return Batch(pad([source for source, _ in encoded], pad_id), pad([target for _, target in encoded], pad_id))


# %% tags=["active-ipynb"]
# batch = collate(encode_pairs(tokenizer, [("The cat sleeps.", "Die Katze schläft."), ("Go!", "Geh!")]))
# for name, rows in (("source", batch.source), ("decoder reads", batch.decoder_input), ("should answer", batch.gold)):
#     for row in rows.tolist():
#         print(f"{name:14}", " | ".join(tokenizer.bpe.id_to_token(i).replace("Ġ", "_") for i in row))

# %% [markdown]
# An underscore stands for a space; an umlaut looks odd because the library shows bytes. Compare the last two blocks:
# the answer is the input moved by one.

# %% [markdown]
# ## How many tokens are in a batch?
#
# Section 5.1 puts sentences of about the same length together, about 25,000 source tokens and as many target tokens a
# batch. The paper does not say whether padding counts. Here it does, because places cost memory and time whether or
# not they are padding: the number of sentences times the longest sentence of either side is at most `batch_tokens`.

# %%
def token_batches(encoded, batch_tokens, seed=0):
    """Indices of encoded pairs in batches of similar length, at most batch_tokens a side with padding.

    The same seed gives the same batches in the same order; pairs of equal length are mixed anew by
    each seed, so that the epoch's number can serve as one. A pair longer than batch_tokens stands
    alone. Raises ValueError where there are no pairs.
    """
    if not encoded:
        raise ValueError("no sentence pairs to make batches of")
    chance = random.Random(seed)
    order = list(range(len(encoded)))
    chance.shuffle(order)
    order.sort(key=lambda i: (len(encoded[i][1]), len(encoded[i][0])))
    batches, longest = [[]], 0
    for i in order:
        longest = max(longest, *map(len, encoded[i]))
        if batches[-1] and longest * (len(batches[-1]) + 1) > batch_tokens:
            batches.append([])
            longest = max(map(len, encoded[i]))
        batches[-1].append(i)
    chance.shuffle(batches)
    return batches


# %%
def padding_share(encoded, batches):
    """The part of all places in the batches, both sides, that holds padding."""
    real = sum(len(side) for pair in encoded for side in pair)
    places = sum(len(batch) * max(len(encoded[i][side]) for i in batch) for batch in batches for side in (0, 1))
    return 1 - real / places

# %% tags=["active-ipynb"]
# encoded = encode_pairs(tokenizer, pairs)
# batches = token_batches(encoded, batch_tokens=2048)
# for rows in batches[:4]:
#     batch = collate([encoded[i] for i in rows])
#     print(f"{len(rows):4} sentences: source {tuple(batch.source.shape)}, target {tuple(batch.target.shape)}")

# %% [markdown]
# Short sentences come in large batches, long ones in small batches, and the work of each is about the same. The
# batches themselves are in random order, otherwise training would go from short to long again and again.
#
# What does sorting save? Three ways with as many sentences a batch: similar lengths together; any sentences together;
# everything padded to the longest sentence of the corpus.

# %% tags=["active-ipynb"]
# mixed = random.Random(0).sample(range(len(encoded)), len(encoded))
# cuts = [0] + [sum(map(len, batches[:n])) for n in range(1, len(batches) + 1)]
# longest = [max(len(pair[side]) for pair in encoded) for side in (0, 1)]
# share = {"similar lengths": padding_share(encoded, batches),
#          "random": padding_share(encoded, [mixed[a:b] for a, b in zip(cuts, cuts[1:])]),
#          "fixed length": 1 - sum(len(s) + len(t) for s, t in encoded) / (len(encoded) * sum(longest))}
# plotting.bars({name: 100 * value for name, value in share.items()}, ylabel="padding, per cent of all places");

# %% tags=["active-ipynb"]
# assert share["similar lengths"] < 0.1 < share["random"] < share["fixed length"]

# %% [markdown]
# With similar lengths only a few places in a hundred are wasted; mixed batches waste more than a third. Fixed
# length wastes most, and it also tempts people to cut long sentences, end mark included; such a model never learns to stop.

# %% [markdown]
# ## Checks
#
# **Every pair is in exactly one batch, no batch is too large, and the seed decides everything.**

# %% tags=["active-ipynb"]
# assert sorted(i for rows in batches for i in rows) == list(range(len(encoded)))
# assert all(max(len(side) for i in rows for side in encoded[i]) * len(rows) <= 2048 for rows in batches)
# three = [token_batches(encoded, 2048, seed) for seed in (7, 7, 8)]
# assert three[0] == three[1] != three[2]

# %% [markdown]
# **Padding really is what `padding_share` says.** Build the tensors and count.

# %% tags=["active-ipynb"]
# built = [collate([encoded[i] for i in rows]) for rows in batches]
# places = torch.cat([side.flatten() for batch in built for side in (batch.source, batch.target)])
# assert abs((places == tokenizer.pad_id).double().mean().item() - share["similar lengths"]) < 1e-12

# %% [markdown]
# **The library merges as we did by hand.** Encode a word by applying its own merges in the order they were learned.

# %% tags=["active-ipynb"]
# import json
#
# symbols, merges = ["Ġ", *"unbelievably"], json.loads(tokenizer.bpe.to_str())["model"]["merges"]
# for left, right in (merge if isinstance(merge, list) else merge.split(" ") for merge in merges):
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
#     assert all(max(map(len, token_batches(alike, n))) == pairs_in_a_batch(n) for n in (100, 2048, 5000))

# %% [markdown]
# <details><summary>Solution</summary>
#
# `return batch_tokens // 16`: the longer side decides. The source side of such a batch is only 10/16 full.
# </details>

# %% [markdown]
# ## Next
#
# [11 Hardware](11_hardware.ipynb) or, if you want to go on learning, [12 Optimizer](12_optimizer.ipynb): how weights
# follow the gradient. In Colab the next notebook imports this module from the installed package; to try changes of
# your own, clone the repository and install it with `pip install -e .`.
