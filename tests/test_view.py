"""The script of the interactive view: its arithmetic in node, and what it does to the page in a headless Chromium."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from browser import CHROMIUM, Browser

import transformer
from transformer.maps import AttentionMaps
from transformer.pages import view_page


def maps_of(source, target, N=2, h=3):
    """`AttentionMaps` with weights at random, causal in the decoder."""
    torch.manual_seed(0)
    S, T = len(source), len(target)
    return AttentionMaps(source, target, torch.randn(N, h, S, S).softmax(dim=-1),
                         torch.randn(N, h, T, T).masked_fill(torch.ones(T, T).triu(1) > 0, -1e9).softmax(dim=-1),
                         torch.randn(N, h, T, S).softmax(dim=-1))


@pytest.fixture(scope="module")
def maps():
    """Two sentences."""
    return [maps_of(["The", "cat", "slept", ".", "</s>"], ["Die", "Katze", "schlief", ".", "</s>"]),
            maps_of(["It", "rained", "</s>"], ["Es", "hat", "geregnet", "</s>"])]


def data_of(page):
    """The words and weights in a page."""
    return json.loads(re.search(r'<script type="application/json" id="pairs">(.*?)</script>', page, re.S)[1])


# The script's arithmetic, in node

@pytest.fixture(scope="module")
def evaluate():
    """A function that evaluates an expression after the script was read."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on this machine")
    script = (Path(transformer.__file__).parent / "view.js").read_text(encoding="utf8")

    def run(expression):
        code = f"{script}\nconsole.log(JSON.stringify({expression}))"
        done = subprocess.run([node, "-"], input=code, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_one_head_and_the_mean_of_all(evaluate, maps):
    pair = json.dumps(data_of(view_page(maps))[0])
    for kind in ("encoder", "decoder", "cross"):
        expected = getattr(maps[0], kind)
        torch.testing.assert_close(torch.tensor(evaluate(f"weightsOf({pair}, '{kind}', 1, 2)")) / 1000,
                                   expected[1, 2], atol=0.000501, rtol=0)
        torch.testing.assert_close(torch.tensor(evaluate(f"weightsOf({pair}, '{kind}', 1, 'mean')")) / 1000,
                                   expected[1].mean(dim=0), atol=0.000501, rtol=0)


def test_labels_of_rows_and_columns_are_those_of_the_maps(evaluate, maps):
    pair = json.dumps(data_of(view_page(maps))[0])
    m = maps[0]
    for kind, rows, columns in (("encoder", m.source, m.source), ("decoder", m.target, m.read),
                                ("cross", m.target, m.source)):
        assert evaluate(f"[KINDS.{kind}.rows({pair}), KINDS.{kind}.columns({pair})]") == [rows, columns]


def test_a_step_shows_only_what_was_read(evaluate):
    """Step 2 of a decoder has read the begin mark and word 1; word 2 too where its first piece was read."""
    weights = "[[1000, 0, 0, 0], [600, 400, 0, 0], [0, 0, 1000, 0], [0, 0, 0, 1000]]"
    there = f"[0, 1, 2, 3].map(c => columnIsThere('decoder', {weights}, 2, c))"
    assert evaluate(there) == [True, True, False, False]
    assert evaluate(there.replace("[600, 400, 0, 0]", "[500, 300, 200, 0]")) == [True, True, True, False]
    assert evaluate(there.replace("'decoder'", "'cross'")) == [True] * 4
    pair = "{source: ['a', 'b', 'c'], target: ['x', 'y']}"
    assert evaluate(f"['encoder', 'decoder', 'cross'].map(kind => rowsAfter({pair}, kind, 1))") == [3, 1, 1]


# The page in a browser

@pytest.fixture(scope="module")
def page(maps, tmp_path_factory):
    """The page of two sentences, opened in a browser."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    folder = tmp_path_factory.mktemp("browser")
    (folder / "view.html").write_text(view_page(maps), encoding="utf8")
    browser = Browser(folder / "profile")
    browser.open(folder / "view.html")
    yield browser
    browser.close()


def percents(row):
    return [f"{round(w)} %" if w >= 1 else "" for w in (row * 100).tolist()]


def close(shown, expected):
    """Two columns of percents that differ by rounding at most."""
    values = [[int(text[:-2] or 0) if text else 0 for text in column] for column in (shown, expected)]
    return len(shown) == len(expected) and all(abs(a - b) <= 1 for a, b in zip(*values))


def test_keys_move_through_the_words(page, maps):
    m = maps[0]
    page.send("Page.reload")
    while page.run("document.readyState") != "complete":
        pass
    assert page.words() == m.target and page.read() == m.source and set(page.numbers()) == {""}
    while not page.run("document.activeElement.dataset.row"):
        page.press("Tab")
    page.press("ArrowDown", "ArrowDown", "ArrowUp")
    assert page.run("document.activeElement.textContent") == m.target[1]
    assert page.run("document.querySelector('[aria-pressed=true]').getAttribute('aria-label')") == "Katze, word 2 of 5"
    assert close(page.numbers(), percents(m.cross[-1].mean(dim=0)[1]))
    assert page.run("reading.textContent").startswith("“Katze” looks at: ")
    page.press("End")
    assert page.run("document.activeElement.textContent") == "</s>"
    page.press("Escape")
    assert set(page.numbers()) == {""} and page.run("document.querySelectorAll('[aria-pressed=true]').length") == 0


def test_every_layer_and_head_shows_its_own_weights(page, maps):
    page.select("sentence", "0")
    for kind in ("encoder", "decoder", "cross"):
        page.select("kind", kind)
        for n in range(2):
            page.select("layer", str(n))
            for head in (0, 2, "mean"):
                page.select("head", str(head))
                weights = getattr(maps[0], kind)[n]
                row = (weights.mean(dim=0) if head == "mean" else weights[head])[3]
                page.run("rows.querySelectorAll('button')[3].focus()")
                assert close(page.numbers(), percents(row)), (kind, n, head)
                widths = page.run("[...lines.children].map(p => Number(p.getAttribute('stroke-width')))")
                assert widths == pytest.approx([14 * w for w in row.tolist() if w >= 0.01], abs=0.02)
        assert page.run("steps.hidden") == (kind == "encoder")


def test_decoding_step_by_step(page, maps):
    page.select("sentence", "0")
    page.select("kind", "decoder")
    page.select("layer", "1")
    page.select("head", "1")
    click = "document.getElementById('{}').click()".format
    m = maps[0]
    for t in (4, 3, 2, 1):
        page.run(click("previous"))
        assert page.run("step.textContent") == f"decoding step {t} of 5"
        assert page.words() == m.target[:t] and page.read() == m.read[:t]
        assert page.run("written.textContent") == " ".join(m.target[:t])
        assert close(page.numbers(), percents(m.decoder[1, 1, t - 1]))
    assert page.run("previous.disabled") and not page.run("next.disabled")
    page.press("Tab")
    page.run(click("next"))
    assert page.words() == m.target[:2]
    state = "[step.textContent, play.textContent]"
    assert page.run(f"play.click(), {state}") == ["decoding step 3 of 5", "Pause"]
    page.run("new Promise(done => setInterval(() => play.textContent === 'Play' && done(), 100))")
    assert page.run(state) == ["decoding step 5 of 5", "Play"] and page.words() == m.target
    assert page.run(f"play.click(), {state}") == ["decoding step 1 of 5", "Pause"]      # from the end: from the start
    assert page.run(f"play.click(), {state}")[1] == "Play"
    page.select("kind", "cross")
    assert page.words() == m.target and page.read() == m.source


def test_nothing_was_loaded_and_nothing_complained(page):
    """The last one: all that was done to the page before has left no error and no address but its own."""
    page.run("1")
    assert page.complaints == []
    assert {re.sub(r":.*", "", address, flags=re.S) for address in page.addresses} <= {"file", "data"}
    assert page.run("fetch('data:,x').then(() => 'loaded', () => 'refused')") == "refused"
