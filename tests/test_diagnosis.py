"""Chapter 27: its plain instruments say what the strong ones say, and its page what the museum holds."""

import re

import nbformat
import pytest
import torch

from transformer import diagnosis
from transformer.core.records import read_rows
from transformer.diagnosis import (
    LIMITS,
    below_zero,
    dates,
    encode,
    examine,
    moves,
    padding_moves,
    source_moves,
    training,
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


def outside(seen):
    """The lines of an examination that are not as in a healthy model."""
    return [
        line
        for line, (least, most) in LIMITS.items()
        if not least <= seen[line] <= most
    ]


def test_a_model_is_as_before(seed):
    model = exhibit("healthy")["model"].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    examine(model)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert all(p.grad is None for p in model.parameters())


def test_an_examination_names_what_it_saw(seed):
    seen = examine(exhibit("Ben")["model"].eval())
    assert list(seen) == list(LIMITS)
    assert seen["change by a source of another length"] == 0
    assert seen["change by a source of the same length"] == 0
    assert seen["parameters without a gradient"] == 24
    assert seen["first loss"] > 3


def test_the_lengths_of_an_examination_are_as_named(seed):
    """Cleo reads only how long a source is."""
    seen = examine(exhibit("Cleo")["model"].eval())
    assert seen["change by a source of another length"] > 0.1
    assert seen["change by a source of the same length"] == 0


def test_the_own_loss_is_examined(seed):
    patient = exhibit(1)
    seen = examine(patient["model"].eval(), patient["loss"])
    assert outside(seen) == ["first loss"]


@pytest.mark.parametrize(
    ("number", "ill"),
    [
        ("healthy", []),
        ("Ada", ["change by later tokens", "change by more padding"]),
        (
            "Ben",
            [
                "change by a source of another length",
                "change by a source of the same length",
                "parameters without a gradient",
            ],
        ),
        (
            "Cleo",
            ["change by a source of the same length", "change by more padding"],
        ),
        (2, ["change by later tokens", "change by more padding"]),
        (3, ["change by more padding"]),
        (4, ["parameters without a gradient"]),
        (5, ["share of scores below zero"]),
        (6, []),
    ],
)
def test_the_charts_of_the_page(number, ill):
    assert outside(examine(exhibit(number)["model"].eval())) == ill


def test_scores_have_both_signs(seed):
    source, target = dates(8)
    shares = {
        number: below_zero(exhibit(number)["model"].eval(), source, target)
        for number in ("healthy", 5)
    }
    assert 0.1 < shares["healthy"] < 0.9
    assert shares[5] == 0


def test_a_source_that_is_used_is_missed(seed):
    model = exhibit("Ben")["model"].eval()
    source, target = dates(8)
    assert source_moves(model, source, target[:, :-1]) == 0
    healthy = exhibit("healthy")["model"].eval()
    assert source_moves(healthy, source, target[:, :-1]) > MOVED


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


def test_numbers_and_patients_are_of_the_museum():
    names = [*rooms.NUMBERED, *rooms.PATIENTS.values()]
    assert len(set(names)) == len(names) == 24 + 3
    assert set(names) <= set(EXHIBITS)
    assert set(TRAINED) <= set(rooms.NUMBERED)
    assert {row["model"] for row in read_rows("museum")} == {"healthy", *TRAINED}


def text_of(page) -> str:
    """What the page says outside of its code."""
    return "\n".join(cell.source for cell in page if cell.cell_type == "markdown")


def folds_of(page) -> dict[int, str]:
    """The folds of the page's first six exhibits, by number."""
    found = re.findall(
        r"<b>Exhibit (\d+)\.</b>(.*?)</details>", text_of(page), re.DOTALL
    )
    return {int(number): fold for number, fold in found}


def entries_of(page) -> dict[int, str]:
    """The lines of the other exhibits, all of them behind a fold, by number."""
    folds = re.findall(r"<details>(.*?)</details>", text_of(page), re.DOTALL)
    found = re.findall(
        r"^- \*\*Exhibit (\d+)\.\*\*(.*)$", "\n".join(folds), re.MULTILINE
    )
    assert len(found) == text_of(page).count("- **Exhibit ")
    return {int(number): entry for number, entry in found}


def test_the_page_shows_every_exhibit_with_its_report(page):
    folds, entries = folds_of(page), entries_of(page)
    together = folds | entries
    assert list(folds) == list(range(1, len(rooms.WAITING) + 1))
    assert sorted(together) == list(range(1, len(rooms.NUMBERED) + 1))
    for number, name in enumerate(rooms.NUMBERED, 1):
        known, shown = EXHIBITS[name], together[number]
        report = f"[{known.report}]({known.address})"
        if number in folds:
            assert f"Reported in {report}." in shown, name
            assert shown.count("```diff\n- ") == 1, name
        else:
            assert re.search(r"`.+` → `.+` \(", shown), name
            assert shown.endswith(f"(*{known.organ}*, {report})"), name
    for name in rooms.PATIENTS.values():
        assert EXHIBITS[name].address in text_of(page), name


def test_the_answers_of_the_page_are_right(page, capsys):
    (asked,) = [cell.source for cell in page if "museum.check(" in cell.source]
    numbers = re.search(r"\{(.*)\}", asked)[1]
    answers = {}
    for number in map(int, re.findall(r"(\d+):", numbers)):
        answers[number] = re.search(r"The line is \*(\w)\*", folds_of(page)[number])[1]
    assert list(answers) == [1, 2, 3, 4, 5]
    places = [i for i, cell in enumerate(page) if cell.source == asked]
    told = [i for i, cell in enumerate(page) if "The line is *" in cell.source]
    assert max(places) < min(told)  # nobody is told before being asked
    check(answers)
    assert capsys.readouterr().out == "right: 5 of 5\n"
    check(answers | {5: "a", 4: ...})
    assert capsys.readouterr().out == "right: 3 of 5\nlook again at exhibit 5\n"
    check(dict.fromkeys(answers, ...))
    assert capsys.readouterr().out == "not tried yet\n"


def test_the_lettered_lines_are_what_the_folds_put_right(page):
    listing = {
        letter: line
        for line, letter in re.findall(
            r"^(.+)  # ([a-j])\b", text_of(page), re.MULTILINE
        )
    }
    assert "".join(listing) == "abcdefghij"
    for number, fold in folds_of(page).items():
        letter = re.search(r"The line is \*(\w)\*", fold)[1]
        assert f"\n+ {listing[letter]}\n" in fold, number


def test_ada_and_cleo_begin_as_the_healthy_model_does():
    """The chapter says so: the healthy model is what they become when they are mended."""
    healthy = exhibit("healthy")["model"].state_dict()
    for name in ("Ada", "Cleo"):
        ill = exhibit(name)["model"].state_dict()
        assert all(torch.equal(value, healthy[key]) for key, value in ill.items()), name


def test_the_memory_of_exhibit_3_does_not_mind_padding():
    """Its owner says so, and so the wrong line is behind the encoder."""
    model = exhibit(3)["model"].eval()
    source, _ = encode([("1407", "0714")])
    padded = torch.nn.functional.pad(source, (0, 3))
    rows = [model.encode(tokens)[:, :4] for tokens in (source, padded)]
    torch.testing.assert_close(*rows)


@pytest.mark.parametrize(("hidden", "name"), rooms.UNNAMED.items())
def test_two_models_come_without_a_name(hidden, name):
    shown, known = exhibit(hidden)["model"], exhibit(name)["model"]
    source, target = dates(2)
    same = shown.eval()(source, target), known.eval()(source, target)
    assert torch.equal(*same)


def test_every_instrument_is_short():
    import inspect

    for name in ("moves", "source_moves", "without_gradient", "padding_moves"):
        lines = inspect.getsource(getattr(diagnosis, name)).splitlines()
        assert len(lines) <= 13, name
