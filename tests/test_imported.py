"""Published layouts: Marian and GPT-2 folders of `transformers`, equal to it; what is refused."""

import copy
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import torch

from transformer.cli import main
from transformer.core.weights import load_weights, save_weights
from transformer.corpora import read_corpus
from transformer.data import Batch, encode_pairs
from transformer.fast.loss import ChunkedLoss, SmoothedLoss
from transformer.fast.search import greedy_search
from transformer.imported import (
    NEVER,
    import_folder,
    interleaved,
    marian_table,
    renamed,
)
from transformer.language import Sampler, generate
from transformer.models.pieces import BEGIN, SentencePieces
from transformer.models.pretrained import load, save

os.environ["HF_HUB_OFFLINE"] = "1"
library = pytest.importorskip("transformers", reason="transformers is not installed")
sentencepiece = pytest.importorskip(
    "sentencepiece", reason="sentencepiece is not installed"
)
pytestmark = pytest.mark.usefixtures("seed", "one_thread")


def randomized(module):
    """Every parameter and buffer of numbers random, so that a zero hides nothing."""
    with torch.no_grad():
        for p in module.parameters():
            if p.requires_grad:  # the sines are parameters, too, and are not saved
                p.normal_(std=0.3)
        if hasattr(module, "final_logits_bias"):
            module.final_logits_bias.normal_()
    return module.eval()


@pytest.fixture(scope="module")
def pairs():
    return read_corpus("bundled", "validation")[:300]


def train_pieces(sentences, path):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_prefix=str(path.with_suffix("")),
        vocab_size=190,
        hard_vocab_limit=False,
        character_coverage=1.0,
        minloglevel=2,
    )
    path.with_suffix(".model").rename(path)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory, pairs):
    """source.spm, target.spm and vocab.json, as a Marian folder has them."""
    folder = tmp_path_factory.mktemp("pieces")
    sides = [
        train_pieces(texts, folder / f"{side}.spm")
        for side, texts in zip(("source", "target"), zip(*pairs))
    ]
    types = dict.fromkeys(
        ["</s>", "<unk>", ">>de<<", *sides[1], *sides[0][:-9], "<pad>"]
    )
    vocabulary = {name: i for i, name in enumerate(types)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf8")
    return folder


def write_marian(folder, pieces, changes):
    V = len(json.loads((pieces / "vocab.json").read_text()))
    sizes = {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
    }
    config = library.MarianConfig(
        **{
            **sizes,
            "vocab_size": V,
            "d_model": 16,
            "max_position_embeddings": 80,
            "activation_function": "swish",
            "scale_embedding": True,
            "pad_token_id": V - 1,
            "decoder_start_token_id": V - 1,
            "eos_token_id": 0,
            "forced_eos_token_id": None,
            **changes,
        }
    )
    theirs = randomized(library.MarianMTModel(config))
    shutil.copytree(pieces, folder)
    theirs.save_pretrained(folder)
    return theirs


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """{changes: (folder, their model)} of random Marian folders that were written."""
    return {}, tmp_path_factory.mktemp("marian")


@pytest.fixture
def marian_folder(tmp_path, pieces, known, capsys):
    """A function that gives a random Marian folder: (folder, their model)."""

    def written(**changes):
        there, root = known
        key = json.dumps(changes)
        if key not in there:
            folder = root / str(len(there))
            there[key] = folder, write_marian(folder, pieces, changes)
        capsys.readouterr()  # transformers draws bars
        shutil.copytree(there[key][0], tmp_path / "marian")
        return tmp_path / "marian", there[key][1]

    return written


def gpt2_folder(folder, sentences, **changes):
    """A random GPT-2 folder with byte pairs of its own: (folder, their model, their pieces)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(sentences, trainer)
    V = bpe.get_vocab_size()
    theirs = randomized(
        library.GPT2LMHeadModel(
            library.GPT2Config(
                **{
                    "vocab_size": V,
                    "n_positions": 40,
                    "n_embd": 24,
                    "n_layer": 2,
                    "n_head": 4,
                    "bos_token_id": 0,
                    "eos_token_id": 0,
                    **changes,
                }
            )
        )
    )
    theirs.save_pretrained(folder)
    bpe.model.save(str(folder))
    return theirs, bpe


def edit(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def again(found, folder):
    """What our own saving and loading leave of it."""
    save(found.model, folder, found.tokenizer)
    return load(folder)


def ids(tokenizer, pairs, n=5):
    return Batch(
        *(
            torch.nn.utils.rnn.pad_sequence(
                [torch.tensor(row) for row in side],
                batch_first=True,
                padding_value=tokenizer.pad_id,
            )
            for side in zip(*encode_pairs(tokenizer, pairs[:n]))
        )
    )


# Marian


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation_function": "relu"},
        {"activation_function": "gelu"},
        {"scale_embedding": False},
    ],
)
@torch.no_grad()
def test_equals_marian(marian_folder, pairs, tmp_path, changes):
    folder, theirs = marian_folder(**changes)
    found = import_folder(folder)
    V, order = theirs.config.vocab_size, interleaved(16)
    for model, tokenizer in (
        (found.model, found.tokenizer),
        again(found, tmp_path / "ours"),
    ):
        batch = ids(tokenizer, pairs)
        mask, start = (batch.source != V - 1).long(), torch.full((5, 1), V - 1)
        there = theirs(
            input_ids=batch.source,
            attention_mask=mask,
            decoder_input_ids=torch.cat([start, batch.decoder_input[:, 1:]], dim=1),
        )
        memory, real = model.encode(batch.source), mask.bool()
        torch.testing.assert_close(
            memory[real],
            there.encoder_last_hidden_state[..., order][real],
            rtol=0,
            atol=1e-5,
        )
        logits, inside = (
            model(batch.source, batch.decoder_input),
            batch.decoder_input != V - 1,
        )
        assert there.logits.std() > 1
        torch.testing.assert_close(
            logits[..., :V][inside], there.logits[inside], rtol=1e-5, atol=1e-5
        )
        torch.testing.assert_close(
            logits.log_softmax(dim=-1)[..., :V][inside],
            there.logits.log_softmax(dim=-1)[inside],
            rtol=1e-5,
            atol=1e-5,
        )
        assert (logits[..., V] < NEVER / 2).all()


@torch.no_grad()
def test_greedy_writes_what_marian_writes(marian_folder, pairs, tmp_path):
    folder, theirs = marian_folder()
    found = import_folder(folder)
    V = theirs.config.vocab_size
    for model, tokenizer in (
        (found.model, found.tokenizer),
        again(found, tmp_path / "ours"),
    ):
        source = ids(tokenizer, pairs).source
        lengths = (source != V - 1).sum(dim=1).tolist()
        for row, written in zip(source, greedy_search(model, source, extra=10)):
            n = lengths.pop(0)
            there = theirs.generate(
                row[None, :n],
                num_beams=1,
                do_sample=False,
                bad_words_ids=[[V - 1]],
                max_new_tokens=n + 10,
            )
            assert there[0, 1:].tolist() == written


def test_every_tensor_is_used_once_or_named(marian_folder):
    folder, theirs = marian_folder()
    path = folder / "model.safetensors"
    tensors = load_weights(path)[0]
    found = import_folder(folder)
    assert (found.used, found.ignored) == (len(tensors), [])
    E = tensors.pop("model.shared.weight")
    more = {
        "model.decoder.embed_tokens.weight": E,
        "lm_head.weight": E.clone(),
        "model.encoder.embed_positions.weight": torch.zeros(80, 16),
    }
    save_weights({**tensors, **more}, path)
    found = import_folder(folder)
    assert found.used == len(tensors) + 1
    assert found.ignored == ["model.encoder.embed_positions.weight", "lm_head.weight"]
    names = [name for ours in marian_table(2).values() for name in ours]
    own = dict(found.model.named_parameters())
    assert len(set(names)) == len(names)
    assert set(names) == own.keys() - {"embedding.weight", "output.bias"}


def test_weights_in_half_precision(marian_folder):
    folder, theirs = marian_folder()
    theirs = copy.deepcopy(theirs).half()
    theirs.save_pretrained(folder)
    own = import_folder(folder).model.output.bias[:-1]
    assert own.dtype == torch.float32 and torch.equal(
        own, theirs.final_logits_bias[0].float()
    )


def test_fast_loss_counts_the_bias(marian_folder, pairs):
    found = import_folder(marian_folder()[0])
    model, batch = found.model, ids(found.tokenizer, pairs)
    losses = [
        model.loss(batch, loss(0.0, model.config.pad_id))
        for loss in (SmoothedLoss, ChunkedLoss)
    ]
    torch.testing.assert_close(*losses, rtol=1e-5, atol=1e-5)
    gradients = [torch.autograd.grad(loss, model.output.bias)[0] for loss in losses]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


# Its pieces


def marian_tokenizer(folder):
    return library.MarianTokenizer(
        *(str(folder / name) for name in ("source.spm", "target.spm", "vocab.json"))
    )


STRANGE = [
    "",
    " ",
    "  two   spaces ",
    "ﬁne Ⅳ ①",
    "a\tb\u00a0c",
    'Käse, "Größe"…',
    "日本語 text",
    "don't",
    "1,000.50",
    "e\u0301tude",
    "x" * 50,
    "🙂 ok",
    "\u200bzero",
]


def test_ids_are_those_of_marian_tokenizer(pieces, pairs, marian_folder, tmp_path):
    found = import_folder(marian_folder()[0])
    theirs = marian_tokenizer(pieces)
    for ours in (found.tokenizer, again(found, tmp_path / "ours")[1]):
        sources, targets = ([*side, *STRANGE] for side in zip(*pairs))
        assert theirs(sources)["input_ids"] == [
            [*row, 0] for row in ours.encode_all(sources)
        ]
        assert theirs(text_target=targets)["input_ids"] == [
            [*row, 0] for row in ours.of_targets.encode_all(targets)
        ]
        for row in theirs(text_target=targets[:50])["input_ids"]:
            assert ours.decode(row) == theirs.decode(row, skip_special_tokens=True)


def test_a_code_of_the_language_to_write(pieces):
    ours = import_tokenizer(pieces)
    text = ">>de<< the house"
    assert ours.encode(text) == marian_tokenizer(pieces)(text)["input_ids"][:-1]
    assert ours.encode(text)[0] == 2 and ours.encode(">>xx<< the house")[0] != 2
    assert ours.word_of_each_piece(text)[0] == 4  # the last of its signs


def import_tokenizer(folder):
    from transformer.models.pieces import marian_pieces

    return marian_pieces(folder)


def test_marks_in_a_text_are_text(pieces):
    ours = import_tokenizer(pieces)
    found = ours.encode("</s> <pad> <begin>")
    assert not {ours.pad_id, ours.bos_id, ours.eos_id} & set(found)
    assert ours.types[ours.bos_id] == BEGIN and ours.vocab_size == len(ours.types)


def test_words_of_pieces(pieces):
    ours = import_tokenizer(pieces)
    text = "the house,  the dogs"
    words = ours.word_of_each_piece(text)
    assert len(words) == len(ours.encode(text)) and words == sorted(words)
    assert set(words) == {0, 1, 2, 3, 4}
    joined = {i: "" for i in range(5)}
    for piece, word in zip(ours.pieces(text), words):
        joined[word] += piece
    assert [joined[i].strip() for i in range(5)] == ["the", "house", ",", "the", "dogs"]


# GPT-2


@torch.no_grad()
def test_equals_gpt2(tmp_path, pairs):
    texts = [source for source, _ in pairs]
    theirs, bpe = gpt2_folder(tmp_path / "gpt2", texts)
    found = import_folder(tmp_path / "gpt2")
    V = theirs.config.vocab_size
    for model, tokenizer in (
        (found.model, found.tokenizer),
        again(found, tmp_path / "ours"),
    ):
        read = torch.randint(0, V, (3, 17))
        there, logits = theirs(read).logits, model(read)
        assert there.std() > 0.5
        torch.testing.assert_close(logits[..., :V], there, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(
            logits.log_softmax(dim=-1)[..., :V],
            there.log_softmax(dim=-1),
            rtol=1e-5,
            atol=1e-5,
        )
        written = generate(model, read, 12, Sampler(0.0))
        for row, own in zip(read, written):
            said = theirs.generate(
                row[None],
                do_sample=False,
                max_new_tokens=12,
                pad_token_id=0,
                attention_mask=torch.ones(1, 17),
            )
            assert said[0, 17:].tolist() == own
        assert tokenizer.encode_all([*texts, *STRANGE]) == [
            bpe.encode(text).ids for text in [*texts, *STRANGE]
        ]
        assert all(
            tokenizer.decode(tokenizer.encode(text)) == text
            for text in [*texts, *STRANGE]
        )


def test_gpt2_names_without_a_prefix_and_with_masks(tmp_path, pairs):
    folder = tmp_path / "gpt2"
    theirs, bpe = gpt2_folder(folder, [source for source, _ in pairs])
    first = import_folder(folder)
    tensors = {
        name.removeprefix("transformer."): t
        for name, t in load_weights(folder / "model.safetensors")[0].items()
    }
    masks = {f"h.{n}.attn.bias": torch.ones(1, 1, 40, 40) for n in range(2)}
    save_weights(
        {**tensors, **masks, "lm_head.weight": tensors["wte.weight"].clone()},
        folder / "model.safetensors",
    )
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()
    bpe.save(str(folder / "tokenizer.json"))
    second = import_folder(folder)
    assert second.ignored == ["h.0.attn.bias", "h.1.attn.bias", "lm_head.weight"]
    assert second.used == first.used and second.tokenizer.said == {
        **first.tokenizer.said,
        "merges": second.tokenizer.said["merges"],
    }
    assert all(
        torch.equal(*both)
        for both in zip(first.model.parameters(), second.model.parameters())
    )
    said = json.loads((folder / "tokenizer.json").read_text(encoding="utf8"))
    for change in (
        {"pre_tokenizer": {**said["pre_tokenizer"], "add_prefix_space": True}},
        {"pre_tokenizer": None},
        {"normalizer": {"type": "NFC"}},
    ):
        (folder / "tokenizer.json").write_text(
            json.dumps({**said, **change}), encoding="utf8"
        )
        with pytest.raises(ValueError, match="cuts texts in another way than GPT-2"):
            import_folder(folder)


# What is refused


def complaint(capsys, monkeypatch, *arguments):
    """The one sentence that a command says; status 2, and nothing written."""
    monkeypatch.setattr(sys, "argv", ["transformer", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr().err
    assert (
        stopped.value.code == 2
        and said.count("\n") == 1
        and said.startswith("transformer: ")
    )
    return said


def put(name, tensor):
    def change(folder):
        path = folder / "model.safetensors"
        tensors = load_weights(path)[0]
        save_weights(
            {**tensors, name: tensor}
            if tensor is not None
            else {n: t for n, t in tensors.items() if n != name},
            path,
        )

    return change


def overwrite(name, text):
    return lambda folder: (folder / name).write_text(text)


def only_a_pickle(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


LAYER = "model.encoder.layers.0."
BAD = {
    "pickle": (only_a_pickle, "is a pickle"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "no file"),
    "no config": (lambda folder: (folder / "config.json").unlink(), "no file"),
    "config is no JSON": (overwrite("config.json", "{"), "no whole JSON"),
    "config is a list": (overwrite("config.json", "[]"), "describes no model"),
    "another kind": (lambda f: edit(f, model_type="bert"), "marian and gpt2"),
    "pre-norm": (lambda f: edit(f, normalize_before=True), "pre-norm"),
    "embedding norm": (
        lambda f: edit(f, normalize_embedding=True),
        "norm over its embeddings",
    ),
    "unshared": (
        lambda f: edit(f, share_encoder_decoder_embeddings=False),
        "vocabulary for each language",
    ),
    "other decoder": (lambda f: edit(f, decoder_layers=1), "its stacks differ"),
    "activation": (lambda f: edit(f, activation_function="selu"), "activation must be"),
    "no width": (lambda f: edit(f, d_model=None), "describes no model"),
    "odd width": (
        lambda f: edit(
            f, d_model=15, encoder_attention_heads=1, decoder_attention_heads=1
        ),
        "even",
    ),
    "text for a number": (lambda f: edit(f, vocab_size="many"), "describes no model"),
    "huge": (lambda f: edit(f, d_model=10**6), "embeddings of the shape"),
    "start": (
        lambda f: edit(f, decoder_start_token_id=-1),
        "no type of its vocabulary",
    ),
    "more layers": (
        lambda f: edit(f, encoder_layers=3, decoder_layers=3),
        "lacks the tensor",
    ),
    "fewer layers": (
        lambda f: edit(f, encoder_layers=1, decoder_layers=1),
        "holds the tensor",
    ),
    "missing": (put(LAYER + "fc1.bias", None), "lacks the tensor"),
    "extra": (put("model.other.weight", torch.ones(2)), "holds the tensor"),
    "shape": (
        put(LAYER + "fc1.weight", torch.ones(24, 18)),
        "fc1.weight has the shape (24, 18)",
    ),
    "rows": (put(LAYER + "fc1.weight", torch.ones(25, 16)), "do not fit"),
    "axes": (put(LAYER + "fc1.weight", torch.ones(())), "has the shape ()"),
    "bias": (put("final_logits_bias", torch.ones(1, 7)), "do not fit"),
    "second matrix": (put("lm_head.weight", torch.ones(2, 2)), "one matrix"),
    "nan": (
        put(LAYER + "fc1.weight", torch.full((24, 16), torch.nan)),
        "no usable numbers",
    ),
    "weights cut off": (
        overwrite("model.safetensors", "abc"),
        "not a whole safetensors",
    ),
    "no pieces": (lambda folder: (folder / "target.spm").unlink(), "one for each side"),
    "no spm": (overwrite("source.spm", "no protocol buffer"), "source.spm is not what"),
    "vocabulary is no JSON": (overwrite("vocab.json", "["), "vocab.json is not what"),
    "vocabulary with a gap": (
        overwrite("vocab.json", '{"</s>": 0, "<unk>": 2, "<pad>": 3}'),
        "not 0, 1, 2",
    ),
    "another vocabulary": (
        overwrite("vocab.json", '{"</s>": 0, "<unk>": 1, "<pad>": 2}'),
        "vocab_size is another",
    ),
    "languages": (overwrite("tokenizer_config.json", "["), "tokenizer_config.json"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_folder_that_cannot_be_imported(
    name, marian_folder, tmp_path, capsys, monkeypatch
):
    folder, _ = marian_folder()
    change, message = BAD[name]
    change(folder)
    before = sorted(folder.iterdir())
    said = complaint(
        capsys, monkeypatch, "import", folder, "--output", tmp_path / "ours"
    )
    assert message in said
    assert not (tmp_path / "ours").exists() and sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"activation_function": "gelu"}, "gelu_new"),
        ({"layer_norm_epsilon": 1e-6}, "epsilon"),
        ({"scale_attn_weights": False}, "not scaled"),
        ({"n_positions": 41}, "do not fit"),
        ({"eos_token_id": 5}, "eos_id is another"),
        ({"n_head": 5}, "does not divide"),
    ],
)
def test_a_gpt2_that_cannot_be_imported(changes, message, tmp_path, pairs):
    gpt2_folder(tmp_path, [source for source, _ in pairs])
    edit(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        import_folder(tmp_path)


def test_an_output_that_is_there_is_left_alone(
    marian_folder, tmp_path, capsys, monkeypatch
):
    folder, _ = marian_folder()
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "thesis.txt").write_text("mine")
    said = complaint(
        capsys, monkeypatch, "import", folder, "--output", tmp_path / "ours"
    )
    assert "is there already" in said and len(list((tmp_path / "ours").iterdir())) == 1


def test_our_own_folder_needs_no_import(marian_folder, tmp_path):
    found = import_folder(marian_folder()[0])
    save(found.model, tmp_path / "ours", found.tokenizer)
    with pytest.raises(ValueError, match="describes no model that can be imported"):
        import_folder(tmp_path / "ours")


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        '{"kind": "marian"}',
        '{"kind": "other"}',
        "[]",
        "",
        '{"kind": "gpt2", "vocabulary": {}, "merges": 3}',
        '{"kind": ["marian"]}',
    ],
)
def test_a_damaged_tokenizer_of_ours(content, marian_folder, tmp_path):
    found = import_folder(marian_folder()[0])
    save(found.model, tmp_path / "ours", found.tokenizer)
    (tmp_path / "ours" / "tokenizer.json").write_text(content)
    with pytest.raises(ValueError, match="tokenizer.json"):
        load(tmp_path / "ours")


def test_renaming_wants_each_tensor_once():
    with pytest.raises(ValueError, match="lacks the tensor b"):
        renamed(
            {"a": torch.ones(1)}, {"a": ["A"], "b": ["B"]}, lambda _, t: [t], Path("x")
        )


# The commands


@pytest.mark.system
def test_commands_work_on_what_was_imported(
    marian_folder, tmp_path, capsys, monkeypatch
):
    folder, _ = marian_folder()
    (folder / "tokenizer_config.json").write_text(
        '{"source_lang": "en", "target_lang": "de"}'
    )
    ours = tmp_path / "ours"

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["transformer", *map(str, arguments)])
        main()
        return capsys.readouterr().out

    assert "holds a model of the family marian" in run(
        "import", folder, "--output", ours
    )
    sentence = "The dog sees the house."
    run("translate", sentence, "--folder", ours)
    run("translate", sentence, "--folder", ours, "--beam", 1)
    assert "maps" in run(
        "attend", sentence, "--folder", ours, "--output", tmp_path / "maps"
    )
    run("attend", sentence, "--folder", ours, "--html", tmp_path / "page.html")
    assert "parts that the page cannot compute" in (tmp_path / "page.html").read_text(
        "utf8"
    )
    texts = tmp_path / "texts"
    texts.write_text("The dog sleeps.\nThe cat sees a house.\n")
    run("evaluate", "--folder", ours, "--source-file", texts, "--target-file", texts)
    assert list(ours.glob("scores.files.*.texts.json"))


@torch.no_grad()
@pytest.mark.parametrize("activation", ["swish", "relu"])
def test_ctranslate2_says_the_same(marian_folder, pairs, tmp_path, activation):
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed")
    from transformer.models.export import (
        export_ctranslate2,
        translate_there,
        type_names,
    )
    from transformer.models.search import translate

    found = import_folder(
        marian_folder(activation_function=activation, max_position_embeddings=600)[0]
    )
    export_ctranslate2(found.model, type_names(found.tokenizer), tmp_path / "there")
    texts = [source for source, _ in pairs[:5]]
    there = translate_there(tmp_path / "there", found.tokenizer, texts)
    ours = translate(found.model, found.tokenizer, texts, beam=1)
    assert [a[:40] for a in there] == [b[:40] for b in ours]
    assert isinstance(found.tokenizer, SentencePieces)
