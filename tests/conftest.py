"""What all tests share: the scripts in tools/ can be imported, pictures need no screen, slow tests
are asked for."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
os.environ.setdefault("MPLBACKEND", "Agg")
# jsonschema checks web addresses by it where it is there: seconds to import, asked by nobody here
sys.modules["rfc3987_syntax"] = None


def pytest_addoption(parser):
    parser.addoption(
        "--slow", action="store_true", help="run the tests that take minutes too"
    )


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(
                    pytest.mark.skip(reason="takes minutes: --slow runs it")
                )


@pytest.fixture
def seed():
    """torch's random numbers begin anew."""
    import torch  # most of the tests of files and tools do without it

    torch.manual_seed(0)


@pytest.fixture
def root():
    """The project's root."""
    return ROOT


@pytest.fixture(scope="module")
def one_thread():
    """Models as small as the tests' gain nothing from a second core."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def exact_products():
    """torch's switch for fp32 products stands at "highest", whatever earlier tests did
    (`allow_tf32` moves it, too)."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


@pytest.fixture(scope="session")
def own_files(tmp_path_factory):
    """Sixty sentence pairs as two files, English and German."""
    from transformer.corpora import read_corpus

    folder, pairs = (
        tmp_path_factory.mktemp("files"),
        read_corpus("bundled", "validation")[:60],
    )
    paths = folder / "own.en", folder / "own.de"
    for path, sentences in zip(paths, zip(*pairs)):
        path.write_text(
            "".join(sentence + "\n" for sentence in sentences), encoding="utf8"
        )
    return paths
