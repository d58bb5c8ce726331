"""The models that come with the package: their sizes, their cards, and that tools/bundle.py makes one again."""

import pytest

from transformer.corpora import read_bundled
from transformer.experiments.records import read_rows, under
from transformer.files import data_folder
from transformer.pretrained import load
from transformer.scores import exact_match
from transformer.search import translate

FOLDER = data_folder() / "models" / "bundled"
CARD, = read_rows(FOLDER / "card.json")
CHAT = data_folder() / "models" / "chat"


@pytest.mark.parametrize("folder", [FOLDER, CHAT], ids=lambda folder: folder.name)
def test_it_is_small(folder):
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3 * 2**20


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

    card, = read_rows(CHAT / "card.json")
    model, tokenizer = load(CHAT)
    found = chatbot.score_direction(model, tokenizer, read_bundled("test")[::25], "de")
    for name in ("exact_match", "words"):
        expected = card[f"test.de.{name}"]
        assert abs(found[f"de.{name}"] - expected) < 3.5 * (expected * (1 - expected) / 40) ** 0.5


@pytest.mark.slow
def test_a_rebuilt_model_is_as_good(tmp_path):
    """About a quarter of an hour. Other processors and numbers of threads round differently, so scores are compared."""
    import bundle

    again = bundle.job_of(tmp_path / "model").do(folder=tmp_path / "run", device="cpu")
    assert under(again, "training") == under(CARD, "training")
    assert (tmp_path / "model" / "tokenizer.json").read_bytes() == (FOLDER / "tokenizer.json").read_bytes()
    for split in ("test", "hard"):
        assert abs(again[f"{split}.exact_match"] - CARD[f"{split}.exact_match"]) < 0.04
        assert abs(again[f"{split}.bleu"] - CARD[f"{split}.bleu"]) < 2
    assert again["alignment.error"] < 0.3 and again["pronoun.accuracy"] > 0.8
