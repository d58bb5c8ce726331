"""The package's version, one for each commit, so that installing from git again installs new code.

python tools/version.py     0.1.0 at its tag; 0.1.0.post202611271812+g1a2b3c4d elsewhere, where the
                            number is the time of the commit (UTC), and 1a2b3c4d its name

pyproject.toml asks for it when the package is built. An archive of the source has kept it; where
there is neither git nor that, it is the release that transformer/__init__.py names.
"""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def git(root, *arguments):
    """What git says; nothing where it cannot."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "TZ": "UTC"},
        )
    except OSError:  # there is no git
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def version(root=ROOT):
    """The version of the code in this folder (PEP 440)."""
    text = (root / "transformer" / "__init__.py").read_text(encoding="utf8")
    release = re.search(r'^RELEASE = "(.+)"', text, re.MULTILINE)[1]
    if (root / "PKG-INFO").exists():
        kept = (root / "PKG-INFO").read_text(encoding="utf8")
        return re.search(r"^Version: (\S+)", kept, re.MULTILINE)[1]
    if not (root / ".git").exists():  # a repository around it would be another's
        return release
    if f"v{release}" in git(root, "tag", "--points-at", "HEAD").split():
        return release
    form = ("--date=format-local:%Y%m%d%H%M%S", "--abbrev=8", "--format=%cd+g%h")
    commit = git(root, "log", "-1", *form)
    return f"{release}.post{commit}" if commit else release


if __name__ == "__main__":
    print(version())
