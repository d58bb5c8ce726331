"""The page that holds a model, as Python writes it (test_live.py runs its script, test_view.py opens it)."""

import base64
import dataclasses
import html
import json
import re
from functools import partial

import numpy as np
import pytest
import torch

from transformer import Transformer, TransformerConfig, load, translate, view
from transformer.core.white_space import normalised
from transformer.corpora import read_bundled
from transformer.fast.model import Parts
from transformer.fast.positions import LearnedPositions
from transformer.language import LanguageConfig, LanguageModel
from transformer.models.maps import KINDS, as_thousandths, attention_maps
from transformer.models.pretrained import bundled_folder
from transformer.runs.dialogues import EXAMPLES
from transformer.stacks import LayerNorm
from transformer.views.chat_page import view_chat
from transformer.views.pages import (
    LARGEST,
    halves,
    names_of,
    why_still,
)
from transformer.views.widget import Widget

SENTENCE = "The cat lost its ball."
LONG = (
    "The old teacher gave the young gardener near the small school a red book and the cat behind the house "
    "lost its ball."
)


@pytest.fixture(scope="module")
def bundled():
    """The model that comes with the package, and its tokenizer."""
    return load()


def data_of(page):
    """What a page tells its script."""
    return json.loads(
        re.search(
            r'<script type="application/json" id="data">(.*?)</script>', page, re.S
        )[1]
    )


def test_the_page_has_the_weights_in_half_precision(bundled):
    page = view(*bundled, SENTENCE).page
    weights = re.search(r'id="weights">(.*?)</script>', page)[1]
    numbers, start = np.frombuffer(base64.b64decode(weights), "<f2"), 0
    parameters = dict(bundled[0].named_parameters())
    for name, shape in data_of(page)["tensors"]:
        some = torch.from_numpy(
            numbers[start : start + parameters[name].numel()].astype(np.float32)
        ).reshape(shape)
        assert torch.equal(some, parameters[name].half().float())
        start += some.numel()
    assert start == len(numbers) and weights == halves(bundled[0])
    assert len(page.encode()) < 4_000_000


def test_the_page_loads_nothing(bundled):
    page = view(*bundled, SENTENCE).page
    assert re.findall(r"https?:[^\"')\s]*", page) == [
        "http://www.w3.org/2000/svg"
    ]  # a name, not an address to load
    assert not re.search(
        r"\bsrc=|@import|url\(|fetch\(|XMLHttpRequest|import\(|require\(|{{", page
    )
    assert (
        "default-src 'none'; script-src 'sha256-" in page and "unsafe" not in page
    )  # and the browser would not let it


def test_words_cannot_leave_the_data(bundled):
    nasty = [
        "</script><script>alert(1)</script>",
        "<!--",
        "{{script}}",
        "{{data}}",
        "&amp;",
        '"',
        "a\u2028b",
        "</s>",
    ]
    page = view(*bundled, nasty).page
    assert [entry["source"] for entry in data_of(page)["sentences"]] == [
        normalised(text) for text in nasty
    ]
    assert (
        page.count("</script>") == view(*bundled, SENTENCE).page.count("</script>") == 3
    )


def test_a_sentence_a_pair_an_example_and_lists(bundled):
    example = next(e for e in read_bundled("test") if e.pronouns)
    shown = view(*bundled, [SENTENCE, ("A dog slept.", "Ein Hund schlief."), example])
    plain, pair, known = data_of(shown.page)["sentences"]
    assert plain == {"source": SENTENCE} and pair == {
        "source": "A dog slept.",
        "target": "Ein Hund schlief.",
    }
    assert (
        known["source"] == example.source and known["gold"]["target"] == example.target
    )
    assert known["gold"]["alignment"] == [
        list(link) for link in sorted(example.alignment)
    ]
    english, german = example.pronouns[0]
    assert known["gold"]["pronouns"][0] == [
        [english.index, english.antecedent],
        [german.index, german.antecedent],
    ]
    assert view(*bundled, [SENTENCE]) == view(*bundled, SENTENCE)
    assert view(*bundled, LONG).height > view(*bundled, SENTENCE).height
    with pytest.raises(ValueError, match="no sentence to view"):
        view(*bundled, [])
    with pytest.raises(ValueError, match="nothing to view in an empty sentence"):
        view(*bundled, [SENTENCE, ""])
    with pytest.raises(ValueError, match="a page shows at most 100 sentences, not 101"):
        view(*bundled, [SENTENCE] * 101)
    with pytest.raises(
        ValueError,
        match=r"sentence 2 \(index 1\) has .* more than the model's 1024 positions",
    ):
        view(*bundled, [SENTENCE, "word " * 1024])
    with pytest.raises(
        ValueError,
        match=r"sentence 2 \(index 1\) has .* more than the model's 1024 positions",
    ):
        view(*bundled, ("The cat sleeps.", "Wort " * 1024))


def test_names_are_those_of_the_records(bundled):
    card = json.loads((bundled_folder() / "card.json").read_text(encoding="utf8"))
    place = (
        f"{card['pronoun.attention']} {card['pronoun.layer']}.{card['pronoun.head']}"
    )
    assert (
        names_of(bundled[0])[place] == "“its” to its noun, 92 %"
        and len(names_of(bundled[0])) == 3
    )
    assert data_of(view(*bundled, SENTENCE).page)["names"] == names_of(bundled[0])
    other = load()[0]
    with torch.no_grad():
        other.decoder.layers[0].feed_forward.W_1.bias[3] += 1
    assert names_of(other) == {}


def test_what_a_page_can_compute(bundled):
    assert why_still(bundled[0]) == ""
    large = TransformerConfig.preset("base", vocab_size=37000)
    with torch.device("meta"):
        assert (
            why_still(Transformer(large))
            == f"This model has 63 million parameters; a page holds at most {LARGEST / 1e6:.0f}."
        )

    class Own(Transformer):
        def step(self, tokens, state):
            return super().step(tokens, state)

    class Doubled(torch.nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    small = TransformerConfig(vocab_size=9, d_model=8, d_ff=8, N=1, h=2)
    changed = Transformer(small)
    changed.encoder.layers[0].feed_forward.W_1 = Doubled(8, 8)
    assert why_still(Transformer(small)) == ""
    other_sines = Transformer(small, Parts(positions=LearnedPositions))
    softer = Transformer(small, Parts(norm=partial(LayerNorm, eps=1e-3)))
    assert why_still(other_sines) == why_still(softer) == why_still(changed)
    assert (
        why_still(Own(small))
        == why_still(changed)
        == "This model has parts that the page cannot compute."
    )

    @dataclasses.dataclass(frozen=True)
    class Unknown(TransformerConfig):
        pass

    assert why_still(Transformer(Unknown(**dataclasses.asdict(small)))) == why_still(
        changed
    )


def test_a_model_that_a_page_cannot_compute_is_recorded(bundled):
    model, tokenizer = load()
    model.encoder.layers[0].self_attention.attend = lambda *given: (
        bundled[0].encoder.layers[0].self_attention.attend(*given)
    )
    data = data_of(
        view(model, tokenizer, [SENTENCE, ("A dog slept.", "Ein Kater schlief.")]).page
    )
    assert data["still"] and "config" not in data and "tokenizer" not in data
    (german,) = translate(model, tokenizer, [SENTENCE])
    maps = attention_maps(
        model, tokenizer, [(SENTENCE, german), ("A dog slept.", "Ein Kater schlief.")]
    )
    assert [entry["maps"] for entry in data["sentences"]] == [
        as_thousandths(m) for m in maps
    ]
    assert data["sentences"][0]["target"] == german
    for kind in KINDS:
        again = torch.tensor(data["sentences"][0]["maps"][kind]) / 1000
        torch.testing.assert_close(again, getattr(maps[0], kind), atol=0.000501, rtol=0)


def test_the_file_is_the_page(tmp_path):
    shown = Widget("<p>page</p>\u2028", 500)
    shown.save(tmp_path / "new" / "attention.html")
    assert (tmp_path / "new" / "attention.html").read_text(
        encoding="utf8"
    ) == shown.page
    with pytest.raises(OSError):
        shown.save(tmp_path / "new" / "attention.html" / "below-a-file.html")


def test_in_a_notebook_the_page_stands_in_a_frame_of_its_own(bundled):
    shown = view(*bundled, SENTENCE)
    frame = shown._repr_html_()
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1]) == shown.page
    assert (
        re.search(r'sandbox="([^"]*)"', frame)[1] == "allow-scripts"
        and f"height: {shown.height}px" in frame
    )
    assert "<html" not in repr(shown) and len(repr(shown)) < 100


# The page that talks


def test_the_page_of_the_bot_is_complete():
    model, tokenizer = load("chat")
    page = view_chat(model, tokenizer, EXAMPLES).page
    data = data_of(page)
    assert data["examples"] == list(EXAMPLES) and data["longest"] == 60
    assert (
        re.search(r'id="weights">(.*?)</script>', page)[1] == halves(model)
        and len(page.encode()) < 4_000_000
    )
    assert re.findall(r"https?:[^\"')\s]*", page) == ["http://www.w3.org/2000/svg"]
    assert not re.search(
        r"\bsrc=|@import|url\(|fetch\(|XMLHttpRequest|import\(|require\(|{{", page
    )
    assert "default-src 'none'; script-src 'sha256-" in page and "unsafe" not in page


def test_bots_that_no_page_can_hold(bundled):
    sizes, tokenizer = dict(d_model=16, d_ff=16, N=1, h=2, max_positions=80), bundled[1]
    with pytest.raises(
        ValueError, match="no page can hold this bot. This model has parts"
    ):
        view_chat(*bundled)
    for changes, said in (
        ({"prefix": True}, "no page can hold this bot. Its prompts see their ends."),
        (
            {"max_positions": 61},
            "a prompt of 2 tokens and 60 to write after it need more",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            view_chat(
                LanguageModel(
                    LanguageConfig(tokenizer.vocab_size, **{**sizes, **changes})
                ),
                tokenizer,
            )
