"""Every notebook runs on its own, top to bottom, as in Colab: in an empty folder, with the installed package.

Number 90 uses torchtext where that works, and elsewhere says why it does not: it runs everywhere.
A cell whose output is the same on every machine carries `# NBVAL_CHECK_OUTPUT`, and its output is compared.
A page of evidence reads records and draws: on an idle machine it takes less than 5 seconds, and a
cell may take 30 here, beside other tests.
NOTEBOOKS=03-08,90 in the environment runs these numbers only.
"""

import compileall
import os
import shutil
import subprocess
import sys
import zipfile

import pairs
import pytest
from hatchling.builders.wheel import WheelBuilder

RANGES = [part.split("-") for part in os.environ.get("NOTEBOOKS", "00-99").split(",")]
CHOSEN = [
    path
    for path in (*pairs.notebooks(), *pairs.evidence())
    if any(part[0] <= path.name[:2] <= part[-1] for part in RANGES)
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package as a wheel installs it, without the checkout around it; beside it
    empty settings for pytest, and a module that nbval would spend seconds to import (see conftest)."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "pytest.ini").touch()
    (folder / "site").mkdir()
    (folder / "site" / "rfc3987_syntax.py").write_text("raise ImportError")
    wheel = next(WheelBuilder(str(pairs.ROOT)).build(directory=str(folder)))
    zipfile.ZipFile(wheel).extractall(folder / "site")
    compileall.compile_dir(folder / "site", quiet=1)
    return folder / "site"


@pytest.mark.parametrize("notebook", CHOSEN, ids=pairs.name_of)
def test_runs(notebook, installed, tmp_path):
    shutil.copy(notebook, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(installed), "TQDM_DISABLE": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval-lax",
        "--nbval-kernel-name=python3",
        f"--nbval-cell-timeout={30 if pairs.is_evidence(notebook) else 300}",
        "-q",
        "--tb=short",
        "--color=no",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        f"--rootdir={tmp_path}",
        "-c",
        str(installed.parent / "pytest.ini"),
        notebook.name,
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, (
        f"{notebook.name}:\n{done.stdout[-6000:]}{done.stderr[-2000:]}"
    )
    assert [path.name for path in tmp_path.iterdir()] == [notebook.name], (
        "a notebook leaves files behind"
    )
