"""The package from outside: importing it, its front door, its wheel, its version, Colab."""

import dataclasses
import importlib
import json
import os
import pydoc
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import grimp
import pairs
import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from version import version as version_of

ROOT = pairs.ROOT
PACKAGE = ROOT / "transformer"
NAMES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
]


EXPERIMENT = re.compile(
    r"^ *(?:from|import) transformer\.experiments(?:\.| import )(\w+)", re.MULTILINE
)


def python(code, *arguments):
    """Run code in a fresh interpreter; returns (standard output, standard error)."""
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.system
def test_import_is_quiet_and_offline():
    code = """
        import importlib, socket, sys

        def refuse(*arguments, **named):
            raise RuntimeError(f"the network was touched: {arguments}")

        socket.getaddrinfo = socket.create_connection = socket.socket.connect = refuse
        for name in sys.argv[1:]:
            importlib.import_module(name)
        pyplot = sys.modules.get("matplotlib.pyplot")
        assert pyplot is None or not pyplot.get_fignums(), "a figure was drawn"
    """
    assert python(code, *NAMES) == ("", "")


def test_every_name_of_the_front_door_is_there():
    transformer = importlib.import_module("transformer")
    assert 10 <= len(transformer.__all__) <= 32
    assert all(callable(getattr(transformer, name)) for name in transformer.__all__)
    assert set(dir(transformer)) == {*transformer.__all__, "__version__"}
    said = re.findall(r"\w+", transformer.__doc__)
    assert set(transformer.__all__) <= set(said)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        transformer.nothing  # noqa: B018


@pytest.mark.parametrize("name", ["TrainingConfig", "Experiment"])
def test_help_of_a_configuration_tells_each_setting(name):
    config = getattr(importlib.import_module("transformer"), name)
    said = pydoc.render_doc(config, renderer=pydoc.plaintext)
    settings = [f.name for f in dataclasses.fields(config) if f.init]
    told = re.findall(r"^ \|      (\w+): ", said, re.MULTILINE)
    assert told == settings


@pytest.mark.parametrize(
    "arguments",
    [
        "--help",
        "--version",
        "",
        "trian",
        "translate --help",
        "translate --baem 3",
        "export --help",
    ],
)
def test_help_needs_no_torch(arguments):
    """Nor does what is said about a wrong command: torch alone takes seconds."""
    show = f"""
        import sys
        sys.argv = ["transformer", *{arguments!r}.split()]
        from transformer.__main__ import main
        try:
            main()
        except SystemExit:
            pass
        print("torch" in sys.modules, "numpy" in sys.modules)
    """
    assert python(show)[0].split()[-2:] == ["False", "False"]


def test_models_are_imported_without_a_compiler():
    """torch's takes longer to import than torch itself."""
    show = """
        import sys
        from transformer import load, train, translate
        print("torch" in sys.modules, "torch._dynamo" in sys.modules)
    """
    assert python(show)[0].split()[-2:] == ["True", "False"]


def needed_experiments():
    """Files of experiments that notebooks and commands import, by whatever way."""
    graph = grimp.build_graph("transformer", cache_dir=None)
    needed = graph.find_upstream_modules("transformer.cli", as_package=True)
    for notebook in (*pairs.notebooks(), *pairs.evidence()):
        cells = "\n".join(source for _, source, _ in pairs.cells(notebook))
        for name in EXPERIMENT.findall(cells):
            name = f"transformer.experiments.{name}"
            needed |= {name} | graph.find_upstream_modules(name)
    names = {name for name in needed if name.startswith("transformer.experiments.")}
    return {Path(*name.split(".")).with_suffix(".py") for name in names}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    return Path(next(WheelBuilder(str(ROOT)).build(directory=str(folder))))


@pytest.mark.system
def test_an_installed_package_is_complete(wheel, tmp_path):
    """The wheel holds every module and the bundled corpus, and finds it there."""
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    modules = {path.relative_to(site) for path in (site / "transformer").rglob("*.py")}
    experiments = Path("transformer/experiments")
    everything = {path.relative_to(ROOT) for path in PACKAGE.rglob("*.py")}
    expected = {path for path in everything if path.parent != experiments}
    expected |= {experiments / "__init__.py", *needed_experiments()}
    assert modules == expected
    others = {path.relative_to(ROOT) for path in (PACKAGE / "views" / "live").iterdir()}
    assert all((site / path).is_file() for path in others) and len(others) > 8
    assert (site / "transformer/py.typed").is_file()
    code = """
        import sys
        sys.path.insert(0, sys.argv[1])
        from transformer.corpora import read_corpus
        from transformer.core.files import data_folder
        assert data_folder.__code__.co_filename.startswith(sys.argv[1])
        print(len(read_corpus("bundled", "test")), data_folder().name)
    """
    assert python(code, str(site.resolve()))[0] == "1000 _bundled\n"
    bundled = site / "transformer/_bundled"
    outside = {
        path.relative_to(ROOT / "data")
        for name in ("bundled", "lexicon", "models", "runs")
        for path in (ROOT / "data" / name).glob("*")
    }
    assert {path.relative_to(bundled) for path in bundled.glob("*/*")} == outside
    assert (bundled / "aligned.tsv").read_bytes() == (
        ROOT / "data/aligned.tsv"
    ).read_bytes()


@pytest.mark.system
def test_colab_keeps_its_own_torch(wheel, tmp_path):
    """pip, asked what it would install where torch and numpy are, names neither of them."""
    venv.create(tmp_path / "colab", with_pip=False)
    packages = next((tmp_path / "colab").rglob("site-packages"))
    colab = {
        "torch": "2.6.0+cu124",
        "numpy": "2.0.2",
        "matplotlib": "3.10.0",
        "pandas": "2.2.2",
        "scipy": "1.15.3",
    }
    besides = {
        "tokenizers": "0.21.0",
        "safetensors": "0.5.3",
        "requests": "2.32.3",
        "tqdm": "4.67.1",
    }
    for name, version in {**colab, **besides}.items():
        folder = packages / f"{name}-{version}.dist-info"
        folder.mkdir()
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (folder / "METADATA").write_text(about)
        (folder / "RECORD").write_text("")
    interpreter = next(
        path for path in (tmp_path / "colab").glob("*/python*") if path.stem == "python"
    )
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        interpreter,
        "install",
        "--dry-run",
        "--quiet",
        "--retries",
        "0",
        "--report",
        tmp_path / "plan.json",
        wheel,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("no package registry can be reached from here")
    assert done.returncode == 0, done.stderr[-2000:]
    plan = json.loads((tmp_path / "plan.json").read_text())["install"]
    names = {item["metadata"]["name"].lower() for item in plan}
    assert {"annotated-attention", "sacrebleu", "tyro"} <= names
    assert names.isdisjoint(colab)


def test_the_version_is_that_of_the_commit(tmp_path):
    """Another commit, another version; the tag is the release; without git, the release."""
    root, release = tmp_path / "copy", importlib.import_module("transformer").RELEASE
    (root / "transformer").mkdir(parents=True)
    shutil.copy(PACKAGE / "__init__.py", root / "transformer")
    assert version_of(root) == release

    def git(*arguments, day=1):
        date = f"2026-01-0{day}T12:00:00Z"
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        environment = {**os.environ, "GIT_COMMITTER_DATE": date}
        subprocess.run(
            command, cwd=root, check=True, env=environment, capture_output=True
        )

    git("init", "--quiet")
    versions = [release]
    for day in (2, 3):
        git("commit", "--no-verify", "--allow-empty", "--message", "a", day=day)
        versions.append(version_of(root))
    assert len(set(versions)) == 3
    pattern = rf"{re.escape(release)}\.post\d{{14}}\+g[0-9a-f]{{8}}"
    assert all(re.fullmatch(pattern, each) for each in versions[1:])
    assert list(map(Version, versions)) == sorted(map(Version, versions))
    git("tag", f"v{release}")
    assert version_of(root) == release
    (root / "PKG-INFO").write_text("Version: 0.0.9\n")  # as in an archive of the source
    assert version_of(root) == "0.0.9"


def test_the_wheel_has_the_version(wheel):
    assert wheel.name.split("-")[1] == version_of(ROOT)


@pytest.mark.slow
def test_the_source_archive_keeps_the_version(tmp_path):
    archive = next(SdistBuilder(str(ROOT)).build(directory=str(tmp_path)))
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    (root,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert version_of(root) == version_of(ROOT)
    wheel = Path(next(WheelBuilder(str(root)).build(directory=str(tmp_path))))
    assert wheel.name.split("-")[1] == version_of(ROOT)


def test_the_command_says_the_version():
    command = [sys.executable, "-m", "transformer", "--version"]
    done = subprocess.run(command, capture_output=True, text=True)
    expected = importlib.import_module("transformer").__version__
    assert (done.stdout, done.stderr) == (f"transformer {expected}\n", "")


def test_versions_agree():
    version = importlib.import_module("transformer").RELEASE
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(
        encoding="utf8"
    )
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf8")
    for name, torch in (
        ("constraints.txt", "2.13.0"),
        ("constraints-oldest.txt", "2.3.1"),
    ):
        pins = (ROOT / name).read_text(encoding="utf8").splitlines()
        assert f"torch=={torch}" in pins
        assert all(re.fullmatch(r"#.*|[\w.-]+==[\w.]+|", pin) for pin in pins)


def test_the_constraints_suit_the_oldest_python():
    """Debian 12 has Python 3.11.2; a version that asks for a later 3.11 cannot be installed."""
    for pin in (ROOT / "constraints.txt").read_text(encoding="utf8").splitlines():
        name, _, version = pin.partition("==")
        try:
            found = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue
        if found["Version"] == version and found["Requires-Python"]:
            assert SpecifierSet(found["Requires-Python"]).contains("3.11.0"), pin
