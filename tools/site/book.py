"""The web site of the book, from the notebooks as they are: python tools/site/book.py [folder]

Nothing is executed.

What Sphinx reads is put together in <folder>/source: the notebooks, the README in two pages,
INSTALL.md, GUIDE.md, RESULTS.md, DEVIATIONS.md, CONTRIBUTING.md, commands.md, the readers' questions, a page
for each module. The site is then in <folder>/html, or site/html.
"""

import argparse
import functools
import html
import json
import os
import re
import shutil
import sys
from pathlib import Path

import nbformat

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import pairs  # noqa: E402
import reading  # noqa: E402
import stamp  # noqa: E402

ROOT = pairs.ROOT
# Documents that are pages of the site, and their places there
PAGES = {
    "README.md": "index.md",
    "INSTALL.md": "install.md",
    "RESULTS.md": "results.md",
    "DEVIATIONS.md": "deviations.md",
    "CONTRIBUTING.md": "contributing.md",
    "GUIDE.md": "guide.md",
}
PICTURES = ("its.png", "looking_back.png", "live.png")
SENTENCE = "The cat that saw the dog lost its ball."  # of the README's picture
READ, FOUND = "Three ways to read", "Five things we found"  # headings of the README
QUESTION = re.compile(r"question-(\d\d)")


# Text


def relink(text, folder, url):
    """Markdown of the repository's folder for the site: links to what is no page of it lead to the
    repository."""

    def target(match):
        before, link = match.groups()
        path, _, anchor = link.partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return match[0]
        path = (ROOT / folder / path).resolve().relative_to(ROOT)
        if path.as_posix() in PAGES:
            there = PAGES[path.as_posix()]
            up = "../" * len(Path(folder).parts)
            return f"{before}{up}{there}{'#' + anchor if anchor else ''})"
        if path.suffix == ".ipynb" or "![" in before:
            return match[0]
        return f"{before}{url}/blob/main/{path.as_posix()}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^```.*?^```|`[^`\n]*`)", text, flags=re.MULTILINE | re.DOTALL)
    link = r"(!?\[[^\]]*\]\()([^()\s]+)\)"
    return "".join(
        part if part.startswith("`") else re.sub(link, target, part) for part in parts
    )


def document(name, url):
    """A Markdown file at the project's root, with its links as the site needs them."""
    return relink((ROOT / name).read_text(encoding="utf8"), "", url)


def readme():
    """{heading: text below it} of the README; the part before the first heading is under ""."""
    text = (ROOT / "README.md").read_text(encoding="utf8")
    pieces = re.split(r"^## (.*)\n", text.partition("\n")[2], flags=re.MULTILINE)
    named = zip(["", *pieces[1::2]], pieces[0::2])
    return {name: body.strip() for name, body in named}


def grouped():
    """[(name of a part, [(notebook, what waits there), ...]), ...], as the README's table has them."""
    folder = ROOT / "notebooks"
    return [
        (name, [(folder / f"{stem}.ipynb", waits) for stem, waits, _ in chapters])
        for name, chapters in reading.parts(readme()[READ]).items()
    ]


def routes():
    """{route: [(notebook, minutes), ...] in reading order}: an hour, and the main book."""
    main = [notebook for notebook, _ in dict(grouped())[reading.MAIN]]
    hour = [notebook for notebook in main if notebook.stem in reading.HOUR]
    return {
        name: [(notebook, reading.minutes(notebook)) for notebook in stops]
        for name, stops in (("One hour", hour), (reading.MAIN, main))
    }


def signpost(notebook):
    """What comes after a notebook on each route that has it; nothing where none does."""
    found = []
    for name, stops in routes().items():
        places = [stop for stop, _ in stops]
        if notebook in places:
            text = "this was the last"
            if after := places[places.index(notebook) + 1 :]:
                text = f"[{title_of(after[0])}]({after[0].name}) comes next"
            found.append(f"On the route *{name}* {text}.")
    return " ".join(found)


def title_of(notebook):
    return (
        nbformat.read(notebook, as_version=4)
        .cells[0]
        .source.splitlines()[0]
        .removeprefix("# ")
    )


# Pages

LOOK_UP = """**Look up**

- [The model in a page](live.md): translate, look into heads, change them
- [A language model to talk with](bot.md): the chat bot of notebook 21
- [Readers' questions](questions.md): each with the place where a cell measures the answer
- [What we found](results.md): eleven findings, each with its evidence
- [Ways to use it](use.md): in a notebook, at the command line, as parts
- [Installing](install.md): with make or without, Windows, conda, containers
- [The command line](commands.md): train, translate, evaluate, look
- [Where it differs from the paper](deviations.md)
- [Using it from Python](guide.md)
- [Changing it](contributing.md)
- [The package](api/index.md): every class and function
"""
LOOKED_UP = (
    "live",
    "bot",
    "questions",
    "results",
    "use",
    "install",
    "commands",
    "deviations",
    "guide",
    "contributing",
    "api/index",
)
LIVE = """# The model in a page

The bundled model runs in your browser, and nothing leaves it. It knows the words of a small grammar
of English and German: other words come apart, and their translations are guesses.
[Notebook 19](notebooks/19_visualization.ipynb) says what its heads do and how that was found out.
<a href="_static/live.html">The page alone</a> can be saved and opened without a network.

"""
LIVE_FRAME = (
    '<iframe class="live" src="{page}" title="The model in a page" '
    'sandbox="allow-scripts"></iframe>\n'
)
LIVE_PAGE = "_static/live.html"
# On the front page it is loaded when everything else is there; its head is turned as in the picture.
LIVE_LATER = """<div class="live"><p>The model is loading, {size:.1f} MB ...</p></div>
<script>
addEventListener("load", () => {{
  const frame = document.createElement("iframe");
  const set = {{className: "live", title: "The model in a page", src: "{page}"}};
  frame.setAttribute("sandbox", "allow-scripts");
  frame.onload = () => frame.previousElementSibling?.remove();
  document.querySelector("div.live").append(Object.assign(frame, set));
}});
</script>
"""
# In a chapter the page, which holds the model's weights, is loaded when it is asked for.
LIVE_CLICK = """<details class="live" ontoggle="const frame = this.querySelector('iframe'); frame.src ||= frame.dataset.src">
<summary>{picture}
<div>Open the page that holds the model: {size:.1f} MB, and nothing leaves it</div></summary>
<iframe class="live" data-src="{page}" title="The model in a page" \
sandbox="allow-scripts"></iframe></details>
"""
BOT = """# A language model to talk with

The chat bot of [notebook 21](notebooks/21_language.ipynb) answers in your browser, and nothing
leaves it. It has read dialogues of a few forms about the sentences of a small grammar: it
translates them both ways, and says which word means what. To a question of another form it says
something, too. <a href="_static/bot.html">The page alone</a> can be saved and opened without a
network.

"""
BOT_FRAME = LIVE_FRAME.replace('"live"', '"live bot"').replace(
    "The model in a page", "A chat bot"
)
BOT_PAGE = "_static/bot.html"
QUESTIONS = """# Readers' questions

People who read the paper for the first time ask these questions. Each link leads to the place in a
notebook that answers it, with a cell that measures something.
"""
PACKAGE = """# The package

`from transformer import ...` gives what most programs need: `load`, `translate`, `train`,
`Transformer` and a dozen more (`transformer.__all__`); everything else comes from its module.
Modules with a notebook stand first, in reading order. `B` is the batch, `S` the source's length,
`T` the target's, `V` the vocabulary; masks are boolean, True = may attend.
"""
PAIRED = (
    "The module of [{title}](../notebooks/{file}), where each definition stands with its "
    "reasons."
)
FOLDER = "The modules of `transformer/{name}`, which no notebook shows whole."
MODULE = """
{heading}

```{{eval-rst}}
.. automodule:: transformer.{name}
   :members:
```
"""


def tree(pages, *options):
    """A part of the table of contents."""
    return "\n".join(["```{toctree}", *options, "", *pages, "```", ""])


def contents():
    """[(name of a part, lines of its list, names of its pages), ...]; evidence comes last."""
    found = []
    for name, group in grouped():
        rows = [
            f"- [{title_of(notebook)}](notebooks/{notebook.name})"
            f": {waits} ({reading.minutes(notebook)} minutes)"
            for notebook, waits in group
        ]
        inside = [f"notebooks/{notebook.stem}" for notebook, _ in group]
        found.append((name, rows, inside))
    pages = pairs.evidence(ROOT)
    rows = [f"- [{title_of(page)}](notebooks/evidence/{page.name})" for page in pages]
    inside = [f"notebooks/evidence/{page.stem}" for page in pages]
    return [*found, ("Evidence", rows, inside)] if pages else found


def front_page(url):
    """What the book is, the model to play with, the two commands, contents by part, findings, and
    the tree that the side bar shows."""
    texts = {name: relink(text, "", url) for name, text in readme().items()}
    lines = [
        "# Attention, annotated",
        texts[""],
        live_later(),
        "## Two commands",
        texts["On your own machine"],
        f"## {READ}",
        texts[READ].partition("\n|")[0].strip(),
    ]
    trees = [tree(map(page_of, routes()), ":hidden:", ":caption: Routes")]
    for name, rows, inside in contents():
        lines += [f"**{name}**", "\n".join(rows)]
        trees.append(tree(inside, ":hidden:", f":caption: {name}"))
    trees.append(tree(LOOKED_UP, ":hidden:", ":caption: Look up"))
    return "\n\n".join([*lines, f"## {FOUND}", texts[FOUND], LOOK_UP, *trees])


def page_of(route):
    """The name of a route's page."""
    return "route-" + route.replace(" ", "-").lower()


def route_pages():
    """{name of the page: text}: a page for each route, with its notebooks and minutes."""
    pages = {}
    for name, stops in routes().items():
        rows = [
            f"1. [{title_of(notebook)}](notebooks/{notebook.name}), {minutes} minutes"
            for notebook, minutes in stops
        ]
        total = sum(minutes for _, minutes in stops)
        pages[page_of(name)] = "\n\n".join(
            [
                f"# {name[0].upper()}{name[1:]}",
                f"{len(rows)} notebooks, {total} minutes of reading. "
                "Each ends with a link to the next one of this route.",
                "\n".join(rows),
            ]
        )
    return pages


def questions_page():
    """The readers' questions that a notebook answers, each a link to the cell; SystemExit for one
    without a text."""
    texts, parts = (
        json.loads((HERE / "questions.json").read_text(encoding="utf8")),
        [QUESTIONS],
    )
    for notebook in pairs.notebooks():
        rows = []
        for cell in nbformat.read(notebook, as_version=4).cells:
            for number in filter(
                None, map(QUESTION.fullmatch, cell.metadata.get("tags", []))
            ):
                if number[1] not in texts:
                    sys.exit(
                        "tools/site/questions.json has no text for "
                        f"{number[0]}, a tag in {notebook.name}"
                    )
                rows.append(f"- [{texts[number[1]]}](#{number[0]})")
        parts += [f"**{title_of(notebook)}**", "\n".join(rows)] if rows else []
    return "\n\n".join(parts)


def modules():
    """Dotted names inside the package: those with a notebook in reading order, then the others.

    Without the exercises and the museum's exhibits: readers are to find them out.
    """
    paired = [notebook.stem[3:] for notebook in pairs.notebooks()]
    package = ROOT / "transformer"
    others = [
        ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(
            ".__init__"
        )
        for path in sorted(package.rglob("*.py"))
    ]
    known = ("__init__", "__main__", *paired)
    return paired + [
        name
        for name in others
        if name not in known
        and not name.startswith(("teaching.exercises.", "doctor.museum."))
    ]


def page_of_module(name):
    """A chapter's module has a page of its own, the engine's modules one for each folder."""
    return f"api/{name.split('.')[0]}"


def api_pages():
    """{name of the page: text}: the chapters' modules, the engine's folders, and their list."""
    chapters = {notebook.stem[3:]: notebook for notebook in pairs.notebooks()}
    members = {}
    for name in modules():
        members.setdefault(page_of_module(name), []).append(name)
    pages = {}
    for page, names in members.items():
        first = page.removeprefix("api/")
        text = FOLDER.format(name=first)
        if first in chapters:
            title = title_of(chapters[first])
            text = PAIRED.format(title=title, file=chapters[first].name)
        heads = [f"## transformer.{name}" if len(names) > 1 else "" for name in names]
        parts = [MODULE.format(name=n, heading=head) for n, head in zip(names, heads)]
        pages[page] = "\n".join([f"# transformer.{first}\n", text, *parts])
    listed = tree([f"{page[4:]} </{page}>" for page in pages], ":maxdepth: 1")
    return pages | {"api/index": f"{PACKAGE}\n{listed}"}


def live_page(path):
    """Write the page that holds the bundled model, with sentences whose answers are known."""
    from transformer import load, view
    from transformer.corpora import read_bundled

    known = [
        [e for e in read_bundled(split) if e.pronouns][:8] for split in ("test", "hard")
    ]
    view(*load(), sum(known, [])).save(path)


def bot_page(path):
    """Write the page that holds the bundled chat bot."""
    from transformer import load
    from transformer.runs.dialogues import EXAMPLES
    from transformer.views.chat_page import view_chat

    view_chat(*load("chat"), EXAMPLES).save(path)


# Hooks of conf.py


@functools.cache
def live_size():
    """Megabytes of the page that holds the bundled model: its weights, in base64, are nearly all."""
    from transformer import load
    from transformer.core.weights import count_parameters

    return count_parameters(load()[0]) * 2 * 4 / 3 / 1e6


def live_later():
    """The page with the bundled model for the front page: the README's picture, to be moved."""
    from transformer import load, view
    from transformer.views.turn import Turn

    turned = view(*load(), SENTENCE, Turn("its", "dog", layer=0, head=2))
    page = f"{LIVE_PAGE}#{turned.fragment}"
    return LIVE_LATER.format(page=page, size=live_size())


def live_on_a_click(picture, folder, fragment=""):
    """A picture that opens the page with the bundled model, in the state that a fragment asks for.

    folder: that of the page on which the picture stands."""
    up = "../" * len(Path(folder).parts)
    page = f"{up}{LIVE_PAGE}{'#' + fragment if fragment else ''}"
    return LIVE_CLICK.format(picture=picture, page=page, size=live_size())


def picture_in(source):
    """The first picture of a Markdown text, as a paragraph of its own."""
    picture = re.search(r"!\[[^\]]*\]\([^)]*\)", source)[0]
    return f"\n\n{picture}\n"


def picture_of(output):
    """The picture of an output as HTML."""
    picture, alt = output.data["image/png"], output.metadata["image/png"]["alt"]
    source = f"data:image/png;base64,{''.join(picture.split())}"
    return f'<img src="{source}" alt="{html.escape(alt)}">'


def notebook_for_site(source, stem, folder, url):
    """The JSON of a notebook with what its page needs: targets of questions, links, words for
    pictures, what comes next on its routes."""
    book = nbformat.reads(source, as_version=4)
    if after := signpost(ROOT / folder / f"{stem}.ipynb"):
        book.cells.append(nbformat.v4.new_markdown_cell(after))
    for cell in book.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "markdown":
            cell.source = relink(stamp.BADGE_LINE.sub("", cell.source), folder, url)
            if "live.png" in cell.source:  # the site has the page itself
                cell.source = live_on_a_click(picture_in(cell.source), folder)
            for tag in filter(QUESTION.fullmatch, tags):
                cell.source = f"({tag})=\n{cell.source}"
        elif stamp.is_install_cell(cell):
            cell.metadata["tags"] = [*tags, "remove-cell"]
        for output in cell.get("outputs", []):
            if fragment := output.get("metadata", {}).get("live"):
                page = live_on_a_click(picture_of(output), folder, fragment)
                output.data = {"text/html": page}
            elif alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
                cell.metadata["mystnb"] = {"image": {"alt": alt}}
    return nbformat.writes(book)


def rst(lines):
    """A docstring of plain text as reStructuredText: `names` become links or code, the rest is
    taken literally."""

    def literal(text):
        return re.sub(r"([\\*|`_])", r"\\\1", text)

    def code(name):
        return (
            f"\\ :py:obj:`{name}`\\ "
            if re.fullmatch(r"[\w.]+", name)
            else f"\\ ``{name}``\\ "
        )

    parts = re.split(r"`([^`\n]+)`", "\n".join(lines))
    written = [code(part) if i % 2 else literal(part) for i, part in enumerate(parts)]
    return "".join(written).split("\n")


# Building


def stage(source):
    """Write all that Sphinx reads into a folder."""
    url, parts = stamp.address(ROOT), readme()
    for name in ("notebooks", "api", "data"):
        (source / name).mkdir(parents=True)
    use = parts["Three ways to use it"]
    pages = {
        "index": front_page(url),
        "questions": questions_page(),
        **api_pages(),
        **route_pages(),
        "live": LIVE + LIVE_FRAME.format(page=LIVE_PAGE),
        "bot": BOT + BOT_FRAME.format(page=BOT_PAGE),
        "use": "# Three ways to use it\n\n" + relink(use, "", url),
        "deviations": document("DEVIATIONS.md", url),
        "contributing": document("CONTRIBUTING.md", url),
        "guide": document("GUIDE.md", url),
        "results": document("RESULTS.md", url),
        "install": document("INSTALL.md", url),
        "commands": (HERE / "commands.md").read_text(encoding="utf8"),
    }
    for name, text in pages.items():
        (source / f"{name}.md").write_text(text, encoding="utf8", newline="\n")
    for notebook in (*pairs.notebooks(ROOT), *pairs.evidence(ROOT)):
        place = source / notebook.relative_to(ROOT)
        place.parent.mkdir(exist_ok=True)
        shutil.copyfile(notebook, place)
    for name in PICTURES:
        shutil.copyfile(ROOT / "data" / name, source / "data" / name)


def build(folder):
    """Build the site in folder/html from nothing, warnings as errors; returns Sphinx's exit
    status."""
    from sphinx.cmd.build import build_main

    os.environ.setdefault("MPLBACKEND", "Agg")
    for name in ("source", "doctrees", "html"):
        shutil.rmtree(folder / name, ignore_errors=True)
    stage(folder / "source")
    places = [HERE, "-d", folder / "doctrees", folder / "source", folder / "html"]
    status = build_main(
        ["-b", "html", "-W", "--keep-going", "-q", "-c", *map(str, places)]
    )
    live_page(folder / "html" / LIVE_PAGE)
    bot_page(folder / "html" / BOT_PAGE)
    return status


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "site")
    folder = parser.parse_args().folder.resolve()
    if status := build(folder):
        sys.exit(status)
    print(f"built {folder / 'html' / 'index.html'}")


if __name__ == "__main__":
    main()
