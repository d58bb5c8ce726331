"""The widgets: their numbers in node beside Python's, their pages in Chromium, their pictures where
no script runs."""

import base64
import html
import io
import json
import math
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import nbformat
import pairs
import pytest
import torch
from browser import CHROMIUM, Browser

import transformer as package
from transformer import Tokenizer, Transformer, TransformerConfig, load, translate, view
from transformer.fast.model import Parts
from transformer.feed_forward import FeedForward
from transformer.models.maps import attention_maps
from transformer.models.recording import cache
from transformer.positions import rotate, sinusoids
from transformer.stacks import LayerNorm
from transformer.views import beam, clockwork, widgets
from transformer.views.beam import beam_tree
from transformer.views.clockwork import clocks, rotary
from transformer.views.embeddings import temperature
from transformer.views.feed_forward import kinks
from transformer.views.turn import Turn, turned_rows
from transformer.views.widget import Widget, width_of
from transformer.views.widgets import one_word, saturation

pytestmark = pytest.mark.system

LIVE = Path(package.__file__).parent / "views" / "live"
WORDS = ["Tom", "feeds", "his", "dog"]
X = torch.tensor([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 0]])
W_Q = torch.tensor([[0.0, 2], [0, 1], [2, 0], [4, 0]])
W_K = torch.tensor([[2.0, 0], [1, 0], [0, 2], [0, 0]])
W_V = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
ASKS, GIVES = ("somebody", "deed"), ("Tom", "dog", "feeding")
MATRICES = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V}
HEAVIEST = 60_000  # characters of a widget in a notebook: page, picture, words

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
everywhere = pytest.mark.parametrize("scheme", ["light", "dark"])
both_widths = pytest.mark.parametrize("width", [360, 1440])
LINE = torch.linspace(-2, 2, 41)[:, None]


def networks(widths=(1, 2, 8)):
    """Networks of one number whose units set in at even distances."""
    made = {}
    for d_ff in widths:
        chance = torch.Generator().manual_seed(d_ff)
        network = FeedForward(1, d_ff).requires_grad_(False)
        network.W_1.weight.fill_(1.0)
        network.W_1.bias.copy_(-torch.linspace(-2, 2, d_ff + 1)[:-1])
        network.W_2.weight.copy_(torch.randn(1, d_ff, generator=chance))
        network.W_2.bias.fill_(0.5)
        made[d_ff] = network
    return made


def wave_and_lines(widths=(2, 8), **changed):
    return kinks(networks(**changed), LINE, LINE.sin(), widths)


def chances(words=("ihren", "seinen", "den"), **changed):
    return temperature(words, torch.tensor([3.0, 1.0, 2.0]), **changed)


MAKERS = {
    "one_word": lambda: his(),
    "saturation": saturation,
    "clocks": clocks,
    "rotary": rotary,
    "kinks": wave_and_lines,
    "temperature": chances,
    "beam_tree": lambda: badete(),
}
all_widgets = pytest.mark.parametrize("name", MAKERS)


def his(x=X, **changed) -> Widget:
    given = {"words": WORDS, "x": x, **MATRICES, "word": "his"}
    return one_word(**given | {"asks": ASKS, "gives": GIVES} | changed)


NEXT = {  # how likely the next tokens are: after the last one, whatever came before
    1: {3: 0.92, 4: 0.01, 5: 0.02},
    3: {6: 0.08, 7: 0.05, 5: 0.02},
    6: {8: 0.32, 9: 0.1},
    7: {9: 0.95, 8: 0.01},
}
PIECES = dict(enumerate("<p> <s> </s> B Ver Br ad ade et te eine".split()))


def next_of_table(alive, K):
    longer = [
        (log_p + math.log(p), [*tokens, token])
        for log_p, tokens in alive
        for token, p in NEXT.get(tokens[-1], {10: 0.9}).items()
    ]
    return sorted(longer, reverse=True)[: K + 1]


def badete(**changed) -> Widget:
    return beam_tree(next_of_table, PIECES.get, **changed)


@pytest.fixture(scope="module")
def shown():
    return {name: make() for name, make in MAKERS.items()}


def data_of(widget) -> dict:
    """What a widget's script gets."""
    text = re.search(r'<script type="application/json" id="data">(.*?)<', widget.page)
    return json.loads(text[1])


# Numbers


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """node(module, expression, values): its value, with M = the module and given = values."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("there is no node on this machine")
    folder = tmp_path_factory.mktemp("node")

    def run(module, expression, given):
        (folder / "run.mjs").write_text(
            f'import * as M from "{(LIVE / module).as_uri()}.mjs";\n'
            f"const given = {json.dumps(given)};\n"
            f"console.log(JSON.stringify({expression}));",
            encoding="utf8",
        )
        command = [program, folder / "run.mjs"]
        done = subprocess.run(command, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        return json.loads(done.stdout)

    return run


def assert_same(ours, theirs):
    expected = torch.as_tensor(ours).double()
    actual = torch.tensor(theirs, dtype=torch.double)
    torch.testing.assert_close(actual, expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("place", range(4))
def test_the_page_computes_attention_as_python_does(node, place):
    expression = "M.ask(M.readWords(given.sentence, given.known), given.place, given)"
    theirs = node("one_word", expression, data_of(his()) | {"place": place})
    q, k, v = X @ W_Q, X @ W_K, X @ W_V
    weights = (q.double() @ k.T.double() / math.sqrt(2)).softmax(dim=-1)[place]
    assert_same(weights, theirs["weights"])
    assert_same(weights @ v.double(), theirs["blend"])
    assert_same(q[place], theirs["query"])
    assert_same(k, theirs["keys"])
    assert_same(v, theirs["values"])


def test_any_vectors_and_matrices_and_their_texts(node, seed):
    words = ["ein", "Wort", "don't", "naïve", "Wort2"]
    x, matrices = torch.randn(5, 3), [torch.randn(3, n) for n in (2, 2, 4)]
    given = dict(zip(MATRICES, matrices))
    asks, gives = ["a", "b"], ["c", "d", "e", "f"]
    widget = one_word(words, x, **given, word="Wort", asks=asks, gives=gives)
    expression = (
        "(words => (result => [result.scores, result.weights, result.blend,"
        " M.meaning(result.blend, given.gives), M.wish(result.query, given.asks)])"
        "(M.ask(words, 1, given)))(M.readWords(given.sentence, given.known))"
    )
    theirs = node("one_word", expression, data_of(widget))
    doubles = {name: matrix.double() for name, matrix in given.items()}
    ours = widgets.ask(x.double(), 1, **doubles)
    for name, values in zip(("scores", "weights", "blend"), theirs):
        assert_same(ours[name], values)
    assert theirs[3] == widgets.meaning(ours["blend"], gives)
    assert theirs[4] == widgets.wish(ours["query"], asks)


def test_words_are_known_in_any_case_and_with_their_commas(node):
    expression = "M.readWords(given.text, given.known).map(({text, x, unknown}) => [text, x, !!unknown])"
    text = "  tom, FEEDS\this  (dog). unicorn! …"
    words = node("one_word", expression, data_of(his()) | {"text": text})
    assert [word for word, *_ in words] == [*WORDS, "unicorn", "…"]
    assert [x for _, x, _ in words] == [*X.tolist(), [0] * 4, [0] * 4]
    assert [unknown for *_, unknown in words] == [False] * 4 + [True] * 2


@pytest.mark.parametrize("value", [0, 4, 0.5, -1.25, -0.001, 0.055, 100, -7.999, 1e-9])
@pytest.mark.parametrize("trimmed", [False, True])
def test_numbers_are_written_alike(node, value, trimmed):
    theirs = node(
        "kit", "M.number(given.value, 2, given.trimmed)", locals_of(value, trimmed)
    )
    assert theirs == widgets.number(value, 2, trimmed)


def locals_of(value, trimmed):
    return {"value": value, "trimmed": trimmed}


def test_the_page_scales_and_softens_as_python_does(node, shown):
    data = data_of(shown["saturation"])
    expression = (
        "given.widths.map((width, i) => M.bothWeights(given.products[i], width)"
        ".map(({weights}) => weights))"
    )
    theirs = node("saturation", expression, data)
    products = widgets.random_products(8, 173)
    for width, weights in zip(data["widths"], theirs, strict=True):
        plain = products[width].softmax(dim=0)
        scaled = (products[width] / math.sqrt(width)).softmax(dim=0)
        assert_same(torch.stack([plain, scaled]), weights)


def test_the_draw_is_the_one_nearest_to_the_medians():
    def largest(seed):
        products = widgets.random_products(8, seed)
        both = [widgets.both_weights(products[width], width) for width in (4, 64, 1024)]
        return torch.stack([weights.max() for pair in both for weights in pair])

    tops = torch.stack([largest(seed) for seed in range(400)])
    distances = (tops - tops.median(dim=0).values).norm(dim=1)
    assert distances.argmin() == 173


@pytest.mark.parametrize("K", [1, 2, 3, 4])
def test_the_page_keeps_the_beginnings_that_python_keeps(node, shown, K):
    data = data_of(shown["beam_tree"])
    expression = (
        "(levels => [levels.map(level => level.map(({p, path}) => [p, path])),"
        " M.rowsOf(levels)])(M.levelsOf(given.table, given.K, given.steps))"
    )
    theirs, rows = node("beam_tree", expression, data | {"K": K})
    table = beam.table_of(next_of_table, begin=1, steps=4)
    ours = beam.levels_of(table, K, steps=4)
    assert [len(level) for level in theirs] == [len(level) for level in ours]
    for level, expected in zip(theirs, ours):
        assert [tuple(path) for _, path in level] == [path for _, path in expected]
        log_ps = torch.tensor([p for p, _ in expected], dtype=torch.double)
        assert_same(log_ps, [p for p, _ in level])
    named = {",".join(map(str, path)): row for path, row in beam.rows_of(ours).items()}
    assert rows == named


@pytest.mark.parametrize("p", [0.0, -0.0797, -2.617, -7.5, -7.7, -20.0])
def test_shares_are_written_alike(node, p):
    assert node("beam_tree", "M.percent(given.p)", {"p": p}) == beam.percent(p)


def test_a_beam_of_one_is_greedy_and_one_of_two_is_not():
    table = beam.table_of(next_of_table, begin=1, steps=3)
    assert beam.levels_of(table, 1, 3)[-1][0][1] == (3, 6, 8)
    assert beam.levels_of(table, 2, 3)[-1][0][1] == (3, 7, 9)


@pytest.mark.parametrize("position", [0, 1, 17, 1000])
def test_the_clocks_are_a_row_of_the_table(node, shown, position):
    data = data_of(shown["clocks"]) | {"position": position}
    row = node("clocks", "M.row(given.position, given.omega)", data)
    assert_same(sinusoids(position + 1, 8)[position], row)


@pytest.mark.parametrize("place, back", [(10, 0), (12, 2), (60, 10)])
def test_the_page_turns_hands_as_rotate_does(node, shown, place, back):
    data = data_of(shown["rotary"])
    expression = (
        "(turned => [M.score(...turned), M.apart(turned[0][0], turned[1][0])])"
        "([M.turned(given.query, given.place, given.omega),"
        " M.turned(given.key, given.place - given.back, given.omega)])"
    )
    given = data | {"place": place, "back": back}
    score, angle = node("rotary", expression, given)
    tips = [
        torch.tensor([[math.cos(a), math.sin(a)] for a in angles], dtype=torch.double)
        for angles in (clockwork.QUERY, clockwork.KEY)
    ]
    table = sinusoids(61, 8)
    q = rotate(tips[0].flatten(), table[place])
    k = rotate(tips[1].flatten(), table[place - back])
    assert score == pytest.approx((q @ k).item(), abs=1e-12)
    cosine = (q[:2] @ k[:2]).clamp(-1, 1)
    assert angle == pytest.approx(cosine.arccos().rad2deg().item(), abs=1e-5)
    ours = clockwork.turned(clockwork.QUERY, place, data["omega"])
    theirs = clockwork.turned(clockwork.KEY, place - back, data["omega"])
    assert score == pytest.approx(clockwork.score(ours, theirs), abs=1e-12)


@pytest.mark.parametrize("number", range(3))
def test_the_page_computes_the_network_as_python_does(node, shown, number):
    data = data_of(shown["kinks"]) | {"number": number}
    weights = "given.networks[given.number]"
    expression = f"given.xs.map(x => M.network(x, {weights}))"
    line = node("kinks", expression, data)
    network = list(networks().values())[number]
    expected = network(LINE).flatten().double()
    torch.testing.assert_close(torch.tensor(line).double(), expected, atol=1e-3, rtol=0)
    error = node("kinks", f"M.error(given.xs, given.ys, {weights})", data)
    ours = (network(LINE) - LINE.sin()).square().mean().item()
    assert error == pytest.approx(ours, rel=1e-2)


@pytest.mark.parametrize("degree", [0.1, 1, 10])
def test_the_page_cools_and_warms_as_python_does(node, shown, degree):
    data = data_of(shown["temperature"]) | {"degree": degree}
    theirs = node("temperature", "M.probabilities(given.logits, given.degree)", data)
    logits = torch.tensor([3.0, 1.0, 2.0]).double()
    assert_same((logits / degree).softmax(dim=0), theirs)


# What is refused


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: clocks(positions=(0, 25)), "0 to 20, tens to 100 or hundreds"),
        (lambda: clocks(positions=()), "0 to 20, tens to 100 or hundreds"),
        (lambda: clocks(d_model=7), "d_model must be even"),
        (lambda: rotary(pairs=((3, 5),)), "the key must be 0 to 10 words before"),
        (lambda: rotary(pairs=((5, 3),)), "a query's position must be 10 to 60"),
        (lambda: wave_and_lines(widths=(3,)), r"no network is given for widths \[3\]"),
        (
            lambda: kinks({1: FeedForward(1, 1)}, LINE, LINE, (1,)),
            "every number of W_1 must be 1",
        ),
        (lambda: chances(words=("der",)), "1 words for 3 logits"),
        (lambda: chances(shown=(4,)), "temperatures must be among"),
    ],
)
def test_pictures_refuse_what_they_cannot_show(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"word": "cat"}, "“cat” is not among the words"),
        ({"x": X[:3]}, "3 vectors for 4 words"),
        ({"W_V": W_V[:3]}, r"W_V is \(3, 3\), not \(4, 3\)"),
        ({"W_K": W_K[:, :1]}, r"W_K is \(4, 1\), not \(4, 2\)"),
        ({"asks": ("somebody",)}, r"W_Q is \(4, 2\), not \(4, 1\)"),
        ({"words": ["word"] * 13}, "at most 12 words, not 13"),
        ({"x": {"Tom": X[0]}}, "no vector is given for: feeds, his, dog"),
    ],
)
def test_one_word_refuses_what_does_not_fit(changed, said):
    with pytest.raises(ValueError, match=said):
        his(**changed)


@pytest.mark.parametrize("d_ks", [(3,), (4, 2048), ()])
def test_other_widths_are_refused(d_ks):
    with pytest.raises(ValueError, match="powers of two from 1 to 1024"):
        saturation(d_ks)


@pytest.mark.parametrize("K", [0, 5])
def test_other_beams_are_refused(K):
    with pytest.raises(ValueError, match="K must be from 1 to 4"):
        badete(K=K)


# What a notebook keeps


@all_widgets
def test_a_widget_is_light_and_has_words_for_its_picture(shown, name):
    data, metadata = shown[name]._repr_mimebundle_()
    assert set(data) == {"text/html", "image/png", "text/plain"}
    assert len(json.dumps(data)) <= HEAVIEST
    assert len(data["text/plain"]) > 100
    assert metadata["image/png"]["alt"] == data["text/plain"]
    assert html.escape(data["text/plain"]) in data["text/html"]


def test_the_words_have_the_numbers_of_the_picture(shown):
    assert "0.938 for Tom" in shown["one_word"].alt
    assert "0.94 Tom + 0.06 dog" in shown["one_word"].alt
    assert "at d_k = 64 0.99 without the scale, 0.33 with it" in shown["saturation"].alt


@all_widgets
def test_the_picture_is_one_of_few_colours(shown, name):
    from PIL import Image

    image = Image.open(io.BytesIO(shown[name].picture))
    assert image.mode == "P" and len(image.getcolors()) <= 16
    assert image.width == width_of(shown[name].picture)
    assert (255, 255, 255) in [rgb for _, rgb in image.convert("RGB").getcolors()]


@all_widgets
def test_a_widget_is_the_same_every_time(shown, name):
    assert MAKERS[name]() == shown[name]


@all_widgets
def test_the_frame_holds_the_page_and_may_only_run_its_script(shown, name):
    frame = shown[name]._repr_html_()
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1]) == shown[name].page
    assert re.search(r'sandbox="([^"]*)"', frame)[1] == "allow-scripts"
    assert "default-src 'none'" in shown[name].page
    assert "unsafe" not in shown[name].page


def notebook_of(widget):
    data, metadata = widget._repr_mimebundle_()
    output = nbformat.v4.new_output("display_data", data, metadata=metadata)
    cell = nbformat.v4.new_code_cell("widget", outputs=[output])
    return nbformat.v4.new_notebook(cells=[cell])


def as_on_github(element):
    """nbconvert's cleaning, which lets no picture pass, not even Markdown's, with what GitHub lets
    pass: pictures, those in the page too; what is not allowed goes without a trace."""
    import bleach

    return bleach.clean(
        element,
        tags={*bleach.ALLOWED_TAGS, "div", "img"},
        attributes={"img": ["src", "alt", "width"]},
        protocols={*bleach.ALLOWED_PROTOCOLS, "data"},
        strip=True,
    )


@all_widgets
@pytest.mark.parametrize("first", ["text/html", "image/png"])
def test_where_no_script_runs_the_picture_stays(shown, name, first):
    """nbconvert's page of cleaned HTML stands for GitHub: whichever form is taken, it is the picture."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(sanitize_html=True, filters={"clean_html": as_on_github})
    exporter.display_data_priority = [first, "text/plain"]
    page, _ = exporter.from_notebook_node(notebook_of(shown[name]))
    body = page[page.index("<body") :]
    source = f"data:image/png;base64,{base64.b64encode(shown[name].picture).decode()}"
    assert body.replace("\n", "").count(source) == 1
    assert "iframe" not in body and "Content-Security-Policy" not in body
    alternative = html.unescape(re.search(r'<img[^>]*alt="([^"]*)"', body, re.S)[1])
    assert first == "image/png" or alternative == shown[name].alt


@all_widgets
def test_nbconvert_keeps_page_and_frame_where_scripts_run(shown, name):
    from nbconvert import HTMLExporter

    page, _ = HTMLExporter().from_notebook_node(notebook_of(shown[name]))
    frames = re.findall(r'srcdoc="([^"]*)"', page)
    assert [html.unescape(frame) for frame in frames] == [shown[name].page]


# In a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("browser") / "profile")
    yield started
    started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """opened(text, width, scheme) opens an HTML text; afterwards nothing may have been complained
    of, and nothing loaded."""

    def show(text, width=1440, scheme="light"):
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1}
        browser.send("Emulation.setDeviceMetricsOverride", **metrics, mobile=False)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.send("Emulation.setEmulatedMedia", features=[feature])
        (tmp_path / "page.html").write_text(text, encoding="utf8")
        browser.complaints.clear()
        browser.addresses.clear()
        browser.open(tmp_path / "page.html")
        browser.run("new Promise(done => setTimeout(done, 50))")
        return browser

    yield show
    browser.run("1")
    assert browser.complaints == []
    schemes = {address.partition(":")[0] for address in browser.addresses}
    assert schemes <= {"file", "data", "about"}


def text_of(browser, selector):
    return browser.run(f"document.querySelector('{selector}').textContent")


def texts_of(browser, selector):
    return browser.run(
        f"[...document.querySelectorAll('{selector}')].map(e => e.textContent)"
    )


def type_sentence(browser, text):
    browser.run(
        f"{{const field = document.querySelector('input[type=text]');"
        f"field.value = {json.dumps(text)}; field.dispatchEvent(new Event('input'))}}"
    )


@needs_browser
@all_widgets
@both_widths
@everywhere
def test_a_page_fits_and_has_its_colours(opened, shown, name, width, scheme):
    browser = opened(shown[name].page, width, scheme)
    sizes = "[document.documentElement.scrollWidth, innerWidth]"
    assert browser.run(sizes) == [width, width]
    wide = "[...document.querySelectorAll('main *')].filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === 'auto').length"
    assert browser.run(wide) == 0
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 23, 24)"}[scheme]
    smallest = "Math.min(...[...document.querySelectorAll('main *')].map(e => parseFloat(getComputedStyle(e).fontSize)))"
    assert browser.run(smallest) >= 11


@needs_browser
@all_widgets
@everywhere
def test_text_stands_out_from_its_ground(opened, shown, name, scheme):
    browser = opened(shown[name].page, scheme=scheme)
    colours = browser.run(
        "['--paper', '--ink', '--grey', '--attention', '--pale'].map(name => {"
        "const probe = document.body.appendChild(document.createElement('b'));"
        "probe.style.color = `var(${name})`; return getComputedStyle(probe).color; })"
    )
    paper, *inks, pale = [luminance(colour) for colour in colours]
    for ink in inks:
        lighter, darker = max(ink, paper), min(ink, paper)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5
    assert (max(inks[0], pale) + 0.05) / (min(inks[0], pale) + 0.05) >= 7


def luminance(colour):
    """WCAG's relative luminance of rgb(...)."""
    parts = [int(number) / 255 for number in re.findall(r"\d+", colour)[:3]]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear))


@needs_browser
def test_keys_choose_another_word(opened, shown):
    browser = opened(shown["one_word"].page)
    assert "“his” asks for somebody" in text_of(browser, ".pill")
    browser.press("Tab")
    assert browser.run("document.activeElement.value") == "2"
    browser.press("ArrowRight")
    assert "“dog” asks for deed: its query is (0, 1)" in text_of(browser, ".pill")
    browser.press("ArrowRight", "ArrowRight")
    assert "“feeds”" in text_of(browser, ".pill")
    row = torch.softmax((X @ W_K) @ (X @ W_Q)[1] / math.sqrt(2), dim=0)
    expected = [f"{weight:.3f}" for weight in row.tolist()]
    assert texts_of(browser, ".weight > span:last-child") == expected


@needs_browser
def test_a_touch_on_a_row_chooses_its_word(opened, shown):
    browser = opened(shown["one_word"].page, 360)
    point = browser.run(
        "(box => [box.x + 20, box.y + 8])(document.querySelector('tbody tr').getBoundingClientRect())"
    )
    for kind in ("mousePressed", "mouseReleased"):
        place = {"x": point[0], "y": point[1], "button": "left", "clickCount": 1}
        browser.send("Input.dispatchMouseEvent", type=kind, **place)
    assert "“Tom” asks for deed: its query is (0, 2)" in text_of(browser, ".pill")
    assert browser.run("document.querySelector(':checked').value") == "0"


@needs_browser
def test_a_sentence_is_typed(opened, shown):
    browser = opened(shown["one_word"].page, 360)
    type_sentence(browser, "his dog feeds Tom")
    assert texts_of(browser, "tbody th") == ["his", "dog", "feeds", "Tom"]
    assert "“his” asks for somebody" in text_of(browser, ".pill")
    assert "94 % from Tom" in text_of(browser, ".result")
    type_sentence(browser, "a dragon feeds <b>Tom</b>")
    assert "“a”, “dragon”" in text_of(browser, ".note")
    assert "all zeros" in text_of(browser, ".note")
    browser.run("document.querySelectorAll('[type=radio]')[1].click()")
    assert "“dragon” asks for nothing: its query is (0, 0)" in text_of(browser, ".pill")
    assert "the same from every word" in text_of(browser, ".result")
    type_sentence(browser, "   ")
    assert text_of(browser, ".note") == "Type a word."
    type_sentence(browser, "dog " * 40)
    assert len(texts_of(browser, "tbody th")) == 12
    assert browser.run("document.documentElement.scrollWidth") == 360


@needs_browser
def test_more_words_are_known_where_they_have_vectors(opened):
    vectors = dict(zip(WORDS, X)) | {"Anna": X[0], "cat": X[3]}
    browser = opened(his(vectors).page)
    type_sentence(browser, "Anna feeds his cat")
    assert "Known" not in text_of(browser, ".note")
    assert "94 % from Anna and 6 % from cat" in text_of(browser, ".result")


@needs_browser
def test_keys_move_the_width(opened, shown):
    browser = opened(shown["saturation"].page)
    assert text_of(browser, "output") == "64"
    assert "99 % without the scale and 33 % with it" in text_of(browser, ".result")
    browser.press("Tab", "ArrowRight")
    assert text_of(browser, "output") == "128"
    browser.press("Home")
    assert text_of(browser, "output") == "1"
    slider = "document.querySelector('[type=range]').getAttribute('aria-valuetext')"
    assert browser.run(slider) == "width 1"
    browser.press("End")
    assert text_of(browser, "output") == "1,024"
    assert texts_of(browser, ".plot b") == [
        *[""] * 4,
        "1.00",
        *[""] * 7,
        "0.36",
        *[""] * 3,
    ]
    browser.run("document.querySelector('.marks button').click()")
    assert text_of(browser, "output") == "4"


@needs_browser
def test_keys_move_the_beam(opened, shown):
    browser = opened(shown["beam_tree"].page, 360)
    assert "With K = 2, “B ade te eine” leads after 4 steps" in text_of(
        browser, ".result"
    )
    browser.press("Tab", "Home")
    assert text_of(browser, "output") == "1"
    assert "“B ad et eine” leads" in text_of(browser, ".result")
    assert "greedy search" in text_of(browser, ".result")
    kept = texts_of(browser, ".node.kept b")
    assert kept == ["start", "B", "ad", "et", "eine"]
    browser.press("End")
    assert text_of(browser, "output") == "4"
    assert browser.run("document.documentElement.scrollWidth") == 360


@needs_browser
def test_a_slider_turns_the_clocks(opened, shown):
    browser = opened(shown["clocks"].page, 360)
    assert text_of(browser, "output") == "10"
    sines, cosines = sinusoids(12, 8)[11].view(-1, 2).T.tolist()
    browser.press("Tab", "ArrowRight")
    small = texts_of(browser, "figure small")
    assert small[1::3] == [f"sin {value:.2f}".replace("-", "−") for value in sines]
    assert small[2::3] == [f"cos {value:.2f}".replace("-", "−") for value in cosines]
    tip = "document.querySelector('.now').getAttribute('x2')"
    assert float(browser.run(tip)) == pytest.approx(sines[0])
    browser.run("[...document.querySelectorAll('.marks button')].at(-1).click()")
    assert text_of(browser, "output") == "1,000"


@needs_browser
def test_moving_both_words_leaves_the_score(opened, shown):
    browser = opened(shown["rotary"].page)
    before, angles = text_of(browser, ".result"), texts_of(browser, "figure small")
    browser.press("Tab", "ArrowRight", "ArrowRight")
    after = text_of(browser, ".result")
    assert after.startswith("Query at 14, key at 12")
    assert after.partition(":")[2] == before.partition(":")[2]
    assert texts_of(browser, "figure small") == angles
    browser.press("Tab", "ArrowRight")
    assert text_of(browser, ".result").startswith("Query at 14, key at 11")
    assert texts_of(browser, "figure small") != angles


@needs_browser
def test_a_slider_bends_the_line(opened, shown):
    browser = opened(shown["kinks"].page)
    assert text_of(browser, ".result").startswith("8 units: the mean squared error")
    assert browser.run("document.querySelectorAll('.dot').length") == 8
    browser.press("Tab", "Home")
    assert text_of(browser, ".result").startswith("1 unit: ")


@needs_browser
def test_a_slider_warms_the_words(opened, shown):
    browser = opened(shown["temperature"].page, 360)
    assert "7.4 times as likely as “seinen”" in text_of(browser, ".result")
    browser.run("document.querySelectorAll('.marks button')[1].click()")
    browser.press("Tab", "End")
    assert text_of(browser, "output") == "10"
    assert "1.2 times as likely" in text_of(browser, ".result")


@needs_browser
@all_widgets
def test_everything_has_a_name_for_those_who_cannot_see(opened, shown, name):
    browser = opened(shown[name].page)
    browser.send("Accessibility.enable")
    nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    browser.send("Accessibility.disable")
    roles = ("radio", "textbox", "slider", "button", "image", "main", "table")
    there = [
        (node["role"]["value"], node.get("name", {}).get("value"))
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in roles
    ]
    assert len(there) > 3
    assert [role for role, called in there if not called and role != "table"] == []


@needs_browser
@all_widgets
@both_widths
def test_in_a_notebook_the_frame_takes_the_pictures_place(opened, shown, name, width):
    browser = opened(f"<!doctype html>{shown[name]._repr_html_()}", width)
    browser.run("new Promise(done => setTimeout(done, 300))")
    assert browser.run("document.querySelector('img')") is None
    frame = "document.querySelector('iframe')"
    with browser.frame("iframe"):
        inside = browser.run("document.documentElement.getBoundingClientRect().height")
        assert browser.run("document.documentElement.scrollHeight <= innerHeight")
    outside = browser.run(f"{frame}.getBoundingClientRect().height")
    assert outside == math.ceil(inside) < 700


@needs_browser
@all_widgets
@pytest.mark.parametrize(
    "mark, dark",
    [
        ('<body data-jp-theme-light="false">', True),
        ('<body data-jp-theme-light="true">', False),
        ('<html data-theme="dark">', True),
        ('<body data-vscode-theme-kind="vscode-light">', False),
    ],
)
def test_a_page_takes_the_colours_of_the_page_around(opened, shown, name, mark, dark):
    scheme = "light" if dark else "dark"
    browser = opened(f"<!doctype html>{mark}{shown[name]._repr_html_()}", 700, scheme)
    browser.run("new Promise(done => setTimeout(done, 300))")
    with browser.frame("iframe"):
        paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(22, 23, 24)" if dark else "rgb(255, 255, 255)")


# The page that holds a model


SENTENCE = "The old cat that saw the dog lost its ball."
ITS = Turn("its", "dog", layer=0, head=2)


@pytest.fixture(scope="module")
def model(one_thread):
    return load()


@pytest.fixture(scope="module")
def turned_page(model):
    return view(*model, SENTENCE, ITS)


def test_the_pictures_words_are_those_of_the_model(model, turned_page):
    assert translate(*model, [SENTENCE])[0] in turned_page.alt
    assert "verlor ihren Ball." in turned_page.alt
    assert turned_page.alt.endswith("verlor seinen Ball.”")
    (maps,) = attention_maps(*model, [(SENTENCE, "Die Katze verlor ihren Ball.")])
    its, cat = maps.source.index("its"), maps.source.index("cat")
    assert f"with weight {maps.encoder[0, 2, its, cat]:.2f}" in turned_page.alt


def test_a_word_in_pieces_is_turned_as_a_whole(model):
    """All its pieces look at all pieces of the other, as in the page."""
    sentence = "The extraordinary cat saw the hippopotamus."
    turn = Turn("extraordinary", "hippopotamus", 0, 0)
    start = turn.start(model[1], sentence)
    name = "encoder.0.self_attention.heads"
    with cache(model[0], name) as before:
        translate(*model, [sentence])
    with turned_rows(*model, sentence, start), cache(model[0], name) as after:
        translate(*model, [sentence])
    pieces = torch.tensor(model[1].word_of_each_piece(sentence))
    assert (pieces == 1).sum() > 1 and (pieces == 5).sum() > 1
    changed = (before[name][0, 0] != after[name][0, 0]).any(dim=-1)
    assert changed[: len(pieces)].tolist() == (pieces == 1).tolist()


@pytest.mark.filterwarnings("error")
def test_a_picture_takes_any_words(model):
    words = ["$x_1$", "日本", "a$b", "^_\\{"]
    assert his(words=words, word="$x_1$").picture
    assert view(*model, " ".join(words)).picture


@pytest.mark.parametrize("words", [("its", "mouse"), ("Its", "dog")])
def test_a_turn_names_words_of_the_sentence(model, words):
    with pytest.raises(ValueError, match="is not a word of"):
        view(*model, SENTENCE, Turn(*words, 0, 2))


def test_no_page_turns_a_head_that_it_cannot_compute(model):
    config = TransformerConfig(vocab_size=259, d_model=8, h=2, N=1, d_ff=16)
    parts = Parts(norm=partial(LayerNorm, eps=1e-3))
    tokenizer = Tokenizer.train(["a"], 259)
    with pytest.raises(ValueError, match="no page can turn a head"):
        view(Transformer(config, parts), tokenizer, SENTENCE, ITS)


def test_a_committed_notebook_keeps_the_picture_without_the_weights(turned_page):
    book = pairs.tidy(notebook_of(turned_page), "19_visualization")
    (output,) = book.cells[0].outputs
    assert set(output.data) == {"image/png", "text/plain"}
    assert output.metadata["image/png"]["alt"] == turned_page.alt
    assert output.metadata["live"] == turned_page.fragment
    assert len(nbformat.writes(book)) < HEAVIEST


def test_a_committed_notebook_keeps_a_widget_whole(shown):
    for widget in shown.values():
        book = pairs.tidy(notebook_of(widget), "04_attention")
        assert set(book.cells[0].outputs[0].data) == set(widget._repr_mimebundle_()[0])


@needs_browser
def test_the_page_starts_turned(opened, turned_page):
    browser = opened(turned_page.page)
    assert_turned(browser)
    browser.run("document.getElementById('undo').click()")
    assert "verlor ihren Ball." in text_of(browser, "[data-is=output]")


def assert_turned(browser):
    assert "verlor seinen Ball." in text_of(browser, "[data-is=output]")
    assert text_of(browser, "[data-is=output] mark") == "seinen"
    assert "encoder 1.3: its on dog 100 %" in text_of(browser, "#edits")
    assert text_of(browser, "[data-is=likely] .written .word") == "seinen"
    chosen = "['kind', 'layer', 'head'].map(id => document.getElementById(id).value)"
    assert browser.run(chosen) == ["encoder", "0", "2"]
    assert text_of(browser, "[data-is=reading]") == "“its” looks at: dog 100 %"


@needs_browser
def test_the_address_asks_for_the_same_start(browser, model, turned_page, tmp_path):
    """The web site keeps the weights in one file; chapters lead to it by the address."""
    view(*model, ["A cat sleeps.", SENTENCE]).save(tmp_path / "live.html")
    browser.complaints.clear()
    browser.open(f"{(tmp_path / 'live.html').as_uri()}#{turned_page.fragment}")
    browser.run("new Promise(done => setTimeout(done, 100))")
    assert_turned(browser)
    listed = texts_of(browser, "[data-is=pick] option")
    assert listed == [SENTENCE, "A cat sleeps.", "your own"]
    assert browser.complaints == []


@needs_browser
@both_widths
@everywhere
def test_the_page_of_a_model_fits(opened, turned_page, width, scheme):
    browser = opened(turned_page.page, width, scheme)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
