"""Chapter 27: its plain instruments say what the strong ones say, and its page what the museum holds."""

import re

import nbformat
import pytest
import torch

from transformer import diagnosis
from transformer.core.records import read_rows
from transformer.diagnosis import (
    by_heart,
    dates,
    encode,
    examine,
    loss_of,
    moves,
    padding_moves,
    source_moves,
    training,
    use_of_source,
    without_gradient,
)
from transformer.doctor import leaks, plumbing
from transformer.doctor.museum import EXHIBITS, HEALTHY, check, exhibit, rooms
from transformer.doctor.subject import subject_of
from transformer.experiments.museum import TRAINED

pytestmark = pytest.mark.usefixtures("one_thread")
MOVED = 1e-3
LIBRARY = {"bart", "marian", "t5"}
MODELS = [*EXHIBITS, *HEALTHY]
# dropout that `eval()` does not reach: the strong forms throw its dice alike at each call
RESTLESS = {"dropout-always", "plain-list"}
STILL = [name for name in MODELS if name not in RESTLESS]


@pytest.fixture
def page(root):
    return nbformat.read(root / "notebooks" / "27_diagnosis.ipynb", as_version=4).cells


@pytest.fixture
def given(request, seed):
    """A model of the museum, in evaluation, and the page's two sentences."""
    name = request.param
    if name in LIBRARY:
        pytest.importorskip("transformers")
    model = EXHIBITS[name].make()["model"] if name in EXHIBITS else HEALTHY[name]()
    source, target = encode([("241287", "871224"), ("010203", "030201")])
    return model.eval(), source, target


# Plain instruments and strong ones


@pytest.mark.parametrize("given", STILL, indirect=True)
def test_later_tokens(given):
    """The strong form also looks in training, where the plain one does not."""
    model, source, target = given
    plain = moves(model, source, target[:, :-1]).triu(1).max().item()
    finding = leaks.future(subject_of(model, (0, 1, 2)))
    strong = finding.figures["leak in evaluation"]
    assert (plain > MOVED) == (strong > leaks.LEAK), (plain, strong)


@pytest.mark.parametrize("given", STILL, indirect=True)
def test_padding(given):
    model, source, target = given
    plain = padding_moves(model, source, target[:, :-1])
    verdict = leaks.padding(subject_of(model, (0, 1, 2))).verdict
    assert (plain > MOVED) == (verdict == "broken"), (plain, verdict)


@pytest.mark.parametrize("given", STILL, indirect=True)
def test_source(given):
    model, source, target = given
    plain = source_moves(model, source, target[:, :-1])
    verdict = leaks.source(subject_of(model, (0, 1, 2))).verdict
    assert (plain < leaks.BLIND) == (verdict == "broken"), (plain, verdict)


@pytest.mark.parametrize("given", MODELS, indirect=True)
def test_gradients(given):
    """The strong form also counts tensors that are no parameters."""
    model, source, target = given
    finding = plumbing.gradients(subject_of(model, (0, 1, 2)))
    assert len(without_gradient(model, source, target)) == finding.figures["empty"]


# The instruments


def test_a_model_is_as_before(seed):
    model = exhibit("healthy")["model"].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert by_heart(model, *dates(4)) < loss_of(model, *dates(4))
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_an_examination_names_what_it_saw(seed):
    seen = examine(exhibit("Ben")["model"].eval())
    assert seen["another source moves them by"] == 0
    assert seen["parameters without a gradient"] == 24
    assert seen["first loss"] > 3


def test_the_own_loss_is_examined(seed):
    patient = exhibit(1)
    seen = examine(patient["model"].eval(), patient["loss"])
    assert seen["first loss"] < 0.5


def test_a_source_that_is_used_is_missed(seed):
    model = exhibit("Ben")["model"].eval()
    source, target = dates(8)
    assert use_of_source(model, source, target) == 0
    assert use_of_source(exhibit("healthy")["model"].eval(), source, target) != 0


def test_dates(seed):
    source, target = dates(40)
    assert source.shape == (40, 6)
    assert target.shape == (40, 8)
    for tokens, turned in zip(source.tolist(), target.tolist()):
        day, month, year = tokens[:2], tokens[2:4], [t for t in tokens[4:] if t]
        assert 1 <= 10 * (month[0] - 3) + month[1] - 3 <= 12
        answer = [1, *year, *month, *day, 2]
        assert turned == answer + [0] * (8 - len(answer))


def test_training_learns(seed):
    model = exhibit("healthy")["model"].eval()
    losses = list(training(model, lambda: dates(8), 30))
    assert len(losses) == 30
    assert losses[-1] < losses[0]


# The museum


def test_a_number_gives_the_same_model_each_time():
    first, again = exhibit(3), exhibit(3)
    assert first.keys() == again.keys()
    pairs = zip(first["model"].parameters(), again["model"].parameters())
    assert all(torch.equal(one, other) for one, other in pairs)


def test_building_an_exhibit_draws_no_number(seed):
    state = torch.get_rng_state()
    exhibit("Cleo")
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("number", [0, 25, "Dan", 1.5])
def test_no_such_exhibit(number):
    with pytest.raises(ValueError, match="there is no exhibit .* numbers 1 to 24"):
        exhibit(number)


def test_rooms_and_patients_are_of_the_museum():
    names = [*rooms.NUMBERED, *rooms.PATIENTS.values()]
    assert len(set(names)) == len(names)
    assert set(names) <= set(EXHIBITS)
    assert set(TRAINED) <= set(rooms.NUMBERED)
    assert {row["model"] for row in read_rows("museum")} == {"healthy", *TRAINED}


def test_the_page_shows_every_exhibit_with_its_report(page):
    text = "\n".join(cell.source for cell in page if cell.cell_type == "markdown")
    folds = re.findall(r"\*\*Exhibit (\d+): .*?</details>", text, re.DOTALL)
    assert list(map(int, folds)) == list(range(1, len(rooms.NUMBERED) + 1))
    for number, name in enumerate(rooms.NUMBERED, 1):
        shown = re.search(rf"\*\*Exhibit {number}: .*?</details>", text, re.DOTALL)[0]
        known = EXHIBITS[name]
        assert f"Reported in [{known.report}]({known.address})." in shown, name
        assert shown.count("```python\n# wrong\n") == 1, name
    for name in rooms.PATIENTS.values():
        assert EXHIBITS[name].address in text, name


def test_the_answers_of_the_page_are_right(page, capsys):
    (asked,) = [cell.source for cell in page if "museum.check(" in cell.source]
    numbers = re.search(r"\{(.*)\}", asked)[1]
    (fold,) = [
        c.source
        for c in page
        if c.source.startswith("<details>") and "15 is" in c.source
    ]
    answers = {int(n): organ for n, organ in re.findall(r'(\d+) is "(\w+)"', fold)}
    assert list(answers) == [int(n) for n in re.findall(r"\d+", numbers)]
    check(answers)
    assert capsys.readouterr().out == "right: 5 of 5\n"
    check(answers | {5: "order", 7: ...})
    assert capsys.readouterr().out == "right: 3 of 5\nlook again at exhibit 5\n"
    check(dict.fromkeys(answers, ...))
    assert capsys.readouterr().out == "not tried yet\n"


def test_every_instrument_is_short():
    import inspect

    for name in ("moves", "use_of_source", "without_gradient", "padding_moves"):
        lines = inspect.getsource(getattr(diagnosis, name)).splitlines()
        assert len(lines) <= 13, name
