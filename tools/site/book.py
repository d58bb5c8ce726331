"""The web site of the book, from the notebooks as they are: python tools/site/book.py [folder]

Nothing is executed.

What Sphinx reads is put together in <folder>/source: the notebooks, the README in two pages,
RESULTS.md with the records of data/runs/, DEVIATIONS.md, CONTRIBUTING.md, the readers' questions, a
page for each module. The site is then in <folder>/html, or site/html.
"""

import argparse
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
import stamp  # noqa: E402

ROOT = pairs.ROOT
# The paper's sections as they stand in the README's table, and their names there
PARTS = {
    "1": "Introduction",
    "2": "Background",
    "3": "Model architecture",
    "4": "Why self-attention",
    "5": "Training",
    "6": "Results",
    "F": "Attention visualizations",
    "7": "Conclusion, and beyond",
    "a": "Appendix"
}
# Documents that are pages of the site, and their places there
PAGES = {"README.md": "index.md", "RESULTS.md": "results.md", "DEVIATIONS.md": "deviations.md",
         "CONTRIBUTING.md": "contributing.md"}
PICTURES = ("attention.png", "results.png")
ABOUT = ("commit", "hardware", "torch", "threads", "seed", "minutes", "minutes_of_training")
QUESTION = re.compile(r"question-(\d\d)")


# Text

def relink(text, folder, url):
    """Markdown of the repository's folder for the site: links to what is no page of it lead to the
    repository."""
    def target(match):
        before, link = match.groups()
        path, _, anchor = link.partition("#")
        if not path and folder == "" and anchor == "installation":
            path = "README.md"
        if not path or re.match(r"[a-z]+:", path):
            return match[0]
        path = (ROOT / folder / path).resolve().relative_to(ROOT)
        if path.as_posix() in PAGES:
            there = "use.md" if anchor == "installation" else PAGES[path.as_posix()]
            return f"{before}{'../' * (folder != '')}{there}{'#' + anchor if anchor else ''})"
        if path.suffix == ".ipynb" or before[0] == "!":
            return match[0]
        return f"{before}{url}/blob/main/{path.as_posix()}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^```.*?^```|`[^`\n]*`)", text, flags=re.MULTILINE | re.DOTALL)
    link = r"(!?\[[^\]]*\]\()([^()\s]+)\)"
    return "".join(part if part.startswith("`") else re.sub(link, target, part) for part in parts)


def document(name, url):
    """A Markdown file at the project's root, with its links as the site needs them."""
    return relink((ROOT / name).read_text(encoding="utf8"), "", url)


def readme():
    """{heading: text below it} of the README; the part before the first heading is under ""."""
    text = (ROOT / "README.md").read_text(encoding="utf8")
    pieces = re.split(r"^## (.*)\n", text.partition("\n")[2], flags=re.MULTILINE)
    named = zip(["", *pieces[1::2]], pieces[0::2])
    return {name: body.strip() for name, body in named}


def chapters():
    """(notebook, section of the paper, what you learn), from the README's table or, where that
    lacks it, its title."""
    table = re.findall(r"^\| \[[^\]]*\]\(notebooks/(\w+)\.ipynb\) \| ?(.*?) \| (.*?) \|",
                       readme()["Three routes through the book"], re.MULTILINE)
    rows = {stem: (section, learned) for stem, section, learned in table}
    return [(notebook, *rows.get(notebook.stem, (title_of(notebook), "")))
            for notebook in pairs.notebooks()]


def grouped():
    """[(name of the part, its chapters), ...] in reading order."""
    parts = []
    for chapter in chapters():
        first = chapter[1][0] if chapter[1][0] in PARTS else "a"
        name = f"{first} {PARTS[first]}" if first.isdigit() else PARTS[first]
        if not parts or parts[-1][0] != name:
            parts.append((name, []))
        parts[-1][1].append(chapter)
    return parts


def title_of(notebook):
    return nbformat.read(notebook, as_version=4).cells[0].source.splitlines()[0].removeprefix("# ")


# Pages

LOOK_UP = """**Look up**

- [Readers' questions](questions.md): each with the place where a cell measures the answer
- [Results](results.md): every run that is kept, with its command and its hardware
- [Ways to use it](use.md): read, run in Colab, import; the command line
- [Where it differs from the paper](deviations.md)
- [Changing and extending it](contributing.md)
- [The package](api/index.md): every class and function
"""
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
PAIRED = ("The module of [{title}](../notebooks/{file}), where each definition stands with its "
          "reasons.")
MODULE = """# transformer.{name}

{text}

```{{eval-rst}}
.. automodule:: transformer.{name}
   :members:
```
"""


def tree(pages, *options):
    """A part of the table of contents."""
    return "\n".join(["```{toctree}", *options, "", *pages, "```", ""])


def front_page(url):
    """What the book is, the two commands, contents by section, and the tree that the side bar
    shows."""
    parts, trees = {name: relink(text, "", url) for name, text in readme().items()}, []
    lines = [
        "# Attention, annotated", parts[""], "## Two commands", parts["Two commands"], "## Contents"
    ]
    for name, group in grouped():
        rows = [
            f"- [{title_of(notebook)}](notebooks/{notebook.name})" + (learned and f": {learned}")
            for notebook, _, learned in group
        ]
        lines += [f"**{name}**", "\n".join(rows)]
        inside = [f"notebooks/{notebook.stem}" for notebook, *_ in group]
        trees.append(tree(inside, ":hidden:", f":caption: {name}"))
    pages = ["questions", "results", "use", "deviations", "contributing", "api/index"]
    trees.append(tree(pages, ":hidden:", ":caption: Look up"))
    return "\n\n".join([*lines, "## Six results", parts["Six results"], LOOK_UP, *trees])


def questions_page():
    """The readers' questions that a notebook answers, each a link to the cell; SystemExit for one
    without a text."""
    texts, parts = json.loads((HERE / "questions.json").read_text(encoding="utf8")), [QUESTIONS]
    for notebook in pairs.notebooks():
        rows = []
        for cell in nbformat.read(notebook, as_version=4).cells:
            for number in filter(None, map(QUESTION.fullmatch, cell.metadata.get("tags", []))):
                if number[1] not in texts:
                    sys.exit("tools/site/questions.json has no text for "
                             f"{number[0]}, a tag in {notebook.name}")
                rows.append(f"- [{texts[number[1]]}](#{number[0]})")
        parts += [f"**{title_of(notebook)}**", "\n".join(rows)] if rows else []
    return "\n\n".join(parts)


def modules():
    """Dotted names inside the package: those with a notebook in reading order, then the others."""
    paired = [notebook.stem[3:] for notebook in pairs.notebooks()]
    package = ROOT / "transformer"
    others = [".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__")
              for path in sorted(package.rglob("*.py"))]
    return paired + [name for name in others if name not in ("__init__", "__main__", *paired)]


def api_pages():
    """{name of the page: text}: a page for each module, and their list."""
    texts = {notebook.stem[3:]: PAIRED.format(title=title_of(notebook), file=notebook.name)
             for notebook in pairs.notebooks()}
    pages = {f"api/{name}": MODULE.format(name=name, text=texts.get(name, ""))
             for name in modules()}
    listed = tree([f"{name} <{name}>" for name in modules()], ":maxdepth: 1")
    return pages | {"api/index": f"{PACKAGE}\n{listed}"}


# Results

def shown(value):
    """A value of a result file as one line of Markdown."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if 10_000 <= abs(value) < 1e7:
            return f"{value:,.0f}"
        return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, list):
        if len(value) > 8 and all(isinstance(v, int | float) for v in value):
            return f"{len(value)} numbers, {shown(value[0])} to {shown(value[-1])}"
        return ", ".join(map(shown, value)) or "-"
    if isinstance(value, dict):
        return "; ".join(f"{escaped(name)} {shown(inner)}"
                         for name, inner in value.items()) or "-"
    return escaped(value)


def escaped(text):
    """A text as Markdown that shows it letter by letter, in one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", " ".join(str(text).split()))


def table(columns, rows):
    """A Markdown table of cells that are Markdown already."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) + "\n"


def is_flat(value):
    """True for a dict that holds no other."""
    return isinstance(value, dict) and not any(isinstance(inner, dict) for inner in value.values())


def is_table(value):
    """True for a list of dicts, or a dict of dicts, whose values are all short: rows of a table."""
    rows = value if isinstance(value, list) else []
    if isinstance(value, dict):
        rows = list(value.values())
    return bool(rows) and all(row and is_flat(row) for row in rows)


def generic(value, depth=4):
    """Any content of a result file, as tables below headings."""
    if is_table(value):
        named = isinstance(value, dict)
        rows = list(value.values()) if named else value
        columns = list(dict.fromkeys(key for row in rows for key in row))
        cells = [[shown(row.get(key)) for key in columns] for row in rows]
        if named:
            cells = [[escaped(name), *row] for name, row in zip(value, cells)]
        return table([""] * named + list(map(escaped, columns)), cells)
    if not isinstance(value, dict):
        value = {"": value}
    plain = {key: inner for key, inner in value.items()
             if is_flat(inner) or not isinstance(inner, dict | list)
             or isinstance(inner, list) and not is_table(inner)}
    rows = [[escaped(key), shown(inner)] for key, inner in plain.items()]
    parts = [table(["", ""], rows)] if rows else []
    for key, inner in value.items():
        if key not in plain:
            heading = f"{'#' * depth} {escaped(key)}" if depth < 6 else f"**{escaped(key)}**"
            parts += [f"{heading}\n", generic(inner, depth + 1)]
    return "\n".join(parts)


def scores(content, path=()):
    """(where it stands, BLEU) of every score in a result file."""
    if not isinstance(content, dict):
        return
    for key, value in content.items():
        if key == "bleu" and isinstance(value, dict | float | int):
            value = value.get("score") if isinstance(value, dict) else value
            if value is not None:
                yield " ".join(part for part in path if part != "scores") or "test", value
        else:
            yield from scores(value, (*path, key))


def numbers(log, key):
    """A figure of each row of a run's log; None where a row lacks it."""
    values = [row.get(key) for row in log]
    return values if all(isinstance(value, int | float) for value in values) else None


def curves(name, log, folder):
    """Draw a run's log into folder; the Markdown that shows it, empty where the log has no figures
    to draw."""
    from transformer import plotting

    panels = {"nats a token": {"training": numbers(log, "loss"),
                               "validation": numbers(log, "validation_loss")},
              "validation BLEU, greedy": {"BLEU": numbers(log, "bleu")}}
    panels = {label: {key: some for key, some in found.items() if some}
              for label, found in panels.items()}
    panels = {label: found for label, found in panels.items() if found}
    updates = numbers(log, "update")
    if not panels or not updates:
        return ""
    axes = plotting.new_axes(4.8, 3.2, columns=len(panels), squeeze=False).flatten()
    for ax, (label, found) in zip(axes, panels.items()):
        plotting.lines(updates, found, "update", label, ax=ax)
    text = plotting.describe(axes[0].figure)
    folder.mkdir(parents=True, exist_ok=True)
    plotting.save(axes[0], folder / f"{name}.png")
    return f"![{escaped(f'The run {name}. {text}')}](pictures/{name}.png)"


def result_files():
    """{name: (path, content)}: the card of the bundled model, then data/runs in the order of
    names."""
    paths = {"bundled model": ROOT / "data" / "models" / "bundled" / "card.json"}
    paths |= {path.stem: path for path in sorted((ROOT / "data" / "runs").glob("*.json"))}
    contents = {name: json.loads(path.read_text(encoding="utf8")) for name, path in paths.items()}
    return {name: (paths[name], content if isinstance(content, dict) else {"content": content})
            for name, content in contents.items()}


def result(name, path, content, folder, url):
    """What one result file holds; a picture of its log goes to folder."""
    place = path.relative_to(ROOT).as_posix()
    parts = [f"({slug(name)})=\n### {escaped(name)}", f"[`{place}`]({url}/blob/main/{place})"]
    if isinstance(content.get("what"), str):
        parts.append(f"{escaped(content['what'][:1].upper() + content['what'][1:])}.")
    made = content.get("commands") or [content.get("command")]
    if all(isinstance(command, str) for command in made):
        parts.append("```none\n" + "\n".join(made) + "\n```")
    about = {key: content[key] for key in ABOUT if key in content}
    shown_apart = (*ABOUT, "what", "command", "commands", "log")
    rest = {key: value for key, value in content.items() if key not in shown_apart}
    parts.append(generic(about | rest))
    if is_table(log := content.get("log")):
        parts.append(curves(path.stem, log, folder) if isinstance(log, list) else "")
        heading = f"<details><summary>The log: {len(log)} rows</summary>"
        parts.append(f"{heading}\n\n{generic(log)}\n</details>")
    return parts


def results_page(folder, url):
    """RESULTS.md, then all result files: an overview, and what each holds."""
    files = result_files()
    overview = [[f"[{escaped(name)}](#{slug(name)})",
                 shown(content.get("commit")), shown(content.get("hardware")),
                 shown(content.get("minutes", content.get("minutes_of_training"))),
                 "<br>".join(f"{escaped(where)}: {score:.2f}"
                             for where, score in scores(content)) or "-"]
                for name, (_, content) in files.items()]
    parts = [
        document("RESULTS.md", url), "## The files",
        "One file a run or measurement; what each holds stands below. BLEU is sacreBLEU, cased.",
        table(["file", "commit", "hardware", "minutes", "BLEU"], overview)
    ]
    for name, (path, content) in files.items():
        parts += result(name, path, content, folder, url)
    return "\n\n".join(part for part in parts if part)


def slug(name):
    return "run-" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


# Hooks of conf.py

def notebook_for_site(source, folder, url):
    """The JSON of a notebook with what its page needs: targets of questions, links, words for
    pictures."""
    book = nbformat.reads(source, as_version=4)
    for cell in book.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "markdown":
            cell.source = relink(stamp.BADGE_LINE.sub("", cell.source), folder, url)
            for tag in filter(QUESTION.fullmatch, tags):
                cell.source = f"({tag})=\n{cell.source}"
        elif stamp.is_install_cell(cell):
            cell.metadata["tags"] = [*tags, "remove-cell"]
        for output in cell.get("outputs", []):
            if alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
                cell.metadata["mystnb"] = {"image": {"alt": alt}}
    return nbformat.writes(book)


def rst(lines):
    """A docstring of plain text as reStructuredText: `names` become links or code, the rest is
    taken literally."""
    def literal(text):
        return re.sub(r"([\\*|`_])", r"\\\1", text)

    def code(name):
        return f"\\ :py:obj:`{name}`\\ " if re.fullmatch(r"[\w.]+", name) else f"\\ ``{name}``\\ "

    parts = re.split(r"`([^`\n]+)`", "\n".join(lines))
    written = [code(part) if i % 2 else literal(part) for i, part in enumerate(parts)]
    return "".join(written).split("\n")


# Building

def stage(source):
    """Write all that Sphinx reads into a folder."""
    url, parts = stamp.address(ROOT), readme()
    for name in ("notebooks", "api", "data"):
        (source / name).mkdir(parents=True)
    use = f"{parts['Three ways to use it']}\n\n## Installation\n\n{parts['Installation']}"
    pages = {"index": front_page(url), "questions": questions_page(), **api_pages(),
             "use": "# Three ways to use it\n\n" + relink(use, "", url),
             "deviations": document("DEVIATIONS.md", url),
             "contributing": document("CONTRIBUTING.md", url),
             "results": results_page(source / "pictures", url)}
    for name, text in pages.items():
        (source / f"{name}.md").write_text(text, encoding="utf8", newline="\n")
    for notebook in pairs.notebooks():
        shutil.copyfile(notebook, source / "notebooks" / notebook.name)
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
    return build_main(["-b", "html", "-W", "--keep-going", "-q", "-c", *map(str, places)])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "site")
    folder = parser.parse_args().folder.resolve()
    if status := build(folder):
        sys.exit(status)
    print(f"built {folder / 'html' / 'index.html'}")


if __name__ == "__main__":
    main()
