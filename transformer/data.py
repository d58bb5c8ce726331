# %% [markdown]
# # 5.1 Training data and batching

# %%
import gzip
import hashlib
import os
import random
import re
from dataclasses import dataclass
from pathlib import Path

import torch

from transformer.model import write_file

# %% [markdown]
# ## Where data lies

# %%
def data_folder():
    """The checkout's data/ where the package runs from one, otherwise the copy inside the installed package."""
    checkout = Path(__file__).resolve().parent.parent / "data"
    return checkout if (checkout / "bundled").is_dir() else Path(__file__).resolve().parent / "_bundled"


# %%
def download_folder():
    """Where downloads are kept: $TRANSFORMER_DOWNLOADS, the checkout's data/downloads, or ~/.cache/annotated-attention."""
    if "TRANSFORMER_DOWNLOADS" in os.environ:
        return Path(os.environ["TRANSFORMER_DOWNLOADS"])
    if data_folder().name == "data":
        return data_folder() / "downloads"
    return Path.home() / ".cache" / "annotated-attention"


# %% [markdown]
# ## The bundled corpus

# %%
WORD = re.compile(r"\w+|[^\w\s]")


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
    return [parse_example(line) for line in read_lines(data_folder() / "bundled" / f"{split}.tsv")]


# %% [markdown]
# ## Files of one sentence a line

# %%
def read_lines(path):
    """The lines of a UTF-8 text file, plain or .gz; errors name the file and the line."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: check the name, or give the full path")
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    if not lines:
        raise ValueError(f"{path} is empty: it should hold one sentence a line")
    for number, line in enumerate(lines, 1):
        try:
            lines[number - 1] = line.decode("utf8").removesuffix("\r")
        except UnicodeDecodeError:
            raise ValueError(f"{path}, line {number}, is not UTF-8: convert the file, for example with "
                             "iconv -f latin1 -t utf8") from None
    return lines


# %%
def read_parallel(source_file, target_file):
    """[(source sentence, target sentence), ...] from two files whose lines correspond."""
    source, target = read_lines(source_file), read_lines(target_file)
    if len(source) != len(target):
        raise ValueError(f"{source_file} has {len(source)} lines and {target_file} has {len(target)}: line n of one must "
                         "translate line n of the other")
    return list(zip(source, target))


# %% [markdown]
# ## Corpora with an address

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
MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/{file}"

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
        raise ValueError(f"{path} is damaged (its SHA-256 is not the registered one): delete it and run the command again")
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
        raise OSError(f"could not download the corpus {name} from {url} ({type(error).__name__}): check the network, or set "
                      "TRANSFORMER_MIRROR to a folder that holds <corpus>/<file>; --corpus bundled always works") from None


# %%
def read_corpus(name, split):
    """[(source, target), ...] of one split (train, validation, test, for bundled also hard) of a corpus."""
    if name == "bundled":
        return [(example.source, example.target) for example in read_bundled(split)]
    if name not in CORPORA:
        raise ValueError(f"unknown corpus {name!r}: choose one of bundled, {', '.join(CORPORA)}, or give your own files")
    if split not in CORPORA[name].splits:
        raise ValueError(f"{name} has no split {split!r}: choose one of {', '.join(CORPORA[name].splits)}")
    return read_parallel(*(corpus_file(name, file) for file in CORPORA[name].splits[split]))


# %% [markdown]
# ## Byte-pair encoding

# %%
SPECIALS = ("<pad>", "<s>", "</s>")


# %%
class Tokenizer:
    """Byte-pair encoding over UTF-8 bytes (Sennrich et al., 2016), one vocabulary for both languages.

    Every text can be encoded, and decode(encode(text)) == text. A word's first piece carries the
    space before it; the text's first word is given one, which `decode` takes away again.
    """

    def __init__(self, bpe):
        self.bpe = bpe
        self.pad_id, self.bos_id, self.eos_id = (bpe.token_to_id(token) for token in SPECIALS)

    @classmethod
    def train(cls, sentences, vocab_size):
        """Learn merges from sentences (of the training split only) until there are vocab_size types."""
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        if vocab_size < 256 + len(SPECIALS):
            raise ValueError(f"vocab_size must be at least {256 + len(SPECIALS)} (256 bytes and {len(SPECIALS)} marks), not {vocab_size}")
        bpe = Tokenizer(models.BPE())
        bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        bpe.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(SPECIALS), show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        bpe.train_from_iterator((" " + sentence for sentence in sentences), trainer)
        bpe.encode_special_tokens = True  # "</s>" typed in a text is text, not an end mark
        return cls(bpe)

    @property
    def vocab_size(self):
        return self.bpe.get_vocab_size()

    def encode(self, text):
        """Token ids of a text, without marks at its ends."""
        return self.bpe.encode(" " + text).ids

    def encode_all(self, texts):
        """`encode` for a list of texts, on all cores."""
        return [encoding.ids for encoding in self.bpe.encode_batch([" " + text for text in texts])]

    def decode(self, ids):
        """The text of token ids; marks (padding, begin, end) are left out."""
        return self.bpe.decode(list(ids), skip_special_tokens=True)[1:]

    def pieces(self, text):
        """The text cut into its tokens, as strings."""
        return [(" " + text)[start:end] for start, end in self.bpe.encode(" " + text).offsets]

    def word_of_each_piece(self, text):
        """For each token of a text the index of the word (as `WORD` finds them) that it belongs to."""
        word_at = {}
        for index, match in enumerate(WORD.finditer(" " + text)):
            word_at.update(dict.fromkeys(range(*match.span()), index))
        return [word_at[end - 1] for _, end in self.bpe.encode(" " + text).offsets]

    def save(self, path):
        """Write tokenizer.json."""
        self.bpe.save(str(path))

    @classmethod
    def load(cls, path):
        """Read what `save` wrote; FileNotFoundError or ValueError where it is missing or damaged."""
        from tokenizers import Tokenizer

        if not Path(path).is_file():
            raise FileNotFoundError(f"no file {path}: a model's folder needs the tokenizer it was trained with")
        try:
            tokenizer = cls(Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises plain Exception
            raise ValueError(f"{path} is not a tokenizer ({error}): copy it again from the trained model") from None
        tokenizer.bpe.encode_special_tokens = True
        return tokenizer


# %% [markdown]
# ## Batches counted in tokens

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


# %%
def pad(rows, pad_id):
    """Lists of ids, filled up with pad_id to the longest: (B, length), int64."""
    longest = max(map(len, rows))
    return torch.tensor([row + [pad_id] * (longest - len(row)) for row in rows])


# %%
def collate(encoded, pad_id=0):
    """A `Batch` of encoded pairs."""
    return Batch(pad([source for source, _ in encoded], pad_id), pad([target for _, target in encoded], pad_id))


# %%
def token_batches(encoded, batch_tokens, seed=0):
    """Indices of encoded pairs in batches of similar length, at most batch_tokens a side with padding.

    The same seed gives the same batches in the same order; pairs of equal length are mixed anew by
    each seed, so that the epoch's number can serve as one. A pair longer than batch_tokens stands alone.
    """
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
