"""Every notebook runs on its own, top to bottom, from a folder that is not the project's.

A cell whose output is the same on every machine carries `# NBVAL_CHECK_OUTPUT`, and its output is compared.
NOTEBOOKS=03-08,90 in the environment runs these numbers only.
"""

import os
import shutil
import subprocess
import sys

import pairs
import pytest

RANGES = [part.split("-") for part in os.environ.get("NOTEBOOKS", "00-99").split(",")]
CHOSEN = [path for path in pairs.notebooks() if any(part[0] <= path.name[:2] <= part[-1] for part in RANGES)]


@pytest.mark.parametrize("notebook", CHOSEN, ids=lambda path: path.stem)
def test_runs(notebook, tmp_path):
    shutil.copy(notebook, tmp_path)
    command = [sys.executable, "-m", "pytest", "--nbval-lax", "--nbval-kernel-name=python3", "--nbval-cell-timeout=300",
               "-q", "--tb=short", "--color=no", "-p", "no:cacheprovider", "-p", "no:xdist",
               f"--rootdir={tmp_path}", "-c", os.devnull, notebook.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, f"{notebook.name}:\n{done.stdout[-6000:]}{done.stderr[-2000:]}"
