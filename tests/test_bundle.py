"""The models that come with the package: their sizes, their cards, and that tools/bundle.py makes one again."""

import shutil

import everyday
import pytest
from test_corpora import needs

from transformer.core.files import data_folder
from transformer.core.records import read_rows, under
from transformer.core.scores import bleu, exact_match
from transformer.corpora import read_bundled, read_corpus
from transformer.models.pretrained import BUNDLED_MODELS, bundled_folder, load
from transformer.models.search import translate
from transformer.runs.experiment import Experiment

FOLDER = data_folder() / "models" / "bundled"
(CARD,) = read_rows(FOLDER / "card.json")
CHAT = data_folder() / "models" / "chat"
EVERYDAY = data_folder() / "models" / "tatoeba"


@pytest.mark.parametrize(
    "folder, megabytes", [(FOLDER, 3), (CHAT, 3), (EVERYDAY, 13)], ids=str
)
def test_it_is_small(folder, megabytes):
    assert sum(path.stat().st_size for path in folder.iterdir()) < megabytes * 2**20


def test_all_that_come_along_are_there():
    folders = data_folder().glob("models/*/config.json")
    assert sorted(path.parent.name for path in folders) == sorted(BUNDLED_MODELS)
    for name in BUNDLED_MODELS:
        assert load(name)[0].config == load(bundled_folder(name))[0].config


def test_the_everyday_model_is_scored_on_all_that_its_card_names(tmp_path, monkeypatch):
    """Half of the work: its corpora are the bundled one's test set here."""
    monkeypatch.setattr(everyday, "owners", lambda: {"pairs": 3})
    monkeypatch.setattr(everyday, "SPLITS", {"test": "bundled"})
    monkeypatch.setattr(
        everyday,
        "evaluate",
        lambda model, tokenizer, pairs, beam, alpha, language, corpus, split: {
            "sentences": len(pairs),
            "asked": (beam, alpha, language, corpus, split),
        },
    )
    monkeypatch.setattr(
        everyday.bundle, "halve", lambda folder, goal: shutil.copytree(FOLDER, goal)
    )
    found = everyday.score(
        tmp_path / "halved", Experiment("bundled", folder=FOLDER), "cpu"
    )
    assert found == {
        "its": {"pairs": 3},
        "test": {"sentences": 1000, "asked": (4, 0.6, "de", "bundled", "test")},
    }


def test_it_does_what_its_card_says():
    model, tokenizer = load(FOLDER)
    examples = read_bundled("test")[::10]
    outputs = translate(model, tokenizer, [e.source for e in examples], beam=1)
    # a hundred sentences instead of a thousand, greedily: within three standard errors of what the card says
    expected = CARD["test.exact_match"]
    found = exact_match(outputs, [e.target for e in examples])
    assert abs(found - expected) < 3 * (expected * (1 - expected) / 100) ** 0.5


def test_the_chat_bot_does_what_its_card_says():
    """Forty sentences instead of a thousand: within three standard errors and a half."""
    import chatbot

    (card,) = read_rows(CHAT / "card.json")
    model, tokenizer = load(CHAT)
    found = chatbot.score_direction(model, tokenizer, read_bundled("test")[::25], "de")
    for name in ("exact_match", "words"):
        expected = card[f"test.de.{name}"]
        assert (
            abs(found[f"de.{name}"] - expected)
            < 3.5 * (expected * (1 - expected) / 40) ** 0.5
        )


@pytest.mark.system
@needs("tatoeba/deu-eng.zip")
def test_the_everyday_model_does_what_its_card_says():
    """200 sentences instead of 2,000: within three standard errors."""
    (card,) = read_rows(EVERYDAY / "card.json")
    model, tokenizer = load("tatoeba")
    pairs = read_corpus("tatoeba", "test")[::10]
    outputs = translate(model, tokenizer, [source for source, _ in pairs])
    found = bleu(outputs, [target for _, target in pairs]).score
    error = 10**0.5 * card["test.bleu.margin"] / 1.96
    assert card["test.bleu"] >= 43.4  # the recorded model of tatoeba-en-de.json
    assert abs(found - card["test.bleu"]) < 3 * error


@pytest.mark.slow
def test_a_rebuilt_model_is_as_good(tmp_path):
    """About a quarter of an hour. Other processors and numbers of threads round differently, so scores are compared."""
    import bundle

    again = bundle.job_of(tmp_path / "model").do(folder=tmp_path / "run", device="cpu")
    assert under(again, "training") == under(CARD, "training")
    assert (tmp_path / "model" / "tokenizer.json").read_bytes() == (
        FOLDER / "tokenizer.json"
    ).read_bytes()
    for split in ("test", "hard"):
        assert abs(again[f"{split}.exact_match"] - CARD[f"{split}.exact_match"]) < 0.04
        assert abs(again[f"{split}.bleu"] - CARD[f"{split}.bleu"]) < 2
    assert again["alignment.error"] < 0.3 and again["pronoun.accuracy"] > 0.8
