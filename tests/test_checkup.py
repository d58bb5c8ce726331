"""The doctor: each exhibit of the museum is named by its organ, and healthy models by none."""

import json
import re
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import transformer
from transformer.core.records import file_of, read_rows
from transformer.doctor import examination, losses
from transformer.doctor.examination import CHECKS, LEARNING, assert_healthy, checkup
from transformer.doctor.museum import EXHIBITS, HEALTHY, division, patient
from transformer.doctor.museum.losses import right_loss
from transformer.doctor.museum.small import Small
from transformer.doctor.report import ORGANS, Finding, Report
from transformer.doctor.sines import sines
from transformer.doctor.subject import subject_of
from transformer.experiments.checkup import found, summary
from transformer.views.checkup import checkup_page
from transformer.views.words import describe

pytestmark = pytest.mark.usefixtures("one_thread")
LIBRARY = {
    "bart",
    "marian",
    "t5",
}  # of the package transformers, which need not be there
# since 2.5 torch's attention gives zeros, not NaN, where a row may see nothing
SAFE_SOFTMAX = tuple(int(p) for p in re.findall(r"\d+", torch.__version__)[:2]) >= (
    2,
    5,
)


def verdict(organ, seed=0, **given):
    """What one check alone says of a patient."""
    model, check = given.pop("model"), {**CHECKS, **LEARNING}[organ]
    model.eval()
    subject = subject_of(model, (0, 1, 2), **given)
    return examination.examined(subject, organ, check, seed).verdict


# Sines


def table_of(frequencies, joined=False):
    """Sines and cosines (1, 50, 2 frequencies) in turn, or sines first."""
    angles = torch.arange(50)[:, None] * torch.tensor(frequencies)
    both = [angles.sin(), angles.cos()]
    table = torch.cat(both, dim=1) if joined else torch.stack(both, dim=2).flatten(1)
    return table[None]


def told_of(table):
    """What the check of sines says of a model that keeps a table, as a plain attribute."""
    model = nn.Module()
    model.kept = table
    return sines(SimpleNamespace(model=model)).verdict


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("steps", [8, 7])
def test_sines_of_the_paper_and_of_its_authors_program(steps, joined):
    right = [10_000 ** -(i / steps) for i in range(8)]
    assert told_of(table_of(right, joined)) == "healthy"
    assert told_of(table_of(right, joined).half()) == "healthy"


@pytest.mark.parametrize("power", [2.0, 0.5])
def test_sines_of_other_wavelengths_are_seen(power):
    """An exponent counted twice is a mistake of public code; order is told all the same."""
    wrong = [10_000 ** -(power * i / 8) for i in range(8)]
    assert told_of(table_of(wrong)) == "look"


def test_learned_positions_are_no_sines():
    assert told_of(torch.randn(1, 50, 16)) == "not examined"


# The museum


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_broken_organ_is_named(name, seed):
    exhibit = EXHIBITS[name]
    assert verdict(exhibit.organ, **exhibit.make()) in ("broken", "look")


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_model_raises_no_alarm(name, seed):
    if name in LIBRARY:
        pytest.importorskip("transformers")
    if name.startswith("torch-") and not SAFE_SOFTMAX:
        pytest.skip("this torch's own layer is ill: a row of padding makes it NaN")
    report = checkup(**patient(name), learn=False)
    assert report.healthy, str(report)


@pytest.mark.skipif(SAFE_SOFTMAX, reason="this torch's own layer is healthy")
def test_an_old_torch_layer_is_found_ill_of_padding_alone():
    report = checkup(**patient("torch-norm-last"), learn=False)
    assert [f.organ for f in report.findings if f.verdict == "broken"] == ["empty"]


def test_every_model_is_in_one_half():
    exhibits = [*division.TUNING, *division.FIGURES]
    halves = division.HEALTHY_TUNING, division.HEALTHY_FIGURES, division.HEALTHY_FRESH
    healthy = [name for half in halves for name in half]
    assert sorted(exhibits) == sorted(EXHIBITS)
    assert sorted(healthy) == sorted(HEALTHY)
    assert len(EXHIBITS) >= 20
    assert len(HEALTHY) >= 12


def test_every_exhibit_names_its_report():
    for exhibit in EXHIBITS.values():
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", exhibit.report), exhibit.name
        assert exhibit.bug.endswith("."), exhibit.name
        assert exhibit.organ in ORGANS, exhibit.name


def test_the_plan_and_the_museum_agree(root):
    plan = (root / "data" / "runs" / "checkup.md").read_text(encoding="utf8")
    rows = re.findall(r"^\| *(\w+) *\|(.*)\|(.*)\|$", plan, re.MULTILINE)
    organs = {
        name.strip(): organ
        for organ, *halves in rows
        for name in ",".join(halves).split(",")
    }
    for name, exhibit in EXHIBITS.items():
        assert organs[name] == exhibit.organ, name


def test_the_record_holds_what_was_wanted():
    rows = read_rows("checkup")
    if not file_of("checkup").is_file():
        pytest.skip("no record yet")
    exhibits = [row for row in rows if row["organ"]]
    healthy = [row for row in rows if not row["organ"]]
    assert {row["model"] for row in exhibits} == set(division.FIGURES)
    unseen = {*division.HEALTHY_FIGURES, *division.HEALTHY_FRESH}
    assert {row["model"] for row in healthy} == unseen
    assert sum(map(found, exhibits)) >= 0.9 * len(exhibits)
    assert not any(map(found, healthy))
    assert max(row["seconds"] for row in healthy) < 60
    assert max(row["seconds.without_learning"] for row in rows) < 5
    assert summary(rows).count("\n") == len(rows) / 3 + 2


# What is left behind, and what is told


def test_the_model_is_as_before(seed):
    model = Small().train()
    model.decoder.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    modes = [part.training for part in model.modules()]
    subject = subject_of(model, (0, 1, 2))
    state = torch.get_rng_state()
    checkup(model, loss=right_loss, learn=False)
    examination.examined(subject, "one batch", LEARNING["one batch"], 0)
    assert torch.equal(torch.get_rng_state(), state)
    assert [part.training for part in model.modules()] == modes
    assert all(p.grad is None for p in model.parameters())
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_a_report_as_text_data_and_page(seed, tmp_path):
    report = checkup(EXHIBITS["no-mask"].make()["model"], learn=False)
    assert not report.healthy
    assert report.found[0].organ == "future"
    text = str(report)
    assert text.startswith("broken        future")
    assert "Read: 08" in text
    data = json.loads(json.dumps(report.data()))
    assert not data["healthy"]
    assert data["findings"][2]["organ"] == "future"
    page = checkup_page(report)
    page.save(tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf8")
    assert "21 of them above the diagonal" in html
    assert "<script" not in html
    assert page.alt.startswith("one finding")


def test_a_page_says_what_a_model_wrote_as_text():
    finding = Finding("loss", "broken", "<script>alert(1)</script>")
    page = checkup_page(Report((finding,), 1.0, 0)).page
    assert "<script" not in page
    assert "&lt;script" in page


def test_a_plain_function_is_examined_too(seed):
    model = Small().eval()
    report = checkup(lambda source, target: model(source, target))
    assert report.healthy, str(report)
    verdicts = {f.organ: f.verdict for f in report.findings}
    assert verdicts["future"] == "healthy"
    assert verdicts["gradients"] == "not examined"
    assert verdicts["copying"] == "not examined"


def test_assert_healthy(seed):
    assert transformer.assert_healthy(Small()).healthy
    with pytest.raises(AssertionError, match="broken +padding"):
        assert_healthy(EXHIBITS["memory-unmasked"].make()["model"])
    with pytest.raises(AssertionError, match="broken +future"):
        assert_healthy(EXHIBITS["mask-off-in-training"].make()["model"])


def test_other_ids(seed):
    class Other(Small):
        def real(self, source):
            return (source != 4)[:, None, None, :]

    assert_healthy(Other(), ids=(4, 5, 6))
    with pytest.raises(AssertionError, match="broken +padding"):
        assert_healthy(Other())


# Single checks


def test_what_a_loss_asks_for(seed):
    subject = subject_of(Small(), (0, 1, 2), loss=right_loss)
    source, target = losses.padded_batch(subject)
    asked = losses.asked(subject, source, target)
    real = target[:, 1:] != 0
    assert torch.equal(asked.wanted.argmax(dim=-1)[real], target[:, 1:][real])
    assert torch.allclose(asked.weight[real].float(), 1 / real.sum())
    assert not asked.weight[~real].any()
    assert asked.misfit < 1e-9


def test_a_sum_is_as_good_as_a_mean(seed):
    def summed(model, source, target):
        return right_loss(model, source, target) * (target[:, 1:] != 0).sum()

    assert verdict("loss", model=Small(), loss=summed) == "healthy"


def test_a_loss_of_probabilities_is_no_cross_entropy(seed):
    def twice(model, source, target):
        return right_loss(lambda *ids: model(*ids).softmax(dim=-1), source, target)

    assert verdict("loss", model=Small(), loss=twice) == "broken"


def test_a_loss_with_other_calls_is_not_examined(seed):
    def by_parts(model, source, target):
        return model.decode(target, model.encode(source), source).sum()

    assert verdict("loss", model=Small(), loss=by_parts) == "not examined"


def test_the_first_part_that_differs_is_named(seed):
    given = EXHIBITS["scale-of-model"].make()
    report = checkup(**given, learn=False)
    (finding,) = [f for f in report.findings if f.organ == "paper"]
    assert "encoder.layers.0.self_attention.W_V and" in finding.seen
    same = checkup(Small(), reference=given["reference"], learn=False)
    assert same.healthy, str(same)


def test_other_parameters_than_the_reference(seed):
    reference = Small()
    reference.more = nn.Linear(2, 2)
    assert verdict("paper", model=Small(), reference=reference) == "broken"


def test_parameters_under_other_names(seed):
    class Inside(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Small()

        def forward(self, source, target):
            return self.inner(source, target)

    given = EXHIBITS["scale-of-model"].make() | {"reference": Inside()}
    given["names"] = {name: f"inner.{name}" for name in given["model"].state_dict()}
    assert verdict("paper", **given) == "broken"
    assert verdict("paper", **(given | {"model": Small()})) == "healthy"


@pytest.mark.system
def test_pure_chance_cannot_be_learned(seed):
    assert verdict("floor", model=Small()) == "healthy"
    assert verdict("floor", **EXHIBITS["no-mask"].make()) == "broken"


@pytest.mark.slow
@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_models_learn(name, seed):
    if name in LIBRARY:
        pytest.importorskip("transformers")
    report = checkup(**patient(name), seed=1)
    assert report.healthy, str(report)
    assert report.seconds < 60


# Bad input


@pytest.mark.parametrize(
    "model, options, said",
    [
        (3, {}, "the model must be callable .* a int is not"),
        (lambda source: source, {}, "could not be called as model.*TypeError"),
        (lambda source, target: target, {}, r"must give scores .* not \(2, 3\)"),
        (lambda source, target: None, {}, "must give scores .* not NoneType"),
        (Small(), {"ids": (0, 0, 2)}, "three different whole numbers"),
        (Small(), {"ids": (0, 1, 99)}, "scores 13 tokens"),
        (lambda s, t: torch.zeros(*t.shape, 4), {}, "at least four others"),
    ],
)
def test_what_cannot_be_examined_is_refused(model, options, said):
    with pytest.raises(ValueError, match=said):
        checkup(model, **options)


# The command

MINE = """
import torch
from transformer.doctor.museum import EXHIBITS
from transformer.doctor.museum.small import Small

def build_model():
    torch.manual_seed(0)
    return Small()

def broken():
    torch.manual_seed(0)
    return EXHIBITS["no-mask"].make()["model"]

def failing():
    raise KeyError("no weights")

def loss(model, source, target):
    from transformer.doctor.museum.losses import right_loss
    return right_loss(model, source, target)

number = 3
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    path = tmp_path / "mine_to_examine.py"
    path.write_text(MINE, encoding="utf8")
    (tmp_path / "torn.py").write_text("def build_model(:", encoding="utf8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    return path


def run(monkeypatch, *words):
    """The command's exit status."""
    from transformer import cli

    monkeypatch.setattr(sys, "argv", ["transformer", "checkup", *map(str, words)])
    try:
        cli.main()
    except SystemExit as stop:
        return stop.code
    return 0


def test_the_command(mine, monkeypatch, capsys, tmp_path):
    quick = ("--no-learn",)
    status = run(monkeypatch, f"{mine}:build_model", "--loss", "loss", *quick)
    out = capsys.readouterr().out
    assert status == 0, out
    assert "nothing was found in 17 checks" in out
    files = "--html", tmp_path / "a.html", "--json", tmp_path / "a.json"
    assert run(monkeypatch, f"{mine.name}:broken", *quick, *files) == 1
    assert "broken        future" in capsys.readouterr().out
    assert json.loads((tmp_path / "a.json").read_text())["healthy"] is False
    assert "above the diagonal" in (tmp_path / "a.html").read_text(encoding="utf8")


@pytest.mark.parametrize(
    "words, said",
    [
        (["mine_to_examine.py"], "names no function: write a file and a function"),
        (["nowhere.py:build_model"], "no file nowhere.py: name the one that makes"),
        (["no_such_module:build"], "no_such_module cannot be imported"),
        (["torn.py:build_model"], r"torn.py cannot be imported \(SyntaxError"),
        (
            ["mine_to_examine.py:build"],
            r"no function build \(did you mean build_model\?\): it has Small, build_m",
        ),
        (["mine_to_examine.py:number"], "has no function number"),
        (["mine_to_examine.py:failing"], r"fails when called .* \(KeyError"),
        (["mine_to_examine.py:loss"], r"fails when called .* \(TypeError"),
        (["mine_to_examine.py:build_model", "--loss", "no"], "has no function no"),
        (
            ["mine_to_examine.py:build_model", "--ids", "1", "1", "2"],
            "ids must be three",
        ),
    ],
)
def test_the_command_refuses_in_a_sentence(words, said, mine, monkeypatch, capsys):
    assert run(monkeypatch, *words) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert re.search(said, err), err


def test_a_picture_has_words(seed):
    from transformer.views.checkup import leak

    report = checkup(Small(), learn=False)
    (finding,) = [f for f in report.findings if f.organ == "future"]
    picture = leak(finding)
    assert "0 of them above the diagonal" in picture.alternative
    assert describe(picture)
