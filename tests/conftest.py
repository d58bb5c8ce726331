"""What all tests share: the scripts in tools/ can be imported, pictures need no screen, slow tests are asked for."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
os.environ.setdefault("MPLBACKEND", "Agg")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests that take minutes too")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="takes minutes: --slow runs it"))


@pytest.fixture
def seed():
    """torch's random numbers begin anew."""
    import torch  # most of the tests of files and tools do without it

    torch.manual_seed(0)


@pytest.fixture
def root():
    """The project's root."""
    return ROOT
