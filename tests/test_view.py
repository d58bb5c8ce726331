"""The page that holds a model, in a headless Chromium: what a person can do, and what the page must not do."""

import json
import re

import pytest
import torch
from browser import CHROMIUM, Browser

from transformer import Tokenizer, Transformer, TransformerConfig, load, translate, view
from transformer.corpora import read_bundled
from transformer.language import Chat, LanguageConfig, LanguageModel
from transformer.models.maps import attention_maps
from transformer.runs.dialogues import EXAMPLES
from transformer.views.chat_page import view_chat
from transformer.views.pages import page_of

CAT, DOG = (
    "The old cat that saw the dog lost its ball.",
    "The old dog near the school lost its ball.",
)
HOSTILE = "</script><b id=bold>“its” \"x\" 'y' \u202ednuor\u202c <!-- {{data}} &amp;"

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


@pytest.fixture(scope="module")
def model():
    return load()


@pytest.fixture(scope="module")
def example():
    """A sentence of the corpus with an "its" that the model translates right."""
    return next(
        e
        for e in read_bundled("test")
        if any(
            "its" in e.source.split()[p.index]
            for p, _ in e.pronouns
            if p.index < len(e.source.split())
        )
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("browser") / "profile")
    yield found
    found.close()


@pytest.fixture
def page(browser, tmp_path):
    """page(view) opens it; afterwards nothing may have been complained of, and nothing loaded."""

    def show(shown):
        shown.save(tmp_path / "view.html")
        browser.complaints.clear(), browser.addresses.clear()
        browser.open(tmp_path / "view.html")
        browser.run("new Promise(done => setTimeout(done, 50))")
        return browser

    yield show
    browser.run("1")
    assert browser.complaints == []
    assert {
        re.sub(r":.*", "", address, flags=re.S) for address in browser.addresses
    } <= {"file", "data"}


def part(name, number=0):
    """A part of a sentence's box or figure, as JavaScript."""
    return f"document.querySelectorAll('[data-is={name}]')[{number}]"


def text_of(browser, name, number=0):
    return browser.run(f"{part(name, number)}.textContent")


def typed(browser, text, number=0):
    """Type a sentence and wait for its translation."""
    browser.run(
        f"{part('text', number)}.value = {json.dumps(text)}; {part('text', number)}.dispatchEvent(new Event('input'))"
    )
    browser.run("new Promise(done => setTimeout(done, 300))")


def head(browser, kind, layer, number, picture="lines"):
    for name, value in (
        ("kind", kind),
        ("layer", layer),
        ("head", number),
        ("picture", picture),
    ):
        browser.select(name, value)


def percents(row):
    return [f"{round(w)} %" if w >= 1 else "" for w in (row * 100).tolist()]


def close(shown, expected):
    """Two columns of percents that differ by rounding at most."""
    values = [
        [int(text[:-2] or 0) if text else 0 for text in column]
        for column in (shown, expected)
    ]
    return len(shown) == len(expected) and all(abs(a - b) <= 1 for a, b in zip(*values))


def test_what_is_typed_is_translated(page, model):
    browser = page(view(*model, CAT))
    german = translate(*model, [CAT, DOG])
    assert text_of(browser, "output") == german[0]
    typed(browser, f"  {DOG}\n")
    assert (
        text_of(browser, "output") == german[1]
        and browser.run(f"{part('pick')}.value") == ""
    )
    browser.select("search", 1)
    assert text_of(browser, "output") == translate(*model, [DOG], beam=1)[0]
    typed(browser, CAT)
    assert (
        browser.run(f"{part('pick')}.value") == "0"
        and text_of(browser, "output") == german[0]
    )
    typed(browser, "")
    assert text_of(browser, "error") == ""
    typed(browser, "word " * 1100)
    assert (
        text_of(browser, "error")
        == "The sentence is longer than the model's 1024 positions."
    )


def test_every_layer_and_head_shows_its_own_weights(page, model):
    (german,) = translate(*model, [CAT])
    browser, (maps,) = (
        page(view(*model, (CAT, german))),
        attention_maps(*model, [(CAT, german)]),
    )
    for kind in ("encoder", "decoder", "cross"):
        for layer, number in ((0, 2), (1, 3), (1, "mean")):
            head(browser, kind, layer, number)
            columns, rows = maps.labels(kind)
            assert browser.words() == rows and browser.read() == columns
            weights = getattr(maps, kind)[layer]
            row = (weights.mean(dim=0) if number == "mean" else weights[number])[3]
            browser.run("document.querySelector('[data-row=\"3\"]').focus()")
            assert close(browser.numbers(), percents(row)), (kind, layer, number)
            widths = browser.run(
                "[...document.querySelectorAll('.lines path')].map(p => Number(p.getAttribute('stroke-width')))"
            )
            assert widths == pytest.approx(
                [14 * w for w in row.tolist() if w >= 0.01], abs=0.02
            )
            browser.select("picture", "matrix")
            shades = browser.run(
                "[...document.querySelectorAll('[data-row=\"3\"] i')].map(i => Number(i.style.opacity))"
            )
            assert shades == pytest.approx(row.tolist(), abs=1e-3)
            browser.select("picture", "lines")


def test_keys_move_through_words_and_cells(page, model):
    browser = page(view(*model, CAT))
    head(browser, "encoder", 0, 2)
    words = browser.words()
    while not browser.run("document.activeElement.dataset.row"):
        browser.press("Tab")
    browser.press("ArrowDown", "ArrowDown", "ArrowUp")
    assert (
        browser.run("document.activeElement.getAttribute('aria-label')")
        == f"old, word 2 of {len(words)}"
    )
    assert text_of(browser, "reading").startswith("“old” looks at: ")
    browser.press("Tab", "ArrowDown")
    assert browser.run("document.activeElement.dataset.column") == "1"
    assert text_of(browser, "what") == "“old” on “old”" and not browser.run(
        f"{part('slider')}.disabled"
    )
    browser.press("Escape")
    assert text_of(
        browser, "reading"
    ) == "Choose a word to see where it looks." and browser.run(
        f"{part('slider')}.disabled"
    )
    browser.select("picture", "matrix")
    browser.run("document.querySelector('td[tabindex=\"0\"]').focus()")
    browser.press("ArrowDown", "ArrowRight", "ArrowRight", "End")
    assert browser.run("document.activeElement.getAttribute('aria-label')").startswith(
        "old on </s>: "
    )
    browser.press("Home")
    assert (
        browser.run(
            "document.activeElement.dataset.column + document.activeElement.dataset.row"
        )
        == "01"
    )


def test_one_word_turned_changes_the_german(page, model):
    """As in notebook 19: head 1.3 decides between ihren and seinen."""
    browser = page(view(*model, CAT))
    head(browser, "encoder", 0, 2)
    words = browser.words()
    for side, word in (("row", "its"), ("column", "dog")):
        browser.run(
            f"document.querySelector('[data-{side}=\"{words.index(word)}\"]').click()"
        )
    browser.run(f"{part('force')}.click()")
    (before,) = translate(*model, [CAT])
    assert text_of(browser, "output") == before.replace("ihren", "seinen") != before
    assert browser.run(
        f"[...{part('output')}.querySelectorAll('mark')].map(m => m.textContent)"
    ) == ["seinen"]
    assert (
        text_of(browser, "before") == before
        and browser.run(f"{part('before')}.querySelector('del').textContent") == "ihren"
    )
    assert (
        browser.run("document.querySelector('#edits').textContent")
        == "encoder 1.3: its on dog 100 % ✕"
    )
    assert browser.numbers()[words.index("dog")] == "100 %"
    browser.run(
        f"{part('slider')}.value = 20; {part('slider')}.dispatchEvent(new Event('input'))"
    )
    assert (
        browser.numbers()[words.index("dog")] == "20 %"
        and text_of(browser, "output") == before
    )
    assert browser.run("edits.children.length") == 1
    browser.run("edits.querySelector('button').click()")
    assert browser.run("edits.children.length") == 0 and browser.run("undo.disabled")


def test_heads_are_switched_off_for_both_sentences(page, model):
    browser = page(view(*model, [CAT, DOG]))
    before = [text_of(browser, "output", i) for i in (0, 1)]
    assert before == translate(*model, [CAT, DOG])
    head(browser, "cross", 1, 3, "heads")
    names = browser.run(
        "[...document.querySelectorAll('.heads')[0].querySelectorAll('button')].map(b => b.textContent)"
    )
    assert names[:2] == ["1.1", "1.2"] and names[7].startswith(
        "2.4a word to its translation, 92 %"
    )
    for number in range(4):
        browser.run(f"document.querySelector('[data-switch=\"1 {number}\"]').click()")
    after = [text_of(browser, "output", i) for i in (0, 1)]
    assert (
        after[0] != before[0]
        and after[1] != before[1]
        and browser.run("edits.children.length") == 4
    )
    assert browser.run("silent.getAttribute('aria-pressed')") == "true"
    browser.run("undo.click()")
    assert [text_of(browser, "output", i) for i in (0, 1)] == before
    browser.run("second.click()")
    assert browser.run("document.querySelectorAll('section').length") == 2


def test_decoding_step_by_step(page, model):
    (german,) = translate(*model, [CAT])
    browser, (maps,) = page(view(*model, CAT)), attention_maps(*model, [(CAT, german)])
    head(browser, "decoder", 1, 1)
    steps = int(text_of(browser, "status").split()[-1])
    browser.run(f"{part('play')}.click()")
    assert (
        text_of(browser, "status") == f"step 1 of {steps}"
        and text_of(browser, "play") == "Pause"
    )
    assert browser.words() == maps.target[:1] and browser.read() == ["<s>"]
    browser.run(f"{part('play')}.click()")
    likely = f"[...{part('likely')}.children].map(li => [li.className, li.querySelector('.word').textContent])"
    for step in range(2, 6):
        browser.run(f"{part('next')}.click()")
        assert (
            text_of(browser, "status") == f"step {step} of {steps}"
            and browser.words() == maps.target[:step]
        )
        assert close(
            browser.numbers()[:step], percents(maps.decoder[1, 1, step - 1])[:step]
        )
        shown = browser.run(likely)
        assert len(shown) == 5 and ["written", maps.target[step - 1]] in shown
    browser.run(f"{part('previous')}.click()")
    assert browser.read() == maps.read[:4]


def test_the_corpus_knows_what_is_right(page, model, example):
    browser = page(view(*model, example))
    assert text_of(browser, "reference") == "✓ as in the corpus"
    head(browser, "encoder", 0, 2)
    gold = browser.run("[...document.querySelectorAll('.lines path.gold')].length")
    assert gold == len(example.pronouns)
    marks = browser.run(
        "[...document.querySelectorAll('.rows button')].map(b => b.textContent).filter(t => /[✓✗]/.test(t))"
    )
    assert len(marks) == len(example.pronouns)
    assert "3: “its” to its noun, 92 %" in browser.run(
        "document.querySelector('#head').textContent"
    )
    head(browser, "cross", 1, 3, "matrix")
    assert browser.run("document.querySelectorAll('td.gold').length") == len(
        example.alignment
    )
    typed(browser, example.source + " Well.")
    assert browser.run("document.querySelectorAll('td.gold').length") == 0


def test_other_models_and_what_cannot_be_computed(page):
    torch.manual_seed(0)
    tokenizer = Tokenizer.train([CAT, DOG, HOSTILE] * 3, 300)
    sizes = dict(vocab_size=300, d_model=32, d_ff=32, N=3, h=2, max_positions=300)
    own = Transformer(
        TransformerConfig(**sizes, positions="rotary", norm_first=True)
    ).eval()
    with torch.no_grad():
        for p in own.parameters():
            p.copy_(p.half())
    browser = page(view(own, tokenizer, "its cat"))
    assert text_of(browser, "output") == translate(own, tokenizer, ["its cat"])[0]
    own.encoder.layers[0].self_attention.attend = lambda q, k, v, mask=None: (
        v,
        torch.eye(v.shape[2])[None, None].expand(len(v), v.shape[1], -1, -1),
    )
    shown = view(own, tokenizer, [("its cat", "die Katze"), "a dog"])
    assert len(shown.page) < 200_000
    browser = page(shown)
    assert "parts that the page cannot compute" in browser.run("still.textContent")
    assert (
        text_of(browser, "output") == "die Katze"
        and browser.run("getComputedStyle(silent).display") == "none"
    )
    head(browser, "encoder", 0, 1)
    browser.run("document.querySelector('[data-row=\"1\"]').focus()")
    assert browser.numbers() == ["", "100 %", ""]


def test_hostile_text_stays_text(page):
    """In sentences and in a vocabulary that learned from them."""
    tokenizer = Tokenizer.train([HOSTILE] * 9, 330)
    assert any("script" in piece for piece in tokenizer.pieces(HOSTILE))
    own = Transformer(TransformerConfig.preset("tiny", vocab_size=330, N=1)).eval()
    shown = view(own, tokenizer, [(HOSTILE, HOSTILE), HOSTILE])
    assert shown.page.count("</script>") == view(own, tokenizer, ["a", "b"]).page.count(
        "</script>"
    )
    browser = page(shown)
    assert browser.run("document.querySelector('#bold') === null")
    assert browser.run(f"{part('text')}.value") == HOSTILE
    assert text_of(browser, "output") == HOSTILE.replace("\u202e", "⟨U+202E⟩").replace(
        "\u202c", "⟨U+202C⟩"
    )
    for picture in ("lines", "matrix", "heads"):
        browser.select("picture", picture)
        assert not re.search(
            "[\u202a-\u202e]",
            browser.run("document.querySelector('#figures').innerHTML"),
        )
    assert (
        browser.run("fetch('data:,x').then(() => 'loaded', () => 'refused')")
        == "refused"
    )
    browser.complaints.clear()  # of the fetch


def test_a_script_that_was_not_written_for_the_page_does_not_run(page):
    """Were text ever to become a script, the browser would not run it: the page names its own by a hash."""
    shown = page_of(
        {
            "sentences": [
                {
                    "source": "a",
                    "target": "b",
                    "maps": {
                        "source": ["a"],
                        "target": ["b"],
                        **{
                            kind: [[[[1000]]]]
                            for kind in ("encoder", "decoder", "cross")
                        },
                    },
                }
            ],
            "names": {},
            "beam": 4,
            "still": "x",
        }
    )
    assert "unsafe" not in shown

    class Shown:
        def save(self, path):
            path.write_text(
                shown.replace(
                    "</body>", "<script>document.title = 'taken'</script></body>"
                ),
                encoding="utf8",
            )

    browser = page(Shown())
    assert browser.run("document.title") == "A Transformer to take apart"
    assert text_of(browser, "output") == "b"
    assert any(
        "Content Security Policy" in json.dumps(complaint)
        for complaint in browser.complaints
    )
    browser.complaints.clear()


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_moves_and_nothing_is_too_wide(page, model, width, example):
    browser = page(view(*model, [example, CAT]))
    browser.send(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=width < 500,
    )
    places = (
        "[...document.querySelectorAll('[data-is=picture], #kind, [data-is=play]')]"
        ".map(e => Math.round(e.getBoundingClientRect().top + scrollY))"
    )
    head(browser, "encoder", 0, 2)
    before = browser.run(places)
    browser.run(
        "document.querySelector('[data-row=\"2\"]').click(), document.querySelector('[data-column=\"1\"]').click()"
    )
    browser.run(f"{part('force')}.click(), silent.click(), {part('previous')}.click()")
    assert browser.run("edits.children.length") == 2 and browser.run(places) == before
    for picture in ("matrix", "heads", "lines"):
        browser.select("picture", picture)
        assert browser.run("document.documentElement.scrollWidth") <= width, picture
    browser.send("Emulation.clearDeviceMetricsOverride")


def test_everything_has_a_name(page, model):
    """What a screen reader reads out: no control without a name."""
    browser = page(view(*model, [CAT, DOG]))
    for picture in ("lines", "matrix", "heads"):
        browser.select("picture", picture)
        nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
        roles = {
            "button",
            "combobox",
            "textbox",
            "slider",
            "checkbox",
            "gridcell",
            "grid",
            "toolbar",
            "region",
            "group",
        }
        silent = [
            node["role"]["value"]
            for node in nodes
            if node["role"]["value"] in roles
            and not node["ignored"]
            and not node.get("name", {}).get("value")
        ]
        assert silent == []


def test_in_a_notebook_the_frame_has_the_same_page(browser, model, tmp_path):
    """As JupyterLab and Colab show it: HTML with a frame that may run scripts and nothing else."""
    (tmp_path / "cell.html").write_text(
        f"<!doctype html>{view(*model, CAT)._repr_html_()}", encoding="utf8"
    )
    browser.complaints.clear()
    browser.open(tmp_path / "cell.html")
    with browser.frame("iframe"):
        while browser.run("document.querySelector('.rows') === null"):
            pass
        assert text_of(browser, "output") == translate(*model, [CAT])[0]
    assert browser.complaints == []


CELL = 'document.querySelector(\'[data-row="{}"][data-column="{}"]\')'


def middle(browser, target):
    return browser.run(
        f"(() => {{ {target}.scrollIntoView({{block: 'center'}}); const box = {target}.getBoundingClientRect();"
        "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )


def test_a_weight_is_dragged_in_its_cell(page, model):
    browser, (before,) = page(view(*model, CAT)), translate(*model, [CAT])
    head(browser, "encoder", 0, 2, "matrix")
    words = CAT.replace(".", " .").split()
    cell = CELL.format(words.index("its"), words.index("dog"))
    x, y = middle(browser, cell)
    for kind, up in (
        ("Pressed", 0),
        ("Moved", 2),
        ("Moved", 30),
        ("Moved", 150),
        ("Released", 150),
    ):
        browser.send(
            "Input.dispatchMouseEvent",
            type=f"mouse{kind}",
            x=x,
            y=y - up,
            button="left",
            clickCount=1,
        )
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert text_of(browser, "output") == before.replace("ihren", "seinen") != before
    assert (
        browser.run("document.querySelector('#edits').textContent")
        == "encoder 1.3: its on dog 100 % ✕"
    )
    assert (
        browser.run(f"{cell}.getAttribute('aria-selected')") == "true"
        and text_of(browser, "value") == "100 %"
    )
    browser.send("Emulation.setTouchEmulationEnabled", enabled=True)
    x, y = middle(browser, cell)
    moves = [("Start", 0), *(("Move", down) for down in (10, 60, 96)), ("End", None)]
    for kind, down in moves:
        browser.send(
            "Input.dispatchTouchEvent",
            type=f"touch{kind}",
            touchPoints=[] if down is None else [dict(x=x, y=y + down)],
        )
    assert (
        browser.run("document.querySelector('#edits').textContent")
        == "encoder 1.3: its on dog 20 % ✕"
    )
    browser.send("Emulation.setTouchEmulationEnabled", enabled=False)
    head(browser, "encoder", 0, "mean", "matrix")
    assert browser.run("edits.children.length") == 1


def touch(browser, target):
    """Touch the middle of an element, given as JavaScript."""
    place = middle(browser, target)
    for kind, points in (
        ("touchStart", [dict(x=place[0], y=place[1])]),
        ("touchEnd", []),
    ):
        browser.send("Input.dispatchTouchEvent", type=kind, touchPoints=points)
    browser.run("new Promise(done => setTimeout(done, 300))")


def test_a_finger_chooses(page, model):
    browser = page(view(*model, CAT))
    browser.send("Emulation.setTouchEmulationEnabled", enabled=True)
    head(browser, "encoder", 0, 2, "matrix")
    touch(browser, 'document.querySelector(\'[data-row="2"][data-column="5"]\')')
    assert text_of(browser, "what") == "“cat” on “the”" and not browser.run(
        f"{part('force')}.disabled"
    )
    browser.send("Emulation.setTouchEmulationEnabled", enabled=False)


# The page that talks


@pytest.fixture(scope="module")
def bot():
    """The bot that comes with the package, rounded as its page has it."""
    found, tokenizer = load("chat")
    with torch.no_grad():
        for p in found.parameters():
            p.copy_(p.half())
    return found, tokenizer


@pytest.fixture
def small():
    """A bot with positions for 80 tokens, of which 20 are an answer's, and its page."""
    torch.manual_seed(0)
    tokenizer = Tokenizer.train([CAT, DOG, HOSTILE] * 3, 300)
    own = LanguageModel(
        LanguageConfig(300, d_model=32, d_ff=32, N=3, h=2, max_positions=80)
    ).eval()
    with torch.no_grad():
        for p in own.parameters():
            p.copy_((3 * p).half())
    return (own, tokenizer), view_chat(own, tokenizer, ["its <b>cat</b>"], 20)


def said(browser, who="bot"):
    """The texts of one side, without names and marks."""
    return browser.run(
        f"[...document.querySelectorAll('#log .{who} .text')].map(e => e.textContent)"
    )


def say(browser, text):
    """Type a text and press Enter."""
    browser.run("document.getElementById('text').focus()")
    browser.send("Input.insertText", text=text)
    browser.press("Enter")


def button(number, word):
    """A word of an answer, as JavaScript."""
    return f"document.querySelectorAll('#log .bot')[{number}].querySelectorAll('button')[{word}]"


def shown_of(text):
    """As the page shows a text: signs that nobody sees are named."""
    return re.sub(
        "[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]",
        lambda sign: f"\u27e8U+{ord(sign[0]):04X}\u27e9",
        text,
    )


def test_a_conversation_keeps_its_turns(page, bot):
    browser, chat = page(view_chat(*bot, EXAMPLES)), Chat(*bot)
    assert browser.run("anew.disabled")
    for text in EXAMPLES[:2]:
        say(browser, text)
    assert (
        said(browser, "you") == list(EXAMPLES[:2])
        and browser.run("document.getElementById('text').value") == ""
    )
    assert said(browser) == [chat.say(text) for text in EXAMPLES[:2]]
    assert re.fullmatch(r"\d+ tokens in \d+ ms", browser.run("time.textContent"))
    assert browser.run("heard.textContent") == f"Bot: {said(browser)[-1]}"
    browser.run("document.querySelectorAll('#examples button')[2].click()")
    assert said(browser)[-1] == chat.say(EXAMPLES[2])
    browser.run("anew.click()")
    assert said(browser) == [] and browser.run("anew.disabled")
    say(browser, EXAMPLES[2])
    assert said(browser) == [Chat(*bot).say(EXAMPLES[2])]
    say(browser, "  ")
    assert len(said(browser)) == 1


def test_in_a_notebook_the_bot_answers_in_its_frame(browser, small, tmp_path):
    """In a frame that may run scripts and nothing else, as it may send no forms."""
    (model, tokenizer), shown = small
    (tmp_path / "cell.html").write_text(
        f"<!doctype html>{shown._repr_html_()}", encoding="utf8"
    )
    browser.complaints.clear()
    browser.open(tmp_path / "cell.html")
    with browser.frame("iframe"):
        while browser.run("document.querySelector('#examples button') === null"):
            pass
        browser.run("text.value = 'its cat', say.click()")
        assert said(browser) == [
            shown_of(Chat(model, tokenizer, longest=20).say("its cat"))
        ]
    assert browser.complaints == []


def test_turns_that_do_not_fit_are_forgotten(page, small):
    (model, tokenizer), shown = small
    browser, chat, texts = (
        page(shown),
        Chat(model, tokenizer, longest=20),
        ["its cat", "a dog", "the cat", "no dog"],
    )
    for text in texts:
        say(browser, text)
    assert said(browser) == [shown_of(chat.say(text)) for text in texts]
    names = browser.run(
        "[...document.querySelectorAll('.who')].map(e => e.textContent)"
    )
    gone = 2 * (len(texts) - len(chat.turns))
    assert 0 < gone < 8 and [name.endswith(" (forgotten)") for name in names] == [
        True
    ] * gone + [False] * (8 - gone)
    say(browser, "cat " * 80)
    assert browser.run("error.textContent").endswith(
        "tokens, and the model has positions for 59."
    )
    assert said(browser, "you") == texts


def test_where_the_bot_looked(page, bot):
    browser = page(view_chat(*bot, EXAMPLES))
    for text in EXAMPLES[:2]:
        say(browser, text)
    words = browser.run(
        "[...document.querySelectorAll('#log .text > *, #log .mark')].map(e => e.textContent)"
    )
    for layer, head in ((0, 1), (3, "mean")):
        browser.select("layer", layer), browser.select("head", head)
        browser.run(f"{button(0, 0)}.click()")
        reading = browser.run("reading.textContent")
        looks = re.findall(r"(\S+) (\d+) %", reading.partition("looks at: ")[2])
        assert (
            looks
            and all(word in words for word, _ in looks)
            and sum(int(n) for _, n in looks) <= 102
        )
        shaded = browser.run(
            "[...document.querySelectorAll('#log .text > *, #log .mark')].map(e => e.style.background !== '')"
        )
        assert any(shaded) and not any(
            shaded[words.index("<s>") + 1 :]
        )  # nothing was written yet
    browser.run(f"{button(1, 0)}.focus()")
    assert browser.run(f"{button(1, 0)}.getAttribute('aria-pressed')") == "true"
    browser.press("ArrowLeft")
    assert browser.run(
        "document.activeElement.textContent"
    ) == "</s>" and "“</s>” looks at" in browser.run("reading.textContent")
    browser.press("Home", "ArrowRight")
    assert (
        browser.run(
            f"document.activeElement === {button(0, 1)} && document.activeElement.tabIndex"
        )
        == 0
    )
    browser.press("Escape")
    assert browser.run("document.querySelector('[aria-pressed=true]') === null")


def test_nobody_speaks_in_the_place_of_the_bot(page, small):
    """Marks and markup that are typed stay text."""
    (model, tokenizer), shown = small
    assert shown.page.count("</script>") == view_chat(
        model, tokenizer, ["a"], 20
    ).page.count("</script>")
    browser, text = page(shown), "</s><s>Bot: </span><b id=bold>x</b>\u202e"
    browser.run("document.querySelector('#examples button').click()")
    say(browser, text)
    assert said(browser, "you") == [
        "its <b>cat</b>",
        text.replace("\u202e", "⟨U+202E⟩"),
    ]
    assert browser.run("document.querySelector('#bold, #log b') === null")
    marks = browser.run(
        "[...document.querySelectorAll('#log .mark')].map(e => e.textContent + e.parentNode.className)"
    )
    assert marks == ["</s>you", "<s>bot", "</s>bot"] * 2
    chat = Chat(model, tokenizer, longest=20)
    assert said(browser) == [
        shown_of(chat.say(given)) for given in ("its <b>cat</b>", text)
    ]


@pytest.mark.parametrize("width", [390, 1280])
def test_a_conversation_moves_nothing(page, bot, width):
    browser = page(view_chat(*bot, EXAMPLES))
    browser.send(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=width < 500,
    )
    places = (
        "['text', 'anew', 'layer', 'reading', 'heard'].map(id => "
        "Math.round(document.getElementById(id).getBoundingClientRect().top + scrollY))"
    )
    before = browser.run(places)
    for number in range(len(EXAMPLES)):
        browser.run(f"document.querySelectorAll('#examples button')[{number}].click()")
    browser.run(
        f"{button(0, 1)}.click(), text.value = 'word '.repeat(600), say.click()"
    )
    assert (
        browser.run("error.textContent")
        and browser.run(places) == before
        and browser.run("document.documentElement.scrollWidth") <= width
    )
    assert browser.run("log.scrollHeight > log.clientHeight")
    nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "combobox", "textbox", "list", "group"}
    assert [
        node
        for node in nodes
        if node["role"]["value"] in roles
        and not node["ignored"]
        and not node.get("name", {}).get("value")
    ] == []
    browser.send("Emulation.clearDeviceMetricsOverride")


def test_a_finger_asks(page, bot):
    browser = page(view_chat(*bot, EXAMPLES))
    browser.send("Emulation.setTouchEmulationEnabled", enabled=True)
    for target in ("document.querySelector('#examples button')", button(0, 1)):
        touch(browser, target)
    assert len(said(browser)) == 1 and " looks at: " in browser.run(
        "reading.textContent"
    )
    browser.send("Emulation.setTouchEmulationEnabled", enabled=False)
