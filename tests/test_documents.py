"""What people meet first: the README's and RESULTS.md's length, figures, minutes, links and commands;
code in GUIDE; lists of requirements."""

import ast
import io
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from contextlib import redirect_stdout
from urllib.parse import unquote

import nbformat
import pairs
import pytest
import reading
import torch

from transformer import load, translate
from transformer.cli import parse
from transformer.corpora import read_corpus
from transformer.experiments import results
from transformer.experiments.questions import IN_SMALL
from transformer.models import graph
from transformer.variations import TABLE_3

ROOT = pairs.ROOT
DOCUMENTS = [path.name for path in sorted(ROOT.glob("*.md"))]
EXTENSIONS = ROOT / "tests" / "test_extensions.py"


def text_of(name):
    return (ROOT / name).read_text(encoding="utf8")


# Figures

# Numbers that no record gives: years, Wu et al.'s score, BLEU's range, versions, a licence
README_KNOWN = {"0", "100", "2017", "3.11", "3.14", "2.0"}
RESULTS_KNOWN = {"0", "100", "2021", "41.0", "2014", "200"}


def prose(name):
    """A document in one line, without code, rows of tables, pictures and numbers of a list."""
    text = re.sub(r"^```.*?^```", "", text_of(name), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\|.*$|^\d+\. ", "", text, flags=re.MULTILINE)
    return " ".join(re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text).split())


def numbers(text):
    """The numbers of a text; those in the words of a link, or in a name such as H100 or Table 3, are
    none."""
    text = re.sub(r"\[[^\]]*\]\([^)]*\)|`[^`]*`|(?:Table|chapter) \d+", "", text)
    return set(re.findall(r"(?<![\w.])\d+(?:[.,]\d+)*", text))


@pytest.fixture(scope="module")
def figures():
    return results.figures()


README_CLAIMS = (
    "in {head_turned:.0%} of {sentences_turned:.0f} sentences",
    "Any other head changes it in {other_head_turned:.0%} at most",
    "learned from {pairs:,} English sentences",
    "gets {demo_exact:.0%} of new sentences exactly right",
    "reaches {one_vector:.0f} BLEU, and the same RNN reaches {with_attention:.0f}",
    "which has no RNN, reaches {attention_alone:.0f}, too",
    "it gets {longer_sines:.0f}, and the RNN with attention {longer_rnn:.0f}",
    "raised the loss by only {use_ignoring:.2f}, the mean",
    "more slowly, it raised it by {use_cured:.2f}",
    "loses {shuffled_cnn:.1f} points of accuracy",
)


def readme_claims(figures):
    known = figures | {"pairs": len(read_corpus("bundled", "train"))}
    return [claim.format_map(known) for claim in README_CLAIMS]


@pytest.mark.parametrize("place", range(len(README_CLAIMS)))
def test_readme_says_what_the_records_say(figures, place):
    claim = readme_claims(figures)[place]
    assert prose("README.md").count(claim) == 1, claim


def test_every_number_of_the_readme_is_held_to_a_record(figures):
    text = prose("README.md")
    for claim in readme_claims(figures):
        text = text.replace(claim, "")
    assert numbers(text) <= README_KNOWN


def test_what_the_readme_says_in_words(figures):
    """Eight heads; three trainings that ignore their source, and are cured; more than one BLEU
    between seeds; a Transformer that loses nothing when pixels are shuffled."""
    assert figures["heads"] == 8
    assert figures["ignoring"] == figures["cured"] == figures["cured_of"] == 3
    assert figures["apart"] > 1
    assert figures["shuffled_vit"] < 0
    assert figures["other_head_turned"] < figures["head_turned"]


def test_results_are_what_the_records_say():
    assert text_of("RESULTS.md") == results.results(), "make results"


def test_every_number_of_the_results_comes_from_a_record():
    template = results.TEMPLATE.relative_to(ROOT).as_posix()
    assert numbers(re.sub(r"\{\w+:[^}]*\}", "", prose(template))) <= RESULTS_KNOWN


def test_what_the_results_say_in_words(figures):
    """Six trainings of captions; three that ignore their source; thirteen changes, nine of which
    hurt in the paper; a Transformer that loses nothing when pixels are shuffled."""
    paper = [row.perplexity for row in TABLE_3 if row.name in IN_SMALL]
    assert figures["captions_trainings"] == 6
    assert figures["ignoring"] == 3
    assert figures["table3_of"] == 13
    assert sum(perplexity > paper[0] for perplexity in paper) == 9
    assert figures["shuffled_vit"] < 0


@pytest.mark.parametrize("name", ["demo_exact", "captions", "fast", "numbered_words"])
def test_a_changed_record_changes_the_page(figures, monkeypatch, name):
    monkeypatch.setattr(results, "figures", lambda: figures | {name: 12.3})
    assert text_of("RESULTS.md") != results.results()


@pytest.mark.parametrize("name, most", [("README.md", 1100), ("RESULTS.md", 900)])
def test_what_is_read_first_is_short(name, most):
    text = text_of(name)
    lines = [line for line in text.splitlines() if not line.startswith("|")]
    assert len(text.split()) <= most
    assert max(map(len, lines)) <= 100


# Reading


def test_the_readmes_minutes_are_right():
    text = text_of("README.md")
    now, then = reading.parts(text), reading.parts(reading.filled(text))
    stems = [stem for chapters in now.values() for stem, *_ in chapters]
    assert sorted(stems) == [path.stem for path in pairs.notebooks()]
    wrong = [
        (stem, minutes, other)
        for name, chapters in now.items()
        for (stem, _, minutes), (_, _, other) in zip(chapters, then[name])
        if abs(minutes - other) > 5
    ]
    assert not wrong, "python tools/reading.py"
    sums = {name: sum(n for *_, n in chapters) for name, chapters in now.items()}
    assert reading.sums(text) == sums, "python tools/reading.py"


def test_the_shortest_way_takes_an_hour():
    text = prose("README.md")
    links = [f"[{stem[:2]}](notebooks/{stem}.ipynb)" for stem in reading.HOUR]
    assert f"**One hour** is enough for {' and '.join(links)}" in text
    taken = [
        reading.minutes(ROOT / "notebooks" / f"{stem}.ipynb") for stem in reading.HOUR
    ]
    assert 45 <= sum(taken) <= 65


def test_notebooks_say_how_long_they_take():
    for path in pairs.notebooks():
        first = nbformat.read(path, as_version=4).cells[0].source
        said = re.search(
            r"eading\s+takes\s+(about\s+(\d+)\s+minutes|half\s+an\s+hour)", first
        )
        assert said and abs(int(said[2] or 30) - reading.minutes(path)) <= 5, path.stem


# Links


def anchor(heading):
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", [*DOCUMENTS, "data/README.md"])
def test_links_lead_somewhere(name):
    text = re.sub(
        r"^```.*?^```|`[^`\n]*`", "", text_of(name), flags=re.MULTILINE | re.DOTALL
    )
    for link in re.findall(r"\]\(([^()\s]+)\)", text):
        path, _, target = link.partition("#")
        if re.match(r"https?:", link):
            continue
        file = (ROOT / name).parent / unquote(path) if path else ROOT / name
        assert file.exists(), f"{name}: {link}"
        if target and file.suffix == ".md":
            headings = re.findall(
                r"^#+ (.*)$", file.read_text(encoding="utf8"), re.MULTILINE
            )
            assert target in map(anchor, headings), f"{name}: {link}"


# Code


def blocks(name, language):
    """The code blocks of a document in a language; "" are those without one."""
    found = r"^```(\w*)\n(.*?)^```"
    every = re.findall(found, text_of(name), re.MULTILINE | re.DOTALL)
    return [code for own, code in every if own == language]


def test_the_readmes_code_runs():
    looks, parts = blocks("README.md", "python")
    names = {}
    with redirect_stdout(io.StringIO()) as turned:
        exec(looks, names)
    assert turned.getvalue().splitlines() == re.findall(
        r"^# (Die .*)", looks, re.MULTILINE
    )
    count, number = re.search(r"^(sum\(.*\))  # ([\d,]+)", parts, re.MULTILINE).groups()
    with torch.device("meta"):
        exec(parts, names)
    assert f"{eval(count, names):,}" == number


COMMANDS = [
    line
    for name in ("README.md", "INSTALL.md", "tools/site/commands.md")
    for block in blocks(name, "")
    for line in block.replace("\\\n", " ").splitlines()
]


@pytest.mark.parametrize(
    "line", [line for line in COMMANDS if line.startswith("transformer ")]
)
def test_commands_in_documents_are_understood(line):
    parse(shlex.split(line, comments=True)[1:])


@pytest.mark.parametrize("line", [line for line in COMMANDS if line[:5] == "make "])
def test_targets_in_documents_are_in_the_makefile(line):
    words = shlex.split(line, comments=True)[1:]
    targets = re.findall(r"^([\w-]+):", text_of("Makefile"), re.MULTILINE)
    assert {word for word in words if "=" not in word} <= set(targets)


def shown(node, source):
    """The code of a function as a document shows it.

    Its body, without a name returned at the end; all of it where it has parameters or computes
    what it returns.
    """
    last = node.body[-1]
    ends = isinstance(last, ast.Return) and isinstance(last.value, ast.Name)
    if node.args.args or not ends and isinstance(last, ast.Return):
        return ast.get_source_segment(source, node)
    lines = source.splitlines()[
        node.lineno : last.lineno - 1 if ends else last.end_lineno
    ]
    return textwrap.dedent("\n".join(lines)).strip()


def laid_out(code):
    """Code as `ruff format` leaves it where it stands without an indent."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "a.py", "-"]
    done = subprocess.run(
        command, cwd=ROOT, input=code, capture_output=True, encoding="utf8", check=True
    )
    return done.stdout.strip()


def extensions():
    """{name: code} of what tests/test_extensions.py plugs in."""
    source = EXTENSIONS.read_text(encoding="utf8")
    found = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
        and not node.decorator_list
        and not node.name.startswith("test_")
        and node.name != "trained"
    ]
    return {node.name: laid_out(shown(node, source)) for node in found}


@pytest.mark.skipif(not EXTENSIONS.exists(), reason="no extensions yet")
def test_the_guide_shows_the_code_of_the_extensions():
    named = r"<!-- (\w+) -->\n```python\n(.*?)\n```"
    assert dict(re.findall(named, text_of("GUIDE.md"), re.DOTALL)) == extensions()


def test_the_guides_scores_of_held_out_pairs(tmp_path, monkeypatch):
    """The code of the section runs on the file that a training leaves, with the bundled model."""
    guide = text_of("GUIDE.md").split("## Score sentences that it has not seen\n")[1]
    code = re.search(r"```python\n(.*?)```", guide, re.DOTALL)[1]
    examples = read_corpus("bundled", "test")[:3]
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    lines = [
        f"{n}\t{source}\t{target}\n" for n, (source, target) in enumerate(examples, 7)
    ]
    held_out = tmp_path / "runs" / "mine" / "held_out.tsv"
    held_out.write_text("".join(lines), encoding="utf8")
    monkeypatch.chdir(tmp_path)
    model, tokenizer = load()
    names = {"model": model, "tokenizer": tokenizer, "translate": translate}
    exec(code, names)
    assert names["scores"]["sentences"] == 3
    assert names["scores"]["bleu"]["score"] > 50
    rows = (held_out.parent / "translated.tsv").read_text(encoding="utf8").splitlines()
    written = translate(model, tokenizer, [source for source, _ in examples])
    assert [tuple(row.split("\t")) for row in rows] == [
        (*pair, text) for pair, text in zip(examples, written)
    ]


def test_the_extra_for_onnx_has_one_name():
    """That of pyproject.toml, in the guide, in the help and in what is said without it."""
    content = tomllib.loads(text_of("pyproject.toml"))["project"]
    assert set(graph.NEEDED) <= set(project("onnx"))
    assert graph.EXTRA == f"pip install '{content['name']}[onnx]'"
    assert "onnx" in content["optional-dependencies"]
    assert graph.EXTRA in text_of("GUIDE.md")
    assert graph.EXTRA in text_of("transformer/cli/export.py")


# Requirements


def requirements(entries):
    """{name: version asked for}, names written alike."""
    found = (
        re.match(r"([\w.-]+)(?:\[.*\])?\s*(.*)", entry.strip()).groups()
        for entry in entries
        if entry.strip()
    )
    return {name.lower().replace("_", "-"): version for name, version in found}


def pinned(name):
    return requirements(
        line for line in text_of(name).splitlines() if line and line[0] != "#"
    )


def project(*extras):
    """What pyproject.toml asks for, with some of its extras."""
    content = tomllib.loads(text_of("pyproject.toml"))["project"]
    optional = content["optional-dependencies"]
    named = [entry for extra in extras for entry in optional.get(extra, [])]
    return requirements([*content["dependencies"], *named])


def test_lists_of_requirements_agree():
    """environment.yml asks for what pyproject.toml asks for; the constraints pin all of it, the
    oldest at its bounds."""
    conda = re.findall(
        r"^  - ([\w.-]+)(\S*)$", text_of("environment.yml"), re.MULTILINE
    )
    conda = requirements("".join(entry) for entry in conda)
    asked, core = project("notebooks", "test", "experiments"), project()
    built = {"torch": "pytorch", "numpy": "numpy"}  # there as the pair with torchtext
    for name, bound in (asked | project("images")).items():
        there = conda.get(built.get(name, name))
        assert there is not None and (name in built or there == bound), (
            f"{name} {bound}"
        )
    assert set(asked) | set(project("site", "bench", "images")) <= set(
        pinned("constraints.txt")
    )
    oldest = pinned("constraints-oldest.txt")
    assert set(asked) <= set(oldest)
    for name, bound in core.items():
        lowest = [int(part) for part in re.findall(r"\d+", bound)]
        pin = [int(part) for part in re.findall(r"\d+", oldest[name])]
        assert pin[: len(lowest)] == lowest, (
            f"{name}{oldest[name]} is not its bound {bound}"
        )
