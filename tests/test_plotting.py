"""Drawing primitives: the right label at the right place, and a picture in the file."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.image import imread

from transformer.corpora.trees import read_trees
from transformer.views import comparisons, diagrams, plotting, trees
from transformer.views.words import describe


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def labels(axis):
    """{place: text} of an axis's ticks."""
    return {
        int(place): label.get_text()
        for place, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels())
    }


def test_heatmap_has_its_columns_below_and_its_rows_at_the_left():
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    ax = plotting.heatmap(
        weights, ["a", "b", "c"], ["x", "y"], "title", labels=("read", "written")
    )
    assert labels(ax.xaxis) == {0: "a", 1: "b", 2: "c"} and labels(ax.yaxis) == {
        0: "x",
        1: "y",
    }
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == (
        "title",
        "read",
        "written",
    )
    np.testing.assert_allclose(ax.images[0].get_array(), weights)
    assert ax.yaxis_inverted(), "row 0 must be the topmost"


def test_empty_labels_leave_their_place_bare():
    ax = plotting.heatmap([[1, 2, 3]], ["a", "", "c"])
    assert labels(ax.xaxis) == {0: "a", 2: "c"} and labels(ax.yaxis) == {}


@pytest.mark.parametrize(
    "columns, rows, said",
    [
        (["a"], ["x", "y"], "1 labels for 3 places"),
        (["a", "b", "c"], ["x", "y", "z"], "3 labels for 2 places"),
    ],
)
def test_wrong_number_of_labels(columns, rows, said):
    with pytest.raises(ValueError, match=said):
        plotting.heatmap(torch.zeros(2, 3), columns, rows)


@pytest.mark.parametrize(
    "weights, lowest, highest",
    [
        ([[0.5]], 0, 0.5),
        ([[0.0, 0.0]], 0, 1),  # nothing at all is dark, not an error
        ([[-2.0, 1.0]], -2, 2),  # zero in the middle
        ([[-2.0]], -2, 2),
    ],
)
def test_range_of_colours(weights, lowest, highest):
    ax = plotting.heatmap(weights, values=True)
    assert ax.images[0].get_clim() == (lowest, highest)
    assert plotting.heatmap(weights, largest=4.0).images[0].get_clim()[1] == 4


def test_heatmaps():
    panels = [(f"head {i}", [[i, 0.0]], ["a", "b"], ["x"]) for i in range(3)]
    axes = plotting.heatmaps(panels, across=2)
    assert [ax.get_title() for ax in axes] == ["head 0", "head 1", "head 2", ""]
    assert [ax.axison for ax in axes] == [True, True, True, False]
    assert (
        labels(axes[2].xaxis) == {0: "a", 1: "b"}
        and axes[2].images[0].get_array()[0, 0] == 2
    )
    assert len(plotting.heatmaps(panels[:1])) == 1


def test_lines_of_an_empty_log():
    assert (
        described(plotting.lines([], {"train": [], "validation": []}, "update", "loss"))
        == "Up: loss. Along: update."
    )


def test_constituents_stand_above_the_middle_of_what_they_hold():
    ax = trees.constituents(
        read_trees("(S (NP (DT the) (NN dog)) (VB sings))")[0], "title"
    )
    found = {text.get_text(): text.get_position() for text in ax.texts}
    assert found == {
        "S": (1.25, 2),
        "NP": (0.5, 1),
        "DT\nthe": (0, 0),
        "NN\ndog": (1, 0),
        "VB\nsings": (2, 0),
    }
    ends = {tuple(zip(line.get_xdata(), line.get_ydata())) for line in ax.lines}
    assert (
        len(ends) == 4
        and ((1.25, 2), (0.5, 2), (0.5, 1.1)) in ends
        and ((1.25, 2), (2, 2), (2, 0.1)) in ends
    )
    assert ax.get_title() == "title"


def test_lines():
    ax = plotting.lines(
        [1, 2], {"one": [1, 2], "two": torch.tensor([3.0, 4.0])}, "x", "y", log="xy"
    )
    assert [list(line.get_ydata()) for line in ax.lines] == [[1, 2], [3, 4]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == 2
    assert plotting.lines([1], {"one": [1]}, markers=True).get_legend() is None


def test_bars():
    ax = plotting.bars({"a": 1.5, "b": torch.tensor(2.0)}, "x", "y", "title")
    assert [bar.get_height() for bar in ax.patches] == [1.5, 2.0] and labels(
        ax.xaxis
    ) == {0: "a", 1: "b"}
    assert [text.get_text() for text in ax.texts] == ["1.5", "2"]


@pytest.mark.parametrize("grid", [False, True])
def test_save_writes_a_picture_and_closes_it(grid, tmp_path):
    weights = torch.rand(3, 3)
    ax = (
        plotting.heatmaps([("a", weights, None, None)] * 2)
        if grid
        else plotting.heatmap(weights)
    )
    plotting.save(ax, tmp_path / "picture")  # a PNG under any name
    assert (tmp_path / "picture").read_bytes().startswith(b"\x89PNG")
    assert (
        len(
            np.unique(imread(tmp_path / "picture", format="png").reshape(-1, 4), axis=0)
        )
        > 5
    )
    assert not plt.get_fignums()


def test_a_longest_label_stays_inside_the_saved_picture(tmp_path):
    """The border of the picture is white all round: nothing is cut off."""
    ax = plotting.heatmap(
        torch.rand(3, 2),
        ["Donaudampfschifffahrt", "b"],
        ["Lebensmittelunverträglichkeit", "y", "z"],
    )
    plotting.save(ax, tmp_path / "picture.png")
    picture = imread(tmp_path / "picture.png")[:, :, :3]
    for border in (picture[0], picture[-1], picture[:, 0], picture[:, -1]):
        assert (border == 1).all()


# What a picture shows, in words


def described(ax):
    return describe((ax if hasattr(ax, "figure") else ax.flat[0]).figure)


def test_words_of_a_heatmap():
    weights = torch.tensor([[0.0, 0.1, 0.9], [0.5, 0.4, 0.0]])
    assert described(
        plotting.heatmap(
            weights, ["a", "b", "c"], ["x", "y"], "title", labels=("read", "")
        )
    ) == (
        "“title”. Up: x to y. Along: read, a to c. 2 rows, 3 columns, numbers from 0 to 0.9. Most in each row: x → c, y → a."
    )
    assert (
        described(plotting.heatmap([[-1.0, 2.0]]))
        == "1 rows, 2 columns, numbers from -1 to 2."
    )


def test_words_of_curves_and_bars():
    nan = float("nan")
    curves = {
        "up": [1, 2, 3],
        "back": [2, 5, 2.001],
        "down": torch.tensor([3, 2, 1]),
        "none": [nan] * 3,
    }
    assert described(
        plotting.lines([1, 2, 4], curves, "n", "seconds", "title", log="x")
    ) == (
        "“title”. Up: seconds. Along: n. up from 1 to 3 (lowest 1, highest 3). back from 2 to 2 (lowest 2, highest 5). "
        "down from 3 to 1 (lowest 1, highest 3)."
    )
    assert (
        described(plotting.bars({"a": 1.5, "b": 2}, "name", "y"))
        == "Up: y. Along: name, a to b. Written in it: 1.5; 2."
    )


def test_words_of_diagrams_and_trees():
    boxes = {"a": (0, 0, "first", None), "b": (0, 1, "second\nbox", 1)}
    assert described(
        diagrams.flow(boxes, [("a", "b")], plotting.new_axes())
    ).startswith("Written in it: first; second box")


def test_words_stay_few():
    """Many panels lose their details first, then all but their titles."""
    words = [f"word{i}" for i in range(8)]
    panels = [(f"head {i}", torch.rand(8, 8), words, words) for i in range(20)]
    assert "Most in each row" in described(plotting.heatmaps(panels[:1]))
    few, many = (
        described(plotting.heatmaps(panels[:8])),
        described(plotting.heatmaps(panels)),
    )
    assert few.count("8 rows") == 8 and "Most in each row" not in few
    assert many.startswith("20 panels. “head 0”.") and len(many) <= 1000


def test_a_notebook_keeps_the_words():
    """IPython asks the figure for them; the picture itself comes from IPython, as ever."""
    from IPython.core.formatters import DisplayFormatter

    figure = plotting.bars({"a": 1}).figure
    assert DisplayFormatter().mimebundle_formatter(figure) == (
        {},
        {"image/png": {"alt": "Along: a. Written in it: 1."}},
    )


def test_differences_beyond_the_limit_stand_at_the_edge_as_numbers():
    ax = comparisons.differences(
        {"a": (1.0, 0.5, 2.0), "b": (-80.0, 1.0, -1.0), "c": (2.0, math.nan, 0.0)},
        "BLEU",
        "here",
        "paper",
        limit=30,
    )
    assert [(text.get_text(), text.xy) for text in ax.texts] == [("-80", (-30, 1))]
    assert -40 < ax.get_xlim()[0] <= -30
    assert not comparisons.differences(
        {"a": (-80.0, 1.0, -1.0)}, "BLEU", "here", "paper"
    ).texts
