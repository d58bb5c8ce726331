"""--import: kinds, corpora, recipes and schedules of a module of one's own are known to every command."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import transformer
from transformer.cli import parse

ROOT = Path(transformer.__file__).parents[1]

MINE = '''
    from pathlib import Path
    from transformer import Transformer, TransformerConfig, TrainingConfig, register
    from transformer.corpora import register_corpus
    from transformer.runs.recipes import RECIPES

    class OwnConfig(TransformerConfig):
        """Nothing of its own."""

    class Own(Transformer):
        pass

    register("own", Own, OwnConfig)
    sides = Path("own.en"), Path("own.de")
    register_corpus("sayings", languages=("en", "de"), train=sides, validation=sides, test=sides)
    RECIPES["sayings"] = dict(
        model=OwnConfig(300, d_model=16, d_ff=32, N=1, h=2),
        training=TrainingConfig(updates=2, batch_tokens=300, validate_every=2, schedule="mine:steps"),
    )

    def steps(update):
        return 0.001
'''


def run(folder, *arguments):
    """A command in a process of its own, in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "transformer", *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.fixture(scope="module")
def own(own_files, tmp_path_factory):
    """A folder with a module and its two files."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "mine.py").write_text(textwrap.dedent(MINE))
    for path in own_files:
        (folder / f"own.{path.suffix[1:]}").write_bytes(path.read_bytes())
    return folder


@pytest.mark.system
def test_a_model_a_corpus_a_recipe_and_a_schedule_of_ones_own(own):
    family = "--corpus", "sayings", "--family", "own", "--folder", "run"
    trained = run(own, "train", "--import", "mine", *family, "--device", "cpu")
    assert trained.returncode == 0, trained.stderr
    advice = "Next: transformer evaluate --import mine --folder run"
    assert advice in trained.stdout
    assert '"schedule": "mine:steps"' in (own / "run" / "run.json").read_text()
    said = run(own, "translate", "--import=mine", "A cat.", "--folder", "run")
    assert said.returncode == 0, said.stderr
    without = run(own, "translate", "A cat.", "--folder", "run")
    assert without.returncode == 2
    assert (
        "import the module that registers it first (on the command line --import)"
        in without.stderr
    )
    again = run(own, "train", "--resume", "--folder", "run", "--updates", "3")
    assert again.returncode == 2
    assert "--import" in again.stderr
    more = "--resume", "--folder", "run", "--updates", "3"
    again = run(own, "train", "--import", "mine", *more)
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("name", ["nowhere", "nowhere.py", "", "./mine"])
def test_a_module_that_is_not_there(name):
    with pytest.raises(ValueError, match="no such module .*name mine.py as --import"):
        parse(["translate", "--import", name, "A cat."])


def test_what_a_module_lacks_is_its_own_matter(tmp_path, monkeypatch):
    (tmp_path / "lacking.py").write_text("import nowhere_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'nowhere_at_all'"):
        parse(["translate", "--import", "lacking", "A cat."])
