"""A model in CTranslate2 says what it says here."""

import pytest
import torch

from transformer.bench.peers import available
from transformer.corpora import read_corpus
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.recurrence import RecurrenceConfig
from transformer.fast.search import greedy_search
from transformer.models import export
from transformer.models.export import export_ctranslate2, translate_there, type_names
from transformer.models.families import build
from transformer.models.pretrained import load
from transformer.models.search import translate

SIZES = dict(vocab_size=60, N=2, d_model=16, d_ff=24, h=4, P_drop=0.0)
needs_ctranslate2 = pytest.mark.skipif(
    "ctranslate2" not in available(["ctranslate2"]),
    reason="ctranslate2 is not installed",
)


def random_model(seed=0, **changes):
    """A model whose every weight is random, gains and biases too."""
    torch.manual_seed(seed)
    model = Transformer(TransformerConfig(**{**SIZES, **changes})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@needs_ctranslate2
@pytest.mark.parametrize(
    "changes",
    [
        {},
        dict(norm_first=True),
        dict(positions="learned", max_positions=30),
        dict(tie_embeddings=False),
    ],
    ids=str,
)
def test_ctranslate2_gives_every_token_the_same_probability(tmp_path, changes):
    """Log probabilities of given targets, and what greedy search finds; the sentences differ in length."""
    import ctranslate2

    model, names = random_model(**changes), [f"t{i}" for i in range(60)]
    export_ctranslate2(model, names, tmp_path / "there")
    there = ctranslate2.Translator(
        str(tmp_path / "there"), compute_type="float32", intra_threads=1
    )
    chance = torch.Generator().manual_seed(1)
    sources = [
        torch.randint(3, 60, (n,), generator=chance).tolist() + [2] for n in (3, 9, 6)
    ]
    targets = [
        torch.randint(3, 60, (n,), generator=chance).tolist() for n in (5, 2, 11)
    ]
    named = [[[names[i] for i in row] for row in rows] for rows in (sources, targets)]
    for source, target, theirs in zip(sources, targets, there.score_batch(*named)):
        log_probs = model(torch.tensor([source]), torch.tensor([[1, *target]]))[
            0
        ].log_softmax(dim=-1)
        ours = [log_probs[t, token].item() for t, token in enumerate([*target, 2])]
        assert theirs.log_probs == pytest.approx(ours, abs=1e-4)
    found = there.translate_batch(named[0], beam_size=1, max_decoding_length=15)
    for source, result in zip(sources, found):
        ours = greedy_search(model, torch.tensor([source]), extra=15 - len(source))[0]
        assert [names.index(name) for name in result.hypotheses[0]] == [
            i for i in ours if i != 2
        ]


@needs_ctranslate2
def test_the_bundled_model_translates_the_same_there(tmp_path):
    model, tokenizer = load()
    export_ctranslate2(model, type_names(tokenizer), tmp_path / "there")
    sentences = [source for source, _ in read_corpus("bundled", "validation")[:60]]
    sentences += ["", " \u3000", "\u200b", " The  old cat sleeps. "]
    ours = translate(model, tokenizer, sentences, beam=1)
    assert ours[-4:-1] == ["", "", ""]
    assert (
        translate_there(tmp_path / "there", tokenizer, sentences) == ours
        and len(set(ours)) > 50
    )


@needs_ctranslate2
def test_what_cannot_be_exported(tmp_path):
    names = [f"t{i}" for i in range(60)]
    with pytest.raises(ValueError, match="d_k=8, d_v=None: it cannot be exported"):
        export_ctranslate2(random_model(d_k=8), names, tmp_path / "there")
    with pytest.raises(ValueError, match="adds positions to embeddings"):
        export_ctranslate2(random_model(positions="rotary"), names, tmp_path / "there")
    recurrent = build(RecurrenceConfig(60, d_model=16))
    with pytest.raises(ValueError, match="a model of the family recurrence: it cannot"):
        export_ctranslate2(recurrent, names, tmp_path / "there")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError, match="there is there already"):
        export_ctranslate2(random_model(), names, tmp_path / "there")


def test_an_export_without_ctranslate2_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(export.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install"):
        export_ctranslate2(random_model(), [], tmp_path / "there")
