"""The web site: built once, warnings being errors; then its links, its words for pictures, its pages in Chromium."""

import functools
import html.parser
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from urllib.parse import unquote, urlsplit

import nbformat
import pairs
import pytest
from browser import CHROMIUM, Browser
from filelock import FileLock

for module in ("myst_nb", "sphinx_book_theme", "math_core", "ziamath"):
    pytest.importorskip(module, reason="the web site needs the extra [site]")
sys.path.insert(0, str(pairs.ROOT / "tools" / "site"))

import book  # noqa: E402

pytestmark = pytest.mark.system

ROOT = pairs.ROOT
NOTEBOOKS = pairs.notebooks()
VOID = {
    "area",
    "base",
    "br",
    "col",
    "embed",
    "hr",
    "img",
    "input",
    "link",
    "meta",
    "source",
    "track",
    "wbr",
}


@pytest.fixture(scope="session")
def site(tmp_path_factory, worker_id):
    """The folder of the site's pages; test processes side by side build it once, together."""
    alone = worker_id == "master"
    folder = (
        tmp_path_factory.mktemp("site")
        if alone
        else tmp_path_factory.getbasetemp().parent / "site"
    )
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock"):
        if not (folder / "done").exists():
            command = [sys.executable, "tools/site/book.py", str(folder)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            (folder / "done").write_text(
                f"{done.returncode}\n{done.stderr}", encoding="utf8"
            )
    assert (folder / "done").read_text(encoding="utf8") == "0\n"
    return folder / "html"


class Page(html.parser.HTMLParser):
    """What tests ask of a page: ids; (tag, address) of what it loads and leads to; pictures; text outside code."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.loads, self.links, self.pictures, self.text, self.inside = (
            set(),
            [],
            [],
            [],
            "",
            [],
        )
        self.feed(path.read_text(encoding="utf8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.update(filter(None, [given.get("id")]))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe", "source") and given.get("src"):
            self.loads.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon"):
            self.loads.append(given["href"])
        if tag == "img" and "_static/" not in given.get(
            "src", ""
        ):  # there lie the theme's own
            self.pictures.append((given.get("src", ""), given.get("alt", "")))
        if tag not in VOID:
            self.inside.append(tag)

    def handle_endtag(self, tag):
        while tag in self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, text):
        if not {"script", "style", "code", "pre", "annotation"} & set(self.inside):
            self.text += text


@functools.cache
def page(path):
    return Page(path)


def pages(site):
    """{path below the site: `Page`} of all pages."""
    return {
        path.relative_to(site).as_posix(): page(path)
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }


def notebooks(site):
    """The notebooks that the site was built from."""
    found = sorted((site.parent / "source" / "notebooks").glob("*.ipynb"))
    assert [notebook.name for notebook in found] == [
        notebook.name for notebook in NOTEBOOKS
    ]
    return found


def test_every_notebook_is_a_page_and_is_downloaded_as_it_is(site):
    for notebook in notebooks(site):
        found = pages(site)[f"notebooks/{notebook.stem}.html"]
        source = f"../_sources/notebooks/{notebook.name}"
        assert source in found.links
        assert (
            site / "notebooks" / source
        ).resolve().read_bytes() == notebook.read_bytes()
        colab = book.stamp.address(ROOT).replace(
            "https://github.com", "https://colab.research.google.com/github"
        )
        assert f"{colab}/blob/main/notebooks/{notebook.name}" in found.links
        assert (
            sum("colab" in link for link in found.links) == 1
        )  # the badge is the button at the top


def test_every_link_inside_leads_somewhere(site):
    broken, count = [], 0
    for name, found in pages(site).items():
        for link in {*found.links, *found.loads}:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            path = (
                (site / name).parent / unquote(parts.path)
                if parts.path
                else site / name
            )
            there = path.is_file() and (
                not parts.fragment
                or path.suffix != ".html"
                or unquote(parts.fragment) in page(path.resolve()).ids
            )
            broken += [] if there else [(name, link)]
            count += 1
    assert not broken and count > 1000


def test_links_into_the_repository_name_files_that_are_there(site):
    address = f"{book.stamp.address(ROOT)}/blob/main/"
    named = {
        link.removeprefix(address).partition("#")[0]
        for found in pages(site).values()
        for link in found.links
        if link.startswith(address)
    }
    assert named and all((ROOT / name).exists() for name in named), named


def test_nothing_is_loaded_from_elsewhere(site):
    for name, found in pages(site).items():
        assert not [
            link for link in found.loads if re.match(r"(?!data:)[a-z]+:|//", link)
        ], name
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf8")
        assert not re.search(
            r"url\(['\"]?(?!data:)(?:[a-z]+:|//)|@import\s+['\"]http", text
        ), path


def test_every_picture_has_words(site):
    silent = {
        name
        for name, found in pages(site).items()
        for _, alt in found.pictures
        if len(alt) < 25 or "Figure size" in alt or ".png" in alt
    }
    assert not silent, "execute these notebooks again: make notebooks"
    for notebook in notebooks(site):
        cells = nbformat.read(notebook, as_version=4).cells
        drawn = sum(
            "image/png" in output.get("data", {})
            for cell in cells
            for output in cell.get("outputs", [])
        )
        # the picture that opens the page with the model
        drawn += sum(
            cell.cell_type == "markdown" and "live.png" in cell.source for cell in cells
        )
        assert len(pages(site)[f"notebooks/{notebook.stem}.html"].pictures) == drawn


def test_formulae_are_mathml(site):
    for name, found in pages(site).items():
        text = (site / name).read_text(encoding="utf8")
        assert "<merror" not in text and not re.search(
            r"\\(?:frac|sqrt|mathrm|cdot)\b", found.text
        ), name
    assert (site / "notebooks" / "04_attention.html").read_text(encoding="utf8").count(
        "<math"
    ) > 20
    assert (site / "_static" / "math.woff").stat().st_size > 10_000


def test_readers_questions_lead_to_their_cells(site):
    texts = json.loads(
        (ROOT / "tools" / "site" / "questions.json").read_text(encoding="utf8")
    )
    expected = {}
    for notebook in notebooks(site):
        for cell in nbformat.read(notebook, as_version=4).cells:
            for number in filter(
                None, map(book.QUESTION.fullmatch, cell.metadata.get("tags", []))
            ):
                expected[f"notebooks/{notebook.stem}.html#{number[0]}"] = texts[
                    number[1]
                ]
    found = {
        link for link in pages(site)["questions.html"].links if "#question" in link
    }
    assert found == set(expected) and len(found) >= 15
    text = re.sub(r"\s+", " ", pages(site)["questions.html"].text)
    assert all(question in text for question in expected.values())


def test_evidence_of_hardware_shows_every_file(site):
    text = pages(site)["notebooks/evidence/11_hardware.html"].text
    assert all(path.stem in text for path in (ROOT / "data" / "runs").glob("*.json"))


def test_results_are_a_page(site):
    found = pages(site)["results.html"]
    assert "91.0%" in found.text
    assert any("evidence/14_training.html" in link for link in found.links)


def test_every_documented_name_is_on_its_page(site):
    import importlib
    import inspect

    for name in book.modules():
        module = importlib.import_module(f"transformer.{name}")
        public = {
            f"{module.__name__}.{key}"
            for key, thing in vars(module).items()
            if not key.startswith("_")
            and (inspect.isclass(thing) or inspect.isfunction(thing))
            and thing.__module__ == module.__name__
        }
        assert public <= pages(site)[f"{book.page_of_module(name)}.html"].ids | {""}, (
            name
        )


def test_evidence_is_listed_and_links_from_its_folder(monkeypatch, tmp_path):
    page = tmp_path / "notebooks" / "evidence" / "04_attention.ipynb"
    page.parent.mkdir(parents=True)
    title = nbformat.v4.new_markdown_cell("# Evidence for 04\n\nIt is measured.")
    nbformat.write(nbformat.v4.new_notebook(cells=[title]), page)
    monkeypatch.setattr(pairs, "evidence", lambda root: [page])
    name, rows, inside = book.contents()[-1]
    assert name == "Evidence" and inside == ["notebooks/evidence/04_attention"]
    assert rows == ["- [Evidence for 04](notebooks/evidence/04_attention.ipynb)"]
    links = "[results](../../RESULTS.md), [data](../../data/runs/bench.json)"
    assert book.relink(links, "notebooks/evidence", "URL") == (
        "[results](../../results.md), [data](URL/blob/main/data/runs/bench.json)"
    )


# The pages in a browser


@pytest.fixture(scope="module")
def browser(site, tmp_path_factory):
    """A Chromium, and a server on this machine that it may ask: (browser, address)."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=site)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder = tmp_path_factory.mktemp("browser")
    found = Browser(folder)
    yield found, f"http://127.0.0.1:{server.server_port}"
    found.close()
    server.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def screen(browser, width, scheme="light"):
    browser.send(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=width < 500,
    )
    browser.send(
        "Emulation.setEmulatedMedia",
        features=[{"name": "prefers-color-scheme", "value": scheme}],
    )


def errors(browser):
    """What a page complained of since the last call; what it merely logs is none of it."""
    found = [
        complaint
        for complaint in browser.complaints
        if complaint.get("type") not in ("log", "info", "debug")
        and complaint.get("entry", {}).get("level") not in ("info", "verbose")
    ]
    browser.complaints.clear()
    return found


def test_every_page_on_a_phone_and_a_desk(site, browser):
    browser, address = browser
    browser.addresses.clear()
    wide, complaints = [], []
    for name in pages(site):
        screen(browser, 390)
        browser.open(f"{address}/{name}")
        for width in (390, 1280):
            screen(browser, width)
            needed = browser.run(
                "document.documentElement.scrollWidth"
            )  # a phone's innerWidth grows with it
            wide += (
                [(name, width, needed)] if needed > width else []
            )  # one would have to scroll sideways
        complaints += [(name, error) for error in errors(browser)]
    assert (wide, complaints) == ([], [])
    assert {urlsplit(link).netloc for link in browser.addresses} <= {
        urlsplit(address).netloc,
        "",
    }


@pytest.mark.parametrize("name", ["live.html", "notebooks/19_visualization.html"])
def test_the_model_works_on_its_pages(site, browser, name):
    browser, address = browser
    for width in (390, 1280):
        screen(browser, width)
        browser.open(f"{address}/{name}")
        # in a chapter the page is loaded when it is asked for
        loads = (
            "performance.getEntriesByName(document.querySelector('iframe.live').src)"
        )
        if browser.run("document.querySelector('details.live') !== null"):
            assert browser.run(f"{loads}.length") == 0
            browser.run("document.querySelector('details.live summary').click()")
        with browser.frame("iframe"):
            while browser.run("document.querySelector('.rows') === null"):
                pass
            target = browser.words()
            assert len(target) > 5
            # the chapter's page begins with a look that was turned by hand
            turned = set() if name == "live.html" else {"100 %"}
            assert set(browser.numbers()) == {"", *turned}
            browser.run("document.querySelector('[data-row=\"1\"]').focus()")
            assert any(number.endswith("%") for number in browser.numbers())
            browser.select("kind", "encoder")
            assert browser.words() == browser.read()
            note = browser.run("document.querySelector('.note').textContent")
            if name == "live.html":
                assert note.endswith("✓ as in the corpus ")
            else:  # the chapter's own sentence, translated on the page without the turn
                assert note.startswith(
                    "before: Der Hund bei der Katze verlor seinen Ball."
                )
        assert errors(browser) == []


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_front_page_loads_the_model_by_itself(site, browser, width, scheme):
    browser, address = browser
    screen(browser, width, scheme)
    browser.open(f"{address}/index.html")
    while browser.run("document.querySelector('div.live iframe') === null"):
        pass
    with browser.frame("div.live iframe"):
        while browser.run("document.querySelector('.rows') === null"):
            pass
        assert len(browser.words()) > 5
        colour = browser.run("getComputedStyle(document.body).color")
        assert (colour != "rgb(0, 0, 0)") == (scheme == "dark")
    assert browser.run("document.querySelector('div.live p')") is None
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert errors(browser) == []


def test_the_bot_answers_on_its_page(site, browser):
    browser, address = browser
    browser.open(f"{address}/bot.html")
    with browser.frame("iframe"):
        while browser.run("document.querySelector('#examples button') === null"):
            pass
        browser.run(
            "document.querySelector('#examples button').click(), text.value = 'cat', say.click()"
        )
        assert browser.run("document.querySelectorAll('#log .bot .text').length") == 2
    assert errors(browser) == []


# The tools


def test_a_chapters_page_with_weights_is_loaded_on_a_click():
    data = {"image/png": "cGljdHVyZQ==\n", "text/plain": 'a "picture"'}
    known = {"image/png": {"alt": 'a "picture"'}, "live": "%7B%22asked%22%7D"}
    output = nbformat.v4.new_output("display_data", data, metadata=known)
    cell = nbformat.v4.new_code_cell("view()", outputs=[output])
    cells = nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))
    written = book.notebook_for_site(cells, "19_visualization", "notebooks", "")
    (output,) = nbformat.reads(written, as_version=4).cells[0].outputs
    assert set(output.data) == {"text/html"}
    text = output.data["text/html"]
    assert text.startswith("<details") and " src=" not in text.split("<iframe")[1]
    assert 'data-src="../_static/live.html#%7B%22asked%22%7D"' in text
    assert '<img src="data:image/png;base64,cGljdHVyZQ==" alt="a &quot;picture' in text


def test_docstrings_are_taken_literally():
    from docutils import nodes
    from docutils.core import publish_doctree
    from docutils.parsers.rst import roles

    lines = [
        "a * b | c_ `x`s",
        "",
        "see `read_corpus` and `a < b`; *args, (B, T, d_model).",
    ]
    roles.register_generic_role("py:obj", nodes.literal)
    tree = publish_doctree(
        "\n".join(book.rst(lines)),
        settings_overrides={"report_level": 2, "halt_level": 2},
    )
    assert [
        node.astext() for node in tree.children if isinstance(node, nodes.paragraph)
    ] == ["a * b | c_ xs", "see read_corpus and a < b; *args, (B, T, d_model)."]


def test_links_of_the_repository(root):
    url = "https://github.com/x/y"
    text = book.relink(
        "[a](04_attention.ipynb#b) [r](../README.md) [f](../data/README.md) [h](http://x) `[c](d)`",
        "notebooks",
        url,
    )
    assert text == (
        "[a](04_attention.ipynb#b) [r](../index.md) [f](https://github.com/x/y/blob/main/data/README.md) "
        "[h](http://x) `[c](d)`"
    )
    assert book.relink("![p](data/live.png) [l](LICENSE)", "", url) == (
        "![p](data/live.png) [l](https://github.com/x/y/blob/main/LICENSE)"
    )


def test_routes_lead_through_their_notebooks(site):
    """Each stop of a route links to the next one; the pages of routes have all of them."""
    for name, stops in book.routes().items():
        names = [notebook.stem for notebook, _ in stops]
        links = pages(site)[f"{book.page_of(name)}.html"].links
        assert set(names) <= {link.split("/")[-1].split(".")[0] for link in links}
        for here, there in zip(names, names[1:]):
            found = pages(site)[f"notebooks/{here}.html"]
            assert (
                f"On the route {name}" in found.text and f"{there}.html" in found.links
            )
