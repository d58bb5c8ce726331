"""The tool that breaks the package on purpose: each row of its table fits its place."""

import ast

import mutants
import pytest

FILE = '''
def double(x):
    """Twice."""
    y = x + x  # a comment
    return (y
            + 0) + 0
'''


@pytest.fixture
def package(tmp_path):
    (tmp_path / "transformer").mkdir()
    (tmp_path / "transformer" / "sums.py").write_text(FILE)
    return tmp_path


@pytest.mark.parametrize(
    "old, new, result",
    [
        ("x + x", "x", "y = x"),
        ("y = _", "y = _ * 2", "y = (x + x) * 2"),
        ("return _a + 0", "return _a", "return y + 0"),
    ],
)
def test_a_break_is_made_whatever_the_layout(package, old, new, result):
    path, text = mutants.broken(mutants.Mutant("", "sums.double", old, new), package)
    assert result in text and path.read_text() == FILE
    ast.parse(text)


@pytest.mark.parametrize(
    "place, old, match",
    [
        ("sums.double", "x - x", "0 times"),
        ("sums.double", "x", "2 times"),
        ("sums.half", "x", "sums.py has no half"),
    ],
)
def test_a_row_that_does_not_fit_once_is_refused(package, place, old, match):
    with pytest.raises(ValueError, match=match):
        mutants.broken(mutants.Mutant("", place, old, "None"), package)


def test_every_row_of_the_table_fits_once(root):
    for mutant in mutants.read_table():
        path, text = mutants.broken(mutant)
        assert text != ast.unparse(ast.parse(path.read_text(encoding="utf8"))), mutant
        assert all((root / name).is_file() for name in mutants.tests_of(mutant)), mutant
