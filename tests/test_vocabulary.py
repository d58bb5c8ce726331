"""The appendix: torchtext's vocabularies and transforms, and what is said where torchtext does not work."""

import os
import re
import sys
from collections import Counter

import pytest
import torch

from transformer import vocabulary
from transformer.corpora import read_corpus
from transformer.corpora.tokenizer import WORD
from transformer.data import encode_pairs
from transformer.fast.model import Transformer, TransformerConfig
from transformer.models.pretrained import save
from transformer.models.search import translate
from transformer.runs.training import TrainingConfig, train
from transformer.vocabulary import (
    INSTEAD,
    MARKS,
    Pieces,
    Words,
    load_pieces,
    load_torchtext,
    load_words,
    pair_transforms,
    train_pieces,
    train_words,
    transform_pairs,
    why_not,
)

PROBLEM = why_not()
needs_torchtext = pytest.mark.skipif(
    PROBLEM is not None, reason=str(PROBLEM).partition(":")[0]
)
TRAINERS = {"words": train_words, "pieces": train_pieces}
each_kind = pytest.mark.parametrize("kind", TRAINERS)


@pytest.fixture(scope="module")
def corpus():
    return [
        pair
        for pair in read_corpus("bundled", "validation")
        if len(WORD.findall(pair[0])) <= 6
    ]


@pytest.fixture(scope="module")
def sentences(corpus):
    return [sentence for pair in corpus for sentence in pair]


@pytest.fixture(scope="module")
def tokenizers(sentences):
    return {kind: trained(sentences, 200) for kind, trained in TRAINERS.items()}


# Where it works, and where it does not

CALLS = {
    "train_words": lambda: train_words(["a b"], 9),
    "load_words": lambda: load_words("nowhere"),
    "train_pieces": lambda: train_pieces(["a b"], 9),
    "load_pieces": lambda: load_pieces("nowhere"),
    "pair_transforms": lambda: pair_transforms(None, 9),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_without_torchtext_one_sentence(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchtext", None)
    with pytest.raises(ImportError) as caught:
        call()
    assert str(caught.value) == f"torchtext is not installed: {INSTEAD}" == why_not()
    assert (
        caught.value.__suppress_context__
        and "\n" not in INSTEAD
        and ". " not in INSTEAD
    )


@pytest.mark.parametrize(
    "content",
    ["raise OSError('undefined')", "import torchtext.nothing", "__version__ = '0.6'"],
)
def test_a_torchtext_that_does_not_fit(content, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "torchtext"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "torchtext").mkdir()
    (tmp_path / "torchtext/__init__.py").write_text(content, encoding="utf8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ImportError,
        match=rf"torchtext does not work with torch {re.escape(torch.__version__)}: its",
    ):
        load_torchtext()
    sys.modules.pop("torchtext", None)


def test_nothing_else_needs_it(root):
    uses = re.compile(
        r"import torchtext|from torchtext|transformer\.vocabulary|from transformer import .*vocabulary"
    )
    users = {
        path.stem
        for path in (root / "transformer").glob("*.py")
        if uses.search(path.read_text(encoding="utf8"))
    }
    assert users == {"vocabulary"}


# Words


@needs_torchtext
def test_words_are_the_most_frequent(sentences):
    counts = Counter(word for sentence in sentences for word in WORD.findall(sentence))
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    words = train_words(sentences, 50)
    assert words.vocab.get_itos() == [*MARKS, *ordered[:46]] and words.vocab_size == 50
    assert train_words(sentences, 10**6).vocab_size == len(MARKS) + len(counts)


@needs_torchtext
def test_words_come_back(sentences):
    words = train_words(sentences, 10**6)
    for sentence in sentences:
        assert (
            words.decode(
                [words.bos_id, *words.encode(sentence), words.eos_id, words.pad_id]
            )
            == sentence
        )
    assert words.decode(words.encode("zzz")) == "<unk>"
    assert not {words.pad_id, words.bos_id, words.eos_id} & set(
        words.encode("<pad> <s> </s>")
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["So", ",", "is", "it", "?"], "So, is it?"),
        (["a", ":", "b", ";", "c", "!"], "a: b; c!"),
        (["d", "."], "d."),
        ([], ""),
    ],
)
def test_join_words(words, text):
    assert vocabulary.join_words(words) == text


@needs_torchtext
def test_words_need_more_types_than_marks():
    with pytest.raises(
        ValueError, match="vocab_size must be above 4, the number of marks, not 4"
    ):
        train_words(["a b"], 4)


@needs_torchtext
@pytest.mark.parametrize(
    "content",
    ["no JSON", "{}", "[1, 2]", '["<pad>", "<s>", "</s>", "word"]', "17", "\ud800"],
)
def test_damaged_words(content, tmp_path):
    (tmp_path / "words.json").write_bytes(content.encode("utf8", "surrogatepass"))
    with pytest.raises(
        ValueError,
        match="words.json is no list of words with the marks <pad> <s> </s> <unk>: copy it",
    ):
        load_words(tmp_path / "words.json")


# Pieces


@needs_torchtext
def test_pieces_come_back(sentences, tokenizers):
    pieces = tokenizers["pieces"]
    known = [
        sentence
        for sentence in sentences
        if pieces.unk_id not in pieces.encode(sentence)
    ]  # no rare letter
    assert len(known) > 0.9 * len(sentences)
    for sentence in known:
        ids = pieces.encode(sentence)
        assert "".join(
            pieces.model.IdToPiece(i) for i in ids
        ) == "▁" + sentence.replace(" ", "▁")
        assert (
            pieces.decode([pieces.bos_id, *ids, pieces.eos_id, pieces.pad_id])
            == sentence
        )
    assert pieces.unk_id in pieces.encode("日")
    assert not {pieces.pad_id, pieces.bos_id, pieces.eos_id} & set(
        pieces.encode("<pad> <s> </s>")
    )


@needs_torchtext
def test_the_ids_of_pieces(tokenizers):
    pieces = tokenizers["pieces"]
    names = [pieces.model.IdToPiece(i) for i in range(pieces.vocab_size - 1)]
    assert len(set(names)) == 199 and pieces.vocab_size == 200 and pieces.pad_id == 199
    assert [names[i] for i in (pieces.unk_id, pieces.bos_id, pieces.eos_id)] == [
        "<unk>",
        "<s>",
        "</s>",
    ]


@needs_torchtext
@pytest.mark.parametrize(
    ("texts", "vocab_size", "message"),
    [
        ([], 200, "no sentences to learn pieces from"),
        (["", " "], 200, "no sentences to learn pieces from"),
        (
            ["a b c"],
            5000,
            "SentencePiece cannot make 4999 pieces of these sentences: Vocabulary size too high",
        ),
        (["a b c"], 4, "SentencePiece cannot make 3 pieces of these sentences: "),
    ],
)
def test_pieces_that_cannot_be_made(texts, vocab_size, message, capfd):
    with pytest.raises(ValueError, match=message):
        train_pieces(texts, vocab_size)
    assert capfd.readouterr() == ("", "")


@needs_torchtext
def test_damaged_pieces(tmp_path, capfd):
    (tmp_path / "pieces.model").write_bytes(b"not a model")
    with pytest.raises(
        ValueError, match="pieces.model is not a SentencePiece model: copy it again"
    ):
        load_pieces(tmp_path / "pieces.model")
    assert capfd.readouterr() == ("", "")


def test_silence_ends(capfd):
    with pytest.raises(KeyError), vocabulary.silence():
        os.write(2, b"hidden\n")
        raise KeyError
    os.write(2, b"heard\n")
    assert capfd.readouterr().err == "heard\n"


# Both


@needs_torchtext
@each_kind
def test_a_folder_keeps_them(kind, tokenizers, sentences, tmp_path):
    tokenizer, load = (
        tokenizers[kind],
        {"words": load_words, "pieces": load_pieces}[kind],
    )
    model = Transformer(
        TransformerConfig(tokenizer.vocab_size, d_model=8, d_ff=8, N=1, h=1)
    )
    save(model, tmp_path, tokenizer)
    again = load(tmp_path / "tokenizer.json")
    assert type(again) is type(tokenizer) in (Words, Pieces)
    for name in ("vocab_size", "pad_id", "bos_id", "eos_id", "unk_id"):
        assert getattr(again, name) == getattr(tokenizer, name), name
    ids = tokenizer.encode_all([*sentences, "kängaroo 日"])
    assert again.encode_all([*sentences, "kängaroo 日"]) == ids
    assert [again.decode(row) for row in ids] == [tokenizer.decode(row) for row in ids]
    with pytest.raises(
        FileNotFoundError, match="no file .*nothing: a model's folder needs the"
    ):
        load(tmp_path / "nothing")


@needs_torchtext
@each_kind
def test_transforms(kind, tokenizers, corpus):
    tokenizer = tokenizers[kind]
    assert transform_pairs(tokenizer, corpus, longest=1000) == encode_pairs(
        tokenizer, corpus
    )
    for longest in (2, 5):
        expected = [
            (
                tokenizer.encode(source)[: longest - 1] + [tokenizer.eos_id],
                [tokenizer.bos_id]
                + tokenizer.encode(target)[: longest - 1]
                + [tokenizer.eos_id],
            )
            for source, target in corpus
        ]
        assert transform_pairs(tokenizer, corpus, longest) == expected
    with pytest.raises(ValueError, match="no sentence pairs to encode"):
        transform_pairs(tokenizer, [], 10)


@needs_torchtext
@each_kind
def test_the_loop_takes_them(kind, tokenizers, corpus):
    tokenizer = tokenizers[kind]
    marks = {name: getattr(tokenizer, name) for name in ("pad_id", "bos_id", "eos_id")}
    torch.manual_seed(0)
    config = TransformerConfig(
        tokenizer.vocab_size, d_model=16, d_ff=16, N=1, h=1, max_positions=40, **marks
    )
    model = Transformer(config)
    training = TrainingConfig(updates=20, batch_tokens=400, warmup=5, validate_every=5)
    log = train(model, transform_pairs(tokenizer, corpus, longest=40), training)
    assert log[-1]["loss"] < log[0]["loss"]
    (output,) = translate(model, tokenizer, [corpus[0][0]], beam=1)
    assert isinstance(output, str) and "<s>" not in output and "<pad>" not in output
