# ---
# jupyter:
#   jupytext:
#     formats: notebooks/90_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # Appendix: torchtext
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/90_vocabulary.ipynb)
#
# Many tutorials feed their models with torchtext. It is no longer developed: release 0.18, of 2024, is the last. If your
# vocabularies come from it, this appendix puts them into the training loop of notebook [14](14_training.ipynb), which need not
# change for them, and compares them with the byte-pair encoding of notebook [10](10_data.ipynb). Nothing else here needs torchtext.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import json
import os
import re
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import torch

from transformer.data import SPECIALS, WORD

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
#
# from transformer import plotting
# from transformer.data import Tokenizer, collate, encode_pairs
# from transformer.corpora import read_corpus
# from transformer.search import translate
# from transformer.scores import exact_match
# from transformer.model import Transformer, TransformerConfig
# from transformer.training import TrainingConfig, train, validation_loss
#
# torch.set_num_threads(1)      # the models below are too small to share between cores

# %% [markdown]
# ## Does it load?
#
# torchtext is partly compiled, and fits only the torch it was compiled for: 2.3 from PyPI, 2.6 from conda-forge. So this module
# imports it inside the functions that use it, through one door, which says in one sentence what is wrong and what to do instead.

# %%
INSTEAD = ("its last release, 0.18, loads only with the torch it was built for, so use `Tokenizer` of transformer.data, "
           "or take both from environment.yml (conda) or from the extra [torchtext] (pip, torch 2.3.1, Python 3.11 or 3.12)")


# %%
def load_torchtext():
    """The library torchtext, without its farewell message; ImportError, in one sentence, where it is not usable."""
    try:
        import torchtext
        torchtext.disable_torchtext_deprecation_warning()
        import torchtext.data.functional
        import torchtext.transforms
        import torchtext.vocab
    except (ImportError, OSError, AttributeError):  # not there; of another torch; 0.6, which lacks half of it
        known = find_spec("torchtext") is not None
        problem = f"does not work with torch {torch.__version__}" if known else "is not installed"
        raise ImportError(f"torchtext {problem}: {INSTEAD}") from None
    return torchtext


# %%
def why_not():
    """None where torchtext works; otherwise one sentence: why it does not, and what to use."""
    try:
        load_torchtext()
    except ImportError as error:
        return str(error)


# %% tags=["active-ipynb"]
# problem = why_not()
# print(problem or f"torchtext {load_torchtext().__version__} with torch {torch.__version__.split('+')[0]}")

# %% [markdown]
# Where that line is a complaint, the cells below go on with byte pairs alone. The outputs you see were made with torchtext.
#
# ## What the loop expects
#
# Very little. `encode_pairs`, `train` and `translate` want an object that has `encode_all` and `decode`, the ids of the marks
# `pad_id`, `bos_id` and `eos_id`, and a `vocab_size` for the embedding matrix. A model that is saved with its tokenizer wants
# `save(path)`. The two classes below have these, and `encode` for a single text.

# %% [markdown]
# ## Words
#
# The classic recipe: a function cuts a text into words; `build_vocab_from_iterator` counts them, keeps the most frequent and
# numbers them; every other word becomes `<unk>`. torchtext's own cutter, `basic_english`, writes everything in lower case, and
# German nouns would lose their capitals. `get_tokenizer` also takes a function, so the words here are those of `WORD`.

# %%
MARKS = (*SPECIALS, "<unk>")


# %%
def join_words(words):
    """A text from its words: single spaces, and none before punctuation."""
    return re.sub(r" (?=[.,;:?!])", "", " ".join(words))


# %%
class Words:
    """Texts to word ids and back by a torchtext vocabulary that holds `MARKS`; unknown words become <unk>.

    decode(encode(text)) == text where every word is known and spaces stand as `join_words` sets them.
    """

    def __init__(self, vocab):
        torchtext = load_torchtext()
        self.vocab, self.vocab_size = vocab, len(vocab)
        self.pad_id, self.bos_id, self.eos_id, self.unk_id = vocab.lookup_indices(list(MARKS))
        self.vocab.set_default_index(self.unk_id)
        self.cut = torchtext.data.get_tokenizer(WORD.findall)
        self.number = torchtext.transforms.VocabTransform(vocab)

    def encode(self, text):
        """Word ids of a text, without marks at its ends."""
        words = self.cut(text)
        return self.number(words) if words else []  # torch warns of an empty list

    def encode_all(self, texts):
        """`encode` for a list of texts."""
        return [self.encode(text) for text in texts]

    def decode(self, ids):
        """The text of word ids; padding, begin and end are left out, <unk> is not."""
        marks = {self.pad_id, self.bos_id, self.eos_id}
        return join_words(self.vocab.lookup_tokens([i for i in ids if i not in marks]))

    def save(self, path):
        """Write the words in the order of their ids, as JSON."""
        Path(path).write_text(json.dumps(self.vocab.get_itos(), ensure_ascii=False), encoding="utf8")


# %%
def train_words(sentences, vocab_size):
    """`Words` with the most frequent words of the sentences, at most vocab_size types with the marks."""
    torchtext = load_torchtext()
    if vocab_size <= len(MARKS):
        raise ValueError(f"vocab_size must be above {len(MARKS)}, the number of marks, not {vocab_size}")
    words = (WORD.findall(sentence) for sentence in sentences)
    return Words(torchtext.vocab.build_vocab_from_iterator(words, specials=list(MARKS), max_tokens=vocab_size))


# %%
def load_words(path):
    """`Words` as saved; FileNotFoundError or ValueError where the file is missing or damaged."""
    torchtext = load_torchtext()
    if not Path(path).is_file():
        raise FileNotFoundError(f"no file {path}: a model's folder needs the vocabulary it was trained with")
    try:
        words = json.loads(Path(path).read_bytes())
        return Words(torchtext.vocab.vocab(dict.fromkeys(words, 1)))
    except (ValueError, TypeError, RuntimeError):  # no JSON; no list of texts; marks are missing
        raise ValueError(f"{path} is no list of words with the marks {' '.join(MARKS)}: copy it again from the trained model") from None


# %% [markdown]
# ## Pieces
#
# SentencePiece (Kudo and Richardson, 2018) is compiled into torchtext. Like byte-pair encoding it cuts rare words into pieces, but
# finds them the other way round: it starts from very many, and drops those without which the corpus stays nearly as
# likely (Kudo, 2018). A space becomes part of the piece after it. The smallest pieces are letters, not bytes: a letter
# never seen is unknown.

# %%
@contextmanager
def silence():
    """Inside the block standard error goes nowhere, compiled code's too (SentencePiece prints hundreds of lines)."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


# %% [markdown]
# SentencePiece has ids for begin, end and unknown; torchtext's interface gives none to padding. It gets one more, after all pieces.

# %%
class Pieces:
    """Texts to SentencePiece ids and back; letters unknown to the model become <unk>.

    model: what torchtext's load_sp_model returns; content: the bytes of its file. decode(encode(text)) == text where
    every letter is known, NFKC normalization changes none, and single spaces stand between words only.
    """

    def __init__(self, model, content):
        self.model, self.content, self.pad_id = model, content, model.GetPieceSize()
        self.unk_id, self.bos_id, self.eos_id = (model.PieceToId(mark) for mark in ("<unk>", "<s>", "</s>"))
        self.vocab_size = self.pad_id + 1
        self.number = load_torchtext().data.functional.sentencepiece_numericalizer(model)

    def encode(self, text):
        """Piece ids of a text, without marks at its ends."""
        return self.encode_all([text])[0]

    def encode_all(self, texts):
        """`encode` for a list of texts."""
        return list(self.number(texts))

    def decode(self, ids):
        """The text of piece ids; padding, begin and end are left out, unknown letters become a double question mark."""
        return self.model.DecodeIds([i for i in ids if i != self.pad_id])

    def save(self, path):
        """Write SentencePiece's own model file, which every SentencePiece reads."""
        Path(path).write_bytes(self.content)


# %%
def load_pieces(path):
    """`Pieces` from a SentencePiece model; FileNotFoundError or ValueError where the file is missing or damaged."""
    torchtext = load_torchtext()
    if not Path(path).is_file():
        raise FileNotFoundError(f"no file {path}: a model's folder needs the pieces it was trained with")
    try:
        with silence():
            model = torchtext.data.functional.load_sp_model(str(path))
    except RuntimeError:
        raise ValueError(f"{path} is not a SentencePiece model: copy it again from the trained model") from None
    return Pieces(model, Path(path).read_bytes())


# %%
def train_pieces(sentences, vocab_size):
    """`Pieces` learned from sentences (SentencePiece's unigram model): vocab_size types, one of them padding.

    Raises ValueError where there are no sentences, or SentencePiece cannot make so many or so few types of them.
    """
    torchtext, text = load_torchtext(), "\n".join(sentences)
    if not text.strip():
        raise ValueError("no sentences to learn pieces from")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "text").write_text(text, encoding="utf8", newline="\n")
        try:
            with silence():
                torchtext.data.functional.generate_sp_model(f"{folder}/text", vocab_size - 1, "unigram", f"{folder}/pieces")
        except RuntimeError as error:
            reason = str(error).strip().rpartition("] ")[2]  # without the place in SentencePiece's source
            raise ValueError(f"SentencePiece cannot make {vocab_size - 1} pieces of these sentences: {reason}") from None
        return load_pieces(f"{folder}/pieces.model")


# %% [markdown]
# ## Three vocabularies
#
# To learn something within seconds we take the short sentences of the bundled corpus: at most six words, punctuation included.
# Each vocabulary has 1,000 types.

# %% tags=["active-ipynb"]
# def short(split):
#     return [pair for pair in read_corpus("bundled", split) if len(WORD.findall(pair[0])) <= 6]
#
# pairs, held_out = short("train"), short("validation")
# sentences = [sentence for pair in pairs for sentence in pair]
# theirs = {} if problem else {"words": train_words(sentences, 1000), "SentencePiece": train_pieces(sentences, 1000)}
# tokenizers = {**theirs, "byte pairs": Tokenizer.train(sentences, 1000)}
# print(len(pairs), "pairs,", len({word for text in sentences for word in WORD.findall(text)}), "different words")

# %% [markdown]
# Two sentences in each. `_` is a space alone. Cats are in these sentences, but too seldom for the 1,000 words; kangaroos are not.

# %% tags=["active-ipynb"]
# for text in ("Die Katze war ziemlich müde.", "The cat saw a kangaroo."):
#     for name, tokenizer in tokenizers.items():
#         ids = tokenizer.encode(text)
#         print(f"{name:14}{len(ids):3} tokens  ", " | ".join(tokenizer.decode([i]) or "_" for i in ids))

# %% [markdown]
# Words make the shortest rows, and have none for what is rare. The two others spell it. How often does each happen on sentences
# outside training?

# %% tags=["active-ipynb"]
# texts = [text for pair in held_out for text in pair]
# ids = {name: [i for row in tokenizer.encode_all(texts) for i in row] for name, tokenizer in tokenizers.items()}
# unknown = {name: ids[name].count(tokenizer.unk_id) / len(ids[name]) for name, tokenizer in theirs.items()}
# left, right = plotting.new_axes(3.8, 2.8, columns=2)
# plotting.bars({name: len(row) / len(texts) for name, row in ids.items()}, "", "tokens in a sentence", ax=left)
# plotting.bars({**{name: 100 * share for name, share in unknown.items()}, "byte pairs": 0}, "", "unknown, % of the tokens", ax=right);

# %% [markdown]
# **What is lost.** Encode, decode, compare: every held-out sentence, and then some odd texts.

# %% tags=["active-ipynb"]
# odd = ["two  spaces", " a space before", "a line\nbreak", "don't", "(so)", "ﬁne", "kangaroo", "日本語", "</s>"]
# back = {name: {text: tokenizer.decode(tokenizer.encode(text)) for text in texts + odd} for name, tokenizer in tokenizers.items()}
# for name, other in back.items():
#     print(f"{name}: {sum(other[text] == text for text in texts)} of {len(texts)} sentences come back. Odd texts that do not:")
#     print("   ", ", ".join(f"{text!r} -> {other[text]!r}" for text in odd if other[text] != text) or "none")

# %% tags=["active-ipynb"]
# assert all(other == text for text, other in back["byte pairs"].items())                 # byte pairs lose nothing
# for name, tokenizer in theirs.items():                                                  # of these, only what is unknown is lost
#     assert all(back[name][text] == text for text in texts if tokenizer.unk_id not in tokenizer.encode(text))
# assert not any({t.pad_id, t.bos_id, t.eos_id} & set(t.encode("<pad> <s> </s>")) for t in tokenizers.values())

# %% [markdown]
# ## Transforms
#
# torchtext's transforms work on lists of ids: `Truncate` cuts, `AddToken` puts a mark before or after, `ToTensor` pads,
# `Sequential` chains them. Their order matters. The mark comes after the cut: the other way round long sentences
# lose their end mark, and a model trained on them never learns to stop.

# %%
def pair_transforms(tokenizer, longest):
    """torchtext's transforms from lists of ids to rows for the loop: one for sources, one for targets.

    At most `longest` positions each: a source with its end mark, a target without it (the decoder never reads it).
    """
    transforms = load_torchtext().transforms
    cut = transforms.Truncate(longest - 1)
    begin, end = transforms.AddToken(tokenizer.bos_id, begin=True), transforms.AddToken(tokenizer.eos_id, begin=False)
    return transforms.Sequential(cut, end), transforms.Sequential(cut, begin, end)


# %%
def transform_pairs(tokenizer, pairs, longest):
    """`encode_pairs` by torchtext's transforms; a sentence too long for `longest` positions loses its last tokens."""
    if not pairs:
        raise ValueError("no sentence pairs to encode")
    sources, targets = (tokenizer.encode_all([pair[side] for pair in pairs]) for side in (0, 1))
    source, target = pair_transforms(tokenizer, longest)
    return list(zip(source(sources), target(targets)))

# %% [markdown]
# Where nothing is too long, they agree with `encode_pairs` and `collate` of notebook [10](10_data.ipynb), number for number.

# %% tags=["active-ipynb"]
# for tokenizer in theirs.values():
#     encoded = encode_pairs(tokenizer, pairs)
#     assert transform_pairs(tokenizer, pairs, longest=100) == encoded
#     to_tensor = load_torchtext().transforms.ToTensor(padding_value=tokenizer.pad_id)
#     targets = [target for _, target in encoded[:32]]
#     assert torch.equal(to_tensor(targets), collate(encoded[:32], tokenizer.pad_id).target)

# %% [markdown]
# ## The same loop
#
# One small model for each vocabulary: one layer, $d_{model} = 64$, 300 updates, the same seed. `train` is that of notebook
# [14](14_training.ipynb). Only the configuration knows the vocabulary: its size, and the ids of its marks.

# %% tags=["active-ipynb"]
# def fit(tokenizer):
#     torch.manual_seed(0)
#     marks = {name: getattr(tokenizer, name) for name in ("pad_id", "bos_id", "eos_id")}
#     model = Transformer(TransformerConfig(tokenizer.vocab_size, d_model=64, d_ff=256, N=1, h=4, P_drop=0.0, max_positions=100, **marks))
#     encoded, valid = (encode_pairs(tokenizer, some) if problem else transform_pairs(tokenizer, some, longest=100)
#                       for some in (pairs, held_out))
#     training = TrainingConfig(updates=300, batch_tokens=600, warmup=60, factor=0.5, save_every=30)
#     log = train(model, encoded, training, validate=lambda model: validation_loss(model, valid), quiet=True)
#     tokens = sum(len(target) - 1 for _, target in valid) / len(valid)                   # answered in a sentence
#     return model, [row["validation_loss"] * tokens for row in log]

# %% tags=["active-ipynb"]
# fitted = {name: fit(tokenizer) for name, tokenizer in tokenizers.items()}
# losses = {name: loss for name, (_, loss) in fitted.items()}
# plotting.lines(range(30, 301, 30), losses, "update", "validation loss, nats a sentence", markers=True);

# %% [markdown]
# All of them learn, in the same loop.

# %% tags=["active-ipynb"]
# assert all(loss[-1] < 0.7 * loss[0] for loss in losses.values())

# %% [markdown]
# A token is another thing in each vocabulary, so a loss per token compares nothing; here it is per sentence. Even so, words
# get off lightly: where the others must spell a rare word, they need only answer `<unk>`. What counts are translations.

# %% tags=["active-ipynb"]
# sources, references = zip(*held_out)
# outputs = {name: translate(model, tokenizers[name], sources, beam=1) for name, (model, _) in fitted.items()}
# for i in range(4):
#     print(sources[i], *(f"   {name:14}{output[i]}" for name, output in outputs.items()), sep="\n")
# for name, output in outputs.items():
#     gaps = sum("<unk>" in text or "⁇" in text for text in output)
#     print(f"{name}: {exact_match(output, references):.0%} of {len(output)} exactly right, {gaps} with an unknown token")

# %% [markdown]
# After so few updates the shorter rows are ahead: there is less to get right in a sentence. (One seed, few sentences: this is
# no ranking.) But most translations of the model with words have a hole, and no amount of training fills it, for the words
# are not in its vocabulary. Byte pairs can write any word, SentencePiece any word of known letters.
#
# ## Exercise
#
# How many types does a vocabulary of words need, so that at most 2% of the held-out tokens are unknown? Can it be none?

# %% tags=["active-ipynb"]
# your_size = ...
# if your_size is not ...:
#     tokens = [i for row in train_words(sentences, your_size).encode_all(texts) for i in row]
#     assert tokens.count(MARKS.index("<unk>")) <= 0.02 * len(tokens)

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_size = 2141`, that is all words and the marks, leaves 1.9%: words that training never shows. A larger number changes nothing.
# Byte pairs reach zero with 259 types, all bytes and the marks.
#
# </details>
#
# ## Next
#
# Back to the [README](../README.md). In Colab this notebook imports the others' modules from the installed package; torch is too
# new for torchtext there, so it runs with byte pairs alone. To see all of it, use one of the two environments named at its beginning.
