"""What people meet first: the README's length, figures, minutes and links; code in CONTRIBUTING;
lists of requirements."""

import ast
import re
import statistics
import subprocess
import sys
import textwrap
import tomllib
from urllib.parse import unquote

import nbformat
import numpy as np
import pairs
import pandas as pd
import pytest
import reading

from transformer.core.analysis import agreement, agreement_with_interval, along
from transformer.core.records import read_rows
from transformer.experiments.questions import IN_SMALL
from transformer.variations import TABLE_3

ROOT = pairs.ROOT
DOCUMENTS = [path.name for path in sorted(ROOT.glob("*.md"))]
EXTENSIONS = ROOT / "tests" / "test_extensions.py"


def text_of(name):
    return (ROOT / name).read_text(encoding="utf8")


# Figures


def bundled_claims():
    (demo,) = read_rows("demo")
    (card,) = read_rows(ROOT / "data/models/bundled/card.json")
    yield "gets {:.0%} of the test", demo["test.exact_match"]
    yield "exactly right**: {:.1f} BLEU,", demo["test.bleu"]
    yield "model gets {:.1%} of its", demo["test.exact_match"]
    yield "training never shows, it has {:.1f}.", demo["hard.bleu"]
    yield "an error rate of {:.3f}", card["alignment.error"]
    yield "at its place has {:.3f}", card["alignment.diagonal"]
    baseline = re.search(r"BLEU (\d+\.\d)\d on test", text_of("data/README.md"))[1]
    yield "word for word scores {}", baseline


def circuit_claims():
    rows = read_rows("circuit")
    looks = next(
        row for row in rows if row["what"] == "looks" and row["turn"] == "owner"
    )
    turned = {
        (row["layer"], row["head"]): row["follows"]
        for row in rows
        if (row["what"], row.get("turn")) == ("turned", "owner")
    }
    yield (
        "the right noun in {:.1%} of {:,} new sentences",
        looks["looks"],
        looks["looks.count"],
    )
    yield "is right in {:.1%},", looks["guesses.first noun"]
    yield "chance in {:.1%}", looks["guesses.chance"]
    yield "own things in training in {:.1%}", looks["guesses.likeliest owner"]
    yield (
        "German word along in {:.1%} of 500",
        turned.pop((looks["layer"], looks["head"])),
    )
    yield "does so in at most {:.1%}", max(turned.values())


def corpora_claims():
    rows, (alone,) = read_rows("multi30k"), read_rows("multi30k-en-de-1")
    runs = [row for row in rows if row["row"] == "recipe"]
    literature = [row["test.bleu_tokenized_lowercased"] for row in runs]
    cased = {
        name: statistics.mean(row["test.bleu"] for row in rows if row["row"] == name)
        for name in (
            "recipe",
            "epsilon_ls=0.0",
            "tie_embeddings=False",
            "positions=rotary",
        )
    }
    yield "a model of {:.1f} million parameters reaches", runs[0]["parameters"] / 1e6
    yield "reaches {:.1f} BLEU (mean of three seeds)", cased["recipe"]
    yield (
        "the differences are {:.1f}, {:.1f} and {:.1f},",
        *(
            abs(score - cased["recipe"])
            for name, score in cased.items()
            if name != "recipe"
        ),
    )
    yield "{:.1f}, {:.1f} and {:.1f} BLEU with three seeds", *literature
    yield (
        "{:.1f}, {:.1f} and {:.1f} with three more",
        *(
            row["test.bleu_tokenized_lowercased"]
            for row in read_rows("tight-multi30k")
            if row["row"] == "recipe"
        ),
    )
    yield (
        "95% margin of one run: {:.1f}",
        alone["test.bleu_tokenized_lowercased.margin"],
    )
    means = {
        name: statistics.mean(
            row["validation.bleu"] for row in rows if row["row"] == name
        )
        for name in (
            "recipe",
            "epsilon_ls=0.0",
            "tie_embeddings=False",
            "positions=rotary",
        )
    }
    recipe, plain, untied, rotary = means.values()
    yield "label smoothing is worth {:.1f} BLEU", recipe - plain
    yield "instead of three {:.1f},", recipe - untied
    yield "rotary positions gain {:.1f} over", rotary - recipe
    (paper,) = read_rows("gpu-base")
    yield "base model takes {:.3f} seconds", paper["seconds_per_update"]
    yield "would take {:.1f} hours", paper["hours_of_the_paper"]
    (tatoeba,) = read_rows("tatoeba-en-de")
    yield "a model of {:.1f} million reaches", tatoeba["parameters"] / 1e6
    yield "million reaches {:.1f}.", tatoeba["test.bleu"]
    (card,) = read_rows(ROOT / "data/models/tatoeba/card.json")
    yield (
        "Another comes with the package, at {:.1f} (a little flattered",
        card["test.bleu"],
    )


def families_claims():
    runs = [row for row in read_rows("table2-bundled") if row["what"] == "run"]

    def mean(score, *families):
        return [
            statistics.mean(row[score] for row in runs if row["family"] == family)
            for family in families
        ]

    for level in mean("test.bleu", "transformer", "rnn-attention"):
        yield "test set both have {:.1f} BLEU (three seeds,", level
    yield (
        (
            "the RNN has {:.1f}, the paper's Transformer {:.1f}, with rotary positions in place of "
            "the sines {:.1f}, and with the norms first, too, {:.1f}."
        ),
        *mean(
            "part.hard.longer",
            "rnn-attention",
            "transformer",
            "rotary",
            "rotary-pre-norm",
        ),
    )
    captions = pd.DataFrame(read_rows("table2-multi30k")).query("what == 'run'")
    paper = captions.groupby("family")["test.by_alpha.0.6.part.test"].mean()
    rule = captions.groupby("family")["test.bleu"].mean()
    yield "the RNN is {:.1f} ahead)", rule["rnn-attention"] - rule["transformer"]
    yield (
        "length penalty ({:.1f} and {:.1f},",
        paper["rnn-attention"],
        paper["transformer"],
    )


def variations_claims():
    runs = read_rows("variations")
    means = {
        name: statistics.mean(
            run["validation.bleu"] for run in runs if run["row"] == name
        )
        for name in ("base", "N=8", "big")
    }
    yield (
        "lose {:.1f} and {:.1f} BLEU to base",
        *(means["base"] - means[name] for name in ("N=8", "big")),
    )
    paper = pd.Series(
        {row.name: row.perplexity for row in TABLE_3 if row.name in IN_SMALL}
    )
    runs = pd.DataFrame([row for row in read_rows("table3") if row["row"] in IN_SMALL])
    order = along(runs, paper).mean(axis=1)
    yield "of {:.2f} with the paper's perplexities after a quarter of 3,400", order[850]
    yield "updates, and of {:.2f} in the end", order[3400]
    differences = np.log(paper / paper["base"]).drop("base")
    runs["loss"] = np.log(runs["test.perplexity"])
    found = agreement_with_interval(runs, "loss", differences)
    yield "Then {:.0f} of {:.0f} perplexities", *found.loc[["signs", "of"], "found"]
    yield "95%: {:.0f} to {:.0f};", *found.loc["signs", ["low", "high"]]
    yield "base is best gives {})", agreement(differences.abs(), differences)["signs"]


def speed_claims():
    def ratio(part, system="fast", kind="dropout"):
        """Over torch's layer, both with the kind of products that both have."""
        return next(
            row["over_torch_highest"]
            for row in read_rows("bench")
            if (row["part"], row.get("system"), row.get("kind"), row.get("matmul"))
            == (part, system, kind, "highest")
        )

    yield (
        "{:.1f} (base) to {:.1f} (the smallest model) times",
        ratio("T1"),
        ratio("small"),
    )
    equal = [ratio(part, kind="similar_lengths") for part in ("T1", "T2", "small")]
    yield "{:.1f} to {:.1f} times where", min(equal), max(equal)
    plain = [ratio(part, "plain") for part in ("T1", "T2", "small")]
    yield "have {:.2f} to {:.2f} times", min(plain), max(plain)
    (base,) = (row for row in read_rows("gpu-bench-base") if row["system"] == "fast")
    (torchs,) = (row for row in read_rows("gpu-bench-base") if row["system"] == "torch")
    yield "it trains {:.2f} times", base["over_torch_highest"]
    rounds = zip(base["rounds"], torchs["rounds"])
    yield "three rounds; {:.2f} in one", min(ours / theirs for ours, theirs in rounds)
    memory = {
        row["system"]: row["above_start_gib"]
        for row in read_rows("bench")
        if row["part"] == "memory"
    }
    yield "{:.2f} GiB at its peak", memory["fast"]
    yield "instead of {:.2f}", memory["torch"]
    yield "take {:.2f} GiB", memory["plain"]


def parsing_claims():
    (first,) = read_rows("parser-craft")
    rows = {row["name"]: row for row in read_rows("parser")}
    yield "only counts has {:.1f}.", rows["grammar"]["test.f1"]
    yield (
        "does has an F1 of {:.1f}, and {:.1f} by choosing among 21 outputs",
        (first["test.likeliest.f1"]),
        first["test.f1"],
    )
    thirds = [
        rows[f"third-{name}-1"]
        for name in ("vocabulary", "words", "all", "all-bracket-depth")
    ]
    assert [row["updates"] for row in (first, *thirds)] == [36_000, *4 * [12_000]]
    f1, malformed = (
        [row[f"test.beam 4.{name}"] for row in thirds] for name in ("f1", "malformed")
    )
    yield (
        (
            "the paper's way has {:.1f}, with a vocabulary of its own for trees {:.1f}, and reading "
            "words {:.1f}."
        ),
        rows["third-as-it-was-1"]["test.beam 4.f1"],
        f1[0],
        f1[1],
    )
    yield "falling rate, it has {:.1f}, but {:.1f}% of its outputs", f1[2], malformed[2]
    yield "how many are, {:.1f} and {:.1f}%.", f1[3], malformed[3]
    full = [
        [rows[f"{name}-{seed}"] for seed in (1, 2)]
        for name in ("all", "all-bracket-depth")
    ]
    means = [
        statistics.mean(row[f"test.beam 4.{name}"] for row in own)
        for name in ("f1", "malformed")
        for own in full
    ]
    yield (
        "In full these two have {:.1f} and {:.1f} (two seeds), {:.1f}% and {:.1f}%.",
        *means,
    )


CLAIMS = (
    bundled_claims,
    circuit_claims,
    corpora_claims,
    families_claims,
    variations_claims,
    parsing_claims,
    speed_claims,
)


@pytest.mark.parametrize("claims", CLAIMS)
def test_readme_says_what_the_records_say(claims):
    text = " ".join(text_of("README.md").split())
    for sentence, *values in claims():
        assert sentence.format(*values) in text


def test_every_figure_of_the_readme_is_held_to_a_record():
    text = " ".join(text_of("README.md").split())
    results = text[text.index("## Seven results") : text.index("## Three ways")]
    for claims in CLAIMS:
        for sentence, *values in claims():
            results = results.replace(sentence.format(*values), "")
    results = results.replace("report 41.0 for 2.6 million", "")  # Wu et al.'s
    assert not re.findall(r"\d+\.\d+", results)


def test_readme_is_short_and_its_minutes_are_right():
    text = text_of("README.md")
    assert len(text.splitlines()) <= 150
    now, then = reading.routes(text), reading.routes(reading.filled(text))
    assert list(now) == [path.stem for path in pairs.notebooks()]
    wrong = {
        name: cells
        for name, cells in now.items()
        for old, new in zip(cells, then[name])
        if abs(int(old or 0) - int(new or 0)) > 5
    }
    assert not wrong, "python tools/reading.py"


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
def test_contributing_shows_the_code_of_the_extensions():
    named = r"<!-- (\w+) -->\n```python\n(.*?)\n```"
    assert (
        dict(re.findall(named, text_of("CONTRIBUTING.md"), re.DOTALL)) == extensions()
    )


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
